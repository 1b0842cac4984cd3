"""Models whose weights are somewhere else, or not plain: offloaded by accelerate, quantized, packed."""

from __future__ import annotations

import warnings
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from transformers import AutoModelForCausalLM

from composcope.errors import ModelError
from composcope.hooks import Model, Site, load_model
from composcope.hooks.placement import loaded, state_of, tensors_in
from composcope.hooks.sites import KINDS
from composcope.probes import lookback, min_k, neurons, patching, trajectory

from ..tiny_models import tiny

PROMPT, OTHER, RESPONSE = [5, 31, 77, 12, 40, 8, 66, 23], [9, 9, 51, 80, 17], [9, 9, 51]
IDS = torch.tensor([PROMPT])


def placed(name: str, folder: Path) -> Any:
    """The model with its embedding, its second block, its norm and its head on disk."""
    tiny(name).save_pretrained(folder / "model")
    if name == "gpt2":
        parts = {"wte": "disk", "wpe": "cpu", "h.0": "cpu", "h.1": "disk", "h.2": "cpu", "ln_f": "disk"}
        where = {**{f"transformer.{k}": v for k, v in parts.items()}, "lm_head": "disk"}
    else:
        parts = {"embed_tokens": "disk", "layers.0": "cpu", "layers.1": "disk", "layers.2": "cpu", "norm": "disk"}
        where = {**{f"model.{k}": v for k, v in parts.items()}, "model.rotary_emb": "cpu", "lm_head": "disk"}
    return AutoModelForCausalLM.from_pretrained(
        folder / "model", device_map=where, offload_folder=folder / "away", dtype=torch.float32
    ).eval()


def same(a: Any, b: Any) -> bool:
    return torch.allclose(torch.as_tensor(a).double(), torch.as_tensor(b).double(), atol=1e-6, equal_nan=True)


def assert_alike(one: Model, other: Model, atol: float) -> None:
    """Both are read alike at every kind of site, and the same neurons push the same token."""
    sites = [Site(1, k) for k in KINDS]  # type: ignore[arg-type]
    with torch.no_grad():
        a, b = one.run(IDS, read=sites), other.run(IDS, read=sites)
    for found, wanted in ((a.acts[s], b.acts[s]) for s in sites):
        torch.testing.assert_close(found, wanted, atol=atol, rtol=atol)
    mine, theirs = (neurons.attribute(lm, PROMPT, [30]) for lm in (one, other))
    torch.testing.assert_close(mine, theirs, atol=atol / 10, rtol=atol)


@pytest.mark.parametrize("name", ["gemma2", "mixtral", "gpt2"])
def test_offloaded_models_are_read_edited_and_probed_as_if_they_were_here(name: str, tmp_path: Path) -> None:
    away, here = load_model(placed(name, tmp_path)), load_model(tiny(name))
    assert any(p.device.type == "meta" for p in away.model.parameters())
    assert away.identity == here.identity
    head: Any = away.model.get_output_embeddings()
    with loaded(head):
        assert head.weight.device.type == "cpu"
    assert head.weight.device.type == "meta", "put away again"
    sites = [Site(1, k, 0 if k == "neuron" and name == "mixtral" else None) for k in KINDS]  # type: ignore[arg-type]
    with torch.no_grad():
        a, b = away.run(IDS, read=sites), here.run(IDS, read=sites)
        assert all(torch.equal(a.acts[s], b.acts[s]) for s in sites)
        for site in sites:
            edited = [lm.run(IDS, edit={site: lambda x: 1.3 * x + 0.1}).logits for lm in (away, here)]
            assert torch.equal(*edited) and not torch.equal(edited[0], a.logits)
    for probe in (
        lambda lm: neurons.attribute(lm, PROMPT, [30]),
        lambda lm: neurons.causal_check(lm, [PROMPT], [[30]], [[(1, 3), (2, 4)]], draws=2).random_amplified,
        lambda lm: lookback.ratios(lm, [PROMPT], [RESPONSE], 2)[0],
        lambda lm: patching.prompt_end_sweep(lm, [OTHER], [PROMPT], max_new_tokens=3).tensors["tokens"],
        lambda lm: min_k.score(lm, [PROMPT]).min_k_pp,
        lambda lm: trajectory.prompt_end_states(lm, [PROMPT]),
    ):
        assert same(probe(away), probe(here))
    assert all(p.device.type in ("meta", "cpu") for p in away.model.parameters())
    assert any(p.device.type == "meta" for p in away.model.parameters())


