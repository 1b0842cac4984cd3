"""Two doses of the second series as GPT-2 and as Qwen3: shipped with a card of their own."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from composcope.errors import InputError
from composcope.evaluation.statistics import clopper_pearson
from composcope.experiments.cli import organism as cli
from composcope.experiments.organism import card, crossed, errors, weights
from composcope.experiments.organism.recipe import CROSSED_RECIPE

CARDS = {
    shape: json.loads((weights.SHAPED_FOLDER / shape / "card.json").read_text(encoding="utf-8"))
    for shape in weights.SHAPES
}


def _value(shape: str, dose: str, name: str) -> float:
    rows = [r for table in CARDS[shape]["models"][dose]["tables"].values() for r in table if r["measure"] == name]
    assert len(rows) == 1, name
    return rows[0]["value"]


@pytest.mark.parametrize("name", weights.SHAPED)
def test_each_ships_with_the_weights_of_its_card_trained_like_the_llama_shaped_ones(name: str) -> None:
    folder, dose = weights.path(name), weights.SHAPED[name]
    data = (folder / "model.safetensors").read_bytes()
    shape = folder.parent.name
    assert CARDS[shape]["models"][dose]["sha256"] == hashlib.sha256(data).hexdigest()
    about = json.loads((folder / "organism.json").read_text(encoding="utf-8"))
    assert about["documents"] == crossed.SECOND.fingerprint(about["seed"]) and about["seed"] == 0
    recipe = {**CROSSED_RECIPE.record(), "architecture": shape}
    for stages in (about["recipe"], recipe):
        stages["dose"].pop("steps")
    assert about["recipe"] == recipe
    assert json.loads((folder / "config.json").read_text(encoding="utf-8"))["model_type"] == shape


@pytest.mark.parametrize("shape", weights.SHAPES)
def test_the_card_is_the_one_that_its_figures_make(shape: str) -> None:
    text = (weights.SHAPED_FOLDER / shape / "CARD.md").read_text(encoding="utf-8")
    assert text == card.markdown(CARDS[shape])
    assert {"crossed-none", "crossed-both"} <= set(CARDS[shape]["models"]) <= set(weights.CROSSED)


def test_all_trained_doses_together_are_small() -> None:
    folders = (weights.FOLDER, weights.CROSSED_FOLDER, weights.SHAPED_FOLDER)
    assert sum(f.stat().st_size for folder in folders for f in folder.rglob("*") if f.is_file()) <= 25e6


@pytest.mark.parametrize("shape", weights.SHAPES)
def test_the_dose_with_compositions_composes_and_the_one_without_knows_the_parts(shape: str) -> None:
    for dose in ("crossed-none", "crossed-both"):
        assert _value(shape, dose, "both parts") >= 0.9
        assert _value(shape, dose, "mixed: wrong form, of all answers") <= 0.03
    assert _value(shape, "crossed-both", "deep lists: loops and wrong forms, of all answers") <= 0.03
    exact = {d: _value(shape, d, "mixed: exact working (chance: one operand right)") for d in CARDS[shape]["models"]}
    assert exact["crossed-both"] - exact["crossed-none"] > 0.3


@pytest.mark.parametrize("name", weights.SHAPED)
def test_a_fresh_sample_agrees_with_the_card(name: str) -> None:
    folder = weights.path(name)
    ask = card.ask_folder(folder)
    for row in errors.mixed(ask, 20, seed=78)[:4]:
        sample = clopper_pearson(row.k, row.n, 0.999)
        assert sample.low is not None and sample.high is not None
        assert sample.low <= _value(folder.parent.name, weights.SHAPED[name], row.measure) <= sample.high, row.measure


def test_a_card_is_written_of_the_doses_that_are_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shipped: list[tuple[str, ...]] = []
    monkeypatch.setattr(card, "ship", lambda homes, doses, *_: shipped.append(tuple(doses)))
    (tmp_path / "seed-old").mkdir()
    arguments = ["card", str(tmp_path), "--crossed", "--out", str(tmp_path / "out")]
    nothing = CliRunner().invoke(cli.app, arguments)
    assert isinstance(nothing.exception, InputError) and "crossed-deep" in str(nothing.exception) and not shipped
    for dose in ("crossed-both", "crossed-none"):
        (tmp_path / "seed-0" / dose / "model").mkdir(parents=True)
    found = CliRunner().invoke(cli.app, arguments)
    assert shipped == [("crossed-none", "crossed-both")] and not found.exception
    assert "crossed-mixed, crossed-deep" in found.output


def test_a_shape_is_called_by_its_share_and_named_where_its_weights_are_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert weights.called("qwen3-crossed-both") == "qwen3-crossed-both (46 %)"
    monkeypatch.setattr(weights, "SHAPED_FOLDER", tmp_path)
    with pytest.raises(InputError, match="--dose crossed-none --architecture qwen3"):
        weights.path("qwen3-crossed-none")
