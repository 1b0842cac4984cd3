"""TransformerLens and nnsight as backends, compiled models and models with adapters: same numbers, nothing changed."""

from __future__ import annotations

import importlib
import importlib.util
from contextlib import nullcontext
from typing import Any

import pytest
import tiny_models
import torch

from composcope.errors import ModelError
from composcope.hooks import Model, Site, load_model
from composcope.hooks.backends import check_logits
from composcope.hooks.parts import close_to
from composcope.hooks.sites import KINDS
from composcope.probes import neurons

from ..tiny_models import tiny

LIBRARIES = [
    pytest.param(n, marks=pytest.mark.skipif(importlib.util.find_spec(n) is None, reason=f"{n} is not installed"))
    for n in ("transformer_lens", "nnsight")
]
NAMES = ["llama", "qwen3", "gemma2", "gpt2", "gpt_neox", "olmo2", "phi3", "mixtral"]
REFUSED: dict[tuple[str, str], set[str]] = {}
"""Kinds that a library cannot reach on an architecture; asserted to be refused by name."""
PROMPT = [5, 31, 77, 12, 40, 8, 66]


def ids_of(n: int = 9, batch: int = 2) -> torch.Tensor:
    return torch.randint(5, 90, (batch, n), generator=torch.Generator().manual_seed(0))


def sites_of(lm: Model, backend: str, name: str) -> list[Site]:
    missing = REFUSED.get((backend, name), set())
    if lm.anatomy.layers[0].mid is None:
        missing = missing | {"resid_mid"}
    if lm.anatomy.layers[0].down is None:
        missing = missing | {"neuron"}
    return [Site(1, k) for k in KINDS if k not in missing]  # type: ignore[arg-type]


@pytest.mark.parametrize("backend", LIBRARIES)
@pytest.mark.parametrize("name", NAMES)
def test_every_site_is_read_and_edited_as_in_transformers(name: str, backend: str) -> None:
    model = tiny(name, attn="eager")
    ours, theirs = load_model(model), load_model(model, backend=backend)
    sites = sites_of(ours, backend, name)
    with torch.no_grad():
        a, b = ours.run(ids_of(), read=sites), theirs.run(ids_of(), read=sites)
        assert float((a.logits - b.logits).abs().max()) < 1e-5
        for site in sites:
            assert a.acts[site].shape == b.acts[site].shape, site
            assert float((a.acts[site] - b.acts[site]).abs().max()) < 1e-5, site
            x, y = (lm.run(ids_of(), edit={site: lambda v: 1.2 * v + 0.1}).logits for lm in (ours, theirs))
            assert float((x - y).abs().max()) < 1e-5 * max(1.0, float(x.abs().max())), site
            assert not torch.allclose(x, a.logits), site


def test_a_bridge_that_does_not_run_is_refused_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("transformer_lens")
    from transformer_lens.model_bridge import TransformerBridge

    def broken(*_: Any, **__: Any) -> Any:
        raise RuntimeError("Original component not set for model.rotary_emb.")

    monkeypatch.setattr(TransformerBridge, "forward", broken)
    with pytest.raises(ModelError, match=r"bridge of Llama.* does not run: Original component not set.*transformers"):
        load_model(tiny("llama"), backend="transformer_lens")


def test_a_model_for_which_there_is_no_bridge_is_refused_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("transformer_lens")
    from composcope.hooks.backends import transformer_lens

    def unknown(*_: Any, **__: Any) -> Any:
        raise ValueError("Unsupported architecture")

    monkeypatch.setattr(transformer_lens, "build_bridge_from_module", unknown)
    with pytest.raises(ModelError, match=r"transformer_lens: no bridge for Llama.*: Unsupported architecture"):
        load_model(tiny("llama"), backend="transformer_lens")


@pytest.mark.parametrize(("edited", "field", "text"), [(False, "acts", "holds something else"),
                                                        (True, "acts", "holds something else"),
                                                        (True, "logits", "has another effect")])  # fmt: skip
