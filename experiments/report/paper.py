"""Write the folder of `composcope paper`: figures, captions, tables, methods, claims, and a document with them all.

A claim has n, an interval, and whether its probe passed its own test. One whose probe failed its test stays in the
table with a mark; leaving it out would hide that it was tested. Text from a model or a file is escaped, so that it
prints unchanged.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from ...errors import InputError
from ...evaluation.protocols.base import about
from ...files import to_csv
from ...probes.catalog import PROBES, Probe
from ...probes.verdicts import MATCHED
from ...terminal import Bar, no_bar, stage, tick
from ..figures.catalog import FIGURES, draw, put
from ..figures.grouping import labels, labels_by_benchmark
from ..figures.look import Look
from ..figures.style import plain
from ..run import check_no_run, write_text
from ..run.diagnosis import meaning
from ..run.folder import INTERVENTIONS
from ..run.reader import Row, RunData, load
from ..run.summary import diagnosed_failures, n_asked, of_known_parts
from .causes import UNNAMED
from .headline import heading, interval, n_unjudged, of_column, shown, tables, ungraded
from .landing import finding, says
from .sections import FAILS, counted, ends, number_text, read_validity, tests_of

_SPECIAL = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_", "{": r"\{", "}": r"\}",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "−": "$-$", "–": "--", "×": r"$\times$", "✓": "yes",
    "✗": "no", "“": "``", "”": "''", "≥": r"$\geq$", "≤": r"$\leq$", "Δ": r"$\Delta$", "·": r"$\cdot$",
    "<": r"\textless{}", ">": r"\textgreater{}", "…": r"\ldots{}",
}  # fmt: skip

_MINUS = re.compile(r"(?<![\w.)-])-(?=\.?\d)")
"""A hyphen that is a number's sign."""


def escaped(text: Any) -> str:
    """One line of text for LaTeX."""
    said = "" if text is None else str(text).replace("\u00a0", " ")
    said = _MINUS.sub("−", plain(said, 100_000))
    # two hyphens, as of an option, would become a dash
    return "".join(
        "{}-" if before + c == "--" else _SPECIAL.get(c, c) for before, c in zip(" " + said, said, strict=False)
    )


_NUMBERS = {"n": "r", "value": "r", "p": "r", "interval": "l"}
_WIDTHS = {"model": 0.12, "benchmark": 0.1, "claim": 0.24, "badge": 0.12}
"""Shares of the page's width; the headline's columns share what is left, so that no table is wider than the page."""


def table(rows: Sequence[Mapping[str, Any]], columns: Sequence[str], caption: str, label: str) -> str:
    """A table that may span several pages (packages array, booktabs and longtable)."""
    widths = {c: f"{_WIDTHS.get(c, 0.8 / len(columns)):.2f}\\linewidth" for c in columns}
    # columns of text break into lines
    layout = "".join(_NUMBERS.get(c) or f">{{\\raggedright\\arraybackslash}}p{{{widths[c]}}}" for c in columns)
    head = " & ".join(f"\\textbf{{{escaped(c)}}}" for c in columns)
    body = "".join(" & ".join(escaped(row.get(c)) for c in columns) + " \\\\\n" for row in rows)
    return (
        f"\\begin{{longtable}}{{{layout}}}\n\\caption{{{escaped(caption)}}}\\label{{{label}}}\\\\\n\\toprule\n"
        f"{head} \\\\\n\\midrule\n\\endfirsthead\n\\toprule\n{head} \\\\\n\\midrule\n\\endhead\n"
        f"{body}\\bottomrule\n\\end{{longtable}}\n"
    )


def _included(name: str, caption: str, page: bool) -> str:
    """A figure as wide as its column, or as the page."""
    star = "*" if page else ""
    return (
        f"\\begin{{figure{star}}}\n\\centering\n\\includegraphics[width=\\{'textwidth' if page else 'columnwidth'},"
        f"height=0.6\\textheight,keepaspectratio]{{figures/{name}.pdf}}\n"
        f"\\caption{{{escaped(caption)}}}\\label{{fig:{name}}}\n\\end{{figure{star}}}\n"
    )


FAILED, PASSED, UNTESTED = "failed its own test", "passed its own test", "not tested"
UNSAID = "its own tests cannot say"
COUNTED = "counted"
"""The badge of claims about behaviour, which need no probe."""
SHOWN, UNSHOWN = "shown by answers or interventions", "no cause shown"
"""The badges of the shares of causes that a diagnosis found."""
NONE = "none"
"""In place of an interval: too few cases for one, or all values alike."""


def claims(runs: Sequence[RunData]) -> list[Row]:
    """The headline metrics of each run, its causes if it was diagnosed, and the probes' contrasts of failures with
    matched successes.

    ``declared`` is true for the headline, the causes and the one finding of each probe that was declared beforehand,
    which the report shows first; all other contrasts are exploratory. Contrasts without a value are left out.
    """
    return [*_behavior(runs), *_causes(runs), *_probes(runs)]


