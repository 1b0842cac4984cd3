"""The table of claims from runs: each claim has n, an interval, and whether its probe passed its own test.

A claim whose probe failed its test stays in the table with a mark; leaving it out would hide that it was tested.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ...evaluation.protocols.catalog import about
from ...probes.catalog import PROBES, Probe
from ...probes.families import MATCHED
from ..figures.grouping import labels
from ..report.checks import own_checks, read_validity
from ..report.headline import interval, shown
from ..report.sections import number_text
from ..run.reader import Row, RunData

FAILED, PASSED, UNTESTED = "failed its own test", "passed its own test", "not tested"
COUNTED = "counted"
"""The badge of claims about behaviour, which need no probe."""


def claims(runs: Sequence[RunData]) -> list[Row]:
    """One row per headline metric of each run, and one per probe contrast of failures with matched successes."""
    return [*_behavior(runs), *_probes(runs)]


def _behavior(runs: Sequence[RunData]) -> Iterator[Row]:
    names = labels(runs)
    for run in runs:
        for metric, said, form in about(run.protocol).columns:
            found = run.one(metric)
            if found is not None:
                yield {
                    "model": names[run.path], "benchmark": run.benchmark, "claim": said, "n": found.n,
                    "value": shown(found, form), "interval": interval(found, form), "method": found.interval or "",
                    "p": "", "badge": COUNTED, "why": "",
                }  # fmt: skip


def _probes(runs: Sequence[RunData]) -> Iterator[Row]:
    names = labels(runs)
    for name, probe in PROBES.items():
        for run in runs:
            data = run.probe(name)
            if data is None:
                continue
            badge, why = badge_of(run, probe)
            for row in data.table:
                if row.get("group") != MATCHED:
                    continue
                low, high = (number_text(k, row.get(k)) for k in ("low", "high"))
                quantity = str(row["quantity"]).replace("_", " ")
                yield {
                    "model": names[run.path], "benchmark": run.benchmark,
                    "claim": f"{name}: {quantity}, {row.get('kind') or 'all'}, failures minus matched successes",
                    "n": row.get("n"), "value": number_text("value", row.get("value")),
                    "interval": f"[{low}, {high}]" if low and high else "", "method": row.get("interval") or "",
                    "p": number_text("p_adjusted", row.get("p_adjusted")), "badge": badge, "why": why,
                }  # fmt: skip


def badge_of(run: RunData, probe: Probe) -> tuple[str, str]:
    """Whether a probe passed the tests in the run or its study, and the first test that it failed."""
    rows, _ = read_validity([run.path, run.path.parent])
    tests = [*own_checks([run], probe), *(r for r in rows if r["probe"].replace("_", "-") == probe.name)]
    failed = [r for r in tests if r["kind"] in ("no", "reversed")]
    if failed:
        return FAILED, f"{failed[0]['question']} {failed[0]['answer']}"
    return (PASSED, "") if any(r["kind"] == "yes" for r in tests) else (UNTESTED, "")
