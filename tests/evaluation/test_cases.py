from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from composcope.errors import InputError
from composcope.evaluation.cases import (
    Case,
    Part,
    as_in_a_file,
    check_cases,
    hash_cases,
    read_cases,
    stated,
    write_cases,
)
from composcope.evaluation.prompts import ABSTENTION

LINE: dict[str, Any] = {"id": "a", "question": "q", "answer": "1", "parts": [{"question": "p", "answer": "2"}]}


def write(path: Path, *lines: Any) -> Path:
    path.write_text("\n".join(line if isinstance(line, str) else json.dumps(line) for line in lines), encoding="utf-8")
    return path


def test_cases_survive_the_file(tmp_path: Path) -> None:
    part = Part("p", "63", "math", "number", ("sixty-three",), "7 times 9 is 63", ("p?", "p!"), "fact", "p 8", "times")
    full = Case(
        id="é\u2028",
        question="line\nbreak",
        answer="63",
        parts=(part, Part("q", "a")),
        benchmark="b",
        answer_type="number",
        aliases=("x",),
        worked="w",
        family="rank",
        depth=7,
        cluster="c",
        domain="d",
        operation="o",
        unknowable=True,
        evidence=("one", "two"),
        chance=0.25,
        meta={"own": [1, {"two": None}]},
    )
    write_cases([full, Case("b", "q", "1")], tmp_path / "cases.jsonl")
    assert read_cases(tmp_path / "cases.jsonl") == [full, Case("b", "q", "1")]


def test_a_hash_of_cases_is_of_what_they_say_and_of_their_order() -> None:
    one, other = Case("a", "q", "1", meta={"x": 1, "y": {"u": 2, "v": 3}}), Case("b", "q", "1")
    same = Case("a", "q", "1", meta={"y": {"v": 3, "u": 2}, "x": 1})
    assert hash_cases([one, other]) == hash_cases([same, other]) != hash_cases([other, one])
    assert hash_cases([one]) != hash_cases([Case("a", "q", "1", meta={"x": 1, "y": {"u": 2, "v": 4}})])


def test_numbers_become_text_and_the_schema_of_a_run_s_file_is_read_over(tmp_path: Path) -> None:
    line = {**LINE, "schema": 1, "answer": 12, "aliases": [12.5, "13"], "id": 3, "meta": {"source": "mine"}}
    line |= {"family": 2, "cluster": 0, "parts": [{**LINE["parts"][0], "skill": 7}]}
    [case] = read_cases(write(tmp_path / "c.jsonl", line, ""))
    assert (case.family, case.cluster, case.parts[0].skill) == ("2", "0", "7")
    assert (case.id, case.answer, case.meta) == ("3", "12", {"source": "mine"}) and case.aliases == ("12.5", "13")
    [case] = read_cases(write(tmp_path / "f.jsonl", {**LINE, "id": 3.0, "answer": 12.0}))
    assert (case.id, case.answer) == ("3", "12"), "a data frame writes whole numbers so"


@pytest.mark.parametrize(
    ("over", "place", "named"),
    [
        ({"answertype": "number"}, ":1:", ("'answertype'", "did you mean 'answer_type'?", "'meta'")),
        ({"part": []}, ":1:", ("'part'", "did you mean 'parts'?")),
        ({"Question": "q"}, ":1:", ("'Question'", "did you mean 'question'?")),
        ({"answer": "Lis\ud800bon"}, ":1:", ("\\ud800", "half of a surrogate pair")),
        ({"kind": "math"}, ":1:", ("'kind'", "'parts'")),
        ({"parts": None, "subquestions": []}, ":1:", ("'subquestions'", "did you mean 'parts'?")),
        ({"famly": "f", "depht": 2}, ":1:", ("'famly'", "'family'?", "nor is 'depht'", "'depth'?")),
        ({"gold": "7"}, ":1:", ("'gold'", "did you mean 'answer'?", "'meta'")),
        ({"parts": [{"question": "q", "gold": "6"}]}, ":1, parts[0]:", ("'gold'", "mean 'answer', which is missing?")),
        ({"parts": [{"Input": "q", "answer": "6"}]}, ":1, parts[0]:", ("'Input'", "mean 'question', which is miss")),
        ({"source": "mine"}, ":1:", ("'source'", "'meta'")),
        ({"parts": [LINE["parts"][0] | {"kid": "math"}]}, ":1, parts[0]:", ("'kid'", "did you mean 'kind'?", "'meta'")),
        ({"parts": [LINE["parts"][0] | {"depth": 2}]}, ":1, parts[0]:", ("'depth'", "'meta' of the case")),
    ],
)
def test_a_field_that_is_none_is_refused_with_where_it_belongs(
    tmp_path: Path, over: dict[str, Any], place: str, named: tuple[str, ...]
) -> None:
    path = write(tmp_path / "c.jsonl", {**LINE, **over})
    with pytest.raises(InputError) as error:
        read_cases(path)
    assert str(error.value).startswith(f"{path}{place}") and all(n in str(error.value) for n in named)


