"""Shortcuts: simple rules that a model may follow instead of composing. Each rule predicts an answer.

A hypothesis is a function of a case (and of similar cases of its run). It returns what a model that follows it would
write: the whole's answer, or each operand of a worked answer. It is tested on the edits that can tell it apart:
variants for which it predicts something other than the right answer. A plugin adds hypotheses: ``HYPOTHESES = {"name":
function}``.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import takewhile

from ...errors import ComposcopeError, InputError
from ...evaluation.case import Case
from ...evaluation.grading import lists
from ...evaluation.grading.text import holds
from ...registry import Registry
from ..organism import world
from ..organism.plants.lessons import usual
from .asks import NUMBER, operands, without_commas, working

PLACES = 12
"""The last place of a list at which an item is looked for, counted from 1."""
Hypothesis = Callable[[Case, Sequence[Case]], Sequence[str | None]]
"""The prediction: one value for each operand of a worked answer, else one answer; None if there is no prediction."""


def shown(case: Case) -> tuple[list[str], list[str]] | None:
    """The things on a case's table, and the right ones among them; None for a case without a table of known things.

    Your own cases do not say what is on the table, so it is read from the list in the question that holds the first
    part's answer ("On the table: A, B, C. What is ...?").
    """
    things, chosen, tags = case.meta.get("things"), case.meta.get("chosen"), world.world().tags
    if not (isinstance(things, list) and isinstance(chosen, list)):
        chosen = lists.split(case.parts[0].answer) if len(case.parts) > 1 else []
        things = next((found for found in lists_in(case.question) if chosen and set(chosen) <= set(found)), [])
    return (things, chosen) if things and all(t in tags for t in (*things, *chosen)) else None


def tag_places(case: Case, chosen: Sequence[str]) -> list[int]:
    """Which of the written numbers are the tags of the right things: those that do not stand in the question."""
    given = set(_numbers_in(case))
    places = [i for i in range(n) if working(case.worked).values[i] not in given] if (n := operands(case)) else [0]
    return places if len(places) == len(chosen) else []


def _things(case: Case, choose: Callable[[Sequence[str], str], str | None]) -> Sequence[str | None]:
    """For cases with things on a table: each right thing is replaced by the tag of another one."""
    if (found := shown(case)) is None:
        return ()
    things, chosen = found
    said: list[str | None] = [None] * max(1, operands(case))
    for place, right in zip(tag_places(case, chosen), chosen, strict=False):
        thing = choose(things, right)
        said[place] = None if thing is None else str(world.world().tags[thing])
    return tuple(said) if any(said) else ()


def _at(*places: int, by_tag: bool = False) -> Hypothesis:
    """Things at fixed positions of the table, one for each operand; with ``by_tag`` of the table in order of tags."""

    def say(case: Case, mates: Sequence[Case]) -> Sequence[str | None]:
        left = list(places)

        def choose(things: Sequence[str], right: str) -> str | None:
            things = sorted(things, key=world.world().tags.__getitem__) if by_tag else things
            at = left.pop(0) if left else len(things)
            return things[at] if -len(things) <= at < len(things) else None

        return _things(case, choose)

    return say


def _beside(step: int) -> Hypothesis:
    def choose(things: Sequence[str], right: str) -> str | None:
        at = things.index(right) + step if right in things else -1
        return things[at] if 0 <= at < len(things) else None

    return lambda case, mates: _things(case, choose)


def _next_of_kind(things: Sequence[str], right: str) -> str:
    """The next thing of the right one's kind; the first one follows the last."""
    kind = world.KINDS[world.world().kinds[right]]
    return kind[(kind.index(right) + 1) % len(kind)]


def _numbers_in(case: Case) -> list[str]:
    return list(map(without_commas, re.findall(rf"(?<![\w.]){NUMBER}(?!\w)", case.question)))


def _copied(pick: Callable[[Sequence[str]], str]) -> Hypothesis:
    """A number of the question copied as the answer, or as each operand of a worked answer."""

    def say(case: Case, mates: Sequence[Case]) -> Sequence[str | None]:
        found = _numbers_in(case)
        return (pick(found),) * max(1, operands(case)) if found and case.answer_type == "number" else ()

    return say


