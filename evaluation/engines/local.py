"""The transformers engine: answers asks with a causal language model in this process.

Greedy, or sampled, each ask from its own seed. A finished ask is replaced at once and shared beginnings of prompts are
read once (``continuous``); a model that does not allow this answers in fixed batches (``decoding``). In fp32 an answer
does not depend on which other asks share its batch. The model stays unchanged.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import torch
import transformers

from ...devices import free_bytes, halving, is_out_of_memory
from ...errors import ModelError
from ...model_files import location
from ...model_loading import cap_attention_scores, end_ids, load, rotary_limits
from ...terminal import to_stderr
from ..asks import Ask, Response
from ..identity import local_identity
from ..journal import ask_identity
from . import continuous, decoding
from .base import THINKING_OPENED, BaseEngine, error_response, think
from .continuous import Trust, find_trust
from .decoding import DecodedRow, Runner, pack
from .text import THINKING_MARKS, StopFinder, chat_ids, decode, special_thinking_marks, unended, verbatim

MAX_ROWS = 256
MAX_ROWS_ON_CPU = 128
"""The most asks in progress at once for a model with more than ``SMALL`` weights; with more, they only wait longer."""
SMALL = 1 << 25
TOKENS_WORTH_PACKING = 2000
"""Tokens to compute from which on laying out the weights pays."""


@dataclass(frozen=True)
class _Prepared:
    ask: Ask
    ids: tuple[int, ...]
    budget: int
    """Tokens that may be generated: ``max_tokens``, or less where the context ends first."""

    @property
    def total(self) -> int:
        return len(self.ids) + self.budget


class LocalEngine(BaseEngine):
    """A ``transformers`` causal language model as an engine.

    ``model`` is a folder (or hub id) or a model in memory; with a model in memory give its ``tokenizer``, and
    ``folder`` where its weights came from one (then the identity is that of the files, not of the dtype in memory).
    ``batch_size=None`` chooses one that fits into memory. When memory runs out, it is halved and decoding continues.
    ``continuous=False`` is for comparisons: fixed batches, nothing shared.

    A tokenizer without a pad token works: what is padded is masked, with explicit position ids.
    Raises ``ModelError`` for a model that cannot be loaded, a missing chat template, and logits that are not finite.
    """

    def __init__(
        self,
        model: Any,
        tokenizer: Any = None,
        *,
        batch_size: int | None = None,
        continuous: bool = True,
        folder: str | Path | None = None,
        dtype: torch.dtype | str | None = None,
        device: str | torch.device | None = None,
    ) -> None:
        if isinstance(model, str | Path):
            where = location(model)
            folder = where if Path(where).is_dir() else folder
            model, tokenizer = load(where, dtype=dtype, device=device)
        for note in cap_attention_scores(model):
            to_stderr(note)
        if tokenizer is None:
            raise ModelError("LocalEngine: a model in memory needs tokenizer=...; give the one it was trained with")
        if batch_size is not None and batch_size < 1:
            raise ModelError(f"batch_size is {batch_size}; give at least 1, or none to have it chosen")
        self.model = model
        self.tokenizer = tokenizer
        self.folder = folder
        self.batch_size = batch_size
        large = self.model.device.type == "cpu" and sum(p.numel() for p in self.model.parameters()) > SMALL
        self.max_rows = batch_size or (MAX_ROWS_ON_CPU if large else MAX_ROWS)
        self._continuous = continuous
        self._finders: dict[tuple[tuple[str, ...], bool], StopFinder] = {}
        self._identity: dict[str, str] | None = None
        self._ends: dict[tuple[int, ...], bool] = {}

    @property
    def identity(self) -> dict[str, str]:
        """Hashed once: an engine's model must not change while the engine lives."""
        if self._identity is None:
            self._identity = local_identity(self.model, self.tokenizer, self.folder)
        return self._identity

    @property
    def provenance(self) -> dict[str, Any]:
        return {
            "engine": "transformers",
            "transformers": transformers.__version__,
            "torch": torch.__version__,
            "dtype": str(self.model.dtype).removeprefix("torch."),
            "device": self.model.device.type,
            "attention": str(getattr(self.model.config, "_attn_implementation", "unknown")),
            "batch_size": self.batch_size,
        }

    @property
    def context(self) -> int | None:
        """Positions that the model has, None when it names no limit."""
        return getattr(self.model.config.get_text_config(), "max_position_embeddings", None)

    @cached_property
    def eos_ids(self) -> frozenset[int]:
        """Every token that ends an answer."""
        return frozenset(end_ids(self.model, self.tokenizer))

    @cached_property
    def _marks(self) -> dict[int, str]:
        return special_thinking_marks(self.tokenizer)

    @cached_property
    def trust(self) -> Trust:
        """Whether asks may be decoded continuously, found out with some small forward passes."""
        if not self._continuous:
            return Trust(
                decoding.decode, columns=continuous.columns_of(self.model.config.get_text_config(decoder=True))
            )
        with self._evaluating():
            found = find_trust(self.model)
        if found.reason is not None:
            to_stderr(f"{self._name} answers {found.reason}")
        return found

    def _opens_thinking(self, ids: tuple[int, ...]) -> bool:
        """Whether a prompt ends inside a block of thinking, as some chat templates have it."""
        end = ids[-8:]
        if end not in self._ends:
            self._ends[end] = self.tokenizer.decode(list(end)).rstrip().endswith(THINKING_MARKS[0])
        return self._ends[end]

    def prompt_ids(self, asks: Sequence[Ask]) -> list[tuple[int, ...]]:
        """Token ids of each ask exactly as they are fed: chat template, or the raw prompt with the tokenizer's BOS.

        What a response is made to begin with follows, after a space where the prompt ends in none.
        """
        rendered: dict[tuple[str, bool | None, str], tuple[int, ...]] = {}
        for way in {(a.prompting, a.thinking) for a in asks}:
            prompts = list({a.prompt for a in asks if (a.prompting, a.thinking) == way})
            for prompt, ids in zip(prompts, self._encode(prompts, *way), strict=True):
                rendered[*way, prompt] = tuple(ids)
        fed = [rendered[a.prompting, a.thinking, a.prompt] for a in asks]
        return [self._begun(ids, a.begun) if a.begun else ids for ids, a in zip(fed, asks, strict=True)]

    def _begun(self, ids: tuple[int, ...], begun: str) -> tuple[int, ...]:
        end = verbatim(self.tokenizer, ids[-4:])
        space = "" if end[-1:].isspace() else " "
        return (*ids, *self.tokenizer(space + begun, add_special_tokens=False).input_ids)

    def _encode(self, prompts: list[str], prompting: str, thinking: bool | None) -> list[list[int]]:
        if prompting == "raw":
            found = self.tokenizer(prompts, padding=False, truncation=False).input_ids
            return [
                unended(self.tokenizer, ids, prompt, self.eos_ids) for ids, prompt in zip(found, prompts, strict=True)
            ]
        if not self.tokenizer.chat_template:
            raise ModelError(f"{self._name}: the tokenizer has no chat template; give it one, or use --prompting raw")
        if thinking is None:
            return self._render(prompts)
        found = self._render(prompts, **think(thinking))
        if thinking and found == self._render(prompts, **think(False)):
            raise ModelError(
                f"{self._name}: the chat template has no thinking mode (its prompt is the same with "
                "and without enable_thinking); ask without thinking, or use a model that has one"
            )
        return found

    def _render(self, prompts: list[str], **options: Any) -> list[list[int]]:
        return chat_ids(self.tokenizer, prompts, self._name, **options)

    @property
    def _name(self) -> str:
        return str(self.folder or getattr(self.tokenizer, "name_or_path", "") or "the model")

    def answer(self, asks: Sequence[Ask]) -> Iterator[tuple[Ask, Response]]:
        """Answer every ask, longest prompts first, each as soon as its row has finished.

        A prompt that leaves no room in the context gets an error response that names both lengths.
        """
        ready: list[_Prepared] = []
        prompts = self.prompt_ids(asks)
        self._check_vocabulary(prompts)
        for ask, ids in zip(asks, prompts, strict=True):
            room = ask.max_tokens if self.context is None else self.context - len(ids)
            if not ids or room < 1:
                yield ask, self._unanswerable(ask, len(ids))
            else:
                ready.append(_Prepared(ask, ids, min(ask.max_tokens, room)))
        with self._evaluating():
            tokens = sum(p.total for p in ready)
            packed = pack(self.model) if tokens >= TOKENS_WORTH_PACKING else {}
            runner = Runner(self.model, packed, self.trust.window, self.trust.mixed, self.trust.columns)
            for group, at_once in self._groups(ready):
                yield from self._answer_group(runner, group, at_once)

    def _groups(self, ready: list[_Prepared]) -> Iterator[tuple[list[_Prepared], int]]:
        """Asks that are decoded in one go, and how many of them at once.

        The longest come first, so that memory trouble shows at once. Asks of a group need about the same memory.
        """
        left = sorted(ready, key=lambda p: (-p.total, -len(p.ids), p.ask.prompt))
        while left:
            rows = self._rows_that_fit(left[0])
            if self.trust.decode is not continuous.decode:
                yield left[:rows], rows
                left = left[rows:]
            else:
                much = 0 if rows >= self.max_rows else left[0].total // 4
                yield sorted((p for p in left if p.total > much), key=lambda p: p.ids), rows
                left = [p for p in left if p.total <= much]

    def _check_vocabulary(self, prompts: Sequence[Sequence[int]]) -> None:
        """Raises ``ModelError`` where the tokenizer writes tokens that the model has no embedding of."""
        rows = getattr(self.model.get_input_embeddings(), "num_embeddings", None)
        largest = max((max(ids) for ids in prompts if ids), default=0)
        if rows is not None and largest >= rows:
            raise ModelError(
                f"{self._name}: the tokenizer writes token {largest} ({self.tokenizer.decode([largest])!r}), and the "
                f"model has embeddings of {rows} tokens; give the tokenizer that belongs to the model"
            )

    def _unanswerable(self, ask: Ask, length: int) -> Response:
        error = (
            "the prompt has no tokens"
            if length == 0
            else f"the prompt has {length} tokens and the model a context of {self.context} (max_position_embeddings): "
            "no room to answer; shorten the prompt or use a model with a longer context"
        )
        return error_response(ask, self.identity, error, length)

    def _answer_group(self, runner: Runner, left: list[_Prepared], at_once: int) -> Iterator[tuple[Ask, Response]]:
        n = at_once

        def attempt(size: int | None) -> Iterator[tuple[Ask, Response]]:
            nonlocal left, n
            self.max_rows = size or self.max_rows
            while left:
                n = min(at_once, self.max_rows, len(left))
                rows = [self._row(p) for p in left]
                done: set[int] = set()
                try:
                    for i in decoding.in_stages(self.trust.decode, rotary_limits(self.model), runner, rows, n):
                        done.add(i)
                        yield left[i].ask, self._response(left[i], rows[i])
                finally:
                    left = [p for i, p in enumerate(left) if i not in done]

        while left:
            try:
                yield from halving(attempt, None, lambda _: n, to_stderr)
            except (RuntimeError, MemoryError) as e:
                if not is_out_of_memory(e):
                    raise
                too_large = left.pop(0)
            else:
                break
            yield self._too_large(too_large)

    def _too_large(self, prepared: _Prepared) -> tuple[Ask, Response]:
        length = len(prepared.ids)
        error = f"out of memory with one prompt of {length} tokens; use a larger device or a smaller dtype"
        return prepared.ask, error_response(prepared.ask, self.identity, error, length)

    def _row(self, prepared: _Prepared) -> DecodedRow:
        ask = prepared.ask
        stop = None
        if ask.stop:
            opened = self._opens_thinking(prepared.ids)
            finder = StopFinder(self.tokenizer, ask.stop, opened=opened, marks=self._marks)
            stop = self._finders.setdefault((ask.stop, opened), finder)
        seed = ask_identity(ask, {}) if ask.temperature > 0 else None
        where = f"case {ask.case!r}, role {ask.role!r}"
        return DecodedRow(prepared.ids, prepared.budget, self.eos_ids, stop, ask.temperature, seed, where)

    def _response(self, prepared: _Prepared, row: DecodedRow) -> Response:
        ids = row.generated
        text = decode(self.tokenizer, ids, self.eos_ids, self._marks)
        if row.stop is not None:
            text = row.stop.cut(text)
        made: dict[str, Any] = {}
        if self.trust.reason is not None:
            made["decoded"] = self.trust.reason
        if row.finish == "length" and prepared.budget < prepared.ask.max_tokens:
            made["limited_by"] = f"context of {self.context}"
        if self._opens_thinking(prepared.ids):
            made[THINKING_OPENED] = True
        return Response(
            ask=ask_identity(prepared.ask, self.identity),
            text=text,
            finish_reason="stop" if row.finish == "stop" else "length",
            prompt_tokens=len(prepared.ids),
            response_tokens=len(ids),
            prompt_ids=prepared.ids,
            response_ids=tuple(ids),
            provenance=made or None,
        )

    def _rows_that_fit(self, longest: _Prepared) -> int:
        """Rows whose keys, values and logits fit into free memory, counted for the longest prompt."""
        if self.batch_size is not None:
            return min(self.batch_size, self.max_rows)
        budget, per_row = _memory(self.model), _bytes_per_row(self.model, longest.total)
        return max(1, min(self.max_rows, budget // per_row))

    @contextmanager
    def _evaluating(self) -> Iterator[None]:
        training = self.model.training
        self.model.eval()
        try:
            yield
        finally:
            self.model.train(training)


def _memory(model: Any) -> int:
    if model.device.type == "cuda":
        return (free_bytes(model.device) or 0) // 2
    return 2 << 30


def _bytes_per_row(model: Any, length: int) -> int:
    config = model.config.get_text_config()
    width = getattr(config, "hidden_size", 1024)
    heads = getattr(config, "num_attention_heads", 1) or 1
    kv_heads = getattr(config, "num_key_value_heads", None) or heads
    d_head = getattr(config, "head_dim", None) or width // heads
    layers = getattr(config, "num_hidden_layers", 1)
    size = model.dtype.itemsize
    cache = 2 * layers * kv_heads * d_head * size
    activations = 16 * width * size  # about four d_model-wide MLP intermediates of one layer
    return length * (cache + activations) + 8 * config.vocab_size
