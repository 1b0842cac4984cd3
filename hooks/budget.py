"""Batch sizes: as many rows and prompt tokens as fit into memory, and fewer if memory still runs out.

for batch in in_prefills(lm, [len(p) for p in prompts]):
    found = shrinking(lambda rows: work(batch, rows), None, lambda: row_budget(lm, 1, 120, graph=False))
"""

import warnings
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TypeVar

import torch

from ..devices import free_bytes, halving
from ..errors import InputError
from .length_limits import computed_alike
from .model import Model

T = TypeVar("T")
LARGEST, WORTHWHILE = 224 * 2**20, 512
"""Bytes for rows on a CPU, and a number of rows that may always run together; more would not be faster."""
MAX_TOKENS = 8192
"""The most prompt tokens in one prefill."""
SUFFIX_TOKENS = 1024
"""The most positions of rows that run together on a CPU: with more, activations leave the cache and nothing is
gained."""


def row_budget(lm: Model, n_queries: int, prefix_len: int, graph: bool, *, decoded: int = 0) -> int:
    """How many rows of each query fit into memory together.

    One row holds its activations in every layer (kept only with a graph), its attention over the prefix, its own keys
    and values over ``decoded`` steps, and its logits. A quarter of the free memory is used; on a CPU at most 224 MB or
    the size of 512 rows, whichever is more.
    """
    a = lm.anatomy
    size = torch.finfo(lm.dtype).bits // 8
    per_layer = 14 * a.d_model + 5 * a.d_mlp + 3 * a.n_heads * prefix_len
    layers = a.n_layers if graph else 2
    cache = 2 * 2 * decoded * a.n_layers * a.n_kv_heads * a.d_head  # twice, while a step is appended
    per_row = size * (per_layer * layers + cache) + 4 * 4 * a.vocab_size
    free = _share(lm.device, WORTHWHILE * per_row)
    return max(1, int(free // (per_row * max(1, n_queries))))


def suffix_rows(lm: Model, length: int, width: int, *, decoded: int = 0) -> int:
    """How many rows of the last ``width`` positions of a prompt of ``length`` tokens may run together.

    One row holds its activations in one block, its keys and values in every layer, those of the prompt in one layer
    (in every layer where tokens are decoded after it), and its logits at one position.
    """
    a = lm.anatomy
    size = torch.finfo(lm.dtype).bits // 8
    kept = 2 * a.n_kv_heads * a.d_head
    block = width * (16 * a.d_model + 4 * a.d_mlp + 2 * a.n_heads * length + kept * a.n_layers)
    cache = 2 * kept * (a.n_layers * (length + decoded) if decoded else length)
    fitting = int(_share(lm.device, 0) // (size * (block + cache) + 4 * a.vocab_size))
    return max(1, min(fitting, SUFFIX_TOKENS // width) if lm.device.type == "cpu" else fitting)


def prompt_tokens(lm: Model, *, limit: int | None = None) -> int:
    """How many prompt tokens, padding included, may run in one prefill: a quarter of the free memory, at most 8192.

    One token holds its keys and values in every layer, and its activations in one block.
    """
    a = lm.anatomy
    kept = 2 * a.n_layers * a.n_kv_heads * a.d_head
    per_token = torch.finfo(lm.dtype).bits // 8 * (kept + 16 * a.d_model + 4 * a.d_mlp)
    free = free_bytes(lm.device) if limit is None else limit
    return MAX_TOKENS if free is None else max(1, min(MAX_TOKENS, free // 4 // per_token))


def in_prefills(lm: Model, lengths: Sequence[int], most: int | None = None) -> Iterator[list[int]]:
    """Batches of text indices, the longest texts first; a batch is one text, or as many as fit into a prefill, or into
    ``most`` tokens."""
    most = prompt_tokens(lm) if most is None else most
    for together in reversed(computed_alike(lm.model, lengths)):
        some = list[int]()
        for i in sorted(together, key=lambda i: -lengths[i]):
            if some and (len(some) + 1) * lengths[some[0]] > most:
                yield some
                some = []
            some.append(i)
        yield some


def shrinking(
    work: Callable[[int | None], T], rows: int | None, budget: Callable[[], int], notes: list[str] | None = None
) -> T:
    """The result of ``work(rows)``, with the number of rows halved as long as memory runs out (``devices.halving``).

    ``rows`` is the number to start with; ``None`` takes the number that fits (``budget()``). ``notes`` (or a warning)
    says what was halved. Raises ``InputError`` for fewer rows than one.
    """
    if rows is not None and rows < 1:
        raise InputError(f"max_rows is {rows}; give at least 1, or None for what fits into memory")
    return next(halving(lambda n: [work(n)], rows, lambda n: budget() if n is None else n, told(notes)))


def told(notes: list[str] | None) -> Callable[[str], None]:
    """The receiver of remarks about smaller batches: ``notes``, or a Python warning without them."""
    return partial(warnings.warn, category=RuntimeWarning, stacklevel=2) if notes is None else notes.append


def _share(device: torch.device, worthwhile: int) -> int:
    free = free_bytes(device)
    if device.type == "cuda" and free is not None:
        return free // 4
    most = max(LARGEST, worthwhile)
    return most if free is None else min(free // 4, most)
