"""Options of asking: flags, config round trip, refusals, worked examples that do not fit; checks beside the metrics."""

from __future__ import annotations

import json
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml
from exit_codes import done

from composcope.errors import InputError
from composcope.evaluation.asks import Ask
from composcope.evaluation.cases import Case, Part, write_cases
from composcope.evaluation.graded import Graded
from composcope.evaluation.judging import JudgedGrades
from composcope.evaluation.metrics import find
from composcope.evaluation.protocols.asking import default_protocol
from composcope.experiments.cli import main
from composcope.experiments.config import Asking, Config
from composcope.experiments.evaluating import ask_plan, cost
from composcope.experiments.evaluating.ask_plan import (
    AskOptions,
    LoadedBenchmark,
    ask_options,
    load_benchmark,
    make_protocol,
    prepare,
    with_examples,
)
from composcope.experiments.evaluating.cost import choice_notice, depth_notice, gold_notice, limit_notice, pair_notice
from composcope.experiments.run import checks
from composcope.experiments.run.compare import compare_runs, comparison_lines

CHAIN = (Part("Q one?", "6", "math", "number"), Part("Q two with 6?", "8", "math", "number"))


def test_a_depth_that_is_not_the_number_of_parts_is_named_unless_the_benchmark_has_bins() -> None:
    def case(name: str, depth: int | None, n: int = 2, **other: Any) -> Case:
        return Case(name, "Q?", "8", CHAIN[:n], depth=depth, **other)

    fits = [case("two", 2), case("one", 1, 1), case("none", None), case("bare", 3, 0), case("bin", 3, depth_bin=2)]
    assert depth_notice(fits) == depth_notice(load_benchmark("organism:temporal", limit=2).cases) == []
    (line,) = depth_notice([*fits, case("long", 3), case("short", 2, 1)])
    assert "warning" in line and "2 of 7" in line and "long" in line and "short" in line and "'depth'" in line


def test_a_question_with_two_gold_answers_is_named_with_both() -> None:
    def case(name: str, answer: str, **other: Any) -> Case:
        return Case(name, f"Whole of {name}?", "8", (Part("In which country is Porto?", answer, **other),))

    alike = [case("a", "Portugal"), case("b", "portugal"), case("c", "Lusitania", aliases=("Portugal",))]
    told = [replace(case("d", "Spain"), evidence=("Porto was sold.",)), Case("e", "A - B?", "1")]
    told += [Case("f", "A B?", "2"), Case("g", "A B?", "3", unknowable=True)]
    assert gold_notice([*alike, *told]) == []
    tied = [
        Case(f"x{n}", "Tom has X pens and gets 1.", str(n + 1), (Part(f"What is {n} + 0?", str(n)),)) for n in (3, 4)
    ]
    assert gold_notice(tied) == [], "the value of X is that of the part before it"
    assert len(gold_notice([*tied, replace(tied[0], id="slip", answer="9")])) == 1
    (line,) = gold_notice([*alike, case("slip", "Spain"), case("twin", "Italy"), *told])
    assert "1 question" in line and "'Portugal' (case a, part:0)" in line and "'Spain' (case slip, part:0)" in line
    for known in ("world", "organism:mixed", "organism:temporal"):
        assert gold_notice(load_benchmark(known).cases) == []


def test_pairs_with_another_answer_than_their_second_question_are_named() -> None:
    fits = [
        Case(name, "Tom has X pens.", gold, CHAIN, "number") for name, gold in (("a", "8"), ("b", "8.0"), ("c", "$8"))
    ]
    assert pair_notice(fits, "reasoning-gap") == []
    odd = [*fits, replace(fits[0], id="odd", answer="9"), replace(fits[0], id="bare", answer="9", parts=CHAIN[:1])]
    (line,) = pair_notice(odd, "reasoning-gap")
    assert "1 of 4 pairs" in line and "odd ('9', part 1: '8')" in line and pair_notice(odd, "double-gate") == []


def test_choices_whose_options_no_prompt_lists_are_named() -> None:
    def case(name: str, **other: Any) -> Case:
        return Case(name, "Which?", "B", (replace(CHAIN[0], answer_type="choice", **other),))

    listed = Case("asks", "Which? (A) red (B) blue", "B", answer_type="choice")
    known = [case("field", options=(("A", "red"), ("B", "blue"))), listed, replace(case("told"), evidence=("(A) red",))]
    assert choice_notice(known) == []
    (line,) = choice_notice([*known, case("blind")])
    assert "1 choice without options" in line and "blind, part:0" in line and "'options'" in line


