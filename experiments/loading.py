"""Who answers: the model in this process, a server that has it, or Ray workers."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from ..terminal import to_stderr
from . import served
from .settings import Settings
from .targets import Target, load_local


def load_target(settings: Settings, run: Path | None = None, say: Callable[[str], None] | None = None) -> Target:
    """Load a model and its tokenizer from a folder, the cache or the hub, or connect to the server that has it.

    ``run`` is where a server of our own writes its log, ``say`` hears what it is doing. Close the target when done.
    Raises ``InputError`` or ``ModelError`` for names, folders, weights and servers that cannot be used.
    """
    if served.is_served(settings):
        return served.load_served(settings, run or Path(), say or to_stderr)
    if settings.serving.engine == "ray":
        from .distributed.target import load_fleet

        return load_fleet(settings, run or Path(), say or to_stderr)
    return load_local(settings, say or to_stderr)
