"""How doses are called: by the share of compositions in training, wherever people read them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from composcope.experiments.cli import main
from composcope.experiments.models import target
from composcope.experiments.models.resolve import ModelSource
from composcope.experiments.organism import card, weights
from composcope.experiments.run.reader import read_run


@pytest.mark.parametrize(
    ("model", "label", "dose", "called"),
    [
        ("organism:none", "none", None, "none (0 %)"),
        ("organism:control", "control", None, "control (0.45 %)"),
        ("organism:low", "organism:low", None, "low (1.1 %)"),
        ("organism:twin", "twin", None, "twin (50 %)"),
        ("organism:control", "my own name", None, "my own name"),
        ("trainings/seed-3/control/model", "control-seed-3", "control", "control (0.45 %), seed 3"),
        ("models/low", "low", None, "low"),
        ("organism:plant-lost-late", "plant-lost-late", None, "plant-lost-late"),
    ],
)
def test_a_dose_is_called_by_its_share_and_other_models_by_their_name(
    model: str, label: str, dose: str | None, called: str
) -> None:
    assert weights.model_called(model, label, dose) == called


@pytest.mark.parametrize(
    ("model", "label"),
    [("organism:twin", "organism:twin"), ("Qwen/Qwen3-8B", "Qwen/Qwen3-8B"),
     *((folder, "mine") for folder in ("./mine", "/models/mine/", "~/mine", "a/b/mine", "mine"))],
)  # fmt: skip
def test_a_model_is_labelled_by_its_name_on_the_hub_or_the_last_part_of_its_folder(model: str, label: str) -> None:
    assert target.label(model) == label


def test_a_folder_has_one_label_however_its_path_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a" / "mine").mkdir(parents=True)

    def label(name: str, is_folder: bool) -> str:
        return target.Target(ModelSource(name, name, is_folder), None, None, None, "raw").label

    assert {label(name, True) for name in ("a/mine", "a/mine/", "./a/mine", str(tmp_path / "a" / "mine"))} == {"mine"}
    assert (label("owner/name", True), label("a/mine", False)) == ("owner/name", "a/mine"), "of the cache; of a server"


@pytest.mark.parametrize("dose", weights.DOSES)
def test_the_share_that_a_dose_is_called_by_is_what_its_training_saw_within_chance(dose: str) -> None:
    counts = json.loads((weights.FOLDER / "card.json").read_text(encoding="utf-8"))["models"][dose]["compositions"]
    seen, of = counts["mixed"] + counts["deep"], counts["documents"]
    said = float(weights.percent(dose)) / 100
    assert said == pytest.approx(sum(asdict(weights.DOSES[dose]).values()))
    assert abs(seen - said * of) <= 3 * (said * (1 - said) * of) ** 0.5


def test_a_run_of_an_organism_shows_the_dose(tmp_path: Path, synthetic: ModuleType) -> None:
    synthetic.make_run(tmp_path / "run", n=4, model="organism:control")
    assert read_run(tmp_path / "run").model == "control (0.45 %)"


def test_a_run_is_called_as_its_study_calls_it_else_by_the_last_part_of_its_model(
    tmp_path: Path, synthetic: ModuleType
) -> None:
    for name in ("a", "b"):
        synthetic.make_run(tmp_path / name, n=4, probes=(), model="/models/mine")
    (tmp_path / "study.json").write_text(json.dumps({"schema": 1, "runs": ["a"], "about": {"a": {"label": "ours"}}}))
    assert [read_run(tmp_path / name).model for name in ("a", "b")] == ["ours", "mine"]


def test_every_seed_of_a_card_is_measured_from_its_own_folder_and_only_the_shipped_one_in_full(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    homes = {seed: tmp_path / str(seed) for seed in (3, 5)}
    for seed, dose in ((3, "none"), (5, "none"), (5, "twin")):
        (homes[seed] / dose / "model").mkdir(parents=True)
        for name in ("organism.json", "config.json"):
            (homes[seed] / dose / "model" / name).write_text('{"vocab_size": 3}', encoding="utf-8")
    asked: list[tuple[Path, int, bool]] = []

    def entry(folder: Path, n: int, formats: bool = True) -> dict[str, Any]:
        asked.append((folder, n, formats))
        rows = [{"measure": "composition", "value": 1.0}, {"measure": "a format", "value": 0.5}]
        return {"sha256": str(folder), "tables": {"one": rows}}

    monkeypatch.setattr(card, "model_entry", entry)
    monkeypatch.setattr(card, "_parameters", lambda folder: len(str(folder)))
    done: list[float] = []

    @contextmanager
    def bar(title: str, total: int) -> Iterator[Callable[[float], None]]:
        done.append(total)
        yield done.append

    built = card.build_card(homes, ("none", "twin"), 5, 7, bar)
    assert done == [3, 1, 1, 1], "a bar counts what is there"
    folders = [homes[seed] / dose / "model" for seed, dose in ((3, "none"), (5, "none"), (5, "twin"))]
    assert asked == [(folder, 7, seed == 5) for folder, seed in zip(folders, (3, 5, 5), strict=True)]
    assert {dose: m["sha256"] for dose, m in built["models"].items()} == {
        "none": str(folders[1]), "twin": str(folders[2])}  # fmt: skip
    spread = {"Spread": [{"measure": "composition", "value": 1.0}]}
    assert built["seeds"] == {
        "3": {"none": {"sha256": str(folders[0]), "tables": spread}},
        "5": {d: {"sha256": str(f), "tables": spread} for d, f in zip(("none", "twin"), folders[1:], strict=True)},
    }
    assert (built["vocabulary"], built["cases_per_cell"]) == (3, 7)


def test_a_shipped_folder_holds_the_chosen_seeds_models_and_nothing_of_an_earlier_shipping(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    trained, out = tmp_path / "trained", tmp_path / "out"
    for seed in (0, 1):
        for dose in ("none", "twin"):
            (trained / f"seed-{seed}" / dose / "model").mkdir(parents=True)
            (trained / f"seed-{seed}" / dose / "model" / f"of-{seed}").write_text(dose)
    asked: list[tuple[object, ...]] = []
    monkeypatch.setattr(card, "build_card", lambda *given: asked.append(given[:4]) or {})
    monkeypatch.setattr(card, "write_card", lambda built, folder: (folder / "CARD.md").write_text("new"))
    for seed in (0, 1):
        given = ["organism", "card", str(trained), "--out", str(out), "--seed", str(seed), "--n", "7", "--quiet"]
        assert main([*given, "--json"]) == 0
        assert json.loads(capsys.readouterr().out) == {"schema": 1, "card": str(out / "CARD.md")}
        found = {str(p.relative_to(out)): p.read_text() for p in out.rglob("*") if p.is_file()}
        assert found == {f"{dose}/of-{seed}": dose for dose in ("none", "twin")} | {"CARD.md": "new"}
    homes = {seed: trained / f"seed-{seed}" for seed in (0, 1)}
    assert asked == [(homes, ["none", "twin"], seed, 7) for seed in (0, 1)]
    for other in (0, 1):
        assert main(["organism", "card", str(trained), "--out", str(trained / f"seed-{other}")]) == 1
    assert "the folder of a training" in capsys.readouterr().err
    assert len([*trained.glob("seed-*/*/model/of-*")]) == 4 and len(asked) == 2


def test_formats_are_weak_only_in_topics_that_are_known_in_plain_ones() -> None:
    rates = {"year, plain": 0.9, "year, xml": 0.8, "year, cot": 0.9, "math, plain": 0.4, "math, xml": 0.1}
    tables = {"Prompt formats": [{"measure": m, "value": v} for m, v in rates.items()]}
    (line,) = card.weak_formats({"none": {"tables": tables}})
    assert "year, xml" in line and "80 against 90" in line


def test_the_columns_of_the_card_show_the_doses() -> None:
    entry = {"tables": {"Facts": [{"measure": "tag", "chance": None, "n": 0}]}}
    head = card.table("Facts", {"none": entry, "twin": entry}).splitlines()[0]
    assert head == "| Facts | chance | none (0 %) | twin (50 %) |"


@pytest.mark.parametrize("dose", ["low", "crossed-deep"])
def test_the_entry_of_a_model_says_how_it_was_trained_what_it_saw_and_every_row(
    dose: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[Any, ...]] = []
    row = card.CardRow("composition", 3, 4, 0.25)
    monkeypatch.setattr(card, "ask_folder", lambda folder: f"asks {folder.name}")
    monkeypatch.setattr(card, "sections", lambda *given, **how: asked.append((*given, how)) or {"Mixed world": [row]})
    about = {"dose": dose, "seed": 3, "recipe": {"base": {"steps": 9, "batch": 9}, "dose": {"steps": 50, "batch": 8}}}
    (tmp_path / "organism.json").write_text(json.dumps(about))
    (tmp_path / "model.safetensors").write_bytes(b"weights")
    found = card.model_entry(tmp_path, 7, formats=False)
    assert asked == [(f"asks {tmp_path.name}", 7, False, {"workings": dose == "crossed-deep"})]
    assert {k: found[k] for k in about} == about and found["tables"] == {"Mixed world": [row.to_dict()]}
    assert (found["bytes"], found["sha256"]) == (7, hashlib.sha256(b"weights").hexdigest())
    seen = found["compositions"]
    assert seen["documents"] == 50 * 8 and seen == card.composition_counts(dose, 3, 400)
    assert (seen["deep"] > 0) == (dose == "crossed-deep"), "the last stage of its own dose"


def test_a_card_counts_the_parameters_of_its_model_and_is_written_as_numbers_and_as_text(tmp_path: Path) -> None:
    shipped = json.loads((weights.FOLDER / "card.json").read_text())
    assert card._parameters(weights.path("control")) == shipped["parameters"]
    card.write_card(shipped, tmp_path)
    assert json.loads((tmp_path / "card.json").read_text()) == shipped
    assert (tmp_path / "CARD.md").read_text() == card.markdown(shipped)
