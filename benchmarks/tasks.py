"""What is measured: random models of a given shape; per probe our way, a naive, a published and a bare one."""

import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import torch
from torch import Tensor
from transformers import LlamaConfig, LlamaForCausalLM

from ..errors import InputError
from ..hooks import Patch, load_model
from ..hooks.edits import residual
from ..hooks.interchange import interchange
from ..hooks.model import Model
from ..model_loading import DTYPES
from ..probes import lookback, min_k, neurons, patching
from ..probes.patching.engine import TOP
from . import published
from .scale import SIZES, Shape

Sizes = Mapping[str, int]


@dataclass(frozen=True)
class BenchPreset:
    """A model shape and the sizes of the tasks on it."""

    name: str
    shape: Shape
    tasks: Mapping[str, Sizes]
    """Task name (``PROBE`` or ``PROBE-VARIANT``) to its sizes."""
    warm_up: bool = True
    """Whether every way runs once before it is timed (ours always does)."""
    against: tuple[str, ...] = ("naive", "published", "forward")

    def shape_of(self, task: str) -> Shape:
        sizes = self.tasks[task]
        return replace(self.shape, vocab=sizes.get("vocab", self.shape.vocab))


PRESETS: dict[str, BenchPreset] = {
    "quick": BenchPreset(
        "quick",
        Shape(4, 128, 512, 4, 2, 2000),
        {
            "attribution": {"prompt": 48, "nodes": 20},
            "attribution-default": {"prompt": 48},
            "lookback": {"prompt": 128, "response": 32},
            "patching": {"prompt": 64, "donors": 2, "new": 8},
            "min-k": {"tokens": 256, "vocab": 8000},
        },
    ),
    "llama12": BenchPreset(
        "llama12",
        SIZES["llama12"],
        {
            "attribution-32": {"prompt": 32, "nodes": 20},
            "attribution-128": {"prompt": 128, "nodes": 20},
            "attribution-default": {"prompt": 128},
            "lookback": {"prompt": 1024, "response": 256},
            "patching": {"prompt": 128, "donors": 4, "new": 32},
            "min-k": {"tokens": 2048, "vocab": 152_000},
        },
        warm_up=False,
    ),
    "gpu": BenchPreset(
        "gpu",
        SIZES["8B"],
        {
            "attribution-default": {"prompt": 300},
            "attribution": {"prompt": 300, "nodes": 20},
            "lookback": {"prompt": 1024, "response": 512},
            "patching": {"prompt": 300, "donors": 16, "recipients": 16, "new": 1},
            "min-k": {"tokens": 2048},
        },
        against=("forward", "float32 rows"),
    ),
    "smollm2": BenchPreset(
        "smollm2",
        Shape(30, 576, 1536, 9, 3, 49_152),
        {"rows": {"prompt": 62, "after": 12, "layers": 8, "rows": 500}},
        warm_up=False,
    ),
}


def preset(name: str) -> BenchPreset:
    if name not in PRESETS:
        raise InputError(f"preset {name!r}: use one of {', '.join(PRESETS)}")
    return PRESETS[name]


@dataclass
class Models:
    """Random models by shape, each made once."""

    made: dict[Shape, tuple[Any, Any]] = field(default_factory=dict)

    def get(self, shape: Shape) -> tuple[Any, Any]:
        """The model of this shape, and the same weights in float32 (the model itself where it has this precision)."""
        if shape not in self.made:
            self.made.clear()  # one at a time: the large ones would not fit side by side
            lm = make(shape)
            wide = lm if lm.dtype is torch.float32 else load_model(copy.deepcopy(lm.model).float())
            self.made[shape] = lm, wide
        return self.made[shape]


def check_device(shape: Shape) -> None:
    """Raise ``InputError`` where this machine cannot run a shape."""
    if shape.device == "cuda" and not torch.cuda.is_available():
        raise InputError("preset for device cuda: this machine has no CUDA device; use --preset quick or llama12")


def make(shape: Shape, seed: int = 0) -> Any:
    """An opened random Llama of this shape."""
    check_device(shape)
    config = LlamaConfig(
        vocab_size=shape.vocab, hidden_size=shape.d_model, intermediate_size=shape.d_mlp,
        num_hidden_layers=shape.layers, num_attention_heads=shape.heads, num_key_value_heads=shape.kv_heads,
        max_position_embeddings=shape.context, bos_token_id=1, eos_token_id=2, pad_token_id=0,
    )  # fmt: skip
    torch.manual_seed(seed)
    before = torch.get_default_dtype()
    try:
        torch.set_default_dtype(DTYPES[shape.dtype])
        with torch.device(shape.device):
            model = LlamaForCausalLM(config)
    finally:
        torch.set_default_dtype(before)
    return load_model(model.eval())


