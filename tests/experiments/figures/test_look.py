"""Figures for print: their width, their titles, and that they can be read without colors."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import pytest
from matplotlib.collections import QuadMesh
from matplotlib.colors import to_rgb
from matplotlib.image import AxesImage
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from composcope.experiments import figures
from composcope.experiments.cli import main
from composcope.experiments.figures.look import Look


@pytest.fixture(scope="module")
def study(synthetic: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("look")
    for i, name in enumerate(("a", "b", "c", "d")):
        synthetic.make_run(folder / name, model=f"organism:{name}", failure=0.2 * (i + 1), seed=i, probes=("lookback",))
    return folder


@pytest.mark.parametrize("name", ["collapse-curve", "outcomes", "gate-funnel", "lookback"])
def test_a_figure_in_gray_has_no_color_left(name: str, study: Path) -> None:
    fig = figures.draw(name, [study]).figure
    Look(gray=True).apply(fig)
    shades = [a.get_color() for a in fig.findobj(Line2D)] + [a.get_facecolor() for a in fig.findobj(Patch)]  # type: ignore[attr-defined]
    assert shades and all(max(to_rgb(s)) - min(to_rgb(s)) < 1e-6 for s in shades)
    fields = [*fig.findobj(AxesImage), *fig.findobj(QuadMesh)]  # the latter are color bars
    assert all(a.get_cmap().name == "Greys" for a in fields)  # type: ignore[attr-defined]


def test_curves_differ_without_colors(study: Path) -> None:
    fig = figures.draw("collapse-curve", [study]).figure
    drawn = {a.get_linestyle() for a in fig.axes[0].lines if len(a.get_xdata()) > 2}  # type: ignore[arg-type]
    assert len(drawn) == 4


def test_bars_of_few_cases_keep_the_hatching_of_their_series_in_gray(synthetic: ModuleType, tmp_path: Path) -> None:
    runs = [synthetic.make_run(tmp_path / name, n=n, probes=(), model=f"organism:{name}", failure=0.5)
            for name, n in (("few", 4), ("many", 40))]  # fmt: skip
    fig = figures.draw("outcomes", runs).figure
    Look(gray=True).apply(fig)
    bars = [p for p in fig.axes[0].patches if p.get_width()]  # type: ignore[attr-defined]
    few, many = ({p.get_hatch() for p in bars if (p.get_linestyle() == "--") == dashed} for dashed in (True, False))
    assert few and few <= many


@pytest.mark.parametrize(("width", "inches"), [("column", 3.35), ("page", 6.9)])
def test_a_figure_is_as_wide_as_print_wants_it(width: str, inches: float, study: Path, tmp_path: Path) -> None:
    fig = figures.draw("collapse-curve", [study]).figure
    Look(width, title=False).apply(fig)  # type: ignore[arg-type]
    assert fig.get_figwidth() == inches and not fig.axes[0].get_title(loc="left")
    fig.draw_without_rendering()
    (legend,) = fig.legends
    box = legend.get_window_extent().transformed(fig.transFigure.inverted())
    assert box.x0 >= 0 and box.x1 <= 1, "the legend lies within the figure"


def test_plot_takes_the_runs_that_are_named_and_writes_a_pdf(study: Path, tmp_path: Path) -> None:
    said = ["plot", "collapse-curve", str(study), "--runs", "c,a", "--width", "column", "--style", "gray"]
    assert main([*said, "--no-title", "--out", str(tmp_path)]) == 0
    assert (tmp_path / "collapse-curve.pdf").read_bytes().startswith(b"%PDF")
    rows = (tmp_path / "collapse-curve.csv").read_text()
    assert rows.index("\nc,") < rows.index("\na,") and "\nb," not in rows


@pytest.mark.parametrize(
    ("option", "value", "named"),
    [("--runs", "e", "--runs e"), ("--width", "wide", "--width wide"), ("--style", "x", "--style x")],
)
def test_what_print_does_not_have_is_refused(
    option: str, value: str, named: str, study: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["plot", "collapse-curve", str(study), option, value]) == 1
    assert named in capsys.readouterr().err
