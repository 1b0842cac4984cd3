"""Lists of names or numbers: "X and Y", comma lists, bullets, numbered lines, arrows, JSON."""

import json
import re
from collections.abc import Sequence

from .. import options
from ..asks import Grade
from . import cues, echo, names, numbers, numeric_answer, peoples, text, view

_ITEM_MARK = re.compile(r"(?:^|\n)[ \t]*(?:[-*•]|\(?\d{1,2}[.)])\s+")
_CHECKED, _UNCHECKED = re.compile(r"(?m)(?<=^[-*]\s)\[[xX]\]\s"), re.compile(r"(?m)^[-*]\s\[\s\]\s[^\n]*\n?")
_INLINE_MARK = re.compile(r"(?:^|(?<=[\s,;]))\(?(?P<n>\d{1,2}(?=[.)])|[a-h](?=\)))[.)]\s*(?=[^\W\d])")
"""Numbers or letters inside a line: "1) Mars 2) Jupiter"."""
_SLASHES = re.compile(r"(?!.*\band/or\b)[^/,;\n\d]+(?:/[^/,;\n\d]+)+")
_ARROW = re.compile(r"\s*(?:->|→|=>|>|⟶|➔)\s*|\s+<\s+")
_DASH = re.compile(r"\s[-\u2013\u2014]\s")
_DASHES = re.compile(r"[^,;:\n]{1,40}(?:\s[-\u2013\u2014]\s[^,;:\n]{1,40}){2,}")
"""Three items or more with dashes between them."""
_SEMICOLON = re.compile(r"\s*[;\n]\s*(?:and\b)?\s*", re.IGNORECASE)
_COMMA = re.compile(
    r"\s*(?:,\s*(?:and|while|whereas)\b|,(?!\d{3}(?!\d))|\n|\s+(?:and(?!(?:(?<=\d\sand)|(?<=\b(?:one|two|six|ten)\sand)|(?<=\b(?:four|five|nine)\sand)|(?<=\b(?:three|seven|eight)\sand))\s(?:a|one)\s(?:half|third|quarter)\b)|then|while|whereas|und|et|plus|as\swell\sas)\b|\s+or(?=\s+\$?[a-z]\s?=)|\s+&|\s/(?=\s))\s*",
    re.IGNORECASE,
)
_LETTERS = re.compile(r"\W*[A-Z](?:[\s-]?[A-Z])+\W*")
_ASIDE = re.compile(r"in (?:that |this |the right )?order|respectively|in total|of course|etc", re.IGNORECASE)
_VERB = re.compile(r"\b(?:are|is|were|include)\b")
_DATED = re.compile(r"\s?\([^()\n]{0,40}\d[^()\n]{0,40}\)")
_WHICH = re.compile(r",\s(?:which|who|whose|where)\s[^.,;\n]{1,80}(?=[.,;]|$)")
_SO = re.compile(r"\A[^\n]*?,\s(?:so|thus|hence|therefore)\s(?:[^,\n]*?\b(?:are|is|include)\s|(?=\$?[a-z]\s?=))")
_GIVES = re.compile(r"\A[^\n:.]{1,100}?\b(?:gives|yields|results\sin|we\sget)\s(?:us\s)?")
_BETWEEN = re.compile(
    r"\A[^\n,:]{0,80}?\b[Bb]etween\s[^,:\n]{1,40}?\sand\s[^,:\n]{1,60}?(?:,\s[^,:\n]{1,40}?)?\s(?:are|were|is|was|include)\s"
)
"""What the items lie between: "The even numbers between 3 and 9 are ..."."""
_SETTING = re.compile(
    r"\A(?:(?:In|On|At|As\sof|By|During|For|From|According\sto|Based\son)\s[^,:\n]{1,60}|Well|Today|[A-Z][a-z]+ly),\s"
    r"(?!there\s)(?=[^,:\n]{1,80}?\s(?:are|were|is|was|includes?|included|consist(?:s|ed)?\sof)\s)"
)
"""When, where or how the items are so: "In 1965, the members were ..."."""
_SINCE = re.compile(
    r"\A(?:(?:Since|Because|As|If|When|While|Although)\s[^\s,]+|Everyone\sbut)\s[^,:\n]{1,80},\s(?:that\sis,\s)?"
)
"""A clause before the one with the items: "Since Joe failed, Tom and Ana passed"."""
_ADDED = re.compile(r",\s(?:(?:in|on|from|as|both|all)\s[a-z]|followed\sby\s)[^,;\n]*\Z")
"""What a list adds about all of its items: "blue, white and red, in vertical stripes"."""
_OTHER_CLAUSE = re.compile(
    r",\swith\s(?:small|smaller|trace|tiny|minor)\s|,?\s(?:and|while|whereas)\s(?:the\s(?:other|secondary|second|former|latter|last|rest|remaining)|its|their)\b"
    r"[^.,;\n]{0,40}\s(?:are|is|were|was|include)\s"
)
"""A clause about other things: "red, yellow and blue, and the secondary ones are ..."."""
_BLOCK = re.compile(r"(?m)((?:^(?!\s*(?:[-*\u2022]\s|\(?\d{1,2}[.)]\s))[^\n]*(?:\n|\Z))+)")
"""Lines between lists."""
_HEADING = re.compile(
    r"\b(?:order\w*|sort\w*|arrang\w+|chronolog\w+|sequence|answer|result|final\w*)\b[^\n]*\s*\Z", re.IGNORECASE
)
_OTHER_ORDER = re.compile(r"\b(?:not|wrong|incorrect|revers\w+|original|initial|previous|given)\b", re.IGNORECASE)
_PARTS = re.compile(r",?\s(?:and|then)\s")
"""Between the questions of a question for several numbers."""
_SORTED = re.compile(
    r"\b(?:order\w*|sort\w*|rank\w*|arrang\w+|ascending|descending|increasing|decreasing|chronolog\w+"
    r"|(?!first|last)\w+(?:er|est)\s(?:\w+\s)?(?:first|to\b)|(?:first|last)\W*\Z)",
    re.IGNORECASE,
)
"""In a question that says the order of the answer itself."""
_PLACED = re.compile(
    r"\bin\s(?:between|the\smiddle)\b|\b(?:is|comes?|follows?)\s(?:before|after)\b|\b(?:second|third|last|\w{2,9}est)\b.{0,200}\bfirst\b",
    re.IGNORECASE | re.DOTALL,
)
"""Words that give the items places in another order: "A is first, C is last, and B is in between"."""
_LISTED_WORDS = 20
"""Words beside the items of a list that leave no room for an explanation."""
_MOST = 40
"""More items than this beyond those asked for, and a text is not a list."""
_INTRODUCTION = re.compile(
    r"^[^:\n]{0,80}:\s*|^[^:\n]{0,60}?\b(?:they|these|those)\s+(?:are|were|include)\s+", re.IGNORECASE
)


