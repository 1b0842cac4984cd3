"""Minimum scaffolding on small tables whose numbers were worked out by hand."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as hs

from composcope.errors import InputError
from composcope.evaluation.asks import Grade
from composcope.evaluation.cases import Case, Part
from composcope.evaluation.metrics import Metric, find
from composcope.evaluation.prompts import placeholder
from composcope.evaluation.protocols import Graded, Reduction, counting, get, metrics_from_rows
from composcope.evaluation.protocols.scaffolding import Scaffolded, minimum_k

OUTCOMES = {"1": "correct", "0": "incorrect", "?": "invalid"}
SKILLS = ("read", "add", "add", "write")


def item(
    case: str, whole: str, levels: str = "", parts: str = "", placeholder: str = "", skills: tuple[str, ...] = SKILLS
) -> list[Graded]:
    named = [("whole", whole)]
    named += [(f"scaffold:{j}", o) for j, o in enumerate(levels, 1)] + [(f"part:{i}", o) for i, o in enumerate(parts)]
    if placeholder:
        named.append((f"placeholder:{placeholder[0]}", placeholder[1]))
    return [Graded(case, role, OUTCOMES[o], skills=skills) for role, o in named]  # type: ignore[arg-type]


TABLE = [
    *item("a", "1", parts="1111"),  # k = 0
    *item("b", "0", "011", "1101", "20"),  # k = 2
    *item("c", "0", "101", "1111", "11"),  # k = 1, fails again at level 2
    *item("d", "0", "000", "0111"),  # intractable
    *item("e", "0", "0?1"),  # k is 2 or 3
    *item("f", "?", parts="1111"),  # anything
]


def reduced() -> Reduction:
    return metrics_from_rows(TABLE, "scaffolding")


def got(name: str, rows: list[Graded] = TABLE, **group: Any) -> Metric:
    found = find(metrics_from_rows(rows, "scaffolding").metrics, name, **group)
    assert found is not None, (name, group)
    return found


def test_k_is_the_first_success_and_open_levels_leave_it_open() -> None:
    assert minimum_k(True, []) == {0} and minimum_k(None, []) == {0, -1}
    assert minimum_k(False, [False, True, False]) == {2}
    assert minimum_k(False, [False, False]) == {-1}
    assert minimum_k(False, [None, True]) == {1, 2} and minimum_k(None, [False, True]) == {0, 2}
    assert minimum_k(False, [False, None]) == {2, -1} and minimum_k(False, [None, False]) == {1, -1}
    assert minimum_k(False, [True, None]) == {1}
    assert minimum_k(None, [False]) == {0, -1}
    assert minimum_k(False, []) == frozenset()


@given(hs.sampled_from([True, False, None]), hs.lists(hs.sampled_from([True, False, None]), min_size=1, max_size=5))
def test_open_outcomes_allow_every_k_that_some_judgement_of_them_gives(
    whole: bool | None, levels: list[bool | None]
) -> None:
    outcomes = [whole, *levels]
    unknown = [i for i, o in enumerate(outcomes) if o is None]
    every = set()
    for filled in product([True, False], repeat=len(unknown)):
        judged = list(outcomes)
        for i, value in zip(unknown, filled, strict=True):
            judged[i] = value
        every |= minimum_k(judged[0], judged[1:])
    assert minimum_k(whole, levels) == every


def test_shares_leave_open_items_out_and_bound_them() -> None:
    zero, positive, intractable = got("k_zero"), got("k_positive"), got("intractable")
    # e is certainly k > 0, f is anything
    assert (zero.count, zero.n, zero.n_invalid) == (1, 5, 1)
    assert (positive.count, positive.n) == (3, 5)
    assert (intractable.count, intractable.n) == (1, 5)
    assert (intractable.bound_low, intractable.bound_high) == (1 / 6, 2 / 6)
    assert (got("any_scaffold").count, got("any_scaffold").n) == (4, 5)


def test_both_means_of_k_and_their_bounds() -> None:
    mean, solvable = got("mean_k"), got("mean_k_solvable")
    assert (mean.count, mean.n, mean.n_invalid, mean.value) == (3, 2, 2, 1.5)
    # least: b 2, c 1, e 2, f 1; largest: b 2, c 1, e 3, f 3
    assert mean.bound_low == pytest.approx(6 / 4) and mean.bound_high == pytest.approx(9 / 4)
    assert (solvable.count, solvable.n, solvable.value) == (3, 3, 1.0)


def test_the_interval_of_a_mean_holds_no_k_that_cannot_be() -> None:
    levels = {0: ("1", ""), 1: ("0", "111"), 3: ("0", "001")}
    rows = [
        replace(r, cluster=f"k{i % 5}") for i, k in enumerate((0, 3, 1, 1, 1) * 2) for r in item(f"c{i}", *levels[k])
    ]
    mean, solvable = got("mean_k", rows), got("mean_k_solvable", rows)
    assert (mean.value, mean.low, solvable.value, solvable.low) == (1.5, None, 1.2, 0.0)
    bare = [replace(r, cluster=None) for r in rows]
    assert (got("mean_k", bare).low, got("mean_k_solvable", bare).high) != (None, None)
    low, high = got("mean_k", bare).low, got("mean_k", bare).high
    assert low is not None and high is not None and 1 <= low < 1.5 < high <= 3
    for most, odd, end in ((3, 1, "high"), (1, 3, "low")):  # of four steps at least one and at most three are revealed
        ks = [*[most] * 8, odd, *[most] * 3]
        rows = [replace(r, cluster=f"k{i // 2}") for i, k in enumerate(ks) for r in item(f"c{i}", *levels[k])]
        assert getattr(got("mean_k", rows), end) == most


def test_bottlenecks_are_the_skills_up_to_k_each_once() -> None:
    assert (got("bottleneck", skill="read").count, got("bottleneck", skill="read / add").count) == (1, 1)


def test_the_items_that_fail_again_above_k_are_counted() -> None:
    found = got("non_monotone")
    assert (found.count, found.n) == (1, 2)
    last = got("non_monotone", [*TABLE, *item("g", "0", "001"), *item("h", "0", "110")])
    assert (last.count, last.n) == (2, 3), "above the last level there is nothing to fail at"


def test_isolated_skills_are_counted_over_all_items_and_over_the_failed_ones() -> None:
    every, failed = got("skill_accuracy", skill="add"), got("skill_accuracy", skill="add", whole="incorrect")
    assert (every.count, every.n, failed.count, failed.n) == (9, 10, 5, 6)


def test_scaffold_success_by_level_counts_failed_items_only() -> None:
    one, two = got("scaffold_success", level=1), got("scaffold_success", level=2)
    assert (one.count, one.n) == (1, 4)
    assert (two.count, two.n, two.n_invalid) == (1, 3, 2)  # f has an open whole
    combined = got("scaffold_success", combination="read + add + add + write", level=2)
    assert "read / add" in (combined.note or "")
    named = [Graded(c, "whole", "correct", skills=k) for c, k in (("x", ("read", "")), ("y", ("", "")), ("z", ()))]
    metrics = metrics_from_rows(named, "scaffolding").metrics
    assert {m.group["combination"] for m in metrics if "combination" in m.group} == {"read + "}


def test_a_step_without_a_skill_is_counted_by_its_kind_and_without_either_by_its_place() -> None:
    asked = [Graded("a", "whole", "incorrect", skills=("", "sort", ""))]
    asked += [Graded("a", f"part:{i}", "correct", kind=kind) for i, kind in enumerate(("math", "date", None, "text"))]
    skills = [m.group["skill"] for m in metrics_from_rows(asked, "scaffolding").metrics
              if m.metric == "skill_accuracy" and "whole" not in m.group]  # fmt: skip
    assert skills == ["math", "sort", "step 2", "text"]


def test_placeholders_are_judged_at_each_items_own_k() -> None:
    found = got("placeholder")
    assert (found.count, found.n) == (1, 2)
    assert (got("placeholder", level=2).count, got("placeholder", level=1).count) == (0, 1)


def test_case_sets_carry_k() -> None:
    found = reduced()
    assert [(e.case, e.value) for e in found.case_set("scaffold-k").entries] == [("b", 2), ("c", 1)]
    assert found.case_set("intractable").ids == ("d",) and found.case_set("unaided").ids == ("a",)
    assert any("2 of 6 items have an open k" in w for w in found.warnings)


CASE = Case("c", "How much?", "12", tuple(Part(f"q{i}?", str(i)) for i in range(4)))


def test_rounds_ask_scaffolds_of_failures_and_the_placeholder_at_k() -> None:
    protocol = get("scaffolding", format="plain")
    right, wrong = Grade("correct", "12"), Grade("incorrect", "11")
    assert [a.role for a in protocol.asks(CASE, {})] == ["whole", "part:0", "part:1", "part:2", "part:3"]
    graded = {f"part:{i}": right for i in range(4)}
    assert protocol.asks(CASE, {**graded, "whole": right}) == []
    second = protocol.asks(CASE, {**graded, "whole": wrong})
    assert [a.role for a in second] == ["scaffold:1", "scaffold:2", "scaffold:3"]
    unclear = protocol.asks(CASE, {**graded, "whole": Grade("invalid", None)})
    assert [a.role for a in unclear] == [a.role for a in second], "what may have failed is scaffolded, too"
    assert second[1].prompt == "Known: q0? 0. Known: q1? 1. How much?" and second[1].gold == "12"
    third = {**graded, "whole": wrong, "scaffold:1": wrong, "scaffold:2": right, "scaffold:3": right}
    last = protocol.asks(CASE, third)
    assert [a.role for a in last] == ["placeholder:2"] and "[VALUE]" in last[0].prompt and "q1? 1" not in last[0].prompt
    assert protocol.asks(CASE, {**third, "placeholder:2": wrong}) == []
    assert len({a.max_tokens for a in [*second, *last]}) == 1


def test_own_scaffold_texts_are_used_and_a_missing_level_is_an_error() -> None:
    protocol = get("scaffolding", format="plain")
    graded = {"whole": Grade("incorrect", "11")}
    texts = replace(CASE, meta={"scaffolds": ["one", "two", "three"]})
    assert [a.prompt for a in protocol.asks(texts, graded) if a.role.startswith("scaffold")] == ["one", "two", "three"]
    for wrong, level in ((["one", "two", None], 3), (["one"], 2), ("one", 1), ({"1": "one"}, 1)):
        for known in (graded, {}):  # before anything is asked
            with pytest.raises(InputError, match=rf"meta\.scaffolds has no text for level {level}"):
                protocol.asks(replace(CASE, meta={"scaffolds": wrong}), known)


XYX, YZW = tuple("xyx"), tuple("yzw")
SCAFFOLDED = [
    *item("a", "0", "01", "101", "20", XYX),
    *item("b", "0", "10", "001", "11", XYX),
    *item("c", "1", "11", "111", skills=XYX),
    *item("d", "0", "00", "1?1", skills=YZW),
    *item("e", "0", "1?", "111", skills=YZW),
    *item("f", "0", "?1", "111", skills=YZW),
    *item("g", "0", parts="0", skills=()),
]
ODD, LAST = {"combination": "y + z + w"}, {"combination": "x + y + x"}
BY_HAND: list[tuple[str, dict[str, Any], tuple[float | None, int, int]]] = [
    ("any_scaffold", {}, (5, 6, 0)), ("k_zero", {}, (1, 6, 0)), ("k_positive", {}, (4, 6, 0)),
    ("intractable", {}, (1, 6, 0)), ("mean_k", {}, (4, 3, 1)), ("mean_k_solvable", {}, (4, 4, 1)),
    ("non_monotone", {}, (1, 1, 2)), ("bottleneck", {"skill": "x / y"}, (1, 3, 1)),
    ("bottleneck", {"skill": "x"}, (1, 3, 1)), ("bottleneck", {"skill": "y"}, (1, 3, 1)),
    ("skill_accuracy", {"skill": "x"}, (5, 6, 0)), ("skill_accuracy", {"skill": "x", "whole": "incorrect"}, (3, 4, 0)),
    ("skill_accuracy", {"skill": "step 0"}, (0, 1, 0)), ("skill_accuracy", {"skill": "z"}, (2, 2, 1)),
    ("scaffold_success", {"level": 1}, (2, 4, 1)), ("scaffold_success", {"level": 2}, (2, 4, 1)),
    ("scaffold_success", {"level": 1, **ODD}, (1, 2, 1)), ("k_positive", LAST, (2, 3, 0)),
    ("placeholder", {}, (1, 2, 2)), ("placeholder", {"level": 1}, (1, 1, 2)), ("placeholder", {"level": 2}, (0, 1, 1)),
]  # fmt: skip


@pytest.mark.parametrize(("name", "group", "wanted"), BY_HAND)
def test_scaffolds_are_counted_as_by_hand(name: str, group: dict[str, Any], wanted: tuple[float, int, int]) -> None:
    found = got(name, SCAFFOLDED, **group)
    assert (found.count, found.n, found.n_invalid) == wanted
    assert found.value == pytest.approx(wanted[0] / wanted[1])


def test_scaffolded_items_and_their_sets() -> None:
    found = metrics_from_rows(SCAFFOLDED, "scaffolding")
    sets = {s.name: {e.case: e.value for e in s.entries} for s in found.case_sets}
    assert sets == {"scaffold-k": {"a": 2, "b": 1, "e": 1}, "intractable": {"d": -1}, "unaided": {"c": 0}}
    assert any(w.startswith("1 failed items have one step") for w in found.warnings)
    assert any(w.startswith("1 of 7 items have an open k") for w in found.warnings)
    one_step = [r for r in SCAFFOLDED if r.case in "ag"] + item("h", "?", parts="0", skills=())
    shares = [got(name, one_step) for name in ("k_zero", "k_positive", "intractable")]
    assert [(m.n, m.n_invalid, m.bound_low, m.bound_high) for m in shares] == [
        (1, 1, 0, 1 / 2), (1, 1, 1 / 2, 1), (1, 1, 0, 0)
    ], "an item of one step has a k only if it is right"  # fmt: skip
    mean = got("mean_k", SCAFFOLDED)
    assert (mean.bound_low, mean.bound_high) == (pytest.approx(5 / 4), pytest.approx(6 / 4))
    stad = find(metrics_from_rows(SCAFFOLDED, "scaffolding", compat="stad").metrics, "k_positive")
    assert stad is not None and (stad.count, stad.n, stad.value) == (4, 6, 0.6666)
    less = [r for r in SCAFFOLDED if r.case != "f"]
    stad = find(metrics_from_rows(less, "scaffolding", compat="stad").metrics, "mean_k")
    assert stad is not None and (stad.count, stad.n, stad.value) == (4, 3, 1.33)
    alone = find(metrics_from_rows(item("g", "0"), "scaffolding", compat="stad").metrics, "k_positive")
    assert alone is not None and (alone.n, alone.value) == (0, None), "nothing to truncate"
    entry = found.case_set("scaffold-k").entries[0]
    assert [e.role for e in entry.evidence] == ["whole", "scaffold:1", "scaffold:2", "part:0", "part:1", "part:2"]
    note = got("scaffold_success", SCAFFOLDED, level=2, combination="x + y + x").note
    assert note is not None and "revealed: x / y" in note


def test_a_placeholder_uses_the_cases_own_wording_where_it_reaches_the_level() -> None:
    three = replace(CASE, parts=CASE.parts[:3])
    right, wrong = Grade("correct", "x"), Grade("incorrect", "x")
    graded = {"whole": wrong, "scaffold:1": wrong, "scaffold:2": right}
    for texts, own in ((["one", "two", "three"], True), (["one", "two"], True), (["one"], False), (None, False)):
        asks = get("scaffolding").asks(replace(three, meta={"placeholders": texts}), graded)
        [ask] = [a for a in asks if a.role == "placeholder:2"]
        assert (ask.question == "two") == own
    sooner = {**graded, "scaffold:1": right}
    [ask] = [a for a in get("scaffolding").asks(three, sooner) if "placeholder" in a.role]
    assert (ask.role, ask.question) == ("placeholder:1", placeholder("How much?", [("q0?", "0")])), "the least level"
    assert not [a for a in get("scaffolding", placeholders=False).asks(three, graded) if "placeholder" in a.role]
    unclear = get("scaffolding").asks(three, {"whole": Grade("invalid", None)})
    assert [a.role for a in unclear if "scaffold" in a.role] == ["scaffold:1", "scaffold:2"]


def test_items_know_their_steps_from_the_case_or_the_rows() -> None:
    rows = item("a", "0", "01", skills=())
    assert metrics_from_rows(rows, "scaffolding").case_set("scaffold-k").entries[0].value == 2
    [found] = counting.items(rows)
    case = Case("a", "q", "x", tuple(Part(f"{i}?", "1", skill=s) for i, s in enumerate(("u", None, "v", "w"))))
    judged = Scaffolded.of(found, {"a": case})
    assert (judged.steps, judged.skills, judged.k, judged.bottleneck) == (4, ("u", "", "v", "w"), 2, None)
    assert judged.revealed(1) == ("u",) and not judged.revealed(0) and not judged.revealed(-1)
    assert Scaffolded.of(found, {"a": replace(case, parts=(Part("q", "1"),) * 4)}).steps == 4
    alone = Scaffolded.of(found, None)
    assert (alone.steps, alone.skills, alone.k, alone.bottleneck) == (3, (), 2, None)


def test_an_item_whose_revealed_steps_lack_a_skill_is_in_no_bottleneck_and_is_counted() -> None:
    rows = [
        *item("a", "0", "1", skills=("", "add")),
        *item("b", "0", "1", skills=("add", "")),
        *item("c", "0", "01", skills=("add", "", "sort")),
        *item("d", "0", "?1", skills=("add", "", "sort")),
    ]
    [found] = [m for m in metrics_from_rows(rows, "scaffolding").metrics if m.metric == "bottleneck"]
    assert (found.group, found.count, found.n, found.n_invalid) == ({"skill": "add"}, 1, 1, 1)
    assert (found.bound_low, found.bound_high) == (1, 1)
    assert "2 items with k > 0 lack a skill and are left out" in str(found.note)


def test_a_role_that_only_begins_like_a_level_is_left_out_with_a_warning() -> None:
    found = metrics_from_rows([*item("a", "0", "01"), Graded("a", "scaffold:1:again", "correct")], "scaffolding")
    assert found.case_set("scaffold-k").entries[0].value == 2 and "scaffold:1:again" in found.warnings[0]


def test_a_bottleneck_names_each_skill_once() -> None:
    scaffolded = Scaffolded(counting.items(item("c", "0"))[0], 3, ("add", "add", "sort"), {}, frozenset({2}))
    assert scaffolded.bottleneck == "add"
