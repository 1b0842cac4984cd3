"""Texts that answer nothing: questions only, a greeting only, or a part of the question."""

import re
from collections.abc import Sequence

from . import mentions, text, view

_ASKS = re.compile(
    r"\W*(?:(?:in|at|on|by|for|from|to|of|with)\s)?(?:what|which|who|whom|whose|when|where|why|how|is|are|was|were|do"
    r"|does|did|can|could|would|will|should|has|have|had)\b[^\n]*\?[\s\"')*]*",
    re.IGNORECASE,
)
_TASK = re.compile(
    r"\W*(?:simplify|factor|find|calculate|compute|solve|evaluate|expand|determine|differentiate|integrate)\s"
    r"(?![^\n]*(?:[=:]|\b(?:is|are|gives?|equals?|to)\b))[^\n]*",
    re.IGNORECASE,
)
"""A task like "Simplify 4x + 5x." in place of its solution."""
_GREETS = re.compile(
    r"\W*(?:(?:sure(?:\s+thing)?|certainly|of\s+course|absolutely|ok(?:ay)?|hello|hi|hey)(?:\s+there)?\W*)?"
    r"(?:(?:i(?:'d|'ll|'m|\s+would|\s+will|\s+can|\s+am)\s+(?:(?:be|more\s+than)\s+)?(?:happy|glad|here|help|assist|love)"
    r"|let\s+me\s+help|(?:happy|glad)\s+to\s+help)\b[^.!?:\n]*[.!?]?\s*)?",
    re.IGNORECASE,
)
_COMPUTES = re.compile(r"\bof\b|[+*/^\u00d7]|\d\s-\s")
_PART = 3
"""Least words of a text that is a part of its question."""
_LONGEST = 1000
"""Characters of a text that may answer nothing."""


def answers_nothing(said: str, golds: Sequence[str], answer_type: str, question: str | None) -> bool:
    """Whether a text has nothing but questions, greetings, or the end of the question ("12 % of 250")."""
    plain = view.plain(said).strip()
    given = f" {text.normalize(plain)} "
    if answer_type == "choice" or len(plain) > _LONGEST or any(g.strip().endswith("?") for g in golds):
        return False
    if any(given == f" {text.normalize(g)} " for g in golds):  # "Factor X" may be a name
        return False
    parts = view.sentences(plain)
    if parts and all(_ASKS.fullmatch(p) or _TASK.fullmatch(p) for p in parts):
        return True
    if any(f" {text.normalize(g)} " in given for g in golds):
        return False
    if parts and answer_type != "boolean" and all(_GREETS.fullmatch(p) for p in parts):
        return True
    return _is_part(plain, given, answer_type, question)


def _is_part(plain: str, given: str, answer_type: str, question: str | None) -> bool:
    """Whether a text is the end of a question without alternatives, and no name."""
    asked = f" {text.normalize(question or '')} "
    if len(given.split()) < _PART or not asked.endswith(given) or " or " in asked:
        return False
    verbs = {*given.split()} & (mentions.FINITE | {"where", "who", "which", "that"})
    computes = answer_type == "number" and _COMPUTES.search(plain) is not None  # "2 hours" is another answer
    return computes or (answer_type in ("number", "date", "text", "boolean") and bool(verbs))
