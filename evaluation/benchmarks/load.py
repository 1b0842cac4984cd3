"""One way in for every benchmark: ``load("cases.jsonl")``, ``load("bamboogle:file.json")``, ..."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from ...errors import InputError, did_you_mean
from ..cases import Case, check_cases, read_cases
from .catalog import READERS, Benchmark
from .shapes import shape_of

Loader = Callable[[str], list[Case]]
CASES = Benchmark("cases", read_cases, answer_alone=True)


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
    if (not colon and not (name in READERS and READERS[name].ships)) or path.is_file():
        shape = shape_of(path)
        if shape is not None:
            raise InputError(f"{text}: holds records of the shape that the reader {shape} reads; give {shape}:{text}")
        if path.suffix.lower() == ".csv" and path.is_file():
            raise InputError(
                f"{text}: a CSV is read by a reader's name, such as agentcoma:{text} for AgentCoMa's columns; other "
                "cases are given as JSON lines, one case a line, or read by a reader of your own (--plugin FILE)"
            )
        return read_cases(path)
    loader = (named or {}).get(name) or READERS.find(name)
    if loader is None:
        loaders = {*READERS, *(named or {})}
        raise InputError(
            f"{text}: no such benchmark; give the path of a JSON-lines case file or NAME:FILE with NAME one of "
            + ", ".join(sorted(loaders))
            + (did_you_mean(name, loaders) or "; a reader of your own is named with --plugin FILE")
        )
    return check_cases(loader(rest), text)
