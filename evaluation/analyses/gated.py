"""Cases that pass the double gate in several runs: prompt formats, facts that several models know, and thinking."""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from itertools import combinations
from typing import Literal

from ...errors import InputError, NoCasesError
from .. import prompts, statistics
from ..graded import Graded
from ..grading.text import normalize
from ..metrics import Metric
from ..protocols import counting
from ..protocols.counting import Truth
from ..protocols.double_gate import Gated, atom_table, gate_cases
from .base import Analysis, Source, distinct, first_repeats

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
    found: dict[str, set[Hashable]] = {
        c.id: {p.atom or (c.id, f"part:{i}") for i, p in enumerate(c.parts) if p.atom or p.paraphrases}
        for c in source.cases.values()
    }
    for row in source.rows:
        part, mark, _ = row.role.partition(":paraphrase:")
        if mark and part.startswith("part:") and row.case not in source.cases:
            found.setdefault(row.case, set()).add(row.atom or (row.case, part))
    return {case: atoms for case, atoms in found.items() if atoms}


def joint_stability(sources: Sequence[Source]) -> Analysis:
    """Jointly stable facts over the runs, the three kinds of cases, and each run's results on them.

    A fact is jointly stable if every run answers all its wordings right. A case is *pure* if all its facts are, a
    *knowledge-gap* control if none is, *mixed* otherwise. Knowledge-gap and mixed cases are controls: a working gate
    excludes a case whenever the model does not know one of its facts.

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
        for case, own in case_atoms(source).items():
            atoms.setdefault(case, set()).update(own)
    kinds: dict[str, Kind] = {case: kind for case, own in atoms.items() if (kind := kind_of(own, joint)) is not None}
    metrics: list[Metric] = [
        counting.rate("atom_stability", list(joint.values()), {"per": "fact", "runs": "all"}, of=None)
    ]
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
    return "/".join(map(str, atom)) if isinstance(atom, tuple) else str(atom)


def kind_of(atoms: set[Hashable], joint: Mapping[Hashable, Truth]) -> Kind | None:
    """The kind of a case with these atoms; None where one of them is unknown."""
    values = [joint.get(a) for a in atoms]
    if None in values:
        return None
    return "pure" if all(values) else "mixed" if any(values) else "knowledge-gap"


def _per_run(
    source: Source, table: Mapping[Hashable, Truth], kinds: Mapping[str, Kind], atoms: Mapping[str, set[Hashable]]
) -> list[Metric]:
    gated = [g for g in gate_cases(source.rows, source.cases or None) if g.item.case in kinds]
    metrics = []
    for kind in KINDS:
        chosen = [g for g in gated if kinds[g.item.case] == kind]
        if not chosen:
            continue
        group = {"model": source.name, "kind": kind}
        items = [g.item for g in chosen]
        outcomes = [(g.double, g.whole) for g in chosen]
        metrics.append(counting.failure("residual_failure", outcomes, items, group))
        metrics.append(counting.rate("composition", [g.whole for g in chosen], group, of=items))
        if kind != "pure":
            lacking = [counting.opposite(counting.all_of(table.get(a) for a in atoms[g.item.case])) for g in chosen]
            refused = [(lacks, counting.opposite(g.double)) for lacks, g in zip(lacking, chosen, strict=True)]
            note = f"refused by the gate; {lacking.count(False)} more cases lack a fact in another run only"
            metrics.append(counting.given("control_passes", refused, items, group, note))
    return metrics


def expectation(source: Source) -> Analysis:
    """Share of cases whose facts are all stable, by number of facts k, beside s^k with the per-fact stability s.

    s^k is what independent facts would give (table 9); facts that are known together make the observed share larger.
    """
    table = stability(source)
    known = [v for v in table.values() if v is not None]
    if not known:
        raise NoCasesError(f"{source.name}: no probed atom; joint stability needs paraphrased probes")
    s = sum(known) / len(known)
    by_k: dict[int, list[tuple[Truth, Hashable]]] = {}
    for own in case_atoms(source).values():
        by_k.setdefault(len(own), []).append((counting.all_of(table.get(a) for a in own), frozenset(own)))
    metrics = [counting.rate("atom_stability", list(table.values()), {"per": "fact"}, of=None)]
    rows = []
    for k, found in sorted(by_k.items()):
        values, about = [v for v, _ in found], [atoms for _, atoms in found]
        metrics.append(counting.rate("jointly_stable", values, {"facts": k}, of=None, clusters=about))
        share = metrics[-1].value
        expected = s**k
        ratio = share / expected if share is not None and expected else None
        rows.append({"facts": k, "n": metrics[-1].n, "observed": share, "expected": expected, "ratio": ratio})
    return Analysis("stability-expectation", tuple(metrics), {"s^k": rows})


Answers = Mapping[str, tuple[Graded, str | None]]
"""By case, the whole's row and the text of the response."""