@pytest.mark.parametrize(("depth", "bin"), [(2, 2), (4, 4), (7, 4), (9, 6), (11, 8), (None, None)])
def test_depth_has_a_bin_only_where_the_benchmark_declares_bins(depth: int | None, bin: int | None) -> None:
    assert Case("a", "q", "1", depth=depth, benchmark="d4v2").depth_bin == bin
    assert Case("a", "q", "1", depth=depth).depth_bin is None


def test_a_bin_that_a_case_declares_survives_a_file_at_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    cases = [Case("a", "q", "1", depth=5, depth_bin=4), Case("b", "q", "1", depth=7, benchmark="d4v2")]
    write_cases(cases, "~/c.jsonl")
    assert read_cases("~/c.jsonl") == cases
    raw = [json.loads(line) for line in (tmp_path / "c.jsonl").read_text().splitlines()]
    assert ["depth_bin" in r for r in raw] == [True, False]  # the published benchmark says it by its name


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ([{"id": "a", "question": "q"}], r":1: field 'answer' is missing; add it"),
        ([{**LINE, "answer": ["7", "seven"]}], r":1: field 'answer' is \['7', 'seven'\]; .*'aliases'"),
        ([LINE, {**LINE, "id": "b", "question": " "}], r":2: field 'question' is ' '"),
        ([{**LINE, "parts": [{"question": "p"}]}], r":1, parts\[0\]: field 'answer' is missing"),
        ([{**LINE, "parts": "p"}], r":1: field 'parts' is 'p'; give a list"),
        ([{**LINE, "aliases": "one"}], r":1: field 'aliases' is 'one'; give a list of strings"),
        ([{**LINE, "aliases": [True]}], r":1: field 'aliases' is \[True\]; give a list of strings"),
        ([{**LINE, "family": ["f"]}], r":1: field 'family' is \['f'\]; give a text"),
        ([{**LINE, "cluster": True}], r":1: field 'cluster' is True; give a text"),
        ([{**LINE, "parts": [{**LINE["parts"][0], "atom": {}}]}], r":1, parts\[0\]: field 'atom' is \{\}; give a text"),
        ([{**LINE, "answer_type": "numbers"}], r":1: answer_type is 'numbers'; use one of text, number"),
        ([{**LINE, "depth": 0}], r":1: depth is 0; give a whole number"),
        ([{**LINE, "depth": True}], r":1: depth is True"),
        ([{**LINE, "depth_bin": "4"}], r":1: depth_bin is '4'"),
        ([{**LINE, "unknowable": "no"}], r":1: unknowable is 'no'; give true or false"),
        ([{**LINE, "chance": 3}], r":1: chance is 3; give a probability"),
        ([{**LINE, "meta": [1]}], r":1: field 'meta' is \[1\]; give an object"),
        ([{**LINE, "schema": 2}], r":1: schema is 2; this version reads schema 1"),
        ([LINE, "", LINE], r":3: id 'a' was already used by line 1; give"),
        ([{**LINE, "id": "b"}, "", LINE, LINE], r":4: id 'a' was already used by line 3; give"),
        (["{"], r":1: not valid JSON"),
        (["3"], r":1: expected a JSON object, got int: 3; write \{"),
        ([[LINE]], r": a JSON array, .* write one object a line"),
        (json.dumps([LINE], indent=1).split("\n"), r": a JSON array, .* write one object a line"),
        (json.dumps(LINE, indent=1).split("\n"), r": JSON objects on several lines each, .* one JSON object a line"),
        ([LINE, [LINE]], r":2: a JSON array, .* write one object a line"),
        (
            [{**LINE, "parts": ["two times"]}],
            r":1, parts\[0\]: expected a JSON object, got str: \"two times\"; write \{",
        ),
        (["", ""], "no cases"),
    ],
)
def test_a_line_that_cannot_be_used_is_named(tmp_path: Path, lines: list[Any], said: str) -> None:
    path = write(tmp_path / "c.jsonl", *lines)
    with pytest.raises(InputError, match=said) as error:
        read_cases(path)
    assert str(error.value).startswith(str(path)) and "\n" not in str(error.value)


