"""GSM8K, MATH, Test of Time and STaD's records, on hand-made files of their shapes."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from composcope.errors import InputError
from composcope.evaluation.benchmarks.arithmetic import boxed, read_gsm8k, read_math_hard
from composcope.evaluation.benchmarks.catalog import load
from composcope.evaluation.benchmarks.stad import read_items, read_stad, record_from_item, score
from composcope.evaluation.builders import scaffolds
from composcope.evaluation.gold import typed_answer
from composcope.evaluation.importers import Options
from composcope.evaluation.importers.papers import read_stad_results
from composcope.evaluation.protocols import metrics_from_rows


def _file(folder: Path, *rows: Any, name: str = "rows.jsonl") -> Path:
    path = folder / name
    path.write_text("".join(json.dumps(r) + "\n" for r in rows), encoding="utf-8")
    return path


RECORD = {
    "question": "Ann has 3 bags of 4 nuts and eats 2. How many are left?",
    "answer": 10,
    "sub-task": [{"segment": "Count the nuts"}, {"segment": "Take away those eaten"}],
    "sub-task-answer": [{"explanation": "3 * 4", "answer": 12}, {"explanation": "12 - 2", "answer": "10"}],
    "scaffolding": ["Ann has 12 nuts and eats 2. How many are left?"],
    "scaffolding_verification": [{"answer": "10", "score": 1, "justification": "same"}],
    "decompositions": ["How many are 3 bags of 4 nuts?", "Of 12 nuts 2 are eaten. How many are left?"],
}


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (0, ("0", "number")),
        (39.0, ("39", "number")),
        (True, ("yes", "boolean")),
        ("no", ("no", "boolean")),
        ("$1,200", ("$1,200", "number")),
        ("3 hours", ("3 hours", "number")),
        ("1804", ("1804", "number")),
        ("1986-06-25", ("1986-06-25", "date")),
        ("1914-07", ("1914-07", "date")),
        ("2005-06", ("2005-06", "number")),
        ("1984-10", ("1984-10", "number")),
        ("44 BC", ("44 BC", "date")),
        ("12:30", ("12:30", "text")),
        ("2 of 3 trees", ("2 of 3 trees", "text")),
        ("3 hours 20 minutes", ("3 hours 20 minutes", "text")),
        (" Oslo ", ("Oslo", "text")),
        ("\\frac{3}{4}", ("\\frac{3}{4}", "number")),
        ("(3,4)", ("(3,4)", "number")),
        ("Monday", ("Monday", "text")),
        (["a", 2], ("a; 2", "list")),
        ({"answer": 5}, ("5", "number")),
        ({"M": 2, "H": 1}, ('{"H": 1, "M": 2}', "text")),
    ],
)
def test_gold_answers_get_the_type_they_are_compared_by(value: Any, expected: tuple[str, str]) -> None:
    assert typed_answer(value) == expected


def test_gsm8k_socratic_lines_become_parts(tmp_path: Path) -> None:
    second = "How many left? ** As 3-1 = <<3-1=2>>2 that is 12-2 = <<12-2=10>>10 nuts"
    answer = f"How many? ** 3*4=<<3*4=12>>12\n{second}\n#### 1,010"
    loose = "How many? ** Some\nAll? ** 2*5=<<2*5=10>>10\n#### 10"
    path = _file(tmp_path, {"question": "Q?", "answer": answer}, {"question": "R?", "answer": loose})
    one, two = load(f"gsm8k:{path}")
    assert [(p.question, p.answer, p.worked) for p in one.parts] == [
        ("How many?", "12", "3*4=12"),
        ("How many left?", "10", "As 3-1 = 2 that is 12-2 = 10 nuts"),
    ]
    assert (one.answer, one.depth, two.parts, two.depth) == ("1010", 2, (), 2)
    with pytest.raises(InputError, match=r"rows.jsonl:1: field 'answer' does not end"):
        read_gsm8k(_file(tmp_path, {"question": "Q?", "answer": "10"}))


def test_human_steps_are_scaffolded_by_template(tmp_path: Path) -> None:
    good = "How many? ** 3*4=<<3*4=12>>12\nHow many left? ** 12-2 = <<12-2=10>>10\n#### 10.0"
    wrong = good.replace("10.0", "11")
    single = "How many? ** 3*4=<<3*4=12>>12\n#### 12"
    rows = [{"question": "Nuts?", "answer": a} for a in (good, wrong, single, "None ** here\n#### 2")]
    items, dropped = scaffolds.from_cases(read_gsm8k(_file(tmp_path, *rows)))
    assert [d["reason"].split(":")[0] for d in dropped] == ["last-answer-differs", "single-step", "step-without-value"]
    (item,) = items
    assert item.scaffolds == ("Known: How many? 12. Nuts?",) and item.teacher == "human"
    assert item.steps[1].task == "Situation: Nuts?\nKnown: How many? 12.\nAnswer only this: How many left?"


def test_all_of_gsm8k_socratic_is_read(shared: Path) -> None:
    cases = read_gsm8k(shared / "data" / "gsm8k_test_socratic.jsonl")
    depths = Counter(c.depth for c in cases)
    assert depths == {2: 326, 3: 370, 4: 298, 5: 174, 6: 88, 7: 40, 8: 20, 9: 2, 11: 1}
    assert sum(bool(c.parts) for c in cases) == 1041
    items, dropped = scaffolds.from_cases(cases)
    assert (len(items), len(dropped)) == (1037, 282)


def test_math_answers_come_out_of_their_box(tmp_path: Path) -> None:
    assert boxed(r"so \boxed{1} or \boxed{\frac{a_{1}}{2}}.") == r"\frac{a_{1}}{2}"
    assert boxed(r"set \boxed{\{1, 2\}} it is") == r"\{1, 2\}"
    assert boxed(r"no \boxed{end") is None and boxed("none") is None
    rows = [
        {"problem": "P?", "solution": r"It is $\boxed{\sqrt{2}}$.", "level": "Level 5", "type": "Algebra"},
        {"problem": "R?", "solution": r"\boxed{7}", "level": "Level 1", "type": "Geometry"},
    ]
    path = _file(tmp_path, *rows)
    assert [(c.answer, c.answer_type, c.domain) for c in load(f"math-hard:{path}")] == [
        (r"\sqrt{2}", "number", "Algebra"),
        ("7", "number", "Geometry"),
    ]
    for n, level in enumerate(("Level 5", "Level 1")):
        assert read_math_hard(path, [level]) == [read_math_hard(path)[n]], "a case is the same whatever else is read"
    with pytest.raises(InputError, match="no problem is of Level 9"):
        read_math_hard(path, ["Level 9"])
    ids = ({"id": "x", "unique_id": "u"}, {"unique_id": "u"}, {}, *({"id": v} for v in (0, 1.0, None, False, " ")))
    named = _file(tmp_path, *({"problem": "P?", "answer": "7", **given} for given in ids), name="own.jsonl")
    assert [c.id for c in read_math_hard(named)] == ["x", "u", "own-0002", "0", "1", "own-0005", "own-0006", "own-0007"]
    abouts = [{"type": "Algebra", "subject": "x"}, {"subject": "Number Theory"}, {}]  # MATH-500 calls it subject
    rows = [{"question": "P?", "answer": "7", "solution": f"see {i}", "level": i, **a} for i, a in enumerate(abouts)]
    found = read_math_hard(_file(tmp_path, *rows, name="about.jsonl"))
    assert [(c.domain, c.worked, c.meta) for c in found] == [
        ("Algebra", "see 0", {"level": 0}), ("Number Theory", "see 1", {"level": 1}), (None, "see 2", {"level": 2})
    ]  # fmt: skip
    with pytest.raises(InputError, match="no \\\\boxed"):
        read_math_hard(_file(tmp_path, {"problem": "P?", "solution": "7"}))


def test_test_of_time_labels_are_unpacked(tmp_path: Path) -> None:
    rows = [
        {"question": "When?", "label": '{"answer": "1986-06-25"}', "question_type": "add_subtract"},
        {"question": "How many?", "label": "{'answer': 4}", "question_type": "schedule"},
        {"question": "Order?", "label": '["May", "June"]', "question_type": "compare", "split": "test"},
        {"question": "Who?", "answer": "Ann"},
        {"question": "How deep?", "answer": "[" * 5000},
    ]
    cases = load(f"tot:{_file(tmp_path, *rows)}")
    assert [(c.answer, c.answer_type, c.family) for c in cases] == [
        ("1986-06-25", "date", "add_subtract"),
        ("4", "number", "schedule"),
        ("May; June", "list", "compare"),
        ("Ann", "text", None),
        ("[" * 5000, "text", None),
    ]
    assert cases[2].meta == {"split": "test"}


def test_stad_records_become_cases_and_records_again(tmp_path: Path) -> None:
    path = _file(tmp_path, {**RECORD, "note": "kept"}, name="nuts_final.jsonl")
    (case,) = load(f"stad:{path}")
    assert [(p.question, p.answer) for p in case.parts] == list(
        zip(RECORD["decompositions"], ("12", "10"), strict=True)
    )
    assert case.meta["scaffolds"] == RECORD["scaffolding"]
    assert case.meta["placeholders"] == ["Ann has [VALUE] nuts and eats 2. How many are left?"]
    assert (case.id, case.answer, case.depth, case.meta["note"]) == ("nuts-0000", "10", 2, "kept")
    (item,) = read_items(path)
    back = record_from_item(item)
    assert {k: back[k] for k in RECORD if k != "sub-task-answer"} == {
        k: v for k, v in RECORD.items() if k != "sub-task-answer"
    }
    assert [a["answer"] for a in back["sub-task-answer"]] == ["12", "10"]


@pytest.mark.parametrize(("n", "said"), [(1, "1 answers for 2 sub-tasks"), (3, "3 answers for 2 sub-tasks")])
@pytest.mark.parametrize("left_out", [(), ("scaffolding", "scaffolding_verification"), ("decompositions",)])
def test_more_or_fewer_answers_than_sub_tasks_are_a_problem_whatever_stages_follow(
    n: int, said: str, left_out: tuple[str, ...], tmp_path: Path
) -> None:
    row = {k: v for k, v in RECORD.items() if k not in left_out} | {"sub-task-answer": [{"answer": "12"}] * n}
    path = _file(tmp_path, row)
    (item,), (case,) = read_items(path), read_stad(path)
    assert item.problem == case.meta["problem"] == said
    assert (case.question, case.parts) == (RECORD["question"], ())


@pytest.mark.parametrize("longer", ["12,000", "3,012", "12.5"])
def test_a_value_inside_a_longer_number_is_not_blanked(longer: str, tmp_path: Path) -> None:
    answers = [{"answer": "012" if longer == "3,012" else "12"}, {"answer": "10"}]
    record = {**RECORD, "sub-task-answer": answers, "scaffolding": [f"Ann has {longer} nuts. How many are left?"]}
    (case,) = read_stad(_file(tmp_path, record))
    assert case.meta["placeholders"][0].startswith("Known: ")


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"sub-task-answer": RECORD["sub-task-answer"][:1]}, "1 answers for 2 sub-tasks"),
        ({"sub-task-answer": [{}, {"answer": 10}]}, "1 answers for 2 sub-tasks"),
        (
            {name: RECORD[name] * 2 for name in RECORD if name not in ("question", "answer", "scaffolding")},
            "1 scaffolding for 4 sub-tasks; there are K-1",
        ),
        ({"scaffolding": ["a", "b"]}, "2 scaffolding for 2 sub-tasks; there are K-1"),
        ({"scaffolding": [None]}, "an empty scaffold"),
        ({"sub-task": [], "sub-task-answer": []}, "2 decompositions for 0 sub-tasks"),
        ({"sub-task": [], "sub-task-answer": [], "decompositions": []}, "1 scaffolding for 0"),
        ({"decompositions": [*RECORD["decompositions"], "Are any left?"]}, "3 decompositions for 2 sub-tasks"),
    ],
)
def test_stages_that_do_not_fit_are_seen_and_never_cut(tmp_path: Path, change: dict[str, Any], problem: str) -> None:
    (case,) = read_stad(_file(tmp_path, {**RECORD, **change}))
    assert case.parts == ()
    assert problem in case.meta["problem"]


def test_records_without_question_or_with_other_types_name_the_line(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"rows.jsonl:2: fields question and answer"):
        read_stad(_file(tmp_path, RECORD, {"question": "Q?"}))
    with pytest.raises(InputError, match="field 'sub-task' is str"):
        read_stad(_file(tmp_path, {**RECORD, "sub-task": "Count"}))


def test_evaluated_records_become_graded_rows_in_both_shapes(tmp_path: Path) -> None:
    solved = {**RECORD, "evaluation": "10", "evaluation_score": 1}
    failed = {
        **RECORD,
        "evaluation": "9",
        "evaluation_score": "0",
        "decomposition_evaluation": ["12", "9"],
        "decomposition_score": {"decomposition": [1, 0]},
        "scaffolding_evaluation": ["10"],
        "scaffolding_score": {"scores": [1]},
    }
    broken = {**RECORD, "evaluation": "?", "evaluation_score": -1}
    found = read_stad_results(_file(tmp_path, solved, failed, broken), Options(model="m"))
    rows, warnings = found.rows, found.warnings
    outcomes = {(r.case[-1], r.role): r.outcome for r in rows}
    assert outcomes == {
        ("0", "whole"): "correct",
        ("1", "whole"): "incorrect",
        ("1", "part:0"): "correct",
        ("1", "part:1"): "incorrect",
        ("1", "scaffold:1"): "correct",
        ("2", "whole"): "invalid",
    }
    golds = {r.role: r.gold for r in rows if r.case.endswith("1")}
    assert golds == {"whole": "10", "part:0": "12", "part:1": "10", "scaffold:1": "10"}
    assert [w.split(": ")[1] for w in warnings] == [
        "1 evaluation_score values are text; read as numbers",
        "1 originals were not judged; invalid, not wrong",
    ]
    found = {m.metric: m for m in metrics_from_rows(rows, "scaffolding").metrics if not m.group.get("skill")}
    assert (found["mean_k"].value, found["mean_k"].n) == (1.0, 1)
    with pytest.raises(InputError, match="2 scores in scaffolding_score for 1"):
        read_stad_results(_file(tmp_path, {**failed, "scaffolding_score": [1, 1]}))
    with pytest.raises(InputError, match="no record has evaluation_score"):
        read_stad_results(_file(tmp_path, RECORD))


def test_the_released_sample_is_read(shared: Path) -> None:
    cases = read_stad(shared / "data" / "stad_sample.jsonl")
    assert [(c.answer, c.answer_type) for c in cases] == [
        ("1", "number"),
        ("1", "number"),
        ("0", "number"),
        ("3", "number"),
    ]


@pytest.mark.parametrize("label", [{}, {"label": None}, {"label": ""}, {"label": "", "answer": "4"}])
def test_a_row_without_an_answer_is_refused_with_its_fields(tmp_path: Path, label: dict[str, Any]) -> None:
    path = _file(tmp_path, {"question": "When?", "answer": "1"}, {"question": "How many?", **label})
    with pytest.raises(InputError, match=r"rows\.jsonl:2: fields 'label' and 'answer'"):
        load(f"tot:{path}")


def test_a_check_that_is_no_object_is_none(tmp_path: Path) -> None:
    (item,) = read_items(_file(tmp_path, {**RECORD, "scaffolding_verification": ["right"]}))
    assert item.checks == (None,)
    said = {"true": True, "1.0": True, "False": False, 0.0: False, "-1": None, None: None, "": None}
    assert {value: score(value) for value in said} == said
    (item,) = read_items(_file(tmp_path, {**RECORD, "scaffolding_verification": [{"score": "-1"}]}))
    assert [(c.text, c.verdict) for c in item.checks if c] == [("", None)]


def test_a_stage_that_is_not_done_for_every_step_is_not_written(tmp_path: Path) -> None:
    (item,) = read_items(_file(tmp_path, {**RECORD, "sub-task-answer": RECORD["sub-task-answer"][:1]}))
    assert record_from_item(item).keys() == {*RECORD, "id"} - {"sub-task-answer"}
