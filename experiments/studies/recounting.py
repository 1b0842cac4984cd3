"""The same answers graded and counted as a paper does, so that its numbers and ours can stand side by side."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from ...evaluation import pipeline
from ...evaluation.cases import case_from_dict
from ...evaluation.engines.base import Recorded
from ...evaluation.grading import grade
from ...evaluation.journal import Journal
from .. import asking
from ..run import read_json
from ..run.reader import read_cases_lines, read_config


def recount(folder: str | Path, compat: str) -> list[dict[str, Any]]:
    """A run's metrics under another way to grade and count; nothing is asked and nothing written.

    Raises ``NotAskedError`` when it leads to an ask that the run did not put, ``JournalError`` for a damaged journal.
    """
    path = Path(folder)
    config, manifest = read_config(path), read_json(path / "manifest.json")
    how = replace(asking.from_config(config.get("asking")), compat=compat, judge=None)
    protocol = asking.protocol(
        config["protocol"], config.get("format"), config.get("prompting") or "chat", how, config.get("seed") or 0
    )
    cases = [case_from_dict(raw, f"{path / 'cases.jsonl'}") for raw in read_cases_lines(path)]
    engine = manifest.get("engine", {})
    with Journal(path / "journal", reuse=True) as journal:
        recorded = Recorded(engine.get("identity", {}), engine.get("provenance", {}), journal.contents.failures)
        found = pipeline.evaluate(
            cases, protocol, recorded, journal, grade=partial(grade, compat=compat), model=config["model"]
        )
    return [m.to_dict() for m in protocol.reduce(found.graded, {c.id: c for c in cases}).metrics]


def find(rows: list[dict[str, Any]], metric: str, group: Mapping[str, Any]) -> dict[str, Any] | None:
    """The row of a metric whose group is exactly this one."""
    return next((r for r in rows if r["metric"] == metric and r["group"] == dict(group)), None)
