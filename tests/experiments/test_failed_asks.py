"""Asks that a server refused: invalid, said, kept when scored again, and asked again by the same command."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from composcope.evaluation.cases import Case, Part, write_cases
from composcope.experiments.cli import main
from composcope.experiments.run import read_json, read_lines

SERVER = Path(__file__).resolve().parents[1] / "evaluation" / "engines" / "faulty_server.py"


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    process = subprocess.Popen([sys.executable, str(SERVER)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    yield f"http://127.0.0.1:{int(process.stdout.readline())}/v1"
    process.kill()
    process.wait()


def journal(run: Path) -> bytes:
    return b"".join(p.read_bytes() for p in sorted((run / "journal").glob("*.jsonl")))


def outcomes(run: Path) -> dict[tuple[str, str], tuple[str, str | None]]:
    return {(row["case"], row["role"]): (row["outcome"], row["reason"]) for row in read_lines(run / "graded.jsonl")}


def test_failed_asks_stay_failed_when_scored_again_and_are_asked_again_by_the_same_command(
    url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    parts = (Part("[echo] So the final answer is: 2", "2", "math", "number"),)
    cases = [
        Case("fine", "[echo] So the final answer is: 5", "5", parts, answer_type="number"),
        Case("refused", "[refused:*] What is 2 plus 3?", "5", parts, answer_type="number"),
    ]
    write_cases(cases, tmp_path / "cases.jsonl")
    run = tmp_path / "run"
    command = ["evaluate", "-m", f"good@{url}", "-b", str(tmp_path / "cases.jsonl"), "-o", str(run)]
    assert main(command) == 2
    said = capsys.readouterr().err
    assert "prompt is too long for this model" in said and "case 'refused', role 'whole'" in said
    first, asked = outcomes(run), journal(run)
    assert first["fine", "whole"] == first["refused", "part:0"] == ("correct", None)
    outcome, reason = first["refused", "whole"]
    assert outcome == "invalid" and str(reason).startswith("error: ") and "too long" in str(reason)
    metrics = read_json(run / "metrics.json")

    # Without the server: the same grades, the same counts, nothing written twice.
    for _ in range(2):
        assert main(["score", str(run)]) == 2
        assert outcomes(run) == first and journal(run) == asked
        again = read_json(run / "metrics.json")
        assert again["metrics"] == metrics["metrics"]

    # The same command puts the refused ask again, and only that one.
    assert main(command) == 2
    assert (
        outcomes(run) == first
        and "1 asks put to the model, 2 answered from the journal" in (run / "log.txt").read_text()
    )
