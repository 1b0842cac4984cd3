"""``composcope ls RUN --failures``: a run's failing cases, one line each, with question, answer and right answer."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from composcope.errors import InputError
from composcope.evaluation.cases import Case, Part
from composcope.evaluation.metrics import MEANINGS, Metric
from composcope.evaluation.protocols.base import Entry, Evidence
from composcope.experiments.cli import main
from composcope.experiments.diagnosis import job
from composcope.experiments.run import diagnosis, read_json, summary, write_json
from composcope.experiments.run.diagnosis import MEANS, CauseShare, Diagnosis, Verdict, count, meaning, write
from composcope.experiments.run.provenance import beside
from composcope.experiments.run.reader import RunData
from composcope.experiments.run.summary import _wrong, counted_failures, failing_cases, failure_lines

from .bare_runs import bare_run


@pytest.fixture
def run(synthetic: ModuleType, tmp_path: Path) -> Path:
    """A run whose failures are listed with their answers, as a real run lists them."""
    folder = synthetic.make_run(tmp_path / "runs" / "a", n=24, failure=0.6, seed=2, probes=())
    graded = {r["case"]: r for r in read(folder / "graded.jsonl") if r["role"] == "whole"}
    for file in (folder / "casesets").glob("*.jsonl"):
        rows = read(file)
        for row in rows:
            whole = graded[row["case"]]
            part = {"role": "part:0", "outcome": "correct", "answer": "not the whole", "gold": "not the whole"}
            row["evidence"] = [part, {k: whole[k] for k in ("role", "outcome", "answer", "gold")}]
        file.write_text("".join(json.dumps(r) + "\n" for r in rows))
    return folder


def read(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text().splitlines()]


def test_every_failing_case_has_a_line_with_question_answer_and_right_answer(
    run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    failing = [r["case"] for r in read(run / "casesets" / "residual-failure.jsonl")]
    graded = {r["case"]: r for r in read(run / "graded.jsonl") if r["role"] == "whole"}
    questions = {c["id"]: c["question"] for c in read(run / "cases.jsonl")}
    assert main(["ls", str(run), "--failures"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.partition(":")[0] for line in lines] == failing and failing
    for case, line in zip(failing, lines, strict=True):
        assert all(repr(graded[case][k]) in line for k in ("answer", "gold")) and questions[case] in line
    assert main(["ls", str(run), "--failures", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)["failures"]
    assert [(r["case"], r["question"], r["answer"], r["gold"], r["cause"]) for r in rows] == [
        (c, questions[c], graded[c]["answer"], graded[c]["gold"], None) for c in failing
    ]


def test_a_run_that_is_not_finished_does_not_keep_the_failures_of_others_from_being_listed(
    run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    finished = failing_cases(run)
    going_on = shutil.copytree(run, run.with_name("b"))
    for file in (going_on / "metrics.json", going_on / "graded.jsonl"):
        file.unlink()
    for folder, status in ((going_on, "interrupted"), (run, "failed")):  # what failed after it was counted is listed
        manifest = json.loads((folder / "manifest.json").read_text())
        (folder / "manifest.json").write_text(json.dumps({**manifest, "status": status}))
    assert main(["ls", str(run.parent), "--failures", "--json"]) == 0
    said = capsys.readouterr()
    assert json.loads(said.out)["failures"] == finished
    assert f"{going_on}: left out" in said.err and "(interrupted)" in said.err
    shutil.rmtree(run)
    shutil.copytree(going_on, run)
    with pytest.raises(InputError, match="not finished"):
        failing_cases(run.parent)


def test_a_diagnosed_case_is_listed_with_its_cause_and_cases_of_several_runs_with_their_run(
    run: Path, synthetic: ModuleType
) -> None:
    other = synthetic.make_run(run.parent / "b", n=24, failure=0.6, seed=3, probes=())
    first = failing_cases(run)[0]["case"]
    write(Diagnosis(run, [Verdict(first, "shortcut:last-item", ())], []))
    rows = failing_cases(run.parent)
    assert {r["run"] for r in rows} == {str(run), str(other)}
    assert [r["case"] for r in rows if r["cause"]] == [first]
    lines = failure_lines(rows)
    assert (
        "shortcut:last-item" in lines[0]
        and meaning("shortcut:last-item") in lines[0]
        and lines[0].startswith(f"{run}  {first}:")
    )
    assert all(line.startswith((f"{run}  ", f"{other}  ")) for line in lines)


@pytest.mark.parametrize(("n", "left"), [(3, None), (4, "  1 more case,"), (5, "  2 more cases,")])
def test_the_summary_of_causes_counts_the_cases_that_it_leaves_out(n: int, left: str | None) -> None:
    lines = Diagnosis(Path("r"), [Verdict(f"c{i}", "undetermined", ()) for i in range(n)], []).lines()
    assert [line for line in lines if " more case" in line] == [line for line in lines if left and left in line]
    assert left is None or left in lines[-1]


def test_the_wrong_answer_of_a_failure_is_that_of_its_whole() -> None:
    part, whole = (Evidence(role, "incorrect", role, "x") for role in ("part:0", "whole"))
    right = Evidence("part:1", "correct", "x", "x")
    assert [_wrong(Entry("c", e)) for e in ((part, whole), (right, part), (right,))] == [whole, part, None]


@pytest.mark.parametrize(
    ("about", "said"),
    [({}, "of 2 failures"), ({"failures": 2}, "of 2 failures"), ({"failures": 3, "unjudged": 1}, "of 2 of 3 failures")],
)
def test_a_sentence_on_causes_says_of_how_many_failures_they_are(about: dict[str, int], said: str) -> None:
    found = Diagnosis(Path("r"), [Verdict(c, "undetermined", ()) for c in "ab"], [], about)
    assert found.sentence().startswith(f"Causes {said}: ")


def test_a_failing_case_has_the_answer_and_gold_of_its_evidence_and_stands_once(run: Path) -> None:
    part, right = ({"role": "part:0", "outcome": o, "answer": "p", "gold": "q"} for o in ("incorrect", "correct"))
    silent = {"role": "whole", "outcome": "abstained", "answer": None, "gold": "as asked"}
    cases = RunData(run).cases
    told = dict(zip(cases, ([right, part], [part, silent], [right]), strict=False))
    sets = {"a": list(told), "b": list(told)[:1]}  # the first case is in both
    for name, ids in sets.items():
        rows = [{"set": name, "label": "failure", "case": c, "depth": 2, "evidence": told[c]} for c in ids]
        (run / "casesets" / f"{name}.jsonl").write_text("".join(json.dumps(r) + "\n" for r in rows))
    (run / "casesets" / "residual-failure.jsonl").unlink()
    said = ("incorrect", "p", "q"), ("abstained", None, "as asked"), ("incorrect", None, cases[[*told][2]].answer)
    assert failing_cases(run) == [
        {"run": str(run), "case": c, "set": "a", "family": None, "depth": 2, "question": cases[c].question,
         "outcome": outcome, "answer": answer, "gold": gold, "cause": None}
        for c, (outcome, answer, gold) in zip(told, said, strict=True)
    ]  # fmt: skip


def test_causes_are_listed_by_family_and_depth_only_where_there_are_several() -> None:
    cases = {c: Case(c, c, "x", family="one", depth=i + 2) for i, c in enumerate("ab")}
    verdicts = [Verdict("a", "format", ()), Verdict("b", "undetermined", ())]
    lines = Diagnosis(Path("r"), verdicts, count(verdicts, cases)).lines()
    assert [line.split(":")[0].strip() for line in lines if line.startswith(("  depth", "  family"))] == [
        "depth 2", "depth 3"]  # fmt: skip


def test_the_table_of_causes_says_what_it_was_made_with(tmp_path: Path) -> None:
    write(Diagnosis(tmp_path, [Verdict("c", "undetermined", ())], [], {"made_with": {"run": "r", "seed": 3}}))
    said = read_json(beside(tmp_path / "diagnosis" / "table.csv"))
    assert said["composcope:runs"] == [{"run": "r", "seed": 3}]


def test_what_a_diagnosis_says_about_itself_is_read_back(tmp_path: Path) -> None:
    verdicts, about = [Verdict("c", "undetermined", ())], {"failures": 3, "mended": {"move": {"count": 1, "n": 2}}}
    found = Diagnosis(tmp_path, verdicts, count(verdicts, {"c": Case("c", "c", "x")}), about)
    write(found)
    read = diagnosis.read_diagnosis(tmp_path)
    assert read is not None and read.about == about and read.document() == found.document()


def test_every_cause_that_the_terminal_names_stands_beside_what_it_means() -> None:
    causes = [*MEANS, "shortcut:last-item"]
    cases = {c: Case(c, c, "x") for c in causes}
    verdicts = [Verdict(c, c, ()) for c in causes]
    found = Diagnosis(Path("r"), verdicts, count(verdicts, cases))
    _, *shares = found.lines()[: len(causes) + 1]
    assert {line.split(":")[0].strip() for line in shares} == set(MEANS)
    for cause in causes:
        assert any(line.strip().startswith(f"{cause}:") and meaning(cause) in line for line in shares)
        assert cause == "undetermined" or f"1 {cause} ({meaning(cause)})" in found.sentence(words=True)
    assert not any(f"({meaning(c)})" in found.sentence() for c in causes)


def test_a_long_question_keeps_both_ends_on_its_line_and_is_whole_in_json() -> None:
    question = "First. " + "A fact about nothing.\n" * 500 + "What is asked?"
    row = {"run": "r", "case": "c", "outcome": "invalid", "answer": None, "gold": "x", "cause": None,
           "question": question}  # fmt: skip
    (line,) = failure_lines([row])
    assert len(line) < 500 and "\n" not in line and "First." in line and line.endswith("What is asked?")
    assert "invalid" in line and "answered" not in line


def test_a_whole_that_could_not_be_judged_is_no_failure_unless_it_is_named(run: Path) -> None:
    *counted, lost = [row["case"] for row in failing_cases(run)]
    rows = [r for r in read(run / "graded.jsonl") if r["case"] != lost or r["role"] == "whole"]
    parts = len(RunData(run).cases[lost].parts)
    sample = next(r for r in rows if r["case"] == lost)
    sample |= {"outcome": "invalid", "answer": None}
    rows += [{**sample, "role": f"part:{i}", "outcome": "correct"} for i in range(parts)]
    members = run / "casesets" / "residual-failure.jsonl"
    for file, kept in ((run / "graded.jsonl", rows), (members, [r for r in read(members) if r["case"] != lost])):
        file.write_text("".join(json.dumps(r) + "\n" for r in kept))
    data = RunData(run)
    assert sorted(c.id for c in job.labelled_failures(data)) == sorted(counted) == sorted(counted_failures(data))
    assert [c.id for c in job.failures(data, [lost])] == [lost]


def test_a_run_whose_only_failures_could_not_be_judged_is_diagnosed_by_them(
    synthetic: ModuleType, tmp_path: Path
) -> None:
    run = synthetic.make_run(tmp_path / "solved", n=8, failure=0.0, probes=())
    rows = read(run / "graded.jsonl")
    for row in [r for r in rows if r["role"] == "whole"][:3]:
        row |= {"outcome": "invalid", "answer": None}
    (run / "graded.jsonl").write_text("".join(json.dumps(r) + "\n" for r in rows))
    data = RunData(run)
    assert not counted_failures(data)
    declined = rows[next(i for i, r in enumerate(rows) if r["role"] == "whole" and r["outcome"] == "invalid")]
    declined["outcome"] = "abstained"  # who declines has answered, and failed
    (run / "graded.jsonl").write_text("".join(json.dumps(r) + "\n" for r in rows))
    assert counted_failures(RunData(run)) == {declined["case"]}
    assert {c.id for c in job.failures(data)} == job.unjudged(data) and len(job.unjudged(data)) == 3
    told = Diagnosis(run, [Verdict(id, "format", ()) for id in job.unjudged(data)], (), {"failures": 3, "unjudged": 3})
    assert "wholes that could not be judged" in told.sentence()
    others = replace(told, about={"failures": 3, "left_out": ["a", "b"]})
    assert any("2 more" in line and "a, b" in line for line in others.lines())
    assert not any("left out" in line for line in told.lines())


def test_failures_to_diagnose_are_the_counted_ones_and_the_named_ones_that_failed_or_are_open() -> None:
    def row(case: str, role: str, outcome: str, answer: str | None = None) -> Any:
        return SimpleNamespace(case=case, role=role, outcome=outcome, answer=answer, ask=f"{case} {role}")

    wrong, right = ("part:0", "incorrect"), ("part:0", "correct")
    told = {"right": (right, ("whole", "correct")), "open": (right, ("whole", "invalid")),
            "open too": (right, ("whole", "invalid")),
            "a": (right, ("part:0:paraphrase:0", "invalid"), ("whole", "incorrect")),
            "double gate": (wrong, ("whole", "incorrect")), "no parts": (("whole", "incorrect"),)}  # fmt: skip
    data: Any = SimpleNamespace(
        path=Path("run"), outcomes={id: dict(rows) for id, rows in told.items()},
        groups=(["a", "double gate", "no parts"],),
        cases={id: Case(id, "q", "x", (Part("p", "y"),) * (id != "no parts")) for id in told},
        graded=[row(id, *one) for id, rows in told.items() for one in rows],
        responses={f"{id} whole": SimpleNamespace(text=f" {id} ") for id in ("a", "open")},
    )  # fmt: skip
    assert [c.id for c in job.failures(data)] == ["a", "double gate"]
    assert [c.id for c in job.failures(data, [*told])] == ["open", "open too", "a", "double gate"]
    assert job.unjudged(data) == {"open", "open too"}
    for named, failures, unjudged, left_out in (
        ({"a"}, 2, 0, ["open", "open too"]), ({"a", "open"}, 3, 1, ["open too"]), ({"open"}, 2, 1, ["open too"])
    ):  # fmt: skip
        counted = {"failures": failures, "unjudged": unjudged, "left_out": left_out}
        assert job._of_how_many(data, named) == counted, named
    data.graded = [
        row("a", "whole", "incorrect", "y"),
        row("open", "whole", "invalid"),
        row("open", "part:0", "correct"),
    ]
    assert job._said_in_run(data) == {"a": "y", "open": "open"}


def test_a_run_ends_with_the_command_that_lists_its_failing_cases_and_its_metrics_say_what_they_are(run: Path) -> None:
    shown = summary.lines(run)
    assert any(f"composcope ls {run} --failures" in line for line in shown)
    groups = {tuple(m.group) for m in summary.headline(RunData(run).counted_now())}
    assert ("depth_bin",) in groups and not any("family" in group for group in groups)
    counted = read_json(run / "metrics.json")
    for row in counted["metrics"]:
        row["group"] = {"depth" if k == "depth_bin" else k: v for k, v in row["group"].items()}
    (run / "metrics.json").write_text(json.dumps(counted))
    assert ("depth",) in {tuple(m.group) for m in summary.headline(RunData(run).counted_now())}
    (run / "probes" / "began").mkdir(parents=True)
    write_json(run / "probes" / "done" / "result.json", {})
    assert summary.document(run)["probes"] == ["done"]
    assert [row["run"] for row in summary.list_folder(run.parent.parent)] == [str(run)], "two folders down"
    (listed,) = summary.list_folder(run)
    over_all = next((m for m in summary.headline(RunData(run).counted_now())
                     if m.metric in ("composition", "residual_failure") and not m.group), None)  # fmt: skip
    assert listed["headline"] == (over_all and summary.metric_line(over_all))
    for name in {m.metric for m in summary.headline(RunData(run).counted_now())} & set(MEANINGS):
        (said,) = [line for line in shown if MEANINGS[name] in line]
        assert said.strip().startswith(name)


def test_where_no_case_fails_nothing_is_listed_and_where_no_run_is_it_is_an_error(
    synthetic: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    solved = synthetic.make_run(tmp_path / "solved", n=8, failure=0.0, probes=())
    assert main(["ls", str(solved), "--failures"]) == 0
    found = capsys.readouterr()
    assert found.out == "" and str(solved) in found.err
    (tmp_path / "empty").mkdir()
    assert main(["ls", str(tmp_path / "empty"), "--failures"]) == 1
    assert str(tmp_path / "empty") in capsys.readouterr().err


def test_failures_are_cases_whose_parts_are_all_right_and_whose_whole_was_judged_not_right() -> None:
    cases = {c: Case(c, "q", "a", (Part("p", "1"), Part("p", "2"))) for c in "abcdef"}
    said = {"a": "111", "b": "110", "c": "11a", "d": "100", "e": "11?", "f": "1"}
    named: dict[str, Any] = {"1": "correct", "0": "incorrect", "a": "abstained", "?": "invalid"}
    roles = ("part:0", "part:1", "whole")
    outcomes = {c: {r: named[x] for r, x in zip(roles, of, strict=False)} for c, of in said.items()}
    cases["g"], outcomes["g"] = Case("g", "q", "a"), {"whole": "incorrect"}  # without parts, none of them is right
    run: Any = bare_run(outcomes=outcomes, cases=cases)
    assert summary.counted_failures(run) == {"b", "c"}
    run.case_sets = {"x": SimpleNamespace(label="failure", ids=["a"]), "y": SimpleNamespace(label="success", ids=["b"])}
    assert summary.counted_failures(run) == {"a"}
    told = summary.Diagnosed(None, 1, 2)  # type: ignore[arg-type]
    assert told.left_out() == (
        "Not counted: 1 diagnosed case whose whole could not be judged, 2 diagnosed cases outside the sets of failures."
    )
    row = {"run": "r", "case": "c", "answer": None, "outcome": "abstained", "gold": "g", "cause": None,
           "question": "why  so?"}  # fmt: skip
    assert summary.failure_lines([row]) == ["c: abstained, right is 'g': why so?"]
    both = summary.failure_lines([row, {**row, "run": "s", "answer": "x", "cause": "near-miss"}])
    assert both[1] == f"s  c: answered 'x', right is 'g' (near-miss: {diagnosis.meaning('near-miss')}): why so?"


def test_a_diagnosis_is_summed_up_by_its_causes_the_most_frequent_first() -> None:
    verdicts = [Verdict(f"c{i}", c, ("e",)) for i, c in enumerate(["near-miss", "format", "format", "undetermined"])]
    shares = [
        CauseShare("all", "", c, k, 4, k / 4, 0.1, 0.9, "t")
        for c, k in (("near-miss", 1), ("format", 2), ("undetermined", 1))
    ]
    shares += [CauseShare("family", f, "format", 1, 2, 0.5, 0.1, 0.9, "t") for f in "ab"]
    found = Diagnosis(Path("r"), verdicts, shares)
    assert found.sentence() == "Causes of 4 failures: 2 format, 1 near-miss; 1 undetermined."
    assert f"2 format ({diagnosis.meaning('format')})" in found.sentence(words=True)
    part = replace(found, about={"failures": 9})
    assert part.sentence().startswith("Causes of 4 of 9 failures")
    assert [str(s) for s in found.causes()][:2] == [
        "format: 2 of 4 (50 % [10 %, 90 %])",
        "near-miss: 1 of 4 (25 % [10 %, 90 %])",
    ]
    assert found.causes("family", "b") == shares[-1:]


def test_a_run_in_a_list_has_its_number_over_all_cases(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    found = [Metric("residual_failure", {"depth": 2}, n=5, value=0.2), Metric("gap", n=9, value=0.1),
             Metric("residual_failure", n=9, count=3, value=1 / 3), Metric("composition", n=9, value=0.5)]  # fmt: skip
    manifest = SimpleNamespace(identity={"model": "m"}, status="complete", n_cases=9, created="now", stopped=None)
    monkeypatch.setattr(summary, "RunData", lambda _: SimpleNamespace(manifest=manifest, counted=found))
    monkeypatch.setattr(summary, "headline", lambda counted: counted)
    row = summary._row(tmp_path)
    assert row["headline"] == summary.metric_line(found[2]) and (row["cases"], row["state"]) == (9, "complete")
    found[:] = found[:2]
    assert summary._row(tmp_path)["headline"] == summary.metric_line(found[1]), "a protocol with other numbers"
    found[:] = found[:1]
    assert summary._row(tmp_path)["headline"] is None


def test_counts_of_what_mends_say_why_they_have_no_interval() -> None:
    verdicts = [Verdict("c", "format", ("e",))]
    about = {"mended": {"filler": {"count": 2, "n": 4}, "repeated": {"count": 0, "n": 4}}}
    (line,) = (x for x in Diagnosis(Path("r"), verdicts, (), about).lines() if "2 of 4" in x)
    assert "0 of 4" in line and "no intervals" in line


def test_of_a_diagnosis_the_counted_failures_are_kept_and_the_others_are_told_by_why_they_are_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cases = {c: Case(c, "?", "1", (Part("?", "1"),)) for c in "abcdef"}
    rows = [SimpleNamespace(case=c, role="whole", outcome="invalid" if c in "cd" else "incorrect") for c in cases]
    sets = {"x": SimpleNamespace(label="failure", ids=["a", "b"])}
    run: Any = bare_run(cases=cases, graded=rows, case_sets=sets)
    for diagnosed, kept, unjudged, outside in (("ab", "ab", 0, 0), ("abcd", "ab", 2, 0), ("acef", "a", 1, 2)):
        whole = Diagnosis(Path("r"), [Verdict(c, "format", ()) for c in diagnosed], (), {"failures": 2})
        monkeypatch.setattr(summary, "read_diagnosis", lambda path, whole=whole: whole)
        told = summary.diagnosed_failures(run)
        assert told is not None
        assert [v.case for v in told.found.verdicts] == [*kept]
        assert (told.unjudged, told.outside) == (unjudged, outside), diagnosed
        if kept != diagnosed:
            assert [(s.cause, s.n) for s in told.found.shares if s.n] == [("format", len(kept))]
    monkeypatch.setattr(summary, "read_diagnosis", lambda path: None)
    assert summary.diagnosed_failures(run) is None
