"""What commands print: strict JSON, and text that any terminal can write."""

from __future__ import annotations

import io
import json
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest

from composcope.errors import InputError
from composcope.experiments.cli.organism import _progress
from composcope.experiments.console import exits
from composcope.experiments.console.printing import Reporter, cell, show, table
from composcope.terminal import to_stderr


def _printed(value: object, as_json: bool, encoding: str, monkeypatch: pytest.MonkeyPatch) -> bytes:
    inner = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(inner, encoding=encoding, write_through=True))
    show(value, as_json)
    return inner.getvalue()


def test_json_is_strict_whatever_the_numbers_and_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    value = {"a": float("nan"), "b": [np.float32(0.5), float("inf"), np.int64(3), True, None], 2: Path("runs/x")}
    text = _printed(value, True, "utf-8", monkeypatch)

    def refuse(word: str) -> float:
        raise AssertionError(word)

    found = json.loads(text, parse_constant=refuse)
    assert found == {"a": None, "b": [0.5, None, 3, True, None], "2": "runs/x"}


@pytest.mark.parametrize("encoding", ["utf-8", "ascii", "latin-1"])
@pytest.mark.parametrize("text", ["é → ∞", "half a character: \ud83d"])
def test_text_that_the_terminal_cannot_write_is_escaped(
    text: str, encoding: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert json.loads(_printed({"said": text}, True, encoding, monkeypatch)) == {"said": text}
    plain = _printed([text], False, encoding, monkeypatch).decode(encoding)
    assert plain == text.encode(encoding, "backslashreplace").decode(encoding) + "\n"


def test_a_number_in_a_table_has_three_decimals_and_nothing_is_a_dash() -> None:
    values = (0.12345, 2, None, "", [], {}, (0.5, None), {"a": 0.25})
    assert [*map(cell, values)] == ["0.123", "2", "-", "-", "-", "-", "0.500, -", "a=0.250"]
    assert table([{"longer": 1}, {"a": "b"}]) == ["longer  a", "1       -", "-       b"]


HOSTILE = "\x1b]0;title\x07\x1b[2J\x9b31m\u202egnp.exe\r\u2066\u2069"
STEERING = set("\x1b\x07\x9b\u202e\r\u2066\u2069")


@pytest.mark.parametrize("as_json", [True, False])
def test_no_escape_sequence_of_a_field_reaches_the_terminal(as_json: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    value = {HOSTILE: HOSTILE} if as_json else [f"case {HOSTILE}"]
    text = _printed(value, as_json, "utf-8", monkeypatch).decode()
    assert "title" in text and not set(text) & STEERING
    assert not as_json or json.loads(text) == value


@pytest.mark.parametrize("name", ["a[bold]b", "x[/y].jsonl"])
def test_a_name_in_brackets_is_shown_as_it_is_above_a_bar(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    stream = io.StringIO()
    monkeypatch.setattr(stream, "isatty", lambda: True)
    with Reporter(stream=stream).bar(f"reading {name}", 3) as advance:
        advance(1)
    assert f"reading {name} " in stream.getvalue()
    said, tasks = io.StringIO(), _progress()
    monkeypatch.setattr(sys, "stderr", said)
    with tasks as (step_done, say):
        step_done(name, 1, 4, 0.6)
        step_done(name, 2, 4, 0.5)
        say(f"{name}: made before")
    assert f"{name}: made before" in said.getvalue() and f"{name} (loss 0.500)" in said.getvalue()
    assert " 50%" in said.getvalue()


def test_no_escape_sequence_reaches_stderr_or_the_log(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    reporter = Reporter(tmp_path / "log.txt")
    reporter.say(f"server says {HOSTILE}")
    usual = warnings.showwarning
    with reporter.logging_warnings():
        warnings.warn(f"careful {HOSTILE}", stacklevel=1)
    assert warnings.showwarning is usual
    to_stderr(HOSTILE)

    def fail() -> None:
        raise InputError(f"cases.jsonl: field 'id' is {HOSTILE}")

    assert exits.guarded(fail, lambda: "again") == 1
    for said in (capsys.readouterr().err, (tmp_path / "log.txt").read_text()):
        assert "title" in said and not set(said) & STEERING


def test_a_traceback_shown_for_debugging_steers_nothing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(exits.DEBUG, "1")

    def fail() -> None:
        raise KeyError(HOSTILE) from ValueError(HOSTILE)

    assert exits.guarded(fail, lambda: "again") == 1
    said = capsys.readouterr().err
    assert "Traceback" in said and not set(said) & STEERING
