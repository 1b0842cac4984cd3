"""The first screen of the page: each run's result, how far each probe can be trusted, and one failing case.

The page opens on the run with the most to compare. Its first failing case is one that probes kept in detail and whose
wrong answer a rule can explain. The success that it was matched to, or else the nearest success, is shown with it.
"""

import bisect
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from ...evaluation.case import Case
from ...evaluation.metrics import Metric
from ...probes.catalog import Probe, described
from ...probes.verdicts import FEWEST_PAIRS, MATCHED, PRIMARY, UNMATCHED, is_primary
from ...terminal import how_many
from ..figures.grouping import labels
from ..figures.style import MARKED_BELOW
from ..run.folder import probed_cases
from ..run.reader import Row, RunData
from ..run.summary import diagnosed_failures, measured_on_others, n_asked, none_decided, of_known_parts
from . import headline, sections
from .causes import UNNAMED, Causes, causes_of
from .origins import ABSTAINED, INVALID, KINDS, MEANS, UNCLEAR, Origin
from .sections import ends, number_text

NO_SETS = "its protocol labels no cases; let reduce return a CaseSet labelled failure and one labelled success"
"""Why a run of a protocol without case sets has nothing to compare."""
PATCHED = "corrected_rate"
SAYS = {**PRIMARY, PATCHED: "wholes righted by a success's state, beyond a random one's"}
"""What each quantity measures, in words: one finding per probe."""
UNITS = {
    "lookback_ratio": "a ratio between 0 and 1", "min_k_pp": "in standard deviations", "step_cosine": "a cosine",
    "suppress_log_ratio_excess": "in nats", "answer_follows": "a share of cases", PATCHED: "a share of pairs",
}  # fmt: skip
"""What its number is, in words."""
ANSWERS = {"yes": "differs", "no": "no difference shown", "open": "cannot say"}
ALPHA, FEWEST = 0.05, 5
RARE = 0.05
"""Below this share of failing wholes, the page says that the model rarely fails."""


@dataclass(frozen=True)
class Finding:
    """One probe's summary of failures against matched successes."""

    anchor: str
    title: str
    says: str
    value: str
    interval: str
    n: int
    answer: str
    """One of ``ANSWERS``."""
    kind: str
    p: str
    """The corrected p, and for how many probes or tests it was corrected; empty if there is no p."""
    smallest: str
    """The smallest difference that this number of cases could have shown."""
    test: str
    """Whether the probe passed its own test, in words."""
    trust: str
    """The same as the answer to whether it can be trusted."""
    passed: str
    """The same as a CSS class: ``yes``, ``no`` or ``open``."""
    unit: str = ""
    """What the number is (``UNITS``)."""

    @property
    def trusted(self) -> str:
        """``yes``, ``partly``, ``no`` or ``unknown``."""
        return self.trust.partition(":")[0]


@dataclass(frozen=True)
class Landing:
    """The first screen of one run."""

    label: str
    about: str
    title: str
    lead: str
    why: Causes
    reasons: Sequence[tuple[str, int, str, str]]
    """Origins of the failing cases' wrong answers: name, number and address of the cases, and what it means."""
    n_failures: int
    failing: str
    """The address of the failing cases; of all cases of the run if no one case set holds the failures."""
    findings: Sequence[Finding]

    @property
    def said(self) -> list[tuple[str, list[Finding]]]:
        """The findings by their answer, those that differ first."""
        return [(a, found) for a in ANSWERS.values() if (found := [f for f in self.findings if f.answer == a])]


def best(runs: Sequence[RunData]) -> int:
    """The run to open on: a probed run with the most failures that can be compared with successes."""

    def power(i: int) -> tuple[bool, int, int]:
        failures, successes = (len(found) for found in runs[i].groups)
        return bool(runs[i].probe_names), min(failures, successes), failures

    return max(range(len(runs)), key=power, default=0)


