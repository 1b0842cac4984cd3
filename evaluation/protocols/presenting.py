"""How the asks of a protocol are formatted: worked examples, preamble, prompting, thinking and token budgets.

    FormattedProtocol(get("scaffolding"), Presentation(exemplars=tuple(own("scaffolding", 3))))

The format changes neither what is asked nor what is counted, so one wrapper serves every protocol.

A worked example has a ``kind``. An ask takes the examples of the first kind that exists, from the most exact to the
most general: its role, what it is (``q1``, ``q2``, ``pair``, ``code``, ``co-presented``; ``commonsense``, ``math``,
``self-ask``, ``part``, ``whole``), then ``*``.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal

from ...errors import InputError, did_you_mean
from .. import prompts, text_files
from ..asks import Ask, Grade
from ..benchmarks.catalog import READERS
from ..case import Case
from ..graded import Graded
from ..grading.extract import CODE, PAIR_Q1
from .asking import THINKING
from .base import BARE, PROTOCOLS, Protocol, Reduction, about, reduce
from .counting import part_index

EXAMPLES = "First come worked examples. Answer the last question in the same way."
NEXT_QUESTION = "\nQuestion:"
REASONING = ("cot", "self-ask")
SHORT = "short"


@dataclass(frozen=True)
class Presentation:
    """The format of asks; the defaults leave them as the protocol made them."""

    prompting: Literal["chat", "raw"] = "chat"
    """``raw``: completion prompts that end in "Answer:" and are cut where the model goes on to a next question."""
    exemplars: tuple[Exemplar, ...] = ()
    preamble: Literal["yes", "no", "both"] = "yes"
    """Whether the prompt has the instruction; ``both`` asks everything twice and reports both."""
    thinking: bool | None = None
    """Tell the chat template to think first, or not to; None leaves it to the template."""
    thinking_tokens: int = 4096
    """Token budget of asks with thinking: for the thinking and the answer."""
    cot_tokens: int | None = None
    """Token budget of the formats that reason step by step; None: the protocol's own."""
    temperature: float = 0.0
    """Answers are drawn at this temperature; 0 takes the likeliest token."""
    seed: int = 0
    """Of what is drawn."""
    may_think: bool = False
    """True for a chat template with a thinking switch that is left at its default. Short answers then have the budget
    of answers with thinking, because thoughts use the same budget."""

    def __post_init__(self) -> None:
        if self.prompting not in ("chat", "raw"):
            raise InputError(f"--prompting {self.prompting}: use chat or raw")
        if self.preamble not in ("yes", "no", "both"):
            raise InputError(f"--preamble {self.preamble}: use yes, no or both")
        for option, value in (("--thinking-tokens", self.thinking_tokens), ("--cot-tokens", self.cot_tokens)):
            if value is not None and value < 1:
                raise InputError(f"{option} {value}: give a whole number of at least 1")
        if self.thinking and self.prompting == "raw":
            raise InputError("--thinking needs the chat template: use --prompting chat")


@dataclass(frozen=True)
class FormattedProtocol:
    """A protocol whose asks are written as a ``Presentation`` says. The counting is that of the protocol."""

    protocol: Protocol
    how: Presentation = Presentation()

    @property
    def name(self) -> str:
        return self.protocol.name

    def asks(self, case: Case, graded: Mapping[str, Grade]) -> list[Ask]:
        """The protocol's asks, put as told; with ``preamble="both"`` also those in the roles ``no-preamble/...``."""
        if self.how.preamble != "both":
            return self._put(case, graded, self.how.preamble == "yes")
        bare = {r.removeprefix(BARE): g for r, g in graded.items() if r.startswith(BARE)}
        with_it = {r: g for r, g in graded.items() if not r.startswith(BARE)}
        without = [replace(ask, role=BARE + ask.role) for ask in self._put(case, bare, False)]
        return self._put(case, with_it, True) + without

    def reduce(self, rows: Sequence[Graded], cases: Mapping[str, Case] | None = None) -> Reduction:
        """The protocol's own metrics, also of the asks without preamble."""
        return reduce(self.protocol, rows, cases)

    def _put(self, case: Case, graded: Mapping[str, Grade], preamble: bool) -> list[Ask]:
        asks: Any = self.protocol.asks(case, graded)
        if not isinstance(asks, list | tuple):
            who = f"--protocol {self.name}: {type(self.protocol).__name__}.asks"
            raise InputError(f"{who} returns {asks!r:.60}; return a list of asks, an empty one where the case is done")
        return [self._present(ask, preamble) for ask in asks]

    def _present(self, ask: Ask, preamble: bool) -> Ask:
        format = ask.format if ask.format in prompts.FORMATS else str(getattr(self.protocol, "format", "cot"))
        changed: dict[str, Any] = {"prompt": self._prompt(ask, preamble, format), "prompting": self.how.prompting}
        if self.how.cot_tokens is not None and format in REASONING:
            changed["max_tokens"] = self.how.cot_tokens
        if self.how.temperature:
            changed.update(temperature=self.how.temperature, seed=self.how.seed)
        thinking = self._thinking(ask)
        if thinking:
            if self.how.prompting == "raw":
                raise InputError("thinking needs the chat template: use --prompting chat, or leave thinking out")
            # A stop string inside the thinking would end it.
            changed.update(max_tokens=self.how.thinking_tokens, stop=())
        elif thinking is None and self.how.may_think and format == SHORT:
            changed["max_tokens"] = max(ask.max_tokens, self.how.thinking_tokens)
        elif self.how.prompting == "raw":
            changed["stop"] = tuple(dict.fromkeys((*ask.stop, NEXT_QUESTION)))
        return replace(ask, thinking=thinking, **changed)

    def _thinking(self, ask: Ask) -> bool | None:
        if ask.thinking is not None or self.how.thinking is not None:
            return self.how.thinking if ask.thinking is None else ask.thinking
        # where thinking is compared with not thinking, no ask may leave it to the template
        ways = (*getattr(self.protocol, "also", ()), *getattr(self.protocol, "recovery", ()))
        return False if THINKING in ways else None

    def _prompt(self, ask: Ask, preamble: bool, format: str) -> str:
        # what asks for a program is the task itself, unless worked examples show it
        preamble = preamble or (ask.format == CODE and not self.how.exemplars)
        plain = not self.how.exemplars and self.how.prompting == "chat"
        if plain and preamble:
            return ask.prompt
        if ask.question is None or not ask.prompt.startswith(ask.question):
            if plain or self.how.exemplars:
                raise InputError(
                    f"protocol {self.name}: its asks do not say where the question ends (role {ask.role!r}); "
                    "ask without examples and with the preamble"
                )
            return ask.prompt
        instruction = ask.prompt[len(ask.question) :].strip()
        if plain:
            return ask.question
        examples = choose(self.how.exemplars, ask, self.name) if self.how.exemplars else []
        blocks = [_block(e.question, written(e, ask, format)) for e in examples]
        opening = " ".join(t for t in (EXAMPLES if blocks else "", instruction) if t) if preamble else ""
        last = _block(ask.question, "" if self.how.prompting == "raw" else None)
        return "\n\n".join([*([opening] if opening else []), *blocks, last])


