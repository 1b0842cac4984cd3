"""Runs without a folder: what a figure reads of a run, and rows of answers, a letter each."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

from composcope.evaluation.graded import Graded


def bare_run(**about: Any) -> Any:
    given = {"name": "r", "model": "m", "benchmark": "b", "protocol": "double-gate", "path": Path("r"), "about": {},
             "study": {}, "commands": [], "seed": 7, "metrics": [], "graded": [], "cases": {},
             "probe": lambda _: None}  # fmt: skip
    return SimpleNamespace(**given | about)


def answers(*outcomes: str, roles: str = "whole part:0 part:1 code", cluster: str | None = None) -> list[Graded]:
    named: dict[str, Any] = {"1": "correct", "0": "incorrect", "?": "invalid"}
    asked = [(i, *of) for i, letters in enumerate(outcomes) for of in zip(roles.split(), letters, strict=True)]
    return [Graded(f"c{i}", role, named[one], cluster=cluster and f"{cluster}{i // 2}") for i, role, one in asked]
