"""The straight path of one layer's neurons from silent to full, as rows of the suffix engine, and scores along it.

    path = Path(layer, nodes, "down")
    logits = step(lm, prefix, grow={3: path.grow}, hooks=path.hooks()).logits
    path.scores(gradient)  # query panel neuron

Scaling the neurons z of layer l at one position by a moves that position's residual stream along a straight line,
``r(a) = r(1) - (1 - a) * W_down z``. So the rows of a layer are points on a line in d_model, and

    score_i = z_i * (W_down^T g)_i,   g = integral over a of dP/dr(a)

gives all its neurons from one vector g (Dai et al. 2022, eq. 4, for the input of the down projection). If a norm
follows the MLP output (Gemma-2, OLMo-2), the line runs after the norm, whose factor is frozen (``after-norm``): scaling
z before the norm puts the whole effect at a = 0. The published code scales before it, and so does the site
``before-norm``.

In mixtures of experts the routing is frozen at the choice of the full activations. The routed part of a block's output
is ``sum over chosen experts e of w_e W_down,e z_e``, and the part that does not come from neurons (biases, shared
experts) stays:

    score_{e,i} = w_e * z_{e,i} * (W_down,e^T g)_i

and 0 for experts that were not chosen. Routers of later layers still choose: where they switch along the path, P jumps
and no gradient shows it; the completeness gap does (``Attributions.unconverged``). Neuron i of expert e has index
``e * d_mlp + i`` within its layer.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, get_args

import torch
from einops import rearrange
from jaxtyping import Float, Int
from torch import Tensor, nn

from ...errors import InputError, ModelError
from ...hooks import experts as inside
from ...hooks import placement
from ...hooks.anatomy import Layer, width_of
from ...hooks.model import Model
from ...hooks.module_hooks import ModuleHook
from ...interrupts import held

PathSite = Literal["down", "pre", "before-norm"]


@dataclass
class Path:
    """One layer's rows, filled during the forward pass."""

    layer: Layer
    nodes: Float[Tensor, "query node"]
    """The rows' places on the path, from 0 to 1"""
    site: PathSite
    seen: dict[str, Float[Tensor, "..."]] = field(default_factory=dict)
    leaf: Float[Tensor, "query node width"] | None = None
    """The gradient is taken with respect to this."""
    joined: Float[Tensor, "query row d_model"] | None = None
    """The residual stream after the block, with this layer's rows last"""
    routed: Routed | None = None

    def __post_init__(self) -> None:
        if self.site not in get_args(PathSite):
            raise InputError(f"site: {self.site!r}; use one of {', '.join(get_args(PathSite))}")

    def hooks(self) -> list[ModuleHook]:
        """Hooks that keep the activations that the path is made of."""
        layer = self.layer
        if self.site == "before-norm" and (layer.down is None or layer.post_norm is None):
            raise ModelError('site "before-norm" needs a norm behind the MLP and no experts; use site "down"')
        out = [ModuleHook(layer.mlp_tail, "out", self._keep("y"))]
        if layer.down is not None:
            out.append(ModuleHook(layer.down, "in", self._keep("z")))
        elif layer.mlp is not None:
            out.append(ModuleHook(layer.mlp, "in", self._keep("x")))
        if layer.mid is not None:
            out.append(ModuleHook(layer.mid, "in", self._keep("mid")))
        if layer.post_norm is not None and self.site == "down":
            _check_norm(layer)
            out += [
                ModuleHook(layer.post_norm, "in", self._keep("a")),
                ModuleHook(layer.post_norm, "out", self._keep("b")),
            ]
        if self.site == "pre":
            out.append(ModuleHook(self._up(), "out", self._keep("u")))
        return out

    def grow(self, x: Float[Tensor, "query row d_model"]) -> Float[Tensor, "query more_rows d_model"]:
        """Append this layer's rows to the residual stream after the block."""
        self.joined = torch.cat([x, self._points(x[:, :1].detach())], 1)
        return self.joined

    def scores(self, gradient: Float[Tensor, "query panel width"]) -> Float[Tensor, "query panel neuron"]:
        """Attribution of every neuron, from integrated gradients."""
        g = gradient
        if self.site != "down":
            return self.seen["u" if self.site == "pre" else "z"] * g
        factor = self.layer.mlp_scale
        if self.routed is not None:
            return expert_scores(self.layer, self.routed, factor * g)
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
        if self.site != "down":
            return self._points_through_mlp(end)
        if self.layer.down is None:
            seen = dict(self.seen)  # the extra call calls the hooks again
            self.routed = route(self.layer, seen["x"][:, 0])
            self.seen = seen
        y = self.layer.mlp_scale * (self.seen["y"] - self._constant())
        leaf = self._origin(end, y) + self.nodes[..., None].to(y.device) * y
        self.leaf = leaf.detach().requires_grad_(torch.is_grad_enabled())
        return self.leaf

    def _origin(self, end: Tensor, y: Tensor) -> Tensor:
        """The start of the path, read where possible: y may be far larger than the stream, too large to subtract."""
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

    def _points_through_mlp(self, end: Tensor) -> Tensor:
        """Rows whose activations are scaled inside the MLP; everything after that is recomputed."""
        full = self.seen["u" if self.site == "pre" else "z"]
        leaf = self.nodes[..., None].to(full.device) * full
        self.leaf = leaf.detach().requires_grad_(torch.is_grad_enabled())
        seen = dict(self.seen)  # the extra calls below call the hooks again
        try:
            y = self._from_activations(end) if self.site == "pre" else self._from_neurons()
        finally:
            self.seen = seen
        start = self.seen["mid"] if "mid" in self.seen else end - self.layer.mlp_scale * self.seen["y"]
        return start + self.layer.mlp_scale * y

    def _from_neurons(self) -> Tensor:
        assert self.layer.down is not None and self.layer.post_norm is not None
        return self.layer.post_norm(self.layer.down(self.leaf))

    def _from_activations(self, end: Tensor) -> Tensor:
        with held(), self._up().register_forward_hook(lambda _m, _a, _o: self.leaf):
            assert self.layer.mlp is not None
            return self.layer.mlp(end.repeat(1, self.nodes.shape[1], 1))

    def _up(self) -> torch.nn.Module:
        if len(self.layer.up) != 1 or self.layer.mlp is None or self.layer.post_norm is not None:
            raise ModelError('site "pre" needs an MLP with one projection before its activation; use site "down"')
        return self.layer.up[0]


