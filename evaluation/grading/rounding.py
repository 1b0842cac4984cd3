"""Whether a repeating decimal or a fraction rounds to a gold answer that was rounded: 33.33 for "33.333..." and 100/3.

    rounds_to(numbers.parse("100/3"), "33.33")  # True

Any other difference in the last decimals counts: 3.14159 is not 3.14, and 33.3 is not 33.33.
"""

import re
from fractions import Fraction

from . import numbers
from .numbers import Number

_DECIMALS = re.compile(r"\d\.(\d{2,8})(?!\d)")
"""Decimals of a gold answer that may have been rounded."""
_REPEATED = re.compile(r"\.\d*?(\d)\1{2,}(\d?)\Z")
"""The same digit three times or more at the end, and perhaps the same one rounded."""
_NEAR = Fraction(1, 1000)
"""Share of a value by which rounding may change it: 1/3 is not 0.33."""
_SHOWN = 12
"""Decimals in which a digit repeats."""


def rounds_to(said: Number, gold: str) -> bool:
    """Whether a number with endless decimals rounds to a gold answer, in the decimals of the gold answer."""
    found, wanted = _DECIMALS.search(numbers.normalized(gold)), numbers.parse(gold)
    if found is None or wanted is None or (said.dimension and said.dimension != wanted.dimension):
        return False
    value, right = (n.value * 100 if n.percent else n.value for n in (said, wanted))
    digits = len(found[1])
    exact = (value * 10**digits).denominator == 1 or said.factor != wanted.factor
    near = abs(value - right) <= _NEAR * abs(right)
    return near and not exact and _repeats(value) and _rounded(value, digits) == right


def _repeats(value: Fraction) -> bool:
    if (value * 10**_SHOWN).denominator != 1:
        return True
    text = f"{float(abs(value)):.{_SHOWN}f}".rstrip("0")
    found = _REPEATED.search(text)
    return found is not None and found[2] in ("", str(int(found[1]) + (found[1] > "4")))


def _rounded(value: Fraction, digits: int) -> Fraction:
    """Half away from zero, as people round."""
    scaled = abs(value) * 10**digits + Fraction(1, 2)
    return Fraction(scaled.numerator // scaled.denominator, 10**digits) * (-1 if value < 0 else 1)
