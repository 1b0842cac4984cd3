"""Words of numbers: English numerals ("minus forty-two", "three and a half"), units and currencies ("2000 g")."""

import re
from fractions import Fraction

SMALL = {
    word: n
    for n, word in enumerate(
        "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen "
        "seventeen eighteen nineteen".split()
    )
}
TENS = {w: 10 * n for n, w in enumerate("twenty thirty forty fifty sixty seventy eighty ninety".split(), 2)}
_SCALES = {"thousand": 10**3, "million": 10**6, "billion": 10**9, "trillion": 10**12}
_PARTS = {"half": 2, "halves": 2, "third": 3, "thirds": 3, "quarter": 4, "quarters": 4, "fourth": 4, "fourths": 4}
_PARTS |= {"fifth": 5, "fifths": 5, "sixth": 6, "sixths": 6, "eighth": 8, "eighths": 8, "tenth": 10, "tenths": 10}
_FRACTION_ALONE = {"half", "quarter"}
_WORD = "|".join(sorted([*SMALL, *TENS, *_SCALES, *_PARTS, "hundred", "dozen"], key=len, reverse=True))
PATTERN = re.compile(
    rf"\b(?:(?:minus|negative)\s+)?(?:an?\s+)?(?:{_WORD})\b"
    rf"(?:(?:\s+|-|\s+and\s+(?:an?\s+)?|\s+point\s+)(?:{_WORD})\b)*",
    re.IGNORECASE,
)
"""A run of number words, with its sign."""
_AGAIN = re.compile(rf"({PATTERN.pattern})\s\((\d[\d,]*)\)", re.IGNORECASE)
_BELOW_ZERO = re.compile(
    rf"(?:(?<![\w.,-])(?P<digits>\d+(?:\.\d+)?)|(?P<spelled>{PATTERN.pattern}))"
    r"(?P<unit>\s?(?:°\s?[CF]?|deg(?:rees?)?)?(?:\s?(?:C|F|celsius|fahrenheit)\b)?)\s+below\s+(?:zero|freezing)\b"
    r"|(?:零下|負|负|マイナス)\s?(?P<han>\d+(?:\.\d+)?)",
    re.IGNORECASE,
)
_BELOW = re.compile(r"\bbelow\b|[零負负マ]", re.IGNORECASE)
_HALVES = re.compile(
    rf"\b(?P<whole>an?|\d+|{'|'.join(SMALL)})\s+(?P<unit>[a-z]+)\s+and\s+(?:(?:a|one)\s+(?P<part>half|quarter)|(?P<three>three)"
    r"\s+quarters)\b",
    re.IGNORECASE,
)
_HOURS = re.compile(r"(?<![\d.,:\w])(\d{1,3})(?:h([0-5]\d)(?:\s?m(?:in)?)?|\s?h(?:rs?)?,?\s?(\d{1,2})\s?m)\b")


def below_zero(text: str) -> str:
    """Degrees below zero with a sign: "8 °C below zero" as "-8 °C"."""
    # looked for first: a run of number words would be read again from each of its words
    return _BELOW_ZERO.sub(_signed, text) if _BELOW.search(text) else text


def _signed(m: re.Match[str]) -> str:
    return f"minus {m['spelled']}{m['unit']}" if m["spelled"] else f"-{m['digits'] or m['han']}{m['unit'] or ''}"


def with_degrees(text: str) -> str:
    """Degrees with one sign, and K beside them as kelvin, not as thousands: "100 °C", "373 kelvin"."""
    text = re.sub(r"(?<=\d)\s?K\b", " kelvin", text) if "°" in text else text
    return re.sub(r"(?:°|\bdeg(?:rees?)?)\s*(C|F)(?:elsius|ahrenheit)?\b", r"°\1", text)


_ERROR = re.compile(
    r"(?<![\w.,])(?P<number>\d[\d.,]*(?:\s?(?P<unit>[^\W\d_]{1,8}|°[CF]?))?)\s*\(?(?:±|\\pm(?![A-Za-z])|\+/[-\u2212\u2013])"
    r"\s*\d+(?:[.,]\d+)?\s?%?(?:\s?(?P=unit)(?!\w))?\)?"
)


