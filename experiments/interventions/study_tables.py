"""Turns the study's runs into tables (failure by depth, channels against the base, transfer, curves) and Markdown.

Every number of a variant is a mean over trainings with Student's 95 % interval over seeds (none for a single seed); the
counts of each seed are kept with it. Differences are taken case by case against the base (``protocols.compare``).
``delta_comp`` is residual failure after minus before, and has no value if atom stability moved by more than two points;
``delta_depth`` is d50 after minus before.
"""

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from ...evaluation.metrics import find
from ...evaluation.protocols.compare import compare
from ...files import Row
from ..console.printing import markdown_table
from ..organism.weights import called
from ..run import provenance, read_json, write_json, write_text
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
    results = [_plain("dose", name, None, path) for name, path in doses.items()]
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
        atoms = [r["atoms"] for r in rows if r["atoms"] and r["atoms"]["n"]]
        found["atoms"] = interval([a["k"] / a["n"] for a in atoms], 0.0, 1.0)
        for key in ("delta_atom", "gain_seen", "gain_held", "ratio"):
            found[key] = interval([r[key] for r in rows if r.get(key) is not None])
        shifts = [r["delta_depth"]["value"] for r in rows if r.get("delta_depth")]
        found["delta_depth"] = interval([s for s in shifts if s is not None]) | {"of": len(shifts)}
        out.append(found)
    return out


def interval(values: Sequence[float], low: float = -math.inf, high: float = math.inf) -> Row:
    """Mean and Student's 95 % interval over trainings, cut to the possible range; none for one value, or equal ones."""
    n = len(values)
    if not n:
        return {"seeds": 0, "value": None, "low": None, "high": None}
    mean = sum(values) / n
    if max(values) == min(values):  # other trainings may differ, which these do not show
        return {"seeds": n, "value": mean, "low": None, "high": None}
    from scipy.stats import t

    sd = math.sqrt(sum((v - mean) ** 2 for v in values) / (n - 1))
    half = float(t.ppf(0.975, n - 1)) * sd / math.sqrt(n)
    return {"seeds": n, "value": mean, "low": max(low, mean - half), "high": min(high, mean + half)}


def write(found: Findings, folder: Path) -> None:
    """``study.json`` and ``study.md``."""
    write_json(folder / "study.json", found.to_dict())
    write_text(folder / "study.md", "\n".join(markdown(found)) + "\n")


def markdown(found: Findings) -> list[str]:
    """All tables that have rows."""
    pieces = [_residual(found.summary), _channel_lines(found.summary), _transfer(found.summary)]
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
    return [f"**{title}**", "", *markdown_table(head, rows), ""]


def _variant(row: Row) -> str:
    """What was trained; a shipped dose with its share of compositions."""
    return called(row["variant"]) if row["base"] == "dose" else str(row["variant"])


def _residual(summary: Sequence[Row]) -> list[str]:
    rows = []
    for s in summary:
        sizes = "/".join(str(min(s[f"residual {d}"]["n"], default=0)) for d in BINS)
        cells = [_failure(s[f"residual {d}"]) for d in BINS]
        rows.append([s["base"], _variant(s), str(s["seeds"]), *cells, sizes, _number(s["atoms"])])
    head = ["base", "variant", "trainings", *(f"depth {d}" for d in BINS), "n (least, by depth)", "stable facts"]
    return _table("Residual failure by depth, % (mean over trainings [95 %])", head, rows)


def _channel_lines(summary: Sequence[Row]) -> list[str]:
    rows = []
    for s in summary:
        if s["delta_atom"]["value"] is None:
            continue
        cells = [_number(s[f"delta_comp {d}"], sign=True) for d in BINS]
        matched = f"{s['delta_comp 4']['seeds']}/{s['delta_comp 4']['of']}"
        depth = _number(s["delta_depth"], 1.0, 2, True)
        rows.append([s["base"], _variant(s), _number(s["delta_atom"], sign=True), matched, *cells, depth])
    head = ["base", "variant", "Δatom", "matched trainings", *(f"Δcomp, depth {d}" for d in BINS), "Δdepth"]
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
    table = []
    for r in rows:
        values = ("–" if v is None else f"{v:.3f}" for v in (r["before"], r["after"]))
        table.append([r["variant"], r["quantity"], str(r["n"]), *values, _number(r, 1.0, 3, sign=True)])
    head = ["variant", "quantity", "n", "before", "after", "after - before [95 %]"]
    return _table("Inside, the same cases before and after (one training each)", head, table)
