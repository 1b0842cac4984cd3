"""The double gate (Composition collapse): a whole counts only where every part is known in all its paraphrases.

    get("double-gate").reduce(rows).case_set("residual-failure").ids

Atom gate: each atom right in all its paraphrases. Sub-question gate: each sub-question right in isolation. Residual
failure R(d) = |E_d| / |G_d|: of the cases G_d that pass both gates, those whose whole is wrong (section 2, App. E).
Cases without paraphrased probes (in-context families) have the sub-question gate only, and their rows say so.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from operator import attrgetter
from typing import Any, ClassVar

import numpy as np

from .. import dependence, few_cases, statistics
from ..asks import Ask, Grade
from ..case import Case
from ..graded import Graded
from ..metrics import HOLLOW_BELOW, Metric, mark
from . import counting
from .asking import ask_again, ask_part, ask_whole, check_formats, pending
from .base import About, Evidence, Reduction
from .counting import Item, Truth

_PARAPHRASE = ":paraphrase:"
CONTROL_DEPTH = 2


@dataclass(frozen=True)
class DoubleGate:
    """``--protocol double-gate``.

    ``format`` is the prompt format of all asks, ``recovery`` lists further formats in which the whole is asked again
    (``cot``, ``thinking``, ...), ``max_tokens`` is one budget for all asks, ``seed`` that of the bootstrap intervals.
    """

    format: str = "xml"
    recovery: tuple[str, ...] = ()
    max_tokens: int | None = None
    compat: str | None = None
    seed: int = 0
    name: str = field(default="double-gate", init=False)
    about: ClassVar = About(
        roles=("whole", "part:N", "part:N:paraphrase:N", "whole:WAY"),
        needs=("whole", "part:0"),
        options={"also": "recovery"},
        asks_parts=True,
        short_answers=True,
        headline=(
            ("atom_stability", ("per",)),
            ("double_gate", ()),
            ("residual_failure", ()),
            ("residual_failure", ("depth_bin",)),
            ("d50", ()),
        ),
        columns=(
            ("residual_failure", "whole wrong, every part known", "rate"),
            ("double_gate", "passed both gates", "rate"),
            ("atom_stability", "atoms right in every paraphrase", "rate"),
            ("d50", "depth of 50 % failure", "number"),
        ),
    )

    def __post_init__(self) -> None:
        check_formats(self.format, self.recovery)

    def asks(self, case: Case, graded: Mapping[str, Grade]) -> list[Ask]:
        """Every wording of every atom, every sub-question and the whole, all in one round."""
        words = [(i, role, text) for i in range(len(case.parts)) for role, text in _wordings(case, i)]
        found = [ask_part(case, i, role, text, self.format, self.max_tokens) for i, role, text in words]
        found.append(ask_whole(case, "whole", case.question, self.format, self.max_tokens))
        found += [ask_again(case, way, self.format, self.max_tokens) for way in self.recovery]
        return pending(found, graded)

    def reduce(self, rows: Sequence[Graded], cases: Mapping[str, Case] | None = None) -> Reduction:
        """Gate counts, residual failure with its depth curve, and the case sets of gated failures and successes."""

        def count(chosen: Sequence[Graded], group: Mapping[str, Any]) -> counting.Counted:
            gated = gate_cases(chosen, cases)
            passed = [g for g in gated if g.double is True and g.whole is not None]
            found = [("gated-success" if g.whole else "residual-failure", g.item.entry(g.evidence)) for g in passed]
            return self._metrics(gated, atom_table(chosen)), _warnings(gated, group), found

        sets = {"residual-failure": "failure", "gated-success": "success"}
        return counting.reduced(rows, self.compat, sets, count)

    def _metrics(self, gated: Sequence[Gated], atoms: Mapping[Any, Mapping[str, Graded]]) -> list[Metric]:
        metrics = _stability(atoms)
        for group, some in counting.grouped(gated, of=attrgetter("item")):
            metrics += cell_metrics(some, group, self.seed)
        metrics += depth_metrics(gated)
        metrics += _kinds(gated)
        metrics += _recovery(gated)
        return metrics


def _wordings(case: Case, i: int) -> list[tuple[str, str]]:
    """Role and text of every wording of a part."""
    part = case.parts[i]
    again = [(f"part:{i}{_PARAPHRASE}{j}", text) for j, text in enumerate(part.paraphrases)]
    return [(f"part:{i}", part.question), *again]


def atom_table(rows: Sequence[Graded]) -> dict[Any, dict[str, Graded]]:
    """The probes of every atom by (repeat, atom), each wording once even if many cases asked it.

    Where a wording was graded differently in two cases, wrong takes precedence over invalid, and invalid over right.
    """
    order = {False: 0, None: 1, True: 2}
    table: dict[Any, dict[str, Graded]] = {}
    for row in rows:
        part, mark, wording = row.role.partition(_PARAPHRASE)
        if not mark or not part.startswith("part:"):  # without preamble, say
            continue
        probes = table.setdefault((row.repeat, row.atom or (row.case, part)), {})
        known = probes.get(wording)
        if known is None or order[counting.truth(row)] < order[counting.truth(known)]:
            probes[wording] = row
    return table


def gate_cases(rows: Sequence[Graded], cases: Mapping[str, Case] | None = None) -> list[Gated]:
    """The gates of every case of one model; rows that ``cases`` require but that are missing count as unknown."""
    atoms = atom_table(rows)
    expected = {k: [r for i in range(len(c.parts)) for r, _ in _wordings(c, i)] for k, c in (cases or {}).items()}
    return [_gate(item, atoms, expected) for item in counting.items(rows, cases)]


def _gate(item: Item, atoms: Mapping[Any, Mapping[str, Graded]], expected: Mapping[str, Sequence[str]]) -> Gated:
    stable: list[Truth] = []
    subs: list[Truth] = []
    evidence: list[Evidence] = []
    wanted = set(expected.get(item.case, ()))
    for i in range(item.n_parts):
        role = f"part:{i}"
        own = [r for r in item.rows if r.startswith(role + _PARAPHRASE)]
        named = next((item.rows[r].atom for r in [role, *own] if r in item.rows and item.rows[r].atom), None)
        probes = atoms.get((item.repeat, named or (item.case, role)), {})
        missing = [r for r in wanted if r.startswith(role + _PARAPHRASE) and r.rpartition(":")[2] not in probes]
        if probes or missing:
            asked = {f"{role}{_PARAPHRASE}{j}": probes[j] for j in sorted(probes, key=lambda j: (len(j), j))}
            stable.append(counting.all_of([*map(counting.truth, asked.values()), *(None for _ in missing)]))
            evidence += [_evidence(item, name, row) for name, row in asked.items()]
        if role in item.rows or role in wanted or not own:  # of a part before others, something is missing
            subs.append(item.truth(role))
            evidence += item.evidence([role])
    evidence += item.evidence(["whole"])
    sub = counting.all_of(subs) if subs else None
    return Gated(item, counting.all_of(stable), bool(stable), sub, item.truth("whole"), tuple(evidence))


def _evidence(item: Item, role: str, deciding: Graded) -> Evidence:
    """The case's own row of a wording, or the deciding row of another case under this case's role."""
    own = item.rows.get(role)
    return replace(Evidence.of(deciding if own is None or own.outcome != deciding.outcome else own), role=role)


def _stability(atoms: Mapping[Any, Mapping[str, Graded]]) -> list[Metric]:
    if not atoms:
        return []
    # The repeats of a fact share it.
    probes = [(str(fact), counting.truth(row)) for (_, fact), rows in atoms.items() for row in rows.values()]
    facts = [counting.all_of(map(counting.truth, rows.values())) for rows in atoms.values()]
    near = [str(fact) for _, fact in atoms]
    per_probe = counting.rate(
        "atom_stability", [v for _, v in probes], {"per": "probe"}, of=None, clusters=[fact for fact, _ in probes]
    )
    return [per_probe, counting.rate("atom_stability", facts, {"per": "fact"}, of=None, clusters=near)]


def cell_metrics(gated: Sequence[Gated], group: Mapping[str, Any], seed: int) -> list[Metric]:
    """Gates, residual failure, single-gate failure, conflation and abstention of one group of cases."""
    items = [g.item for g in gated]
    without = sum(not g.has_atoms for g in gated)
    some_of = f" for {without} of {len(gated)} cases" if without < len(gated) else ""
    note = f"sub-question gate only{some_of}: no paraphrased probes" if without else None
    guess = counting.chance_note(items)

    def rate(metric: str, values: Sequence[Truth], of: Sequence[Gated] = gated, *notes: str | None) -> Metric:
        return counting.rate(metric, values, group, of=[g.item for g in of], note=counting.join(*notes))

    metrics = []
    with_atoms = [g for g in gated if g.has_atoms]
    if with_atoms:
        metrics.append(rate("atom_gate", [g.atom for g in with_atoms], with_atoms))
    metrics.append(rate("sub_question_gate", [g.sub for g in gated]))
    metrics.append(rate("double_gate", [g.double for g in gated], gated, note))
    if with_atoms:
        own = [g.item for g in with_atoms]
        metrics.append(counting.failure("gate_removed", [(g.sub, g.atom) for g in with_atoms], own, group))
    answered = [g for g in gated if _abstained(g.item) is not True]
    for some, cell in ((gated, group), (answered, {**group, "abstentions": "excluded"})):
        outcomes, own = [(g.double, g.whole) for g in some], [g.item for g in some]
        chance = counting.chance_inside(outcomes, own)
        metrics.append(counting.failure("residual_failure", outcomes, own, cell, note, chance))
    if with_atoms:
        single = [(g.sub, g.whole) for g in with_atoms]
        own = [g.item for g in with_atoms]
        chance = counting.chance_inside(single, own)
        metrics.append(counting.failure("single_gate_failure", single, own, group, chance))
        metrics.append(_conflation(with_atoms, group, seed))
    passing = [(g.double, _abstained(g.item)) for g in gated]
    metrics.append(counting.given("abstention", passing, items, group, "of the cases that pass the gates"))
    metrics.append(rate("composition", [g.whole for g in gated], gated, guess))
    return metrics


def _conflation(gated: Sequence[Gated], group: Mapping[str, Any], seed: int) -> Metric:
    """Single-gate minus double-gate failure rate: failures that the standard gate wrongly attributes to composition.

    The bounds combine the worst cases of both rates: no judgement exceeds them, but it may not reach them.
    """
    known = [g for g in gated if g.whole is not None and g.sub is not None and g.double is not None]
    inside = [g for g in known if g.sub]  # the others say nothing: as clusters, they would make few look like many
    columns = [(True, not g.whole, g.double is True, g.double is True and not g.whole) for g in inside]

    def difference(s: np.ndarray) -> np.ndarray:
        return s[..., 1] / s[..., 0] - s[..., 3] / s[..., 2]

    single, double = (
        counting.failure_bounds([(gate, g.whole) for gate, g in zip(gates, gated, strict=True)])
        for gates in ([g.sub for g in gated], [g.double for g in gated])
    )
    ends = [None if a is None or b is None else a - b for a, b in zip(single, reversed(double), strict=True)]
    is_open = len(known) < len(gated)
    found = counting.statistic(
        "conflation",
        columns,
        difference,
        group,
        seed=seed,
        n_invalid=len(gated) - len(known),
        of=[g.item for g in inside],
        bounds=(ends[0], ends[1]) if is_open else None,
        possible=(-1, 1),
        others=((1, 0, 0, 0), (1, 1, 0, 0), (1, 0, 1, 0), (1, 1, 1, 1), (1, 0.5, 0.5, 0.5), (1, 0.5, 0.5, 0)),
        rates=few_cases.of_two_gates(columns),
    )
    note = "single_gate_failure - residual_failure" + ("; bounds: of the two rates apart" if is_open else "")
    return replace(found, n=len(known), note=mark(len(known), note))


def _abstained(item: Item) -> Truth:
    row = item.rows.get("whole")
    return None if row is None or row.outcome == "invalid" else row.outcome == "abstained"


def _kinds(gated: Sequence[Gated]) -> list[Metric]:
    """Accuracy on sub-questions by kind."""
    kinds: dict[str, list[tuple[Item, Truth]]] = {}
    for g in gated:
        for role, row in g.item.rows.items():
            if row.kind and role.startswith("part:") and role.count(":") == 1:
                kinds.setdefault(row.kind, []).append((g.item, counting.truth(row)))
    note = "sub-questions of this kind"
    return [
        counting.rate("skill_accuracy", [v for _, v in found], {"skill": k}, of=[item for item, _ in found], note=note)
        for k, found in kinds.items()
    ]


def _recovery(gated: Sequence[Gated]) -> list[Metric]:
    """Share of residual failures whose whole is right when asked in another format (section 6)."""
    formats = dict.fromkeys(r.partition(":")[2] for g in gated for r in g.item.rows if r.startswith("whole:"))
    failed = [g for g in gated if g.failed is not False]
    metrics = []
    for format in formats:
        for group, some in counting.grouped(failed, of=attrgetter("item")):
            outcomes = [(g.failed, g.item.truth(f"whole:{format}")) for g in some]
            metrics.append(counting.given("recovery", outcomes, [g.item for g in some], {**group, "prompt": format}))
    return metrics


def _warnings(gated: Sequence[Gated], group: Mapping[str, Any]) -> list[str]:
    where = f" ({group['model']})" if "model" in group else ""
    found = []
    open_gates = sum(g.double is None for g in gated)
    if open_gates:
        lost = next((f" (no row: {g.item.case!r}, {role})" for g in gated for role in _without_rows(g.item)), "")
        found.append(
            f"{open_gates} of {len(gated)} cases have an undecided gate{where}: an answer is invalid or missing{lost}"
        )
    if not any(g.double is True for g in gated):
        found.append(f"no case passes the gates{where}: residual failure is undefined")
    if 0 < (flat := sum(_depth(g) is None for g in gated)) < len(gated):
        found.append(f"{flat} of {len(gated)} cases have no depth{where}: they are in no curve and no d50")
    return found


def _without_rows(item: Item) -> list[str]:
    roles = [f"part:{i}" for i in range(item.n_parts)]
    return [role for role in roles if not any(r == role or r.startswith(role + _PARAPHRASE) for r in item.rows)]


@dataclass(frozen=True)
class Gated:
    """A case with the results of its gates and its whole."""

    item: Item
    atom: Truth
    """True also where it has no atoms (see ``has_atoms``)."""
    has_atoms: bool
    sub: Truth
    whole: Truth
    evidence: tuple[Evidence, ...] = field(repr=False, default=())

    @property
    def double(self) -> Truth:
        """Both gates; the sub-question gate alone where there are no atoms."""
        return counting.all_of([self.atom, self.sub])

    @property
    def failed(self) -> Truth:
        """Whether the whole is wrong although both gates are passed."""
        return counting.all_of([self.double, counting.opposite(self.whole)])


Curve = dict[int, list[Gated]]
"""Every case by depth, or by depth bin where the benchmark declares bins."""


def depth_metrics(gated: Sequence[Gated]) -> list[Metric]:
    """d50 over all cases, then for each family (with the depth-2 control as first bin where it has none itself)."""
    binned = [g for g in gated if _depth(g) is not None]
    if not binned:
        return []
    found = [_row(_curve(binned), {}, None)]
    families = sorted({g.item.first.family for g in binned if g.item.first.family is not None})
    if len({g.item.first.family for g in binned}) < 2:
        return found + [_row(_curve(binned), {"family": f}, None) for f in families]
    for family in families:
        curve = _curve([g for g in binned if g.item.first.family == family])
        note = None
        if CONTROL_DEPTH not in curve:
            if all(depth < CONTROL_DEPTH for depth in curve):
                continue
            control = [g for g in binned if _depth(g) == CONTROL_DEPTH]
            if control:
                names = sorted({g.item.first.family or "cases without a family" for g in control})
                curve |= _curve(control)
                note = f"depth {CONTROL_DEPTH} from {', '.join(names)}"
        elif len(curve) == 1:
            continue  # the control itself has one depth and no curve
        found.append(_row(curve, {"family": family}, note))
    return found


def _curve(gated: Sequence[Gated]) -> Curve:
    found: Curve = {}
    for g in gated:
        if (depth := _depth(g)) is not None:
            found.setdefault(depth, []).append(g)
    return found


def _depth(g: Gated) -> int | None:
    return g.item.first.binned


def _shared(
    known: Sequence[Sequence[Gated]], depths: Sequence[int], apart: statistics.D50
) -> tuple[statistics.D50, dict[str, Any]]:
    """The band by what the cases share, also as cluster fields; ``apart`` and none where they share nothing."""
    labels = [[g.item.cluster for g in some] for some in known]
    flat = [label for some in labels for label in some]
    if dependence.alone(flat):
        return apart, {}
    failed = [[not g.whole for g in some] for some in known]
    limits = [statistics.rate_interval(f, near) for f, near in zip(failed, labels, strict=True)]
    band = statistics.d50(depths, list(map(sum, failed)), list(map(len, failed)), limits)
    return band, counting.clustered(statistics.Interval(band.low, band.high, "korn-graubard band"), flat)


def _row(curve: Curve, group: dict[str, Any], note: str | None) -> Metric:
    depths = sorted(curve)
    passed = ((g for g in curve[d] if g.double is True) for d in depths)
    known = [[g for g in some if g.whole is not None] for some in passed]
    counts = [(sum(not g.whole for g in some), len(some)) for some in known]
    found = statistics.d50(depths, [k for k, _ in counts], [n for _, n in counts])
    few = [str(d) for d, (_, n) in zip(depths, counts, strict=True) if 0 < n < HOLLOW_BELOW]
    quoted, beside = _shared(known, depths, found)
    band = [f"{end} {c}" for end, c in (("low", quoted.low_censored), ("high", quoted.high_censored)) if c]
    outcomes = [[(g.double, g.whole) for g in curve[d]] for d in depths]
    n_open = sum(gate is None or (gate is True and whole is None) for some in outcomes for gate, whole in some)
    # A rate that is higher at every depth crosses one half earlier: the worst rates give the least depth.
    rates = [counting.failure_bounds(some) for some in outcomes]
    low, high = (statistics.crossing([float(d) for d in depths], [r[end] for r in rates]) for end in (1, 0))
    said = [f"{name} {c or why}" for name, (_, c, why) in (("bound_low", low), ("bound_high", high)) if c or why]
    few_at = f"n < {HOLLOW_BELOW} at depth {', '.join(few)}" if few else None
    notes = [found.censored, found.note, note, *band, few_at, *(said if n_open else [])]
    return Metric(
        "d50", group, n=sum(n for _, n in counts), n_invalid=n_open, value=found.value,
        interval="clopper-pearson band", low=found.low, high=found.high, bound_low=low[0], bound_high=high[0],
        note="; ".join(n for n in notes if n) or None, **beside,
    )  # fmt: skip