def split(answer: str) -> list[str]:
    """The items of a list answer in order, without marks, introductions and final punctuation."""
    answer = _CHECKED.sub("", _UNCHECKED.sub("", answer)).strip()
    if (items := _json_items(answer)) is not None:
        return items
    if [m["n"] for m in _INLINE_MARK.finditer(answer)][:2] in (["1", "2"], ["a", "b"]) and "\n" not in answer:
        return _clean(_INLINE_MARK.sub("\n", answer).split("\n"))
    if _ITEM_MARK.search(answer):
        rows = _ITEM_MARK.split(answer)
        # text before the first mark introduces the list
        items = [row.split("\n")[0] for row in rows[1:]] if "\n" in answer or len(rows) > 2 else rows[1:]
        return _clean(items)
    if "\n" not in answer or not all(": " in line for line in answer.split("\n")):  # a line for each: "Hen: 2"
        answer = _INTRODUCTION.sub("", text.strip_opening(answer))
    separator = _ARROW if _ARROW.search(answer) else _SEMICOLON if ";" in answer else _COMMA
    if _SLASHES.fullmatch(answer):
        return _clean(answer.split("/"))
    if separator is _COMMA and _DASHES.fullmatch(answer):
        return _clean(_DASH.split(answer))
    items = separator.split(answer)
    last = re.split(r"\s+or\s+", items[-1]) if separator is _COMMA and len(items) > 1 else items[-1:]
    return _clean([*items[:-1], *last])  # "a solid, a liquid or a gas"


