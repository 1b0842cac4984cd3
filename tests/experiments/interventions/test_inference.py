"""Patching and steering: how cases are split, who lends a state to whom, which layer is chosen, what a row counts."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from composcope.errors import InputError, NoCasesError
from composcope.evaluation.asks import Ask
from composcope.experiments.interventions import inference
from composcope.experiments.interventions.inference import InterventionTrial, halve
from composcope.probes import steering
from composcope.probes.examples import Example, Gold
from composcope.probes.result import ProbeResult


def _example(
    case: str, group: str = "failure", family: str = "f", depth: int = 4, size: int = 5, role: str = "whole",
    shares: str | None = None, answer: str = "",
) -> Any:  # fmt: skip
    ids = (*range(size - 1), sum(ord(c) * 131**i for i, c in enumerate(case)))
    gold = Gold(answer or case, "text", "plain")
    about = {"case": case, "group": group, "family": family, "depth": depth, "role": role, "shares": shares}
    return SimpleNamespace(**about, prompt_ids=ids, gold=gold)


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
    single = [_example(f"{g}{f}", g, f) for g in ("failure", "success") for f in "abcd"]
    spread = halve(single, 99, 0)
    sizes = [len(group) for half in (spread.learn, spread.test) for group in half.values()]
    assert sizes == [2, 2, 2, 2], "strata of one case each go to the halves in turn"
    assert len({halve(examples, 1, seed).learn["failure"][0].family for seed in range(9)}) == 2, (
        "few are of any stratum"
    )
    with pytest.raises(NoCasesError, match="both halves need both groups"):
        halve([e for e in examples if e.group == "failure"], 9, 0)


def _trial(**about: Any) -> InterventionTrial:
    given = {"lm": SimpleNamespace(eos_ids=(0,)), "tokenizer": None, "format": "plain", "compat": None,
             "max_new_tokens": 4, "seed": 0}  # fmt: skip
    return InterventionTrial(**given | about)


def test_a_donor_is_another_case_of_the_family_and_depth_with_the_nearest_length() -> None:
    pool = [_example("me"), _example("kin", size=9), _example("near", size=6), _example("deep", depth=6),
            _example("other", family="g")]  # fmt: skip
    chosen = _trial()._donors(pool, [pool[0], _example("x", family="g", depth=6), _example("y", size=9)])
    assert chosen == [pool[2], pool[4], pool[1]]
    assert _trial()._donors(pool[:1], pool[:1]) == [pool[0]], "itself where there is no other"
    same = [_example("twin", answer="Rome"), _example("far", family="g", depth=6, size=9, answer="Oslo")]
    assert _trial()._donors(same, [_example("x", answer="rome ")]) == [same[1]], "its answer would be brought along"
    alike = [_example(f"d{i}") for i in range(30)]
    picks = [_trial(seed=s)._donors(alike, [_example("z")] * 3) for s in (0, 0, 1)]
    assert picks[0] == picks[1] != picks[2]


def test_rows_count_each_outcome_of_each_source_and_mark_the_chosen_layer() -> None:
    outcomes = {
        ("unchanged", -1): ["correct", "incorrect", "invalid", "correct"],
        ("donor", 2): ["correct"] * 3 + ["abstained"],
    }
    alone = [_example("a")] * 4
    rows = inference._rows(outcomes, "failure", 2, alone)
    assert len(rows) == 8 and {r["group"] for r in rows} == {"failure"}
    counts = {(r["source"], r["quantity"]): (r["count"], r["n"], r["value"], r["chosen"]) for r in rows}
    assert counts["unchanged", "correct_rate"] == (2, 4, 0.5, False)
    assert counts["donor", "correct_rate"] == (3, 4, 0.75, True)
    assert counts["unchanged", "invalid_rate"][0] == counts["donor", "abstained_rate"][0] == 1
    assert [inference._helps(s) for s in ("+1", "+2", "donor", "-1", "failing donor", "none", "random 1")] == [
        True
    ] * 3 + [False] * 4


def test_a_rate_over_cases_that_share_facts_has_a_wider_interval() -> None:
    outcomes = {("donor", 2): ["correct"] * 12 + ["incorrect"] * 12}
    alone, shared = (
        next(r for r in inference._rows(outcomes, "failure", 2, [_example("a", shares=near(i)) for i in range(24)])
             if r["quantity"] == "correct_rate")
        for near in (lambda i: None, lambda i: f"fact {i // 4}")
    )  # fmt: skip
    assert alone["interval"] == "clopper-pearson" and shared["interval"] == "korn-graubard"
    assert (alone["n"], alone["count"]) == (shared["n"], shared["count"])
    assert shared["low"] < alone["low"] < alone["high"] < shared["high"]


@pytest.mark.parametrize(
    ("group", "unchanged", "none", "said"),
    [
        ("failure", 0, 1, ["adding nothing changed outcomes of failure at layer 3"]),
        ("failure", 0, 0, []),
        ("failure", 1, 1, ["1 of 4 cases (failure) are judged otherwise than in the run"]),
        ("success", 3, 3, ["1 of 4 cases (success) are judged otherwise than in the run"]),
        ("success", 4, 4, []),
    ],
)
def test_a_control_that_changes_something_and_a_label_that_does_not_come_out_are_warnings(
    group: str, unchanged: int, none: int, said: list[str]
) -> None:
    def row(source: str, layer: int, count: int) -> dict[str, Any]:
        return {"group": group, "source": source, "layer": layer, "quantity": "correct_rate", "count": count, "n": 4}

    found = inference._warnings([row("unchanged", -1, unchanged), row("none", 3, none), row("+1", 3, 4)])
    assert len(found) == len(said) and all(line.startswith(start) for line, start in zip(found, said, strict=True))


@pytest.mark.parametrize(
    ("context", "limit", "given", "room"),
    [(None, 512, None, 56), (320, 512, 512, 300), (320, 128, 128, 128), (320, 50, None, 50), (60, 512, None, 40),
     (20, 9, None, 1)],
)  # fmt: skip
def test_a_continuation_is_as_long_as_the_longest_answer_and_a_little_longer_as_far_as_the_run_and_the_context_allow(
    context: int | None, limit: int, given: int | None, room: int
) -> None:
    examples = [_example("a", size=20), _example("b", size=9)]
    vars(examples[0])["response_ids"], vars(examples[1])["response_ids"] = range(40), range(3)
    assert inference._room(context, examples, limit, given) == room


@pytest.mark.parametrize(("limit", "warned"), [(9, True), (4, False), (0, False)])
def test_continuations_that_had_not_ended_are_counted_where_the_run_allowed_longer_answers(
    limit: int, warned: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inference, "decode", lambda tokenizer, ids, *_: "x")
    monkeypatch.setattr(inference, "special_thinking_marks", lambda tokenizer: {})

    def outcomes(self: Any, recipe: str, given: Any, recipients: Any, layers: Any) -> dict[tuple[str, int], list[str]]:
        return {("unchanged", -1): [self._judge(e, [5] * 4) for e in recipients],
                ("donor", 0): [self._judge(e, [5, 0]) for e in recipients]}  # fmt: skip

    monkeypatch.setattr(InterventionTrial, "_outcomes", outcomes)
    found = _trial(limit=limit).run("patching", halve(_many(), 99, 0), [0]).warnings
    assert [w.startswith("36 of 72 continuations had not ended after 4 tokens") for w in found].count(True) == warned


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
    settings = {"recipe": "patching", "chosen_layer": 2, "right_on_first_half": 3}
    head, *said = inference.lines(ProbeResult("patching", rows, settings=settings, warnings=["w"]))
    assert head == "patching: layer 2 chosen on the first half of the cases; counted on the second"
    assert said == [
        "  failure: unchanged: correct 0 % [10 %, 90 %] (0/8)",
        "  failure: donor: correct 75 % [10 %, 90 %] (6/8)",
        "  failure: failing donor: correct 12 % [10 %, 90 %] (1/8)",
        "  success: donor: correct 88 % [10 %, 90 %] (7/8)",
        "  failure: donor at layer 1: correct 25 % [10 %, 90 %] (2/8)",
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
        return {("unchanged", -1): wrong, ("donor", 0): wrong, ("donor", 1): right, ("failing donor", 0): right,
                ("+1", 1): right}  # fmt: skip

    monkeypatch.setattr(InterventionTrial, "_outcomes", outcomes)
    found = _trial().run("patching", halves, [0, 1])
    sides = [
        {e.case for e in half[g]}
        for half, g in ((halves.learn, "failure"), (halves.test, "failure"), (halves.test, "success"))
    ]
    assert seen == sides and found.settings["chosen_layer"] == 1
    assert found.settings["right_on_first_half"] == len(sides[0])
    for of in (*halves.learn.values(), *halves.test.values()):
        for e in of:
            vars(e).update(gold=Gold("yes", "choice", "plain"))
    warned = _trial().run("patching", halves, [0, 1]).warnings
    said = f"{len(sides[1])} of {len(sides[1])} failures have a donor with their own right answer"
    assert warned[-1].startswith(said) and not any("donor" in w for w in found.warnings)
    assert {r["group"]: r["n"] for r in found.table} == {
        "failure": len(sides[1]), "success": len(sides[2]), "failure, first half": len(sides[0])}  # fmt: skip


@pytest.mark.parametrize("recipe", ["steering", "patching"])
def test_what_is_put_in_comes_from_the_half_that_chooses_the_layer(
    recipe: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    halves = halve(_many(), 99, 0)
    by_ids = {e.prompt_ids: (half, group) for half in ("learn", "test") for group, some in getattr(halves, half).items()
              for e in some}  # fmt: skip
    seen: dict[str, Any] = {}

    def direction(lm: Any, successes: Any, failures: Any, layers: Any) -> str:
        seen.update(successes=successes, failures=failures)
        return "along"

    def put(lm: Any, prompts: Any, what: Any, layers: Any, **options: Any) -> Any:
        seen.update(prompts=prompts, what=what, layers=layers, options=options)
        sources = ("+1", "none") if recipe == "steering" else ("donor", "failing donor", "none")
        return SimpleNamespace(base=[f"base {i}" for i in range(len(prompts))], sources=sources, layers=(1, 3),
                               tokens=_Numbers())  # fmt: skip

    monkeypatch.setattr(steering, "direction", direction)
    monkeypatch.setattr(steering, "steer" if recipe == "steering" else "patch", put)
    monkeypatch.setattr(InterventionTrial, "_judge", lambda self, e, tokens: f"{e.case}: {tokens}")
    recipients = halves.test["failure"]
    found = _trial(seed=5)._outcomes(recipe, halves, recipients, [1, 3])
    assert seen["prompts"] == [e.prompt_ids for e in recipients] and seen["layers"] == [1, 3]
    assert seen["options"] == {"max_new_tokens": 4, "seed": 5}
    groups = [seen["successes"], seen["failures"]] if recipe == "steering" else [*seen["what"].values()]
    assert [{by_ids[ids] for ids in some} for some in groups] == [{("learn", "success")}, {("learn", "failure")}]
    sources = ("+1", "none") if recipe == "steering" else ("donor", "failing donor", "none")
    assert list(found) == [("unchanged", -1), *((s, layer) for s in sources for layer in (1, 3))]
    assert found["unchanged", -1] == [f"{e.case}: base {i}" for i, e in enumerate(recipients)]
    assert found["none", 3][2] == f"{recipients[2].case}: {(2, len(sources) - 1, 1)}"


class _Numbers:
    """Tokens of a recipient, a source and a layer: their numbers."""

    def __getitem__(self, at: tuple[int, int, int]) -> str:
        return str(at)


def test_the_layer_is_the_lowest_of_those_that_mend_most_and_controls_choose_none() -> None:
    trial = {("+1", 0): ["correct", "incorrect"], ("+2", 1): ["correct", "correct"], ("donor", 2): ["correct"] * 2,
             ("noise", 0): ["correct"] * 3, ("-2", 0): ["correct"] * 3}  # fmt: skip
    assert InterventionTrial._best(trial, [0, 1, 2]) == 1
    del trial["+2", 1]
    assert InterventionTrial._best(trial, [0, 2]) == 2
    assert InterventionTrial._best({("none", 0): ["correct"]}, [0, 1]) == 0
    steps = {("+1", 0): 2, ("+2", 0): 2, ("+1", 1): 0, ("+2", 1): 3}  # one step at a layer counts, not their sum
    assert InterventionTrial._best({k: ["correct"] * n for k, n in steps.items()}, [0, 1]) == 1


COLOR = Gold("blue", "choice", "plain", options=(("A", "red"), ("B", "blue")))
THOUGHT, SAID = Gold("12", "number", "xml", thinking=True), "Maybe <answer>7</answer> but"


@pytest.mark.parametrize(
    ("said", "gold", "compat", "ended", "outcome"),
    [
        ("B", COLOR, None, True, "correct"),
        ("A", COLOR, None, True, "incorrect"),
        ("UNKNOWN", Gold("12", "number", "xml", unknowable=True), None, True, "correct"),
        ("<answer>12</answer> <answer>13", Gold("12", "number", "xml", stop=("</answer>",)), None, True, "correct"),
        ("<answer>1401</answer>", Gold("1402", "date", "xml"), None, True, "incorrect"),  # a year off
        ("<answer>1401</answer>", Gold("1402", "date", "xml"), "collapse", True, "correct"),
        (SAID, THOUGHT, None, False, "invalid"),  # a thought that is cut off is no answer
        (SAID, Gold("12", "number", "xml"), None, False, "incorrect"),
        (SAID, THOUGHT, None, True, "incorrect"),
        ("Maybe <answer>7</answer></think>\n<answer>12</answer>", THOUGHT, None, False, "correct"),
    ],
)
def test_what_is_written_under_an_intervention_is_judged_as_the_answers_of_the_run(
    said: str, gold: Gold, compat: str | None, ended: bool, outcome: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inference, "decode", lambda tokenizer, ids, *_: said)
    monkeypatch.setattr(inference, "special_thinking_marks", lambda tokenizer: {})
    example: Any = SimpleNamespace(gold=gold)
    trial = _trial(compat=compat)
    assert trial._judge(example, [0] * (trial.max_new_tokens - 1) + [0 if ended else 5]) == outcome


def test_a_result_is_kept_with_the_cases_of_both_halves_and_the_hash_of_all_that_it_depends_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def example(case: str, group: str, ids: tuple[int, ...] = (1, 2)) -> Example:
        return Example(case, "whole", "composition", group, ids, (3,), (4,), 0, (0, 1))

    def halves(first: Example) -> inference.Halves:
        last = {"failure": [example("c", "failure")], "success": [example("d", "success")]}
        return inference.Halves({"failure": [first], "success": [example("b", "success")]}, last)

    saved: list[Any] = []
    monkeypatch.setattr(
        "composcope.experiments.run.writer.save_probe", lambda *given, **how: saved.append((given, how))
    )
    manifest: Any = "manifest"
    for settings, first in (({"seed": 0}, example("a", "failure")), ({"seed": 0}, example("a", "failure")),
                            ({"seed": 1}, example("a", "failure")), ({"seed": 0}, example("a", "failure", (1, 9))),
                            ({"seed": 0}, example("z", "failure"))):  # fmt: skip
        inference._save(ProbeResult("patching", [], settings=settings), tmp_path, manifest, halves(first))
    (result, folder, by, _), how = saved[0]
    assert (result.probe, folder, by) == ("patching", tmp_path, "manifest") and how["contrast"] is True
    assert how["groups"] == {"failure": ["a", "c"], "success": ["b", "d"]} and "half" in how["note"]
    hashes = [given[3] for given, _ in saved]
    assert hashes[0] == hashes[1] and len(set(hashes)) == 4


def test_other_weights_or_another_recipe_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InputError, match="--recipe sft-answer: use steering or patching"):
        inference.intervene("sft-answer", "run")
    identity = {"weights": "a" * 64}
    run = SimpleNamespace(manifest=SimpleNamespace(identity=identity), name="r")
    monkeypatch.setattr("composcope.experiments.run.reader.read_run", lambda _: run)
    monkeypatch.setattr("composcope.experiments.run.reader.read_config", lambda _: {"model": "m", "benchmark": "b"})
    monkeypatch.setattr("composcope.experiments.models.target.load_local", lambda *_: SimpleNamespace(who="b" * 64))
    for model, named in (("w", "--model w"), (None, "m")):
        with pytest.raises(InputError, match=f"^{named}: these are not the weights that answered in r"):
            inference.intervene("steering", "run", model=model)


def test_a_run_is_opened_in_all_layers_for_a_few_more_tokens_than_its_longest_answer_has(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = {n: Ask(f"c{n}", "whole", "?", "x", "text", format="cot", max_tokens=n) for n in (8, 40)}
    own = [SimpleNamespace(prompt_ids=(1, 2), response_ids=(3,) * n) for n in (10, 4)]
    found = SimpleNamespace(examples=lambda *_, roles: {"whole": own}["".join(roles)], per_case=lambda: (asked, None))
    identity = {"weights": "the name of a server's model"}  # which is no hash, and says nothing about the weights
    run = SimpleNamespace(manifest=SimpleNamespace(identity=identity), name="r", evaluated=lambda: found)
    lm = SimpleNamespace(anatomy=SimpleNamespace(context=None, n_layers=3))
    target = SimpleNamespace(who="b" * 64, tokenizer=None, open_model=lambda: lm)
    monkeypatch.setattr("composcope.experiments.run.reader.read_run", lambda _: run)
    config = {"model": "m", "benchmark": "b", "asking": {"compat": "collapse"}}
    monkeypatch.setattr("composcope.experiments.run.reader.read_config", lambda _: config)
    monkeypatch.setattr("composcope.experiments.models.target.load_local", lambda *_: target)
    monkeypatch.setattr(inference, "halve", lambda *given: given)
    seen: list[Any] = []
    monkeypatch.setattr(
        InterventionTrial, "run", lambda self, *given: seen.append((self.max_new_tokens, self.seed, given)) or self
    )
    saved: list[Any] = []
    monkeypatch.setattr(inference, "_save", lambda *given: saved.append(given))
    inference.intervene("patching", tmp_path, n=7, seed=5)
    [(trial, folder, manifest, halves)] = saved
    assert (trial.format, trial.compat, trial.limit) == ("cot", "collapse", 40), "as the run asked and judged"
    assert folder == tmp_path / "probes" / inference.INTERVENTIONS["patching"]
    assert manifest is run.manifest and halves == (own, 7, 5)
    inference.intervene("patching", tmp_path, layers=[2, 0, 2], max_new_tokens=6)
    with pytest.raises(InputError, match="0"):
        inference.intervene("patching", tmp_path, max_new_tokens=0)
    assert seen == [
        (10 + inference.SLACK, 5, ("patching", (own, 7, 5), [0, 1, 2])),
        (6, 0, ("patching", (own, 32, 0), [0, 2])),
    ]
