"""The positive control of membership: texts shown to a model a known number of times, told from texts never shown."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from composcope.experiments.organism.series import shipped
from composcope.experiments.validity import exposures


def test_texts_shown_a_hundred_times_are_told_and_before_the_training_none_are(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    shown: list[Any] = []
    train = exposures._train

    def watched(model: Any, tokenizer: Any, texts: Any, *rest: Any) -> None:
        shown.extend(texts)
        train(model, tokenizer, texts, *rest)

    monkeypatch.setattr(exposures, "_train", watched)
    rows = exposures.member_exposures(shipped(), n=3)
    assert [r["group"] for r in rows] == [f"shown {k} times{w}" for k in (1, 10, 100) for w in (", before", "")]
    assert all(r["n"] == 6 for r in rows)
    often = {r["group"]: r["value"] for r in rows}
    assert often["shown 100 times"] == 1.0 > often["shown 100 times, before"]
    assert sorted(Counter(map(str, shown)).values()) == [1] * 3 + [10] * 3 + [100] * 3


def test_levels_hold_different_texts_that_no_organism_has_seen() -> None:
    from composcope.experiments.organism import world

    cases, turns = exposures.drawn(12, "any")
    levels = exposures._levels(cases, 3)
    assert list(levels) == [0, 1, 10, 100] and len({c.question for some in levels.values() for c in some}) == 12
    assert all(world.held_out({str(c.cluster), *c.meta["crossed"]}) for c in cases)
    assert all(turns[c.id] == [(c.question, c.worked)] for c in cases)
    assert [c.question for c in exposures.drawn(12, "other")[0]] != [c.question for c in cases]
