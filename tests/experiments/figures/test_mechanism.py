"""Figures of heads, neurons and likelihoods: how many cases a cell rests on, which rows are drawn, what is named."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType
from typing import Any

from composcope.experiments import figures
from composcope.experiments.figures import mechanism
from composcope.experiments.run.reader import ProbeData


def test_one_colored_cell_has_the_number_of_cases_of_its_two_groups_together() -> None:
    rows = [{"quantity": "neuron_overlap", "kind": "a & b", "group": g, "n": n}
            for g, n in (("failure", 7), ("success", 4), ("failure - success", 11))]  # fmt: skip
    probe = ProbeData("neurons", rows)
    assert [mechanism._cell_count(probe, *pair)["n"] for pair in (("a", "b"), ("b", "a"), ("a", "a"))] == [11, 11, None]
    ratios = [{"quantity": "lookback_ratio", "kind": "k", "group": g, "n": n}
              for g, n in (("failure", 7), ("success", 4))]  # fmt: skip
    counts = [mechanism._ratio_count(ProbeData("lookback", ratios), "k", s)
              for s in ("failure", "success", "difference")]  # fmt: skip
    assert counts == [7, 4, 4], "a difference rests on the smaller group"


def test_the_caption_of_heads_names_the_largest_difference_with_its_adjusted_p() -> None:
    row = {"quantity": "lookback_ratio_map", "kind": "composition", "layer": 2, "head": 5, "value": -0.1254, "p": 0.01,
           "p_adjusted": 0.25}  # fmt: skip
    found: Any = [(None, "model", ProbeData("lookback", [row, {**row, "kind": "math", "head": 3}]))]
    assert mechanism._best_cell(found) == (
        " Largest difference relative to its spread, model: layer 2, head 5, -0.125 (adjusted p=0.25)."
    )
    settings = {"rule": "reference", "t": 0.2, "v": 20, "u": None}
    said = mechanism._settings([(None, "m", ProbeData("neurons", (), settings=settings))], "rule", "t", "v", "w")  # type: ignore[list-item]
    assert said == " Settings: rule=reference, t=0.2, v=20."


def test_rows_by_kind_leave_out_comparisons_and_other_groups(synthetic: ModuleType, tmp_path: Path) -> None:
    run = synthetic.make_run(tmp_path / "r", n=8, probes=())
    rows = [{"quantity": "min_k_pp", "kind": kind, "group": group, "n": 20, "value": 0.5, "low": 0.4, "high": 0.6,
             "interval": "t"}
            for kind in ("composition", "composition - math", None) for group in ("failure", "success", "matched")
            ]  # fmt: skip
    synthetic.write_probe(run / "probes" / "min-k", "min-k", rows, {}, {})
    found = figures.draw("mink", [run]).rows
    assert [(r["kind"], r["group"]) for r in found] == [("composition", "failure"), ("composition", "success")]