def landings(
    runs: Sequence[RunData], came: Sequence[Mapping[str, Origin]], tests: Sequence[Mapping[str, Sequence[Row]]],
    probes: Sequence[Probe],
) -> list[Landing]:  # fmt: skip
    """One first screen per run. ``tests`` holds, for each run and probe, the checks of what the probe measures."""
    names = labels(runs)
    found = []
    for run, came_from, tested in zip(runs, came, tests, strict=True):
        failures, _ = run.groups
        counted = Counter(came_from[c].kind for c in failures if c in came_from)
        sets = [s.name for s in run.case_sets.values() if s.label == "failure"]
        only = {"run": names[run.path], **({"set": sets[0]} if len(sets) == 1 else {})}
        label = names[run.path]
        benchmark = None if label.endswith(f"· {run.benchmark}") else run.benchmark
        about = " · ".join(filter(None, (benchmark, run.protocol, n_asked(run))))
        together = _corrected_together(run)
        found.append(Landing(
            label, about, _title(run), _lead(run), causes_of(run, only, len(failures)),
            [(KINDS[kind], n, urlencode({**only, "origin": KINDS[kind]}, errors="replace"), MEANS[kind])
             for kind, n in counted.most_common()],
            len(failures), urlencode(only, errors="replace"),
            [f for p in probes if (f := _finding(run, p, tested.get(p.name, ()), together)) is not None],
        ))  # fmt: skip
    return found


