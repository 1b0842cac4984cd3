"""Every figure of the papers drawn from real runs on organisms: what is drawn, what the csv and the caption say."""

from __future__ import annotations

import csv
import json
import math
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from composcope.errors import InputError
from composcope.evaluation.skills import OTHER
from composcope.evaluation.statistics import clopper_pearson
from composcope.experiments import figures
from composcope.experiments.cli import main
from composcope.experiments.figures import catalog, scatters, skills, style

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
ELSEWHERE = {
    "skill-coverage",
    "training-curve",
    "dose-response",
    "causes",
    "readout",
    "faithfulness",
    "patching-positions",
}


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


@pytest.mark.parametrize("name", ["leakage", "distraction", "second-hop", "co-presented"])
def test_scatter_plots_show_the_accuracies_of_the_graded_answers(name: str, studies: Mapping[str, Path]) -> None:
    pairs = {"leakage": ("original", "part:1"), "distraction": ("part:0", "pair:q1"), "second-hop": ("part:1", None),
             "co-presented": ("part:1", "co-presented")}  # fmt: skip
    for run, row in zip(figures.load([studies["gsm"]]), figures.draw(name, [studies["gsm"]]).rows, strict=True):
        right: dict[str, dict[str, bool]] = {}
        for g in run.graded:
            if g.outcome != "invalid":
                right.setdefault(g.role, {})[g.case] = g.outcome == "correct"
        x, y = pairs[name]
        known = right[x]
        assert (row["x"], row["n_x"]) == (sum(known.values()) / len(known), len(known))
        if y is None:
            gated = [c for c, ok in right["pair:q1"].items() if ok and c in right["whole"]]
            count, n = sum(right["whole"][c] for c in gated), len(gated)
        else:
            count, n = sum(right[y].values()), len(right[y])
        assert (row["count"], row["n"]) == (count, n)
        assert row["value"] == (count / n if n else None)
        if n:
            ends = clopper_pearson(count, n)
            assert (row["low"], row["high"]) == (ends.low, ends.high)


def test_a_mark_of_few_cases_on_either_axis_is_hollow_and_bare() -> None:
    ax = style.figure(3, 3).subplots()
    row: dict[str, Any] = {"value": 0.5, "low": 0.2, "high": 0.8, "n": 40, "x": 0.4, "x_low": 0.1, "x_high": 0.7,
                           "n_x": 4, "model": "m"}  # fmt: skip
    scatters._cross(ax, row, 0)
    assert row["drawn"] == "hollow" and len(ax.lines) == 1
    row |= {"n_x": 40}
    scatters._cross(ax, row, 0)
    assert row["drawn"] == "solid" and len(ax.lines) == 4
    row |= {"x": None}
    scatters._cross(ax, row, 0)
    assert row["drawn"] == "undefined" and len(ax.lines) == 4


def test_relative_gains_are_over_the_cases_judged_both_ways(studies: Mapping[str, Path]) -> None:
    (run,) = figures.load([studies["agentcoma"]])
    (row,) = [r for r in figures.draw("prompt-gain", [run]).rows if r["way"] == "self-ask"]
    by_case: dict[str, dict[str, str]] = {}
    for g in run.graded:
        by_case.setdefault(g.case, {})[g.role] = g.outcome
    known = [r for r in by_case.values() if "invalid" not in (r["whole"], r["self-ask"])]
    usual, other = (sum(r[k] == "correct" for r in known) for k in ("whole", "self-ask"))
    assert (row["n"], row["usual"], row["count"]) == (len(known), usual, other)
    assert row["value"] == pytest.approx((other - usual) / usual)


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

    assert shaded(figures.draw("collapse-curve", [studies["collapse"]])) == []
    drawing = figures.draw("collapse-curve", [studies["collapse"]], bands=(2, 4))
    assert shaded(drawing) == pytest.approx([2, 4]) and "Shaded: trained depths (2, 4)" in drawing.caption
    assert main(["plot", "collapse-curve", str(studies["collapse"]), "--bands", "trained", "-o", str(tmp_path)]) == 0
    assert "no trained depths" in (tmp_path / "collapse-curve.txt").read_text()
    assert main(["plot", "collapse-curve", str(studies["collapse"]), "--bands", "two", "-o", str(tmp_path)]) == 1
    assert "--bands two" in capsys.readouterr().err
    with pytest.raises(InputError, match="--bands: the figure mink has no such option"):
        figures.draw("mink", [studies["agentcoma"]], bands=(2,))


def test_magnitudes_count_one_run_per_benchmark(studies: Mapping[str, Path]) -> None:
    rows = figures.draw("magnitudes", [studies["gsm"]]).rows
    cases = figures.load([studies["gsm"]])[0].cases.values()
    for name, answers in (
        ("whole (the pair)", [c.answer for c in cases]),
        ("first question", [c.parts[0].answer for c in cases]),
        ("original of Q2", [c.meta["original"]["answer"] for c in cases]),
    ):
        mine = [r for r in rows if name in r["set"].split(" = ")]
        assert [r["answer"] for r in mine] == sorted(map(float, answers), key=abs)
        assert all(r["x"] == pytest.approx(math.log10(abs(r["answer"]))) for r in mine if r["answer"])
        assert [r["value"] for r in mine] == pytest.approx([(i + 1) / len(mine) for i in range(len(mine))])


