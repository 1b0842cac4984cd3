"""What is written is read again as it was, field by field; identities; what is wrong is refused with its field."""

from __future__ import annotations

import json
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tiny_models import tiny

from composcope.errors import InputError
from composcope.evaluation import grading_error, identity, statistics
from composcope.evaluation.asks import Ask
from composcope.evaluation.benchmarks.stad import Check, StadItem, StadStep, item_from_record, record_from_item
from composcope.evaluation.case import Case, Part, case_from_dict, case_to_dict, shares
from composcope.evaluation.graded import Graded, check_rows
from composcope.evaluation.metrics import Metric
from composcope.evaluation.text_files import text_field

CASE: dict[str, Any] = {
    "parts": (Part("p?", "a"), Part("q?", "b")), "benchmark": "own", "answer_type": "number", "aliases": ("8", "viii"),
    "worked": "3 plus 4 is 7", "family": "f", "depth": 3, "cluster": "k", "domain": "d", "operation": "plus",
    "unknowable": True, "evidence": ("one", "two"), "chance": 0.25, "meta": {"own": [1, {"a": None}]}, "depth_bin": 2,
}  # fmt: skip
PART: dict[str, Any] = {
    "kind": "math", "answer_type": "number", "aliases": ("8",), "worked": "w", "paraphrases": ("r?", "s?"), "atom": "t",
    "extra_context": "x?", "skill": "add", "options": (("A", "7"), ("B", "9")),
}  # fmt: skip
ROW: dict[str, Any] = {
    **{f.name: f"some {f.name}" for f in fields(Graded) if f.type == "str | None"},
    "depth": 4, "depth_bin": 3, "repeat": 2, "skills": ("a", ""), "unknowable": True, "chance": 0.5,
    "crossed": ("x", "y"), "extra": {"mine": 1},
}  # fmt: skip
ITEM: dict[str, Any] = {
    "scaffolds": ("first", "second"), "teacher": "t", "extra": {"evaluation_score": 1},
    "checks": (None, Check("7", True, "said"), Check("8", None, "")),
}  # fmt: skip
STEP: dict[str, Any] = {"answer": "5", "explanation": "so", "task": "What is 5?", "skill": "add"}


def _sent(value: Any) -> Any:
    """As it comes out of a file."""
    return json.loads(json.dumps(value))


@pytest.mark.parametrize("name", CASE)
def test_a_field_of_a_case_is_read_as_it_was_written(name: str) -> None:
    case = Case("c", "What is 3 plus 4?", "7", **{name: CASE[name]})
    assert case_from_dict(_sent(case_to_dict(case))) == case
    assert case_to_dict(case).keys() - case_to_dict(Case("c", "What is 3 plus 4?", "7")).keys() <= {name}


@pytest.mark.parametrize("name", PART)
def test_a_field_of_a_part_is_read_as_it_was_written(name: str) -> None:
    more = {"answer_type": "choice"} if name == "options" else {}
    case = Case("c", "w?", "7", (Part("p?", "7", **{name: PART[name], **more}), Part("q?", "b")))
    assert case_from_dict(_sent(case_to_dict(case))) == case


@pytest.mark.parametrize("name", ROW)
def test_a_field_of_a_row_is_read_as_it_was_written(name: str) -> None:
    row = Graded("c", "whole", "correct", **{name: ROW[name]})
    assert Graded.from_dict(_sent(row.to_dict())) == row
    everything = Graded("c", "whole", "correct", **ROW)
    assert Graded.from_dict(_sent(everything.to_dict())) == everything


def test_a_missing_value_of_a_data_frame_is_none_and_no_text() -> None:
    row = {"case": "c", "role": "whole", "outcome": "correct"}
    nan = float("nan")
    assert Graded.from_dict({**row, "model": nan, "depth": nan, "chance": nan}) == Graded("c", "whole", "correct")
    with pytest.raises(InputError, match="'case' is missing"):
        Graded.from_dict({**row, "case": nan})
    assert Graded.from_dict({**row, "case": 3.0, "gold": 12.0}) == Graded("3", "whole", "correct", gold="12")
    arrays = {"skills": np.array(["add", "sort"], dtype=object), "depth": np.int64(2), "chance": np.float64("nan")}
    assert Graded.from_dict({**row, **arrays}) == Graded("c", "whole", "correct", depth=2, skills=("add", "sort"))
    with pytest.raises(InputError, match="field 'answer' is nan"):
        text_field({"answer": nan}, "answer", "here")


