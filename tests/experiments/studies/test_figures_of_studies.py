"""Every figure of the papers drawn from real runs on organisms: what is drawn, what the csv and the caption say."""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from composcope.errors import InputError
from composcope.evaluation.statistics import clopper_pearson
from composcope.experiments import figures
from composcope.experiments.cli import main
from composcope.experiments.figures import catalog

pytestmark = pytest.mark.long

FROM = {
    "agentcoma": (
        "gap-slopes", "step-bars", "context-control", "prompt-gain", "failure-quadrants", "gaps", "gap-scatter",
        "mink", "lookback", "lookback-means", "neuron-overlap", "neuron-overlap-means", "neuron-layers", "neuron-check",
        "outcomes",
    ),
    "gsm": (
        "leakage", "distraction", "second-hop", "co-presented", "magnitudes", "pair-gains", "prompt-gain",
        "gap-scatter", "skill-distribution",
    ),
    "stad": ("scaffold-gain", "k-histogram", "bottlenecks", "skill-heatmap", "skill-distribution", "skill-granularity"),
    "collapse": (
        "collapse-curve", "family-curves", "family-heatmap", "gate-funnel", "stability-scatter", "channels", "patching",
        "cosine-prompt-end", "cosine-trajectory",
    ),
}  # fmt: skip
"""Which figures each study has something for."""
ELSEWHERE = {*"skill-coverage training-curve dose-response causes readout faithfulness patching-positions".split()}


@pytest.fixture(scope="session")
def studies(agentcoma: Path, gsm: Path, stad: Path, collapse: Path) -> Mapping[str, Path]:
    return {"agentcoma": agentcoma, "gsm": gsm, "stad": stad, "collapse": collapse}


def _rows(folder: Path, name: str) -> list[dict[str, str]]:
    with (folder / f"{name}.csv").open(encoding="utf-8", newline="") as f:
        return list(csv.DictReader(f))


def test_every_figure_of_the_catalog_is_drawn_from_something_real() -> None:
    assert {name for names in FROM.values() for name in names} | ELSEWHERE == set(figures.FIGURES)


@pytest.mark.parametrize(("source", "name"), [(s, n) for s, names in FROM.items() for n in names])
def test_a_figure_has_picture_vector_numbers_and_a_caption_that_says_how(
    source: str, name: str, studies: Mapping[str, Path], tmp_path: Path
) -> None:
    drawing = figures.draw(name, [studies[source]])
    assert drawing.empty is None, drawing.empty
    paths = figures.save(name, [studies[source]], tmp_path)
    assert [p.suffix for p in paths] == [".png", ".svg", ".pdf", ".csv", ".txt"]
    assert all(p.stat().st_size > 0 for p in paths)
    rows = _rows(tmp_path, name)
    assert len(rows) == len(drawing.rows) > 0
    said = drawing.caption
    assert ("Runs: " in said and "Made by: " in said) or "Checkpoints: " in said
    assert "ntervals" in said, "the interval method, or that there is none"
    assert "n = " in said or "n=" in said or "n: " in said or "Counts" in said or "counts" in said
    for row in drawing.rows:
        if row.get("drawn") == "hollow" and isinstance(row.get("n"), int):
            assert f"n={row['n']}" in said
    assert "nan" not in " ".join(t.get_text() for ax in drawing.figure.axes for t in ax.texts)


def test_the_three_channels_are_those_of_the_comparison(studies: Mapping[str, Path]) -> None:
    with (studies["collapse"] / "tables" / "pairs.csv").open(encoding="utf-8", newline="") as f:
        table = {(r["what"], r["group"]): r["value"] for r in csv.DictReader(f)}
    rows = figures.draw("channels", [studies["collapse"]]).rows
    assert {r["channel"] for r in rows} == {"delta_atom", "delta_comp", "delta_depth"}
    for r in rows:
        group = {"all": "", "per": "per fact"}.get(r["cell"], f"depth_bin {r['cell'].rpartition(' ')[2]}")
        group = "per fact" if r["channel"] == "delta_atom" else group
        assert (table[r["channel"], group] or "None") == str(r["value"])
    assert all(r["pair"] == "twin (50 %) − control (0.45 %)" for r in rows)


def test_undefined_channels_are_words_and_no_marks(studies: Mapping[str, Path]) -> None:
    drawing = figures.draw("channels", [studies["collapse"]])
    for channel, ax in zip(("delta_atom", "delta_comp", "delta_depth"), drawing.figure.axes, strict=True):
        mine = [r for r in drawing.rows if r["channel"] == channel]
        marks = [line for line in ax.lines if line.get_marker() in ("o", "D")]
        assert len(marks) == sum(r["value"] is not None for r in mine)
        if not marks:
            assert any("undefined" in t.get_text() for t in ax.texts)


