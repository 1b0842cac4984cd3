from __future__ import annotations

import csv
import gzip
import json
import re
from pathlib import Path

import pytest

from composcope.errors import InputError
from composcope.evaluation import text_files
from composcope.evaluation.cases import read_cases
from composcope.evaluation.graded import read_graded
from composcope.evaluation.importers.inspect_logs import read_inspect
from composcope.evaluation.importers.papers import read_bamboogle_results
from composcope.evaluation.journal import read_journal
from composcope.evaluation.protocols import presenting
from composcope.experiments.figures.training import read_checkpoints
from composcope.experiments.run import read_json, read_lines
from composcope.experiments.run.checks import read_labels
from composcope.experiments.run.reader import read_config

DEEP = "[" * 100_000
LONG = '{"id": ' + "9" * 5000 + "}"
BROKEN = [
    (DEEP.encode(), "nested too deeply"),
    (LONG.encode(), "digits"),
    (b'{"id": "\xff"}', "not UTF-8 (byte 0xff"),
    (b'{"id": "a", "answer": "1", "answer": "2"}', "field 'answer' occurs twice"),
    (b'{"id": ', "not valid JSON"),
]
IDS = ["deep", "digits", "bytes", "twice", "syntax"]
BY_LINE = [
    read_cases,
    read_graded,
    presenting.read,
    read_labels,
    read_lines,
    lambda path: list(text_files.objects(path, "rows")),
]
WHOLE = [
    read_json,
    read_bamboogle_results,
    read_inspect,
    lambda path: list(text_files.objects(path, "a list")),
    lambda path: read_checkpoints([path]),
]


@pytest.mark.parametrize("read", BY_LINE, ids=["cases", "graded", "few-shot", "labels", "run", "benchmarks"])
@pytest.mark.parametrize(("content", "said"), BROKEN, ids=IDS)
def test_every_reader_of_lines_names_file_and_line(read: object, content: bytes, said: str, tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_bytes(b"\n\n" + content + b"\n")
    with pytest.raises(InputError) as error:
        read(path)  # type: ignore[operator]
    place = r":3: |: item 0: "  # the second where the text begins a JSON list
    assert re.search(re.escape(str(path)) + f"(?:{place})", str(error.value)) and said in str(error.value)
    assert "\n" not in str(error.value) and len(str(error.value)) < 400


@pytest.mark.parametrize("read", WHOLE, ids=["run", "bamboogle", "inspect", "list", "checkpoints"])
@pytest.mark.parametrize(("content", "said"), BROKEN, ids=IDS)
def test_every_reader_of_documents_names_the_file(read: object, content: bytes, said: str, tmp_path: Path) -> None:
    path = tmp_path / "document.json"
    path.write_bytes(content)
    with pytest.raises(InputError) as error:
        read(path)  # type: ignore[operator]
    assert str(path) in str(error.value) and said in str(error.value)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (gzip.compress(b'{"id": "a"}'), "gzip"),
        ('{"id": "a"}'.encode("utf-16"), "UTF-16"),
        ('{"id": "a"}'.encode("utf-16-be"), "not valid JSON"),
        (b"PK\x03\x04\xff", "CSV in UTF-8"),
        (b"PK", "not valid JSON"),
    ],
    ids=["gzip", "UTF-16", "UTF-16 without a mark", "zip", "letters"],
)
def test_a_file_of_another_kind_is_called_by_its_name(content: bytes, said: str, tmp_path: Path) -> None:
    path = tmp_path / "cases.jsonl"
    path.write_bytes(content)
    with pytest.raises(InputError) as error:
        read_cases(path)
    assert str(path) in str(error.value) and said in str(error.value)


@pytest.mark.parametrize("content", ['{"a": {"id": 1}}', '{"a":\n [{"id": 1}]}', '{\n"id": "1",\n"of": "x"\n}\n'])
def test_a_file_that_is_one_object_is_said_to_be_one(content: str, tmp_path: Path) -> None:
    path = tmp_path / "rows.json"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(
        InputError, match=r"rows\.json: one JSON object \((a|id, of)\); write the records .* give a list"
    ):
        list(text_files.objects(path, "a list"))


