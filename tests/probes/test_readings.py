"""Lookback, trajectory and Min-K against literal oracles on random models of many architectures."""

from __future__ import annotations

import itertools
import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from oracles import lookback as lookback_oracle
from oracles import min_k as min_k_oracle
from oracles import trajectory as trajectory_oracle
from tiny_models import tiny

from composcope.errors import InputError, ModelError
from composcope.hooks import load_model
from composcope.probes import lookback, min_k, trajectory, validity
from composcope.probes.catalog import PROBES, standard
from composcope.probes.lookback.measuring import layout, spans_of

ARCHITECTURES = ("llama", "qwen3", "gpt2", "gemma2", "mistral", "gpt_oss", "qwen2", "granite", "cohere", "mixtral")


def _texts(seed: int = 0, lengths: tuple[int, ...] = (13, 9, 16)) -> list[list[int]]:
    rng = np.random.default_rng(seed)
    return [rng.integers(3, 97, n).tolist() for n in lengths]


PROMPTS, RESPONSES = _texts(1), _texts(2, (7, 1, 5))


@pytest.mark.parametrize("name", ARCHITECTURES)
@pytest.mark.parametrize("form", ["mean", "sum"])
def test_lookback_equals_stepwise_eager_maps(name: str, form: lookback.Form) -> None:
    got = lookback.ratios(load_model(tiny(name)), PROMPTS, RESPONSES, cue_tokens=[4, 0, 1], form=form)
    oracle = tiny(name, attn="eager")
    for i, cue in enumerate((4, 0, 1)):
        want = lookback_oracle.ratios(oracle, PROMPTS[i], RESPONSES[i], cue, form)
        torch.testing.assert_close(got[i], want, atol=5e-6, rtol=0, equal_nan=True)


@pytest.mark.parametrize("name", ["llama", "gemma2", "mistral"])
def test_lookback_is_the_same_whichever_attention_the_model_was_loaded_with(name: str) -> None:
    if name == "gemma2":
        got = lookback.ratios(load_model(tiny(name)), PROMPTS, RESPONSES, 2)
    else:
        got = lookback.ratios(load_model(tiny(name, attn="sdpa")), PROMPTS, RESPONSES, 2)
    eager = lookback.ratios(load_model(tiny(name, attn="eager")), PROMPTS, RESPONSES, 2)
    for a, b in zip(got, eager, strict=True):
        torch.testing.assert_close(a, b, atol=2e-6, rtol=0)


def test_step_zero_without_cue_tokens_is_nan_and_nothing_else_is() -> None:
    for ratio in lookback.ratios(load_model(tiny("llama")), PROMPTS, RESPONSES):
        assert ratio[..., 0].isnan().all()
        assert not ratio[..., 1:].isnan().any()


def test_masses_sum_to_one_except_where_sinks_take_their_share() -> None:
    for m in lookback.masses(load_model(tiny("llama")), PROMPTS, RESPONSES):
        torch.testing.assert_close(m.context + m.new, torch.ones_like(m.new), atol=1e-6, rtol=0)
    for m in lookback.masses(load_model(tiny("gpt_oss")), PROMPTS, RESPONSES):
        assert (m.context + m.new < 0.999).any()


def test_regions_tile_all_keys_and_add_up_to_context_and_new() -> None:
    lm = load_model(tiny("mistral"))
    spans = [(3, 7), None, (0, 16)]
    found = lookback.masses(lm, PROMPTS, RESPONSES, 2, question_spans=spans)
    oracle = tiny("mistral", attn="eager")
    for m, prompt, response, span in zip(found, PROMPTS, RESPONSES, spans, strict=True):
        if span is None:
            assert m.regions == {}
            continue
        torch.testing.assert_close(m.regions["cue"] + m.regions["response"], m.new, atol=1e-6, rtol=0)
        context = m.regions["sink"] + m.regions["template"] + m.regions["question"]
        torch.testing.assert_close(context, m.context, atol=1e-6, rtol=0)
        with torch.no_grad():
            maps = oracle(input_ids=torch.tensor([prompt + response[:-1]]), output_attentions=True).attentions
        first, last = max(span[0], 1), min(span[1], len(prompt) - 2)
        want = torch.stack([a[0, :, len(prompt) - 1 :, first:last].sum(-1) for a in maps])
        torch.testing.assert_close(m.regions["question"], want, atol=5e-6, rtol=0)
    with pytest.raises(InputError, match="question span"):
        lookback.masses(lm, PROMPTS[:1], RESPONSES[:1], question_spans=[(5, 99)])


