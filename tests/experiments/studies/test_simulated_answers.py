"""The answers of whole runs that ``composcope study calibration`` simulates, and which number of them is asked.

The functions of protocols and analyses are replaced by ones that keep the rows that they are given. Sizes, clusters,
rates and truths are those that the names and docstrings of the scenarios state.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import pytest

from composcope.evaluation.graded import Graded
from composcope.evaluation.metrics import Metric
from composcope.evaluation.statistics import Interval
from composcope.experiments.studies import calibration

from .test_simulated_data import Ends, Given

BY_NAME = {s.name: s for s in calibration.SCENARIOS}


class Stated(NamedTuple):
    """What a scenario's name and docstring say."""

    cases: int
    clusters: int
    atoms: int
    asked: tuple[str, dict[str, Any]] | None
    """The metric that is looked for, and its group."""
    truth: float
    fields: str
    """p, covered, and covered without clusters: pcC."""
    rates: dict[str, float]
    """The share of right answers by role."""
    sides: int = 1


FACT = "part:0:paraphrase:0"
STATED = {
    "stability of 16 facts asked five times": Stated(
        16, 0, 16, ("atom_stability", {"per": "fact"}), 0.7, "cC", {FACT: 0.7}
    ),
    "cases whose two of 12 facts are both stable": Stated(
        60, 0, 12, ("jointly_stable", {"facts": 2}), 0.7**2, "cC", {FACT: 0.7, "part:1:paraphrase:0": 0.7}
    ),
    "two formats agree, 10 clusters of 8": Stated(
        80, 10, 0, ("agreement", {"prompts": "xml = cot"}), 0.7, "cC", {"part:0": 1, "whole": 1, "whole:cot": 1}
    ),
    "mean_k of 12 items, mostly 1": Stated(
        12, 0, 0, ("mean_k", {}), 0.6 + 2 * 0.25 + 3 * 0.1 + 4 * 0.03 + 5 * 0.02, "c",
        {"whole": 0, "part:0": 0.7, "scaffold:1": 0.6, "scaffold:2": 0.85, "scaffold:3": 0.95, "scaffold:4": 0.98,
         "scaffold:5": 1},
    ),
    "bottlenecks and profiles, 10 clusters of 6": Stated(
        60, 10, 0, ("bottleneck_size", {"skills": "1"}), 0.5, "pcC",
        {"whole": 0, "part:0": 0.7, "scaffold:1": 0.5, "scaffold:2": 0.8, "scaffold:3": 1}, 2,
    ),
    "mean response length, 10 clusters of 8": Stated(80, 10, 0, None, math.exp(4.08), "cC", {"whole": 1}),
    "code_gain, 12 % right, 10 clusters of 6": Stated(60, 10, 0, None, 0, "c", {"whole": 0.12, "code": 0.12}),
    "pair_gap of equal models, 10 clusters of 6": Stated(
        60, 10, 0, ("pair_gap", {}), 0, "c", {"part:0": 0.8, "part:1": 0.7, "whole": 0.5}, 2
    ),
    "delta_comp of equal models, 10 clusters of 8": Stated(
        80, 10, 80, ("delta_comp", {}), 0, "pc", {"part:0": 0.6, "whole": 0.75, FACT: 1}, 2
    ),
}  # fmt: skip