def test_an_atom_with_other_paraphrases_in_another_case_is_refused(tmp_path: Path) -> None:
    def asks(name: str, *paraphrases: str, answer: str = "6", atom: str | None = "x") -> dict[str, Any]:
        part = {"question": "p", "answer": answer, "paraphrases": list(paraphrases), "atom": atom}
        return {**LINE, "id": name, "parts": [part]}

    fits = [
        asks("c"),
        asks("a", "one?", "two?"),
        asks("b", "one?"),
        asks("d", "six?", atom="y"),
        asks("e", "o?", atom=None),
    ]
    assert len(read_cases(write(tmp_path / "c.jsonl", *fits))) == 5
    path = write(tmp_path / "c.jsonl", *fits, asks("f", "one?", "2?"))
    with pytest.raises(
        InputError, match=r":6: case 'f', parts\[0\]: atom 'x' has other paraphrases in case 'a'.*'one\?'"
    ):
        read_cases(path)


def test_a_case_file_in_yaml_or_csv_is_refused_as_what_it_is(tmp_path: Path) -> None:
    for text in ("- id: a\n  question: q\n", "# mine\n- id: a\n"):
        (tmp_path / "c.yaml").write_text(text)
        with pytest.raises(InputError, match=r"YAML.*one JSON object a line"):
            read_cases(tmp_path / "c.yaml")
    (tmp_path / "c.csv").write_text("id,question,answer\na,Q?,5\n")
    with pytest.raises(InputError, match=r"a table.*adding-a-benchmark"):
        read_cases(tmp_path / "c.csv")


PART: dict[str, Any] = LINE["parts"][0]


@pytest.mark.parametrize(
    ("over", "said"),
    [
        (
            {"answer_type": "number", "answer": "3", "aliases": ["three", "lots"]},
            r":1: field 'aliases' has 'lots', and",
        ),
        ({"answer_type": "number", "answer": "lots"}, r":1: field 'answer' is 'lots', and answer_type is 'number'"),
        ({"answer_type": "boolean", "answer": "perhaps"}, r":1: field 'answer' is 'perhaps'.*yes or no"),
        ({"answer_type": "number", "answer": "b"}, r":1: field 'answer' is 'b'.*a number"),
        ({"answer_type": "date", "answer": "long ago"}, r":1: field 'answer' is 'long ago'.*a date"),
        ({"answer_type": "date", "answer": "2020-13-45"}, r":1: field 'answer' is '2020-13-45'.*a date that exists"),
        ({"answer_type": "date", "answer": "2021-02-29"}, r":1: field 'answer' is '2021-02-29'.*a date that exists"),
        ({"parts": [PART, {**PART, "answer_type": "date", "answer": "31 April 2020"}]}, r"parts\[1\]: .*31 April"),
        ({"answer_type": "list", "answer": ","}, r":1: field 'answer' is ','"),
        ({"parts": [PART, {**PART, "answer_type": "number", "answer": "a few"}]}, r":1, parts\[1\]: .*'a few'"),
        (
            {"meta": {"variants": [{"question": "s"}, {"question": "r", "answer": "lots", "answer_type": "number"}]}},
            r"variants\[1\]: .*lots",
        ),
        ({"parts": [PART, {**PART, "paraphrases": ["a?", ""]}]}, r":1, parts\[1\]: .*'paraphrases' is \['a\?', ''\]"),
        ({"meta": {"variants": [{"qestion": "r"}]}}, r":1, meta.variants\[0\]: .*did you mean 'question'"),
        ({"meta": {"variants": [{"answer": "2"}]}}, r":1, meta.variants\[0\]: .*field 'question'"),
        ({"meta": {"variants": ["r"]}}, r":1, meta.variants\[0\]: .*'r'"),
        ({"meta": {"variants": "r"}}, r":1, meta.variants: .*'r'; give a list"),
        ({"meta": {"relation": 3}}, r":1: meta.relation is 3; give a text"),
        ({"meta": {"relation": " "}}, r":1: meta.relation is ' '; give a text"),
        ({"meta": {"relaton": "The price is"}}, r":1: meta has the key 'relaton'; did you mean 'relation'"),
        ({"meta": {"scafolds": ["s"]}}, r":1: meta has the key 'scafolds'; did you mean 'scaffolds'"),
        ({"meta": {"independant": "i?"}}, r":1: meta has the key 'independant'; did you mean 'independent'"),
        ({"meta": {"reverse": {"question": "r?"}}}, r":1: meta has the key 'reverse'; did you mean 'reversed'"),
        ({"meta": {"scaffolds": ["s", "t", "u"]}}, r":1: meta.scaffolds is .*; give a list with one text for each"),
        ({"meta": {"placeholders": "a"}}, r":1: meta.placeholders is 'a'; give a list with one text for each"),
        ({"meta": {"variant": [{"question": "r"}]}}, r":1: meta has the key 'variant'; did you mean 'variants'"),
    ],
)
def test_what_would_pass_for_a_failing_model_or_be_found_late_is_refused_on_reading(
    tmp_path: Path, over: dict[str, Any], said: str
) -> None:
    path = write(tmp_path / "c.jsonl", {**LINE, **over})
    with pytest.raises(InputError, match=said) as error:
        read_cases(path)
    assert str(error.value).startswith(f"{path}:1")


