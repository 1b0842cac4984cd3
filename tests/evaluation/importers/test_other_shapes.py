"""Files that look like a kind of results and hold something else are one error each, and no defect."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from composcope.errors import InputError
from composcope.evaluation.importers import read

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
