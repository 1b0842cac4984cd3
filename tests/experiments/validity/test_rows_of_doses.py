"""Every row of one training's validity: its n, its estimate, what it is called, and what is said where numbers lack."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from types import FunctionType, SimpleNamespace
from typing import Any

import numpy as np
import pytest
from scipy import stats as scipy_stats

from composcope.evaluation.protocols.base import CaseSet
from composcope.experiments.validity import over_doses, over_seeds
from composcope.experiments.validity.scores import BASELINES, SCORES, CaseScores, ProbeScore
from composcope.files import file_sha256

stats: Any = scipy_stats
NAN = float("nan")
PROBE, FALLING, NULL = SCORES[0], SCORES[3], SCORES[-1]
DOSES = ("none", "low", "control", "twin")
CASES = [f"c{i}" for i in range(12)]


def _numbers(score: ProbeScore, missing: int = 0) -> dict[str, CaseScores]:
    """A number that rises with the dose; the first ``missing`` cases of each dose have none."""
    rng = np.random.default_rng(0)
    return {
        dose: CaseScores({score.quantity: {
            c: NAN if j < missing else float(i + rng.normal()) for j, c in enumerate(CASES)
        }}) for i, dose in enumerate(DOSES)
    }  # fmt: skip


def _of(found: Mapping[str, CaseScores], dose: str, score: ProbeScore) -> list[float]:
    return [v for v in found[dose].values[score.quantity].values() if not math.isnan(v)]


def test_up_to_n_failures_and_successes_of_a_run_are_read_beside_the_shared_cases() -> None:
    sets = [CaseSet.of("failure", CASES[:4]), CaseSet.of("success", CASES[4:8])]
    run: Any = SimpleNamespace(cases=dict.fromkeys(CASES), reduction=SimpleNamespace(case_sets=sets),
                               examples=lambda _, sets: {s.label: s.ids for s in sets})  # fmt: skip
    target: Any = SimpleNamespace(tokenizer=None)
    found = over_doses.opened(target, run, 2, ["c7", "c9"])
    assert found == {"failure": ("c9", "c0", "c1"), "success": ("c7", "c4", "c5")}


def test_rows_of_doses_are_made_again_where_an_answer_changed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = SimpleNamespace(manifest=SimpleNamespace(identity={"weights": "w"}))
    monkeypatch.setattr(over_doses, "read_run", lambda _: run)
    series: Any = SimpleNamespace(seed=0, documents_seen=lambda: 1)
    seen = []
    for answers in ("a", "b", "a"):
        (tmp_path / "graded.jsonl").write_text(answers)
        seen.append(over_doses._inputs({"low": tmp_path}, series, {}, 3))
    assert seen[0] == seen[2] != seen[1]
    other = over_doses._inputs({"low": tmp_path}, series, {}, 4), over_doses._inputs({"low": tmp_path}, series, {}, 3)
    run.manifest.identity["weights"] = "v"
    assert len({seen[0], other[0], over_doses._inputs({"low": tmp_path}, series, {}, 3)}) == 3 and other[1] == seen[0]


def test_members_are_asked_where_all_is_planted_or_nothing_and_heads_and_exposures_only_of_the_twin(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = _numbers(PROBE)["twin"]
    row = {"quantity": "q", "group": "g", "n": 8, "count": 3, "value": 0.375}
    examples: Any = [SimpleNamespace(case=c, cluster=c, crossed=()) for c in CASES]
    stubs: dict[str, Any] = {
        "_inputs": lambda *_: "inputs", "load_target": lambda _: SimpleNamespace(open_model=lambda: None),
        "read_run": lambda _: SimpleNamespace(evaluated=lambda: None), "shared_cases": lambda _: CASES,
        "opened": lambda *_: examples, "measure": lambda *_: found, "_labelled": lambda _, some: some,
        "match": lambda _: SimpleNamespace(pairs=list(zip(CASES[:6], CASES[6:], strict=True))),
        "compositions": lambda *_: ([], []), "as_examples": lambda _, some: some,
        **{name: lambda *_, **__: [row] for name in ("own_part_donors", "planted_heads", "member_exposures")},
    }  # fmt: skip
    for name, stub in stubs.items():
        monkeypatch.setattr(over_doses, name, stub)
    series: Any = SimpleNamespace(seed=0, model=lambda dose: dose)
    for exposures in (True, False):
        out = tmp_path / str(exposures)
        made = over_doses._examined(out, dict.fromkeys(DOSES, tmp_path), series, 0, None, 12, {}, exposures)["rows"]
        models = {what: {r["model"] for r in made if r["question"] == over_doses.QUESTIONS.get(what, what)}
                  for what in ("members", "donors", "heads", "exposures")}  # fmt: skip
        assert models == {"members": {"none", "twin"}, "donors": {*DOSES}, "heads": {"twin"},
                          "exposures": {"twin"} if exposures else set()}  # fmt: skip


def test_the_numbers_of_every_case_stand_at_the_level_of_their_dose_pair_failure_and_membership(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = _numbers(PROBE)["twin"]
    examples: Any = [SimpleNamespace(case=c, cluster=f"of {c}", crossed=()) for c in CASES]
    member, held = (
        [SimpleNamespace(id=f"{name}{i}", cluster=None, crossed=()) for i in range(2)] for name in ("member", "held")
    )
    sides = {
        name: CaseScores({PROBE.quantity: {f"{name}{i}": float(i) for i in range(2)}}) for name in ("member", "held")
    }
    given: dict[str, list[Any]] = {"planted": [], "members": [], "donors": []}
    stubs: dict[str, Any] = {
        "_inputs": lambda *_: "inputs", "load_target": lambda _: SimpleNamespace(open_model=lambda: "lm"),
        "read_run": lambda _: SimpleNamespace(evaluated=lambda: None), "shared_cases": lambda _: CASES,
        "opened": lambda *_: examples, "_labelled": lambda _, some: some,
        "measure": lambda _, some, __: sides["member"] if some is member else sides["held"] if some is held else found,
        "match": lambda _: SimpleNamespace(pairs=[("c0", "c6"), ("c1", "c7")]),
        "compositions": lambda n, seed, _: (member, held), "as_examples": lambda _, some: some,
        "_planted_rows": lambda *args: given["planted"].append(args) or [],
        "_member_rows": lambda *args: given["members"].append(args) or [],
        "own_part_donors": lambda *args: given["donors"].append(args) or [],
        "planted_heads": lambda *_: [],
    }  # fmt: skip
    for name, stub in stubs.items():
        monkeypatch.setattr(over_doses, name, stub)
    series: Any = SimpleNamespace(seed=0, model=lambda dose: dose)
    made = over_doses._examined(tmp_path, dict.fromkeys(DOSES, tmp_path), series, 5, None, 3, {}, False)["cases"]

    def rows(question: str, model: str) -> list[tuple[int, str, str]]:
        wanted = over_doses.QUESTIONS[question], model
        return [(r["level"], r["group"], r["case"]) for r in made if (r["question"], r["model"]) == wanted]

    assert rows("dose", "all doses") == [(i, dose, c) for i, dose in enumerate(DOSES) for c in CASES[:3]]
    both = ("control", "twin")
    assert rows("pair", "control, twin") == [(i, dose, c) for i, dose in enumerate(both) for c in CASES[:3]]
    failed = [(1, "failure", "c0"), (1, "failure", "c1"), (0, "success", "c6"), (0, "success", "c7")]
    assert [rows("failure", dose) for dose in DOSES] == [failed] * 4
    asked = [(0, "held out", "held0"), (0, "held out", "held1"), (1, "member", "member0"), (1, "member", "member1")]
    assert [rows("members", dose) for dose in DOSES] == [asked, [], [], asked]
    assert {r["case"]: r["cluster"] for r in made if r["case"] in ("c0", "held1")} == {"c0": "of c0", "held1": "held1"}
    assert given["members"] == [(dose, sides["member"], sides["held"]) for dose in ("none", "twin")]
    probes = [score for score in SCORES if score.kind == "probe"]
    assert given["planted"] == [("control", examples, 2, found, probes, 5)]
    assert given["donors"] == [("lm", examples, 3)] * 4


@pytest.mark.parametrize("score", [PROBE, FALLING, NULL])
def test_a_dose_series_has_a_mean_for_each_dose_and_kendalls_tau(score: ProbeScore) -> None:
    values = _numbers(score, missing=2)
    *means, answer = over_doses._dose_rows(values, [score], CASES)
    assert [m["group"] for m in means] == list(DOSES)
    for row in means:
        mine = _of(values, row["group"], score)
        assert (row["n"], row["value"]) == (10, pytest.approx(np.mean(mine))) and row["headline"] is False
        assert "verdict" not in row and row["measure"] == "mean over cases"
    levels = [i for i, dose in enumerate(DOSES) for _ in _of(values, dose, score)]
    tau = stats.kendalltau(levels, [v for dose in DOSES for v in _of(values, dose, score)]).statistic
    assert answer["value"] == pytest.approx(tau) and answer["n"] == 40 and answer["expected"] == score.expected
    assert answer["verdict"] == over_doses.ALONE and answer["headline"] == (score.kind == "probe")
    assert answer["statement"].startswith(score.quantity) and "10 cases at each of 4 doses" in answer["statement"]
    assert {r["question"] for r in (*means, answer)} == {over_doses.QUESTIONS["dose"]}
    assert {r["model"] for r in (*means, answer)} == {"all doses"}


@pytest.mark.parametrize(("missing", "defined"), [(10, True), (11, False), (12, False)])
def test_two_numbers_are_needed_at_every_dose_and_in_both_models_of_the_pair(missing: int, defined: bool) -> None:
    values = _numbers(PROBE, missing)
    for question, rows in (("dose", list(over_doses._dose_rows(values, [PROBE], CASES))),
                           ("pair", list(over_doses._pair_rows(values, [PROBE], CASES)))):  # fmt: skip
        undefined = [r for r in rows if r["verdict"] == "cannot say"] if not defined else []
        assert (len(rows) == len(undefined) == 1) == (not defined), question
        for row in undefined:
            assert row["n"] == 0 and row["value"] is None and row["note"] and row["headline"] == (question == "dose")
            assert row["question"] == over_doses.QUESTIONS[question] and row["expected"] == PROBE.expected
    alone = {"none": values["none"]}
    assert [r["verdict"] for r in over_doses._dose_rows(alone, [PROBE], CASES)] == ["cannot say"]
    assert list(over_doses._pair_rows(alone, [PROBE], CASES)) == []


def test_a_trend_says_how_many_cases_have_a_number_at_a_dose() -> None:
    values = _numbers(PROBE)
    values["low"] = CaseScores({PROBE.quantity: dict(list(values["low"].values[PROBE.quantity].items())[:7])})
    *_, answer = over_doses._dose_rows(values, [PROBE], CASES)
    assert "7 to 12 cases at each of 4 doses" in answer["statement"] and answer["n"] == 43


def test_a_number_that_should_fall_from_control_to_twin_is_as_expected_where_it_does() -> None:
    ids = [f"c{i}" for i in range(20)]
    answers, cases = {}, []
    for seed in range(8):
        rng = np.random.default_rng(seed)
        found = {dose: CaseScores({q: dict(zip(ids, map(float, rng.normal(shift, size=20)), strict=True))
                                   for q in (FALLING.quantity, *BASELINES.values())})
                 for dose, shift in (("control", 1.0), ("twin", 0.0))}  # fmt: skip
        answers[seed] = list(over_doses._pair_rows(found, [FALLING], ids))
        for level, dose in enumerate(over_doses.PAIR):
            made = over_doses._case_rows("pair", ", ".join(over_doses.PAIR), (level, dose), ids, found[dose], {})
            cases += [{"seed": seed, **row} for row in made]
    (over,) = over_seeds.rows(answers, cases)
    assert (over["expected"], over["as_expected"]) == ("decreasing", "8 of 8") and over["value"] < 0.4
    assert not over["verdict"].endswith("reversed")
    assert [over[f"seed {s}"] for s in answers] == pytest.approx([rows[0]["value"] for rows in answers.values()])


def test_the_twin_against_control_is_the_share_of_pairs_in_which_it_is_higher() -> None:
    values = _numbers(PROBE)
    rows = list(over_doses._pair_rows(values, [PROBE, FALLING], CASES))
    twin, control = (_of(values, d, PROBE) for d in ("twin", "control"))
    share = float(np.mean([[(x > y) + 0.5 * (x == y) for y in control] for x in twin]))
    answers = [r for r in rows if r["statement"].startswith(PROBE.quantity) and r.get("measure") == "AUROC"]
    assert len(answers) == 1 and answers[0]["value"] == pytest.approx(share) and answers[0]["n"] == 24
    assert answers[0]["model"] == "control, twin" and not answers[0]["headline"]
    assert [r["verdict"] for r in rows if r["statement"].startswith(FALLING.quantity)] == ["cannot say"]


@pytest.mark.parametrize("dose", ["low", "control"])
def test_failures_against_successes_of_matched_pairs(dose: str) -> None:
    found = _numbers(PROBE)[dose]
    pairs = list(zip(CASES[:6], CASES[6:], strict=True))
    rows = list(over_doses._failure_rows(dose, pairs, found, [PROBE, NULL]))
    own = found.values[PROBE.quantity]
    sides = [[own[p[i]] for p in pairs] for i in (0, 1)]
    share = float(np.mean([[(x > y) + 0.5 * (x == y) for y in sides[1]] for x in sides[0]]))
    (answer,) = [r for r in rows if r["short"] == PROBE.short and r["measure"] == "AUROC"]
    assert answer["value"] == pytest.approx(share) and answer["n"] == 12 and answer["model"] == dose
    assert answer["headline"] == (dose == "control") and answer["verdict"] == over_doses.ALONE
    assert not {"p", "test"} & answer.keys(), "one training is not tested"
    (none,) = [r for r in rows if r["short"] == NULL.short]
    assert none["verdict"] == "cannot say" and "6 matched pairs" in none["note"] and not none["headline"]
    for one, own in ((dose, dose == "control"), ("twin", False)):
        (few,) = over_doses._failure_rows(one, pairs[:1], found, [PROBE])
        assert (few["verdict"], few["headline"]) == ("cannot say", own), "an answer that lacks stands where it would"


def test_every_comparison_within_one_training_knows_what_its_cases_share(monkeypatch: pytest.MonkeyPatch) -> None:
    """A case without a number is left out of both the numbers and what is shared."""
    found = {dose: CaseScores(of.values, shares={c: f"{dose} {i // 2}" for i, c in enumerate(CASES)})
             for dose, of in _numbers(PROBE, 1).items()}  # fmt: skip
    given: dict[str, tuple[list[int], list[list[str]]]] = {}

    def answers(name: str, *sides: Any, clusters: Any, **_: Any) -> Any:
        numbers, near = sides, [*clusters]
        if name == "dose_series":
            numbers, near = [*sides[0].values()], [*clusters.values()]
        given[name] = [*map(len, numbers)], near
        return SimpleNamespace(table=[{"quantity": "q", "value": 0.5}])

    names = ("dose_series", "model_auroc", "failure_auroc", "membership_auroc")
    monkeypatch.setattr(over_doses, "known_answers", SimpleNamespace(**{n: partial(answers, n) for n in names}))
    pairs = list(zip(CASES[:6], CASES[6:], strict=True))
    for rows in (over_doses._dose_rows(found, [PROBE], CASES), over_doses._pair_rows(found, [PROBE], CASES),
                 over_doses._failure_rows("twin", pairs, found["twin"], [PROBE]),
                 over_doses._member_rows("twin", found["twin"], found["none"])):  # fmt: skip
        assert [*rows]
    every = {dose: [f"{dose} {i // 2}" for i in range(1, 12)] for dose in DOSES}
    twin, control, none = (every[dose] for dose in ("twin", "control", "none"))
    assert given == {
        "dose_series": ([11] * 4, [*every.values()]), "model_auroc": ([11] * 2, [twin, control]),
        "failure_auroc": ([5, 6], [twin[:5], twin[5:]]), "membership_auroc": ([11] * 2, [twin, none]),
    }  # fmt: skip


@pytest.mark.parametrize(("dose", "headline"), [("twin", True), ("none", False)])
def test_members_are_asked_of_every_number_and_stand_in_the_headline_of_the_twin(dose: str, headline: bool) -> None:
    own = ProbeScore("mine", "height (mine)", "increasing", "mine/height")
    sides = [CaseScores({q: {c: i + j * s for j, c in enumerate(CASES)} for q in (PROBE.quantity, own.quantity)}, [own])
             for i, s in ((0.0, 1.0), (4.5, 1.0))]  # fmt: skip
    rows = list(over_doses._member_rows(dose, sides[0], sides[1]))
    answered = [r for r in rows if r["verdict"] == over_doses.ALONE]
    assert {r["short"] for r in answered} == {PROBE.short, own.short}
    members, others = ([i + j for j in range(12)] for i in (0.0, 4.5))
    share = float(np.mean([[(x > y) + 0.5 * (x == y) for y in others] for x in members]))
    for row in answered:
        assert row["value"] == pytest.approx(share) and row["headline"] is headline and row["n"] == 24
        assert not {"p", "test"} & row.keys(), "one training is not tested"
    assert len([r for r in rows if r["verdict"] == "cannot say"]) == len(SCORES) - 1


def test_planted_effects_are_found_more_often_the_larger_they_are_and_the_smallest_is_named() -> None:
    examples: Any = [SimpleNamespace(case=c) for c in CASES for _ in range(2)]
    rows = list(over_doses._planted_rows("twin", examples, 6, _numbers(PROBE)["twin"], [PROBE, NULL], 0))
    *curve, last = [r for r in rows if r["short"] == PROBE.short]
    assert len(curve) == len(over_doses.PLANTED) and curve[0]["value"] < 0.3 < 0.7 < curve[-1]["value"]
    assert {r["measure"] for r in curve} == {"share of trials found"}
    assert "n=6 a side" in last["verdict"] and last["measure"] == "smallest effect found, sd"
    (none,) = [r for r in rows if r["short"] == NULL.short]
    assert none["verdict"] == "cannot say" and "6 matched pairs, 0 scores" in none["note"]
    for n, found in ((1, _numbers(PROBE)["twin"]), (6, CaseScores({PROBE.quantity: dict.fromkeys(CASES, 1.0)}))):
        assert [r["verdict"] for r in over_doses._planted_rows("twin", examples, n, found, [PROBE], 0)] == [
            "cannot say"
        ]


def test_effects_are_planted_in_all_scores_of_the_cases_with_the_seed_asked_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    given: list[Any] = []
    smallest = 1.5
    monkeypatch.setattr(over_doses.known_answers, "planted_recovery", lambda values, **options: given.append(
        (sorted(values), options)) or SimpleNamespace(table=[{"value": 0.5}, {"value": smallest}]))  # fmt: skip
    found = _numbers(PROBE)["twin"]
    examples: Any = [SimpleNamespace(case=c) for c in CASES]
    *curve, last = over_doses._planted_rows("twin", examples, 6, found, [PROBE], 9)
    settings = {"n": 6, "effects": over_doses.PLANTED, "quantity": PROBE.quantity, "seed": 9}
    assert given == [(sorted(found.values[PROBE.quantity].values()), settings)]
    assert [r["value"] for r in curve] == [0.5] and last["verdict"] == "from 1.50 sd (n=6 a side)"
    smallest = math.inf
    *_, last = over_doses._planted_rows("twin", examples, 6, found, [PROBE], 9)
    assert last["verdict"] == "none up to 2 sd (n=6 a side)"


def test_a_control_says_how_many_were_put_right_or_shown_or_how_well_they_are_told() -> None:
    found = [{"quantity": "q", "group": "own part", "n": 8, "count": 3, "value": 0.375},
             {"quantity": "q", "group": "shown 1", "n": 9, "value": 0.75, "layer": 2},
             {"quantity": "q", "group": "none", "n": 0, "count": 0, "value": None}]  # fmt: skip
    said = {q: [r["verdict"] for r in over_doses._control_rows(q, "twin", found)] for q in ("donors", "exposures")}
    assert said["donors"] == ["3 of 8 put right", "AUROC 0.75 (n=9)", "cannot say"]
    assert said["exposures"][0] == "3 of 8 shown"
    rows = list(over_doses._control_rows("donors", "twin", found))
    assert [r["short"] for r in rows] == ["own part", "shown 1, layer 2", "none"]
    assert all((r["kind"], r["headline"], r["model"]) == ("control", False, "twin") for r in rows)


def test_cases_are_shared_where_every_model_knows_every_part() -> None:
    def run(**outcomes: str) -> Any:
        rows = [SimpleNamespace(case=c, role=role, outcome="correct" if o == "+" else "incorrect")
                for c, of in outcomes.items()
                for role, o in zip(("part:0", "part:1", "whole", "part:0:extra-context"), of, strict=True)]  # fmt: skip
        return SimpleNamespace(graded=rows, cases=dict.fromkeys(outcomes))

    a, b = run(x="++--", y="+++-", z="+-++"), run(z="++++", y="++--", x="++-+")
    assert over_doses.parts_right(a) == ["x", "y"] and over_doses.shared_cases({"a": a, "b": b}) == ["x", "y"]
    assert over_doses.shared_cases({"b": b}) == ["z", "y", "x"]


def test_answers_are_written_as_numbers_that_json_has(tmp_path: Path) -> None:
    rows = [{"verdict": "yes", "value": float("nan"), "n": 3}], [{"value": 0.5}], [{"case": "c", "q": float("inf")}]
    found = over_doses._write(tmp_path, rows, {"n": 3}, ["note"], "hash")
    assert found["rows"] == [{"verdict": "yes", "value": None, "n": 3}] and found["means"] == [{"value": 0.5}]
    assert (found["cases"], found["inputs"], found["notes"]) == ([{"case": "c", "q": None}], "hash", ["note"])
    assert "cases" not in over_doses._write(tmp_path, rows, {}, [], None)
    values = CaseScores({"q": {"a": 1.0}})
    near: Any = {"a": SimpleNamespace(cluster="k", crossed=("l",)), "c": SimpleNamespace(cluster=None, crossed=("l",))}
    first, second, third = over_doses._case_rows("dose", None, (2, "twin"), ["a", "b", "c"], values, near)
    about = [first[k] for k in ("q", "cluster", "level", "group", "model")]
    assert about == [1.0, "k", 2, "twin", "all doses"] and (second["q"], second["cluster"]) == (None, "b")
    given = {"seed": 0, "q": 1.0}
    seen = over_seeds._seen("q", [{**row, **given} for row in (first, second, third)])
    assert seen.case == [frozenset("kl"), "b", frozenset("l")], "what crosses the cluster is shared as well"


def test_a_probe_is_told_by_its_file_and_one_without_a_file_is_always_new() -> None:
    assert over_doses._code(_numbers) == file_sha256(Path(__file__))
    in_a_notebook = FunctionType(_numbers.__code__.replace(co_filename="<cell 3>"), {})
    for probe in (print, in_a_notebook):
        assert over_doses._code(probe) != over_doses._code(probe)


def test_only_cases_of_a_case_set_have_a_label() -> None:
    run: Any = SimpleNamespace(
        reduction=SimpleNamespace(case_sets=[CaseSet.of("failure", ["a"]), CaseSet.of("success", ["c"])])
    )
    examples: Any = [SimpleNamespace(case=c) for c in "abcd"]
    assert [e.case for e in over_doses._labelled(run, examples)] == ["a", "c"]
