"""Where in a response the answer stands that the grader took."""

from __future__ import annotations

import time
from typing import Any

import pytest

from composcope.evaluation.grading import grade
from composcope.evaluation.grading.extract import extract
from composcope.probes.answer_spans import answer_span

CAPITAL = "What is the currency of the country whose capital is Bogota?"


def found(response: str, gold: str, answer_type: str, question: str = "?", format: str = "plain") -> str | None:
    judged = grade(response, "stop", gold, answer_type, format=format)
    where = extract(response, format, "stop")
    span = answer_span(
        response, judged.answer, answer_type, golds=(gold,) if judged.outcome == "correct" else (), question=question,
        segments=where.segments, cued=where.cued,
    )  # fmt: skip
    return None if span is None else response[slice(*span)]


@pytest.mark.parametrize(
    ("response", "gold", "question", "answer"),
    [
        ("The currency of the country whose capital is Bogota is the peso.", "Peso", CAPITAL, "peso"),
        ("The currency of the country whose capital is Bogota is the Chilean dollar.", "Peso", CAPITAL,
         "Chilean dollar"),
        ("The capital of the country whose capital is Athens is Athens.", "Europe",
         "On which continent is the country whose capital is Athens?", "Athens"),
        ("The capital of Poland is Warsaw, which is a large city.", "Europe",
         "On which continent is the country whose capital is Warsaw?", "Warsaw, which is a large city"),
        ("Polish is the official language of Poland.", "Polish", "What is spoken in Warsaw?", "Polish"),
        ("Arabic is the official language of the country whose capital is Tehran.", "Persian",
         "What is the official language of the country whose capital is Tehran?", "Arabic"),
        ("Sure! Berlin is located in Europe. It is large.", "Asia", "On which continent is Berlin?", "Europe"),
        ("The capital of the country where Petra is located is Jerash.", "Amman",
         "What is the capital of the country where Petra stands?", "Jerash"),
        ("The town that is known as its capital is Arica.", "Santiago", "What is the capital of Chile?", "Arica"),
        ("Mount Fuji is the capital of Japan.", "Tokyo", "What is the capital of the country where Mount Fuji stands?",
         "Mount Fuji"),
        ("Porto is in Portugal. The capital of Portugal is Madrid.", "Lisbon",
         "What is the capital of the country where Porto is?", "Madrid"),
        ("It is Porto. The capital is large.", "Lisbon", "What is the capital of the country where Porto is?", "Porto"),
        ("I believe that it is Porto.", "Lisbon", "What is the capital of the country where Porto is?", "Porto"),
        ("I think it's Porto.", "Lisbon", "What is the capital of the country where Porto is?", "Porto"),
        ("Porto is the answer.", "Lisbon", "What is the capital of the country where Porto is?", "Porto"),
        ("Madrid is the answer.", "Lisbon", "What is the capital of the country where Porto is?", "Madrid"),
        ("The capital is:\n\nMadrid\n", "Lisbon", "What is the capital of the country where Porto is?", "Madrid"),
        ("A is B", "Lisbon", "What is the capital of the country where Porto is?", "B"),
        ("Giza is indeed the capital of Egypt.", "Cairo", "What is the capital of the country of the pyramids of Giza?",
         "Giza"),
        ("The capital is the capital of Chile.", "Santiago", "What is the capital of Chile?", "capital of Chile"),
        ("It is St. Louis, I think.", "St. Louis", "?", "St. Louis"),
        ("It is Saint Louis, I think.", "St. Louis", "?", "Saint Louis"),
        ("**São Paulo**", "Sao Paulo", "?", "São Paulo"),
        ("South America", "Asia", "?", "South America"),
        ("I don't know.", "Paris", "?", "I don't know"),
        ("Denmark uses the euro in its shops.", "Krone", "What is the currency of Denmark?", None),
        ("法国的首都是里昂，那里的人口非常多。", "巴黎", "?", None),
        ("里昂", "巴黎", "?", "里昂"),
    ],
)  # fmt: skip
def test_the_answer_of_a_sentence_is_what_it_adds_to_the_question(
    response: str, gold: str, question: str, answer: str | None
) -> None:
    assert found(response, gold, "text", question) == answer


def test_names_in_scripts_without_spaces_are_found_by_their_characters() -> None:
    assert answer_span("法国的首都是巴黎。", "巴黎", "text", golds=("巴黎",)) == (6, 8)


def test_a_name_that_the_question_holds_is_said_where_it_answers() -> None:
    response = "Between Mars and Venus, Venus is larger."
    assert answer_span(response, response, "text", golds=("Venus",), question="Mars or Venus?") == (24, 29)
    assert answer_span(response, response, "text", golds=("Venus",), question="Which one?") == (17, 22)
    response = "Between Mars and Yahoo! Inc, Yahoo! Inc is larger."  # a name that looks like the end of a sentence
    assert answer_span(response, response, "text", golds=("Yahoo! Inc",), question="Mars or Yahoo! Inc?") == (29, 39)


