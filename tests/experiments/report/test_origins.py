"""Where a wrong answer came from, told by rule."""

from __future__ import annotations

from dataclasses import replace

import pytest

from composcope.evaluation.asks import Response
from composcope.evaluation.cases import Case, Part
from composcope.evaluation.graded import Graded
from composcope.experiments.report.origins import KINDS, MEANS, Origin, claimed, origin, origins, plain

from ..bare_runs import bare_run

SAID = {"a": Case("a", "What is it?", "Oslo", family="f", aliases=("Kristiania",)),
        "b": Case("b", "And it?", "Bergen", family="f"), "c": Case("c", "?", "Oslo", family="g"),
        "d": Case("d", "Where?", "The Hague", family="f"), "e": Case("e", "?", "St. Louis", family="f")}  # fmt: skip


@pytest.mark.parametrize(
    ("answer", "kind", "detail"),
    [
        ("St. Louis", "elsewhere", "right in e"),
        ("The Hague", "elsewhere", "right in d"),
        ("hague", "elsewhere", "right in d"),
        ("Bergen", "elsewhere", "right in b"),
        ("It is kristiania", "unclear", ""),
        ("Rome", "unclear", ""),
    ],
)
def test_an_answer_is_right_elsewhere_only_in_another_case_of_its_family(answer: str, kind: str, detail: str) -> None:
    rows = [Graded("a", "part:0", "incorrect", answer="x"), Graded("a", "whole", "incorrect", answer=answer),
            Graded("a", "whole", "incorrect", answer="x", repeat=1), Graded("b", "whole", "correct"),
            Graded("gone", "whole", "abstained")]  # fmt: skip
    found = origins(bare_run(cases=SAID, graded=rows, responses={}))
    assert found == {"a": Origin(kind, detail), "gone": Origin("unclear")}


def test_another_name_of_the_right_answer_of_another_case_is_right_elsewhere_too() -> None:
    rows = [Graded("b", "whole", "incorrect", answer="Kristiania"), Graded("c", "whole", "incorrect", answer="Bergen")]
    found = origins(bare_run(cases=SAID, graded=rows, responses={}))
    assert found == {"b": Origin("elsewhere", "right in a"), "c": Origin("unclear")}


def test_a_claim_is_the_shorter_side_of_a_sentence_and_text_is_compared_without_accents_and_signs() -> None:
    assert [claimed(t) for t in ("The capital of the land is Kraków.", "Oslo is the capital of it", "a is b", "",
                                    "the euro", "an owl")] == ["krakow", "oslo", "b", "", "euro", "owl"]  # fmt: skip
    assert plain("Łódź, 1,000.5 Äpfel_und-so!") == "łodz 1,000.5 apfel und so"
    several = origin(SAID["b"], Graded("b", "whole", "incorrect", answer="Oslo"), None, ["a", "x", "y"])
    assert several.detail == "right in a and 2 more"
    for outcome in ("abstained", "invalid"):
        row = Graded("b", "whole", outcome, reason="why", answer="Oslo")
        assert origin(SAID["b"], row, None, ["a"]) == Origin(outcome, "why")


ITEMS, SUM = Part("?", "3, 4", answer_type="ordered-list"), Part("?", "7", worked="3 + 4 = 7")


LADDER = Case("l", "How much?", "12", (ITEMS, SUM), answer_type="number", worked="3 + 4 + 5 = 12")


@pytest.mark.parametrize(
    ("said", "kind", "detail"),
    [("3 + 4 + 5 = 13", "result", "3 and 4 and 5"), ("3 + 4 + 6 = 13", "operand", "6 where 5 was needed"),
     ("3 + 4 = 13", "unclear", ""), ("3 + 4 + 5,000 = 13", "operand", "5000 where 5 was needed"),
     ("7", "bridge", "the answer of part 2"),
     ("4", "bridge", "one item of the answer of part 1"), ("First I add. It is 7", "stopped", "the answer of part 2")],
)  # fmt: skip
def test_a_calculation_is_compared_with_the_one_that_the_case_needs(said: str, kind: str, detail: str) -> None:
    answer = said.split("= ")[-1].split("is ")[-1]
    found = origin(LADDER, Graded("l", "whole", "incorrect", answer=answer), Response("a", said, "stop", 9, 3))
    assert (found.kind, found.detail) == (kind, detail)


def test_without_working_of_its_own_a_case_needs_the_calculation_of_its_last_part() -> None:
    case = replace(LADDER, worked=None, parts=(SUM, Part("?", "1,012", worked="7 + 1,005 = 1,012")))
    for said, expected in (("7 + 1006 = 1013", "1006 where 1005 was needed"), ("7 + 1005 = 1013", "7 and 1005")):
        answer = Graded("l", "whole", "incorrect", answer="1013")
        assert origin(case, answer, Response("a", said, "stop", 9, 3)).detail == expected


TAGS = Case(
    "tags", "What is the tag of the wheeled one plus the tag of the edible one? Here: cart, bread, kite.", "20",
    (Part("Which is the wheeled one and which the edible one?", "cart and bread", answer_type="ordered-list"),
     Part("What is the tag of the cart plus the tag of the bread?", "20", answer_type="number")),
    answer_type="number", worked="8 plus 12 is 20",
)  # fmt: skip


