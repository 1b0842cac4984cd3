"""Units and currencies that an answer may carry: 2000 g equals 2 kg, 2 g does not."""

from __future__ import annotations

from fractions import Fraction

_TABLE: dict[str, list[tuple[str, str]]] = {
    "length": [
        ("1/1000", "mm millimeter millimeters millimetre millimetres"),
        ("1/100", "cm centimeter centimeters centimetre centimetres"),
        ("1", "m meter meters metre metres"),
        ("1000", "km kilometer kilometers kilometre kilometres"),
        ("0.0254", "inch inches"),
        ("0.3048", "ft foot feet"),
        ("0.9144", "yd yard yards"),
        ("1609.344", "mile miles mi"),
    ],
    "mass": [
        ("1/1000", "mg milligram milligrams"),
        ("1", "g gram grams"),
        ("1000", "kg kilogram kilograms kilo kilos"),
        ("1000000", "tonne tonnes"),
        ("28.349523125", "oz ounce ounces"),
        ("453.59237", "lb lbs pound pounds"),
    ],
    "time": [
        ("1", "s sec secs second seconds"),
        ("60", "min mins minute minutes"),
        ("3600", "h hr hrs hour hours"),
        ("86400", "day days"),
        ("604800", "week weeks"),
    ],
    "years": [("1", "month months"), ("12", "year years yr yrs")],
    "volume": [("1/1000", "ml milliliter milliliters millilitre millilitres"), ("1", "l liter liters litre litres")],
    "dollar": [("1/100", "cent cents ¢"), ("1", "$ dollar dollars usd")],
    "euro": [("1", "€ euro euros eur")],
    "sterling": [("1", "£ gbp")],
    "yen": [("1", "¥ yen jpy")],
    "angle": [("1", "° degree degrees")],
    "celsius": [("1", "°c celsius")],
    "fahrenheit": [("1", "°f fahrenheit")],
}

UNITS: dict[str, tuple[str, Fraction]] = {
    word: (dimension, Fraction(factor))
    for dimension, rows in _TABLE.items()
    for factor, words in rows
    for word in words.split()
}
"""Dimension and size in the dimension's base unit, by lower-case word."""

CURRENCY_SIGNS = "$€£¥"
DEGREES = {"angle", "celsius", "fahrenheit"}
"""Dimensions that "degrees" alone may stand for."""


def lookup(word: str) -> tuple[str, Fraction] | None:
    """Dimension and factor of a unit word; squares and cubes of lengths are their own dimensions (``cm^2``)."""
    word = word.lower().rstrip(".")
    base, _, power = word.partition("^")
    found = UNITS.get(base)
    if found is None or not power:
        return found
    if found[0] != "length" or power not in ("2", "3"):
        return None
    return f"length^{power}", found[1] ** int(power)
