"""Servers that hold on, flood, send elsewhere, sign as others or say the key: each fault is injected over real TCP."""

from __future__ import annotations

import base64
import gzip
import json
import resource
import socket
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.parse import quote

import httpcore2
import httpx2
import openai
import pytest
from hostile_server import Behave, Hostile, Request, completion, reply

from composcope.errors import InputError, ModelError
from composcope.evaluation.asks import Ask, Response
from composcope.evaluation.cases import Case
from composcope.evaluation.engines import transport
from composcope.evaluation.engines.addresses import key_for
from composcope.evaluation.engines.base import REFUSED
from composcope.evaluation.engines.http import HttpEngine, connect
from composcope.evaluation.engines.replies import count, same_model
from composcope.evaluation.engines.transport import is_official
from composcope.evaluation.journal import Journal, read_journal
from composcope.evaluation.pipeline import Evaluation, evaluate

KEY = "sk-very-secret-0123456789"
Serve = Callable[[Behave], Hostile]


@pytest.fixture
def serve() -> Iterator[Serve]:
    made: list[Hostile] = []

    def start(behave: Behave) -> Hostile:
        made.append(Hostile(behave))
        return made[-1]

    yield start
    for server in made:
        server.close()


def engine_at(server: Hostile, **options: Any) -> HttpEngine:
    return HttpEngine(server.url, "good", **{"api_key": KEY, "retries": 0, "timeout": 120, **options})


def one(engine: HttpEngine, ask: Ask) -> Response:
    [(_, response)] = engine.answer([ask])
    return response


class Clock:
    """Stands in for the module ``time``: only what sleeps, or says so, lets time pass."""

    def __init__(self) -> None:
        self.now = 0.0

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


def drip(connection: socket.socket, byte: bytes, clock: Clock, seconds: float) -> None:
    """A byte a second, each well within the time that a single read may take, until nobody reads any more."""
    end = clock.now + seconds
    for _ in range(20_000):
        connection.sendall(byte)
        clock.now = max(clock.now, min(clock.now + 1, end))
        time.sleep(0.001)


@pytest.mark.parametrize("whole_head", [True, False], ids=["body", "headers"])
def test_a_server_that_drips_holds_no_connection_past_the_deadline(
    serve: Serve, make_ask: Callable[..., Ask], monkeypatch: pytest.MonkeyPatch, whole_head: bool
) -> None:
    clock = Clock()
    monkeypatch.setattr(transport, "time", clock)
    head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 100000000\r\n"

    def behave(connection: socket.socket, request: Request) -> None:
        if "drip" not in request.prompt:
            return reply(connection, completion())
        connection.sendall(head + (b"\r\n" if whole_head else b"X: "))
        drip(connection, b" " if whole_head else b"y", clock, seconds=60)

    engine = engine_at(serve(behave), timeout=60, concurrency=2)
    # As many as there are connections: they would hold all of them for good.
    asks = [make_ask(f"drip {i}", case=f"d{i}") for i in range(2)] + [
        make_ask(f"quick {i}", case=f"q{i}") for i in "ab"
    ]
    found = {ask.case: response for ask, response in engine.answer(asks)}
    assert clock.now >= 60
    assert {case: r.finish_reason for case, r in found.items()} == {
        "d0": "error",
        "d1": "error",
        "qa": "stop",
        "qb": "stop",
    }
    assert "timed out" in str(found["d0"].error)


