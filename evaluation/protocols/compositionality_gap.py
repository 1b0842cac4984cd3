"""The compositionality gap (AgentCoMa; Press et al. 2023): how much less often the whole is right than all its steps.

    get("compositionality-gap").reduce(rows).metrics

For each case: c_i (step i right), b = all c_i, w (whole right). gap = mean(w) - mean(b), negative when composing
fails (AgentCoMa, section 4); Press gap = P(w wrong | b); independence gap = mean(w) - prod_i mean(c_i).
"""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np

from ...errors import InputError
from .. import prompts
from ..asks import Ask, Grade
from ..case import Case
from ..graded import Graded
from ..metrics import Metric
from . import counting
from .asking import ask_again, ask_part, ask_whole, check_formats, pending
from .base import About, Reduction
from .counting import Item, Truth
from .presenting import Exemplar

WRONG, RIGHT = "both-right-whole-wrong", "both-right-whole-right"
"""Names of the two case sets."""
_EXTRA = ":extra-context"
_REVERSED = "reversed"


def _mixed(items: Sequence[dict[str, str]]) -> list[Exemplar]:
    """The commonsense step, the math step, the whole, and the whole with follow-up questions.

    Steps of any other kind (other benchmarks have them) take examples of both kinds in turn.
    """
    found = []
    for i, item in enumerate(items):
        steps = [(item[kind], item[f"{kind}_answer"]) for kind in ("commonsense", "math")]
        found += [
            Exemplar(kind, item[key], item[f"{key}_answer"], item[f"{key}_worked"])
            for kind, key in (("commonsense", "commonsense"), ("math", "math"), ("whole", "composition"))
        ]
        found.append(replace(found[-3 + i % 2], kind="part"))
        found.append(Exemplar("self-ask", item["composition"], item["composition_answer"], prompts.self_ask(steps)))
    return found


@dataclass(frozen=True)
class CompositionalityGap:
    """``--protocol compositionality-gap``.

    ``format`` is the prompt format of parts and whole; ``extra_context`` also asks the parts with the whole's
    irrelevant numbers added (AgentCoMa, App. K), where the benchmark has such wordings; ``also`` lists formats in
    which the whole is asked again (``self-ask``, ``cot``, ``thinking``), ``reversed`` also asks wholes whose steps come
    in the other order (App. J: ``meta["reversed"]``, a question or an object with question and answer), ``seed`` is
    that of the bootstrap intervals.
    """

    format: str = "cot"
    extra_context: bool = True
    also: tuple[str, ...] = ()
    reversed: bool = False
    max_tokens: int | None = None
    compat: str | None = None
    seed: int = 0
    name: str = field(default="compositionality-gap", init=False)
    about: ClassVar = About(
        roles=("whole", "part:N", "part:N:extra-context", "whole:WAY", "self-ask"),
        needs=("whole", "part:0"),
        options={"also": "also", "reversed": "reversed", "extra_context": "extra_context"},
        asks_parts=True,
        short_answers=True,
        two_steps=True,
        headline=tuple((name, ()) for name in ("step:0", "step:1", "both", "composition", "gap", "press_gap")),
        columns=(
            ("press_gap", "whole wrong, both parts right", "rate"),
            ("both", "both parts right", "rate"),
            ("composition", "whole right", "rate"),
            ("gap", "whole − both", "points"),
        ),
        examples=("mixed.jsonl", _mixed),
    )

    def __post_init__(self) -> None:
        check_formats(self.format, self.also)

    def asks(self, case: Case, graded: Mapping[str, Grade]) -> list[Ask]:
        """Each part, each part with extra context, the whole, and the whole in further formats; one round."""
        found = []
        for i, part in enumerate(case.parts):
            found.append(ask_part(case, i, f"part:{i}", part.question, self.format, self.max_tokens))
            if self.extra_context and part.extra_context:
                role = f"part:{i}{_EXTRA}"
                found.append(ask_part(case, i, role, part.extra_context, self.format, self.max_tokens))
        found.append(ask_whole(case, "whole", case.question, self.format, self.max_tokens))
        if self.reversed and _REVERSED in case.meta:
            found.append(_reversed(case, self.format, self.max_tokens))
        again = [ask_again(case, way, self.format, self.max_tokens) for way in self.also]
        found += [replace(ask, role="self-ask") if ask.format == "self-ask" else ask for ask in again]
        return pending(found, graded)

    def reduce(self, rows: Sequence[Graded], cases: Mapping[str, Case] | None = None) -> Reduction:
        """Accuracy per step and jointly, the three gaps, failure quadrants, and the two case sets."""

        def count(chosen: Sequence[Graded], _: object) -> counting.Counted:
            items = counting.items(chosen, cases)
            n_parts = max((item.n_parts for item in items), default=0)
            none = "no row has a role part:0, part:1, ...: only accuracies of the whole can be counted"
            groups = counting.grouped(items)
            # of cases of one length, the steps that they have
            own = [max(item.n_parts for item in some) or n_parts if some else 0 for _, some in groups]
            counted = zip(groups, own, strict=True)
            metrics = [m for (cell, some), n in counted for m in cell_metrics(some, n, cell, self.seed)]
            found = []
            for item in items:
                if both(item) is True and (whole := item.truth("whole")) is not None:
                    roles = [*(f"part:{i}" for i in range(item.n_parts)), "whole"]
                    found.append((RIGHT if whole else WRONG, item.entry(item.evidence(roles))))
            return metrics, [*([] if n_parts else [none]), *missing(items), *_uneven(items, cases)], found

        return counting.reduced(rows, self.compat, {WRONG: "failure", RIGHT: "success"}, count)


