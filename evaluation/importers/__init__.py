"""Result files of other programs as graded rows: stored verdicts are kept, contradictions are reported.

    read("samples_gsm8k.jsonl").rows

``KINDS`` has the readers: ``lm_eval`` (lm-evaluation-harness), ``inspect_logs`` (inspect_ai), ``papers`` (STaD,
Bamboogle), ``plain`` (any rows with answer and gold). ``base`` has the types, and grades stored responses again.
"""

import zipfile
from collections.abc import Callable, Collection, Mapping
from pathlib import Path

from ...errors import InputError
from .. import text_files
from .base import Imported, Options
from .inspect_logs import read_inspect
from .lm_eval import read_lm_eval
from .papers import read_bamboogle_results, read_stad_results
from .plain import columns_of, read_plain

__all__ = ["KINDS", "Imported", "Options", "detect", "read"]
KINDS: Mapping[str, Callable[[str | Path, Options], Imported]] = {
    "lm-eval": read_lm_eval,
    "inspect": read_inspect,
    "bamboogle": read_bamboogle_results,
    "stad": read_stad_results,
    "rows": read_plain,
}
"""Readers by name: lm-evaluation-harness samples, inspect_ai logs, Bamboogle results, STaD's evaluated records, and
plain rows of (question, response, gold)."""
_OF_ONE_KIND = {"filter": "lm-eval", "whole": "bamboogle", "response_field": "rows", "gold_field": "rows"}
WHAT = f"give a file of one of the kinds {', '.join(KINDS)}"


def detect(path: str | Path, options: Options | None = None) -> str:
    """The name of the reader that fits a file. Raises ``InputError`` where none does.

    Options that only plain rows have say that the file holds those.
    """
    found = text_files.existing(path, WHAT)
    if options is not None and (options.response_field or options.gold_field):
        return "rows"
    if zipfile.is_zipfile(found):
        return "inspect"
    if found.suffix.lower() in (".csv", ".tsv"):
        if not (names := columns_of(found)):
            raise InputError(f"{path}: is empty; {WHAT}")
        text_files.check_commas(names, path)
        return "rows" if _kind_of(names) == "stad" else _by_fields(names, path)
    text = text_files.text(found, WHAT)
    if not text.strip():
        raise InputError(f"{path}: is empty; {WHAT}")
    for candidate in (text, text.lstrip().split("\n", 1)[0]):
        try:
            raw = text_files.parse(candidate, str(path))
        except InputError:
            continue
        if isinstance(raw, list) and raw:
            raw = raw[0]
        if not isinstance(raw, dict):
            break
        return _by_fields(raw, path)
    return _by_fields((), path)


def _kind_of(names: Collection[str]) -> str | None:
    kind = next((kind for kind, signs in _SIGNS.items() if signs <= set(names)), None)
    # Rows of responses often use this name for the gold answer; STaD's records have no field of this name.
    return None if kind == "stad" and "response" in names else kind


def _by_fields(names: Collection[str], path: object) -> str:
    kind = _kind_of(names)
    if kind is None:
        has = f" (it has the fields {', '.join(sorted(map(str, names))[:12])})" if names else ""
        raise InputError(
            f"{path}: none of the known kinds{has}; say which with --from {'|'.join(KINDS)}, and for rows what holds "
            "response and gold answer with --response-field and --gold-field"
        )
    return kind


_SIGNS = {
    "bamboogle": {"per_question_results"},
    "inspect": {"eval", "version"},
    "lm-eval": {"doc_id", "doc"},
    "rows": {"response", "gold"},
    "stad": {"question", "answer"},
}


def read(path: str | Path, kind: str | None = None, options: Options | None = None) -> Imported:
    """Read a result file of the given kind, or of the kind that it is. Raises ``InputError``."""
    kind = kind or detect(path, options)
    if kind not in KINDS:
        raise InputError(f"--from {kind}: use one of {', '.join(KINDS)}")
    for name, of in _OF_ONE_KIND.items():
        if kind != of and getattr(options, name, None) is not None:
            raise InputError(f"--{name.replace('_', '-')} is for {of}, and {path} is read as {kind}; leave it out")
    try:
        return KINDS[kind](path, options or Options())
    except (TypeError, KeyError, AttributeError, ValueError, IndexError) as e:
        # Files of other programs may contain anything; the fields that matter were checked before.
        why = f"{type(e).__name__}: {e}"[:160]
        raise InputError(
            f"{path}: holds something that results of {kind} do not ({why}); is --from {kind} right?"
        ) from e
