"""From token ids back to text, and stop strings found exactly while generating."""

import resource
import sys
import threading
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

from jinja2 import TemplateError
from jinja2.sandbox import SandboxedEnvironment

from ...errors import ModelError
from .base import cut_after_stop, think

THINKING_MARKS = ("<think>", "</think>")
STEPS = 200_000
"""Of a chat template for one message; those in use take a few hundred."""
MEMORY = 1 << 30
"""Bytes that a chat template may take for one message."""
DIGITS = 10_000
"""Binary digits of the largest number that a chat template may multiply its way to."""

_BOUNDED = threading.RLock()
"""Held while a template runs: what bounds its memory and its numbers holds for the whole process."""


def chat_ids(tokenizer: Any, prompts: Sequence[str], name: str, **options: Any) -> list[list[int]]:
    """Token ids of each prompt as the only user message of a conversation, the reply about to begin.

    Raises ``ModelError`` for a chat template that refuses such a conversation, is broken, does not come to an end, or
    leaves the prompt out.
    """
    talks = [[{"role": "user", "content": prompt}] for prompt in prompts]
    options = {"add_generation_prompt": True, **options}
    fix = f"fix the chat template of {name}, or use --prompting raw"
    try:
        for n, talk in enumerate(talks):  # a template may end for one message and not for another
            with _ending(name):
                shown = str(tokenizer.apply_chat_template(talk, tokenize=False, **options))
            # Some templates want content in parts, and write nothing of a plain text.
            if n == 0 and "".join(prompts[0].split()) not in "".join(shown.split()):
                raise ModelError(f"{name}: the chat template leaves the question out of the prompt; {fix}")
        return tokenizer.apply_chat_template(talks, tokenize=True, return_dict=False, padding=False, **options)
    except (TemplateError, TypeError, MemoryError, OverflowError) as e:
        raise ModelError(
            f"{name}: the chat template does not take a conversation of one user message ({e}); {fix}"
        ) from e


@contextmanager
def _ending(name: str) -> Iterator[None]:
    """``ModelError`` for a template that does not come to an end.

    Steps are counted by tracing, in lines and calls. What a single step can do is bounded by the memory that it may
    take and by the size of numbers.
    """
    left, before = STEPS, sys.gettrace()
    endless = ModelError(
        f"{name}: the chat template does not come to an end within {STEPS} steps, {MEMORY >> 30} GB of memory and "
        f"numbers of {DIGITS} binary digits for one user message; "
        "fix it, or use --prompting raw"
    )

    def count(frame: FrameType, event: str, _: Any) -> Any:
        nonlocal left
        left -= 1
        if left < 0:
            raise endless
        return count if frame.f_code.co_filename in ("<template>", "<unknown>") else None

    def compute(environment: SandboxedEnvironment, _: Any, operator: str, one: Any, other: Any) -> Any:
        if isinstance(one, int) and isinstance(other, int):
            digits, factor = one.bit_length(), other.bit_length()
            if (digits * max(other, 0) if operator == "**" else digits + factor) > DIGITS:
                raise endless
        return environment.binop_table[operator](one, other)

    with _BOUNDED:
        kept = SandboxedEnvironment.intercepted_binops, SandboxedEnvironment.call_binop
        SandboxedEnvironment.intercepted_binops, SandboxedEnvironment.call_binop = frozenset(("*", "**")), compute  # type: ignore[method-assign]
        sys.settrace(count)
        try:
            with _little_memory():
                yield
        except (RecursionError, MemoryError) as e:
            raise endless from e
        finally:
            sys.settrace(before)
            SandboxedEnvironment.intercepted_binops, SandboxedEnvironment.call_binop = kept  # type: ignore[method-assign]