Outputs = Mapping[str, Tensor]


@dataclass(frozen=True)
class Against:
    """Another way to compute a task's result."""

    run: Callable[[], Outputs]
    share: float = 1.0
    """Part of the whole work that it does; its time is divided by this."""
    cut: Callable[[Outputs], Outputs] = lambda outputs: outputs
    """Our outputs, reduced to what this way computes."""
    note: str = ""


@dataclass(frozen=True)
class ProbeTask:
    """One row group of the benchmark table."""

    name: str
    setting: str
    ours: Callable[[], Outputs]
    against: Mapping[str, Against]

    def way(self, name: str) -> Callable[[], Outputs]:
        return self.ours if name == "ours" else self.against[name].run


Built = tuple[str, Callable[[], Outputs], Mapping[str, Against]]
"""Setting, our way, and the others by name."""


def build(preset: BenchPreset, name: str, lm: Model) -> ProbeTask:
    """The named task of a preset, on a model of its shape."""
    if name not in preset.tasks:
        raise InputError(f"benchmark {name!r}: preset {preset.name} has {', '.join(preset.tasks)}")
    kind = next(k for k in sorted(_BUILDERS, key=len, reverse=True) if name == k or name.startswith(f"{k}-"))
    setting, ours, against = _BUILDERS[kind](lm, preset.tasks[name])
    return ProbeTask(name, setting, ours, {k: way for k, way in against.items() if k in preset.against})


def texts(lm: Model, n: int, length: int, seed: int = 0) -> list[list[int]]:
    """Random token ids, special ones left out."""
    g = torch.Generator().manual_seed(seed)
    return [torch.randint(3, lm.anatomy.vocab_size, (length,), generator=g).tolist() for _ in range(n)]


def _forward(lm: Model, ids: Sequence[int], logits: bool = False) -> Against:
    """A bare pass through the blocks, with or without logits; nothing is read."""
    at = torch.tensor([list(ids)], device=lm.device)

    def run() -> Outputs:
        with torch.no_grad():
            (lm.model if logits else lm.model.get_decoder())(input_ids=at, use_cache=False)
        return {}

    return Against(run)


def _published_attribution(lm: Model, prompt: Sequence[int], target: int, nodes: int, note: str = "") -> Against:
    """The published algorithm on up to four layers, spread so that their mean depth is that of all.

    It does the same for every layer, but for the way back to it, whose cost is linear in the depth.
    """
    n = lm.anatomy.n_layers
    layers = sorted({round(i * (n - 1) / 3) for i in range(4)})
    return Against(
        lambda: {"score": published.published_attribution(lm.model, prompt, target, nodes, layers=layers)},
        share=len(layers) / n,
        cut=lambda ours: {"score": ours["score"][layers]},
        note="; ".join([note] * bool(note) + [f"layers {', '.join(map(str, layers))} timed"] * (len(layers) < n)),
    )


def _attribution(lm: Model, sizes: Sizes) -> Built:
    """The published rule, so that scores compare number by number."""
    (prompt,), nodes, model = texts(lm, 1, sizes["prompt"]), sizes["nodes"], lm.model
    target, ends = 5, sorted({0, lm.anatomy.n_layers - 1})
    return (
        f"all layers, T={sizes['prompt']}, published rule, m={nodes}",
        lambda: {"score": neurons.attribute(lm, prompt, [target], nodes, "reference")},
        {
            "naive": Against(
                lambda: {"score": published.naive_attribution(model, prompt, target, ends, nodes)},
                share=len(ends) / lm.anatomy.n_layers,
                cut=lambda ours: {"score": ours["score"][ends]},
                note="first and last layer timed",
            ),
            "published": _published_attribution(lm, prompt, target, nodes),
            "forward": _forward(lm, prompt),
        },
    )


def _attribution_default(lm: Model, sizes: Sizes) -> Built:
    """Our default: Gauss-Legendre nodes, refined where completeness is missed; its own error is the gap."""
    (prompt,) = texts(lm, 1, sizes["prompt"])

    def ours(rows_dtype: str | None = None) -> Outputs:
        got = neurons.attribute_many(lm, [prompt], [[5]], rows_dtype=rows_dtype)
        return {"score": got.scores[0][0]}

    return (
        f"all layers, T={sizes['prompt']}, refined Gauss-Legendre",
        ours,
        {
            "published": _published_attribution(
                lm, prompt, 5, 20, "m=20; the error is mostly the published rule's own"
            ),
            "float32 rows": Against(partial(ours, "float32"), note="computed in float32 on the half-precision weights"),
            "forward": _forward(lm, prompt),
        },
    )


