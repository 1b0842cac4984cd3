"""What probes measured in two runs, case by case: A - B over the cases that both probed.

The numbers are those of ``probes/NAME/values.csv``, one per example. Two runs fail on different cases, so their probes
ran on different ones; what both have is compared, pair by pair, and the rest is counted.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from ..errors import InputError
from .run import read_json
from .shared_cases import Shared

Numbers = dict[tuple[str, str], dict[str, float]]
"""(quantity, kind) -> case -> value"""
SETTINGS = ("dtype", "rows_dtype", "form", "steps", "rule", "answer_tokens", "t", "u", "v", "k", "question_only",
            "alignment", "role")  # fmt: skip
"""What numbers of two runs must have been made with alike."""


def compare_probes(
    a: str | Path, b: str | Path, cases: Shared, *, seed: int = 0
) -> tuple[list[dict[str, Any]], list[str]]:
    """Rows per probe, quantity and kind, and what has to be said about them.

    Paired over the cases that both runs probed: difference of means with interval, standardized effect, test, and Holm
    over all rows of a probe. A probe that only one run has, cases that were probed in one run only and other settings
    are said.
    """
    names = [sorted(p.parent.name for p in Path(run).glob("probes/*/values.csv")) for run in (a, b)]
    if not any(names):
        return [], []
    from ..probes.contrast import adjust  # brings torch, which runs without probes do not need

    rows: list[dict[str, Any]] = []
    said: list[str] = []
    for name in sorted({*names[0], *names[1]}):
        if not all(name in of_run for of_run in names):
            said.append(f"probe {name}: only {'A' if name in names[0] else 'B'} has its numbers by case")
            continue
        folders = [Path(run) / "probes" / name for run in (a, b)]
        said += _settings(name, folders)
        found = list(_rows(name, folders, cases, seed))
        if not found:
            said.append(f"probe {name}: no case was probed in both runs")
        rows += [_finite(r) for r in adjust(found, f"{name}: A - B")]
    return rows, said


def _rows(name: str, folders: Sequence[Path], cases: Shared, seed: int) -> Iterator[dict[str, Any]]:
    from ..probes.contrast import paired
    from ..probes.tables import settled_cells

    (left, near), (right, _) = (_read(folder / "values.csv", cases) for folder in folders)
    for key in left:
        sides = settled_cells({"A": left[key], "B": right.get(key, {})})
        if sides["A"].keys() & sides["B"].keys():
            row = paired(sides, quantity=key[0], clusters=near, seed=seed).table[0]
            shared = [c for c in sides["A"] if c in sides["B"]]
            means = {side.lower(): sum(sides[side][c] for c in shared) / len(shared) for side in sides}
            yield {"probe": name, **row, "kind": key[1], **means}


def _read(path: Path, cases: Shared) -> tuple[Numbers, dict[str, str | None]]:
    """Values by quantity, kind and case (parts of one kind averaged), and the cases' clusters."""
    raw: dict[tuple[str, str], dict[str, list[float]]] = {}
    near: dict[str, str | None] = {}
    with path.open(encoding="utf-8", newline="") as f:
        for i, r in enumerate(csv.DictReader(f), start=2):
            try:
                case, role, value = r["case"], r["role"], float(r["value"])
                key = r["quantity"], r["kind"]
            except (KeyError, TypeError, ValueError) as e:
                raise InputError(f"{path}:{i}: no case, role, kind, quantity and value; run the probe again") from e
            if cases.comparable(case, role) and math.isfinite(value):
                raw.setdefault(key, {}).setdefault(case, []).append(value)
                near[case] = r.get("cluster") or None
    return {key: {c: sum(v) / len(v) for c, v in cell.items()} for key, cell in raw.items()}, near


def _settings(name: str, folders: Sequence[Path]) -> list[str]:
    """Where the two were not measured alike."""
    a, b = (read_json(folder / "result.json").get("settings", {}) for folder in folders)
    differ = [f"{k} {a.get(k)} and {b.get(k)}" for k in SETTINGS if a.get(k) != b.get(k)]
    return [f"probe {name}: measured with {', '.join(differ)}; these do not compare"] if differ else []


def _finite(row: Mapping[str, Any]) -> dict[str, Any]:
    """JSON has no NaN: undefined is null."""
    return {k: None if isinstance(v, float) and not math.isfinite(v) else v for k, v in row.items()}


def probe_lines(rows: Sequence[Mapping[str, Any]], said: Sequence[str], most: int = 5) -> list[str]:
    """As text: of each probe the rows with the smallest p first."""
    lines: list[str] = []
    for name in dict.fromkeys(r["probe"] for r in rows):
        mine = sorted((r for r in rows if r["probe"] == name), key=lambda r: (r["p"] is None, r["p"]))
        some = f", the first {most}; --json has all" if len(mine) > most else ""
        lines.append(f"probe {name}, {len(mine)} numbers on the cases probed in both{some}:")
        lines += [f"  {_line(r)}" for r in mine[:most]]
    return [*lines, *said]


def _line(r: Mapping[str, Any]) -> str:
    text = f"{r['quantity']} ({r['kind']}): A {r['a']:.3g}, B {r['b']:.3g}, n={r['n']}"
    if r["value"] is None:
        return f"{text}: {r['note']}"
    text += f", difference {r['value']:+.3g}"
    if r["low"] is not None:
        text += f" [{r['low']:+.3g}, {r['high']:+.3g}] ({r['interval']})"
    if r["effect"] is not None:
        text += f", g={r['effect']:.2f}"
    return text + ("" if r["p"] is None else f", {r['test']} p={r['p']:.3g} (Holm {r['p_adjusted']:.3g})")
