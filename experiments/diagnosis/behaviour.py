"""What the answers alone show about a failure. The answers are those of a case and its variants."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from ...evaluation.case import Case
from ...evaluation.earlier_part import earlier_part
from ...evaluation.grading import lists
from ...evaluation.grading.text import holds, normalize, refuses
from ..organism import world
from .asks import BEHIND, BRIDGE, FILLER, GIVEN, NEUTRAL, OTHER, RELATION, REPEATED, Heard, operands, working
from .evidence import SHOWN, Behaviour, Behind, Followed, Tally
from .hypotheses import shown, tag_places


def behaviour(group: Sequence[Heard], shortcut: Followed | None = None, successes: Sequence[Heard] = ()) -> Behaviour:
    """The evidence in the answers; ``group`` is the case followed by its variants, ``successes`` are the run's."""
    failing = [one for one in group if one.fails]
    n = len(failing)
    causes = [shows(one) for one in failing]
    answers = {c: Tally(sum(s is not None and s.cause == c for s in causes), n) for c in SHOWN}
    said = {}
    for one in causes:
        if one is not None:
            said.setdefault(one.cause, one.what)
    tests = {"relation": RELATION, "bridge": BRIDGE, "repeated": REPEATED, "filler": FILLER}
    mended = {"neutral": _mended([one for one in failing if not _answer_is_a_step(one.case)], NEUTRAL)}
    mended |= {name: _mended(failing, role) for name, role in tests.items()}
    working = [one for one in failing if operands(one.case)]
    mended["operands"] = _mended(working, None)
    right = [one for one in working if not wrong_operands(one)]
    places = range(max((operands(one.case) for one in working), default=0))
    wrong = [p for p in places if 2 * sum(p in wrong_operands(one) for one in working) > len(working)]
    original = group[0]
    own = shows(original) if original.fails else None
    written = [on_the_table(one) for one in failing]
    operation = Tally(sum(_operation_wrong(one) for one in right), len(right))
    other = [one for one in right if _of_another_operation(one)]
    return Behaviour(
        original.fails, n, len(group) - 1, answers, own.cause if own else None, said,
        {k: t for k, t in mended.items() if t.n},
        Tally(len(right), len(working)), operation, Tally(len(other), len(right)),
        frozenset(str(one.case.worked) for one in other), wrong, shortcut, _unavailable(original),
        Tally(sum(map(exchanged, working)), len(working)),
        Tally(sum(k for k, _ in written), sum(n for _, n in written)),
        wrong_numbers=[(said, items) for one in failing for said, right, items in _numbers(one) if said != right],
        other_operand=_of_the_other(working),
        asked=_asked([one for one, s in zip(failing, causes, strict=True) if s is None and wrong_operands(one)]),
        own_operands_right=original in right, unknown=sum(not one.parts_right for one in group),
        specific=own is None or own.specific, behind=_behind(group, successes),
        last=f"part:{len(original.case.parts) - 1}",
    )  # fmt: skip


def _asked(wrong: Sequence[Heard]) -> Tally:
    """How many answers have the operation asked for behind their first number.

    An answer without a second number counts too, if the model writes a working for the last part.
    """
    words = []
    for one in wrong:
        said, gold = (working(text).words[1:2] for text in (one.text(), one.case.worked))
        writes = bool(said) or len(working(one.text(f"part:{len(one.case.parts) - 1}")).values) > 1
        words += [said == gold] if writes else []
    return Tally(sum(words), len(words))


def _answer_is_a_step(case: Case) -> bool:
    """Whether the right answer is one of its own steps ("5 times 1 is 5"): a model may then say the step alone."""
    steps = working(case.worked).values[:-1] if operands(case) else [part.answer for part in case.parts[:-1]]
    return normalize(case.answer) in map(normalize, steps)


def _mended(failing: Sequence[Heard], role: str | None) -> Tally:
    """How many are right with a role's text; if ``role`` is None, with all operands of the working stated.

    An answer that cannot be judged (a loop, an ambiguous name) counts as not right, as in the whole itself.
    """
    asked = [(one, role or GIVEN.format(operands(one.case))) for one in failing]
    found = [one.right(name) for one, name in asked if name in one.grades]
    return Tally(sum(r is True for r in found), len(found), found.count(None))


def _unavailable(one: Heard) -> dict[str, Tally]:
    """For each part with other wordings, how many of these are wrong (and how many cannot be judged)."""
    found: dict[str, list[bool | None]] = {}
    for role in sorted(one.grades):
        if role.startswith("part:") and ":paraphrase:" in role:
            found.setdefault(":".join(role.split(":")[:2]), []).append(one.right(role))
    return {part: Tally(said.count(False), len(said), said.count(None)) for part, said in found.items()}


