"""Interchange: one prompt under many rows of edits, answers read at any later position; exact and batched.

    own, donor = states(lm, [prompt, other], [[7], [7]])  # layer pos d_model, from layer -1 (before block 0) on
    rows = [[Patch(residual(layer), 7, donor[layer + 1, 0])] for layer in range(8)]
    interchange(lm, prompt, rows, read=[len(prompt) - 1], tokens=[gold, foil]).log_probs  # row read token

An edit changes nothing before its position and nothing in the blocks below it. So the prompt is run once; the positions
from the first edited one on are computed again, all rows side by side in the batch, on the keys and values of what
precedes them. A row joins the batch before the first block in which it differs, as a copy of the unchanged sequence,
which runs along and must reproduce the full forward pass.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import torch
from jaxtyping import Float, Int
from torch import Tensor

from ..errors import InputError, ModelError
from .budget import in_prefills, shrinking, suffix_rows
from .edits import Edits, check_rows, first_cut, first_position, residual
from .generation import check_room, ends, follow
from .length_limits import keep_rotary_angles
from .model import EMPTY, Model
from .parts import empty_cache
from .rows import Prefix, prefill
from .suffix import Suffix, suffix

ELEMENTS = 2**25
"""Logits held at a time."""
OVERHEAD = 12
"""The fixed cost of a forward pass, in tokens."""


@dataclass(frozen=True)
class Predictions:
    """What is predicted after some positions, float32, on the CPU."""

    top_tokens: Int[Tensor, "*row read top"]
    top_log_probs: Float[Tensor, "*row read top"]
    log_probs: Float[Tensor, "*row read token"] | None = None
    """Of the tokens asked for."""
    target_log_probs: Float[Tensor, "*row read"] | None = None
    """Of the target of each position."""


@dataclass(frozen=True)
class Interchanged(Predictions):
    """What is predicted under every row of edits."""

    base: Predictions | None = None
    """Without edits; tensors as here, without the axis ``row``."""

    @property
    def unchanged(self) -> Predictions:
        assert self.base is not None
        return self.base


def states(
    lm: Model, prompts: Sequence[Sequence[int]], positions: Sequence[Sequence[int]], layers: Sequence[int] | None = None
) -> list[Float[Tensor, "layer pos d_model"]]:
    """The residual stream of every prompt at its positions, after each layer.

    ``layers``: by default from -1 (before block 0) to the last, so that layer l has the index l + 1.
    """
    chosen = range(-1, lm.anatomy.n_layers) if layers is None else layers
    sites = [residual(layer) for layer in chosen]
    if len(prompts) != len(positions):
        raise InputError(
            f"{len(prompts)} prompts, but positions for {len(positions)}; give the positions of every prompt"
        )
    for i, (prompt, some) in enumerate(zip(prompts, positions, strict=True)):
        if not len(some) or not all(0 <= p < len(prompt) for p in some):
            raise InputError(f"prompt {i}: positions {list(some)}; give at least one in 0-{len(prompt) - 1}")
    found: list[Tensor] = [torch.empty(0)] * len(prompts)
    for some in in_prefills(lm, [len(p) for p in prompts]):
        ids, mask = lm.pad([prompts[i] for i in some])
        ids = torch.where(mask.bool(), ids, ids[:, :1])
        rows = torch.tensor([r for r, i in enumerate(some) for _ in positions[i]])
        cols = torch.tensor([p for i in some for p in positions[i]])
        with torch.no_grad():
            acts = lm.read_trunk(ids, dict.fromkeys(sites, lambda x, r=rows, c=cols: x[r.to(x.device), c.to(x.device)]))
        together = torch.stack([acts[s].to(lm.device) for s in sites])
        sizes = [len(positions[i]) for i in some]
        for i, x in zip(some, together.split(sizes, 1), strict=True):
            found[i] = x
    return found


@torch.no_grad()
def interchange(
    lm: Model, ids: Sequence[int], rows: Sequence[Edits], read: Sequence[int], *, tokens: Sequence[int] | None = None,
    targets: Sequence[int] | None = None, top: int = 5, max_rows: int | None = None, notes: list[str] | None = None,
) -> Interchanged:  # fmt: skip
    """What the model predicts after the positions ``read`` of one prompt, under every row of edits.

    Args:
        ids: prompt, and as much of a response as is to be fed.
        rows: each row's edits, made together; an empty row changes nothing.
        read: positions whose next token is predicted.
        tokens: ids whose log-probabilities are kept at every position.
        targets: one id per position, whose log-probability is kept there (teacher forcing).
        top: how many of the likeliest tokens are kept.
        max_rows: rows computed together; by default as many as fit. Halved when memory runs out, with a note in
            ``notes`` (or a warning).

    Raises ``InputError`` for edits and positions outside the prompt, ``ModelError`` if the model's attention cannot
    be recomputed exactly.
    """
    if not len(ids):
        raise InputError(EMPTY)
    check_rows(rows, lm.anatomy, len(ids))
    if top < 0:
        raise InputError(f"top is {top}; give the number of likeliest tokens to keep")
    if not len(read) or not all(0 <= p < len(ids) for p in read):
        raise InputError(f"read {list(read)}: give at least one position in 0-{len(ids) - 1}")
    if targets is not None and len(targets) != len(read):
        raise InputError(f"{len(targets)} targets for {len(read)} positions; give one target for each position")
    for token in (*(tokens or ()), *(targets or ())):
        if not 0 <= token < lm.anatomy.vocab_size:
            raise InputError(f"token id {token}: the model's vocabulary has {lm.anatomy.vocab_size}")
    rows = [[e for e in row if first_position([e]) <= max(read)] for row in rows]  # later ones change nothing here
    prefix = prefill(lm, [ids], [(0, p) for p in read])
    ask = partial(_predict, lm, tokens=tokens, targets=targets, top=top)
    base = ask(prefix.final[None], read=range(len(read)))
    n = len(rows)
    out = {k: x.expand(n, *x.shape[1:]).clone() for k, x in base.items()}

    def work(most: int | None) -> None:
        for some, start in groups(rows, max(read) + 1, size if most is None else lambda _: most):
            got = suffix(lm, ids, prefix, [rows[i] for i in some], start=start, stop=max(read) + 1)
            later = [j for j, p in enumerate(read) if p >= start]
            x = got.final[1:, torch.tensor([read[j] - start for j in later])]
            for name, value in ask(x, read=later).items():
                out[name][torch.tensor(some)[:, None], torch.tensor(later)] = value

    size = partial(suffix_rows, lm, len(ids))
    shrinking(work, max_rows, partial(size, len(ids)), notes)
    return Interchanged(**out, base=Predictions(**{k: x[0] for k, x in base.items()}))


def groups(rows: Sequence[Edits], stop: int, size: Callable[[int], int]) -> Iterator[tuple[list[int], int]]:
    """Groups of rows that are computed together, with their first position; ``size`` limits a group by its positions.

    Rows that begin at later positions join earlier ones where that costs less than a separate forward pass. Within
    a group those that differ from the same block on are neighbours. Unchanged rows are in no group.
    """
    begins = {i: first_position(row) for i, row in enumerate(rows) if len(row)}
    order = sorted(begins, key=lambda i: begins[i])
    while order:
        start, taken = begins[order[0]], 0
        while taken < len(order):
            here = [i for i in order[taken:] if begins[i] == begins[order[taken]]]
            if (begins[order[taken]] - start) * len(here) > OVERHEAD:
                break
            taken += len(here)
        some = sorted(order[:taken], key=lambda i: first_cut(rows[i]))
        del order[:taken]
        most = max(1, size(stop - start))
        for at in range(0, len(some), most):
            yield some[at : at + most], start


def _predict(
    lm: Model, final: Float[Tensor, "row read d_model"], *, read: Sequence[int], tokens: Sequence[int] | None,
    targets: Sequence[int] | None, top: int,
) -> dict[str, Tensor]:  # fmt: skip
    """Fields of ``Predictions`` from states after the last block; ``read``: which of the positions they are."""
    shape, flat = final.shape[:2], final.flatten(0, 1)
    size = max(1, ELEMENTS // lm.anatomy.vocab_size)
    wanted = None if targets is None else torch.tensor([targets[j] for j in read]).repeat(len(final))
    parts: dict[str, list[Tensor]] = {}
    for at in range(0, len(flat), size):
        logits = lm.unembed(flat[at : at + size])
        total = logits.logsumexp(-1, keepdim=True)
        best = logits.topk(min(top, logits.shape[-1]), -1)
        found = {"top_tokens": best.indices, "top_log_probs": best.values - total}
        if tokens is not None:
            index = torch.tensor(list(tokens), dtype=torch.long, device=logits.device)
            found["log_probs"] = logits[:, index] - total
        if wanted is not None:
            index = wanted[at : at + size, None].to(logits.device)
            found["target_log_probs"] = (logits.gather(1, index) - total)[:, 0]
        for name, x in found.items():
            parts.setdefault(name, []).append((x if name == "top_tokens" else x.float()).cpu())
    return {k: torch.cat(v).reshape(*shape, *v[0].shape[1:]) for k, v in parts.items()}


def forced(
    lm: Model, prompt: Sequence[int], continuations: Sequence[Sequence[int]], rows: Sequence[Edits], *,
    max_rows: int | None = None, notes: list[str] | None = None,
) -> list[Float[Tensor, "row token"]]:  # fmt: skip
    """Log-probabilities of the tokens of each continuation, teacher-forced, under every row of edits."""
    found = []
    for i, continuation in enumerate(continuations):
        if not len(continuation):
            raise InputError(f"continuation {i}: no token; give at least one")
        read = range(len(prompt) - 1, len(prompt) - 1 + len(continuation))
        got = interchange(
            lm, [*prompt, *continuation[:-1]], rows, read, targets=continuation, top=1, max_rows=max_rows, notes=notes
        )
        assert got.target_log_probs is not None
        found.append(got.target_log_probs)
    return found


@torch.no_grad()
def continued(
    lm: Model, ids: Sequence[int], rows: Sequence[Edits], max_new_tokens: int,
    stop_ids: Sequence[int] | int | None = None, *, max_rows: int | None = None, notes: list[str] | None = None,
) -> list[list[int]]:  # fmt: skip
    """Greedy continuations of one prompt under every row of edits; the token that ended one is kept.

    Raises ``ModelError`` for a model whose cache holds other things than the keys and values that its attention takes.
    """
    check_rows(rows, lm.anatomy, len(ids))
    check_room(lm.model, lm.anatomy, len(ids), max_new_tokens)
    stops = ends(lm.eos_ids, stop_ids)
    prefix = prefill(lm, [ids])
    _check_cache(lm, prefix)
    unchanged = [i for i, row in enumerate(rows) if not len(row)]

    def work(most: int | None) -> list[list[int]]:
        found: list[list[int]] = [[] for _ in rows]
        if unchanged:
            got = Suffix(
                prefix.final[:, None], [k[:, :, :0] for k in prefix.keys], [v[:, :, :0] for v in prefix.values]
            )
            (tokens,) = _continue(lm, prefix, got, len(ids), max_new_tokens, stops)
            for i in unchanged:
                found[i] = tokens
        for some, start in groups(rows, len(ids), size if most is None else lambda _: most):
            got = suffix(lm, ids, prefix, [rows[i] for i in some], start=start, stop=len(ids))
            for i, tokens in zip(some, _continue(lm, prefix, got.rows(), start, max_new_tokens, stops), strict=True):
                found[i] = tokens
        return found

    size = partial(suffix_rows, lm, len(ids), decoded=max_new_tokens)
    return shrinking(work, max_rows, partial(size, len(ids)), notes)


def _check_cache(lm: Model, prefix: Prefix) -> None:
    """``ModelError`` unless the model's own cache holds keys and values as they are attended to.

    Some keep them compressed (DeepSeek-V3).
    """
    cache = empty_cache(lm.model)
    with lm._alone(), keep_rotary_angles(lm.model):
        lm.model(input_ids=prefix.tokens[:1, None], past_key_values=cache, use_cache=True)
    for layer, own in enumerate(cache.layers):
        for name, taken in (("keys", prefix.keys[layer]), ("values", prefix.values[layer])):
            kept = getattr(own, name, None)
            if kept is None or (kept.shape[1], kept.shape[-1]) != (taken.shape[1], taken.shape[-1]):
                raise ModelError(
                    f"{type(lm.model).__name__}: its cache does not hold the keys and values of its attention; edited "
                    "prompts cannot be continued (their next tokens can be read: interchange)"
                )


def _continue(
    lm: Model, prefix: Prefix, got: Suffix, start: int, max_new_tokens: int, stops: Sequence[int]
) -> list[list[int]]:
    cache, n = empty_cache(lm.model), len(got.final)
    for layer, (k, v) in enumerate(zip(got.keys, got.values, strict=True)):
        before = [x[layer][:, :, :start].expand(n, -1, -1, -1) for x in (prefix.keys, prefix.values)]
        cache.update(torch.cat([before[0], k], 2), torch.cat([before[1], v], 2), layer)
    logits = lm.unembed(got.final[:, -1])
    with lm._alone(), keep_rotary_angles(lm.model):
        return follow(lm.model, lm.anatomy, logits, cache, max_new_tokens, stops)


def early_exits(
    lm: Model, ids: Sequence[int], positions: Sequence[int], tokens: Sequence[int] | None = None,
    layers: Sequence[int] | None = None,
) -> Float[Tensor, "layer pos token"]:  # fmt: skip
    """Logits of each layer's states through the model's own final norm and head, float32, on the CPU.

    ``tokens``: the ids whose logits are wanted, by default the full vocabulary. ``layers``: by default -1 (before block
    0) to the last, so that layer l has the index l + 1; the last layer's logits are the model's own.
    """
    (found,) = states(lm, [ids], [positions], layers)
    return torch.stack([lm.unembed(x, tokens).float().cpu() for x in found])
