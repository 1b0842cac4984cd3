"""Recipes, presets, training questions, and the proof that none of them is evaluated."""

from __future__ import annotations

import json
import random
from collections import Counter
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from composcope.errors import InputError
from composcope.evaluation.cases import Case, Part, write_cases
from composcope.evaluation.protocols import get
from composcope.evaluation.protocols.presenting import chosen
from composcope.experiments.interventions import data, recipes, trainers, training
from composcope.experiments.interventions.recipes import PRESETS, AdapterRecipe, resolve
from composcope.experiments.interventions.study import InterventionStudy
from composcope.experiments.organism import benchmarks, world
from composcope.terminal import whole_numbers


def test_published_presets_are_the_published_settings() -> None:
    v1, v2, v3, v4 = (PRESETS[name] for name in ("v1", "v2", "v3", "v4"))
    assert [p.depths for p in (v1, v2, v3, v4)] == [(2, 4), (2, 4, 6), (2, 4, 6), (2, 4, 6, 8)]
    assert [p.prompts for p in (v1, v2, v3, v4)] == [120, 210, 210, 300]
    assert [(p.rank, p.alpha, p.epochs) for p in (v1, v2, v3, v4)] == [(32, 64, 4)] * 2 + [(64, 128, 8)] * 2
    same = {"objective": "grpo", "dropout": 0.05, "learning_rate": 1e-5, "schedule": "linear", "warmup": 0.0,
            "prompts_per_step": 1, "examples_per_step": 8, "micro_batch": 1, "generations": 8, "beta": 0.04,
            "temperature": 1.0, "max_tokens": 512, "format": "xml", "solutions": "written"}  # fmt: skip
    assert all({k: p.to_dict()[k] for k in p.to_dict() if k in same} == same for p in (v1, v2, v3, v4))


def test_organism_presets_keep_depths_adapters_and_the_ratio_of_epochs() -> None:
    for name in ("v1", "v2", "v3", "v4"):
        small, big = PRESETS[f"organism-{name}"], PRESETS[name]
        assert (small.depths, small.rank, small.alpha) == (big.depths, big.rank, big.alpha)
        assert small.epochs * 2 == big.epochs
    assert PRESETS["organism-v4"].to_dict() == {
        "objective": "grpo", "depths": [2, 4, 6, 8], "prompts": 640, "rank": 64, "alpha": 128, "dropout": 0.0,
        "epochs": 4, "learning_rate": 1e-3, "schedule": "linear", "warmup": 0.05, "prompts_per_step": 4,
        "examples_per_step": 4, "micro_batch": 64, "generations": 8, "beta": 0.04, "temperature": 1.0,
        "max_tokens": 100, "format": "plain", "solutions": "written",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: resolve("dpo"), "--recipe dpo"),
        (lambda: resolve("grpo", "v9"), "--preset v9"),
        (lambda: resolve("grpo", depths=[0]), "--depths 0"),
        (lambda: resolve("grpo", solutions="self"), "--solutions self"),
        (lambda: resolve("sft-trace", solutions="other"), "--solutions other"),
        (lambda: resolve("grpo", generations=1), "--generations 1"),
        (lambda: resolve("grpo", learning_rate=0.0), "--learning-rate.*above 0"),
        (lambda: resolve("sft-trace", format="xml-answer"), "--format xml-answer"),
        (lambda: resolve("grpo", format="poem"), "--format poem"),
        (lambda: resolve("grpo", rank=0), "--rank 0"),
        (lambda: resolve("grpo", "organism-v1", prompts=3), "--prompts 3: GRPO takes 4 prompts a step"),
        (lambda: resolve("grpo", "organism-v1", prompts=6), "--prompts 6"),
        (lambda: resolve("grpo", "v1", prompts_per_step=7), "give a multiple"),
        (lambda: AdapterRecipe("ppo"), "--recipe ppo"),
        (lambda: AdapterRecipe(depths=()), "--depths"),
        (lambda: resolve("grpo", beta=-0.1), "--beta"),
        (lambda: resolve("grpo", dropout=1.0), "--dropout 1.0"),
        (lambda: recipes.check_options("sft-trace", {"max_tokens": 9}), "--max-tokens 9: .*only with --solutions self"),
        (lambda: whole_numbers("2;4", "--depths"), "--depths"),
        (lambda: whole_numbers("-1", "--depths"), "--depths"),
        (lambda: whole_numbers("2,x", "--layers"), "--layers"),
        (lambda: whole_numbers("2,²", "--depths"), "--depths"),
        (lambda: chosen("²", ["organism-mixed"]), "²"),
        (lambda: whole_numbers("", "--depths"), "--depths"),
        (lambda: data.organism_cases([2, 5], 10), "--depths 5"),
        (lambda: InterventionStudy(size="medium"), "--size medium"),
        (lambda: InterventionStudy(seeds=0), "--seeds 0"),
    ],
)
def test_what_cannot_be_is_refused_by_name(call: object, said: str) -> None:
    with pytest.raises(InputError, match=said):
        call()  # type: ignore[operator]


