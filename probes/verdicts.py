"""Verdicts over trainings that a null cannot pass (yes, no or cannot say), and the families of tests of one run.

    row = verdict(Observations(training, level, case, value, {"length": lengths}), quantity="lookback ratio")

A question puts cases on levels: the dose that a model was trained with, or failure (1) against success (0). The unit is
the training, not the case: each training gives one number (Kendall's tau-b or an AUROC). Cases are the same in every
training, so that the interval also allows for which cases were drawn:

    variance = variance over trainings / trainings + delete-a-group jackknife of the mean over groups of cases

(where several things cross that cases share, each case is a group, and the jackknife's values have the error of
``dependence``), which counts their common part twice, so the interval is rather too wide than too narrow. With fewer
than ``TRAININGS`` trainings, or five clusters of cases, a row is descriptive and its verdict is that it cannot say.

* **yes** (or reversed): the 95 % interval excludes no effect, so does an exact sign-flip test of the trainings, the
  effect does not come from the lowest level alone (if that is asked), and at least half of it remains beyond every
  baseline, in trainings of which ``TRAININGS`` have such a number (none where the baseline alone tells levels apart).
* **no**: the 90 % interval lies within bounds that were stated beforehand (two one-sided tests at 5 %).
* **explained by ...**: a baseline (response length, the question's log-likelihood, ...) leaves less than half of it, or
  the same case's baseline one dose lower or higher leaves nothing (a number that lags behind a baseline by a dose).
* **cannot say**: anything else. A result that is not significant is not a "no".

Beyond a baseline: the semi-partial correlation of the score's ranks with what is left of the level after a
cubic in the baseline's ranks. A score that is a monotone function of the baseline has none, whatever its scale.

In one run, ``corrected(rows)`` corrects one declared family by Holm: one summary per probe (``PRIMARY``), matched
failures against successes. All other tests are exploratory and corrected together by Benjamini and Hochberg (1995): of
those below 0.05 about one in twenty may be chance, and without any effect one run in twenty has such a test.
"""

import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats as scipy_stats

from ..errors import InputError, NoCasesError
from ..evaluation import dependence
from ..evaluation.dependence import FEW
from ..evaluation.dependence import FEWEST as FEWEST_CASES
from ..evaluation.statistics import holm
from ..terminal import how_many
from . import jackknife
from .result import Row

stats: Any = scipy_stats  # its result types do not declare pvalue and statistic
Array = NDArray[np.float64]
Measure = Literal["trend", "auroc"]
TRAININGS = 8
"""The smallest number of trainings with a verdict."""
NOTHING: Mapping[str, float] = {"trend": 0.1, "auroc": 0.05}
"""Half-width of what counts as no effect: tau within 0.1 of 0, AUROC within 0.05 of 0.5."""
BEYOND = 0.05
"""Semi-partial correlation that has to be left beyond a baseline."""
EXPLAINED = 0.5
"""Share of the correlation that has to be left beyond a baseline; below it the baseline explains most of it."""
FEWEST, FEWEST_ADJUSTED = 3, 8
"""Scores of a level, and of all levels for a baseline's cubic, below which a training has no number."""


@dataclass(frozen=True)
class Observations:
    """One number per training, level and case, with the baselines of the same response."""

    training: Sequence[Hashable]
    """Trainings that share anything but the cases (data, first weights) are one training and have one label."""
    level: Sequence[float]
    """Order of the dose; for two groups 1 for the one that should score higher, and 0."""
    case: Sequence[Hashable]
    """What cases share, as ``evaluation.dependence`` takes it, where they share anything, else the case."""
    value: ArrayLike
    baselines: Mapping[str, ArrayLike] = field(default_factory=dict)


class Over(NamedTuple):
    """The mean of one number per training."""

    each: Mapping[Hashable, float]
    value: float
    error: float
    freedom: float
    null: float

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        """Student's interval; NaN below two trainings."""
        half = float(stats.t.ppf((1 + level) / 2, self.freedom)) * self.error if len(self.each) > 1 else np.nan
        return self.value - half, self.value + half

    @property
    def p(self) -> float:
        """Exact sign-flip test: the share of the 2^n signs whose mean is as far from the null."""
        x = np.array(list(self.each.values())) - self.null
        signs = np.array(list(product((-1.0, 1.0), repeat=len(x)))) if len(x) <= 12 else _drawn_signs(len(x))
        return float((np.abs(signs @ x) >= abs(x.sum()) * (1 - 1e-12)).mean())

    def sign(self) -> int:
        """1 or -1 where interval and test exclude the null, else 0."""
        low, high = self.interval()
        if (not low > self.null and not high < self.null) or self.p > 0.05:
            return 0
        return 1 if low > self.null else -1


