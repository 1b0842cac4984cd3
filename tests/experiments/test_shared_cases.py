"""What two runs share: by id and question, never by id alone."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from composcope.errors import InputError
from composcope.experiments.run.compare import compare_runs, comparison_lines, shared_cases
from composcope.experiments.run.reader import RunData

CASES = [
    {"schema": 1, "id": f"c{i}", "question": f"Whole {i}?", "answer": str(i),
     "parts": [{"question": f"Part {i}?", "answer": "x"}, {"question": f"Other {i}?", "answer": "y"}]}
    for i in range(4)
]  # fmt: skip


def run(folder: Path, cases: Sequence[Mapping[str, Any]], right: bool = True) -> Path:
    folder.mkdir()
    (folder / "cases.jsonl").write_text("".join(json.dumps(c) + "\n" for c in cases))
    graded = [
        {"schema": 1, "case": c["id"], "role": role, "repeat": 0, "model": "m", "run": folder.name,
         "ask": c["id"] + role, "outcome": "correct" if right or role != "whole" else "incorrect", "answer": "x",
         "gold": "x"}
        for c in cases for role in ("whole", "part:0", "part:1")
    ]  # fmt: skip
    (folder / "graded.jsonl").write_text("".join(json.dumps(g) + "\n" for g in graded))
    (folder / "manifest.json").write_text(json.dumps({"schema": 1, "identity": {"model": "m"}}))
    (folder / "metrics.json").write_text(json.dumps({"schema": 1, "protocol": "compositionality-gap", "metrics": []}))
    return folder


def test_an_id_with_another_question_is_another_case(tmp_path: Path) -> None:
    other = [CASES[0], {**CASES[1], "question": "Else?"}, {**CASES[2], "answer": "7"}, {**CASES[3], "id": "new"}]
    a, b = run(tmp_path / "a", CASES), run(tmp_path / "b", other, right=False)
    found = shared_cases(RunData(a), RunData(b))
    assert (found.n_a, found.n_b, found.same, found.changed) == (4, 4, ("c0",), ("c1", "c2"))
    document = compare_runs(a, b)
    whole = next(r for r in document["roles"] if r["role"] == "whole")
    assert whole["n"] == 1 and [d["case"] for d in document["discordant"]] == ["c0"]
    assert document["changed"] == 6 and document["only_a"] == document["only_b"] == 3
    lines = "\n".join(comparison_lines(document))
    assert "1 cases are the same" not in lines and "1 case is the same in both runs (A has 4, B 4)" in lines
    assert "2 ids in common but with another question or answer, not compared" in lines
    assert "6 asked in both with another question or answer" in lines


def test_another_decomposition_leaves_the_whole_comparable(tmp_path: Path) -> None:
    parts = [CASES[0]["parts"][0], {"question": "Another way?", "answer": "y"}, {"question": "Third?", "answer": "z"}]
    a, b = run(tmp_path / "a", CASES[:1]), run(tmp_path / "b", [{**CASES[0], "parts": parts}])
    found = shared_cases(RunData(a), RunData(b))
    comparable = {role: found.comparable("c0", role) for role in ("whole", "part:0", "part:1", "part:1:paraphrase:0")}
    assert comparable == {"whole": True, "part:0": True, "part:1": False, "part:1:paraphrase:0": False}
    assert not found.comparable("c0", "part:2") and "parts that differ in 1 case" in found.sentence()


def test_runs_with_the_same_ids_and_other_questions_only_are_refused(tmp_path: Path) -> None:
    a, b = run(tmp_path / "a", CASES[:1]), run(tmp_path / "b", [{**CASES[0], "question": "Else?"}])
    with pytest.raises(InputError, match=r"no case in common \(1 shared id"):
        compare_runs(a, b)


def test_rows_without_a_case_file_are_taken_at_their_ids(tmp_path: Path) -> None:
    a, b = run(tmp_path / "a", CASES), run(tmp_path / "b", CASES)
    (b / "cases.jsonl").unlink()
    assert compare_runs(a, b)["roles"][0]["n"] == 4
