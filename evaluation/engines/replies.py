"""What a server's reply holds: the text, why it ends, token counts and ids; and what is no answer at all.

Servers differ: content in parts, refusals in a field of their own, ends by abortion or error under status 200, counts
and ids that are missing or no numbers. Nothing of that may pass for an answer of the model.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .base import cut_after_stop

_CUT_OFF = frozenset({"length", "max_tokens", "model_length", "max_output_tokens"})
"""Ends that mean that the token budget or the context ran out."""
_BROKEN = frozenset(
    {"abort", "aborted", "cancel", "cancelled", "canceled", "error", "timeout", "insufficient_system_resource"}
)
"""Ends of a reply that the server did not finish: the text before it is no answer."""
_WITHHELD = frozenset({"content_filter", "safety", "recitation", "blocklist", "prohibited_content"})


class MalformedReplyError(Exception):
    """A reply with status 200 that is not a completion."""


def check_reply(reply: Any) -> None:
    """Raises ``MalformedReplyError`` for what is no finished completion; such replies are worth another try."""
    choices = getattr(reply, "choices", None)
    if not isinstance(choices, list) or not choices:
        raise MalformedReplyError(f"{type(reply).__name__} without choices")
    if getattr(reply, "error", None):
        raise MalformedReplyError(f"error beside the choices: {str(reply.error)[:200]}")
    choice = choice_of(reply)
    text = _content(choice)
    if not (text is None or isinstance(text, str)) or not isinstance(choice.finish_reason, str):
        raise MalformedReplyError("choice without text or finish_reason")
    if choice.finish_reason.lower() in _BROKEN:
        raise MalformedReplyError(f"finish_reason {choice.finish_reason!r}")


def choice_of(reply: Any) -> Any:
    """The first choice by its own number."""
    return min(reply.choices, key=lambda c: c.index if isinstance(getattr(c, "index", None), int) else 0)


def text_of(choice: Any) -> str:
    """The text of a checked reply's choice; a refusal in a field of its own counts as text. Always valid Unicode."""
    text = _content(choice) or getattr(getattr(choice, "message", None), "refusal", None) or ""
    return str(text).encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _content(choice: Any) -> Any:
    found = choice.text if hasattr(choice, "text") else getattr(getattr(choice, "message", None), "content", 0)
    if isinstance(found, list) and all(isinstance(part, dict) for part in found):
        # content in parts: the texts among them; thoughts have a type of their own
        return "".join(str(part.get("text") or "") for part in found if part.get("type") in (None, "text"))
    return found


def withheld(choice: Any) -> bool:
    """Whether a filter of the server kept the answer back."""
    return choice.finish_reason.lower() in _WITHHELD


def cut_off(choice: Any) -> bool:
    """Whether the tokens ran out."""
    return choice.finish_reason.lower() in _CUT_OFF


def counts(reply: Any) -> tuple[int, int]:
    """Tokens of prompt and response; 0 where the server does not say."""
    usage = getattr(reply, "usage", None)
    found = (getattr(usage, name, None) for name in ("prompt_tokens", "completion_tokens"))
    prompt, response = (n if isinstance(n, int) else 0 for n in found)
    return prompt, response


def end_at_stop(text: str, stops: Sequence[str], choice: Any) -> tuple[str, bool]:
    """The text with the stop string at its end, as all engines give it.

    Servers take the stop string off; vLLM says which one it was (``stop_reason``). A server that ignored the field
    is cut here.
    """
    cut, found = cut_after_stop(text, stops)
    if found is not None:
        return cut, True
    reason = getattr(choice, "stop_reason", None)
    if isinstance(reason, str) and reason in stops:
        return text + reason, True
    return text, False


def token_ids(reply: Any, choice: Any) -> tuple[tuple[int, ...] | None, tuple[int, ...] | None]:
    """Ids of prompt and response where the server sends them: vLLM does, on request (``return_token_ids``).

    None for either where it is no list of whole numbers.
    """
    prompt = getattr(choice, "prompt_token_ids", None) or getattr(reply, "prompt_token_ids", None)
    response = getattr(choice, "token_ids", None)
    return _ids(prompt) or None, _ids(response)


def _ids(found: Any) -> tuple[int, ...] | None:
    if not isinstance(found, list) or not all(type(i) is int and i >= 0 for i in found):
        return None
    return tuple(found)
