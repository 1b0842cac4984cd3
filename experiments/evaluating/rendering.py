"""Prompts as they were sent: what the chat template made of each, kept in ``rendered.json`` beside the asks.

Nearly always a template puts the same text before and after a prompt; those are stored once. The text is decoded from
the token ids that were fed, so it shows what the model saw and not what a template should have made.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ...evaluation.asks import Ask, Response
from ...probes.by_case.entries import decode
from ..run import write_json


def rendered(tokenizer: Any, asks: Mapping[str, Ask], responses: Mapping[str, Response]) -> dict[str, Any]:
    """``templates``: pairs of text before and after a prompt; ``asks``: a number of a pair, or a whole text, by ask.

    Asks whose engine returned no prompt ids are missing: how their server wrote them is not known.
    """
    templates: dict[tuple[str, str], int] = {}
    found: dict[str, int | str] = {}
    for key, ask in asks.items():
        ids = responses[key].prompt_ids if key in responses else None
        if ids is None:
            continue
        text = decode(tokenizer, ids)
        # The last occurrence: worked examples stand before the question.
        before, mark, after = text.rpartition(ask.prompt)
        found[key] = templates.setdefault((before, after), len(templates)) if mark else text
    return {"schema": 1, "templates": [list(t) for t in templates], "asks": found}


def save_rendered(
    folder: Path, tokenizer: Any, asks: Mapping[str, Ask], responses: Mapping[str, Response]
) -> Path | None:
    """Write ``rendered.json`` into a run; nothing where no tokenizer is at hand."""
    return None if tokenizer is None else write_json(folder / "rendered.json", rendered(tokenizer, asks, responses))
