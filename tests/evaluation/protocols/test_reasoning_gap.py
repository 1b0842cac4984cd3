"""The reasoning gap and its diagnostics on tables whose numbers were worked out by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest

from composcope.errors import InputError
from composcope.evaluation import prompts
from composcope.evaluation.asks import Grade
from composcope.evaluation.cases import Case, Part
from composcope.evaluation.grading import grade
from composcope.evaluation.metrics import Metric, find
from composcope.evaluation.protocols import Graded, counting, get, metrics_from_rows, reasoning_gap
from composcope.evaluation.protocols.reasoning_gap import _chains, co_present

ROLES = ("part:0", "part:1", "pair:q1", "whole", "co-presented", "original", "code")


def rows_of(letters: list[str], roles: tuple[str, ...] = ROLES) -> list[Graded]:
    names = {"1": "correct", "0": "incorrect", "?": "invalid"}
    return [
        Graded(f"c{i}", role, names[letter])  # type: ignore[arg-type]
        for i, word in enumerate(letters)
        for role, letter in zip(roles, word, strict=True)
    ]


#        Q1 Q2 q1 pair co orig code
TABLE = ["1111111", "1110111", "1100110", "0110101", "1111011"]


def got(name: str, rows: list[Graded] | None = None, **group: object) -> Metric:
    found = find(metrics_from_rows(rows or rows_of(TABLE), "reasoning-gap").metrics, name, **group)
    assert found is not None
    return found


def test_the_gap_against_independent_answers() -> None:
    rows = []
    for i in range(20):  # S1 = .80, S2 = .75, S_comp = .45
        for role, right in (("part:0", i < 16), ("part:1", i >= 5), ("whole", i < 9)):
            rows.append(Graded(f"c{i}", role, "correct" if right else "incorrect"))
    gap = find(metrics_from_rows(rows, "reasoning-gap").metrics, "independence_gap")
    assert gap is not None and gap.value == pytest.approx(-0.15)
    assert gap.low is not None and gap.high is not None and gap.low < -0.15 < gap.high


def test_distraction_is_q1_inside_the_pair_minus_q1_alone() -> None:
    found = got("distraction")
    # inside 1 1 0 1 1, alone 1 1 1 0 1
    assert (found.value, found.n) == (0.0, 5)


def test_the_second_hop_is_conditional_on_q1_inside_the_pair() -> None:
    hop, against = got("second_hop"), got("second_hop", against="step:1")
    assert (hop.count, hop.n) == (2, 4)
    assert against.value == pytest.approx(2 / 4 - 4 / 4)
    assert hop.n_invalid == 0, "where Q1 is wrong there is no second hop to be unknown"


def test_a_second_hop_behind_an_open_first_is_open_and_bounded_by_what_the_pair_says() -> None:
    found = metrics_from_rows(rows_of([*TABLE, "11?1111"]), "reasoning-gap").metrics
    hop = find(found, "second_hop")
    assert hop is not None and (hop.count, hop.n, hop.n_invalid) == (2, 4, 1)
    assert (hop.bound_low, hop.bound_high) == (2 / 4, 3 / 5)  # the first wrong; the first right


def test_controls_compare_with_q2_alone() -> None:
    assert (got("co_presented").count, got("co_presented").n) == (4, 5)
    assert got("co_presented", against="step:1").value == pytest.approx(4 / 5 - 1)
    assert got("leakage").value == pytest.approx(4 / 5 - 1)


def test_code_gain_is_relative_to_answers_in_words() -> None:
    gain = got("code_gain")
    assert gain.value == pytest.approx((4 - 2) / 2) and gain.n == 5
    none = [Graded(c, r, "incorrect") for c in "ab" for r in ("part:0", "part:1", "whole", "code")]
    undefined = find(metrics_from_rows(none, "reasoning-gap").metrics, "code_gain")
    assert undefined is not None and undefined.value is None
    few = reasoning_gap.code_gain(counting.items(rows_of(["11"] * 4 + ["10"], ("code", "whole"))), {}, 0)
    assert few.low is not None and few.low < 0, "a resample of these alone never loses by code"
    ran = find(metrics_from_rows(none, "reasoning-gap").metrics, "code_refused", prompt="code")
    assert ran is not None and str(ran.note).endswith("the sandbox did not run"), "nothing is said of failures"


def test_programs_that_the_sandbox_did_not_run_are_counted_apart_from_those_that_failed() -> None:
    reasons = [None, "code: refused", "code: error", "code: no-answer", "code: memory", "truncated"]
    rows = [Graded(str(n), r, "correct") for n in range(6) for r in ("part:0", "part:1", "whole")]
    rows += [Graded(str(n), "code", "invalid" if r else "correct", reason=r) for n, r in enumerate(reasons)]
    found = find(metrics_from_rows(rows, "reasoning-gap").metrics, "code_refused", prompt="code")
    assert found is not None and (found.count, found.n, found.n_invalid) == (2, 6, 0)
    assert all(words in str(found.note) for words in ("1 memory, 1 refused", "1 error, 1 no-answer"))


def test_case_sets_hold_pairs_whose_parts_and_first_hop_are_right() -> None:
    found = metrics_from_rows(rows_of(TABLE), "reasoning-gap")
    assert found.case_set("second-hop-failure").ids == ("c1",)
    assert found.case_set("second-hop-success").ids == ("c0", "c4")
    unknown = metrics_from_rows(rows_of([*TABLE, "111?111"]), "reasoning-gap")
    assert [unknown.case_set(f"second-hop-{s}").ids for s in ("failure", "success")] == [("c1",), ("c0", "c4")]
    for role in ("part:0", "part:1"):
        fewer = metrics_from_rows([r for r in rows_of(TABLE) if (r.case, r.role) != ("c1", role)], "reasoning-gap")
        assert fewer.case_set("second-hop-failure").ids == (), "a part without an answer is not known"


CASE = Case(
    "c",
    "What is X plus 2?",
    "9",
    (Part("What is 3 plus 4?", "7", answer_type="number"), Part("What is 7 plus 2?", "9", answer_type="number")),
    answer_type="number",
    meta={"independent": "What is 1 plus 1?", "original": {"question": "What is 5 plus 2?", "answer": "7"}},
)


def test_asks_put_the_pair_once_and_read_both_answers_from_it() -> None:
    protocol = get("reasoning-gap", format="plain", code=True)
    asks = {a.role: a for a in protocol.asks(CASE, {})}
    assert set(asks) == set(ROLES)
    assert asks["whole"].prompt == asks["pair:q1"].prompt and "Q1: What is 3 plus 4?" in asks["whole"].prompt
    assert "What is X plus 2?" in asks["whole"].prompt
    assert "Q1: What is 1 plus 1?" in asks["co-presented"].prompt and asks["original"].gold == "7"
    answer = "A1: 3 plus 4 is 7. X is 7. A2: 7 plus 2 is 10. So the final answer is: 10"
    judged = {
        role: grade(answer, "stop", a.gold, a.answer_type, format=a.format).outcome
        for role, a in asks.items()
        if role in ("whole", "pair:q1")
    }
    assert judged == {"whole": "incorrect", "pair:q1": "correct"}
    assert protocol.asks(CASE, {role: Grade("correct", "x") for role in asks}) == []


def test_asks_of_answers_of_several_types_and_spellings_keep_them_apart() -> None:
    case = replace(
        CASE, answer_type="text", aliases=("nine",), parts=(CASE.parts[0], replace(CASE.parts[1], aliases=("IX",)))
    )
    asks = {a.role: a for a in get("reasoning-gap", format="plain", code=True).asks(case, {})}
    assert (asks["whole"].answer_type, asks["pair:q1"].answer_type) == ("text", "number")
    assert [asks[r].aliases for r in ("code", "part:1", "original")] == [("nine",), ("IX",), ()]


def test_every_ask_gives_the_evidence_of_its_case() -> None:
    case = replace(CASE, evidence=("The shop sells pens.",))
    asks = get("reasoning-gap", code=True).asks(case, {})
    assert {a.role for a in asks} == set(ROLES)
    assert all(a.prompt.startswith(f"Facts: {case.evidence[0]}\n") and str(a.question) in a.prompt for a in asks)


def test_worked_examples_put_the_second_question_beside_another_first() -> None:
    fields = ("question_1", "answer_1", "worked_1", "question_2", "answer_2", "worked_2", "code")
    items = [{f: f"{f} of {i}" for f in fields} for i in (0, 1)]
    found = _chains(items)
    for i, beside in ((0, 1), (1, 0)):
        of = {e.kind: e for e in found[i * 5 : i * 5 + 5]}
        assert of["co-presented"].question == prompts.co_presented(f"question_1 of {beside}", f"question_2 of {i}")
        assert of["co-presented"].worked == f"A1: worked_1 of {beside}. A2: worked_2 of {i}"
        assert of["pair"].question == of["code"].question == prompts.pair(f"question_1 of {i}", f"question_2 of {i}")
        assert of["pair"].worked == f"A1: worked_1 of {i}. X is answer_1 of {i}. A2: worked_2 of {i}"
        assert {k: e.answer for k, e in of.items() if k != "code"} == {
            "q1": f"answer_1 of {i}", **dict.fromkeys(("q2", "pair", "co-presented"), f"answer_2 of {i}")
        }  # fmt: skip


def test_a_question_that_is_a_pair_already_is_asked_as_it_is() -> None:
    text = prompts.pair("What is 3 plus 4?", "What is X plus 2?")
    asks = {a.role: a for a in get("reasoning-gap", format="plain").asks(replace(CASE, question=text), {})}
    assert asks["whole"].prompt == text


def test_answers_in_code_are_run_and_what_cannot_run_is_invalid() -> None:
    program = (
        "```python\ndef solve_q1():\n    return 3 + 4\n\ndef solution():\n    X = solve_q1()\n    return X + 2\n```"
    )
    assert grade(program, "stop", "9", "number", format="code").outcome == "correct"
    assert grade(program, "stop", "8", "number", format="code").outcome == "incorrect"
    refused = grade(
        "```python\nimport os\ndef solution():\n    return os.listdir()\n```", "stop", "9", "number", format="code"
    )
    assert refused.outcome == "invalid" and (refused.reason or "").startswith("code: ")
    assert grade("It is 9.", "stop", "9", "number", format="code").reason == "code: no-code"
    cut = grade("```python\ndef solution():\n    return 4 +", "length", "9", "number", format="code")
    assert (cut.outcome, cut.reason) == ("invalid", "truncated")


def test_independent_questions_come_from_other_cases() -> None:
    cases = [
        replace(CASE, id=str(i), meta={}, parts=(replace(CASE.parts[0], question=f"q{i}"), CASE.parts[1]))
        for i in range(5)
    ]
    for seed in range(4):
        partners = co_present(cases, seed=seed)
        assert all(c.meta["independent"] != c.parts[0].question for c in partners)
        assert {c.meta["independent"] for c in partners} == {f"q{i}" for i in range(5)}
    drawn = {tuple(c.meta["independent"] for c in co_present(cases, seed=seed)) for seed in (1, 1, 2, 3)}
    assert len(drawn) == 3
    assert "independent" not in co_present(cases[:1])[0].meta and co_present([]) == []
    bare = co_present([*cases, replace(CASE, id="bare", meta={}, parts=())])
    assert ["independent" in c.meta for c in bare] == [True] * 5 + [False], "only a case with parts has a Q1"


def test_an_independent_question_is_not_ones_own_nor_about_what_the_second_needs() -> None:
    def case(id: str, q1: str, cluster: str, crossed: str) -> Case:
        first = replace(CASE.parts[0], question=q1)
        return replace(CASE, id=id, cluster=cluster, meta={"crossed": crossed}, parts=(first, CASE.parts[1]))

    cases = [case("1", "a?", "a", "b"), case("2", "a?", "a", "c"), case("3", "b?", "b", "d"), case("4", "e?", "e", "f")]
    for seed in range(8):
        found = [c.meta["independent"] for c in co_present(cases, seed)]
        assert found[0] == "e?" and found[1] in ("b?", "e?") and found[2] in ("a?", "e?") and found[3] != "e?"
        same = co_present([cases[0], replace(cases[0], id="5")], seed)
        assert not any("independent" in c.meta for c in same), "there is no other Q1"
        alike = [case("6", "g?", "g", "z"), case("7", "h?", "h", "z"), case("8", "i?", "i", "y")]
        assert [c.meta["independent"] for c in co_present(alike, seed)][:2] == ["i?", "i?"], "6 and 7 share z"
        (one, other) = co_present([cases[0], cases[2]], seed)
        assert (one.meta["independent"], other.meta["independent"]) == ("b?", "a?"), "there is none that shares nothing"


Q = {"question": "What is 3 + 4?"}


@pytest.mark.parametrize(
    ("meta", "named"),
    [*(({"original": o}, "original.*answer") for o in (Q, {**Q, "answer": ["1"]}, {**Q, "answer": None}, "3+4", None)),
     ({"original": {"answer": "7"}}, "original.*question"), ({"independent": None}, "meta.*independent"),
     ({"independent": ["a?"]}, "meta.*independent")],
)  # fmt: skip
def test_a_control_that_cannot_be_asked_is_named(meta: dict[str, object], named: str) -> None:
    with pytest.raises(InputError, match=named):
        get("reasoning-gap").asks(replace(CASE, meta={**CASE.meta, **meta}), {})


def test_q1_in_the_pair_is_graded_by_its_own_options() -> None:
    first = replace(CASE.parts[0], answer="B", answer_type="choice", options=(("A", "red"), ("B", "blue")))
    asks = {a.role: a for a in get("reasoning-gap").asks(replace(CASE, parts=(first, CASE.parts[1])), {})}
    assert asks["pair:q1"].options == first.options and asks["whole"].options == ()


def test_a_case_without_two_parts_is_refused() -> None:
    with pytest.raises(InputError, match="needs 2 parts"):
        get("reasoning-gap").asks(Case("c", "q", "a"), {})


def test_the_second_hop_is_compared_over_the_cases_whose_first_hop_is_right() -> None:
    rows = rows_of(["110", "1?0", "001"], ("part:1", "pair:q1", "whole"))
    found = got("second_hop", rows, against="step:1")
    assert (found.n, found.n_invalid, found.value) == (1, 1, -1.0)
    assert (found.bound_low, found.bound_high) == (-1.0, -1.0)


def test_the_least_gain_of_code_counts_open_answers_in_words_as_right() -> None:
    rows = rows_of(["11", "?0"], ("whole", "code"))
    found = reasoning_gap.code_gain(counting.items(rows), {}, 0)
    assert (found.bound_low, found.bound_high) == ((1 - 2) / 2, (1 - 1) / 1)