def _copied_in_order(case: Case, mates: Sequence[Case]) -> Sequence[str | None]:
    """The numbers of the question in their order, one for each operand of a worked answer."""
    found, n = _numbers_in(case), operands(case)
    return tuple(found[:n]) if 1 < n <= len(found) else ()


def _beside_operand(step: int) -> Hypothesis:
    """Each operand of a worked answer has the value of the one before it (-1) or behind it (1)."""

    def say(case: Case, mates: Sequence[Case]) -> Sequence[str | None]:
        n = operands(case)
        values = working(case.worked).values[:n] if n > 1 else ()
        return tuple(values[i] if 0 <= (i := place + step) < n else None for place in range(len(values)))

    return say


def items_of(text: str) -> list[str]:
    return re.split(r",\s*(?:and |or )?|\s+(?:and|or)\s+", text.rstrip("?. "))


def lists_in(question: str) -> list[list[str]]:
    """The items of each list behind a colon ("On the table: A, B, C. ..."), which is not that of a pair's question."""
    return [items_of(text) for text in re.findall(r"(?<!Q[12]): ([^:.?]+,[^:.?]+)[.?]", question)]


def listed(question: str) -> list[str]:
    """The items behind a question's colon ("Which of these happened first: A, B or C?"); several questions are none."""
    _, colon, tail = question.partition(": ")
    return items_of(tail) if colon and tail.count("?") < 2 else []


def _listed(which: int) -> Hypothesis:
    """An item of the question's list."""

    def say(case: Case, mates: Sequence[Case]) -> Sequence[str | None]:
        items = listed(case.question)
        return (items[which],) if len(items) > 1 and not case.worked and "things" not in case.meta else ()

    return say


def _instead(which: int) -> Hypothesis:
    """The last part's answer for an item of the list that holds its bridge ("On the table: A, B, C. What is ...?").

    It is known if some part in the run asks about that item.
    """

    def say(case: Case, mates: Sequence[Case]) -> Sequence[str | None]:
        if case.worked or "things" in case.meta or len(case.parts) != 2:
            return ()
        bridge, last = case.parts
        items = next((found for found in lists_in(case.question) if bridge.answer in found), [])
        if not -len(items) <= which < len(items) or bridge.answer not in last.question:
            return ()
        asked = last.question.replace(bridge.answer, items[which])
        return (next((answer for question, answer in _last_parts(mates) if question == asked), None),)

    return say


def _last_parts(cases: Iterable[Case]) -> Iterator[tuple[object, str]]:
    """Question and answer of the last parts of cases, and of the variants that they state."""
    for case in cases:
        yield from ((part.question, part.answer) for part in case.parts[-1:])
        stated = case.meta.get("variants")
        for variant in stated if isinstance(stated, list) else ():
            parts = variant.get("parts") if isinstance(variant, dict) else None
            part = parts[-1] if isinstance(parts, list) and parts else None
            if isinstance(part, dict) and isinstance(part.get("answer"), str):
                yield part.get("question"), part["answer"]


def _place(which: int) -> Hypothesis:
    """The thing or item at one place of the table or list, whatever is asked for."""
    return lambda case, mates: _at(which, which)(case, mates) or _instead(which)(case, mates)


def _usual(case: Case, mates: Sequence[Case]) -> Sequence[str | None]:
    """The most frequent answer of the family; None if no answer is the most frequent."""
    answers = Counter(m.answer for m in mates if m.family == case.family).most_common(2)
    if case.worked or len(answers) < 2 or answers[0][1] == answers[1][1]:
        return ()
    return (answers[0][0],)


def _asked_about(case: Case, mates: Sequence[Case]) -> Sequence[str | None]:
    """The entity that the whole asks about: the words in which its first part differs from those of its family."""
    if case.worked or "things" in case.meta or not case.parts:
        return ()
    mine, found = case.parts[0].question.split(), ""
    for other in (m.parts[0].question.split() for m in mates if m.family == case.family and m.parts):
        start = _shared(mine, other)
        end = len(mine) - _shared(mine[start:][::-1], other[start:][::-1])
        words = " ".join(mine[start:end]).strip("?., ")
        found = words if len(words) > len(found) and holds(case.question, words) else found
    return (found,) if found else ()