def test_a_chance_or_a_depth_of_zero_is_written() -> None:
    case = Case("c", "What is 3 plus 4?", "7", chance=0.0)
    assert case_from_dict(_sent(case_to_dict(case))) == case
    row = Graded("c", "whole", "correct", chance=0.0, depth_bin=0, depth=0)
    assert Graded.from_dict(_sent(row.to_dict())) == row


@pytest.mark.parametrize("name", ["", *ITEM, *STEP])
def test_a_record_of_any_stage_is_read_as_it_was_written(name: str) -> None:
    steps = tuple(StadStep(f"do {i}", **({k: v for k, v in STEP.items() if k == name})) for i in range(3))
    item = StadItem("i", "How many?", 12, steps, **{k: v for k, v in ITEM.items() if k == name})
    if name == "explanation":  # it stands beside an answer
        item = replace(item, steps=tuple(replace(s, answer="5") for s in steps))
    if name == "answer":
        item = replace(item, steps=tuple(replace(s, explanation="") for s in item.steps))
    record = _sent(record_from_item(item))
    assert item_from_record(record, "other", "here") == item
    stages = {"scaffolds": "scaffolding", "checks": "scaffolding_verification", "task": "decompositions",
              "answer": "sub-task-answer", "explanation": "sub-task-answer", "skill": "skill", "teacher": "teacher",
              "extra": "evaluation_score", "": "sub-task"}  # fmt: skip
    assert {*record} == {"question", "answer", "id", "sub-task", stages[name]}


def test_a_metric_leaves_out_what_it_does_not_have_and_nothing_else() -> None:
    every = {f.name for f in fields(Metric)}
    of_clusters = {n for n in every if n.startswith("cluster_")}
    of_grader = {n for n in every if n.startswith("grader_")}
    assert {*Metric("m").to_dict()} == every - of_clusters - of_grader
    assert {*Metric("m", cluster_n=3).to_dict()} == every - of_grader
    assert {*Metric("m", grader_low=0.0).to_dict()} == every - of_clusters
    given: dict[str, Any] = dict.fromkeys(every - {"metric", "group", "interval", "cluster_interval", "note"}, 0.5)
    row = Metric("m", {"depth": 2}, interval="i", cluster_interval="j", note="n", **given)
    assert Metric(**_sent(row.to_dict())) == row
    assert Metric("m", value=float("nan"), low=float("inf")).to_dict()["value"] is None


def test_a_folder_has_the_identity_of_the_model_loaded_from_it(tmp_path: Path) -> None:
    from tokenizers import Tokenizer, models
    from transformers import AutoModelForCausalLM, AutoTokenizer, PreTrainedTokenizerFast

    model = tiny("llama")
    model.save_pretrained(tmp_path)
    words = Tokenizer(models.WordLevel({"<s>": 0, "a": 1}, unk_token="<s>"))
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=words, bos_token="<s>", unk_token="<s>")
    tokenizer.chat_template = "{{ messages[0]['content'] }}"
    tokenizer.save_pretrained(tmp_path)
    loaded = AutoModelForCausalLM.from_pretrained(tmp_path), AutoTokenizer.from_pretrained(tmp_path)
    known = identity.folder_identity(tmp_path)
    assert known == identity.local_identity(*loaded, tmp_path) and len(set(known.values())) == 4
    loaded[1].chat_template += " "
    changed = identity.local_identity(*loaded, tmp_path)
    assert {k for k in known if known[k] != changed[k]} == {"chat_template"}
    config = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps(config | {"rms_norm_eps": 0.5}))
    changed = identity.folder_identity(tmp_path)
    assert {k for k in known if known[k] != changed[k]} == {"config"}


