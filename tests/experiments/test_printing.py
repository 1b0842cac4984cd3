"""What commands print: strict JSON, and text that any terminal can write."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path

import numpy as np
import pytest

from composcope.experiments.printing import show


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
@pytest.mark.parametrize("text", ["é → \u202e", "half a character: \ud83d"])
def test_text_that_the_terminal_cannot_write_is_escaped(
    text: str, encoding: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert json.loads(_printed({"said": text}, True, encoding, monkeypatch)) == {"said": text}
    plain = _printed([text], False, encoding, monkeypatch).decode(encoding)
    assert plain == text.encode(encoding, "backslashreplace").decode(encoding) + "\n"
