"""Neurons and patching in float32 on half-precision weights, and how far half precision is from that."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from scipy import stats
from tiny_models import tiny
from torch import Tensor

from composcope.errors import InputError, ModelError
from composcope.experiments.distributed.store import entry_key
from composcope.hooks import load_model
from composcope.probes import neurons, patching
from composcope.probes.examples import Example
from composcope.probes.neurons import checks, quadrature
from composcope.probes.neurons import examples as neuron_examples
from composcope.probes.neurons.checks import agreement
from composcope.probes.spread import InDtype, Notes

from ..oracles import neurons as oracle

PROMPTS = [[5, 31, 77, 12, 40, 8, 66, 23], [9, 9, 51, 80, 17], [60, 3, 3, 14, 28, 71, 5, 33, 90, 11, 47]]
ANSWERS = [[30], [44], [71, 3]]


def _error(got: Tensor, want: Tensor) -> float:
    return float((got.float() - want).abs().max() / want.abs().max())


@pytest.mark.parametrize("name", ["llama", "qwen3", "gemma3", "granite", "mixtral", "gpt2"])
def test_scores_in_float32_are_those_of_the_model_in_float32(name: str) -> None:
    model = tiny(name).to(torch.bfloat16)  # type: ignore[arg-type]
    full, lm = load_model(copy.deepcopy(model).float()), load_model(model)
    want = neurons.attribute_many(full, PROMPTS, ANSWERS, steps=4)
    got = neurons.attribute_many(lm, PROMPTS, ANSWERS, steps=4, rows_dtype="float32")
    half = neurons.attribute_many(lm, PROMPTS, ANSWERS, steps=4)
    for w, g, h in zip(want.scores, got.scores, half.scores, strict=True):
        assert g.dtype is torch.float32 and _error(g, w) < 1e-5 < 1e-3 < _error(h, w)


def test_scores_in_float32_are_the_literal_integral_on_the_widened_weights() -> None:
    model = tiny("qwen3").to(torch.bfloat16)  # type: ignore[arg-type]
    full = load_model(copy.deepcopy(model).float())
    x, w = np.polynomial.legendre.leggauss(8)
    nodes = [(float(a + 1) / 2, float(b) / 2) for a, b in zip(x, w, strict=True)]
    down = [layer.down for layer in full.anatomy.layers]
    want = oracle.attribute(full.model, torch.tensor([PROMPTS[0]]), 30, down, nodes)  # type: ignore[arg-type]
    got = neurons.attribute(load_model(model), PROMPTS[0], [30], steps=8, rows_dtype="float32")
    assert _error(got, want) < 1e-4


@pytest.mark.parametrize("name", ["qwen3", "mixtral"])
def test_nodes_are_not_added_for_errors_that_half_precision_makes(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    lm = load_model(tiny(name).to(torch.bfloat16))  # type: ignore[arg-type]
    few = neurons.attribute_many(lm, PROMPTS, ANSWERS)
    full = neurons.attribute_many(lm, PROMPTS, ANSWERS, rows_dtype="float32")
    monkeypatch.setattr(neurons.attribution, "_rounding", lambda lm: 0.0)
    many = neurons.attribute_many(lm, PROMPTS, ANSWERS)
    used = [sum(int(n.sum()) for n in found.nodes) for found in (few, many)]
    errors = [max(_error(g, w) for g, w in zip(found.scores, full.scores, strict=True)) for found in (few, many)]
    assert used[0] < used[1] / 2 and errors[0] < 1.5 * errors[1]


def test_agreement_is_the_largest_difference_the_rank_correlation_and_the_share_of_common_neurons() -> None:
    g = torch.Generator().manual_seed(0)
    full = torch.randn(3, 50, generator=g)
    half = full + 0.3 * torch.randn(3, 50, generator=g)
    got = agreement(half, full, 10)
    a, b = half.double().numpy().ravel(), full.double().numpy().ravel()
    assert got.error == pytest.approx(np.abs(a - b).max() / np.abs(b).max())
    assert got.spearman == pytest.approx(stats.pearsonr(stats.rankdata(a), stats.rankdata(b))[0])
    assert got.overlap == len(set(np.argsort(a)[-10:]) & set(np.argsort(b)[-10:])) / 10
    assert agreement(full, full, 10) == pytest.approx((0, 1, 1))


def _examples(n: int = 2) -> list[Example]:
    rng = np.random.default_rng(0)
    out = []
    for group in ("failure", "success"):
        for i in range(n):
            for role, kind in (("whole", "composition"), ("part:0", "math")):
                prompt = (*(int(t) for t in rng.integers(3, 97, 12)), 7, 8)
                answer = (int(rng.integers(3, 97)),)
                case = f"{group[0]}{i}"
                out.append(Example(case, role, kind, group, prompt, (9, 2), answer, 2, (2, 12), "pair", 2, "add", None))
    return out


def test_probabilities_of_half_precision_logits_are_those_of_a_softmax_in_float32() -> None:
    lm = load_model(tiny("llama").to(torch.bfloat16))  # type: ignore[arg-type]
    got = neurons.causal_check(lm, PROMPTS, ANSWERS, [[(1, 3)]] * len(PROMPTS), draws=2)
    for found in vars(got).values():
        assert bool((found.bfloat16().to(found.dtype) != found).any()), "no rounding to 8 bits on the way"


@pytest.mark.parametrize("answer_tokens", [1, 2, None])
def test_half_precision_is_compared_on_the_tokens_that_are_scored(
    answer_tokens: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Any] = []
    none = SimpleNamespace(rows=[], note="")
    monkeypatch.setattr(neuron_examples, "agreement_rows", lambda _lm, sample, **_: (asked.extend(sample), none)[1])
    lm = load_model(tiny("llama").to(torch.bfloat16))  # type: ignore[arg-type]
    some = [replace(e, answer_ids=(*e.answer_ids, 7, 8)) for e in _examples()[:4]]
    neurons.over_examples(lm, some, draws=0, steps=2, rows_dtype="float32", answer_tokens=answer_tokens)
    assert asked == [(e.prompt_ids, e.answer_ids[:answer_tokens], e.shares) for e in some]


def test_the_table_of_neurons_carries_the_agreement_when_asked() -> None:
    model = tiny("llama").to(torch.bfloat16)  # type: ignore[arg-type]
    full, lm, examples = load_model(copy.deepcopy(model).float()), load_model(model), _examples()
    off, want = (
        neurons.over_examples(lm, examples, draws=1, steps=4),
        neurons.over_examples(full, examples, draws=1, steps=4),
    )
    got = neurons.over_examples(lm, examples, draws=1, steps=4, rows_dtype="float32")
    rows = {r["quantity"]: r for r in got.table if str(r["quantity"]).startswith("rows_")}
    assert list(rows) == ["rows_error", "rows_spearman", "rows_overlap"] and all(r["n"] == 8 for r in rows.values())
    assert 1e-3 < rows["rows_error"]["value"] < 1 and 0.5 < rows["rows_spearman"]["value"] < 1
    others = [r for r in got.table if r["quantity"] not in rows]
    assert repr(others) == repr(want.table) != repr(off.table)  # repr: NaN is NaN
    assert got.settings["rows_dtype"] == "float32" and "rows_dtype" not in off.settings
    assert any("scores in float32" in w for w in got.warnings) and any("off by several %" in w for w in off.warnings)
    assert not any(str(r["quantity"]).startswith("rows_") for r in (*off.table, *want.table))
    with pytest.raises(ModelError, match='rows_dtype "float16"'):
        neurons.over_examples(lm, examples, rows_dtype="float16")


def test_patching_in_float32_is_that_of_the_model_in_float32() -> None:
    model = tiny("gemma3").to(torch.bfloat16)  # type: ignore[arg-type]
    full, lm = load_model(copy.deepcopy(model).float()), load_model(model)
    wide = InDtype(lm, "float32")
    donors, recipients = [PROMPTS[0], PROMPTS[2]], [PROMPTS[1], PROMPTS[0]]
    sweeps = [
        patching.prompt_end_sweep(m, donors, recipients, max_new_tokens=3, keep="all")  # type: ignore[arg-type]
        for m in (full, wide, lm)
    ]
    want, got, half = (s.tensors["first_logits"] for s in sweeps)
    assert _error(got, want) < 1e-5 < 1e-4 < _error(half, want)
    assert torch.equal(sweeps[0].tensors["tokens"], sweeps[1].tensors["tokens"])
    assert lm.dtype is torch.bfloat16


def test_measurements_in_float32_have_their_own_place_in_a_store() -> None:
    seen = []

    class Elsewhere:
        def spread(self, measure, items, notes, *, light):
            seen.append(entry_key("scope", measure, items[0]))
            yield from enumerate(items)

        def call(self, function, *args):
            return function(None, *args)

    measure = partial(_measure, n=1)
    for lm in (InDtype(Elsewhere(), "float32"), Elsewhere()):
        list(lm.spread(measure, ["item"], None, light=False))
    assert len(set(seen)) == 2
    said: list[str] = []
    wide = InDtype(load_model(tiny("llama")), "float32")
    assert list(wide.spread(measure, ["item"], said, light=False)) == [(0, 1)] and said == ["1 at once"]


def _measure(lm: object, items: Sequence[str], notes: Notes, *, n: int) -> list[tuple[int, int]]:
    if notes is not None:
        notes.append(f"{n} at once")
    return [(i, n) for i, _ in enumerate(items)]


def test_queries_without_a_number_do_not_hide_how_far_the_others_are_off(monkeypatch: pytest.MonkeyPatch) -> None:
    found = [[float("nan"), 1.0, 1.0], [0.125, 0.5, 0.5], [0.25, 0.75, 1.0]]
    asked: list[Any] = []
    monkeypatch.setattr(checks, "collect", lambda _, what, items, _notes: asked.append((what.keywords, items)) or found)
    queries = [((1,), (2,), name) for name in "abc"]
    got = checks.agreement_rows(None, queries, rule="ig", steps=1, v=2, dtype="float32")  # type: ignore[arg-type]
    assert "25.0%" in got.note and [r["n"] for r in got.rows] == [2, 3, 3]
    assert asked == [({"rule": "ig", "steps": 1, "v": 2, "dtype": "float32"}, [((1,), (2,))] * 3)]
    assert checks.rows_of([[float("nan")] * 3], ["a"], "rows") == []
    given: list[Any] = []
    scores = SimpleNamespace(mean=[torch.eye(2)])
    monkeypatch.setattr(checks, "attribute_many", lambda *of, notes, **more: given.append((*of, more)) or scores)
    [(_, same)] = checks.measure("lm", [q[:2] for q in queries[:1]], None, **asked[0][0])  # type: ignore[arg-type]
    each = ("lm", [(1,)], [(2,)], 1, "ig")
    assert given == [(*each, {}), (*each, {"rows_dtype": "float32"})] and same[1] == pytest.approx(1)
    near: list[Any] = []
    monkeypatch.setattr(checks, "rows_of", lambda _, clusters, name: near.append((clusters, name)) or [])
    many = [((i,), (2,), f"c{i}") for i in range(16)]
    checks.agreement_rows(None, many, rule="ig", steps=1, v=2, dtype="float32")  # type: ignore[arg-type]
    assert asked[1][1] == [((i,), (2,)) for i in range(0, 16, 2)] and near == [
        ([f"c{i}" for i in range(0, 16, 2)], "rows")
    ]


# --- nodes and weights along the path of a neuron, and panels that are split until they are exact enough ------------


@pytest.mark.parametrize("steps", [2, 3, 5])
def test_rules_integrate_the_polynomials_that_they_should(steps: int) -> None:
    gauss, ends = quadrature.quadrature("gauss-legendre", steps), quadrature.lobatto(steps)
    for degree in range(2 * steps):
        assert sum(w * x**degree for x, w in zip(gauss.at, gauss.weight, strict=True)) == pytest.approx(
            1 / (degree + 1)
        )
        if degree < 2 * steps - 2:
            inner = sum(w * x**degree for x, w in zip(ends.at, ends.weight, strict=True))
            assert inner + ends.end == pytest.approx(1 / (degree + 1)), degree
    assert ends.at[0] == 0 and ends.end > 0 and len(ends.at) == steps - 1
    reference = quadrature.quadrature("reference", steps)
    assert (
        reference.at == pytest.approx([i / (steps - 1) for i in range(steps)])
        and reference.weight == [1 / steps] * steps
    )
    assert quadrature.quadrature("gradient", 0) == quadrature.Nodes([1.0], [1.0])
    assert reference.with_start() == (reference, 0)
    added, at = gauss.with_start()
    assert (added.at[at], added.weight[at], at, added.end) == (0, 0, steps, gauss.end)
    for rule, n in (("reference", 1), ("gauss", 3), ("gauss-legendre", 2.5)):
        with pytest.raises(InputError):
            quadrature.quadrature(rule, n)  # type: ignore[arg-type]


def _panel(
    gap: float, start: float = 0.0, end: float = 1.0, nodes: int = quadrature.NODES, stale: int = 0
) -> quadrature.Panel:
    return quadrature.Panel(start, end, torch.zeros(1), gap, nodes, stale)


def test_panels_are_split_worst_first_until_the_rest_is_within_half() -> None:
    panels = [_panel(g) for g in (0.1, -3.0, 0.2, 1.0)]
    assert [p.gap for p in quadrature.worst(panels, 1.0)] == [-3.0, 1.0] and quadrature.worst(panels, 4.31) == []
    assert [p.gap for p in quadrature.worst(panels, 4.2)] == [-3.0] and [
        p.gap for p in quadrature.worst(panels, 0.01)
    ] == [-3.0, 1.0, 0.2, 0.1]
    assert len(quadrature.worst([_panel(1.0) for _ in range(9)], 0.1)) == quadrature.SPLITS
    assert quadrature.worst([_panel(1.0) for _ in range(quadrature.MAX_PANELS)], 0.1) == []
    assert (
        quadrature.worst([_panel(1.0, stale=quadrature.STALE)], 0.1) == []
        and quadrature.worst([_panel(1.0, 0.5, 0.5 + 0.9e-6)], 0.1) == []
    )
    assert len(quadrature.worst([_panel(1.0, stale=quadrature.STALE - 1)], 0.1)) == 1


def test_first_tries_are_accepted_repeated_or_split() -> None:
    quick = quadrature.QUICK
    assert quadrature.again(_panel(0.3, nodes=quick), 1.0) == [] and quadrature.again(_panel(-1.0), 1.0) == []
    assert (
        quadrature.again(_panel(0.31, nodes=quick), 1.0)
        == [(0.0, 1.0)]
        == quadrature.again(_panel(10.0, nodes=quick), 1.0)
    )
    pieces = [(0.0, 1 / 16), (1 / 16, 1 / 4), (1 / 4, 1 / 2), (1 / 2, 1.0)]
    assert quadrature.again(_panel(10.1, nodes=quick), 1.0) == pieces == quadrature.again(_panel(1.1), 1.0)
    assert quadrature.split(_panel(1, 0.0, 0.8)) == [(0.0, 0.1), (0.1, 0.8)] and quadrature.split(
        _panel(1, 0.2, 0.6)
    ) == [(0.2, 0.4), (0.4, 0.6)]
    for gaps, stale in (((0.5, -0.5), 0), ((0.6, -0.5), 3)):
        children = [_panel(g) for g in gaps]
        quadrature.aged(_panel(-2.0, stale=2), children)
        assert [c.stale for c in children] == [stale, stale]
    accepted = quadrature.limit(torch.tensor([[0.5]]), torch.tensor([[0.2, 0.5, 0.9]]))
    assert accepted[0].tolist() == pytest.approx([0.003 + 1e-6, 1e-6, 0.004 + 1e-6])
    assert quadrature.limit(torch.tensor([[1e-6]]), torch.tensor([[0.0]]), 0.1)[0, 0] == pytest.approx(1e-7 + 1e-7)
