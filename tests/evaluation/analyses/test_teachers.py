"""Two teachers' bottlenecks side by side, and what filtering left of a benchmark. All counts by hand."""

from __future__ import annotations

import pytest

from composcope.errors import InputError, NoCasesError
from composcope.evaluation.analyses import stad
from composcope.evaluation.analyses.base import Source
from composcope.evaluation.benchmarks.stad import StadItem
from composcope.evaluation.cases import Case
from composcope.evaluation.graded import Graded


def _run(name: str, teacher: str, model: str, skills: dict[str, str]) -> Source:
    """Every case fails and is solved with its first step revealed, so its bottleneck is the first skill."""
    rows = []
    for case, skill in skills.items():
        for role, outcome in (("whole", "incorrect"), ("scaffold:1", "correct")):
            rows.append(Graded(case, role, outcome, model=model, skills=(skill, "end")))  # type: ignore[arg-type]
    cases = {c: Case(c, "?", "1", meta={"teacher": teacher}) for c in skills}
    return Source(name, rows, cases)


def test_bottlenecks_that_two_teachers_share_are_named_per_model() -> None:
    runs = [
        _run("a1", "t1", "m", {"x": "unit", "y": "unit", "z": "sum"}),
        _run("a2", "t2", "m", {"x": "unit", "y": "order", "z": "order"}),
    ]
    found = stad.teachers(runs)
    (row,) = found.tables["agreement"]
    assert (row["model"], row["shared"], row["skills"]) == ("m", 1, ["unit"])
    assert found.tables["mean"][0]["mean_shared"] == 1.0
    with pytest.raises(NoCasesError, match="under two teachers"):
        stad.teachers(runs[:1])
    with pytest.raises(InputError, match="0 teachers"):
        stad.teacher_of(Source("b", runs[0].rows, {"x": Case("x", "?", "1")}))


def test_accuracy_before_and_after_filtering_is_over_the_same_run() -> None:
    topics = ("red apples in a bowl", "long trains at night", "deep water under ice")
    cases = {f"c{i}": Case(f"c{i}", f"{topics[i % 3]} {i}", "1") for i in range(9)}
    rows = [Graded(c, "whole", "correct" if i < 3 else "incorrect") for i, c in enumerate(cases)]
    run = Source("run", rows, cases)
    kept = [StadItem(f"k{i}", cases[f"c{i}"].question, "1") for i in (0, 1, 2, 3)]
    found = stad.filtered(run, kept, n_clusters=3)
    before, after = found.tables["accuracy"]
    assert (before["count"], before["n"], after["count"], after["n"]) == (3, 9, 3, 4)
    assert found.tables["cluster proportions"][0]["clusters"] == 3
    with pytest.raises(InputError, match="'k9': its question is not among the originals"):
        stad.filtered(run, [StadItem("k9", "another question", "1")])
