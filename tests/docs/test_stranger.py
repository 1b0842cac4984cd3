"""A stranger with the README, a model folder that nobody here has seen, and five questions of their own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import (
    AutoModelForCausalLM,
    Gemma3ForCausalLM,
    Gemma3TextConfig,
    PreTrainedTokenizerFast,
    Qwen3Config,
    Qwen3ForCausalLM,
)

SITE = Path(__file__).resolve().parents[2] / ".site"
TEXT = """The baker sells rolls, the smith sells nails and the grocer sells plums. How much do two of them cost?
A dozen is twelve. Which of these things can be eaten, and which can be read? Name both, the one to eat first.
Answer with a number: seven plus eight, nine minus two, three times four. Say it in words or in figures, 0 1 2 3 4 5."""
QWEN = (
    "{%- for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    "{%- if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
GEMMA = (
    "{{ bos_token }}{%- for m in messages %}<start_of_turn>{{ 'model' if m.role == 'assistant' else m.role }}\n"
    "{{ m.content | trim }}<end_of_turn>\n{% endfor %}{%- if add_generation_prompt %}<start_of_turn>model\n{% endif %}"
)
MARKS = {
    "qwen3": ["<|endoftext|>", "<|im_start|>", "<|im_end|>"],
    "gemma3": ["<bos>", "<eos>", "<start_of_turn>", "<end_of_turn>"],
}


def _tokenizer(kind: str) -> PreTrainedTokenizerFast:
    """Byte-level BPE trained on a few sentences. The one of qwen3 names no pad token and no BOS."""
    inner = Tokenizer(models.BPE())
    inner.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)  # type: ignore[assignment]
    inner.decoder = decoders.ByteLevel()  # type: ignore[assignment]
    trainer = trainers.BpeTrainer(
        vocab_size=360,
        special_tokens=MARKS[kind],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    inner.train_from_iterator(TEXT.splitlines(), trainer)
    if kind == "qwen3":
        found = PreTrainedTokenizerFast(tokenizer_object=inner, eos_token="<|im_end|>")
        found.chat_template = QWEN
    else:
        found = PreTrainedTokenizerFast(tokenizer_object=inner, bos_token="<bos>", eos_token="<eos>", pad_token="<eos>")
        found.chat_template = GEMMA
    return found


def _model_folder(kind: str, folder: Path) -> Path:
    """A chat model with random weights, as its makers would have saved it."""
    torch.manual_seed(1)
    tokenizer = _tokenizer(kind)
    sizes: dict[str, Any] = dict(
        vocab_size=len(tokenizer), hidden_size=48, intermediate_size=96, num_hidden_layers=3, num_attention_heads=4,
        num_key_value_heads=2, head_dim=16, max_position_embeddings=512, eos_token_id=tokenizer.eos_token_id,
        pad_token_id=None, bos_token_id=tokenizer.bos_token_id,
    )  # fmt: skip
    if kind == "qwen3":
        model = Qwen3ForCausalLM(Qwen3Config(**sizes))
    else:
        layers = ["sliding_attention", "sliding_attention", "full_attention"]
        model = Gemma3ForCausalLM(Gemma3TextConfig(**sizes, sliding_window=16, layer_types=layers))
    model.eval().save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    assert AutoModelForCausalLM.from_pretrained(folder) is not None
    return folder


def _cases(path: Path) -> Path:
    """Five cases of one's own, written by hand with the fields that the README shows."""
    prices = [("rolls", 3, "nails", 9), ("plums", 4, "books", 11), ("rolls", 5, "maps", 7), ("figs", 2, "pens", 6),
              ("pears", 8, "hats", 20)]  # fmt: skip
    rows = [
        {
            "id": f"own-{i}",
            "question": f"{a} cost {x} coins and {b} cost {y}. What do the things to eat and the others cost together?",
            "answer": str(x + y),
            "answer_type": "number",
            "depth": 2,
            "family": "shop",
            "parts": [
                {"question": f"Which can be eaten: {a} or {b}?", "answer": a, "kind": "commonsense"},
                {"question": f"What is {x} plus {y}?", "answer": str(x + y), "kind": "math", "answer_type": "number"},
            ],
        }
        for i, (a, x, b, y) in enumerate(prices)
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["qwen3", "gemma3"])
def test_from_a_model_folder_and_five_cases_to_a_report_without_a_further_option(kind: str, tmp_path: Path) -> None:
    model, cases = _model_folder(kind, tmp_path / "my-model"), _cases(tmp_path / "mine.jsonl")
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(SITE)}
    environment.pop("HF_HUB_OFFLINE", None)
    command = [sys.executable, "-m", "composcope", "investigate", "--model", str(model), "--benchmark", str(cases)]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    # Random weights answer nothing right: there is no contrast, and that is said in one line.
    assert "Traceback" not in done.stderr
    assert done.returncode == 1, done.stderr
    assert "no contrast possible" in done.stderr.splitlines()[-1]
    assert ("names no pad token" in done.stderr) == (kind == "qwen3")
    run = tmp_path / "runs" / "my-model--mine"
    assert (run / "report.html").is_file()
    manifest = json.loads((run / "manifest.json").read_text())
    assert manifest["n_cases"] == 5
    assert manifest["identity"]["prompting"] == "chat"
    asks = [json.loads(line) for line in (run / "asks.jsonl").open()]
    assert len(asks) >= 15
    rendered = json.loads((run / "rendered.json").read_text())
    assert any(("<|im_start|>" if kind == "qwen3" else "<start_of_turn>") in "".join(t) for t in rendered["templates"])
