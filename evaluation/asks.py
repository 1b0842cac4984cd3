"""Ask, Response and Grade: one prompt to a model, its answer, and the judgement of the answer.

Roles are plain strings so that they survive in any file: ``whole``, ``part:0``, ``part:0:paraphrase:2``,
``part:0:extra-context``, ``scaffold:1``, ``placeholder:1``, ``pair:whole``, ``self-ask``, ...
"""

from dataclasses import dataclass
from typing import Any, Literal

Outcome = Literal["correct", "incorrect", "abstained", "invalid"]
OUTCOMES: tuple[Outcome, ...] = ("correct", "incorrect", "abstained", "invalid")


@dataclass(frozen=True)
class Ask:
    """One prompt put to a model about a case."""

    case: str
    """Id of the case."""
    role: str
    """What is asked: ``whole``, ``part:0``, ``part:0:paraphrase:1``, ..."""
    prompt: str
    """The user message, or with ``prompting="raw"`` the completion prompt itself."""
    gold: str
    answer_type: str
    """How the gold answer is compared: one of ``cases.ANSWER_TYPES``."""
    format: str = "plain"
    """Name of the prompt format (``prompts.FORMATS``): it says how the answer is extracted."""
    aliases: tuple[str, ...] = ()
    max_tokens: int = 128
    stop: tuple[str, ...] = ()
    prompting: Literal["chat", "raw"] = "chat"
    temperature: float = 0.0
    seed: int = 0
    repeat: int = 0
    kind: str | None = None
    """Kind of the part asked about (``commonsense``, ``math``, ``date``, ...); None for wholes."""
    atom: str | None = None
    """Shared atom that a ``part:i:paraphrase:j`` role probes."""
    question: str | None = None
    """The question without instruction and worked examples; a judge reads it, and examples are put before it."""
    thinking: bool | None = None
    """Whether the chat template is told to think first (``enable_thinking``); None leaves it to the template."""
    options: tuple[tuple[str, str], ...] = ()
    """(letter, text) of each option, where the answer is a ``choice``."""
    begun: str = ""
    """Text that the response is forced to begin with; the model continues it, and both are graded together."""


@dataclass(frozen=True)
class Response:
    """What a model answered to one ask, and what produced it."""

    ask: str
    """Identity of the ask: the journal key (sha256, see ``journal.identity``)."""
    text: str
    finish_reason: Literal["stop", "length", "error"]
    prompt_tokens: int
    response_tokens: int
    prompt_ids: tuple[int, ...] | None = None
    """Token ids as fed (template and BOS included); None for engines that do not return them."""
    response_ids: tuple[int, ...] | None = None
    """Token ids generated, the final EOS included when one was generated."""
    error: str | None = None
    """Why there is no answer (``finish_reason="error"``): an infrastructure failure, never a wrong answer."""
    provenance: dict[str, Any] | None = None
    """Engine, versions, dtype, batch size: recorded, but not part of the ask's identity."""


@dataclass(frozen=True)
class Grade:
    """The judgement of one response."""

    outcome: Outcome
    answer: str | None
    """The answer as extracted; None when there was none."""
    match: str | None = None
    """How it was matched: ``exact``, ``numeric``, ``date``, ``set``, ``consistency``, ``judge``."""
    reason: str | None = None
    """The reason, where one is needed: ``no-answer``, ``truncated``, ``judge-parse``, ..."""
