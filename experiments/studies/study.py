"""The types of a study: the paper's own choices (``Preset``), its runs, and its tables."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import Any

from ...errors import ComposcopeError
from ...evaluation.protocols.base import CaseSet
from ...files import Row
from ...probes.examples import Example
from ...probes.result import ProbeResult
from ...registry import Registry
from .. import investigate as job
from .. import probing
from ..config import Asking, Config
from ..console import exits
from ..console.printing import Reporter
from ..models.target import Target
from ..run.reader import RunData, read_run
from ..run.schema import Evaluated
from ..run.writer import OpenRun
from .spec import Spec, StudyModel


@dataclass(frozen=True)
class StudyTable:
    """One table of a study."""

    name: str
    title: str
    rows: Sequence[Row]
    note: str = ""
    columns: Sequence[str] = field(default=())
    """Columns shown as text, in this order; empty for the usual columns that any row has."""


@dataclass(frozen=True)
class Preset:
    """The choices of one paper."""

    name: str
    title: str
    protocol: str
    data: tuple[str, ...]
    """Organism benchmarks with the structure of the paper's data; the study uses them without ``--data``."""
    tables: Callable[[Study], Sequence[StudyTable]]
    figures: tuple[str, ...]
    probe: Callable[[ProbeContext], None] | None = None
    """The paper's probes; None if it has none."""
    format: str = "cot"
    prompting: str | None = None
    asking: Asking = field(default_factory=Asking)
    """How the paper asks; organisms are asked in the few words that they know (``organism_asking``)."""
    organism_asking: Asking = field(default_factory=Asking)
    organism_limit: Mapping[str, int] = field(default_factory=dict)
    """Cases per family x depth of organism data without ``--limit``, so that a laptop needs minutes, not hours."""
    headline: tuple[str, ...] = ()
    """Metrics over all cases in the table of models."""
    compat: str | None = None
    """The paper's grading and counting, shown with ours."""
    notes: tuple[str, ...] = ()
    """What the preset does not reproduce, and why."""
    about: str = ""
    """The description in the list of studies."""
    order: int = 100
    """The position in that list."""
    models: Callable[[Spec], Spec] | None = None
    """Checks the models before anything runs, and adds those of ``--series``; None accepts any models and no series."""


STUDIES: Registry[Preset] = Registry(
    "studies", lambda value: isinstance(value, Preset), __name__.rpartition(".studies")[0],
    modules=("agentcoma", "compositional_gsm", "stad", "composition_collapse", "studies.validity"),
)  # fmt: skip
"""All studies by name; those of this package are also scripts: ``python -m composcope.experiments.stad``."""


@dataclass(frozen=True)
class StudyRun:
    """One run of a study."""

    model: StudyModel
    data: str
    path: Path

    @cached_property
    def run(self) -> RunData:
        """The run folder as data."""
        return read_run(self.path)

    @property
    def label(self) -> str:
        return self.model.label

    @property
    def note(self) -> str:
        """Why the model was not probed; empty if it was probed, or was not to be."""
        return self.run.manifest.probe_note or ""


@dataclass
class Study:
    """A study while and after it runs."""

    spec: Spec
    preset: Preset
    folder: Path
    data: tuple[str, ...]
    runs: list[StudyRun] = field(default_factory=list)
    failed: dict[str, str] = field(default_factory=dict)
    """The reason for each run that failed, by run name."""
    n_invalid: int = 0
    stopped: list[str] = field(default_factory=list)

    def of(self, data: str) -> list[StudyRun]:
        """The runs on one data set, in the order of the models."""
        return [r for r in self.runs if r.data == data]

    def one(self, label: str, data: str) -> StudyRun | None:
        """The run of a model on a data set; None if it failed."""
        return next((r for r in self.of(data) if r.label == label), None)

    def exit_code(self) -> int:
        """1 when a run failed, 2 when answers without a judgement remain, else 0."""
        return exits.USER_ERROR if self.failed else exits.INVALID_REMAINS if self.n_invalid else exits.OK