def test_the_least_that_is_possible_is_taken() -> None:
    least = resolve("grpo", depths=[4, 1, 4], beta=0.0, generations=2, dropout=0.0, max_tokens=1)
    assert (least.depths, least.beta, least.generations, least.dropout, least.max_tokens) == ((1, 4), 0.0, 2, 0.0, 1)


def _case(id: str, a: str, b: str, depth: int = 2, family: str = "f") -> Case:
    parts = tuple(Part(f"When was {x}?", "1", atom=f"year:{x}") for x in (a, b))
    return Case(id, f"{family}: {a} or {b}?", a, parts, family=family, depth=depth)


def test_an_overlap_is_refused_with_an_example(tmp_path: Path) -> None:
    cases = [_case(f"c{i}", f"x{i}", f"y{i}") for i in range(6)]
    train, held = tmp_path / "train.jsonl", tmp_path / "held.jsonl"
    write_cases(cases, train)
    write_cases(cases[-3:], held)
    recipe = resolve("grpo", "v1", [2], prompts=6)
    with pytest.raises(InputError, match=r"3 of 6 training cases are also evaluated .*'c\d'"):
        data.training_set(str(train), recipe, str(held))


def test_a_single_file_is_split_without_overlap(tmp_path: Path) -> None:
    cases = [_case(f"{f}{i}", f"x{i}", f"y{i}", family=f) for i in range(10) for f in ("f", "g")]
    path = tmp_path / "all.jsonl"
    write_cases(cases, path)
    found = data.training_set(str(path), resolve("grpo", "v1", [2], prompts=6))
    assert [c.family for c in found.cases].count("f") == 3, "evenly over families"
    assert data.overlap(found.cases, found.evaluation) == []
    # the partner of a trained combination, in the other family, is not evaluated either
    trained = {data.combination(c) for c in found.cases}
    assert not trained & {data.combination(c) for c in found.evaluation}


def test_reasoning_that_does_not_end_in_its_answer_is_not_taught() -> None:
    recipe = resolve("sft-trace", "organism-v1", [4], prompts=3)
    with pytest.raises(InputError, match=r"'train-rank-4-00001' would teach .* graded incorrect in format plain"):
        data.training_set(data.ORGANISM, recipe)
    data.training_set(data.ORGANISM, resolve("sft-trace", "organism-v1", [4], prompts=3, format="xml"))
    data.training_set(data.ORGANISM, resolve("sft-answer", "organism-v1", [4], prompts=3))
    data.training_set(data.ORGANISM, replace(recipe, solutions="self"))  # what is imitated is still to be sampled


def test_a_depth_that_no_question_is_left_for_is_refused() -> None:
    few = resolve("sft-answer", "organism-v4", prompts=4)
    with pytest.raises(InputError, match=r"--prompts 4: .* none is left for depth 6"):
        data.training_set(data.ORGANISM, few)
    assert {c.depth for c in data.training_set(data.ORGANISM, replace(few, prompts=8)).cases} == {2, 4, 6, 8}


def test_the_question_is_put_as_the_evaluation_puts_it() -> None:
    from composcope.evaluation.prompts import render

    case = _case("c", "x", "y")
    assert data.question(case, resolve("grpo", "v1")) == render(case.question, "xml")
    told = replace(case, evidence="Ice melts.", options=(("A", "red"), ("B", "blue")))
    [whole] = [ask for ask in get("compositionality-gap", format="xml").asks(told, {}) if ask.role == "whole"]
    assert data.question(told, resolve("grpo", "v1")) == whole.prompt and "(B) blue" in whole.prompt


def _asked(
    id: str, depth: int = 4, family: str = "f", question: str | None = None, atoms: str = "", **more: Any
) -> Case:
    parts = tuple(Part(f"part of {id} {a}", "1", atom=a or None) for a in atoms or " ")
    return Case(id, question or f"Question {id}?", "1", parts, family=family, depth=depth, **more)


