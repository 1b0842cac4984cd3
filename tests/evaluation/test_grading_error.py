"""Bounds from the grader's own error: as many answers are doubted as the labelled set says, and no more."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence

import pytest
from scipy.stats import beta

from composcope.evaluation.asks import Ask
from composcope.evaluation.graded import Graded
from composcope.evaluation.grading_error import MEASURED, _upper, in_doubt, with_grader_bounds
from composcope.evaluation.metrics import Metric, dumps, to_document

KIND = "number"


def rows(correct: int, incorrect: int, **fields: str) -> list[Graded]:
    outcomes = ["correct"] * correct + ["incorrect"] * incorrect
    return [Graded(f"c{i}", "whole", o, ask=f"a{i}", gold="1", **fields) for i, o in enumerate(outcomes)]  # type: ignore[arg-type]


def asks(graded: Sequence[Graded], kind: str = KIND) -> dict[str, Ask]:
    return {str(r.ask): Ask(r.case, "whole", "p", "1", kind) for r in graded}


def rate(graded: Sequence[Graded]) -> list[Metric]:
    right, open_ = (sum(r.outcome == o for r in graded) for o in ("correct", "invalid"))
    n = len(graded)
    return [
        Metric(
            "m",
            n=n - open_,
            n_invalid=open_,
            value=right / (n - open_),
            bound_low=right / n,
            bound_high=(right + open_) / n,
        )
    ]


def upper(errors: int, n: int) -> float:
    """The upper limit of Clopper and Pearson's 95 % interval, as odds."""
    high = float(beta.ppf(0.975, errors + 1, n - errors))
    return high / (1 - high)


def test_as_many_answers_are_doubted_as_the_labelled_set_allows_for_each_type_and_outcome() -> None:
    graded = rows(600, 400)
    counts = MEASURED[KIND]
    doubted = in_doubt(graded, asks(graded))
    of = {
        outcome: sum((r.ask, r.gold) in doubted for r in graded if r.outcome == outcome)
        for outcome in ("correct", "incorrect")
    }
    assert of["incorrect"] == math.ceil(600 * upper(counts.false_minus, counts.right))
    assert of["correct"] == math.ceil(400 * upper(counts.false_plus, counts.wrong))
    assert _upper(1, 4) == pytest.approx(upper(1, 4)), "odds, not the rate"
    assert doubted == in_doubt(graded[::-1], asks(graded)), "the same ones in any order"


@pytest.mark.parametrize(
    "fields",
    [{"match": "judge"}, {"reason": "unknowable"}, {"reason": "stops at part:0"}, {"reason": "compat:agentcoma"}],
)
def test_what_the_rules_did_not_read_is_not_doubted(fields: dict[str, str]) -> None:
    graded = rows(50, 50, **fields)
    assert in_doubt(graded, asks(graded)) == set()


def test_bounds_stand_beside_the_metric_and_leave_its_other_fields_alone() -> None:
    graded = rows(60, 40)
    (plain,), (bounded,) = rate(graded), with_grader_bounds(rate(graded), graded, asks(graded), rate)
    assert bounded.grader_low is not None and bounded.grader_high is not None
    assert bounded.grader_low < plain.bound_low == plain.value == plain.bound_high < bounded.grader_high  # type: ignore[operator]
    counts = MEASURED[KIND]
    over = math.ceil(40 * upper(counts.false_plus, counts.wrong)) / 100
    under = math.ceil(60 * upper(counts.false_minus, counts.right)) / 100
    assert (bounded.grader_low, bounded.grader_high) == pytest.approx((0.6 - over, 0.6 + under))
    row = bounded.to_dict()
    assert {k: v for k, v in row.items() if not k.startswith("grader_")} == plain.to_dict()
    assert [Metric(**found) for found in to_document("p", [bounded])["metrics"]] == [bounded]
    assert with_grader_bounds(rate(graded), graded, {}, rate) == rate(graded), "rows without asks: nothing is known"


def test_a_document_of_metrics_holds_its_protocol_rows_and_warnings_and_no_nan() -> None:
    found = [Metric("gap", {"depth": 2}, n=3, count=1, value=math.nan, cluster_n=2, cluster_low=-0.5), Metric("both")]
    document = json.loads(dumps("double-gate", found, ["3 answers could not be judged", "few cases"]))
    assert (document["schema"], document["protocol"]) == (1, "double-gate")
    assert document["warnings"] == ["3 answers could not be judged", "few cases"]
    first, second = document["metrics"]
    assert (first["metric"], first["group"], first["n"], first["count"], first["value"]) == (
        "gap",
        {"depth": 2},
        3,
        1,
        None,
    )
    assert (first["cluster_n"], first["cluster_low"]) == (2, -0.5)
    assert second["metric"] == "both" and not any(k.startswith(("cluster_", "grader_")) for k in second)
