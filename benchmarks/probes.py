"""The probes against naive and published ways of computing the same: time ratio, absolute error and peak memory.

python -m composcope.benchmarks.probes --preset llama12 --out runs/bench --docs docs/benchmarks.md
"""

from __future__ import annotations

import argparse
import copy
import csv
import json
import math
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from ..errors import InputError
from ..experiments.bench.peers import machine
from ..experiments.console.printing import aligned, markdown_table
from ..files import write_between
from ..hooks import Model, load_model
from .tasks import Models, Outputs, Preset, Task, Way, build, check_device, preset

FAILED = float("nan")


@dataclass(frozen=True)
class Row:
    """Our way against another one."""

    task: str
    setting: str
    against: str
    ratio: float
    """Median over pairs of (their time / our time), neighbors in time; above 1: ours is faster."""
    ratio_low: float
    """Smallest and largest pair."""
    ratio_high: float
    pairs: int
    seconds: float
    """Ours, median: CPU seconds of the process (wall clock on a GPU)."""
    seconds_other: float
    error: float
    """Largest absolute difference of the results, of the logits for patching."""
    scale: float
    """Largest absolute value of the other's results."""
    differing_tokens: int | None
    memory_mb: float
    """Peak resident memory above what the loaded model takes, ours; NaN where not measured."""
    memory_other_mb: float
    note: str = ""


