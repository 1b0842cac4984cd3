"""Opens the target that answers: the model in this process, a server that has it, or Ray workers."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from ...terminal import to_stderr
from ..config import Config
from ..models import served
from ..models.target import Target, load_local


def load_target(config: Config, run: Path | None = None, say: Callable[[str], None] | None = None) -> Target:
    """Load a model and its tokenizer from a folder, the cache or the hub, or connect to the server that has it.

    ``run`` is the folder for the log of our own server; ``say`` receives progress messages. Close the target when done.
    Raises ``InputError`` or ``ModelError`` for names, folders, weights and servers that cannot be used.
    """
    if served.is_served(config):
        return served.load_served(config, run or Path(), say or to_stderr)
    if config.serving.engine == "ray":
        from .target import load_fleet

        return load_fleet(config, run or Path(), say or to_stderr)
    return load_local(config, say or to_stderr)
