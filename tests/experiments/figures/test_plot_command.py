"""``composcope plot``: what cannot be drawn is said, with the command that makes it; and figures for print."""

from __future__ import annotations

import io
import json
import re
import shlex
import shutil
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import matplotlib.pyplot as plt
import pytest
from matplotlib.collections import QuadMesh
from matplotlib.colors import to_rgb
from matplotlib.image import AxesImage, imread
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from typer.main import get_command

from composcope.errors import InputError
from composcope.experiments import figures, report
from composcope.experiments.cli import app, main
from composcope.experiments.figures import catalog, look, style
from composcope.experiments.figures.drawing import Drawing
from composcope.experiments.figures.look import Look
from composcope.experiments.figures.training import read_checkpoints

MAKES = {name: figure.command for name, figure in figures.FIGURES.own.items()}
Capture = pytest.CaptureFixture[str]


@pytest.fixture(scope="module")
def run(synthetic: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A double-gate run that no probe has looked at."""
    return synthetic.make_run(tmp_path_factory.mktemp("runs") / "r", n=12, probes=())


OF_RUNS = [name for name in figures.FIGURES if name != "training-curve"]


@pytest.mark.parametrize("name", OF_RUNS)
def test_a_run_without_the_data_of_a_figure_is_an_error_that_names_the_command_which_makes_it(
    name: str, run: Path, tmp_path: Path, capsys: Capture
) -> None:
    code, drawing = main(["plot", name, str(run), "--out", str(tmp_path / "out")]), figures.draw(name, [run])
    err = capsys.readouterr().err
    if drawing.empty is None:
        assert code == 0 and drawing.rows and (tmp_path / "out" / f"{name}.csv").is_file()
        return
    assert code == 1 and not (tmp_path / "out").exists()
    assert f"plot {name}: nothing to draw from {run}: " in err and MAKES[name] in err


def test_some_figures_of_a_run_without_probes_can_be_drawn_and_most_can_not(run: Path) -> None:
    empty = {name for name in OF_RUNS if figures.draw(name, [run]).empty is not None}
    assert "collapse-curve" not in empty and {"gaps", "k-histogram", "patching", "mink"} <= empty


@pytest.mark.parametrize(("name", "makes"), MAKES.items())
def test_every_command_that_makes_a_figures_data_parses(name: str, makes: str) -> None:
    words = shlex.split(makes.partition(" (")[0])[1:]
    command = get_command(app)
    while hasattr(command, "commands"):
        command = command.commands[words.pop(0)]  # type: ignore[attr-defined]
    command.make_context("x", words)


def test_a_folder_without_checkpoints_says_what_writes_them(run: Path, capsys: Capture) -> None:
    assert main(["plot", "training-curve", str(run)]) == 1
    assert "composcope intervene" in capsys.readouterr().err


def test_a_report_over_the_runs_of_an_intervention_study_shows_its_checkpoints(
    synthetic: ModuleType, empty_pictures: Any, tmp_path: Path
) -> None:
    run = synthetic.make_run(tmp_path / "runs" / "base-baseline", n=12, probes=())
    with empty_pictures():
        assert "Accuracy over training" not in report.write([run], tmp_path).read_text()
    rows = [{"recipe": "grpo", "step": s, "metric": "parts", "k": 3, "n": 4, "run": "a"} for s in (0, 8)]
    (tmp_path / "training_curve.json").write_text(json.dumps({"schema": 1, "rows": rows}))
    assert "Accuracy over training" in report.write([run], tmp_path).read_text()
    assert (tmp_path / "figures" / "training-curve.csv").is_file()
    below = tmp_path / "studies" / "grpo" / "training_curve.json"
    below.parent.mkdir(parents=True)
    below.write_text(json.dumps(rows))
    assert [c.path for c in read_checkpoints([tmp_path / "studies"])] == [below]


def test_an_unknown_figure_gets_near_matches_and_the_way_to_the_list(run: Path, capsys: Capture) -> None:
    assert main(["plot", "gap-slope", str(run)]) == 1
    err = capsys.readouterr().err
    assert "see `composcope plot --list`; did you mean 'gap-slopes'" in err and len(err) < 200
    assert main(["plot", "qqqq", str(run)]) == 1
    assert capsys.readouterr().err.endswith("see `composcope plot --list`\n")


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


def test_a_color_of_no_series_is_as_light_in_gray_as_it_looks() -> None:
    ax = style.one_panel(4, 3)[1]
    bars = [ax.barh(i, 1, color=shade)[0] for i, shade in enumerate(("#ff0000", "#00ff00", "#0000ff", "#ffffff"))]
    Look(gray=True).apply(ax.figure)  # type: ignore[arg-type]
    assert [bar.get_facecolor()[0] for bar in bars] == pytest.approx([0.299, 0.587, 0.114, 1], abs=1 / 255)


def test_curves_differ_without_colors(study: Path) -> None:
    fig = figures.draw("collapse-curve", [study]).figure
    drawn = {a.get_linestyle() for a in fig.axes[0].lines if len(a.get_xdata()) > 2}  # type: ignore[arg-type]
    assert len(drawn) == 4
    ax = style.one_panel(4, 3)[1]
    for n in (3, 2):
        for i in range(3):
            ax.plot(range(n), range(n), color=style.PALETTE[i], marker="o")
    ax.plot(range(3), range(3), color=style.MUTED, marker="o")
    Look(gray=True).apply(ax.figure)  # type: ignore[arg-type]
    styles, marks = ([f(line) for line in ax.lines] for f in (Line2D.get_linestyle, Line2D.get_marker))
    assert len(set(styles[:3])) == 3 and set(styles[3:]) == {"-"}, "a whisker is no curve"
    assert len(set(marks[:3])) == 3 and marks[3:6] == marks[:3] and marks[6] == "o"


@pytest.mark.parametrize("shape", look._SHAPES)
def test_a_mark_of_very_few_cases_looks_hollow_in_gray_even_in_a_column(shape: str) -> None:
    def ink(n: int) -> float:
        fig, ax = style.one_panel(4, 3)
        ax.set_axis_off()
        ax.set_xlim(-1, 1)
        ax.set_ylim(-1, 1)
        row = {"value": 0.0, "n": n, "low": None, "high": None}
        style.points(ax, [row], [0], style.color(look._SHAPES.index(shape)), "")
        Look("column", gray=True).apply(fig)
        assert ax.lines[0].get_marker() == shape
        buffer = io.BytesIO()
        fig.savefig(buffer, format="png", dpi=400)
        return float((1 - imread(io.BytesIO(buffer.getvalue()))[:, :, 0]).sum())

    assert 0 < ink(4) < 0.9 * ink(40)


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
    high = fig.get_figheight()
    Look(width, title=False).apply(fig)  # type: ignore[arg-type]
    assert fig.get_figheight() <= high, "a figure that becomes wider becomes no higher"
    assert fig.get_figwidth() == inches and not fig.axes[0].get_title(loc="left")
    several = figures.draw("family-curves", [study]).figure
    Look(width, title=False).apply(several)  # type: ignore[arg-type]
    assert all(ax.get_title(loc="left") for ax in several.axes), "titles that name the panels"
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
    shutil.copytree(study / "a", again := tmp_path / "other" / "a")
    chosen = catalog._named([study, again.parent], "a,c")
    assert chosen == [study / "a", again, study / "c"], "all runs of one name"


@pytest.mark.parametrize(
    ("option", "value", "named"),
    [("--runs", "e", "--runs e"), ("--width", "wide", "--width wide"), ("--style", "x", "--style x")],
)
def test_what_print_does_not_have_is_refused(
    option: str, value: str, named: str, study: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["plot", "collapse-curve", str(study), option, value]) == 1
    assert named in capsys.readouterr().err


def test_plot_gives_bands_group_and_look_to_the_figure(
    synthetic: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = synthetic.make_run(tmp_path / "r", n=24, probes=())
    seen: dict[str, Any] = {}
    real = catalog.draw

    def draw(name: str, runs: Any, **options: Any) -> Any:
        seen.update(options, runs=runs)
        return real(name, runs, bands=options["bands"])

    monkeypatch.setattr(catalog, "draw", draw)
    files = catalog.plot(
        "collapse-curve", [run], tmp_path / "out", bands="4,2", look=catalog.look("column", True, "color")
    )
    assert seen == {"bands": (4, 2), "group_by": None, "runs": [run]}
    assert "Shaded: trained depths (2, 4)." in (tmp_path / "out" / "collapse-curve.txt").read_text()
    (pdf,) = [p for p in files if p.suffix == ".pdf"]
    width = float(re.search(rb"/MediaBox \[ ?0 0 ([\d.]+)", pdf.read_bytes())[1])  # type: ignore[index]
    assert width == pytest.approx(72 * 3.35, abs=0.1)


def test_without_a_run_nothing_is_drawn_and_a_picture_that_cannot_be_written_says_whose_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(InputError, match="plot gaps: no run given"):
        catalog.plot("gaps", [], tmp_path)
    drawing: Any = SimpleNamespace()
    for error, name, raised in ((OSError("full"), "mine", OSError), (ValueError("a $"), "gaps", ValueError),
                                (ValueError("a\n $"), "mine", InputError)):  # fmt: skip

        def fails(*_: Any, error: Exception = error, **__: Any) -> None:
            raise error

        monkeypatch.setattr(catalog, "write", fails)
        with pytest.raises(raised) as found:
            catalog.put(drawing, name, tmp_path)
        assert raised is not InputError or "figure mine: cannot be written (ValueError: a $)" in str(found.value)
    monkeypatch.setattr(catalog, "write", lambda *given, **how: (given, how))
    assert catalog.put(drawing, "gaps", tmp_path, pdf=True) == ((drawing, "gaps", tmp_path), {"pdf": True})


def test_a_drawing_shows_itself_by_its_first_sentence_and_as_a_picture() -> None:
    fig, _ = plt.subplots()
    shown = Drawing(fig, [{"a": 1}, {"a": 2}], "First. Second.")
    assert repr(shown) == "<drawing of 2 rows: First>" and shown._repr_png_()[:8] == b"\x89PNG\r\n\x1a\n"
    plt.close(fig)


@pytest.mark.parametrize("command", ["composcope x", ""])
def test_a_figure_with_nothing_to_draw_names_the_command_of_its_data_if_it_has_one(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(catalog, "draw", lambda *_, **__: SimpleNamespace(empty="no rows."))
    monkeypatch.setattr(catalog, "FIGURES", {"mine": SimpleNamespace(command=command)})
    with pytest.raises(InputError) as error:
        catalog.plot("mine", [tmp_path], tmp_path)
    said = str(error.value)
    assert f"plot mine: nothing to draw from {tmp_path}: no rows" in said and said.endswith(command or "no rows")
    assert ("run:" in said) == bool(command)
