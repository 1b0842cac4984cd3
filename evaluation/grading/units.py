"""What a number is a number of: its unit where nobody names it, its total, and the numbers of the question.

Whether one of two numbers is the other one, rounded, also stands here: 33.33 for "33.333..." and 100/3.

    rounds_to(numbers.parse("100/3"), numbers.parse("33.33"))  # True

The other way round, 1.67 is right for 5/3. Any other difference in the last decimals counts: 33.3 is not 33.33. Nor is
1/3 0.33, because rounding changes a number below one by too much. Whether 3.14159 is 3.14, no rule can tell.
"""

import itertools
import re
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

from . import numbers, statements, words
from .numbers import Number, close

_UNIT = re.compile(
    r"\bhow\s+many\s+(?:more\s+)?((?:(?:square|cubic)\s)?[a-z]+)\b"
    r"|\bin\s+(?:degrees\s+)?((?:(?:square|cubic)\s)?[a-z]+)\b(?!\s+(?:of|per)\b)",
    re.IGNORECASE,
)
"""How a question asks for a unit: "How many metres", "in minutes"."""
_RATE = re.compile(r"\bin\s+([a-z]+)(?=(?:\s?/\s?|\sper\s)[a-z])|\bin\s+([km]ph|kmh)\b", re.IGNORECASE)
"""How it asks for the unit of a speed."""
_SCALE = re.compile(
    r"\b(?:in|how\s+many)\s+(?:us[d$]?|eur|gbp|[$€£])?\s?(thousand|million|billion|trillion)s?\b(?!(?<=s)\sare\b)",
    re.IGNORECASE,
)
"""How it asks for a number of thousands or millions: "in USD millions", "How many million people"."""
_PLACES = re.compile(r"\b(one|two|three|four|[1-6])\s+decimals?\b", re.IGNORECASE)
_HOW_MANY = re.compile(r"\bhow\s+many\b", re.IGNORECASE)
_OFFERS = re.compile(r"\b(?:or|than)\b", re.IGNORECASE)
"""How a question names alternatives, or compares."""
_SHARE = re.compile(r"\bis\s+\d[\d.,]*\s?(?:%|per\s?cent)\s+of\s+\d", re.IGNORECASE)
_PAID = re.compile(r"\bhow\s+much\b|\bwhat\s+(?:is|was|will\s+be)\s[^?]{0,30}\b(?:cost|price|total)\b", re.IGNORECASE)
_SIZE = re.compile(
    r"\bhow\s+(?:far|tall|heavy)\b|\bwhat\s(?:is|was)\s[^?]{0,30}\b(?:distance|length|height|width|weight|mass)\b", re.I
)
_AREA = re.compile(r"\bwhat\s(?:is|was)\sthe\s(area|volume)\b", re.IGNORECASE)
_CONVERTED = frozenset({"length", "mass", "time", "years", "volume"})
_PERCENT = re.compile(r"%|per\s?cent|\brates?\b|interest", re.IGNORECASE)
_PERCENT_ASKED = re.compile(r"\b(?:percent(?:age)?|per\scent)\b", re.IGNORECASE)
_DOZENS = re.compile(r"\bhow\s+many\s+(?:more\s+)?dozens?\b", re.IGNORECASE)
_LEAST = re.compile(
    r"\b(?:least|most|fewest|minimum|maximum|minimal|maximal|smallest|largest|greatest)\b", re.IGNORECASE
)
_OUT_OF = re.compile(
    r"\s*(?:[^\W\d]+\s+){0,2}?(?:out\s+)?of\s+(?:(?:all|the|these|those|its|their|his|her|our)\s+){0,2}", re.IGNORECASE
)
"""Between a number and the total that it is a part of: "4 of the 8"."""
_MAKES = re.compile(
    r"\s?(?:°?\s?[a-z]+(?:/[a-z]+)?)?\s?(?:,?\s?(?:which\s(?:is|equals|makes)|or|i\.e\.|that\sis|meaning|so)|=|\u2248|\()[\s,]*"
    r"(?:(?:about|approximately|exactly|equal\sto)\s)?\Z",
    re.IGNORECASE,
)
"""Between a number and the same one in another unit."""
_COMPOUND = re.compile(r"\W*(?:(?:\d[\d.,]*|[a-z]+)\s?[a-z]{1,12}\.?(?:,?\sand\s|,\s|\s)?){2,4}\W*", re.IGNORECASE)
_NO = r"(?:\b(?:no|zero)|(?:\bnot|n't)\s(?:(?:have|contain)\s)?any)"
_CHANCE = re.compile(r"[\s-]*in(?:\s+(?:every\s+)?|-)", re.IGNORECASE)
_MOST_CHANCES = 100
"""\"One in four" is a share, "the 500 in 1999" is not."""


