"""The identity of a model: what it is made of, and what changes nothing."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from composcope.errors import ModelError
from composcope.evaluation import identity


def test_a_folder_has_the_identity_of_the_model_loaded_from_it(
    tmp_path: Path, make_llama: Callable[..., Any], tokenizer: Any
) -> None:
    model = make_llama()
    model.save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    found = identity.folder_identity(tmp_path)
    assert found == identity.local_identity(model, tokenizer, tmp_path)
    assert list(found) == ["weights", "config", "tokenizer", "chat_template"] and len(set(found.values())) == 4
    in_memory = identity.local_identity(model, tokenizer)
    assert {k for k in found if in_memory[k] != found[k]} == {"weights"}
    assert in_memory["weights"] == identity.model_weights(make_llama()) != identity.model_weights(make_llama(1))
    assert identity.model_weights(make_llama().bfloat16()) != in_memory["weights"]
    seen = set()
    for name, dtype, shape in (
        ("w", torch.float16, (2, 3)), ("w", torch.bfloat16, (2, 3)), ("w", torch.int16, (2, 3)),
        ("w", torch.float16, (3, 2)), ("v", torch.float16, (2, 3)),
    ):  # fmt: skip
        same_bytes = torch.arange(6, dtype=torch.int16).view(dtype).reshape(shape)
        seen.add(identity.model_weights(SimpleNamespace(state_dict=lambda n=name, t=same_bytes: {n: t})))
    assert len(seen) == 5, "name, dtype and shape count beside the bytes"


def test_a_folder_without_weights_or_with_a_damaged_configuration_is_named(
    tmp_path: Path, make_llama: Callable[..., Any]
) -> None:
    with pytest.raises(ModelError) as caught:
        identity.folder_identity(tmp_path)
    assert str(tmp_path) in str(caught.value) and "safetensors" in str(caught.value)
    make_llama().save_pretrained(tmp_path)
    for damaged in (False, True):  # without a tokenizer, then without a configuration that can be read
        if damaged:
            (tmp_path / "config.json").write_text("{")
        with pytest.raises(ModelError) as caught:
            identity.folder_identity(tmp_path)
        assert str(caught.value).startswith(str(tmp_path)) and "\n" not in str(caught.value)


def test_the_files_of_the_weights_count_by_name_and_content(tmp_path: Path) -> None:
    def weights(**files: str) -> str:
        for old in tmp_path.iterdir():
            old.unlink()
        for name, content in files.items():
            (tmp_path / f"{name}.safetensors").write_text(content)
        (tmp_path / "other.bin").write_text("".join(files))
        return identity.folder_weights(tmp_path)

    first = weights(a="one", b="two")
    assert weights(b="two", a="one") == first
    assert len({first, weights(a="two", b="one"), weights(a="one"), weights(a="one", c="two")}) == 4


def test_how_a_configuration_was_written_changes_nothing() -> None:
    config = {
        "hidden_size": 8,
        "dtype": "float32",
        "use_cache": True,
        "_name_or_path": "a",
        "transformers_version": "5",
    }
    noise = {
        "dtype": "bfloat16",
        "torch_dtype": "x",
        "use_cache": False,
        "_name_or_path": "b",
        "_attn_implementation": "e",
    }
    assert identity.config_hash(config) == identity.config_hash(noise | {"hidden_size": 8})
    both = {"hidden_size": 8, "vocab_size": 9}
    assert identity.config_hash(both) == identity.config_hash(dict(reversed(both.items())))
    assert identity.config_hash(config) != identity.config_hash(config | {"hidden_size": 9})


def test_a_tokenizer_is_its_vocabulary_and_its_special_tokens(make_tokenizer: Callable[..., Any]) -> None:
    one, padding = make_tokenizer(), make_tokenizer(pad=True)
    before = identity.tokenizer_hash(one)
    one.backend_tokenizer.enable_truncation(3)
    assert identity.tokenizer_hash(one) == before != identity.tokenizer_hash(padding)

    def slow(vocabulary: dict[str, int], **special: str) -> str:
        return identity.tokenizer_hash(SimpleNamespace(get_vocab=lambda: vocabulary, special_tokens_map=special))

    def fast(definition: str) -> str:
        backend = SimpleNamespace(to_str=lambda: definition)
        return identity.tokenizer_hash(SimpleNamespace(backend_tokenizer=backend, special_tokens_map={}))

    assert slow({"a": 0, "b": 1}, eos_token="b") == slow({"b": 1, "a": 0}, eos_token="b")
    assert slow({}, eos_token="b", pad_token="a") == slow({}, pad_token="a", eos_token="b")
    assert (
        fast('{"model": 1, "decoder": 2, "padding": 3}') == fast('{"decoder": 2, "model": 1}') != fast('{"model": 1}')
    )
    assert len({slow({"a": 0, "b": 1}), slow({"a": 1, "b": 0}), slow({"a": 0, "b": 1}, eos_token="b")}) == 3
    plain = SimpleNamespace(chat_template="t")
    before = "982be388d00d1608487cf695e3065c79"  # as in the journals of earlier versions
    assert identity.chat_template_hash(plain).startswith(before)
