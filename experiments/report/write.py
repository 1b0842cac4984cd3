"""Write the report folder: ``report.html``, ``data/*.js`` and ``figures/``; or all of it in one file.

The page is rendered with autoescaping and holds no model text. Answers, prompts and names from outside go into data
scripts and reach the page only as text nodes. If a figure or probe cannot be drawn, its place says why.
"""

import base64
import hashlib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from ...errors import InputError
from ...probes.catalog import described
from ...terminal import Bar, no_bar
from ..figures import catalog
from ..figures.drawing import Drawing, darkened, encodable, vector, words
from ..figures.drawing import write as write_figure
from ..figures.grouping import labels
from ..run import write_text
from ..run.reader import Row, RunData, load
from ..run.summary import of_known_parts
from . import cases, causes, headline, landing, pictures, sections
from .cases import Told
from .origins import origins
from .pictures import block, remove_scripts, write_script

_HERE = Path(__file__).parent
SCRIPTS = ("core.js", "colors.js", "arrays.js", "stops.js", "heatmap.js", "lines.js", "charts.js", "tokens.js",
           "attention.js", "signals.js", "pictures.js", "case.js", "filters.js", "cases.js", "dossier.js", "main.js",
           "address.js")  # fmt: skip
"""Scripts, in the order in which they depend on each other."""
LIVE_SCRIPTS = (*SCRIPTS, "view.js")
"""Scripts of a page that `composcope view` serves."""
NOT_DRAWN = "This figure could not be drawn"
SINGLE_BUDGET = 3_000_000
"""Limits in bytes for texts and for pictures in a page of one file."""


def write(
    runs: Iterable[str | Path | RunData], out: str | Path, *, single_file: bool = False, live: bool = False,
    progress: Bar = no_bar,
) -> Path:  # fmt: skip
    """Write the report over one or more runs (or study folders) and return the path of ``report.html``.

    With ``single_file`` the page itself holds all data, so it can be sent alone. A ``live`` page is for ``view``: it
    asks for a newer page, and for each figure as the figure comes into view (``write_figure_data``). Raises
    ``InputError`` for a folder that is not a run, and where ``report.html`` is another program's page; the page says
    what a run lacks.
    """
    given = list(runs)
    data = load(given)
    for run in data:  # before anything of an older report is removed
        run.read_all()
    folder = Path(out)
    check_own(folder / "report.html")
    remove_scripts(folder / "data", "*.js", "cases/*.js", "pictures/*.js", "heads/*.js")
    drawn = pictures.collect(data, SINGLE_BUDGET if single_file else pictures.BUDGET)
    kept = [found["cases"] for found in drawn.index["runs"]]
    told = [Told(origins(run), landing.twins(run, k)) for run, k in zip(data, kept, strict=True)]
    found = cases.collect(data, told, SINGLE_BUDGET if single_file else cases.BUDGET)
    first = [landing.first_case(r, t.origins, k, t.twins) for r, t, k in zip(data, told, kept, strict=True)]
    index = {**found.index, "best": landing.best(data), "first": first, "causes": list(map(causes.by_case, data)),
             "diagnose": list(map(causes.command, data)),
             "known": [bool(of_known_parts(run.protocol)) for run in data],
             "failing": sorted({s.name for r in data for s in r.case_sets.values() if s.label == "failure"}),
             }  # fmt: skip
    heads = pictures.heads(data)
    index["heads"] = [f"heads/{i}" if f"heads/{i}" in heads else None for i in range(len(data))]
    values = {"cases": index, **found.files, "pictures": drawn.index, **drawn.files, **heads}
    later = {"caption": "", "empty": None, "interactive": True, "sources": [], "files": False, "later": True}
    shown = {name: {"id": name, "title": figure.title, **later} for name, figure in catalog.FIGURES.items()}
    names = [] if live else list(catalog.FIGURES)
    with progress("drawing figures", len(names)) as advance:
        for name in names:
            shown[name], numbers = _made(name, data, folder, single_file)
            if shown[name]["empty"] is None:
                values[f"figure-{name}"] = numbers
            advance(1)
    if not single_file:
        for name, value in values.items():
            write_script(folder / "data", name, value)
    near = [folder, *(Path(g) for g in given if not isinstance(g, RunData)), *(r.path.parent for r in data)]
    embedded = values if single_file else {}
    page = _page(data, shown, told, index, *sections.validities(data, near), embedded=embedded, live=live)
    return write_text(folder / "report.html", encodable(page))


