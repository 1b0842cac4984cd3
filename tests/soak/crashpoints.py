"""Every crash point: a run is killed, or the system refuses a file call, at the k-th write, rename and fsync for all k.

``python tests/soak/crashpoints.py`` does a study of 12 cases undisturbed, then once for every file call that it makes
under its folder, killed there (half of what was to be written is on disk) or refused there (no space left, read-only,
input/output error). Then the same command runs again and must leave what the undisturbed run left. Prints the counts,
and exits with 1 where something does not hold. Runs are forks of this process, so that libraries are loaded once.
"""

from __future__ import annotations

import argparse
import builtins
import errno
import io
import json
import os
import platform
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import wraps
from pathlib import Path
from typing import Any

import under_load  # beside this file

KILLED = 137
MODES = {"kill": None, "ENOSPC": errno.ENOSPC, "EROFS": errno.EROFS, "EIO": errno.EIO}
N_CASES = 12
SAME_MANIFEST = ("identity", "model", "benchmark", "n_cases", "n_invalid", "stopped", "status", "signed_otherwise")


class Shim:
    """Counts the file calls under a folder and strikes at the k-th (from 1; 0: never)."""

    def __init__(self, folder: Path, k: int, mode: str) -> None:
        self.folder, self.k, self.number = str(folder.resolve()), k, MODES[mode]
        self.calls: list[str] = []
        self.write = os.write

    def concerns(self, where: Any) -> bool:
        if isinstance(where, int):
            try:
                where = os.readlink(f"/proc/self/fd/{where}")  # noqa: PTH115 (pathlib goes through what is replaced)
            except OSError:
                return False
        path = os.path.abspath(os.fsdecode(where))  # noqa: PTH100
        return path == self.folder or path.startswith(f"{self.folder}{os.sep}")

    def strikes(self, call: str, where: Any) -> bool:
        """Whether this is the call to strike at; refuses it at once where it is refused and holds no data."""
        if not self.concerns(where):
            return False
        self.calls.append(call)
        return len(self.calls) == self.k

    def end(self, where: Any) -> None:
        if self.number is None:
            os._exit(KILLED)
        raise OSError(self.number, os.strerror(self.number), None if isinstance(where, int) else os.fsdecode(where))

    def install(self) -> None:
        """Put itself around the calls of this process, for good."""
        shim = self
        for name in ("fsync", "replace", "rename", "mkdir", "ftruncate"):
            setattr(os, name, self.around(name, getattr(os, name)))

        def write(fd: int, data: Any) -> int:
            if shim.strikes("write", fd):
                shim.write(fd, bytes(data)[: len(data) // 2])
                shim.end(fd)
            return shim.write(fd, data)

        os.write = write
        real = io.open

        class Counted(io.FileIO):
            def write(self, data: Any) -> int:
                if shim.strikes("write", self.fileno()):
                    shim.write(self.fileno(), bytes(data)[: len(data) // 2])
                    shim.end(self.name)
                return super().write(data)

        def opened(file: Any, mode: str = "r", buffering: int = -1, encoding: Any = None, errors: Any = None,
                   newline: Any = None, closefd: bool = True, opener: Any = None) -> Any:  # fmt: skip
            if not set(mode) & set("wax") or "+" in mode or isinstance(file, int) or not shim.concerns(file):
                return real(file, mode, buffering, encoding, errors, newline, closefd, opener)
            if shim.strikes("create", file):
                shim.end(file)
            buffer = io.BufferedWriter(Counted(file, mode.replace("b", "").replace("t", ""), closefd, opener))
            return buffer if "b" in mode else io.TextIOWrapper(buffer, encoding or "utf-8", errors, newline)

        builtins.open = io.open = opened

    def around(self, name: str, real: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(real)
        def call(where: Any, *args: Any, **options: Any) -> Any:
            if self.strikes(name, where):
                self.end(where)
            return real(where, *args, **options)

        return call


def forked(command: Sequence[str], out: Path, k: int, mode: str) -> tuple[int, list[str], str]:
    """Run the command line in a fork: exit code, the file calls that it made, and what it said on stderr."""
    said, made = out.parent / "stderr.txt", out.parent / "calls.json"
    pid = os.fork()
    if pid == 0:
        code = 99
        try:
            for fd, path in ((1, os.devnull), (2, str(said))):
                os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), fd)
            shim = Shim(out, k, mode)
            shim.install()
            from composcope.experiments.cli import main

            code = main(command)
            sys.stderr.flush()
            made.write_text(json.dumps(shim.calls))
        finally:
            os._exit(code)
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    calls = json.loads(made.read_text()) if code != KILLED and made.is_file() else []
    return code, calls, said.read_text(errors="replace")


def left(out: Path) -> dict[str, Any]:
    """What a run left, without what differs between any two runs: times, places and the order of answers."""
    found: dict[str, Any] = {}
    for path in sorted(p for p in out.rglob("*") if p.is_file() and p.name != ".lock"):
        name = path.relative_to(out).as_posix()
        if name in ("log.txt", "journal/lock") or path.suffix in (".png", ".svg", ".html", ".js"):
            found[name] = "there"
        elif name.startswith("journal/"):
            records = [json.loads(line) for line in path.read_bytes().split(b"\n") if whole(line)]
            answers = {r["key"]: r["response"] for r in records if "key" in r}
            found.setdefault("journal", {}).update(answers)
        elif name == "manifest.json":
            manifest = json.loads(path.read_text())
            found[name] = {key: manifest.get(key) for key in SAME_MANIFEST}
        elif name.endswith("metadata.json"):
            found[name] = "there"
        else:
            found[name] = path.read_bytes()
    return found


def whole(line: bytes) -> bool:
    """Whether a line of a journal can be read; torn ones are asked again."""
    try:
        return isinstance(json.loads(line), dict)
    except ValueError:
        return False


@dataclass
class Found:
    """What came of all crash points of a study."""

    name: str
    calls: Counter[str] = field(default_factory=Counter)
    """The undisturbed run's file calls by kind."""
    struck: Counter[str] = field(default_factory=Counter)
    """By mode, how many points were struck."""
    went_on: int = 0
    """Refused calls that the run could do without."""
    not_reached: int = 0
    """Points behind the last call: a run does not make quite the same number of calls each time."""
    problems: list[str] = field(default_factory=list)


def every_point(
    name: str, command: Sequence[str], folder: Path, *, every: int, modes: Sequence[str], before: Path | None = None
) -> Found:
    """Strike at every ``every``-th point in every mode. ``before`` is a run folder that each run begins with."""
    out, found = folder / "run", Found(name)

    def fresh() -> None:
        shutil.rmtree(out, ignore_errors=True)
        if before is not None:
            shutil.copytree(before, out)

    fresh()
    expected, calls, said = forked(command, out, 0, "kill")
    if expected not in (0, 2):
        return Found(name, problems=[f"{name}, undisturbed: exit code {expected}: {said[-600:]}"])
    found.calls = Counter(calls)
    undisturbed = left(out)
    for mode in modes:
        for k in range(1, len(calls) + 1, every):
            fresh()
            code, made, said = forked(command, out, k, mode)
            found.struck[mode] += 1
            where = f"{name}, {mode} at call {k} ({calls[k - 1]})"
            if mode == "kill" and code == expected and len(made) < k:
                found.not_reached += 1
            elif mode == "kill" and code != KILLED:
                found.problems.append(f"{where}: was not killed, exit code {code}")
            elif mode != "kill" and (code not in (1, expected) or "defect" in said or "Traceback" in said):
                found.problems.append(f"{where}: exit code {code}: {said[-300:]}")
            found.went_on += mode != "kill" and code == expected
            again, _, said = forked(command, out, 0, "kill")
            if again != expected:
                found.problems.append(f"{where}, resumed: exit code {again}: {said[-300:]}")
                continue
            now = left(out)
            other = [key for key in {**undisturbed, **now} if undisturbed.get(key) != now.get(key)]
            if other:
                found.problems.append(f"{where}, resumed: differs from the undisturbed run in {', '.join(other)}")
    return found


def served(folder: Path, *, every: int, modes: Sequence[str]) -> Found:
    """Twelve cases over HTTP, evaluated: journal, grades, metrics, case sets."""
    case_file = folder / "cases.jsonl"
    case_file.write_text("".join(json.dumps(case) + "\n" for case in under_load.cases(N_CASES)))
    with under_load.serve(0.0, 0.0, 0.0) as (_, url):
        command = under_load.command(case_file, folder / "run", url, 1)[3:]
        return every_point("evaluated over HTTP", command, folder, every=every, modes=modes)


def probed(folder: Path, *, every: int, modes: Sequence[str]) -> Found:
    """A run that was evaluated is probed and reported: probes, figures, report."""
    before, out = folder / "before", folder / "run"
    ask = ["-m", "organism:control", "-b", "organism:mixed", "--limit", str(N_CASES), "--quiet"]
    code, _, said = forked(["evaluate", *ask, "-o", str(out)], out, 0, "kill")
    if code not in (0, 2):
        return Found("probed", problems=[f"evaluate: exit code {code}: {said[-600:]}"])
    shutil.move(out, before)
    command = ["probe", str(out), "--probes", "min-k", "--quiet"]
    return every_point("probed and reported", command, folder, every=every, modes=modes, before=before)


def lines(found: Found, seconds: float) -> list[str]:
    """What is printed of a study."""
    calls = ", ".join(f"{n} {call}" for call, n in found.calls.most_common())
    struck = ", ".join(f"{mode} {n}" for mode, n in found.struck.items())
    state = "all resumed and equal to the undisturbed run" if not found.problems else "NOT EQUAL"
    return [
        f"{found.name}: {found.calls.total()} file calls ({calls}); struck: {struck}; {found.went_on} refused calls "
        f"were not needed, {found.not_reached} points not reached; {seconds:.0f} s; {state}",
        *(f"DOES NOT HOLD: {problem}" for problem in found.problems),
    ]


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--every", type=int, default=1, help="strike at every n-th call of the served study")
    parser.add_argument("--every-refused", type=int, help="another n for calls that are refused and not killed at")
    parser.add_argument("--every-probed", type=int, default=10, help="the same for the probed study; 0 leaves it out")
    options = parser.parse_args(arguments)
    import composcope.evaluation.engines.http
    import composcope.experiments.investigate  # noqa: F401  (loaded once, before the forks)

    machine = f"{os.cpu_count()}-core {platform.machine()}, Python {platform.python_version()}"
    print(f"{time.strftime('%Y-%m-%d')}, {machine}", flush=True)
    failed = False
    every_refused, refused = options.every_refused or options.every, [mode for mode in MODES if mode != "kill"]
    studies: list[tuple[Callable[..., Found], int, list[str]]] = [
        (served, options.every, ["kill"]),
        (served, every_refused, refused),
    ]
    studies += [(probed, options.every_probed, ["kill", "ENOSPC"])] if options.every_probed else []
    for study, every, modes in studies:
        start = time.monotonic()
        with tempfile.TemporaryDirectory() as scratch:
            found = study(Path(scratch), every=every, modes=modes)
        print("\n".join(lines(found, time.monotonic() - start)), flush=True)
        failed |= bool(found.problems)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
