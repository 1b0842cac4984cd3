"""Tiny random models with a byte-level tokenizer, and asks to put to them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors
from transformers import GPT2Config, GPT2LMHeadModel, LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

from composcope.evaluation.asks import Ask

TEMPLATE = (
    "{{ bos_token }}{% for m in messages %}{{ m['role'] }}: {{ m['content'] }}\n{% endfor %}"
    "{% if add_generation_prompt %}assistant:{% endif %}"
)


def byte_tokenizer(pad: bool = False, template: str | None = TEMPLATE) -> PreTrainedTokenizerFast:
    """One token per byte, plus BOS (256) and EOS (257); by default without a pad token."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    backend = Tokenizer(models.BPE(vocab={c: i for i, c in enumerate(alphabet)}, merges=[]))
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.decoder = decoders.ByteLevel()
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=backend, bos_token="<bos>", eos_token="<eos>", **({"pad_token": "<pad>"} if pad else {})
    )
    bos = tokenizer.convert_tokens_to_ids("<bos>")
    backend = tokenizer.backend_tokenizer
    backend.post_processor = processors.TemplateProcessing(single="<bos> $A", special_tokens=[("<bos>", bos)])
    if template:
        tokenizer.chat_template = template
    return tokenizer


def tiny_llama(seed: int = 0, context: int = 256, **options: Any) -> LlamaForCausalLM:
    torch.manual_seed(seed)
    config = LlamaConfig(
        vocab_size=259,
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=context,
        bos_token_id=256,
        eos_token_id=257,
        initializer_range=0.3,
        **options,
    )
    return LlamaForCausalLM(config).eval()


def tiny_gpt2(seed: int = 0, context: int = 256) -> GPT2LMHeadModel:
    torch.manual_seed(seed)
    config = GPT2Config(
        vocab_size=259,
        n_embd=32,
        n_layer=2,
        n_head=4,
        n_positions=context,
        bos_token_id=256,
        eos_token_id=257,
        initializer_range=0.3,
    )
    return GPT2LMHeadModel(config).eval()


@pytest.fixture(scope="session")
def tokenizer() -> PreTrainedTokenizerFast:
    return byte_tokenizer()


@pytest.fixture(scope="session")
def make_tokenizer() -> Callable[..., PreTrainedTokenizerFast]:
    return byte_tokenizer


@pytest.fixture(scope="session")
def make_llama() -> Callable[..., LlamaForCausalLM]:
    return tiny_llama


@pytest.fixture(scope="session")
def make_gpt2() -> Callable[..., GPT2LMHeadModel]:
    return tiny_gpt2


@pytest.fixture(scope="session")
def make_ask() -> Callable[..., Ask]:
    def make(prompt: str = "How many?", **options: Any) -> Ask:
        given = {"case": "c", "role": "whole", "gold": "1", "answer_type": "text", "max_tokens": 16, **options}
        return Ask(prompt=prompt, **given)

    return make