def test_models_are_grouped_by_what_the_study_says_of_them(studies: Mapping[str, Path], tmp_path: Path) -> None:
    drawing = figures.draw("gaps", [studies["gsm"]], group_by="tuning")
    assert list(dict.fromkeys(r["model"] for r in drawing.rows)) == [
        "instruct · twin (50 %)",
        "pretrained · none (0 %)",
    ]
    assert "Ordered by tuning." in drawing.caption
    assert main(["plot", "gaps", str(studies["gsm"]), "--group-by", "cost", "--out", str(tmp_path)]) == 0
    assert "Ordered by cost." in (tmp_path / "gaps.txt").read_text()


def test_trained_depths_are_shaded(studies: Mapping[str, Path], tmp_path: Path, capsys: Any) -> None:
    def shaded(drawing: Any) -> list[float]:
        patches = drawing.figure.axes[0].patches
        return [p.get_x() + p.get_width() / 2 for p in patches]

    drawing = figures.draw("collapse-curve", [studies["collapse"]], bands=(2, 4))
    assert shaded(drawing) == pytest.approx([2, 4]) and "Shaded: trained depths (2, 4)" in drawing.caption
    assert main(["plot", "collapse-curve", str(studies["collapse"]), "--bands", "trained", "-o", str(tmp_path)]) == 0
    assert "no trained depths" in (tmp_path / "collapse-curve.txt").read_text()
    assert main(["plot", "collapse-curve", str(studies["collapse"]), "--bands", "two", "-o", str(tmp_path)]) == 1
    assert "--bands two" in capsys.readouterr().err
    with pytest.raises(InputError, match="--bands: the figure mink has no such option"):
        figures.draw("mink", [studies["agentcoma"]], bands=(2,))


def _checkpoints(rows: Sequence[Mapping[str, Any]], path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"schema": 1, "rows": list(rows)}))
    return path


def _curve(recipe: str, run: str, counts: Mapping[str, Sequence[int]], n: int = 40) -> list[dict[str, Any]]:
    return [
        {"run": run, "recipe": recipe, "seed": 0, "step": 50 * i, "metric": metric, "k": k, "n": n}
        for metric, ks in counts.items()
        for i, k in enumerate(ks)
    ]


def test_a_training_curve_is_drawn_from_checkpoints_of_any_origin(tmp_path: Path) -> None:
    counts = {"parts": [10, 20, 38], "composition": [4, 16, 9]}
    rows = _curve("sft", "a", counts) + _curve("grpo", "b", counts)
    file = _checkpoints(rows, tmp_path / "study" / "a" / "training_curve.json")
    drawing = figures.draw("training-curve", [file.parent.parent])
    titles = [ax.get_title(loc="left") for ax in drawing.figure.axes]
    assert titles == ["sft", "grpo"]
    point = next(r for r in drawing.rows if (r["recipe"], r["metric"], r["step"]) == ("sft", "composition", 100))
    ends = clopper_pearson(9, 40)
    assert (point["value"], point["low"], point["high"]) == (9 / 40, ends.low, ends.high)
    lines = [line for line in drawing.figure.axes[0].lines if len(np.ravel(line.get_xdata())) == 3]
    assert len(lines) == 2
    assert str(file) in drawing.caption and "n = 40 per mark" in drawing.caption
    table = tmp_path / "curve.csv"
    with table.open("w", newline="") as f:
        writer = csv.DictWriter(f, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    assert [r["value"] for r in figures.draw("training-curve", [table]).rows] == [r["value"] for r in drawing.rows]
    assert main(["plot", "training-curve", str(file), "--out", str(tmp_path / "f")]) == 0


def test_few_and_no_cases_of_a_checkpoint_are_hollow_and_undefined(tmp_path: Path) -> None:
    rows = [*_curve("sft", "a", {"whole": [1, 2]}, n=4), *_curve("sft", "a", {"none": [0]}, n=0)]
    drawing = figures.draw("training-curve", [_checkpoints(rows, tmp_path / "training_curve.json")])
    assert {r["drawn"] for r in drawing.rows} == {"hollow", "undefined"}
    assert "sft, none, step 0 (n=0)" in drawing.caption and "sft, whole, step 50 (n=4)" in drawing.caption


def test_folders_without_checkpoints_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"training_curve\.json"):
        figures.draw("training-curve", [tmp_path])


def test_every_id_can_be_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plot", "--list"]) == 0
    names = [line.split(":")[0] for line in capsys.readouterr().out.splitlines()]
    assert set(catalog.FIGURES) <= set(names)