def compare_formats(sources: Sequence[Source], reference: str | None = None) -> Analysis:
    """Accuracy, abstention and closing-tag rate of each format, how often two give the same answer, and all of them.

    Every format is counted over the same cases, so that differences are due to the format, not the gate.

    A format is a separate run (one per format) or a further format of the reference run (roles ``whole:FORMAT``).
    ``reference`` names the run whose gates choose the cases (default: the first). Only cases with a whole in every
    format are compared; the others are counted. Abstaining is an answer, the same for all; a whole without a judgement
    leaves the comparisons of answers.

    Raises ``InputError`` where there are not two formats, ``NoCasesError`` where no case passes the gates.
    """
    distinct(sources, 1, "formats")
    by_name = {s.name: s for s in sources}
    if reference is not None and reference not in by_name:
        raise InputError(f"--reference {reference}: give one of {', '.join(by_name)}")
    gate = by_name[reference] if reference else sources[0]
    own = [g for g in gate_cases(gate.rows, gate.cases or None) if not g.item.repeat]
    passing = [g.item.case for g in own if g.double is True]
    formats = _formats(sources)
    if len(formats) < 2:
        raise InputError(f"formats: only {', '.join(formats)}; give runs in other formats of the same cases")
    shared = [c for c in passing if all(c in answers for answers in formats.values())]
    if not shared:
        raise NoCasesError(f"formats: none of the {len(passing)} gate-passing cases was asked in every format")
    metrics = [m for name, answers in formats.items() for m in _one(name, answers, shared)]
    metrics += [_agreement(pair, formats, shared) for pair in combinations(formats, 2)]
    if len(formats) > 2:
        metrics.append(_agreement(tuple(formats), formats, shared))
    left = len(passing) - len(shared)
    warnings = (f"{left} gate-passing cases were not asked in every format and are left out",) if left else ()
    return Analysis("formats", tuple(metrics), warnings=warnings + first_repeats(sources))


def _formats(sources: Sequence[Source]) -> dict[str, Answers]:
    found: dict[str, dict[str, tuple[Graded, str | None]]] = {}
    for source in sources:
        for row in source.rows:
            role, _, named = row.role.partition(":")
            if role != "whole" or row.repeat or named == "reversed":  # another question, not another format
                continue
            name = named or row.prompt or source.name
            if found.setdefault(name, {}).setdefault(row.case, (row, source.text(row)))[0] is not row:
                raise InputError(
                    f"formats: {source.name}: case {row.case!r} was asked in format {name!r} before; give runs of one "
                    "model, one for each format"
                )
    return dict(found)