def in_letters(answer: str, gold: Sequence[str], question: str | None) -> list[str] | None:
    """The letters of an answer, where the gold one has letters: in a row ("C D A B", "CDAB"), or as the words that the
    question lists beside them.
    """
    if not all(len(item) == 1 and item.isalpha() for item in gold):
        return None
    if _LETTERS.fullmatch(answer):
        return re.findall(r"[A-Z]", answer)
    known = {text.normalize(words): letter for letter, words in options.in_question(question or "")}
    found = [known.get(text.normalize(item)) for item in split(answer)]
    return [letter for letter in found if letter] if len(found) > 1 and all(found) else None


def grade(said: str, golds: Sequence[str], question: str | None, ordered: bool) -> Grade | None:
    """Whether a text is a list with the items of a gold one; None where it has none, undecided if no rule can tell."""
    if any(map(str.isalnum, golds[0])) and not any(map(str.isalnum, said)):
        return None  # "-"
    wanted = [split(g) for g in golds]
    segments = readings(said, question)
    if ordered and (last := view.sentences(said[-cues.REACH :])[-1:]) and cues.concludes(last[0]):
        segments = [last[0], *simpler(last[0])] if held(last[0], wanted[0]) else segments
    first: Grade | None = None
    for segment in segments:
        given = _given(segment, wanted[0], question, ordered)
        results = [compare(given, gold, ordered) for gold in wanted if given]
        if any(equal for equal, _ in results):
            if ordered and any(_in_another_order(s, wanted[0], question) for s in [*segments, *_heading(said)]):
                return Grade("invalid", said, None, "two orders")
            return Grade("correct", ", ".join(given), "ordered" if ordered else "set")
        if results and first is None:
            first = Grade("incorrect", ", ".join(given), None, results[0][1])
    passing = first is not None and in_passing(said, wanted[0], first.reason, ordered)
    foreign = first is not None and peoples.in_another_language(said, golds)
    return (
        Grade("invalid", said, None, "items in passing" if passing else "another language")
        if passing or foreign
        else first
    )


def _given(segment: str, gold: Sequence[str], question: str | None, ordered: bool) -> Sequence[str]:
    given = in_letters(segment, gold, question) or split(segment)
    return as_asked(given, gold, question) if ordered else given


def _heading(said: str) -> list[str]:
    """What the line above a list says after "is", "are" or a colon."""
    before = view.plain(_ITEM_MARK.split(said)[0]).strip().rstrip(":").rpartition("\n")[2]
    parts = re.split(r":|\b(?:is|are)\b", before) if _ITEM_MARK.search(said) else []
    return [part.strip() for part in parts[1:][-1:]]


def _in_another_order(segment: str, gold: Sequence[str], question: str | None) -> bool:
    """Whether a text is nothing but the items in another order than the gold one and that of the question."""
    given = _given(segment, gold, question, ordered=True)
    asked = text.normalize(question or "")
    listed = sorted(gold, key=lambda item: asked.find(text.normalize(item)))
    sentences = any(t.word in view.FINITE for item in given for t in view.tokens(item))
    return not sentences and compare(given, gold, True)[1] == "order" and not compare(given, listed, True)[0]


def readings(said: str, question: str | None = None) -> list[str]:
    """The texts that may be the list: all of it, its first sentence or line, its last one; or, if something corrects
    them, only that."""
    whole = view.without_greeting(cues.corrected(said[: cues.REACH]))
    parts = view.sentences(whole) if "\n" not in whole else []
    parts = parts[:1] if len(parts) > 1 and re.fullmatch(r"\([^()]*\)[.!]?", parts[-1].strip()) else parts
    last = whole.rstrip().rpartition("\n")[2]
    head, colon, _ = last.partition(":")
    asked = {*echo.content(head)} and {*echo.content(head)} <= {*echo.content(question or "")}  # "Prime factors: 2, 3"
    labelled = colon and "\n" in whole and (asked or _HEADING.search(head)) and not _OTHER_ORDER.search(head)
    drawn = [last, *simpler(last)] if labelled or cues.concludes(last) else []
    leading = [lead] if (lead := whole.lstrip().partition("\n\n")[0]) and "\n" not in lead else []
    return list(dict.fromkeys([whole, *parts[:1], *parts[-1:], *simpler(whole), *drawn, *leading]))


