"""Trainings of all doses as what they are: read from folders, told apart, refused where they are of another world."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from composcope.errors import InputError
from composcope.experiments.organism import documents, series, train, weights
from composcope.experiments.organism.recipe import OrganismRecipe, Stage
from composcope.experiments.validity.positive_controls import compositions

TINY = OrganismRecipe(
    base=Stage(2, 4e-3, 0.5, batch=4, warmup=2),
    dose=Stage(train.CHUNK, 3e-3, 0.7, batch=8, warmup=2),
    width=16, layers=1, heads=2, mlp=16,
)  # fmt: skip


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of two trainings of two doses, seeds 5 and 6."""
    out = tmp_path_factory.mktemp("organisms")
    for seed in (5, 6):
        for dose in ("none", "twin"):
            train.train(dose, seed, out, TINY, device="cpu")
    return out


@pytest.fixture
def copied(trained: Path, tmp_path: Path) -> Path:
    """The same, to be changed."""
    return Path(shutil.copytree(trained, tmp_path / "organisms"))


def _change(folder: Path, **fields: object) -> None:
    file = folder / "organism.json"
    kept = {k: v for k, v in {**json.loads(file.read_text()), **fields}.items() if v is not None}
    file.write_text(json.dumps(kept))


def test_a_folder_of_trainings_gives_each_seed_with_what_it_was_trained_on(trained: Path) -> None:
    first, second = series.read(trained, ("none", "twin"))
    assert (first.seed, second.seed) == (5, 6) and first.notes == ()
    assert first.model("twin") == str(trained / "seed-5" / "twin" / "model")
    assert first.documents_seen() == train.CHUNK * 8
    (alone,) = series.read(trained / "seed-6", ("none", "twin"))
    assert alone.seed == 6 and alone.folders == second.folders
    series.check([series.shipped(), first, second])


def test_every_dose_of_every_seed_is_trained_once_on_one_thread_and_what_is_done_stays(
    copied: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun: list[tuple[object, ...]] = []
    monkeypatch.setattr(train, "seeds", lambda n: [5, 6, 7][:n])
    monkeypatch.setattr(train, "train", lambda *given: begun.append((torch.get_num_threads(), *given[:5])))
    threads = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        assert train.train_seeds(3, copied, lambda _: None, TINY, "cpu") == copied
    finally:
        torch.set_num_threads(threads)
    left = [*((dose, seed) for seed in (5, 6) for dose in ("control", "low")), *((dose, 7) for dose in weights.DOSES)]
    assert begun == [(1, dose, seed, copied, TINY, "cpu") for dose, seed in left]
    begun.clear()
    train.train_seeds(1, copied, lambda _: None, replace(TINY, width=8), "cpu")
    assert [dose for _, dose, *_ in begun] == list(weights.DOSES), "another recipe is another training"


def test_documents_of_a_chunk_that_was_not_finished_do_not_count_as_seen() -> None:
    recipe = {"dose": {"steps": 2 * train.CHUNK + 1, "batch": 8}}
    assert series.Series(5, {}, recipe).documents_seen() == 2 * train.CHUNK * 8


def test_members_are_those_of_the_seed_and_only_what_it_has_trained_on(trained: Path) -> None:
    first, second = series.read(trained, ("none", "twin"))
    members, held = zip(*(compositions(60, 0, one) for one in (first, second)), strict=True)
    questions = [{c.question for c in m} for m in members]
    assert questions[0] and questions[1] and not questions[0] & questions[1]
    assert held[0] == held[1] and len(held[0]) == 60
    for one, mine in zip((first, second), members, strict=True):
        seen = [documents.document(one.seed, "dose", i, documents.DOSES["twin"]) for i in range(one.documents_seen())]
        text = "\n".join(turn[0] for document in seen for turn in document)
        assert len(mine) < 60 and all(c.question in text for c in mine)


def test_the_shipped_training_is_one_of_its_seed() -> None:
    one = series.shipped()
    recorded = json.loads((weights.path("twin") / "organism.json").read_text())["seed"]
    assert one.seed == recorded and one.model("low") == "organism:low" and list(one.folders) == list(weights.DOSES)


def test_a_folder_that_lacks_a_dose_says_which_and_how_to_train_it(copied: Path) -> None:
    with pytest.raises(InputError, match=r"lacks control, low .*; run: composcope organism train --all --seed 5"):
        series.read(copied)
    (copied / "seed-6" / "none" / "model" / "model.safetensors").unlink()
    with pytest.raises(InputError, match="seed-6 lacks none "):
        series.read(copied, ("none", "twin"))
    with pytest.raises(InputError, match="no trained organisms"):
        series.read(copied.parent)
    with pytest.raises(InputError, match="no such folder"):
        series.read(copied / "nothing")


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"documents": "0" * 64}, "field 'documents' differs from none"),
        ({"seed": 9}, "field 'seed' differs from none"),
        ({"seed": "five"}, "field 'seed' is 'five'"),
        ({"dose": "low"}, "field 'dose' is 'low' in the folder of 'twin'"),
        ({"recipe": {}}, "field 'recipe.dose' lacks steps"),
    ],
)
def test_what_is_recorded_has_to_be_one_training(copied: Path, fields: dict[str, object], said: str) -> None:
    _change(copied / "seed-5" / "twin" / "model", **fields)
    with pytest.raises(InputError, match=said):
        series.read(copied, ("none", "twin"))


