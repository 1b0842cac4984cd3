"""What the lens reads: an item against the others on the table and against absent ones."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from composcope.evaluation.engines.local import LocalEngine
from composcope.experiments.diagnosis import readings
from composcope.hooks import load_model

from .told import CASES, decisions


def test_foils_of_an_item_are_the_others_on_the_table_and_its_absent_mates(engine: LocalEngine) -> None:
    case = CASES[2]
    whole, _ = decisions(engine, case, 0)
    like = readings._like(case, whole, {})
    assert set(case.meta["things"]) - set(case.meta["chosen"]) < set(like)
    assert len(like) == len(set(like)) == 6 + 4  # and the item itself with three mates


def test_an_item_is_read_where_it_is_decided_and_not_where_its_phrase_stands(engine: LocalEngine) -> None:
    lm = load_model(engine.model, engine.tokenizer)
    wholes = {case.id: [(case, decisions(engine, case, 0)[0])] for case in CASES}

    def mean(some: readings.Wholes, place: str, foils: str) -> float:
        held = readings.read(lm, engine.tokenizer, some)
        found = [h.above for hs in held.values() for h in hs if (h.place, h.foils) == (place, foils)]
        assert len(found) == len(CASES)
        return sum(found) / len(found)

    for foils in ("absent", "in-prompt"):
        assert mean(wholes, "decision", foils) > 0.9 > 0.7 > mean(wholes, "entity", foils)
    names = [case.meta["chosen"][0] for case in CASES]
    others = zip(CASES, names[7:] + names[:7], strict=True)
    shuffled = {c.id: [(c, replace(wholes[c.id][0][1], entity=n))] for c, n in others}
    assert mean(shuffled, "decision", "in-prompt") < 0.7
    (line, *_) = readings.reading_lines(readings.read(lm, engine.tokenizer, wholes)[CASES[0].id])
    assert "chance 50 %" in line and "layer 0" in line
    held = readings.read(lm, engine.tokenizer, dict(list(wholes.items())[:3]))
    (first, *rest) = [next(h for h in hs if h.place == "decision" and h.foils == "absent") for hs in held.values()]
    assert first.others == pytest.approx(sum(h.above for h in rest) / 2)
    assert readings.read(lm, engine.tokenizer, {"a": wholes[CASES[0].id]}) == {"a": []}  # nothing to centre by


def test_the_lens_speaks_of_each_kind_of_foils_by_itself() -> None:
    held = [
        readings.Held("absent", "entity", 0.91, 0.61, 0.51, 6, 3),
        readings.Held("absent", "decision", 0.82, 0.62, 0.42, 5, 3),
        readings.Held("in-prompt", "decision", 0.73, 0.63, 0.33, 2, 4),
    ]
    absent, inside = (re.findall(r"\d+", readings.reading_lines([one])[0]) for one in held[1:])
    assert (absent, inside) == (["5", "3", "50", "82", "0", "42"], ["2", "4", "50", "73", "0", "33"])
    both, other = readings.reading_lines(held)
    assert re.findall(r"\d+", both) == [*absent[:3], "91", "0", "51", *absent[3:]]
    assert re.findall(r"\d+", other) == inside
