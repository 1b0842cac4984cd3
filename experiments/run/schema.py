"""The content of a run's files as types: every file is checked once, when it is read, and is typed from then on.

Cases, asks, graded rows, metrics and case sets are the dataclasses of ``evaluation``. A file that is cut off, edited or
partly copied is refused, with file, field, value and fix::

    checked(Manifest, {"identity": 3}, "runs/a/manifest.json")
    InputError: runs/a/manifest.json: field 'identity' is 3, not an object; restore the file, or make the run again
"""

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cache
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError, WrapValidator
from pydantic_core import PydanticCustomError

from ...errors import InputError
from ...evaluation.asks import Ask, Response
from ...evaluation.case import Case
from ...evaluation.graded import Graded
from ...evaluation.metrics import Metric
from ...evaluation.protocols.base import CaseSet, Reduction
from ..config import RECORDED

if TYPE_CHECKING:
    from ...probes.examples import Example

AGAIN = "restore the file, or make the run again"
COUNT_AGAIN = "restore the file, or compute it again with `composcope score`"
T = TypeVar("T")


Facts = dict[str, Any]


class _Document(BaseModel):
    """A file's content. Fields that this version does not know are kept."""

    model_config = ConfigDict(extra="allow", validate_assignment=True)

    def facts(self) -> Facts:
        """The recorded facts in the order in which they were recorded, without defaults."""
        return self.model_dump(exclude_unset=True)


class Answerer(_Document):
    """The engine that answered, or the judge: what decides its answers, and how it was run."""

    identity: Facts
    provenance: Facts


class Manifest(_Document):
    """``manifest.json``: what a run is, what it was made with, and its progress."""

    identity: Facts
    """Model, weights, benchmark, data, protocol, ...: what distinguishes this run from all others."""
    run: str | None = None
    status: str | None = None
    stopped: str | None = None
    """The limit that stopped the run before everything was asked."""
    created: str | None = None
    command: str = ""
    invocations: list[Facts] = []
    n_cases: int | None = None
    n_invalid: int | None = None
    model: Facts = {}
    benchmark: Facts = {}
    numerics: Facts = {}
    engine: Answerer | None = None
    judge: Answerer | None = None
    sandbox: Facts = {}
    """What executed the programs in the answers, if there were any."""
    composcope: Facts = {}
    versions: Facts = {}
    plugins: list[Any] = []
    timings: dict[str, float] = {}
    peak_memory: Facts = {}
    probe_note: str | None = None
    """The reason why a study did not probe the model."""

    def made_with(self) -> Facts:
        """What a result of the run was made with: model, data, code, seed, versions, numerics.

        Contains no paths, so moving the run does not change it.
        """
        known = ("weights", "revision", "config", "tokenizer", "chat_template")
        return {
            "run": self.run,
            "model": {"name": self.identity.get("model"), **{k: self.model[k] for k in known if k in self.model}},
            "data": {k: self.identity.get(k) for k in ("benchmark", "data")},
            **{k: self.identity.get(k) for k in ("protocol", "format", "prompting", "seed")},
            "composcope": self.composcope or None,
            "versions": self.versions or None,
            "numerics": self.numerics or None,
            "engine": self.engine.provenance if self.engine else None,
        }


def _metric(row: Any, check: Callable[[Any], Metric]) -> Metric:
    """Check a row of ``metrics.json``: it has its counts, and an interval has its method. Whole numbers stay whole."""
    if isinstance(row, Mapping):
        interval = ("interval", "high") if row.get("low") is not None else ()
        for name in ("metric", "group", "n", "value", *interval):
            if name not in row or (name == "interval" and not row[name]):
                raise PydanticCustomError("absent", "field '{name}' is missing", {"name": name})
    check(row)
    return Metric(**{f.name: row[f.name] for f in fields(Metric) if f.name in row})


class Metrics(_Document):
    """``metrics.json``."""

    protocol: str
    metrics: list[Annotated[Metric, WrapValidator(_metric)]]
    warnings: list[str] = []

    @property
    def compat(self) -> str | None:
        """The paper as which the run was last graded and counted, also by ``composcope score --compat``."""
        return next((found[1] for w in self.warnings if (found := re.search(r"\(--compat (\w+)\)", w))), None)


class ProbeAbout(_Document):
    """``probes/NAME/result.json``: the metadata of a probe's table and tensors."""

    probe: str | None = None
    axes: dict[str, list[str]] = {}
    settings: Facts = {}
    warnings: list[str] = []


class ProbedCases(_Document):
    """``probes/examples.json`` and each probe's ``inputs.json``: the cases that probes ran on, by group."""

    note: str = ""
    groups: dict[str, list[str]] = {}


class CaseIndex(_Document):
    """``probes/NAME/cases/index.json``: what is known of each entry."""

    entries: list[Facts] = []


class BuildAbout(_Document):
    """``build.json``: what a benchmark was built from."""

    options: Facts = {}
    inputs: Facts = {}


