"""What all protocols count alike: repeats, models, what a paper takes for wrong, and the lines of case sets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest

from composcope.evaluation.metrics import Metric, find
from composcope.evaluation.protocols import Graded, counting, metrics_from_rows
from composcope.evaluation.protocols.base import CaseSet, Entry, Evidence


def test_a_line_of_a_case_set_has_every_field_of_its_entry_and_evidence() -> None:
    evidence = (Evidence("whole", "correct", "a", "g", "q"),)
    entry = Entry("c", evidence, "f", 2, "k", "m", 3)
    assert CaseSet("s", "failure", (entry,)).to_dicts() == [
        {"schema": 1, "set": "s", "label": "failure", "case": "c", "family": "f", "depth": 2, "cluster": "k",
         "model": "m", "value": 3,
         "evidence": [{"role": "whole", "outcome": "correct", "answer": "a", "gold": "g", "ask": "q"}]}
    ]  # fmt: skip


@pytest.mark.parametrize("protocol", ["compositionality-gap", "double-gate", "scaffolding"])
def test_the_row_of_the_whole_says_what_a_case_is_wherever_it_stands(protocol: str) -> None:
    bare = [Graded("c", "part:0", "correct"), Graded("c", "part:1", "correct")]
    whole = Graded("c", "whole", "incorrect", family="f", depth=2, depth_bin=4, cluster="k", chance=0.25, skills=("a",))
    found = [metrics_from_rows(rows, protocol) for rows in ([whole, *bare], [*bare, whole], [bare[0], whole, bare[1]])]
    assert found[0] == found[1] == found[2]
    assert any("25.0%" in (m.note or "") for m in found[0].metrics), "what guessing gives"
    assert all((e.family, e.depth, e.cluster) == ("f", 2, "k") for s in found[1].case_sets for e in s.entries)


def test_repeats_of_one_case_share_it() -> None:
    rows = [Graded(f"c{i}", role, "incorrect" if role == "whole" and i % 2 else "correct", repeat=n)
            for i in range(6) for n in range(2) for role in ("part:0", "whole")]  # fmt: skip
    found = find(metrics_from_rows(rows, "double-gate").metrics, "composition")
    assert found is not None and (found.n, found.cluster_n) == (12, 6)


@pytest.mark.parametrize(
    ("compat", "reason", "wrong"),
    [(None, "no-answer", False), ("stad", "judge failed", True), ("agentcoma", "judge failed", True),
     ("collapse", "judge failed", False), ("collapse", "no-answer", True)],
)  # fmt: skip
def test_a_paper_counts_as_wrong_what_its_own_rule_says(compat: str | None, reason: str, wrong: bool) -> None:
    rows = [Graded("c", "whole", "invalid", reason=reason), Graded("c", "part:0", "correct")]
    assert [r.outcome for r in counting.published(rows, compat)] == ["incorrect" if wrong else "invalid", "correct"]


def test_runs_of_one_model_are_told_apart_and_one_family_has_no_cells_of_its_own_by_depth() -> None:
    of = [("m", "a"), ("m", "b"), ("n", "a")]
    rows = [Graded("c", "whole", "correct", model=m, run=r, family="f", depth=2) for m, r in of]
    assert [group for group, _ in counting.by_model(rows)] == [
        {"model": "m", "run": "a"},
        {"model": "m", "run": "b"},
        {"model": "n"},
    ]
    more = [*rows[:1], Graded("d", "whole", "correct", model="m", run="a", family="g", depth=2)]
    cells = [[set(group) for group, _ in counting.grouped(counting.items(some))] for some in (rows[:1], more)]
    assert {"family", "depth"} not in cells[0] and {"family", "depth"} in cells[1]


def test_models_are_counted_one_by_one_and_each_has_its_metrics_warnings_and_cases() -> None:
    def count(rows: Sequence[Graded], group: Mapping[str, Any]) -> counting.Counted:
        said = f"{len(rows)} of {group['model']}"
        return (
            [Metric("m", {"depth": 2}), Metric("k")],
            [said],
            [("b", Entry(said, ())), ("a", Entry(rows[0].case, ()))],
        )

    rows = [Graded(case, "whole", "invalid", model=m, reason="x") for case, m in (("c", "m"), ("d", "n"), ("e", "m"))]
    found = counting.reduced(rows, None, {"a": "failure", "b": "success"}, count)
    of = [{"model": m} for m in "mn"]
    assert [dict(m.group) for m in found.metrics] == [g | more for g in of for more in ({"depth": 2}, {})]
    assert found.warnings == ("2 of m", "1 of n")
    assert [(s.name, s.label, s.ids) for s in found.case_sets] == [
        ("a", "failure", ("c", "d")), ("b", "success", ("2 of m", "1 of n"))
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("n_open", "known", "bounds"), [(0, None, (0.25, 0.25)), (1, None, (None, None)), (1, (0.2, 0.4), (0.2, 0.4))]
)
def test_a_statistic_is_its_own_bound_only_where_no_answer_is_open(
    n_open: int, known: tuple[float, float] | None, bounds: tuple[float | None, float | None]
) -> None:
    columns = [(1, 1), (0, 1), (0, 1), (0, 1)]
    found = counting.statistic(
        "m", columns, lambda s: s[..., 0] / s[..., 1], {}, seed=0, n_invalid=n_open, bounds=known
    )
    assert (found.value, found.n, found.n_invalid) == (0.25, 4, n_open)
    assert (found.bound_low, found.bound_high) == bounds


def test_a_gain_is_over_the_pairs_that_both_sides_answered_and_there_is_none_of_a_role_nobody_was_asked_in() -> None:
    first = [Graded("x", "whole", "correct"), Graded("y", "whole", "correct"), Graded("z", "part:0", "correct")]
    pairs = counting.paired(first, [first[0], replace(first[1], role="part:0"), first[2]])
    gain = counting.gain(pairs, "whole", {}, 0)
    assert gain is not None and (gain.n, gain.n_invalid, gain.value) == (1, 2, 0)
    assert counting.gain(pairs, "part:1", {}, 0) is None
    step = counting.gain(pairs, "part:0", {}, 0)
    assert step is not None and (step.n, step.n_invalid) == (1, 1), "x has no steps"
