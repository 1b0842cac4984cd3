"""The study's numbers: intervals over trainings, transfer, curves, tables."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from composcope.errors import InputError
from composcope.evaluation.cases import Case, Part
from composcope.evaluation.graded import Graded
from composcope.evaluation.metrics import Metric
from composcope.experiments import report
from composcope.experiments.console.printing import Reporter
from composcope.experiments.interventions import inside, study, study_tables, training_curve
from composcope.experiments.interventions.study_tables import markdown
from composcope.experiments.organism import train as organism_train
from composcope.experiments.organism.recipe import OrganismRecipe
from composcope.experiments.run import read_json, write_json


def _cells(*rates: int) -> dict[str, dict[str, int]]:
    return {str(d): {"k": k, "n": 100} for d, k in zip((2, 4, 6, 8), rates, strict=True)}


HALF = 4.302652729911275 * 0.1 / math.sqrt(3)


@pytest.mark.parametrize(
    ("values", "limits", "value", "ends"),
    [
        ([0.2, 0.3, 0.4], (), 0.3, (0.3 - HALF, 0.3 + HALF)), ([0.0, 1.0], (0.0, 1.0), 0.5, (0.0, 1.0)),
        ([0.5], (), 0.5, None), ([0.5] * 3, (), 0.5, None), ([], (), None, None),
    ],
)  # fmt: skip
def test_the_interval_over_trainings_is_students_within_the_limits_and_none_says_nothing_of_others(
    values: list[float], limits: Any, value: float | None, ends: tuple[float, float] | None
) -> None:
    found = study_tables.interval(values, *limits)
    assert (found["seeds"], found["value"]) == (len(values), value and pytest.approx(value))
    assert (found["low"], found["high"]) == (pytest.approx(ends) if ends else (None, None))


@pytest.mark.parametrize(
    ("after", "depths", "seen", "held", "ratio"),
    [
        (_cells(0, 30, 70, 90), (2, 4), 0.40, 0.15, 0.375), (_cells(0, 80, 70, 90), (2, 4), -0.1, 0.15, None),
        (_cells(0, 10, 10, 10), (2, 4, 6, 8), 0.7667, None, None),
        ({**_cells(0, 30, 70, 90), "6": {"k": 0, "n": 0}}, (2, 4), 0.4, 0.1, 0.25),  # nothing passes the gates at 6
    ],
)  # fmt: skip
def test_transfer_compares_held_out_with_trained_depths_without_the_control_and_those_without_cases(
    after: Any, depths: tuple[int, ...], seen: float, held: float | None, ratio: float | None
) -> None:
    found = study_tables.transfer(after, _cells(50, 70, 90, 100), depths)
    near = {"gain_seen": seen, "gain_held": held, "ratio": ratio}
    assert found == {k: v if v is None else pytest.approx(v, abs=1e-4) for k, v in near.items()}


def _result(variant: str, seed: int | None, *rates: int, matched: bool = True) -> dict[str, object]:
    row: dict[str, object] = {
        "base": "base", "variant": variant, "seed": seed, "residual": _cells(*rates),
        "atoms": {"k": 48, "n": 48}, "d50": None,
    }  # fmt: skip
    if seed is not None:
        delta = {"value": -0.1 if matched else None, "low": None, "high": None, "note": None}
        row |= {"delta_atom": 0.0, "delta_comp": {"4": delta}, "delta_depth": {"value": None, "note": "censored"}}
        row |= study_tables.transfer(_cells(*rates), _cells(0, 70, 90, 100), (2, 4))
    return row


def test_summaries_are_means_over_seeds_and_count_the_matched_trainings() -> None:
    rows = [
        _result("baseline", None, 0, 70, 90, 100),
        *(_result("grpo", s, 0, 30 + s, 80, 90, matched=s < 2) for s in range(3)),
    ]
    base, grpo = study_tables.summarize(rows)
    assert base["seeds"] == 1 and base["residual 4"]["low"] is None
    assert grpo["residual 4"]["value"] == pytest.approx(0.31)
    assert (grpo["delta_comp 4"]["seeds"], grpo["delta_comp 4"]["of"]) == (2, 3)
    assert grpo["delta_depth"]["value"] is None
    text = "\n".join(markdown(study_tables.Findings({}, rows, [base, grpo])))
    assert "| base | grpo | 3 | 0 | 31 [29, 33] |" in text
    assert "2/3" in text


def test_intervals_of_rates_are_cut_to_what_is_possible_and_those_of_changes_are_not() -> None:
    rows: list[Any] = [_result("grpo", 0, 0, 0, 0, 0), _result("grpo", 1, 0, 90, 90, 100)]
    rows[0]["atoms"], rows[1]["atoms"] = {"k": 24, "n": 48}, {"k": 48, "n": 48}
    rows[0]["delta_depth"], rows[1]["delta_depth"] = {"value": -1.0}, {"value": 3.0}
    (found,) = study_tables.summarize(rows)
    assert [(found[k]["low"], found[k]["high"]) for k in ("residual 4", "atoms")] == [(0.0, 1.0)] * 2
    unknown = [{**rows[0], "atoms": atoms} for atoms in (None, {"k": 0, "n": 0})]  # no fact could be judged
    assert study_tables.summarize([*rows, *unknown])[0]["atoms"] == found["atoms"]
    half = 12.706204736432095 / math.sqrt(2)  # of two values that differ by their standard deviation times this root
    for key, spread in (("gain_seen", 0.9), ("gain_held", 0.95), ("delta_depth", 4.0)):
        middle, reach = found[key]["value"], half * spread / math.sqrt(2)
        assert (found[key]["low"], found[key]["high"]) == pytest.approx((middle - reach, middle + reach))


def _graded(case: str, role: str, outcome: str, atom: str | None = None) -> Graded:
    return Graded.from_dict({"case": case, "role": role, "outcome": outcome, "atom": atom, "ask": role}, "row")


def test_a_checkpoint_counts_each_sub_question_once_and_wholes_by_depth() -> None:
    part = Part("p", "1", atom="a")
    cases = [Case(f"c{d}", f"q{d}", "1", (part, part), depth=d) for d in (2, 4, 6)]
    rows = [_graded(c.id, f"part:{i}", "correct", "a") for c in cases for i in (0, 1)]
    rows.append(_graded("c2", "part:0:paraphrase:0", "incorrect", "a"))
    rows += [
        _graded("c2", "whole", "correct"),
        _graded("c4", "whole", "incorrect"),
        _graded("c6", "whole", "incorrect"),
    ]
    found = {r["metric"]: (r["k"], r["n"]) for r in training_curve.counts(rows, cases, (2, 4))}
    assert found == {
        "parts": (1, 1),
        "composition": (1, 3),
        "composition, trained depths": (1, 2),
        "composition, held-out depths": (0, 1),
    }
    bare = training_curve.counts(rows[-1:], [Case("c6", "q", "1", (part, part))], (2, 4))
    assert [r["metric"] for r in bare] == ["composition"], "a case without a depth is at no held-out one"


def test_a_checkpoint_does_not_count_as_wrong_what_could_not_be_judged() -> None:
    part = Part("p", "1", atom="a")
    cases = [Case(f"c{d}", f"q{d}", "1", (part, part), depth=d) for d in (2, 4)]
    rows = [_graded("c2", "part:0", "invalid", "a"), _graded("c2", "part:1", "abstained", "b")]
    rows += [_graded("c2", "whole", "correct"), _graded("c4", "whole", "invalid")]
    found = {r["metric"]: (r["k"], r["n"]) for r in training_curve.counts(rows, cases, (2,))}
    assert found == {"parts": (0, 1), "composition": (1, 1), "composition, trained depths": (1, 1)}


def test_a_row_of_a_run_has_its_facts_counted_once_each(monkeypatch: pytest.MonkeyPatch) -> None:
    found = [Metric("atom_stability", {}, n=90, count=80), Metric("atom_stability", {"per": "fact"}, n=9, count=8),
             Metric("residual_failure", {"depth": 4}, n=5, count=2),
             Metric("residual_failure", {"depth": 6}, n=7, count=1),
             Metric("residual_failure", {"depth_bin": 6}, n=9, count=4, low=0.2, high=0.7),
             Metric("d50", n=9, value=5.5, note="n")]  # fmt: skip
    monkeypatch.setattr(study_tables, "read_run", lambda _: SimpleNamespace(metrics=found))
    row = study_tables._plain("base", "grpo", 0, Path("r"))
    assert (row["atoms"], row["d50"]) == ({"k": 8, "n": 9}, {"value": 5.5, "note": "n"})
    assert [(d, r["k"], r["n"]) for d, r in row["residual"].items()] == [("4", 2, 5), ("6", 4, 9)]
    assert (row["residual"]["6"]["low"], row["residual"]["6"]["high"]) == (0.2, 0.7)
    del found[:]
    row = study_tables._plain("base", "grpo", 0, Path("r"))
    assert (row["atoms"], row["d50"], row["residual"]) == (None, None, {})


def test_numbers_inside_stand_before_and_after_with_their_change() -> None:
    row = {"variant": "grpo", "quantity": "z", "n": 9, "before": 0.5, "after": None, "value": None, "low": None,
           "high": None}  # fmt: skip
    known = {**row, "after": 0.75, "value": 0.25}
    rows = [row, known, {**known, "n": 3, "low": 0.125, "high": 0.375}]
    title, _, head, _, *cells = markdown(study_tables.Findings({}, [], [], inside=rows))
    assert title.startswith("**Inside") and head.split(" | ")[1:3] == ["quantity", "n"]
    assert cells == [
        "| grpo | z | 9 | 0.500 | – | – |",
        "| grpo | z | 9 | 0.500 | 0.750 | +0.250 |",
        "| grpo | z | 3 | 0.500 | 0.750 | +0.250 [+0.125, +0.375] |",
        "",
    ]


def test_the_study_holds_the_recipes_on_equal_data_and_the_four_mixes() -> None:
    size = study.SIZES["small"]
    made = {v.name: v.recipe(size) for v in study.VARIANTS}
    for v in study.VARIANTS:
        recipe = made[v.name]
        assert (recipe.objective, recipe.solutions, recipe.format) == (v.objective, v.solutions, v.format)
    trio = [r for name, r in made.items() if r.depths == (2, 4)]
    assert {r.objective for r in trio} == {"sft-answer", "sft-trace", "grpo"}
    assert len({(r.prompts, r.rank, r.alpha, r.epochs, r.learning_rate) for r in trio}) == 1
    grpo = [r for r in made.values() if r.objective == "grpo"]
    assert [r.depths for r in grpo] == [(2, 4), (2, 4, 6), (2, 4, 6), (2, 4, 6, 8)]
    assert [r.prompts // size.per_cell for r in grpo] == [4, 7, 7, 10], "as many questions per family and depth"


def test_the_second_base_is_one_training_of_another_architecture(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    given: list[Any] = []
    monkeypatch.setattr(organism_train, "train", lambda *args: given.extend(args) or tmp_path / "model")
    reporter = Reporter(tmp_path / "log.txt", quiet=True)
    assert study._train_second(tmp_path / "second", reporter) == tmp_path / "model"
    dose, seed, folder, recipe, device, said = given
    assert (dose, seed, folder, device) == ("control", 0, tmp_path / "second", "cpu")
    own = OrganismRecipe()
    assert recipe == replace(own, architecture="qwen3", base=replace(own.base, steps=1300),
                             dose=replace(own.dose, steps=700))  # fmt: skip
    for step in (249, 250, 251, 300):
        said("base", step, 300, 1.0)
    assert re.findall(r"step (\d+) of 300", (tmp_path / "log.txt").read_text()) == ["250", "300"]


def test_the_study_asks_bases_and_doses_trains_by_stages_and_opens_the_first_seed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    asked, trained, made, curves, opened, reported, collected = [], [], [], [], [], [], []

    def train(recipe: Any, model: str, data: Any, folder: Path, how: Any, reporter: Any) -> Any:
        assert data == how.seed, "another seed trains on other questions"
        trained.append((model, recipe.depths, how.seed, how.save_every))
        made.append((folder / "model", how.seed, recipe.depths))
        return SimpleNamespace(model=folder / "model")

    def evaluate(_: Any, model: str, out: Path, format: str = study.FORMAT) -> None:
        asked.append((model, out.name, format))
        write_json(out / "metrics.json", {})

    def measure(folder: Path, model: str, *, limit: int, device: str | None, reporter: Any) -> None:
        assert (model, limit, device) == ("own", study.SIZES["tiny"].curve_limit, "cpu") and reporter
        curves.append(folder.name)
        write_json(folder / training_curve.FILE, {"rows": [{"training": folder.name}]})

    monkeypatch.setattr(study, "require_extra", lambda *_: None)
    monkeypatch.setattr(study.training, "train", train)
    monkeypatch.setattr(study.StudyWork, "evaluate", evaluate)
    monkeypatch.setattr(study, "training_set", lambda *_, seed=None: seed)
    monkeypatch.setattr(study.training_curve, "measure", measure)
    monkeypatch.setattr(inside, "compare", lambda before, after, out, n, **_: opened.append((before[0], [*after], n)))
    monkeypatch.setattr(study_tables, "collect", lambda *given: collected.append(given))
    monkeypatch.setattr(study_tables, "write", lambda *_: None)
    monkeypatch.setattr(report, "write", lambda runs, _: reported.extend(r.name for r in runs))
    killed = study.run_folder(tmp_path, study.SECOND, "baseline", None)
    killed.mkdir(parents=True)  # while it was asked, in an earlier call
    study.run(
        study.InterventionStudy(model="own", seeds=2, size="tiny", second="other"), tmp_path, device="cpu", quiet=True
    )
    assert killed not in collected[0][2].values() and killed in collected[-1][2].values()
    bases = [a for a in asked if a[1].endswith("baseline")]
    formats = list(dict.fromkeys(v.format for v in study.VARIANTS))
    assert [(m, f) for m, _, f in bases] == [("own", f) for f in formats] + [("other", f) for f in formats]
    assert [m for m, name, _ in asked if name.startswith("dose")] == [f"organism:{d}" for d in study.DOSES]
    first, second, third = 4 * 2, (1 + 3) * 2, 2 * 2
    assert len(trained) == first + second + third and len(asked) == len(trained) + len(bases) + len(study.DOSES)
    assert [m for m, *_ in trained] == ["own"] * (first + 2) + ["other"] * 6 + ["own"] * third
    assert [seed for *_, seed, _ in trained[:first]] == [0] * 4 + [1] * 4
    assert {depths: kept for _, depths, _, kept in trained[-third:]} == {(2, 4, 6): 14, (2, 4, 6, 8): 20}
    assert {kept for *_, kept in trained[:first]} == {4}, "two checkpoints in two epochs of sixteen questions"
    assert len(curves) == 6 and not any("second" in name for name in curves)
    assert [(m, n) for m, _, n in opened] == [("own", 4)] * 2
    assert [len(names) for _, names, _ in opened] == [2, 1]
    assert reported and not any(name.endswith("-1") for name in reported)
    _, done, baselines, doses, rows, _ = collected[-1]
    assert sorted(path.name for *_, path in done) == sorted({name for _, name, _ in asked if name[-2:] in ("-0", "-1")})
    models = {str(model): (seed, depths) for model, seed, depths in made}
    of_run = {name: models.get(model) for model, name, _ in asked}
    assert {path.name: (seed, depths) for *_, depths, seed, path in done} == {n: m for n, m in of_run.items() if m}
    assert len(done) == len(trained) and {p.name for p in baselines.values()} == {name for _, name, _ in bases}
    assert {f"organism:{dose}": path.name for dose, path in doses.items()}.items() <= {(m, n) for m, n, _ in asked}
    assert [r["training"] for r in rows] == sorted(curves), "every curve that was measured"
    assert read_json(tmp_path / training_curve.FILE)["rows"] == rows


@pytest.mark.parametrize(("option", "value"), [("model", "other"), ("size", "small"), ("second", "other")])
def test_a_study_folder_is_not_continued_with_other_bases_or_cases(
    option: str, value: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was evaluated is not evaluated again, so it would stand in the tables of the other study."""
    monkeypatch.setattr(study, "require_extra", lambda *_: None)
    begun = study.InterventionStudy(model="own", size="tiny", second="mine")
    stopped = RuntimeError("stopped")

    def evaluate(*_: Any) -> None:
        raise stopped

    monkeypatch.setattr(study.StudyWork, "evaluate", evaluate)
    for same in (begun, replace(begun, seeds=5), replace(begun, second="none"), begun):
        with pytest.raises(RuntimeError, match="stopped"):
            study.run(same, tmp_path, quiet=True)
    with pytest.raises(InputError, match=f"--{option}"):
        study.run(replace(begun, **{option: value}), tmp_path, quiet=True)


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
    given = [("b", 8, "parts", 10), ("a", 16, "parts", 4), ("a", 8, "parts", 10), ("a", 8, "parts", 20),
             ("a", 8, "composition", 5)]  # fmt: skip
    rows = [{"recipe": r, "step": s, "metric": m, "k": k, "n": 20} for r, s, m, k in given]
    lines = study_tables._curve(rows)[4:-1]
    assert [line.strip("| ").split(" | ") for line in lines] == [
        ["a", "8", "75", "25", "–", "–", "2"],
        ["a", "16", "20", "–", "–", "–", "1"],
        ["b", "8", "50", "–", "–", "–", "1"],
    ]


