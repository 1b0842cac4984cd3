"""Formulas such as 5x and f(x) = 2x + 3: which gold answers are one, and which one a text answers with; math-verify.

Of the formulas in a text those count that the question does not have. After an answer cue the first of them is the
answer, without a cue the last one; of an equation the last side. Another formula that equals the gold answer leaves
the answer undecided.
"""

import re
import threading
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ..graded import Graded
from . import cues, numbers, text, words
from .verdicts import Asked, Said, Verdict, right, undecided, wrong
from .view import fold

_FUNCTIONS = frozenset("sin cos tan cot sec log ln exp sqrt pi arcsin arccos arctan sinh cosh tanh frac".split())
_SIGNS = str.maketrans(
    {"\u00d7": "*", "\u00b7": "*", "\u22c5": "*", "\u2212": "-", "\u2013": "-", "\u03c0": "\\pi "}
    | {c: f"^{n}" for n, c in enumerate("\u2070\u00b9\u00b2\u00b3\u2074\u2075\u2076\u2077\u2078\u2079")}
)
_MARKS = [
    (re.compile(r"\\\\|\\quad\b"), "\n"),
    (re.compile(r"\\[\[\]()]|\\(?:left|right|displaystyle|,|;|!)|&|\$"), " "),
    (re.compile(r"\\(?:text|mathrm|boxed|mathbf)\s*\{([^{}]*)\}"), r"\1"),
    (re.compile(r"\\(?:cdot|times)\b"), "*"),
    (re.compile(r"\\[dt]frac"), r"\\frac"),
    (re.compile(r"(?<=[\w)])\*\*(?=[\w(])"), "^"),
    (re.compile(r"(?<![\w)}])\*{1,2}|\*{1,2}(?![\w({\\])|`+"), " "),
    (re.compile(r"(?<![A-Za-z\\])pi(?![A-Za-z])"), r"\\pi"),
]
_ALPHABET = re.compile(r"[\w.'^{}()\[\]+*/=|\\\s-]+")
_COEFFICIENT = re.compile(r"-?\d+(?:\.\d+)?\s?(?P<letter>[a-z]|[xyz]{2,3})")
_NUMBER = r"\d+(?:\.\d+)?(?:[A-Za-z]{1,3}(?![A-Za-z])|(?![A-Za-z]))"
"""A number, with the variables that it is the coefficient of."""
_CONSTANT = re.compile(r"\+\s*[cC]\s*\Z")
_SECTION = re.compile(r"[\w.]*(?:\(\w+\))+")
"""A part of a law: "501(c)(3)"."""
_SOLUTION = re.compile(r"(?P<letter>[A-Za-z])=[^=A-Za-z]+")
"""A variable with its value: "x = 3"."""
_NAMED_FORM = re.compile(r"\b(?:simplif|factor|expand|reduc|combin|express|rewrit|collect|form\b)", re.IGNORECASE)
"""A question that asks for a formula in another form of equal value."""
_STRONG = re.compile(r"[A-Za-z].*[+*/^(-].*\w|[(\d\\-].*[A-Za-z]|\w\s*[+*/^-].*[A-Za-z]")
_NOT = re.compile(r"(?:\bnot|n't|\bthan|\bnever)\b(?:\s(?!but\b)[a-z]+){0,2}\W*\Z", re.IGNORECASE)
_OR = re.compile(r"\bor\b(?:\s\w+){0,2}\W*\Z", re.IGNORECASE)
_LONGEST = 200
"""Characters of a formula that is compared."""


@dataclass(frozen=True)
class FormulaVerdict:
    """What a text says about a gold formula: ``right``, wrong (False) or undecided (None), and how or why."""

    right: bool | None
    how: str


