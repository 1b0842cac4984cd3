"""Cost of every probe against prompt length, layers and batch: seconds per case, beside a bare forward pass."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from ...hooks.model import Model
from ...probes import lookback, min_k, neurons, patching
from ..figures import style
from .measure import timed
from .presets import Models, Preset
from .tasks import texts

AXES = ("prompt length", "layers", "batch")
COLUMNS = ("axis", "x", "way", "seconds_per_case", "low", "high", "runs")


@dataclass(frozen=True)
class Point:
    """One point of a curve."""

    axis: str
    x: int
    way: str
    seconds_per_case: float
    """Median over runs; CPU seconds of the process (wall clock on a GPU)."""
    low: float
    high: float
    runs: int


def _ways(lm: Model, length: int, batch: int) -> dict[str, Callable[[], Any]]:
    """Everything on ``batch`` prompts of ``length`` tokens; responses are a quarter as long."""
    prompts = texts(lm, batch, length)
    responses = texts(lm, batch, max(2, length // 4), seed=1)
    donors, pairs = texts(lm, batch, length, seed=2), [(i, i) for i in range(batch)]
    return {
        "forward": lambda: lm.read_trunk(lm.pad(prompts)[0], ()),
        "attribution": lambda: neurons.attribute_many(lm, prompts, [[5]] * batch, 8),
        "lookback": lambda: lookback.ratios(lm, prompts, responses, 1),
        "patching": lambda: patching.prompt_end_sweep(
            lm, donors, prompts, pairs, max_new_tokens=4, controls=(), stop_ids=()
        ),
        "min-k": lambda: min_k.token_scores(lm, prompts),
    }


def curves(preset: Preset, say: Callable[[str], None] = lambda line: None, runs: int = 3) -> Iterator[Point]:
    """Points of all curves; while one axis varies the others stay at their middle value."""
    models = Models()
    middle = [sorted(v)[len(v) // 2] for v in (preset.lengths, preset.depths, preset.batches)]
    settings = [(i, x) for i, values in enumerate((preset.lengths, preset.batches)) for x in values]
    plan = [(0, x, (x, middle[1], 1)) for i, x in settings if i == 0]
    plan += [(2, x, (middle[0], middle[1], x)) for i, x in settings if i == 1]
    plan += [(1, x, (middle[0], x, 1)) for x in preset.depths]
    for axis, x, (length, depth, batch) in plan:
        lm = models.get(replace(preset.shape, layers=depth))
        say(f"cost at {AXES[axis]} {x}")
        for way, run in _ways(lm, length, batch).items():
            run()
            seconds = np.array([timed(run, lm.device)[0] for _ in range(runs)]) / batch
            yield Point(AXES[axis], x, way, float(np.median(seconds)), float(seconds.min()), float(seconds.max()), runs)


def draw(points: Sequence[Point], folder: Path, title: str) -> list[Path]:
    """``cost.png`` and the ``cost.csv`` behind it."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "cost.csv").open("w", newline="", encoding="utf-8") as f:
        writer = csv.writer(f)
        writer.writerow(COLUMNS)
        writer.writerows([getattr(p, c) for c in COLUMNS] for p in points)
    fig, (panels,) = style.grid_of(1, len(AXES), 3.2, 3.0, sharey=True)
    names = list(dict.fromkeys(p.way for p in points))
    for panel, axis in zip(panels, AXES, strict=True):
        for i, name in enumerate(names):
            mine = sorted((p for p in points if p.axis == axis and p.way == name), key=lambda p: p.x)
            x, y = [p.x for p in mine], [p.seconds_per_case for p in mine]
            spread = [[p.seconds_per_case - p.low for p in mine], [p.high - p.seconds_per_case for p in mine]]
            line = "--" if name == "forward" else "-"
            panel.errorbar(x, y, spread, label=name, color=style.color(i), marker="o", markersize=3.5, linestyle=line)
        panel.set_xscale("log", base=2)
        panel.set_yscale("log")
        ticks = sorted({p.x for p in points if p.axis == axis})
        panel.set_xticks(ticks, [str(t) for t in ticks])
        panel.minorticks_off()
        style.dress(panel, f"by {axis}", axis, "seconds per case" if axis == AXES[0] else "")
    style.shared_legend(fig)
    fig.supxlabel(title, fontsize=7.5, color=style.MUTED)
    fig.savefig(folder / "cost.png", dpi=160)
    return [folder / "cost.png", folder / "cost.csv"]
