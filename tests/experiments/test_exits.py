"""How a command ends: signals, and what the operating system refuses."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from composcope.experiments.console import exits

SITE = Path(__file__).resolve().parents[2] / ".site"
WAITS = """
import signal, sys
signal.signal(signal.SIGHUP, signal.SIG_DFL)  # whatever started the tests, nohup for one
from composcope.experiments.console import exits
from composcope.interrupts import held

def call():
    with held() if sys.argv[1] == "held" else memoryview(b""):
        print("ready", flush=True)
        sys.stdin.readline()  # written once the signal is sent
        print("put back", flush=True)
    sys.exit("was not interrupted")

sys.exit(exits.guarded(call, lambda: "the same command"))
"""


@pytest.mark.parametrize(
    ("how", "stop"),
    [("free", signal.SIGINT), ("free", signal.SIGTERM), ("free", signal.SIGHUP), ("held", signal.SIGTERM)],
)
def test_every_request_to_end_ends_like_ctrl_c(stop: signal.Signals, how: str) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", WAITS, how], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        text=True, env={**os.environ, "PYTHONPATH": str(SITE)},
    )  # fmt: skip
    assert process.stdout is not None and process.stdout.readline() == "ready\n"
    process.send_signal(stop)
    out, err = process.communicate("go on\n" if how == "held" else None)
    assert process.returncode == exits.INTERRUPTED == 130
    assert err == "composcope: interrupted; all finished work is kept, continue with: the same command\n"
    assert ("put back" in out) == (how == "held"), "what changes a model is put back first"


def test_signals_are_as_before_when_a_command_has_ended() -> None:
    before = [signal.getsignal(n) for n in (signal.SIGTERM, signal.SIGHUP)]
    ignored = signal.signal(signal.SIGHUP, signal.SIG_IGN)  # as nohup does
    try:
        assert exits.guarded(lambda: signal.getsignal(signal.SIGHUP) is signal.SIG_IGN or 3, lambda: "") == 1
    finally:
        signal.signal(signal.SIGHUP, ignored)
    assert [signal.getsignal(n) for n in (signal.SIGTERM, signal.SIGHUP)] == before


NUMBERS = [
    "ENOSPC",
    "EDQUOT",
    "EFBIG",
    "EACCES",
    "EPERM",
    "EROFS",
    "EIO",
    "EMFILE",
    "ENAMETOOLONG",
    "ENOTDIR",
    "ESTALE",
]


@pytest.mark.parametrize("name", NUMBERS)
@pytest.mark.parametrize("how", ["itself", "cause", "rust"])
def test_what_the_system_refuses_is_no_defect_of_the_program(
    name: str, how: str, capsys: pytest.CaptureFixture[str]
) -> None:
    number = getattr(errno, name)
    refused = OSError(number, os.strerror(number), "runs/r/graded.jsonl")

    def fail() -> None:
        if how == "itself":
            raise refused
        if how == "cause":
            raise RuntimeError("could not save") from refused
        raise ValueError(f"SafetensorError: I/O error: {os.strerror(number)} (os error {number})")

    assert exits.guarded(fail, lambda: "composcope evaluate ...") == exits.USER_ERROR
    [line] = capsys.readouterr().err.splitlines()
    assert "defect" not in line and os.strerror(number) in line
    assert how == "rust" or "runs/r/graded.jsonl" in line
    assert exits.disk_is_full(refused) == (name in ("ENOSPC", "EDQUOT", "EFBIG"))


def test_a_mistake_of_ours_while_a_missing_file_was_handled_is_still_a_defect(
    capsys: pytest.CaptureFixture[str],
) -> None:
    def fail() -> None:
        try:
            raise FileNotFoundError(errno.ENOENT, "No such file", "x")
        except OSError:
            {}["key"]

    assert exits.guarded(fail, lambda: "") == exits.USER_ERROR
    assert "this is a defect of composcope" in capsys.readouterr().err


def test_a_full_disk_behind_stdout_is_said() -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "composcope.experiments.cli", "--version"], stdout=full, stderr=subprocess.PIPE,
            text=True, env={**os.environ, "PYTHONPATH": str(SITE)},
        )  # fmt: skip
    assert done.returncode == exits.USER_ERROR and "no space left on the device" in done.stderr
    assert "Traceback" not in done.stderr and "defect" not in done.stderr
