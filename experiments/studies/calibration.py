"""``composcope study calibration``: false positives of the tests and coverage of the intervals by simulation.

The functions of protocols, analyses and probes are applied to data sets with a known truth: those of ``simulated``, and
here answers and numbers of whole runs.
"""

import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from pathlib import Path

import numpy as np
import torch
from scipy import stats

from ...evaluation import statistics
from ...evaluation.analyses import gated, stad
from ...evaluation.analyses.base import Source, lengths
from ...evaluation.graded import Graded
from ...evaluation.metrics import Metric, find, quoted
from ...evaluation.protocols import counting, get, reasoning_gap
from ...evaluation.protocols.compare import compare
from ...probes.contrast import between, map_test
from ...probes.matching import match
from ...probes.patching.outcomes import QUANTITIES, PatchOutcome, against_controls
from ...probes.result import Row
from ...probes.tables import cell_maps, matched_rows
from ...probes.trajectory import separation_rows
from ...probes.validity import dose_series
from ..console.printing import markdown_table
from ..run.folder import write_json, write_text
from . import simulated
from .simulated import NAN, UNEQUAL, Array, Draw, Generator, Scenario, _clusters, _example, _inside, _skewed, _values
from .tables import gains

MOST_FALSE, LEAST_COVERED = 0.06, 0.93
"""The required rates when each side has at least eight clusters."""


def _ask(case: str, role: str, right: bool, **about: object) -> Graded:
    return Graded(case, role, "correct" if right else "incorrect", **about)  # type: ignore[arg-type]


def _rows(labels: Sequence[str | None], right: Mapping[str, Sequence[bool] | Array], **about: object) -> list[Graded]:
    """Every case's answers by role; ``labels`` are the clusters."""
    return [
        _ask(f"case{i}", role, bool(of[i]), cluster=label, **about)
        for i, label in enumerate(labels)
        for role, of in right.items()
    ]


def _right(rng: Generator, labels: Sequence[Hashable], rate: float, share: float = 0.4) -> Array:
    return _values(rng, labels, share) < stats.norm.ppf(rate)


def _covers(metric: Metric | None, truth: float) -> float:
    """Whether the interval to quote contains the truth; NaN if there is none."""
    if metric is None:
        return NAN
    low, high = quoted(metric).low, quoted(metric).high
    return NAN if low is None or high is None else float(low <= truth <= high)


def _plainly(metric: Metric | None, truth: float) -> float:
    """The same for the interval of independent cases, where it is also given."""
    return NAN if metric is None or metric.low is None else float(metric.low <= truth <= (metric.high or NAN))


def repeats(rng: Generator) -> Draw:
    """The stability of sixteen facts that are asked five times, with nearly the same answer each time."""
    facts = [f"fact{i}" for i in range(16)]
    right = _values(rng, facts * 5, 0.9) < stats.norm.ppf(0.7)
    rows = [_ask(fact, "part:0:paraphrase:0", bool(right[16 * r + i]), atom=fact, repeat=r)
            for r in range(5) for i, fact in enumerate(facts)]  # fmt: skip
    found = find(get("double-gate").reduce(rows).metrics, "atom_stability", per="fact")
    return Draw(covered=_covers(found, 0.7), plain_covered=_plainly(found, 0.7))


def joint_facts(rng: Generator) -> Draw:
    """Cases whose two facts, of twelve, are both stable."""
    stable, rows = rng.random(12) < 0.7, list[Graded]()
    for i in range(60):
        for j, fact in enumerate(rng.choice(12, 2, replace=False)):
            rows.append(_ask(f"case{i}", f"part:{j}:paraphrase:0", bool(stable[fact]), atom=f"fact{fact}"))
    found = find(gated.expectation(Source("run", rows)).metrics, "jointly_stable", facts=2)
    return Draw(covered=_covers(found, 0.49), plain_covered=_plainly(found, 0.49))


def formats(rng: Generator) -> Draw:
    """The share of cases, in ten clusters of eight, with the same answer in two formats."""
    labels = _clusters(10, 8, "c")
    same = _right(rng, labels, 0.7)
    rows = [Graded(f"case{i}", role, "correct", cluster=label, prompt=prompt, answer=answer)
            for i, label in enumerate(labels)
            for role, prompt, answer in (("part:0", "xml", "x"), ("whole", "xml", "x"),
                                         ("whole:cot", "cot", "x" if same[i] else "y"))]  # fmt: skip
    found = find(gated.compare_formats([Source("run", rows)]).metrics, "agreement", prompts="xml = cot")
    return Draw(covered=_covers(found, 0.7), plain_covered=_plainly(found, 0.7))


def _scaffolded(rng: Generator, labels: Sequence[Hashable], chances: Sequence[float]) -> list[Graded]:
    """Items that need 1, 2, ... steps with these chances, by cluster."""
    k = np.searchsorted(np.cumsum(chances), stats.norm.cdf(_values(rng, labels, 0.5))) + 1
    shared = [None if label is None or isinstance(label, int) else str(label) for label in labels]
    levels = {f"scaffold:{j}": j >= k for j in range(1, len(chances) + 1)}
    skills = tuple("abcdefgh"[: len(chances) + 1])
    right = _right(rng, labels, 0.7)
    return _rows(shared, {"whole": np.zeros(len(k), bool), "part:0": right, **levels}, skills=skills)


