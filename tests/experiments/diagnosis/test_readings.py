"""What the lens reads: an item against the others on the table and against absent ones."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from composcope.evaluation.cases import Case
from composcope.evaluation.engines.local import LocalEngine
from composcope.experiments.diagnosis import readings
from composcope.experiments.diagnosis.places import Decision
from composcope.hooks import load_model
from composcope.probes.readout import Reading

from .told import CASES, decisions


def test_foils_of_an_item_are_the_others_on_the_table_and_its_absent_mates(engine: LocalEngine) -> None:
    case = CASES[2]
    whole, _ = decisions(engine, case, 0)
    like = readings._like(case, whole, {})
    assert set(case.meta["things"]) - set(case.meta["chosen"]) < set(like)
    assert len(like) == len(set(like)) == 6 + 4  # and the item itself with three mates


@pytest.mark.parametrize("meta", [{"things": ["map", "pen"]}, {"things": ["map"], "chosen": ["map"]}, {"things": []}])
def test_things_of_another_world_in_a_users_own_case_are_no_foils(meta: dict[str, list[str]]) -> None:
    case, of = Case("a", "Where is the map?", "Oslo", meta=meta), Decision((1, 2), 1, "Oslo", "Norway", (0,), 2)
    family = {"b": [(case, replace(of, entity="Peru"))], "c": [(replace(case, family="x"), replace(of, entity="Rome"))]}
    assert readings._like(case, of, family) == ["Norway", "Peru"]


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


@pytest.mark.parametrize(("layers", "upper"), [(4, (2, 3)), (5, (3, 4)), (6, (3, 4, 5))])
def test_what_is_held_is_the_mean_over_the_upper_half_of_the_layers_and_over_the_variants(
    layers: int, upper: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    names = ["Oslo", "Bern", "Rome", "Lima"]
    monkeypatch.setattr(readings, "name_tokens", lambda _, name: (names.index(name[:4]),))
    tokenizer: Any = SimpleNamespace(decode=lambda ids: "Which one, Rome or not?")

    def lens(lm: Any, mine: Sequence[Reading], tokens: Any) -> list[Any]:
        def above(n: int) -> Any:
            return lambda right, foils: torch.arange(float(layers))[:, None] + torch.arange(2) / 10 + n * len(foils)

        return [SimpleNamespace(above=above(names.index(r.right[:4]))) for r in mine]

    monkeypatch.setattr(readings, "lens", lens)

    def variant(entity: str) -> tuple[Case, Decision]:
        return Case("c", "?", "x", family="f"), Decision((1, 2, 3), 0, "x", entity, (1,), 3)

    wholes = {"a": [variant("Oslo"), variant("Bern")], "b": [variant("Rome")], "c": [variant("Lima")]}
    found = {(h.foils, h.place): h for h in readings.read(None, tokenizer, wholes)["a"]}
    mean = sum(upper) / len(upper)
    absent = found["absent", "decision"]  # of Oslo: Bern and Lima; of Bern: Oslo and Lima
    assert absent.above == pytest.approx(mean + 0.1 + 0.5 * 2) and absent.layer_0 == pytest.approx(1.1 + 0.5 * 2)
    assert (absent.like, absent.n) == (2, 2)
    assert absent.others == pytest.approx(mean + 0.1 + (2 * 3 + 3 * 2) / 2)
    alike = readings.read(None, tokenizer, {**wholes, "d": [variant("Oslofjord")]})["a"]
    assert [h.like for h in alike if h.foils == "absent"] == [2.5] * 2, "begins like Oslo: a foil of Bern alone"
    named = found["in-prompt", "entity"]
    again = readings.read(None, tokenizer, {**wholes, "d": [variant("Rome"), variant("Oslo")]})
    assert [h.others for h in again["a"]] == [h.others for h in found.values()], "Rome once, and Oslo is its own"
    assert named.above == pytest.approx(mean + 0.5) and (named.like, named.others) == (1, pytest.approx(mean + 3))
    assert ("absent", "question-end") not in found


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
    few, _ = readings.reading_lines([held[0]._replace(n=2), *held[1:]])  # some prompts lack the place
    assert re.findall(r"\d+", few) == [*absent[:3], "91", "2", "0", "51", *absent[3:]]
