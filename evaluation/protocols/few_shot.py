"""Worked examples before a question: our own, or from a file, picked by what is asked.

An example has a ``kind``. An ask takes the examples of the first kind that there are any of, from its exact role over
what it is (``q1``, ``q2``, ``pair``, ``code``, ``co-presented``; ``commonsense``, ``math``, ``self-ask``, ``part``,
``whole``) to ``*``.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from importlib.resources import files
from pathlib import Path
from typing import Any

from ...errors import InputError
from .. import prompts, reading
from ..asks import Ask
from ..benchmarks.load import EXAMPLES
from ..grading.extract import CODE
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
    if protocol not in _OWN:
        raise InputError(
            f"--few-shot {n}: there are no examples of our own for {protocol} (there are for {', '.join(_OWN)}); "
            "give a file of JSON lines with kind, question, answer"
        )
    name, make = _OWN[protocol]
    text = files("composcope.evaluation.protocols").joinpath("exemplars", name).read_text(encoding="utf-8")
    items = [json.loads(line) for line in text.splitlines()]
    if not 0 < n <= len(items):
        raise InputError(f"--few-shot {n}: give 1 to {len(items)} for {protocol}, or a file with examples of yours")
    return make(items[:n])


def of_benchmark(benchmark: str, n: int) -> list[Exemplar]:
    """The first ``n`` examples of every kind that a benchmark ships; none where it ships none.

    Raises ``InputError`` for more than there are.
    """
    if benchmark not in EXAMPLES or not n:
        return []
    by_kind: dict[str, list[Exemplar]] = {}
    for example in read(EXAMPLES[benchmark]):
        by_kind.setdefault(example.kind, []).append(example)
    most = min(map(len, by_kind.values()))
    if n > most:
        raise InputError(f"--few-shot {n}: give 1 to {most} for {benchmark}, or a file with examples of yours")
    return [example for kind in by_kind.values() for example in kind[:n]]


def _chains(items: Sequence[dict[str, str]]) -> list[Exemplar]:
    """Q1, Q2 with its number, the pair, the pair as code, and Q2 beside the next item's Q1."""
    found = []
    for i, item in enumerate(items):
        first, worked_1 = item["answer_1"], item["worked_1"]
        second, worked_2 = item["answer_2"], item["worked_2"].replace("{X}", first)
        alone = item["question_2"].replace("X", first, 1)
        other = items[(i + 1) % len(items)]
        pair = prompts.pair(item["question_1"], item["question_2"])
        both = prompts.co_presented(other["question_1"], alone)
        found += [
            Exemplar("q1", item["question_1"], first, worked_1),
            Exemplar("q2", alone, second, worked_2),
            Exemplar("pair", pair, second, f"A1: {worked_1}. X is {first}. A2: {worked_2}"),
            Exemplar("co-presented", both, second, f"A1: {other['worked_1']}. A2: {worked_2}"),
            Exemplar("code", pair, f"```python\n{item['code']}\n```"),
        ]
    return found


def _mixed(items: Sequence[dict[str, str]]) -> list[Exemplar]:
    """The commonsense step, the math step, the whole, and the whole with follow-up questions.

    Steps of any other kind (other benchmarks have them) take examples of both kinds in turn.
    """
    found = []
    for i, item in enumerate(items):
        steps = [(item[kind], item[f"{kind}_answer"]) for kind in ("commonsense", "math")]
        found += [
            Exemplar(kind, item[key], item[f"{key}_answer"], item[f"{key}_worked"])
            for kind, key in (("commonsense", "commonsense"), ("math", "math"), ("whole", "composition"))
        ]
        found.append(replace(found[-3 + i % 2], kind="part"))
        found.append(Exemplar("self-ask", item["composition"], item["composition_answer"], prompts.self_ask(steps)))
    return found


_OWN: dict[str, tuple[str, Callable[[Sequence[dict[str, str]]], list[Exemplar]]]] = {
    "reasoning-gap": ("chains.jsonl", _chains),
    "compositionality-gap": ("mixed.jsonl", _mixed),
}

_REASONING = {
    "part:0": "q1",
    "part:1": "q2",
    "original": "q2",
    "whole": "pair",
    "pair:q1": "pair",
    "code": "code",
    "co-presented": "co-presented",
}


def kinds(ask: Ask, protocol: str) -> list[str]:
    """Kinds of examples that an ask takes, the first choice first."""
    found = [ask.role]
    if protocol == "reasoning-gap" and ask.role in _REASONING:
        found.append(_REASONING[ask.role])
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