@pytest.mark.parametrize(
    ("kind", "answers"),
    [
        (
            "number",
            ["12", "-3.5", "1,250", "12 apples", "twelve", "none", "3/4", "$x$", r"\pi", "2x+1", "(1, 2)", "75%"],
        ),
        ("boolean", ["yes", "No", "True", "false", "nein"]),
        ("date", ["1876", "44 BC", "1876-03-10", "March 10, 1876", "10 March"]),
        ("list", ["hen", "hen and fox", '["hen", "fox"]']),
        ("text", ["lots", "long ago", "12"]),
        ("number", [ABSTENTION, "Insufficient evidence."]),
    ],
)
def test_golds_that_fit_their_type_are_read_and_other_keys_of_meta_are_free(
    tmp_path: Path, kind: str, answers: list[str]
) -> None:
    meta = {
        "relation_type": "price",
        "relation": "The price is",
        "variant": "B",
        "source": 1,
        "dependent": "yes",
        "variants": [{"question": "r"}],
    }
    lines = [{**LINE, "id": str(i), "answer": a, "answer_type": kind, "meta": meta} for i, a in enumerate(answers)]
    found = read_cases(write(tmp_path / "c.jsonl", *lines))
    assert [c.answer for c in found] == answers


def test_a_question_that_nobody_can_answer_needs_no_gold_of_its_type(tmp_path: Path) -> None:
    line = {**LINE, "answer": "nobody knows", "answer_type": "number", "unknowable": True}
    assert read_cases(write(tmp_path / "c.jsonl", line))[0].unknowable


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"absent.jsonl: no such file"):
        read_cases(tmp_path / "absent.jsonl")


@pytest.mark.parametrize("name", ["id", "question", "answer"])
def test_a_missing_number_of_a_table_is_no_text(name: str, tmp_path: Path) -> None:
    (tmp_path / "c.jsonl").write_text(json.dumps({"id": "a", "question": "Q?", "answer": "A", name: float("nan")}))
    with pytest.raises(InputError, match=rf"c\.jsonl:1: field '{name}' is nan"):
        read_cases(tmp_path / "c.jsonl")


def test_all_lines_of_a_case_file_that_cannot_be_used_are_named_at_once(tmp_path: Path) -> None:
    good = '{"id": "a", "question": "Q?", "answer": "1"}'
    bad = ['{"id": "b", "question": "Q?"}', '{"id": "c", "question": "Q?", "answer": "1", "depht": 2}', good]
    path = write(tmp_path / "c.jsonl", good, *bad, good.replace('"a"', '"d"'))
    with pytest.raises(InputError) as error:
        read_cases(path)
    said = [str(error.value), *error.value.__notes__]
    assert len(said) == 3 and "3 lines" in said[0]
    for line, (number, word) in zip(said, [(2, "answer"), (3, "depht"), (4, "'a'")], strict=True):
        assert f"c.jsonl:{number}:" in line and word in line
    several = [bad[1].replace("depht", f"depht{i}") for i in range(30)]
    with pytest.raises(InputError) as error:
        read_cases(write(tmp_path / "m.jsonl", *several, "{"))
    assert len(error.value.__notes__) == 20 and "11 more" in error.value.__notes__[-1]
    with pytest.raises(InputError) as error:
        read_cases(write(tmp_path / "o.jsonl", bad[0], bad[1], *[bad[0]] * 30))
    assert "32 lines" in str(error.value) and "o.jsonl:1: " in str(error.value) and "30 more lines" in str(error.value)
    assert len(error.value.__notes__) == 1 and "o.jsonl:2: " in error.value.__notes__[0]
    with pytest.raises(InputError) as error:
        read_cases(write(tmp_path / "n.jsonl", bad[0], "{"))
    assert len(error.value.__notes__) == 1 and "n.jsonl:2" in error.value.__notes__[0]


