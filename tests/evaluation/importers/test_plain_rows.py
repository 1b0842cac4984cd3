"""Plain (question, response, gold) rows, and stored responses graded again with our rules."""

from __future__ import annotations

import csv
import json
import zipfile
from pathlib import Path
from typing import Any

import pytest

from composcope.errors import InputError
from composcope.evaluation.importers import Options, detect, read
from composcope.evaluation.importers.base import disagreement_lines, regrade
from composcope.evaluation.protocols import metrics_from_rows

ROWS: list[dict[str, Any]] = [
    {"case": "a", "role": "part:0", "question": "2 + 2?", "response": "It is 4.", "gold": "4", "right": True},
    {"case": "a", "role": "part:1", "question": "4 * 2?", "response": "So the final answer is: 9", "gold": 8,
     "right": False},
    {"case": "a", "role": "whole", "question": "(2 + 2) * 2?", "response": "The answer is 8.", "gold": ["8", "eight"],
     "right": False},
]  # fmt: skip


def lines(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(r) + "\n" for r in rows), encoding="utf-8")
    return path


def table(path: Path, rows: list[dict[str, Any]]) -> Path:
    columns = list(dict.fromkeys(k for r in rows for k in r))
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, columns)
        writer.writeheader()
        writer.writerows(rows)
    return path


def test_stored_verdicts_are_kept_and_json_lines_lists_and_tables_read_alike(tmp_path: Path) -> None:
    document = tmp_path / "m.json"
    document.write_text(json.dumps(ROWS))
    files = [lines(tmp_path / "m.jsonl", ROWS), document, table(tmp_path / "m.csv", ROWS)]
    assert [detect(f) for f in files] == ["rows"] * 3
    first, *others = (read(f, options=Options(model="m")).rows for f in files)
    assert all(other == first for other in others)
    assert [(r.case, r.role, r.outcome, r.gold) for r in first] == [
        ("a", "part:0", "correct", "4"),
        ("a", "part:1", "incorrect", "8"),
        ("a", "whole", "incorrect", "8 | eight"),
    ]
    assert first[0].extra == {"source": {"question": "2 + 2?"}} and first[0].benchmark == "m"


def test_rows_without_a_verdict_are_graded_by_our_rules_and_that_is_said(tmp_path: Path) -> None:
    rows = [{k: v for k, v in r.items() if k != "right"} for r in ROWS]
    rows += [
        {"case": "b", "response": "Paris, in 1900.", "gold": "yes", "answer_type": "boolean"},
        {"case": "c", "response": "", "gold": "4"},
        {"case": "d", "response": "Rome", "gold": "Rome", "format": "xml"},
        {"case": "e", "response": "Long ago there were 3", "gold": "4", "finish_reason": "length"},
    ]
    path = lines(tmp_path / "m.jsonl", rows)
    found = read(path)
    assert [r.outcome for r in found.rows] == [
        "correct", "incorrect", "correct", "invalid", "invalid", "invalid", "invalid"
    ]  # fmt: skip
    assert [r.reason for r in found.rows[-3:]] == ["empty", "no-answer-tag", "truncated"]
    assert [r.prompt for r in found.rows[-3:]] == [None, "xml", None]
    assert found.warnings[0] == f"{path}: 7 rows have no stored verdict and were graded by our rules"


