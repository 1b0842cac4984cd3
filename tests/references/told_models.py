"""Models of rules for the reference commands: what they answer follows from name and question alone.

They answer in many forms: right in other words, with another kind of mistake each, unfinished, not at all.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from types import SimpleNamespace
from typing import Any

import rule_server
from told_engine import ToldEngine, ToldTarget, drawn

from composcope.errors import ModelError
from composcope.evaluation.asks import Ask, Response
from composcope.evaluation.engines.base import BaseEngine
from composcope.evaluation.journal import ask_identity
from composcope.experiments.models.resolve import ModelSource
from composcope.experiments.models.target import Loading, choose_prompting

RIGHT = {"strong": (0.93, 0.8), "weak": (0.9, 0.25), "middle": (0.88, 0.5), "chatty": (0.86, 0.55),
         "twin": (0.95, 0.7), "control": (0.9, 0.3)}  # fmt: skip
"""Shares of right answers to parts and to wholes, by a word in the model's name."""
HELP = {"scaffold": 0.2, "placeholder": -0.15, "whole:cot": 0.15, "self-ask": 0.1, "code": 0.1, "co-presented": 0.1}


def _put(answer: str, ask: Ask, number: float) -> str:
    """The answer as the format asks for it, in one of several wordings."""
    if ask.format.startswith("xml"):
        return f"<answer>{answer}</answer>" if number < 0.9 else f"<answer>{answer}"
    if ask.format == "code":
        return f"```python\nprint({answer!r})\n```" if number < 0.9 else f"```python\nprint({answer!r}\n```"
    if ask.format in ("cot", "self-ask"):
        return f"First I look at what is given. Then I decide. So the final answer is: {answer}"
    said = ("{}", "{}.", "The answer is {}.", "It is {}, as far as I know.", "**{}**", "Answer: {}")
    return said[int(number * 997) % len(said)].format(answer)


def _right(ask: Ask, number: float) -> str:
    if ask.aliases and number < 0.35:
        return ask.aliases[int(number * 100) % len(ask.aliases)]
    if ask.answer_type == "number" and ask.gold.isdigit() and number < 0.2:
        return f"{int(ask.gold):,}"
    if ask.answer_type in ("list", "ordered-list"):
        items = [i.strip() for i in ask.gold.replace(" and ", ",").split(",")]
        return ", ".join(items[::-1] if ask.answer_type == "list" else items)
    return ask.gold


def _wrong(ask: Ask, number: float) -> str:
    if ask.answer_type == "number" and ask.gold.lstrip("-").isdigit():
        return str(int(ask.gold) + (1, -2, 10)[int(number * 90) % 3])
    if ask.answer_type == "boolean":
        return "no" if ask.gold.lower() in ("yes", "true") else "yes"
    if ask.answer_type in ("list", "ordered-list"):
        return ask.gold.partition(",")[0].partition(" and ")[0]
    return ("Zanzibar", "1 May 1066", ask.gold[::-1])[int(number * 90) % 3]


class Told(ToldEngine):
    """Answers, wrong answers and failures of a model with this name."""

    def answer(self, asks: Sequence[Ask]) -> Iterator[tuple[Ask, Response]]:
        part, whole = next((v for k, v in RIGHT.items() if k in self.name), (0.85, 0.5))
        for ask in asks:
            about = (self.name, ask.case, ask.role, ask.question or ask.prompt)
            luck, form = drawn(*about), drawn("form", *about)
            share = part if ask.role.startswith("part") else whole
            share += next((v for k, v in HELP.items() if ask.role.startswith(k)), 0.0)
            known: dict[str, Any] = {
                "ask": ask_identity(ask, self.identity), "prompt_tokens": 5 + len(ask.prompt.split()),
            }  # fmt: skip
            finish, error = "stop", None
            if luck < share:
                text = _put(_right(ask, form), ask, form)
            elif form < 0.06:
                text, finish, error = "", "error", "no reply"
            elif form < 0.14:
                text, finish = "Let me think about this step by step. There are", "length"
            elif form < 0.2:
                text = ""
            elif form < 0.34:
                text = _put("I don't know", ask, 0.5)
            else:
                text = _put(_wrong(ask, form), ask, form)
            yield (
                ask,
                Response(text=text, finish_reason=finish, response_tokens=len(text.split()), error=error, **known),
            )  # type: ignore[arg-type]


def target(name: str) -> ToldTarget:
    made = ModelSource(name, name, False)
    return ToldTarget(
        made,
        None,
        None,
        Told(name),
        choose_prompting(None, SimpleNamespace(chat_template="told")),  # type: ignore[arg-type]
    )


def load(loading: Loading, *_: Any) -> ToldTarget:
    """In place of ``load_target``; one model cannot be opened."""
    if loading.model == "organism:none":
        raise ModelError(f"{loading.model}: its server is gone")
    return target(loading.model)


class Teacher(BaseEngine):
    """Whatever a builder asks a teacher, a judge or a solver for, answered by the rules of ``rule_server``."""

    def __init__(self, name: str) -> None:
        self.identity = {"weights": name, "model": name}
        self.provenance = {"engine": "rules"}
        self.name = name

    def answer(self, asks: Sequence[Ask]) -> Iterator[tuple[Ask, Response]]:
        for ask in asks:
            try:
                text = rule_server.reply({"messages": [{"content": ask.prompt}], "temperature": ask.temperature})
            except (AttributeError, TypeError, IndexError):
                text = json.dumps({"score": int(drawn(self.name, ask.prompt) < 0.6)})
            yield ask, Response(ask_identity(ask, self.identity), text, "stop", 4, len(text.split()))


def open_role(spec: str, *_: Any, **__: Any) -> Teacher:
    """In place of the function of this name."""
    return Teacher(spec)
