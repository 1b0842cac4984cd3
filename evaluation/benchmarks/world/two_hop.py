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
    """Cases of one kind: the relations that name the bridge, and the one that is asked of it."""

    name: str
    domain: str
    firsts: tuple[str, ...]
    second: str
    shape: str = "two-hop"

    def cases(self) -> Iterator[Case]:
        """All cases of the family, in the order of its tables."""
        found = relations()
        second = found[self.second]
        facts = {fact[0].id: fact for fact in second.facts}
        for first in (found[name] for name in self.firsts):
            for fact in first.facts:
                if fact[1].id in facts:
                    yield _case(self, (first, fact), (second, facts[fact[1].id]))


FAMILIES = (
    Family("capital-currency", "geography", ("country-of-capital",), "currency"),
    Family("capital-language", "geography", ("country-of-capital",), "language"),
    Family("capital-continent", "geography", ("country-of-capital",), "continent"),
    Family("city-capital", "geography", ("country-of-city",), "capital"),
    Family("city-currency", "geography", ("country-of-city",), "currency"),
    Family("city-language", "geography", ("country-of-city",), "language"),
    Family("city-continent", "geography", ("country-of-city",), "continent"),
    Family("landmark-capital", "geography", ("country-of-landmark",), "capital"),
    Family("landmark-language", "geography", ("country-of-landmark",), "language"),
    Family("landmark-continent", "geography", ("country-of-landmark",), "continent"),
    Family("company-capital", "geography", ("country-of-company",), "capital"),
    Family("company-currency", "geography", ("country-of-company",), "currency"),
    Family("city-state-capital", "geography", ("state-of-city",), "state-capital"),
    Family("book-country", "culture", ("author",), "home"),
    Family("art-country", "culture", ("artist",), "home"),
    Family("idea-country", "culture", ("thinker",), "home"),
    Family("symbol-number", "science", ("element-of-symbol",), "number"),
    Family("number-symbol", "science", ("element-of-number",), "symbol"),
    Family("planet-position", "science", ("planet-of-clue",), "position"),
    Family("animal-young", "animals", ("animal-of-trait",), "young"),
    Family("animal-legs", "animals", ("animal-of-young", "animal-of-trait"), "legs"),
    Family("month-days", "calendar", ("month-of-feast", "month-of-ordinal"), "days"),
    Family("month-next", "calendar", ("month-of-feast", "month-of-ordinal"), "next-month"),
)


def _case(family: Family, hop_1: tuple[Relation, Fact], hop_2: tuple[Relation, Fact]) -> Case:
    (first, (subject, bridge)), (second, (_, answer)) = hop_1, hop_2
    id = f"{family.name}-{slug(subject.names[0])}"
    decoys = {f"part:{i}": of_relation(*hop, f"{id}/{i}") for i, hop in enumerate((hop_1, hop_2))}
    return Case(
        id=id,
        question=second.ask(first.phrase.format(x=subject.phrase))[0],
        answer=answer.names[0],
        parts=(_part(*hop_1), _part(*hop_2)),
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