def test_rows_that_name_nothing_are_wholes_of_cases_named_after_file_and_line(tmp_path: Path) -> None:
    path = lines(tmp_path / "log.jsonl", [{"response": "4", "gold": "4"}, {"id": "q7", "response": "5", "gold": "4"}])
    found = read(path)
    assert [(r.case, r.role) for r in found.rows] == [("log-00000", "whole"), ("q7", "whole")]
    assert [w for w in found.warnings if f"{path}:1: no case and no id; 1 of 2" in w]
    some = lines(tmp_path / "some.jsonl", [{"id": "a", "role": "part:0", "response": "4", "gold": "4"},
                                           {"id": "a", "response": "4", "gold": "4"}])  # fmt: skip
    assert [w for w in read(some).warnings if f"{some}:2: no role; 1 of 2" in w]
    odd = lines(tmp_path / "odd.jsonl", [{"id": "odd-00000", "role": "part:0", "response": "4", "gold": "4"},
                                         {"id": "a", "role": ["part:0"], "response": "4", "gold": "4"}])  # fmt: skip
    said = read(odd).warnings
    assert not [w for w in said if "no case" in w] and [w for w in said if f"{odd}:2: no role; 1 of 2" in w]
    none = read(lines(tmp_path / "none.jsonl", [{"response": "4", "gold": "4", "right": True}] * 2))
    assert none.warnings == [], "a file in which no row names its case or role has them by their order"
    same = lines(tmp_path / "same.jsonl", [{"id": "a", "response": r, "gold": "4"} for r in ("4", "5")])
    with pytest.raises(InputError, match=r"same\.jsonl:2: case 'a' has role 'whole' twice .*same\.jsonl:1"):
        read(same)
    as_parts = read(path, options=Options(role="part:0", model="m")).rows
    assert [(r.role, r.model) for r in as_parts] == [("part:0", "m")] * 2
    twice = lines(tmp_path / "twice.jsonl", [{"case": "a", "response": "4", "gold": "4", "repeat": i} for i in (0, 1)])
    assert [r.repeat for r in read(twice).rows] == [0, 1]


def test_fields_of_other_names_are_named_by_the_user(tmp_path: Path) -> None:
    row = {"question": "q", "output": "4", "answer": "4", "score": 0.0, "item": "i1", "correct": True}
    path = lines(tmp_path / "m.jsonl", [row])
    options = Options(response_field="output", gold_field="answer", scorer="score", case_field="item")
    [got] = read(path, "rows", options).rows
    assert (got.case, got.outcome, got.match) == ("i1", "incorrect", "score")
    assert got.extra == {"source": {"question": "q", "correct": True}}
    again = {"response": "4", "gold": "4", "asked as": "part:1", "item": "i1", "repeat": 2.0, "depth": "3", "note": "n"}
    path = lines(tmp_path / "n.jsonl", [again, {**again, "repeat": "1"}])
    found = read(path, "rows", Options(case_field="item", role_field="asked as")).rows
    assert [(r.case, r.role, r.repeat, r.depth) for r in found] == [("i1", "part:1", 2, 3), ("i1", "part:1", 1, 3)]
    assert [r.extra for r in found] == [{"source": {"note": "n"}}] * 2


@pytest.mark.parametrize(
    ("row", "options", "said"),
    [
        ({"respons": "4", "gold": "4"}, {}, "field 'response' is missing; did you mean 'respons'?"),
        (
            {"response": "4", "golden": "4"},
            {},
            "field 'gold' is missing; did you mean 'golden'? it has golden, response",
        ),
        ({"response": ["4"], "gold": "4"}, {}, "field 'response' is list; give the response as text"),
        ({"response": "4", "gold": ""}, {}, "field 'gold' is empty"),
        ({"response": "4", "gold": {"a": 1}}, {}, "field 'gold' is {'a': 1}"),
        ({"response": "4", "gold": [4, float("nan")]}, {}, "field 'gold' is [4, nan]"),
        ({"response": "4", "gold": "4", "answer_type": "numbers"}, {}, "answer_type is 'numbers'; use one of text"),
        ({"response": "4", "gold": "4", "format": "yaml"}, {}, "format is 'yaml'; use one of plain"),
        ({"response": "4", "gold": "4", "finish_reason": "eos"}, {}, "finish_reason is 'eos'; use one of stop"),
        ({"response": "4", "gold": "4", "right": "maybe"}, {}, "right is 'maybe', not a right-or-wrong verdict"),
        ({"response": "4", "gold": "4", "right": 1, "correct": 0}, {}, "has the verdicts right, correct; choose one"),
        ({"response": "4", "gold": "4"}, {"scorer": "em"}, "--scorer em: no such field"),
        ({"response": "4", "gold": "4", "depth": "two"}, {}, "depth is 'two'"),
    ],
)
def test_a_row_that_cannot_be_used_is_named(
    tmp_path: Path, row: dict[str, Any], options: dict[str, Any], said: str
) -> None:
    path = lines(tmp_path / "m.jsonl", [{"response": "4", "gold": "4", **dict.fromkeys(options.values(), "1")}, row])
    with pytest.raises(InputError) as error:
        read(path, "rows", Options(**options))
    assert str(error.value).startswith(f"{path}:2: {said}") and "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ({"gold": "four", "answer_type": "number", "aliases": ["a few"]}, ", gold answer: field 'aliases' has 'a few'"),
        ({"gold": "2020-02-30", "answer_type": "date"}, ", gold answer: field 'answer' is '2020-02-30'"),
        ({"gold": "Z", "answer_type": "choice", "options": ["x", "y"]}, ": gold answer 'Z' is not one of the options"),
    ],
)
def test_a_gold_answer_that_nothing_can_match_is_refused_with_its_row(
    tmp_path: Path, row: dict[str, Any], said: str
) -> None:
    path = lines(tmp_path / "m.jsonl", [{"response": "4", **row}])
    with pytest.raises(InputError) as error:
        read(path)
    assert str(error.value).startswith(f"{path}:1{said}")


