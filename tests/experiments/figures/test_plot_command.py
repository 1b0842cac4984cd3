"""``composcope plot``: what cannot be drawn is said, with the command that makes it, and no file is written."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from types import ModuleType

import pytest
from typer.main import get_command

from composcope.experiments import figures, report
from composcope.experiments.cli import app, main

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
    synthetic: ModuleType, tmp_path: Path
) -> None:
    run = synthetic.make_run(tmp_path / "runs" / "base-baseline", n=12, probes=())
    assert "Accuracy over training" not in report.write([run], tmp_path).read_text()
    rows = [{"recipe": "grpo", "step": s, "metric": "parts", "k": 3, "n": 4, "run": "a"} for s in (0, 8)]
    (tmp_path / "training_curve.json").write_text(json.dumps({"schema": 1, "rows": rows}))
    assert "Accuracy over training" in report.write([run], tmp_path).read_text()
    assert (tmp_path / "figures" / "training-curve.csv").is_file()


def test_an_unknown_figure_gets_near_matches_and_the_way_to_the_list(run: Path, capsys: Capture) -> None:
    assert main(["plot", "gap-slope", str(run)]) == 1
    err = capsys.readouterr().err
    assert "see `composcope plot --list`; did you mean 'gap-slopes'" in err and len(err) < 200
    assert main(["plot", "qqqq", str(run)]) == 1
    assert capsys.readouterr().err.endswith("see `composcope plot --list`\n")