def test_a_limit_says_how_many_cases_it_makes_where_there_are_several_families_or_depths() -> None:
    several = load_benchmark("organism:temporal", limit=2).cases
    strata = {(c.family, c.depth) for c in several}
    (line,) = limit_notice(several, 2)
    assert all(f" {n} " in line for n in (2, len(strata), len(several))) and len(strata) > 1
    assert limit_notice(several, None) == limit_notice(several[:1], 2) == []


def configured(protocol: str, **options: Any) -> AskOptions:
    return ask_options(Config(model="m", benchmark="b", protocol=protocol, **options))


def test_flags_become_options_of_the_protocol_they_are_for() -> None:
    how: Any = {"also": "cot, thinking", "answer_tokens": 9}
    gate: Any = make_protocol(configured("double-gate", format="xml", asking=how, seed=3)).protocol
    assert (gate.recovery, gate.max_tokens, gate.seed, gate.format) == (("cot", "thinking"), 9, 3, "xml")
    how = {"few_shot": "8", "code": True, "compat": "agentcoma"}
    pair: Any = make_protocol(configured("reasoning-gap", prompting="raw", asking=how))
    assert pair.protocol.code and pair.protocol.compat == "agentcoma" and len(pair.how.exemplars) == 40


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"code": True}, "--code is for reasoning-gap, and the protocol is double-gate"),
        ({"ask_all": True}, "--ask-all is for scaffolding"),
        ({"extra_context": False}, "--no-extra-context is for compositionality-gap"),
        ({"co_presented": False}, "--no-co-presented is for reasoning-gap"),
        ({"also": "mumble"}, "--also 'mumble' is not known"),
        ({"few_shot": "3"}, "no built-in examples for double-gate"),
        ({"few_shot": "nowhere.jsonl"}, "--few-shot nowhere.jsonl: no such file"),
    ],
)
def test_options_that_do_not_fit_are_refused_by_name(options: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError, match=said):
        make_protocol(configured("double-gate", asking=options))


def test_a_benchmark_that_ships_examples_is_asked_with_them_and_the_run_keeps_them() -> None:
    cases = load_benchmark("world", limit=1).cases
    given = with_examples(Asking(few_shot="2"), cases)
    assert [e["question"] for e in given.exemplars if e["kind"] == "whole"] == [
        "What is the main language of the country whose capital is Kathmandu?",
        "A picture shows 11 hamsters. How many legs do they have in total?",
    ]
    config = Config(model="m", benchmark="b", asking=given)
    assert Config.read(yaml.safe_load(yaml.safe_dump(config.as_config()))).asking == given
    protocol = make_protocol(AskOptions("compositionality-gap", "plain", "raw", asking=given))
    asks = {ask.role: ask for case in cases for ask in protocol.asks(case, {}) if case.family == "count-times"}
    for role, shown in (
        ("part:0", "a fortnight" not in asks["part:0"].prompt),
        ("part:1", "13 - 2" in asks["part:1"].prompt),
    ):
        assert shown, role
    with pytest.raises(InputError, match="--few-shot 9: give 1 to 4 for world"):
        with_examples(Asking(few_shot="9"), cases)


@pytest.mark.parametrize("few_shot", [None, "0", "2"])
def test_without_examples_of_the_benchmark_the_options_stay_as_they_are(few_shot: str | None) -> None:
    cases = [Case("c", "Q?", "8", CHAIN)]
    assert with_examples(Asking(few_shot=few_shot), cases) == Asking(few_shot=few_shot)


def test_pairs_get_an_independent_q1_unless_told_otherwise() -> None:
    firsts = [replace(CHAIN[0], question=f"Question {i}?") for i in range(3)]
    cases = [Case(f"c{i}", "Q two with X?", "8", (first, *CHAIN[1:])) for i, first in enumerate(firsts)]
    assert all("independent" in c.meta for c in prepare(cases, configured("reasoning-gap"), "pairs"))
    assert prepare(cases, configured("reasoning-gap", asking={"co_presented": False}), "pairs") == cases
    with pytest.raises(InputError, match=r"--reversed: no case has"):
        prepare(cases, configured("compositionality-gap", asking={"reversed": True}), "pairs")


