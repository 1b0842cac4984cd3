"""kill -9 at random moments, twenty times: what is graded in the end must be what an undisturbed run grades.

``python tests/soak/killing.py`` prints what was killed and what came of it, and exits with 1 where something does not
hold. Three studies: over HTTP (the driver and the server are killed), with the model in the driver (the driver), and
with a server that the driver manages (the server and the driver).
"""

from __future__ import annotations

import json
import os
import random
import signal
import stat
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import under_load  # beside this file

from composcope.experiments.run import provenance

HERE = Path(__file__).parent
MODEL_SERVER = HERE.parent / "model_server.py"
PORT_TRIES = 50
UNFINISHED = 2
"""Exit code where answers are left without a judgement."""


@dataclass
class Study:
    """A study that is run undisturbed and disturbed."""

    name: str
    command: Callable[[Path], list[str]]
    """Run folder -> command line of the driver."""
    victims: Sequence[str]
    """Whom to kill, in turn: ``driver``, or a word of the command line of one of its descendants or of the server."""
    outside: Callable[[], list[int]] = list
    """Processes that are no descendants of the driver: a server by URL."""
    mend: Callable[[str], None] = lambda victim: None
    """Called after a victim was killed."""
    env: dict[str, str] = field(default_factory=lambda: dict(os.environ))


@dataclass
class Disturbed:
    """What happened."""

    kills: list[str] = field(default_factory=list)
    starts: int = 0
    unfinished: int = 0
    """How often the driver ended by itself with asks left (exit code 2), because the server was away too long."""
    problems: list[str] = field(default_factory=list)


def journal_bytes(out: Path) -> int:
    """Bytes of answers on disk."""
    return sum(p.stat().st_size for p in out.glob("**/journal/*.jsonl"))


def with_word(pids: Sequence[int], word: str) -> list[int]:
    """Those of the processes whose command line holds a word."""
    found = []
    for pid in pids:
        try:
            if word.encode() in Path(f"/proc/{pid}/cmdline").read_bytes():
                found.append(pid)
        except OSError:
            continue
    return found


def disturb(
    study: Study, out: Path, points: Sequence[float], total: int, rng: random.Random, expected: int
) -> Disturbed:
    """Run the driver again and again until it has finished, killing a victim at each share of the journal's bytes.

    ``expected`` is the exit code of the undisturbed run: 2 where the model left answers without a judgement.
    """
    found = Disturbed()
    left = list(zip(points, study.victims, strict=True))
    while True:
        with (out.parent / f"stderr-{found.starts}.txt").open("w") as errors:
            driver = subprocess.Popen(
                study.command(out), stdout=subprocess.DEVNULL, stderr=errors, env=study.env, start_new_session=True
            )
            found.starts += 1
            killed = watch(study, driver, out, left, total, rng, found)
        if killed:
            continue
        if driver.returncode == UNFINISHED != expected and found.unfinished < 3:  # what is left is asked again
            found.unfinished += 1
            continue
        if driver.returncode != expected:
            said = (out.parent / f"stderr-{found.starts - 1}.txt").read_text()[-600:]
            found.problems.append(f"{study.name}: exit code {driver.returncode}: {said}")
        if left:
            found.problems.append(f"{study.name}: finished before {len(left)} kills")
        return found


def watch(
    study: Study,
    driver: subprocess.Popen[bytes],
    out: Path,
    left: list[tuple[float, str]],
    total: int,
    rng: random.Random,
    found: Disturbed,
) -> bool:
    """Wait for the driver, killing meanwhile; True when it was the driver itself that was killed."""
    while driver.poll() is None:
        time.sleep(0.003)
        if not left or journal_bytes(out) < left[0][0] * total:
            continue
        time.sleep(rng.uniform(0, 0.05))
        victim = left[0][1]
        if victim == "driver":
            driver.kill()
            driver.wait()
            found.kills.append(f"{victim} at {journal_bytes(out) / total:.0%}")
            del left[0]
            return True
        pids = with_word([*provenance._descendants(driver.pid), *study.outside()], victim)
        if pids:
            os.kill(rng.choice(pids), signal.SIGKILL)
            found.kills.append(f"{victim} at {journal_bytes(out) / total:.0%}")
            del left[0]
            study.mend(victim)
    return False


def compare(calm: Path, disturbed: Path) -> list[str]:
    """What differs between two runs, and answers that the journal holds twice."""
    said = []
    one, other = under_load.same_rows(calm), under_load.same_rows(disturbed)
    if one != other:
        said.append(
            f"graded.jsonl differs: {len(one - other)} rows only undisturbed, {len(other - one)} only disturbed"
        )
    keys: Counter[str] = Counter()
    for path in disturbed.glob("**/journal/*.jsonl"):
        for line in path.read_bytes().split(b"\n"):
            try:
                record = json.loads(line)
            except ValueError:
                continue  # a torn line: its ask was asked again
            if "key" in record and record["response"]["finish_reason"] != "error":
                keys[record["key"]] += 1
    twice = [key for key, n in keys.items() if n > 1]
    return [*said, *([f"{len(twice)} asks have two answers in the journal"] if twice else [])]


