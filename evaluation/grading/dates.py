"""Dates, years and times of day in free text. With eras: 200 BC is 200 BCE, and there is no year 0.

    announced("It opened on 31 March 1889.").date  # Date(1889, 3, 31)
    clock_in_digits("at half past nine")  # "at 9:30"

Times of day are written as digits: "a quarter to ten in the evening" is 9:45 pm. Their comparison is that of numbers,
which reads "9:45 pm" and "21:45", and knows that "9:45" may be either.
"""

import itertools
import re
from calendar import monthrange
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from . import cues, words

_MONTHS = "january february march april may june july august september october november december".split()
_MONTH_NUMBER = {m: i for i, m in enumerate(_MONTHS, 1)} | {m[:3]: i for i, m in enumerate(_MONTHS, 1)} | {"sept": 9}
# The other languages that models drift into; "mars" and the like are only months beside a day.
_ELSEWHERE = (
    "januar februar märz april mai juni juli august september oktober november dezember",
    "janvier février mars avril mai juin juillet août septembre octobre novembre décembre",
    "enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre",
    "gennaio febbraio marzo aprile maggio giugno luglio agosto settembre ottobre novembre dicembre",
    "janeiro fevereiro março abril maio junho julho agosto setembro outubro novembro dezembro",
    "januari februari maart april mei juni juli augustus september oktober november december",
    "januari februari mars april maj juni juli augusti september oktober november december",
    "stycznia lutego marca kwietnia maja czerwca lipca sierpnia września października listopada grudnia",
    "января февраля марта апреля мая июня июля августа сентября октября ноября декабря",
    "ocak şubat mart nisan mayıs haziran temmuz ağustos eylül ekim kasım aralık",
)
_MONTH_NUMBER |= {m: i for row in _ELSEWHERE for i, m in enumerate(row.split(), 1) if m not in _MONTH_NUMBER}
_SHORT = "|".join(m[:3] for m in _MONTHS)
_ENGLISH = [*_MONTHS, *(m[:3] for m in _MONTHS), "sept"]
_MONTH = rf"(?P<month>{'|'.join(sorted(_ENGLISH, key=len, reverse=True))})\b\.?"
_MONTH_AFTER_DAY = rf"(?P<month>{'|'.join(sorted(_MONTH_NUMBER, key=len, reverse=True))})\b\.?"
_DAY = r"(?P<day>[0-3]?\d)(?:st|nd|rd|th|\.(?=\s)|er|º)?"
_SPELLED_DAY = rf"(?P<day>{'|'.join(sorted(words.DAYS, key=len, reverse=True))})"
_ERA = r"(?:\s*(?P<era>B\.?C\.?(?:E\.?)?|A\.?D\.?|C\.?E\.?)(?![A-Za-z]))"
_YEAR = r"(?P<year>\d{1,4})"
_AD = r"(?:(?P<ad>A\.?D\.?)\s*)?"
_IN = r"(?:(?:in|of|del?)\s+)?(?:the\s+year\s+)?"
_PATTERNS = [
    re.compile(p, re.IGNORECASE)
    for p in (
        r"(?<!\d)(?P<year>-?\d{4})-(?P<month>[01]?\d)-(?P<day>[0-3]?\d)(?!\d)",
        r"(?<![\d/.-])(?P<year>[12]\d{3})-(?P<month>0[1-9]|1[0-2])(?P<or_years>)(?![\d-]|\s?[/.]\d)",
        r"(?<!\d)(?P<year>\d{3,4})\s?[年년]\s?(?:(?P<month>\d{1,2})\s?[月월]\s?(?:(?P<day>\d{1,2})\s?[日号일])?)?",
        r"(?<![\d/])(?P<year>\d{4})[/.](?P<month>[01]?\d)[/.](?P<day>[0-3]?\d)(?![\d/])",
        r"(?<![\d/])(?P<month>[01]?\d)/(?P<day>[0-3]?\d)/(?P<year>\d{4})(?P<month_first>)(?![\d/])",
        # the day comes first where the first number cannot be a month, or where points or dashes separate them
        r"(?<![\d/])(?P<day>1[3-9]|2\d|3[01])/(?P<month>[01]?\d)/(?P<year>\d{4})(?![\d/])",
        r"(?<![\d.])(?P<day>[0-3]?\d)\.\s?(?P<month>[01]?\d)\.\s?(?P<year>\d{4})(?![\d])",
        r"(?<![\d-])(?P<day>[0-3]?\d)-(?P<month>[01]?\d)-(?P<year>\d{4})(?![\d-])",
        rf"(?<!\w){_DAY}[\s-]+(?:(?:of|de|di)\s+)?{_MONTH_AFTER_DAY},?[\s-]+{_IN}{_AD}{_YEAR}(?!\d|\s+(?:{_SHORT})){_ERA}?",
        rf"\b{_MONTH}\s+{_DAY},?\s+{_IN}{_AD}{_YEAR}(?!\d){_ERA}?",
        rf"(?<!\w){_SPELLED_DAY}\s+(?:of\s+)?{_MONTH},?\s+{_IN}(?P<year>\d{{4}})(?!\d)",
        rf"\b{_MONTH}\s+(?:the\s+)?{_SPELLED_DAY},?\s+{_IN}(?P<year>\d{{4}})(?!\d)",
        rf"\b{_MONTH}\s+{_DAY},?\s+['\u2019](?P<short>\d\d)(?!\w)",
        rf"(?<!\w){_DAY}\s+(?:of\s+)?{_MONTH},?\s+['\u2019](?P<short>\d\d)(?!\w)",
        rf"(?<!\d)(?P<year>\d{{4}}),?\s+{_MONTH}\s+{_DAY}(?!\d|,?\s+\d{{4}})",
        rf"\b{_MONTH},?\s+(?:of\s+)?{_AD}(?P<year>\d{{3,4}})(?!\d){_ERA}?",
        r"(?<!\w)['\u2019](?P<short>\d\d)(?![\w'\u2019])",
        rf"(?<!\w){_DAY}\s+(?:of\s+)?{_MONTH}",
        rf"\b{_MONTH}\s+{_DAY}(?!\d)",
        r"\b(?P<ad>A\.?D\.?)\s*(?P<year>\d{1,4})(?![\d.]\d|\d)",
        rf"(?<![\w.,/])(?<!\D-)(?<!^-){_YEAR}(?!\d|[,.]\d|s\b|\s*(?:(?:st|nd|rd|th|years?)\b|%)){_ERA}?",
        r"(?<![\w.\d]\s)(?<![\w.])-(?P<year>\d{1,4})(?!\d|[,.]\d)(?P<negative>)",
    )
]
_SPOKEN = 60
"""Most characters of a year in words."""
_COARSE = re.compile(r"\b(?:\d{3,4}['’]?s|\d{1,2}(?:st|nd|rd|th)[\s-]+century|\w+(?:st|nd|rd|th)[\s-]+century)\b", re.I)
_SENTENCE = re.compile(
    rf"(?<=[a-z\d)][.!?])(?<!\d\.)(?<!\b(?i:{_SHORT})\.)(?<!\b(?i:sept)\.)\s+"
    r"|(?<=\d\.)\s+(?=[A-Z][a-z]*\s)(?!\w+\s+\d)|\n+"
)
_ASIDE = re.compile(r"\([^()]*\)|, (?:which|who|whose|where) [^.!?\n]{0,200}?,(?!\s?\d)")
_BOUND = re.compile(r"\b(?:before|after|until|since|prior\s+to|no\s+later\s+than)\s+(?:the\s+year\s+)?$", re.I)
_LED = re.compile(r"\b(?!(?:is|was|on|in|the|year|it|circa|around|about|approximately|of)\b)[a-z]{2,}", re.I)
"""A word before a date that says more than an introduction."""
_APART = re.compile(
    r"(?:\b(?:moved|changed|postponed|rescheduled|shifted|delayed|brought)\b[^.;]{0,40}\bfrom\s"
    rf"|\b(?:years?|months?|weeks?|days?)\s+(?:after|before)\s[^.;]{{0,80}}(?<!\d\sis\s)(?<!\d\swas\s)|{cues.ELSEWHERE})$",
    re.I,
)
"""Before a date from which another one is counted ("in 1989, 28 years after it was built in 1961"), or another case."""
_NEGATED = re.compile(r"(?:\bnot|n't|\brather than|\binstead of)\s+(?:in\s+|on\s+|the year\s+)*$", re.I)
_HEDGE = re.compile(r"^\s*(?:or|[-–—]|to|and)\s+(?:maybe\s+|in\s+|the year\s+)*$|^\s*[-–—/]\s*$", re.I)

