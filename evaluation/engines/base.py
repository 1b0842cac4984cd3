"""The interface of all engines: an identity, a provenance, and answers as they finish.

    for ask, response in engine.answer(asks): ...

Conventions shared by all engines:

* ``Response.text`` is the text as the model wrote it, special tokens left out, cut exactly **after** the first stop
  string (the stop string is kept, so that a closing tag is still there to be seen). Thinking is not cut.
* ``finish_reason`` is ``stop`` for an end-of-text token or a stop string, ``length`` when ``max_tokens`` or the context
  ran out, ``error`` when something other than the model prevented an answer (then ``error`` says what).
* A prompt is never shortened. Answers may come in any order; every ask gets exactly one response.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from ...errors import NotAskedError
from ...terminal import plain
from ..asks import Ask, Response
from ..journal import Journal, ask_identity

THINKING_OPENED = "thinking_opened"
"""In a response's provenance: the prompt opened the thinking block, so the text starts inside it."""

REFUSED = "refused"
"""In a failed response's provenance: the server refused the content of this request and would refuse it again."""


@runtime_checkable
class Engine(Protocol):
    """Something that answers asks."""

    @property
    def identity(self) -> Mapping[str, str]:
        """What decides the answers: weights hash or model id and revision, tokenizer and chat-template hash."""
        ...

    @property
    def provenance(self) -> Mapping[str, Any]:
        """How the answers are made: engine, versions, dtype, device. Recorded, not part of the identity."""
        ...

    @property
    def context(self) -> int | None:
        """Positions that the model has; None where it names no limit."""
        ...

    def answer(self, asks: Sequence[Ask]) -> Iterator[tuple[Ask, Response]]:
        """Answer every ask, each as soon as it is finished."""
        ...

    def prompt_ids(self, asks: Sequence[Ask]) -> list[tuple[int, ...]] | None:
        """The token ids of the asks' prompts; None where only a server knows them.

        Raises ``ModelError`` for a chat template that cannot put an ask.
        """
        ...

    def open_journal(self, folder: str | Path, *, reuse: bool = False) -> Journal:
        """The journal that this engine's answers are written to."""
        ...

    def close(self) -> None:
        """Release the engine's resources: connections, a server that it started. Closing twice is harmless."""
        ...


class BaseEngine:
    """Defaults of an engine: no context limit, no token ids, the plain journal, nothing to close."""

    context: int | None = None

    def prompt_ids(self, asks: Sequence[Ask]) -> list[tuple[int, ...]] | None:
        """See ``Engine``."""
        return None

    def open_journal(self, folder: str | Path, *, reuse: bool = False) -> Journal:
        """See ``Engine``."""
        return Journal(folder, reuse=reuse)

    def close(self) -> None:
        """See ``Engine``."""


class ReplayEngine(BaseEngine):
    """An engine that answers from a journal only: for grading again without a model.

    ``failures`` are the journal's asks that got an error instead of an answer, by ask id: they fail again as they did.
    """

    def __init__(
        self,
        identity: Mapping[str, str],
        provenance: Mapping[str, Any] | None = None,
        failures: Mapping[str, Response] | None = None,
    ) -> None:
        self.identity = dict(identity)
        self.provenance = dict(provenance or {})
        self.failures = dict(failures or {})

    def answer(self, asks: Sequence[Ask]) -> Iterator[tuple[Ask, Response]]:
        """Raises ``NotAskedError``: what is not in the journal cannot be answered."""
        keys = [(ask, ask_identity(ask, self.identity)) for ask in asks]
        missing = [ask for ask, key in keys if key not in self.failures]
        if missing:
            raise NotAskedError(
                f"{len(missing)} asks are not in the journal (first: case {missing[0].case!r}, role "
                f"{missing[0].role!r}); run the evaluation again with the model to complete it"
            )
        return iter([(ask, self.failures[key]) for ask, key in keys])


def error_response(ask: Ask, identity: Mapping[str, str], error: str, prompt_tokens: int = 0) -> Response:
    """The response to an ask that could not be answered for a reason that is not the model's."""
    return Response(
        ask=ask_identity(ask, identity),
        text="",
        finish_reason="error",
        prompt_tokens=prompt_tokens,
        response_tokens=0,
        error=" ".join(plain(error).split()),
    )


def with_thinking_open(ask: Ask, response: Response) -> str:
    """The text, said to be thinking where it ended inside a block that the prompt had opened.

    Where the tokens ran out before the thinking was closed, what looks like an answer is a thought.
    """
    opened = ask.thinking or (response.provenance or {}).get(THINKING_OPENED)
    reasoned = (response.provenance or {}).get("reasoning")
    inside = opened and not reasoned and response.finish_reason == "length" and "</think>" not in response.text
    return f"<think>{response.text}" if inside else response.text


def think(thinking: bool) -> dict[str, bool]:
    """The options that switch thinking on or off in chat templates, under both names in use."""
    return {"enable_thinking": thinking, "thinking": thinking}


def cut_after_stop(text: str, stops: Sequence[str], *, opened: bool = False) -> tuple[str, str | None]:
    """Text up to and including the stop string that ends first, and that stop string (None: the text as it is).

    A stop string inside the thinking (which the prompt may have ``opened``) is none: thoughts quote the form of the
    answer that they are to lead to.
    """
    thoughts, closed, answer = text.rpartition("</think>")
    ends = [(answer.index(stop) + len(stop), stop) for stop in stops if stop in answer]
    if not ends or (not closed and (opened or text.lstrip().startswith("<think>"))):
        return text, None
    end, stop = min(ends)
    return f"{thoughts}{closed}{answer[:end]}", stop


def ask_all(engine: Engine, asks: Sequence[Ask], journal: Journal | None = None) -> list[Response]:
    """The responses to ``asks``, in their order.

    With a journal nothing is asked twice, over runs too: a builder that was stopped goes on where it was. Failures of
    the infrastructure are responses with ``finish_reason="error"``. Thoughts that were cut off begin with ``<think>``.
    """
    keys = [ask_identity(ask, engine.identity) for ask in asks]
    known: dict[str, Response] = {}
    if journal is not None:
        journal.begin(engine.identity, engine.provenance)
        known = {key: kept for key in keys if (kept := journal.get(key)) is not None}
    missing = {key: ask for key, ask in zip(keys, asks, strict=True) if key not in known}
    for ask, response in engine.answer(list(missing.values())) if missing else ():
        key = ask_identity(ask, engine.identity)
        known[key] = response
        if journal is not None:
            journal.record(key, ask, known[key], engine.identity)
    given = [(ask, known[key]) for ask, key in zip(asks, keys, strict=True)]
    return [replace(response, text=with_thinking_open(ask, response)) for ask, response in given]
