"""Bounds against the definition: every way in which the invalid answers could have been judged, counted one by one."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import product
from typing import Any

import pytest

from composcope.evaluation.asks import Outcome
from composcope.evaluation.metrics import Metric, find
from composcope.evaluation.protocols import Graded, counting, metrics_from_rows

OUTCOMES: tuple[Outcome, ...] = ("correct", "incorrect")
SOLVED: tuple[tuple[str, Outcome], ...] = (("whole", "incorrect"), ("scaffold:1", "correct"), ("scaffold:2", "correct"))
Draw = Callable[[str, str], Graded]


def _drawer(seed: int, most: int = 6) -> Draw:
    """Rows with drawn outcomes, of which at most so many are invalid."""
    draw, left = random.Random(seed), [most]

    def row(case: str, role: str) -> Graded:
        if left[0] and draw.random() < 0.25:
            left[0] -= 1
            return Graded(case, role, "invalid")
        return Graded(case, role, draw.choice(OUTCOMES))

    return row


def _completed(rows: Sequence[Graded]) -> Iterator[list[Graded]]:
    missing = [i for i, row in enumerate(rows) if row.outcome == "invalid"]
    for outcomes in product(OUTCOMES, repeat=len(missing)):
        full = list(rows)
        for i, outcome in zip(missing, outcomes, strict=True):
            full[i] = replace(full[i], outcome=outcome)
        yield full


def _values(rows: Sequence[Graded], protocol: str, metric: str, **group: Any) -> tuple[Metric, list[float]]:
    """The metric's row, and its value under every completion; a censored depth is infinite on its side."""
    row = find(metrics_from_rows(rows, protocol).metrics, metric, **group)
    assert row is not None
    values = []
    for full in _completed(rows):
        found = find(metrics_from_rows(full, protocol).metrics, metric, **group)
        if found is None:
            values += [0.0] if metric == "bottleneck" else []
        elif found.value is not None:
            values.append(found.value)
        elif (found.note or "")[:1] in ("<", ">"):
            values.append(-math.inf if str(found.note)[0] == "<" else math.inf)
    return row, values


def _within(row: Metric, values: Sequence[float], exact: bool) -> None:
    low = -math.inf if row.bound_low is None else row.bound_low
    high = math.inf if row.bound_high is None else row.bound_high
    assert values and all(low - 1e-9 <= v <= high + 1e-9 for v in values), (row, min(values), max(values))
    if exact:
        assert min(values) == pytest.approx(low) and max(values) == pytest.approx(high), row


@pytest.mark.parametrize("seed", range(4))
def test_code_gain_is_bounded_by_the_worst_and_the_best_case(seed: int) -> None:
    row = _drawer(seed)
    rows = [row(f"c{i}", role) for i in range(6) for role in ("whole", "code")]
    rows.append(Graded("c6", "whole", "correct"))  # so that no completion divides by zero
    rows.append(Graded("c6", "code", "correct"))
    found, values = _values(rows, "reasoning-gap", "code_gain")
    _within(found, values, exact=True)


def test_code_gain_without_a_right_answer_in_words_has_no_upper_bound_and_says_so() -> None:
    rows = [Graded("a", "whole", "invalid"), Graded("a", "code", "correct")]
    found = find(metrics_from_rows(rows, "reasoning-gap").metrics, "code_gain")
    assert found is not None and (found.n_invalid, found.bound_low, found.bound_high) == (1, 0.0, None)
    assert "no upper bound" in str(found.note)


def _gated(row: Draw, depths: Sequence[int], each: int) -> list[Graded]:
    roles = ("part:0", "part:0:paraphrase:0", "whole")
    return [replace(row(f"c{d}-{i}", role), depth=d) for d in depths for i in range(each) for role in roles]


@pytest.mark.parametrize("seed", range(4))
def test_conflation_lies_within_its_bounds_whatever_the_invalid_answers_were(seed: int) -> None:
    rows = _gated(_drawer(seed), (2,), 6)
    found, values = _values(rows, "double-gate", "conflation")
    if values:
        _within(found, values, exact=False)
    assert (found.n_invalid > 0) == ("bounds: of the two rates apart" in str(found.note))


@pytest.mark.parametrize("seed", range(4))
def test_d50_lies_within_its_bounds_which_some_judgement_reaches(seed: int) -> None:
    known = [
        Graded(f"k{d}-{i}", role, "correct" if role != "whole" or i == 0 else "incorrect", depth=d)
        for d in (2, 4, 6)
        for i in range(2)
        for role in ("part:0", "part:0:paraphrase:0", "whole")
    ]
    rows = known + _gated(_drawer(seed), (2, 4, 6), 2)
    found, values = _values(rows, "double-gate", "d50")
    if not found.n_invalid:  # what is invalid here is behind a gate that is closed anyway
        assert len(set(values)) == 1
        return
    ends = []
    for name, bound in (("bound_low", found.bound_low), ("bound_high", found.bound_high)):
        censored = {f"{name} <2": -math.inf, f"{name} >6": math.inf}
        ends.append(bound if bound is not None else next(v for k, v in censored.items() if k in str(found.note)))
        assert (name in str(found.note)) is (bound is None)
    assert found.interval == "clopper-pearson band"
    assert ends == pytest.approx([min(values), max(values)])