def without_error(text: str) -> str:
    """Measured numbers without their errors: "70.0 ± 0.5 kg" as "70.0 kg"."""
    return _ERROR.sub(r"\g<number>", text) if any(mark in text for mark in ("±", "\\pm", "+/")) else text


def once(text: str) -> str:
    """The text without number words that digits in parentheses repeat: "forty-three (43)" as "43"."""
    if "(" not in text:
        return text
    return _AGAIN.sub(lambda m: m[2] if value(m[1]) == int(m[2].replace(",", "")) else m[0], text)


def with_halves(text: str) -> str:
    """Units and a half as decimals: "an hour and a half" as "1.5 hour"; "3h30", "3h 30m" as "3 h 30 min"."""
    text = _HOURS.sub(r"\1 h \2\3 min", text)
    return _HALVES.sub(_decimals, text) if " and " in text else text


def _decimals(m: re.Match[str]) -> str:
    said = m["whole"].lower()
    whole = int(said) if said.isdigit() else SMALL.get(said, 1)
    part = "75" if m["three"] else "5" if m["part"].lower() == "half" else "25"
    counted = said not in ("a", "an")  # "7 cups and a half"
    return f"{whole}.{part} {m['unit']}" if counted or lookup(m["unit"]) else m[0]


_RATIO = re.compile(rf"\b(\d+|{PATTERN.pattern})\s+to\s+(\d+|{PATTERN.pattern})\b", re.IGNORECASE)
_SIMPLIFIED = re.compile(
    r"\d\s?:\s?\d+[^.;\d]*?(?:\b(?:simplif\w+|reduc\w+)\s(?:\w+\s)?to\b|[=\u2192])\s*(?=\D{0,12}\d+\s?:\s?\d)"
)
"""Between a ratio and the same one in lower terms: "18:12, which simplifies to 3:2"."""

_TIME_TAKEN = re.compile(r"\b(\d{1,3})\smin(?:ute)?s?,?\s(?:and\s)?([0-5]?\d)\ssec(?:ond)?s?\b", re.IGNORECASE)


def with_colons(text: str) -> str:
    """Ratios in words as digits with a colon: "2 to 3" and "two to three" as "2:3"; of one simplified the last."""
    text = _TIME_TAKEN.sub(lambda m: f"{m[1]}:{int(m[2]):02d}", text)
    colons = _RATIO.sub(lambda m: ":".join(n if n.isdigit() else str(value(n)) for n in m.groups()), text)
    return _SIMPLIFIED.split(colons)[-1]


_SPAN = re.compile(
    r"\b(?:(?:from|between)\s)?([12]\d{3})\s?(?:[-\u2013\u2014]|\b(?:to|until|till|through|and)\b)\s?([12]\d{3})\b"
    r"|\b(?:from\s)?(\d{1,3})\s?(?:[-\u2013\u2014]|\b(?:to|until|till|through)\b)\s?(?:[a-z]+\s)?(\d{1,3})\b",
    re.IGNORECASE,
)
_SHORT_SPAN = re.compile(r"\b([12]\d)(\d\d)\s?[-\u2013/]\s?(\d\d)\b(?![-/]\d)")
_DAY_OF_YEAR = re.compile(
    r"\b(?:\d{1,2}(?:st|nd|rd|th)?\s(?:of\s)?)?(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*\.?\s"
    r"(?:\d{1,2}(?:st|nd|rd|th)?,?\s)?(?=[12]\d{3}\b)",
    re.IGNORECASE,
)


def with_dashes(text: str) -> str:
    """Spans of years or small numbers in one form: "from 1 May 1939 to June 1945" or "1939-45" as "1939-1945"."""
    text = _SHORT_SPAN.sub(lambda m: f"{m[1]}{m[2]}-{m[1]}{m[3]}" if m[3] > m[2] else m[0], _DAY_OF_YEAR.sub("", text))
    return _SPAN.sub(lambda m: "-".join(n for n in m.groups() if n), text)


def spans(text: str) -> set[str]:
    """The spans in a text, as ``with_dashes`` writes them."""
    return {"-".join(n for n in m.groups() if n) for m in _SPAN.finditer(with_dashes(text))}


