"""What is measured: per probe our way, and the naive, published and bare-forward ways on the same random input."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from ...errors import InputError
from ...hooks.model import Model
from ...probes import lookback, min_k, neurons, patching
from . import published
from .presets import Preset

Outputs = Mapping[str, Tensor]


@dataclass(frozen=True)
class Way:
    """One way to compute a task's result."""

    run: Callable[[], Outputs]
    share: float = 1.0
    """Part of the whole work that it does; its time is divided by this."""
    cut: Callable[[Outputs], Outputs] = lambda outputs: outputs
    """Our outputs, reduced to what this way computes."""
    note: str = ""


@dataclass(frozen=True)
class Task:
    """One row group of the benchmark table."""

    name: str
    setting: str
    ours: Callable[[], Outputs]
    against: Mapping[str, Way]

    def way(self, name: str) -> Callable[[], Outputs]:
        return self.ours if name == "ours" else self.against[name].run


def build(preset: Preset, name: str, lm: Model) -> Task:
    """The named task of a preset, on a model of its shape."""
    if name not in preset.tasks:
        raise InputError(f"benchmark {name!r}: preset {preset.name} has {', '.join(preset.tasks)}")
    task = _BUILDERS[_kind(name)](name, lm, preset.tasks[name])
    return Task(task.name, task.setting, task.ours, {k: w for k, w in task.against.items() if k in preset.against})


def _kind(name: str) -> str:
    return next(k for k in sorted(_BUILDERS, key=len, reverse=True) if name == k or name.startswith(f"{k}-"))


def texts(lm: Model, n: int, length: int, seed: int = 0) -> list[list[int]]:
    """Random token ids, special ones left out."""
    g = torch.Generator().manual_seed(seed)
    return [torch.randint(3, lm.anatomy.vocab_size, (length,), generator=g).tolist() for _ in range(n)]


def _forward(lm: Model, ids: Sequence[int]) -> Callable[[], Outputs]:
    """A bare pass through the blocks, nothing read and no logits made."""
    at = torch.tensor([list(ids)], device=lm.device)

    def run() -> Outputs:
        with torch.no_grad():
            lm.model.get_decoder()(input_ids=at, use_cache=False)
        return {}

    return run


def _forward_with_logits(lm: Model, ids: Sequence[int]) -> Callable[[], Outputs]:
    at = torch.tensor([list(ids)], device=lm.device)

    def run() -> Outputs:
        with torch.no_grad():
            lm.model(input_ids=at, use_cache=False)
        return {}

    return run


def _published_attribution(lm: Model, prompt: Sequence[int], target: int, nodes: int, note: str = "") -> Way:
    """The published algorithm on up to four layers, spread so that their mean depth is that of all.

    It does the same for every layer, but for the way back to it, whose cost is linear in the depth.
    """
    n = lm.anatomy.n_layers
    layers = sorted({round(i * (n - 1) / 3) for i in range(4)})
    return Way(
        lambda: {"score": published.published_attribution(lm.model, prompt, target, nodes, layers=layers)},
        share=len(layers) / n,
        cut=lambda ours: {"score": ours["score"][layers]},
        note="; ".join([note] * bool(note) + [f"layers {', '.join(map(str, layers))} timed"] * (len(layers) < n)),
    )


def _attribution(name: str, lm: Model, sizes: Mapping[str, int]) -> Task:
    """The published rule, so that scores compare number by number."""
    (prompt,), nodes, model = texts(lm, 1, sizes["prompt"]), sizes["nodes"], lm.model
    target, ends = 5, sorted({0, lm.anatomy.n_layers - 1})
    return Task(
        name,
        f"all layers, T={sizes['prompt']}, published rule, m={nodes}",
        lambda: {"score": neurons.attribute(lm, prompt, [target], nodes, "reference")},
        {
            "naive": Way(
                lambda: {"score": published.naive_attribution(model, prompt, target, ends, nodes)},
                share=len(ends) / lm.anatomy.n_layers,
                cut=lambda ours: {"score": ours["score"][ends]},
                note="first and last layer timed",
            ),
            "published": _published_attribution(lm, prompt, target, nodes),
            "forward": Way(_forward(lm, prompt)),
        },
    )


