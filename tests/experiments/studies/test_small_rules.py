"""Rules of the studies, each with values computed in another way: tables, pairs of models, simulations, confusion."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from scipy import stats as scipy_stats

from composcope.evaluation.graded import Graded
from composcope.evaluation.metrics import Metric
from composcope.experiments import stad
from composcope.experiments.bench.evaluation import _rates, _ratios
from composcope.experiments.bench.timing import TaskTiming
from composcope.experiments.run.reader import ProbeData
from composcope.experiments.studies import confusion, mechanism, pairs, results, simulated_runs
from composcope.experiments.studies import validity as validity_study
from composcope.experiments.studies.confusion import Cheap, DiagnosedCase
from composcope.experiments.studies.published import benchmark_key
from composcope.experiments.studies.simulated import Draw
from composcope.experiments.studies.spec import ModelPair, Spec
from composcope.experiments.studies.study import STUDIES, Study, by_depth
from composcope.experiments.validity.scores import BASELINES
from composcope.files import to_csv

stats: Any = scipy_stats


def _study(*runs: Any, name: str = "agentcoma", **about: Any) -> Study:
    return Study(
        Spec(()), STUDIES[name], Path("s"), tuple(dict.fromkeys(r.data for r in runs)) or ("d",), list(runs), **about
    )


def _of(label: str = "m", data: str = "d", note: str = "", **run: Any) -> Any:
    given = {"metrics": [], "probe": lambda _: None, "protocol": "compositionality-gap", "graded": [], "cases": {},
             "manifest": SimpleNamespace(stopped=None)}  # fmt: skip
    made = SimpleNamespace(**given | run)
    made.one = lambda name, **group: next((m for m in made.metrics if m.metric == name and m.group == group), None)
    model = SimpleNamespace(model=f"org/{label}", groups={"family": "f"})
    return SimpleNamespace(label=label, data=data, note=note, path=Path(f"{label}-{data}"), model=model, run=made)


def _measured(folder: Path, **kinds: np.ndarray) -> Any:
    """A run with a probe's values of cases that share nothing: each question of a kind is a case of its own."""
    rows = [{"case": f"{kind}{i}", "role": "whole", "kind": kind, "quantity": "lookback_ratio", "value": value}
            for kind, values in kinds.items() for i, value in enumerate(values)]  # fmt: skip
    file = folder / "probes" / "lookback" / "values.csv"
    file.parent.mkdir(parents=True)
    file.write_text(to_csv([*rows, {**rows[0], "quantity": "another", "value": 9}]))
    run = _of()
    run.path = folder
    return run


