"""The figure of each probe's number over the dose of compositions in training (the validity study)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from matplotlib.axes import Axes

from ...csv_files import read_csv
from ..organism.doses import AXIS, DOSES, called, percent
from ..run.reader import Row, RunData
from . import style
from .drawing import Drawing, caption, drawn, need
from .figure import figure

_EMPTY = (None, "", "None", "nan")
OVER = "all"
"""The value in the seed column of rows that are over several trainings."""


@figure("dose-response", "Probes over the dose series", "composcope study validity", "optional", 32)
def dose_response(runs: Sequence[RunData]) -> Drawing:
    """Mean of each probe's number per dose; several trainings are thin lines, and their mean is a thick line."""
    table = next((t for r in runs if (t := r.path.parent / "validity" / "table.csv").is_file()), None)
    raw = _raw(table) if table is not None else []
    rows = _read(raw)
    need(rows, "No validity table with these runs; `composcope study validity` makes one.")
    quantities = list(dict.fromkeys(r["quantity"] for r in rows))
    seeds = list(dict.fromkeys(s for r in rows if (s := r.get("seed")) not in (None, OVER)))
    fig, panels = style.grid_of(1, len(quantities), 2.7, 2.8)
    for ax, quantity in zip(panels[0], quantities, strict=True):
        mine = [r for r in rows if r["quantity"] == quantity]
        doses = list(dict.fromkeys(r["dose"] for r in mine))
        place = {dose: i for i, dose in enumerate(doses)}
        if seeds:
            _trainings(ax, mine, seeds, place)
        else:
            style.points(ax, mine, range(len(mine)), style.color(0), "")
        ax.set_xticks(range(len(doses)), [percent(d) if d in DOSES else style.plain(d, 12) for d in doses])
        style.dress(ax, style.lines(quantity, 26), AXIS)
    text = (
        "Each probe's number on the wholes whose parts every dose knows, mean over cases, by the share of compositions "
        f"in the last training stage ({', '.join(called(d) for d in dict.fromkeys(r['dose'] for r in rows))})."
    )
    if not seeds:
        return drawn(fig, rows, text, runs, "{quantity}, {dose}")
    style.shared_legend(fig)
    examined = dict.fromkeys(s for r in raw if (s := r.get("seed")) not in (None, "", OVER))
    absent = [s for s in examined if s not in seeds]
    return Drawing(style.finished(fig), rows, _caption(text, rows, seeds, absent, runs))


def _trainings(ax: Axes, rows: Sequence[Row], seeds: Sequence[str], place: dict[str, int]) -> None:
    """A thin line per training and a thick line for their mean, with an interval if the trainings give one."""
    for i, seed in enumerate(seeds):
        known = [r for r in rows if r["seed"] == seed and r["value"] is not None]
        ax.plot([place[r["dose"]] for r in known], [r["value"] for r in known], "o-", color=style.color(i + 1),
                linewidth=0.8, markersize=2.5, alpha=0.8, zorder=2, label=f"seed {seed}")  # fmt: skip
    means = [r for r in rows if r["seed"] == OVER and r["value"] is not None]
    shade = style.color(0)
    ax.plot([place[r["dose"]] for r in means], [r["value"] for r in means], "o-", color=shade, linewidth=2.6,
            markersize=5.5, zorder=4, label="mean over trainings")  # fmt: skip
    for r in means:
        if r["low"] is not None and r["high"] is not None:
            x = place[r["dose"]]
            ax.plot([x, x], [r["low"], r["high"]], color=shade, linewidth=1.5, alpha=0.65, zorder=3)


def _caption(
    text: str, rows: Sequence[Row], seeds: Sequence[str], absent: Sequence[str], runs: Sequence[RunData]
) -> str:
    """Explain thin and thick lines, and name the trainings that are not drawn or that lack a dose."""
    single = [r for r in rows if r["seed"] != OVER]
    means = [r for r in rows if r["seed"] == OVER]
    thin = (
        f"Thin lines: each of n = {len(seeds)} trainings (seeds {', '.join(seeds)}). Thick line: their mean, with an "
        "interval over trainings, which is wide for so few. Intervals over the cases of each training are in the csv."
    )
    fewer = [f"{r['quantity']}, {r['dose']} (n={r['n']} trainings)" for r in means if r["n"] < len(seeds)]
    without = f" Undefined, not drawn: seed {', '.join(absent)}." if absent else ""
    said = f"{text} {thin}{without}" + (f" Means over fewer trainings: {'; '.join(fewer)}." if fewer else "")
    return caption(said, single, runs, intervals=style.interval_methods(means))


def _raw(path: Path) -> list[dict[str, str]]:
    """Rows of probes; nulls and confounds are only in the table."""
    mine = [r for r in read_csv(path)[1] if r.get("question") == "follows the dose"]
    return [r for r in mine if r.get("kind") in (None, "", "probe")]


def _read(raw: Sequence[dict[str, str]]) -> list[Row]:
    found: list[Row] = []
    for r in raw:
        if r.get("verdict") or not r.get("group"):
            continue  # the trend over the doses, not a dose
        numbers = {k: float(r[k]) if r.get(k) not in _EMPTY else None for k in ("value", "low", "high")}
        seed = {"seed": r["seed"]} if r.get("seed") else {}
        share = {"percent": float(percent(r["group"]))} if r["group"] in DOSES else {}
        found.append({"quantity": r["quantity"], "dose": r["group"], **share, **seed,
                      "n": int(float(r["n"] or 0)), **numbers, "interval": r.get("interval")})  # fmt: skip
    return found
