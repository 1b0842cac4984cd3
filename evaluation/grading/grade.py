"""One response, one grade: correct, incorrect, abstained, or invalid with the reason.

A response without an answer (cut off, no tag, no cue, no number) is invalid and never wrong, and so is one without a
cue whose last number is wrong while the right one stands in the same sentence ("12 apples in 3 boxes"): by rule the
last number counts, and here nobody can tell. A ``compat`` mode may ask for a paper's own rule instead.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from ...errors import InputError
from ..asks import Grade
from ..cases import ANSWER_TYPES
from ..prompts import ABSTENTION
from . import compat as published
from . import dates, lists, mathematics, numbers, text
from .extract import CODE, Extracted, extract, visible

_DECLINED_WORDS = 40
"""Words of a response that is nothing but a refusal."""
_Verdict = Grade | None
"""None: this text holds no answer of the type."""


def grade(
    response_text: str,
    finish_reason: str,
    gold: str,
    answer_type: str,
    aliases: Sequence[str] = (),
    format: str = "plain",
    compat: str | None = None,
    unknowable: bool = False,
) -> Grade:
    """Grade one response against its gold answer.

    ``answer_type`` is one of ``cases.ANSWER_TYPES``, ``format`` a name of ``prompts.FORMATS`` (or ``pair-q1``). On
    ``unknowable`` questions abstaining is correct and any answer incorrect. ``compat`` reproduces a paper's own rule:
    ``agentcoma`` (last number, no number is 0), ``stad`` (last JSON answer; no answer is wrong) or ``collapse``
    (no answer is wrong; years within one year and last names count).

    Raises ``InputError`` for an unknown answer type, format or mode.
    """
    if answer_type not in ANSWER_TYPES:
        raise InputError(f"answer_type is {answer_type!r}; use one of {', '.join(ANSWER_TYPES)}")
    if compat is not None and compat not in published.MODES:
        raise InputError(f"compat is {compat!r}; use one of {', '.join(published.MODES)}")
    if finish_reason == "error":
        return Grade("invalid", None, None, "error")
    if compat == "agentcoma" and answer_type == "number":
        return published.agentcoma_number(response_text, gold)
    if compat == "agentcoma" and not published.agentcoma_has_cue(response_text):
        return Grade("incorrect", None, None, "compat:no-cue")
    if format == CODE:
        found = _run(response_text, finish_reason)
    elif compat == "stad":
        found = Extracted((published.stad_answer(response_text),))
    else:
        found = extract(response_text, format, finish_reason)
        if compat is None and found.reason in ("no-cue", "no-answer-tag"):
            found = _declined(response_text) or found
    result = _judge(found, gold, answer_type, tuple(aliases), compat == "collapse", unknowable)
    if result.outcome == "invalid" and compat in ("stad", "collapse"):
        return Grade("incorrect", result.answer, None, f"compat:{result.reason}")
    return result


def _declined(response_text: str) -> Extracted | None:
    """A response that declines to answer needs no cue or tag to say so; None for any other."""
    shown = re.sub(r"</?\w+>", " ", visible(response_text) or "").strip()
    if text.normalize(shown.rsplit("\n", 1)[-1]) == text.normalize(ABSTENTION):
        return Extracted((ABSTENTION,))
    short = len(shown.split()) <= _DECLINED_WORDS
    return Extracted((shown,)) if short and (text.abstains(shown) or text.refuses(shown)) else None


def _run(response_text: str, finish_reason: str) -> Extracted:
    """What a program in the response returns, run in the sandbox; no answer, with the reason, where it does not."""
    from ..sandbox import run_answer

    # Only the thinking is left out: squeezing spaces would undo the program's indentation.
    shown = response_text.rpartition("</think>")[2] if visible(response_text) is not None else ""
    result = run_answer(shown)
    if result.ok and result.text is not None:
        return Extracted((result.text,), cued=True)
    if finish_reason == "length":
        return Extracted((), reason="truncated")
    return Extracted((), reason=f"code: {result.reason or 'no value'}")


def _judge(
    found: Extracted, gold: str, answer_type: str, aliases: tuple[str, ...], consistency: bool, unknowable: bool
) -> Grade:
    if not found.segments:
        return Grade("invalid", None, None, found.reason)
    if text.abstains(found.segments[0]):
        right = unknowable or text.normalize(gold) == text.normalize(ABSTENTION)
        return Grade("correct" if right else "abstained", ABSTENTION, "abstention" if right else None)
    if text.refuses(found.segments[0]):
        return Grade("abstained", found.segments[0], None, "refusal")
    if unknowable:
        return Grade("incorrect", found.segments[0], None, "unknowable")
    compare = _COMPARISONS[answer_type]
    for segment in found.segments:
        verdict = compare(segment, (gold, *aliases), found.cued, consistency)
        if verdict is not None:
            return verdict
    return Grade("invalid", None, None, "no-answer")


def _right(answer: str, match: str) -> Grade:
    return Grade("correct", answer, match)


def _wrong(answer: str, reason: str | None = None) -> Grade:
    return Grade("incorrect", answer, None, reason)


def _number(segment: str, golds: Sequence[str], cued: bool, consistency: bool) -> _Verdict:
    wanted = [numbers.parse(g) if is_plain_number(g) else None for g in golds]
    if wanted[0] is None:
        return _formula(segment, golds)
    found = numbers.answer(segment, first=cued)
    if found.number is None:
        if found.reason == "hedged":
            return _wrong(segment, "hedged")
        if found.reason == "expression":
            return Grade("invalid", segment, None, "expression without a result")
        return None
    shown = numbers.show(found.number)
    if any(w is not None and numbers.equal(found.number, w) for w in wanted):
        return _right(shown, "numeric")
    # an answer that is a formula ("\sqrt{16}") may still equal a plain gold number
    if re.search(r"\\(?:sqrt|pi|sum|binom)", segment) and mathematics.available_here():
        if any(mathematics.verify(segment, g) for g in golds):
            return _right(segment, "math-verify")
    rivals = numbers.later(segment) if cued else numbers.rivals(segment)
    if any(w is not None and numbers.equal(n, w) for n in rivals for w in wanted):
        # two numbers in the sentence that answers, and the rule takes the other one: nobody can tell by rule
        return Grade("invalid", segment, None, "several numbers")
    gold = wanted[0]
    unit = found.number.dimension and gold.dimension and found.number.dimension != gold.dimension
    return _wrong(shown, "unit" if unit else None)


def is_plain_number(gold: str) -> bool:
    """True where a gold answer is one number with at most a unit or a noun, and no formula."""
    plain = numbers.normalized(gold)
    if numbers.parse(gold) is None:
        return False
    rest = plain
    for n in numbers.find_all(plain):
        rest = rest.replace(plain[n.start : n.end], " ", 1)
    rest = re.sub(r"(?<=[a-z])\s?\^\s?[23]", "", rest)
    if re.search(r"[\d\\=^()\[\],*+]", rest):
        return False
    return all(len(w) > 1 or w.lower() in numbers.units.UNITS for w in re.findall(r"°?[A-Za-z]+", rest))


def _formula(segment: str, golds: Sequence[str]) -> _Verdict:
    if not re.search(r"\d|\\", golds[0]):
        return _text(segment, golds, True, False)
    if any(re.sub(r"[\s$]", "", segment.rstrip(".")) == re.sub(r"[\s$]", "", g) for g in golds):
        return _right(segment, "exact")
    if not mathematics.available_here():
        return Grade("invalid", segment, None, "math-verify needs the main thread")
    verdicts = [mathematics.verify(segment, g) for g in golds]
    if any(verdicts):
        return _right(segment, "math-verify")
    return None if all(v is None for v in verdicts) else _wrong(segment)


def _date(segment: str, golds: Sequence[str], cued: bool, consistency: bool) -> _Verdict:
    wanted = [d for g in golds if (d := dates.parse(g)) is not None]
    if not wanted:
        return _text(segment, golds, cued, consistency)
    found = dates.answer(segment, first=cued)
    if found.date is None and found.reason == "no-answer":
        return None
    tolerance = 1 if consistency else 0
    if found.date is not None:
        matches = [m for gold in wanted if (m := dates.compare(found.date, gold, tolerance)) is not None]
        if matches:
            return _right(dates.show(found.date), matches[0])
    if not cued and any(dates.compare(d, gold, tolerance) for d in dates.rivals(segment) for gold in wanted):
        # as with numbers: two dates in the sentence that answers, and nobody can tell by rule which one is meant
        return Grade("invalid", segment, None, "several dates")
    if found.date is None:
        return _wrong(segment, found.reason)
    shown = dates.show(found.date)
    return _wrong(shown, "incomplete" if dates.incomplete(found.date, wanted[0]) else None)


def _text(segment: str, golds: Sequence[str], cued: bool, consistency: bool) -> _Verdict:
    match = text.match(segment, golds, consistency)
    if match is not None:
        return _right(segment, match)
    return _wrong(segment) if text.normalize(segment) else None


def _list(ordered: bool) -> Callable[[str, Sequence[str], bool, bool], _Verdict]:
    def compare(segment: str, golds: Sequence[str], cued: bool, consistency: bool) -> _Verdict:
        given = lists.split(segment)
        if not given:
            return None
        results = [lists.compare(given, lists.split(g), ordered) for g in golds]
        shown = ", ".join(given)
        if any(equal for equal, _ in results):
            return _right(shown, "ordered" if ordered else "set")
        return _wrong(shown, results[0][1])

    return compare


def _boolean(segment: str, golds: Sequence[str], cued: bool, consistency: bool) -> _Verdict:
    given, wanted = text.boolean(segment), text.boolean(golds[0])
    if wanted is None:
        raise InputError(f"gold answer {golds[0]!r} is no boolean; use yes or no, or another answer_type")
    if given is None:
        return None
    shown = "yes" if given else "no"
    return _right(shown, "exact") if given == wanted else _wrong(shown)


_COMPARISONS: dict[str, Callable[[str, Sequence[str], bool, bool], _Verdict]] = {
    "text": _text,
    "number": _number,
    "date": _date,
    "list": _list(ordered=False),
    "ordered-list": _list(ordered=True),
    "boolean": _boolean,
}
