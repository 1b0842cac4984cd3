"""Statistics over the vocabulary, from hidden states, without ever holding ``token vocab`` logits.

    found = vocabulary_statistics(head_of(lm.model), hidden, targets)  # log_prob, mean and variance per token

For a token with logits x and log-probabilities l = x - log Z the head statistics are

    log_prob = l_y,   mean = E_p[l] = sum_v p_v l_v,   variance = E_p[(l - mean)^2],   p = softmax(x)

(Min-K%++, Zhang et al. 2025, eq. 3, calls the standard deviation sigma; the reference's "sigma" is this variance).
Logits are formed tile by tile (``rows`` tokens x ``tile`` vocabulary entries); every tile gives its maximum, its mass,
its centered mean and its centered second moment, and tiles are merged with the parallel-variance formula of
Chan, Golub and LeVeque (1983) in float64. That avoids the cancellation in E[l^2] - E[l]^2 (1e-4 at 152k entries).
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack, nullcontext
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional as F
from transformers import PreTrainedModel

from ..errors import InputError, ModelError
from ..interrupts import held
from . import placement
from .length_limits import keep_rotary_angles
from .numerics import check_ready
from .parts import decoder_of, first_tensor, hidden_in, input_device

TILE = {False: (512, 2048), True: (2048, 16_384)}
"""Rows and vocabulary entries of a tile, on a CPU and on a GPU."""


class VocabularyStatistics(NamedTuple):
    """Per token, float64, on the CPU."""

    log_prob: Float[Tensor, "token"]
    """Log-probability of the target."""
    mean: Float[Tensor, "token"]
    """Expected log-probability under the model's own prediction: minus its entropy, in nats."""
    variance: Float[Tensor, "token"]
    """Variance of the log-probability under the model's own prediction, nats squared."""


@dataclass(frozen=True)
class Head:
    """The map from the final hidden state to logits: ``cap * tanh(scale * (W h + b) / cap)``."""

    weight: Float[Tensor, "vocab d_model"]
    bias: Float[Tensor, "vocab"] | None
    softcap: float | None
    scale: float

    def logits(
        self, hidden: Float[Tensor, "token d_model"], start: int = 0, stop: int | None = None
    ) -> Float[Tensor, "token entry"]:
        """Logits of vocabulary entries ``start:stop``, in float32 or float64."""
        x = _product(hidden.to(self.weight.device), self.weight[start:stop])
        if self.bias is not None:
            x += self.bias[start:stop].to(x.dtype)
        if self.scale != 1.0:
            x *= self.scale
        if self.softcap is not None:
            x.div_(self.softcap).tanh_().mul_(self.softcap)
        return x


@dataclass(frozen=True)
class Unembedding:
    """The map from the residual stream after the last block to logits: the final norm, then the head."""

    final: tuple[nn.Module, ...]
    """What runs between the last block and the head, in order."""
    head: Head

    @torch.no_grad()
    def __call__(
        self, resid: Float[Tensor, "*any d_model"], tokens: Sequence[int] | None = None,
        dtype: torch.dtype | None = None,
    ) -> Float[Tensor, "*any token"]:  # fmt: skip
        """Logits of some tokens, or of the full vocabulary, in float32 or float64.

        ``dtype``: of the residual stream that the final norm takes, by default that of the head.
        """
        head, x = self.head, resid.reshape(-1, resid.shape[-1])
        if tokens is not None:
            tokens = list(tokens)
            if bad := [t for t in tokens if not 0 <= t < len(head.weight)]:
                raise InputError(f"token id {bad[0]}: the head has {len(head.weight)} entries")
            index = torch.tensor(tokens, dtype=torch.long, device=head.weight.device)
            head = replace(head, weight=head.weight[index], bias=None if head.bias is None else head.bias[index])
        x = x.to(head.weight.device, dtype or head.weight.dtype)
        for module in self.final:
            x = module(x)
        return head.logits(x).reshape(*resid.shape[:-1], -1)


