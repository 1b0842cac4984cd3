"""Figures from run folders: what is drawn, what is said, what is never drawn."""

from __future__ import annotations

import csv
import importlib
import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from matplotlib.axes import Axes

from composcope.errors import InputError
from composcope.experiments import figures
from composcope.experiments.figures import catalog, drawing, style
from composcope.experiments.run.provenance import beside
from composcope.probes.catalog import PROBES

ALL = ("neurons", "lookback", "patching", "trajectory", "min-k")


@pytest.fixture(scope="module")
def study(synthetic: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> list[figures.RunData]:
    folder = tmp_path_factory.mktemp("study")
    gap = "compositionality-gap"
    for i, (dose, failure) in enumerate((("control", 0.8), ("twin", 0.1))):
        made = {"model": f"organism:{dose}", "failure": failure, "seed": i}
        probes = ALL if dose == "control" else ()
        synthetic.make_run(folder / f"temporal-{dose}", n=160, probes=probes[1:2], **made)
        synthetic.make_run(folder / f"mixed-{dose}", n=80, probes=probes, protocol=gap, **made)
    return figures.load([folder])


def test_every_figure_writes_picture_vector_numbers_and_caption(study: list[figures.RunData], tmp_path: Path) -> None:
    for name in figures.FIGURES:
        paths = figures.save(name, study[::2], tmp_path)  # a run of each protocol
        assert [p.name for p in paths] == [f"{name}{end}" for end in (".png", ".svg", ".pdf", ".csv", ".txt")]
        assert all(p.stat().st_size > 0 for p in paths if p.suffix != ".csv")
        assert paths[0].read_bytes().startswith(b"\x89PNG") and "<svg" in paths[1].read_text()


def test_every_figure_says_its_title_its_command_and_its_place_once() -> None:
    found = figures.FIGURES.own
    assert not {"runs", "sources"} & {option for f in found.values() for option in f.options}
    assert {name for name, f in found.items() if "group_by" in f.options} > {"failure-quadrants"}
    assert len(found) > 35 and {name: f.name for name, f in found.items()} == {name: name for name in found}
    assert len({f.title for f in found.values()}) == len(found)
    assert all(f.command.startswith("composcope ") for f in found.values())
    assert {f.section for f in found.values()} == {"", "first", "behavior", "optional", *PROBES}


def test_the_csv_has_the_rows_of_the_drawing(study: list[figures.RunData], tmp_path: Path) -> None:
    figures.save("collapse-curve", study, tmp_path)
    with (tmp_path / "collapse-curve.csv").open(encoding="utf-8", newline="") as f:
        rows = list(csv.DictReader(f))
    drawn = figures.draw("collapse-curve", study).rows
    assert [float(r["value"]) for r in rows] == pytest.approx([r["value"] for r in drawn])
    for row in rows:
        assert float(row["value"]) == pytest.approx(int(row["count"]) / int(row["n"]))
        assert float(row["low"]) <= float(row["value"]) <= float(row["high"])


def _points(*cells: tuple[float | None, int]) -> tuple[Axes, list[dict[str, Any]]]:
    rows: list[dict[str, Any]] = [{"value": v, "low": 0.0, "high": 1.0, "n": n} for v, n in cells]
    ax = style.figure(3, 3).subplots()
    style.points(ax, rows, list(range(len(rows))), "#0072B2", "model")
    return ax, rows


def test_few_cases_are_hollow_without_line_or_interval_and_the_next_ones_marked() -> None:
    ax, rows = _points((0.2, 4), (0.4, 5), (0.6, 14), (0.8, 15))
    assert [r["drawn"] for r in rows] == ["hollow", "marked", "marked", "solid"]
    marks = [line for line in ax.lines if line.get_marker() in ("o", "D")]
    assert [line.get_marker() for line in marks] == ["o", "D", "D", "o"]
    assert [line.get_markerfacecolor() == style.PAPER for line in marks] == [True, False, False, False]
    joined = [np.ravel(line.get_xdata()) for line in ax.lines if line.get_marker() == "None"]
    assert not any(0 in xs for xs in joined)
    assert any(list(xs) == [1, 2, 3] for xs in joined)


def test_undefined_values_are_named_and_never_drawn() -> None:
    ax, rows = _points((None, 0), (0.5, 20))
    assert [line.get_marker() for line in ax.lines if line.get_marker() != "None"] == ["o"]
    assert "Undefined, not drawn: cell (n=0)" in style.few_cases(rows, "cell")


def test_a_caption_names_a_few_marks_of_few_cases_and_counts_the_others_with_their_n() -> None:
    rows = [{"name": f"m{i}", "n": 5 + i % 3, "drawn": "marked"} for i in range(style.NAMED + 4)]
    said = style.few_cases(rows, "{name}")
    assert said.count("; ") == style.NAMED + 1 and "m3 (n=5)" in said and "m4" not in said
    assert "and 4 more (n=5, n=6, n=7; column “drawn” of the csv)" in said


def test_quadrants_of_runs_without_a_wrong_whole_are_words(synthetic: ModuleType, tmp_path: Path) -> None:
    run = synthetic.make_run(tmp_path / "run", n=8, probes=(), protocol="compositionality-gap")
    document = json.loads((run / "metrics.json").read_text())
    for row in document["metrics"]:
        if row["metric"] == "quadrant":
            row.update(n=0, value=None, low=None, high=None, count=0)
    (run / "metrics.json").write_text(json.dumps(document))
    assert "No whole was judged wrong" in str(catalog.draw("failure-quadrants", [run]).empty)


def test_the_caption_lists_cells_with_few_cases(synthetic: ModuleType, tmp_path: Path) -> None:
    run = synthetic.make_run(tmp_path / "run", n=40, depths={2: 26, 4: 11, 6: 3}, seed=3)
    drawing = figures.draw("collapse-curve", [run])
    drawn = {r["depth"]: (r["drawn"], r["n"]) for r in drawing.rows}
    assert drawn[6][0] == "hollow" and drawn[4][0] == "marked" and drawn[2][0] == "solid"
    assert f"control (0.45 %), depth 6 (n={drawn[6][1]})" in drawing.caption
    assert "Hollow, without line or interval (n < 5)" in drawing.caption


def test_the_caption_has_command_runs_counts_and_interval_method(study: list[figures.RunData]) -> None:
    caption = figures.draw("gap-slopes", study).caption
    for said in ("composcope investigate --model organism:control", "mixed-twin", "clopper-pearson", "n=80", "Chance"):
        assert said in caption
    assert "temporal" not in caption


def test_models_are_named_by_themselves_where_that_tells_them_apart(study: list[figures.RunData]) -> None:
    assert {r["model"] for r in figures.draw("collapse-curve", study).rows} == {"control (0.45 %)", "twin (50 %)"}
    assert {r["model"] for r in figures.draw("lookback", study).rows} == {
        "control (0.45 %) · mixed",
        "control (0.45 %) · temporal",
    }


def test_curves_of_patches_are_of_donors_and_controls_not_of_their_differences(study: list[figures.RunData]) -> None:
    rows = figures.draw("patching", study).rows
    assert {r["patch"] for r in rows} == {"donor", "random", "identity"} and {r["measure"] for r in rows} == {
        "flip_rate"
    }
    assert {r["measure"] for r in figures.draw("patching", study, measure="kl").rows} == {"kl"}
    with pytest.raises(InputError, match="measure 'size'"):
        figures.draw("patching", study, measure="size")


def test_a_study_has_a_line_of_panels_a_benchmark_and_a_column_a_model(study: list[figures.RunData]) -> None:
    drawing = figures.draw("lookback-means", study)
    fig = drawing.figure
    fig.draw_without_rendering()
    shown = {(ax.get_title(loc="left"), ax.get_ylabel()): ax for ax in fig.axes if ax.axison}
    assert list(shown) == [("control (0.45 %)", "mixed"), ("control (0.45 %)", "temporal")]
    above, below = (ax.get_window_extent() for ax in shown.values())
    assert above.x0 == pytest.approx(below.x0) and above.y0 > below.y1
    assert len({ax.get_xlim() for ax in shown.values()}) == 1


def test_the_funnels_of_a_benchmark_stand_in_a_line_and_counts_are_as_long_in_every_panel(
    study: list[figures.RunData],
) -> None:
    fig = figures.draw("gate-funnel", study[::-1]).figure
    fig.draw_without_rendering()
    lines: dict[float, list[Any]] = {}
    for ax in (ax for ax in fig.axes if ax.axison):
        lines.setdefault(round(ax.get_window_extent().y0), []).append(ax)
    assert [line[0].get_ylabel() for line in lines.values()] == ["temporal", "mixed"]
    for line in lines.values():
        stages = [[t.get_text() for t in ax.get_yticklabels()] for ax in line]
        assert stages[0] and not any(stages[1:])  # one list of stages for the line
    assert len({ax.get_xlim() for line in lines.values() for ax in line}) == 1


def test_a_probe_that_found_nothing_says_why(synthetic: ModuleType, tmp_path: Path) -> None:
    run = synthetic.make_run(tmp_path / "run", probes=(), n=12)
    synthetic.write_probe(run / "probes" / "lookback", "lookback", [], {}, {})
    drawing = figures.draw("lookback", [run])
    assert "ran but found nothing" in str(drawing.empty) and str(drawing.empty) in drawing.caption and not drawing.rows


def test_names_from_outside_cannot_break_a_picture(synthetic: ModuleType, tmp_path: Path) -> None:
    hostile = r"$\frac$ <script>" + "\u202e\ud800 x" * 40
    run = synthetic.make_run(tmp_path / "run", model=hostile, n=24)
    for name in ("collapse-curve", "gate-funnel", "lookback"):
        paths = figures.save(name, [run], tmp_path / "out")
        assert "<script" not in paths[1].read_text() and paths[0].stat().st_size > 0


def test_figures_can_be_drawn_from_several_threads(study: list[figures.RunData], tmp_path: Path) -> None:
    names = ["collapse-curve", "gap-slopes", "mink", "outcomes"]
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda n: figures.save(n, study[::2], tmp_path), names))
    alone = [figures.save(n, study[::2], tmp_path / "alone")[0].read_bytes() for n in names]
    assert [(tmp_path / f"{n}.png").read_bytes() for n in names] == alone


