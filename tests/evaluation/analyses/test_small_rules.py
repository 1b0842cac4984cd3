"""Rules of the analyses, each against a value computed in another way: profiles, skills, lengths, samples, sheets."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import product
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from scipy import stats as scipy_stats

from composcope.errors import InputError, NoCasesError
from composcope.evaluation import dependence, statistics
from composcope.evaluation.analyses import adjudicator, agentcoma, gated, stad, taxonomy
from composcope.evaluation.analyses import base as analyses
from composcope.evaluation.analyses.base import Source
from composcope.evaluation.cases import Case, Part
from composcope.evaluation.graded import Graded

scipy: Any = scipy_stats


def _source(name: str, rows: list[Graded], **about: Any) -> Source:
    return Source(name, rows, **about)


def test_profiles_differ_by_half_the_sum_of_their_differences_and_name_the_largest() -> None:
    a, b = list("xxyz"), list("xyyyw")
    half = sum(abs(a.count(k) / 4 - b.count(k) / 5) for k in "xyzw") / 2
    assert stad.total_variation(a, b) == pytest.approx(half) and stad.total_variation(a, []) is None
    named = [dict(enumerate(side)) for side in (a, b)]
    assert stad._most_different(*named) == ["y: -35.0 points", "x: +30.0 points", "z: +25.0 points"]  # type: ignore[arg-type]


def test_the_p_of_two_profiles_is_that_of_all_swaps_of_what_belongs_together() -> None:
    a, b = ({f"c{i}": k for i, k in enumerate(side)} for side in ("xxxxxxyz", "yyzyxyyz"))
    near = {c: c for c in a}
    seen = stad.total_variation(a.values(), b.values())
    assert seen is not None
    both = list(zip(a.values(), b.values(), strict=True))
    swaps = [
        [(y, x) if s else (x, y) for (x, y), s in zip(both, swap, strict=True)] for swap in product((0, 1), repeat=8)
    ]
    apart = [stad.total_variation([x for x, _ in one], [y for _, y in one]) or 0 for one in swaps]
    hits = sum(distance >= seen - 1e-12 for distance in apart)
    found = stad._permutation_p(a, b, near, seen, 4000, 0)
    assert found == pytest.approx(hits / 256, abs=0.03)
    assert found == stad._permutation_p(a, b, near, seen, 4000, 0) != stad._permutation_p(a, b, near, seen, 4000, 1)
    assert dependence.FEWEST > 4 and stad._permutation_p(a, b, {c: int(c[1:]) // 2 for c in a}, seen, 99, 0) is None


def test_a_skill_is_present_alone_and_fails_in_context_by_its_own_counts() -> None:
    steps = [(True, "a"), (True, "b"), (False, "c"), (True, "d")]
    needed = [({"s", "t"}, {"s"}), ({"s"}, set()), ({"s", "u"}, {"s", "u"}), ({"t"}, {"t"})]
    row = stad._skill_row("m", "s", steps, needed)  # type: ignore[arg-type]
    interval = statistics.rate_interval([True, True, False, True], list("abcd"))
    assert (row["n"], row["isolated"], row["low"], row["high"]) == (4, 0.75, interval.low, interval.high)
    assert (row["bottleneck"], row["of"], row["share"]) == (2, 3, 2 / 3) and row["gap"] == pytest.approx(0.75 - 1 / 3)
    none = stad._skill_row("m", "z", steps, needed)  # type: ignore[arg-type]
    assert (none["of"], none["share"], none["gap"]) == (0, None, None)
    rows = [{"isolated": x, "share": y} for x, y in ((0.1, 0.9), (0.5, 0.2), (0.7, 0.4), (0.9, 0.1), (0.3, None))]
    rho = scipy.spearmanr([0.1, 0.5, 0.7, 0.9], [0.9, 0.2, 0.4, 0.1]).statistic
    assert stad._correlation("m", rows) == {"model": "m", "n": 4, "spearman": pytest.approx(rho)}
    assert stad._correlation("m", rows[:2])["spearman"] is None


def test_a_teacher_is_the_one_that_all_cases_name() -> None:
    def run(*names: str | None) -> Source:
        cases = {str(i): Case(str(i), "q", "a", meta={"teacher": n} if n else {}) for i, n in enumerate(names)}
        return _source("r", [], cases=cases)

    assert stad.teacher_of(run("t", None, "t")) == "t"
    for names in ((), (None,), ("t", "u")):
        with pytest.raises(InputError, match="teachers"):
            stad.teacher_of(run(*names))


def test_lengths_are_means_by_role_and_outcome_over_answers_with_a_length() -> None:
    outcomes: list[Any] = ["correct", "correct", "incorrect"] * 4
    rows = [Graded(f"c{i}", role, outcome, ask=f"{i}{role}", cluster=f"k{i // 3}") for i, outcome in enumerate(outcomes)
            for role in ("whole", "part:0:paraphrase:1", "part:1:paraphrase:0")]  # fmt: skip
    tokens = {str(r.ask): 10 + i for i, r in enumerate(rows) if i % 5}
    found = {
        (m.group["role"], m.group.get("outcome")): m
        for m in analyses.lengths([_source("r", rows, tokens=tokens)], 3).metrics
    }
    assert {role for role, _ in found} == {"whole", "part:*:paraphrase"}
    for (role, outcome), metric in found.items():
        mine = [tokens[str(r.ask)] for r in rows if str(r.ask) in tokens and analyses.role_class(r.role) == role
                and outcome in (None, r.outcome)]  # fmt: skip
        assert (metric.n, metric.count, metric.value) == (len(mine), sum(mine), pytest.approx(np.mean(mine)))
    apart = analyses.lengths([_source("r", [replace(r, cluster=None) for r in rows], tokens=tokens)], 3).metrics
    assert found["whole", None].low is None and any(m.low is not None for m in apart), "four clusters have no interval"
    with pytest.raises(InputError, match="no response lengths"):
        analyses.lengths([_source("r", rows)])


def test_every_answer_of_a_model_is_its_own_and_runs_are_given_once() -> None:
    assert _source("r", [Graded("a", "whole", "correct", model="m")]).model == "m" and _source("r", []).model == "r"
    with pytest.raises(InputError, match="rows of 2 models"):
        _ = _source("r", [Graded("a", "whole", "correct", model=m) for m in "mn"]).model
    with pytest.raises(InputError, match="give at least 2"):
        analyses.distinct([_source("a", [])], 2, "x")
    with pytest.raises(InputError, match="'a' is given twice"):
        analyses.distinct([_source(n, []) for n in "aba"], 2, "x")


@pytest.mark.parametrize(
    ("row", "text", "prone"),
    [
        (Graded("c", "whole", "correct", match="exact", gold="Rome", answer="Rome"), "Rome", False),
        (Graded("c", "whole", "correct", match="judge", gold="Rome"), "x", True),
        (Graded("c", "whole", "correct", match="contained", gold="Rome"), "x", True),
        (Graded("c", "whole", "incorrect", gold="Rome", answer="Oslo"), "It is Rome or Oslo.", True),
        (Graded("c", "whole", "incorrect", gold="Rome", answer="Oslo"), "Romeo", False),
        (Graded("c", "whole", "incorrect", gold="44", answer="44 BC"), "?", True),
        (Graded("c", "whole", "correct", match="exact", gold="300 B.C.E.", answer="x"), "?", True),
    ],
)
def test_answers_on_which_judges_and_people_differ_are_prone(row: Graded, text: str, prone: bool) -> None:
    assert adjudicator.prone(row, text) == prone


def test_a_sample_has_equal_shares_and_what_small_strata_lack_goes_to_the_others() -> None:
    sizes = {("a",): 2, ("b",): 9, ("c",): 30}
    assert adjudicator._allocate(sizes, 12) == {("a",): 2, ("b",): 5, ("c",): 5}
    assert adjudicator._allocate(sizes, 99) == sizes and adjudicator._allocate(sizes, 0) == dict.fromkeys(sizes, 0)


def test_a_drawn_answer_weighs_as_many_as_it_stands_for_and_the_sheet_is_blind() -> None:
    rows = [Graded(f"c{i}", "whole", "correct" if i % 3 else "incorrect", ask=str(i), gold="g", answer="a", domain="d",
                   match="exact" if i % 4 else "judge") for i in range(60)]  # fmt: skip
    source = _source("r", rows, texts={str(i): "said" for i in range(60)}, prompts={str(i): f"q{i}" for i in range(60)})
    found = adjudicator.draw([source], 20, 0)
    key, sheet = found.files["key.jsonl"], found.files["sheet.jsonl"]
    assert len(key) == len(sheet) == 20 and sum(k["weight"] for k in key) == pytest.approx(60)
    assert sum(k["prone"] for k in key) == 10 and {k["kind"] for k in key} == {"whole"}
    assert not {"judged", "outcome", "weight", "prone"} & set(sheet[0])
    by_case = {r.case: r for r in rows}
    assert all(k["judged"] == (by_case[k["case"]].outcome == "correct") for k in key)
    assert all(s["question"] == f"q{by_case[k['case']].ask}" for s, k in zip(sheet, key, strict=True))
    again = adjudicator.draw([source], 20, 0).files["key.jsonl"]
    assert again == key and adjudicator.draw([source], 20, 1).files["key.jsonl"] != key


def test_precision_recall_and_specificity_are_of_what_people_and_judge_say() -> None:
    cells = {(True, True): 5, (True, False): 2, (False, True): 1, (False, False): 4}
    rows = [{"judged": j, "human": h, "weight": 3.0 if j else 1.0} for (j, h), n in cells.items() for _ in range(n)]
    found = {m.metric: m for m in adjudicator._rates(rows, {})}
    assert {k: (m.count, m.n) for k, m in found.items()} == {
        "precision": (5, 7), "recall": (5, 6), "specificity": (4, 6), "accuracy": (9, 12)}  # fmt: skip
    assert "weighted to all answers: 0.9375" in str(found["recall"].note), "15 of 16"
    assert "weighted to all answers: 0.7308" in str(found["accuracy"].note), "19 of 26"
    matrix = adjudicator._confusion(rows, {})
    assert [matrix[k] for k in ("both right", "judge only", "human only", "both wrong", "n")] == [5, 2, 1, 4, 12]
    assert [adjudicator.label(v, "w") for v in ("", None, " Yes", "0", True, "wrong")] == [
        None,
        None,
        True,
        False,
        True,
        False,
    ]


def test_sheets_hold_every_question_as_often_as_asked_and_no_item_twice() -> None:
    cases = [
        Case(f"c{i}", f"whole {i}", "a", tuple(Part(f"part {i} {j}", "b") for j in range(2 + i % 2))) for i in range(9)
    ]
    found = agentcoma.assign(cases, 4, 2, 5)
    key, sheet = found.files["key.jsonl"], found.files["sheet.jsonl"]
    wanted = Counter({(c.id, role): 2 for c in cases for role, _ in agentcoma.questions(c)})
    assert Counter((k["case"], k["role"]) for k in key) == wanted
    assert max(Counter((k["person"], k["case"]) for k in key).values()) == 1
    assert max(Counter(k["person"] for k in key).values()) == 4
    texts = {(c.id, role): text for c in cases for role, text in agentcoma.questions(c)}
    assert all(
        s["item"] == k["item"] and s["question"] == texts[k["case"], k["role"]] for s, k in zip(sheet, key, strict=True)
    )
    assert agentcoma.assign(cases, 4, 2, 5) == found != agentcoma.assign(cases, 4, 2, 6)
    for per_person, answers in ((10, 1), (0, 1), (4, 0)):
        with pytest.raises(InputError, match="--per-person"):
            agentcoma.assign(cases, per_person, answers)
    with pytest.raises(NoCasesError):
        agentcoma.assign([])


def test_filled_sheets_are_graded_as_the_questions_they_hold_and_empty_lines_are_counted() -> None:
    case = Case("c", "Q?", "7", (Part("P?", "Rome", aliases=("Roma",)),), answer_type="number")
    key = [
        {"item": f"i{n}", "person": f"p{n}", "case": "c", "role": r}
        for n, r in enumerate(("whole", "part:0", "whole", "part:0"))
    ]
    sheet = [{"item": f"i{n}", "answer": a} for n, a in enumerate(("7.0", "roma", "8", " "))]
    found = agentcoma.reference_rows({"c": case}, key, sheet)
    rows = [(r["role"], r.get("repeat", 0), r["outcome"], r["model"]) for r in found.files["graded.jsonl"]]
    assert rows == [
        ("whole", 0, "correct", "human"),
        ("part:0", 0, "correct", "human"),
        ("whole", 1, "incorrect", "human"),
    ]
    assert found.warnings == ("1 of 4 questions have no answer and are left out",)
    with pytest.raises(InputError, match="p0 has 2 questions of item 'c'"):
        agentcoma.reference_rows({"c": case}, [{**k, "person": "p0"} for k in key[:2]], sheet)


@pytest.mark.parametrize(
    ("gold", "kind"),
    [
        ("A, B; C", "ordered-list"),
        ("-3.5", "number"),
        ("1,200", "number"),
        ("Yes", "boolean"),
        ("A", "text"),
        (None, "text"),
    ],
)
def test_the_type_of_an_answer_is_read_from_the_gold_where_no_case_says_it(gold: str | None, kind: str) -> None:
    assert taxonomy._kind_of(gold) == kind


@pytest.mark.parametrize(
    ("answer", "gold", "kind", "mismatch"),
    [("twelve", "12", "number", True), ("x 12", "12", "number", False), ("soon", "1402", "date", True),
     ("1402", "1500", "date", False),
     ("maybe", "yes", "boolean", True), ("No.", "yes", "boolean", False), ("1402, 1500", "A, B", "list", True),
     ("B, A", "A, B", "list", False), ("12", "Rome", "text", False)],
)  # fmt: skip
def test_an_answer_of_another_type_is_told_by_its_form(answer: str, gold: str, kind: str, mismatch: bool) -> None:
    assert taxonomy._mismatch(answer, gold, kind) == mismatch


def test_answers_are_alike_whatever_their_dress_and_none_without_a_judgement() -> None:
    make: Any = Graded
    rows: list[Graded] = [
        make("c", "whole", o, answer=a)
        for o, a in (
            ("correct", "The ROME."),
            ("incorrect", "rome"),
            ("abstained", "no idea"),
            ("invalid", "Rome"),
            ("correct", None),
        )
    ]  # type: ignore[arg-type]
    said = [gated.answer_of(r) for r in rows]
    assert said[1] == "rome" and said[3:] == [None, None] and said[2] == gated.prompts.ABSTENTION
    assert gated.answer_of(replace(rows[1], answer="ROME.")) == said[1]
    joint: dict[Any, Any] = {"x": True, "y": False, "z": None}
    kinds = [gated.kind_of(set(atoms), joint) for atoms in ("x", "xy", "y", "xz", "xw")]
    assert kinds == ["pure", "mixed", "knowledge-gap", None, None]


def test_a_case_recovers_only_where_the_other_run_judged_it() -> None:
    after: Any = SimpleNamespace(item=SimpleNamespace(case="c", repeat=0))
    found = [
        gated._after(after, wholes)
        for wholes in (
            {},
            {("c", 0): Graded("c", "whole", "correct")},
            {("c", 0): Graded("c", "whole", "abstained")},
            {("c", 0): Graded("c", "whole", "invalid")},
            {("c", 1): Graded("c", "whole", "correct")},
        )
    ]  # type: ignore[arg-type]
    assert found == [None, True, False, None, None]
