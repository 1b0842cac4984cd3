"""Find where a wrong answer came from, by rules over the case, its graded answers and the response.

The rules run from the clearest to the least certain: no answer, a response that repeats itself, the answer of a part,
other items or operands than the case needs, something else that the question names, the right answer of another case.
If no rule applies, the origin is ``unclear``. The rules do not guess, and they do not look into the model.
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from ...evaluation.asks import Response
from ...evaluation.case import Case
from ...evaluation.earlier_part import earlier_part
from ...evaluation.graded import Graded
from ...evaluation.protocols.counting import truth
from ..run.reader import RunData

LOOP, BRIDGE, STOPPED, OPERAND, RESULT, LISTED = "loop", "bridge", "stopped", "operand", "result", "listed"
NAMED, ELSEWHERE, ABSTAINED, INVALID, UNCLEAR = "named", "elsewhere", "abstained", "invalid", "unclear"
KINDS = {
    OPERAND: "used a wrong operand", BRIDGE: "answered the bridge", STOPPED: "stopped after an earlier part",
    RESULT: "right operands, wrong result", LISTED: "wrong items or order",
    NAMED: "named something else in the question",
    ELSEWHERE: "gave the right answer of another case", LOOP: "repeated itself", ABSTAINED: "gave no answer",
    INVALID: "could not be judged", UNCLEAR: "unclear",
}  # fmt: skip
"""The text on the page for each kind, most common reasons first."""
MEANS = {
    OPERAND: "the calculation that it wrote has another number in place of one that the case needs",
    BRIDGE: "the answer is that of an earlier part (the bridge between the parts), given at once",
    STOPPED: "it works step by step, and ends with the answer of an earlier part",
    RESULT: "the calculation that it wrote has the numbers that the case needs, and another result",
    LISTED: "items of the list are left out, added, or in another order",
    NAMED: "the answer is something else that the question names",
    ELSEWHERE: "the answer is the right one of another case of the same family",
    LOOP: "the answer ends with the same words three times or more",
    ABSTAINED: "it declined to answer",
    INVALID: "no rule and no judge can say whether the answer is right",
    UNCLEAR: "no rule says where the answer came from",
}
"""What each kind means. The rules read the answer only: they say what it looks like, not what happened inside."""
_NUMBER = re.compile(r"(?<![\w.])-?\d+(?:[.,]\d+)*")
_ZEROS = re.compile(r"\.0+$")
_SPECIAL = re.compile(r"<\|?[\w-]{1,20}\|?>")
_COPULA = re.compile(r"\b(?:is|are|was|were)\b|[.!?](?:\s|$)", re.IGNORECASE)
_STEPS = re.compile(r"[.!?;\n]\s*\S|\bis\b.*\d")
_AROUND = "?!,;:()[]\"'“”‘’„«»"
_LONGEST, _TIMES = 12, 3


@dataclass(frozen=True)
class Origin:
    """The origin of one wrong answer."""

    kind: str
    detail: str = ""
    """Details in the answer's own words or numbers; may be empty."""


def origins(run: RunData) -> dict[str, Origin]:
    """The origin of each case's wrong whole; cases whose whole is right or was not asked are left out."""
    responses = run.responses
    elsewhere: dict[tuple[str | None, str], list[str]] = {}
    for case in run.cases.values():
        for right in {claimed(a) for a in (case.answer, *case.aliases)}:
            elsewhere.setdefault((case.family, right), []).append(case.id)
    found: dict[str, Origin] = {}
    for row in run.graded:
        case = run.cases.get(row.case)
        if row.role != "whole" or truth(row) is True or row.case in found:
            continue
        if case is None:
            found[row.case] = Origin(UNCLEAR)
            continue
        others = elsewhere.get((case.family, claimed(str(row.answer or ""))), [])
        found[row.case] = origin(case, row, responses.get(str(row.ask)), [c for c in others if c != case.id])
    return found


def origin(case: Case, row: Graded, response: Response | None, elsewhere: Sequence[str] = ()) -> Origin:
    """The origin of one wrong whole; ``elsewhere`` are cases of its family whose right answer was given."""
    said = _SPECIAL.sub(" ", response.text or "") if response else str(row.answer or "")
    if again := _repeated(said):
        return Origin(LOOP, f"“{again}” over and over")
    if row.outcome in (ABSTAINED, INVALID):
        return Origin(row.outcome, str(row.reason or ""))
    answer = claimed(str(row.answer or ""))
    if not answer:
        return Origin(UNCLEAR)
    tests = (_of_a_part(case, answer, str(row.answer), said), _listed(case, str(row.answer)), _operands(case, said),
             _named(case, str(row.answer)))  # fmt: skip
    if found := next((t for t in tests if t), None):
        return found
    more = f" and {len(elsewhere) - 1} more" if len(elsewhere) > 1 else ""
    # A small number, yes or no, or an option is the right answer of some other case by chance alone.
    told = elsewhere and not _NUMBER.fullmatch(answer) and case.answer_type not in ("boolean", "choice")
    return Origin(ELSEWHERE, f"right in {elsewhere[0]}{more}") if told else Origin(UNCLEAR)


