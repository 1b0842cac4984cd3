# ruff: noqa: E501
"""Rules of asking and counting at their limits: what is refused, left out, rounded or noted, with values by hand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from composcope.errors import InputError
from composcope.evaluation.asks import Grade, Outcome
from composcope.evaluation.cases import Case, Part
from composcope.evaluation.metrics import Metric, find
from composcope.evaluation.prompts import FORMATS, placeholder
from composcope.evaluation.protocols import (
    PROTOCOLS,
    Graded,
    asking,
    compositionality_gap,
    counting,
    double_gate,
    get,
    metrics_from_rows,
    presenting,
    reasoning_gap,
    reduce,
)
from composcope.evaluation.protocols.asking import MAX_TOKENS, default_format, recommended
from composcope.evaluation.protocols.base import CaseSet, Entry, Evidence, Reduction, uncounted
from composcope.evaluation.protocols.compare import compare
from composcope.evaluation.protocols.presenting import Presentation, choose
from composcope.evaluation.protocols.reasoning_gap import co_present
from composcope.evaluation.protocols.scaffolding import Scaffolded, minimum_k

WORDS: dict[str, Outcome] = {"1": "correct", "0": "incorrect", "?": "invalid", "-": "abstained"}
CASE = Case("c", "Which?", "red", (Part("A?", "1", "math", "number"), Part("B?", "two", "date")))


def _rows(case: str, **roles: str) -> list[Graded]:
    """``whole="1", p0="0"``: one row a role."""
    names = {"p": "part:", "s": "scaffold:", "b": "placeholder:"}
    more: dict[str, Any] = {k: roles.pop(k) for k in [*roles] if k in ("family", "skills", "model", "cluster")}
    more = {k: tuple(v.split()) if k == "skills" else v for k, v in more.items()}
    depth = int(roles.pop("depth", "2"))
    return [Graded(case, names[k[0]] + k[1:] if k[1:].isdigit() else k.replace("_", ":"), WORDS[v], depth=depth, **more)
            for k, v in roles.items()]  # type: ignore[arg-type] # fmt: skip


def _got(rows: Sequence[Graded], protocol: str, name: str, **group: Any) -> Metric:
    found = find(metrics_from_rows(rows, protocol).metrics, name, **group)
    assert found is not None, (name, group)
    return found


@pytest.mark.parametrize("name", sorted(PROTOCOLS.own))
def test_unknown_formats_ways_and_options_are_refused_by_every_protocol(name: str) -> None:
    with pytest.raises(InputError, match="--format 'xmll'"):
        get(name, format="xmll")
    with pytest.raises(InputError, match="option not known"):
        get(name, wrong=1)
    also = {"compositionality-gap": "also", "double-gate": "recovery"}.get(name)
    if also:
        with pytest.raises(InputError, match="'cott'"):
            get(name, **{also: ("cott",)})
    with pytest.raises(InputError, match="'gap' is not known"):
        get("gap")
    assert reduce(get(name), []).case_sets


def test_formats_that_cases_or_protocols_recommend() -> None:
    cases = [replace(CASE, meta={"format": f}) for f in ("plain", "cot", "xml")]
    assert recommended(cases, "format") is None and recommended(cases[:1] * 2, "format") == "plain"
    five, six = replace(CASE, answer="a b c d e"), replace(CASE, answer="a b c d e f")
    long_part = replace(CASE, parts=(replace(CASE.parts[0], answer="a b c d e f"),))
    given = {
        "double-gate": [([CASE], "short"), ([CASE, five], "short"), ([CASE, six], None), ([long_part], None),
                        ([replace(CASE, unknowable=True)], None), ([replace(CASE, worked="x")], None)],
        "reasoning-gap": [([CASE], None)],
    }  # fmt: skip
    for name, rows in given.items():
        assert [default_format(cases, name) for cases, _ in rows] == [want for _, want in rows]


def test_budgets_are_those_of_the_format_unless_one_is_given() -> None:
    for given, want in ((None, MAX_TOKENS["plain"]), (7, 7)):
        asks = get("double-gate", format="plain", max_tokens=given).asks(CASE, {})
        assert {a.max_tokens for a in asks} == {want}
    pair = replace(CASE, meta={"question_2": "X?"})
    for given, want in ((None, MAX_TOKENS["cot"]), (7, 7)):
        assert {a.max_tokens for a in get("reasoning-gap", code=True, max_tokens=given).asks(pair, {})} == {want}
    asks = {a.role: a for a in get("double-gate", format="plain", recovery=("thinking", "xml")).asks(CASE, {})}
    assert asks["whole:thinking"].thinking is True and asks["whole:thinking"].format == "plain"
    assert (asks["whole:xml"].thinking, asks["whole:xml"].format) == (None, "xml")
    assert (asks["part:1"].kind, asks["part:1"].gold, asks["whole"].gold) == ("date", "two", "red")


def test_evidence_of_a_case_stands_before_every_question() -> None:
    for name in ("double-gate", "compositionality-gap", "scaffolding"):
        for ask in get(name).asks(replace(CASE, evidence=("A fact.",)), {}):
            assert "A fact." in str(ask.question) and str(ask.question) in ask.prompt


def test_a_line_of_a_case_set_has_every_field_of_its_entry_and_evidence() -> None:
    evidence = (Evidence("whole", "correct", "a", "g", "q"),)
    entry = Entry("c", evidence, "f", 2, "k", "m", 3)
    assert CaseSet("s", "failure", (entry,)).to_dicts() == [
        {"schema": 1, "set": "s", "label": "failure", "case": "c", "family": "f", "depth": 2, "cluster": "k",
         "model": "m", "value": 3,
         "evidence": [{"role": "whole", "outcome": "correct", "answer": "a", "gold": "g", "ask": "q"}]}
    ]  # fmt: skip


def test_no_more_than_three_unknown_roles_are_named() -> None:
    rows = [Graded("a", role, "correct") for role in ("whole", "b", "c", "d", "d", "e")]
    [said] = uncounted(rows, "double-gate")
    assert said.startswith("5 of 6") and "'d' 2" in said and "and 1 others" in said
    [said] = uncounted(rows[:4], "double-gate")
    assert "others" not in said and uncounted(rows[:1], "double-gate") == [] and uncounted(rows, "theirs") == []


def test_repeats_of_one_case_share_it() -> None:
    rows = [replace(r, repeat=n) for i in range(6) for n in range(2) for r in _rows(f"c{i}", p0="1", whole="01"[i % 2])]
    found = _got(rows, "double-gate", "composition")
    assert (found.n, found.cluster_n) == (12, 6)


def test_uneven_numbers_of_parts_count_only_the_steps_that_a_case_has() -> None:
    rows = [*_rows("a", p0="1", p1="0", whole="1"), *_rows("b", p0="1", whole="0")]
    found = _got(rows, "compositionality-gap", "independence_gap")
    assert found.value == pytest.approx(1 / 2 - 1 * (0 + 1) / 2)
    four = [
        *_rows("a", p0="1", p1="1", p2="1", p3="1", whole="0"),
        *_rows("b", p0="1", p1="0", p2="1", p3="1", whole="0"),
    ]
    assert [_got(four, "compositionality-gap", "quadrant", quadrant=q).count for q in ("all", "some")] == [1, 1]
    bare = metrics_from_rows(_rows("a", whole="1") + _rows("b", whole="0"), "compositionality-gap")
    assert {m.metric for m in bare.metrics} == {"composition"} and not bare.case_set("both-right-whole-right").ids
    cases = {"a": replace(CASE, id="a", parts=CASE.parts[:1])}
    lacking = metrics_from_rows(
        [*_rows("a", p0="1", whole="1"), *_rows("b", p1="1", whole="1")], "compositionality-gap", cases=cases
    )
    assert any(w.startswith("1 cases lack") and "'b'" in w for w in lacking.warnings)


def test_a_reversed_whole_is_a_question_or_has_one() -> None:
    def asked(given: Any) -> Any:
        asks = get("compositionality-gap", reversed=True).asks(
            replace(CASE, meta={"reversed": given}, aliases=("r",)), {}
        )
        return next((a.question, a.gold, a.aliases) for a in asks if a.role == "whole:reversed")

    assert asked("W?") == ("W?", "red", ("r",)) and asked({"question": "W?"}) == ("W?", "red", ("r",))
    assert asked({"question": "W?", "answer": "blue"}) == ("W?", "blue", ())
    for wrong in ({"answer": "blue"}, 5, ["question"]):
        with pytest.raises(InputError, match=r"'c': meta\.reversed"):
            asked(wrong)


@pytest.mark.parametrize("n", [1, 2])
def test_examples_for_steps_of_any_kind_take_both_kinds_of_steps_in_turn(n: int) -> None:
    every = presenting.own("compositionality-gap", n)
    by_kind = {k: [e.question for e in every if e.kind == k] for k in ("commonsense", "math", "part")}
    assert by_kind["part"] == [by_kind[("commonsense", "math")[i % 2]][i] for i in range(n)]
    with pytest.raises(InputError, match="--few-shot 0"):
        presenting.own("compositionality-gap", 0)
    ask = get("compositionality-gap").asks(CASE, {})[1]
    assert [e.kind for e in choose(every, ask, "compositionality-gap")] == ["part"] * n
    with pytest.raises(InputError, match=r"no worked example for role 'part:1'.*date"):
        choose([e for e in every if e.kind == "math"], ask, "compositionality-gap")


@pytest.mark.parametrize(
    ("given", "said"),
    [({"prompting": "row"}, "--prompting row"), ({"preamble": "no!"}, "--preamble no!"), ({"thinking_tokens": 0}, "--thinking-tokens 0"),
     ({"cot_tokens": 0}, "--cot-tokens 0"), ({"thinking": True, "prompting": "raw"}, "--thinking needs")],
)  # fmt: skip
def test_presentations_that_cannot_be_are_refused(given: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError, match=said):
        Presentation(**given)
    assert Presentation(thinking_tokens=1, cot_tokens=1) and Presentation(thinking=False, prompting="raw")


def test_d50_of_families_uses_the_depth_2_control_only_where_it_can() -> None:
    def curve(family: str, **failed: int) -> list[Graded]:
        return [r for d, k in failed.items() for i in range(10)
                for r in _rows(f"{family}{d}{i}", p0="1", whole="0" if i < k else "1", depth=d[1:], family=family)]  # fmt: skip

    one = curve("f", d2=0, d4=10)
    assert _got(one, "double-gate", "d50", family="f").value == _got(one, "double-gate", "d50").value == 3.0
    assert _got(curve("f", d2=9), "double-gate", "d50", family="f").n == 10, "also where it has one depth"
    rows = [*curve("pair", d2=1), *curve("far", d4=9, d6=10), *curve("both", d2=0, d4=10), *curve("shallow", d1=0),
            *curve("around", d1=0, d4=10)]  # fmt: skip
    found = {m.group.get("family"): m for m in metrics_from_rows(rows, "double-gate").metrics if m.metric == "d50"}
    assert {*found} == {None, "far", "both", "around"} and found["around"].n == 40
    # depth 2 of far is that of pair and both together: 1 of 20
    assert found["far"].value == pytest.approx(2 + 2 * (0.5 - 1 / 20) / (0.9 - 1 / 20)) and found["both"].value == 3.0
    assert "depth 2 from both, pair" in str(found["far"].note) and "depth 2 from" not in str(found["both"].note)
    assert (found["far"].n, found["both"].n) == (40, 20)


def test_d50_counts_what_is_open_and_says_where_few_cases_are() -> None:
    rows = [r for d in ("2", "4") for i in range(5 if d == "2" else 4)
            for r in _rows(f"{d}{i}", p0="1", whole="01"[d == "2"], depth=d)]  # fmt: skip
    found = _got(rows, "double-gate", "d50")
    assert (found.n, found.n_invalid, found.value) == (9, 0, 3.0) and "n < 5 at depth 4" in str(found.note)
    assert (found.bound_low, found.bound_high) == (3.0, 3.0)
    more = [*rows, *_rows("x", p0="?", whole="1", depth="2"), *_rows("y", p0="1", whole="?", depth="4"),
            *_rows("z", p0="0", whole="?", depth="4"), *_rows("zz", p0="0", whole="?", depth="2")]  # fmt: skip
    opened = _got(more, "double-gate", "d50")
    assert (opened.n, opened.n_invalid, opened.value) == (9, 2, 3.0)
    # of depth 4 fail 4 or 5 of 5
    assert (opened.bound_low, opened.bound_high) == (3.0, pytest.approx(2 + 2 * 0.5 / 0.8))


def test_two_models_are_compared_over_facts_and_cases_of_both() -> None:
    def side(model: str, cases: str, wholes: str) -> list[Graded]:
        return [r for c, w in zip(cases, wholes, strict=True)
                for r in _rows(c, p0="1", p0_paraphrase_0="1", whole=w, model=model)]  # fmt: skip

    def fixed(rows: list[Graded]) -> list[Graded]:
        return [replace(r, role="part:0:paraphrase:0") if "paraphrase" in r.role else r for r in rows]

    a, b = fixed(side("a", "abcde", "0011?")), fixed(side("b", "bcdef", "01?01"))
    found = compare(a, b)
    atom, delta = found.metrics[:2]
    assert (atom.n, atom.value, atom.group) == (4, 0.0, {"per": "fact"})
    assert (found.mcnemar.n, found.mcnemar.a_only, found.mcnemar.b_only) == (2, 0, 0)
    # over b c d e: A has 1 of 3 wrong, B 2 of 3
    assert (delta.n, delta.n_invalid, delta.value) == (3, 2, pytest.approx(1 / 3 - 2 / 3))
    kin, theirs = ([replace(r, family="f") for r in rows] for rows in (a, b))
    own = find(compare(kin, theirs).metrics, "delta_comp", family="f")
    assert own is not None and (own.n, own.value) == (delta.n, delta.value), "also by family"
    assert "1/3 - 2/3" in str(delta.note) and any("2 cases are in one run only" in w for w in found.warnings)
    fewer = compare(a, [r if r.case != "c" or r.role != "part:0" else replace(r, outcome="incorrect") for r in b])
    assert (fewer.metrics[1].n, fewer.metrics[1].value) == (2, pytest.approx(1 / 3 - 2 / 2))
    worse = compare(a, [replace(r, outcome="incorrect") if r.case == "c" and "para" in r.role else r for r in b])
    assert "differs by +25.0 points, more than 2" in str(worse.metrics[1].note) and worse.metrics[1].value is None
    bare = compare([r for r in a if "para" not in r.role], [r for r in b if "para" not in r.role])
    assert "no atom was probed in both" in str(bare.metrics[1].note) and bare.metrics[1].value is None
    depth = [next(m for m in c.metrics if m.metric == "delta_depth") for c in (found, fewer)]
    assert [d.n for d in depth] == [4, 3] and "d50(B) = >2" in str(depth[0].note)
    assert "d50(A) = >2" in str(depth[1].note) and "d50(B) = <2" in str(depth[1].note) and depth[1].value is None
    with pytest.raises(InputError, match="A: rows of several models"):
        compare([*a, *b], b)
    with pytest.raises(InputError, match="no case in common"):
        compare(a[:3], b[-3:])


K = frozenset
LEVELS = [
    ("1", "", K({0})), ("0", "", K()), ("?", "", K({0, -1})), ("0", "01", K({2})), ("0", "00", K({-1})), ("0", "?1", K({1, 2})),
    ("?", "01", K({0, 2})), ("0", "?0", K({1, -1})), ("0", "1?", K({1})), ("?", "00", K({0, -1})),
]  # fmt: skip
TRUTHS = {"1": True, "0": False, "?": None}


@pytest.mark.parametrize(("whole", "levels", "possible"), LEVELS)
def test_every_k_that_open_levels_allow(whole: str, levels: str, possible: frozenset[int]) -> None:
    assert minimum_k(TRUTHS[whole], [TRUTHS[x] for x in levels]) == possible


SCAFFOLDED = [
    *_rows("a", whole="0", s1="0", s2="1", p0="1", p1="0", p2="1", b2="0", skills="x y x"),
    *_rows("b", whole="0", s1="1", s2="0", p0="0", p1="0", p2="1", b1="1", skills="x y x"),
    *_rows("c", whole="1", s1="1", s2="1", p0="1", p1="1", p2="1", skills="x y x"),
    *_rows("d", whole="0", s1="0", s2="0", p0="1", p1="?", p2="1", skills="y z w"),
    *_rows("e", whole="0", s1="1", s2="?", p0="1", p1="1", p2="1", skills="y z w"),
    *_rows("f", whole="0", s1="?", s2="1", p0="1", p1="1", p2="1", skills="y z w"),
    *_rows("g", whole="0", p0="0"),
]
BY_HAND: list[tuple[str, dict[str, Any], tuple[float | None, int, int]]] = [
    ("any_scaffold", {}, (5, 6, 1)), ("k_zero", {}, (1, 6, 1)), ("k_positive", {}, (4, 6, 1)), ("intractable", {}, (1, 6, 1)),
    ("mean_k", {}, (4, 3, 1)), ("mean_k_solvable", {}, (4, 4, 1)), ("non_monotone", {}, (1, 1, 1)),
    ("bottleneck", {"skill": "x / y"}, (1, 3, 1)), ("bottleneck", {"skill": "x"}, (1, 3, 1)), ("bottleneck", {"skill": "y"}, (1, 3, 1)),
    ("skill_accuracy", {"skill": "x"}, (5, 6, 0)), ("skill_accuracy", {"skill": "x", "whole": "incorrect"}, (3, 4, 0)),
    ("skill_accuracy", {"skill": "step 0"}, (0, 1, 0)), ("skill_accuracy", {"skill": "z"}, (2, 2, 1)),
    ("scaffold_success", {"level": 1}, (2, 4, 1)), ("scaffold_success", {"level": 2}, (2, 4, 1)),
    ("scaffold_success", {"level": 1, "combination": "y + z + w"}, (1, 2, 1)), ("k_positive", {"combination": "x + y + x"}, (2, 3, 0)),
    ("placeholder", {}, (1, 2, 0)), ("placeholder", {"level": 1}, (1, 1, 0)), ("placeholder", {"level": 2}, (0, 1, 0)),
]  # fmt: skip


@pytest.mark.parametrize(("name", "group", "wanted"), BY_HAND)
def test_scaffolds_are_counted_as_by_hand(name: str, group: dict[str, Any], wanted: tuple[float, int, int]) -> None:
    found = _got(SCAFFOLDED, "scaffolding", name, **group)
    assert (found.count, found.n, found.n_invalid) == wanted
    assert found.value == pytest.approx(wanted[0] / wanted[1])


def test_scaffolded_items_and_their_sets() -> None:
    found = metrics_from_rows(SCAFFOLDED, "scaffolding")
    sets = {s.name: {e.case: e.value for e in s.entries} for s in found.case_sets}
    assert sets == {"scaffold-k": {"a": 2, "b": 1, "e": 1}, "intractable": {"d": -1}, "unaided": {"c": 0}}
    assert any(w.startswith("1 failed items have one step") for w in found.warnings)
    assert any(w.startswith("1 of 7 items have an open k") for w in found.warnings)
    mean = _got(SCAFFOLDED, "scaffolding", "mean_k")
    assert (mean.bound_low, mean.bound_high) == (pytest.approx(5 / 4), pytest.approx(6 / 4))
    stad = find(metrics_from_rows(SCAFFOLDED, "scaffolding", compat="stad").metrics, "k_positive")
    assert stad is not None and (stad.count, stad.n, stad.value) == (4, 6, 0.6666)
    less = [r for r in SCAFFOLDED if r.case != "f"]
    stad = find(metrics_from_rows(less, "scaffolding", compat="stad").metrics, "mean_k")
    assert stad is not None and (stad.count, stad.n, stad.value) == (4, 3, 1.33)
    alone = find(metrics_from_rows(_rows("g", whole="0"), "scaffolding", compat="stad").metrics, "k_positive")
    assert alone is not None and (alone.n, alone.value) == (0, None), "nothing to truncate"
    item = found.case_set("scaffold-k").entries[0]
    assert [e.role for e in item.evidence] == ["whole", "scaffold:1", "scaffold:2", "part:0", "part:1", "part:2"]
    note = _got(SCAFFOLDED, "scaffolding", "scaffold_success", level=2, combination="x + y + x").note
    assert note is not None and "revealed: x / y" in note


def test_a_placeholder_uses_the_cases_own_wording_where_it_reaches_the_level() -> None:
    three = replace(CASE, parts=(*CASE.parts, Part("C?", "3", "math", "number")))
    graded = {
        "whole": Grade("incorrect", "x"),
        "scaffold:1": Grade("incorrect", "x"),
        "scaffold:2": Grade("correct", "x"),
    }
    for given, own in ((["one", "two"], True), (["one"], False), (None, False)):
        asks = get("scaffolding").asks(replace(three, meta={"placeholders": given}), graded)
        [ask] = [a for a in asks if a.role == "placeholder:2"]
        assert (ask.question == "two") == own
    sooner = {**graded, "scaffold:1": Grade("correct", "x")}
    [ask] = [a for a in get("scaffolding").asks(three, sooner) if "placeholder" in a.role]
    assert (ask.role, ask.question) == ("placeholder:1", placeholder("Which?", [("A?", "1")])), "the least level"
    assert not [a for a in get("scaffolding", placeholders=False).asks(three, graded) if "placeholder" in a.role]
    assert [a.role for a in get("scaffolding").asks(three, {"whole": Grade("invalid", None)}) if "scaffold" in a.role] == [
        "scaffold:1", "scaffold:2",
    ]  # fmt: skip


def test_independent_first_questions_come_from_another_case_wherever_there_is_one() -> None:
    cases = [replace(CASE, id=str(i), parts=(Part(f"{i}?", "1"),)) for i in range(5)]
    for seed in range(4):
        given = [c.meta["independent"] for c in co_present(cases, seed)]
        assert sorted(given) == [f"{i}?" for i in range(5)] and all(g != f"{i}?" for i, g in enumerate(given))
    assert "independent" not in co_present(cases[:1])[0].meta and co_present([]) == []


def test_items_know_their_steps_from_the_case_or_the_rows() -> None:
    rows = {r.role: r for r in _rows("a", whole="0", s1="0", s2="1")}
    item = metrics_from_rows(list(rows.values()), "scaffolding")
    assert item.case_set("scaffold-k").entries[0].value == 2
    from composcope.evaluation.protocols import counting

    [found] = counting.items(list(rows.values()))
    case = Case("a", "q", "x", tuple(Part(f"{i}?", "1", skill=s) for i, s in enumerate(("u", None, "v", "w"))))
    judged = Scaffolded.of(found, {"a": case})
    assert (judged.steps, judged.skills, judged.k, judged.bottleneck) == (4, ("u", "", "v", "w"), 2, "u / ")
    alone = Scaffolded.of(found, None)
    assert (alone.steps, alone.skills, alone.k, alone.bottleneck) == (3, (), 2, None)


@pytest.mark.parametrize(
    ("compat", "reason", "wrong"),
    [(None, "no-answer", False), ("stad", "judge failed", True), ("agentcoma", "judge failed", True),
     ("collapse", "judge failed", False), ("collapse", "no-answer", True)],
)  # fmt: skip
def test_a_paper_counts_as_wrong_what_its_own_rule_says(compat: str | None, reason: str, wrong: bool) -> None:
    rows = [Graded("c", "whole", "invalid", reason=reason), Graded("c", "part:0", "correct")]
    assert [r.outcome for r in counting.published(rows, compat)] == ["incorrect" if wrong else "invalid", "correct"]


def test_runs_of_one_model_are_told_apart_and_one_family_has_no_cells_of_its_own_by_depth() -> None:
    of = [("m", "a"), ("m", "b"), ("n", "a")]
    rows = [Graded("c", "whole", "correct", model=m, run=r, family="f", depth=2) for m, r in of]
    assert [group for group, _ in counting.by_model(rows)] == [
        {"model": "m", "run": "a"},
        {"model": "m", "run": "b"},
        {"model": "n"},
    ]
    more = [*rows[:1], Graded("d", "whole", "correct", model="m", run="a", family="g", depth=2)]
    cells = [[set(group) for group, _ in counting.grouped(counting.items(some))] for some in (rows[:1], more)]
    assert {"family", "depth"} not in cells[0] and {"family", "depth"} in cells[1]


def test_the_gap_to_independence_is_bounded_by_what_open_answers_could_be() -> None:
    assert compositionality_gap._independence_bounds([(None, True, True), (True, None, True)]) == (0.5 - 1, 1 - 0.5)
    assert compositionality_gap._independence_bounds([]) == (None, None)


def test_what_a_protocol_warns_of_without_its_preamble_is_said_and_rows_of_no_protocol_are_no_error() -> None:
    protocol: Any = SimpleNamespace(
        name="scaffolding", reduce=lambda rows, _: Reduction((), (), (f"{len(rows)} rows",))
    )
    rows = [Graded("c", role, "correct") for role in ("whole", "part:0", "no-preamble/whole")]
    assert reduce(protocol, rows).warnings == ("2 rows", "without preamble: 1 rows")
    assert "1" in "".join(uncounted([Graded("c", "hint", "correct")], None))


def test_another_way_to_ask_is_counted_over_the_cases_that_were_asked_so() -> None:
    rows = [*_rows("a", p0="1", p1="1", whole="1", whole_cot="0"), *_rows("b", p0="1", p1="1", whole="1")]
    found = _got(rows, "compositionality-gap", "composition", prompt="cot")
    assert (found.count, found.n, found.n_invalid) == (0, 1, 0)


def test_probes_of_one_fact_share_it_and_evidence_is_the_cases_own_row_where_it_agrees() -> None:
    wordings = {a: {f"w{i}": Graded("c", f"part:0:paraphrase:{i}", "correct", atom=a) for i in range(3)} for a in "xyz"}
    per_probe, per_fact = double_gate._stability({(0, a): rows for a, rows in wordings.items()})
    assert (per_probe.n, per_probe.cluster_n, per_fact.n, per_fact.cluster_n) == (9, 3, 3, None)
    again = double_gate._stability({(repeat, a): rows for repeat in (0, 1) for a, rows in wordings.items()})
    assert [(m.n, m.cluster_n) for m in again] == [(18, 3), (6, 3)], "a fact that is asked twice is one fact"
    own, other = Graded("c", "r", "correct", answer="own"), Graded("d", "s", "incorrect", answer="other")
    item: Any = SimpleNamespace(rows={"r": own})
    for deciding, answer in ((other, "other"), (replace(other, outcome="correct"), "own")):
        found = double_gate._evidence(item, "r", deciding)
        assert (found.role, found.answer) == ("r", answer)


def test_conflation_has_the_bounds_of_its_two_rates_only_where_an_answer_is_open() -> None:
    rows = [
        *_rows("a", p0="1", b="1", whole="0"),
        *_rows("b", p0="1", b="0", whole="0"),
        *_rows("c", p0="1", b="1", whole="1"),
    ]
    rows = [replace(r, role="part:0:paraphrase:0") if r.role == "b" else r for r in rows]
    found = _got(rows, "double-gate", "conflation")
    assert (found.value, found.bound_low, found.bound_high) == (pytest.approx(2 / 3 - 1 / 2),) * 3
    rows = [replace(r, outcome="invalid") if (r.case, r.role) == ("c", "whole") else r for r in rows]
    found = _got(rows, "double-gate", "conflation")
    assert found.n_invalid == 1 and (found.bound_low, found.bound_high) == pytest.approx((2 / 3 - 1, 1 - 1 / 2))


@pytest.mark.parametrize("format", FORMATS)
def test_an_ask_ends_where_its_format_says(format: str) -> None:
    assert asking._ask(CASE, CASE, "whole", "Which?", format, None).stop == FORMATS[format].stop


def test_a_bottleneck_names_each_skill_once_and_a_second_question_takes_no_examples_of_wholes() -> None:
    scaffolded = Scaffolded(counting.items(_rows("c", whole="0"))[0], 3, ("add", "add", "sort"), {}, frozenset({2}))
    assert scaffolded.bottleneck == "add"
    asked = asking._ask(CASE, CASE, "co-presented", "Which?", "plain", None)
    for role, whole in (("co-presented", False), ("code", False), ("whole", True)):
        assert ("whole" in presenting.kinds(replace(asked, role=role), "reasoning-gap")) is whole


def test_the_second_hop_is_compared_over_the_cases_whose_first_hop_is_right() -> None:
    rows = [
        *_rows("a", p1="1", pair_q1="1", whole="0"),
        *_rows("b", p1="1", pair_q1="?", whole="0"),
        *_rows("c", p1="0", pair_q1="0", whole="1"),
    ]
    found = _got(rows, "reasoning-gap", "second_hop", against="step:1")
    assert (found.n, found.n_invalid, found.value) == (1, 0, -1.0)


def test_the_least_gain_of_code_counts_open_answers_in_words_as_right() -> None:
    rows = [*_rows("a", whole="1", code="1"), *_rows("b", whole="?", code="0")]
    found = reasoning_gap.code_gain(counting.items(rows), {}, 0)
    assert (found.bound_low, found.bound_high) == ((1 - 2) / 2, (1 - 1) / 1)
