"""Writing the report folder: ``report.html``, ``assets/``, ``data/*.js`` and ``figures/``.

The page is rendered with autoescaping and holds no model text; answers, prompts and names from outside go into data
scripts and reach the page as text nodes only. A figure or probe that cannot be drawn is said in its place.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from ..figures import catalog
from ..figures.drawing import Drawing, encodable, words
from ..figures.drawing import write as write_figure
from ..figures.grouping import labels
from ..probing.catalog import described
from ..run import write_text
from ..run.reader import RunData, load
from . import cases, checks, headline, not_run, others, pictures, sections
from .scripts import write_script

_HERE = Path(__file__).parent
SCRIPTS = ("colors.js", "arrays.js", "heatmap.js", "lines.js", "charts.js", "tokens.js", "attention.js", "pictures.js",
           "chooser.js", "case.js", "filters.js", "cases.js", "main.js", "anchors.js")  # fmt: skip
"""In the order in which they build on each other, after ``core.js``."""


def write(runs: Iterable[str | Path | RunData], out: str | Path) -> Path:
    """Write the report over one or more runs (or study folders) and return the path of ``report.html``.

    Raises ``InputError`` for a folder that is no run; what a run lacks is said on the page.
    """
    given = list(runs)
    data = load(given)
    for run in data:  # before anything of an older report is removed
        run.read_all()
    folder = Path(out)
    # Only what a report wrote before: the folder may be the user's own and hold more.
    for old in ("assets", "data/cases", "data/pictures"):
        shutil.rmtree(folder / old, ignore_errors=True)
    for old_file in (folder / "data").glob("*.js"):
        old_file.unlink()
    drawings = {name: _drawn(name, data) for name in catalog.FIGURES}
    shown = {name: _write_drawing(name, d, folder) for name, d in drawings.items()}
    found = cases.collect(data)
    drawn = pictures.collect(data)
    for name, value in {"cases": found.index, **found.chunks, "pictures": drawn.index, **drawn.files}.items():
        write_script(folder / "data", name, value)
    copy_assets(folder / "assets")
    near = [folder, *(Path(g) for g in given if not isinstance(g, RunData)), *(r.path.parent for r in data)]
    page = _page(data, shown, found, *checks.read_validity(near))
    return write_text(folder / "report.html", encodable(page))


def _drawn(name: str, runs: Sequence[RunData]) -> Drawing:
    try:
        return catalog.of_runs(catalog.FIGURES[name](runs), runs)
    except Exception as e:
        # One probe's unexpected table, or a plugin's figure, must not take the whole report with it; the place says
        # what went wrong.
        return words(f"This figure could not be drawn: {type(e).__name__}: {e}", runs)


def _write_drawing(name: str, drawing: Drawing, folder: Path) -> dict[str, Any]:
    """Write one figure and its rows; returns what the template needs."""
    if drawing.empty is None:
        write_figure(drawing, name, folder / "figures", dark=True)
        columns = list(dict.fromkeys(k for row in drawing.rows for k in row))
        rows = [[row.get(c) for c in columns] for row in drawing.rows]
        write_script(folder / "data", f"figure-{name}", {"columns": columns, "rows": rows, "chart": drawing.chart})
    return {"id": name, "title": catalog.FIGURES[name].title, "caption": drawing.caption, "empty": drawing.empty,
            "interactive": drawing.chart is not None, "alt": catalog.FIGURES[name].title}  # fmt: skip


def _page(
    runs: Sequence[RunData], shown: dict[str, dict[str, Any]], found: cases.CaseData,
    validity: list[dict[str, Any]], notes: list[str],
) -> str:  # fmt: skip
    answers = [v for v in validity if v["headline"]]
    probes = [
        {"section": s, "figures": [shown[f] for f in _in(s.name)], "table": sections.probe_rows(runs, s.name),
         "notes": sections.probe_notes(runs, s.name), "validity": [v for v in answers if _about(v["probe"], s.folder)],
         "own": checks.own_checks(runs, s), "nothing": s.unchecked}
        for s in described()
        if any(r.probe(s.name) for r in runs)
    ]  # fmt: skip
    foreign = [{"section": o, "figures": [shown[f] for f in others.figures_of(o.name)]} for o in others.collect(runs)]
    placed = {f["id"] for o in foreign for f in o["figures"]}
    first, further, optional = (
        [shown[f] for f in _in(section) if f not in placed] for section in ("first", "behavior", "optional")
    )
    return (
        environment()
        .get_template("report.html.j2")
        .render(
            runs=runs,
            names=labels(runs),
            tables=headline.tables(runs),
            caveats=headline.caveats(runs, validity),
            behavior=[f for f in first if f["empty"] is None],
            further=[f for f in (*further, *optional) if f["empty"] is None],
            absent=[f for f in (*first, *further) if f["empty"] is not None],
            warnings=[f"{r.name}: {w}" for r in runs for w in r.warnings],
            probes=probes,
            others=foreign,
            not_run=not_run.missing(runs),
            matching=sections.matching_notes(runs),
            validity=validity,
            has_validity=bool(validity or notes or probes),
            matrix=checks.matrix(validity),
            validity_notes=notes,
            n_cases=len(found.index["rows"]),
            cap=found.index["cap"],
            methods=headline.methods(runs),
            clustered=any("cluster" in m for m in headline.methods(runs)),
            provenance=sections.provenance_rows,
            dropped=len(found.index["dropped"]),
            scripts=SCRIPTS,
        )
    )


def _in(section: str) -> list[str]:
    """Names of the figures in a section of the page."""
    return [name for name, figure in catalog.FIGURES.items() if figure.section == section]


def _about(name: str, probe: str) -> bool:
    """Whether a validity row's probe is this one; ``min-k`` and ``min_k`` are one name."""
    return name.replace("-", "_").split(".")[0].split(":")[0] == probe


def environment() -> Environment:
    """The templates: everything that is put into them is escaped, and a name that is missing is an error."""
    loader = FileSystemLoader(_HERE / "templates", encoding="utf-8")
    return Environment(loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)


def copy_assets(folder: Path) -> None:
    """Scripts and style sheets of the pages, all of them: a folder may hold a report and a comparison."""
    folder.mkdir(parents=True, exist_ok=True)
    for asset in sorted((_HERE / "assets").iterdir()):
        (folder / asset.name).write_bytes(asset.read_bytes())