def _drawn_signs(n: int) -> Array:
    return np.vstack([np.ones(n), np.random.default_rng(0).choice([-1.0, 1.0], size=(4096, n))])


@dataclass(frozen=True)
class _Cells:
    """The cases of one training: values and baselines by case, and the jackknife's group of each."""

    level: Array
    group: NDArray[np.intp]
    groups: int
    value: Array
    baselines: Mapping[str, Array] = field(default_factory=dict)
    beside: Mapping[str, Array] = field(default_factory=dict)
    """The baselines of the same case at the dose below and at the dose above."""
    near: Sequence[Hashable] | None = None
    """What each group shares with others, where this crosses."""


def verdict(
    seen: Observations, *, measure: Measure = "trend", expected: str = "increasing", quantity: str = "score",
    without_lowest: bool = False,
) -> Row:  # fmt: skip
    """One row: mean over trainings with interval, number of each training, verdict.

    ``expected`` was declared beforehand; ``without_lowest`` asks that the trend also holds without the lowest level.
    Raises ``InputError`` for unequal lengths, ``NoCasesError`` if no training has a number.
    """
    if measure not in NOTHING or expected not in ("increasing", "decreasing"):
        raise InputError(f"measure={measure!r}, expected={expected!r}; use trend or auroc, increasing or decreasing")
    cells, left_out = _by_training(seen)
    raw = _over(cells, lambda c: _concordance(c, measure), 0.0 if measure == "trend" else 0.5)
    if not raw.each:
        raise NoCasesError(f"{quantity}: no training has {FEWEST} scores at each of its levels")
    # Each case once: facts that only the trainings and levels of one case share would count as its clusters.
    labels = next(iter(cells.values())).near or list(dict.fromkeys(seen.case))
    clusters = min(dependence.count(labels), len(labels))
    few = clusters < FEWEST_CASES
    low, high = (math.nan, math.nan) if few else raw.interval()
    facing = 1 if expected == "increasing" else -1
    row: Row = {
        "quantity": f"{quantity}: over trainings", "group": f"{len(raw.each)} trainings", "n": len(raw.each),
        "value": raw.value, "low": low, "high": high,
        "interval": FEW if few else "t over trainings and cases" if len(raw.each) > 1 else "none",
        "expected": expected, "as_expected": sum(facing * (v - raw.null) > 0 for v in raw.each.values()),
        **{f"seed {t}": v for t, v in raw.each.items()},
        "note": "; ".join(f"seed {t}: {why}" for t, why in left_out.items()) or None,
    }  # fmt: skip
    if len(raw.each) < TRAININGS:
        n = len(raw.each)
        return {**row, "verdict": f"cannot say: {how_many(n, 'training')} ({TRAININGS} are needed)"}
    if few:
        said = how_many(clusters, "cluster of cases", "clusters of cases")
        return {**row, "verdict": f"cannot say: {said} ({FEWEST_CASES} are needed)"}
    return {**row, "p": raw.p, "test": "exact sign flips of trainings",
            **_judged(cells, raw, measure, facing, without_lowest)}  # fmt: skip