def gradients(
    of: Float[Tensor, "*shape"],
    at: Sequence[Float[Tensor, "..."] | None],
    weight: Float[Tensor, "*shape"] | None = None,
) -> Sequence[Float[Tensor, "..."]]:
    """``torch.autograd.grad``; ``ModelError`` if a kernel in between has no derivative."""
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
    """``ModelError`` for norms that subtract a mean: the frozen factor is right only for norms that rescale (RMS)."""
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
    """Whether the MLP multiplies two projections; scaling one of them then scales the neuron."""
    if len(layer.up) != 1 or layer.down is None:
        return True
    into = next((getattr(layer.down, n) for n in ("in_features", "nx", "infeatures") if hasattr(layer.down, n)), None)
    return width_of(layer.up[0]) != into


class Routed(NamedTuple):
    """The experts chosen at one position of every query."""

    index: Int[Tensor, "query k"]
    weight: Float[Tensor, "query k"]
    """Routing weights, times the block's factor on the experts' output"""
    z: Float[Tensor, "query k neuron"]
    output: Float[Tensor, "query d_model"]
    """The routed sum without biases"""


def by_expert(lm: Model, scores: Float[Tensor, "*more layer all"]) -> Float[Tensor, "*more layer expert neuron"]:
    """Scores by expert; one expert where the MLPs are dense.

    Where some layers are dense and others are not, only the layers with experts are meaningful.
    """
    n, width = lm.anatomy.n_experts or 1, lm.anatomy.d_mlp
    return rearrange(scores[..., : n * width], "... (expert neuron) -> ... expert neuron", expert=n)


