"""A spelling never makes an answer wrong, and never makes another name right."""

from __future__ import annotations

import pytest

from composcope.evaluation.grading import grade
from composcope.evaluation.grading.spellings import alike, initials, roman

SAME = [
    ("Mt. Everest", "Mount Everest"),
    ("It is Mount Everest.", "Mt. Everest"),
    ("The river is the St. Lawrence River.", "Saint Lawrence River"),
    ("Ft. Worth", "Fort Worth"),
    ("Wall St.", "Wall Street"),
    ("It is Johnson & Johnson.", "Johnson and Johnson"),
    ("It was World War 2.", "World War II"),
    ("WWII", "World War II"),
    ("ww2", "World War II"),
    ("WW1", "World War I"),
    ("WWI", "World War 1"),
    ("World War One is wrong, it was World War 1.", "World War I"),
    ("Henry the Eighth", "Henry VIII"),
    ("Elizabeth the First", "Elizabeth I"),
    ("It was Henry V.", "Henry the Fifth"),
    ("Louis XIV", "Louis 14"),
    ("elizabeth the second", "Elizabeth II"),
    ("Louis Xiv", "louis xiv"),
    ("Elizabeth Ii", "Elizabeth II"),
    ("It is a gray theater.", "grey theatre"),
    ("Neighbors", "neighbours"),
    ("Ernest Hemmingway", "Ernest Hemingway"),
    ("It was by Ernest Hemmingway.", "Ernest Hemingway"),
    ("Phillipines", "Philippines"),
    ("UK", "United Kingdom"),
    ("It is the U.K.", "United Kingdom"),
    ("United Kingdom", "UK"),
    ("NYC", "New York City"),
    ("USA", "United States"),
    ("US", "us"),
    ("U.S.", "us"),
    ("It was founded in the US.", "us"),
    ("The U.S. Army", "us army"),
    ("It's by The Last of Us.", "the last of us"),
    ("us", "US"),
    ("it's the us.", "US"),
    ("us", "united states"),
    ("He was born in Michigan, in the US.", "United States"),
    ("the U.S.", "United States of America"),
    ("United States", "USA"),
    ("the United States dollar", "US dollar"),
    ("the UAE", "United Arab Emirates"),
    ("Soren Kierkegaard", "S\u00f8ren Kierkegaard"),
    ("The city is Lodz in Poland.", "\u0141\u00f3d\u017a"),
    ("It is in Duesseldorf.", "D\u00fcsseldorf"),
    ("The chancellor was Gerhard Schr\u00f6der.", "Gerhard Schroeder"),
]
OTHER = [
    ("World War I", "World War II"),
    ("WW2", "World War I"),
    ("WW1", "World War II"),
    ("Elizabeth II", "Elizabeth III"),
    ("Henry the Seventh", "Henry VIII"),
    ("Elizabeth the Second", "Elizabeth I"),
    ("Mount Everest", "Saint Everest"),
    ("Wall St.", "Wall Saint"),
    ("Anna", "Ana"),
    ("Soren Krarup", "S\u00f8ren Kierkegaard"),
    ("Loda", "\u0141\u00f3d\u017a"),
    ("Noel", "Nol"),
    ("Albrecht Duerrenmatt", "Albrecht D\u00fcrer"),
    ("James Wat", "James Watt"),
    ("Apollo 1", "Apollo 11"),
    ("Gambia", "Zambia"),
    ("UK", "United States"),
    ("USSR", "United States"),
    ("The ship is the U.S.S. Enterprise.", "United States"),
    ("He came to us from Ireland.", "United States"),
    ("It is Canada, not the US.", "United States"),
    ("It was given to us by Canada.", "us"),
    ("It was given to us by Canada.", "US"),
]


@pytest.mark.parametrize(("said", "gold"), SAME)
def test_another_spelling_of_the_name_is_right(said: str, gold: str) -> None:
    assert grade(said, "stop", gold, "text").outcome == "correct"


KINGS = (
    "Louis XIV/Henry VIII/George VI/Pope John Paul II/Apollo XI/World War I/World War II/WWII/USA/UK/UAE/NYC/the U.S./"
    "St. Louis/Mt. Everest/Xi Jinping"
).split("/")


