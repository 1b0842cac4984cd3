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

from ...errors import InputError, require_extra
from ..config import Asking, Config
from ..console.printing import Reporter
from ..organism.weights import DOSES
from ..run import check_no_run, locked, read_json, write_json
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
    from .. import report

    require_extra("intervene", "train", *training.EXTRA)
    check_no_run(out)
    with locked(out) as folder:
        _same_study(folder, study)
        reporter = Reporter(folder / "log.txt", quiet=quiet)
        work = StudyWork(study, folder, SIZES[study.size], device, reporter)
        with reporter.logging_warnings():
            work.baselines("base", study.model, VARIANTS)
            for dose in DOSES:
                work.evaluate(f"organism:{dose}", run_folder(folder, "dose", dose, None))
            for stage in (1, 2, 3):
                for job in work.jobs(stage):
                    work.do(job)
                    work.finish()
                if stage == 1:
                    work.open_up()
            found = work.finish()
            later = tuple(f"-{seed}" for seed in range(1, 100))  # the report is over the first seed of every variant
            runs = [p for p in sorted((folder / "runs").glob("*")) if not p.name.endswith(later)]
            reporter.say(f"report: {report.write(runs, folder)}")
        return found


def _same_study(folder: Path, study: InterventionStudy) -> None:
    """Raise ``InputError`` for a folder with evaluations of other bases, or of another number of cases."""
    path = folder / "settings.json"
    before = read_json(path) if path.is_file() else {}
    now = {"model": study.model, "size": study.size, **({} if study.second == "none" else {"second": study.second})}
    for option, value in now.items():
        if before.get(option, value) != value:
            raise InputError(
                f"--out {folder}: was begun with --{option} {before[option]}, not {value}; give it again, or another "
                "--out"
            )
    write_json(path, {**before, **now})


def _slug(name: str) -> str:
    return "".join(c if c.isalnum() else "-" for c in name).strip("-").replace("--", "-")


def run_folder(folder: Path, base: str, variant: str, seed: int | None) -> Path:
    """The folder with the evaluation of a trained model, or of a base (seed None)."""
    return folder / "runs" / (_slug(f"{base} {variant}") + ("" if seed is None else f"-{seed}"))


def evaluated(run: Path) -> bool:
    """Whether a run has its numbers; one that was killed before is continued when its turn comes."""
    return (run / "metrics.json").is_file()


def named(base: str, format: str) -> str:
    """The name in tables of a base that is asked in this format."""
    return base if format == FORMAT else f"{base}, {format}"


