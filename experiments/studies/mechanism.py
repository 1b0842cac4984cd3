"""What patching and cosines of a study's runs say, beside what Composition collapse prints (App. I)."""

from __future__ import annotations

import math
from typing import Any

from .published import beside
from .results import Row
from .running import Study


def rows(study: Study) -> list[Row]:
    """One row a run for the patches, and one a layer for the cosines; a run that was not opened up says why."""
    out: list[Row] = []
    for run in study.runs:
        patched, moved = run.run.probe("patching"), run.run.probe("trajectory")
        about = {"model": run.label, "data": run.data}
        if patched is None and moved is None:
            note = run.run.manifest.get("probe_note") or "no boundary set"
            out.append({**about, "what": "not opened up", "shown": note, "n": 0})
        if patched is not None:
            found = [r for r in patched.rows("corrected_rate", group="donor") if r.get("count") is not None]
            count, n = sum(int(r["count"]) for r in found), sum(int(r["n"]) for r in found)
            text, source = beside(study.preset.name, "patch_corrected", {}, run.model.model)
            what = "patches that give the right answer"
            of = f" ({n // len(found)} cases × {len(found)} layers; no interval)" if found else ""
            out.append({**about, "what": what, "shown": f"{count} of {n}{of}", "count": count,
                        "n": n, "value": count / n if n else None, "published": text, "source": source})  # fmt: skip
        if moved is not None:
            out += [{**about, **r} for r in _cosines(moved, run.model.model)]
    return out


def _cosines(probe: Any, model: str) -> list[Row]:
    """Prompt-end cosines at both ends of the model, within groups and across; step cosines, failure - success."""
    rows: list[Row] = []
    last = max((int(r["layer"]) for r in probe.rows("prompt_end_cosine")), default=0)
    for r in probe.rows("prompt_end_cosine"):
        if r["layer"] in (0, last) and r.get("value") is not None:
            rows.append(_cosine_row("prompt_end_cosine", r, int(r["layer"]), last, model, f"pairs {r['group']}, "))
    steps = {g: m for g, m in probe.named("step").items() if g in ("failure", "success")}
    if len(steps) == 2:
        for layer in range(len(steps["failure"])):
            means = [_mean(steps[g][layer]) for g in ("failure", "success")]
            value = None if None in means else means[0] - means[1]  # type: ignore[operator]
            row = {"value": value, "n": int(probe.tensors["step_n.failure"][0] + probe.tensors["step_n.success"][0])}
            rows.append(_cosine_row("step_cosine_difference", row, layer, last, model))
    return rows


def _mean(values: Any) -> float | None:
    known = [float(v) for v in values if not math.isnan(float(v))]
    return sum(known) / len(known) if known else None


def _cosine_row(what: str, r: Any, layer: int, last: int, model: str, where: str = "") -> Row:
    share = layer / last if last else 0.0
    text, source = beside("composition-collapse", what, {"depth_share": f"{share:.2f}"}, model)
    value, low, high = (r.get(k) for k in ("value", "low", "high"))
    ends = " (no interval)" if low is None or high is None else f" [{low:.4f}, {high:.4f}]"
    return {"what": what, "group": f"{where}layer {layer} of {last}", "n": r.get("n"), "value": value, "low": low,
            "high": high, "interval": r.get("interval"), "published": text, "source": source,
            "shown": "undefined" if value is None else f"{value:.4f}{ends}"}  # fmt: skip