def simpler(answer: str) -> list[str]:
    """A list without what only explains it: dates in parentheses, relative clauses, a clause about something else.

    Of several lists below one another the last one, where a line above it says that it is in order or the answer.
    """
    found = _columns(answer)
    found += [plain] if (plain := _DATED.sub("", answer)) != answer else []
    beside = (_WHICH, _SO, _GIVES, _BETWEEN, _ADDED, _SETTING, _SINCE)
    found += [short for words in beside if (short := words.sub("", plain)) != plain]
    if (clause := _OTHER_CLAUSE.search(plain)) and clause.start():
        found.append(plain[: clause.start()])
    blocks = _BLOCK.split(answer)
    blocks = blocks if blocks[-1].strip() else blocks[:-2]
    if len(blocks) > 2 and _ITEM_MARK.search(blocks[-3]) and _HEADING.search(blocks[-2]):
        found.append(blocks[-1])
    return found


def _columns(answer: str) -> list[str]:
    """The columns of a table in Markdown, each as a list, and its row where it has only one."""
    rows = [line.strip().strip("|").split("|") for line in answer.split("\n") if line.strip().startswith("|")]
    if len(rows) < 3 or any(cell.strip(" :-") for cell in rows[1]):
        return []
    found = [*zip(*rows[2:], strict=False), *(rows[2:] if len(rows) == 3 else [])]
    return ["\n".join(f"- {cell.strip()}" for cell in cells) for cells in found]


def in_passing(answer: str, gold: Sequence[str], reason: str | None, ordered: bool) -> bool:
    """Whether a text that is no right list, for this reason, may name the items of one in what it explains."""
    if _PLACED.search(answer) if reason == "order" else in_sentence(answer, gold):
        return True
    if _in_parts(split(answer), gold, ordered):
        return True  # "Washington, Adams and Jefferson"
    explained = len(answer.split()) > _LISTED_WORDS + sum(len(item.split()) for item in gold)
    return explained and reason in (None, "extra") and held(answer, gold)


def _in_parts(given: Sequence[str], gold: Sequence[str], ordered: bool) -> bool:
    """Whether the items are the gold ones or parts of their names."""
    left = [*gold]
    for item in given:
        among = left[:1] if ordered else left
        hit = next((g for fits in (same, text.part_of) for g in among if fits(item, g)), None)
        if hit is None:
            return False
        left.remove(hit)
    return not left


def in_sentence(answer: str, gold: Sequence[str]) -> bool:
    """Whether a text that is no list names every item: in a sentence without any other one, or beside several verbs."""
    if len(gold) < 2 or not held(answer, gold) or re.search(r"\b(?:not|neither|nor|except|never|or)\b|n't\b", answer):
        return False
    given = split(answer)
    verbs = [t for t in view.tokens(view.plain(answer)) if t.word in view.FINITE]
    return len(given) == 1 or (len(verbs) > 1 and "\n" not in answer)


def _json_items(answer: str) -> list[str] | None:
    start, end = answer.find("["), answer.rfind("]")
    if start < 0 or end < start:
        return None
    try:
        loaded = json.loads(answer[start : end + 1])
    except (ValueError, RecursionError):
        return _clean(_COMMA.split(answer[start + 1 : end]))
    return _clean([str(item) for item in loaded]) if isinstance(loaded, list) else None


def _clean(items: Sequence[str]) -> list[str]:
    if len(items) > 2:
        items = [*items[:-1], re.sub(r"^\s*or\s+", "", items[-1])]  # "solid, liquid, or gas"
    cleaned = [
        re.sub(r"^\s*(?:and|then|plus|but also|as well as|also|both|first|finally|lastly)\b[\s:,]*", "", i, flags=re.I)
        for i in items
    ]
    cleaned = [i.strip().strip("\"'`*“”").rstrip(".!,;").strip() for i in cleaned]
    return [i for i in cleaned if i and not _ASIDE.fullmatch(i)]