@pytest.mark.parametrize("content", ['{"id": "1"}', '{"a": {"id": 1}}\n{"a": {"id": 2}}', "{}"])
def test_lines_of_objects_are_read_line_by_line(content: str, tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text(content, encoding="utf-8")
    assert [row for _, row in text_files.objects(path, "rows")] == [json.loads(line) for line in content.split("\n")]


def test_a_name_that_stands_twice_in_a_part_of_a_case_is_refused_too(tmp_path: Path) -> None:
    path = tmp_path / "cases.jsonl"
    path.write_text(
        '{"id": "a", "question": "q", "answer": "1"}\n'
        '{"id": "b", "question": "q", "answer": "1", "parts": [{"question": "p", "question": "r", "answer": "2"}]}\n'
    )
    with pytest.raises(InputError, match=r"cases\.jsonl:2: field 'question' occurs twice"):
        read_cases(path)


def test_a_folder_in_the_place_of_a_file_is_called_one(tmp_path: Path) -> None:
    for read in (read_cases, read_graded, read_json, read_bamboogle_results):
        with pytest.raises(InputError, match="is a folder, not a file"):
            read(tmp_path)


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
def test_a_byte_order_mark_comments_and_line_ends_of_other_systems_are_read(end: bytes, tmp_path: Path) -> None:
    path = tmp_path / "cases.jsonl"
    lines = (b'\xef\xbb\xbf{"id": "a", "question": "q", "answer": "1"}', b"", b"  # no case", b"# none")
    path.write_bytes(end.join((*lines, b'{"id": "b", "question": "q", "answer": "1"}', b"")))
    assert [c.id for c in read_cases(path)] == ["a", "b"]


@pytest.mark.parametrize("text", ["a: [1\n", "- 1\n", "", "a: " + "[" * 5000])
def test_options_of_a_run_that_cannot_be_read_are_an_error_that_names_them(text: str, tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text(text)
    with pytest.raises(InputError, match=r"config\.yaml: .*make the run again"):
        read_config(tmp_path)


def test_lines_of_a_journal_that_cannot_be_read_are_left_out_and_said(tmp_path: Path) -> None:
    damaged = [
        DEEP,
        LONG,
        '{"provenance": {}}',
        '{"key": "k", "response": []}',
        '{"key": "k", "response": {"text": 1}}',
    ]
    (tmp_path / "0001.jsonl").write_text("".join(line + "\n" for line in damaged))
    found = read_journal(tmp_path)
    said = [w for w in found.warnings if "damaged line left out" in w]
    assert found.responses == {} and len(said) == len(damaged)
    assert found.unsealed == ["0001.jsonl"]  # written without checksums, which is said too


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"a,b,a\n1,2,3\n", ":1: column 'a' occurs twice"),
        (b"a,,\n1,2,3\n", ":1: column '' occurs twice"),
        (b"a,b\n1,2\n1,2,3\n", ":3: 3 cells for 2 columns"),
        (b"a;b\n1;2\n", ": its cells are separated by semicolons"),
        (b"a\tb\n1\t2\n", ": its cells are separated by tabs"),
        (b"a,b\n", ": no rows"),
        (b"", ": no rows"),
        (b"a,b\n1,\xff\n", ":2: not UTF-8"),
        (b"a,b\n1," + b"x" * 200_000 + b"\n", ":2: not valid CSV"),
        (b'a,b\n1,2\n3,"4\n5,6\n7,8\n', ":3: not valid CSV"),
        (b'a,b\n1,2\n"3" and,4\n', ":3: '\"3\" and,4'... has text behind a closing quote; write quotes"),
    ],
)
def test_a_table_that_cannot_be_read_as_meant_is_refused(content: bytes, said: str, tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes(content)
    with pytest.raises(InputError) as error:
        text_files.table(path, "give a table")
    assert f"{path}{said}" in str(error.value)


def test_a_table_keeps_its_cells_with_the_line_each_row_ends_on(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes(b'\xef\xbb\xbfa,b\r\n1,"x\r\ny"\r\n')
    assert text_files.table(path, "") == (["a", "b"], [(3, {"a": "1", "b": "x\r\ny"})])
    path.write_bytes(b"a,b,c\n1,2,3\n\n4\n")
    assert text_files.table(path, "", "ac".__contains__)[1] == [(2, {"a": "1", "c": "3"}), (4, {"a": "4", "c": ""})]


def test_elements_of_a_list_and_lines_are_read_alike_with_their_places(tmp_path: Path) -> None:
    values = [{"a": 1}, {"a": "\u2028 ]"}, [2]]
    (tmp_path / "l.json").write_text(" \n" + json.dumps(values, indent=2) + "\n")
    (tmp_path / "l.jsonl").write_text("\n".join(json.dumps(v) for v in values))
    document, lines = (list(text_files.records(tmp_path / name, "give records")) for name in ("l.json", "l.jsonl"))
    assert [v for _, v in document] == [v for _, v in lines] == values
    assert [w for w, _ in document] == [f"{tmp_path / 'l.json'}: item {i}" for i in range(3)]
    assert [w for w, _ in lines] == [f"{tmp_path / 'l.jsonl'}:{i}" for i in (1, 2, 3)]
    (tmp_path / "empty.json").write_text("[ ]")
    assert list(text_files.records(tmp_path / "empty.json", "give records")) == []


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('[\n{"a": 1}\n{"a": 2}]', ":3: not valid JSON (neither ',' nor ']' after item 0)"),
        ('[\n{"a": 1},\n{"a": }]', ":3: not valid JSON (Expecting value at column 7)"),
        ('[{"a": 1}', ":1: not valid JSON (neither ',' nor ']' after item 0)"),
        ('[{"a": 1},', ":1: not valid JSON (Expecting value"),
        ('[{"a": 1, "a": 2}]', ": item 0: field 'a' occurs twice"),
        ('[{"a": 1}] x', ": not valid JSON ('x' follows the closing bracket of the list)"),
        ("[" * 100_000, "nested too deeply"),
        ("[" + "1" * 5_000 + "]", ": item 0: JSON that cannot be read"),
    ],
)
def test_a_list_that_is_torn_is_named_with_line_or_item(text: str, said: str, tmp_path: Path) -> None:
    path = tmp_path / "l.json"
    path.write_text(text)
    with pytest.raises(InputError) as error:
        list(text_files.records(path, "give records"))
    assert str(error.value).startswith(str(path)) and said in str(error.value) and "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("['a' 'b']", ["a", "b"]),
        ("['a'\n 'b c', 'd']", ["a", "b c", "d"]),
        ('["a", null]', ["a", None]),
        ("['a', ' ', '']", ["a", " ", ""]),
        ("['a' 'b", None),
    ],
)
def test_texts_side_by_side_are_items_of_a_list_as_numpy_prints_them(text: str, found: object) -> None:
    assert text_files.literal(text, list) == found