def run(study: Study, folder: Path, seed: int) -> tuple[list[str], list[str]]:
    """The lines to print about a study, and what does not hold."""
    rng = random.Random(seed)
    calm, out = folder / "calm" / "run", folder / "disturbed" / "run"
    for path in (calm, out):
        path.parent.mkdir(parents=True)
    start = time.monotonic()
    done = subprocess.run(study.command(calm), capture_output=True, text=True, env=study.env)
    if done.returncode not in (0, 2):
        return [], [f"{study.name}, undisturbed: exit code {done.returncode}: {done.stderr[-600:]}"]
    points = sorted(rng.uniform(0.02, 0.9) for _ in study.victims)
    found = disturb(study, out, points, journal_bytes(calm), rng, done.returncode)
    problems = found.problems or [f"{study.name}: {line}" for line in compare(calm, out)]
    rows = len(under_load.graded(calm))
    lines = [
        f"{study.name}: {rows} graded asks, {len(found.kills)} times kill -9 ({', '.join(found.kills)}), the driver "
        f"started {found.starts} times ({found.unfinished} of them after it ended with asks left), "
        f"{time.monotonic() - start:.0f} s; " + ("equal to the undisturbed run" if not problems else "NOT EQUAL")
    ]
    return lines, problems


class Served:
    """A server by URL that is started again on the same port when it was killed."""

    def __init__(self, latency: float, faults: float) -> None:
        self.arguments = [sys.executable, str(HERE / "soak_server.py"), str(latency), str(faults), "0.3"]
        self.process, self.port = self._start("0")

    def _start(self, port: str) -> tuple[subprocess.Popen[str], int]:
        for _ in range(PORT_TRIES):
            process = subprocess.Popen([*self.arguments, port], stdout=subprocess.PIPE, text=True)
            assert process.stdout is not None
            if said := process.stdout.readline():
                return process, int(said)
            time.sleep(0.1)
        raise RuntimeError(f"port {port} stays taken")

    def pids(self) -> list[int]:
        return [self.process.pid]

    def mend(self, victim: str) -> None:
        if victim != "driver":
            self.process.wait()
            time.sleep(0.5)  # away for a moment, as a real one would be
            self.process, _ = self._start(str(self.port))

    def close(self) -> None:
        self.process.kill()
        self.process.wait()


def over_http(folder: Path, server: Served, victims: Sequence[str], n_cases: int = 300) -> Study:
    """Asks over HTTP to a server with faults of its own; ``soak_server`` is the server among the victims."""
    folder.mkdir(parents=True, exist_ok=True)
    case_file = folder / "cases.jsonl"
    case_file.write_text("".join(json.dumps(case) + "\n" for case in under_load.cases(n_cases)))
    url = f"http://127.0.0.1:{server.port}/v1"
    return Study(
        "over HTTP",
        lambda out: under_load.command(case_file, out, url, 8),
        victims,
        outside=server.pids,
        mend=server.mend,
    )


def evaluate(*options: str) -> Callable[[Path], list[str]]:
    """The driver on the first cases of an organism's benchmark."""
    fixed = ["-m", "organism:control", "-b", "organism:mixed", "--limit", "60", "--quiet"]
    return lambda out: [
        sys.executable, "-m", "composcope", "evaluate", *fixed, *options, "-o", str(out)
    ]  # fmt: skip


def in_process(victims: Sequence[str]) -> Study:
    """The model in the driver."""
    return Study("transformers in the driver", evaluate("--batch-size", "16"), victims)


def managed(folder: Path, victims: Sequence[str]) -> Study:
    """A server of the driver's own: an interpreter whose vllm package is the tests' model server."""
    package = folder / "site" / "vllm" / "entrypoints" / "openai"
    package.mkdir(parents=True)
    program = f"import runpy; runpy.run_path({str(MODEL_SERVER)!r}, run_name='__main__')\n"
    (package / "api_server.py").write_text(program)
    python = folder / "python"
    site = HERE.parents[1] / ".site"
    python.write_text(f'#!/bin/sh\nPYTHONPATH={folder / "site"}:{site}:{HERE.parent} exec {sys.executable} "$@"\n')
    python.chmod(python.stat().st_mode | stat.S_IXUSR)
    options = ("--engine", "vllm", "--vllm-python", str(python), "--concurrency", "4")
    return Study("a managed server", evaluate(*options), victims)


def main() -> int:
    failed: list[str] = []
    kills = 0
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        server = Served(0.05, 0.05)
        try:
            http = over_http(folder / "http", server, ["driver", "soak_server"] * 6)
            found = [run(http, folder / "http", 1)]
        finally:
            server.close()
        found.append(run(in_process(["driver"] * 4), folder / "local", 2))
        there = managed(folder / "vllm", ["api_server", "driver", "api_server", "api_server"])
        found.append(run(there, folder / "managed", 3))
    print(f"{time.strftime('%Y-%m-%d')}, {os.cpu_count()}-core {os.uname().machine}", flush=True)
    for lines, problems in found:
        print("\n".join(lines))
        kills += sum(line.count(" at ") for line in lines)
        failed += problems
    for line in failed:
        print(f"DOES NOT HOLD: {line}")
    if not failed:
        print(f"all {kills} kills: all of it holds")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
