"""One row of a pattern, and the logits of some positions: what is not asked for is not computed."""

from __future__ import annotations

import importlib.util
from typing import Any

import numpy as np
import pytest
import torch

from composcope.errors import ModelError
from composcope.hooks import Site, attention, load_model

from ..tiny_models import CONFIGS, tiny

LIBRARIES = [b for b in ("transformer_lens", "nnsight") if importlib.util.find_spec(b)]
IDS = torch.randint(5, 90, (2, 9), generator=torch.Generator().manual_seed(4))
MASK = torch.ones_like(IDS)
MASK[1, 7:] = 0  # padding on the right


@pytest.mark.parametrize("name", [*CONFIGS, "granite_swa", "inkling_text"])
def test_a_row_is_that_of_the_whole_pattern_on_every_architecture(name: str) -> None:
    lm = load_model(tiny(name))
    whole, queries = Site(1, "pattern"), (0, 4, 6, -1)
    rows = [Site(1, "pattern", query=i) for i in queries]
    with torch.no_grad():
        plain = lm.run(IDS, MASK, read=[whole])
        run = lm.run(IDS, MASK, read=[*rows, Site(1, "pattern", head=1, query=4)])
        both = lm.run(IDS, MASK, read=[whole, *rows])
    with_gradients = lm.run(IDS, MASK, read=[whole, rows[1]]).logits
    assert torch.allclose(with_gradients, plain.logits, atol=1e-5 * float(plain.logits.abs().max()))
    assert torch.equal(run.logits, plain.logits)
    for site, i in zip(rows, queries, strict=True):
        assert run.acts[site].shape == (2, plain.acts[whole].shape[1], 9)
        assert torch.allclose(run.acts[site], plain.acts[whole][:, :, i], atol=1e-6), i
        assert torch.equal(both.acts[site], plain.acts[whole][:, :, i])
    assert torch.equal(run.acts[Site(1, "pattern", head=1, query=4)], run.acts[rows[1]][:, 1])


def test_a_pattern_that_does_not_make_the_output_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    eager = attention._eager
    monkeypatch.setattr(attention, "_eager", lambda m: lambda *a, **k: (1 + eager(m)(*a, **k)[0], eager(m)(*a, **k)[1]))
    with pytest.raises(ModelError, match="LlamaAttention: its output is not its pattern times the values"):
        load_model(tiny("llama")).run(IDS, read=[Site(1, "pattern")])


def test_patterns_in_float16_are_read_beside_rows_that_see_nothing_and_nan_is_refused_as_such() -> None:
    model: Any = tiny("gpt2").half()  # type: ignore[arg-type]
    model.set_attn_implementation("sdpa")
    lm, site = load_model(model), Site(1, "pattern")
    for block in model.transformer.h:  # scores that overflow together with the smallest number of this type
        block.attn.c_attn.weight.data[:, :64] *= 8
    ids = torch.randint(3, 97, (2, 12), generator=torch.Generator().manual_seed(1))
    mask = torch.ones_like(ids)
    mask[0, :7] = 0
    assert torch.isfinite(lm.run(ids, mask, read=[site]).acts[site]).all()
    model.transformer.h[1].attn.c_attn.bias.data[64:] = float("nan")
    with pytest.raises(ModelError, match="NaN or infinity in the logits"):
        lm.run(ids, read=[site])


@pytest.mark.parametrize("name", ["llama", "gemma2", "gpt2", "gpt_oss", "mistral", "granite_swa"])
def test_edited_rows_have_the_effect_of_the_same_edits_in_the_whole_pattern(name: str) -> None:
    lm = load_model(tiny(name))

    def first_only(pattern: torch.Tensor) -> torch.Tensor:
        pattern[..., 1:] = 0
        return pattern

    whole = Site(1, "pattern")
    for queries in ((5,), (5, -2)):

        def in_whole(pattern: torch.Tensor, queries: tuple[int, ...] = queries) -> torch.Tensor:
            for i in queries:
                pattern[:, :, i] = first_only(pattern[:, :, i])
            return pattern

        rows = [Site(1, "pattern", query=i) for i in queries]
        edits = dict.fromkeys(rows, first_only)
        with torch.no_grad():
            expected = lm.run(IDS, edit={whole: in_whole}, read=[whole])
            run = lm.run(IDS, edit=edits, read=rows)
            after = lm.run(IDS, edit={**edits, whole: lambda x: x * 0.5}).logits
            halves = lm.run(IDS, edit={whole: lambda x, put=in_whole: put(x * 0.5)}).logits
            assert not torch.allclose(run.logits, lm.run(IDS).logits, atol=1e-3)
        assert torch.allclose(run.logits, expected.logits, atol=1e-5), queries
        for row, i in zip(rows, queries, strict=True):
            assert torch.allclose(run.acts[row], expected.acts[whole][:, :, i], atol=1e-6)
        assert torch.allclose(after, halves, atol=1e-5), "the whole is edited first"


