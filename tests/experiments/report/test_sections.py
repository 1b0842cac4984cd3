"""Sections of probes: their tables, notes, columns and tensors."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from composcope.experiments.report import sections
from composcope.experiments.report.sections import number_text
from composcope.experiments.run.reader import ProbeData
from composcope.probes.verdicts import MATCHED

from ..bare_runs import bare_run


def test_tables_of_probes_have_contrasts_only_a_value_with_its_interval_and_the_number_of_all() -> None:
    rows = [{"quantity": f"q{i}", "group": MATCHED, "n": i, "value": 0.5, "low": 0.25, "high": 0.75, "effect": 0.1,
             "p_adjusted": 0.5} for i in range(70)]  # fmt: skip
    rows += [{"quantity": "mean", "group": "failure", "value": 1.0}]
    found = sections.probe_rows([bare_run(probe=lambda _: ProbeData("p", rows))], "p")
    assert (found["total"], len(found["rows"])) == (70, sections._SUMMARY_LIMIT)
    shown = dict(zip(found["columns"], found["rows"][0], strict=True))
    assert shown["value [95 % interval]"] == "0.5 [0.25, 0.75]"
    assert shown["effect [95 % interval]"] == "0.1 (no interval)"
    assert [sections.cell(c, {"n": 3}) for c in ("value", "effect", "n")] == ["undefined", "", "3"]
    assert [sections.number_text("x", v) for v in (None, 0.12345, 7, "t")] == ["", "0.123", "7", "t"]


def test_notes_that_all_runs_share_are_said_once_and_others_with_their_run() -> None:
    def run(name: str, data: ProbeData | None) -> Any:
        return bare_run(name=name, model=name, path=Path(name), probe=lambda _: data)

    same = {"k": 0.2, "cases": [1], "none": None}
    runs = [run("a", ProbeData("p", (), settings=same, warnings=["w"])), run("b", ProbeData("p", (), settings=same))]
    assert sections.probe_notes(runs, "p") == ["settings: k = 0.2", "a: w"]
    assert sections.probe_notes([*runs, run("c", None)], "p") == ["a, b: settings: k = 0.2", "a: w", "c: did not run"]
    assert sections.probe_notes(runs[1:], "p") == ["b: settings: k = 0.2"]
    assert sections._flat({"a": {"b": 1, "c": None}, "d": [1, {"e": 2}]}) == "a: (b: 1), d: (1; e: 2)"
    taken: set[str] = set()
    assert [sections._anchor(n, taken) for n in ("A b!", "a-b", "!")] == ["probe-a-b", "probe-a-b-2", "probe-other"]


def test_columns_stand_in_reading_order_and_ends_of_intervals_inside_their_value() -> None:
    row = {"note": "x", "p": 0.1, "n": 3, "value": 1, "low": 0, "high": 2, "own": 1, "quantity": "q", "group": None}
    assert sections._columns([row]) == (["quantity", "own", "n", "value", "note"], ["p"])
    data = ProbeData("p", (), {"a": np.zeros((2, 3)), "b": np.zeros(())}, axes={"a": ("layer", "head")})
    assert sections._tensors("m", data) == [("m", "a", "layer 2 × head 3"), ("m", "b", "one number")]


def test_a_small_p_is_not_rounded_to_nothing() -> None:
    shown = [number_text("p_adjusted", p) for p in (0.0004, 0.001, 0.0049, 0.2, 1)]
    assert shown == ["< 0.001", "0.001", "0.0049", "0.2", "1"]