def clock(device: torch.device) -> float:
    """Seconds of work so far: the process's CPU time, or the wall clock of a synchronized GPU."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)
        return time.perf_counter()
    return time.process_time()


def timed(run: Callable[[], Outputs], device: torch.device) -> tuple[float, Outputs]:
    start = clock(device)
    outputs = run()
    return clock(device) - start, outputs


def compare(ours: Outputs, theirs: Outputs) -> tuple[float, float, int | None]:
    """Largest absolute difference and value over the floating tensors (NaN must meet NaN), and differing tokens."""
    error, scale, tokens = FAILED, FAILED, None
    for name, other in theirs.items():
        mine, other = ours[name].cpu(), other.detach().cpu()
        if mine.shape != other.shape:
            raise ValueError(f"{name}: shapes {tuple(mine.shape)} and {tuple(other.shape)} differ")
        if not mine.is_floating_point():
            tokens = int((mine != other).sum())
            continue
        mine, other = mine.double(), other.double()
        if not torch.equal(mine.isnan(), other.isnan()):
            return float("inf"), scale, tokens
        error = float((mine - other).abs().nan_to_num(0).max())
        scale = float(other.abs().nan_to_num(0).max())
    return error, scale, tokens


def measure(task: Task, preset: Preset, device: torch.device, repeats: int, memory: bool) -> list[Row]:
    """One row per other way: paired times in alternating order, errors, memory."""
    ours = task.ours()
    peak = peak_memory(preset.name, task.name, "ours") if memory else FAILED
    return [_row(task, name, ours, preset, device, repeats, peak, memory) for name in task.against]


def _row(
    task: Task, name: str, ours: Outputs, preset: Preset, device: torch.device, repeats: int, peak: float, memory: bool
) -> Row:
    way = task.against[name]
    if preset.warm_up:
        way.run()
    times: list[tuple[float, float]] = []
    theirs: Outputs = {}
    for i in range(repeats):
        if i % 2:
            (b, theirs), (a, _) = timed(way.run, device), timed(task.ours, device)
        else:
            (a, _), (b, theirs) = timed(task.ours, device), timed(way.run, device)
        times.append((a, b / way.share))
    error, scale, tokens = compare(way.cut(ours), theirs)
    ratios = [b / a for a, b in times]
    seconds, other = (float(np.median(column)) for column in zip(*times, strict=True))
    other_peak = peak_memory(preset.name, task.name, name) if memory and name != "float32" else FAILED
    return Row(
        task.name, task.setting, name, float(np.median(ratios)), min(ratios), max(ratios), len(ratios), seconds, other,
        error, scale, tokens, peak, other_peak, way.note,
    )  # fmt: skip


def peak_memory(preset: str, task: str, way: str) -> float:
    """Megabytes above the loaded model at the highest point, in a child process that does nothing else."""
    command = [sys.executable, "-m", f"{__package__}.probes", "--peak", preset, task, way]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ, **_child_paths()})
    if done.returncode:
        raise RuntimeError(f"{' '.join(command[2:])} failed: {done.stderr.strip().splitlines()[-1:]}")
    return float(json.loads(done.stdout)["peak_mb"])


def _child_paths() -> dict[str, str]:
    """The child finds the same composcope that runs here, however it was put on the path."""
    return {"PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}


def with_float32(task: Task, preset: Preset, lm: Model) -> Task:
    """For models of lower precision: the same task on the same weights in float32 as one more way."""
    if lm.dtype is torch.float32:
        return task
    wide = load_model(copy.deepcopy(lm.model).float())
    way = Way(build(preset, task.name, wide).ours, note=f"the same weights: what {lm.dtype} costs in exactness")
    return replace(task, against={**task.against, "float32": way})


_STATUS, _RESET = Path("/proc/self/status"), Path("/proc/self/clear_refs")


def _status(field: str) -> float:
    """Kilobytes from the process status, in MB."""
    line = next(x for x in _STATUS.read_text().splitlines() if x.startswith(field + ":"))
    return int(line.split()[1]) / 1024


def _mark() -> float:
    """Resident memory now, in MB; the high-water mark starts from here on Linux."""
    if _STATUS.is_file():
        _RESET.write_text("5")
        return _status("VmRSS")
    return _peak()


def _peak() -> float:
    if _STATUS.is_file():
        return _status("VmHWM")
    unit = 2**20 if sys.platform == "darwin" else 2**10  # bytes on macOS, kilobytes elsewhere
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit


def own_peak(name: str, task: str, way: str) -> float:
    """Megabytes above the loaded model at the highest point of this process; call it in a process of its own.

    Memory that an allocator has once had is not given back: the model is loaded and run once on two tokens, the
    high-water mark is reset where the system can do that, then the way runs once.
    """
    torch.set_num_threads(1)
    chosen = preset(name)
    lm = Models().get(chosen.shape_of(task))
    run = build(chosen, task, lm).way(way)
    with torch.no_grad():
        lm.model(torch.tensor([[3, 4]], device=lm.device))
    if lm.device.type == "cuda":
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        run()
        return (torch.cuda.max_memory_allocated() - before) / 2**20
    before = _mark()
    run()
    return _peak() - before


BEGIN, END = "<!-- bench probes: {name} -->", "<!-- end of bench probes: {name} -->"
HEAD = ("task", "setting", "against", "time ratio [range]", "s (ours)", "s (other)", "abs. error (of at most)",
        "MB (ours)", "MB (other)", "note")  # fmt: skip


@dataclass(frozen=True)
class Bench:
    """What was measured, and on what."""

    preset: str
    shape: str
    machine: Mapping[str, Any]
    rows: Sequence[Row]

    def to_json(self) -> str:
        document = {
            "schema": 1, "preset": self.preset, "shape": self.shape, "machine": dict(self.machine),
            "rows": [_plain(asdict(r)) for r in self.rows],
        }  # fmt: skip
        return json.dumps(document, indent=1)

    def to_markdown(self) -> str:
        """A heading line that says what the numbers belong to, and the table."""
        return "\n".join([self.about(), "", *markdown_table(HEAD, [*map(_cells, self.rows)])])

    def to_text(self) -> str:
        """The table in columns."""
        return "\n".join([self.about(), "", *aligned(HEAD, [*map(_cells, self.rows)])])

    def about(self) -> str:
        m = self.machine
        load = ", ".join(f"{x:.1f}" for x in m["load_average"])
        return (
            f"{m['date']}, preset {self.preset} ({self.shape}), {m['threads']} thread on {m['processor']}"
            f" ({m['cores']} cores, {m['system']}, load {load}), device {m['device']}, torch {m['torch']},"
            f" transformers {m['transformers']}. Time ratio: median of paired"
            f" {'wall-clock' if m['device'] != 'cpu' else 'CPU'} times, other / ours. MB: peak above the loaded model."
        )

    def save(self, folder: Path) -> list[Path]:
        """``bench.json``, ``table.csv`` and ``table.md``."""
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "bench.json").write_text(self.to_json(), encoding="utf-8")
        (folder / "table.md").write_text(self.to_markdown() + "\n", encoding="utf-8")
        with (folder / "table.csv").open("w", newline="", encoding="utf-8") as f:
            writer = csv.DictWriter(f, [x.name for x in fields(Row)])
            writer.writeheader()
            writer.writerows(asdict(r) for r in self.rows)
        return [folder / "bench.json", folder / "table.md", folder / "table.csv"]

    def write_docs(self, path: Path) -> None:
        """Put the table between this preset's marks in a markdown file."""
        write_between(path, BEGIN.format(name=self.preset), END.format(name=self.preset), self.to_markdown())


