from __future__ import annotations

import csv
import io
import re
from pathlib import Path

import pytest

from composcope.files import at_home, inert, read_csv, to_csv

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
    (tmp_path / "t.csv").write_text(f'case{between}said\na{between}"b, {between} c"\n', encoding="utf-8")
    assert read_csv(tmp_path / "t.csv") == (["case", "said"], [{"case": "a", "said": f"b, {between} c"}])


@pytest.mark.parametrize("text", HARMLESS)
def test_numbers_and_ordinary_text_are_written_as_they_are(text: str, tmp_path: Path) -> None:
    assert inert(text) == text
    (tmp_path / "t.csv").write_text(to_csv([{"a": text, "b": 1}]), encoding="utf-8", newline="")
    assert read_csv(tmp_path / "t.csv")[1] == [{"a": text, "b": "1"}]


def test_columns_are_those_of_all_rows_in_order_of_appearance() -> None:
    assert to_csv([{"b": 1}, {"a": 2, "b": None}]) == "b,a\n1,\n,2\n"
    assert to_csv([{"b": 1}], ["a", "b"]) == "a,b\n,1\n" and to_csv([]).strip() == ""


def test_the_home_of_a_user_that_is_not_there_is_a_name_like_others() -> None:
    assert at_home("~/x") == Path.home() / "x"
    assert at_home("~no-such-user/x") == Path("~no-such-user/x")
