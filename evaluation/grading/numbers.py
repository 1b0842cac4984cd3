"""Numbers in free text: their values, and whether two are equal.

Signs, thousands, decimals, percent, fractions, scientific notation, LaTeX, units and number words are read exactly
(as fractions). A text without a number gives None, never 0.
"""

import re
import unicodedata
from dataclasses import dataclass, replace
from decimal import Context, Decimal, Inexact, localcontext
from fractions import Fraction
from functools import lru_cache

from . import words

TOLERANCE = Fraction(1, 10**6)
"""Relative difference up to which two numbers are equal (long decimals of the same fraction)."""


@dataclass(frozen=True)
class UnitAsked:
    """The unit that a question asks for."""

    dimension: str
    factor: Fraction
    per: Fraction | None = None


@dataclass(frozen=True)
class Number:
    """A number as a text writes it."""

    value: Fraction
    start: int
    end: int
    dimension: str | None = None
    """Dimension of its unit (``mass``, ``dollar``, ...); None without a known unit."""
    factor: Fraction = Fraction(1)
    """Size of the unit in the dimension's base unit."""
    per: Fraction | None = None
    """Of a speed: the seconds that its length is divided by."""
    percent: bool = False
    word: bool = False
    """True for numbers written as words."""
    ordinal: bool = False
    dozen: bool = False
    power: bool = False
    """True for numbers written with a power of ten, which may leave out the last digits: "6.022e23"."""
    asked: UnitAsked | None = None
    """The unit that the question asks for; only of a gold answer without a unit."""
    repeated: frozenset["Written"] = frozenset()
    """Of a gold answer: the quantities that the question names in another unit."""
    others: tuple[Fraction, ...] = ()
    """Other values that it may be read as: "12.500" as 12500, "3:30" as 3.5."""


Written = tuple[Fraction, str | None, Fraction, bool]
"""A value, its dimension, its unit's size, and whether it counts dozens."""
_SUPERSCRIPTS = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁻", "0123456789-")
_SPACES = re.compile("(?<=\\d)[\u00a0\u202f\u2009'’_](?=\\d{3}(?!\\d))")
_GROUPED = re.compile(r"(?<![\d.,/])\d{1,3}(?:(?: \d{3}){2,5}(?![\d/]|[.,]\d{4})| 0\d\d(?! ?\d|/|[.,]\d))")
"""Digits grouped by plain spaces, twice or more, or once before a zero: "12 250 ml bottles" is not such a number."""
_FOREIGN = [
    (re.compile(r"(?<![\d.,])\d{1,3}(?:\.\d{3}){2,}(?!\d|\.\d)(?:,\d+)?(?!\d)"), "."),
    (re.compile(r"(?<![\d.,])\d{1,3}(?:\.\d{3})+(?=\s?(?:€|EUR\b|[Ee]uro))"), "."),
    (re.compile(r"(?<![\d.,])\d{1,3}(?:\.\d{3})+,\d{1,2}(?![\d,.]\d|\d)"), "."),
    (re.compile(r"(?<![\d.,/])\d{1,3}(?: \d{3})+,\d{1,2}(?![\d,.]\d|\d)"), " "),
    (re.compile(r"(?<![\d.,/])\d{1,3}(?: \d{3})+(?=\s?(?:[$€£]|EUR\b|USD\b))|\A\s*[1-9]\d{0,2} \d{3}\W*\Z"), " "),
    (re.compile(r"(?<![\d.,])0,\d+(?![\d,])"), "."),
]
"""Digits in groups, or with a decimal comma, where nothing else can be meant: 1.234.567, 1.234,5, 0,125."""
_INDIAN = re.compile(r"(?<![\d.,])\d{1,2}(?:,\d{2})+,\d{3}(?![\d,])")
_EMPHASIS = re.compile(r"(?<!\w)__?([^_\s][^_\n]{0,80})__?(?!\w)")
_LATEX = [
    (re.compile(r"~~[^~\n]{0,200}~~"), " "),
    (re.compile(r"\$(?! )([^$\n]*[^$\n ])\$"), r"\1"),
    (re.compile(r"\\(?:boxed|text|mathrm|mathbf|textbf|left|right)(?![A-Za-z])"), ""),
    (re.compile(r"(\d)\s*\\[dt]?frac\s*\{?(\d+)\}?\s*\{?(\d+)\}?"), r"\1 \2/\3"),
    (re.compile(r"\\[dt]?frac\s*\{\s*([-+]?\d+)\s*\}\s*\{\s*(\d+)\s*\}"), r"\1/\2"),
    (re.compile(r"\\[dt]?frac\s*(\d)\s*(\d)"), r"\1/\2"),
    *((re.compile(rf"\\(?:{n})(?![A-Za-z])"), s) for n, s in (("times|cdot", "×"), ("div", "÷"), ("approx", "≈"))),
    (re.compile(r"<sup>\s*([-+]?\d+)\s*</sup>", re.IGNORECASE), r"^\1"),
    (re.compile(r"(?<=\b10)\*\*(?=-?\d)"), "^"),
    (re.compile(r"\\overline\s*\{?(\d)\}?"), r"\1" * 9),
    (re.compile(r"\^\s*\{?\s*\\circ\s*\}?"), "°"),
    (re.compile(r"\{,\}"), ","),
    (re.compile(r"\\([%$€£])"), r"\1"),
    (re.compile(r"\\[,;:! ]|~"), " "),
    (re.compile(r"\^\s*\{\s*([-+]?\d+)\s*\}"), r"^\1"),
    (re.compile(r"[{}]|\\[\[\]()]|\*\*"), " "),
]


