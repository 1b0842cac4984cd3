"""Metric: one counted quantity with its rate and interval, and the JSON shape of ``metrics.json``.

Counts come first: ``count`` of ``n`` with ``n_invalid`` more that could not be judged; ``value`` is null where the
quantity is undefined, never 0. ``low``/``high`` are a confidence interval, ``bound_low``/``bound_high`` are the values
that the metric would take if everything invalid had turned out one way or the other.
"""

import json
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from ..files import finite
from . import dependence, statistics

SCHEMA = 1
_ROUNDING = 1e-9
HOLLOW_BELOW = 5
MARKED_BELOW = 15
MEANINGS = {
    "step:0": "the first part right when asked alone",
    "step:1": "the second part right when asked alone",
    "both": "all parts right, each asked alone",
    "composition": "the whole right",
    "gap": "composition − both, over the cases in which both are decided; below 0: the model fails to compose",
    "press_gap": "the whole wrong, among the cases with all parts right",
    "independence_gap": "composition − product of the steps' accuracies",
    "double_gate": "cases with every atom right in every paraphrase and every sub-question right",
    "residual_failure": "the whole wrong, among the cases that pass both gates",
    "atom_stability": "atoms right in every paraphrase",
    "d50": "the depth at which half of the gated wholes are wrong, between the depths asked",
    "conflation": "failure after the sub-question gate alone − residual_failure",
    "any_scaffold": "the whole right as asked or with some number of steps revealed",
    "k_positive": "the whole wrong as asked, and right with some number of steps revealed",
    "intractable": "the whole wrong with any number of steps revealed",
    "mean_k": "steps that had to be revealed, in cases that needed any",
}
"""Meanings of the names of metrics; reports and studies list those that they use."""


@dataclass(frozen=True)
class Metric:
    """One row of ``metrics.json``."""

    metric: str
    """Name of the quantity: ``composition``, ``gap``, ``residual_failure``, ..."""
    group: Mapping[str, Any] = field(default_factory=dict)
    """What it was counted over: ``depth``, ``depth_bin``, ``family``, ``domain``, ``operation``, ``skill``, ..."""
    n: int = 0
    """Cases (or probes, facts, ...) that the value is over; the invalid ones are not among them."""
    n_invalid: int = 0
    """Cases left out because an answer that decides about them is invalid."""
    count: float | None = None
    """Numerator; for differences and means, what is summed (may be negative), or null where nothing is counted."""
    value: float | None = None
    """Rates in [0, 1], differences in [-1, 1]; null where undefined."""
    interval: str | None = None
    """How ``low`` and ``high`` were computed: ``clopper-pearson``, ``paired-bootstrap``, ..."""
    low: float | None = None
    high: float | None = None
    bound_low: float | None = None
    """Worst or best case: the smallest value that any judgement of the invalid answers could give."""
    bound_high: float | None = None
    note: str | None = None
    cluster_n: int | None = None
    """Number of clusters, or of facts where these cross; the four cluster fields are there only where cases share
    facts, items or templates."""
    cluster_interval: str | None = None
    cluster_low: float | None = None
    """The interval to quote where cases are not independent; null below five clusters."""
    cluster_high: float | None = None
    grader_low: float | None = None
    """Bounds that hold for as many more answers as the rules may have graded wrong (``evaluation.grading_error``)."""
    grader_high: float | None = None

    def to_dict(self) -> dict[str, Any]:
        """The JSON object of the row; NaN and infinity become null."""
        row = finite(asdict(self))
        left_out = ("cluster_",) if self.cluster_n is None else ()
        left_out += ("grader_",) if self.grader_low is None else ()
        return {k: v for k, v in row.items() if not k.startswith(left_out)}


