"""Dates and years in free text, with eras: 200 BC is 200 BCE, and there is no year 0."""

from __future__ import annotations

import itertools
import re
from dataclasses import dataclass

_MONTHS = "january february march april may june july august september october november december".split()
_MONTH_NUMBER = {m: i for i, m in enumerate(_MONTHS, 1)} | {m[:3]: i for i, m in enumerate(_MONTHS, 1)} | {"sept": 9}
# The other languages that models drift into; "mars" and the like are only months beside a day.
_ELSEWHERE = (
    "januar februar märz april mai juni juli august september oktober november dezember",
    "janvier février mars avril mai juin juillet août septembre octobre novembre décembre",
    "enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre",
    "gennaio febbraio marzo aprile maggio giugno luglio agosto settembre ottobre novembre dicembre",
    "janeiro fevereiro março abril maio junho julho agosto setembro outubro novembro dezembro",
)
_MONTH_NUMBER |= {m: i for row in _ELSEWHERE for i, m in enumerate(row.split(), 1) if m not in _MONTH_NUMBER}
_ENGLISH = [*_MONTHS, *(m[:3] for m in _MONTHS), "sept"]
_MONTH = rf"(?P<month>{'|'.join(sorted(_ENGLISH, key=len, reverse=True))})\b\.?"
_MONTH_AFTER_DAY = rf"(?P<month>{'|'.join(sorted(_MONTH_NUMBER, key=len, reverse=True))})\b\.?"
_DAY = r"(?P<day>[0-3]?\d)(?:st|nd|rd|th|\.(?=\s)|er|º)?"
_ERA = r"(?:\s*(?P<era>B\.?C\.?(?:E\.?)?|A\.?D\.?|C\.?E\.?)(?![A-Za-z]))"
_YEAR = r"(?P<year>\d{1,4})"
_AD = r"(?:(?P<ad>A\.?D\.?)\s*)?"
_PATTERNS = [
    re.compile(p, re.IGNORECASE)
    for p in (
        r"(?<!\d)(?P<year>-?\d{4})-(?P<month>[01]\d)-(?P<day>[0-3]\d)(?!\d)",
        r"(?<![\d/])(?P<year>\d{4})[/.](?P<month>[01]?\d)[/.](?P<day>[0-3]?\d)(?![\d/])",
        r"(?<![\d/])(?P<month>[01]?\d)/(?P<day>[0-3]?\d)/(?P<year>\d{4})(?![\d/])",
        # the day first where the first number can be no month, or where points or dashes stand between
        r"(?<![\d/])(?P<day>1[3-9]|2\d|3[01])/(?P<month>[01]?\d)/(?P<year>\d{4})(?![\d/])",
        r"(?<![\d.])(?P<day>[0-3]?\d)\.\s?(?P<month>[01]?\d)\.\s?(?P<year>\d{4})(?![\d])",
        r"(?<![\d-])(?P<day>[0-3]?\d)-(?P<month>[01]?\d)-(?P<year>\d{4})(?![\d-])",
        rf"(?<!\w){_DAY}[\s-]+(?:(?:of|de|di)\s+)?{_MONTH_AFTER_DAY},?[\s-]+(?:del?\s+)?{_AD}{_YEAR}(?!\d){_ERA}?",
        rf"\b{_MONTH}\s+{_DAY},?\s+{_AD}{_YEAR}(?!\d){_ERA}?",
        rf"\b{_MONTH},?\s+(?:of\s+)?{_AD}(?P<year>\d{{3,4}})(?!\d){_ERA}?",
        rf"(?<!\w){_DAY}\s+(?:of\s+)?{_MONTH}",
        rf"\b{_MONTH}\s+{_DAY}(?!\d)",
        r"\b(?P<ad>A\.?D\.?)\s*(?P<year>\d{1,4})(?![\d.]\d|\d)",
        rf"(?<![\w.,/])(?<!\D-)(?<!^-){_YEAR}(?!\d|[,.]\d|s\b|\s*(?:st|nd|rd|th|%|years?\b)){_ERA}?",
        r"(?<![\w.\d]\s)(?<![\w.])-(?P<year>\d{1,4})(?!\d|[,.]\d)(?P<negative>)",
    )
]
_COARSE = re.compile(r"\b(?:\d{3,4}['’]?s|\d{1,2}(?:st|nd|rd|th)[\s-]+century|\w+(?:st|nd|rd|th)[\s-]+century)\b", re.I)
_NEGATED = re.compile(r"(?:\bnot|n't|\brather than|\binstead of)\s+(?:in\s+|on\s+|the year\s+)*$", re.I)
_HEDGE = re.compile(r"^\s*(?:or|[-–—]|to|and)\s+(?:maybe\s+|in\s+|the year\s+)*$|^\s*[-–—]\s*$", re.I)


