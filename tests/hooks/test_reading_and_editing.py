"""load_model and run: sites, edits, gradients, caches, and a model that is never changed."""

from __future__ import annotations

import copy
import inspect
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import tiny_models
import torch
from shapes import unchecked
from transformers import AutoConfig, AutoModelForCausalLM, DynamicCache

from composcope.errors import ModelError
from composcope.evaluation.engines.local import LocalEngine
from composcope.hooks import Model, Site, load_model, put
from composcope.hooks.anatomy import width_of
from composcope.hooks.attention import Call, additive_mask, of_query
from composcope.hooks.backends.transformers import position_ids, private_cache, tap
from composcope.hooks.model import _functions
from composcope.hooks.module_hooks import frozen
from composcope.hooks.sites import KINDS, check_site, split
from composcope.model_loading import end_ids

from ..tiny_models import CONFIGS, tiny

DENSE = [n for n in CONFIGS if n not in ("mixtral", "qwen3_moe", "gpt_oss")]
PARALLEL = ("cohere", "gpt_neox", "phi")


def ids_of(n: int = 9, batch: int = 2, seed: int = 0) -> torch.Tensor:
    return torch.randint(5, 90, (batch, n), generator=torch.Generator().manual_seed(seed))


def fingerprint(lm: Model) -> tuple[Any, ...]:
    model = lm.model
    hooks = sum(len(m._forward_hooks) + len(m._forward_pre_hooks) for m in model.modules())
    flags = tuple(p.requires_grad for p in model.parameters())
    return lm.__class__(model).identity, hooks, flags, model.config._attn_implementation, model.training


def kinds_of(name: str) -> list[str]:
    missing = {"resid_mid"} if name in PARALLEL else {"neuron"} if name not in DENSE else set()
    return [k for k in KINDS if k not in missing]


@pytest.mark.parametrize("name", CONFIGS)
def test_reading_every_site_leaves_the_logits_as_they_are(name: str) -> None:
    lm = load_model(tiny(name))
    sites = [Site(layer, k) for layer in range(lm.anatomy.n_layers) for k in kinds_of(name)]  # type: ignore[arg-type]
    with torch.no_grad():
        run = lm.run(ids_of(), read=sites)
        assert torch.equal(run.logits, lm.model(ids_of()).logits)
    assert set(run.acts) == set(sites)


@pytest.mark.parametrize("name", CONFIGS)
def test_an_identity_edit_changes_nothing_and_another_one_does(name: str) -> None:
    lm = load_model(tiny(name))
    with torch.no_grad():
        base = lm.model(ids_of()).logits
        for kind in kinds_of(name):
            site = Site(1, kind)  # type: ignore[arg-type]
            assert torch.equal(lm.run(ids_of(), edit={site: lambda x: x.clone()}).logits, base), kind
            assert not torch.equal(lm.run(ids_of(), edit={site: lambda x: 1.1 * x}).logits, base), kind


@pytest.mark.parametrize("name", [*DENSE, "falcon"])
def test_the_block_is_the_sum_of_its_parts(name: str) -> None:
    lm = load_model(tiny(name))
    kinds = ["resid_pre", "attn_out", "mlp_out", "resid_post"]
    with torch.no_grad():
        acts = lm.run(ids_of(), read=[Site(1, k) for k in kinds]).acts  # type: ignore[arg-type]
    pre, attn, mlp, post = (acts[Site(1, k)] for k in kinds)  # type: ignore[arg-type]
    factor = lm.anatomy.layers[1].mlp_scale
    assert torch.allclose(pre + factor * (attn + mlp), post, atol=1e-4)


@pytest.mark.parametrize("gradients", [False, True])
def test_a_model_that_goes_on_in_place_changes_neither_what_is_read_nor_what_is_put_in(gradients: bool) -> None:
    lm = load_model(tiny("falcon"))  # it adds its attention's output to its MLP's, in place
    site = Site(1, "mlp_out")
    seen: list[torch.Tensor] = []
    hook = lm.anatomy.layers[1].mlp_tail.register_forward_hook(lambda _m, _a, y: seen.append(y.detach().clone()))
    lm.model(ids_of())
    hook.remove()
    with torch.set_grad_enabled(gradients):
        run = lm.run(ids_of(), read=[site])
        read = run.acts[site]
        last = lm.run(ids_of(), read={site: lambda x: x[:, -1]}).acts[site]
        mine = read.detach().clone()
        again = [lm.run(ids_of(), edit={site: mine}).logits for _ in range(2)]
    assert torch.equal(read, seen[0]) and torch.equal(last, seen[0][:, -1]) and torch.equal(mine, seen[0])
    assert all(torch.equal(logits, run.logits) for logits in again)
    if gradients:
        assert float(torch.autograd.grad(run.logits.sum(), read)[0].norm()) > 0


@pytest.mark.parametrize("name", ["llama", "qwen3", "gemma2", "gpt2", "gpt_neox", "olmo2"])
def test_gradients_reach_every_site_and_agree_with_finite_differences(name: str) -> None:
    lm = load_model(tiny(name).double())
    for kind in kinds_of(name):
        site = Site(1, kind)  # type: ignore[arg-type]
        run = lm.run(ids_of(batch=1), read=[site])
        (gradient,) = torch.autograd.grad(run.logits[0, -1, 7], run.acts[site])
        direction = torch.randn(gradient.shape, dtype=gradient.dtype, generator=torch.Generator().manual_seed(3))
        size = 1e-3

        def moved(sign: float, site: Site = site, step: torch.Tensor = size * direction) -> float:
            with torch.no_grad():
                return float(lm.run(ids_of(batch=1), edit={site: lambda x: x + sign * step}).logits[0, -1, 7])

        slope = (moved(1) - moved(-1)) / (2 * size)
        expected = float((gradient * direction).sum())
        assert slope == pytest.approx(expected, rel=2e-3, abs=2e-3 * float(gradient.norm())), kind


