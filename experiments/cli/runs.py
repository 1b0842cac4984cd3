"""Commands on existing runs: score, diagnose, verify, report, plot, compare, ls, merge."""

import sys
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from typer import Argument, Option

from ...errors import InputError, require_extra
from ...terminal import how_many, to_stderr, words
from ..console import exits
from ..console.printing import Reporter, show, table
from .flags import AsJson, Command, Compat, Quiet, RunArg, RunArgs, Seed, Silent, example, under, with_plugins

SCORE = {"Graded rows": ("protocol", "cases"),
         "Checks of the grades": ("labels", "audit", "judge", "api_key_env", "seed")}  # fmt: skip
PLOT = {"What is drawn": ("group_by", "bands", "only"), "For print": ("width", "no_title", "style")}


def register(app: typer.Typer) -> None:
    """Add the commands of this module to the command line."""
    app.command(cls=under(SCORE), epilog=example("score runs/demo/control--mixed --audit 100"))(score)
    app.command(cls=under(PLOT), epilog=example("plot collapse-curve runs/demo --out figures"))(plot)
    for command, line, name in (
        (verify, "verify runs/demo/control--mixed", None),
        (report, "report runs/demo --out runs/demo", None),
        (view, "view runs --port 8711", None),
        (paper, "paper runs/demo --out paper", None),
        (compare, "compare runs/demo/control--mixed runs/demo/twin--mixed", None),
        (list_runs, "ls runs/demo/control--mixed --failures", "ls"),
        (merge, "merge runs/shard-1 runs/shard-2 --out runs/all", None),
        (diagnose, "diagnose runs/demo/control--mixed --cases 10", None),
    ):
        app.command(name, cls=Command, epilog=example(line))(command)


@with_plugins
def score(
    run: Annotated[Path, Argument(help="A run folder, or a file of graded rows (graded.jsonl).")],
    compat: Compat = None,
    protocol: Annotated[str | None, Option("--protocol", "-p", help="Protocol whose metrics are computed.")] = None,
    cases: Annotated[Path | None, Option(help="Case file, if the rows do not have all fields.")] = None,
    labels: Annotated[
        Path | None, Option("--human-labels", help="JSON lines with case, role and label (correct, incorrect).")
    ] = None,
    audit: Annotated[
        str | None,
        Option(help="Draw this many graded answers into audit.csv for a person to check, or count a filled audit.csv."),
    ] = None,
    judge: Annotated[str | None, Option(help="With --audit: a model that fills in the verdicts.")] = None,
    api_key_env: Annotated[
        str | None, Option(help="API key of the judge's server: HOST=VARIABLE (an environment variable).")
    ] = None,
    seed: Annotated[int, Option(min=0, help="With --audit: seed of the sample.")] = 0,
    json: AsJson = False,
    quiet: Quiet = False,
) -> int:
    """Grade and count again without a model: a run from its journal, or graded rows of any origin."""
    if run.is_file():
        of_runs = {"--human-labels": labels, "--audit": audit, "--judge": judge, "--api-key-env": api_key_env}
        if (given := next((o for o, v in of_runs.items() if v is not None), None)) is not None:
            raise InputError(
                f"{given}: works only on a run folder, and {run} is a file of graded rows; leave {given} out"
            )
        return _score_rows(run, protocol, cases, compat, json)
    of_rows = {"--protocol": protocol, "--cases": cases} if run.is_dir() else {}
    if (given := next((o for o, v in of_rows.items() if v is not None), None)) is not None:
        raise InputError(
            f"{given}: works only on a file of graded rows, and {run} is not one; give graded.jsonl, or leave out "
            f"{given}"
        )
    from ..evaluating.auditing import audited
    from ..evaluating.evaluate import rescore
    from ..run.summary import document, lines

    reporter = Reporter(run / "log.txt" if run.is_dir() else None, quiet=quiet)
    found = rescore(run, reporter, compat, labels)
    about = audited(found, run, audit, judge, seed=seed, key_env=api_key_env)
    show({**document(run), **about.document} if json else [*lines(run), *about.lines], json)
    return exits.INVALID_REMAINS if found.n_invalid else exits.OK


def _score_rows(graded: Path, protocol: str | None, cases: Path | None, compat: str | None, json: bool) -> int:
    from ...evaluation.metrics import to_document
    from ..evaluating.evaluate import metrics_from_file
    from ..run.summary import metric_lines

    if protocol is None:
        raise InputError(f"{graded}: rows do not say how they were asked; give --protocol NAME (see docs/protocols)")
    found, n_invalid = metrics_from_file(graded, protocol, cases, compat)
    lines = [*(f"warning: {w}" for w in found.warnings), *metric_lines(found.metrics)]
    show(to_document(protocol, found.metrics, found.warnings) if json else lines, json)
    return exits.INVALID_REMAINS if n_invalid else exits.OK


