"""What a probe's controls say of one run: which rows count, and where yes ends and no begins."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from composcope.probes.catalog import PROBES


def _verdicts(probe: str, rows: list[dict[str, Any]]) -> list[str]:
    """The verdicts of a probe's checks over these rows of its table."""

    def chosen(quantity: str, **where: Any) -> list[dict[str, Any]]:
        return [r for r in rows if all(r.get(k) == v for k, v in {"quantity": quantity, **where}.items())]

    checks = PROBES[probe].checks
    assert checks is not None
    return [row["verdict"] for row in checks(SimpleNamespace(rows=chosen))]


@pytest.mark.parametrize(
    ("low", "high", "verdict"),
    [
        (-2.0, -0.5, "yes"), (0.5, 2.0, "no"), (-1.0, 1.0, "cannot say"), (-1.0, 0.0, "cannot say"),
        (None, None, "cannot say"),
    ],
)  # fmt: skip
def test_silencing_hurts_where_the_whole_interval_lies_below_zero(
    low: float | None, high: float | None, verdict: str
) -> None:
    row = {"quantity": "suppress_log_ratio_excess", "kind": "math", "group": "failure", "low": low, "high": high}
    others = [{**row, "group": "failure - success"}, {**row, "kind": "math - composition"}, {**row, "quantity": "x"}]
    assert _verdicts("neurons", [row, *others]) == [verdict]


@pytest.mark.parametrize(
    ("quantity", "group", "values", "verdict"),
    [
        ("unchanged_rate", "identity", (1.0, None, 1.0), "yes"),
        ("unchanged_rate", "identity", (1.0, 0.99, 1.0), "no"),
        ("kl_from_donor", "positive", (0.0, None, 0.0009), "yes"),
        ("kl_from_donor", "positive", (0.0, 0.0011, 0.0), "no"),
        ("flip_rate", "positive", (0.0, 0.5, None), "yes"),
        ("flip_rate", "positive", (0.49, 0.4, 0.0), "cannot say"),
    ],
)
def test_patching_is_trusted_by_the_worst_layer_of_its_own_state_and_the_best_of_whole_answers(
    quantity: str, group: str, values: tuple[float | None, ...], verdict: str
) -> None:
    rows = [{"quantity": quantity, "group": group, "layer": i, "value": v} for i, v in enumerate(values)]
    assert _verdicts("patching", [*rows, {**rows[0], "group": "donor", "value": 0.3}]) == [verdict]


def test_a_value_replaced_by_itself_has_to_leave_every_answer() -> None:
    row = {"quantity": "kept_same", "group": "all", "n": 20}
    other = {**row, "group": "failure", "value": 0.5}
    for value, verdict in ((1.0, ["yes"]), (0.95, ["no"])):
        assert _verdicts("faithfulness", [{**row, "value": value}, other]) == verdict
    assert _verdicts("faithfulness", [{**row, "n": 0, "value": None}]) == []
