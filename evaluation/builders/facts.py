"""Dated facts with paraphrases: the atoms that temporal benchmarks are built from.

A file is JSON lines or CSV. Fields of a fact: ``event`` (a noun phrase: "the first moon landing"), ``date`` ("1969",
"1969-07-20", "44 BC"), ``paraphrases`` (questions that ask for the date in other words; in CSV the columns
``paraphrase_1``, ``paraphrase_2``, ...), and if wanted ``id``, ``question`` (the sub-question), ``aliases`` (other
right dates) and ``unknowable`` (true for events after a model's training cutoff).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...errors import InputError
from .. import reading
from ..cases import Part
from ..grading import dates
from ..reading import objects, text_field

WHAT = "JSON lines or CSV with event, date and paraphrases"


@dataclass(frozen=True)
class Fact:
    """One event and its date."""

    id: str
    event: str
    date: str
    when: tuple[int, int, int]
    """Year (BC is negative), month and day; months and days that are not known are 0."""
    paraphrases: tuple[str, ...] = ()
    question: str = ""
    aliases: tuple[str, ...] = ()
    unknowable: bool = False

    @property
    def years(self) -> float:
        """The date in years, for distances; there is no year 0."""
        year = self.when[0] + (self.when[0] < 0)
        return year + max(self.when[1] - 1, 0) / 12 + max(self.when[2] - 1, 0) / 365

    def as_part(self) -> Part:
        """The fact as an atom of a case: its sub-question and its probes."""
        return Part(
            question=self.question,
            answer=self.date,
            kind="date",
            answer_type="date",
            aliases=self.aliases,
            worked=f"{self.event[:1].upper()}{self.event[1:]}: {self.date}",
            paraphrases=self.paraphrases,
            atom=self.id,
        )


def read_facts(path: str | Path, paraphrases: int | None = None) -> list[Fact]:
    """Read a file of dated facts; ``paraphrases`` is the number each must have (None: at least one).

    Raises ``InputError`` naming file, line and field: an unreadable date, too few paraphrases, an id or event twice.
    """
    if Path(path).suffix.lower() == ".csv":
        rows: list[dict[str, Any]] = [_from_columns(r) for _, r in reading.table(path, f"give {WHAT}")[1]]
    else:
        rows = [row for _, row in objects(path, WHAT)]
    facts = [_fact(row, n, paraphrases, f"{path}: fact {n}") for n, row in enumerate(rows, 1)]
    for name in ("id", "event"):
        seen: dict[str, int] = {}
        for n, fact in enumerate(facts, 1):
            value = getattr(fact, name)
            if value in seen:
                raise InputError(f"{path}: fact {n} has the {name} {value!r} of fact {seen[value]}; {name}s are unique")
            seen[value] = n
    return facts


def _from_columns(row: Mapping[str, Any]) -> dict[str, Any]:
    wordings = [row[k] for k in sorted(k for k in row if k and k.startswith("paraphrase")) if (row[k] or "").strip()]
    plain = {k: v for k, v in row.items() if k and not k.startswith("paraphrase") and v}
    return {**plain, "paraphrases": wordings, "unknowable": str(row.get("unknowable", "")).lower() == "true"}


def _fact(row: Mapping[str, Any], n: int, wanted: int | None, where: str) -> Fact:
    event = text_field(row, "event", where)
    name = "date" if "date" in row else "year"
    text = text_field(row, name, where)
    date = dates.parse(text)
    if date is None or date.year is None:
        raise InputError(f"{where}: {name} is {text!r}; give a year or date (1969, 1969-07-20, 44 BC)")
    wordings = row.get("paraphrases", [])
    if not isinstance(wordings, list) or not all(isinstance(w, str) and w.strip() for w in wordings):
        raise InputError(f"{where}: paraphrases is {wordings!r}; give a list of questions")
    if len(set(wordings)) != len(wordings) or len(wordings) < (wanted or 1) or (wanted and len(wordings) != wanted):
        raise InputError(f"{where}: {len(set(wordings))} different paraphrases; give {wanted or 'at least 1'} of them")
    precise = "On which date" if date.day else "In which month" if date.month else "In which year"
    return Fact(
        id=str(row.get("id") or f"fact-{n:03d}"),
        event=event,
        date=dates.show(date),
        when=(date.year, date.month or 0, date.day or 0),
        paraphrases=tuple(wordings),
        question=str(row.get("question") or f"{precise} did this happen: {event}?"),
        aliases=tuple(row.get("aliases") or ()),
        unknowable=bool(row.get("unknowable", False)),
    )
