"""Simulated data sets with a known truth, to which the functions of the probes and protocols are applied.

Cases share facts or items as they do in the benchmarks. For comparison, the functions are also applied without knowing
what is shared.
"""

import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import NamedTuple

import numpy as np
import torch
from scipy import stats

from ...evaluation import statistics
from ...evaluation.case import shares
from ...probes.contrast import between, map_test, paired
from ...probes.effects import hedges_g
from ...probes.examples import Example
from ...probes.matching import Matched
from ...probes.patching.outcomes import PatchOutcome, summarize
from ...probes.result import Row
from ...probes.tables import group_rows, matched_rows
from ...probes.trajectory import separation_rows
from ...probes.validity import auroc, membership_auroc, shuffled_p
from ...probes.verdicts import corrected, is_primary

Array = np.ndarray
Generator = np.random.Generator
NAN = float("nan")


class Draw(NamedTuple):
    """One simulated data set: p without an effect, if the interval contains the truth, and both ignoring sharing."""

    p: float = NAN
    covered: float = NAN
    plain_p: float = NAN
    """The same, without the information on what is shared."""
    plain_covered: float = NAN


@dataclass(frozen=True)
class Scenario:
    """One way in which cases share something."""

    name: str
    draw: Callable[[Generator], Draw]
    claims: bool = True
    """Whether p and an interval may be given; if not, both must be absent."""


def _inside(row: Row, truth: float, prefix: str = "") -> float:
    low, high = row[f"{prefix}low"], row[f"{prefix}high"]
    return NAN if math.isnan(low) else float(low <= truth <= high)


def _values(rng: Generator, labels: Sequence[Hashable], share: float) -> Array:
    """Numbers of variance 1, of which the labels' clusters explain the part ``share``."""
    of = {name: i for i, name in enumerate(dict.fromkeys(n for label in labels for n in _names(label)))}
    effects = rng.normal(size=len(of))
    common = np.array([sum(effects[of[n]] for n in _names(label)) / math.sqrt(len(_names(label))) for label in labels])
    return math.sqrt(share) * common + math.sqrt(1 - share) * rng.normal(size=len(labels))


def _names(label: Hashable) -> tuple[Hashable, ...]:
    return tuple(sorted(label)) if isinstance(label, frozenset) else (label,)


def _clusters(clusters: int, size: int | Sequence[int], name: str) -> list[str]:
    return [f"{name}{i}" for i in np.repeat(np.arange(clusters), size)]


def _example(case: str, group: str, label: Hashable, length: int = 1) -> Example:
    cluster, *crossed = map(str, _names(label))
    return Example(case, "whole", "composition", group, (1,) * length, (1,), (1,), 0, (0, 1), cluster=cluster,
                   crossed=tuple(crossed))  # fmt: skip


def _matched(rng: Generator, failures: Sequence[Hashable], successes: Sequence[Hashable]) -> Draw:
    """Pairs of failures and successes with these labels, drawn from the same distribution."""
    n, truth = len(failures), 0.0
    examples = [_example(f"{g}{i}", g, label) for g, labels in (("failure", failures), ("success", successes))
                for i, label in enumerate(labels)]  # fmt: skip
    numbers = _values(rng, [*failures, *successes], 0.6)
    pairs = tuple((f"failure{i}", f"success{i}") for i in range(n))
    (row,) = matched_rows("q", examples, Matched(pairs, (), (), (), 0.0), lambda i, _: float(numbers[i]))
    sides = {"failure": numbers[:n].tolist(), "success": numbers[n:].tolist()}
    plain = paired(sides).table[0]
    return Draw(row["p"], _inside(row, truth), plain["p"], _inside(plain, truth))


def successes_shared(rng: Generator, by: int, clusters: int) -> Draw:
    """Each failure has its own cluster; the successes of a cluster are partners of many failures."""
    successes = _clusters(clusters, by, "s")
    return _matched(rng, [f"f{i}" for i in range(len(successes))], successes)


def both_sides(rng: Generator) -> Draw:
    """Failures and successes in clusters of four, which the matching breaks up."""
    successes = np.array(_clusters(12, 4, "s"))
    return _matched(rng, _clusters(12, 4, "f"), rng.permutation(successes).tolist())


def _sums(rng: Generator, n: int, things: Sequence[int]) -> list[Hashable]:
    return [frozenset(f"thing{j}" for j in rng.choice(things, 2, replace=False)) for _ in range(n)]


