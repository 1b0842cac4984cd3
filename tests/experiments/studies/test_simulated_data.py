"""What the scenarios of ``composcope study calibration`` give to the functions that are tried, and ask of the answers.

The functions are replaced by ones that keep what they are given. The sizes, clusters, rates and truths below are those
that the names and docstrings of the scenarios state.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Hashable, Sequence
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import pytest
from scipy.stats import norm as normal
from scipy.stats import skew

from composcope.evaluation.statistics import Interval
from composcope.experiments.studies import simulated
from composcope.experiments.studies.simulated import Draw
from composcope.probes.verdicts import MATCHED, PRIMARY

Labels = Sequence[Hashable] | None
Ends = tuple[float, float]
BY_NAME = {s.name: s for s in simulated.SCENARIOS}


class Given(NamedTuple):
    """What one call got: numbers by side, and the clusters of each."""

    sides: list[np.ndarray]
    labels: list[Labels]

    def __str__(self) -> str:
        assert all(side is None or len(side) == len(x) for x, side in zip(self.sides, self.labels, strict=True))
        known = [None if side is None else set().union(*map(_things, side)) for side in self.labels]
        said = [str(len(x)) if names is None else f"{len(x)} {_sort(side)} {len(names)}"  # type: ignore[arg-type]
                for x, side, names in zip(self.sides, self.labels, known, strict=True)]  # fmt: skip
        both = set.intersection(*known) if len(known) > 1 and None not in known else ()  # type: ignore[arg-type]
        return " | ".join(said) + (f", {len(both)} shared" if both else "")


def _things(label: Hashable) -> set[Hashable]:
    """A case about two things has a set of them; any other label is one thing."""
    return set(label) if isinstance(label, frozenset | tuple) else {label}


def _sort(side: Sequence[Hashable]) -> str:
    several = {len(_things(label)) for label in side}
    return "in" if several == {1} else f"about {' to '.join(map(str, sorted({min(several), max(several)})))} of"


class Tried:
    """Stands in for every function that is tried.

    What knows the clusters (or has none to know) gives p = 0.1 and ``knowing``, what does not gives p = 0.9 and
    ``plain``. Whatever else is in their tables is far from any truth.
    """

    def __init__(self, name: str, knowing: Ends, plain: Ends) -> None:
        self.name, self.intervals = name, (plain, knowing)
        self.given: list[Given] = []

    def row(self, known: bool) -> dict[str, Any]:
        low, high = self.intervals[known]
        row = {"p": (0.9, 0.1)[known], "low": 98.0, "high": 99.0, "effect_low": 98.0, "effect_high": 99.0, "n": 9}
        prefix = "effect_" if self.name.startswith(("Hedges", "d of")) else ""
        return {**row, f"{prefix}low": low, f"{prefix}high": high}

    def table(self, known: bool) -> Any:
        other = {**self.row(known), "p": 0.5, "low": 98.0, "high": 99.0}
        first = self.name.startswith("mean of")  # the mean of the first group, and not the difference
        return SimpleNamespace(table=[self.row(known), other] if first else [other, self.row(known)])

    def keep(self, sides: Sequence[Any], labels: Sequence[Labels]) -> bool:
        self.given.append(Given([np.asarray(x, dtype=float) for x in sides], list(labels)))
        return any(side is not None for side in labels)

    def between(self, values: Any, *, clusters: Any = None, test: str = "t", **how: Any) -> Any:
        near = [(clusters or {}).get(name) for name in values]
        return self.table(self.keep([*values.values()], near) or test == "permutation")

    def paired(self, sides: Any, *, clusters: Labels = None) -> Any:
        known = self.keep([np.subtract(*sides.values())], [clusters])
        return SimpleNamespace(table=[self.row(known)])

    def hedges_g(self, a: Any, b: Any) -> Any:
        self.keep([a, b], [None, None])
        low, high = self.intervals["against" in self.name]  # nothing is shared there
        return SimpleNamespace(low=low, high=high)

    def map_test(self, x: Any, y: Any, *, permutations: int, clusters: Any, seed: int) -> Any:
        self.keep([x, y], clusters)
        return SimpleNamespace(p=np.array([[0.4, 0.1], [0.2, 0.3]]))

    def matched_rows(self, quantity: str, examples: Any, matched: Any, of: Callable[[int, Any], float]) -> Any:
        at = {e.case: i for i, e in enumerate(examples)}
        sides = [[at[pair[i]] for pair in matched.pairs] for i in (0, 1)]
        assert sorted([*sides[0], *sides[1]]) == [*range(len(examples))], "every case is in one pair"
        assert [{examples[i].group for i in side} for side in sides] == [{"failure"}, {"success"}]
        labels = [[(examples[i].cluster, *examples[i].crossed) for i in side] for side in sides]
        self.keep([[of(i, None) for i in side] for side in sides], labels)
        return [self.row(True)]

    def summarize(self, made: Any, layers: Any) -> Any:
        assert {one.source for one in made} == {"donor"} and len({one.recipient for one in made}) == len(made)
        self.keep([[float(one.values["flip_rate"]) for one in made]], [[one.donor for one in made]])
        return [self.row(True)], [self.row(False)]

    def separation_rows(self, name: str, matrix: Any, n: int, labels: Any, **how: Any) -> Any:
        assert matrix.shape == (1, len(labels), len(labels)) and np.allclose(matrix[0].diagonal(), 1)
        sides = labels[:n], labels[n:]
        known = self.keep([matrix[0, :n, :n].mean(1), matrix[0, n:, n:].mean(1)],
                          [None if None in side else side for side in sides])  # fmt: skip
        return [{**self.row(known), "p": 0.5, "low": 98.0, "high": 99.0}, self.row(known)]

    def membership_auroc(self, x: Any, y: Any, *, clusters: Any, **how: Any) -> Any:
        return SimpleNamespace(table=[self.row(self.keep([x, y], clusters))])

    def auroc(self, x: Any, y: Any) -> Any:
        self.keep([x, y], [None, None])
        return SimpleNamespace(low=self.intervals[0][0], high=self.intervals[0][1])

    def shuffled_p(self, x: Any, y: Any, **how: Any) -> float:
        return 0.9

    def rate_interval(self, y: Any, labels: Any) -> Interval:
        return Interval(*self.intervals[self.keep([y], [labels])], "t")

    def clopper_pearson(self, count: int, n: int) -> Interval:
        self.keep([[1.0] * count + [0.0] * (n - count)], [None])
        return Interval(*self.intervals[0], "exact")

    def bootstrap(self, columns: Any, ratio: Any, **how: Any) -> Interval:
        assert ratio(columns.sum(0)) == pytest.approx(columns[:, 0].mean())
        self.keep([columns[:, 0]], [None])
        return Interval(*self.intervals[1], "bootstrap")

    def paired_difference(self, a: Any, b: Any, *, clusters: Labels = None, **how: Any) -> Interval:
        return Interval(*self.intervals[self.keep([a, b], [clusters, clusters])], "t")

    def mcnemar(self, a: Any, b: Any, labels: Labels = None) -> Any:
        return SimpleNamespace(p=(0.9, 0.1)[labels is not None])


def tried(
    name: str, monkeypatch: pytest.MonkeyPatch, knowing: tuple[float, float], plain: tuple[float, float]
) -> Tried:
    made = Tried(name, knowing, plain)
    for function in ("between", "paired", "hedges_g", "map_test", "matched_rows", "summarize", "separation_rows",
                     "membership_auroc", "auroc", "shuffled_p"):  # fmt: skip
        monkeypatch.setattr(simulated, function, getattr(made, function))
    monkeypatch.setattr(simulated, "statistics", made)
    return made


class Stated(NamedTuple):
    """What a scenario's name and docstring say."""

    calls: list[str]
    """Cases and clusters (or things) of each side, call by call."""
    fields: str
    """p, covered, and the plain ones: pcPC."""
    truth: float = 0.0
    means: tuple[float, ...] = (0.0, 0.0)
    share: float | None = 0.5
    """The part of the variance that the clusters explain, in numbers that are normal."""