@dataclass(frozen=True)
class ProbeContext:
    """An evaluated run with its model."""

    run: OpenRun
    settings: Config
    target: Target
    evaluated: Evaluated
    reporter: Reporter
    limit: int | None = None
    """Maximum number of cases to probe; None for as many as the recipe takes."""

    @cached_property
    def lm(self) -> Any:
        """The model, opened for reading and editing."""
        return self.target.open_model()

    def labelled(self, failures: Collection[str], successes: Collection[str]) -> list[Example]:
        """Wholes and parts of the given cases, in the benchmark's order."""
        sets = [
            CaseSet.of(label, (c for c in self.evaluated.cases if c in side))
            for label, side in (("failure", failures), ("success", successes))
        ]
        return self.evaluated.examples(self.target.tokenizer, sets)

    def all_cases(self) -> list[Example]:
        """Every case whose whole was judged, by whether it was right; the papers' tables cover all questions.

        With ``limit``, the first ones in the benchmark's order.
        """
        sides: dict[bool, set[str]] = {True: set(), False: set()}
        for row in self.evaluated.graded:
            if row.role == "whole" and row.outcome != "invalid":
                sides[row.outcome == "correct"].add(row.case)
        chosen = [c for c in self.evaluated.cases if c in sides[False] | sides[True]][: self.limit]
        return self.labelled(sides[False] & {*chosen}, sides[True] & {*chosen})

    def gated(self) -> tuple[set[str], set[str]]:
        """The protocol's failures and successes: every part known, the whole wrong or right."""
        return self.evaluated.ids("failure"), self.evaluated.ids("success")

    def note(self, text: str, examples: Sequence[Example], contrast: bool = True) -> None:
        """Record and report which cases the probes run on."""
        self.reporter.say(f"{self.run.name}: {text}")
        probing.save_chosen(self.run, probing.Chosen(tuple(examples), text, contrast))

    def save(self, name: str, examples: Sequence[Example], compute: Callable[..., ProbeResult], **options: Any) -> None:
        """Run a probe and save it in the run with a few single cases for the report, unless the same result exists."""
        chosen = probing.Chosen(tuple(examples), "", contrast=True)
        made = partial(compute, self.lm, examples, **options)
        probing.run_one(self.run, self.lm, name, chosen, self.settings, made, self.reporter, options)


def step(probe: Callable[[ProbeContext], None] | None, limit: int | None) -> job.ProbeStep:
    """A recipe's probes as the step of an investigation.

    If the model cannot be probed (a served model without local weights, an unknown architecture, no cases), the
    manifest records the reason as ``probe_note``, and the evaluation is kept.
    """

    def run(run: OpenRun, settings: Config, target: Target, found: Evaluated, reporter: Reporter) -> str | None:
        note = None
        if probe is not None and target.tokenizer is None:
            note = "only the server has this model; give its weights with --probe-model"
        elif probe is not None:
            try:
                probe(ProbeContext(run, settings, target, found, reporter, limit))
            except ComposcopeError as e:
                note = " ".join(str(e).split())
        if note is not None:
            reporter.say(f"{run.name}: probes not run: {note}")
        run.record(probe_note=note)
        return job.no_contrast(found, run.path)

    return run


def scaled_layers(published: Sequence[int], of: int, n_layers: int) -> list[int]:
    """Layers of a model with ``n_layers`` layers at the same relative depth as the published layers (of ``of``)."""
    return sorted({round(layer * (n_layers - 1) / (of - 1)) for layer in published})


def by_depth(cases: Mapping[str, Any], ids: Collection[str], depth: int, families: Collection[str]) -> list[str]:
    """The cases among ``ids`` of one depth (or bin, if declared) and of some families, in the benchmark's order."""
    chosen = [c for c, case in cases.items() if c in ids and case.family in families]
    return [c for c in chosen if depth == (cases[c].depth_bin or cases[c].depth)]
