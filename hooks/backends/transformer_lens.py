"""The TransformerLens backend (4.x): sites are read and edited at a TransformerBridge's hook points.

    load_model(bridge).run(ids, read=[Site(0, "pattern")])

A bridge replaces a model's modules by its own components, each with a hook point on either side. A site is found by
the path of its module in the transformers model. Before a site is first used it is compared with that model: a hook
point that holds something else, or whose edits have another effect, is an error.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from typing import Any, NamedTuple

import torch
from einops import rearrange
from jaxtyping import Int, Shaped
from torch import Tensor, nn
from transformer_lens.model_bridge import TransformerBridge
from transformer_lens.model_bridge.sources._bridge_builder import build_bridge_from_module
from transformers import Cache, PreTrainedModel

from ...devices import is_out_of_memory
from ...errors import ModelError
from ...interrupts import held
from .. import attention
from ..anatomy import Anatomy
from ..parts import close_to, cut, embedding_of, input_device, paste
from ..sites import Edit, Reducer, Run, Site
from . import check_logits, names_of, twin
from . import transformers as direct


class Point(NamedTuple):
    """A hook point by name, and the part of its value that is the site."""

    name: str
    at: direct.Tap | None
    """``None``: the value is the site itself"""


def plain(bridge: TransformerBridge) -> PreTrainedModel:
    """The transformers model that a bridge rewrote, rebuilt around the bridge's weights (shared, not copied)."""
    rewritten: Any = bridge.original_model
    if not isinstance(rewritten, PreTrainedModel):
        raise ModelError(f"backend transformer_lens: a bridge around {type(rewritten).__name__}, need transformers")
    with torch.device("meta"):
        model = type(rewritten)._from_config(
            rewritten.config, dtype=next(rewritten.parameters()).dtype, attn_implementation="sdpa"
        )
    model = model.train(bridge.training)
    for path, module in model.named_modules():
        source = _unwrapped(rewritten, path)
        for own in (module._parameters, module._buffers):
            for name, old in own.items():
                new = getattr(source, name, None)
                if old is not None and (not isinstance(new, Tensor) or new.shape != old.shape):
                    raise ModelError(
                        f"backend transformer_lens: no weight {path}.{name} under the bridge; "
                        'hand over the transformers model with backend="transformer_lens"'
                    )
                own[name] = new if old is not None else None  # type: ignore[assignment]
    model.generation_config = rewritten.generation_config
    return model


def _unwrapped(model: nn.Module, path: str) -> nn.Module:
    """The transformers module at a path, under the components that the bridge put around it and its parents."""
    here: Any = model
    for part in path.split(".") if path else ():
        here = here[int(part)] if part.isdigit() else getattr(here, part)
        while getattr(here, "original_component", None) is not None:
            here = here.original_component
    return here


def open_library(thing: Any, model: PreTrainedModel, anatomy: Anatomy) -> TransformerLens:
    if isinstance(thing, TransformerBridge):
        return TransformerLens(thing, model, anatomy)
    copy = twin(model)
    try:
        bridge = build_bridge_from_module(copy, type(model).__name__, hf_config=copy.config)
    except (ValueError, KeyError, AttributeError, RuntimeError, NotImplementedError) as e:
        text = " ".join(str(e).split())[:200]
        raise ModelError(f"backend transformer_lens: no bridge for {type(model).__name__}: {text}") from e
    return TransformerLens(bridge.eval(), model, anatomy)