def check_own(page: Path) -> None:
    """Raise ``InputError`` for a page of another program, which ours would replace."""
    if page.is_file() and "composcope" not in page.read_text(encoding="utf-8", errors="replace"):
        raise InputError(f"{page}: is not a page of composcope and would be overwritten; give --out another folder")


def write_figure_data(name: str, runs: Sequence[RunData], out: str | Path) -> None:
    """Draw one figure for a live page in ``out``: numbers, caption and picture as ``data/figure-NAME.js``."""
    shown, numbers = _made(name, runs, Path(out), inside=True)
    told = {k: shown[k] for k in ("caption", "empty", "sources")}
    write_script(Path(out) / "data", f"figure-{name}", {**numbers, **told})


def _made(name: str, runs: Sequence[RunData], folder: Path, inside: bool) -> tuple[dict[str, Any], dict[str, Any]]:
    """The template's values for a figure, and its numbers; its files are written (see ``_shown``)."""
    drawing = _drawn(name, runs)
    try:
        return _shown(name, drawing, folder, inside), _numbers(drawing)
    except OSError:  # no place, or no permission
        raise
    except Exception as e:  # matplotlib reads some texts, such as formulas, only when it writes the picture
        drawing = _not_drawn(e, runs)
        return _shown(name, drawing, folder, inside), _numbers(drawing)


def _drawn(name: str, runs: Sequence[RunData]) -> Drawing:
    try:
        return catalog.of_runs(catalog.FIGURES[name](runs), runs)
    except Exception as e:
        return _not_drawn(e, runs)


def _not_drawn(e: Exception, runs: Sequence[RunData]) -> Drawing:
    """The figure's place says what went wrong: a table of one probe, or a plugin's figure, must not stop the report."""
    return words(f"{NOT_DRAWN}: {type(e).__name__}: {e}", runs)


def _shown(name: str, drawing: Drawing, folder: Path, inside: bool) -> dict[str, Any]:
    """The template's values for a figure; writes the figure's files, or puts its picture into the page (``inside``)."""
    sources = [quote(f"figures/{name}{shade}.svg") for shade in ("", "-dark")]
    if drawing.empty is None and inside:
        # The page draws the figure itself, so the picture would only be a placeholder.
        svg = "" if drawing.chart else vector(drawing)
        sources = [_as_address(svg), _as_address(darkened(svg))] if svg else []
    elif drawing.empty is None:
        write_figure(drawing, name, folder / "figures", dark=True)
    return {"id": name, "title": catalog.FIGURES[name].title, "caption": drawing.caption, "empty": drawing.empty,
            "interactive": drawing.chart is not None, "sources": sources, "files": not inside,
            "later": False}  # fmt: skip


def _as_address(svg: str) -> str:
    return f"data:image/svg+xml;base64,{base64.b64encode(svg.encode('utf-8')).decode('ascii')}"


def _numbers(drawing: Drawing) -> dict[str, Any]:
    columns = list(dict.fromkeys(k for row in drawing.rows for k in row))
    rows = [[row.get(c) for c in columns] for row in drawing.rows]
    return {"columns": columns, "rows": rows, "chart": drawing.chart}


