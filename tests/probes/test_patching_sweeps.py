"""Sweeps over positions and heads, in both directions, and the gradient screen that stands in for them."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from composcope.errors import InputError, NoCasesError
from composcope.hooks import Site, load_model
from composcope.probes import patching
from composcope.probes.patching import positions as sweeps
from composcope.probes.patching.attribution import _agreement
from composcope.probes.patching.positions import undefined

from ..oracles import attribution_patching as oracle
from ..tiny_models import tiny

DONOR, RECIPIENT = [5, 31, 77, 12, 40, 8, 66, 23], [18, 22, 41, 7, 7, 63, 50, 36]
ANSWERS = [(4, 9)]


def logits_with(lm: Any, site: Site, source: list[int], run: list[int], at: Any, width: slice) -> Tensor:
    with torch.no_grad():
        value = lm.run(torch.tensor([source]), read=[site]).acts[site]

        def put(x: Tensor) -> Tensor:
            y = x.clone()
            y[:, at, width] = value[:, at, width]
            return y

        return lm.run(torch.tensor([run]), edit={site: put}).logits[0, -1]


@pytest.mark.parametrize("name", ["llama", "qwen3", "gpt2"])
def test_a_head_sweep_is_one_head_at_a_time_at_all_positions(name: str) -> None:
    lm = load_model(tiny(name))
    got = patching.head_sweep(lm, [DONOR], [RECIPIENT], ANSWERS, max_batch=3)
    d = lm.anatomy.d_head
    assert got.tensors["recovered"].shape == (1, 3, 4) and got.axes["recovered"] == ("pair", "layer", "head")
    for layer, head in ((0, 0), (1, 2), (2, 3)):
        width = slice(head * d, (head + 1) * d)
        logits = logits_with(lm, Site(layer, "head"), DONOR, RECIPIENT, slice(None), width)
        expected = float(logits[4] - logits[9])
        assert float(got.tensors["logit_difference"][0, layer, head]) == pytest.approx(expected, abs=1e-4)
        p = float(logits.softmax(-1)[4])
        assert float(got.tensors["probability"][0, layer, head]) == pytest.approx(p, abs=1e-6)
    last = patching.head_sweep(lm, [DONOR], [RECIPIENT], ANSWERS, layers=[1], positions=[-1])
    logits = logits_with(lm, Site(1, "head"), DONOR, RECIPIENT, -1, slice(d, 2 * d))
    assert float(last.tensors["logit_difference"][0, 0, 1]) == pytest.approx(float(logits[4] - logits[9]), abs=1e-4)


def test_noising_puts_the_failures_activation_into_the_success() -> None:
    lm = load_model(tiny("llama"))
    got = patching.position_sweep(lm, [DONOR], [RECIPIENT], ANSWERS, direction="noising", positions=[2, -1])
    swapped = patching.position_sweep(lm, [RECIPIENT], [DONOR], [(9, 4)], positions=[2, -1])
    assert torch.equal(got.tensors["recovered"], swapped.tensors["recovered"])
    assert got.settings["direction"] == "noising" and swapped.settings["direction"] == "denoising"
    logits = logits_with(lm, Site(0, "resid_post"), RECIPIENT, DONOR, 2, slice(None))
    assert float(got.tensors["logit_difference"][0, 0, 0]) == pytest.approx(float(logits[9] - logits[4]), abs=1e-4)
    # All of the last block's last position: nothing of the run is left.
    assert float(got.tensors["recovered"][0, 2, 1]) == pytest.approx(1, abs=1e-4)


def test_neurons_of_one_expert_are_swept() -> None:
    lm = load_model(tiny("mixtral"))
    got = patching.position_sweep(lm, [DONOR], [RECIPIENT], ANSWERS, kind="neuron", expert=1, layers=[1])
    for position in (1, 7):
        logits = logits_with(lm, Site(1, "neuron", 1), DONOR, RECIPIENT, position, slice(None))
        expected = float(logits[4] - logits[9])
        assert float(got.tensors["logit_difference"][0, 0, position]) == pytest.approx(expected, abs=1e-4)


@pytest.mark.parametrize("name", ["llama", "gemma2", "gpt2", "mistral"])
def test_the_screen_is_the_slope_at_the_unpatched_activation(name: str) -> None:
    lm = load_model(tiny(name).double())
    got = patching.attribution_patching(lm, [DONOR], [RECIPIENT], ANSWERS, verify=0)
    source, run = torch.tensor([DONOR]), torch.tensor([RECIPIENT])
    for layer, position in ((0, 1), (1, 5), (2, 7)):
        block, at = lm.anatomy.layers[layer].block, (slice(position, position + 1), slice(None))
        expected = oracle.slope(lm.model, source, run, block, at, (4, 9))
        assert float(got.tensors["estimate"][0, layer, position]) == pytest.approx(expected, rel=1e-2, abs=1e-3)
    assert bool(got.tensors["patched"].isnan().all()) and not got.table
    assert "verify=0" in got.warnings[0]


def test_the_screen_of_heads_is_the_slope_along_one_heads_output() -> None:
    lm = load_model(tiny("llama").double())
    got = patching.attribution_patching(lm, [DONOR], [RECIPIENT], ANSWERS, units="heads", verify=None)
    real = patching.head_sweep(lm, [DONOR], [RECIPIENT], ANSWERS).tensors["logit_difference"]
    with torch.no_grad():
        last = lm.run(torch.tensor([RECIPIENT])).logits[0, -1]
    assert torch.allclose(got.tensors["patched"], real - float(last[4] - last[9]), atol=1e-4)
    # Head outputs are the input of a linear map; moving them a little moves its output along that head's columns.
    out: Any = lm.anatomy.layers[1].out
    with torch.no_grad():
        site = Site(1, "head")
        a, b = (lm.run(torch.tensor([p]), read=[site]).acts[site][0] for p in (DONOR, RECIPIENT))
    step = torch.zeros_like(a)
    step[:, 8:16] = (a - b)[:, 8:16]

    def moved(size: float) -> float:
        handle = out.register_forward_hook(lambda _m, _a, y: y + size * (step @ out.weight.T))
        with torch.no_grad():
            logits = lm.model(torch.tensor([RECIPIENT])).logits[0, -1]
        handle.remove()
        return float(logits[4] - logits[9])

    slope = (moved(2e-3) - moved(-2e-3)) / 4e-3
    assert float(got.tensors["estimate"][0, 1, 1]) == pytest.approx(slope, rel=1e-2, abs=1e-3)


def test_the_agreement_of_screen_and_patching_is_in_the_table() -> None:
    lm = load_model(tiny("llama"))
    near = [[*DONOR[:3], DONOR[3] + 1, *DONOR[4:]], [*RECIPIENT[:2], 60, *RECIPIENT[3:]]]
    got = patching.attribution_patching(lm, near, [DONOR, RECIPIENT], [(4, 9), (30, 7)], verify=None)
    rows = {r["quantity"]: r for r in got.table}
    assert set(rows) == {"spearman", "pearson", "top_overlap", "slope"} and all(r["n"] == 2 for r in rows.values())
    assert -1 <= rows["spearman"]["low"] <= 1 or rows["spearman"]["low"] < rows["spearman"]["value"]
    assert not bool(got.tensors["patched"].isnan().any())
    # Before the changed token nothing differs; there both are 0.
    assert (
        float(got.tensors["estimate"][0, :, :3].abs().max())
        < 1e-6
        > float(got.tensors["patched"][0, :, :3].abs().max()) - 1e-5
    )
    few = patching.attribution_patching(lm, near, [DONOR, RECIPIENT], [(4, 9), (30, 7)], verify=10)
    known = ~few.tensors["patched"].isnan()
    assert known.sum((1, 2)).tolist() == [10, 10] and few.settings["verified_cells"] == 10
    assert torch.allclose(few.tensors["patched"][known], got.tensors["patched"][known], atol=1e-5)
    other = patching.attribution_patching(lm, near, [DONOR, RECIPIENT], [(4, 9), (30, 7)], verify=10, seed=1)
    assert not torch.equal(~other.tensors["patched"].isnan(), known)


def test_pairs_that_repeat_a_prompt_make_the_agreement_no_more_certain() -> None:
    lm = load_model(tiny("llama"))
    near = [[*DONOR[:i], DONOR[i] + 1, *DONOR[i + 1 :]] for i in range(6)]
    once = patching.attribution_patching(lm, near, [DONOR] * 6, [(4, 9 + i) for i in range(6)], verify=None)
    assert all(r["n"] == 6 and not np.isfinite(r["low"]) for r in once.table)  # one recipient says nothing of others
    far = [[*RECIPIENT[:i], RECIPIENT[i] + 1, *RECIPIENT[i + 1 :]] for i in range(6)]
    apart, twice = (
        patching.attribution_patching(lm, near * n, far * n, ANSWERS * 6 * n, verify=None).table for n in (1, 2)
    )
    for a, b in zip(apart, twice, strict=True):
        assert b["n"] == 2 * a["n"] and b["value"] == pytest.approx(a["value"])
        assert b["high"] - b["low"] > 0.99 * (a["high"] - a["low"]) > 0


def test_small_changes_are_screened_well() -> None:
    """Where source and run are almost the same, first order is all there is."""
    model = tiny("llama")
    lm = load_model(model)
    with torch.no_grad():
        table = model.get_input_embeddings().weight  # type: ignore[union-attr]
        table[90] = table[DONOR[4]] + 1e-3 * torch.randn(32, generator=torch.Generator().manual_seed(0))  # type: ignore[index, operator]
    near = [*DONOR[:4], 90, *DONOR[5:]]
    got = patching.attribution_patching(lm, [near], [DONOR], ANSWERS, kind="attn_out", verify=None)
    values = {r["quantity"]: r["value"] for r in got.table}
    assert values["pearson"] > 0.99 and values["slope"] == pytest.approx(1, abs=0.05)


def test_sweeps_go_on_with_fewer_variants_where_memory_runs_out(monkeypatch: pytest.MonkeyPatch) -> None:
    lm = load_model(tiny("llama"))
    given = (lm, [DONOR] * 2, [RECIPIENT] * 2, ANSWERS * 2)
    sweeps = {"recovered": (patching.position_sweep, patching.head_sweep), "patched": (patching.attribution_patching,)}
    expected = [(name, sweep, sweep(*given).tensors[name]) for name, some in sweeps.items() for sweep in some]
    forward = lm.model.forward

    def small(*args: Any, input_ids: Tensor, **kwargs: Any) -> Any:
        if input_ids.shape[0] > 2:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return forward(*args, input_ids=input_ids, **kwargs)

    monkeypatch.setattr(lm.model, "forward", small)
    for name, sweep, whole in expected:
        got = sweep(*given, max_batch=8)
        said = [f"out of memory with {n} at once; continuing with {n // 2}" for n in (8, 4)]
        assert [w for w in got.warnings if "memory" in w] == said
        assert torch.allclose(got.tensors[name], whole, atol=1e-4, equal_nan=True)


def test_the_prompt_end_sweep_shrinks_its_chunk_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    lm = load_model(tiny("llama"))
    how: dict[str, Any] = {"max_new_tokens": 4, "stop_ids": (), "controls": ("identity",)}
    expected = patching.prompt_end_sweep(lm, [DONOR, RECIPIENT], [RECIPIENT, DONOR], **how)
    forward = lm.model.forward

    def small(*args: Any, input_ids: Tensor, **kwargs: Any) -> Any:
        out = forward(*args, input_ids=input_ids, **kwargs)
        if out.logits.shape[:2].numel() > 6:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return out

    monkeypatch.setattr(lm.model, "forward", small)
    got = patching.prompt_end_sweep(lm, [DONOR, RECIPIENT], [RECIPIENT, DONOR], max_rows=20, **how)
    said = [w for w in got.warnings if "out of memory" in w]
    assert said and said[0] == "out of memory with 20 at once; continuing with 10"
    assert torch.equal(got.tensors["tokens"], expected.tensors["tokens"])
    assert not any("out of memory" in w for w in expected.warnings)


def test_a_pair_is_undefined_where_all_of_its_cells_are() -> None:
    nan = float("nan")
    assert undefined(torch.tensor([[[nan, 1.0]], [[0.0, 1.0]]])) == []
    assert undefined(torch.tensor([[[nan, nan]], [[nan, 1.0]]]))[0].startswith("1 of 2 pairs")


def test_prompts_that_end_differently_are_said() -> None:
    lm = load_model(tiny("llama"))
    how: dict[str, Any] = {"max_new_tokens": 1, "controls": ()}
    assert "end with 2 different tokens" in patching.prompt_end_sweep(lm, [DONOR], [RECIPIENT], **how).warnings[0]
    assert not patching.prompt_end_sweep(lm, [DONOR], [[*RECIPIENT, DONOR[-1]]], **how).warnings


def test_bad_input_is_refused_by_name() -> None:
    lm = load_model(tiny("llama"))
    args = ([DONOR], [RECIPIENT], ANSWERS)
    for act, text in (
        (lambda: patching.position_sweep(lm, *args, positions=[8]), r"8 tokens \(0-7\)"),
        (lambda: patching.head_sweep(lm, *args, positions=[]), "positions"),
        (lambda: patching.head_sweep(lm, [DONOR[1:]], [RECIPIENT], ANSWERS), "equally long"),
        (lambda: patching.head_sweep(lm, [DONOR], [RECIPIENT], [(4, 97)]), "answers of pair 0"),
        (lambda: patching.position_sweep(lm, *args, direction="up"), "denoising or noising"),  # type: ignore[arg-type]
        (lambda: patching.attribution_patching(lm, *args, units="neurons"), "positions or heads"),  # type: ignore[arg-type]
        (lambda: patching.attribution_patching(lm, *args, verify=-1), "verify -1"),
        (lambda: patching.attribution_patching(lm, *args, kind="pattern"), "pattern"),
    ):
        with pytest.raises(InputError, match=text):
            act()
    with pytest.raises(NoCasesError):
        patching.head_sweep(lm, [], [], [])


def test_the_tops_of_screen_and_patches_are_the_largest_changes_of_either_sign() -> None:
    guess = torch.tensor([[[-9.0, 2.0, 1.0, 0, 0, 0, 0, 0, 0, 0]]])
    real = torch.tensor([[[-9.0, 1.0, 2.0, 0, 0, 0, 0, 0, 0, 0]]])
    found = _agreement(guess, real)
    assert found["top_overlap"] == [1.0] and found["slope"] == [pytest.approx((81 + 4) / 86)]
    few = [_agreement(guess[..., :n], real[..., :n]) for n in (2, 3)]
    assert [{q: v[0] is not None for q, v in f.items()} for f in few] == [dict.fromkeys(found, n > 2) for n in (2, 3)]


NAN = float("nan")


def test_a_cell_is_the_part_of_its_head() -> None:
    x = list(range(12))
    assert [x[sweeps.Cell((0,), h, 4).part(12)] for h in (0, 3)] == [[0, 1, 2], [9, 10, 11]] and x[
        sweeps.Cell((0,)).part(12)
    ] == x
    assert sweeps._within([0, -1, 3], 4) == [0, 3, 3]
    for wrong in ([], [4], [-5], [0, 4]):
        with pytest.raises(InputError, match="4 tokens"):
            sweeps._within(wrong, 4)
    lm: Any = SimpleNamespace(
        anatomy=SimpleNamespace(n_layers=3, heads=lambda layer: (4 + (layer == 2), 2), vocab_size=10)
    )
    assert sweeps.chosen_layers(lm, None) == [0, 1, 2] and sweeps.chosen_layers(lm, [2, 0]) == [2, 0]
    for bad in ([], [3], [0, -1], [0, 3]):
        with pytest.raises(InputError, match="0-2"):
            sweeps.chosen_layers(lm, bad)
    assert sweeps.head_count(lm, [0, 1]) == 4
    with pytest.raises(InputError, match=r"\[4, 5\] heads"):
        sweeps.head_count(lm, [1, 2])
    check: Any = sweeps.check_pairs
    pairs: Any = ([[1, 2]], [[3, 4]], [(5, 6)])
    assert check(lm, *pairs, "mlp_out", "denoising") == [([1, 2], [3, 4], (5, 6))]
    assert check(lm, *pairs, "mlp_out", "noising") == [([3, 4], [1, 2], (6, 5))]
    for i, change in ((2, [(5, 10)]), (2, [(5, -1)]), (1, [[3]]), (0, [])):
        given: list[Any] = list(pairs)
        given[i] = change
        with pytest.raises((InputError, NoCasesError)):
            check(lm, *given, "mlp_out", "denoising")
    for kind, direction in (("q", "denoising"), ("mlp_out", "both")):
        with pytest.raises(InputError):
            check(lm, *pairs, kind, direction)


def test_measures_of_a_patch_are_shares_of_the_way_from_one_run_to_the_other() -> None:
    ends = torch.tensor([[3.0, 0, 1], [1.0, 2, 0]], dtype=torch.float64)
    patched = torch.tensor([[[3.0, 0, 1], [1, 2, 0], [1, 0, 5]]], dtype=torch.float64)
    found = sweeps.measures(patched, ends, (0, 1))
    assert found["recovered"][0].tolist() == [1, 0, 0.5] and found["logit_difference"][0].tolist() == [3, -1, 1]
    p, q = patched[0].softmax(-1), ends[1].softmax(-1)
    assert found["probability"][0].tolist() == pytest.approx(p[:, 0].tolist())
    assert found["kl"][0].tolist() == pytest.approx([float((q * (q / row).log()).sum()) for row in p], abs=1e-9)
    level = sweeps.measures(patched, ends[[0, 0]], (0, 1))["recovered"]
    assert level.isnan().all()


def test_the_best_place_of_a_sweep_is_the_largest_mean_over_pairs() -> None:
    recovered = torch.tensor([[0.1, 0.9, NAN], [0.3, 0.2, NAN]])
    row = sweeps._best(recovered, 4, [7, 8, 9], "position")
    assert (row["layer"], row["position"], row["n"], row["value"]) == (4, 8, 2, pytest.approx(0.55))
    some = sweeps._best(torch.tensor([[NAN, 0.2, 0.3], [0.9, 0.1, 0.3]]), 4, [7, 8, 9], "position")
    assert (some["position"], some["n"], some["value"]) == (7, 1, pytest.approx(0.9)), "over the pairs that have one"
    none = sweeps._best(torch.full((2, 3), NAN), 4, [7, 8, 9], "position")
    assert (none["position"], none["n"]) == (7, 0)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float64])
def test_the_default_dtype_of_torch_changes_no_number(dtype: torch.dtype) -> None:
    lm = load_model(tiny("llama"))

    def measured() -> dict[str, Tensor]:
        swept = patching.prompt_end_sweep(lm, [DONOR], [RECIPIENT], max_new_tokens=2, keep="all", stop_ids=())
        screened = patching.attribution_patching(lm, [DONOR], [RECIPIENT], ANSWERS, verify=4)
        return {**swept.tensors, **screened.tensors}

    usual, before = measured(), torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    try:
        found = measured()
    finally:
        torch.set_default_dtype(before)
    for name, x in usual.items():
        assert x.dtype == found[name].dtype and torch.equal(x.nan_to_num(-1), found[name].nan_to_num(-1)), name
