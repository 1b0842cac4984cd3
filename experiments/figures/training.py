"""Figures over training: accuracy over training steps, and the number of each probe over the dose of compositions.

The first is drawn from files of checkpoints (``training_curve.json`` of ``composcope intervene``, or a csv with the
same columns): rows of ``run, recipe, step, metric, k, n``, where k of n answers are right.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

from matplotlib.axes import Axes

from ...errors import InputError
from ...evaluation import text_files
from ...evaluation.statistics import share
from ...files import read_csv
from ..organism.weights import AXIS, DOSES, called, percent
from ..run.reader import Row, RunData
from . import style
from .drawing import CURVE, Drawing, caption, curves, drawn, encodable, figure, need
from .grouping import panels_of

FILE = "training_curve.json"
_COLUMNS = ("recipe", "step", "metric", "k", "n")


@dataclass(frozen=True)
class Checkpoints:
    """The rows of one file."""

    path: Path
    rows: Sequence[Row]


def read_checkpoints(paths: Sequence[str | Path | RunData]) -> list[Checkpoints | RunData]:
    """Read checkpoint files, or folders that contain them one level down. Raises ``InputError`` naming the row."""
    found: list[Checkpoints | RunData] = []
    for path in paths:
        if isinstance(path, RunData):
            found.append(path)
            continue
        files = [Path(path)] if Path(path).is_file() else _files(Path(path))
        found += [Checkpoints(f, _read(f)) for f in files]
    if not found:
        said = ", ".join(map(str, paths)) or "nothing given"
        raise InputError(f"{said}: no {FILE} found; give the file, or a folder of `composcope intervene`")
    return found


def _of_study(runs: Sequence[RunData]) -> list[Checkpoints]:
    """The checkpoint file of an intervention study, which is next to the study's ``runs/`` folder."""
    folders = dict.fromkeys(r.path.parent.parent for r in runs if r.path.parent.name == "runs")
    return [Checkpoints(f / FILE, _read(f / FILE)) for f in folders if (f / FILE).is_file()]


def _files(folder: Path) -> list[Path]:
    if not folder.is_dir():
        raise InputError(f"{folder}: no such file or folder; give {FILE} or a csv with {', '.join(_COLUMNS)}")
    return sorted(p for pattern in (FILE, f"*/{FILE}") for p in folder.glob(pattern))


def _read(path: Path) -> list[Row]:
    if path.suffix == ".csv":
        raw: Any = [row for _, row in text_files.table(path, f"give {', '.join(_COLUMNS)}")[1]]
    else:
        raw = text_files.document(path, "give a list of checkpoints")
        raw = raw.get("rows", raw) if isinstance(raw, dict) else raw
    if not isinstance(raw, list) or not raw:
        raise InputError(f"{path}: no rows; give a list of objects with {', '.join(_COLUMNS)}")
    return [_checked(row, f"{path}: row {i}") for i, row in enumerate(raw, 1)]


def _checked(raw: Any, where: str) -> Row:
    missing = [c for c in _COLUMNS if not isinstance(raw, dict) or raw.get(c) in (None, "")]
    if missing:
        raise InputError(f"{where}: field {missing[0]!r} is missing; every row has {', '.join(_COLUMNS)}")
    try:
        numbers = [float(raw[c]) for c in ("step", "k", "n")]
    except (TypeError, ValueError) as e:
        raise InputError(f"{where}: step, k and n are whole numbers ({e})") from e
    if not all(map(float.is_integer, numbers)):
        raise InputError(f"{where}: step, k and n are {raw['step']}, {raw['k']} and {raw['n']}; give whole numbers")
    step, k, n = map(int, numbers)
    if not 0 <= k <= n:
        raise InputError(f"{where}: k is {k} and n is {n}; k counts the right answers among n, so give 0 <= k <= n")
    return {"run": str(raw.get("run") or ""), "recipe": str(raw["recipe"]), "metric": str(raw["metric"]), "step": step,
            "count": k, **share(k, n)}  # fmt: skip


