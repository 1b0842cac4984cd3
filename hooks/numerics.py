"""Things around a model that silently change its numbers: refused if they must be a mistake, and otherwise recorded.

    model, notes = unwrapped(torch.compile(model))

Training mode, autocast and missing masks are refused. Hooks of other programs are listed. Wrappers of ``torch.compile``
and PEFT are opened: the model inside has the same weights.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from typing import Any
from weakref import WeakKeyDictionary

import torch
from jaxtyping import Int, Shaped
from torch import Tensor, nn
from transformers import Cache, PreTrainedModel

from ..errors import ModelError
from .anatomy import Anatomy
from .backends.transformers import run
from .length_limits import keep_rotary_angles
from .parts import check_eval, close_to, embedding_of, input_device

_LIBRARIES = ("accelerate", "bitsandbytes", "nnsight", "peft", "torch", "transformer_lens", "transformers")
_OWN = __name__.partition(".")[0]
_HARMLESS: WeakKeyDictionary[nn.Module, dict[int, bool]] = WeakKeyDictionary()
"""By model and number of tokens before padding: whether such padding was found to leave its numbers unchanged."""


def check_ready(model: PreTrainedModel) -> None:
    """``ModelError`` in training mode, inside ``torch.autocast``, with compiled parts, and without named outputs."""
    check_eval(model)
    name = type(model).__name__
    for path, module in model.named_modules():
        if _is_compiled(module):
            raise ModelError(
                f"{name}{path and f': {path}'} is compiled in place, and compiled code does not call hooks; give "
                "the model as it was loaded, or torch.compile(model), which is opened as the model inside"
            )
    device = next(model.parameters()).device.type
    if device != "meta" and torch.is_autocast_enabled(device):
        raise ModelError(
            f"{name}: torch.autocast is on ({torch.get_autocast_dtype(device)} on {device}) and changes the precision "
            "of what is read; leave its block, or load the model in that dtype"
        )
    if getattr(model.config, "return_dict", True) is False:
        raise ModelError(f"{name}: config.return_dict is False, so that outputs have no names; set it to True")


def _is_compiled(module: nn.Module) -> bool:
    """Whether calling it runs code of ``torch.compile``."""
    own = vars(module)
    forward = own.get("forward")  # torch.compiler.disable marks what it wraps, too
    replaced = hasattr(forward, "_torchdynamo_orig_callable") and not hasattr(forward, "_torchdynamo_disable")
    return replaced or own.get("_compiled_call_impl") is not None or "_orig_mod" in own["_modules"]


def check_made(mask: Any, past: Any = None) -> None:
    """``ModelError`` for a mask or earlier tokens of another kind, such as a list."""
    for what, value, kind, maker in (("mask", mask, Tensor, "pad"), ("past", past, Cache, "prefill")):
        if value is not None and not isinstance(value, kind):
            raise ModelError(f"{what} of type {type(value).__name__}; give what {maker} returns")


def check_unmasked(ids: Int[Tensor, "batch pos"], tokenizer: Any) -> None:
    """``ModelError`` for rows that begin with padding where no mask is given: it would be read as text.

    A single pad token in front is allowed if the tokenizer also begins or ends texts with it.
    """
    padding = getattr(tokenizer, "pad_token_id", None)
    if not isinstance(padding, int):
        return
    ends = (getattr(tokenizer, "bos_token_id", None), getattr(tokenizer, "eos_token_id", None))
    leading = (ids == padding).long().cumprod(1).sum(1)
    row = int(leading.argmax())
    if int(leading[row]) > (padding in ends):
        raise ModelError(
            f"row {row} begins with {int(leading[row])} pad tokens ({padding}) and no mask is given, so that they "
            "would be read as text; give the mask (ones where they are meant), or pad on the right"
        )


def check_left(model: PreTrainedModel, anatomy: Anatomy, mask: Shaped[Tensor, "batch pos"] | None) -> None:
    """``ModelError`` for a mask with padding before a token, where that changes the token's results."""
    if mask is None:
        return
    real = mask.bool()
    begins = real[:, 1:] & ~real[:, :-1]
    among = bool((begins.sum(1) + real[:, 0] > 1).any())  # some tokens, padding, and more tokens
    for before, there in ((0, bool(begins.any())), (1, among)):
        known = _HARMLESS.setdefault(model, {})
        if there and before not in known:
            known[before] = _harmless(model, anatomy, before)
        if there and not known[before]:
            where = "between tokens" if before else "on the left"
            raise ModelError(
                f"{type(model).__name__}: padding {where} changes what it computes (it counts positions itself), and "
                "so does padding between earlier tokens and new ones; give whole texts, and pad on the right"
            )


