"""lm-evaluation-harness in its own interpreter: here a stand-in for its package, which says what it was given."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import closing
from importlib.metadata import version
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from composcope.errors import ModelError
from composcope.evaluation.asks import Ask
from composcope.experiments.bench.asking import Harness

FILES = {
    "torch.py": "used = 0\ndef set_num_threads(n):\n    global used\n    used = n\n",
    "lm_eval/__init__.py": "",
    "lm_eval/api/__init__.py": "",
    "lm_eval/api/instance.py": "from types import SimpleNamespace as Instance\n",
    "lm_eval/models/__init__.py": "",
    "lm_eval/models/huggingface.py": """
import json
import torch

loaded = 0

class HFLM:
    def __init__(self, **how):
        global loaded
        loaded += 1
        self.how = {**how, "threads": torch.used}
        print("noise of the library")

    def tok_encode(self, text, add_special_tokens):
        return [int(c) for c in text.removeprefix("p")] if text != "p3" else [9]

    def generate_until(self, requests, disable_tqdm):
        print("more noise")
        if any(r.arguments[0] == "p0" for r in requests):
            raise RuntimeError("no such prompt")
        how = {**self.how, "loaded": loaded, "batch": self.batch_size_per_gpu}
        return [json.dumps([r.request_type, *r.arguments, r.idx, how]) for r in requests]
""",
    "lm_eval-9.8.dist-info/METADATA": "Metadata-Version: 2.1\nName: lm_eval\nVersion: 9.8\n",
}


@pytest.fixture
def harness(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Harness]:
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    engine: Any = SimpleNamespace(
        prompt_ids=lambda asks: [[int(c) for c in ask.prompt] for ask in asks],
        tokenizer=SimpleNamespace(decode=lambda ids: "p" + "".join(map(str, ids)), eos_token="<eos>"),
        model=SimpleNamespace(device="cpu", dtype=torch.float32),
    )
    with closing(Harness(sys.executable, engine, "the/model", 3)) as made:
        yield made


def _asks(*prompts: str) -> list[Ask]:
    stops: list[tuple[str, ...]] = [("\n",), (), ("\n", "Q:")]
    return [Ask(p, "whole", p, "", "text", max_tokens=8 * (i + 1), stop=stops[i]) for i, p in enumerate(prompts)]


def test_the_harness_gets_our_prompts_budgets_and_stops_and_loads_the_model_once(harness: Harness) -> None:
    how = {"pretrained": "the/model", "dtype": "float32", "device": "cpu", "add_bos_token": False, "threads": 3,
           "loaded": 1}  # fmt: skip
    for batch, own in ((16, 16), (None, 1)):
        took = harness(_asks("12", "3", "45"), batch)
        until = ["<eos>", "\n", "Q:"]
        assert {i: json.loads(text) for i, text in took.found.items()} == {
            i: ["generate_until", prompt, {"until": until, "max_gen_toks": 8 * (i + 1), "do_sample": False}, i,
                {**how, "batch": own}]
            for i, prompt in enumerate(("p12", "p3", "p45"))
        }  # fmt: skip
        assert took.note == f"lm-eval 9.8, transformers {version('transformers')}; 1 prompts tokenized differently"
        assert 0 <= took.processor < 5 and 0 <= took.wall < 5
    assert "differently" not in harness(_asks("12"), 1).note


def test_what_the_harness_says_last_is_the_reason_of_its_failure(harness: Harness) -> None:
    with pytest.raises(ModelError, match=r"RuntimeError: no such prompt; python3 -m venv"):
        harness(_asks("0"), 1)
    with pytest.raises(ModelError, match="no such prompt"):
        harness(_asks("12"), 1)
    assert harness.process.wait(9) != 0