class Asked:
    """Stands in for protocols and analyses: keeps the rows, and gives the intervals that are wanted."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, knowing: Ends, plain: Ends) -> None:
        self.sides: list[list[Graded]] = []
        self.looked_for: list[tuple[str, dict[str, Any]]] = []
        self.tokens: list[int] = []
        self.metric = Metric("m", n=9, value=0.5, low=plain[0], high=plain[1], cluster_n=9, cluster_low=knowing[0],
                             cluster_high=knowing[1], cluster_interval="t")  # fmt: skip
        kept, several = self.kept, self.several
        replaced: dict[str, Any] = {
            "find": self.find, "gains": kept, "lengths": self.lengths,
            "compare": lambda a, b: kept(a, b, mcnemar=SimpleNamespace(p=0.1)),
            "get": lambda name, **how: SimpleNamespace(reduce=kept),
            "gated": SimpleNamespace(expectation=lambda one: kept(one.rows), compare_formats=several),
            "stad": SimpleNamespace(bottlenecks_by_size=several, equal_accuracy=self.equal_accuracy),
            "counting": SimpleNamespace(items=list),
            "reasoning_gap": SimpleNamespace(code_gain=lambda rows, *_: kept(rows) and self.metric),
            "statistics": SimpleNamespace(bootstrap=lambda *_, **__: Interval(*plain, "bootstrap")),
        }  # fmt: skip
        for name, function in replaced.items():
            monkeypatch.setattr(calibration, name, function)

    def kept(self, *sides: Iterable[Graded], **more: Any) -> Any:
        self.sides += [list(side) for side in sides]
        return SimpleNamespace(metrics=(), **more)

    def several(self, sources: Sequence[Any]) -> Any:
        (one,) = sources
        return self.kept(one.rows)

    def equal_accuracy(self, sources: Sequence[Any], **_: Any) -> Any:
        first, other = sources
        assert first.rows == self.sides[-1] and first.name != other.name
        self.kept(other.rows)
        return SimpleNamespace(tables={"pairs": [{"p": 0.1}]})

    def lengths(self, sources: Sequence[Any]) -> Any:
        (one,) = sources
        self.kept(one.rows)
        self.tokens = [one.tokens[row.ask] for row in one.rows]
        return SimpleNamespace(metrics=[self.metric])

    def find(self, metrics: Any, name: str, **group: Any) -> Metric:
        self.looked_for.append((name, group))
        return self.metric


@pytest.mark.parametrize("name", STATED)
def test_a_draw_of_answers_asks_for_the_number_that_is_true_and_quotes_its_interval_over_clusters(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    stated = STATED[name]
    around = (stated.truth - 0.002, stated.truth + 0.002)
    beside = [(stated.truth + shift - 0.001, stated.truth + shift + 0.001) for shift in (-0.003, 0.003)]
    for knowing, plain in [(around, far) for far in beside] + [(far, around) for far in beside]:
        made = Asked(monkeypatch, knowing, plain)
        draw = BY_NAME[name].draw(np.random.default_rng(1))
        assert made.looked_for == ([stated.asked] if stated.asked else [])
        wanted = {"p": 0.1, "c": knowing is around, "P": 0.9, "C": plain is around}
        for field, value in zip("pcPC", draw, strict=True):
            assert value == wanted[field] if field in stated.fields else math.isnan(value), field


@pytest.mark.parametrize("name", STATED)
def test_simulated_answers_are_right_as_often_as_is_said_and_alike_within_a_cluster(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    stated = STATED[name]
    made = Asked(monkeypatch, (0, 1), (0, 1))
    rng, rates, alike = np.random.default_rng(5), defaultdict[str, list[float]](list), list[float]()
    for _ in range(100):
        made.sides.clear()
        BY_NAME[name].draw(rng)
        told = {tuple((row.case, row.role, row.outcome) for row in rows) for rows in made.sides}
        assert len(told) == len(made.sides) == stated.sides, "two models answer each for itself"
        for rows in made.sides:
            cases, clusters = ({getattr(row, of) for row in rows} - {None} for of in ("case", "cluster"))
            assert (len(cases), len(clusters)) == (stated.cases, stated.clusters)
            assert len({row.atom for row in rows} - {None}) == stated.atoms
            for role in stated.rates:
                right = [row.outcome == "correct" for row in rows if row.role == role]
                rates[role].append(float(np.mean(right)))
            assert {row.role for row in rows} == {*stated.rates}
            alike.append(_alike(rows, "cluster" if stated.clusters else "atom"))
    for role, rate in stated.rates.items():
        error = 3 * np.std(rates[role]) / math.sqrt(len(rates[role]))
        assert abs(np.mean(rates[role]) - rate) <= error + 1e-9, role
    if any(0 < rate < 1 for rate in stated.rates.values()) and "mean_k" not in name:
        assert np.nanmean(alike) > 0.08


def _alike(rows: Sequence[Graded], by: str) -> float:
    """The correlation of right answers to the same role within a cluster, or to the same fact."""
    roles = defaultdict[str, dict[str, list[int]]](lambda: defaultdict(list))
    for row in rows:
        roles[row.role if by == "cluster" else ""][str(getattr(row, by))].append(row.outcome == "correct")
    products = squares = 0.0
    for groups in roles.values():
        mean = np.mean([x for some in groups.values() for x in some])
        for some in groups.values():
            x = np.array(some) - mean
            products += x.sum() ** 2 - (x**2).sum()  # of every two
            squares += (len(x) - 1) * (x**2).sum()
    return products / squares if squares else math.nan


def test_formats_agree_and_responses_have_their_length_as_often_as_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    made, rng = Asked(monkeypatch, (0, 1), (0, 1)), np.random.default_rng(3)
    agree, tokens = [], []
    for _ in range(80):
        made.sides.clear()
        calibration.formats(rng)
        answers = defaultdict[str, dict[str, Any]](dict)
        for row in made.sides[0]:
            answers[row.case][str(row.role)] = (row.prompt, row.answer)
        agree.append(np.mean([one["whole"][1] == one["whole:cot"][1] for one in answers.values()]))
        assert {(one["part:0"][0], one["whole"][0], one["whole:cot"][0]) for one in answers.values()} == {
            ("xml", "xml", "cot")
        }
        calibration.response_lengths(rng)
        tokens += made.tokens
    assert np.mean(agree) == pytest.approx(0.7, abs=0.03)
    assert (np.mean(np.log(tokens)), np.std(np.log(tokens))) == (
        pytest.approx(4, abs=0.03),
        pytest.approx(0.4, abs=0.03),
    )


class Kept:
    """Stands in for the functions on numbers: keeps what each scenario gives to them."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.given: list[Given] = []
        for name in ("map_test", "between", "dose_series", "cell_maps", "separation_rows"):
            monkeypatch.setattr(calibration, name, getattr(self, name))

    def kept(self, sides: Iterable[Any], labels: Iterable[Any]) -> Any:
        self.given.append(Given([np.asarray(x, dtype=float) for x in sides], list(labels)))
        return SimpleNamespace(table=[ROW], p=np.array([0.5]))

    def map_test(self, x: Any, y: Any, *, clusters: Any, **_: Any) -> Any:
        return self.kept((x, y), clusters)

    def between(self, values: Any, *, clusters: Any = None, test: str = "t") -> Any:
        assert test == ("t" if clusters else "mann-whitney")
        return self.kept(values.values(), [(clusters or {}).get(n) for n in values])

    def dose_series(self, doses: Any, *, clusters: Any = None) -> Any:
        return self.kept(doses.values(), [(clusters or {}).get(n) for n in doses])

    def cell_maps(self, _: str, __: str, values: Any, *more: Any, **how: Any) -> Any:
        sides = [[(x.numpy(), e.cluster) for e, x in values if e.group == g] for g in ("failure", "success")]
        self.kept([[x for x, _ in side] for side in sides], [[label for _, label in side] for side in sides])
        return {}, [ROW]

    def separation_rows(self, _: str, cosines: Any, n: int, labels: Any, **how: Any) -> Any:
        self.kept((cosines[0, :n], cosines[0, n:]), (labels[:n], labels[n:]))
        return [ROW] * 4