def _behavior(runs: Sequence[RunData]) -> Iterator[Row]:
    names = labels_by_benchmark(runs)
    for run in runs:
        for column in about(run.protocol).columns:
            metric, _, form = column
            found = of_column(run, metric)
            if found is not None:
                yield {
                    "model": names[run.path], "benchmark": run.benchmark, "claim": heading(column), "n": found.n,
                    "value": shown(found, form), "interval": interval(found, form) or NONE,
                    "method": found.interval or "", "p": "", "badge": COUNTED,
                    "why": ungraded(found, form), "declared": True,
                }  # fmt: skip


def _causes(runs: Sequence[RunData]) -> Iterator[Row]:
    names = labels_by_benchmark(runs)
    for run in runs:
        diagnosed = diagnosed_failures(run)
        for share in diagnosed.found.causes() if diagnosed else ():
            low, high = (None if end is None else f"{100 * end:.1f}" for end in (share.low, share.high))
            yield {
                "model": names[run.path], "benchmark": run.benchmark,
                "claim": f"cause of the diagnosed failures: {meaning(share.cause)}", "n": share.n,
                "value": f"{100 * share.share:.1f}\u00a0%",
                "interval": f"[{low},\u00a0{high}]" if low and high else NONE, "method": share.interval, "p": "",
                "badge": UNSHOWN if share.cause in UNNAMED else SHOWN, "why": "", "declared": True,
            }  # fmt: skip


def _probes(runs: Sequence[RunData]) -> Iterator[Row]:
    names = labels_by_benchmark(runs)
    for name, probe in PROBES.items():
        for run in runs:
            data = run.probe(name)
            if data is None:
                continue
            badge, why = badge_of(run, probe)
            found = finding(data.table)
            for row in data.table:
                value = number_text("value", row.get("value"))
                if not value or (row.get("group") != MATCHED and row is not found):
                    continue
                quantity = str(row["quantity"])
                said = f"{quantity.replace('_', ' ')}, {row.get('kind') or 'all'}"
                said = says(row, run, name) if row is found else said
                side = ", failures minus matched successes" if row.get("group") == MATCHED else ""
                yield {
                    "model": names[run.path], "benchmark": run.benchmark, "claim": f"{name}: {said}{side}",
                    "n": row.get("n"), "value": value,
                    "interval": ends(row, NONE), "method": row.get("interval") or "",
                    "p": number_text("p_adjusted", row.get("p_adjusted")), "badge": badge, "why": why,
                    "declared": row is found,
                }  # fmt: skip


def badge_of(run: RunData, probe: Probe) -> tuple[str, str]:
    """Whether a probe passed the tests in the run or its study, and the first test that it failed.

    These are the tests that the report counts: a probe passed if all of them did.
    """
    answers = [v for v in read_validity([run.path, run.path.parent])[0] if v["headline"]]
    tests = tests_of(answers, [run], probe)
    if failed := [r for r in tests if r["kind"] in FAILS]:
        return FAILED, f"{failed[0]['question']} {failed[0]['answer']}"
    passed, named = counted(tests, "yes")
    if passed and passed < len(tests):
        return f"{passed} of {len(tests)} tests passed{named}, the others cannot say{counted(tests, 'open')[1]}", ""
    return (f"{PASSED}{named}" if passed else UNSAID if tests else UNTESTED), ""


_DOCUMENT = r"""\documentclass[10pt,twocolumn]{article}
\usepackage[T1]{fontenc}
\usepackage{array,booktabs,graphicx,longtable,xcolor}
\begin{document}
\input{methods}
\input{figures}
\onecolumn\footnotesize\setlength{\tabcolsep}{3pt}
\input{tables}
\input{claims}
\end{document}
"""
_OURS = "claims.csv"
"""A file that only this command writes: the folder is then its own."""
_CLAIMS = ("model", "benchmark", "claim", "n", "value", "interval", "p", "badge")


def write(
    runs: Sequence[str | Path | RunData], out: str | Path, *, gray: bool = False, progress: Bar = no_bar
) -> list[Path]:
    """Write the folder for runs (or studies); returns the files.

    Raises ``InputError`` for a folder that is not a run, and where ``out`` has somebody else's files of these names.
    """
    check_no_run(out)
    _check_own(Path(out))
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
    said = [bool(r["why"]) and r["badge"] in (FAILED, COUNTED) for r in declared]
    marked = [{**r, "badge": f"{r['badge']} ({r['why']})"} if s else r for r, s in zip(declared, said, strict=True)]
    texts = {
        "figures.tex": "\n".join(captions),
        "tables.tex": "\n".join(_headlines(read)),
        "claims.tex": table(marked, _CLAIMS, note, "tab:claims"),
        _OURS: to_csv(
            [{k: v.replace("\u2212", "-") if isinstance(v, str) else v for k, v in row.items()} for row in made]
        ),  # for programs
        "methods.tex": "\n\n".join(escaped(p) for p in methods(read)) + "\n",
        "main.tex": _DOCUMENT,
    }
    return [*files, *(write_text(folder / name, text) for name, text in texts.items())]


