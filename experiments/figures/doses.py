"""How each probe's number moves with the dose of compositions in training (the validity study)."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path

from . import style
from .drawing import Drawing, caption, words
from .io import Row, RunData

_EMPTY = (None, "", "None", "nan")


def dose_response(runs: Sequence[RunData]) -> Drawing:
    """Mean of each probe's number per dose with its interval; the expected direction is in the title."""
    table = next((t for r in runs if (t := r.path.parent / "validity" / "table.csv").is_file()), None)
    rows = _read(table) if table is not None else []
    if not rows:
        return words("No validity table beside these runs: `composcope study validity` makes one.", runs)
    quantities = list(dict.fromkeys(r["quantity"] for r in rows))
    fig, panels = style.grid_of(1, len(quantities), 2.7, 2.8)
    for ax, quantity in zip(panels[0], quantities, strict=True):
        mine = [r for r in rows if r["quantity"] == quantity]
        style.points(ax, mine, range(len(mine)), style.color(0), "")
        ax.set_xticks(range(len(mine)), [style.plain(r["dose"], 12) for r in mine])
        style.dress(ax, style.lines(quantity, 26), "dose")
    text = "Each probe's number on the wholes whose parts every dose knows, mean over cases, lowest dose first."
    return Drawing(style.finished(fig), rows, caption(text, rows, runs, "{quantity}, {dose}"))


def _read(path: Path) -> list[Row]:
    with path.open(encoding="utf-8", newline="") as f:
        raw = [r for r in csv.DictReader(f) if r.get("question") == "follows the dose" and r.get("group")]
    found: list[Row] = []
    for r in raw:
        numbers = {k: float(r[k]) if r.get(k) not in _EMPTY else None for k in ("value", "low", "high")}
        if r.get("verdict"):
            continue  # the trend over the doses, not a dose
        found.append({"quantity": r["quantity"], "dose": r["group"], "n": int(float(r["n"] or 0)), **numbers,
                      "interval": r.get("interval")})  # fmt: skip
    return found