def test_gradients_are_there_without_any_trainable_parameter(tmp_path: Path) -> None:
    tiny("llama").save_pretrained(tmp_path)
    mine: Any = SimpleNamespace(pad_token_id=0)
    lm = load_model(tmp_path, tokenizer=mine)
    assert not any(p.requires_grad for p in lm.model.parameters())
    assert lm.tokenizer is mine
    for opened in (tmp_path, lm.model):
        given = replace(lm.anatomy, context=9)
        assert load_model(opened, mine, anatomy=given).anatomy is given
    run = lm.run(ids_of(), read=[Site(0, "neuron"), Site(2, "head"), Site(0, "pattern"), Site(1, "pattern", query=4)])
    gradients = torch.autograd.grad(run.logits.sum(), list(run.acts.values()))
    assert all(float(g.norm()) > 0 for g in gradients)


def test_a_reducer_that_returns_nothing_is_named() -> None:
    lm = load_model(tiny("llama"))
    with pytest.raises(ModelError, match=r'read of Site\(1, "mlp_out"\).*None'):
        lm.run(torch.tensor([[5, 6, 7]]), read={Site(1, "mlp_out"): lambda _: None})  # type: ignore[dict-item]


def test_a_reducer_decides_what_is_kept() -> None:
    lm = load_model(tiny("llama"))
    site = Site(0, "pattern")
    with torch.no_grad():
        kept = lm.run(ids_of(), read={site: lambda p: p[..., :3].sum(-1)}).acts[site]
        whole = lm.run(ids_of(), read=[site]).acts[site]
    assert kept.shape == (2, 4, 9)
    assert torch.equal(kept, whole[..., :3].sum(-1))
    assert torch.allclose(whole.sum(-1), torch.ones(2, 4, 9), atol=1e-5)


@pytest.mark.parametrize("name", ["llama", "mistral", "gemma2", "gpt2"])
def test_patterns_under_sdpa_are_those_of_eager_attention(name: str) -> None:
    lm, eager = load_model(tiny(name)), tiny(name, attn="eager")
    with torch.no_grad():
        expected = eager(ids_of(), output_attentions=True).attentions
        got = lm.run(ids_of(), read=[Site(layer, "pattern") for layer in range(3)]).acts
    for layer in range(3):
        assert torch.allclose(got[Site(layer, "pattern")], expected[layer], atol=2e-6)


def test_what_is_edited_is_read_after_the_edit() -> None:
    lm = load_model(tiny("llama"))
    site = Site(1, "resid_mid")
    with torch.no_grad():
        run = lm.run(ids_of(), read=[site], edit={site: torch.zeros_like})
    assert float(run.acts[site].abs().max()) == 0


@pytest.mark.parametrize("stop", [RuntimeError, KeyboardInterrupt])
@pytest.mark.parametrize("kind", ["neuron", "pattern"])
def test_the_model_is_unchanged_after_an_exception(stop: type[BaseException], kind: Any) -> None:
    lm = load_model(tiny("llama"))
    before = fingerprint(lm)

    def fail(x: torch.Tensor) -> torch.Tensor:
        raise stop

    with pytest.raises(stop):
        lm.run(ids_of(), edit={Site(1, kind): fail}, read=[Site(0, "q"), Site(0, "pattern")])
    assert fingerprint(lm) == before
    lm.run(ids_of(), read=[Site(1, kind)], edit={Site(0, "resid_mid"): lambda x: 2 * x})
    assert fingerprint(lm) == before


@pytest.mark.parametrize("name", ["llama", "mistral", "gpt2", "gemma3"])
def test_a_cache_continues_the_prompt_and_is_never_changed(name: str) -> None:
    lm = load_model(tiny(name))
    ids = ids_of(12)
    past = lm.prefill(ids[:, :-2])
    before = [layer.keys.clone() for layer in past.layers]  # type: ignore[union-attr]
    with torch.no_grad():
        logits = lm.run(ids[:, -2:], past=past).logits
        assert torch.allclose(logits, lm.model(ids).logits[:, -2:], atol=1e-4)
        masked = lm.run(ids[:, -2:], torch.ones(2, 2, dtype=torch.long), past=past).logits
        assert torch.allclose(masked, logits, atol=1e-5), "a mask of the new tokens says nothing about the earlier ones"
        ended = lm.run(ids[:, -2:], torch.tensor([[1, 0], [1, 1]]), past=past).logits
        assert torch.allclose(ended[[0, 1, 1], [0, 0, 1]], logits[[0, 1, 1], [0, 0, 1]], atol=1e-5), "nor do its zeros"
        whole = lm.run(ids[:, -2:], torch.ones(2, 12, dtype=torch.long), past=past).logits
        assert torch.allclose(whole, logits, atol=1e-5), "a mask may be of all tokens"
    assert past.get_seq_length() == 10
    assert all(torch.equal(a, layer.keys) for a, layer in zip(before, past.layers, strict=True))  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["llama", "gpt2", "mistral", "gemma2"])
def test_padding_on_either_side_changes_no_real_token(name: str) -> None:
    lm = load_model(tiny(name))
    ids = ids_of(7, batch=1)
    pad = torch.zeros(1, 3, dtype=torch.long)
    ones, zeros = torch.ones(1, 7, dtype=torch.long), torch.zeros(1, 3, dtype=torch.long)
    with torch.no_grad():
        base = lm.run(ids).logits
        right = lm.run(torch.cat([ids, pad], 1)).logits[:, :7]
        masked = lm.run(torch.cat([ids, pad], 1), torch.cat([ones, zeros], 1)).logits[:, :7]
        left = lm.run(torch.cat([pad, ids], 1), torch.cat([zeros, ones], 1)).logits[:, 3:]
    for other in (right, masked, left):
        assert torch.allclose(base, other, atol=1e-5)