@lru_cache(maxsize=512)
def normalized(text: str) -> str:
    """The text with LaTeX, Unicode digits, fractions, minus signs and digit group marks written plainly."""
    text = re.sub(r"([⁻]?[⁰¹²³⁴⁵⁶⁷⁸⁹]+)", lambda m: "^" + m[1].translate(_SUPERSCRIPTS), text)
    text = _TOO_LONG.sub("\u2026", text)
    text = _SPACES.sub("", text)
    text = re.sub(r"(?<=\d)(?=[¼-¾⅐-⅞])", " ", text)
    text = re.sub(r"(?<=\d)\s+and\s+(?:a|one)\s+(half|quarter)\b", lambda m: " 1/2" if m[1] == "half" else " 1/4", text)
    text = unicodedata.normalize("NFKC", text).replace("\u2044", "/").replace("\u2212", "-")
    for pattern, plain in _LATEX:
        text = pattern.sub(plain, text)
    text = _GROUPED.sub(lambda m: m[0].replace(" ", ""), _EMPHASIS.sub(r"\1", text))
    text = re.sub(r"(?<=\d)(?:,?[ ]000)+(?!\d)", lambda m: m[0].replace(" ", "").replace(",", ""), text)
    text = words.without_mixed(words.without_han_scales(text))
    text = words.with_halves(words.below_zero(words.once(words.without_error(text))))
    for pattern, mark in _FOREIGN:
        text = pattern.sub(lambda m, mark=mark: m[0].replace(mark, "").replace(",", "."), text)
    text = _INDIAN.sub(lambda m: m[0].replace(",", ""), text)
    return re.sub(r"(?<=\d)[ \t]*x[ \t]*(?=\d)", " × ", words.with_degrees(text))


