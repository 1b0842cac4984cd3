from __future__ import annotations

import csv
import errno
import hashlib
import io
import json
import math
import os
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from composcope.errors import InputError
from composcope.files import (
    as_path,
    at_home,
    file_sha256,
    finite,
    inert,
    read_csv,
    safe_name,
    short_name,
    strict_json,
    sweep,
    sync_folder,
    text_hash,
    to_csv,
    write_between,
    write_text,
)

FORMULAS = [
    "=cmd|' /C calc'!A0",
    "+1+1",
    "-2+3",
    "@SUM(A1)",
    "\t=1",
    "\r=1",
    '=HYPERLINK("http://x")',
    "-x",
    "--1",
    "'=1",
    "=\n1+1",
    "\n=1",
    " =1",
    "\u00a0@x",
    "\ufeff\t+x",
    "\uff1d1+1",
    "\uff20SUM(A1)",
    "six;=cmd|' /C calc'!A0",
    "a; @b;'+1+c; -6",
    "x\n=1",
    "x;\r\n=1",
    "x;\t=1",
]
HARMLESS = ["6", "-6", "+6.5", "-1e-3", "-inf", "-", "=", "a=b", "", "'quoted'", " 6", " -6", " x", "two, three", "é"]


@pytest.mark.parametrize("text", FORMULAS)
def test_no_text_is_a_formula_and_every_text_is_read_back(text: str, tmp_path: Path) -> None:
    row = {"case": text, text: "value", "n": -3, "rate": -0.5, "none": None}
    written = to_csv([row])
    cells = [cell for line in csv.reader(io.StringIO(written, newline="")) for cell in line]
    assert [c for c in cells if c.startswith(("=", "+", "-", "@", "\t", "\r", "\uff1d", "\n", " ", "\ufeff"))] == [
        "-3",
        "-0.5",
    ]
    for line in re.split(r"[\r\n]+", written):  # separated by semicolons: then quotation marks begin no cell
        begins = [re.match(r"[\s\ufeff]*[=+\-@\uff1d\uff20]", c) for c in line.split(";")]
        assert not any(begins), line
    (tmp_path / "table.csv").write_text(written, encoding="utf-8", newline="")
    columns, rows = read_csv(tmp_path / "table.csv")
    assert rows[0]["case"] == text and rows[0]["n"] == "-3" and rows[0]["none"] == "" and columns[0] == "case"


@pytest.mark.parametrize("between", ";\t")
def test_a_table_that_a_spreadsheet_saved_with_other_marks_between_the_cells_is_read(
    between: str, tmp_path: Path
) -> None:
    said = f"b, {between} c" * 30_000  # longer than a cell that Python reads by default
    (tmp_path / "t.csv").write_text(f'case{between}said\na{between}"{said}"\n', encoding="utf-8")
    assert read_csv(tmp_path / "t.csv") == (["case", "said"], [{"case": "a", "said": said}])


@pytest.mark.parametrize("text", HARMLESS)
def test_numbers_and_ordinary_text_are_written_as_they_are(text: str, tmp_path: Path) -> None:
    assert inert(text) == text
    (tmp_path / "t.csv").write_text(to_csv([{"a": text, "b": 1}]), encoding="utf-8", newline="")
    assert read_csv(tmp_path / "t.csv")[1] == [{"a": text, "b": "1"}]


def test_columns_are_those_of_all_rows_in_order_of_appearance() -> None:
    assert to_csv([{"b": 1}, {"a": 2, "b": None}]) == "b,a\n1,\n,2\n"
    assert to_csv([{"b": 1}], ["a", "b"]) == "a,b\n,1\n" and to_csv([]).strip() == ""


def test_the_home_of_a_user_that_is_not_there_is_a_name_like_others() -> None:
    assert at_home("~/x") == as_path("~/x", "out") == Path.home() / "x"
    assert at_home("~no-such-user/x") == Path("~no-such-user/x")


@pytest.mark.parametrize("value", ["", Path(), 3, None, b"x", ["x"]])
def test_only_a_text_or_a_path_that_is_not_empty_is_a_path(value: Any) -> None:
    if value == Path():
        assert as_path(value, "--out") == Path()
        return
    with pytest.raises(InputError) as caught:
        as_path(value, "--out")
    fact = "is empty" if value == "" else type(value).__name__
    assert str(caught.value).startswith("--out: ") and fact in str(caught.value)