def in_digits(text: str) -> str:
    """The text with its whole numbers in digits: "eight legs" as "8 legs"; "one" may be a pronoun."""
    return PATTERN.sub(lambda m: str(n) if (n := value(m[0])) not in (None, 1) and n.denominator == 1 else m[0], text)


_LARGE = {
    10**2: "hundred hundreds",
    10**3: "thousand tausend тысяч тысячи тысяча",
    10**6: "million millions millionen millones milioni milhões milhão mio mln млн миллион миллиона миллионов",
    10**9: "billion billions bn milliarde milliarden milliard milliards mrd млрд миллиард миллиарда миллиардов",
    10**12: "trillion trillions",
    10**5: "lakh lakhs",
    10**7: "crore crores",
    12: "dozen",
}
_SCALE_OF = {word: n for n, row in _LARGE.items() for word in row.split()}
SCALE = rf"(?:{'|'.join(sorted(_SCALE_OF, key=len, reverse=True))})\b\.?"
"""Words after digits that multiply them, in the languages that models write."""
_TERM = rf"(?:\d{{1,3}}|{'|'.join([*SMALL, *TENS])})"
_SCALED = rf"(?:hundred|{'|'.join(_SCALES)})"
_MIXED = re.compile(
    rf"(?<![\w.,/:-])\d{{1,3}}\s{_SCALED}(?:\s{_SCALED})?"
    rf"(?:(?:\sand)?(?:[\s-]{_TERM})+(?:\s{_SCALED})+)*(?:\sand(?:[\s-]{_TERM})+|(?:[\s-](?!\d){_TERM})+)?(?![\w/%-]|[.,:]\d)",
    re.IGNORECASE,
)


def without_mixed(text: str) -> str:
    """Numbers in digits and words written out: "1 million 200 thousand" as "1200000", "3 hundred and 50" as "350"."""
    return _MIXED.sub(_in_digits, text)


def _in_digits(m: re.Match[str]) -> str:
    tokens = [t for t in m[0].lower().replace("-", " ").split() if t != "and"]
    value = _integer(tokens) if len(tokens) > 2 else None
    scales = [scale(t) for t in tokens if t in _SCALES]
    return m[0] if value is None or scales != sorted(set(scales), reverse=True) else str(value)


def scale(word: str) -> int:
    """What a word of ``SCALE``, or the letter K or M, multiplies by."""
    letters = {"k": 10**3, "m": 10**6}
    return letters.get(word.lower()) or _SCALE_OF[word.lower().rstrip(".")]


_HAN_DIGITS = {c: n for n, c in enumerate("〇一二三四五六七八九")} | {"零": 0, "两": 2, "兩": 2}
_HAN_TENS = {"十": 10, "百": 100, "千": 1000}
_HAN_LARGE = {"万": 10**4, "萬": 10**4, "億": 10**8, "亿": 10**8}
_HAN_SCALED = re.compile(r"(?<![\d.,])(?:\d[\d,]*(?:\.\d+)?\s?[万萬億亿]\s?)+(?:\d{1,4}(?![\d.,]\d|[万萬億亿]))?")
HAN = re.compile(r"[〇零一二三四五六七八九十百千万萬億亿两兩]+(?![些样様般定起直切番緒共下点旦致分])")
"""A run of Chinese or Japanese numerals that is not the beginning of an ordinary word."""


def without_han_scales(text: str) -> str:
    """Digits before 万 and 億 written out: "100万" as "1000000"."""
    if not any(c in text for c in _HAN_LARGE):
        return text
    return _HAN_SCALED.sub(lambda m: _decimal_han(m[0]), text)


def _decimal_han(text: str) -> str:
    parts = re.findall(r"([\d.,]+)\s?([万萬億亿]?)", text)
    total = sum(Fraction(digits.replace(",", "").rstrip(".")) * _HAN_LARGE.get(large, 1) for digits, large in parts)
    return str(total) if total.denominator == 1 else text


