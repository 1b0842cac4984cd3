"""Dated facts with paraphrases: the atoms that temporal benchmarks are built from.

A file is JSON lines or CSV. Fields of a fact: ``event`` (a noun phrase: "the first moon landing"), ``date`` ("1969",
"1969-07-20", "44 BC"), ``paraphrases`` (questions that ask for the date in other words; in CSV the columns
``paraphrase_1``, ``paraphrase_2``, ...), and if wanted ``id``, ``question`` (the sub-question), ``aliases`` (other
right dates) and ``unknowable`` (true for events after a model's training cutoff).
"""

import re
from calendar import month_name
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...errors import InputError
from .. import text_files
from ..case import Part
from ..grading import dates
from ..text_files import id_field, in_words, objects, text_field

WHAT = "JSON lines or CSV with event, date and paraphrases"
_TWO_DATES = re.compile(r"(\d{1,2})[/-](\d{1,2})[/-]\d{4}")
"""02/03/1969, in which either number may be the month; 02.03.1969 is always of March."""
_WORDS = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}


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
    facts = {
        where: _fact(row, n, paraphrases, where)
        for n, (where, row) in enumerate(rows_with_paraphrases(path, WHAT).items(), 1)
    }
    for name in ("id", "event"):
        seen: dict[str, str] = {}
        for where, fact in facts.items():
            value = getattr(fact, name)
            if (first := seen.setdefault(value, where)) != where:
                raise InputError(f"{where}: has the {name} {value!r} of {first}; {name}s are unique")
    return list(facts.values())


def rows_with_paraphrases(path: str | Path, what: str) -> dict[str, dict[str, Any]]:
    """The objects of JSON lines, or the rows of a CSV with its columns ``paraphrase_1``, ... as one list, by place.

    Raises ``InputError`` as ``reading`` does.
    """
    if Path(path).suffix.lower() != ".csv":
        # NaN is a missing value
        return {where: {k: v for k, v in row.items() if v == v} for where, row in objects(path, what)}
    found: dict[str, dict[str, Any]] = {}
    for line, row in text_files.table(path, f"give {what}")[1]:
        wordings = [row[k] for k in sorted(row) if k.startswith("paraphrase") and row[k].strip()]
        plain: dict[str, Any] = {k: v for k, v in row.items() if k and not k.startswith("paraphrase") and v}
        found[f"{path}:{line}"] = {**plain, "paraphrases": wordings}
    return found


def paraphrases_of(row: Mapping[str, Any], wanted: int | None, where: str) -> tuple[str, ...]:
    """The different paraphrases of a row, ``wanted`` of them (None: at least one). Raises ``InputError``."""
    wordings = row.get("paraphrases", [])
    if not isinstance(wordings, list) or not all(isinstance(w, str) and w.strip() for w in wordings):
        raise InputError(f"{where}: paraphrases is {wordings!r}; give a list of questions")
    if len(set(wordings)) != len(wordings) or len(wordings) < (wanted or 1) or (wanted and len(wordings) != wanted):
        found = f"{len(set(wordings))} different paraphrases among {len(wordings)}"
        raise InputError(f"{where}: {found}; give {wanted or 'at least 1'}, each once")
    return tuple(wordings)


def aliases_of(row: Mapping[str, Any], where: str) -> tuple[str, ...]:
    """Other right answers of a row: a list, in CSV its text, or one of them. Raises ``InputError`` for others."""
    given = in_words(row.get("aliases") or [])
    if isinstance(given, str):
        given = text_files.literal(given, list) or given
    found = [given] if isinstance(given, str) else [*map(in_words, given)] if isinstance(given, list) else [given]
    if not all(isinstance(a, str) and a.strip() for a in found):
        raise InputError(f"{where}: aliases is {given!r}; give a list of texts")
    return tuple(found)


def _fact(row: Mapping[str, Any], n: int, wanted: int | None, where: str) -> Fact:
    event = text_field(row, "event", where)
    name = "date" if "date" in row else "year"
    text = text_field(row, name, where)
    date = dates.parse(text)
    # a span of years, or 2005-06, which may be one
    rest = date is not None and not date.month and len(re.findall(r"\d+", text)) > 1
    if twice := _TWO_DATES.fullmatch(text):
        day, month = map(int, twice.groups())
        if day != month and max(day, month) <= 12:  # of March or of February
            year = text[-4:]
            raise InputError(
                f"{where}: {name} is {text!r}, which may be two dates; give {year}-{month:02d}-{day:02d} or "
                f"{year}-{day:02d}-{month:02d}"
            )
    if date is None or date.year is None or rest or not dates.is_real(text):
        raise InputError(f"{where}: {name} is {text!r}; give a year or date (1969, July 1969, 1969-07-20, 44 BC)")
    unknowable = row.get("unknowable", False)
    if isinstance(unknowable, str):  # of CSV
        unknowable = _WORDS.get(unknowable.strip().lower(), unknowable)
    if not isinstance(unknowable, bool):
        raise InputError(f"{where}: unknowable is {unknowable!r}; give true or false")
    aliases = aliases_of(row, where)
    if wrong := [a for a in aliases if not dates.is_real(a)]:
        raise InputError(f"{where}: aliases has {wrong[0]!r}; give other right dates")
    precise = "On which date" if date.day else "In which month" if date.month else "In which year"
    return Fact(
        id=id_field(row, f"fact-{n:03d}"),
        event=event,
        date=_written(date),
        when=(date.year, date.month or 0, date.day or 0),
        paraphrases=paraphrases_of(row, wanted, where),
        question=str(row.get("question") or f"{precise} did this happen: {event}?"),
        aliases=aliases,
        unknowable=unknowable,
    )


def _written(date: dates.Date) -> str:
    """The date as a gold answer, which graders read with its month."""
    if date.month and not date.day:
        return f"{month_name[date.month]} {dates.show(dates.Date(date.year))}"
    return dates.show(date)
