"""States put into an opened model: the own ones, donors, noise, left-out blocks and cut attention."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from composcope.evaluation.engines.local import LocalEngine
from composcope.experiments.diagnosis import inside, places
from composcope.experiments.organism import benchmarks
from composcope.hooks import load_model
from composcope.hooks.edits import Patch
from composcope.hooks.interchange import states

from .told import CASES, decisions


@pytest.mark.parametrize(
    ("n_layers", "layers"),
    [(2, [0]), (3, [0, 1]), (4, [0, 1, 2]), (9, list(range(8))), (16, [0, 2, 4, 6, 8, 10, 12, 14])],
)
def test_donors_are_put_in_at_up_to_eight_layers_without_the_last(n_layers: int, layers: list[int]) -> None:
    assert inside.fixed_layers(n_layers) == layers


@pytest.mark.parametrize("room", [1, 4, 256])
def test_donors_at_the_decision_give_their_own_answers_and_noise_gives_neither(
    engine: LocalEngine, monkeypatch: pytest.MonkeyPatch, room: int
) -> None:
    monkeypatch.setattr(inside, "HELD", room)
    lm = load_model(engine.model, engine.tokenizer)
    pairs = [decisions(engine, case, 0) for case in CASES]
    answers = sorted({whole.gold for whole, _ in pairs})
    outcomes, held = [], {}
    for whole, own in pairs:
        foreign = [d for _, d in pairs if d.gold != whole.gold][:2]
        setting = inside.Setting("x", whole, own, foreign, answers=answers)
        outcome = inside.measure(lm, setting, held=held)
        if len(outcomes) < 3:
            assert outcome == inside.measure(lm, setting), "donors that are held give what they give anew"
        if outcome is not None:
            cells = {name: [c for c in outcome if c.startswith((f"move:{name}:", f"across:{name}:"))]
                     for name in whole.readings()}  # fmt: skip
            assert {sum(c.startswith("across") for c in some) for n, some in cells.items() if n != "decision"} == {2}
            by_place: dict[int, set[tuple[str, ...]]] = {}
            for name, position in whole.readings().items():
                by_place.setdefault(position, set()).add(tuple(outcome[c] for c in cells[name]))
            assert all(len(same) == 1 for same in by_place.values()), "two names of a place are one measurement"
            assert all(cells[name] for name in cells if name != "decision") and not cells["decision"]
        outcomes += [outcome] if outcome is not None else []
    assert len(outcomes) >= 5  # the organism fails often
    assert len(held) <= max(room, 3), "no more donors are held than there is room, or than one setting has"
    last = inside.fixed_layers(lm.anatomy.n_layers)[-1]
    mended = [o[f"own:decision:{last}"] == "gold" for o in outcomes]
    told = [o[f"foreign:decision:{last}"] == "donor" for o in outcomes]
    noise = [o[f"noise:decision:{last}"] == "gold" for o in outcomes]
    assert sum(mended) == sum(told) == len(outcomes) > 2 * sum(noise)
    assert {o[f"exit:decision:{lm.anatomy.n_layers - 1}"] for o in outcomes} == {"wrong"}


def test_each_variant_has_noise_of_its_own(engine: LocalEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    lm, made, rows = load_model(engine.model, engine.tokenizer), list[torch.Tensor](), inside._rows

    def kept(*args: Any) -> list[inside.Row]:
        found = list(rows(*args))
        noise = [edits[0] for cell, edits, _ in found if cell.startswith("noise:decision")]
        made.append(torch.stack([edit.value for edit in noise if isinstance(edit, Patch)]))
        return found

    monkeypatch.setattr(inside, "_rows", kept)
    for whole, own in (decisions(engine, case, 0) for case in CASES):
        for variant, seed in (("x", 0), ("x", 0), ("y", 0), ("x", 1)):
            inside.measure(lm, inside.Setting(variant, whole, own, [], answers=[whole.gold]), seed)
        if made:  # the case fails
            break
    first, again, other, seeded = made
    assert torch.equal(first, again)
    assert not torch.allclose(first, other) and not torch.allclose(first, seeded)


def test_only_a_wrong_whole_with_a_right_own_part_is_opened_with_donors_that_say_their_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    golds = {"whole": 1, "own": 1, "f2": 2, "f3": 3, "f4": 4, "mute": 5, "s": 1, "t": 1, "dumb": 1}
    made = {name: places.Decision((i, 0), gold, str(gold), name, (0,), 2)
            for i, (name, gold) in enumerate(golds.items())}  # fmt: skip
    says = {**golds, "whole": 6, "mute": 6, "dumb": 6}
    kept: list[list[list[str]]] = []

    def states_of(lm: Any, ids: Any, at: Any) -> list[torch.Tensor]:
        said = [says[next(name for name, d in made.items() if d.ids == tuple(own))] for own in ids]
        return [torch.eye(8)[token].expand(4, len(where), 8) for token, where in zip(said, at, strict=True)]

    def rows(n_layers: int, whole: Any, own: Any, foreign: Any, same: Any, here: Any, seed: int) -> list[inside.Row]:
        kept.append([[d.entity for d, _ in some] for some in ([own], foreign, same)])
        return []

    monkeypatch.setattr(inside, "states", states_of)
    monkeypatch.setattr(inside, "_rows", rows)
    monkeypatch.setattr(inside, "_outcomes", lambda *_: {})
    lm = SimpleNamespace(unembed=lambda x: x, anatomy=SimpleNamespace(n_layers=3))
    foreign, same = ([made[name] for name in names] for names in (("mute", "f2", "f3", "f4"), ("dumb", "s", "t")))
    setting = inside.Setting("x", made["whole"], made["own"], foreign, same, answers=[1, 2, 3, 4, 5])
    assert inside.measure(lm, setting) == {f"exit:decision:{layer}": "wrong" for layer in (-1, 0, 1, 2)}
    assert kept == [[["own"], ["f2", "f3"], ["s"]]], "two others and one with the same answer, each saying its own"
    says["own"] = 2
    assert inside.measure(lm, setting) is None, "the own part is wrong"
    says |= {"own": 1, "whole": 1}
    assert inside.measure(lm, setting) is None, "the whole is right"
    says["whole"] = 6
    other = replace(setting, own=replace(made["own"], gold=2))
    says["own"] = 2
    assert inside.measure(lm, other) is None, "the own part asks for something else"
    assert len(kept) == 1


def test_a_state_is_put_in_after_the_layer_that_it_comes_from() -> None:
    n_layers, width = 5, 3
    whole = places.Decision(tuple(range(8)), 1, "7", "oak", (3, 5), 7)
    own = places.Decision(tuple(range(6)), 1, "7", "oak", (2,), 5)
    foreign = replace(own, gold=2)

    def counted(first: int, at: int = 2) -> torch.Tensor:
        """States whose number says where they come from: layers count from 0 (before block 0), places in tens."""
        layers, positions = torch.arange(n_layers + 1.0), torch.arange(float(at))
        return (first + layers[:, None] + 10 * positions)[..., None].expand(-1, -1, width)

    here, mine, other = counted(100), counted(200), counted(300)
    rows = [*inside._rows(n_layers, whole, (own, mine), [(foreign, other)], [(own, mine + 400)], here, 0)]
    held = {"end-1": here[:, 0], "decision": here[:, 1]}
    rows += [*inside._read("move", n_layers, held, whole), *inside._read("scope", n_layers, held, foreign)]
    rows += inside._across(n_layers, held, whole)
    made: dict[str, tuple[set[int], set[int], set[float], int | None]] = {}
    for cell, edits, donor in rows:
        patches = [e for e in edits if isinstance(e, Patch)]
        values = {float(v) for e in patches for v in e.value}
        made[cell] = {e.position for e in patches}, {e.site.layer for e in patches}, values, donor
    assert not {cell for cell in made if cell.startswith("move:decision")}, "the decision is there already"
    for layer in inside.fixed_layers(n_layers):
        after = layer + 1
        expected = {
            "own:entity": ({3, 5}, {layer}, {200.0 + after}, None),
            "own:decision": ({7}, {layer}, {210.0 + after}, None),
            "foreign:entity": ({3, 5}, {layer}, {300.0 + after}, 2),
            "foreign:decision": ({7}, {layer}, {310.0 + after}, 2),
            "same:entity": ({3, 5}, {layer}, {600.0 + after}, None),
            "same:decision": ({7}, {layer}, {610.0 + after}, None),
            "move:end-1": ({7}, {layer}, {100.0 + after}, None),
            "scope:end-1": ({5}, {layer}, {100.0 + after}, 2),
            "scope:decision": ({5}, {layer}, {110.0 + after}, 2),
        }
        assert {cell: made[f"{cell}:{layer}"] for cell in expected} == expected
    across = {c: v for c, v in made.items() if c.startswith("across:")}
    assert across == {f"across:end-1:{source}>{target}": ({7}, {target}, {101.0 + source}, None)
                      for source in (3, 4) for target in (0, 1)}  # fmt: skip
    back = {c: v for c, v in made.items() if c.startswith("back:")}
    pairs = ["2>0", "2>1", "3>0", "3>1", "3>2", "4>0", "4>1", "4>2"]
    assert sorted(back) == sorted(f"back:{place}:{pair}" for place in ("decision", "entity") for pair in pairs)
    assert back["back:decision:4>1"] == ({7}, {1}, {115.0}, None)
    assert back["back:entity:3>2"] == ({3, 5}, {2}, {104.0}, None)
    assert made["back-foreign:decision:4>1"] == ({7}, {1}, {315.0}, 2)
    assert made["back-same:entity:3>2"] == ({3, 5}, {2}, {604.0}, None)
    for cell, stays, size in (("noise:decision:2", 113.0, 100.0), ("back-noise:decision:4>1", 112.0, 3.0)):
        (edit,) = next(edits for name, edits, _ in rows if name == cell)
        assert isinstance(edit, Patch) and float((edit.value - stays).norm()) == pytest.approx(size * width**0.5)
    skipped = {cell: {(e.layer, e.position) for e in edits} for cell, edits, _ in rows if cell.startswith("skip")}  # type: ignore[union-attr]
    assert skipped["skip:decision:4"] == {(4, 7)} and skipped["skip:everywhere:0"] == {(0, p) for p in range(3, 8)}
    assert len(skipped) == 2 * n_layers
    # A donor that names its entity in other words has no state at it.
    nameless = replace(foreign, at=()), other[:, 1:]
    for donors in ([nameless], [(foreign, other), nameless]):
        cells = {cell for cell, _, _ in inside._rows(n_layers, whole, (own, mine), donors, [], here, 0)}
        assert cells == {
            cell
            for cell in made
            if ":entity:" not in cell and not cell.startswith(("same", "back-same", "move", "scope", "across"))
        }


@pytest.mark.parametrize(
    ("answers", "whole", "own", "expected"), [([0, 1], 2, 1, [0, 1, 2]), ([0, 1], 2, 2, [0, 1]), ([0, 1], 1, 0, [0, 1])]
)
def test_the_wholes_own_wrong_token_competes_unless_it_begins_the_right_answer_too(
    answers: list[int], whole: int, own: int, expected: list[int]
) -> None:
    logits = torch.eye(3)
    assert inside.competing(answers, logits[whole], logits[own]) == expected


@pytest.mark.parametrize(("top", "moved"), [(5, "gold"), (7, "gold"), (9, "other")])
def test_a_moved_state_brings_an_answer_only_if_the_model_would_write_one(
    engine: LocalEngine, monkeypatch: pytest.MonkeyPatch, top: int, moved: str
) -> None:
    rows = [(cell, [], None) for cell in ("move:end-1:0", "across:end-1:2>0", "skip:decision:1", "own:decision:0")]
    found = SimpleNamespace(log_probs=torch.tensor([[[-1.0, -2.0]]] * 4), top_tokens=torch.full((4, 1, 1), top))
    monkeypatch.setattr(inside, "interchange", lambda *_, **__: found)
    whole, _ = decisions(engine, CASES[0], 0)
    outcomes = inside._outcomes(None, whole, rows, [5, 6], 5, 6, {7})
    assert [*outcomes.values()] == [moved, moved, "gold", "gold"]


def test_rows_of_one_cell_give_its_outcome_only_if_all_give_the_same(
    engine: LocalEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = {"a": (5, 5), "b": (5, 6), "c": (6, 5), "d": (5, 6, 5), "e": (6, 6)}
    rows = [(f"foreign:{name}:0", [], None) for name, tokens in said.items() for _ in tokens]
    scores = torch.tensor([[[float(t == 5), float(t == 6)]] for tokens in said.values() for t in tokens])
    found = SimpleNamespace(log_probs=scores, top_tokens=torch.full((len(rows), 1, 1), 5))
    monkeypatch.setattr(inside, "interchange", lambda *_, **__: found)
    whole, _ = decisions(engine, CASES[0], 0)
    outcomes = inside._outcomes(None, whole, rows, [5, 6], 5, 6, set())
    assert [*outcomes.values()] == ["gold", "other", "other", "other", "wrong"]


def test_a_decision_whose_wrong_answer_is_no_donors_is_opened_and_called_wrong(engine: LocalEngine) -> None:
    lm = load_model(engine.model, engine.tokenizer)
    opened = 0
    for case in CASES:
        whole, own = decisions(engine, case, 0)
        outcome = inside.measure(
            lm, inside.Setting("x", whole, own, [], answers=[whole.gold])
        )  # gold alone would win always
        said = int(lm.unembed(states(lm, [whole.ids], [[whole.last]])[0][-1, 0]).argmax())
        assert (outcome is None) == (said == whole.gold)
        opened += outcome is not None and outcome[f"exit:decision:{lm.anatomy.n_layers - 1}"] == "wrong"
    assert opened >= 5


def test_a_part_with_the_same_answer_about_another_thing_mends_like_the_own_one(engine: LocalEngine) -> None:
    lm = load_model(engine.model, engine.tokenizer)
    pairs = [decisions(engine, case, 0) for case in benchmarks.mixed(120)]
    last, same, noise = inside.fixed_layers(lm.anatomy.n_layers)[-1], [], []
    for whole, own in pairs:
        donors = [d for _, d in pairs if d.gold == whole.gold and d.entity != whole.entity]
        answers = sorted({whole.gold, *(d.gold for _, d in pairs)})
        outcome = inside.measure(lm, inside.Setting("x", whole, own, [], donors[:2], answers)) if donors else None
        if outcome is not None and f"same:decision:{last}" in outcome:
            assert any(cell.startswith("back-same:") for cell in outcome)
            same.append(outcome[f"same:decision:{last}"] == "gold")
            noise.append(outcome[f"noise:decision:{last}"] == "gold")
    assert len(same) >= 5 and sum(same) > 0.8 * len(same) > 2 * sum(noise)


def test_the_words_that_a_shortcut_copies_are_cut_and_as_many_others(engine: LocalEngine) -> None:
    lm, cells = load_model(engine.model, engine.tokenizer), []
    for case in CASES:
        whole, own = decisions(engine, case, 0)
        source = places.words(engine.tokenizer, whole, case.meta["things"][0])
        assert engine.tokenizer.decode([whole.ids[p] for p in source]).strip() == case.meta["things"][0]
        setting = inside.Setting("x", whole, own, [], answers=[whole.gold], source=source)
        cells = [*(inside.measure(lm, setting) or ())]
        if cells:  # the case fails
            break
    assert {cell for cell in cells if cell.startswith("cut")} == {"cut:source:0", "cut:other:0"}
    cut = [repr([edits for _, edits, _ in inside._cuts(lm.anatomy.n_layers, setting, seed)]) for seed in range(4)]
    assert len(set(cut)) > 1, "a seed draws its own other words"


def test_a_block_whose_attention_writes_nothing_can_be_opened(engine: LocalEngine) -> None:
    model = deepcopy(engine.model)
    with torch.no_grad():
        model.model.layers[1].self_attn.o_proj.weight.zero_()
    assert load_model(model, engine.tokenizer).anatomy.n_layers == len(model.model.layers)