@torch.no_grad()
def unembedding_of(model: PreTrainedModel, last: nn.Module) -> Unembedding:
    """The head, and what runs before it: found by following the states of two tokens from the ``last`` block on."""
    head, decoder = head_of(model), decoder_of(model)
    here: list[Tensor] = []
    final: list[nn.Module] = []

    def start(_module: nn.Module, _args: Any, output: Any) -> None:
        here[:] = [y] if (y := first_tensor(output)) is not None else []

    def follow(module: nn.Module, args: tuple, kwargs: dict[str, Any], output: Any) -> None:
        x, y = hidden_in(args, kwargs), first_tensor(output)
        if here and x is not None and y is not None and x.shape == here[0].shape and torch.equal(x, here[0]):
            here[:] = [y]
            final.append(module)

    ids = torch.tensor([[0, min(1, head.weight.shape[0] - 1)]], device=input_device(model))
    with held(), ExitStack() as stack, keep_rotary_angles(model):
        stack.callback(last.register_forward_hook(start).remove)
        for child in decoder.children():
            stack.callback(child.register_forward_hook(follow, with_kwargs=True).remove)
        out = decoder(input_ids=ids, use_cache=False).last_hidden_state
    if not here or here[0].shape != out.shape or not torch.equal(here[0], out):
        raise ModelError(
            f"{type(model).__name__}: what lies between its last block and its head could not be followed, so single "
            "layers cannot be read through its head"
        )
    return Unembedding(tuple(final), head)


def _option(config: Any, name: str) -> float | None:
    value = getattr(config, name, None)
    return None if value is None else float(value)


def head_of(model: PreTrainedModel) -> Head:
    """The model's head, compared with the model's own logits on two tokens.

    Soft-capping (``final_logit_softcapping``), multipliers (``logit_scale``) and dividers (``logits_scaling``) are
    read from the configuration. Raises ``ModelError`` if the result differs from the model's own, for heads whose
    weight cannot be read (quantized or absent), and for a model in training mode.
    """
    name = type(model).__name__
    check_ready(model)
    module = model.get_output_embeddings()
    with placement.loaded(module) if isinstance(module, torch.nn.Module) else nullcontext():
        weight, bias = getattr(module, "weight", None), getattr(module, "bias", None)
    if module is None or not isinstance(weight, Tensor) or weight.ndim != 2 or not weight.is_floating_point():
        raise ModelError(f"{name}: no readable output head (found {type(module).__name__}); load it unquantized")
    config = model.config.get_text_config(decoder=True)
    scale = (_option(config, "logit_scale") or 1.0) / (_option(config, "logits_scaling") or 1.0)
    head = Head(
        weight.detach(), None if bias is None else bias.detach(), _option(config, "final_logit_softcapping"), scale
    )
    with keep_rotary_angles(model):
        _verify(head, model, name)
    return head


@torch.no_grad()
def _verify(head: Head, model: PreTrainedModel, name: str) -> None:
    ids = torch.tensor([[0, min(1, head.weight.shape[0] - 1)]], device=input_device(model))
    seen: list[Tensor] = []

    def keep(_module: nn.Module, _args: Any, output: Any) -> None:
        seen.append(output[0])  # the last hidden states, of a ModelOutput as of a tuple

    with ExitStack() as stack:
        stack.callback(decoder_of(model).register_forward_hook(keep).remove)
        want = model(input_ids=ids, use_cache=False).logits[0].float()
    if not seen:
        raise ModelError(f"{name}: its logits do not come from its decoder ({type(decoder_of(model)).__name__})")
    hidden = seen[-1][0]
    got = head.logits(hidden).float().to(want.device)[:, : want.shape[-1]]
    finite = torch.isfinite(want)
    if want.isnan().any() or not finite.any() or not torch.isfinite(hidden).all():
        raise ModelError(f"{name}: NaN or infinite logits for a two-token prompt; check the weights and the dtype")
    worst = float((got - want)[finite].abs().max()) / max(1e-6, float(want[finite].abs().max()))
    tolerance = 1e-4 if hidden.dtype in (torch.float32, torch.float64) else 3e-2
    if not worst <= tolerance:
        raise ModelError(
            f"{name}: head(hidden) differs from the model's own logits by {worst:.1e} of their maximum; its logits go"
            " through a transform that is neither a soft cap nor a scale, so head statistics would be wrong"
        )


def _wide(x: Tensor) -> Tensor:
    return x if x.dtype == torch.float64 else x.float()


def _product(hidden: Tensor, weight: Tensor) -> Tensor:
    """``hidden @ weight.T`` in float32 or float64, also from half-precision factors.

    A GPU multiplies half-precision factors directly and accumulates in float32. Products of two such numbers are exact
    in float32, so the result is that of widening both first, in a fraction of the time.
    """
    half = hidden.dtype in (torch.bfloat16, torch.float16) and hidden.dtype == weight.dtype
    if half and hidden.is_cuda:
        return torch.mm(hidden, weight.T, out_dtype=torch.float32)
    hidden = _wide(hidden)
    return F.linear(hidden, weight.to(hidden.dtype))