def han(text: str) -> int | None:
    """The value of Chinese or Japanese numerals: 四十二 is 42, 一九四五 is 1945."""
    if len(text) > 1 and all(c in _HAN_DIGITS for c in text):
        return int("".join(str(_HAN_DIGITS[c]) for c in text)) if len(text) < 20 else None
    total = group = digit = 0
    for c in text:
        if c in _HAN_DIGITS:
            digit = _HAN_DIGITS[c]
        elif c in _HAN_TENS:
            group, digit = group + (digit or 1) * _HAN_TENS[c], 0
        else:
            total, group, digit = total + ((group + digit) or 1) * _HAN_LARGE[c], 0, 0
    return total + group + digit


def value(text: str) -> Fraction | None:
    """The value of a run of number words as ``PATTERN`` finds it, or None where it makes no number."""
    tokens = text.lower().replace("-", " ").split()
    sign = -1 if tokens[0] in ("minus", "negative") else 1
    tokens = tokens[1:] if sign < 0 else tokens
    if "point" in tokens:
        return _decimal(tokens, sign)
    # "one and a half" is more than "one half"
    tokens = ["one" if t == "a" and before == "and" else t for before, t in zip(["", *tokens], tokens, strict=False)]
    whole, fraction = _split_fraction([t for t in tokens if t not in ("and", "a", "an")])
    if fraction is None:
        return None
    total = _integer(whole) if whole else 0
    if total is None and not fraction:
        total = _year(whole)
    return None if total is None else sign * (total + fraction)


def _year(tokens: list[str]) -> int | None:
    """A year as it is spoken: "nineteen forty-five"."""
    first, rest = ({**SMALL, **TENS}).get(tokens[0], 0), _integer(tokens[1:])
    return 100 * first + rest if 10 <= first <= 20 and rest is not None and 10 <= rest <= 99 else None


ORDINALS: tuple[str, ...] = (
    *"first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth thirteenth".split(),
    *"fourteenth fifteenth sixteenth seventeenth eighteenth nineteenth twentieth".split(),
)
DAYS = {word: n for n, word in enumerate(ORDINALS, 1)} | {"thirtieth": 30}
DAYS |= {f"{tens}-{word}": n + k for tens, n in TENS.items() for k, word in enumerate(ORDINALS[:9], 1) if n + k < 32}
"""Days of a month in words."""
_ORDINAL = re.compile(rf"(?<![\w-])(?:{'|'.join(ORDINALS)})\b(?![,\w-]|\s+of\b)", re.IGNORECASE)
_ORDINAL_WORDS = 12
"""Words of a text in which an ordinal can be the answer."""


def ordinal(text: str) -> int | None:
    """The place that a short text names in words: "in third place" is 3; None for a fraction ("a third")."""
    found = list(_ORDINAL.finditer(text))
    if len(found) != 1 or len(text.split()) > _ORDINAL_WORDS:
        return None
    before = re.findall(r"[a-z]+", text[: found[0].start()].lower())
    counted = bool(before) and before[-1] in ("a", "an", "per", "each", "every", *SMALL, *TENS)
    return None if counted else ORDINALS.index(found[0][0].lower()) + 1


def _decimal(tokens: list[str], sign: int) -> Fraction | None:
    at = tokens.index("point")
    whole = _integer([t for t in tokens[:at] if t != "and"])
    digits = [SMALL.get(t) for t in tokens[at + 1 :]]
    if whole is None or not digits or any(d is None or d > 9 for d in digits):
        return None
    return sign * (whole + Fraction(int("".join(map(str, digits))), 10 ** len(digits)))


def _split_fraction(tokens: list[str]) -> tuple[list[str], Fraction | None]:
    """(tokens of the whole part, fractional part); the fraction is None where the words make no number."""
    if not tokens or tokens[-1] not in _PARTS:
        return tokens, Fraction(0)
    denominator, rest = _PARTS[tokens[-1]], tokens[:-1]
    if tokens[-1].endswith("s"):
        if not rest or rest[-1] not in SMALL:
            return tokens, None
        return rest[:-1], Fraction(SMALL[rest[-1]], denominator)
    if rest and rest[-1] == "one":
        return rest[:-1], Fraction(1, denominator)
    # "three and a half" is a number, "the third" is not
    return rest, Fraction(1, denominator) if tokens[-1] in _FRACTION_ALONE else None


