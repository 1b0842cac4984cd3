"""What the other cases of a run say about one of them: whether a bridge is missing in a whole family."""

from __future__ import annotations

from dataclasses import replace

import pytest

from composcope.experiments.diagnosis import rule, unsettled, whole_run
from composcope.experiments.diagnosis.evidence import Behaviour, Behind, Followed, Inside, Tally

from .told import DRAWN, SHOWN, found


@pytest.mark.parametrize(("n_shown", "named"), [(6, True), (5, False)])
def test_where_most_cases_of_a_family_lack_their_bridge_few_variants_are_enough_for_another(
    n_shown: int, named: bool
) -> None:
    behind = {"part:1": Behind(True, Tally(4, 4), Tally(4, 4), Tally(), Tally(4, 4))}
    by_luck = {"own:decision": SHOWN, "exit": found(2, cell="decision:-1", pool=19)}
    weak = {
        "read by luck": (Inside(4, by_luck), DRAWN),
        "numbers of no item": (Inside(4, {"own:decision": SHOWN}), replace(DRAWN, from_case=Tally(5, 10))),
        "one answer": (Inside(4, {"own:decision": SHOWN}, worked=1), DRAWN),
        "two of five": (Inside(2, {"own:decision": SHOWN}), Behaviour(True, 2, 4, from_case=Tally(4, 4))),
        "whatever is asked": (Inside(4, {"own:decision": SHOWN}), replace(DRAWN, behind=behind)),
    }
    shortcut = replace(DRAWN, shortcut=Followed("item-3", 3, 5, own=False))
    read = Inside(4, by_luck | {"exit": found(2, cell="decision:-1", pool=20)})
    run = replace(DRAWN, from_cases=Tally(62, 80))
    never = {"a shortcut": (Inside(4, {"own:decision": SHOWN}), shortcut), "read": (read, DRAWN),
             "no numbers of the run": (Inside(4, {"own:decision": SHOWN}), run)}  # fmt: skip
    for id, (one, seen) in {**weak, **never}.items():
        opened = {f"a{i}": Inside(4, {"own:decision": SHOWN}) for i in range(n_shown)}
        opened |= {f"b{i}": Inside(4, {"own:decision": found(1)}) for i in range(9 - n_shown)} | {id: one}
        behaviours = dict.fromkeys(opened, DRAWN) | {id: seen}
        compared = whole_run.uncomputed(opened, behaviours, {}, dict.fromkeys(opened, "f"))
        verdict = rule.from_inside(compared[id], seen)
        assert (verdict is not None) == (named and id not in never), id
        assert verdict is None or verdict[0] == "bridge-not-computed"
        assert compared["b0"].uncomputed.n == (10 if named else 0)
        assert verdict or unsettled.open_question(seen, compared[id])


def test_a_bridge_that_is_found_nowhere_in_one_case_of_a_family_is_not_one_that_the_model_does_not_compute() -> None:
    absent, unnamed, lost, fragile = (
        Inside(4, {"own:decision": SHOWN}),
        Inside(4, {"own:decision": found(1)}),
        Inside(4, {"skip": found(4, cell="decision:3"), "own:decision": SHOWN}),
        Inside(4, {"own:decision": found(4, noise=4)}),
    )
    counts = [  # that lack their bridge, without a cause, with another cause
        (1, 3, 0, 4, False), (2, 2, 0, 4, False), (3, 2, 0, 5, True), (3, 3, 9, 6, False), (7, 5, 9, 12, False),
        (8, 4, 9, 12, True), (1, 2, 0, 3, True), (2, 0, 9, 4, False), (3, 0, 9, 4, True), (3, 1, 1, 4, True),
    ]  # fmt: skip
    for n_absent, n_none, n_lost, of, shown in counts:
        for none in (unnamed, fragile):
            opened = {f"a{i}": absent for i in range(n_absent)} | {f"n{i}": none for i in range(n_none)}
            opened |= {f"b{i}": lost for i in range(n_lost)}
            elsewhere = {f"c{i}": absent for i in range(20)}  # another family's cases do not count
            families = {id: "far" if id[0] == "c" else "near" for id in (*opened, *elsewhere)}
            seen = dict.fromkeys(families, DRAWN)
            compared = whole_run.uncomputed(opened | elsewhere, seen, {}, families)
            assert compared["a0"].uncomputed == Tally(n_absent, of)
            named = rule.from_inside(compared["a0"], DRAWN)
            assert (named and named[0]) == ("bridge-not-computed" if shown else None), (n_absent, n_none, n_lost)
            assert named or f"{n_absent} of {of}" in unsettled.open_question(DRAWN, compared["a0"])
            if n_lost:
                lost_still = rule.from_inside(compared["b0"], DRAWN)
                assert lost_still and lost_still[0] == "lost"
