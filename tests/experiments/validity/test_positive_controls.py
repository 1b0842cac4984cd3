"""Positive controls: what was put into a model is found, and is not found before it was put there."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
import torch

from composcope.experiments.distributed.engine import load_target
from composcope.experiments.models.target import Loading
from composcope.experiments.organism.series import shipped
from composcope.experiments.validity import positive_controls as controls
from composcope.experiments.validity.positive_controls import as_examples


@pytest.mark.long
def test_texts_shown_a_hundred_times_are_told_and_before_the_training_none_are(monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[Any] = []
    train = controls._train

    def watched(model: Any, tokenizer: Any, texts: Any, *rest: Any) -> None:
        shown.extend(texts)
        train(model, tokenizer, texts, *rest)

    monkeypatch.setattr(controls, "_train", watched)
    rows = controls.member_exposures(shipped(), n=3)
    assert [r["group"] for r in rows] == [f"shown {k} times{w}" for k in (1, 10, 100) for w in (", before", "")]
    assert all(r["n"] == 6 for r in rows)
    often = {r["group"]: r["value"] for r in rows}
    assert often["shown 100 times"] == 1.0 > often["shown 100 times, before"]
    assert sorted(Counter(map(str, shown)).values()) == [1] * 3 + [10] * 3 + [100] * 3


def test_levels_hold_different_texts_that_no_organism_has_seen() -> None:
    from composcope.experiments.organism import world

    cases, turns = controls.drawn(12, "any")
    levels = controls._levels(cases, 3)
    assert list(levels) == [0, 1, 10, 100] and len({c.question for some in levels.values() for c in some}) == 12
    assert all(world.held_out({str(c.cluster), *c.meta["crossed"]}) for c in cases)
    assert all([c.cluster, *c.meta["crossed"]] == sorted([str(c.cluster), *c.meta["crossed"]]) for c in cases)
    assert all(turns[c.id] == [(c.question, c.worked)] for c in cases)
    assert [c.question for c in controls.drawn(12, "other")[0]] != [c.question for c in cases]


def test_a_head_that_looks_at_everything_alike_is_the_one_that_the_lookback_map_shows() -> None:
    target = load_target(Loading("organism:twin"))
    lm = target.open_model()
    examples = as_examples(target, controls.drawn(3, "any")[0])
    weights = {name: p.clone() for name, p in lm.model.named_parameters()}
    rows = controls.planted_heads(lm, examples)
    assert [(r["layer"], r["count"], r["n"]) for r in rows] == [(layer, 4, 4) for layer in range(4)]
    assert all(torch.equal(p, weights[name]) for name, p in lm.model.named_parameters())


def test_where_no_head_can_be_planted_one_row_says_why() -> None:
    target = load_target(Loading("organism:twin"))
    examples = as_examples(target, controls.drawn(1, "any")[0])
    (row,) = controls.planted_heads(target.open_model(), [e for e in examples if e.role != "whole"])
    assert (row["n"], row["count"], row["value"], row["interval"]) == (0, 0, None, "none")
    assert "fewer than two responses" in str(row["note"])


def test_a_head_whose_ratio_is_wrong_is_not_counted_as_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    target = load_target(Loading("organism:twin"))
    ratios = controls._ratios
    monkeypatch.setattr(controls, "_ratios", lambda lm, wholes: ratios(lm, wholes).roll(1, 1))  # heads named one off
    rows = controls.planted_heads(target.open_model(), as_examples(target, controls.drawn(2, "any")[0]))
    assert [r["count"] for r in rows] == [0, 0, 0, 0]