def in_unit(golds: Sequence[Number], question: str | None) -> list[Number]:
    """Gold numbers with what the question says in other units, and bare ones with the unit that it asks for.

    Where it asks for millions, "12 million" is another form of 12.
    """
    question = question or ""
    golds = [*golds, *(replace(g, value=g.value * scale) for g in golds if (scale := _scale(question)) > 1)]
    if "nautical" in question.lower():
        return list(golds)  # "nm" is a nautical mile there, and a mile is another one
    asked = _asked_for(question)
    golds = [replace(g, repeated=_repeated(g, asked, question)) for g in golds]
    if len(asked) != 1:
        return golds
    dimension, factor = next(iter(asked))
    rate = _RATE.search(question)
    per = words.per(question[rate.end() :], rate[1] or rate[2]) if rate else None
    unit = numbers.UnitAsked(dimension, factor, per)
    return [g if g.dimension or g.percent else replace(g, asked=unit) for g in golds]


def _scale(question: str | None) -> int:
    scale = _SCALE.search(question or "")
    return words.scale(scale[1]) if scale else 1


def _asked_for(question: str) -> set[tuple[str, Fraction]]:
    """The units that a question asks for, in its words or by what it measures: "How much does it cost?", "How far"."""
    rate = _RATE.search(question)
    if rate and (speed := words.lookup(rate[1] or rate[2])) and speed[0] == "length":
        return {speed}
    if asked := {u for m in _UNIT.finditer(question) if (u := _unit(m[1] or m[2]))}:
        return asked
    if _PAID.search(question):
        currencies = {words.UNITS[sign] for sign in words.CURRENCY_SIGNS}
        signs = {words.UNITS[sign] for sign in words.CURRENCY_SIGNS if sign in question}
        if asked := signs or {u for u in _named(question) if u in currencies}:
            return asked
    if size := _SIZE.search(question):
        kind = "mass" if size[0].lower().endswith(("heavy", "weight", "mass")) else "length"
        if asked := {u for u in _named(question) if u[0] == kind}:
            return asked
    area = _AREA.search(question)
    power = 3 if area and area[1].lower() == "volume" else 2
    return {(f"length^{power}", f**power) for d, f in _named(question) if d == "length"} if area else set()


def _repeated(gold: Number, asked: set[tuple[str, Fraction]], question: str) -> frozenset[numbers.Written]:
    """The quantities of a question in another unit than the one that it asks for, where it offers no alternatives."""
    plain = numbers.normalized(question)
    if _OFFERS.search(question):
        return frozenset()
    said = {numbers.written(n) for n in (*numbers.find_all(plain), *numbers.candidates(plain))}
    said |= {(Fraction(1), d, f, False) for d, f in _named(question)}
    own = next(iter(asked)) if len(asked) == 1 and gold.dimension is None else (gold.dimension, gold.factor)
    counted = not gold.dozen and gold.dimension is None and _HOW_MANY.search(question)
    return frozenset(
        (v, d, f, dozen)
        for v, d, f, dozen in said
        if (own in asked and d == own[0] and f != own[1]) or (dozen and d is None and counted)
    )


def may_be_in_another_unit(said: Number, gold: Number, question: str | None) -> bool:
    """Whether a number equals a bare gold number in a unit that nobody named ("1 hour 25 minutes" and 85)."""
    if question is None or said.dimension not in _CONVERTED or gold.dimension:
        return False
    if any(d == said.dimension for d, _ in _named(question)):
        return False  # the answer is in a unit of the question, or repeats it
    factors = {factor for dimension, factor in words.UNITS.values() if dimension == said.dimension}
    return any(close(said.value * said.factor / factor, gold.value) for factor in factors)