_TO = r"\s?(?:[-/\u2013\u2014]|\b(?:to|or|and)\b)\s?"
_TWO_DAYS = [
    (re.compile(pattern, re.IGNORECASE), full)
    for pattern, full in (
        (
            rf"(?<![\d./-])([0-3]?\d)(?:st|nd|rd|th)?{_TO}([0-3]?\d(?:st|nd|rd|th)?\s+(?:of\s+)?)({'|'.join(_ENGLISH)})\b(,?\s+\d{{4}}\b)?",
            r"\1 \3\4 to \2\3\4",
        ),
        (
            rf"\b({'|'.join(_ENGLISH)})\s+([0-3]?\d)(?:st|nd|rd|th)?({_TO})([0-3]?\d(?:st|nd|rd|th)?)(,?\s+\d{{4}}\b)",
            r"\1 \2\5\3\1 \4\5",
        ),
    )
]
"""Two days of one month, and both as full dates: "14-15 April 1912", "April 14 or 15, 1912"."""


@dataclass(frozen=True)
class Date:
    """A date as precise as it was written; BC years are negative."""

    year: int | None
    month: int | None = None
    day: int | None = None
    start: int = 0
    end: int = 0
    sure: bool = True
    """False for bare numbers of one to three digits, which may not be years."""
    either: bool = False
    """Whether day and month may be exchanged: "4/7/1776"."""