def test_the_weights_name_the_model() -> None:
    first, second = load_model(tiny("llama")), load_model(tiny("llama"))
    assert first.identity == second.identity
    with torch.no_grad():
        next(iter(second.model.parameters()))[0, 0] += 1
    assert first.identity != load_model(second.model).identity
    for name, model in (("one", first.model), ("other", second.model)):
        model.load_state_dict(tiny("llama").state_dict())
        model.register_buffer(name, torch.ones(2))
    assert load_model(first.model).identity != load_model(second.model).identity, "the same numbers under another name"


@unchecked()
def test_mistakes_are_one_clear_line(tmp_path: Path) -> None:
    lm = load_model(tiny("llama"))
    cases = [
        (lambda: lm.run(ids_of(), read=[Site(3, "neuron")]), "has 3 layers"),
        (lambda: lm.run(ids_of(), read=[Site(0, "nothing")]), "no such kind"),  # type: ignore[arg-type]
        (lambda: lm.run(ids_of(), read=[Site(0, "neuron", expert=0)]), "no experts"),
        (lambda: lm.run(ids_of(), edit={Site(0, "neuron"): lambda x: x[:, :1]}), "need a tensor of shape"),
        (lambda: lm.run(ids_of(), edit={Site(0, "neuron"): lambda x: x * float("nan")}), "NaN"),
        (
            lambda: lm.run(ids_of(), edit={Site(2, "resid_post"): lambda x: x + float("inf")}),
            "edit of .* gave NaN or infinity",
        ),
        (
            lambda: lm.run(ids_of(), edit={Site(0, "pattern", query=3): put(torch.ones(2, 4, 9), at=1)}),
            "row of one position has no positions",
        ),
        (lambda: lm.run(ids_of(65)), "context holds 64"),
        (lambda: lm.run(torch.tensor([[3, 97]])), "vocabulary has 97"),
        (lambda: lm.run(torch.zeros(1, 1, 2, dtype=torch.long)), r"shape \(1, 1, 2\)"),
        (lambda: lm.run(torch.zeros(0, 2, dtype=torch.long)), r"shape \(0, 2\)"),
        (lambda: lm.pad([]), "at least one token"),
        (lambda: lm.pad([[3], []]), "at least one token"),
        (lambda: lm.pad([[3], [2.5, 1.5]]), "prompt 1 holds fractions, as 2.5"),  # type: ignore[list-item]
        (
            lambda: load_model(tiny("llama", num_hidden_layers=2)).run(ids_of(), past=lm.prefill(ids_of())),
            "past of 3 l",
        ),
        (lambda: lm.tokens("a text"), "tokenizer=..."),
        (lambda: lm.run([3, 9]), "token ids of type list"),  # type: ignore[arg-type]
        (lambda: lm.run(ids_of(), [[1] * 12]), "mask of type list.*what pad returns"),  # type: ignore[arg-type]
        (lambda: lm.prefill(ids_of(), [[1] * 12]), "mask of type list"),  # type: ignore[arg-type]
        (lambda: lm.run(torch.tensor([[3.0]])), "token ids of type torch.float32"),
        (lambda: load_model(tiny("gpt_neox")).run(ids_of(), read=[Site(0, "resid_mid")]), "in parallel"),
        (lambda: load_model(tiny("mixtral")).run(ids_of(), read=[Site(0, "neuron")]), "belong to experts"),
        (lambda: load_model(tiny("llama").train()), "model.eval()"),
        (lambda: load_model(tmp_path / "nowhere"), "no such folder"),
        (lambda: load_model("organism:twin"), r"load_model\(resolve_model\('organism:twin'\)\.location\)"),
        (lambda: load_model(tmp_path), "no config.json"),
        (lambda: load_model(tiny("llama"), backend="other"), "backend"),
        (lambda: load_model(tiny("llama"), dtype="float33"), "float33"),
        (lambda: load_model(tiny("llama"), dtype="bfloat16"), "in memory is torch.float32"),
        (lambda: load_model(3), "type int"),  # type: ignore[arg-type]
    ]
    for act, text in cases:
        with pytest.raises(ModelError, match=text) as e:
            act()
        assert "\n" not in str(e.value)


@pytest.mark.parametrize("times", [0, 2])
def test_a_site_whose_module_does_not_run_once_is_refused(times: int) -> None:
    lm = load_model(tiny("llama"))
    block: Any = lm.model.get_decoder().layers[1]  # type: ignore[union-attr, index]
    once = block.mlp.forward
    block.mlp.forward = lambda x: sum((once(x) for _ in range(times)), torch.zeros_like(x))
    with pytest.raises(ModelError, match=f"ran {times} times"):
        lm.run(ids_of(), read=[Site(1, "neuron")])
    assert lm.run(ids_of(), read=[Site(0, "neuron"), Site(1, "resid_post")]).acts.keys() == {
        Site(0, "neuron"), Site(1, "resid_post")
    }  # fmt: skip


def test_generation_ends_with_the_models_own_end_unless_stops_are_given() -> None:
    lm, prompt = load_model(tiny("llama")), ids_of()[0].tolist()
    (plain,) = lm.generate([prompt], 6, stop_ids=[])
    assert len(plain) == 6
    lm.model.generation_config.eos_token_id = plain[2]  # type: ignore[union-attr]
    stops = plain.index(plain[2]) + 1
    assert lm.generate([prompt], 6) == [plain[:stops]]
    assert lm.generate([prompt], 6, stop_ids=[]) == [plain]
    assert lm.generate([prompt], 6, stop_ids=[plain[0]]) == [plain[:1]]
    with pytest.raises(ModelError, match="vocabulary has 97"):
        lm.generate([prompt, [3, 97]], 1)


