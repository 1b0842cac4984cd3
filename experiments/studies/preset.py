"""A paper's own choices as one frozen object: what is asked, how, of which data, and what comes out."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from ..asking import Asking
from ..serving import Serving
from ..settings import Settings
from .spec import Spec, StudyModel

if TYPE_CHECKING:
    from .opening import Opened
    from .results import Table
    from .running import Study


@dataclass(frozen=True)
class Preset:
    """What one paper did."""

    name: str
    title: str
    protocol: str
    data: tuple[str, ...]
    """Organism benchmarks of the paper's shape: what the study runs on without ``--data``."""
    tables: Callable[[Study], Sequence[Table]]
    figures: tuple[str, ...]
    probe: Callable[[Opened], None] | None = None
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
    models: Callable[[Spec], Spec] | None = None
    """Checks the models before anything runs, and adds those of ``--series``; None: any models, no series."""


@dataclass(frozen=True)
class Options:
    """What the command line adds to a preset."""

    format: str | None = None
    prompting: str | None = None
    asking: Asking = field(default_factory=Asking)
    serving: Serving = field(default_factory=Serving)
    max_asks: int | None = None
    batch_size: int | None = None
    dtype: str | None = None
    device: str | None = None
    pad_token: str | None = None
    reuse: bool = False


def settings(spec: Spec, preset: Preset, options: Options, model: StudyModel, data: str) -> Settings:
    """The settings of one run: the preset, then the command line, then what the model has for itself."""
    organism = data.startswith("organism:")
    base = preset.organism_asking if organism else preset.asking
    own = dict(model.options)
    serving = {k: own.pop(k) for k in ("engine", "base_url", "probe_model") if k in own}
    values: dict[str, Any] = {
        "format": options.format or (None if organism else preset.format),
        "prompting": options.prompting or (None if organism else preset.prompting),
        "limit": spec.limit or (preset.organism_limit.get(data) if organism else None),
        "batch_size": options.batch_size,
        "dtype": options.dtype,
        "device": options.device,
        "pad_token": options.pad_token,
        **own,
    }
    return Settings(
        model.model, data, preset.protocol, max_asks=options.max_asks, seed=spec.seed, probes=(), reuse=options.reuse,
        asking=merged(base, options.asking), serving=replace(options.serving, **serving), **values,
    )  # fmt: skip


def merged(base: Asking, given: Asking) -> Asking:
    """The preset's way to ask with what the user changed."""
    changed = given.changed()
    changed.pop("exemplars", None)
    changed |= {k: v for k in ("compat", "judge", "few_shot") if (v := getattr(given, k)) is not None}
    return replace(base, **changed) if changed else base