def _behind(group: Sequence[Heard], successes: Sequence[Heard]) -> dict[str, Behind]:
    """For each part that can be asked behind the whole's context, how it is answered there."""
    original, found = group[0], {}
    failing = [one for one in group if one.fails]
    alike = [one for one in successes if one.case.family == original.case.family and one.case.id == one.variant.source]
    last, open = len(original.case.parts) - 1, not original.case.options and original.case.answer_type != "boolean"
    for i in range(last + 1):
        role = BEHIND.format(i)
        if role in original.grades:
            same, other = _as_whole(failing, role), [one for one in failing if OTHER in one.grades and i == last]
            wrong, asked = _wrong(failing, role), Tally(len(_as_whole(other, OTHER)), len(other))
            found[f"part:{i}"] = Behind(
                original in same, wrong, Tally(len(same), wrong.n), _wrong(alike, role), asked, open and i == last,
                original.right(role) is False,
            )  # fmt: skip
    return found


def _as_whole(some: Sequence[Heard], role: str) -> list[Heard]:
    """The variants that answer a role wrong, with exactly the answer that they give to the whole."""
    return [one for one in some if one.right(role) is False and _answer(one, role) == _answer(one, "whole")]


def _wrong(some: Sequence[Heard], role: str) -> Tally:
    """How many variants answer a role wrong; an answer that cannot be judged does not count as wrong."""
    said = [one.right(role) for one in some if role in one.grades]
    return Tally(said.count(False), len(said), said.count(None))


def _answer(one: Heard, role: str) -> str:
    return normalize(one.grades[role].answer or one.text(role))


def succeeds(one: Heard) -> bool:
    """Whether the whole and every part are right."""
    return one.right("whole") is True and all(one.right(f"part:{i}") for i in range(len(one.case.parts)))


def wrong_operands(one: Heard) -> list[int]:
    """Positions of operands that come out wrong when the operands before them are forced."""
    golds = working(one.case.worked).values
    return [i for i in range(operands(one.case)) if one.next_value(i)[0] != golds[i]]


def on_the_table(one: Heard) -> tuple[int, int]:
    """How many written operands belong to a thing on the table, and how many operands were written."""
    written = _numbers(one)
    return sum(said in tags for said, _, tags in written), len(written)


def _numbers(one: Heard) -> list[tuple[str, str, frozenset[str]]]:
    """Every operand that was written and has to be a thing's tag, the right one, and the tags of all things on the
    table."""
    if (found := shown(one.case)) is None:
        return []
    things, chosen = found
    tags = {t: str(world.world().tags[t]) for t in (*things, *chosen)}
    written = [(one.next_value(p)[0], tags[t]) for p, t in zip(tag_places(one.case, chosen), chosen, strict=False)]
    return [(said, right, frozenset(tags.values())) for said, right in written if said is not None]


def _of_the_other(some: Sequence[Heard]) -> Tally:
    """How many wrong operands of two have the value of the other one, and how many are wrong."""
    found = []
    for one in some:
        golds = working(one.case.worked).values[:2]
        if operands(one.case) == 2 and golds[0] != golds[1]:
            found += [one.next_value(i)[0] == golds[1 - i] for i in wrong_operands(one)]
    return Tally(sum(found), len(found))


def exchanged(one: Heard) -> bool:
    """Whether the operands of a worked answer have changed places. This pattern is not one of the causes."""
    golds, said = working(one.case.worked).values, working(one.text()).values
    return operands(one.case) == 2 and golds[0] != golds[1] and said[:2] == (golds[1], golds[0])


def _operation_wrong(one: Heard) -> bool:
    """Whether another operation is written, or another result comes out, although the right operands are forced.

    A number with the operation after it is not a result: the working goes on there ("6 times 9 is 6 times 9 is").
    """
    gold, last = working(one.case.worked), operands(one.case)
    if one.next_value(last, 1)[1] == gold.words[last - 1]:
        return False
    words = [one.next_value(i)[1] for i in range(1, last)]
    return words != list(gold.words[1:last]) or one.next_value(last)[0] != gold.values[last]


