"""A rule-based engine: it reads arithmetic questions and the builders' prompts, and answers them by computing."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import pytest

from composcope.evaluation.asks import Ask, Response
from composcope.evaluation.engines.base import BaseEngine
from composcope.evaluation.journal import ask_identity


class RuleEngine(BaseEngine):
    """Answers each ask with ``rule(ask)``; ``asked`` counts what really reached it."""

    def __init__(self, name: str, rule: Callable[[Ask], str]) -> None:
        self.identity = {"model": name, "revision": "1"}
        self.provenance = {"engine": "rules"}
        self.rule = rule
        self.asked: list[Ask] = []

    def answer(self, asks: Sequence[Ask]) -> Iterator[tuple[Ask, Response]]:
        # Out of order, as a server answers.
        for ask in reversed(asks):
            self.asked.append(ask)
            text = self.rule(ask)
            failed = text.startswith("!")
            yield (
                ask,
                Response(
                    ask=ask_identity(ask, self.identity),
                    text="" if failed else text,
                    finish_reason="error" if failed else "stop",
                    prompt_tokens=len(ask.prompt.split()),
                    response_tokens=len(text.split()),
                    error=text[1:] if failed else None,
                ),
            )


@pytest.fixture
def engine() -> type[RuleEngine]:
    return RuleEngine
