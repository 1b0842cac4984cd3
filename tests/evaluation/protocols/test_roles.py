"""Rows in roles that a protocol does not count are said; wordings that only a benchmark can give are asked for."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from composcope.errors import InputError
from composcope.evaluation.asks import Ask, Grade, Outcome
from composcope.evaluation.benchmarks.stad import case_from_item
from composcope.evaluation.builders import scaffolds
from composcope.evaluation.cases import Case, Part
from composcope.evaluation.protocols import PROTOCOLS, Graded, get, metrics_from_rows
from composcope.evaluation.protocols.asking import recommended_format
from composcope.evaluation.protocols.base import about, uncounted
from composcope.evaluation.protocols.reasoning_gap import NO_LEAKAGE
from composcope.experiments.building.importing import import_files
from composcope.experiments.cli import main
from composcope.experiments.evaluating.evaluate import metrics_from_file
from composcope.experiments.studies.analyzing import analyze

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
    documents = [{"id": "a", "role": "whole"}, {"id": "b", "role": "Whole"}, {"id": "a", "role": "part:0"}]
    samples = tmp_path / "samples_task.jsonl"
    rows = [{"doc_id": i, "doc": d, "target": "1", "exact_match": 1.0} for i, d in enumerate(documents)]
    samples.write_text("".join(json.dumps(row) + "\n" for row in rows))
    found = import_files([samples], tmp_path / "graded.jsonl")
    assert any("1 of 3 rows are in roles that no protocol counts ('Whole' 1)" in w for w in found.warnings)
    lengths = analyze("skills", [tmp_path / "graded.jsonl"])
    assert any("graded.jsonl" in w and "'Whole' 1" in w for w in lengths.warnings)
    assert main(["score", str(tmp_path / "graded.jsonl"), "-p", "double-gate"]) == 0
    said = capsys.readouterr().out
    assert said.startswith("warning: 1 of 3 rows are in roles that double-gate does not count"), "before the numbers"


@pytest.mark.parametrize(
    ("roles", "protocol", "refused"),
    [
        ("part0 part:1 whole", "compositionality-gap", "no row has the role 'part:0'"),
        ("part:0 part:1 Whole", "reasoning-gap", "'Whole': did you mean 'whole'?"),
        ("part:0 part:1 whole", "scaffolding", "no row has the role 'scaffold:1'"),
        ("part:0 part:1 whole", "double-gate", None),
        ("part:0:paraphrase_1 part:1 whole", "double-gate", None),
        ("part:1 pair:q1 whole", "reasoning-gap", "add these rows"),
    ],
)
def test_rows_of_which_none_has_a_role_that_the_protocol_needs_are_refused(
    roles: str, protocol: str, refused: str | None, tmp_path: Path
) -> None:
    path = tmp_path / "rows.jsonl"
    for outcome, needed in (
        ("incorrect", refused is not None),
        ("abstained", refused is not None),
        ("correct", "scaffold" not in str(refused) and refused),
    ):
        rows = [{"case": case, "role": role, "outcome": outcome} for case in "ab" for role in roles.split()]
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
        if needed:
            with pytest.raises(InputError, match=re.escape(str(refused))):
                metrics_from_file(path, protocol)
        else:
            assert metrics_from_file(path, protocol)[0].metrics, "solved wholes need no scaffolds"


PARTS = (Part("How many are 2 and 3?", "5", "math", "number"), Part("What is 5 times 2?", "10", "math", "number"))
CASE = Case("c1", "What is X times 2?", "10", PARTS, answer_type="number", depth=2)
ORIGINAL = {"question": "What is 4 times 2?", "answer": 8}


def rows_of(case: Case) -> list[Graded]:
    right = Grade("correct", "10", "numeric")
    return [Graded.of(case, a, right, ask_id=None, model="m", run=None) for a in get("reasoning-gap").asks(case, {})]


@pytest.mark.parametrize("question", ["What is twice the sum of 2 and 3?", "How many XL shirts are left?"])
def test_a_pair_whose_second_question_has_no_x_is_refused(question: str) -> None:
    with pytest.raises(InputError, match=r"'c1'.*needs a Q2 that uses X.*meta\.question_2"):
        get("reasoning-gap").asks(replace(CASE, question=question), {})


@pytest.mark.parametrize("meta", [{}, {"question_2": "Take X twice."}])
def test_the_pair_is_made_from_the_question_with_x(meta: dict[str, Any]) -> None:
    whole = {a.role: a for a in get("reasoning-gap").asks(replace(CASE, meta=meta), {})}["whole"]
    assert PARTS[0].question in whole.prompt and meta.get("question_2", CASE.question) in whole.prompt


def test_a_leakage_that_cannot_be_measured_is_said_once() -> None:
    cases = {c.id: c for c in (CASE, replace(CASE, id="c2"))}
    rows = [r for c in cases.values() for r in rows_of(c)]
    found = get("reasoning-gap").reduce(rows, cases)
    assert (found.warnings.count(NO_LEAKAGE), get("reasoning-gap").reduce(rows).warnings.count(NO_LEAKAGE)) == (1, 0)
    assert not [m for m in found.metrics if m.metric == "leakage"]


def test_with_the_original_of_q2_the_leakage_is_measured() -> None:
    case = replace(CASE, meta={"original": ORIGINAL})
    found = get("reasoning-gap").reduce(rows_of(case), {case.id: case})
    assert NO_LEAKAGE not in found.warnings
    assert [m.n for m in found.metrics if m.metric == "leakage"][:1] == [1]


def test_a_benchmark_recommends_a_format_only_where_all_cases_agree() -> None:
    plain = replace(CASE, meta={"format": "plain"})
    assert recommended_format([plain, replace(plain, id="c2")]) == "plain"
    assert recommended_format([plain, CASE]) is None
    assert recommended_format([CASE]) is None
    with pytest.raises(InputError, match=r"meta\.format is 'plane'; use one of plain"):
        recommended_format([replace(CASE, meta={"format": "plane"})])


def test_scaffolded_cases_keep_the_format_of_what_they_were_made_from() -> None:
    items, dropped = scaffolds.from_cases([replace(CASE, meta={"format": "plain"})])
    assert not dropped
    assert recommended_format([case_from_item(i) for i in items]) == "plain"


def test_no_more_than_three_unknown_roles_are_named() -> None:
    rows = [Graded("a", role, "correct") for role in ("whole", "b", "c", "d", "d", "e")]
    [said] = uncounted(rows, "double-gate")
    assert said.startswith("5 of 6") and "'d' 2" in said and "and 1 others" in said
    [said] = uncounted(rows[:4], "double-gate")
    assert "others" not in said and uncounted(rows[:1], "double-gate") == [] and uncounted(rows, "theirs") == []


@pytest.mark.parametrize(
    ("rows", "options", "said"),
    [
        ([], {}, "graded rows"),
        ([Graded("c", "whole", "correct")], {"compat": "paper"}, "--compat 'paper'.*stad"),
        ([{"case": "c", "role": "whole", "outcome": "correct"}, {"case": "c", "outcome": "correct"}], {}, "row 2"),
    ],
)
def test_rows_that_cannot_be_counted_are_refused(rows: list[Any], options: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError, match=said):
        metrics_from_rows(rows, "compositionality-gap", **options)


def test_a_case_set_is_found_by_its_name() -> None:
    found = metrics_from_rows([Graded("c", r, "correct") for r in ("part:0", "whole")], "compositionality-gap")
    for one in found.case_sets:
        assert found.case_set(one.name) is one
    with pytest.raises(KeyError):
        found.case_set("none of these")


def test_failed_wholes_of_one_step_need_no_scaffolds(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    asked = [("a", "whole", "incorrect"), ("a", "part:0", "correct")]
    asked += [("b", role, "correct") for role in ("whole", "part:0", "part:1")]
    path.write_text("".join(json.dumps({"case": c, "role": r, "outcome": o}) + "\n" for c, r, o in asked))
    assert metrics_from_file(path, "scaffolding")[0].metrics


def test_cases_without_rows_and_rows_without_a_case_are_told_where_a_case_file_is_given(tmp_path: Path) -> None:
    rows, cases = tmp_path / "rows.jsonl", tmp_path / "cases.jsonl"
    graded = [{"case": "a", "role": r, "outcome": "correct"} for r in ("part:0", "part:1", "whole")]
    rows.write_text("".join(json.dumps(row) + "\n" for row in graded), encoding="utf-8")
    parts = [{"question": "p?", "answer": "1"}, {"question": "q?", "answer": "2"}]
    asked = {"id": "b", "question": "w?", "answer": "3", "parts": parts}
    cases.write_text(json.dumps(asked) + "\n", encoding="utf-8")
    warnings = metrics_from_file(rows, "compositionality-gap", cases)[0].warnings
    assert [w for w in warnings if "not in" in w and "'a'" in w] and [
        w for w in warnings if "no row" in w and "'b'" in w
    ]
    cases.write_text(json.dumps({**asked, "id": "a"}) + "\n", encoding="utf-8")
    assert not [w for w in metrics_from_file(rows, "compositionality-gap", cases)[0].warnings if "first:" in w]
