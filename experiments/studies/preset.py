"""The settings of one run of a study: the paper's choices, then the command line's, then the model's own."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from ..asking import Asking
from ..serving import Serving
from ..settings import Settings
from .spec import Spec, StudyModel
from .study import Preset


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
