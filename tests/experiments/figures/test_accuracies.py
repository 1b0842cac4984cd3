"""Figures of accuracies, gains and steps against the whole: which rows enter, and what the caption says."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from composcope.errors import InputError
from composcope.evaluation.cases import Case
from composcope.evaluation.metrics import Metric
from composcope.evaluation.protocols import counting
from composcope.experiments.figures import accuracies, grouping
from composcope.experiments.figures.drawing import NothingToDraw, source

from ..bare_runs import answers, bare_run


def test_statistics_of_figures_take_the_seed_of_the_run_and_what_its_cases_share(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Whatever a figure computes itself: resampling with another seed, or over cases, would be another interval."""
    given: list[tuple[Any, Any]] = []
    real, paired = counting.statistic, counting.statistics.paired_difference

    def statistic(*args: Any, **options: Any) -> Metric:
        of = options.get("of")
        given.append((options.get("seed"), options.get("clusters") if of is None else counting.clusters_of(of)))
        return real(*args, **options)

    def difference(*args: Any, **options: Any) -> Any:
        given.append((options.get("seed"), options.get("clusters")))
        return paired(*args, **options)

    monkeypatch.setattr(counting, "statistic", statistic)
    monkeypatch.setattr(counting.statistics, "paired_difference", difference)
    rows = answers(*["1111", "0101", "1011", "0111"], cluster="k")
    run = bare_run(graded=rows, protocol="compositionality-gap")
    accuracies._gains(run, "m")
    accuracies._root(run)
    accuracies.step_gains(run, run)
    assert len(given) == 5 and {seed for seed, _ in given} == {7}
    assert all(clusters is not None and [*map(str, clusters)] == ["k0", "k0", "k1", "k1"] for _, clusters in given)


def test_matched_pairs_are_those_of_the_study_or_every_other_run_against_the_first() -> None:
    runs = [bare_run(name=n, model=n, benchmark=b) for b in ("x", "y") for n in ("first", "second", "third")]
    found = [(p["kind"], a.name, b.name, a.benchmark) for p, a, b in accuracies.matched(runs)]
    assert found == [("reference", n, "first", b) for b in "xy" for n in ("second", "third")]
    own = {"pairs": [{"kind": "cost", "a": "A", "b": "B"}, {"kind": "cost", "a": "A", "b": "gone"}]}
    labelled = [bare_run(name=n, about={"label": n[0].upper()}, study=own) for n in ("b", "a", "c", "again")]
    second = [bare_run(name=f"{r.name}2", about=r.about, study=own, path=Path("other", r.name)) for r in labelled[:2]]
    found = [(a.name, b.name) for _, a, b in accuracies.matched([*labelled, *second])]
    assert found == [("a", "b"), ("a2", "b2")], "the pairs of each study"
    asked = ("short", "double-gate"), ("long", "double-gate"), ("gap", "compositionality-gap")
    files = [
        bare_run(name=f"{b}{i}", benchmark=f"{b}/set", cases={"c": Case("c", "?", "1")}) for b in "xy" for i in "12"
    ]
    assert [[r.name for r in some] for some in accuracies._by_data(files)] == [["x1", "x2"], ["y1", "y2"]]
    assert [len(some) for some in accuracies._by_data(files[:3])] == [3], "another version of the file"
    same = [bare_run(name=n, protocol=p, path=Path(n)) for n, p in asked]
    assert [(a.name, b.name) for _, a, b in accuracies.matched(same)] == [("long", "short")], "one model, asked twice"


def test_two_runs_of_one_model_are_a_pair_named_by_their_folders() -> None:
    runs = [bare_run(name=n, path=Path(n), graded=answers(*some, roles="whole"))
            for n, some in (("bf16", "1000"), ("fp32", "1110"))]  # fmt: skip
    (row,) = accuracies.pair_gains.draw(runs).rows
    assert (row["pair"], row["value"]) == ("fp32 − bf16", 0.5)


def test_only_steps_are_paired_and_other_wordings_are_not() -> None:
    rows = answers("11111", "01011", roles="part:0 part:0:paraphrase:0 part:1 part:2 whole")
    run = bare_run(graded=rows, protocol="compositionality-gap")
    assert [r["asked"] for r in accuracies.step_gains(run, run)] == ["step 1", "step 2", "step 3", "whole"]
    assert [r["asked"] for r in accuracies.step_gains(*(bare_run(graded=rows) for _ in "ab"))] == ["whole"]


