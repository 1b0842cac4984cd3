"""One declared family a run; everything else is corrected together, and says so."""

from __future__ import annotations

import math

import pytest
from scipy import stats

from composcope.probes.verdicts import CIRCULAR, EXPLORATORY, MATCHED, PRIMARY, PRIMARY_FAMILY, corrected, rank


def row(quantity: str, p: float, group: str = MATCHED, kind: str = "composition", **more: object) -> dict:
    return {"quantity": quantity, "group": group, "kind": kind, "p": p, "note": "", **more}


def test_primary_tests_are_corrected_by_holm_and_all_others_together_by_benjamini_and_hochberg() -> None:
    rows = [row(name, p) for name, p in zip(list(PRIMARY)[:4], (0.01, 0.04, 0.5, 0.02), strict=True)]
    others = [row("lookback_ratio", 0.001, kind="math"), row("mass_sink", 0.03), row("min_k_pp", 0.2, "a - b")]
    undefined = row("mass_sink", math.nan)
    found = corrected([*rows, *others, undefined, {"quantity": "mean", "group": "failure"}])
    assert [r["p_adjusted"] for r in found[:4]] == pytest.approx([0.04, 0.08, 0.5, 0.06])
    assert [r["p_adjusted"] for r in found[4:7]] == pytest.approx(stats.false_discovery_control([0.001, 0.03, 0.2]))
    assert [r["family"] for r in found[:8]] == [PRIMARY_FAMILY] * 4 + [EXPLORATORY] * 4
    assert math.isnan(found[7]["p_adjusted"]) and "family" not in found[8]
    assert corrected(found)[:7] == found[:7]


def test_the_probability_of_the_answer_against_its_correctness_is_said_to_be_near_circular() -> None:
    found = corrected(
        [row(q, 0.01, g) for q in (*CIRCULAR, "min_k") for g in (MATCHED, "failure - success", "failure")]
    )
    said = [(r["quantity"], r["group"]) for r in found if "near-circular" in r["note"]]
    assert said == [(q, g) for q in CIRCULAR for g in (MATCHED, "failure - success")]
    assert corrected(found)[0]["note"] == found[0]["note"]


def test_contrasts_are_shown_matched_first_by_size_and_those_of_few_cases_last() -> None:
    rows = {
        "tiny": row("q", 0.1, "a - b", effect=-9100.0, n=6, n_first=3, n_second=3),
        "undefined": row("q", math.nan, effect=math.nan, n=30),
        "circular": row("answer_probability", 0.1, effect=5.0, n=30, note=next(iter(CIRCULAR.values()))),
        "loose": row("q", 0.1, "a - b", effect=3.0, n=60, n_first=30, n_second=30),
        "small": row("q", 0.001, effect=-0.2, n=30),
        "large": row("q", 0.9, effect=-0.8, n=30),
    }
    order = sorted(rows, key=lambda name: rank(rows[name]))
    assert order == ["large", "small", "loose", "circular", "tiny", "undefined"]