def to_document(protocol: str, metrics: Iterable[Metric], warnings: Sequence[str] = ()) -> dict[str, Any]:
    """What ``metrics.json`` holds and ``composcope score --json`` prints."""
    rows = [m.to_dict() for m in metrics]
    return {"schema": SCHEMA, "protocol": protocol, "metrics": rows, "warnings": list(warnings)}


def dumps(protocol: str, metrics: Iterable[Metric], warnings: Sequence[str] = ()) -> str:
    """``to_document`` as JSON text, strict (no NaN) and with a final newline."""
    return json.dumps(to_document(protocol, metrics, warnings), indent=1, ensure_ascii=False, allow_nan=False) + "\n"


DIFFERENCES = frozenset(
    "gap independence_gap distraction leakage conflation delta_atom delta_comp pair_gain pair_gap".split()
)
"""Metrics that are differences of shares: shown in points."""
NUMBERS = frozenset("d50 mean_k mean_k_solvable delta_depth".split())
"""Metrics that are no shares: shown as they are."""


def beyond(metric: Metric, end: str) -> str:
    """``<2`` or ``>8`` where the note says that this end of the interval lies beyond what was asked; else empty.

    >>> [beyond(Metric("d50", note="low <2; high >8"), end) for end in ("low", "high", "mid")]
    ['<2', '>8', '']
    """
    said = (metric.note or "").replace(";", " ").split()
    found = said[said.index(end) + 1] if end in said[:-1] else ""
    return found if len(found) > 1 and found[0] in "<>" else ""


def censored(metric: Metric) -> str:
    """``<2`` or ``>8`` where the value itself lies beyond what was asked, as the note says first; else empty.

    >>> censored(Metric("d50", note=">8; low <2")), censored(Metric("d50", note="undefined: no rate; low <2"))
    ('>8', '')
    """
    said = (metric.note or "").split("; ")[0]
    return said if metric.value is None and len(said) > 1 and said[0] in "<>" else ""


def percent(share: float, digits: int = 1) -> str:
    """A share as text, with its unit."""
    return f"{100 * share:.{digits}f} %"


def points(difference: float, digits: int = 1) -> str:
    """A difference of shares as text, with its unit."""
    return f"{100 * difference:.{digits}f} points"


def span(low: float | None, high: float | None, shown: Callable[[float], str]) -> str:
    """An interval as every command prints it, after a value: each end with its unit. Empty without an interval.

    >>> span(0.5, 0.75, percent)
    ' [50.0 %, 75.0 %]'
    """
    return "" if low is None or high is None else f" [{shown(low)}, {shown(high)}]"


_METHODS = {
    "clopper-pearson": "exact interval of a share, over cases that have nothing in common",
    "clopper-pearson over clusters": "exact interval of a share, over groups of cases that share something; for "
    "cases that all agree",
    "clopper-pearson band": "the depths at which the interval of the share contains one half",
    "korn-graubard band": "the depths at which the interval of the share contains one half; for cases that share facts "
    "or items",
    statistics.OTHER_PAIRS: "all cases show the same difference; the interval bounds the share of cases that "
    "could differ",
    statistics.OTHER_CASES: "no case changes the value; the interval bounds the share of cases that could",
    "korn-graubard": "interval of a share, over as many independent cases as would have the same error, because cases "
    "share facts or items",
    "korn-graubard, crossed": "interval of a share, over as many independent cases as would have the same error; "
    "for cases that share several things, each with other cases",
    "bootstrap": "interval of a mean or another number, by bootstrap over cases",
    "paired-bootstrap": "interval of a difference, by bootstrap over cases; of two rates also by score, the wider",
    dependence.CLUSTERED: "interval of a mean or difference over groups of cases that share something",
    f"{dependence.CLUSTERED} (log)": "interval of a ratio over groups of cases that share something",
    f"{dependence.CROSSED} (log)": "interval of a ratio where each case shares several things, each with other cases",
    dependence.CROSSED: "interval of a mean or difference where each case shares several things, each with other cases",
}


