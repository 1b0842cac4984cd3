"""Asking and scoring: what the bars count, and what is handed to the end of a run."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from told_engine import ToldEngine, target

from composcope.errors import InputError
from composcope.evaluation.asks import Ask
from composcope.evaluation.cases import Case, Part, write_cases
from composcope.evaluation.engines import divergence
from composcope.evaluation.graded import Graded
from composcope.experiments import investigate as job
from composcope.experiments.config import Config
from composcope.experiments.evaluating import evaluate
from composcope.experiments.investigate import investigate
from composcope.experiments.run import checks, read_json, read_lines
from composcope.experiments.run.reader import RunData, read_config


class Said:
    """A reporter that keeps what it is told."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.counted: list[tuple[str, int, list[float]]] = []

    def say(self, line: str) -> None:
        self.lines.append(line)

    @contextmanager
    def bar(self, title: str, total: int, **_: Any) -> Iterator[Any]:
        self.counted.append((title, total, []))
        yield self.counted[-1][2].append


def test_a_bar_of_each_round_counts_its_asks_once() -> None:
    said: Any = Said()
    with evaluate.bars(said) as report:
        for round, done, total in ((1, 2, 5), (1, 5, 5), (2, 1, 3), (2, 3, 3)):
            report(SimpleNamespace(round=round, done=done, total=total))  # type: ignore[arg-type]
    assert said.counted == [("asking", 5, [2, 3]), ("asking, round 2", 3, [1, 2])]


