"""Values of examples on their way into a table: what differs by rounding alone is the same value."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from composcope.probes.examples import Example
from composcope.probes.matching import Matched
from composcope.probes.tables import SAME, Values, group_rows, matched_rows, settled, value_rows
from composcope.probes.verdicts import corrected

RNG = np.random.default_rng(0)
TIED = {"failure": [-27.0, -27.0, -12.5, -12.5, -3.0, -3.0], "success": [-27.0, -27.0, -27.0, -12.5, -3.0, -3.0]}


def values(noise: float) -> Values[float]:
    """One number per case, many of them equal up to ``noise``, relative to the largest."""
    found = []
    for group, numbers in TIED.items():
        for i, x in enumerate(numbers):
            example = Example(f"{group}-{i}", "whole", "composition", group, (1, 2), (3,), (4,), 0, (0, 1))
            found.append((example, x + 27 * noise * float(RNG.uniform(-1, 1))))
    return found


def test_ties_that_rounding_broke_are_ties_again() -> None:
    exact, rounded = (group_rows("q", values(noise)) for noise in (0.0, 2e-7))
    for a, b in zip(exact, rounded, strict=True):
        assert a.keys() == b.keys()
        for name, x in a.items():
            assert b[name] == (pytest.approx(x, rel=1e-5, nan_ok=True) if isinstance(x, float) else x), name


def test_contrasts_of_groups_and_of_kinds_are_corrected_together() -> None:
    part = [(replace(e, role="part:0", kind="math"), x + 2 * (i % 3)) for i, (e, x) in enumerate(values(0.0))]
    found = [r for r in group_rows("q", [*values(0.0), *part]) if "p" in r]
    assert {" - " in str(r["kind"]) for r in found} == {True, False} and len(found) == 4
    for row, wanted in zip(found, corrected(found), strict=True):
        assert row["p_adjusted"] == wanted["p_adjusted"]
    first, within = ([r for r in found if (" - " in str(r["kind"])) == kinds] for kinds in (False, True))
    apart = [r["p_adjusted"] for r in (*corrected(first), *corrected(within))]
    assert apart != [r["p_adjusted"] for r in (*first, *within)], "or this test would notice nothing"


def test_rows_of_values_say_what_each_case_shares_with_others() -> None:
    [(example, _), *_] = values(0.0)
    [row] = value_rows("q", [(replace(example, cluster="k", crossed=("a", "b")), 2)])
    assert row == {"case": "failure-0", "role": "whole", "kind": "composition", "group": "failure", "cluster": "k",
                   "crossed": "a; b", "quantity": "q", "value": 2.0}  # fmt: skip


def test_matched_cases_whose_values_differ_by_rounding_do_not_differ() -> None:
    numbers = values(2e-7)
    same = [(e, -27.0 * (1 + 1e-7 * i)) for i, (e, _) in enumerate(numbers)]
    examples = [e for e, _ in same]
    pairs = tuple((f"failure-{i}", f"success-{i}") for i in range(6))
    [row] = matched_rows("q", examples, Matched(pairs, (), (), (), 0.0), lambda i, n: same[i][1])
    assert row["value"] == 0 and row["p"] == 1


@given(st.lists(st.floats(-1e6, 1e6), max_size=30))
def test_values_move_by_no_more_than_rounding_and_keep_their_order(found: list[float]) -> None:
    x = np.array(found)
    y = settled(x)
    assert np.abs(y - x).max(initial=0) <= 10 * SAME * np.abs(x).max(initial=0)
    order = np.argsort(x, kind="stable")
    assert (np.diff(y[order]) >= 0).all()


def test_values_that_lie_close_all_along_a_range_stay_as_they_are() -> None:
    x = 1000 + np.linspace(0, 1, 2000)
    assert (settled(x) == x).all()
    for n, same in ((11, True), (12, False)):  # at most ten times as wide as what counts as equal, and a little more
        x = 1000 - 1000 * SAME * 0.95 * np.arange(n)
        assert (len(set(settled(x))) == 1) is same


def test_rows_of_groups_have_the_standard_deviation_over_cases() -> None:
    found = {str(r["group"]): r for r in group_rows("q", values(0.0))}
    assert {g: found[g]["sd"] for g in TIED} == {g: pytest.approx(np.std(x, ddof=1)) for g, x in TIED.items()}


def test_matched_cases_are_compared_at_the_smaller_of_their_sizes() -> None:
    examples = [e for e, _ in values(0.0)]
    pairs = tuple((f"failure-{i}", f"success-{i}") for i in range(6))
    sizes, seen = {e.case: 3 + i for i, e in enumerate(examples)}, dict[str, int | None]()

    def value(i: int, n: int | None) -> float:
        seen[examples[i].case] = n
        return float(i)

    matched_rows("q", examples, Matched(pairs, (), (), (), 0.0), value, lambda i: sizes[examples[i].case])
    assert seen == {case: min(sizes[f], sizes[s]) for f, s in pairs for case in (f, s)}