class StudyAbout(_Document):
    """``study.json``: the runs of a study, and what it says about their models."""

    runs: list[str] = []
    about: dict[str, Facts] = {}


class _Tally(_Document):
    count: int
    n: int


class _Followed(_Tally):
    name: str
    own: bool
    admitted: bool


class DiagnosisAbout(_Document):
    """``diagnosis/summary.json``: what its lines say besides the causes."""

    failures: int = 0
    unjudged: int = 0
    left_out: list[str] = []
    mended: dict[str, _Tally] = {}
    hypotheses: list[_Followed] = []


class ShardCases(_Document):
    """``shard.json``: which cases of a benchmark a shard holds."""

    index: int
    of: int
    n_cases: int
    positions: list[int]
    limit: int | None = None

    def __str__(self) -> str:
        return f"{self.index}/{self.of}"


@dataclass(frozen=True)
class Evaluated:
    """The result of an evaluation."""

    cases: Mapping[str, Case]
    asks: Mapping[str, Ask]
    responses: Mapping[str, Response]
    graded: Sequence[Graded]
    reduction: Reduction
    stopped: str | None = None
    """The limit that stopped it early; None if it is complete."""
    protocol: str | None = None

    @property
    def n_invalid(self) -> int:
        return sum(row.outcome == "invalid" for row in self.graded)

    def ids(self, label: str) -> set[str]:
        """Ids of the cases that have a label."""
        return {case for s in self.reduction.case_sets if s.label == label for case in s.ids}

    def examples(
        self, tokenizer: Any, sets: Iterable[CaseSet] | None = None, roles: Sequence[str] | None = None
    ) -> "list[Example]":
        """What probes take: wholes and parts of the cases in ``sets``; by default, in the sets of the run."""
        from ...probes.examples import from_case_sets  # brings torch

        asks, responses = self.per_case()
        chosen = self.reduction.case_sets if sets is None else sets
        return from_case_sets(tokenizer, self.cases, asks, responses, chosen, roles)

    def per_case(self) -> tuple[dict[str, Ask], dict[str, Response]]:
        """Asks and responses with one entry per case and role: a shared ask gets an entry for each of its cases."""
        asks, responses = {}, {}
        for row in self.graded:
            if row.ask is not None and row.ask in self.responses:
                key = f"{row.ask}/{row.case}/{row.role}"
                asks[key] = replace(self.asks[row.ask], case=row.case, role=row.role)
                responses[key] = self.responses[row.ask]
        return asks, responses

    def invalid_lines(self) -> list[str]:
        """One line for each of the three most frequent reasons for invalid grades, with an example, and the rest."""
        invalid = [row for row in self.graded if row.outcome == "invalid"]
        reasons = Counter(row.reason or "unknown" for row in invalid)
        first = {row.reason or "unknown": row for row in reversed(invalid)}
        shown = reasons.most_common(3)
        more = len(invalid) - sum(n for _, n in shown)
        return [
            f"{n} of {len(self.graded)} answers are invalid: {reason} "
            f"(first: case {first[reason].case!r}, role {first[reason].role!r})"
            for reason, n in shown
        ] + [f"{more} of {len(self.graded)} answers are invalid for other reasons"] * (more > 0)


@cache
def _adapter(kind: Any) -> TypeAdapter[Any]:
    return TypeAdapter(kind)


def checked(kind: type[T], value: Any, where: str, fix: str = AGAIN, needed: Collection[str] = ()) -> T:
    """``value`` as a type. ``needed`` names fields that must be present besides those that the type requires.

    Raises ``InputError`` that begins with ``where`` (file and line) and ends with ``fix``.
    """
    for name in needed:
        if name not in value:
            raise InputError(f"{where}: field {name!r} is missing; {fix}")
    try:
        return _adapter(kind).validate_python(value, context=RECORDED)
    except ValidationError as e:
        raise InputError(f"{where}: {_said(e.errors()[0])}; {fix}") from e


_KINDS = {"dict": "an object", "model": "an object", "dataclass": "an object", "list": "a list", "tuple": "a list",
          "string": "text", "int": "a whole number", "float": "a number", "bool": "true or false"}  # fmt: skip


def _said(error: Any, most: int = 60) -> str:
    """One sentence on a wrong field: ``metrics[0]: field 'n' is 'x', not a whole number``."""
    *outer, field = error["loc"] or ("",)
    inside = "".join(f"[{k}]" if isinstance(k, int) else f".{k}" for k in outer).lstrip(".")
    if error["type"] == "absent":
        return f"{inside}[{field}]: {error['msg']}"
    place = f"{inside}: field {field!r}" if inside else f"field {field!r}"
    if error["type"] == "missing":
        return f"{place} is missing"
    seen = repr(error["input"])
    kind = _KINDS.get(error["type"].split("_")[0])
    wanted = kind or error["msg"].replace("Input should be ", "")
    return f"{place} is {seen if len(seen) <= most else f'{seen[:most]}...'}, not {wanted}"