@pytest.mark.parametrize("backend", ["transformer_lens", "nnsight"])
def test_offloaded_models_run_in_other_libraries_too(backend: str, tmp_path: Path) -> None:
    pytest.importorskip(backend)
    model = placed("llama", tmp_path)
    away, here = load_model(model, backend=backend), load_model(tiny("llama"))
    sites = [Site(1, k) for k in KINDS]  # type: ignore[arg-type]
    with torch.no_grad():
        a, b = away.run(IDS, read=sites), here.run(IDS, read=sites)
        assert torch.allclose(a.logits, b.logits, atol=1e-4)
        assert all(torch.allclose(a.acts[s], b.acts[s], atol=1e-4) for s in sites)
    assert any(p.device.type == "meta" for p in model.parameters())
    if backend == "nnsight":
        import nnsight

        with pytest.raises(ModelError, match="with offloaded weights"):
            load_model(nnsight.NNsight(model))


def test_what_identifies_packed_weights_holds_their_scales_and_every_piece() -> None:
    layer: Any = nn.Linear(2, 3)
    layer.weight.quant_state = SimpleNamespace(packing_format_for_cpu=True, absmax=torch.ones(1), blocksize=64)
    assert [name for name, _ in state_of(nn.Sequential(layer))] == ["0.bias", "0.weight", "0.weight.absmax"]
    assert list(tensors_in((1, [2, (3,)], 4))) == [1, 2, 3, 4]


class Kept(nn.Module):
    """Keeps a state of its own in a checkpoint, as quantized modules do."""

    def __init__(self, *state: Any):
        super().__init__()
        self.state = state

    def get_extra_state(self) -> Any:
        return self.state


def test_type_shape_numbers_and_settings_are_part_of_what_identifies_weights() -> None:
    def identity(*state: Any) -> str:
        model: Any = tiny("llama")
        model.kept = Kept(*state)
        return load_model(model).identity

    kept = [
        (torch.zeros(2),), (torch.zeros(1, 2),), (torch.zeros(2, dtype=torch.int32),), (torch.ones(2),),
        (torch.zeros(2), 64), (torch.zeros(2), 32), (torch.zeros(1), torch.zeros(1)),
        *((torch.quantize_per_tensor(torch.tensor([x]), 0.5, 0, torch.qint8),) for x in (0.0, 1.0)),
    ]  # fmt: skip
    names = [identity(*state) for state in kept]
    assert len(set(names)) == len(kept) and identity(torch.zeros(2), 64) == names[4]


class Int8Linear(nn.Module):
    """Eight-bit weights with a scale per row, unpacked on the way: differentiable in its input, no float weight."""

    def __init__(self, old: nn.Linear):
        super().__init__()
        self.in_features, self.out_features = old.in_features, old.out_features
        scale = old.weight.detach().abs().amax(1, keepdim=True) / 127
        self.weight = nn.Parameter((old.weight.detach() / scale).round().to(torch.int8), requires_grad=False)
        self.register_buffer("scale", scale)
        self.bias = old.bias

    def forward(self, x: Tensor) -> Tensor:
        scale: Any = self.scale
        return nn.functional.linear(x, self.weight.float() * scale, self.bias)


