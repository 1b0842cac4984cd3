"""The text and numbers of the organisms' card, from what was measured when they were shipped; nothing is asked."""

from __future__ import annotations

import json
from typing import Any

from references.reduced import sentence

from composcope.experiments.organism import card, weights


def _stored() -> dict[str, Any]:
    return json.loads((weights.path("none").parent / "card.json").read_text(encoding="utf-8"))


def text() -> list[str]:
    return [sentence(line) for line in card.markdown(_stored()).splitlines() if line.strip()]


def rows() -> Any:
    """Counts of compositions, the rows whose spread is shown, and the spread where one seed lacks a dose."""
    found = _stored()
    del found["seeds"]["2"]["low"]
    spread = card._spread_rows(found["models"]["low"])["tables"]["Spread"]
    weak = {k: {**m, "tables": {**m["tables"], "Prompt formats": _worse(m)}} for k, m in found["models"].items()}
    return {
        "compositions": [card.composition_counts(name, 1, 700) for name in (*weights.DOSES, "crossed-both")],
        "spread rows": spread,
        "spread": card.spread(found["seeds"], list(found["models"])).splitlines(),
        "weak": card.weak_formats(weak),
        "nothing": card._cell({"n": 0}),
    }


def _worse(model: dict[str, Any]) -> list[dict[str, Any]]:
    """Accuracies in formats on both sides of nine tenths of the plain ones, and plain ones on both sides of a half."""
    shares = (0.5, 0.45, 0.44, 0.49, 0.2, 1.0, 0.9, 0.89)
    table = model["tables"]["Prompt formats"]
    return [{**row, "value": shares[i % len(shares)]} for i, row in enumerate(table)]


CALLS = {"text": text, "rows": rows}
