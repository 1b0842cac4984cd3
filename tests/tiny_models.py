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
    "granite": dict(GQA, model_type="granite", mlp_bias=True, residual_multiplier=0.7, logits_scaling=2.0,
                    embedding_multiplier=3.0),
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


MOE: dict[str, Any] = dict(GQA, num_local_experts=4, num_experts=4, num_experts_per_tok=2, moe_intermediate_size=24)
HYBRID: dict[str, Any] = dict(
    GQA, num_hidden_layers=4, head_dim=8, linear_num_key_heads=2, linear_num_value_heads=4, linear_key_head_dim=8,
    linear_value_head_dim=8,
)  # fmt: skip
MORE: dict[str, dict[str, Any]] = {
    "gemma": dict(model_type="gemma", head_dim=8, **GQA),
    "olmo3": dict(model_type="olmo3", sliding_window=5, **GQA),
    "glm4": dict(model_type="glm4", head_dim=8, **GQA),
    "smollm3": dict(model_type="smollm3", **GQA),
    "exaone4": dict(model_type="exaone4", sliding_window=5, **GQA),
    "ernie4_5": dict(model_type="ernie4_5", **GQA),
    "cohere2": dict(model_type="cohere2", sliding_window=5, logit_scale=0.5, **GQA),
    "nemotron": dict(model_type="nemotron", **GQA),
    "qwen2_moe": dict(MOE, model_type="qwen2_moe", shared_expert_intermediate_size=24),
    "granitemoe": dict(MOE, model_type="granitemoe", residual_multiplier=0.7, logits_scaling=2.0),
    "olmoe": dict(MOE, model_type="olmoe"),
    "phimoe": dict(MOE, model_type="phimoe", sliding_window=5),
    "ernie4_5_moe": dict(
        MOE, model_type="ernie4_5_moe", moe_k=2, moe_num_experts=4, moe_num_shared_experts=1, moe_layer_start_index=1
    ),
    "deepseek_v3": dict(
        MOE, model_type="deepseek_v3", num_key_value_heads=4, n_routed_experts=4, n_group=1, topk_group=1,
        first_k_dense_replace=1, q_lora_rank=16, kv_lora_rank=16, qk_nope_head_dim=8, qk_rope_head_dim=8, v_head_dim=8,
    ),
    "llama4_text": dict(
        MOE, model_type="llama4_text", head_dim=8, intermediate_size_mlp=40, num_experts_per_tok=1,
        attention_chunk_size=64,
    ),
    "qwen3_next": dict(
        HYBRID, model_type="qwen3_next", num_experts=0, layer_types=[*["linear_attention"] * 3, "full_attention"]
    ),
    "gpt_bigcode": dict(
        model_type="gpt_bigcode", vocab_size=97, n_embd=32, n_inner=56, n_layer=3, n_head=4, n_positions=64
    ),
    "falcon": dict(
        model_type="falcon", vocab_size=97, hidden_size=32, num_hidden_layers=3, num_attention_heads=4,
        ffn_hidden_size=56, initializer_range=0.3,
    ),
    "gptj": dict(
        model_type="gptj", vocab_size=97, n_embd=32, n_inner=56, n_layer=3, n_head=4, n_positions=64, rotary_dim=4,
        initializer_range=0.3,
    ),
    "gemma4_text": dict(
        GQA, model_type="gemma4_text", num_hidden_layers=4, head_dim=8, global_head_dim=12, attention_k_eq_v=True,
        num_global_key_value_heads=1, sliding_window=5, hidden_size_per_layer_input=0, num_kv_shared_layers=0,
        layer_types=["sliding_attention", "full_attention"] * 2,
    ),
    "laguna": dict(
        MOE, model_type="laguna", head_dim=8, num_attention_heads_per_layer=[4, 4, 8], sliding_window=5,
        layer_types=["full_attention", "sliding_attention", "sliding_attention"],
    ),
    "gpt_neo": dict(
        model_type="gpt_neo", vocab_size=97, hidden_size=32, num_layers=3, num_heads=4, window_size=5,
        max_position_embeddings=64, attention_types=[[["global", "local", "local"], 1]], initializer_range=0.3,
        bos_token_id=1, eos_token_id=2,
    ),
    "granite_swa": dict(GQA, model_type="granite_swa", residual_multiplier=0.7, sliding_window=5),
    "inkling_text": dict(
        MOE, model_type="inkling_text", head_dim=8, swa_head_dim=8, swa_num_attention_heads=4,
        swa_num_key_value_heads=2, sliding_window_size=5, d_rel=4, rel_extent=8, dense_intermediate_size=56,
    ),
}  # fmt: skip
"""Architectures that the matrix covers and the other tests do not: relatives, mixtures, and some that probes refuse."""

SMALL: dict[str, Any] = dict(vocab_size=97, hidden_size=32, num_hidden_layers=2)
REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "mamba": (dict(SMALL, model_type="mamba", state_size=8), "no num_attention_heads"),
    "rwkv": (dict(SMALL, model_type="rwkv"), "no num_attention_heads"),
    "bloom": (dict(model_type="bloom", vocab_size=97, hidden_size=32, n_layer=2, n_head=4), "do not add up"),
    "openai-gpt": (
        dict(model_type="openai-gpt", vocab_size=97, n_embd=32, n_layer=2, n_head=4, n_positions=64),
        "attn and ln_2 do not add up",
    ),
    "gemma3n_text": (
        dict(
            GQA, model_type="gemma3n_text", head_dim=8, hidden_size_per_layer_input=8, vocab_size_per_layer_input=97,
            num_kv_shared_layers=0, laurel_rank=4, num_hidden_layers=4, layer_types=["full_attention"] * 4,
            activation_sparsity_pattern=None,
        ),
        "several residual streams",
    ),
    "granitemoeshared": (
        dict(MOE, model_type="granitemoeshared", shared_intermediate_size=24), "self_attn and shared_mlp do not add up"
    ),
    "gemma3_text": (
        dict(
            GQA, model_type="gemma3_text", head_dim=8, sliding_window=5, query_pre_attn_scalar=8,
            use_bidirectional_attention=True,
        ),
        "tokens attend to later ones",
    ),
    "jetmoe": (dict(MOE, model_type="jetmoe", kv_channels=8), "output is not that of self_attention.kv_proj"),
    "minimax": (dict(MOE, model_type="minimax", head_dim=8, block_size=16), "do not add up"),
}  # fmt: skip
"""Architectures that are refused when they are opened, and with which words."""


def tiny(name: str, seed: int = 0, attn: str | None = None, **changes: Any) -> PreTrainedModel:
    """A random model of one architecture in eval mode, the same for the same seed."""
    known = {**CONFIGS, **MORE, **{k: v for k, (v, _) in REFUSED.items()}}
    settings = {**known[name], **changes}
    config = AutoConfig.for_model(**settings)
    if attn is not None:
        config._attn_implementation = attn
    torch.manual_seed(seed)
    model = AutoModelForCausalLM.from_config(config).eval()
    with torch.no_grad():
        for called, p in model.named_parameters():
            # norms and biases (also of experts) away from 1 and 0, so that mistakes with them show
            if p.dim() == 1 or called.endswith("_bias"):
                p.add_(0.1 * torch.randn_like(p))
    return model
