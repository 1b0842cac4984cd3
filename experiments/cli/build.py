"""``composcope build`` makes or continues a benchmark folder; ``composcope import`` reads other tools' files."""

import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer
from typer import Argument, Option

from ...errors import InputError
from ...terminal import whole_numbers, words
from ..config import SPEC
from ..console import exits
from ..console.printing import Reporter, show
from .flags import AsJson, Command, Commands, Seed, Silent, example, under

app = typer.Typer(
    cls=Commands,
    help="Make benchmarks: cases.jsonl, rejected.jsonl and review.jsonl; build.json records how.",
    no_args_is_help=True,
)

IMPORT = {
    "Fields": ("role", "case_field", "role_field", "response_field", "gold_field"),
    "Verdicts": ("scorer", "filter", "whole", "regrade", "answer_type", "format"),
}
SCAFFOLDS = {
    "Models": ("teacher", "judge", "solver", "human", "sharing", "api_key_env"),
    "Requests": ("max_steps", "max_tokens", "temperature", "attempts"),
}
"""Headings for the options of long commands."""
Out = Annotated[Path, Option("--out", "-o", help="Output folder; the same command continues it.")]
KeyEnv = Annotated[
    str | None, Option("--api-key-env", help="API keys as HOST=VARIABLE (environment variables), comma-separated.")
]


def register(root: typer.Typer) -> None:
    """Add ``build`` and ``import`` to the command line."""
    root.add_typer(app, name="build")
    taking = example("import results/text-davinci-003.json --out runs/imported/graded.jsonl")
    root.command("import", cls=under(IMPORT), epilog=taking)(import_)


def _done(document: Mapping[str, Any], json: bool) -> None:
    from ..building.benchmarks import lines

    show(document if json else lines(document), json)


def _engines(specs: list[str] | None, option: str, key_env: str | None) -> list[Any]:
    from ..models.target import open_role

    return [open_role(spec, option, key_env=key_env) for spec in specs or []]


def _one(spec: str | None, option: str, key_env: str | None) -> Any:
    return None if spec is None else _engines([spec], option, key_env)[0]


@app.command(
    "compositional-gsm",
    cls=Command,
    epilog=example("build compositional-gsm gsmhardv2.jsonl --gold gsm8k/test.jsonl --size 600 --out gsm"),
)
def compositional_gsm(
    items: Annotated[Path, Argument(help="Items with code: {question, code, answer}, or GSM-Hard rows.")],
    out: Out,
    gold: Annotated[Path | None, Option(help="GSM8K's test.jsonl: gold answers of GSM-Hard rows.")] = None,
    size: Annotated[int | None, Option(min=1, help="Pairs to make (default: as many as the magnitudes allow).")] = None,
    max_ratio: Annotated[
        float, Option(min=1, help="New answers are at most this many times larger or smaller than before.")
    ] = 5.0,
    solver: Annotated[list[str] | None, Option(help=f"Model that samples solutions for the review: {SPEC}.")] = None,
    samples: Annotated[int, Option(min=1, help="Samples per pair, shared among the solvers.")] = 16,
    minimum: Annotated[int, Option(min=0, help="Pairs solved by fewer samples wait for review.")] = 4,
    reviewed: Annotated[Path | None, Option(help="review.jsonl with decisions: keep, drop or edit.")] = None,
    seed: Seed = 0,
    api_key_env: KeyEnv = None,
    json: AsJson = False,
) -> None:
    """Build pairs of questions, the second of which uses the first one's answer, from items with solutions in code."""
    from ..building.benchmarks import compositional_gsm as make

    found = make(
        out, items, gold, size=size, seed=seed, rules={"max_ratio": max_ratio},
        solvers=_engines(solver, "--solver", api_key_env), samples=samples, minimum=minimum, reviewed=reviewed,
    )  # fmt: skip
    _done(found, json)


@app.command(cls=Command, epilog=example("build temporal facts.jsonl --plan d4v2 --out benchmarks/d4v2"))
def temporal(
    facts: Annotated[Path, Argument(help="Dated facts (JSON lines or CSV): event, date, paraphrases.")],
    out: Out,
    plan: Annotated[str, Option(help="d4v2, cross-domain or harder (short chains).")] = "d4v2",
    per_cell: Annotated[int | None, Option(min=1, help="Cases per family and depth (default: as published).")] = None,
    paraphrases: Annotated[int | None, Option(min=1, help="Number of wordings that every fact must have.")] = None,
    gate_boundaries: Annotated[
        bool, Option("--gate-boundaries", help="Make reference and boundary events atoms too, without dates.")
    ] = False,
    min_gap: Annotated[float, Option(min=0, help="Years between any two dates of a case.")] = 2.0,
    seed: Seed = 0,
    json: AsJson = False,
) -> None:
    """Build questions about the order, succession and intervals of dated facts, with probes for each fact."""
    from ..building.benchmarks import temporal as make

    found = make(
        out, facts, plan=plan, seed=seed, per_cell=per_cell, paraphrases=paraphrases,
        gate_boundaries=gate_boundaries, min_gap=min_gap,
    )  # fmt: skip
    _done(found, json)


