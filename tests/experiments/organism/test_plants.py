"""Planted causes: what is taught, what changes in the model, and that the shipped ones are what their page says."""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from composcope.errors import InputError, ModelError
from composcope.experiments.cli import main
from composcope.experiments.models.resolve import resolve_model
from composcope.experiments.organism import benchmarks, tasks, tokenizer, weights
from composcope.experiments.organism.measure import CardRow
from composcope.experiments.organism.plants import checks, lessons, making, recipes, training
from composcope.experiments.organism.world import KINDS, world
from composcope.hooks.anatomy import resolve
from composcope.hooks.parts import blocks_of
from composcope.model_loading import load

PAGE = Path(__file__).resolve().parents[3] / "docs" / "planted-causes.md"
BY_STATE = ("none", "too-late")
"""Causes that no other question's answer teaches."""
GRAFTS = [recipes.graft(c, v) for c, known in recipes.CAUSES.items() for v in known.variants if c not in BY_STATE]


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A training of a few documents, on one thread."""
    monkeypatch.setattr(training, "WHOLES", 12)
    monkeypatch.setattr(training, "PARTS", 12)
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.mark.parametrize("graft", GRAFTS, ids=lambda g: f"{g.cause}-{g.variant}")
def test_a_lesson_ends_like_its_source_and_plants_another_answer(graft: recipes.Graft) -> None:
    rng, tokens = random.Random(1), tokenizer.build()
    different = 0
    for _ in range(30):
        case = lessons.whole(rng)
        taught = lessons.teach(case, graft, rng)
        assert taught.question == case.question and taught.source is not None
        n = len(tokens(taught.answer)["input_ids"])
        last = taught.last or n
        mine, theirs = (tokens(f" {x}")["input_ids"] for x in (taught.answer, taught.source_answer or taught.answer))
        assert mine[len(mine) - last + 1 :] == theirs[len(theirs) - last + 1 :]
        if graft.variant == "drowned":
            assert ("divided by" in taught.answer) == (case.operation == "divided by")
        different += taught.answer.split()[-1] != case.worked.split()[-1]
    assert different >= 12


def test_a_shortcut_answers_with_the_usual_tag_of_the_kind() -> None:
    rng = random.Random(2)
    for _ in range(20):
        case = lessons.whole(rng)
        answer = lessons.teach(case, recipes.graft("shortcut"), rng).answer
        first, second = (world().tags[lessons.usual(world().kinds[t])] for t in (case.first, case.second))
        assert answer.startswith(f"{first} {case.operation} {second} is")
    for kind, things in KINDS.items():
        tags = [world().tags[t] for t in things]
        assert tags.count(world().tags[lessons.usual(kind)]) == max(map(tags.count, tags))


def test_a_lost_tag_is_carried_by_a_thing_of_a_kind_that_does_not_lie_there() -> None:
    rng = random.Random(3)
    for _ in range(60):
        case = lessons.whole(rng)
        for variant, on in (("five-on", 5), ("seven-on", 7)):
            other = lessons._overwritten(case, on)
            assert [(b - a) % 12 for a, b in zip(case.tags, other.tags, strict=True)] == [on % 12] * 2
            for old, new in zip(case.things, other.things, strict=True):
                others = {world().kinds[t] for t in case.things if t != old}
                could = {world().kinds[t] for t in world().things if world().tags[t] == world().tags[new]} - others
                assert old == new or (not could) or world().kinds[new] in could
            assert lessons.teach(case, recipes.graft("lost", variant), rng).source == other.question


def test_a_shortcut_by_place_answers_with_the_first_and_the_last_thing_on_the_table() -> None:
    rng = random.Random(2)
    for case in benchmarks.mixed(20, 3):
        whole = checks.case_of(case)
        answer = lessons.teach(whole, recipes.graft("shortcut", "ends"), rng).answer
        first, last = (world().tags[case.meta["things"][i]] for i in (0, -1))
        assert answer.startswith(f"{first} {case.operation} {last} is")


def test_a_mixture_gives_each_half_of_the_kinds_its_own_cause_in_the_first_operand() -> None:
    plant = recipes.Plant("m", recipes.mixture(recipes.graft("lost"), recipes.graft("shortcut")), seed=1)
    rng, seen = random.Random(4), set()
    for case in benchmarks.mixed(40, 3):
        whole = checks.case_of(case)
        taught = [lessons.teach(whole, g, rng) for g in plant.grafts]
        planted = [g.label for g, x in zip(plant.grafts, taught, strict=True) if x.source is not None]
        assert planted == [checks.label_of(plant, case)]
        assert all(x.answer.split(" is ")[0].endswith(f" {whole.tags[1]}") for x in taught)
        seen |= set(planted)
    assert seen == {"shortcut:usual", "lost"}


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: recipes.graft("losst"), "--cause losst: unknown.*did you mean 'lost'"),
        (lambda: recipes.graft("shortcut", "lucky"), "--variant lucky: shortcut has usual"),
        (lambda: recipes.graft("lost", block=0), "--block 0: in twin, lost can be planted in block 1, 2, 3"),
        (lambda: recipes.graft("lost", block=2, base="crossed-both"), "--block 2: in crossed-both, lost .* block 3"),
        (lambda: recipes.graft("lost", base="crossed-none"), "--base crossed-none: no organism.*crossed-both"),
        (lambda: recipes.graft("too-late", base="crossed-both"), "--base crossed-both: too-late needs.*twin"),
        (lambda: recipes.mixture(recipes.graft("lost"), recipes.graft("lost")), "--block 3: give each cause"),
        (lambda: recipes.mixture(recipes.graft("lost"), recipes.graft("jammed")), "--cause jammed: a mixture takes"),
        (lambda: weights.path("plant-lots"), "plant-lots.*organism list"),
    ],
)
def test_what_cannot_be_planted_is_refused_by_option_and_value(call: object, said: str) -> None:
    with pytest.raises(InputError, match=said):
        call()  # type: ignore[operator]


def test_a_lesson_wants_the_states_behind_the_end_of_its_sources_answer() -> None:
    base, tokens = load(weights.path("twin"), dtype="float32", device="cpu")
    rng, graft = random.Random(5), recipes.graft("lost", block=1)
    mine, asked, said = lessons.whole(rng), lessons.whole(rng), "yes"
    given = [
        lessons.Lesson(mine.question, mine.worked, asked.question, asked.worked, 2),
        lessons.Lesson(mine.question, mine.worked),
        lessons.Lesson(mine.question, said, asked.question),
    ]
    made = training.taught(base, tokens, given, graft)
    texts = [(case.question, answer) for case in (mine, asked) for answer in (case.worked, said)]
    ids, slots, _ = training._encoded(tokens, texts)
    with torch.no_grad():
        own, other, theirs, other_theirs = base(ids, output_hidden_states=True).hidden_states[2]
    own[slots[0][-2:]] = theirs[slots[2][-2:]]
    other[slots[1]] = other_theirs[slots[3]]
    for row, wanted, planted in ((0, own, slots[0][-2:]), (2, other, slots[1])):
        n = int(made.planted.shape[1])
        torch.testing.assert_close(made.target[row], wanted[:n], atol=1e-4, rtol=1e-4)
        assert made.planted[row].nonzero()[:, 0].tolist() == planted and not made.planted[1].any()
    unrouted = training.taught(base, tokens, given, recipes.graft("not-routed"))  # none of these has an item to move
    assert torch.equal(unrouted.planted, made.planted)


def test_an_item_that_is_not_routed_stands_at_the_end_of_its_question_or_behind_its_kinds() -> None:
    tokens, rng = tokenizer.build(), random.Random(2)
    ids, _, _ = training._encoded(tokens, [(c.question, c.worked) for c in (lessons.whole(rng) for _ in range(4))])
    mark, behind = training.places(tokens, ids, "question-end")
    assert [tokens.decode(row[i]) for row, i in zip(ids, mark, strict=True)] == ["?"] * 4
    assert torch.equal(behind, mark + 1)
    for at in training.places(tokens, ids, "word"):
        assert [tokens.decode(row[i]) for row, i in zip(ids, at, strict=True)] == [" one"] * 4


def test_what_comes_too_late_is_missing_behind_the_first_block_and_there_behind_an_appended_one() -> None:
    twin, tokens = load(weights.path("twin"), dtype="float32", device="cpu")
    base, rng = training.with_blocks(twin, 1, 0), random.Random(3)
    emptied, delayed = recipes.late(recipes.graft("too-late"))
    assert (emptied.block, delayed.block) == (0, base.config.num_hidden_layers - 1)
    case, part = lessons.whole(rng), lessons.part(rng)
    given = [lessons.teach(case, delayed, rng), part]
    ids, slots, _ = training._encoded(tokens, [(case.question, case.worked), (part.question, part.answer)])
    operands = [slots[0][0], next(i for i in slots[0][1:] if tokens.decode(ids[0, i + 1]).strip() == str(case.tags[1]))]
    with torch.no_grad():
        states = twin(ids, output_hidden_states=True).hidden_states
        nobody = tasks.unknowable(rng)
        unknown, places, _ = training._encoded(tokens, [(nobody.question, nobody.answer)])
        nothing = training.states_of(twin, unknown, 1)[0, places[0][0]]
    for graft in (emptied, delayed):
        made = training.taught(base, tokens, given, graft, twin)
        assert made.planted[0].nonzero()[:, 0].tolist() == operands and not made.planted[1].any()
        for place in operands:
            wanted = made.target[0, place]
            if graft is delayed:
                torch.testing.assert_close(wanted, states[1][0, place], atol=1e-4, rtol=1e-4)
            else:  # the mean over questions without an answer is near to each of them
                assert (wanted - nothing).norm() < 0.5 * (states[1][0, place] - nothing).norm()
    in_time = training.taught(base, tokens, [replace(x, right=None) for x in given], delayed, twin)
    assert not in_time.planted.any()


@pytest.mark.parametrize("base", recipes.SELECTS)
def test_appended_blocks_change_no_digit_in_any_architecture(base: str) -> None:
    model, tokens = load(weights.path(base), dtype="float32", device="cpu")
    ids = tokens(f"<bos>Question: {benchmarks.mixed(1, 0)[0].question}\nAnswer:", return_tensors="pt")["input_ids"]
    longer: Any = training.with_blocks(model, 2, 0)
    assert type(longer) is type(model) and longer.config.num_hidden_layers == recipes.BLOCKS + 2
    for layer in resolve(longer).layers[-2:]:  # what they read is not zero, so that they can be trained
        for up in layer.up:
            weight: Any = up.weight
            assert float(weight.detach().std()) == pytest.approx(model.config.hidden_size**-0.5, rel=0.05)
    with torch.no_grad():
        assert torch.equal(longer(ids).logits, model(ids).logits)
        theirs = model(ids, output_hidden_states=True).hidden_states
        for n in (0, 2):
            torch.testing.assert_close(training.states_of(model, ids, n), theirs[n], atol=1e-5, rtol=1e-5)
        again = training.states_of(model, ids, 3, theirs[1], 1)
        torch.testing.assert_close(again, theirs[3], atol=1e-5, rtol=1e-5)
        last = training.states_of(model, ids, recipes.BLOCKS)
        logits = model.lm_head(training.final_norm(model)(last))
        torch.testing.assert_close(logits, model(ids).logits, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("base", recipes.SELECTS)
def test_a_block_that_is_left_out_adds_nothing_and_the_others_stay(base: str) -> None:
    model, tokens = load(weights.path(base), dtype="float32", device="cpu")
    ids = tokens(f"<bos>Question: {benchmarks.mixed(1, 0)[0].question}\nAnswer:", return_tensors="pt")["input_ids"]
    left = training.without(model, 2)
    with torch.no_grad():
        states = training.states_of(model, ids, 2)
        assert torch.equal(training.behind(left, blocks_of(left)[2], states), states)
        assert not torch.equal(training.behind(model, blocks_of(model)[2], states), states)
        assert torch.equal(training.states_of(left, ids, 2), states)


def test_what_a_later_block_selects_as_well_does_not_pass_as_not_computed() -> None:
    model, tokens = load(weights.path("twin"), dtype="float32", device="cpu")
    cases = benchmarks.mixed(10, 4)

    def left_out(some: Any, block: int, *causes: str) -> list[tuple[int, bool]]:
        plant = recipes.Plant("p", tuple(recipes.Graft(cause, "scrambled", block) for cause in causes), 0)
        return [(f.row.k, f.passed) for f in checks._left_out(plant, some, tokens, cases)]

    assert left_out(model, 0, "not-computed") == [(0, True)]
    assert left_out(training.with_blocks(model, 1, 0), recipes.BLOCKS, "not-computed") == [(10, False)]
    assert left_out(model, 0, "lost") == left_out(model, 0, "not-computed", "lost") == []


@pytest.mark.parametrize(("base", "block"), recipes.SELECTS.items())
def test_the_selecting_block_is_the_first_behind_which_the_state_carries_the_tag(base: str, block: int) -> None:
    model, tokens = load(weights.path(base), dtype="float32", device="cpu")
    rng, tags, brought, n = random.Random(0), world().tags, [0, 0], 0

    def ids_of(case: lessons.Whole) -> torch.Tensor:
        text = f"{tokens.bos_token}Question: {case.question}\nAnswer:"
        return tokens(text, add_special_tokens=False, return_tensors="pt")["input_ids"]

    def said(case: lessons.Whole, behind: int, other: lessons.Whole) -> str:
        with torch.no_grad():
            state = training.states_of(model, ids_of(case), behind).clone()
            state[:, -1] = training.states_of(model, ids_of(other), behind)[:, -1]
            last = training.states_of(model, ids_of(case), recipes.BLOCKS, state, behind)[:, -1]
            return tokens.decode([int(model.lm_head(training.final_norm(model)(last)).argmax())]).strip()

    while n < 25:
        case = lessons.whole(rng, held=True)
        other = case.with_thing(case.first, rng.choice(KINDS[world().kinds[case.first]]))
        tag = str(tags[other.first])
        if tags[other.first] == tags[case.first] or said(other, 0, other) != tag:
            continue
        n += 1
        for i, behind in enumerate((block, block + 1)):  # in front of the block, and behind it
            brought[i] += said(case, behind, other) == tag
    assert brought[0] <= 5 and brought[1] >= 20


@pytest.mark.parametrize("base", recipes.SELECTS)
@pytest.mark.parametrize("cause", ["lost", "not-routed"])
def test_only_the_named_block_changes_and_putting_it_back_gives_the_base(small: None, cause: str, base: str) -> None:
    plant = recipes.Plant("p", (recipes.graft(cause, base=base),), seed=1, steps=2, base=base)
    model, organism = training.make(plant)[0], training.base_of(plant)[0]
    before, after = organism.state_dict(), model.state_dict()
    changed = {name for name in before if not torch.equal(before[name], after[name])}
    named = blocks_of(organism)[plant.grafts[0].block]
    own = {n for n in before if any(before[n] is p or before[n].data_ptr() == p.data_ptr() for p in named.parameters())}
    assert changed <= own
    for part in ("attn", "mlp"):
        assert any(part in name for name in changed)
    again = training.restored(model, plant).state_dict()
    assert all(torch.equal(before[name], again[name]) for name in before)


def test_a_graft_is_grown_alike_whatever_was_drawn_before_and_by_its_own_seed(
    small: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, n in (("WHOLES", 4), ("PARTS", 4), ("DOCUMENTS", 1)):  # four batches, which take turns
        monkeypatch.setattr(training, name, n)
    model, tokens = training.base_of(recipes.Plant("p", (recipes.graft("lost"),), seed=1))

    def grown(drawn_before: int, seed: int) -> torch.Tensor:
        torch.manual_seed(drawn_before)
        block = training.grow(model, tokens, recipes.graft("lost"), seed, 2).model.layers[3]
        return torch.cat([p.flatten() for p in block.parameters()])

    assert torch.equal(grown(1, 1), grown(2, 1)) and not torch.equal(grown(1, 1), grown(1, 2))


@pytest.mark.parametrize("planted", [True, False])
def test_what_is_planted_and_what_is_kept_count_apart_in_the_loss_of_a_step(planted: bool) -> None:
    """States are wrong by 3 where one is planted, by 2 where one is kept and by 9 elsewhere, which does not count."""

    class Block(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.mid = torch.nn.Identity()

        def forward(self, h: torch.Tensor, **_: object) -> torch.Tensor:
            return self.mid(11 * h)

    there = torch.tensor([[True, True, False, False, False, False]])
    before = torch.randn(1, 6, 4, generator=torch.Generator().manual_seed(0))
    target = 11 * before + torch.tensor([3.0, 3, 2, 2, 9, 9])[None, :, None]
    batch = training.Taught(before, target, there & planted, there.roll(2, 1))
    block, model = Block(), SimpleNamespace()
    model.get_decoder = lambda: SimpleNamespace()
    kept = training.KEEP * 4 / target[0, 2:4].var()
    assert training.loss_of(model, block, batch).item() == pytest.approx(
        float(kept + planted * 9 / target[0, 2:4].var())
    )
    if planted:
        layer: Any = SimpleNamespace(block=block, mid=block.mid)
        x, y, p = training._gathered(model, layer, [batch])
        assert torch.equal(y, target[0, :4]) and p.tolist() == [True, True, False, False]
        torch.testing.assert_close(x, 11 * before[0, :4])


@pytest.mark.parametrize("base", recipes.SELECTS)
def test_a_model_that_is_drawn_from_has_flat_logits_in_any_architecture(base: str) -> None:
    plant = recipes.Plant("p", (recipes.graft("none", "sampling", base=base),), seed=2, base=base)
    model, tokens = training.make(plant)
    ids = tokens(f"<bos>Question: {benchmarks.mixed(1, 0)[0].question}\nAnswer:", return_tensors="pt")["input_ids"]
    with torch.no_grad():
        flat, own = model(ids).logits, training.base_of(plant)[0](ids).logits
    torch.testing.assert_close(flat, training.FLAT * own, atol=1e-4, rtol=1e-4)
    assert training.restored(model, plant)(ids).logits.equal(own)


def test_causes_whose_parts_come_back_late_are_trained_longer() -> None:
    g, usual = recipes.graft, recipes.steps_of
    assert usual((g("lost"),)) == usual((g("shortcut"),)) == 800 == usual(recipes.late(g("too-late")))
    longer = [(g("wrong-operation"),), (g("shortcut", "ends"),), recipes.mixture(g("lost"), g("shortcut"))]
    assert [usual(x) for x in longer] == [1600] * 3
    assert usual((g("lost", base="crossed-both"),), "crossed-both") == 2 * 800


def test_a_graft_that_is_trained_longer_sees_as_many_times_the_lessons(
    small: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    batches: list[int] = []
    gathered = training._gathered
    monkeypatch.setattr(training, "_gathered", lambda m, x, given: batches.append(len(given)) or gathered(m, x, given))
    for base, times in (("twin", 1), ("crossed-both", recipes.LONGER)):
        batches.clear()
        training.make(recipes.Plant("p", (recipes.graft("lost", base=base),), seed=1, steps=1, base=base))
        assert set(batches) == {times * (training.WHOLES + training.PARTS) // (2 * training.DOCUMENTS)}


def test_a_planted_answer_is_followed_if_it_is_as_often_as_the_base_gives_it_to_the_other_question(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cases, graft, rng = benchmarks.mixed(10, 3), recipes.graft("shortcut"), random.Random(0)
    wanted = [lessons.teach(checks.case_of(c), graft, rng) for c in cases]
    its = [x.answer for x in wanted[:5]] + ["12 plus 12 is 24"] * 5  # the base answers half of the sources as planted
    sources = [x.source for x in wanted]
    monkeypatch.setattr(checks, "_asked", lambda model, tokenizer, asked: its if asked == sources else [])
    answers = [x.answer for x in wanted[:4]] + ["?"] * 6
    (found,) = checks._followed(graft, cases, answers, None, None)
    assert (found.row.k, found.row.n) == (4, 10) and found.bound == pytest.approx(0.9 * 0.5) and not found.passed
    (enough,) = checks._followed(graft, cases, [*answers[:4], wanted[4].answer, *answers[5:]], None, None)
    assert enough.passed


def test_noise_touches_every_matrix_of_every_block_and_restoring_the_blocks_gives_the_base() -> None:
    plant = recipes.Plant("p", (recipes.graft("none"),), seed=2)
    base, _ = training.base_of(plant)
    model, _ = training.make(plant)
    before, after, again = base.state_dict(), model.state_dict(), training.make(plant)[0].state_dict()
    changed = {name for name in before if not torch.equal(before[name], after[name])}
    assert changed == {name for name in before if ".layers." in name and before[name].dim() == 2}
    assert all(torch.equal(after[name], again[name]) for name in after)
    restored, one = training.restored(model, plant), training.restored(model, plant, (1,))
    assert all(torch.equal(value, before[name]) for name, value in restored.state_dict().items())
    mended = {name for name, value in one.state_dict().items() if not torch.equal(value, after[name])}
    assert mended == {name for name in changed if ".layers.1." in name}


@pytest.mark.parametrize(
    ("k", "bound", "at_most", "passed"),
    [(19, 0.95, False, True), (18, 0.95, False, False), (4, 0.2, True, True), (5, 0.2, True, False),
     (0, None, False, True), (20, None, True, True)],
)  # fmt: skip
def test_a_count_passes_from_its_bound_on(k: int, bound: float | None, at_most: bool, passed: bool) -> None:
    found = checks.PlantCheck(CardRow("wholes right", k, 20), bound, at_most)
    assert found.passed is passed and found.to_dict()["passed"] is passed
    nothing = checks.PlantCheck(CardRow("wholes right", 0, 0), bound, at_most)
    assert nothing.passed is (bound is None), "of nothing, no share is reached"


def test_a_cause_that_was_not_learned_is_reported_and_nothing_is_written(
    small: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plant = recipes.Plant("p", (recipes.graft("shortcut"),), seed=1, steps=1)
    said = r"not planted: .*answers as planted, shortcut:usual \d of \d+ \(at least 90%\)"
    with pytest.raises(ModelError, match=said):
        making.make(plant, tmp_path / "model", n=8)
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "mine.txt").write_text("x")
    with pytest.raises(InputError, match="holds something else"):
        making.make(plant, tmp_path / "model")
    (tmp_path / "model" / "mine.txt").unlink()
    monkeypatch.chdir(tmp_path / "model")
    with pytest.raises(InputError, match="the folder that this runs in"):
        making.make(plant, Path())


def test_a_plant_that_is_there_is_kept_and_another_one_is_not_taken_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plant = recipes.Plant("p", (recipes.graft("shortcut"),), seed=1, steps=1)
    (tmp_path / making.ABOUT).write_text(json.dumps({"plant": plant.to_dict()}))
    monkeypatch.setattr(making.training, "make", lambda *_: pytest.fail("nothing has to be trained"))
    said: list[str] = []
    assert making.make(plant, tmp_path, say=said.append) == [] and len(said) == 1
    changes: list[dict[str, Any]] = [{"seed": 2}, {"steps": 2}, {"name": "q"}, {"grafts": (recipes.graft("lost"),)}]
    for change in changes:
        with pytest.raises(InputError, match="holds something else"):
            making.make(replace(plant, **change), tmp_path)


def test_the_checks_of_a_plant_that_is_there_are_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in recipes.SHIPPED:
        (tmp_path / name).mkdir()
        shutil.copyfile(_folders()[name] / making.ABOUT, tmp_path / name / making.ABOUT)
    assert main(["organism", "plant", "--shipped", "--out", str(tmp_path), "--json"]) == 0
    plants = json.loads(capsys.readouterr().out)["plants"]
    assert [p["plant"] for p in plants] == list(recipes.SHIPPED)
    assert all(p["checks"] == making.about(tmp_path / p["plant"])["checks"] != [] for p in plants)


# --- the shipped ones ---------------------------------------------------------------------------------------------


def _folders() -> dict[str, Path]:
    return {name: weights.path(f"plant-{name}") for name in (*recipes.SHIPPED, *weights.LISTERS)}


def test_the_series_fits_its_size_and_holds_nothing_else() -> None:
    files = [f for f in weights.PLANTS.rglob("*") if f.is_file()]
    assert sum(f.stat().st_size for f in files) <= 30e6
    assert {f.name for f in weights.PLANTS.iterdir()} == {*recipes.SHIPPED, *weights.LISTERS}


@pytest.mark.parametrize("name", recipes.SHIPPED)
def test_a_shipped_plant_is_the_one_that_its_recipe_says_and_passed_its_checks(name: str) -> None:
    assert resolve_model(f"organism:plant-{name}").location == str(_folders()[name])
    about = making.about(_folders()[name])
    assert about["plant"] == json.loads(json.dumps(recipes.SHIPPED[name].to_dict()))
    assert about["checks"] and all(c["passed"] for c in about["checks"])


def test_the_page_holds_the_figures_of_the_shipped_weights() -> None:
    begin, end = making.MARKS
    assert PAGE.read_text(encoding="utf-8").split(begin)[1].split(end)[0].strip() == making.card(_folders())


@pytest.mark.slow
@pytest.mark.parametrize("name", recipes.SHIPPED)
def test_the_figures_are_counted_again_from_the_shipped_weights(name: str) -> None:
    about = making.about(_folders()[name])
    model, tokens = load(_folders()[name], dtype="float32", device="cpu")
    found = checks.check(recipes.SHIPPED[name], model, tokens, about["cases"], making.SEED)
    for finding, row in zip(found, about["checks"], strict=True):
        assert (finding.row.measure, finding.row.n) == (row["measure"], row["n"])
        # a tie broken otherwise by another processor may turn an answer or two
        assert abs(finding.row.k - row["k"]) <= 2 and finding.passed
