"""The study's tables as Markdown."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

from ...csv_files import Row
from ..organism.doses import called
from ..run import write_json, write_text
from .study_tables import Findings

_BINS = (2, 4, 6, 8)


def write(found: Findings, folder: Path) -> None:
    """``study.json`` and ``study.md``."""
    write_json(folder / "study.json", found.to_dict())
    write_text(folder / "study.md", "\n".join(markdown(found)) + "\n")


def markdown(found: Findings) -> list[str]:
    """All tables that have rows."""
    pieces = [_residual(found.summary), _channels(found.summary), _transfer(found.summary)]
    pieces += [_curve(found.curve), _inside(found.inside)]
    return [line for piece in pieces for line in piece]


def _number(cell: Row, scale: float = 100.0, digits: int = 0, sign: bool = False) -> str:
    """A value with its interval; a dash if there is no value."""
    if cell["value"] is None:
        return "–"
    form = f"{'+' if sign else ''}.{digits}f"
    shown = [format(scale * cell[k], form) for k in ("value", "low", "high") if cell[k] is not None]
    return shown[0] if len(shown) < 3 else f"{shown[0]} [{shown[1]}, {shown[2]}]"


def _failure(cell: Row) -> str:
    """A mean over trainings with its interval; for a single training the counts, since its interval is over cases."""
    if len(cell["k"]) != 1:
        return _number(cell)
    return f"{_number(cell)} ({cell['k'][0]}/{cell['n'][0]})"


def _table(title: str, head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    if not rows:
        return []
    lines = [f"**{title}**", "", f"| {' | '.join(head)} |", f"|{'---|' * len(head)}"]
    return [*lines, *(f"| {' | '.join(row)} |" for row in rows), ""]


def _variant(row: Row) -> str:
    """What was trained; a shipped dose with its share of compositions."""
    return called(row["variant"]) if row["base"] == "dose" else str(row["variant"])


def _residual(summary: Sequence[Row]) -> list[str]:
    rows = []
    for s in summary:
        sizes = "/".join(str(min(s[f"residual {d}"]["n"], default=0)) for d in _BINS)
        cells = [_failure(s[f"residual {d}"]) for d in _BINS]
        rows.append([s["base"], _variant(s), str(s["seeds"]), *cells, sizes, _number(s["atoms"])])
    head = ["base", "variant", "trainings", *(f"depth {d}" for d in _BINS), "n (least, by depth)", "stable facts"]
    return _table("Residual failure by depth, % (mean over trainings [95 %])", head, rows)


def _channels(summary: Sequence[Row]) -> list[str]:
    rows = []
    for s in summary:
        if s["delta_atom"]["value"] is None:
            continue
        cells = [_number(s[f"delta_comp {d}"], sign=True) for d in _BINS]
        matched = f"{s['delta_comp 4']['seeds']}/{s['delta_comp 4']['of']}"
        depth = _number(s["delta_depth"], 1.0, 2, True)
        rows.append([s["base"], _variant(s), _number(s["delta_atom"], sign=True), matched, *cells, depth])
    head = ["base", "variant", "Δatom", "matched trainings", *(f"Δcomp, depth {d}" for d in _BINS), "Δdepth"]
    return _table("Against the base, points (after - before; negative Δcomp: composes better)", head, rows)


def _transfer(summary: Sequence[Row]) -> list[str]:
    rows = []
    for s in summary:
        if s["gain_seen"]["value"] is None:
            continue
        shown = f"{_number(s['ratio'], 1.0, 2)} ({s['ratio']['seeds']} of {s['seeds']})"
        cells = [_number(s[k], sign=True) for k in ("gain_seen", "gain_held")]
        rows.append([s["base"], _variant(s), *cells, shown])
    head = ["base", "variant", "gain, trained depths", "gain, held-out depths", "held-out / trained"]
    return _table("Transfer: drop of residual failure, points (depth 2 left out)", head, rows)


def _curve(rows: Sequence[Row]) -> list[str]:
    cells: dict[tuple[str, int], dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for r in rows:
        cells[r["recipe"], r["step"]][r["metric"]].append(r["k"] / r["n"])
    names = ("parts", "composition", "composition, trained depths", "composition, held-out depths")
    table = [
        [recipe, str(step), *(_mean(found.get(name, [])) for name in names), str(len(found["parts"]))]
        for (recipe, step), found in sorted(cells.items())
    ]
    return _table("Along training, % right (mean over trainings)", ["recipe", "step", *names, "trainings"], table)


def _mean(values: Sequence[float]) -> str:
    return f"{100 * sum(values) / len(values):.0f}" if values else "–"


def _inside(rows: Sequence[Row]) -> list[str]:
    table = [
        [r["variant"], r["quantity"], str(r["n"]), *(_three(r[k]) for k in ("before", "after")), _change(r)]
        for r in rows
    ]
    head = ["variant", "quantity", "n", "before", "after", "after - before [95 %]"]
    return _table("Inside, the same cases before and after (one training each)", head, table)


def _three(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}"


def _change(r: Row) -> str:
    if r["value"] is None:
        return "–"
    shown = f"{r['value']:+.3f}"
    return shown if r["low"] is None else f"{shown} [{r['low']:+.3f}, {r['high']:+.3f}]"
