"""Tables of patching and cosines of a study's runs, with the printed numbers of Composition collapse (App. I)."""

from __future__ import annotations

import math
from typing import Any

from scipy import stats

from .published import beside
from .study import Row, Study

PATCHES = (
    ("patches that give the donor's answer", "flip_rate"),
    ("patches that give the right answer", "corrected_rate"),
)
"""The name in the table and the probe's quantity; the paper prints the first one."""


def rows(study: Study) -> list[Row]:
    """One row per run for the patches and one per layer for the cosines; a run without probes has its reason."""
    out: list[Row] = []
    for run in study.runs:
        patched, moved = run.run.probe("patching"), run.run.probe("trajectory")
        about = {"model": run.label, "data": run.data}
        if patched is None and moved is None:
            out.append({**about, "what": "not opened up", "shown": run.note or "no boundary set", "n": 0})
        if patched is not None:
            out += [{**about, **_patches(patched, what, quantity, run.model.model)} for what, quantity in PATCHES]
        if moved is not None:
            out += [{**about, **r} for r in _cosines(moved, run.model.model)]
    return out


def _patches(probe: Any, what: str, quantity: str, model: str) -> Row:
    """The number of patches with an effect over all layers; the layers of one pair are not independent cases."""
    found = [r for r in probe.rows(quantity, group="donor") if r.get("count") is not None]
    count, n = sum(int(r["count"]) for r in found), sum(int(r["n"]) for r in found)
    text, source = beside("composition-collapse", f"patch_{quantity}", {}, model)
    pairs = ", ".join(map(str, sorted({int(r["n"]) for r in found})))
    of = f" ({pairs} pairs × {len(found)} layers; no interval)" if found else ""
    shown = f"{count} of {n}{of}" if n else "undefined (no continuation holds an answer that can be judged)"
    return {"what": what, "shown": shown, "count": count, "n": n, "value": count / n if n else None,
            "published": text, "source": source}  # fmt: skip


def _cosines(probe: Any, model: str) -> list[Row]:
    """Prompt-end cosines in the first and last layer, within and across groups; step cosines, failure - success."""
    rows: list[Row] = []
    last = max((int(r["layer"]) for r in probe.rows("prompt_end_cosine")), default=0)
    for r in probe.rows("prompt_end_cosine"):
        if r["layer"] in (0, last) and r.get("value") is not None:
            rows.append(_cosine_row("prompt_end_cosine", r, int(r["layer"]), last, model, f"pairs {r['group']}, "))
    sides = [{int(r["layer"]): r for r in probe.rows("step_cosine", group=g)} for g in ("failure", "success")]
    for layer in sorted(set(sides[0]) & set(sides[1])):
        row = _difference(sides[0][layer], sides[1][layer])
        rows.append(_cosine_row("step_cosine_difference", row, layer, last, model))
    return rows


def _difference(a: Row, b: Row) -> Row:
    """a - b of two means over cases, with Welch's interval if both have a t interval."""
    if a.get("value") is None or b.get("value") is None:
        return {"value": None, "n": (a.get("n") or 0) + (b.get("n") or 0)}
    row: Row = {"value": a["value"] - b["value"], "n": a["n"] + b["n"]}
    if any(r.get("interval") != "t" or r.get("low") is None or r["n"] < 2 for r in (a, b)):
        return row
    squares = [((r["high"] - r["low"]) / 2 / stats.t.ppf(0.975, r["n"] - 1)) ** 2 for r in (a, b)]
    if not sum(squares):
        return row
    freedom = sum(squares) ** 2 / sum(q * q / (r["n"] - 1) for q, r in zip(squares, (a, b), strict=True))
    half = float(stats.t.ppf(0.975, freedom)) * math.sqrt(sum(squares))
    return {**row, "low": row["value"] - half, "high": row["value"] + half, "interval": "Welch t"}


def _cosine_row(what: str, r: Any, layer: int, last: int, model: str, where: str = "") -> Row:
    share = layer / last if last else 0.0
    text, source = beside("composition-collapse", what, {"depth_share": f"{share:.2f}"}, model)
    value, low, high = (r.get(k) for k in ("value", "low", "high"))
    ends = " (no interval)" if low is None or high is None else f" [{low:.4f}, {high:.4f}]"
    return {"what": what, "group": f"{where}layer {layer} of {last}", "n": r.get("n"), "value": value, "low": low,
            "high": high, "interval": r.get("interval"), "published": text, "source": source,
            "shown": "undefined" if value is None else f"{value:.4f}{ends}"}  # fmt: skip