@torch.no_grad()
def route(layer: Layer, x: Float[Tensor, "query d_model"]) -> Routed:
    """Activations of the chosen experts for inputs of the block's MLP."""
    experts, mlp = _experts(layer), layer.mlp
    assert mlp is not None
    with_experts, calls = _through(mlp, experts, x, silent=False)
    without, _ = _through(mlp, experts, x, silent=True)
    if len(calls) != 1:
        raise ModelError(f"{type(experts).__name__} ran {len(calls)} times for one MLP; attribution needs one call")
    sent, output = calls[0]
    factor = _factor(experts, with_experts - without, output.reshape(with_experts.shape))
    n, k = sent.index.shape
    z = sent.hidden.new_zeros(n, k, inside.width(experts))
    parts = sent.hidden.new_zeros(n, k, x.shape[-1])
    with placement.loaded(experts):
        inside.check(experts, sent, output)
        for e in sent.index.unique().tolist():
            rows, slots = torch.where(sent.index == e)
            z[rows, slots] = inside.activations(experts, e, sent.hidden[rows]).to(z.dtype)
            parts[rows, slots] = z[rows, slots] @ inside.down(experts, e).T
    weight = factor * sent.weight
    return Routed(sent.index, weight, z, (parts * weight[..., None]).sum(1).to(x.dtype))


def _through(
    mlp: nn.Module, experts: nn.Module, x: Tensor, silent: bool
) -> tuple[Tensor, list[tuple[inside.Dispatch, Tensor]]]:
    """The MLP's output, ``query d_model``, with its experts unchanged or at zero; and their calls."""
    calls: list[tuple[inside.Dispatch, Tensor]] = []

    def record(module: nn.Module, args: tuple, kwargs: dict[str, Any], output: Tensor) -> Tensor | None:
        calls.append((inside.given(module, args, kwargs), output))
        return torch.zeros_like(output) if silent else None

    with held(), experts.register_forward_hook(record, with_kwargs=True):
        y = mlp(x[:, None])
    return (y[0] if isinstance(y, tuple) else y).reshape(x.shape), calls


def _factor(experts: nn.Module, effect: Tensor, output: Tensor) -> float:
    """The factor on the experts' output before it joins the residual stream; ``ModelError`` for other maps."""
    a, b = output.flatten().double(), effect.flatten().double()
    factor = float((a @ b) / (a @ a).clamp_min(1e-300))
    limit = 1e-3 if effect.dtype in (torch.float32, torch.float64) else 5e-2
    if not float((b - factor * a).norm()) <= limit * float(b.norm().clamp_min(1e-30)):
        raise ModelError(
            f"{type(experts).__name__}: its output does not enter the residual stream as it is, up to a factor; "
            "attribution to experts is not available here"
        )
    return 1.0 if abs(factor - 1) < 1e-2 else factor


def expert_scores(
    layer: Layer, routed: Routed, gradient: Float[Tensor, "query panel d_model"]
) -> Float[Tensor, "query panel neuron"]:
    """Attribution of every expert's neurons, from integrated gradients."""
    experts = _experts(layer)
    n, panels, width = len(routed.index), gradient.shape[1], routed.z.shape[-1]
    out = gradient.new_zeros(n, panels, inside.count(experts), width)
    with placement.loaded(experts):
        _fill(out, experts, routed, gradient)
    return rearrange(out, "query panel expert neuron -> query panel (expert neuron)")


def _fill(out: Tensor, experts: Any, routed: Routed, gradient: Tensor) -> None:
    for e in routed.index.unique().tolist():
        rows, slots = torch.where(routed.index == e)
        back = gradient[rows] @ inside.down(experts, e).detach().to(gradient.dtype)
        out[rows, :, e] = (routed.weight[rows, slots, None] * routed.z[rows, slots])[:, None].to(out.dtype) * back


def _experts(layer: Layer) -> Any:
    if layer.mlp is None or layer.mlp_tail is not layer.mlp:
        raise ModelError(
            f"{type(layer.block).__name__}: a norm stands between its experts and the residual stream; attribution to "
            "experts is not available here"
        )
    return inside.required(layer.experts)
