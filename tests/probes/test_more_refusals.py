"""Wrong arguments are refused by name; none is passed over, and none changes what is computed."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from shapes import unchecked
from tiny_models import tiny

from composcope.errors import InputError, ModelError, NoCasesError
from composcope.evaluation import dependence
from composcope.hooks import Model, Site
from composcope.probes import contrast, lookback, maps, min_k, neurons, patching, tables, trajectory, validity
from composcope.probes.neurons import sets
from composcope.probes.patching import engine, prompt_end
from composcope.probes.readout import readings

P = [1, 5, 6, 7, 8]
IDS = torch.tensor([P])


@pytest.fixture(scope="module")
def lm() -> Model:
    return Model(tiny("llama"))


def test_what_is_not_a_site_a_mask_or_a_past_of_this_batch_is_refused(lm: Model) -> None:
    with pytest.raises(ModelError, match="not a site"):
        lm.run(IDS, read=["blocks.0"])  # type: ignore[list-item]
    with pytest.raises(ModelError, match="not a site"):
        lm.run(IDS, read=Site(0, "neuron"))  # type: ignore[arg-type]
    with pytest.raises(ModelError, match="not a site"):
        lm.run(IDS, read=[Site(1.0, "neuron")])  # type: ignore[arg-type]
    with pytest.raises(ModelError, match=r"mask of shape \(1, 3\); need \(1, 5\)"):
        lm.run(IDS, torch.ones(1, 3, dtype=torch.long))
    with pytest.raises(ModelError, match="has no real token"):
        lm.run(IDS, torch.zeros(1, 5, dtype=torch.long))
    with pytest.raises(ModelError, match="past of 1 sequences for 3 rows"):
        lm.run(torch.ones(3, 2, dtype=torch.long), past=lm.prefill(IDS))
    with pytest.raises(ModelError, match=r"gave torch.float64, need torch.float32"):
        lm.run(IDS, edit={Site(0, "neuron"): lambda x: x.double()})


@unchecked()
def test_masks_pasts_and_texts_of_other_types_are_refused(lm: Model) -> None:
    with pytest.raises(ModelError, match="mask of type list; give what pad returns"):
        lm.run(IDS, [[1] * 5])  # type: ignore[arg-type]
    with pytest.raises(ModelError, match="past of type tuple; give what prefill returns"):
        lm.run(IDS, past=())  # type: ignore[arg-type]
    probes: list[Callable[[Any], object]] = [
        lambda x: min_k.score(lm, x), lambda x: lookback.ratios(lm, x, x), lambda x: lookback.ratios(lm, [P], x[:1]),
        lambda x: lookback.generate(lm, x, 1), lambda x: trajectory.prompt_end_states(lm, x),
        lambda x: trajectory.step_cosines(lm, x, x), lambda x: patching.prompt_end_sweep(lm, x, [P]),
        lambda x: patching.prompt_end_sweep(lm, [P], x), lambda x: neurons.attribute(lm, x[0], [5]),
        lambda x: neurons.attribute_many(lm, [P], x[:1]),
    ]  # fmt: skip
    for probe in probes:
        with pytest.raises(InputError, match=r"\w+ 0: 'some words' is text"):
            probe(["some words"])
        for flat in ([5, 31], torch.tensor([5, 31])):
            with pytest.raises(InputError, match=r"\w+ 0: (5|tensor\(5\)) is no sequence"):
                probe(flat)


def test_token_ids_may_come_one_sequence_at_a_time(lm: Model) -> None:
    once: Any = (row for row in [P])
    assert min_k.score(lm, once, 0.5).min_k == min_k.score(lm, [P], 0.5).min_k < 0


def test_one_part_in_training_mode_is_named_where_it_would_drop_something() -> None:
    model: Any = tiny("llama", attention_dropout=0.1)
    lm = Model(model)
    model.model.layers[1].train()
    for probe in (
        lambda: lm.run(IDS), lambda: Model(model), lambda: lookback.ratios(lm, [P], [[3]]),
        lambda: min_k.score(lm, [P]), lambda: neurons.attribute(lm, P, [5]),
    ):  # fmt: skip
        with pytest.raises(ModelError, match=r"Llama.*: model.layers.1.self_attn is in training mode .dropout is on."):
            probe()
    harmless: Any = tiny("llama")
    harmless.model.layers[1].mlp.train()
    assert torch.equal(Model(harmless).run(IDS).logits, tiny("llama")(IDS).logits)


def test_a_last_token_outside_the_vocabulary_is_refused_though_it_is_never_fed(lm: Model) -> None:
    for token in (97, -1):  # the vocabulary holds 0-96
        for read in (lookback.masses, trajectory.step_cosines):
            with pytest.raises(InputError, match=f"response 0: token id {token}"):
                read(lm, [P], [[3, token]])
        with pytest.raises(InputError, match="vocabulary"):
            patching.prompt_end_sweep(lm, [P], [P], recipient_answers=[[token]], max_new_tokens=1)


def test_no_prompts_have_no_states_and_a_floor_bounds_sigma_from_below(lm: Model) -> None:
    with pytest.raises(InputError, match="no prompts; give at least one"):
        trajectory.prompt_end_states(lm, [])
    (plain,), (floored,) = (min_k.token_scores(lm, [P], sigma_floor=floor) for floor in (0.0, 100.0))
    assert floored.z == pytest.approx((plain.log_prob - plain.mean) / 100) and not np.allclose(plain.z, floored.z)
    assert np.array_equal(floored.variance, plain.variance)


def test_responses_may_be_tensors(lm: Model) -> None:
    as_lists = lookback.masses(lm, [P], [[3, 4]])[0].context
    prompts: Any = [torch.tensor(P)]
    responses: Any = [torch.tensor([3, 4])]
    assert torch.equal(lookback.masses(lm, prompts, responses)[0].context, as_lists)
    steps = trajectory.step_cosines(lm, prompts, responses)[0].cosines
    assert torch.equal(steps, trajectory.step_cosines(lm, [P], [[3, 4]])[0].cosines)


def test_unequal_lists_and_unknown_options_of_probes_are_refused(lm: Model) -> None:
    with pytest.raises(InputError, match="form: 'means'"):
        lookback.ratios(lm, [P], [[3]], form="means")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="1 prompts, 2 responses"):
        trajectory.step_cosines(lm, [P], [[3], [4]])
    with pytest.raises(InputError, match="steps=-1"):
        trajectory.step_cosines(lm, [P], [[3, 4, 5]], steps=-1)
    with pytest.raises(InputError, match="no prompts"):
        trajectory.prompt_end_states(lm, [])
    with pytest.raises(InputError, match="1 texts, 2 spans"):
        min_k.score(lm, [P], spans=[None, None])
    with pytest.raises(InputError, match="2 answers for 1 prompts"):
        patching.prompt_end_sweep(lm, [P], [P], recipient_answers=[[3], [4]], max_new_tokens=1)
    with pytest.raises(InputError, match="site: 'up'"):
        neurons.attribute(lm, P, [3], site="up")  # type: ignore[arg-type]
    with pytest.raises(InputError, match=r"steps: 2\.5"):
        neurons.attribute(lm, P, [3], steps=2.5)  # type: ignore[arg-type]


def test_scores_of_two_models_and_neurons_outside_the_map_are_refused(lm: Model) -> None:
    with pytest.raises(InputError, match="of one model"):
        neurons.select([torch.rand(3, 8), torch.rand(3, 8), torch.rand(4, 8)])
    for neuron in ((3, 0), (-1, 0), (0, 8), (0, -1)):
        with pytest.raises(InputError, match="3 layers of 8"):
            neurons.location_map([[neuron]], 3, 8)
    with pytest.raises(InputError, match="draws=0"):
        neurons.causal_check(lm, [P], [[3]], [[(0, 1)]], draws=0)
    with pytest.raises(InputError, match="0 cases"):
        neurons.causal_check(lm, [], [], [])


def test_unknown_tests_and_levels_of_contrasts_are_refused() -> None:
    groups = {"a": [1.0, 2.0, 3.0], "b": [2.0, 3.0, 5.0]}
    for make in (contrast.between, contrast.paired):
        with pytest.raises(InputError, match="test: 'anova'"):
            make(groups, test="anova")  # type: ignore[arg-type]
        with pytest.raises(InputError, match=r"level=1\.5"):
            make(groups, level=1.5)
    with pytest.raises(InputError, match="permutations=0"):
        contrast.map_test([[1, 2], [2, 3]], [[1, 2], [3, 3]], permutations=0)


def test_clusters_of_one_group_alone_are_not_passed_over() -> None:
    rng = np.random.default_rng(0)
    a, b = np.repeat(rng.normal(size=5), 4), rng.normal(size=20)
    row = contrast.between({"a": a, "b": b}, clusters={"a": np.repeat(np.arange(5), 4).tolist()}).table[-1]
    assert row["test"] == "cluster-robust t" and row["interval"] == "CR2 t over clusters"


def test_differences_that_are_all_the_same_get_the_p_of_their_signs() -> None:
    row = contrast.paired({"a": [2.0, 3.0, 4.0], "b": [1.0, 2.0, 3.0]}).table[0]
    assert row["p"] == 0.25 and row["value"] == 1.0 and row["test"] == "sign test (no variation)"


def test_two_pairs_have_no_effect_size_rather_than_zero() -> None:
    row = contrast.paired({"a": [5.0, 7.0], "b": [1.0, 2.0]}).table[0]
    assert row["value"] == 4.5 and np.isnan(row["effect"]) and np.isnan(row["effect_low"])


def test_prompts_outside_the_vocabulary_are_refused_before_anything_is_generated(lm: Model) -> None:
    for prompt, says in (([1, 500], r"prompt 0: ids lie in 1\.\.500"), ([1, -2], r"ids lie in -2\.\.1")):
        with pytest.raises(InputError, match=says):
            lookback.generate(lm, [prompt], 2)
    with pytest.raises(ModelError, match="token id -2: the model's vocabulary"):
        neurons.attribute(lm, [1, -2], [3])


def test_worked_examples_without_a_question_are_not_passed_over(lm: Model) -> None:
    with pytest.raises(InputError, match=r"few_shot span \(1, 2\) without a question span"):
        lookback.masses(lm, [P], [[3]], few_shot_spans=[(1, 2)])


def test_cue_tokens_may_be_numbers_of_numpy(lm: Model) -> None:
    cues: Any = np.int64(2)
    assert torch.equal(lookback.ratios(lm, [P], [[3]], cues)[0], lookback.ratios(lm, [P], [[3]], 2)[0])


def test_sweeps_over_no_layer_are_refused_and_pairs_without_a_way_to_recover_are_said(lm: Model) -> None:
    other = [1, 9, 6, 7, 8]
    for sweep in (patching.position_sweep, patching.head_sweep, patching.attribution_patching):
        for layers in ([], [9], [-1]):
            with pytest.raises(InputError, match="layers"):
                sweep(lm, [other], [P], [(3, 4)], layers=layers)
    same = patching.position_sweep(lm, [P, other], [P, P], [(3, 4), (3, 4)], positions=[-1])
    assert "1 of 2 pairs" in same.warnings[0] and bool(same.tensors["recovered"][0].isnan().all())
    screen = patching.attribution_patching(lm, [P], [P], [(3, 4)])
    assert "1 of 1 pairs" in screen.warnings[0] and all(row["n"] == 0 for row in screen.table)


def test_options_of_sets_that_make_no_sense_are_refused() -> None:
    scores = [torch.rand(3, 8)] * 3
    v: Any = 2.5
    with pytest.raises(InputError, match=r"v=2\.5"):
        neurons.select(scores, v=v)
    with pytest.raises(InputError, match="n_neurons=0"):
        neurons.overlap([[(0, 1)]], [[(0, 1)]], 0)
    with pytest.raises(InputError, match="cosine of matched"):
        neurons.overlap([[(0, 1)]], [[(0, 1)]], 24).mean(measure="cosine")
    with pytest.raises(InputError, match="bins=0"):
        neurons.location_map([[(0, 1)]], 3, 8, bins=0)
    with pytest.raises(InputError, match="k is 2"):
        min_k.length_matched(np.arange(5.0), 3, k=2)


def test_too_few_other_neurons_give_no_random_control_rather_than_an_empty_one(lm: Model) -> None:
    width = lm.anatomy.n_neurons
    most: Any = [(0, i) for i in range(width - 2)]
    found = neurons.causal_check(lm, [P, P], [[3], [3]], [most, [(0, 1)]], draws=2)
    assert found.random_suppressed.isnan().all(1).tolist() == [True, False]
    assert found.random_amplified.isnan().all(1).tolist() == [True, False]
    assert bool(found.suppressed.isfinite().all()) and bool(found.amplified.isfinite().all())


def _reading(case: str, *places: str) -> readings.Reading:
    return readings.Reading([1, 2], dict.fromkeys(places, (1,)), "bridge", "a", case=case)


def JOINS(text: str) -> Any:
    """A tokenizer that makes one token of a text, whatever its length."""
    return SimpleNamespace(input_ids=[len(text)])


FLAT, HOLED = np.zeros((3, 2)), np.array([[1.0, np.nan]] * 3)


@unchecked()
@pytest.mark.parametrize(
    ("call", "error", "said"),
    [
        (lambda lm: maps.map_test(FLAT, np.zeros((3, 4))), InputError, "shapes (3, 2) and (3, 4)"),
        (lambda lm: maps.map_test(FLAT, np.zeros((4, 2)), paired=True), InputError, "shapes (3, 2) and (4, 2)"),
        (lambda lm: maps.map_test(FLAT, HOLED), InputError, "maps hold NaN"),
        (lambda lm: maps.map_test(HOLED, FLAT), InputError, "maps hold NaN"),
        (lambda lm: maps.map_test(FLAT[:1], FLAT), NoCasesError, "1"),
        (lambda lm: maps.map_test(FLAT, FLAT, permutations=0), InputError, "permutations=0"),
        (lambda lm: maps.map_test(FLAT, FLAT, level=1), InputError, "level=1"),
        (lambda lm: contrast.paired({"a": [1.0, 2.0]}), NoCasesError, "roles ['a'] have sizes [2]"),
        (lambda lm: contrast.paired({"a": {}, "b": {}}), NoCasesError, "sizes [0, 0]"),
        (lambda lm: contrast.paired({"a": [1.0, 2.0, 4.0], "b": [0.0, 3.0, 1.0]}, test="t", clusters=[1, 1, 2]),
         InputError, "test 't'"),
        (lambda lm: validity.planted_recovery([1.0], n=5), NoCasesError, "1 baseline scores and n=5"),
        (lambda lm: validity.planted_recovery([1.0, 2.0], n=1), NoCasesError, "2 baseline scores and n=1"),
        (lambda lm: neurons.causal_check(lm, [P], [[3]], []), InputError, "1 prompts, 1 answers, 0 sets"),
        (lambda lm: neurons.causal_check(lm, [P], [], [[(0, 1)]]), InputError, "1 prompts, 0 answers, 1 sets"),
        (lambda lm: neurons.attribute(lm, P, [5, -1]), InputError, "answer token -1"),
        (lambda lm: neurons.attribution.positive_by_position(lm, P, -1), InputError, "answer: ids lie in -1..-1"),
        (lambda lm: neurons.attribution.positive_by_position(lm, [], 3), InputError, "prompt: no token ids"),
        (lambda lm: lookback.ratios(lm, [P], [[3]], 1.5), InputError, "cue_tokens is 1.5"),  # type: ignore[arg-type]
        (lambda lm: lookback.ratios(lm, [P], [[3]], [1.5]), InputError, "cue_tokens is [1.5]"),  # type: ignore[list-item]
        (lambda lm: min_k.score(lm, [P], spans=[(-3, 3)]), InputError, "span (-3, 3) leaves nothing"),
        (lambda lm: engine.generate(lm, [P], 0, []), InputError, "max_new_tokens=0"),
        (lambda lm: engine.transplant_all(lm, P, P[:3], [0]), InputError, "donor of 5 and recipient of 3"),
        (lambda lm: prompt_end._shares(([1], None), (2, 3)), InputError, "clusters: 1 labels for 2 prompts"),
        (lambda lm: prompt_end._shares((None, [1]), (2, 3)), InputError, "clusters: 1 labels for 3 prompts"),
        (lambda lm: readings.place_names([_reading("c", "x", "y"), _reading("d", "y", "x")]), InputError,
         "case 'd': places ['y', 'x'], others have ['x', 'y']"),
        (lambda lm: readings.patchscope(lm, torch.zeros(4, 1, 32), [0], ["a"], shown=["b"]), InputError, "patchscope"),
        (lambda lm: readings.repeating_prompt(JOINS, ["Spain"]), InputError, "placeholder"),
    ],
)  # fmt: skip
def test_what_no_number_can_be_made_of_is_refused(
    lm: Model, call: Callable[[Model], object], error: type[Exception], said: str
) -> None:
    with pytest.raises(error) as caught:
        call(lm)
    assert said in str(caught.value), caught.value


def test_what_is_the_same_for_both_is_taken() -> None:
    assert prompt_end._shares((None, [1, 2, 3]), (2, 3)) == [[None] * 2, [1, 2, 3]]
    assert readings.place_names([_reading("c", "x"), _reading("d", "x")]) == ("x",) and readings.place_names([]) == ()
    words: Any = lambda text: SimpleNamespace(input_ids=[ord(c) for c in text])  # noqa: E731
    ids, at = readings.repeating_prompt(words, ["Spain", "Peru"])
    text = "Spain: Spain\nPeru: Peru\n" + readings.PLACEHOLDER
    assert bytes(ids).decode().startswith(text) and at == len(text) - 1


def test_numbers_that_have_no_spread_get_no_interval_and_no_adjustment() -> None:
    row: Any = {"p": 0.5}
    sides = {"failure": {"a": 1.0, "b": 2.0}, "success": {"a": 1.0, "b": 2.0}}
    same: Any = SimpleNamespace(differences={"length": {"a": 1.0, "b": 0.0}})
    none: Any = SimpleNamespace(differences={})
    assert tables._adjustment(row, sides, same, {}) == {} == tables._adjustment(row, sides, none, {})
    assert tables._adjustment({"p": np.nan}, sides, same, {}) == {}
    d = np.arange(12.0)
    assert tables.adjusted(d, {"x": np.ones(12)}) == ({}, []) == tables.adjusted(np.ones(12), {"x": d})
    assert tables.adjusted(d**2, {"x": d, "twice": 2 * d})[1] == ["x", "twice"]
    assert tables.adjusted(d**2, {"x": d}, [0] * 6 + [1] * 6) == ({}, [])
    assert tables.adjusted(d[:4], {"x": d[:4] ** 2}) == ({}, []), "five pairs for each"
    for t, threshold in ((0.0, 2.0), (np.nan, 2.0), (1.0, np.inf)):
        found: Any = SimpleNamespace(difference=np.ones(1), statistic=np.array([t]), threshold=threshold)
        cell = tables._simultaneous(found, (np.intp(0),))
        assert np.isnan([cell["low"], cell["high"]]).all() and cell["interval"] == tables.NO_SPREAD
    found = SimpleNamespace(difference=np.array([-3.0]), statistic=np.array([-6.0]), threshold=2.0)
    assert tables._simultaneous(found, (np.intp(0),)) | {"interval": 0} == {"low": -4.0, "high": -2.0, "interval": 0}
    constant = trajectory._jackknife(0.5, np.full(8, 0.5), np.ones((1, 8), dtype=bool), "said")
    assert np.isnan(constant["low"]) and (constant["interval"], constant["note"]) == (tables.NO_SPREAD, "said")
    few = trajectory._jackknife(0.5, np.arange(4.0), np.ones((1, 4), dtype=bool), "said")
    assert np.isnan(few["high"]) and (few["interval"], few["note"]) == (dependence.FEW, "said")
    known = trajectory._jackknife(0.5, np.linspace(0.4, 0.6, 8), np.ones((1, 8), dtype=bool), "said")
    assert known["low"] < 0.5 < known["high"]
    assert sets.coarse(torch.zeros(2, 3)) == {} == sets.coarse(-torch.ones(2, 3))
    assert sets._rank({(0, 1): 0.0}, {(0, 1): 1}, 4, frozenset(), 3) == []


@pytest.mark.parametrize(
    ("rates", "power", "effect"),
    [([0.9, 1.0], 0.8, 1.0), ([0.8, 0.9], 0.8, 1.0), ([0.6, 1.0], 0.8, 2.0), ([0.1, 0.2], 0.8, np.inf)],
)
def test_the_smallest_effect_is_interpolated_between_the_rates_around_the_power(
    rates: list[float], power: float, effect: float
) -> None:
    assert validity._crossing([1.0, 3.0], rates, power) == pytest.approx(effect)


def test_the_smallest_pool_map_and_question_are_taken() -> None:
    clusters = [{(0, 1): 1.0}, {(0, 2): 1.0}, {(0, 1): 0.5}]
    assert len(sets.select_clusters(clusters, v=1, u=1).neurons) == 3
    for call, said in (
        (lambda: sets.select_clusters(clusters[:2]), "2 queries"),
        (lambda: sets.select_clusters(clusters, v=0), "v=0"),
        (lambda: sets.select_clusters(clusters, u=1.1), "u=1.1"),
    ):
        with pytest.raises(InputError, match=said):
            call()
    assert neurons.location_map([[(0, 3)], [(1, 0)]], 2, 4, 1).tolist() == [[0.5], [0.5]]
    with pytest.raises(InputError, match="bins=0"):
        neurons.location_map([], 2, 4, 0)
    assert maps.map_test(np.array([[1.0], [2.0]]), np.array([[5.0], [4.0]])).p.shape == (1,)
