"""The straight path of one layer's neurons from silent to full, as rows of the suffix engine, and scores along it.

Scaling the neurons z of layer l at one position by a moves that position's residual stream along a straight line,
``r(a) = r(1) - (1 - a) * W_down z``. So the rows of a layer are points on a line in d_model, and

    score_i = z_i * (W_down^T g)_i,   g = integral over a of dP/dr(a)

gives all its neurons from one vector g (Dai et al. 2022, eq. 4, for the input of the down projection). Behind a norm
of the MLP output (Gemma-2, OLMo-2) the line runs after the norm, whose factor is frozen: scaling z before it would put
the whole effect at a = 0.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal, get_args

import torch
from torch import Tensor

from ...errors import InputError, ModelError
from ...hooks import placement
from ...hooks.anatomy import Layer, width_of
from ...hooks.module_hooks import ModuleHook
from ...interrupts import held
from . import experts

PathSite = Literal["down", "pre"]


@dataclass
class Path:
    """One layer's rows. Filled as the forward pass goes by."""

    layer: Layer
    nodes: Tensor
    """query node: where on the path the rows lie"""
    site: PathSite
    seen: dict[str, Tensor] = field(default_factory=dict)
    leaf: Tensor | None = None
    """query node width: what the gradient is taken of"""
    joined: Tensor | None = None
    """query row d_model: the residual stream after the block, this layer's rows last"""
    routed: experts.Routed | None = None

    def __post_init__(self) -> None:
        if self.site not in get_args(PathSite):
            raise InputError(f"site: {self.site!r}; use one of {', '.join(get_args(PathSite))}")

    def hooks(self) -> list[ModuleHook]:
        layer = self.layer
        out = [ModuleHook(layer.mlp_tail, "out", self._keep("y"))]
        if layer.down is not None:
            out.append(ModuleHook(layer.down, "in", self._keep("z")))
        elif layer.mlp is not None:
            out.append(ModuleHook(layer.mlp, "in", self._keep("x")))
        if layer.mid is not None:
            out.append(ModuleHook(layer.mid, "in", self._keep("mid")))
        if layer.post_norm is not None:
            _check_norm(layer)
            out += [
                ModuleHook(layer.post_norm, "in", self._keep("a")),
                ModuleHook(layer.post_norm, "out", self._keep("b")),
            ]
        if self.site == "pre":
            out.append(ModuleHook(self._up(), "out", self._keep("u")))
        return out

    def grow(self, x: Tensor) -> Tensor:
        """Append this layer's rows to the residual stream after the block: query row d_model."""
        self.joined = torch.cat([x, self._points(x[:, :1].detach())], 1)
        return self.joined

    def scores(self, gradient: Tensor) -> Tensor:
        """Attribution of every neuron, ``query panel neuron``, from integrated gradients ``query panel width``."""
        g = gradient
        if self.site == "pre":
            return self.seen["u"] * g
        factor = self.layer.mlp_scale
        if self.routed is not None:
            return experts.scores(self.layer, self.routed, factor * g)
        if self.layer.post_norm is not None:
            before, after = self.seen["a"], self.seen["b"]
            g = g * torch.where(before == 0, 0, after / before)
        with torch.enable_grad():
            z = self.seen["z"].repeat(1, g.shape[1], 1).requires_grad_()
            assert self.layer.down is not None
            (back,) = gradients(self.layer.down(z), [z], factor * g)
        return self.seen["z"] * back

    def _keep(self, name: str) -> Callable[[Tensor], None]:
        def keep(x: Tensor) -> None:
            self.seen[name] = x[:, :1].detach()

        return keep

    def _points(self, end: Tensor) -> Tensor:
        if self.site == "pre":
            return self._points_before_activation(end)
        if self.layer.down is None:
            seen = dict(self.seen)  # the extra call calls the hooks again
            self.routed = experts.route(self.layer, seen["x"][:, 0])
            self.seen = seen
        y = self.layer.mlp_scale * (self.seen["y"] - self._constant())
        leaf = self._origin(end, y) + self.nodes[..., None].to(y.device) * y
        self.leaf = leaf.detach().requires_grad_(torch.is_grad_enabled())
        return self.leaf

    def _origin(self, end: Tensor, y: Tensor) -> Tensor:
        """Where the path starts. Not by subtraction where it can be read: y may be far larger than the stream."""
        if "mid" not in self.seen:
            return end - y
        return self.seen["mid"] + self.layer.mlp_scale * self._constant()

    def _constant(self) -> Tensor | float:
        """The part of the MLP output that does not come from its neurons: biases, and shared experts."""
        if self.routed is not None:
            return self.seen["y"] - self.routed.output[:, None]
        if self.layer.down is None or self.layer.post_norm is not None:
            return 0.0
        with placement.loaded(self.layer.down):
            bias = getattr(self.layer.down, "bias", None)
            bias = bias() if callable(bias) and not isinstance(bias, Tensor) else bias  # quantized modules of torch
            return bias.detach() if isinstance(bias, Tensor) else 0.0

    def _points_before_activation(self, end: Tensor) -> Tensor:
        leaf = self.nodes[..., None] * self.seen["u"]
        self.leaf = leaf.detach().requires_grad_(torch.is_grad_enabled())
        seen = dict(self.seen)  # the extra call below calls the hooks again
        with held():
            put = self._up().register_forward_hook(lambda _m, _a, _o: self.leaf)
            try:
                assert self.layer.mlp is not None
                y = self.layer.mlp(end.repeat(1, self.nodes.shape[1], 1))
            finally:
                put.remove()
                self.seen = seen
        start = self.seen["mid"] if "mid" in self.seen else end - self.layer.mlp_scale * self.seen["y"]
        return start + self.layer.mlp_scale * y

    def _up(self) -> torch.nn.Module:
        if len(self.layer.up) != 1 or self.layer.mlp is None or self.layer.post_norm is not None:
            raise ModelError('site "pre" needs an MLP with one projection before its activation; use site "down"')
        return self.layer.up[0]