def as_asked(items: Sequence[str], gold: Sequence[str], question: str | None) -> Sequence[str]:
    """The items of an answer in the order in which the question names what their numbers belong to.

    >>> as_asked(["a hen has 2", "a spider has 8"], ["8", "2"], "How many legs has a spider, and how many a hen?")
    ['a spider has 8', 'a hen has 2']
    """
    named = [[w for w in echo.content(item) if w.isalpha()] for item in items]
    every = [w for row in named for w in {*row}]
    asked = [echo.content(part) for part in _PARTS.split(echo.last_question(question or ""))]
    places = [{n for n, part in enumerate(asked) for w in row if w in part and every.count(w) == 1} for row in named]
    known = [max(found) if found else None for found in places]
    if known.count(None) == 1 and len(items) == len(asked):  # the other question is left for it
        known[known.index(None)] = next(n for n in range(len(asked)) if n not in known)
    if _SORTED.search(question or "") or None in known or len({*known}) < len(items) or not all(map(_is_number, gold)):
        return items
    return [item for _, item in sorted(zip(known, items, strict=True), key=lambda row: row[0] or 0)]


def held(answer: str, gold: Sequence[str]) -> bool:
    """Whether a text names every item, in whatever way."""
    return all(text.has_any(answer, [item]) for item in gold)


def compare(answer: Sequence[str], gold: Sequence[str], ordered: bool) -> tuple[bool, str | None]:
    """(equal, reason): the same items, each once, in any order unless ``ordered``.

    An item may state its value in a phrase ("a hen has 2 legs" for 2, "the tool is the hammer" for hammer) where
    it holds no other one. The reason of a mismatch is ``incomplete`` (right but too few), ``extra`` (all and more),
    ``order`` (right items, wrong order) or None.
    """
    if len(answer) > _MOST + len(gold):
        return False, "extra"
    left = dict(enumerate(answer))
    places: dict[int, int] = {}
    for fits in (same, _says):  # what is literally there first, so that "York" is not taken from "New York"
        for g, item in enumerate(gold):
            if g in places:
                continue
            others = [other for other in gold if fits is _says and not same(other, item)]
            hits = (a for a, given in left.items() if fits(given, item) and not any(fits(given, o) for o in others))
            if (hit := next(hits, None)) is not None:
                places[g] = hit
                del left[hit]
    if len(places) == len(gold) and not left:
        in_order = [places[g] for g in range(len(gold))] == sorted(places.values())
        return (True, None) if in_order or not ordered else (False, "order")
    if len(places) < len(gold) and not left:
        return False, "incomplete"
    return False, "extra" if left and len(places) == len(gold) else None


def same(a: str, b: str) -> bool:
    """Two items are the same number, or the same text after normalization."""
    if _is_number(a) and _is_number(b) and (x := numbers.parse(a)) and (y := numbers.parse(b)):
        return numbers.equal(x, y)
    return text.normalize(a) == text.normalize(b) and text.same(a, b)


def _is_number(item: str) -> bool:
    return re.fullmatch(r"[^A-Za-z]*\d[^A-Za-z]*", item) is not None


def _says(given: str, gold: str) -> bool:
    """Whether an item in words holds the gold item: its only number, or the name in a short phrase that affirms it."""
    if text.normalize(gold)[:-2] not in text.normalize(given) and not _is_number(gold):
        return False  # without its ending, which a plural may change
    if not _is_number(gold):
        return names.match(given, [gold]) is not None
    given = _VERB.split(given)[-1]  # "The prime numbers below 10 are 2"
    wanted, said = numbers.parse(gold), numeric_answer.uncued(given)
    if wanted is None or said.number is None:
        return False
    found = numbers.find_all(numbers.normalized(given))
    digits = [n for n in found if not n.word] or found
    return len({n.value for n in digits}) == 1 and numbers.equal(said.number, wanted)


def stopped_at_a_part(response_text: str, parts: Sequence[Sequence[str]]) -> Grade | None:
    """Incorrect if the response is nothing but a part's answer or items of it; None for anything else.

    ``parts`` holds the accepted answers of each part, the gold and its aliases.
    """
    given = split(response_text)
    for i, answers in enumerate(parts):
        golds = [item for answer in answers for item in split(answer)]
        if given and all(any(same(item, gold) for gold in golds) for item in given):
            return Grade("incorrect", response_text.strip(), None, f"stops at part:{i}")
    return None
