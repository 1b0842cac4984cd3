"""What a server's reply contains: text, finish reason, token counts and ids, and the name of the model that signed it.

Servers differ: content in parts, refusals in a separate field, aborted replies with status 200, missing or malformed
counts and ids. None of this may be taken for an answer of the model.

Servers also sign with the dated name of an alias, without the owner's name, or with a file name. These names count as
the same model; any other name is another model until the user accepts it.
"""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from ..asks import Response
from .base import cut_after_stop

_CUT_OFF = frozenset({"length", "max_tokens", "model_length", "max_output_tokens"})
"""Finish reasons for a used-up token budget or context."""
_BROKEN = frozenset(
    {"abort", "aborted", "cancel", "cancelled", "canceled", "error", "timeout", "insufficient_system_resource"}
)
"""Finish reasons of replies that the server did not complete; their text is not an answer."""
_MOST_TOKENS = 2**31
_WITHHELD = frozenset({"content_filter", "safety", "recitation", "blocklist", "prohibited_content"})


class MalformedReplyError(Exception):
    """A reply with status 200 that is not a completion."""


def check_reply(reply: Any) -> None:
    """Raises ``MalformedReplyError`` for anything but a finished completion; such requests are worth a retry."""
    choices = getattr(reply, "choices", None)
    if not isinstance(choices, list) or not choices:
        raise MalformedReplyError(f"{type(reply).__name__} without choices")
    if getattr(reply, "error", None):
        raise MalformedReplyError(f"error beside the choices: {reply.error}")
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
    """The text of a checked reply's choice; a refusal in a separate field counts as text. Always valid Unicode."""
    text = _content(choice) or getattr(getattr(choice, "message", None), "refusal", None) or ""
    return unicode(str(text))


def unicode(text: str) -> str:
    """Text in which halves of surrogate pairs are joined or replaced, so that any file can hold it."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _content(choice: Any) -> Any:
    found = choice.text if hasattr(choice, "text") else getattr(getattr(choice, "message", None), "content", 0)
    if isinstance(found, list) and all(isinstance(part, dict) for part in found):
        # content in parts: the texts among them; thoughts have a type of their own
        return "".join(str(part.get("text") or "") for part in found if part.get("type") in (None, "text"))
    return found


def withheld(choice: Any) -> bool:
    """Whether a filter of the server withheld the answer."""
    return choice.finish_reason.lower() in _WITHHELD


def cut_off(choice: Any) -> bool:
    """Whether the tokens ran out."""
    return choice.finish_reason.lower() in _CUT_OFF


def counts(reply: Any) -> tuple[int, int]:
    """Tokens of prompt and response; 0 where the server does not say, or gives a number that no text has."""
    usage = getattr(reply, "usage", None)
    found = (getattr(usage, name, None) for name in ("prompt_tokens", "completion_tokens"))
    prompt, response = (number_of_tokens(n) or 0 for n in found)
    return prompt, response


def number_of_tokens(stated: Any) -> int | None:
    """A number of tokens that a server stated; None for anything that cannot be one."""
    return stated if type(stated) is int and 0 < stated <= _MOST_TOKENS else None


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

    None for either where it is not a list of whole numbers.
    """
    prompt = getattr(choice, "prompt_token_ids", None) or getattr(reply, "prompt_token_ids", None)
    response = getattr(choice, "token_ids", None)
    return _ids(prompt) or None, _ids(response)


def _ids(found: Any) -> tuple[int, ...] | None:
    if not isinstance(found, list) or not all(type(i) is int and i >= 0 for i in found):
        return None
    return tuple(found)


SHARE = 0.05
"""Share of foreign signatures above which asking stops."""
LEAST = 3
"""Foreign signatures below which it goes on, whatever their share."""
_DATED = re.compile(r"(?:[-@:](?:\d{4}(?:-?\d\d){0,2}|\d{3,4}|main|latest))$")


def same_model(asked: str, signed: str) -> bool:
    """Whether two names mean one model: ``gpt-4o`` and ``gpt-4o-2024-08-06`` do, ``gpt-4o`` and ``gpt-4o-mini`` not."""
    names = [name.strip().lower().rstrip("/").removesuffix(".gguf") for name in (asked, signed)]
    shorts = [name.rpartition("/")[2] for name in names]
    # Two owners of one name are two models; a server that leaves the owner out means the one that was asked.
    if names[0] != names[1] and all("/" in name for name in names) and not _nested(*names):
        return False
    one, other = shorts
    undated = [_DATED.sub("", name) for name in shorts]
    moving = [name.endswith(("-latest", ":latest")) for name in shorts]
    return one == other or one == undated[1] or other == undated[0] or (any(moving) and undated[0] == undated[1])


def _nested(one: str, other: str) -> bool:
    """Whether one is the other inside a folder: ``models/owner/name``."""
    short, long = sorted((_DATED.sub("", one), _DATED.sub("", other)), key=len)
    return long == short or long.endswith(f"/{short.lstrip('/')}")


def foreign(asked: str, signed: str | None, accepted: Collection[str] = ()) -> bool:
    """Whether an answer is signed by a model that was neither asked nor accepted."""
    return bool(signed) and not any(same_model(name, str(signed)) for name in (asked, *accepted))


def count(responses: Iterable[Response], identity: Mapping[str, str], accepted: Collection[str] = ()) -> dict[str, int]:
    """How many answers each foreign name signed; empty for a model that no server knows by its name."""
    found: dict[str, int] = {}
    asked = identity.get("model")
    for response in responses if asked is not None else ():
        signed = (response.provenance or {}).get("model")
        if response.finish_reason != "error" and isinstance(signed, str) and foreign(str(asked), signed, accepted):
            found[signed] = found.get(signed, 0) + 1
    return found
