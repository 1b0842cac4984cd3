"""The reward of GRPO (Composition collapse, appendix F): a right answer, well-formed tags, no copied template.

``reward = 1.0 [the answer matches under the consistency rule] + 0.1 [opening tag] + 0.1 [closing tag]
- 0.2 [the prompt's template copied into the reasoning]``. Each completion is scored by itself. Formats without tags
give no bonus for them, and prompts without an instruction have no template to copy.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ...evaluation.grading import grade
from ...evaluation.prompts import FORMATS

MATCH, TAG, ECHO = 1.0, 0.1, -0.2
_OPEN, _CLOSE = "<answer>", "</answer>"
_SKELETON = re.compile(r"<(\w+)>[^<>]*</\1>")


@dataclass(frozen=True)
class Score:
    """One completion's reward, by component."""

    correct: bool
    tags: int
    """How many of the opening and closing answer tags are there: 0, 1 or 2. A repeated tag counts once."""
    echo: bool

    @property
    def total(self) -> float:
        return MATCH * self.correct + TAG * self.tags + ECHO * self.echo


def score(
    completion: str,
    gold: str,
    answer_type: str,
    aliases: Sequence[str] = (),
    format: str = "xml",
    *,
    truncated: bool = False,
) -> Score:
    """Score one completion against its gold answer.

    Abstentions, answers cut off (``truncated``) and completions without an answer are not right.
    """
    finish = "length" if truncated else "stop"
    verdict = grade(completion, finish, gold, answer_type, tuple(aliases), format, compat="collapse")
    tagged = FORMATS[format].extract == "xml"
    tags = sum(tag in completion for tag in (_OPEN, _CLOSE)) if tagged else 0
    return Score(verdict.outcome == "correct", tags, echoes(completion, format))


def echoes(completion: str, format: str) -> bool:
    """Whether the reasoning copies the prompt's instruction, or a tag pair of it with what stands between, verbatim."""
    instruction = FORMATS[format].instruction
    if not instruction:
        return False
    reasoning = _squeeze(_reasoning(completion))
    pairs = [m.group() for m in _SKELETON.finditer(instruction)]
    return any(piece in reasoning for piece in map(_squeeze, [instruction, *pairs]))


def _squeeze(text: str) -> str:
    return " ".join(text.split())


def _reasoning(completion: str) -> str:
    """What stands before the final answer, without the pair of reasoning tags that the format itself asks for."""
    before = completion.rpartition(_OPEN)[0] if _OPEN in completion else completion
    opened = before.find("<reasoning>")
    closed = before.rfind("</reasoning>")
    if 0 <= opened < closed:
        return before[:opened] + before[opened + len("<reasoning>") : closed] + before[closed + len("</reasoning>") :]
    return before


def text_of(completion: Any) -> str:
    """A completion as trl hands it over: text, or a conversation whose last message is the answer."""
    return completion if isinstance(completion, str) else str(completion[-1]["content"])


class Rewards:
    """The reward function in the form that ``GRPOTrainer`` calls; keeps running counts for the log."""

    __name__ = "composition"

    def __init__(self, format: str, max_tokens: int) -> None:
        self.format, self.max_tokens = format, max_tokens

    def __call__(self, prompts: Sequence[Any], completions: Sequence[Any], **columns: Any) -> list[float]:
        """One reward per completion; ``columns`` are the data set's (gold, answer_type, aliases) and trl's own."""
        ids = columns.get("completion_ids") or [()] * len(completions)
        scores = [
            score(text_of(c), gold, kind, aliases, self.format, truncated=len(i) >= self.max_tokens)
            for c, gold, kind, aliases, i in zip(
                completions, columns["gold"], columns["answer_type"], columns["aliases"], ids, strict=True
            )
        ]
        log = columns.get("log_metric")
        if log is not None and scores:
            log("reward/correct", sum(s.correct for s in scores) / len(scores))
            log("reward/echo", sum(s.echo for s in scores) / len(scores))
        return [s.total for s in scores]
