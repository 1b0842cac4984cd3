"""``rendered.json``: the text around each prompt that a chat template or the tokenizer added to it.

    sent = read_rendered("runs/demo/control--mixed")
    sent.text(key, prompt)

A template nearly always puts the same text before and after a prompt, so those two texts are stored once. The text is
decoded from the token ids that were fed: it shows what the model saw, not what a template should have produced.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...errors import ComposcopeError
from ...evaluation.asks import Ask, Response
from .folder import read_json, write_json


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


def rendered(tokenizer: Any, asks: Mapping[str, Ask], responses: Mapping[str, Response]) -> dict[str, Any]:
    """``templates``: pairs of text before and after a prompt; ``asks``: each ask's pair number or whole text.

    Asks whose engine returned no prompt ids are left out: how their server wrote them is unknown.
    """
    from ...probes.single_cases import decode  # loads torch, which reading does not need

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
