"""Worked examples before a question: our own, or from a file, picked by what is asked.

An example has a ``kind``. An ask takes the examples of the first kind that there are any of, from its exact role over
what it is (``q1``, ``q2``, ``pair``, ``code``, ``co-presented``; ``commonsense``, ``math``, ``self-ask``, ``part``,
``whole``) to ``*``.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

from ...errors import InputError
from .. import prompts, reading
from ..asks import Ask
from ..benchmarks.catalog import READERS
from ..grading.extract import CODE
from .catalog import PROTOCOLS, about
from .counting import part_index


@dataclass(frozen=True)
class Exemplar:
    """One worked example."""

    kind: str
    question: str
    answer: str
    worked: str | None = None
    """The reasoning that ends in the answer, without the answer cue or tags: the prompt format adds them."""


def read(path: str | Path) -> list[Exemplar]:
    """Examples from JSON lines with ``kind``, ``question``, ``answer`` and optionally ``worked``.

    Raises ``InputError`` naming file, line and field.
    """
    if not Path(path).is_file():
        raise InputError(f"--few-shot {path}: no such file; give a number, or JSON lines with kind, question, answer")
    found = [_checked(raw, where) for where, raw in reading.lines(path, "give JSON lines with kind, question, answer")]
    if not found:
        raise InputError(f"{path}: no examples; give one JSON object a line with kind, question and answer")
    return found


def _checked(raw: Any, where: str) -> Exemplar:
    if not isinstance(raw, dict):
        raise InputError(f"{where}: expected a JSON object, got {type(raw).__name__}")
    for name in ("kind", "question", "answer"):
        if not isinstance(raw.get(name), str | int | float) or not str(raw[name]).strip():
            raise InputError(f"{where}: field {name!r} is {raw.get(name)!r}; give a non-empty string")
    worked = raw.get("worked")
    if worked is not None and not isinstance(worked, str):
        raise InputError(f"{where}: field 'worked' is {worked!r}; give a string, or leave it out")
    return Exemplar(str(raw["kind"]), str(raw["question"]), str(raw["answer"]), worked)


def own(protocol: str, n: int) -> list[Exemplar]:
    """``n`` examples of our own for every kind of ask of a protocol.

    Raises ``InputError`` for a protocol without any, and for more than there are.
    """
    found = about(protocol).examples
    if found is None:
        having = ", ".join(name for name in PROTOCOLS.own if about(name).examples)
        raise InputError(
            f"--few-shot {n}: there are no examples of our own for {protocol} (there are for {having}); "
            "give a file of JSON lines with kind, question, answer"
        )
    name, make = found
    text = files("composcope.evaluation.protocols").joinpath("exemplars", name).read_text(encoding="utf-8")
    items = [json.loads(line) for line in text.splitlines()]
    if not 0 < n <= len(items):
        raise InputError(f"--few-shot {n}: give 1 to {len(items)} for {protocol}, or a file with examples of yours")
    return make(items[:n])


def of_benchmark(benchmark: str, n: int) -> list[Exemplar]:
    """The first ``n`` examples of every kind that a benchmark ships; none where it ships none.

    Raises ``InputError`` for more than there are.
    """
    file = READERS[benchmark].examples if benchmark in READERS else None
    if file is None or not n:
        return []
    by_kind: dict[str, list[Exemplar]] = {}
    for example in read(file):
        by_kind.setdefault(example.kind, []).append(example)
    most = min(map(len, by_kind.values()))
    if n > most:
        raise InputError(f"--few-shot {n}: give 1 to {most} for {benchmark}, or a file with examples of yours")
    return [example for kind in by_kind.values() for example in kind[:n]]


def kinds(ask: Ask, protocol: str) -> list[str]:
    """Kinds of examples that an ask takes, the first choice first."""
    found = [ask.role]
    if ask.role in about(protocol).example_kinds:
        found.append(about(protocol).example_kinds[ask.role])
    if ask.format == "self-ask":
        found.append("self-ask")
    if part_index(ask.role) is not None:
        found += [*([ask.kind] if ask.kind else []), "part"]
    elif ask.role not in ("code", "co-presented"):
        found.append("whole")
    return list(dict.fromkeys([*found, "*"]))


def choose(exemplars: Sequence[Exemplar], ask: Ask, protocol: str) -> list[Exemplar]:
    """The examples for an ask. Raises ``InputError`` where there are none of any kind that fits."""
    for kind in kinds(ask, protocol):
        if found := [e for e in exemplars if e.kind == kind]:
            return found
    raise InputError(
        f"--few-shot: no worked example for role {ask.role!r} of case {ask.case!r}; "
        f"give a file with examples of one of the kinds {', '.join(kinds(ask, protocol))}"
    )


def written(exemplar: Exemplar, ask: Ask, format: str) -> str:
    """The example's answer as the ask's format wants it; programs as they are."""
    if ask.format == CODE:
        return exemplar.answer
    return prompts.write_answer(exemplar.answer, exemplar.worked, format)