@figure("training-curve", "Accuracy over training", CURVE, "optional", 33, read=read_checkpoints)
def training_curve(sources: Sequence[Checkpoints | RunData]) -> Drawing:
    """Accuracy over training steps, one panel per recipe, one line per metric (Compositional GSM, Fig. 7).

    For runs, the checkpoints come from the study that they belong to.
    """
    runs = [s for s in sources if isinstance(s, RunData)]
    files = [s for s in sources if isinstance(s, Checkpoints)] or _of_study(runs)
    by_file = [[dict(row) for row in f.rows] for f in files]  # two files may have trainings of one name
    rows = [row for some in by_file for row in some]
    need(rows, f"No checkpoints here; give {FILE} of `composcope intervene`, or a csv with {', '.join(_COLUMNS)}.")
    recipes, metrics = (list(dict.fromkeys(r[k] for r in rows)) for k in ("recipe", "metric"))
    runs = list(dict.fromkeys(r["run"] for r in rows))
    fig, panels = style.grid_of(1, len(recipes), 4.2, 3.4, sharey=True)
    for ax, recipe in zip(panels[0], recipes, strict=True):
        mine = [r for r in rows if r["recipe"] == recipe]
        steps = sorted({r["step"] for r in mine})
        reach = (steps[-1] - steps[0]) or 1
        for i, metric in enumerate(metrics):
            for some, run in product(by_file, runs):
                wanted = (recipe, metric, run)
                found = (r for r in some if (r["recipe"], r["metric"], r["run"]) == wanted)
                line = sorted(found, key=lambda r: r["step"])
                nudged = [r["step"] + (i - (len(metrics) - 1) / 2) * 0.008 * reach for r in line]
                style.points(ax, line, nudged, style.color(i), metric)
        style.percent(ax)
        style.dress(ax, recipe, "training step", "accuracy" if ax is panels[0][0] else "")
    style.shared_legend(fig)
    text = "Accuracy at each checkpoint, one panel per recipe; each training of a recipe has its own line."
    made = (
        f"Checkpoints: {', '.join(str(f.path) for f in files)}. Runs: {', '.join(r for r in runs if r) or 'unnamed'}."
    )
    said = caption(text, rows, [], "{recipe}, {metric}, step {step}").replace("Runs: .", made)
    chart = curves("step", "metric", panel="recipe", xlabel="training step", ylabel="accuracy", percent=True)
    return Drawing(style.finished(fig), rows, encodable(said), chart)


_EMPTY = (None, "", "None", "nan")
OVER = "all"
"""The value in the seed column of rows that are over several trainings."""


@figure("dose-response", "Probes over the dose series", "composcope study validity", "optional", 32)
def dose_response(runs: Sequence[RunData]) -> Drawing:
    """Mean of each probe's number per dose; several trainings are thin lines, and their mean is a thick line."""
    table = next((t for r in runs if (t := r.path.parent / "validity" / "table.csv").is_file()), None)
    raw = _raw(table) if table is not None else []
    runs = [r for r in runs if table is not None and r.path.parent == table.parent.parent]
    rows = _dose_rows(raw)
    need(rows, "No validity table with these runs; `composcope study validity` makes one.")
    quantities = list(dict.fromkeys(r["quantity"] for r in rows))
    seeds = list(dict.fromkeys(s for r in rows if (s := r.get("seed")) not in (None, OVER)))
    fig, panels = panels_of(len(quantities), 2.7, 2.5, across=3)
    for ax, quantity in zip(panels, quantities, strict=False):
        mine = [r for r in rows if r["quantity"] == quantity]
        doses = list(dict.fromkeys(r["dose"] for r in mine))
        place = {dose: i for i, dose in enumerate(doses)}
        if seeds:
            _trainings(ax, mine, seeds, place)
        else:
            style.points(ax, mine, range(len(mine)), style.color(0), "")
        ax.set_xticks(range(len(doses)), [percent(d) if d in DOSES else style.plain(d, 12) for d in doses])
        style.dress(ax, style.lines(quantity, 26))
    fig.supxlabel(AXIS, fontsize=8.5, color=style.MUTED)
    text = (
        "Each probe's number on the wholes whose parts every dose knows, mean over cases, by the share of compositions "
        f"in the last training stage ({', '.join(called(d) for d in dict.fromkeys(r['dose'] for r in rows))})."
    )
    if not seeds:
        return drawn(fig, rows, text, runs, "{quantity}, {dose}")
    style.shared_legend(fig)
    examined = dict.fromkeys(s for r in raw if (s := r.get("seed")) not in (None, "", OVER))
    absent = [s for s in examined if s not in seeds]
    return Drawing(style.finished(fig), rows, _dose_caption(text, rows, seeds, absent, runs))


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


def _dose_caption(
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


def _dose_rows(raw: Sequence[dict[str, str]]) -> list[Row]:
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
