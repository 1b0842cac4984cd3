"""Benchmarks by the name at the start of a spec, and ``load``, which reads any of them.

    load("cases.jsonl")  # a case file
    load("bamboogle:file.json")  # a published file and the name of its reader

A reader describes itself where it is defined:

    @benchmark("tot")
    def read_tot(path: str) -> list[Case]: ...
"""

import csv
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from ...errors import InputError, did_you_mean
from ...files import at_home
from ...registry import Registry
from ..case import Case
from ..cases import check_cases, read_cases


@dataclass(frozen=True)
class Benchmark:
    """One benchmark. Calling it reads its cases."""

    name: str
    read: Callable[..., list[Case]]
    """Cases of what stands after the colon."""
    answer_alone: bool = False
    """Whether its questions are asked for the answer alone where the gold answers are short; the others are data of
    papers that ask in a way of their own."""
    ships: bool = False
    """Whether it needs no file: its name alone is a spec too."""
    examples: Path | None = None
    """File of worked examples that it ships, for cases that bear its name."""

    def __call__(self, *args: Any, **options: Any) -> list[Case]:
        return self.read(*args, **options)


def benchmark(
    name: str, *, answer_alone: bool = False, ships: bool = False, examples: Path | None = None
) -> Callable[[Callable[..., list[Case]]], Benchmark]:
    """Make a benchmark of the function that reads it."""
    return lambda read: Benchmark(name, read, answer_alone, ships, examples)


READERS: Registry[Benchmark] = Registry(
    "benchmarks", lambda value: isinstance(value, Benchmark), __package__, Benchmark
)
_SHAPES: tuple[tuple[str, frozenset[str]], ...] = (
    ("musique", frozenset({"question_decomposition", "question"})),
    ("musique", frozenset({"paragraphs", "question"})),
    ("2wiki", frozenset({"evidences", "question"})),
    ("hotpotqa", frozenset({"supporting_facts", "question"})),
    ("hotpotqa", frozenset({"_id", "context", "question"})),
    ("mquake", frozenset({"single_hops", "questions"})),
    ("twohopfact", frozenset({"r2(r1(e1)).prompt", "e3.value"})),
    ("agentcoma", frozenset({"question_composition", "answer_composition"})),
    ("bamboogle", frozenset({"Question", "Q1", "A1"})),
    ("multiarith", frozenset({"sQuestion", "lEquations"})),
    ("math-hard", frozenset({"problem", "solution"})),
    ("stad", frozenset({"sub-task", "question"})),
    ("tot", frozenset({"question_type", "label", "question"})),
)
_ENOUGH = 1 << 20
"""Bytes that are read: the first record, or the header, of any of these files stands within them."""


def shape_of(path: Path) -> str | None:
    """The reader's name; None for a case file, and for whatever is none of the known shapes."""
    if not path.is_file():
        return None
    start = _start(path)
    header = next(csv.reader(start.split("\n")[:1]), []) if path.suffix.lower() == ".csv" else None
    record = _first_record(start) if header is None else dict.fromkeys(header)
    found = next((reader for reader, signs in _SHAPES if signs <= record.keys()), None)
    return found or ("gsm8k" if "id" not in record and "####" in str(record.get("answer")) else None)


def _start(path: Path) -> str:
    with path.open("rb") as file:
        return file.read(_ENOUGH).decode("utf-8-sig", "ignore")


def _is_case_file(path: Path) -> bool:
    """Whether a file begins with a case of our own format that has parts."""
    names = _first_record(_start(path)).keys() if path.is_file() else set[str]()
    return {"question", "answer", "parts"} <= names <= {"schema", *(f.name for f in fields(Case))}


def _first_record(start: str) -> dict[str, Any]:
    text = start.lstrip().removeprefix("[").lstrip()
    try:
        record: Any = json.JSONDecoder().raw_decode(text)[0]
    except (ValueError, RecursionError):
        return {}
    return record if isinstance(record, dict) else {}


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
    path = at_home(text)
    if (not colon and not (name in READERS and READERS[name].ships)) or path.is_file():
        shape = shape_of(path)
        if shape is not None:
            raise InputError(f"{text}: holds records of the shape that the reader {shape} reads; give {shape}:{text}")
        if path.suffix.lower() == ".csv" and path.is_file():
            raise InputError(
                f"{text}: a CSV is read by a reader's name, such as agentcoma:{text} for AgentCoMa's columns; other "
                "cases are given as JSON lines, one case a line, or read by a reader of your own (--plugin FILE)"
            )
        if not path.exists() and (name in READERS or name in (named or {})):
            raise InputError(f"{text}: is a reader; give it what it reads after a colon, such as {text}:FILE")
        return read_cases(path)
    loader = (named or {}).get(name) or READERS.find(name)
    if loader is None:
        loaders = {*READERS, *(named or {})}
        raise InputError(
            f"{text}: no such benchmark; give the path of a JSON-lines case file or NAME:FILE with NAME one of "
            + ", ".join(sorted(loaders))
            + (did_you_mean(name, loaders) or "; a reader of your own is named with --plugin FILE")
        )
    if name in READERS.own and name != CASES.name and _is_case_file(at_home(rest)):
        raise InputError(f"{text}: {rest} is a case file, which the reader {name} is not for; give {rest}")
    return check_cases(loader(rest), text)
