"""Rows over trainings: which number of which training goes in, and what is said where one is missing."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from scipy import stats as scipy_stats

from composcope.errors import InputError
from composcope.experiments.organism import series as organism_series
from composcope.experiments.run import read_json
from composcope.experiments.validity import over_doses, over_seeds
from composcope.experiments.validity.scores import BASELINES

stats: Any = scipy_stats


def _row(question: str, model: str, value: float | None, **more: Any) -> dict[str, Any]:
    measure = "Kendall's tau-b" if question == "follows the dose" else "AUROC"
    return {"probe": "p", "short": "number", "question": question, "model": model, "headline": True,
            "measure": measure, "quantity": "number: x", "value": value, "verdict": "yes", **more}  # fmt: skip


def _trend(value: float | None, **more: Any) -> dict[str, Any]:
    return _row("follows the dose", "all doses", value, expected="decreasing", **more)


def _cases(question: str, model: str, seed: int, values: dict[int, list[float]]) -> list[dict[str, Any]]:
    """Numbers of cases by level; lengths and the rest say nothing."""
    rng = np.random.default_rng(seed)
    return [{"seed": seed, "question": question, "model": model, "level": level, "case": f"c{i}", "cluster": f"c{i}",
             "number": x, **{name: rng.normal() for name in BASELINES.values()}}
            for level, mine in values.items() for i, x in enumerate(mine)]  # fmt: skip


def _falling(slope: float, seed: int) -> dict[int, list[float]]:
    rng = np.random.default_rng([seed, 1])
    return {dose: (slope * dose + rng.normal(size=20)).tolist() for dose in range(4)}


DOSE, ALL = "follows the dose", "all doses"


def test_a_trend_over_eight_trainings_names_each_seed_and_how_many_go_as_expected() -> None:
    answers = {seed: [_trend(-0.5)] for seed in range(8)}
    cases = [row for seed in answers for row in _cases(DOSE, ALL, seed, _falling(-0.8, seed))]
    (row,) = over_seeds.rows(answers, cases)
    first = _falling(-0.8, 0)
    tau = stats.kendalltau(np.repeat(range(4), 20), np.concatenate(list(first.values()))).statistic
    assert row["seed 0"] == pytest.approx(tau) and row["n"] == 8 and row["as_expected"] == "8 of 8"
    assert row["verdict"] == "yes" and row["expected"] == "decreasing" and row["headline"] and row["note"] is None
    assert row["nothing"].endswith(" of 0"), "no trend, where 0.5 is no difference of two sides"
    assert row["p"] == pytest.approx(2 / 2**8) and row["seed"] == "all" and row["without_lowest"] < 0
    (few,) = over_seeds.rows(dict(list(answers.items())[:3]), cases)
    assert few["verdict"] == "cannot say: 3 trainings (8 are needed)" and "p" not in few and few["value"] < -0.3


def test_doses_and_questions_are_kept_apart() -> None:
    fails, members = "tells failure from success", "tells training members from held-out ones"
    answers = {1: [_row(fails, "low", 0.8), _row(fails, "control", 0.6), _row(members, "twin", 0.4)]}
    shifts = {(fails, "low"): 2.0, (fails, "control"): 0.5, (members, "twin"): -1.0}
    cases = [
        row
        for (q, m), shift in shifts.items()
        for row in _cases(q, m, 1, {0: [0, 1, 2], 1: [shift, 1 + shift, 2 + shift]})
    ]
    rows = over_seeds.rows(answers, cases)
    assert [(r["question"], r["model"], r["seed 1"]) for r in rows] == [
        (fails, "low", pytest.approx(8.5 / 9)), (fails, "control", pytest.approx(6 / 9)),
        (members, "twin", pytest.approx(2 / 9))]  # fmt: skip


def test_a_training_without_a_value_is_named_with_its_reason_and_not_counted() -> None:
    answers = {1: [_trend(-0.5)], 2: [_trend(None, note="too few cases")], 3: [_trend(-0.6)]}
    cases = [row for seed in (1, 3) for row in _cases(DOSE, ALL, seed, _falling(-0.8, seed))]
    (row,) = over_seeds.rows(answers, cases, without_trend=[3])
    assert row["n"] == 1 and row["as_expected"] == "1 of 1"
    assert row["note"] == "seed 2: too few cases; seed 3: not examined"
    assert row["value"] == row["seed 1"] and row["verdict"].startswith("cannot say: 1 training")
    (none,) = over_seeds.rows({1: [_trend(None, note="too few cases")]}, [])
    assert none["n"] == 0 and none["value"] is None and none["verdict"].startswith("cannot say: 0 trainings")


def test_means_per_dose_are_joined_by_their_mean_over_trainings() -> None:
    about = {"probe": "p", "short": "n", "question": "follows the dose", "model": "all doses", "quantity": "number"}
    found = {seed: [{**about, "group": "none", "n": 9, "value": value}, {**about, "group": "twin", "value": None}]
             for seed, value in ((1, 1.0), (2, 3.0))}  # fmt: skip
    rows = over_seeds.means(found)
    assert [r["seed"] for r in rows] == [1, 1, 2, 2, "all", "all"]
    none, twin = rows[-2:]
    assert (none["group"], none["n"], none["value"], none["interval"]) == ("none", 2, 2.0, "Student t over trainings")
    assert (twin["n"], twin["interval"]) == (0, "none")
    *_, mean = over_seeds.means({seed: [{**about, "group": "none", "value": seed / 2}] for seed in (0, 1)})
    assert (mean["n"], mean["value"]) == (2, 0.25), "0 is a value"


def test_the_note_names_the_seeds_and_says_how_to_leave_the_shipped_training_out_where_it_is_in() -> None:
    told = [over_seeds.note((3, 12), shipped) for shipped in (True, False)]
    assert all(t.startswith("2 trainings per dose (seeds 3, 12)") for t in told)
    assert ["--only-series" in t for t in told] == [True, False]


def _training(seed: int, steps: int = 3, **about: Any) -> Any:
    return SimpleNamespace(seed=seed, shipped=False, notes=(f"note of {seed}",), recipe={"dose": {"steps": steps}},
                           **about)  # fmt: skip


class Examined:
    """What each training's examination was given; its answer, mean and case are named after its seed."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.given: list[Any] = []
        self.checked: list[list[int]] = []
        monkeypatch.setattr(over_doses, "_examined", self._examine)
        monkeypatch.setattr(organism_series, "check", lambda some: self.checked.append([one.seed for one in some]))

    def _examine(self, out: Path, runs: Any, one: Any, *how: Any) -> dict[str, Any]:
        self.given.append((out, dict(runs), one.seed, *how))
        return {"rows": [_row("q", "m", 0.5, quantity=f"row {one.seed}")], "means": [{"quantity": f"mean {one.seed}"}],
                "cases": [{"case": "c"}], "settings": {"trained": one.seed}, "notes": [f"own {one.seed}"]}  # fmt: skip


