"""What a benchmark runs on: random models of a given shape, made from a config, and the sizes of each task."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from ...errors import InputError


@dataclass(frozen=True)
class Shape:
    """A random Llama."""

    layers: int
    d_model: int
    d_mlp: int
    heads: int
    kv_heads: int
    vocab: int
    dtype: str = "float32"
    device: str = "cpu"
    context: int = 4096

    def __str__(self) -> str:
        size = f"{self.layers} layers, d={self.d_model}, d_ff={self.d_mlp}, V={self.vocab}"
        return f"{size}, {self.dtype}, {self.device}"


@dataclass(frozen=True)
class Preset:
    """A model shape and the sizes of the tasks on it."""

    name: str
    shape: Shape
    tasks: Mapping[str, Mapping[str, int]]
    """Task name (``PROBE`` or ``PROBE-VARIANT``) to its sizes."""
    lengths: tuple[int, ...]
    """Prompt lengths, layers and batch sizes of the cost curves; the middle ones are kept while another one varies."""
    depths: tuple[int, ...]
    batches: tuple[int, ...]
    warm_up: bool = True
    """Whether every way runs once before it is timed (ours always does)."""
    against: tuple[str, ...] = ("naive", "published", "forward")

    def shape_of(self, task: str) -> Shape:
        sizes = self.tasks[task]
        return replace(self.shape, vocab=sizes.get("vocab", self.shape.vocab))


LLAMA12 = Shape(12, 768, 3072, 12, 4, 32_000)
LLAMA8B = Shape(32, 4096, 14_336, 32, 8, 128_256, "bfloat16", "cuda", 8192)

PRESETS: dict[str, Preset] = {
    "quick": Preset(
        "quick",
        Shape(4, 128, 512, 4, 2, 2000),
        {
            "attribution": {"prompt": 48, "nodes": 20},
            "attribution-default": {"prompt": 48},
            "lookback": {"prompt": 128, "response": 32},
            "patching": {"prompt": 64, "donors": 2, "new": 8},
            "min-k": {"tokens": 256, "vocab": 8000},
        },
        lengths=(32, 64, 128, 256),
        depths=(2, 4, 8),
        batches=(1, 2, 4, 8),
    ),
    "llama12": Preset(
        "llama12",
        LLAMA12,
        {
            "attribution-32": {"prompt": 32, "nodes": 20},
            "attribution-128": {"prompt": 128, "nodes": 20},
            "attribution-default": {"prompt": 128},
            "lookback": {"prompt": 1024, "response": 256},
            "patching": {"prompt": 128, "donors": 4, "new": 32},
            "min-k": {"tokens": 2048, "vocab": 152_000},
        },
        lengths=(32, 128, 512, 1024),
        depths=(4, 8, 12),
        batches=(1, 2, 4),
        warm_up=False,
    ),
    "gpu": Preset(
        "gpu",
        LLAMA8B,
        {
            "attribution-default": {"prompt": 300},
            "attribution": {"prompt": 300, "nodes": 20},
            "lookback": {"prompt": 1024, "response": 512},
            "patching": {"prompt": 300, "donors": 16, "recipients": 16, "new": 1},
            "min-k": {"tokens": 2048},
        },
        lengths=(128, 300, 1024, 2048),
        depths=(8, 16, 32),
        batches=(1, 4, 16),
        against=("forward",),
    ),
}


def preset(name: str) -> Preset:
    if name not in PRESETS:
        raise InputError(f"preset {name!r}: use one of {', '.join(PRESETS)}")
    return PRESETS[name]


@dataclass
class Models:
    """Random models by shape, each made once."""

    made: dict[Shape, Any] = field(default_factory=dict)

    def get(self, shape: Shape) -> Any:
        if shape not in self.made:
            self.made.clear()  # one at a time: the large ones would not fit side by side
            self.made[shape] = make(shape)
        return self.made[shape]


def check_device(shape: Shape) -> None:
    """Raise ``InputError`` where this machine cannot run a shape."""
    import torch

    if shape.device == "cuda" and not torch.cuda.is_available():
        raise InputError("preset for device cuda: this machine has no CUDA device; use --preset quick or llama12")


def make(shape: Shape, seed: int = 0) -> Any:
    """An opened random Llama of this shape."""
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    from ...checkpoints import DTYPES
    from ...hooks import load_model

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
