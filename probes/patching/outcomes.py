"""Outcomes of patched continuations, tables and curves of many, and contrasts with controls.

    rows, tensors, axes = summarize(outcomes, layers)
    rows += against_controls(outcomes, layers)

A donor's state may change an answer simply because it is a different state. Another failure's state (``random``) and
noise as large as the difference (``noise``) are different states, too; an effect beyond theirs is the donor's own.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Float, Int
from scipy.sparse import csr_array
from scipy.sparse.csgraph import maximum_bipartite_matching
from scipy.stats import t
from torch import Tensor

from ...evaluation import dependence
from ...evaluation.asks import Grade
from ...evaluation.dependence import Sides
from ...evaluation.statistics import clopper_pearson, rate_interval
from ..contrast import adjust, paired
from ..effects import mean_interval
from ..result import Row
from ..tables import settled_cells

RATES = ("flip_rate", "abstain_rate", "unchanged_rate", "other_rate", "corrected_rate", "argmax_changed")
MEANS = (
    "kl", "kl_from_donor", "tokens_before_divergence", "answer_log_prob", "donor_log_prob", "answer_probability",
    "donor_probability", "logit_difference",
)  # fmt: skip
NOTHING_SHARED = Sides(None, None)
Grader = Callable[[int, Sequence[int]], Grade]
"""Grades a continuation (token ids with its end token) by the gold answer of the i-th prompt."""


@dataclass(frozen=True)
class PatchOutcome:
    """One source into one recipient, all layers."""

    source: str
    """``donor`` or the name of a control"""
    donor: int | None
    recipient: int
    values: dict[str, Float[Tensor, " layer"]]
    """Quantity to one value per layer; rates as 0 or 1, NaN if undefined"""
    shares: Sides = NOTHING_SHARED
    """What the donor's case and the recipient's share with other cases (labels as in ``evaluation.dependence``)"""


class GradedContinuations(NamedTuple):
    """Graded continuations, 0 or 1 per layer; NaN if undefined or where no answer can be graded."""

    flip: Float[Tensor, "layer"]
    abstain: Float[Tensor, "layer"]
    corrected: Float[Tensor, "layer"]
    either: Float[Tensor, "layer"] | None = None
    """Gives the donor's answer or abstains, also where the unpatched one did so; by default flip or abstain"""


class Graders(NamedTuple):
    """Graders by the recipients' and by the donors' gold answers."""

    recipient: Grader
    donor: Grader

    def judged(
        self, recipient: int, donor: int, tokens: Int[Tensor, "layer step"], base: Int[Tensor, "step"]
    ) -> GradedContinuations:
        """Outcomes of continuations, with ``base`` the unpatched one (-1 after the end).

        A flip gives the donor's gold answer where the unpatched answer was another one; abstaining is a change, too.
        """
        before = [grade(i, _text(base)) for grade, i in zip(self, (recipient, donor), strict=True)]
        own, others = (
            [grade(i, _text(row)) for row in tokens] for grade, i in zip(self, (recipient, donor), strict=True)
        )
        nan = [math.nan] * len(own)
        donors, abstains = _known(others, "correct"), _known(own, "abstained")
        return GradedContinuations(
            flip=donors if before[1].outcome != "correct" else _column(nan),
            abstain=abstains if before[0].outcome != "abstained" else _column(nan),
            corrected=_known(own, "correct"),
            either=torch.fmax(donors, abstains),
        )


def _text(tokens: Tensor) -> tuple[int, ...]:
    return tuple(int(t) for t in tokens if t >= 0)


def _column(values: Sequence[float]) -> Tensor:
    return torch.tensor(values, dtype=torch.float64)


def _known(grades: Sequence[Grade], outcome: str) -> Tensor:
    return _column([math.nan if g.outcome == "invalid" else float(g.outcome == outcome) for g in grades])