def test_several_trainings_are_each_examined_in_their_folder_and_told_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    examined, given = Examined(monkeypatch), dict[str, Any]()
    over = [{"probe": "p", "quantity": "over", "seed": "all", "verdict": "yes"}]

    def rows(answers: Any, cases: Any, without: Any) -> list[Any]:
        given.update(answers=answers, cases=cases, without=without)
        return over

    monkeypatch.setattr(over_seeds, "rows", rows)
    monkeypatch.setattr(over_seeds, "means", lambda means: [{"mean of": [*means], "is": means.get(4)}])
    full, few = {"none": tmp_path / "a", "twin": tmp_path / "b"}, {"none": tmp_path / "c"}
    first, second = _training(0), _training(4, steps=9)
    first.shipped = True
    probes: Any = {"mine": print}
    found = over_doses.examine_series(tmp_path, [(first, full), (second, few)], seed=7, device="d", n=5, probes=probes)
    how = (7, "d", 5, probes)
    assert examined.given == [(tmp_path / "series" / "seed-0", full, 0, *how),
                              (tmp_path / "series" / "seed-4", few, 4, *how)]  # fmt: skip
    assert examined.checked == [[0, 4]] and given["without"] == {4}
    assert [r["quantity"] for r in given["answers"][4]] == ["row 4"]
    assert given["cases"] == [{"seed": 0, "case": "c"}, {"seed": 4, "case": "c"}]
    assert [(r["quantity"], r["seed"]) for r in found] == [("over", "all"), ("row 0", 0), ("row 4", 4)]
    written = read_json(tmp_path / "validity.json")
    assert written["rows"] == found and "cases" not in written
    assert written["means"] == [{"mean of": [0, 4], "is": [{"quantity": "mean 4"}]}]
    assert written["settings"] == {"n": 5, "seed": 7, "series": {"0": {"trained": 0}, "4": {"trained": 4}}}
    notes = written["notes"]
    assert notes[: len(over_doses.NOTES) + 1] == [over_doses.NOTES[0], over_seeds.note([0, 4], True),
                                                  *over_doses.NOTES[1:]]  # fmt: skip
    assert notes[-4:-2] == ["note of 0", "note of 4"]
    assert notes[-2].startswith("Seed 4: no run of twin;") and "dose.steps 9 instead of 3" in notes[-1]
    over_doses.examine_series(tmp_path, [(_training(1), full), (_training(2), full)])
    assert given["without"] == set() and examined.given[-1][3:] == (0, None, over_doses.N_CASES, {})
    assert read_json(tmp_path / "validity.json")["notes"][1] == over_seeds.note([1, 2], False)