ROW = {"p": 0.5, "low": 0.0, "high": 1.0, "cell": 7}


def test_maps_ranks_and_trends_get_the_clusters_that_their_names_state(monkeypatch: pytest.MonkeyPatch) -> None:
    doses = "32 in 8 | 32 in 8 | 32 in 8, 8 shared"
    stated = {
        "mixed_map": ["10 in 10 | 30 in 10, 10 shared"], "largest_cell": ["30 in 10 | 30 in 10"] * 2,
        "ranks": ["8 | 40"], "trend": [doses, "32 | 32 | 32"], "unequal_cosines": ["34 in 8 | 34 in 8"],
    }  # fmt: skip
    kept, rng = {name: Kept(monkeypatch) for name in stated}, np.random.default_rng(0)
    for name, calls in stated.items():
        kept[name] = Kept(monkeypatch)
        getattr(calibration, name)(rng)
        assert [str(one) for one in kept[name].given] == calls, name
    whole, cell = kept["largest_cell"].given
    assert all(np.allclose(x[:, 7], y) for x, y in zip(whole.sides, cell.sides, strict=True)), "that differs most"
    assert [x.shape for x in (*kept["mixed_map"].given[0].sides, *whole.sides)] == [(10, 48), *[(30, 48)] * 3]
    ranks = Kept(monkeypatch)
    for _ in range(200):
        calibration.ranks(rng)
    first, second = (np.concatenate([one.sides[i] for one in ranks.given]) for i in (0, 1))
    assert first.std() / second.std() == pytest.approx(3, rel=0.1) and abs(first.mean()) < 0.4
