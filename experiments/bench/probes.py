"""The probes' benchmark as one call: rows against naive and published ways, cost curves, and how they are written."""

from __future__ import annotations

import csv
import json
import math
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import torch

from ...errors import InputError
from .cost import Point, curves, draw
from .measure import Row, machine, measure, with_float32
from .presets import Models, Preset, check_device, preset
from .tasks import build

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
    cost: Sequence[Point]

    def to_json(self) -> str:
        document = {
            "schema": 1, "preset": self.preset, "shape": self.shape, "machine": dict(self.machine),
            "rows": [_plain(asdict(r)) for r in self.rows], "cost": [asdict(p) for p in self.cost],
        }  # fmt: skip
        return json.dumps(document, indent=1)

    def to_markdown(self) -> str:
        """A heading line that says what the numbers belong to, and the table."""
        rows = ["| " + " | ".join(cells) + " |" for cells in (HEAD, ["---"] * len(HEAD), *map(_cells, self.rows))]
        return f"{self.about()}\n\n" + "\n".join(rows)

    def to_text(self) -> str:
        """The table in columns."""
        table = [HEAD, *map(_cells, self.rows)]
        widths = [max(len(r[i]) for r in table) for i in range(len(HEAD))]
        lines = ["  ".join(c.ljust(w) for c, w in zip(r, widths, strict=True)).rstrip() for r in table]
        return "\n".join([self.about(), "", *lines])

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
        """``bench.json``, ``table.csv``, ``table.md``; ``cost.png`` and ``cost.csv`` where curves were measured."""
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "bench.json").write_text(self.to_json(), encoding="utf-8")
        (folder / "table.md").write_text(self.to_markdown() + "\n", encoding="utf-8")
        with (folder / "table.csv").open("w", newline="", encoding="utf-8") as f:
            writer = csv.DictWriter(f, [x.name for x in fields(Row)])
            writer.writeheader()
            writer.writerows(asdict(r) for r in self.rows)
        drawn = draw(self.cost, folder, f"{self.shape}; {self.machine['date']}") if self.cost else []
        return [folder / "bench.json", folder / "table.md", folder / "table.csv", *drawn]

    def write_docs(self, path: Path) -> None:
        """Put the table between this preset's marks in a markdown file."""
        begin, end = BEGIN.format(name=self.preset), END.format(name=self.preset)
        text = path.read_text(encoding="utf-8") if path.is_file() else ""
        if begin not in text or end not in text:
            raise InputError(f"{path}: no lines {begin!r} and {end!r}; add them where the table belongs")
        before, rest = text.split(begin, 1)
        after = rest.split(end, 1)[1]
        path.write_text(f"{before}{begin}\n{self.to_markdown()}\n{end}{after}", encoding="utf-8")


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
    name: str | Preset = "quick", only: Sequence[str] = (), *, repeats: int = 5, memory: bool = True, cost: bool = True,
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
    points: list[Point] = []
    models = Models()

    def so_far() -> Bench:
        found = Bench(chosen.name, str(chosen.shape), about, tuple(rows), tuple(points))
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
        points += curves(chosen, _say) if cost else ()
    finally:
        torch.set_num_threads(threads)
    return so_far()


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
