from __future__ import annotations

import itertools
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from composcope.errors import ModelError
from composcope.evaluation.asks import Ask
from composcope.evaluation.engines import managed, supervisor, transport, vllm
from composcope.evaluation.engines.managed import Launch, ManagedEngine, ManagedServer

SERVER = Path(__file__).resolve().parents[2] / "moody_server.py"
# Prompts are counted by hash over several lives of the server.
ENV = {**os.environ, "PYTHONHASHSEED": "0"}


@pytest.fixture(autouse=True)
def _requests_are_repeated_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transport, "_BACKOFF_SECONDS", 0.01)


def launch(folder: Path, *moods: str, **options: Any) -> Launch:
    given = {"env": ENV, "startup_timeout": 30.0, "grace": 1.0, "say": lambda line: None, **options}
    return Launch(
        "the server", lambda port: [sys.executable, str(SERVER), str(port), str(folder), *moods],
        folder / "server.log", **given,
    )  # fmt: skip


def lives(folder: Path) -> list[int]:
    return [int(p.name.removeprefix("life-")) for p in folder.glob("life-*")]


def running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def gone(folder: Path, seconds: float = 60) -> bool:
    end = time.monotonic() + seconds
    while any(running(pid) for pid in lives(folder)) and time.monotonic() < end:
        time.sleep(0.05)
    return not any(running(pid) for pid in lives(folder))


