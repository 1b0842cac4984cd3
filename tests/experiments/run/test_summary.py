"""The lines that sum a run up: one of each metric, and one of each failing case."""

from __future__ import annotations

import json
from itertools import takewhile
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from composcope.errors import InputError
from composcope.evaluation import dependence
from composcope.evaluation.metrics import Metric
from composcope.evaluation.protocols.base import Entry, Evidence
from composcope.evaluation.statistics import OTHER_PAIRS
from composcope.experiments.run import command_line, diagnosis, single_cases, summary, writer


def test_one_line_of_a_metric_is_in_its_own_unit() -> None:
    def line(name: str, value: float | None, **more: Any) -> str:
        return summary.metric_line(Metric(name, n=9, value=value, **more))

    assert (
        line("gap", -0.25, low=-0.5, high=0.1, interval="t") == "gap: -25.0 points [-50.0 points, 10.0 points] (t), n=9"
    )
    same = line("gap", 0.0, low=-0.5, high=0.5, interval=OTHER_PAIRS)
    assert "[-50.0 points, 50.0 points] (" in same and OTHER_PAIRS not in same and "pair" in same
    assert line("both", 0.5, n_invalid=2, note="x") == "both: 50.0 %, n=9, invalid=2 (x)"
    bounds = line("gap", 0.5, n_invalid=2, bound_low=-0.25, bound_high=0.75)
    assert bounds == "gap: 50.0 points, n=9, invalid=2 (with these -25.0 points to 75.0 points)"
    shared = {"low": 0.4, "high": 0.6, "interval": "x", "cluster_n": 3, "cluster_interval": "t", "cluster_low": 0.2}
    assert line("both", 0.5, **shared, cluster_high=0.9) == "both: 50.0 % [20.0 %, 90.0 %] (t), n=9"
    assert line("both", 0.5, interval=dependence.FEW) == f"both: 50.0 % ({dependence.FEW}), n=9"
    assert (line("d50", 3.456), line("mean_k", None)) == ("d50: 3.46, n=9", "mean_k: undefined, n=9")
    assert line("d50", None, note=">8; low <2") == "d50: >8, n=9 (low <2)", "beyond the depths asked is not undefined"
    assert line("d50", None, note="undefined: no rate at depth 4; bound_low <2").startswith("d50: undefined, n=9 (und")
    of_plugin = [line("mine", 0.25, interval=how) for how in ("clopper-pearson", None, dependence.FEW, "t")]
    assert [said.split(",")[0].split(" (")[0] for said in of_plugin] == ["mine: 25.0 %"] * 3 + ["mine: 25.0 points"]
    assert summary.metric_line(Metric("both", {"depth": 2, "family": "f"}, n=1, value=1.0)).startswith(
        "both [depth=2, family=f]"
    )


def test_a_run_that_was_stopped_says_how_many_of_its_cases_it_asked_and_what_stopped_it() -> None:
    run: Any = SimpleNamespace(
        cases=dict.fromkeys("abc"), graded=[SimpleNamespace(case=c) for c in ("a", "a", "b", "x")]
    )
    assert summary.n_asked(run) == "2 of 3 cases"
    run.graded.append(SimpleNamespace(case="c"))
    assert summary.n_asked(run) == "3 cases"
    states = [("complete", "max_asks=1"), ("running", "max_asks=1"), ("complete", None)]
    said = [summary.state(SimpleNamespace(status=s, stopped=stopped)) for s, stopped in states]  # type: ignore[arg-type]
    assert said == ["stopped by max_asks=1", "running", "complete"]


def test_a_failing_case_is_told_by_its_first_wrong_answer() -> None:
    found = (Evidence("hop", "correct", "a", "a"), Evidence("whole", "incorrect", "euro", "krone"),
             Evidence("press", "incorrect", "yen", "won"))  # fmt: skip
    assert summary.entry_line(Entry("oslo", found)) == "oslo: answered 'euro', right is 'krone'"
    silent = Evidence("whole", "abstained", None, "krone")
    assert summary.entry_line(Entry("c", (found[0], silent))) == "c: abstained, right is 'krone'"
    assert summary.entry_line(Entry("c", found[:1])) == "c"


def test_the_document_of_a_run_has_the_metrics_of_its_lines(synthetic: ModuleType, tmp_path: Path) -> None:
    run = synthetic.make_run(tmp_path / "run", n=6, probes=())
    file = run / "metrics.json"
    found = json.loads(file.read_text())
    found["metrics"].append(synthetic.rate("human_agreement", 5, 6))
    file.write_text(json.dumps(found))
    document = summary.document(run)
    assert document["metrics"][-1]["metric"] == "human_agreement"
    said = [line for line in summary.lines(run) if ", n=" in line]
    assert [line.split()[0].rstrip(":") for line in said] == [m["metric"] for m in document["metrics"]]


