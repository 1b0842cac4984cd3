"""Reads and changes neurons inside mixtures of experts, at the tokens that the router sends there.

    z = activations(experts, 3, hidden)  # neurons of expert 3: token d_mlp

transformers keeps the experts of a layer as three-dimensional weights behind one module, ``experts(hidden, index,
weight)``, so an expert's neurons are not the input of a module. They are computed in addition to the module's kernel,
``z_e = act(x W_up,e)`` for the tokens that chose expert e, and a change of them is added to the kernel's output:

    output + sum over changed experts e of weight_e * W_down,e (z'_e - z_e)

so reading does not change the output at all. One token of every call is checked: the module must be such a sum.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from ..errors import ModelError
from . import placement

Change = Callable[[int, Int[Tensor, "n"], Float[Tensor, "n d_mlp"]], "Float[Tensor, 'n d_mlp'] | None"]
"""(expert, tokens that chose it, their activations) to new activations; ``None``: unchanged."""


class Dispatch(NamedTuple):
    """The input of one call of an experts module: tokens, the experts that each chose, and their weights."""

    hidden: Float[Tensor, "token d_model"]
    index: Int[Tensor, "token k"]
    weight: Float[Tensor, "token k"]


def readable(experts: nn.Module | None) -> bool:
    """Whether transformers' experts interface runs these experts, as a weighted sum of plain MLPs."""
    return (
        experts is not None
        and hasattr(experts, "is_transposed")
        and not getattr(experts, "has_post_expert_norm", False)
        and isinstance(getattr(experts, "down_proj", None), Tensor)
    )


def required(experts: nn.Module | None) -> Any:
    """The experts; ``ModelError`` with the reason where their neurons cannot be read."""
    if not readable(experts):
        raise ModelError(
            f"{type(experts).__name__}: its experts are not kept as plain weights behind transformers' experts "
            "interface, or have a norm behind them; their neurons cannot be read (mlp_out can)"
        )
    return experts


def count(experts: nn.Module) -> int:
    return int(required(experts).down_proj.shape[0])


def width(experts: nn.Module) -> int:
    """Neurons of one expert."""
    return int(required(experts).down_proj.shape[1 if experts.is_transposed else 2])


def given(experts: nn.Module, args: tuple, kwargs: dict[str, Any]) -> Dispatch:
    """Tokens and routing from a call's arguments."""
    values = [*args, *kwargs.values()]
    if len(values) < 3 or not all(isinstance(v, Tensor) for v in values[:3]) or values[1].dim() != 2:
        raise ModelError(
            f"{type(experts).__name__}: was not called with hidden states, expert indices and weights, so its experts "
            "cannot be read"
        )
    hidden, index, weight = values[:3]
    return Dispatch(hidden.reshape(-1, hidden.shape[-1]), index, weight)


def activations(experts: Any, e: int, x: Float[Tensor, "n d_model"]) -> Float[Tensor, "n d_mlp"]:
    """Neurons of expert e: the input of its down projection."""
    up = (experts.gate_up_proj if experts.has_gate else experts.up_proj)[e]
    projected = x @ (up if experts.is_transposed else up.T)
    if experts.has_bias:
        projected = projected + (experts.gate_up_proj_bias if experts.has_gate else experts.up_proj_bias)[e]
    return experts._apply_gate(projected) if experts.has_gate else experts.act_fn(projected)


def down(experts: Any, e: int) -> Float[Tensor, "d_model d_mlp"]:
    """Down projection of expert e."""
    weight = experts.down_proj[e]
    return weight.T if experts.is_transposed else weight


def check(experts: Any, sent: Dispatch, output: Float[Tensor, "*token d_model"]) -> None:
    """``ModelError`` unless the first token's output is the weighted sum of its experts."""
    with torch.no_grad():
        total = torch.zeros_like(sent.hidden[0], dtype=torch.promote_types(output.dtype, torch.float32))
        for e, w in zip(sent.index[0].tolist(), sent.weight[0], strict=True):
            part = activations(experts, e, sent.hidden[:1])[0] @ down(experts, e).T
            if experts.has_bias:
                part = part + experts.down_proj_bias[e]
            total += w * part
        own = output.reshape(-1, output.shape[-1])[0]
        limit = 1e-3 if own.dtype in (torch.float32, torch.float64) else 5e-2
        if not float((total - own).abs().max()) <= limit * float(own.abs().max().clamp_min(1e-6)):
            raise ModelError(
                f"{type(experts).__name__}: its output is not the weighted sum of its experts, so they cannot be read"
            )


def changed(
    experts: nn.Module, sent: Dispatch, output: Float[Tensor, "*token d_model"], change: Change,
    only: Iterable[int] | None = None,
) -> Float[Tensor, "*token d_model"]:  # fmt: skip
    """The module's output with changed activations of its experts: of those in ``only``, or of all that were chosen.

    ``change`` is called once per expert; for experts in ``only`` also if no token chose them (then with no tokens).
    """
    module = required(experts)
    out = output.reshape(-1, output.shape[-1])
    with placement.loaded(experts):
        check(module, sent, output)
        for e in sent.index.unique().tolist() if only is None else only:
            tokens, slots = torch.where(sent.index == e)
            z = activations(module, e, sent.hidden[tokens])
            new = change(e, tokens, z)
            if new is None or not len(tokens):
                continue
            delta = ((new - z) @ down(module, e).T) * sent.weight[tokens, slots, None]
            out = out.index_add(0, tokens, delta.to(out.dtype))
    return out.reshape(output.shape)


def visited(
    experts: nn.Module, args: tuple, kwargs: dict[str, Any], output: Float[Tensor, "*token d_model"],
    visits: Mapping[int, Callable[[Float[Tensor, "token d_mlp"]], Float[Tensor, "token d_mlp"]]],
) -> Float[Tensor, "*token d_model"]:  # fmt: skip
    """Pass some experts' neurons, ``token d_mlp`` and 0 for tokens that did not choose them, to their visits."""
    sent = given(experts, args, kwargs)

    def change(e: int, tokens: Tensor, z: Tensor) -> Tensor:
        return visits[e](z.new_zeros(sent.hidden.shape[0], width(experts)).index_copy(0, tokens, z))[tokens]

    return changed(experts, sent, output, change, visits)
