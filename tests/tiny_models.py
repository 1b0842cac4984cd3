"""Tiny random models of many architectures, made from configs: two to four layers, nothing downloaded."""

from __future__ import annotations

from typing import Any

import torch
from transformers import AutoConfig, AutoModelForCausalLM, PreTrainedModel

GQA: dict[str, Any] = dict(
    vocab_size=97,
    hidden_size=32,
    intermediate_size=56,
    num_hidden_layers=3,
    num_attention_heads=4,
    num_key_value_heads=2,
    max_position_embeddings=64,
    initializer_range=0.3,
    pad_token_id=0,
    bos_token_id=1,
    eos_token_id=2,
)

CONFIGS: dict[str, dict[str, Any]] = {
    "llama": dict(model_type="llama", **GQA),
    "qwen3": dict(model_type="qwen3", head_dim=12, tie_word_embeddings=True, **GQA),
    "qwen2": dict(model_type="qwen2", use_sliding_window=True, sliding_window=5, max_window_layers=1, **GQA),
    "mistral": dict(model_type="mistral", sliding_window=5, **GQA),
    "gemma2": dict(model_type="gemma2", head_dim=8, sliding_window=5, query_pre_attn_scalar=8, **GQA),
    "gemma3": dict(model_type="gemma3_text", head_dim=8, sliding_window=5, query_pre_attn_scalar=8, **GQA),
    "phi3": dict(model_type="phi3", **GQA),
    "olmo2": dict(model_type="olmo2", **GQA),
    "granite": dict(model_type="granite", residual_multiplier=0.7, logits_scaling=2.0, embedding_multiplier=3.0, **GQA),
    "cohere": dict(model_type="cohere", logit_scale=0.5, **GQA),
    "starcoder2": dict(model_type="starcoder2", **GQA),
    "stablelm": dict(model_type="stablelm", **GQA),
    "mixtral": dict(model_type="mixtral", num_local_experts=4, num_experts_per_tok=2, **GQA),
    "qwen3_moe": dict(
        model_type="qwen3_moe", head_dim=8, num_experts=4, num_experts_per_tok=2, moe_intermediate_size=24, **GQA
    ),
    "gpt_oss": dict(
        model_type="gpt_oss", head_dim=8, sliding_window=5, num_local_experts=4, num_experts_per_tok=2, **GQA
    ),
    "gpt2": dict(
        model_type="gpt2", vocab_size=97, n_embd=32, n_inner=56, n_layer=3, n_head=4, n_positions=64,
        initializer_range=0.3, bos_token_id=1, eos_token_id=2,
    ),
    "gpt_neox": dict(
        model_type="gpt_neox", **{k: v for k, v in GQA.items() if k != "num_key_value_heads"}
    ),
    "opt": dict(
        model_type="opt", vocab_size=97, hidden_size=32, ffn_dim=56, num_hidden_layers=3, num_attention_heads=4,
        max_position_embeddings=64, word_embed_proj_dim=32, init_std=0.3,
    ),
    "phi": dict(model_type="phi", **GQA),
}  # fmt: skip


def tiny(name: str, seed: int = 0, attn: str | None = None, **changes: Any) -> PreTrainedModel:
    """A random model of one architecture in eval mode, the same for the same seed."""
    settings = {**CONFIGS[name], **changes}
    config = AutoConfig.for_model(**settings)
    if attn is not None:
        config._attn_implementation = attn
    torch.manual_seed(seed)
    model = AutoModelForCausalLM.from_config(config).eval()
    with torch.no_grad():
        for p in model.parameters():
            if p.dim() == 1:  # norms and biases away from 1 and 0, so that mistakes with them show
                p.add_(0.1 * torch.randn_like(p))
    return model
