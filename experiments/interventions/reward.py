"""The reward of GRPO (Composition collapse, appendix F): a right answer, well-formed tags, no copied template.

``reward = 1.0 [the answer matches under the consistency rule] + 0.1 [opening tag] + 0.1 [closing tag]
- 0.2 [the prompt's template copied into the reasoning]``. Each completion is scored separately. Formats without tags
give no tag bonus, and prompts without an instruction have no template to copy.
"""

import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any

from ...evaluation.engines.base import cut_after_stop
from ...evaluation.grading import grade
from ...evaluation.prompts import FORMATS

MATCH, TAG, ECHO = 1.0, 0.1, -0.2
_OPEN, _CLOSE = "<answer>", "</answer>"
_SKELETON = re.compile(r"<(\w+)>[^<>]*</\1>")


@dataclass(frozen=True)
class RewardParts:
    """One completion's reward, by component."""

    correct: bool
    tags: int
    """How many of the opening and closing answer tags occur: 0, 1 or 2. A repeated tag counts once."""
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
    thinking: bool = False,
    options: Sequence[Sequence[str]] = (),
    question: str | None = None,
) -> RewardParts:
    """Score one completion against its gold answer.

    Abstentions, answers cut off (``truncated``) and completions without an answer are not right. If there are several
    answers, the first one counts, because the evaluation would have stopped after it. Only the text after a thinking
    block counts, as in the evaluation, and none if it was cut off inside the block. ``thinking``: the prompt opens the
    block or asks for it. ``options``: (letter, text) of those of a ``choice``.
    """
    _, closed, answer = completion.rpartition("</think>")
    inside = not closed and (completion.lstrip().startswith("<think>") or (thinking and truncated))
    completion = "" if inside else answer
    finish = "length" if truncated else "stop"
    verdict = grade(
        _first_answer(completion, format), finish, gold, answer_type, tuple(aliases), format, "collapse",
        options=[(letter, text) for letter, text in options], question=question,
    )  # fmt: skip
    tagged = FORMATS[format].extract == "xml"
    tags = sum(tag in completion for tag in (_OPEN, _CLOSE)) if tagged else 0
    return RewardParts(verdict.outcome == "correct", tags, echoes(completion, format))


def echoes(completion: str, format: str) -> bool:
    """Whether a completion copies the prompt's instruction verbatim, or its reasoning copies a tag pair of the
    instruction including the text between the tags. White space does not matter.
    """
    pieces, reasoning = _template(format), _reasoning(completion)
    return any(piece.search(completion if i == 0 else reasoning) for i, piece in enumerate(pieces))


def _template(format: str) -> list[re.Pattern[str]]:
    """Patterns for a format's instruction and its tag pairs, with any white space; empty without an instruction."""
    instruction = FORMATS[format].instruction
    if not instruction:
        return []
    pieces = [instruction, *(m.group() for m in _SKELETON.finditer(instruction))]
    return [re.compile(r"\s+".join(map(re.escape, piece.split()))) for piece in pieces]


def _first_answer(completion: str, format: str) -> str:
    """The completion up to where an evaluation stops. Copies of the template cost a penalty and are not answers."""
    for piece in _template(format):
        completion = piece.sub(" ", completion)
    return cut_after_stop(completion, FORMATS[format].stop)[0]


def _reasoning(completion: str) -> str:
    """The text before the final answer, without the pair of reasoning tags that the format itself asks for."""
    before = completion.rpartition(_OPEN)[0] if _OPEN in completion else completion
    opened = before.find("<reasoning>")
    closed = before.rfind("</reasoning>")
    if 0 <= opened < closed:
        return before[:opened] + before[opened + len("<reasoning>") : closed] + before[closed + len("</reasoning>") :]
    return before


def text_of(completion: Any) -> str:
    """A completion as trl passes it: text, or a conversation whose last message is the answer."""
    return completion if isinstance(completion, str) else str(completion[-1]["content"])


class Rewards:
    """The reward function in the form that ``GRPOTrainer`` calls. It keeps running counts for the log."""

    __name__ = "composition"

    def __init__(
        self, format: str, max_tokens: int, thinking: bool = False, eos_ids: Collection[int | None] = (),
        read: Callable[[Sequence[int]], str] | None = None,
    ) -> None:  # fmt: skip
        """``eos_ids`` end an answer: one that ends with its last token is not cut off, as in an evaluation. ``read``
        makes text of a completion's token ids; None: the text is trl's own.
        """
        self.format, self.max_tokens, self.thinking, self.eos_ids = format, max_tokens, thinking, eos_ids
        self.read = read

    def __call__(self, prompts: Sequence[Any], completions: Sequence[Any], **columns: Any) -> list[float]:
        """One reward per completion; ``columns`` are those of the data set (``trainers.row``) and of trl."""
        n = len(completions)
        ids, options = (columns.get(name) or [()] * n for name in ("completion_ids", "options"))
        questions = columns.get("question") or [None] * n
        texts = map(self.read, ids) if self.read else map(text_of, completions)
        rows = zip(texts, columns["gold"], columns["answer_type"], columns["aliases"], strict=True)
        how = {"format": self.format, "thinking": self.thinking}
        scores = [
            score(*about, truncated=self._cut_off(i), options=some, question=asked, **how)
            for about, i, some, asked in zip(rows, ids, options, questions, strict=True)
        ]
        log = columns.get("log_metric")
        if log is not None and scores:
            log("reward/correct", sum(s.correct for s in scores) / len(scores))
            log("reward/echo", sum(s.echo for s in scores) / len(scores))
        return [s.total for s in scores]

    def _cut_off(self, ids: Sequence[int]) -> bool:
        return len(ids) >= self.max_tokens and ids[-1] not in self.eos_ids
