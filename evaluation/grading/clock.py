"""Times of day in words and other notations, written as digits: "a quarter to ten in the evening" is 9:45 pm.

    in_digits("at half past nine")  # "at 9:30"

The comparison itself is that of numbers, which reads "9:45 pm" and "21:45", and knows that "9:45" may be either.
"""

from __future__ import annotations

import re

_HOURS = {w: n for n, w in enumerate("one two three four five six seven eight nine ten eleven twelve".split(), 1)}
_MINUTES = {"five": 5, "ten": 10, "quarter": 15, "twenty": 20, "twenty-five": 25, "twenty five": 25, "half": 30}
_HOUR = rf"(?P<hour>\d{{1,2}}|{'|'.join(_HOURS)})"
_SPOKEN = re.compile(
    rf"\b(?:an?\s+)?(?P<minutes>{'|'.join(sorted(_MINUTES, key=len, reverse=True))}|\d{{1,2}}(?=\s+minutes))"
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


def is_time(gold: str) -> bool:
    """Whether a gold answer is nothing but a time of day."""
    return _TIME.fullmatch(in_digits(gold).strip().rstrip(".") or gold) is not None


def in_digits(text: str) -> str:
    """The text with its times of day as digits with a colon."""
    text = _SPOKEN.sub(_spoken, text)
    text = _WHOLE.sub(lambda m: f"{_hour(m['hour'])}:00", text)
    for pattern, plain in _NOTATIONS:
        text = pattern.sub(plain, text)
    return _PART.sub(_with_half, text)


def _hour(word: str) -> int:
    return int(word) if word.isdigit() else _HOURS[word.lower()]


def _spoken(m: re.Match[str]) -> str:
    said = m["minutes"].lower()
    minutes, hour = int(said) if said.isdigit() else _MINUTES[said], _hour(m["hour"])
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