def test_skills_of_a_run_are_those_of_its_parts(studies: Mapping[str, Path]) -> None:
    rows = figures.draw("skill-distribution", [studies["stad"]]).rows
    mixed = {r["skill"]: r for r in rows if r["map"] == "mixed"}
    assert mixed["choose by kind"]["value"] == 0.5
    shares = [r["value"] for r in mixed.values()]
    assert sum(shares) == pytest.approx(1)
    assert mixed["choose by kind"]["entropy_bits"] == pytest.approx(-sum(s * math.log2(s) for s in shares))
    assert next(r for r in rows if r["map"] == "temporal")["entropy_bits"] == 0


MAPS = [
    {"n_clusters": m, "n_skills": n, "usage": {**{f"skill {i}": 40 // (i + 1) for i in range(n)}, OTHER: other}}
    for m, n, other in ((5, 2, 30), (5, 3, 10), (10, 2, 4), (10, 3, 0))
]


@pytest.fixture
def skill_maps(tmp_path: Path) -> Path:
    folder = tmp_path / "maps"
    folder.mkdir()
    (folder / "granularity.jsonl").write_text("".join(json.dumps(m) + "\n" for m in MAPS))
    return folder


def test_the_rest_that_no_skill_covers_is_drawn_over_n_with_a_line_per_m(skill_maps: Path) -> None:
    rows = figures.draw("skill-coverage", [skill_maps]).rows
    found = {(r["clusters"], r["skills"]): (r["count"], r["n"], r["low"], r["high"]) for r in rows}
    ends = clopper_pearson(30, 90)
    assert found[5, 2] == (30, 90, ends.low, ends.high)
    assert found[10, 3][:2] == (0, 73)


def test_every_skill_map_has_its_panel_and_its_list(skill_maps: Path, tmp_path: Path) -> None:
    drawing = figures.draw("skill-distribution", [skill_maps])
    titles = [ax.get_title(loc="left") for ax in drawing.figure.axes if ax.axison]
    assert [t.split(",")[0] for t in titles] == ["M=5", "M=5", "M=10", "M=10"]
    one = skills.SkillUse("x", 5, 2, {"a": 30, "b": 10, OTHER: 60})
    assert one.entropy == pytest.approx(-(0.75 * math.log2(0.75) + 0.25 * math.log2(0.25)))
    lists = figures.draw("skill-granularity", [skill_maps])
    assert {(r["clusters"], r["skills"]) for r in lists.rows} == {(10, 2), (10, 3)}
    assert main(["plot", "skill-coverage", str(skill_maps), "--out", str(tmp_path / "f")]) == 0
    assert (tmp_path / "f" / "skill-coverage.png").is_file()


def test_skill_maps_of_an_older_build_say_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "granularity.jsonl").write_text(json.dumps({"n_clusters": 5, "n_skills": 5}) + "\n")
    with pytest.raises(InputError, match="field 'usage' is missing; build the skills again"):
        figures.draw("skill-distribution", [tmp_path])


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


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ([], "no rows"),
        ([{"recipe": "r", "step": 1, "metric": "m", "k": 3}], "row 1: field 'n' is missing"),
        ([{"recipe": "r", "step": 1, "metric": "m", "k": 3, "n": 2}], "k is 3 and n is 2"),
        ([{"recipe": "r", "step": "one", "metric": "m", "k": 1, "n": 2}], "whole numbers"),
    ],
)
def test_checkpoints_that_cannot_be_read_name_their_row(rows: Any, said: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=said):
        figures.draw("training-curve", [_checkpoints(rows, tmp_path / "training_curve.json")])


def test_folders_without_checkpoints_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"training_curve\.json"):
        figures.draw("training-curve", [tmp_path])


def test_the_dose_series_is_drawn_from_the_validity_table(studies: Mapping[str, Path], tmp_path: Path) -> None:
    empty = figures.draw("dose-response", [studies["agentcoma"]]).empty
    assert empty is not None and "composcope study validity" in empty
    copy = Path(shutil.copytree(studies["gsm"], tmp_path / "study"))
    table = copy / "validity" / "table.csv"
    table.parent.mkdir()
    table.write_text(
        "question,quantity,group,n,value,low,high,interval,verdict\n"
        "follows the dose,mean cosine,none,20,0.1,0.0,0.2,t,\n"
        "follows the dose,mean cosine,twin,20,0.4,0.3,0.5,t,\n"
        "follows the dose,mean cosine: trend,none < twin,40,0.9,0.8,1.0,t,yes\n"
    )
    rows = figures.draw("dose-response", [copy]).rows
    assert [(r["dose"], r["value"], r["n"]) for r in rows] == [("none", 0.1, 20), ("twin", 0.4, 20)]


def test_every_id_can_be_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plot", "--list"]) == 0
    names = [line.split(":")[0] for line in capsys.readouterr().out.splitlines()]
    assert set(catalog.FIGURES) <= set(names)
