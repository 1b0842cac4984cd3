"""Suffix recomputation: rows against full forward passes."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from einops import rearrange
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS

from composcope.errors import ModelError
from composcope.hooks import Model, Site, load_model
from composcope.hooks.attention import Call, visible
from composcope.hooks.decode import Variants, _leaders, _padded, _Taken, _taken, _unmoved, decode
from composcope.hooks.edits import Knockout, Skip
from composcope.hooks.ragged import RaggedRows, inputs_reordered
from composcope.hooks.rows import Step, _attend, _window, check_unchanged, prefill, step
from composcope.hooks.suffix import suffix

from ..tiny_models import CONFIGS, tiny

PROMPTS = [[5 + (7 * i + 3 * n) % 85 for i in range(length)] for n, length in enumerate((11, 7, 14))]


FACTORS = (1.0, 1.5, -2.0)
"""What the residual stream at the prompt end is multiplied with, after each block: the first changes nothing."""


def recomputed(lm: Model, prompt: list[int], layer: int | None, factor: float, new: int) -> list[int]:
    """Greedy tokens, the whole sequence computed again for every one."""

    def edit(x: torch.Tensor) -> torch.Tensor:
        y = x.clone()
        y[:, len(prompt) - 1] *= factor
        return y

    ids: list[int] = list(prompt)
    for _ in range(new):
        edits = {} if layer is None else {Site(layer, "resid_post"): edit}
        with torch.no_grad():
            ids.append(int(lm.run(torch.tensor([ids]), edit=edits).logits[0, -1].argmax()))
    return ids[len(prompt) :]


def ended(row: list[int], stops: list[int]) -> list[int]:
    """The same tokens up to the first stop; those behind it are -1."""
    end = next((i + 1 for i, token in enumerate(row) if token in stops), len(row))
    return row[:end] + [-1] * (len(row) - end)


def after_every_block(lm: Model, prompts: list[list[int]], new: int, stops: list[int]) -> list[list[list[int]]]:
    """Continuations by prompt: unchanged, and multiplied by the first 3, 0, 2 ... factors after each block."""
    layers = range(lm.anatomy.n_layers)
    sites = [Site(layer, "resid_post") for layer in layers]
    prefix = prefill(lm, prompts, read=sites)
    plan = [(q, layer, f) for q in range(len(prompts)) for layer in layers for f in FACTORS[: (3, 0, 2)[q % 3]]]
    states = torch.stack([f * prefix.states[sites[layer]][q] for q, layer, f in plan])
    tokens, logits = decode(lm, prefix, Variants([p[0] for p in plan], [p[1] for p in plan], states), new, stops)
    assert torch.equal(tokens[:, 0], logits.argmax(-1))
    found = [[row] for row in tokens[: len(prompts)].tolist()]
    for (q, _, _), row in zip(plan, tokens[len(prompts) :].tolist(), strict=True):
        found[q].append(row)
    return found


@pytest.mark.parametrize("name", CONFIGS)
def test_variants_continue_as_full_recomputation_does(name: str) -> None:
    lm = load_model(tiny(name))
    new = 4 if getattr(lm.model.config, "sliding_window", None) is None else 6  # more than the window of these models
    free = after_every_block(lm, PROMPTS, new, [])
    for b, prompt in enumerate(PROMPTS):
        rows = [(None, 1.0)]
        rows += [(layer, f) for layer in range(lm.anatomy.n_layers) for f in FACTORS[: (3, 0, 2)[b]]]
        assert free[b] == [recomputed(lm, prompt, layer, factor, new) for layer, factor in rows]
    stops = [free[0][0][1], free[2][-1][2]]  # rows end at different steps
    assert after_every_block(lm, PROMPTS, new, stops) == [[ended(row, stops) for row in rows] for rows in free]


def test_variants_that_agree_run_once_up_to_where_they_differ() -> None:
    lm = load_model(tiny("llama"))
    n_layers, sizes = lm.anatomy.n_layers, []
    sites = [Site(layer, "resid_post") for layer in range(n_layers)]
    prefix = prefill(lm, PROMPTS[:1], read=sites)
    own = torch.stack([prefix.states[s][0] for s in sites])  # put in where they are already: all agree
    handles = [
        layer.block.register_forward_hook(lambda _m, _a, y: sizes.append((y if torch.is_tensor(y) else y[0]).shape[1]))
        for layer in lm.anatomy.layers
    ]
    try:
        decode(lm, prefix, Variants([0] * n_layers, range(n_layers), own), 4, [])
    finally:
        for h in handles:
            h.remove()
    assert sizes == [1, 2, 3] + [1 + layer for layer in range(n_layers)] * 3


def test_a_variant_that_ought_to_change_nothing_is_decoded_where_it_does() -> None:
    lm = load_model(tiny("llama"))
    site, prompt = Site(1, "resid_post"), PROMPTS[0]
    prefix = prefill(lm, [prompt], read=[site])
    states = torch.stack([f * prefix.states[site][0] for f in FACTORS])
    tokens, _ = decode(lm, prefix, Variants([0] * 3, [1] * 3, states, same=[True] * 3), 4, [])
    assert tokens[1:].tolist() == [recomputed(lm, prompt, 1, f, 4) for f in FACTORS]
    assert tokens[0].tolist() == tokens[1].tolist() != tokens[3].tolist()


@pytest.mark.parametrize(("dtype", "rounding"), [(torch.float64, 9e-6), (torch.float32, 9e-5), (torch.bfloat16, 4e-2)])
@pytest.mark.parametrize("what", ["keys", "values", "logits"])
def test_whatever_later_positions_see_shows_that_a_variant_changes_something(
    what: str, dtype: torch.dtype, rounding: float
) -> None:
    """Row 2 is changed after block 0, row 1 after block 1: below these blocks they have no rows of their own."""
    keys, values = ([torch.ones(1, 2, n, 4, dtype=dtype) for n in (1, 2, 3)] for _ in range(2))
    first = Step(torch.ones(1, 3, 5, dtype=dtype), keys, values)
    queries, changed = np.zeros(3, dtype=np.int64), np.array([3, 0, 1])
    assert _unmoved(first, queries, changed, np.array([True, True])).tolist() == [False, True, True]
    assert _unmoved(first, queries, changed, np.array([True, False])).tolist() == [False, True, False]
    moved = first.logits[0] if what == "logits" else getattr(first, what)[2][0].transpose(0, 1)
    for size, same in ((rounding, True), (rounding, False)):  # the second time it is more than rounding
        moved[2] += size
        assert _unmoved(first, queries, changed, np.array([True, True])).tolist() == [False, True, same]


def test_a_state_may_be_put_in_before_the_first_block() -> None:
    lm = load_model(tiny("llama"))
    site, prompt = Site(0, "resid_pre"), PROMPTS[0]
    prefix = prefill(lm, [prompt], read=[site])
    state = -2 * prefix.states[site]
    _, logits = decode(lm, prefix, Variants([0], [-1], state), 1, [])
    with torch.no_grad():
        edit = {site: lambda x: torch.cat([x[:, :-1], state[None]], 1)}
        expected = lm.run(torch.tensor([prompt]), edit=edit).logits[0, -1]
    assert torch.allclose(logits[1], expected, atol=1e-4)


@pytest.mark.parametrize("where", ["call", "configuration", "layers"])
def test_a_window_that_a_model_puts_into_its_mask_alone_is_found_in_its_configuration(where: str) -> None:
    q = torch.zeros(1, 1, 5, 4)
    given = {"sliding_window": 3} if where == "call" else {}
    call = Call(torch.nn.Identity(), q, q, q, visible(0, 5, 3)[None, None], given, lambda *_, **__: (q, None))
    layers = {"layer_types": ["full_attention"]} if where == "layers" else {}
    config = SimpleNamespace(sliding_window=3, **layers)
    if where == "layers":  # then the number in the configuration is of other layers
        with pytest.raises(ModelError, match="attends to 3 of 5 keys, which a sliding window of None does not explain"):
            _window(call, 0, config)
    else:
        assert _window(call, 0, config) == 3


@pytest.mark.parametrize("name", ["llama", "mistral", "gemma2", "gpt2"])
def test_any_position_of_any_prompt_can_be_asked_for(name: str) -> None:
    lm = load_model(tiny(name))
    several = [(0, 4), (0, 10), (2, 13), (1, 1), (1, 0)]
    for queries in (several, [(i, 1) for i in reversed(range(len(PROMPTS)))]):
        with torch.no_grad():
            got = step(lm, prefill(lm, PROMPTS, queries)).logits[:, 0]
        for logits, (prompt, position) in zip(got, queries, strict=True):
            with torch.no_grad():
                expected = lm.run(torch.tensor([PROMPTS[prompt]])).logits[0, position]
            assert torch.allclose(logits, expected, atol=1e-4)


def test_states_are_read_where_the_queries_are() -> None:
    lm = load_model(tiny("qwen3"))
    site = Site(1, "neuron")
    prefix = prefill(lm, PROMPTS, read=[site])
    with torch.no_grad():
        for n, prompt in enumerate(PROMPTS):
            expected = lm.run(torch.tensor([prompt]), read=[site]).acts[site][0, -1]
            assert torch.allclose(prefix.states[site][n], expected, atol=1e-5)
    chosen = prefix.select([2, 0])
    assert torch.equal(chosen.states[site], prefix.states[site][[2, 0]])
    assert (chosen.queries, chosen.tokens.tolist()) == (
        (prefix.queries[2], prefix.queries[0]),
        [PROMPTS[2][-1], PROMPTS[0][-1]],
    )


def test_attention_that_rows_cannot_reproduce_is_refused() -> None:
    lm = load_model(tiny("llama"))
    prefix = prefill(lm, PROMPTS)
    wrong = prefix.select([0, 1, 2])
    object.__setattr__(wrong, "windows", (3, 3, 3))
    with pytest.raises(ModelError, match="differs from the full forward pass"):
        step(lm, wrong)
    wrong = prefill(lm, PROMPTS[:1])
    object.__setattr__(wrong, "final", 1.5 * wrong.final)
    with pytest.raises(ModelError, match="differs from the full forward pass"):
        suffix(lm, PROMPTS[0], wrong, [], start=3, stop=len(PROMPTS[0]))
    with pytest.raises(ModelError, match="differs from the full forward pass"):
        suffix(lm, PROMPTS[0], wrong, [], start=len(PROMPTS[0]) - 1, stop=len(PROMPTS[0]))


def test_rows_do_not_depend_on_what_another_attention_makes_of_a_mask(monkeypatch: pytest.MonkeyPatch) -> None:
    def causal_only(module: Any, query: Any, key: Any, value: Any, mask: Any, **options: Any) -> Any:
        return sdpa_attention_forward(module, query, key, value, None, **options)

    monkeypatch.setitem(ALL_ATTENTION_FUNCTIONS, "causal-only", causal_only)
    lm, prompt = load_model(tiny("mistral")), PROMPTS[2]
    prefix = prefill(lm, [prompt], [(0, len(prompt) - 1)])
    rows: list[Any] = [[Skip(1, len(prompt) - 2)], [Knockout(2, len(prompt) - 1, 4)]]
    expected = suffix(lm, prompt, prefix, rows, start=3, stop=len(prompt)).final
    lm.model.config._attn_implementation_internal = "causal-only"
    got = suffix(lm, prompt, prefix, rows, start=3, stop=len(prompt)).final
    torch.testing.assert_close(got, expected, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize(("dtype", "limit"), [(torch.float32, 1e-3), (torch.bfloat16, 0.1)])
def test_a_row_that_differs_by_more_than_its_rounding_in_either_direction_is_not_unchanged(
    dtype: torch.dtype, limit: float
) -> None:
    lm = load_model(tiny("llama").to(dtype))  # type: ignore[arg-type]
    prefix = prefill(lm, [[5, 6, 7]])
    size = prefix.final.abs().max()
    for share in (0.5, -0.5):
        check_unchanged(lm, prefix, prefix.final + share * limit * size)
    for share in (2, -2, float("nan")):
        with pytest.raises(ModelError, match="nan" if share != share else "differs from the full forward pass by"):
            check_unchanged(lm, prefix, prefix.final + share * limit * size)


def test_a_sequence_that_has_ended_leads_no_other() -> None:
    same, changed, running = np.array([0, 0, 1]), np.array([1, 5, 2]), np.array([True, False, True])
    assert _leaders(same, changed, running).tolist() == [0, 0, 2]
    assert _leaders(same, changed, np.array([True, True, True])).tolist() == [1, 1, 2]


@pytest.mark.parametrize(("name", "dtype", "routed"), [
    ("mixtral", torch.bfloat16, True), ("mixtral", torch.float32, False), ("llama", torch.bfloat16, False),
])  # fmt: skip
def test_rows_that_differ_in_half_precision_may_have_been_routed_otherwise(
    name: str, dtype: torch.dtype, routed: bool
) -> None:
    lm = load_model(tiny(name).to(dtype))  # type: ignore[arg-type]
    prefix = prefill(lm, [[5, 6, 7]])
    with pytest.raises(ModelError, match=r"differs from the full forward pass by 5\.0e-01") as error:
        check_unchanged(lm, prefix, prefix.final * 1.5)
    assert ("routers choose other experts by the rounding of torch.bfloat16" in str(error.value)) is routed


@pytest.mark.parametrize(("said", "kind"), [
    ("size mismatch, got 3", ModelError), ("the device is gone", RuntimeError),
    ("CUDA out of memory: tried to make a view of size 9", RuntimeError),
])  # fmt: skip
def test_only_errors_about_shapes_mean_that_a_model_takes_no_rows(said: str, kind: type[Exception]) -> None:
    lm = load_model(tiny("llama"))
    prefix = prefill(lm, [PROMPTS[0]])

    def fail(*_: Any) -> None:
        raise RuntimeError(said)

    lm.anatomy.layers[0].block.register_forward_pre_hook(fail)
    tries: dict[str, Callable[[], Any]] = {
        "suffix recomputation": lambda: step(lm, prefix),
        "rows of edits": lambda: suffix(lm, PROMPTS[0], prefix, [], start=3, stop=len(PROMPTS[0])),
    }
    for lost, attempt in tries.items():
        with pytest.raises(kind) as error:
            attempt()
        assert type(error.value) is kind and (lost in str(error.value)) is (kind is ModelError)


def test_prompts_and_suffixes_past_the_context_are_refused() -> None:
    lm = load_model(tiny("llama"))
    with pytest.raises(ModelError, match="context holds 64"):
        prefill(lm, [[5] * 65])
    prefix = prefill(lm, [[5] * 64])
    with pytest.raises(ModelError, match="context holds 64"):
        step(lm, prefix, torch.tensor([[5]]), offset=1)


LONGROPE = dict(rope_type="longrope", rope_theta=1e4, short_factor=[1.0] * 4, long_factor=[4.0] * 4)
TURNS: dict[str, tuple[str, dict[str, Any]]] = {
    "other rotary angles": ("phi3", dict(rope_parameters=LONGROPE, original_max_position_embeddings=12)),
    "chunks": ("llama4_text", dict(attention_chunk_size=12)),
    "scaled queries": (
        "llama4_text", dict(attn_temperature_tuning=True, floor_scale=13, attn_scale=1.0, no_rope_layers=[1, 0, 1])
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", TURNS)
def test_texts_on_both_sides_of_a_length_from_which_models_compute_otherwise_are_refused(name: str) -> None:
    architecture, changes = TURNS[name]
    lm = load_model(tiny(architecture, **changes))
    short = PROMPTS[:2]  # 11 and 7 tokens
    nothing = Variants([], [], torch.zeros(0, lm.anatomy.d_model))
    prefix = prefill(lm, short)
    tokens, _ = decode(lm, prefix, nothing, 2, [])
    assert tokens.tolist() == [recomputed(lm, prompt, None, 1.0, 2) for prompt in short]
    with pytest.raises(ModelError, match="more than 12 differently; measure shorter and longer prompts apart"):
        decode(lm, prefix, nothing, 3, [])
    with pytest.raises(ModelError, match=r"texts of 7 to 14 tokens.*more than 12"):
        prefill(lm, PROMPTS)
    if name == "chunks":
        with pytest.raises(
            ModelError, match="attends to 2 of 14 keys, which a sliding window of None does not explain"
        ):
            prefill(lm, PROMPTS[2:])


def test_rows_attend_with_the_usual_scale_where_the_call_states_none() -> None:
    q, k, v = (torch.randn(1, 2, n, 8, generator=torch.Generator().manual_seed(n)) for n in (3, 5, 6))
    v = v[:, :, :5]
    want = torch.nn.functional.scaled_dot_product_attention(q, k, v)
    for given in ({}, {"scaling": 8**-0.5}):
        call: Any = SimpleNamespace(query=q, key=k, kwargs=given)
        found = _attend(call, (k, v), torch.ones(1, 5, dtype=torch.bool), [], None)
        torch.testing.assert_close(rearrange(found, "query row head d -> query head row d"), want)


def test_ragged_rows_are_sorted_by_query_and_back() -> None:
    rng = np.random.default_rng(0)
    for counts in ([3, 0, 1, 9], [1, 1], [2, 5, 4, 1, 1, 0]):
        queries = rng.permutation(np.repeat(np.arange(len(counts)), counts))
        rows = RaggedRows(queries, np.arange(len(queries)), len(counts))
        x = torch.randn(1, 2, 3, len(queries), 4)
        seen: list[int] = []

        def shifted(x: torch.Tensor, of: torch.Tensor, seen: list[int] = seen) -> torch.Tensor:
            seen += of.tolist()
            return x + of[:, None, None, None, None]

        found = rows.by_query(x, shifted)
        assert torch.allclose(found, x + torch.from_numpy(queries)[:, None]) and sorted(seen) == [
            i for i, n in enumerate(counts) if n
        ]
    one = RaggedRows(np.zeros(3, dtype=np.int64), np.arange(3), 1)
    assert torch.equal(
        one.by_query(torch.ones(1, 1, 1, 3, 1), lambda x, q: x + q[0] + 1), torch.full((1, 1, 1, 3, 1), 2.0)
    )


def test_inputs_by_position_follow_the_rows_of_their_block() -> None:
    class Block(torch.nn.Module):
        def forward(self, hidden_states: torch.Tensor, extra: Any = None, **more: Any) -> Any:
            self.got = extra, more
            return hidden_states

    blocks = [Block(), Block()]
    rows = [RaggedRows(np.array([0, 0, 0]), np.array(e), 1) for e in ([0, 1, 2], [2, 0, 0])]
    angles, other, hidden = torch.arange(6.0).reshape(1, 3, 2), torch.arange(8.0).reshape(2, 4), torch.zeros(1, 3, 5)
    with inputs_reordered(blocks, rows, 3):
        for block in blocks:
            block(hidden, [angles], cos=(angles, other), flag=True, one=torch.arange(3.0))
            given = block.got
            states = torch.arange(15.0).reshape(1, 3, 5)  # these have the order of the rows already
            assert torch.equal(block(states), states) and torch.equal(block(hidden_states=states), states)
            block.got = given
    assert all(torch.equal(b.got[0][0], angles[:, e]) for b, e in zip(blocks, ([0, 1, 2], [2, 0, 0]), strict=True))
    assert torch.equal(blocks[1].got[1]["cos"][0], angles[:, [2, 0, 0]]) and torch.equal(
        blocks[1].got[1]["cos"][1], other
    )
    assert blocks[1].got[1]["flag"] is True and torch.equal(blocks[1].got[1]["one"], torch.arange(3.0))
    blocks[1](hidden, [angles])
    assert torch.equal(blocks[1].got[0][0], angles), "only inside"


def test_one_sequence_leads_those_that_share_its_tokens_until_they_were_changed() -> None:
    same, changed = np.array([0, 0, 0, 1, 1]), np.array([9, 2, 1, 1, 3])
    running = np.array([True, True, True, True, True])
    assert _leaders(same, changed, running).tolist() == [0, 0, 0, 4, 4]
    ended = np.array([False, True, True, True, False])
    assert _leaders(same, changed, ended).tolist()[1:4] == [1, 1, 3]
    leaders = _leaders(same, changed, running)
    for layer, sequences, row_of in (
        (1, [0, 4], [0, 0, 0, 1, 1]),
        (2, [0, 2, 3, 4], [0, 0, 1, 2, 3]),
        (3, [0, 1, 2, 3, 4], [0, 1, 2, 3, 4]),
    ):
        found = _taken(leaders, changed, running, layer)
        assert (found.sequences.tolist(), found.row_of.tolist()) == (sequences, row_of)
    some = _taken(_leaders(same, changed, ended), changed, ended, 3)
    assert (some.sequences.tolist(), some.row_of.tolist()) == ([1, 2, 3], [0, 0, 1, 2, 0])


@pytest.mark.parametrize(
    ("first", "last", "wanted"), [(2, 4, (2, 4)), (3, 4, (4, 4)), (3, 5, (5, 5)), (4, 11, (4, 12)), (1, 7, (1, 7))]
)
def test_rows_are_repeated_until_the_last_layer_has_a_multiple_of_the_first(
    first: int, last: int, wanted: tuple[int, int]
) -> None:
    taken = [_Taken(np.arange(n), np.zeros(20, dtype=np.int64)) for n in (first, last, last)]
    found = _padded(taken)
    assert (len(found[0].sequences), len(found[-1].sequences)) == wanted and len(found[1].sequences) == last
    assert found[0].sequences.tolist() == [*range(first), *[0] * (wanted[0] - first)]
    assert _padded(taken[:1]) is not None and len(_padded(taken[:1])[0].sequences) == first


def test_rows_of_attention_with_a_position_bias_or_with_nan_are_refused() -> None:
    q = torch.zeros(1, 2, 3, 8)
    call: Any = SimpleNamespace(query=q, key=q, kwargs={"position_bias": 1}, module=torch.nn.Identity())
    with pytest.raises(ModelError, match=r"Identity: .*position bias"):
        _attend(call, (q, q), torch.ones(1, 3, dtype=torch.bool), [], None)
    lm = load_model(tiny("llama"))
    prefix = prefill(lm, PROMPTS)
    with torch.no_grad():
        lm.model.lm_head.weight[5] = torch.nan  # type: ignore[union-attr, operator]
    with pytest.raises(ModelError, match="NaN logits"):
        step(lm, prefix.select([0, 1, 2]))
    with pytest.raises(ModelError, match="NaN or infinite logits"):
        lm.generate([PROMPTS[0]], 2)