def plain(text: str) -> str:
    """Text in the form used for comparison: lower case without accents, words and numbers only."""
    bare = "".join(c for c in unicodedata.normalize("NFKD", text.casefold()) if not unicodedata.combining(c))
    return " ".join(re.findall(r"[^\W_]+(?:[.,]\d+)*", bare))


def claimed(answer: str) -> str:
    """The claim of an answer: the shorter side of a sentence around ``is``; the longer side repeats the question.

    Of sides of one length it is the last: what stands before ``is`` is more often the question's.
    """
    sides = [plain(side) for side in _COPULA.split(answer)]
    sides = [side for side in sides if side]
    return re.sub(r"^(the|a|an) ", "", min(reversed(sides), key=lambda side: len(side.split()))) if sides else ""


def _repeated(text: str) -> str:
    """The words that a response repeats three times or more at its end; empty if it repeats none."""
    words = plain(text).split()
    for length in range(1, _LONGEST + 1):
        tail = words[-length:]
        if len(words) >= length * _TIMES and words[-length * _TIMES :] == tail * _TIMES:
            return " ".join(tail)
    return ""


def _of_a_part(case: Case, answer: str, sentence: str, said: str) -> Origin | None:
    """The answer of an earlier part, or one of several: given at once (the bridge), or as the last thing written."""
    for number, part in enumerate(case.parts, 1):
        golds = {claimed(a) for a in (part.answer, *part.aliases)}
        items = set(map(claimed, _items(part.answer))) if "list" in part.answer_type else set()
        right = {claimed(a) for a in (case.answer, *case.aliases)}
        if answer in (golds | items) - right:
            item = "" if answer in golds else "one item of "
            return Origin(_stop(said), f"{item}the answer of part {number}")
    number = earlier_part(case, sentence)
    return None if number is None else Origin(_stop(said), f"the answer of part {number}")


def _stop(said: str) -> str:
    return STOPPED if _STEPS.search(said.strip()) else BRIDGE


def _listed(case: Case, answer: str) -> Origin | None:
    """A list with other items than the right one, with fewer, or with the same items in another order."""
    if "list" not in case.answer_type:
        return None
    needed, given = (_items(text) for text in (case.answer, answer))
    more, missing = (list((Counter(a) - Counter(b)).elements()) for a, b in ((given, needed), (needed, given)))
    if not set(given) & set(needed):
        return None
    told = (("left out", missing, case.answer), ("too much", more, answer))
    said = [f"{what}: {', '.join(_written(i, text) for i in items)}" for what, items, text in told if items]
    return Origin(LISTED, "; ".join(said) or "the right items in another order")


def _items(answer: str) -> list[str]:
    return [item for piece in re.split(r",|;|\n|\band\b", answer) if (item := plain(piece))]


def _operands(case: Case, said: str) -> Origin | None:
    """A written calculation with other numbers than the case's own, or with the same numbers and another result."""
    worked = next((w for w in (case.worked, *(p.worked for p in reversed(case.parts))) if w), None)
    # the last number of a calculation is its result
    needed, used = (
        Counter(_ZEROS.sub("", n.replace(",", "")) for n in _NUMBER.findall(text)[:-1]) for text in (worked or "", said)
    )
    if sum(needed.values()) < 2 or sum(used.values()) != sum(needed.values()):
        return None
    other, missing = (" and ".join((a - b).elements()) for a, b in ((used, needed), (needed, used)))
    if other:
        return Origin(OPERAND, f"{other} where {missing} was needed")
    return Origin(RESULT, " and ".join(used.elements()))


def _named(case: Case, answer: str) -> Origin | None:
    """Words of the question itself, or of the facts given with it."""
    text = " ".join((case.question, *case.evidence))
    given = f" {plain(text)} "
    items = _items(answer)
    named = items and all(f" {claimed(item)} " in given for item in items)
    shown = _written(claimed(answer), text) if len(items) == 1 else answer
    return Origin(NAMED, f"“{shown}” is in the question") if named else None


def _written(wanted: str, text: str) -> str:
    """How ``text`` writes words that are in it in the form used for comparison.

    >>> _written("krakow", "Where is Kraków?")
    'Kraków'
    """
    words = text.split()
    found = [(piece, i) for i, word in enumerate(words) for piece in plain(word).split()]
    pieces, sought = [piece for piece, _ in found], wanted.split()
    starts = range(len(pieces) - len(sought) + 1)
    start = next((i for i in starts if pieces[i : i + len(sought)] == sought), None)
    if start is None:
        return wanted
    shown = " ".join(words[found[start][1] : found[start + len(sought) - 1][1] + 1]).strip(_AROUND)
    return shown.removesuffix(".") if shown.count(".") == 1 else shown
