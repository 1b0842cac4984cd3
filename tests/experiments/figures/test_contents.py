"""Marks of figures whose csv holds more than one number that could be drawn: the right one is."""

from __future__ import annotations

import json
import math
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from matplotlib.axes import Axes
from matplotlib.patches import Rectangle

from composcope.evaluation.graded import Graded
from composcope.evaluation.metrics import Metric, quoted
from composcope.evaluation.protocols import metrics_from_rows
from composcope.experiments import figures
from composcope.experiments.figures import gates

from ..bare_runs import bare_run


def _bars(ax: Axes) -> list[float]:
    widths = [bar.get_bbox().width for bar in ax.patches if isinstance(bar, Rectangle)]
    return [w for w in widths if w > 0]


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


def test_the_most_frequent_bottlenecks_are_drawn() -> None:
    found = [Metric("bottleneck", {"skill": s}, n=9, count=k, value=k / 9) for s, k in (("b", 2), ("a", 5), ("c", 1))]
    run = bare_run(metrics=found)
    assert [r["skill"] for r in gates.bottlenecks.draw([run], top=2).rows] == ["a", "b"]


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


def test_the_funnel_begins_with_all_cases_also_with_those_whose_gate_is_unknown() -> None:
    rows = [("c", "c", "w")] * 6 + [("c", "i", "w")] * 3 + [("w", "c", "c")]
    words: dict[str, Any] = {"c": "correct", "w": "incorrect", "i": "invalid"}
    graded = [
        Graded(f"c{i}", role, words[one])
        for i, row in enumerate(rows)
        for role, one in zip(("part:0", "part:1", "whole"), row, strict=True)
    ]
    metrics = [quoted(m) for m in metrics_from_rows(graded, "compositionality-gap").metrics]
    run = bare_run(one=lambda name: next((m for m in metrics if m.metric == name and not m.group), None))
    run.metrics = metrics
    stages = [(r["stage"], r["count"], r["n"]) for r in gates._stages(run)]
    assert stages == [("all cases", 10, 10), ("step 1 right", 9, 10), ("step 2 right", 7, 10), ("both right", 6, 10),
                      ("whole wrong, both right", 6, 10)]  # fmt: skip


def test_steps_are_counted_up_from_one_and_none_is_left_out(synthetic: ModuleType, tmp_path: Path) -> None:
    folder = synthetic.make_run(tmp_path / "long", n=60, probes=(), protocol="compositionality-gap")
    document = json.loads((folder / "metrics.json").read_text())
    document["metrics"] += [synthetic.rate(f"step:{i}", 3, 60) for i in range(2, 12)]
    (folder / "metrics.json").write_text(json.dumps(document))
    (run,) = figures.load([folder])
    steps = [f"step {i}" for i in range(1, 13)]
    ticks = figures.draw("gap-slopes", [run]).figure.axes[0].get_xticklabels()
    assert [text.get_text() for text in ticks] == [*steps, "both", "whole"]
    named = figures.draw("step-bars", [run]).figure.legends[0].get_texts()
    assert [text.get_text() for text in named] == [*steps, "both", "whole"]
    stages = [r["stage"] for r in figures.draw("gate-funnel", [run]).rows]
    assert stages[1:-2] == [f"{step} right" for step in steps]


def _n_marks(drawing: figures.Drawing) -> list[int]:
    return [len(ax.lines) + len(ax.patches) + len(ax.images) for ax in drawing.figure.axes]


@pytest.mark.parametrize(
    "name",
    [
        "neuron-overlap-means",
        "neuron-layers",
        "neuron-check",
        "lookback-means",
        "patching",
        "cosine-prompt-end",
        "mink",
    ],
)
def test_two_runs_whose_folders_have_one_name_have_a_panel_each(
    name: str, synthetic: ModuleType, tmp_path: Path
) -> None:
    folders = [synthetic.make_run(tmp_path / side / "run", n=60) for side in "ab"]
    alone, both = (figures.draw(name, some) for some in (folders[:1], folders))
    assert alone.empty is None and sorted(_n_marks(both)) == sorted(2 * _n_marks(alone))
    assert len(both.rows) == 2 * len(alone.rows)


def test_two_benchmark_files_of_one_name_are_two_benchmarks_and_a_copy_of_one_is_none(
    synthetic: ModuleType, tmp_path: Path
) -> None:
    cases = [{"id": f"{side}{i}", "question": f"{side} {i}?", "answer": "2", "answer_type": "number",
              "parts": [{"question": "?", "answer": "1", "answer_type": "number", "skill": side}] * 2}
             for side in "ab" for i in range(6)]  # fmt: skip
    folders = []
    for name, side in (("first", "a"), ("second", "b"), ("third", "a")):
        folder = synthetic.make_run(tmp_path / name, n=6, probes=(), protocol="compositionality-gap", model=f"m/{name}")
        mine = [c for c in cases if c["id"].startswith(side)]
        (folder / "cases.jsonl").write_text("".join(json.dumps(c) + "\n" for c in mine))
        rows = [json.loads(line) for line in (folder / "graded.jsonl").read_text().splitlines()]
        new = dict(zip(dict.fromkeys(r["case"] for r in rows), (c["id"] for c in mine), strict=True))
        (folder / "graded.jsonl").write_text("".join(json.dumps(r | {"case": new[r["case"]]}) + "\n" for r in rows))
        for file in ("config.yaml", "manifest.json"):
            held = json.loads((folder / file).read_text())
            asked = {"benchmark": f"{'copy' if name == 'third' else side}/cases.jsonl"}
            own = {"identity": {**held["identity"], "data": side}} if file == "manifest.json" else asked
            (folder / file).write_text(json.dumps(held | own))
        folders.append(folder)
    assert [r.benchmark for r in figures.load(folders)] == ["a/cases", "b/cases", "a/cases"]
    assert [r.benchmark for r in figures.load(folders[::2])] == ["cases", "cases"]
    for name, column in (("magnitudes", "benchmark"), ("skill-distribution", "map"), ("pair-gains", "benchmark")):
        drawn = figures.draw(name, folders)
        expected = {"a/cases"} if name == "pair-gains" else {"a/cases", "b/cases"}
        assert {r[column] for r in drawn.rows} == expected and len(drawn.figure.axes) == len(expected)
    opened = figures.load(folders)
    assert figures.load(opened[:1])[0] is opened[0], "what is open keeps its names"


def test_runs_on_two_versions_of_a_file_are_a_pair_over_the_cases_that_both_were_asked(
    synthetic: ModuleType, tmp_path: Path
) -> None:
    folders = {}
    for name, version, n in (("a", "old", 60), ("b", "new", 80), ("c", "old", 60), ("d", "new", 80)):
        folder = folders[name] = synthetic.make_run(tmp_path / name, n=n, probes=(), model=f"m/{name}")
        for file in ("config.yaml", "manifest.json"):
            held = json.loads((folder / file).read_text())
            own = {"identity": {**held["identity"], "data": version}} if file == "manifest.json" else {}
            (folder / file).write_text(json.dumps(held | (own or {"benchmark": f"{version}/set.jsonl"})))
    assert [r.benchmark for r in figures.load(folders.values())] == ["old/set", "new/set"] * 2
    # A version with two runs has its own pair.
    expected = {"ab": ["b − a"], "abc": ["c − a", "b − a"], "abcd": ["c − a", "d − b"]}
    for some, pairs in expected.items():
        for name in ("pair-gains", "channels"):
            rows = figures.draw(name, [folders[one] for one in some]).rows
            assert list(dict.fromkeys(r["run"] for r in rows)) == pairs
