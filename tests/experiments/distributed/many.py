"""Many small cases, enough that something can be killed before all are answered; and what came of them."""

from __future__ import annotations

import json
from itertools import permutations
from pathlib import Path

from composcope.evaluation.cases import Case, Part, write_cases
from composcope.experiments.run import read_lines

WORDS = "lamp rope drum kite boot fork coin vase mask oar harp bell".split()


def write_many(path: Path, repeats: int) -> Path:
    """132 cases times ``repeats``, with wholes of their own."""
    cases = [
        Case(
            id=f"{a}-{b}-{k}", question=f"{k}: What is the tag of {a} plus the tag of {b}?", answer="30",
            answer_type="number", parts=tuple(Part(f"What is the tag of {x}?", "11", "fact", "number") for x in (a, b)),
            benchmark="many", family="sum", depth=2,
        )
        for a, b in permutations(WORDS, 2) for k in range(repeats)
    ]  # fmt: skip
    write_cases(cases, path)
    return path


def rows(run: Path) -> list[str]:
    """Graded rows without the run's name, as a sorted list."""
    kept = [{k: v for k, v in row.items() if k != "run"} for row in read_lines(run / "graded.jsonl")]
    return sorted(json.dumps(row, sort_keys=True) for row in kept)