def _page(
    runs: Sequence[RunData], shown: dict[str, dict[str, Any]], told: Sequence[Told], index: dict[str, Any],
    of_runs: list[list[Row]], validity: list[Row], notes: list[str], *, embedded: dict[str, Any], live: bool = False,
) -> str:  # fmt: skip
    *own, answers = ([v for v in rows if v["headline"]] for rows in (*of_runs, validity))
    tests = [{p.name: sections.tests_of(mine, [r], p) for p in described()} for r, mine in zip(runs, own, strict=True)]
    landed = landing.landings(runs, [t.origins for t in told], tests, described())
    probes = [
        {"section": s, "figures": [shown[f] for f in _in(s.name)], "table": sections.probe_rows(runs, s.name),
         "notes": sections.probe_notes(runs, s.name),
         "validity": [v for v in answers if sections.about(v["probe"], s.folder)],
         "own": sections.own_checks(runs, s), "nothing": s.unchecked,
         "main": [landing.main_number(r, page, s) for r, page in zip(runs, landed, strict=True)]}
        for s in described()
        if any(r.probe(s.name) for r in runs)
    ]  # fmt: skip
    foreign = [
        {"section": o, "figures": [shown[f] for f in sections.figures_of(o["name"])]} for o in sections.collect(runs)
    ]
    placed = {f["id"] for o in foreign for f in o["figures"]}
    first, further, optional = (
        [shown[f] for f in _in(section) if f not in placed] for section in ("first", "behavior", "optional")
    )
    failed = [f for f in optional if str(f["empty"]).startswith(NOT_DRAWN)]  # others say nothing of these runs
    methods = headline.methods(runs)
    return (
        environment()
        .get_template("report.html.j2")
        .render(
            page_parts(LIVE_SCRIPTS if live else SCRIPTS, embedded, live),
            runs=runs,
            names=labels(runs),
            best=index["best"],
            landings=landed,
            tables=headline.tables(runs),
            caveats=headline.caveats(runs, validity),
            behavior=[f for f in first if f["empty"] is None],
            folded={"family-curves": headline.families(runs)},
            further=[f for f in (*further, *optional) if f["empty"] is None],
            absent=[f for f in (*first, *further, *failed) if f["empty"] is not None],
            warnings=[
                f"{r.name}: {w}" for r in runs for w in (*sections.cut_short(r), *r.warnings, *sections.stale_probes(r))
            ],
            probes=probes,
            others=foreign,
            not_run=causes.missing(runs),
            matching=sections.matching_notes(runs),
            validity=validity,
            has_validity=bool(validity or notes or probes),
            matrix=sections.matrix(validity),
            validity_notes=notes,
            n_cases=len(index["rows"]),
            cap=index["cap"],
            methods=methods,
            clustered=any("cluster" in m for m, _ in methods),
            alpha=landing.ALPHA,
            provenance=sections.provenance_rows,
            dropped=len(index["dropped"]),
        )
    )


def _in(section: str) -> list[str]:
    """Names of the figures in one section of the page."""
    return [name for name, figure in catalog.FIGURES.items() if figure.section == section]


def environment() -> Environment:
    """The template environment: it escapes every inserted value, and a missing name is an error."""
    loader = FileSystemLoader(_HERE / "templates", encoding="utf-8")
    return Environment(loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)


def page_parts(scripts: Sequence[str], embedded: Mapping[str, Any], live: bool = False) -> dict[str, Any]:
    """The inline parts of a page: its style, its scripts, their hashes (nothing else may run), and data blocks.

    The page needs no other file to look right, so a page copied without its data can say that they are missing.
    """
    style, *code = (
        "".join((_HERE / "assets" / name).read_text(encoding="utf-8") for name in names)
        for names in (("report.css", "views.css"), scripts[:1], scripts[1:])
    )
    return {
        "style": Markup(style), "style_hash": _hash(style), "code": [Markup(text) for text in code],
        "code_hashes": [_hash(text) for text in code], "embedded": {name: block(v) for name, v in embedded.items()},
        "live": live,
    }  # fmt: skip


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode('utf-8')).digest()).decode('ascii')}'"
