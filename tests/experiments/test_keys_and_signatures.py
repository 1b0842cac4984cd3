"""Which server gets which key, and what a run says about answers that another model signed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hostile_server import Hostile, completion, reply

from composcope.errors import InputError
from composcope.evaluation.asks import Response
from composcope.evaluation.engines import http
from composcope.evaluation.engines.addresses import key_for
from composcope.experiments.cli import main
from composcope.experiments.evaluating.evaluate import recount
from composcope.experiments.models.target import open_role
from composcope.experiments.run import read_json
from composcope.experiments.run.checks import signed_otherwise

OFFICIAL, OWN, JUDGE = "sk-official-0123456789", "sk-own-server-0123456789", "sk-judge-0123456789"
URL = "http://192.168.1.7:8000/v1"


@pytest.fixture(autouse=True)
def keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"OPENAI_API_KEY": OFFICIAL, "OWN_KEY": OWN, "JUDGE_KEY": JUDGE}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("UNSET_KEY", raising=False)


@pytest.fixture
def servers() -> Iterator[list[Hostile]]:
    """A target and a judge on this machine."""
    found = [
        Hostile(lambda c, _: reply(c, completion("So the answer is: blue"))),
        Hostile(lambda c, _: reply(c, completion("Verdict: yes"))),
    ]
    yield found
    for server in found:
        server.close()


@pytest.fixture
def case_file(tmp_path: Path) -> Path:
    cases = [
        {"id": f"c{i}", "question": f"What is {i}?", "answer": f"word {i}", "answer_type": "text",
         "parts": [{"question": f"What is part {i}?", "answer": "x", "answer_type": "text"}]}
        for i in range(12)
    ]  # fmt: skip
    path = tmp_path / "cases.jsonl"
    path.write_text("".join(json.dumps(case) + "\n" for case in cases))
    return path


@pytest.mark.parametrize(
    ("url", "named", "own", "key"),
    [
        (URL, None, True, None),
        (URL, None, False, None),
        ("http://localhost:8000/v1", None, False, None),
        (URL, "OWN_KEY", True, OWN),
        (URL, "OWN_KEY", False, None),
        (URL, "192.168.1.7=JUDGE_KEY", False, JUDGE),
        (URL, "192.168.1.7:8000=JUDGE_KEY", False, JUDGE),
        (URL, "192.168.1.7:9000=JUDGE_KEY", False, None),
        (URL, "192.168.1.70=JUDGE_KEY", False, None),
        (URL, "OWN_KEY, judge.lan=JUDGE_KEY", True, OWN),
        (URL, "OWN_KEY, 192.168.1.7=JUDGE_KEY", True, JUDGE),
        (URL, "192.168.1.7=JUDGE_KEY, OWN_KEY", True, JUDGE),
        (URL, "192.168.1.7=OWN_KEY, 192.168.1.7:8000=JUDGE_KEY", False, JUDGE),
        ("https://judge.lan/v1", "OWN_KEY, judge.lan=JUDGE_KEY", False, JUDGE),
        ("https://api.openai.com/v1", "judge.lan=JUDGE_KEY", False, None),
        ("https://Judge.LAN/v1", "judge.lan=JUDGE_KEY", False, JUDGE),
        ("https://judge.lan/v1", "JUDGE.lan:443=JUDGE_KEY", False, JUDGE),
        ("https://judge.lan/v1", "judge.lan:80=JUDGE_KEY", False, None),
        ("http://judge.lan.evil.example/v1", "judge.lan=JUDGE_KEY", False, None),
        ("http://[::1]:8000/v1", "::1=JUDGE_KEY", False, JUDGE),
        ("http://[::1]:8000/v1", "[::1]=JUDGE_KEY", False, JUDGE),
        ("http://[::1]:8000/v1", "[::1]:8000=JUDGE_KEY", False, JUDGE),
        ("http://[::1]:8000/v1", "[::1]:9000=JUDGE_KEY", False, None),
    ],
)
def test_a_key_goes_to_the_server_that_it_was_named_for(
    url: str, named: str | None, own: bool, key: str | None
) -> None:
    assert key_for(url, named, own=own) == key


def test_a_variable_that_is_not_set_is_said() -> None:
    with pytest.raises(InputError, match="--api-key-env UNSET_KEY: not set in the environment"):
        key_for(URL, "192.168.1.7=UNSET_KEY")


def test_a_judge_or_teacher_on_this_machine_gets_no_key_unless_it_is_named(servers: list[Hostile]) -> None:
    _, server = servers
    open_role(f"good@{server.url}", "--judge")
    assert {r.headers["authorization"] for r in server.requests} == {"Bearer EMPTY"}
    host = server.url.removeprefix("http://").removesuffix("/v1")
    server.requests.clear()
    open_role(f"good@{server.url}", "--teacher", key_env=f"OWN_KEY,{host}=JUDGE_KEY")
    assert {r.headers["authorization"] for r in server.requests} == {f"Bearer {JUDGE}"}


def test_a_role_behind_a_server_is_opened_with_its_key_and_the_names_that_it_may_sign_with(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    opened: list[Any] = []
    monkeypatch.setattr(http, "connect", lambda *of, **options: opened.append((*of, options)))
    for names in (("a", "b"), None):
        open_role("m@http://host:1/v1", "--judge", key_env="host:1=JUDGE_KEY", signed_as=names)
    assert opened == [("http://host:1/v1", "m", {"api_key": JUDGE, "signed_as": names}) for names in (("a", "b"), None)]


def test_target_and_judge_of_a_run_each_get_their_own_key(
    servers: list[Hostile], case_file: Path, tmp_path: Path
) -> None:
    target, judge = servers
    host = judge.url.removeprefix("http://").removesuffix("/v1")
    command = ["evaluate", "-m", f"good@{target.url}", "-b", str(case_file), "-o", str(tmp_path / "r"), "--quiet"]
    main([*command, "--judge", f"good@{judge.url}", "--api-key-env", f"OWN_KEY,{host}=JUDGE_KEY"])
    assert {r.headers["authorization"] for r in target.requests} == {f"Bearer {OWN}"}
    assert {r.headers["authorization"] for r in judge.requests} == {f"Bearer {JUDGE}"}
    everything = b"".join(p.read_bytes() for p in (tmp_path / "r").rglob("*") if p.is_file())
    assert not [key for key in (OFFICIAL, OWN, JUDGE) if key.encode() in everything]


def test_a_count_as_a_paper_counts_leaves_the_judge_out(
    servers: list[Hostile], case_file: Path, tmp_path: Path
) -> None:
    target, judge = servers
    command = ["evaluate", "-m", f"good@{target.url}", "-b", str(case_file), "-o", str(tmp_path / "r"), "--quiet"]
    main([*command, "--judge", f"good@{judge.url}"])
    judged = {m["metric"]: m["count"] for m in read_json(tmp_path / "r" / "metrics.json")["metrics"] if not m["group"]}
    again = {m.metric: m.count for m in recount(tmp_path / "r", "collapse") if not m.group}
    assert (judged["composition"], again["composition"]) == (12, 0)
    with pytest.raises(InputError, match="nobody"):
        recount(tmp_path / "r", "nobody")


def test_asks_that_got_no_answer_are_not_among_the_signed_ones() -> None:
    ends = ("stop", "stop", "error")
    said = [Response(str(i), "", end, 1, 1, provenance={"model": "another"}) for i, end in enumerate(ends)]  # type: ignore[arg-type]
    (metric,), _, found = signed_otherwise(said, {"model": "good"}, None)
    assert (metric.count, metric.n, found) == (2, 2, {"another": 2})


def test_answers_signed_by_another_model_are_counted_in_log_manifest_and_metrics(
    case_file: Path, tmp_path: Path
) -> None:
    server = Hostile(
        lambda c, r: reply(c, completion("blue", model="another-7b" if "What is 7?" in r.prompt else "good"))
    )
    out = tmp_path / "r"
    command = ["evaluate", "-m", f"good@{server.url}", "-b", str(case_file), "-o", str(out), "--concurrency", "1"]
    main([*command, "--quiet"])
    server.close()
    n = len({r.prompt for r in server.requests if "What is" in r.prompt})  # one that came too late is asked again
    row = {"metric": "signed_otherwise", "n": n, "count": 1, "value": pytest.approx(1 / n)}
    for _ in range(2):
        found = [m for m in read_json(out / "metrics.json")["metrics"] if m["metric"] == "signed_otherwise"]
        assert [{k: m[k] for k in row} for m in found] == [row]
        assert any("'another-7b' 1" in w for w in read_json(out / "metrics.json")["warnings"])
        main(["score", str(out), "--quiet"])  # counted again from the journal
    assert read_json(out / "manifest.json")["signed_otherwise"] == {"another-7b": 1}
    assert f"another model than 'good' for 1 of {n} different answers" in (out / "log.txt").read_text()


@pytest.mark.parametrize(
    "key", ["sk-secret ", " sk-secret", "sk-secret\n", "sk-secret\r\nHost: x", "sk-s\u00e9cret", "sk\tsecret"]
)
def test_a_key_that_cannot_stand_in_a_header_is_refused_and_not_shown(
    key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_KEY", key)
    with pytest.raises(InputError, match="--api-key-env MY_KEY") as e:
        key_for("http://localhost:8000/v1", "MY_KEY", own=True)
    assert "cret" not in str(e.value)
    for good in ("k", "sk-secret", "two words"):
        monkeypatch.setenv("MY_KEY", good)
        assert key_for("http://localhost:8000/v1", "localhost=MY_KEY") == good
    assert key_for("http://localhost:8000/v1", "MY_KEY") is None, "of another server"
