"""Rules of the interventions: who lends a state to whom, how cases are split, what a row counts and a line says."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from composcope.errors import InputError, NoCasesError
from composcope.evaluation.cases import Case, Part
from composcope.evaluation.graded import Graded
from composcope.evaluation.metrics import Metric
from composcope.evaluation.prompts import FORMATS
from composcope.experiments.cli.interventions import _numbers
from composcope.experiments.interventions import data, inference, inside, recipes, study_tables
from composcope.experiments.interventions.inference import InterventionTrial, halve
from composcope.experiments.interventions.recipes import AdapterRecipe
from composcope.experiments.interventions.reward import Rewards
from composcope.probes import neurons, patching
from composcope.probes.result import ProbeResult


def _example(
    case: str, group: str = "failure", family: str = "f", depth: int = 4, size: int = 5, role: str = "whole"
) -> Any:
    ids = (*range(size - 1), sum(ord(c) * 131**i for i, c in enumerate(case)))
    return SimpleNamespace(case=case, group=group, family=family, depth=depth, prompt_ids=ids, role=role)


def _many(n: int = 24) -> list[Any]:
    return [_example(f"{g}{i}", g, "ab"[i % 2], 4 + 2 * (i % 4 // 2)) for g in ("failure", "success") for i in range(n)]


def test_halves_share_no_case_and_each_stratum_is_in_both_and_the_seed_decides() -> None:
    examples = _many()
    found = halve([*examples, _example("part", role="part:0")], 99, 0)
    sides = [{e.case for group in half.values() for e in group} for half in (found.learn, found.test)]
    assert not sides[0] & sides[1] and sides[0] | sides[1] == {e.case for e in examples}
    for half in (found.learn, found.test):
        counts = [sum((e.family, e.depth) == s for e in group) for group in half.values() for s in (("a", 4), ("b", 6))]
        assert set(counts) == {3} and all(e.group == name for name, group in half.items() for e in group)
    few = halve(examples, 2, 0)
    assert {len(group) for half in (few.learn, few.test) for group in half.values()} == {2}

    def order(seed: int) -> list[str]:
        return [e.case for e in halve(examples, 99, seed).learn["failure"]]

    assert order(0) == order(0) != order(1)
    with pytest.raises(NoCasesError, match="both halves need both groups"):
        halve([e for e in examples if e.group == "failure"], 9, 0)


def _trial(**about: Any) -> InterventionTrial:
    given = {"lm": SimpleNamespace(eos_ids=(0,)), "tokenizer": None, "cases": {}, "format": "plain", "compat": None,
             "max_new_tokens": 4, "seed": 0}  # fmt: skip
    return InterventionTrial(**given | about)


def test_a_donor_is_another_case_of_the_family_and_depth_with_the_nearest_length() -> None:
    pool = [_example("me"), _example("kin", size=9), _example("near", size=6), _example("deep", depth=6),
            _example("other", family="g")]  # fmt: skip
    chosen = _trial()._donors(pool, [pool[0], _example("x", family="g", depth=6), _example("y", size=9)])
    assert chosen == [pool[2].prompt_ids, pool[4].prompt_ids, pool[1].prompt_ids]
    assert _trial()._donors(pool[:1], pool[:1]) == [pool[0].prompt_ids], "itself where there is no other"
    alike = [_example(f"d{i}") for i in range(30)]
    picks = [_trial(seed=s)._donors(alike, [_example("z")] * 3) for s in (0, 0, 1)]
    assert picks[0] == picks[1] != picks[2]


def test_rows_count_each_outcome_of_each_source_and_mark_the_chosen_layer() -> None:
    outcomes = {
        ("unchanged", -1): ["correct", "incorrect", "invalid", "correct"],
        ("donor", 2): ["correct"] * 3 + ["abstained"],
    }
    rows = inference._rows(outcomes, "failure", 2)
    assert len(rows) == 8 and {r["group"] for r in rows} == {"failure"}
    counts = {(r["source"], r["quantity"]): (r["count"], r["n"], r["value"], r["chosen"]) for r in rows}
    assert counts["unchanged", "correct_rate"] == (2, 4, 0.5, False) and counts["donor", "correct_rate"] == (
        3,
        4,
        0.75,
        True,
    )
    assert counts["unchanged", "invalid_rate"][0] == counts["donor", "abstained_rate"][0] == 1
    assert [inference._helps(s) for s in ("+1", "+2", "donor", "-1", "failing donor", "none", "random 1")] == [
        True
    ] * 3 + [False] * 4


@pytest.mark.parametrize(("changed", "said"), [(2, True), (1, False)])
def test_a_control_that_changes_something_is_a_warning(changed: int, said: bool) -> None:
    def row(source: str, layer: int, count: int) -> dict[str, Any]:
        return {"group": "failure", "source": source, "layer": layer, "quantity": "correct_rate", "count": count}

    found = inference._warnings([row("unchanged", -1, 1), row("none", 3, changed), row("+1", 3, 4)])
    assert bool(found) == said and (not said or "failure at layer 3" in found[0])


def test_lines_show_the_chosen_layer_with_its_controls_and_the_other_layers_of_what_should_help() -> None:
    def row(
        source: str, layer: int, k: int, n: int = 8, group: str = "failure", chosen: bool = False
    ) -> dict[str, Any]:
        return {"quantity": "correct_rate", "group": group, "source": source, "layer": layer, "chosen": chosen,
                "count": k, "n": n, "value": k / n if n else None, "low": 0.1, "high": 0.9}  # fmt: skip

    rows = [row("unchanged", -1, 0), row("donor", 1, 2), row("donor", 2, 6, chosen=True),
            row("failing donor", 1, 3), row("failing donor", 2, 1, chosen=True), row("donor", 2, 7, 8, "success", True),
            row("donor", 2, 8, 8, "failure, first half", True), {**row("donor", 2, 5), "quantity": "invalid_rate"},
            ]  # fmt: skip
    settings = {"chosen_layer": 2, "right_on_first_half": 3}
    head, *said = inference.lines(ProbeResult("patching", rows, settings=settings, warnings=["w"]))
    assert head == "patching: layer 2 chosen on the first half of the cases; counted on the second"
    assert said == [
        "  failure: unchanged: correct 0 % [10, 90] (0/8)",
        "  failure: donor: correct 75 % [10, 90] (6/8)",
        "  failure: failing donor: correct 12 % [10, 90] (1/8)",
        "  success: donor: correct 88 % [10, 90] (7/8)",
        "  failure: donor at layer 1: correct 25 % [10, 90] (2/8)",
        "  w",
    ]
    none = inference.lines(
        ProbeResult("steering", [row("unchanged", -1, 0, 0)], settings={**settings, "right_on_first_half": 0})
    )
    assert "although no layer put a failure right" in none[0] and none[1].endswith("undefined (n=0)")


def test_the_layer_is_chosen_on_one_half_and_counted_on_the_other(monkeypatch: pytest.MonkeyPatch) -> None:
    halves = halve(_many(), 99, 0)
    seen: list[set[str]] = []

    def outcomes(self: Any, recipe: str, given: Any, recipients: Any, layers: Any) -> dict[tuple[str, int], list[str]]:
        seen.append({e.case for e in recipients})
        right = ["correct"] * len(recipients)
        wrong = ["incorrect"] * len(recipients)
        return {("unchanged", -1): wrong, ("donor", 0): wrong, ("donor", 1): right, ("failing donor", 0): right}

    monkeypatch.setattr(InterventionTrial, "_outcomes", outcomes)
    found = _trial().run("patching", halves, [0, 1])
    sides = [
        {e.case for e in half[g]}
        for half, g in ((halves.learn, "failure"), (halves.test, "failure"), (halves.test, "success"))
    ]
    assert seen == sides and found.settings["chosen_layer"] == 1
    assert found.settings["right_on_first_half"] == len(sides[0])
    assert {r["group"]: r["n"] for r in found.table} == {
        "failure": len(sides[1]), "success": len(sides[2]), "failure, first half": len(sides[0])}  # fmt: skip


def test_states_come_from_the_next_case_of_the_family_and_depth() -> None:
    wholes = [_example("a"), _example("b", family="g"), _example("c"), _example("d", depth=6), _example("e")]
    assert inside._next_of_family(wholes) == [(2, 0), (4, 2), (0, 4)]


def test_a_patch_changes_an_answer_where_any_of_its_tokens_differs(monkeypatch: pytest.MonkeyPatch) -> None:
    wholes, given = [_example("a"), _example("b")], {}

    def sweep(lm: Any, donors: Any, recipients: Any, pairs: Any, **options: Any) -> Any:
        given.update(options, pairs=pairs)
        tokens = torch.tensor([[[[1, 2], [1, 3]], [[4, 5], [4, 5]]], [[[1, 2], [1, 2]], [[4, 5], [4, 5]]]])
        return SimpleNamespace(
            tensors={"tokens": tokens, "base_tokens": torch.tensor([[1, 2], [4, 6]])}, settings={"layers": [0, 3]}
        )

    monkeypatch.setattr(patching, "prompt_end_sweep", sweep)
    found = inside._patching(None, wholes)
    assert (given["pairs"], given["controls"], given["max_new_tokens"]) == ([(1, 0), (0, 1)], (), inside.PATCHED_TOKENS)
    assert found == {"patch at layer 0 changes the answer": {"a": 0.0, "b": 1.0},
                     "patch at layer 3 changes the answer": {"a": 0.0, "b": 1.0}}  # fmt: skip
    assert inside._patching(None, wholes[:1]) == {}


def test_neurons_are_shared_with_the_parts_of_the_same_case_on_average(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = ("a whole", "a part:0", "a part:1", "b part:0", "b whole", "c whole")
    examples = [_example(case, role=role) for case, role in map(str.split, asked)]
    sets = [1.0, 0.25, 0.75, math.nan, 2.0, 3.0]
    monkeypatch.setattr(neurons, "key_neurons", lambda lm, given: sets)
    monkeypatch.setattr(neurons, "share", lambda whole, part: SimpleNamespace(overlap=part * whole))
    (found,) = inside._neurons(None, examples).values()
    assert found["a"] == 0.5 and math.isnan(found["b"]) and math.isnan(found["c"])


def test_cases_that_are_opened_are_known_to_all_models_above_the_control_with_families_in_turn() -> None:
    part = Part("p", "1")
    about = [("a", "x", 4), ("b", "x", 4), ("c", "y", 4), ("d", "x", 2), ("e", "x", 6), ("f", "x", 4)]
    cases = {i: Case(i, "q", "1", (part,), family=f, depth=d) for i, f, d in about}

    def run(unknown: str) -> Any:
        rows = [Graded(i, "part:0", "incorrect" if i in unknown else "correct") for i in cases]
        return SimpleNamespace(cases=cases, graded=rows)

    assert inside.shared([run(""), run("f")], 9) == ["a", "c", "e", "b"]
    assert inside.shared([run("a"), run("")], 2) == ["b", "c"]


def _cell(value: float | None, low: float | None = None, **more: Any) -> dict[str, Any]:
    return {"seeds": 2, "value": value, "low": low, "high": None if low is None else low + 0.2, **more}


SUMMARY = {
    "base": "base", "variant": "grpo", "seeds": 3, "atoms": _cell(0.96), "delta_atom": _cell(0.01, -0.1),
    "delta_depth": _cell(0.5, of=3), "gain_seen": _cell(0.4, 0.3), "gain_held": _cell(-0.1), "ratio": _cell(0.375),
    **{f"residual {d}": _cell(0.1 * d, None, k=[d, 2 * d], n=[40 + d, 20 + d]) for d in study_tables.BINS},
    **{f"delta_comp {d}": _cell(-0.01 * d, of=3) for d in study_tables.BINS},
}  # fmt: skip


def test_tables_of_the_study_have_each_number_in_its_column() -> None:
    def cells(lines: list[str]) -> list[str]:
        return [c.strip() for c in lines[-2].strip("|").split("|")]

    assert cells(study_tables._residual([SUMMARY])) == [
        "base", "grpo", "3", "20", "40", "60", "80", "22/24/26/28", "96"]  # fmt: skip
    single = {**SUMMARY, "residual 2": _cell(0.25, k=[10], n=[40])}
    assert cells(study_tables._residual([single]))[3] == "25 (10/40)"
    assert cells(study_tables._channel_lines([SUMMARY])) == [
        "base", "grpo", "+1 [-10, +10]", "2/3", "-2", "-4", "-6", "-8", "+0.50"]  # fmt: skip
    assert cells(study_tables._transfer([SUMMARY])) == ["base", "grpo", "+40 [+30, +50]", "-10", "0.38 (2 of 3)"]
    unknown = {**SUMMARY, "delta_atom": _cell(None), "gain_seen": _cell(None)}
    assert study_tables._channel_lines([unknown]) == study_tables._transfer([unknown]) == []


def test_channels_of_a_training_are_after_against_before(monkeypatch: pytest.MonkeyPatch) -> None:
    found = [Metric("delta_atom", {"per": "fact"}, n=9, value=0.1), Metric("delta_atom", n=90, value=0.9),
             Metric("delta_comp", {"depth_bin": 4}, n=9, value=-0.2, low=-0.3, high=-0.1, note="x"),
             Metric("delta_depth", n=9, value=1.5, note="y")]  # fmt: skip
    given: list[Any] = []
    monkeypatch.setattr(
        study_tables, "compare", lambda *args: given.append(args) or SimpleNamespace(metrics=found, warnings=("w",))
    )
    after, before = (SimpleNamespace(graded=g, cases={g: g}) for g in ("after", "before"))
    assert study_tables._channels(after, before) == {
        "delta_atom": 0.1, "delta_comp": {"4": {"value": -0.2, "low": -0.3, "high": -0.1, "note": "x"}},
        "delta_depth": {"value": 1.5, "note": "y"}, "warnings": ["w"]}  # fmt: skip
    assert given == [("after", "before", {"before": "before"})]


def test_the_number_of_trainings_of_a_curve_and_each_value_are_means_over_them() -> None:
    rows = [
        {"recipe": r, "step": s, "metric": m, "k": k, "n": 20}
        for r, s, m, k in (
            ("b", 8, "parts", 10),
            ("a", 16, "parts", 4),
            ("a", 8, "parts", 10),
            ("a", 8, "parts", 20),
            ("a", 8, "composition", 5),
        )
    ]
    lines = study_tables._curve(rows)[4:-1]
    assert [line.strip("| ").split(" | ") for line in lines] == [
        ["a", "8", "75", "25", "–", "–", "2"],
        ["a", "16", "20", "–", "–", "–", "1"],
        ["b", "8", "50", "–", "–", "–", "1"],
    ]


def test_measured_states_are_kept_while_runs_and_code_are_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    measured: list[str] = []

    def measure(model: str, run: Any, folder: Path, cases: Any, device: Any) -> Any:
        measured.append(model)
        return {"x": {c: 1.0 + len(model) for c in cases}}

    runs = {}
    for name in ("base", "trained"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "graded.jsonl").write_text(name)
        runs[name] = tmp_path / name
    case = SimpleNamespace(cluster=None, crossed=())
    monkeypatch.setattr(inside, "measure", measure)
    monkeypatch.setattr(inside, "shared", lambda found, n: ["a", "b", "c"][:n])
    monkeypatch.setattr(
        inside,
        "read_run",
        lambda _: SimpleNamespace(evaluated=lambda: SimpleNamespace(cases=dict.fromkeys("abc", case))),
    )
    given: Any = (("m", runs["base"]), {"grpo": ("trained", runs["trained"])}, tmp_path)
    before, after, out = given
    for _ in range(2):
        (row,) = inside.compare(before, after, out, 3)
        assert (row["variant"], row["before"], row["after"], row["value"], row["n"]) == ("grpo", 2, 8, 6, 3)
    assert measured == ["m", "trained"]
    assert inside.compare(before, after, out, 2)[0]["n"] == 2 and len(measured) == 4
    (runs["trained"] / "graded.jsonl").write_text("other answers")
    inside.compare(before, after, out, 2)
    assert len(measured) == 6


def test_the_log_of_a_reward_is_the_share_that_is_right_and_that_echoes() -> None:
    said: dict[str, float] = {}
    rewards = Rewards("xml", max_tokens=99)
    copied = FORMATS["xml"].instruction
    answers = ["<answer>10</answer>", "<answer>11</answer>", copied, "<answer>10</answer>"]
    found = rewards(["p"] * 4, answers, gold=["10"] * 4, answer_type=["number"] * 4, aliases=[[]] * 4,
                    log_metric=said.__setitem__)  # fmt: skip
    assert said == {"reward/correct": 0.5, "reward/echo": 0.25} and found[:2] == pytest.approx([1.2, 0.2])


def _case(
    id: str, depth: int = 4, family: str = "f", question: str | None = None, atoms: str = "", **more: Any
) -> Case:
    parts = tuple(Part(f"part of {id} {a}", "1", atom=a or None) for a in atoms or " ")
    return Case(id, question or f"Question {id}?", "1", parts, family=family, depth=depth, **more)


def test_training_cases_are_spread_over_families_and_depths_by_the_seed() -> None:
    pool = [_case(f"{f}{d}-{i}", d, f) for f in "xy" for d in (2, 4, 6) for i in range(20)]
    pool.append(_case("nobody", 4, "x", unknowable=True))
    recipe = AdapterRecipe(depths=(2, 4), prompts=10)
    drawn = data._draw(pool, recipe, "f", 0)
    cells = Counter((c.family, c.depth) for c in drawn)
    assert sorted(cells) == [("x", 2), ("x", 4), ("y", 2), ("y", 4)] and sorted(cells.values()) == [2, 2, 3, 3]
    assert [c.id for c in drawn] == [c.id for c in data._draw(pool, recipe, "moved", 0)]
    assert {c.id for c in drawn} != {c.id for c in data._draw(pool, recipe, "f", 1)}
    for wrong, said in (
        (AdapterRecipe(depths=(3,)), "no case of depth 3"),
        (AdapterRecipe(depths=(2,), prompts=41), "40 cases at depth 2"),
    ):
        with pytest.raises(InputError, match=said):
            data._draw(pool, wrong, "f", 0)


def test_cases_overlap_by_their_question_or_by_two_parts_and_never_by_one() -> None:
    train = [
        _case("a", question="Same  QUESTION?"),
        _case("b", atoms="xy"),
        _case("c", atoms="x"),
        _case("d", atoms="yz"),
    ]
    test = [_case("1", question="same question?"), _case("2", atoms="yx"), _case("3", atoms="x"), _case("4", atoms="y")]
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
    assert data.trace(case) in data.target(case, worked) and data.target(case, worked).endswith("<answer>7</answer>")
    data._check_targets([case], answer, "w")
    monkeypatch.setattr(data, "target", lambda *_: "<answer>8</answer>")
    with pytest.raises(InputError, match="case 'c' would teach '<answer>8</answer>', which is graded incorrect"):
        data._check_targets([case], answer, "w")


def test_organisms_are_trained_on_as_many_cases_of_each_family_and_depth() -> None:
    cases = data.organism_cases((2, 4), 10, 0)
    assert Counter((c.family, c.depth) for c in cases) == {
        ("pair", 2): 3,
        ("rank", 4): 3,
        ("successor", 4): 2,
        ("interval", 4): 2,
    }
    assert len({c.question for c in cases}) == 10 and data.organism_cases(
        (2, 4), 10, 0
    ) == cases != data.organism_cases((2, 4), 10, 1)
    assert all(c.worked and c.parts and c.id.startswith(f"train-{c.family}-{c.depth}-") for c in cases)


@pytest.mark.parametrize(
    ("given", "said"),
    [({"objective": "ppo"}, "--recipe ppo"), ({"depths": ()}, "--depths"), ({"depths": (0, 2)}, "--depths 0,2"),
     ({"solutions": "mine"}, "--solutions mine"), ({"solutions": "self"}, "is for sft-trace"),
     ({"rank": 0}, "--rank 0"),
     ({"prompts": 7, "prompts_per_step": 2}, "give a multiple"), ({"generations": 1}, "--generations 1"),
     ({"learning_rate": 0.0}, "above 0"), ({"beta": -0.1}, "--beta"), ({"dropout": 1.0}, "--dropout 1.0")],
)  # fmt: skip
def test_a_recipe_that_cannot_be_is_refused_by_its_option(given: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError, match=said):
        AdapterRecipe(**given)


def test_a_preset_takes_the_changes_and_an_option_belongs_to_its_recipe() -> None:
    made = recipes.resolve("sft-answer", "organism-v3", [6, 2, 6], rank=8, epochs=None)
    wanted = replace(recipes.PRESETS["organism-v3"], objective="sft-answer", depths=(2, 6), rank=8)
    assert made == wanted and "thinking" not in made.to_dict() and made.to_dict()["depths"] == [2, 6]
    assert recipes.parse_depths("4, 2,4") == (2, 4)
    for text in ("", "2,x", "-1"):
        with pytest.raises(InputError, match="--depths"):
            recipes.parse_depths(text)
    refused: list[tuple[str, dict[str, Any], str]] = [
        ("sft-answer", {"beta": 0}, "--beta 0: is for grpo"), ("grpo", {"layers": "0"}, "--layers 0"),
        ("steering", {"curve": True}, "--curve: is for"), ("grpo", {"thinking": False, "limit": 3}, "--limit 3"),
        ("steering", {"thinking": False}, "--no-thinking: is for")]  # fmt: skip
    for recipe, given, said in refused:
        with pytest.raises(InputError, match=said):
            recipes.check_options(recipe, given)
    recipes.check_options("grpo", {"beta": 0, "thinking": False, "curve": True, "limit": 3, "layers": None})
    recipes.check_options("steering", {"curve": False, "layers": "0,2"})
    assert [_numbers(text) for text in (None, "0, 2", "3,")] == [None, [0, 2], [3]]
    for text in ("", "1,x", "x,1", "-1"):
        with pytest.raises(InputError, match="--layers"):
            _numbers(text)
