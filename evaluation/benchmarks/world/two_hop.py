"""Two-hop families: a first entity leads to a bridge, and the bridge leads to the answer.

A ``Relation`` is one kind of fact: the facts, three wordings of its question, and a phrase that names the answer
without giving it. A two-hop question puts the first relation's phrase into the second relation's question: "What is the
currency of {x}?" about "the country whose capital is Oslo".
"""

from __future__ import annotations

import csv
import random
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from ...case import Case, Part
from ...grading.text import holds, plain

# --- the fact tables that ship as CSV files: a cell holds one accepted answer, or several separated by ``|`` ---------


@dataclass(frozen=True)
class Entity:
    """Something that facts are about, or that answers them."""

    id: str
    """``country:france``: the same in every family."""
    phrase: str
    """As it stands in a question: "the Netherlands"."""
    names: tuple[str, ...]
    """Accepted as an answer, the gold one first."""


@cache
def rows(name: str) -> tuple[dict[str, str], ...]:
    """The rows of one table."""
    with Path(__file__).with_name(f"{name}.csv").open(encoding="utf-8", newline="") as file:
        return tuple(csv.DictReader(file))


def cells(cell: str) -> tuple[str, ...]:
    """What stands in a cell, between its ``|``."""
    return tuple(filter(None, cell.split("|")))


def entity(kind: str, cell: str) -> Entity:
    """The entity that a cell names; an article belongs to its phrase and not to the answer."""
    phrase, *others = cells(cell)
    gold = re.sub(r"^(?:the|an?) ", "", phrase)
    return Entity(f"{kind}:{slug(gold)}", phrase, (gold, *others))


def slug(text: str) -> str:
    """Lower-case ASCII words joined by hyphens."""
    return plain(text).replace(" ", "-")


def sentence(text: str) -> str:
    """The text with a capital letter in front."""
    return text[:1].upper() + text[1:]


N = 4
"""Decoys of an answer, where there are as many."""


def nearest(numbers: Iterable[int], gold: int) -> list[str]:
    """The positive numbers nearest to the gold one, without it."""
    others = {n for n in numbers if n > 0 and n != gold}
    return [str(n) for n in sorted(others, key=lambda n: (abs(n - gold), n))[:N]]


# --- the families --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class TwoHopFamily:
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
    TwoHopFamily("capital-currency", "geography", ("country-of-capital",), "currency"),
    TwoHopFamily("capital-language", "geography", ("country-of-capital",), "language"),
    TwoHopFamily("capital-continent", "geography", ("country-of-capital",), "continent"),
    TwoHopFamily("city-capital", "geography", ("country-of-city",), "capital"),
    TwoHopFamily("city-currency", "geography", ("country-of-city",), "currency"),
    TwoHopFamily("city-language", "geography", ("country-of-city",), "language"),
    TwoHopFamily("city-continent", "geography", ("country-of-city",), "continent"),
    TwoHopFamily("landmark-capital", "geography", ("country-of-landmark",), "capital"),
    TwoHopFamily("landmark-language", "geography", ("country-of-landmark",), "language"),
    TwoHopFamily("landmark-continent", "geography", ("country-of-landmark",), "continent"),
    TwoHopFamily("company-capital", "geography", ("country-of-company",), "capital"),
    TwoHopFamily("company-currency", "geography", ("country-of-company",), "currency"),
    TwoHopFamily("city-state-capital", "geography", ("state-of-city",), "state-capital"),
    TwoHopFamily("book-country", "culture", ("author",), "home"),
    TwoHopFamily("art-country", "culture", ("artist",), "home"),
    TwoHopFamily("idea-country", "culture", ("thinker",), "home"),
    TwoHopFamily("symbol-number", "science", ("element-of-symbol",), "number"),
    TwoHopFamily("number-symbol", "science", ("element-of-number",), "symbol"),
    TwoHopFamily("planet-position", "science", ("planet-of-clue",), "position"),
    TwoHopFamily("animal-young", "animals", ("animal-of-trait",), "young"),
    TwoHopFamily("animal-legs", "animals", ("animal-of-young", "animal-of-trait"), "legs"),
    TwoHopFamily("month-days", "calendar", ("month-of-feast", "month-of-ordinal"), "days"),
    TwoHopFamily("month-next", "calendar", ("month-of-feast", "month-of-ordinal"), "next-month"),
)


def _case(family: TwoHopFamily, hop_1: tuple[Relation, Fact], hop_2: tuple[Relation, Fact]) -> Case:
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


Fact = tuple[Entity, Entity]
"""Subject and answer."""


@dataclass(frozen=True)
class Relation:
    """One kind of fact. In ``questions`` (the plain one and two paraphrases) and ``phrase`` ``{x}`` is the subject."""

    name: str
    questions: tuple[str, ...]
    facts: tuple[Fact, ...]
    phrase: str
    answer_type: str
    closed: bool
    """Whether its answers are few and known, so that guessing among them has a chance."""

    def ask(self, phrase: str) -> tuple[str, ...]:
        """All wordings of the question about a subject."""
        return tuple(sentence(q.format(x=phrase)) for q in self.questions)

    @property
    def answers(self) -> tuple[Entity, ...]:
        """The different answers, in the order of the table."""
        return tuple({answer.id: answer for _, answer in self.facts}.values())

    @property
    def chance(self) -> float | None:
        """Probability that a guess among the answers of a closed relation is right."""
        return 1 / len(self.answers) if self.closed else None