def test_the_ways_to_ask_are_those_of_the_whole_and_the_reversed_steps_are_none() -> None:
    roles = ["code", "self-ask", "whole:cot", "whole:reversed", "whole", "part:0"]
    assert [accuracies._way(role) for role in roles] == ["code", "self-ask", "cot", None, None, None]


def test_rows_beyond_the_most_frequent_skills_are_in_the_csv_and_not_drawn() -> None:
    found = [Metric("skill_accuracy", {"skill": s}, n=n, count=1, value=1 / n) for s, n in (("b", 20), ("a", 40))]
    run = bare_run(metrics=found, select=lambda *_: found)
    shown = accuracies.skill_heatmap.draw([run], top=1)
    assert {r["skill"]: r["drawn"] for r in shown.rows} == {"a": "solid", "b": "no"}
    assert "The 1 rarer ones are in the csv." in shown.caption


@pytest.mark.parametrize("benchmarks", ["x", "xy"])
def test_few_cases_of_a_step_are_named_with_their_benchmark_where_there_are_several(benchmarks: str) -> None:
    metrics = [Metric("step:0", n=3, count=1, value=1 / 3), Metric("composition", n=40, count=9, value=9 / 40)]
    runs = [bare_run(metrics=metrics, benchmark=b, name=b, path=Path(b)) for b in benchmarks]
    drawing = accuracies.gap_slopes.draw(runs)
    several = "".join(f"m, {b}, step 1 (n=3); " for b in benchmarks)[:-2]
    assert ("m, step 1 (n=3)" if len(benchmarks) == 1 else several) in drawing.caption
    assert [r["step"] for r in drawing.rows] == ["step 1", "whole"] * len(runs)
    assert [ax.get_title(loc="left") for ax in drawing.figure.axes] == [*benchmarks]
    assert drawing.chart is not None and drawing.chart["order"] == ["step 1", "whole"], "on the page, too"


def test_captions_say_chance_and_gaps_in_percent_and_points() -> None:
    gap = Metric("gap", n=40, value=-0.125, low=-0.3, high=0.05)
    more = replace(gap, value=0.125, low=None)
    assert accuracies._gaps([bare_run(metrics=[gap], one={"gap": more}.get)]).endswith(" of m: +12.5 points, n=40.")
    run = bare_run(metrics=[gap, Metric("step:0", n=40)], chance=0.04, one={"gap": gap}.get)
    assert accuracies._chance([run]) == " Chance level of the whole on b: 4 %."
    run.cases = {str(i): Case(str(i), "q", "a", chance=chance) for i, chance in enumerate((0.04, None))}
    assert accuracies._chance([run]) == " Chance level of the whole on b: 4 % (stated for 1 of 2 cases)."
    assert accuracies._gaps([run]) == " Gap (whole − both) of m: -12.5 points [-30.0, +5.0], n=40."


def test_the_whole_stands_against_the_geometric_mean_of_the_steps_over_the_cases_with_both_judged() -> None:
    values = {"step:0": 0.25, "step:1": 1.0, "composition": 0.4}
    metrics = [Metric(name, n=20, value=value, low=0.1, high=1.0) for name, value in values.items()]
    graded = answers(*["11?"] * 5, *["101"] * 10, *["1?1"] * 3, *["011"] * 5, roles="whole part:0 part:1")
    run = bare_run(metrics=metrics, graded=graded, protocol="compositionality-gap")
    (row,) = accuracies.gap_scatter.draw([run]).rows
    assert (row["value"], row["n_x"]) == (0.4, 15) and row["x"] == row["root_s1_s2"] == pytest.approx((5 / 15) ** 0.5)
    assert 0 < row["x_low"] < row["x"] < row["x_high"] < 1, "5 of 15 first steps and all second ones"
    three = bare_run(name="three", path=Path("x"), metrics=[*metrics, Metric("step:2", n=20, value=1.0)], graded=graded)
    drawing = accuracies.gap_scatter.draw([run, three])
    assert [r["run"] for r in drawing.rows] == [run.name] and "Runs: r." in drawing.caption, "the curve is of two steps"


