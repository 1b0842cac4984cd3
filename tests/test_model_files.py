"""GGUF files made here, tensor by tensor, so that what is read back is known."""

from __future__ import annotations

import json
import socket
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from composcope import model_files
from composcope.errors import ModelError
from composcope.evaluation.engines.local import LocalEngine
from composcope.experiments.models.resolve import resolve_model
from composcope.hooks import load_model
from composcope.model_loading import load

gguf = pytest.importorskip("gguf")

WIDTH, NEURONS, HEADS, LAYERS, BLOCK = 32, 64, 2, 2, gguf.GGMLQuantizationType
TOKENS = [*(chr(c) for c in range(33, 127)), "Ġ", "ab", "<s>", "</s>"]
TEMPLATE = "{% for m in messages %}{{ m['content'] }}{% endfor %}"


def weights(seed: int = 0) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)

    def draw(*shape: int) -> np.ndarray:
        return rng.normal(0, 0.2, shape).astype(np.float32)

    out = {"token_embd.weight": draw(len(TOKENS), WIDTH), "output_norm.weight": np.ones(WIDTH, np.float32)}
    for i in range(LAYERS):
        names = {"attn_q": WIDTH, "attn_k": WIDTH, "attn_v": WIDTH, "attn_output": WIDTH}
        out |= {f"blk.{i}.{name}.weight": draw(rows, WIDTH) for name, rows in names.items()}
        out |= {f"blk.{i}.{n}.weight": draw(NEURONS, WIDTH) for n in ("ffn_gate", "ffn_up")}
        out |= {f"blk.{i}.ffn_down.weight": draw(WIDTH, NEURONS)}
        out |= {f"blk.{i}.{n}.weight": np.ones(WIDTH, np.float32) for n in ("attn_norm", "ffn_norm")}
    return out


