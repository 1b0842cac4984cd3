"""Position x layer sweeps: one donor activation at one position of one layer at a time, on any site."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, get_args

import torch
from torch import Tensor

from ..errors import InputError, NoCasesError
from ..hooks.model import Model
from ..hooks.rows import row_budget
from ..hooks.sites import Kind, Site
from .effects import mean_interval
from .patching_outcomes import divergence
from .result import ProbeResult, Row

PATCHABLE = tuple(k for k in get_args(Kind) if k not in ("q", "k", "v", "pattern"))


@torch.no_grad()
def position_sweep(
    lm: Model, donors: Sequence[Sequence[int]], recipients: Sequence[Sequence[int]],
    answers: Sequence[tuple[int, int]], *, kind: Kind = "resid_post", layers: Sequence[int] | None = None,
    positions: Sequence[int] | None = None, head: int | None = None, max_batch: int | None = None,
) -> ProbeResult:  # fmt: skip
    """Put the donor's activation in at one (layer, position) of the recipient, for all of them; look at the next token.

    Args:
        donors, recipients: aligned pairs of prompts, equally long. Swap them to go from noising to denoising.
        answers: per pair the donor's and the recipient's answer token.
        kind: which activation; ``head`` with ``head=h`` patches one head only.
        positions: prompt positions (default all); negative ones count from the end.

    Tensors, ``pair layer position``: ``kl`` (nats, from the unpatched recipient), ``logit_difference`` (donor's answer
    minus recipient's) and ``recovered``, the share of the way from the recipient's logit difference to the donor's;
    NaN where the two are within 1e-6. Table: the largest mean ``recovered`` per layer, with the interval over pairs.
    Recomputes the full sequence for every (layer, position).
    """
    _check(lm, donors, recipients, answers, kind, head)
    n = len(recipients[0])
    where = [p % n for p in (range(n) if positions is None else positions)]
    chosen = list(range(lm.anatomy.n_layers)) if layers is None else list(layers)
    maps = [
        _pair(lm, d, r, a, [Site(layer, kind) for layer in chosen], where, head, max_batch)
        for d, r, a in zip(donors, recipients, answers, strict=True)
    ]
    tensors = {name: torch.stack([m[name] for m in maps]).float() for name in ("kl", "logit_difference", "recovered")}
    settings: dict[str, Any] = {
        "kind": kind, "head": head, "layers": chosen, "positions": where, "answers": [list(a) for a in answers],
        "dtype": str(lm.dtype),
    }  # fmt: skip
    rows = [_best(tensors["recovered"][:, i], layer, where) for i, layer in enumerate(chosen)]
    return ProbeResult("position_sweep", rows, tensors, dict.fromkeys(tensors, ("pair", "layer", "position")), settings)


def _check(
    lm: Model, donors: Sequence[Sequence[int]], recipients: Sequence[Sequence[int]],
    answers: Sequence[tuple[int, int]], kind: str, head: int | None,
) -> None:  # fmt: skip
    if not donors or not len(donors) == len(recipients) == len(answers):
        raise NoCasesError(f"{len(donors)} donors, {len(recipients)} recipients, {len(answers)} answers; need one each")
    lengths = {len(p) for p in (*donors, *recipients)}
    if len(lengths) != 1:
        raise InputError(f"prompts of {sorted(lengths)} tokens; a position sweep needs equally long ones")
    if kind not in PATCHABLE:
        raise InputError(f'kind "{kind}": use one of {", ".join(PATCHABLE)}')
    if head is not None and (kind != "head" or not 0 <= head < lm.anatomy.n_heads):
        raise InputError(f"head {head} of kind {kind}: give kind='head' and a head below {lm.anatomy.n_heads}")


def _pair(
    lm: Model, donor: Sequence[int], recipient: Sequence[int], answer: tuple[int, int], sites: Sequence[Site],
    where: Sequence[int], head: int | None, max_batch: int | None,
) -> dict[str, Tensor]:  # fmt: skip
    both = torch.tensor([list(donor), list(recipient)], device=lm.device)
    clean = lm.run(both, read=sites)
    ends = clean.logits[:, -1].double()
    spread = ends[:, answer[0]] - ends[:, answer[1]]  # donor, recipient
    n = both.shape[1]
    size = max_batch or max(1, row_budget(lm, n, n, graph=False))
    out = []
    for site in sites:
        value = clean.acts[site][0]
        logits = []
        for start in range(0, len(where), size):
            some = where[start : start + size]
            ids = both[1:].expand(len(some), -1)
            logits.append(lm.run(ids, edit={site: _put(value, some, head, lm.anatomy.d_head)}).logits[:, -1].double())
        out.append(torch.cat(logits))
    patched = torch.stack(out)  # layer position vocab
    log_q, log_p = ends[1].log_softmax(-1), patched.log_softmax(-1)
    difference = patched[..., answer[0]] - patched[..., answer[1]]
    scale = spread[0] - spread[1]
    recovered = (difference - spread[1]) / scale if abs(float(scale)) > 1e-6 else torch.full_like(difference, torch.nan)
    return {"kl": divergence(log_q, log_p).cpu(), "logit_difference": difference.cpu(), "recovered": recovered.cpu()}


def _put(value: Tensor, where: Sequence[int], head: int | None, d_head: int) -> Callable[[Tensor], Tensor]:
    rows, cols = torch.arange(len(where)), torch.tensor(list(where))
    width = slice(None) if head is None else slice(head * d_head, (head + 1) * d_head)

    def edit(x: Tensor) -> Tensor:
        y = x.clone()
        y[rows, cols, width] = value[cols, width].to(x)
        return y

    return edit


def _best(recovered: Tensor, layer: int, where: Sequence[int]) -> Row:
    """The position with the largest mean over pairs; chosen after seeing it, which the note says."""
    mean = recovered.nanmean(0)
    if bool(torch.isnan(mean).all()):
        at = 0
    else:
        at = int(torch.nan_to_num(mean, nan=-torch.inf).argmax())
    values = [float(v) for v in recovered[:, at] if not torch.isnan(v)]
    e = mean_interval(values)
    return {
        "quantity": "recovered", "group": "pairs", "n": len(values), "value": e.value, "low": e.low, "high": e.high,
        "interval": e.interval, "layer": layer, "position": where[at],
        "note": f"largest of {len(where)} positions, chosen after seeing them",
    }  # fmt: skip