_PLAIN = r"\d{1,3}(?:,\d{3})+(?:\.\d+)?(?!\d)|\d+\.\d+|\.\d+|\d+"
_NUMBER = re.compile(
    rf"""(?<![A-Za-z_^\d.])(?P<sign>[-+–]\s?)?(?P<currency>[{re.escape(words.CURRENCY_SIGNS)}]\s?(?P<inner>[-+–])?)?
    (?: (?P<clock>\d{{1,3}}:\d{{1,2}}(?::\d{{2}})?(?![\d:])(?:\s?(?P<half>[apAP])\.?[mM]\b\.?)?)
      | (?P<mixed>\d+)\s+(?P<top>\d+)/(?P<bottom>\d+)(?![\d/])
      | (?P<over>{_PLAIN})\s?/\s?(?P<under>{_PLAIN})(?![\d/])
      | (?P<base>\d+)\s?\^\s?(?P<power>-?\d+)
      | (?P<comma>\d+,\d{{1,2}})(?![\d,])
      | (?P<plain>{_PLAIN})
        (?: [eE](?P<exponent>[-+]?\d+)(?!\w) | \s*[x×*·]\s*10\s*\^\s*\(?(?P<ten>[-+]?\d+)\)? )?
    )
    (?:\s?(?P<scale>k\b|(?i:{words.SCALE}))|(?P<letter>[KM])\b(?!/))?
    (?:(?P<ordinal>st|nd|rd|th)\b)?
    (?P<percent>\s?%|\s+per\s?cent\b)?
    (?:\s?(?P<unit>[A-Za-z°¢€£$]+(?:\s?\^\s?[23])?))?""",
    re.VERBOSE,
)
_LONGEST = 400
"""Most characters of one number; longer runs of digits or number words are not answers."""
_TOO_LONG = re.compile(rf"\d{{{_LONGEST},}}")
_DECIMALS = 5000  # digits that any decimal number of a text can have
_NEAR = 60
"""Characters around a number that can negate it or join it to the next."""
_OPERATOR = r"(?:[-+–×x*·÷/^]|times|plus|minus|multiplied\s+by|divided\s+by|added\s+to|less|over)"
_OPERATION = re.compile(rf"^\s*(?:[^\W\d]+\s+){{0,3}}?{_OPERATOR}\s*[({re.escape(words.CURRENCY_SIGNS)}]*\s*$", re.I)
_NEGATED = re.compile(
    r"(?:\bnot|n't|\bnever|\brather than|\binstead of)\s+(?:be\s+|equal\s+to\s+|exactly\s+)?[$€£]?$", re.I
)
_DENYING = ("not", "n't", "never", "rather", "instead")
_MINUS = re.compile(
    r"(?<![\w)\]%])(?:^|[^\w)\]%\s]\s*|\b(?:is|to|of|be|was|equals|by|a|at|about|now|around|exactly|reaches|becomes"
    r"|ist|sind|wird|beträgt|auf|est|fait|de|es|son|é|è|sono|são)\s+)(?P<sign>(?:minus|negative|moins|menos|meno)\s+)$"
    r"|(?<!\w)(?P<always>negative\s+)$",
    re.I,
)
"""The word for the sign where it does not separate two operands."""
_LABEL = re.compile(
    r"\b(?:step|equation|method|case|part|option|figure|line|question|fact|answer|example|chapter|table)\s*#?$", re.I
)
_HEAD = re.compile(r"^\W*(?:step|part|case|question)\s*#?\d+(?=\W*:\W*[^\W\d])", re.I | re.M)  # "Step 4: Calculate"
_GROUP = re.compile(r"(?<![\d.,/])\d{1,3}(?= \Z)")  # digits before three others that may be one number: "1 275"
_AND_CENTS = re.compile(r"\s*(?:dollars?|euros?|pounds?)\s+", re.I)  # before its cents: "37 euros 50"
_MONEY = frozenset({"dollar", "euro", "sterling"})
_COMPOUND = re.compile(r"^\s*(?:,|and|,\s*and)?\s*$", re.I)