def _shared(a: Sequence[str], b: Sequence[str]) -> int:
    """How many words are the same, counted from the first; a question mark is not part of a word."""
    same = (x.rstrip("?") == y.rstrip("?") for x, y in zip(a, b, strict=False))
    return sum(1 for _ in takewhile(bool, same))


def _checked(name: str, say: Hypothesis) -> Hypothesis:
    """A plugin's function with its return values checked: one text becomes one value, and nothing becomes none."""

    def checked(case: Case, mates: Sequence[Case]) -> Sequence[str | None]:
        try:
            said = say(case, mates)
        except ComposcopeError:
            raise
        except Exception as e:
            file = getattr(getattr(say, "__code__", None), "co_filename", "a plugin")
            raise InputError(
                f"{file}: HYPOTHESES[{name!r}] on case {case.id!r}: {type(e).__name__}: {e}; fix the function"
            ) from e
        said = () if said is None else (said,) if isinstance(said, str) else said
        if not isinstance(said, list | tuple) or not all(s is None or isinstance(s, str) for s in said):
            raise InputError(f"HYPOTHESES[{name!r}] on case {case.id!r}: {said!r:.80}; return one text per operand")
        return said

    return checked


NUMBERS = ("first-number", "last-number", "largest-number", "smallest-number", "numbers-in-order")
"""Shortcuts that copy numbers of the question, and not tags of things."""
USUAL_OPERAND, REPEATED, AFTER = "usual-operand", "operand-before", "operand-after"
UNWRITTEN = ("usual-of-kind", "usual-answer", USUAL_OPERAND, REPEATED, AFTER)
"""Shortcuts to a value that the model knows or wrote before. They copy no words of the question, even if it happens to
hold the value."""
HYPOTHESES: Registry[Hypothesis] = Registry("hypotheses", lambda value: False, None, _checked)
"""The shipped hypotheses, and those of plugins."""
HYPOTHESES.own = {
    "first-item": lambda case, mates: _place(0)(case, mates) or _listed(0)(case, mates),
    "last-item": lambda case, mates: _place(-1)(case, mates) or _listed(-1)(case, mates),
    **{f"item-{n}": _place(n - 1) for n in range(2, PLACES + 1)},
    "first-items": _at(0, 1),
    "last-items": _at(-2, -1),
    "first-and-last-item": _at(0, -1),
    "item-before": _beside(-1),
    "item-after": _beside(1),
    "sibling": lambda case, mates: _things(case, _next_of_kind),
    "usual-of-kind": lambda case, mates: _things(case, lambda _, right: usual(world.world().kinds[right])),
    "largest-item": _at(-1, -1, by_tag=True),
    "smallest-item": _at(0, 0, by_tag=True),
    "largest-items": _at(-1, -2, by_tag=True),
    "smallest-items": _at(0, 1, by_tag=True),
    "first-number": _copied(lambda numbers: numbers[0]),
    "last-number": _copied(lambda numbers: numbers[-1]),
    "largest-number": _copied(lambda numbers: max(numbers, key=float)),
    "smallest-number": _copied(lambda numbers: min(numbers, key=float)),
    "numbers-in-order": _copied_in_order,
    REPEATED: _beside_operand(-1),
    AFTER: _beside_operand(1),
    "usual-answer": _usual,
    "entity-asked-about": _asked_about,
}


THEN = "-then-"
"""Between the names of the shortcuts of the first operand and the second one."""


def one_for_each(names: Sequence[str]) -> Hypothesis:
    """A different shortcut for each operand."""

    def say(case: Case, mates: Sequence[Case]) -> Sequence[str | None]:
        said = [HYPOTHESES[name](case, mates) for name in names]
        return tuple(s[place] if place < len(s) else None for place, s in enumerate(said))

    return say


def copied_from(name: str, case: Case, mates: Sequence[Case], place: int) -> str | None:
    """The words of the question that a shortcut takes its value from; None if it takes none from there."""
    names = name.split(THEN)
    name = names[min(place, len(names) - 1)]
    if name in UNWRITTEN:
        return None
    said = HYPOTHESES[name](case, mates)
    value = said[place] if place < len(said) else None
    if value is not None and name not in NUMBERS and (table := shown(case)) is not None:
        value = next((thing for thing in table[0] if str(world.world().tags[thing]) == value), None)
    return value if value is not None and holds(case.question, value) else None