def converted(text: str, said: Number, golds: Sequence[Number]) -> Number | None:
    """The number in the unit asked for that a text makes of one in another unit.

    "They need 120 minutes, which is 1.2 hours" does not say 2 hours, and "212 °F (100 °C)" says 100 degrees Celsius, as
    "100 °C (212 °F)" does.
    """
    unit = golds[0].asked
    if unit is None or (said.dimension, said.factor) == (unit.dimension, unit.factor):
        return None
    if said.dimension != unit.dimension and not any({said.dimension, unit.dimension} <= k for k in words.RIVALS):
        return None
    for n, later in itertools.pairwise(numbers.find_all(text)):
        if not _MAKES.match(text[n.end : later.start]):
            continue
        for given, made in ((n, later), (later, n)):  # "50 mph, which is 80 km/h", "80 km/h (50 mph)"
            own = made.dimension == unit.dimension and made.factor == unit.factor
            if own and given.value == said.value and given.factor == said.factor:
                return made
    return None


def is_compound(gold: str) -> bool:
    """Whether a gold answer is nothing but one quantity in several units: "2 hours and 15 minutes"."""
    plain = numbers.normalized(gold)
    whole = numbers.candidates(plain) if _COMPOUND.fullmatch(plain) else []
    return len(whole) == 1 and whole[0].dimension is not None and len(numbers.find_all(plain)) > 1


def duration(said: Number, golds: Sequence[Number]) -> bool:
    """Whether hours and minutes with a colon ("1:15") last as long as a gold answer in minutes or hours."""
    clock = said.dimension == "clock"
    timed = [g.value * unit.factor for g in golds if (unit := g.asked or g).dimension == "time"]
    return clock and any(close(said.value * 3600, seconds) for seconds in timed)


def only_in_unit(said: Sequence[Number], golds: Sequence[Number], question: str | None) -> bool:
    """Whether of several numbers only the right one has a unit of the kind that is asked for, or is a percentage."""
    unit = golds[0].asked
    shares = [n for n in said if n.percent] if _PERCENT_ASKED.search(question or "") else []
    own = shares or [n for n in said if unit and n.dimension == unit.dimension and all(n.dimension for n in said)]
    return len(own) == 1 and any(numbers.equal(own[0], g) for g in golds)


def another_in_unit(said: Sequence[Number], golds: Sequence[Number], question: str | None) -> bool:
    """Whether one of several numbers has the unit that is asked for, is not in the question, and is not the right one.

    "She sells 18 eggs and makes $36." does not say that she makes 18 dollars.
    """
    unit, known = golds[0].asked, {n.value for n in numbers.find_all(numbers.normalized(question or ""))}
    own = [n for n in said if unit and n.dimension == unit.dimension]
    return len(own) == 1 and own[0].value not in known and not any(numbers.equal(own[0], g) for g in golds)


def may_be_a_share(said: Number, gold: Number, question: str | None) -> bool:
    """Whether a share is the percentage that a question asks for: "0.25" and "a quarter" for 25."""
    asked = re.search(r"\b(?:what|which)\s+per\s?cent", question or "", re.IGNORECASE)
    if not asked or said.percent or said.dimension or not 0 < said.value < 1:
        return False
    repeated = any(n.value == said.value for n in numbers.find_all(numbers.normalized(question or "")))
    return not repeated and close(said.value * 100, gold.value)


def percent_in_doubt(said: Number, golds: Sequence[Number], question: str | None) -> bool:
    """Whether a percentage equals a gold number only without its sign: "0.25 %" for 0.25, "36 %" for 15 % of 240."""
    if question is None or not said.percent:
        return False
    if _SHARE.search(question) and not re.search(r"\b(?:what|which)\s+per", question, re.IGNORECASE):
        return not any(g.percent or close(said.value, g.value) for g in golds)
    if golds[0].asked and not any(g.percent for g in golds):
        return True  # "60 %" where dollars are asked for
    if _PERCENT.search(question):
        return False
    return not any(g.percent or abs(g.value) > 1 or close(said.value, g.value) for g in golds)


