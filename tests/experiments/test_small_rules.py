"""Rules of commands and run folders, each with the values that they give: progress, labels, costs, lists, summaries."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import permutations
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from composcope.evaluation.asks import Ask, Response
from composcope.evaluation.cases import Case, Part
from composcope.evaluation.graded import Graded
from composcope.evaluation.metrics import Metric
from composcope.evaluation.protocols.base import Entry, Evidence
from composcope.experiments import analyzing, investigate
from composcope.experiments.config import Config
from composcope.experiments.evaluating import auditing, cost, evaluate, merge
from composcope.experiments.notebook import shown as displayed
from composcope.experiments.notebook.results import CaseResult, _line
from composcope.experiments.organism import benchmarks, measure, tasks, world
from composcope.experiments.probing import run as probing
from composcope.experiments.run import checks, compare, diagnosis, failures, rendered, summary
from composcope.experiments.run.diagnosis import CauseShare, Diagnosis, Verdict
from composcope.probes.catalog import PROBES


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


def test_a_sample_of_greedy_asks_is_spread_over_all_of_them() -> None:
    asks = [Ask(f"c{i}", "whole", "q", "a", "text", temperature=i % 4 / 4) for i in range(400)]
    sample = [int(a.case[1:]) for a in evaluate.divergence_sample(asks)]
    assert sample == [4 * (i * 100 // 16) for i in range(16)] and evaluate.divergence_sample(asks[:9]) == asks[0:9:4]
    engines = [SimpleNamespace(provenance={"engine": e, "dtype": d}) for e, d in (
        ("transformers", "bfloat16"), ("transformers", "float16"), ("transformers", "float32"), ("vllm", "bfloat16"))
    ]  # fmt: skip
    assert [evaluate.depends_on_batch(e) for e in engines] == [True, True, False, False]
    told = {
        "dtype": "bfloat16",
        "n": 16,
        "n_different": 4,
        "rate": 0.25,
        "low": 0.07,
        "high": 0.52,
        "margins": [0.3, 0.1, 0.2],
    }
    line = evaluate.divergence_line(told)
    assert line.startswith("in bfloat16 4 of 16 answers") and "(25 % [7 %, 52 %]" in line and "0.2 logits apart" in line


def test_human_labels_given_to_score_are_compared_with_the_grades(
    synthetic: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = synthetic.make_run(tmp_path / "run", n=3, probes=())
    wholes = [(r["case"], r["outcome"]) for r in map(json.loads, (run / "graded.jsonl").read_text().splitlines())
              if r["role"] == "whole"]  # fmt: skip
    file = tmp_path / "labels.jsonl"
    file.write_text("".join(json.dumps({"case": c, "label": "correct"}) + "\n" for c, _ in wholes))
    given: dict[str, Any] = {}

    def finish(path: Path, cases: Any, protocol: Any, found: Any, compat: Any, labels: Any, signed: Any) -> str:
        given.update(compat=compat, labels=labels, cases=[c.id for c in cases], path=path)
        return "done"

    graded = SimpleNamespace(warnings=["odd"], graded=[], responses={})
    monkeypatch.setattr(evaluate, "finish", finish)
    monkeypatch.setattr(evaluate, "_graded_again", lambda run, cases, how, bar: (how.compat, graded))
    monkeypatch.setattr(evaluate.checks, "signed_otherwise", lambda *_: ([], [], {}))
    said: Any = Said()
    assert evaluate.rescore(run, said, "collapse", file) == "done"
    assert given == {"compat": "collapse", "labels": file, "cases": [c for c, _ in wholes], "path": run}
    assert said.lines == ["run: odd", "run: 0 answers graded again"]
    rows = [Graded(c, "whole", o) for c, o in wholes]
    agreed = next(m for m in checks.agreement(rows, checks.read_labels(file)) if m.metric == "human_agreement")
    assert (agreed.count, agreed.n) == (sum(o == "correct" for _, o in wholes), sum(o != "invalid" for _, o in wholes))


def test_a_warning_needs_more_than_one_answer_in_twenty_and_counts_shared_asks_once() -> None:
    def rows(n: int, cut: int) -> tuple[list[Graded], dict[str, Ask], dict[str, Response]]:
        asks = {str(i): Ask(f"c{i}", "part:0:paraphrase:1", "q", "a", "text") for i in range(n)}
        graded = [
            Graded(f"c{i}", f"part:0:paraphrase:{i % 2}", "invalid" if i < cut else "correct", ask=str(i))
            for i in range(n)
        ]
        said = {str(i): Response(str(i), "a", "length" if i < cut else "stop", 1, 1) for i in range(n)}
        return [*graded, *graded[:cut]], asks, said

    assert checks.asking_warnings(*rows(20, 1)) == []
    (line,) = checks.asking_warnings(*rows(20, 2))
    assert line.startswith("part:0:paraphrase: 2 of 20 answers (10%) are cut off (first: case 'c0')")
    assert line.endswith("try a larger --answer-tokens")
    ask = Ask("c", "whole", "q", "a b", "text", format="short")
    long = replace(ask, format="cot")
    answers = (("invalid", ask, "a", "stop"), ("invalid", ask, "", "error"), ("correct", ask, "w " * 27, "stop"),
               ("correct", ask, "w " * 28, "stop"), ("correct", long, "w " * 99, "stop"))  # fmt: skip
    told = [checks._troubles(Graded("c", "whole", outcome), asked, Response("x", text, end, 1, 1))  # type: ignore[arg-type]
            for outcome, asked, text, end in answers]  # fmt: skip
    assert told == [["invalid"], [], [], ["verbose"], []]


def test_probes_cost_what_their_cases_roles_and_layers_make() -> None:
    config = Config(model="m", benchmark="b", probes=("lookback", "patching"), probe_cases=8, case_details=2)
    lines = cost._probe_lines(config, 40, 3, 12)
    sizes = {"prompts": 48, "cases": 16, "twice": 32, "pairs": 8, "layers": 12}
    assert lines == [
        "probes on at most 8 failures and as many successes, or 16 cases without pairs, in up to 3 roles, "
        "forwards at most:",
        *(f"  {name}: {PROBES[name].cost.format(**sizes)}" for name in config.probes),
        "  single cases for the report: 12 prompts, sweeps over positions limited to about ten seconds",
    ]
    assert cost._probe_lines(config, 5, 3, 12)[0].startswith(
        "probes on at most 2 failures and as many successes, or 5 cases"
    )
    assert cost._probe_lines(config.replace(probes=()), 40, 3, 12) == []


def test_every_ask_of_all_rounds_is_planned_once() -> None:
    class Rounds:
        def asks(self, case: Case, graded: Any) -> list[Ask]:
            first = [Ask(case.id, "whole", case.question, "a", "text"), Ask(case.id, "part:0", "shared", "a", "text")]
            more = [Ask(case.id, "part:1", f"{case.id} again", "a", "text")]
            return first + (more if graded and graded["whole"].outcome == "incorrect" else [])

    cases = [Case("a", "qa", "a"), Case("b", "qb", "a")]
    planned = {o: [a.prompt for a in cost.all_asks(cases, Rounds(), o)] for o in ("correct", "incorrect")}  # type: ignore[arg-type]
    assert planned == {"correct": ["qa", "shared", "qb"], "incorrect": ["qa", "shared", "a again", "qb", "b again"]}


def test_settings_that_differ_between_merged_runs_are_named_with_their_values() -> None:
    def run(torch: str, dtype: str) -> Any:
        return SimpleNamespace(manifest=SimpleNamespace(
            composcope={"version": "1", "source": "abc"}, versions={"torch": torch, "numpy": torch}, engine=None,
            numerics={"dtype": dtype, "device": "cpu"}))  # fmt: skip

    assert merge.made_otherwise([run("2", "float32"), run("3", "float32"), run("2", "float16")]) == {
        "torch": ["2", "3"], "dtype": ["float32", "float16"]}  # fmt: skip
    assert merge.made_otherwise([run("2", "float32")] * 2) == {}
    parts = [SimpleNamespace(positions=(1, 3)), SimpleNamespace(positions=(0, 2))]
    runs = [SimpleNamespace(cases=dict(zip(ids, ids, strict=True))) for ids in ("bd", "ac")]
    assert merge._in_order(runs, parts) == list("abcd")  # type: ignore[arg-type, comparison-overlap]


def test_an_audit_draws_evenly_and_gives_what_small_strata_lack_to_the_others() -> None:
    import random

    strata = {("text", str(n)): [Graded(f"{n}-{i:02d}", "whole", "correct") for i in range(n)] for n in (20, 2, 9)}
    drawn = list(auditing._shares(strata, 16, random.Random(0)))
    assert sorted(map(len, drawn)) == [2, 7, 7] and len({r.case for rows in drawn for r in rows}) == 16
    backwards = {key: rows[::-1] for key, rows in strata.items()}
    assert list(auditing._shares(backwards, 16, random.Random(0))) == drawn, "whatever the order of the rows"
    assert sum(map(len, auditing._shares(strata, 99, random.Random(0)))) == 31


def test_the_error_of_a_grader_weighs_each_stratum_by_its_share_of_the_run() -> None:
    sizes = {("text", "correct"): 60, ("text", "incorrect"): 30, ("text", "invalid"): 10}
    labels = {("text", "correct"): [True, True, False], ("text", "incorrect"): [True, False, False, False]}
    found = auditing._error("text", ["text"], sizes, labels)
    right, wrong = 60 * 2 / 3 + 30 / 4, 60 / 3 + 30 * 3 / 4
    assert found.false_minus is not None and found.false_minus.value == pytest.approx(30 / 4 / right)
    assert found.false_plus is not None and found.false_plus.value == pytest.approx(60 / 3 / wrong)
    assert found.false_minus.low < found.false_minus.value < found.false_minus.high
    assert (found.labelled, found.invalid) == (7, 0.1)
    (line,) = auditing.lines([found])
    assert f"false minus {100 * 7.5 / right:.1f} %" in line and "invalid 10.0 % (7 labelled)" in line


def test_sizes_and_numbers_of_runs_of_an_analysis_are_checked() -> None:
    sizes = analyzing._sizes(analyzing.AnalysisOptions(sizes=("a=b=7", "x=0.5")))
    assert sizes == {"a=b": 7.0, "x": 0.5}
    for least, most, given, wanted in ((1, 1, 2, "give 1"), (2, None, 1, "at least 2"), (1, 3, 4, "give 1 to 3")):
        with pytest.raises(analyzing.InputError, match=wanted):
            analyzing._runs(least, most)("n", [None] * given)  # type: ignore[list-item]
    assert analyzing._runs(1, 3)("n", [1, 2]) == [1, 2]  # type: ignore[list-item, comparison-overlap]


FAILURES, SUCCESSES = (SimpleNamespace(name=n, label=n, entries=[0] * k) for n, k in (("failure", 3), ("success", 2)))


@pytest.mark.parametrize(
    ("failing", "right", "said"),
    [(1, 1, None), (0, 1, "no failure with every part right among 9 cases (failure 3, success 2; 4 answers invalid)"),
     (1, 0, "no success"), (0, 0, "no case")],
)  # fmt: skip
def test_a_run_without_a_contrast_says_what_is_missing(failing: int, right: int, said: str | None) -> None:
    sets = SimpleNamespace(case_sets=(FAILURES, SUCCESSES))
    ids = {"failure": [0] * failing, "success": [0] * right}
    found: Any = SimpleNamespace(ids=ids.get, cases=range(9), reduction=sets, n_invalid=4)
    line = investigate.no_contrast(found, Path("r"))
    assert (line is None) == (said is None) and (said or "") in (line or "")
    if line:
        assert ("use more or harder cases" in line) == (said or "").startswith("no failure")


def test_what_a_report_shows_decides_whether_it_is_written_again(synthetic: ModuleType, tmp_path: Path) -> None:
    run = synthetic.make_run(tmp_path / "run", n=2, probes=("min-k",))
    first = investigate.report_inputs(run)
    for unseen in ("log.txt", "journal/more.jsonl", "figures/a.png", "probes/.measured/a.safetensors"):
        (run / unseen).parent.mkdir(parents=True, exist_ok=True)
        (run / unseen).write_text("x")
        assert investigate.report_inputs(run) == first, unseen
    for shown in ("metrics.json", "graded.jsonl", "probes/min-k/table.csv", "casesets/x.jsonl", "diagnosis/table.csv",
                  "rendered.json", "../study.json"):  # fmt: skip
        path = run / shown
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text((path.read_text() if path.is_file() else "") + " ")
        before, first = first, investigate.report_inputs(run)
        assert first != before, shown


def test_examples_kept_for_the_report_are_counted_by_group() -> None:
    every = [SimpleNamespace(case=f"{g}{i // 2}", group=g) for g in ("failure", "success") for i in range(10)]
    few = SimpleNamespace(entries=[SimpleNamespace(about=vars(e)) for e in (every[0], every[1], every[4], every[12])])
    said = probing.statement(few, every)  # type: ignore[arg-type]
    assert said == "kept for 2 of 5 failure cases, 1 of 5 success cases"


def test_one_line_of_a_metric_is_in_its_own_unit() -> None:
    def line(name: str, value: float | None, **more: Any) -> str:
        return summary.metric_line(Metric(name, n=9, value=value, **more))

    assert (
        line("gap", -0.25, low=-0.5, high=0.1, interval="t") == "gap: -25.0 points [-50.0 points, 10.0 points] (t), n=9"
    )
    assert line("both", 0.5, n_invalid=2, note="x") == "both: 50.0 %, n=9, invalid=2 (x)"
    assert (line("d50", 3.456), line("mean_k", None)) == ("d50: 3.46, n=9", "mean_k: undefined, n=9")
    assert summary.metric_line(Metric("both", {"depth": 2, "family": "f"}, n=1, value=1.0)).startswith(
        "both [depth=2, family=f]"
    )
    right, wrong = Evidence("part:0", "correct", "x", "x"), Evidence("whole", "abstained", None, "krone")
    assert summary.entry_line(Entry("c", (right, wrong))) == "c: abstained, right is 'krone'"
    assert summary.entry_line(Entry("c", (right,))) == "c"


def test_failures_are_cases_whose_parts_are_all_right_and_whose_whole_was_judged_not_right() -> None:
    cases = {c: Case(c, "q", "a", (Part("p", "1"), Part("p", "2"))) for c in "abcdef"}
    said = {"a": "111", "b": "110", "c": "11a", "d": "100", "e": "11?", "f": "1"}
    named: dict[str, Any] = {"1": "correct", "0": "incorrect", "a": "abstained", "?": "invalid"}
    rows = [
        Graded(c, r, named[x])
        for c, of in said.items()
        for r, x in zip(("part:0", "part:1", "whole"), of, strict=False)
    ]
    run: Any = SimpleNamespace(case_sets={}, graded=rows, cases=cases)
    assert failures.counted_failures(run) == {"b", "c"}
    run.case_sets = {"x": SimpleNamespace(label="failure", ids=["a"]), "y": SimpleNamespace(label="success", ids=["b"])}
    assert failures.counted_failures(run) == {"a"}
    told = failures.Diagnosed(None, 1, 2)  # type: ignore[arg-type]
    assert told.left_out() == (
        "Not counted: 1 diagnosed case whose whole could not be judged, 2 diagnosed cases outside the sets of failures."
    )
    row = {
        "run": "r",
        "case": "c",
        "answer": None,
        "outcome": "abstained",
        "gold": "g",
        "cause": None,
        "question": "why  so?",
    }
    assert failures.failure_lines([row]) == ["c: abstained, right is 'g': why so?"]
    both = failures.failure_lines([row, {**row, "run": "s", "answer": "x", "cause": "near-miss"}])
    assert both[1] == f"s  c: answered 'x', right is 'g' (near-miss: {diagnosis.meaning('near-miss')}): why so?"


def test_a_diagnosis_is_summed_up_by_its_causes_the_most_frequent_first() -> None:
    verdicts = [Verdict(f"c{i}", c, ("e",)) for i, c in enumerate(["near-miss", "format", "format", "undetermined"])]
    shares = [
        CauseShare("all", "", c, k, 4, k / 4, 0.1, 0.9, "t")
        for c, k in (("near-miss", 1), ("format", 2), ("undetermined", 1))
    ]
    found = Diagnosis(Path("r"), verdicts, shares)
    assert found.sentence() == "Causes of 4 failures: 2 format, 1 near-miss; 1 undetermined."
    assert f"2 format ({diagnosis.meaning('format')})" in found.sentence(words=True)
    part = replace(found, about={"failures": 9})
    assert part.sentence().startswith("Causes of 4 of 9 failures")
    assert [str(s) for s in found.causes()][:2] == [
        "format: 2 of 4 (50 % [10, 90])",
        "near-miss: 1 of 4 (25 % [10, 90])",
    ]


def test_two_runs_are_compared_in_lines_that_name_the_side_of_each_number() -> None:
    role = {"role": "whole", "n": 40, "a": 0.5, "b": 0.25, "difference": 0.25, "low": -0.05, "high": 0.5,

            "interval": "t", "a_only": 12, "b_only": 2, "p": 0.01, "p_adjusted": 0.03, "test": "mcnemar",
            "note": None}  # fmt: skip
    assert compare._role_line(role) == (
        "whole: A 50.0 %, B 25.0 %, difference 25.0 points [-5.0, 50.0] (t), n=40, mcnemar p=0.01 (Holm 0.03)"
    )
    channel = {
        "metric": "delta_depth",
        "group": {"per": "fact"},
        "n": 9,
        "value": 1.5,
        "low": -0.5,
        "high": 2,
        "interval": "t",
        "note": "x",
    }
    assert compare._channel_line(channel) == "delta_depth: +1.5 steps [-0.5, +2.0] (t), n=9 (x)"
    assert compare._channel_line({**channel, "metric": "delta_comp", "group": {"depth_bin": 4}, "low": None}) == (
        "delta_comp (depth_bin 4): +150.0 points, n=9 (x)"
    )
    probe = {"quantity": "q", "kind": "k", "a": 0.5, "b": 0.25, "n": 8, "value": 0.25, "low": 0.1, "high": 0.4,

            "interval": "t", "effect": 0.5, "test": "welch", "p": 0.02, "p_adjusted": 0.04, "probe": "x",
            "note": ""}  # fmt: skip
    first, *rest = compare.probe_lines([{**probe, "p": p} for p in (0.5, None, 0.1)], ["said"], most=2)
    assert (
        first == "probe x, 3 numbers on the cases probed in both, the first 2; --json has all:" and rest[-1] == "said"
    )
    assert [" p=0.1 " in line or " p=0.5 " in line for line in rest] == [True, True, False] and " p=0.1 " in rest[0]
    assert compare._probe_line(probe) == (
        "  q (k): A 0.5, B 0.25, n=8, difference +0.25 [+0.1, +0.4] (t), g=0.50, welch p=0.02 (Holm 0.04)".strip()
    )
    a, b = (
        SimpleNamespace(cases=c)
        for c in (
            {
                "same": Case("same", "q", "a", (Part("p", "1"),)),
                "other": Case("other", "q", "a"),
                "only": Case("only", "q", "a"),
            },
            {"same": Case("same", "q", "a", (Part("p", "1"), Part("r", "2"))), "other": Case("other", "q", "b")},
        )
    )
    found = compare.shared_cases(a, b)  # type: ignore[arg-type]
    assert (found.n_a, found.n_b, found.same, found.changed) == (3, 2, ("same",), ("other",))
    asked = [("same", "whole"), ("same", "part:0:paraphrase:1"), ("same", "part:1:paraphrase:0"), ("other", "whole")]
    assert [found.comparable(*one) for one in asked] == [True, True, False, False]
    assert found.sentence() == (
        "1 case is the same in both runs (A has 3, B 2); 1 id in common but with another question or "
        "answer, not compared; parts that differ in 1 case are not compared"
    )


def test_what_stands_around_a_prompt_is_kept_once_and_put_together_again() -> None:
    known = rendered.Rendered([["<u>", "</u>"]], {"a": 0, "b": "all", "c": 3})
    assert [known.text(k, "P") for k in "abcd"] == ["<u>P</u>", "all", "P", "P"]
    assert (known.around("c"), known.around("b"), known.whole("a")) == (None, None, None)


def _case_result() -> CaseResult:
    case = Case("c", "Whole?", "3", (Part("One?", "1", paraphrases=("First?", "Uno?")), Part("Two?", "2")))
    rows = [
        Graded("c", "whole", "incorrect", answer="4", gold="3"),
        Graded("c", "part:0", "correct", answer="1", gold="1"),
        Graded("c", "part:0:paraphrase:1", "invalid", gold="1", reason="no-answer"),
        Graded("c", "part:1", "abstained", gold="2"),
    ]
    return CaseResult(case, "failure", rows, ["four", None, "?", "pass"])


def test_a_case_in_a_notebook_shows_its_questions_answers_and_marks() -> None:
    found = _case_result()
    rows = [found._row(g, None, said) for g, said in zip(found.graded, found.responses, strict=True)]
    assert [r["question"] for r in rows] == ["Whole?", "One?", "Uno?", "Two?"]
    assert [(r["role"], r["gold"], r["answer"], r["outcome"], r["reason"], r["response"]) for r in rows][::2] == [
        ("whole", "3", "4", "incorrect", None, "four"), ("part:0:paraphrase:1", "1", None, "invalid", "no-answer", "?")
    ]  # fmt: skip
    line = _line(found)
    assert (line["gold"], line["answer"], line["cause"]) == ("3", "4", None) and set(line) & {
        "part:0:paraphrase:1"
    } == set()
    assert repr(found) == "<case c (failure): parts ✓ abstained, whole ✗ '4', gold '3'>"
    bare = replace(found, graded=[])
    assert "whole not asked" in repr(bare) and bare.whole is None


def test_names_of_maps_and_axes_are_told_in_words() -> None:
    tensors = {
        "difference.composition": 0,
        "ratio.composition.failure": 0,
        "difference.math": 0,
        "p.math": 0,
        "other": 0,
    }
    assert [displayed.readable(n, tensors) for n in tensors] == [
        "failure - success", "failure", "math: failure - success", "math: p", "other"]  # fmt: skip
    assert displayed._distinct(["task", "task", "layer", "task"]) == ["task", "task 2", "layer", "task 3"]
    assert displayed._free("a", ["a", "a 2"]) == "a 3" and displayed._free("b", ["a"]) == "b"


def test_the_answer_of_an_organism_is_the_last_that_it_gives() -> None:
    cue = measure.prompts.ANSWER_CUE
    said = [
        ("<answer>1</answer> or <answer> 2 </answer>", "xml"),
        ("no tag", "xml"),
        (f"{cue} 1 {cue} 2", "plain"),
        ("8 plus 12 is 20", "plain"),
        (" kite ", "plain"),
    ]
    assert [measure.final_answer(*one) for one in said] == ["2", "", "2", "20", "kite"]


def test_a_question_that_is_drawn_again_is_no_other_case(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each draw comes twice, so that a case would be there twice."""
    real, last = dict(benchmarks._DRAW), dict[Any, Any]()

    def twice(family: str) -> Any:
        def draw(rng: Any, depth: int) -> Any:
            at = family, depth
            return last.pop(at) if at in last else last.setdefault(at, real[family](rng, depth))

        return draw

    monkeypatch.setattr(benchmarks, "_DRAW", {family: twice(family) for family in real})
    cases = benchmarks.temporal(4)
    cells = Counter((c.family, c.depth) for c in cases)
    assert cells == {(f, d): 4 for f, depths in benchmarks.FAMILIES.items() for d in depths}
    assert len({c.question for c in cases}) == len({c.id for c in cases}) == len(cases)
    assert [c.id for c in cases[:4]] == [f"pair-2-000{i}" for i in range(1, 5)]