def test_what_a_data_frame_lacks_is_missing_in_samples_of_other_programs_too(tmp_path: Path) -> None:
    sample = {"doc_id": 0, "doc": {"case": "c", "depth": "2.0", "nr": float("nan")}, "target": "4", "resps": [["4"]]}
    path = lines(tmp_path / "samples_t.jsonl", [{**sample, "acc": float("nan")}])
    (found,) = read(path).rows
    assert (found.depth, found.outcome, found.reason) == (2, "invalid", "score acc is nan")
    with pytest.raises(InputError, match="--case-field nr: no such field"):
        read(path, options=Options(case_field="nr"))
    odd = lines(tmp_path / "odd.jsonl", [{"question": "2 + 2?", "answer": "4", "response": "4"}])
    with pytest.raises(InputError, match=r"none of the known kinds \(it has the fields answer, question, response\)"):
        detect(odd)


@pytest.mark.parametrize(("field", "value"), [("role", "scaffold:x"), ("depth", -3)])
def test_a_row_that_could_not_be_read_back_is_refused(tmp_path: Path, field: str, value: Any) -> None:
    sample = {"doc_id": 0, "doc": {"case": "c", field: value}, "target": "4", "resps": [["4"]], "acc": 1.0}
    with pytest.raises(InputError, match=rf"case 'c': {field} is '?{value}"):
        read(lines(tmp_path / "samples_t.jsonl", [sample]))


def test_an_empty_cell_is_an_empty_response_and_a_missing_column_is_none(tmp_path: Path) -> None:
    rows = [{"response": "4", "gold": "4", "right": True, "depth": 2}, {"response": "", "gold": "4"}]
    path = table(tmp_path / "m.csv", rows)
    found = read(path).rows
    assert [(r.outcome, r.reason, r.depth) for r in found] == [("correct", None, 2), ("invalid", "empty", None)]
    assert [(r.outcome, r.reason) for r in read(path, options=Options(scorer="right")).rows] == [
        ("correct", None),
        ("invalid", None),
    ]
    for name, none in (("g.csv", ""), ("g.jsonl", None)):
        bare = [{"response": "4", "gold": gold, "right": True} for gold in (none, "4")]
        path = (table if name.endswith("csv") else lines)(tmp_path / name, bare)
        got = read(path, "rows", Options(scorer="right"))
        assert [(r.outcome, r.gold) for r in got.rows] == [("correct", None), ("correct", "4")]
        assert [stored is None for stored in got.stored] == [True, False]
    with pytest.raises(InputError, match=r"m.csv:2: field 'gold' is missing"):
        read(table(tmp_path / "m.csv", [{"response": "4"}]), "rows")


