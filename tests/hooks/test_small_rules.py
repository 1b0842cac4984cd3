# ruff: noqa: E501
"""Rules of the hooks that need no model, or a tiny one: limits, indices, refusals and sizes, with values by hand."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from einops import rearrange
from transformers import DynamicCache

from composcope.errors import InputError, ModelError
from composcope.hooks import Site, budget, edits, length_limits, load_model, parts
from composcope.hooks.anatomy import Anatomy, _experts, width_of
from composcope.hooks.attention_masses import Window, _masses, _of_sample
from composcope.hooks.backends.transformers import position_ids, private_cache
from composcope.hooks.decode import _leaders, _padded, _Taken, _taken
from composcope.hooks.edits import Knockout, Patch, Skip
from composcope.hooks.head import _wide
from composcope.hooks.module_hooks import frozen
from composcope.hooks.numerics import check_unmasked
from composcope.hooks.ragged import RaggedRows, inputs_reordered
from composcope.hooks.rows import _attend
from composcope.hooks.sites import check_site, split
from composcope.progress import reached, stage, tick

from ..tiny_models import tiny


def _anatomy(**more: Any) -> Anatomy:
    layer: Any = SimpleNamespace(heads=(0, 0), n_neurons=0)
    of: dict[str, Any] = dict(
        layers=(layer,) * 3, n_heads=4, n_kv_heads=2, d_head=8, d_model=32, d_mlp=56, vocab_size=97, context=64
    )
    return Anatomy(**(of | more))


# Edits


WIDE = torch.zeros(32)
REFUSED: list[tuple[Any, str]] = [
    (Patch(Site(3, "resid_post"), 0, WIDE), "3 layers"), (Patch(Site(-1, "resid_pre"), 0, WIDE), "3 layers"),
    (Patch(Site(0, "pattern"), 0, WIDE), "cannot be patched in rows"), (Patch(Site(0, "mlp_out"), 0, WIDE[:31]), "need 32"),
    (Patch(Site(0, "resid_pre"), 0, WIDE + torch.inf), "NaN or infinite"), (Patch(Site(0, "resid_pre"), 5, WIDE), "position 5"),
    (Skip(3, 0), "layer 3"), (Skip(-1, 0), "layer -1"), (Skip(0, -1), "position -1"), (Skip(0, 5), "position 5"),
    (Skip(0, 0, head=4), "head 4"), (Skip(0, 0, head=-1), "head -1"), (Knockout(3, 2, 1), "layer 3"),
    (Knockout(0, 2, 2), "before the query"), (Knockout(0, 2, -1), "before the query"), (Knockout(0, 5, 0), "position 5"),
    ("edit", "a row is a list"),
]  # fmt: skip


@pytest.mark.parametrize(("edit", "said"), REFUSED)
def test_an_edit_that_cannot_be_made_is_refused_with_its_row(edit: Any, said: str) -> None:
    with pytest.raises((InputError, ModelError), match=said):
        edits.check_rows([[], [edit]], _anatomy(), 5)


def test_edits_at_the_limits_are_made_and_a_place_is_replaced_once() -> None:
    rows = [
        [Patch(Site(2, "resid_post"), 4, WIDE), Skip(2, 4, head=3), Knockout(2, 4, 3), Skip(0, 0), Knockout(0, 1, 0)],
        [Patch(Site(0, "neuron"), 0, WIDE[:5]), Patch(Site(0, "q"), 0, WIDE[:7])],
        [Patch(Site(0, "resid_post"), 0, WIDE), Patch(Site(1, "resid_pre"), 1, WIDE)],
        [Patch(Site(0, "resid_post"), 0, WIDE), Patch(Site(1, "resid_pre"), 0, WIDE, add=True)],
    ]  # fmt: skip
    edits.check_rows(rows, _anatomy(), 5)
    for twice in (Site(0, "resid_post"), Site(1, "resid_pre")):
        with pytest.raises(InputError, match=r"row 0: .*replaced twice"):
            edits.check_rows([[Patch(Site(0, "resid_post"), 0, WIDE), Patch(twice, 0, WIDE)]], _anatomy(), 5)
    assert [edits.first_position(r) for r in rows] == [0, 0, 0, 0]
    assert edits.first_position(rows[0][:3]) == 4 and edits.first_position([Knockout(0, 3, 1), Skip(1, 2)]) == 2
    assert [edits.entry(e) for e in rows[0]] == [3, 2, 2, 0, 0] and edits.first_cut(rows[0][:3]) == 2
    assert edits.entry(Patch(Site(1, "resid_pre"), 0, WIDE)) == 1 == edits.entry(Patch(Site(1, "mlp_out"), 0, WIDE))
    assert [(i, type(e).__name__) for i, e in edits.edits_of(rows[1:3])] == [(0, "Patch")] * 2 + [(1, "Patch")] * 2


def test_rows_of_edits_by_layer_and_position() -> None:
    own = torch.arange(4 * 2 * 3.0).reshape(4, 2, 3)
    [row] = edits.back_patches(own, [5, 7], [(2, 0)])
    assert [(p.site, p.position) for p in row if isinstance(p, Patch)] == [
        (Site(0, "resid_post"), 5),
        (Site(0, "resid_post"), 7),
    ]
    assert [p.value.tolist() for p in row if isinstance(p, Patch)] == own[3].tolist()
    [first] = edits.back_patches(own, [5], [(0, -1)])
    assert (
        isinstance(first[0], Patch)
        and first[0].site == Site(0, "resid_pre")
        and first[0].value.tolist() == own[1, 0].tolist()
    )
    for wrong in ((1, 1), (0, 1)):
        with pytest.raises(InputError, match="late"):
            edits.back_patches(own, [5], [wrong])
    assert edits.knockouts([2, 4], [1, 2, 3], [[0, 1], [2]]) == [
        [Knockout(layer, q, k) for layer in group for q, k in ((2, 1), (4, 1), (4, 2), (4, 3))]
        for group in ([0, 1], [2])
    ]
    assert edits.skips([1, 2], [0, 2]) == [[Skip(0, 1), Skip(0, 2)], [Skip(2, 1), Skip(2, 2)]]


def test_noise_is_as_far_away_as_the_donor_and_drawn_by_its_seed() -> None:
    own, donor = torch.randn(3, 8), torch.randn(3, 8)
    found, again, other = (edits.noise_like(own, donor, seed) for seed in (1, 1, 2))
    assert torch.allclose((found - own).norm(dim=-1), (donor - own).norm(dim=-1))
    assert torch.equal(found, again) and not torch.allclose(found, other) and not torch.allclose(found, donor)


# Sites and parts


def test_sites_beyond_the_model_are_refused() -> None:
    check_site(Site(2, "q"), 3)
    check_site(Site(0, "neuron", expert=3), 3, 4)
    for site, n, said in ((Site(3, "q"), None, "0-2"), (Site(0, "p"), None, "no such kind"), (Site(0, "neuron", expert=4), 4, "0-3"),  # type: ignore[arg-type]
                          (Site(0, "neuron", expert=0), None, "no experts"), (Site(0, "neuron", expert=-1), 4, "0-3"),
                          (Site(0, "q", head=0), None, "single heads"), ((0, "q"), None, "not a site")):  # fmt: skip
        with pytest.raises(ModelError, match=said):
            check_site(site, 3, n)  # type: ignore[arg-type]


def test_a_whole_site_is_kept_only_where_it_is_read_itself() -> None:
    one, whole, x = Site(0, "q", head=1), Site(0, "q"), torch.rand(1, 4, 3, 8)
    for read, kept in (([one], 0), ([one, whole], x.numel())):
        reads, _, found = split(dict.fromkeys(read), {}, _anatomy())
        reduce = reads[whole]
        acts = {whole: x if reduce is None else reduce(x)}
        assert acts[whole].numel() == kept and torch.equal(found(acts)[one], x[:, 1])


def test_an_expert_is_named_where_there_are_some_and_nowhere_else() -> None:
    dense, sparse = (load_model(tiny(name)) for name in ("llama", "mixtral"))
    ids = torch.tensor([[5, 6, 7]])
    for lm, site, said in (
        (sparse, Site(0, "neuron"), r"name one: Site\(0, .neuron., 0\.\.3\)"), (sparse, Site(0, "neuron", expert=4), "0-3"),
        (sparse, Site(0, "mlp_out", expert=1), 'only the kind "neuron"'), (dense, Site(0, "neuron", expert=0), "no experts"),
    ):  # fmt: skip
        with pytest.raises(ModelError, match=said):
            lm.run(ids, read=[site])
    assert sparse.run(ids, read=[Site(0, "neuron", expert=3)]).acts[Site(0, "neuron", expert=3)].shape == (1, 3, 56)
    from composcope.hooks.backends.transformers import _expert_tap

    layer = replace(sparse.anatomy.layers[0], down=dense.anatomy.layers[0].down)
    with pytest.raises(ModelError, match="this layer's MLP has no experts"):
        _expert_tap(layer, Site(0, "neuron", expert=0))


def _config(**values: Any) -> Any:
    return SimpleNamespace(**values)


def test_a_setting_of_layers_that_differ_is_the_first_layers() -> None:
    class Differs:
        per_layer_config = (_config(a=1), _config(a=2))

        def __getattr__(self, name: str) -> Any:
            raise RuntimeError("by layer")

    assert (parts.stated(_config(a=3), "a"), parts.stated(_config(), "a")) == (3, None)
    assert (parts.stated(Differs(), "a"), parts.stated(Differs(), "b")) == (1, None)


def test_heads_lie_where_the_layout_says() -> None:
    n_q, n_kv, d = 4, 2, 3
    q, k, v = (torch.randn(1, 5, n, d) for n in (n_q, n_kv, n_kv))
    flat = [rearrange(x, "b p h d -> b p (h d)") for x in (q, k, v)]
    grouped = torch.cat([rearrange(q, "b p (kv g) d -> b p kv g d", kv=n_kv), k[:, :, :, None], v[:, :, :, None]], 3)
    layouts = {
        "concat": [torch.cat(flat, -1)] * 3,
        "grouped": [rearrange(grouped, "b p kv s d -> b p (kv s d)")] * 3,
        "alone": flat,
    }
    for layout, whole in layouts.items():
        for part, (y, want) in enumerate(zip(whole, (q, k, v), strict=True)):
            found = parts.cut(y, layout, part, n_q, n_kv)
            assert found is not None and torch.equal(found, want.transpose(1, 2)), (layout, part)
            back = parts.paste(y, found + 1, layout, part, n_q, n_kv)
            again = parts.cut(back, layout, part, n_q, n_kv)
            assert again is not None and torch.equal(again, found + 1) and int((back != y).sum()) == want.numel()
    for layout, y in (("alone", q), ("heads_first", q.transpose(1, 2))):
        found = parts.cut(y, layout, 0, n_q, n_kv)
        assert found is not None and torch.equal(found, q.transpose(1, 2))
        assert torch.equal(parts.paste(y, found * 2, layout, 0, n_q, n_kv), y * 2)
        assert parts.cut(y, layout, 1, n_q, n_kv) is None, "as many heads as keys have"
    assert parts.head_index("concat", 0, 4, 2, 9) is None and parts.head_index("alone", 0, 4, 2, 9) is None
    assert parts.head_index("heads_first", 0, 4, 2, 8) is None and parts.cut(flat[0][0], "alone", 0, 4, 2) is None


def test_hidden_states_are_found_however_they_are_passed() -> None:
    x = torch.zeros(1)
    assert parts.first_tensor(((x, 1), 2)) is x and parts.first_tensor([]) is None and parts.first_tensor(1) is None
    assert parts.hidden_in((x,), {"hidden_states": 1}) is x and parts.hidden_in((), {"hidden_states": x}) is x
    assert parts.hidden_in((), {}) is None
    for name in ("out_features", "nf", "outfeatures"):
        assert width_of(SimpleNamespace(**{name: 7})) == 7  # type: ignore[arg-type]
    assert width_of(SimpleNamespace(out_features="7")) is None  # type: ignore[arg-type]
    listed = torch.nn.ModuleList(torch.nn.Sequential(torch.nn.Linear(2, 2)) for _ in range(2))
    assert _experts(torch.nn.Sequential(torch.nn.Linear(2, 2), listed)) is listed
    assert _experts(torch.nn.Sequential(torch.nn.ModuleList(listed[:1]))) is None


def test_every_configuration_that_names_an_attention_is_found_once() -> None:
    deep, of_module = SimpleNamespace(), SimpleNamespace(_attn_implementation="sdpa")
    text = SimpleNamespace(sub_configs=("deep", "none"), deep=deep, none=None)
    whole = SimpleNamespace(sub_configs=("text",), text=text, get_text_config=lambda decoder: text)
    modules = [*(SimpleNamespace(config=c) for c in (of_module, text, 3)), SimpleNamespace()]
    model: Any = SimpleNamespace(config=whole, modules=lambda: modules)
    found = parts.attention_configs(model)
    assert len(found) == 4 and {id(c) for c in found} == {id(c) for c in (whole, text, of_module, deep)}


def test_modules_in_training_mode_matter_where_they_drop_something() -> None:
    model = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Dropout(0.0), torch.nn.Dropout(0.5)).eval()
    model[0].train()
    model[1].train()
    parts.check_eval(model)  # type: ignore[arg-type]
    model[2].train()
    with pytest.raises(ModelError, match=r"Sequential: 2 is in training mode"):
        parts.check_eval(model)  # type: ignore[arg-type]
    with pytest.raises(ModelError, match=r"Sequential is in training mode"):
        parts.check_eval(torch.nn.Sequential())  # type: ignore[arg-type]


# Caches, positions, masks


def test_a_private_cache_grows_alone_and_unknown_kinds_of_layers_are_copied() -> None:
    past: Any = DynamicCache()
    past.update(torch.ones(1, 2, 3, 4), torch.ones(1, 2, 3, 4), 0)
    twin: Any = private_cache(past)
    assert twin.layers[0].keys is past.layers[0].keys, "shared where nothing is written into it"
    twin.update(torch.ones(1, 2, 1, 4), torch.ones(1, 2, 1, 4), 0)
    assert (twin.get_seq_length(), past.get_seq_length()) == (4, 3)

    class Writes(type(past.layers[0])):  # type: ignore[misc]
        def update(self, keys: Any, values: Any, *args: Any, **kwargs: Any) -> Any:
            self.keys.fill_(5)
            return self.keys, self.values

    past.layers[0].__class__ = Writes
    other: Any = private_cache(past)
    other.update(torch.zeros(1, 2, 1, 4), torch.zeros(1, 2, 1, 4), 0)
    assert past.layers[0].keys.max() == 1 and other.layers[0].keys.min() == 5


def test_positions_count_real_tokens() -> None:
    ids, mask = torch.zeros(2, 3, dtype=torch.long), torch.tensor([[0, 0, 1, 1, 1], [1, 1, 1, 1, 0]])
    assert position_ids(ids, None, 4, None).tolist() == [[4, 5, 6]] * 2
    assert position_ids(ids, mask, 2, None).tolist() == [[0, 1, 2], [2, 3, 3]]
    assert position_ids(ids, None, 4, 7).max() == 6
    with pytest.raises(ModelError, match="sequence of 7 tokens: the model's context holds 6"):
        position_ids(ids, None, 4, 6)


@pytest.mark.parametrize(
    ("row", "pad", "bos", "refused"),
    [([0, 5], 0, 1, True), ([0, 5], 0, 0, False), ([0, 0, 5], 0, 0, True), ([5, 0], 0, 1, False), ([0, 5], None, 1, False)],
)  # fmt: skip
def test_padding_in_front_is_text_only_where_texts_begin_with_it(
    row: list[int], pad: int | None, bos: int, refused: bool
) -> None:
    tokenizer = SimpleNamespace(pad_token_id=pad, bos_token_id=bos, eos_token_id=9)
    ids = torch.tensor([[5] * len(row), row])
    if refused:
        with pytest.raises(ModelError, match="row 1 begins with"):
            check_unmasked(ids, tokenizer)
    else:
        check_unmasked(ids, tokenizer)


def test_masses_are_those_of_a_written_out_softmax() -> None:
    g = torch.Generator().manual_seed(0)
    q, k = (
        torch.randn(4, 5, 8, generator=g, dtype=torch.float64),
        torch.randn(2, 7, 8, generator=g, dtype=torch.float64),
    )
    window = Window(3, 7, ((0, 2), (1, 5), (6, 9)))
    sinks = torch.randn(4, generator=g, dtype=torch.float64)
    for softcap, own, width in ((None, None, None), (2.0, None, None), (None, sinks, None), (None, None, 3)):
        found = _masses(q, k, None, window, {"scaling": 0.3, "softcap": softcap, "sinks": own, "window": width})
        for h in range(4):
            for i, row in enumerate(range(3, 7)):
                scores = q[h, row - 2] @ k[h // 2].T * 0.3
                scores = scores if softcap is None else softcap * torch.tanh(scores / softcap)
                j = torch.arange(7)
                seen = (j <= row) & (j > row - (width or 99))
                e = scores.exp() * seen
                total = e.sum() + (own[h].exp() if own is not None else 0)
                want = [float(e[a:b].sum() / total) for a, b in window.regions]
                assert found[:, h, i].tolist() == pytest.approx(want)


# Rows


def test_rows_attend_with_the_usual_scale_where_the_call_states_none() -> None:
    q, k, v = (torch.randn(1, 2, n, 8, generator=torch.Generator().manual_seed(n)) for n in (3, 5, 6))
    v = v[:, :, :5]
    want = torch.nn.functional.scaled_dot_product_attention(q, k, v)
    for given in ({}, {"scaling": 8**-0.5}):
        call: Any = SimpleNamespace(query=q, key=k, kwargs=given)
        found = _attend(call, (k, v), torch.ones(1, 5, dtype=torch.bool), [], None)
        torch.testing.assert_close(rearrange(found, "query row head d -> query head row d"), want)


def test_a_mask_is_that_of_the_sequence_or_of_all() -> None:
    masks = torch.arange(2 * 3 * 3).view(2, 1, 3, 3)
    for b in (0, 1):
        assert torch.equal(_of_sample(masks, b), masks[b]) and torch.equal(_of_sample(masks[:1], b), masks[0])  # type: ignore[arg-type]
    assert _of_sample(None, 1) is None
    with pytest.raises(ModelError, match=r"shape \(1, 3, 3\)"):
        _of_sample(masks[0], 0)


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


# Parameters, precision


def test_parameters_need_gradients_again_where_they_did_before() -> None:
    model = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Linear(2, 2).requires_grad_(False))
    with pytest.raises(ValueError, match="inside"), frozen(model):
        assert not any(p.requires_grad for p in model.parameters())
        raise ValueError("inside")
    assert [p.requires_grad for p in model.parameters()] == [True, True, False, False]


def test_only_float64_is_wider_than_float32() -> None:
    assert [_wide(torch.zeros(1, dtype=d)).dtype for d in (torch.float64, torch.float32, torch.bfloat16)] == [
        torch.float64, torch.float32, torch.float32,
    ]  # fmt: skip


# Lengths, budgets, progress


def _model(**config: Any) -> Any:
    text = _config(**config)
    return SimpleNamespace(
        config=SimpleNamespace(get_text_config=lambda decoder=None: text if decoder else SimpleNamespace())
    )


LONG: dict[str, Any] = {"rope_parameters": {"rope_type": "longrope", "original_max_position_embeddings": 8}}


def test_lengths_from_which_models_compute_otherwise() -> None:
    assert length_limits.limits(_model()) == [] and length_limits.limits(_model(**LONG)) == [8]
    nested = {"rope_parameters": {"full": LONG["rope_parameters"], "other": {"rope_type": "default"}}}
    assert length_limits.rotary_limits(_model(**nested)) == [8]
    assert length_limits.limits(_model(layer_types=["chunked_attention"], attention_chunk_size=5)) == [5]
    assert length_limits.limits(_model(attn_temperature_tuning=True, floor_scale=7)) == [6]
    assert length_limits.keys_chosen(_config()) is None and length_limits.keys_chosen(_config(index_topk=4)) == 4
    assert length_limits.keys_chosen(_config(index_topk_blocks=3, index_block_size=5, index_topk=4)) == 15
    assert length_limits.computed_alike(_model(**LONG), [9, 8, 1, 20]) == [[1, 2], [0, 3]]
    assert length_limits.computed_alike(_model(index_topk=4), [9, 4, 1, 9, 5]) == [[1, 2], [4], [0, 3]]
    length_limits.check_suffix(_model(**LONG), 2, 7)
    length_limits.check_suffix(_model(**LONG), 8, 20)
    with pytest.raises(ModelError, match="texts of 8 to 9 tokens"):
        length_limits.check_suffix(_model(**LONG), 7, 8)


def test_batches_on_both_sides_of_a_length_are_refused() -> None:
    def check(lengths: list[int], width: int, past: int = 0, mask: bool = True, **config: Any) -> None:
        rows = torch.tensor([[int(i < n) for i in range(width + past)] for n in lengths])
        length_limits.check_batch(
            _model(**config), torch.zeros(len(lengths), width, dtype=torch.long), rows if mask else None, past
        )

    check([8, 3], 8, **LONG)
    check([9, 12], 12, **LONG)
    check([9], 9, mask=False, **LONG)
    check([8, 8], 8, mask=False, **LONG)
    check([3, 9], 9, mask=True)
    check([4, 4], 4, mask=False, index_topk=4)
    check([5, 5], 5, index_topk=4)
    for wrong, said in (
        (([8, 9], 9, 0, True), "texts of 8 to 9"), (([9, 9], 9, 0, False), "without a mask"),
        (([10, 10], 4, 6, True), "run without past"),
    ):  # fmt: skip
        with pytest.raises(ModelError, match=said):
            check(*wrong, **LONG)
    for lengths, mask in (([5, 5], False), ([5, 4], True)):
        with pytest.raises(ModelError, match="more than 4 keys"):
            check(lengths, 5, mask=mask, index_topk=4)


def test_budgets_are_shares_of_the_memory_that_one_row_or_token_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    lm: Any = SimpleNamespace(anatomy=_anatomy(), dtype=torch.float16, device=torch.device("cuda"), model=_model())
    monkeypatch.setattr(budget, "_share", lambda device, least: 10_000_000)
    layer = 14 * 32 + 5 * 56 + 3 * 4 * 50
    for graph, decoded, layers in ((True, 0, 3), (False, 0, 2), (False, 6, 2)):
        one = 2 * (layer * layers + 4 * decoded * 3 * 2 * 8) + 16 * 97
        assert budget.row_budget(lm, 7, 50, graph, decoded=decoded) == 10_000_000 // (one * 7)
    kept = 2 * 2 * 8
    for decoded, length_of_cache in ((0, 50), (6, 3 * 56)):
        one = 2 * (5 * (16 * 32 + 4 * 56 + 8 * 50 + kept * 3) + 2 * kept * length_of_cache) + 4 * 97
        assert budget.suffix_rows(lm, 50, 5, decoded=decoded) == 10_000_000 // one
    lm.device = torch.device("cpu")
    assert budget.suffix_rows(lm, 50, 5) == budget.SUFFIX_TOKENS // 5 < 10_000_000 // one
    assert budget.suffix_rows(lm, 1, 300) == budget.SUFFIX_TOKENS // 300
    token = 2 * (3 * kept + 16 * 32 + 4 * 56)
    assert budget.prompt_tokens(lm, limit=4 * token * 10 + 3) == 10 and budget.prompt_tokens(lm, limit=1) == 1
    assert budget.prompt_tokens(lm, limit=10**12) == budget.MAX_TOKENS
    monkeypatch.setattr(budget, "prompt_tokens", lambda lm: 20)
    assert [*budget.in_prefills(lm, [10, 3, 30, 9, 4])] == [[2], [0, 3], [4, 1]]


def test_progress_never_runs_backwards_or_over() -> None:
    seen: list[float] = []

    class Bar:
        def __enter__(self) -> Any:
            return seen.append

        def __exit__(self, *args: object) -> None:
            seen.append(-1)

    tick(5)
    with stage(lambda title, total: Bar(), "t", 4):  # type: ignore[arg-type, return-value]
        tick(1)
        reached(3)
        reached(2)
        tick(0.5)
        tick(9)
    reached(9)
    assert seen == [1, 2, 0.5, 0.5, -1]


def test_sizes_of_layers_that_differ_come_from_the_layers() -> None:
    layers = (
        SimpleNamespace(heads=(2, 1), n_neurons=10),
        SimpleNamespace(heads=(0, 0), n_neurons=0),
        SimpleNamespace(heads=(8, 0), n_neurons=30),
    )
    found = _anatomy(layers=layers)
    assert [found.heads(i) for i in range(3)] == [(2, 1), (4, 2), (8, 2)]
    assert (found.n_layers, found.n_neurons, found.all_neurons) == (3, 30, 70)
    assert (_anatomy(n_experts=4).n_neurons, _anatomy().n_neurons, _anatomy(n_experts=4).all_neurons) == (224, 56, 672)
