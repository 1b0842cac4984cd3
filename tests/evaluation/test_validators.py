"""Checks on what comes in: every message names the place, the field, the value and the fix."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as hs

from composcope.errors import InputError
from composcope.evaluation import graded
from composcope.evaluation.metrics import Metric, check_metrics, frechet, mark
from composcope.evaluation.protocols import Graded, metrics_from_rows
from composcope.evaluation.protocols.base import Reduction
from composcope.evaluation.protocols.compositionality_gap import CompositionalityGap


@given(hs.lists(hs.tuples(hs.booleans(), hs.booleans(), hs.booleans()), min_size=1, max_size=40))
def test_real_outcomes_always_satisfy_the_frechet_bounds(rows: list[tuple[bool, bool, bool]]) -> None:
    n = len(rows)
    steps = [sum(r[i] for r in rows) / n for i in range(3)]
    for k in (2, 3):
        low, high = frechet(steps[:k])
        assert low <= sum(all(r[:k]) for r in rows) / n <= high


def test_metrics_that_contradict_each_other_are_named() -> None:
    metrics = [
        Metric("step:0", {}, 10, value=0.9),
        Metric("step:1", {}, 10, value=0.9),
        Metric("both", {}, 10, value=0.5),
    ]
    assert "Frechet" in check_metrics(metrics)[0] and "Frechet" in check_metrics([metrics[0], metrics[2]])[0]
    assert not check_metrics([metrics[0], replace(metrics[1], n=9), metrics[2]]), "of other cases"
    assert "Frechet" in check_metrics([metrics[0], replace(metrics[1], value=0.98), replace(metrics[2], value=0.95)])[0]
    shares = [
        Metric(m, {"combination": "x"}, 10, count=c) for m, c in (("k_zero", 3), ("k_positive", 4), ("intractable", 4))
    ]
    assert "do not add up" in check_metrics(shares)[0]
    rates = [Metric("both", {"depth": v}, 3, value=v, interval="clopper-pearson") for v in (-0.1, 0, 1, 1.4)]
    assert [re.findall(r"value (\S+) is", said) for said in check_metrics(rates)] == [["-0.1"], ["1.4"]]
    assert not check_metrics([Metric("gap", {}, 3, value=-0.1, interval="bootstrap")])


def test_what_is_wrong_with_metrics_comes_with_the_warnings_of_their_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    odd = Reduction((Metric("both", {}, 3, value=1.4, interval="clopper-pearson"),), (), ("own",))
    monkeypatch.setattr(CompositionalityGap, "reduce", lambda self, rows, cases: odd)
    rows = [Graded("a", "whole", "correct", depth=2), Graded("a", "part:0", "correct", depth=3)]
    own, of_rows, of_metrics = metrics_from_rows(rows, "compositionality-gap").warnings
    assert own == "own" and "depth is 2 and 3" in of_rows and "value 1.4" in of_metrics


@pytest.mark.parametrize(("n", "note"), [(0, "n < 5"), (4, "n < 5"), (5, "n < 15"), (14, "n < 15"), (15, None)])
def test_few_cases_are_marked_beside_what_else_is_said(n: int, note: str | None) -> None:
    assert mark(n) == mark(n, "") == note
    assert mark(n, "chance 50 %") == (f"{note}; chance 50 %" if note else "chance 50 %")


def test_rows_with_flags_or_properties_that_disagree_are_warned_about() -> None:
    rows = [
        Graded("a", "whole", "incorrect", depth=2, extra={"is_right": True}),
        Graded("a", "part:0", "correct", depth=3),
    ]
    found = metrics_from_rows(rows, "compositionality-gap").warnings
    assert any("field 'is_right' is True but outcome is 'incorrect'" in w for w in found)
    assert any("depth is 2 and 3" in w for w in found)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "no graded rows"),
        ('{"case": "a", "role": "whole"}', "f.jsonl:1: field 'outcome' is missing"),
        ('{"case": "a", "role": "whole", "outcome": "correct"}\n{"case": ', "f.jsonl:2: not valid JSON"),
        ('{"case": "a", "role": "whole", "outcome": "ok"}', "f.jsonl:1: outcome is 'ok'; use one of correct"),
        ('\n{"case": "a", "role": "whole", "outcome": "correct", "depth": 2.5}', "f.jsonl:2: depth is 2.5"),
        ('{"case": "a", "role": "whole", "outcome": "correct"}\n' * 2, "f.jsonl:2: case 'a' with role 'whole'"),
        ('{"case": "a", "role": "whole", "outcome": "correct", "schema": 9}', "schema is 9"),
        ("[]", "f.jsonl:1: expected a JSON object, got list"),
        (
            "case,role,outcome\na,whole,correct",
            ": 'case,role,outcome', which looks like CSV); graded rows are JSON lines",
        ),
        ("Right, all of them", "not valid JSON (Expecting value at column 1: 'Right, all of them'); graded rows"),
        (
            '{"id": "a", "question": "q", "answer": "1"}',
            "f.jsonl:1: a case, not a graded row (case, role, outcome); ask",
        ),
    ],
)
def test_bad_files_are_refused_with_file_and_line(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "f.jsonl"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(InputError) as error:
        graded.read_graded(path)
    assert message in str(error.value) and "\n" not in str(error.value)


def test_rows_survive_writing_and_reading(tmp_path: Path) -> None:
    import json

    rows = [
        Graded("a", "whole", "abstained", "d4v2", depth=7, skills=("x", "y"), unknowable=True, extra={"note": "mine"}),
        Graded("a", "part:0", "invalid", reason="truncated", answer="\u2028 odd", chance=0.25),
    ]
    path = tmp_path / "graded.jsonl"
    path.write_text("".join(json.dumps(r.to_dict(), ensure_ascii=False) + "\n" for r in rows), encoding="utf-8")
    assert graded.read_graded(path) == rows and [r.depth_bin for r in rows] == [4, None]