@pytest.mark.parametrize("name", KINGS)
def test_small_and_capital_letters_make_no_other_spelling(name: str) -> None:
    forms = (name, name.lower(), name.upper())
    assert {grade(said, "stop", gold, "text").outcome for said in forms for gold in forms} == {"correct"}
    for said in (f"It was {name}.", f"it was {name.lower()}."):
        assert {grade(said, "stop", gold, "text").outcome for gold in forms} == {"correct"}


@pytest.mark.parametrize(("said", "gold"), [
    ("the greek letter xi", "Xi"), ("president xi", "Xi"), ("The editor is vi.", "vi"), ("They use vi.", "Vi"),
    ("4 in roman numerals is iv.", "IV"), ("4 in Roman numerals is IV.", "IV"), ("It is given by iv", "iv"),
    ("The answer is us.", "us"), ("the us", "us"), ("Us.", "us"), ("on the third", "the third"),
    ("Only the second", "the second"), ("was the third", "third"), ("2 MT HIGH", "2 mt high"),
    ("6 FT TALL", "6 ft tall"), ("the st segment", "ST segment"), ("the ST segment", "st segment"),
    ("during world war i many died", "world war i"), ("women have xx", "XX"),
])  # fmt: skip
def test_what_is_no_name_keeps_its_spelling_in_a_sentence(said: str, gold: str) -> None:
    assert grade(said, "stop", gold, "text").outcome == "correct"


@pytest.mark.parametrize(("said", "gold"), [("louis xvi", "Louis XIV"), ("Henry VII", "henry viii"),
                                            ("the ship is the u.s.s. enterprise.", "United States"),
                                            ("he came to us from ireland.", "United States")])  # fmt: skip
def test_another_name_in_small_letters_is_wrong(said: str, gold: str) -> None:
    assert grade(said, "stop", gold, "text").outcome == "incorrect"


@pytest.mark.parametrize(("said", "gold"), OTHER)
def test_another_name_in_a_like_spelling_is_wrong(said: str, gold: str) -> None:
    assert grade(said, "stop", gold, "text").outcome == "incorrect"


@pytest.mark.parametrize(
    ("said", "gold"),
    [
        ("PRC", "People's Republic of China"),
        ("It is the P.R.C.", "People's Republic of China"),
        ("Papua New Guinea", "PNG"),
        ("LA", "Los Angeles"),
    ],
)
def test_initials_of_a_name_are_open_and_not_wrong(said: str, gold: str) -> None:
    found = grade(said, "stop", gold, "text")
    assert (found.outcome, found.reason) == ("invalid", "initials of the name")


@pytest.mark.parametrize(
    ("said", "gold"),
    [
        ("USA", "United Kingdom"),
        ("He lives in Albany, NY.", "New York"),
        ("Brazilian Ria (BR) is the official currency of Brazil.", "Brazilian real"),
    ],
)
def test_other_initials_and_those_beside_another_answer_are_wrong(said: str, gold: str) -> None:
    assert grade(said, "stop", gold, "text").outcome == "incorrect"


def test_initials_may_leave_small_words_out() -> None:
    assert initials("the U.S.A.", ("united", "states", "of", "america"))
    assert initials("JAM", ("jam", "and", "milk"))
    assert not initials("UK", ("united", "states")) and not initials("in the UK", ("united", "kingdom"))


@pytest.mark.parametrize(("text", "value"), [("3 hundred", "300"), ("He ran 4 hundred metres", "400")])
def test_hundred_after_digits_multiplies_them(text: str, value: str) -> None:
    assert grade(text, "stop", value, "number").outcome == "correct"


def test_words_that_only_look_like_short_forms_stay() -> None:
    for text in ("the 1st of May", "5 ft", "Vitamin I", "I was there", "program", "a MIX of it", "graying", "St"):
        assert alike(text) == text


def test_roman_numerals() -> None:
    assert [roman(n) for n in ("I", "IV", "IX", "XIV", "XIX", "XXXVIII")] == [1, 4, 9, 14, 19, 38]


def test_words_with_the_initials_of_a_code_are_another_answer_where_the_name_is_written_out_too() -> None:
    """The code alone (AED) leaves "Arab Emirates dollar" open; beside "dirham" it does not."""
    said = "The currency of the United Arab Emirates is the UAE Dollar."
    assert grade(said, "stop", "AED", "text").outcome == "invalid"
    assert grade(said, "stop", "dirham", "text", aliases=("UAE dirham", "AED")).outcome == "incorrect"
