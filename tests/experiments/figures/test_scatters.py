"""Scatters: the sizes of numbers that are asked for, the cases that were asked both, the size of a model."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from composcope.evaluation.cases import Case, Part
from composcope.evaluation.graded import Graded
from composcope.experiments.figures import scatters, style
from composcope.experiments.figures.drawing import NothingToDraw

from ..bare_runs import answers, bare_run


def test_every_number_asked_for_is_a_row_of_the_sizes_and_equal_sets_are_one_curve() -> None:
    def case(id: str, first: str, second: str, whole: str, original: str | None) -> Case:
        parts = (Part("?", first, answer_type="number"), Part("?", second, answer_type="number"))
        meta = {} if original is None else {"original": {"answer": original}}
        return Case(id, "?", whole, parts, answer_type="number", meta=meta)

    cases = [case("a", "10", "1", "1,000", "10"), case("b", "-100", "0", "10", "100")]
    cases.append(Case("text", "?", "Paris", (Part("?", "10", answer_type="text"),), answer_type="text"))
    run: Any = SimpleNamespace(benchmark="sums", cases={c.id: c for c in cases})
    found = scatters._sizes(run)
    told = {(r["set"], r["case"], r["answer"], r["x"], r["value"], r["n"]) for r in found}
    assert {r["benchmark"] for r in found} == {"sums"} and told == {
        ("whole (the pair)", "b", 10, 1, 0.5, 2), ("whole (the pair)", "a", 1000, 3, 1, 2),
        ("first question = original of Q2", "a", 10, 1, 0.5, 2),
        ("first question = original of Q2", "b", -100, 2, 1, 2),
        ("second question", "b", 0, -0.5, 0.5, 2), ("second question", "a", 1, 0, 1, 2),
    }  # fmt: skip


def test_a_scatter_counts_the_cases_that_were_asked_both_and_second_hops_after_a_right_first() -> None:
    named: dict[str, Any] = {"1": "correct", "0": "incorrect", "?": "invalid"}
    roles = ("part:1", "pair:q1", "whole", "part:0")
    rows = [Graded(f"c{i}", role, named[letter]) for i, letters in enumerate(("1111", "101", "110", "0?1", "0"))
            for role, letter in zip(roles, letters, strict=False)]  # fmt: skip
    run: Any = SimpleNamespace(graded=rows, name="r", benchmark="b", seed=0, warnings=(), counted=None)
    (row,) = scatters._rows(run, "m", scatters.SECOND_HOP.draw)  # type: ignore[arg-type]
    assert (row["x"], row["n_x"]) == (3 / 4, 4), "the last case was not asked the pair"
    assert (row["count"], row["n"], row["n_invalid"]) == (1, 2, 1), "only where the first is right in the pair"
    run.graded = [replace(row, case=f"{row.case}-{i}", cluster=f"k{i}") for i in range(9) for row in rows]
    (row,) = scatters._rows(run, "m", scatters.SECOND_HOP.draw)  # type: ignore[arg-type]
    assert row["n"] == 18 and "korn" in row["interval"], "cases of a cluster share something"
    few, many = (SimpleNamespace(benchmark="b", cases=range(n)) for n in (2, 3))
    assert scatters.one_per_benchmark([few, many]) == scatters.one_per_benchmark([many, few]) == [many]  # type: ignore


@pytest.mark.parametrize(
    "figure", [scatters.LEAKAGE, scatters.DISTRACTION, scatters.SECOND_HOP, scatters.CO_PRESENTED], ids=lambda f: f.name
)
def test_a_run_that_did_not_ask_all_roles_of_a_scatter_is_not_drawn(figure: Any) -> None:
    roles = figure.draw.roles
    asked, short = (
        bare_run(path=Path(name), name=name, model=name, graded=answers("1" * n, "0" * n, roles=" ".join(roles[:n])))
        for name, n in (("asked", len(roles)), ("short", len(roles) - 1))
    )
    assert [row["run"] for row in figure.draw([asked, short]).rows] == ["asked"]
    with pytest.raises(NothingToDraw, match=roles[-1]):
        figure.draw([short])


def test_powers_of_ten_on_an_axis_are_few_and_marks_of_a_scatter_shrink() -> None:
    assert [scatters._power_of_ten(e) for e in (-4, -3, 0, 4, 5)] == ["1e-4", "0.001", "1", "10000", "1e5"]
    assert [scatters._decades([{"x": x} for x in xs]) for xs in ((-0.5, 2.2), (3, 3), (0, 13))] == [
        [-1, 0, 1, 2, 3], [3, 4], [0, 2, 4, 6, 8, 10, 12]]  # fmt: skip
    assert [scatters.stacked(i) for i in (0, 1, 9)] == [9.0, 7.5, 4.0]


@pytest.mark.parametrize(
    ("n", "n_x", "drawn", "bars"),
    [(40, 40, True, 2), (40, 4, False, 0), (4, 40, False, 0), (40, 5, True, 2), (None, 40, False, 0)],
)
def test_a_cross_has_intervals_only_where_both_of_its_values_have_enough_cases(
    n: int | None, n_x: int, drawn: bool, bars: int
) -> None:
    ax = style.one_panel(3, 3)[1]
    row: dict[str, Any] = {"model": "m", "x": 0.4, "x_low": 0.2, "x_high": 0.5, "value": 0.7, "low": 0.6, "high": 0.9,
                           "n": n, "n_x": n_x}  # fmt: skip
    scatters._cross(ax, row, 0)
    assert (row["drawn"] != "hollow") is drawn and row["n"] == n
    assert (f"m (n={min(n or 0, n_x)})" in style.few_cases([row], "{model}")) is (row["drawn"] != "solid")
    spans = [tuple(zip(*line.get_xydata(), strict=True)) for line in ax.lines if len(line.get_xdata()) == 2]  # type: ignore[arg-type]
    assert [((0.2, 0.5), (0.7, 0.7)) in spans, ((0.4, 0.4), (0.6, 0.9)) in spans] == [bool(bars)] * 2
    scatters._cross(ax, unknown := {**row, "x": None}, 0)
    assert unknown["drawn"] == "undefined"


@pytest.mark.parametrize(("n", "joined"), [(3, False), (40, True)])
def test_the_sizes_of_few_answers_are_points_and_those_of_many_a_curve(n: int, joined: bool) -> None:
    cases = {str(i): Case(str(i), "?", str(10**i if n < 9 else i + 1), answer_type="number") for i in range(n)}
    drawing = scatters.magnitudes.draw([bare_run(cases=dict(list(cases.items())[:1])), bare_run(cases=cases)])
    assert len(drawing.rows) == n, "of the largest run"
    (line,) = drawing.figure.axes[0].lines
    assert (line.get_linestyle() not in ("None", "none"), line.get_marker() in ("None", "none", "")) == (joined, joined)
    assert [*line.get_ydata()] == pytest.approx([(i + 1) / n for i in range(n)])  # type: ignore[misc]
    assert str(line.get_label()).endswith(f"(n={n})")
    cases["0"] = replace(cases["0"], parts=(Part("?", "7", answer_type="number"),))
    (ax,) = scatters.magnitudes.draw([bare_run(cases=cases)]).figure.axes
    named = [str(line.get_label()) for line in ax.lines]
    assert named == [f"{scatters.SETS['whole']} (n={n})", f"{scatters.SETS['part:0']} (n=1)"]


@pytest.mark.parametrize(
    ("figure", "x", "y"),
    [
        (scatters.LEAKAGE, "original", "part:1"),
        (scatters.DISTRACTION, "part:0", "pair:q1"),
        (scatters.CO_PRESENTED, "part:1", "co-presented"),
    ],
    ids=lambda v: getattr(v, "name", v),
)
def test_what_is_asked_alone_or_unchanged_stands_on_the_x_axis(figure: Any, x: str, y: str) -> None:
    run = bare_run(graded=answers(*["10"] * 6, *["11"] * 2, roles=f"{x} {y}"))
    (row,) = figure.draw([run]).rows
    assert (row["x"], row["n_x"], row["value"], row["n"]) == (1.0, 8, 0.25, 8)