def not_given(same: Sequence[Number], number: Number, question: str | None) -> list[Number]:
    """Other forms of a number without those that only repeat the question: 5/8 in "5/8 is 0.6"."""
    before = {n.value for n in numbers.find_all(numbers.normalized(question or ""))}
    return [n for n in same if n.value == number.value or n.value not in before]


def only_new(said: Sequence[Number], golds: Sequence[Number], question: str | None) -> bool:
    """Whether of several numbers only the right one is not in the question already."""
    before = numbers.find_all(numbers.normalized(question or ""))
    new = [n for n in said if not any(n.value == b.value for b in before)]
    return bool(before and new) and all(any(numbers.equal(n, g) for g in golds) for n in new)


def as_asked(text: str, golds: Sequence[str], question: str | None) -> str:
    """A text without remarks, and without what the question says: "7 dozen" for "How many dozens"."""
    text = statements.without_remarks(text, question)
    if re.search(r"\bremainder\b", question or ""):  # "47 / 6 = 7 remainder 5", "7 R 5"
        text = re.sub(r"(?<=\d),?\s(?:(?:with\s)?(?:a\s)?remainder\s(?:of\s)?|R\s?)(?=\d)", " = ", text)
    if _LEAST.search(question or ""):
        text = re.sub(r"(?i)\bat\s+(?:least|most)\s+(?=\W?\d|[a-z])", "", text)
    asked = _DOZENS.search(question or "") and not any("dozen" in gold for gold in golds)
    return re.sub(r"(?i)\s*\bdozens?\b", "", re.sub(r"(?i)\ba\s+(?=dozen\b)", "1 ", text)) if asked else text


def none_of(said: str, question: str | None) -> bool:
    """Whether a text denies all that a question counts: "Mercury has no moons." and "How many moons ...?"."""
    what = re.search(r"\bhow\s+many\s+([a-z]+?)s?\b", question or "", re.IGNORECASE)
    return what is not None and re.search(rf"{_NO}\s(?:\w+\s)?{what[1]}s?\b", said, re.IGNORECASE) is not None


def _named(question: str | None) -> set[tuple[str, Fraction]]:
    """Every unit that a question names."""
    joined = {part for m in re.finditer(r"\b([a-z]+)/([a-z]+)\b", question or "") for part in m.groups()}
    every = re.findall(r"[a-z]+", question or "", re.IGNORECASE)
    return {u for word in every if (u := words.lookup(word) if word in joined else _unit(word))}


def _unit(word: str) -> tuple[str, Fraction] | None:
    kind, _, base = word.lower().rpartition(" ")
    return words.lookup(base + {"square": "^2", "cubic": "^3"}.get(kind, "")) if len(base) > 1 else None


def count_of_list(parts: Sequence[str]) -> Number | None:
    """The number that counts the numbers listed behind it: "There are three: 2, 3 and 5."."""
    before, _, listed = ": ".join(parts[-2:]).rpartition(": ")
    items = numbers.candidates(listed) if "," in listed else []
    apart = any(not _JOINT.fullmatch(listed[a.end : b.start]) for a, b in itertools.pairwise(items))
    counts = [n for n in numbers.find_all(before) if n.value == len(items) and before[n.end :].split()[:1] != ["times"]]
    return counts[-1] if len(items) > _LISTED and not apart and counts else None


_JOINT = re.compile(r"\s*(?:,|,?\s*and)\s*")
_LISTED = 2


def without_totals(sentence: str, chosen: list[Number]) -> tuple[list[Number], dict[int, Number]]:
    """The numbers without totals ("4 of the 8 planets"), and what share of its total each of the others is."""
    totals: set[int] = set()
    shares: dict[int, Number] = {}
    for part, total in itertools.pairwise(chosen):
        whole = part.value.denominator == total.value.denominator == 1 and 0 <= part.value <= total.value
        between = sentence[part.end : total.start]
        chance = _CHANCE.fullmatch(between) and total.value <= _MOST_CHANCES and total.dimension is None
        if whole and total.value and not part.percent and (chance or _OUT_OF.fullmatch(between)):
            totals.add(total.start)
            shares[part.start] = replace(part, value=part.value / total.value, dimension=None)
    return [n for n in chosen if n.start not in totals], shares