def test_readings_do_not_depend_on_what_else_is_in_the_batch() -> None:
    lm = load_model(tiny("mistral"))
    together = lookback.ratios(lm, PROMPTS, RESPONSES, 2)
    alone = [lookback.ratios(lm, [p], [r], 2)[0] for p, r in zip(PROMPTS, RESPONSES, strict=True)]
    small = lookback.ratios(lm, PROMPTS, RESPONSES, 2, max_tokens=1)
    for a, b, c in zip(together, alone, small, strict=True):
        torch.testing.assert_close(a, b, atol=2e-6, rtol=0)
        torch.testing.assert_close(c, b, atol=2e-6, rtol=0)
    scores, single = min_k.score(lm, PROMPTS), [min_k.score(lm, [p]) for p in PROMPTS]
    np.testing.assert_allclose(scores.min_k_pp, [s.min_k_pp[0] for s in single], rtol=1e-5)


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_prompt_end_and_step_cosines_equal_one_forward_per_state(name: str) -> None:
    model = tiny(name)
    lm = load_model(model)
    states = [trajectory_oracle.last_states(model, p) for p in PROMPTS]
    got = trajectory.prompt_end_cosines(lm, PROMPTS[:2], PROMPTS[2:])
    torch.testing.assert_close(got.dd, trajectory_oracle.mean_cosine(states[:2]), atol=2e-6, rtol=0)
    torch.testing.assert_close(got.dr, trajectory_oracle.mean_cosine(states[:2], states[2:]), atol=2e-6, rtol=0)
    assert got.rr.isnan().all()
    for alignment in ("predictive", "token"):
        found = trajectory.step_cosines(lm, PROMPTS, RESPONSES, alignment=alignment)
        for i in (0, 2):
            want = trajectory_oracle.step_cosines(model, PROMPTS[i], RESPONSES[i], alignment)
            torch.testing.assert_close(found[i].cosines, want, atol=2e-6, rtol=0)
        assert found[1].cosines.shape == (3, 0)
        assert found[1].norms.shape == (3, 1)


def test_token_alignment_leaves_out_the_final_eos_and_steps_are_capped() -> None:
    lm = load_model(tiny("llama"))
    with_eos = trajectory.step_cosines(lm, PROMPTS[:1], [[*RESPONSES[0], 2]], alignment="token", eos=[2])[0]
    without = trajectory.step_cosines(lm, PROMPTS[:1], RESPONSES[:1], alignment="token")[0]
    torch.testing.assert_close(with_eos.cosines, without.cosines)
    assert trajectory.step_cosines(lm, PROMPTS[:1], RESPONSES[:1], steps=3)[0].cosines.shape == (3, 2)


def test_centered_cosines_subtract_the_mean_state_of_the_layer() -> None:
    lm = load_model(tiny("llama"))
    states = trajectory.prompt_end_states(lm, PROMPTS)
    got = trajectory.prompt_end_cosines(lm, PROMPTS[:2], PROMPTS[2:], centered=True)
    x = states - states.mean(0)
    torch.testing.assert_close(got.dd, trajectory_oracle.cosine(x[0], x[1]))


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_min_k_scores_equal_the_equations_in_float64(name: str) -> None:
    model = tiny(name)
    for k in (0.1, 0.2, 0.7, 1.0):
        got = min_k.score(load_model(model), PROMPTS, k)
        want = np.array([min_k_oracle.score(model, p, k) for p in PROMPTS]).T
        np.testing.assert_allclose(np.stack(got), want, rtol=5e-5)


def test_min_k_of_a_text_too_short_for_k_is_nan_and_one_token_on_request() -> None:
    lm = load_model(tiny("llama"))
    assert np.isnan(min_k.score(lm, [PROMPTS[0][:5]], 0.2).min_k[0])
    tokens = min_k.token_scores(lm, [PROMPTS[0][:5]])[0]
    assert min_k.score(lm, [PROMPTS[0][:5]], 0.2, at_least_one=True).min_k[0] == tokens.log_prob.min()