def test_whole_numbers_that_no_float_can_hold_become_text() -> None:
    assert text_files.in_words(10**400) == "1" + "0" * 400
    assert [text_files.in_words(n) for n in (2**53 + 1, 39.0, 1.5, True)] == [str(2**53 + 1), "39", "1.5", True]


def test_spaces_behind_a_quoted_cell_belong_to_no_cell(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text('"a" ,b\n"x" ,5" pipe\n"say ""x"" , y"  ,z \n')
    assert text_files.table(path, "fix") == (
        ["a", "b"],
        [(2, {"a": "x", "b": '5" pipe'}), (3, {"a": 'say "x" , y', "b": "z "})],
    )


def test_accepted_answers_are_a_gold_answer_and_each_other_one_once() -> None:
    accepted = text_files.answers_field({"a": ["Rome", " Roma ", "Rome", "Roma", 5.0]}, "a", "f:1")
    assert accepted == ("Rome", ("Roma", "5")) and text_files.answers_field({"a": "x"}, "a", "f:1") == ("x", ())


def test_a_text_that_is_json_and_python_is_read_as_json() -> None:
    assert text_files.literal('["\\ud83d\\ude00"]', list) == ["\U0001f600"], "one character, not two halves"


def test_a_longer_cell_is_allowed_in_one_table_only(tmp_path: Path) -> None:
    path, usual = tmp_path / "t.csv", csv.field_size_limit()
    path.write_text(f"a,b\n{'x' * (usual + 1)},y\n")
    _, [(line, row)] = text_files.table(path, "fix", longest=2 * usual)
    assert (line, len(row["a"])) == (2, usual + 1) and csv.field_size_limit() == usual
    with pytest.raises(InputError, match=r"t\.csv:2: not valid CSV"):
        text_files.table(path, "fix")