def test_a_missing_response_is_invalid_however_it_is_written_and_the_question_counts(tmp_path: Path) -> None:
    asked = {"gold": "2.25", "question": "How many metres are 225 cm?"}
    rows = [{**asked, "response": r} for r in (None, float("nan"), "", "225 cm", "2.25")]
    found = read(lines(tmp_path / "n.jsonl", rows), "rows").rows
    assert [r.outcome for r in found] == ["invalid"] * 3 + ["incorrect", "correct"]
    whose = "Sam has 14 marbles, and Tina three times as many. How many marbles does Tina have?"
    both = {"response": "Tina has 42 and Sam has 14.", "gold": "42", "answer_type": "number"}
    (hers, any_) = read(lines(tmp_path / "w.jsonl", [{**both, "question": whose}, both]), "rows").rows
    assert (hers.outcome, any_.outcome) == ("correct", "invalid")
    del asked["question"]
    (unasked,) = read(lines(tmp_path / "u.jsonl", [{**asked, "response": "225 cm"}]), "rows").rows
    assert unasked.outcome != "correct"


def test_what_a_data_frame_has_no_value_for_is_missing(tmp_path: Path) -> None:
    none = dict.fromkeys(
        ("id", "model", "answer_type", "aliases", "depth", "finish_reason", "right", "note"), float("nan")
    )
    (found,) = read(lines(tmp_path / "n.jsonl", [{"response": "5", "gold": "5", **none}]), "rows").rows
    assert (found.outcome, found.case, found.model, found.depth, found.gold) == ("correct", "n-00000", None, None, "5")
    (open_,) = read(
        lines(tmp_path / "o.jsonl", [{"response": "5", "gold": "5", **none}]), "rows", Options(scorer="right")
    ).rows
    assert open_.outcome == "invalid"
    with pytest.raises(InputError, match=r"g.jsonl:1: field 'gold' is None"):
        read(lines(tmp_path / "g.jsonl", [{"response": "5", "gold": float("nan")}]), "rows")


def test_whole_numbers_of_a_table_may_end_in_a_point_and_a_zero(tmp_path: Path) -> None:
    rows = [
        {"case": c, "response": "4", "gold": "4", "right": r, "depth": "2.0"} for c, r in (("a", "1.0"), ("b", "0.0"))
    ]
    found = read(table(tmp_path / "m.csv", rows)).rows
    assert [(r.outcome, r.depth) for r in found] == [("correct", 2), ("incorrect", 2)]


def test_a_letter_stands_for_the_option_that_a_row_says(tmp_path: Path) -> None:
    row = {"case": "a", "response": "B", "gold": "Paris", "answer_type": "choice", "options": ["Rome", "Paris"]}
    for path in (lines(tmp_path / "m.jsonl", [row, {**row, "case": "b", "response": "A"}]),
                 table(tmp_path / "m.csv", [row, {**row, "case": "b", "response": "A"}])):  # fmt: skip
        assert [r.outcome for r in read(path).rows] == ["correct", "incorrect"]
    said = lines(tmp_path / "s.jsonl", [{k: v for k, v in row.items() if k != "answer_type"}])
    assert [r.outcome for r in read(said, options=Options(answer_type="choice")).rows] == ["correct"]
    other = {**row, "answer_type": "text", "options": "of the sampler"}
    assert read(lines(tmp_path / "n.jsonl", [other])).rows[0].extra == {"source": {"options": "of the sampler"}}


def test_a_quote_in_the_header_that_never_ends_is_named(tmp_path: Path) -> None:
    path = tmp_path / "m.csv"
    path.write_text('response,"gold\n' + "4,4\n" * 40_000)
    with pytest.raises(InputError, match=r"m\.csv:1: not valid CSV"):
        detect(path)


def test_a_response_of_a_million_characters_is_read_from_a_table(tmp_path: Path) -> None:
    path = table(tmp_path / "m.csv", [{"response": "[1] " + "word " * 200_000 + "[4]", "gold": "4"}])
    assert len(str(read(path).stored[0].response)) > 1_000_000  # type: ignore[union-attr]


