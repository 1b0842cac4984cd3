"""The model of a run for a notebook: loaded from where the run says, or one that is in memory."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ...errors import InputError
from ..config import Config
from ..models.resolve import ModelSource
from ..models.target import Target, choose_prompting
from ..run.reader import RunData, read_config


def load(run: RunData, model: Any, tokenizer: Any) -> Target:
    """The model of a run, or the one given in its place."""
    from ..distributed.loading import load_target

    config = run_config(run, model)
    if model is not None and not isinstance(model, str | Path):
        return in_memory(model, tokenizer, config)
    return load_target(config, run.path)


def run_config(run: RunData, model: Any) -> Config:
    """The options of a run, with the model that was given for it where that is a path."""
    return Config.read(read_config(run.path), **({"model": str(model)} if isinstance(model, str | Path) else {}))


def in_memory(model: Any, tokenizer: Any, config: Config) -> Target:
    """A model in memory as the target of a run. Raises ``ModelError`` for an object that cannot be opened."""
    from ...evaluation.engines.local import LocalEngine
    from ...hooks.model import Model, load_model

    lm = model if isinstance(model, Model) else load_model(model, tokenizer)
    if lm.tokenizer is None:
        raise InputError("tokenizer: none is given with a model in memory; give the one that it was trained with")
    engine = LocalEngine(lm.model, lm.tokenizer, batch_size=config.batch_size)
    source = ModelSource(config.model, config.model, False)
    return Target(source, lm.model, lm.tokenizer, engine, choose_prompting(config.prompting, lm.tokenizer))