def test_cases_without_parts_are_refused_by_the_file_that_has_them() -> None:
    with pytest.raises(InputError, match=r"^own/cases\.jsonl: .* 1 .*parts"):
        prepare([Case("c", "Q?", "8")], configured("compositionality-gap"), "own/cases.jsonl")


def row(case: str, outcome: Any, role: str = "whole", **more: Any) -> Graded:
    return Graded(case, role, outcome, ask=f"{case}/{role}", **more)


def test_math_verify_is_asked_about_numbers_only_and_its_disagreements_are_shown(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rows = [
        row("a", "correct", answer="12", gold="12", match="numeric"),
        row("b", "correct", answer="12", gold="13", match="numeric"),
        row("c", "incorrect", answer="1912", gold="1913"),
    ]
    asks = {r.ask: Ask(r.case, r.role, "q", r.gold or "", "date" if r.case == "c" else "number") for r in rows if r.ask}
    (metric,), (warning,) = checks.second_opinion(rows, asks)
    assert (metric.metric, metric.count, metric.n) == ("math_verify_disagreement", 1, 2)
    assert "disagrees on 1 of 2" in warning and "'12' for '13' (ours: right)" in warning
    assert checks.second_opinion(rows[2:], asks) == ([], [])
    as_a_paper = [replace(r, reason="compat: agentcoma") for r in rows]  # its defects are no disagreement
    assert checks.second_opinion(as_a_paper, asks) == ([], [])
    more = [row(f"n{i}", "correct", answer=str(i % 3), gold=str(i % 3), match="numeric") for i in range(6)]
    numbers = {r.ask: Ask(r.case, r.role, "q", r.gold or "", "number") for r in more if r.ask}
    notes = {most: checks.second_opinion(more, numbers, most)[0][0] for most in (2, 3)}
    assert [(notes[most].n, notes[most].count) for most in (2, 3)] == [(2, 0), (3, 0)], "of different answers"
    assert "the first 2 of 3" in str(notes[2].note) and "first" not in str(notes[3].note)
    few = SimpleNamespace(disagreements=[], n=2, n_unread=1)
    monkeypatch.setattr(checks.formulas, "second_opinion", lambda _: few)
    ((found,), warnings) = checks.second_opinion(more, numbers)
    assert (found.n, "1 that math-verify cannot read" in str(found.note), warnings) == (2, True, [])


def test_a_judge_agrees_with_the_rules_over_all_that_it_was_asked_again() -> None:
    sample = [(case, case != "b") for case in "abbcde"]
    judged = [JudgedGrades([], tuple(sample[:2]), 3), JudgedGrades([], tuple(sample[2:]), 2)]
    rows = [Graded(case, "whole", "correct") for case in "abcde"]
    found = checks.judge_agreement(judged, rows)
    assert found is not None and (found.count, found.n, found.value) == (4, 6, pytest.approx(4 / 6))
    assert checks.judge_agreement([JudgedGrades([], (), 1)], rows) is None
    assert found.bound_low is None and found.low is not None and found.cluster_low is not None
    assert found.cluster_n == 5 and found.cluster_low < found.low, "two answers are about one case"
    shared = checks.judge_agreement(judged, [replace(row, cluster="x" if row.case < "c" else "y") for row in rows])
    assert shared is not None and (shared.cluster_n, shared.cluster_low) == (2, None), "two clusters carry no interval"
    assert [line.split()[0] for line in checks.unseen(judged)] == ["5"] and checks.unseen([]) == []


def test_grades_and_the_judge_among_them_are_compared_with_human_labels(tmp_path: Path) -> None:
    rows = [
        row("a", "correct", match="judge"),
        row("b", "correct", match="judge"),
        row("c", "incorrect", match="judge"),
        row("d", "correct", match="exact"),
        row("e", "invalid", match="judge", reason="judge-parse"),
        row("f", "incorrect", match="judge"),
    ]
    path = tmp_path / "labels.jsonl"
    labels = {"a": "correct", "b": "incorrect", "c": True, "d": "correct", "e": "correct", "f": "correct"}
    path.write_text("".join(json.dumps({"case": c, "role": "whole", "label": v}) + "\n" for c, v in labels.items()))
    found = checks.agreement(rows, checks.read_labels(path))
    everything, judged = (find(found, "human_agreement", **g) for g in ({}, {"match": "judge"}))
    assert everything and judged
    assert (everything.count, everything.n, everything.n_invalid) == (2, 5, 1)
    assert (judged.count, judged.n, judged.n_invalid) == (1, 4, 1)
    assert find(found, "human_precision", match="judge").value == 0.5  # type: ignore[union-attr]
    assert find(found, "human_recall", match="judge").value == pytest.approx(1 / 3)  # type: ignore[union-attr]
    assert everything.cluster_n is None and everything.bound_low is None
    eight = {f"{c}{i}": v for c, v in labels.items() for i in range(8)}
    near = [replace(r, case=f"{r.case}{i}", cluster=r.case) for r in rows for i in range(8)]
    near[8] = replace(near[8], outcome="abstained", unknowable=True)  # right, where nobody knows
    keyed = {(c, "whole", 0): v in (True, "correct") for c, v in eight.items()}
    shared = find(checks.agreement(near, keyed), "human_agreement")
    assert shared and (shared.count, shared.n, shared.cluster_n) == (16, 40, 5)
    assert shared.low is not None and (shared.cluster_high or 0) - (shared.cluster_low or 0) > 0.5, "five facts"
    with pytest.raises(InputError, match=r"no answer of case 'e'"):
        checks.agreement(rows[:4], checks.read_labels(path))
    path.write_text('{"case": 7.0, "label": false, "repeat": 2}')
    assert checks.read_labels(path) == {("7", "whole", 2): False}
    right = {"case": "a", "label": "correct"}
    for lines, said in (
        ([{**right, "label": "maybe"}], "labels.jsonl:1: label is 'maybe'"),
        ([{**right, "label": 1}], "labels.jsonl:1: label is 1;"),
        ([right, {**right, "role": "whole"}], "labels.jsonl:2: case 'a', role 'whole' has two labels"),
        ([right, {"label": "correct"}], "labels.jsonl:2: field 'case' is missing"), ([[1]], "field 'case' is missing"),
        ([{**right, "repeat": True}], "repeat is True"), ([{**right, "repeat": "1"}], "repeat is '1'"),
    ):  # fmt: skip
        path.write_text("".join(json.dumps(line) + "\n" for line in lines))
        with pytest.raises(InputError) as error:
            checks.read_labels(path)
        assert said in str(error.value)
    with pytest.raises(InputError, match=f"--human-labels {tmp_path}/none: no such file"):
        checks.read_labels(tmp_path / "none")


def gate_run(folder: Path, wrong: set[str], n: int = 20) -> Path:
    """A double-gate run over one-fact cases whose wholes in ``wrong`` are wrong."""
    folder.mkdir()
    part = Part("When was it?", "1900", "date", "date", paraphrases=("Its year?",), atom="f")
    cases = [Case(f"c{i}", "W?", "1900", (part,), depth=2, family="pair") for i in range(n)]
    rows = []
    for case in cases:
        own = {"depth": 2, "family": "pair", "model": folder.name}
        rows += [row(case.id, "correct", role, atom="f", **own) for role in ("part:0", "part:0:paraphrase:0")]
        rows.append(row(case.id, "incorrect" if case.id in wrong else "correct", answer="1900", gold="1900", **own))
    write_cases(cases, folder / "cases.jsonl")
    (folder / "graded.jsonl").write_text("".join(json.dumps(r.to_dict()) + "\n" for r in rows))
    (folder / "metrics.json").write_text(json.dumps({"schema": 1, "protocol": "double-gate", "metrics": []}))
    (folder / "manifest.json").write_text(json.dumps({"schema": 1, "identity": {"model": folder.name}}))
    return folder


def test_two_double_gate_runs_are_compared_channel_by_channel(tmp_path: Path) -> None:
    a, b = gate_run(tmp_path / "a", {"c0"}), gate_run(tmp_path / "b", {"c1", "c2", "c3", "c4"})
    found = compare_runs(a, b)
    channels = {m["metric"]: m for m in found["channels"] if not set(m["group"]) - {"per"}}
    assert channels["delta_atom"]["value"] == 0
    assert channels["delta_comp"]["value"] == pytest.approx(1 / 20 - 4 / 20)
    assert {d["case"] for d in found["discordant"]} == {"c0", "c1", "c2", "c3", "c4"}
    lines = comparison_lines(found)
    assert any(line.startswith("delta_comp: -15.0 points") and "R(A) - R(B) = 1/20 - 4/20" in line for line in lines)


def run(tmp_path: Path, *more: str) -> int:
    fixed = ["--model", "organism:control", "--benchmark", "organism:mixed", "--limit", "4"]
    return main(["evaluate", *fixed, "--out", str(tmp_path / "run"), *more])


def test_too_many_examples_are_refused_before_anything_is_asked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(tmp_path, "--few-shot", "2", "-q") == 1
    said = capsys.readouterr().err
    assert "--few-shot 2" in said and "context of 320" in said and "fewer examples (--few-shot 1)" in said
    assert not (tmp_path / "run" / "graded.jsonl").exists()


@pytest.mark.parametrize(
    ("context", "tokens", "fits"),
    [(3 + 32 - 1, None, False), (3 + 32, None, True), (3 + 8 - 1, 8, False), (3 + 8, 8, True)],
)
def test_examples_leave_room_for_the_answer(
    context: int, tokens: int | None, fits: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ask_plan, "prompt_lengths", lambda tokenizer, asks: [3] * len(asks))
    protocol = make_protocol(configured("compositionality-gap", format="cot", answer_tokens=tokens))
    with nullcontext() if fits else pytest.raises(InputError, match=f"context of {context}"):
        ask_plan.check_room(protocol.asks(Case("c", "Q?", "8", CHAIN), {}), "2", object(), context)


def test_examples_that_fit_are_asked(tmp_path: Path) -> None:
    file = tmp_path / "few.jsonl"
    file.write_text('{"kind": "*", "question": "What is the tag of the kite?", "answer": "6"}\n')
    assert run(tmp_path, "--few-shot", str(file), "-q") == done(tmp_path / "run")
    assert (tmp_path / "run" / "graded.jsonl").is_file()


@pytest.mark.parametrize(
    ("format", "recommended", "own_cases", "protocols", "facts"),
    [
        (None, None, False, None, []),
        ("plain", "plain", False, None, ["plain", "benchmark", "--format"]),
        ("short", None, False, None, ["short (--format)"]),
        ("cot", None, False, None, ["cot", "--format"]),
        ("cot", "plain", False, None, ["cot", "--format", "recommends plain"]),
        ("short", None, True, None, ["short", "gold answers are short", "--format"]),
        (None, None, True, "cot", ["cot", "protocol's own", "--format"]),
        ("xml", None, True, "cot", ["xml", "--format"]),
    ],
)
def test_a_run_says_which_prompt_format_it_uses_and_why(
    format: str | None, recommended: str | None, own_cases: bool, protocols: str | None, facts: list[str]
) -> None:
    benchmark = LoadedBenchmark("b", (), "compositionality-gap", recommended, "hash", own_cases)
    said = cost.format_notice(format, benchmark, protocols)
    assert all(fact in said for fact in facts) and bool(said) == bool(facts)


PROBED = Part("Q one?", "6", paraphrases=("One, asked?",))


@pytest.mark.parametrize(
    ("protocol", "case", "facts"),
    [
        ("double-gate", Case("c", "Q?", "8", (PROBED,)), ["paraphrases", "--protocol"]),
        ("double-gate", Case("c", "Q?", "8", (Part("Q zero?", "1"), PROBED)), ["paraphrases", "--protocol"]),
        ("compositionality-gap", Case("c", "Q?", "8", (PROBED,)), []),
        ("compositionality-gap", Case("c", "Q?", "8", (Part("Q one?", "6"),)), []),
        ("double-gate", Case("c", "Q?", "8", (PROBED,), meta={"protocol": "double-gate"}), ["own", "--protocol"]),
    ],
)
def test_a_run_says_why_a_protocol_was_taken(protocol: str, case: Case, facts: list[str]) -> None:
    benchmark = LoadedBenchmark("b", (case,), default_protocol([case]), None, "hash", True)
    said = cost.protocol_reason(protocol, benchmark)
    assert all(fact in said for fact in facts) and bool(said) == bool(facts)


def test_worked_examples_that_a_run_kept_are_not_read_again() -> None:
    asking = Asking(few_shot="gone.jsonl", exemplars=({"question": "q", "answer": "a"},))
    assert with_examples(asking, []) is asking