def _judged(cells: Mapping[Hashable, _Cells], raw: Over, measure: Measure, facing: int, without_lowest: bool) -> Row:
    low, high = (x - raw.null for x in raw.interval(0.9))
    bound = NOTHING[measure]
    if max(-low, high) < bound:
        return {"verdict": "no", "bounds": f"within {bound:g} of {raw.null:g}"}
    sign = raw.sign()
    if not sign:
        return {"verdict": "cannot say"}
    row: Row = {}
    if without_lowest and len(set(next(iter(cells.values())).level)) > 2:
        above = {t: (c, c.level > c.level.min()) for t, c in cells.items()}
        higher = {t: replace(c, level=c.level[k], group=c.group[k], value=c.value[k]) for t, (c, k) in above.items()}
        kept = _over(higher, lambda c: _concordance(c, measure), raw.null)
        row |= {"without_lowest": kept.value, "without_lowest_low": kept.interval()[0],
                "without_lowest_high": kept.interval()[1]}  # fmt: skip
        if kept.sign() != sign:
            return {**row, "verdict": "cannot say (rests on the lowest dose)"}
    names = list(next(iter(cells.values())).baselines)
    unadjusted = _over(cells, lambda c: _beyond(c, ()))
    missed: dict[str, float] = {}
    for some in [*([name] for name in names), *([names] if len(names) > 1 else [])]:
        left = _over(cells, lambda c, some=some: _beyond(c, some))
        key = some[0] if len(some) == 1 else "all baselines"
        ends = left.interval()
        row |= {f"beyond {key}": left.value, f"beyond {key}_low": ends[0], f"beyond {key}_high": ends[1]}
        share = left.value / unadjusted.value if unadjusted.value else 0.0
        # A training in which the baseline alone tells the levels apart has no number, and does not count for a yes.
        shown = (ends[0] > BEYOND if sign > 0 else ends[1] < -BEYOND) and len(left.each) >= TRAININGS
        if not shown or (len(some) == 1 and share < EXPLAINED):
            missed[key] = share
    single = [name for name in missed if name != "all baselines"] or list(missed)
    if not missed and measure == "trend":
        row |= _beyond_doses_beside(cells, sign)
    if not missed:
        return {"verdict": "yes" if sign == facing else "yes, reversed", **row}
    explain = [name for name in single if not missed[name] >= EXPLAINED]  # NaN: it alone tells the levels apart
    if explain:
        return {**row, "verdict": f"explained by {'/'.join(explain)}"}
    return {**row, "verdict": f"cannot say (not shown beyond {'/'.join(single)})"}


def _beyond_doses_beside(cells: Mapping[Hashable, _Cells], sign: int) -> Row:
    """The baselines of other doses beyond which nothing is shown, and the verdict that follows; nothing if none."""
    row: Row = {}
    missed: dict[str, float] = {}
    for name in next(iter(cells.values())).beside:
        left = _over(cells, lambda c, name=name: _beyond(replace(c, baselines=c.beside), (name,)))
        ends = left.interval()
        if not (ends[0] > BEYOND if sign > 0 else ends[1] < -BEYOND) or len(left.each) < TRAININGS:
            row |= {f"beyond {name}": left.value, f"beyond {name}_low": ends[0], f"beyond {name}_high": ends[1]}
            missed[name] = left.value
    # A shape over few doses explains much of any trend, so to leave half is too much to ask here.
    explain = [name for name, value in missed.items() if abs(value) <= BEYOND]
    if explain:
        return {**row, "verdict": f"explained by {'/'.join(explain)}"}
    return {**row, "verdict": f"cannot say (not shown beyond {'/'.join(missed)})"} if missed else {}


def _by_training(seen: Observations) -> tuple[dict[Hashable, _Cells], dict[Hashable, str]]:
    """The finite observations of each training that has every level; why the others are left out."""
    value = np.asarray(seen.value, dtype=np.float64)
    level = np.asarray(seen.level, dtype=np.float64)
    known = {k: np.asarray(v, dtype=np.float64) for k, v in seen.baselines.items()}
    sizes = {len(seen.training), len(seen.case), level.size, value.size, *(v.size for v in known.values())}
    if len(sizes) > 1:
        raise InputError(f"observations of lengths {sorted(sizes)}; give one training, level and case per value")
    keys = jackknife.keys_of(seen.training, seen.case, level)
    beside = jackknife.beside(keys, known)
    group, groups, near = jackknife.groups_of(keys)
    of = {t: i for i, t in enumerate(dict.fromkeys(seen.training))}
    training = np.array([of[t] for t in seen.training])
    levels = np.unique(level)
    cells, left_out = {}, {}
    for t, i in of.items():
        mine = np.flatnonzero((training == i) & np.isfinite(value))
        counts = [int((level[mine] == x).sum()) for x in levels]
        if min(counts) < FEWEST or len(levels) < 2:
            left_out[t] = f"{counts} scores at its levels"
            continue
        own, others = ({k: v[mine] for k, v in of.items()} for of in (known, beside))
        cells[t] = _Cells(level[mine], group[mine], groups, value[mine], own, others, near)
    return cells, left_out