@pytest.mark.parametrize(
    ("response", "gold", "answer_type", "answer"),
    [
        ("So 7 * 9 = 63. The answer is 1,250 apples.", "1250", "number", "1,250"),
        ("It has eight legs.", "8", "number", "eight"),
        ("It takes twenty-one days.", "21", "number", "twenty-one"),
        ("12 + 51 = 63", "63", "number", "63"),
        ("\n\n1 million people", "1000000", "number", "1 million"),
        ("It is minus seven degrees.", "-7", "number", "minus seven"),
        ("It is minus 7 degrees.", "-7", "number", "minus 7"),
        ("10 - 17 = −7", "-7", "number", "−7"),
        ("He has -$7.50 left.", "-7.5", "number", "-$7.50"),
        ("It changes by -7, so it is 7 less.", "-7", "number", "-7"),
        ("剩下四十二个。", "42", "number", "四十二"),
        ("\n\nNein.", "no", "boolean", "Nein"),
        ("He pays $12.50.", "12.5", "number", "12.50"),
        ("A share of 3/4.", "0.75", "number", "3/4"),
        ("About 40 %.", "0.4", "number", "40"),
        ("The answer is 7, not 8.", "9", "number", "7"),
        ("Yes, it is.", "yes", "boolean", "Yes"),
        ("That is not correct.", "no", "boolean", "not correct"),
        ("That is false, which is true of few.", "no", "boolean", "false"),
        ("Alpha, Beta, then Gamma.", "Alpha, Beta, Gamma", "ordered-list", "Alpha, Beta, then Gamma"),
        ("It was 10 March 1876.", "1876-03-10", "date", "10 March 1876"),
        ("<think>maybe 5, or 7</think>\n\nThe answer is 7.", "7", "number", "7"),
    ],
)
def test_values_are_found_however_they_are_written(response: str, gold: str, answer_type: str, answer: str) -> None:
    assert found(response, gold, answer_type) == answer


OPTIONS = "Which is a city? (A) Paris (B) Peru (C) Mars"


@pytest.mark.parametrize("letter", ["A", "B"])
@pytest.mark.parametrize(
    "said",
    ["{}", "({})", "{}. It is old", "The answer is {}.", "Answer: {}", "Option {} is right.", "It is a city: **{}**"],
)
@pytest.mark.parametrize("gold", [None, "({})"])
def test_the_letter_of_an_option_is_found_and_an_article_is_none(letter: str, said: str, gold: str | None) -> None:
    response, golds = said.format(letter), () if gold is None else (gold.format(letter),)
    start = response.rindex(letter)
    for question in ("", OPTIONS):
        assert answer_span(response, letter, "choice", golds=golds, question=question) == (start, start + 1)
        where = extract(response, "plain", "stop")
        span = answer_span(
            response, letter, "choice", golds=golds, question=question, segments=where.segments, cued=where.cued
        )
        assert span == (start, start + 1)
    assert answer_span("A city it is, so Paris.", "A", "choice", golds=("Paris",)) == (17, 22)
    assert answer_span("It is the a.", "Lima", "text") == (6, 11), "a sentence of articles alone"


def test_a_name_right_after_a_cue_is_the_answer_and_a_later_one_repeats_it() -> None:
    question = "Which is larger, Mars or Venus?"
    for response, place in (
        ("The answer is Venus, as Venus is larger.", 14),
        ("The answer is probably Venus: of Mars and Venus, Venus is larger.", 23),
        ("Answer: of Mars and Venus, Venus is larger.", 27),
    ):
        where = extract(response, "plain", "stop")
        span = answer_span(
            response, "Venus", "text", golds=("Venus",), question=question, segments=where.segments, cued=where.cued
        )
        assert where.cued and span == (place, place + 5)


@pytest.mark.parametrize("again", ["the answer is ", "which is ", "1,000, ", "12 plus 3 is 15. ", "4 July 1776, "])
@pytest.mark.parametrize(("kind", "answer"), [("text", "Lima"), ("number", "15"), ("number", "-7")])
def test_responses_that_repeat_themselves_without_end_take_no_longer_than_their_length(
    again: str, kind: str, answer: str
) -> None:
    def seconds(times: int) -> float:
        start = time.process_time()
        answer_span(again * times, answer, kind, question="What is the answer, which is it, and is it 4?")
        return time.process_time() - start

    assert any(seconds(8000) < 12 * seconds(1000) + 1 for _ in range(3))