@lru_cache(maxsize=256)
def find_all(text: str) -> tuple[Number, ...]:
    """All numbers of a ``normalized`` text in order; numbers as words only where they stand outside digits."""
    found = [n for m in _NUMBER.finditer(text) if (n := _number(m, text)) is not None]
    taken = bytearray(len(text))
    for n in found:
        taken[n.start : n.end] = b"\1" * (n.end - n.start)
    spelled = [(m, words.value) for m in words.PATTERN.finditer(text)]
    spelled += [(m, words.han) for m in words.HAN.finditer(text)] if not text.isascii() else []
    for m, value_of in spelled:
        value = value_of(m[0]) if m.end() - m.start() <= _LONGEST else None
        if value is not None and not any(taken[m.start() : m.end()]):
            number = Number(Fraction(value), m.start(), m.end(), word=True, dozen=m[0].lower().endswith("dozen"))
            unit = re.match(r"\s?(?:(?:of\s)?an?\s)?(%|per\s?cent\b|[A-Za-z]+)", text[m.end() :])
            found.append(_with_unit(number, unit[1] if unit else None))
    return tuple(sorted(found, key=lambda n: n.start))


def _number(m: re.Match[str], text: str) -> Number | None:
    if m.end() - m.start() > _LONGEST:
        return None
    g = m.groupdict()
    start, sign = m.start(), 1
    if g["sign"]:
        before = text[max(0, m.start() - _NEAR) : m.start()].rstrip()
        # "12 - 5" and "5–7": the dash separates two numbers
        binary = (bool(before) and (before[-1].isdigit() or before[-1] in ")%")) or (
            g["sign"][-1:].isspace() and not before.endswith(("=", "(", " is", " equals"))
        )
        if binary:
            start += len(g["sign"])
        elif g["sign"][0] in "-–":
            sign = -1
    elif text[max(0, start - 2) : start].strip().isalpha() and (
        word := _MINUS.search(text[max(0, start - _NEAR) : start])
    ):
        start, sign = start - len(word["sign"] or word["always"]), -1
    if g["inner"] and g["inner"] != "+":
        sign = -sign
    if g["clock"]:
        return _clock(g["clock"], g["half"], start, m.start("unit") if g["unit"] else m.end(), g["unit"])
    value = _value(g)
    if value is None:
        return None
    if scale := g["scale"] or g["letter"]:
        value *= words.scale(scale)
    dozen = bool(scale and scale.lower().startswith("dozen"))
    end = m.start("unit") if g["unit"] else m.end()
    grouped = re.fullmatch(r"\d{1,3}\.\d{3}", g["plain"] or "")
    others = (sign * value * 1000,) if grouped else ()
    if re.fullmatch(r"\d{3}", g["plain"] or "") and (group := _GROUP.search(text[max(0, start - 4) : start])):
        others = (sign * (value + 1000 * int(group[0])),)
    per = words.per(text[m.end() : m.end() + _NEAR], g["unit"]) if g["unit"] else None
    power, ordinal = bool(g["exponent"] or g["ten"]), bool(g["ordinal"])
    number = Number(sign * value, start, end, per=per, ordinal=ordinal, dozen=dozen, power=power, others=others)
    return _with_unit(number, "%" if g["percent"] else (g["currency"] or "")[:1] or g["unit"])


def _clock(text: str, half: str | None, start: int, end: int, unit: str | None) -> Number | None:
    """A time of day, a duration or a ratio: "3:30" is 3.5 hours, not a bare 3."""
    first, second, *_ = (int(part) for part in re.findall(r"\d+", text))
    if len(re.findall(r"\d+", text)) == 2 and (second > 59 or not re.search(r":\d\d", text)):
        ratio = Fraction(first, second) if second else None
        others = (Fraction(first), Fraction(second))
        return None if ratio is None else Number(ratio, start, end, "ratio", others=others)
    hours = first % 12 + 12 * (half.lower() == "p") if half and first <= 12 else first
    minutes = second + Fraction(int(text.split(":")[2][:2]), 60) if text.count(":") == 2 else Fraction(second)
    value = hours + minutes / 60
    if unit and (found := words.lookup(unit)) and found[0] == "time":
        return Number(value, start, end, "time", Fraction(3600))
    half_day = (value + 12, value - 12) if 0 < first <= 12 else ()
    others = (*half_day, Fraction(first), Fraction(second), first + minutes / 60)
    return Number(value, start, end, "clock", others=() if half else others)


