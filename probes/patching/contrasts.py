"""What the donor's state does beyond a control's, recipient by recipient.

A donor's state changes an answer also because it is another state. Another failure's state (``random``) and noise as
large as the difference (``noise``) are other states, too; what they do not do is the donor's own.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ..contrast import adjust, paired
from ..result import Row
from ..tables import settled_cells
from .outcomes import RATES, Outcome

AGAINST = ("random", "noise")
QUANTITIES = ("flip_rate", "abstain_rate", "corrected_rate", "kl_from_donor", "donor_log_prob", "logit_difference")


def against_controls(outcomes: Sequence[Outcome], layers: Sequence[int], *, seed: int = 0) -> list[Row]:
    """Rows ``donor - random`` and ``donor - noise`` of every quantity and layer: paired over recipients.

    Several donors of one recipient are averaged. Rates get a sign-flip permutation, the rest a paired t test; Holm over
    the layers of a quantity and control, each a declared family.
    """
    rows: list[Row] = []
    for control in AGAINST:
        for quantity in QUANTITIES:
            found: list[Row] = []
            for i, layer in enumerate(layers):
                sides = settled_cells({s: _by_recipient(outcomes, s, quantity, i) for s in ("donor", control)})
                if all(sides.values()):
                    test = "permutation" if quantity in RATES else "auto"
                    row = paired(sides, quantity=quantity, test=test, seed=seed).table[0]
                    found.append({**row, "layer": layer})
            rows += adjust(found, f"{quantity}: donor - {control}, all layers")
    return rows


def _by_recipient(outcomes: Sequence[Outcome], source: str, quantity: str, i: int) -> dict[str, float]:
    """Mean over a recipient's donors at one layer; what is undefined is left out."""
    values: dict[str, list[float]] = {}
    for o in outcomes:
        x = float(o.values[quantity][i])
        if o.source == source and math.isfinite(x):
            values.setdefault(str(o.recipient), []).append(x)
    return {recipient: float(np.mean(v)) for recipient, v in values.items()}