def method_in_words(name: str) -> str:
    """What the name of an interval's method means; the name itself if it has no description.

    >>> method_in_words("korn-graubard")[:19]
    'interval of a share'
    """
    return _METHODS.get(name, name)


def mark(n: int, note: str | None = None) -> str | None:
    """The note of a cell with few cases: below 5 the cell is drawn hollow and without a line, below 15 it is marked."""
    few = f"n < {HOLLOW_BELOW}" if n < HOLLOW_BELOW else f"n < {MARKED_BELOW}" if n < MARKED_BELOW else None
    return "; ".join(part for part in (few, note) if part) or None


def quoted(metric: Metric) -> Metric:
    """The metric with the interval to quote: over clusters where cases share facts or items.

    Tables and figures use this interval. A metric without cluster fields is returned unchanged.
    """
    if metric.cluster_n is None:
        return metric
    return replace(metric, interval=metric.cluster_interval, low=metric.cluster_low, high=metric.cluster_high)


def find(metrics: Iterable[Metric], metric: str, **group: Any) -> Metric | None:
    """The first row of a name whose group is exactly ``group``."""
    return next((m for m in metrics if m.metric == metric and dict(m.group) == group), None)


def frechet(steps: Sequence[float]) -> tuple[float, float]:
    """Bounds of the share of cases with all K steps right, given the share with each right (Frechet).

    max(0, sum - (K - 1)) <= all <= the least step; widened a little for rounding.
    """
    return max(0.0, math.fsum(steps) - (len(steps) - 1)) - _ROUNDING, min(steps) + _ROUNDING


def check_metrics(metrics: Iterable[Metric]) -> list[str]:
    """Problems between metrics: rates outside [0, 1], both outside its Frechet bounds, parts that do not add up."""
    rows = list(metrics)
    rates = [m for m in rows if m.interval == "clopper-pearson" and m.value is not None]
    found = [
        f"{m.metric} {dict(m.group)}: value {m.value} is not a rate" for m in rates if not 0 <= (m.value or 0) <= 1
    ]
    cells: dict[str, dict[str, Metric]] = {}
    for m in rows:
        cells.setdefault(json.dumps(m.group, sort_keys=True, default=str), {})[m.metric] = m
    for key, cell in cells.items():
        found += [f"{problem} in {key}" for problem in _cell_problems(cell)]
    return found


def _cell_problems(cell: Mapping[str, Metric]) -> list[str]:
    found = []
    steps = [m for name, m in cell.items() if re.fullmatch(r"step:\d+", name)]
    both = cell.get("both")
    values = [m.value for m in steps if m.value is not None]
    same = both is not None and all(m.n == both.n for m in steps) and len(values) == len(steps) >= 1
    if same and both is not None and both.value is not None:
        low, high = frechet(values)
        if not low <= both.value <= high:
            found.append(f"both = {both.value:.4f} is outside its Frechet bounds [{low:.4f}, {high:.4f}]")
    shares = [cell[name] for name in ("k_zero", "k_positive", "intractable") if name in cell]
    exact = all(m.n == shares[0].n and not m.n_invalid for m in shares)
    if len(shares) == 3 and exact and sum(m.count or 0 for m in shares) != shares[0].n:
        found.append("k_zero + k_positive + intractable do not add up to n")
    return found


def extreme_mean(fixed: Sequence[float], optional: Sequence[float], end: Callable[..., float]) -> float | None:
    """The least (``end=min``) or largest (``max``) mean of all fixed values and any of the optional ones."""
    total, n = sum(fixed), len(fixed)
    for value in sorted(optional, reverse=end is max):
        if n == 0 or (value * n < total if end is min else value * n > total):
            total, n = total + value, n + 1
    return total / n if n else None


def truncated(value: float, digits: int = 2) -> float:
    """Cut, not rounded, as STaD's tables print percentages and means."""
    scale = 10**digits
    return int(value * scale + 1e-9) / scale