def compare(
    source: str, pair: tuple[int | None, int], patched: tuple[Int[Tensor, "layer step"], Float[Tensor, "layer vocab"]],
    base: tuple[Int[Tensor, " step"], Float[Tensor, " vocab"]],
    donor: tuple[Int[Tensor, " step"], Float[Tensor, " vocab"]],
    gold: tuple[int, int], answer: Sequence[int] | None, said: GradedContinuations | None = None,
) -> PatchOutcome:  # fmt: skip
    """Compare patched continuations ``(layer step, layer vocab)`` with the unpatched and the donor's own.

    ``gold``: first tokens of the recipient's and of the donor's answer. ``answer``: the recipient's gold answer.
    Without ``said`` a flip is a continuation equal to the donor's token by token, undefined if donor and unpatched
    recipient continue in the same way, and nothing abstains.
    """
    tokens, logits = patched
    donor_tokens, donor_logits = donor
    log_q, log_donor = base[1].double().log_softmax(-1), donor_logits.double().log_softmax(-1)
    # Row by row: tables of all layers over a large vocabulary would leave the cache.
    by_layer = []
    for x in logits:
        log_p = x.double().log_softmax(-1)
        by_layer.append(torch.stack([divergence(log_q, log_p), divergence(log_donor, log_p), *log_p[list(gold)]]))
    kl, from_donor, own_log_prob, donor_log_prob = torch.stack(by_layer, 1)
    unchanged = (tokens == base[0]).all(-1)
    nan = torch.full(unchanged.shape, torch.nan, dtype=torch.float64)
    if said is None:
        distinct = not torch.equal(donor_tokens, base[0])
        flip = (tokens == donor_tokens).all(-1).double() if distinct else nan
        said = GradedContinuations(flip, nan, nan if answer is None else _starts_with(tokens, answer))
        # Where flips are undefined a continuation that is the donor's is the unpatched one.
        other = (~unchanged & ~(flip == 1)).double()
    else:
        judged = ~(said.corrected.isnan() & ~unchanged)
        either = (said.flip == 1) | (said.abstain == 1) if said.either is None else said.either == 1
        other = torch.where(judged, (~unchanged & ~either).double(), nan)
    values = {
        "kl": kl,
        "kl_from_donor": from_donor,
        "argmax_changed": (tokens[:, 0] != base[0][0]).double(),
        "tokens_before_divergence": _before_divergence(tokens, base[0]),
        "unchanged_rate": unchanged.double(),
        "flip_rate": said.flip,
        "abstain_rate": said.abstain,
        "other_rate": other,
        "corrected_rate": said.corrected,
        "answer_log_prob": own_log_prob,
        "donor_log_prob": donor_log_prob,
        "answer_probability": own_log_prob.exp(),
        "donor_probability": donor_log_prob.exp(),
        "logit_difference": donor_log_prob - own_log_prob,
    }
    return PatchOutcome(source, pair[0], pair[1], values)