def _one(name: str, answers: Answers, cases: Sequence[str]) -> list[Metric]:
    rows = [answers[c] for c in cases]
    group, near = {"prompt": name}, _near(row for row, _ in rows)
    right = [counting.truth(row) for row, _ in rows]
    abstained = [None if row.outcome == "invalid" else row.outcome == "abstained" for row, _ in rows]
    metrics = [
        counting.rate("composition", right, group, of=None, clusters=near),
        counting.rate("abstention", abstained, group, of=None, clusters=near),
    ]
    texts = [text for _, text in rows]
    if any(t is not None for t in texts):
        closed = [None if t is None else "</answer>" in t for t in texts]
        wanted = name in prompts.FORMATS and prompts.FORMATS[name].extract == "xml"
        note = None if wanted else "this format does not ask for tags"
        metrics.append(counting.rate("closing_tag", closed, group, of=None, clusters=near, note=note))
    return metrics


def answer_of(row: Graded) -> str | None:
    """The final answer as compared between formats; None where no answer can be compared."""
    if row.outcome == "abstained":
        return prompts.ABSTENTION
    if row.outcome == "invalid" or row.answer is None:
        return None
    return normalize(row.answer) or row.answer.strip()


def _agreement(names: Sequence[str], formats: Mapping[str, Answers], cases: Sequence[str]) -> Metric:
    values = []
    for case in cases:
        answers = [answer_of(formats[n][case][0]) for n in names]
        values.append(None if None in answers else len(set(answers)) == 1)
    metric = "agreement" if len(names) == 2 else "all_identical"
    near = _near(formats[names[0]][case][0] for case in cases)
    return counting.rate(metric, values, {"prompts": " = ".join(names)}, of=None, clusters=near)


def _near(rows: Iterable[Graded]) -> list[Hashable]:
    return [counting.near(row) for row in rows]


def recovery(plain: Source, other: Source) -> Analysis:
    """Recovery rate of the plain run's gate-passing failures, by depth, family and both, and the loss rate.

    Composition collapse, section 6 and App. S, T: the plain run fixes the set of failures, so the other run (chain of
    thought, thinking mode) needs no gate.

    A case that the other run did not ask, or whose answer is invalid there, is unknown and enters the bounds; so does
    one of which it is open whether it passes the gates, or fails. McNemar is over all gate-passing cases that both runs
    judged, by what they share.
    """
    wholes = {(r.case, r.repeat): r for r in other.rows if r.role == "whole"}
    every = gate_cases(plain.rows, plain.cases or None)
    metrics = [*_rates("recovery", every, wholes), *_rates("loss", every, wholes)]
    gated = [g for g in every if g.double is True and g.whole is not None]
    both = [(bool(g.whole), after, g.item) for g in gated if (after := _after(g, wholes)) is not None]
    own = counting.clusters_of([item for *_, item in both])
    test = statistics.mcnemar([b for b, *_ in both], [a for _, a, _ in both], own)
    row = {
        "plain": plain.name, "other": other.name, "n": test.n, "recovered": test.b_only, "lost": test.a_only,
        "test": test.test, "p": test.p,
    }  # fmt: skip
    missing = sum((g.item.case, g.item.repeat) not in wholes for g in gated)
    warnings = (f"{missing} gate-passing cases of {plain.name} are not in {other.name}",) if missing else ()
    return Analysis("recovery", tuple(metrics), {"paired": [row]}, warnings=warnings)


def _after(g: Gated, wholes: Mapping[tuple[str, int], Graded]) -> bool | None:
    row = wholes.get((g.item.case, g.item.repeat))
    return None if row is None else counting.truth(row)


def _rates(name: str, gated: list[Gated], wholes: Mapping[tuple[str, int], Graded]) -> list[Metric]:
    outcomes = {}
    for g in gated:
        after, succeeded = _after(g, wholes), counting.all_of([g.double, g.whole])
        inside, value = (g.failed, after) if name == "recovery" else (succeeded, counting.opposite(after))
        if inside is not False:
            outcomes[id(g.item)] = (inside, value)
    metrics = []
    note = "of the gate-passing failures" if name == "recovery" else "of the gate-passing successes"
    for group, items in counting.grouped([g.item for g in gated if id(g.item) in outcomes]):
        metrics.append(counting.given(name, [outcomes[id(item)] for item in items], items, group, note))
    return metrics
