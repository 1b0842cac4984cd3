"""People in the loop: blind samples of an adjudicator's verdicts, and studies with human answers."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from functools import partial
from itertools import pairwise
from typing import Any

import pytest

from composcope.errors import InputError, NoCasesError
from composcope.evaluation.analyses import adjudicator, agentcoma
from composcope.evaluation.analyses.base import Source
from composcope.evaluation.cases import Case, Part
from composcope.evaluation.graded import Graded

# Adjudicator


def _judged() -> Source:
    rows, texts = [], {}
    for i in range(60):
        right, loose = i % 2 == 0, i < 10
        match = "judge" if loose else "exact" if right else None
        rows.append(
            Graded(
                f"c{i}",
                "whole",
                "correct" if right else "incorrect",
                family="rank" if i < 30 else "pair",
                ask=f"k{i}",
                answer="Bern" if right or loose else "Oslo",
                gold="Rome",
                match=match,
            )
        )
        texts[f"k{i}"] = f"text {i}"
    return Source("run", rows, texts=texts, prompts={f"k{i}": f"question {i}" for i in range(60)})


def test_half_of_the_sample_is_drawn_among_prone_answers_and_weights_undo_it() -> None:
    found = adjudicator.draw([_judged()], n=16, seed=3)
    key = found.files["key.jsonl"]
    assert Counter(line["prone"] for line in key) == {True: 8, False: 8}
    # 10 prone answers in two strata (5 right, 5 wrong), 4 drawn of each: weight 5/4.
    assert {line["weight"] for line in key if line["prone"]} == {1.25}
    assert sum(line["weight"] for line in key) == pytest.approx(60)
    assert found.files == adjudicator.draw([_judged()], n=16, seed=3).files
    open_ = Source("run", [replace(r, outcome="invalid") for r in _judged().rows], texts=_judged().texts)
    with pytest.raises(NoCasesError, match="no judged answers"):
        adjudicator.draw([open_])


def test_what_few_prone_answers_leave_is_drawn_among_the_others_and_paraphrases_are_not_drawn() -> None:
    judged = _judged()
    others = ("part:0:paraphrase:1", "part:0:extra-context")
    asked_again = [replace(r, role=role) for role in others for r in judged.rows[:5]]
    asked_again.append(replace(judged.rows[0], ask="an ask without a response"))
    found = adjudicator.draw([replace(judged, rows=[*judged.rows, *asked_again])], n=40)
    assert found.tables["sample"] == [{"answers": 60, "strata": 6, "drawn": 40, "prone": 10}]
    roles = ["part:0", "no-preamble/part:1", "pair:q1", "whole", "no-preamble/whole", "scaffold:1", "self-ask", "code"]
    rows = [replace(row, role=role) for row, role in zip(judged.rows, roles, strict=False)]
    kinds = {line["role"]: line["kind"] for line in adjudicator.draw([replace(judged, rows=rows)]).files["key.jsonl"]}
    assert kinds == {role: "part" if i < 3 else "whole" for i, role in enumerate(roles)}
    strata = [(line["domain"], line["judged"], line["prone"]) for line in found.files["key.jsonl"]]
    assert sum(a != b for a, b in pairwise(strata)) > 2 * 6, "answers of a stratum stand together"


@pytest.mark.parametrize(
    ("about", "text", "prone"),
    [
        ({"outcome": "correct", "match": "exact"}, "Rome", False),
        ({"outcome": "correct", "match": "judge"}, "the eternal city", True),
        ({"outcome": "incorrect"}, "It was Rome, or rather Oslo.", True),
        ({"outcome": "correct"}, "It was Rome.", False),
        ({"outcome": "incorrect"}, "It was Romeo.", False),
        ({"outcome": "incorrect", "answer": "44 BC"}, "44 BC", True),
        ({"outcome": "correct", "gold": "44 B.C.E."}, "44", True),
        ({"outcome": "correct", "match": "contained"}, "x", True),
        ({"outcome": "incorrect", "gold": "44", "answer": "44 BC"}, "?", True),
        ({"outcome": "correct", "match": "exact", "gold": "300 B.C.E.", "answer": "x"}, "?", True),
    ],
)
def test_answers_are_prone_where_judges_and_people_tend_to_differ(
    about: dict[str, Any], text: str, prone: bool
) -> None:
    assert adjudicator.prone(Graded(**{"case": "c", "role": "whole", "gold": "Rome", **about}), text) is prone


def test_the_sheet_gives_nothing_of_the_verdict_away() -> None:
    sheet = adjudicator.draw([_judged()], n=8).files["sheet.jsonl"]
    assert {frozenset(line) for line in sheet} == {
        frozenset({"item", "question", "gold", "response", "human", "remark"})
    }
    assert all(line["human"] is None for line in sheet)


def _line(n: int, judged: bool, human: str | None, again: str | None = None, **key: object) -> tuple[dict, dict]:
    about = {"domain": "rank", "kind": "whole", "run": "r", "prone": False, "weight": 1.0, **key}
    return {"item": f"i{n}", "case": f"c{n}", "judged": judged, **about}, {
        "item": f"i{n}",
        "human": human,
        "reexamined": again,
    }


def test_precision_and_recall_are_of_right_and_a_second_look_wins() -> None:
    pairs = [
        _line(1, True, "right"),
        _line(2, True, "right", weight=3.0),
        _line(3, True, "wrong"),
        _line(4, False, "right", domain="pair"),
        _line(5, False, "wrong"),
        _line(6, False, "right", "wrong"),
        _line(7, False, None),
    ]
    found = adjudicator.validate([k for k, _ in pairs], [s for _, s in pairs])
    overall = {m.metric: (m.count, m.n) for m in found.metrics if not m.group}
    assert overall == {"precision": (2, 3), "recall": (2, 3), "specificity": (2, 3), "accuracy": (4, 6)}
    precision = next(m for m in found.metrics if m.metric == "precision" and not m.group)
    # Weighted: (1 + 3) of (1 + 3 + 1).
    assert "weighted to all answers: 0.8000" in (precision.note or "")
    assert precision.low is not None and precision.low < 2 / 3 < (precision.high or 0)
    by_domain = next(c for c in found.tables["confusion"] if c["group"] == {"domain": "pair"})
    assert (by_domain["n"], by_domain["human only"]) == (1, 1)
    again = [(r["item"], r["human"], r["judged"]) for r in found.files["reexamine.jsonl"]]
    assert again == [("i3", "wrong", "right"), ("i4", "right", "wrong")]
    assert found.warnings == ("1 of 7 lines have no label yet", "1 labels were changed on re-examination")


def test_what_is_looked_at_again_keeps_the_first_label_and_runs_are_counted_apart() -> None:
    pairs = [_line(1, True, "right", "wrong", run="a"), _line(2, True, "right", run="b")]
    found = adjudicator.validate([k for k, _ in pairs], [s for _, s in pairs])
    (again,) = found.files["reexamine.jsonl"]
    assert (again["human"], again["judged"], again["reexamined"]) == ("right", "right", "wrong")
    assert [t["both right"] for t in found.tables["confusion"] if "run" in t["group"]] == [0, 1]
    assert found.warnings == ("1 labels were changed on re-examination",)


def test_answers_to_one_case_or_cluster_count_as_dependent() -> None:
    for shared in ("case", "cluster", "crossed"):
        names: list[Any] = [[f"s{n // 2}"] if shared == "crossed" else f"s{n // 2}" for n in range(20)]
        pairs = [_line(n, True, "wrong" if n % 5 == 0 else "right", **{shared: name}) for n, name in enumerate(names)]
        found = adjudicator.validate([k for k, _ in pairs], [s for _, s in pairs])
        precision = next(m for m in found.metrics if m.metric == "precision")
        assert (precision.count, precision.n, precision.cluster_n, found.warnings) == (16, 20, 10, ())
        assert precision.cluster_low is not None


def test_a_label_nobody_can_read_is_refused() -> None:
    key, line = _line(1, True, "perhaps")
    with pytest.raises(InputError, match=r"sheet:1: label is 'perhaps'; write right or wrong"):
        adjudicator.validate([key], [line])


# Human study


def _cases(n: int) -> list[Case]:
    return [
        Case(f"c{i}", f"What is {i}+1+2?", str(i + 3), (Part(f"{i}+1?", str(i + 1), answer_type="number"),
             Part(f"{i + 1}+2?", str(i + 3), answer_type="number")), answer_type="number")
        for i in range(n)
    ]  # fmt: skip


@pytest.mark.parametrize(("n", "per_person", "answers"), [(12, 12, 1), (10, 7, 2), (5, 3, 3), (3, 1, 1)])
def test_every_question_is_asked_as_often_as_wanted_and_nobody_sees_two_of_one_item(
    n: int, per_person: int, answers: int
) -> None:
    found = agentcoma.assign(_cases(n), per_person, answers, seed=1)
    key = found.files["key.jsonl"]
    asked = Counter((k["case"], k["role"]) for k in key)
    assert asked == {(f"c{i}", role): answers for i in range(n) for role in ("whole", "part:0", "part:1")}
    assert max(Counter((k["person"], k["case"]) for k in key).values()) == 1
    assert max(Counter(k["person"] for k in key).values()) <= per_person
    if per_person > 2:
        of_first = {k["role"] for k in key if k["person"] == "p001"}
        assert of_first == {"whole", "part:0", "part:1"}, "nobody gets wholes alone"
    assert {frozenset(line) for line in found.files["sheet.jsonl"]} == {
        frozenset({"person", "item", "question", "answer"})
    }


def test_items_with_fewer_questions_are_asked_all_of_theirs_and_the_others_too() -> None:
    cases = [*_cases(4), replace(_cases(5)[4], parts=())]
    key = agentcoma.assign(cases, 3, 2).files["key.jsonl"]
    wanted = {(f"c{i}", role): 2 for i in range(4) for role in ("whole", "part:0", "part:1")} | {("c4", "whole"): 2}
    assert Counter((k["case"], k["role"]) for k in key) == wanted
    a, b = ((case,) for case in cases[:2])
    assert agentcoma._sheets([a, a, b, b, a], 3) == [[a], [a, b], [b, a]], "nobody sees two of one item"


def test_sheets_longer_than_there_are_items_are_refused() -> None:
    with pytest.raises(InputError, match="sheets of 1 to 3"):
        agentcoma.assign(_cases(3), per_person=4)


def test_nobody_can_know_the_whole_of_an_unknowable_case_and_its_parts_can_be_known() -> None:
    case = replace(_cases(1)[0], unknowable=True)
    graded = [agentcoma._graded(case, role, "I don't know.")[1].outcome for role in ("whole", "part:0")]
    assert graded == ["correct", "abstained"]


def test_filled_in_sheets_become_rows_of_a_model_named_human() -> None:
    cases = _cases(3)
    found = agentcoma.assign(cases, per_person=3, answers=2, seed=0)
    key, sheet = found.files["key.jsonl"], [dict(line) for line in found.files["sheet.jsonl"]]
    place = {k["item"]: k for k in key}
    for n, line in enumerate(sheet):
        at = place[line["item"]]
        number = int(at["case"][1:])
        right = {"whole": number + 3, "part:0": number + 1, "part:1": number + 3}[at["role"]]
        line["answer"] = "" if n == 0 else str(right + (at["role"] == "part:0"))  # every first step wrong
    made = agentcoma.reference_rows({c.id: c for c in cases}, key, sheet)
    rows = [Graded.from_dict(r) for r in made.files["graded.jsonl"]]
    assert len(rows) == 17 and {r.model for r in rows} == {"human"}
    answered = [place[line["item"]] for line in sheet if line["answer"]]
    assert [(r.case, r.role, r.extra) for r in rows] == [
        (k["case"], k["role"], {"person": k["person"]}) for k in answered
    ]
    assert {(r.case, r.role, r.repeat) for r in rows} <= {(c.id, role, n) for c in cases for n in (0, 1)
                                                          for role in ("whole", "part:0", "part:1")}  # fmt: skip
    assert {(r.role, r.outcome) for r in rows} == {("whole", "correct"), ("part:0", "incorrect"), ("part:1", "correct")}
    assert Counter(r.repeat for r in rows)[1] in (8, 9)
    assert made.warnings == ("1 of 18 questions have no answer and are left out",)
    twice = [{**k, "person": "p1"} for k in key]
    with pytest.raises(InputError, match="a person may see one"):
        agentcoma.reference_rows({c.id: c for c in cases}, twice, sheet)


def test_a_sample_has_equal_shares_and_what_small_strata_lack_goes_to_the_others() -> None:
    sizes = {("a",): 2, ("b",): 9, ("c",): 30}
    assert adjudicator.allocate(sizes, 12) == {("a",): 2, ("b",): 5, ("c",): 5}
    assert adjudicator.allocate({("few",): 2, ("many",): 90}, 1) == {("few",): 0, ("many",): 1}
    assert adjudicator.allocate(sizes, 99) == sizes and adjudicator.allocate(sizes, 0) == dict.fromkeys(sizes, 0)


def test_a_drawn_answer_weighs_as_many_as_it_stands_for_and_the_sheet_is_blind() -> None:
    rows = [Graded(f"c{i}", "whole", "correct" if i % 3 else "incorrect", ask=str(i), gold="g", answer="a", domain="d",
                   match="exact" if i % 4 else "judge") for i in range(60)]  # fmt: skip
    source = Source("r", rows, texts={str(i): "said" for i in range(60)}, prompts={str(i): f"q{i}" for i in range(60)})
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
    few = adjudicator.draw([source], 2, 0)
    n = sum(k["weight"] for k in few.files["key.jsonl"])
    assert few.warnings[0].startswith(f"2 of 4 strata ({60 - n:g} of 60 answers)") and not found.warnings


def test_precision_recall_and_specificity_are_of_what_people_and_judge_say() -> None:
    cells = {(True, True): 5, (True, False): 2, (False, True): 1, (False, False): 4}
    said = [answer for answer, n in cells.items() for _ in range(n)]
    rows = [{"judged": j, "human": h, "weight": 3.0 if j else 1.0, "case": f"c{n}"} for n, (j, h) in enumerate(said)]
    found = {m.metric: m for m in adjudicator._rates(rows, {})}
    assert {k: (m.count, m.n) for k, m in found.items()} == {
        "precision": (5, 7), "recall": (5, 6), "specificity": (4, 6), "accuracy": (9, 12)}  # fmt: skip
    assert "weighted to all answers: 0.9375" in str(found["recall"].note), "15 of 16"
    assert "weighted to all answers: 0.7308" in str(found["accuracy"].note), "19 of 26"
    matrix = adjudicator._confusion(rows, {})
    assert [matrix[k] for k in ("both right", "judge only", "human only", "both wrong", "n")] == [5, 2, 1, 4, 12]
    read = [adjudicator.label(v, "w") for v in (" ", None, " Yes", "0", True, "wrong", 0)]
    assert read == [None, None, True, False, True, False, False]


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
    case = Case("c", "Q?", "7", (Part("P?", "Rome", "fact", aliases=("Roma",)),), answer_type="number")
    key = [{"item": f"i{n}", "person": f"p{n}", "case": "c", "role": ("whole", "part:0")[n % 2]} for n in range(4)]
    sheet = [{"item": f"i{n}", "answer": a} for n, a in enumerate(("7.0", "roma", 0, " "))]
    found = agentcoma.reference_rows({"c": case}, key, sheet)
    rows = [(r["role"], r.get("repeat", 0), r["outcome"], r["model"], r["kind"]) for r in found.files["graded.jsonl"]]
    assert {row[3:] for row in rows} == {("human", None), ("human", "fact")}
    assert [row[:3] for row in rows] == [("whole", 0, "correct"), ("part:0", 0, "correct"), ("whole", 1, "incorrect")]
    assert found.warnings == ("1 of 4 questions have no answer and are left out",)
    with pytest.raises(InputError, match="p0 has 2 questions of item 'c'"):
        agentcoma.reference_rows({"c": case}, [{**k, "person": "p0"} for k in key[:2]], sheet)


def test_a_line_that_is_twice_in_a_sheet_or_key_and_a_key_of_something_else_are_refused() -> None:
    case = Case("c", "Q?", "7", answer_type="number")
    key: list[dict[str, Any]] = [{"item": "i1", "person": "p1", "case": "c", "role": "whole"}]
    sheet: list[dict[str, Any]] = [{"item": "i1", "answer": "7"}]
    judged = [{**key[0], "domain": "-", "kind": "whole", "run": "r", "judged": True, "prone": False}]
    labelled = [{"item": "i1", "human": "right"}]
    rows = partial(agentcoma.reference_rows, {"c": case})
    for read, ours, filled in ((rows, key, sheet), (adjudicator.validate, judged, labelled)):
        read(ours, filled)
        for wrong, said in (
            ((ours, filled * 2), "sheet:2: item 'i1'"),
            ((ours * 2, filled), "key:2: item 'i1'"),
            ((filled, filled), "key:1: field"),
            ((ours, [{"id": "i1"}]), "sheet:1: field 'item'"),
        ):
            with pytest.raises(InputError, match=said):
                read(*wrong)


def test_people_see_the_evidence_and_the_options_that_models_see_and_may_answer_with_either() -> None:
    options = (("A", "stone"), ("B", "ice"))
    part = Part("Is ice or fire cold?", "A", answer_type="choice", options=(("A", "ice"), ("B", "fire")))
    case = Case("c", "Which melts?", "B", (part,), answer_type="choice", options=options, evidence=("Fire is hot.",))
    asked = dict(agentcoma.questions(case))
    assert asked["whole"] == "Facts: Fire is hot.\nWhich melts? Answer Choices: (A) stone (B) ice"
    assert asked["part:0"] == "Facts: Fire is hot.\nIs ice or fire cold?"
    key = [
        {"item": str(i), "person": str(i), "case": "c", "role": role} for i, role in enumerate(("whole", "part:0") * 2)
    ]
    said = ("ice", "fire", "B", "A")
    rows = agentcoma.reference_rows({"c": case}, key, [{"item": str(i), "answer": a} for i, a in enumerate(said)])
    found = [(row["role"], row["outcome"]) for row in rows.files["graded.jsonl"]]
    assert found == [("whole", "correct"), ("part:0", "incorrect"), ("whole", "correct"), ("part:0", "correct")]


def test_a_sheet_that_does_not_belong_to_key_or_cases_or_is_empty_is_refused() -> None:
    case = Case("c", "Q?", "7", answer_type="number")
    key: list[dict[str, Any]] = [{"item": "i1", "person": "p1", "case": "c", "role": "whole"}]
    judged = [{**key[0], "domain": "-", "kind": "whole", "run": "r", "judged": True, "prone": False}]
    for read, ours in ((partial(agentcoma.reference_rows, {"c": case}), key), (adjudicator.validate, judged)):
        with pytest.raises(InputError, match="sheet:2: item 'i2'"):
            read(ours, [{"item": "i1", "answer": "7", "human": "right"}, {"item": "i2", "answer": "7"}])
        with pytest.raises(NoCasesError, match="sheet: no "):
            read(ours, [{"item": "i1", "answer": " ", "human": ""}])
    for other, said in (({"d": case}, "sheet:1: item 'i1'"), ({"c": replace(case, parts=())}, "sheet:1: .*'part:0'")):
        with pytest.raises(InputError, match=said):
            agentcoma.reference_rows(other, [{**key[0], "role": "part:0"}], [{"item": "i1", "answer": "7"}])
