"""Find which gates each case passed, and the k of its scaffold ladder, for the filters of the case browser."""

from __future__ import annotations

from typing import Any

from ...evaluation.protocols import counting
from ...evaluation.protocols.collapse_depth import Gated
from ...evaluation.protocols.double_gate import gate_cases
from ..run.reader import RunData

PASSED, ATOMS, PARTS, OPEN = "passed every gate", "stopped at the atoms", "stopped at the parts", "not decided"
GATES = (PASSED, ATOMS, PARTS, OPEN)


def gates(run: RunData) -> dict[str, str]:
    """For each case, the gate that stopped it, or that it passed every gate.

    The atoms gate needs every wording of every atom right; the parts gate needs every sub-question right. A case that
    fails both is stopped at the atoms, which come first. An answer that could not be judged leaves a gate undecided
    unless another answer fails it. Cases without parts are left out.
    """
    cases = run.cases if any(":paraphrase:" in r.role for r in run.graded) else None
    compat = run.config.asking.compat if run.config else None
    found: dict[str, str] = {}
    for gated in gate_cases(counting.published(run.graded, compat), cases):
        if gated.item.n_parts:
            found.setdefault(gated.item.case, _stopped(gated))
    return found


def _stopped(gated: Gated) -> str:
    if gated.has_atoms and gated.atom is False:
        return ATOMS
    if gated.sub is False:
        return PARTS
    return PASSED if gated.double is True else OPEN


def ladder_k(run: RunData) -> dict[str, Any]:
    """k of each case, from the run's own case sets: 0 if solved unaided, the level that was enough, -1 if none was."""
    names = ("unaided", "scaffold-k", "intractable")
    sets = [run.case_sets[n] for n in names if n in run.case_sets]
    return {e.case: e.value for found in sets for e in found.entries if e.value is not None}
