"""Positive control of patching: a state that is known to carry what is missing, beside one that is not.

Into the prompt's end of a failed whole goes the state at the end of the prompt of its own last part, whose answer is
what the whole has to give; and, for comparison, that of another failure's last part.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...evaluation.statistics import clopper_pearson
from ...probes.examples import Example
from ...probes.result import Row

LAST_PART = "part:1"


def own_part_donors(lm: Any, examples: Sequence[Example], n: int) -> list[Row]:
    """Rows ``own part`` and ``another case's part`` per layer: of up to ``n`` failures how many are put right."""
    from ...probes import patching
    from ...probes.patching.examples import graders, new_tokens

    parts = {e.case: e for e in examples if e.role == LAST_PART and e.group == "failure"}
    wholes = [e for e in examples if e.role == "whole" and e.group == "failure" and e.case in parts][:n]
    if len(wholes) < 2:
        return []
    rows: list[Row] = []
    others = [*wholes[1:], wholes[0]]
    for name, givers in (("own part", wholes), ("another case's part", others)):
        donors = [parts[e.case] for e in givers]
        got = patching.prompt_end_sweep(
            lm, [e.prompt_ids for e in donors], [e.prompt_ids for e in wholes], [(i, i) for i in range(len(wholes))],
            max_new_tokens=new_tokens(lm, [*wholes, *donors]), donor_answers=[e.answer_ids for e in donors],
            recipient_answers=[e.answer_ids for e in wholes], graders=graders(lm, wholes, donors), controls=(),
        )  # fmt: skip
        for row in got.table:
            if row["quantity"] == "corrected_rate" and row["group"] == "donor":
                k, of = int(row["count"]), int(row["n"])
                ends = clopper_pearson(k, of)
                rows.append({"quantity": f"put right by a state of {name}, layer {row['layer']}", "group": name,
                             "layer": row["layer"], "n": of, "count": k, "value": k / of if of else None,
                             "low": ends.low, "high": ends.high, "interval": ends.method})  # fmt: skip
    return rows
