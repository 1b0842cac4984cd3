"""Sweeps over the place where an activation is put in: position x layer at any site, and head x layer.

    position_sweep(lm, donors, recipients, answers, kind="mlp_out").tensors["recovered"]  # pair layer position

A pair is a donor (usually a success) and a recipient (a failure), equally long. *Denoising* puts the donor's activation
into the recipient's run: what suffices to restore the donor's answer? *Noising* puts the recipient's into the donor's:
what is needed for it? (Heimersheim and Nanda 2024, section 2; the two differ where parts back each other up.)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from ...errors import InputError, NoCasesError
from ...hooks.budget import row_budget, shrinking
from ...hooks.model import Model
from ...hooks.sites import Kind, Site
from ..result import ProbeResult, Row
from .engine import chosen_layers
from .outcomes import divergence

PATCHABLE = tuple(k for k in get_args(Kind) if k not in ("q", "k", "v", "pattern"))
Direction = Literal["denoising", "noising"]
Ids = Sequence[int]
Pair = tuple[Ids, Ids, tuple[int, int]]
"""Source of the activation, run that it goes into, and their answer tokens."""


class Cell(NamedTuple):
    """The part of a site that is put in: some positions, at full width or of one head of ``n``."""

    positions: tuple[int, ...]
    head: int | None = None
    n: int = 1

    def part(self, width: int) -> slice:
        """The elements of a site of this width; heads may be wider in some layers than in others."""
        d = width // self.n
        return slice(None) if self.head is None else slice(self.head * d, (self.head + 1) * d)


def position_sweep(
    lm: Model, donors: Sequence[Ids], recipients: Sequence[Ids], answers: Sequence[tuple[int, int]], *,
    kind: Kind = "resid_post", layers: Sequence[int] | None = None, positions: Sequence[int] | None = None,
    head: int | None = None, expert: int | None = None, direction: Direction = "denoising",
    max_batch: int | None = None,
) -> ProbeResult:  # fmt: skip
    """Put one activation in at one (layer, position) at a time, for all of them, and measure the next token.

    Args:
        donors: prompts as token ids.
        recipients: the prompts that get their states: one for each donor, in the same order and as long.
        answers: per pair the donor's and the recipient's answer token.
        kind: the activation; ``head`` with ``head=h`` patches one head only, ``neuron`` with ``expert=e`` the neurons
            of one expert.
        positions: prompt positions (default all); negative ones count from the end.
        direction: ``denoising`` or ``noising`` (see the module).
        max_batch: variants in one forward pass; by default what fits. Halved when memory runs out; the result says so.

    Tensors, ``pair layer position``: ``kl`` (nats, KL(unpatched || patched)), ``logit_difference`` (answer of the
    activation's source minus that of the run it goes into), ``probability`` (of the source's answer) and ``recovered``,
    the share of the way from the unpatched run's logit difference to the source's; NaN if the two are within 1e-6.
    Table: the largest mean ``recovered`` per layer, without an interval, as it was chosen after seeing all. Recomputes
    the full sequence for each (layer, position); ``attribution_patching`` estimates all of them from two forward passes
    and one backward pass.
    """
    pairs = check_pairs(lm, donors, recipients, answers, kind, direction)
    n = len(recipients[0])
    where = _within(range(n) if positions is None else positions, n)
    chosen = chosen_layers(lm, layers)
    heads = 1 if head is None else head_count(lm, chosen)
    if head is not None and (kind != "head" or not 0 <= head < heads):
        raise InputError(f"head {head} of kind {kind}: give kind='head' and a head below {heads}")
    cells = [Cell((p,), head, heads) for p in where]
    notes: list[str] = []
    tensors = sweep(lm, pairs, [Site(layer, kind, expert) for layer in chosen], cells, max_batch, notes)
    settings: dict[str, Any] = {
        "kind": kind, "head": head, "expert": expert, "layers": chosen, "positions": where, "direction": direction,
        "answers": [list(a) for a in answers], "dtype": str(lm.dtype),
    }  # fmt: skip
    rows = [_best(tensors["recovered"][:, i], layer, where, "position") for i, layer in enumerate(chosen)]
    axes = dict.fromkeys(tensors, ("pair", "layer", "position"))
    return ProbeResult("position_sweep", rows, tensors, axes, settings, [*undefined(tensors["recovered"]), *notes])


def head_sweep(
    lm: Model, donors: Sequence[Ids], recipients: Sequence[Ids], answers: Sequence[tuple[int, int]], *,
    layers: Sequence[int] | None = None, positions: Sequence[int] | None = None, direction: Direction = "denoising",
    max_batch: int | None = None,
) -> ProbeResult:  # fmt: skip
    """Put one head's output in at a time, at all ``positions`` together (default: the full prompt), for every head.

    Arguments and tensors as in ``position_sweep``, with axes ``pair layer head``.
    """
    pairs = check_pairs(lm, donors, recipients, answers, "head", direction)
    n = len(recipients[0])
    where = tuple(_within(range(n) if positions is None else positions, n))
    chosen = chosen_layers(lm, layers)
    heads = list(range(head_count(lm, chosen)))
    cells = [Cell(where, h, len(heads)) for h in heads]
    notes: list[str] = []
    tensors = sweep(lm, pairs, [Site(layer, "head") for layer in chosen], cells, max_batch, notes)
    settings: dict[str, Any] = {
        "kind": "head", "layers": chosen, "positions": list(where), "direction": direction,
        "answers": [list(a) for a in answers], "dtype": str(lm.dtype),
    }  # fmt: skip
    rows = [_best(tensors["recovered"][:, i], layer, heads, "head") for i, layer in enumerate(chosen)]
    axes = dict.fromkeys(tensors, ("pair", "layer", "head"))
    return ProbeResult("head_sweep", rows, tensors, axes, settings, [*undefined(tensors["recovered"]), *notes])


def check_pairs(
    lm: Model, donors: Sequence[Ids], recipients: Sequence[Ids], answers: Sequence[tuple[int, int]], kind: str,
    direction: str,
) -> list[Pair]:  # fmt: skip
    """The pairs in the given direction: (source, run that it is put into, their answers)."""
    if not donors or not len(donors) == len(recipients) == len(answers):
        raise NoCasesError(
            f"{len(donors)} donors, {len(recipients)} recipients and {len(answers)} answers; give the same number of "
            "each, at least one"
        )
    lengths = {len(p) for p in (*donors, *recipients)}
    if len(lengths) != 1:
        raise InputError(f"prompts of {sorted(lengths)} tokens; a sweep over positions needs equally long ones")
    if kind not in PATCHABLE:
        raise InputError(f'kind "{kind}": use one of {", ".join(PATCHABLE)}')
    if direction not in get_args(Direction):
        raise InputError(f'direction "{direction}": use denoising or noising')
    for i, pair in enumerate(answers):
        if len(pair) != 2 or not all(0 <= t < lm.anatomy.vocab_size for t in pair):
            raise InputError(f"answers of pair {i}: {list(pair)}; give two token ids below {lm.anatomy.vocab_size}")
    if direction == "noising":
        return [(r, d, (a[1], a[0])) for d, r, a in zip(donors, recipients, answers, strict=True)]
    return list(zip(donors, recipients, answers, strict=True))


def head_count(lm: Model, layers: Sequence[int]) -> int:
    """Heads of each of the layers; ``InputError`` if they differ."""
    counts = {lm.anatomy.heads(layer)[0] for layer in layers}
    if len(counts) > 1:
        raise InputError(f"layers {list(layers)} have {sorted(counts)} heads; give layers that have equally many")
    return counts.pop()


def undefined(recovered: Float[Tensor, "pair layer cell"]) -> list[str]:
    """A warning where all values of a pair are NaN, because its two runs do not differ."""
    alike = int(recovered.isnan().flatten(1).all(1).sum())
    if not alike:
        return []
    return [f"{alike} of {len(recovered)} pairs: source and run have the same logit difference; recovered is undefined"]


def _within(positions: Sequence[int], n: int) -> list[int]:
    if not len(positions) or not all(-n <= p < n for p in positions):
        raise InputError(f"positions {list(positions)}: the prompts have {n} tokens (0-{n - 1})")
    return [p % n for p in positions]


@torch.no_grad()
def sweep(
    lm: Model, pairs: Sequence[Pair], sites: Sequence[Site], cells: Sequence[Cell], max_batch: int | None,
    notes: list[str],
) -> dict[str, Float[Tensor, "pair site cell"]]:  # fmt: skip
    """Every cell of every site of every pair: ``pair site cell``. ``notes`` says where memory ran out."""
    n = len(pairs[0][1])
    said: list[str] = []

    def budget() -> int:
        return max(1, row_budget(lm, n, n, graph=False))

    def one(pair: Pair) -> dict[str, Tensor]:
        return shrinking(lambda size: _pair(lm, pair, sites, cells, size or budget()), max_batch, budget, said)

    maps = [one(pair) for pair in pairs]
    notes += dict.fromkeys(said)
    return {name: torch.stack([m[name] for m in maps]).float() for name in maps[0]}


def _pair(lm: Model, pair: Pair, sites: Sequence[Site], cells: Sequence[Cell], size: int) -> dict[str, Tensor]:
    both = torch.tensor([list(pair[0]), list(pair[1])], device=lm.device)
    clean = lm.run(both, read=sites)
    ends = clean.logits[:, -1].double()
    out = []
    for site in sites:
        value = clean.acts[site][0]
        logits = []
        for start in range(0, len(cells), size):
            some = cells[start : start + size]
            ids = both[1:].expand(len(some), -1)
            logits.append(lm.run(ids, edit={site: _put(value, some)}).logits[:, -1].double())
        out.append(torch.cat(logits))
    return {k: v.cpu() for k, v in measures(torch.stack(out), ends, pair[2]).items()}


def measures(
    patched: Float[Tensor, "site cell vocab"], ends: Float[Tensor, "2 vocab"], answer: tuple[int, int]
) -> dict[str, Float[Tensor, "site cell"]]:
    """Measures from patched logits and the logits of the source and of the unpatched run (``ends``)."""
    spread = ends[:, answer[0]] - ends[:, answer[1]]
    log_q, log_p = ends[1].log_softmax(-1), patched.log_softmax(-1)
    difference = patched[..., answer[0]] - patched[..., answer[1]]
    scale = spread[0] - spread[1]
    recovered = (difference - spread[1]) / scale if abs(float(scale)) > 1e-6 else torch.full_like(difference, torch.nan)
    return {
        "kl": divergence(log_q, log_p),
        "logit_difference": difference,
        "probability": log_p[..., answer[0]].exp(),
        "recovered": recovered,
    }


def _put(value: Tensor, cells: Sequence[Cell]) -> Callable[[Tensor], Tensor]:
    """An edit that gives row i cell i of ``value``, ``pos width``."""

    def edit(x: Tensor) -> Tensor:
        y = x.clone()
        for row, cell in enumerate(cells):
            at = torch.tensor(cell.positions, device=x.device)
            part = cell.part(x.shape[-1])
            y[row, at, part] = value[at, part].to(x)
        return y

    return edit


def _best(recovered: Tensor, layer: int, where: Sequence[int], what: str) -> Row:
    """The place with the largest mean over pairs; a note says that it was chosen after seeing the values."""
    mean = recovered.nanmean(0)
    at = 0 if bool(torch.isnan(mean).all()) else int(torch.nan_to_num(mean, nan=-torch.inf).argmax())
    values, nan = [float(v) for v in recovered[:, at] if not torch.isnan(v)], float("nan")
    found = float(np.mean(values)) if values else nan
    # The largest of many means lies above what other pairs would show there, and its own interval would miss that.
    return {
        "quantity": "recovered", "group": "pairs", "n": len(values), "value": found, "low": nan, "high": nan,
        "interval": "none: chosen after seeing the values", "layer": layer, what: where[at],
        "note": f"largest of {len(where)} {what}s, chosen after seeing them",
    }  # fmt: skip
