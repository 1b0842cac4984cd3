"""The intervention study: one base, three recipes on the same data, four depth mixes, several seeds, two bases.

Trained are SFT-answer, SFT-trace and GRPO on depths {2,4} (same questions, same adapter), GRPO on the mixes v1 to v4
(Composition collapse, section 5), and SFT-trace on the model's own right answers. Every model is evaluated under the
double gate in the format it was trained in, and compared with the base case by case. The shipped dose series is shown
next to them. The tables are written after every training, so an interrupted study shows what it has, and the same
command continues it.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ...errors import InputError, require_extra
from ..config import Asking, Config
from ..console.printing import Reporter
from ..organism.weights import DOSES
from ..run import locked, read_json
from . import study_tables, training, training_curve
from .data import ORGANISM, training_set
from .recipes import PRESETS, AdapterRecipe
from .study_tables import Findings


@dataclass(frozen=True)
class StudySize:
    """The size of a study."""

    per_cell: int
    """Training questions per family x depth."""
    limit: int
    """Evaluation cases per family x depth."""
    curve_limit: int
    checkpoints: int
    inside: int
    """Number of cases that the probes open before and after."""


SIZES = {"tiny": StudySize(4, 2, 1, 2, 4), "small": StudySize(48, 25, 8, 4, 24), "full": StudySize(128, 30, 30, 8, 60)}
SECOND = "second base"
SECOND_STEPS = (1300, 700)
"""Steps of its base stage and of its dose stage."""
FORMAT = PRESETS["organism-v1"].format
"""The format in which recipes are trained and evaluated, unless they need room for reasoning."""


@dataclass(frozen=True)
class TrainingVariant:
    """One way to train, under the name that tables use."""

    name: str
    preset: str
    objective: str
    solutions: str = "written"
    curve: bool = False
    stage: int = 1
    """Stages run one after the other, each for all seeds, so that the most important results come first."""
    replicate: bool = False
    """Also trained on the second base."""
    opened: bool = False
    """Whether the probes open the trained model."""
    format: str = FORMAT
    """The format in which it is trained and evaluated, next to the base in the same format."""

    def recipe(self, size: StudySize) -> AdapterRecipe:
        preset = PRESETS[self.preset]
        cells = sum(1 if d == 2 else 3 for d in preset.depths)
        prompts = size.per_cell * cells
        return replace(preset, objective=self.objective, solutions=self.solutions, prompts=prompts, format=self.format)


VARIANTS = (
    TrainingVariant("sft-answer {2,4}", "organism-v1", "sft-answer", replicate=True, opened=True),
    TrainingVariant(
        "sft-trace {2,4}", "organism-v1", "sft-trace", curve=True, replicate=True, opened=True, format="xml"
    ),
    TrainingVariant("grpo v1 {2,4}", "organism-v1", "grpo", curve=True, replicate=True, opened=True),
    TrainingVariant("sft-trace self {2,4}", "organism-v1", "sft-trace", "self", curve=True, format="xml"),
    TrainingVariant("grpo v2 {2,4,6}", "organism-v2", "grpo", stage=2),
    TrainingVariant("grpo v3 {2,4,6}", "organism-v3", "grpo", stage=3),
    TrainingVariant("grpo v4 {2,4,6,8}", "organism-v4", "grpo", stage=3),
)


@dataclass(frozen=True)
class InterventionStudy:
    """The options of ``composcope study interventions``."""

    model: str = "organism:control"
    seeds: int = 3
    size: str = "small"
    second: str = "train"
    """``train``, ``none`` or a model folder."""

    def __post_init__(self) -> None:
        if self.size not in SIZES:
            raise InputError(f"--size {self.size}: use one of {', '.join(SIZES)}")
        if self.seeds < 1:
            raise InputError(f"--seeds {self.seeds}: give a whole number of at least 1")


@dataclass(frozen=True)
class TrainingJob:
    """One training and its evaluation."""

    base: str
    """``base`` or ``second base``, with the format if it is not the usual one"""
    model: str
    variant: TrainingVariant
    seed: int
    folder: Path


def run(study: InterventionStudy, out: str | Path, *, device: str | None = None, quiet: bool = False) -> Findings:
    """Run (or finish) the study in a folder. Returns its findings, which are also written to ``study.json``,
    ``study.md`` and ``training_curve.json``.

    Raises ``ComposcopeError`` when a part fails; results of the other parts are kept.
    """
    require_extra("intervene", "train", *training.EXTRA)
    with locked(out) as folder:
        reporter = Reporter(folder / "log.txt", quiet=quiet)
        size = SIZES[study.size]
        with reporter.logging_warnings():
            _base_runs(study, folder, size, device, reporter)
            for stage in (1, 2, 3):
                for job in _jobs(study, folder, stage, size, device, reporter):
                    _do(job, folder, size, device, reporter)
                    _finish(study, folder, reporter)
                if stage == 1:
                    _inside(study, folder, size, device, reporter)
            found = _finish(study, folder, reporter)
            _report(folder, reporter)
        return found


def _slug(name: str) -> str:
    return "".join(c if c.isalnum() else "-" for c in name).strip("-").replace("--", "-")


def run_folder(folder: Path, base: str, variant: str, seed: int | None) -> Path:
    """The folder with the evaluation of a trained model, or of a base (seed None)."""
    return folder / "runs" / (_slug(f"{base} {variant}") + ("" if seed is None else f"-{seed}"))


def named(base: str, format: str) -> str:
    """The name in tables of a base that is asked in this format."""
    return base if format == FORMAT else f"{base}, {format}"


def _evaluate(
    model: str, out: Path, size: StudySize, device: str | None, reporter: Reporter, format: str = FORMAT
) -> None:
    from ..investigate import investigate

    asking = Asking(compat="collapse")
    config = Config(
        model=model, benchmark=ORGANISM, format=format, limit=size.limit, probes=(), device=device, asking=asking
    )
    if not (out / "metrics.json").is_file():
        reporter.say(f"evaluating {out.name}")
        investigate(config, out, quiet=True, bars=False, contrast=False, report=False)


def _base_runs(study: InterventionStudy, folder: Path, size: StudySize, device: str | None, reporter: Reporter) -> None:
    _baselines("base", study.model, VARIANTS, folder, size, device, reporter)
    for dose in DOSES:
        _evaluate(f"organism:{dose}", run_folder(folder, "dose", dose, None), size, device, reporter)


def _baselines(
    base: str, model: str, variants: Sequence[TrainingVariant], folder: Path, size: StudySize, device: str | None,
    reporter: Reporter,
) -> None:  # fmt: skip
    for format in dict.fromkeys(v.format for v in variants):
        _evaluate(model, run_folder(folder, named(base, format), "baseline", None), size, device, reporter, format)


def _jobs(
    study: InterventionStudy, folder: Path, stage: int, size: StudySize, device: str | None, reporter: Reporter
) -> Iterator[TrainingJob]:
    chosen = [v for v in VARIANTS if v.stage == stage]
    for seed in range(study.seeds):
        yield from (_job(folder, "base", study.model, v, seed) for v in chosen)
    if study.second == "none" or stage != 2:
        return
    second = study.second
    if second == "train":
        second = str(_train_second(folder / "second-base", reporter))
    replicated = [v for v in VARIANTS if v.replicate]
    _baselines(SECOND, second, replicated, folder, size, device, reporter)
    for seed in range(study.seeds):
        yield from (_job(folder, SECOND, second, v, seed) for v in replicated)


def _train_second(out: Path, reporter: Reporter) -> Path:
    """Train (or finish) an organism of another architecture; returns its model folder.

    Qwen3 normalizes queries and keys. Everything else is shared, so a result that replicates on it does not depend on
    one architecture or one initialization. Its weights are not shipped (about ten minutes on one idle core).
    """
    from ..organism.recipe import OrganismRecipe
    from ..organism.train import each_step, train

    recipe = OrganismRecipe(architecture="qwen3")
    base, dose = (replace(s, steps=n) for s, n in zip((recipe.base, recipe.dose), SECOND_STEPS, strict=True))

    with locked(out) as folder:
        return train(
            "control", 0, folder, replace(recipe, base=base, dose=dose), "cpu", each_step(reporter.say, "second base")
        )


def _job(folder: Path, base: str, model: str, variant: TrainingVariant, seed: int) -> TrainingJob:
    base = named(base, variant.format)
    return TrainingJob(base, model, variant, seed, folder / "trained" / f"{_slug(f'{base} {variant.name}')}-{seed}")


def _do(job: TrainingJob, folder: Path, size: StudySize, device: str | None, reporter: Reporter) -> None:
    from .trainers import TrainerOptions, per_step

    recipe = job.variant.recipe(size)
    data = training_set(ORGANISM, recipe, seed=job.seed)
    steps = recipe.epochs * -(-recipe.prompts // per_step(recipe))
    how = TrainerOptions(job.seed, device, save_every=max(1, steps // size.checkpoints))
    trained = training.train(recipe, job.model, data, job.folder, how, reporter)
    run = run_folder(folder, job.base, job.variant.name, job.seed)
    _evaluate(str(trained.model), run, size, device, reporter, job.variant.format)
    if job.variant.curve and not job.base.startswith(SECOND):
        training_curve.measure(job.folder, job.model, limit=size.curve_limit, device=device, reporter=reporter)


def _finish(study: InterventionStudy, folder: Path, reporter: Reporter) -> Findings:
    """Write the tables from the results so far."""
    done = []
    for base in ("base", SECOND):
        for seed in range(study.seeds):
            for variant in VARIANTS:
                name = named(base, variant.format)
                path = run_folder(folder, name, variant.name, seed)
                if (path / "metrics.json").is_file():
                    done.append((name, variant.name, PRESETS[variant.preset].depths, seed, path))
    bases = dict.fromkeys(named(b, v.format) for b in ("base", SECOND) for v in VARIANTS)
    baselines = {b: run_folder(folder, b, "baseline", None) for b in bases}
    doses = {d: run_folder(folder, "dose", d, None) for d in DOSES}
    rows = [r for p in sorted((folder / "trained").glob("*")) for r in _curve_rows(p)]
    if rows:
        training_curve.write(rows, folder)
    found = study_tables.collect(study, done, {b: p for b, p in baselines.items() if p.is_dir()}, doses, rows, folder)
    study_tables.write(found, folder)
    reporter.say(f"{len(done)} trained models evaluated; tables: {folder / 'study.md'}")
    return found


def _curve_rows(path: Path) -> Sequence[dict[str, Any]]:
    file = path / training_curve.FILE
    return read_json(file)["rows"] if file.is_file() else []


def _inside(study: InterventionStudy, folder: Path, size: StudySize, device: str | None, reporter: Reporter) -> None:
    from . import inside

    opened = [v for v in VARIANTS if v.opened]
    for format in dict.fromkeys(v.format for v in opened):
        base = named("base", format)
        before = (study.model, run_folder(folder, base, "baseline", None))
        after = {
            v.name: (str(_job(folder, "base", study.model, v, 0).folder / "model"), run_folder(folder, base, v.name, 0))
            for v in opened
            if v.format == format
        }
        out = folder / "inside" / format
        inside.compare(before, after, out, size.inside, device=device, reporter=reporter)


def _report(folder: Path, reporter: Reporter) -> None:
    """Write one report over the base, the doses and the first seed of every variant."""
    from .. import report

    later = tuple(f"-{seed}" for seed in range(1, 100))
    runs = [p for p in sorted((folder / "runs").glob("*")) if not p.name.endswith(later)]
    reporter.say(f"report: {report.write(runs, folder)}")