def test_a_base_is_evaluated_once_as_the_study_asks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []
    monkeypatch.setattr(
        "composcope.experiments.investigate.investigate", lambda *given, **how: asked.append((given, how))
    )
    size = replace(study.SIZES["small"], limit=7)
    work = study.StudyWork(study.InterventionStudy(), tmp_path, size, "cpu", Reporter(quiet=True))
    work.evaluate("m", tmp_path / "out", "xml")
    ((config, out), how) = asked[0]
    assert (config.model, config.benchmark, config.format, config.limit, config.device) == (
        "m", study.ORGANISM, "xml", 7, "cpu")  # fmt: skip
    assert (config.asking.compat, config.probes, out) == ("collapse", (), tmp_path / "out")
    assert how == {"quiet": True, "bars": False, "contrast": False, "report": False}
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "metrics.json").touch()
    work.evaluate("m", tmp_path / "out")
    assert len(asked) == 1


def test_results_of_a_study_compare_each_training_with_its_own_base(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(study_tables, "read_run", lambda path: SimpleNamespace(evaluated=lambda: f"run {path}"))
    monkeypatch.setattr(study_tables, "_plain", lambda base, variant, seed, path: {
        "base": base, "variant": variant, "seed": seed, "residual": f"of {path}"})  # fmt: skip
    monkeypatch.setattr(study_tables, "_channels", lambda after, before: {"channels": (after, before)})
    monkeypatch.setattr(study_tables, "transfer", lambda after, before, depths: {"transfer": (after, before, depths)})
    monkeypatch.setattr(study_tables, "summarize", lambda results: [{"n": len(results)}])
    for name in ("b", "a"):
        write_json(tmp_path / "inside" / name / "inside.json", {"rows": [{"in": name}]})
    done = [("one", "v", (2, 4), 3, "t1"), ("two", "v", (2,), 0, "t2")]
    bases: Any = {"one": "b1", "two": "b2"}
    doses = {"low": tmp_path / "low"}
    about = study.InterventionStudy(seeds=2)
    found = study_tables.collect(about, done, bases, doses, [{"step": 1}], tmp_path)  # type: ignore[arg-type]
    named = [(r["base"], r["variant"], r["seed"]) for r in found.results]
    bases_first = [("dose", "low", None), ("one", "baseline", None), ("two", "baseline", None)]
    assert named == [*bases_first, ("one", "v", 3), ("two", "v", 0)]
    first, second = found.results[-2:]
    assert first["channels"] == ("run t1", "run b1") and second["channels"] == ("run t2", "run b2")
    assert first["transfer"] == ("of t1", "of b1", (2, 4)) and first["depths"] == [2, 4]
    assert (found.summary, found.curve, found.inside) == ([{"n": 5}], [{"step": 1}], [{"in": "a"}, {"in": "b"}])
    assert found.about["study"]["seeds"] == 2 and {"trl", "peft", "torch"} <= set(found.about["versions"])
    monkeypatch.setattr(study_tables, "markdown", lambda found: ["a", "b"])
    study_tables.write(found, tmp_path)
    assert read_json(tmp_path / "study.json")["summary"] == [{"n": 5}]
    assert (tmp_path / "study.md").read_text() == "a\nb\n"