def is_formula(gold: str, question: str | None = None) -> bool:
    """Whether a gold answer is a formula with a variable: "5x", "2x + 3", but no name such as "B12", "7up" or "U-2".

    A number with a letter behind it is one for n, x, y and z, or where the question uses the letter as a variable.
    """
    plain = _cleaned(gold).strip()
    if not plain or "\n" in plain or not _ALPHABET.fullmatch(plain) or _SECTION.fullmatch(plain):
        return False
    if only := _COEFFICIENT.fullmatch(plain):
        letter = only["letter"]
        asked = rf"(?<![A-Za-z]){letter}\s?[+*/^=-]|[+*/^=-]\s?\d*{letter}(?![A-Za-z])"
        return {*letter} <= {*"nxyz"} or re.search(asked, _cleaned(question or "")) is not None
    bare = re.sub(r"\\[A-Za-z]+", " ", plain)
    letters = [w for w in re.findall(r"[A-Za-z]+", bare) if w not in _FUNCTIONS]
    powers = re.search(r"[=^]", bare) is not None
    if (not letters and not ("\\pi" in plain and re.search(r"\d", bare))) or re.search(
        r"[A-Za-z]\d|[+*/^=-]\s*\Z|\A\s*[+*/^=]|[+*/=]\s*[+*/=]", bare
    ):
        return False
    if any(len(w) > 1 and not (powers and len(w) == 2) and {*w} - {*"xyz"} for w in letters):
        return False
    if powers or re.search(r"[\w)]\s*\+\s*[\w(\\-]", bare) or re.search(r"\d[a-z]?\s?\(|\)\s?\(", bare):
        return True
    if re.search(r"[*/]|\\frac", plain):
        return re.search(r"\d", bare) is not None
    called = any(w in _FUNCTIONS for w in re.findall(r"[A-Za-z]+", plain))
    return called or ("-" in bare.strip()[1:] and not re.search(r"[A-Z]", bare))


def compare(said: Said, asked: Asked) -> Verdict:
    """The verdict on a text where the gold answers are formulas, or terms that math-verify reads."""
    golds, segment = asked.golds, said.text
    if is_formula(golds[0], asked.question):
        found = read(segment, golds, asked.question, said.cued)
        if found is None or found.right is None:
            return undecided(segment, found.how) if found else None
        return right(segment, found.how) if found.right else wrong(segment)
    if any(re.sub(r"[\s$]", "", segment.rstrip(".")) == re.sub(r"[\s$]", "", g) for g in golds):
        return right(segment, "exact")
    if not available_here():
        return undecided(segment, "math-verify needs the main thread")
    verdicts = [verify(segment[:2000], g) for g in golds]
    unread = all(v is None for v in verdicts)
    return right(segment, "math-verify") if any(verdicts) else None if unread else wrong(segment)


def read(said: str, golds: Sequence[str], question: str | None, cued: bool) -> FormulaVerdict | None:
    """What a text says about gold formulas; None where it has no formula of its own."""
    part = _cleaned(cues.corrected(said[: cues.REACH] if cued else said[-cues.REACH :]))
    wanted = [g for g in golds if is_formula(g, question)]
    if any(text.same(said, g) for g in golds if g not in wanted):
        return FormulaVerdict(True, "alias")
    if any(_signs(part.strip(" .")) == _signs(_cleaned(g)) for g in wanted):
        return FormulaVerdict(True, "exact")
    sides = [_cleaned(g).strip() if _is_relation(g, question) else _last_side(g) for g in wanted]
    every = _formulas(part, wanted, question or "")
    own = [(at, formula) for at, formula in every if not _NOT.search(part[max(0, at - 40) : at])]
    if not own:
        return FormulaVerdict(None, "denied") if every else None
    chosen = own[0 if cued else -1][1]
    others = [formula for _, formula in own if formula != chosen]
    equal = _equal(chosen, wanted, sides)
    if equal is None:
        return FormulaVerdict(None, "math-verify needs the main thread" if not available_here() else "formula")
    if any(_OR.search(part[max(0, at - 40) : at]) for at, _ in own):
        return FormulaVerdict(None, "several formulas")
    if equal:
        same = any(_letters(chosen) == _letters(side) for side in sides)
        exact = any(_signs(chosen) == _signs(side) for side in sides)
        if not same and _form_open(chosen, question):
            return FormulaVerdict(None, "another form")
        return FormulaVerdict(True, "exact" if exact else "math-verify")
    open_ = any(_letters(other) == _letters(side) for other in others for side in sides)
    return FormulaVerdict(None, "several formulas") if open_ else FormulaVerdict(False, "another formula")