def test_a_response_ends_where_one_of_an_evaluation_ends() -> None:
    model, tokenizer = tiny("llama"), SimpleNamespace(eos_token_id=7, pad_token_id=None, name_or_path="")
    lm = load_model(model, tokenizer)
    assert set(lm.eos_ids) == {2, 7} == LocalEngine(model, tokenizer).eos_ids
    model.generation_config.eos_token_id = [4, 5]  # type: ignore[union-attr]
    assert set(lm.eos_ids) == {2, 4, 5, 7} == LocalEngine(model, tokenizer).eos_ids
    assert load_model(model).eos_ids == (4, 5, 2)
    # Some models of several kinds of input state no end in their own configuration.
    several: Any = SimpleNamespace(config=SimpleNamespace(), generation_config=model.generation_config)
    assert end_ids(several, tokenizer) == (4, 5, 7) and end_ids(several, None) == (4, 5)


def test_prompts_that_end_with_padding_are_not_continued_as_text() -> None:
    tokenizer = SimpleNamespace(pad_token_id=3, eos_token_id=2, bos_token_id=1)
    lm = load_model(tiny("llama"), tokenizer)
    assert lm.generate([[5, 6, 7], [8, 9]], 2) == [lm.generate([row], 2)[0] for row in ([5, 6, 7], [8, 9])]
    ids, mask = lm.pad([[5, 6, 7], [8, 9]])
    with pytest.raises(ModelError, match="prompt 1 ends with 1 pad tokens"):
        lm.generate(ids, 2)
    with pytest.raises(ModelError, match=r"prompt 1 ends with 1 pad tokens .*; give the mask"):
        lm.prefill(ids)  # what follows would attend to the padding
    assert lm.run(ids).logits.shape == (2, 3, 97) and lm.prefill(ids, mask).get_seq_length() == 3
    tokenizer.pad_token_id = 2
    assert lm.generate([[5, 6, 2]], 2), "a text may end with the token that ends texts"
    with pytest.raises(ModelError, match="prompt 0 ends with 2 pad tokens"):
        lm.generate([[5, 2, 2]], 2)


@pytest.mark.parametrize("left", [False, True])
def test_padding_among_earlier_tokens_is_not_attended_to_by_those_that_follow(left: bool) -> None:
    lm, texts, more = load_model(tiny("llama")), [[5, 6, 7, 8, 9], [10, 11]], ids_of(3)
    ids, mask = lm.pad(texts)
    if left:
        ids, mask = ids.flip(0, 1), mask.flip(0, 1)
        texts = [t[::-1] for t in texts[::-1]]
    past = lm.prefill(ids, mask)
    with torch.no_grad():
        alone = torch.cat(
            [lm.run(torch.tensor([[*t, *m]])).logits[:, len(t) :] for t, m in zip(texts, more.tolist(), strict=True)]
        )
        for given in (None, torch.ones_like(more), torch.cat([mask, torch.ones_like(more)], 1)):
            assert torch.allclose(lm.run(more, given, past=past).logits, alone, atol=1e-5)
        assert torch.allclose(lm.run(more, past=copy.deepcopy(past)).logits, alone, atol=1e-5), "a copy keeps its mask"
        past.batch_repeat_interleave(2)
        with pytest.raises(ModelError, match="past of 4 rows and 5 tokens: was made from 2 rows and 5 tokens"):
            lm.run(more.repeat_interleave(2, 0), past=past)
        whole = torch.cat([mask, torch.ones_like(more)], 1).repeat_interleave(2, 0)
        assert torch.allclose(lm.run(more.repeat_interleave(2, 0), whole, past=past).logits[::2], alone, atol=1e-5)
    with pytest.raises(ModelError, match="past of 4 sequences for 1 rows"):
        lm.run(more[:1], past=past)


@pytest.mark.parametrize("change", ["reorder_cache", "batch_select_indices"])
def test_a_cache_with_padding_whose_rows_changed_places_needs_their_mask(lm: Model, change: str) -> None:
    ids, mask = lm.pad([[5, 6, 7, 8, 9], [10, 11]])
    more = torch.tensor([[11, 42, 8], [20, 21, 22]])
    past = lm.prefill(ids, mask)
    want = lm.run(more.flip(0), past=past).logits.flip(0)
    getattr(past, change)(torch.tensor([0, 1]))
    assert torch.equal(lm.run(more.flip(0), past=past).logits.flip(0), want), "the same rows in the same places"
    getattr(past, change)(torch.tensor([1, 0]))
    for given in (None, torch.ones_like(more)):
        with pytest.raises(ModelError, match=r"past of 2 rows and 5 tokens: .* changed since"):
            lm.run(more, given, past=copy.deepcopy(past))
    whole = torch.cat([mask.flip(0), torch.ones_like(more)], 1)
    assert torch.allclose(lm.run(more, whole, past=past).logits, want, atol=1e-5)
    past = lm.prefill(*lm.pad([[5, 6, 7], [10, 11, 12]]))
    want = lm.run(more.flip(0), past=past).logits.flip(0)
    getattr(past, change)(torch.tensor([1, 0]))
    assert torch.allclose(lm.run(more, past=past).logits, want, atol=1e-5), "nothing is padded"


def test_a_cache_without_padding_may_be_repeated_and_cut(lm: Model) -> None:
    past, more = lm.prefill(*lm.pad([[5, 9, 33, 14, 28]])), torch.tensor([[11, 42, 8]])
    with torch.no_grad():
        past.batch_repeat_interleave(2)
        alone = lm.run(torch.tensor([[5, 9, 33, 14, 28, 11, 42, 8]])).logits[:, -3:]
        assert torch.allclose(lm.run(more.repeat(2, 1), past=past).logits, alone, atol=1e-5)
        past.crop(-1)
        alone = lm.run(torch.tensor([[5, 9, 33, 14, 11, 42, 8]])).logits[:, -3:]
        assert torch.allclose(lm.run(more.repeat(2, 1), past=past).logits, alone, atol=1e-5)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_model_in_memory_may_be_opened_with_the_dtype_that_it_has(dtype: torch.dtype) -> None:
    model = tiny("llama").to(dtype)  # type: ignore[arg-type]
    for named in (dtype, str(dtype).removeprefix("torch."), None):
        assert load_model(model, dtype=named).model is model and model.dtype is dtype