def _over(cells: Mapping[Hashable, _Cells], of: Callable[[_Cells], Array], null: float = 0.0) -> Over:
    """The mean over trainings of a number, ``of``, which gives it for all cases and without each group."""
    found = {t: of(c) for t, c in cells.items()}
    found = {t: x for t, x in found.items() if np.isfinite(x[0])}
    if not found:
        return Over({}, float("nan"), float("nan"), 1.0, null)
    table = np.array(list(found.values()))
    n, mean = len(table), float(table[:, 0].mean())
    within, of_cases = jackknife.variance(mean, table[:, 1:].mean(0), next(iter(cells.values())).near)
    across = float(table[:, 0].var(ddof=1)) / n if n > 1 else float("nan")
    below = across**2 / max(n - 1, 1) + within**2 / of_cases
    freedom = (across + within) ** 2 / below if below > 0 else float(max(n - 1, 1))
    return Over({t: float(x[0]) for t, x in found.items()}, mean, float(np.sqrt(across + within)), freedom, null)


def _concordance(c: _Cells, measure: Measure) -> Array:
    """Tau-b or AUROC of all cases, then without each group."""
    signs = np.sign(c.value[:, None] - c.value), np.sign(c.level[:, None] - c.level)
    member = (c.group == np.arange(c.groups)[:, None]).astype(float)

    def sums(pairs: Array) -> Array:
        by = member @ pairs @ member.T
        return np.r_[by.sum(), by.sum() - 2 * by.sum(0) + np.diag(by)]  # pairs are symmetric

    agree, apart = sums(signs[0] * signs[1]), sums(np.abs(signs[1]))
    with np.errstate(invalid="ignore", divide="ignore"):
        if measure == "auroc":
            return (1 + agree / apart) / 2
        differ = sums(np.abs(signs[0]))
        return np.where(differ > 0, agree / np.sqrt(differ * apart), np.where(apart > 0, 0.0, np.nan))


def _beyond(c: _Cells, names: Sequence[str]) -> Array:
    """Semi-partial rank correlation of score and level beyond baselines, of all cases and without each group.

    Ranks are those of all cases; sums of squares and products add up over groups.
    """
    keep = np.isfinite([c.baselines[n] for n in names]).all(0) if names else np.ones(c.level.size, dtype=bool)
    groups = c.groups
    if keep.sum() < FEWEST_ADJUSTED:
        return np.full(groups + 1, np.nan)
    columns = [np.ones((int(keep.sum()), 1)), *(_cubic(c.baselines[n][keep]) for n in names)]
    k = sum(x.shape[1] for x in columns)
    a = np.column_stack([*columns, c.level[keep], _ranks(c.value[keep])])
    each = np.stack([a[c.group[keep] == g].T @ a[c.group[keep] == g] for g in range(groups)])
    sums = np.concatenate([each.sum(0)[None], each.sum(0) - each])
    cross = sums[:, :k, k:]
    left = sums[:, k:, k:] - np.swapaxes(cross, 1, 2) @ np.linalg.pinv(sums[:, :k, :k], hermitian=True) @ cross
    whole = sums[:, k:, k:] - np.swapaxes(sums[:, :1, k:], 1, 2) @ sums[:, :1, k:] / sums[:, :1, :1]
    with np.errstate(invalid="ignore", divide="ignore"):
        found = left[:, 0, 1] / np.sqrt(left[:, 0, 0] * whole[:, 1, 1])
    # Where the baseline alone tells the levels apart nothing is left to compare; a constant score follows nothing.
    found = np.where(left[:, 0, 0] <= 0.01 * whole[:, 0, 0], np.nan, found)
    return np.where(whole[:, 1, 1] <= 1e-12, 0.0, found)


def _ranks(x: Array) -> Array:
    """Mid-ranks from -1 to 1."""
    return (2 * stats.rankdata(x) - x.size - 1) / x.size


def _cubic(z: Array) -> Array:
    r = _ranks(z)
    return np.stack([r, r**2, r**3], 1)


MATCHED = "matched failure - success"
UNMATCHED = "failure - success"
PRIMARY = {
    "lookback_ratio": "how much heads look back at the prompt",
    "min_k_pp": "how familiar the question is",
    "step_cosine": "how far states move from token to token",
    "suppress_log_ratio_excess": "what the chosen neurons do beyond random ones",
    "answer_follows": "how often the answer follows an altered step of its working",
}
"""Quantities of the primary family: each of wholes, matched failure - success."""
CIRCULAR = {
    "answer_probability": "near-circular: the probability of the right answer is set against whether it was given"
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
    effect = math.nan if row.get("effect") is None else round(float(row["effect"]), 4)  # rounding orders nothing
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
