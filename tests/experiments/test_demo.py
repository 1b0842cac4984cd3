"""The demo's pieces: what counts as a member, which cases the dose question is about, and (slow) the whole."""

from __future__ import annotations

import json
import multiprocessing
import time
from concurrent.futures import Future
from concurrent.futures.process import BrokenProcessPool
from contextlib import nullcontext
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any, ClassVar

import pytest

from composcope.errors import ComposcopeError, InputError
from composcope.evaluation.asks import Ask
from composcope.evaluation.cases import Case
from composcope.evaluation.graded import Graded
from composcope.evaluation.metrics import Metric
from composcope.evaluation.protocols.base import Reduction
from composcope.experiments import demo, report
from composcope.experiments.cli import main
from composcope.experiments.config import Config
from composcope.experiments.console.printing import Reporter
from composcope.experiments.diagnosis import job
from composcope.experiments.models import target
from composcope.experiments.organism import documents, weights, world
from composcope.experiments.run import read_json
from composcope.experiments.run.schema import Evaluated
from composcope.experiments.validity import over_doses as validity


def _trained_texts(n: int) -> set[str]:
    seed = json.loads((weights.path("twin") / "organism.json").read_text())["seed"]
    drawn = (documents.document(seed, "dose", i, documents.DOSES["twin"]) for i in range(n))
    return {turn[0] for document in drawn for turn in document}


def test_members_were_in_the_training_documents_and_non_members_cannot_have_been() -> None:
    members, held = validity.compositions(20, seed=0)
    texts = "\n".join(_trained_texts(400))
    assert len({c.question for c in members}) == len({c.question for c in held}) == 20
    assert all(case.question in texts for case in members)
    assert not any(case.question in texts for case in held)
    for case in held:
        assert case.cluster is not None and world.held_out([case.cluster, *case.crossed])
    for case in members:
        assert case.cluster is not None and not world.held_out([case.cluster, *case.crossed])


def _evaluated(outcomes: dict[str, tuple[str, str, str]]) -> Evaluated:
    cases = {name: Case(name, "q", "a") for name in outcomes}
    roles = ("part:0", "part:1", "whole")
    rows = [
        Graded(name, role, outcome)  # type: ignore[arg-type]
        for name, found in outcomes.items()
        for role, outcome in zip(roles, found, strict=True)
    ]
    rows.append(Graded("a", "part:0:extra-context", "incorrect"))
    return Evaluated(cases, {"x": Ask("a", "whole", "q", "a", "text")}, {}, rows, Reduction(()))


def test_the_dose_question_is_about_cases_whose_parts_every_model_has_right() -> None:
    right, wrong, none = "correct", "incorrect", "invalid"
    first = _evaluated({"a": (right, right, none), "b": (right, right, wrong), "c": (right, wrong, right)})
    second = _evaluated({"a": (right, right, right), "b": (wrong, right, right), "c": (right, right, right)})
    assert validity.shared_cases({"none": first, "twin": second}) == ["a"]


def test_the_summary_names_what_was_not_answered_and_what_is_undefined() -> None:
    row = Metric("both", value=0.25, low=0.1, high=0.5, n=8, n_invalid=2)
    assert demo._rate(row) == "25 % [10 %, 50 %] (n=8, 2 without an answer)"
    assert demo._rate(Metric("both")) == "undefined (n=0)"
    assert demo._rate(None) == "undefined (n=0)"


