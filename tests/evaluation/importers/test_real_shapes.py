"""Shapes that the harnesses themselves write: Zstandard archives of inspect_ai, multiple choice of lm-evaluation."""

from __future__ import annotations

import json
import struct
import zipfile
import zlib
from pathlib import Path
from typing import Any

import pytest

from composcope.errors import InputError
from composcope.evaluation import importers
from composcope.evaluation.importers import inspect_logs, read
from composcope.evaluation.importers.inspect_logs import ZSTANDARD, ZSTANDARD_READERS

HEADER = {"version": 2, "status": "success", "eval": {"task": "sums", "model": "mockllm/model"}, "results": {}}


def sample(n: int, value: str) -> dict[str, object]:
    score = {"match": {"value": value, "answer": str(n)}}
    return {"id": n, "epoch": 1, "target": "1", "scores": score, "metadata": {"case": f"c{n}", "role": "part:0"}}


def zstandard_zip(path: Path, members: dict[str, bytes], *, damage: bool = False) -> None:
    """A zip archive whose members are compressed with Zstandard, as inspect_ai writes it."""
    pa = pytest.importorskip("pyarrow")
    body, directory = b"", b""
    for name, content in members.items():
        raw = pa.Codec("zstd").compress(content, asbytes=True)
        crc = zlib.crc32(content) ^ damage
        sizes = struct.pack("<3I", crc, len(raw), len(content))
        common = struct.pack("<4H", 63, 0, ZSTANDARD, 0) + struct.pack("<H", 33) + sizes
        offset = len(body)
        body += b"PK\3\4" + common + struct.pack("<2H", len(name), 4) + name.encode() + b"\0\0\0\0" + raw
        directory += (
            b"PK\1\2" + struct.pack("<H", 63) + common + struct.pack("<3H2H2I", len(name), 0, 0, 0, 0, 0, offset)
        )
        directory += name.encode()
    n = len(members)
    end = b"PK\5\6" + struct.pack("<4H2IH", 0, 0, n, n, len(directory), len(body), 0)
    path.write_bytes(body + directory + end)


def archive(tmp_path: Path, **options: bool) -> Path:
    path = tmp_path / "log.eval"
    members = {"header.json": json.dumps(HEADER).encode()}
    for n, value in ((1, "C"), (2, "I"), (3, "N")):
        members[f"samples/{n}_epoch_1.json"] = json.dumps(sample(n, value)).encode()
    zstandard_zip(path, members, **options)
    return path


def test_an_eval_log_compressed_with_zstandard_is_read(tmp_path: Path) -> None:
    found = importers.read(archive(tmp_path))
    assert [(r.case, r.role, r.outcome, r.model) for r in found.rows] == [
        ("c1", "part:0", "correct", "mockllm/model"),
        ("c2", "part:0", "incorrect", "mockllm/model"),
        ("c3", "part:0", "invalid", "mockllm/model"),
    ]


@pytest.mark.parametrize("reader", ["zstandard", "pyarrow"])
def test_either_library_is_enough(tmp_path: Path, reader: str, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip(reader)
    path = archive(tmp_path)
    monkeypatch.setattr(inspect_logs, "ZSTANDARD_READERS", {reader: inspect_logs.ZSTANDARD_READERS[reader]})
    assert len(importers.read(path).rows) == 3


def test_without_a_library_the_fix_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = archive(tmp_path)
    monkeypatch.setattr(inspect_logs, "ZSTANDARD_READERS", {"no_such_module": None})
    with pytest.raises(InputError, match=r"Zstandard.*pip install zstandard"):
        importers.read(path)


def test_damaged_content_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="CRC"):
        importers.read(archive(tmp_path, damage=True))


def choices(acc: float, second: str) -> dict[str, object]:
    found = [["-14.2", "False"], [second, "False"]]
    return {
        "doc_id": 0, "doc": {"case": "c1", "role": "whole"}, "target": "1", "filter": "none", "metrics": ["acc"],
        "resps": [[f] for f in found], "filtered_resps": found, "acc": acc,
    }  # fmt: skip