def test_means_over_questions_of_a_kind_are_those_of_all_its_values_with_students_interval(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    every, other = rng.normal(0.5, 0.1, 15), rng.normal(0.3, 0.1, 7)
    run = _measured(tmp_path / "a", math=every, composition=other)
    found = mechanism.means(_study(run), "lookback", "lookback_ratio", 100)
    half = stats.t.ppf(0.975, 14) * every.std(ddof=1) / math.sqrt(15)
    first = found[0]
    assert [(r["group"], r["n"], r["interval"]) for r in found] == [("math", 15, "t"), ("composition", 7, "t")]
    assert [first[k] for k in ("value", "low", "high", "std", "variance")] == pytest.approx(
        [every.mean(), every.mean() - half, every.mean() + half, every.std(ddof=1), every.var(ddof=1)])  # fmt: skip
    assert first["shown"] == f"{100 * first['value']:.4g} [{100 * first['low']:.4g}, {100 * first['high']:.4g}]"
    wide = _measured(tmp_path / "b", k=np.array([0.0, 1.0, 0.9]))
    (row,) = mechanism.means(_study(wide), "lookback", "lookback_ratio", 100)
    assert (row["low"], row["high"]) == (0, 1), "shares lie between 0 and 1"
    (row,) = mechanism.means(_study(wide), "lookback", "lookback_ratio", 1)
    assert row["low"] < 0 and row["high"] > 1, "other numbers do not"
    lines = (tmp_path / "b" / "probes" / "lookback" / "values.csv").read_text().splitlines()
    again = [",".join([*lines[1].split(",")[:4], value]) for value in ("0.5", "0.4", "nan")]
    (tmp_path / "b" / "probes" / "lookback" / "values.csv").write_text("\n".join([*lines[:4], *again]))
    (row,) = mechanism.means(_study(wide), "lookback", "lookback_ratio", 1)
    assert (row["n"], row["value"]) == (3, pytest.approx((0.3 + 1 + 0.9) / 3)), "questions of a case are one value"
    closed = _of("a", note="why")
    told = mechanism.means(_study(closed, wide), "lookback", "lookback_ratio", 1)
    assert [(r["model"], r["what"], r["shown"]) for r in told[:1]] == [("a", "not opened up", "why")]


def test_kinds_are_compared_by_welchs_test_and_corrected_together(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    sides = {
        k: rng.normal(m, s, n)
        for k, m, s, n in (("composition", 0.5, 0.1, 9), ("math", 0.6, 0.3, 12), ("choice", 0.4, 0.2, 7))
    }
    found = mechanism.tests(_study(_measured(tmp_path, **sides)))
    assert [r["group"] for r in found] == ["composition - choice", "composition - math", "choice - math"]
    p = [stats.ttest_ind(*(sides[k] for k in r["group"].split(" - ")), equal_var=False).pvalue for r in found]
    assert [r["p"] for r in found] == pytest.approx(p)
    order = np.argsort(p)
    adjusted = np.maximum.accumulate([min(1, (3 - i) * p[j]) for i, j in enumerate(order)])
    assert [found[j]["p_adjusted"] for j in order] == pytest.approx(list(adjusted))
    first = found[0]
    assert first["difference"] == pytest.approx(sides["composition"].mean() - sides["choice"].mean())
    assert first["n"] == 16


def test_patches_are_counted_over_layers_of_donors_that_can_be_judged() -> None:
    rows = [{"quantity": "flip_rate", "group": g, "layer": i, "count": c, "n": n}
            for g, i, c, n in (("donor", 0, 1, 8), ("donor", 1, 5, 7), ("donor", 2, None, 0), ("random", 1, 7, 8))
            ]  # fmt: skip
    found = mechanism._patches(ProbeData("patching", rows), "what", "flip_rate", "m")
    assert (found["count"], found["n"], found["value"]) == (6, 15, 6 / 15)
    assert found["shown"] == "6 of 15 (7, 8 pairs × 2 layers; no interval)"
    none = mechanism._patches(ProbeData("patching", []), "what", "flip_rate", "m")
    assert none["value"] is None and none["shown"].startswith("undefined")
    row = mechanism._cosine_row("x", {"n": 9, "value": 0.5, "low": 0.25, "high": None}, 3, 4, "m", "pairs, ")
    assert (row["group"], row["shown"]) == ("pairs, layer 3 of 4", "0.5000 (no interval)")


@pytest.mark.parametrize(
    ("metric", "shown"),
    [
        (Metric("composition", n=9, value=0.25, low=0.1, high=0.5), "25.0 % [10.0, 50.0]"),
        (Metric("gap", n=9, value=-0.25, low=-0.5, high=0.125), "-25.0 points [-50.0, +12.5]"),
        (Metric("delta_whatever", n=9, value=0.1), "+10.0 points (no interval)"),
        (Metric("mean_k", n=9, value=1.256, low=1, high=2), "1.26 [1.00, 2.00]"),
        (Metric("code_gain", n=9, value=0.256, low=-0.1, high=1.5), "+26 % [-10, +150]"),
        (Metric("second_hop", {"against": "part:1"}, n=9, value=-0.1, low=-0.2, high=0), "-10.0 points [-20.0, +0.0]"),
        (Metric("d50", n=9, note=">6; more"), "undefined (>6)"),
        (Metric("d50", n=9, value=3.0, high=5.0, note="low <2; x"), "3.00 [<2, 5.00]"),
        (Metric("gap", n=0), "undefined"),
    ],
)
def test_a_number_of_a_study_has_the_unit_of_its_kind(metric: Metric, shown: str) -> None:
    assert results.shown(metric.metric, metric) == shown
    assert results.shown(metric.metric, metric, interval=False) == shown.partition(" [")[0].replace(
        " (no interval)", ""
    )


def test_rows_of_a_table_are_those_of_every_run_in_the_order_of_their_metrics() -> None:
    metrics = [Metric("both", n=9, n_invalid=2, count=3, value=1 / 3, low=0.1, high=0.6, interval="t", note="why"),
               Metric("both", {"depth": 2}, n=4), Metric("step:0", n=8, value=0.5)]  # fmt: skip
    study = _study(
        _of("a", metrics=metrics), _of("b", metrics=metrics[2:]), name="compositional-gsm", failed={"c": "no"}
    )
    rows = results.metric_rows(study, ["step:0", "both", ("both", lambda g: "depth" in g)], step_0="first")
    assert [(r["model"], r["what"], r.get("group")) for r in rows] == [
        ("a", "first", ""), ("a", "both", ""), ("a", "both", "depth 2"), ("b", "first", ""), ("c", "failed", None)
    ]  # fmt: skip
    told = rows[1]
    fields = ("value", "low", "high", "interval", "count", "n", "invalid", "note", "data", "family")
    assert [told[k] for k in fields] == [
        1 / 3, 0.1, 0.6, "t", 3, 9, 2, "why", "d", "f"]  # fmt: skip
    assert results._compact("recall + recall + add + recall") == "2 × recall + add + recall"
    side = results.comparison(replace(study, preset=replace(study.preset, headline=("both", "step:0"))))
    assert [r.get("both") for r in side.rows] == [
        "33.3 % [10.0, 60.0], n=9, 2 invalid",
        "not measured",
        "could not be run: no",
    ]
    assert side.rows[0]["step:0"] == "50.0 % (no interval), n=8" and side.columns == ("model", "both", "step:0")


def test_the_papers_count_stands_beside_ours_and_is_made_once_a_run(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[str, str]] = []

    def recount(folder: Path, compat: str) -> list[Metric]:
        asked.append((folder.name, compat))
        if folder.name.startswith("b"):
            raise results.NotAskedError("more")
        return [Metric("both", n=9, value=0.75, low=0.5, high=0.9)]

    monkeypatch.setattr(results, "recount", recount)
    metrics = [Metric("both", n=9, value=0.5), Metric("gap", n=9, value=0.1)]
    stopped = _of("c", metrics=metrics, manifest=SimpleNamespace(stopped="asks"))
    study = _study(_of("a", metrics=metrics), _of("b", metrics=metrics), stopped)
    for _ in range(2):
        rows = results.metric_rows(study, ["both", "gap"])
    assert [r["as the paper counts"] for r in rows] == ["75.0 %", None, *["needs other asks"] * 2, None, None]
    assert asked == [("a-d", "agentcoma"), ("b-d", "agentcoma")]


def _answers(**roles: str) -> list[Graded]:
    named: dict[str, Any] = {"1": "correct", "0": "incorrect", "?": "invalid"}
    return [
        Graded(f"c{i}", role.replace("_", ":"), named[x]) for role, said in roles.items() for i, x in enumerate(said)
    ]


def test_differences_of_a_pair_are_over_the_cases_of_both_and_the_gap_is_that_of_products() -> None:
    a = _answers(part_0="11011", part_1="10111", whole="1001?")
    b = _answers(part_0="1011", part_1="1101", whole="0001")
    found = {(m.metric, m.group.get("quantity")): m for m in pairs.gains(a, b, seed=3)}
    assert {k: round(m.value or 0, 9) for k, m in found.items()} == {
        ("pair_gain", "step:0"): 0, ("pair_gain", "step:1"): 0, ("pair_gain", "composition"): 0.25,
        ("pair_gap", None): round((2 / 4 - 9 / 16) - (1 / 4 - 9 / 16), 9)}  # fmt: skip
    assert {m.n for m in found.values()} == {4}
    assert [m.metric for m in pairs.gains(a, [r for r in b if r.role == "whole"])] == ["pair_gain"]


def test_a_pair_whose_run_failed_has_a_line_and_papers_of_other_pairs_say_nothing() -> None:
    one = _of("x", graded=_answers(whole="1100"))
    other = _of("y", graded=_answers(whole="1000"))
    kinds = [ModelPair("cost", "x", "y"), ModelPair("tuning", "x", "gone")]
    study = _study(one, other, name="compositional-gsm")
    study.spec = replace(study.spec, pairs=tuple(kinds))
    (table,) = pairs.table(study)
    made, failed = table.rows
    assert (made["pair"], made["value"], made["n"]) == ("cost: x − y", 0.25, 4)
    assert (failed["pair"], failed["what"], failed["shown"]) == ("tuning: x − gone", "failed", "no run of gone")
    assert pairs.table(_study(one)) == []
    apart = _of("y", graded=[replace(r, case=f"other-{r.case}") for r in _answers(whole="10")], protocol="double-gate")
    (row,) = pairs._pair_rows(_study(replace_run(one, "double-gate"), apart), kinds[0], "d")
    assert row["what"] == "failed"


def replace_run(run: Any, protocol: str) -> Any:
    run.run.protocol = protocol
    return run


def test_bottlenecks_are_the_most_counted_of_each_run_and_rows_are_the_most_frequent_on_each_data_set() -> None:
    rows = [{"what": "x", "data": d, "group": g, "n": n, "invalid": i}
            for d, g, n, i in (("d", "a", 9, None), ("d", "b", 2, 8), ("d", "c", 5, None), ("e", "c", 1, None))
            ]  # fmt: skip
    kept = stad._most(_study(_of(data="d"), _of(data="e")), [*rows, {"what": "failed", "n": 0}], "skill", 2)
    assert [(r.get("data"), r.get("group")) for r in kept] == [("d", "a"), ("d", "b"), ("e", "c"), (None, None)]


COVERS, MISSES = {"p": 0.1, "low": -1.0, "high": 1.0, "n": 4}, {"p": 0.9, "low": 1.0, "high": 2.0, "n": 4}
"""Rows whose interval holds 0, and does not."""


def _drawn(draw: Any) -> Draw:
    return draw(np.random.default_rng(0))


def test_simulations_tell_what_knows_of_sharing_from_what_does_not(monkeypatch: pytest.MonkeyPatch) -> None:
    own, plain = COVERS, MISSES
    monkeypatch.setattr(simulated_runs, "cell_maps", lambda *_, **__: ({"map": 0}, [{**own, "cell": 7}]))
    monkeypatch.setattr(simulated_runs, "between", lambda *_, **__: SimpleNamespace(table=[own, plain]))
    assert _drawn(simulated_runs.largest_cell) == Draw(0.1, 1.0, 0.9, 0.0)
    told = lambda doses, clusters=None: SimpleNamespace(table=[plain, own if clusters else plain])  # noqa: E731
    monkeypatch.setattr(simulated_runs, "dose_series", told)
    assert (_drawn(simulated_runs.trend).covered, _drawn(simulated_runs.trend).plain_covered) == (1, 0)
    rows = [{**plain, "quantity": "kl"}, {**own, "quantity": "flip_rate"}]
    monkeypatch.setattr(simulated_runs, "against_controls", lambda *_, **__: rows)
    assert _drawn(simulated_runs.donors)[:2] == (0.1, 1.0)
    monkeypatch.setattr(simulated_runs, "matched_rows", lambda *_, **__: [own])
    assert _drawn(simulated_runs.matched_on_length)[:2] == (0.1, 1.0)
    monkeypatch.setattr(simulated_runs, "_mean_cosine", lambda: 1.5)
    monkeypatch.setattr(simulated_runs, "separation_rows", lambda *_, **__: [own, own, plain, own])
    assert _drawn(simulated_runs.unequal_cosines)[:2] == (0.1, 1.0), "p of the separation, interval across groups"


@pytest.mark.parametrize(
    ("low", "high", "covered"),
    [((3.0, None), (8.0, None), 1), ((8.0, None), (9.0, None), 0), ((3.0, None), (6.0, None), 0),
     ((None, "<2"), (6.0, None), 0), ((None, "<2"), (8.0, None), 1), ((3.0, None), (None, ">10"), 1),
     ((None, ">10"), (None, ">10"), 0)],
)  # fmt: skip
def test_an_end_beyond_what_was_asked_lies_on_its_side(
    low: Any, high: Any, covered: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = SimpleNamespace(low=low[0], low_censored=low[1], high=high[0], high_censored=high[1])
    given: list[Any] = []
    monkeypatch.setattr(simulated_runs.statistics, "d50", lambda *args: given.append(args) or found)
    assert _drawn(simulated_runs.depth_of_half).covered == covered
    ((depths, wrong, cases),) = given
    assert len(depths) == len(wrong) == 7 and cases == [30] * 7 and max(wrong) <= 30


def test_an_interval_covers_the_truth_between_its_ends_and_the_quoted_one_is_asked() -> None:
    shared = {"cluster_n": 9, "cluster_low": 0.1, "cluster_high": 0.2, "cluster_interval": "t"}
    both = Metric("m", n=9, value=0.5, low=0.45, high=0.55, **shared)
    assert [simulated_runs._plainly(both, t) for t in (0.5, 0.6, 0.15)] == [1, 0, 0]
    assert [simulated_runs._covers(both, t) for t in (0.5, 0.6, 0.15)] == [0, 0, 1]
    assert all(math.isnan(f(None, 0.5)) for f in (simulated_runs._covers, simulated_runs._plainly))


def _judged(*cases: tuple[str, str]) -> list[DiagnosedCase]:
    return [DiagnosedCase("p", f"c{i}", truth, named, True) for i, (truth, named) in enumerate(cases)]


def test_scores_of_a_confusion_are_those_of_its_counts() -> None:
    refused = confusion.REFUSED
    found = confusion.scores(_judged(("a", "a"), ("a", "a"), ("a", "b"), ("b", "b"), ("b", refused), (refused, "a"),
                                     (refused, refused)))  # fmt: skip
    assert found["f1"] == {"a": pytest.approx(2 * 2 / (2 * 2 + 2)), "b": pytest.approx(2 / (2 + 2))}
    assert found["macro_f1"] == pytest.approx((4 / 6 + 2 / 4) / 2)
    told = {k: (found[k]["count"], found[k]["n"]) for k in ("named_right", "undetermined", "false_causes")}
    assert told == {"named_right": (3, 5), "undetermined": (1, 5), "false_causes": (1, 2)}
    rows = confusion.matrix(_judged(("a", "a"), ("a", "b"), ("b", "b")))
    assert rows == [
        {"plant": "p", "truth": "a", "n": 2, "a": 1, "b": 1},
        {"plant": "p", "truth": "b", "n": 1, "a": 0, "b": 1},
    ]


def test_numbers_weigh_alike_in_a_guess_whatever_their_units_and_a_case_does_not_vote_for_itself() -> None:
    names = list(BASELINES.values())
    large, small = names[0], names[1]
    rng = np.random.default_rng(0)
    kinds = ["x"] * 8 + ["y"] * 8
    known = [Cheap(f"{kind * 4} {i}", {large: 1000 * rng.normal(), small: (kind == "y") + 0.01 * rng.normal(),
                                       **dict.fromkeys(names[2:], 0.0)}) for i, kind in enumerate(kinds)]  # fmt: skip
    found = confusion.guesses(known, kinds)
    assert set(found) == {*BASELINES, confusion.ALL, confusion.TEXT}
    assert found[list(BASELINES)[1]] == found[confusion.TEXT] == kinds
    assert sum(a == b for a, b in zip(found[confusion.ALL], kinds, strict=True)) >= 14, (
        "large units do not drown small ones"
    )
    assert confusion.by_neighbours(np.array([[0.0], [0.1], [5.0], [9.0]]), list("abbb")) == ["b"] * 4


def test_changes_that_mend_are_pooled_by_whether_their_cause_was_planted() -> None:
    def diagnosis(**counts: tuple[int, int]) -> Any:
        tallies = {k: {"count": c, "n": n} for k, (c, n) in counts.items()}
        return SimpleNamespace(about={"interventions": tallies, "mended": {"said": {"count": 1, "n": 4}}})

    found = {"lost": diagnosis(skip=(6, 8), move=(1, 8)), "late": diagnosis(skip=(2, 10), back=(9, 10)),
             "both": diagnosis(skip=(5, 5))}  # fmt: skip
    judged = [
        DiagnosedCase(p, "c", t, t, True)
        for p, t in (("lost", "lost"), ("late", "too-late"), ("both", "lost"), ("both", "x"))
    ]
    told = {k: (v["count"], v["n"]) for k, v in confusion.specific(judged, found).items()}
    assert told == {"skip: own cause": (6, 8), "move: other causes": (1, 8), "skip: other causes": (2, 10),
                    "back: own cause": (9, 10), "others": (3, 18)}  # fmt: skip
    rows = confusion.mends({"lost": found["lost"], "late": found["late"]})
    assert rows == [{"plant": "lost", "said": "1/4", "skip": "6/8", "move": "1/8", "back": ""},
                    {"plant": "late", "said": "1/4", "skip": "2/10", "move": "", "back": "9/10"}]  # fmt: skip


def test_a_benchmark_is_compared_with_the_better_of_the_others_in_its_own_clock() -> None:
    taken = (("ours", "default", 2.0, 8.0), ("x", "default", 6.0, 10.0), ("y", "default", 5.0, 12.0),
             ("ours", "8", 1.0, 4.0), ("x", "8", 4.0, 3.0))  # fmt: skip
    rows = [TaskTiming("t", *one, None, None, None, 3, "", "") for one in taken]
    assert [line.split(": ")[1] for line in _ratios(rows, True)] == [
        "1.25 times as fast (processor time)", "0.75 times as fast (processor time)"]  # fmt: skip
    assert [line.split(": ")[1] for line in _ratios(rows, False)] == [
        "2.50 times as fast (wall clock)", "4.00 times as fast (wall clock)"]  # fmt: skip
    assert next(iter(_rates(rows[:2], 12))) == "asks/s: ours (default) 6.0, x (default) 2.0"


def test_small_rules_of_studies() -> None:
    specs = ("hub:tot@1", "Bamboogle:f.json", "stad:a/gsm8k_final.jsonl", "hub:stad:x", "organism:mixed")
    assert [benchmark_key(spec) for spec in specs] == ["tot", "bamboogle", "gsm8k", "x", "organism"]
    about = (("a", "x", 4, None), ("b", "x", 5, 4), ("c", "x", 4, 6), ("d", "y", 4, None), ("e", "x", 4, None))
    cases = {c: SimpleNamespace(family=f, depth=d, depth_bin=b) for c, f, d, b in about}
    assert by_depth(cases, {"a", "b", "c", "d"}, 4, ("x",)) == ["a", "b"]
    told = [
        validity_study._shown({"value": v, "low": a, "high": b})
        for v, a, b in ((None, 1, 2), (0.5, None, 1), (0.5, 0.25, 0.75))
    ]
    assert told == ["undefined", "0.500 (no interval)", "0.500 [0.250, 0.750]"]