def _of_another_operation(one: Heard) -> bool:
    """Whether a result of the right operands, forced or written, is that of another operation on these two.

    A model that writes the operation itself ("7 times 3 is 21") may do the right one where that is forced.
    """
    *values, gold = working(one.case.worked).values
    if len(values) != 2:
        return False
    a, b = map(float, values)
    others = {a + b, a - b, b - a, a * b, *({a / b} if b else ()), *({b / a} if a else ())} - {float(gold)}
    written = working(one.text()).values
    as_written = written[-1] if len(written) > 2 and list(written[:2]) == values else None
    return any(said is not None and float(said) in others for said in (one.next_value(2)[0], as_written))


class Shown(NamedTuple):
    """A cause that the text of one answer shows."""

    cause: str
    what: str
    """What was seen, in words."""
    specific: bool = True
    """Whether the text names the fault (it declines). A noisy model makes answers that cannot be judged, too."""


def shows(one: Heard) -> Shown | None:
    """The cause that a wrong answer's own text shows; None if it shows no cause."""
    row, text, case = one.grades["whole"], one.text().strip(), one.case
    finish = one.responses["whole"].finish_reason if "whole" in one.responses else "stop"
    if _repeats(text, finish):
        # A noisy model repeats the numbers of a working.
        again = f"it repeats itself{' until the tokens run out' if finish == 'length' else ''}"
        return Shown("format", again, not operands(case))
    if row.outcome == "abstained" or refuses(text):
        return Shown("format", "it declines to answer")
    if (row.reason or "").startswith("stops at") or earlier_part(case, row.answer or text):
        said = row.answer or text
        # A word of the question, or one in place of a number with its working, is often written by a noisy model too.
        earlier = [name for part in case.parts[:-1] for name in (part.answer, *part.aliases)]
        named = any(holds(said, name) and holds(case.question, name) for name in earlier)
        return Shown("answers-bridge", f"it answers {said[:60]!r}, the answer of a part", not case.worked and not named)
    if case.answer_type in ("list", "ordered-list"):
        if listed := _of_list(row.answer or text, case):
            return Shown(*listed)
    elif near := _near(case, text):
        return Shown(*near, not operands(case))
    if row.outcome == "invalid":
        return Shown("format", f"it cannot be judged ({row.reason}): {text[:60]!r}", specific=False)
    if operands(case) and not working(text).values:
        return Shown("format", f"it has no number: {text[:60]!r}", specific=False)
    return None


def _repeats(text: str, finish: str) -> bool:
    """Whether words come again and again, or anything at all until the tokens run out. A line of dashes, the rule of a
    table and the zeros of a large number do not repeat an answer."""
    for found in re.finditer(r"(.{3,60}?)\1{3,}", text, re.DOTALL):
        words = re.search(r"[^\W_]", found[0]) and not re.fullmatch(r"[\d.,]+", found[0])
        if words or (finish == "length" and len(text) - found.end() < len(found[1])):
            return True
    return False


def _of_list(answer: str, case: Case) -> tuple[str, str] | None:
    """How a list differs from the right one: in its order, by an extra item, or by a missing or replaced item."""
    given, gold = lists.split(answer), lists.split(case.answer)
    left, found = list(given), 0
    for item in gold:  # each item given stands for one right one, also where a list holds an item twice
        here = next((i for i, other in enumerate(left) if lists.same(item, other)), None)
        if here is not None:
            del left[here]
            found += 1
    what = f"{len(given)} items, {found} of the {len(gold)} right ones among them"
    if found == len(gold):
        return ("near-miss", what) if len(given) > len(gold) else ("order-error", f"{what}, in another order")
    return ("item-missing", what) if 2 * found >= len(gold) else None


def _near(case: Case, text: str) -> tuple[str, str] | None:
    """How an answer comes close to the right one, or holds it and goes on; None if it does not."""
    if operands(case):
        gold, seen = working(case.worked), working(text)
        if seen.values == gold.values:
            return "near-miss", "the working is right, but the graded answer is not its result"
        if seen.values[: len(gold.values)] == gold.values:
            return "format", "the working is right, but it goes on with more numbers"
        if seen.values == gold.values[:-1]:
            return "near-miss", "the operands are right, but there is no result"
        n = operands(case)
        if seen.values[:n] == gold.values[:n] and seen.words[n + 1 : n + 2] == gold.words[n - 1 : n]:
            return "format", "the operands are right, but the working goes on where it should end"
        return None
    names = [n for n in (case.answer, *case.aliases) if not holds(case.question, n)]
    letters = [n for n in names if case.answer_type == "choice" and len(n) == 1]  # "a" is a word as well
    if any(f"({n})" in text if n in letters else holds(text, n) for n in names):
        return "near-miss", "the text contains the right answer"
    return None
