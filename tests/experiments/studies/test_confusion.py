"""The study of causes: planted against named, guesses from cheap numbers, and what mends a plant."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from composcope.errors import InputError
from composcope.evaluation import dependence, statistics
from composcope.evaluation.cases import Case
from composcope.experiments.organism import benchmarks
from composcope.experiments.organism.world import KINDS
from composcope.experiments.run import diagnosis as results
from composcope.experiments.studies import confusion
from composcope.experiments.studies.confusion import Cheap, DiagnosedCase, Judged
from composcope.experiments.validity.scores import BASELINES


def _judged(*cases: tuple[str, str]) -> list[DiagnosedCase]:
    return [DiagnosedCase("p", f"c{i}", truth, named, True) for i, (truth, named) in enumerate(cases)]


def test_scores_of_a_confusion_are_those_of_its_counts() -> None:
    refused = confusion.REFUSED
    found = confusion.scores(_judged(("a", "a"), ("a", "a"), ("a", "b"), ("b", "b"), ("b", refused), (refused, "a"),
                                     (refused, refused)))  # fmt: skip
    assert found["f1"] == {"a": pytest.approx(2 * 2 / (2 * 2 + 2)), "b": pytest.approx(2 / (2 + 2))}
    assert found["macro_f1"] == pytest.approx((4 / 6 + 2 / 4) / 2)
    told = {k: (found[k]["count"], found[k]["n"]) for k in ("named_right", "undetermined", "false_causes")}
    assert told == {"named_right": (3, 5), "undetermined": (1, 5), "false_causes": (1, 2)}
    assert (found["named_right"]["low"], found["named_right"]["interval"]) == (None, dependence.FEW), "one plant"
    apart = confusion.scores([replace(one, plant=one.case) for one in _judged(*[("a", "a")] * 5)])["named_right"]
    assert apart["low"] == statistics.clopper_pearson(5, 5).low
    late = _judged(("too-late", "lost"), ("too-late", refused))  # what is named has been merged
    assert confusion.scores(late)["f1"] == {"lost": pytest.approx(2 / (2 + 1))}
    assert confusion.scores(late)["named_right"]["count"] == 1 and confusion.lines(late)[-1].endswith(
        ": 1 of 1 (100 %)"
    )
    said = confusion.lines(_judged(("a", "a"), ("a", "b"), (refused, refused)))
    assert said[-1].endswith(": 1 of 1 (100 %)"), "what is rightly refused has nothing that mends it"
    rows = confusion.matrix(_judged(("a", "a"), ("a", "b"), ("b", "b")))
    assert rows == [
        {"plant": "p", "truth": "a", "n": 2, "a": 1, "b": 1},
        {"plant": "p", "truth": "b", "n": 1, "a": 0, "b": 1},
    ]


def test_numbers_weigh_alike_in_a_guess_whatever_their_units_and_a_case_does_not_vote_for_itself() -> None:
    names = list(BASELINES.values())
    large, small = names[0], names[1]
    rng = np.random.default_rng(0)
    kinds = ["x"] * 8 + ["y"] * 8
    known = [Cheap(f"{kind * 4} {i}", {large: 1000 * rng.normal(), small: (kind == "y") + 0.01 * rng.normal(),
                                       **dict.fromkeys(names[2:], 0.0)}) for i, kind in enumerate(kinds)]  # fmt: skip
    found = confusion.guesses(known, kinds)
    assert set(found) == {*BASELINES, confusion.ALL, confusion.TEXT}
    assert found[list(BASELINES)[1]] == found[confusion.TEXT] == kinds
    assert sum(a == b for a, b in zip(found[confusion.ALL], kinds, strict=True)) >= 14, (
        "large units do not drown small ones"
    )
    judged = [DiagnosedCase("p", str(i), kind, "?", False) for i, kind in enumerate(kinds)]
    assert confusion.guessed(judged, known)[confusion.TEXT] == 1.0, "scored like the diagnosis"
    assert confusion.by_neighbours(np.array([[0.0], [0.1], [5.0], [9.0]]), list("abbb")) == ["b"] * 4


def test_the_bridge_as_an_answer_is_not_counted_as_a_matter_of_form() -> None:
    assert set(results.CAUSES) - {confusion.MERGED.get(cause, cause) for cause in results.CAUSES} == {
        "near-miss",
        "too-late",
        "fragile",
    }


def test_the_truth_about_a_case_is_what_was_planted_for_its_kinds_and_a_folder_without_plants_is_refused(
    tmp_path: Path,
) -> None:
    grafts = [{"cause": "lost", "when": "first-kinds"}, {"cause": "jammed", "when": "other-kinds"}]
    truth = confusion.truth_of(grafts)
    assert confusion.truth_of([{"cause": "lost"}])(Case("c", "?", "x")) == "lost", "of one cause, in every case"
    case = benchmarks.mixed(3)[2]
    halves = [replace(case, meta={**case.meta, "kinds": [kind, "edible"]}) for kind in ("edible", "flying")]
    assert [truth(case) for case in halves] == ["lost", "undetermined"]
    kinds = list(KINDS)
    by_kind = [truth(replace(case, meta={**case.meta, "kinds": [kind, "edible"]})) for kind in kinds]
    assert by_kind == ["lost"] * (len(kinds) // 2) + ["undetermined"] * (len(kinds) - len(kinds) // 2)
    with pytest.raises(InputError, match="holds no plant"):
        confusion.planted_in(tmp_path)
    (tmp_path / "organism.json").write_text(json.dumps({"plant": {"grafts": grafts}}))
    assert [p.model for p in confusion.planted_in(tmp_path)] == [str(tmp_path)]


def test_a_number_that_a_case_lacks_is_guessed_by_as_the_mean_of_that_number() -> None:
    numbers, causes = list(BASELINES.values()), [("lost", "format")[i % 2] for i in range(16)]
    rng = np.random.default_rng(1)
    full = [{q: 1000.0 * k + 5 * (i % 2) + float(rng.normal()) for k, q in enumerate(numbers)} for i in range(16)]
    for i in range(0, 16, 5):
        full[i][numbers[0]] = np.nan
    mean = float(np.nanmean([one[numbers[0]] for one in full]))
    filled = [{q: mean if np.isnan(v) else v for q, v in one.items()} for one in full]
    bare = [{q: v for q, v in one.items() if not np.isnan(v)} for one in full]
    none, zero = ([{**one, numbers[0]: v} for one in filled] for v in (np.nan, 0.0))
    for some, same in ((bare, filled), (none, zero)):
        one, other = (confusion.guesses([Cheap("x", n) for n in found], causes) for found in (some, same))
        assert one == other


def test_what_mends_a_plant_is_counted_over_its_failing_variants_and_readings_change_nothing() -> None:
    about = {"mended": {"neutral": {"count": 1, "n": 9}},
             "interventions": {"skip": {"count": 8, "n": 9}, "exit": {"count": 3, "n": 9}}}  # fmt: skip
    one = results.Diagnosis(Path("x"), (), (), about)
    other = results.Diagnosis(Path("y"), (), (), {"mended": {}, "interventions": {"move": {"count": 2, "n": 3}}})
    assert confusion.mends({"a": one, "b": other}) == [
        {"plant": "a", "neutral": "1/9", "skip": "8/9", "move": ""},
        {"plant": "b", "neutral": "", "skip": "", "move": "2/3"},
    ]


def test_a_change_is_counted_apart_in_plants_of_its_own_cause_and_of_others() -> None:
    def diagnosis(**mended: tuple[int, int]) -> results.Diagnosis:
        counts = {name: {"count": k, "n": n} for name, (k, n) in mended.items()}
        return results.Diagnosis(Path("x"), (), (), {"mended": {}, "interventions": counts})

    truths = {"a": ["lost"], "b": ["bridge-not-routed"], "c": ["shortcut"], "late": ["too-late"],
              "two": ["lost", "shortcut"]}  # fmt: skip
    judged = [DiagnosedCase(p, str(i), t, t, True) for p, some in truths.items() for i, t in enumerate(some)]
    plants = {"a": diagnosis(skip=(9, 10), move=(1, 10)), "b": diagnosis(skip=(2, 8), move=(7, 8)),
              "c": diagnosis(skip=(0, 4), back=(1, 4)), "late": diagnosis(back=(9, 10)),
              "two": diagnosis(skip=(5, 9))}  # fmt: skip
    counted = {key: (t["count"], t["n"]) for key, t in confusion.specific(judged, plants).items()}
    assert counted == {
        "skip: own cause": (9, 10), "skip: other causes": (2, 12), "move: own cause": (7, 8),
        "move: other causes": (1, 10), "back: own cause": (9, 10), "back: other causes": (1, 4), "others": (4, 26),
    }  # fmt: skip


def test_the_study_of_causes_reads_the_shipped_plants_only_where_nothing_else_is_given(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    counts = {"mended": {}, "interventions": {"skip": {"count": 8, "n": 9}}, "seconds": 6.0}
    known = results.Diagnosis(tmp_path, (), (), counts)
    judged: list[str] = []

    def judge(planted: Any, *_: Any) -> Judged:
        judged.append(planted.name)
        named = enumerate(("lost", "lost", "undetermined"))
        return Judged([DiagnosedCase("a", str(i), "lost", n, i == 0) for i, n in named], known)

    replaced: dict[str, Any] = {"judge": judge}
    replaced |= {"planted_in": lambda folder: [confusion.Planted("", f"{folder}/a", lambda _: "lost")]}
    replaced |= {"guessed": lambda *_: {}, "read_run": lambda _: None, "labelled_failures": lambda _: []}
    for name, function in replaced.items():
        monkeypatch.setattr(confusion, name, function)
    limits, seeds = list[tuple[str, int | None]](), list[int]()

    def investigate(config: Any, *_: Any, **__: Any) -> None:
        limits.append((config.model, config.limit))
        seeds.append(config.seed)

    monkeypatch.setattr(confusion.work, "investigate", investigate)
    given = {"folder": ([tmp_path], []), "model": ([], ["organism:twin"]), "nothing": ([], [])}
    found = {}
    for name, (folders, models) in given.items():
        found[name] = len(judged), confusion.run_study(folders, models, tmp_path / name)
    assert [n for n, _ in found.values()] == [0, 1, 1] and len(judged) == 2
    assert found["model"][1] == ["organism-twin: no failure to diagnose"] and "named right 2 of 3 (67 %)" in "\n".join(
        found["folder"][1]
    )
    assert "named right with an intervention that mends it: 1 of 2 (50 %)" in found["folder"][1]
    confusion.run_study([], ["me/real"], tmp_path / "real", 4)
    assert limits == [("organism:twin", 100), ("me/real", 4)], "each family of a world has its own limit"
    asked: list[Any] = []
    monkeypatch.setattr(confusion, "labelled_failures", lambda _: ["x"])
    monkeypatch.setattr(confusion, "diagnose", lambda folder, **how: asked.append((folder.name, how)) or known)
    said = confusion.run_study([], ["me/real"], tmp_path / "failing", 4, seed=3)
    assert asked == [("real", {"cases": 4, "seed": 3, "quiet": True})] and seeds == [0, 0, 3]
    assert known.lines()[0] in said and "real: 6.0 s per case" in said
    assert json.loads((tmp_path / "failing" / "confusion.json").read_text())["seed"] == 3
    for name, line in (("confusion", "a,lost,3,2,1"), ("mended", "a,8/9")):
        assert (tmp_path / "folder" / f"{name}.csv").read_text().splitlines()[1] == line


def test_the_cheap_numbers_of_a_failing_case_are_those_of_its_whole_in_the_model_that_answered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Any] = []

    def examples(tokenizer: Any, sets: Any, roles: Any) -> list[Any]:
        asked.append((tokenizer, [(s.label, s.ids) for s in sets], roles))
        return [SimpleNamespace(case=c, response_ids=(i, i)) for i, c in enumerate(("a", "b"))]

    tokenizer = SimpleNamespace(decode=lambda ids: f"said {ids}")
    target = SimpleNamespace(tokenizer=tokenizer, open_model=lambda: "opened")
    run = SimpleNamespace(evaluated=lambda: SimpleNamespace(examples=examples))
    monkeypatch.setattr(confusion, "read_run", lambda folder: asked.append(folder) or run)
    monkeypatch.setattr(confusion, "load_target", lambda loading: asked.append(loading.model) or target)
    numbers = {"x": {"a": 1.0, "b": 2.0}, "y": {"b": 3.0}}
    monkeypatch.setattr(confusion, "baselines", lambda lm, wholes: asked.append((lm, len(wholes))) or numbers)
    found = confusion.cheap_numbers(tmp_path, "organism:low", ("a", "b"))
    assert found == {"a": Cheap("said (0, 0)", {"x": 1.0}), "b": Cheap("said (1, 1)", {"x": 2.0, "y": 3.0})}
    chosen = (tokenizer, [("failure", ("a", "b"))], ("whole",))
    assert asked == [tmp_path, "organism:low", chosen, ("opened", 2)]
    with pytest.raises(InputError, match="give --series FOLDER with plants"):
        monkeypatch.setattr(confusion, "planted_in", lambda folder: [])
        confusion.run_study([tmp_path], [], tmp_path / "out")


def test_models_of_one_name_are_told_apart_by_the_folders_that_they_are_in(tmp_path: Path) -> None:
    folders = [tmp_path / seed / "lost" for seed in ("a", "b")]
    for folder in folders:
        folder.mkdir(parents=True)
    assert confusion.told_apart([str(folders[0]), "organism:twin"]) == ["lost", "organism-twin"]
    assert confusion.told_apart([*map(str, folders), "me/other"]) == ["a-lost", "b-lost", "me-other"]
    with pytest.raises(InputError, match="given twice"):
        confusion.told_apart([str(folders[0])] * 2)


def test_a_plant_is_asked_and_its_failures_are_diagnosed_beside_the_truth(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cases = {id: SimpleNamespace(id=id, family=family) for id, family in (("a", "f"), ("b", "g"), ("c", "f"))}
    asked: dict[str, Any] = {}
    verdicts = [results.Verdict("a", "shortcut:last-item", ("e",), mended_by="neutral"),
                results.Verdict("c", "fragile", ("e",))]  # fmt: skip
    failing = list(cases.values())

    def investigate(config: Any, out: Path, **options: Any) -> None:
        asked["config"] = (config.model, config.benchmark, config.limit, config.seed, config.probes, out, options)

    def diagnose(out: Path, **options: Any) -> Any:
        asked["diagnose"] = (out, options)
        return results.Diagnosis(out, verdicts, [])

    monkeypatch.setattr(confusion.work, "investigate", investigate)
    monkeypatch.setattr(confusion, "diagnose", diagnose)
    monkeypatch.setattr(confusion, "read_run", lambda _: SimpleNamespace(cases=cases))
    monkeypatch.setattr(confusion, "labelled_failures", lambda _: failing)
    monkeypatch.setattr(confusion, "cheap_numbers", lambda out, model, ids: {id: (model, id) for id in ids})
    planted = confusion.Planted("p", "organism:twin", lambda case: f"truth of {case.id}", family="f")
    found = confusion.judge(planted, tmp_path, 7, seed=3)
    limit = confusion.ASKED * 7
    kept = {"quiet": True, "contrast": False}
    assert asked["config"] == ("organism:twin", "organism:mixed", limit, 3, (), tmp_path / "p", kept)
    assert asked["diagnose"] == (tmp_path / "p", {"cases": 7, "ids": ["a", "c"], "seed": 3, "quiet": True})
    kinds = [confusion.MERGED.get(v.kind, v.kind) for v in verdicts]
    assert found.cases == [DiagnosedCase("p", "a", "truth of a", kinds[0], True),
                           DiagnosedCase("p", "c", "truth of c", kinds[1], False)]  # fmt: skip
    assert found.cheap == [("organism:twin", "a"), ("organism:twin", "c")]
    confusion.judge(replace(planted, family=None), tmp_path, 7)
    assert asked["diagnose"][1]["ids"] == (), "all failures of the run, as its diagnosis chooses them"
    failing.clear()
    assert confusion.judge(planted, tmp_path, 7) == Judged()


@pytest.mark.parametrize(("plants", "cases", "known"), [(4, 1, False), (5, 1, True), (4, 3, False), (5, 3, True)])
def test_a_share_over_fewer_than_five_plants_has_no_interval_however_many_cases_each_has(
    plants: int, cases: int, known: bool
) -> None:
    found = confusion._share([(f"p{i}", i % 2 == 0) for i in range(plants) for _ in range(cases)])
    assert found["n"] == plants * cases and (found["low"] is not None) == (found["high"] is not None) == known