def _attribution_default(name: str, lm: Model, sizes: Mapping[str, int]) -> Task:
    """Our default: Gauss-Legendre nodes, refined where completeness is missed; its own error is the gap."""
    (prompt,) = texts(lm, 1, sizes["prompt"])

    def ours() -> Outputs:
        got = neurons.attribute_many(lm, [prompt], [[5]])
        return {"score": got.scores[0][0]}

    return Task(
        name,
        f"all layers, T={sizes['prompt']}, refined Gauss-Legendre",
        ours,
        {
            "published": _published_attribution(
                lm, prompt, 5, 20, "m=20; the error is mostly the published rule's own"
            ),
            "forward": Way(_forward(lm, prompt)),
        },
    )


def _lookback(name: str, lm: Model, sizes: Mapping[str, int]) -> Task:
    (prompt,), (response,) = texts(lm, 1, sizes["prompt"]), texts(lm, 1, sizes["response"], seed=1)
    cue, model = 4, lm.model
    return Task(
        name,
        f"N={sizes['prompt']}, R={sizes['response']}",
        lambda: {"ratio": lookback.ratios(lm, [prompt], [response], cue)[0]},
        {
            "naive": Way(lambda: {"ratio": published.naive_lookback(model, prompt, response, cue)}),
            "published": Way(lambda: {"ratio": published.published_lookback(model, prompt, response, cue)}),
            "forward": Way(_forward(lm, [*prompt, *response[:-1]])),
        },
    )


def _patching(name: str, lm: Model, sizes: Mapping[str, int]) -> Task:
    new, n_recipients, model = sizes["new"], sizes.get("recipients", 1), lm.model
    donors = texts(lm, sizes["donors"], sizes["prompt"])
    recipients = texts(lm, n_recipients, sizes["prompt"], seed=1)
    pairs = [(d, d % n_recipients) for d in range(len(donors))]
    n = lm.anatomy.n_layers
    some = sorted({0, n // 2})

    def ours() -> Outputs:
        got = patching.prompt_end_sweep(
            lm, donors, recipients, pairs, max_new_tokens=new, keep="all", controls=(), stop_ids=()
        )
        return {"tokens": got.tensors["tokens"][:, 0], "logits": got.tensors["first_logits"][:, 0]}

    def slow(run: Callable[..., tuple[Tensor, Tensor]], *args: Any) -> Outputs:
        tokens, logits = run(model, *args)
        return {"tokens": tokens, "logits": logits.cpu()}

    return Task(
        name,
        f"{len(pairs)} pairs x {n} layers x {new} new tokens, T={sizes['prompt']}",
        ours,
        {
            "naive": Way(
                lambda: slow(published.naive_patching, donors[:1], recipients[0], some, new),
                share=len(some) / (n * len(donors)),
                cut=lambda o: {k: v[:1, some] for k, v in o.items()},
                note=f"{len(some)} of {n * len(donors)} patches timed",
            ),
            "published": Way(
                lambda: slow(published.published_patching, donors[:1], recipients[0], new),
                share=1 / len(donors),
                cut=lambda o: {k: v[:1] for k, v in o.items()},
                note=f"one donor of {len(donors)} timed" if len(donors) > 1 else "",
            ),
            "forward": Way(_forward(lm, recipients[0])),
        },
    )


def _min_k(name: str, lm: Model, sizes: Mapping[str, int]) -> Task:
    (ids,), model = texts(lm, 1, sizes["tokens"]), lm.model
    return Task(
        name,
        f"T={sizes['tokens']}, V={lm.anatomy.vocab_size}",
        lambda: {"z": torch.from_numpy(min_k.token_scores(lm, [ids])[0].z)},
        {
            "naive": Way(lambda: {"z": published.naive_min_k(model, ids)}),
            "published": Way(lambda: {"z": published.published_min_k(model, ids)}),
            "forward": Way(_forward_with_logits(lm, ids)),
        },
    )


_BUILDERS: dict[str, Callable[[str, Model, Mapping[str, int]], Task]] = {
    "attribution": _attribution,
    "attribution-default": _attribution_default,
    "lookback": _lookback,
    "patching": _patching,
    "min-k": _min_k,
}