@pytest.mark.parametrize("name", sorted(benchmarks.BENCHMARKS))
def test_cases_of_an_organism_are_what_their_world_says(name: str) -> None:
    """Answers, parts, depths and chances of every benchmark, computed from the world again."""
    known = world.world()
    cases = benchmarks.BENCHMARKS[name](8 if name != "temporal" else 2, 3)
    assert cases == benchmarks.BENCHMARKS[name](8 if name != "temporal" else 2, 3)
    assert cases != benchmarks.BENCHMARKS[name](8 if name != "temporal" else 2, 4)
    assert len({c.id for c in cases}) == len(cases) == len({c.question for c in cases})
    for case in cases:
        assert case.meta["format"] == "plain" and case.benchmark == f"organism-{name}"
        if name == "unknowable":
            assert case.unknowable and not case.parts
            continue
        if name != "temporal":
            assert case.depth == len(case.parts), "every step is a part"
        if name == "choices":
            assert case.chance == 1 / tasks.TABLE and case.answer == str(known.tags[case.parts[0].answer])
        if name in ("mixed", "ladders"):
            first, second = case.meta["chosen"]
            result = world.apply(str(case.operation), known.tags[first], known.tags[second])
            assert case.answer == case.parts[-1].answer == str(result)
            things = [world.apply(str(case.operation), known.tags[a], known.tags[b])
                      for a, b in permutations(case.meta["things"], 2)]  # fmt: skip
            hits = sum(x is not None and str(x) == case.answer for x in things)
            assert case.chance == pytest.approx(hits / len(things)) and 0 < (case.chance or 0) < 1
            assert case.meta["chance_informed"] == pytest.approx(hits / sum(x is not None for x in things))
            assert (case.cluster, case.meta["crossed"]) == (first, second) and len(case.meta["things"]) == tasks.TABLE
        if name == "ladders":
            assert [p.answer for p in case.parts[1:3]] == [str(known.tags[t]) for t in case.meta["chosen"]]
            assert [p.skill for p in case.parts] == [
                "choose by kind",
                "recall a tag",
                "recall a tag",
                f"numbers, {case.operation}",
            ]
        if name == "pairs":
            x, other = int(case.parts[0].answer), case.meta["original"]
            assert case.parts[1].question == case.meta["question_2"].replace("X", str(x), 1)
            assert other["answer"] != case.answer or other["question"] != case.parts[1].question
        if name == "temporal":
            years = {p.atom: p.answer for p in case.parts}
            assert all(atom == f"year:{atom.partition(':')[2]}" and str(known.years[atom.partition(":")[2]]) == y
                       for atom, y in years.items() if atom)  # fmt: skip
            wanted = {"rank": {4: 1 / 24, 6: 1 / 720, 8: 1 / 40320}, "successor": {4: 1 / 14, 6: 1 / 62, 8: 1 / 254}}
            assert case.chance == pytest.approx(
                wanted.get(str(case.family), {}).get(case.depth or 0, 1 / (case.depth or 1))
            )
