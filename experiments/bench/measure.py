"""Paired CPU times and errors of one task, and peak memory of one way in a process of its own."""

from __future__ import annotations

import copy
import json
import os
import platform
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from ...hooks import Model, load_model
from .presets import Preset
from .tasks import Outputs, Task, Way, build

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
    command = [sys.executable, "-m", f"{__package__}.memory", preset, task, way]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ, **_child_paths()})
    if done.returncode:
        raise RuntimeError(f"{' '.join(command[2:])} failed: {done.stderr.strip().splitlines()[-1:]}")
    return float(json.loads(done.stdout)["peak_mb"])


def _child_paths() -> dict[str, str]:
    """The child finds the same composcope that runs here, however it was put on the path."""
    return {"PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}


def machine(device: str, threads: int) -> dict[str, Any]:
    """What the numbers belong to."""
    import transformers

    return {
        "date": time.strftime("%Y-%m-%d"),
        "processor": _processor(),
        "cores": os.cpu_count(),
        "system": f"{platform.system()} {platform.machine()}",
        "device": torch.cuda.get_device_name() if device == "cuda" else "cpu",
        "threads": threads,
        "load_average": list(os.getloadavg()),
        "python": platform.python_version(),
        "torch": torch.__version__,
        "transformers": transformers.__version__,
    }


def _processor() -> str:
    info = Path("/proc/cpuinfo")
    if info.is_file():
        names = [
            line.split(":", 1)[1].strip() for line in info.read_text().splitlines() if line.startswith("model name")
        ]
        if names:
            return names[0]
    return platform.processor() or platform.machine()


def with_float32(task: Task, preset: Preset, lm: Model) -> Task:
    """For models of lower precision: the same task on the same weights in float32 as one more way."""
    if lm.dtype is torch.float32:
        return task
    wide = load_model(copy.deepcopy(lm.model).float())
    way = Way(build(preset, task.name, wide).ours, note=f"the same weights: what {lm.dtype} costs in exactness")
    return replace(task, against={**task.against, "float32": way})