@app.command(cls=Command, epilog=example("build classification memberships.jsonl --depths 2,3 --out benchmarks/chains"))
def classification(
    memberships: Annotated[Path, Argument(help="JSON lines or CSV: member, class, paraphrases, domain.")],
    out: Out,
    depths: Annotated[str, Option(help="Chain lengths, comma-separated.")] = "2,3,4",
    per_cell: Annotated[int, Option(min=1, help="Cases per depth.")] = 30,
    paraphrases: Annotated[
        int | None, Option(min=1, help="Number of wordings that every membership must have.")
    ] = None,
    seed: Seed = 0,
    json: AsJson = False,
) -> None:
    """Build chains of "X is a Y" facts: the classification chains of the cross-domain set."""
    from ..building.benchmarks import classification as make

    numbers = _numbers(depths, "--depths")
    _done(make(out, memberships, depths=numbers, per_cell=per_cell, seed=seed, paraphrases=paraphrases), json)


@app.command(cls=Command, epilog=example("build synthetic --depths 2,3 --per-cell 5 --out benchmarks/synthetic"))
def synthetic(
    out: Out,
    families: Annotated[
        str, Option(help="kinship, numerical, spatial; comma-separated.")
    ] = "kinship,numerical,spatial",
    depths: Annotated[str, Option(help="Depths, comma-separated.")] = "2,3,4,5,6",
    per_cell: Annotated[int, Option(min=1, help="Cases per family and depth.")] = 11,
    distractors: Annotated[int, Option(min=0, help="Irrelevant facts in the evidence of each case.")] = 4,
    seed: Seed = 0,
    json: AsJson = False,
) -> None:
    """Build in-context families about made-up entities: kinship, numerical, spatial."""
    from ..building.benchmarks import synthetic as make

    named = words(families)
    if not named:
        raise InputError(f"--families {families}: give at least one of kinship, numerical, spatial")
    _once(named, "--families", families)
    numbers = _numbers(depths, "--depths")
    found = make(out, families=named, depths=numbers, per_cell=per_cell, distractors=distractors, seed=seed)
    _done(found, json)


@app.command(
    cls=under(SCAFFOLDS), epilog=example("build scaffolds organism:ladders --human --limit 4 --out bench/scaffolds")
)
def scaffolds(
    benchmark: Annotated[str, Argument(help="READER:FILE, a case file, or stad:FILE with some stages done.")],
    out: Out,
    teacher: Annotated[
        list[str] | None, Option(help=f"Model that decomposes and rewrites: {SPEC}; repeatable.")
    ] = None,
    judge: Annotated[str | None, Option(help="Model that compares answers that the rules find unequal.")] = None,
    solver: Annotated[str | None, Option(help="Model that answers from the steps alone, to measure coverage.")] = None,
    human: Annotated[bool, Option("--human", help="Use the cases' own steps as the decomposition.")] = False,
    sharing: Annotated[str, Option(help="Several teachers: fallback (one after the other) or rotate.")] = "fallback",
    limit: Annotated[int | None, Option(min=1, help="Only the first N questions.")] = None,
    max_steps: Annotated[int, Option(min=1, help="Maximum number of steps in a decomposition.")] = 6,
    max_tokens: Annotated[int, Option(min=1, help="Token budget of each request.")] = 2000,
    temperature: Annotated[
        float, Option(min=0, help="Temperature of the teacher's texts; its answers are greedy.")
    ] = 0.2,
    attempts: Annotated[int, Option(min=1, help="Attempts to get a readable reply.")] = 3,
    seed: Seed = 0,
    api_key_env: KeyEnv = None,
    json: AsJson = False,
) -> None:
    """Decompose, answer, rewrite and verify questions, and write scaffolded cases and STaD records."""
    from ..building.scaffolds import scaffolds as make

    settings = {"max_steps": max_steps, "max_tokens": max_tokens, "temperature": temperature}
    found = make(
        out, benchmark, teachers=_engines(teacher, "--teacher", api_key_env), judge=_one(judge, "--judge", api_key_env),
        solver=_one(solver, "--solver", api_key_env), human=human, sharing=sharing, limit=limit,
        settings={**settings, "attempts": attempts, "seed": seed}, progress=Reporter().bar,
    )  # fmt: skip
    _done(found, json)


