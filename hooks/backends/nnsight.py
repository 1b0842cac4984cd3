"""The nnsight backend (0.8): sites are read and edited inside one trace of an ``NNsight`` model.

    load_model(NNsight(model)).run(ids, read=[Site(0, "neuron")])

Sites are visited in the order in which the model reaches them, as nnsight requires; one forward pass shows the order.
Patterns are not the input or output of a module. They come from transformers' attention registry, as in the
transformers backend.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from typing import Any

import nnsight
import torch
from jaxtyping import Int, Shaped
from torch import Tensor
from transformers import Cache, PreTrainedModel

from ...errors import ModelError
from ...interrupts import held
from .. import attention, experts
from ..anatomy import Anatomy
from ..parts import cut, first_tensor, input_device, logits_option, paste
from ..sites import Edit, Reducer, Run, Site
from . import check_logits, names_of, twin
from . import transformers as direct


def plain(envoy: Any) -> PreTrainedModel:
    """The transformers model that nnsight wraps; it still works without nnsight."""
    model = getattr(envoy, "_module", None)
    if not isinstance(model, PreTrainedModel):
        raise ModelError(
            f"backend nnsight: {type(envoy).__name__} around {type(model).__name__}; need a transformers model "
            "with its weights loaded"
        )
    return model


class _InPlace(nnsight.NNsight):
    """Leaves inputs on their device, because the first parameter's device is wrong where weights are offloaded."""

    @property
    def device(self) -> None:
        return None


def open_library(thing: Any, model: PreTrainedModel, anatomy: Anatomy) -> NNsight:
    if not hasattr(thing, "trace"):
        return NNsight(_InPlace(twin(model)), model, anatomy)
    if next(model.parameters()).device.type == "meta":
        raise ModelError(
            f"backend nnsight: {type(model).__name__} with offloaded weights; pass the transformers model with "
            'backend="nnsight" instead of an NNsight object'
        )
    return NNsight(thing, model, anatomy)


class NNsight:
    """A traced model beside the transformers model with the same weights."""

    name = "nnsight"

    def __init__(self, envoy: Any, model: PreTrainedModel, anatomy: Anatomy):
        self.envoy, self.model, self.anatomy = envoy, model, anatomy
        self.path_of = names_of(model)
        self.order = self._order()

    def run(
        self, ids: Int[Tensor, "batch pos"], mask: Shaped[Tensor, "batch _"] | None,
        read: Mapping[Site, Reducer | None], edit: Mapping[Site, Edit], past: Cache | None,
        at: Sequence[int] | None,
    ) -> Run:  # fmt: skip
        """See ``Model.run``; in one trace."""
        given = direct.inputs(self.anatomy, ids, mask, past)
        visits = direct.visits_of((int(ids.shape[0]), int(ids.shape[1])), read, edit)
        taps = {s: direct.tap(self.anatomy.layers[s.layer], s) for s in visits if s.kind != "pattern"}
        every: list[tuple[direct.Tap, Any]] = [(t, visits[s]) for s, t in taps.items() if t.side != "expert"]
        every += [(direct.Tap(m, "expert"), found) for m, found in direct.by_experts(taps, visits).items()]
        todo = [(at, visit, self._at(at)) for at, visit in sorted(every, key=lambda x: self._rank(x[0]))]
        maps = {s: v for s, v in visits.items() if s.kind == "pattern"}
        few = logits_option(self.model, at)
        with held(closed=True), ExitStack() as stack:  # its threads do not survive an interrupt
            if maps:
                callback = direct.pattern_callback(self.envoy._module, self.anatomy, self.path_of, maps)
                stack.enter_context(attention.interpose(self.envoy._module, callback))
            tracer = self.envoy.trace(
                input_ids=given.ids,
                attention_mask=given.mask,
                position_ids=given.positions,
                past_key_values=given.past,
                use_cache=False,
                **few,
            )
            with tracer:
                for tap, visit, module in todo:
                    _visit(tap, visit, module, self.anatomy)
                logits = nnsight.save(self.envoy.output.logits)
        logits = logits if few else direct.logits_at(logits, at)
        check_logits(logits, f"{type(self.model).__name__} in nnsight")
        return Run(logits, direct.kept(visits))

    def _at(self, tap: direct.Tap) -> Any:
        here = self.envoy
        for part in self.path_of[tap.module].split("."):
            here = here[int(part)] if part.isdigit() else getattr(here, part)
        return here

    def _rank(self, tap: direct.Tap) -> int:
        return self.order[self.path_of[tap.module], "out" if tap.side in ("out", "expert") else "in"]

    def _order(self) -> dict[tuple[str, str], int]:
        """When each module starts and ends in a forward pass."""
        order: dict[tuple[str, str], int] = {}

        def note(name: str, side: str) -> Any:
            def hook(*_: Any) -> None:
                order.setdefault((name, side), len(order))

            return hook

        with held(), ExitStack() as stack, torch.no_grad():
            for module, name in self.path_of.items():
                stack.callback(module.register_forward_pre_hook(note(name, "in")).remove)
                stack.callback(module.register_forward_hook(note(name, "out")).remove)
            self.model(input_ids=torch.tensor([[1]], device=input_device(self.model)), use_cache=False)
        return order


def _visit(tap: direct.Tap, visit: Any, module: Any, anatomy: Anatomy) -> None:
    """Inside a trace: pass one site's value to its visit, or those of a module's experts to theirs."""
    if tap.side == "expert":
        args, kwargs = module.inputs
        module.output = experts.visited(tap.module, args, kwargs, module.output, visit)
        return
    if tap.side == "out":
        output = module.output
        y = first_tensor(output)
        assert y is not None
        p = tap.projection
        if p is None:
            module.output = direct.replace_first(output, visit(y))
            return
        heads = anatomy.heads(visit.site.layer)
        x = cut(y, p.layout, p.part, *heads)
        assert x is not None
        module.output = paste(y, visit(x), p.layout, p.part, *heads)
        return
    x = module.input
    if tap.side == "in-place":
        y = visit(x if not x.requires_grad else x.clone())
        if y is not x:
            x.copy_(y)
        return
    module.input = visit(x)