def write(
    path: Path, *, arch: str = "llama", packed: bool = False, tokenizer: bool = True, template: str | None = TEMPLATE,
    parts: int | None = None,
) -> Path:  # fmt: skip
    writer = gguf.GGUFWriter(path, arch)
    writer.add_context_length(64)
    writer.add_embedding_length(WIDTH)
    writer.add_block_count(LAYERS)
    writer.add_feed_forward_length(NEURONS)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(HEADS)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_freq_base(10000.0)
    writer.add_vocab_size(len(TOKENS))
    if parts is not None:
        writer.add_uint16("split.count", parts)
    if tokenizer:
        writer.add_tokenizer_model("gpt2")
        writer.add_token_list(TOKENS)
        writer.add_token_types([1] * (len(TOKENS) - 2) + [3, 3])
        writer.add_token_merges(["a b"])
        writer.add_bos_token_id(len(TOKENS) - 2)
        writer.add_eos_token_id(len(TOKENS) - 1)
        if template is not None:
            writer.add_chat_template(template)
    for name, tensor in weights().items():
        if packed and tensor.ndim == 2:
            writer.add_tensor(name, gguf.quants.quantize(tensor, BLOCK.Q8_0), raw_dtype=BLOCK.Q8_0)
        else:
            writer.add_tensor(name, tensor)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("COMPOSCOPE_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def heads_apart(rows: torch.Tensor) -> torch.Tensor:
    """llama.cpp stores the halves of each rotary head interleaved."""
    return rows.view(HEADS, WIDTH // HEADS // 2, 2, WIDTH).transpose(1, 2).reshape(WIDTH, WIDTH)


@pytest.mark.parametrize("packed", [False, True])
def test_the_weights_of_a_gguf_file_come_out_exactly(tmp_path: Path, packed: bool) -> None:
    model, _ = load(write(tmp_path / "tiny.gguf", packed=packed))
    state = model.state_dict()
    for name, tensor in weights().items():
        want = torch.from_numpy(tensor)
        if packed and tensor.ndim == 2:
            want = torch.from_numpy(gguf.quants.dequantize(gguf.quants.quantize(tensor, BLOCK.Q8_0), BLOCK.Q8_0))
        here = {
            "token_embd.weight": "model.embed_tokens.weight",
            "output_norm.weight": "model.norm.weight",
            "blk.1.attn_q.weight": "model.layers.1.self_attn.q_proj.weight",
            "blk.1.ffn_down.weight": "model.layers.1.mlp.down_proj.weight",
        }.get(name)
        if here is not None:
            assert torch.equal(state[here], heads_apart(want) if "attn_q" in name else want), name
    assert model.dtype == torch.float32 and not hasattr(model.config, "quantization_config")


def test_hooks_engine_and_command_line_open_the_same_model(tmp_path: Path) -> None:
    file = write(tmp_path / "tiny.gguf")
    said: list[str] = []
    source = resolve_model(str(file), said.append)
    assert source.name == str(file) and len(said) == 1 and "tiny.gguf" in said[0]
    lm, engine = load_model(file), LocalEngine(file)
    ids = torch.tensor([[3, 4, 5]])
    assert torch.equal(lm.run(ids).logits, engine.model(ids).logits)
    assert engine.tokenizer.chat_template == TEMPLATE
    assert lm.eos_ids == (len(TOKENS) - 1,)


def test_a_second_start_converts_nothing_and_a_folder_with_one_file_means_that_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "models"
    folder.mkdir()
    file = write(folder / "tiny.gguf")
    first = model_files.location(file)
    monkeypatch.setattr(model_files, "_convert", lambda *_: pytest.fail("converted again"))
    said: list[str] = []
    assert model_files.location(folder, said.append) == first and said == []
    assert Path(first).stat().st_mode & 0o777 == 0o755, "others may read what is shared"


def test_a_conversion_that_is_killed_leaves_nothing_that_looks_like_a_model(
    tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = write(tmp_path / "tiny.gguf")

    def killed(path: Path, folder: Path) -> None:
        (folder / "model.safetensors").write_bytes(b"half")
        raise KeyboardInterrupt

    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr(model_files, "_convert", killed)
        model_files.location(file)
    assert list((cache / "gguf").iterdir()) == []
    assert json.loads((Path(model_files.location(file)) / "config.json").read_text())["model_type"] == "llama"


def test_a_file_without_chat_template_is_asked_as_completions(tmp_path: Path) -> None:
    from composcope.experiments.models.target import choose_prompting

    _, tokenizer = load(write(tmp_path / "base.gguf", template=None))
    assert choose_prompting(None, tokenizer) == "raw"


def text_file(path: Path) -> Path:
    path.write_text("this is no model")
    return path


def cut(path: Path, keep: float) -> Path:
    whole = write(path).read_bytes()
    path.write_bytes(whole[: int(len(whole) * keep)])
    return path


def unknown_quantization(path: Path) -> Path:
    whole = bytearray(write(path).read_bytes())
    at = whole.index(b"blk.0.attn_q.weight") + len(b"blk.0.attn_q.weight") + 4 + 2 * 8
    whole[at : at + 4] = (213).to_bytes(4, "little")
    path.write_bytes(whole)
    return path


def two_files(path: Path) -> Path:
    folder = path.with_suffix("")
    folder.mkdir()
    for name in ("a.gguf", "b.gguf"):
        write(folder / name)
    return folder


BAD: dict[str, tuple[Any, str]] = {
    "missing": (lambda p: p, "no such file"),
    "text": (text_file, "not a GGUF file"),
    "cut in the header": (lambda p: cut(p, 0.02), "damaged or cut off"),
    "cut in the weights": (lambda p: cut(p, 0.8), "cut off"),
    "quantization": (unknown_quantization, "213"),
    "split": (lambda p: write(p, parts=2), "2 parts"),
    "no tokenizer": (lambda p: write(p, tokenizer=False), "tokenizer.ggml.tokens"),
    "architecture": (lambda p: write(p, arch="clip"), "clip"),
    "two": (two_files, "a.gguf, b.gguf"),
}


@pytest.mark.parametrize("case", BAD)
def test_what_cannot_be_read_is_one_line_that_names_the_file(tmp_path: Path, cache: Path, case: str) -> None:
    make, fact = BAD[case]
    path = make(tmp_path / "model.gguf")
    for opened in (load_model, LocalEngine, lambda p: resolve_model(str(p))):
        with pytest.raises(ModelError) as error:
            opened(path)
        assert str(path) in str(error.value) and fact in str(error.value) and "\n" not in str(error.value)
    assert not (cache / "gguf").exists() or list((cache / "gguf").iterdir()) == []


def test_too_little_room_is_said_before_anything_is_written(
    tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import shutil

    file = write(tmp_path / "tiny.gguf")
    usage = shutil.disk_usage(tmp_path)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage._replace(free=10))
    with pytest.raises(ModelError, match="COMPOSCOPE_CACHE"):
        model_files.location(file)
    assert list((cache / "gguf").iterdir()) == []
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage._replace(free=4_390_000_000))
    monkeypatch.setattr(model_files, "_check", lambda _: 4_000_000_000)  # and a tenth for what is beside the weights
    with pytest.raises(ModelError, match=r"needs 4\.0 GB .* where 4\.4 GB are free"):
        model_files.location(file)


def test_a_file_that_is_no_model_an_unknown_name_and_a_closed_hub_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "model.bin").write_text("x")
    (tmp_path / "qwen3").mkdir()
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    for name, facts in (
        (str(tmp_path / "model.bin"), ("is a file", ".gguf")),
        (str(tmp_path / "qwen"), ("no such folder",)),
        ("organism:twin", ("no such folder", "resolve_model('organism:twin')")),
        ("owner/name-of-none", ("HF_HUB_OFFLINE", "cache")),
        (str(tmp_path / "qwen3"), ("no config.json",)),
    ):
        with pytest.raises(ModelError) as error:
            model_files.location(name)
        assert str(error.value).startswith(f"{name}: ") and all(f in str(error.value) for f in facts), error.value
    (tmp_path / "qwen3" / "config.json").write_text("{}")
    with pytest.raises(ModelError, match="no weights"):
        model_files.location(tmp_path / "qwen3")
    (tmp_path / "qwen3" / "model.safetensors").write_text("x")
    with pytest.raises(ModelError, match=f"no config.json; .*, such as {tmp_path / 'qwen3'}$"):
        model_files.location(tmp_path)
    assert model_files.location(tmp_path / "qwen3") == str(tmp_path / "qwen3")
    (tmp_path / "twin.GGUF").write_text("x")
    assert f"'{tmp_path}/qwen3'" in model_files.beside(str(tmp_path / "qwen"))
    assert f"'{tmp_path}/twin.GGUF'" in model_files.beside(str(tmp_path / "twim.GGUF"))
    assert model_files.beside(str(tmp_path / "ab.GGUF")) == "", "an ending makes no two names alike"
    assert model_files.find_gguf(tmp_path / "twin.GGUF") == tmp_path / "twin.GGUF"
    assert model_files.beside(str(tmp_path / "model")) == "" == model_files.beside(str(tmp_path / "none" / "qwen"))


@pytest.mark.parametrize(
    ("offline", "proxy", "found", "why"),
    [("yes", {}, True, "HF_HUB_OFFLINE"), ("0", {}, True, None), ("", {}, False, "cannot be found"),
     ("", {"https": "x"}, False, None), ("", {"all": "x"}, False, None), ("", {"http": "x"}, False, "cannot be found")],
)  # fmt: skip
def test_the_hub_is_closed_where_it_is_switched_off_or_has_no_address(
    offline: str, proxy: dict[str, str], found: bool, why: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    def address(host: str, port: int) -> None:
        if not found:
            raise socket.gaierror("no")

    monkeypatch.setenv("HF_HUB_OFFLINE", offline)
    monkeypatch.setattr(model_files, "getproxies", lambda: proxy)
    monkeypatch.setattr(model_files.socket, "getaddrinfo", address)
    said = model_files.closed_hub()
    assert (said is None) == (why is None) and (why or "") in (said or "")


def test_the_cache_is_where_the_environment_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COMPOSCOPE_CACHE", "~/mine")
    assert model_files._cache() == Path.home() / "mine" / "gguf"
    monkeypatch.delenv("COMPOSCOPE_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert model_files._cache() == tmp_path / "composcope" / "gguf"
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert model_files._cache() == Path.home() / ".cache" / "composcope" / "gguf"


def test_two_processes_that_convert_one_file_at_once_keep_the_first_folder(
    tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = write(tmp_path / "tiny.gguf")

    def convert(path: Path, folder: Path) -> None:
        (folder / "config.json").write_text("ours")

    def taken(made: Path, folder: Path) -> None:
        if other:
            folder.mkdir()
            (folder / "config.json").write_text("theirs")
        raise OSError(39, "Directory not empty")

    monkeypatch.setattr(model_files, "_convert", convert)
    monkeypatch.setattr(model_files, "put_in_place", taken)
    for other in (False, True):
        if other:
            folder = model_files.dequantized(file)
            assert (folder / "config.json").read_text() == "theirs"
        else:
            with pytest.raises(OSError, match="not empty"):
                model_files.dequantized(file)
        assert len(list((cache / "gguf").iterdir())) == other, "what was made is gone"


def test_a_file_that_cannot_be_read_without_weights_or_without_the_package_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = write(tmp_path / "tiny.gguf")
    with pytest.raises(ModelError, match=f"{tmp_path}: cannot be read"):
        model_files._digest(tmp_path)
    size, last = file.stat().st_size, SimpleNamespace(name="last", data_offset=90, n_bytes=10, n_elements=5)
    first = SimpleNamespace(name="first", data_offset=0, n_bytes=90, n_elements=7)

    def reader(*tensors: Any) -> None:
        found = SimpleNamespace(tensors=list(tensors), get_field=lambda name: None if "split" in name else name)
        monkeypatch.setattr(gguf, "GGUFReader", lambda path: found)

    reader()
    with pytest.raises(ModelError, match=f"{file}: holds no weights"):
        model_files._check(file)
    last.data_offset = size - 10
    reader(last, first)
    assert model_files._check(file) == 4 * 12
    last.n_bytes = 11
    with pytest.raises(ModelError, match=f"{file}: .*'last'"):
        model_files._check(file)
    monkeypatch.setitem(sys.modules, "gguf", None)
    with pytest.raises(ModelError, match=rf"{file}: .*composcope\[gguf\]"):
        model_files._check(file)
