"""Tables of probes under changes that say what has to become of every number: other order, units, sides, copies."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from scipy import stats

from composcope.probes import contrast, effects, matching, tables, trajectory, verdicts
from composcope.probes.examples import Example
from composcope.probes.maps import map_test

KINDS = ("composition", "math", "commonsense")
OTHER = {"failure": "success", "success": "failure"}
Values = list[tuple[Example, float]]
Row = Mapping[str, Any]


def _values(clustered: bool, n: int = 24, seed: int = 0) -> Values:
    """Failures and successes of two families, three depths and operations, each with a whole and two parts."""
    rng = np.random.default_rng(seed)
    found: Values = []
    for i in range(n):
        of: dict[str, Any] = {"family": "fg"[i % 2], "depth": (2, 4, 6)[i % 5 % 3], "operation": "op"[i % 3 == 0]}
        prompt = tuple(range(10 + (7 * i) % 9 + (i % 3)))
        for kind, role in zip(KINDS, ("whole", "part:0", "part:1"), strict=True):
            e = Example(f"c{i}", role, kind, ("failure", "success")[i % 7 < 3], prompt, (3,), (4,), 0, (0, 1),
                        cluster=f"k{i // 2}" if clustered else None, **of)  # fmt: skip
            found.append((e, float(rng.normal((i % 7 < 3) * 0.6, 1))))
    return found


def _keyed(rows: Sequence[Row]) -> dict[tuple[Any, ...], Row]:
    found = {(r["quantity"], r.get("kind"), r.get("group"), r.get("layer")): r for r in rows}
    assert len(found) == len(rows), "no two rows of the same name"
    return found


def _same(a: Any, b: Any, sign: float = 1.0) -> None:
    if isinstance(a, float) and isinstance(b, float):
        assert (math.isnan(a) and math.isnan(b)) or a == pytest.approx(sign * b, rel=1e-7, abs=1e-12)
    else:
        assert a == b


@pytest.mark.parametrize("clustered", [False, True])
def test_the_order_of_the_examples_changes_no_row(clustered: bool) -> None:
    values = _values(clustered)
    mixed = [values[i] for i in np.random.default_rng(1).permutation(len(values))]
    first, second = (_keyed(tables.group_rows("q", v)) for v in (values, mixed))
    for key, row in first.items():
        group = key[1] and " - " in key[1] and key not in second
        other = second[key if not group else (key[0], " - ".join(reversed(key[1].split(" - "))), *key[2:])]
        for name in ("n", "p", "p_adjusted", "smallest_detectable"):
            _same(row.get(name), other.get(name))
        _same(abs(row["value"]), abs(other["value"]))


@pytest.mark.parametrize("clustered", [False, True])
def test_the_other_unit_scales_means_and_leaves_effects_and_p(clustered: bool) -> None:
    values = _values(clustered)
    found, scaled = (_keyed(tables.group_rows("q", [(e, m * v + c) for e, v in values])) for m, c in ((1, 0), (4, 3)))
    assert {*found} == {*scaled}
    for key, row in found.items():
        other = scaled[key]
        apart = " - " in str(row["group"]) or " - " in str(row["kind"])
        for name in ("value", "low", "high"):
            _same(other[name], 4 * row[name] + (0 if apart else 3))
        for name in ("effect", "effect_low", "effect_high", "p", "p_adjusted", "cliffs_delta", "n", "interval", "test"):
            _same(row.get(name), other.get(name))


@pytest.mark.parametrize("clustered", [False, True])
def test_swapped_labels_turn_the_sign_of_every_contrast(clustered: bool) -> None:
    values = _values(clustered)
    swapped = [(replace(e, group=OTHER[e.group]), v) for e, v in values]
    found, other = (_keyed(tables.group_rows("q", v)) for v in (values, swapped))
    contrasts = 0
    for (quantity, kind, group, layer), row in found.items():
        if group != "failure - success":
            there = other[quantity, kind, OTHER[str(group)], layer]
            for name in ("value", "low", "high", "n", "sd"):
                _same(row.get(name), there.get(name))
            continue
        contrasts += 1
        there = other[quantity, kind, group, layer]
        assert (row["n_first"], row["n_second"]) == (there["n_second"], there["n_first"])
        for name, sign in (("value", -1), ("effect", -1), ("cliffs_delta", -1), ("p", 1), ("p_adjusted", 1)):
            _same(row[name], there[name], sign)
        for low, high in (("low", "high"), ("effect_low", "effect_high")):
            _same(row[low], -there[high])
            _same(row[high], -there[low])
    assert contrasts == len(KINDS)


def _by_rank(ps: Sequence[float]) -> list[float]:
    """Benjamini and Hochberg by the definition: the least of p m / rank over this p and all larger ones."""
    ranked = sorted(ps)
    return [min(min(1.0, q * len(ps) / (i + 1)) for i, q in enumerate(ranked) if q >= p) for p in ps]


@pytest.mark.parametrize("clustered", [False, True])
def test_every_row_counts_its_cases_and_the_family_is_corrected_together(clustered: bool) -> None:
    values = _values(clustered)
    rows = tables.group_rows("q", values)
    cells = {(k, g): [v for e, v in values if (e.kind, e.group) == (k, g)] for k in KINDS for g in OTHER}
    for row in rows:
        kinds, groups = str(row["kind"]).split(" - "), str(row["group"]).split(" - ")
        sides = [cells[k, g] for k in kinds for g in groups]
        within = len(kinds) == 2
        assert row["n"] == (len(sides[0]) if within else sum(map(len, sides)))
        means = [float(np.mean(s)) for s in sides]
        assert row["value"] == pytest.approx(means[0] - means[1] if len(means) > 1 else means[0])
        if len(sides) == 1:
            assert row["sd"] == pytest.approx(np.std(sides[0], ddof=1))
        elif not clustered:
            test: Any = (
                stats.ttest_rel(sides[0], sides[1]) if within else stats.ttest_ind(sides[0], sides[1], equal_var=False)
            )
            assert row["p"] == pytest.approx(test.pvalue)
    tested = [r for r in rows if r.get("p") is not None]
    assert [r["p_adjusted"] for r in tested] == pytest.approx(_by_rank([float(r["p"]) for r in tested]))
    assert len(rows) == len(KINDS) * 3 + 2 * 3 and len({r["family"] for r in tested}) == 1


def test_matched_pairs_are_of_a_family_within_the_caliper_and_no_case_is_in_two() -> None:
    examples = [e for e, _ in _values(False, n=40)]
    found, _ = tables.matched_pairs(examples)
    assert found is not None and found.pairs
    wholes = {e.case: e for e in examples if e.role == "whole"}
    assert len({c for pair in found.pairs for c in pair}) == 2 * len(found.pairs)
    for (failure, success), distance in zip(found.pairs, found.distances, strict=True):
        a, b = wholes[failure], wholes[success]
        assert (a.group, b.group, a.family) == ("failure", "success", b.family)
        ends = abs(math.log(len(a.prompt_ids) / len(b.prompt_ids))) / math.log(1.25)
        steps = abs((a.depth or 0) - (b.depth or 0)) + (a.operation != b.operation) + ends
        token = 0.5 * (a.prompt_ids[-1:] != b.prompt_ids[-1:])
        assert distance == pytest.approx(steps + token) and distance <= matching.CALIPER
    strata = {s.key: s for s in found.strata}
    for key, s in strata.items():
        mine = [e for e in wholes.values() if (e.family,) == key]
        assert (s.failures, s.successes) == tuple(sum(e.group == g for e in mine) for g in OTHER)
        assert s.pairs == sum(wholes[f].family == key[0] for f, _ in found.pairs) <= min(s.failures, s.successes)


@pytest.mark.parametrize("clustered", [False, True])
def test_rows_of_matched_pairs_turn_with_the_sides_and_ask_for_the_smaller_size(clustered: bool) -> None:
    values = _values(clustered, n=40, seed=2)
    examples, number = [e for e, _ in values], {(e.case, e.role): v for e, v in values}
    found, _ = tables.matched_pairs(examples)
    assert found is not None
    sizes = {e.case: 3 + (5 * i) % 4 for i, e in enumerate(examples)}

    def value(i: int, n: int | None) -> float:
        return number[examples[i].case, examples[i].role] * (n or 0)

    rows = _keyed(tables.matched_rows("q", examples, found, value, lambda i: sizes[examples[i].case]))
    turned = [replace(e, group=OTHER[e.group]) for e in examples]
    back = replace(found, pairs=tuple((b, a) for a, b in found.pairs), differences={
        name: {b: -of[a] for a, b in found.pairs} for name, of in found.differences.items()
    })  # fmt: skip
    other = _keyed(tables.matched_rows("q", turned, back, value, lambda i: sizes[examples[i].case]))
    for (quantity, kind, group, layer), row in rows.items():
        role = {"composition": "whole", "math": "part:0", "commonsense": "part:1"}[str(kind)]
        d = [min(sizes[f], sizes[s]) * (number[f, role] - number[s, role]) for f, s in found.pairs]
        assert row["n"] == len(found.pairs) and group == tables.MATCHED
        assert row.get("unadjusted", row["value"]) == pytest.approx(np.mean(d))
        there = other[quantity, kind, group, layer]
        for name, sign in (("value", -1), ("effect", -1), ("p", 1), ("p_adjusted", 1)):
            _same(row[name], there[name], sign)
        _same(row["low"], -there["high"])
        if "unadjusted" in row and not clustered:
            design = np.column_stack([np.ones(len(d)), *(
                [of[f] for f, _ in found.pairs] for name, of in found.differences.items() if name in row["note"]
            )])  # fmt: skip
            assert row["value"] == pytest.approx(np.linalg.lstsq(design, np.array(d), rcond=None)[0][0])


ESTIMATES: dict[str, tuple[Callable[..., Any], int]] = {
    "difference": (effects.difference_interval, 2), "g": (effects.hedges_g, 2),
    "mean": (effects.mean_interval, 1), "paired g": (effects.hedges_g_paired, 1),
}  # fmt: skip


@pytest.mark.parametrize("name", ESTIMATES)
@pytest.mark.parametrize("shared", [False, True])
def test_estimates_turn_with_the_sign_of_the_values_and_lie_within_their_intervals(name: str, shared: bool) -> None:
    function, sides = ESTIMATES[name]
    rng = np.random.default_rng(3)
    values = [rng.normal(i, 1 + i, 18 + 4 * i) for i in range(sides)]
    labels = [[f"{j}-{i // 3}" for i in range(len(v))] for j, v in enumerate(values)]
    near: Any = {"clusters": tuple(labels) if sides == 2 else labels[0]} if shared else {}
    found, turned = function(*values, **near), function(*(-v for v in values), **near)
    assert (turned.value, turned.low, turned.high) == pytest.approx((-found.value, -found.high, -found.low))
    assert found.low < found.value < found.high and found.interval == turned.interval
    if sides == 2:
        back = function(*values[::-1], **({"clusters": tuple(labels[::-1])} if shared else {}))
        assert (back.value, back.low, back.high) == pytest.approx((-found.value, -found.high, -found.low))
    narrow = function(*values, **near, level=0.8)
    assert found.low < narrow.low < narrow.high < found.high
    alone: Any = {"clusters": tuple([list(range(100 * j, 100 * j + len(v))) for j, v in enumerate(values)])} if (
        sides == 2
    ) else {"clusters": list(range(len(values[0])))}  # fmt: skip
    assert function(*values, **alone) == function(*values), "clusters of one case each are none"


@pytest.mark.parametrize("test", ["auto", "welch", "mann-whitney", "permutation"])
def test_groups_in_the_other_order_have_the_same_p(test: Any) -> None:
    rng = np.random.default_rng(4)
    groups = {"a": rng.normal(0, 1, 12), "b": rng.normal(1, 2, 9), "c": rng.normal(0.4, 1, 10)}
    there = {r["group"]: r for r in contrast.between(groups, test=test).table}
    back = {r["group"]: r for r in contrast.between(dict(reversed(groups.items())), test=test).table}
    for one, two in (("a", "b"), ("a", "c"), ("b", "c")):
        x, y = there[f"{one} - {two}"], back[f"{two} - {one}"]
        assert x["value"] == pytest.approx(-y["value"]) and x["test"] == y["test"]
        assert x["p"] == pytest.approx(y["p"], abs=0.03 if test == "permutation" else 1e-9)
        assert (x["n_first"], x["n_second"]) == (len(groups[one]), len(groups[two]))


def test_maps_turn_with_their_sides_and_each_p_is_a_share_of_the_labelings() -> None:
    rng = np.random.default_rng(5)
    a, b = rng.normal(0, 1, (7, 2, 3)), rng.normal(0.3, 1, (8, 2, 3))
    a[:, 1, 2] += 4
    there, back = (map_test(*sides, permutations=199) for sides in ((a, b), (b, a)))
    np.testing.assert_allclose(there.statistic, -back.statistic)
    for i in np.ndindex(2, 3):
        own: Any = stats.ttest_ind(a[:, *i], b[:, *i], equal_var=False)
        assert there.statistic[i] == pytest.approx(own.statistic)
    assert there.p[1, 2] == there.p.min() and there.p.min() >= 1 / 200
    np.testing.assert_allclose(there.p * 200, np.round(there.p * 200), atol=1e-6)


def test_cosines_follow_the_vectors_whatever_their_lengths_and_order() -> None:
    rng = np.random.default_rng(6)
    states = torch.from_numpy(rng.normal(size=(5, 3, 8))).double()
    lengths = torch.from_numpy(rng.uniform(0.5, 4, size=(5, 1, 1)))
    plain, scaled = (trajectory.cosine_matrix(x) for x in (states, states * lengths))
    torch.testing.assert_close(plain, scaled)
    order = [3, 1, 4, 0, 2]
    torch.testing.assert_close(trajectory.cosine_matrix(states[order]), plain[..., order, :][..., order])
    size = states.norm(dim=-1)
    by_hand = torch.einsum("alh,blh->lab", states, states) / torch.einsum("al,bl->lab", size, size)
    torch.testing.assert_close(plain.double(), by_hand, rtol=1e-5, atol=1e-6)


def test_declared_numbers_are_corrected_together_and_all_others_among_themselves() -> None:
    ps = [0.03, 0.001, float("nan"), 0.2]
    declared = {"quantity": "min_k_pp", "kind": "composition", "group": tables.MATCHED}
    for name, other in (("quantity", "q"), ("kind", "math"), ("group", "failure - success")):
        rows = [{**about, "p": p} for about in (declared, declared | {name: other}) for p in ps]
        found = verdicts.corrected(rows)
        adjusted = [r["p_adjusted"] for r in found]
        assert adjusted[:4] == pytest.approx([0.06, 0.003, float("nan"), 0.2], nan_ok=True), "Holm"
        assert adjusted[4:] == pytest.approx([0.045, 0.003, float("nan"), 0.2], nan_ok=True), "Benjamini and Hochberg"
        assert len({r["family"] for r in found[:4]}) == len({r["family"] for r in found[4:]}) == 1
        assert found[0]["family"] != found[4]["family"]
