"""The validity study over trainings: every series on the same cases, rows over them, figure; resumed; refused."""

from __future__ import annotations

import csv
import json
import shutil
from collections.abc import Mapping
from pathlib import Path

import pytest
import torch
from exit_codes import done
from safetensors.torch import load_file, save_file

from composcope.errors import InputError
from composcope.experiments import figures
from composcope.experiments.cli import main
from composcope.experiments.distributed.engine import load_target
from composcope.experiments.models.target import Loading
from composcope.experiments.organism import documents, series, train, weights
from composcope.experiments.organism.recipe import OrganismRecipe, Stage
from composcope.experiments.organism.series import Series
from composcope.experiments.report import sections
from composcope.experiments.run import read_json
from composcope.experiments.run.reader import read_run
from composcope.experiments.studies import validity as study_validity
from composcope.experiments.studies.spec import from_flags, read_spec
from composcope.experiments.validity import over_doses as validity
from composcope.experiments.validity.positive_controls import own_part_donors

pytestmark = pytest.mark.long

DOSES = ("none", "twin")
NAMES = ["organism:none", "organism:twin"]


@pytest.fixture(scope="module")
def other(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Another training as far as the study can tell: shipped doses whose weights were shaken a little."""
    out = tmp_path_factory.mktemp("organisms")
    generator = torch.Generator().manual_seed(0)
    for dose in DOSES:
        folder = out / "seed-12" / dose / "model"
        shutil.copytree(weights.path(dose), folder)
        shaken = {
            name: (p * (1 + 0.02 * torch.randn(p.shape, generator=generator))).to(p.dtype)
            for name, p in load_file(folder / "model.safetensors").items()
        }
        save_file(shaken, folder / "model.safetensors", metadata={"format": "pt"})
        about = json.loads((folder / "organism.json").read_text())
        about |= {"seed": 12, "documents": documents.FIRST.fingerprint(12)}
        (folder / "organism.json").write_text(json.dumps(about))
    return out


def _words(other: Path, out: Path) -> list[str]:
    models = [w for name in NAMES for w in ("--model", name)]
    return ["study", "validity", *models, "--series", str(other), "--limit", "4", "--probe-cases", "3",
            "--out", str(out), "--no-report", "--quiet"]  # fmt: skip


@pytest.fixture(scope="module")
def made(other: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("study") / "validity"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(validity, "source_hash", lambda: "this code")  # sources may be edited while tests run
        assert main(_words(other, out)) == done(out)
    return out


def _trainings(made: Path, other: Path) -> list[tuple[Series, dict[str, Path]]]:
    return [
        (one, {dose: made / f"{dose}{end}--mixed" for dose in DOSES})
        for one, end in ((series.shipped(DOSES), ""), (series.read(other, DOSES)[0], "-seed-12"))
    ]


def _table(study: Path, name: str) -> list[dict[str, str]]:
    with (study / "tables" / f"{name}.csv").open(encoding="utf-8", newline="") as f:
        return list(csv.DictReader(f))


def _means(study: Path) -> list[dict[str, str]]:
    with (study / "validity" / "table.csv").open(encoding="utf-8", newline="") as f:
        return [r for r in csv.DictReader(f) if not r["verdict"]]


def test_every_training_is_asked_the_same_and_stands_in_the_rows_over_trainings(made: Path) -> None:
    runs = read_json(made / "study.json")["runs"]
    assert runs == ["none--mixed", "twin--mixed", "none-seed-12--mixed", "twin-seed-12--mixed"]
    assert len({(made / r / "cases.jsonl").read_bytes() for r in runs}) == 1
    over = _table(made, "validity-seeds")
    controls = {validity.QUESTIONS[q] for q in validity.CONTROLS}
    asked = set(validity.QUESTIONS.values()) - controls - {validity.QUESTIONS["pair"]}  # no dose "control" here
    assert {r["question"] for r in over} == asked - {validity.QUESTIONS["planted"]}  # neither a trend nor an AUROC
    assert {r["question"] for r in _table(made, "validity")} - controls == asked
    alone = {(r["question"], r["model"], r["short"]): r["value"] for r in _table(made, "validity")}
    for row in over:
        for seed in ("1", "12"):
            own = alone[row["question"], f"{row['model']}, seed {seed}", row["short"]]
            if row[f"seed {seed}"]:  # FEWEST scores a level are needed for a number over trainings
                assert float(row[f"seed {seed}"]) == pytest.approx(float(own))
    defined = [r for r in over if r["seed 1"] and r["seed 12"]]
    assert defined and {r["n"] for r in defined} == {"2"}
    assert {r["verdict"] for r in defined} == {"cannot say: 2 trainings (8 are needed)"} and "p" not in over[0]
    assert {r["short"] for r in over} >= {"length", "likelihood", "confidence", "direction 1", "offset"}
    table = list(csv.DictReader((made / "validity" / "values.csv").open(encoding="utf-8", newline="")))
    of_dose = [r for r in table if r["question"] == validity.QUESTIONS["dose"] and r["seed"] == "12"]
    assert {r["group"] for r in of_dose} == set(DOSES) and all(float(r["response length"]) > 0 for r in of_dose)
    length = {d: [float(r["response length"]) for r in of_dose if r["group"] == d] for d in DOSES}
    (mean,) = [
        r for r in _means(made) if r["quantity"] == "response length" and r["seed"] == "12" and r["group"] == "twin"
    ]
    assert float(mean["value"]) == pytest.approx(sum(length["twin"]) / len(length["twin"]))
    page = (made / "study.md").read_text()
    assert "Prompt-end patching" not in page and "--only-series` leaves it out" in page
    assert "2 trainings per dose (seeds 1, 12)" in page and "One training per dose" not in page


def test_the_report_reads_the_rows_over_trainings_as_the_headline(made: Path) -> None:
    rows, notes = sections.read_validity([made])
    headline = [r for r in rows if r["headline"]]
    assert headline and all("mean over trainings" in r["measure"] for r in headline)
    assert any("2 trainings per dose" in n for n in notes) and not any("One training per dose" in n for n in notes)
    assert {r["model"] for r in rows if not r["headline"]} >= {"all doses, seed 1", "all doses, seed 12"}


def test_the_figure_shows_each_training_and_their_mean(made: Path) -> None:
    drawn = figures.draw("dose-response", [made])
    first = [r for r in drawn.rows if r["quantity"] == drawn.rows[0]["quantity"]]
    by_seed: Mapping[str, dict[str, float]] = {s: {} for s in ("1", "12", "all")}
    for r in first:
        by_seed[r["seed"]][r["dose"]] = r["value"]
    for dose in DOSES:
        assert by_seed["all"][dose] == pytest.approx((by_seed["1"][dose] + by_seed["12"][dose]) / 2)
    widths = {line.get_label(): line.get_linewidth() for line in drawn.figure.axes[0].lines}
    assert widths["mean over trainings"] > 2 * widths["seed 1"] == 2 * widths["seed 12"]
    assert "n = 2 trainings (seeds 1, 12)" in drawn.caption


class _Opened(Exception):
    """A model was opened."""


def _refuse(settings: object) -> None:
    raise _Opened


def test_nothing_is_examined_again_while_models_answers_and_code_are_unchanged(
    made: Path, other: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(validity, "load_target", _refuse)
    monkeypatch.setattr(validity, "source_hash", lambda: "this code")
    study = Path(shutil.copytree(made, tmp_path / "study"))
    found = validity.examine_series(study, _trainings(study, other), n=3)
    assert found == read_json(made / "validity.json")["rows"]
    answers = study / "twin-seed-12--mixed" / "graded.jsonl"
    before = answers.read_text()
    answers.write_text(before.replace('"incorrect"', '"invalid"').replace('"correct"', '"incorrect"', 1))
    with pytest.raises(_Opened):
        validity.examine_series(study, _trainings(study, other), n=3)
    answers.write_text(before)
    monkeypatch.setattr(validity, "source_hash", lambda: "other code")
    with pytest.raises(_Opened):
        validity.examine_series(study, _trainings(study, other), n=3)


def test_only_of_one_training_is_said_that_it_is_one(
    made: Path, other: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(validity, "load_target", _refuse)
    monkeypatch.setattr(validity, "source_hash", lambda: "this code")
    study = Path(shutil.copytree(made, tmp_path / "study"))
    rows = validity.examine_series(study, _trainings(study, other)[:1], n=3)
    document = read_json(study / "validity.json")
    assert any("One training per dose" in n for n in document["notes"]) and rows == document["rows"]
    assert not any("seed" in r for r in rows) and any(r["headline"] for r in rows)
    drawn = figures.draw("dose-response", [study])
    assert "trainings" not in drawn.caption and not any("seed" in r for r in drawn.rows)
    spec = study_validity.models(from_flags(NAMES))
    assert [m.label for m in spec.models] == ["none", "twin"] and not spec.models[0].groups


def test_a_training_that_lacks_a_dose_is_in_no_trend_over_trainings(
    made: Path, other: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(validity, "source_hash", lambda: "this code")
    study = Path(shutil.copytree(made, tmp_path / "study"))
    shipped, further = _trainings(study, other)
    rows = validity.examine_series(study, [shipped, (further[0], {"none": further[1]["none"]})], n=3)
    trends = [r for r in rows if r["seed"] == "all" and r["question"] == validity.QUESTIONS["dose"]]
    assert trends and all(r["n"] <= 1 and "seed 12: not examined" in r["note"] for r in trends)
    assert any(r["n"] == 1 for r in trends)
    assert any("Seed 12: no run of twin" in n for n in read_json(study / "validity.json")["notes"])


def test_a_training_without_a_value_is_named_in_the_figure(made: Path, tmp_path: Path) -> None:
    study = Path(shutil.copytree(made, tmp_path / "study"))
    table = study / "validity" / "table.csv"
    rows = list(csv.DictReader(table.open(encoding="utf-8", newline="")))
    kept = [r for r in rows if r["seed"] != "12" or r["verdict"]]  # as it is where no case has its parts right
    with table.open("w", encoding="utf-8", newline="") as f:
        writer = csv.DictWriter(f, list(rows[0]))
        writer.writeheader()
        writer.writerows(kept)
    drawn = figures.draw("dose-response", [study])
    assert "Undefined, not drawn: seed 12." in drawn.caption and {r["seed"] for r in drawn.rows} == {"1", "all"}


def test_series_can_stand_in_the_models_file_without_models(other: Path, tmp_path: Path) -> None:
    file = tmp_path / "study.yaml"
    file.write_text(f"series: [{other}]\nonly_series: true\n")
    spec = read_spec(file, series=(), only_series=False)
    assert spec.series == (str(other),) and spec.only_series
    assert [m.label for m in spec.models] == list(weights.DOSES)
    for text, said in (("series: [3]", r"'series' is \[3\]"), ("series: a\nonly_series: 1", "'only_series' is 1")):
        file.write_text(text)
        with pytest.raises(InputError, match=said):
            read_spec(file)


def test_trainings_are_run_in_the_folder_of_the_study_and_not_run_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    recipe = OrganismRecipe(Stage(2, 4e-3, 0.3, batch=8), Stage(20, 3e-3, 0.7), width=16, layers=2, heads=2, mlp=16)
    monkeypatch.setattr(train, "SERIES_RECIPE", recipe)
    words = ["study", "validity", "--trainings", "1", "--limit", "1", "--probe-cases", "2", "--no-report",
             "--out", str(tmp_path / "v")]  # fmt: skip
    assert main(words) == done(tmp_path / "v")
    assert "1 training of 4 doses" in (said := capsys.readouterr().err) and "0 of 4 models are done" in said
    about = {d: tmp_path / "v" / "trainings" / "seed-0" / d / "model" / "organism.json" for d in weights.DOSES}
    assert all(json.loads(p.read_text())["recipe"]["base"]["steps"] == 2 for p in about.values())
    rows = _table(tmp_path / "v", "validity")
    assert rows and all(
        r["verdict"].startswith(("cannot say", "none up to", "from ", "AUROC ")) or "put right" in r["verdict"]
        for r in rows
    )
    monkeypatch.setattr(train, "train", _refuse)
    assert main(words) == done(tmp_path / "v") and "4 of 4 models are done" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["agentcoma", "--trainings", "2"], "No such option: --trainings"),
        (["agentcoma", "--series", "OTHER"], "No such option: --series"),
        (["validity", "--series", "OTHER"], "lacks control, low"),
        (["validity", "--series", "OTHER", "--series", "OTHER", *"-m organism:none".split()], "both have seed 12"),
        (["validity", "--only-series"], "give at least one --series DIR"),
    ],
)
def test_what_cannot_be_examined_is_said_before_anything_runs(
    words: list[str], said: str, other: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given = [str(other) if w == "OTHER" else w for w in words]
    assert main(["study", *given, "--out", str(tmp_path / "s"), "--quiet"]) == 1
    error = capsys.readouterr().err
    assert said in error and len(error.strip().splitlines()) == 1
    assert not list(tmp_path.glob("s/*--*"))


def test_a_state_of_the_cases_own_last_part_puts_more_failures_right_than_another_cases(tmp_path: Path) -> None:
    words = "evaluate -m organism:control -b organism:mixed --limit 40 -q --out".split()
    assert main([*words, str(tmp_path / "r")]) == done(tmp_path / "r")
    run = read_run(tmp_path / "r").evaluated()
    target = load_target(Loading("organism:control"))
    examples = validity._labelled(run, validity.opened(target, run, 20, []))
    found = {(r["group"], r["layer"]): (r["count"], r["n"]) for r in own_part_donors(target.open_model(), examples, 20)}
    layers = range(target.open_model().anatomy.n_layers)
    assert set(found) == {(g, i) for g in ("own part", "another case's part") for i in layers}
    for layer in layers:
        (own, n), (other, _) = found["own part", layer], found["another case's part", layer]
        assert own >= 0.2 * n > 0 and own > other
    rows = list(validity._control_rows("donors", "control", own_part_donors(target.open_model(), examples, 20)))
    assert all(r["verdict"].endswith("put right") and not r["headline"] for r in rows)
