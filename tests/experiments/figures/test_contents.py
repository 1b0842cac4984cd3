"""Marks of figures whose csv holds more than one number that could be drawn: the right one is."""

from __future__ import annotations

import json
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from composcope.evaluation.graded import Graded
from composcope.evaluation.metrics import quoted
from composcope.evaluation.protocols import metrics_from_rows
from composcope.experiments import figures
from composcope.experiments.figures import gates

from ..bare_runs import bare_run


def test_outcomes_are_shares_of_the_answers_in_their_role(runs: list[figures.RunData]) -> None:
    drawing = figures.draw("outcomes", runs)
    of_bar: dict[tuple[str, str], float] = {}
    for row in drawing.rows:
        assert row["value"] == pytest.approx(row["count"] / row["n"])
        bar = (row["run"], row["role"])
        of_bar[bar] = of_bar.get(bar, 0) + row["value"]
    assert len(of_bar) > 5 and list(of_bar.values()) == pytest.approx([1] * len(of_bar))


def test_a_step_that_some_cases_do_not_have_says_how_many_have_it(synthetic: ModuleType, tmp_path: Path) -> None:
    folder = synthetic.make_run(tmp_path / "gap", n=60, probes=(), protocol="compositionality-gap")
    document = json.loads((folder / "metrics.json").read_text())
    document["metrics"].append(synthetic.rate("step:2", 3, 8))
    (folder / "metrics.json").write_text(json.dumps(document))
    (run,) = figures.load([folder])
    stages = [r["stage"] for r in figures.draw("gate-funnel", [run]).rows]
    assert stages[1:4] == ["step 1 right", "step 2 right", "step 3 right (of 8)"]
    assert stages[4:] == ["all parts right", "whole wrong, all parts right"]


def test_rows_of_a_figure_are_the_metrics_that_it_names(synthetic: ModuleType, tmp_path: Path) -> None:
    folder = synthetic.make_run(tmp_path / "gap", n=60, probes=(), protocol="compositionality-gap")
    document = json.loads((folder / "metrics.json").read_text())
    document["metrics"].append(synthetic.rate("step:0", 11, 60, prompt="extra-context"))
    (folder / "metrics.json").write_text(json.dumps(document))
    (run,) = figures.load([folder])
    assert [m.count for m in run.select("step:0", "prompt")] == [11] and run.select("step:0") == [run.one("step:0")]
    failed = run.one("press_gap")
    funnel = {r["stage"]: r["count"] for r in figures.draw("gate-funnel", [run]).rows}
    assert failed is not None and failed.count != failed.n and funnel["whole wrong, both right"] == failed.count


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
    short = synthetic.make_run(tmp_path / "short", n=60, probes=(), protocol="compositionality-gap")
    runs, steps = figures.load([short, folder]), [f"step {i}" for i in range(1, 13)]
    ticks = figures.draw("gap-slopes", runs).figure.axes[0].get_xticklabels()
    named = figures.draw("step-bars", runs).figure.legends[0].get_texts()
    assert [[text.get_text() for text in texts] for texts in (ticks, named)] == [[*steps, "both", "whole"]] * 2
    stages = [r["stage"] for r in figures.draw("gate-funnel", runs[1:]).rows]
    assert stages[1:-2] == [f"{step} right" for step in steps]


def _n_marks(drawing: figures.Drawing) -> list[int]:
    return [len(ax.lines) + len(ax.patches) + len(ax.images) for ax in drawing.figure.axes]


@pytest.mark.parametrize(
    "name", "neuron-overlap-means neuron-layers neuron-check lookback-means patching cosine-prompt-end mink".split()
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