def mean_k(rng: Generator) -> Draw:
    """The mean number of steps revealed over twelve items, three of five of which need one."""
    chances = (0.6, 0.25, 0.1, 0.03, 0.02)
    found = get("scaffolding", ask_all=True).reduce(_scaffolded(rng, range(12), chances)).metrics
    return Draw(covered=_covers(find(found, "mean_k"), float(np.dot(chances, range(1, 6)))))


def bottlenecks(rng: Generator) -> Draw:
    """The share of items whose bottleneck is one skill, and two models' profiles, over ten clusters of six."""
    runs = [Source(n, _scaffolded(rng, _clusters(10, 6, "c"), (0.5, 0.3, 0.2))) for n in ("a", "b")]
    found = find(stad.bottlenecks_by_size(runs[:1]).metrics, "bottleneck_size", skills="1")
    seed = int(rng.integers(1 << 30))
    (pair,) = stad.equal_accuracy(runs, permutations=200, seed=seed).tables["pairs"]
    return Draw(pair["p"], _covers(found, 0.5), plain_covered=_plainly(found, 0.5))


def response_lengths(rng: Generator) -> Draw:
    """The mean length of responses to cases in ten clusters of eight."""
    labels = _clusters(10, 8, "c")
    tokens = np.round(np.exp(4 + 0.4 * _values(rng, labels, 0.5))).astype(int)
    rows = [_ask(f"case{i}", "whole", True, cluster=label, ask=str(i)) for i, label in enumerate(labels)]
    truth, of = math.exp(4 + 0.4**2 / 2), {str(i): int(n) for i, n in enumerate(tokens)}
    found = lengths([Source("run", rows, tokens=of)]).metrics[0]
    columns = np.column_stack([tokens, np.ones(80)])
    plain = statistics.bootstrap(columns, lambda s: s[..., 0] / s[..., 1], seed=0)
    return Draw(covered=_covers(found, truth), plain_covered=float(truth in plain))


def gain_of_code(rng: Generator) -> Draw:
    """The relative gain of code where one of eight answers is right either way, over ten clusters of six."""
    labels = _clusters(10, 6, "c")
    rows = _rows(labels, {"whole": _right(rng, labels, 0.12), "code": _right(rng, labels, 0.12)})
    return Draw(covered=_covers(reasoning_gap.code_gain(counting.items(rows), {}, 0), 0))


def gap_of_gaps(rng: Generator) -> Draw:
    """Two equal models' difference of whole - S1 * S2, over ten clusters of six."""
    labels = _clusters(10, 6, "c")
    rates = {"part:0": 0.8, "part:1": 0.7, "whole": 0.5}
    a, b = (_rows(labels, {role: _right(rng, labels, p) for role, p in rates.items()}) for _ in range(2))
    return Draw(covered=_covers(find(gains(a, b), "pair_gap"), 0))


def two_gates(rng: Generator) -> Draw:
    """Two equal models' difference of residual failure behind gates that 60 % pass, over ten clusters of eight."""
    labels = _clusters(10, 8, "c")

    def side() -> list[Graded]:
        parts = _rows(labels, {"part:0": _right(rng, labels, 0.6), "whole": _right(rng, labels, 0.75)})
        return [*parts, *(_ask(f"case{i}", "part:0:paraphrase:0", True, atom=f"a{i}") for i in range(80))]

    found = compare(side(), side())
    return Draw(found.mcnemar.p or NAN, _covers(find(found.metrics, "delta_comp"), 0))


def depth_of_half(rng: Generator) -> Draw:
    """d50 of a flat curve over seven depths of thirty cases."""
    rates = (0.40, 0.42, 0.44, 0.46, 0.48, 0.52, 0.6)
    found = statistics.d50((2, 3, 4, 5, 6, 8, 10), [int(rng.binomial(30, r)) for r in rates], [30] * 7)
    ends = [(-math.inf if (said or "").startswith("<") else math.inf) if end is None else end
            for end, said in ((found.low, found.low_censored), (found.high, found.high_censored))]  # fmt: skip
    return Draw(covered=float(ends[0] <= 7 <= ends[1]))


def mixed_map(rng: Generator) -> Draw:
    """A map of 48 skewed cells, whose ten clusters have one case in four in the first group."""
    labels, first = np.array(_clusters(10, 4, "c")), np.tile([True, False, False, False], 10)
    x = _skewed(np.stack([_values(rng, labels.tolist(), 0.5) for _ in range(48)], 1))
    near = labels[first].tolist(), labels[~first].tolist()
    found = map_test(x[first], x[~first], permutations=300, clusters=near, seed=int(rng.integers(1 << 30)))
    return Draw(float(found.p.min()))


