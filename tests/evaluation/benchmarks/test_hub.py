"""Data sets through the ``datasets`` library: a local repository folder, and the errors of a machine without hub."""

from __future__ import annotations

import csv
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from composcope.errors import InputError
from composcope.evaluation.benchmarks import hub
from composcope.evaluation.benchmarks.agentcoma import read_agentcoma
from composcope.evaluation.benchmarks.catalog import load

ROW = {
    "question_commonsense": "Which of a kettle and a spoon is electrical?",
    "answers_commonsense": "['the kettle', 'kettle']",
    "question_math": "You have 2 kettles at 3 each. What do they cost?",
    "answer_math": "6",
    "question_composition": "You have 2 kettles at 3 each and a spoon. What do the electrical things cost?",
    "answer_composition": "6",
    "domain": "home",
}


def _repository(folder: Path, rows: list[dict[str, Any]], name: str = "test.csv") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    if name.endswith(".csv"):
        with (folder / name).open("w", newline="") as f:
            writer = csv.DictWriter(f, list(rows[0]))
            writer.writeheader()
            writer.writerows(rows)
    else:
        (folder / name).write_text("".join(json.dumps(r) + "\n" for r in rows))
    return folder


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    datasets = pytest.importorskip("datasets", reason="needs the extra `data`")
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")


@pytest.mark.usefixtures("cache")
def test_rows_of_a_repository_are_read_as_the_released_file_is(tmp_path: Path) -> None:
    made = _repository(tmp_path / "repository", [ROW, {**ROW, "answer_composition": "7"}])
    found = load(f"hub:agentcoma@{made}:test")
    released = tmp_path / "agentcoma_test.csv"
    released.write_bytes((made / "test.csv").read_bytes())
    assert found == read_agentcoma(released)
    assert [c.answer for c in found] == ["6", "7"] and found[0].parts[0].aliases == ("kettle",)


@pytest.mark.usefixtures("cache")
def test_all_splits_are_read_where_none_is_named(tmp_path: Path) -> None:
    rows = [
        {"question": f"What is {i} + 1?", "answer": f"{i} + 1 = <<{i}+1={i + 1}>>{i + 1}\n#### {i + 1}"} for i in (1, 2)
    ]
    made = _repository(tmp_path / "repository", rows[:1], "train.jsonl")
    _repository(made, rows[1:], "test.jsonl")
    assert {c.answer for c in load(f"hub:gsm8k@{made}")} == {"2", "3"}
    assert [c.answer for c in load(f"hub:gsm8k@{made}:test")] == ["3"]


@pytest.mark.usefixtures("cache")
def test_rows_of_another_shape_are_named_by_the_spec(tmp_path: Path) -> None:
    made = _repository(tmp_path / "repository", [{"question": "?", "reply": "6"}])
    with pytest.raises(InputError, match=r"hub:agentcoma@.*column 'question_commonsense' is missing"):
        load(f"hub:agentcoma@{made}:test")


@pytest.mark.usefixtures("cache")
def test_without_the_hub_the_error_says_what_to_download(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    import huggingface_hub.constants

    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", True)
    with pytest.raises(InputError) as e:
        load("hub:agentcoma:dev")
    said = str(e.value)
    assert "HF_HUB_OFFLINE is set and the cache does not hold it" in said
    assert "download agentcoma_dev.csv from https://huggingface.co/datasets/LisaAlaz/AgentCoMa (gated" in said
    assert "--benchmark agentcoma:PATH/TO/FILE" in said


def test_a_gated_repository_is_told_from_a_missing_network(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)
    gated = hub.DATA_SETS["agentcoma"]
    assert "is gated: accept its conditions" in hub._why(PermissionError("401 Client Error: gated repo"), gated)
    assert "the hub cannot be reached" in hub._why(OSError("Failed to resolve host"), gated)
    assert "cannot be read" in hub._why(ValueError("Unknown split"), gated)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    assert "the cache does not hold it" in hub._why(ValueError("No such cache"), gated)


def test_without_the_package_the_error_says_which_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "datasets", None)
    with pytest.raises(InputError, match=r"pip install 'composcope\[data\]'; or download"):
        load("hub:tot")


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ("hub:agent", "no such data set; use one of agentcoma, gsm8k"),
        ("hub:compositional-gsm", "is not released; `composcope build compositional-gsm`"),
        ("hub:composition-collapse", "composcope build temporal"),
        ("hub:bamboogle", "give --benchmark bamboogle:FILE"),
        ("hub:cases@a/b", "no reader 'cases'"),
        ("hub:stad@", "the repository is missing"),
    ],
)
def test_specs_that_mean_nothing_are_one_line(spec: str, said: str) -> None:
    with pytest.raises(InputError, match=said):
        load(spec)


def test_a_spec_names_repository_config_and_split() -> None:
    assert hub.parse("stad@me/scaffolds#v2:train") == hub.DataSet("stad", "me/scaffolds", "v2", "train")
    assert hub.parse("stad").split is None
    assert (hub.parse("agentcoma:dev").file, hub.parse("agentcoma:dev").split) == ("agentcoma_dev.csv", "dev")
    assert (hub.parse("agentcoma").file, hub.parse("agentcoma").split) == ("agentcoma_test.csv", "test")


def test_lists_and_columns_that_only_some_rows_have_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    more = {**ROW, "answers_commonsense": ["the kettle", "Ann's 'pot'"], "note": "n"}
    monkeypatch.setattr(hub, "_rows", lambda found, rest: [ROW, more])
    first, second = load("hub:agentcoma")
    assert (second.parts[0].answer, second.parts[0].aliases) == ("the kettle", ("Ann's 'pot'",))
    assert (first.meta, second.meta) == ({"note": ""}, {"note": "n"})


def test_a_split_without_rows_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hub, "_rows", lambda found, rest: [])
    with pytest.raises(InputError, match="hub:gsm8k:train: the data set has no rows"):
        load("hub:gsm8k:train")
