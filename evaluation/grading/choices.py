"""Which option of a choice a text names: by its letter, by its text, or by both.

Several letters are not an answer, and neither is a letter together with the text of another option. Without the options
the letter alone decides.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from . import booleans, cues, dates, formulas, numbers, view, words
from .text import normalize

_Options = Sequence[tuple[str, str]]
_SOFT = (
    r"(?:[\W_]|[^\x00-\x7f]|(?:most|very|likely|probably|definitely|certainly|clearly|simply|just|closest|to|it|is|would|be|should|i"
    r"|think|believe|choose|pick|go|with|option|options|choice|letter|answer|therefore|so|thus|the|correct|best|right"
    r"|选项|réponse|antwort|respuesta|opción|option|la|le|el|die|ist|est|es)\b)*?"
)
_OPENING = re.compile(
    rf"^(?P<before>{_SOFT})(?P<mark>[(\[\"']*)(?P<letter>[A-Za-z])(?P<close>[)\]\"'.:,;$-]+|\s:(?=\s)|(?=[\s\u3000-\uffef])|$)",
    re.I,
)
_MARKED = re.compile(
    r"\((?P<a>[A-Za-z])\)|\[(?P<b>[A-Z])\]|(?<![\w'\u00b0])(?P<c>[A-Z])(?=[).:](?:\s|$))|\b(?:option|choice|letter|answer)\s+\(?(?P<d>[A-Z])\b"
    r"|(?<![\w'.\u00b0-])(?<!\u00b0 )(?P<e>[B-HJ-Z])(?![\w'.-]|\.\w)"
    r"|(?<![\w'.-])(?P<f>A)(?=\s*(?:[,;.!]|$|is\b|and\b|or\b))"
)
_MOST = 60
"""Sentences, from the end, among which a conclusion is looked for."""
_LINE = 1000
_SHORT = 200
"""Characters of an equation."""
_WHEN = re.compile(r"(?:1\d|20)\d\d|\d{1,2}:\d\d")
_BRACKETED = re.compile(r"\((?P<letter>[A-Z])\)")
_SEVERAL = re.compile(
    r"^\W*(?:both\s+|either\s+|options?\s+)?\(?[A-Z]\)?\s*(?:,|/|&|\bor\b|\band\b|,\s*(?:and|or)\b)\s*(?:maybe\s+|possibly\s+|perhaps\s+)?(?:option\s+)?\(?[A-Z]\b\)?(?!\w)(?!\s+[a-z]+ing\b)"
)
_DENIED = re.compile(
    r"(?:\bnot|n't|\bneither|\bnor|\bexcept|\b(?:all|any|every|each)\w*(?:\s\w+){0,3}\s(?:but|besides)"
    r"|\brather\s+than|\binstead\s+of|\beliminat\w+|\brul\w+\s+out)\s+(?:be\s+|option\s+|choice\s+)?"
    r"(?:\(?[A-Z]\)?(?:,\s*(?:or\s+|nor\s+|and\s+)?|\s+(?:or|nor|and)\s+))*[(\[]?$",
    re.I,
)
_PLACE = re.compile(
    r"^\W*(?:(?:it|that|this)(?:'s|\s+is)\s+)?(?:the\s+)?(?P<place>(?P<last>last)|[a-z]+)(?:\s+(?:one|option|choice|answer)(?:\W*$|\s*[,;:(\u2014])|\W*$)",
    re.IGNORECASE,
)
"""An option by its place in the list: "the second one"."""
_COMPARED = re.compile(
    r"^\W*(?:although|though|even\s+though|while|whereas|unlike)\b[^,;]*,"
    r"|\b(?:than|unlike|although|though|even\s+though|while|whereas)\b.*$",
    re.IGNORECASE,
)
"""What an option is compared with: "Nitrogen, more than oxygen"."""
_NOT = re.compile(r"\b(?:not|never|neither|nor|both|or)\b|n't\b", re.IGNORECASE)
_ENDS_WITH = re.compile(
    r"\b(?:is|be|choose|pick|select|go\s+with|going\s+with)\s+(?:option\s+)?\(?(?P<letter>[A-Z])\)?\W*$"
)
"""A letter at the end of a sentence: "Of A, B and C the largest is B."."""
_REJECTED = re.compile(
    r"[)\]]?\s(?:is|are|was|can|would\sbe)(?:\s(?:also\s)?(?:incorrect|wrong|false|out|not)\b|n't\b|not\b)",
    re.IGNORECASE,
)
"""After a letter that is ruled out: "D is incorrect"."""
_OTHERS = re.compile(
    r"\b(?:other|remaining)\s(?:options|choices|answers|ones)\s\((?:[A-Z](?:,?\s(?:and|or)\s|,\s)?){2,}\)"
)
"""Options that are named because they are not the answer: "the other options (A, C and D)"."""
_ROW = re.compile(r"[^\n,;\u2705\u2714\u2713\u274c\u2717\u2718]{1,200}?\s?[\u2705\u2714\u2713\u274c\u2717\u2718]")
_TICKS, _CROSSES = "\u2705\u2714\u2713", "\u274c\u2717\u2718"
_NONE = re.compile(r"\W*(?:none|neither|no\s+option)\b(?:\s+of\s+(?:the|these|them)\b.{0,40})?\W*$", re.IGNORECASE)
"""An answer that takes no option: "None of the above."."""
_SO = re.compile(r",\s(?:so|therefore|thus|hence|which\sleaves|leaving)\s")
_THAT_IS = re.compile(r",\s(?:it|that)(?:'s|\sis|\smust\sbe)\s")
_BESIDE_OPTION = frozenset("the a an it is it's that's must be option choice answer letter".split())
"""Words of a conclusion that is nothing but an option: ", so it's option C."."""
_EQUATION = re.compile(
    r"[^=]*\d\s*(?:[-+*/\u00d7\u00f7x\u2212]|times|plus|minus|divided\s+by|multiplied\s+by|\s\s)\s*\d[^=]*?(?:=|\b(?:is|are|equals|gives|makes)\b)"
    r"\s*(?P<result>[$\u20ac\u00a3]?-?\d[\d.,]*(?:\s?[^\W\d]+)?)\W*",
    re.IGNORECASE,
)
_ENDINGS = ("", "s", "es")
_NEVER = re.compile(
    r"\b(?:all|any|anything|everything)\s(?:but|except)\s(?:the\s|an?\s)?\w+|(?:^|(?<=[.;,!(]))\s*(?:(?:it|that)(?:'s|\s+is)\s+)?(?:never|do\s+not|don't|not|avoid|(?:it|that)\s+isn't)\s[^.;!]*",
    re.IGNORECASE,
)
"""A clause that warns of something: "B. Never put it in an oven (A)"."""


@dataclass(frozen=True)
class ChosenOption:
    """The letter that a text chooses, or the reason why it chooses none."""

    letter: str | None
    reason: str | None = None
    """``no-answer``, ``several choices``, ``letter and text differ``, ``none of the options``."""


def announced(line: str, rest: str, options: _Options) -> ChosenOption:
    """The option that a text after an answer cue chooses."""
    found = _opening(_corrected(view.plain(line[: cues.REACH])), options)
    if found.letter is None and found.reason == "no-answer":
        return uncued(rest, options) if len(rest) > len(line) else found
    return found


def uncued(text: str, options: _Options) -> ChosenOption:
    """The option that a text without a cue chooses: in its first words, in its conclusion, or the only one it names."""
    plain = _OTHERS.sub("others", view.plain(text))
    if (ticked := _ticked(plain, options)) is not None:
        return ChosenOption(ticked)
    if options and normalize(plain) == normalize(" ".join(f"{letter} {option}" for letter, option in options)):
        return ChosenOption(None, "several choices")  # the options, repeated
    parts = view.sentences(plain)[-_MOST:]
    for sentence in reversed(parts[1:]):
        if cues.concludes(sentence) and (found := _opening(sentence, options)).letter:
            return found
    last = parts[-1] if parts else ""
    drawn = _SO.split(last)[1:] or [s for s in _THAT_IS.split(last)[1:] if _is_option(s, options)]
    left = _said(drawn[-1], options) if drawn and not _NOT.search(drawn[-1]) else set()
    if len(left) == 1 and _is_option(drawn[-1], options):
        return ChosenOption(left.pop())  # "A is 3, which is too few. 12 - 5 = 7, so C."
    found = _opening(_corrected(plain), options)
    if found.reason == "several choices" and (result := _computed(last, options)):
        return ChosenOption(result)
    if found.letter is None and (end := _ENDS_WITH.search(plain)) and end["letter"] in _said(last, options):
        return ChosenOption(end["letter"])
    if found.letter or (found.reason != "no-answer" and not drawn):
        return found
    said = _said(plain, options)
    said = left if len(said) > 1 and len(left) == 1 else said
    if len(said) == 1:
        return ChosenOption(said.pop())
    if not said and options and _NONE.match(plain):
        return ChosenOption(None, "none of the options")
    return ChosenOption(None, "several choices" if said else "no-answer")


def _is_option(text: str, options: _Options) -> bool:
    """Whether a text is nothing but an option, by letter or by text: not "the opposite of melting", "B is wrong"."""
    rest = " ".join(word for word in text.split() if word not in _BESIDE_OPTION)
    known = {normalize(t) for option in options for t in (option[1], " ".join(option))}
    return re.fullmatch(r"\W*[A-Z]\W*", rest) is not None or normalize(rest) in known


def holds(text: str, letter: str, options: _Options) -> bool:
    """Whether a text has an option's letter or its text, in whatever role."""
    marked = (next(g for g in m.groups() if g) for m in _MARKED.finditer(text))
    return letter in {*(m.upper() for m in marked), *_named(text, options)}


