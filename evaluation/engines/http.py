"""The HTTP engine: any OpenAI-compatible server (vLLM, ``transformers serve``, hosted).

Concurrent, with retries and backoff; a failed request is an error response, never an answer. Servers drop request
fields silently, so ``connect`` tries each field once and an evaluation that needs a missing one is refused. Keys reach
their own server only (see ``transport``), and no answer, identity, provenance, error or log.
"""

from __future__ import annotations

import os
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from queue import Empty, Full, Queue
from typing import Any
from urllib.parse import urlsplit

import httpx2
import openai

from ...errors import ModelError
from ...terminal import plain
from ..asks import Ask, Response
from ..journal import ask_identity
from . import replies, transport
from .addresses import check_key, secret
from .base import REFUSED, THINKING_OPENED, BaseEngine, error_response, think
from .replies import LEAST, SHARE, Capabilities, TrialReply, find_capabilities, foreign
from .transport import RedirectedError, ReplyTooLargeError, Transport, is_official, stay_on_host

# Wrong key, no permission, no such model, another host: the next request will not fare better.
_FATAL = (openai.AuthenticationError, openai.PermissionDeniedError, openai.NotFoundError, RedirectedError)
_FAILED = (openai.OpenAIError, replies.MalformedReplyError, ReplyTooLargeError, ValueError, RecursionError)
_CHECK = "check key, model name and base URL (--api-key-env names the key)"
_LONGEST_NAME = 1000
_SECRET = 8
"""Least length of a key that is searched for in answers; shorter keys are placeholders."""
_NAMED = "ask for the model by its own name, or, if both are names of one model, say so with --signed-as"
_LARGEST_LIST = 1 << 24
"""Bytes of a server's list of models."""
_DEADLINES = 5
"""Requests' worth of time for one ask with its retries, unless told otherwise."""


def connect(base_url: str, model: str, **options: Any) -> HttpEngine:
    """Connect to a server and find out which request fields it honors (about ten tiny requests).

    ``options`` are those of ``HttpEngine``. Raises ``ModelError`` when the server cannot be reached, refuses the key,
    does not know the model or answers for another one.
    """
    engine = HttpEngine(base_url, model, **options)
    engine.check()
    return engine


