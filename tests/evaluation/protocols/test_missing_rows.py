"""Rows that are missing, or whose role cannot be, never turn into right answers."""

from __future__ import annotations

import itertools
from dataclasses import replace
from pathlib import Path

import pytest

from composcope.errors import InputError
from composcope.evaluation.cases import Case, Part
from composcope.evaluation.graded import Graded, read_graded
from composcope.evaluation.metrics import Metric, find
from composcope.evaluation.protocols.compositionality_gap import CompositionalityGap
from composcope.evaluation.protocols.double_gate import DoubleGate
from composcope.evaluation.protocols.reasoning_gap import ReasoningGap

ROLES = ("part:0", "part:1", "whole")


def _rows(**outcomes: str) -> list[Graded]:
    """``case="cii"``: the outcomes of part 0, part 1 and the whole; ``-`` for no row."""
    words = {"c": "correct", "i": "incorrect", "?": "invalid"}
    return [
        Graded.from_dict({"case": case, "role": role, "outcome": words[letter]})
        for case, letters in outcomes.items()
        for role, letter in zip(ROLES, letters, strict=True)
        if letter != "-"
    ]


def _metric(metrics: tuple[Metric, ...], name: str) -> Metric:
    found = find(metrics, name)
    assert found is not None
    return found


def _cases() -> dict[str, Case]:
    parts = (Part(question="a?", answer="1"), Part(question="b?", answer="2"))
    return {"a": Case(id="a", question="w?", answer="3", parts=parts, benchmark="b")}


def test_a_part_that_the_case_has_and_no_row_answers_is_unknown_not_right() -> None:
    rows = _rows(a="c-i")
    found = CompositionalityGap().reduce(rows, _cases())
    assert (_metric(found.metrics, "both").n, _metric(found.metrics, "both").n_invalid) == (0, 1)
    assert not found.case_set("both-right-whole-wrong").entries
    assert not DoubleGate().reduce(rows, _cases()).case_set("residual-failure").entries


@pytest.mark.parametrize(("protocol", "metric"), [(CompositionalityGap, "both"), (DoubleGate, "double_gate")])
def test_a_part_that_no_row_names_but_a_later_one_follows_is_unknown(protocol: type, metric: str) -> None:
    roles = {"part:0": "correct", "part:2": "correct", "part:2:paraphrase:0": "correct", "whole": "incorrect"}
    found = protocol().reduce([Graded.from_dict({"case": "a", "role": r, "outcome": o}) for r, o in roles.items()])
    assert (_metric(found.metrics, metric).n, _metric(found.metrics, metric).n_invalid) == (0, 1)
    assert not any(s.entries for s in found.case_sets) and any("'a'" in warning for warning in found.warnings)


def test_the_reasoning_gap_always_has_two_parts() -> None:
    found = ReasoningGap().reduce(_rows(a="c-i", b="ccc"))
    assert _metric(found.metrics, "independence_gap").n == 1
    assert _metric(found.metrics, "both").n_invalid == 1
    assert "lack a part" in " ".join(found.warnings)


def test_a_step_counts_only_where_a_case_has_it() -> None:
    rows = [Graded(case, f"part:{i}", "correct") for case, n in (("two", 2), ("three", 3)) for i in range(n)]
    rows += [Graded("wrong", f"part:{i}", "correct" if i < 2 else "incorrect") for i in range(3)]
    rows += [Graded(case, "whole", "correct") for case in ("two", "three", "wrong")]
    found = CompositionalityGap().reduce([replace(row, depth=2 if row.case == "two" else 3) for row in rows])
    assert [m.group for m in found.metrics if m.metric == "step:2"] == [{}, {"depth": 3}]
    step, entries = _metric(found.metrics, "step:2"), found.case_set("both-right-whole-right").entries
    assert (step.count, step.n, step.n_invalid) == (1, 2, 0)
    assert [(e.case, [x.role for x in e.evidence]) for e in entries] == [
        ("two", ["part:0", "part:1", "whole"]), ("three", ["part:0", "part:1", "part:2", "whole"])
    ]  # fmt: skip


def test_rows_alone_with_different_numbers_of_parts_are_warned_about() -> None:
    assert any("number of parts" in w for w in CompositionalityGap().reduce(_rows(a="c-i", b="ccc")).warnings)
    assert not any("number of parts" in w for w in CompositionalityGap().reduce(_rows(a="cci", b="ccc")).warnings)


def test_cases_say_how_many_parts_they_have_and_which_rows_are_missing() -> None:
    part = Part("q", "a")
    cases = {"one": Case("one", "q", "a", (part,)), "two": Case("two", "q", "a", (part, part))}
    rows = [Graded(case, role, "correct") for case, asked in cases.items()
            for role in ("whole", "part:0", "part:1")[: 1 + len(asked.parts)]]  # fmt: skip
    assert CompositionalityGap().reduce(rows, cases).warnings == ()
    assert CompositionalityGap().reduce(rows, {"two": cases["two"]}).warnings == (), "of the others all have one part"
    [said] = CompositionalityGap().reduce(rows).warnings
    assert "1 with 1, 1 with 2" in said
    for role in ("whole", "part:1"):
        less = [r for r in rows if (r.case, r.role) != ("two", role)]
        [said] = CompositionalityGap().reduce(less, cases).warnings
        assert said.startswith("1 cases lack a part or the whole") and "'two'" in said


@pytest.mark.parametrize("letters", [("c?c", "i?c"), ("c?i", "iii"), ("?ci", "c?c", "cc?"), ("ccc", "i??", "???")])
def test_bounds_are_the_extremes_over_every_judgement_of_what_is_open(letters: tuple[str, ...]) -> None:
    named = dict(zip("abc", letters, strict=False))
    metrics = CompositionalityGap().reduce(_rows(**named)).metrics
    text, n = "".join(letters), len(letters)
    gaps, conditional = [], []
    for judged in itertools.product("ci", repeat=text.count("?")):
        turn = iter(judged)
        values = [next(turn) == "c" if v == "?" else v == "c" for v in text]
        cases = [values[3 * i : 3 * i + 3] for i in range(n)]
        first, second, whole = (sum(column) / n for column in zip(*cases, strict=True))
        gaps.append(whole - first * second)
        if both := [c for c in cases if c[0] and c[1]]:
            conditional.append(sum(not c[2] for c in both) / len(both))
    gap, press = _metric(metrics, "independence_gap"), _metric(metrics, "press_gap")
    assert (gap.bound_low, gap.bound_high) == (pytest.approx(min(gaps)), pytest.approx(max(gaps)))
    assert (press.bound_low, press.bound_high) == (
        pytest.approx(min(conditional)) if conditional else None,
        pytest.approx(max(conditional)) if conditional else None,
    )


@pytest.mark.parametrize("role", ["part:x", "part:-1", "part:1000000", "part:²", "scaffold:0", "scaffold:x", "part:01"])
def test_a_role_with_an_impossible_number_is_refused(role: str) -> None:
    with pytest.raises(InputError, match="role is"):
        Graded.from_dict({"case": "a", "role": role, "outcome": "correct"})


@pytest.mark.parametrize("line", ["[" * 100_000, '{"case": "a", "x": ' + "9" * 5000 + "}"])
def test_json_beyond_what_python_reads_is_one_line_of_error(tmp_path: Path, line: str) -> None:
    path = tmp_path / "graded.jsonl"
    path.write_text(line + "\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"graded\.jsonl:1: "):
        read_graded(path)
