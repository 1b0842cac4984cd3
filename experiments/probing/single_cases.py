"""Saves a probe's results on a few single cases: ``probes/NAME/cases/{index.json,tensors.safetensors}``."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from safetensors.torch import save_file

from ...files import put_in_place
from ...probes.by_case.entries import SingleCases
from ...probes.catalog import PROBES
from ...probes.examples import Example
from ...probes.spread import call
from ..run import write_json

Few = Sequence[Example]


def write_cases(name: str, lm: Any, few: Few, every: Few, n: int, folder: Path, inputs: str) -> list[str]:
    """Save the results of the probe ``name`` on single cases; returns one sentence for each thing left out.

    ``few`` are the examples to save (``n`` cases per group), ``every`` those that the probe ran on, ``folder`` the
    probe's own folder. The files are written in one step. Nothing is written for a probe without single-case results.
    """
    if PROBES[name].cases is None:
        return []
    found = call(lm, _make, name, few, every, n, folder) if n else SingleCases([])
    _write(name, found, every, n, folder / "cases", inputs)
    return found.left_out


def _make(lm: Any, name: str, few: Few, every: Few, n: int, folder: Path) -> SingleCases:
    make = PROBES[name].cases
    return SingleCases([]) if make is None else make(lm, few, every, n, folder)


def statement(found: SingleCases, every: Few) -> str:
    """One sentence: how many cases of each group are saved, out of how many."""
    of = Counter(group for _, group in {(e.case, e.group) for e in every})
    kept = Counter(group for _, group in {(e.about["case"], e.about["group"]) for e in found.entries})
    counts = ", ".join(f"{kept[g]} of {of[g]} {g} cases" for g in sorted(of))
    return f"kept for {counts}"


def _write(name: str, found: SingleCases, every: Few, n: int, folder: Path, inputs: str) -> None:
    temporary = folder.with_name(f".{folder.name}.tmp")
    shutil.rmtree(temporary, ignore_errors=True)
    temporary.mkdir(parents=True)
    tensors, entries = {}, []
    for i, entry in enumerate(found.entries):
        tensors |= {f"{i}.{k}": v.cpu().contiguous() for k, v in entry.tensors.items()}
        entries.append({**entry.about, "axes": {k: list(v) for k, v in entry.axes.items()}})
    if tensors:
        save_file(tensors, temporary / "tensors.safetensors")
    write_json(
        temporary / "index.json",
        {"schema": 1, "probe": name, "cases_per_group": n, "note": statement(found, every),
         "left_out": found.left_out, "entries": entries},
    )  # fmt: skip
    write_json(temporary / "inputs.json", {"inputs": inputs})
    shutil.rmtree(folder, ignore_errors=True)
    put_in_place(temporary, folder)
