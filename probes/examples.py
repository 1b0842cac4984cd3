"""Example: one prompt with the model's response and the gold answer, as token ids and spans, labelled for contrasts."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Example:
    """What a probe runs on. Token ids are those that were fed and generated, never re-tokenised text."""

    case: str
    role: str
    """``whole``, ``part:0``, ..."""
    kind: str
    """What the role asks about: ``composition`` for wholes, else the part's kind (``commonsense``, ``math``, ...)."""
    group: str
    """Label from the case set: ``failure`` or ``success``."""
    prompt_ids: tuple[int, ...]
    """Template and BOS included."""
    response_ids: tuple[int, ...]
    """As generated, final EOS included when there was one."""
    answer_ids: tuple[int, ...]
    """The gold answer (``worked`` when the case gives it) tokenised in the context of the prompt."""
    cue_tokens: int
    """Trailing prompt tokens that belong to the template's generation prompt: they count as new, not as context."""
    question_span: tuple[int, int]
    """Half-open range of prompt positions that hold the question's own text."""
    family: str | None = None
    depth: int | None = None
    operation: str | None = None
    cluster: str | None = None
