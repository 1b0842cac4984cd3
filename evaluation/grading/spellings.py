"""Spellings of one name, written alike: "St. Louis" and "Saint Louis", "World War II" and "World War 2".

    alike("Mt. Everest")  # "Mount Everest"

Applied to an answer and to the right answer before they are compared, so a spelling never makes an answer wrong.
"""

import re
from collections.abc import Sequence
from functools import lru_cache

from . import words

_TITLES = {"St": "Saint", "Mt": "Mount", "Ft": "Fort"}
"""Short forms before a name."""
_SHORT = {"UK": "United Kingdom", "UAE": "United Arab Emirates", "NYC": "New York City"}
"""Initials that stand for one name, in capitals with or without points; all others stand for the United States."""
_ORDINALS = words.ORDINALS[:18]
_BRITISH: dict[str, str] = {
    pair.split("/")[0]: pair.split("/")[1]
    for pair in (
        "colour/color grey/gray centre/center theatre/theater metre/meter litre/liter fibre/fiber favour/favor "
        "kilometre/kilometer centimetre/centimeter millimetre/millimeter millilitre/milliliter kilogramme/kilogram "
        "argentine/argentinian "
        "flavour/flavor honour/honor labour/labor neighbour/neighbor harbour/harbor humour/humor rumour/rumor "
        "armour/armor odour/odor defence/defense licence/license aluminium/aluminum tyre/tire plough/plow "
        "jewellery/jewelry moustache/mustache pyjamas/pajamas aeroplane/airplane doughnut/donut yoghurt/yogurt "
        "programme/program catalogue/catalog dialogue/dialog cheque/check kerb/curb sulphur/sulfur axe/ax"
    ).split()
}
"""British spellings, and the American ones. A plural or another ending follows either."""
_NUMERAL = "(?=[IVX]{2})X{0,3}(?:IX|IV|V?I{0,3})"
_TITLED = rf"(?=[IVX][ivx]{{2}}|I[ivx]\b)(?i:{_NUMERAL})"
_NTHS = "|".join(written for w in _ORDINALS for written in (w.capitalize(), w.upper()))
_ECG = "(?i:segment|elevation|depression)"
"""Words after ST, which is no saint and no street before them."""
_MANY = re.compile(
    r"(?P<title>\b(?:(?:[SMF]t|(?<!\d\s)[SMF]T)\b\.?\s+(?=[^\W\d_a-z])|(?<!\d\s)[sm]t\b\.?\s+(?=[^\W\d_]))"
    rf"(?!{_ECG}))"
    rf"|(?P<street>(?:(?<=\w\s)S[Tt]|(?<=[^\W\d_]\s)st)\b\.?(?!\s+(?:[^\W\d_a-z]|{_ECG})))"
    rf"|(?P<numeral>(?<=[^\W\d_]\s)(?:{_NUMERAL}|{_NUMERAL.lower()}(?!\sjinping)|{_TITLED})(?!\w))"
    r"|(?P<war>(?<=\b(?i:War)\s)I(?!\w|')|(?<=\b(?i:world)\swar\s)i(?!\w|'))"
    r"|\b(?i:WW(?P<world>II?|[12]))(?!\w)"
    rf"|(?P<ordinal>(?<=[^\W\d_]\s)(?:[Tt]he|THE)\s(?P<nth>{_NTHS})(?!\s?[\w-]))"
    r"|(?P<and>\s*&\s*)"
    r"|(?<![\w.])(?P<short>(?i:United States of America|U\.?S\.?A|U\.S|U\.?K|U\.?A\.?E|N\.?Y\.?C)|US"
    r"|(?:(?<=\A)|(?<=\b[Tt]he\s))us(?!\W*\w))\b\.?"
    r"(?!\.?[A-Za-z])"
    rf"|\b(?P<british>(?i:{'|'.join(_BRITISH)}))(?=(?i:e?s|ed|ing|ful)?\b)"
)
_NO_NAMES = frozenset(
    "a all an are as at be both by called chairman choose editor for from has have in is just letter numeral numerals "
    "of on only president rated the to use uses using was were with".split()
)
"""Words after which a numeral or ordinal is no part of a name: "the letter xi", "on the third"."""
_NTH = re.compile(rf"([^\W\d_]+ the )({'|'.join(_ORDINALS)})")
"""A ruler in small letters; in a sentence, "the first" is no number of one."""
_PLAIN = str.maketrans(
    {"ø": "o", "Ø": "O", "ł": "l", "Ł": "L", "đ": "d", "Đ": "D", "ð": "d", "Ð": "D", "ı": "i"}
    | {"æ": "ae", "Æ": "Ae", "œ": "oe", "Œ": "Oe", "þ": "th", "Þ": "Th", "\u02bb": "", "\u02be": "", "\u02bf": ""}
)
"""Letters without an accent that could be taken off, and how people write them who do not have them."""
_VALUES = {"I": 1, "V": 5, "X": 10}
_LETTERS = {n: letter for letter, n in _VALUES.items()}
"""Numerals that stay letters: "I" is a word, and "Malcolm X" a name."""


