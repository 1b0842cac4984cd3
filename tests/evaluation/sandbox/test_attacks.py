"""Programs that try to get out: none reads, writes, reaches or ends anything outside, or leaves anything behind."""

from __future__ import annotations

import os
import platform
import socket
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from composcope.evaluation.sandbox.cpython import LockedPython
from composcope.evaluation.sandbox.monty import Monty
from composcope.evaluation.sandbox.results import REASONS, Limits
from composcope.evaluation.sandbox.running import backend

LIMITS = Limits(seconds=0.2, memory_mb=256)
X86 = platform.machine() == "x86_64"

# Each line is the body of solution(), which returns "escaped" where nothing stopped it. {file}, {folder}, {port},
# {unix}, {pid} are things outside that must not be touched; KEY is an environment variable outside. Those under
# "floods" use up, shout or forge.
GROUPS = {
    part.splitlines()[0]: part.strip().splitlines()[1:]
    for part in Path(__file__).with_name("attacks.txt").read_text(encoding="utf-8").split("## ")[1:]
}


def programs(group: str, **outside: Any) -> list[str]:
    """The bodies as programs; ``\\n`` inside a line begins a line of its own."""
    opening = "import os, sys, json\n\ndef solution():\n    "
    lines = [line.replace("\\n    ", "\n    ") for line in GROUPS[group]]
    return [opening + line.format(**outside) + "\n    return 'escaped'\n" for line in lines]


class Outside:
    """Things that an escaped program could touch, and whether one did."""

    def __init__(self, folder: Path) -> None:
        self.file, self.folder, self.reached = folder / "secret.txt", folder / "outside", 0
        self.folder.mkdir()
        self.file.write_text("secret", encoding="utf-8")
        self.tcp = socket.create_server(("127.0.0.1", 0))
        self.unix = socket.socket(socket.AF_UNIX)
        self.unix.bind(str(folder / "unix"))
        self.unix.listen()
        for one in (self.tcp, self.unix):
            threading.Thread(target=self._count, args=(one,), daemon=True).start()
        self.named = {
            "file": str(self.file),
            "folder": str(self.folder),
            "port": self.tcp.getsockname()[1],
            "unix": str(folder / "unix"),
            "pid": os.getpid(),
        }

    def _count(self, listening: socket.socket) -> None:
        while True:
            try:
                listening.accept()[0].close()
            except OSError:
                return
            self.reached += 1

    def untouched(self) -> bool:
        status = self.file.stat()
        new = [p for p in (Path("/tmp/composcope-attack"), Path("/dev/shm/composcope-attack")) if p.exists()]
        same = self.file.read_text(encoding="utf-8") == "secret" and status.st_mtime > 1 and status.st_nlink == 1
        return same and not new and not list(self.folder.iterdir()) and self.reached == 0


@pytest.fixture(scope="module")
def outside(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Outside]:
    found = Outside(tmp_path_factory.mktemp("outside"))
    os.environ["KEY"] = "sk-secret"
    yield found
    del os.environ["KEY"]
    found.tcp.close()
    found.unix.close()


@pytest.fixture(scope="module", params=["locked CPython", "Monty"])
def box(request: pytest.FixtureRequest, outside: Outside) -> Iterator[LockedPython | Monty]:
    """Both backends; locked CPython is started while the key stands in the environment."""
    if request.param == "Monty":
        pytest.importorskip("pydantic_monty")
        one: LockedPython | Monty = Monty()
    elif sys.platform != "linux":
        pytest.skip("seccomp is Linux")
    else:
        one = LockedPython()
    yield one
    one.close()


@pytest.mark.parametrize("group", [g for g in GROUPS if g != "floods"])
def test_no_program_gets_out(box: LockedPython | Monty, outside: Outside, group: str) -> None:
    escaped = []
    for code in programs(group, **outside.named):
        result = box.run(code, LIMITS, False)
        if result.value == "escaped" or result.reason not in REASONS or not outside.untouched():
            escaped.append((code.splitlines()[3], result))
        assert box.run("def solution(): return 7", LIMITS, False).value == 7
    assert escaped == []


def test_no_program_uses_up_floods_or_forges(box: LockedPython | Monty, outside: Outside) -> None:
    for code in programs("floods", **outside.named):
        result = box.run(code, LIMITS, False)
        assert result.ok or result.reason in REASONS, code
        assert len(str(result.text)) + len(result.printed) <= 100_000, code
        str(result).encode("utf-8")
        again = box.run("import json, re\ndef solution(): return json.loads('7')", LIMITS, False)
        assert again.value == 7, code
    assert outside.untouched()


def test_there_are_at_least_two_hundred_attacks(outside: Outside) -> None:
    every = [code for group in GROUPS for code in programs(group, **outside.named)]
    assert len(every) == len(set(every)) >= 200
    for code in every:
        compile(code, "attack", "exec")


@pytest.mark.skipif(sys.platform != "linux" or not X86, reason="numbers of system calls on Linux x86-64")
def test_every_system_call_but_the_listed_ones_is_refused() -> None:
    # by number, with arguments that do no harm where it works: 0 is no valid pointer, and no process is asked for;
    # left out is what ends the process or waits, and what the kernel itself allows only its own probes (335, 336)
    code = """
def solution():
    import ctypes
    libc = ctypes.CDLL(None, use_errno=True)
    found = []
    for n in numbers:
        ctypes.set_errno(0)
        if not (libc.syscall(n, 1 if n < 2 else 0, 0, 0, 0, 0, 0) == -1 and ctypes.get_errno() == 1):
            found.append(n)
    return found
"""
    box = LockedPython()
    numbers = [n for n in range(470) if n not in (15, 35, 60, 202, 219, 230, 231, 335, 336)]
    result, other = (box.run(f"numbers = {n}\n{code}", Limits(), False) for n in (numbers, [0x40000000 + 2]))
    box.close()
    memory, clocks = {9, 10, 11, 12, 25, 28}, {96, 100, 201, 228, 229}
    harmless = {24, 39, 98, 186, 318}  # sched_yield, getpid, getrusage, gettid, getrandom
    assert result.ok and set(result.value) <= memory | clocks | harmless, result
    assert (other.reason, other.detail) == ("crashed", "ended by SIGSYS")  # the other numbering, x32


def test_this_machine_runs_programs_on_one_of_the_backends() -> None:
    assert backend().name in ("cpython", "monty")