def test_training_cases_are_spread_over_families_and_depths_by_the_seed() -> None:
    pool = [_asked(f"{f}{d}-{i}", d, f) for f in "xy" for d in (2, 4, 6) for i in range(20)]
    pool.append(_asked("nobody", 4, "x", unknowable=True))
    recipe = AdapterRecipe(depths=(2, 4), prompts=10)
    drawn = data._draw(pool, recipe, "f", 0)
    assert "nobody" not in {c.id for c in data._draw(pool, replace(recipe, prompts=80), "f", 0)}
    cells = Counter((c.family, c.depth) for c in drawn)
    assert sorted(cells) == [("x", 2), ("x", 4), ("y", 2), ("y", 4)] and sorted(cells.values()) == [2, 2, 3, 3]
    assert [c.id for c in drawn] == [c.id for c in data._draw(pool, recipe, "moved", 0)]
    assert {c.id for c in drawn} != {c.id for c in data._draw(pool, recipe, "f", 1)}
    for wrong, said in (
        (AdapterRecipe(depths=(3,)), "no case of depth 3 .it has 2, 4, 6."),
        (AdapterRecipe(depths=(2,), prompts=41), "40 cases at depth 2.*--prompts 40 or fewer"),
    ):
        with pytest.raises(InputError, match=said):
            data._draw(pool, wrong, "f", 0)


def test_cases_overlap_by_their_question_or_by_two_parts_and_never_by_one() -> None:
    train = [_asked("a", question="Same  QUESTION?"), _asked("b", atoms="xy"), _asked("c", atoms="x")]
    train.append(_asked("d", atoms="yz"))
    test = [_asked("1", question="same question?"), _asked("2", atoms="yx"), _asked("3", atoms="x")]
    test.append(_asked("4", atoms="y"))
    assert data.overlap(train, test) == [("a", "1"), ("b", "2")]
    assert [c.id for c in data._rest([*test, *train], train, "f")] == ["3", "4"]
    with pytest.raises(InputError, match=r"1 of 1 training cases are also evaluated \(first: 'a' is '1'"):
        data.check_disjoint(train[:1], test, "w")
    with pytest.raises(InputError, match="no case is left"):
        data._rest(train, train, "f")


def test_what_is_imitated_is_the_answer_alone_or_with_its_working(monkeypatch: pytest.MonkeyPatch) -> None:
    case = Case("c", "Q?", "7", (Part("One?", "3"), Part("Two?", "4", worked="3 + 4 = 7")))
    assert data.trace(case) == "One? 3. Two? 3 + 4 = 7." and data.trace(replace(case, worked="w")) == "w"
    answer, worked = (AdapterRecipe(objective) for objective in ("sft-answer", "sft-trace"))
    assert data.target(case, answer) == "<answer>7</answer>"
    text = data.target(case, worked)
    assert text.startswith("<reasoning>") and data.trace(case) in text and text.endswith("<answer>7</answer>")
    data._check_targets([case], answer, "w")
    monkeypatch.setattr(data, "target", lambda *_: "<answer>8</answer>")
    with pytest.raises(InputError, match="case 'c' would teach '<answer>8</answer>', which is graded incorrect"):
        data._check_targets([case], answer, "w")


def test_organisms_are_trained_on_as_many_cases_of_each_family_and_depth() -> None:
    cases = data.organism_cases((2, 4), 10, 0)
    cells = {("pair", 2): 3, ("rank", 4): 3, ("successor", 4): 2, ("interval", 4): 2}
    assert Counter((c.family, c.depth) for c in cases) == cells and len({c.question for c in cases}) == 10
    other = data.organism_cases((2, 4), 10, 1)
    assert data.organism_cases((2, 4), 10, 0) == cases and {c.question for c in cases} != {c.question for c in other}
    assert all(c.worked and c.parts and c.id.startswith(f"train-{c.family}-{c.depth}-") for c in cases)
    for case in cases:
        events = [(p.atom or "").removeprefix("year:") for p in case.parts]
        assert not world.held_out(events)
        assert [p.answer for p in case.parts] == [str(world.world().years[e]) for e in events]


def test_an_organism_is_evaluated_on_thirty_held_out_cases_of_each_family_and_depth_whatever_the_seed() -> None:
    recipe = resolve("sft-answer", "organism-v1", prompts=8)
    first, other = (data.training_set(data.ORGANISM, recipe, seed=seed) for seed in (0, 1))
    held_out = Counter((c.family, c.depth) for c in first.evaluation)
    assert len(held_out) > 6 and set(held_out.values()) == {30}
    assert first.evaluation == other.evaluation and first.sha256 != other.sha256
    assert not data.overlap(first.cases, first.evaluation)