def divergence(log_q: Float[Tensor, "..."], log_p: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
    """KL(q || p) in nats over the last axis; tokens that q leaves out (a logit of minus infinity) add nothing."""
    return (log_q - log_p).mul_(log_q.exp()).masked_fill_(log_q.isneginf(), 0).sum(-1).clamp_min(0)


def _before_divergence(tokens: Tensor, base: Tensor) -> Tensor:
    """Number of equal tokens from the start; the base's full length where nothing diverges."""
    agree = (tokens == base).long().cumprod(-1)
    return (agree * (base != -1)).sum(-1).double()


def _starts_with(tokens: Tensor, answer: Sequence[int]) -> Tensor:
    """1 where continuations ``layer step`` start with the answer, NaN where they stop at their limit while they do."""
    n = min(len(answer), tokens.shape[1])
    found = (tokens[:, :n] == torch.tensor(list(answer[:n]))).all(-1).double()
    return found if n == len(answer) else found.masked_fill(found == 1, torch.nan)


def independent_pairs(outcomes: Sequence[PatchOutcome]) -> int:
    """How many pairs with no donor or recipient twice: the most, or taken one by one where cases share facts."""
    if any(o.shares != NOTHING_SHARED for o in outcomes):
        return len(dependence.apart(_labels(outcomes)))
    recipients = sorted({o.recipient for o in outcomes})
    donors = sorted({o.donor for o in outcomes if o.donor is not None})
    if not donors:
        return len(recipients)
    table = np.zeros((len(donors), len(recipients)), dtype=np.int8)
    for o in outcomes:
        if o.donor is not None:
            table[donors.index(o.donor), recipients.index(o.recipient)] = 1
    return int((maximum_bipartite_matching(csr_array(table)) >= 0).sum())


def _labels(outcomes: Sequence[PatchOutcome]) -> list[Hashable]:
    """What each pair shares with others: its donor or what that shares, and its recipient or what that shares."""
    return [Sides(None if o.donor is None else _named("donor", o.donor, o.shares.first),
                  _named("recipient", o.recipient, o.shares.second)) for o in outcomes]  # fmt: skip


def _named(side: str, member: int, label: Hashable) -> Hashable:
    names = label if isinstance(label, frozenset) else frozenset([label])
    return frozenset((side, n) for n in names if n is not None) or (side, "alone", member)


def _rate(quantity: str, values: list[float], outcomes: Sequence[PatchOutcome]) -> Row:
    n, k, nan = len(values), int(sum(values)), math.nan
    if k in (0, n):
        alone = min(independent_pairs(outcomes), n)
        found = clopper_pearson(alone if k else 0, alone)
        note = "" if alone >= n else f"pairs share members or facts: bounded as {alone} independent ones"
    else:
        labels = _labels(outcomes)
        found = rate_interval([bool(v) for v in values], labels)
        note = "" if dependence.alone(labels) else "pairs share members or facts"
    low, high = nan if found.low is None else found.low, nan if found.high is None else found.high
    return {"quantity": quantity, "n": n, "count": k, "value": k / n if n else nan, "low": low, "high": high,
            "interval": found.method, "note": note}  # fmt: skip


def summarize(
    outcomes: Sequence[PatchOutcome], layers: Sequence[int]
) -> tuple[list[Row], dict[str, Float[Tensor, " layer"]], dict[str, tuple[str, ...]]]:
    """Rows per source, quantity and layer; curves ``[layer]`` named by quantity, controls as ``quantity.source``."""
    rows: list[Row] = []
    tensors: dict[str, Tensor] = {}
    for source in dict.fromkeys(o.source for o in outcomes):
        mine = [o for o in outcomes if o.source == source]
        for quantity in (q for q in (*MEANS, *RATES) if q in mine[0].values):
            curve = []
            for i, layer in enumerate(layers):
                row = _row(quantity, mine, i)
                curve.append(row["value"])
                rows.append({**row, "group": source, "layer": layer})
            name = quantity if source == "donor" else f"{quantity}.{source}"
            tensors[name] = torch.tensor(curve, dtype=torch.float32)
    return rows, tensors, dict.fromkeys(tensors, ("layer",))


def _row(quantity: str, outcomes: Sequence[PatchOutcome], i: int) -> Row:
    defined = [o for o in outcomes if not math.isnan(float(o.values[quantity][i]))]
    values = [float(o.values[quantity][i]) for o in defined]
    if quantity in RATES:
        return _rate(quantity, values, defined)
    e = mean_interval(values, _labels(defined))
    return {"quantity": quantity, "n": len(values), **e._asdict(), "note": ""}


COMPARED = ("flip_rate", "corrected_rate", "kl", "logit_difference")
"""Quantities that are kept for each recipient, to compare runs by."""


def by_recipient(outcomes: Sequence[PatchOutcome]) -> list[Row]:
    """What the donors' states do in each recipient: the mean over its donors and layers, NaN if undefined in all."""
    found: dict[tuple[str, int], list[float]] = {}
    for o in (o for o in outcomes if o.source == "donor"):
        for quantity in COMPARED:
            found.setdefault((quantity, o.recipient), []).extend(o.values[quantity].tolist())
    known = {key: [v for v in values if not math.isnan(v)] for key, values in found.items()}
    return [{"quantity": q, "recipient": r, "value": sum(v) / len(v) if v else math.nan} for (q, r), v in known.items()]


AGAINST = ("random", "noise")
QUANTITIES = ("flip_rate", "abstain_rate", "corrected_rate", "kl_from_donor", "donor_log_prob", "logit_difference")


def against_controls(outcomes: Sequence[PatchOutcome], layers: Sequence[int], *, seed: int = 0) -> list[Row]:
    """Rows ``donor - random`` and ``donor - noise`` of every quantity and layer: paired over recipients.

    Several donors of one recipient are averaged, and taken as given. Rates get a sign-flip permutation (of clusters
    where recipients share facts, if those do not cross), the rest a paired t test; Holm over the layers of a quantity
    and control, each a declared family. Where a recipient has more donors than controls their difference is skewed;
    then p is not below that of permuting donors and controls within recipients, and the error of a difference of rates
    is not below that of independent outcomes.
    """
    shares: dict[str, Hashable] = {str(o.recipient): o.shares.second for o in outcomes}
    flips = not dependence.crossing(list(shares.values()))
    rows: list[Row] = []
    for control in AGAINST:
        for quantity in QUANTITIES:
            found: list[Row] = []
            for i, layer in enumerate(layers):
                each = {s: _by_recipient(outcomes, s, quantity, i) for s in ("donor", control)}
                sides = settled_cells({s: {r: float(np.mean(v)) for r, v in of.items()} for s, of in each.items()})
                if all(sides.values()):
                    test = "permutation" if quantity in RATES and flips else "auto"
                    row = paired(sides, quantity=quantity, clusters=shares, test=test, seed=seed).table[0]
                    both = [(v, each[control][r]) for r, v in each["donor"].items() if r in each[control]]
                    row = {**row, **_unequal(row, both, quantity in RATES, seed)}
                    if quantity in RATES:  # no interval of a difference of rates goes beyond one
                        row = {**row, **{k: np.clip(row[k], -1, 1).item() for k in ("low", "high")}}
                    found.append({**row, "layer": layer})
            rows += adjust(found, f"{quantity}: donor - {control}, all layers")
    return rows


def _unequal(row: Row, both: Sequence[tuple[list[float], list[float]]], rate: bool, seed: int) -> Row:
    """Columns to replace in a row where recipients have more values of one source than of the other."""
    if all(len(a) == len(b) for a, b in both) or math.isnan(row["p"]):
        return {}
    out: Row = {"p": max(row["p"], _within(both, seed)), "test": f"{row['test']} and within recipients, the larger p"}
    pooled, n = float(np.mean([x for a, b in both for x in (*a, *b)])), len(both)
    least = math.sqrt(pooled * (1 - pooled) * sum(1 / len(a) + 1 / len(b) for a, b in both)) / n if rate else 0.0
    half = float(t.ppf(0.975, n - 1)) * least
    if row["high"] - row["low"] < 2 * half:
        out |= {"low": row["value"] - half, "high": row["value"] + half}
    return out


def _within(both: Sequence[tuple[list[float], list[float]]], seed: int, draws: int = 2000) -> float:
    """p of the mean difference where, within each recipient, any of the values may be those of the first source."""
    rng = np.random.default_rng(seed)
    null, seen = np.zeros(draws), 0.0
    for a, b in both:
        drawn = rng.permuted(np.tile(np.array([*a, *b]), (draws, 1)), axis=1)
        null += drawn[:, : len(a)].mean(1) - drawn[:, len(a) :].mean(1)
        seen += float(np.mean(a) - np.mean(b))
    return float((1 + (np.abs(null) >= abs(seen) - 1e-9 * max(1.0, abs(seen))).sum()) / (1 + draws))


def _by_recipient(outcomes: Sequence[PatchOutcome], source: str, quantity: str, i: int) -> dict[str, list[float]]:
    """The values of a recipient's donors at one layer; undefined ones are left out."""
    values: dict[str, list[float]] = {}
    for o in outcomes:
        x = float(o.values[quantity][i])
        if o.source == source and math.isfinite(x):
            values.setdefault(str(o.recipient), []).append(x)
    return values
