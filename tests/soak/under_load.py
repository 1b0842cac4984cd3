"""The soak test: a study of many asks over HTTP, once undisturbed and once with faults, and what must hold after it.

``python tests/soak/under_load.py --asks 20000 --latency 0.5 --concurrency 16 --faults 0.05`` prints the result and
exits with 1 where something does not hold. Driver (``composcope evaluate``) and server are processes of their own.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from soak_server import answer  # beside this file

HERE = Path(__file__).parent
PARTS = 3
ASKS_PER_CASE = PARTS + 1
GROWTH_MB = 5.0
"""Memory that may be gained over the second half of a run beyond the answers, which are kept until they are graded."""
ANSWER_MB = 0.001
"""What an answer may take there."""


def cases(n: int) -> list[dict[str, Any]]:
    """Sums of numbers, no question twice: each part a sum of two numbers, the whole the sum of all."""
    found = []
    for i in range(n):
        pairs = [(1000 * (j + 1) + i, 7 * i + j) for j in range(PARTS)]
        parts = [{"question": ask(pair), "answer": str(sum(pair)), "answer_type": "number"} for pair in pairs]
        numbers = [x for pair in pairs for x in pair]
        whole = {"question": ask(numbers), "answer": str(sum(numbers)), "answer_type": "number"}
        found.append({"id": f"sum-{i:05d}", "benchmark": "sums", "parts": parts, **whole})
    return found


def ask(numbers: Sequence[int]) -> str:
    return f"What is the sum of {', '.join(map(str, numbers))}?"


@contextmanager
def serve(latency: float, faults: float, slow: float) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """The server as a process, and its URL."""
    command = [sys.executable, str(HERE / "soak_server.py"), *map(str, (latency, faults, slow))]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        yield process, f"http://127.0.0.1:{int(process.stdout.readline())}/v1"
    finally:
        process.kill()
        process.wait()


def command(case_file: Path, out: Path, url: str, concurrency: int) -> list[str]:
    return [
        sys.executable, "-m", "composcope", "evaluate", "-m", f"sums@{url}", "-b", str(case_file),
        "-o", str(out), "--concurrency", str(concurrency), "--quiet",
    ]  # fmt: skip


def resident(pid: int) -> float:
    """Megabytes that are a process's own, swapped out or not; 0 when it is gone.

    Pages of files (code) are left out: the kernel takes them away and brings them back as it likes.
    """
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return 0.0
    return sum(int(line.split()[1]) for line in lines if line.startswith(("RssAnon:", "VmSwap:"))) / 1024


@dataclass(frozen=True)
class Moment:
    """What was seen at one time of a run."""

    seconds: float
    journal: int
    """Bytes of answers on disk."""
    driver: float
    """Megabytes."""
    server: float


@dataclass
class Run:
    """One run of the study, and what was seen of it."""

    asks: int
    exit_code: int = -1
    moments: list[Moment] = field(default_factory=list)
    counts: Mapping[str, Any] = field(default_factory=dict)
    """What the server says."""

    @property
    def asking(self) -> list[Moment]:
        """From the first answer to the last: without starting, counting and writing."""
        last = self.moments[-1].journal
        return [m for m in self.moments if 0 < m.journal < last]

    @property
    def seconds(self) -> float:
        return self.asking[-1].seconds - self.asking[0].seconds

    @property
    def rate(self) -> float:
        first, last = self.asking[0].journal, self.asking[-1].journal
        return self.asks * (last - first) / self.moments[-1].journal / self.seconds

    def growth(self, process: str) -> float:
        """Megabytes that a process gained over the second half of the asking."""
        sizes = [getattr(m, process) for m in self.asking]
        return sizes[-1] - sizes[len(sizes) // 2]

    @property
    def faults(self) -> int:
        return sum(n for fate, n in self.counts["fates"].items() if fate != "answered")


def run(n_cases: int, folder: Path, latency: float, faults: float, slow: float, concurrency: int) -> Run:
    """Run the study to its end, watching the memory of both processes."""
    case_file = folder / "cases.jsonl"
    case_file.write_text("".join(json.dumps(case) + "\n" for case in cases(n_cases)))
    found = Run(n_cases * ASKS_PER_CASE)
    with serve(latency, faults, slow) as (server, url), (folder / "stderr.txt").open("w") as errors:
        start = time.monotonic()
        driver = subprocess.Popen(
            command(case_file, folder / "run", url, concurrency), stdout=subprocess.DEVNULL, stderr=errors
        )
        while driver.poll() is None:
            size = sum(p.stat().st_size for p in (folder / "run" / "journal").glob("*.jsonl"))
            seconds = time.monotonic() - start
            found.moments.append(Moment(seconds, size, resident(driver.pid), resident(server.pid)))
            time.sleep(0.25)
        found.exit_code = driver.returncode
        with urllib.request.urlopen(f"{url}/counts") as reply:
            found.counts = json.load(reply)
    return found


def graded(folder: Path) -> dict[tuple[str, str], dict[str, Any]]:
    """The rows by case and role; a row that is there twice is an error."""
    rows = [json.loads(line) for line in (folder / "graded.jsonl").read_text().splitlines()]
    found = {(row["case"], row["role"]): row for row in rows}
    if len(found) != len(rows):
        raise AssertionError(f"{folder}: {len(rows) - len(found)} rows are there more than once")
    return found


def same_rows(folder: Path) -> set[str]:
    """``graded.jsonl`` as a set, without what differs between two runs: their names, and the server's port."""
    left_out = ("run", "model")
    return {
        json.dumps({k: v for k, v in row.items() if k not in left_out}, sort_keys=True)
        for row in graded(folder).values()
    }


