"""The configuration of one run of a study: the paper's choices, then the command line's, then the model's own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..config import Config
from .spec import Spec, StudyModel
from .study import Preset


def config(spec: Spec, preset: Preset, given: Mapping[str, Any], model: StudyModel, data: str) -> Config:
    """The configuration of one run; ``given`` is what the command line said, as ``Config`` takes it."""
    organism = data.startswith("organism:")
    asking = preset.organism_asking if organism else preset.asking
    own = dict(model.options)
    serving = {k: own.pop(k) for k in ("engine", "base_url", "probe_model") if k in own}
    published = {} if organism else {"format": preset.format, "prompting": preset.prompting}
    limit = spec.limit or (preset.organism_limit.get(data) if organism else None)
    nested = {
        "asking": {**asking.given(), **given.get("asking", {})},
        "serving": {**given.get("serving", {}), **serving},
    }
    fixed = {"model": model.model, "benchmark": data, "protocol": preset.protocol, "seed": spec.seed, "probes": ()}
    return Config(**{**published, **given, "limit": limit, **own, **nested, **fixed})