def kind(text: str, options: _Options) -> str | None:
    """As what a text without a letter is compared with options that are all days, or all different numbers."""
    values = [option for _, option in options]
    if not values or any(holds(text, letter, [(letter, "")]) for letter, _ in options):
        return None
    if all((day := dates.parse(v)) and day.day for v in values):
        return "date"
    read = {n.value for v in values if formulas.is_plain_number(v) and (n := numbers.parse(v))}
    if all(_WHEN.fullmatch(v.strip()) for v in values):
        return None  # "In 1912, 1,500 people died."; "at 4:30 pm"
    return "number" if len(read) == len(values) else None  # 9 is neither of 9 cm and 9 m


def polar(letter: str, options: _Options) -> str | None:
    """The "yes" or "no" that an option stands for, where the options are yes and no, or true and false."""
    meant = {k: booleans.value(option) for k, option in options}
    return ("no", "yes")[bool(meant[letter])] if {*meant.values()} == {True, False} and len(meant) == 2 else None


def _computed(sentence: str, options: _Options) -> str | None:
    """The option that an equation in numbers ends with: "6 x 4 = 24"."""
    m = _EQUATION.fullmatch(sentence) if len(sentence) <= _SHORT else None
    numeric = all(option.strip().lstrip("-$\u20ac\u00a3")[:1].isdigit() for _, option in options)
    said = _named(m["result"], options) if m and numeric else set()
    return said.pop() if len(said) == 1 else None


