"""The probes against naive and published ways of computing the same: time ratio, absolute error and peak memory.

python -m composcope.benchmarks.probes --preset llama12 --out runs/bench --docs docs/benchmarks.md
"""

import argparse
import json
import math
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from statistics import median

import torch

from ..errors import InputError
from ..experiments.bench.timing import TaskBench, Way, costs, in_rounds, machine, on_threads, timed
from ..experiments.console.exits import guarded
from ..experiments.run.folder import command_line, write_json
from ..experiments.run.provenance import memory_peaks, reset_peaks
from ..files import write_between, write_text
from ..hooks import Model
from ..terminal import words
from .tasks import Against, BenchPreset, Models, Outputs, ProbeTask, build, check_device, make, preset

FAILED = float("nan")


@dataclass(frozen=True)
class ProbeTiming:
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
    """Peak memory above what the loaded model takes, ours; NaN where not measured."""
    memory_other_mb: float
    note: str = ""

    def cells(self) -> tuple[str, ...]:
        ratio = f"{self.ratio:.3g} [{self.ratio_low:.3g}, {self.ratio_high:.3g}], n={self.pairs}"
        error = "–" if math.isnan(self.error) else f"{self.error:.1e} ({self.scale:.1e})"
        if self.differing_tokens is not None:
            error += f", {self.differing_tokens} tokens differ"
        memory = ["–" if math.isnan(x) else f"{x:.0f}" for x in (self.memory_mb, self.memory_other_mb)]
        seconds = f"{self.seconds:.3g}", f"{self.seconds_other:.3g}"
        return (self.task, self.setting, self.against, ratio, *seconds, error, *memory, self.note)


def compare(ours: Outputs, theirs: Outputs) -> tuple[float, float, int | None]:
    """Largest absolute difference and value over the floating tensors (NaN must meet NaN), and differing tokens."""
    errors, scales, tokens = [], [], None
    for name, other in theirs.items():
        mine, other = ours[name].cpu(), other.detach().cpu()
        if mine.shape != other.shape:
            raise ValueError(f"{name}: shapes {tuple(mine.shape)} and {tuple(other.shape)} differ")
        if not mine.is_floating_point():
            tokens = (tokens or 0) + int((mine != other).sum())
            continue
        mine, other = mine.double(), other.double()
        if not torch.equal(mine.isnan(), other.isnan()):
            return float("inf"), max(scales, default=FAILED), tokens
        errors.append(float((mine - other).abs().nan_to_num(0).max()))
        scales.append(float(other.abs().nan_to_num(0).max()))
    return max(errors, default=FAILED), max(scales, default=FAILED), tokens


def measure(
    task: ProbeTask, preset: BenchPreset, device: torch.device, repeats: int, memory: bool
) -> list[ProbeTiming]:
    """One row per other way: paired times in alternating order, errors, memory."""
    peak = peak_memory(preset.name, task.name, "ours") if memory else FAILED
    return [_row(task, name, preset, device, repeats, peak, memory) for name in task.against]


def _row(
    task: ProbeTask, name: str, preset: BenchPreset, device: torch.device, repeats: int, peak: float, memory: bool
) -> ProbeTiming:
    way, on_cpu = task.against[name], device.type == "cpu"
    ours = task.ours()  # warm
    if preset.warm_up:
        way.run()
    ways = [Way("ours", partial(timed, task.ours)), Way(name, partial(timed, way.run), share=way.share)]
    took = in_rounds(ways, repeats, task.name, partial_once=False)
    mine, others = (costs(w, t, on_cpu) for w, t in zip(ways, took, strict=True))
    ratios = [b / a for a, b in zip(mine, others, strict=True)]
    error, scale, tokens = compare(way.cut(ours), took[1][-1].found)
    other_peak = peak_memory(preset.name, task.name, name) if memory and name != "float32" else FAILED
    return ProbeTiming(
        task.name, task.setting, name, median(ratios), min(ratios), max(ratios), len(ratios), median(mine),
        median(others), error, scale, tokens, peak, other_peak, way.note,
    )  # fmt: skip


def peak_memory(preset: str, task: str, way: str) -> float:
    """Megabytes above the loaded model at the highest point, in a child process that does nothing else."""
    command = [sys.executable, "-m", f"{__package__}.probes", "--peak", preset, task, way]
    paths = {"PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}  # the child finds the same composcope
    done = subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ, **paths})
    if done.returncode:
        raise RuntimeError(f"{' '.join(command[2:])} failed: {done.stderr.strip().splitlines()[-1:]}")
    return float(json.loads(done.stdout)["peak_mb"])