def _with(sharing: str) -> list[str]:
    """A call that knows the clusters, and one that does not."""
    return [sharing, " | ".join(side.split(" ")[0] for side in sharing.split(", ")[0].split(" | "))]


def _pairs(sharing: str) -> Stated:
    """Matched pairs; the plain test gets the differences."""
    return Stated([sharing, sharing.split(" ")[0]], "pcPC", share=0.6)


POOLED = math.sqrt((7 * 3**2 + 39 * 1**2) / 46)  # of eight with a standard deviation of 3 and forty with 1
UNEQUAL, THIRTY = "34 in 8", "96 in 30"
MAPS = "map of 50 cells, 8 against "
YES_OR_NO = re.compile("yes or no|^rate o[fv]|rates over|^patching")
COSINES = "prompt-end cosines, "
STATED = {
    COSINES + "groups mixed within 12 clusters of 4": Stated(
        _with("24 in 12 | 24 in 12, 12 shared"), "pP", means=(), share=None
    ),
    "matched pairs, successes shared by 4, 12 clusters": _pairs("48 in 48 | 48 in 12"),
    "matched pairs, successes shared by 10, 8 clusters": _pairs("80 in 80 | 80 in 8"),
    "matched pairs, clusters of both sides, 12 of 4 each": _pairs("48 in 12 | 48 in 12"),
    "matched pairs, every case about two of 24 things": _pairs("60 about 2 of 24 | 60 about 2 of 24, 24 shared"),
    "the same, failures mostly about other things": _pairs("60 about 2 of 16 | 60 about 2 of 16, 8 shared"),
    "groups of 8 and 8 clusters of 4": Stated(_with("32 in 8 | 32 in 8"), "pcPC"),
    "groups of 8 unequal and 20 clusters": Stated(_with(f"{UNEQUAL} | 60 in 20"), "pcPC"),
    "groups of 8 and 20 clusters, spread 3 to 1": Stated(_with("32 in 8 | 80 in 20"), "pcPC"),
    "groups of 5 and 20 clusters of 4": Stated(_with("20 in 5 | 80 in 20"), "pcPC"),
    "groups of 3 and 20 clusters: nothing is claimed": Stated(_with("12 in 3 | 80 in 20"), "pcPC"),
    "groups of 8 and 30 unequal clusters, skewed values": Stated(_with(f"{UNEQUAL} | {THIRTY}"), "pcPC", share=None),
    "groups of 8 and 30 unequal clusters, yes or no": Stated(_with(f"{UNEQUAL} | {THIRTY}"), "pcPC", share=None),
    "groups of cases about two of 16 things": Stated(_with("40 about 2 of 16 | 40 about 2 of 16"), "pcPC"),
    "mean of 8 unequal clusters": Stated(["40 in 8 | 9", "40 | 9"], "cC"),
    "mean of 8 unequal clusters, yes or no": Stated(["40 in 8 | 9", "40 | 9"], "cC", share=None),
    "patching: 40 failures with 10 donors": Stated(["40 in 10", "40"], "cC", 0.3, (0.3,), None),
    "Hedges' g, 8 clusters of 4 a side": Stated(_with("32 in 8 | 32 in 8"), "cC", 0.8, (0.8, 0)),
    "Hedges' g, 8 against 40 cases, spread 3 to 1": Stated(["8 | 40"], "c", 0.8, (0.8 * POOLED, 0), None),
    "d of pairs, 10 clusters of 4": Stated(_with("40 in 10"), "cC", 0.8, (0.8,)),
    "between(test='permutation'), 8 against 40, spread 3 to 1": Stated(["8 | 40"], "p?", share=None),
    MAPS + "40, spread 3 to 1": Stated(["8 | 40"], "p", share=None),
    MAPS + "40, skewed values": Stated(["8 | 40"], "p", share=None),
    MAPS + "20 clusters of 3, spread 3 to 1": Stated(["24 in 8 | 60 in 20"], "p"),
    "AUROC of 0.86, 10 and 30 clusters of 4": Stated(_with("40 in 10 | 120 in 30"), "cC", 0.8556, (1.5, 0)),
    "AUROC of 0.5, 10 and 30 clusters of 4, spread 3 to 1": Stated(_with("40 in 10 | 120 in 30"), "pcPC", 0.5),
    "rate over 312 cases about 48 events": Stated(["312 about 2 to 13 of 48", "312"], "cC", 0.78, (0.78,), None),
    "rate over 10 unequal clusters": Stated(["100 in 10", "100"], "cC", 0.78, (0.78,), None),
    "rate of 5 % over 16 clusters of 30": Stated(["480 in 16", "480"], "cC", 0.05, (0.05,), None),
    "mean number of scaffolds, 12 items": Stated(["12"], "c", 1.6, (1.6,), None),
    "difference of rates over 10 clusters of 10": Stated(
        _with("100 in 10 | 100 in 10, 10 shared"), "cC", 0.2, (0.7, 0.5), None
    ),
    "two runs with equal rates over 10 clusters of 10": Stated(
        _with("100 in 10 | 100 in 10, 10 shared"), "pcPC", 0, (0.7, 0.7), None
    ),
}