def twins(run: RunData, kept: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """For each failure, the success to show with it: its donor in the patching, else the nearest in its stratum.

    A stratum is a family, depth and operation; the nearest success has the question of the closest length.
    """
    failures, successes = run.groups
    strata: dict[tuple[Any, ...], list[tuple[int, str]]] = {}
    for case in successes:
        if (about := run.cases.get(case)) is not None:
            strata.setdefault(_stratum(about), []).append((len(about.question), case))
    for found in strata.values():
        found.sort()
    donors = {str(c["case"]): str(c["donor"]) for c in kept if c.get("donor")}
    out = {}
    for case in failures:
        about = run.cases.get(case)
        near = strata.get(_stratum(about), []) if about else []
        if case in donors:
            out[case] = donors[case]
        elif near and about:
            out[case] = _nearest(near, len(about.question))
    return out


def _stratum(case: Case) -> tuple[Any, ...]:
    return case.family, case.depth, case.operation


def _nearest(ordered: Sequence[tuple[int, str]], length: int) -> str:
    at = bisect.bisect_left(ordered, (length, ""))
    return min(ordered[max(at - 1, 0) : at + 1], key=lambda found: abs(found[0] - length))[1]


def first_case(
    run: RunData, came_from: Mapping[str, Origin], kept: Sequence[Mapping[str, Any]], beside: Mapping[str, str]
) -> str | None:
    """The failing case to open on; without one, any case whose whole is wrong; None if all are right.

    A case with the most frequent cause comes first, so that the page opens on what is typical.
    """
    details = {str(c["case"]): c for c in kept}
    diagnosed = diagnosed_failures(run)
    diagnosis = diagnosed.found if diagnosed else None
    named = {v.case: v.cause for v in diagnosis.verdicts if v.cause not in UNNAMED} if diagnosis else {}
    usual = next((s.cause for s in diagnosis.causes() if s.cause not in UNNAMED), None) if diagnosis else None
    failures = run.groups[0] or list(came_from)

    def tells(case: str) -> tuple[bool, ...]:
        detail = details.get(case, {})
        known = case in came_from and came_from[case].kind not in (UNCLEAR, INVALID, ABSTAINED)
        wrong = case in came_from and came_from[case].kind not in (INVALID, ABSTAINED)
        why = case in named, usual is not None and named.get(case) == usual
        return wrong, *why, bool(detail.get("attention")), bool(detail.get("sweep")), known, case in beside

    return max(failures, key=tells, default=None)


def _title(run: RunData) -> str:
    """One sentence that says whether the model fails by composition."""
    found = _gap(run)
    if found is not None:
        return _gap_title(found)
    alone = run.one("composition")
    if alone is None or alone.value is None:
        return "No whole could be judged."
    return f"{alone.n - int(alone.count or 0)} of {alone.n} wholes are wrong."


def _gap(run: RunData) -> Metric | None:
    return next((m for name in ("residual_failure", "press_gap") if (m := run.one(name))), None)


def _lead(run: RunData) -> str:
    """The rate behind the title, with its interval; a sentence of its own for a run with scaffolds."""
    found = _gap(run)
    if found is None or found.value is None:
        return headline.lead([run])
    unknown = f"; {found.n_invalid} more cases could not be judged" if found.n_invalid else ""
    rate, ends = headline.shown(found, "rate"), headline.interval(found, "rate")
    return f"Wrong wholes where every part is right: {rate} {ends}{unknown}."


def _gap_title(found: Metric) -> str:
    if not found.n:
        return f"{headline.none_known(found.n_invalid)}, so nothing can be said about composition."
    if found.n < MARKED_BELOW:
        wrong = f"{found.count:.0f} of {found.n} wholes are wrong though every part is right."
        return f"Too few cases to say whether it fails by composition: {wrong}"
    if not found.count:
        return f"It composes: with every part right, none of {found.n} wholes is wrong."
    rarely = "rarely " if found.value is not None and found.value < RARE else ""
    return (
        f"It {rarely}fails by composition: {found.count:.0f} of {found.n} wholes are wrong though every part is right."
    )


def _corrected_together(run: RunData) -> Mapping[bool, str]:
    """What p was corrected for, in words: in the declared family of one test a probe (True), and elsewhere (False).

    Each p is shown with these words: the interval beside it belongs to that test alone, so it can leave out 0 where p
    is not small.
    """
    rows = [row for name in run.probe_names if (data := run.probe(name)) is not None for row in data.table]
    sizes = Counter(is_primary(row) for row in rows if row.get("p_adjusted") is not None)
    return {
        first: f", corrected for {what.format(sizes[first])}" if sizes[first] > 1 else ""
        for first, what in (
            (True, "the main tests of {} probes (Holm)"),
            (False, "{} other tests (Benjamini-Hochberg)"),
        )
    }


def finding(table: Sequence[Row]) -> Row | None:
    """The one row that stands for a probe's result: of the declared family, or else of the patching."""
    return next((r for r in table if is_primary(r)), None) or _patched(table)


def says(row: Row, run: RunData, probe: str) -> str:
    """What such a row of a run's probe measures, in words; and whether its cases are still those of the run."""
    where = f", largest at layer {row['layer']:.0f}" if row.get("layer") is not None else ""
    return SAYS[str(row["quantity"])] + where + _on_others(run, probe)


def _on_others(run: RunData, probe: str) -> str:
    found = measured_on_others(run, probe)
    return f" ({found})" if found else ""


def _finding(run: RunData, probe: Probe, tests: Sequence[Row], together: Mapping[bool, str]) -> Finding | None:
    data = run.probe(probe.name)
    if data is None:
        return None
    row = finding(data.table)
    if row is None:
        return None
    p, n = row.get("p_adjusted"), int(row.get("n") or 0)
    smallest = row.get("smallest_detectable")
    value = number_text("value", row.get("value"))
    interval = ends(row)
    kind = "open" if p is None or n < FEWEST or not interval else "yes" if p < ALPHA else "no"
    more = f"smallest detectable difference: {smallest:.2g} sd" if smallest and kind != "yes" else ""
    good, bad = (sum(t["kind"] in kinds for t in tests) for kinds in (("yes",), sections.FAILS))
    return Finding(
        probe.name, probe.title, says(row, run, probe.name), value,
        interval or ("no interval" if value else "undefined"), n, ANSWERS[kind], kind,
        f"p {number_text('p_adjusted', p)}{together[is_primary(row)]}" if p is not None else "", more,
        f"own test: {_tested(tests) if tests else 'none'}", _trust(tests),
        "no" if bad else "yes" if tests and good == len(tests) else "open", UNITS[str(row["quantity"])],
    )  # fmt: skip


def main_number(run: RunData, page: Landing, probe: Probe) -> str:
    """What a probe found in a run, on one line: the heading under which its section is folded."""
    found = next((f for f in page.findings if f.anchor == probe.name), None)
    if found is None and (data := run.probe(probe.name)) is not None:
        said = _explored(data.table) or "nothing was compared in this run"
        return f"{said[0].upper()}{said[1:]}."
    if found is None:
        return "Not run in this run."
    value = f"{found.value} {found.interval}".replace("-", "−")
    return f"{found.says}: {value}, n = {found.n}; {found.answer}; trusted? {found.trusted}"


def _tested(tests: Sequence[Row], what: str = "") -> str:
    """How many checks of a probe passed or failed, and what those were about; ``what`` follows the first number."""
    (good, passed), (bad, failed) = (sections.counted(tests, *kinds) for kinds in (("yes",), sections.FAILS))
    n, unsaid = len(tests), sections.counted(tests, "open")[1]
    if bad:
        return f"{bad} of {n}{what} failed{failed}"
    left = f"{n - good} cannot say{unsaid}"
    return f"{good} of {n}{what} passed{passed}" + (f", {left}" if good < n else "") if good else left


def _trust(tests: Sequence[Row]) -> str:
    """Whether a probe's checks support what it says.

    >>> _trust([{"kind": "yes", "about": "next token"}, {"kind": "open"}])
    'partly: 1 of 2 checks passed (next token), 1 cannot say'
    """
    good, bad = (sections.counted(tests, *kinds)[0] for kinds in (("yes",), sections.FAILS))
    if not tests:
        return "unknown: no check here"
    if not good and not bad:
        return f"unknown: {how_many(len(tests), 'check')} cannot say"
    return f"{'no' if bad else 'yes' if good == len(tests) else 'partly'}: {_tested(tests, ' checks')}"


def in_words(run: RunData) -> list[str]:
    """One line per probe: what it found between failures and matched successes, with n, and if its own test passed.

    Probes that had nothing to compare share one line, which says why.

    >>> in_words(read_run("runs/demo/control--mixed"))[1]
    "lookback: no difference shown: how much heads look back at the prompt: failures minus successes 0.031 [...] (a ..."
    """
    answers = [v for v in sections.read_validity([run.path, run.path.parent])[0] if v["headline"]]
    out, without, together = [], [], _corrected_together(run)
    for probe, data in ((p, data) for p in described() if (data := run.probe(p.name)) is not None):
        f = _finding(run, probe, sections.tests_of(answers, [run], probe), together)
        if f is None and (explored := _explored(data.table)):
            out.append(f"{probe.name}: {explored}{_on_others(run, probe.name)}")
        elif f is None or not f.value:  # a single pair has no value
            without.append(probe.name)
        else:
            side = "" if f.says.startswith(SAYS[PATCHED]) else "failures minus successes "
            more = f", {f.p}" if f.p else ""
            ends = f" {f.interval} ({f.unit})" if "[" in f.interval else f" ({f.unit}; {f.interval})"
            few = f" (n < {FEWEST}: too few to say)" if f.n < FEWEST else ""
            found = f"{f.says}: {side}{f.value}{ends}, n={f.n}{few}{more}"
            out.append(f"{probe.name}: {f.answer}: {found}; {f.test}")
    out += [f"{', '.join(without)}: nothing to compare: {lacking(run)}"] if without else []
    known = {p.name for p in described()}
    return out + [
        f"{name}: {_explored(data.table) or 'measured'}{_on_others(run, name)}: "
        f"{run.path / 'probes' / name / 'table.csv'}"
        for name in run.probe_names if name not in known and (data := run.probe(name)) is not None
    ]  # fmt: skip


def _explored(table: Sequence[Row]) -> str:
    """How many comparisons a probe without a declared one has, in words; empty if it has none."""
    counts = Counter(r.get("group") for r in table if r.get("value") is not None)
    compared = counts[MATCHED] or counts[UNMATCHED]
    of = "failures and successes, none declared as main"
    return f"explored: {how_many(compared, 'comparison')} of {of}" if compared else ""


def lacking(run: RunData) -> str:
    """Why probes had nothing to compare: too few failures or successes, too few of them alike, or no numbers."""
    if run.counted is not None and not run.case_sets:
        return NO_SETS
    failures, successes = (len(found) for found in run.groups)
    matched = probed_cases(run.path).get("contrast") is not False
    if matched and min(failures, successes) >= FEWEST_PAIRS:
        return "its table has no numbers of failures that were matched with successes"
    have = f"{how_many(failures, 'failure')} and {how_many(successes, 'success', 'successes')}"
    known = of_known_parts(run.protocol)
    if none_decided(run.graded, run.protocol):
        why = ", since every case has an answer that could not be judged; the run's warnings say what to try"
        return f"{have}{known}{why}"
    alike = "" if min(failures, successes) < FEWEST_PAIRS else ", and too few of them are alike"
    return (
        f"{have}{known}{alike}; at least {FEWEST_PAIRS} failures are needed, each with its own success "
        "of the same family and of similar depth and length: ask more cases"
    )


def _patched(table: Sequence[Row]) -> Row | None:
    """How much more a success's state repairs than a random case's state, at the layer where it repairs most."""
    rows = [r for r in table if r.get("quantity") == PATCHED and r.get("group") == "donor - random"]
    return max(rows, key=lambda r: -math.inf if r.get("value") is None else r["value"], default=None)