def test_a_span_scores_its_own_tokens_conditioned_on_what_stands_before() -> None:
    lm = load_model(tiny("qwen3"))
    full, part = min_k.token_scores(lm, PROMPTS[:1])[0], min_k.token_scores(lm, PROMPTS[:1], [(4, 9)])[0]
    assert part.positions == (4, 5, 6, 7, 8)
    np.testing.assert_allclose(part.z, full.z[3:8], rtol=1e-5)


def test_length_matching_takes_away_the_advantage_of_a_longer_text() -> None:
    rng = np.random.default_rng(0)
    short, long = [], []
    for i in range(300):
        x = rng.normal(size=40)
        short.append(min_k.lowest(x[:7], 0.2))
        long.append(min_k.length_matched(x, 7, 0.2, draws=100, seed=i))
    assert abs(np.mean(short) - np.mean(long)) < 0.12


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda lm: lookback.ratios(lm, PROMPTS, [[], [5], [5]]), "response 0: no tokens"),
        (lambda lm: lookback.ratios(lm, PROMPTS, RESPONSES[:1]), "3 prompts, 1 responses"),
        (lambda lm: lookback.ratios(lm, PROMPTS, RESPONSES, 9), "cue_tokens is 9 of 9"),
        (lambda lm: lookback.ratios(lm, [[5] * 60], [[5] * 9]), "context of 64"),
        (lambda lm: min_k.score(lm, [[5]]), "at least two"),
        (lambda lm: min_k.score(lm, PROMPTS, 0.0), "k is 0.0"),
        (lambda lm: min_k.score(lm, PROMPTS, spans=[(3, 3), None, None]), "nothing to score"),
        (lambda lm: min_k.score(lm, [[5, 97]]), "97 embeddings"),
        (lambda lm: trajectory.step_cosines(lm, PROMPTS, RESPONSES, alignment="other"), "alignment is 'other'"),  # type: ignore[arg-type]
        (lambda lm: trajectory.prompt_end_cosines(lm, [], PROMPTS), "0 donors"),
    ],
)
def test_bad_input_is_one_clear_line(call, says: str) -> None:
    from composcope.errors import ComposcopeError

    with pytest.raises(ComposcopeError) as error:
        call(load_model(tiny("llama")))
    assert says in str(error.value)
    assert "\n" not in str(error.value)


def test_nan_weights_are_refused_by_every_reading() -> None:
    model = tiny("llama")
    model.get_parameter("model.embed_tokens.weight").data[5] = torch.nan
    with pytest.raises(ModelError, match="NaN"):
        lm = load_model(model)
        lookback.ratios(lm, [[5, 6, 7]], [[8, 9]])
    with pytest.raises(ModelError, match="NaN"):
        min_k.score(load_model(model), [[5, 6, 7]])
    with pytest.raises(ModelError, match="NaN"):
        trajectory.prompt_end_states(load_model(model), [[5, 6, 7]])


def test_membership_tells_a_memorized_text_from_a_random_one() -> None:
    model = tiny("llama")
    members = _texts(3, (12,) * 6)
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    for _ in range(60):
        ids = torch.tensor(members)
        loss = model(input_ids=ids, labels=ids).loss
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    lm = load_model(model)
    seen, new = min_k.score(lm, members), min_k.score(lm, _texts(4, (12,) * 6))
    assert validity.auroc(seen.min_k_pp, new.min_k_pp).value > 0.95
    assert validity.auroc(seen.min_k, new.min_k).low > 0.5


def test_a_model_put_back_into_training_mode_is_refused() -> None:
    lm = load_model(tiny("llama"))
    lm.model.train()
    with pytest.raises(ModelError, match="training mode"):
        lookback.ratios(lm, PROMPTS, RESPONSES)


def test_input_errors_name_the_sequence() -> None:
    with pytest.raises(InputError, match="sequence 1"):
        min_k.score(load_model(tiny("llama")), [[5, 6], [5, 97]])


