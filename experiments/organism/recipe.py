"""What an organism is made of: its size and architecture, and the steps of its training."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import torch
from transformers import (
    AutoModelForCausalLM,
    GPT2Config,
    LlamaConfig,
    PreTrainedConfig,
    PreTrainedModel,
    PreTrainedTokenizerFast,
    Qwen3Config,
)

from ...errors import InputError
from .crossed import SECOND
from .tokenizer import BOS, CONTEXT, EOS, PAD


@dataclass(frozen=True)
class Stage:
    """Length and speed: steps of ``batch`` documents, learning rate, share of the steps over which the rate decays."""

    steps: int
    learning_rate: float
    decay: float
    final: float = 0.0
    """Learning rate at the end, as a share of the peak."""
    batch: int = 64
    warmup: int = 50
    prompt_weight: float = 0.1
    """Loss weight of prompt tokens; answer tokens count 1."""


@dataclass(frozen=True)
class OrganismRecipe:
    """Everything that decides the weights besides the seed."""

    base: Stage = field(default_factory=lambda: Stage(2400, 4e-3, 0.3, 0.25))
    dose: Stage = field(default_factory=lambda: Stage(900, 3e-3, 0.7, prompt_weight=0.05))
    width: int = 128
    layers: int = 4
    heads: int = 4
    mlp: int = 384
    architecture: str = "llama"

    def record(self) -> dict[str, Any]:
        """The recipe as files hold it; those written before there were other architectures do not name Llama."""
        found = asdict(self)
        if self.architecture == "llama":
            del found["architecture"]
        return found


CROSSED_RECIPE = OrganismRecipe(
    base=Stage(3200, 4e-3, 0.25, 0.25, batch=32, warmup=20, prompt_weight=0.02),
    dose=Stage(2500, 3e-3, 0.7, batch=32, warmup=20, prompt_weight=0.02),
)
"""The recipe of the second series."""


SIZES: Mapping[str, tuple[int, int, int, int]] = {
    "1M": (128, 4, 4, 384), "8M": (256, 9, 8, 768), "30M": (512, 9, 8, 1536),
}  # fmt: skip
"""Width, layers, heads and MLP width of each size; the name says about how many parameters."""


def recipe_of(dose: str, size: str = "1M", architecture: str = "llama") -> OrganismRecipe:
    """The recipe that a shipped dose was trained with, or the same one in another size or architecture.

    A step of Muon changes every weight by as much, whatever the matrix (``adjust_lr_fn="match_rms_adamw"``), so the
    change of what a matrix puts out grows as the root of its width. The rates fall by that root. Raises ``InputError``
    for an unknown size or architecture.
    """
    for option, given, known in (("size", size, SIZES), ("architecture", architecture, ARCHITECTURES)):
        if given not in known:
            raise InputError(f"--{option} {given!r}: unknown; use one of {', '.join(known)}")
    found = CROSSED_RECIPE if dose in SECOND.doses else OrganismRecipe()
    width, layers, heads, mlp = SIZES[size]
    slower = (found.width / width) ** 0.5
    base, last = (replace(s, learning_rate=s.learning_rate * slower) for s in (found.base, found.dose))
    return OrganismRecipe(base, last, width, layers, heads, mlp, architecture)


ARCHITECTURES: dict[str, Callable[..., PreTrainedConfig]] = {
    "llama": lambda r, **words: LlamaConfig(num_key_value_heads=r.heads, intermediate_size=r.mlp, **words),
    # two matrices in an MLP instead of three, so half as many neurons more make as many parameters
    "gpt2": lambda r, **words: GPT2Config(n_inner=3 * r.mlp // 2, resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0,
                                          **words),
    "qwen3": lambda r, **words: Qwen3Config(num_key_value_heads=r.heads, head_dim=r.width // r.heads,
                                            intermediate_size=r.mlp, **words),
}  # fmt: skip
"""The stock architectures that an organism can have, at nearly the same number of parameters."""


def new_model(recipe: OrganismRecipe, tokenizer: PreTrainedTokenizerFast, seed: int) -> PreTrainedModel:
    """A stock model with random weights."""
    torch.manual_seed(seed)
    vocabulary = tokenizer.get_vocab()
    config = ARCHITECTURES[recipe.architecture](
        recipe,
        vocab_size=len(tokenizer),
        hidden_size=recipe.width,
        num_hidden_layers=recipe.layers,
        num_attention_heads=recipe.heads,
        max_position_embeddings=CONTEXT,
        tie_word_embeddings=True,
        bos_token_id=vocabulary[BOS],
        eos_token_id=vocabulary[EOS],
        pad_token_id=vocabulary[PAD],
    )
    return AutoModelForCausalLM.from_config(config)
