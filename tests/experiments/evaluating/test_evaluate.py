"""Asking and scoring: what the bars count, and what is handed to the end of a run."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from composcope.errors import InputError
from composcope.evaluation.graded import Graded
from composcope.experiments.evaluating import evaluate
from composcope.experiments.run import checks


class Said:
    """A reporter that keeps what it is told."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.counted: list[tuple[str, int, list[float]]] = []

    def say(self, line: str) -> None:
        self.lines.append(line)

    @contextmanager
    def bar(self, title: str, total: int, **_: Any) -> Iterator[Any]:
        self.counted.append((title, total, []))
        yield self.counted[-1][2].append


def test_a_bar_of_each_round_counts_its_asks_once() -> None:
    said: Any = Said()
    with evaluate.bars(said) as report:
        for round, done, total in ((1, 2, 5), (1, 5, 5), (2, 1, 3), (2, 3, 3)):
            report(SimpleNamespace(round=round, done=done, total=total))  # type: ignore[arg-type]
    assert said.counted == [("asking", 5, [2, 3]), ("asking, round 2", 3, [1, 2])]


def test_human_labels_given_to_score_are_compared_with_the_grades(
    synthetic: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = synthetic.make_run(tmp_path / "run", n=3, probes=())
    wholes = [(r["case"], r["outcome"]) for r in map(json.loads, (run / "graded.jsonl").read_text().splitlines())
              if r["role"] == "whole"]  # fmt: skip
    file = tmp_path / "labels.jsonl"
    file.write_text("".join(json.dumps({"case": c, "label": "correct"}) + "\n" for c, _ in wholes))
    given: dict[str, Any] = {}

    counted = SimpleNamespace(n_invalid=7)

    def finish(path: Path, cases: Any, protocol: Any, found: Any, compat: Any, labels: Any) -> Any:
        given.update(compat=compat, labels=labels, cases=[c.id for c in cases], path=path)
        return counted

    graded = SimpleNamespace(warnings=["odd"], graded=[], responses={})
    monkeypatch.setattr(evaluate, "finish", finish)
    monkeypatch.setattr(evaluate, "_graded_again", lambda run, cases, how, bar: (how.compat, graded))
    said: Any = Said()
    assert evaluate.rescore(run, said, "collapse", file) is counted
    assert json.loads((run / "manifest.json").read_text())["n_invalid"] == 7
    assert given == {"compat": "collapse", "labels": file, "cases": [c for c, _ in wholes], "path": run}
    assert said.lines == ["run: odd", "run: 0 answers graded again"]
    rows = [Graded(c, "whole", o) for c, o in wholes]
    agreed = next(m for m in checks.agreement(rows, checks.read_labels(file)) if m.metric == "human_agreement")
    assert (agreed.count, agreed.n) == (sum(o == "correct" for _, o in wholes), sum(o != "invalid" for _, o in wholes))


def test_a_run_without_its_cases_is_not_counted_again(synthetic: ModuleType, tmp_path: Path) -> None:
    run, said = synthetic.make_run(tmp_path / "run", n=3, probes=()), Said()
    before = (run / "graded.jsonl").read_bytes()
    (run / "cases.jsonl").unlink()
    for again in (lambda: evaluate.rescore(run, said), lambda: evaluate.recount(run, "collapse")):  # type: ignore[arg-type]
        with pytest.raises(InputError, match=r"cases\.jsonl"):
            again()
    assert (run / "graded.jsonl").read_bytes() == before
