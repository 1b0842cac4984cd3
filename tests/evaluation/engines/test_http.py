from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hostile_server import Hostile, Request, completion, reply
from json_server import running

from composcope.errors import ModelError
from composcope.evaluation.asks import Ask, Response
from composcope.evaluation.engines import transport
from composcope.evaluation.engines.base import REFUSED
from composcope.evaluation.engines.http import HttpEngine, connect
from composcope.evaluation.engines.local import LocalEngine
from composcope.evaluation.journal import Journal, ask_identity, read_journal

SERVER = "faulty_server.py"
SECRET = "sk-very-secret-0123456789"
WORDS = 20
"""Words in each of the server's answers."""


@pytest.fixture(autouse=True)
def _no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tries follow each other at once."""
    monkeypatch.setattr(transport, "_BACKOFF_SECONDS", 0.0)


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with running(SERVER) as url:
        yield url


def requests_for(url: str, prompt: str) -> int:
    with urllib.request.urlopen(f"{url}/counts") as reply:
        return json.load(reply).get(prompt, 0)


def engine_at(url: str, **options: Any) -> HttpEngine:
    return HttpEngine(url, "good", **{"api_key": SECRET, "retries": 2, "timeout": 60, **options})


def one(engine: HttpEngine, ask: Ask) -> Response:
    [(back, response)] = engine.answer([ask])
    assert back == ask and response.ask == ask_identity(ask, engine.identity)
    return response


def test_every_ask_gets_its_own_answer(url: str, make_ask: Callable[..., Ask]) -> None:
    asks = [make_ask(f"[echo] {i}", case=f"c{i}", prompting=("chat", "raw")[i % 2]) for i in range(100)]
    found = {a.case: r for a, r in engine_at(url, concurrency=16).answer(asks)}
    assert {k: r.text for k, r in found.items()} == {a.case: a.prompt for a in asks}
    assert len(found) == 100


def test_a_closed_engine_holds_no_connection(url: str, make_ask: Callable[..., Ask]) -> None:
    engine = engine_at(url)
    one(engine, make_ask("[echo] first"))
    assert engine._transport._pool.connections
    for _ in range(2):
        engine.close()
        assert not engine._transport._pool.connections
    assert one(engine, make_ask("[echo] second")).text == "[echo] second", "it opens one again if it has to"


def test_length_stop_and_counts_are_what_the_server_says(url: str, make_ask: Callable[..., Ask]) -> None:
    engine = engine_at(url)
    short = one(engine, make_ask("two words", max_tokens=5))
    assert short.finish_reason == "length" and (short.prompt_tokens, short.response_tokens) == (2, 5)
    whole = one(engine, make_ask("two words", max_tokens=100))
    assert whole.finish_reason == "stop" and len(whole.text.split()) == WORDS


@pytest.mark.parametrize("fault", ["busy", "broken", "half", "garbage", "empty", "nothing"])
def test_a_passing_fault_is_retried_and_leaves_no_trace(url: str, make_ask: Callable[..., Ask], fault: str) -> None:
    ask = make_ask(f"[{fault}:1] a question", max_tokens=100)
    response = one(engine_at(url), ask)
    assert response.finish_reason == "stop" and len(response.text.split()) == WORDS and response.error is None
    assert requests_for(url, ask.prompt) == 2


@pytest.mark.parametrize(
    ("fault", "said", "tries"),
    [
        ("busy", "slow down", 2),
        ("broken", "it broke", 2),
        ("half", "not a completion", 2),
        ("garbage", "not a completion", 2),
        ("empty", "not a completion", 2),
        ("nothing", "APIConnectionError", 2),
        ("slow", "timed out", 2),
        ("refused", "too long for this model", 1),
    ],
)
def test_a_lasting_fault_is_an_error_and_never_an_answer(
    url: str, make_ask: Callable[..., Ask], fault: str, said: str, tries: int
) -> None:
    ask = make_ask(f"[{fault}:*] a question")
    response = one(engine_at(url, retries=1, timeout=0.3 if fault == "slow" else 60), ask)
    assert (response.finish_reason, response.text, response.response_tokens) == ("error", "", 0)
    assert said in str(response.error) and "\n" not in str(response.error)
    assert requests_for(url, ask.prompt) == tries


def test_one_bad_request_does_not_hold_up_the_others(make_ask: Callable[..., Ask]) -> None:
    released = threading.Event()

    def behave(connection: socket.socket, request: Request) -> None:
        assert request.prompt != "slow" or released.wait(60)
        reply(connection, completion())

    server = Hostile(behave)
    try:
        asks = [make_ask("slow", case="slow"), *(make_ask(f"quick {i}", case=f"c{i}") for i in range(50))]
        answers = engine_at(server.url, concurrency=4).answer(asks)
        quick = {next(answers)[0].case for _ in range(50)}
        released.set()
        assert "slow" not in quick and [a.case for a, _ in answers] == ["slow"]
    finally:
        server.close()


def test_the_key_never_shows(url: str, make_ask: Callable[..., Ask]) -> None:
    engine = engine_at(url)
    response = one(engine, make_ask("[leak:*]"))
    assert "your header was Bearer ***" in str(response.error)
    shown = json.dumps([engine.identity, engine.provenance, str(response), engine.name])
    assert SECRET not in shown
    assert "pass" not in HttpEngine("http://user:pass@localhost:1/v1", "m").name


def test_a_refused_key_or_an_unknown_model_stops_the_run(url: str, make_ask: Callable[..., Ask]) -> None:
    with pytest.raises(ModelError, match="check key, model name and base URL") as refused:
        one(engine_at(url, api_key="wrong"), make_ask())
    assert "Incorrect API key provided: ***" in str(refused.value)
    with pytest.raises(ModelError, match="no model bad"):
        one(HttpEngine(url, "bad", retries=0), make_ask())


@pytest.mark.parametrize(
    ("outcomes", "n"), [("feeefeeeeeff", 10), ("eeeefeeeef", 10), ("eerreeef", 8), ("rrrrrrrr", 8)]
)
def test_only_failures_in_a_row_end_a_run(
    outcomes: str, n: int, make_ask: Callable[..., Ask], monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = HttpEngine("http://localhost:1/v1", "m", concurrency=1)
    engine._unchecked = False
    failed = Response("k", "", "error", 0, 0, error="down")
    made = {"f": Response("k", "fine", "stop", 1, 1), "e": failed, "r": replace(failed, provenance={REFUSED: True})}
    asks = [make_ask(case=str(i)) for i in range(len(outcomes))]
    monkeypatch.setattr(engine, "_in_parallel", lambda asks: zip(asks, (made[x] for x in outcomes), strict=True))
    answered = []
    with nullcontext() if n == len(outcomes) else pytest.raises(ModelError, match=r"5 requests failed in a row.*down"):
        for ask, _ in engine.answer(asks):
            answered.append(ask.case)
    assert answered == [str(i) for i in range(n)], "answers that came before are kept"


def test_a_dead_server_is_said_once_and_not_for_every_ask(make_ask: Callable[..., Ask]) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        dead = f"http://127.0.0.1:{free.getsockname()[1]}/v1"
    with pytest.raises(ModelError, match="is the server running"):
        connect(dead, "good", retries=0)
    answered = 0
    with pytest.raises(ModelError, match=r"6 requests failed in a row.*run the same command again"):
        for _, response in engine_at(dead, retries=0, concurrency=2).answer([make_ask(str(i)) for i in range(100)]):
            assert response.finish_reason == "error"
            answered += 1
    assert answered == 6


def test_stop_strings_are_kept_at_the_end_also_where_the_server_ignores_them(make_ask: Callable[..., Ask]) -> None:
    with running(SERVER, "stop") as url:
        engine = engine_at(url)
        free = one(engine, make_ask("q", max_tokens=100))
        stop = free.text.split()[3]
        for most in (100, 10):  # the server's own end, or its limit, comes after the stop string
            cut = one(engine, make_ask("q", max_tokens=most, stop=(stop,)))
            assert cut.text == free.text[: free.text.index(stop) + len(stop)] and cut.finish_reason == "stop"


def test_where_the_prompt_is_known_to_open_the_thinking_no_stop_string_ends_it(
    url: str, make_ask: Callable[..., Ask]
) -> None:
    class Opens(HttpEngine):
        def opens_thinking(self, ask: Ask) -> bool:
            return True

    free = one(engine_at(url), ask := make_ask("q", max_tokens=100))
    stopped = replace(ask, stop=(free.text.split()[3],))
    opened = one(Opens(url, "good", api_key=SECRET), stopped)
    assert opened.text == free.text and opened.provenance == {"thinking_opened": True}
    assert len(one(engine_at(url), stopped).text) < len(free.text)


def test_connecting_finds_out_what_the_server_honors(url: str) -> None:
    assert set(connect(url, "good", api_key=SECRET).capabilities.to_dict().values()) == {True}


def test_token_ids_are_kept_where_the_server_sends_them(url: str, make_ask: Callable[..., Ask]) -> None:
    engine = connect(url, "good", api_key=SECRET)
    response = one(engine, make_ask("two words", max_tokens=5))
    assert response.prompt_ids == (3, 5)
    assert response.response_ids == tuple(int(word[1:], 16) for word in response.text.split())
    with running(SERVER, "return_token_ids") as silent:
        engine = connect(silent, "good", api_key=SECRET)
        assert engine.capabilities.token_ids is False and one(engine, make_ask("two words")).response_ids is None


@pytest.mark.parametrize(
    ("ignored", "ask"),
    [
        ("temperature", {"temperature": 0.7}),
        ("max_tokens", {}),
        ("raw", {"prompting": "raw"}),
        ("chat", {"prompting": "chat"}),
    ],
)
def test_asks_that_need_an_ignored_field_are_refused(make_ask: Callable[..., Ask], ignored: str, ask: dict) -> None:
    with running(SERVER, ignored) as url:
        engine = connect(url, "good", api_key=SECRET)
        name = {"temperature": "sampling"}.get(ignored, ignored)
        assert engine.capabilities.to_dict()[name] is False
        with pytest.raises(ModelError, match=f"ignores or refuses {name}, which these asks need; "):
            list(engine.answer([make_ask(**ask)]))
        if ignored == "temperature":
            assert one(engine, make_ask()).error is None


def test_a_server_that_wants_the_new_name_of_the_token_limit_gets_it(make_ask: Callable[..., Ask]) -> None:
    with running(SERVER, "old-limit") as url:
        engine = connect(url, "good", api_key=SECRET)
        assert engine.capabilities.chat and engine.capabilities.max_tokens
        assert one(engine, make_ask("q", max_tokens=5)).response_tokens == 5


def test_a_refusal_that_names_both_limits_does_not_change_the_limit_of_later_asks(make_ask: Callable[..., Ask]) -> None:
    def behave(connection: socket.socket, request: Request) -> None:
        if request.prompt == "long" or (request.prompt == "new" and "max_tokens" in request.body):
            said = {"error": {"message": "'max_tokens' or 'max_completion_tokens' is too large: 9"}}
            return reply(connection, json.dumps(said).encode(), "400 Bad Request")
        return reply(connection, completion())

    server = Hostile(behave)
    try:
        engine = engine_at(server.url, concurrency=1)
        assert REFUSED in (one(engine, make_ask("long", case="long", max_tokens=9)).provenance or {})
        assert one(engine, make_ask("short", case="short", max_tokens=5)).error is None
        last = server.requests[-1].body
        assert last["max_tokens"] == 5 and "max_completion_tokens" not in last
        before = len(server.requests)
        assert [one(engine, make_ask("new", case=case)).error for case in "ab"] == [None, None]
        assert len(server.requests) == before + 3, "where the new name was taken, the old one is not tried again"
    finally:
        server.close()


def test_no_more_tokens_are_asked_for_than_the_context_that_a_server_states(make_ask: Callable[..., Ask]) -> None:
    with running(SERVER, "context") as url:
        response = one(connect(url, "good", api_key=SECRET), make_ask("q", max_tokens=100))
        assert (response.finish_reason, response.response_tokens) == ("length", 19)


def test_repeats_of_a_sampled_ask_are_different_draws(url: str, make_ask: Callable[..., Ask]) -> None:
    asks = [make_ask("draw", temperature=1.0, repeat=i, case=str(i)) for i in range(5)]
    texts = {r.text for _, r in engine_at(url).answer(asks)}
    assert len(texts) == 5
    assert one(engine_at(url), asks[2]).text in texts


IN_FLIGHT = 8
KILLED = """
import sys
from composcope.evaluation.asks import Ask
from composcope.evaluation.engines.http import HttpEngine
from composcope.evaluation.journal import Journal, ask_identity
engine = HttpEngine(sys.argv[1], "good", concurrency=int(sys.argv[4]))
with Journal(sys.argv[2]) as journal:
    asks = {}
    for i in range(150):
        ask = Ask(f"c{i}", "whole", f"{sys.argv[3]} {i}", "1", "text")
        key = ask_identity(ask, engine.identity)
        if journal.get(key) is None:
            asks[key] = ask
    for n, (ask, response) in enumerate(engine.answer(list(asks.values())), 1):
        journal.record(ask_identity(ask, engine.identity), ask, response, engine.identity)
        if n == 50:
            print("50 answers", flush=True)
            sys.stdin.read()  # whoever wants to kill this run has it open
