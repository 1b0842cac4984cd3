"""Rows of edits against literal forward passes, one per row."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pytest
import torch
from shapes import unchecked
from torch import Tensor

from composcope.errors import InputError, ModelError
from composcope.hooks import Model, Site, edits, load_model
from composcope.hooks.edits import Edits, Knockout, Patch, Skip, back_patches, knockouts, noise_like, residual
from composcope.hooks.generation import room
from composcope.hooks.interchange import _check_cache, continued, early_exits, forced, groups, interchange, states
from composcope.hooks.rows import prefill
from composcope.hooks.suffix import suffix

from ..tiny_models import CONFIGS, tiny

IDS = [5 + (7 * i) % 85 for i in range(14)]
KINDS = ("resid_pre", "resid_mid", "resid_post", "attn_out", "mlp_out", "head", "neuron", "q", "k", "v")


def literal(lm: Model, ids: list[int], row: Edits, edited: int | None = None) -> Tensor:
    """Logits ``pos vocab`` of one forward pass with hooks, under one row of edits."""
    edits: dict[Site, Callable[[Tensor], Tensor]] = {}

    def then(site: Site, fn: Callable[[Tensor], Tensor]) -> None:
        before = edits.get(site)
        edits[site] = fn if before is None else lambda x: fn(before(x))

    for edit in sorted(row, key=lambda e: isinstance(e, Patch)):  # a patch holds where a block is skipped, too
        if isinstance(edit, Patch):
            then(edit.site, _patched(edit))
        elif isinstance(edit, Skip) and edit.head is not None:
            then(Site(edit.layer, "head"), _without(edit, lm.anatomy.heads(edit.layer)[0]))
        elif isinstance(edit, Skip):
            seen: dict[str, Tensor] = {}

            def note(x: Tensor, seen: dict[str, Tensor] = seen) -> Tensor:
                seen["x"] = x.clone()
                return x

            def undo(x: Tensor, seen: dict[str, Tensor] = seen, at: int = edit.position) -> Tensor:
                x[:, at] = seen["x"][:, at]
                return x

            then(Site(edit.layer, "resid_pre"), note)
            then(Site(edit.layer, "resid_post"), undo)
        else:
            then(Site(edit.layer, "pattern"), _blind(edit))
    with torch.no_grad():
        return lm.run(torch.tensor([ids]), edit=edits).logits[0]


def _patched(edit: Patch) -> Callable[[Tensor], Tensor]:
    def fn(x: Tensor) -> Tensor:
        y = x.transpose(1, 2).flatten(2) if edit.site.kind in ("q", "k", "v") else x
        y[:, edit.position] = edit.value + (y[:, edit.position] if edit.add else 0)
        return y.unflatten(2, (x.shape[1], -1)).transpose(1, 2) if edit.site.kind in ("q", "k", "v") else y

    return fn


def _without(edit: Skip, n: int) -> Callable[[Tensor], Tensor]:
    def fn(x: Tensor) -> Tensor:
        d = x.shape[-1] // n
        x[:, edit.position, edit.head * d : (edit.head + 1) * d] = 0  # type: ignore[operator]
        return x

    return fn


def _blind(edit: Knockout) -> Callable[[Tensor], Tensor]:
    def fn(x: Tensor) -> Tensor:
        x[:, :, edit.query] /= 1 - x[:, :, edit.query, edit.key, None]  # a sink, too, takes its share of the rest
        x[:, :, edit.query, edit.key] = 0
        return x

    return fn


def rows_for(lm: Model, kinds: tuple[str, ...] = KINDS) -> list[Edits]:
    """Rows of every kind, at several layers and positions, alone and together."""
    generator = torch.Generator().manual_seed(1)
    n = lm.anatomy.n_layers
    sites = [Site((i + more) % n, kind) for i, kind in enumerate(kinds) for more in range(3 if len(kinds) < 4 else 1)]  # type: ignore[arg-type]
    rows: list[Edits] = [[]]
    for i, site in enumerate(sites):
        try:
            width = _width(lm, site)
        except ModelError:
            continue  # this architecture has no such activation
        value = torch.randn(width, generator=generator)
        rows.append([Patch(site, (3, 9, 13)[i % 3], value, add=i % 2 == 0)])
    d = lm.anatomy.d_model
    value = torch.randn(4, d, generator=generator)
    last = lm.anatomy.n_layers - 1
    rows += [[Skip(layer, p) for p in some] for layer, some in ((0, [4]), (last, [8, 13]))]
    rows += [
        [Skip(0, 6), Skip(1, 6), Skip(2, 6)],
        [Skip(1, 5, head=2)],
        [Skip(last, 13, head=0), Skip(last, 13, head=1)],
    ]
    rows += [
        [Patch(residual(-1), 2, value[0]), Patch(residual(1), 7, value[1], add=True)],
        [Patch(residual(0), 4, value[2]), Skip(1, 4), Patch(residual(1), 9, value[3])],
        [Patch(residual(0), 4, value[2]), Patch(residual(0), 4, value[3], add=True)],
    ]
    return rows


def _width(lm: Model, site: Site) -> int:
    x = lm.run(torch.tensor([IDS[:2]]), read=[site]).acts[site]
    return x.shape[1] * x.shape[3] if site.kind in ("q", "k", "v") else x.shape[-1]


@pytest.mark.parametrize("name", CONFIGS)
def test_rows_predict_what_one_forward_pass_per_row_does(name: str) -> None:
    lm = load_model(tiny(name))
    rows, read = rows_for(lm), [2, 4, 9, 13]
    got = interchange(lm, IDS, rows, read, tokens=range(97), targets=IDS[:4], top=3)
    assert got.log_probs is not None and got.target_log_probs is not None
    for row, found, top, targets in zip(rows, got.log_probs, got.top_tokens, got.target_log_probs, strict=True):
        expected = literal(lm, IDS, row).log_softmax(-1)[read]
        assert torch.allclose(found, expected, atol=2e-4), row
        assert torch.equal(found.argmax(-1), top[:, 0])
        assert torch.equal(targets, found[range(4), IDS[:4]])
    assert torch.allclose(got.top_log_probs, got.log_probs.topk(3, -1).values, atol=1e-5)
    assert torch.equal(got.unchanged.log_probs, got.log_probs[0])  # type: ignore[arg-type]
    early = interchange(lm, IDS, rows, read[:2], tokens=range(97)).log_probs  # rows go on behind what is read
    assert early is not None and torch.allclose(early, got.log_probs[:, :2], atol=2e-5)
    changed = (got.log_probs[1:] - got.log_probs[0]).abs().flatten(1).amax(1) > 1e-3
    assert float(changed.float().mean()) > 0.6  # some rows change the last block where nothing is read


@pytest.mark.parametrize("name", ["llama", "qwen3", "mistral", "gemma2", "gemma3", "gpt2", "phi3", "gpt_oss"])
def test_a_knocked_out_key_is_not_seen(name: str) -> None:
    lm = load_model(tiny(name), backend="transformers")
    rows = [*knockouts([9, 13], [2, 7], [[0], [1, 2]]), [Knockout(1, 13, 12), Skip(2, 13)], *knockouts([5], [4], [[2]])]
    got = interchange(lm, IDS, rows, [5, 9, 13], tokens=range(97))
    assert got.log_probs is not None
    for row, found in zip(rows, got.log_probs, strict=True):
        assert torch.allclose(found, literal(lm, IDS, row).log_softmax(-1)[[5, 9, 13]], atol=5e-4), row


@pytest.mark.parametrize("name", CONFIGS)
def test_the_last_layer_exits_with_the_logits_of_the_model(name: str) -> None:
    lm = load_model(tiny(name))
    with torch.no_grad():
        run = lm.run(torch.tensor([IDS]), read=[residual(-1), residual(0)])
    exits = early_exits(lm, IDS, [3, 13])
    assert exits.shape == (lm.anatomy.n_layers + 1, 2, 97)
    assert torch.allclose(exits[-1], run.logits[0, [3, 13]], atol=1e-4)
    for i, site in enumerate((residual(-1), residual(0))):
        with torch.no_grad():  # a model without its later blocks: their outputs are replaced by this state
            last = Site(lm.anatomy.n_layers - 1, "resid_post")
            cut = lm.run(torch.tensor([IDS]), edit={last: lambda _, x=run.acts[site]: x}).logits[0, [3, 13]]
        assert torch.allclose(exits[i], cut, atol=1e-4)
    assert torch.allclose(early_exits(lm, IDS, [3], [9, 4], [1])[0, 0], exits[2, 0, [9, 4]], atol=1e-5)


@pytest.mark.parametrize("name", ["llama", "mistral", "gemma3", "gpt2", "qwen3_moe"])
def test_rows_continue_as_full_recomputation_does(name: str) -> None:
    lm = load_model(tiny(name))
    rows = [[], *rows_for(lm, ("resid_post", "mlp_out", "k"))[1:12], [Knockout(1, 13, 3), Knockout(2, 13, 3)], []]
    rows = [r for r in rows if not any(isinstance(e, Patch) and e.site.kind == "pattern" for e in r)]
    free = continued(lm, IDS, rows, 6, [])
    stops = [free[0][2], free[3][1]]
    for got, ends in ((free, []), (continued(lm, IDS, rows, 6, stops, max_rows=4), stops)):
        for row, tokens in zip(rows, got, strict=True):
            assert tokens == by_hand(lm, row, 6, ends)


def test_a_model_that_keeps_its_keys_compressed_says_that_edited_prompts_cannot_be_continued() -> None:
    lm = load_model(tiny("deepseek_v3"))
    rows = [[Skip(1, 5)]]
    found = interchange(lm, IDS, rows, [13], tokens=range(97)).log_probs
    assert found is not None
    assert torch.allclose(found[0, 0], literal(lm, IDS, rows[0])[-1].log_softmax(-1), atol=2e-4)
    with pytest.raises(ModelError, match="DeepseekV3ForCausalLM: its cache"):
        continued(lm, IDS, rows, 3, [])
    lm = load_model(tiny("llama"))
    prefix = prefill(lm, [IDS])
    _check_cache(lm, prefix)
    for name, values in (("keys", prefix.keys), ("values", prefix.values)):
        for fewer in (lambda x: x[..., :-1], lambda x: x[:, :1]):  # narrower, or of fewer heads
            with pytest.raises(ModelError, match="LlamaForCausalLM: its cache"):
                _check_cache(lm, replace(prefix, **{name: (*values[:-1], fewer(values[-1]))}))


def test_no_tokens_may_be_asked_for() -> None:
    lm = load_model(tiny("llama"))
    found = interchange(lm, IDS, [[], []], [3, 7], tokens=[]).log_probs
    assert found is not None and found.shape == (2, 2, 0)


def by_hand(lm: Model, row: Edits, new: int, stops: list[int]) -> list[int]:
    """Greedy tokens, the whole sequence computed again for every one."""
    tokens: list[int] = []
    while len(tokens) < new and not (tokens and tokens[-1] in stops):
        tokens.append(int(literal(lm, [*IDS, *tokens], row)[-1].argmax()))
    return tokens


@pytest.mark.parametrize("name", ["llama", "gemma3", "gpt2"])
def test_forced_tokens_have_the_probabilities_of_literal_passes(name: str) -> None:
    lm = load_model(tiny(name))
    rows, said = rows_for(lm, ("resid_post", "attn_out"))[:9], [[7, 8, 9], [11]]
    for continuation, got in zip(said, forced(lm, IDS, said, rows), strict=True):
        for row, found in zip(rows, got, strict=True):
            logits = literal(lm, [*IDS, *continuation], row)[13 : 13 + len(continuation)].log_softmax(-1)
            assert torch.allclose(found, logits[range(len(continuation)), continuation], atol=2e-4)


def test_generation_applies_an_edit_to_the_prompt_and_to_every_new_token() -> None:
    lm = load_model(tiny("llama"))
    push = torch.randn(lm.anatomy.d_model, generator=torch.Generator().manual_seed(2))
    edit = {Site(1, "resid_post"): lambda x: x + push}
    prompts = [IDS, IDS[:6], [*IDS[:5], 9]]
    for found, prompt in zip(lm.generate(prompts, 5, edit, []), prompts, strict=True):
        ids = list(prompt)
        for token in found:
            with torch.no_grad():
                assert token == int(lm.run(torch.tensor([ids]), edit=edit).logits[0, -1].argmax())
            ids.append(token)
    plain = lm.generate([IDS], 5, stop_ids=[])
    assert plain == continued(lm, IDS, [[]], 5, [])
    assert plain != lm.generate([IDS], 5, edit, [])
    assert lm.generate([IDS], 5, stop_ids=[plain[0][0]]) == [plain[0][:1]]
    stops: list[Any] = [plain[0][0], np.int64(plain[0][0])]
    for one in stops:
        assert lm.generate([IDS], 5, stop_ids=one) == continued(lm, IDS, [[]], 5, one) == [plain[0][:1]]
    each = {Site(1, "resid_post"): lambda x: x + torch.stack([push, -push])[:, None]}  # one value per sequence
    pair = [IDS, [*IDS[:-1], 9]]
    one, other = lm.generate(pair, 5, each, [])
    assert one[0] not in other and lm.generate(pair, 5, each, [one[0]]) == [one[:1], other]


def test_states_of_unequal_prompts_are_those_of_single_passes() -> None:
    lm = load_model(tiny("gemma3"))
    prompts, where = [IDS[:5], IDS, IDS[:9]], [[2], [13, 0, 4], [8]]
    for prompt, positions, got in zip(prompts, where, states(lm, prompts, where), strict=True):
        sites = [residual(layer) for layer in range(-1, lm.anatomy.n_layers)]
        with torch.no_grad():
            acts = lm.run(torch.tensor([prompt]), read=sites).acts
        assert torch.allclose(got, torch.stack([acts[s][0, positions] for s in sites]), atol=1e-5)


def test_a_later_state_goes_in_earlier() -> None:
    lm = load_model(tiny("llama"))
    (own,) = states(lm, [IDS], [[6, 9]])
    rows = back_patches(own, [6, 9], [(2, 0), (1, -1)])
    assert [[(e.site, e.position) for e in r if isinstance(e, Patch)] for r in rows] == [
        [(Site(0, "resid_post"), 6), (Site(0, "resid_post"), 9)], [(Site(0, "resid_pre"), 6), (Site(0, "resid_pre"), 9)]
    ]  # fmt: skip
    assert [[torch.equal(e.value, own[late + 1, i]) for i, e in enumerate(r) if isinstance(e, Patch)]
            for late, r in zip((2, 1), rows, strict=True)] == [[True] * 2] * 2  # fmt: skip
    donor = own + torch.randn(own.shape)
    noise, again, other = (noise_like(own, donor, seed) for seed in (0, 0, 1))
    assert torch.allclose((noise - own).norm(dim=-1), (donor - own).norm(dim=-1))
    assert torch.equal(noise, again) and not torch.allclose(noise, other) and not torch.allclose(noise, donor)
    for wrong in ((0, 0), (1, 1), (0, 1)):
        with pytest.raises(InputError, match="late"):
            back_patches(own, [6, 9], [wrong])


def test_rows_that_begin_late_do_not_wait_for_early_ones() -> None:
    def patch(layer: int, position: int) -> Edits:
        return [Patch(residual(layer), position, torch.zeros(1))]

    rows = [patch(2, 50), [], patch(0, 50), patch(1, 3), patch(4, 5), *[patch(3, 9)] * 8]
    found = list(groups(rows, 60, lambda _: 3))
    assert found[0] == ([3, 4], 3)  # two positions of one more row cost less than a pass of their own
    assert [start for _, start in found] == [3, 9, 9, 9, 50]
    assert found[-1] == ([2, 0], 50)  # neighbours by layer
    assert sorted(i for some, _ in found for i in some) == [0, *range(2, 13)]


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ([Patch(Site(3, "resid_post"), 0, torch.zeros(32))], "3 layers"),
        ([Patch(Site(-1, "resid_pre"), 0, torch.zeros(32))], "3 layers"),
        ([Patch(residual(1), 14, torch.zeros(32))], "position 14"),
        ([Patch(residual(1), 3, torch.zeros(31))], r"\(31,\).*need 32"),
        ([Patch(residual(1), 3, torch.full((32,), torch.nan))], "NaN"),
        ([Patch(residual(1), 3, torch.full((32,), torch.inf))], "NaN or infinite"),
        ([Patch(Site(1, "neuron"), 3, torch.zeros(9))], "56"),
        ([Patch(Site(1, "pattern"), 3, torch.zeros(9))], "pattern"),
        ([Patch(residual(1), 3, torch.zeros(32)), Patch(Site(2, "resid_pre"), 3, torch.ones(32))], "twice"),
        ([Skip(3, 4)], "layer 3"),
        ([Skip(-1, 0)], "layer -1"),
        ([Skip(0, -1)], "position -1"),
        ([Skip(0, 14)], "position 14"),
        ([Skip(1, 4, head=4)], "head 4"),
        ([Skip(0, 0, head=-1)], "head -1"),
        ([Knockout(3, 2, 1)], "layer 3"),
        ([Knockout(1, 4, 4)], "key 4.*before the query"),
        ([Knockout(0, 2, -1)], "before the query"),
        ([Knockout(0, 14, 0)], "position 14"),
        (["x"], "str"),
        (Skip(0, 4), "row 1: Skip; a row is a list"),
        ([Skip(1.5, 4)], "Skip with layer 1.5"),  # type: ignore[arg-type]
        ([Skip(1, 4, head=0.5)], "Skip with head 0.5"),  # type: ignore[arg-type]
        ([Knockout(1, 4, 2.5)], "Knockout with key 2.5"),  # type: ignore[arg-type]
        ([Patch(residual(1), 3.5, torch.zeros(32))], "Patch with position 3.5"),  # type: ignore[arg-type]
        ("edit", "a row is a list"),
    ],
)
def test_edits_that_cannot_be_made_are_named(row: Any, said: str) -> None:
    with pytest.raises((InputError, ModelError), match=said):
        interchange(load_model(tiny("llama")), IDS, [[], row], [13])


def test_a_row_whose_states_overflow_is_refused_by_its_number() -> None:
    lm = load_model(tiny("llama"))
    huge = torch.full((lm.anatomy.d_model,), 3e38)
    rows = [[Skip(0, 4)], [Patch(residual(0), 4, huge), Patch(residual(0), 4, huge, add=True)]]
    with pytest.raises(ModelError, match=r"row 1 of edits gives NaN or infinite"):
        interchange(lm, IDS, rows, [13])


def test_a_continuation_may_fill_the_context_and_no_more() -> None:
    lm, prompt = load_model(tiny("llama")), [5 + i for i in range(62)]
    assert len(lm.generate([prompt], 3, stop_ids=[])[0]) == 3 == room(64, [prompt, prompt[:9]], 9)
    assert [room(*x) for x in ((None, [prompt], 9), (64, [prompt], 2), (60, [prompt], 9))] == [9, 2, 1]
    with pytest.raises(InputError, match="62 prompt and 4 new tokens"):
        lm.generate([prompt], 4, stop_ids=[])


def test_only_stops_that_are_given_end_a_continuation_and_none_if_there_are_none() -> None:
    lm = load_model(tiny("llama"))
    (full,) = continued(lm, IDS, [[]], 6, stop_ids=())
    lm.model.generation_config.eos_token_id = full[2]  # type: ignore[union-attr]
    assert len(full) == 6 and continued(lm, IDS, [[]], 6, stop_ids=[]) == [full]
    assert continued(lm, IDS, [[]], 6) == [full[: full.index(full[2]) + 1]]
    assert continued(lm, IDS, [[]], 6, stop_ids=[full[1]]) == [full[: full.index(full[1]) + 1]]


@pytest.mark.parametrize("act", [partial(interchange, read=[13]), partial(continued, max_new_tokens=2)])
def test_fewer_rows_at_once_are_said_in_the_notes(act: Callable[..., Any]) -> None:
    lm = load_model(tiny("llama"))
    rows, notes = [[Skip(1, i)] for i in range(6)], list[str]()

    def full(_module: Any, args: Any) -> None:
        if args[0].shape[0] > 4:
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2 GiB")

    want = act(lm, IDS, rows)
    with lm.anatomy.layers[2].block.register_forward_pre_hook(full):
        got = act(lm, IDS, rows, notes=notes)
    assert notes and all("out of memory" in note for note in notes)
    assert got == want if isinstance(want, list) else torch.allclose(got.top_log_probs, want.top_log_probs, atol=1e-5)


WIDE = torch.zeros(32)


def test_edits_at_the_limits_are_made_and_a_place_is_replaced_once() -> None:
    rows: list[Edits] = [
        [Patch(Site(2, "resid_post"), 4, WIDE), Skip(2, 4, head=3), Knockout(2, 4, 3), Skip(0, 0), Knockout(0, 1, 0)],
        [Patch(Site(0, "neuron"), 0, WIDE[:5]), Patch(Site(0, "q"), 0, WIDE[:7])],
        [Patch(Site(0, "resid_post"), 0, WIDE), Patch(Site(1, "resid_pre"), 1, WIDE)],
        [Patch(Site(0, "resid_post"), 0, WIDE), Patch(Site(1, "resid_pre"), 0, WIDE, add=True)],
    ]  # fmt: skip
    anatomy = load_model(tiny("llama")).anatomy
    edits.check_rows(rows, anatomy, 5)
    for twice in (Site(0, "resid_post"), Site(1, "resid_pre")):
        with pytest.raises(InputError, match=r"row 0: .*replaced twice"):
            edits.check_rows([[Patch(Site(0, "resid_post"), 0, WIDE), Patch(twice, 0, WIDE)]], anatomy, 5)
    assert [edits.first_position(r) for r in rows] == [0, 0, 0, 0]
    assert edits.first_position(rows[0][:3]) == 4 and edits.first_position([Knockout(0, 3, 1), Skip(1, 2)]) == 2
    assert [edits.entry(e) for e in rows[0]] == [3, 2, 2, 0, 0] and edits.first_cut(rows[0][:3]) == 2
    assert edits.entry(Patch(Site(1, "resid_pre"), 0, WIDE)) == 1 == edits.entry(Patch(Site(1, "mlp_out"), 0, WIDE))
    assert [(i, type(e).__name__) for i, e in edits.edits_of(rows[1:3])] == [(0, "Patch")] * 2 + [(1, "Patch")] * 2


def test_rows_of_knockouts_and_skips_by_layer_and_position() -> None:
    assert knockouts([2, 4], [1, 2, 3], [[0, 1], [2]]) == [
        [Knockout(layer, q, k) for layer in group for q, k in ((2, 1), (4, 1), (4, 2), (4, 3))]
        for group in ([0, 1], [2])
    ]
    assert edits.skips([1, 2], [0, 2]) == [[Skip(0, 1), Skip(0, 2)], [Skip(2, 1), Skip(2, 2)]]


@unchecked()
@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda lm: states(lm, [IDS], []), "1 prompts, but positions for 0"),
        (lambda lm: states(lm, [IDS, IDS], [[0], []]), "prompt 1: positions []"),
        (lambda lm: states(lm, [IDS], [[0, 14]]), "prompt 0: positions [0, 14]; give at least one in 0-13"),
        (lambda lm: states(lm, [IDS], [[-1]]), "prompt 0: positions [-1]"),
        (lambda lm: interchange(lm, IDS, [[]], []), "read []: give at least one position in 0-13"),
        (lambda lm: interchange(lm, [], [[]], [0]), "a prompt is empty"),
        (
            lambda lm: interchange(lm, IDS, [[Patch(residual(1), 3, [0.0] * 32)]], [13]),  # type: ignore[arg-type]
            "row 0: value of type list for",
        ),
        (lambda lm: interchange(lm, IDS, [[]], [13], top=-1), "top is -1"),
        (lambda lm: prefill(lm, [IDS, IDS[:3]], [(1, 3)]), "query at position 3 of prompt 1"),
        (lambda lm: prefill(lm, [IDS], [(0, -1)]), "query at position -1 of prompt 0"),
        (lambda lm: early_exits(lm, IDS, [3], [-1]), "token id -1: the head has 97 entries"),
        (lambda lm: edits.back_patches(torch.zeros(4, 1, 32), [3], [(3, 1)]), "of layers -1 to 2"),
        (lambda lm: edits.back_patches(torch.zeros(4, 1, 32), [3], [(2, -2)]), "of layers -1 to 2"),
        (lambda lm: edits.back_patches(torch.zeros(4, 2, 32), [3], [(2, 1)]), "1 positions for states of 2"),
        (lambda lm: interchange(lm, IDS, [[]], [0, 14]), "read [0, 14]"),
        (lambda lm: interchange(lm, IDS, [[]], [-1]), "read [-1]"),
        (lambda lm: interchange(lm, IDS, [[]], [12, 13], targets=[1]), "1 targets for 2 positions"),
        (lambda lm: interchange(lm, IDS, [[]], [13], targets=[1, 2]), "2 targets for 1 positions"),
        (lambda lm: interchange(lm, IDS, [[]], [13], targets=[97]), "token id 97: the model's vocabulary has 97"),
        (lambda lm: interchange(lm, IDS, [[]], [13], tokens=[0, -1]), "token id -1"),
        (lambda lm: forced(lm, IDS, [[1], []], [[]]), "continuation 1: no token"),
        (lambda lm: continued(lm, IDS, [[]], 0), "max_new_tokens=0; give a whole number of at least 1"),
        (lambda lm: lm.generate([IDS], 0), "max_new_tokens=0; give a whole number of at least 1"),
        (lambda lm: lm.generate([IDS], 1.5), "max_new_tokens=1.5; give a whole number"),  # type: ignore[arg-type]
        (
            lambda lm: suffix(lm, IDS, prefill(lm, [IDS]), [[Skip(2, 4)], [Skip(0, 4)]], start=4, stop=14),
            "in the order",
        ),
        (lambda lm: interchange(lm, IDS, [[Skip(0, 4)]], [13], max_rows=0), "max_rows is 0; give at least 1"),
    ],
)
def test_places_tokens_and_rows_that_are_not_there_are_refused(call: Callable[[Model], Any], said: str) -> None:
    with pytest.raises(InputError, match=re.escape(said)):
        call(load_model(tiny("llama")))


def test_the_first_and_the_last_place_and_token_are_taken() -> None:
    lm = load_model(tiny("llama"))
    found = interchange(lm, IDS, [[], [Skip(0, 0)]], [0, 13], tokens=[0, 96], targets=[96, 0], max_rows=1)
    assert found.log_probs is not None and found.target_log_probs is not None
    assert found.log_probs.shape == (2, 2, 2) and found.target_log_probs.shape == (2, 2)
    assert torch.equal(found.log_probs[:, 0, 1], found.target_log_probs[:, 0])
    assert torch.equal(found.log_probs[:, 1, 0], found.target_log_probs[:, 1])
    assert [x.shape[:2] for x in states(lm, [IDS], [[0, 13]])] == [(4, 2)]
    with pytest.raises(ModelError, match="3 layers"):
        states(lm, [IDS], [[0]], [-2])


def test_rows_that_continue_are_as_many_as_their_new_tokens_allow(monkeypatch: pytest.MonkeyPatch) -> None:
    from composcope.hooks import interchange as module

    asked: list[dict[str, Any]] = []
    rows = module.suffix_rows
    monkeypatch.setattr(module, "suffix_rows", lambda *a, **k: (asked.append(k), rows(*a, **k))[1])
    lm = load_model(tiny("llama"))
    continued(lm, IDS, [[Skip(0, 4)]], 3, stop_ids=[])
    assert asked and all(k == {"decoded": 3} for k in asked)
    assert rows(lm, 14, 10, decoded=3) <= rows(lm, 14, 10)
