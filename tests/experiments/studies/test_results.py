"""Tables of a study: numbers with their units, rows of every run, the paper's count beside ours."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from composcope.evaluation.metrics import Metric
from composcope.experiments.console.printing import Reporter
from composcope.experiments.organism.weights import model_called
from composcope.experiments.studies import results
from composcope.experiments.studies.spec import StudyModel
from composcope.experiments.studies.study import StudyTable

from .bare_studies import run_of, study_of


@pytest.mark.parametrize(
    ("metric", "shown"),
    [
        (Metric("composition", n=9, value=0.25, low=0.1, high=0.5), "25.0 % [10.0, 50.0]"),
        (Metric("gap", n=9, value=-0.25, low=-0.5, high=0.125), "-25.0 points [-50.0, +12.5]"),
        (Metric("delta_whatever", n=9, value=0.1), "+10.0 points (no interval)"),
        (Metric("mean_k", n=9, value=1.256, low=1, high=2), "1.26 [1.00, 2.00]"),
        (Metric("code_gain", n=9, value=0.256, low=-0.1, high=1.5), "+26 % [-10, +150]"),
        (Metric("second_hop", {"against": "part:1"}, n=9, value=-0.1, low=-0.2, high=0), "-10.0 points [-20.0, +0.0]"),
        (Metric("d50", n=9, note=">6; more"), "undefined (>6)"),
        (Metric("d50", n=9, value=3.0, high=5.0, note="low <2; x"), "3.00 [<2, 5.00]"),
        (Metric("gap", n=0), "undefined"),
    ],
)
def test_a_number_of_a_study_has_the_unit_of_its_kind(metric: Metric, shown: str) -> None:
    assert results.shown(metric.metric, metric) == shown
    assert results.shown(metric.metric, metric, interval=False) == shown.partition(" [")[0].replace(
        " (no interval)", ""
    )


def test_rows_of_a_table_are_those_of_every_run_in_the_order_of_their_metrics() -> None:
    metrics = [Metric("both", n=9, n_invalid=2, count=3, value=1 / 3, low=0.1, high=0.6, interval="t", note="why"),
               Metric("both", {"depth": 2}, n=4), Metric("step:0", n=8, value=0.5)]  # fmt: skip
    study = study_of(
        run_of("a", metrics=metrics), run_of("b", metrics=metrics[2:]), name="compositional-gsm", failed={"c": "no"}
    )
    rows = results.metric_rows(study, ["step:0", "both", ("both", lambda g: "depth" in g)], step_0="first")
    assert [(r["model"], r["what"], r.get("group")) for r in rows] == [
        ("a", "first", ""), ("a", "both", ""), ("a", "both", "depth 2"), ("b", "first", ""), ("c", "failed", None)
    ]  # fmt: skip
    told = rows[1]
    fields = ("value", "low", "high", "interval", "count", "n", "invalid", "note", "data", "family")
    assert [told[k] for k in fields] == [
        1 / 3, 0.1, 0.6, "t", 3, 9, 2, "why", "d", "f"]  # fmt: skip
    assert results._compact("recall + recall + add + recall") == "2 × recall + add + recall"
    side = results.comparison(replace(study, preset=replace(study.preset, headline=("both", "step:0"))))
    assert [r.get("both") for r in side.rows] == [
        "33.3 % [10.0, 60.0], n=9, 2 invalid",
        "not measured",
        "could not be run: no",
    ]
    assert side.rows[0]["step:0"] == "50.0 % (no interval), n=8" and side.columns == ("model", "both", "step:0")
    two = replace(study, data=("d", "e"), preset=replace(study.preset, headline=("both",)))
    assert results.comparison(two).columns == ("model", "data", "both")
    models = (StudyModel("org/a", "a"), StudyModel("organism:low", "low", {"dose": "low"}))
    named = results._read_as({"model": "a, low"}, replace(study, spec=replace(study.spec, models=models)))["model"]
    assert named == f"a, {model_called('organism:low', 'low', 'low')}" != "a, low"
    bare = results.comparison(replace(study, preset=replace(study.preset, headline=())))
    assert bare.columns == ("model", "failed")
    assert [r.get("failed") for r in bare.rows] == [None, None, "could not be run: no"]


def test_the_papers_count_stands_beside_ours_and_is_made_once_a_run(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[str, str]] = []

    def recount(folder: Path, compat: str) -> list[Metric]:
        asked.append((folder.name, compat))
        if folder.name.startswith("b"):
            raise results.NotAskedError("more")
        return [Metric("both", n=9, value=0.75, low=0.5, high=0.9), Metric("both", {"depth": 2}, n=4, value=0.25)]

    monkeypatch.setattr(results, "recount", recount)
    metrics = [Metric("both", n=9, value=0.5), Metric("gap", n=9, value=0.1), Metric("both", {"depth": 2}, n=4)]
    stopped = run_of("c", metrics=metrics, manifest=SimpleNamespace(stopped="asks"))
    study = study_of(run_of("a", metrics=metrics), run_of("b", metrics=metrics), stopped)
    for _ in range(2):
        rows = results.metric_rows(study, ["both", "gap", ("both", lambda g: "depth" in g)])
    assert [r["as the paper counts"] for r in rows] == [
        "75.0 %", None, "25.0 %", *["needs other asks"] * 3, None, None, None
    ]  # fmt: skip
    assert asked == [("a-d", "agentcoma"), ("b-d", "agentcoma")]


def test_a_number_of_a_study_has_the_interval_over_what_its_cases_share() -> None:
    alone = Metric("both", n=9, value=0.5, low=0.3, high=0.7, interval="t")
    shared = replace(alone, cluster_n=6, cluster_low=0.1, cluster_high=0.9, cluster_interval="clusters")
    found = [results.described("both", m) for m in (alone, shared)]
    assert [(r["low"], r["high"], r["interval"]) for r in found] == [(0.3, 0.7, "t"), (0.1, 0.9, "clusters")]
    assert [r["shown"] for r in found] == ["50.0 % [30.0, 70.0]", "50.0 % [10.0, 90.0]"]


def test_the_page_and_record_of_a_study_hold_all_that_was_made_and_all_that_was_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    metrics = [Metric("both", n=9, value=0.5)]
    runs = [run_of(name, metrics=metrics, warnings=[f"careful with {name}"]) for name in "ab"]
    stopped = "b-d: stopped by --max-cost; the same command continues"
    study = study_of(*runs, failed={"c-d": "no such model"}, stopped=[stopped])
    own = StudyTable("own", "My table", [{"x": 1.2345, "shown": "one and a bit"}], "a note", ("x",))
    empty = StudyTable("empty", "No rows", [])
    preset = replace(study.preset, headline=("both",), tables=lambda _: [own, empty], notes=("the third table",))
    study = replace(study, folder=tmp_path, preset=preset)
    (tmp_path / "figures").mkdir()
    (tmp_path / "figures" / "gap-slopes.txt").write_text("What it shows.")
    monkeypatch.setattr(results, "_figures", lambda *_: (["gap-slopes"], {"k-histogram": "no steps"}))
    monkeypatch.setattr(results, "_report", lambda *_: "report.html")
    planned, reporter = [*runs, run_of("c")], Reporter(tmp_path / "log.txt", quiet=True)
    path = results.write(study, planned, {"seed": 3}, reporter, time.monotonic() - 60, report=True)
    document, page = json.loads((tmp_path / "study.json").read_text()), path.read_text()
    assert 60 <= document.pop("seconds") < 120
    assert document == {"schema": 1, "seed": 3, "failed": study.failed, "stopped": [stopped],
                        "figures": ["gap-slopes"], "tables": ["models", "own"]}  # fmt: skip
    assert sorted(f.name for f in (tmp_path / "tables").iterdir()) == ["models.csv", "own.csv"]
    assert (tmp_path / "tables" / "own.csv").read_text().split() == ["x", "1.2345"]
    for said in ("**c-d could not be run:** no such model", f"**{stopped}**", "## My table", "| 1.23 |", "a note",
                 "* both: ", "![gap-slopes](figures/gap-slopes.png)", "What it shows.", "* a-d: careful with a",
                 "* b-d: careful with b", "* k-histogram: no steps", "[report.html](report.html)",
                 "* the third table"):  # fmt: skip
        assert said in page, said
    assert "2 of 3 runs, 6" in (tmp_path / "log.txt").read_text() and "No rows" not in page
    without = results.write(replace(study, runs=[]), planned, {}, reporter, time.monotonic(), report=True).read_text()
    assert "no such model" in without and "My table" not in without and "report.html" not in without