@contextmanager
def _little_memory() -> Iterator[None]:
    """Lets this process take no more than ``MEMORY`` beyond what it has, where the system says how much that is."""
    before = resource.getrlimit(resource.RLIMIT_AS)
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[0])
    except OSError:
        yield
        return
    most = pages * resource.getpagesize() + MEMORY
    if before[0] == resource.RLIM_INFINITY or before[0] > most:
        resource.setrlimit(resource.RLIMIT_AS, (most, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)


def has_thinking_switch(tokenizer: Any) -> bool:
    """Whether the chat template writes another prompt when told to think than when told not to."""
    talk = [{"role": "user", "content": "?"}]
    with _ending(str(getattr(tokenizer, "name_or_path", None) or "the model")):
        told = [
            tokenizer.apply_chat_template(talk, add_generation_prompt=True, tokenize=False, **think(on))
            for on in (True, False)
        ]
    return told[0] != told[1]


def opens_thinking(tokenizer: Any, thinking: bool | None = None) -> bool:
    """Whether the chat template's prompt, with ``thinking`` or without it, ends inside a block of thinking."""
    if not tokenizer.chat_template:
        return False
    talk, told = [{"role": "user", "content": "?"}], {} if thinking is None else think(thinking)
    with _ending(str(getattr(tokenizer, "name_or_path", None) or "the model")):
        shown = tokenizer.apply_chat_template(talk, add_generation_prompt=True, tokenize=False, **told)
    return str(shown).rstrip().endswith(THINKING_MARKS[0])


def unended(tokenizer: Any, ids: list[int], prompt: str, eos_ids: Collection[int]) -> list[int]:
    """Ids without the end-of-text token that some tokenizers put behind every text: the model is to go on."""
    added = len(ids) > 1 and ids[-1] in eos_ids and not prompt.endswith(tokenizer.decode(ids[-1:]))
    return ids[:-1] if added else ids


def decode(tokenizer: Any, ids: Sequence[int], eos_ids: Collection[int], kept: Mapping[int, str] | None = None) -> str:
    """Text of generated ids: without the final end-of-text token and other special tokens, spaces untouched.

    The special tokens in ``kept`` (id -> text) stay: where the thinking ends decides what the answer is.
    """
    if ids and ids[-1] in eos_ids:
        ids = ids[:-1]
    if not kept or kept.keys().isdisjoint(ids):
        return _text(tokenizer, ids)
    found, start = [], 0
    for n, token in enumerate(ids):
        if token in kept:
            found += [_text(tokenizer, ids[start:n]), kept[token]]
            start = n + 1
    return "".join([*found, _text(tokenizer, ids[start:])])


def verbatim(tokenizer: Any, ids: Sequence[int]) -> str:
    """Text with special tokens and spaces as they are."""
    return tokenizer.decode(list(ids), skip_special_tokens=False, clean_up_tokenization_spaces=False)


def _text(tokenizer: Any, ids: Sequence[int]) -> str:
    return tokenizer.decode(list(ids), skip_special_tokens=True, clean_up_tokenization_spaces=False)


def special_thinking_marks(tokenizer: Any) -> dict[int, str]:
    """Marks of thinking that the tokenizer takes for special tokens, and so would leave out: id -> text."""
    added = getattr(tokenizer, "added_tokens_decoder", {})
    return {i: token.content for i, token in added.items() if token.special and token.content in THINKING_MARKS}


class StopFinder:
    """Says whether generated ids contain a stop string, and decodes no more text than needed.

    A stop string can only be completed by a token whose own text holds the stop's last character; only then are the
    last tokens decoded (a character is at most four tokens) and, on a hit, everything. ``opened``: the prompt has
    opened the thinking, in which no stop string counts; ``marks`` are its marks that are special tokens.
    """

    def __init__(
        self, tokenizer: Any, stops: Sequence[str], *, opened: bool = False, marks: Mapping[int, str] | None = None
    ) -> None:
        self.tokenizer, self.opened, self.marks = tokenizer, opened, marks
        self.stops = tuple(stops)
        self._window = 4 * max(len(s) for s in self.stops) + 8
        last = {s[-1] for s in self.stops}
        # Spaces and characters beyond ASCII do not survive decoding a single token.
        self._last = last if all(c.isascii() and not c.isspace() for c in last) else None
        self._closing: dict[int, bool] = {}

    def found(self, ids: Sequence[int]) -> bool:
        """Whether the text of ``ids`` holds a stop string, given that it did not before the last id."""
        if self._last is not None and not self._may_close(ids[-1], self._last):
            return False
        tail = self._decode(ids[-self._window :])
        if not any(stop in tail for stop in self.stops):
            return False
        text = decode(self.tokenizer, ids, (), self.marks)
        return cut_after_stop(text, self.stops, opened=self.opened)[1] is not None

    def cut(self, text: str) -> str:
        """Text up to and including the first stop string."""
        return cut_after_stop(text, self.stops, opened=self.opened)[0]

    def _may_close(self, token: int, last: set[str]) -> bool:
        if token not in self._closing:
            self._closing[token] = not last.isdisjoint(self._decode([token]))
        return self._closing[token]

    def _decode(self, ids: Sequence[int]) -> str:
        return _text(self.tokenizer, ids)
