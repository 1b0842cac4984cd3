"""Families of tests that are corrected together: one declared family in a run, and all other tests.

    table = corrected(rows)

The primary family has one summary per probe (``PRIMARY``): matched failures against successes, with Holm's correction
over a run. All other tests are exploratory and corrected together by Benjamini and Hochberg (1995): of those below 0.05
about one in twenty may be chance, and without any effect one run in twenty has such a test.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from scipy import stats

from ..csv_files import Row
from ..evaluation.statistics import holm

MATCHED = "matched failure - success"
PRIMARY = {
    "lookback_ratio": "how much heads look back at the prompt",
    "min_k_pp": "how familiar the question is",
    "step_cosine": "how far states move from token to token",
    "suppress_log_ratio_excess": "what the chosen neurons do beyond random ones",
    "answer_follows": "how often the answer follows an altered step of its working",
}
"""Quantities of the primary family: each of wholes, matched failure - success."""
CIRCULAR = {
    "answer_probability": "near-circular: the probability of the right answer is set against whether it was given",
}
"""Quantities that differ between failures and successes almost by definition."""
PRIMARY_FAMILY, EXPLORATORY = "primary, Holm", "exploratory, Benjamini-Hochberg"


FEWEST_PAIRS = 2
"""Matched pairs of a failure and a success without which there is no contrast."""
FEWEST_SHOWN = 5
"""A contrast with fewer cases a side (or pairs) than this is sorted after all others."""


def rank(row: Mapping[str, Any]) -> tuple[bool, bool, bool, bool, float]:
    """Sorts contrasts: matched failures against successes first, by size; few cases and near-circular ones last."""
    sides = [row[k] for k in ("n_first", "n_second") if row.get(k) is not None] or [row.get("n") or 0]
    effect = math.nan if row.get("effect") is None else float(row["effect"])
    known = math.isfinite(effect)
    circular = "near-circular" in str(row.get("note") or "")
    return not known, min(sides) < FEWEST_SHOWN, circular, row.get("group") != MATCHED, -abs(effect) if known else 0.0


def is_primary(row: Mapping[str, object]) -> bool:
    """Whether a row is a test of the declared family."""
    return row.get("quantity") in PRIMARY and row.get("kind") == "composition" and row.get("group") == MATCHED


def corrected(rows: Sequence[Row]) -> list[Row]:
    """Rows with ``p_adjusted`` and ``family`` wherever there is a p; near-circular ones say so in their note."""
    tested = [i for i, r in enumerate(rows) if r.get("p") is not None and not math.isnan(float(r["p"]))]
    first = [i for i in tested if is_primary(rows[i])]
    others = [i for i in tested if not is_primary(rows[i])]
    adjusted = dict(zip(first, holm([float(rows[i]["p"]) for i in first]), strict=True))
    if others:
        found = stats.false_discovery_control([min(float(rows[i]["p"]), 1.0) for i in others])
        adjusted |= dict(zip(others, map(float, found), strict=True))
    return [_with(r, adjusted.get(i, math.nan)) if "p" in r else r for i, r in enumerate(rows)]


def _with(row: Row, p: float | None) -> Row:
    family = PRIMARY_FAMILY if is_primary(row) else EXPLORATORY
    note, said = str(row.get("note") or ""), CIRCULAR.get(str(row.get("quantity")))
    across = "failure" in str(row.get("group")) and "success" in str(row.get("group"))
    if said and across and said not in note:
        note = "; ".join(filter(None, [note, said]))
    return {**row, "p_adjusted": p, "family": family, **({"note": note} if note or "note" in row else {})}