@pytest.mark.parametrize("seed", range(4))
def test_the_share_of_a_bottleneck_counts_items_with_an_open_k_and_bounds_it(seed: int) -> None:
    row = _drawer(seed)
    skills = {i: (("add", "look up", "compare"), ("look up", "add", "compare"))[i % 2] for i in range(6)}
    rows = [
        replace(row(f"c{i}", role), skills=skills[i]) for i in skills for role in ("whole", "scaffold:1", "scaffold:2")
    ]
    rows += [Graded("k", role, outcome, skills=("add", "look up", "compare")) for role, outcome in SOLVED]
    found, values = _values(rows, "scaffolding", "bottleneck", skill="add")
    _within(found, values, exact=True)
    assert (found.n_invalid > 0) == (found.bound_low != found.bound_high)


@pytest.mark.parametrize(
    ("of_open", "share"), [(("look up", "compare", "sum up"), 1 / 3), (("add", "add", "sum up"), 2 / 3)]
)
def test_an_item_whose_bottleneck_is_settled_though_its_k_is_open_counts_in_both_bounds(
    of_open: tuple[str, ...], share: float
) -> None:
    skills = {"known": ("add", "compare", "sum up"), "other": ("look up", "compare", "sum up"), "open": of_open}
    outcomes: dict[str, tuple[Outcome, ...]] = dict.fromkeys(skills, ("incorrect", "correct", "correct"))
    outcomes["open"] = ("incorrect", "invalid", "correct")
    rows = [
        Graded(case, role, outcome, skills=skills[case])
        for case, of_case in outcomes.items()
        for role, outcome in zip(("whole", "scaffold:1", "scaffold:2"), of_case, strict=True)
    ]
    found, values = _values(rows, "scaffolding", "bottleneck", skill="add")
    _within(found, values, exact=True)
    assert (found.count, found.n) == (1, 2) and (found.bound_low, found.bound_high) == pytest.approx((share, share))


def test_a_difference_is_bounded_by_every_judgement_of_its_open_answers() -> None:
    a, b = (True, None, True, False, None, False), (None, True, False, None, None, True)
    found = counting.difference("d", a, b, {}, seed=0, of=None)
    values = [
        (sum(x) - sum(y)) / len(a)
        for x in product(*([v] if v is not None else [False, True] for v in a))
        for y in product(*([v] if v is not None else [False, True] for v in b))
    ]
    _within(found, values, exact=True)
    assert (found.count, found.n, found.n_invalid, found.value) == (0, 2, 4, 0.0)


def test_items_without_skills_are_counted_in_the_note_of_the_shares() -> None:
    asked: tuple[tuple[str, Outcome], ...] = (("whole", "incorrect"), ("scaffold:1", "correct"))
    rows = [Graded("a", role, outcome, skills=("add", "compare")) for role, outcome in asked]
    rows += [Graded("b", role, outcome) for role, outcome in asked]
    found = find(metrics_from_rows(rows, "scaffolding").metrics, "bottleneck", skill="add")
    assert found is not None and (found.n, found.count) == (1, 1)
    assert "1 items with k > 0 lack a skill and are left out" in str(found.note)


CONDITIONAL: list[tuple[str, tuple[str, ...], str, dict[str, Any]]] = [
    ("double-gate", ("part:0", "part:0:paraphrase:0", "whole", "whole:cot"), "gate_removed", {}),
    ("double-gate", ("part:0", "part:0:paraphrase:0", "whole", "whole:cot"), "recovery", {"prompt": "cot"}),
    ("reasoning-gap", ("part:0", "part:1", "pair:q1", "whole"), "second_hop", {}),
    ("reasoning-gap", ("part:0", "part:1", "pair:q1", "whole"), "second_hop", {"against": "step:1"}),
    ("compositionality-gap", ("part:0", "part:1", "whole"), "quadrant", {"quadrant": "10"}),
    ("compositionality-gap", ("part:0", "part:1", "whole"), "quadrant", {"quadrant": "11", "whole": "correct"}),
    ("scaffolding", ("whole", "scaffold:1", "scaffold:2"), "non_monotone", {}),
    ("scaffolding", ("whole", "scaffold:1", "scaffold:2"), "scaffold_success", {"level": 2}),
    ("scaffolding", ("whole", "scaffold:1", "placeholder:1"), "placeholder", {}),
    ("scaffolding", ("whole", "part:0", "part:1"), "skill_accuracy", {"skill": "step 0", "whole": "incorrect"}),
]


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(("protocol", "roles", "metric", "group"), CONDITIONAL)
def test_a_rate_among_cases_that_may_be_among_them_counts_the_open_ones_and_is_bounded(
    protocol: str, roles: tuple[str, ...], metric: str, group: dict[str, Any], seed: int
) -> None:
    row = _drawer(seed)
    rows = [row(f"c{i}", role) for i in range(6) for role in roles]
    found, values = _values(rows, protocol, metric, **group)
    if values:  # where some steps of a case are known it cannot be in every quadrant
        _within(found, values, exact=metric != "quadrant")
    assert found.n_invalid > 0 or len(set(values)) < 2