def _value(g: dict[str, str | None]) -> Fraction | None:
    def plain(text: str | None) -> Fraction:
        if text and text.isdecimal() and text.isascii():
            return Fraction(int(text))  # much faster than reading a decimal
        return Fraction((text or "0").replace(",", "") or "0")

    if g["mixed"]:
        bottom = plain(g["bottom"])
        return plain(g["mixed"]) + plain(g["top"]) / bottom if bottom else None
    if g["over"]:
        under = plain(g["under"])
        return plain(g["over"]) / under if under else None
    if g["base"]:
        power, small = int(g["power"] or 0), len(g["base"]) < 10 and g["base"] != "0"
        return Fraction(int(g["base"])) ** power if small and abs(power) <= 64 else None
    if g["comma"]:
        return Fraction(g["comma"].replace(",", "."))
    exponent = int(g["exponent"] or g["ten"] or 0)
    return plain(g["plain"]) * Fraction(10) ** exponent if abs(exponent) <= _LONGEST else None


def _with_unit(number: Number, unit: str | None) -> Number:
    if unit is None:
        return number
    if unit == "%" or re.fullmatch(r"per\s?cent", unit):
        return replace(number, value=number.value / 100, percent=True)
    found = words.lookup(unit.replace(" ", ""))
    return number if found is None else replace(number, dimension=found[0], factor=found[1])


def negated(text: str, number: Number) -> bool:
    """Whether a text denies a number ("not 12")."""
    before = text[max(0, number.start - _NEAR) : number.start]
    return any(word in before.lower() for word in _DENYING) and _NEGATED.search(before) is not None


def computes(text: str) -> bool:
    """Whether a text holds an operation on numbers ("12 times 2")."""
    return bool(_operands(text))


def _operands(text: str) -> set[int]:
    """Which numbers of a text are operands, by their place among all."""
    numbers = find_all(text)
    found: set[int] = set()
    for i in range(len(numbers) - 1):
        gap = text[numbers[i].end : numbers[i + 1].start]
        if len(gap) <= _NEAR and _OPERATION.match(gap):
            found |= {i, i + 1}
    return found


def candidates(text: str) -> list[Number]:
    """Numbers that can be an answer: no operands, no negated numbers, digits before words, 2 h 30 min as one.

    Ordinals ("the 4th") and what only counts ("Step 2", "Q1") are left out where other numbers stand; heads always.
    """
    text = _HEAD.sub(lambda m: " " * len(m[0]), text)
    numbers, operands = find_all(text), _operands(text)
    free = [n for i, n in enumerate(numbers) if i not in operands and not negated(text, n)]
    free = [n for n in free if not n.word] or free
    free = [n for n in free if not _labels(text[max(0, n.start - 20) : n.start], n.ordinal)] or free
    merged: list[Number] = []
    for n in free:
        last = _in(merged[-1], n.dimension) if merged else None
        n = _in(n, last.dimension) if last else n
        if last and last.dimension and n.dimension == last.dimension and n.factor < last.factor:
            gap = re.sub(r"^\s*[^\W\d]+\.?", "", text[last.end : n.start])
            if _COMPOUND.match(gap):
                total = last.value + n.value * n.factor / last.factor
                merged[-1] = replace(last, value=total, end=n.end)
                continue
        if last and last.dimension in _MONEY and n.dimension is None and n.value in range(1, 100):
            if _AND_CENTS.fullmatch(text[last.end : n.start]) and not text[n.end :].strip(" .!*"):
                merged[-1] = replace(last, value=last.value + n.value / 100, end=n.end)
                continue
        merged.append(n)
    return merged


def _labels(before: str, ordinal: bool) -> bool:
    """Whether a number after this text only counts ("Step 2", "the 4th"); a result does not."""
    last = before.rstrip()[-1:]
    return (ordinal and last != "=") or ((last.isalpha() or last == "#") and _LABEL.search(before) is not None)


