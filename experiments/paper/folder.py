"""Write the folder of `composcope paper`: figures, captions, tables, methods, claims, and a document with them all."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ...csv_files import to_csv
from ...hooks.progress import Bar, no_bar, stage, tick
from ..figures.catalog import FIGURES, of_runs
from ..figures.drawing import write as write_figure
from ..figures.look import Look
from ..report.headline import tables
from ..run import write_text
from ..run.reader import RunData, load
from . import latex
from .claims import FAILED, claims

_DOCUMENT = r"""\documentclass[10pt,twocolumn]{article}
\usepackage[T1]{fontenc}
\usepackage{booktabs,graphicx,longtable,xcolor}
\begin{document}
\input{methods}
\input{figures}
\onecolumn
\input{tables}
\input{claims}
\end{document}
"""
_CLAIMS = ("model", "benchmark", "claim", "n", "value", "interval", "p", "badge")


def write(
    runs: Sequence[str | Path | RunData], out: str | Path, *, gray: bool = False, progress: Bar = no_bar
) -> list[Path]:
    """Write the folder for runs (or studies); returns the files.

    Raises ``InputError`` for a folder that is not a run.
    """
    read, folder = load(runs), Path(out)
    with stage(progress, "drawing figures", len(FIGURES)):
        files, captions = _figures(read, folder / "figures", gray)
    made = claims(read)
    declared = [row for row in made if row["declared"]]
    failed = sum(row["badge"] == FAILED for row in declared)
    note = (
        "Claims with n, interval, p adjusted over the run's declared family, and whether the claim's probe passed "
        f"its own test; {failed} of {len(declared)} claims come from a probe that failed a test. "
        f"{len(made) - len(declared)} exploratory contrasts are in claims.csv."
    )
    texts = {
        "figures.tex": "\n".join(captions),
        "tables.tex": "\n".join(_headlines(read)),
        "claims.tex": latex.table([_marked(r) for r in declared], _CLAIMS, note, "tab:claims"),
        "claims.csv": to_csv(made),
        "methods.tex": "\n\n".join(latex.escaped(p) for p in methods(read)) + "\n",
        "main.tex": _DOCUMENT,
    }
    return [*files, *(write_text(folder / name, text) for name, text in texts.items())]


def _marked(row: dict[str, Any]) -> dict[str, Any]:
    return {**row, "badge": f"{row['badge']} ({row['why']})" if row["badge"] == FAILED else row["badge"]}


def _figures(runs: Sequence[RunData], folder: Path, gray: bool) -> tuple[list[Path], list[str]]:
    """Draw every report figure that the runs have data for: one panel at column width, several at page width."""
    files, captions = [], []
    for figure in FIGURES.values():
        tick(1)
        drawing = of_runs(figure(runs), runs) if figure.section else None
        if drawing is None or drawing.empty is not None:
            continue
        page = len([ax for ax in drawing.figure.axes if ax.get_title(loc="left")]) > 1
        files += write_figure(drawing, figure.name, folder, pdf=True, look=Look(
            "page" if page else "column", title=False, gray=gray))  # fmt: skip
        captions.append(latex.figure(figure.name, f"{figure.title}. {drawing.caption}", page))
    return files, captions


def _headlines(runs: Sequence[RunData]) -> list[str]:
    found = []
    for i, one in enumerate(tables(runs)):
        rows = [
            {"model": row["model"], **{
                name: f"{c['shown']} {c['interval']} ({c['count']})" if c else ""
                for name, c in zip(one["columns"], row["cells"], strict=True)
            }} for row in one["rows"]
        ]  # fmt: skip
        chance = f" Chance level: {one['chance']}." if one["chance"] else ""
        said = f"{one['benchmark']}, protocol {one['protocol']}: values with 95 % intervals and counts.{chance}"
        found.append(latex.table(rows, ["model", *one["columns"]], said, f"tab:headline-{i + 1}"))
    return found


def methods(runs: Sequence[RunData]) -> list[str]:
    """The methods text for each run: model, data, protocol, prompts, intervals, probes, versions."""
    out = []
    for run in runs:
        m, config = run.manifest, run.config
        about = [f"{run.model} was asked {len(run.cases)} cases of {run.benchmark} with the protocol {run.protocol}"]
        if config is not None:
            form = f", prompt format {config.format}" if config.format else ""
            about.append(f"(prompting {config.prompting or 'as the tokenizer has it'}{form}, seed {run.seed})")
        invalid = sum(g.outcome == "invalid" for g in run.graded)
        said = (
            " ".join(about)
            + f"; {invalid} of {len(run.graded)} answers could not be judged and are left out of the rates."
        )
        intervals = sorted({str(x.interval) for x in run.metrics if x.low is not None and x.interval})
        said += f" Intervals are 95 % intervals ({', '.join(intervals)})." if intervals else ""
        if run.probe_names:
            said += (
                f" Probes ({', '.join(run.probe_names)}) compare failures whose parts are all right with successes "
                "matched on family, depth, operation and length; p-values are adjusted over one declared family."
            )
        versions = ", ".join(f"{k} {v}" for k, v in m.versions.items() if v)
        weights = str(m.identity.get("weights") or "")[:12]
        said += f" Weights {weights or 'unstated'}, composcope {m.composcope.get('version', 'unstated')}, {versions}."
        out.append(said)
    return out
