"""One way in for every benchmark: ``load("cases.jsonl")``, ``load("bamboogle:file.json")``, ..."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib.metadata import entry_points
from pathlib import Path

from ...errors import InputError, did_you_mean
from ..cases import Case, check_cases, read_cases
from .agentcoma import read_agentcoma
from .bamboogle import read_bamboogle
from .gsm8k import read_gsm8k
from .hotpotqa import read_2wiki, read_hotpotqa
from .hub import read_hub
from .math_hard import read_math_hard
from .mquake import read_mquake
from .multiarith import read_multiarith
from .musique import read_musique
from .shapes import shape_of
from .stad import read_stad
from .tot import read_tot
from .twohopfact import read_socrates, read_twohopfact
from .world import EXAMPLES as WORLD_EXAMPLES
from .world import read_world

Loader = Callable[[str], list[Case]]

READERS: dict[str, Loader] = {
    "cases": read_cases,
    "agentcoma": read_agentcoma,
    "bamboogle": read_bamboogle,
    "multiarith": read_multiarith,
    "gsm8k": read_gsm8k,
    "math-hard": read_math_hard,
    "musique": read_musique,
    "hotpotqa": read_hotpotqa,
    "2wiki": read_2wiki,
    "mquake": read_mquake,
    "twohopfact": read_twohopfact,
    "socrates": read_socrates,
    "stad": read_stad,
    "tot": read_tot,
    "hub": read_hub,
    "world": read_world,
}
"""Readers by the name that leads a spec (``name:path``)."""
SHIPPED = ("world",)
"""Readers that need no file: their name alone is a spec too."""
EXAMPLES: dict[str, Path] = {"world": WORLD_EXAMPLES}
"""Files of worked examples that benchmarks ship, by the name that their cases bear (``Case.benchmark``)."""

NO_STEPS = ("cases", "musique", "hotpotqa", "2wiki", "mquake", "twohopfact", "socrates")
"""Readers of questions that are asked for the answer alone where the gold answers are short; the others read data of
papers that ask in a way of their own."""


def load(spec: str | Path, named: Mapping[str, Loader] | None = None) -> list[Case]:
    """Load a benchmark.

    ``spec`` is the path of a JSON-lines case file or ``name:rest``, where ``name`` is a reader of this package, one
    of ``named`` (handed down by a higher layer) or an entry point of the group ``composcope.benchmarks``, and is
    called with ``rest``. The benchmarks that ship (``world``) need no ``rest``.

    Raises ``InputError`` for an unknown name, a missing file, and for anything a file holds that cannot be used.
    """
    text = str(spec)
    name, colon, rest = text.partition(":")
    path = Path(text).expanduser()
    if (not colon and name not in SHIPPED) or path.is_file():
        shape = shape_of(path)
        if shape is not None:
            raise InputError(f"{text}: holds records of the shape that the reader {shape} reads; give {shape}:{text}")
        if path.suffix.lower() == ".csv" and path.is_file():
            raise InputError(
                f"{text}: a CSV is read by a reader's name, such as agentcoma:{text} for AgentCoMa's columns; other "
                "cases are given as JSON lines, one case a line, or read by a reader of your own (--plugin FILE)"
            )
        return read_cases(path)
    loaders = {**READERS, **(named or {})}
    loader = loaders.get(name) or _installed(name)
    if loader is None:
        raise InputError(
            f"{text}: no such benchmark; give the path of a JSON-lines case file or NAME:FILE with NAME one of "
            + ", ".join(sorted(loaders))
            + (did_you_mean(name, loaders) or "; a reader of your own is named with --plugin FILE")
        )
    return check_cases(loader(rest), text)


def _installed(name: str) -> Loader | None:
    for point in entry_points(group="composcope.benchmarks", name=name):
        return point.load()
    return None