def problems(folder: Path, found: Run) -> list[str]:
    """What does not hold of a finished run; empty where all does."""
    if found.exit_code != 0:
        return [f"exit code {found.exit_code}: {(folder / 'stderr.txt').read_text()[-500:]}"]
    said = []
    rows = graded(folder / "run")
    wanted = {
        (case["id"], role): "correct" if answer(question) == int(gold) else "incorrect"
        for case in cases(found.asks // ASKS_PER_CASE)
        for role, question, gold in [
            ("whole", case["question"], case["answer"]),
            *((f"part:{i}", p["question"], p["answer"]) for i, p in enumerate(case["parts"])),
        ]
    }
    if rows.keys() != wanted.keys():
        said.append(f"{len(wanted.keys() - rows.keys())} asks lost, {len(rows.keys() - wanted.keys())} made up")
    wrong = [key for key in wanted.keys() & rows.keys() if rows[key]["outcome"] != wanted[key]]
    if wrong:
        said.append(f"{len(wrong)} asks counted wrong, first {wrong[0]}: {rows[wrong[0]]}")
    keys = Counter(
        record["key"]
        for path in (folder / "run" / "journal").glob("*.jsonl")
        for record in map(json.loads, path.read_bytes().splitlines())
        if "key" in record and record["response"]["finish_reason"] != "error"
    )
    if len(keys) != found.asks or set(keys.values()) != {1}:
        said.append(f"the journal holds {sum(keys.values())} answers to {len(keys)} of {found.asks} asks")
    if found.counts["answered"] != found.asks:
        said.append(f"the server answered {found.counts['answered']} of {found.asks} questions")
    return said


def report(options: argparse.Namespace, calm: Run, faulty: Run, failed: Sequence[str]) -> list[str]:
    """What is printed."""
    fates = ", ".join(f"{fate} {n}" for fate, n in sorted(faulty.counts["fates"].items()))
    lines = [
        f"{time.strftime('%Y-%m-%d')}, {os.cpu_count()}-core {platform.machine()}, Python {platform.python_version()}: "
        f"{calm.asks} asks over HTTP, latency {options.latency:g} s, {options.concurrency} in flight",
        f"faults: {options.faults:.0%} of the requests: 429 (at once, Retry-After 1 s), 500 (after the latency), "
        f"reset (after half of it), slow (+{options.slow:g} s), JSON truncated, body cut off",
        f"what the requests came to: {fates}",
    ]
    for name, one in (("without faults", calm), ("with faults", faulty)):
        most, driver, server = max(m.driver for m in one.asking), one.growth("driver"), one.growth("server")
        lines.append(
            f"{name}: {one.seconds:.0f} s, {one.rate:.1f} asks/s, exit {one.exit_code}; memory of the driver "
            f"{most:.0f} MB at most, {driver:+.1f} MB over the second half, of the server {server:+.1f} MB; "
            f"{one.counts['answered_again']} questions answered more than once"
        )
    lines.append(f"throughput with faults: {faulty.rate / calm.rate:.1%} of that without")
    return [*lines, *(f"DOES NOT HOLD: {line}" for line in failed)] + ([] if failed else ["all of it holds"])


def soak(options: argparse.Namespace, folder: Path) -> tuple[list[str], list[str]]:
    """Both runs: the printed lines, and what does not hold."""
    found = {}
    failed: list[str] = []
    for name, rate in (("calm", 0.0), ("faulty", options.faults)):
        (folder / name).mkdir(parents=True)
        n = options.asks // ASKS_PER_CASE
        found[name] = run(n, folder / name, options.latency, rate, options.slow, options.concurrency)
        failed += [f"{name}: {line}" for line in problems(folder / name, found[name])]
    calm, faulty = found["calm"], found["faulty"]
    if not failed and same_rows(folder / "calm" / "run") != same_rows(folder / "faulty" / "run"):
        failed.append("graded.jsonl with faults is not the one without")
    if faulty.faults < 0.8 * options.faults * faulty.asks:
        failed.append(f"only {faulty.faults} requests failed")
    if faulty.rate < options.throughput * calm.rate:
        failed.append(f"throughput with faults is {faulty.rate / calm.rate:.0%} of that without")
    for name, one in found.items():
        if one.growth("driver") > GROWTH_MB + one.asks / 2 * ANSWER_MB:
            failed.append(f"{name}: the driver gained {one.growth('driver'):.1f} MB over the second half")
    return report(options, calm, faulty, failed), failed


def parse(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--asks", type=int, default=20_000)
    parser.add_argument("--latency", type=float, default=0.5, help="seconds until the server answers")
    parser.add_argument("--concurrency", type=int, default=16)
    parser.add_argument("--faults", type=float, default=0.05, help="share of the requests that fail")
    parser.add_argument("--slow", type=float, default=3.0, help="seconds more that a slow answer takes")
    parser.add_argument(
        "--throughput", type=float, default=0.8, help="asks per second with faults, as a share of those without"
    )
    parser.add_argument("--keep", type=Path, help="folder for the runs; by default none is kept")
    return parser.parse_args(arguments)


def main() -> int:
    options = parse()
    with tempfile.TemporaryDirectory() as scratch:
        lines, failed = soak(options, options.keep or Path(scratch))
    print("\n".join(lines), flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
