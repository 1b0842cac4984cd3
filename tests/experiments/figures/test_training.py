"""Figures over training: which checkpoints are read, and how their lines go."""

from __future__ import annotations

import json
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from composcope.errors import InputError
from composcope.experiments import figures
from composcope.experiments.figures import layers, training
from composcope.experiments.run.reader import ProbeData

from ..bare_runs import bare_run


def test_lines_over_training_go_from_step_to_step_and_each_training_of_each_file_has_its_own() -> None:
    rows = [training._checked({"run": run, "recipe": "r", "step": step, "metric": "m", "k": k, "n": 20}, "f")
            for run in ("a", "b") for step, k in ((100, 12), (0, 3), (50, 7))]  # fmt: skip
    found = training.training_curve.draw([training.Checkpoints(Path(f), rows) for f in "xy"])
    lines = [np.ravel(line.get_xdata()) for line in found.figure.axes[0].lines if line.get_marker() == "None"]
    joined = [[round(float(x)) for x in xs] for xs in lines if len(xs) == 3]
    assert joined == [[0, 50, 100]] * 4 and "Runs: a, b." in found.caption
    assert [r["value"] for r in rows[:3]] == pytest.approx([0.6, 0.15, 0.35])


def test_checkpoints_of_a_run_are_those_of_the_study_whose_runs_it_lies_among(tmp_path: Path) -> None:
    rows = [{"recipe": "r", "step": 1, "metric": "m", "k": 1, "n": 2}]
    (tmp_path / "training_curve.json").write_text(json.dumps(rows))
    inside, beside = (bare_run(path=tmp_path / folder / "a") for folder in ("runs", "other"))
    assert [c.path for c in training._of_study([inside, inside])] == [tmp_path / "training_curve.json"]
    assert training._of_study([beside]) == []


@pytest.mark.parametrize("seeds", [("",), ("1", "2", "all")])
def test_doses_are_points_of_one_training_or_a_line_for_each_and_their_mean(
    seeds: tuple[str, ...], synthetic: ModuleType, tmp_path: Path
) -> None:
    synthetic.make_run(tmp_path / "none", n=4, probes=(), model="organism:none")
    (tmp_path / "validity").mkdir()
    lines, wanted = ["question,quantity,group,n,value,low,high,interval,verdict,seed"], {}
    for i, seed in enumerate(seeds):
        wanted[seed] = [0.1 + i, 0.4 + 2 * i]
        sizes = (2, 1) if seed == "all" else (20, 20)
        for dose, value, n in zip(("none", "twin"), wanted[seed], sizes, strict=True):
            lines.append(f"follows the dose,mean cosine,{dose},{n},{value},{value - 0.1},{value + 0.1},t,,{seed}")
    lines += ["follows the dose,mean cosine,,,,,,,cannot say,7"] * (len(seeds) > 1)
    (tmp_path / "validity" / "table.csv").write_text("\n".join(lines) + "\n")
    other = synthetic.make_run(tmp_path / "elsewhere" / "other", n=4, probes=())
    drawing = figures.draw("dose-response", [tmp_path, other])
    assert "Runs: none." in drawing.caption, "of the study that has the table"
    assert ("Undefined, not drawn: seed 7." in drawing.caption) == (len(seeds) > 1)
    assert ("mean cosine, twin (n=1 trainings)" in drawing.caption) == (len(seeds) > 1)
    assert "mean cosine, none (n=2 trainings)" not in drawing.caption
    (ax, *_) = drawing.figure.axes
    named = {str(line.get_label()): [*map(float, np.ravel(line.get_ydata()))] for line in ax.lines}
    if len(seeds) > 1:
        of = {"1": "seed 1", "2": "seed 2", "all": "mean over trainings"}
        assert {name: named.get(name) for name in of.values()} == {of[s]: pytest.approx(v) for s, v in wanted.items()}
    else:
        assert not any("seed" in name or "mean" in name for name in named)
        assert {0.1, 0.4} <= {y for line in ax.lines for y in np.round(np.ravel(line.get_ydata()), 9)}