def _formulas(part: str, wanted: Sequence[str], question: str) -> list[tuple[int, str]]:
    """(position, last side) of each formula of a text that its question does not have; of relations all of it."""
    known = {w for g in wanted for w in re.findall(r"(?<!\\)\b[A-Za-z]{2,}\b", _cleaned(g))} | _FUNCTIONS
    names = "|".join(sorted(map(re.escape, known), key=len, reverse=True))
    atom = rf"\\[A-Za-z]+|(?<![A-Za-z])(?<![A-Za-z]')(?:{names}|[A-Za-z])(?![A-Za-z])|{_NUMBER}"
    run = re.compile(rf"(?:{atom}|[+*/^=(){{}}\[\]|_'-]|[ \t])+")
    asked = _spaced(_cleaned(question))
    solutions = [m["letter"] for g in wanted if (m := _SOLUTION.fullmatch(_compact(_cleaned(g))))]
    relation = any(_is_relation(g, question) for g in wanted)
    found: list[tuple[int, str]] = []
    weak: list[tuple[int, str]] = []
    for m in run.finditer(part):
        formula = re.sub(r"\A\s*(?:[aAI]\s+(?=[\w\\(]))?", "", m[0]).strip(" \t'|_")
        if not re.search(r"\w", formula) or formula in ("a", "A", "I") or len(formula) > _LONGEST:
            continue
        if relation:
            found += [(m.start(), formula)] if "=" in formula else []
            continue
        sides = [_balanced(s) for s in formula.split("=") if re.search(r"\w", s)]
        strong = [s for s in sides if _STRONG.search(s)]
        kept = [s for s in strong if not _inside(_spaced(s), asked)]
        solution = _SOLUTION.fullmatch(_compact(formula))
        if solutions:
            if solution and solution["letter"] in solutions:
                found.append((m.start(), sides[-1]))
            weak += [(m.start(), formula)] if re.fullmatch(r"[^A-Za-z=]+", formula) else []
        elif kept:
            called = len(kept) > 1 and re.fullmatch(r"[A-Za-z]'{0,2}\([A-Za-z]\)", _compact(kept[-1]))
            found.append((m.start(), kept[0] if called else kept[-1]))
        elif not strong and "=" in formula and any("=" in g for g in wanted):
            found.append((m.start(), sides[-1]))
        elif not strong:
            weak.append((m.start(), sides[-1]))
    alone = text.strip_opening(part).strip(" .\n")
    return found or [(at, formula) for at, formula in weak if formula == alone]


def _equal(given: str, wanted: Sequence[str], sides: Sequence[str]) -> bool | None:
    """Whether a formula equals a gold formula, of whose equations ``sides`` are compared; None: nothing can tell."""
    if any(_signs(given) == _signs(side) for side in sides):
        return True
    if not available_here():
        return None
    if _CONSTANT.search(given) and all(_CONSTANT.search(g) for g in wanted):  # of integration
        given, wanted = (_CONSTANT.sub("", given), [_CONSTANT.sub("", g) for g in wanted])
    verdicts = [verify(given, _cleaned(g)) for g in wanted]
    return True if any(verdicts) else None if all(v is None for v in verdicts) else False


def _form_open(given: str, question: str | None) -> bool:
    """Whether a formula of the right value may not have the form that a question asks for: "x + x" for 2x."""
    if question is None:
        return False
    terms = {t for t in re.split(r"[+*/()^\[\]{}-]", _compact(given)) if t}
    asked = {*re.split(r"[^\w.\\]", _spaced(_cleaned(question)))}
    return _NAMED_FORM.search(question) is not None or terms <= asked


def _inside(formula: str, asked: str) -> bool:
    return re.search(rf"(?<![\w.^)+*/-]){re.escape(formula)}(?![\w^(]|\.\d|[+*/-]\w)", asked) is not None


def _signs(formula: str) -> str:
    """The signs of a formula in their order, without those that may be left out."""
    return re.sub(r"(?<=\d)\*(?=[A-Za-z(])|[{}]", "", _compact(formula))


def _letters(formula: str) -> str:
    """The signs of a formula in no order, without brackets and marks of products."""
    return "".join(sorted(fold(c) for c in re.sub(r"\\frac|[*/{}()\\]", "", _compact(formula))))