def test_the_lowest_share_of_values_is_counted_as_in_the_reference() -> None:
    values = np.array([5.0, 1, 4, 2, 3])
    for k, mean in ((0.2, 1.0), (0.39, 1.0), (0.4, 1.5), (1.0, 3.0)):
        assert min_k.lowest(values, k) == mean
    assert math.isnan(min_k.lowest(values, 0.19)) and min_k.lowest(values, 0.19, True) == 1.0
    assert min_k.lowest(np.arange(90.0), 0.7) == np.arange(62).mean()  # 90 * 0.7 is 62.99... in floating point
    for k in (0.0, -0.1, 1.1):
        with pytest.raises(InputError, match="k is"):
            min_k.lowest(values, k)


def test_z_is_the_distance_in_standard_deviations_and_zero_for_a_certain_token() -> None:
    log_prob, mean = np.array([-1.0, 0, -2, 0.5]), np.array([-3.0, 0, -1, 0])
    z = min_k.standardize(log_prob, mean, np.array([4.0, 0, 0, 0]))
    assert z.tolist() == [1, 0, -np.inf, np.inf]
    assert min_k.standardize(log_prob, mean, np.array([4.0, 0, 0.01, 0]), 0.5).tolist() == [1, 0, -2, 1]
    tokens = min_k.TokenScores(log_prob, mean, np.array([1e-4, 0.99e-4, 1, 0]), z, (1, 2, 3, 4))
    assert tokens.small_sigma == 2
    found = min_k.aggregate([tokens], 0.5)
    assert (found.min_k[0], found.log_prob[0]) == (-1.5, -0.625)


def test_matching_lengths_averages_the_lowest_values_over_random_subsets() -> None:
    values = np.array([0.0, 1, 2, 3])
    assert min_k.length_matched(values, 4, 0.25) == 0 and min_k.length_matched(values, 4, 0.5) == 0.5
    exact = np.mean([min(s) for s in itertools.combinations(values, 2)])
    assert min_k.length_matched(values, 2, 0.5, draws=5000) == pytest.approx(exact, abs=0.05)
    assert min_k.length_matched(values, 2, 0.5, seed=1) == min_k.length_matched(values, 2, 0.5, seed=1)
    assert min_k.length_matched(values, 2, 0.5, seed=1) != min_k.length_matched(values, 2, 0.5, seed=2)
    assert min_k.length_matched(values, 2, 0.5) == min_k.length_matched(values, 2, 0.5, draws=200, seed=0)
    assert math.isnan(min_k.length_matched(values, 4, 0.2))
    for n in (0, 5):
        with pytest.raises(InputError, match="cannot match 4 tokens"):
            min_k.length_matched(values, n)


def test_questions_that_share_their_value_are_those_of_other_cases_and_of_one_kind() -> None:
    def of(case: str, kind: str) -> Any:
        return SimpleNamespace(case=case, kind=kind)

    asked = [of("a", "whole"), of("b", "whole"), of("c", "whole"), of("a", "part"), of("c", "part"), of("c", "part")]
    assert min_k._alike(asked, np.array([1.0, 1.0, 2.0, 1.0, 3.0, 3.0])) == 2


def test_the_first_token_is_never_scored() -> None:
    assert min_k._scored((1, 2, 3), None, 0) == (1, 3) == min_k._scored((1, 2, 3), (0, 3), 0)
    assert min_k._scored((1, 2, 3), (2, 3), 0) == (2, 3)
    for ids, span in (((1,), None), ((1, 2, 3), (2, 2)), ((1, 2, 3), (0, 1)), ((1, 2, 3), (1, 4))):
        with pytest.raises(InputError, match="text 7"):
            min_k._scored(ids, span, 7)


@pytest.mark.parametrize(
    ("alignment", "steps", "ids", "states"),
    [("predictive", 9, (1, 2, 5, 6), (1, 4)), ("predictive", 2, (1, 2, 5), (1, 3)), ("token", 9, (1, 2, 5, 6), (2, 4)),
     ("token", 2, (1, 2, 5, 6), (2, 4)), ("token", 1, (1, 2, 5), (2, 3))],
)  # fmt: skip
def test_states_stand_before_or_at_the_tokens_of_a_response(
    alignment: Any, steps: int, ids: tuple[int, ...], states: tuple[int, int]
) -> None:
    found = trajectory._request((1, 2), (5, 6, 9), alignment, steps, (9,), 0)
    assert (tuple(found.ids), found.states) == (ids, states)