def _lookback(lm: Model, sizes: Sizes) -> Built:
    (prompt,), (response,) = texts(lm, 1, sizes["prompt"]), texts(lm, 1, sizes["response"], seed=1)
    cue, model = 4, lm.model
    return (
        f"N={sizes['prompt']}, R={sizes['response']}",
        lambda: {"ratio": lookback.ratios(lm, [prompt], [response], cue)[0]},
        {
            "naive": Against(lambda: {"ratio": published.naive_lookback(model, prompt, response, cue)}),
            "published": Against(lambda: {"ratio": published.published_lookback(model, prompt, response, cue)}),
            "forward": _forward(lm, [*prompt, *response[:-1]]),
        },
    )


def _patching(lm: Model, sizes: Sizes) -> Built:
    new, n_recipients, model = sizes["new"], sizes.get("recipients", 1), lm.model
    donors = texts(lm, sizes["donors"], sizes["prompt"])
    recipients = texts(lm, n_recipients, sizes["prompt"], seed=1)
    pairs = [(d, d % n_recipients) for d in range(len(donors))]
    n = lm.anatomy.n_layers
    some = sorted({0, n // 2})

    def ours() -> Outputs:
        got = patching.prompt_end_sweep(lm, donors, recipients, pairs, max_new_tokens=new, controls=(), stop_ids=())
        of_pairs = tuple(torch.tensor(pairs).T)
        return {name: got.tensors[name][of_pairs] for name in ("tokens", "top_log_probs")}

    def slow(run: Callable[..., tuple[Tensor, Tensor]], *args: Any) -> Outputs:
        tokens, logits = run(model, *args)
        return {"tokens": tokens, "top_log_probs": logits.cpu().log_softmax(-1).topk(TOP).values}

    return (
        f"{len(pairs)} pairs x {n} layers x {new} new tokens, T={sizes['prompt']}",
        ours,
        {
            "naive": Against(
                lambda: slow(published.naive_patching, donors[:1], recipients[0], some, new),
                share=len(some) / (n * len(donors)),
                cut=lambda o: {k: v[:1, some] for k, v in o.items()},
                note=f"{len(some)} of {n * len(donors)} patches timed",
            ),
            "published": Against(
                lambda: slow(published.published_patching, donors[:1], recipients[0], new),
                share=1 / len(donors),
                cut=lambda o: {k: v[:1] for k, v in o.items()},
                note=f"one donor of {len(donors)} timed" if len(donors) > 1 else "",
            ),
            "forward": _forward(lm, recipients[0]),
        },
    )


def _rows(lm: Model, sizes: Sizes) -> Built:
    """States put in at one position after some layers, spread over all; the last position's prediction is read."""
    (prompt,), count, some = texts(lm, 1, sizes["prompt"]), sizes["rows"], min(10, sizes["rows"])
    at, read, tokens = len(prompt) - 1 - sizes["after"], [len(prompt) - 1], [5, 6]
    layers = [round(i * (lm.anatomy.n_layers - 1) / sizes["layers"]) for i in range(sizes["layers"])]
    values = torch.randn(count, lm.anatomy.d_model, generator=torch.Generator().manual_seed(0))
    rows = [[Patch(residual(layers[i % len(layers)]), at, value)] for i, value in enumerate(values)]

    def ours() -> Outputs:
        found = interchange(lm, prompt, rows, read, tokens=tokens).log_probs
        assert found is not None
        return {"log_probs": found}

    def literal() -> Outputs:
        found = [published.literal_row(lm.model, lm.anatomy.layers[e.site.layer].block, prompt, at, e.value)
                 for (e,) in rows[:some]]  # fmt: skip
        return {"log_probs": torch.stack(found)[:, None, tokens]}

    return (
        f"{count} rows over {len(layers)} layers, T={len(prompt)}, {sizes['after']} positions after the patch",
        ours,
        {
            "naive": Against(
                literal, share=some / count, cut=lambda o: {k: v[:some] for k, v in o.items()},
                note=f"{some} of {count} rows timed, one forward pass each",
            ),
            "forward": _forward(lm, prompt),
        },
    )  # fmt: skip


def _min_k(lm: Model, sizes: Sizes) -> Built:
    (ids,), model = texts(lm, 1, sizes["tokens"]), lm.model
    return (
        f"T={sizes['tokens']}, V={lm.anatomy.vocab_size}",
        lambda: {"z": torch.from_numpy(min_k.token_scores(lm, [ids])[0].z)},
        {
            "naive": Against(lambda: {"z": published.naive_min_k(model, ids)}),
            "published": Against(lambda: {"z": published.published_min_k(model, ids)}),
            "forward": _forward(lm, ids, logits=True),
        },
    )


_BUILDERS: dict[str, Callable[[Model, Sizes], Built]] = {
    "attribution": _attribution,
    "attribution-default": _attribution_default,
    "lookback": _lookback,
    "patching": _patching,
    "rows": _rows,
    "min-k": _min_k,
}
