"""Whole tables, sheets and notes of analyses, field by field, from a few rows whose counts are plain."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from composcope.evaluation import statistics
from composcope.evaluation.analyses import adjudicator, gated, stad, taxonomy
from composcope.evaluation.analyses.base import Source
from composcope.evaluation.benchmarks.stad import StadItem
from composcope.evaluation.cases import Case, Part
from composcope.evaluation.graded import Graded

MARKS: dict[str, Any] = {"+": "correct", "-": "incorrect", "0": "abstained", "?": "invalid"}


def _gated(case: str, marks: str, whole: str, **of: Any) -> list[Graded]:
    """A case over atoms ``case0``, ``case1``, ...: one wording and one sub-question each, with equal marks."""
    rows = [Graded(case, f"part:{i}{end}", MARKS[mark], atom=f"{case}{i}", cluster=of.get("cluster"))
            for i, mark in enumerate(marks) for end in (":paraphrase:0", "")]  # fmt: skip
    return [*rows, Graded(case, "whole", MARKS[whole], **of)]


def test_a_line_of_a_blind_sheet_and_of_its_key_have_every_field() -> None:
    row = Graded("c", "whole", "incorrect", model="m", family="f", domain="d", cluster="k", ask="q", answer="Rom",
                 gold="Rome", match="judge", crossed=("x",))  # fmt: skip
    found = adjudicator.draw([Source("run", [row], texts={"q": "It is Rom."}, prompts={"q": "Which city?"})], n=2)
    assert found.files == {
        "sheet.jsonl": [{"item": "item-0001", "question": "Which city?", "gold": "Rome", "response": "It is Rom.",
                         "human": None, "remark": ""}],
        "key.jsonl": [{"item": "item-0001", "run": "run", "case": "c", "cluster": "k", "crossed": ["x"],
                       "role": "whole", "domain": "d", "kind": "whole", "judged": False, "outcome": "incorrect",
                       "match": "judge", "prone": True, "weight": 1.0}],
    }  # fmt: skip
    assert found.tables == {"sample": [{"answers": 1, "strata": 1, "drawn": 1, "prone": 1}]} and not found.warnings
    sheet = [{**found.files["sheet.jsonl"][0], "human": "right", "remark": "short form", "reexamined": "yes"}]
    again = adjudicator.validate(found.files["key.jsonl"], sheet).files["reexamine.jsonl"]
    assert again == [{"item": "item-0001", "question": "Which city?", "gold": "Rome", "response": "It is Rom.",
                      "remark": "short form", "human": "right", "judged": "wrong", "match": "judge",
                      "reexamined": "yes"}]  # fmt: skip


@pytest.mark.parametrize("name", ["domain", "kind", "run", "judged", "prone"])
def test_an_adjudicator_is_validated_in_every_group_that_differs(name: str) -> None:
    of = {"case": "c", "domain": "d", "kind": "whole", "run": "r", "judged": True, "prone": False, "weight": 1.0}
    other = False if name == "judged" else True if name == "prone" else "x"
    key = [{**of, "item": "1"}, {**of, "item": "2", "case": "e", name: other}]
    found = adjudicator.validate(key, [{"item": k["item"], "human": "right"} for k in key])
    assert [row["group"] for row in found.tables["confusion"]] == [
        {}, *({name: v} for v in sorted((of[name], other), key=str))
    ]  # fmt: skip
    assert {tuple(m.group.items()) for m in found.metrics} == {
        tuple(r["group"].items()) for r in found.tables["confusion"]
    }


def test_a_row_of_recovery_names_both_runs_and_its_test_knows_what_cases_share() -> None:
    wholes, after = "--------++", "+++++++--+"
    plain = [r for i, w in enumerate(wholes) for r in _gated(f"c{i}", "+", w, cluster=f"k{i // 3}")]
    other = [Graded(f"c{i}", "whole", MARKS[w]) for i, w in enumerate(after)]
    found = gated.recovery(Source("short", plain), Source("cot", other))
    before, later = ([w == "+" for w in marks] for marks in (wholes, after))
    shared, alone = (statistics.mcnemar(later, before, near) for near in ([f"k{i // 3}" for i in range(10)], None))
    assert found.tables["paired"] == [
        {"plain": "short", "other": "cot", "n": 10, "recovered": 7, "lost": 1, "test": shared.test, "p": shared.p}
    ]
    assert shared.p != alone.p and not found.warnings
    less = gated.recovery(Source("short", plain), Source("cot", other[1:]))
    assert less.warnings == ("1 gate-passing cases of short are not in cot",)


def test_expected_and_observed_shares_of_known_facts_are_set_against_each_other() -> None:
    rows = [*_gated("a", "++", "+"), *_gated("b", "+-", "-"), *_gated("c", "+", "+"), *_gated("d", "+", "+")]
    # 5 of 6 facts are stable; of cases with one fact all are, of those with two one half
    one, two = gated.expectation(Source("run", rows)).tables["s^k"]
    assert one == {"facts": 1, "n": 2, "observed": 1.0, "expected": 5 / 6, "ratio": pytest.approx(6 / 5)}
    assert two == {
        "facts": 2,
        "n": 2,
        "observed": 0.5,
        "expected": pytest.approx(25 / 36),
        "ratio": pytest.approx(0.72),
    }


def test_a_control_says_how_many_cases_lack_a_fact_in_another_run_only() -> None:
    known, lacking = (
        [r for c, m in marks.items() for r in _gated(c, m, "+")]
        for marks in ({"a": "++", "b": "+-", "c": "+-"}, {"a": "+-", "b": "+-", "c": "+-"})
    )
    found = gated.joint_stability([Source("one", known), Source("two", lacking)])
    notes = {m.group["model"]: (m.n, m.note) for m in found.metrics if m.metric == "control_passes"}
    assert [n for n, _ in notes.values()] == [2, 3]
    assert [str(note).count("; 1 more cases lack") for _, note in notes.values()] == [1, 0]
    assert found.tables["jointly stable"] == [
        {"runs": 2, "facts": 6, "jointly_stable": 3, "pure": 0, "knowledge-gap": 0, "mixed": 3}
    ]


def test_questions_without_a_judged_answer_and_later_repeats_are_said_when_kept_items_are_compared() -> None:
    cases = {f"c{i}": Case(f"c{i}", f"{('red fruit', 'long trains', 'deep water')[i % 3]} {i}", "1") for i in range(9)}
    rows = [Graded(c, "whole", "correct") for c in list(cases)[2:]] + [Graded("c1", "whole", "invalid")]
    again = Source("run", [*rows, replace(rows[0], repeat=1)], cases)
    found = stad.filtered(
        again, [StadItem("k", cases["c0"].question, "1"), StadItem("l", cases["c2"].question, "1")], 3
    )
    assert found.tables["accuracy"] == [
        {"items": "all", "count": 7, "n": 7, "n_unjudged": 2, "value": 1.0},
        {"items": "kept", "count": 1, "n": 1, "n_unjudged": 1, "value": 1.0},
    ]
    assert len(found.warnings) == 1 and "1 rows of later repeats" in found.warnings[0]


def test_a_line_of_the_sheet_of_failures_has_every_field_and_says_who_labelled_it() -> None:
    part = Part("When?", "1402", "date")
    case = Case("c", "Which?", "Rome", (part,), family="f", depth=3)
    rows = [Graded("c", "part:0", "correct", repeat=1),
            Graded("c", "whole", "incorrect", repeat=1, family="f", depth=3, ask="q", answer="Bern", gold="Rome",
                   reason="incomplete"),
            Graded("d", "part:0", "correct"), Graded("d", "whole", "abstained", answer="?", gold="Rome")]  # fmt: skip
    run = Source("run", rows, {"c": case}, texts={"q": "It is Bern."}, prompts={"q": "Which city?"})
    for labels, label, by_hand in ((None, "other", False), ({"c": "binding-shift"}, "binding-shift", True)):
        first, second = taxonomy.taxonomy(run, labels).files["annotate.jsonl"]  # type: ignore[arg-type]
        assert first == {
            "case": "c", "repeat": 1, "family": "f", "depth": 3, "label": label, "by_hand": by_hand,
            "question": "Which city?", "gold": "Rome", "answer": "Bern", "outcome": "incorrect",
            "reason": "incomplete", "response": "It is Bern.", "parts": [["When?", "1402"]],
        }  # fmt: skip
        assert (second["case"], second["label"], second["by_hand"], second["parts"]) == (
            "d",
            "over-abstention",
            False,
            [],
        )
    forgiven = taxonomy.tiers(run, {"c": "malformed-output"}).metrics[-1]
    assert (forgiven.group, forgiven.count, forgiven.n) == ({"tier": "adjudicated"}, 1, 2)
    assert str(forgiven.note).startswith("1 artefacts counted as right") or "; 1 artefacts counted" in str(
        forgiven.note
    )
