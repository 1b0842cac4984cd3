"""Analyses of existing runs (``composcope study NAME RUN``), and ``composcope study human``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from ..console import exits
from ..console.printing import show
from .flags import AsJson, Seed, bound
from .help import Command, example

ABOUT = {
    "formats": "Prompt formats on one gate-passing set: accuracy, abstention, closing tags, agreement.",
    "recovery": "Gate-passing failures of one run that another run gets right, by depth and family.",
    "joint-stability": "Facts that all runs know; pure, knowledge-gap and mixed cases; whether the controls pass.",
    "stability-expectation": "Share of cases with all k facts stable, compared with s^k.",
    "taxonomy": "Classes of gate-passing failures by rules and --annotations; artefact-corrected rates.",
    "tiers": "Residual failure by tier: semantic, exact, strict, adjudicated.",
    "adjudicator": "Draw a blind sample of judged answers; with --sheet and --key, compare it with people.",
    "sizes": "Small (up to 8B) against large (from 14B) models: pooled gap and failure quadrants.",
    "lengths": "Mean response length per role and outcome.",
    "bottlenecks": "Bottlenecks of one skill, of two, and of three or more.",
    "skills": "Accuracy on each skill alone, compared with how often the skill is a bottleneck.",
    "profiles": "Bottleneck profiles of models of equal accuracy.",
    "teachers": "Top bottlenecks shared by two teachers' scaffolds, per target model.",
    "filtering": "Accuracy and topics before and after filtering, from a run on the original questions.",
}
_OWN = {
    "formats": ("reference",), "taxonomy": ("annotations",), "tiers": ("annotations",), "sizes": ("size",),
    "adjudicator": ("sheet", "key", "sample"), "profiles": ("within",), "filtering": ("kept",),
}  # fmt: skip
"""Options that only some analyses have."""
_DEFAULTS: dict[str, Any] = {
    "reference": None, "annotations": None, "sheet": None, "key": None, "kept": None, "sample": 300, "size": None,
    "within": 2.0,
}  # fmt: skip
_SEVERAL = ("formats", "recovery", "joint-stability", "sizes", "profiles", "teachers")


def register(app: typer.Typer) -> None:
    """Add each analysis, and ``human``, to the group ``study``."""
    for name, about in ABOUT.items():
        others = {k: v for k, v in _DEFAULTS.items() if k not in _OWN.get(name, ())}
        runs = "runs/temporal-control runs/temporal-twin" if name in _SEVERAL else "runs/demo/control--mixed"
        kept = " --kept records.jsonl" if name == "filtering" else ""
        command = bound(_analysis, about, name=name, **others)
        app.command(name, cls=Command, epilog=example(f"study {name} {runs}{kept}"))(command)
    app.command("human", cls=Command, epilog=example("study human organism:mixed --out study"))(human)


Out = Annotated[Path | None, typer.Option("--out", "-o", help="Folder for the result, its sheets and its lists.")]
Sheet = Annotated[Path | None, typer.Option(help="Sheet that people have filled in; needs --key.")]
Key = Annotated[Path | None, typer.Option(help="Key that was written with the sheet.")]


def _analysis(
    name: str,
    runs: Annotated[list[Path] | None, typer.Argument(help="Run folders, folders of runs, or graded.jsonl.")] = None,
    out: Out = None,
    reference: Annotated[str | None, typer.Option(help="Run whose gates choose the cases.")] = None,
    annotations: Annotated[Path | None, typer.Option(help="JSON lines, each with case and label.")] = None,
    sheet: Sheet = None,
    key: Key = None,
    kept: Annotated[Path | None, typer.Option(help="records.jsonl of the questions that were kept.")] = None,
    sample: Annotated[int, typer.Option(min=1, help="Answers to draw.")] = 300,
    size: Annotated[
        list[str] | None, typer.Option(help="Model size as RUN=BILLIONS, if the name does not give it.")
    ] = None,
    within: Annotated[
        float, typer.Option(min=0, help="Accuracies at most this many points apart count as equal.")
    ] = 2.0,
    seed: Seed = 0,
    json: AsJson = False,
) -> int:
    from .. import analyzing

    options = analyzing.AnalysisOptions(
        reference=reference, annotations=annotations, sheet=sheet, key=key, kept=kept, sample=sample,
        sizes=tuple(size or ()), within=within, seed=seed,
    )  # fmt: skip
    return _finish(analyzing.analyze(name, runs or [], options), out, json)


def human(
    benchmark: Annotated[str, typer.Argument(help="A benchmark: READER:FILE, a case file or organism:NAME.")],
    out: Out = None,
    per_person: Annotated[int, typer.Option(min=1, help="Questions per person.")] = 12,
    answers: Annotated[int, typer.Option(min=1, help="How many people answer each question.")] = 1,
    sheet: Sheet = None,
    key: Key = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the assignment.")] = 0,
    json: AsJson = False,
) -> int:
    """Assign questions so that nobody sees two of the same item; with --sheet and --key, convert answers to rows."""
    from .. import analyzing

    options = analyzing.AnalysisOptions(sheet=sheet, key=key, per_person=per_person, answers=answers, seed=seed)
    return _finish(analyzing.human_assignment(benchmark, options), out, json)


def _finish(found: Any, out: Path | None, json: bool) -> int:
    from .. import analyzing

    if out is not None:
        analyzing.write(found, out)
    show(found.to_dict() if json else analyzing.lines(found), json)
    return exits.OK