def _reversed(case: Case, format: str, max_tokens: int | None) -> Ask:
    """The whole with its steps in the other order: the same answer unless ``meta["reversed"]`` gives its own."""
    given = case.meta[_REVERSED]
    if isinstance(given, str):
        return ask_whole(case, "whole:reversed", given, format, max_tokens)
    if not isinstance(given, Mapping) or "question" not in given:
        raise InputError(f"case {case.id!r}: meta.reversed is {given!r}; give a question, or {{question, answer}}")
    ask = ask_whole(case, "whole:reversed", str(given["question"]), format, max_tokens)
    return replace(ask, gold=str(given["answer"]), aliases=()) if "answer" in given else ask


def both(item: Item) -> Truth:
    """All steps right; None without steps."""
    return counting.all_of(item.truth(f"part:{i}") for i in range(item.n_parts)) if item.n_parts else None


def _step(item: Item, i: int) -> Truth:
    """Whether a step is right: so is one beyond the case's last, and none of a case without steps is known."""
    return item.truth(f"part:{i}") if i < item.n_parts else True if item.n_parts else None


def cell_metrics(items: Sequence[Item], n_parts: int, group: Mapping[str, Any], seed: int) -> list[Metric]:
    """All metrics of one group of cases."""
    steps = [[_step(item, i) for item in items] for i in range(n_parts)]
    jointly = [both(item) for item in items]
    metrics = []
    for i in range(n_parts):
        own = [k for k, item in enumerate(items) if i < item.n_parts]
        metrics.append(counting.rate(f"step:{i}", [steps[i][k] for k in own], group, of=[items[k] for k in own]))
    if n_parts:
        metrics.append(counting.rate("both", jointly, group, of=items))
    for role, prompt in _whole_roles(items):
        cell = {**group, "prompt": prompt} if prompt else dict(group)
        # other ways to ask may cover fewer cases
        kept = [k for k, item in enumerate(items) if not prompt or role in item.rows]
        own, values = [items[k] for k in kept], [items[k].truth(role) for k in kept]
        asked = [[s[k] for k in kept] for s in steps]
        metrics += _against(own, values, [jointly[k] for k in kept], asked, cell, seed)
    return metrics + _extra_context(items, group)


def _whole_roles(items: Sequence[Item]) -> list[tuple[str, str | None]]:
    """The whole (first), then other ways in which it was asked: (role, prompt name)."""
    roles = dict.fromkeys(r for item in items for r in item.rows if r.startswith("whole:") or r == "self-ask")
    return [("whole", None), *((r, r.removeprefix("whole:")) for r in roles)]


def _against(
    items: Sequence[Item],
    whole: Sequence[Truth],
    jointly: Sequence[Truth],
    steps: Sequence[Sequence[Truth]],
    group: Mapping[str, Any],
    seed: int,
) -> list[Metric]:
    metrics = [counting.rate("composition", whole, group, of=items, note=counting.chance_note(items))]
    if not steps:
        return metrics
    metrics.append(counting.difference("gap", whole, jointly, group, seed=seed, of=items, note="composition - both"))
    outcomes = list(zip(jointly, whole, strict=True))
    metrics.append(counting.failure("press_gap", outcomes, items, group, counting.chance_inside(outcomes, items)))
    metrics.append(independence_gap(whole, steps, group, seed, items))
    return metrics + _quadrants(items, whole, steps, group)


