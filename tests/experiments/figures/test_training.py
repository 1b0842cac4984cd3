"""Figures over training: which checkpoints are read, and how their lines go."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from composcope.errors import InputError
from composcope.experiments.figures import training

from ..bare_runs import bare_run


@pytest.mark.parametrize(
    ("k", "n", "said"), [(3, 2, "k is 3 and n is 2"), (-1, 2, "k is -1"), ("x", 2, "whole numbers"), (None, 2, "'k'")]
)
def test_a_checkpoint_that_cannot_be_is_refused_by_its_row(k: Any, n: int, said: str) -> None:
    with pytest.raises(InputError, match=said):
        training._checked({"recipe": "r", "step": 1, "metric": "m", "k": k, "n": n}, "f: row 1")


def test_lines_over_training_go_from_step_to_step_and_each_training_has_its_own() -> None:
    rows = [training._checked({"run": run, "recipe": "r", "step": step, "metric": "m", "k": k, "n": 20}, "f")
            for run in ("a", "b") for step, k in ((100, 12), (0, 3), (50, 7))]  # fmt: skip
    found = training.training_curve.draw([training.Checkpoints(Path("f"), rows)])
    lines = [np.ravel(line.get_xdata()) for line in found.figure.axes[0].lines if line.get_marker() == "None"]
    joined = [[round(float(x)) for x in xs] for xs in lines if len(xs) == 3]
    assert joined == [[0, 50, 100]] * 2 and "Runs: a, b." in found.caption
    assert [r["value"] for r in rows[:3]] == pytest.approx([0.6, 0.15, 0.35])


def test_checkpoints_of_a_run_are_those_of_the_study_whose_runs_it_lies_among(tmp_path: Path) -> None:
    rows = [{"recipe": "r", "step": 1, "metric": "m", "k": 1, "n": 2}]
    (tmp_path / "bad.json").write_text(json.dumps([rows[0], {**rows[0], "k": 3}]))
    with pytest.raises(InputError, match=r"bad\.json: row 2: k is 3"):
        training._read(tmp_path / "bad.json")
    (tmp_path / "good.csv").write_text("recipe,step,metric,k,n,run\nr,1.0,m,1,2,x\n")
    (read,) = training._read(tmp_path / "good.csv")
    assert (read["run"], read["step"], read["count"], read["n"], read["value"]) == ("x", 1, 1, 2, 0.5)
    (tmp_path / "training_curve.json").write_text(json.dumps(rows))
    inside, beside = (bare_run(path=tmp_path / folder / "a") for folder in ("runs", "other"))
    assert [c.path for c in training._of_study([inside, inside])] == [tmp_path / "training_curve.json"]
    assert training._of_study([beside]) == []
