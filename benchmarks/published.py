"""The same quantities the slow ways: literally as defined (``naive_*``), and by the published algorithms.

Restated once, in our own words, from the papers and from what their code does; frozen, so that measured ratios keep
their meaning. Nothing here uses composcope's engines. Token ids come in as lists, model and modules as they are; all
models are Llamas, whose modules are addressed by name.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

import torch
from torch import Tensor, nn

Ids = Sequence[int]


@contextmanager
def hook(module: nn.Module, fn: Callable[..., Any], before: bool = False) -> Iterator[None]:
    """A forward hook for the length of a block."""
    handle = module.register_forward_pre_hook(fn) if before else module.register_forward_hook(fn)
    try:
        yield
    finally:
        handle.remove()


@contextmanager
def eager(model: Any) -> Iterator[None]:
    """Eager attention for the length of a block: the only one that returns its maps."""
    before = model.config._attn_implementation
    model.set_attn_implementation("eager")
    try:
        yield
    finally:
        model.set_attn_implementation(before)


def _ids(model: Any, ids: Ids, rows: int = 1) -> Tensor:
    return torch.tensor([list(ids)] * rows, device=model.device)


# Neuron attribution: integrated gradients of P(target) over the MLP neurons at the last prompt position.


def naive_attribution(model: Any, prompt: Ids, target: int, layers: Sequence[int], nodes: int) -> Tensor:
    """``layer neuron``: z * mean over ``nodes`` equidistant points of dP/dz, z what goes into the down projection.

    One forward and one backward of the whole prompt per layer and point.
    """
    ids, rows = _ids(model, prompt), []
    for layer in layers:
        down = model.model.layers[layer].mlp.down_proj
        seen: list[Tensor] = []
        with torch.no_grad(), hook(down, lambda _m, args, seen=seen: seen.append(args[0][0, -1].clone()), before=True):
            model(ids)
        z, total = seen[0], torch.zeros_like(seen[0])
        for k in range(nodes):
            leaf = (z * (k / (nodes - 1))).requires_grad_()

            def put(_m: nn.Module, args: tuple, leaf: Tensor = leaf) -> tuple:
                x = args[0].clone()
                x[0, -1] = leaf
                return (x,)

            with hook(down, put, before=True):
                p = model(ids).logits[0, -1].float().softmax(-1)[target]
            total += torch.autograd.grad(p, leaf)[0]
        rows.append(z * total / nodes)
    return torch.stack(rows)


def published_attribution(
    model: Any, prompt: Ids, target: int, nodes: int, batch: int = 20, layers: Sequence[int] | None = None
) -> Tensor:
    """``layer neuron`` (all layers by default), by QRNCA's algorithm (Chen et al. 2024; derived from Dai et al. 2022).

    Per layer: a forward that records the up projection's output u at the last position; then the prompt, repeated
    ``batch`` times, is run in full with that output replaced by a * u for ``nodes`` equidistant a in [0, 1], and P is
    differentiated with respect to what was put in. score = u / nodes * sum of the gradients. With a gate that is held
    fixed this equals the attribution at the down projection's input. (Their code also keeps every layer's graph
    alive until the prompt is done; that is not repeated here.)
    """
    ids, rows = _ids(model, prompt), []
    blocks = list(model.model.layers)
    for block in blocks if layers is None else [blocks[i] for i in layers]:
        up, seen = block.mlp.up_proj, []
        with torch.no_grad(), hook(up, lambda _m, _a, out, seen=seen: seen.append(out[0, -1].clone())):
            model(ids)
        u, total = seen[0], torch.zeros_like(seen[0])
        path = u * torch.linspace(0, 1, nodes, device=u.device, dtype=u.dtype)[:, None]
        for start in range(0, nodes, batch):
            leaf = path[start : start + batch].clone().requires_grad_()

            def put(_m: nn.Module, _a: tuple, out: Tensor, leaf: Tensor = leaf) -> Tensor:
                new = out.clone()
                new[:, -1] = leaf
                return new

            with hook(up, put):
                p = model(_ids(model, prompt, leaf.shape[0])).logits[:, -1].float().softmax(-1)[:, target]
            total += torch.autograd.grad(p.sum(), leaf)[0].sum(0)
        rows.append(u * total / nodes)
    return torch.stack(rows)


# Lookback ratio: mean attention weight on the context against that on new keys.


def _ratio(rows: Tensor, context: int) -> Tensor:
    """Ratio per head from attention rows ``head key``."""
    old, new = rows[:, :context].mean(-1), rows[:, context:].mean(-1)
    return old / (old + new)


@torch.no_grad()
def naive_lookback(model: Any, prompt: Ids, response: Ids, cue: int) -> Tensor:
    """``layer head step`` from one forward pass over prompt and response that keeps whole attention maps."""
    first, context = len(prompt) - 1, len(prompt) - cue
    with eager(model):
        maps = model(_ids(model, [*prompt, *response[:-1]]), output_attentions=True, use_cache=False).attentions
    steps = [
        torch.stack([_ratio(m[0, :, first + i, : first + i + 1].float(), context) for m in maps])
        for i in range(len(response))
    ]
    return torch.stack(steps, -1)


@torch.no_grad()
def published_lookback(model: Any, prompt: Ids, response: Ids, cue: int) -> Tensor:
    """``layer head step``, by the algorithm of Lookback Lens (Chuang et al. 2024).

    Step-wise generation with a cache (here of the given response), every step's attention maps kept in all layers;
    afterwards a loop over steps and layers takes the last row of each map apart.
    """
    from transformers import DynamicCache

    cache, kept, context = DynamicCache(), [], len(prompt) - cue
    ids = _ids(model, prompt)
    with eager(model):
        for token in response:
            out = model(ids, past_key_values=cache, use_cache=True, output_attentions=True)
            kept.append(out.attentions)
            ids = _ids(model, [token])
    columns = [torch.stack([_ratio(m[0, :, -1].float(), context) for m in step]) for step in kept]
    return torch.stack(columns, -1)


# Prompt-end patching: the donor's residual stream after a block, put in at the recipient's last prompt position.


@torch.no_grad()
def _states(model: Any, prompt: Ids) -> list[Tensor]:
    """Block outputs at the last position, by layer."""
    seen: list[Tensor] = []
    with ExitStack() as stack:
        for block in model.model.layers:
            stack.enter_context(hook(block, lambda _m, _a, out: seen.append(_first(out)[0, -1].clone())))
        model(_ids(model, prompt), logits_to_keep=1)
    return seen


def _first(x: Any) -> Tensor:
    return x[0] if isinstance(x, tuple) else x


def _put_at(state: Tensor, position: int) -> Callable[..., Any]:
    """Replaces one position, in passes that reach it."""

    def put(_m: nn.Module, _a: tuple, out: Any) -> Any:
        x = _first(out)
        if x.shape[1] <= position:
            return out  # a decoding step on cached keys: the position lies behind
        x = x.clone()
        x[0, position] = state
        return (x, *out[1:]) if isinstance(out, tuple) else x

    return put


@torch.no_grad()
def naive_patching(
    model: Any, donors: Sequence[Ids], recipient: Ids, layers: Sequence[int], new: int
) -> tuple[Tensor, Tensor]:
    """Greedy tokens ``donor layer step`` and first logits ``donor layer vocab``; everything recomputed every token."""
    tokens, first = [], []
    for donor in donors:
        states = _states(model, donor)
        for layer in layers:
            put = _put_at(states[layer], len(recipient) - 1)
            ids = list(recipient)
            for _ in range(new):
                with hook(model.model.layers[layer], put):
                    logits = model(_ids(model, ids), use_cache=False).logits[0, -1]
                if len(ids) == len(recipient):
                    first.append(logits.float())
                ids.append(int(logits.argmax()))
            tokens.append(torch.tensor(ids[len(recipient) :]))
    shape = (len(donors), len(layers), -1)
    return torch.stack(tokens).view(shape), torch.stack(first).view(shape)


@torch.no_grad()
def published_patching(model: Any, donors: Sequence[Ids], recipient: Ids, new: int) -> tuple[Tensor, Tensor]:
    """The same for all layers, with a cache: one hooked prefill and greedy generation per donor and layer.

    How such sweeps are described (Composition collapse, App. I) and commonly run: hook, ``generate``, next.
    """
    from transformers import DynamicCache

    tokens, first, blocks = [], [], model.model.layers
    for donor in donors:
        states = _states(model, donor)
        for layer in range(len(blocks)):
            put = _put_at(states[layer], len(recipient) - 1)
            cache, ids, mine = DynamicCache(), _ids(model, recipient), []
            with hook(blocks[layer], put):
                for _ in range(new):
                    logits = model(ids, past_key_values=cache, use_cache=True, logits_to_keep=1).logits[0, -1]
                    if not mine:
                        first.append(logits.float())
                    mine.append(int(logits.argmax()))
                    ids = _ids(model, mine[-1:])
            tokens.append(torch.tensor(mine))
    shape = (len(donors), len(blocks), -1)
    return torch.stack(tokens).view(shape), torch.stack(first).view(shape)


# Min-K%++: how much less likely than expected the text's tokens are.


@torch.no_grad()
def naive_min_k(model: Any, ids: Ids) -> Tensor:
    """z of every token but the first, one float64 softmax over the vocabulary at a time."""
    logits = model(_ids(model, ids), use_cache=False).logits[0]
    z = []
    for t in range(1, len(ids)):
        log_p = logits[t - 1].double().log_softmax(-1)
        p = log_p.exp()
        mean = (p * log_p).sum()
        z.append((log_p[ids[t]] - mean) / (p * (log_p - mean) ** 2).sum().sqrt())
    return torch.stack(z).cpu()


@torch.no_grad()
def published_min_k(model: Any, ids: Ids) -> Tensor:
    """z by the algorithm of Min-K%++ (Zhang et al. 2025): whole-vocabulary tables, variance as E[l^2] - E[l]^2."""
    tokens = _ids(model, ids)
    logits = model(tokens, use_cache=False).logits[0, :-1].float()
    p, log_p = logits.softmax(-1), logits.log_softmax(-1)
    own = log_p.gather(-1, tokens[0, 1:, None])[:, 0]
    mean = (p * log_p).sum(-1)
    variance = (p * log_p.square()).sum(-1) - mean.square()
    return ((own - mean) / variance.sqrt()).cpu()


@torch.no_grad()
def literal_row(model: Any, block: torch.nn.Module, ids: Sequence[int], position: int, value: Tensor) -> Tensor:
    """Log-probabilities after the last token, with one value put in after a block: a forward pass with a hook."""

    def put(_module: torch.nn.Module, _args: Any, output: Any) -> None:
        _first(output)[:, position] = value.to(output[0])

    with hook(block, put):
        return model(input_ids=_ids(model, ids)).logits[0, -1].log_softmax(-1)