def test_multiple_choice_answers_with_the_likeliest_choice(tmp_path: Path) -> None:
    path = tmp_path / "samples_mc_2026-11-20T21-24-58.731625.jsonl"
    both = {"metrics": ["acc_norm", "acc"], "acc_norm": 0.0}
    path.write_text(json.dumps({**choices(1.0, "-3.0"), **both}) + "\n")
    (tmp_path / "results_2026-11-20T21-24-58.731625.json").write_text(json.dumps({"model_name": "some/model"}))
    (row,) = importers.read(path).rows
    assert (row.answer, row.gold, row.outcome, row.model) == ("1", "1", "correct", "some/model") and row.match == "acc"
    assert [r.model for r in importers.read(path, options=importers.Options(model="m")).rows] == ["m"]
    assert not importers.read(path).contradictions


@pytest.mark.parametrize(
    ("kept", "answer"),
    [(["7 "], "7"), ([["7 "]], "7"), ([[""]], ""), ([["7", "8"]], None), ([["-1.5", "False"]], None)],
)
def test_an_answer_of_a_filter_that_keeps_all_responses_is_read(kept: Any, answer: str | None, tmp_path: Path) -> None:
    path = tmp_path / "samples_gen.jsonl"
    sample = {"doc_id": 0, "doc": {}, "target": "7", "resps": [["It is 7"]], "filtered_resps": kept, "exact_match": 1.0}
    path.write_text(json.dumps(sample) + "\n")
    assert [r.answer for r in importers.read(path).rows] == [answer]


def test_an_accuracy_that_the_likelihoods_speak_against_is_reported(tmp_path: Path) -> None:
    path = tmp_path / "samples_mc.jsonl"
    path.write_text(json.dumps(choices(1.0, "-30.0")) + "\n")
    found = importers.read(path)
    assert [(c["field"], c["stored"], c["recomputed"]) for c in found.contradictions] == [("acc", 1.0, 0)]
    assert found.rows[0].outcome == "correct", "the stored verdict is kept"


@pytest.mark.parametrize(
    "unknown",
    [
        {"target": "B"},
        {"target": None},
        {"acc": None},
        {"filtered_resps": ["0"], "resps": [["0"]]},
        {"filtered_resps": [["?", "False"], ["-3.0", "False"]]},
        {"filtered_resps": [["nan", "False"], ["-3.0", "False"]]},
    ],
)
def test_nothing_speaks_against_an_accuracy_without_likelihoods_or_the_number_of_the_right_choice(
    unknown: dict[str, object], tmp_path: Path
) -> None:
    path = tmp_path / "samples_mc.jsonl"
    path.write_text(json.dumps({**choices(1.0, "-30.0"), **unknown}) + "\n")
    assert importers.read(path).contradictions == []


# --- files that look like a kind of results and hold something else are one error each, and no defect ---------------