@pytest.mark.parametrize("kind", [k for k, c in grading_error.MEASURED.items() if c.right and c.wrong])
@pytest.mark.parametrize("match", ["exact", "judge"])
def test_as_many_answers_are_in_doubt_as_the_rules_may_have_graded_wrong(kind: str, match: str) -> None:
    measured, right, wrong = grading_error.MEASURED[kind], 400, 300
    rows = [Graded(f"c{i}", "whole", "correct" if i < right else "incorrect", ask=f"a{i}", gold="g", match=match)
            for i in range(right + wrong)]  # fmt: skip
    asks = {f"a{i}": Ask(f"c{i}", "whole", "p", "g", kind) for i in range(right + wrong)}
    found = grading_error.in_doubt(rows, asks)
    expected = {}
    for outcome, errors, n, other in (("correct", measured.false_plus, measured.wrong, wrong),
                                      ("incorrect", measured.false_minus, measured.right, right)):  # fmt: skip
        high = statistics.clopper_pearson(errors, n).high or 0.0
        expected[outcome] = -int(-(high / (1 - high) * other) // 1) if match != "judge" else 0
    of = {(r.ask, r.gold): r.outcome for r in rows}
    assert {o: sum(of[a] == o for a in found) for o in expected} == expected


REFUSED: list[tuple[str, Any]] = [
    ("case", ""), ("case", ["a"]), ("role", " "), ("role", "part:"), ("role", "scaffold:0"), ("role", "part:1000"),
    ("role", "placeholder:x"), ("outcome", "right"), ("depth", -1), ("depth", 1.5), ("depth", True), ("depth_bin", "2"),
    ("repeat", -1), ("skills", "add"), ("skills", [1]), ("crossed", {"a": 1}), ("unknowable", 1), ("chance", 1.01),
    ("chance", -0.01), ("chance", "half"), ("chance", True), ("gold", ["a"]), ("schema", 2),
]  # fmt: skip
TAKEN: list[tuple[str, Any, Any]] = [
    ("role", "part:0", "part:0"), ("role", "scaffold:1", "scaffold:1"), ("role", "part:999", "part:999"),
    ("depth", 0, 0), ("depth", 2.0, 2), ("chance", 0, 0.0), ("chance", 1, 1.0), ("repeat", 0, 0), ("gold", 7, "7"),
    ("role", "no-preamble/part:0", "no-preamble/part:0"), ("answer", None, None), ("case", 3, "3"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "value"), REFUSED)
def test_a_row_with_a_wrong_value_is_refused_with_its_place_and_field(name: str, value: Any) -> None:
    row = {"case": "c", "role": "whole", "outcome": "correct", name: value}
    with pytest.raises(InputError) as said:
        Graded.from_dict(row, "f.jsonl:3")
    assert str(said.value).startswith("f.jsonl:3: ") and name in str(said.value)


@pytest.mark.parametrize(("name", "value", "read"), TAKEN)
def test_a_row_with_a_value_at_the_limit_is_taken(name: str, value: Any, read: Any) -> None:
    row = {"case": "c", "role": "whole", "outcome": "correct", name: value}
    assert getattr(Graded.from_dict(row, "f.jsonl:3"), name) == read


@pytest.mark.parametrize(("name", "value", "taken"), [
    ("depth", 0, False), ("depth", 1, True), ("depth", True, False), ("depth", 2.0, False), ("depth_bin", 0, False),
    ("depth_bin", 1, True), ("chance", 0, True), ("chance", 1, True), ("chance", 1.1, False), ("chance", -0.1, False),
    ("chance", False, False), ("unknowable", 0, False), ("meta", [], False), ("parts", "p", False),
    ("aliases", "a", False), ("aliases", [1], True), ("aliases", [True], False), ("aliases", [], True),
    ("evidence", ["e"], True),
    ("answer_type", "word", False), ("question", " ", False), ("question", 3, True), ("answer", [], False),
    ("id", None, False), ("colour", "red", False), ("meta", {"crossed": [1]}, False),
    ("meta", {"crossed": ["a"]}, True),
])  # fmt: skip
def test_a_case_with_a_wrong_value_is_refused_with_its_place_and_field(name: str, value: Any, taken: bool) -> None:
    raw = {"id": "c", "question": "q?", "answer": "a", name: value}
    if taken:
        assert case_from_dict(raw, "f.jsonl:3").id == "c"
        return
    with pytest.raises(InputError) as said:
        case_from_dict(raw, "f.jsonl:3")
    assert str(said.value).startswith("f.jsonl:3") and name in str(said.value)


def test_what_a_case_shares_is_its_cluster_and_whatever_it_crosses() -> None:
    assert [shares("a", ()), shares(None, ())] == ["a", None]
    assert [shares("a", ("x", "y")), shares(None, ("x",))] == [{"a", "x", "y"}, {"x"}]
    case = Case("c", "?", "1", cluster="a", meta={"crossed": "x"})
    assert case.crossed == ("x",) and Graded("c", "whole", "correct", cluster="a", crossed=("x",)).shares == {"a", "x"}


@pytest.mark.parametrize(
    ("name", "one", "other"),
    [("family", "f", "g"), ("depth", 2, 3), ("benchmark", "b", "d"), ("cluster", "k", "l"), ("skills", ("x",), ("y",))],
)
def test_rows_of_one_case_with_other_properties_contradict_each_other(name: str, one: Any, other: Any) -> None:
    rows = [Graded("c", role, "correct", **{name: value}) for role, value in
            (("whole", one), ("part:0", other), ("part:1", other), ("part:2", one))]  # fmt: skip
    assert check_rows(rows) == [f"case 'c': {name} is {one!r} and {other!r} in different rows"]
    assert check_rows([rows[0], replace(rows[1], case="d"), Graded("c", "part:3", "correct")]) == []
    many = check_rows([replace(row, case=case) for case in "cde" for row in rows])
    assert many == [f"case 'c': {name} is {one!r} and {other!r} in different rows (and 2 more like it)"], "said once"


def test_one_case_with_two_gold_answers_is_pointed_out_once() -> None:
    def row(case: str, gold: str | None, role: str = "whole", model: str = "m") -> Graded:
        return Graded(case, role, "correct", gold=gold, model=model)

    first = [row("a", "Oslo"), row("b", "4 | four"), row("c", "x"), row("d", None)]
    again = [row("a", "oslo", model="n"), row("b", "4.0", model="n"), row("c", "x", "part:0"), row("d", "y", model="n")]
    assert check_rows([*first, *again, row("a", "it", "pair:q1"), row("a", "Rome", "pair:q1")]) == []
    other = [row("a", "Rome", model="n"), row("b", "5", model="n")]
    (said,) = check_rows([*first, *other])
    assert "case 'a', role 'whole': gold is 'Oslo' and 'Rome'" in said and "1 more" in said


@pytest.mark.parametrize(
    ("flag", "outcome", "wrong"),
    [(True, "incorrect", True), (0, "correct", True), ("False", "correct", True), ("1", "abstained", True),
     (1.0, "correct", False), ("true", "correct", False), (False, "abstained", False), (True, "invalid", False),
     ("maybe", "correct", False), (0.5, "correct", False)],
)  # fmt: skip
def test_a_flag_of_another_program_is_held_against_the_outcome(flag: Any, outcome: Any, wrong: bool) -> None:
    found = check_rows([Graded("c", "whole", outcome, answer="1", gold="1", ask="k", extra={"is_right": flag})])
    assert found == ([f"case 'c', role 'whole': field 'is_right' is {flag!r} but outcome is {outcome!r}; the outcome "
                      "counts"] if wrong else [])  # fmt: skip


def test_a_right_answer_that_is_not_there_is_a_contradiction() -> None:
    row = Graded("c", "whole", "correct", gold="1", ask="k")
    assert len(check_rows([row])) == 1
    for other in (replace(row, answer="1"), replace(row, gold=None), replace(row, ask=None),
                  replace(row, outcome="incorrect")):  # fmt: skip
        assert check_rows([other]) == []
