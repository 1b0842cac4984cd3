"""The probes against arrays that travel with the project, made by literal oracles from weights in the same files."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors import safe_open
from torch import Tensor
from transformers import AutoConfig, AutoModelForCausalLM

from composcope.hooks import Model, load_model
from composcope.probes import lookback, min_k, neurons, patching, trajectory

FOLDER = Path(__file__).parents[1] / "references"
FILES = sorted(FOLDER.glob("*.safetensors"))


class Reference:
    """One file: the model in it, and what is to be found."""

    def __init__(self, path: Path):
        with safe_open(path, "pt") as f:
            about = f.metadata()
            tensors = {k: f.get_tensor(k) for k in f.keys()}
        self.arrays: dict[str, Tensor] = {k: v for k, v in tensors.items() if not k.startswith("model.")}
        self.cue = int(about["cue_tokens"])
        model = AutoModelForCausalLM.from_config(AutoConfig.for_model(**json.loads(about["config"]))).eval()
        weights = {k.removeprefix("model."): v for k, v in tensors.items() if k.startswith("model.")}
        model.load_state_dict(weights, strict=True)
        self.lm: Model = load_model(model)

    def ids(self, name: str) -> list[list[int]]:
        return [self.arrays[f"{name}.{i}"].tolist() for i in range(3)]


@pytest.fixture(scope="module", params=FILES, ids=lambda p: p.stem)
def reference(request: pytest.FixtureRequest) -> Reference:
    return Reference(request.param)


def test_there_are_references_of_several_architectures_and_they_stay_small() -> None:
    assert {"llama", "gpt2", "gemma2", "mistral", "qwen3", "phi3"} <= {p.stem for p in FILES}
    assert sum(p.stat().st_size for p in FILES) < 1_000_000


def test_attribution_equals_the_reference_integral(reference: Reference) -> None:
    prompt, answer = reference.ids("prompt")[0], reference.arrays["answer"].tolist()
    got = neurons.attribute(reference.lm, prompt, answer, 64, per_token=True)
    torch.testing.assert_close(got, reference.arrays["attribution.converged"], atol=3e-6, rtol=0)
    refined = neurons.attribute(reference.lm, prompt, answer, per_token=True)
    scale = float(reference.arrays["attribution.converged"].abs().max())
    torch.testing.assert_close(refined, reference.arrays["attribution.converged"], atol=2e-2 * scale, rtol=0)
    published = neurons.attribute(reference.lm, prompt, answer, 20, "reference", per_token=True, site="down")
    torch.testing.assert_close(published, reference.arrays["attribution.reference"], atol=3e-6, rtol=0)


def test_patched_continuations_equal_the_reference_token_by_token(reference: Reference) -> None:
    prompts = reference.ids("prompt")
    got = patching.prompt_end_sweep(
        reference.lm, prompts[:2], prompts[2:], max_new_tokens=6, keep="all", controls=(), stop_ids=()
    )
    want = reference.arrays
    torch.testing.assert_close(got.tensors["first_logits"][:, 0], want["patch.logits"], atol=5e-5, rtol=0)
    assert torch.equal(got.tensors["tokens"][:, 0], want["patch.tokens"].long())
    assert torch.equal(got.tensors["base_tokens"][0], want["patch.base"].long())


@pytest.mark.parametrize("form", ["mean", "sum"])
def test_lookback_ratios_equal_the_reference(reference: Reference, form: lookback.Form) -> None:
    found = lookback.ratios(reference.lm, reference.ids("prompt"), reference.ids("response"), reference.cue, form=form)
    for i, got in enumerate(found):
        torch.testing.assert_close(got, reference.arrays[f"lookback.{form}.{i}"], atol=5e-6, rtol=0)


def test_min_k_token_and_text_scores_equal_the_reference(reference: Reference) -> None:
    tokens = min_k.token_scores(reference.lm, reference.ids("prompt"))
    scores = min_k.score(reference.lm, reference.ids("prompt"), 0.2)
    for i, t in enumerate(tokens):
        columns = np.stack([t.log_prob, t.mean, t.variance], -1)
        np.testing.assert_allclose(columns, reference.arrays[f"tokens.{i}"], rtol=1e-4, atol=1e-5)
        text = [scores.min_k[i], scores.min_k_pp[i], scores.log_prob[i]]
        np.testing.assert_allclose(text, reference.arrays[f"min_k.{i}"], rtol=5e-5)


def test_prompt_end_states_and_step_cosines_equal_the_reference(reference: Reference) -> None:
    states = trajectory.prompt_end_states(reference.lm, reference.ids("prompt")).float()
    for i, got in enumerate(states):
        torch.testing.assert_close(got, reference.arrays[f"state.{i}"], atol=5e-5, rtol=1e-5)
    for alignment in ("predictive", "token"):
        found = trajectory.step_cosines(
            reference.lm, reference.ids("prompt"), reference.ids("response"), alignment=alignment, eos=()
        )
        for i, got in enumerate(found):
            want = reference.arrays[f"steps.{alignment}.{i}"]
            torch.testing.assert_close(got.cosines.float(), want, atol=2e-6, rtol=0)


def test_a_wrong_rule_site_or_step_would_be_noticed(reference: Reference) -> None:
    """How far the nearest mistakes are from the tolerances above."""
    prompt, answer = reference.ids("prompt")[0], reference.arrays["answer"].tolist()
    want = reference.arrays["attribution.reference"]
    fewer = neurons.attribute(reference.lm, prompt, answer, 19, "reference", per_token=True, site="down")
    assert float((fewer - want).abs().max()) > 6e-6
    shifted = lookback.ratios(reference.lm, reference.ids("prompt"), reference.ids("response"), reference.cue + 1)
    assert float((shifted[0] - reference.arrays["lookback.mean.0"]).abs().max()) > 1e-3