def test_a_preset_takes_the_changes_and_an_option_belongs_to_its_recipe() -> None:
    made = recipes.resolve("sft-answer", "organism-v3", [6, 2, 6], rank=8, epochs=None)
    wanted = replace(recipes.PRESETS["organism-v3"], objective="sft-answer", depths=(2, 6), rank=8)
    assert made == wanted and made.to_dict()["depths"] == [2, 6]
    told = [
        resolve("grpo", thinking=thinking).to_dict().get("thinking", "not told") for thinking in (None, True, False)
    ]
    assert told == ["not told", True, False]
    refused: list[tuple[str, dict[str, Any], str]] = [
        ("sft-answer", {"beta": 0}, "--beta 0: is for grpo"), ("grpo", {"layers": "0"}, "--layers 0"),
        ("steering", {"curve": True}, "--curve: is for"), ("grpo", {"thinking": False, "limit": 3}, "--limit 3"),
        ("steering", {"thinking": False}, "--no-thinking: is for"), ("grpo", {"cases": 3}, "--cases 3: is for"),
        ("patching", {"train": "c.jsonl"}, "--train c.jsonl: is for"),
        ("sft-answer", {"max_tokens": 9}, "--max-tokens 9: is for sft-trace"),
        ("steering", {"depths": "2"}, "--depths 2: is for sft-answer and sft-trace and grpo")]  # fmt: skip
    for recipe, given, said in refused:
        with pytest.raises(InputError, match=said):
            recipes.check_options(recipe, given)
    recipes.check_options("grpo", {"beta": 0, "thinking": False, "curve": True, "limit": 3, "layers": None})
    recipes.check_options("steering", {"curve": False, "layers": "0,2"})
    assert [whole_numbers(text, "--layers") for text in ("0, 2", "3,")] == [[0, 2], [3]]


def test_more_questions_than_there_are_of_a_depth_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    qa = benchmarks.DRAW["rank"](random.Random(0), 4, False)
    monkeypatch.setitem(benchmarks.DRAW, "rank", lambda *_: qa)
    case = data.organism_cases([4], 3)[0]
    assert (case.question, case.family, case.depth, case.worked) == (qa.question, "rank", 4, qa.reasoning)
    with pytest.raises(InputError, match=r"--prompts: .* fewer than 2 rank questions of depth 4"):
        data.organism_cases([4], 6)


@pytest.mark.parametrize(
    ("thinking", "template", "switch", "said"),
    [(None, None, False, None), (True, None, False, "--thinking: m has no chat template"),
     (False, None, False, "--no-thinking: m has no chat template"), (True, "t", False, "no thinking mode"),
     (False, "t", False, None), (True, "t", True, None)],
)  # fmt: skip
def test_thinking_is_switched_only_where_the_chat_template_can(
    thinking: bool | None, template: str | None, switch: bool, said: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(training, "chat_ids", lambda tokenizer, texts, name, **how: [sorted(map(str, how.items()))]
                        if switch else [[1]])  # fmt: skip
    recipe: Any = replace(resolve("sft-trace", "organism-v1"), thinking=thinking)
    tokenizer: Any = type("T", (), {"chat_template": template})()
    if said is None:
        training._check_thinking(recipe, tokenizer, "m")
        return
    with pytest.raises(InputError, match=said):
        training._check_thinking(recipe, tokenizer, "m")


def test_a_folder_that_is_no_training_or_has_no_adapter_is_named(tmp_path: Path) -> None:
    for text in (None, "{}", '{"identity": {}}'):
        if text is not None:
            (tmp_path / "manifest.json").write_text(text)
        with pytest.raises(InputError, match=f"{tmp_path}: no training here"):
            trainers.read_manifest(tmp_path)
    (tmp_path / "manifest.json").write_text('{"identity": {"base_weights": "w"}}')
    assert trainers.read_manifest(tmp_path)["identity"] == {"base_weights": "w"}
    with pytest.raises(InputError, match=f"{tmp_path}: no adapter_model"):
        trainers.with_adapter(None, tmp_path)


def test_an_adapter_is_merged_into_a_new_folder_and_onto_its_own_base_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[Any] = []
    kept = SimpleNamespace(save_pretrained=lambda at: made.append(("model", at)))
    words = SimpleNamespace(save_pretrained=lambda at: made.append(("tokenizer", at)))
    monkeypatch.setattr(trainers, "resolve_model", lambda name: SimpleNamespace(location=f"at/{name}"))
    monkeypatch.setattr(trainers, "base_hash", lambda location: f"weights of {location}")
    monkeypatch.setattr("composcope.model_loading.load", lambda at, dtype: (f"{at} in {dtype}", words))
    monkeypatch.setattr(trainers, "with_adapter", lambda base, at: SimpleNamespace(
        merge_and_unload=lambda: made.append((base, at)) or kept))  # fmt: skip
    identity = {"base_weights": "weights of at/m", "dtype": "bfloat16"}
    (tmp_path / "manifest.json").write_text(json.dumps({"identity": identity, "base": "organism:none"}))
    out = tmp_path / "merged"
    assert trainers.merge("m", tmp_path, out) == out
    assert made == [("at/m in bfloat16", tmp_path / "adapter"), ("model", out), ("tokenizer", out)]
    with pytest.raises(InputError, match=rf"{tmp_path}: adapter of other weights .*organism:none"):
        trainers.merge("other", tmp_path, out)
    out.mkdir()
    with pytest.raises(InputError, match=f"--out {out}: already exists"):
        trainers.merge("m", tmp_path, out)