def test_all_tries_of_an_ask_share_one_deadline(
    serve: Serve, make_ask: Callable[..., Ask], monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Clock()
    monkeypatch.setattr(transport, "time", clock)
    server = serve(lambda connection, request: reply(connection, b"{}", "500 Broken"))
    assert one(engine_at(server, retries=50, deadline=1.2), make_ask()).finish_reason == "error"
    assert len(server.requests) == 2 and clock.now == 0.5, "tries at 0 and 0.5 s; the third would begin after 1.5 s"
    given = list[float]()

    def times_out(seconds: float) -> Any:
        given.append(seconds)
        clock.sleep(seconds)
        raise openai.APITimeoutError(httpx2.Request("POST", "http://h/v1"))

    with pytest.raises(openai.APITimeoutError):
        transport.send(times_out, retries=50, timeout=120, deadline=300)
    assert given == [120, 120, 300 - 240 - 0.5 - 1], "each try has its own time, the last one what is left"


@pytest.mark.parametrize(
    ("stated", "attempt", "wait"),
    [
        (None, 0, 0.5), (None, 3, 4.0), (None, 9, 8.0), ("3", 0, 3.0), ("61", 1, 1.0), ("-1", 0, 0.5), ("soon", 0, 0.5),
        ("Thu, 01 Jan 1970 00:17:20 GMT", 0, 40.0), ("Thu, 01 Jan 1970 00:00:00 GMT", 2, 2.0),
    ],
)  # fmt: skip
def test_the_pause_is_what_the_server_asks_for_where_that_is_not_long(
    monkeypatch: pytest.MonkeyPatch, stated: str | None, attempt: int, wait: float
) -> None:
    monkeypatch.setattr(transport, "time", SimpleNamespace(time=lambda: 1000.0))
    headers = {} if stated is None else {"retry-after": stated}
    error: Any = SimpleNamespace(response=SimpleNamespace(headers=headers))
    assert transport._pause(error, attempt) == wait


def endless(connection: socket.socket, request: Request) -> None:
    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n{")
    while True:
        connection.sendall(b" " * 65536)


BOMB = gzip.compress(b" " * (256 << 20), 1)
"""A quarter of a gigabyte of spaces."""


def bomb(connection: socket.socket, request: Request) -> None:
    reply(connection, BOMB, Content_Encoding="gzip")


def huge(connection: socket.socket, request: Request) -> None:
    reply(connection, completion("x" * (50 << 20)))


def padded(connection: socket.socket, request: Request) -> None:
    """A compressed answer, and behind its end something else without end."""
    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\n" + gzip.compress(completion()))
    while True:
        connection.sendall(b"z" * (1 << 16))


@pytest.mark.parametrize("behave", [endless, bomb, huge, padded])
def test_no_reply_takes_more_memory_than_an_answer_can_have(
    serve: Serve, make_ask: Callable[..., Ask], behave: Behave
) -> None:
    server = serve(behave)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    response = one(engine_at(server), make_ask(max_tokens=100))
    assert "larger than" in str(response.error) and response.text == ""
    assert len(server.requests) == 1, "the same flood again is no help"
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert behave is huge or grown < 200 << 10, "the server, too, is in this process, and the huge reply in its memory"


def test_a_compressed_reply_is_read(serve: Serve, make_ask: Callable[..., Ask]) -> None:
    server = serve(lambda c, _: reply(c, gzip.compress(completion("six")), Content_Encoding="gzip"))
    assert one(engine_at(server), make_ask()).text == "six"


def test_text_that_is_no_utf8_is_asked_for_again(serve: Serve, make_ask: Callable[..., Ask]) -> None:
    broken = completion("caf\u00e9".encode().decode()).replace(b"caf\\u00e9", b"caf\xe9")
    assert b"\xe9" in broken
    server = serve(lambda c, _: reply(c, broken if len(server.requests) == 1 else completion("caf\u00e9")))
    assert one(engine_at(server, retries=1), make_ask()).text == "caf\u00e9"
    server = serve(lambda c, _: reply(c, broken))
    response = one(engine_at(server, retries=1), make_ask())
    assert response.finish_reason == "error" and len(server.requests) == 2
    assert "not a completion after 2 tries" in str(response.error)


def test_no_redirect_is_followed_to_another_host(serve: Serve, make_ask: Callable[..., Ask]) -> None:
    other = serve(lambda c, _: reply(c, completion()))
    there = f"{other.url}/chat/completions"
    server = serve(lambda c, _: reply(c, b"", "307 Temporary Redirect", Location=there))
    with pytest.raises(ModelError, match=r"redirects to http://127\.0\.0\.1:"):
        one(engine_at(server), make_ask())
    assert other.requests == [] and len(server.requests) == 1


@pytest.mark.parametrize(
    "location",
    [
        "https://{host}:{port}/v1", "http://{host}:1/v1", "//evil.example/v1", "http://localhost:{port}/v1",
        "http://[::1]:{port}/v1", "http://{host}:{port}@evil.example/v1", "ftp://{host}/v1", "file:///etc/passwd",
        "data:text/plain,x", "http://[::1/v1", "http://ev\til.example/",
    ],
)  # fmt: skip
def test_a_redirect_to_anything_but_the_same_scheme_host_and_port_stops_the_run(
    serve: Serve, make_ask: Callable[..., Ask], location: str
) -> None:
    server = serve(lambda c, _: reply(c, b"", "307 Temporary Redirect", Location=there))
    there = location.format(host="127.0.0.1", port=server.socket.getsockname()[1])
    with pytest.raises(ModelError, match="redirects to"):
        one(engine_at(server), make_ask())
    assert len(server.requests) == 1


def test_a_redirect_on_the_same_host_is_followed_with_its_key(serve: Serve, make_ask: Callable[..., Ask]) -> None:
    def behave(connection: socket.socket, request: Request) -> None:
        if request.path.endswith("/here"):
            return reply(connection, completion("six"))
        reply(connection, b"", "308 Permanent Redirect", Location="/v1/here")

    server = serve(behave)
    response = one(engine_at(server), make_ask())
    assert response.text == "six", response.error
    assert [r.headers["authorization"] for r in server.requests] == [f"Bearer {KEY}"] * 2


def test_a_request_and_all_its_redirects_share_one_deadline(
    serve: Serve, make_ask: Callable[..., Ask], monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Clock()
    monkeypatch.setattr(transport, "time", clock)

    def behave(connection: socket.socket, request: Request) -> None:
        clock.sleep(50)
        reply(connection, b"", "307 Temporary Redirect", Location=f"/v1/{len(server.requests)}")

    server = serve(behave)
    response = one(engine_at(server, timeout=120), make_ask())
    assert response.finish_reason == "error" and "timed out" in str(response.error)
    assert len(server.requests) == 3, "at 0, 50 and 100 s; the third reply is too late"


FLAGGED = json.dumps({"error": {"code": 403, "message": "flagged", "metadata": {"flagged_input": "bad"}}}).encode()
REFUSALS = [("400 Bad Request", b"{}"), ("422 Unprocessable Entity", b"{}"), ("413 Too Large", b"{}"),
            ("451 Unavailable For Legal Reasons", b"{}"),
            ("403 Forbidden", FLAGGED),
            ("200 OK", completion(finish_reason="content_filter"))]  # fmt: skip


@pytest.mark.parametrize(("status", "body"), REFUSALS, ids=["400", "422", "413", "451", "403", "filter"])
def test_requests_that_a_server_refuses_do_not_count_as_a_server_that_is_down(
    serve: Serve, make_ask: Callable[..., Ask], status: str, body: bytes
) -> None:
    def behave(connection: socket.socket, request: Request) -> None:
        bad = "bad" in request.prompt
        reply(connection, body if bad else completion(), status if bad else "200 OK")

    server = serve(behave)
    asks = [make_ask(f"bad {i}", case=f"b{i}") for i in range(10)] + [make_ask("good", case="good")]
    found = {ask.case: response for ask, response in engine_at(server, concurrency=1).answer(asks)}
    assert found["good"].text == "So the final answer is: 6"
    assert all(found[f"b{i}"].finish_reason == "error" for i in range(10))
    assert all(found[f"b{i}"].provenance == {REFUSED: True} for i in range(10))
    with pytest.raises(ModelError, match="5 requests failed in a row"):
        list(engine_at(serve(lambda c, _: reply(c, b"{}", "503 Down")), concurrency=1).answer(asks))


def test_a_403_ends_the_run_at_once_only_where_the_key_was_never_taken(
    serve: Serve, make_ask: Callable[..., Ask]
) -> None:
    def behave(connection: socket.socket, request: Request) -> None:
        bad = "bad" in request.prompt
        reply(connection, b"{}" if bad else completion(), "403 Forbidden" if bad else "200 OK")

    server = serve(behave)
    bad = [make_ask(f"bad {i}", case=f"b{i}") for i in range(9)]
    with pytest.raises(ModelError, match=r"PermissionDeniedError.*check key"):
        list(engine_at(server, concurrency=1).answer(bad))
    assert len(server.requests) == 1
    asks = [make_ask("good", case="g0"), bad[0], make_ask("good", case="g1"), *bad[1:]]
    found = dict[str, Response]()
    with pytest.raises(ModelError, match="5 requests failed in a row"):
        found.update((ask.case, response) for ask, response in engine_at(server, concurrency=1).answer(asks))
    assert [(case, r.finish_reason, r.provenance) for case, r in found.items()] == [
        ("g0", "stop", None), ("b0", "error", None), ("g1", "stop", None),
        *((f"b{i}", "error", None) for i in range(1, 6)),
    ]  # fmt: skip


class Questions:
    """A protocol that asks each case its question."""

    name = "questions"

    def asks(self, case: Case, grades: Any) -> list[Ask]:
        return [] if grades else [Ask(case.id, "whole", case.question, gold="6", answer_type="number")]


def run(server: Hostile, folder: Path, questions: list[str], **options: Any) -> Evaluation:
    cases = [Case(q, q, answer="6", answer_type="number", parts=(), benchmark="b") for q in questions]
    with Journal(folder) as journal:
        protocol: Any = Questions()
        return evaluate(cases, protocol, engine_at(server, concurrency=1), journal, **options)


def test_what_failed_before_is_asked_last_when_a_run_goes_on(serve: Serve, tmp_path: Path) -> None:
    server = serve(lambda c, r: reply(c, b"{}", "400 Bad") if "bad" in r.prompt else reply(c, completion()))
    questions = ["bad 0", "bad 1", "bad 2", "good 0", "good 1"]
    run(server, tmp_path, questions, max_asks=3)
    found = run(server, tmp_path, questions, max_asks=2)
    assert [r.prompt for r in server.requests] == questions, "a limit must not be spent on what fails anyway"
    assert found.stopped == "max_asks=2"
    found = run(server, tmp_path, questions)
    assert [r.prompt for r in server.requests][5:] == questions[:3] and found.stopped is None
    assert {row.case: row.outcome for row in found.graded} == {
        q: "invalid" if "bad" in q else "correct" for q in questions
    }


@pytest.mark.parametrize(
    ("asked", "signed", "same"),
    [
        ("gpt-4o", "gpt-4o-2024-08-06", True),
        ("gpt-4o", "gpt-4o-mini", False),
        ("gpt-4o-2024-05-13", "gpt-4o-2024-08-06", False),
        ("gpt-4o-2024-05-13", "gpt-4o", True),
        ("mistral-small-latest", "mistral-small-2402", True),
        ("llama3", "llama3:latest", True),
        ("llama3:8b", "llama3:70b", False),
        ("meta-llama/Llama-3.1-8B", "Llama-3.1-8B", True),
        ("gemini-2", "models/gemini-2", True),
        ("org/m", "org/m@main", True),
        ("org/m", "other/m", False),
        ("/models/m", "/models/m/", True),
        ("m", "M.gguf", True),
        ("good", "another-7b", False),
        ("good", f"{KEY}", False),
    ],
)
def test_a_dated_or_shortened_name_is_the_same_model_and_another_size_is_not(
    asked: str, signed: str, same: bool
) -> None:
    assert same_model(asked, signed) == same


def test_a_server_that_answers_for_another_model_is_refused_unless_the_name_is_accepted(serve: Serve) -> None:
    server = serve(lambda c, _: reply(c, completion(model="another-7b")))
    with pytest.raises(ModelError, match=r"reports another model, 'another-7b'; .*--signed-as"):
        connect(server.url, "good", timeout=120)
    assert connect(server.url, "good", timeout=10, signed_as=("another-7b",)).answered_as == "another-7b"
    assert connect(server.url, "good", timeout=10, signed_as=None).answered_as == "another-7b"


@pytest.mark.parametrize(("every", "stops"), [(5, True), (25, False)])
def test_a_run_stops_above_a_share_of_answers_signed_by_another_model_and_counts_them_below(
    serve: Serve, tmp_path: Path, every: int, stops: bool
) -> None:
    def behave(connection: socket.socket, request: Request) -> None:
        n = int(request.prompt)
        reply(connection, completion(model="another-7b" if n % every == 0 else "good"))

    server = serve(behave)
    questions = [str(i) for i in range(1, 101)]
    if stops:
        with pytest.raises(ModelError, match="another model, 'another-7b', for 3 of 15 answers"):
            run(server, tmp_path, questions)
        assert len(read_journal(tmp_path).responses) == 15
        return
    found = run(server, tmp_path, questions)
    assert count(found.responses.values(), {"model": "good"}) == {"another-7b": 4}
    assert count(found.responses.values(), {"model": "good"}, ("another-7b",)) == {}
    failed = [replace(r, finish_reason="error") for r in found.responses.values()]
    assert count(failed, {"model": "good"}) == {}, "what failed is no answer"


@pytest.mark.parametrize(
    ("url", "official"),
    [
        ("https://api.openai.com/v1", True),
        ("https://eu.api.openai.com/v1", True),
        ("http://api.openai.com/v1", False),
        ("https://api.openai.com.evil.example/v1", False),
        ("https://evilapi.openai.com.example/v1", False),
        ("https://notapi.openai.com/v1", False),
        ("https://evil.example\\.api.openai.com/v1", False),
        ("https://api.openai.com@evil.example/v1", False),
        ("http://192.168.1.7:8000/v1", False),
        ("http://localhost:8000/v1", False),
    ],
)
def test_the_official_key_and_headers_go_to_the_official_service_only(
    monkeypatch: pytest.MonkeyPatch, url: str, official: bool
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    assert is_official(url) == official
    engine = HttpEngine(url, "m")
    assert (engine._key == KEY) == official
    request = httpx2.Request("POST", url, headers={"OpenAI-Organization": "org", "Authorization": f"Bearer {KEY}"})
    sent = {name.lower(): value for name, value in engine._transport._headers(request)}
    assert (b"openai-organization" in sent) == official
    assert (sent[b"authorization"] == f"Bearer {KEY}".encode()) == official


def test_a_server_of_ones_own_gets_neither_key_nor_headers_of_the_environment(
    serve: Serve, make_ask: Callable[..., Ask], monkeypatch: pytest.MonkeyPatch
) -> None:
    secrets = {
        "OPENAI_API_KEY": KEY, "OPENAI_ADMIN_KEY": "sk-admin-secret-1", "OPENAI_ORG_ID": "org-secret-2",
        "OPENAI_PROJECT_ID": "proj-secret-3",
        "OPENAI_CUSTOM_HEADERS": "X-Custom: secret-4\nAuthorization: Bearer secret-5",
    }  # fmt: skip
    for name, value in secrets.items():
        monkeypatch.setenv(name, value)
    server = serve(lambda c, _: reply(c, completion()))
    list(HttpEngine(server.url, "good", timeout=120).answer([make_ask()]))
    connect(server.url, "good", timeout=120)
    assert len(server.requests) > 5
    for request in server.requests:
        assert request.headers["authorization"] == "Bearer EMPTY"
        assert "secret" not in str(request) and not [h for h in request.headers if h.startswith(("openai", "x-"))]


def test_a_key_that_comes_back_is_scrubbed_wherever_it_is_written(
    serve: Serve, make_ask: Callable[..., Ask], tmp_path: Path
) -> None:
    text, ids = f"your key is {KEY}", [1, 2, 3]
    message = {"role": "assistant", "content": text, "reasoning_content": f"{KEY}?"}
    whole = completion(text, model=KEY, message=message, token_ids=ids, prompt_token_ids=ids)
    server = serve(lambda c, _: reply(c, whole))
    engine, ask = engine_at(server, signed_as=None), make_ask()
    response = one(engine, ask)
    assert response.text == "your key is ***" and response.response_ids is None, "the ids would spell it"
    assert response.prompt_ids == (1, 2, 3)
    assert response.provenance == {"reasoning": "***?", "model": "***", "key_scrubbed": True}
    engine.check()
    with Journal(tmp_path) as journal:
        journal.begin(engine.identity, engine.provenance)
        journal.record(response.ask, ask, response, engine.identity)
    assert KEY.encode() not in b"".join(p.read_bytes() for p in tmp_path.iterdir())


ECHOES = {
    "upper case": str.upper,
    "lower case": str.lower,
    "in a URL": lambda key: quote(key, safe=""),
    "in a path": quote,
    "in JSON": lambda key: json.dumps(key).replace("/", "\\/"),
    "in JSON by number": lambda key: "".join(f"\\u{ord(c):04X}" for c in key),
    "hexadecimal": lambda key: key.encode().hex(),
    "Base64": lambda key: base64.b64encode(key.encode()).decode(),
    "Base64 after one byte": lambda key: base64.b64encode(f"a{key}b".encode()).decode()[2:-3],
    "Base64 after two bytes": lambda key: base64.urlsafe_b64encode(f"aa{key}bb".encode()).decode()[3:-3],
}


@pytest.mark.parametrize("echo", ECHOES)
def test_a_key_is_scrubbed_in_whatever_form_it_comes_back(
    serve: Serve, make_ask: Callable[..., Ask], echo: str
) -> None:
    key = "sk-Se/cret+Key~0123>?456=="
    form = ECHOES[echo](key)
    server = serve(lambda c, _: reply(c, completion(f"it is {form}", model=f"m {form}", reasoning=[form])))
    said = one(engine_at(server, api_key=key, signed_as=None), make_ask())
    error = json.dumps({"error": {"message": "x" * 190 + form}}).encode()
    server.behave = lambda c, _: reply(c, error, "400 Bad Request")
    refused = one(engine_at(server, api_key=key), make_ask())
    server.behave = lambda c, _: reply(c, completion()[:-1] + b"," + error[1:])
    beside = one(engine_at(server, api_key=key), make_ask())
    for written in (said.text, (said.provenance or {})["model"], refused.error, beside.error):
        assert "***" in str(written)
        assert form.strip('"')[4:12] not in str(written)


@pytest.mark.parametrize(
    "key", ["sk-0123456789\n", " sk-0123456789", "sk-01\r\nX-Evil: 1", "sk-\x7f-0123456", "schlüssel-01"]
)
def test_a_key_that_cannot_be_sent_is_refused_at_once_and_not_shown(
    serve: Serve, key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = serve(lambda c, _: reply(c, completion()))
    monkeypatch.setenv("ODD_KEY", key)
    with pytest.raises(InputError, match="--api-key-env ODD_KEY: the key holds a line end") as raised:
        key_for(server.url, "ODD_KEY", own=True)
    assert "0123456" not in str(raised.value)
    with pytest.raises(InputError, match="the API key"):
        engine_at(server, api_key=key)
    monkeypatch.setenv("OPENAI_API_KEY", key)
    with pytest.raises(InputError, match="OPENAI_API_KEY: the key holds"):
        HttpEngine("https://api.openai.com/v1", "m")
    assert server.requests == []


def test_half_a_character_in_a_name_or_a_thought_reaches_no_file(serve: Serve, make_ask: Callable[..., Ask]) -> None:
    message = {"role": "assistant", "content": "6", "reasoning_content": "a\ud800"}
    server = serve(lambda c, _: reply(c, completion(model="\ud800m", message=message)))
    assert one(engine_at(server), make_ask()).provenance == {"reasoning": "a\ufffd", "model": "\ufffdm"}


def test_a_placeholder_for_a_key_changes_no_answer(serve: Serve, make_ask: Callable[..., Ask]) -> None:
    server = serve(lambda c, _: reply(c, completion("EMPTY or 6")))
    for key in (None, "6"):
        assert one(engine_at(server, api_key=key), make_ask()).text == "EMPTY or 6"
    server.behave = lambda c, _: reply(c, b'{"error": {"message": "EMPTY field"}}', "400 Bad Request")
    assert "EMPTY field" in str(one(engine_at(server, api_key=None), make_ask()).error)


def test_escape_sequences_of_a_server_are_written_out_in_errors_and_names(
    serve: Serve, make_ask: Callable[..., Ask]
) -> None:
    evil = "\x1b]0;owned\x07\x1b[2J\u202egnp.exe\x9b31m"
    body = json.dumps({"error": {"message": evil}}).encode()
    response = one(engine_at(serve(lambda c, _: reply(c, body, "400 Bad Request"))), make_ask())
    signed = one(engine_at(serve(lambda c, _: reply(c, completion(model=evil)))), make_ask())
    for said in (str(response.error), str((signed.provenance or {})["model"])):
        assert "owned" in said and not set(said) & set("\x1b\x07\x9b\u202e")


@pytest.mark.parametrize(
    ("proxies", "kind", "host", "auth"),
    [
        ({}, None, b"", None),
        ({"http": "http://u:p@proxy:3128"}, "http", b"proxy", (b"u", b"p")),
        ({"http": "proxy:3129"}, "http", b"proxy", None),
        ({"all": "socks5://proxy:1080"}, "socks", b"proxy", None),
        ({"http": "http://own:3128", "all": "socks5://proxy:1080"}, "http", b"own", None),
        ({"https": "http://proxy:3128"}, None, b"", None),
    ],
)
def test_the_proxy_is_the_one_that_the_environment_names_for_the_server(
    proxies: dict[str, str], kind: str | None, host: bytes, auth: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    def pool(url: str) -> Any:
        return transport._pool(url, transport._Network(transport._Clock()), 3)

    made = {"http": lambda **given: ("http", given), "socks": lambda **given: ("socks", given)}
    monkeypatch.setattr(transport.httpcore2, "HTTPProxy", made["http"])
    monkeypatch.setattr(transport.httpcore2, "SOCKSProxy", made["socks"])
    monkeypatch.setattr(transport.urllib.request, "proxy_bypass", lambda host: host in ("near", "far:8000"))
    monkeypatch.setattr(transport.urllib.request, "getproxies", lambda: proxies)
    if kind is None:
        assert type(pool("http://server:8000/v1")) is httpcore2.ConnectionPool
    else:
        name, given = pool("http://server:8000/v1")
        assert (name, given["proxy_url"].host, given["proxy_auth"]) == (kind, host, auth)
        assert given["max_connections"] == 3 and given["ssl_context"] is not None
    assert type(pool("http://near/v1")) is type(pool("http://far:8000/v1")) is httpcore2.ConnectionPool


@pytest.mark.parametrize(("proxy", "said"), [("socks5://proxy:1080", "socksio"), ("ftp://proxy", "no URL of a proxy")])
def test_a_proxy_that_cannot_be_used_is_a_mistake_of_the_environment(
    proxy: str, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transport.urllib.request, "proxy_bypass", lambda host: False)
    monkeypatch.setattr(transport.urllib.request, "getproxies", lambda: {"all": proxy})

    def refuse(**_: object) -> None:
        raise RuntimeError("SOCKS needs a package")

    monkeypatch.setattr(transport.httpcore2, "SOCKSProxy", refuse)
    with pytest.raises(InputError, match=f"{said}.*or name the server in NO_PROXY"):
        HttpEngine("http://server:8000/v1", "m")


def test_an_answer_whose_thinking_the_server_has_taken_out_ends_at_its_stop_string(
    serve: Serve, make_ask: Callable[..., Ask], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(HttpEngine, "opens_thinking", lambda engine, ask: True)
    message = {"role": "assistant", "content": (said := "6</answer> or 7"), "reasoning_content": "Is it 6</answer>?"}
    server = serve(lambda c, _: reply(c, completion(said, message=message)))
    response = one(engine_at(server), make_ask(stop=("</answer>",)))
    assert (response.text, response.finish_reason) == ("6</answer>", "stop")