_SAME = re.compile(
    r"^[\s,;(]*(?:(?!(?:and|or|to|but|then)\b)[a-z]+[\s,]+)?(?:i\.?\s?e\.?|that\s+is|or|which\s+is|which\s+equals|meaning|=|\u2248|~)?[\s,]*"
    r"(?:(?:about|approximately|approx\.?|roughly|around|simply|exactly|equal\s+to|\u2248|~|=)\s*)*[$€£]?$",
    re.IGNORECASE,
)
"""Text between a number and the same number in another form: "7/12, i.e. about 0.58"."""
_REPEATED = re.compile(r"\.\d*?(\d)\1{2,}(\d?)\Z")
"""The same digit three times or more at the end, and perhaps the same one rounded."""
_ROUNDED = range(1, 9)
"""Decimals of a gold answer that may have been rounded."""
_EXACT = 2
"""Halves, as 12.5, are as often exact as rounded."""
_THREE = 100
"""A rounded answer has three digits or more."""
_TWO = 10
"""The least with two digits."""
_SHOWN = 12
"""Decimals in which a digit repeats; fewer of a large number, as a program prints about 16 digits."""


def rounded(said: Number, gold: Number) -> bool:
    """Whether one of two numbers is the other one rounded, and the other one has endless decimals."""
    return rounds_to(said, gold) or (abs(gold.value) >= 1 and rounds_to(gold, said))


def rounds_to(said: Number, gold: Number) -> bool:
    """Whether a number with endless decimals rounds to a gold answer of three digits or more, in its unit."""
    unit = gold.asked or gold
    if said.dimension and said.dimension != unit.dimension:
        return False
    value, right = (n.value * 100 if n.percent else n.value for n in (said, gold))
    value = value * said.factor / unit.factor if said.dimension else value
    digits = next((n for n in _ROUNDED if (right * 10**n).denominator == 1), 0)
    if not digits or right.denominator <= _EXACT or abs(right) * 10**digits < _THREE:
        return False
    return (value * 10**digits).denominator != 1 and _repeats(value) and _to_digits(value, digits) == right


def nearly(said: Number, gold: Number) -> bool:
    """Whether a number is a gold one below 1 with endless decimals, rounded to two digits or more: 0.333 for 1/3."""
    if said.word or not 0 < abs(gold.value) < 1 or (gold.value * 10**_SHOWN).denominator == 1:
        return False
    digits = next((n for n in _ROUNDED if n > 1 and (said.value * 10**n).denominator == 1), 0)
    return bool(digits) and _to_digits(gold.value, digits) == said.value


def more_exact(said: Number, gold: Number, question: str | None) -> bool:
    """Whether a number has more decimals than a gold one to which it rounds: 3.6925 and 3.7.

    The decimals are those that the question asks for ("to two decimal places": 0.7985 and 0.8), or those of the gold
    answer; whole numbers are exact, but for millions where millions are asked for.
    """
    places, unit = _PLACES.search(question or ""), gold.asked or gold
    if said.dimension and (said.dimension, said.factor) != (unit.dimension, unit.factor):
        return False
    for scale in {1, _scale(question)}:
        value, right = (n * (100 if gold.percent else 1) for n in (said.value / scale, gold.value))
        own = next((n for n in range(9) if (right * 10**n).denominator == 1), 9)
        digits = int(words.value(places[1]) or places[1]) if places else own
        rounded = places or ((own or scale > 1) and right.denominator != _EXACT and abs(right) * 10**own >= _TWO)
        if rounded and (value * 10**digits).denominator != 1 and _to_digits(value, digits) == right:
            return True
    return False


def _repeats(value: Fraction) -> bool:
    whole = int(abs(value)).bit_length() * 3 // 10  # digits before the point, nearly
    if (value * 10 ** max(_SHOWN - whole, 0)).denominator != 1:
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
