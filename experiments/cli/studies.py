"""``composcope study NAME``: a paper's study over models, a check of the probes, or an analysis of existing runs."""

from __future__ import annotations

from importlib.metadata import entry_points
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import typer
from typer import Argument, Option
from typer.main import get_command

from ...errors import InputError
from .. import plugins
from ..config import Asking, Config, Serving
from ..console.printing import Reporter, show
from . import interventions
from .flags import (
    WHOLE,
    AsJson,
    Command,
    Commands,
    Quiet,
    Seed,
    bound,
    example,
    go_offline,
    under,
    with_config,
    with_plugins,
)

ABOUT = {
    "formats": "Compare prompt formats on cases that pass the gates: accuracy, abstention, closing tags, agreement.",
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

_EXAMPLES = {
    "formats": "runs/plain runs/xml", "recovery": "runs/temporal-control runs/temporal-twin",
    "joint-stability": "runs/temporal-control runs/temporal-twin",
    "stability-expectation": "runs/demo/control--temporal",
    "sizes": "runs/small runs/large --size runs/small=7 --size runs/large=70",
    "bottlenecks": "runs/ladders", "skills": "runs/ladders", "profiles": "runs/ladders runs/ladders-low",
    "teachers": "runs/teacher-a runs/teacher-b", "filtering": "runs/originals --kept runs/scaffolds/records.jsonl",
}  # fmt: skip
"""Runs that an analysis can use, as an example; the others take any run."""


def register_analyses(app: typer.Typer) -> None:
    """Add each analysis, and ``human``, to the group ``study``."""
    of_some = {option for options in _OWN.values() for option in options}
    defaults = {n: p.default for n, p in signature(_analysis).parameters.items() if n in of_some}
    for name, about in ABOUT.items():
        others = {k: v for k, v in defaults.items() if k not in _OWN.get(name, ())}
        command = bound(_analysis, about, name=name, **others)
        app.command(
            name, cls=Command, epilog=example(f"study {name} {_EXAMPLES.get(name, 'runs/demo/control--mixed')}")
        )(command)
    app.command("human", cls=Command, epilog=example("study human organism:mixed --out study"))(human)


Out = Annotated[Path | None, Option("--out", "-o", help="Folder for the result, its sheets and its lists.")]
Sheet = Annotated[Path | None, Option(help="Sheet that people have filled in; needs --key.")]
Key = Annotated[Path | None, Option(help="Key that was written with the sheet.")]


def _analysis(
    name: str,
    runs: Annotated[list[Path] | None, Argument(help="Run folders, folders of runs, or graded.jsonl.")] = None,
    out: Out = None,
    reference: Annotated[str | None, Option(help="Run whose gates choose the cases.")] = None,
    annotations: Annotated[Path | None, Option(help="JSON lines, each with case and label.")] = None,
    sheet: Sheet = None,
    key: Key = None,
    kept: Annotated[Path | None, Option(help="records.jsonl of the questions that were kept.")] = None,
    sample: Annotated[int, Option(min=1, help="Answers to draw.")] = 300,
    size: Annotated[list[str] | None, Option(help="Model size as RUN=BILLIONS, if the name does not give it.")] = None,
    within: Annotated[float, Option(min=0, help="Accuracies at most this many points apart count as equal.")] = 2.0,
    seed: Seed = 0,
    json: AsJson = False,
) -> None:
    from ..studies import analyzing

    options = analyzing.AnalysisOptions(
        reference=reference, annotations=annotations, sheet=sheet, key=key, kept=kept, sample=sample,
        sizes=tuple(size or ()), within=within, seed=seed,
    )  # fmt: skip
    _finish(analyzing.analyze(name, runs or [], options), out, json)


def human(
    benchmark: Annotated[str, Argument(help="A benchmark: READER:FILE, a case file or organism:NAME.")],
    out: Out = None,
    per_person: Annotated[int, Option(min=1, help="Questions per person.")] = 12,
    answers: Annotated[int, Option(min=1, help="How many people answer each question.")] = 1,
    sheet: Sheet = None,
    key: Key = None,
    seed: Annotated[int, Option(min=0, help="Seed of the assignment.")] = 0,
    json: AsJson = False,
) -> None:
    """Assign questions so that nobody sees two of the same item; with --sheet and --key, convert answers to rows."""
    from ..studies import analyzing

    options = analyzing.AnalysisOptions(sheet=sheet, key=key, per_person=per_person, answers=answers, seed=seed)
    _finish(analyzing.human_assignment(benchmark, options), out, json)


def _finish(found: Any, out: Path | None, json: bool) -> None:
    from ..studies import analyzing

    if out is not None:
        analyzing.write(found, out)
    show(found.to_dict() if json else analyzing.lines(found), json)


if TYPE_CHECKING:
    from ..studies.study import Preset

PAPERS = {
    "agentcoma": "Steps and whole, gap, quadrants; lookback, Min-K%++ and neurons over all questions.",
    "compositional-gsm": "Pairs against S1·S2, distraction, second hop, code; pairs of models.",
    "stad": "How many steps must be revealed, which skills are bottlenecks, and accuracy on each skill alone.",
    "composition-collapse": "Residual failure over depth, three channels; patching, cosines.",
}
VALIDITY = "The dose series of organisms: do the probes measure what they claim to measure?"
_SERIES = {"series": None, "only_series": False, "trainings": None}


class Studies(Commands):
    """The group ``study``: with ``--plugin``, an unknown name may be a plugin's study."""

    groups: ClassVar = {
        "Papers, over models": tuple(PAPERS),
        "Checks of the probes and of the statistics": ("validity", "why", "calibration"),
        "Training": ("interventions",),
        "Over existing runs": tuple(ABOUT),
        "With people": ("human",),
    }

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        name = args[0].replace("_", "-")
        named = ctx.params.get("plugin") or any(a.partition("=")[0] == "--plugin" for a in args)
        if name not in self.commands and (named or entry_points(group="composcope.studies", name=name)):
            # unknown until --plugin is read; the command fails if no plugin has the study
            other = typer.Typer(add_completion=False)
            other.command(name, cls=Command)(_over_models(name, "Run a study from a plugin."))
            return name, get_command(other), args[1:]
        return super().resolve_command(ctx, [name, *args[1:]])


app = typer.Typer(
    name="study", cls=Studies, invoke_without_command=True,
    help="Run a paper's study over models, or an analysis of existing runs: tables, figures and intervals at once.",
)  # fmt: skip


@app.callback()
@with_plugins
def _root(
    ctx: typer.Context, list_: Annotated[bool, Option("--list", help="List the studies.")] = False, json: AsJson = False
) -> None:
    """Run a paper's study over models, or an analysis of existing runs: tables, figures and intervals at once."""
    if ctx.invoked_subcommand is None:
        group: Any = ctx.command
        known = {n: group.commands[n].get_short_help_str(WHOLE) for n in group.list_commands(ctx)}
        if plugins.loaded():
            from ..studies.study import STUDIES

            known |= {name: STUDIES[name].about for name in STUDIES if name not in (*PAPERS, "validity")}
        rows = [{"study": n, "about": about} for n, about in known.items()]
        show({"schema": 1, "studies": rows} if json else [f"{r['study']}: {r['about']}" for r in rows], json)


def preset(name: str) -> Preset:
    """A study by its name. Raises ``InputError`` for an unknown one."""
    from ..studies.study import STUDIES

    found = STUDIES.find(name)
    if found is None:
        raise InputError(f"study {name}: no such study; use one of {', '.join(STUDIES)}")
    return found


def register(root: typer.Typer) -> None:
    """Add ``study`` to the command line, with a command for each study."""
    for name, about in PAPERS.items():
        line = example(f"study {name} --model organism:control --limit 20")
        app.command(name, cls=Command, epilog=line)(_over_models(name, about))
    line = example("study validity --limit 10 --out runs/validity")
    app.command("validity", cls=under({"Trainings": tuple(_SERIES)}), epilog=line)(
        _over_models("validity", VALIDITY, series=True)
    )
    app.command(cls=Command, epilog=example("study why --cases 4 --out runs/why"))(why)
    app.command(cls=Command, epilog=example("study calibration --draws 100"))(calibration)
    interventions.register_study(app)
    register_analyses(app)
    root.add_typer(app, name="study")


def _over_models(name: str, about: str, series: bool = False) -> Any:
    """The command of one study that asks models; only the study of the dose series has its own options."""
    settled = ("model", "benchmark", "protocol", "limit", "seed", "shard")
    command = bound(study, about, name=name, **({} if series else _SERIES))
    return with_plugins(with_config(Config, Asking, Serving, leave_out=settled)(command))


def study(
    given: dict[str, Any],
    name: str,
    model: Annotated[
        list[str] | None, Option("--model", "-m", help="organism:DOSE, a folder, a hub id or MODEL@URL; repeatable.")
    ] = None,
    models: Annotated[
        Path | None, Option("--models", help="YAML: models with family, size, cost, tuning, ..., and pairs.")
    ] = None,
    data: Annotated[
        list[str] | None,
        Option("--data", "-d", "--benchmark", "-b", help="Case file, READER:FILE or hub:NAME; repeatable."),
    ] = None,
    limit: Annotated[int | None, Option(min=1, help="Only the first N cases of each family x depth.")] = None,
    out: Annotated[Path | None, Option("--out", "-o", help="Study folder (default: runs/NAME).")] = None,
    probes: Annotated[bool, Option("--probes/--no-probes", help="Run probes on the models, as in the paper.")] = True,
    probe_cases: Annotated[
        int | None, Option(min=1, help="Cases to probe at most; in composition-collapse of each side (default: all).")
    ] = None,
    series: Annotated[
        list[Path] | None, Option("--series", help="Folder of `organism train --all`; repeatable.")
    ] = None,
    only_series: Annotated[bool, Option("--only-series", help="Leave out the shipped training.")] = False,
    trainings: Annotated[
        int | None, Option(min=1, help="Train all doses of N seeds in OUT/trainings; the shipped one is left out.")
    ] = None,
    report: Annotated[bool, Option("--report/--no-report", help="Write report.html over all runs.")] = True,
    seed: Seed = 0,
    json: AsJson = False,
    quiet: Quiet = False,
) -> int:
    chosen = preset(name)
    from ..studies.spec import from_flags, read_spec

    of_study: dict[str, Any] = {"data": tuple(data or ()), "limit": limit, "probe_cases": probe_cases, "seed": seed}
    of_study |= {"series": tuple(map(str, series or ())), "only_series": only_series}
    if trainings is not None:
        of_study |= _train(trainings, out or Path("runs") / name, of_study["series"], quiet)
    if models is not None and model:
        raise InputError("--model and --models: give only one of them; a models file lists all models")
    if models is not None:
        spec = read_spec(models, chosen.name, **of_study)
    else:
        spec = from_flags(model or _default_models(name), **of_study)
    roles = given.get("asking", {}).get("judge"), given.get("serving", {}).get("probe_model")
    go_offline(*(m.model for m in spec.models), *roles, data=spec.data)
    from ..studies.running import conduct

    folder = out or Path("runs") / chosen.name
    found = conduct(chosen, spec, folder, given, probes=probes, report=report, quiet=quiet)
    if json:
        from ..run import read_json

        show({"out": str(folder), **read_json(folder / "study.json")}, True)
    else:
        show((folder / "study.md").read_text(encoding="utf-8"), False)
        show(f"written: {folder / 'study.md'}", False)
    return found.exit_code()


def _train(n: int, out: Path, series: tuple[str, ...], quiet: bool) -> dict[str, Any]:
    """Run or continue the trainings of ``--trainings``, and return the study options that name their folder."""
    from ..organism.train import train_seeds

    folder = train_seeds(n, out / "trainings", Reporter(quiet=quiet).say)
    return {"series": (*series, str(folder)), "only_series": True}


def why(
    series: Annotated[list[Path] | None, Option("--series", help="Folder of plants; repeatable.")] = None,
    model: Annotated[
        list[str] | None, Option("--model", "-m", help="A real model to diagnose as well; repeatable.")
    ] = None,
    out: Annotated[Path, Option("--out", "-o", help="Study folder.")] = Path("runs/why"),
    cases: Annotated[int, Option("--cases", "--probe-cases", min=1, help="Failures to diagnose per model.")] = 20,
    seed: Seed = 0,
    json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Diagnose models whose cause of failure is known (confusion matrix, refusals), and real models as well."""
    from ..run import read_json
    from ..studies.confusion import run_study

    go_offline(*(model or ()))
    lines = run_study(series or (), model or (), out, cases, seed, Reporter(quiet=quiet).bar)
    show(read_json(out / "confusion.json") if json else lines, json)


def calibration(
    out: Annotated[Path, Option("--out", "-o", help="Study folder.")] = Path("runs/calibration"),
    draws: Annotated[int, Option(min=1, help="Simulated data sets per scenario.")] = 500,
    seed: Seed = 0,
    json: AsJson = False,
    quiet: Quiet = False,
) -> int:
    """Measure on simulated data how often tests find an effect that is not there, and how often intervals are right."""
    from ..run import read_json
    from ..studies.calibration import conduct

    rows = conduct(out, draws, seed, Reporter(quiet=quiet).say)
    show(read_json(out / "study.json") if json else (out / "study.md").read_text(encoding="utf-8"), json)
    return 1 if any(r["holds"] == "no" for r in rows) else 0


def _default_models(name: str) -> list[str]:
    from ..organism.weights import DOSES

    wanted = DOSES if name == "validity" else ("control", "twin")
    return [f"organism:{dose}" for dose in wanted]