def test_folders_without_weights_and_models_that_give_nan_are_refused(tmp_path: Path) -> None:
    model = tiny("llama")
    model.config.save_pretrained(tmp_path)
    with pytest.raises(ModelError, match=r"no weights \(\*\.safetensors\)"):
        load_model(tmp_path)
    with torch.no_grad():
        next(iter(model.parameters())).fill_(float("nan"))
    with pytest.raises(ModelError, match="NaN"):
        load_model(model)


def test_an_edit_may_give_numbers_whose_sum_is_too_large_for_their_type() -> None:
    lm, site = load_model(tiny("llama").half()), Site(0, "resid_post")
    run = lm.run(ids_of(), read=[site], edit={site: lambda x: torch.full_like(x, 60000)})
    assert torch.isinf(run.acts[site].sum()) and torch.isfinite(run.logits).all()


@pytest.mark.parametrize("name", ["q", "k"])
def test_nan_that_an_attention_kernel_turns_into_zeros_is_refused(name: Any) -> None:
    model = tiny("llama", attn="sdpa")
    lm, site = load_model(model), Site(1, name)
    for value in (float("nan"), float("inf")):
        with pytest.raises(ModelError, match=rf'edit of Site\(1, "{name}"\): gave NaN or infinity'):
            lm.run(ids_of(), edit={site: lambda x, v=value: x * v})
    with torch.no_grad():
        model.get_submodule(f"model.layers.1.self_attn.{name}_proj").weight[3, 3] = float("nan")  # type: ignore[index]
        assert torch.isfinite(model(ids_of()).logits).all(), "as transformers itself computes on a CPU"
    with pytest.raises(ModelError, match="NaN or infinite queries or keys in attention 1"):
        load_model(model)


def test_a_tokenizer_without_pad_token_is_said_and_harmless() -> None:
    class Bare:
        pad_token_id = None
        eos_token_id = 2

    lm = load_model(tiny("llama"), tokenizer=Bare())
    assert "no pad token" in lm.notes[0] and not load_model(tiny("llama")).notes
    ids, mask = lm.pad([[5, 6, 7], [8]])
    assert ids.tolist() == [[5, 6, 7], [8, 2, 2]]
    assert mask.tolist() == [[1, 1, 1], [1, 0, 0]]
    added: Any = SimpleNamespace(pad_token_id=97, bos_token_id=1, eos_token_id=2)  # to the tokenizer alone
    padded = load_model(tiny("llama"), tokenizer=added)
    with torch.no_grad():
        alone = padded.run(torch.tensor([[8]])).logits[0, 0]
        assert torch.allclose(padded.run(*padded.pad([[5, 6, 7], [8]])).logits[1, 0], alone, atol=1e-5)


@pytest.mark.parametrize("name", ["llama", "gpt2", "gpt_neox", "mixtral"])
def test_an_edit_may_write_into_what_it_is_given(name: str) -> None:
    lm = load_model(tiny(name))

    def in_place(x: torch.Tensor) -> torch.Tensor:
        x[..., -1] = 0
        return x

    def anew(x: torch.Tensor) -> torch.Tensor:
        return torch.cat([x[..., :-1], torch.zeros_like(x[..., -1:])], -1)

    for kind in kinds_of(name):
        site = Site(1, kind)  # type: ignore[arg-type]
        before = Site(0, "resid_post")
        with torch.no_grad():
            got, want = (lm.run(ids_of(), read=[before, site], edit={site: f}) for f in (in_place, anew))
        assert torch.equal(got.logits, want.logits), kind
        assert all(torch.equal(got.acts[s], want.acts[s]) for s in (before, site)), kind


def test_a_run_inside_a_run_is_refused_and_leaves_nothing_behind() -> None:
    lm = load_model(tiny("llama"))
    before = fingerprint(lm)

    def again(x: torch.Tensor) -> torch.Tensor:
        return x + lm.run(ids_of()).logits.sum()

    for site in (Site(1, "resid_post"), Site(1, "pattern")):
        with pytest.raises(ModelError, match="running already"):
            lm.run(ids_of(), edit={site: again})
        with pytest.raises(ModelError, match="running already"):
            lm.run(ids_of(), read={site: again})
    assert fingerprint(lm) == before
    lm.run(ids_of())


@unchecked()
def test_values_in_place_of_functions_are_refused_by_name() -> None:
    lm, site = load_model(tiny("llama")), Site(1, "neuron")
    with pytest.raises(ModelError, match=r'edit of Site\(1, "neuron"\): float; give a function'):
        lm.run(ids_of(), edit={site: 0.0})  # type: ignore[dict-item]
    for value, named in ((None, "NoneType"), (3, "int")):
        with pytest.raises(ModelError, match=rf'edit of Site\(1, "neuron"\): {named}; give a function'):
            lm.generate([[5, 6]], 2, {site: value})  # type: ignore[dict-item]
    with pytest.raises(ModelError, match=r'read of Site\(1, "neuron"\): int; give a function'):
        lm.run(ids_of(), read={site: 3})  # type: ignore[dict-item]


