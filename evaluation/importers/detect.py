"""Which of the known result files a file is."""

from __future__ import annotations

import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path

from ...errors import InputError
from .. import reading
from ..benchmarks.stad_results import read_results
from .bamboogle_results import read_bamboogle_results
from .base import Imported, Options
from .inspect_logs import read_inspect
from .lm_eval import read_lm_eval


def _stad(path: str | Path, options: Options) -> Imported:
    rows, warnings = read_results(path, options.model)
    return Imported(rows, [], warnings)


KINDS: Mapping[str, Callable[[str | Path, Options], Imported]] = {
    "lm-eval": read_lm_eval,
    "inspect": read_inspect,
    "bamboogle": read_bamboogle_results,
    "stad": _stad,
}
"""Readers by name: lm-evaluation-harness samples, inspect_ai logs, Bamboogle results, STaD's evaluated records."""


WHAT = f"give a file of one of the kinds {', '.join(KINDS)}"


def detect(path: str | Path) -> str:
    """The name of the reader that fits a file. Raises ``InputError`` where none does."""
    found = reading.existing(path, WHAT)
    if zipfile.is_zipfile(found):
        return "inspect"
    text = reading.text(found, WHAT)
    if not text.strip():
        raise InputError(f"{path}: is empty; {WHAT}")
    for candidate in (text, text.lstrip().split("\n", 1)[0]):
        try:
            raw = reading.parse(candidate, str(path))
        except InputError:
            continue
        if not isinstance(raw, dict):
            break
        for kind, names in _SIGNS.items():
            if names <= raw.keys():
                return kind
    raise InputError(f"{path}: none of the known kinds; say which with --from {'|'.join(KINDS)}")


_SIGNS = {
    "bamboogle": {"per_question_results"},
    "inspect": {"eval", "version"},
    "lm-eval": {"doc_id", "doc"},
    "stad": {"question", "answer"},
}


def read(path: str | Path, kind: str | None = None, options: Options | None = None) -> Imported:
    """Read a result file of the given kind, or of the kind that it is. Raises ``InputError``."""
    kind = kind or detect(path)
    if kind not in KINDS:
        raise InputError(f"--from {kind}: use one of {', '.join(KINDS)}")
    try:
        return KINDS[kind](path, options or Options())
    except (TypeError, KeyError, AttributeError, ValueError, IndexError) as e:
        # Files of other programs may hold anything anywhere; each field that matters has its own message before.
        why = f"{type(e).__name__}: {e}"[:160]
        raise InputError(
            f"{path}: holds something that results of {kind} do not ({why}); is --from {kind} right?"
        ) from e