def test_verdicts_that_differ_from_ours_are_listed_item_by_item(tmp_path: Path) -> None:
    open_ = {"case": "o", "response": "It is 4.", "gold": "4", "right": "invalid"}
    path = lines(tmp_path / "m.jsonl", [*ROWS, {"response": "no number", "gold": "4", "right": True}, open_])
    options = Options(regrade=True, answer_type="number")
    found = regrade(read(path, options=options), options)
    assert [r.outcome for r in found.rows] == ["correct", "incorrect", "correct", "invalid", "correct"]
    stored = ["correct", "incorrect", "incorrect", "correct", "invalid"]
    assert [r.extra["stored_outcome"] for r in found.rows] == stored
    assert found.table == {
        "correct -> correct": 1, "correct -> invalid": 1, "incorrect -> correct": 1, "incorrect -> incorrect": 1,
        "invalid -> correct": 1,
    }  # fmt: skip
    assert [(d["where"], d["case"], d["role"], d["stored"], d["ours"], d["answer"]) for d in found.disagreements] == [
        (f"{path}:3", "a", "whole", "incorrect", "correct", "8"),
        (f"{path}:4", "m-00003", "whole", "correct", "invalid", None),
        (f"{path}:5", "o", "whole", "invalid", "correct", "4"),
    ]
    assert disagreement_lines(found.table, found.disagreements, 9)[1].startswith("1 verdict differs; 2 more")
    long = [{**one, "response": "Well. " * 50 + "It is 9."} for one in found.disagreements]
    assert disagreement_lines(found.table, long, 9)[-1].endswith("Well. It is 9."), "a conclusion is at the end"
    bare = read(lines(tmp_path / "bare.jsonl", [{"response": "4", "gold": "4"}]), options=options)
    again = regrade(bare, options)
    assert (again.table, again.not_graded) == ({}, 0)  # nothing stored, nothing to compare with
    assert found.disagreements[0]["gold"] == ["8", "eight"] and found.disagreements[0]["response"] == "The answer is 8."


def test_the_type_of_the_golds_decides_where_neither_row_nor_user_says_it(tmp_path: Path) -> None:
    rows = [
        {"response": "That was on 3 May 1901.", "gold": "May 3, 1901", "right": False},
        {"response": "They sell 1,200 of them.", "gold": "1200", "right": False},
        {"response": "Yes, they do.", "gold": "yes", "right": False},
        {"response": "1200", "gold": ["1200", "a dozen hundred"], "right": False},
    ]
    options = Options(regrade=True)
    found = regrade(read(lines(tmp_path / "m.jsonl", rows), options=options), options)
    assert [(d["answer_type"], d["ours"]) for d in found.disagreements] == [
        ("date", "correct"), ("number", "correct"), ("boolean", "correct"), ("text", "correct")
    ]  # fmt: skip


def test_the_type_that_a_row_says_wins_over_the_users(tmp_path: Path) -> None:
    rows = [
        {"response": "That was on 3 May 1901.", "gold": "May 3, 1901", "right": False, "answer_type": "date"},
        {"response": "They sell 1,200 of them.", "gold": "1200", "right": False},
    ]
    options = Options(regrade=True, answer_type="number")
    found = regrade(read(lines(tmp_path / "m.jsonl", rows), options=options), options)
    assert [(d["answer_type"], d["ours"]) for d in found.disagreements] == [("date", "correct"), ("number", "correct")]


def test_naming_the_field_of_the_response_or_of_the_gold_says_that_a_file_holds_rows(tmp_path: Path) -> None:
    path = table(tmp_path / "log.csv", [{"id": "a", "prompt": "2 + 2?", "completion": "It is 4.", "target": "4"}])
    with pytest.raises(InputError, match="none of the known kinds"):
        read(path)
    options = Options(response_field="completion", gold_field="target")
    assert [(r.case, r.outcome) for r in read(path, None, options).rows] == [("a", "correct")]
    assert detect(path, Options(gold_field="target")) == "rows"


