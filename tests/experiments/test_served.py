"""Models behind servers: by URL, and as a server of our own."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from json_server import running

from composcope import model_loading
from composcope.errors import InputError
from composcope.evaluation.engines import http, vllm
from composcope.evaluation.engines.addresses import address
from composcope.experiments.cli import main
from composcope.experiments.config import Config, Serving
from composcope.experiments.models import target as served
from composcope.experiments.models.resolve import ModelSource
from composcope.experiments.models.target import Loading, loading_of, open_role, sources
from composcope.experiments.run import read_json, read_lines

SERVER = Path(__file__).resolve().parents[1] / "model_server.py"
SITE = Path(__file__).resolve().parents[2] / ".site"
SECRET = "sk-very-secret-0123456789"
Capture = pytest.CaptureFixture[str]


def serve(model: Path) -> AbstractContextManager[str]:
    env = {**os.environ, "VLLM_API_KEY": SECRET, "PYTHONPATH": str(SITE), "HF_HUB_OFFLINE": "1"}
    return running(SERVER.name, "--model", str(model), "--served-model-name", "taught", env=env)


@pytest.fixture(scope="module")
def url(taught: Path) -> Iterator[str]:
    with serve(taught) as url:
        yield url


@pytest.fixture(scope="module")
def here(taught: Path, case_file: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same study with the model in this process."""
    out = tmp_path_factory.mktemp("runs") / "here"
    assert main(["investigate", "-m", str(taught), *study(case_file, out), "--probes", "lookback"]) == 0
    return out


@pytest.fixture
def vllm_python(tmp_path: Path) -> Path:
    """An interpreter whose vllm package is the server of these tests."""
    package = tmp_path / "site" / "vllm" / "entrypoints" / "openai"
    package.mkdir(parents=True)
    (package / "api_server.py").write_text(f"import runpy; runpy.run_path({str(SERVER)!r}, run_name='__main__')\n")
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\nPYTHONPATH={tmp_path / "site"}:{SITE}:{SERVER.parent} exec {sys.executable} "$@"\n')
    python.chmod(python.stat().st_mode | stat.S_IXUSR)
    return python


def study(case_file: Path, out: Path) -> list[str]:
    return ["-b", str(case_file), "-o", str(out), "--format", "plain", "--quiet"]


def outcomes(run: Path) -> dict[tuple[str, str], tuple[str, Any]]:
    return {(row["case"], row["role"]): (row["outcome"], row["answer"]) for row in read_lines(run / "graded.jsonl")}


def answers(run: Path) -> dict[str, tuple[Any, ...]]:
    """Text and token ids by prompt."""
    lines = [json.loads(line) for p in (run / "journal").glob("*.jsonl") for line in p.read_text().splitlines()]
    return {
        raw["request"]["prompt"]: tuple(raw["response"].get(k) for k in ("text", "prompt_ids", "response_ids"))
        for raw in lines
        if "key" in raw
    }


def error_of(capsys: Capture) -> str:
    [line] = [line for line in capsys.readouterr().err.splitlines() if line.startswith("composcope: error: ")]
    return line