def test_tags_and_cues_say_where_to_look() -> None:
    response = "It may be 4 or 5.\nFinal answer: 4"
    assert found(response, "4", "number") == "4"
    where = extract(response, "plain", "stop")
    span = answer_span(response, "4", "number", segments=where.segments, cued=where.cued)
    assert span is not None and span[0] == response.rindex("4")
    said = "The answer is 4; and 4 it stays"
    for cued, span in ((True, (14, 15)), (False, (21, 22))):
        assert answer_span(said, "4", "number", segments=["4; and 4 it stays"], cued=cued) == span
    assert found("<reasoning>9 then 4</reasoning><answer>4</answer>", "4", "number", format="xml-answer") == "4"


_MOONS: dict[str, Any] = {"question": "Which moons of Jupiter were found?"}
SPANS: list[tuple[str, str | None, str, dict[str, Any], str | None]] = [
    ("It is 12, not 13.", "13", "number", {}, "13"), ("12 and 12", "12", "number", {"cued": True}, "12"),
    ("3 x 4 = 12 apples, 12 in all", "12", "number", {"cued": True}, "12"),
    ("It is 1 million now", "1000000", "number", {}, "1 million"), ("It is -5 now", "-5", "number", {}, "-5"),
    ("from 3-7", "7", "number", {}, "7"),
    ("twelve apples", "12", "number", {}, "twelve"), ("none", "12", "number", {}, None),
    ("On 4 July 1776 and in 1780", "1776-07-04", "date", {}, "4 July 1776"), ("in 1776", "1777", "date", {}, None),
    ("1776, later 1776", "1776", "date", {"cued": True}, "1776"), ("It is true.", "yes", "boolean", {}, "true"),
    ("It is not true.", "no", "boolean", {}, "not true"), ("Yes. It is false that ...", "yes", "boolean", {}, "Yes"),
    ("They are Mars, then Venus", "Mars, Venus", "list", {}, "Mars, then Venus"),
    ("The moons are Io and Leda.", "The moons are Io, Leda", "list", _MOONS | {"golds": ("Leda, Io",)}, "Io and Leda"),
    ("Io and Leda are the moons", "Io, Leda are the moons", "list", _MOONS, "Io and Leda"),
    ("The moons are Io\nRhea", "The moons are Io, Rhea", "list", _MOONS, "Io\nRhea"),
    ("Moons Is All, Io", "Moons Is All, Io", "list", _MOONS | {"golds": ("Io, Moons Is All",)}, "Moons Is All, Io"),
    ("Io (it is near)\nLeda", "Io (it is near), Leda", "list", _MOONS, "Io (it is near)\nLeda"),
    ("Venus, Mars", "Mars, Venus", "list", {}, None), ("anything", None, "text", {}, None),
    ("maybe", "yes", "boolean", {}, None), ("a, b", "c, d", "list", {}, None),
    ("<think>12", "12", "number", {}, None), ("<think>12</think> 12", "12", "number", {}, "12"),
    ("<think>12</think> unclear", "12", "number", {}, None),
    ("</think>Lima", "Rome", "text", {}, "Lima"), ("5", "5", "number", {}, "5"),
    ("The capital is Lima.", "Lima", "text", {"golds": ("Lima",), "question": "What is the capital?"}, "Lima"),
]  # fmt: skip


@pytest.mark.parametrize(("response", "answer", "kind", "more", "place"), SPANS)
def test_the_characters_of_an_answer(
    response: str, answer: str | None, kind: str, more: dict[str, Any], place: str | None
) -> None:
    found = answer_span(response, answer, kind, **more)
    assert (found and response[slice(*found)]) == place


def test_of_several_places_the_first_counts_after_a_cue_and_the_last_without() -> None:
    for response, answer, kind in (
        ("12, so 12", "12", "number"),
        ("1776, so 1776", "1776", "date"),
        ("yes or yes", "yes", "boolean"),
        ("Mars, Venus, so Mars, Venus", "Mars, Venus", "list"),
    ):
        n = len(answer)
        assert answer_span(response, answer, kind, segments=(response,), cued=True) == (0, n)
        if kind != "boolean":
            assert answer_span(response, answer, kind) == (len(response) - n, len(response))
    assert answer_span("a 12 b 12", "12", "number", segments=("a 12",), cued=True) == (2, 4)
    assert answer_span("5, no 12", "12", "number", segments=("5, no 12",), cued=True) == (6, 8)
    after = "<think>12</think> 12"
    assert answer_span(after, "12", "number") == (18, 20)


@pytest.mark.parametrize(
    ("written", "gold"),
    [
        ("1e6", "1000000"), ("6.02 × 10^23", "6.02e23"), ("1.5E-3", "0.0015"), ("2 1/2", "2.5"), ("1½", "1.5"),
        ("½", "0.5"), ("10³", "1000"), ("5k", "5000"), ("1.2 bn", "1200000000"),
    ],
)  # fmt: skip
def test_a_number_is_found_with_its_power_and_its_fraction(written: str, gold: str) -> None:
    assert found(f"The answer is {written} grams, as in 2004.", gold, "number", format="cot") == written