def test_responses_of_every_kind_of_file_can_be_graded_again(tmp_path: Path) -> None:
    lm_eval = {"doc_id": 0, "doc": {"question": "?"}, "target": "Two and ten.\n#### 12", "resps": [["It is 12."]],
               "filtered_resps": ["12."], "metrics": ["exact_match"], "exact_match": 0.0}  # fmt: skip
    choice = {**lm_eval, "doc_id": 1, "target": "0", "resps": [[["-1.0", "False"]], [["-2.0", "False"]]]}
    samples = lines(tmp_path / "samples_gsm_2025-01-02T03-04-05.678.jsonl", [lm_eval, choice])
    output = {"completion": "The answer is 7.", "choices": [{"stop_reason": "stop"}]}
    log = {"version": 2, "eval": {"task": "t", "model": "m"}, "samples": [
        {"id": 1, "epoch": 1, "target": "7", "output": output, "scores": {"match": {"value": "I"}}},
        {"id": 2, "epoch": 1, "target": "7", "output": output, "error": "lost", "scores": {}},
        {"id": 3, "epoch": 1, "target": "7", "scores": {"match": {"value": "C"}},
         "output": {"completion": "There were 7", "choices": [{"stop_reason": "max_tokens"}]}},
    ]}  # fmt: skip
    with zipfile.ZipFile(tmp_path / "log.eval", "w") as archive:
        archive.writestr("header.json", json.dumps({k: v for k, v in log.items() if k != "samples"}))
        for sample in log["samples"]:  # type: ignore[union-attr]
            archive.writestr(f"samples/{sample['id']}_epoch_1.json", json.dumps(sample))  # type: ignore[index]
    stad = {"question": "q", "answer": 3, "evaluation": "It is 3.", "evaluation_score": 0}
    options = Options(regrade=True)
    outcomes = {}
    for path in (samples, tmp_path / "log.eval", lines(tmp_path / "set_scored.jsonl", [stad])):
        found = regrade(read(path, options=options), options)
        outcomes[path.suffix + path.stem[:3]] = ([r.outcome for r in found.rows], found.not_graded)
    assert outcomes == {
        ".jsonlsam": (["correct", "incorrect"], 1),
        ".evallog": (["correct", "invalid", "invalid"], 1),
        ".jsonlset": (["correct"], 0),
    }


@pytest.mark.parametrize(
    ("stopped", "outcome"), [("stop", "correct"), ("max_tokens", "invalid"), ("model_length", "invalid")]
)
def test_a_completion_that_ran_into_the_limit_or_the_context_is_graded_as_cut_off(
    stopped: str, outcome: str, tmp_path: Path
) -> None:
    output = {"completion": "There were 7", "choices": [{"stop_reason": stopped}]}
    sample = {"id": 1, "target": "7", "output": output, "scores": {"m": {"value": "C"}}}
    path = tmp_path / "log.json"
    path.write_text(json.dumps({"version": 2, "eval": {"task": "t"}, "samples": [sample]}))
    options = Options(regrade=True)
    assert [r.outcome for r in regrade(read(path, options=options), options).rows] == [outcome]


@pytest.mark.parametrize(
    ("target", "golds"),
    [
        ("['Lewis', \"O'Neil\"]", ("Lewis", "O'Neil")),
        (["Lewis", "O'Neil"], ("Lewis", "O'Neil")),
        ("[-2, 7]", ("[-2, 7]",)),
        ("['", ("['",)),
    ],
)
def test_a_target_of_the_harness_that_lists_answers_accepts_each_of_them(
    target: Any, golds: tuple[str, ...], tmp_path: Path
) -> None:
    sample = {"doc_id": 0, "doc": {}, "target": target, "resps": [["x"]], "filtered_resps": ["x"], "exact_match": 0.0}
    stored = read(lines(tmp_path / "samples_trivia.jsonl", [sample])).stored
    assert [s and s.golds for s in stored] == [golds]


