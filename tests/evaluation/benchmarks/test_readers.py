from __future__ import annotations

import json
import math
import re
from collections import Counter
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from composcope.errors import InputError
from composcope.evaluation.benchmarks import load
from composcope.evaluation.benchmarks.arithmetic import boxed, equation_steps
from composcope.evaluation.cases import Case, write_cases
from composcope.files import to_csv

HOPS = {
    "Question": "Who led the country in which the lamp was made?",
    "Answer": "ada",
    "Q1": "In which country was the lamp made?",
    "A1": ["Norland", "the Norland"],
    "Q2": "Who led Norland?",
    "A2": ["Ada", "Ada of Norland"],
}
SUMS = {
    "iIndex": 7,
    "sQuestion": " Three boxes of 4, then 2 more? ",
    "lEquations": ["X=((3.0*4.0)+2.0)"],
    "lSolutions": [14.0],
}
COLUMNS = {
    "question_commonsense": "Which of them are fruit?",
    "answers_commonsense": "['pears and figs', 'figs and pears']",
    "question_math": "2 at 3 euros each?",
    "answer_math": "6",
    "question_composition": "You buy all fruit at 3 euros each. How much?",
    "answer_composition": "6",
    "domain": "shop",
    "operation": "multiplication",
    "note": "kept",
}


def write_json(path: Path, value: Any) -> Path:
    path.write_text(json.dumps(value), encoding="utf-8")
    return path


def write_csv(path: Path, *rows: dict[str, str]) -> Path:
    quoted = [",".join('"' + v.replace('"', '""') + '"' for v in row.values()) for row in rows]
    path.write_text("\ufeff" + "\r\n".join([",".join(COLUMNS), *quoted]), encoding="utf-8")
    return path


def test_bamboogle_keeps_both_hops_and_every_accepted_answer(tmp_path: Path) -> None:
    [case] = load(f"bamboogle:{write_json(tmp_path / 'b.json', [HOPS])}")
    assert (case.question, case.answer, case.depth) == (HOPS["Question"], "ada", 2)
    assert case.aliases == ("Ada of Norland",), "other spellings of the last hop's answer hold for the whole"
    assert [(p.question, p.answer, p.aliases) for p in case.parts] == [
        (HOPS["Q1"], "Norland", ("the Norland",)),
        (HOPS["Q2"], "Ada", ("Ada of Norland",)),
    ]
    assert case.meta == {}


def test_bamboogle_marks_a_hop_that_is_the_question_itself(tmp_path: Path) -> None:
    [case] = load(f"bamboogle:{write_json(tmp_path / 'b.json', [{**HOPS, 'Q2': HOPS['Question']}])}")
    assert case.meta == {"part_is_whole": True}
    [other] = load(f"bamboogle:{write_json(tmp_path / 'b.json', [{**HOPS, 'A2': ['Bo', 'Bo of Norland']}])}")
    assert other.aliases == (), "a last hop with another answer lends the whole no spellings"


def test_multiarith_takes_equations_apart_in_the_order_of_solving(tmp_path: Path) -> None:
    [case] = load(f"multiarith:{write_json(tmp_path / 'm.json', [SUMS])}")
    assert (case.id, case.question, case.answer) == ("multiarith-7", "Three boxes of 4, then 2 more?", "14")
    assert [(p.question, p.answer) for p in case.parts] == [("What is 3 * 4?", "12"), ("What is 12 + 2?", "14")]
    assert case.operation == "multiplication, addition"
    numbered = load(f"multiarith:{write_json(tmp_path / 'm.json', [SUMS, {**SUMS, 'iIndex': 0}])}")
    assert [c.id for c in numbered] == ["multiarith-7", "multiarith-0"]


def test_a_box_ends_at_its_own_brace_and_the_last_one_counts() -> None:
    assert boxed(r"\boxed{1} so \boxed{\frac{1}{2}} and more}") == r"\frac{1}{2}"
    assert boxed(r"\boxed{\left\{1\right.} end") == r"\left\{1\right.", "a brace that is written, not one of LaTeX"
    assert boxed("no box") is None and boxed(r"\boxed{1") is None


def test_equations_are_exact_and_read_from_the_inside() -> None:
    assert equation_steps("X=(7.0-(1.0/3.0))*3", "here") == [
        ("1 / 3", "division", Fraction(1, 3)),
        ("7 - 0.3333333333333333", "subtraction", Fraction(20, 3)),
        ("6.666666666666667 * 3", "multiplication", Fraction(20)),
    ]


