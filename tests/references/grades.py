"""Answers in many wordings against gold answers of every type: what each is graded, and what is read out of it."""

from __future__ import annotations

from typing import Any

from composcope.evaluation.grading import grade

_SAID: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "number": (
        ("12", "1024", "3.5", "-7", "0", "50 %", "1/3", "2000000", "9:30", "12 km"),
        ("12", "Twelve.", "a dozen", "12.0", "about 12", "11 or 12", "not 12", "It is 12, not 13.", "13 - 1 = 12",
         "1,024", "1 024", "1.024", "2^10", "one thousand and twenty-four", "3,5", "7/2", "three and a half", "3.49",
         "minus seven", "-7.0", "7", "zero", "none", "nothing is left", "half", "0.5", "50", "50 percent", "0.33",
         "one third", "2 million", "2e6", "2.0 mio", "12 kilometres", "12000 m", "12 miles", "9.5", "half past nine",
         "I don't know, maybe 12", "The answer is 12. The answer is 13.", "12 (from 3 x 4)", "$12", "12 euros",
         "So 12?", "between 11 and 13", "at least 12", "x = 12", "\\boxed{12}", "12th", "the 12 of them make 24"),
    ),
    "date": (
        ("1969", "20 July 1969", "1969-07", "44 BC", "July 4", "the 1960s", "19th century"),
        ("1969", "In 1969.", "20 July 1969", "July 20, 1969", "1969-07-20", "20.7.1969", "07/20/1969", "21 July 1969",
         "July 1969", "1968 or 1969", "1968", "44 BC", "44 B.C.E.", "44", "44 AD", "4 July", "the fourth of July",
         "July 4, 1776", "the sixties", "1960s", "1965", "the nineteenth century", "1850", "before 1969",
         "It was not in 1969.", "nineteen sixty-nine", "around 1969", "1969-1970"),
    ),
    "text": (
        ("Paris", "the United States", "Saint Louis", "John F. Kennedy", "Côte d'Ivoire", "yes", "red wine",
         "Ann Lee"),
        ("Paris", "paris.", "The answer is Paris", "It is Paris, France.", "Paris or Rome", "not Paris", "Pariss",
         "Rome", "USA", "United States of America", "the U.S.", "St. Louis", "Louis", "Kennedy", "John Kennedy",
         "JFK", "Robert Kennedy", "Ivory Coast", "Cote d'Ivoire", "Yes.", "no", "wine", "a red wine", "white wine",
         "Wine, red", "Lee", "Ann", "Lee, Ann", "Bob Lee", "I think it might be Paris.", "I don't know.",
         "Paris is not the capital; Rome is.", "What is Paris?", "", "Paris Paris Paris", "The capital of France"),
    ),
    "list": (
        ("red, blue", "Ann and Bo", "1, 2, 3", "one"),
        ("red, blue", "blue and red", "red", "red, blue, green", "red, red, blue", "- red\n- blue", "Ann, Bo",
         "Bo & Ann", "Ann", "3, 2, 1", "1 2 3", "1, 2", "one", "only one", "red; blue",
         "neither red nor blue", "red or blue"),
    ),
    "ordered-list": (
        ("red, blue", "a, b, c"),
        ("red, blue", "blue, red", "1. red 2. blue", "first red, then blue", "red > blue", "a, b, c", "c, b, a",
         "a, c, b",         "a and b and c", "blue after red"),
    ),
    "boolean": (
        ("yes", "no"),
        ("yes", "No.", "True", "false", "Yes, they do.", "It is not true.", "Not really", "Correct", "yes and no",
         "I believe so", "They do not.", "Neither", "Of course", "no doubt", "y", "n"),
    ),
}  # fmt: skip
_OPTIONS = (("A", "red"), ("B", "dark blue"), ("C", "none of these"))
_CHOSEN = ("B", "(B)", "b)", "dark blue", "blue", "A", "A or B", "not A but B", "The answer is B.", "C",
           "none of these", "B: dark blue", "B: red", "D", "It is a dark blue one", "Both A and B", "")  # fmt: skip
_WHOLE = (
    ("xml", "<answer>12</answer>"), ("xml", "<answer>12"), ("xml", "12"), ("xml", "<answer></answer>"),
    ("xml", "<answer>11</answer> <answer>12</answer>"), ("xml-answer", "<answer>12</answer>"),
    ("xml-answer", "12</answer>"),
    ("cot", "So the final answer is: 12"), ("cot", "12"),
    ("cot", "The final answer is 11. So the final answer is: 12."),
    ("cot", "So the final answer is:"), ("self-ask", "Intermediate answer: 11.\nSo the final answer is: 12"),
    ("short", "12"), ("short", "<think>12</think>"), ("short", "<think>11</think> 12"), ("plain", "**12**"),
    ("pair-q1", "A1: 12. X is 12. A2: 15"), ("pair-q1", "A1: 15. A2: 12"), ("pair-q1", "12"),
)  # fmt: skip


def _graded(said: str, gold: str, kind: str, **options: Any) -> str:
    found = grade(said, options.pop("finish", "stop"), gold, kind, **options)
    about = (found.answer or "", found.match or "", found.reason or "")
    return f"{found.outcome}: {' | '.join(about)}"


def of_type(kind: str) -> list[list[Any]]:
    """One row per answer: a letter for each gold answer (c, i, a, x), and what is read for the first."""
    golds, answers = _SAID[kind]
    rows: list[list[Any]] = [[kind, *golds]]
    for said in answers:
        outcomes = [grade(said, "stop", gold, kind).outcome for gold in golds]
        letters = "".join("x" if o == "invalid" else o[0] for o in outcomes)
        rows.append([said, letters, _graded(said, golds[0], kind)])
    return rows


def formats() -> list[list[Any]]:
    rows = [[format, said, _graded(said, "12", "number", format=format),
             _graded(said, "12", "number", format=format, finish="length")] for format, said in _WHOLE]  # fmt: skip
    for compat in ("agentcoma", "stad", "collapse"):
        texts = ("12", "It is 12.", "<answer>12</answer>", "So the final answer is: 12", "13", "", "I don't know")
        rows += [[compat, said, _graded(said, "12", "number", compat=compat)] for said in texts]
    unknown = ("I don't know", "12", "Nobody can know that.", "")
    return [*rows, *(["unknowable", said, _graded(said, "12", "number", unknowable=True)] for said in unknown)]


def choices() -> list[list[Any]]:
    return [[said, *(_graded(said, letter, "choice", options=_OPTIONS) for letter in "AB")] for said in _CHOSEN]


def grades() -> dict[str, Any]:
    return {kind: of_type(kind) for kind in _SAID} | {"formats": formats(), "choices": choices()}
