"""Two models under the double gate: a difference in knowledge, composition or depth (Composition collapse, section 2).

Every difference is A - B: delta_atom of the per-fact atom stability (more is better for A), delta_comp of the residual
failure only (negative: A composes better), delta_depth of d50 (positive: A fails at a greater depth). The last two
compare composition only if the models have equal knowledge: if the per-fact stabilities differ by more than 2 points,
they have no value, and a note says so.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ...errors import InputError
from .. import statistics
from ..case import Case
from ..graded import Graded
from ..metrics import Metric, find, mark
from . import counting
from .double_gate import Gated, atom_table, depth_metrics, gate_cases

MATCHED_WITHIN = 0.02


@dataclass(frozen=True)
class Comparison:
    """The three channels, and the paired test on the wholes."""

    metrics: tuple[Metric, ...]
    mcnemar: statistics.McNemar
    """Over the wholes for which both models have judged answers, by what these share."""
    warnings: tuple[str, ...] = ()


def compare(
    a: Sequence[Graded], b: Sequence[Graded], cases: Mapping[str, Case] | None = None, seed: int = 0
) -> Comparison:
    """Compare two double-gate runs over the same cases; each side is one model.

    Raises ``InputError`` where a side holds several models or the two share no case.
    """
    for side, rows in (("A", a), ("B", b)):
        if len(counting.by_model(rows)) > 1:
            raise InputError(f"{side}: rows of several models or runs; give one run on each side")
    gated_a, gated_b = gate_cases(a, cases), gate_cases(b, cases)
    others = {(y.item.case, y.item.repeat): y for y in gated_b}
    pairs = [(x, others[key]) for x in gated_a if (key := (x.item.case, x.item.repeat)) in others]
    if not pairs:
        raise InputError("A and B: no case in common; compare runs of one benchmark")
    atom = delta_atom(a, b, seed)
    matched = atom.value is not None and abs(atom.value) <= MATCHED_WITHIN + 1e-9
    reason = None if matched else _unmatched(atom)
    metrics = [atom, *_delta_comp(pairs, seed, reason), *_delta_depth(pairs, reason)]
    judged = [(x, y) for x, y in pairs if x.whole is not None and y.whole is not None]
    own = counting.clusters_of([x.item for x, _ in judged])
    test = statistics.mcnemar([bool(x.whole) for x, _ in judged], [bool(y.whole) for _, y in judged], own)
    alone = len(gated_a) + len(gated_b) - 2 * len(pairs)
    warnings = [f"{alone} cases are in one run only and are left out"] if alone else []
    return Comparison(tuple(metrics), test, tuple(warnings + ([reason] if reason else [])))


def delta_atom(a: Sequence[Graded], b: Sequence[Graded], seed: int) -> Metric:
    """Difference of the per-fact atom stabilities, paired over the facts that both were asked."""
    facts = [
        {key: counting.all_of(map(counting.truth, probes.values())) for key, probes in atom_table(rows).items()}
        for rows in (a, b)
    ]
    shared = [key for key in facts[0] if key in facts[1]]
    left, right = ([side[key] for key in shared] for side in facts)
    near = [fact for _, fact in shared]  # which its repeats share
    return counting.difference(
        "delta_atom", left, right, {"per": "fact"}, seed=seed, of=None, clusters=near, note="A - B"
    )


def _unmatched(atom: Metric) -> str:
    if atom.value is None:
        return "not comparable: no atom was probed in both runs, so their knowledge cannot be matched"
    points = f"{100 * atom.value:+.1f} points, more than {100 * MATCHED_WITHIN:.0f}"
    return f"not comparable: atom stability differs by {points}"


def _delta_comp(pairs: Sequence[tuple[Gated, Gated]], seed: int, reason: str | None) -> list[Metric]:
    """R_A - R_B over all depths, then by depth (or its bin) and family; cases are resampled in pairs."""
    by_depth = (counting.depth_key([x.item for x, _ in pairs]),)
    cells = counting.grouped(pairs, (by_depth, ("family",)), of=lambda pair: pair[0].item)
    return [_difference_of_failures(chosen, group, seed, reason) for group, chosen in cells]


def _difference_of_failures(
    pairs: Sequence[tuple[Gated, Gated]], group: Mapping[str, object], seed: int, reason: str | None
) -> Metric:
    def columns(g: Gated) -> tuple[bool, bool]:
        inside = g.double is True and g.whole is not None
        return inside, inside and g.whole is False

    table = np.array([columns(x) + columns(y) for x, y in pairs], dtype=float)
    n_a, failed_a, n_b, failed_b = (int(v) for v in table.sum(axis=0))
    note = f"R(A) - R(B) = {failed_a}/{n_a} - {failed_b}/{n_b}"
    if reason is not None:
        return Metric("delta_comp", dict(group), n=min(n_a, n_b), note=f"{reason}; {note}")
    # Cases that pass neither model's gates say nothing; as clusters, they would make a few cases look like many.
    own = np.flatnonzero(table.any(axis=1)).tolist()
    table = table[own]
    found = counting.statistic(
        "delta_comp",
        table.tolist(),
        lambda s: s[..., 1] / s[..., 0] - s[..., 3] / s[..., 2],
        group,
        seed=seed,
        of=[pairs[i][0].item for i in own],
        possible=(-1, 1),
        others=[(*x, *y) for x in _MAY_BE for y in _MAY_BE],
        rates=(np.where(table[:, ::2], table[:, 1::2], np.nan), lambda failed: failed[0] - failed[1]),
        n_invalid=sum(g.double is None or (g.double is True and g.whole is None) for pair in pairs for g in pair),
    )
    drawn = (found.interval or "").startswith("bootstrap")
    n, interval = min(n_a, n_b), f"paired-{found.interval}" if drawn else found.interval
    return replace(found, n=n, interval=interval, note=mark(n, note), bound_low=None, bound_high=None)


_MAY_BE = ((0, 0), (1, 0), (1, 1))
"""Whether a case counts on one side, and whether it failed there."""


def _delta_depth(pairs: Sequence[tuple[Gated, Gated]], reason: str | None) -> list[Metric]:
    """d50(A) - d50(B), over all cases and by family; no value where one of the two is censored or undefined."""
    sides = [depth_metrics(gated) for gated in zip(*pairs, strict=True)]
    metrics = []
    for left in (m for m in sides[0] if m.metric == "d50"):
        group = left.group
        right = find(sides[1], "d50", **group)
        if right is None:
            continue
        shown = [m.note if m.value is None else f"{m.value:.2f}" for m in (left, right)]
        note = f"d50(A) = {shown[0]}, d50(B) = {shown[1]}"
        known = left.value is not None and right.value is not None and reason is None
        value = left.value - right.value if known and left.value is not None and right.value is not None else None
        note = note if reason is None else f"{reason}; {note}"
        metrics.append(Metric("delta_depth", group, n=min(left.n, right.n), value=value, note=note))
    return metrics