@pytest.mark.parametrize("kind", ["resid_post", "head", "q", "v", "pattern"])
def test_a_tensor_takes_the_place_of_a_site_whole_or_at_some_positions(kind: Any) -> None:
    lm, sites = load_model(tiny("llama")), [Site(1, kind)]
    sites += [Site(1, kind, head=1)] if kind != "resid_post" else []
    with torch.no_grad():
        theirs = lm.run(ids_of(seed=1), read=sites).acts
        own = lm.run(ids_of(), read=sites)
        for site in sites:
            read = lm.run(ids_of(), edit={site: theirs[site]}, read=[site]).acts[site]
            assert torch.equal(read, theirs[site]), site
            for at in (-2, [1, 3], slice(4, None)):
                read = lm.run(ids_of(), edit={site: put(theirs[site], at=at)}, read=[site]).acts[site]
                expected = own.acts[site].clone()
                expected[..., at, :] = theirs[site][..., at, :]
                assert torch.equal(read, expected) and not torch.equal(read, own.acts[site]), (site, at)
        assert torch.equal(lm.run(ids_of(), edit=own.acts).logits, own.logits)


def test_a_mean_is_repeated_along_the_axes_that_it_lacks_and_other_shapes_are_refused() -> None:
    lm, site = load_model(tiny("llama")), Site(1, "neuron")
    with torch.no_grad():
        mean = lm.run(ids_of(), read=[site]).acts[site].mean((0, 1))
        edited = lm.run(ids_of(), edit={site: mean}, read=[site]).acts[site]
        assert torch.equal(edited, mean.expand(2, 9, -1))
        prompt = ids_of(batch=1)[0].tolist()
        constant = [lm.generate([prompt], 4, edit={site: e}) for e in (mean, lambda x: mean.expand(x.shape))]
        assert constant[0] == constant[1]
    for edit in (torch.zeros(3), put(torch.zeros(2, 9, lm.anatomy.d_mlp), at=9)):
        with pytest.raises(ModelError, match="cannot put a value of shape"):
            lm.run(ids_of(), edit={site: edit})


def test_arguments_of_a_wrong_kind_or_width_are_refused_with_what_is_needed() -> None:
    lm, site = load_model(tiny("llama")), Site(1, "resid_post")
    whole = torch.zeros(2, 9, lm.anatomy.d_model)
    for edit in (put(whole, at=99), put(whole[0, -1], at=-1), put(whole[:, -1], at=-1)):  # states need their axes
        with pytest.raises(ModelError, match="-9 to 8"):
            lm.run(ids_of(), edit={site: edit})
    with pytest.raises(ModelError, match="edit of type list"):
        inspect.unwrap(_functions)([site])  # without the type checks of the tests
    with pytest.raises(ModelError, match=f"{lm.anatomy.d_model} wide"):
        lm.unembed(torch.zeros(lm.anatomy.d_model + 1))
    with pytest.raises(ModelError, match="a prompt is empty"):
        lm.generate([[]], 3)


def test_a_model_and_a_run_show_themselves_in_one_line() -> None:
    lm = load_model(tiny("llama"))
    run = lm.run(ids_of(), read=[Site(0, "resid_post")])
    assert repr(lm) == f"<LlamaForCausalLM: {lm.anatomy.n_layers} layers, {lm.anatomy.n_heads} heads, " + (
        "torch.float32 on cpu>"
    )
    assert repr(run) == f'<run: logits 2x9x{run.logits.shape[-1]}; Site(0, "resid_post") 2x9x{lm.anatomy.d_model}>'
    assert repr(lm.anatomy).startswith(f"Anatomy(n_heads={lm.anatomy.n_heads}, ") and len(repr(lm.anatomy)) < 250
    assert len(repr(lm.run(ids_of(), read=[Site(0, k) for k in KINDS]))) < 250  # type: ignore[arg-type]


def test_padding_on_the_left_is_refused_where_the_model_counts_positions_itself() -> None:
    sizes: dict[str, Any] = dict(
        vocab_size=97, d_model=32, decoder_layers=2, decoder_attention_heads=4, decoder_ffn_dim=56
    )
    torch.manual_seed(0)
    lm = load_model(AutoModelForCausalLM.from_config(AutoConfig.for_model("blenderbot", init_std=0.3, **sizes)).eval())
    ids, mask = ids_of(7, batch=1), torch.tensor([[0, 0, 1, 1, 1, 1, 1]])
    with pytest.raises(ModelError, match=r"padding on the left changes what it computes.*pad on the right"):
        lm.run(ids, mask)
    with pytest.raises(ModelError, match="pad on the right"):
        lm.prefill(ids, mask)
    with pytest.raises(ModelError, match="pad on the right"):  # any of the rows counts
        lm.run(ids.repeat(2, 1), torch.cat([torch.ones_like(mask), mask]))
    past = lm.prefill(ids.repeat(2, 1), torch.tensor([[1] * 7, [1] * 4 + [0] * 3]))
    with pytest.raises(ModelError, match="padding between earlier tokens and new ones; give whole texts"):
        lm.run(ids[:, :2].repeat(2, 1), past=past)
    with torch.no_grad():
        alone, right = lm.run(ids[:, :5]).logits, lm.run(ids, mask.flip(1)).logits[:, :5]
    assert torch.allclose(alone, right, atol=1e-5)
    for relative in (load_model(tiny("inkling_text")), load_model(tiny("qwen3_next"))):
        for start in ([0, 1, 0], [1, 1, 0]):
            with pytest.raises(ModelError, match="padding between tokens changes what it computes"):
                relative.run(ids, torch.tensor([[*start, 1, 1, 1, 1]]))
        with torch.no_grad():
            left = relative.run(ids, mask).logits[:, 2:]
            assert torch.allclose(left, relative.run(ids[:, 2:]).logits, atol=1e-5 * float(left.abs().max()))


def test_a_cache_that_would_not_hold_all_that_layers_keep_is_refused() -> None:
    lm = load_model(tiny("qwen3_next"))
    with pytest.raises(ModelError, match="linear_attention"):
        lm.prefill(ids_of())


