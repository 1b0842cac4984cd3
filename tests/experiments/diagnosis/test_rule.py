"""The rule names a cause only from evidence that its controls do not share."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from scipy.stats import binom

from composcope.errors import InputError
from composcope.evaluation import dependence
from composcope.evaluation.cases import Case
from composcope.experiments.diagnosis import behaviour, job, rule, rule_inside, thresholds, unsettled, weighing
from composcope.experiments.diagnosis.evidence import (
    Behaviour,
    Behind,
    Followed,
    Found,
    Inside,
    Tally,
    behaviour_lines,
    beyond,
    rare,
)
from composcope.experiments.run.diagnosis import Diagnosis, Verdict, count

from .told import DRAWN, found

REWORDED = Behaviour(True, 4, 4, unavailable={"part:0": Tally(2, 3)}, own_operands_right=True)
TABLE = [
    (Behaviour(False, 3, 4, mended={"relation": Tally(3, 3)}), None),
    (Behaviour(True, 3, 4, mended={"relation": Tally(3, 3), "neutral": Tally(0, 3)}), "relation-lost"),
    (Behaviour(True, 3, 4, mended={"relation": Tally(3, 3), "neutral": Tally(3, 3)}), "format"),
    (Behaviour(True, 4, 4, mended={"relation": Tally(3, 4), "neutral": Tally(2, 4)}), None),
    (Behaviour(True, 1, 4, mended={"relation": Tally(1, 1)}), None),
    (Behaviour(True, 4, 4, answers={"near-miss": Tally(3, 4)}, own="near-miss"), "near-miss"),
    (Behaviour(True, 4, 4, answers={"near-miss": Tally(3, 4)}), None),
    (Behaviour(True, 4, 4, answers={"near-miss": Tally(2, 4)}, own="near-miss"), None),
    (Behaviour(True, 4, 4, answers={"answers-bridge": Tally(1, 4)}, own="answers-bridge"), "answers-bridge"),
    (Behaviour(True, 4, 4, shortcut=Followed("x", 2, 2)), "shortcut:x"),
    (Behaviour(True, 4, 4, shortcut=Followed("x", 1, 1)), None),
    (Behaviour(True, 4, 4, shortcut=Followed("x", 3, 5)), "shortcut:x"),
    (Behaviour(True, 4, 4, shortcut=Followed("x", 2, 4)), None),
    (Behaviour(True, 4, 4, shortcut=Followed("x", 4, 4, True)), "shortcut:x"),
    (Behaviour(True, 4, 4, shortcut=Followed("x", 4, 5, False)), None),
    (Behaviour(True, 4, 4, unavailable={"part:0": Tally(0, 2), "part:1": Tally(2, 3)}), "part-unavailable"),
    (Behaviour(True, 4, 4, unavailable={"part:0": Tally(1, 2), "part:1": Tally(1, 2)}), None),
    (Behaviour(True, 4, 4, unavailable={"part:0": Tally(1, 1)}), None),
    (Behaviour(True, 4, 4, unavailable={"part:0": Tally(2, 4)}), None),
    (Behaviour(True, 4, 4, unavailable={"part:0": Tally(1, 1), "part:1": Tally(2, 3)}), "part-unavailable"),
    (Behaviour(True, 2, 4, mended={"relation": Tally(2, 2), "neutral": Tally(0, 2)}), "relation-lost"),
    (replace(REWORDED, last="part:1"), None),  # the case has the operands right that part 0 asks for
    (replace(REWORDED, last="part:0"), "part-unavailable"),
]


@pytest.mark.parametrize(("found", "cause"), TABLE)
def test_a_cause_needs_most_variants_and_controls_that_do_not_share_it(found: Behaviour, cause: str | None) -> None:
    settled = rule.from_behaviour(found)
    assert (settled and settled[0]) == cause


NOTHING = Behaviour(True, 4, 4)
SPOILT = Behind(True, Tally(3, 4), Tally(3, 4), Tally(1, 8), own_wrong=True)


@pytest.mark.parametrize(
    ("behind", "cause"),
    [
        (SPOILT, "part-unavailable"),
        (SPOILT._replace(own=False), None),
        (SPOILT._replace(success=Tally(3, 8)), None),  # a long context makes it wrong where the whole is right, too
        (SPOILT._replace(success=Tally(0, 3)), None),
        (SPOILT._replace(success=Tally(1, 8, 2)), None),  # right in five of eight, since two cannot be judged
        (SPOILT._replace(same=Tally(2, 4)), None),
        (SPOILT._replace(wrong=Tally(2, 3), same=Tally(2, 3)), None),  # two may be chance
        (SPOILT._replace(telling=False), None),
        (SPOILT._replace(other=Tally(1, 4)), "part-unavailable"),
        (SPOILT._replace(other=Tally(2, 4)), None),  # whatever is asked there, the answer is the same
    ],
)
def test_a_part_is_unavailable_in_context_if_it_says_what_the_whole_says_and_successes_keep_it(
    behind: Behind, cause: str | None
) -> None:
    one = replace(NOTHING, behind={"part:0": Behind(False, Tally(0, 4), Tally(0, 4), Tally(0, 8)), "part:1": behind})
    group = {"a": one, "b": one} | {str(i): NOTHING for i in range(15)}

    def with_others(n: int) -> dict[str, str]:
        return {id: "far" if id.isdigit() and int(id) >= n else "near" for id in group}

    families = with_others(4)
    compared = weighing.together(group, families)["a"]
    assert rule.from_behaviour(compared) == (cause and (cause, behind.same))
    assert rule.named(weighing.together(group, with_others(2))["a"]) == cause, "two of four"
    assert compared.as_whole.k == (2 if cause or behind.success.n < 4 else 0)
    assert rule.named(weighing.together(group, with_others(5))["a"]) is None, "two of seven"
    alone = weighing.together({**group, "b": NOTHING}, families)["a"]
    assert rule.named(alone) is None, "one case of six: what was planted elsewhere may reach a part as well"
    assert cause is None or any("spoils: 1 of 6" in line for line in behaviour_lines(alone))
    three = weighing.together({**group, "0": one}, {id: "near" if id in "ab0" else "far" for id in group})["a"]
    assert rule.named(three) is None, "three failing cases of a family are too few"


@pytest.mark.parametrize(
    ("changed", "as_whole", "cause"),
    [
        ({}, 10, "part-unavailable"),
        ({}, 3, "part-unavailable"),
        ({}, 2, None),  # of ten
        ({"success": Tally(2, 4)}, 10, None),  # a long context makes it wrong where the whole is right, too
        ({"other": Tally(2, 4)}, 10, None),
        ({"own_wrong": False}, 10, None),
    ],
)
def test_where_hardly_any_whole_is_right_a_part_that_its_context_always_spoils_is_unavailable(
    changed: dict[str, Any], as_whole: int, cause: str | None
) -> None:
    spoilt = SPOILT._replace(**{"success": Tally(1, 2), **changed})
    otherwise = spoilt._replace(own=False, same=Tally(0, 4))
    group = {str(i): replace(NOTHING, behind={"part:1": spoilt if i < as_whole else otherwise}) for i in range(10)}
    compared = weighing.together(group | dict.fromkeys(("right", "right too"), Behaviour(False, 0, 4)))["9"]
    assert rule.named(compared) is None, "first the model is opened"
    assert (rule.from_context(compared) or (None,))[0] == cause
    some = {**group, **{str(i): NOTHING for i in range(2)}}
    assert rule.from_context(weighing.together(some)["9"]) is None, "eight of ten are spoilt"


OTHERWISE = SPOILT._replace(own=False, same=Tally(0, 4))


@pytest.mark.parametrize(
    ("one", "cause"),
    [
        (replace(NOTHING, behind={"part:0": OTHERWISE}), "part-unavailable"),
        (
            replace(NOTHING, behind={"part:0": OTHERWISE._replace(wrong=Tally(1, 4)), "part:1": OTHERWISE}),
            "part-unavailable",
        ),
        (replace(NOTHING, behind={"part:0": OTHERWISE._replace(own_wrong=False)}), "undetermined"),
        (replace(NOTHING, behind={"part:0": OTHERWISE._replace(wrong=Tally(2, 4))}), "undetermined"),
        (replace(NOTHING, behind={"part:0": OTHERWISE._replace(wrong=Tally(2, 2))}), "undetermined"),
        (replace(NOTHING, behind={"part:0": OTHERWISE._replace(success=Tally(3, 8))}), "undetermined"),
        (replace(NOTHING, behind={"part:0": OTHERWISE._replace(success=Tally(0, 3))}), "undetermined"),
        (replace(NOTHING, behind={"part:0": OTHERWISE._replace(other=Tally(3, 4))}), "undetermined"),
        (replace(NOTHING, behind={"part:0": OTHERWISE}, own_operands_right=True), "undetermined"),
        (replace(NOTHING, behind={"part:0": OTHERWISE}, exchanged=Tally(3, 4)), "undetermined"),
    ],
)
def test_a_part_with_whatever_wrong_answer_behind_the_context_explains_a_case_that_nothing_else_does(
    one: Behaviour, cause: str
) -> None:
    def verdict(of: int, inside: Inside | None = None, n: int = 5) -> Verdict:
        group = {str(i): one for i in range(n)} | {f"no {i}": NOTHING for i in range(of - n)}
        return job._verdict("0", weighing.together(group)["0"], inside, ())

    assert (verdict(10).cause, verdict(10).confidence) == (cause, 0.0 if cause == "undetermined" else 0.67)
    assert verdict(11).cause == verdict(3, n=3).cause == "undetermined" and verdict(4, n=4).cause == cause
    block = Inside(4, {"skip": Found("decision:3", Tally(4, 4), Tally(0, 12), pool=Tally(40, 40))})
    assert (verdict(10, block).cause == "lost") != one.own_operands_right


def test_the_evidence_says_how_a_part_is_answered_behind_the_context() -> None:
    line = behaviour_lines(replace(NOTHING, behind={"part:1": SPOILT._replace(same=Tally(2, 4))}))[-1]
    assert all(said in line for said in ("part:1", "3 of 4", "2 of 4", "1 of 8"))
    assert "2 of 4" not in behaviour_lines(replace(NOTHING, behind={"part:1": SPOILT._replace(telling=False)}))[-1]


WRONG_RESULT = Behaviour(True, 3, 4, operands_right=Tally(3, 3), operation_wrong=Tally(3, 3))
UNJUDGED = Behaviour(True, 3, 4, answers={"format": Tally(3, 3)}, own="format", specific=False)
BREAKS_OFF = Behaviour(True, 4, 4, answers={"answers-bridge": Tally(2, 4)}, own="answers-bridge", specific=False)
MENDED = Behaviour(True, 4, 4, mended={"neutral": Tally(3, 4)})


@pytest.mark.parametrize(
    ("one", "cause"),
    [
        (WRONG_RESULT, "wrong-operation"), (UNJUDGED, "format"), (BREAKS_OFF, "answers-bridge"), (MENDED, "format"),
    ],
)  # fmt: skip
def test_a_sign_that_noise_makes_as_well_settles_a_case_only_if_four_of_five_cases_share_it(
    one: Behaviour, cause: str
) -> None:
    def causes(showing: int, others: int) -> list[str | None]:
        group = {str(i): one for i in range(showing)} | {f"other {i}": NOTHING for i in range(others)}
        settled = [rule.from_behaviour(b) for id, b in weighing.together(group).items() if "other" not in id]
        return [found and found[0] for found in settled]

    assert causes(4, 0) == [cause] * 4
    assert causes(3, 0) == [None] * 3  # too few to say what is shared
    assert causes(1, 1) == [None]
    assert causes(4, 1) == [cause] * 4
    assert causes(3, 1) == [None] * 3
    alone = weighing.together({"a": one, "b": NOTHING, "c": NOTHING})["a"]
    assert "1 of 3" in unsettled.open_question(alone, None)


@pytest.mark.parametrize(
    ("one", "cause"),
    [
        (replace(WRONG_RESULT, n=4, operands_right=Tally(4, 4), operation_wrong=Tally(4, 4)), "wrong-operation"),
        (replace(UNJUDGED, n=4, answers={"format": Tally(4, 4)}), "format"),
    ],
)
def test_a_sign_in_nearly_all_settings_of_a_case_needs_only_a_quarter_of_the_cases(one: Behaviour, cause: str) -> None:
    def causes(showing: int, others: int, other: Behaviour = NOTHING) -> set[str | None]:
        group = {str(i): one for i in range(showing)} | {f"other {i}": other for i in range(others)}
        settled = [rule.from_behaviour(b) for id, b in weighing.together(group).items() if "other" not in id]
        return {found and found[0] for found in settled}

    assert causes(2, 6) == {cause}
    assert causes(2, 7) == {None}
    assert causes(1, 2) == {None}
    some = replace(one, variants=5)  # the settings of this one that do not fail speak for noise
    assert rule.throughout(one) and not rule.throughout(some)
    line = behaviour_lines(weighing.together({"a": one, "b": NOTHING})["a"])[-1]
    assert line.endswith("1 of 2; in four of five of all their settings: 1 of 2")


def test_what_mends_is_the_smallest_change_of_text() -> None:
    mended = dict.fromkeys(("bridge", "operands", "relation", "neutral"), Tally(4, 4))
    assert rule.mended_by(replace(NOTHING, mended=mended)) == "neutral"
    assert rule.mended_by(replace(NOTHING, mended={**mended, "neutral": Tally(2, 4)})) == "relation"


def test_a_fault_that_the_text_names_settles_a_case_alone() -> None:
    group = {"a": replace(UNJUDGED, specific=True)} | {str(i): NOTHING for i in range(9)}
    assert rule.from_behaviour(weighing.together(group)["a"]) == ("format", Tally(3, 3))


TIMES, PLUS, LESS = "3 times 4 is 12", "3 plus 4 is 7", "9 minus 4 is 5"


@pytest.mark.parametrize(
    ("of_each", "cause"),
    [
        ([{TIMES, PLUS, LESS}], "wrong-operation"),
        ([{TIMES}, {PLUS}, {LESS}], "wrong-operation"),
        ([{TIMES}, {PLUS}], None),
        ([{TIMES}, {TIMES}, {TIMES}], None),  # one sum comes back
    ],
)
def test_the_results_of_another_operation_settle_few_cases_if_they_are_those_of_different_sums(
    of_each: list[set[str]], cause: str | None
) -> None:
    shows = [replace(WRONG_RESULT, other_operation=Tally(3, 3), sums=frozenset(sums)) for sums in of_each]
    luck = replace(WRONG_RESULT, other_operation=Tally(2, 3), sums=frozenset({TIMES, PLUS, LESS}))
    group = {str(i): one for i, one in enumerate(shows)} | {"luck": luck} | {f"no {i}": NOTHING for i in range(16)}
    found = weighing.together(group)
    assert rule.from_behaviour(found["0"]) == (("wrong-operation", Tally(3, 3)) if cause else None)
    assert rule.from_behaviour(found["luck"]) is None, "it may be luck where some other results come out as well"
    said = f"the result of another operation in 3 of 3 ({len(set[str]().union(*of_each))} different sum"
    assert any(said in line for line in behaviour_lines(found["0"]))


@pytest.mark.parametrize(
    ("showing", "other", "opened", "cause"),
    [
        (9, 0, False, "wrong-operation"),  # nearly all cases show it
        (4, 0, False, "undetermined"),
        (4, 0, True, "wrong-operation"),
        (4, 4, False, "wrong-operation"),  # the results are those of another operation
    ],
)
def test_wrong_results_in_a_part_of_the_cases_need_the_own_parts_state_to_mend_them(
    showing: int, other: int, opened: bool, cause: str
) -> None:
    one = Behaviour(True, 4, 4, operands_right=Tally(4, 4), operation_wrong=Tally(4, 4),
                    other_operation=Tally(other, 4), sums=frozenset((TIMES, PLUS, LESS)))  # fmt: skip
    group = {str(i): one for i in range(showing)} | {f"other {i}": NOTHING for i in range(10 - showing)}
    found = weighing.together(group)["0"]
    assert rule.from_behaviour(found) is not None
    state = Found("decision:1", Tally(4, 4), Tally(0, 4), Tally(4, 4), Tally(9, 12))
    verdict = job._verdict("0", found, Inside(4, {"own:decision": state}) if opened else None, ())
    assert verdict.cause == cause and bool(verdict.settle) == (cause == "undetermined")


@pytest.mark.parametrize(("throughout", "proved"), [(3, False), (2, True)])
def test_wrong_results_of_nearly_all_cases_need_proof_where_hardly_any_shows_them_in_all_its_settings(
    throughout: int, proved: bool
) -> None:
    always = Behaviour(True, 4, 4, operands_right=Tally(4, 4), operation_wrong=Tally(4, 4))
    some = replace(always, variants=9)
    group = {str(i): always if i < throughout else some for i in range(9)} | {"other": NOTHING}
    for id in ("0", "8"):
        found = weighing.together(group)[id]
        assert rule.named(found) == "wrong-operation" and rule.to_prove(found) == proved, "also for those that show it"


def test_cases_that_do_not_fail_when_asked_again_count_for_no_sign() -> None:
    group = weighing.together({"a": WRONG_RESULT} | {str(i): replace(WRONG_RESULT, fails=False) for i in range(3)})
    assert group["a"].shared == {"wrong-operation": Tally(1, 1)}
    assert rule.from_behaviour(group["0"]) is None


@pytest.mark.parametrize(
    ("written", "foreign"),
    [
        (Tally(60, 66), False),
        (Tally(397, 447), False),
        (Tally(76, 110), True),
        (Tally(134, 158), False),
        (Tally(40, 50), False),
        (Tally(23, 30), True),
        (Tally(7, 9), False),
    ],
)
def test_operands_are_foreign_to_a_run_by_their_share_and_not_by_the_number_of_its_cases(
    written: Tally, foreign: bool
) -> None:
    one = replace(NOTHING, from_case=Tally(6, 6), from_cases=written)
    assert rule_inside.foreign_to(one) == foreign
    assert (f"{written.k} of {written.n}" in unsettled.open_question(one, None)) == foreign


def test_shares_of_causes_respect_what_cases_share() -> None:
    verdicts = [Verdict(f"c{i}", "format" if i % 7 < 3 else "lost", (), 0.5) for i in range(28)]
    cases = {v.case: Case(v.case, "q", "a", cluster=f"k{i // 4}") for i, v in enumerate(verdicts)}
    alone = {id: replace(case, cluster=None) for id, case in cases.items()}
    shared, apart = (next(s for s in count(verdicts, c) if s.cause == "format") for c in (cases, alone))
    assert apart.interval == "clopper-pearson" != shared.interval and shared.count == apart.count == 12


def test_the_summary_says_once_why_shares_of_a_family_have_no_interval() -> None:
    verdicts = [Verdict(f"c{i}", "format", ()) for i in range(12)]
    cases = {v.case: Case(v.case, "q", "a", family="fgh"[i % 3], cluster=f"{i % 3} {i % 2}")
             for i, v in enumerate(verdicts)}  # fmt: skip
    said = Diagnosis(Path("r"), verdicts, count(verdicts, cases)).lines()
    reason = dependence.FEW.removeprefix("no interval: ")
    assert [line.strip() for line in said if reason in line] == [f"shares without an interval: {reason}"]
    alone = {id: replace(case, cluster=None) for id, case in cases.items()}
    assert not any(reason in line for line in Diagnosis(Path("r"), verdicts, count(verdicts, alone)).lines())


def test_the_plain_wording_is_none_of_the_others() -> None:
    said = {"part:0": True, "part:0:paraphrase:0": False, "part:0:paraphrase:1": None, "part:1": True, "whole": False}
    heard: Any = SimpleNamespace(grades=said, right=said.get)
    assert behaviour._unavailable(heard) == {"part:0": Tally(1, 2, 1)}


@pytest.mark.parametrize(
    ("shown", "noise", "counts"),
    [
        (Tally(13, 19), Tally(8, 19), False),  # a quarter more, as the best of many cells often has by luck
        (Tally(52, 76), Tally(32, 76), True),  # the same shares in four times as many variants
        (Tally(19, 19), Tally(8, 19), True),
        (Tally(12, 40), Tally(3, 40), False),  # unlikely by luck, and less than a quarter more
        (Tally(5, 12), Tally(0, 12), True),
        (Tally(0, 0), Tally(0, 0), False),
    ],
)
def test_an_excess_over_noise_is_a_quarter_and_more_than_luck_gives(shown: Tally, noise: Tally, counts: bool) -> None:
    assert thresholds.beats_noise(Found("decision:1", pool=shown), Found("decision:1", pool=noise)) is counts


# --- the command that diagnoses: which weights it takes, and the verdict on one case --------------------------------


@pytest.mark.parametrize("name", ["usual-of-kind", "usual-operand", "item-3"])
def test_a_usual_value_is_said_for_want_of_a_bridge_that_stands_elsewhere_in_the_question(name: str) -> None:
    seen = replace(DRAWN, shortcut=Followed(name, 5, 5, True))
    moved = replace(found(4, cell="end-1:1"), pool=Tally(36, 40))
    causes = []
    for tests in ({"move": moved}, {"move": replace(moved, pool=Tally(35, 40))}):
        causes.append(job._verdict("a", seen, Inside(4, tests), ()).cause)
    usual = name.startswith("usual")
    assert causes == ["bridge-not-routed" if usual else f"shortcut:{name}", f"shortcut:{name}"]
    assert job._verdict("a", seen, None, ()).cause == f"shortcut:{name}"


@pytest.mark.parametrize(
    ("known", "who", "refused"),
    [("a" * 64, "b" * 64, True), ("a" * 64, "a" * 64, False), ("served (1)", "b" * 64, False)],
)
def test_only_known_weights_are_compared_with_the_models(known: str, who: str, refused: bool, tmp_path: Path) -> None:
    config = SimpleNamespace(model="org/model")
    data: Any = SimpleNamespace(manifest=SimpleNamespace(identity={"weights": known}), config=config, path=tmp_path)
    target: Any = SimpleNamespace(who=who)
    for model, named in (("x", "--model x"), (None, "org/model")):
        if refused:
            with pytest.raises(InputError, match=f"^{named}: these are not the weights"):
                job._same_model(data, target, model)
        else:
            job._same_model(data, target, model)


@pytest.mark.parametrize(
    ("name", "cuts", "cause"),
    [
        ("largest-item", Tally(16, 16), "shortcut:largest-item"),
        ("largest-item", Tally(10, 20), "undetermined"),
        ("largest-item", Tally(3, 18), "undetermined"),
        ("largest-item", Tally(2, 8), "undetermined"),  # 0.1 % by luck, if the answer came from there
        ("largest-item", Tally(2, 5), "shortcut:largest-item"),  # 5.8 % by luck: too few to say
        ("largest-item", Tally(1, 5), "undetermined"),
        ("largest-item", Tally(9, 12), "undetermined"),
        ("largest-item", Tally(0, 0), "shortcut:largest-item"),
        ("item-1-then-smallest-item", Tally(3, 18), "undetermined"),
        ("last-item", Tally(3, 18), "shortcut:last-item"),  # it may come by way of other words
    ],
)
def test_answers_that_drift_to_the_largest_without_attention_to_it_follow_no_shortcut(
    name: str, cuts: Tally, cause: str
) -> None:
    seen = replace(NOTHING, shortcut=Followed(name, 4, 4, own=True))
    inside = Inside(4, cut={"source": Tally(0, 4), "other": Tally(0, 4), "mended": Tally(0, 4)}, cuts=cuts)
    verdict = job._verdict("a", seen, inside, ())
    assert verdict.cause == cause
    assert (verdict.settle is not None and name in verdict.settle) == (cause == "undetermined")


@pytest.mark.parametrize(
    ("name", "run", "behind", "cause"),
    [
        ("usual-of-kind", (9, 11), (3, 20), "undetermined"),
        ("usual-of-kind", (9, 10), (3, 20), "shortcut:usual-of-kind"),
        ("usual-of-kind", (9, 11), (2, 20), "shortcut:usual-of-kind"),
        ("usual-of-kind", (9, 11), (3, 11), "shortcut:usual-of-kind"),  # too few to say
        ("last-item", (9, 11), (3, 20), "shortcut:last-item"),
    ],
)
def test_a_usual_value_is_no_shortcut_where_parts_are_wrong_as_well_unless_nearly_all_follow_it(
    name: str, run: tuple[int, int], behind: tuple[int, int], cause: str
) -> None:
    seen = replace(NOTHING, shortcut=Followed(name, 4, 4, own=True, run=Tally(*run)), behind_in_run=Tally(*behind))
    verdict = job._verdict("a", seen, None, ())
    assert verdict.cause == cause
    assert (verdict.settle is not None and f"{behind[0]} of {behind[1]}" in verdict.settle) == (cause == "undetermined")


@pytest.mark.parametrize("n", [10, 1029, 1030, 20_000])
def test_luck_is_counted_over_runs_of_any_size(n: int) -> None:
    for share in (0.3, 0.93):
        few, many = Tally(int(n * share / 2), n), Tally(min(n, int(n * (1 + share) / 2) + 3), n)
        assert rare(few, share, 0.2) and not rare(many, share, 0.5)
        assert beyond(many, share, 0.5) and not beyond(few, share, 0.5)
    chance = float(binom.cdf(n // 3, n, 0.3))
    assert rare(Tally(n // 3, n), 0.3, chance + 1e-9) and not rare(Tally(n // 3, n), 0.3, chance - 1e-9)


def test_shares_by_depth_are_in_the_order_of_the_depths() -> None:
    cases = {f"d{depth}": Case(f"d{depth}", "q", "a", depth=depth) for depth in (8, 2, 10, 4)}
    found = count([Verdict(id, "lost", ()) for id in cases], cases)
    assert [s.value for s in found if s.group == "depth"] == ["2", "4", "8", "10"]


@pytest.mark.parametrize(("settings", "sign"), [(4, True), (12, False)])
def test_a_wrong_result_is_a_sign_only_where_most_settings_have_the_right_operands(settings: int, sign: bool) -> None:
    seen = Behaviour(True, settings, settings, operands_right=Tally(4, settings), operation_wrong=Tally(4, 4))
    assert ("wrong-operation" in rule.signs(seen)) == sign