"""


@pytest.mark.parametrize("stop", [signal.SIGKILL, pytest.param(signal.SIGINT, marks=pytest.mark.slow)])
def test_a_killed_run_repeats_at_most_the_requests_in_flight(url: str, tmp_path: Path, stop: signal.Signals) -> None:
    command = [sys.executable, "-c", KILLED, url, str(tmp_path), stop.name, str(IN_FLIGHT)]
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
    first = subprocess.Popen(command, **pipes, env={**os.environ, "OPENAI_API_KEY": SECRET})
    assert first.stdout is not None and first.stdout.readline() == b"50 answers\n"
    first.send_signal(stop)
    assert first.wait(60) != 0
    assert len(read_journal(tmp_path).responses) == 50
    subprocess.run(command, check=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    assert len(read_journal(tmp_path).responses) == 150
    with urllib.request.urlopen(f"{url}/counts") as reply:
        counts = [n for prompt, n in json.load(reply).items() if prompt.startswith(stop.name)]
    assert len(counts) == 150 and sum(counts) - 150 <= IN_FLIGHT + 2
    assert SECRET.encode() not in b"".join(p.read_bytes() for p in tmp_path.iterdir())


@pytest.mark.slow  # loads a server of the library; what engines do with any server is above
def test_transformers_serve_answers_as_the_model_in_process(
    tmp_path: Path, make_llama: Callable[..., Any], make_tokenizer: Callable[..., Any], make_ask: Callable[..., Ask]
) -> None:
    pytest.importorskip("fastapi")  # an extra of the tests, missing where nothing can be installed
    folder = tmp_path / "model"
    make_llama().save_pretrained(folder)
    make_tokenizer(pad=True).save_pretrained(folder)
    (tmp_path / "hf" / "hub").mkdir(parents=True)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    program = str(Path(sys.executable).with_name("transformers"))
    server = subprocess.Popen(
        [program, "serve", str(folder), "--device", "cpu", "--host", "127.0.0.1", "--port", str(port)],
        env={**os.environ, "HF_HUB_OFFLINE": "1", "HF_HOME": str(tmp_path / "hf")},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        while server.poll() is None:
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=1).close()
                break
            except OSError:
                time.sleep(0.1)
        served = connect(f"http://127.0.0.1:{port}/v1", str(folder), concurrency=2)
        assert served.capabilities.chat
        asks = [make_ask(f"question {i}", case=str(i), max_tokens=8) for i in range(6)]
        there = {a.case: r.text for a, r in served.answer(asks)}
        here = {a.case: r.text for a, r in LocalEngine(folder).answer(asks)}
        assert there == here
        with pytest.raises(ModelError, match="ignores or refuses sampling"):
            list(served.answer([replace(asks[0], temperature=1.0)]))
    finally:
        server.terminate()
        server.wait(120)


def test_journal_and_engine_agree_on_failures(url: str, tmp_path: Path, make_ask: Callable[..., Ask]) -> None:
    engine, ask = engine_at(url, retries=0), make_ask("[broken:1] once")
    key = ask_identity(ask, engine.identity)
    for answered in (False, True):
        with Journal(tmp_path) as journal:
            journal.begin(engine.identity, engine.provenance)
            journal.record(key, ask, one(engine, ask), engine.identity)
            kept = journal.get(key)
            assert (kept is not None) == answered
