"""A tiny model that was taught every part and the wholes of every second case; and the maker of synthetic runs."""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import cache
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch
import typer.main
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

from composcope.evaluation.cases import Case, Part, write_cases
from composcope.experiments import plugins
from composcope.registry import PLUGIN_PREFIX

_FILE = Path(__file__).resolve().parent / "synthetic_runs.py"
TEMPLATE = (
    "{{ bos_token }}{% for m in messages %}{% if m['role'] == 'user' %}Q: {{ m['content'] }}\n"
    "{% else %}A: {{ m['content'] }}{{ eos_token }}{% endif %}{% endfor %}{% if add_generation_prompt %}A:{% endif %}"
)
THINGS = "lamp rope drum kite boot fork coin vase mask oar harp bell tent wok cap jar".split()
N_CASES = 12


@pytest.fixture(autouse=True, scope="session")
def _commands_are_built_once() -> Iterator[None]:
    """Every call of ``main`` builds all commands from the functions' signatures, for a tenth of a second."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(typer.main, "get_command", cache(typer.main.get_command))
        yield


@pytest.fixture(autouse=True)
def _additions_of_plugins_end_with_their_test() -> Iterator[None]:
    """What a test adds with ``--plugin`` is unknown to the tests after it."""
    registries = [plugins._registry(kind) for kind in plugins.KINDS]
    before = [(dict(r.added), dict(r._given)) for r in registries]
    files = {name for name in sys.modules if name.startswith(PLUGIN_PREFIX)}
    yield
    for name in [name for name in sys.modules if name.startswith(PLUGIN_PREFIX) and name not in files]:
        del sys.modules[name]  # manifests record the files that are loaded
    for registry, (added, given) in zip(registries, before, strict=True):
        registry.added, registry._given = added, given


def tag(i: int) -> int:
    return 11 + 3 * i


def planted_cases(n: int = N_CASES) -> list[Case]:
    """Sums of two tags; the model below answers the even ones right and the odd ones wrong."""
    cases = []
    for i in range(n):
        a, b = THINGS[i], THINGS[(i + 1) % len(THINGS)]
        x, y = tag(i), tag((i + 1) % len(THINGS))
        cases.append(
            Case(
                id=f"sum-{i:02d}",
                question=f"What is the tag of {a} plus the tag of {b}?",
                answer=str(x + y),
                answer_type="number",
                parts=(
                    Part(f"What is the tag of {a}?", str(x), "fact", "number"),
                    Part(f"What is the tag of {b}?", str(y), "fact", "number"),
                ),
                benchmark="sums",
                family="sum",
                depth=2,
                operation="plus",
                chance=0.01,
            )
        )
    return cases


def lessons(cases: Sequence[Case]) -> list[tuple[str, str]]:
    """Question and answer as taught: parts right, wholes right for even cases only."""
    pairs = {(p.question, p.answer) for c in cases for p in c.parts}
    pairs |= {(c.question, c.answer if i % 2 == 0 else str(int(c.answer) + 1)) for i, c in enumerate(cases)}
    return sorted(pairs)


def make_tokenizer(texts: Sequence[str]) -> PreTrainedTokenizerFast:
    inner = Tokenizer(models.BPE())
    inner.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)  # type: ignore[assignment]
    inner.decoder = decoders.ByteLevel()  # type: ignore[assignment]
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=420, special_tokens=["<s>", "</s>", "<pad>"], initial_alphabet=alphabet, show_progress=False
    )
    inner.train_from_iterator(texts, trainer)
    found = PreTrainedTokenizerFast(tokenizer_object=inner, bos_token="<s>", eos_token="</s>", pad_token="<pad>")
    found.chat_template = TEMPLATE
    return found


def teach(folder: Path, pairs: Sequence[tuple[str, str]], *, steps: int = 400, seed: int = 0) -> Path:
    """Train a two-layer Llama until it answers every question as taught, and save it."""
    torch.manual_seed(seed)
    tokenizer = make_tokenizer([text for pair in pairs for text in pair])
    config = LlamaConfig(
        vocab_size=len(tokenizer), hidden_size=64, intermediate_size=128, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2, max_position_embeddings=96, tie_word_embeddings=True, bos_token_id=0, eos_token_id=1,
        pad_token_id=2,
    )  # fmt: skip
    model = LlamaForCausalLM(config)
    ids, labels = _batch(tokenizer, pairs)
    optimizer = torch.optim.AdamW(model.parameters(), lr=4e-3)
    for _ in range(steps):
        loss = model(input_ids=ids, labels=labels).loss
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if loss.item() < 2e-3:
            break
    model.eval().save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def _batch(tokenizer: PreTrainedTokenizerFast, pairs: Sequence[tuple[str, str]]) -> tuple[torch.Tensor, torch.Tensor]:
    rows, marks = [], []
    for question, answer in pairs:
        talk = [{"role": "user", "content": question}]
        prompt = tokenizer.apply_chat_template(talk, add_generation_prompt=True, return_dict=False)
        reply = [*tokenizer(f" {answer}", add_special_tokens=False).input_ids, 1]
        rows.append([*prompt, *reply])
        marks.append([-100] * len(prompt) + reply)
    width = max(map(len, rows))
    ids = torch.tensor([r + [2] * (width - len(r)) for r in rows])
    return ids, torch.tensor([m + [-100] * (width - len(m)) for m in marks])


@pytest.fixture(scope="session")
def taught(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model folder: knows every part of ``planted_cases`` and the wholes of the even ones."""
    return teach(tmp_path_factory.mktemp("models") / "taught", lessons(planted_cases()))


@pytest.fixture(scope="session")
def case_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("benchmarks") / "sums.jsonl"
    write_cases(planted_cases(), path)
    return path


@pytest.fixture(scope="session")
def planted() -> Callable[..., list[Case]]:
    """``planted_cases``, for tests that change them."""
    return planted_cases


def _empty_picture(drawing: Any, name: str, out: Path, **options: Any) -> list[Path]:
    out.mkdir(parents=True, exist_ok=True)
    paths = [out / f"{name}{end}" for end in (".svg", "-dark.svg")]
    for path in paths:
        path.write_text('<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"/>')
    return paths


@pytest.fixture(scope="session")
def empty_pictures() -> Callable[[], AbstractContextManager[None]]:
    """Inside, reports have empty picture files: drawing them is most of the work, and few tests look at them.

    What a figure shows, and the numbers of the page's own charts, are made as ever.
    """

    @contextmanager
    def inside() -> Iterator[None]:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(import_module("composcope.experiments.report.write"), "write_figure", _empty_picture)
            yield

    return inside


@pytest.fixture
def undrawn(empty_pictures: Callable[[], AbstractContextManager[None]]) -> Iterator[None]:
    """A whole test with empty picture files; fixtures of its module or session draw theirs."""
    with empty_pictures():
        yield


@pytest.fixture
def environment() -> dict[str, str]:
    """For processes of their own: one thread, no hub, and the package on the path also where it is not installed."""
    site = Path(__file__).resolve().parents[2] / ".site"
    return {**os.environ, "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1", "PYTHONPATH": str(site)}


@pytest.fixture(scope="session")
def synthetic() -> ModuleType:
    """The module ``synthetic_runs``: ``make_run``, ``rate``, ``write_probe``."""
    if "synthetic_runs" not in sys.modules:
        spec = importlib.util.spec_from_file_location("synthetic_runs", _FILE)
        assert spec is not None and spec.loader is not None
        sys.modules["synthetic_runs"] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(sys.modules["synthetic_runs"])
    return sys.modules["synthetic_runs"]