class TransformerLens:
    """One bridge beside the transformers model with the same weights."""

    name = "transformer_lens"

    def __init__(self, bridge: Any, model: PreTrainedModel, anatomy: Anatomy):
        self.bridge, self.model, self.anatomy = bridge, model, anatomy
        self.path_of = names_of(model)
        self.point_of = {id(point): name for name, point in bridge.hook_dict.items()}
        self.verified: set[tuple[Site, bool]] = set()
        with torch.no_grad():
            ids = self._probe()
            if not close_to(self._try(ids), self._direct(ids, {}, {}).logits):
                raise ModelError(
                    "backend transformer_lens: the bridge's logits are not those of its weights in transformers "
                    "(folded or centered weights?); hand over a bridge without weight processing"
                )

    def run(
        self, ids: Int[Tensor, "batch pos"], mask: Shaped[Tensor, "batch _"] | None,
        read: Mapping[Site, Reducer | None], edit: Mapping[Site, Edit], past: Cache | None,
        at: Sequence[int] | None,
    ) -> Run:  # fmt: skip
        """See ``Model.run``; through the bridge, which computes all logits and whole patterns."""
        for site in {**edit, **read}:
            self._verify(site._replace(query=None), site in edit)
        run = self._run(ids, mask, read, edit, past)
        return run._replace(logits=direct.logits_at(run.logits, at))

    def _try(self, ids: Tensor) -> Tensor:
        try:
            return self._run(ids, None, {}, {}, None).logits
        except (RuntimeError, ValueError, TypeError, AttributeError, KeyError, IndexError, NotImplementedError) as e:
            if is_out_of_memory(e):
                raise
            text = " ".join(str(e).split())[:200]
            raise ModelError(
                f"backend transformer_lens: the bridge of {type(self.model).__name__} does not run: {text}; use "
                '"transformers"'
            ) from e

    def _run(
        self, ids: Int[Tensor, "batch pos"], mask: Shaped[Tensor, "batch _"] | None,
        read: Mapping[Site, Reducer | None], edit: Mapping[Site, Edit], past: Cache | None,
    ) -> Run:  # fmt: skip
        given = direct.inputs(self.anatomy, ids, mask, past)
        visits = direct.visits_of((int(ids.shape[0]), int(ids.shape[1])), read, edit)
        inside = {s: direct.tap(self.anatomy.layers[s.layer], s) for s in visits if s.expert is not None}
        points = {s: self._point(s) for s in visits if s not in inside}
        whole_first = sorted(points.items(), key=lambda item: item[0].query is not None)
        hooks = [(p.name, self._hook(p.at, visits[s])) for s, p in whole_first]
        with held(), self.bridge.hooks(fwd_hooks=hooks), ExitStack() as stack:
            for holder, of_experts in direct.by_experts(inside, visits).items():
                # A bridge has no hook points inside experts, but runs the module.
                module = _unwrapped(self.bridge.original_model, self.path_of[holder])
                stack.callback(direct.install_experts(module, of_experts).remove)
            logits = self.bridge(
                given.ids, attention_mask=given.mask, past_key_values=given.past, position_ids=given.positions
            )
        check_logits(logits, f"{type(self.model).__name__} in a TransformerBridge")
        return Run(logits, direct.kept(visits))

    def _hook(self, at: direct.Tap | None, visit: direct.Visit) -> Callable[..., Tensor | None]:
        heads = self.anatomy.heads(visit.site.layer)

        def hook(x: Tensor, hook: Any) -> Tensor | None:
            if visit.site.query is not None:
                return attention.edit_rows(x, {visit.site.query: visit})
            if at is not None and at.side == "in-place":
                y = visit(x if not x.requires_grad else x.clone())
                if y is not x:
                    x.copy_(y)
                return None
            if at is not None and at.projection is not None:
                p = at.projection
                if x.dim() == 4 and getattr(hook, "pos_dim", None) == 2:  # norms of queries and keys
                    p = replace(p, layout="heads_first")
                part = cut(x, p.layout, p.part, *heads)
                if part is None:
                    raise ModelError(f"backend transformer_lens: {visit.site}: a hook point of shape {tuple(x.shape)}")
                return paste(x, visit(part), p.layout, p.part, *heads)
            if at is not None and x.dim() == 4:
                return visit(rearrange(x, "batch pos head d -> batch pos (head d)")).view(x.shape)
            return visit(x)

        return hook

    def _point(self, site: Site) -> Point:
        layer = self.anatomy.layers[site.layer]
        if site.kind == "pattern":
            return Point(self._name(self._component(layer.attn, site), "hook_pattern", site), None)
        at = direct.tap(layer, site)
        if at.projection is not None and at.projection.layout in ("concat", "grouped"):
            alone = at._replace(projection=replace(at.projection, layout="alone"))
            return Point(self._name(self._inside(layer.attn, site.kind, site), "hook_out", site), alone)
        component = self._inside(layer.attn, "o", site) if site.kind == "head" else self._component(at.module, site)
        if not hasattr(component, "hook_out") and site.kind in ("attn_out", "mlp_out"):
            # A dropout that the bridge does not replace; its input is its output.
            inner = layer.attn if site.kind == "attn_out" else layer.mlp
            component = component if inner is None else self._component(inner, site)
        return Point(self._name(component, "hook_out" if at.side == "out" else "hook_in", site), at)

    def _component(self, module: nn.Module, site: Site) -> nn.Module:
        here: Any = self.bridge.original_model
        try:
            for part in self.path_of[module].split("."):
                here = here[int(part)] if part.isdigit() else getattr(here, part)
        except (AttributeError, IndexError, KeyError) as e:
            raise self._missing(site) from e
        return here

    def _inside(self, attn: nn.Module, name: str, site: Site) -> nn.Module:
        """A part of the bridge's attention by its TransformerLens name; fused projections are split there."""
        part = getattr(self._component(attn, site), name, None)
        if part is None:
            raise self._missing(site)
        return part

    def _name(self, component: Any, side: str, site: Site) -> str:
        point = getattr(component, side, None)
        if id(point) not in self.point_of:
            raise self._missing(site)
        return self.point_of[id(point)]

    def _missing(self, site: Site, why: str = "the bridge has no hook point there") -> ModelError:
        return ModelError(f'backend transformer_lens, {type(self.model).__name__}: {site}: {why}; use "transformers"')

    def _probe(self) -> Tensor:
        table = embedding_of(self.model)
        vocab = int(table.shape[0])
        return torch.tensor([[vocab // 2, vocab // 3, vocab // 5]], device=input_device(self.model))

    def _direct(self, ids: Tensor, read: Mapping[Site, None], edit: Mapping[Site, Edit]) -> Run:
        return direct.run(self.model, self.anatomy, ids, None, read, edit, None)

    @torch.no_grad()
    def _verify(self, site: Site, edited: bool) -> None:
        """Check once per site that it means the same as in the transformers backend."""
        if (site, edited) in self.verified:
            return
        ids = self._probe()
        edit: dict[Site, Edit] = {site: _nudge} if edited else {}
        mine, expected = self._run(ids, None, {site: None}, edit, None), self._direct(ids, {site: None}, edit)
        if not close_to(mine.acts[site], expected.acts[site]):
            raise self._missing(site, "the bridge's hook point holds something else")
        if not close_to(mine.logits, expected.logits):
            raise self._missing(site, "an edit at the bridge's hook point has another effect")
        self.verified.add((site, edited))


def _nudge(x: Tensor) -> Tensor:
    """A change that differs by element, so that a permuted or partial write is noticed."""
    return x * (1 + 0.2 * torch.sin(torch.arange(x.numel(), device=x.device, dtype=torch.float32)).to(x).view(x.shape))