def test_requests_for_steps_that_cannot_be_are_refused() -> None:
    for prompt, response, alignment, said in (
        ((), (5,), "token", "0 prompt"),
        ((1,), (), "token", "0 response"),
        ((1,), (5,), "tokens", "alignment"),
    ):
        with pytest.raises(InputError, match=said):
            trajectory._request(prompt, response, alignment, 3, (), 2)  # type: ignore[arg-type]
    only = trajectory._request((1,), (9,), "token", 3, (9,), 0)
    assert only.states == (1, 2), "a response that only ends has one state"


def test_cosines_of_steps_and_of_pairs_are_those_of_numpy() -> None:
    x = torch.randn(2, 5, 3, dtype=torch.float64)
    found = trajectory._steps(x)
    for layer, t in itertools.product(range(2), range(4)):
        a, b = x[layer, t], x[layer, t + 1]
        assert float(found["cosines"][layer, t]) == pytest.approx(float(a @ b / a.norm() / b.norm()))
    states = torch.randn(4, 2, 3)
    for centered in (False, True):
        m = trajectory.cosine_matrix(states, centered)
        y = states.double() - (states.double().mean(0) if centered else 0)
        for i, j in itertools.product(range(4), range(4)):
            assert float(m[1, i, j]) == pytest.approx(float(torch.cosine_similarity(y[i, 1], y[j, 1], dim=0)))
    split = trajectory._split(m, 3, True)
    assert (
        float(split.dd[0]) == pytest.approx(float((m[0, 0, 1] + m[0, 0, 2] + m[0, 1, 2]) / 3))
        and split.rr.isnan().all()
    )
    assert float(split.dr[1]) == pytest.approx(float(m[1, :3, 3].mean()))
    assert trajectory._padded(torch.ones(1, 2), 4).isnan().tolist() == [[False, False, True, True]]


def test_spans_are_one_or_none_for_each_prompt() -> None:
    assert spans_of(None, 2, "s") == [None, None] and spans_of([(0, 1), None], 2, "s") == [(0, 1), None]
    with pytest.raises(InputError, match="2 prompts, 1 s"):
        spans_of([None], 2, "s")


@pytest.mark.parametrize(
    ("question", "few_shot", "expected"),
    [
        (None, None, []),
        ((3, 6), None, [("sink", 0, 1), ("template", 1, 3), ("question", 3, 6), ("template", 6, 8)]),
        ((0, 6), None, [("sink", 0, 1), ("question", 1, 6), ("template", 6, 8)]),  # the first key is the sink's
        ((1, 8), None, [("sink", 0, 1), ("question", 1, 8)]),
        ((6, 9), None, [("sink", 0, 1), ("template", 1, 6), ("question", 6, 8)]),  # what is cue is not the question's
        ((5, 7), (0, 3), [("sink", 0, 1), ("few_shot", 1, 3), ("template", 3, 5), ("question", 5, 7),
                          ("template", 7, 8)]),
        ((3, 5), (5, 8), [("sink", 0, 1), ("template", 1, 3), ("question", 3, 5), ("few_shot", 5, 8)]),
    ],
)  # fmt: skip
def test_regions_of_a_prompt_follow_its_spans_and_have_every_key_once(
    question: tuple[int, int] | None, few_shot: tuple[int, int] | None, expected: list[tuple[str, int, int]]
) -> None:
    found = layout(10, 2, 14, question, few_shot)
    assert (found.prompt, found.context, found.ranges[:2]) == (10, 8, ((0, 8), (8, 14)))
    parts = [(name, *span) for name, span in zip(found.names, found.ranges[2:], strict=True) if span[0] < span[1]]
    assert parts == expected + ([("cue", 8, 10), ("response", 10, 14)] if expected else [])
    sums = torch.stack([torch.full((1, 1, 1), float(max(0, b - a))) for a, b in found.ranges])
    masses = found.masses(sums)
    assert (float(masses.context), float(masses.new)) == (8, 6)
    sizes = {name: sum(b - a for other, a, b in parts if other == name) for name in ("template", "question")}
    assert {n: float(masses.regions[n]) for n in sizes} == sizes if expected else not masses.regions


# --- the probes by their names --------------------------------------------------------------------------------------


def test_probes_stand_in_the_order_of_the_report() -> None:
    names = ["neurons", "lookback", "patching", "trajectory", "min-k", "readout", "faithfulness"]
    assert list(PROBES) == names and list(standard()) == names[:5]
