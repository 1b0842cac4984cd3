"""Minimum scaffolding on small tables whose numbers were worked out by hand."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as hs

from composcope.errors import InputError
from composcope.evaluation.asks import Grade
from composcope.evaluation.cases import Case, Part
from composcope.evaluation.metrics import Metric, find
from composcope.evaluation.protocols import Graded, Reduction, get, metrics_from_rows
from composcope.evaluation.protocols.scaffolding import minimum_k

OUTCOMES = {"1": "correct", "0": "incorrect", "?": "invalid"}
SKILLS = ("read", "add", "add", "write")


def item(case: str, whole: str, levels: str = "", parts: str = "", placeholder: str = "") -> list[Graded]:
    rows = [Graded(case, "whole", OUTCOMES[whole], skills=SKILLS)]  # type: ignore[arg-type]
    named = [(f"scaffold:{j}", o) for j, o in enumerate(levels, 1)] + [(f"part:{i}", o) for i, o in enumerate(parts)]
    if placeholder:
        named.append((f"placeholder:{placeholder[0]}", placeholder[1]))
    return rows + [Graded(case, role, OUTCOMES[o], skills=SKILLS) for role, o in named]  # type: ignore[arg-type]


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


def got(name: str, **group: object) -> Metric:
    found = find(reduced().metrics, name, **group)
    assert found is not None, (name, group)
    return found


def test_k_is_the_first_success_and_open_levels_leave_it_open() -> None:
    assert minimum_k(True, []) == {0}
    assert minimum_k(False, [False, True, False]) == {2}
    assert minimum_k(False, [False, False]) == {-1}
    assert minimum_k(False, [None, True]) == {1, 2}
    assert minimum_k(False, [False, None]) == {2, -1}
    assert minimum_k(None, [False]) == {0, -1}
    assert minimum_k(False, []) == frozenset()


@given(hs.sampled_from([True, False, None]), hs.lists(hs.sampled_from([True, False, None]), min_size=1, max_size=5))
def test_open_outcomes_allow_every_k_that_some_judgement_of_them_gives(
    whole: bool | None, levels: list[bool | None]
) -> None:
    import itertools

    outcomes = [whole, *levels]
    unknown = [i for i, o in enumerate(outcomes) if o is None]
    every = set()
    for filled in itertools.product([True, False], repeat=len(unknown)):
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


def test_bottlenecks_are_the_skills_up_to_k_each_once() -> None:
    assert (got("bottleneck", skill="read").count, got("bottleneck", skill="read / add").count) == (1, 1)


def test_the_items_that_fail_again_above_k_are_counted() -> None:
    found = got("non_monotone")
    assert (found.count, found.n) == (1, 2)
    last = find(metrics_from_rows([*TABLE, *item("g", "0", "001")], "scaffolding").metrics, "non_monotone")
    assert last is not None and (last.count, last.n) == (1, 2), "above the last level there is nothing to fail at"


def test_isolated_skills_are_counted_over_all_items_and_over_the_failed_ones() -> None:
    every, failed = got("skill_accuracy", skill="add"), got("skill_accuracy", skill="add", whole="incorrect")
    assert (every.count, every.n, failed.count, failed.n) == (9, 10, 5, 6)


def test_scaffold_success_by_level_counts_failed_items_only() -> None:
    one, two = got("scaffold_success", level=1), got("scaffold_success", level=2)
    assert (one.count, one.n) == (1, 4)
    assert (two.count, two.n, two.n_invalid) == (1, 3, 1)
    combined = got("scaffold_success", combination="read + add + add + write", level=2)
    assert "read / add" in (combined.note or "")
    named = [Graded(c, "whole", "correct", skills=k) for c, k in (("x", ("read", "")), ("y", ("", "")), ("z", ()))]
    metrics = metrics_from_rows(named, "scaffolding").metrics
    assert {m.group["combination"] for m in metrics if "combination" in m.group} == {"read + "}


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
    from dataclasses import replace

    protocol = get("scaffolding", format="plain")
    graded = {"whole": Grade("incorrect", "11")}
    texts = replace(CASE, meta={"scaffolds": ["one", "two", "three"]})
    assert [a.prompt for a in protocol.asks(texts, graded) if a.role.startswith("scaffold")] == ["one", "two", "three"]
    with pytest.raises(InputError, match=r"meta\.scaffolds has no text for level 3"):
        protocol.asks(replace(CASE, meta={"scaffolds": ["one", "two", None]}), graded)