@torch.no_grad()
def vocabulary_statistics(
    head: Head,
    hidden: Float[Tensor, "token d_model"],
    targets: Int[Tensor, "_"],
    *,
    rows: int | None = None,
    tile: int | None = None,
) -> VocabularyStatistics:
    """Mean and variance of the log-probability under the model, and the target's log-probability, per token.

    ``hidden`` are final hidden states (after the last norm), ``targets`` the ids that they predict. Memory is
    ``rows * tile`` logits whatever the vocabulary (by default as many as fit into a CPU's cache; more on a GPU, where
    every tile costs a launch). Vocabulary entries with a logit of minus infinity have no mass and are left out.
    Raises ``InputError`` for targets outside the vocabulary, ``ModelError`` for NaN.
    """
    n, vocab = hidden.shape[0], head.weight.shape[0]
    if targets.shape != (n,):
        raise InputError(f"targets have shape {tuple(targets.shape)}; give one target id for each of {n} hidden states")
    if n and not (0 <= int(targets.min()) and int(targets.max()) < vocab):
        raise InputError(f"target ids lie in {int(targets.min())}..{int(targets.max())}; the head has {vocab} entries")
    rows, tile = rows or TILE[head.weight.is_cuda][0], tile or TILE[head.weight.is_cuda][1]
    parts = [
        _row_block(head, hidden[i : i + rows], targets[i : i + rows].to(head.weight.device), tile)
        for i in range(0, n, rows)
    ]
    if not parts:
        return VocabularyStatistics(*torch.zeros(3, 0, dtype=torch.float64))
    out = VocabularyStatistics(*(torch.cat(column).cpu() for column in zip(*parts, strict=True)))
    if not torch.isfinite(out.mean).all() or not torch.isfinite(out.variance).all() or out.log_prob.isnan().any():
        raise ModelError("the head gave NaN or infinite logits; check the weights and the dtype (float16 overflows)")
    return out


def _row_block(head: Head, hidden: Tensor, targets: Tensor, tile: int) -> tuple[Tensor, Tensor, Tensor]:
    n, vocab = hidden.shape[0], head.weight.shape[0]
    device = head.weight.device
    # Running maximum, mass relative to it, mean logit and summed squared deviation (both relative masses).
    top = torch.full((n,), -torch.inf, dtype=torch.float64, device=device)
    mass, mean, m2, target = (torch.zeros(n, dtype=torch.float64, device=device) for _ in range(4))
    for start in range(0, vocab, tile):
        x = head.logits(hidden, start, min(start + tile, vocab))
        here = (targets >= start) & (targets < start + x.shape[1])
        picked = x.gather(1, (targets - start).clamp(0, x.shape[1] - 1)[:, None])[:, 0].double()
        target = torch.where(here, picked, target)
        tile_stats = _tile(x)
        top, mass, mean, m2 = _merge((top, mass, mean, m2), tile_stats)
    log_z = top + mass.log()
    return target - log_z, mean - log_z, m2 / mass


def _tile(x: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Maximum, mass relative to it, mean logit, summed squared deviation of one tile; overwrites ``x``."""
    top = x.amax(1)
    x -= torch.where(torch.isneginf(top), 0, top)[:, None]
    # exp(-1e4) is 0 in every dtype; the bound keeps masked-out entries from turning 0 * inf into NaN.
    x.clamp_(min=-1e4)
    p = x.exp()
    mass = p.sum(1)
    shift = torch.linalg.vecdot(p, x) / mass.clamp(min=torch.finfo(x.dtype).tiny)
    m2 = torch.linalg.vecdot(p, x.sub_(shift[:, None]).square_())
    return top.double(), mass.double(), (top.double() + shift.double()).nan_to_num(neginf=0.0), m2.double()


def _merge(a: tuple[Tensor, ...], b: tuple[Tensor, ...]) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    top = torch.maximum(a[0], b[0])
    wa, wb = (torch.exp((s[0] - top).nan_to_num(nan=-torch.inf)) for s in (a, b))
    mass_a, mass_b = a[1] * wa, b[1] * wb
    mass = mass_a + mass_b
    safe = mass.clamp(min=torch.finfo(torch.float64).tiny)
    delta = b[2] - a[2]
    mean = a[2] + delta * mass_b / safe
    m2 = a[3] * wa + b[3] * wb + delta.square() * mass_a * mass_b / safe
    return top, mass, mean, m2