@pytest.mark.long
def test_a_server_by_url_gives_the_same_study_and_is_probed_from_its_weights(
    url: str, here: Path, taught: Path, case_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_KEY", SECRET)
    served = ["--engine", "openai", "--base-url", url, "--api-key-env", "MY_KEY", "--probe-model", str(taught)]
    out = tmp_path / "served"
    assert main(["investigate", "-m", "taught", *served, *study(case_file, out), "--probes", "lookback"]) == 0
    assert outcomes(out) == outcomes(here) and answers(out) == answers(here)
    tables = [(run / "probes" / "lookback" / "table.csv").read_text() for run in (out, here)]
    assert tables[0] == tables[1] and len(tables[0].splitlines()) > 3
    everything = b"".join(p.read_bytes() for p in out.rglob("*") if p.is_file())
    assert SECRET.encode() not in everything and b"MY_KEY" in everything


@pytest.mark.long
@pytest.mark.slow
def test_a_run_evaluated_over_http_is_probed_when_the_server_is_gone(
    here: Path, taught: Path, case_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_KEY", SECRET)
    with serve(taught) as url:
        named = ["-m", f"taught@{url}", "--api-key-env", "MY_KEY"]
        assert main(["evaluate", *named, *study(case_file, tmp_path / "r")]) == 0
    assert not (tmp_path / "r" / "probes").exists()
    assert main(["probe", str(tmp_path / "r"), "--probes", "lookback", "--probe-model", str(taught), "--quiet"]) == 0
    probed = [(run / "probes" / "lookback" / "table.csv").read_text() for run in (tmp_path / "r", here)]
    assert probed[0] == probed[1]


@pytest.mark.long
def test_probes_without_weights_or_token_ids_are_refused_before_anything_is_asked(
    url: str, taught: Path, case_file: Path, tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_KEY", SECRET)
    assert main(["investigate", "-m", f"taught@{url}", *study(case_file, tmp_path / "r")]) == 1
    assert "give --probe-model FOLDER, or evaluate only" in error_of(capsys)
    with_weights = ["--api-key-env", "MY_KEY", "--probe-model", str(taught)]
    with_weights += ["--signed-as", "taught"]
    assert main(["investigate", "-m", f"silent@{url}", *with_weights, *study(case_file, tmp_path / "r")]) == 1
    assert "sends no token ids" in error_of(capsys)
    assert not (tmp_path / "r").exists()


@pytest.mark.long
def test_a_wrong_or_missing_key_is_said_without_showing_it(
    url: str, case_file: Path, tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("MY_KEY", raising=False)
    monkeypatch.setenv("OPENAI_API_KEY", SECRET)
    command = ["evaluate", "-m", f"taught@{url}", *study(case_file, tmp_path / "r")]
    assert main([*command, "--api-key-env", "MY_KEY"]) == 1
    assert "--api-key-env MY_KEY: not set in the environment" in error_of(capsys)
    # The key of another service does not go to a server on this machine, though it would have been right here.
    assert main(command) == 1
    message = error_of(capsys)
    assert "Unauthorized" in message and SECRET not in message


@pytest.mark.long
def test_a_vllm_server_is_started_asked_stopped_and_its_model_probed(
    here: Path, taught: Path, case_file: Path, tmp_path: Path, vllm_python: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", SECRET)
    out = tmp_path / "vllm"
    command = ["investigate", "-m", str(taught), *study(case_file, out), "--probes", "lookback", "--engine", "vllm"]
    command += ["--vllm-python", str(vllm_python)]
    assert main(command) == 0
    assert outcomes(out) == outcomes(here) and answers(out) == answers(here)
    manifests = [read_json(run / "manifest.json") for run in (out, here)]
    assert manifests[0]["identity"] == manifests[1]["identity"]
    assert manifests[0]["engine"]["provenance"]["engine"] == "vllm"
    assert (out / "vllm.log").is_file() and "vLLM for" in (out / "log.txt").read_text()
    running = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True).stdout
    assert str(tmp_path) not in running
    started = (out / "log.txt").read_text().count("starting; its log is")
    # Everything is in the journal: the same command does not start it again.
    assert main(command) == 0 and (out / "log.txt").read_text().count("starting; its log is") == started == 1


@pytest.mark.long
def test_an_interpreter_without_vllm_is_said_with_the_install_command(
    taught: Path, case_file: Path, tmp_path: Path, capsys: Capture
) -> None:
    for python, needle in ((sys.executable, "cannot import vllm"), (tmp_path / "none", "is not a Python interp")):
        command = ["evaluate", "-m", str(taught), *study(case_file, tmp_path / "r"), "--engine", "vllm"]
        assert main([*command, "--vllm-python", str(python)]) == 1
        message = error_of(capsys)
        assert needle in message and "-m venv .venv-vllm && .venv-vllm/bin/pip install vllm" in message
    assert not (tmp_path / "r").exists()


def test_a_dry_run_counts_the_asks_of_a_model_that_only_a_server_knows(case_file: Path, capsys: Capture) -> None:
    command = ["evaluate", "-m", "any@http://127.0.0.1:9/v1", "-b", str(case_file), "--dry-run"]
    assert main(command) == 0
    assert "asks: " in capsys.readouterr().out


@pytest.mark.parametrize(
    ("model", "options", "needle"),
    [
        ("m", {"engine": "openai", "base_url": "http://me:secret@host/v1"}, "base_url: holds a user name, a password"),
        ("m@http://host/v1?key=secret", {}, "model: holds a user name, a password or a query"),
        ("@http://host/v1", {}, "the model's name is missing"),
        ("m", {"engine": "openai", "base_url": "host:8000"}, "base_url: not a server URL"),
        ("m", {"base_url": "http://host/v1"}, "base_url is for engine openai, and the engine is transformers"),
        ("m@http://host/v1", {"engine": "vllm"}, "names a server already"),
        ("m@http://host/v1", {"engine": "openai", "base_url": "http://other/v1"}, "names a server already"),
        ("m@http://host/v1", {"engine": "ray"}, "probe_model"),
    ],
)
def test_options_that_do_not_fit_are_said(model: str, options: dict[str, Any], needle: str) -> None:
    with pytest.raises(InputError, match=needle) as said:
        Config(model=model, benchmark="cases.jsonl", serving=Serving(**options))
    assert "secret" not in str(said.value)


@pytest.mark.parametrize(
    ("spec", "needle"),
    [
        ("http://host/v1", "--teacher http://host/v1: the model's name is missing"),
        ("@http://host/v1", "the model's name is missing"),
        ("m@http://me:secret@host/v1", "--teacher: holds a user name, a password or a query"),
        ("m@http://token@host/v1", "--teacher: holds a user name"),
        ("m@http://host:99999/v1", "--teacher: not a server URL"),
    ],
)
def test_roles_read_addresses_as_the_target_does(spec: str, needle: str) -> None:
    for read in (open_role, address):
        with pytest.raises(InputError, match=needle) as said:
            read(spec, "--teacher")
        assert "secret" not in str(said.value)
    assert address("org/m@2@https://host/v1") == ("org/m@2", "https://host/v1") and address("org/m@2") is None


@pytest.mark.parametrize(
    ("options", "folder"),
    [
        ({"model": "org/m@http://host:8000/v1", "benchmark": "cases.jsonl"}, "m--cases"),
        ({"model": "/models/m/", "benchmark": "d/cases.v2.json", "protocol": "stad x"}, "m--cases.v2--stad-x"),
        ({"model": "organism:low", "benchmark": "organism:mixed", "shard": "2/8"},
         "organism-low--organism-mixed--shard-2-of-8"),
    ],
)  # fmt: skip
def test_the_run_folder_is_named_after_the_model_and_not_the_server(options: dict[str, str], folder: str) -> None:
    assert Config.model_validate(options).default_folder() == Path("runs") / folder


def test_a_model_is_loaded_as_its_configuration_says() -> None:
    how: dict[str, Any] = {"prompting": "raw", "batch_size": 3, "dtype": "float16", "device": "cpu"}
    given = Config(model="m", benchmark="b", serving=Serving(engine="openai", base_url="http://h/v1"), probes=(), **how)
    assert loading_of(given) == Loading("m", "http://h/v1", given.serving, **how, probed=False)
    assert loading_of(Config(model="m@http://h/v1", benchmark="b")) == Loading("m", "http://h/v1")


@pytest.mark.long
def test_workers_load_the_weights_of_a_model_that_a_server_answered_for(taught: Path) -> None:
    model = "m@http://host/v1"
    on_workers = Config(model=model, benchmark="cases.jsonl", serving=Serving(engine="ray", probe_model=str(taught)))
    loading = loading_of(on_workers)
    assert not loading.is_served and loading_of(Config(model=model, benchmark="cases.jsonl")).is_served
    answering, probed = sources(loading, print)
    assert answering == probed and answering.location == str(taught)


class Engine:
    """A server that answers nothing and remembers what was asked of it."""

    def __init__(self, *given: Any, **options: Any) -> None:
        self.given, self.options, self.checked, self.closed = given, options, 0, 0
        self.name, self.answered_as = "server", "another"
        self.capabilities = SimpleNamespace(token_ids=True, chat=True)
        self.identity = {"model": "m"}
        self.provenance = {"engine": "openai", "server": "s", "concurrency": 3, "vllm": "1"}

    def check(self) -> None:
        self.checked += 1

    def close(self) -> None:
        self.closed += 1


@pytest.mark.parametrize(
    ("counted", "prompting", "chat", "checked", "asked"),
    [(False, None, True, 1, "chat"), (False, None, False, 1, "raw"), (False, "raw", True, 1, "raw"),
     (True, "chat", True, 0, "chat"), (True, None, True, 1, "chat")],
)  # fmt: skip
def test_a_server_is_checked_unless_its_run_is_counted_and_says_how_it_is_prompted(
    counted: bool, prompting: str | None, chat: bool, checked: int, asked: str, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    made: list[Engine] = []

    def engine(*given: Any, **options: Any) -> Engine:
        made.append(Engine(*given, **options))
        made[-1].capabilities.chat = chat
        return made[-1]

    monkeypatch.setattr(http, "HttpEngine", engine)
    monkeypatch.setenv("MY_KEY", SECRET)
    if counted:
        (tmp_path / "graded.jsonl").touch()
    serving = Serving(engine="openai", base_url="http://host/v1", concurrency=7, api_key_env="MY_KEY", signed_as="a, b")
    loading = Loading("m", "http://host/v1", serving, prompting, probed=False)
    said: list[str] = []
    found = served.load_from_server(loading, tmp_path, said.append)
    assert found.source == ModelSource("m", "m", False)
    (one,) = made
    assert one.given == ("http://host/v1", "m") and one.checked == checked and found.prompting == asked
    assert one.options == {"api_key": SECRET, "concurrency": 7, "check_first": True, "signed_as": serving.names}
    assert found.tokenizer is None and "reports the model 'another'" in said[0]
    assert found.facts() == {"name": "m", "prompting": asked, "model": "m"}
    assert found.numerics() == {"engine": "openai", "server": "s", "vllm": "1"}
    with pytest.raises(InputError, match="give --probe-model FOLDER"):
        found.open_model()
    found.close()
    assert one.closed == 1


@pytest.mark.parametrize(
    ("probed", "weights", "token_ids", "said"),
    [(True, False, True, "probes need its weights"), (True, True, False, "sends no token ids"),
     (True, True, None, None), (False, True, False, None), (False, False, False, None)],
)  # fmt: skip
def test_a_server_is_refused_for_what_the_probes_need_and_only_where_there_are_any(
    probed: bool, weights: bool, token_ids: bool | None, said: str | None, monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:  # fmt: skip
    def engine(*given: Any, **options: Any) -> Engine:
        made = Engine()
        made.capabilities.token_ids = token_ids
        return made

    monkeypatch.setattr(http, "HttpEngine", engine)
    monkeypatch.setattr(model_loading, "load_tokenizer", lambda location: location)
    monkeypatch.setattr(served, "resolve_model", lambda name, say: ModelSource(name, f"/{name}", True))
    serving = Serving(engine="openai", base_url="http://host/v1", probe_model="own" if weights else None)
    loading = Loading("m", "http://host/v1", serving, dtype="float16", device="cpu", probed=probed)
    here = ModelSource("own", "/own", True) if weights else None
    with nullcontext() if said is None else pytest.raises(InputError, match=said):
        found = served.load_from_server(loading, tmp_path, print)
        assert (found.tokenizer, found.weights) == (here and "/own", here)
        assert (found.dtype, found.device) == ("float16", "cpu")
        assert found.facts().get("probe_model") == (here and "own")


def test_a_server_of_ours_gets_every_option_and_logs_into_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: dict[str, Any] = {}
    monkeypatch.setattr(vllm, "serve", lambda location, **options: given.update(options, location=location) or Engine())
    monkeypatch.setattr(model_loading, "load_tokenizer", lambda location: SimpleNamespace(chat_template=location))
    options = {"vllm_python": "/py", "vllm_args": "--max-model-len 9", "vllm_timeout": 5.0, "concurrency": 4}
    monkeypatch.setattr(served, "resolve_model", lambda name, say: ModelSource(name, f"/{name}", True))
    loading = Loading("m", serving=Serving(engine="vllm", **options), dtype="float16")
    found = served.load_own_server(loading, tmp_path, print)
    assert given == {"location": "/m", "python": "/py", "log": tmp_path / "vllm.log", "dtype": "float16", "say": print,
                     "options": ["--max-model-len", "9"], "startup_timeout": 5.0, "concurrency": 4}  # fmt: skip
    assert found.tokenizer.chat_template == "/m" and found.prompting == "chat"
    weighed = replace(loading, serving=Serving(engine="vllm", probe_model="o", **options))
    other = served.load_own_server(weighed, tmp_path, print)
    assert other.tokenizer.chat_template == "/o" and other.weights == ModelSource("o", "/o", True)