@lru_cache(maxsize=4096)
def alike(text: str) -> str:
    """The text with such words in one spelling."""
    if (ruler := _NTH.fullmatch(text)) and ruler[1].split()[0].lower() not in _NO_NAMES:
        text = ruler[1] + ruler[2].capitalize()
    return _MANY.sub(_written, text if text.isascii() else text.translate(_PLAIN))


def _written(m: re.Match[str]) -> str:
    if m["title"]:
        return _TITLES[m["title"][:2].capitalize()] + " "
    if m["street"]:
        return "Street"
    before = m.string[max(0, m.start() - 20) : m.start()].split()
    if (m["numeral"] or m["ordinal"]) and before and before[-1].strip("(\"'").lower() in _NO_NAMES:
        return m[0]
    if m["numeral"] or m["war"]:
        return str(roman(m[0].upper()))
    if m["world"]:
        return f"World War {2 if m['world'].upper() in ('II', '2') else 1}"
    if m["ordinal"]:
        n = _ORDINALS.index(m["nth"].lower()) + 1
        return _LETTERS.get(n, str(n))
    if m["and"]:
        return " and "
    if m["short"]:
        return _SHORT.get(m["short"].replace(".", "").upper(), "United States")
    american = _BRITISH[m["british"].lower()]
    return american.capitalize() if m["british"][0].isupper() else american


_CALENDAR = (
    "Monday/Mon Tuesday/Tue/Tues Wednesday/Wed Thursday/Thu/Thur/Thurs Friday/Fri Saturday/Sat Sunday/Sun January/Jan "
    "February/Feb March/Mar April/Apr June/Jun July/Jul August/Aug September/Sep/Sept October/Oct November/Nov "
    "December/Dec"
)
_SHORT_FORMS = {names[0].lower(): names[1:] for names in (day.split("/") for day in _CALENDAR.split())}


_REMARK = re.compile(r"(?<=[\w\"'.!])\s\((?:[^()]*\b[a-z]{3,}\b[^()]*|1[5-9]\d\d|20\d\d)\)\s*\Z")
"""What tells a name from others like it: "Mercury (planet)", "Emma (1996)"."""


_TWO_FORMS = re.compile(r"(.+\w)\s\((?:or\s([^()]+)|([A-Z]{2,6}))\)")
"""A name and a second form of it: "25 seconds (or 0:25)", "World Bank (WB)"."""


_NUMBERED = (
    words.SMALL
    | words.TENS
    | {f"{t}-{w}": n + d for t, n in words.TENS.items() for w, d in [*words.SMALL.items()][1:10]}
)
_PLACED = {w: n for n, w in enumerate(words.ORDINALS, 1)} | {f"{t[:-1]}ieth": n for t, n in words.TENS.items()}
_PLACED |= {f"{t}-{w}": n + d for t, n in words.TENS.items() for d, w in enumerate(words.ORDINALS[:9], 1)}
_WORD_OF = {n: w for w, n in _NUMBERED.items()} | {
    f"{n}{'th' if n in (11, 12, 13) else ('th', 'st', 'nd', 'rd', *['th'] * 6)[n % 10]}": w for w, n in _PLACED.items()
}
_WRITTEN = {w: str(n) for n, w in _WORD_OF.items()} | {str(n): w for n, w in _WORD_OF.items()}
_SMALL_NUMBER = re.compile(
    rf"(?<![\w.,:/$-])(?:{'|'.join(sorted(_WRITTEN, key=len, reverse=True))})(?![\w%]|[.,:/-]\d)", re.I
)


def in_figures(gold: str) -> str:
    """A gold answer with its small numbers written the other way: "ten years ago" for "10 years ago", "3rd" for
    "third".
    """
    return _SMALL_NUMBER.sub(lambda m: _WRITTEN[m[0].lower()], gold)


def only_a_number(said: str, golds: Sequence[str]) -> bool:
    """Whether a text is nothing but a number of a longer name: "2010" for "the 2010 election"."""
    number = re.compile(r"(?:In\s)?(\d+)(?:st|nd|rd|th)?\W*", re.IGNORECASE)
    own = {m[1] for form in (said.strip(), in_figures(said.strip())) if (m := number.fullmatch(form))}
    return any(own & {*re.findall(r"\d+", gold)} for gold in golds)


_ABOUT = re.compile(
    r"(?:about|approximately|around|roughly|nearly|almost|some|circa)\s(?=\w+\s[a-z]+\Z)", re.IGNORECASE
)