CITY = Case("city", "What is the capital of the country where Kraków is?", "Warsaw",
            (Part("Where is Kraków?", "Poland", aliases=("Polska",)),
             Part("What is the capital of Poland?", "Warsaw")))  # fmt: skip


LIST = Case("list", "Rank: A-Fest, B-Fest, C-Fest.", "B-Fest, A-Fest, C-Fest", answer_type="ordered-list")


@pytest.mark.parametrize(
    ("case", "answer", "said", "kind", "in_detail"),
    [
        (TAGS, "17", "5 plus 12 is 17", "operand", "5 where 8"),
        (TAGS, "16", "12 plus 12 is 16", "operand", "12 where 8"),
        (TAGS, "21", "8 plus 12 is 21", "result", "8 and 12"),
        (TAGS, "21", "8.00 plus 12.0 is 21", "result", "8 and 12"),
        (TAGS, "bread", " bread<eos>", "bridge", "part 1"),
        (CITY, "Poland", "Poland", "bridge", "part 1"),
        (CITY, "The country where Krakow is is Poland.", "The country where Krakow is is Poland.", "bridge", "part 1"),
        (CITY, "Krakow is in Poland.", "Krakow is in Poland.", "bridge", "part 1"),
        (CITY, "Poland", "Kraków lies in the south. So it is Poland.", "stopped", "part 1"),
        (CITY, "Krakow is the capital of Poland.", "Krakow is the capital of Poland.", "named", "“Kraków”"),
        (CITY, "The capital of the country is indeed the capital of Poland.", "", "unclear", ""),
        (CITY, "Lima", "Lima", "unclear", ""),
        (CITY, "Warsaw", "Warsaw", "unclear", ""),  # of the last part, too, but it is the whole's
        (CITY, "no no no no", "no no no no", "loop", "no"),
        (CITY, "no no", "no no", "unclear", ""),
        (CITY, "no no no", "no no no", "loop", "“no”"),
        (CITY, "no", "no <eos>no <eos>no<eos>", "loop", "“no”"),
        (CITY, "a b", " ".join("abcdefghijkl" * 3), "loop", "“a b c d e f g h i j k l”"),
        (CITY, "a b", " ".join("abcdefghijklm" * 3), "unclear", ""),
        (CITY, "Polska", "Polska", "bridge", "part 1"),
        (replace(CITY, parts=(Part("?", "The Netherlands"),)), "Netherlands", "Netherlands", "bridge", "part 1"),
        (CITY, "Krakow and Lima", "Krakow and Lima", "unclear", ""),
        (replace(CITY, evidence=("Lima is far away.",)), "Lima", "Lima", "named", "“Lima”"),
        (replace(CITY, evidence=("New Zealand is far from New York.",)), "New York", "New York", "named", "“New York”"),
        (LIST, "A-Fest, B-Fest, C-Fest", "A-Fest, B-Fest, C-Fest", "listed", "order"),
        (LIST, "B-Fest, C-Fest", "B-Fest, C-Fest", "listed", "left out: A-Fest"),
        (LIST, "X-Fest, Y-Fest", "X-Fest, Y-Fest", "unclear", ""),
        (replace(LIST, parts=(Part("And first?", "A-Fest"),)), "A-Fest", "A-Fest", "bridge", "part 1"),
    ],
)
def test_where_a_wrong_answer_came_from_is_told_by_rule(
    case: Case, answer: str, said: str, kind: str, in_detail: str
) -> None:
    found = origin(case, Graded(case.id, "whole", "incorrect", answer=answer), Response("a", said, "stop", 9, 3))
    assert (found.kind, in_detail in found.detail) == (kind, True), found


def test_what_could_not_be_judged_is_no_wrong_answer_and_what_is_right_elsewhere_is_named() -> None:
    lost = origin(CITY, Graded("city", "whole", "invalid", reason="no-answer"), None)
    assert (lost.kind, lost.detail) == ("invalid", "no-answer")
    declined = [Graded(c, "whole", "abstained", unknowable=c == "city") for c in ("city", "known")]
    found = origins(bare_run(cases={"city": CITY}, graded=declined, responses={}))
    assert list(found) == ["known"], "to decline is right where no model can know"
    other = origin(CITY, Graded("city", "whole", "incorrect", answer="Lima"), None, ["peru", "lima"])
    assert other.kind == "elsewhere" and "peru" in other.detail
    for chosen, answer in ((CITY, "7"), (replace(CITY, answer_type="boolean", answer="yes"), "no"),
                           (replace(CITY, answer_type="choice", answer="A"), "B")):  # fmt: skip
        by_chance = origin(chosen, Graded("city", "whole", "incorrect", answer=answer), None, ["seven"])
        assert by_chance.kind == "unclear"


def test_every_origin_of_a_wrong_answer_has_a_meaning() -> None:
    assert set(MEANS) == set(KINDS) and all(MEANS.values())