def test_figures_need_neither_torch_nor_pyplot() -> None:
    code = (
        "import sys; from composcope.experiments import figures; list(figures.FIGURES);"
        "sys.exit('torch' in sys.modules or 'matplotlib.pyplot' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_an_unknown_figure_and_a_folder_that_is_no_run_are_one_line_errors(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such figure; see `composcope plot --list`"):
        figures.draw("collapse", [])
    with pytest.raises(InputError, match=r"no manifest\.json"):
        figures.draw("collapse-curve", [tmp_path])
    assert catalog.FIGURES is figures.FIGURES


def test_a_studys_runs_come_in_the_order_that_the_study_gives(synthetic: ModuleType, tmp_path: Path) -> None:
    for name in ("b", "a", "c"):
        synthetic.make_run(tmp_path / name, n=4, probes=())
    assert [r.name for r in figures.load([tmp_path])] == ["a", "b", "c"]
    manifest = tmp_path / "a" / "manifest.json"
    manifest.write_text(manifest.read_text().replace("2026-01-01", "2026-01-02"))
    assert [r.name for r in figures.load([tmp_path])] == ["b", "c", "a"], "as they were made"
    (tmp_path / "study.json").write_text(json.dumps({"schema": 1, "runs": ["c", "a", "b"]}))
    assert [r.name for r in figures.load([tmp_path])] == ["c", "a", "b"]
    assert [r.name for r in figures.load([tmp_path / "b", tmp_path / "a"])] == ["b", "a"]


