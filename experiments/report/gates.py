"""Which gates each case passed, and the k of its scaffold ladder: what the case browser filters by."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...errors import ComposcopeError
from ...evaluation.cases import Case, case_from_dict
from ...evaluation.protocols import counting
from ...evaluation.protocols.base import Graded
from ...evaluation.protocols.double_gate import gate_cases
from ...evaluation.protocols.gated import Gated
from ..figures.io import RunData

PASSED, ATOMS, PARTS, OPEN = "passed every gate", "stopped at the atoms", "stopped at the parts", "not decided"
GATES = (PASSED, ATOMS, PARTS, OPEN)


def gates(run: RunData) -> dict[str, str]:
    """By case the gate that stopped it, or that it passed all.

    Atoms: every wording of every atom right; parts: every sub-question right. A case that fails both is stopped at the
    atoms, which come first. An answer that could not be judged leaves a gate open unless another answer shuts it.
    Cases without parts are missing; so is everything where graded rows cannot be read.
    """
    try:
        rows = [Graded.from_dict(r, f"{run.path / 'graded.jsonl'}:{n}") for n, r in enumerate(run.graded, 1)]
        cases = _cases(run) if any(":paraphrase:" in r.role for r in rows) else None
    except ComposcopeError:
        return {}
    compat = (run.config.get("asking") or {}).get("compat")
    found: dict[str, str] = {}
    for gated in gate_cases(counting.published(rows, compat), cases):
        if gated.item.n_parts:
            found.setdefault(gated.item.case, _stopped(gated))
    return found


def _stopped(gated: Gated) -> str:
    if gated.has_atoms and gated.atom is False:
        return ATOMS
    if gated.sub is False:
        return PARTS
    return PASSED if gated.double is True else OPEN


def _cases(run: RunData) -> Mapping[str, Case]:
    return {name: case_from_dict(raw, f"{run.path / 'cases.jsonl'}: {name}") for name, raw in run.cases.items()}


def ladder_k(run: RunData) -> dict[str, Any]:
    """k by case, as the run's own case sets say it: 0 unaided, the level that was enough, -1 for none."""
    names = ("unaided", "scaffold-k", "intractable")
    return {e["case"]: e["value"] for n in names for e in run.case_sets.get(n, []) if e.get("value") is not None}