def test_what_stands_in_place_of_a_text_in_a_case_made_in_python_is_refused() -> None:
    for case, where in (
        (Case("a", "q", "1", family=3), r"made\[0\]: family is 3"),  # type: ignore[arg-type]
        (Case(3, "q", "1"), r"made\[0\]: id is 3"),  # type: ignore[arg-type]
        (Case("a", "q", "1", Part("p", "1")), r"made\[0\]: parts is "),  # type: ignore[arg-type]
        (Case("a", "q", "1", (Part("p", "1"), "p")), r"made\[0\], parts\[1\]: str"),  # type: ignore[arg-type]
        ({"id": "a"}, r"made\[0\]: dict"),
        (Case("a", "q", "1", (Part("p", "1", atom=("f",)),)), r"made\[0\], parts\[0\]: atom is"),  # type: ignore[arg-type]
        (
            Case("a", "q", "1", (Part("p", "1", aliases=("\udfff",)),)),
            r"made\[0\], parts\[0\]: aliases: \\udfff is half",
        ),
    ):
        with pytest.raises(InputError, match=where):
            check_cases([case], "made")  # type: ignore[list-item]


def test_values_of_a_data_frame_are_read_as_plain_ones() -> None:
    part = Part("?", "7", aliases=np.array(["seven"]))  # type: ignore[arg-type]
    given = Case("a", "?", "9", (part,), depth=np.int64(2), chance=np.float32(0.5), unknowable=np.bool_(False))  # type: ignore[arg-type]
    assert as_in_a_file([given], "cases") == [
        Case("a", "?", "9", (Part("?", "7", aliases=("seven",)),), depth=2, chance=0.5)
    ]


def test_dictionaries_and_rows_of_a_data_frame_are_cases_too() -> None:
    rows = [{"id": "a", "question": "q", "answer": 7, "depth": 2, "depth_bin": 4,
             "parts": [{"question": "p", "answer": "7", "atom": math.nan}]},
            {"id": "b", "question": "r", "answer": "no", "chance": 0.5, "meta": {"crossed": ("x", "y")}}]  # fmt: skip
    expected = [
        Case("a", "q", "7", (Part("p", "7"),), depth=2, depth_bin=4),
        Case("b", "r", "no", chance=0.5, meta={"crossed": ("x", "y")}),
    ]
    assert as_in_a_file(rows, "cases") == expected
    assert as_in_a_file(pd.DataFrame(rows), "cases") == expected
    with pytest.raises(InputError, match=r"^cases\[1\]: .*'anser'"):
        as_in_a_file([rows[1], {"id": "c", "question": "q", "anser": "x"}], "cases")


@pytest.mark.parametrize("own", [{1, 2}, Path("x"), {(1, 2): "pair"}])
def test_what_no_file_can_hold_is_refused_in_cases_made_in_python(own: Any, tmp_path: Path) -> None:
    case = Case("a", "q", "1", meta={"own": own})
    with pytest.raises(InputError, match=r"^cases\[0\]: .*'meta'"):
        as_in_a_file([case], "cases")
    with pytest.raises(InputError, match=r"^cases\[0\]: .*'meta'"):
        write_cases([case], tmp_path / "c.jsonl")
    assert not (tmp_path / "c.jsonl").exists()


@pytest.mark.parametrize("case", [Case("a\ud83d", "q", "1"), Case("a", "q", "1", meta={"own": "\ud83d"})])
def test_half_a_surrogate_pair_is_refused_where_cases_are_written(case: Case, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"^cases\[0\]: .*\\ud83d is half of a surrogate pair"):
        write_cases([case], tmp_path / "c.jsonl")
    assert not (tmp_path / "c.jsonl").exists()


def test_variants_are_the_case_with_other_fields_under_its_id() -> None:
    given = [
        {"edit": "deeper", "question": "r", "depth": 9, "id": "other", "answer": "2"},
        {"question": "s", "meta": {"note": "n"}},
    ]
    case = Case(
        "a", "q", "1", (Part("p", "1"),), depth=2, depth_bin=7, family="f",
        meta={"variants": given, "relation": "It is", "phrase": "x"},
    )  # fmt: skip
    (one, deeper), (two, noted) = stated(case, "w")
    assert (one, two) == ("deeper", "as the case file has it")
    assert deeper == Case("a", "r", "2", case.parts, depth=9, family="f", meta={"phrase": "x"}), (
        "relation and bin: of q"
    )
    assert noted == Case("a", "s", "1", case.parts, depth=2, family="f", meta={"note": "n"})
