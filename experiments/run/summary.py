"""Runs in a few lines of text: headline metrics with n, interval and chance level; and a line for each of many."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ...errors import ComposcopeError, InputError
from ...evaluation.metrics import quoted
from .folder import is_run, read_json, read_lines

Row = Mapping[str, Any]

# Per protocol: what stands on the first lines, in order. Rows with a group are named with the keys that they may have.
HEADLINES: dict[str, tuple[tuple[str, tuple[str, ...]], ...]] = {
    "compositionality-gap": (
        ("step:0", ()),
        ("step:1", ()),
        ("both", ()),
        ("composition", ()),
        ("gap", ()),
        ("press_gap", ()),
    ),
    "double-gate": (
        ("atom_stability", ("per",)),
        ("double_gate", ()),
        ("residual_failure", ()),
        ("residual_failure", ("depth_bin",)),
        ("d50", ()),
    ),
}
_DIFFERENCES = (
    "gap",
    "distraction",
    "leakage",
    "conflation",
    "delta_atom",
    "delta_comp",
    "delta_depth",
    "independence_gap",
)
_PLAIN = ("d50", "mean_k", "mean_k_solvable")


def lines(run: str | Path) -> list[str]:
    """The headline of a run folder: what it is, its metrics, its case sets, its warnings."""
    run = Path(run)
    manifest, document = read_json(run / "manifest.json"), read_json(run / "metrics.json")
    model, benchmark = (manifest.get("identity", {}).get(key) for key in ("model", "benchmark"))
    out = [f"{run}: {model} on {benchmark} ({document['protocol']}), {state(manifest)}"]
    out += [f"  {metric_line(row)}" for row in headline(document)]
    out += [f"  {metric_line(row)}" for row in document["metrics"] if row["metric"] == "judge_agreement"]
    chance = mean_chance(run)
    if chance is not None:
        out.append(f"  chance level of the whole: {100 * chance:.1f} %")
    out += [f"  case set {name}: {n}" for name, n in case_set_sizes(run).items()]
    out += [f"  warning: {w}" for w in document.get("warnings", [])]
    return out


def state(manifest: Mapping[str, Any]) -> str:
    """How far a run is, in words: its status, or the limit that stopped it before all was asked."""
    stopped = manifest.get("stopped")
    return f"stopped by {stopped}" if stopped and manifest.get("status") == "complete" else str(manifest.get("status"))


def document(run: str | Path) -> dict[str, Any]:
    """What ``lines`` says, for machines; metrics as in ``metrics.json``, and which probes have results."""
    run = Path(run)
    manifest, metrics = read_json(run / "manifest.json"), read_json(run / "metrics.json")
    return {
        "schema": 1,
        "run": str(run),
        **{key: manifest.get("identity", {}).get(key) for key in ("model", "benchmark", "protocol")},
        "status": manifest.get("status"),
        "n_cases": manifest.get("n_cases"),
        "n_invalid": manifest.get("n_invalid"),
        "stopped": manifest.get("stopped"),
        "metrics": list(headline(metrics)),
        "chance": mean_chance(run),
        "case_sets": case_set_sizes(run),
        "probes": sorted(p.parent.name for p in run.glob("probes/*/result.json")),
        "warnings": metrics.get("warnings", []),
    }


def headline(document: Mapping[str, Any]) -> list[Row]:
    """The rows of ``metrics.json`` that stand on the first lines; every row for a protocol without a choice."""
    rows: Sequence[Row] = document["metrics"]
    wanted = HEADLINES.get(document["protocol"])
    if wanted is None:
        return [r for r in rows if not r["group"]]
    if not any("depth_bin" in r["group"] for r in rows):  # the benchmark declares no bins
        wanted = tuple((name, tuple("depth" if k == "depth_bin" else k for k in keys)) for name, keys in wanted)
    return [r for name, keys in wanted for r in rows if r["metric"] == name and tuple(r["group"]) == keys]


def metric_line(row: Row) -> str:
    """One metric as text: name, group, value, interval with its method, counts; never a value without n."""
    row = quoted(row)
    group = ", ".join(f"{k}={v}" for k, v in row["group"].items())
    name = row["metric"] + (f" [{group}]" if group else "")
    text = f"{name}: {_value(row['metric'], row['value'])}"
    if row.get("low") is not None and row.get("high") is not None:
        low, high = (_value(row["metric"], row[k]) for k in ("low", "high"))
        text += f" [{low}, {high}] ({row['interval']})"
    text += f", n={row['n']}"
    if row.get("n_invalid"):
        text += f", invalid={row['n_invalid']}"
    return text + (f" ({row['note']})" if row.get("note") else "")


def _value(metric: str, value: float | None) -> str:
    if value is None:
        return "undefined"
    if metric in _PLAIN:
        return f"{value:.2f}"
    return f"{100 * value:.1f} {'points' if metric in _DIFFERENCES else '%'}"


def mean_chance(run: str | Path) -> float | None:
    """Mean probability that a guess in the right format gets the whole right; None where the cases do not say."""
    path = Path(run) / "cases.jsonl"
    known = [c["chance"] for c in read_lines(path) if c.get("chance") is not None] if path.is_file() else []
    return sum(known) / len(known) if known else None


def case_set_sizes(run: str | Path) -> dict[str, int]:
    """Number of cases in each case set of a run."""
    return {p.stem: len(read_lines(p)) for p in sorted((Path(run) / "casesets").glob("*.jsonl"))}


def list_folder(folder: str | Path) -> list[dict[str, Any]]:
    """One row per run under a folder (two levels: a study folder holds several), sorted by path."""
    folder = Path(folder)
    if not folder.is_dir():
        raise InputError(f"{folder}: no such folder; give the folder that holds your runs")
    candidates = [folder, *folder.glob("*"), *folder.glob("*/*")]
    return [_row(p) for p in sorted(candidates) if p.is_dir() and is_run(p)]


def _row(run: Path) -> dict[str, Any]:
    row: dict[str, Any] = {"run": str(run), "status": "unreadable", "headline": None}
    try:
        manifest = read_json(run / "manifest.json")
        identity = manifest.get("identity", {})
        row |= {key: identity.get(key) for key in ("model", "benchmark", "protocol")}
        row |= {"status": manifest.get("status"), "cases": manifest.get("n_cases"), "created": manifest.get("created")}
        row |= {"stopped": manifest.get("stopped"), "state": state(manifest)}
        if (run / "metrics.json").is_file():
            row["headline"] = _headline(read_json(run / "metrics.json"))
    except ComposcopeError as e:
        row["error"] = str(e)
    return row


def _headline(document: Mapping[str, Any]) -> str | None:
    names = ("composition", "residual_failure")
    rows = [r for r in headline(document) if r["metric"] in names and not r["group"]]
    return metric_line(rows[0]) if rows else None


def listing_lines(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """The rows as text, one line each."""
    if not rows:
        return ["no runs here; make one with: composcope demo"]
    return [
        f"{r['run']}  {r.get('state') or r['status']}  {r.get('model')}  {r.get('benchmark')}  {r.get('protocol')}"
        f"  cases={r.get('cases')}  {r.get('headline') or r.get('error') or ''}".rstrip()
        for r in rows
    ]