def _plain(row: dict[str, Any]) -> dict[str, Any]:
    return {k: None if isinstance(v, float) and not math.isfinite(v) else v for k, v in row.items()}


def _cells(row: Row) -> tuple[str, ...]:
    def number(x: float, digits: int = 3) -> str:
        return "–" if math.isnan(x) else f"{x:.{digits}g}"

    ratio = f"{row.ratio:.3g} [{row.ratio_low:.3g}, {row.ratio_high:.3g}], n={row.pairs}"
    error = "–" if math.isnan(row.error) else f"{row.error:.1e} ({row.scale:.1e})"
    if row.differing_tokens is not None:
        error += f", {row.differing_tokens} tokens differ"
    memory = ["–" if math.isnan(x) else f"{x:.0f}" for x in (row.memory_mb, row.memory_other_mb)]
    return (row.task, row.setting, row.against, ratio, number(row.seconds), number(row.seconds_other), error, *memory,
            row.note)  # fmt: skip


def bench_probes(
    name: str | Preset = "quick", only: Sequence[str] = (), *, repeats: int = 5, memory: bool = True,
    out: Path | None = None,
) -> Bench:  # fmt: skip
    """Measure the probes of a preset; what is done so far is in ``out`` after every task.

    Every pair is our way and the other one in the same process, one after the other, on one thread, in alternating
    order. Memory is the peak of a child process per way. Raises ``InputError`` for unknown presets and benchmarks.
    """
    chosen = name if isinstance(name, Preset) else preset(name)
    unknown = [n for n in only if n not in chosen.tasks]
    if unknown or repeats < 1:
        raise InputError(
            f"--only {','.join(unknown)}, --repeats {repeats}: preset {chosen.name} has {', '.join(chosen.tasks)};"
            " repeats are at least 1"
        )
    check_device(chosen.shape)
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    about = machine(chosen.shape.device, 1)
    rows: list[Row] = []
    models = Models()

    def so_far() -> Bench:
        found = Bench(chosen.name, str(chosen.shape), about, tuple(rows))
        if out is not None:
            found.save(out)
        return found

    try:
        for task in only or chosen.tasks:
            lm = models.get(chosen.shape_of(task))
            _say(f"{task} on {chosen.shape_of(task)}")
            ready = with_float32(build(chosen, task, lm), chosen, lm)
            rows += measure(ready, chosen, lm.device, repeats, memory)
            so_far()
    finally:
        torch.set_num_threads(threads)
    return so_far()


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def main() -> None:
    """Measure a preset and print its table."""
    parser = argparse.ArgumentParser(description="The probes against naive and published ways of computing the same.")
    parser.add_argument(
        "--preset", default="quick", help="quick, llama12 (12 layers, d=768), gpu (Llama-3-8B shape) or smollm2"
    )
    parser.add_argument("--only", default="", help="comma-separated tasks; all of the preset by default")
    parser.add_argument("--repeats", type=int, default=5, help="paired runs; the ratio is their median")
    parser.add_argument("--no-memory", action="store_true", help="leave out peak memory, measured in child processes")
    parser.add_argument("--out", type=Path, help="folder for bench.json, csv and md")
    parser.add_argument("--docs", type=Path, help="Markdown file whose table to replace")
    parser.add_argument("--peak", nargs=3, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.peak:
        print(json.dumps({"peak_mb": own_peak(*given.peak)}))
        return
    names = tuple(n.strip() for n in given.only.split(",") if n.strip())
    found = bench_probes(given.preset, names, repeats=given.repeats, memory=not given.no_memory, out=given.out)
    if given.docs is not None:
        found.write_docs(given.docs)
    print(found.to_text())


if __name__ == "__main__":
    main()
