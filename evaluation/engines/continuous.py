"""Continuous batching: a finished row is replaced at once, and shared beginnings of prompts are computed once.

``RaggedLayout`` puts several prompts into one sequence in which every shared beginning stands once. ``Reader`` computes
their keys and values, ``Slots`` holds those of the answers in progress, and ``decode`` runs both until every row is
finished. Prompts are read in the given order: in dictionary order, neighbors share most. The model's cache must consist
of keys and values alone. There is no table of model names: ``find_trust`` judges the cache that the library makes, and
compares the logits of a few tokens with those without batching.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from transformers import Cache, DynamicCache
from transformers.cache_utils import DynamicLayer

from ...devices import is_out_of_memory
from . import decoding
from .decoding import DecodedRow, Runner, choose

READ = {"cpu": 256}
"""Tokens of prompts that are read in one forward pass: more only adds pairs of tokens that do not see each other."""
READ_ELSEWHERE = 2048
REFILL = 8
"""Rows are replaced when this part of the slots (1 / REFILL) is free."""


def decode(runner: Runner, rows: Sequence[DecodedRow], n: int) -> Iterator[int]:
    """Decode the rows with at most ``n`` under way; yields the index of each when it has finished.

    Raises ``ModelError`` when the logits of an unfinished row are not finite.
    """
    waiting = deque(range(len(rows)))
    reader, slots = Reader(runner), Slots(n)
    under_way: list[int] = []
    while waiting or under_way:
        free = n - len(under_way)
        if waiting and free * REFILL >= n:
            prompts = [rows[i].ids for i in islice(waiting, free)]
            taken = [waiting.popleft() for _ in range(together(reader.held, prompts, reader.limit))]
            logits, columns = reader.read(prompts[: len(taken)])
            finished = _accept(logits, [rows[i] for i in taken])
            yield from (i for i, done in zip(taken, finished, strict=True) if done)
            left = [k for k, done in enumerate(finished) if not done]
            if left:
                with torch.inference_mode():
                    slots.store(reader.cache, [columns[k] for k in left])
                under_way += [taken[k] for k in left]
            continue
        logits = step(runner, slots, [rows[i].generated[-1] for i in under_way])
        finished = _accept(logits, [rows[i] for i in under_way])
        for slot in reversed(range(len(under_way))):
            if finished[slot]:
                done, last = under_way[slot], under_way.pop()
                if slot < len(under_way):
                    under_way[slot] = last
                with torch.inference_mode():
                    slots.release(slot)
                yield done


def _accept(logits: Tensor, rows: Sequence[DecodedRow]) -> list[bool]:
    return [row.accept(token) for row, token in zip(rows, choose(logits, rows), strict=True)]


@torch.inference_mode()
def step(runner: Runner, slots: Slots, tokens: Sequence[int]) -> Float[Tensor, "slot vocab"]:
    """The logits after one more token in every slot in use."""
    positions, back = slots.advance(runner.device)
    ids = torch.tensor(tokens, device=runner.device)[:, None]
    return runner.forward(ids, runner.mask(back >= 0, back), positions, slots.cache)[0][:, -1]


class Reader:
    """Reads prompts, and holds the keys and values of the last one: what it shares with the next is not read again."""

    def __init__(self, runner: Runner) -> None:
        self.runner = runner
        self.limit = READ.get(runner.device.type, READ_ELSEWHERE)
        self.held: tuple[int, ...] = ()
        self.cache: Any = DynamicCache()
        self._columns: list[int] = []

    @torch.inference_mode()
    def read(self, prompts: Sequence[tuple[int, ...]]) -> tuple[Float[Tensor, "prompt vocab"], list[list[int]]]:
        """The logits at the end of each prompt, and the columns of its keys and values in ``cache`` for now."""
        first = prompts[0]
        for end in range(common(self.held, first) + self.limit, len(first), self.limit):
            self._forward([first[:end]])
        logits, layout = self._forward(prompts)
        return logits, layout.columns

    def _forward(self, prompts: Sequence[tuple[int, ...]]) -> tuple[Tensor, RaggedLayout]:
        self._keep(common(self.held, prompts[0]))
        layout = lay_out(self.held, prompts)
        depths = torch.tensor([*range(len(self.held)), *layout.depths])
        own = depths[len(self.held) :]
        mask = self.runner.mask(layout.seen[None, None], (own[:, None] - depths)[None, None])
        ids, positions = torch.stack([torch.tensor(layout.tokens), own])[:, None].to(self.runner.device)
        logits, self.cache = self.runner.forward(ids, mask, positions, self.cache, keep=layout.ends)
        self.held, self._columns = prompts[-1], layout.columns[-1]
        return logits[0], layout

    def _keep(self, n: int) -> None:
        """Hold the first ``n`` tokens of the last prompt, and nothing else."""
        self.held, columns = self.held[:n], self._columns[:n]
        for layer in self.cache.layers:
            at = torch.tensor(columns, dtype=torch.long, device=layer.keys.device)
            layer.keys, layer.values = layer.keys[:, :, at], layer.values[:, :, at]


@dataclass(frozen=True)
class RaggedLayout:
    """Where the tokens of some prompts stand: first those that are held already, then the new ones."""

    tokens: list[int]
    """The new ones."""
    depths: list[int]
    """The position of each new token in its prompt."""
    columns: list[list[int]]
    """Of each prompt, the place of each of its tokens."""
    seen: Bool[Tensor, "new column"]
    """Whether a new token attends to a column: to earlier tokens of its own prompt and to itself."""

    @property
    def ends(self) -> list[int]:
        """Of each prompt, which of the new tokens is its last one."""
        held = self.seen.shape[1] - len(self.tokens)
        return [mine[-1] - held for mine in self.columns]


def common(a: Sequence[int], b: Sequence[int]) -> int:
    """How many tokens two sequences share from the start."""
    for i, (x, y) in enumerate(zip(a, b, strict=False)):
        if x != y:
            return i
    return min(len(a), len(b))


def together(held: Sequence[int], prompts: Sequence[Sequence[int]], limit: int) -> int:
    """How many of ``prompts`` have at most ``limit`` new tokens between them; at least 1."""
    new, before = 0, held
    for n, ids in enumerate(prompts):
        new += max(1, len(ids) - common(before, ids))
        if new > limit and n:
            return n
        before = ids
    return len(prompts)


def lay_out(held: Sequence[int], prompts: Sequence[Sequence[int]]) -> RaggedLayout:
    """Lay out ``prompts`` behind ``held``. Every prompt's last token is among the new ones: its logits are wanted."""
    tokens: list[int] = []
    depths: list[int] = []
    columns: list[list[int]] = []
    seen = torch.zeros(sum(map(len, prompts)), len(held) + sum(map(len, prompts)), dtype=torch.bool)
    before, where = held, list(range(len(held)))
    for ids in prompts:
        shared = common(before, ids)
        if shared == len(ids) and where[shared - 1] < len(held):
            shared -= 1
        first, new = len(tokens), len(ids) - shared
        rows, own = slice(first, first + new), slice(len(held) + first, len(held) + first + new)
        seen[rows, where[:shared]] = True
        seen[rows, own] = torch.ones(new, new, dtype=torch.bool).tril()
        tokens += ids[shared:]
        depths += range(shared, len(ids))
        where = [*where[:shared], *range(own.start, own.stop)]
        columns.append(where)
        before = ids
    return RaggedLayout(tokens, depths, columns, seen[: len(tokens), : len(held) + len(tokens)])


