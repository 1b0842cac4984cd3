"""A second device where there is none: tensors that say that they lie on ``privateuseone:0``, and hold data of the CPU.

    python tests/second_device.py llama gpt2  # what fails or differs where the blocks after the first are on it

Operations on tensors of both devices raise, as they do with two GPUs. Blocks get their inputs from accelerate's own
hooks, as with ``device_map``. The device is known to the whole process, so it is only used in one of its own.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from typing import Any

import torch
from accelerate.hooks import AlignDevicesHook, add_hook_to_module
from tiny_models import tiny
from torch import Tensor, nn
from torch.utils import backend_registration
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_flatten, tree_map

from composcope.hooks import Knockout, Model, Patch, Site, Skip, load_model
from composcope.hooks.edits import residual
from composcope.hooks.interchange import continued, early_exits, interchange
from composcope.hooks.sites import KINDS
from composcope.probes import lookback, min_k, neurons, patching, steering, trajectory

PROMPT, OTHER = [5, 31, 77, 12, 40, 8, 66, 23], [9, 9, 51, 80, 17, 4, 2, 60]
HERE, THERE = torch.device("cpu"), torch.device("privateuseone:0")


class There(Tensor):
    """A tensor on the second device."""

    inner: Tensor
    __torch_function__ = torch._C._disabled_torch_function_impl  # type: ignore[assignment]

    @staticmethod
    def __new__(cls, inner: Tensor) -> Any:
        shape = {"strides": inner.stride(), "storage_offset": inner.storage_offset(), "dtype": inner.dtype}
        made: Any = Tensor._make_wrapper_subclass(cls, inner.size(), device=THERE, **shape)  # type: ignore[attr-defined]
        made.inner = inner
        return made

    def tolist(self) -> Any:
        return self.inner.tolist()

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: tuple = (), kwargs: Any = None) -> Any:
        return done(func, args, kwargs or {})


class Beside(TorchDispatchMode):
    """Inside, tensors can be made on the second device, and brought from one to the other."""

    def __torch_dispatch__(self, func: Any, types: Any, args: tuple = (), kwargs: Any = None) -> Any:
        return done(func, args, kwargs or {})


def bare(x: Any) -> Any:
    return x.inner if isinstance(x, There) else x


def done(func: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
    """One operation, on the device of its tensors or on the one that is asked for."""
    name, wanted = str(func), kwargs.get("device")
    some = [x for x in tree_flatten((args, kwargs))[0] if isinstance(x, Tensor)]
    there = any(isinstance(x, There) for x in some)
    brings = name.startswith(("aten._to_copy.", "aten.copy_."))
    if there and not brings:
        if ".index" in name:  # places may be numbers on the CPU
            some = [args[0], *(x for x in args[2:3] if isinstance(x, Tensor))]
            some += [x for x in args[1] if isinstance(x, There)] if isinstance(args[1], list | tuple) else []
        if any(x.dim() and not isinstance(x, There) for x in some):
            raise RuntimeError(f"tensors on two devices in {name}")
    if wanted is not None:
        there, kwargs = torch.device(wanted) == THERE, {**kwargs, "device": HERE}
    plain = tree_map(bare, args)
    if name.startswith("aten.histc"):
        plain = (plain[0].float(), *plain[1:])  # of whole numbers, as on a GPU
    out = func(*plain, **tree_map(bare, kwargs))
    if name.startswith("aten._to_copy.") and out is plain[0]:
        out = out.clone()
    given = zip(func._schema.arguments, args, strict=False)
    written = next((x for a, x in given if a.alias_info and a.alias_info.is_write), None)
    if written is not None and len(func._schema.returns) == 1:
        return written
    return tree_map(lambda x: There(x) if there and isinstance(x, Tensor) and not isinstance(x, There) else x, out)


def prepared() -> bool:
    """Make the second device known; False where this version of torch cannot."""
    if not hasattr(backend_registration, "_setup_privateuseone_for_python_backend"):
        return False
    backend_registration._setup_privateuseone_for_python_backend("second")

    def strided(size: Any, stride: Any, *, dtype: Any = None, **_: Any) -> Tensor:
        return There(torch.empty_strided(size, stride, dtype=dtype))

    def copied(source: Tensor, target: Tensor, non_blocking: bool = False) -> Tensor:
        bare(target).copy_(bare(source))
        return target

    for operation, how in (("empty_strided", strided), ("_copy_from", copied)):
        torch.library.impl(f"aten::{operation}", "privateuseone")(how)
    return True


def apart(model: Any) -> Any:
    """The model with its blocks after the first, and its final norm, on the second device."""
    decoder = model.get_decoder()
    blocks = next(m for m in decoder.children() if isinstance(m, nn.ModuleList))
    away = [*blocks[1:], [m for m in decoder.children() if next(m.parameters(), None) is not None][-1]]
    for module in (m for part in away for m in part.modules()):
        for kept in (module._parameters, module._buffers):
            for name, x in kept.items():
                if x is not None:
                    moved = There(x.detach().clone())
                    kept[name] = nn.Parameter(moved, requires_grad=False) if kept is module._parameters else moved
    for module in [m for m in (*decoder.children(), *blocks, model.get_output_embeddings()) if m is not blocks]:
        add_hook_to_module(module, AlignDevicesHook(THERE if module in away else HERE))
    return add_hook_to_module(model, AlignDevicesHook(HERE, io_same_device=True))


def measures(lm: Model) -> Iterator[tuple[str, Callable[[Model], Any]]]:
    """What is read, edited and probed; ``lm`` has all on one device."""
    layers = range(lm.anatomy.n_layers)
    expert = 0 if lm.anatomy.n_experts else None
    sites = [Site(i, k, expert if k == "neuron" else None) for i in layers for k in KINDS]  # type: ignore[arg-type]
    parallel = [s for s in sites if s.kind == "resid_mid" and lm.anatomy.layers[s.layer].mid is None]
    sites = [s for s in sites if s not in parallel]
    ids = torch.tensor([PROMPT, OTHER])
    states = lm.run(ids, read=[Site(i, "resid_post") for i in layers]).acts
    rows: list[Any] = [[], [Skip(0, 4), Skip(1, 4)], [Skip(1, 6, head=1)], [Knockout(2, 7, 3)]]
    rows += [[Patch(residual(i), 5, states[Site(i, "resid_post")][1, 5])] for i in layers]
    stop = continued(lm, PROMPT, rows, 3, [])[1][1]
    yield "run", lambda lm: lm.run(ids, read=sites)[:2]
    yield "edit", lambda lm: lm.run(ids, edit={s: lambda x: 1.1 * x for s in sites if s.kind != "pattern"}).logits
    yield "past", lambda lm: lm.run(ids, past=lm.prefill(ids)).logits
    yield "generate", lambda lm: lm.generate([PROMPT, OTHER], 4, stop_ids=lm.generate([PROMPT], 2)[0][1])
    yield "interchange", lambda lm: interchange(lm, PROMPT, rows, [5, 7], tokens=[3, 4]).log_probs
    yield "continued", lambda lm: continued(lm, PROMPT, rows, 3, [stop])
    yield "exits", lambda lm: early_exits(lm, PROMPT, [3, 7])
    yield "neurons", lambda lm: neurons.attribute(lm, PROMPT, [30])
    yield "published neurons", lambda lm: neurons.attribute(lm, PROMPT, [30], rule="reference")
    yield (
        "causal check",
        lambda lm: vars(neurons.causal_check(lm, [PROMPT], [[30]], [[(0, 2), (1, 3), (2, 4)]], draws=2)),
    )
    yield "lookback", lambda lm: lookback.ratios(lm, [PROMPT], [[9, 51]], 2)
    yield "lookback, live", lambda lm: lookback.generate(lm, [PROMPT, OTHER], 3, 2, eos=()).masses[0].context
    yield "patching", lambda lm: dict(patching.prompt_end_sweep(lm, [OTHER], [PROMPT], max_new_tokens=3).tensors)
    yield "heads", lambda lm: dict(patching.head_sweep(lm, [OTHER], [PROMPT], [(3, 4)]).tensors)
    yield "screen", lambda lm: dict(patching.attribution_patching(lm, [OTHER], [PROMPT], [(3, 4)]).tensors)
    yield "steering", lambda lm: steering.direction(lm, [PROMPT], [OTHER], list(layers))
    yield "states", lambda lm: trajectory.prompt_end_states(lm, [PROMPT, OTHER])
    yield "min-k", lambda lm: torch.from_numpy(min_k.score(lm, [PROMPT, OTHER]).min_k_pp)


def same(a: Any, b: Any) -> bool:
    a, b = bare(a), bare(b)
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(same(a[k], b[k]) for k in a)
    if isinstance(a, list | tuple):
        return len(a) == len(b) and all(map(same, a, b))
    return torch.allclose(a.double(), b.double(), atol=1e-5, equal_nan=True) if isinstance(a, Tensor) else a == b


def main(name: str) -> Iterator[str]:
    here = load_model(tiny(name))
    with Beside():
        there = load_model(apart(tiny(name)))
    for what, measure in measures(here):
        wanted = measure(here)
        try:
            with Beside():
                found = measure(there)
        except Exception as e:
            yield f"{what}: {type(e).__name__}: {e}"
        else:
            if not same(wanted, found):
                yield f"{what}: differs"


if __name__ == "__main__":
    if not prepared():
        sys.exit("cannot")
    with torch.no_grad():
        print(*(f"{name}: {said}" for name in sys.argv[1:] for said in main(name)), sep="\n", end="")