class HttpEngine(BaseEngine):
    """An OpenAI-compatible server as an engine; made by ``connect``."""

    def __init__(
        self,
        base_url: str,
        model: str,
        *,
        api_key: str | None = None,
        revision: str | None = None,
        concurrency: int = 8,
        timeout: float = 120.0,
        deadline: float | None = None,
        retries: int = 6,
        check_first: bool = False,
        signed_as: Sequence[str] | None = (),
        direct: bool = False,
    ) -> None:
        """``timeout`` is for one request from the first byte to the last, ``deadline`` for an ask with its retries.

        ``api_key`` defaults to ``$OPENAI_API_KEY`` for the service that it belongs to, and to none for all others.
        ``check_first`` does at the first ask what ``connect`` does at once. ``signed_as`` are other names of the same
        model, None accepts every name. ``direct``: by no proxy.
        """
        if urlsplit(base_url).scheme not in ("http", "https"):
            raise ModelError(f"base URL {_public(base_url)!r}: give http://HOST:PORT/v1 or https://...")
        if concurrency < 1:
            raise ModelError(f"concurrency is {concurrency}; give at least 1")
        own = os.environ.get("OPENAI_API_KEY") if is_official(base_url) else None
        self._key = api_key or own or "EMPTY"
        check_key(self._key, "the API key" if api_key else "OPENAI_API_KEY")
        self._secret = secret(self._key) if len(self._key) >= _SECRET else None
        self.name = f"model {model!r} at {_public(base_url)}"
        self.model = model
        self.revision = revision
        self.concurrency = concurrency
        self.retries = retries
        self.timeout = timeout
        self.deadline = _DEADLINES * timeout if deadline is None else deadline
        self.capabilities = Capabilities()
        self.signed_as = signed_as
        self.say: Callable[[str], None] = lambda line: None
        """Where a trial request that has to be sent again is reported; those of asks move a bar."""
        self._refused = ""
        self._signed: Counter[bool] = Counter()
        self._accepted = False
        self._host = urlsplit(base_url).hostname or ""
        self._new_limit = False
        self._unchecked = check_first
        self.answered_as: str | None = None
        """The name that the server signs with, where it is not the one that was asked for: an alias, or a mistake."""
        self.extra_fields: Mapping[str, Any] = {}
        """Sent along with every request: fields beyond OpenAI's that this server is known to honor."""
        self._transport = Transport(base_url, self._key, concurrency + 1, direct=direct)
        self._client = openai.OpenAI(
            base_url=base_url,
            api_key=self._key,
            max_retries=0,  # ours know the deadline
            http_client=httpx2.Client(
                transport=self._transport,
                event_hooks={"response": [stay_on_host]},
                follow_redirects=True,
                headers={"Accept-Encoding": "gzip, deflate"},
            ),
        )

    def close(self) -> None:
        """Close the connections to the server."""
        self._transport.close()

    @property
    def identity(self) -> dict[str, str]:
        return {"model": self.model, "revision": self.revision or "unstated", "chat_options": "{}"}

    @property
    def provenance(self) -> dict[str, Any]:
        return {
            "engine": "openai",
            "openai": openai.__version__,
            "server": self._host,
            "concurrency": self.concurrency,
            "capabilities": self.capabilities.to_dict(),
            **({} if self._unchecked else {"answered_as": self.answered_as or self.model}),
        }

    def answer(self, asks: Sequence[Ask]) -> Iterator[tuple[Ask, Response]]:
        """Answer every ask, ``concurrency`` at a time, as the replies arrive.

        A request that keeps failing gives an error response. Raises ``ModelError`` when a field that these asks need
        is ignored by the server, when it refuses the key or the model, when it reports another model for too many
        answers, and after ``3 * concurrency`` failures in a row (a request that the server refuses for its content
        does not count). Answers that came before are kept.
        """
        if any(ask.begun for ask in asks):
            raise ModelError(f"{self.name}: a server cannot be made to begin its answer; ask a model in this process")
        if self._unchecked and asks:
            self.check()
        self.capabilities.require(asks, self.name)
        failures = 0
        for ask, outcome in self._in_parallel(asks):
            if isinstance(outcome, BaseException):
                raise outcome
            refused = REFUSED in (outcome.provenance or {})
            failures = failures + 1 if outcome.finish_reason == "error" and not refused else 0
            yield ask, outcome
            if failures >= max(3 * self.concurrency, 5):
                raise ModelError(
                    f"{self.name}: {failures} requests failed in a row (last: {outcome.error}); "
                    "check the server, then run the same command again"
                )
            self._check_signature(outcome)

    def _check_signature(self, response: Response) -> None:
        if response.finish_reason == "error":
            return
        signed = (response.provenance or {}).get("model")
        self._signed[self._is_foreign(signed)] += 1
        n, others = self._signed.total(), self._signed[True]
        if others >= LEAST and others > SHARE * n:
            raise ModelError(
                f"{self.name}: the server reports another model, {signed!r}, for {others} of {n} answers; {_NAMED}"
            )

    def _is_foreign(self, signed: str | None) -> bool:
        return self.signed_as is not None and foreign(self.model, signed, self.signed_as)

    def _in_parallel(self, asks: Sequence[Ask]) -> Iterator[tuple[Ask, Response | BaseException]]:
        todo: Queue[Ask] = Queue()
        for ask in asks:
            todo.put(ask)
        # A queue of one: a killed run loses only the replies in flight.
        done: Queue[tuple[Ask, Response | BaseException]] = Queue(maxsize=1)
        stop = threading.Event()
        for _ in range(min(self.concurrency, len(asks))):
            # Daemons: a request in flight must not hold up Ctrl-C.
            threading.Thread(target=self._work, args=(todo, done, stop), daemon=True).start()
        try:
            for _ in asks:
                yield done.get()
        finally:
            stop.set()

    def _work(self, todo: Queue[Ask], done: Queue[tuple[Ask, Response | BaseException]], stop: threading.Event) -> None:
        while not stop.is_set():
            try:
                ask = todo.get_nowait()
            except Empty:
                return
            try:
                outcome: Response | BaseException = self._answer_one(ask)
            except BaseException as e:
                outcome = e
            while not stop.is_set():
                try:
                    done.put((ask, outcome), timeout=0.2)
                    break
                except Full:
                    continue

    def _answer_one(self, ask: Ask) -> Response:
        try:
            return self._response(ask, self._request(ask))
        except (*_FATAL, *_FAILED) as e:
            refused = transport.is_refusal(e)
            # Where the key was taken before, a 403 may be about this one request.
            own = isinstance(e, openai.PermissionDeniedError) and (refused or self._accepted)
            if isinstance(e, _FATAL) and not own:
                raise ModelError(f"{self.name}: {self._said(e)}; {_CHECK}") from None
            return self._failure(ask, self._said(e), refused=refused)

    def _failure(self, ask: Ask, error: str, *, refused: bool) -> Response:
        found = error_response(ask, self.identity, error)
        return replace(found, provenance={REFUSED: True}) if refused else found

    def _request(self, ask: Ask, again: Callable[[Exception], None] = lambda e: None) -> Any:
        """Send one request, again where another try may fare better, until its retries or its time are spent."""

        def send(timeout: float) -> Any:
            reply = self._send(ask, timeout)
            replies.check_reply(reply)
            self._accepted = True
            return reply

        return transport.send(send, self.retries, self.timeout, self.deadline, again)

    def _send(self, ask: Ask, timeout: float) -> Any:
        # Escaped text and ids of all tokens of the reply, and the prompt's ids, with room to spare.
        self._transport.at_most((1 << 20) + 256 * ask.max_tokens + 64 * len(ask.prompt))
        fields: dict[str, Any] = {
            "model": self.model,
            "timeout": timeout,
            # vLLM refuses more than its context, and stops where the context ends.
            "max_tokens": ask.max_tokens if self.context is None else min(ask.max_tokens, self.context - 1),
            "temperature": ask.temperature,
            # Repeats of a sampled ask differ; the request must say so, because seed alone is the same.
            "seed": (ask.seed + 1_000_003 * ask.repeat) % (2**31),
        }
        if ask.stop and not self.opens_thinking(ask):
            fields["stop"] = list(ask.stop)
        extra = dict(self.extra_fields)
        if self.capabilities.token_ids:
            extra["return_token_ids"] = True
        if ask.prompting == "raw":
            return self._client.completions.create(prompt=ask.prompt, extra_body=extra, **fields)
        if ask.thinking is not None:
            extra["chat_template_kwargs"] = think(ask.thinking)
        fields["extra_body"] = extra
        messages: Any = [{"role": "user", "content": ask.prompt}]
        if not self._new_limit:
            try:
                return self._client.chat.completions.create(messages=messages, **fields)
            except openai.BadRequestError as e:
                if "max_completion_tokens" not in str(e):
                    raise
        # Newer hosted models refuse the old name of the same limit; others name both when the limit is too large.
        fields["max_completion_tokens"] = fields.pop("max_tokens")
        reply = self._client.chat.completions.create(messages=messages, **fields)
        self._new_limit = True
        return reply

    def _response(self, ask: Ask, reply: Any) -> Response:
        choice = replies.choice_of(reply)
        if replies.withheld(choice):
            return self._failure(ask, "the server's content filter withheld the answer", refused=True)
        message = getattr(choice, "message", None)
        reasoning = getattr(message, "reasoning_content", None) or getattr(message, "reasoning", None)
        opened = self.opens_thinking(ask) and not reasoning  # which a server has taken out of the text
        said, stopped = replies.end_at_stop(replies.text_of(choice), ask.stop, choice, opened=opened)
        made: dict[str, Any] = {"reasoning": self._scrubbed(reasoning)} if reasoning else {}
        if opened:
            made[THINKING_OPENED] = True
        if (name := self._another_model(reply)) is not None:
            made["model"] = name
        prompt_tokens, response_tokens = replies.counts(reply)
        prompt_ids, response_ids = replies.token_ids(reply, choice)
        text = self._scrubbed(said)
        if text != said:  # the ids would spell it
            response_ids, made = None, {**made, "key_scrubbed": True}
        return Response(
            ask=ask_identity(ask, self.identity),
            text=text,
            finish_reason="length" if replies.cut_off(choice) and not stopped else "stop",
            prompt_tokens=prompt_tokens,
            response_tokens=response_tokens,
            prompt_ids=prompt_ids,
            response_ids=response_ids,
            provenance=made or None,
        )

    def opens_thinking(self, ask: Ask) -> bool:
        """Whether the prompt is known to open the thinking; of a server of others it is not."""
        return False

    def _another_model(self, reply: Any) -> str | None:
        """The name that a reply is signed with where it is not the one that was asked for."""
        name = getattr(reply, "model", None)
        if not isinstance(name, str) or not name or name == self.model:
            return None
        return plain(self._scrubbed(name))[:_LONGEST_NAME]  # it is kept with every answer

    def check(self) -> None:
        """Find out what the server honors. Raises ``ModelError`` where it cannot be used."""
        self.capabilities = find_capabilities(self.probe)
        self.context = self._find_context()
        if self.capabilities.chat is False and self.capabilities.raw is False:
            raise ModelError(
                f"{self.name}: answers neither chat nor raw completions ({self._refused}); check URL and model"
            )
        if self._is_foreign(self.answered_as):
            raise ModelError(f"{self.name}: the server reports another model, {self.answered_as!r}; {_NAMED}")
        self._unchecked = False

    def _find_context(self) -> int | None:
        """The context length that the server states for the model (vLLM does, in its list of models); else None."""
        self._transport.at_most(_LARGEST_LIST)
        try:
            models = self._client.models.list(timeout=self.timeout).data
        except (*_FAILED, RedirectedError):
            return None
        stated = [getattr(m, "max_model_len", None) for m in models or () if getattr(m, "id", None) == self.model]
        return replies.number_of_tokens(stated[0]) if stated else None

    def probe(self, prompting: str, extra: Mapping[str, Any] | None = None, **fields: Any) -> TrialReply | None:
        """One tiny request for the capability check; None when the server refuses this endpoint or these fields."""
        before, self.extra_fields = self.extra_fields, {**self.extra_fields, **(extra or {})}
        try:
            return self._probe(prompting, fields)
        finally:
            self.extra_fields = before

    def _probe(self, prompting: str, fields: Mapping[str, Any]) -> TrialReply | None:
        ask = Ask("probe", "probe", gold="", answer_type="text", prompting=prompting, **fields)  # type: ignore[arg-type]
        try:
            reply = self._request(ask, lambda e: self.say(f"{self.name}: {self._said(e)}; trying again"))
        except (openai.NotFoundError, openai.BadRequestError, openai.UnprocessableEntityError) as e:
            self._refused = self._said(e)
            return None
        except _FATAL as e:
            raise ModelError(f"{self.name}: {self._said(e)}; {_CHECK}") from None
        except _FAILED as e:
            fix = "check the base URL" if isinstance(e, transport.GARBLED) else "is the server running?"
            raise ModelError(f"{self.name}: {self._said(e)}; {fix}") from None
        self.answered_as = self._another_model(reply)
        choice, (_, tokens) = replies.choice_of(reply), replies.counts(reply)
        ids = None not in replies.token_ids(reply, choice)
        return TrialReply(replies.text_of(choice), choice.finish_reason, tokens or None, ids)

    def _said(self, error: BaseException) -> str:
        text = str(error) or type(error).__name__
        if error.__cause__ is not None and str(error.__cause__) not in text:
            text = f"{text} {error.__cause__}"
        wait = getattr(getattr(error, "response", None), "headers", {}).get("retry-after")
        text = f"{text} (Retry-After: {wait})" if wait else text
        if isinstance(error, openai.OpenAIError) and type(error).__name__ not in text:
            text = f"{type(error).__name__}: {text}"
        text = text if self._key == "EMPTY" else text.replace(self._key, "***")
        return " ".join(plain(self._scrubbed(text)).split())[:500]

    def _scrubbed(self, text: Any) -> Any:
        """Text without the key, which a server may send back; lists and objects with all that is in them."""
        if isinstance(text, str):
            text = replies.unicode(text)
            return self._secret.sub("***", text) if self._secret else text
        if isinstance(text, dict):
            return {self._scrubbed(k): self._scrubbed(v) for k, v in text.items()}
        return [self._scrubbed(item) for item in text] if isinstance(text, list) else text


def _public(url: str) -> str:
    """A URL without user name, password and query."""
    parts = urlsplit(url)
    if not parts.netloc:  # no scheme was given
        return url.partition("?")[0].rpartition("@")[2]
    host = parts.netloc.rpartition("@")[2].lower()
    return f"{parts.scheme}://{host}{parts.path}"