@app.command(
    cls=Command,
    epilog=example("build skills scaffolds/records.jsonl --teacher m@http://localhost:8000/v1 --out skills"),
)
def skills(
    records: Annotated[Path, Argument(help="STaD records with sub-tasks (records.jsonl of build scaffolds).")],
    out: Out,
    teacher: Annotated[str, Option(help=f"Model that names skills and assigns steps: {SPEC}.")],
    clusters: Annotated[int | None, Option(min=1, help="M; needs --skills. Without both, a grid is searched.")] = None,
    skills: Annotated[int | None, Option(min=1, help="N; needs --clusters.")] = None,
    embedding: Annotated[Path | None, Option(help="Local sentence-transformers folder (default: TF-IDF).")] = None,
    seed: Seed = 0,
    api_key_env: KeyEnv = None,
    json: AsJson = False,
) -> None:
    """Assign steps to skills, which the teacher names from representative questions."""
    from ..building.scaffolds import skills as make

    engine = _one(teacher, "--teacher", api_key_env)
    found = make(
        out, records, engine, clusters=clusters, n_skills=skills, embedding=embedding, seed=seed,
        progress=Reporter().bar,
    )  # fmt: skip
    _done(found, json)


def _numbers(text: str, option: str) -> list[int]:
    found = whole_numbers(text, option)
    _once([str(number) for number in found], option, text)
    return found


def _once(words: list[str], option: str, text: str) -> None:
    """Raise ``InputError`` for a repeated word: its cases would have the same ids."""
    twice = next((word for word in words if words.count(word) > 1), None)
    if twice is not None:
        raise InputError(f"{option} {text}: {twice} is given twice; give it once")


def import_(
    files: Annotated[list[Path], Argument(help="Result files; each holds results of one kind.")],
    out: Annotated[Path, Option("--out", "-o", help="graded.jsonl to write.")] = Path("graded.jsonl"),
    kind: Annotated[
        str | None, Option("--from", help="lm-eval, inspect, bamboogle, stad or rows (default: detected).")
    ] = None,
    model: Annotated[str | None, Option(help="Name of the model, if the file does not give it.")] = None,
    scorer: Annotated[str | None, Option(help="Which stored verdict counts, if there are several.")] = None,
    filter: Annotated[str | None, Option(help="lm-eval: which extracted answer counts.")] = None,
    whole: Annotated[str | None, Option(help="bamboogle: the prompt style to import as the whole question.")] = None,
    role: Annotated[str | None, Option(help="Role of every row: whole, part:0, ...")] = None,
    case_field: Annotated[str | None, Option(help="Field of the document that holds the case's id.")] = None,
    role_field: Annotated[str | None, Option(help="Field of the document that holds the role.")] = None,
    response_field: Annotated[str | None, Option(help="rows: the field that holds the response.")] = None,
    gold_field: Annotated[str | None, Option(help="rows: the field that holds the gold answer.")] = None,
    regrade: Annotated[
        bool, Option("--regrade", help="Grade stored responses again, and list where the verdicts differ.")
    ] = False,
    answer_type: Annotated[
        str | None, Option(help="How answers are compared when graded here (default: from the gold answer's form).")
    ] = None,
    format: Annotated[str | None, Option(help="Prompt format of the responses when graded here.")] = None,
    json: AsJson = False,
    quiet: Silent = False,
) -> int:
    """Turn lm-evaluation-harness samples, inspect_ai logs, Bamboogle or STaD results, or rows into graded.jsonl."""
    from ...evaluation.importers import Options
    from ...evaluation.protocols import PROTOCOLS
    from ..building.importing import import_files

    options = Options(
        model, scorer, filter, whole, role, case_field, role_field, response_field=response_field,
        gold_field=gold_field, regrade=regrade, answer_type=answer_type, format=format,
    )  # fmt: skip
    found = import_files(files, out, kind, options, Reporter(quiet=quiet).bar)
    score = f"composcope score {shlex.quote(str(out))} --protocol NAME ({', '.join(PROTOCOLS)})"
    then = f"written: {out}; the metrics: {score}"
    show({"schema": 1, **found.to_dict()} if json else [*found.lines(), then], json)
    return exits.INVALID_REMAINS if found.n_invalid else exits.OK