def _integer(tokens: list[str]) -> int | None:
    total, current, seen = 0, 0, False
    for token in tokens:
        if token.isdigit():
            if current % 100 or (len(token) > 2 and current):
                return None
            current += int(token)
        elif token in SMALL:
            tens = current % 100 >= 20 and current % 10 == 0 and SMALL[token] < 10
            if seen and current % 100 and not tens:
                return None  # "four nine" is two numbers, not one
            current += SMALL[token]
        elif token in TENS:
            if current % 100:
                return None
            current += TENS[token]
        elif token == "hundred":
            current = (current or 1) * 100
        elif token == "dozen":
            current = (current or 1) * 12
        elif token not in _SCALES:
            return None  # "a quarter quarter" makes no number
        else:
            total, current = total + (current or 1) * _SCALES[token], 0
        seen = True
    return total + current if seen else None


_TABLE: dict[str, list[tuple[str, str]]] = {
    "length": [
        ("1/1000000000", "nm nanometer nanometers nanometre nanometres"),
        ("1/1000000", "\u00b5m \u03bcm micrometer micrometers micrometre micrometres"),
        ("1/1000", "mm millimeter millimeters millimetre millimetres"),
        ("1/100", "cm centimeter centimeters centimetre centimetres"),
        ("1", "m meter meters metre metres"),
        ("1000", "km kilometer kilometers kilometre kilometres kmh kph"),
        ("0.0254", "inch inches"),
        ("0.3048", "ft foot feet"),
        ("0.9144", "yd yard yards"),
        ("1609.344", "mile miles mi mph"),
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
    "volume": [
        ("1/1000", "ml milliliter milliliters millilitre millilitres"),
        ("1", "l liter liters litre litres"),
        ("0.473176473", "pint pints"),
        ("3.785411784", "gal gallon gallons"),
    ],
    "dollar": [("1/100", "cent cents ¢"), ("1", "$ dollar dollars usd")],
    "euro": [("1", "€ euro euros eur")],
    "sterling": [("1/100", "penny pence p"), ("1", "£ gbp")],
    "yen": [("1", "¥ yen jpy")],
    "angle": [("1", "° degree degrees")],
    "celsius": [("1", "°c celsius")],
    "fahrenheit": [("1", "°f fahrenheit")],
    "kelvin": [("1", "k kelvin kelvins")],
    "voltage": [("1/1000", "mv millivolt millivolts"), ("1", "v volt volts"), ("1000", "kv kilovolt kilovolts")],
    "current": [("1/1000", "ma milliampere milliamperes milliamp milliamps"), ("1", "amp amps ampere amperes")],
    "frequency": [("1", "hz hertz"), ("1000", "khz kilohertz"), ("1000000", "mhz megahertz")],
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
RIVALS = ({"celsius", "fahrenheit", "kelvin"}, {"dollar", "euro", "sterling", "yen"})
"""Dimensions of which one is not another one: 15 dollars are not 15 euros."""


NONE_LEFT = re.compile(
    r"\b(?:no|zero|not\s+any|n't\s+any)\s+(?:[^\W\d]+\s+){0,4}?(?:left|remain(?:s|ing)?|over|anymore|at\s+all)\b"
    r"|^\W*(?:there\s+(?:is|are|were|will\s+be)\s+)?(?:none|nothing|no\s*body|no\s+one|no\s+(?!number|idea|answer|info|solution|result|value|clue)[^\W\d]+)\b(?:\s+(?:left|of\s+them))?\W*$"
    r"|\bnone\s+of\b|\b(?:none|nothing)\s+(?:(?:(?:is|are|was|were|will\s+be)\s+)?left|remain(?:s|ed)?|at\s+all)\b",
    re.IGNORECASE,
)
"""Zero in words: "none", "no apples left"."""


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


_PER = re.compile(r"\s?(?:/\s?|per\s|an?\s)([a-z]+)", re.IGNORECASE)


def per(text: str, unit: str) -> Fraction | None:
    """The seconds that a length is divided by, by the unit of a speed and what follows it: "km" and "/h", or "mph"."""
    after = _PER.match(text)
    time = (
        UNITS.get(after[1].lower()) if after else ("time", Fraction(3600)) if unit.lower()[1:] in ("ph", "mh") else None
    )
    return time[1] if time and time[0] == "time" else None