_BLOCK = 32


class Slots:
    """Room for the keys and values of ``n`` answers, as a ``transformers`` cache for steps of one token each."""

    def __init__(self, n: int) -> None:
        self.n = n
        self.lengths: list[int] = []
        """Tokens in each slot that is in use."""
        self.cache: Any = None
        self._at: tuple[Tensor, Tensor] | None = None

    def store(self, read: DynamicCache, columns: Sequence[Sequence[int]]) -> None:
        """Take one more slot for each prompt and copy its keys and values from these columns of ``read``."""
        layers: Any = read.layers
        if self.cache is None:
            self.cache = Cache(layers=[_Layer(self, layer) for layer in layers])
        first, widest = len(self.lengths), max(map(len, columns))
        self.lengths += map(len, columns)
        self._make_room(widest)
        index = torch.tensor([[*c, *[0] * (widest - len(c))] for c in columns])
        for mine, theirs in zip(self.cache.layers, layers, strict=True):
            at = index.to(theirs.keys.device)
            rows = slice(first, len(self.lengths))
            mine.keys[rows, :, :widest] = theirs.keys[0][:, at].transpose(0, 1)
            mine.values[rows, :, :widest] = theirs.values[0][:, at].transpose(0, 1)

    def release(self, slot: int) -> None:
        """Give up a slot; the last one in use takes its place."""
        last = len(self.lengths) - 1
        if slot != last:
            length = self.lengths[last]
            for layer in self.cache.layers:
                layer.keys[slot, :, :length] = layer.keys[last, :, :length]
                layer.values[slot, :, :length] = layer.values[last, :, :length]
            self.lengths[slot] = length
        self.lengths.pop()

    def advance(self, device: torch.device) -> tuple[Int[Tensor, "slot 1"], Int[Tensor, "slot 1 1 column"]]:
        """Make room for one more token in every slot in use: its positions, and how far back each column is."""
        positions = torch.tensor(self.lengths, device=device)
        self.lengths = [n + 1 for n in self.lengths]
        self._make_room(self.width)
        self._at = torch.arange(len(self.lengths), device=device), positions
        return positions[:, None], (positions[:, None] - torch.arange(self.width, device=device))[:, None, None]

    @property
    def width(self) -> int:
        """Columns in use."""
        return max(self.lengths, default=0)

    def write(self, buffer: Tensor, states: Tensor) -> Tensor:
        """Put the states of one new token into every slot in use; what is in use then."""
        assert self._at is not None
        rows, columns = (x.to(buffer.device) for x in self._at)
        buffer[rows, :, columns] = states[:, :, 0]
        return buffer[: len(self.lengths), :, : self.width]

    def _make_room(self, width: int) -> None:
        held = self.cache.layers[0].keys.shape[2]
        if width > held:
            wanted = -(-(width + width // 4) // _BLOCK) * _BLOCK
            for layer in self.cache.layers:
                layer.grow(wanted)


class _Layer(DynamicLayer):
    """The slots of one layer of the model."""

    def __init__(self, slots: Slots, like: Any) -> None:
        super().__init__()
        self.slots = slots
        self.keys, self.values = (x.new_empty(slots.n, x.shape[1], 0, x.shape[3]) for x in (like.keys, like.values))
        self.is_initialized = True

    def grow(self, width: int) -> None:
        assert self.keys is not None and self.values is not None
        self.keys, self.values = _wider(self.keys, width), _wider(self.values, width)

    def update(self, key_states: Tensor, value_states: Tensor, *_: Any, **__: Any) -> tuple[Tensor, Tensor]:
        assert self.keys is not None and self.values is not None
        return self.slots.write(self.keys, key_states), self.slots.write(self.values, value_states)

    def get_seq_length(self) -> int:
        return self.slots.width - 1


def _wider(buffer: Tensor, width: int) -> Tensor:
    # zeros: what was never written is masked, and a masked NaN would still spoil the sum
    wide = buffer.new_zeros(*buffer.shape[:2], width, buffer.shape[3])
    wide[:, :, : buffer.shape[2]] = buffer
    return wide


TOLERANCE = {torch.float32: 1e-3, torch.float64: 1e-6}
"""Largest accepted difference of a logit, as a share of the range of all logits; 0.05 in 16 bits."""
PLAIN = {"DynamicLayer", "DynamicSlidingWindowLayer", "DummyLayer"}
"""Layers of a cache that hold keys and values and nothing else, or nothing at all."""
SEEN = {"full_attention", "sliding_attention"}
"""Types of layers whose masks ``Runner.mask`` can make."""


@dataclass(frozen=True)
class Trust:
    """The way of batching for a model."""

    decode: Callable[[Runner, Sequence[DecodedRow], int], Iterator[int]] = decode
    reason: str | None = None
    """Why continuous batching is not used; None where it is."""
    window: int | None = None
    """See ``Runner``."""
    mixed: bool = False
    columns: int | None = None
    """See ``Runner``."""


def find_trust(model: Any) -> Trust:
    """Look at the cache that the library makes for this model, and try a few tokens both ways."""
    try:
        trust = _of_cache(model.config.get_text_config(decoder=True))
        if trust.reason is None:
            error = _largest_difference(Runner(model, window=trust.window, mixed=trust.mixed))
            if not error <= TOLERANCE.get(model.dtype, 0.05):  # NaN counts as a difference
                trust = Trust(reason=f"its logits differ (by {error:.2g} of their range)")
    except Exception as e:  # models raise exceptions of any kind for what they do not support
        trust = Trust(reason=f"it does not take a cache and a mask of ours ({type(e).__name__})")
    if trust.reason is None:
        return trust
    if _batches_hold(model):
        return Trust(decoding.decode, f"in fixed batches, since {trust.reason}", columns=trust.columns)
    return Trust(decoding.decode_anew, f"one by one and without a cache, since {trust.reason}")


def _of_cache(config: Any) -> Trust:
    if (columns := columns_of(config)) is not None:  # its windows may be wider than the few tokens that are tried
        return Trust(reason="its masks count columns of the cache instead of positions", columns=columns)
    layers = DynamicCache(config=config).layers
    others = {type(layer).__name__ for layer in layers} - PLAIN
    others |= set(getattr(config, "layer_types", None) or ()) - SEEN
    if others:
        return Trust(reason=f"it remembers other things than keys and values ({', '.join(sorted(others))})")
    windows = {getattr(layer, "sliding_window", None) for layer in layers}
    if len(windows - {None}) > 1:
        return Trust(reason="its layers have sliding windows of several sizes")
    return Trust(window=max((w for w in windows if w is not None), default=None), mixed=len(windows) > 1)


def columns_of(config: Any) -> int | None:
    """The most columns that a cache may have for a model with masks by column (GPT-Neo); None for all others."""
    return config.max_position_embeddings if getattr(config, "attention_layers", None) else None


def _batches_hold(model: Any) -> bool:
    """Whether a padded batch whose rows finish apart gives the tokens of each row alone."""
    tokens = _tokens(model)
    ways = {}
    for decode in (decoding.decode, decoding.decode_anew):
        rows = [DecodedRow(tuple(tokens[:3]), 4, frozenset()), DecodedRow(tuple(tokens[3:12]), 2, frozenset())]
        try:
            list(decode(Runner(model), rows, len(rows)))
        except Exception as e:
            return is_out_of_memory(e)  # then nothing was found out
        ways[decode] = [row.generated for row in rows]
    return ways[decoding.decode] == ways[decoding.decode_anew]


def _tokens(model: Any) -> list[int]:
    n = model.get_input_embeddings().num_embeddings
    return [(7 * i + 3) % n for i in range(16)]


@torch.inference_mode()
def _largest_difference(runner: Runner) -> float:
    """Between logits here and those of each text alone, as a share of their range."""
    token = _tokens(runner.model)
    # prompts that begin one another, branches within and after one reading, slots of different lengths
    prompts = [tuple(token[:3]), (*token[:5], *token[12:]), tuple(token[:8]), (*token[:6], token[10])]
    new = token[8:12]
    reader, slots, found = Reader(runner), Slots(len(prompts)), []
    for some in (prompts[:3], prompts[3:]):
        logits, columns = reader.read(some)
        slots.store(reader.cache, columns)
        found.append(logits)
    slots.release(0)
    order = [3, 1, 2]
    found.append(step(runner, slots, [new[i] for i in order]))
    texts = [torch.tensor([[*p, t]], device=runner.device) for p, t in zip(prompts, new, strict=True)]
    alone = [runner.model(input_ids=ids).logits[0, -2:] for ids in texts]
    wanted = torch.stack([*(two[0] for two in alone), *(alone[i][1] for i in order)]).float()
    wide = wanted.amax(-1) - wanted.amin(-1)
    return float(((torch.cat(found).float() - wanted).abs().amax(-1) / wide).max())