@dataclass(frozen=True)
class DateReading:
    """The date that answers, or why no date does (``no-answer``, ``imprecise``, ``hedged``), and the rival dates."""

    date: Date | None
    reason: str | None = None
    rivals: tuple[Date, ...] = ()
    lead: Date | None = None
    """The only date of the first sentence, in which chat models answer; without a cue it counts as much as the last."""


def find_all(text: str) -> list[Date]:
    """All dates of a text in order; longer forms take precedence over the years inside them."""
    return list(_all(text))


@lru_cache(maxsize=256)
def _all(text: str) -> tuple[Date, ...]:
    # Cached: one answer is read several times while it is graded.
    found: list[Date] = []
    taken = bytearray(len(text))
    for pattern in _PATTERNS:
        for m in pattern.finditer(text):
            if not any(taken[m.start() : m.end()]) and (date := _date(m)) is not None:
                found.append(date)
                taken[m.start() : m.end()] = b"\1" * (m.end() - m.start())
    for m in words.PATTERN.finditer(text):  # "nineteen eighty-nine"
        if m.end() - m.start() <= _SPOKEN and (year := words.value(m[0])) in range(1000, 2100):
            found.append(Date(int(year or 0), start=m.start(), end=m.end()))
    return tuple(sorted(found, key=lambda d: d.start))


