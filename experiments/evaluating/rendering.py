"""Saves prompts as they were sent, in ``rendered.json`` next to the asks: each ask's text after the chat template.

A template nearly always puts the same text before and after a prompt, so those two texts are stored once. The text is
decoded from the token ids that were fed: it shows what the model saw, not what a template should have produced.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ...evaluation.asks import Ask, Response
from ...probes.by_case.entries import decode
from ..run import write_json


def rendered(tokenizer: Any, asks: Mapping[str, Ask], responses: Mapping[str, Response]) -> dict[str, Any]:
    """``templates``: pairs of text before and after a prompt; ``asks``: each ask's pair number or whole text.

    Asks whose engine returned no prompt ids are left out: how their server wrote them is unknown.
    """
    templates: dict[tuple[str, str], int] = {}
    found: dict[str, int | str] = {}
    for key, ask in asks.items():
        ids = responses[key].prompt_ids if key in responses else None
        if ids is None:
            continue
        text = decode(tokenizer, ids)
        # The last occurrence, because worked examples come before the question.
        before, mark, after = text.rpartition(ask.prompt)
        found[key] = templates.setdefault((before, after), len(templates)) if mark else text
    return {"schema": 1, "templates": [list(t) for t in templates], "asks": found}


def save_rendered(
    folder: Path, tokenizer: Any, asks: Mapping[str, Ask], responses: Mapping[str, Response]
) -> Path | None:
    """Write ``rendered.json`` into a run; does nothing without a tokenizer."""
    return None if tokenizer is None else write_json(folder / "rendered.json", rendered(tokenizer, asks, responses))
