"""A study: the paper's own choices as one frozen object, the runs that it consists of, and its tables."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from ...csv_files import Row
from ...registry import Registry
from ..config import Asking
from ..console import exits
from ..run.reader import RunData, read_run
from .opening import ProbeContext
from .spec import Spec, StudyModel


@dataclass(frozen=True)
class StudyTable:
    """One table of a study."""

    name: str
    title: str
    rows: Sequence[Row]
    note: str = ""
    columns: Sequence[str] = field(default=())
    """Shown as text, in this order; empty: the usual ones that any row has."""


@dataclass(frozen=True)
class Preset:
    """What one paper did."""

    name: str
    title: str
    protocol: str
    data: tuple[str, ...]
    """Organism benchmarks of the paper's shape: what the study runs on without ``--data``."""
    tables: Callable[[Study], Sequence[StudyTable]]
    figures: tuple[str, ...]
    probe: Callable[[ProbeContext], None] | None = None
    """How the paper opened models up; None where it did not."""
    format: str = "cot"
    prompting: str | None = None
    asking: Asking = field(default_factory=Asking)
    """The paper's way to ask; organisms are asked in the few words that they know (``organism_asking``)."""
    organism_asking: Asking = field(default_factory=Asking)
    organism_limit: Mapping[str, int] = field(default_factory=dict)
    """Cases per family x depth of organism data without ``--limit``: minutes, not hours, on a laptop."""
    headline: tuple[str, ...] = ()
    """Metrics over all cases that stand side by side in the table of models."""
    compat: str | None = None
    """The paper's grading and counting, shown beside ours."""
    notes: tuple[str, ...] = ()
    """What the preset does not reproduce, and why."""
    about: str = ""
    """What it shows, in the list of studies."""
    order: int = 100
    """Place in that list."""
    models: Callable[[Spec], Spec] | None = None
    """Checks the models before anything runs, and adds those of ``--series``; None: any models, no series."""


STUDIES: Registry[Preset] = Registry(
    "studies", lambda value: isinstance(value, Preset), __name__.rpartition(".studies")[0],
    modules=("agentcoma", "compositional_gsm", "stad", "composition_collapse", "studies.validity"),
)  # fmt: skip
"""Every study by its name; those of this package are scripts too: ``python -m composcope.experiments.stad``."""


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
        """Why the model was not opened up; empty where it was, or was not to be."""
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
    """What could not be run, with the reason, by run name."""
    n_invalid: int = 0
    stopped: list[str] = field(default_factory=list)

    def of(self, data: str) -> list[StudyRun]:
        """The runs on one data set, in the order of the models."""
        return [r for r in self.runs if r.data == data]

    def one(self, label: str, data: str) -> StudyRun | None:
        """The run of a model on a data set; None where it failed."""
        return next((r for r in self.of(data) if r.label == label), None)

    def exit_code(self) -> int:
        """1 when a run failed, 2 when answers without a judgement remain, else 0."""
        return exits.USER_ERROR if self.failed else exits.INVALID_REMAINS if self.n_invalid else exits.OK
