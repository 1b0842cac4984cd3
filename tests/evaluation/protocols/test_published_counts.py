"""The integers behind published tables, from rows built to have them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from composcope.evaluation.metrics import find
from composcope.evaluation.protocols import Graded, metrics_from_rows

NUMBERS = json.loads((Path(__file__).parents[2] / "references" / "published_counts.json").read_text(encoding="utf-8"))
Numbers = dict[str, Any]
STAD, AGENTCOMA, BAMBOOGLE = (
    [dict(zip(NUMBERS[name]["columns"], numbers, strict=True)) for numbers in NUMBERS[name]["rows"]]
    for name in ("stad", "agentcoma", "bamboogle")
)


def row(case: str, role: str, right: bool, **more: Any) -> Graded:
    return Graded(case, role, "correct" if right else "incorrect", **more)


def spread(total: int, n: int, most: int) -> list[int]:
    """n whole numbers between 1 and ``most`` that add up to ``total``."""
    values = [1] * n
    left = total - n
    for i in range(n):
        add = min(left, most - 1)
        values[i] += add
        left -= add
    assert left == 0
    return values


def scaffold_rows(entry: Numbers) -> Iterator[Graded]:
    steps = entry["steps"]
    ks = [0] * entry["k0"] + spread(entry["sum_k"], entry["kpos"], steps - 1) + [-1] * entry["intractable"]
    assert len(ks) == entry["n"]
    for i, k in enumerate(ks):
        more = {"skills": tuple(entry["skills"])}
        yield row(f"c{i}", "whole", k == 0, **more)
        if k:
            for j in range(1, steps):
                # levels above k are wrong again on purpose: only the first success counts
                yield row(f"c{i}", f"scaffold:{j}", j == k, **more)


def test_all_rows_of_stad_table_11_come_out_as_printed() -> None:
    assert len(STAD) == 18
    for entry in STAD:
        metrics = metrics_from_rows(scaffold_rows(entry), "scaffolding", compat="stad").metrics
        group = {"combination": " + ".join(entry["skills"])}
        mean = find(metrics, "mean_k", **group)
        assert mean is not None and mean.value == entry["mean_k"], entry
        assert (mean.n, mean.count) == (entry["kpos"], entry["sum_k"])
        printed = {"k_zero": "pct_k0", "k_positive": "pct_kpos", "intractable": "pct_intractable"}
        for name, field in printed.items():
            found = find(metrics, name, **group)
            assert found is not None and found.n == entry["n"]
            assert found.value is not None and round(100 * found.value, 6) == entry[field], (name, entry)


def test_without_the_compat_mode_shares_are_exact_and_a_mean_over_nothing_is_null() -> None:
    for entry in STAD:
        metrics = metrics_from_rows(scaffold_rows(entry), "scaffolding").metrics
        share, mean = find(metrics, "k_zero"), find(metrics, "mean_k")
        assert share is not None and share.value == entry["k0"] / entry["n"]
        assert mean is not None
        kpos = entry["kpos"]
        assert mean.value == (pytest.approx(entry["sum_k"] / kpos) if kpos else None)


def agentcoma_rows(n: int, first: int, second: int, both: int, comp: int) -> Iterator[Graded]:
    cells = [(1, 1)] * both + [(1, 0)] * (first - both) + [(0, 1)] * (second - both)
    cells += [(0, 0)] * (n - len(cells))
    for i, (c, m) in enumerate(cells):
        yield row(f"c{i}", "part:0", bool(c))
        yield row(f"c{i}", "part:1", bool(m))
        yield row(f"c{i}", "whole", i < comp)


def test_all_agentcoma_rows_give_their_counts_and_the_gap_from_counts() -> None:
    assert len(AGENTCOMA) == 37
    for entry in AGENTCOMA:
        n = entry["n"]
        rows = list(agentcoma_rows(n, entry["first"], entry["second"], entry["both"], entry["comp"]))
        metrics = metrics_from_rows(rows, "compositionality-gap").metrics
        names = {"step:0": "first", "step:1": "second", "both": "both", "composition": "comp"}
        for name, field in names.items():
            found = find(metrics, name)
            assert found is not None and (found.count, found.n) == (entry[field], n), (name, entry)
            assert found.value is not None and round(100 * found.value, 1) == entry[f"pct_{field}"]
        gap = find(metrics, "gap")
        assert gap is not None and gap.value is not None and round(100 * gap.value, 2) == entry["gap_pp"]
        assert gap.count == entry["comp"] - entry["both"]


def test_bamboogle_counts_give_the_four_gaps_that_disagree() -> None:
    for entry in BAMBOOGLE:
        fails = {cell: entry[f"fail_{cell}"] for cell in ("00", "01", "10", "11")}
        both, q1, q2, n = entry["both"], entry["q1"], entry["q2"], entry["n"]
        totals = {"11": both, "10": q1 - both, "01": q2 - both, "00": n - q1 - q2 + both}
        rows, i = [], 0
        for cell, total in totals.items():
            for position in range(total):
                case = f"c{i}"
                i += 1
                rows += [row(case, f"part:{j}", cell[j] == "1") for j in (0, 1)]
                rows.append(row(case, "whole", position >= fails[cell]))
        metrics = metrics_from_rows(rows, "compositionality-gap").metrics

        def value(name: str, found: tuple[Any, ...] = metrics, **group: Any) -> Any:
            metric = find(found, name, **group)
            assert metric is not None
            return metric

        assert value("composition").count == entry["comp"]
        assert value("gap").value == pytest.approx(entry["diff_gap"], abs=5e-5)
        assert value("press_gap").value == pytest.approx(entry["press_gap"], abs=5e-5)
        assert (value("press_gap").count, value("press_gap").n) == (entry["both_and_fail"], both)
        assert value("independence_gap").value == pytest.approx(entry["indep_delta"], abs=5e-5)
        for cell, count in fails.items():
            assert value("quadrant", quadrant=cell).count == count
        shortcuts = sum(value("quadrant", quadrant=c, whole="correct").count for c in ("00", "01", "10"))
        assert shortcuts == entry["comp"] - (both - entry["both_and_fail"])