def _date(m: re.Match[str]) -> Date | None:
    g = m.groupdict()
    year = int(g["year"]) if g.get("year") else None
    if short := g.get("short"):  # "'69"; of this century up to 2030
        year = int(short) + (2000 if int(short) <= 30 else 1900)
    era = (g.get("era") or "").replace(".", "").upper()
    if year is not None and (era.startswith("B") or "negative" in g):
        year = -year
    month = g.get("month")
    number = None if month is None else int(month) if month.isdigit() else _MONTH_NUMBER[month.lower()]
    day = (words.DAYS.get(g["day"].lower().replace(" ", "-")) or int(g["day"])) if g.get("day") else None
    if "or_years" in g and (number or 0) > (year or 0) % 100:
        return None  # "2005-06" may be two years
    if year == 0 or (number is not None and not 1 <= number <= 12) or (day is not None and not 1 <= day <= 31):
        return None
    sure = bool(number or era or g.get("ad") or len(g.get("year") or "") >= 4)
    either = "month_first" in g and (day or 13) <= 12
    return Date(year, number, day, m.start(), m.end(), sure, either)


def announced(line: str, rest: str = "") -> DateReading:
    """The date of a text after an answer cue: its first one; the others of its sentence are rivals."""
    line = _corrected(_both_days(line[: cues.REACH]))
    for part in _sentences(line):
        dates = _said(part)
        if dates or _COARSE.search(part):
            direct = bool(dates) and not _LED.search(part[: dates[0].start])
            found = _chosen(part, dates, 0)
            return found if not direct else replace(found, rivals=())
    return uncued(rest) if len(rest) > len(line) else DateReading(None, "no-answer")


