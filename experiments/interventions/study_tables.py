"""Turns the study's runs into its tables: residual failure by depth, channels against the base, transfer, curves.

Every number of a variant is a mean over trainings with Student's 95 % interval over seeds (none for a single seed); the
counts of each seed are kept with it. Differences are taken case by case against the base (``protocols.compare``).
``delta_comp`` is residual failure after minus before, and has no value if atom stability moved by more than two points;
``delta_depth`` is d50 after minus before.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from ...csv_files import Row
from ...evaluation.metrics import find
from ...evaluation.protocols.compare import compare
from ..run import provenance, read_json
from ..run.reader import read_run

BINS = (2, 4, 6, 8)
Done = tuple[str, str, tuple[int, ...], int, Path]
"""base, variant, trained depths, seed, run folder"""


@dataclass(frozen=True)
class Findings:
    """Everything that the study has found so far."""

    about: Row
    results: list[Row]
    """One row per base, variant and seed: counts by depth, atoms, channels, gains."""
    summary: list[Row]
    """One row per base and variant: means over seeds with intervals."""
    curve: list[Row] = field(default_factory=list)
    inside: list[Row] = field(default_factory=list)

    def to_dict(self) -> Row:
        return asdict(self)


def collect(
    study: Any, done: Sequence[Done], baselines: Mapping[str, Path], doses: Mapping[str, Path],
    curve: Sequence[Row], folder: Path,
) -> Findings:  # fmt: skip
    """Build the tables from the finished runs."""
    loaded = {base: read_run(path).evaluated() for base, path in baselines.items()}
    results = [_plain("dose", name, None, path) for name, path in doses.items() if path.is_dir()]
    plain = {base: _plain(base, "baseline", None, path) for base, path in baselines.items()}
    results += plain.values()
    for base, variant, depths, seed, path in done:
        row = _plain(base, variant, seed, path)
        other = loaded[base]
        row |= _channels(read_run(path).evaluated(), other)
        row |= transfer(row["residual"], plain[base]["residual"], depths)
        results.append(row | {"depths": list(depths)})
    inside = [row for file in sorted((folder / "inside").glob("*/inside.json")) for row in read_json(file)["rows"]]
    about = {
        "study": asdict(study),
        "composcope": provenance.code(),
        "versions": provenance.libraries((*provenance.LIBRARIES, "trl", "peft")),
        "machine": provenance.machine(),
    }
    return Findings(about, results, summarize(results), list(curve), inside)


def _plain(base: str, variant: str, seed: int | None, path: Path) -> Row:
    """Counts of one run: residual failure by depth bin, facts stable in every wording, d50."""
    metrics = read_run(path).metrics
    residual = {}
    for depth in BINS:
        row = find(metrics, "residual_failure", depth_bin=depth) or find(metrics, "residual_failure", depth=depth)
        if row is not None:
            residual[str(depth)] = {"k": int(row.count or 0), "n": row.n, "low": row.low, "high": row.high}
    atoms, d50 = find(metrics, "atom_stability", per="fact"), find(metrics, "d50")
    return {
        "base": base,
        "variant": variant,
        "seed": seed,
        "residual": residual,
        "atoms": {"k": int(atoms.count or 0), "n": atoms.n} if atoms else None,
        "d50": {"value": d50.value, "note": d50.note} if d50 else None,
    }


def _channels(after: Any, before: Any) -> Row:
    found = compare(after.graded, before.graded, dict(before.cases))
    by_bin = {str(d): find(found.metrics, "delta_comp", depth_bin=d) for d in BINS}
    atom, depth = find(found.metrics, "delta_atom", per="fact"), find(found.metrics, "delta_depth")
    return {
        "delta_atom": atom.value if atom else None,
        "delta_comp": {d: _value(m) for d, m in by_bin.items() if m is not None},
        "delta_depth": {"value": depth.value, "note": depth.note} if depth else None,
        "warnings": list(found.warnings),
    }


def _value(metric: Any) -> Row:
    return {"value": metric.value, "low": metric.low, "high": metric.high, "note": metric.note}


def transfer(after: Mapping[str, Row], before: Mapping[str, Row], depths: Sequence[int]) -> Row:
    """Mean drop of residual failure over trained and over held-out depths, and their ratio.

    Depth 2 is the control, at which the base hardly fails, so it is in neither mean. The ratio (Composition collapse,
    section 5, conclusion 3) has no value if nothing is held out or if nothing was gained on the trained depths.
    """
    gains: dict[bool, list[float]] = {True: [], False: []}
    for depth in after:
        a, b = after[depth], before.get(depth)
        if int(depth) > 2 and b and a["n"] and b["n"]:
            gains[int(depth) in depths].append(b["k"] / b["n"] - a["k"] / a["n"])
    seen, held = ((sum(g) / len(g) if g else None) for g in (gains[True], gains[False]))
    ratio = held / seen if seen is not None and held is not None and seen > 0 else None
    return {"gain_seen": seen, "gain_held": held, "ratio": ratio}


def summarize(results: Sequence[Row]) -> list[Row]:
    """Means over seeds with Student's interval, one row per base and variant, in order of appearance."""
    groups: dict[tuple[str, str], list[Row]] = defaultdict(list)
    for row in results:
        groups[row["base"], row["variant"]].append(row)
    out = []
    for (base, variant), rows in groups.items():
        found: Row = {"base": base, "variant": variant, "seeds": len(rows)}
        for depth in BINS:
            cells = [r["residual"][str(depth)] for r in rows if str(depth) in r["residual"]]
            found[f"residual {depth}"] = interval([c["k"] / c["n"] for c in cells if c["n"]], 0.0, 1.0) | {
                "k": [c["k"] for c in cells],
                "n": [c["n"] for c in cells],
            }
            deltas = [r["delta_comp"].get(str(depth), {}).get("value") for r in rows if "delta_comp" in r]
            found[f"delta_comp {depth}"] = interval([d for d in deltas if d is not None]) | {"of": len(deltas)}
        found["atoms"] = interval([r["atoms"]["k"] / r["atoms"]["n"] for r in rows if r["atoms"]], 0.0, 1.0)
        for key in ("delta_atom", "gain_seen", "gain_held", "ratio"):
            found[key] = interval([r[key] for r in rows if r.get(key) is not None])
        shifts = [r["delta_depth"]["value"] for r in rows if r.get("delta_depth")]
        found["delta_depth"] = interval([s for s in shifts if s is not None]) | {"of": len(shifts)}
        out.append(found)
    return out


def interval(values: Sequence[float], low: float = -math.inf, high: float = math.inf) -> Row:
    """Mean and Student's 95 % interval over trainings, cut to the possible range; no interval for one value."""
    n = len(values)
    if not n:
        return {"seeds": 0, "value": None, "low": None, "high": None}
    mean = sum(values) / n
    if n == 1:
        return {"seeds": 1, "value": mean, "low": None, "high": None}
    from scipy.stats import t

    sd = math.sqrt(sum((v - mean) ** 2 for v in values) / (n - 1))
    half = float(t.ppf(0.975, n - 1)) * sd / math.sqrt(n)
    return {"seeds": n, "value": mean, "low": max(low, mean - half), "high": min(high, mean + half)}