@pytest.mark.parametrize("name", ["llama", "qwen3", "gpt2"])
def test_gradients_of_a_row_are_those_of_the_whole_pattern(name: str) -> None:
    lm = load_model(tiny(name).double())
    whole, row = Site(1, "pattern"), Site(1, "pattern", query=-2)
    for sites in ([row], [whole, row]):
        run, plain = lm.run(IDS, read=sites), lm.run(IDS, read=[whole])
        (found,) = torch.autograd.grad(run.logits[0, -1, 7], run.acts[row])
        (expected,) = torch.autograd.grad(plain.logits[0, -1, 7], plain.acts[whole])
        assert float(expected[:, :, -2].abs().max()) > 0
        assert torch.allclose(found, expected[:, :, -2], atol=1e-6)  # softmax in float32


def test_only_the_row_that_is_read_is_computed(monkeypatch: pytest.MonkeyPatch) -> None:
    lm = load_model(tiny("llama"))
    seen: list[int] = []
    explicit = attention.explicit_pattern

    def counted(call: Any) -> torch.Tensor:
        seen.append(call.query.shape[2])
        return explicit(call)

    monkeypatch.setattr(attention, "explicit_pattern", counted)
    with torch.no_grad():
        lm.run(IDS, read=[Site(1, "pattern", query=-1), Site(1, "pattern", query=3), Site(2, "pattern")])
        past = lm.prefill(IDS[:, :-2])
        assert seen == [1, 1, 9]
        tail = lm.run(IDS[:, -2:], past=past, read=[Site(1, "pattern", query=0)]).acts
    assert torch.allclose(
        tail[Site(1, "pattern", query=0)], lm.run(IDS, read=[Site(1, "pattern")]).acts[Site(1, "pattern")][:, :, -2],
        atol=1e-6,
    )  # fmt: skip


@pytest.mark.parametrize("backend", LIBRARIES)
def test_the_other_libraries_give_the_same_rows_and_logits(backend: str) -> None:
    model = tiny("gpt2", attn="eager")
    ours, theirs = load_model(model), load_model(model, backend=backend)
    row, whole = Site(1, "pattern", query=3), Site(1, "pattern")

    def halved(x: torch.Tensor) -> torch.Tensor:
        return x * 0.5

    for edit in ({}, {row: halved}, {row: halved, whole: lambda x: x * 0.9}):
        with torch.no_grad():
            a, b = (lm.run(IDS, read=[row, whole], edit=edit, logits_at=[-1, 2]) for lm in (ours, theirs))
        assert a.logits.shape == (2, 2, a.logits.shape[-1])
        assert torch.allclose(a.logits, b.logits, atol=1e-5)
        for site in (row, whole):
            assert torch.allclose(a.acts[site], b.acts[site], atol=1e-5)


@pytest.mark.parametrize("name", ["llama", "gemma2", "gpt2", "mixtral"])
def test_only_the_logits_that_are_asked_for_are_computed(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    lm = load_model(tiny(name))
    sizes: list[int] = []
    head = lm.model.get_output_embeddings()
    assert head is not None
    site = Site(1, "resid_post")
    with torch.no_grad():
        every = lm.run(IDS, MASK, read=[site])
        with head.register_forward_pre_hook(lambda _, args: sizes.append(args[0].shape[1])):
            found = {at: lm.run(IDS, MASK, read=[site], logits_at=at) for at in ((-1,), (6, 0), (), (-9,))}
        for same in (np.array([6, 0]), torch.tensor([6, 0]), [np.int64(6), 0]):
            assert torch.equal(lm.run(IDS, MASK, logits_at=same).logits, found[6, 0].logits)  # type: ignore[arg-type]
        assert torch.equal(lm.run(IDS.to(torch.uint8), MASK.bool()).logits, every.logits)
    assert sizes == [1, 2, 0, 1]
    for at, run in found.items():
        assert torch.equal(run.acts[site], every.acts[site])
        assert run.logits.shape == (2, len(at), every.logits.shape[-1])
        assert torch.allclose(run.logits, every.logits[:, list(at)], atol=1e-5)
    monkeypatch.setattr(lm.model, "_supports_logits_to_keep", lambda: False)  # some compute all of them
    assert torch.equal(lm.run(IDS, MASK, logits_at=[6, 0]).logits, every.logits[:, [6, 0]])


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"read": [Site(1, "pattern", query=9)]}, "0-8"),
        ({"read": [Site(1, "pattern"), Site(1, "pattern", query=-10)]}, "0-8"),
        ({"read": [Site(1, "resid_post", query=0)]}, "query=0"),
        ({"edit": {Site(1, "pattern", query="last"): lambda x: x}}, "last"),  # type: ignore[arg-type]
        ({"logits_at": [9]}, "0-8"),
        ({"logits_at": [-10]}, "0-8"),
        ({"logits_at": [0.5]}, "0.5"),
        ({"logits_at": 1}, "logits_at 1: give a list of positions"),
        ({"mask": torch.where(MASK == 1, 0.0, -1e9)}, "mask: holds other values than 1 for real tokens"),
        ({"mask": MASK.cumsum(1)}, "mask: holds other values than 1 for real tokens"),
    ],
)
def test_a_position_that_is_not_there_is_named(given: dict[str, Any], said: str) -> None:
    with pytest.raises(ModelError, match=said):
        load_model(tiny("llama")).run(IDS, **given)
