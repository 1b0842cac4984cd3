"""Rows in roles that a protocol does not count are said, and never left out in silence."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from composcope.errors import InputError
from composcope.evaluation.asks import Ask, Grade, Outcome
from composcope.evaluation.cases import Case, Part
from composcope.evaluation.protocols import PROTOCOLS, Graded, get, metrics_from_rows
from composcope.evaluation.protocols.catalog import about, uncounted
from composcope.experiments.analyzing import analyze
from composcope.experiments.building.importing import import_files
from composcope.experiments.cli import main

GOOD = [Graded("a", "part:0", "correct"), Graded("a", "part:1", "correct"), Graded("a", "whole", "correct")]


def test_rows_in_unknown_roles_are_counted_and_the_first_is_named() -> None:
    rows = [*GOOD, Graded("b", "Whole", "correct"), Graded("c", "Whole", "correct"), Graded("c", "hole", "correct")]
    [warning] = [w for w in metrics_from_rows(rows, "compositionality-gap").warnings if "roles" in w]
    assert warning.startswith("3 of 6 rows are in roles that compositionality-gap does not count ('Whole' 2, 'hole' 1)")
    assert "the first is case 'b', role 'Whole'" in warning and "did you mean 'whole'?" in warning


def test_roles_of_another_protocol_are_said_too() -> None:
    rows = [*GOOD, Graded("a", "scaffold:1", "correct")]
    assert "'scaffold:1' 1" in metrics_from_rows(rows, "double-gate").warnings[0]
    assert not any("roles" in w for w in metrics_from_rows(rows, "scaffolding").warnings)


def test_a_file_without_any_role_that_counts_is_refused() -> None:
    with pytest.raises(InputError, match=r"none of the 2 is in a role that double-gate counts; .*case 'x', role 'q'"):
        metrics_from_rows([Graded("x", "q", "correct"), Graded("y", "r", "correct")], "double-gate")


def test_every_role_that_a_protocol_asks_is_one_that_it_counts() -> None:
    parts = (Part("p", "1", paraphrases=("x", "y"), extra_context="c"), Part("q", "2", paraphrases=("z",)))
    meta = {"independent": "i", "original": {"question": "o", "answer": "2"}, "question_2": "X?", "reversed": "r"}
    case = Case("a", "w", "2", parts, meta=meta)
    options = {
        "compositionality-gap": {"also": ("self-ask", "cot"), "reversed": True},
        "double-gate": {"recovery": ("cot",)},
        "reasoning-gap": {"code": True},
        "scaffolding": {"ask_all": True},
    }
    for name in PROTOCOLS.own:
        protocol, graded = get(name, **options[name]), {}
        while asks := protocol.asks(case, graded):
            graded.update({a.role: _grade(a, "incorrect") for a in asks})
        assert len(graded) > 3
        assert uncounted([Graded("a", role, "correct") for role in graded], name) == []
        bare = [Graded("a", f"no-preamble/{role}", "correct") for role in graded]
        assert uncounted([*GOOD, *bare], name) == []
        assert about(name).roles
    assert set(PROTOCOLS.own) == set(options)


def _grade(ask: Ask, outcome: Outcome) -> Grade:
    return Grade("correct" if ask.role.startswith("scaffold") else outcome, None)


def test_imports_analyses_and_the_metrics_command_warn(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    documents = [{"id": "a", "role": "whole"}, {"id": "b", "role": "Whole"}]
    samples = tmp_path / "samples_task.jsonl"
    rows = [{"doc_id": i, "doc": d, "target": "1", "exact_match": 1.0} for i, d in enumerate(documents)]
    samples.write_text("".join(json.dumps(row) + "\n" for row in rows))
    found = import_files([samples], tmp_path / "graded.jsonl")
    assert any("1 of 2 rows are in roles that no protocol counts ('Whole' 1)" in w for w in found.warnings)
    lengths = analyze("skills", [tmp_path / "graded.jsonl"])
    assert any("graded.jsonl" in w and "'Whole' 1" in w for w in lengths.warnings)
    assert main(["score", str(tmp_path / "graded.jsonl"), "-p", "double-gate"]) == 0
    assert "warning: 1 of 2 rows are in roles that double-gate does not count" in capsys.readouterr().out
