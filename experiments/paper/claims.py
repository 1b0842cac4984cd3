"""The table of claims from runs: each claim has n, an interval, and whether its probe passed its own test.

A claim whose probe failed its test stays in the table with a mark; leaving it out would hide that it was tested.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ...evaluation.protocols.catalog import about
from ...probes.catalog import PROBES, Probe
from ...probes.families import MATCHED
from ..figures.grouping import labels
from ..report.checks import FAILS, read_validity, tests_of
from ..report.headline import interval, shown
from ..report.landing import finding, says
from ..report.sections import number_text
from ..run.reader import Row, RunData

FAILED, PASSED, UNTESTED = "failed its own test", "passed its own test", "not tested"
UNSAID = "its own tests cannot say"
COUNTED = "counted"
"""The badge of claims about behaviour, which need no probe."""


def claims(runs: Sequence[RunData]) -> list[Row]:
    """The headline metrics of each run, and the probes' contrasts of failures with matched successes.

    ``declared`` is true for the headline and for the one finding of each probe that was declared beforehand, which the
    report shows first; all other contrasts are exploratory. Contrasts without a value are left out.
    """
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
                    "p": "", "badge": COUNTED, "why": "", "declared": True,
                }  # fmt: skip


def _probes(runs: Sequence[RunData]) -> Iterator[Row]:
    names = labels(runs)
    for name, probe in PROBES.items():
        for run in runs:
            data = run.probe(name)
            if data is None:
                continue
            badge, why = badge_of(run, probe)
            found = finding(data.table)
            for row in data.table:
                value = number_text("value", row.get("value"))
                if not value or (row.get("group") != MATCHED and row is not found):
                    continue
                low, high = (number_text(k, row.get(k)) for k in ("low", "high"))
                quantity = str(row["quantity"])
                said = f"{quantity.replace('_', ' ')}, {row.get('kind') or 'all'}"
                said = says(row) if row is found else said
                side = ", failures minus matched successes" if row.get("group") == MATCHED else ""
                yield {
                    "model": names[run.path], "benchmark": run.benchmark, "claim": f"{name}: {said}{side}",
                    "n": row.get("n"), "value": value,
                    "interval": f"[{low}, {high}]" if low and high else "", "method": row.get("interval") or "",
                    "p": number_text("p_adjusted", row.get("p_adjusted")), "badge": badge, "why": why,
                    "declared": row is found,
                }  # fmt: skip


def badge_of(run: RunData, probe: Probe) -> tuple[str, str]:
    """Whether a probe passed the tests in the run or its study, and the first test that it failed.

    These are the tests that the report counts: a probe passed if all of them did.
    """
    answers = [v for v in read_validity([run.path, run.path.parent])[0] if v["headline"]]
    tests = tests_of(answers, [run], probe)
    if failed := [r for r in tests if r["kind"] in FAILS]:
        return FAILED, f"{failed[0]['question']} {failed[0]['answer']}"
    passed = sum(r["kind"] == "yes" for r in tests)
    if passed and passed < len(tests):
        return f"{passed} of {len(tests)} tests passed, the others cannot say", ""
    return (PASSED if passed else UNSAID if tests else UNTESTED), ""
