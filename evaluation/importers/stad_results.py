"""STaD's evaluated records as graded rows, so that every metric can be computed from its released shape.

In these files a judge that failed is -1, or 0 where its reply could not be parsed: the latter cannot be told from a
wrong answer any more. Solved items have no scaffold scores; files of the last stage hold failed items only.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ...errors import InputError
from ..asks import Outcome
from ..benchmarks.stad import WHAT, StadItem, item_from_record, score
from ..gold import typed_answer
from ..graded import Graded
from ..reading import objects


def read_results(path: str | Path, model: str | None = None) -> tuple[list[Graded], list[str]]:
    """Graded rows (``whole``, ``part:i``, ``scaffold:j``) of a file with scores, and warnings about the file.

    Raises ``InputError`` for a file without any score, or whose records have another shape.
    """
    rows: list[Graded] = []
    records = list(objects(path, WHAT))
    stem = Path(path).stem
    for n, (where, record) in enumerate(records):
        item = item_from_record(record, f"{stem}-{n:04d}", where)
        rows += _rows(item, record, model, where)
    if not rows:
        raise InputError(f"{path}: no record has evaluation_score, decomposition_score or scaffolding_score")
    return rows, _warnings([record for _, record in records], str(path))


def _rows(item: StadItem, record: Mapping[str, Any], model: str | None, where: str) -> list[Graded]:
    rows = []
    if "evaluation_score" in record:
        text = str(record.get("evaluation", ""))
        rows.append(_row(item, "whole", record["evaluation_score"], text, item.answer, model))
    for field, prefix, first, n in (
        ("decomposition", "part", 0, len(item.steps)),
        ("scaffolding", "scaffold", 1, len(item.steps) - 1),
    ):
        scores = _scores(record.get(f"{field}_score"), field, where)
        if scores and n >= 0 and item.steps and len(scores) != n:
            raise InputError(f"{where}: {len(scores)} scores in {field}_score for {n} {field}s; they must be as many")
        texts = record.get(f"{field}_evaluation") or []
        for i, value in enumerate(scores):
            gold = item.answer if prefix == "scaffold" else (item.steps[i].answer if i < len(item.steps) else None)
            text = str(texts[i]) if i < len(texts) else ""
            rows.append(_row(item, f"{prefix}:{i + first}", value, text, gold, model))
    return rows


def _scores(value: Any, field: str, where: str) -> Sequence[Any]:
    """A list, or the object with one list in it that the released code writes."""
    if isinstance(value, dict):
        value = value.get(field, next(iter(value.values()), None))
    if value is None:
        return []
    if not isinstance(value, list):
        raise InputError(f"{where}: {field}_score is {value!r}; give a list, or an object with a list")
    return value


def _row(item: StadItem, role: str, value: Any, text: str, gold: str | None, model: str | None) -> Graded:
    verdict = score(value)
    outcome: Outcome = "invalid" if verdict is None else "correct" if verdict else "incorrect"
    skills = tuple(s.skill or "" for s in item.steps)
    return Graded(
        case=item.id,
        role=role,
        outcome=outcome,
        benchmark="stad",
        depth=len(item.steps) or None,
        skills=skills if any(skills) else (),
        kind="step" if role.startswith("part:") else None,
        model=model,
        reason=None if verdict is not None else f"score {value!r}",
        answer=text or None,
        gold=None if gold is None else typed_answer(gold)[0],
        match="judge",
    )


def _warnings(records: Sequence[Mapping[str, Any]], path: str) -> list[str]:
    found = []
    texts = sum(isinstance(r.get("evaluation_score"), str) for r in records)
    if texts:
        found.append(f"{path}: {texts} evaluation_score values are text; read as numbers")
    scored = [score(r["evaluation_score"]) for r in records if "evaluation_score" in r]
    failed = sum(s is None for s in scored)
    if failed:
        found.append(f"{path}: {failed} originals were not judged; invalid, not wrong")
    if scored and not any(scored) and any("scaffolding_score" in r for r in records):
        found.append(f"{path}: failed items only; accuracies need the file with all originals scored")
    return found