SAMPLE = {"doc_id": 1, "doc": {}, "exact_match": 1}
LOG = {"version": 2, "eval": {}}


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("samples_x.jsonl", {**SAMPLE, "metrics": 3}),
        ("samples_x.jsonl", {**SAMPLE, "filtered_resps": {"a": 1}, "filter": {}}),
        ("log.json", {**LOG, "samples": [{"id": 1, "scores": 3}]}),
        ("log.json", {**LOG, "samples": [{"id": 1, "epoch": "first"}]}),
        ("log.json", {**LOG, "samples": [{"id": 1, "metadata": [1]}]}),
        ("log.json", {**LOG, "samples": 3}),
        ("results.json", {"per_question_results": [3]}),
        ("results.json", {"per_question_results": [{"direct": 1}]}),
        ("results.json", {"per_question_results": [{"direct": {}, "subquestions_result": 3}], "summary": []}),
        ("stad.jsonl", {"question": 1, "answer": {}, "steps": 3}),
    ],
)
def test_a_file_of_another_shape_is_refused_with_its_name(name: str, content: Any, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_text(json.dumps(content))
    with pytest.raises(InputError, match=name):
        read(path)


COUNTED = {"metrics": ["f1"], "f1": 1}
TWO = {"a": {"value": "C"}, "b": {"value": "I"}}


@pytest.mark.parametrize(
    ("name", "content", "options", "said"),
    [
        ("samples_x.jsonl", {"doc_id": 1, "exact_match": 1}, {"kind": "lm-eval"}, ("{path}:1", "doc_id and doc")),
        ("samples_x.jsonl", {"doc": {}, "exact_match": 1}, {"kind": "lm-eval"}, ("{path}:1", "doc_id and doc")),
        ("samples_x.jsonl", {**SAMPLE, "filter": "strict"}, {"filter": "loose"},
         ("--filter loose", "{path} has strict")),
        ("samples_x.jsonl", SAMPLE, {"scorer": "f1"}, ("{path}:1", "--scorer f1", "it has exact_match")),
        ("samples_x.jsonl", {**SAMPLE, "metrics": ["f1", "bleu"]}, {}, ("{path}:1", "f1, bleu", "--scorer")),
        ("samples_x.jsonl", SAMPLE, {"case_field": "item"}, ("{path}:1", "--case-field item", "no such field")),
        ("samples_x.jsonl", {**SAMPLE, "doc": {"b": 1, "a": 2}}, {"role_field": "r"},
         ("--role-field r", "it has a, b, doc_id")),
        ("samples_x.jsonl", {**SAMPLE, "doc": {"r": ""}}, {"role_field": "r"}, ("--role-field r", "it has doc_id, r")),
        ("log.json", {**LOG, "samples": []}, {}, ("{path}", "no samples")),
        ("log.json", {"version": 2, "eval": 3}, {}, ("{path}", "'eval'")),
        ("log.json", [LOG], {"kind": "inspect"}, ("{path}", "'eval'")),
        ("log.json", {**LOG, "samples": [3]}, {}, ("{path}", "not objects")),
        ("log.json", {**LOG, "samples": [{"id": 7, "scores": TWO}]}, {},
         ("{path}: sample 7, epoch 1", "a, b", "--scorer")),
        ("log.json", {**LOG, "samples": [{"id": 7, "epoch": 2, "scores": TWO}]}, {"scorer": "c"},
         ("{path}: sample 7, epoch 2", "--scorer c", "a, b")),
        ("m.json", {"a": 1}, {"kind": "bamboogle"}, ("{path}", "'per_question_results' is missing")),
        ("m.json", {"per_question_results": {}}, {}, ("{path}", "'per_question_results' is missing")),
        ("m.json", {"per_question_results": []}, {}, ("{path}", "per_question_results is empty")),
        ("m.json", {"per_question_results": [{"subquestions_result": {}}]}, {}, ("{path}", "no prompt style")),
        ("s.jsonl", {"question": "q", "answer": 1, "decomposition_score": 3}, {},
         ("{path}:1", "decomposition_score is 3")),
        ("s.jsonl", {"question": "q", "answer": 1}, {}, ("{path}", "scaffolding_score")),
        ("m.csv", None, {}, ("{path}", "is empty")),
        ("m.json", None, {}, ("{path}", "is empty")),
        ("m.json", {}, {"kind": "helm"}, ("--from helm", "lm-eval, inspect, bamboogle, stad, rows")),
        ("samples_x.jsonl", SAMPLE, {"whole": "cot"}, ("--whole is for bamboogle", "read as lm-eval")),
        ("log.json", LOG, {"filter": "f"}, ("--filter is for lm-eval", "read as inspect")),
        ("log.json", LOG, {"kind": "inspect", "response_field": "f"},
         ("--response-field is for rows", "read as inspect")),
        ("log.json", LOG, {"kind": "inspect", "gold_field": "f"}, ("--gold-field is for rows", "read as inspect")),
    ],
)  # fmt: skip
def test_what_a_file_lacks_is_named_with_place_field_or_option_and_what_there_is(
    name: str, content: Any, options: dict[str, Any], said: tuple[str, ...], tmp_path: Path
) -> None:
    path = tmp_path / name
    path.write_text("" if content is None else json.dumps(content))
    given = {k: v for k, v in options.items() if k != "kind"}
    with pytest.raises(InputError) as caught:
        read(path, options.get("kind"), importers.Options(**given))
    assert all(fact.format(path=path) in str(caught.value) for fact in said), caught.value


def test_options_choose_among_scorers_and_filters_and_name_case_and_role(tmp_path: Path) -> None:
    def one(name: str, content: Any, **options: Any) -> tuple[Any, ...]:
        path = tmp_path / name
        path.write_text(json.dumps(content))
        (row,) = read(path, options=importers.Options(**options)).rows
        return row.case, row.role, row.outcome, row.match

    log = {**LOG, "samples": [{"id": 7, "scores": TWO, "metadata": {"item": "k", "place": "part:1"}}]}
    named = {"case_field": "item", "role_field": "place"}
    assert one("log.json", log, scorer="a", role="part:0") == ("log-7", "part:0", "correct", "a")
    assert one("log.json", log, scorer="b", **named) == ("k", "part:1", "incorrect", "b")
    sample = {**SAMPLE, "doc": {"item": 0, "place": "part:1"}, "metrics": ["exact_match", "f1"], "f1": 0}
    assert one("samples_x.jsonl", sample, **named) == ("0", "part:1", "correct", "exact_match")
    assert one("samples_x.jsonl", sample, scorer="f1") == ("x-1", "whole", "incorrect", "f1")
    tasks = {"case_field": "doc_id", "role": "part:0"}  # one task per part, with the cases in the same order
    assert one("samples_x.jsonl", sample, scorer="f1", **tasks) == ("1", "part:0", "incorrect", "f1")
    assert one("log.json", log, scorer="a", case_field="id") == ("7", "whole", "correct", "a")
    assert one("samples_x.jsonl", {**SAMPLE, **COUNTED}) == ("x-1", "whole", "correct", "f1")
    unscored = {**LOG, "samples": [{"id": 7}]}
    assert one("log.json", unscored, scorer="a") == ("log-7", "whole", "invalid", "a")


@pytest.mark.parametrize("reader", ["zstandard", "pyarrow"])
def test_damaged_zstandard_content_is_refused_by_each_library(
    tmp_path: Path, reader: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip(reader)
    path = archive(tmp_path)
    whole = path.read_bytes()
    at = whole.index(b"\x28\xb5\x2f\xfd")
    monkeypatch.setattr(inspect_logs, "ZSTANDARD_READERS", {reader: ZSTANDARD_READERS[reader]})
    path.write_bytes(whole[:at] + b"\0\0\0\0" + whole[at + 4 :])
    with pytest.raises(InputError, match=r"log\.eval.*Zstandard") as damaged:
        importers.read(path)
    assert "pip install" not in str(damaged.value), "what reads it is there"
    path.write_bytes(b"XX" + whole[2:])  # the header of the first member
    with pytest.raises(InputError, match=r"log\.eval.*header\.json"):
        importers.read(path)


def test_an_archive_that_is_closed_is_not_read(tmp_path: Path) -> None:
    with zipfile.ZipFile(archive(tmp_path)) as found:
        pass
    with pytest.raises(zipfile.BadZipFile):
        inspect_logs.read_member(found, "header.json")


@pytest.mark.parametrize("content", ["{", "[]", '{"model_name": 3}', '{"model_name": ""}', None])
def test_a_results_file_that_does_not_name_the_model_leaves_it_unknown(content: str | None, tmp_path: Path) -> None:
    path = tmp_path / "samples_mc_2026-11-20T21-24-58.731625.jsonl"
    path.write_text(json.dumps(choices(1.0, "-3.0")) + "\n")
    if content is not None:
        (tmp_path / "results_2026-11-20T21-24-58.731625.json").write_text(content)
    assert [r.model for r in importers.read(path).rows] == [None]
    assert [r.model for r in importers.read(path, options=importers.Options(model="m")).rows] == ["m"]


@pytest.mark.parametrize("value", ["yes", 1, None])
def test_a_stored_verdict_that_is_not_yes_or_no_is_invalid(value: Any, tmp_path: Path) -> None:
    sub = {f"Q{n}_is_right_CEM": True for n in (1, 2)}
    item = {"direct_answer": {"is_right_CEM": value, "is_right_EM": True}, "subquestions_result": sub}
    path = tmp_path / "m.json"
    path.write_text(json.dumps({"per_question_results": [item]}))
    whole, first, second = read(path).rows
    assert (whole.outcome, first.outcome, second.outcome) == ("invalid", "correct", "correct")
    assert repr(value) in str(whole.reason) and first.reason is None


def test_a_file_of_failed_items_or_of_failed_judgements_says_so(tmp_path: Path) -> None:
    def warned(*records: dict[str, Any]) -> list[str]:
        path = tmp_path / "s.jsonl"
        path.write_text("".join(json.dumps({"question": "q", "answer": 3, **r}) + "\n" for r in records))
        return [w.removeprefix(f"{path}: ") for w in read(path).warnings]

    failed, solved = {"evaluation_score": 0, "scaffolding_score": []}, {"evaluation_score": 1, "scaffolding_score": []}
    assert ["failed items only" in w for w in warned(failed)] == [True]
    assert warned(failed, solved) == warned({"evaluation_score": 0}) == []
    (text, judged) = warned({"evaluation_score": "1"}, {"evaluation_score": -1}, {"evaluation_score": "0"})
    assert text.startswith("2 ") and judged.startswith("1 ")


@pytest.mark.parametrize(
    ("target", "golds"), [(" 7 ", ("7",)), ([" a", "b ", None, " "], ("a", "b")), (" ", None), (None, None)]
)
def test_the_golds_of_a_sample_are_its_targets_without_white_space(
    target: Any, golds: tuple[str, ...] | None, tmp_path: Path
) -> None:
    path = tmp_path / "log.json"
    path.write_text(json.dumps({**LOG, "samples": [{"id": 1, "target": target, "output": {"completion": "7"}}]}))
    (stored,) = read(path).stored
    assert (stored and stored.golds) == golds


@pytest.mark.parametrize(
    "content",
    ["It is 7.", ["It is 7."], [{"type": "reasoning", "reasoning": "Is it 8?"}, {"type": "text", "text": "It is 7."}]],
)
def test_a_log_without_completions_has_the_response_in_its_message(content: Any, tmp_path: Path) -> None:
    message = {"role": "assistant", "content": content}
    output = {"model": "m", "choices": [{"message": message, "stop_reason": "stop"}]}
    path = tmp_path / "log.json"
    path.write_text(json.dumps({**LOG, "samples": [{"id": 1, "target": "7", "output": output}]}))
    assert [s and s.response for s in read(path).stored] == ["It is 7."]


@pytest.mark.parametrize(
    ("target", "kind", "options"),
    [("B", "choice", ("A", "B", "C")), (["B"], "choice", ("A", "B", "C")), ("tea", "choice", ("A", "B", "C")),
     (["A", "C"], None, ()), ("D", None, ())],
)  # fmt: skip
def test_a_sample_is_a_choice_where_its_one_target_is_one_of_its_options(
    target: Any, kind: str | None, options: tuple[str, ...], tmp_path: Path
) -> None:
    sample = {"id": 1, "target": target, "choices": ["milk", "tea", "beer"], "output": {"completion": "B"}}
    path = tmp_path / "log.json"
    path.write_text(json.dumps({**LOG, "samples": [sample]}))
    (stored,) = read(path).stored
    assert stored is not None and (stored.answer_type, tuple(k for k, _ in stored.options)) == (kind, options)
