"""Attention masses and the capture pass: exactness, and a model that is afterwards what it was before."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
import torch
from shapes import unchecked
from tiny_models import CONFIGS, tiny
from transformers import PreTrainedModel

from composcope.errors import InputError, ModelError
from composcope.hooks import Model, load_model
from composcope.hooks import capture as captures
from composcope.hooks.attention import Call
from composcope.hooks.attention_masses import Window, _masses, _of_sample, _options, attention_masses
from composcope.hooks.capture import Request, _finite, capture, capture_all
from composcope.hooks.head import Head, head_of, vocabulary_statistics

IDS = np.random.default_rng(0).integers(3, 97, 18).tolist()


def _snapshot(model: torch.nn.Module) -> tuple[dict, list, list, str]:
    state = {k: v.clone() for k, v in model.state_dict().items()}
    hooks = [(n, len(m._forward_hooks), len(m._forward_pre_hooks)) for n, m in model.named_modules()]
    attention = [(n, m.config._attn_implementation) for n, m in model.named_modules() if isinstance(m, PreTrainedModel)]
    return state, hooks, attention, repr(model)


def _same(a: tuple, b: tuple) -> bool:
    return a[1:] == b[1:] and all(torch.equal(a[0][k], b[0][k]) for k in a[0])


def _full(lm: Model) -> list[Request]:
    return [Request(IDS, states=(0, 18), masses=Window(4, 18, ((0, 4), (4, 18))), hidden=(0, 18)), Request(IDS[:9])]


@pytest.mark.parametrize("name", list(CONFIGS))
def test_masses_of_arbitrary_regions_equal_the_eager_maps(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("composcope.hooks.attention_masses.ROW_CHUNK", 7)  # of 15 rows
    regions = ((0, 1), (1, 4), (2, 9), (9, 18))
    got = capture_all(load_model(tiny(name)), [Request(IDS, masses=Window(3, 18, regions)), Request(IDS[:5])])
    oracle = tiny(name, attn="eager")
    with torch.no_grad():
        maps = oracle(input_ids=torch.tensor([IDS]), output_attentions=True, use_cache=False).attentions
    for i, (a, b) in enumerate(regions):
        want = torch.stack([m[0, :, 3:, a:b].sum(-1) for m in maps])
        assert got[0].masses is not None
        torch.testing.assert_close(got[0].masses[i], want, atol=5e-6, rtol=0)
    assert got[1].masses is None


@pytest.mark.parametrize("name", ["llama", "gpt2", "gemma2", "mistral", "qwen3_moe"])
def test_the_model_is_unchanged_after_a_pass_and_its_outputs_too(name: str) -> None:
    lm = load_model(tiny(name))
    model, ids = lm.model, torch.tensor([IDS])
    before = _snapshot(model)
    with torch.no_grad():
        want = model(input_ids=ids).logits
        windows = [Window(0, 18, ((0, 18),))]
        with attention_masses(model, windows):
            inside = model(input_ids=ids).logits
    assert torch.equal(inside, want)
    capture_all(lm, _full(lm))
    assert _same(before, _snapshot(model))
    with torch.no_grad():
        assert torch.equal(model(input_ids=ids).logits, want)


@pytest.mark.parametrize("interruption", [RuntimeError, KeyboardInterrupt])
def test_the_model_is_unchanged_after_an_exception_in_the_middle(interruption: type[BaseException]) -> None:
    model = tiny("mistral")
    lm, before = load_model(model), _snapshot(model)

    def stop(*_: object) -> None:
        raise interruption("in the middle")

    handle = lm.anatomy.layers[1].block.register_forward_hook(stop)
    with pytest.raises(interruption):
        capture_all(lm, _full(lm))
    handle.remove()
    assert _same(before, _snapshot(model))


@pytest.mark.parametrize("name", ["llama", "gpt2", "gemma2", "olmo2", "qwen3_moe", "gpt_neox"])
def test_a_pass_for_masses_alone_ends_with_the_last_of_them_and_gives_the_same(name: str) -> None:
    model, ran = tiny(name), []
    lm, window = load_model(model), Window(2, 18, ((0, 4), (4, 18)))
    whole = capture_all(lm, [Request(IDS, masses=window, hidden=(0, 1))])[0]
    blocks = [layer.block for layer in lm.anatomy.layers]
    handles = [block.register_forward_hook(lambda *_, i=i: ran.append(i)) for i, block in enumerate(blocks)]
    before = _snapshot(model)
    alone = capture_all(lm, [Request(IDS, masses=window)])[0]
    assert ran == list(range(len(blocks) - 1)), "the last block does not come to its end"
    assert whole.masses is not None and alone.masses is not None and alone.hidden is None
    assert torch.equal(alone.masses, whole.masses)
    assert _same(before, _snapshot(model))
    for handle in handles:
        handle.remove()


def test_states_are_block_outputs_and_hidden_states_what_the_head_reads() -> None:
    model = tiny("qwen3")
    got = capture_all(load_model(model), [Request(IDS[:7]), Request(IDS, states=(3, 9), hidden=(2, 18))])[1]
    with torch.no_grad():
        out = model(input_ids=torch.tensor([IDS]), output_hidden_states=True)
    assert got.states is not None
    for layer in (0, 1):
        torch.testing.assert_close(got.states[layer], out.hidden_states[layer + 1][0, 3:9], atol=1e-6, rtol=1e-5)
    torch.testing.assert_close(model.get_submodule("lm_head")(got.hidden), out.logits[0, 2:], atol=1e-5, rtol=1e-5)


def test_one_pass_may_be_consumed_as_it_finishes_longest_first() -> None:
    requests = [Request([5] * n, hidden=(0, n)) for n in (3, 64, 9)]  # 64 fill the context
    order = [i for i, _ in capture(load_model(tiny("llama")), requests, max_tokens=1)]
    assert order == [1, 2, 0]


@pytest.mark.parametrize(
    ("request_", "says"),
    [
        (Request([]), "no token ids"),
        (Request([5, 99]), "97 embeddings"),
        (Request([5] * 65), "context of 64"),
        (Request([5, 6], states=(1, 1)), "states span 1:1"),
        (Request("a text"), "'a text' is text"),  # type: ignore[arg-type]
        (Request([5, 6], masses=Window(0, 3, ())), "masses span 0:3"),
    ],
)
def test_requests_that_cannot_be_met_are_refused(request_: Request, says: str) -> None:
    with pytest.raises(InputError, match=says):
        capture_all(load_model(tiny("llama")), [request_])


@pytest.mark.parametrize("bad", [float("inf"), -float("inf"), float("nan")])
def test_states_that_are_not_finite_are_refused(bad: float) -> None:
    model = tiny("llama")
    with torch.no_grad():
        model.get_input_embeddings().weight[IDS[3], 0] = bad  # type: ignore[union-attr, index, operator]
    for what in (Request(IDS, states=(3, 4)), Request(IDS, masses=Window(3, 4, ((0, 4),)))):
        with pytest.raises(ModelError, match="NaN or infinite"):
            capture_all(load_model(model), [what])
    with pytest.raises(ModelError, match="NaN or infinite states"):
        _finite(torch.tensor([0.0, bad]), "states")


def test_a_pass_that_bypasses_layers_is_refused_instead_of_returning_part() -> None:
    model = tiny("llama")
    with pytest.raises(ModelError, match="0 of 3 layers"), attention_masses(model, [None]):
        pass
    assert model.config._attn_implementation == "sdpa"


@pytest.mark.parametrize(("said", "index"), [("missing or already used", 1), ("layer_idx is None", None)])
def test_masses_of_calls_that_name_no_layer_or_one_twice_are_refused(said: str, index: int | None) -> None:
    model: Any = tiny("llama")
    attention = model.model.layers[1].self_attn
    once, attention.layer_idx = attention.forward, index
    if index is not None:  # as where layers share a module
        attention.forward = lambda *given, **named: (once(*given, **named), once(*given, **named))[1]
    windows = [Window(2, 5, ((0, 2),))]
    with pytest.raises(ModelError, match=said), torch.no_grad(), attention_masses(model, windows):
        model(torch.tensor([[5, 6, 7, 8, 9]]), use_cache=False)


def test_an_unsupported_attention_implementation_is_refused_by_name() -> None:
    model = tiny("llama")
    model.config._attn_implementation_internal = "flex_attention"
    with pytest.raises(ModelError, match="flex_attention"), attention_masses(model, [None]):
        pass


@pytest.mark.parametrize("name", ["llama", "gpt2", "gemma2", "cohere", "granite", "phi"])
@pytest.mark.parametrize(("rows", "tile"), [(512, 2048), (5, 13), (1, 96)])
def test_tiled_statistics_equal_the_float64_softmax_whatever_the_tile(name: str, rows: int, tile: int) -> None:
    model = tiny(name)
    hidden = capture_all(load_model(model), [Request(IDS, hidden=(0, 17))])[0].hidden
    assert hidden is not None
    got = vocabulary_statistics(head_of(model), hidden, torch.tensor(IDS[1:]), rows=rows, tile=tile)
    with torch.no_grad():
        log_p = torch.log_softmax(model(input_ids=torch.tensor([IDS])).logits[0, :-1].double(), -1)
    mean = (log_p.exp() * log_p).sum(-1, keepdim=True)
    torch.testing.assert_close(
        got.log_prob, log_p.gather(1, torch.tensor(IDS[1:])[:, None])[:, 0], atol=1e-5, rtol=1e-5
    )
    torch.testing.assert_close(got.mean, mean[:, 0], atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(got.variance, (log_p.exp() * (log_p - mean) ** 2).sum(-1), atol=1e-5, rtol=1e-4)


def test_statistics_survive_sharp_predictions_and_impossible_entries() -> None:
    weight = torch.zeros(1000, 1)
    weight[3] = 25.0
    bias = torch.zeros(1000)
    bias[500:] = -torch.inf  # padded vocabulary
    got = vocabulary_statistics(Head(weight, bias, None, 1.0), torch.ones(2, 1), torch.tensor([3, 4]), tile=64)
    log_p = torch.log_softmax((weight[:500, 0]).double(), 0)
    mean = (log_p.exp() * log_p).sum()
    torch.testing.assert_close(got.log_prob, log_p[[3, 4]], atol=1e-8, rtol=1e-6)
    torch.testing.assert_close(got.variance[0], (log_p.exp() * (log_p - mean) ** 2).sum(), atol=0, rtol=1e-4)
    same = vocabulary_statistics(
        Head(weight.flip(0), bias.flip(0), None, 1.0), torch.ones(2, 1), torch.tensor([996, 995]), tile=64
    )
    assert torch.allclose(same.mean, got.mean) and torch.allclose(same.log_prob, got.log_prob), "impossible ones first"
    shut = vocabulary_statistics(Head(weight, bias, None, 1.0), torch.ones(1, 1), torch.tensor([600]))
    assert shut.log_prob[0] == -torch.inf
    none = vocabulary_statistics(Head(weight, bias, None, 1.0), torch.ones(0, 1), torch.zeros(0, dtype=torch.long))
    assert [x.shape for x in (none.mean, none.variance, none.log_prob)] == [(0,)] * 3
    every = vocabulary_statistics(Head(weight, bias, None, 1.0), torch.ones(1000, 1), torch.arange(1000), tile=64)
    torch.testing.assert_close(every.log_prob[:500], log_p, atol=1e-8, rtol=1e-6)
    assert (every.log_prob[500:] == -torch.inf).all(), "also the first and the last entry of a tile"
    every = Head(torch.tensor([[1.0], [-2.0]]), torch.tensor([0.5, 1.0]), 4.0, 3.0).logits(torch.ones(1, 1))
    torch.testing.assert_close(every, 4 * torch.tanh(3 * torch.tensor([[1.5, -1.0]]) / 4))
    for outside in (-1, 1000):
        with pytest.raises(InputError, match="the head has 1000 entries"):
            vocabulary_statistics(Head(weight, bias, None, 1.0), torch.ones(1, 1), torch.tensor([outside]))


@pytest.mark.parametrize(("given", "used"), [({}, 0.25), ({"scaling": None}, 0.25), ({"scaling": 0.7}, 0.7)])
def test_scores_are_divided_by_the_root_of_the_width_unless_the_model_says_otherwise(
    given: dict[str, Any], used: float
) -> None:
    q = torch.zeros(1, 2, 3, 16)
    call = Call(torch.nn.Identity(), q, q, q, None, given, lambda *_, **__: (q, None))
    assert _options(call) == {"scaling": used, "softcap": None, "sinks": None, "window": None}


@pytest.mark.parametrize("change", [lambda x: x**3, lambda x: x + 1, lambda x: x - 1])
def test_a_head_that_transforms_its_logits_otherwise_is_refused(change: Any) -> None:
    model = tiny("llama")
    model.get_submodule("lm_head").register_forward_hook(lambda _module, _args, output: change(output))
    with pytest.raises(ModelError, match="soft cap nor a scale"):
        head_of(model)
    model.get_submodule("lm_head")._forward_hooks.clear()
    head_of(model)
    model.config.logit_scale = 1.01  # type: ignore[union-attr]
    with pytest.raises(ModelError, match=r"differs from the model's own logits by 1\.0e-02"):
        head_of(model)


def test_logits_that_do_not_come_from_the_models_decoder_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    model, other = tiny("llama"), tiny("llama")
    monkeypatch.setattr(model, "get_decoder", other.get_decoder)
    with pytest.raises(ModelError, match="decoder"):
        head_of(model)


def test_bfloat16_models_are_read_with_float32_softmax() -> None:
    model = tiny("llama").bfloat16()
    got = capture_all(load_model(model), [Request(IDS, masses=Window(2, 18, ((0, 9), (9, 18))))])[0]
    assert got.masses is not None
    assert got.masses.dtype == torch.float32
    torch.testing.assert_close(got.masses.sum(0), torch.ones_like(got.masses[0]), atol=1e-6, rtol=0)


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


def test_a_mask_is_that_of_the_sequence_or_of_all() -> None:
    masks = torch.arange(2 * 3 * 3).view(2, 1, 3, 3)
    for b in (0, 1):
        assert torch.equal(_of_sample(masks, b), masks[b]) and torch.equal(_of_sample(masks[:1], b), masks[0])  # type: ignore[arg-type]
    assert _of_sample(None, 1) is None
    with pytest.raises(ModelError, match=r"shape \(1, 3, 3\)"):
        _of_sample(masks[0], 0)


def test_a_batch_that_does_not_fit_is_halved_and_goes_on_with_what_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes: list[list[int]] = []

    def run(lm: Any, requests: Sequence[Request]) -> list[Any]:
        sizes.append([len(r.ids) for r in requests])
        if len(requests) > 2 or len(requests[0].ids) > 8:
            raise MemoryError("out of memory")
        return [tuple(r.ids) for r in requests]

    monkeypatch.setattr(captures, "_run", run)
    lm, notes = load_model(tiny("llama")), list[str]()
    requests = [Request([i] * n) for i, n in enumerate((2, 4, 4, 4, 4, 4, 2))]
    found = dict(captures.capture(lm, requests, max_tokens=20, notes=notes))
    assert found == {i: tuple(r.ids) for i, r in enumerate(requests)}
    assert sizes == [[4] * 5, [4] * 2, [4] * 2, [4, 2], [2]]
    assert notes == ["out of memory with 5 at once; continuing with 2"]
    with pytest.raises(ModelError, match="sequence 1: one pass over 9 tokens does not fit into memory"):
        list(captures.capture(lm, [Request([1]), Request([2] * 9)], max_tokens=20, notes=notes))


def test_the_last_token_of_a_response_is_one_of_the_vocabulary_though_it_is_never_run() -> None:
    lm = load_model(tiny("llama"))
    vocab = lm.anatomy.vocab_size
    for ids in ([vocab - 1], [vocab, 0]):
        captures.check_last(lm, ids, "response 3")
    for last in (vocab, -1):
        with pytest.raises(InputError, match=f"response 3: token id {last}; the model has {vocab} embeddings"):
            captures.check_last(lm, [0, last], "response 3")


@unchecked()
def test_what_masses_and_statistics_cannot_be_taken_from_is_refused() -> None:
    q, given = torch.zeros(1, 2, 3, 16), {"position_bias": torch.zeros(1)}
    call = Call(torch.nn.Identity(), q, q, q, None, given, lambda *_, **__: (q, None))
    with pytest.raises(ModelError, match=r"Identity: .*position bias"):
        _options(call)
    call.module.is_causal = False  # type: ignore[assignment]
    with pytest.raises(ModelError, match=r"Identity: .*not causal"):
        _options(call._replace(kwargs={}))
    model = tiny("llama")
    with pytest.raises(ModelError, match="layer 0: batch of 1 for 2 windows"), attention_masses(model, [None, None]):
        model(torch.tensor([[5, 6]]), use_cache=False)
    model.get_submodule("lm_head").weight.data[3] = torch.nan  # type: ignore[union-attr]
    with pytest.raises(ModelError, match="NaN or infinite logits for a two-token prompt"):
        head_of(model)
    head = Head(torch.eye(3), None, None, 1.0)
    for wrong in (torch.zeros(1, dtype=torch.long), torch.zeros(2, 1, dtype=torch.long)):
        with pytest.raises(InputError, match=rf"shape {re.escape(str(tuple(wrong.shape)))}; .*each of 2"):
            vocabulary_statistics(head, torch.ones(2, 3), wrong)
    for bad in (torch.nan, torch.inf):
        with pytest.raises(ModelError, match="NaN or infinite logits"):
            vocabulary_statistics(head, torch.full((1, 3), bad), torch.tensor([0]))


def test_little_free_memory_makes_small_passes_and_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    lm = load_model(tiny("llama"))
    requests = [Request([5, 6, 7], states=(0, 3)), Request([8, 9], states=(0, 2))]
    monkeypatch.setattr(captures, "free_bytes", lambda device: None)
    assert captures.token_budget(lm) == captures.MAX_TOKENS
    monkeypatch.setattr(captures, "token_budget", lambda lm: 4)
    for limit, said in ((None, 1), (4, 0)):
        notes: list[str] = []
        small, whole = ([c.states for _, c in capture(lm, requests, max_tokens=n, notes=notes)] for n in (limit, 100))
        assert all(torch.allclose(a, b, atol=1e-4) for a, b in zip(small, whole, strict=True))  # type: ignore[arg-type]
        assert len(notes) == said and all("4 tokens" in n and str(captures.MAX_TOKENS) in n for n in notes)
    notes = []
    list(capture(lm, requests[:1], notes=notes))
    assert notes == [], "what fits into one pass is none smaller"