def test_a_row_has_the_numbers_of_its_metric_and_each_gap_its_panel() -> None:
    numbers: dict[str, Any] = {"n": 40, "n_invalid": 2, "count": -4, "value": -0.1, "interval": "t", "low": -0.2,
                               "high": 0.1, "bound_low": -0.15, "bound_high": 0.05}  # fmt: skip
    others = [Metric("independence_gap", n=40, value=-0.2), Metric("press_gap", n=40, value=0.3)]
    about = {"run": "r", "model": "m", "benchmark": "b", "gap": "gap"}
    drawing = accuracies.gaps.draw([bare_run(metrics=[Metric("gap", **numbers), *others])])
    assert drawing.rows[0].items() >= {**about, **numbers}.items()
    drawn = {ax.get_title(loc="left"): {xs[0] for line in ax.lines if len(xs := np.ravel(line.get_xdata())) == 1}
             for ax in drawing.figure.axes}  # fmt: skip
    assert drawn == {"whole − both": {-0.1}, "whole − S1·S2": {-0.2}, "P(whole wrong | both right)": {0.3}}
    with pytest.raises(NothingToDraw, match="extra context"):
        accuracies.context_control.draw([bare_run(metrics=[Metric("step:0", n=9), Metric("composition", n=9)])])
    runs = [bare_run(commands=["a"]), bare_run(name="s", commands=["b", "a"])]
    assert source(runs) == "Runs: r, s. Made by: a ; b."


def test_a_gain_is_relative_to_the_usual_way_and_a_pair_is_a_minus_b() -> None:
    def run(*outcomes: str) -> Any:
        return bare_run(graded=answers(*outcomes, roles="whole code"), protocol="reasoning-gap")

    (row,) = accuracies._gains(run("11", "01", "01", "00", "?1"), "m")
    assert (row["way"], row["count"], row["usual"], row["n"], row["n_invalid"]) == ("code", 3, 1, 4, 1)
    assert row["value"] == pytest.approx((3 - 1) / 1)
    (whole,) = accuracies.step_gains(run("10", "10", "10", "00"), run("10", "00", "00", "?0"))
    assert (whole["asked"], whole["n"], whole["n_invalid"]) == ("whole", 3, 1)
    assert whole["value"] == pytest.approx(2 / 3)
    sides = [{c: Case(c, q if c == "c0" else "?", "1") for c in ("c0", "c1", "c2")} for q in "ab"]
    alike = (bare_run(graded=answers("1", "1", "0", roles="whole"), cases=cases) for cases in sides)
    assert [r["n"] for r in accuracies.step_gains(*alike)] == [2], "an id with another question is another case"


def test_a_row_of_a_pair_names_its_models_in_the_order_of_the_difference() -> None:
    study = {"pairs": [{"kind": "cost", "a": "dear", "b": "cheap"}]}
    good, bad = (answers(*some, roles="whole") for some in ("1111", "1000"))
    runs = [bare_run(name=f"{n}-run", model=n, graded=rows, study=study, benchmark=b, path=Path(b, n))
            for b in "xy" for n, rows in (("cheap", bad), ("dear", good))]  # fmt: skip
    drawing = accuracies.pair_gains.draw(runs)
    assert [(r["run"], r["kind"], r["pair"], r["benchmark"], r["asked"], r["value"]) for r in drawing.rows] == [
        ("dear-run − cheap-run", "cost", "dear − cheap", b, "whole", 0.75) for b in "xy"
    ]
    alone = bare_run(name="alone", model="alone", path=Path("z"), graded=good, study=study, benchmark="x")
    assert "Runs: cheap-run, dear-run." in accuracies.pair_gains.draw([*runs[:2], alone]).caption
    for some, named in ((runs, ["(cost, x)", "(cost, y)"]), (runs[:2], ["(cost)"])):
        (ax, *_) = accuracies.pair_gains.draw(some).figure.axes
        assert sorted(t.get_text().split("\n")[-1] for t in ax.get_yticklabels()) == named


def test_runs_are_ordered_by_the_field_asked_for_and_those_without_it_come_last_and_are_named() -> None:
    sizes = {"big": 70, "none": None, "small": 7}
    runs = [bare_run(name=n, model=n, path=Path(n), about={} if s is None else {"size": s}) for n, s in sizes.items()]
    found = grouping.grouped(runs, "size")
    assert [r.name for r in found.runs] == ["small", "big", "none"]
    assert [*found.names.values()] == ["7 · small", "70 · big", "none"] and "none." in found.text
    assert found.places == {"7 · small": 0, "70 · big": 1, "none": 2}
    assert [r.name for r in grouping.grouped(runs, None).runs] == [*sizes]
    with pytest.raises(InputError, match="--group-by cost"):
        grouping.grouped(runs, "cost")
    runs[0].about["trained_depths"] = [2, 4]
    assert [*grouping.grouped(runs, "trained_depths").names.values()] == ["2, 4 · big", "none", "small"]