IDS = torch.tensor([[3, 17, 42, 9, 61]])
LAYER, D_HEAD = 1, 8


@pytest.fixture(scope="module", params=["llama", "gpt2"])
def lm(request: pytest.FixtureRequest) -> Model:
    return load_model(tiny_models.tiny(request.param))


@pytest.mark.parametrize("kind", ["head", "q", "k", "v", "pattern"])
def test_a_head_is_read_as_its_part_of_the_whole(lm: Model, kind: str) -> None:
    whole = Site(LAYER, kind)  # type: ignore[arg-type]
    last = lm.anatomy.heads(LAYER)[kind in ("k", "v")] - 1
    one = whole._replace(head=last)
    acts = lm.run(IDS, read=[one, whole]).acts
    assert list(acts) == [one, whole]
    expected = acts[whole][..., last * D_HEAD :] if kind == "head" else acts[whole][:, last]
    assert torch.equal(acts[one], expected)
    alone = lm.run(IDS, read={one: lambda x: x.sum(-1)}).acts
    assert list(alone) == [one] and torch.allclose(alone[one], expected.sum(-1))


def test_editing_a_head_is_editing_its_part_of_the_whole(lm: Model) -> None:
    def part(x: torch.Tensor) -> torch.Tensor:
        x[..., 2 * D_HEAD : 3 * D_HEAD] = 0
        return x

    whole = lm.run(IDS, edit={Site(LAYER, "head"): part}).logits
    one = lm.run(IDS, edit={Site(LAYER, "head", head=2): torch.zeros_like}, read=[Site(LAYER, "head", head=2)])
    assert torch.equal(one.logits, whole)
    assert not torch.allclose(one.logits, lm.run(IDS).logits)
    assert not one.acts[Site(LAYER, "head", head=2)].any(), "read after the edit"
    donor = lm.run(IDS, read=[Site(LAYER, "head")]).acts[Site(LAYER, "head")].detach() + 1
    before = donor.clone()
    both = {Site(LAYER, "head"): lambda _: donor, Site(LAYER, "head", head=2): torch.zeros_like}
    logits = lm.run(IDS, edit=both).logits
    assert torch.equal(donor, before), "what is put in stays as it was"
    assert torch.equal(logits, lm.run(IDS, edit={Site(LAYER, "head"): lambda _: part(donor.clone())}).logits)


@pytest.mark.parametrize("kind", ["head", "q", "pattern"])
def test_what_is_read_of_a_head_may_be_changed_without_changing_the_model(lm: Model, kind: Any) -> None:
    one, usual = Site(LAYER, kind, head=1), lm.run(IDS).logits
    changed = lm.run(IDS, read={one: lambda x: x.detach().fill_(0.25)})
    torch.testing.assert_close(changed.logits, usual)
    assert torch.equal(changed.acts[one], torch.full_like(changed.acts[one], 0.25))


def test_keys_and_queries_that_are_scaled_on_their_way_are_read_as_they_were_projected() -> None:
    yarn = {"rope_type": "yarn", "rope_theta": 1e4, "factor": 4.0, "original_max_position_embeddings": 16}
    lm = load_model(tiny_models.tiny("llama", rope_parameters=yarn))
    acts = lm.run(IDS, read=[Site(LAYER, "resid_pre"), *(Site(LAYER, k) for k in ("q", "k", "v"))]).acts
    layers: Any = lm.model.get_decoder().layers
    block = layers[LAYER]
    normed = block.input_layernorm(acts[Site(LAYER, "resid_pre")])
    for kind in ("q", "k", "v"):
        want = getattr(block.self_attn, f"{kind}_proj")(normed).unflatten(-1, (-1, D_HEAD)).transpose(1, 2)
        torch.testing.assert_close(acts[Site(LAYER, kind)], want)  # type: ignore[arg-type]


@pytest.mark.parametrize(("name", "n", "wide"), [("llama", 2, 1), ("phi3", 1, 2), ("gpt2", 1, 1)])
def test_projections_before_the_activation_are_found_also_where_two_are_one(name: str, n: int, wide: int) -> None:
    anatomy = load_model(tiny_models.tiny(name)).anatomy
    for layer in anatomy.layers:
        assert [width_of(up) for up in layer.up] == [wide * anatomy.d_mlp] * n


def test_several_heads_are_edited_together_and_gradients_arrive(lm: Model) -> None:
    scale = torch.ones(2, requires_grad=True)
    edit = {Site(LAYER, "pattern", head=h): (lambda x, h=h: scale[h] * x) for h in (0, 1)}
    run = lm.run(IDS, edit=edit, read=[Site(LAYER, "pattern", head=0)])
    run.logits[0, -1, 7].backward()
    assert scale.grad is not None and scale.grad.abs().min() > 0


@pytest.mark.parametrize(
    ("site", "named"),
    [
        (Site(0, "resid_post", head=0), "has no heads"),
        (Site(0, "head", head=4), "4 heads"),
        (Site(0, "pattern", head=-1), "4 heads"),
        (Site(7, "head", head=0), "3 layers"),
        (Site(1.5, "head", head=0), "not a site"),  # type: ignore[arg-type]
        (Site(0, "head", head=1.5), "4 heads"),  # type: ignore[arg-type]
        (Site(0, "other", head=0), "no such kind"),  # type: ignore[arg-type]
    ],
)
def test_a_head_that_is_not_there_is_refused(lm: Model, site: Site, named: str) -> None:
    with pytest.raises(ModelError, match=named):
        lm.run(IDS, read=[site])
    n, some = lm.anatomy.heads(0)[1], Site(0, "q", head=np.int64(2))  # type: ignore[arg-type]
    assert torch.equal(lm.run(IDS, read=[some]).acts[some], lm.run(IDS, read=[Site(0, "q")]).acts[Site(0, "q")][:, 2])
    with pytest.raises(ModelError, match=f"layer 0 has {n} heads of this kind"):
        lm.run(IDS, read=[Site(0, "k", head=n)])