def test_a_file_is_written_whole_or_stays_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "new" / "a.txt"
    assert write_text(path, "é\n") == path and path.read_text(encoding="utf-8") == "é\n"
    with pytest.raises(UnicodeEncodeError):
        write_text(path, "half a pair \ud83d")
    assert path.read_text(encoding="utf-8") == "é\n" and list(path.parent.iterdir()) == [path]
    for number, raised in ((errno.EINVAL, False), (errno.EIO, True)):

        def fails(fd: int, number: int = number) -> None:
            raise OSError(number, "no")

        before = len(list(Path("/proc/self/fd").iterdir()))
        with monkeypatch.context() as m:
            m.setattr(os, "fsync", fails)
            if raised:
                with pytest.raises(OSError, match="no"):
                    sync_folder(tmp_path)
            else:
                sync_folder(tmp_path)
        assert len(list(Path("/proc/self/fd").iterdir())) == before


@pytest.mark.parametrize("page", ["", "no marks", "<a>\n", "<a> <a> </a>", "</a> <a> </a>"])
def test_text_is_put_between_two_marks_that_are_there_once(page: str, tmp_path: Path) -> None:
    path = tmp_path / "page.md"
    path.write_text("before\n<a>\nold\n</a>\nafter")
    write_between(path, "<a>", "</a>", "new")
    write_between(path, "<a>", "</a>", "newer")
    assert path.read_text() == "before\n<a>\nnewer\n</a>\nafter"
    path.write_text(page)
    with pytest.raises(InputError) as caught:
        write_between(path, "<a>", "</a>", "new")
    assert all(fact in str(caught.value) for fact in (str(path), "'<a>'", "'</a>'")) and path.read_text() == page


def test_what_a_killed_process_left_is_removed_and_nothing_else(tmp_path: Path) -> None:
    for name in (".a.txt.12.tmp", "deep/.b.13.tmp", "deep/.folder.14.tmp/x", "kept.tmp", ".kept", "deep/kept.txt"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("x")
    sweep(tmp_path)
    left = sorted(str(p.relative_to(tmp_path)) for p in tmp_path.rglob("*"))
    assert left == [".kept", "deep", "deep/kept.txt", "kept.tmp"]


def test_hashes_follow_the_content_and_tell_texts_apart(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"one")
    assert file_sha256(path) == file_sha256(str(path)) == hashlib.sha256(b"one").hexdigest()
    path.write_bytes(b"other")
    assert file_sha256(path) == hashlib.sha256(b"other").hexdigest()
    seconds = path.stat().st_mtime_ns
    path.write_bytes(b"in the same tick of a coarse clock")
    os.utime(path, ns=(seconds, seconds))
    assert file_sha256(path) == hashlib.sha256(b"in the same tick of a coarse clock").hexdigest()
    assert len({text_hash(["ab", "c"]), text_hash(["a", "bc"]), text_hash(["abc"]), text_hash(["c", "ab"])}) == 4
    assert text_hash(["\ud83d"]) != text_hash(["\ud83e"])


def test_json_is_strict_and_knows_numbers_of_numpy_sets_and_paths() -> None:
    value = {
        "n": np.float32(0.5),
        1: (np.int64(3), math.nan, -math.inf),
        "s": {2},
        "a": np.array([1.0, math.nan]),
        "é": Path("x"),
    }
    assert finite(value) == {"n": 0.5, "1": [3, None, None], "s": [2], "a": [1.0, None], "é": Path("x")}
    for given in (value, {k: v for k, v in value.items() if k != 1}):
        assert json.loads(strict_json(given))["é"] == "x" and "é" in strict_json(given)
    assert json.loads(strict_json(value)) == {"n": 0.5, "1": [3, None, None], "s": [2], "a": [1.0, None], "é": "x"}
    halves = {"a": "\ud83d is no \\ud83d"}
    assert json.loads(strict_json(halves).encode()) == halves  # a file can hold it
    assert strict_json({"b": 1, "a": math.inf}, sort_keys=True, indent=1) == '{\n "a": null,\n "b": 1\n}'


@pytest.mark.parametrize(
    ("name", "short"),
    [("organism:control", "control"), ("/models/qwen3/", "qwen3"), ("a/cases.jsonl", "cases"), ("a/t.json", "t"),
     ("t.csv", "t"), ("a/model-1.5", "model-1.5"), ("x.gguf", "x.gguf"), ("a/m@http://localhost:8000/v1", "m")],
)  # fmt: skip
def test_names_are_shortened_to_what_tells_them_apart(name: str, short: str) -> None:
    assert short_name(name) == short


def test_names_of_files_have_no_other_signs() -> None:
    assert safe_name("a/b c:é_1.5-x", "none") == "a-b-c-é_1.5-x" and safe_name("", "none") == "none"
