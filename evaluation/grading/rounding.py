"""Whether a repeating decimal or a fraction rounds to a gold answer that was rounded: 33.33 for "33.333..." and 100/3.

    rounds_to(numbers.parse("100/3"), numbers.parse("33.33"))  # True

The other way round, 1.67 is right for 5/3. Any other difference in the last decimals counts: 3.14159 is not 3.14, and
33.3 is not 33.33. Nor is 1/3 0.33, because rounding changes a number below one by too much.
"""

import re
from collections.abc import Sequence
from fractions import Fraction

from .numbers import Number

_SAME = re.compile(
    r"^[\s,;(]*(?:(?!(?:and|or|to|but|then)\b)[a-z]+[\s,]+)?(?:i\.?\s?e\.?|that\s+is|or|which\s+is|which\s+equals|meaning|=|\u2248|~)?[\s,]*"
    r"(?:(?:about|approximately|approx\.?|roughly|around|simply|exactly|equal\s+to|\u2248|~|=)\s*)*[$€£]?$",
    re.IGNORECASE,
)
"""Text between a number and the same number in another form: "7/12, i.e. about 0.58"."""
_REPEATED = re.compile(r"\.\d*?(\d)\1{2,}(\d?)\Z")
"""The same digit three times or more at the end, and perhaps the same one rounded."""
_ROUNDED = range(2, 9)
"""Decimals of a gold answer that may have been rounded."""
_SHOWN = 12
"""Decimals in which a digit repeats."""


def rounded(said: Number, gold: Number) -> bool:
    """Whether one of two numbers is the other one rounded, and the other one has endless decimals."""
    return rounds_to(said, gold) or rounds_to(gold, said)


def rounds_to(said: Number, gold: Number) -> bool:
    """Whether a number with endless decimals rounds to a gold answer, in its decimals and its unit."""
    unit = gold.asked or gold
    if abs(gold.value) < 1 or (said.dimension and said.dimension != unit.dimension):
        return False
    value, right = (n.value * 100 if n.percent else n.value for n in (said, gold))
    value = value * said.factor / unit.factor if said.dimension else value
    digits = next((n for n in _ROUNDED if (right * 10**n).denominator == 1), 0)
    least = bool(digits) and (right * 10).denominator != 1
    return least and (value * 10**digits).denominator != 1 and _repeats(value) and _to_digits(value, digits) == right


def nearly(said: Number, gold: Number) -> bool:
    """Whether a number is a gold one below 1 with endless decimals, rounded to two digits or more: 0.333 for 1/3."""
    if said.word or not 0 < abs(gold.value) < 1 or (gold.value * 10**_SHOWN).denominator == 1:
        return False
    digits = next((n for n in _ROUNDED if (said.value * 10**n).denominator == 1), 0)
    return bool(digits) and _to_digits(gold.value, digits) == said.value


def _repeats(value: Fraction) -> bool:
    if (value * 10**_SHOWN).denominator != 1:
        return True
    text = f"{float(abs(value)):.{_SHOWN}f}".rstrip("0")
    found = _REPEATED.search(text)
    return found is not None and found[2] in ("", str(int(found[1]) + (found[1] > "4")))


def _to_digits(value: Fraction, digits: int) -> Fraction:
    """Half away from zero, as people round."""
    scaled = abs(value) * 10**digits + Fraction(1, 2)
    return Fraction(scaled.numerator // scaled.denominator, 10**digits) * (-1 if value < 0 else 1)


def restated(sentence: str, number: Number, chosen: Sequence[Number]) -> tuple[Number, ...]:
    """The next number where it is the same one rounded: "7/12, i.e. about 0.58"."""
    later = [n for n in chosen if n.start >= number.end]
    if not later or not _SAME.match(sentence[number.end : later[0].start]):
        return ()
    gap = abs(later[0].value - number.value)
    decimals = re.search(r"(?<=\.)\d+\Z", sentence[later[0].start : later[0].end].strip())
    digits = len(decimals[0]) if decimals else 0
    between = sentence[number.end : later[0].start]
    if not digits and gap and "/" in sentence[number.start : number.end] and "=" in between:
        return ()  # "7 / 2 = 3" is computed wrongly
    return (later[0],) if gap < Fraction(1, 10**digits) and gap * 20 <= abs(number.value) else ()