@cache
def relations() -> dict[str, Relation]:
    """All relations by name, worded as in ``relations.csv``."""
    months = [entity("month", row["month"]) for row in rows("months")]
    facts: dict[str, Iterable[Fact]] = {
        "country-of-capital": _facts("countries", ("capital", "city"), ("country", "country")),
        "country-of-city": _places("city"),
        "country-of-landmark": _places("landmark"),
        "country-of-company": _places("company"),
        "state-of-city": _clues("states", ("cities", "city"), "state"),
        "author": _works("book"),
        "artist": _works("art"),
        "thinker": _works("idea"),
        "element-of-symbol": _facts("elements", ("symbol", "symbol"), ("element", "element")),
        "element-of-number": _facts("elements", ("number", "number"), ("element", "element")),
        "animal-of-young": (f for f in _clues("animals", ("clues", "clue"), "animal") if _names_young(f)),
        "animal-of-trait": (f for f in _clues("animals", ("clues", "clue"), "animal") if not _names_young(f)),
        "month-of-feast": _clues("months", ("feasts", "feast"), "month"),
        "month-of-ordinal": _facts("months", ("ordinal", "ordinal"), ("month", "month")),
        "planet-of-clue": _clues("planets", ("clues", "clue"), "planet"),
        "currency": _facts("countries", ("country", "country"), ("currency", "currency")),
        "language": _facts("countries", ("country", "country"), ("language", "language")),
        "continent": _facts("countries", ("country", "country"), ("continent", "continent")),
        "capital": _facts("countries", ("country", "country"), ("capital", "city")),
        "state-capital": _states(),
        "home": ((entity("person", row["maker"]), _country(row["country"])) for row in rows("makers")),
        "number": _facts("elements", ("element", "element"), ("number", "number")),
        "symbol": _symbols(),
        "young": _facts("animals", ("animal", "animal"), ("young", "young")),
        "legs": _facts("animals", ("animal", "animal"), ("legs", "number")),
        "days": _facts("months", ("month", "month"), ("days", "number")),
        "next-month": zip(months, [*months[1:], months[0]], strict=True),
        "position": _facts("planets", ("planet", "planet"), ("position", "number")),
    }
    return {row["name"]: _relation(row, facts[row["name"]]) for row in rows("relations")}


def _relation(row: dict[str, str], facts: Iterable[Fact]) -> Relation:
    questions = (row["question"], row["paraphrase_1"], row["paraphrase_2"])
    return Relation(row["name"], questions, tuple(facts), row["phrase"], row["answer_type"], row["closed"] == "yes")


def _facts(table: str, of: tuple[str, str], to: tuple[str, str]) -> Iterator[Fact]:
    """Facts from two columns, each given as column and kind of entity; a row with an empty cell has none."""
    for row in rows(table):
        if row[of[0]] and row[to[0]]:
            yield entity(of[1], row[of[0]]), entity(to[1], row[to[0]])


def _clues(table: str, of: tuple[str, str], answer: str) -> Iterator[Fact]:
    """Facts from a column (given with its kind of entity) that holds several subjects a cell."""
    for row in rows(table):
        for clue in cells(row[of[0]]):
            yield entity(of[1], clue), entity(answer, row[answer])


def _names_young(fact: Fact) -> bool:
    """Whether the clue is the name of the animal's young: it must not ask for that."""
    return fact[0].phrase.startswith("has young called ")


@cache
def _country(name: str) -> Entity:
    """A country by any of its names; the one that it is called by here is the gold one."""
    for row in rows("countries"):
        if name in cells(row["country"]):
            found, (first, *_) = entity("country", row["country"]), entity("country", name).names
            return Entity(found.id, name, tuple(dict.fromkeys((first, *found.names))))
    raise KeyError(f"{name}: not in countries.csv")


def _places(kind: str) -> Iterator[Fact]:
    for row in rows("places"):
        if row["kind"] == kind:
            yield entity(kind, row["place"]), _country(row["country"])


def _works(kind: str) -> Iterator[Fact]:
    """Who made a work; the subject stands in questions as what they did ("wrote Hamlet")."""
    makers = {cells(row["maker"])[0]: entity("person", row["maker"]) for row in rows("makers")}
    for row in rows("works"):
        if row["kind"] == kind:
            work = entity("work", row["work"])
            yield Entity(work.id, f"{row['made']} {row['work']}", work.names), makers[row["maker"]]


def _states() -> Iterator[Fact]:
    """Capitals of states, which stand in questions under their full name: Georgia and Washington have namesakes."""
    for state, capital in _facts("states", ("state", "state"), ("capital", "city")):
        yield Entity(state.id, f"the US state of {state.phrase}", state.names), capital


def _symbols() -> Iterator[Fact]:
    """Symbols that cannot be taken for a word of a sentence, or for "not applicable"."""
    for element, symbol in _facts("elements", ("element", "element"), ("symbol", "symbol")):
        if symbol.names[0] not in ("As", "Be", "He", "I", "Na"):
            yield element, symbol


def of_relation(relation: Relation, fact: Fact, seed: str) -> list[str]:
    """Other answers of the fact's relation, drawn by ``seed``; the nearest ones for numbers.

    Answers that a lenient reader could take for the right one are left out, and so are debatable ones (``near.csv``).
    """
    subject, gold = fact
    doubtful = {*gold.names, *_near().get((relation.name, subject.names[0]), ())}
    others = [a.names[0] for a in relation.answers if not _alike(a.names, doubtful)]
    if relation.answer_type == "number":
        return nearest(map(int, others), int(gold.names[0]))
    return random.Random(seed).sample(others, min(N, len(others)))


@cache
def _near() -> dict[tuple[str, str], tuple[str, ...]]:
    """Answers by relation and subject that are neither right nor plainly wrong."""
    return {(row["relation"], row["subject"]): cells(row["answers"]) for row in rows("near")}


def _alike(some: Iterable[str], others: Iterable[str]) -> bool:
    return any(holds(a, b) or holds(b, a) for a in some for b in others)
