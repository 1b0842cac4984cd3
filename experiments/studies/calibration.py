"""``composcope study calibration``: false positives of the tests and coverage of the intervals by simulation."""

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from ...evaluation import statistics
from ...probes.result import Row
from ..console.printing import markdown_table
from ..run.folder import write_json, write_text
from . import simulated, simulated_runs
from .simulated import Scenario

SCENARIOS = (*simulated.SCENARIOS, *simulated_runs.SCENARIOS)
MOST_FALSE, LEAST_COVERED = 0.06, 0.93
"""The required rates when each side has at least eight clusters."""


def simulate(scenario: Scenario, draws: int, seed: int = 0) -> Row:
    """One row: shares of p below 0.05 and of intervals that contain the truth, with and without sharing known."""
    rng = np.random.default_rng([seed, sum(map(ord, scenario.name))])
    found = np.array([scenario.draw(rng) for _ in range(draws)])
    p, covered, plain_p, plain_covered = found.T
    row: Row = {"scenario": scenario.name, "draws": draws}
    for name, column, of in (
        ("false_positives", p, lambda x: x < 0.05), ("coverage", covered, lambda x: x > 0),
        ("plain_false_positives", plain_p, lambda x: x < 0.05), ("plain_coverage", plain_covered, lambda x: x > 0),
    ):  # fmt: skip
        known = column[np.isfinite(column)]
        row[name] = float(of(known).mean()) if known.size else None
        row[f"{name}_n"] = int(known.size)
    row["holds"] = (
        _holds(row) if scenario.claims else "yes" if not row["false_positives_n"] + row["coverage_n"] else "no"
    )
    return row


def _holds(row: Row) -> str:
    """Whether both rates meet the requirement, in the draws or within their simulation error."""
    sure = near = True
    for name, wanted, sign in (("false_positives", MOST_FALSE, 1), ("coverage", LEAST_COVERED, -1)):
        if row[name] is not None:
            error = statistics.clopper_pearson(round(row[name] * row[f"{name}_n"]), row[f"{name}_n"])
            best = error.low if sign > 0 else error.high
            sure &= sign * (row[name] - wanted) <= 0
            near &= best is not None and sign * (best - wanted) <= 0
    return "yes" if sure else "within simulation error" if near else "no"


def table(rows: Sequence[Row]) -> list[str]:
    """Markdown lines of the rows."""
    head = ("scenario", "false positives", "with sharing ignored", "coverage", "with sharing ignored", "holds")
    rates = ("false_positives", "plain_false_positives", "coverage", "plain_coverage")
    return markdown_table(head, [[r["scenario"], *(_share(r[k]) for k in rates), r["holds"]] for r in rows])


def _share(value: float | None) -> str:
    return "" if value is None else f"{100 * value:.1f} %"


def conduct(folder: Path, draws: int, seed: int, said: Callable[[str], None]) -> list[Row]:
    """Simulate every scenario; writes ``study.json`` and ``study.md`` into ``folder``."""
    rows: list[Row] = []
    for i, scenario in enumerate(SCENARIOS, 1):
        rows.append(simulate(scenario, draws, seed))
        said(f"{i} of {len(SCENARIOS)}: {scenario.name}: {rows[-1]['holds']}")
    wanted = {"false_positives": MOST_FALSE, "coverage": LEAST_COVERED}
    write_json(folder / "study.json", {"schema": 1, "study": "calibration", "draws": draws, "seed": seed,
                                       "wanted": wanted, "rows": rows})  # fmt: skip
    text = [f"# Calibration: {draws} draws per scenario, seed {seed}", "", *table(rows), "",
            f"Required: false positives at most {MOST_FALSE:.0%} of tests at 0.05, coverage of 95 % intervals at least "
            f"{LEAST_COVERED:.0%}."]  # fmt: skip
    write_text(folder / "study.md", "\n".join(text) + "\n")
    return rows
