"""Marks of figures whose csv holds more than one number that could be drawn: the right one is."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.patches import Rectangle

from composcope.evaluation.cases import Case, Part
from composcope.evaluation.graded import Graded
from composcope.evaluation.metrics import Metric
from composcope.experiments import figures
from composcope.experiments.figures import depth_curves, gates, layers, mechanism, scatters, skills, style, training
from composcope.experiments.run.reader import ProbeData

from ..bare_runs import bare_run


@pytest.fixture(scope="module")
def runs(synthetic: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> list[figures.RunData]:
    folder, gap = tmp_path_factory.mktemp("study"), "compositionality-gap"
    synthetic.make_run(folder / "gate", n=160, probes=(), failure=0.7)
    for i, name in enumerate(("none", "twin")):
        made = {"model": f"organism:{name}", "failure": 0.3 + 0.4 * i, "seed": i}
        synthetic.make_run(folder / name, n=80, probes=(), protocol=gap, **made)
    return figures.load([folder])


def _bars(ax: Axes) -> list[float]:
    widths = [bar.get_bbox().width for bar in ax.patches if isinstance(bar, Rectangle)]
    return [w for w in widths if w > 0]


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


@pytest.mark.parametrize("seeds", [("",), ("1", "2", "all")])
def test_doses_are_points_of_one_training_or_a_line_for_each_and_their_mean(
    seeds: tuple[str, ...], synthetic: ModuleType, tmp_path: Path
) -> None:
    synthetic.make_run(tmp_path / "none", n=4, probes=(), model="organism:none")
    (tmp_path / "validity").mkdir()
    lines, wanted = ["question,quantity,group,n,value,low,high,interval,verdict,seed"], {}
    for i, seed in enumerate(seeds):
        wanted[seed] = [0.1 + i, 0.4 + 2 * i]
        sizes = (2, 1) if seed == "all" else (20, 20)
        for dose, value, n in zip(("none", "twin"), wanted[seed], sizes, strict=True):
            lines.append(f"follows the dose,mean cosine,{dose},{n},{value},{value - 0.1},{value + 0.1},t,,{seed}")
    (tmp_path / "validity" / "table.csv").write_text("\n".join(lines) + "\n")
    drawing = figures.draw("dose-response", [tmp_path])
    assert ("mean cosine, twin (n=1 trainings)" in drawing.caption) == (len(seeds) > 1)
    assert "mean cosine, none (n=2 trainings)" not in drawing.caption
    (ax, *_) = drawing.figure.axes
    named = {str(line.get_label()): [*map(float, np.ravel(line.get_ydata()))] for line in ax.lines}
    if len(seeds) > 1:
        of = {"1": "seed 1", "2": "seed 2", "all": "mean over trainings"}
        assert {name: named.get(name) for name in of.values()} == {of[s]: pytest.approx(v) for s, v in wanted.items()}
    else:
        assert not any("seed" in name or "mean" in name for name in named)
        assert {0.1, 0.4} <= {y for line in ax.lines for y in np.round(np.ravel(line.get_ydata()), 9)}


def test_bars_of_the_funnel_are_as_long_as_their_counts(runs: list[figures.RunData]) -> None:
    drawing = figures.draw("gate-funnel", runs)
    panels = [ax for ax in drawing.figure.axes if ax.axison]
    for ax, model in zip(panels, dict.fromkeys(r["model"] for r in drawing.rows), strict=True):
        mine = [r for r in drawing.rows if r["model"] == model]
        assert _bars(ax) == pytest.approx([r["count"] for r in mine])
        assert [t.get_text() for t in ax.texts] == [str(r["count"]) for r in mine]
        assert len({r["count"] for r in mine}) > 2 and any(r["count"] != r["n"] for r in mine)


def test_bars_of_the_quadrants_are_as_long_as_their_shares_and_make_up_a_whole(runs: list[figures.RunData]) -> None:
    drawing = figures.draw("failure-quadrants", runs)
    found = _bars(drawing.figure.axes[0])
    assert sorted(found) == pytest.approx(sorted(r["value"] for r in drawing.rows if r["value"]))
    assert sum(found) == pytest.approx(2)


def test_outcomes_are_shares_of_the_answers_in_their_role(runs: list[figures.RunData]) -> None:
    drawing = figures.draw("outcomes", runs)
    assert sorted(_bars(drawing.figure.axes[0])) == pytest.approx(
        sorted(r["value"] for r in drawing.rows if r["value"])
    )
    of_bar: dict[tuple[str, str], float] = {}
    for row in drawing.rows:
        assert row["value"] == pytest.approx(row["count"] / row["n"])
        bar = (row["run"], row["role"])
        of_bar[bar] = of_bar.get(bar, 0) + row["value"]
    assert len(of_bar) > 5 and list(of_bar.values()) == pytest.approx([1] * len(of_bar))


def test_the_scatter_over_steps_is_at_the_geometric_mean_of_the_steps(runs: list[figures.RunData]) -> None:
    chosen = [r for r in runs if r.one("step:0")]
    drawing = figures.draw("gap-scatter", chosen)
    assert len(drawing.rows) == 2
    for run, row in zip(chosen, drawing.rows, strict=True):
        first, second = run.one("step:0"), run.one("step:1")
        assert first is not None and second is not None and first.value and second.value
        assert row["x"] == pytest.approx(math.sqrt(first.value * second.value), abs=1e-9)
        assert row["x_low"] < row["x"] < row["x_high"]
    places = {(round(x, 9), round(y, 9)) for x, y in _marks(drawing.figure.axes[0])}
    assert {(round(r["x"], 9), round(r["value"], 9)) for r in drawing.rows} <= places


def _marks(ax: Any) -> list[tuple[float, float]]:
    return [(float(x), float(y)) for line in ax.lines for x, y in zip(line.get_xdata(), line.get_ydata(), strict=True)]


def test_depths_that_a_benchmark_counts_in_another_bin_are_said() -> None:
    def run(benchmark: str, *depths: int) -> Any:
        cases = {str(d): Case(str(d), "q", "a", benchmark=benchmark, depth=d) for d in depths}
        return SimpleNamespace(cases=cases)

    binned = depth_curves._bins([run("organism-temporal", 2, 4, 7), run("organism-temporal", 9, 7)])
    assert "4 includes 7; 6 includes 9" in binned
    assert depth_curves._bins([run("mine", 2, 4, 7)]) == ""


def test_a_scatter_counts_the_cases_that_were_asked_both_and_second_hops_after_a_right_first() -> None:
    named: dict[str, Any] = {"1": "correct", "0": "incorrect", "?": "invalid"}
    roles = ("part:1", "pair:q1", "whole", "part:0")
    rows = [Graded(f"c{i}", role, named[letter]) for i, letters in enumerate(("1111", "101", "110", "0?1", "0"))
            for role, letter in zip(roles, letters, strict=False)]  # fmt: skip
    run: Any = SimpleNamespace(graded=rows, name="r", benchmark="b", seed=0)
    (row,) = scatters._rows(run, "m", scatters.SECOND_HOP.draw)  # type: ignore[arg-type]
    assert (row["x"], row["n_x"]) == (3 / 4, 4), "the last case was not asked the pair"
    assert (row["count"], row["n"]) == (1, 2), "only where the first is right in the pair"
    run.graded = [replace(row, case=f"{row.case}-{i}", cluster=f"k{i}") for i in range(9) for row in rows]
    (row,) = scatters._rows(run, "m", scatters.SECOND_HOP.draw)  # type: ignore[arg-type]
    assert row["n"] == 18 and "korn" in row["interval"], "cases of a cluster share something"
    few, many = (SimpleNamespace(benchmark="b", cases=range(n)) for n in (2, 3))
    assert scatters._one_per_benchmark([few, many]) == scatters._one_per_benchmark([many, few]) == [many]  # type: ignore


def test_steps_that_no_skill_covers_are_no_part_of_the_evenness() -> None:
    found = skills.SkillUse("x", 5, 2, {"a": 30, "b": 10, skills.OTHER: 60})
    assert found.entropy == pytest.approx(-(0.75 * math.log2(0.75) + 0.25 * math.log2(0.25)))


def test_the_trend_over_doses_is_no_dose_and_a_readout_begins_before_the_first_block() -> None:
    rows = [{"question": "follows the dose", "quantity": "q", "group": g, "n": "9", "value": "0.5", "verdict": v}
            for g, v in (("none", ""), ("none < twin", "cannot say"))]  # fmt: skip
    assert [r["dose"] for r in training._dose_rows(rows)] == ["none"]
    maps = {"lens.absent.bridge.failure": np.array([[0.1], [0.2], [0.3]])}
    found = layers._rows(ProbeData("readout", (), maps, settings={"places": ["end"]}))
    assert [(r["layer"], r["value"]) for r in found] == [(-1, 0.1), (0, 0.2), (1, 0.3)]


@pytest.mark.parametrize(
    ("known", "left"), [("all bridge operand", "all bridge operand"), ("all operand", "operand"), ("all", "all")]
)
def test_altered_steps_are_drawn_together_only_where_they_are_of_several_kinds(known: str, left: str) -> None:
    rows = [{"what": what, "step": step, "group": group, "n": 9, "value": 1 / 3, "low": None, "high": None}
            for what in mechanism.ENDS.values() for step in known.split() for group in mechanism.GROUPS]  # fmt: skip
    mechanism._draw_altered(style.figure(3, 3).subplots(), rows)
    assert list(dict.fromkeys(r["step"] for r in rows if r["drawn"] != "no")) == left.split()


def test_a_difference_that_is_not_known_says_why_in_one_clause(monkeypatch: pytest.MonkeyPatch) -> None:
    metrics = [Metric("delta_depth", {}, n=4, count=None, value=value, note="no d50; more") for value in (None, 0.5)]
    monkeypatch.setattr(depth_curves, "compare", lambda *_: SimpleNamespace(metrics=metrics))
    assert [row["why"] for row in depth_curves._rows(None, bare_run(), bare_run())] == ["no d50", ""]


def test_the_donor_is_the_first_curve_and_a_contrast_has_as_many_cases_as_its_smaller_group() -> None:
    rows = [{"quantity": "flip_rate", "group": g, "layer": 0, "value": 0.5} for g in ("identity", "donor", "noise")]
    found = layers._patch_rows(bare_run(), "m", ProbeData("patching", rows), "flip_rate")
    assert [r["patch"] for r in found] == ["donor", "identity", "noise"]
    held = [{"quantity": "held_lens", "kind": "bridge", "foils": "absent", "group": g, "n": n}
            for g, n in (("failure", 7), ("success", 4), ("other", 2))]  # fmt: skip
    counts = [layers._count(ProbeData("readout", held), "lens", "absent", "bridge", show)
              for show in ("difference", "failure", "success")]  # fmt: skip
    assert counts == [4, 7, 4]


def test_the_dose_figure_is_of_probes_and_names_trainings_only_where_they_are_undefined(tmp_path: Path) -> None:
    rows = [("follows the dose", kind, "q") for kind in ("", "probe", "null", "confound")] + [
        ("failures", "probe", "q")
    ]
    (tmp_path / "table.csv").write_text("question,kind,quantity\n" + "".join(f"{','.join(r)}\n" for r in rows))
    assert [r["kind"] for r in training._raw(tmp_path / "table.csv")] == ["", "probe"]
    known = [{"seed": s, "n": n, "quantity": "q", "dose": "low", "value": 0.5, "drawn": "solid"}
             for s, n in (("0", 9), ("1", 9), ("all", 2))]  # fmt: skip
    assert "ndefined" not in training._dose_caption("t", known, ["0", "1"], [], [])
    assert "Undefined, not drawn: seed 2." in training._dose_caption("t", known, ["0", "1"], ["2"], [])
    assert "Means over fewer trainings: q, low (n=2 trainings)." in training._dose_caption(
        "t", known, ["0", "1", "2"], [], []
    )


def test_a_step_that_some_cases_do_not_have_says_how_many_have_it(synthetic: ModuleType, tmp_path: Path) -> None:
    folder = synthetic.make_run(tmp_path / "gap", n=60, probes=(), protocol="compositionality-gap")
    document = json.loads((folder / "metrics.json").read_text())
    document["metrics"].append(synthetic.rate("step:2", 3, 8))
    (folder / "metrics.json").write_text(json.dumps(document))
    (run,) = figures.load([folder])
    stages = [r["stage"] for r in figures.draw("gate-funnel", [run]).rows]
    assert stages[1:4] == ["step 1 right", "step 2 right", "step 3 right (of 8)"]
    assert stages[4:] == ["all parts right", "whole wrong, all parts right"]
    document["metrics"] += [synthetic.rate("quadrant", n, 8, quadrant=q) for q, n in (("101", 3), ("110", 0))]
    (folder / "metrics.json").write_text(json.dumps(document))
    (run,) = figures.load([folder])
    drawing = figures.draw("failure-quadrants", [run])
    named = [text.get_text() for text in drawing.figure.legends[0].get_texts()]
    assert "step 2 wrong" in named and "step 3 wrong" not in named
    two = synthetic.make_run(tmp_path / "two", n=60, probes=(), protocol="compositionality-gap")
    for name in ("gap-slopes", "step-bars"):  # the first run has no third step
        drawing = figures.draw(name, figures.load([two, folder]))
        ax, legend = drawing.figure.axes[0], drawing.figure.legends[0]
        shown = ax.get_xticklabels() if name == "gap-slopes" else legend.get_texts()
        assert [text.get_text() for text in shown] == ["step 1", "step 2", "step 3", "both", "whole"]


def test_rows_of_a_figure_are_the_metrics_that_it_names(synthetic: ModuleType, tmp_path: Path) -> None:
    folder = synthetic.make_run(tmp_path / "gap", n=60, probes=(), protocol="compositionality-gap")
    document = json.loads((folder / "metrics.json").read_text())
    document["metrics"] += [
        synthetic.rate("skill_accuracy", n // 2, n, skill=s) for s, n in (("rare", 4), ("usual", 20))
    ]
    document["metrics"].append(synthetic.rate("step:0", 11, 60, prompt="extra-context"))
    (folder / "metrics.json").write_text(json.dumps(document))
    (run,) = figures.load([folder])
    plain, whole = run.one("step:0"), run.one("composition")
    assert [m.count for m in run.select("step:0", "prompt")] == [11] and run.select("step:0") == [plain]
    assert plain is not None and whole is not None
    failed = run.one("press_gap")
    funnel = {r["stage"]: r["count"] for r in figures.draw("gate-funnel", [run]).rows}
    assert failed is not None and failed.count != failed.n and funnel["whole wrong, both right"] == failed.count
    asked = {r["asked"]: r["count"] for r in figures.draw("context-control", [run]).rows}
    assert asked == {"first step": plain.count, "first step, extra context": 11, "whole": whole.count}
    heat = figures.draw("skill-heatmap", [run])
    assert [t.get_text() for t in heat.figure.axes[0].get_yticklabels()] == ["usual", "rare"]


def test_the_most_frequent_bottlenecks_are_drawn_and_weights_are_counted_in_billions() -> None:
    found = [Metric("bottleneck", {"skill": s}, n=9, count=k, value=k / 9) for s, k in (("b", 2), ("a", 5), ("c", 1))]
    run = bare_run(metrics=found)
    assert [r["skill"] for r in gates.bottlenecks.draw([run], top=2).rows] == ["a", "b"]
    run.manifest = SimpleNamespace(model={"parameters": 1_500_000_000})
    assert scatters._billions(run) == 1.5


def test_sweeps_are_those_of_the_most_common_length_and_the_others_are_counted(everything: Path) -> None:
    (run,) = figures.load([everything / "runs" / "temporal-control"])
    swept = layers.sweeps_of(run)
    assert swept is not None and (swept.left_out, tuple(swept.positions)) == (1, (0, 2, 3))
    assert swept.tokens == ["", "", ":"] and {m.shape for m in swept.maps.values()} == {(5, 2, 3)}


def test_captions_of_probes_say_how_many_cases_they_rest_on_and_where_they_read(
    synthetic: ModuleType, tmp_path: Path
) -> None:
    cells = (("composition", "failure", 7), ("composition", "success", 9), ("math", "failure", 5))
    rows = [{"quantity": "q", "kind": kind, "group": group, "n": n} for kind, group, n in cells]
    found: Any = [(None, "one", ProbeData("neurons", rows)), (None, "other", ProbeData("neurons", ()))]
    said = mechanism._counts(found, "q")
    assert "one: 7 failure, 9 success" in said and "other" not in said and mechanism._counts(found[1:], "q") == ""
    places: list[dict[str, Any]] = [{"position": "answer-slot", "coincide": "3 of 4"}, {}, {"position": "prompt-end"}]
    where: Any = [(None, n, ProbeData("q", (), settings=s)) for n, s in zip("abc", places, strict=True)]
    slot, end, mixed = (mechanism.read_where(w) for w in (where[:1], where[1:], where))
    assert (
        "at the answer slot" in slot and "3 of 4" in slot and "answer slot" not in end and "at the prompt's end" in end
    )
    assert "a: read at the answer slot" in mixed and "b, c: read at the prompt's end" in mixed
    runs = figures.load([synthetic.make_run(tmp_path / "run", n=24, probes=("neurons",))])
    assert mechanism.read_where(mechanism.with_probe(runs, "neurons")) in figures.draw("neuron-check", runs).caption


def test_tasks_that_no_revealed_step_solves_have_their_own_bar() -> None:
    assert [gates._revealed(k) for k in (-1, 0, 2)] == ["none", "0", "2"]


def test_curves_over_depth_rise_and_the_scatter_over_knowledge_is_at_depth_4(
    synthetic: ModuleType, tmp_path: Path
) -> None:
    folder = synthetic.make_run(tmp_path / "gate", n=160, probes=(), failure=0.7)
    document = json.loads((folder / "metrics.json").read_text())
    document["metrics"].reverse()
    (folder / "metrics.json").write_text(json.dumps(document))
    (run,) = figures.load([folder])
    curve = figures.draw("collapse-curve", [run])
    assert [r["depth"] for r in curve.rows] == [2, 4, 6, 8]
    assert curve.chart is not None and (curve.chart["x"], curve.chart["series"], curve.chart["percent"]) == (
        "depth", "model", True)  # fmt: skip
    ((row,), at_4) = figures.draw("stability-scatter", [run]).rows, run.one("residual_failure", depth_bin=4)
    assert at_4 is not None and (row["count"], row["n"]) == (at_4.count, at_4.n)


def test_numbers_that_are_drawn_of_probes_are_those_of_their_tables(everything: Path) -> None:
    (run,) = figures.load([everything / "runs" / "temporal-control"])
    moved, patched = run.probe("trajectory"), run.probe("patching")
    assert moved is not None and patched is not None
    names = {"plain": "prompt_end", "centered": "centered"}
    drawn = figures.draw("cosine-prompt-end", [run]).rows
    assert len(drawn) == len(moved.rows("prompt_end_cosine")) + len(moved.rows("centered_cosine")) > 0
    for row in drawn:
        (own,) = moved.rows(f"{names[row['form']]}_cosine", group=row["pairs"], layer=row["layer"])
        assert row["value"] == pytest.approx(own["value"])
        assert [row[k] for k in ("n", "low", "high", "interval")] == [own[k] for k in ("n", "low", "high", "interval")]
    for row in figures.draw("patching", [run]).rows:
        if "measure" in row and "patch" in row:
            (own,) = patched.rows(row["measure"], group=row["patch"], layer=row["layer"])
            assert all(row[k] == own.get(k) for k in ("n", "value", "low", "high", "interval"))


def test_skill_maps_are_read_with_their_clusters_and_skills_and_runs_count_every_part(
    synthetic: ModuleType, tmp_path: Path
) -> None:
    line = {"n_clusters": 10, "n_skills": 3, "usage": {"add": 4, "other": 1}}
    (tmp_path / "granularity.jsonl").write_text(json.dumps(line) + "\n" + json.dumps({**line, "usage": None}) + "\n")
    (found,) = skills._maps(tmp_path)
    assert (found.clusters, found.n_skills, found.total, skills._name(found)) == (10, 3, 5, "M=10, N=3")
    for name, again in (("a", 0), ("b", 1)):
        path = synthetic.make_run(tmp_path / name, n=2, probes=(), protocol="compositionality-gap") / "cases.jsonl"
        first, second = (json.loads(text) for text in path.read_text().splitlines())
        first["parts"][0]["skill"], first["parts"][1]["skill"], second["parts"][again]["skill"] = "add", "sort", "add"
        second["parts"][1 - again]["skill"] = None if name == "a" else "other"
        path.write_text(json.dumps(first) + "\n" + json.dumps(second) + "\n")
    (used,) = skills._of_runs(figures.load([tmp_path / "a", tmp_path / "b"]))
    assert (used.source, used.clusters, dict(used.usage)) == ("mixed", None, {"add": 2, "sort": 1})
    maps = [skills.SkillUse("s", m, n, {"add": 6, "sort": 9, "other": 20}) for m in (5, 10) for n in (3, 2)]
    shown = skills.skill_granularity.draw(maps)
    assert [(r["clusters"], r["skills"], r["skill"], r["id"]) for r in shown.rows] == [
        (10, n, s, i) for n in (2, 3) for i, s in enumerate(("sort", "add", "other"), 1)]  # fmt: skip


def test_the_size_of_a_model_is_what_the_study_says_or_else_its_weights() -> None:
    weights = {"parameters": 3_000_000_000}
    stated = [({"size": 7}, weights), ({}, weights), ({}, {}), ({}, {"parameters": 0})]
    found = [
        scatters._billions(bare_run(about=about, manifest=SimpleNamespace(model=model))) for about, model in stated
    ]
    assert found == [7.0, 3.0, None, None]
    assert [scatters._power_of_ten(e) for e in (-4, -3, 0, 4, 5)] == ["1e-4", "0.001", "1", "10000", "1e5"]
    assert [scatters._decades([{"x": x} for x in xs]) for xs in ((-0.5, 2.2), (3, 3), (0, 13))] == [
        [-1, 0, 1, 2, 3], [3, 4], [0, 2, 4, 6, 8, 10, 12]]  # fmt: skip
    assert [scatters.stacked(i) for i in (0, 1, 9)] == [9.0, 7.5, 4.0]
