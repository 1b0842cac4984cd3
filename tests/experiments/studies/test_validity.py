"""The validity study: whose trainings are compared, and how its numbers are shown."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import pytest

from composcope.errors import InputError
from composcope.experiments.organism import series as organism_series
from composcope.experiments.studies import validity as study
from composcope.experiments.studies.spec import ModelPair, Spec, StudyModel, from_flags


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
        (Spec((StudyModel("org/x", "x"),)), "--model org/x"), (replace(spec, data=("a", "b")), "give one data set"),
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