def independence_gap(
    whole: Sequence[Truth], steps: Sequence[Sequence[Truth]], group: Mapping[str, Any], seed: int, items: Sequence[Item]
) -> Metric:
    """mean(whole) - prod_i mean(step i): the gap of Compositional GSM, over cases where all is known.

    Where cases differ in their number of steps, a step that a case does not have counts as right; a case without any
    steps is not counted.
    If no case changes it (all answers right, or all wrong), a bootstrap would claim certainty. Then the exact upper
    limit of the share of other cases bounds it.
    """
    table = list(zip(whole, *steps, strict=True))
    known = [k for k, row in enumerate(table) if None not in row]
    columns = [(1.0, *(float(bool(v)) for v in table[k])) for k in known]

    def gap(s: np.ndarray) -> np.ndarray:
        means = s[..., 1:] / s[..., :1]
        return means[..., 0] - np.prod(means[..., 1:], axis=-1)

    return counting.statistic(
        "independence_gap",
        columns,
        gap,
        group,
        seed=seed,
        n_invalid=len(table) - len(known),
        of=[items[k] for k in known],
        note="composition - product of the steps",
        bounds=_independence_bounds(table),
        possible=(-1, 1),
        others=[(1, whole, *(1 - whole for _ in steps)) for whole in (0, 1)],
        rates=([row[1:] for row in columns], lambda right: right[0] - np.prod(right[1:])),
    )


def _independence_bounds(table: Sequence[Sequence[Truth]]) -> tuple[float | None, float | None]:
    """The gap over all cases, with every open answer judged against it, and for it."""
    if not table:
        return None, None
    low, high = (
        [sum(otherwise if v is None else v for v in column) / len(table) for column in zip(*table, strict=True)]
        for otherwise in (False, True)
    )
    return low[0] - math.prod(high[1:]), high[0] - math.prod(low[1:])


def _quadrants(
    items: Sequence[Item], whole: Sequence[Truth], steps: Sequence[Sequence[Truth]], group: Mapping[str, Any]
) -> list[Metric]:
    """Shares of the failures (and of the successes) by which steps are right: ``11`` both, ``10`` the first only.

    With more than three steps the quadrant is ``all`` or ``some``. Successes in other quadrants than ``11`` are
    shortcuts or grading noise, and should be shown with every gap.
    """
    table = list(zip(whole, *steps, strict=True))
    metrics = []
    for outcome, name in ((False, "incorrect"), (True, "correct")):
        chosen = [k for k, row in enumerate(table) if row[0] in (outcome, None)]
        inside: list[Truth] = [None if table[k][0] is None else True for k in chosen]
        names = [_quadrant(table[k][1:]) for k in chosen]
        known = sorted(
            {n for n, of in zip(names, inside, strict=True) if of and n is not None}
            | (set() if len(steps) != 2 else {"00", "01", "10", "11"})
        )
        own = [items[k] for k in chosen]
        for quadrant in known:
            values: list[Truth] = [None if n is None else n == quadrant for n in names]
            outcomes = list(zip(inside, values, strict=True))
            cell = {**group, "quadrant": quadrant, **({} if outcome is False else {"whole": name})}
            note = "of the wrong wholes" if outcome is False else "of the right wholes"
            metrics.append(counting.given("quadrant", outcomes, own, cell, note))
    return metrics


def _quadrant(steps: Sequence[Truth]) -> str | None:
    if len(steps) > 3 and False in steps:
        return "some"
    if None in steps:
        return None
    if len(steps) > 3:
        return "all"
    return "".join("1" if s else "0" for s in steps)


def _extra_context(items: Sequence[Item], group: Mapping[str, Any]) -> list[Metric]:
    """Accuracy of each step with the whole's irrelevant numbers added."""
    metrics = []
    for i in range(max((item.n_parts for item in items), default=0)):
        asked = [item for item in items if f"part:{i}{_EXTRA}" in item.rows]
        if asked:
            values = [item.truth(f"part:{i}{_EXTRA}") for item in asked]
            cell = {**group, "prompt": "extra-context"}
            metrics.append(counting.rate(f"step:{i}", values, cell, of=asked))
    return metrics


def _uneven(items: Sequence[Item], cases: Mapping[str, Case] | None) -> list[str]:
    """A warning where rows alone cannot say whether a case is shorter than others or lacks its last part."""
    found = Counter(item.n_parts for item in items if cases is None or item.case not in cases)
    if len(found) < 2:
        return []
    counts = ", ".join(f"{n} with {parts}" for parts, n in sorted(found.items()))
    return [f"cases differ in their number of parts ({counts}): if rows of a last part are missing, add them"]


def missing(items: Sequence[Item]) -> list[str]:
    """A warning where cases lack rows that the protocol needs."""
    needed = [(item, [*(f"part:{i}" for i in range(item.n_parts)), "whole"]) for item in items]
    incomplete = [item.case for item, roles in needed if any(role not in item.rows for role in roles)]
    if not incomplete:
        return []
    return [f"{len(incomplete)} cases lack a part or the whole and count as unknown (first: {incomplete[0]!r})"]