def gradients(of: Tensor, at: Sequence[Tensor | None], weight: Tensor | None = None) -> Sequence[Tensor]:
    """``torch.autograd.grad``; ``ModelError`` where a kernel on the way has no derivative."""
    try:
        return torch.autograd.grad(of, [x for x in at if x is not None], weight)
    except RuntimeError as e:
        if not re.search(r"does not require grad|not have been used|not implemented|derivative", str(e)):
            raise
        raise ModelError(
            "no gradient reaches the neurons: a module of the model has none (a quantized kernel, or no_grad inside "
            f"its forward); attribution needs a model with gradients ({' '.join(str(e).split())[:100]})"
        ) from e


def _check_norm(layer: Layer) -> None:
    """The frozen factor is right for norms that only rescale (RMS norms), not for those that subtract a mean."""
    assert layer.post_norm is not None
    weight = next(iter(layer.post_norm.parameters()), None)
    if weight is None:
        return
    where = placement.device_of(layer.post_norm, weight)
    ones = torch.ones(1, 1, weight.shape[-1], device=where, dtype=weight.dtype)
    plus, minus = layer.post_norm(ones), layer.post_norm(-ones)
    if not torch.equal(plus, -minus) or float(plus.abs().max()) < 1e-3:
        raise ModelError(
            f"{type(layer.post_norm).__name__} after the MLP is not an RMS norm; attribution is not defined"
        )


def gated(layer: Layer) -> bool:
    """Whether the MLP multiplies two projections; then scaling one of them is scaling the neuron."""
    if len(layer.up) != 1 or layer.down is None:
        return True
    into = next((getattr(layer.down, n) for n in ("in_features", "nx", "infeatures") if hasattr(layer.down, n)), None)
    return width_of(layer.up[0]) != into