def parse(text: str) -> Number | None:
    """The number of a gold answer or alias, which is nothing but a number (with its unit), or None."""
    plain = normalized(text)
    if plain.strip(" .!").lower() in ("none", "nothing"):
        return Number(Fraction(0), 0, len(plain), word=True)
    return next(iter(candidates(plain)), None)


def equal(a: Number, gold: Number) -> bool:
    """Equal in value and, where both carry a known unit, in dimension.

    A percentage equals its decimal, and the bare number where the gold answer is a percentage or has no sign.
    """
    if written(a) in gold.repeated:
        return False  # "3 weeks" only repeats the question "How many days are 3 weeks?"
    plain_degrees = {a.dimension, gold.dimension} & {"angle"} and {a.dimension, gold.dimension} <= words.DEGREES
    a, power = _in(a, gold.asked.dimension if gold.asked else gold.dimension), a.power or gold.power
    if gold.asked and a.dimension == gold.asked.dimension:
        base = a.value * a.factor
        known = {f for _, d, f, _ in gold.repeated if d}  # "9000 seconds" does not repeat "2.5 hours"
        repeats = a.factor in known and any(d and close(base, v * f) for v, d, f, _ in gold.repeated)
        return not repeats and close(base, gold.value * _size(gold.asked, a.per), power=power)
    if a.dimension and gold.dimension and not plain_degrees:
        return a.dimension == gold.dimension and close(a.value * a.factor, gold.value * _size(gold, a.per), power=power)
    if gold.asked and gold.asked.factor == 1 and any({a.dimension, gold.asked.dimension} <= k for k in words.RIVALS):
        return False  # cents may be of a dollar or a euro
    if a.dimension != gold.dimension and {"clock", "ratio"} & {a.dimension, gold.dimension}:
        return False
    hundredfold = (n.value * 100 if n.percent else n.value for n in (a, gold))
    return close(a.value, gold.value, power=power) or (a.percent != gold.percent and close(*hundredfold))


def _size(unit: Number | UnitAsked, per: Fraction | None) -> Fraction:
    return unit.factor * per / unit.per if per and unit.per and unit.dimension == "length" else unit.factor


def written(n: Number) -> Written:
    return n.value, n.dimension, n.factor, n.dozen


def same_quantity(a: Number, b: Number) -> bool:
    """Whether two numbers with known units say the same ("24 hours", "1440 minutes"), or a share and its percentage."""
    known = a.dimension is not None and a.dimension == b.dimension and close(a.value * a.factor, b.value * b.factor)
    return known or (a.percent != b.percent and a.value == b.value)


def may_equal(a: Number, gold: Number) -> bool:
    """Whether another reading of one of the two equals the other ("12.500" and 12500)."""
    return any(close(other, gold.value) for other in a.others) or any(close(a.value, o) for o in gold.others)


_OTHER = {("euro", "dollar", Fraction(1, 100)): Fraction(1, 100), ("sterling", *words.UNITS["pound"]): Fraction(1)}


def _in(n: Number, dimension: str | None) -> Number:
    """A number whose unit has two meanings, in one of them: cents of a euro, pounds that are money."""
    factor = _OTHER.get((dimension, n.dimension, n.factor)) if n.dimension and dimension else None
    return n if factor is None else replace(n, dimension=dimension, factor=factor)


def close(a: Fraction, b: Fraction, *, power: bool = False) -> bool:
    """Equal up to the last of many digits; numbers with up to two decimals and no ``power`` of ten are equal or not."""
    exact = not power and (a * 100).denominator == (b * 100).denominator == 1
    return a == b or (not exact and abs(a - b) <= TOLERANCE * max(abs(a), abs(b)))


def show(number: Number) -> str:
    """The number as it is written into ``graded.jsonl``: an integer, a short decimal or a fraction."""
    value = number.value * 100 if number.percent else number.value
    with localcontext(Context(prec=_DECIMALS, traps=[Inexact])):
        try:
            text = f"{Decimal(value.numerator) / value.denominator:f}"
        except Inexact:
            text = f"{value.numerator}/{value.denominator}"
    return text + ("%" if number.percent else "")