@pytest.mark.parametrize(
    ("file", "text", "said"),
    [("organism.json", "{", "train this dose again"), ("organism.json", "[]", "field 'dose' is None"),
     ("tokenizer.json", "{", "JSONDecodeError"), ("tokenizer.json", "{}", "KeyError"),
     ("tokenizer.json", '{"model": {"vocab": [1]}}', "AttributeError")],
)  # fmt: skip
def test_a_broken_file_of_a_training_is_named(file: str, text: str, said: str, copied: Path) -> None:
    (copied / "seed-6" / "twin" / "model" / file).write_text(text)
    with pytest.raises(InputError, match=f"twin/model/{file}.*{said}"):
        series.read(copied, ("none", "twin"))


def test_a_training_on_another_world_is_refused_by_its_documents_or_its_words(copied: Path) -> None:
    for dose in ("none", "twin"):
        _change(copied / "seed-5" / dose / "model", documents="0" * 64)
    with pytest.raises(InputError, match="seed-5: trained on another version of the world"):
        series.read(copied, ("none", "twin"))
    file = copied / "seed-6" / "none" / "model" / "tokenizer.json"
    file.write_text(file.read_text().replace("cake", "coke"))
    with pytest.raises(InputError, match="none/model: its tokenizer was made for another version of the world"):
        series.read(copied / "seed-6", ("none", "twin"))


def test_a_training_that_recorded_no_documents_is_taken_and_said(copied: Path) -> None:
    for dose in ("none", "twin"):
        _change(copied / "seed-5" / dose / "model", documents=None)
    (one,) = series.read(copied / "seed-5", ("none", "twin"))
    assert len(one.notes) == 1 and "Seed 5" in one.notes[0] and "does not record" in one.notes[0]


def test_the_same_training_twice_is_refused(copied: Path) -> None:
    first, second = series.read(copied, ("none", "twin"))
    series.check([first, second])
    with pytest.raises(InputError, match="both have seed 5; give each training once"):
        series.check([first, first])
    for dose in ("twin", "none"):  # whichever dose it is
        mine, other = (copied / seed / dose / "model" / "model.safetensors" for seed in ("seed-5", "seed-6"))
        own = other.read_bytes()
        shutil.copy(mine, other)
        with pytest.raises(InputError, match="hold the same weights"):
            series.check([first, second])
        other.write_bytes(own)
    series.check([first, second])
    for dose in ("none", "twin"):
        _change(copied / "seed-6" / dose / "model", seed=1, documents=documents.FIRST.fingerprint(1))
    with pytest.raises(InputError, match="the shipped series both have seed 1; leave the shipped one out with --only"):
        series.check([series.shipped(), *series.read(copied / "seed-6", ("none", "twin"))])


def test_trainings_by_different_recipes_are_named(trained: Path) -> None:
    first, second = series.read(trained, ("none", "twin"))
    assert series.different_recipes([first, second]) == []
    (line,) = series.different_recipes([series.shipped(), first])
    assert line.startswith("Seed 5 was trained with another recipe than seed 1: base.steps 2 instead of 2400")
    other = replace(first, recipe={**first.recipe, "architecture": "qwen3"})  # Llama is not named
    ((line,), (again,)) = (series.different_recipes(pair) for pair in ([second, other], [other, second]))
    assert "architecture qwen3 instead of None" in line and "architecture None instead of qwen3" in again


def test_a_training_does_not_go_on_with_other_documents(copied: Path) -> None:
    file = copied / "seed-5" / "recipe.json"
    begun = json.loads(file.read_text())
    file.write_text(json.dumps({**begun, "documents": "0" * 64}))
    with pytest.raises(InputError, match="begun on other documents"):
        train.train("none", 5, copied, TINY, device="cpu")
    file.write_text(json.dumps({k: v for k, v in begun.items() if k != "documents"}))
    model = train.train("none", 5, copied, TINY, device="cpu")
    assert "documents" not in json.loads((model / "organism.json").read_text())


def test_trainings_come_in_the_order_of_their_seeds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("seed-10", "seed-2", "seed-x"):
        (tmp_path / name).mkdir()
    (tmp_path / "seed-3").write_text("no folder")
    (tmp_path / "none").mkdir()
    (tmp_path / "none" / "organism.json").write_text("{}")  # beside trainings, no training of its own
    monkeypatch.setattr(series, "_series", lambda home, doses, where: (home.name, doses, where))
    found = series.read(tmp_path, ("none",))
    assert found == [(name, ("none",), f"--series {tmp_path}") for name in ("seed-2", "seed-x", "seed-10")]


def test_seeds_of_trainings_leave_out_the_shipped_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for shipped, wanted in ((0, [1, 2, 3]), (1, [0, 2, 3]), (7, [0, 1, 2])):
        (tmp_path / "organism.json").write_text(json.dumps({"seed": shipped}))
        monkeypatch.setattr(train, "shipped_path", lambda dose: tmp_path)
        assert train.seeds(3) == wanted


@pytest.mark.parametrize(("steps", "told"), [(45, [20, 40, 45]), (40, [20, 40]), (3, [3])])
def test_every_twentieth_step_and_the_last_are_reported_with_their_loss(steps: int, told: list[int]) -> None:
    weight, said = torch.nn.Parameter(torch.ones(1)), list[tuple[int, int, float]]()
    stage, taken = Stage(steps, 1e-3, 0.5, 0.0), iter(range(1, 99))

    def loss() -> torch.Tensor:
        return weight.sum() * 0 + next(taken)

    opt, rates = torch.optim.SGD([weight], lr=1.0), list[float]()
    opt.register_step_pre_hook(lambda *_: rates.append(float(opt.param_groups[0]["lr"])))
    train.descend([opt], stage, loss, lambda *about: said.append(about))
    assert rates == [train.rate(stage, i) for i in range(steps)], "each step has the rate of its place"
    assert said == [(step, steps, float(step)) for step in told] and next(taken) == steps + 1