def examples_in(ask: Ask) -> str | None:
    """The text of the worked examples in an ask's prompt; None without examples."""
    if ask.question is None:
        return None
    start, end = ask.prompt.find("Question: "), ask.prompt.rfind(f"\n\nQuestion: {ask.question}")
    return ask.prompt[start:end] if 0 <= start < end else None


def _block(question: str, answer: str | None) -> str:
    if answer is None:
        return f"Question: {question}"
    return f"Question: {question}\nAnswer: {answer}".rstrip()


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
    rows = text_files.objects(path, "JSON lines with kind, question, answer")
    return [_checked(raw, where) for where, raw in rows]


def _checked(raw: Mapping[str, Any], where: str) -> Exemplar:
    needed = ("kind", "question", "answer")
    known = {name: text_files.in_words(raw.get(name)) for name in needed}
    for name, value in known.items():
        if not isinstance(value, str) or not value.strip():
            raise InputError(f"{where}: field {name!r} is {value!r}; give a non-empty string")
    for name in raw.keys() - {*needed, "worked"}:
        if meant := did_you_mean(name, ("worked",)):
            raise InputError(f"{where}: field {name!r} is not known{meant}")
    worked = raw.get("worked")
    if worked is not None and not isinstance(worked, str):
        raise InputError(f"{where}: field 'worked' is {worked!r}; give a string, or leave it out")
    return Exemplar(**known, worked=worked)


def own(protocol: str, n: int) -> list[Exemplar]:
    """``n`` examples of our own for every kind of ask of a protocol.

    Raises ``InputError`` for a protocol without any, and for more than there are.
    """
    found = about(protocol).examples
    if found is None:
        having = ", ".join(name for name in PROTOCOLS.own if about(name).examples)
        raise InputError(
            f"--few-shot {n}: there are no built-in examples for {protocol} (there are for {having}); "
            "give a file of JSON lines with kind, question, answer"
        )
    name, make = found
    text = files("composcope.evaluation.protocols").joinpath("exemplars", name).read_text(encoding="utf-8")
    items = [json.loads(line) for line in text.splitlines()]
    if not 0 < n <= len(items):
        raise InputError(f"--few-shot {n}: give 1 to {len(items)} for {protocol}, or a file with examples of yours")
    return make(items[:n])


def chosen(few_shot: str, benchmarks: Collection[str]) -> list[Exemplar] | None:
    """The examples of ``--few-shot``: a file, or a number of those of the cases' own benchmark; None: the protocol's.

    Raises ``InputError`` for a file that cannot be read, and for more than the benchmark has.
    """
    if not few_shot.removeprefix("-").isdecimal():
        return read(few_shot)
    return of_benchmark(next(iter(benchmarks)), int(few_shot)) if len(benchmarks) == 1 else None


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
    if not 0 < n <= most:
        raise InputError(f"--few-shot {n}: give 1 to {most} for {benchmark}, or a file with examples of yours")
    return [example for kind in by_kind.values() for example in kind[:n]]


def kinds(ask: Ask, protocol: str) -> list[str]:
    """Kinds of examples that an ask takes, the first choice first."""
    role = "whole" if ask.format == PAIR_Q1 else ask.role  # the same prompt, read for its first answer
    found = [role]
    if role in about(protocol).example_kinds:
        found.append(about(protocol).example_kinds[role])
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
