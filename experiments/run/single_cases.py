"""What a run keeps of single cases: numbers of all, maps, tokens and sweeps of a few, and prompts as they were sent.

    kept = read_single_cases(run.path, "lookback")  # probes/lookback/cases
    kept.entries[0].about["tokens"], kept.entries[0].arrays["ratio"]
    read_values(run.path, "lookback")[0].value  # probes/lookback/values.csv
    read_rendered(run.path).text(key, prompt)  # rendered.json

A chat template nearly always puts the same text before and after a prompt, so ``rendered.json`` has them once. They are
decoded from the token ids that were fed: what the model saw, not what a template should have produced.
"""

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...errors import ComposcopeError, InputError
from ...evaluation.asks import Ask, Response
from ...evaluation.case import shares
from ...evaluation.engines.text import verbatim
from ...files import read_csv
from .folder import read_json, write_json
from .reader import Array, Row, read_tensors
from .schema import CaseIndex, checked


@dataclass(frozen=True)
class SavedEntry:
    """One prompt of one case."""

    about: Row
    """Case, role, kind, group, tokens and spans, the settings, and ``axes``: the axis names of each array."""
    arrays: dict[str, Array]


@dataclass(frozen=True)
class SavedCases:
    """The entries of a probe."""

    about: Row
    """How many cases were kept (``note``, ``cases_per_group``), and what was left out (``left_out``)."""
    entries: Sequence[SavedEntry]


def read_single_cases(run: Path, probe: str) -> SavedCases | None:
    """The single cases that a probe kept; None if it kept none.

    Raises ``InputError`` for an index, and ``SafetensorError`` for tensors, that cannot be read.
    """
    folder = run / "probes" / probe / "cases"
    index = folder / "index.json"
    if not index.is_file():
        return None
    about = checked(CaseIndex, read_json(index), str(index), "run the probe again").facts()
    mine: dict[str, dict[str, Array]] = {}
    for name, values in read_tensors(folder / "tensors.safetensors").items():
        at, _, what = name.partition(".")
        mine.setdefault(at, {})[what] = values
    entries = [SavedEntry(entry, mine.get(str(i), {})) for i, entry in enumerate(about.pop("entries", []))]
    return SavedCases(about, entries)


@dataclass(frozen=True)
class CaseValue:
    """A number that a probe measured at one prompt of a case."""

    case: str
    role: str
    kind: str
    quantity: str
    value: float
    """NaN where it is undefined."""
    shares: Hashable
    """What the case shares with others (``evaluation.dependence``); None if nothing."""


def read_values(run: Path, probe: str) -> list[CaseValue]:
    """A probe's numbers, in the order of the file; none if it has no numbers of single cases.

    Raises ``InputError`` for a line without case, role, kind, quantity and value.
    """
    path, found = run / "probes" / probe / "values.csv", list[CaseValue]()
    for n, row in enumerate(read_csv(path)[1] if path.is_file() else (), start=2):
        try:
            case, role, kind, quantity = (str(row[key]) for key in ("case", "role", "kind", "quantity"))
            value = float(row["value"] or math.nan)
        except (KeyError, TypeError, ValueError) as e:
            raise InputError(f"{path}:{n}: no case, role, kind, quantity and value; run the probe again") from e
        crossed = [c for c in (row.get("crossed") or "").split("; ") if c]
        found.append(CaseValue(case, role, kind, quantity, value, shares(row.get("cluster") or None, crossed)))
    return found


@dataclass(frozen=True)
class Rendered:
    """What the chat template made of prompts."""

    templates: Sequence[tuple[str, str]] = ()
    """Pairs of text before and after a prompt."""
    asks: Mapping[str, Any] | None = None
    """For each ask the number of its pair, or its whole text where the prompt is not in it."""

    def around(self, key: str) -> tuple[str, str] | None:
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
        return checked(Rendered, read_json(path), str(path))
    except ComposcopeError:
        return Rendered()


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
        text = verbatim(tokenizer, ids)
        # The last occurrence, because worked examples come before the question.
        before, mark, after = text.rpartition(ask.prompt)
        found[key] = templates.setdefault((before, after), len(templates)) if mark else text
    return {"schema": 1, "templates": [list(t) for t in templates], "asks": found}


def save_rendered(
    folder: Path, tokenizer: Any, asks: Mapping[str, Ask], responses: Mapping[str, Response]
) -> Path | None:
    """Write ``rendered.json`` into a run; does nothing without a tokenizer."""
    return None if tokenizer is None else write_json(folder / "rendered.json", rendered(tokenizer, asks, responses))