@pytest.mark.parametrize(
    ("equation", "said"),
    [
        ("X=(3.0", "not an equation"),
        ("X=3.0", "no operation"),
        ("X=3/0", "divides by zero"),
        ("X=__import__('os').getpid()+1", r"more than numbers and \+ - \* /"),
        ("X=2**99", r"more than numbers and \+ - \* /"),
        ("X=-3+1", r"more than numbers and \+ - \* /"),
        ("X=1e999+1", r"more than numbers and \+ - \* /"),
        ("X=" + "1+" * 20_000 + "1", "not an equation"),
    ],
)
def test_an_equation_that_cannot_be_taken_apart_is_refused(equation: str, said: str) -> None:
    with pytest.raises(InputError, match=said):
        equation_steps(equation, "item 3")


def test_agentcoma_reads_its_columns_and_keeps_the_rest(tmp_path: Path) -> None:
    path = write_csv(tmp_path / "agentcoma_dev.csv", COLUMNS, {**COLUMNS, "answers_commonsense": "figs, or pears"})
    first, second = load(f"agentcoma:{path}")
    assert first.id == "agentcoma_dev-000" and second.id == "agentcoma_dev-001"
    assert (first.domain, first.operation, first.meta) == ("shop", "multiplication", {"note": "kept"})
    assert [(p.kind, p.answer, p.answer_type, p.aliases) for p in first.parts] == [
        ("commonsense", "pears and figs", "text", ("figs and pears",)),
        ("math", "6", "number", ()),
    ]
    assert second.parts[0].answer == "figs, or pears"
    path = write_csv(
        tmp_path / "agentcoma_dev.csv", {**COLUMNS, "answers_commonsense": "['figs', 'pears ', 'figs', 'pears']"}
    )
    [again] = load(f"agentcoma:{path}")
    assert (again.parts[0].answer, again.parts[0].aliases) == ("figs", ("pears",))
    for cell, accepted in (
        ("'figs', \"a pear's\"", ("figs", "a pear's")),
        ('"figs"', ("figs",)),
        ("'t figs", ("'t figs",)),
    ):
        [quoted] = load(f"agentcoma:{write_csv(tmp_path / 'q.csv', {**COLUMNS, 'answers_commonsense': cell})}")
        assert (quoted.parts[0].answer, *quoted.parts[0].aliases) == accepted


def test_agentcoma_takes_questions_with_extra_context_of_either_step_and_no_answers(tmp_path: Path) -> None:
    more = {"answer_math_extra": "9", "question_extra_context": "Fruit?", "Math_With_Context": "3 at 2?"}
    more |= {"answer_context": "x"}
    path, rows = tmp_path / "a.csv", [COLUMNS | more, COLUMNS | more | {"Math_With_Context": " "}]
    path.write_text(to_csv(rows), encoding="utf-8")
    first, second = load(f"agentcoma:{path}")
    assert [p.extra_context for p in (*first.parts, *second.parts)] == ["Fruit?", "3 at 2?", "Fruit?", None]
    assert first.meta == {"note": "kept", "answer_math_extra": "9", "answer_context": "x"}


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("bamboogle", [{**HOPS, "A2": []}], r"item 0: field 'A2' is an empty list"),
        ("bamboogle", [HOPS, {**HOPS, "Q1": " "}], r"item 1: field 'Q1' is ' '"),
        ("bamboogle", {"Question": "q", "Q1": "q"}, "field 'Answer' is None"),
        (
            "bamboogle",
            [{"id": "b_1", "Question": "q", "answer": ["a"]}],
            r"item 0: has no sub-questions \(it has id, Qu",
        ),
        ("multiarith", [{**SUMS, "lSolutions": [15]}], r"gives 14, lSolutions says 15"),
        ("multiarith", [{**SUMS, "lSolutions": [14.01]}], r"gives 14, lSolutions says 14\.01"),
        ("multiarith", [{**SUMS, "lSolutions": [None]}], r"gives 14, lSolutions says None"),
        ("multiarith", [{**SUMS, "lSolutions": [math.nan]}], r"gives 14, lSolutions says nan"),
        ("multiarith", [{**SUMS, "sQuestion": "Why \ud800?"}], r"question: \\ud800 is half of a surrogate pair"),
        ("tot", [{"question": "q", "label": math.nan}], "fields 'label' and 'answer' are missing"),
        ("stad", [{"question": "q", "answer": math.nan}], "fields question and answer are needed"),
        ("multiarith", [{**SUMS, "lEquations": []}], r"field 'lEquations' is \[\]"),
        ("multiarith", [{**SUMS, "lEquations": SUMS["lEquations"] * 2}], "field 'lEquations' .*; give a list of one"),
        ("multiarith", [SUMS, SUMS], r"id 'multiarith-7' of case 2 was already used"),
        ("bamboogle", [], "no rows"),
    ],
)
def test_a_file_that_does_not_fit_is_refused_with_its_place(tmp_path: Path, name: str, content: Any, said: str) -> None:
    path = write_json(tmp_path / "file.json", content)
    with pytest.raises(InputError, match=said) as error:
        load(f"{name}:{path}")
    assert str(path) in str(error.value) and "\n" not in str(error.value)