def test_a_hook_point_that_is_not_what_transformers_has_there_is_refused(
    edited: bool, field: str, text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("transformer_lens")
    lm, site = load_model(tiny("llama"), backend="transformer_lens"), Site(1, "neuron")
    right, tried = lm.library._direct, []  # type: ignore[union-attr]

    def other(ids: Any, read: Any, edit: Any) -> Any:
        tried.append((*read, *edit))
        run = right(ids, read, edit)
        acts = {s: 1.1 * x for s, x in run.acts.items()}
        return run._replace(acts=acts) if field == "acts" else run._replace(logits=1.1 * run.logits)

    uses: list[dict[str, Any]] = [{"read": [site]}, {"edit": {site: lambda x: 2 * x}}]
    given, checked = uses[edited], uses[not edited]
    with torch.no_grad():
        lm.run(ids_of(), **checked)  # says nothing about the other use
    monkeypatch.setattr(lm.library, "_direct", other)
    for _ in range(2):
        with pytest.raises(ModelError, match=text), torch.no_grad():
            lm.run(ids_of(), **given)
    assert tried == [(site, site) if edited else (site,)] * 2, "edits are tried out where there are some"
    monkeypatch.undo()
    with torch.no_grad():
        lm.run(ids_of(), **given)


@pytest.mark.parametrize("backend", LIBRARIES)
@pytest.mark.parametrize("name", ["llama", "gpt2", "gemma2"])
def test_gradients_agree(name: str, backend: str) -> None:
    model = tiny(name, attn="eager")
    ours, theirs = load_model(model), load_model(model, backend=backend)
    sites = sites_of(ours, backend, name)
    runs = [lm.run(ids_of(), read=sites) for lm in (ours, theirs)]
    for site in sites:
        a, b = (torch.autograd.grad(r.logits[0, -1, 7], r.acts[site], retain_graph=True)[0] for r in runs)
        assert float((a - b).abs().max()) < 1e-5 * max(1.0, float(a.abs().max())), site
        assert float(a.abs().max()) > 0, site


@pytest.mark.parametrize("backend", LIBRARIES)
def test_padding_caches_and_reducers_work_the_same(backend: str) -> None:
    model = tiny("gpt2", attn="eager")
    ours, theirs = load_model(model), load_model(model, backend=backend)
    ids = ids_of()
    mask = torch.ones_like(ids)
    mask[0, :3] = 0
    site = Site(1, "pattern")
    with torch.no_grad():
        a, b = (lm.run(ids, mask, read={site: lambda p: p[..., -1]}) for lm in (ours, theirs))
        assert torch.allclose(a.logits[mask.bool()], b.logits[mask.bool()], atol=1e-5)
        assert b.acts[site].shape == (2, 4, 9)
        past = ours.prefill(ids[:, :-2])
        a, b = (lm.run(ids[:, -2:], past=past) for lm in (ours, theirs))
        assert torch.allclose(a.logits, b.logits, atol=1e-5)
        assert past.get_seq_length() == 7


def fingerprint(model: Any) -> tuple[Any, ...]:
    hooks = sum(len(m._forward_hooks) + len(m._forward_pre_hooks) for m in model.modules())
    names = [n for n, _ in model.named_modules()]
    return load_model(model).identity, hooks, names, model.config._attn_implementation, "forward" in vars(model)


@pytest.mark.parametrize("backend", LIBRARIES)
def test_the_users_model_is_never_touched_and_shares_its_weights(backend: str) -> None:
    model = tiny("llama")
    before = fingerprint(model)
    lm = load_model(model, backend=backend)
    assert lm.model is model and lm.backend == backend
    lm.run(ids_of(), read=[Site(1, "neuron"), Site(0, "pattern")], edit={Site(2, "resid_mid"): lambda x: 2 * x})

    if backend == "transformer_lens":
        looked_at: Any = lm.library
        kinds = {(site.kind, edited) for site, edited in looked_at.verified}
        assert kinds == {("neuron", False), ("pattern", False), ("resid_mid", True)}, "reading says nothing of edits"

    def stop(x: torch.Tensor) -> torch.Tensor:
        raise RuntimeError("stop here")

    with pytest.raises(Exception, match="stop here"):
        lm.run(ids_of(), edit={Site(1, "neuron"): stop})
    assert fingerprint(model) == before
    with torch.no_grad():
        model.get_input_embeddings().weight.mul_(2)  # type: ignore[operator, union-attr]
        assert torch.allclose(lm.run(ids_of()).logits, model(ids_of()).logits, atol=1e-4)


@pytest.mark.parametrize("stop", [RuntimeError, KeyboardInterrupt])
@pytest.mark.parametrize("backend", LIBRARIES)
def test_nothing_is_left_behind_by_an_exception_or_an_interrupt(backend: str, stop: type[BaseException]) -> None:
    model = tiny("llama")
    lm = load_model(model, backend=backend)
    site, before = Site(1, "neuron"), fingerprint(model)
    with torch.no_grad():
        expected = lm.run(ids_of(), read=[site, Site(0, "pattern")])

    def fail(x: torch.Tensor) -> torch.Tensor:
        raise stop("stop here")

    for kind in ("neuron", "resid_mid", "pattern"):
        with pytest.raises(BaseException, match="stop here"):
            lm.run(ids_of(), read=[Site(0, "head")], edit={Site(1, kind): fail})  # type: ignore[arg-type]
        assert fingerprint(model) == before
    with torch.no_grad():
        after = lm.run(ids_of(), read=[site, Site(0, "pattern")])
    assert torch.equal(after.logits, expected.logits)
    assert all(torch.equal(after.acts[s], expected.acts[s]) for s in expected.acts)


def opened_in(backend: str, model: Any) -> Any:
    if backend == "nnsight":
        return importlib.import_module("nnsight").NNsight(model)
    return getattr(load_model(model, backend=backend).library, "bridge")  # noqa: B009


@pytest.mark.parametrize("backend", LIBRARIES)
@pytest.mark.parametrize("name", ["llama", "gpt2"])
def test_an_object_of_the_library_is_opened_in_it_and_the_probes_run(name: str, backend: str) -> None:
    plain = load_model(tiny(name))
    lm = load_model(opened_in(backend, tiny(name)))
    assert lm.backend == backend
    assert torch.allclose(neurons.attribute(lm, PROMPT, [30]), neurons.attribute(plain, PROMPT, [30]), atol=1e-6)
    with torch.no_grad():
        assert torch.allclose(lm.run(ids_of()).logits, plain.run(ids_of()).logits, atol=1e-5)


@pytest.mark.parametrize("backend", LIBRARIES)
def test_mistakes_with_libraries_are_one_clear_line(backend: str) -> None:
    thing = opened_in(backend, tiny("llama"))
    other = "nnsight" if backend == "transformer_lens" else "transformer_lens"
    for more in ({"backend": other}, {"dtype": "float32"}, {"device": "cpu"}):
        with pytest.raises(ModelError, match="no other backend, dtype or device"):
            load_model(thing, **more)  # type: ignore[arg-type]
    assert load_model(thing, backend=backend).backend == backend
    with pytest.raises(ModelError, match="has 3 layers"):
        load_model(thing).run(ids_of(), read=[Site(3, "neuron")])
    (thing if backend == "transformer_lens" else thing._module).train()
    with pytest.raises(ModelError, match="training mode"):
        load_model(thing)


IDS = torch.tensor([[3, 17, 42, 9]])


def test_a_compiled_model_is_opened_as_the_model_inside(capsys: pytest.CaptureFixture[str]) -> None:
    model = tiny_models.tiny("llama")
    lm = load_model(torch.compile(model))
    assert lm.model is model
    assert lm.notes and lm.notes[-1] in capsys.readouterr().err


def test_a_model_with_an_adapter_is_read_with_the_adapter() -> None:
    peft = pytest.importorskip("peft", reason="peft is not installed (the extra train)")
    model = tiny_models.tiny("llama")
    plain = model(input_ids=IDS).logits
    config = peft.LoraConfig(target_modules=["q_proj", "o_proj", "down_proj"], r=2, init_lora_weights=False)
    adapted = peft.get_peft_model(model, config).eval()
    lm = load_model(adapted)
    run = lm.run(IDS, read=[Site(1, "neuron"), Site(1, "head"), Site(1, "q")])
    assert torch.equal(run.logits, adapted(input_ids=IDS).logits) and not torch.allclose(run.logits, plain)
    assert run.acts[Site(1, "neuron")].shape == (1, 4, 56)
    assert "default" in lm.notes[-1]


@pytest.mark.parametrize(("logit", "refused"), [(float("inf"), True), (float("nan"), True), (-float("inf"), False)])
def test_only_minus_infinity_is_a_logit(logit: float, refused: bool) -> None:
    with pytest.raises(ModelError, match="NaN or infinity in the logits") if refused else nullcontext():
        check_logits(torch.tensor([0.0, logit]), "a model")


def test_virtual_tokens_are_refused() -> None:
    peft = pytest.importorskip("peft", reason="peft is not installed (the extra train)")
    config = peft.PromptTuningConfig(task_type="CAUSAL_LM", num_virtual_tokens=2)
    with pytest.raises(ModelError, match="PROMPT_TUNING"):
        load_model(peft.get_peft_model(tiny_models.tiny("llama"), config).eval())


@pytest.mark.parametrize(("dtype", "limit"), [(torch.float32, 1e-4), (torch.float64, 1e-4), (torch.bfloat16, 5e-2)])
@pytest.mark.parametrize("sign", [1, -1])
def test_values_are_alike_up_to_the_rounding_of_their_largest(dtype: torch.dtype, limit: float, sign: int) -> None:
    plain = torch.tensor([-8.0, 0.5, 2.0], dtype=dtype)
    off = torch.tensor([0.0, sign * 8 * limit, 0.0], dtype=dtype)
    assert close_to(plain + 0.8 * off, plain) and not close_to(plain + 1.2 * off, plain)
    assert not close_to(plain, plain[:2]) and not close_to(plain * float("nan"), plain)