def largest_cell(rng: Generator) -> Draw:
    """The most different cell of a map of 48 without an effect, ten clusters of three in each group."""
    labels = _clusters(20, 3, "c")
    examples = [_example(str(i), "failure" if i < 30 else "success", label) for i, label in enumerate(labels)]
    x = torch.from_numpy(np.stack([_values(rng, labels, 0.5) for _ in range(48)], 1))
    seed = int(rng.integers(1 << 30))
    *_, (row,) = cell_maps("m", "q", list(zip(examples, x, strict=True)), ("cell",), permutations=300, seed=seed)
    at = x[:, row["cell"]].tolist()
    plain = between({"a": at[:30], "b": at[30:]}, clusters={"a": labels[:30], "b": labels[30:]}).table[-1]
    return Draw(row["p"], _inside(row, 0), plain["p"], _inside(plain, 0))


def ranks(rng: Generator) -> Draw:
    """Ranks of eight values with three times the spread against forty, nothing shared."""
    values = {"a": 3 * rng.normal(size=8), "b": rng.normal(size=40)}
    plain = stats.mannwhitneyu(values["a"], values["b"])
    return Draw(between(values, test="mann-whitney").table[-1]["p"], plain_p=float(plain.pvalue))


def donors(rng: Generator) -> Draw:
    """Flips of one in ten, whatever is put in, in sixteen recipients of four donors and one control."""
    undefined = {q: torch.tensor([NAN]) for q in QUANTITIES}

    def one(source: str, donor: int, recipient: int) -> PatchOutcome:
        return PatchOutcome(
            source, donor, recipient, {**undefined, "flip_rate": torch.tensor([float(rng.random() < 0.1)])}
        )

    made = [one(s, d, r) for r in range(16) for s, n in (("donor", 4), ("random", 1)) for d in range(n)]
    rows = against_controls(made, [0], seed=int(rng.integers(1 << 30)))
    row = next(r for r in rows if r["quantity"] == "flip_rate")
    return Draw(row["p"], _inside(row, 0))


def matched_on_length(rng: Generator) -> Draw:
    """Failures and values that both depend on a case's length, and on nothing else in common; 80 cases."""
    long = rng.integers(10, 80, size=80)
    failed = rng.random(80) < 1 / (1 + np.exp(-(long - 45) / 12))
    values = np.log(long) + 0.3 * rng.normal(size=80)
    examples = [_example(str(i), "failure" if failed[i] else "success", str(i), int(long[i])) for i in range(80)]
    (row,) = matched_rows("q", examples, match(examples), lambda i, _: float(values[i]))
    return Draw(row["p"], _inside(row, 0))


def trend(rng: Generator) -> Draw:
    """Kendall's tau over three doses that change nothing, the same eight clusters of four at each."""
    labels = _clusters(8, 4, "c")
    doses = {name: _values(rng, labels, 0.5) for name in "abc"}
    row, plain = dose_series(doses, clusters=dict.fromkeys(doses, labels)).table[-1], dose_series(doses).table[-1]
    return Draw(covered=_inside(row, 0), plain_covered=_inside(plain, 0))


def unequal_cosines(rng: Generator) -> Draw:
    """The mean cosine across groups of states in three dimensions, eight clusters of 1 to 12 in each group."""
    labels = [*_clusters(8, UNEQUAL, "a"), *_clusters(8, UNEQUAL, "b")]
    x = np.stack([_values(rng, labels, 0.5) for _ in range(3)], 1) + 0.5
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    rows = separation_rows("c", (x @ x.T)[None], 34, labels, permutations=200, seed=int(rng.integers(1 << 30)))
    return Draw(rows[-1]["p"], _inside(rows[2], simulated.cosine(3, 0, 0)))


SCENARIOS = (
    *simulated.SCENARIOS,
    Scenario("stability of 16 facts asked five times", repeats),
    Scenario("cases whose two of 12 facts are both stable", joint_facts),
    Scenario("two formats agree, 10 clusters of 8", formats),
    Scenario("mean_k of 12 items, mostly 1", mean_k),
    Scenario("bottlenecks and profiles, 10 clusters of 6", bottlenecks),
    Scenario("mean response length, 10 clusters of 8", response_lengths),
    Scenario("code_gain, 12 % right, 10 clusters of 6", gain_of_code),
    Scenario("pair_gap of equal models, 10 clusters of 6", gap_of_gaps),
    Scenario("delta_comp of equal models, 10 clusters of 8", two_gates),
    Scenario("d50 of a flat curve, 7 depths of 30 cases", depth_of_half),
    Scenario("map of 48 skewed cells, groups mixed within 10 clusters", mixed_map),
    Scenario("the most different of 48 cells, 10 and 10 clusters of 3", largest_cell),
    Scenario("between(test='mann-whitney'), 8 against 40 in spread 3 to 1", ranks),
    Scenario("patching: four donors and one control in 16 failures", donors),
    Scenario("matched pairs, failures and values depend on length", matched_on_length),
    Scenario("trend over three doses, the same 8 clusters of 4", trend),
    Scenario("prompt-end cosines in 3 dimensions, 8 unequal clusters", unequal_cosines),
)


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
