"""Servers whose replies are well-formed JSON and still not what they should be, each a real HTTP exchange."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import SimpleNamespace
from typing import Any

import openai
import pytest

from composcope.errors import ModelError
from composcope.evaluation.asks import Ask, Response
from composcope.evaluation.engines import replies, transport
from composcope.evaluation.engines.base import think
from composcope.evaluation.engines.http import HttpEngine
from composcope.evaluation.engines.replies import TrialReply, find_capabilities
from composcope.evaluation.grading import grade
from composcope.evaluation.journal import Journal, read_journal

Says = Callable[..., Response]


class Server(ThreadingHTTPServer):
    daemon_threads = True
    status, headers, body, asked, sent = 200, {}, b"", 0, {}


class Handler(BaseHTTPRequestHandler):
    def log_message(self, format: str, *args: Any) -> None:
        pass

    def do_POST(self) -> None:
        server: Any = self.server
        server.sent = json.loads(self.rfile.read(int(self.headers["Content-Length"] or 0)) or "{}")
        server.asked += 1
        self.send_response(server.status)
        for name, value in {"Content-Type": "application/json", **server.headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(server.body)


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    found = Server(("127.0.0.1", 0), Handler)
    threading.Thread(target=found.serve_forever, daemon=True).start()
    yield found
    found.shutdown()


@pytest.fixture
def engine(server: Server, monkeypatch: pytest.MonkeyPatch) -> HttpEngine:
    monkeypatch.setattr(transport, "_BACKOFF_SECONDS", 0.0)
    server.status, server.headers, server.asked = 200, {}, 0
    return HttpEngine(f"http://127.0.0.1:{server.server_address[1]}/v1", "good", retries=1, timeout=120)


@pytest.fixture
def says(server: Server, engine: HttpEngine, make_ask: Callable[..., Ask]) -> Says:
    """Answers an ask with a reply that differs from a good one in its choice, its message or itself."""

    def answer(choice: Any = None, message: Any = None, reply: Any = None) -> Response:
        said = {"role": "assistant", "content": "So the final answer is: 6", **(message or {})}
        first = {"index": 0, "finish_reason": "stop", "logprobs": None, "message": said, **(choice or {})}
        usage = {"prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 7}
        whole = {"id": "x", "object": "chat.completion", "created": 0, "model": "good", "choices": [first]}
        server.body = json.dumps({**whole, "usage": usage, **(reply or {})}).encode()
        [(_, response)] = engine.answer([make_ask("How many?", format="cot", answer_type="number", gold="6")])
        return response

    return answer


def outcome(response: Response) -> tuple[str, str | None]:
    found = grade(response.text, response.finish_reason, "6", "number", format="cot")
    return found.outcome, found.reason


@pytest.mark.parametrize("finish", ["Abort", "error", "cancelled", "insufficient_system_resource"])
def test_a_reply_that_the_server_broke_off_is_tried_again_and_never_an_answer(
    says: Says, server: Server, finish: str
) -> None:
    # "1" of "16": the part of an answer that was there would be graded as wrong
    response = says({"finish_reason": finish}, {"content": "So the final answer is: 1"})
    assert outcome(response) == ("invalid", "error") and finish in str(response.error)
    assert server.asked == 2


def test_a_server_that_takes_a_stop_string_and_goes_on_honors_none() -> None:
    found = find_capabilities(
        lambda way, *, max_tokens, **_: TrialReply("one two three four"[: 2 * max_tokens], "x", 1)
    )
    assert (found.chat, found.max_tokens, found.stop) == (True, True, False)


def test_what_cannot_be_told_of_a_server_is_neither_honored_nor_ignored() -> None:
    def send(way: str, *, max_tokens: int, **_: Any) -> TrialReply | None:
        return TrialReply("one two three four"[: 2 * max_tokens], "length", None) if way == "raw" else None

    assert find_capabilities(send).to_dict() == {
        "chat": False, "raw": True, "max_tokens": True, "stop": False, "repeatable": None, "sampling": False,
        "seed": None, "token_ids": False,
    }  # fmt: skip


def test_an_error_beside_the_choices_is_an_error(says: Says) -> None:
    response = says(message={"content": ""}, reply={"error": {"message": "upstream failed", "code": 502}})
    assert response.finish_reason == "error" and "upstream failed" in str(response.error)


@pytest.mark.parametrize("finish", ["length", "max_tokens", "model_length", "model_context_window_exceeded"])
def test_every_name_of_a_spent_budget_is_truncation(says: Says, finish: str) -> None:
    assert outcome(says({"finish_reason": finish})) == ("invalid", "truncated")


@pytest.mark.parametrize("finish", ["stop", "eos_token", "end_turn"])
def test_every_name_of_an_end_is_an_end(says: Says, finish: str) -> None:
    assert outcome(says({"finish_reason": finish})) == ("correct", None)


@pytest.mark.parametrize("finish", ["content_filter", "SAFETY", "recitation"])
def test_what_a_filter_withheld_is_an_error(says: Says, finish: str) -> None:
    assert "filter" in str(says({"finish_reason": finish}).error)


def test_a_refusal_in_a_field_of_its_own_is_an_abstention(says: Says) -> None:
    assert outcome(says(message={"content": None, "refusal": "I can't help with that."}))[0] == "abstained"


def test_content_in_parts_is_read_without_its_thoughts(says: Says) -> None:
    parts = [{"type": "thinking", "text": "5?"}, {"type": "text", "text": "So the final answer is: 6"}]
    assert says(message={"content": parts}).text == "So the final answer is: 6"


@pytest.mark.parametrize(
    "usage",
    [
        None,
        {},
        {"prompt_tokens": None, "completion_tokens": None},
        {"prompt_tokens": "3"},
        {"prompt_tokens": -3, "completion_tokens": True},
        {"prompt_tokens": 10**4000, "completion_tokens": 10**400},
    ],
    ids=["none", "empty", "null", "text", "negative", "huge"],
)
def test_counts_that_are_missing_or_impossible_are_zero_and_survive_the_journal(
    says: Says, engine: HttpEngine, make_ask: Callable[..., Ask], tmp_path: Any, usage: Any
) -> None:
    response = says(reply={"usage": usage})
    assert (response.prompt_tokens, response.response_tokens) == (0, 0)
    with Journal(tmp_path) as journal:
        journal.record(response.ask, make_ask("How many?"), response, engine.identity)
    assert read_journal(tmp_path).responses[response.ask] == response


@pytest.mark.parametrize("ids", [[1, None], "abc", [1.0, 2.0], [True], [-1], {"0": 1}])
def test_ids_that_are_no_whole_numbers_are_no_ids(says: Says, ids: Any) -> None:
    response = says({"token_ids": ids, "prompt_token_ids": ids})
    assert response.text and (response.prompt_ids, response.response_ids) == (None, None)
    assert says({"token_ids": [4]}, reply={"prompt_token_ids": [1, 2]}).prompt_ids == (1, 2), "vLLM's place in a chat"


def test_half_a_character_does_not_reach_the_files(says: Says) -> None:
    assert says(message={"content": "6 \ud83d"}).text == "6 \ufffd"
    assert says(message={"content": "6 \U0001f600"}).text == "6 \U0001f600"


def test_the_choice_with_the_lowest_number_counts(says: Says) -> None:
    choices = [
        {
            "index": i,
            "finish_reason": "stop",
            "message": {"role": "assistant", "content": f"So the final answer is: {n}"},
        }
        for i, n in ((1, 9), (0, 6))
    ]
    assert says(reply={"choices": choices}).text.endswith("6")


def test_a_name_without_end_is_cut_since_it_is_kept_with_every_answer(says: Says) -> None:
    assert len((says(reply={"model": "m" * 500_000}).provenance or {})["model"]) == 1000


@pytest.mark.parametrize("stated", [-5, 0, True, "4096", 10**400, None])
def test_a_context_that_no_model_has_changes_no_request(
    engine: HttpEngine, server: Server, stated: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    listed = {"object": "list", "data": [{"id": "good", "object": "model", "max_model_len": stated}]}
    server.body = json.dumps(listed).encode()
    monkeypatch.setattr(Handler, "do_GET", Handler.do_POST, raising=False)
    assert engine._find_context() is None


@pytest.mark.parametrize(("listed", "context"), [("another", None), ("good", 99)])
def test_the_context_is_that_of_the_model_that_is_asked(
    engine: HttpEngine, server: Server, listed: str, context: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    models = [{"id": name, "object": "model", "max_model_len": n} for name, n in (("other", 10), (listed, 99))]
    server.body = json.dumps({"object": "list", "data": models}).encode()
    monkeypatch.setattr(Handler, "do_GET", Handler.do_POST, raising=False)
    assert engine._find_context() == context


def test_a_reply_signed_by_another_model_says_so(says: Says, engine: HttpEngine) -> None:
    assert says().provenance is None
    assert says(reply={"model": "another-7b"}).provenance == {"model": "another-7b"}
    assert engine.answered_as is None
    engine.probe("chat", prompt="Count", max_tokens=3)
    assert engine.answered_as == "another-7b" and engine.provenance["answered_as"] == "another-7b"


def test_a_pause_longer_than_is_waited_for_is_said(says: Says, server: Server) -> None:
    server.status, server.headers = 429, {"Retry-After": "3600"}
    assert "Retry-After: 3600" in str(says(reply={"error": {"message": "slow down"}}).error)


@pytest.mark.parametrize(
    ("status", "body", "said"),
    [
        (200, b"<html>", r"not a completion after 2 tries \(Expecting value[^;]*\); check the base URL"),
        (200, b'{"choices": []}', r"after 2 tries \(\w+ without choices\); check the base URL"),
        (400, b'{"error": {"message": "no max_tokens here"}}', r"answers neither .*no max_tokens here"),
        (503, b'{"error": {"message": "starting"}}', "503.*starting.*is the server running"),
    ],
)
def test_a_server_that_cannot_be_used_is_said_with_its_own_words_once(
    server: Server, engine: HttpEngine, status: int, body: bytes, said: str
) -> None:
    server.status, server.body, waited = status, body, []
    engine.say = waited.append
    with pytest.raises(ModelError, match=said) as error:
        engine.check()
    assert "Expecting value" not in str(error.value).replace("Expecting value", "", 1)
    assert len(waited) == (status != 400) and all("; trying again" in line for line in waited)


@pytest.mark.parametrize(("choice", "message"), [({"finish_reason": None}, {}), ({}, {"content": 3})])
def test_a_choice_without_text_or_end_is_an_error(says: Says, choice: Any, message: Any) -> None:
    response = says(choice, message)
    assert response.finish_reason == "error" and "choice without text or finish_reason" in str(response.error)


@pytest.mark.parametrize(("encoding", "said"), [("br", "'br'"), ("gzip", "cannot be decompressed")])
def test_a_reply_that_cannot_be_unpacked_is_an_error(
    says: Says, server: Server, monkeypatch: pytest.MonkeyPatch, encoding: str, said: str
) -> None:
    server.headers = {"Content-Encoding": encoding}
    response = says()
    assert response.finish_reason == "error" and said in str(response.error)


def test_what_a_server_cannot_do_or_be_is_refused_before_anything_is_sent(
    engine: HttpEngine, server: Server, make_ask: Callable[..., Ask]
) -> None:
    wrong: list[tuple[str, dict[str, Any], str]] = [
        ("ftp://host/v1", {}, "'ftp://host/v1'"),
        ("host:8000/v1?key=x", {}, "'host:8000/v1'"),
        ("me:word@host/v1", {}, "'host/v1'"),
        ("ftp://me:word@Host/v1?key=x", {}, "'ftp://host/v1'"),
        ("http://host/v1", {"concurrency": 0}, "concurrency is 0"),
    ]
    for url, options, said in wrong:
        with pytest.raises(ModelError, match=said):
            HttpEngine(url, "good", **options)
    with pytest.raises(ModelError, match=r"'good'.*begin its answer"):
        list(engine.answer([make_ask("a"), make_ask("b", begun="So")]))
    assert server.asked == 0
    last = HttpEngine("https://host/v1", "good", concurrency=1, revision="r2")
    assert (last.concurrency, last.identity) == (1, {"model": "good", "revision": "r2", "chat_options": "{}"})


def test_the_thinking_of_an_ask_is_sent_as_an_option_of_the_chat_template(
    says: Says, server: Server, engine: HttpEngine, make_ask: Callable[..., Ask]
) -> None:
    says()
    list(engine.answer([make_ask("a")]))
    assert "chat_template_kwargs" not in server.sent
    list(engine.answer([make_ask("a", thinking=False, stop=("x",), seed=3, temperature=0.5)]))
    assert server.sent["chat_template_kwargs"] == think(False)
    assert (server.sent["stop"], server.sent["temperature"]) == (["x"], 0.5)


def test_the_key_is_taken_out_of_lists_and_objects_too() -> None:
    engine = HttpEngine("http://host/v1", "good", api_key="sk-12345")
    said = {"a sk-12345": ["x sk-12345", 1, None]}
    assert engine._scrubbed(said) == {"a ***": ["x ***", 1, None]}


@pytest.mark.parametrize(
    ("text", "reason", "found"),
    [
        ("a END b", None, ("a END", True)),
        ("a ", "END", ("a END", True)),
        ("a ", "OTHER", ("a ", False)),
        ("a ", 7, ("a ", False)),
        ("a ", None, ("a ", False)),
    ],
)
def test_a_stop_string_that_the_server_took_off_is_put_back(text: str, reason: Any, found: tuple[str, bool]) -> None:
    assert replies.end_at_stop(text, ("END",), SimpleNamespace(stop_reason=reason)) == found


def _reply(text: str, tokens: int | None = None) -> TrialReply:
    return TrialReply(text, "stop", tokens)


def test_a_field_is_honored_ignored_or_unknown_by_what_comes_back() -> None:
    long = _reply("one two three four")
    for short, honored in (
        (None, None), (_reply("x", 3), True), (_reply("x", 4), False), (_reply("one"), True), (long, None),
    ):  # fmt: skip
        assert replies._shortened(long, short) is honored
    asked: list[Any] = []

    def stopped(free: TrialReply, found: TrialReply | None) -> bool | None:
        return replies._stopped(lambda way, **given: (asked.append((way, given["stop"])), found)[1], "raw", free)

    assert stopped(long, None) is False and asked == [("raw", (long.text[9:11],))]
    assert stopped(long, _reply("one")) is True and stopped(long, long) is False
    assert [stopped(_reply(text), long) for text in ("a", "a   ", "a\ufffdbc")] == [None] * 3 and len(asked) == 3


@pytest.mark.parametrize(("status", "again"), [
    (408, True), (409, True), (429, True), (500, True), (503, True), (529, True),
    (400, False), (401, False), (403, False), (404, False), (413, False), (422, False), (499, False),
])  # fmt: skip
def test_a_request_is_sent_again_where_the_status_says_that_the_trouble_passes(status: int, again: bool) -> None:
    def once(_: float) -> str:
        tries.append(1)
        if len(tries) < 2:
            response: Any = SimpleNamespace(status_code=status, request=None, headers={"retry-after": "0.001"})
            raise openai.APIStatusError("no", response=response, body=None)
        return "reply"

    tries: list[int] = []
    if again:
        assert transport.send(once, retries=1, timeout=9, deadline=9) == "reply" and len(tries) == 2
    else:
        with pytest.raises(openai.APIStatusError):
            transport.send(once, retries=1, timeout=9, deadline=9)
        assert len(tries) == 1