def test_human_labels_given_to_score_are_compared_with_the_grades(
    synthetic: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = synthetic.make_run(tmp_path / "run", n=3, probes=())
    wholes = [(r["case"], r["outcome"]) for r in map(json.loads, (run / "graded.jsonl").read_text().splitlines())
              if r["role"] == "whole"]  # fmt: skip
    file = tmp_path / "labels.jsonl"
    file.write_text("".join(json.dumps({"case": c, "label": "correct"}) + "\n" for c, _ in wholes))
    given: dict[str, Any] = {}

    counted = SimpleNamespace(n_invalid=7)

    def finish(path: Path, cases: Any, protocol: Any, found: Any, compat: Any, labels: Any) -> Any:
        given.update(compat=compat, labels=labels, cases=[c.id for c in cases], path=path)
        return counted

    graded = SimpleNamespace(warnings=["odd"], graded=[], responses={})
    monkeypatch.setattr(evaluate, "finish", finish)
    monkeypatch.setattr(evaluate, "_graded_again", lambda run, cases, how, bar: (how.compat, graded))
    said: Any = Said()
    assert evaluate.rescore(run, said, "collapse", file) is counted
    assert json.loads((run / "manifest.json").read_text())["n_invalid"] == 7
    assert given == {"compat": "collapse", "labels": file, "cases": [c for c, _ in wholes], "path": run}
    assert said.lines == ["run: odd", "run: 0 answers graded again"]
    rows = [Graded(c, "whole", o) for c, o in wholes]
    agreed = next(m for m in checks.agreement(rows, checks.read_labels(file)) if m.metric == "human_agreement")
    assert (agreed.count, agreed.n) == (sum(o == "correct" for _, o in wholes), sum(o != "invalid" for _, o in wholes))


def test_a_run_without_its_cases_is_not_counted_again(synthetic: ModuleType, tmp_path: Path) -> None:
    run, said = synthetic.make_run(tmp_path / "run", n=3, probes=()), Said()
    before = (run / "graded.jsonl").read_bytes()
    (run / "cases.jsonl").unlink()
    for again in (lambda: evaluate.rescore(run, said), lambda: evaluate.recount(run, "collapse")):  # type: ignore[arg-type]
        with pytest.raises(InputError, match=r"cases\.jsonl"):
            again()
    assert (run / "graded.jsonl").read_bytes() == before


# --- a whole small run, worked out by hand --------------------------------------------------------------------------


def _told(ask: Ask, _: float) -> str:
    """Of four wholes, three answered: one of them wrong; a part of the third is wrong."""
    if ask.role == "whole":
        return {"c0": ask.gold, "c1": "Quito", "c2": ask.gold, "c3": ""}[ask.case]
    return "Quito" if (ask.case, ask.role) == ("c2", "part:1") else ask.gold


def _cases() -> list[Case]:
    part = lambda i, j: Part(f"Capital {i}{j}?", f"Town{i}{j}", "fact", "text")  # noqa: E731
    return [Case(f"c{i}", f"Who leads {i}?", f"Ann{i}", (part(i, 0), part(i, 1)), "text", family="fg"[i % 2], depth=2)
            for i in range(4)]  # fmt: skip


@pytest.fixture
def ran(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    write_cases(_cases(), tmp_path / "cases.jsonl")
    answers = target("m", _told)
    opened: list[bool] = []
    journal = answers.engine.open_journal

    def kept(at: Path, *, reuse: bool) -> Any:
        opened.append(reuse)
        return journal(at, reuse=reuse)

    monkeypatch.setattr(answers.engine, "open_journal", kept)

    def ask(**options: Any) -> tuple[Path, Any]:
        config = Config(model="m", benchmark=str(tmp_path / "cases.jsonl"), protocol="compositionality-gap", **options)
        return tmp_path / "run", investigate(config, tmp_path / "run", contrast=False, target=answers).evaluated

    return ask, opened, answers.engine


def test_a_small_run_says_counts_and_records_what_was_answered(ran: Any, capsys: pytest.CaptureFixture[str]) -> None:
    ask, opened, _ = ran
    run, found = ask(few_shot="2", seed=3)
    said = capsys.readouterr().err
    invalid = {(r.case, r.role) for r in found.graded if r.outcome == "invalid"}
    assert invalid == {("c3", "whole")} and "12 asks put to the model, 0 answered from the journal" in said
    assert "1 of 12 answers are invalid: " in said and "(first: case 'c3', role 'whole')" in said
    rows = {m.metric: m for m in found.reduction.metrics if not m.group}
    numbers = {name: (m.count, m.n, m.n_invalid) for name, m in rows.items()}
    assert numbers["step:0"] == (4, 4, 0) and numbers["step:1"] == (3, 4, 0) and numbers["both"] == (3, 4, 0)
    assert numbers["composition"] == (2, 3, 1) and numbers["press_gap"] == (1, 2, 1)
    assert (rows["composition"].bound_low, rows["composition"].bound_high) == (0.5, 0.75)
    doubted = rows["composition"].grader_low, rows["composition"].grader_high
    assert doubted == (0.25, 0.75), "one right answer may be graded wrongly"
    (warning,) = (w for w in found.reduction.warnings if "are invalid" in w)
    assert warning.startswith("whole: 1 of 4 answers (25%)")
    assert "--judge MODEL" in warning and "few-shot" not in warning, "examples were shown"
    manifest = read_json(run / "manifest.json")
    assert {k: manifest[k] for k in ("n_cases", "n_invalid", "stopped", "seed", "status")} == {
        "n_cases": 4, "n_invalid": 1, "stopped": None, "seed": 3, "status": "complete"}  # fmt: skip
    assert manifest["identity"] == {
        "model": "m", "weights": "weights of m", "benchmark": "cases.jsonl", "data": manifest["benchmark"]["sha256"],
        "protocol": "compositionality-gap", "format": "short", "prompting": "chat", "seed": 3, "shard": None,
        "asking": {"few_shot": "2"}}  # fmt: skip
    settled = {"protocol": "compositionality-gap", "format": "short", "prompting": "chat", "seed": 3, "limit": None}
    assert settled.items() <= read_config(run).items()
    answered_by = {"identity": {"weights": "weights of m", "model": "m"}, "provenance": {"engine": "told"}}
    assert manifest["engine"] == answered_by
    assert manifest["benchmark"]["n_cases"] == 4
    assert {r["model"] for r in read_lines(run / "graded.jsonl")} == {"m"}
    sets = {s.name: s.ids for s in found.reduction.case_sets}
    assert (sets["both-right-whole-wrong"], sets["both-right-whole-right"]) == (("c1",), ("c0",))
    again, _ = ask(few_shot="2", seed=3, limit=1, reuse=True)
    assert "results of 4 cases are replaced by those of 2; all answers are kept" in capsys.readouterr().err
    assert opened == [False, True] and read_json(again / "manifest.json")["n_cases"] == 2


def test_a_run_scored_with_human_labels_and_as_a_paper_has_both_in_its_numbers(ran: Any, tmp_path: Path) -> None:
    run, _ = ran[0]()
    people = (("c0", True), ("c1", True), ("c3", False))
    (labels := tmp_path / "labels.jsonl").write_text(
        "".join(json.dumps({"case": c, "label": right}) + "\n" for c, right in people)
    )
    said: Any = Said()
    found = evaluate.rescore(run, said, None, labels)
    numbers = {m.metric: (m.count, m.n, m.n_invalid) for m in found.reduction.metrics if m.metric.startswith("human")}
    assert numbers == {"human_agreement": (1, 2, 1), "human_precision": (1, 1, 1), "human_recall": (1, 2, 1)}
    assert RunData(run).counted_now().compat is None and said.counted == [("grading again", 12, [1] * 12)]
    as_paper = evaluate.rescore(run, said, "agentcoma")
    assert RunData(run).counted_now().compat == "agentcoma"
    whole = next(m for m in as_paper.reduction.metrics if m.metric == "composition" and not m.group)
    assert (whole.count, whole.n) == (2, 4), "what cannot be judged is wrong there"


def test_results_that_were_scored_otherwise_are_not_replaced_without_a_word(
    ran: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run, _ = ran[0]()
    (labels := tmp_path / "labels.jsonl").write_text(json.dumps({"case": "c0", "label": True}))
    score: Any
    silent: Any = Said()
    for score, options, lost in (
        ({}, {}, ""), ({"compat": "agentcoma", "labels": labels}, {}, "--compat agentcoma and --human-labels"),
        ({"labels": labels}, {}, "--human-labels"), ({"compat": "agentcoma"}, {"compat": "agentcoma"}, ""),
    ):  # fmt: skip
        evaluate.rescore(run, silent, **score)
        capsys.readouterr()
        ran[0](**options)
        told = [line for line in capsys.readouterr().err.splitlines() if "that were scored with" in line]
        assert [line.split("with ")[1].split(" are ")[0] for line in told] == [lost] * bool(lost)
    (run / "metrics.json").write_text("{")
    ran[0]()
    assert RunData(run).counted_now().compat is None, "a broken file is written again"
    for given, named in (({"compat": "agentcoma"}, False), ({"compat": "agentcoma"}, False), ({}, True), ({}, False)):
        said: Any = Said()
        evaluate.rescore(run, said, given.get("compat"))  # also where an audit is drawn or counted
        assert any("--compat agentcoma are replaced" in line for line in said.lines) == named


def test_a_run_that_was_stopped_is_continued_and_scored_again_from_its_journal_with_failures_and_judge(
    ran: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    ask, _, engine = ran
    failing = ("c0", "part:0")
    engine.rule = lambda a, n: None if (a.case, a.role) == failing else "Ann 1 or so" if a.case == "c1" else _told(a, n)
    monkeypatch.setattr(job, "open_judge", lambda config: ToldEngine("judge", lambda a, _: "Verdict: yes"))
    run, _ = ask(max_asks=5, judge="organism:twin")
    first = capsys.readouterr().err
    assert read_json(run / "manifest.json")["stopped"] and "stopped by" in first and "did not finish" not in first
    (run / "metrics.json").unlink()
    _, found = ask(judge="organism:twin")
    said = capsys.readouterr().err
    assert "did not finish; the missing answers are asked first" in said and "stopped by" not in said
    assert read_json(run / "manifest.json")["stopped"] is None and len(found.graded) == 12
    assert {(r.case, r.role) for r in found.graded if (r.reason or "").startswith("error")} == {failing}
    assert any(r.match == "judge" for r in found.graded)
    agreed = next(m for m in found.reduction.metrics if m.metric == "judge_agreement")
    assert read_json(run / "manifest.json")["judge_agreement"] == agreed.to_dict()
    kept = {name: (run / name).read_bytes() for name in ("metrics.json", "graded.jsonl")}
    reporter: Any = Said()
    assert evaluate.rescore(run, reporter).n_invalid == found.n_invalid
    assert {name: (run / name).read_bytes() for name in kept} == kept
    config = (run / "config.yaml").read_text()
    (run / "config.yaml").write_text(config.replace("prompting: chat", "prompting: raw"))
    with pytest.raises(InputError, match="'prompting' is raw, and chat in manifest"):
        evaluate.rescore(run, reporter)


@pytest.mark.parametrize(
    ("made", "known", "measured", "asked"),
    [
        ({"engine": "transformers", "dtype": "bfloat16"}, False, "m", True),
        ({"engine": "transformers", "dtype": "float16"}, False, None, True),
        ({"engine": "transformers", "dtype": "bfloat16"}, True, "m", False),
        ({"engine": "transformers", "dtype": "float32"}, False, "m", False),
        ({"engine": "vllm", "dtype": "bfloat16"}, False, "m", False),
    ],
)
def test_how_much_answers_depend_on_their_batch_is_measured_once_of_a_model_of_16_bits_here(
    made: dict[str, str], known: bool, measured: str | None, asked: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    recorded: dict[str, Any] = {}
    timed: list[str] = []
    facts = {"batch_divergence": "x"} if known else {}
    run: Any = SimpleNamespace(
        manifest=SimpleNamespace(facts=lambda: facts), record=lambda **about: recorded.update(about),
        timed=lambda what: timed.append(what) or nullcontext(),
    )  # fmt: skip
    engine: Any = SimpleNamespace(provenance=made)
    given: list[Any] = []
    monkeypatch.setattr(divergence, "sample", lambda asks: ("sample", *asks))
    monkeypatch.setattr(divergence, "measure", lambda *about: given.append(about) or measured)
    monkeypatch.setattr(divergence, "in_words", lambda found: f"{found} in words")
    found: Any = SimpleNamespace(asks={"k": "ask"})
    said = evaluate._batch_divergence(run, engine, found)
    assert given == ([(engine, ("sample", "ask"))] if asked else []) and timed == ["divergence"] * asked
    told = asked and measured is not None
    assert (said, recorded) == ((["m in words"], {"batch_divergence": "m"}) if told else ([], {}))


def test_an_evaluation_that_did_not_finish_says_that_it_goes_on(ran: Any, capsys: pytest.CaptureFixture[str]) -> None:
    ask, *_ = ran
    run, _ = ask()
    assert "did not finish" not in capsys.readouterr().err
    ask()
    said = capsys.readouterr().err
    assert "did not finish" not in said and "are replaced" not in said
    (run / "metrics.json").unlink()
    ask()
    assert "run: the evaluation did not finish" in capsys.readouterr().err
    ask(limit=1)
    assert "results of 4 cases are replaced by those of 2" in capsys.readouterr().err