def test_an_edit_of_a_head_must_keep_its_shape(lm: Model) -> None:
    with pytest.raises(ModelError, match=r"head=1.*\(1, 5, 8\)"):
        lm.run(IDS, edit={Site(0, "head", head=1): lambda x: x[..., :3]})
    with pytest.raises(ModelError, match=r"head=1.*gave torch.float64, need torch.float32"):
        lm.run(IDS, edit={Site(0, "head", head=1): lambda x: x.double()})
    with pytest.raises(ModelError, match=r'edit of Site\(0, "head"\): gave NoneType'):
        lm.run(IDS, edit={Site(0, "head"): lambda x: None, Site(0, "head", head=1): lambda x: x})  # type: ignore[dict-item]


def test_whole_sites_alone_are_taken_where_heads_are_not_meant(lm: Model) -> None:
    with pytest.raises(ModelError, match="whole site"):
        lm.read_trunk(IDS, [Site(0, "head", head=1)])


def test_without_a_mask_the_last_queries_see_all_keys_before_them() -> None:
    call = Call(torch.nn.Identity(), torch.zeros(1, 1, 2, 4), *[torch.zeros(1, 1, 5, 4)] * 2, None, {}, Any)  # type: ignore[arg-type]
    assert (additive_mask(call)[0, 0] == 0).tolist() == [[True] * 4 + [False], [True] * 5]
    windowed = call._replace(kwargs={"sliding_window": 3})  # flash attention leaves the window to the kernel
    seen = [[False, True, True, True, False], [False, False, True, True, True]]
    assert (additive_mask(windowed)[0, 0] == 0).tolist() == seen
    for i in range(2):
        assert (additive_mask(of_query(windowed, i))[0, 0] == 0).tolist() == seen[i : i + 1]
    padding = torch.tensor([[[[False, True, True, True, True]]]])  # one row for all queries
    for given in (call._replace(mask=padding), of_query(call._replace(mask=padding), 1)):
        assert given.mask is not None and given.mask.tolist() == padding.tolist()
    long = torch.zeros(1, 1, 1, 1).expand(1, 1, 10**6, 1)  # the mask of all its queries would not fit into memory
    assert int(of_query(call._replace(query=long, key=long), -2).mask.sum()) == 10**6 - 1  # type: ignore[union-attr]


def test_sites_beyond_the_model_are_refused() -> None:
    layer, kinds = load_model(tiny("llama")).anatomy.layers[0], ("q", "k", "v")
    for kind in kinds:
        with pytest.raises(ModelError, match="before rotary embedding"):
            tap(replace(layer, **dict.fromkeys(kinds)), Site(0, kind))  # type: ignore[arg-type]
    check_site(Site(2, "q"), 3)
    check_site(Site(np.int64(2), "pattern", query=np.int64(1)), 3)  # type: ignore[arg-type]
    check_site(Site(0, "neuron", expert=3), 3, 4)
    wrong: list[tuple[Any, int | None, str]] = [
        (Site(3, "q"), None, "0-2"), (Site(0, "p"), None, "no such kind"), ((0, "q"), None, "not a site"),  # type: ignore[arg-type]
        (Site(0, "neuron", expert=4), 4, "0-3"), (Site(0, "neuron", expert=-1), 4, "0-3"),
        (Site(0, "neuron", expert=1.5), 4, "0-3"),  # type: ignore[arg-type]
        (Site(0, "neuron", expert=0), None, "no experts"), (Site(0, "q", head=0), None, "single heads")]  # fmt: skip
    for site, n, said in wrong:
        with pytest.raises(ModelError, match=said):
            check_site(site, 3, n)


def test_a_whole_site_is_kept_only_where_it_is_read_itself() -> None:
    one, whole, x = Site(0, "q", head=1), Site(0, "q"), torch.rand(1, 4, 3, 8)
    for read, kept in (([one], 0), ([one, whole], x.numel())):
        reads, _, found = split(dict.fromkeys(read), {}, load_model(tiny("llama")).anatomy)
        reduce = reads[whole]
        acts = {whole: x if reduce is None else reduce(x)}
        assert acts[whole].numel() == kept and torch.equal(found(acts)[one], x[:, 1])


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

    past.update(torch.ones(1, 2, 3, 4), torch.ones(1, 2, 3, 4), 1)
    past.layers[0].__class__ = Writes  # the other layer only ever replaces
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


def test_parameters_need_gradients_again_where_they_did_before() -> None:
    model = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Linear(2, 2).requires_grad_(False))
    with pytest.raises(ValueError, match="inside"), frozen(model):
        assert not any(p.requires_grad for p in model.parameters())
        raise ValueError("inside")
    assert [p.requires_grad for p in model.parameters()] == [True, True, False, False]


def test_a_cap_on_attention_scores_is_never_left_out_and_this_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    ids = torch.tensor([[3, 9, 4, 11, 7]])
    wanted = tiny("gemma2", attn="eager", attn_logit_softcapping=0.2)
    wanted.save_pretrained(tmp_path)
    # as transformers before 5.21 has it
    monkeypatch.setattr(sys.modules[type(wanted).__module__].Gemma2PreTrainedModel, "_supports_sdpa", True)
    for given in (tmp_path, tiny("gemma2", attn="sdpa", attn_logit_softcapping=0.2)):
        lm = load_model(given)
        assert lm.model.config._attn_implementation == "eager"
        assert "cap" in capsys.readouterr().err
        assert torch.allclose(lm.run(ids).logits, wanted(ids).logits, atol=1e-5)
    assert load_model(tiny("llama", attn="sdpa")).model.config._attn_implementation == "sdpa"