def test_agentcoma_says_which_column_or_line_is_wrong(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("question,answer\n1,2\n")
    with pytest.raises(InputError, match="column 'question_commonsense' is missing"):
        load(f"agentcoma:{tmp_path / 'a.csv'}")
    for wrong in ("[]", "['figs'", '["figs", null]', "[['figs'], ['pears']]"):
        path = write_csv(tmp_path / "b.csv", COLUMNS, {**COLUMNS, "answers_commonsense": wrong})
        with pytest.raises(InputError, match=rf"b.csv:3: column 'answers_commonsense' is .*{re.escape(wrong[1:])}"):
            load(f"agentcoma:{path}")
    for column, wrong in (("answer_math", "nan"), ("answer_composition", "many")):
        path = write_csv(tmp_path / "b.csv", COLUMNS, {**COLUMNS, column: wrong})
        with pytest.raises(InputError, match=rf"b.csv:3: column '{column}' is '{wrong}'; give a number"):
            load(f"agentcoma:{path}")


@pytest.mark.parametrize(
    ("cell", "accepted"),
    [
        ("['figs' 'pears']", ("figs", "pears")),
        ('["figs", "the driver\'s"]', ("figs", "the driver's")),
        ("('figs', 3)", ("figs", "3")),
        ("1,000", ("1,000",)),
        ("'figs'", ("figs",)),
    ],
)
def test_agentcoma_s_accepted_answers_are_a_list_or_one_answer(cell: str, accepted: tuple[str], tmp_path: Path) -> None:
    [case] = load(f"agentcoma:{write_csv(tmp_path / 'a.csv', {**COLUMNS, 'answers_commonsense': cell})}")
    assert (case.parts[0].answer, *case.parts[0].aliases) == accepted


def test_specs_are_a_path_a_reader_or_a_name_handed_down(tmp_path: Path) -> None:
    write_cases([Case("a", "q", "1")], tmp_path / "with:colon.jsonl")
    assert load(tmp_path / "with:colon.jsonl") == load(f"cases:{tmp_path / 'with:colon.jsonl'}")
    assert load("world:two", {"world": lambda rest: [Case(rest, "q", "1")]})[0].id == "two"
    with pytest.raises(InputError, match=r"nobody:x: no such benchmark.*agentcoma, .*multiarith.*--plugin FILE"):
        load("nobody:x")
    with pytest.raises(InputError, match=r"musique: is a reader; .*musique:FILE"):
        load("musique")
    with pytest.raises(InputError, match="no such file"):
        load(tmp_path / "absent.jsonl")
    (tmp_path / "musique_dev.jsonl").touch()
    with pytest.raises(InputError, match=re.escape(f"did you mean '{tmp_path / 'musique_dev.jsonl'}'?")):
        load(f"musique:{tmp_path / 'musique_def.jsonl'}")
    with pytest.raises(InputError, match=re.escape("absent.json: no such file; give Bamboogle")):
        load(f"bamboogle:{tmp_path / 'absent.json'}")


def test_a_bare_csv_is_pointed_to_its_reader(tmp_path: Path) -> None:
    file = tmp_path / "mine.csv"
    file.write_text("question,answer\nHow many?,3\n")
    with pytest.raises(InputError, match=r"mine\.csv: a CSV is read by a reader's name, such as agentcoma:.*mine\.csv"):
        load(str(file))


def test_the_released_bamboogle_file_reads_whole(shared: Path) -> None:
    cases = load(f"bamboogle:{shared / 'data' / 'bamboogle.json'}")
    assert len(cases) == 125 and all(len(c.parts) == 2 for c in cases)
    assert sum("part_is_whole" in c.meta for c in cases) == 2


def test_the_released_multiarith_file_reads_whole(shared: Path) -> None:
    cases = load(f"multiarith:{shared / 'data' / 'multiarith.json'}")
    assert len(cases) == 600 and Counter(len(c.parts) for c in cases) == {2: 600}
    assert all(c.answer == c.parts[-1].answer for c in cases)
