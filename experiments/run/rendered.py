"""Reads ``rendered.json``: the text around each prompt that a chat template or the tokenizer added to it.

    sent = read_rendered("runs/demo/control--mixed")
    sent.text(key, prompt)

``evaluating.rendering`` writes it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...errors import ComposcopeError
from .folder import read_json


@dataclass(frozen=True)
class Rendered:
    """What the chat template made of prompts."""

    templates: Sequence[Sequence[str]] = ()
    """Pairs of text before and after a prompt."""
    asks: Mapping[str, Any] | None = None
    """For each ask the number of its pair, or its whole text where the prompt is not in it."""

    def around(self, key: str) -> Sequence[str] | None:
        """The text before and after the prompt of an ask; None if it is not known."""
        how = (self.asks or {}).get(key)
        return self.templates[how] if isinstance(how, int) and 0 <= how < len(self.templates) else None

    def whole(self, key: str) -> str | None:
        """The whole text of an ask whose prompt is not in it; None for any other."""
        how = (self.asks or {}).get(key)
        return how if isinstance(how, str) else None

    def text(self, key: str, prompt: str) -> str:
        """An ask as it was put to the model: the prompt alone, where what was added to it is not known."""
        before, after = self.around(key) or ("", "")
        return self.whole(key) or f"{before}{prompt}{after}"


def read_rendered(run: Path) -> Rendered:
    """The texts around a run's prompts; empty if the run has none, or if they cannot be read."""
    path = run / "rendered.json"
    if not path.is_file():
        return Rendered()
    try:
        found = read_json(path)
    except ComposcopeError:
        return Rendered()
    return Rendered(found.get("templates") or (), found.get("asks") or {})