@pytest.mark.parametrize("proxy", ["", "http://127.0.0.1:9"])
def test_started_waited_for_asked_and_stopped_whatever_proxy_the_environment_names(
    proxy: str, tmp_path: Path, make_ask: Callable[..., Ask], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("http_proxy", "all_proxy", "no_proxy"):
        monkeypatch.setenv(name, proxy if name != "no_proxy" else "")
    said: list[str] = []
    asks = [make_ask(f"q{i}", case=str(i)) for i in range(50)]
    with ManagedServer(launch(tmp_path, say=said.append)) as server:
        server.start()
        server.start()
        found = {a.case: r.text for a, r in ManagedEngine(server, "m").answer(asks)}
        assert found == {a.case: f"answer to {a.prompt}" for a in asks}
        assert server.generation == len(lives(tmp_path)) == 1 and any(map(running, lives(tmp_path)))
    assert not any(map(running, lives(tmp_path)))
    assert "starting" in said[0] and str(tmp_path / "server.log") in said[0] and "ready after" in said[-1]


@pytest.mark.parametrize("moods", [("deaf", "child"), ("child",)])
def test_what_ignores_the_signal_and_what_it_left_behind_is_gone_too(tmp_path: Path, moods: tuple[str, ...]) -> None:
    with ManagedServer(launch(tmp_path, *moods, grace=0.5)) as server:
        server.start()
        assert len(lives(tmp_path)) == 2
    assert not any(map(running, lives(tmp_path)))


def test_a_crash_in_the_middle_loses_no_ask(tmp_path: Path, make_ask: Callable[..., Ask]) -> None:
    said: list[str] = []
    asks = [make_ask(f"q{i}" + ("[crash:1]" if i in (20, 60) else ""), case=str(i)) for i in range(100)]
    with ManagedServer(launch(tmp_path, "child", say=said.append)) as server:
        server.start()
        found = {a.case: r.text for a, r in ManagedEngine(server, "m", concurrency=8).answer(asks)}
        assert found == {a.case: f"answer to {a.prompt}" for a in asks}
        assert server.crashes == 2 and len(lives(tmp_path)) == 6
        assert sum(map(running, lives(tmp_path))) == 2
    assert any("crashed (exit code 3: RuntimeError: the engine has died); starting it again" in line for line in said)


def test_a_killed_server_is_replaced(tmp_path: Path, make_ask: Callable[..., Ask]) -> None:
    with ManagedServer(launch(tmp_path)) as server:
        server.start()
        engine = ManagedEngine(server, "m", concurrency=2)
        texts = []
        for n, (_, response) in enumerate(engine.answer([make_ask(f"q{i}") for i in range(60)])):
            texts.append(response.text)
            if n == 20:
                os.kill(lives(tmp_path)[0], signal.SIGKILL)
        assert sorted(texts) == sorted(f"answer to q{i}" for i in range(60)) and len(lives(tmp_path)) == 2


def test_an_ask_that_kills_the_server_every_time_is_given_up_and_the_others_are_answered(
    tmp_path: Path, make_ask: Callable[..., Ask]
) -> None:
    asks = [make_ask("[crash:99]", case="poison"), *(make_ask(f"q{i}", case=str(i)) for i in range(20))]
    with ManagedServer(launch(tmp_path)) as server:
        server.start()
        found = {a.case: r for a, r in ManagedEngine(server, "m", concurrency=1).answer(asks)}
    assert found["poison"].finish_reason == "error" and len(found) == 21
    assert all(r.finish_reason == "stop" for case, r in found.items() if case != "poison")


def test_a_server_that_keeps_crashing_ends_the_run(tmp_path: Path, make_ask: Callable[..., Ask]) -> None:
    with ManagedServer(launch(tmp_path, restarts=1)) as server:
        server.start()
        with pytest.raises(ModelError, match=r"crashed 2 times \(.*engine has died\).*run the same command again"):
            list(ManagedEngine(server, "m", concurrency=1).answer([make_ask("[crash:99]")]))


def test_a_server_that_ends_while_starting_says_its_last_words(tmp_path: Path) -> None:
    (tmp_path / "server.log").write_text("RuntimeError: of an earlier run\n")
    with pytest.raises(ModelError, match=r"ended while starting \(exit code 1: ValueError: No available memory"):
        ManagedServer(launch(tmp_path, "dead")).start()
    assert gone(tmp_path, 0)


@pytest.mark.parametrize(("log", "said"), [
    ("ERROR 01:02 ValueError: no memory\nRuntimeError: See root cause above.\nbye", "ValueError: no memory"),
    ("RuntimeError: See root cause above.", "RuntimeError: See root cause above."),
    ("KeyError: 'a'\nINFO Error: retried\nWARNING Error: ignored", "KeyError: 'a'"),
    ("loading\nKilled\n\n", "Killed"), ("", "its log is empty"),
])  # fmt: skip
def test_the_last_words_of_a_server_are_its_first_cause(tmp_path: Path, log: str, said: str) -> None:
    server = ManagedServer(launch(tmp_path, "dead"))
    server.launch.log.write_text(log)
    assert server._last_words().partition(": ")[2] == said
    with server.launch.log.open("a") as file:
        server._log_start = file.tell()
        file.write("of this start\n")
    assert server._last_words().partition(": ")[2] == "of this start", "an earlier start's errors are past"


@pytest.mark.parametrize("mood", ["never", "odd"])
def test_a_server_that_is_never_healthy_is_stopped(mood: str, tmp_path: Path) -> None:
    server = ManagedServer(launch(tmp_path, mood, startup_timeout=0.5))
    with pytest.raises(ModelError, match=r"not ready after 0\.5 s .*see .*server\.log, or give it more time"):
        server.start()
    assert not server.alive and gone(tmp_path, 0)


def test_a_program_that_is_not_there_is_said(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"ended while starting .*No such file"):
        ManagedServer(
            Launch("it", lambda port: [str(tmp_path / "nothing")], tmp_path / "log", say=lambda line: None)
        ).start()


def test_closing_while_it_starts_ends_the_wait(tmp_path: Path) -> None:
    closing = list[threading.Thread]()

    def say(line: str) -> None:
        closing.append(threading.Thread(target=server.close))
        closing[-1].start()

    server = ManagedServer(launch(tmp_path, "never", startup_timeout=3600.0, say=say))
    with pytest.raises(ModelError, match="was stopped"):
        server.start()
    assert len(closing) == 1 and not server.alive and gone(tmp_path)


OWNER = """
import sys, time
from pathlib import Path
sys.path.insert(0, sys.argv[3])
import test_managed as t
with t.ManagedServer(t.launch(Path(sys.argv[1]), *sys.argv[2].split(","))) as server:
    server.start()
    print("ready", flush=True)
    time.sleep(600)
"""


@pytest.mark.parametrize(
    "number",
    [
        signal.SIGKILL,
        pytest.param(signal.SIGINT, marks=pytest.mark.long),
        pytest.param(signal.SIGTERM, marks=pytest.mark.slow),
    ],
)
def test_the_server_dies_with_its_owner_however_that_ends(tmp_path: Path, number: signal.Signals) -> None:
    command = [sys.executable, "-c", OWNER, str(tmp_path), "child,deaf", str(Path(__file__).parent)]
    owner = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    assert owner.stdout is not None and owner.stdout.readline() == "ready\n"
    assert len(lives(tmp_path)) == 2 and all(map(running, lives(tmp_path)))
    owner.send_signal(number)
    owner.wait(120)
    assert gone(tmp_path)


def test_a_vllm_server_comes_back_with_the_same_weights_or_not_at_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    weights = tmp_path / "model.safetensors"
    weights.write_bytes(b"first")
    (tmp_path / "config.json").write_text('{"torch_dtype": "float32"}')
    versions = {"vllm": "1", "torch": "2", "transformers": "3", "found": True, "cpu": True}
    monkeypatch.setattr(vllm, "_versions", lambda python: versions)
    monkeypatch.setattr(vllm, "folder_identity", lambda folder: {"weights": str(folder)})
    monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)
    monkeypatch.setenv("OPENAI_API_KEY", "for another server")
    given = {"options": ("--max-model-len", "9"), "concurrency": 3, "startup_timeout": 5.0}
    engine = vllm.serve(tmp_path, python="/py", log=tmp_path / "log", **given)  # type: ignore[arg-type]
    launched = engine.server.launch
    words, env = launched.command(8000), launched.env or {}
    assert words[0] == "/py" and words[-6:] == ["--max-model-len", "9", "--host", "127.0.0.1", "--port", "8000"]
    assert [words[words.index(k) + 1] for k in ("--model", "--dtype")] == [str(tmp_path), "float32"]
    assert (launched.startup_timeout, launched.log, engine.concurrency) == (5.0, tmp_path / "log", 3)
    assert engine.identity == {"weights": str(tmp_path)} and env["HF_HUB_OFFLINE"] == "1"
    assert engine.provenance == {"engine": "vllm", "vllm": "1", "torch": "2", "transformers": "3", "dtype": "float32",
                                 "options": ["--max-model-len", "9"], "concurrency": 3}  # fmt: skip
    assert env["VLLM_API_KEY"] not in " ".join(words) and not {"PYTHONPATH", "OPENAI_API_KEY"} & env.keys()
    weights.write_bytes(b"other")
    with pytest.raises(ModelError, match="the weights have changed since this run began"):
        launched.command(8000)
    named = vllm.serve("org/m", python="/py", log=tmp_path / "log", dtype="bfloat16")
    assert named.identity == {"model": "org/m", "revision": "unstated", "chat_options": "{}"}
    assert "HF_HUB_OFFLINE" not in (named.server.launch.env or {}), "the server may have to load the model"
    (tmp_path / "config.json").write_text('{"dtype": "float16", "torch_dtype": "float32"}')
    assert vllm.serve(tmp_path, python="/py", log=tmp_path / "log").provenance["dtype"] == "float16"
    told = vllm.serve(tmp_path, python="/py", log=tmp_path / "log", dtype="float64")
    assert told.provenance["dtype"] == "float64", "what is told counts more than the checkpoint"
    assert "bfloat16" in named.server.launch.command(1) and named.provenance["dtype"] == "bfloat16"


