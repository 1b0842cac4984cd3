"""Unpaired tests of lookback, agreement of cheap neuron scores, and what is left out."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy import stats

from composcope.errors import NoCasesError
from composcope.hooks import Model, load_model
from composcope.probes import lookback, neurons
from composcope.probes.examples import Example
from composcope.probes.neurons.checks import agreement

from ..tiny_models import tiny


@pytest.fixture(scope="module")
def lm() -> Model:
    return load_model(tiny("llama"))


def _examples(n: int, parts: int = 1) -> list[Example]:
    rng = np.random.default_rng(3)
    out = []
    for i in range(2 * n):
        group = ("failure", "success")[i % 2]
        for role, kind in (("whole", "composition"), *((f"part:{k}", "math") for k in range(parts))):
            prompt = (*(int(t) for t in rng.integers(3, 97, 8)), 6, 11)  # the template
            answer = tuple(int(t) for t in rng.integers(3, 97, 2))
            response = tuple(int(t) for t in rng.integers(3, 97, 3 + i % 3))
            out.append(Example(f"c{i}", role, kind, group, prompt, response, answer, 2, (2, 8)))
    return out


def test_kinds_are_compared_with_and_without_their_pairing(lm: Model) -> None:
    examples = _examples(4)
    got = lookback.over_examples(lm, examples, permutations=20)
    value = {(e.case, e.kind): float(r[0].nanmean()) for e, r in zip(
        examples, [[x] for x in lookback.ratios(lm, [e.prompt_ids for e in examples],
                                                [e.response_ids for e in examples], 2)], strict=True)}  # fmt: skip
    rows = [r for r in got.table if r["quantity"] == "lookback_ratio_unpaired"]
    assert [(r["group"], r["kind"], r["n"], r["test"]) for r in rows] == [
        ("failure", "composition - math", 8, "Welch t"), ("success", "composition - math", 8, "Welch t")]  # fmt: skip
    cases = [f"c{i}" for i in range(0, 8, 2)]
    a, b = ([value[c, kind] for c in cases] for kind in ("composition", "math"))
    theirs = stats.ttest_ind(a, b, equal_var=False)
    assert rows[0]["p"] == pytest.approx(theirs.pvalue, rel=1e-4)  # type: ignore[attr-defined]
    assert rows[0]["p_adjusted"] >= rows[0]["p"] and "sd" in got.table[0]


def test_the_table_says_how_far_activation_times_gradient_would_have_been_off(lm: Model) -> None:
    examples = _examples(2)
    got = neurons.over_examples(lm, examples, draws=1, v=5)
    rows = {r["quantity"]: r for r in got.table if str(r["quantity"]).startswith("gradient_")}
    each = []
    for e in examples:
        cheap = neurons.activation_times_gradient(lm, e.prompt_ids, e.answer_ids[:1])
        full = neurons.attribute(lm, e.prompt_ids, e.answer_ids[:1])
        top = [set(x.flatten().topk(5).indices.tolist()) for x in (cheap, full)]
        each.append((stats.spearmanr(cheap.flatten(), full.flatten())[0], len(top[0] & top[1]) / 5))
    assert rows["gradient_spearman"]["n"] == len(examples) == 8
    assert rows["gradient_spearman"]["value"] == pytest.approx(np.mean([s for s, _ in each]), abs=1e-3)
    assert rows["gradient_overlap"]["value"] == pytest.approx(np.mean([o for _, o in each]))
    assert rows["gradient_error"]["value"] > 0
    flat = agreement(torch.ones(2, 3), torch.ones(2, 3), 2)
    assert flat.error == 0 and np.isnan(flat.spearman)


def test_levels_of_overlap_are_those_of_pairs_within_cases_and_of_the_pooled_sets(lm: Model) -> None:
    examples = _examples(3, parts=2)
    got = neurons.over_examples(lm, examples, draws=0, v=40, u=1.0, answer_tokens=None)
    scores = neurons.attribute_many(lm, [e.prompt_ids for e in examples], [e.answer_ids for e in examples]).mean
    sets = neurons.select(scores, v=40, u=1.0).neurons
    for e, row in zip(examples, (v for v in got.values if v["quantity"] == "answer_probability"), strict=True):
        first = lm.run(torch.tensor([e.prompt_ids])).logits[0, -1].softmax(-1)[e.answer_ids[0]].detach()
        assert row["value"] == pytest.approx(float(first), rel=1e-4), "that of the first token, whatever is scored"
    mine = {k: [(e, s) for e, s in zip(examples, sets, strict=True) if e.kind == k and e.group == "failure"]
            for k in ("composition", "math")}  # fmt: skip
    rows = {r["quantity"]: r for r in got.table if r.get("kind") == "composition & math" and r["group"] == "failure"}
    total = lm.anatomy.all_neurons
    sizes = [
        max(len(x), len(y)) for e, x in mine["composition"] for o, y in mine["math"] if e.case == o.case and x and y
    ]
    assert len({len(s) for some in mine.values() for _, s in some}) > 2, "sets of different sizes"
    assert rows["neuron_overlap_chance"]["n"] == len(sizes)
    assert rows["neuron_overlap_chance"]["value"] == pytest.approx(np.mean(sizes) / total)
    a, b = ({n for _, s in mine[k] for n in s} for k in ("composition", "math"))
    assert rows["neuron_jaccard_pooled"]["value"] == pytest.approx(len(a & b) / len(a | b))
    assert rows["neuron_overlap_pooled"]["value"] == pytest.approx(len(a & b) / min(len(a), len(b)))
    assert rows["neuron_overlap_pooled_chance"]["value"] == pytest.approx(max(len(a), len(b)) / total)
    of_parts = {e.case: {n for o, s in mine["math"] if o.case == e.case for n in s} for e, _ in mine["composition"]}
    by_layer = [r for r in got.table if r["quantity"] == "neurons_in_layer" and r["group"] == "failure"]
    assert len(by_layer) == 2 * lm.anatomy.n_layers
    for r in by_layer:
        wanted = [{n for n in s if (n in of_parts[e.case]) == (r["kind"] == "shared") and n[0] == r["layer"]}
                  for e, s in mine["composition"]]  # fmt: skip
        assert r["value"] == pytest.approx(np.mean([len(found) for found in wanted])), "shared with either part"
    with pytest.raises(NoCasesError, match="2 examples"):
        neurons.over_examples(lm, examples[:2])


def test_a_response_of_one_token_and_examples_of_one_case_are_said_not_dropped(lm: Model) -> None:
    short = [replace(e, response_ids=e.response_ids[:1], cue_tokens=0) for e in _examples(1)]
    got = lookback.over_examples(lm, short, permutations=10)
    own = [r for r in got.table if r["quantity"] == "lookback_ratio" and r["group"] == "failure"]
    assert own[0]["n"] == 0 and "4 steps with nothing new" in " ".join(got.warnings)