@with_plugins
def verify(
    run: RunArg,
    cell: Annotated[
        str | None, Option(help="Show the answers behind a cell of metrics.json: NAME or NAME[depth=2].")
    ] = None,
    json: AsJson = False,
    quiet: Quiet = False,
) -> int:
    """Check that every row, cell and case set of a run follows from the answers in its journal."""
    from ..verify import trace
    from ..verify import verify as check

    bar = Reporter(quiet=quiet).bar
    if cell is not None:
        rows = trace(run, cell, bar)
        show({"schema": 1, "cell": cell, "answers": rows} if json else table(rows), json)
        return exits.OK
    found = check(run, bar)
    show({"schema": 1, **asdict(found)} if json else found.lines(), json)
    return exits.USER_ERROR if found.problems else exits.OK


def _say_unfinished(folders: Iterable[Path]) -> None:
    """Say on stderr which of the runs are not finished, since what is shown of them is not all."""
    from ..run.folder import unfinished

    for folder in folders:
        if (why := unfinished(folder)) is not None:
            to_stderr(f"{folder}: {why}")


@with_plugins
def report(
    runs: RunArgs,
    out: Annotated[
        Path | None, Option("--out", "-o", help="Folder of the page (default: the one given; for several, report).")
    ] = None,
    single_file: Annotated[bool, Option("--single-file", help="Put everything into one HTML file.")] = False,
    json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Write one static report over one or more runs."""
    from ..run.folder import check_place
    from ..run.reader import load

    if out is not None and out.suffix in (".html", ".htm") and not out.is_dir():
        raise InputError(f"--out {out}: give a folder; the page is written to report.html in it")
    data = load(runs)
    folders = [run.path for run in data]
    _say_unfinished(folders)
    from ..report import write

    where = out or (folders[0] if len(folders) == 1 else runs[0] if len(runs) == 1 else Path("report"))
    check_place(where)
    written = write(data, where, single_file=single_file, progress=Reporter(quiet=quiet).bar)
    show({"schema": 1, "report": written, "runs": folders} if json else str(written), json)


@with_plugins
def view(
    runs: RunArgs,
    port: Annotated[int, Option(min=0, help="Port on 127.0.0.1; 0 takes any free one.")] = 8711,
    json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Serve a live report on this machine, updated while runs work; each headline number links to its cases."""
    require_extra("view", "view", "starlette", "uvicorn")
    from tempfile import TemporaryDirectory

    from ..report import view as serving

    with TemporaryDirectory(prefix="composcope-view-") as folder:
        reporter, listening = Reporter(quiet=quiet), serving.listen(port)
        pages = serving.Pages(runs, folder, reporter.say, reporter.bar)
        pages.refresh()
        url = f"http://{serving.HOST}:{listening.getsockname()[1]}/"
        show({"schema": 1, "url": url, "runs": pages.runs} if json else f"{url} (Ctrl-C to stop)", json)
        sys.stdout.flush()
        serving.serve(pages, listening)
        reporter.say("stopped")


@with_plugins
def plot(
    figure: Annotated[str | None, Argument(help="Figure id; see --list.")] = None,
    runs: Annotated[list[Path] | None, Argument(help="Run folders, or folders that hold several.")] = None,
    out: Annotated[
        Path | None, Option("--out", "-o", help="Folder for png, svg, pdf and csv (default: RUN/figures).")
    ] = None,
    group_by: Annotated[
        str | None,
        Option(help="Order by a property that the study gives for each model: family, size, cost, tuning, ..."),
    ] = None,
    bands: Annotated[
        str | None, Option(help="collapse-curve: depths to shade, such as 2,4, or trained for the trained ones.")
    ] = None,
    only: Annotated[str | None, Option("--runs", help="Only these runs of a study, in this order.")] = None,
    width: Annotated[str | None, Option(help="Figure width: column or page.")] = None,
    no_title: Annotated[bool, Option("--no-title", help="Leave out the title of a figure with one panel.")] = False,
    style: Annotated[str, Option(help="color, or gray: dashes and hatching instead of colors.")] = "color",
    list_: Annotated[bool, Option("--list", help="List the figures.")] = False,
    json: AsJson = False,
    quiet: Silent = False,
) -> None:
    """Draw one figure (pdf, svg, png, and its data as csv) from one or more runs."""
    from ..figures import catalog
    from ..run.folder import runs_in

    if list_ or figure is None:
        found = {name: figure.title for name, figure in catalog.FIGURES.items()}
        rows = [{"figure": name, "title": title} for name, title in found.items()]
        show({"schema": 1, "figures": rows} if json else [f"{n}: {t}" for n, t in found.items()], json)
        return
    look = catalog.look(width, not no_title, style)
    files = catalog.plot(
        figure, runs or [], out, group_by=group_by, bands=bands, only=only, look=look,
        progress=Reporter(quiet=quiet).bar,
    )  # fmt: skip
    chosen = words(only)
    inside = [path for folder in runs or () for path in runs_in(folder)]
    _say_unfinished(path for path in inside if not chosen or path.name in chosen)
    show({"schema": 1, "figure": figure, "files": files} if json else [str(f) for f in files], json)


@with_plugins
def paper(
    runs: RunArgs,
    out: Annotated[Path, Option("--out", "-o", help="Folder to write.")] = Path("paper"),
    style: Annotated[str, Option(help="color, or gray: dashes and hatching instead of colors.")] = "color",
    json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Write figures, tables, methods and a table of claims in LaTeX, for a paper over one or more runs."""
    from ..figures.catalog import look
    from ..report.paper import write
    from ..run.folder import find_runs

    files = write(runs, out, gray=look(None, True, style).gray, progress=Reporter(quiet=quiet).bar)
    _say_unfinished(find_runs(runs))
    show(
        {"schema": 1, "files": files} if json else f"{out}: {how_many(len(files), 'file')}; claims.csv, main.tex", json
    )


def compare(
    a: Annotated[Path, Argument(help="Run A.")],
    b: Annotated[Path, Argument(help="Run B.")],
    out: Annotated[Path | None, Option("--out", "-o", help="Folder for a page with both runs side by side.")] = None,
    json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Compare two runs case by case: differences (A - B) with intervals, McNemar's test, discordant cases first."""
    from ..run.compare import compare_runs, comparison_lines, document

    found = compare_runs(a, b, progress=Reporter(quiet=quiet).bar)
    page = None
    if out is not None:
        from ..report import write_comparison

        page = str(write_comparison(a, b, out, found))
    lines = [*comparison_lines(found), *([f"page: {page}"] if page else [])]
    show({**document(found), "page": page} if json else lines, json)


def list_runs(
    folder: Annotated[Path, Argument(help="Folder that holds runs, or a run.")] = Path("runs"),
    failures: Annotated[
        bool, Option("--failures", help="List failing cases instead: every part right, the whole wrong.")
    ] = False,
    json: AsJson = False,
) -> None:
    """List runs with their headline, or with --failures their failing cases: question, answer, right answer, cause."""
    if failures:
        from ..run.summary import failing_cases, failure_lines

        found = failing_cases(folder, to_stderr)
        show({"schema": 1, "failures": found} if json else failure_lines(found), json)
        if not found:
            to_stderr(f"{folder}: no case is in a set of failures")
        return
    from ..run.summary import list_folder, listing_lines

    rows = list_folder(folder)
    show({"schema": 1, "runs": rows} if json else listing_lines(rows), json)


@with_plugins
def merge(
    runs: RunArgs,
    out: Annotated[Path, Option("--out", "-o", help="New run folder.")],
    json: AsJson = False,
    quiet: Quiet = False,
) -> int:
    """Merge runs of one model, benchmark and protocol (shards, machines) into a new one and score it."""
    from ..evaluating.merge import merge_runs
    from ..run.summary import document, lines

    found = merge_runs(runs, out, Reporter(quiet=quiet))
    show(document(out) if json else lines(out), json)
    return exits.INVALID_REMAINS if found.n_invalid else exits.OK


@with_plugins
def diagnose(
    run: RunArg,
    model: Annotated[
        str | None, Option("--model", "-m", help="Folder or hub id of the weights (default: those of the run).")
    ] = None,
    cases: Annotated[
        int | None, Option(min=1, help="Diagnose this many failures, from each family in turn (default: all).")
    ] = None,
    case: Annotated[list[str] | None, Option(help="Diagnose this case; repeatable.")] = None,
    seed: Seed = 0,
    json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Name a cause for each case whose parts are all right and whose whole is wrong; writes RUN/diagnosis."""
    from ..diagnosis.job import diagnose as job

    found = job(run, model, cases=cases, ids=case or (), seed=seed, quiet=quiet)
    show({**found.document(), "cases": [v.row() for v in found.verdicts]} if json else found.lines(), json)