@pytest.mark.parametrize("prompting", ["chat", "raw"])
def test_a_vllm_server_is_started_and_tried_out_at_the_first_ask(
    tmp_path: Path, make_ask: Callable[..., Ask], prompting: str
) -> None:
    asks = [make_ask(f"q{i}", case=str(i), prompting=prompting) for i in range(3)]
    with vllm.VllmEngine(ManagedServer(launch(tmp_path)), identity={"weights": "w"}, provenance={}) as engine:
        engine.model = "m"
        assert not lives(tmp_path)
        assert {a.case: r.text for a, r in engine.answer(asks)} == {a.case: f"answer to {a.prompt}" for a in asks}
        assert engine.capabilities.chat and engine.capabilities.raw and engine.capabilities.max_tokens
        assert len(list(engine.answer(asks))) == 3 and len(lives(tmp_path)) == 1


@pytest.mark.parametrize("opens", [True, False])
def test_vllm_of_a_model_folder_knows_whether_its_template_opens_the_thinking(
    tmp_path: Path, make_ask: Callable[..., Ask], make_tokenizer: Callable[..., Any], opens: bool
) -> None:
    told = "<think>\n" if opens else "<think>\n</think>\n"
    template = "{{ messages[0]['content'] }}{% if enable_thinking is false %}A:{% else %}" + told + "{% endif %}"
    make_tokenizer(template=template).save_pretrained(tmp_path)
    (tmp_path / "config.json").write_text('{"model_type": "llama"}')
    server, about = ManagedServer(launch(tmp_path)), {"identity": {"weights": "w"}, "provenance": {}}
    with vllm.VllmEngine(server, folder=tmp_path, **about) as engine:
        engine.model = "m"
        asks = [make_ask("q", case=str(i), thinking=way) for i, way in enumerate((None, True, False))]
        asks.append(make_ask("q", case="raw", prompting="raw"))
        made = {ask.case: bool(response.provenance) for ask, response in engine.answer(asks)}
    assert made == {"0": opens, "1": opens, "2": False, "raw": False}