def test_a_run_is_summed_up_and_listed_field_by_field(synthetic: ModuleType, tmp_path: Path) -> None:
    run = synthetic.make_run(tmp_path / "run", n=24, protocol="compositionality-gap", probes=("min-k",))
    file = run / "manifest.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), "n_cases": 24, "n_invalid": 3, "stopped": "--max"}))
    counted = {**json.loads((run / "metrics.json").read_text()), "warnings": ["odd"]}
    (run / "metrics.json").write_text(json.dumps(counted))
    sets = {p.stem: p.read_text().count("\n") for p in sorted((run / "casesets").glob("*.jsonl"))}
    about = {"model": "organism:control", "benchmark": "organism:mixed", "protocol": "compositionality-gap",
             "status": "complete", "stopped": "--max"}  # fmt: skip
    found = summary.document(run)
    assert found.pop("metrics") and found.pop("chance") == pytest.approx(0.04) and found.pop("n_chance") == 24
    assert found == {"schema": 1, "run": str(run), **about, "n_cases": 24, "n_invalid": 3, "case_sets": sets,
                     "probes": ["min-k"], "warnings": ["odd"]}  # fmt: skip
    lines = summary.lines(run)
    assert lines[0].endswith("stopped by --max") and lines[-1] == "  warning: odd"
    assert "  chance level of the whole: 4.0 %" in lines
    at = [lines.index(f"  case set {name}: {n}") for name, n in sets.items()]
    shown = [list(takewhile(lambda line: line.startswith("    "), lines[i + 1 :])) for i in at]
    failing = json.loads((run / "casesets" / "both-right-whole-wrong.jsonl").read_text().splitlines()[0])["case"]
    assert min(sets.values()) > 3 and [len(some) for some in shown] == [0, 3], "the first of the failing ones"
    assert shown[1][0].startswith(f"    {failing}: ")
    row = summary._row(run)
    whole = next(m for m in counted["metrics"] if m["metric"] == "composition")
    assert row.pop("headline") == summary.metric_line(Metric(**whole))
    assert row == {"run": str(run), **about, "cases": 24, "created": "2026-01-01T00:00:00+0000",
                   "state": "stopped by --max"}  # fmt: skip


def test_what_cannot_be_read_of_a_run_is_told_or_left_empty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert summary.listing_lines([])[0].startswith("no runs")
    row = {"run": "r", "status": "complete", "state": "stopped by --max-asks"}
    assert "stopped by --max-asks" in summary.listing_lines([row])[0]
    for text in ("", "{", '{"templates": [["<"]], "asks": {"k": 0}}', '{"asks": [1]}'):
        (tmp_path / "rendered.json").write_text(text)
        assert single_cases.read_rendered(tmp_path) == single_cases.Rendered()
    (tmp_path / "rendered.json").write_text('{"templates": [["<", ">"]], "asks": {"k": 0, "w": "all", "x": 7}}')
    found = single_cases.read_rendered(tmp_path)
    assert [found.text(key, "Q") for key in ("k", "w", "x", "gone")] == ["<Q>", "all", "Q", "Q"]
    (tmp_path / "rendered.json").unlink()
    assert single_cases.read_rendered(tmp_path) == single_cases.Rendered()
    for name, said in (("ipykernel_launcher.py", "a notebook"), ("__main__.py", "composcope 'a b'"),
                       ("cli.py", "composcope 'a b'"), ("mine.py", "mine.py 'a b'")):  # fmt: skip
        monkeypatch.setattr("sys.argv", [f"/x/{name}", "a b"])
        assert command_line() == said
    monkeypatch.setattr("sys.argv", ["composcope", *"evaluate -m m -b b -o o".split()])
    assert command_line() == "composcope evaluate -m m -b b -o o"


def test_a_diagnosis_is_asked_by_case_and_a_cause_that_there_is_not_is_named(tmp_path: Path) -> None:
    verdicts = [diagnosis.Verdict("a", "lost", ("e",)), diagnosis.Verdict("b", "shortcut:last-item", ("e",))]
    found = diagnosis.Diagnosis(tmp_path, verdicts, [])
    assert found.of("b") is verdicts[1] and found.of("c") is None
    row = {"case": "a", "cause": "tired", "evidence": [], "confidence": 0.5}
    with pytest.raises(InputError, match=r"cases\.jsonl:1: field 'cause' is 'tired'; the causes are"):
        diagnosis._verdict(row, "cases.jsonl:1")
    assert diagnosis._verdict({**row, "cause": "shortcut:last-item"}, "x").cause == "shortcut:last-item"


@pytest.mark.parametrize("error", [None, ValueError("first")])
def test_a_manifest_that_cannot_be_closed_hides_no_earlier_error(error: Exception | None) -> None:
    run: Any = SimpleNamespace(manifest=SimpleNamespace(invocations=[{"started": "s"}]))

    def full(**_: Any) -> None:
        raise OSError("disk full")

    run.record = full
    if error is None:
        with pytest.raises(OSError, match="disk full"):
            writer._end(run, "complete", 0.0)
    else:
        writer._end(run, "failed", 0.0, error)
    recorded: dict[str, Any] = {}
    run.record = lambda **about: recorded.update(about)
    run.manifest.invocations = [{"started": "r"}, {"started": "s"}]
    writer._end(run, "failed", 0.0, error)
    earlier, this = recorded["invocations"]
    assert recorded["status"] == this["status"] == "failed" and earlier == {"started": "r"} and this["started"] == "s"
    assert this.get("error") == (None if error is None else "ValueError: first")


@pytest.mark.parametrize("protocol", ["scaffolding", "compositionality-gap"])
def test_the_agreement_with_a_judge_is_shown_once(protocol: str) -> None:
    agreed = Metric("judge_agreement", count=1, n=2, value=0.5)
    counted: Any = SimpleNamespace(protocol=protocol, metrics=[agreed])
    assert summary._shown(counted) == [agreed]