@dataclass(frozen=True)
class Date:
    """A date as precise as it was written; BC years are negative."""

    year: int | None
    month: int | None = None
    day: int | None = None
    start: int = 0
    end: int = 0
    sure: bool = True
    """False for bare numbers of one or two digits, which may not be years."""


@dataclass(frozen=True)
class Found:
    """The date that answers, or why there is none (``no-answer``, ``imprecise``, ``hedged``)."""

    date: Date | None
    reason: str | None = None


def find_all(text: str) -> list[Date]:
    """All dates of a text in order; longer forms take precedence over the years inside them."""
    found: list[Date] = []
    taken = bytearray(len(text))
    for pattern in _PATTERNS:
        for m in pattern.finditer(text):
            if not any(taken[m.start() : m.end()]) and (date := _date(m)) is not None:
                found.append(date)
                taken[m.start() : m.end()] = b"\1" * (m.end() - m.start())
    return sorted(found, key=lambda d: d.start)


def _date(m: re.Match[str]) -> Date | None:
    g = m.groupdict()
    year = int(g["year"]) if g.get("year") else None
    era = (g.get("era") or "").replace(".", "").upper()
    if year is not None and (era.startswith("B") or "negative" in g):
        year = -year
    month = g.get("month")
    number = None if month is None else int(month) if month.isdigit() else _MONTH_NUMBER[month.lower()]
    day = int(g["day"]) if g.get("day") else None
    if year == 0 or (number is not None and not 1 <= number <= 12) or (day is not None and not 1 <= day <= 31):
        return None
    sure = bool(number or era or g.get("ad") or len(g.get("year") or "") >= 3)
    return Date(year, number, day, m.start(), m.end(), sure)


def answer(text: str, first: bool = False) -> Found:
    """The date that a text answers with: after an answer cue (``first``) the first one, otherwise the last.

    Negated dates do not count; a range, or two joined by "or", is ``hedged``; a decade or century is ``imprecise``.
    """
    dates = [d for d in find_all(text) if not _NEGATED.search(text[max(0, d.start - 60) : d.start])]
    dates = [d for d in dates if d.sure] or dates
    if not dates:
        return Found(None, "imprecise" if _COARSE.search(text) else "no-answer")
    i = 0 if first else len(dates) - 1
    pair = dates[i : i + 2] if first else dates[max(0, i - 1) :]
    if len(pair) == 2 and _HEDGE.match(text[pair[0].end : pair[1].start]):
        return Found(None, "hedged")
    return Found(dates[i])


def rivals(text: str) -> list[Date]:
    """The other dates that a text without a cue may answer with: those before the last one in its last sentence.

    None in a range or in a choice of two ("1066 or 1067"), which is no answer as a whole.
    """
    dates = [d for d in find_all(text) if d.sure and not _NEGATED.search(text[max(0, d.start - 60) : d.start])]
    if not dates:
        return []
    ends = [m.end() for m in re.finditer(r"(?<=[a-z\d)][.!?])\s+(?=[A-Z\"(])|\n", text) if m.end() <= dates[-1].start]
    near = [d for d in dates if d.start >= (ends[-1] if ends else 0)]
    joined = [_HEDGE.match(text[a.end : b.start]) is not None for a, b in itertools.pairwise(near)]
    return [d for i, d in enumerate(near[:-1]) if not joined[i] and not (i and joined[i - 1])]


def parse(text: str) -> Date | None:
    """The date of a gold answer or alias, or None."""
    return answer(text, first=True).date


def compare(date: Date, gold: Date, tolerance: int = 0) -> str | None:
    """``date`` for a match, ``consistency`` for one within ``tolerance`` years, None otherwise.

    The answer has to be at least as precise as the gold date; what it adds is not compared.
    """
    if (gold.month and not date.month) or (gold.day and not date.day):
        return None
    if (gold.month and date.month != gold.month) or (gold.day and date.day != gold.day):
        return None
    if gold.year is None or date.year is None:
        return "date" if gold.year is None else None
    difference = abs(_ordinal(date.year) - _ordinal(gold.year))
    return "date" if difference == 0 else "consistency" if difference <= tolerance else None


def incomplete(date: Date, gold: Date) -> bool:
    """True where the answer leaves out a component that the gold date has."""
    return any(getattr(gold, f) is not None and getattr(date, f) is None for f in ("year", "month", "day"))


def _ordinal(year: int) -> int:
    return year if year > 0 else year + 1


def show(date: Date) -> str:
    """The date as it is written into ``graded.jsonl``: ``44 BC``, ``1876``, ``1876-03-10``."""
    if date.year is None:
        return f"--{date.month:02d}-{date.day:02d}"
    parts = [f"{date.month:02d}" if date.month else "", f"{date.day:02d}" if date.day else ""]
    tail = "".join(f"-{p}" for p in parts if p)
    return f"{-date.year}{tail} BC" if date.year < 0 else f"{date.year}{tail}"
