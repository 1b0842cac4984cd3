"""Rules of jobs, imports and builds: what runs with which settings, and what their summaries count."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from composcope.errors import ComposcopeError, InputError
from composcope.evaluation.benchmarks.stad import StadItem, StadStep
from composcope.evaluation.builders import review
from composcope.evaluation.builders import scaffolds as builder
from composcope.evaluation.graded import Graded
from composcope.evaluation.metrics import Metric
from composcope.experiments import demo, investigate
from composcope.experiments.building import scaffolds
from composcope.experiments.building.importing import Summary
from composcope.experiments.diagnosis import behaviour
from composcope.experiments.diagnosis import job as diagnosis
from composcope.experiments.models import resolve


@pytest.mark.parametrize(("wanted", "seconds", "asked"), [(None, 10, True), (None, 1e9, False), (True, 1e9, True)])
def test_failures_are_diagnosed_with_the_runs_seed_if_it_is_quick_or_wanted(
    wanted: bool | None, seconds: float, asked: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    given, said = list[Any](), list[str]()
    data = SimpleNamespace(config=SimpleNamespace(seed=7), path=tmp_path)
    monkeypatch.setattr(investigate, "read_run", lambda _: data)
    monkeypatch.setattr(diagnosis, "labelled_failures", lambda _: ["f"])
    monkeypatch.setattr(diagnosis, "cannot", lambda *_: None)
    monkeypatch.setattr(diagnosis, "estimate", lambda *_: seconds)
    monkeypatch.setattr(
        diagnosis, "diagnosed", lambda *args: given.append(args[:4]) or SimpleNamespace(sentence=lambda: "why")
    )
    run: Any = SimpleNamespace(path=tmp_path, name="r", timed=nullcontext)
    reporter: Any = SimpleNamespace(say=said.append, note=said.append)
    target: Any = object()
    investigate._diagnose(run, target, reporter, wanted)
    assert given == ([(data, target, ["f"], 7)] if asked else [])
    assert said == (
        ["r: why"]
        if asked
        else [f"r: not diagnosed, because it would take about {seconds / 60:.0f} minutes; --diagnose does it"]
    )
    if not asked:
        return

    def fails(*_: Any) -> None:
        raise ComposcopeError("no state")

    monkeypatch.setattr(diagnosis, "diagnosed", fails)
    investigate._diagnose(run, target, reporter, wanted)
    assert said[-1] == "r: not diagnosed: no state"


def test_lines_of_the_demo_have_rates_with_intervals_and_depths_in_order(
    synthetic: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert (
        demo._rate(Metric("x", n=9, n_invalid=2, value=0.256, low=0.1, high=0.5))
        == "26 % [10, 50] (n=9, 2 without an answer)"
    )
    assert [demo._rate(m) for m in (None, Metric("x", n=0))] == ["undefined (n=0)", "undefined (n=0)"]
    rows = [Metric("residual_failure", {"depth_bin": d}, n=9, value=d / 10) for d in (6, 2, 4)]
    monkeypatch.setattr(demo, "read_run", lambda _: SimpleNamespace(select=lambda *_: rows))
    job = demo.DemoRun("twin", "temporal", str(tmp_path), 0, None)
    assert demo._temporal_line(job).endswith("depth 2 20 % (n=9); depth 4 40 % (n=9); depth 6 60 % (n=9)")
    told = [{"headline": True, "model": m, "value": v, "short": "min-k", "question": "q", "measure": "AUROC"}
            for m, v in (("all doses", 0.5), ("twin", None))]  # fmt: skip
    first, last = demo._validity_lines([*told, {**told[0], "headline": False, "short": "x"}])
    assert first.startswith("probe min-k") and "q? AUROC 0.50; q in twin" in first and first.endswith("AUROC undefined")
    assert last.startswith("no verdicts")
    assert [demo._on_gpu(d) for d in ("cpu", "cuda", "cuda:1")] == [False, True, True]


def test_an_import_is_summed_up_by_role_and_its_contradictions_are_named() -> None:
    rows = [
        Graded("a", "whole", "correct", model="m"),
        Graded("a", "whole", "invalid", model="n"),
        Graded("b", "part:0", "correct", model="m"),
    ]
    wrong = [{"where": f"f:{i}", "field": "x", "stored": 1, "recomputed": 0, "problem": "p"} for i in range(3)]
    found = Summary(("f",), ("plain",), tuple(rows), tuple(wrong), ("w",))
    document = found.to_dict()
    assert (document["rows"], document["cases"], document["invalid"]) == (3, 3, 1)
    assert document["roles"] == {"whole": {"correct": 1, "invalid": 1}, "part:0": {"correct": 1}}
    lines = found.lines(most=2)
    assert lines[:4] == ["f (plain)", "3 rows about 3 cases", "  whole: 1 correct, 1 invalid", "  part:0: 1 correct"]
    assert lines[4].startswith("3 stored values contradict") and lines[5:] == [
        "  f:0: x is 1, should be 0 (p)", "  f:1: x is 1, should be 0 (p)", "warning: w"]  # fmt: skip


def test_coverage_of_a_build_is_measured_with_its_own_budget_and_stands_in_its_report(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    item = StadItem("i", "How much?", "7", (StadStep("One?", "3"), StadStep("Two?", "7")))
    seen: dict[str, Any] = {}

    def coverage(items: Any, solver: Any, judge: Any, book: Any, *, max_tokens: int) -> Any:
        seen.update(items=items, solver=solver, judge=judge, max_tokens=max_tokens)
        return review.Share(1, 2, 1), {}

    monkeypatch.setattr(review, "coverage", coverage)
    monkeypatch.setattr(builder, "from_cases", lambda cases: ([item], [{"id": 1, "reason": "few"}]))
    monkeypatch.setattr(scaffolds, "_cases", lambda benchmark, limit: [limit])
    solver, judge = (SimpleNamespace(identity={"model": n}) for n in ("s", "j"))
    report = scaffolds.scaffolds(tmp_path / "out", "organism:mixed", human=True, solver=solver, judge=judge,  # type: ignore[arg-type]
                                 settings={"max_tokens": 77})  # fmt: skip
    assert (seen["solver"], seen["judge"], seen["max_tokens"], seen["items"]) == (solver, judge, 77, [item])
    text = str(report) + "".join(p.read_text() for p in (tmp_path / "out").glob("*.json"))
    assert "coverage" in text and "redundancy" in text
    with pytest.raises(InputError, match="give --teacher, or --human"):
        scaffolds.scaffolds(tmp_path / "other", "organism:mixed")


@pytest.mark.parametrize(
    ("known", "who", "refused"),
    [("a" * 64, "b" * 64, True), ("a" * 64, "a" * 64, False), ("served (1)", "b" * 64, False)],
)
def test_only_known_weights_are_compared_with_the_models(known: str, who: str, refused: bool, tmp_path: Path) -> None:
    data: Any = SimpleNamespace(manifest=SimpleNamespace(identity={"weights": known}), config=None, path=tmp_path)
    if refused:
        with pytest.raises(InputError, match="--model x: these are not the weights"):
            diagnosis._same_model(data, SimpleNamespace(who=who), "x")  # type: ignore[arg-type]
    else:
        diagnosis._same_model(data, SimpleNamespace(who=who), "x")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("answer", "named"),
    [("Portugal", True), ("It is the country Portugal.", True), ("the capital of the country Portugal", False),
     ("Porto in the Portugal", False), ("from Portugal", False), ("Is it? Old Portugal", False), ("Lisbon", False)],
)  # fmt: skip
def test_a_name_that_an_answer_only_mentions_is_not_given(answer: str, named: bool) -> None:
    assert behaviour._names(answer, "Portugal") == named


@pytest.mark.parametrize(("name", "server"), [("a/b@host:1", True), ("a/b@", False), ("a/b c", False)])
def test_a_name_that_is_no_hub_id_may_be_a_server(name: str, server: bool) -> None:
    with pytest.raises(InputError, match="no hub id") as error:
        resolve._check_hub_id(name)
    assert ("give a/b@http://host:1" in str(error.value)) == ("is it a server?" in str(error.value)) == server


def test_what_a_build_leaves_out_is_rejected_or_left_to_a_person(tmp_path: Path) -> None:
    dropped = [{"id": i, "reason": r} for i, r in enumerate(("unjudged: x", "wrong", "unread steps", "few"))]
    rejected, review = scaffolds._split(dropped)
    assert [d["id"] for d in rejected] == [1, 3] and [(d["id"], d["decision"]) for d in review] == [
        (0, "open"),
        (2, "open"),
    ]
    file = tmp_path / "a.jsonl"
    file.write_text("")
    assert [scaffolds._name(n) for n in (f"stad:{file}", str(file), "organism:mixed")] == [
        "stad:a.jsonl",
        "a.jsonl",
        "organism:mixed",
    ]
    assert (
        scaffolds._files(f"stad:{file}") == scaffolds._files(str(file)) == [file]
        and scaffolds._files("organism:mixed") == []
    )
