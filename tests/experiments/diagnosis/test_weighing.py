"""What is counted over opened cases: the best cell of a test, its controls, and the pool of other cases."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from composcope.experiments.diagnosis import rule, rule_inside, unsettled, weighing
from composcope.experiments.diagnosis.evidence import Behaviour, Behind, Followed, Found, Inside, Tally, inside_lines

from .told import DRAWN, SHOWN, cause_of, found


def test_one_answer_that_is_wrong_in_every_variant_is_no_bridge_that_the_model_does_not_compute() -> None:
    def opened(worked: str) -> weighing.Opened:
        own = {"own:decision:0": "gold", "noise:decision:0": "wrong", "foreign:decision:0": "donor"}
        return weighing.Opened({**own, "skip:decision:3": "wrong", "move:end-1:0": "wrong"}, worked=worked)

    for answers, cause in (("777", None), ("737", "bridge-not-computed")):
        found = weighing.weigh({id: [opened(answer) for answer in answers] for id in "abcd"})["a"]
        assert found.worked == len(set(answers))
        named = rule_inside.from_inside(found, replace(DRAWN, n=3, variants=3))
        assert (named and named[0]) == cause
        assert named or "the same right answer" in unsettled.open_question(DRAWN, found)


def test_a_test_has_the_cells_of_its_own_place_and_depth() -> None:
    cells = {f"{test}:{place}:{layer}" for test in ("own", "scope") for place in ("entity", "decision", "end-1")
             for layer in range(4)} | {f"noise:decision:{layer}" for layer in range(4)}  # fmt: skip
    groups = {"a": [weighing.Opened(dict.fromkeys(cells | {"skip:everywhere:3"}, "gold"))]}
    found = {name: list(test.options) for name, test in weighing._tests(groups).items()}
    assert found["own:entity"] == ["entity:0", "entity:1"]
    assert found["own:decision"] == found["noise"] == ["decision:0", "decision:1"]
    assert found["own:later"] == ["decision:2", "decision:3"]
    assert found["scope:decision"] == [f"decision:{layer}" for layer in range(4)]
    assert found["scope:elsewhere"] == [f"{place}:{layer}" for place in ("end-1", "entity") for layer in range(4)]
    assert found["skip"] == ["everywhere:3"] and set(found).isdisjoint({"move", "exit", "back"})


def test_a_case_is_judged_at_the_layer_that_the_other_cases_choose() -> None:
    def opened(*mended: str, place: str = "everywhere") -> weighing.Opened:
        return weighing.Opened({f"skip:{place}:{layer}": "gold" if layer in mended else "wrong" for layer in "0123"})

    others = {"a": [opened("0")], "b": [opened("0")], "c": [opened("1")], "d": [opened()]}
    own = {"x": [opened("1"), opened("1")]}
    skip = weighing.weigh({**others, **own})["x"].tests["skip"]
    assert (skip.cell, skip.own, skip.pool, skip.noise) == ("everywhere:0", Tally(0, 2), Tally(2, 4), Tally(2, 6))
    # Where both mend as often, the smaller one.
    two = weighing.Opened({**opened("2").outcomes, **opened("2", place="decision").outcomes})
    both = {id: [two] for id in "abcd"}
    assert weighing.weigh(both)["a"].tests["skip"].cell == "decision:2"


def test_a_layer_is_chosen_by_what_it_shows_beyond_noise_and_in_the_lower_half() -> None:
    def opened(**mended: str) -> weighing.Opened:
        cells = {f"{test}:decision:{layer}": "wrong" for test in ("own", "noise", "skip") for layer in "0123"}
        gold = {f"{test}:decision:{layer}": "gold" for test, layers in mended.items() for layer in layers}
        return weighing.Opened(cells | gold)

    noisy, quiet = opened(own="013", noise="0"), opened(own="023", noise="0")
    tests = weighing.weigh({id: [noisy, quiet, noisy] for id in "abcd"})["a"].tests
    assert tests["own:decision"].cell == "decision:1", "0 is mended by noise, and 3 stands in the upper half"
    assert (tests["own:decision"].own, tests["own:decision"].noise) == (Tally(2, 3), Tally(0, 3))
    assert tests["noise"].cell == "decision:0"


def test_donors_in_the_place_of_the_own_one_are_counted_by_their_own_answer_and_put_back_ones_by_the_right_one() -> (
    None
):
    opened = weighing.Opened
    group = [
        opened({"own:decision:1": "gold", "noise:decision:1": "gold", "foreign:decision:1": "donor",
                "same:decision:1": "gold", "own:decision:0": "wrong"}),
        opened({"own:decision:1": "wrong", "noise:decision:1": "wrong", "foreign:decision:1": "gold"}),
    ]  # fmt: skip
    pool = [opened({"own:decision:1": "gold"}, value=value) for value in "77"]
    last = {"own:decision:1": "gold", "noise:decision:1": "wrong", "foreign:decision:1": "donor"}
    pool.append(opened(last, value="8"))
    given = weighing._Test("own", ["decision:0", "decision:1"], "noise", "foreign")
    assert weighing._judged(given, group, pool) == Found(
        "decision:1", Tally(1, 2), Tally(1, 2), Tally(1, 2), Tally(3, 3), Tally(1, 1),
        noise_pool=Tally(0, 1), foreign_pool=Tally(1, 1), values=Tally(2, 2),
    )  # fmt: skip
    own = {"back:end:2>0": "gold", "back-noise:end:2>0": "wrong", "back-same:end:2>0": "gold"}
    group = [opened(own | {"back-foreign:end:2>0": foreign}) for foreign in ("gold", "donor", "gold")]
    back = weighing._Test("back", ["end:2>0"], "back-noise", "back-foreign")
    assert weighing._judged(back, group, group) == Found(
        "end:2>0", Tally(3, 3), Tally(0, 3), Tally(2, 3), Tally(3, 3), Tally(3, 3), Tally(0, 3), values=Tally(1, 1)
    )
    blocks = [
        opened({"skip:decision:0": "gold", "skip:decision:1": "gold", "skip:elsewhere:0": "gold"}),
        opened({"skip:decision:1": "gold"}),
    ]
    skip = weighing._Test("skip", ["decision:0", "decision:1", "elsewhere:0"])
    assert weighing._judged(skip, blocks, blocks[1:]) == Found(
        "decision:1", Tally(2, 2), Tally(1, 1), Tally(), Tally(1, 1), Tally(), values=Tally(1, 1)
    ), "other blocks at the same place are what a left-out block is compared with"
    chose = [opened({"skip:decision:1": "gold", "skip:decision:0": other}) for other in ("gold", "wrong")]
    assert weighing._judged(skip, blocks[:1], chose).noise_pool == Tally(1, 2), "in the cases that chose it, too"


def test_the_place_of_a_second_operand_is_chosen_by_other_second_operands() -> None:
    def opened(operand: int, place: str) -> weighing.Opened:
        cells = {f"move:{p}:1": "gold" if p == place else "wrong" for p in ("end-3", "end-4")}
        return weighing.Opened({**cells, "skip:decision:1": "wrong"}, operand)

    first, second = opened(0, "end-4"), opened(1, "end-3")
    groups = {"x": [second, second], "y": [first, second], "a": [first] * 3, "b": [first, second], "c": [first] * 4}
    found = {id: one.tests["move"] for id, one in weighing.weigh(groups).items()}
    assert (found["x"].cell, found["x"].own, found["x"].pool) == ("end-4:1", Tally(0, 2), Tally(9, 11)), "few like ones"
    assert (found["a"].cell, found["a"].own, found["a"].pool) == ("end-4:1", Tally(3, 3), Tally(6, 6))
    found = {id: one.tests["move"] for id, one in weighing.weigh(groups | {"d": [second] * 4}).items()}
    assert (found["x"].cell, found["x"].own, found["x"].pool) == ("end-3:1", Tally(2, 2), Tally(6, 6))
    assert (found["y"].own, found["y"].pool) == (Tally(2, 2), Tally(15, 15)), "each operand at its own place"
    few = {"y": [first, opened(1, "end-4")], "a": [first, opened(1, "end-4")], "b": [opened(2, "end-4")], "c": [first]}
    assert weighing.weigh(few)["y"].tests["move"].pool == Tally(4, 4), "those that choose for both count once"


def test_a_prompt_that_several_cases_have_as_a_variant_counts_once_and_chooses_no_layer_for_a_case_that_has_it() -> (
    None
):
    def opened(prompt: int, mended: str) -> weighing.Opened:
        return weighing.Opened(
            {f"skip:decision:{b}": "gold" if b == mended else "wrong" for b in "01"}, prompt=(prompt,)
        )

    shared = opened(9, "1")
    groups = {
        "x": [opened(1, "1"), shared],
        "a": [opened(2, "0"), shared],
        "b": [opened(3, "0"), shared],
        "c": [shared],
    }
    found = weighing.weigh(groups)
    assert (found["x"].tests["skip"].cell, found["x"].tests["skip"].pool) == ("decision:0", Tally(2, 2))
    assert found["c"].tests["skip"].pool == Tally(2, 3)
    groups |= {"d": [opened(4, "1")], "e": [opened(5, "1"), opened(5, "1")]}
    assert weighing.weigh(groups)["d"].tests["skip"].pool == Tally(3, 5), "x, the shared one once, and e once"


def test_variants_judged_apart_are_added_at_the_cell_where_most_of_them_were() -> None:
    some = [
        Found("a:1", Tally(2, 2), Tally(1, 2), Tally(0, 2), Tally(9, 9), Tally(1, 1), values=Tally(2, 3)),
        Found("b:2", Tally(1, 4), Tally(3, 4), Tally(2, 3), Tally(5, 9), Tally(0, 1), values=Tally(1, 4)),
        Found("a:1", Tally(1, 1), Tally(0, 1), Tally(1, 1)),
    ]
    assert weighing._together(some, Tally(6, 8)) == Found(
        "b:2", Tally(4, 7), Tally(4, 7), Tally(3, 6), Tally(6, 8), Tally(1, 2), values=Tally(3, 7)
    )


def test_a_place_that_few_prompts_have_is_not_chosen() -> None:
    often = {"move:end-1:0": "gold", "skip:decision:1": "wrong"}
    seldom = {**often, "move:end-1:0": "wrong", "move:entity+9:0": "gold"}
    groups = {str(i): [weighing.Opened(often)] for i in range(5)} | {"x": [weighing.Opened(seldom)]}
    assert {one.tests["move"].cell for one in weighing.weigh(groups).values()} == {"end-1:0"}


def test_a_state_that_brings_one_value_whatever_is_asked_brings_few_of_the_right_ones() -> None:
    cells = {"move:end-1:0": "gold", "skip:decision:1": "wrong"}
    constant = [weighing.Opened(cells, value="12")] * 5
    others = [weighing.Opened(cells | {"move:end-1:0": "wrong"}, value=value) for value in ("3", "4", "5", "5")]
    found = weighing.weigh({str(i): [one] for i, one in enumerate([*constant, *others])})
    move = found["8"].tests["move"]
    assert move.pool == Tally(5, 8) and move.values == Tally(1, 4)
    half = [weighing.Opened({"move:end-1:0": outcome}, value="7") for outcome in ("gold", "wrong")]
    half.append(weighing.Opened({}, value="9"))  # its prompt has no such place
    assert weighing._by_value([*half, constant[0]], "move", "end-1:0") == Tally(1, 2), "half is not most"


@pytest.mark.parametrize("test", ["exit", "scope"])
def test_a_reading_counts_at_the_layer_behind_which_most_right_ones_go_away(test: str) -> None:
    right = {0: 12, 1: 10, 2: 9, 3: 0}  # of twelve variants, so block 3 loses most of them

    def opened(i: int) -> weighing.Opened:
        read = {f"{test}:decision:{layer}": "gold" if i < n else "wrong" for layer, n in right.items()}
        return weighing.Opened(read | {f"skip:decision:{layer}": "wrong" for layer in right})

    found = weighing.weigh({id: [opened(3 * k + i) for i in range(3)] for k, id in enumerate("abcd")})
    read = [one.tests["exit" if test == "exit" else "scope:decision"] for one in found.values()]
    assert {(one.cell, one.loses) for one in read} == {("decision:2", 3)}


@pytest.mark.parametrize(("layers", "block"), [((0, 1, 2, 3), 2), ((0, 1, 3, 5), None)])
def test_of_a_model_that_is_not_read_behind_every_block_it_is_not_said_which_one_loses_the_value(
    layers: Sequence[int], block: int | None
) -> None:
    def opened(value: str) -> weighing.Opened:
        read = {f"scope:decision:{layer}": "gold" if layer < 2 else "wrong" for layer in layers}
        own = {"own:decision:0": "gold", "noise:decision:0": "wrong", "foreign:decision:0": "donor"}
        return weighing.Opened(read | own | {"skip:decision:5": "wrong"}, worked=value, value=value)

    found = weighing.weigh({id: [opened(v) for v in "1234"] for id in "abcde"})["a"]
    named = rule_inside.from_inside(found, DRAWN)
    assert named and (named[0], named[3]) == ("lost", block)


def test_states_put_in_after_half_of_the_blocks_are_late_ones() -> None:
    for n_layers, late in ((4, {2, 3}), (5, {3, 4})):
        cells = {f"{test}:decision:{layer}": "gold" if layer in late else "wrong"
                 for test in ("own", "noise") for layer in range(n_layers)}  # fmt: skip
        cells |= {f"own:entity:{layer}": cells[f"own:decision:{layer}"] for layer in range(n_layers)}
        quiet = {cell: "wrong" if cell.startswith("noise") else outcome for cell, outcome in cells.items()}
        skipped = {f"skip:decision:{layer}": "wrong" for layer in range(n_layers)}
        some = [weighing.Opened(made | skipped) for made in (cells, quiet, quiet)]
        tests = weighing.weigh(dict.fromkeys("abcd", some))["a"].tests
        early, later = (("own:entity", "own:decision", "noise"), ("own:later",))
        assert {(tests[name].layer in late, tests[name].own) for name in early} == {(False, Tally(0, 3))}
        assert {(tests[name].layer in late, tests[name].own) for name in later} == {(True, Tally(3, 3))}


def test_few_opened_cases_are_judged_variant_by_variant_and_name_no_cause() -> None:
    def opened(*mended: str) -> weighing.Opened:
        own = {f"own:decision:{layer}": "gold" for layer in "01"} | {
            f"foreign:decision:{layer}": "donor" for layer in "01"
        }
        skip = {f"skip:decision:{layer}": "gold" if layer in mended else "wrong" for layer in "0123"}
        return weighing.Opened(skip | own)

    found = weighing.weigh({"x": [opened("1"), opened("1", "2"), opened("2")]})["x"]
    # the first variant is judged where the other two mend (2), the second where all are equal, the third at 1
    assert found.tests["skip"].own == Tally(1, 3) == found.tests["skip"].pool
    every = [opened("1")._replace(worked=worked) for worked in "112"]
    for n, cause in ((1, None), (3, None), (4, "lost")):
        inside = weighing.weigh({str(i): every for i in range(n)})["0"]
        assert inside.tests["skip"].own == Tally(3, 3)
        assert cause_of(inside, Behaviour(True, 3, 4)) == cause
        assert inside.enough or "more cases" in unsettled.open_question(Behaviour(True, 3, 4), inside)


def test_of_blocks_that_mend_as_often_the_later_one_is_named_also_beyond_the_tenth() -> None:
    def opened(*mended: int) -> list[weighing.Opened]:
        return [weighing.Opened({f"skip:decision:{b}": "gold" if b in mended else "wrong" for b in range(12)})]

    for mended in ((9, 10), (2, 11), (2, 9)):
        found = weighing.weigh({id: opened(*mended) for id in "abcd"})["a"].tests["skip"]
        assert found.layer == mended[1]


def test_cases_without_an_opened_variant_do_not_count_among_those_that_choose() -> None:
    own = {"own:decision:0": "gold", "noise:decision:0": "wrong", "foreign:decision:0": "donor"}
    some = [weighing.Opened({**own, "skip:decision:3": "wrong"}, worked=answer) for answer in "737"]
    seen = replace(DRAWN, n=3, variants=3)
    for n, enough in ((1, False), (3, False), (4, True)):
        groups = {str(i): some if i < n else [] for i in range(6)}
        found = weighing.weigh(groups)["0"]
        assert found.enough == enough == bool(rule_inside.from_inside(found, seen))
        skip = next(line for line in inside_lines(found) if line.startswith("leaving out"))
        assert ("in the other cases" in skip) == enough, "among few, its own variants are counted as well"
    lost = {f"a{k}": [weighing.Opened({"skip:decision:3": "gold"})] * 6 for k in range(4)}
    lacking = {f"b{k}": [weighing.Opened({"skip:decision:3": "wrong"})] * 4 for k in range(3)}
    assert not weighing.halves({**lost, **lacking, "unopened": []})[0]
    assert weighing.halves({**lost, **lacking, "b3": lacking["b0"]})[0]


def test_a_line_of_evidence_names_the_counts_that_there_are_and_no_others() -> None:
    own, count = Tally(4, 4), Tally(1, 7)
    for name in ("skip", "back", "move", "exit", "scope:decision", "own:entity"):
        (bare,) = inside_lines(Inside(4, {name: Found("decision:1", own)}))[1:]
        assert bare.endswith(f"(decision:1): {'is right in' if name.startswith(('scope', 'exit')) else 'mends'} 4 of 4")
        for field in ("noise", "foreign", "same", "pool"):
            (line,) = inside_lines(Inside(4, {name: replace(Found("decision:1", own), **{field: count})}))[1:]
            assert line.startswith(bare) and line.endswith(" 1 of 7"), field


def test_a_shortcut_is_cut_where_its_answer_goes_away_without_its_source_and_not_without_other_words() -> None:
    def one(source: str, other: str) -> weighing.Opened:
        return weighing.Opened({"cut:source:0": source, "cut:other:0": other, "skip:decision:0": "wrong"})

    some = [one("gold", "wrong"), one("gold", "wrong"), one("other", "wrong"), one("gold", "gold")]
    cut = weighing.weigh({"a": some})["a"].cut
    assert cut == {"source": Tally(4, 4), "other": Tally(1, 4), "mended": Tally(3, 4)}
    assert rule.mended_inside(Inside(4, cut=cut)) == "attention to the copied words cut"
    assert rule.mended_inside(Inside(4, cut={**cut, "other": Tally(2, 4)})) is None
    lines = ["\n".join(inside_lines(Inside(4, cut={**cut, "other": Tally(k, 4)}))) for k in (0, 1, 2)]
    assert ["does not show" in line for line in lines] == [False, False, True], "half of what the copied words do"


@pytest.mark.parametrize(
    ("n", "of_few", "of_many", "apart"),
    [(6, 0, 4, True), (6, 1, 4, True), (6, 2, 4, False), (6, 0, 3, False), (5, 0, 4, False)],
)
def test_the_cases_of_two_causes_are_weighed_apart(n: int, of_few: int, of_many: int, apart: bool) -> None:
    """One block mends nearly all variants of n cases, and few of four others, whose bridge is not computed."""

    def opened(name: str, i: int, mends: bool) -> weighing.Opened:
        own = {"own:decision:0": "gold", "noise:decision:0": "wrong", "foreign:decision:0": "donor"}
        cells = {"skip:decision:3": "gold" if mends else "wrong", "skip:decision:2": "wrong", "move:end-1:0": "wrong"}
        return weighing.Opened(own | cells, worked=f"{name}{i}", value=str(i))

    lost = {f"a{k}": [opened(f"a{k}", i, i < of_many) for i in range(4)] for k in range(n)}
    lacking = {f"b{k}": [opened(f"b{k}", i, i < of_few) for i in range(4)] for k in range(4)}
    weighed = weighing.weigh(lost | lacking)
    a, b = weighed["a0"], weighed["b0"]
    groups = {one.apart and (one.apart.cases, one.apart.of, one.worked) for one in weighed.values()}
    assert groups == ({(frozenset(some), n + 4, 4) for some in (lost, lacking)} if apart else {None})
    of_lost, of_lacking = (0, 0) if apart else (n * of_many, 4 * of_few)
    assert a.tests["skip"].pool == Tally((n - 1) * of_many + of_lacking, 4 * (n - 1 if apart else n + 3))
    assert b.tests["skip"].pool == Tally(of_lost + 3 * of_few, 4 * (3 if apart else n + 3))
    assert any("weighed apart" in line for line in inside_lines(b)) == apart
    too_few = weighing.weigh({id: group for id, group in (lost | lacking).items() if id != "b3"})
    assert not too_few["a0"].apart, "three cases choose no layers for each other"


def test_a_small_group_is_weighed_apart_where_fewer_variants_are_asked_for() -> None:
    def opened(name: str, i: int, cell: str) -> weighing.Opened:
        return weighing.Opened({"skip:decision:3": cell, "skip:decision:2": "wrong"}, worked=f"{name}{i}", value=str(i))

    groups = {f"a{k}": [opened(f"a{k}", i, "gold") for i in range(3)] for k in range(4)}
    groups |= {f"b{k}": [opened(f"b{k}", i, "wrong") for i in range(3)] for k in range(4)}
    assert not weighing.halves(groups)[0] and not weighing.halves(groups, 13)[0]
    cell, (some, others) = weighing.halves(groups, 12)
    assert cell == "skip:decision:3" and set(some) == {"a0", "a1", "a2", "a3"} and len(others) == 4
    assert weighing.weigh(groups, 12)["a0"].apart and not weighing.weigh(groups)["a0"].apart
    assert not weighing.halves({**groups, "b3": groups["b3"][1:]}, 12)[0], "eleven others"


def test_of_two_changes_that_part_the_cases_the_one_that_mends_less_of_the_others_parts_them() -> None:
    def opened(first: str, second: str) -> weighing.Opened:
        return weighing.Opened({"skip:decision:2": first, "skip:decision:3": second})

    lost = {f"a{k}": [opened("gold", "gold")] * 4 for k in range(6)}
    for cleaner, mixed in (("3", ("gold", "wrong")), ("2", ("wrong", "gold"))):
        lacking = {f"b{k}": [opened("wrong", "wrong")] * 3 + [opened(*mixed)] for k in range(4)}
        assert weighing.halves(lost | lacking)[0] == f"skip:decision:{cleaner}"


def test_parts_behind_their_context_and_failing_settings_are_counted_over_the_run() -> None:
    right, wrong = Tally(0, 8), Tally(3, 8)
    behind = {"part:0": Behind(False, Tally(1, 4), Tally(), right, Tally()),
              "part:1": Behind(False, Tally(4, 4), Tally(), wrong, Tally())}  # fmt: skip
    seen = {"a": replace(DRAWN, behind=behind), "b": Behaviour(True, 2, 4, unknown=1, behind=behind),
            "c": Behaviour(False, 0, 4, behind=behind)}  # fmt: skip
    together = weighing.together(seen)
    assert {one.behind_in_run for one in together.values()} == {Tally(2, 8)}, "part 1 is wrong behind right wholes"
    assert {one.fails_in_run for one in together.values()} == {Tally(DRAWN.n + 2, DRAWN.variants + 1 + 4)}


def test_settings_that_another_case_has_as_well_count_once_over_the_run() -> None:
    numbers = [("5", frozenset("5")), ("6", frozenset("5"))]
    once = Behaviour(True, 1, 1, asked=Tally(1, 2), from_case=Tally(1, 3), other_operand=Tally(0, 1),
                     wrong_numbers=numbers[:1])  # fmt: skip
    every = replace(DRAWN, asked=Tally(4, 4), other_operand=Tally(2, 3), wrong_numbers=numbers, once=once)
    (found,) = {(one.asked_in_run, one.fails_in_run, one.from_cases, one.other_operands, one.of_items, one.by_luck)
                for one in weighing.together({"a": DRAWN, "b": every}).values()}  # fmt: skip
    assert found == (Tally(1, 2), Tally(5, 7), Tally(9, 11), Tally(0, 1), Tally(1, 1), None)


# --- what the other cases of a run say about one of them: whether a bridge is missing in a whole family -------------


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
        compared = weighing.uncomputed(opened, behaviours, {}, dict.fromkeys(opened, "f"))
        verdict = rule_inside.from_inside(compared[id], seen)
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
            opened |= {f"b{i}": lost for i in range(n_lost)} | {"not opened": Inside(), "nor this one": Inside()}
            elsewhere = {f"c{i}": absent for i in range(20)}  # another family's cases do not count
            families = {id: "far" if id[0] == "c" else "near" for id in (*opened, *elsewhere)}
            seen = dict.fromkeys(families, DRAWN)
            compared = weighing.uncomputed(opened | elsewhere, seen, {}, families)
            assert compared["a0"].uncomputed == Tally(n_absent, of)
            named = rule_inside.from_inside(compared["a0"], DRAWN)
            assert (named and named[0]) == ("bridge-not-computed" if shown else None), (n_absent, n_none, n_lost)
            assert named or f"{n_absent} of {of}" in unsettled.open_question(DRAWN, compared["a0"])
            if n_lost:
                lost_still = rule_inside.from_inside(compared["b0"], DRAWN)
                assert lost_still and lost_still[0] == "lost"
