"""Harmless programs: run here, they come to what CPython comes to on its own."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from composcope.evaluation.sandbox.cpython import LockedPython
from composcope.evaluation.sandbox.monty import Monty
from composcope.evaluation.sandbox.results import Limits

PROGRAMS = {
    part.partition("\n")[0]: part.partition("\n")[2]
    for part in ("\n" + Path(__file__).with_name("ordinary.txt").read_text(encoding="utf-8")).split("\n## ")[1:]
}


def _telling(program: str) -> str:
    """The program, which then prints what its solution looks like, once: 18 is not 18.0, and [1] is not (1,)."""
    return program + ("\nprint(repr(solution()))\nsolution = None\n" if "def solution" in program else "")


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What each program prints where nothing holds it."""
    folder = tmp_path_factory.mktemp("alone")
    found = {}
    for name, program in PROGRAMS.items():
        command = [sys.executable, "-I", "-S", "-c", _telling(program)]
        done = subprocess.run(command, capture_output=True, text=True, cwd=folder)
        assert done.returncode == 0 and done.stdout, (name, done.stderr)
        found[name] = done.stdout
    return found


@pytest.fixture(scope="module")
def locked() -> Iterator[LockedPython]:
    if sys.platform != "linux":
        pytest.skip("seccomp is Linux")
    one = LockedPython()
    yield one
    one.close()


def test_ordinary_programs_come_to_what_cpython_comes_to(locked: LockedPython, alone: dict[str, str]) -> None:
    assert len(PROGRAMS) == 110
    results = {name: locked.run(_telling(p), Limits(), False) for name, p in PROGRAMS.items()}
    differing = {name: (alone[name], r) for name, r in results.items() if r.printed != alone[name]}
    assert differing == {}


def test_monty_runs_most_of_them_and_says_what_it_lacks(alone: dict[str, str]) -> None:
    # with pydantic-monty 1.4: 65 come to the same, 43 do not run, and these two come to something else
    otherwise = {"walrus and ternary", "assert and type checks"}
    pytest.importorskip("pydantic_monty")
    monty = Monty()
    results = {name: monty.run(_telling(p), Limits(), False) for name, p in PROGRAMS.items()}
    monty.close()
    differing = {name for name, r in results.items() if r.ok and r.printed != alone[name]}
    reasons = Counter(r.reason for r in results.values())
    assert differing <= otherwise and reasons[None] - len(differing) >= 60, (differing, reasons)
    assert reasons["refused"] >= 0.8 * (len(PROGRAMS) - reasons[None]), reasons
