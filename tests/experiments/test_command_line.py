"""The command line: quick help, exit codes, one line per error."""

from __future__ import annotations

import errno
import os
import resource
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

from composcope.errors import InputError
from composcope.experiments import exits
from composcope.experiments.cli import app, main

COMMANDS = "investigate evaluate probe score metrics report plot compare ls doctor merge demo organism".split()
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parents[2] / ".site")}


def _cpu_seconds(*args: str) -> float:
    """Processor time of a command: what it takes on an idle machine, whatever else is running."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, *args], env=ENVIRONMENT, capture_output=True, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


def test_help_is_there_in_under_three_tenths_of_a_second() -> None:
    assert min(_cpu_seconds("-m", "composcope.experiments.cli", "--help") for _ in range(5)) < 0.3


def test_help_of_every_command_loads_no_torch() -> None:
    code = (
        "import sys\nfrom composcope.experiments.cli import main\n"
        f"for name in {COMMANDS!r}:\n    assert main([name, '--help']) == 0, name\n"
        "sys.exit(any(m in sys.modules for m in ('torch', 'transformers', 'matplotlib', 'scipy')))"
    )
    done = subprocess.run([sys.executable, "-c", code], env=ENVIRONMENT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("name", [name for name in COMMANDS if name != "organism"])
def test_help_of_every_command_shows_an_example_that_parses(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([name, "--help"]) == 0
    text = " ".join(capsys.readouterr().out.split())
    example = text.split("Example: ", 1)[1].split()
    assert example[:2] == ["composcope", name]
    get_command(app).commands[name].make_context(name, example[2:])  # type: ignore[attr-defined]


def test_help_of_the_organisms_is_that_of_their_own_commands(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["organism", "--help"]) == 0
    assert "train" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("args", "needle"),
    [
        (["investigat"], "No such command 'investigat'"),
        (["investigate"], "Missing option '--model'"),
        (["investigate", "--model", "m"], "Missing option '--benchmark'"),
        (["evaluate", "--model", "m", "--benchmark", "b", "--limit", "many"], "--limit"),
        (["evaluate", "--model", "m", "--benchmark", "b", "--limit", "0"], "--limit 0: give a whole number"),
        (["evaluate", "--model", "m", "--benchmark", "b", "--dtype", "int8"], "--dtype int8: use one of float32"),
        (["investigate", "--model", "m", "--benchmark", "b", "--probes", "x"], "--probes x: no such probe"),
        (["ls", "nowhere"], "nowhere: no such folder"),
        (["report", "nowhere"], "nowhere: no such run folder"),
        (["compare", "a", "b"], "graded.jsonl: no such file"),
        (["organism", "train", "--out", "x"], "give either --dose or --all"),
    ],
)
def test_a_user_error_is_one_line_on_stderr_and_exit_1(
    args: list[str], needle: str, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(args) == exits.USER_ERROR
    out, err = capsys.readouterr()
    assert out == ""
    assert len(err.splitlines()) == 1
    assert err.startswith("composcope: error: ")
    assert needle in err


def _raising(error: BaseException) -> Any:
    def call() -> None:
        raise error

    return call


def test_an_interruption_says_how_to_go_on(capsys: pytest.CaptureFixture[str]) -> None:
    assert exits.guarded(_raising(KeyboardInterrupt()), lambda: "composcope demo") == 130
    assert capsys.readouterr().err == (
        "composcope: interrupted; all finished work is kept, continue with: composcope demo\n"
    )


def test_a_full_disk_is_one_line_also_when_it_is_the_cause(capsys: pytest.CaptureFixture[str]) -> None:
    full = OSError(errno.ENOSPC, "No space left on device", "runs/x")
    assert exits.guarded(_raising(full), lambda: "composcope demo") == 1
    try:
        raise RuntimeError("I/O error: No space left on device (os error 28)") from None
    except RuntimeError as e:
        assert exits.guarded(_raising(e), lambda: "composcope demo") == 1
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 2
    assert all("no space left" in line and "continue with: composcope demo" in line for line in lines)


def test_a_message_of_several_lines_becomes_one(capsys: pytest.CaptureFixture[str]) -> None:
    assert exits.guarded(_raising(InputError("a\n  b")), str) == 1
    assert capsys.readouterr().err == "composcope: error: a b\n"


def test_a_defect_keeps_its_traceback() -> None:
    with pytest.raises(ZeroDivisionError):
        exits.guarded(_raising(ZeroDivisionError()), str)


def test_ls_is_machine_readable_and_a_closed_pipe_is_no_error(tmp_path: Path) -> None:
    command = f"{sys.executable} -m composcope.experiments.cli ls {tmp_path} --json | true"
    done = subprocess.run(command, shell=True, env=ENVIRONMENT, capture_output=True, text=True, check=False)
    assert "Traceback" not in done.stderr


def test_telemetry_of_the_libraries_is_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HF_HUB_DISABLE_TELEMETRY", raising=False)
    exits.quiet_libraries()
    assert os.environ["HF_HUB_DISABLE_TELEMETRY"] == "1"
    assert os.environ["DO_NOT_TRACK"] == "1"