@pytest.mark.parametrize(
    ("template", "options"),
    [("{{ raise_exception('no') }}", []), ("<think>", ["--chat-template=other.jinja"]),
     ("<think>", ["--default-chat-template-kwargs", "{}"])],
)  # fmt: skip
def test_vllm_does_not_know_of_a_template_that_is_another_one_or_that_cannot_be_tried_out_here(
    tmp_path: Path, make_ask: Callable[..., Ask], make_tokenizer: Callable[..., Any], template: str, options: list[str]
) -> None:
    make_tokenizer(template=template).save_pretrained(tmp_path)
    (tmp_path / "config.json").write_text('{"model_type": "llama"}')
    about = {"identity": {"weights": "w"}, "provenance": {"options": options}}
    with vllm.VllmEngine(ManagedServer(launch(tmp_path)), folder=tmp_path, **about) as engine:
        engine.model = "m"
        [(_, response)] = engine.answer([make_ask("q", stop=("\n",))])
    assert response.error is None and not response.provenance


SLOW_TO_END = """
import signal, sys, time
def end(*_):
    time.sleep(0.5)
    open(sys.argv[1], "w").write("ended in peace")
    sys.exit(7)
signal.signal(signal.SIGTERM, end)
print("ready", flush=True)
time.sleep(60)
"""


