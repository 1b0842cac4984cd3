"""Every rate in a protocol's table, in every cell, against counting drawn rows case by case."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from itertools import product
from typing import Any

import pytest

from composcope.evaluation import statistics
from composcope.evaluation.asks import Outcome
from composcope.evaluation.metrics import Metric
from composcope.evaluation.protocols import Graded, counting, metrics_from_rows
from composcope.evaluation.protocols.compare import compare

Truth = bool | None
OUTCOMES: tuple[Outcome, ...] = ("correct", "correct", "correct", "incorrect", "abstained", "invalid")
Drawn = dict[str, dict[str, Graded]]
"""Rows by role, by case."""


def _drawn(roles: Callable[[int], Iterable[str]], n: int = 60, seed: int = 0, **more: Any) -> Drawn:
    """Cases of two families, three depths (the deepest in a bin of its own), two domains, some about one fact."""
    draw = random.Random(seed)
    found: Drawn = {}
    for i in range(n):
        case = f"c{i}"
        of: dict[str, Any] = {
            "family": ("f", "g", "g")[i % 3] if i % 17 else None,
            "depth": (2, 4, 7)[i % 4 % 3],
            "depth_bin": (2, 4, 6)[i % 4 % 3],
            "domain": ("d", "e")[i % 5 == 0] if i % 19 else None,
            "operation": "o" if i % 7 else None,
            "cluster": f"k{i % 11}" if i % 2 else None,
            "unknowable": i % 13 == 0,
        } | more
        found[case] = {r: Graded(case, r, draw.choice(OUTCOMES), kind="date" if r == "part:0" else None, **of)
                       for r in roles(i)}  # fmt: skip
    return found


def _truth(case: dict[str, Graded], role: str) -> Truth:
    if role not in case or case[role].outcome == "invalid":
        return None
    outcome = case[role].outcome
    return outcome == "correct" or (outcome == "abstained" and bool(case[role].unknowable))


def _all(values: Iterable[Truth]) -> Truth:
    known = list(values)
    return False if False in known else None if None in known else True


def _cells(drawn: Drawn) -> list[tuple[dict[str, Any], list[dict[str, Graded]]]]:
    cases = list(drawn.values())
    keys = [{"depth_bin"}, {"depth"}, {"family"}, {"domain"}, {"operation"}, {"family", "depth_bin"}]
    groups: list[dict[str, Any]] = [{}]
    for key in keys:
        if len(key) > 1 and len({c["whole"].family for c in cases}) < 2:
            continue  # the cells of one family by depth are those by depth
        for case in cases:
            group = {k: getattr(case["whole"], k) for k in key}
            if None not in group.values() and group not in groups:
                groups.append(group)
    return [(g, [c for c in cases if all(getattr(c["whole"], k) == v for k, v in g.items())]) for g in groups]


def _key(name: str, group: Any) -> tuple[str, frozenset[tuple[str, Any]]]:
    return name, frozenset(dict(group).items())


def _agree(metrics: Sequence[Metric], expected: dict[Any, tuple[list[dict[str, Graded]], list[Truth]]]) -> None:
    """Count, n, open ones, value, interval and bounds of every expected rate, and no other cell of these names."""
    names = {name for name, _ in expected}
    found = {_key(m.metric, m.group): m for m in metrics if m.metric in names}
    assert len(found) == sum(m.metric in names for m in metrics)
    assert {*found} == {*expected}
    for key, (cases, values) in expected.items():
        m, known = found[key], [v for v in values if v is not None]
        interval = statistics.clopper_pearson(sum(known), len(known))
        got = (m.count, m.n, m.n_invalid, m.low, m.high, m.interval)
        assert got == (sum(known), len(known), len(values) - len(known), interval.low, interval.high, interval.method)
        assert m.value == (sum(known) / len(known) if known else None)
        few = "n < 5" if len(known) < 5 else "n < 15" if len(known) < 15 else None
        assert [p for p in (m.note or "").split("; ") if p.startswith("n <")] == ([few] if few else [])
        if key[0] not in CONDITIONAL:  # those have test_bounds
            ends = (
                (sum(known) / len(values), (sum(known) + values.count(None)) / len(values)) if values else (None,) * 2
            )
            assert (m.bound_low, m.bound_high) == pytest.approx(ends)
        own = [c["whole"].cluster or c["whole"].case for c, v in zip(cases, values, strict=True) if v is not None]
        shared = len(set(own)) < len(own)
        assert m.cluster_n == (len(set(own)) if shared else None), key
        assert (m.cluster_interval is not None) == shared


Rates = dict[Any, tuple[list[dict[str, Graded]], list[Truth]]]
CONDITIONAL = (
    "residual_failure", "single_gate_failure", "press_gap", "gate_removed", "abstention", "recovery", "quadrant",
    "second_hop", "non_monotone", "skill_accuracy", "scaffold_success", "placeholder",
)  # fmt: skip
"""Rates among cases of which it may be open whether they are among them."""
Test = Callable[[dict[str, Graded]], Truth]


def _given(cases: list[dict[str, Graded]], inside: Test, value: Test) -> Any:
    """The cases that may be inside something, and their values; open where either is."""
    kept = [c for c in cases if inside(c) is not False]
    return kept, [None if inside(c) is None else value(c) for c in kept]


def _not(value: Truth) -> Truth:
    return None if value is None else not value


def _failures(cases: list[dict[str, Graded]], gate: Test) -> Any:
    """The cases that pass a gate and whether their wholes are wrong."""
    return _given(cases, gate, lambda c: _not(_truth(c, "whole")))


def _double_gate(drawn: Drawn) -> Rates:
    def atom(c: dict[str, Graded]) -> Truth:
        return _all(_truth(c, r) for r in c if "paraphrase" in r)

    def sub(c: dict[str, Graded]) -> Truth:
        return _all(_truth(c, r) for r in c if r.startswith("part:") and r.count(":") == 1)

    def double(c: dict[str, Graded]) -> Truth:
        return _all([atom(c), sub(c)]) if any("paraphrase" in r for r in c) else sub(c)

    expected: Rates = {}
    for group, cases in _cells(drawn):
        probed = [c for c in cases if any("paraphrase" in r for r in c)]
        answered = [c for c in cases if c["whole"].outcome != "abstained"]
        if probed:
            expected[_key("atom_gate", group)] = probed, [atom(c) for c in probed]
            expected[_key("gate_removed", group)] = _given(probed, sub, lambda c: _not(atom(c)))
            expected[_key("single_gate_failure", group)] = _failures(probed, sub)
        expected[_key("sub_question_gate", group)] = cases, [sub(c) for c in cases]
        expected[_key("double_gate", group)] = cases, [double(c) for c in cases]
        expected[_key("residual_failure", group)] = _failures(cases, double)
        expected[_key("residual_failure", {**group, "abstentions": "excluded"})] = _failures(answered, double)
        expected[_key("abstention", group)] = _given(cases, double, _abstained)
        expected[_key("composition", group)] = cases, [_truth(c, "whole") for c in cases]
    everyone = list(drawn.values())
    expected[_key("skill_accuracy", {"skill": "date"})] = everyone, [_truth(c, "part:0") for c in everyone]

    def failed(c: dict[str, Graded]) -> Truth:
        return _all([double(c), _not(_truth(c, "whole"))])

    for group, cases in _cells({k: c for k, c in drawn.items() if failed(c) is not False}):
        cell = _key("recovery", {**group, "prompt": "cot"})
        expected[cell] = _given(cases, failed, lambda c: _truth(c, "whole:cot"))
    return expected


def _abstained(case: dict[str, Graded]) -> Truth:
    return None if (outcome := case["whole"].outcome) == "invalid" else outcome == "abstained"


def _gated_roles(i: int) -> list[str]:
    parts = [f"part:{p}" for p in range(1 + i % 2)]
    probes = [f"{p}:paraphrase:{j}" for p in parts for j in range(2)] if i % 8 else []
    return [*probes, *parts, "whole", "whole:cot"]


@pytest.mark.parametrize("seed", [0, 1])
def test_every_rate_of_the_double_gate_is_the_count_over_its_own_cases(seed: int) -> None:
    drawn = _drawn(_gated_roles, n=90, seed=seed)
    metrics = metrics_from_rows([r for c in drawn.values() for r in c.values()], "double-gate").metrics
    _agree(metrics, _double_gate(drawn))


def _gap(drawn: Drawn) -> Rates:
    def steps(c: dict[str, Graded]) -> list[Truth]:
        return [_truth(c, r) for r in ("part:0", "part:1")]

    expected: Rates = {}
    for group, cases in _cells(drawn):
        for i in range(2):
            expected[_key(f"step:{i}", group)] = cases, [steps(c)[i] for c in cases]
            extra = [c for c in cases if f"part:{i}:extra-context" in c]
            if extra:
                more = {**group, "prompt": "extra-context"}
                expected[_key(f"step:{i}", more)] = extra, [_truth(c, f"part:{i}:extra-context") for c in extra]
        expected[_key("both", group)] = cases, [_all(steps(c)) for c in cases]
        for role, cell in (("whole", group), ("whole:cot", {**group, "prompt": "cot"}),
                           ("self-ask", {**group, "prompt": "self-ask"})):  # fmt: skip
            asked = [c for c in cases if role in c]
            if not asked:
                continue
            put = [{**c, "whole": c[role]} for c in asked]
            expected[_key("composition", cell)] = put, [_truth(c, "whole") for c in put]
            expected[_key("press_gap", cell)] = _failures(put, lambda c: _all(steps(c)))
            for right in (False, True):

                def so(c: dict[str, Graded], right: bool = right) -> Truth:
                    return None if (whole := _truth(c, "whole")) is None else whole is right

                for quadrant in ("00", "01", "10", "11"):

                    def there(c: dict[str, Graded], quadrant: str = quadrant) -> Truth:
                        return None if None in steps(c) else _named(steps(c)) == quadrant

                    named = {**cell, "quadrant": quadrant, **({"whole": "correct"} if right else {})}
                    expected[_key("quadrant", named)] = _given(put, so, there)
    return expected


def _named(steps: list[Truth]) -> str:
    return "".join(str(int(bool(s))) for s in steps)


def _gap_roles(i: int) -> list[str]:
    others = (["whole:cot"] if i % 3 else []) + (["self-ask"] if i % 4 == 0 else [])
    return ["part:0", "part:1", *(["part:1:extra-context"] if i % 5 else []), "whole", *others]


def test_every_rate_of_the_compositionality_gap_is_the_count_over_its_own_cases() -> None:
    drawn = _drawn(_gap_roles)
    rows = [r for c in drawn.values() for r in c.values()]
    metrics = metrics_from_rows(rows, "compositionality-gap").metrics
    _agree(metrics, _gap(drawn))
    own = {_key(m.metric, m.group): m for m in metrics}
    for group, cases in _cells(drawn):
        both = [_all([_truth(c, "part:0"), _truth(c, "part:1")]) for c in cases]
        whole = [_truth(c, "whole") for c in cases]
        pairs = [(w, b) for w, b in zip(whole, both, strict=True) if w is not None and b is not None]
        gap = own[_key("gap", group)]
        assert (gap.count, gap.n, gap.n_invalid) == (
            sum(w - b for w, b in pairs), len(pairs), len(cases) - len(pairs),
        )  # fmt: skip
        known = [(w, a, b) for c in cases if None not in
                 ((w := _truth(c, "whole")), (a := _truth(c, "part:0")), (b := _truth(c, "part:1")))]  # fmt: skip
        apart = own[_key("independence_gap", group)]
        assert (apart.n, apart.n_invalid) == (len(known), len(cases) - len(known))
        shared = len({c["whole"].cluster or c["whole"].case for c in cases}) < len(cases)
        if gap.low is not None and len(pairs) > 20:
            assert ("bootstrap" not in str(gap.interval)) == shared
        if known:
            w, a, b = (sum(bool(v) for v in column) / len(known) for column in zip(*known, strict=True))
            assert apart.value == pytest.approx(w - a * b)


def _chain_roles(i: int) -> list[str]:
    others = (
        ["pair:q1"] * bool(i % 5) + ["co-presented"] * bool(i % 3) + ["original"] * bool(i % 4) + ["code"] * bool(i % 6)
    )
    return ["part:0", "part:1", "whole", *others]


def test_every_diagnostic_of_the_reasoning_gap_is_the_count_over_the_cases_that_were_asked() -> None:
    drawn = _drawn(_chain_roles)
    for i, case in enumerate(drawn.values()):
        if "code" in case and case["code"].outcome == "invalid":
            case["code"] = replace(case["code"], reason=("code: refused", "code: no value", "truncated")[i % 3])
    metrics = metrics_from_rows([r for c in drawn.values() for r in c.values()], "reasoning-gap").metrics
    rates: Rates = {}
    differences: dict[Any, list[tuple[Truth, Truth]]] = {}
    for group, cases in _cells(drawn):
        inside, beside, original, coded = (
            [c for c in cases if role in c] for role in ("pair:q1", "co-presented", "original", "code")
        )
        against, code = {**group, "against": "step:1"}, {**group, "prompt": "code"}
        first = [c for c in inside if _truth(c, "pair:q1") is not False]
        of: Any
        for name, cell, of, a, b in (
            ("distraction", group, inside, "pair:q1", "part:0"),
            ("second_hop", against, first, "whole", "part:1"),
            ("co_presented", against, beside, "co-presented", "part:1"),
            ("leakage", group, original, "original", "part:1"),
        ):
            if inside if name == "second_hop" else of:
                open_ = [name == "second_hop" and _truth(c, "pair:q1") is None for c in of]
                pairs = [(_truth(c, a), _truth(c, b)) for c in of]
                differences[_key(name, cell)] = [
                    (None, None) if unknown else pair for unknown, pair in zip(open_, pairs, strict=True)
                ]
        if inside:
            rates[_key("second_hop", group)] = _given(
                inside, lambda c: _truth(c, "pair:q1"), lambda c: _truth(c, "whole")
            )
        if beside:
            rates[_key("co_presented", group)] = beside, [_truth(c, "co-presented") for c in beside]
        if coded:
            rates[_key("code_refused", code)] = coded, [c["code"].reason == "code: refused" for c in coded]
            known = [(_truth(c, "code"), _truth(c, "whole")) for c in coded]
            known = [(x, y) for x, y in known if x is not None and y is not None]
            gain = next(m for m in metrics if m.metric == "code_gain" and dict(m.group) == group)
            right, words = sum(bool(x) for x, _ in known), sum(bool(y) for _, y in known)
            assert (gain.n, gain.n_invalid) == (len(known), len(coded) - len(known))
            assert gain.value == (pytest.approx((right - words) / words) if words else None)
    own = {_key(m.metric, m.group): m for m in metrics}
    _agree([m for m in metrics if _key(m.metric, m.group) not in differences], rates)
    for key, values in differences.items():
        pairs = [(a, b) for a, b in values if a is not None and b is not None]
        m = own[key]
        assert (m.count, m.n, m.n_invalid) == (sum(a - b for a, b in pairs), len(pairs), len(values) - len(pairs)), key
        assert m.value == (pytest.approx(sum(a - b for a, b in pairs) / len(pairs)) if pairs else None)


SKILLS = (("add", "look up", "sum"), ("look up", "add", "sum"), ("add", "add", ""))
LEVELS = ("scaffold:1", "scaffold:2")


def _scaffold_roles(i: int) -> list[str]:
    return ["whole", "part:0", "part:1", *(["part:2"] * bool(i % 4)), *LEVELS,
            *(["placeholder:1", "placeholder:2"] * bool(i % 3))]  # fmt: skip


def _ks(case: dict[str, Graded]) -> set[int]:
    """Every k that some judgement of the open answers gives: the first that is right of the whole and the levels."""
    answers = [_truth(case, role) for role in ("whole", *LEVELS)]
    filled = product(*([v] if v is not None else [True, False] for v in answers))
    return {row.index(True) if True in row else -1 for row in filled}


def _over(values: Iterable[Truth | str]) -> tuple[Truth, Truth]:
    """Whether a case is inside, and its value, from what each k that it may have says."""
    found = set(values)
    inside = found - {"out"}
    is_in = None if "out" in found and inside else bool(inside)
    return is_in, next(iter(inside)) if len(inside) == 1 else None  # type: ignore[return-value]


def _revealed(drawn: Drawn) -> Rates:
    def decided(case: dict[str, Graded], test: Callable[[int], bool]) -> Truth:
        verdicts = {test(k) for k in _ks(case)}
        return verdicts.pop() if len(verdicts) == 1 else None

    def again(case: dict[str, Graded], k: int) -> Truth | str:
        return _not(_truth(case, "scaffold:2")) if k == 1 else "out"

    def blanked(case: dict[str, Graded], k: int, level: int | None) -> Truth | str:
        return _truth(case, f"placeholder:{k}") if k > 0 and level in (None, k) else "out"

    everyone, expected = list(drawn.values()), {}
    combined = [({"combination": " + ".join(s)}, [c for c in everyone if c["whole"].skills == s]) for s in SKILLS]
    for group, cases in [*_cells(drawn), *combined]:
        expected[_key("composition", group)] = cases, [_truth(c, "whole") for c in cases]
        shares: dict[str, Callable[[int], bool]] = {
            "any_scaffold": lambda k: k >= 0, "k_zero": lambda k: k == 0, "k_positive": lambda k: k > 0,
            "intractable": lambda k: k < 0,
        }  # fmt: skip
        for name, test in shares.items():
            expected[_key(name, group)] = cases, [decided(c, test) for c in cases]
        expected[_key("non_monotone", group)] = _of_pairs(cases, [_over(again(c, k) for k in _ks(c)) for c in cases])
    for group, cases in [*combined, ({}, everyone)]:
        for level, role in enumerate(LEVELS, 1):
            pairs = [(_not(_truth(c, "whole")), _truth(c, role)) for c in cases]
            expected[_key("scaffold_success", {**group, "level": level})] = _of_pairs(cases, pairs)
    for level in (None, 1, 2):
        pairs = [_over(blanked(c, k, level) for k in _ks(c)) for c in everyone]
        expected[_key("placeholder", {"level": level} if level else {})] = _of_pairs(everyone, pairs)
    for skill in ("add", "look up", "sum", "step 2"):
        tasks = [(c, f"part:{i}") for c in everyone for i, s in enumerate(c["whole"].skills)
                 if f"part:{i}" in c and (s or f"step {i}") == skill]  # fmt: skip
        own = [c for c, _ in tasks]
        expected[_key("skill_accuracy", {"skill": skill})] = own, [_truth(c, role) for c, role in tasks]
        pairs = [(_not(_truth(c, "whole")), _truth(c, role)) for c, role in tasks]
        expected[_key("skill_accuracy", {"skill": skill, "whole": "incorrect"})] = _of_pairs(own, pairs)
    return expected


def _of_pairs(cases: list[dict[str, Graded]], pairs: list[tuple[Truth, Truth]]) -> Any:
    """The cases that may be inside, and their values; open where either is."""
    kept = [(c, pair) for c, pair in zip(cases, pairs, strict=True) if pair[0] is not False]
    return [c for c, _ in kept], [None if inside is None else value for _, (inside, value) in kept]


@pytest.mark.parametrize("seed", [0, 1])
def test_every_rate_of_scaffolding_is_the_count_over_its_own_items(seed: int) -> None:
    drawn = _drawn(_scaffold_roles, n=90, seed=seed)
    for i, case in enumerate(drawn.values()):
        case |= {role: replace(row, skills=SKILLS[i % 7 % 3]) for role, row in case.items()}
    metrics = metrics_from_rows([r for c in drawn.values() for r in c.values()], "scaffolding").metrics
    _agree(metrics, _revealed(drawn))
    own = {_key(m.metric, m.group): m for m in metrics}
    for group, cases in _cells(drawn):
        ks = [k for c in cases if len(possible := _ks(c)) == 1 for k in possible]
        for name, least in (("mean_k", 1), ("mean_k_solvable", 0)):
            chosen, m = [k for k in ks if k >= least], own[_key(name, group)]
            assert (m.count, m.n) == (sum(chosen), len(chosen))
            assert m.n_invalid == sum(len(_ks(c)) > 1 and max(_ks(c)) >= least for c in cases)
            assert m.value == (pytest.approx(sum(chosen) / len(chosen)) if chosen else None)


def test_the_seed_reaches_the_intervals_of_a_table_read_from_rows() -> None:
    rows = [r for c in _drawn(_gap_roles, cluster=None).values() for r in c.values()]
    first, again, other = (
        [(m.low, m.high) for m in metrics_from_rows(rows, "compositionality-gap", seed=seed).metrics]
        for seed in (1, 1, 2)
    )
    assert first == again != other


def test_two_runs_are_compared_over_the_cases_that_both_have() -> None:
    a, b = _drawn(_gated_roles, seed=3), _drawn(_gated_roles, n=50, seed=4)
    left, right = ([r for c in d.values() for r in c.values()] for d in (a, b))
    found = compare(left, right)
    judged = [(_truth(a[k], "whole"), _truth(b[k], "whole")) for k in b]
    judged = [p for p in judged if None not in p]
    test = found.mcnemar
    assert (test.n, test.a_only, test.b_only) == (
        len(judged), judged.count((True, False)), judged.count((False, True)),
    )  # fmt: skip
    assert any("10 cases are in one run only" in w for w in found.warnings)
    same = compare(left, left)
    gates = _double_gate(a)
    for m in same.metrics:
        if m.metric == "delta_comp":
            _, values = gates[_key("residual_failure", m.group)]
            n = len(values) - values.count(None)
            assert (m.value, m.n, m.n_invalid) == (0 if n else None, n, 2 * values.count(None))


def test_three_valued_and_of_nothing_is_true() -> None:
    assert (
        counting.all_of([]) is True
        and counting.all_of([None, False]) is False
        and counting.all_of([True, None]) is None
    )
