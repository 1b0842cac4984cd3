"""What a run itself says about whether its probes measured anything: their controls and causal checks.

The dose series of organisms (see ``checks``) can say whether a probe follows what is known to differ; a run of any
other model cannot. It has the controls that ran beside the measurement.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from ..figures.grouping import labels
from ..run.reader import ProbeData, Row, RunData
from .checks import check

NOTHING = {
    "lookback": "Nothing in one run says whether a lookback ratio reflects use of the context: compare the means at "
    "matched lengths, and read a head's map as where it looks, not as what it takes from there.",
    "trajectory": "Nothing in one run checks a cosine against the truth: the separation is tested by exchanging the "
    "labels of failures and successes (see the contrasts), which says whether it is chance, not what it means.",
    "min_k": "Nothing in one run says which questions the model was trained on: without known members and non-members "
    "a higher score is no proof of exposure.",
}
"""By probe what has to be said where a run has no control of its own."""
EXACT = 1e-3
"""Nats that count as none: float rounding of a softmax."""


def own_checks(runs: Sequence[RunData], probe: str) -> list[Row]:
    """Rows like those of the dose series: question, value with interval and n, and the answer."""
    names, make = labels(runs), _CHECKS.get(probe)
    if make is None:
        return []
    found = [(names[run.path], data) for run in runs if (data := run.probe(probe)) is not None]
    return [check({"probe": probe, "model": name, **row}) for name, data in found for row in make(data)]


def _neurons(data: ProbeData) -> Iterator[dict[str, Any]]:
    for row in data.rows("suppress_log_ratio_excess"):
        kind, group = str(row.get("kind")), row.get("group")
        if group not in ("failure", "success") or " - " in kind:
            continue
        low, high = row.get("low"), row.get("high")
        verdict = "cannot say" if low is None or high is None else "yes" if high < 0 else "no" if low > 0 else "open"
        yield {
            "question": "does silencing the selected neurons hurt the answer?", **_numbers(row),
            "statement": f"{kind}, {group}: log ratio beyond random neurons of the same layers, expected below 0",
            "measure": "log ratio", "verdict": "cannot say" if verdict == "open" else verdict,
        }  # fmt: skip


def _patching(data: ProbeData) -> Iterator[dict[str, Any]]:
    own = data.rows("unchanged_rate", group="identity")
    if own:
        worst = min(own, key=lambda r: r["value"])
        yield {
            "question": "does a case's own state change nothing?", **_numbers(worst), "measure": "unchanged",
            "statement": "identity control: share of continuations that stay the same, lowest over layers",
            "verdict": "yes" if worst["value"] == 1 else "no",
        }  # fmt: skip
    whole = data.rows("kl_from_donor", group="positive")
    if whole:
        worst = max(whole, key=lambda r: r["value"])
        yield {
            "question": "does the donor's whole prompt bring the donor's next token?", **_numbers(worst),
            "statement": "positive control: KL from the donor's prediction when all positions are replaced, largest "
            "over layers, expected 0",
            "measure": "nats", "verdict": "yes" if worst["value"] < EXACT else "no",
        }  # fmt: skip


def _numbers(row: Row) -> dict[str, Any]:
    return {k: row.get(k) for k in ("n", "value", "low", "high", "interval")}


_CHECKS: dict[str, Callable[[ProbeData], Iterator[dict[str, Any]]]] = {"neurons": _neurons, "patching": _patching}