FEW_PAIRS = "difference of rates over 10 cases that share nothing"


def test_the_difference_over_few_cases_is_of_ten_pairs_right_in_nine_and_eight_and_a_half_tenths(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    drawn = list[tuple[list[bool], list[bool]]]()
    for ends, covers in (((0.04, 0.06), 1.0), ((0.06, 0.07), 0.0)):

        def told(a: list[bool], b: list[bool], ends: Ends = ends, **how: Any) -> Interval:
            drawn.append((a, b))
            return Interval(*ends, "t")

        monkeypatch.setattr(simulated.statistics, "paired_difference", told)
        rng = np.random.default_rng(3)
        assert {BY_NAME[FEW_PAIRS].draw(rng).covered for _ in range(300)} == {covers}
    a, b = np.array(drawn).swapaxes(0, 1)
    assert a.shape == (600, 10)
    assert (a.mean(), b.mean()) == (pytest.approx(0.9, abs=0.015), pytest.approx(0.85, abs=0.015))


def test_every_scenario_is_stated_here_or_has_a_test_of_its_own() -> None:
    own = {COSINES + "8 clusters of 4 within each group", FEW_PAIRS, *(n for n in BY_NAME if n.startswith("a run's"))}
    assert {*STATED} | own == {*BY_NAME} and len(BY_NAME) == len(simulated.SCENARIOS)


@pytest.mark.parametrize("name", STATED)
def test_a_draw_says_how_the_functions_did_with_and_without_the_clusters(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What holds the truth closely covers it, and what lies beyond it by as little does not."""
    stated = STATED[name]
    around = (stated.truth - 0.002, stated.truth + 0.002)
    below, above = ((stated.truth + shift - 0.001, stated.truth + shift + 0.001) for shift in (-0.003, 0.003))
    for knowing, plain in ((around, below), (around, above), (below, around), (above, around)):
        made = tried(name, monkeypatch, knowing, plain)
        for seed in range(9):
            made.given.clear()
            draw = BY_NAME[name].draw(np.random.default_rng(seed))
            if [*map(str, made.given)] == stated.calls:
                break  # of a few things or donors, some are seldom drawn
        assert [*map(str, made.given)] == stated.calls
        wanted = {"p": 0.1, "c": knowing is around, "P": 0.9, "C": plain is around}
        for field, value in zip("pcPC", draw, strict=True):
            assert value == wanted[field] if field in stated.fields else math.isnan(value) or "?" in stated.fields


@pytest.mark.parametrize("name", STATED)
def test_numbers_have_the_means_that_are_true_and_clusters_explain_their_part(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    stated = STATED[name]
    made = tried(name, monkeypatch, (0, 1), (0, 1))
    rng = np.random.default_rng(7)
    means, drawn, others_drawn, products = [], list[float](), list[float](), np.zeros((2, 2))
    for _ in range(4 if "50 cells" in name else 300 if any(stated.means) and "312" not in name else 40):
        made.given.clear()
        BY_NAME[name].draw(rng)
        first, *others = made.given
        means.append([np.mean(x) for x in first.sides])
        for other in others:
            same = first.sides if len(first.sides) == len(other.sides) else [np.subtract(*first.sides)]
            assert all(np.allclose(np.sort(x), np.sort(y)) for x, y in zip(same, other.sides, strict=True))
        for x, labels, mean in zip(first.sides, first.labels, stated.means, strict=False):
            if labels is not None and stated.share is not None:
                products += _products(x - mean, labels)
        drawn += np.ravel(first.sides[0]).tolist()
        others_drawn += np.ravel(first.sides[-1]).tolist()
        assert {x.shape[1:] for x in first.sides} == ({(50,)} if "50 cells" in name else {()})
    if len(stated.means) == 2 and not YES_OR_NO.search(name):
        spread = np.std(drawn) / np.std(others_drawn)
        assert spread == pytest.approx(3 if "spread 3 to 1" in name else 1, rel=0.25)
    for i, mean in enumerate(stated.means):
        found = np.array(means)[:, i]
        assert abs(found.mean() - mean) < 4 * found.std() / math.sqrt(len(found))
    if "skewed" in name or stated.share is not None:
        assert (skew(drawn) > 0.7) == ("skewed" in name)
    assert (len({*drawn}) == 2) == bool(YES_OR_NO.search(name))
    if stated.share is not None:
        (of_same, overlap), (squares, n) = products
        assert (of_same / overlap) / (squares / n) == pytest.approx(stated.share, abs=0.12)


def _products(x: np.ndarray, labels: Sequence[Hashable]) -> np.ndarray:
    """Sums over pairs: of products, and of squares of what they share; over cases: of squares, and of ones."""
    things = sorted({t for label in labels for t in _things(label)}, key=str)
    about = np.array([[t in _things(label) for t in things] for label in labels], dtype=float)
    about /= np.sqrt(about.sum(1, keepdims=True))
    common = about @ about.T
    np.fill_diagonal(common, 0)
    x = x.reshape(len(x), -1)
    return np.array([[((common @ x) * x).sum(), (common**2).sum() * x.shape[1]], [(x * x).sum(), x.size]])


def test_failures_of_a_cluster_are_matched_with_successes_of_several(monkeypatch: pytest.MonkeyPatch) -> None:
    made = tried("matched", monkeypatch, (0, 1), (0, 1))
    simulated.both_sides(np.random.default_rng(0))
    first, second = made.given[0].labels
    assert first and second and len({*zip(first, second, strict=True)}) > 30  # of 48; 12 if they were left in order


@pytest.mark.parametrize(("primary", "adjusted", "plain"), [(True, 0.04, 0.01), (False, 0.24, 0.024)])
def test_a_run_corrects_over_all_its_tables_and_a_table_by_itself_does_not(
    primary: bool, adjusted: float, plain: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Holm over four primary tests, Benjamini and Hochberg over 20 others; by itself, Holm over a quantity's own."""
    numbers: dict[str, list[float]] = {}
    first = iter([0.04, 0.03, 0.02, 0.01])

    def grouped(name: str, values: Any) -> list[dict[str, Any]]:
        sides = [[e.cluster for e, _ in values if e.group == group] for group in ("failure", "success")]
        assert [(len(side), len({*side})) for side in sides] == [(20, 10)] * 2 and {*sides[0]}.isdisjoint(sides[1])
        numbers[name] = [v for _, v in values]
        about = {"quantity": name, "kind": "composition", "group": "failure - success"}
        return [{**about, "p": 0.012 if name == "min_k_pp_other" else 0.5}, {**about, "quantity": f"{name}: mean"}]

    def matched(name: str, examples: Any, pairs: Any, of: Any) -> list[dict[str, Any]]:
        assert numbers[name] == [of(i, None) for i in range(40)]
        groups = [tuple(examples[int(case)].group for case in pair) for pair in pairs.pairs]
        assert groups == [("failure", "success")] * 20
        p = next(first) if name in PRIMARY else 0.5
        return [{"quantity": name, "kind": "composition", "group": MATCHED, "p": p}]

    monkeypatch.setattr(simulated, "group_rows", grouped)
    monkeypatch.setattr(simulated, "matched_rows", matched)
    found = simulated.tables_of_a_run(np.random.default_rng(0), primary)
    assert (found.p, found.plain_p) == (pytest.approx(adjusted), pytest.approx(plain))
    bases = [numbers[name] for name in numbers if name in PRIMARY]
    assert len(numbers) == 12 and len(bases) == 4
    assert abs(np.corrcoef(bases) - np.eye(4)).max() < 0.6, "probes are independent of each other"
    for name in PRIMARY & numbers.keys():  # 1 / sqrt(1 + 0.5^2) and 1 / sqrt(1 + 1)
        for other, near in (("other", 0.894), ("third", 0.707)):
            assert np.corrcoef(numbers[name], numbers[f"{name}_{other}"]).min() == pytest.approx(near, abs=0.2)


def test_the_mean_cosine_of_states_is_that_of_their_mean_directions() -> None:
    """In one dimension a state is a sign: positive with the probability that a normal number is above -0.5 - shift."""
    signs = {shift: 2 * normal.cdf(0.5 + shift) - 1 for shift in (0, 1)}
    for first, second in ((0, 0), (1, 1), (1, 0)):
        assert simulated.cosine(1, first, second) == pytest.approx(signs[first] * signs[second], abs=0.01)


def test_states_differ_between_groups_by_as_much_as_is_asked_whether_the_interval_holds(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    name = COSINES + "8 clusters of 4 within each group"
    truth = 0.0714  # half the squared distance between the mean directions of donors and recipients, from other draws
    around, above, far = ((truth + low, truth + low + 0.002) for low in (-0.001, 0.001, 2))
    for knowing, plain in ((around, far), (far, around), (above, far)):
        made = tried(name, monkeypatch, knowing, plain)
        draw = BY_NAME[name].draw(np.random.default_rng(0))
        assert draw == Draw(0.1, knowing is around, 0.9, plain is around)
        assert [*map(str, made.given)] == _with("32 in 8 | 32 in 8") * 2
    apart: list[list[float]] = []

    def kept(_: str, matrix: np.ndarray, n: int, labels: Sequence[Hashable], **how: Any) -> list[dict[str, float]]:
        apart[-1] += [] if None in labels else [_separation(matrix[0], n, labels)]
        return [{"p": 0.5, "low": 0.0, "high": 1.0}]

    monkeypatch.setattr(simulated, "separation_rows", kept)
    rng = np.random.default_rng(0)
    for _ in range(100):
        apart.append([])
        BY_NAME[name].draw(rng)
    null, other = np.array(apart).T
    assert null.mean() == pytest.approx(0, abs=0.01) and other.mean() == pytest.approx(truth, abs=0.01)


def _separation(cosines: np.ndarray, n: int, labels: Sequence[Hashable]) -> float:
    """Mean cosine within a group minus that across, over pairs of states of different clusters."""
    names = np.array(labels)
    apart = np.where(names[:, None] != names, cosines, np.nan)
    return float((np.nanmean(apart[:n, :n]) + np.nanmean(apart[n:, n:])) / 2 - np.nanmean(apart[:n, n:]))
