"""Verdicts over trainings: nulls hardly ever pass, confounds are named, and what follows the dose is found."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest
from scipy import stats as scipy_stats

from composcope.errors import InputError, NoCasesError
from composcope.probes import jackknife, verdicts
from composcope.probes.verdicts import Observations, verdict

from .synthetic_trainings import World, confounds, nulls, world

stats: Any = scipy_stats  # its result types do not declare statistic


def _verdicts(draws: int, seed: int, cases: int = 40) -> tuple[dict[str, Counter[str]], dict[str, Counter[str]]]:
    null: dict[str, Counter[str]] = {}
    confounded: dict[str, Counter[str]] = {}
    for i in range(draws):
        rng = np.random.default_rng([seed, i])
        w = world(rng, cases=cases)
        for into, some in ((null, nulls(rng, w)), (confounded, confounds(rng, w))):
            for name, value in some:
                said = verdict(w.seen(value), without_lowest=True)["verdict"]
                into.setdefault(name, Counter())[str(said)] += 1
    return null, confounded


def _yes(said: Counter[str]) -> float:
    return sum(n for verdict, n in said.items() if verdict.startswith("yes")) / said.total()


@pytest.mark.slow
def test_of_500_random_probes_at_most_7_percent_get_a_yes_and_every_confound_is_named() -> None:
    null, confounded = _verdicts(500, 0)
    assert all(_yes(said) <= 0.07 for said in null.values()), null
    for name, said in confounded.items():
        named = sum(n for v, n in said.items() if v.startswith("explained by") and name in v)
        assert _yes(said) <= 0.07 and named / said.total() >= 0.9, (name, said)


def test_random_probes_hardly_ever_pass_and_confounds_are_named() -> None:
    null, confounded = _verdicts(15, 1, cases=24)
    assert sum(_yes(said) * 15 for said in null.values()) <= 3
    assert all(not _yes(said) for said in confounded.values())
    assert all(sum(n for v, n in said.items() if name in v) >= 12 for name, said in confounded.items())


def _made(seed: int = 0, **options: int) -> tuple[World, np.ndarray]:
    rng = np.random.default_rng(seed)
    w = world(rng, **options)
    return w, 0.8 * w.dose + rng.normal(size=w.dose.size)


def test_what_follows_the_dose_beyond_the_baselines_is_a_yes_in_its_direction() -> None:
    w, value = _made()
    row = verdict(w.seen(value), without_lowest=True)
    assert row["verdict"] == "yes" and row["n"] == 8 and row["as_expected"] == 8
    assert row["p"] == pytest.approx(2 / 2**8)
    taus = [stats.kendalltau(w.dose[w.training == t], value[w.training == t]).statistic for t in range(8)]
    assert [row[f"seed {t}"] for t in range(8)] == pytest.approx(taus) and row["value"] == pytest.approx(np.mean(taus))
    half = stats.t.ppf(0.975, 7) * np.std(taus, ddof=1) / np.sqrt(8)
    assert row["low"] <= row["value"] - half * 0.8 and row["high"] - row["low"] >= 1.6 * half
    assert min(row[f"beyond {b}_low"] for b in ("length", "likelihood", "confidence", "all baselines")) > 0.05
    assert verdict(w.seen(-value), without_lowest=True)["verdict"] == "yes, reversed"
    falling = verdict(w.seen(-value), expected="decreasing", without_lowest=True)
    assert falling["verdict"] == "yes" and falling["as_expected"] == 8
    assert verdict(w.seen(-value))["as_expected"] == 0


def test_what_is_left_beyond_a_baseline_has_to_be_as_large_as_was_stated(monkeypatch: pytest.MonkeyPatch) -> None:
    w, value = _made()
    left = min(verdict(w.seen(value))[f"beyond {b}_low"] for b in ("length", "likelihood", "confidence"))
    monkeypatch.setattr(verdicts, "BEYOND", left + 0.01)
    assert verdict(w.seen(value))["verdict"].startswith("cannot say (not shown beyond")


@pytest.mark.parametrize(("error", "said"), [(0.024, "no"), (0.028, "cannot say")])
def test_no_effect_is_shown_by_two_tests_at_5_percent(error: float, said: str) -> None:
    # Student's t with 7 degrees of freedom: 1.895 errors for 90 %, 2.365 for 95 %
    mean = verdicts.Over({t: 0.05 * (-1) ** t for t in range(8)}, 0.05, error, 7.0, 0.0)
    assert verdicts._judged({}, mean, "trend", 1, False)["verdict"] == said


def test_a_verdict_needs_the_sign_test_of_trainings_too() -> None:
    def mean(signs: list[int]) -> int:
        return verdicts.Over({t: 0.1 * s for t, s in enumerate(signs)}, 0.05, 0.01, 7.0, 0.0).sign()

    assert mean([1] * 8) == 1, "the interval alone is the same"
    assert mean([1] * 6 + [-1] * 2) == 0


def test_fewer_than_eight_trainings_say_nothing_and_bring_no_p() -> None:
    for n, said in ((1, "cannot say: 1 training (8 are needed)"), (7, "cannot say: 7 trainings (8 are needed)")):
        w, value = _made(trainings=n)
        row = verdict(w.seen(value))
        assert row["verdict"] == said and "p" not in row and np.isnan(row["low"]) == (n == 1)
        assert row["interval"] == ("none" if n == 1 else "t over trainings and cases")


def test_fewer_than_five_clusters_of_cases_have_no_interval_and_say_nothing() -> None:
    w, value = _made(cases=20)
    training, dose, case = w.training.tolist(), w.dose.tolist(), w.case.tolist()
    for clusters in (4, 5):
        row = verdict(Observations(training, dose, [hash(c) % clusters for c in case], value))
        assert row["verdict"].startswith("cannot say: 4 clusters") == (clusters == 4)
        assert np.isnan(row["low"]) == np.isnan(row["high"]) == (clusters == 4)
    own = {c: frozenset({c, f"also {c}"}) for c in case}  # two facts of each case, which are shared in none or a chain
    chain = {c: frozenset({i, i + 1}) for i, c in enumerate(own)}
    kept = [i for i, c in enumerate(case) if c in list(own)[:4]]
    for labels in (own, chain):
        of = [labels[case[i]] for i in kept]
        row = verdict(Observations([training[i] for i in kept], [dose[i] for i in kept], of, value[kept]))
        assert row["verdict"].startswith("cannot say: 4 clusters") and np.isnan(row["low"]), row


def test_no_needs_an_interval_within_the_bounds_and_is_not_what_is_left_when_nothing_is_found() -> None:
    w, _ = _made()
    rng = np.random.default_rng(5)
    assert verdict(w.seen(rng.normal(size=w.dose.size)))["verdict"] == "no"
    few, _ = _made(cases=6)
    noisy = verdict(few.seen(rng.normal(size=few.dose.size) + rng.normal(size=(8, 4))[few.training, few.dose]))
    assert noisy["verdict"] == "cannot say" and noisy["low"] < -0.1


@pytest.mark.parametrize("doses", [3, 4])
def test_a_trend_that_the_lowest_dose_alone_makes_is_no_yes(doses: int) -> None:
    w, _ = _made(doses=doses)
    value = 3.0 * (w.dose == 0) + np.random.default_rng(2).normal(size=w.dose.size)
    row = verdict(w.seen(value), expected="decreasing", without_lowest=True)
    assert row["verdict"] == "cannot say (rests on the lowest dose)" and abs(row["without_lowest"]) < 0.1


def test_an_auroc_over_trainings_is_that_of_each_and_a_label_by_length_is_explained() -> None:
    rng = np.random.default_rng(3)
    w = world(rng, doses=2)
    value = w.dose + rng.normal(size=w.dose.size)
    row = verdict(w.seen(value), measure="auroc")
    of_first = [value[(w.training == 0) & (w.dose == d)] for d in (1, 0)]
    wins = (of_first[0][:, None] > of_first[1]).mean()
    assert row["seed 0"] == pytest.approx(wins) and row["value"] > 0.6
    assert verdict(w.seen(w.baselines["length"]), measure="auroc")["verdict"].startswith("explained by length")


def test_the_jackknife_over_cases_widens_what_cases_share_in_every_training() -> None:
    w, _ = _made(cases=20, doses=2)
    rng = np.random.default_rng(4)
    # In every training the same cases fail, and the number is the case's own: eight trainings are no eight samples.
    level = (w.case < 10).astype(float)
    value = rng.normal(size=20)[w.case] + 0.01 * rng.normal(size=w.case.size)
    row = verdict(Observations(w.training.tolist(), level.tolist(), w.case.tolist(), value), measure="auroc")
    each = [row[f"seed {t}"] for t in range(8)]
    assert np.std(each) < 0.02 and row["high"] - row["low"] > 0.25


@pytest.mark.parametrize("measure", ["trend", "auroc"])
def test_a_number_without_a_group_is_that_of_the_other_groups_cases(measure: verdicts.Measure) -> None:
    rng, groups = np.random.default_rng(6), 5
    level, group = rng.integers(0, 3 if measure == "trend" else 2, 40).astype(float), rng.integers(0, groups, 40)
    value = np.floor(level + 4 * rng.random(40))
    found = verdicts._concordance(verdicts._Cells(level, group, groups, value), measure)
    for g in range(groups):
        kept = group != g
        alone = verdicts._concordance(verdicts._Cells(level[kept], group[kept], groups, value[kept]), measure)
        assert found[1 + g] == pytest.approx(alone[0]) and found[1 + g] != pytest.approx(found[0], abs=1e-4)


def test_what_a_baseline_explains_for_the_most_part_is_named_so_even_if_some_of_it_is_left() -> None:
    w, value = _made()
    likelihood = w.baselines["likelihood"]
    row = verdict(w.seen(likelihood / likelihood.std() + 0.3 * w.dose), without_lowest=True)
    assert row["verdict"] == "explained by likelihood"
    assert verdicts.BEYOND < row["beyond likelihood_low"] and verdicts.BEYOND < row["beyond all baselines_low"]
    own = verdict(w.seen(value + 0.1 * likelihood), without_lowest=True)
    assert own["verdict"] == "yes" and own["beyond likelihood"] < own["value"]


def test_trainings_in_which_a_baseline_alone_tells_the_doses_apart_do_not_count_for_a_yes() -> None:
    w, value = _made()
    length = np.where(w.training < 3, w.dose, w.baselines["likelihood"])  # of the other trainings it explains little
    row = verdict(Observations(w.training.tolist(), w.dose.tolist(), w.case.tolist(), value, {"length": length}))
    assert row["verdict"] == "cannot say (not shown beyond length)" and row["beyond length_low"] > verdicts.BEYOND


def test_beyond_all_baselines_stands_on_the_cases_in_which_every_one_is_known() -> None:
    w, value = _made()
    gaps = {"confidence": w.case < 0, "length": w.case % 7 == 1, "likelihood": w.case % 5 == 2}
    known = {name: np.where(gaps[name], np.nan, x) for name, x in w.baselines.items()}
    whole = ~np.any(list(gaps.values()), axis=0)

    def row(kept: np.ndarray) -> dict[str, Any]:
        parts = (w.training[kept].tolist(), w.dose[kept].tolist(), w.case[kept].tolist(), value[kept])
        return verdict(Observations(*parts, {name: x[kept] for name, x in known.items()}))

    found = row(w.case >= 0)
    assert found["beyond all baselines"] == pytest.approx(row(whole)["beyond all baselines"])
    assert found["beyond length"] == pytest.approx(row(~gaps["length"])["beyond length"])
    assert found["verdict"] == "yes" and 0.5 < whole.mean() < 0.8


@pytest.mark.parametrize(("step", "said"), [(-1, "below"), (1, "above")])
def test_a_number_that_follows_a_baseline_of_another_dose_is_explained_by_it(step: int, said: str) -> None:
    w, value = _made()
    shape = (8, 4, 40)
    at = np.clip(np.arange(4) + step, 0, 3)
    # Answers grow longer at one dose only: length itself says little of a number that follows it one dose off.
    long = np.array([1, 1, 1, 5] if step > 0 else [1, 5, 5, 5])[w.dose] + np.abs(w.difficulty)
    moved = long.reshape(shape)[:, at].ravel()
    noise = np.random.default_rng(1).normal(size=long.size)

    def row(x: np.ndarray) -> dict[str, Any]:
        parts = (w.training.tolist(), w.dose.tolist(), w.case.tolist())
        return verdict(Observations(*parts, x, {"length": long}))

    found = row(moved + 0.2 * noise)
    assert found["verdict"] == f"explained by length at the dose {said}"
    assert found[f"beyond length at the dose {said}_low"] < verdicts.BEYOND < found["beyond length_low"]
    own = row(value)
    assert own["verdict"] == "yes" and not any("at the dose" in key for key in own)


def test_a_number_of_which_something_is_left_beyond_another_dose_is_not_called_explained(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    w, value = _made()
    long = np.array([1, 5, 5, 5])[w.dose] + np.abs(w.difficulty)
    seen = Observations(w.training.tolist(), w.dose.tolist(), w.case.tolist(), value, {"length": long})
    assert verdict(seen)["verdict"] == "yes"
    # What is left is 0.47 beyond its own length and 0.40 [0.34, 0.45] beyond that of the dose below.
    for bound, said in ((0.37, "cannot say (not shown beyond length at the dose below)"),
                        (0.41, "explained by length at the dose below")):  # fmt: skip
        monkeypatch.setattr(verdicts, "BEYOND", bound)
        assert verdict(seen)["verdict"] == said


def test_baselines_of_other_doses_are_those_of_the_same_case() -> None:
    # Two cases share the label "b"; at the highest dose there is no higher one, and case "c" is missing there.
    seen = Observations([0] * 7, [1, 1, 1, 1, 2, 2, 2], [*"abbc", *"bab"], [0.0] * 7, {})
    keys = jackknife.keys_of(seen.training, seen.case, np.array(seen.level))
    found = jackknife.beside(keys, {"x": np.arange(7.0)})
    assert found["x at the dose above"].tolist()[:3] == [5, 4, 6] and np.isnan(found["x at the dose above"][3])
    assert found["x at the dose above"].tolist()[4:] == [4, 5, 6]
    assert found["x at the dose below"].tolist() == [0, 1, 2, 3, 1, 0, 2]


def test_a_training_that_lacks_a_level_is_left_out_and_named() -> None:
    w, value = _made()
    gone = (w.training == 3) & (w.dose == 2)
    row = verdict(w.seen(np.where(gone, np.nan, value)))
    assert row["n"] == 7 and "seed 3" in str(row["note"]) and row["verdict"].startswith("cannot say: 7 trainings")


def test_what_cannot_be_is_refused() -> None:
    with pytest.raises(InputError, match="lengths"):
        verdict(Observations([1, 1], [0, 1], ["a", "b"], [1.0]))
    with pytest.raises(InputError, match="measure='mean'"):
        verdict(Observations([1], [0], ["a"], [1.0]), measure="mean")  # type: ignore[arg-type]

    def few(n: int) -> Observations:
        return Observations([1] * n, ([0, 1] * 3)[:n], "aabbcc"[:n], [1.0, 2, 2, 3, 3, 4][:n])

    assert verdict(few(6))["n"] == 1, "three scores at each level are enough for a number"
    with pytest.raises(NoCasesError, match="no training"):
        verdict(few(5))


def test_a_case_is_in_the_same_group_in_every_training_and_at_every_level() -> None:
    cases = [f"c{i}" for i in range(12)]
    order = [*cases, *cases[::-1], *cases[6:], *cases[:6], *cases]
    seen = Observations([0] * 24 + [1] * 24, ([0.0] * 12 + [1.0] * 12) * 2, order, np.arange(48.0))
    cells, left_out = verdicts._by_training(seen)
    groups = {
        (case, int(g)) for t, n in ((0, 0), (1, 24)) for case, g in zip(order[n : n + 24], cells[t].group, strict=True)
    }
    assert left_out == {} and len(groups) == 12


def test_more_than_twelve_trainings_are_tested_by_drawn_signs() -> None:
    for n, fewest in ((12, 2 / 2**12), (13, 1 / 4097)):
        alike = verdicts.Over(dict.fromkeys(range(n), 1.0), 1.0, 1.0, n - 1, 0.0)
        mixed = verdicts.Over({i: (-1.0) ** i for i in range(n)}, 1.0, 1.0, n - 1, 0.0)
        assert fewest <= alike.p < 0.005 and mixed.p > 0.5 and mixed.p <= 1
    assert verdicts._drawn_signs(13).shape == (4097, 13) and set(np.unique(verdicts._drawn_signs(13))) == {-1.0, 1.0}


def test_too_few_cases_for_a_baseline_have_no_number_beyond_it() -> None:
    n = verdicts.FEWEST_ADJUSTED
    rng = np.random.default_rng(0)
    for size, known in ((n - 1, False), (n, True)):
        cells = verdicts._Cells(rng.normal(size=size), np.arange(size) % 3, 3, rng.normal(size=size))
        found = verdicts._beyond(cells, [])
        assert found.shape == (4,) and np.isfinite(found[0]) == known


@pytest.mark.parametrize("measure", ["trend", "auroc"])
def test_what_crosses_the_clusters_of_cases_is_counted(measure: Any) -> None:
    yes = Counter[bool]()
    for i in range(30):
        rng = np.random.default_rng([7, i])
        about = np.stack([rng.permutation(np.arange(24) < 3) for _ in range(60)])
        # Without an effect on average: each of a case's three facts has its own, the same in every training.
        effects = about @ rng.normal(size=(24, 4)) / np.sqrt(3)
        axes = (np.arange(8), np.arange(4 if measure == "trend" else 1), np.arange(60))
        t, d, c = (a.ravel() for a in np.meshgrid(*axes, indexing="ij"))
        value = 0.9 * effects[c, d] + 0.4 * rng.normal(size=t.size)
        failed = 0.9 * effects[c, 3] + 0.4 * rng.normal(size=t.size) > 0
        labels = [frozenset(np.flatnonzero(facts).tolist()) for facts in about]
        level = d if measure == "trend" else failed.astype(int)
        row = verdict(Observations(t.tolist(), level.tolist(), [labels[k] for k in c], value), measure=measure)
        yes[row["verdict"].startswith("yes")] += 1
    assert yes[True] <= 4, "with one fact of each case counted, 16 to 34 % of such draws got a yes"


def test_facts_that_meet_without_crossing_are_one_cluster_and_no_cases_have_no_groups() -> None:
    labels = [label for i in range(20) for label in (frozenset({i, f"of {i}"}), i)]
    group, groups, near = jackknife.groups_of(jackknife.keys_of([0] * 40, labels, np.ones(40)))
    assert groups == jackknife.GROUPS and near is None and (group[::2] == group[1::2]).all()
    assert jackknife.groups_of([])[1:] == (0, None) and jackknife.beside([], {}) == {}
    assert jackknife.variance(0.5, np.array([np.nan, 0.4]), None) == (0.0, 1.0), "one group shows no variance"
