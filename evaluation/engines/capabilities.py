"""Which request fields an OpenAI-compatible server really honors, found by trying each.

Servers accept fields that they ignore: ``transformers serve`` answers greedily at any temperature unless the model's
generation config samples, and drops ``n`` and ``logprobs``. Knows requests and texts, not HTTP.
"""

from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass

from ...errors import ModelError
from ..asks import Ask

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
    varied = _varied(draws[:_DRAWS])
    return Capabilities(
        chat=chat is not None,
        raw=raw is not None,
        max_tokens=_shortened(longer, short),
        stop=_stopped(send, way, longer),
        repeatable=None if again is None or chat is None else again.text == first.text,
        sampling=varied,
        seed=_same(draws[0], draws[-1]) if varied else None,
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


def _varied(draws: list[TrialReply | None]) -> bool | None:
    texts = [d.text for d in draws if d is not None]
    if len(texts) < len(draws):
        return False
    return len(set(texts)) > 1


def _same(one: TrialReply | None, other: TrialReply | None) -> bool | None:
    return None if one is None or other is None else one.text == other.text
