"""The types of a study: the paper's own choices (``Preset``), its runs, and its tables."""

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
from .probe_context import ProbeContext
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
