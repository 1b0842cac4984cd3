"""Whether a repeating decimal or a fraction rounds to a gold answer that was rounded: 33.33 for "33.333..." and 100/3.

    rounds_to(numbers.parse("100/3"), numbers.parse("33.33"))  # True

Any other difference in the last decimals counts: 3.14159 is not 3.14, and 33.3 is not 33.33. Nor is 1/3 0.33, because
rounding changes a number below one by too much.
"""

import re
from fractions import Fraction

from .numbers import Number

_REPEATED = re.compile(r"\.\d*?(\d)\1{2,}(\d?)\Z")
"""The same digit three times or more at the end, and perhaps the same one rounded."""
_ROUNDED = range(2, 9)
"""Decimals of a gold answer that may have been rounded."""
_SHOWN = 12
"""Decimals in which a digit repeats."""


def rounds_to(said: Number, gold: Number) -> bool:
    """Whether a number with endless decimals rounds to a gold answer, in its decimals and its unit."""
    unit = gold.asked or gold
    if abs(gold.value) < 1 or (said.dimension and said.dimension != unit.dimension):
        return False
    value, right = (n.value * 100 if n.percent else n.value for n in (said, gold))
    value = value * said.factor / unit.factor if said.dimension else value
    digits = next((n for n in _ROUNDED if (right * 10**n).denominator == 1), 0)
    least = bool(digits) and (right * 10).denominator != 1
    return least and (value * 10**digits).denominator != 1 and _repeats(value) and _rounded(value, digits) == right


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