def _is_relation(gold: str, question: str | None) -> bool:
    """Whether an equation is not the value of its left side: "x + y = 3", unless the question asks for x + y."""
    left, equals, right = _spaced(_cleaned(gold)).partition("=")
    own = re.fullmatch(r"[^A-Za-z=]+", right.replace("\\pi", ""))
    drawn = re.fullmatch(r"(?:[xyz\d\s.+*/^(){}-]|\\frac)+", left) and re.search(r"[+*^-]|\d[xyz]|[xyz]{2}", left)
    return bool(equals and own and drawn) and not _inside(left, _spaced(_cleaned(question or "")))


def _last_side(gold: str) -> str:
    return _balanced(_cleaned(gold).rpartition("=")[2])


def _compact(formula: str) -> str:
    return re.sub(r"\s", "", formula)


def _spaced(formula: str) -> str:
    """A text without spaces around the operators of its formulas."""
    return re.sub(r"[ \t]*([+*/^=-])[ \t]*", r"\1", formula).strip()


def _balanced(side: str) -> str:
    side = side.strip()
    while side.endswith((")", "]", "}")) and sum(side.count(c) for c in ")]}") > sum(side.count(c) for c in "([{"):
        side = side[:-1].strip()
    while side.startswith(("(", "[", "{")) and sum(side.count(c) for c in ")]}") < sum(side.count(c) for c in "([{"):
        side = side[1:].strip()
    return side.rstrip("+*/^-=([{ ")


def _cleaned(formula: str) -> str:
    """A formula without marks of layout, its signs and powers in ASCII."""
    formula = formula.translate(_SIGNS)
    for pattern, kept in _MARKS:
        formula = pattern.sub(kept, formula)
    return formula


SECONDS = 5


def is_plain_number(gold: str) -> bool:
    """True where a gold answer is one number with at most a unit or a noun, and no formula."""
    plain = numbers.normalized(gold)
    if numbers.parse(gold) is None:
        return False
    rest = plain
    for n in numbers.find_all(plain):
        rest = rest.replace(plain[n.start : n.end], " ", 1)
    rest = re.sub(r"(?<=[a-z])\s?\^\s?[23]", "", rest)
    if len(numbers.candidates(plain)) == 1:
        rest = re.sub(r"(?<=[a-z]),(?=\s)", "", rest)  # "2 hours, 15 minutes"
    if re.search(r"[\d\\=^()\[\],*+]", rest):
        return False
    return all(len(w) > 1 or w.lower() in words.UNITS for w in re.findall(r"°?[A-Za-z]+", rest))


def available_here() -> bool:
    """math-verify limits its time by a signal, which only the main thread can receive."""
    return threading.current_thread() is threading.main_thread()


def verify(answer: str, gold: str) -> bool | None:
    """Whether math-verify finds them equal (None: unread). Raises ``RuntimeError`` outside the main thread."""
    if not available_here():
        raise RuntimeError("math-verify needs the main thread: its time limit is a signal")
    import logging

    from math_verify import parse
    from math_verify import verify as equal

    logging.getLogger("math_verify").setLevel(logging.CRITICAL)
    wanted, given = (parse(_as_math(t), parsing_timeout=SECONDS) for t in (gold, answer))
    if not wanted or not given:
        return None
    return bool(equal(wanted, given, timeout_seconds=SECONDS))


def _as_math(text: str) -> str:
    text = text.strip()
    return text if "$" in text or "\\boxed" in text else f"${text}$"


@dataclass(frozen=True)
class SecondOpinion:
    """How often math-verify and the number rules differ, and on which answers."""

    n: int
    """Answers that both could judge."""
    n_unread: int
    """Answers that math-verify could not read."""
    disagreements: tuple[tuple[str, str, bool], ...]
    """(answer, gold, verdict of the rules) of the answers on which they differ."""


def second_opinion(rows: Iterable[Graded]) -> SecondOpinion:
    """Let math-verify judge again what was matched, or not, as a number; main thread only."""
    n = unread = 0
    differ = []
    for row in rows:
        decided = row.outcome in ("correct", "incorrect") and row.match in (None, "numeric", "math-verify")
        if not (row.answer and row.gold and decided and any(c.isdigit() for c in row.gold)):
            continue
        theirs, ours = verify(row.answer, row.gold), row.outcome == "correct"
        if theirs is None:
            unread += 1
            continue
        n += 1
        if theirs != ours:
            differ.append((row.answer, row.gold, ours))
    return SecondOpinion(n, unread, tuple(differ))
