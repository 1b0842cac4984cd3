"""Lookback, trajectory and Min-K against literal oracles on random models of many architectures."""

from __future__ import annotations

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


def test_z_is_zero_for_the_certain_token_and_never_nan() -> None:
    log_prob, mean, variance = np.array([0.0, -9.0, -1.0]), np.array([0.0, 0.0, -2.0]), np.array([0.0, 0.0, 4.0])
    assert min_k.standardize(log_prob, mean, variance).tolist() == [0.0, -np.inf, 0.5]
    assert min_k.standardize(log_prob, mean, variance, sigma_floor=3.0).tolist() == [0.0, -3.0, 1 / 3]
    delicate = min_k.TokenScores(log_prob, mean, np.array([0.0, 0.009**2, 0.011**2]), log_prob, (1, 2, 3))
    assert delicate.small_sigma == 2


def test_length_matching_takes_away_the_advantage_of_a_longer_text() -> None:
    rng = np.random.default_rng(0)
    short, long = [], []
    for i in range(300):
        x = rng.normal(size=40)
        short.append(min_k.lowest(x[:7], 0.2))
        long.append(min_k.length_matched(x, 7, 0.2, draws=100, seed=i))
    assert abs(np.mean(short) - np.mean(long)) < 0.12
    assert min_k.length_matched(x, 40, 0.2) == pytest.approx(min_k.lowest(x, 0.2))
    assert np.isnan(min_k.length_matched(x, 4, 0.2))
    drawn = [min_k.length_matched(x, 7, 0.2, draws=20, seed=seed) for seed in (0, 1, 2, 0)]
    assert len(set(drawn)) == 3 and drawn[0] == drawn[3]


def test_int_of_n_times_k_is_the_references_count() -> None:
    # 90 * 0.7 is 62.99... in floating point
    assert min_k.lowest(np.arange(90.0), 0.7) == np.arange(62).mean()
    assert np.isnan(min_k.lowest(np.arange(4.0), 0.2)) and min_k.lowest(np.arange(4.0), 0.2, True) == 0


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