@pytest.mark.long
@pytest.mark.parametrize("cores", [1, 2])
def test_why_a_run_of_the_demo_fails_is_said_whatever_process_it_is_in(
    cores: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(demo, "machine", lambda: {"cores": cores})
    jobs = [demo.DemoRun("nosuch", "mixed", str(tmp_path), 0, "cpu")]
    own = multiprocessing.get_context("spawn").Process(target=time.sleep, args=(600,))  # of a program that calls it
    own.start()
    with pytest.raises(InputError, match="nosuch"):
        demo._run_jobs(jobs, Reporter(quiet=True))
    own.join(1)
    assert multiprocessing.active_children() == [own]
    own.kill()
    own.join()


@pytest.mark.slow
def test_the_demo_shows_the_dose_series_in_few_lines_and_continues_where_it_was(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["demo", "--out", str(tmp_path / "demo")]) == 0
    out, err = capsys.readouterr()
    lines = out.splitlines()
    assert 3 <= len(err.splitlines()) <= 20
    assert [line.split()[0] for line in lines[:8]] == ["mixed"] * 4 + ["temporal"] * 4
    assert lines[8].startswith("causes   control") and " failures: " in lines[8]
    assert {line.split()[1].split("/")[0] for line in lines[9:-2]} == {"lookback", "neurons", "cosine", "min-k"}
    assert lines[-1].endswith("report.html") and Path(lines[-1].split("report: ")[1]).is_file()
    whole = {}
    for dose in weights.DOSES:
        rows = read_json(tmp_path / "demo" / f"{dose}--mixed" / "metrics.json")["metrics"]
        whole[dose] = next(r for r in rows if r["metric"] == "composition" and not r["group"])
    assert whole["control"]["high"] < whole["twin"]["low"]
    asked = read_json(tmp_path / "demo" / "validity.json")
    assert {r["question"] for r in asked["rows"]} == set(validity.QUESTIONS.values())
    assert main(["demo", "--out", str(tmp_path / "demo")]) == 0
    assert len(capsys.readouterr().err.splitlines()) <= 20
    assert "0 asks put to the model" in (tmp_path / "demo" / "twin--mixed" / "log.txt").read_text()


def test_lines_of_the_demo_have_rates_with_intervals_and_depths_in_order(
    synthetic: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert (
        demo._rate(Metric("x", n=9, n_invalid=2, value=0.256, low=0.1, high=0.5))
        == "26 % [10 %, 50 %] (n=9, 2 without an answer)"
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


@pytest.mark.parametrize("again", [False, True])
def test_the_demo_hands_on_its_options_in_order_and_keeps_what_it_found(
    again: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: dict[str, Any] = {}
    monkeypatch.setattr(demo, "_run_jobs", lambda jobs, _: told.update(jobs=jobs))
    monkeypatch.setattr(demo, "read_diagnosis", lambda _: "found before" if again else None)
    monkeypatch.setattr(demo, "_diagnose", lambda job, quiet: told.update(diagnosed=(job, quiet)))
    monkeypatch.setattr(validity, "examine", lambda *args, **options: told.update(examined=(args, options)) or ["row"])
    monkeypatch.setattr(report, "write", lambda *args, **_: told.update(written=args) or tmp_path / "report.html")
    monkeypatch.setattr(demo, "summary", lambda *args: told.update(summary=args) or ["line"])
    assert demo.run_demo(tmp_path, seed=4, device="meta", quiet=True) == ["line"]
    jobs = [demo.DemoRun(d, w, str(tmp_path), 4, "meta") for d in weights.DOSES for w in ("mixed", "temporal")]
    folders = [tmp_path / f"{job.dose}--{job.world}" for job in jobs]
    assert told["jobs"] == jobs
    assert told.get("diagnosed") == (None if again else (jobs[2], True)), "those of control, once"
    (place, mixed), options = told["examined"]
    assert (place, list(mixed.values())) == (tmp_path, folders[::2])
    assert (options["seed"], options["device"], options["exposures"]) == (4, "meta", False)
    assert told["written"] == (folders, tmp_path)
    *shown, seconds = told["summary"]
    assert shown == [jobs, ["row"], tmp_path / "report.html"] and 0 <= seconds < 600
    kept = read_json(tmp_path / "study.json")
    assert kept == {"schema": 1, "runs": [f.name for f in folders], "seconds": seconds, "summary": ["line"]}
    (tmp_path / "manifest.json").write_text("{}")
    with pytest.raises(InputError, match="is a run"):
        demo.run_demo(tmp_path)


class Inline:
    """A pool that works at once, in this process."""

    def __init__(self, workers: int, *_: object) -> None:
        self.workers.append(workers)

    workers: ClassVar[list[int]] = []

    def __enter__(self) -> Inline:
        return self

    def __exit__(self, *_: object) -> None: ...

    def submit(self, work: Any, job: Any) -> Future[Any]:
        done: Future[Any] = Future()
        try:
            done.set_result(work(job))
        except Exception as e:
            done.set_exception(e)
        return done


class Process:
    ended = False

    def terminate(self) -> None:
        self.ended = True


RUNS = [(8, "cpu", [4]), (2, "cpu", [2]), (None, "cpu", []), (8, "cuda:1", [])]


@pytest.mark.parametrize(("cores", "device", "workers"), RUNS)
@pytest.mark.parametrize("fails", [None, InputError("why"), BrokenProcessPool("why")])
def test_runs_of_the_demo_share_the_cores_are_counted_when_done_and_end_with_one_that_fails(
    cores: int | None, device: str, workers: list[int], fails: Exception | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    jobs = [demo.DemoRun(dose, "mixed", "o", 0, device) for dose in weights.DOSES]
    worked, steps, (callers, own) = list[Any](), list[float](), (Process(), Process())
    children = iter([[callers], [callers, own]])

    def work(job: Any) -> None:
        worked.append(job)
        if fails is not None and job == jobs[1]:
            raise fails

    for name, value in (("work", work), ("machine", lambda: {"cores": cores}), ("ProcessPoolExecutor", Inline)):
        monkeypatch.setattr(demo, name, value)
    monkeypatch.setattr(multiprocessing, "active_children", lambda: next(children))
    monkeypatch.setattr(Inline, "workers", [])
    reporter: Any = SimpleNamespace(say=lambda _: None, bar=lambda *_: nullcontext(steps.append))
    broken = isinstance(fails, BrokenProcessPool) and bool(workers)
    with nullcontext() if fails is None else pytest.raises(ComposcopeError if broken else type(fails)):
        demo._run_jobs(jobs, reporter)
    assert Inline.workers == workers and worked == jobs[: 2 if fails and not workers else 4]
    assert fails is not None or sum(steps) == len(jobs)
    assert (callers.ended, own.ended) == (False, isinstance(fails, InputError) and bool(workers))


def test_the_demo_names_the_causes_of_the_first_failures_of_every_kind_with_its_own_seed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: list[Any] = []
    config = Config(model="organism:control", benchmark="organism:mixed")
    monkeypatch.setattr(demo, "read_run", lambda _: SimpleNamespace(config=config))
    monkeypatch.setattr(job, "labelled_failures", lambda _: [f"a{i}" for i in range(30)])
    monkeypatch.setattr(job, "in_turn", lambda failing: failing[::-1])
    monkeypatch.setattr(job, "diagnosed", lambda *args: given.append(args[2:4]))
    monkeypatch.setattr(target, "load_local", lambda *_: SimpleNamespace(close=lambda: given.append("closed")))
    demo._diagnose(demo.DemoRun("control", "mixed", str(tmp_path), 4, None), True)
    assert given == [([f"a{i}" for i in range(29, 17, -1)], 4), "closed"]
