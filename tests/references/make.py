"""Write this folder's reference arrays: ``PYTHONPATH=tests python tests/references/make.py``.

Each file holds a tiny random model (weights, and its configuration as metadata), the token ids put to it, and what the
literal oracles in ``tests/oracles`` compute from it in float64, stored in float32. Nothing here comes from composcope,
so that anyone with a clone can prove the probes against numbers that composcope did not make.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import torch
from oracles import lookback, min_k, neurons, patching, trajectory
from safetensors.torch import save_file
from tiny_models import CONFIGS, GQA, tiny
from torch import Tensor

FOLDER = Path(__file__).parent
VOCAB = 61
SMALL: dict[str, Any] = {"hidden_size": 16, "intermediate_size": 28, "vocab_size": VOCAB}
SETTINGS: dict[str, dict[str, Any]] = {
    "llama": dict(CONFIGS["llama"], **SMALL),
    "qwen3": dict(CONFIGS["qwen3"], **SMALL, head_dim=6),
    "mistral": dict(CONFIGS["mistral"], **SMALL),
    "gemma2": dict(CONFIGS["gemma2"], **SMALL, head_dim=4),
    "phi3": dict(CONFIGS["phi3"], **SMALL),
    "gpt2": dict(CONFIGS["gpt2"], n_embd=16, n_inner=28, vocab_size=VOCAB),
}
assert GQA["pad_token_id"] == 0
PROMPTS, RESPONSES, ANSWER, CUE, NEW = (13, 9, 13), (6, 3, 4), 2, 2, 6
LOOSE_ENDS = 1e-3
"""Smallest gap between the two most likely tokens of a patched continuation, in logits."""


def texts() -> tuple[list[list[int]], list[list[int]], list[int]]:
    rng = np.random.default_rng(7)
    prompts, responses = ([rng.integers(3, VOCAB, n).tolist() for n in sizes] for sizes in (PROMPTS, RESPONSES))
    return prompts, responses, rng.integers(3, VOCAB, ANSWER).tolist()


def modules(model: Any) -> tuple[list[Any], list[Any], list[Any]]:
    """Blocks, down projections and (where there are any) norms of the MLP's output."""
    if hasattr(model, "transformer"):
        blocks = list(model.transformer.h)
        return blocks, [b.mlp.c_proj for b in blocks], []
    blocks = list(model.model.layers)
    norms = [b.post_feedforward_layernorm for b in blocks if hasattr(b, "post_feedforward_layernorm")]
    return blocks, [b.mlp.down_proj for b in blocks], norms


def attributions(model: Any, prompt: list[int], answer: list[int]) -> dict[str, Tensor]:
    """``token layer neuron``: the integral with 64 Gauss-Legendre nodes, and the published sum over 20 points."""
    x, w = np.polynomial.legendre.leggauss(64)
    rules = {
        "converged": [((a + 1) / 2, b / 2) for a, b in zip(x.tolist(), w.tolist(), strict=True)],
        "reference": neurons.reference_nodes(20),
    }
    _, down, norms = modules(model)
    out = {}
    for name, nodes in rules.items():
        rows = []
        for i, target in enumerate(answer):
            ids = torch.tensor([prompt + answer[:i]])
            if norms:
                rows.append(neurons.attribute_behind_norm(model, ids, target, down, norms, nodes))
            else:
                rows.append(neurons.attribute(model, ids, target, down, nodes))
        out[f"attribution.{name}"] = torch.stack(rows)
    return out


def patches(model: Any, prompts: list[list[int]]) -> dict[str, Tensor]:
    """Two donors into one recipient after every block: greedy tokens and first logits."""
    blocks, _, _ = modules(model)
    recipient, tokens, logits = prompts[2], [], []
    for donor in prompts[:2]:
        for block in blocks:
            state = patching.block_output(model, torch.tensor([donor]), block)[-1]
            found, first = patching.patched_greedy(model, recipient, block, len(recipient) - 1, state, NEW)
            tokens.append(torch.tensor(found))
            logits.append(first)
            decided(model, recipient, block, state)
    shape = (2, len(blocks), -1)
    base = torch.tensor(patching.greedy(model, recipient, NEW))
    return {"patch.tokens": torch.stack(tokens).view(shape), "patch.logits": torch.stack(logits).view(shape),
            "patch.base": base}  # fmt: skip


def decided(model: Any, recipient: list[int], block: Any, state: Tensor) -> None:
    """That rounding cannot change a continuation."""
    ids = list(recipient)
    for _ in range(NEW):
        found, logits = patching.patched_greedy(model, ids, block, len(recipient) - 1, state, 1)
        top = logits.topk(2).values
        assert float(top[0] - top[1]) > LOOSE_ENDS, f"{type(model).__name__}: two tokens are equally likely; new seed"
        ids += found


def readings(model: Any, prompts: list[list[int]], responses: list[list[int]]) -> dict[str, Tensor]:
    """Lookback, Min-K and trajectory arrays, one per text."""
    out: dict[str, Tensor] = {}
    for i, (prompt, response) in enumerate(zip(prompts, responses, strict=True)):
        for form in ("mean", "sum"):
            out[f"lookback.{form}.{i}"] = lookback.ratios(model, prompt, response, CUE, form)
        out[f"tokens.{i}"] = torch.tensor(min_k.token_scores(model, prompt))
        out[f"min_k.{i}"] = torch.tensor(min_k.score(model, prompt, 0.2))
        out[f"state.{i}"] = trajectory.last_states(model, prompt)
        for alignment in ("predictive", "token"):
            out[f"steps.{alignment}.{i}"] = trajectory.step_cosines(model, prompt, response, alignment)
    return out


def make(name: str) -> Path:
    settings = SETTINGS[name]
    changes = {k: v for k, v in settings.items() if k != "model_type"}
    model = tiny(name, seed=3, attn="eager", **changes)  # the only attention that shows its maps
    weights = {f"model.{k}": v.clone() for k, v in model.state_dict().items()}
    model = model.double()
    prompts, responses, answer = texts()
    ids = {f"prompt.{i}": p for i, p in enumerate(prompts)} | {f"response.{i}": r for i, r in enumerate(responses)}
    arrays = {k: torch.tensor(v, dtype=torch.int32) for k, v in {**ids, "answer": answer}.items()}
    found = attributions(model, prompts[0], answer) | patches(model, prompts) | readings(model, prompts, responses)
    arrays |= {k: v.detach().float() if v.is_floating_point() else v.to(torch.int32) for k, v in found.items()}
    about = {"config": json.dumps(settings, sort_keys=True), "cue_tokens": str(CUE), "torch": torch.__version__}
    path = FOLDER / f"{name}.safetensors"
    save_file({**weights, **{k: v.contiguous() for k, v in arrays.items()}}, path, metadata=about)
    return path


if __name__ == "__main__":
    torch.set_num_threads(1)
    for model_name in SETTINGS:
        written = make(model_name)
        print(f"{written.name}: {written.stat().st_size / 1024:.0f} kB")
