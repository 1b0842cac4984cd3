"""How a command ends: signals, and what the operating system refuses."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from composcope.experiments.console import exits
from composcope.registry import PLUGIN_PREFIX

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


def test_a_second_request_to_end_that_strikes_inside_a_lock_is_no_defect(capsys: pytest.CaptureFixture[str]) -> None:
    def waits(once: bool) -> None:
        lock = threading.Lock()
        try:
            with lock:  # as a condition that waits: another signal comes before it holds the lock again
                lock.release()
                raise KeyboardInterrupt
        finally:
            if not once:
                threading.Lock().release()

    for once in (True, False):
        assert exits.guarded(lambda once=once: waits(once), lambda: "the same command") == exits.INTERRUPTED
        assert "interrupted; all finished work is kept" in capsys.readouterr().err

    def fails() -> None:
        try:
            raise KeyboardInterrupt
        finally:
            dict[str, int]()["x"]

    assert exits.guarded(fails, lambda: "") == exits.USER_ERROR and "defect" in capsys.readouterr().err


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


@pytest.mark.parametrize(("value", "shown"), [(None, False), ("", False), ("0", False), ("1", True)])
def test_errors_show_their_tracebacks_where_the_environment_says_so(
    value: str | None, shown: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(exits.DEBUG, raising=False)
    if value is not None:
        monkeypatch.setenv(exits.DEBUG, value)
    assert exits.debugging() is shown


def test_an_error_through_a_plugin_names_the_plugins_line_nearest_to_it(capsys: pytest.CaptureFixture[str]) -> None:
    own: dict[str, Any] = {"__name__": f"{PLUGIN_PREFIX}mine"}
    code = "def outer():\n    inner()\n\ndef inner():\n    sorted([1, 'a'])\n"
    exec(compile(code, "/x/mine.py", "exec"), own)
    assert exits.guarded(own["outer"], str) == exits.USER_ERROR
    [line] = capsys.readouterr().err.splitlines()
    assert "--plugin /x/mine.py, line 5: TypeError: " in line and "defect" not in line


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
            [sys.executable, "-m", "composcope", "--version"], stdout=full, stderr=subprocess.PIPE,
            text=True, env={**os.environ, "PYTHONPATH": str(SITE)},
        )  # fmt: skip
    assert done.returncode == exits.USER_ERROR and "no space left on the device" in done.stderr
    assert "Traceback" not in done.stderr and "defect" not in done.stderr


WRITES = """
import sys
from composcope.experiments.console import exits
from composcope.experiments.console.printing import show

def call():
    sys.stdin.readline()  # written once the reader is gone
    if sys.argv[1] == "error":
        from composcope.errors import InputError
        raise InputError("a message that nobody reads")
    show(["x" * 50] * int(sys.argv[1]), False)

sys.exit(exits.guarded(call, lambda: "the same command"))
"""


def closed_early(*command: str, both: bool = False) -> tuple[int, str]:
    """Exit code and stderr of a process whose stdout, and with ``both`` stderr, is a pipe without a reader."""
    read, write = os.pipe()
    process = subprocess.Popen(
        [sys.executable, *command], stdin=subprocess.PIPE, stdout=write,
        stderr=write if both else subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": str(SITE)},
    )  # fmt: skip
    for end in (write, read):
        os.close(end)
    _, err = process.communicate("go on\n")
    return process.returncode, err or ""


@pytest.mark.parametrize("lines", ["1", "20000"], ids=["a line that waits in the buffer", "more than a pipe holds"])
def test_a_closed_standard_output_ends_the_command_without_a_word(lines: str) -> None:
    assert closed_early("-c", WRITES, lines) == (exits.UNREAD, "") == (128 + signal.SIGPIPE, "")
    assert closed_early("-u", "-c", WRITES, lines) == (exits.UNREAD, "")


def test_a_message_that_nobody_can_read_ends_the_command_too() -> None:
    assert closed_early("-c", WRITES, "error", both=True)[0] == exits.UNREAD


def test_a_pipe_to_something_else_that_breaks_is_still_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    def fail() -> None:
        raise BrokenPipeError(errno.EPIPE, os.strerror(errno.EPIPE))

    assert exits.guarded(fail, lambda: "composcope probe runs/r") == exits.USER_ERROR
    [line] = capsys.readouterr().err.splitlines()
    assert os.strerror(errno.EPIPE) in line and "composcope probe runs/r" in line


@pytest.mark.parametrize("words", [["--version"], ["--help"]])
def test_a_command_whose_reader_is_gone_ends_like_other_unix_tools(words: list[str]) -> None:
    # -u writes at once, inside the command-line library, which has an exit code of its own for this
    for python in ([], ["-u"]):
        assert closed_early(*python, "-m", "composcope", *words) == (exits.UNREAD, "")


def test_the_notes_of_an_error_are_lines_of_their_own(capsys: pytest.CaptureFixture[str]) -> None:
    from composcope.errors import InputError

    def refused() -> None:
        error = InputError("c.jsonl: 2 lines")
        error.add_note("c.jsonl:7: no\nanswer")
        raise error

    assert exits.guarded(refused, lambda: "") == exits.USER_ERROR
    first, second = capsys.readouterr().err.splitlines()
    assert first.endswith("error: c.jsonl: 2 lines") and second.endswith("c.jsonl:7: no answer")