@pytest.mark.parametrize("target", ["B", "Paris"])
def test_of_a_log_with_choices_the_letter_and_the_text_of_the_target_are_right(target: str, tmp_path: Path) -> None:
    samples = [{"id": i, "target": target, "choices": ["Rome", "Paris"], "output": {"completion": text},
                "scores": {"m": {"value": "C"}}} for i, text in enumerate(("ANSWER: B", "Paris", "Rome"))]  # fmt: skip
    path = tmp_path / "log.json"
    path.write_text(json.dumps({"version": 2, "eval": {"task": "t"}, "samples": samples}))
    options = Options(regrade=True)
    found = regrade(read(path, options=options), options).rows
    assert [r.outcome for r in found] == ["correct", "correct", "incorrect"]


def test_a_file_without_responses_cannot_be_graded_again(tmp_path: Path) -> None:
    log = {"version": 2, "eval": {"task": "t"}, "samples": [{"id": 1, "target": "7", "scores": {"m": {"value": "C"}}}]}
    path = tmp_path / "log.json"
    path.write_text(json.dumps(log))
    options = Options(regrade=True)
    with pytest.raises(InputError, match="--regrade: the file has no responses"):
        regrade(read(path, options=options), options)
    for wrong in (Options(answer_type="numbers"), Options(format="yaml")):
        with pytest.raises(InputError, match=r"--(answer-type|format) \w+: use one of"):
            read(lines(tmp_path / "m.jsonl", ROWS), options=wrong)


def test_imported_rows_go_through_a_protocol(tmp_path: Path) -> None:
    rows = read(lines(tmp_path / "m.jsonl", ROWS)).rows
    found = {m.metric: m.count for m in metrics_from_rows(rows, "compositionality-gap").metrics if not m.group}
    assert (found["step:0"], found["step:1"], found["composition"]) == (1, 0, 0)


@pytest.mark.parametrize("model", ["text-davinci-003", "gpt-3.5-turbo"])
def test_the_real_bamboogle_results_are_graded_again_row_by_row(shared: Path, model: str) -> None:
    options = Options(regrade=True)
    found = regrade(read(shared / f"data/bamboogle_results/{model}.json", options=options), options)
    assert len(found.rows) == 1125 and found.not_graded == 0 and sum(found.table.values()) == 1125
    different = sum(n for pair, n in found.table.items() if len(set(pair.split(" -> "))) == 2)
    assert len(found.disagreements) == different > 0
    assert all(d["where"].startswith(str(shared)) and d["response"] for d in found.disagreements)


@pytest.mark.parametrize(("name", "n"), [("numbers", 1551), ("booleans", 1224), ("texts", 1650)])
def test_the_labelled_answers_are_plain_rows(shared: Path, name: str, n: int) -> None:
    path = shared / f"data/answers/{name}.jsonl"
    assert detect(path) == "rows"
    found = read(path)
    labels = [json.loads(line)["right"] for line in path.read_text(encoding="utf-8").splitlines()]
    assert [r.outcome == "correct" for r in found.rows] == labels and len(labels) == n


@pytest.mark.parametrize(("response", "outcome"), [("helium and neon", "correct"), ("helium", "incorrect")])
@pytest.mark.parametrize("kind", ["list", "ordered-list"])
def test_a_list_of_gold_items_is_one_answer_where_a_list_is_asked_for(
    response: str, outcome: str, kind: str, tmp_path: Path
) -> None:
    row = {"case": "a", "role": "whole", "response": response, "gold": ["helium", "neon"]}
    path = lines(tmp_path / "m.jsonl", [row])
    assert [r.outcome for r in read(path, options=Options(answer_type=kind)).rows] == [outcome]
    lines(path, [{**row, "answer_type": kind}])
    assert [r.outcome for r in read(path).rows] == [outcome]


def test_items_of_a_gold_list_keep_their_commas(tmp_path: Path) -> None:
    row = {"response": "1. Paris, France\n2. Rome", "gold": ["Paris, France", "Rome"], "answer_type": "list"}
    assert [r.outcome for r in read(lines(tmp_path / "m.jsonl", [row])).rows] == ["correct"]


