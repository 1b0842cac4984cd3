"""The reading probes against reference outputs of the published implementations."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from composcope.hooks import Model, load_model
from composcope.probes import lookback, min_k, trajectory

NAMES = ("tiny_llama", "tiny_gpt2")
PUBLISHED = Path(__file__).parents[1] / "references" / "published"


@pytest.fixture(params=NAMES)
def case(request: pytest.FixtureRequest) -> tuple[str, Path, Model]:
    return request.param, PUBLISHED, load_model(PUBLISHED / "models" / request.param)


def test_lookback_equals_the_reference_and_its_masses_the_float64_ones(case: tuple[str, Path, Model]) -> None:
    name, golden, lm = case
    ref = np.load(golden / "lookback" / f"{name}.npz")
    for c in "ab":
        pair = [ref[f"{c}_prompt"].tolist()], [ref[f"{c}_response"].tolist()]
        extra = int(ref[f"{c}_extra"])
        masses = lookback.masses(lm, *pair, extra)[0]
        assert np.abs(masses.context.numpy() - ref[f"{c}_mass_context_fp64"]).max() < 5e-6
        assert np.abs(masses.new.numpy() - ref[f"{c}_mass_new_fp64"]).max() < 5e-6
        forms: tuple[tuple[lookback.Form, str], ...] = (
            ("mean", "mean_ref"),
            ("mean", "mean_fp64"),
            ("sum", "sum_fp64"),
        )
        for form, key in forms:
            got = lookback.ratios(lm, *pair, cue_tokens=extra, form=form)[0].numpy()
            want = ref[f"{c}_ratio_{key}"]
            if form == "mean":
                assert (np.isnan(got) == np.isnan(want)).all()
            np.testing.assert_allclose(got[..., 1:], want[..., 1:], atol=5e-6)
        scalar = float(lookback.ratios(lm, *pair, cue_tokens=extra)[0].nanmean())
        assert abs(scalar - ref[f"{c}_scalar_mean"]) < 5e-6


def test_lookback_equals_the_authors_own_stack() -> None:
    ref = np.load(PUBLISHED / "lookback" / "tiny_llama_fork.npz")
    lm = load_model(PUBLISHED / "models" / "tiny_llama")
    for c in "abc":
        for ids, ratio in (("greedy_ids", "greedy_ratio"), ("tf_ids", "tf_ratio")):
            prompt, response = ref[f"{c}_prompt"].tolist(), ref[f"{c}_{ids}"].tolist()
            # Teacher-forced runs of that stack append one token of their own: a step more than there are tokens.
            want = ref[f"{c}_{ratio}"][..., : len(response)]
            got = lookback.ratios(lm, [prompt], [response], cue_tokens=int(ref[f"{c}_extra"]))[0]
            np.testing.assert_allclose(got, want, atol=5e-6)


def test_min_k_equals_the_reference_at_every_ratio(case: tuple[str, Path, Model]) -> None:
    name, golden, lm = case
    ref = np.load(golden / "minkpp" / f"{name}.npz")
    texts = [ref[f"s{i}_ids"].tolist() for i in range(int(ref["n_seq"]))]
    for j, k in enumerate(ref["ratios"]):
        got = min_k.score(lm, texts, float(k))
        np.testing.assert_allclose(got.min_k, ref["mink"][:, j], rtol=5e-5)
        np.testing.assert_allclose(got.min_k_pp, ref["minkpp"][:, j], rtol=5e-5)
        np.testing.assert_allclose(got.log_prob, ref["loss_ll"], rtol=5e-5)
    for i, t in enumerate(min_k.token_scores(lm, texts)):
        for mine, key in ((t.log_prob, "logp"), (t.mean, "mu"), (t.variance, "var"), (t.z, "z")):
            np.testing.assert_allclose(mine, ref[f"s{i}_{key}_fp64"], rtol=5e-5, atol=1e-5)


def test_prompt_end_states_and_cosines_equal_the_reference(case: tuple[str, Path, Model]) -> None:
    name, golden, lm = case
    ref = np.load(golden / "patching" / f"{name}.npz")
    prompts = [p.tolist() for p in np.split(ref["prompts"], np.cumsum(ref["prompt_lens"])[:-1])]
    states = trajectory.prompt_end_states(lm, prompts)
    np.testing.assert_allclose(states, ref["prompt_end_states"], atol=5e-5)
    got = trajectory.prompt_end_cosines(lm, prompts[:3], prompts[3:])
    np.testing.assert_allclose(got.matrix, ref["cos"], atol=2e-6)
    for key in ("dd", "rr", "dr"):
        np.testing.assert_allclose(getattr(got, key), ref[f"cos_{key}"], atol=2e-6)


def test_step_cosines_equal_the_reference_in_both_alignments(case: tuple[str, Path, Model]) -> None:
    name, golden, lm = case
    ref = np.load(golden / "patching" / f"{name}.npz")
    prompts = [p.tolist() for p in np.split(ref["prompts"], np.cumsum(ref["prompt_lens"])[:-1])]
    responses = ref["generated"].tolist()
    predictive = trajectory.step_cosines(lm, prompts, responses)
    token = trajectory.step_cosines(lm, prompts, responses, alignment="token")
    np.testing.assert_allclose(torch.stack([c.cosines for c in predictive]), ref["traj_predictive_states"], atol=2e-6)
    np.testing.assert_allclose(torch.stack([c.cosines for c in token]), ref["traj_token_states"], atol=2e-6)
    np.testing.assert_allclose(torch.stack([c.norms for c in token]), ref["token_state_norms"], rtol=1e-5)
