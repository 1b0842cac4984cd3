"""Analyses over models: size groups, answer lengths, bottleneck profiles, teachers, filtering. All counts by hand."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pytest
from scipy.stats import spearmanr

from composcope.errors import InputError, NoCasesError
from composcope.evaluation import dependence, statistics
from composcope.evaluation.analyses import agentcoma, stad
from composcope.evaluation.analyses import base as analyses
from composcope.evaluation.analyses.base import Source, lengths
from composcope.evaluation.benchmarks.stad import StadItem
from composcope.evaluation.cases import Case
from composcope.evaluation.graded import Graded
from composcope.evaluation.metrics import find


def _rows(model: str, outcomes: dict[str, str], skills: tuple[str, ...] = ()) -> list[Graded]:
    """Marks by case: "+-+" for whole, part:0, part:1 (or with scaffolds further on)."""
    roles = ["whole", "part:0", "part:1", "scaffold:1", "scaffold:2"]
    names = {"+": "correct", "-": "incorrect", "?": "invalid"}
    return [
        Graded(case, role, names[m], model=model, skills=skills)  # type: ignore[arg-type]
        for case, marks in outcomes.items()
        for role, m in zip(roles, marks, strict=False)
    ]


@pytest.mark.parametrize(
    ("name", "size"),
    [
        ("Qwen2.5-7B-Instruct", 7.0), ("Mixtral-8x7B", 56.0), ("Llama-3.1-405B", 405.0), ("smol-135M", 0.135),
        ("phi-3.5_mini_3.8b", 3.8), ("gpt-4o", None), ("Qwen3 14B", 14.0), ("Llama-70B-draft-1B", 70.0),
    ],
)  # fmt: skip
def test_sizes_are_read_from_names(name: str, size: float | None) -> None:
    assert agentcoma.size_of(name) == size


def test_answers_of_all_models_of_a_size_are_pooled() -> None:
    runs = [
        Source("a", _rows("m-1B", {"x": "-++", "y": "--+"})),
        Source("b", _rows("m-8B", {"x": "+++", "y": "-++"})),
        Source("c", _rows("m-14B", {"x": "+++", "y": "+++"})),
        Source("d", _rows("m-10B", {"x": "+++", "y": "+++"})),
    ]
    found = agentcoma.size_groups(runs)
    small = {"size": "small", "models": 2}
    composition, both, press = (find(found.metrics, n, **small) for n in ("composition", "both", "press_gap"))
    assert composition and both and press
    assert (composition.count, composition.n, both.count) == (1, 4, 3)
    assert composition.cluster_n == 2, "answers of two models to one case are not two cases"
    assert (press.count, press.n) == (2, 3)
    gap = find(found.metrics, "gap", **small)
    assert gap is not None and gap.value == pytest.approx(-0.5)
    quadrant = find(found.metrics, "quadrant", **small, quadrant="11")
    assert quadrant is not None and (quadrant.count, quadrant.n) == (2, 3)
    right = find(found.metrics, "quadrant", **small, quadrant="11", whole="correct")
    assert right is not None and (right.count, right.n) == (1, 1)
    assert found.warnings == ("m-10B is between 8B and 14B and left out",)


def test_a_model_of_unknown_size_needs_its_size() -> None:
    run = Source("a", _rows("mystery", {"x": "+++"}))
    with pytest.raises(InputError, match="--size a=7"):
        agentcoma.size_groups([run])
    for name in ("a", "mystery"):
        assert agentcoma.size_groups([run], {name: 3}).tables["models"][0]["group"] == "small"


def test_only_the_first_answer_of_each_model_is_pooled() -> None:
    rows = _rows("m-1B", {"x": "+++", "y": "+++"})
    again = [replace(r, repeat=1, outcome="incorrect") for r in rows]
    found = agentcoma.size_groups([Source("a", [*rows, *again])]).metrics
    composition = find(found, "composition", size="small", models=1)
    assert composition is not None and (composition.count, composition.n) == (2, 2)


def test_mean_lengths_are_counted_per_role_and_outcome() -> None:
    rows = [
        Graded("x", "whole", "correct", ask="1"),
        Graded("y", "whole", "incorrect", ask="2"),
        Graded("x", "part:0:paraphrase:0", "correct", ask="3"),
        Graded("x", "part:1:paraphrase:3", "correct", ask="4"),
        Graded("z", "whole", "incorrect", ask=None),
    ]
    found = lengths([Source("run", rows, tokens={"1": 10, "2": 30, "3": 4, "4": 8})])
    values = {(m.group["role"], m.group.get("outcome")): (m.value, m.n) for m in found.metrics}
    assert values["whole", None] == (20, 2)
    assert values["whole", "incorrect"] == (30, 1)
    assert values["part:*:paraphrase", None] == (6, 2)
    assert all("model" not in m.group for m in found.metrics)
    steps = [Graded("x", f"scaffold:{n}", "correct", ask="1") for n in (10, 2)]
    listed = lengths([Source("run", [*rows, *steps], tokens={"1": 10})]).metrics
    assert [m.group["role"] for m in listed if "outcome" not in m.group] == [
        "part:*:paraphrase", "scaffold:2", "scaffold:10", "whole"]  # fmt: skip
    both = lengths([Source(n, rows, tokens={"1": 10}) for n in ("run", "other")])
    assert {m.group.get("model") for m in both.metrics} == {"run", "other"}
    unknown = {(m.group["role"], m.group.get("outcome")): (m.value, m.n, m.n_invalid) for m in both.metrics}
    assert unknown["whole", None] == (10, 1, 1) and unknown["part:*:paraphrase", None] == (None, 0, 2)
    assert all(m.low is None for m in found.metrics if m.value == 6), "two answers to one case, so no interval"
    with pytest.raises(InputError, match="give a run folder"):
        lengths([Source("run", rows)])


# whole, part:0, part:1, scaffold:1, scaffold:2 over three steps
SKILLS = ("unit", "sum", "compare")


def test_bottlenecks_are_counted_by_their_number_of_different_skills() -> None:
    # k = 1, 2, 2, 0, -1
    outcomes = {"a": "-++++", "b": "-++-+", "c": "---?+", "d": "+++++", "e": "-++--"}
    outcomes["c"] = "-+--+"
    found = stad.bottlenecks_by_size([Source("m", _rows("m", outcomes, SKILLS))])
    counts = {m.group["skills"]: (m.count, m.n) for m in found.metrics}
    assert counts == {"1": (1, 3), "2": (2, 3), ">=3": (0, 3)}
    assert [(r["bottleneck"], r["count"]) for r in found.tables["bottlenecks"]] == [("unit / sum", 2), ("unit", 1)]
    assert {m.n_invalid for m in found.metrics} == {0}
    # f: k is 1 or 2, so that its bottleneck has one skill or two
    open_ = stad.bottlenecks_by_size([Source("m", _rows("m", {**outcomes, "f": "-++?+"}, SKILLS))])
    assert [(m.count, m.n, m.n_invalid) for m in open_.metrics] == [(1, 3, 1), (2, 3, 1), (0, 3, 1)]
    bounds = [(m.bound_low, m.bound_high) for m in open_.metrics]
    assert bounds == [(1 / 4, 2 / 4), (2 / 4, 3 / 4), (0.0, 0.0)]
    slashed = stad.bottlenecks_by_size([Source("m", _rows("m", outcomes, ("km / h", *SKILLS[1:])))])
    assert [m.count for m in slashed.metrics] == [1, 2, 0], "a slash in a name makes no second skill"
    assert [r["skills"] for r in slashed.tables["bottlenecks"]] == [2, 1]
    roles = ("whole", *(f"scaffold:{level}" for level in range(1, 5)))
    four = [Graded("z", r, "correct" if r[-1] == "4" else "incorrect", skills=tuple("abcde")) for r in roles]
    assert [m.count for m in stad.bottlenecks_by_size([Source("m", four)]).metrics] == [0, 0, 1]
    two = stad.bottlenecks_by_size([Source(n, _rows(n, outcomes, SKILLS)) for n in "mn"])
    assert [m.group.get("model") for m in (*found.metrics, *two.metrics)] == [None] * 3 + ["m"] * 3 + ["n"] * 3
    assert found.warnings == () and [w[:4] for w in open_.warnings] == ["m: 1"], "what is open is said"
    with pytest.raises(InputError, match="m: no row has the role 'scaffold:1'"):
        stad.bottlenecks_by_size([Source("m", [r for r in _rows("m", outcomes, SKILLS) if r.role[0] != "s"])])


def test_a_skill_that_is_there_alone_but_has_to_be_supplied_in_context_stands_first() -> None:
    outcomes = {"a": "-+-++", "b": "-+--+", "c": "-+--+", "d": "++++-"}
    found = stad.skills_in_context([Source("m", _rows("m", outcomes, SKILLS))])
    rows = {r["skill"]: r for r in found.tables["skills"]}
    # unit: right alone 4 of 4, in all 3 bottlenecks; sum: right alone 1 of 4, in 2 of 3.
    assert (rows["unit"]["isolated"], rows["unit"]["share"], rows["unit"]["gap"]) == (1.0, 1.0, 1.0)
    assert (rows["sum"]["isolated"], rows["sum"]["bottleneck"], rows["sum"]["of"]) == (0.25, 2, 3)
    assert rows["sum"]["gap"] == pytest.approx(0.25 - 1 / 3)
    assert [r["skill"] for r in found.tables["skills"]] == ["unit", "sum"]
    assert found.tables["correlation"][0]["spearman"] is None and not found.warnings
    unasked = [r for r in _rows("m", outcomes, SKILLS) if not r.role.startswith("scaffold")]
    assert len(stad.skills_in_context([Source("m", unasked)]).warnings) == 1, "no scaffold was asked"
    others = _rows("m", {"e": "-+--+"}, ("order", "rank", "order"))
    more = stad.skills_in_context([Source("m", [*_rows("m", outcomes, SKILLS), *others])]).tables["skills"]
    assert {r["skill"]: r["of"] for r in more} == {"unit": 3, "sum": 3, "order": 1, "rank": 1}
    open_ = stad.skills_in_context([Source("m", _rows("m", {"a": "-??-+"}, SKILLS))]).tables["skills"]
    assert [(r["skill"], r["n"], r["isolated"], r["bottleneck"], r["gap"]) for r in open_] == [
        ("sum", 0, None, 1, None), ("unit", 0, None, 1, None)
    ]  # fmt: skip


def test_equally_good_models_with_other_bottlenecks_are_told_apart() -> None:
    # Half solved by both; a needs one step everywhere, b two.
    a = {f"c{i}": "+++++" if i < 10 else "-++++" for i in range(20)}
    b = {f"c{i}": "+++++" if i < 10 else "-++-+" for i in range(20)}
    far = {f"c{i}": "-++++" for i in range(20)}
    runs = [Source(n, _rows(n, o, SKILLS)) for n, o in (("a", a), ("b", b), ("far", far))]
    found = stad.equal_accuracy(runs, permutations=500)
    (pair,) = found.tables["pairs"]
    assert (pair["a"], pair["b"], pair["total_variation"]) == ("a", "b", 1.0)
    # Of all swaps of the 10 items, only none and all leave them as far apart: about 2 in 1024.
    assert pair["p"] < 0.02
    assert pair["most_different"] == ["unit: +100.0 points", "unit / sum: -100.0 points"]
    middle = {f"c{i}": "+++++" if i < 10 else "-++++" if i < 15 else "-++-+" for i in range(20)}
    three = [*runs[:2], Source("middle", _rows("middle", middle, SKILLS))]
    by_seed = [stad.equal_accuracy(three, permutations=60, seed=seed).tables["pairs"] for seed in (0, 0, 1)]
    assert by_seed[0] == by_seed[1] and [r["p"] for r in by_seed[0]] != [r["p"] for r in by_seed[2]]
    ordered = sorted(by_seed[0], key=lambda r: r["p"])
    assert ordered[0]["p"] < 1 / 3 and ordered[0]["p_adjusted"] == pytest.approx(3 * ordered[0]["p"])
    same = stad.equal_accuracy([runs[0], Source("a2", _rows("a2", a, SKILLS))], permutations=100)
    assert same.tables["pairs"][0]["total_variation"] == 0 and same.tables["pairs"][0]["p"] == 1
    one = [Source(n, _rows(n, {"x": marks}, SKILLS)) for n, marks in (("a", "-++++"), ("b", "-++-+"))]
    (pair,) = stad.equal_accuracy(one, permutations=50).tables["pairs"]
    assert (pair["total_variation"], pair["p"]) == (1, 1), "one item says nothing"
    with pytest.raises(NoCasesError, match="no two of 2 runs"):
        stad.equal_accuracy([runs[0], runs[2]])
    with pytest.raises(NoCasesError, match="no two of 2 runs"):
        stad.equal_accuracy([runs[2], runs[0]])
    assert stad.equal_accuracy([runs[0], runs[2]], 0.5).tables["pairs"], "as far apart as is allowed"


def _run(name: str, teacher: str, model: str, skills: dict[str, str]) -> Source:
    """Every case fails and is solved with its first step revealed, so its bottleneck is the first skill."""
    rows = []
    for case, skill in skills.items():
        for role, outcome in (("whole", "incorrect"), ("scaffold:1", "correct")):
            rows.append(Graded(case, role, outcome, model=model, skills=(skill, "end")))  # type: ignore[arg-type]
    cases = {c: Case(c, "?", "1", meta={"teacher": teacher}) for c in skills}
    return Source(name, rows, cases)


def test_bottlenecks_that_two_teachers_share_are_named_per_model() -> None:
    runs = [
        _run("a1", "t1", "m", {"x": "unit", "y": "unit", "z": "sum"}),
        _run("a2", "t2", "m", {"x": "unit", "y": "order", "z": "order"}),
    ]
    found = stad.teachers(runs)
    (row,) = found.tables["agreement"]
    assert (row["model"], row["shared"], row["skills"]) == ("m", 1, ["unit"])
    assert found.tables["mean"][0]["mean_shared"] == 1.0
    with pytest.raises(NoCasesError, match="under two teachers"):
        stad.teachers(runs[:1])
    # the commonest alone: "sum" under t1, "order" (before "unit" by name) under t2 and t3
    more = [
        _run("a1", "t1", "m", {"x": "unit", "y": "sum", "z": "sum"}),
        _run("a2", "t2", "m", {"x": "unit", "y": "order"}),
        _run("a3", "t3", "m", {"x": "order", "y": "order", "z": "unit"}),
        _run("a4", "t3", "n", {"x": "sum"}),
        _run("a5", "t4", "k", {"x": "sum"}),
    ]
    tops = [[(r["first"], r["second"], r["model"], r["shared"], r["skills"]) for r in tables["agreement"]]
            for tables in (stad.teachers(more).tables, stad.teachers(more, top=1).tables)]  # fmt: skip
    assert tops == [
        [("t1", "t2", "m", 1, ["unit"]), ("t1", "t3", "m", 1, ["unit"]), ("t2", "t3", "m", 2, ["order", "unit"])],
        [("t1", "t2", "m", 0, []), ("t1", "t3", "m", 0, []), ("t2", "t3", "m", 1, ["order"])],
    ], "teachers without a target in common are not compared"
    assert [stad.teachers(more, top).tables["mean"][-1] for top in (5, 1)] == [
        {"first": "t2", "second": "t3", "models": 1, "top": top, "mean_shared": mean}
        for top, mean in ((5, 2.0), (1, 1.0))
    ]  # fmt: skip
    with pytest.raises(InputError, match="0 teachers"):
        stad.teacher_of(Source("b", runs[0].rows, {"x": Case("x", "?", "1")}))


def test_accuracy_before_and_after_filtering_is_over_the_same_run() -> None:
    topics = ("red apples in a bowl", "long trains at night", "deep water under ice")
    cases = {f"c{i}": Case(f"c{i}", f"{topics[i % 3]} {i}", "1") for i in range(9)}
    rows = [Graded(c, "whole", "correct" if i < 3 else "incorrect") for i, c in enumerate(cases)]
    run = Source("run", [*rows, *(replace(r, repeat=1, outcome="incorrect") for r in rows)], cases)
    kept = [StadItem(f"k{i}", cases[f"c{i}"].question, "1") for i in (0, 1, 2, 3)]
    found = stad.filtered(run, kept, n_clusters=3)
    before, after = found.tables["accuracy"]
    assert (before["count"], before["n"], after["count"], after["n"]) == (3, 9, 3, 4)
    assert found.tables["cluster proportions"][0]["clusters"] == 3
    with pytest.raises(InputError, match="'k9': its question is not among the originals"):
        stad.filtered(run, [kept[0], StadItem("k9", "another question", "1")])


def test_profiles_skills_and_lengths_know_what_items_share() -> None:
    marks = {f"{c}{i}": "-+++" if c in "abc" else "-+--+" for c in "abcdef" for i in range(4)}
    rows = [replace(r, cluster=r.case[0], ask=f"{r.case} {r.role}") for r in _rows("m-1B", marks, ("x", "y", "z"))]
    run = Source("m", rows, tokens={str(r.ask): 10 + ord(r.case[0]) for r in rows})
    sizes = stad.bottlenecks_by_size([run]).metrics
    assert {(m.n, m.cluster_n) for m in sizes} == {(24, 6)}
    skill = next(r for r in stad.skills_in_context([run]).tables["skills"] if r["skill"] == "y")
    assert (skill["n"], skill["isolated"]) == (24, 0.5) and skill["high"] - skill["low"] > 0.7, "six clusters agree"
    length = next(m for m in lengths([run]).metrics if dict(m.group) == {"role": "whole"})
    assert length.interval == "CR2 t over clusters"


def test_profiles_are_swapped_by_what_items_share() -> None:
    def run(name: str, far: str, share: bool) -> Source:
        marks = {f"{c}{i}": "-++-+" if c in far else "-+++" for c in "abcdef" for i in range(4)}
        rows = [replace(r, cluster=r.case[0] if share else None) for r in _rows(name, marks, ("x", "y", "z"))]
        return Source(name, rows)

    def p(share: bool) -> float:
        sides = [run("m-1B", "", share), run("n-1B", "abcdef", share)]
        return stad.equal_accuracy(sides, permutations=500).tables["pairs"][0]["p"]

    assert p(False) < 0.01 and p(True) == pytest.approx(2 / 2**6, abs=0.03)
    sides = run("m-1B", "", True), run("n-1B", "a", True)
    few = [Source(side.name, [r for r in side.rows if r.case[0] in "abcd"]) for side in sides]
    assert stad.equal_accuracy(few).tables["pairs"][0]["p"] is None


def test_profiles_of_unlike_sizes_that_are_equal_are_seldom_told_apart() -> None:
    rng, found = np.random.default_rng(0), []
    for _ in range(150):
        of = [dict(zip(range(60), rng.choice(list("xxxxxyyyzz"), 60), strict=True)) for _ in "ab"]
        a, b = (
            {i: k for i, k in side.items() if rng.random() < share}
            for side, share in zip(of, (0.95, 0.15), strict=True)
        )
        seen = stad.total_variation(a.values(), b.values())
        found.append(seen and stad._permutation_p(a, b, {i: i for i in range(60)}, seen, 99, 0))
    assert np.mean([p is not None and p < 0.05 for p in found]) < 0.1, "a quarter if sizes are swapped, too"


def test_every_repeat_of_an_item_is_in_a_profile() -> None:
    def run(name: str, *repeats: str) -> Source:
        return Source(name, [replace(r, repeat=i) for i, marks in enumerate(repeats)
                             for r in _rows(name, dict.fromkeys("abcdefgh", marks), ("x", "y", "z"))])  # fmt: skip

    found = stad.equal_accuracy([run("m", "-++-+", "-+++"), run("n", "-+++", "-++-+")], permutations=50)
    pair = found.tables["pairs"][0]
    assert (pair["n_a"], pair["n_b"], pair["total_variation"]) == (16, 16, 0.0)


def test_profiles_differ_by_half_the_sum_of_their_differences_and_name_the_largest() -> None:
    a, b = list("xxyz"), list("xyyyw")
    half = sum(abs(a.count(k) / 4 - b.count(k) / 5) for k in "xyzw") / 2
    assert stad.total_variation(a, b) == pytest.approx(half) and stad.total_variation(a, []) is None
    named = [dict(enumerate(side)) for side in (a, b)]
    assert stad._most_different(*named) == ["y: -35.0 points", "x: +30.0 points", "z: +25.0 points"]  # type: ignore[arg-type]


def test_the_p_of_two_profiles_is_that_of_all_swaps_of_what_belongs_together() -> None:
    a, b = ({f"c{i}": k for i, k in enumerate(side)} for side in ("xxxxxxyz", "yyzyxyyz"))
    near = {c: c for c in a}
    seen = stad.total_variation(a.values(), b.values())
    assert seen is not None
    both = list(zip(a.values(), b.values(), strict=True))
    swaps = [
        [(y, x) if s else (x, y) for (x, y), s in zip(both, swap, strict=True)] for swap in product((0, 1), repeat=8)
    ]
    apart = [stad.total_variation([x for x, _ in one], [y for _, y in one]) or 0 for one in swaps]
    hits = sum(distance >= seen - 1e-12 for distance in apart)
    found = stad._permutation_p(a, b, near, seen, 4000, 0)
    assert found == pytest.approx(hits / 256, abs=0.03)
    assert found == stad._permutation_p(a, b, near, seen, 4000, 0) != stad._permutation_p(a, b, near, seen, 4000, 1)
    fewer = {c: b[c] for c in ("c2", "c3")}
    sides = [np.array([[side.get(c) == k for k in "xyz"] for c in a], dtype=float) for side in (a, fewer)]
    both = np.concatenate(sides).sum(0) / 10
    one, other = ((side - side.sum(1, keepdims=True) * both) / side.sum() for side in sides)
    apart = np.abs(np.array([*product((-1, 1), repeat=8)]) @ (one - other)).sum(1) / 2
    seen = stad.total_variation(a.values(), fewer.values())
    assert seen is not None
    found = stad._permutation_p(a, fewer, near, seen, 4000, 0)
    assert found == pytest.approx((apart >= seen - 1e-12).mean(), abs=0.03), "of profiles of unlike sizes"
    assert dependence.FEWEST > 4 and stad._permutation_p(a, b, {c: int(c[1:]) // 2 for c in a}, seen, 99, 0) is None


def test_a_skill_is_present_alone_and_fails_in_context_by_its_own_counts() -> None:
    steps = [(True, "a"), (True, "b"), (False, "c"), (True, "d")]
    needed = [({"s", "t"}, {"s"}), ({"s"}, set()), ({"s", "u"}, {"s", "u"}), ({"t"}, {"t"})]
    row = stad._skill_row("m", "s", steps, needed)  # type: ignore[arg-type]
    interval = statistics.rate_interval([True, True, False, True], list("abcd"))
    assert (row["n"], row["isolated"], row["low"], row["high"]) == (4, 0.75, interval.low, interval.high)
    assert (row["bottleneck"], row["of"], row["share"]) == (2, 3, 2 / 3) and row["gap"] == pytest.approx(0.75 - 1 / 3)
    none = stad._skill_row("m", "z", steps, needed)  # type: ignore[arg-type]
    assert (none["of"], none["share"], none["gap"]) == (0, None, None)
    rows = [{"isolated": x, "share": y} for x, y in ((0.1, 0.9), (0.5, 0.2), (0.7, 0.4), (0.9, 0.1), (0.3, None))]
    rho: Any = spearmanr([0.1, 0.5, 0.7, 0.9], [0.9, 0.2, 0.4, 0.1])
    assert stad._correlation("m", rows) == {"model": "m", "n": 4, "spearman": pytest.approx(rho.statistic)}
    assert stad._correlation("m", rows[:2])["spearman"] is None


def test_a_teacher_is_the_one_that_all_cases_name() -> None:
    def run(*names: str | None) -> Source:
        cases = {str(i): Case(str(i), "q", "a", meta={"teacher": n} if n else {}) for i, n in enumerate(names)}
        return Source("r", [], cases=cases)

    assert stad.teacher_of(run("t", None, "t")) == "t"
    for names in ((), (None,), ("t", "u")):
        with pytest.raises(InputError, match="teachers"):
            stad.teacher_of(run(*names))


def test_lengths_are_means_by_role_and_outcome_over_answers_with_a_length() -> None:
    outcomes: list[Any] = ["correct", "correct", "incorrect"] * 4
    rows = [Graded(f"c{i}", role, outcome, ask=f"{i}{role}", cluster=f"k{i // 3}") for i, outcome in enumerate(outcomes)
            for role in ("whole", "part:0:paraphrase:1", "part:1:paraphrase:0")]  # fmt: skip
    tokens = {str(r.ask): 10 + i for i, r in enumerate(rows) if i % 5}
    found = {
        (m.group["role"], m.group.get("outcome")): m
        for m in analyses.lengths([Source("r", rows, tokens=tokens)], 3).metrics
    }
    assert {role for role, _ in found} == {"whole", "part:*:paraphrase"}
    for (role, outcome), metric in found.items():
        mine = [tokens[str(r.ask)] for r in rows if str(r.ask) in tokens and analyses.role_class(r.role) == role
                and outcome in (None, r.outcome)]  # fmt: skip
        assert (metric.n, metric.count, metric.value) == (len(mine), sum(mine), pytest.approx(np.mean(mine)))
    apart = analyses.lengths([Source("r", [replace(r, cluster=None) for r in rows], tokens=tokens)], 3).metrics
    assert found["whole", None].low is None and any(m.low is not None for m in apart), "four clusters have no interval"
    with pytest.raises(InputError, match="no response lengths"):
        analyses.lengths([Source("r", rows)])


def test_every_answer_of_a_model_is_its_own_and_runs_are_given_once() -> None:
    assert Source("r", [Graded("a", "whole", "correct", model="m")]).model == "m" and Source("r", []).model == "r"
    with pytest.raises(InputError, match="rows of 2 models"):
        _ = Source("r", [Graded("a", "whole", "correct", model=m) for m in "mn"]).model
    with pytest.raises(InputError, match="give at least 2"):
        analyses.distinct([Source("a", [])], 2, "x")
    with pytest.raises(InputError, match="'a' is given twice"):
        analyses.distinct([Source(n, []) for n in "aba"], 2, "x")


def test_a_target_twice_under_one_teacher_and_originals_without_questions_are_refused() -> None:
    runs = [_run("a1", "t1", "m", {"x": "unit"}), _run("a2", "t2", "m", {"x": "unit"})]
    with pytest.raises(InputError, match="a3: 'm' was given twice under teacher 't2'"):
        stad.teachers([*runs, _run("a3", "t2", "m", {"y": "unit"})])
    assert stad.teachers([*runs, _run("a3", "t2", "n", {"y": "unit"})]).tables["agreement"]
    with pytest.raises(InputError, match="r: its questions"):
        stad.filtered(Source("r", runs[0].rows), [])
