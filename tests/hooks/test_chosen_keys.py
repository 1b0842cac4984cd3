"""Models that choose among the keys of a long text themselves: what is read holds, what would not is refused."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from transformers import AutoConfig, AutoModelForCausalLM

from composcope.errors import ModelError
from composcope.hooks import Model, Site, load_model
from composcope.hooks.attention_masses import Window
from composcope.hooks.capture import Request, capture_all
from composcope.hooks.length_limits import computed_alike, keys_chosen
from composcope.probes import lookback, min_k, neurons, patching, trajectory

from ..oracles import lookback as lookback_oracle
from ..oracles import min_k as min_k_oracle
from ..tiny_models import MOE

MOST = 8
"""Keys that a token attends to at most."""
SHORT, LONG = [5 + 7 * i % 85 for i in range(5)], [9 + 5 * i % 85 for i in range(13)]
SPARSE: dict[str, Any] = dict(
    MOE, num_key_value_heads=4, n_routed_experts=4, n_group=1, topk_group=1, first_k_dense_replace=1, q_lora_rank=16,
    kv_lora_rank=16, qk_nope_head_dim=8, qk_rope_head_dim=8, v_head_dim=8, head_dim=8, index_head_dim=16,
    index_topk=MOST,
)  # fmt: skip


def sparse(name: str, heads: int = 2, attn: str = "sdpa") -> Any:
    """Few index heads: their scores, cut off at zero, often tie."""
    config = AutoConfig.for_model(name, index_n_heads=heads, **SPARSE)
    config._attn_implementation = attn
    torch.manual_seed(0)
    return AutoModelForCausalLM.from_config(config).eval()


@pytest.fixture(scope="module", params=["deepseek_v32", "glm_moe_dsa"])
def lm(request: pytest.FixtureRequest) -> Model:
    return load_model(sparse(request.param))


def test_up_to_as_many_keys_as_it_takes_attention_is_that_of_the_eager_maps(lm: Model) -> None:
    prompt, response = SHORT, LONG[: MOST - len(SHORT)]
    eager = sparse(lm.model.config.model_type, attn="eager")
    got = lookback.ratios(lm, [prompt], [response], 2)[0]
    assert torch.allclose(
        torch.as_tensor(got).double(),
        torch.as_tensor(lookback_oracle.ratios(eager, prompt, response, 2)).double(),
        atol=1e-5,
    )
    site = Site(1, "pattern")
    with torch.no_grad():
        pattern = lm.run(torch.tensor([prompt]), read=[site]).acts[site]
    assert torch.allclose(pattern.sum(-1), torch.ones(()), atol=1e-5)


def test_attention_of_longer_texts_is_refused_with_both_lengths(lm: Model) -> None:
    ids, name = torch.tensor([LONG]), type(lm.model).__name__.removesuffix("ForCausalLM")
    says = f"{name}Attention: of 1[23] keys it attends to {MOST} .*sparse attention.*texts of up to {MOST} tokens"
    calls: list[Any] = [
        lambda: lm.run(ids, read=[Site(1, "pattern")]),
        lambda: lookback.ratios(lm, [LONG[:9]], [LONG[9:]], 2),
        lambda: neurons.attribute(lm, LONG, [7], 2),
        lambda: patching.prompt_end_sweep(lm, [LONG], [LONG], max_new_tokens=2),
    ]
    for call in calls:
        with pytest.raises(ModelError, match=says):
            call()
    with torch.no_grad():
        assert torch.equal(lm.run(ids).logits, lm.model(ids).logits), "nothing is left behind"


def test_longer_texts_stand_in_no_batch_with_padding(lm: Model) -> None:
    ids, mask = lm.pad([LONG, LONG[:-2]])
    with torch.no_grad():
        for how in (mask, None):
            with pytest.raises(
                ModelError, match=r"2 rows of 13 tokens; of more than 8 keys.*give rows of equal length"
            ):
                lm.run(ids, how)
        two = torch.tensor([LONG, LONG[::-1]])
        both = lm.run(two, torch.ones_like(two)).logits
        assert torch.allclose(both[:1], lm.run(ids[:1]).logits, atol=1e-5)
        short, few = lm.pad([SHORT, SHORT[:-2]])
        assert torch.allclose(lm.run(short, few).logits[1:, :3], lm.run(short[1:, :3]).logits, atol=1e-5)


def test_texts_of_any_lengths_get_what_each_gets_alone(lm: Model) -> None:
    assert keys_chosen(lm.model.config) == MOST
    assert computed_alike(lm.model, [13, 5, 12, 13, 8, 3]) == [[1, 4, 5], [2], [0, 3]]
    texts = [LONG, SHORT, LONG[:-1], LONG[::-1], SHORT[:-1]]
    together = capture_all(lm, [Request(t, (0, 3), None, (0, len(t))) for t in texts])
    scores = min_k.score(lm, texts)
    states = trajectory.prompt_end_states(lm, texts)
    for i, (text, got) in enumerate(zip(texts, together, strict=True)):
        (alone,) = capture_all(lm, [Request(text, (0, 3), None, (0, len(text)))])
        assert torch.allclose(got.states, alone.states, atol=1e-5)  # type: ignore[arg-type]
        assert torch.allclose(got.hidden, alone.hidden, atol=1e-5)  # type: ignore[arg-type]
        assert torch.allclose(states[i], trajectory.prompt_end_states(lm, [text])[0], atol=1e-5)
        want = [log_prob for log_prob, *_ in min_k_oracle.token_scores(lm.model, text)]
        assert scores.log_prob[i] == pytest.approx(sum(want) / len(want), abs=1e-5)


def test_masses_of_short_texts_are_read_beside_long_ones_of_which_none_are_wanted(lm: Model) -> None:
    window = Window(2, 5, ((0, 2), (2, 5)))
    short = capture_all(lm, [Request(SHORT, masses=window), Request(SHORT[::-1], masses=window)])
    assert all(torch.isfinite(s.masses).all() for s in short)  # type: ignore[arg-type]


def test_where_scores_do_not_tie_steps_of_a_response_are_those_of_its_prefixes() -> None:
    lm = load_model(sparse("deepseek_v32", heads=32))
    prompt, response = LONG[:10], LONG[10:]
    steps = trajectory.step_cosines(lm, [prompt], [response], eos=())[0].cosines
    ends = trajectory.prompt_end_states(lm, [prompt, LONG[:11]])
    want = torch.cosine_similarity(ends[0].double(), ends[1].double(), dim=-1)
    assert torch.allclose(torch.as_tensor(steps)[:, 0].double(), want, atol=1e-5)