def test_the_gallery_leaves_out_figures_that_the_demos_runs_cannot_have(
    synthetic: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("mkdocs", reason="the documentation's packages are not installed")
    monkeypatch.syspath_prepend(str(Path(__file__).resolve().parents[3] / "docs"))
    site = importlib.import_module("site_links")
    synthetic.make_run(tmp_path / "run", probes=(), n=12)
    (tmp_path / "study.json").write_text(json.dumps({"schema": 1, "runs": ["run"]}))
    synthetic.make_run(tmp_path / "real", probes=(), n=12, protocol="compositionality-gap")
    sources = [("the demo", tmp_path), ("studies", tmp_path / "studies"), ("a real model", tmp_path / "real")]
    monkeypatch.setattr(site, "SOURCES", sources)
    drawn = site._drawable()
    assert ("collapse-curve", tmp_path) in drawn and "training-curve" not in dict(drawn)
    assert ("gap-slopes", tmp_path / "real") in drawn and ("outcomes", tmp_path / "real") in drawn
    gallery = site._gallery()
    assert f'src="gallery/{tmp_path.name}/outcomes.svg"' in gallery and 'src="gallery/real/outcomes.svg"' in gallery


def test_the_same_drawing_is_always_the_same_file_whatever_the_day(
    synthetic: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = figures.draw("outcomes", [synthetic.make_run(tmp_path / "r", n=12, probes=())])
    texts = []
    for day in ("0", "86400000"):
        monkeypatch.setenv("SOURCE_DATE_EPOCH", day)
        files = drawing.write(found, "outcomes", tmp_path / day, pdf=True)
        texts.append([p.read_bytes() for p in files if p.suffix in (".svg", ".pdf", ".png")])
    assert texts[0] == texts[1] and len(texts[0]) == 3
    assert beside(tmp_path / "0" / "outcomes.csv").is_file(), "its provenance stands beside the csv"