def crossed_pairs(rng: Generator, same: bool) -> Draw:
    """Every case is about two of 24 things; failures are about the same things as successes, or mostly about others."""
    first, second = (range(24), range(24)) if same else (range(16), range(8, 24))
    return _matched(rng, _sums(rng, 60, first), _sums(rng, 60, second))


def _skewed(normal: Array) -> Array:
    return np.exp(0.8 * normal) - math.exp(0.32)


def _yes(normal: Array) -> Array:
    return (normal < stats.norm.ppf(0.3)) - 0.3


Law = Callable[[Array], Array]


def groups(
    rng: Generator, first: Sequence[int], second: Sequence[int], spread: float = 1.0, law: Law = np.asarray
) -> Draw:
    """Two groups of clusters of these sizes; the first varies ``spread`` times as much."""
    labels = {n: _clusters(len(s), s, n) for n, s in (("first", first), ("second", second))}
    values = {n: law(_values(rng, labels[n], 0.5)) * (spread if n == "first" else 1) for n in labels}
    row, plain = between(values, clusters=labels).table[-1], between(values).table[-1]
    return Draw(row["p"], _inside(row, 0), plain["p"], _inside(plain, 0))


def crossed_groups(rng: Generator) -> Draw:
    """Two groups of cases, each about two of 16 things of its group."""
    labels = {n: _sums(rng, 40, range(16 * i, 16 * i + 16)) for i, n in enumerate(("first", "second"))}
    values = {n: _values(rng, labels[n], 0.5) for n in labels}
    row, plain = between(values, clusters=labels).table[-1], between(values).table[-1]
    return Draw(row["p"], _inside(row, 0), plain["p"], _inside(plain, 0))


def patched(rng: Generator) -> Draw:
    """The rate of 30 % over forty patched failures, whose donors are some of ten successes."""
    donors = rng.integers(10, size=40)
    y = _yes(_values(rng, donors.tolist(), 0.5)) + 0.3
    made = [PatchOutcome("donor", int(donors[i]), i, {"flip_rate": torch.tensor([y[i]])}) for i in range(40)]
    (row,), *_ = summarize(made, [0])
    return Draw(covered=_inside(row, 0.3), plain_covered=float(0.3 in statistics.clopper_pearson(int(y.sum()), 40)))


def one_group(rng: Generator, law: Law) -> Draw:
    """The mean of a group in eight clusters of 1 to 12 cases."""
    labels = _clusters(8, (1, 2, 3, 4, 4, 6, 8, 12), "c")
    values = {"a": law(_values(rng, labels, 0.5)), "b": rng.normal(size=9)}
    row, plain = between(values, clusters={"a": labels}).table[0], between(values).table[0]
    return Draw(covered=_inside(row, 0), plain_covered=_inside(plain, 0))


def effect_size(rng: Generator) -> Draw:
    """Hedges' g of a difference of 0.8 standard deviations, eight clusters of four a side."""
    labels = {n: _clusters(8, 4, n) for n in ("a", "b")}
    a, b = _values(rng, labels["a"], 0.5) + 0.8, _values(rng, labels["b"], 0.5)
    row = between({"a": a, "b": b}, clusters=labels).table[-1]
    plain = hedges_g(a, b)
    return Draw(covered=_inside(row, 0.8, "effect_"), plain_covered=float(plain.low <= 0.8 <= plain.high))


def unequal_effect_size(rng: Generator) -> Draw:
    """Hedges' g of 0.8 standard deviations: eight cases with three times the spread against forty, nothing shared."""
    pooled = math.sqrt((7 * 9 + 39) / 46)
    found = hedges_g(3 * rng.normal(size=8) + 0.8 * pooled, rng.normal(size=40))
    return Draw(covered=float(found.low <= 0.8 <= found.high))


def few_scaffolds(rng: Generator) -> Draw:
    """The mean number of steps that had to be revealed, over twelve items that share nothing."""
    k = 1.0 + rng.binomial(4, 0.15, size=12)
    columns = np.column_stack([k, np.ones(12)])
    found = statistics.bootstrap(columns, lambda s: s[..., 0] / s[..., 1], seed=0, skewed=True)
    return Draw(covered=NAN if found.low is None else float(found.low <= 1.6 <= (found.high or NAN)))


