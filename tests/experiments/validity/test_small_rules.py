"""Rules of the validity study, each with the values that it gives."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from composcope.errors import InputError
from composcope.experiments.organism import series as organism_series
from composcope.experiments.organism import world
from composcope.experiments.organism.plants import written
from composcope.experiments.organism.series import Series
from composcope.experiments.studies import validity as study
from composcope.experiments.studies.spec import ModelPair, Spec, StudyModel, from_flags
from composcope.experiments.validity import over_doses, over_seeds, positive_controls, scores
from composcope.probes import lookback, min_k, neurons, patching, trajectory
from composcope.probes.patching import examples as asked
from composcope.probes.result import ProbeResult


def _example(case: str, role: str = "whole", kind: str = "composition", n: int = 3) -> Any:
    return SimpleNamespace(case=case, role=role, kind=kind, prompt_ids=(1, 2), response_ids=tuple(range(n)),
                           cue_tokens=1,
                           question_span=(0, 1), shares=case, group="failure", answer_ids=(9,))  # fmt: skip


WHOLES = [_example("a", n=4), _example("b", n=2)]


def test_a_number_of_a_case_is_that_of_its_whole_and_cases_without_one_are_left_out() -> None:
    score = scores.ProbeScore("p", "q", "increasing", "p")
    found = scores.CaseScores({"q": {"a": 1.0, "b": np.nan, "c": 3.0}}, shares={"a": "x", "c": "y"})
    values, near = found.known(score, ["c", "b", "a", "d"])
    assert values.tolist() == [3.0, 1.0] and near == ["y", "x"] and np.isnan(found.of(score, "d"))
    examples = [*WHOLES, _example("a", "part:0")]
    result = ProbeResult(
        "own",
        [],
        tensors={"t": torch.tensor([1.0, 2.0, 9.0]), "map": torch.zeros(3, 2)},
        axes={"t": ("example",), "map": ("example", "layer")},
        settings={"expected": {"t": "decreasing"}},
    )
    ((own, by_case),) = scores._own("mine", result, examples).items()
    assert (own.quantity, own.expected, own.short, by_case) == (
        "t (mine)",
        "decreasing",
        "mine/t",
        {"a": 1.0, "b": 2.0},
    )
    with pytest.raises(InputError, match="no tensor has 'example'"):
        scores._own("mine", ProbeResult("own", []), examples)
    with pytest.raises(InputError, match="of shape"):
        scores._own("mine", replace(result, tensors={"t": torch.zeros(2)}), examples)


def test_numbers_of_the_probes_are_means_over_a_case_and_the_matched_one_is_of_its_first_token(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ratios = [torch.tensor([[[0.5, 0.1, 0.3]], [[0.7, 0.1, float("nan")]]]), torch.tensor([[[0.2]], [[0.4]]])]
    monkeypatch.setattr(lookback, "masses", lambda *_: [SimpleNamespace(ratio=lambda r=r: r) for r in ratios])
    found = scores.lookback_ratios(None, WHOLES)
    assert found["mean lookback ratio"] == pytest.approx({"a": np.mean([0.5, 0.1, 0.3, 0.7, 0.1]), "b": 0.3})
    assert found["lookback ratio, length-matched"] == pytest.approx({"a": 0.6, "b": 0.3})
    cosines = [torch.tensor([[0.5, 1.0]]), torch.empty(1, 0)]
    monkeypatch.setattr(trajectory, "step_cosines", lambda *_: [SimpleNamespace(cosines=c) for c in cosines])
    moved = scores.step_cosines(None, WHOLES)["mean step cosine"]
    assert moved["a"] == 0.75 and np.isnan(moved["b"])
    examples = [
        *WHOLES,
        _example("a", "part:0", "math"),
        _example("a", "part:1", "commonsense"),
        _example("c", "part:0", "math"),
    ]
    monkeypatch.setattr(neurons, "key_neurons", lambda *_: [1.0, 2.0, 0.25, 0.5, 0.75])
    monkeypatch.setattr(neurons, "share", lambda whole, part: SimpleNamespace(overlap=whole * part))
    shared = scores._neurons(None, WHOLES, examples)
    assert shared["neurons shared with math"]["a"] == 0.25 and shared["neurons shared with commonsense"]["a"] == 0.5
    assert all(np.isnan(of["b"]) and set(of) == {"a", "b"} for of in shared.values())


def test_baselines_are_the_first_token_the_length_and_the_question(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Any] = []

    def tokens(lm: Any, prompts: Any, spans: Any) -> Any:
        seen.append((prompts, spans))
        return [SimpleNamespace(log_prob=[-float(i + 1), -9.0]) for i in range(len(prompts))]

    monkeypatch.setattr(min_k, "token_scores", tokens)
    monkeypatch.setattr(min_k, "aggregate", lambda found: SimpleNamespace(log_prob=[-0.5] * len(found)))
    silent = _example("c", n=0)
    found = scores.baselines(None, [*WHOLES, silent])
    names = scores.BASELINES
    assert found[names["confidence"]] == {"a": -1.0, "b": -2.0} and found[names["length"]] == {"a": 4, "b": 2, "c": 0}
    assert found[names["likelihood"]] == dict.fromkeys("abc", -0.5)
    assert seen[1] == ([[1, 2, 0], [1, 2, 0]], [(2, 3), (2, 3)]), "the first token after the prompt"


def test_texts_of_a_level_are_apart_and_donors_are_the_own_last_part_or_the_next_cases(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    levels = positive_controls._levels([SimpleNamespace(id=str(i)) for i in range(12)], 3)  # type: ignore[misc]
    assert {k: [c.id for c in of] for k, of in levels.items()} == {
        0: ["0", "1", "2"], 1: ["3", "4", "5"], 10: ["6", "7", "8"], 100: ["9", "10", "11"]}  # fmt: skip
    given: list[Any] = []

    def sweep(lm: Any, donors: Any, recipients: Any, pairs: Any, **options: Any) -> Any:
        given.append((donors, recipients, pairs, options["controls"]))
        rows = [{"quantity": q, "group": g, "layer": 1, "n": 3, "count": 2, "value": 2 / 3, "low": 0.1,
                 "high": float("nan"),
                 "interval": "t"} for q in ("corrected_rate", "flip_rate") for g in ("donor", "random")]  # fmt: skip
        return SimpleNamespace(table=rows)

    monkeypatch.setattr(patching, "prompt_end_sweep", sweep)
    monkeypatch.setattr(asked, "graders", lambda *_: None)
    monkeypatch.setattr(asked, "new_tokens", lambda *_: 1)
    some = [_example(c, role) for c in "abcd" for role in ("whole", "part:0", "part:1")]
    for e in some:
        e.prompt_ids = (e.case, e.role)
    rows = positive_controls.own_part_donors(None, some, 3)
    whole = [(c, "whole") for c in "abc"]
    assert given == [([(c, "part:1") for c in "abc"], whole, [(0, 0), (1, 1), (2, 2)], ()),
                     ([(c, "part:1") for c in "bca"], whole, [(0, 0), (1, 1), (2, 2)], ())]  # fmt: skip
    assert [(r["group"], r["layer"], r["count"], r["n"], r["low"], r["high"]) for r in rows] == [
        ("own part", 1, 2, 3, 0.1, None), ("another case's part", 1, 2, 3, 0.1, None)]  # fmt: skip
    assert positive_controls.own_part_donors(None, some[:3], 3) == []


def test_held_out_texts_are_each_drawn_once_and_belong_to_no_training() -> None:
    cases, turns = positive_controls.drawn(12, "s")
    assert len({c.question for c in cases}) == 12 == len(turns) and cases == positive_controls.drawn(12, "s")[0]
    assert cases != positive_controls.drawn(12, "t")[0]
    for case in cases:
        things = [case.cluster, *case.meta["crossed"]]
        assert world.held_out(things) and things == sorted(things), case.id
        ((asked, said),) = turns[case.id]
        assert asked == case.question and said.endswith(case.answer) and case.parts[1].answer == case.answer
    for held in (True, False):
        for seed in range(20):
            made = written.draw(random.Random(seed), held)
            assert world.held_out(made.things) == held and made.thing in made.things


def test_trainings_that_are_the_same_or_differ_in_their_recipe_are_told(tmp_path: Path) -> None:
    def one(seed: int, content: str, **recipe: Any) -> Series:
        folder = tmp_path / f"{seed}-{content}"
        folder.mkdir(exist_ok=True)
        (folder / "model.safetensors").write_text(content)
        return Series(seed, {"none": folder}, {"dose": {"steps": 5, **recipe}})

    organism_series.check([one(1, "a"), one(2, "b")])
    for pair, said in (
        ((one(1, "a"), one(1, "b")), "both have seed 1"),
        ((one(1, "a"), one(2, "a")), "hold the same weights"),
    ):
        with pytest.raises(InputError, match=said):
            organism_series.check(pair)
    assert organism_series.different_recipes([one(1, "a"), one(2, "b"), one(3, "c", steps=9)]) == [
        "Seed 3 was trained with another recipe than seed 1: dose.steps 9 instead of 5."]  # fmt: skip
    told = [over_seeds.note((3, 12), shipped) for shipped in (True, False)]
    assert all(t.startswith("2 trainings per dose (seeds 3, 12)") for t in told)
    assert ["--only-series" in t for t in told] == [True, False]


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
        (replace(spec, series=(), only_series=True), "--only-series")]  # fmt: skip
    for given, said in wrong:
        with pytest.raises(InputError, match=said):
            study.models(given)


def test_answers_are_written_as_numbers_that_json_has(tmp_path: Path) -> None:
    rows = [{"verdict": "yes", "value": float("nan"), "n": 3}], [{"value": 0.5}], [{"case": "c", "q": float("inf")}]
    found = over_doses._write(tmp_path, rows, {"n": 3}, ["note"], "hash")
    assert found["rows"] == [{"verdict": "yes", "value": None, "n": 3}] and found["means"] == [{"value": 0.5}]
    assert (found["cases"], found["inputs"], found["notes"]) == ([{"case": "c", "q": None}], "hash", ["note"])
    assert "cases" not in over_doses._write(tmp_path, rows, {}, [], None)
    values = scores.CaseScores({"q": {"a": 1.0}})
    (first, second) = over_doses._case_rows("dose", None, (2, "twin"), ["a", "b"], values, {"a": "k"})
    assert (first["q"], first["cluster"], first["level"], first["group"], first["model"]) == (
        1.0,
        "k",
        2,
        "twin",
        "all doses",
    )
    assert (second["q"], second["cluster"]) == (None, "b")