@pytest.mark.parametrize(
    ("program", "grace", "code", "peace"),
    [(SLOW_TO_END, 20.0, 7, True), (SLOW_TO_END, 0.0, 128 + signal.SIGKILL, False),
     ("import time; print('ready', flush=True); time.sleep(60)", 5.0, 128 + signal.SIGTERM, False)],
)  # fmt: skip
def test_a_supervised_program_has_its_time_to_end_and_its_exit_status_is_told(
    program: str, grace: float, code: int, peace: bool, tmp_path: Path
) -> None:
    command = [sys.executable, str(Path(supervisor.__file__)), str(grace), sys.executable, "-c", program]
    supervised = subprocess.Popen([*command, str(tmp_path / "file")], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert supervised.stdin is not None and supervised.stdout is not None
    assert supervised.stdout.readline() == b"ready\n"
    supervised.stdin.close()
    assert supervised.wait(30) == code and (tmp_path / "file").exists() is peace


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells a process that its parent was killed")
def test_a_server_ends_if_its_supervisor_is_killed(tmp_path: Path) -> None:
    command = [sys.executable, "-I", "-S", str(Path(supervisor.__file__)), "20", sys.executable, "-c", SLOW_TO_END]
    supervised = subprocess.Popen([*command, str(tmp_path / "file")], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert supervised.stdout is not None and supervised.stdout.readline() == b"ready\n"
    supervised.kill()
    assert supervised.stdout.read() == b""  # the server held the other end
    assert (tmp_path / "file").exists(), "it had its time to end"


def test_a_server_that_outlives_its_signal_is_killed_and_one_that_is_not_there_is_none() -> None:
    done: list[str] = []

    def wait(seconds: float | None = None) -> None:
        done.append(f"wait {seconds}")
        if seconds is not None:
            raise subprocess.TimeoutExpired("server", seconds)

    process: Any = SimpleNamespace(stdin=None, wait=wait, kill=lambda: done.append("kill"))
    for owned in (None, process):
        server: Any = SimpleNamespace(_process=owned, launch=SimpleNamespace(grace=1.0))
        ManagedServer._kill(server)
    assert [step.split()[0] for step in done] == ["wait", "kill", "wait"] and done[-1] == "wait None"


def test_two_servers_have_a_port_each_that_nothing_else_listens_on(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", ManagedServer(launch(tmp_path)).port))
        taken.listen()
        other = ManagedServer(launch(tmp_path))
        assert other.port != taken.getsockname()[1] and other.url == f"http://127.0.0.1:{other.port}"


def test_a_start_takes_as_long_as_it_may_and_says_every_quarter_of_a_minute_that_it_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now, said = [1000.0], list[str]()

    def wait(seconds: float) -> None:
        now[0] += seconds
        assert now[0] < 1300, "it never ends"

    monkeypatch.setattr(managed, "time", SimpleNamespace(monotonic=lambda: now[0]))
    server = ManagedServer(launch(tmp_path, startup_timeout=100.0, say=said.append))
    server.launch.log.touch()
    monkeypatch.setattr(server, "_closed", SimpleNamespace(wait=wait, is_set=lambda: False))
    monkeypatch.setattr(server, "_process", SimpleNamespace(poll=lambda: None))
    monkeypatch.setattr(server, "healthy", lambda: False)
    with pytest.raises(ModelError, match="not ready after 100 s"):
        server._wait_until_healthy()
    assert 100 < now[0] - 1000 <= 101.1
    waited = [int(line.split()[-2]) for line in said[1:]]
    assert len(waited) == 6 and all(15 <= b - a <= 17 for a, b in itertools.pairwise([0, *waited]))
    monkeypatch.setattr(server, "healthy", lambda: now[0] > 1150)
    server._wait_until_healthy()
    assert said[-1].endswith("ready after 50 s")


def test_a_server_that_is_started_again_keeps_the_log_of_its_first_life(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started = list[Any]()

    def opened(command: list[str], *, stdout: Any, stderr: Any, **how: Any) -> Any:
        started.append((command, how))
        stdout.write(b"life %d\n" % len(started))
        assert stderr is stdout
        return SimpleNamespace(poll=lambda: None, stdin=None, wait=lambda seconds=None: None)

    monkeypatch.setattr(managed.subprocess, "Popen", opened)
    monkeypatch.setattr(ManagedServer, "_wait_until_healthy", lambda self: None)
    server = ManagedServer(launch(tmp_path / "new", "mood", env={"A": "b"}, grace=2.5))
    server._start()
    assert (server.generation, server._log_start) == (1, 0)
    server._start()
    assert server.launch.log.read_text() == "life 1\nlife 2\n" and server._last_words().endswith("life 2")
    assert (server.generation, server._log_start) == (2, len("life 1\n"))
    (command, how), _ = started
    own = [sys.executable, str(SERVER), str(server.port), str(tmp_path / "new"), "mood"]
    assert command[-6:] == ["2.5", *own] and command[-7] == str(managed.SUPERVISOR)
    assert how == {"stdin": subprocess.PIPE, "env": {"A": "b"}, "start_new_session": True}


def test_requests_that_failed_on_an_earlier_life_are_asked_again_and_those_on_a_sound_server_are_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said, starts = list[str](), list[str]()
    server = ManagedServer(launch(tmp_path, restarts=2, say=said.append))
    server.generation = 3
    monkeypatch.setattr(server, "_settle", lambda: True)
    monkeypatch.setattr(server, "_last_words", lambda: "why")
    assert server.revive(2) is True and server.revive(3) is False and server.crashes == 0
    monkeypatch.setattr(server, "_settle", lambda: False)
    monkeypatch.setattr(server, "_kill", lambda: starts.append("killed"))
    monkeypatch.setattr(server, "_start", lambda: starts.append("started"))
    for crashes in (1, 2):
        assert server.revive(3) is True and server.crashes == crashes
    assert starts == ["killed", "started"] * 2 and len(said) == 2 and all("why" in line for line in said)
    with pytest.raises(ModelError, match="crashed 3 times"):
        server.revive(3)
    assert len(starts) == 4


@pytest.mark.parametrize(
    ("printed", "code", "said"),
    [('{"found": true, "vllm": "1"}', 0, None), ('{"found": false}', 0, "cannot import vllm; .*pip install vllm"),
     ('{"found": true}', 1, "is not a Python interpreter"), ("no JSON", 0, "is not a Python interpreter"),
     (None, 0, "is not a Python interpreter")],
)  # fmt: skip
def test_an_interpreter_without_vllm_is_refused_before_a_server_is_started(
    printed: str | None, code: int, said: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "for another server")
    python = tmp_path / "python"
    if printed is not None:
        python.write_text(f"#!/bin/sh\ntest -z \"$OPENAI_API_KEY\" && echo '{printed}'\nexit {code}\n")
        python.chmod(0o755)
    if said is None:
        assert vllm._versions(python) == {"found": True, "vllm": "1"}
        return
    with pytest.raises(ModelError, match=f"--vllm-python {python}: {said}"):
        vllm.serve("org/m", python=python, log=tmp_path / "log")
