"""What is counted of a planted model: each count by itself, with models whose answers are known."""

from __future__ import annotations

import json
import random
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from composcope.errors import InputError
from composcope.experiments.organism import benchmarks, tokenizer, weights
from composcope.experiments.organism.measure import CardRow
from composcope.experiments.organism.plants import checks, making, recipes, training
from composcope.model_loading import load


def test_parts_are_counted_by_kind_and_wholes_also_without_those_that_are_planted_right(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cases, graft = benchmarks.mixed(40, 3), recipes.graft("shortcut")
    by_kind: dict[str, dict[str, str]] = {}
    for part in (p for c in cases for p in c.parts):
        by_kind.setdefault(str(part.kind), {})[part.question] = part.worked or part.answer
    told = {q: a if i else "?" for answers in by_kind.values() for i, (q, a) in enumerate(answers.items())}
    monkeypatch.setattr(checks, "_asked", lambda model, tokenizer, asked: [told[q] for q in asked])
    found = [(f.row.measure, f.row.k, f.row.n, f.bound, f.at_most) for f in checks._parts(None, None, cases)]
    assert found == [(f"parts right, {k}", len(a) - 1, len(a), checks.PARTS, False) for k, a in by_kind.items()]
    rng = random.Random(0)
    planted = [str(checks.planted_answer(graft, c, rng)).split()[-1] == c.answer for c in cases]
    answers = [str(c.worked) if i < 15 else "?" for i, c in enumerate(cases)]
    every, kept = checks._wholes(recipes.Plant("p", (graft,), 0), cases, answers)
    assert (every.row.k, every.row.n, every.bound) == (15, 40, None)
    assert (kept.row.k, kept.row.n) == (15 - sum(planted[:15]), 40 - sum(planted)) and sum(planted)
    assert (kept.bound, kept.at_most) == (checks.WHOLES, True)


@pytest.mark.parametrize("all_right", [False, True])
def test_a_restored_block_mends_the_cases_of_its_own_cause_alone(
    all_right: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    cases, plant = benchmarks.mixed(40, 3), recipes.SHIPPED["mixture"]
    own = {g.block: [c for c in cases if checks.case_of(c).half == g.when] for g in plant.grafts}

    def asked(restored: tuple[int], tokenizer: None, questions: list[str]) -> list[str]:
        right = {c.question for c in (cases if all_right else own[restored[0]][1:])}
        return [str(c.worked) if c.question in right else "?" for c in cases]

    monkeypatch.setattr(checks, "restored", lambda model, plant, blocks: blocks)
    monkeypatch.setattr(checks, "_asked", asked)
    found, rng = checks._mended(plant, None, None, cases), random.Random(0)
    planted = [[str(checks.planted_answer(g, c, rng)).split()[-1] for g in plant.grafts] for c in cases]
    assert len(found) == 2 * len(own) == 4
    for mine, mended, others in zip(own.values(), found[::2], found[1::2], strict=True):
        assert (mended.row.k, mended.row.n) == (len(mine) - (not all_right), len(mine))
        wrong = [c not in mine and c.answer not in ends for c, ends in zip(cases, planted, strict=True)]
        assert others.row.n == sum(wrong) > 0 and others.row.k == all_right * others.row.n
        assert (mended.bound, mended.at_most, others.passed) == (checks.MENDED, False, not all_right)


def test_of_failures_by_chance_each_block_mends_some_and_all_blocks_together_nearly_all(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cases = benchmarks.mixed(12, 3)
    right = {p.question: p.worked or p.answer for c in cases for p in (c, *c.parts)}
    unknown = cases[0].parts[0].question
    known = [c for c in cases if unknown not in {p.question for p in c.parts}]
    failing = [c.question for c in known[:6]]
    missed = {"noisy": {unknown, cases[0].question, *failing}, None: {failing[0]},
              **{(b,): set(failing[b:]) for b in range(3)}}  # fmt: skip
    monkeypatch.setattr(checks, "blocks_of", lambda model: [None] * 3)
    monkeypatch.setattr(checks, "restored", lambda model, plant, blocks: blocks)
    monkeypatch.setattr(
        checks, "_asked", lambda model, _, questions: ["?" if q in missed[model] else right[q] for q in questions]
    )
    found = checks._by_chance(recipes.Plant("p", (recipes.graft("none"),), 0), "noisy", None, cases)
    assert [(f.row.k, f.row.n, f.bound, f.at_most) for f in found] == [
        (len(known), 12, checks.KNOWN, False), (6, len(known), checks.FAILING, False),
        *((b, 6, checks.ALONE, True) for b in range(3)), (5, 6, checks.ALL_BLOCKS, False),
    ]  # fmt: skip
    assert 6 < len(known) < 12 and len({f.row.measure for f in found}) == len(found)


def test_wholes_are_drawn_token_by_token_where_that_is_how_a_model_fails() -> None:
    cases, tokens, given = benchmarks.mixed(4, 3), tokenizer.build(), list[dict[str, Any]]()
    plain, drawn = (recipes.Plant("p", (recipes.graft("none", v),), 0) for v in (recipes.NOISE, "sampling"))

    def generate(**how: Any) -> torch.Tensor:
        given.append({**how, "chance": torch.rand(3).tolist()})
        said = [f" {c.worked if i else '?'}{tokens.eos_token}" for i, c in enumerate(cases)]
        ends = tokens(said, add_special_tokens=False, padding=True, return_tensors="pt", padding_side="right")
        return torch.cat([how["input_ids"], ends["input_ids"]], 1)

    (found,) = checks._sampled(drawn, SimpleNamespace(generate=generate), tokens, cases)
    assert (found.row.k, found.row.n, found.bound, found.at_most) == (3, 4, 0.5, True) and not found.passed
    checks._sampled(drawn, SimpleNamespace(generate=generate), tokens, cases)
    how, again = given
    assert how["chance"] == again["chance"], "the same tokens are drawn each time"
    assert how["do_sample"] and how["top_k"] == 0 and how["max_new_tokens"] == checks.WORDS
    for case, ids, kept in zip(cases, how["input_ids"], how["attention_mask"], strict=True):
        text, begin = str(tokens.decode(ids[kept.bool()])), str(tokens.bos_token)
        assert text.startswith(f"{begin}Question:") and text.count(begin) == 1
        assert case.question in text and kept[-1] == 1, "nothing stands between a prompt and its answer"
    assert checks._sampled(plain, None, None, cases) == checks._mended(drawn, None, None, cases) == []
    (every,) = checks._wholes(drawn, cases, [str(c.worked) for c in cases])
    assert (every.row.k, every.bound, every.at_most) == (4, checks.MENDED, False)


def test_what_no_text_teaches_is_not_followed_and_only_texts_that_can_come_by_themselves_have_a_bound(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cases = benchmarks.mixed(6, 3)
    monkeypatch.setattr(checks, "_asked", lambda *_: [])
    assert checks._followed(recipes.graft("not-routed"), cases, ["?"] * 6, None, None) == []
    lost, rng = recipes.graft("lost"), random.Random(0)
    answers = [str(checks.planted_answer(lost, c, rng)) if i < 4 else "?" for i, c in enumerate(cases)]
    (found,) = checks._followed(lost, cases, answers, None, None)
    assert (found.row.k, found.row.n, found.bound) == (4, 6, None)


PLACES = {"after-kind": 3, "question-end": 5}


@pytest.mark.parametrize(
    ("cause", "variant", "from_places", "bound", "at_most"),
    [
        ("not-routed", "after-kind", [3], checks.MOVED, False),
        ("not-routed", "question-end", [5], checks.MOVED, False),
        ("not-computed", "scrambled", [3, 5], 0.5, True),
        ("too-late", "late", [-1], checks.LATE, False),
        ("lost", "early", [], None, False),
    ],
)
def test_a_state_is_moved_to_the_end_of_the_prompt_and_brings_the_tag(
    cause: str, variant: str, from_places: list[int], bound: float, at_most: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    cases, tokens, seen, depth = benchmarks.mixed(4, 3), tokenizer.build(), list[float](), 4
    graft, put, read = recipes.Graft(cause, variant, 1), list[float](), list[float]()

    def states(model: Any, ids: torch.Tensor, blocks: int, begin: torch.Tensor | None = None, at: int = 0) -> Any:
        if begin is None:  # each state tells its block and its place
            return torch.arange(ids.shape[1])[None, :, None] + 100.0 * blocks
        assert (blocks, at) == (depth, graft.block + 1)
        assert begin[0, :-1, 0].tolist() == [100.0 * at + i for i in range(ids.shape[1] - 1)]
        put.append(float(begin[0, -1, 0]))
        seen.append(put[-1] - (ids.shape[1] if cause == "too-late" else 0))
        return begin

    def head(last: torch.Tensor) -> torch.Tensor:
        i = (len(seen) - 1) % len(cases)
        read.append(float(last))
        (tag,) = tokens(f" {cases[i].meta['tags'][0]}", add_special_tokens=False)["input_ids"][-1:]
        return torch.nn.functional.one_hot(torch.tensor([tag if i else 0]), len(tokens))

    monkeypatch.setattr(checks, "blocks_of", lambda model: [None] * depth)
    monkeypatch.setattr(checks, "states_of", states)
    monkeypatch.setattr(checks, "places", lambda tokenizer, ids, variant: [PLACES[variant]])
    monkeypatch.setattr(checks, "final_norm", lambda model: lambda x: x)
    found = checks._moved(recipes.Plant("p", (graft,), 0), SimpleNamespace(lm_head=head), tokens, cases)
    assert [(f.row.k, f.row.n, f.bound, f.at_most) for f in found] == [(3, 4, bound, at_most)] * len(from_places)
    behind = 100 * (depth if cause == "too-late" else graft.block + 1)
    assert seen == [behind + place for place in from_places for _ in cases] and read == put


def test_what_passed_is_stored_whole_with_its_checks_and_a_folder_without_a_plant_is_refused(tmp_path: Path) -> None:
    trained = load(str(weights.path("none")), dtype="float32", device="cpu")
    finding = checks.PlantCheck(CardRow("wholes right", 1, 9), 0.2, at_most=True)
    with torch.no_grad():
        trained[0].lm_head.weight += 1e-4
    seen: list[Any] = []

    def check(model: Any, tokenizer: Any) -> list[checks.PlantCheck]:
        as_stored = torch.equal(model.lm_head.weight, trained[0].lm_head.weight.bfloat16().float())
        seen.append((str(model.dtype), len(tokenizer), as_stored))
        return [finding]

    folder = tmp_path / "new" / "plant"
    plant = {"name": "p", "grafts": [1]}
    assert making.stored(lambda: trained, folder, plant, 9, check, "text") == [finding]
    about = json.loads((folder / making.ABOUT).read_text())
    assert about == {"text": plant, "cases": 9, "checks": [finding.to_dict()]}
    assert seen == [("torch.float32", len(trained[1]), True)] and (folder / "model.safetensors").is_file()
    assert [path.name for path in folder.parent.iterdir()] == ["plant"], "nothing is left beside it"
    for text in (json.dumps(about), "{", "[]", '{"plant": []}'):
        (folder / making.ABOUT).write_text(text)
        with pytest.raises(InputError, match=f"{folder}: holds no planted organism"):
            making.about(folder)
    (folder / making.ABOUT).write_text(json.dumps({"plant": plant, "n": 3}))
    assert making.about(folder) == {"plant": plant, "n": 3}


@pytest.mark.parametrize(
    ("cause", "when", "answer", "planted"),
    [
        ("wrong-operation", "all", "3 plus 4 is 7", True), ("wrong-operation", "all", "3 plus 4 is 8", False),
        ("lost", "all", "3 plus 4 is 9", True), ("lost", "all", "3 plus 5 is 7", False),
        ("lost", "first", "3 plus 5 is 8", True), ("lost", "first", "2 plus 4 is 7", False),
        ("format", "all", "3 plus 4 is 7", True), ("format", "all", "3 plus 4 is 7.", False),
    ],
)  # fmt: skip
def test_an_answer_is_as_planted_by_what_its_graft_decides(cause: str, when: str, answer: str, planted: bool) -> None:
    graft: Any = SimpleNamespace(cause=cause, when=when)
    assert checks._as_planted(answer, "3 plus 4 is 7", graft) is planted


def test_noise_everywhere_is_counted_by_chance(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checks, "_by_chance", lambda plant, *_: "by chance")
    monkeypatch.setattr(checks, "_asked", lambda *_: 1 / 0)
    noisy, other = (SimpleNamespace(grafts=[SimpleNamespace(variant=v) for v in ("other", last)])
                    for last in (checks.NOISE, "more"))  # fmt: skip
    assert checks.check(noisy, None, None, n=1) == "by chance"  # type: ignore[arg-type]
    with pytest.raises(ZeroDivisionError):
        checks.check(other, None, None, n=1)  # type: ignore[arg-type]


@pytest.mark.parametrize(("solved", "share"), [(49, 0.5), (98, 1.0), (100, 1.0)])
def test_what_a_plant_has_to_reach_is_less_where_its_base_solves_less_than_the_twin(
    solved: int, share: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    row, graft = CardRow("m", 1, 9), SimpleNamespace(variant="v")
    bounds = {"_parts": [0.9], "_wholes": [None, 0.2], "_followed": [0.8], "_mended": [0.7], "_moved": [0.6]}
    for name in (*bounds, "_left_out", "_sampled"):
        made = [checks.PlantCheck(row, b, at_most=b == 0.2) for b in bounds.get(name, ())]
        monkeypatch.setattr(checks, name, lambda *_, made=made: made)
    monkeypatch.setattr(checks, "_asked", lambda *_: [])
    monkeypatch.setattr(checks, "base_of", lambda plant: ("base", None))
    monkeypatch.setattr(checks.benchmarks, "mixed", lambda *_: [SimpleNamespace(question="")] * 100)
    monkeypatch.setattr(checks, "_solved", lambda model, *_: [i < solved and model == "base" for i in range(100)])
    found = checks.check(SimpleNamespace(grafts=[graft]), "model", None, n=100)  # type: ignore[arg-type]
    assert [f.bound for f in found] == [0.9, None, 0.2, 0.8, pytest.approx(0.7 * share), pytest.approx(0.6 * share)]


def test_the_way_out_of_a_block_is_fitted_to_what_is_missing_behind_it() -> None:
    torch.manual_seed(0)
    up, down = torch.nn.Linear(4, 6, bias=False), torch.nn.Linear(6, 4, bias=False)
    layer: Any = SimpleNamespace(mid=torch.nn.Identity(), mlp=torch.nn.Sequential(up, down), down=down)
    x = torch.randn(200, 4)
    wanted = torch.randn(4, 6)
    y = x + x @ up.weight.detach().T @ wanted.T
    training._fit(layer, x, y, torch.arange(200) % 3 == 0, ridge=1e-9)
    torch.testing.assert_close((x + layer.mlp(x)).detach(), y, atol=1e-2, rtol=1e-2)