class PackedLinear(nn.Module):
    """Two four-bit weights to a byte, as GPTQ-like formats have them: no attribute called weight at all."""

    def __init__(self, old: nn.Linear):
        super().__init__()
        self.in_features, self.out_features = old.in_features, old.out_features
        scale = old.weight.detach().abs().amax(1, keepdim=True) / 7
        codes = ((old.weight.detach() / scale).round() + 8).to(torch.uint8)
        self.register_buffer("qweight", codes[:, ::2] * 16 + codes[:, 1::2])
        self.register_buffer("scale", scale)

    def forward(self, x: Tensor) -> Tensor:
        packed: Any = self.qweight
        scale: Any = self.scale
        codes = torch.stack([packed // 16, packed % 16], -1).flatten(1).float() - 8
        return x @ (codes * scale).T


def replaced(model: Any, make: Any, head: bool = False) -> Any:
    for block in model.model.layers:
        for part in (block.self_attn, block.mlp):
            for child, module in list(part.named_children()):
                if isinstance(module, nn.Linear):
                    setattr(part, child, make(module))
    if head:
        model.lm_head = make(model.lm_head)
    return model


def plain(model: Any) -> Model:
    """The same function with ordinary weights."""

    def unpack(module: Any) -> nn.Linear:
        out = nn.Linear(module.in_features, module.out_features, bias=False)
        with torch.no_grad():
            out.weight.copy_(module(torch.eye(module.in_features)).T)
        return out

    out = tiny("llama")
    for mine, theirs in zip(out.model.layers, model.model.layers, strict=True):  # type: ignore[union-attr, arg-type]
        for part in ("self_attn", "mlp"):
            for child, module in list(getattr(theirs, part).named_children()):
                if hasattr(module, "out_features"):
                    setattr(getattr(mine, part), child, unpack(module))
    return load_model(out)


@pytest.mark.parametrize("make", [Int8Linear, PackedLinear])
def test_quantized_modules_give_what_their_unpacked_weights_give(make: type[nn.Module]) -> None:
    model = replaced(tiny("llama"), make)
    lm, here = load_model(model), plain(model)
    assert_alike(lm, here, 1e-5)
    found = [patching.prompt_end_sweep(m, [OTHER], [PROMPT], max_new_tokens=3).tensors["tokens"] for m in (lm, here)]
    assert torch.equal(*found)
    assert torch.allclose(
        lookback.ratios(lm, [PROMPT], [RESPONSE], 2)[0], lookback.ratios(here, [PROMPT], [RESPONSE], 2)[0]
    )
    assert min_k.score(lm, [PROMPT]).min_k_pp[0] == pytest.approx(min_k.score(here, [PROMPT]).min_k_pp[0], rel=1e-4)
    assert lm.identity != here.identity


@pytest.mark.parametrize("make", [Int8Linear, PackedLinear])
def test_a_quantized_head_is_refused_by_name_where_its_weight_is_needed(make: type[nn.Module]) -> None:
    lm = load_model(replaced(tiny("llama"), make, head=True))
    with pytest.raises(ModelError, match=f"no readable output head.*{make.__name__}.*unquantized"):
        min_k.score(lm, [PROMPT])
    assert neurons.attribute(lm, PROMPT, [30]).shape == (3, 56)


class Packed(torch.Tensor):
    """A tensor without memory of its own, made of others, as torchao's are: codes and a scale per row."""

    codes: Tensor
    scale: Tensor

    @staticmethod
    def __new__(cls, codes: Tensor, scale: Tensor) -> Any:
        return torch.Tensor._make_wrapper_subclass(cls, codes.shape, dtype=scale.dtype, device=codes.device)

    def __init__(self, codes: Tensor, scale: Tensor):
        self.codes, self.scale = codes, scale

    def __tensor_flatten__(self) -> Any:
        return ["codes", "scale"], None

    def __repr__(self, **_: Any) -> str:
        return "Packed"

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func is torch.ops.aten.detach.default:
            return cls(args[0].codes, args[0].scale)

        def plain(x: Any) -> Any:
            return x.codes.to(x.scale.dtype) * x.scale if isinstance(x, Packed) else x

        return func(*[plain(x) for x in args], **(kwargs or {}))


def packed(model: Any) -> Any:
    for module in (m for block in model.model.layers for m in block.modules() if isinstance(m, nn.Linear)):
        scale = module.weight.detach().abs().amax(1, keepdim=True) / 127
        codes = (module.weight.detach() / scale).round().to(torch.int8)
        module.weight = nn.Parameter(Packed(codes, scale), requires_grad=False)
    return model


def test_tensors_made_of_tensors_are_read_and_name_the_model_by_what_they_hold() -> None:
    lm, other, scaled = load_model(packed(tiny("llama"))), packed(tiny("llama")), packed(tiny("llama"))
    here = plain(replaced(tiny("llama"), Int8Linear))
    assert isinstance(lm.model.model.layers[1].mlp.down_proj.weight, Packed)  # type: ignore[union-attr, index]
    assert_alike(lm, here, 1e-5)
    assert load_model(packed(tiny("llama"))).identity == lm.identity
    other.model.layers[2].mlp.down_proj.weight.codes[0, 0] += 1
    assert load_model(other).identity != lm.identity, "one code of one weight"
    scaled.model.layers[2].mlp.down_proj.weight.scale[0] *= 2
    assert load_model(scaled).identity != lm.identity, "one scale of one row"


def test_weights_that_are_packed_tensors_are_not_widened() -> None:
    half: Any = tiny("llama").bfloat16()
    lm = load_model(packed(half))
    with pytest.raises(ModelError, match=r"q_proj.weight is offloaded or quantized \(Packed\); leave out rows_dtype"):
        neurons.attribute_many(lm, [PROMPT], [[30]], 4, rows_dtype="float32")
    assert neurons.attribute(lm, PROMPT, [30], 4).shape == (3, 56)


class Repacking(Int8Linear):
    """As bitsandbytes' four-bit layers on a CPU: packed for its kernel, and not quite unpacked when they are saved."""

    def __init__(self, old: nn.Linear):
        super().__init__(old)
        self.weight.quant_state = SimpleNamespace(packing_format_for_cpu=True, absmax=self.scale)  # type: ignore[attr-defined]

    def _save_to_state_dict(self, destination: Any, prefix: str, keep_vars: bool) -> None:
        self.weight.quant_state.packing_format_for_cpu = False  # type: ignore[attr-defined]
        self.weight.data = self.weight.data // 2 * 2
        super()._save_to_state_dict(destination, prefix, keep_vars)


def test_naming_a_model_leaves_weights_alone_that_change_when_they_are_saved() -> None:
    lm, other = load_model(replaced(tiny("llama"), Repacking)), replaced(tiny("llama"), Repacking)
    before = lm.run(IDS).logits
    names = {lm.identity, load_model(replaced(tiny("llama"), Repacking)).identity}
    assert len(names) == 1 and torch.equal(lm.run(IDS).logits, before)
    other.model.layers[1].mlp.down_proj.weight.quant_state.absmax[3] *= 2
    assert load_model(other).identity not in names, "one scale of one weight"
    saved = lm.model.model.layers[0].mlp.down_proj  # type: ignore[union-attr, index]
    saved.state_dict()
    assert not torch.equal(lm.run(IDS).logits, before), "a plain state_dict writes them"


def test_layers_that_spell_their_widths_as_gptq_kernels_do_are_found() -> None:
    model = replaced(tiny("llama"), Int8Linear)
    for module in [m for m in model.modules() if isinstance(m, Int8Linear)]:
        module.outfeatures = module.out_features  # type: ignore[assignment]
        del module.out_features
    lm, here = load_model(model), load_model(replaced(tiny("llama"), Int8Linear))
    assert_alike(lm, here, 0)


class Kernel(Int8Linear):
    """As inference kernels are: no derivative."""

    @torch.no_grad()
    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x)


GRADIENTS: list[Any] = [
    lambda m: neurons.attribute(m, PROMPT, [30]),
    lambda m: neurons.attribute(m, PROMPT, [30], 8, "reference"),
    lambda m: patching.attribution_patching(m, [PROMPT], [PROMPT[::-1]], [(4, 9)]),
]


@pytest.mark.parametrize("part", ["self_attn.o_proj", "mlp.down_proj", "mlp.gate_proj", "head"])
def test_gradients_that_only_pass_around_a_kernel_are_refused(part: str) -> None:
    model: Any = tiny("llama")
    if part == "head":
        path, model.lm_head = "lm_head", Kernel(model.lm_head)
    else:
        path = f"model.layers.2.{part}"
        parent, _, child = part.partition(".")
        holder = getattr(model.model.layers[2], parent)
        setattr(holder, child, Kernel(getattr(holder, child)))
    lm = load_model(model)
    for needs in GRADIENTS:
        with pytest.raises(ModelError, match=rf"no gradient (passes through {path} \(Kernel\)|reaches)"):
            needs(lm)
    assert not any(m._forward_hooks or m._forward_pre_hooks for m in model.modules())


def test_a_norm_without_gradients_is_found_though_it_has_no_width_of_its_own() -> None:
    model: Any = tiny("llama")
    norm = model.model.layers[1].post_attention_layernorm
    norm.forward = torch.no_grad()(norm.forward)
    with pytest.raises(ModelError, match=r"through model.layers.1.post_attention_layernorm \(LlamaRMSNorm\)"):
        GRADIENTS[0](load_model(model))


def test_kernels_without_gradients_are_refused_by_the_probe_that_needs_them_and_by_no_other() -> None:
    lm, here = load_model(replaced(tiny("llama"), Kernel)), load_model(replaced(tiny("llama"), Int8Linear))
    for needs in GRADIENTS:
        with pytest.raises(ModelError, match=r"no gradient passes through model.layers.0.self_attn.q_proj \(Kernel\)"):
            needs(lm)
    for probe in (
        lambda m: patching.prompt_end_sweep(m, [OTHER], [PROMPT], max_new_tokens=3).tensors["tokens"],
        lambda m: neurons.causal_check(m, [PROMPT], [[30]], [[(1, 3)]], draws=2).suppressed,
        lambda m: min_k.score(m, [PROMPT]).min_k_pp,
    ):
        assert same(probe(lm), probe(here))


def test_kernels_that_quantize_activations_are_read_but_not_recomputed_in_rows() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            model = torch.ao.quantization.quantize_dynamic(tiny("llama"), {nn.Linear}, dtype=torch.qint8)
        except (RuntimeError, AttributeError, NotImplementedError) as e:
            pytest.skip(f"this torch has no dynamic quantization: {e}")
    lm = load_model(model)
    assert "quantized" in type(lm.anatomy.layers[0].out).__module__
    with torch.no_grad():
        sites = [Site(1, k) for k in KINDS]  # type: ignore[arg-type]
        run = lm.run(IDS, read=sites)
        assert torch.equal(run.logits, model(IDS).logits)
    assert len(lm.identity) == 64 and lm.identity != load_model(tiny("llama")).identity
    for probe in (
        lambda: patching.prompt_end_sweep(lm, [OTHER], [PROMPT], max_new_tokens=3),
        lambda: neurons.attribute(lm, PROMPT, [30]),
    ):
        with pytest.raises(ModelError, match=r"differs from the full forward pass"):
            probe()
    with pytest.raises(ModelError, match="no readable output head"):
        min_k.score(lm, [PROMPT])