@dataclass(frozen=True)
class StudyWork:
    """A study while it runs."""

    study: InterventionStudy
    folder: Path
    size: StudySize
    device: str | None
    reporter: Reporter

    def evaluate(self, model: str, out: Path, format: str = FORMAT) -> None:
        """Evaluate a model under the double gate into a run folder, unless it is there."""
        from ..investigate import investigate

        how = {"limit": self.size.limit, "device": self.device, "asking": Asking(compat="collapse")}
        config = Config(model=model, benchmark=ORGANISM, format=format, probes=(), **how)
        if not evaluated(out):
            self.reporter.say(f"evaluating {out.name}")
            investigate(config, out, quiet=True, bars=False, contrast=False, report=False)

    def baselines(self, base: str, model: str, variants: Sequence[TrainingVariant]) -> None:
        """Evaluate a base in every format that some variants are trained in."""
        for format in dict.fromkeys(v.format for v in variants):
            self.evaluate(model, run_folder(self.folder, named(base, format), "baseline", None), format)

    def jobs(self, stage: int) -> Iterator[TrainingJob]:
        """The trainings of a stage; the second base is made when its turn comes."""
        seeds, chosen = range(self.study.seeds), [v for v in VARIANTS if v.stage == stage]
        yield from (self.job("base", self.study.model, v, seed) for seed in seeds for v in chosen)
        second = self.study.second
        if second == "none" or stage != 2:
            return
        if second == "train":
            second = str(_train_second(self.folder / "second-base", self.reporter))
        replicated = [v for v in VARIANTS if v.replicate]
        self.baselines(SECOND, second, replicated)
        yield from (self.job(SECOND, second, v, seed) for seed in seeds for v in replicated)

    def job(self, base: str, model: str, variant: TrainingVariant, seed: int) -> TrainingJob:
        base = named(base, variant.format)
        folder = self.folder / "trained" / f"{_slug(f'{base} {variant.name}')}-{seed}"
        return TrainingJob(base, model, variant, seed, folder)

    def do(self, job: TrainingJob) -> None:
        """Train, evaluate and, for some variants, measure the checkpoints."""
        from .trainers import TrainerOptions, per_step

        recipe, device, reporter = job.variant.recipe(self.size), self.device, self.reporter
        data = training_set(ORGANISM, recipe, seed=job.seed)
        steps = recipe.epochs * -(-recipe.prompts // per_step(recipe))
        how = TrainerOptions(job.seed, device, save_every=max(1, steps // self.size.checkpoints))
        trained = training.train(recipe, job.model, data, job.folder, how, reporter)
        run = run_folder(self.folder, job.base, job.variant.name, job.seed)
        self.evaluate(str(trained.model), run, job.variant.format)
        if job.variant.curve and not job.base.startswith(SECOND):
            limit = self.size.curve_limit
            training_curve.measure(job.folder, job.model, limit=limit, device=device, reporter=reporter)

    def finish(self) -> Findings:
        """Write the tables from the results so far."""
        folder, done = self.folder, []
        for base in ("base", SECOND):
            for seed in range(self.study.seeds):
                for variant in VARIANTS:
                    name = named(base, variant.format)
                    path = run_folder(folder, name, variant.name, seed)
                    if evaluated(path):
                        done.append((name, variant.name, PRESETS[variant.preset].depths, seed, path))
        bases = dict.fromkeys(named(b, v.format) for b in ("base", SECOND) for v in VARIANTS)
        baselines = {b: path for b in bases if evaluated(path := run_folder(folder, b, "baseline", None))}
        doses = {d: path for d in DOSES if evaluated(path := run_folder(folder, "dose", d, None))}
        curves = sorted((folder / "trained").glob(f"*/{training_curve.FILE}"))
        rows = [r for file in curves for r in read_json(file)["rows"]]
        if rows:
            training_curve.write(rows, folder)
        found = study_tables.collect(self.study, done, baselines, doses, rows, folder)
        study_tables.write(found, folder)
        self.reporter.say(f"{len(done)} trained models evaluated; tables: {folder / 'study.md'}")
        return found

    def open_up(self) -> None:
        """Compare the probes before and after the first training of some variants."""
        from . import inside

        opened = [v for v in VARIANTS if v.opened]
        for format in dict.fromkeys(v.format for v in opened):
            base = named("base", format)
            before = (self.study.model, run_folder(self.folder, base, "baseline", None))
            after = {}
            for v in (v for v in opened if v.format == format):
                model = self.job("base", self.study.model, v, 0).folder / "model"
                after[v.name] = str(model), run_folder(self.folder, base, v.name, 0)
            out = self.folder / "inside" / format
            inside.compare(before, after, out, self.size.inside, device=self.device, reporter=self.reporter)


def _train_second(out: Path, reporter: Reporter) -> Path:
    """Train (or finish) an organism of another architecture; returns its model folder.

    Qwen3 normalizes queries and keys. Everything else is shared, so a result that replicates on it does not depend on
    one architecture or one initialization. Its weights are not shipped (about ten minutes on one idle core).
    """
    from ..organism.recipe import OrganismRecipe
    from ..organism.train import each_step, train

    recipe = OrganismRecipe(architecture="qwen3")
    base, dose = (replace(s, steps=n) for s, n in zip((recipe.base, recipe.dose), SECOND_STEPS, strict=True))
    recipe = replace(recipe, base=base, dose=dose)
    with locked(out) as folder:
        return train("control", 0, folder, recipe, "cpu", each_step(reporter.say, "second base"))