@torch.no_grad()
def _harmless(model: PreTrainedModel, anatomy: Anatomy, before: int) -> bool:
    """Whether two places of padding after the first ``before`` of three tokens leave their logits unchanged."""
    vocab = embedding_of(model).shape[0]  # its first tokens may be padding, whose embedding is zero
    ids = (torch.tensor([[vocab, 2 * vocab, 3 * vocab]]) // 4).to(input_device(model))
    places = [*range(before), *range(before + 2, 5)]
    padded, mask = ids.new_zeros(1, 5), ids.new_zeros(1, 5)
    padded[:, places], mask[:, places] = ids, 1
    with keep_rotary_angles(model):
        plain = run(model, anatomy, ids, None, {}, {}, None).logits
        other = run(model, anatomy, padded, mask, {}, {}, None).logits[:, places]
    return close_to(other, plain)


OWN_IDS = "give the texts, or each prompt's own ids in a list"


def check_ends(rows: Sequence[Sequence[int]], tokenizer: Any, instead: str = OWN_IDS) -> None:
    """``ModelError`` for prompts that end with padding, which would be continued as text; see ``check_unmasked``."""
    padding = getattr(tokenizer, "pad_token_id", None)
    ends = (getattr(tokenizer, "bos_token_id", None), getattr(tokenizer, "eos_token_id", None))
    for i, row in enumerate(rows if isinstance(padding, int) else ()):
        n = next((k for k, token in enumerate(reversed(row)) if token != padding), len(row))
        if n > (padding in ends):
            raise ModelError(
                f"prompt {i} ends with {n} pad tokens ({padding}), which would be continued as text; {instead}"
            )


def foreign_hooks(model: nn.Module) -> tuple[str, ...]:
    """The hooks of others on a model's modules, each as ``module: what (function of module)``.

    They act on every number, and some only watch. Those of this package and of the libraries beneath are left out.
    Hooks on all modules of the process count, and so does a function that replaces a module's ``forward``.
    """
    return tuple(
        f"{name}: {kind} {_named(hook)}"
        for name, kind, hook in _hooks_in(model)
        if _home(hook).partition(".")[0] not in (*_LIBRARIES, _OWN)
    )


def _hooks_in(model: nn.Module) -> Iterator[tuple[str, str, Any]]:
    for kind in ("forward", "forward_pre", "backward", "backward_pre"):
        for hook in getattr(nn.modules.module, f"_global_{kind}_hooks").values():
            yield "every module", f"{kind.replace('_', '-')} hook", hook
    for path, module in model.named_modules():
        name = path or type(model).__name__
        for kind in ("forward", "forward_pre", "backward", "backward_pre"):
            for hook in getattr(module, f"_{kind}_hooks").values():
                yield name, f"{kind.replace('_', '-')} hook", hook
        if (replaced := vars(module).get("forward")) is not None:
            yield name, "forward is", replaced


def _home(hook: Any) -> str:
    hook = hook.func if isinstance(hook, functools.partial) else hook
    return getattr(hook, "__module__", None) or type(hook).__module__


def _named(hook: Any) -> str:
    hook = hook.func if isinstance(hook, functools.partial) else hook
    return f"{getattr(hook, '__qualname__', type(hook).__qualname__)} of {_home(hook)}"


def numerics(model: Any) -> dict[str, Any]:
    """The settings that a loaded model's last digits depend on; every manifest records them."""
    parameter, hooks = next(model.parameters()), foreign_hooks(model)
    return {
        "dtype": str(parameter.dtype).removeprefix("torch."),
        "device": str(parameter.device),
        "device_name": torch.cuda.get_device_name(parameter.device) if parameter.is_cuda else "cpu",
        "tf32": torch.backends.cuda.matmul.allow_tf32,
        "attention": getattr(model.config, "_attn_implementation", None),
        "threads": torch.get_num_threads(),
        **({"hooks": list(hooks)} if hooks else {}),
    }


def unwrapped(thing: Any) -> tuple[Any, tuple[str, ...]]:
    """The model inside wrappers, and a sentence about each wrapper; other objects are returned unchanged.

    Adapters stay active: PEFT puts them into the model's own modules. Raises ``ModelError`` for those that it does not
    (prompt and prefix tuning), since the model inside would answer without them.
    """
    notes: list[str] = []
    while True:
        name = type(thing).__name__
        if (inner := getattr(thing, "_orig_mod", None)) is not None:
            notes.append(f"{name}: the model inside is opened; compiled code does not call hooks")
        elif type(thing).__module__.startswith("peft.") and hasattr(thing, "get_base_model"):
            inner = _with_adapters(thing, name)
            notes.append(f"{name}: the model inside is opened, with its adapter {thing.active_adapter!r} active")
        else:
            return thing, tuple(notes)
        thing = inner


def _with_adapters(thing: Any, name: str) -> Any:
    if getattr(thing.active_peft_config, "is_prompt_learning", False):
        kind = thing.active_peft_config.peft_type
        raise ModelError(
            f"{name} with {getattr(kind, 'value', kind)}: its virtual tokens are not part of the model inside, so it "
            "cannot be opened; adapters such as LoRA can"
        )
    return thing.get_base_model()
