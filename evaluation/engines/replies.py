"""What a server's reply contains: text, finish reason, token counts and ids, and the name of the model that signed it.

Servers differ: content in parts, refusals in a separate field, aborted replies with status 200, missing or malformed
counts and ids. None of this may be taken for an answer of the model.

Servers also sign with the dated name of an alias, without the owner's name, or with a file name. These names count as
the same model; any other name is another model until the user accepts it.

Servers accept fields that they ignore: ``transformers serve`` answers greedily at any temperature unless the model's
generation config samples, and drops ``n`` and ``logprobs``. So which request fields a server really honors is found by
trying each (``find_capabilities``). Knows requests and texts, not HTTP.
"""

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from ...errors import ModelError
from ..asks import Ask, Response
from .base import cut_after_stop

_CUT_OFF = frozenset({"length", "max_tokens", "model_length", "max_output_tokens", "model_context_window_exceeded"})
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


def end_at_stop(text: str, stops: Sequence[str], choice: Any, *, opened: bool = False) -> tuple[str, bool]:
    """The text with the stop string at its end, as all engines give it.

    Servers take the stop string off; vLLM says which one it was (``stop_reason``). A server that ignored the field
    is cut here. ``opened`` as in ``cut_after_stop``.
    """
    cut, found = cut_after_stop(text, stops, opened=opened)
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


COUNT = "Count from 1 to 20 in words:"
RANDOM = "Write a few random words:"
_TEMPERATURE = 1.5
_DRAWS = 4


@dataclass(frozen=True)
class TrialReply:
    """One tiny reply."""

    text: str
    finish_reason: str
    tokens: int | None
    ids: bool = False
    """Token ids of prompt and reply came along."""


@dataclass(frozen=True)
class Capabilities:
    """What a server honors; None where it could not be told."""

    chat: bool | None = None
    raw: bool | None = None
    """Completion prompts without a chat template."""
    max_tokens: bool | None = None
    stop: bool | None = None
    repeatable: bool | None = None
    """The same greedy request twice gives the same text."""
    sampling: bool | None = None
    """Temperature is honored."""
    seed: bool | None = None
    """The same seed gives the same sample."""
    token_ids: bool | None = None
    """Token ids of prompt and reply come along on request, so that probes never tokenize again."""

    def to_dict(self) -> dict[str, bool | None]:
        return asdict(self)

    def require(self, asks: Iterable[Ask], where: str) -> None:
        """Refuse asks that need what the server ignores: a silent substitute would be taken for the model's answer."""
        asks = list(asks)
        sampled = any(a.temperature > 0 for a in asks)
        needed = (
            ("chat", any(a.prompting == "chat" for a in asks), "use one with /chat/completions, or --prompting raw"),
            ("raw", any(a.prompting == "raw" for a in asks), "use one with /completions, or --prompting chat"),
            ("max_tokens", bool(asks), "use one that honors it, such as vLLM"),
            ("sampling", sampled, "set do_sample in its generation config, or use one such as vLLM"),
        )
        for name, is_needed, fix in needed:
            if is_needed and getattr(self, name) is False:
                raise ModelError(f"{where}: the server ignores or refuses {name}, which these asks need; {fix}")


def find_capabilities(send: Callable[..., TrialReply | None]) -> Capabilities:
    """Try each field once. ``send(prompting, prompt=..., max_tokens=..., ...)`` gives None where it is refused."""
    raw = send("raw", prompt=COUNT, max_tokens=8)
    chat = send("chat", prompt=COUNT, max_tokens=16)
    way, first = ("chat", chat) if chat is not None else ("raw", raw)
    if first is None:
        return Capabilities(chat=False, raw=False)
    again = send(way, prompt=COUNT, max_tokens=16)
    short = send(way, prompt=COUNT, max_tokens=3)
    longer = again or first
    with_ids = send(way, prompt=COUNT, max_tokens=3, extra={"return_token_ids": True})
    draws = [send(way, prompt=RANDOM, max_tokens=12, temperature=_TEMPERATURE, seed=s) for s in (*range(_DRAWS), 0)]
    texts = [None if d is None else d.text for d in draws]
    varied = None not in texts[:_DRAWS] and len(set(texts[:_DRAWS])) > 1
    return Capabilities(
        chat=chat is not None,
        raw=raw is not None,
        max_tokens=_shortened(longer, short),
        stop=_stopped(send, way, longer),
        repeatable=None if again is None or chat is None else again.text == first.text,
        sampling=varied,
        seed=texts[0] == texts[-1] if varied and texts[-1] is not None else None,
        token_ids=with_ids is not None and with_ids.ids,
    )


def _shortened(longer: TrialReply, short: TrialReply | None) -> bool | None:
    if short is None:
        return None
    if short.tokens is not None:
        return short.tokens <= 3
    return len(short.text) < len(longer.text) or None


def _stopped(send: Callable[..., TrialReply | None], way: str, free: TrialReply) -> bool | None:
    middle = len(free.text) // 2
    stop = free.text[middle : middle + 2]
    if len(stop) < 2 or not stop.strip() or "\ufffd" in free.text:
        return None
    found = send(way, prompt=COUNT, max_tokens=16, stop=(stop,))
    if found is None:
        return False
    return len(found.text) < len(free.text)