def own_peak(name: str, task: str, way: str) -> float:
    """Megabytes above the loaded model at the highest point of this process; call it in a process of its own.

    Memory that an allocator has once had is not given back: the model is loaded and run once on two tokens, the peak is
    reset where the system can do that, then the way runs once.
    """
    torch.set_num_threads(1)
    chosen = preset(name)
    lm = make(chosen.shape_of(task))
    run = build(chosen, task, lm).way(way)
    with torch.no_grad():
        lm.model(torch.tensor([[3, 4]], device=lm.device))
    before = _peak(lm)
    run()
    return _peak(lm, restart=False) - before


def _peak(lm: Model, restart: bool = True) -> float:
    """Megabytes at the highest point since the last restart."""
    if restart:
        reset_peaks()
    peaks = memory_peaks()
    return peaks["cuda"][f"cuda:{lm.device.index or 0}"] if lm.device.type == "cuda" else peaks["rss"]


def with_float32(task: ProbeTask, preset: BenchPreset, lm: Model, wide: Model) -> ProbeTask:
    """For models of lower precision: the same task on the same weights in float32 (``wide``) as one more way."""
    if wide is lm:
        return task
    way = Against(build(preset, task.name, wide).ours, note=f"the same weights: what {lm.dtype} costs in exactness")
    return replace(task, against={**task.against, "float32": way})


BEGIN, END = "<!-- bench probes: {name} -->", "<!-- end of bench probes: {name} -->"
HEAD = ("task", "setting", "against", "time ratio [range]", "s (ours)", "s (other)", "abs. error (of at most)",
        "MB (ours)", "MB (other)", "note")  # fmt: skip


def bench_probes(
    chosen: BenchPreset, only: Sequence[str] = (), *, repeats: int = 5, memory: bool = True, out: Path | None = None
) -> TaskBench:
    """Measure the probes of a preset; what is done so far is in ``out`` after every task.

    Every pair is our way and the other one in the same process, one after the other, on one thread, in alternating
    order. Memory is the peak of a child process per way. Raises ``InputError`` for unknown benchmarks.
    """
    if unknown := [n for n in only if n not in chosen.tasks]:
        raise InputError(f"--only {','.join(unknown)}: preset {chosen.name} has {', '.join(chosen.tasks)}")
    if repeats < 1:
        raise InputError(f"--repeats {repeats}: give a whole number of at least 1")
    check_device(chosen.shape)
    about, lines = f"preset {chosen.name} ({chosen.shape})", ("MB: peak above the loaded model.",)
    found = TaskBench(about, machine(chosen.shape.device, 1), (), lines, HEAD)
    models = Models()
    with on_threads(1):
        for task in only or chosen.tasks:
            lm, wide = models.get(chosen.shape_of(task))
            print(f"{task} on {chosen.shape_of(task)}", file=sys.stderr, flush=True)
            ready = with_float32(build(chosen, task, lm), chosen, lm, wide)
            found = replace(found, rows=(*found.rows, *measure(ready, chosen, lm.device, repeats, memory)))
            if out is not None:
                write_json(out / "bench.json", found.document())
                write_text(out / "table.md", found.markdown() + "\n")
    return found


def main() -> None:
    """Measure a preset and print its table."""
    parser = argparse.ArgumentParser(description="The probes against naive and published ways of computing the same.")
    parser.add_argument(
        "--preset", default="quick", help="quick, llama12 (12 layers, d=768), gpu (Llama-3-8B shape) or smollm2"
    )
    parser.add_argument("--only", default="", help="comma-separated tasks; all of the preset by default")
    parser.add_argument("--repeats", type=int, default=5, help="paired runs; the ratio is their median")
    parser.add_argument("--no-memory", action="store_true", help="leave out peak memory, measured in child processes")
    parser.add_argument("--out", type=Path, help="folder for bench.json and table.md")
    parser.add_argument("--docs", type=Path, help="Markdown file whose table to replace")
    parser.add_argument("--peak", nargs=3, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.peak:
        print(json.dumps({"peak_mb": own_peak(*given.peak)}))
        return
    names = tuple(words(given.only))
    found = bench_probes(preset(given.preset), names, repeats=given.repeats, memory=not given.no_memory, out=given.out)
    print(found.markdown())
    if given.docs is not None:
        write_between(given.docs, BEGIN.format(name=given.preset), END.format(name=given.preset), found.markdown())


if __name__ == "__main__":
    sys.exit(guarded(main, command_line))
