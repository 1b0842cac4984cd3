"""``composcope import`` from the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from composcope.evaluation.validators import read_graded
from composcope.experiments.cli import main


def _inspect(path: Path, verdicts: str) -> Path:
    samples = [{"id": i, "epoch": 1, "target": "x", "scores": {"m": {"value": v}}} for i, v in enumerate(verdicts)]
    path.write_text(json.dumps({"version": 2, "eval": {"task": path.stem, "model": "m"}, "samples": samples}))
    return path


def test_several_files_become_one_graded_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = [_inspect(tmp_path / "a.json", "CI"), _inspect(tmp_path / "b.json", "C")]
    out = tmp_path / "made" / "graded.jsonl"
    assert main(["import", *map(str, files), "--out", str(out), "--json"]) == 0
    assert [(r.case, r.outcome) for r in read_graded(out)] == [
        ("a-0", "correct"),
        ("a-1", "incorrect"),
        ("b-0", "correct"),
    ]
    said = json.loads(capsys.readouterr().out)
    assert said["rows"] == 3 and said["roles"] == {"whole": {"correct": 2, "incorrect": 1}}
    assert json.loads((out.parent / "import.json").read_text())["files"][1]["kind"] == "inspect"


def test_invalid_rows_make_the_exit_code_say_so(tmp_path: Path) -> None:
    path = _inspect(tmp_path / "a.json", "CN")
    assert main(["import", str(path), "--out", str(tmp_path / "graded.jsonl")]) == 2


def test_the_same_rows_from_two_files_are_refused_and_nothing_is_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = _inspect(tmp_path / "a.json", "C")
    out = tmp_path / "graded.jsonl"
    assert main(["import", str(path), str(path), "--out", str(out)]) == 1
    assert "case 'a-0' has role 'whole' twice" in capsys.readouterr().err
    assert not out.exists()
