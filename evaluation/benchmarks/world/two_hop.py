"""Two-hop families: a first entity leads to a bridge, the bridge to the answer."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ...cases import Case, Part
from .decoys import of_relation
from .relations import Fact, Relation, relations
from .tables import slug


@dataclass(frozen=True)
class Family:
    """Cases of one kind: relations that name the bridge, and the one that is asked of it."""

    name: str
    firsts: tuple[str, ...]
    second: str
    domain: str


FAMILIES = (
    Family("capital-currency", ("country-of-capital",), "currency", "geography"),
    Family("capital-language", ("country-of-capital",), "language", "geography"),
    Family("capital-continent", ("country-of-capital",), "continent", "geography"),
    Family("city-currency", ("country-of-city",), "currency", "geography"),
    Family("city-language", ("country-of-city",), "language", "geography"),
    Family("landmark-capital", ("country-of-landmark",), "capital", "geography"),
    Family("landmark-continent", ("country-of-landmark",), "continent", "geography"),
    Family("company-capital", ("country-of-company",), "capital", "geography"),
    Family("city-state-capital", ("state-of-city",), "state-capital", "geography"),
    Family("book-country", ("author",), "home", "literature"),
    Family("art-country", ("artist",), "home", "arts"),
    Family("idea-country", ("thinker",), "home", "science"),
    Family("symbol-number", ("element-of-symbol",), "number", "chemistry"),
    Family("number-symbol", ("element-of-number",), "symbol", "chemistry"),
    Family("animal-young", ("animal-of-trait",), "young", "animals"),
    Family("animal-legs", ("animal-of-young", "animal-of-trait"), "legs", "animals"),
    Family("month-days", ("month-of-feast", "month-of-ordinal"), "days", "calendar"),
    Family("month-next", ("month-of-feast", "month-of-ordinal"), "next-month", "calendar"),
    Family("planet-position", ("planet-of-clue",), "position", "astronomy"),
)


def cases(family: Family) -> Iterator[Case]:
    """All cases of a family, in the order of its tables."""
    found = relations()
    second = found[family.second]
    answers = {subject.id: (subject, answer) for subject, answer in second.facts}
    for first in (found[name] for name in family.firsts):
        for subject, bridge in first.facts:
            if bridge.id in answers:
                yield _case(family, (first, (subject, bridge)), (second, answers[bridge.id]))


def _case(family: Family, hop_1: tuple[Relation, Fact], hop_2: tuple[Relation, Fact]) -> Case:
    (first, (subject, bridge)), (second, (_, answer)) = hop_1, hop_2
    id = f"{family.name}-{slug(subject.names[0])}"
    decoys = {f"part:{i}": of_relation(*hop, f"{id}/{i}") for i, hop in enumerate((hop_1, hop_2))}
    return Case(
        id=id,
        question=second.ask(first.phrase.format(x=subject.phrase))[0],
        answer=answer.names[0],
        parts=(_part(first, hop_1[1]), _part(second, hop_2[1])),
        answer_type=second.answer_type,
        aliases=answer.names[1:],
        family=family.name,
        depth=2,
        cluster=bridge.id,
        domain=family.domain,
        operation="lookup",
        chance=second.chance,
        meta={"first": subject.id, "crossed": answer.id, "decoys": {**decoys, "whole": decoys["part:1"]}},
    )


def _part(relation: Relation, fact: Fact) -> Part:
    subject, answer = fact
    question, *paraphrases = relation.ask(subject.phrase)
    return Part(
        question=question,
        answer=answer.names[0],
        kind="fact",
        answer_type=relation.answer_type,
        aliases=answer.names[1:],
        paraphrases=tuple(paraphrases),
        atom=f"{relation.name}:{subject.id.partition(':')[2]}",
        skill=relation.name,
    )