def test_one_training_is_told_by_its_own_rows_and_none_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Examined(monkeypatch)
    found = over_doses.examine_series(tmp_path, [(_training(4), {"none": tmp_path})], seed=7, n=5)
    written = read_json(tmp_path / "validity.json")
    assert [r["quantity"] for r in found] == ["row 4"] and written["rows"] == found
    assert written["settings"] == {"n": 5, "seed": 7, "trained": 4, "series": {"4": {"trained": 4}}}
    assert (written["notes"], written["means"]) == (["own 4", "note of 4"], [{"quantity": "mean 4"}])
    with pytest.raises(InputError, match="no series"):
        over_doses.examine_series(tmp_path, [])


def test_the_shipped_training_is_examined_where_none_is_given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[Any] = []
    monkeypatch.setattr(over_doses, "_examined", lambda *args: given.append(args) or {"rows": ["r"]})
    monkeypatch.setattr(organism_series, "shipped", lambda doses: ("shipped", *doses))
    runs = {"low": tmp_path}
    bar: Any = print
    assert over_doses.examine(tmp_path, runs) == ["r"]
    over_doses.examine(str(tmp_path), runs, seed=3, device="d", n=4, series="own", probes={"p": print},  # type: ignore[arg-type]
                       exposures=False, progress=bar)  # fmt: skip
    assert given[0][:8] == (tmp_path, runs, ("shipped", "low"), 0, None, over_doses.N_CASES, {}, True)
    assert given[1] == (tmp_path, runs, "own", 3, "d", 4, {"p": print}, False, bar)


def test_a_positive_control_is_no_row_over_trainings() -> None:
    answers = {seed: [_row("q", "m", 0.5), _row("q", "m", 0.5, kind="control", short="own part")] for seed in (0, 1)}
    assert [r["short"] for r in over_seeds.rows(answers, [])] == ["number"]
    own = over_seeds.of_seeds({3: [_row("q", "m", 0.5)]})
    assert [(r["seed"], r["model"], r["headline"]) for r in own] == [(3, "m, seed 3", False)]