def _check_own(folder: Path) -> None:
    """Raise ``InputError`` for a folder that this command has not written and that has files which it would replace."""
    own = ("main.tex", "methods.tex", "figures.tex", "tables.tex", "claims.tex")
    if not (folder / _OURS).exists() and (found := next((name for name in own if (folder / name).exists()), None)):
        raise InputError(f"--out {folder}: has a {found} that would be overwritten; give another folder")


def _figures(runs: Sequence[RunData], folder: Path, gray: bool) -> tuple[list[Path], list[str]]:
    """Draw every report figure that the runs have data for: one panel at column width, several at page width."""
    files, captions = [], []
    for figure in FIGURES.values():
        tick(1)
        drawing = draw(figure.name, runs) if figure.section else None
        if drawing is None or drawing.empty is not None:
            continue
        page = len([ax for ax in drawing.figure.axes if ax.get_title(loc="left")]) > 1
        files += put(drawing, figure.name, folder, pdf=True, look=Look(
            "page" if page else "column", title=False, gray=gray))  # fmt: skip
        title = figure.title if figure.title.endswith("?") else f"{figure.title}."
        captions.append(_included(figure.name, f"{title} {drawing.caption}", page))
    return files, captions


def _headlines(runs: Sequence[RunData]) -> list[str]:
    found = []
    for i, one in enumerate(tables(runs)):
        rows = [
            {"model": row["model"], **{
                name: _in_a_cell(c) if c else ""
                for name, c in zip(one["columns"], row["cells"], strict=True)
            }} for row in one["rows"]
        ]  # fmt: skip
        chance = f" Chance level: {one['chance']}." if one["chance"] else ""
        said = f"{one['benchmark']}, protocol {one['protocol']}: values with 95 % intervals and counts.{chance}"
        found.append(table(rows, ["model", *one["columns"]], said, f"tab:headline-{i + 1}"))
    return found


def _in_a_cell(cell: Mapping[str, Any]) -> str:
    counts = "; ".join(filter(None, (cell["count"], cell["ungraded"])))
    return f"{cell['shown']} {cell['interval']} ({counts})"


def methods(runs: Sequence[RunData]) -> list[str]:
    """The methods text: what each run asked; then, once for all runs, intervals, probes and versions."""
    names = labels(runs)
    software: dict[str, list[str]] = {}
    for run in runs:
        versions = ", ".join(f"{k} {v}" for k, v in run.manifest.versions.items() if v)
        used = f"composcope {run.manifest.composcope.get('version', 'unstated')}, {versions}"
        software.setdefault(used, []).append(names[run.path])
    intervals = sorted({str(x.interval) for run in runs for x in run.metrics if x.low is not None and x.interval})
    names_of_probes = dict.fromkeys(name for run in runs for name in run.probe_names)
    probes = [name for name in names_of_probes if name not in INTERVENTIONS.values()]
    but = ", except those that count as wrong" * any(n_unjudged(run)[1] for run in runs)
    how = [f"Answers that could not be judged are left out of the rates{but}."]
    if intervals:
        how.append(f"Intervals are 95 % intervals ({'; '.join(intervals)}).")
    if probes:
        known = " whose parts are all right" * all(of_known_parts(run.protocol) for run in runs if run.probe_names)
        how.append(
            f"Probes ({', '.join(probes)}) compare failures{known} with successes matched on "
            "family, depth, operation and length; p-values are adjusted over one declared family in each run."
        )
    for used, whose in software.items():
        which = f" ({', '.join(whose)})" if len(software) > 1 else ""
        how.append(f"Software: {used}{which}.")
    called = labels_by_benchmark(runs)  # as the tables call them
    return [" ".join(_asked(run, called[run.path]) for run in runs), " ".join(how)]


def _asked(run: RunData, called: str) -> str:
    """One sentence: model, weights, cases, protocol, prompts, and how many answers could not be judged."""
    weights, config = str(run.manifest.identity.get("weights") or "")[:12], run.config
    form = f", prompt format {config.format}" if config and config.format else ""
    how = f" (prompting {config.prompting or 'as the tokenizer has it'}{form}, seed {run.seed})" if config else ""
    invalid, wrong = n_unjudged(run)
    as_wrong = f", of which {wrong} count as wrong" if wrong else ""
    model = "" if called == run.model else f"{run.model}, "
    return (
        f"{called} ({model}weights {weights or 'unstated'}) was asked {n_asked(run)} of "
        f"{run.benchmark} with the protocol {run.protocol}{how}; {invalid + wrong} of {len(run.graded)} answers could "
        f"not be judged{as_wrong}."
    )