def _ticked(plain: str, options: _Options) -> str | None:
    """The only option with a tick behind it, where others have a cross: "A \u274c B \u2705"."""
    if not any(c in plain for c in _CROSSES):
        return None
    rows = [m[0] for m in _ROW.finditer(plain[:_LINE])]
    ticked = [row for row in rows if row[-1] in _TICKS]
    said = _marked(ticked[0], options) if len(ticked) == 1 else set()
    return next(iter(said)) if len(said) == 1 else None


def _marked(row: str, options: _Options) -> set[str]:
    letter = re.match(r"\W*([A-Za-z])\b", row)
    known = letter is not None and (not options or letter[1].upper() in {k for k, _ in options})
    return {letter[1].upper()} if letter and known else _said(row, options)


def _corrected(plain: str) -> str:
    for correction in reversed(cues.corrections(plain)):
        after = plain[correction.at :]
        if (m := _OPENING.match(after[:80])) and _is_letter(m, after, set()):
            return after
    return plain


def _opening(text: str, options: _Options) -> ChosenOption:
    """The option named in the first words, with its text checked where the options are known."""
    sentence = text.split("\n", 1)[0]
    if _SEVERAL.match(sentence):
        return ChosenOption(None, "several choices")
    letters = {letter for letter, _ in options}
    m = _OPENING.match(sentence[:200])
    if m is not None and _is_letter(m, sentence, letters):
        letter = m["letter"].upper()
        if _rejected(text, m.end("letter"), letter, options) or re.search(rf"(?:n't|\bnot)\s+{letter}\b(?!\s\w)", text):
            said = _said(text, options) - {letter}
            return ChosenOption(said.pop()) if len(said) == 1 else ChosenOption(None, "several choices")
        following = "".join(k["letter"] for k in _BRACKETED.finditer(sentence))
        if letter == "A" and following.startswith("ABC"):
            return ChosenOption(None, "several choices")  # the options, repeated
        named = _named(sentence[m.end() :], options)
        if len(named) == 1 and letter not in named:
            return ChosenOption(None, "letter and text differ")
        return ChosenOption(letter)
    if (place := _PLACE.match(sentence)) and options:
        n = -1 if place["last"] else words.ordinal(place["place"])
        if n is not None and abs(n) <= len(options):
            return ChosenOption(options[n if n < 0 else n - 1][0])
    said = _said(sentence, options)
    if len(said) > 1 and len(others := _named(_COMPARED.sub(" ", sentence), options)) == 1:
        said = said if _NOT.search(sentence) else others
    if len(said) == 1:
        return ChosenOption(said.pop())
    return ChosenOption(None, "several choices" if said else "no-answer")


