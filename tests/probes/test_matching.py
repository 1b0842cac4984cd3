"""Failures matched to successes: the best assignment there is, what it keeps, what it leaves unbalanced."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from itertools import permutations
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from composcope.errors import InputError
from composcope.probes.effects import smallest_detectable
from composcope.probes.examples import Example
from composcope.probes.matching import (
    CALIPER,
    Balance,
    Matched,
    _differences,
    assign,
    check_templates,
    distance,
    kept,
    match,
    spread_out,
    token_before,
)
from composcope.probes.slots import Slot
from composcope.probes.tables import adjusted, matched_rows


def example(
    case: str, group: str, length: int = 50, depth: int | None = 2, operation: str | None = "add", family: str = "pair",
    last: int | None = None, cluster: str | None = None,
) -> Example:  # fmt: skip
    slot, response = (Slot(0), (1,)) if last is None else (Slot(1), (last, 1))
    return Example(
        case, "whole", "composition", group, (9,) * length, response, (1,), 0, (0, length), family, depth,
        operation, cluster, slot=slot,
    )  # fmt: skip


def best(failures: list[Example], successes: list[Example], caliper: float) -> tuple[int, float]:
    """Every assignment there is: the largest number of pairs, and the smallest total distance of so many."""
    few, many = sorted((failures, successes), key=len)
    found = (0, 0.0)
    for chosen in permutations(many, len(few)):
        apart = [d for a, b in zip(few, chosen, strict=True) if (d := distance(a, b)) <= caliper]
        found = max(found, (len(apart), -sum(apart)))
    return found[0], -found[1]


CASES = st.lists(
    st.tuples(st.integers(20, 90), st.sampled_from([2, 2, 3, 4]), st.sampled_from("ab"), st.integers(0, 1)),
    min_size=1, max_size=5,
)  # fmt: skip


@settings(max_examples=60, deadline=None)
@given(CASES, CASES, st.sampled_from([0.7, CALIPER]))
def test_no_assignment_has_more_pairs_or_as_many_closer_ones(
    a: list[tuple[int, int, str, int]], b: list[tuple[int, int, str, int]], caliper: float
) -> None:
    failures, successes = (
        [example(f"{group}{i}", group, n, depth, kind, last=last) for i, (n, depth, kind, last) in enumerate(x)]
        for group, x in (("failure", a), ("success", b))
    )
    found = assign(failures, successes, caliper)
    count, total = best(failures, successes, caliper)
    assert len(found) == count == len({f.case for f, _ in found}) == len({s.case for _, s in found})
    assert sum(distance(f, s) for f, s in found) == pytest.approx(total, abs=1e-9)


@pytest.mark.parametrize(
    ("other", "apart"),
    [
        (example("s", "success"), 0),
        (example("s", "success", depth=4), 2),
        (example("s", "success", operation="times"), 1),
        (example("s", "success", 80, depth=3), 1 + math.log(80 / 50) / math.log(1.25)),
        (example("s", "success", last=7), 0.5),
        (example("s", "success", depth=None), math.inf),
    ],
)
def test_the_distance_is_the_stated_one(other: Example, apart: float) -> None:
    assert distance(example("f", "failure"), other) == pytest.approx(apart)


def test_cases_without_depths_are_as_near_as_cases_of_one_depth() -> None:
    assert distance(example("f", "failure", depth=None), example("s", "success", depth=None)) == 0


def test_two_distant_pairs_are_better_than_one_near_one() -> None:
    failures = [example("f5", "failure", depth=5), example("f2", "failure", depth=2)]
    successes = [example("s5", "success", depth=5), example("s8", "success", depth=8)]
    found = {(f.case, s.case) for f, s in assign(failures, successes, 3.0)}
    assert found == {("f5", "s8"), ("f2", "s5")}


def test_the_token_before_a_slot_is_the_last_one_before_the_answer() -> None:
    assert token_before(example("a", "failure", last=7)) == 7 and token_before(example("b", "failure")) == 9


def test_families_match_exactly_and_what_has_no_like_is_dropped() -> None:
    cases = [
        *(example(f"f{i}", "failure", 20 + i) for i in range(4)),
        *(example(f"s{i}", "success", 21 + i) for i in range(6)),
        example("alone", "failure", 20, family="other"),
        example("deep", "failure", 20, depth=8),
        example("long", "success", 90),
    ]
    found = match(cases)
    assert len(found.pairs) == 4 and found.possible
    assert all(abs(len(a.prompt_ids) - len(b.prompt_ids)) <= 2 for a, b in _members(found))
    assert [(s.key, s.failures, s.successes, s.pairs) for s in found.strata] == [
        (("other",), 1, 0, 0),
        (("pair",), 5, 7, 4),
    ]
    assert "1 of 2 strata dropped" in found.note
    assert len(match([*cases, example("no depth", "failure", depth=None)], on=("family", "depth")).strata) == 4


def test_a_matched_case_keeps_every_role_and_one_without_a_match_none() -> None:
    wholes = [example("f", "failure"), example("s", "success"), example("x", "success", family="other")]
    parts = [replace(e, role=f"part:{i}") for e in wholes for i in range(2)]
    found = match([*parts, *wholes])
    assert [(e.case, e.role) for e in found.examples] == [
        ("f", "part:0"), ("f", "part:1"), ("s", "part:0"), ("s", "part:1"), ("f", "whole"), ("s", "whole")
    ]  # fmt: skip
    apart = [replace(e, depth=9) if (e.case, e.role) == ("s", "part:1") else e for e in [*parts, *wholes]]
    assert match(apart).pairs and not match(apart, role="part:1").pairs, "matched on the examples of the role"


def _members(found: Matched) -> list[tuple[Example, Example]]:
    of = {e.case: e for e in found.examples}
    return [(of[f], of[s]) for f, s in found.pairs]


@pytest.mark.parametrize("seed", range(8))
def test_overlapping_groups_keep_four_fifths_of_their_failures(seed: int) -> None:
    rng = np.random.default_rng(seed)

    def draw(group: str, n: int, shift: float) -> list[Example]:
        return [
            example(
                f"{group}{i}", group, int(50 * math.exp(rng.normal(0.2 * shift, 0.25))),
                int(np.clip(rng.poisson(0.7 + 0.4 * shift) + 2, 2, 5)), str(rng.choice(["add", "sub", "times"])),
                str(rng.choice(["a", "b", "c"])), int(rng.integers(2)),
            )
            for i in range(n)
        ]  # fmt: skip

    found = match([*draw("failure", 20, 1.0), *draw("success", 60, 0.0)])
    assert len(found.pairs) >= 0.8 * 20
    after = {b.covariate: abs(b.after) for b in found.balance}
    before = {b.covariate: abs(b.before) for b in found.balance}
    assert after["length"] < max(0.5, before["length"]) and after["depth"] <= max(0.5, before["depth"])


def test_balance_is_the_standardized_difference_before_and_after() -> None:
    failures = [example(f"f{i}", "failure", n) for i, n in enumerate((60, 62, 64))]
    successes = [example(f"s{i}", "success", n) for i, n in enumerate((60, 30, 31, 62, 32, 64))]
    found = match([*failures, *successes])
    (length,) = found.balance
    x, y = (np.log([len(e.prompt_ids) for e in side]) for side in (failures, successes))
    assert length.before == pytest.approx((x.mean() - y.mean()) / math.sqrt((x.var() + y.var()) / 2))
    assert length.after == pytest.approx(0, abs=1e-12) and not found.differences
    assert f"length {length.before:+.2f} -> +0.00" in found.note
    alone = [example(f"{g}{i}", g, 400, family=g) for g in ("failure", "success") for i in range(2)]
    assert match([*failures, *successes, *alone]).balance == found.balance, "families without both sides do not count"
    deep = [example(f"{g}{d}", group, depth=d) for g, group in (("f", "failure"), ("s", "success")) for d in (2, 3)]
    (depth,) = match([*deep, example("s4", "success", depth=4)]).balance
    assert depth.covariate == "depth" and depth.before == pytest.approx(-0.5 / math.sqrt((1 / 4 + 2 / 3) / 2))
    assert not match([*deep, example("s4", "success", depth=None)]).balance, "one of them has no depth"


def test_what_stays_unbalanced_is_adjusted_for_and_the_row_says_so() -> None:
    rng = np.random.default_rng(3)
    cases, value = [], {}
    for i in range(12):
        n = 40 + 3 * i
        cases += [example(f"f{i}", "failure", int(n * (1.2 + 0.02 * (i % 3)))), example(f"s{i}", "success", n)]
    for e in cases:  # nothing but length makes a difference
        value[e.case] = 2 * math.log(len(e.prompt_ids)) + 0.01 * rng.normal()
    found = match(cases)
    assert list(found.differences) == ["length"]
    numbers = [value[e.case] for e in cases]
    (row,) = matched_rows("q", cases, found, lambda i, _: numbers[i])
    d = np.array([value[f] - value[s] for f, s in found.pairs])
    x = np.array([found.differences["length"][f] for f, _ in found.pairs])
    intercept = np.polyfit(x, d, 1)[1]
    assert row["value"] == pytest.approx(intercept) and row["unadjusted"] == pytest.approx(d.mean())
    assert row["note"] == "adjusted for length" and row["test"] == "regression, t"
    assert abs(row["value"]) < 0.1 < row["unadjusted"] and row["low"] < 0 < row["high"]
    few = match(cases[:8])
    (short,) = matched_rows("q", cases[:8], few, lambda i, _: numbers[i])
    assert "too few pairs" in short["note"]
    assert short["value"] == pytest.approx(np.mean([value[f] - value[s] for f, s in few.pairs]))


def test_a_success_cluster_that_many_failures_meet_is_respected() -> None:
    rng = np.random.default_rng(0)
    common, cases, numbers = np.repeat(rng.normal(size=8), 5), [], {}
    for i in range(40):
        cases += [replace(example(f"{g[0]}{i}", g, 20 + 10 * i), cluster=c) for g, c in
                  (("failure", f"own{i}"), ("success", f"shared{i // 5}"))]  # fmt: skip
        numbers |= {f"f{i}": rng.normal(), f"s{i}": 3 * common[i] + 0.1 * rng.normal()}
    found = match(cases)
    assert len(found.pairs) == 40
    (row,) = matched_rows("q", cases, found, lambda i, _: numbers[cases[i].case])
    alone = [replace(e, cluster=None) for e in cases]
    (plain,) = matched_rows("q", alone, found, lambda i, _: numbers[cases[i].case])
    assert row["interval"] == "CR2 t over clusters" and plain["interval"] == "t"
    assert row["high"] - row["low"] > 1.8 * (plain["high"] - plain["low"]) and row["value"] == plain["value"]


def test_what_matching_left_unbalanced_most_is_adjusted_for_first() -> None:
    pairs = [(example("f", "failure", 60, 3), example("s", "success", 50, 2))]
    balance = [Balance("depth", 0.0, 0.2), Balance("operation x", 0.0, 0.05), Balance("length", 0.0, -0.9)]
    found = _differences(balance, pairs)
    assert [*found.items()] == [("length", {"f": pytest.approx(math.log(60 / 50))}), ("depth", {"f": 1.0})]


def test_adjusted_differences_of_clusters_have_robust_errors() -> None:
    rng = np.random.default_rng(0)
    near = [f"k{i // 4}" for i in range(40)]
    x, common = rng.normal(size=40), np.repeat(rng.normal(size=10), 4)
    d = 1 + 0.5 * x + common
    alone, _ = adjusted(d, {"x": x})
    kept, names = adjusted(d, {"x": x}, near)
    assert names == ["x"] and kept["value"] == pytest.approx(alone["value"])
    assert kept["high"] - kept["low"] > 1.3 * (alone["high"] - alone["low"])
    assert adjusted(d, {"x": np.ones(40)}) == ({}, [])
    several = {f"x{i}": rng.normal(size=40) for i in range(4)}
    assert adjusted(d, several, [i % 6 for i in range(40)])[1] == [*several]
    assert adjusted(d, several, [i % 5 for i in range(40)]) == ({}, []), "as many clusters as coefficients"


def test_a_covariate_that_others_give_takes_no_place_from_one_that_they_do_not() -> None:
    rng = np.random.default_rng(0)
    add, length = rng.integers(-1, 2, 40).astype(float), rng.normal(size=40) + 0.5
    d = length + rng.normal(size=40)
    alone = adjusted(d, {"length": length})[0]["value"]
    found, names = adjusted(d, {"length": 1e9 * length, "rounded": length + 1e-13 * add})
    assert names == ["length", "rounded"] and abs(found["value"] - alone) < 1e-9
    found, names = adjusted(3 * length + rng.normal(0, 0.1, 40), {"add": add, "mul": -add, "length": length})
    assert names == ["add", "mul", "length"] and abs(found["value"]) < 0.1 < found["unadjusted"]


def test_pairs_are_spread_over_families_depths_and_operations() -> None:
    cases = [
        *(example(f"f{i}", "failure", family="a" if i < 8 else "b", depth=2 + (i % 2)) for i in range(10)),
        *(example(f"s{i}", "success", family="a" if i < 8 else "b", depth=2 + (i % 2)) for i in range(10)),
    ]
    found = match(cases)
    of = {e.case: (e.family, e.depth) for e in cases}
    order = spread_out(found.pairs, cases)
    assert sorted(order) == sorted(found.pairs) and len({of[f] for f, _ in order[:4]}) == 4
    assert kept(order[:4], found.pairs, cases) == "family: a 2 of 8, b 2 of 2; depth: 2 2 of 5, 3 2 of 5"


@pytest.mark.parametrize("n", [4, 6, 12, 16, 24])
def test_the_first_pairs_are_even_over_families_and_depths_however_many_strata_there_are(n: int) -> None:
    depths, families = (2, 4, 6, 10), "abcdef"
    cases = [example(f"{g[0]}{f}{d}{i}", g, family=f, depth=d) for f in families for d in depths for i in range(2)
             for g in ("failure", "success")]  # fmt: skip
    found = match(cases, caliper=0.5)
    assert len(found.pairs) == 48
    of = {e.case: e for e in cases}
    first = [of[f] for f, _ in spread_out(found.pairs, cases)[:n]]
    for counts in (
        [sum(e.depth == d for e in first) for d in depths],
        [sum(e.family == f for e in first) for f in families],
    ):
        assert max(counts) - min(counts) <= 1
    assert len({(e.family, e.depth) for e in first}) == min(n, 24)
    said = kept([(e.case, "") for e in first], found.pairs, cases)
    assert f"10 {sum(e.depth == 10 for e in first)} of 12" in said and "family: a " in said and "operation" not in said


def test_lengths_beyond_the_caliper_are_not_matched() -> None:
    def pairs(length: int, caliper: float) -> int:
        return len(match([example("f", "failure", 100), example("s", "success", length)], caliper=caliper).pairs)

    assert [pairs(124, 1.0), pairs(126, 1.0), pairs(126, 1.1), pairs(80, 1.0), pairs(79, 1.0)] == [1, 0, 1, 1, 0]


def test_no_caliper_pairs_all_but_cases_without_a_distance() -> None:
    a, b = example("a", "failure", 10), example("b", "success", 90)
    assert match([a, b], caliper=math.inf).pairs == (("a", "b"),)
    without = replace(a, case="w", depth=None)
    assert match([a, without, b], caliper=math.inf).pairs == (("a", "b"),)
    assert match([without, b], caliper=math.inf).pairs == ()
    for caliper in (-1.0, math.nan):
        with pytest.raises(InputError, match="caliper"):
            match([a, b], caliper=caliper)


def test_a_contrast_is_possible_from_two_pairs_on() -> None:
    pairs = (("a", "b"), ("c", "d"), ("e", "f"))
    assert [Matched(pairs[:n], (), (), (), 0.0).possible for n in range(4)] == [False, False, True, True]


@pytest.mark.parametrize(
    ("change", "options", "said"),
    [
        ({}, {"caliper": -0.1}, "caliper=-0.1"),
        ({}, {"caliper": math.nan}, "caliper=nan"),
        ({}, {"on": ("famly",)}, "'famly'"),
        ({}, {"role": "part:3"}, "role 'part:3'; roles are ['whole']"),
        ({"case": "a"}, {}, "case 'a': several examples of role 'whole'"),
        ({"group": "mixed"}, {}, "case 'b': group is 'mixed'"),
    ],
)
def test_examples_that_cannot_be_matched_are_refused(
    change: dict[str, Any], options: dict[str, Any], said: str
) -> None:
    given = [example("a", "failure"), replace(example("b", "success"), **change)]
    with pytest.raises(InputError) as caught:
        match(given, **options)
    assert said in str(caught.value), caught.value
    assert match([*given[:1], example("b", "success")], caliper=0).pairs == (("a", "b"),)
    assert match([]).pairs == ()
    check_templates([])
    questions = (("a", "failure", 3), ("b", "success", 4))  # then a template of two tokens, and two of the response
    moved = [replace(example(c, g), prompt_ids=(9, q, 7, 8, 5, 6), cue_tokens=4, begun=2) for c, g, q in questions]
    check_templates(moved)


def test_a_note_names_the_covariates_that_are_most_unbalanced_in_either_direction() -> None:
    found = match([example(f"{group[0]}{i}", group, 10 + i) for group in ("failure", "success") for i in range(4)])
    after = {"a": 0.1, "b": -0.9, "c": 0.5, "d": -0.2, "e": 0.3}
    note = replace(found, balance=tuple(Balance(name, -1.0, x) for name, x in after.items())).note
    assert "b -1.00 -> -0.90, c -1.00 -> +0.50, e -1.00 -> +0.30, d -1.00 -> -0.20 and 1 less unbalanced" in note


@pytest.mark.parametrize(("per", "said"), [(1, (12, 12)), (2, (12, 6)), (3, (12, 4))])
def test_a_note_says_what_pairs_can_show_that_share_clusters(per: int, said: tuple[int, int]) -> None:
    groups = ("failure", "success")
    cases = [example(f"{g[0]}{i}", g, cluster=f"{g} {i // per}") for g in groups for i in range(12)]
    ends = [smallest_detectable(n, error=math.sqrt(2 / n), freedom=n - 1.0) for n in said]
    if per == 1:
        expected = f"smallest detectable effect {ends[0]:.2f} sd"
    elif per == 2:  # at the worst both cases of a cluster are alike, so 12 pairs are worth 6
        expected = f"smallest detectable effect {ends[0]:.2f} to {ends[1]:.2f} sd, "
    else:
        expected = "no test: the cases of all pairs are of 4 clusters, and 5 are needed"
    assert expected in match(cases).note


def test_the_ends_of_what_pairs_can_show_are_in_order_where_they_have_more_facts_than_there_are_pairs() -> None:
    facts = {"f0": "bc", "s0": "ce", "f1": "bd", "s1": "ab"}
    cases = [
        replace(example(case, "failure" if case[0] == "f" else "success"), crossed=tuple(names))
        for case, names in facts.items()
    ]
    low, high = re.findall(r"effect ([\d.]+) to ([\d.]+) sd", match(cases).note)[0]
    assert float(low) <= float(high), match(cases).note
