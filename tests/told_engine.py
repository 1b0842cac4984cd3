"""A model of rules in this process: whole commands without weights. What it answers follows from ask and name alone."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from types import SimpleNamespace
from typing import Any

from composcope.evaluation.asks import Ask, Response
from composcope.evaluation.engines.base import BaseEngine
from composcope.evaluation.journal import ask_identity
from composcope.evaluation.prompts import FORMATS
from composcope.experiments.models.resolve import ModelSource
from composcope.experiments.models.target import Loading, Target, choose_prompting

Rule = Callable[[Ask, float], str | None]
"""The answer to an ask, from a number in [0, 1) that is drawn for it; None: the request fails."""


def drawn(*words: str) -> float:
    return int(hashlib.sha256("|".join(words).encode()).hexdigest()[:8], 16) / 16**8


def usually_right(ask: Ask, number: float) -> str | None:
    """Right answers to most parts and half of the wholes; some wrong, some without any answer, some failures."""
    right = 0.5 if ask.role.startswith(("whole", "scaffold")) else 0.85
    if number < right:
        return ask.gold
    return None if number > 0.96 else "" if number > 0.92 else "Zanzibar 77.25"


class ToldEngine(BaseEngine):
    def __init__(self, name: str, rule: Rule = usually_right) -> None:
        self.name, self.rule = name, rule
        self.identity = {"weights": f"weights of {name}", "model": name}
        self.provenance = {"engine": "told"}
        self.asked: list[Ask] = []

    def answer(self, asks: Sequence[Ask]) -> Iterator[tuple[Ask, Response]]:
        for ask in asks:
            self.asked.append(ask)
            text = self.rule(ask, drawn(self.name, ask.prompt))
            known: dict[str, Any] = {"ask": ask_identity(ask, self.identity), "prompt_tokens": 7}
            if text is None:
                yield ask, Response(text="", finish_reason="error", response_tokens=0, error="no reply", **known)
            else:
                yield ask, Response(text=_put(text, ask.format), finish_reason="stop", response_tokens=3, **known)


def _put(answer: str, format: str) -> str:
    """An answer as its format asks for it."""
    assert format in FORMATS
    if format == "xml":
        return f"<answer>{answer}</answer>"
    return f"print({answer!r})" if format == "code" else f"So the final answer is: {answer}" if answer else ""


class ToldTarget(Target):
    """A model that is known by its engine, as one behind a server is."""

    def facts(self) -> dict[str, Any]:
        return {"name": self.source.name, "prompting": self.prompting}

    def numerics(self) -> dict[str, Any]:
        return {"dtype": "told"}


def target(name: str, rule: Rule = usually_right) -> ToldTarget:
    """``name`` as ``load_target`` gives a model."""
    tokenizer = SimpleNamespace(chat_template="told")
    return ToldTarget(
        ModelSource(name, name, False), None, None, ToldEngine(name, rule), choose_prompting(None, tokenizer)
    )


def load(loading: Loading, *_: Any) -> ToldTarget:
    """In place of ``load_target``."""
    return target(loading.model)
