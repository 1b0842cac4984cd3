"""Runs without a folder: what figures, pages and tables read of a run, and rows of answers, a letter each."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

from composcope.evaluation.graded import Graded
from composcope.experiments.run.reader import RunData


class BareRun(SimpleNamespace):
    """Whatever a test gives it, and what follows from its case sets and rows."""

    groups = property(RunData.groups.func)
    by_case = property(RunData.by_case.func)


def bare_run(**about: Any) -> Any:
    given = {"name": "r", "model": "m", "benchmark": "b", "protocol": "double-gate", "path": Path("r"), "about": {},
             "study": {}, "commands": [], "seed": 7, "metrics": [], "graded": [], "cases": {}, "case_sets": {},
             "probe_names": [], "chance": None, "config": None, "counted": None, "warnings": (),
             "probe": lambda _: None}  # fmt: skip
    made = BareRun(**given)
    made.one = lambda name, **group: next((m for m in made.metrics if m.metric == name and m.group == group), None)
    made.__dict__.update(about)
    return made


def spaced(text: str) -> str:
    return text.replace("\u00a0", " ")


def answers(*outcomes: str, roles: str = "whole part:0 part:1 code", cluster: str | None = None) -> list[Graded]:
    named: dict[str, Any] = {"1": "correct", "0": "incorrect", "?": "invalid"}
    asked = [(i, *of) for i, letters in enumerate(outcomes) for of in zip(roles.split(), letters, strict=True)]
    return [Graded(f"c{i}", role, named[one], cluster=cluster and f"{cluster}{i // 2}") for i, role, one in asked]