def paired_effect_size(rng: Generator) -> Draw:
    """d of paired differences of 0.8 standard deviations in ten clusters of four."""
    labels = _clusters(10, 4, "c")
    sides = {"a": (_values(rng, labels, 0.5) + 0.8).tolist(), "b": [0.0] * 40}
    row, plain = paired(sides, clusters=labels).table[0], paired(sides).table[0]
    return Draw(covered=_inside(row, 0.8, "effect_"), plain_covered=_inside(plain, 0.8, "effect_"))


def map_of(rng: Generator, cells: int, cluster: int | None, spread: float = 3.0, law: Law = np.asarray) -> Draw:
    """Maps of 8 cases (or clusters) with ``spread`` times the spread against 40 (20) others."""
    n, m = (8, 40) if cluster is None else (8, 20)
    near = tuple([i // (cluster or 1) + s * 100 for i in range(k * (cluster or 1))] for s, k in ((0, n), (1, m)))
    x, y = (law(np.stack([_values(rng, labels, 0.5 if cluster else 0.0) for _ in range(cells)], 1)) for labels in near)
    seed = int(rng.integers(1 << 30))
    if cells == 1:
        row = between({"a": spread * x[:, 0], "b": y[:, 0]}, test="permutation", resamples=500, seed=seed).table[-1]
        raw = stats.permutation_test((spread * x[:, 0], y[:, 0]), lambda a, b, axis: a.mean(axis) - b.mean(axis),
                                     vectorized=True, n_resamples=500, rng=np.random.default_rng(seed))  # fmt: skip
        return Draw(row["p"], plain_p=float(raw.pvalue))
    found = map_test(
        spread * x, y, permutations=500, clusters=(near[0], near[1]) if cluster else (None, None), seed=seed
    )
    return Draw(float(found.p.min()))


def _states(rng: Generator, clusters: int, shift: float, mixed: bool) -> tuple[Array, list[str], int]:
    """Cosines [1 n n] of states in clusters of four, donors first, and their labels."""
    labels = _clusters(clusters if mixed else 2 * clusters, 4, "c")
    x = np.stack([_values(rng, labels, 0.5) for _ in range(12)], 1) + 0.5
    donor = np.arange(len(labels)) % 2 == 0 if mixed else np.arange(len(labels)) < len(labels) // 2
    x[donor, :4] += shift
    order = np.argsort(~donor, kind="stable")
    x = x[order] / np.linalg.norm(x[order], axis=1, keepdims=True)
    return (x @ x.T)[None], [labels[i] for i in order], int(donor.sum())


@cache
def cosine(dimensions: int, *shifts: float) -> float:
    """The mean cosine of two states that share nothing: the product of the mean directions with these shifts."""
    drawn = np.random.default_rng(0).normal(size=(100_000, dimensions)) + 0.5
    first, second = (drawn + shift * (np.arange(dimensions) < 4) for shift in shifts)
    return float(np.dot(*((x / np.linalg.norm(x, axis=1, keepdims=True)).mean(0) for x in (first, second))))


def cosines(rng: Generator, mixed: bool) -> Draw:
    """States at the prompt end: each cluster lies within one group, or half of it in each group."""
    seed = int(rng.integers(1 << 30))
    matrix, labels, n = _states(rng, 12 if mixed else 8, 0, mixed)
    null = separation_rows("c", matrix, n, labels, permutations=300, seed=seed)[-1]
    plain = separation_rows("c", matrix, n, [None] * len(labels), permutations=300, seed=seed)[-1]
    if mixed:
        return Draw(null["p"], plain_p=plain["p"])
    matrix, labels, n = _states(rng, 8, 1.0, False)
    row = separation_rows("c", matrix, n, labels, permutations=20, seed=seed)[-1]
    other = separation_rows("c", matrix, n, [None] * len(labels), permutations=20, seed=seed)[-1]
    truth = (cosine(12, 1, 1) + cosine(12, 0, 0)) / 2 - cosine(12, 1, 0)
    return Draw(null["p"], _inside(row, truth), plain["p"], _inside(other, truth))


def tables_of_a_run(rng: Generator, primary: bool) -> Draw:
    """The smallest adjusted p in tables of four probes, with three numbers each, over cases labelled at random."""
    labels = [*_clusters(10, 2, "f"), *_clusters(10, 2, "s")]
    examples = [_example(f"{i}", "failure" if i < 20 else "success", label) for i, label in enumerate(labels)]
    matched = Matched(tuple((f"{i}", f"{i + 20}") for i in range(20)), (), (), (), 0.0)
    rows: list[Row] = []
    for quantity in ("lookback_ratio", "min_k_pp", "step_cosine", "suppress_log_ratio_excess"):
        base = _values(rng, labels, 0.3)
        for name, noise in ((quantity, 0.0), (f"{quantity}_other", 0.5), (f"{quantity}_third", 1.0)):
            x = base + noise * rng.normal(size=40)
            rows += group_rows(name, [(e, float(v)) for e, v in zip(examples, x, strict=True)])
            rows += matched_rows(name, examples, matched, lambda i, _, x=x: float(x[i]))
    found = [r for r in rows if "p" in r]
    together = [r["p_adjusted"] for r in corrected(found) if is_primary(r) == primary]
    apart = [
        p
        for name in {r["quantity"] for r in found}
        for p in statistics.holm([r["p"] for r in found if r["quantity"] == name and is_primary(r) == primary])
    ]
    return Draw(float(np.nanmin(together)), plain_p=min(p for p in apart if p is not None))


def aurocs(rng: Generator, shift: float, spread: float = 1.0) -> Draw:
    """Scores of members and others in ten and thirty clusters of four; members vary ``spread`` times as much."""
    near, seed = (_clusters(10, 4, "m"), _clusters(30, 4, "n")), int(rng.integers(1 << 30))
    x, y = shift + spread * _values(rng, near[0], 0.5), _values(rng, near[1], 0.5)
    truth = float(stats.norm.cdf(shift / math.hypot(1, spread)))
    found, plain = membership_auroc(x, y, clusters=near, permutations=300, seed=seed).table[0], auroc(x, y)
    tests = (NAN, NAN) if shift else (found["p"], shuffled_p(x, y, permutations=300, seed=seed))
    return Draw(tests[0], _inside(found, truth), tests[1], float(plain.low <= truth <= plain.high))


def rate_of_orders(rng: Generator) -> Draw:
    """312 temporal cases about 48 events, whose answers depend on the events: a rate of 78 %."""
    labels = [shares(c, x) for c, *x in _events()]
    y = _values(rng, labels, 0.3) < stats.norm.ppf(0.78)
    return _rate(y, labels, 0.78)


@cache
def _events() -> tuple[tuple[str, ...], ...]:
    from ..organism.benchmarks import temporal

    return tuple((str(c.cluster), *c.crossed) for c in temporal(24))


def rate_of_clusters(rng: Generator) -> Draw:
    """A rate of 78 % over ten clusters of 5 to 15 cases."""
    labels = _clusters(10, (5, 5, 6, 8, 10, 10, 12, 14, 15, 15), "c")
    return _rate(_values(rng, labels, 0.3) < stats.norm.ppf(0.78), labels, 0.78)


def rare_rate(rng: Generator) -> Draw:
    """A rate of 5 % over 16 clusters of 30 cases, which are mostly right or wrong together."""
    labels = _clusters(16, 30, "c")
    return _rate(_values(rng, labels, 0.8) < stats.norm.ppf(0.05), labels, 0.05)


def _rate(y: Array, labels: Sequence[Hashable], truth: float) -> Draw:
    found, plain = statistics.rate_interval(y.tolist(), labels), statistics.clopper_pearson(int(y.sum()), len(y))
    return Draw(covered=NAN if found.low is None else float(truth in found), plain_covered=float(truth in plain))


def few_pairs(rng: Generator) -> Draw:
    """The difference of two rates over ten cases, one or two of which differ."""
    a, b = ((rng.random(10) < p).tolist() for p in (0.9, 0.85))
    return Draw(covered=float(0.9 - 0.85 in statistics.paired_difference(a, b, seed=0)))


def difference_of_rates(rng: Generator, first: float, second: float) -> Draw:
    """The difference between two rates over the same cases in ten clusters, as between two runs."""
    labels, truth = _clusters(10, 10, "c"), first - second
    a, b = ((_values(rng, labels, 0.3) < stats.norm.ppf(p)).tolist() for p in (first, second))
    found = statistics.paired_difference(a, b, seed=0, clusters=labels)
    plain = statistics.paired_difference(a, b, seed=int(rng.integers(1 << 30)), n_resamples=500)
    tests = (NAN, NAN) if truth else (statistics.mcnemar(a, b, labels).p, statistics.mcnemar(a, b).p)
    return Draw(tests[0] or NAN, float(truth in found), tests[1] or NAN, float(truth in plain))


UNEQUAL, THIRTY = (1, 1, 2, 2, 4, 4, 8, 12), (1, 1, 2, 4, 8) * 6
SCENARIOS = (
    Scenario("prompt-end cosines, 8 clusters of 4 within each group", partial(cosines, mixed=False)),
    Scenario("prompt-end cosines, groups mixed within 12 clusters of 4", partial(cosines, mixed=True)),
    Scenario("matched pairs, successes shared by 4, 12 clusters", partial(successes_shared, by=4, clusters=12)),
    Scenario("matched pairs, successes shared by 10, 8 clusters", partial(successes_shared, by=10, clusters=8)),
    Scenario("matched pairs, clusters of both sides, 12 of 4 each", both_sides),
    Scenario("matched pairs, every case about two of 24 things", partial(crossed_pairs, same=True)),
    Scenario("the same, failures mostly about other things", partial(crossed_pairs, same=False)),
    Scenario("groups of 8 and 8 clusters of 4", partial(groups, first=(4,) * 8, second=(4,) * 8)),
    Scenario("groups of 8 unequal and 20 clusters", partial(groups, first=UNEQUAL, second=(3,) * 20)),
    Scenario(
        "groups of 8 and 20 clusters, spread 3 to 1", partial(groups, first=(4,) * 8, second=(4,) * 20, spread=3.0)
    ),
    Scenario("groups of 5 and 20 clusters of 4", partial(groups, first=(4,) * 5, second=(4,) * 20)),
    Scenario(
        "groups of 3 and 20 clusters: nothing is claimed",
        partial(groups, first=(4,) * 3, second=(4,) * 20),
        claims=False,
    ),
    Scenario(
        "groups of 8 and 30 unequal clusters, skewed values", partial(groups, first=UNEQUAL, second=THIRTY, law=_skewed)
    ),
    Scenario("groups of 8 and 30 unequal clusters, yes or no", partial(groups, first=UNEQUAL, second=THIRTY, law=_yes)),
    Scenario("groups of cases about two of 16 things", crossed_groups),
    Scenario("mean of 8 unequal clusters", partial(one_group, law=np.asarray)),
    Scenario("mean of 8 unequal clusters, yes or no", partial(one_group, law=_yes)),
    Scenario("patching: 40 failures with 10 donors", patched),
    Scenario("Hedges' g, 8 clusters of 4 a side", effect_size),
    Scenario("Hedges' g, 8 against 40 cases, spread 3 to 1", unequal_effect_size),
    Scenario("d of pairs, 10 clusters of 4", paired_effect_size),
    Scenario("between(test='permutation'), 8 against 40, spread 3 to 1", partial(map_of, cells=1, cluster=None)),
    Scenario("map of 50 cells, 8 against 40, spread 3 to 1", partial(map_of, cells=50, cluster=None)),
    Scenario(
        "map of 50 cells, 8 against 40, skewed values", partial(map_of, cells=50, cluster=None, spread=1.0, law=_skewed)
    ),
    Scenario("map of 50 cells, 8 against 20 clusters of 3, spread 3 to 1", partial(map_of, cells=50, cluster=3)),
    Scenario("a run's primary family, labels at random", partial(tables_of_a_run, primary=True)),
    Scenario("a run's exploratory tests, labels at random", partial(tables_of_a_run, primary=False)),
    Scenario("AUROC of 0.86, 10 and 30 clusters of 4", partial(aurocs, shift=1.5)),
    Scenario("AUROC of 0.5, 10 and 30 clusters of 4, spread 3 to 1", partial(aurocs, shift=0, spread=3.0)),
    Scenario("rate over 312 cases about 48 events", rate_of_orders),
    Scenario("rate over 10 unequal clusters", rate_of_clusters),
    Scenario("rate of 5 % over 16 clusters of 30", rare_rate),
    Scenario("mean number of scaffolds, 12 items", few_scaffolds),
    Scenario("difference of rates over 10 cases that share nothing", few_pairs),
    Scenario("difference of rates over 10 clusters of 10", partial(difference_of_rates, first=0.7, second=0.5)),
    Scenario("two runs with equal rates over 10 clusters of 10", partial(difference_of_rates, first=0.7, second=0.7)),
)
