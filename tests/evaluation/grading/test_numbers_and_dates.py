# ruff: noqa: E501
"""Numbers and dates by themselves: what a text says, which of several answers, and which are equal."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import pytest

from composcope.evaluation.grading import dates, formulas, grade, numbers, numeric_answer, units, words

Row = tuple[Callable[..., Any], tuple[Any, ...], Any]


def _values(found: Sequence[numbers.Number]) -> list[float]:
    return [float(n.value) for n in found]


def _candidates(said: str) -> list[float]:
    return _values(numbers.candidates(numbers.normalized(said)))


def _numeric(read: Callable[..., numeric_answer.QuantityReading]) -> Callable[..., Any]:
    def shown(*said: str) -> Any:
        found = read(*said)
        return (found.reason if found.number is None else float(found.number.value)), _values(found.rivals)

    return shown


def _dated(read: Callable[..., dates.DateReading]) -> Callable[..., Any]:
    def shown(*said: str) -> Any:
        found = read(*said)
        lead = found.lead and dates.show(found.lead)
        return found.reason if found.date is None else dates.show(found.date), [*map(dates.show, found.rivals)], lead

    return shown


def _date(said: str) -> dates.Date:
    found = dates.parse(said)
    assert found is not None
    return found


def _number(said: str) -> numbers.Number:
    found = numbers.parse(said)
    assert found is not None
    return found


def _equal(a: str, b: str) -> bool:
    return numbers.equal(_number(a), _number(b))


def _may_equal(a: str, b: str) -> bool:
    return numbers.may_equal(_number(a), _number(b))


def _same_quantity(a: str, b: str) -> bool:
    return numbers.same_quantity(_number(a), _number(b))


def _shown(said: str) -> str:
    return numbers.show(_number(said))


def _others(said: str) -> tuple[Fraction, ...]:
    return _number(said).others


def _compared(a: str, b: str, tolerance: int = 0) -> str | None:
    return dates.compare(_date(a), _date(b), tolerance)


def _incomplete(a: str, b: str) -> bool:
    return dates.incomplete(_date(a), _date(b))


def _all_dates(said: str) -> list[str]:
    return [*map(dates.show, dates.find_all(said))]


def _other_unit(said: str, gold: str, question: str | None) -> bool:
    return units.may_be_in_another_unit(_number(said), _number(gold), question)


def _in_doubt(said: str, gold: str, question: str | None) -> bool:
    return units.percent_in_doubt(_number(said), [_number(gold)], question)


def _only_new(said: Sequence[str], gold: str, question: str) -> bool:
    return units.only_new([*map(_number, said)], [_number(gold)], question)


FIRST, LAST = _numeric(numeric_answer.announced), _numeric(numeric_answer.uncued)

CUED, UNCUED = _dated(dates.announced), _dated(dates.uncued)

DATES: list[Row] = [
    (CUED, ("1969",), ("1969", [], None)), (CUED, ("1969, after 1961 and 1962",), ("1969", [], None)),
    (CUED, ("they landed in 1969, not 1961, and left in 1972",), ("1969", ["1972"], None)),
    (CUED, ("unclear.", "unclear. It was 1969."), ("1969", [], None)),
    (CUED, ("unclear.", "unclear."), ("no-answer", [], None)), (CUED, ("the 1960s",), ("imprecise", [], None)),
    (CUED, ("1961. No, sorry, it was 1969.",), ("1969", [], None)), (CUED, ("1961. No, sorry.",), ("1961", [], None)), (CUED, ("1961. No, sorry, that is all.",), ("1961", [], None)),
    (CUED, ("It opened in 1912 or 1913; in 1950 it closed.",), ("hedged", ["1950"], None)),
    (UNCUED, ("It closed in 1950; it opened in 1912 or 1913.",), ("hedged", ["1950"], None)),
    (UNCUED, ("It sank on 14 or 15 April 1912",), ("hedged", ["1912-04-14", "1912-04-15"], None)),
    (CUED, ("1969 or 1970",), ("hedged", [], None)), (CUED, ("before 1970",), ("bound", ["1970"], None)),
    (UNCUED, ("It began in 1961. It ended in 1969.",), ("1969", ["1961"], "1961")),
    (UNCUED, ("It began in 1961. Therefore it ended in 1969.",), ("1969", [], None)),
    (UNCUED, ("31 March 1889, after work that began in 1887.",), ("1887", ["1889-03-31"], "1889-03-31")),
    (UNCUED, ("It was in 1887 that it began, until 1889.",), ("bound", ["1887", "1889"], None)),
    (UNCUED, ("Nobody knows.",), ("no-answer", [], None)),
    (UNCUED, ("It was built in 1961. Wait, no, it was 1969.",), ("1969", [], None)),
    (UNCUED, ("In 1989, 28 years after it was built in 1961.",), ("1989", [], None)),
    (_all_dates, ("4/7/1776, 1776-07-04, 4 July 1776 and July 1776",), ["1776-04-07", "1776-07-04", "1776-07-04", "1776-07"]),
    (_all_dates, ("4 July '31, 13/07/1776, July 1776, 44 BC",), ["1931-07-04", "1776-07-13", "1776-07", "44 BC"]),
    (_all_dates, ("In 1914 the war, in 1915 steel; the 5 th, 14 th, 300 years",), ["1914", "1915"]),
    (_all_dates, ("July 4, '30; July 4, '31",), ["2030-07-04", "1931-07-04"]), (dates.is_full, ("July 1776",), True),
    (dates.is_full, ("44 BC",), True), (dates.is_full, ("1776",), False), (dates.is_full, ("on 4 July 1776",), True),
    (dates.is_full, ("fought on 4 July 1776",), False), (dates.is_full, ("July 1776 and May 1777",), False),
    (_compared, ("4 July 1776", "July 1776"), "date"), (_compared, ("July 1776", "4 July 1776"), None),
    (_compared, ("5 July 1776", "4 July 1776"), None), (_compared, ("1777", "1776", 1), "consistency"),
    (_compared, ("1778", "1776", 1), None), (_compared, ("AD 1", "1 BC", 1), "consistency"),
    (_compared, ("AD 2", "1 BC", 1), None), (_compared, ("4 July", "4 July 1776"), None),
    (_compared, ("4 July 1776", "4 July"), "date"), (_incomplete, ("1776", "July 1776"), True),
    (_incomplete, ("July 1776", "1776"), False), (lambda s: dates.other_reading(_date(s)), ("13/7/1776",), None),
    (lambda s: dates.show(dates.other_reading(_date(s)) or _date(s)), ("4/12/1776",), "1776-12-04"),
    (lambda s: dates.show(_date(s)), ("4 July",), "--07-04"),
]  # fmt: skip

F = Fraction

NUMBERS: list[Row] = [
    (words.value, ("twenty-one",), 21), (words.value, ("minus two",), -2),
    (words.value, ("one hundred and five",), 105), (words.value, ("two thousand three hundred",), 2300),
    (words.value, ("a thousand",), 1000), (words.value, ("thousand and one",), 1001), (words.value, ("million",), 10**6),
    (words.value, ("a million two thousand",), 1002000), (words.value, ("hundred",), 100), (words.value, ("dozen",), 12),
    *((words.without_mixed, (said,), meant) for said, meant in (
        ("3 hundred and fifty", "350"), ("$3 hundred fifteen steps", "$315 steps"), ("3 hundred and 50", "350"),
        ("2 thousand 5 hundred", "2500"), ("1 million two hundred thousand", "1200000"), ("12 hundred thousand", "1200000"),
        ("7 thousand and twenty-five", "7025"), ("1 million 200 thousand and five", "1200005"))),
    *((words.without_mixed, (said,), said) for said in (
        "3 hundred", "2 million in 2019", "2 hundred 5 times", "3 hundred four nine", "5 million 3 billion",
        "3 hundred and 50-60", "3 thousand and 50%", "1 hundred and 200")),
    *((dates.clock_in_digits, (said,), plain) for said, plain in (
        ("2:00 at night", "2:00 am"), ("4:00 at night", "4:00 am"), ("12:15 at night", "12:15 am"),
        ("11:30 at night", "11:30 pm"), ("2:10 in the evening", "2:10 pm"), ("7:10 in the early morning", "7:10 am"),
        ("13:10 at night", "13:10"), ("quarter past 24", "24:15"), ("quarter past 25", "quarter past 25"),
        ("59 minutes past 3", "3:59"), ("60 minutes past 3", "60 minutes past 3"), ("quarter to 1", "12:45"),
        ("Quarter past Three", "3:15"))),
    (words.value, ("hundred",), 100), (words.value, ("dozen",), 12), (words.value, ("two dozen",), 24),
    (words.value, ("four nine",), None), (words.value, ("ten twenty",), 1020), (words.value, ("twenty ten",), 2010),
    (words.value, ("nineteen forty-five",), 1945), (words.value, ("nineteen nine",), None),
    (words.value, ("nineteen ten",), 1910), (words.value, ("nine forty",), None),
    (words.value, ("ten ninety-nine",), 1099), (words.value, ("twenty twenty",), 2020),
    (words.value, ("thirty forty",), None), (words.value, ("three point one four",), F(314, 100)),
    (words.value, ("minus one point five",), F(-3, 2)), (words.value, ("one point ten",), None),
    (words.value, ("two point nine",), F(29, 10)), (words.value, ("point five",), None),
    (words.value, ("three and a half",), F(7, 2)), (words.value, ("two thirds",), F(2, 3)),
    (words.value, ("one third",), F(1, 3)), (words.value, ("four and three quarters",), F(19, 4)),
    (words.value, ("half",), F(1, 2)), (words.value, ("third",), None),
    (words.value, ("quarter quarter",), None), (words.value, ("half and half",), None), (words.han, ("四十二",), 42),
    (words.han, ("一九四五",), 1945), (words.han, ("十",), 10), (words.han, ("一万二千",), 12000), (words.han, ("万",), 10000),
    (words.han, ("二百零三",), 203), (words.ordinal, ("in third place",), 3), (words.ordinal, ("twentieth",), 20),
    (words.ordinal, ("a third",), None), (words.ordinal, ("two thirds",), None),
    (words.ordinal, ("third of five",), None), (words.ordinal, ("first or second",), None),
    (words.ordinal, ("a b c d e f g h i came in third",), 3),
    (words.ordinal, ("a b c d e f g h i j came in third",), None), (words.lookup, ("km",), ("length", F(1000))),
    (words.lookup, ("cm^2",), ("length^2", F(1, 10000))), (words.lookup, ("M^3.",), ("length^3", F(1))),
    (words.lookup, ("m^4",), None), (words.lookup, ("kg^2",), None), (words.lookup, ("apples",), None),
    (_candidates, ("12 times 2 is 24",), [24]), (_candidates, ("not 12 but 13",), [13]),
    (_candidates, ("3 and four",), [3]), (_candidates, ("the 4th of 5",), [5]), (_candidates, ("Step 2: 7",), [7]),
    (_candidates, ("Step 2",), [2]), (_candidates, ("2 hours 30 minutes",), [2.5]),
    (_candidates, ("2 hours of 30 minutes",), [2, 30]), (_candidates, ("30 minutes 2 hours",), [30, 2]),
    (_candidates, ("five% of it",), [0.05]), (_candidates, ("five percent of it",), [0.05]),
    (_candidates, ("5 feet and 6 inches",), [5.5]), (_candidates, ("37 euros 50",), [37.5]),
    (_candidates, ("37 euros 50 people",), [37, 50]), (_candidates, ("37 euros 100",), [37, 100]),
    (_candidates, ("37 euros 99.",), [37.99]), (_candidates, ("37 metres 50",), [37, 50]),
    (_candidates, ("1 275",), [1275]), (_candidates, ("sold 1 275",), [1, 275]), (_candidates, ("1 275 300",), [1275300]),
    (_candidates, ("1.234.567,5",), [1234567.5]), (_candidates, ("12,34,567",), [1234567]),
    (_candidates, ("5 below zero",), [-5]), (_candidates, ("2 1/2",), [2.5]), (_candidates, ("1/0",), []),
    (_candidates, ("2^10",), [1024]), (_candidates, ("2^65",), []), (_candidates, ("2^64",), [2.0**64]),
    (_candidates, ("3.2e3 and 1.5 x 10^2",), [3200, 150]), (_candidates, ("12 - 5",), []), (_candidates, ("5–7",), []),
    (_candidates, ("(-5)",), [-5]), (_candidates, ("= - 5",), [-5]), (_candidates, ("so - 5",), [5]),
    (_candidates, ("is minus 5",), [-5]), (_candidates, ("$-5 and -$6",), [-5, -6]), (_candidates, ("50 %",), [0.5]),
    (_candidates, ("3 million",), [3e6]), (_candidates, ("5K",), [5000]), (_candidates, ("3:30",), [3.5]),
    (_candidates, ("3:30 pm",), [15.5]), (_candidates, ("12:30 am",), [0.5]), (_candidates, ("12:30 pm",), [12.5]),
    (_candidates, ("1:30:36",), [1.51]), (_candidates, ("3:2",), [1.5]), (_candidates, ("4:60",), [4 / 60]),
    (_candidates, ("10:59",), [10 + 59 / 60]), (_candidates, ("13:30 pm",), [13.5]), (_others, ("12.500",), (12500,)),
    (_others, ("12.50",), ()), (lambda s: numbers.find_all(s)[1].others, ("1 275",), (1275,)),
    (lambda s: numbers.find_all(s)[1].others, ("1 27",), ()),
    (_others, ("3:30",), (F(31, 2), F(-17, 2), 3, 30, F(7, 2))), (_others, ("3:30 pm",), ()),
    (_others, ("3:2",), (3, 2)), (lambda s: _number(s).dimension, ("3:30 h",), "time"),
    (_equal, ("50 %", "0.5"), True), (_equal, ("50 %", "50"), True), (_equal, ("0.5 %", "50 %"), False),
    (_equal, ("2 km", "2000 m"), True), (_equal, ("2 km", "2 kg"), False), (_equal, ("2 km", "2"), True),
    (_equal, ("20 degrees", "20 °C"), True), (_equal, ("20 °F", "20 °C"), False), (_equal, ("3:30", "3.5"), False),
    (_equal, ("0.3333333", "1/3"), True), (_equal, ("0.333332", "1/3"), False), (_equal, ("1000.001", "1000"), True),
    (_equal, ("1000.002", "1000"), False), (_equal, ("299792485", "299792458"), False),
    (_equal, ("1000001", "1000000"), False), (_equal, ("1234567.80", "1234567.89"), False), (_equal, ("50 cents", "0.5 euro"), True),
    (_equal, ("2 pounds", "£2"), True), (_may_equal, ("12.500", "12500"), True),
    (_may_equal, ("12500", "12.500"), True), (_may_equal, ("12.500", "125"), False),
    (_same_quantity, ("24 hours", "1440 minutes"), True), (_same_quantity, ("24", "24"), False),
    (_same_quantity, ("24 m", "24 s"), False), (_shown, ("1/3",), "1/3"), (_shown, ("-0.05",), "-0.05"),
    (_shown, ("12.5 %",), "12.5%"), (_shown, ("1250",), "1250"), (_shown, ("none",), "0"), (_shown, ("7/6",), "7/6"),
    (lambda s: numbers.computes(s), ("12 times 2",), True), (numbers.computes, ("12 or 2",), False),
    (formulas.is_plain_number, ("12 apples",), True), (formulas.is_plain_number, ("5 cm^2",), True),
    (formulas.is_plain_number, ("2x",), False), (formulas.is_plain_number, ("5 m",), True),
    (formulas.is_plain_number, ("x = 5",), False), (formulas.is_plain_number, ("apples",), False),
    (formulas.is_plain_number, ("(1, 2)",), False), (formulas.verify, ("1/2", "0.5"), True),
    (formulas.verify, ("0.5", "1/3"), False), (formulas.verify, ("", "1"), None),
    (formulas.verify, ("1", ""), None), (formulas.verify, ("$\\frac{1}{2}$", "\\boxed{0.5}"), True),
]  # fmt: skip

QUANTITIES: list[Row] = [
    (FIRST, ("12 apples in 3 boxes",), (12, [])), (FIRST, ("3 hens give 18 eggs",), (3, [18])),
    (FIRST, ("4 or 5",), ("hedged", [])), (FIRST, ("between 4 and 5",), ("hedged", [])),
    (FIRST, ("4, 5",), ("hedged", [])), (FIRST, ("4 to 5",), ("hedged", [])),
    (FIRST, ("more than 12",), ("bound", [])), (FIRST, ("at least 12",), ("loose bound", [12])),
    (FIRST, ("12 or more",), ("loose bound", [12])), (FIRST, ("it can reach up to 320",), (320, [])),
    (FIRST, ("none",), (0, [])), (FIRST, ("unclear",), ("no-answer", [])),
    (FIRST, ("12. No, sorry, it's 14",), (14, [])), (FIRST, ("not 12",), ("no-answer", [])),
    (FIRST, ("3 x 4",), ("expression", [])),
    (FIRST, ("12. No, sorry, when I look at it again I see that it is 14 instead",), (14, [12])),
    (FIRST, ("3 x 4 = 12",), (12, [])), (FIRST, ("maybe 3, perhaps 4",), ("hedged", [])),
    (FIRST, ("7/12, i.e. about 0.58",), (7 / 12, [])), (FIRST, ("7/12, i.e. about 0.8",), (7 / 12, [])),
    (FIRST, ("there are", "there are\n12"), (12, [])),
    (FIRST, ("Ben has 3", "Ben has 3 and so\nThe total is 9."), (3, [9, 3])),
    (FIRST, ("45 minutes or 0.75 hours",), (45, [])),
    (LAST, ("There were 12 apples. In the end 3 were left.",), (3, [])),
    (LAST, ("There were 12 apples. Now 3 were left.",), (3, [12])),
    (LAST, ("There were 12. So 3 were left.",), (3, [])), (LAST, ("There were 12. 9 + 3 = 14.",), (14, [])),
    (LAST, ("42 apples. There were 3 boxes with 14 each.",), (42, [3, 14, 42])),
    (LAST, ("42 red apples are here. There were 3 boxes.",), (3, [42])), (LAST, ("He has 5 (of 9).",), (5, [])),
    (LAST, ("They are 15 together: Ben is 9 and Lia is 6",), (15, [])),
    (LAST, ("They are 15 together: Ben is 9",), (9, [15])),
    (LAST, ("3 * 80 = 240. So he walks 240 km in 80 days.",), (240, [80])), (LAST, ("$350 for 2 nights",), (350, [2])),
    (LAST, ("The ride takes 90 minutes because 2 stops are made",), (90, [2])),
    (LAST, ("24 + 4 = 28, but hens have four legs, so the total is 32",), (32, [28])),
    (LAST, ("a = 3, b = 4",), (4, [3])), (LAST, ("a = 3 or b = 4",), ("hedged", [])),
    (LAST, ("There were 5. None are left.",), (0, [])), (LAST, ("There were 5. Then none were left.",), (0, [])),
    (LAST, ("5 apples. No apples left over. Done.",), (5, [])),
]  # fmt: skip


def _asked(question: str, gold: str) -> Any:
    asked = units.in_unit([_number(gold)], question)[0].asked
    return asked and (asked.dimension, asked.factor)


IN_QUESTIONS: list[Row] = [
    (_asked, ("How many metres are 2 km?", "2000"), ("length", 1)),
    (_asked, ("How many apples?", "5"), None), (_asked, ("How long in minutes?", "5"), ("time", 60)),
    (_asked, ("How many metres in minutes?", "5"), None), (_asked, ("How many metres?", "5 km"), None),
    (_asked, ("How many metres?", "5 %"), None), (_asked, ("How much is left of $5?", "3"), ("dollar", 1)),
    (_asked, ("How much is left of 5?", "3"), None), (_other_unit, ("1 hour 25 minutes", "85", "How long?"), True),
    (_other_unit, ("1 hour 25 minutes", "86", "How long?"), False),
    (_other_unit, ("1 hour 25 minutes", "85", "In seconds?"), False),
    (_other_unit, ("1 hour 25 minutes", "85", None), False), (_other_unit, ("$85", "8500", "How long?"), False),
    (_in_doubt, ("36 %", "36", "What is 15 % of 240?"), True),
    (_in_doubt, ("36 %", "36 %", "What is 15 % of 240?"), False), (_in_doubt, ("0.25 %", "0.25", "How much?"), True),
    (_in_doubt, ("25 %", "25", "How much?"), False), (_in_doubt, ("0.25 %", "0.25", "What rate?"), False),
    (_in_doubt, ("0.25", "0.25", "How much?"), False), (_in_doubt, ("0.25 %", "0.25", None), False),
    (_only_new, (["5", "9"], "9", "Of 5?"), True), (_only_new, (["5", "9"], "9", "Of 6?"), False),
    (_only_new, (["9"], "9", "Of some?"), False), (_only_new, (["5"], "9", "Of 5?"), False),
]  # fmt: skip


@pytest.mark.parametrize(("step", "given", "expected"), [*DATES, *NUMBERS, *QUANTITIES, *IN_QUESTIONS])
def test_a_number_or_date_is_read_as_a_reader_would(step: Any, given: tuple[Any, ...], expected: Any) -> None:
    assert step(*given) == expected


@pytest.mark.parametrize("digits", ["5", "25", "05", "125", "975", "0625"])
@pytest.mark.parametrize("whole", ["0", "-0", "7", "-12", "1234"])
def test_a_decimal_is_shown_with_its_own_digits(whole: str, digits: str) -> None:
    assert _shown(f"{whole}.{digits}") == f"{whole}.{digits}"
    assert _shown(f"{whole}.{digits} %") == f"{whole}.{digits}%"


# --- repeated quantities --------------------------------------------------------------------------------------------


TWO_DAYS = ("How many hours are there in two days?", "48 hours")
KILOMETRE = ("How many metres is half a kilometre?", "500 m")
DOZEN = ("How many eggs are in three dozen?", "36")
WEEKS = ("How many days are there in five weeks?", "35 days")
METRE = ("How many centimetres is one metre?", "100 cm")
GRAMS = ("How many kilograms are 2500 grams?", "2.5 kg")
HOURS = ("How many minutes is three hours?", "180 minutes")
BARE = ("How many minutes is three hours?", "180")
MIXED = ("How many minutes are 1 hour 30 minutes?", "90 minutes")
WRONG = [
    (TWO_DAYS, "two days"), (TWO_DAYS, "The answer is two days."), (TWO_DAYS, "2 days"),
    (TWO_DAYS, "There are two days."), (TWO_DAYS, "Two days is 2 days"), (TWO_DAYS, "Two days are 20 hours."),
    (TWO_DAYS, "There are 20 hours in two days."), (KILOMETRE, "half a kilometre"), (DOZEN, "three dozen"),
    (DOZEN, "Three dozen eggs"), (DOZEN, "Three dozen is equal to 32 eggs"), (DOZEN, "3 dozen is 32"),
    (WEEKS, "5 weeks"), (WEEKS, "There are five weeks"), (WEEKS, "Five weeks have 30 days."),
    (WEEKS, "There are 5 x 7 = 40 days in five weeks."), (METRE, "1 m"), (GRAMS, "2500 grams"),
    (HOURS, "3 hours is 120 minutes"), (BARE, "3 hours is 120 minutes"), (BARE, "3 hours"),
    (MIXED, "1 hour 30 minutes"),
]  # fmt: skip
RIGHT = [
    (TWO_DAYS, "Two days are 48 hours"), (TWO_DAYS, "48"), (TWO_DAYS, "48 hours are two days."),
    (TWO_DAYS, "2880 minutes"), (TWO_DAYS, "There are 48 hours in two days."), (KILOMETRE, "500"),
    (KILOMETRE, "Half a kilometre is 500 metres."), (DOZEN, "3 dozen is 36"), (DOZEN, "36 is three dozen."),
    (DOZEN, "There are 36 eggs in three dozen."), (WEEKS, "There are 5 x 7 = 35 days in five weeks."),
    (METRE, "1 m is 100 cm"), (GRAMS, "2500 grams is 2.5 kilograms."), (HOURS, "3 hours is 180 minutes"),
    (BARE, "3 hours is 180 minutes"), (MIXED, "1 hour 30 minutes is 90 minutes."),
    (("Is it 3 or 5?", "3"), "3"), (("Which is longer, 2 days or 40 hours?", "2 days"), "2 days"),
    (("How many eggs are more, 3 dozen or 30?", "36"), "3 dozen"),
    (("Which lasts longer in hours, 2 days or 40 hours?", "48 hours"), "2 days"),
    (("Which of the numbers 4, 7 and 9 is even?", "4"), "4"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("asked", "response", "expected"), [*((*row, "incorrect") for row in WRONG), *((*row, "correct") for row in RIGHT)]
)
def test_a_repeated_quantity_is_no_answer_and_hides_none(asked: tuple[str, str], response: str, expected: str) -> None:
    question, gold = asked
    for format in ("short", "plain"):
        result = grade(response, "stop", gold, "number", format=format, question=question)
        assert result.outcome == expected, result
