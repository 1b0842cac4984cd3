"""What probes measured in two runs: paired over the cases that both probed; what cannot be compared is said."""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

from composcope.errors import InputError
from composcope.evaluation.case import shares
from composcope.experiments.run.compare import SharedCases, _values, compare_probes, probe_lines
from composcope.experiments.run.reader import RunData
from composcope.probes.result import ProbeResult

RNG = np.random.default_rng(0)
CASES = SharedCases(10, 10, tuple(f"c{i}" for i in range(10)), ())


def _write(run: Path, values: Mapping[str, float], name: str = "min-k", **settings: Any) -> RunData:
    rows = [
        {"case": c, "role": "whole", "kind": "composition", "group": "failure", "cluster": None, "quantity": "z",
         "value": v}
        for c, v in values.items()
    ]  # fmt: skip
    about = {"dtype": "torch.float32", **settings}
    ProbeResult("min_k", [{"quantity": "z", "value": 0.0}], settings=about, values=rows).save(run / "probes" / name)
    return RunData(run)


def _numbers(n: int, first: int = 0, shift: float = 0.0) -> dict[str, float]:
    return {f"c{first + i}": float(x) for i, x in enumerate(RNG.normal(shift, 1, n))}


def test_runs_are_paired_over_the_cases_that_both_probed(tmp_path: Path) -> None:
    left, right = _numbers(8), _numbers(8, first=2, shift=2)
    rows, said = compare_probes(_write(tmp_path / "a", left), _write(tmp_path / "b", right), CASES)
    (row,) = rows
    shared = [f"c{i}" for i in range(2, 8)]
    expected: Any = stats.ttest_rel([left[c] for c in shared], [right[c] for c in shared])
    assert (row["n"], row["n_dropped"], row["group"], row["probe"]) == (6, 4, "A - B", "min-k")
    assert row["p"] == pytest.approx(expected.pvalue) and row["family"] == "min-k: A - B" and not said
    assert row["value"] == pytest.approx(row["a"] - row["b"]) and row["effect"] < 0
    assert "n=6, difference -" in probe_lines(rows, said)[1] and "Holm" in probe_lines(rows, said)[1]


def test_cases_that_differ_between_the_runs_are_left_out(tmp_path: Path) -> None:
    a, b = _write(tmp_path / "a", _numbers(5)), _write(tmp_path / "b", _numbers(5))
    rows, _ = compare_probes(a, b, SharedCases(5, 5, ("c0", "c1", "c2"), ("c3", "c4")))
    assert rows[0]["n"] == 3


def test_what_does_not_compare_is_said_and_undefined_is_null(tmp_path: Path) -> None:
    a = _write(tmp_path / "a", {"c0": 1.0, "c1": float("nan")}, k=0.2)
    b = _write(_write(tmp_path / "b", {"c0": 2.0, "c1": 3.0}, k=0.3).path, {"c9": 1.0}, "lookback")
    rows, said = compare_probes(a, b, CASES)
    (row,) = rows
    assert row["value"] is None and "no contrast possible: 1 cases" in row["note"]
    assert said == ["probe lookback: only B has its numbers by case",
                    "probe min-k: measured with k 0.2 and 0.3; the numbers are not comparable"]  # fmt: skip
    one = compare_probes(_write(tmp_path / "e", {"c0": 1.0}, question_only=True), a, CASES)[1]
    assert "question_only True and None" in one[0]  # what only one run says differs, too
    json.dumps(rows, allow_nan=False)
    assert "no contrast possible" in probe_lines(rows, said)[1]
    nothing, said = compare_probes(_write(tmp_path / "c", {"c0": 1.0}), _write(tmp_path / "d", {"c1": 1.0}), CASES)
    assert nothing == [] and said == ["probe min-k: no case was probed in both runs"]
    assert compare_probes(RunData(tmp_path), RunData(tmp_path), CASES) == ([], [])


def test_settings_that_differ_are_all_named(tmp_path: Path) -> None:
    names = "dtype rows_dtype form steps rule answer_tokens t u v k question_only alignment role".split()
    settings: list[dict[str, Any]] = [dict.fromkeys(names, i) for i in (0, 1)]
    a, b = (_write(tmp_path / str(i), {"c0": 1.0}, **some) for i, some in enumerate(settings))
    (said,) = compare_probes(a, b, CASES)[1]
    assert all(f"{name} 0 and 1" in said for name in names)


def test_cases_of_two_runs_share_what_their_cluster_and_what_crosses_it_say(tmp_path: Path) -> None:
    file = tmp_path / "probes" / "p" / "values.csv"
    file.parent.mkdir(parents=True)
    file.write_text("case,role,kind,quantity,value,cluster,crossed\nc0,whole,k,q,1,a,b; d\nc1,whole,k,q,2,,\n")
    assert _values(tmp_path, "p", CASES)[1] == {"c0": shares("a", ("b", "d")), "c1": shares(None, ())}


def test_a_damaged_file_of_values_is_named_with_its_line(tmp_path: Path) -> None:
    a, b = _write(tmp_path / "a", _numbers(3)), _write(tmp_path / "b", _numbers(3))
    file = b.path / "probes" / "min-k" / "values.csv"
    rows: Sequence[dict[str, str]] = list(csv.DictReader(file.open(encoding="utf-8", newline="")))
    file.write_text(file.read_text().replace(rows[1]["value"], "much"))
    with pytest.raises(InputError, match=r"values\.csv:3: no case, role"):
        compare_probes(a, b, CASES)


def test_values_of_a_result_go_with_the_result_that_had_them(tmp_path: Path) -> None:
    run = _write(tmp_path, _numbers(3)).path
    ProbeResult("min_k", [{"quantity": "z", "value": 0.0}]).save(run / "probes" / "min-k")
    assert not (run / "probes" / "min-k" / "values.csv").exists()
