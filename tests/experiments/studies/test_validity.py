"""The validity study: whose trainings are compared, and how its numbers are shown."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from composcope.errors import InputError
from composcope.experiments.organism import series as organism_series
from composcope.experiments.run import write_json
from composcope.experiments.studies import validity as study
from composcope.experiments.studies.spec import ModelPair, Spec, StudyModel, from_flags
from composcope.experiments.studies.study import STUDIES, Study
from composcope.experiments.validity import over_doses
from composcope.probes.catalog import PROBES


def test_a_number_of_validity_stands_with_its_interval_if_it_has_one() -> None:
    found = ((None, 1, 2), (0.5, None, 1), (0.5, 0.25, 0.75))
    told = [study._shown({"value": v, "low": a, "high": b}) for v, a, b in found]
    assert told == ["undefined", "0.500 (no interval)", "0.500 [0.250, 0.750]"]


def test_doses_of_every_training_are_models_and_pairs_are_of_models_that_are_there(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    own, other = (SimpleNamespace(seed=s, shipped=s == 3, model=lambda d, s=s: f"m{s}-{d}") for s in (3, 12))
    monkeypatch.setattr(study, "_trainings", lambda spec: [own, other] if spec.series else [own])
    monkeypatch.setattr(organism_series, "check", lambda _: None)
    spec = from_flags(["organism:none", "organism:twin"], series=("x",))
    spec = replace(spec, pairs=(*spec.pairs, ModelPair("recipe", "none", "gone")))
    made = study.models(spec)
    assert [(m.model, m.label, m.groups) for m in made.models] == [
        (f"m{s}-{d}", d if s == 3 else f"{d}-seed-12", {"dose": d, "seed": s})
        for s in (3, 12) for d in ("none", "twin")]  # fmt: skip
    assert made.pairs == (ModelPair("reference", "twin", "none"),)
    assert study.models(replace(spec, series=())).models == spec.models
    wrong: list[tuple[Spec, str]] = [
        (Spec((StudyModel("org/x", "x"),)), "--model org/x.* the validity study runs on organisms"),
        (replace(spec, data=("a", "b")), "give one data set"),
        (replace(spec, models=(*spec.models, replace(spec.models[0], label="again"))), "is given twice"),
        (replace(spec, series=(), only_series=True), "--only-series")]  # fmt: skip
    for given, said in wrong:
        with pytest.raises(InputError, match=said):
            study.models(given)


def test_a_series_has_the_doses_of_the_models_and_the_shipped_training_unless_it_is_left_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(organism_series, "shipped", lambda doses: ("shipped", *doses))
    monkeypatch.setattr(organism_series, "read", lambda folder, doses: [(folder, seed, *doses) for seed in (1, 2)])
    spec = from_flags(["organism:twin", "organism:none"], series=("s", "t"))
    doses = ("none", "twin")
    read = [(folder, seed, *doses) for folder in "st" for seed in (1, 2)]
    assert study._trainings(spec) == [("shipped", *doses), *read]
    assert study._trainings(replace(spec, only_series=True)) == read


@pytest.mark.parametrize("n", [1, 2])
def test_answers_over_trainings_stand_before_those_of_each_and_of_one_training_alone(
    n: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trainings: Any = [(SimpleNamespace(seed=seed), {"low": tmp_path}) for seed in (4, 7)][:n]
    rows = [{"seed": s, "short": f"s{s}", "headline": True, "value": 0.5} for s in ("all", 4, 7)]
    given: list[Any] = []
    monkeypatch.setattr(study, "_examined", lambda _: trainings)
    monkeypatch.setattr(study, "metric_rows", lambda _, names: [{"names": names}])
    monkeypatch.setattr(PROBES, "added", {"mine": SimpleNamespace(measure=print)})
    monkeypatch.setattr(over_doses, "examine_series", lambda *args, **how: given.append((args, how)) or rows)
    write_json(tmp_path / "validity.json", {"notes": [over_doses.NOTES[0], "one.", "two.", *over_doses.NOTES[1:]]})
    for cases in (None, 6):
        own = Study(Spec((), seed=3, probe_cases=cases), STUDIES["validity"], tmp_path, ())
        doses, *tables = study.tables(own)
        how = {"seed": 3, "n": cases or over_doses.N_CASES, "probes": {"mine": print}}
        assert given.pop() == ((tmp_path, trainings), how)
        assert doses.name == "doses" and "press_gap" in doses.rows[0]["names"]
        assert [t.name for t in tables] == (["validity"] if n == 1 else ["validity-seeds", "validity"])
        *over, each = tables
        assert [r["seed"] for r in each.rows] == (["all", 4, 7] if n == 1 else [4, 7])
        assert all(r["shown"] == "0.500 (no interval)" and r["headline"] for r in each.rows)
        assert (over or [each])[0].note == "one. two." and "shown" in each.columns
        for table in over:
            assert [r["seed"] for r in table.rows] == ["all"] and "headline" not in table.rows[0]
            assert [c for c in table.columns if c.startswith("seed ")] == ["seed 4", "seed 7"]