def test_the_trend_over_doses_is_no_dose_and_a_readout_begins_before_the_first_block() -> None:
    rows = [{"question": "follows the dose", "quantity": "q", "group": g, "n": "9", "value": "0.5", "verdict": v}
            for g, v in (("none", ""), ("none < twin", "cannot say"))]  # fmt: skip
    assert [r["dose"] for r in training._dose_rows(rows)] == ["none"]
    maps = {"lens.absent.bridge.failure": np.array([[0.1], [0.2], [0.3]])}
    found = layers._rows(ProbeData("readout", (), maps, settings={"places": ["end"]}))
    assert [(r["layer"], r["value"]) for r in found] == [(-1, 0.1), (0, 0.2), (1, 0.3)]


def test_the_dose_figure_is_of_probes_and_names_trainings_only_where_they_are_undefined(tmp_path: Path) -> None:
    rows = [("follows the dose", kind, "q") for kind in ("", "probe", "null", "confound")] + [
        ("failures", "probe", "q")
    ]
    (tmp_path / "table.csv").write_text("question,kind,quantity\n" + "".join(f"{','.join(r)}\n" for r in rows))
    assert [r["kind"] for r in training._raw(tmp_path / "table.csv")] == ["", "probe"]
    known = [{"seed": s, "n": n, "quantity": "q", "dose": "low", "value": 0.5, "drawn": "solid"}
             for s, n in (("0", 9), ("1", 9), ("all", 2))]  # fmt: skip
    assert "ndefined" not in training._dose_caption("t", known, ["0", "1"], [], [])
    assert "Undefined, not drawn: seed 2." in training._dose_caption("t", known, ["0", "1"], ["2"], [])
    assert "Means over fewer trainings: q, low (n=2 trainings)." in training._dose_caption(
        "t", known, ["0", "1", "2"], [], []
    )


ROW: dict[str, Any] = {"run": None, "recipe": "r", "metric": "m", "step": "7"}


@pytest.mark.parametrize(("k", "n", "value"), [(3, 3, 1.0), (0, 3, 0.0), ("2.0", 4.0, 0.5), (0, 0, None)])
def test_a_checkpoint_counts_up_to_all_of_its_questions(k: Any, n: Any, value: float | None) -> None:
    found = training._checked({**ROW, "k": k, "n": n}, "file: row 2")
    assert (found["step"], found["count"], found["n"], found["value"]) == (7, int(float(k)), int(n), value)
    assert (found["run"], found["recipe"], found["metric"]) == ("", "r", "m")


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"k": 4}, "k is 4 and n is 3"), ({"k": -1}, "k is -1"), ({"step": ""}, "field 'step' is missing"),
        ({"k": None}, "'k' is missing"),
        *(({name: value}, "whole numbers")
          for name, value in (("k", "x"), ("k", 2.5), ("step", "0.5"), ("step", float("inf")), ("n", "nan"))),
    ],
    ids=str,
)  # fmt: skip
def test_a_checkpoint_that_cannot_be_is_refused_by_its_row_and_its_numbers_are_never_rounded(
    wrong: dict[str, Any], said: str
) -> None:
    with pytest.raises(InputError, match=f"file: row 2: .*{said}"):
        training._checked({**ROW, "k": 2, "n": 3, **wrong}, "file: row 2")


def test_checkpoints_come_from_a_file_or_the_folders_of_trainings_and_anything_else_is_named(tmp_path: Path) -> None:
    row = {"run": "r", "recipe": "g", "metric": "m", "step": 7, "k": 3, "n": 4}
    for name, text in (("a.json", json.dumps([row])), ("b.json", json.dumps({"rows": [row]})),
                       ("c.csv", f"{','.join(row)}\n{','.join(map(str, row.values()))}\n")):  # fmt: skip
        (tmp_path / name).write_text(text)
        (found,) = training._read(tmp_path / name)
        assert (found["step"], found["count"], found["n"], found["value"]) == (7, 3, 4, 0.75), name
    for text in ("[]", '{"rows": []}', '{"rows": 3}', json.dumps([row, {**row, "k": 5}])):
        (tmp_path / "a.json").write_text(text)
        with pytest.raises(InputError, match=f"{tmp_path}/a.json: (no rows|row 2: k is 5)"):
            training._read(tmp_path / "a.json")
    with pytest.raises(InputError, match=f"{tmp_path}/none: no such file or folder"):
        training._files(tmp_path / "none")
    for folder in ("", "inner", "inner/deep"):
        (tmp_path / folder).mkdir(exist_ok=True)
        (tmp_path / folder / training.FILE).touch()
    assert training._files(tmp_path) == [tmp_path / "inner" / training.FILE, tmp_path / training.FILE]