def _is_letter(m: re.Match[str], sentence: str, letters: set[str]) -> bool:
    """Whether a match is the letter of an option: "A, cloud" and "(a)" are, "A dog is ..." and "I think" are not."""
    letter, after = m["letter"], sentence[m.end() :]
    if letters and letter.upper() not in letters:
        return False
    if m["close"] or m["mark"]:
        return not (letter in "Ii" and m["close"][:1] in ("'", ","))
    alone = not any(c.isalnum() for c in after)
    if letter in "aAI":
        # an article or a pronoun, unless something before it announced a letter
        return alone or (
            letter == "A" and re.search(r"\b(?:is|option|choice|letter|answer)\W*$", m["before"], re.I) is not None
        )
    return alone or letter.isupper()


def _said(text: str, options: _Options) -> set[str]:
    """Every option that a text names and does not deny, by letter or by text."""
    letters = {letter for letter, _ in options}
    found = set()
    for m in _MARKED.finditer(text):
        letter = next(g for g in m.groups() if g).upper()
        if letters and letter not in letters:
            continue
        if not _DENIED.search(text[max(0, m.start() - 40) : m.start()]) and not _rejected(
            text, m.end(), letter, options
        ):
            found.add(letter)
    named = _named(text, options) if found or options else set()
    if len(found) == 1 and found < named and _first_named(text, options) not in found and _marks(text, found, options):
        return named  # "It's evaporation. Condensation (B) is the opposite."
    return found or named


def _rejected(text: str, at: int, letter: str, options: _Options) -> bool:
    """Whether a letter is ruled out by the words behind it, unless they are its option: "(C) cannot be determined"."""
    own = normalize(dict(options).get(letter, ""))
    return _REJECTED.match(text, at) is not None and not (own and normalize(text[at:]).startswith(own))


def _marks(text: str, letters: set[str], options: _Options) -> bool:
    """Whether a letter only stands behind the text of its option: "London (A)", not "Paris is in France (B)"."""
    return any(re.search(rf"{re.escape(o)}s?\s\(?{k}\b", text, re.IGNORECASE) for k, o in options if k in letters)


def _first_named(text: str, options: _Options) -> str:
    """The letter of the option whose text comes first in a text that has several."""
    given = f" {normalize(text)} "
    return min(options, key=lambda o: given.find(f" {normalize(o[1])}") % (len(given) + 1))[0]


def _named(text: str, options: _Options) -> set[str]:
    """The options whose text occurs in a text; of "house" and "tree house" the longer one where it occurs in full."""
    given = f" {normalize(_NEVER.sub(' ', text) if len(text) <= _LINE else text)} "
    texts: Mapping[str, str] = {letter: normalize(option) for letter, option in options}
    held = {k: t for k, t in texts.items() if t and any(f" {t}{end} " in given for end in _ENDINGS)}
    return {k for k, t in held.items() if not any(t != o and f" {t} " in f" {o} " for o in held.values())}