def exactly(gold: str) -> str:
    """A quantity that a gold answer gives roughly, in figures: "2 months" for "nearly two months"; others unchanged."""
    found = _ABOUT.match(gold)
    forms = (gold[found.end() :], in_figures(gold[found.end() :])) if found and words.lookup(gold.split()[-1]) else ()
    return next((form for form in forms if form[0].isdigit()), gold)


def in_reply(gold: str, question: str | None) -> str:
    """A gold answer in the words of a reply: "your aunt" for "my aunt" if the question is "Whom did I meet?", and "19
    days" for "19 days ago" if it says "ago".
    """
    if re.search(r"\b(?:I|[Mm]y|me)\b", question or ""):
        gold = re.sub(r"\b(?:[Mm]y|[Oo]ur)\b", "your", gold)
    return re.sub(r"(\d+\s[a-z]+)\sago\W*\Z", r"\1", gold) if re.search(r"\bago\b", question or "") else gold


def short_forms(name: str) -> tuple[str, ...]:
    """Short forms of the name of a day or month, none for most others: "Thursday" -> "Thu", "Thur", "Thurs".

    A name all in small letters may have the country in it: "us army" -> "US army". A name may have a remark behind it
    that no answer needs ("Mercury (planet)" -> "Mercury"), or another form of it ("World Bank (WB)").
    """
    two = _TWO_FORMS.fullmatch(name.strip())
    if two and (two[2] or initials(two[3], tuple(two[1].lower().split()))):
        return two[1], two[2] or two[3]
    bare = name if "=" in name else _REMARK.sub("", name)  # not "f(n) = n (mod 4)"
    others = re.sub(r"\bus\b", "US", name) if name.islower() else name, bare
    return (*_SHORT_FORMS.get(name.strip(" .").lower(), ()), *(other for other in others if other != name))


_SORT = r"(?:state|province|county|city|town|island|river|country|planet|element|god|goddess|film|novel|song|band)"


def has_another_remark(said: str, gold: str) -> bool:
    """Whether a text tells a name in another way from others like it: "Emma (2020)" or "Emma, the novel" for "Emma
    (1996)", "the state of Georgia" for "Georgia (country)".
    """
    if (remark := _REMARK.search(gold)) is None:
        return False
    name, own = re.escape(gold[: remark.start()]), {*re.findall(r"\w+", remark[0].lower())}
    behind = rf"{name}(?:\s\(([^()]+)\)|,?\s(?:the|an?)\s([^,.;]+))|\b({_SORT})\sof\s(?:the\s)?{name}"
    found = [{*re.findall(r"\w+", " ".join(filter(None, m)).lower())} for m in re.findall(behind, said)]
    numbers = {*filter(str.isdigit, own)}  # "died 1900" is not "died 1890", although both have "died"
    return any(w and (not w & own or (numbers and any(map(str.isdigit, w)) and not w & numbers)) for w in found)


_TWICE = re.compile(r"([a-z])\1+|(?<=[aou])e")
_LONG = 6
"""Letters of a word from which on a letter too many makes no other word."""


def doubled(a: str, b: str) -> bool:
    """Whether two words differ in nothing but double letters ("hemmingway") or an e for an umlaut ("duerer")."""
    if a[:2] != b[:2] or abs(len(a) - len(b)) > 2 or min(len(a), len(b)) < _LONG or not (a + b).isalpha():
        return False
    return _TWICE.sub(r"\1", a) == _TWICE.sub(r"\1", b)


def roman(numeral: str) -> int:
    """The value of a Roman numeral of I, V and X."""
    values = [_VALUES[c] for c in numeral]
    return sum(-a if a < b else a for a, b in zip(values, [*values[1:], 0], strict=True))


def initials(short: str, name: tuple[str, ...]) -> bool:
    """Whether a text is nothing but a short form ("UK", "the U.S.A.") of the words of a name."""
    form = re.fullmatch(r"\W*(?:[Tt]he\s+)?((?:[A-Z]\.?){2,6})\W*", short)
    every = "".join(w[0] for w in name)
    letters = "".join(w[0] for w in name if w not in ("of", "and", "for"))
    return form is not None and form[1].replace(".", "").lower() in (letters, every)


_INITIALS = re.compile(r"\b[A-Z]{3,6}\b")


def spells_out(said: tuple[str, ...], golds: Sequence[str]) -> bool:
    """Whether the words of a sentence have the initials that gold answers consist of: "WHO", "MLP and CNN".

    Where one of them is written out ("dirham" beside "AED"), "Arab Emirates dollar" is another answer.
    """
    letters = "".join(w[0] for w in said if w not in ("of", "and", "for"))
    alone = not any(re.sub(r"\band\b|\W", "", _INITIALS.sub("", gold)) for gold in golds)
    return alone and any(short.lower() in letters for gold in golds for short in _INITIALS.findall(gold))