def test_rows_with_a_named_verdict_need_no_gold_answer(tmp_path: Path) -> None:
    path = tmp_path / "test_math.csv"
    path.write_text(",idx,generation,accuracy\n0,{0},It is 15.,1\n1,{1},It is 7.,0\n", encoding="utf-8")
    options = Options(response_field="generation", scorer="accuracy", case_field="idx", role="part:1")
    found = read(path, options=options)
    assert [(r.case, r.role, r.outcome, r.gold) for r in found.rows] == [
        ("{0}", "part:1", "correct", None),
        ("{1}", "part:1", "incorrect", None),
    ]
    assert not any(found.stored)
    with pytest.raises(InputError, match=r"test_math\.csv:2: field 'gold' is missing.*--gold-field.*--scorer"):
        read(path, options=Options(response_field="generation"))


@pytest.mark.parametrize(
    ("name", "said"), [("question_id", True), ("qid", True), ("index", True), ("Nr", True), ("paid", False)]
)
def test_a_field_that_may_name_the_case_is_pointed_out_where_nothing_does(
    name: str, said: bool, tmp_path: Path
) -> None:
    path = lines(tmp_path / "rows.jsonl", [{name: "q1", "response": "4", "gold": "4", "right": True}] * 2)
    assert any(f"if {name} names the case" in w for w in read(path).warnings) == said


@pytest.mark.parametrize(("kinds", "said"), [(("part:0", "whole"), True), (("part:0", "hop"), False)])
def test_a_field_that_may_hold_the_roles_is_pointed_out_where_nothing_does(
    kinds: tuple[str, str], said: bool, tmp_path: Path
) -> None:
    rows = [{"id": str(i), "Kind": kind, "response": "4", "gold": "4", "right": True} for i, kind in enumerate(kinds)]
    path = lines(tmp_path / "rows.jsonl", rows)
    assert any("--role-field" in w and "Kind" in w for w in read(path).warnings) == said
    named = read(path, options=Options(role_field="Kind"))
    assert named.warnings == [] and [r.role for r in named.rows] == list(kinds)


def test_a_case_has_one_name_whether_its_number_has_a_point_or_not(tmp_path: Path) -> None:
    rows = [{"case": case, "role": role, "response": "4", "gold": "4", "right": True}
            for case, role in ((7, "part:0"), (7.0, "part:1"), ("7", "whole"))]  # fmt: skip
    assert {r.case for r in read(lines(tmp_path / "rows.jsonl", rows)).rows} == {"7"}
    again = [{"nr": row.pop("case"), **row} for row in rows]
    assert {r.case for r in read(lines(tmp_path / "n.jsonl", again), options=Options(case_field="nr")).rows} == {"7"}


def test_what_a_row_says_about_its_case_counts_and_what_cannot_be_taken_is_kept(tmp_path: Path) -> None:
    about = {"family": 7, "cluster": 3, "atom": "f", "skills": ["s", "t"], "crossed": ["c"], "unknowable": True}
    about |= {"chance": 0.25, "depth_bin": 3}
    row = {"case": "a", "response": "4", "gold": "4", "depth": 2.0, "aliases": ["four"]}
    for path in (lines(tmp_path / "m.jsonl", [{**row, **about}]), table(tmp_path / "m.csv", [{**row, **about}])):
        (found,) = read(path).rows
        assert (found.family, found.cluster, found.atom, found.skills) == ("7", "3", "f", ("s", "t")), path
        assert (found.crossed, found.unknowable, found.depth, found.extra) == (("c",), True, 2, {}), path
        assert (found.chance, found.depth_bin, found.gold) == (0.25, 3, "4 | four"), path
    for chance in (25, True):
        odd = {"family": ["x"], "skills": [1], "chance": chance, "depth_bin": "deep"}
        (kept,) = read(lines(tmp_path / "n.jsonl", [{**row, **odd}])).rows
        assert (kept.family, kept.skills, kept.chance, kept.extra) == (None, (), None, {"source": odd})
