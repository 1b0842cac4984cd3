"""Facts that several models know for sure, and cases made of them (Composition collapse, App. K: E2, and table 9).

A fact is jointly stable if every run answers all its wordings right. A case is *pure* if all its facts are, a
*knowledge-gap* control if none is, *mixed* otherwise. Knowledge-gap and mixed cases are controls: a working gate
excludes a case whenever the model does not know one of its facts.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any, Literal

from ...errors import NoCasesError
from .. import statistics
from ..metrics import Metric
from ..protocols import counting
from ..protocols.collapse_depth import Gated
from ..protocols.counting import Truth
from ..protocols.double_gate import atom_table, gate_cases
from .base import Analysis, Source, distinct

Kind = Literal["pure", "knowledge-gap", "mixed"]
KINDS: tuple[Kind, ...] = ("pure", "knowledge-gap", "mixed")


def stability(source: Source) -> dict[Hashable, Truth]:
    """By atom, whether all its wordings are answered right (None: one is invalid and none is wrong)."""
    found: dict[Hashable, list[Truth]] = {}
    for (_, atom), probes in atom_table(source.rows).items():
        found.setdefault(atom, []).extend(map(counting.truth, probes.values()))
    return {atom: counting.all_of(values) for atom, values in found.items()}


def case_atoms(source: Source) -> dict[str, set[Hashable]]:
    """The atoms of every case, from its cases where they are known and else from its rows."""
    found: dict[str, set[Hashable]] = {c.id: {p.atom for p in c.parts if p.atom} for c in source.cases.values()}
    for row in source.rows:
        part, mark, _ = row.role.partition(":paraphrase:")
        if mark and row.case not in source.cases:
            found.setdefault(row.case, set()).add(row.atom or (row.case, part))
    return {case: atoms for case, atoms in found.items() if atoms}


def joint_stability(sources: Sequence[Source]) -> Analysis:
    """Jointly stable facts over the runs, the three kinds of cases, and each run's results on them.

    Per run and kind: ``residual_failure`` behind the double gate, ``composition``, and for the controls
    ``control_passes`` = the gate refuses the case, over cases in which this run lacks a fact. Cases with a fact of
    unknown stability (invalid probes) are of no kind and are counted. Raises ``NoCasesError`` where runs share no atom.
    """
    distinct(sources, 1, "joint-stability")
    tables = [stability(s) for s in sources]
    shared = [a for a in tables[0] if all(a in t for t in tables[1:])]
    if not shared:
        raise NoCasesError("joint-stability: the runs have no probed atom in common; evaluate one benchmark")
    joint = {a: counting.all_of(t[a] for t in tables) for a in shared}
    atoms: dict[str, set[Hashable]] = {}
    for source in sources:
        atoms |= case_atoms(source)
    kinds: dict[str, Kind] = {case: kind for case, own in atoms.items() if (kind := kind_of(own, joint)) is not None}
    metrics: list[Metric] = [counting.rate("atom_stability", list(joint.values()), {"per": "fact", "runs": "all"})]
    for source, table in zip(sources, tables, strict=True):
        metrics += _per_run(source, table, kinds, atoms)
    stable = [{"atom": _text(a)} for a, v in joint.items() if v is True]
    lists = [{"case": c, "kind": k, "atoms": sorted(map(_text, atoms[c]))} for c, k in sorted(kinds.items())]
    counts = {k: sum(v == k for v in kinds.values()) for k in KINDS}
    row = {"runs": len(sources), "facts": len(shared), "jointly_stable": len(stable), **counts}
    unknown = len(atoms) - len(kinds)
    warnings = (f"{unknown} cases have a fact of unknown stability and are of no kind",) if unknown else ()
    files = {"stable-facts.jsonl": stable, "cases-by-kind.jsonl": lists}
    return Analysis("joint-stability", tuple(metrics), {"jointly stable": [row]}, files, warnings)


def _text(atom: Hashable) -> str:
    return atom if isinstance(atom, str) else "/".join(map(str, atom)) if isinstance(atom, tuple) else str(atom)


def kind_of(atoms: set[Hashable], joint: Mapping[Hashable, Truth]) -> Kind | None:
    """The kind of a case with these atoms; None where one of them is unknown."""
    values = [joint.get(a) for a in atoms]
    if None in values:
        return None
    return "pure" if all(values) else "mixed" if any(values) else "knowledge-gap"


def _per_run(
    source: Source,
    table: Mapping[Hashable, Truth],
    kinds: Mapping[str, Kind],
    atoms: Mapping[str, set[Hashable]],
) -> list[Metric]:
    gated = [g for g in gate_cases(source.rows, source.cases or None) if g.item.case in kinds]
    metrics = []
    for kind in KINDS:
        chosen = [g for g in gated if kinds[g.item.case] == kind]
        if not chosen:
            continue
        group = {"model": source.name, "kind": kind}
        items = [g.item for g in chosen]
        own = counting.clusters_of(items)
        outcomes = [(g.double, g.whole) for g in chosen]
        metrics.append(counting.failure("residual_failure", outcomes, items, group))
        metrics.append(counting.rate("composition", [g.whole for g in chosen], group, clusters=own))
        if kind != "pure":
            metrics.append(_controls(chosen, table, atoms, group))
    return metrics


def _controls(
    chosen: Sequence[Gated],
    table: Mapping[Hashable, Truth],
    atoms: Mapping[str, set[Hashable]],
    group: Mapping[str, Any],
) -> Metric:
    lacking = [g for g in chosen if any(table.get(a) is False for a in atoms[g.item.case])]
    values = [None if g.double is None else not g.double for g in lacking]
    note = f"refused by the gate; {len(chosen) - len(lacking)} more cases lack a fact in another run only"
    return counting.rate("control_passes", values, group, note=note)


def expectation(source: Source) -> Analysis:
    """Share of cases whose facts are all stable, by number of facts k, beside s^k with the per-fact stability s.

    s^k is what independent facts would give (table 9); facts that are known together make the observed share larger.
    """
    table = stability(source)
    known = [v for v in table.values() if v is not None]
    if not known:
        raise NoCasesError(f"{source.name}: no probed atom; joint stability needs paraphrased probes")
    s = sum(known) / len(known)
    by_k: dict[int, list[Truth]] = {}
    for own in case_atoms(source).values():
        by_k.setdefault(len(own), []).append(counting.all_of(table.get(a) for a in own))
    metrics = [counting.rate("atom_stability", list(table.values()), {"per": "fact"})]
    rows = []
    for k, values in sorted(by_k.items()):
        metrics.append(counting.rate("jointly_stable", values, {"facts": k}))
        share = metrics[-1].value
        expected = statistics.joint_stability(s, k)
        ratio = share / expected if share is not None and expected else None
        rows.append({"facts": k, "n": metrics[-1].n, "observed": share, "expected": expected, "ratio": ratio})
    return Analysis("stability-expectation", tuple(metrics), {"s^k": rows})