def uncued(text: str) -> DateReading:
    """The date of a text without a cue: its last one, or a full date where the first sentence has no other."""
    text = text if len(text) <= cues.REACH else text[: cues.REACH // 2] + "\n" + text[-cues.REACH // 2 :]
    text = _corrected(_both_days(text))
    parts = [s for s in _sentences(text) if _said(s) or _COARSE.search(s)]
    if not parts:
        return DateReading(None, "no-answer")
    dates = _said(parts[-1])
    found = _chosen(parts[-1], dates, len(dates) - 1)
    answered = found.date is not None or found.reason == "bound"
    if len(parts) == 1 and answered and len(dates) > 1 and re.fullmatch(r"\W*", parts[0][: dates[0].start]):
        return replace(found, lead=dates[0])  # "31 March 1889, after years of work that began in 1887"
    if len(parts) == 1 or cues.concludes(parts[-1]):
        return found
    first = _said(parts[0])
    lead = first[0] if len(first) == 1 and parts[0] == _sentences(text)[0] else None
    earlier = tuple(d for s in parts[:-1] for d in _said(s))
    if (
        lead
        and found.date
        and re.fullmatch(r"\W*(?:(?:in|on)\s)?\W*", parts[0][: lead.start], re.IGNORECASE)
        and not re.search(r"\w", parts[0][lead.end :])
    ):
        return DateReading(lead, rivals=(found.date, *found.rivals, *earlier))  # "1920. It had been drafted in 1919."
    return replace(found, lead=lead, rivals=(*found.rivals, *earlier))


def _both_days(text: str) -> str:
    for pattern, full in _TWO_DAYS:
        text = pattern.sub(full, text)
    return text


def _corrected(text: str) -> str:
    after = cues.corrected(text)
    return after if _said(after) else text


def _sentences(text: str) -> list[str]:
    """The sentences of a text; a period after a day ("20. Juli") does not end a sentence."""
    return [s for s in _SENTENCE.split(text) if s.strip()]


def _said(sentence: str) -> list[Date]:
    """The dates of a sentence that it does not deny."""
    outside = _ASIDE.sub(lambda m: " " * len(m[0]), sentence)
    sentence = outside if find_all(outside) else sentence
    dates = [d for d in find_all(sentence) if not _NEGATED.search(sentence[max(0, d.start - 60) : d.start])]
    dates = [d for d in dates if d.sure] or dates
    free = [d for d in dates if not _APART.search(sentence[max(0, d.start - 120) : d.start])]
    dates = free or dates
    full = {d.year for d in dates if d.day}
    return [d for d in dates if d.month or d.year not in full]  # the year of a day: "..., at the 1889 fair"


def _chosen(text: str, dates: list[Date], i: int) -> DateReading:
    if not dates:
        return DateReading(None, "imprecise")
    pair = dates[i : i + 2] if i == 0 else dates[i - 1 : i + 1]
    if len(pair) == 2 and compare(pair[0], pair[1]) is None and _HEDGE.match(text[pair[0].end : pair[1].start]):
        night = all(d.day for d in pair) and pair[0].month == pair[1].month  # "the night of 14-15 April"
        others = tuple(d for d in dates if night or d not in pair)
        return DateReading(None, "hedged", others)
    if _BOUND.search(text[max(0, dates[i].start - 30) : dates[i].start]):
        return DateReading(None, "bound", tuple(dates))
    joined = [_HEDGE.match(text[a.end : b.start]) is not None for a, b in itertools.pairwise(dates)]
    free = [d for n, d in enumerate(dates) if n != i and not any(joined[max(0, n - 1) : n + 1])]
    return DateReading(dates[i], rivals=tuple(free))


def parse(text: str) -> Date | None:
    """The date of a gold answer or alias, or None."""
    return announced(text).date


def is_real(text: str) -> bool:
    """Whether a gold answer is a time of day or a date that exists, not "2020-02-30" or the 2020 of "2020-13-45"."""
    found = find_all(text)
    if parse(text) is None or is_clock_time(text):
        return is_clock_time(text)
    said = [d for d in found if d.sure] or found[:1]
    marked = "".join("#" if any(d.start <= i < d.end for d in said) else c for i, c in enumerate(text))
    return all(map(_exists, said)) and not re.search(r"\d[-/.]#|#[-/.]\d", marked)


def _exists(date: Date) -> bool:
    """Whether the month has the day; until 1582 every fourth year was a leap year."""
    year = date.year if date.year is not None and date.year > 1582 else 2000 if (date.year or 0) % 4 == 0 else 2001
    return date.day is None or date.month is None or date.day <= monthrange(year, date.month)[1]


def is_full(text: str) -> bool:
    """Whether a text consists of a date with a month or an era only."""
    found = find_all(text)
    era = len(found) == 1 and (found[0].year or 0) < 0 and any(c.isalpha() for c in text)  # "-4" is a number
    if len(found) != 1 or not (found[0].month or era):
        return False
    beside = text[: found[0].start] + text[found[0].end :]
    return re.sub(r"\b(?:on|in|the|of|about|circa)\b|\W", "", beside, flags=re.IGNORECASE) == ""


def compare(date: Date, gold: Date, tolerance: int = 0) -> str | None:
    """``date`` for a match, ``consistency`` for one within ``tolerance`` years, None otherwise.

    The answer must be at least as precise as the gold date; more precise components are not compared.
    """
    if (gold.month and not date.month) or (gold.day and not date.day):
        return None
    if (gold.month and date.month != gold.month) or (gold.day and date.day != gold.day):
        return None
    if gold.year is None or date.year is None:
        return "date" if gold.year is None else None
    difference = abs(_ordinal(date.year) - _ordinal(gold.year))
    return "date" if difference == 0 else "consistency" if difference <= tolerance else None


def within(text: str, golds: Sequence[Date]) -> bool:
    """Whether all dates of a text are in the year or month that is a gold answer: "from 10 to 12 May 1940"."""
    said = [d for d in find_all(_both_days(text)) if d.sure]
    year = next((d.year for d in said if d.year), None)
    dated = [replace(d, year=d.year or year) for d in said]
    denied = re.search(r"\b(?:not|never|neither)\b|n['\u2019]t\b", text)
    return bool(dated) and not denied and any(g.day is None and all(compare(d, g) for d in dated) for g in golds)


def other_reading(date: Date | None) -> Date | None:
    """The date with day and month exchanged, where it may be meant so."""
    return replace(date, month=date.day, day=date.month) if date and date.either else None


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


_HOURS = {w: n for n, w in enumerate("one two three four five six seven eight nine ten eleven twelve".split(), 1)}
_CLOCK_MINUTES = {"five": 5, "ten": 10, "quarter": 15, "twenty": 20, "twenty-five": 25, "twenty five": 25, "half": 30}
_HOUR = rf"(?P<hour>\d{{1,2}}|{'|'.join(_HOURS)})"
_SPOKEN_TIME = re.compile(
    rf"\b(?:an?\s+)?(?P<minutes>{'|'.join(sorted(_CLOCK_MINUTES, key=len, reverse=True))}|\d{{1,2}}(?=\s+minutes))"
    rf"(?:\s+minutes)?\s+(?P<way>past|after|to|before|till)\s+{_HOUR}\b(?![:.]\d)",
    re.IGNORECASE,
)
_WHOLE = re.compile(rf"\b{_HOUR}\s?(?:o['\u2019]?\s?clock)\b", re.IGNORECASE)
_NOTATIONS = (
    (re.compile(r"(?<![\d:.,])(\d{1,2})\s?h\s?([0-5]\d)(?:\s?min)?\b"), r"\1:\2"),
    (re.compile(r"(?<![\d:.,])([01]?\d|2[0-4])\.([0-5]\d)(?![\d.,]|\s?(?:%|[$€£]))"), r"\1:\2"),
    (re.compile(r"(?<![\d:.,])(\d{1,2})\s?([ap])\.?\s?m\b", re.IGNORECASE), r"\1:00 \2m"),
    (re.compile(r"\b(?:12(?::00)?\s+)?(?:noon|midday)\b", re.IGNORECASE), "12:00 pm"),
    (re.compile(r"\b(?:12(?::00)?\s+)?midnight\b", re.IGNORECASE), "12:00 am"),
)
_PART = re.compile(
    r"(?P<time>\b\d{1,2}:\d\d),?\s+(?:in\s+the\s+(?:(?P<am>(?:early\s+)?morning)|(?:late\s+|early\s+)?(?:afternoon|evening))|at\s+night)\b",
    re.IGNORECASE,
)
_TIME = re.compile(r"(?:at\s+)?(?:[01]?\d|2[0-4]):[0-5]\d(?::[0-5]\d)?(?:\s?[ap]\.?\s?m\.?)?", re.IGNORECASE)
_DIGITAL = re.compile(r"(?<![\d:.])([01]?\d|2[0-4]):([0-5]\d)(?![\d:])")


def is_clock_time(gold: str) -> bool:
    """Whether a gold answer is nothing but a time of day."""
    return _TIME.fullmatch(clock_in_digits(gold).strip().rstrip(".") or gold) is not None


def clock_times(text: str) -> list[int]:
    """The times of day in digits in a text, in minutes since noon or midnight."""
    return [(int(m[1]) % 12) * 60 + int(m[2]) for m in _DIGITAL.finditer(text)]


def clock_in_digits(text: str) -> str:
    """The text with its times of day as digits with a colon."""
    text = _SPOKEN_TIME.sub(_clock_spoken, text)
    text = _WHOLE.sub(lambda m: f"{_hour(m['hour'])}:00", text)
    for pattern, plain in _NOTATIONS:
        text = pattern.sub(plain, text)
    return _PART.sub(_with_half, text)


def _hour(word: str) -> int:
    return int(word) if word.isdigit() else _HOURS[word.lower()]


def _clock_spoken(m: re.Match[str]) -> str:
    said = m["minutes"].lower()
    minutes, hour = int(said) if said.isdigit() else _CLOCK_MINUTES[said], _hour(m["hour"])
    if hour > 24 or minutes > 59:
        return m[0]
    if m["way"].lower() in ("to", "before", "till"):
        minutes, hour = 60 - minutes, (hour - 1) or 12
    return f"{hour}:{minutes:02d}"


def _with_half(m: re.Match[str]) -> str:
    if int(m["time"].partition(":")[0]) > 12:
        return m["time"]
    early = m["am"] or (m[0].endswith("night") and int(m["time"].partition(":")[0]) in (12, 1, 2, 3, 4))
    return f"{m['time']} {'am' if early else 'pm'}"
