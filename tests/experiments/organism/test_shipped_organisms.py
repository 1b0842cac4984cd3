"""The shipped organisms: they load anywhere, fit their size, and do what their card says."""

from __future__ import annotations

import hashlib
import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from composcope.errors import InputError
from composcope.evaluation.statistics import clopper_pearson
from composcope.experiments.organism import card, measure, weights
from composcope.experiments.organism.tokenizer import build

CARD: dict[str, Any] = json.loads((weights.FOLDER / "card.json").read_text(encoding="utf-8"))


@cache
def _ask(dose: str) -> measure.AskModel:
    return card.ask_folder(weights.path(dose))


def _row(dose: str, name: str) -> dict[str, Any]:
    return next(r for rows in CARD["models"][dose]["tables"].values() for r in rows if r["measure"] == name)


def _value(dose: str, name: str) -> float:
    return _row(dose, name)["value"]


def test_all_four_together_take_at_most_20_megabytes() -> None:
    files = [f for f in weights.FOLDER.rglob("*") if f.is_file()]
    assert sum(f.stat().st_size for f in files) <= 20e6
    assert {f.parent.name for f in files if f.suffix == ".safetensors"} == set(weights.DOSES)


def test_an_unknown_dose_is_refused_by_name() -> None:
    with pytest.raises(InputError, match=r"'medium'.*composcope organism list"):
        weights.path("medium")


@pytest.mark.parametrize("dose", weights.DOSES)
def test_a_shipped_folder_loads_as_any_hugging_face_model_in_float32(dose: str) -> None:
    model = AutoModelForCausalLM.from_pretrained(weights.path(dose))
    assert type(model).__name__ == "LlamaForCausalLM" and model.dtype == torch.float32
    assert model.num_parameters() == CARD["parameters"]


def test_the_shipped_tokenizer_is_the_one_that_the_world_gives() -> None:
    shipped, built = AutoTokenizer.from_pretrained(weights.path("control")), build()
    assert shipped.get_vocab() == built.get_vocab()
    assert shipped.chat_template == built.chat_template


def test_the_card_is_about_the_shipped_weights() -> None:
    for dose in weights.DOSES:
        data = (weights.path(dose) / "model.safetensors").read_bytes()
        assert CARD["models"][dose]["sha256"] == hashlib.sha256(data).hexdigest()
    assert (weights.FOLDER / "CARD.md").read_text(encoding="utf-8") == card.markdown(CARD)


def test_every_organism_knows_its_facts_and_its_parts() -> None:
    for dose in weights.DOSES:
        for relation in ("year", "tag", "kind"):
            assert _value(dose, f"{relation}: facts stable over trained wordings") == 1, (dose, relation)
        for part in ("commonsense only", "commonsense with irrelevant numbers", "math only", "both parts"):
            assert _value(dose, part) >= 0.95, (dose, part)
        assert _value(dose, "residual failure, depth bin 2") <= 0.08, dose


def test_composition_follows_the_dose() -> None:
    bands = {"none": (0, 0.03), "control": (0.15, 0.45), "low": (0.55, 0.85), "twin": (0.95, 1)}
    for dose, (low, high) in bands.items():
        row = _row(dose, "composition")
        assert low <= row["value"] <= high and row["n"] >= 400, (dose, row)
        assert row["chance"] <= 0.05


def test_the_control_collapses_with_depth_and_the_twin_much_less() -> None:
    bins = [_value("control", f"residual failure, depth bin {d}") for d in (2, 4, 6, 8)]
    assert bins == sorted(bins)
    for cell in ("rank, depth 8", "successor, depth 8", "interval, depth bin 8"):
        assert _value("control", f"residual failure, {cell}") >= 0.8, cell
    for d in (4, 6, 8):
        name = f"residual failure, depth bin {d}"
        assert _value("control", name) - _value("twin", name) >= 0.3, name


def _agrees(row: measure.CardRow, dose: str) -> bool:
    """The 99.9 % interval of the sample meets the card's interval."""
    sample, kept = clopper_pearson(row.k, row.n, 0.999), _row(dose, row.measure)
    assert sample.low is not None and sample.high is not None
    return sample.low <= kept["high"] and kept["low"] <= sample.high


@pytest.mark.parametrize("dose", ["control", "twin"])
def test_a_fresh_sample_agrees_with_the_card(dose: str) -> None:
    rows = [*measure.mixed(_ask(dose), 60, seed=77)[:5], *measure.temporal(_ask(dose), 8, seed=77)]
    compared = [r for r in rows if r.n >= 8 and _row(dose, r.measure)["n"]]
    assert len(compared) > 10
    assert [r.measure for r in compared if not _agrees(r, dose)] == []


@pytest.mark.slow
@pytest.mark.parametrize("dose", weights.DOSES)
def test_the_card_is_computed_again_from_the_shipped_weights(dose: str) -> None:
    tables = card.sections(_ask(dose), CARD["cases_per_cell"])
    for name, rows in tables.items():
        for row, kept in zip(rows, CARD["models"][dose]["tables"][name], strict=True):
            assert (row.measure, row.n) == (kept["measure"], kept["n"])
            # a tie broken otherwise by another processor may turn an answer or two
            assert abs(row.k - kept["k"]) <= 2, row


@pytest.mark.slow
def test_at_least_three_seeds_per_dose_are_on_the_card() -> None:
    assert len(CARD["seeds"]) >= 3
    for models in CARD["seeds"].values():
        assert set(models) == set(weights.DOSES)


def test_the_weights_folder_holds_nothing_but_models_and_cards() -> None:
    names = {p.name for p in Path(weights.FOLDER).iterdir()}
    assert names == {*weights.DOSES, "CARD.md", "card.json"}
