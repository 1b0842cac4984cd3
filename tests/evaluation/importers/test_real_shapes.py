"""Shapes that the harnesses themselves write: Zstandard archives of inspect_ai, multiple choice of lm-evaluation."""

from __future__ import annotations

import json
import struct
import zlib
from pathlib import Path
from typing import Any

import pytest

from composcope.errors import InputError
from composcope.evaluation import importers
from composcope.evaluation.importers import read
from composcope.evaluation.importers.inspect_logs import ZSTANDARD

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
    from composcope.evaluation.importers import inspect_logs

    path = archive(tmp_path)
    monkeypatch.setattr(inspect_logs, "ZSTANDARD_READERS", {reader: inspect_logs.ZSTANDARD_READERS[reader]})
    assert len(importers.read(path).rows) == 3


def test_without_a_library_the_fix_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from composcope.evaluation.importers import inspect_logs

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
    path.write_text(json.dumps(choices(1.0, "-3.0")) + "\n")
    (tmp_path / "results_2026-11-20T21-24-58.731625.json").write_text(json.dumps({"model_name": "some/model"}))
    (row,) = importers.read(path).rows
    assert (row.answer, row.gold, row.outcome, row.model) == ("1", "1", "correct", "some/model")
    assert not importers.read(path).contradictions


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
