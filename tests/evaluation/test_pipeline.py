from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import pytest

from composcope.errors import InputError, JournalError, ModelError
from composcope.evaluation.asks import Ask, Grade, Response
from composcope.evaluation.cases import Case, Part
from composcope.evaluation.engines.base import BaseEngine, ReplayEngine, error_response, with_thinking_open
from composcope.evaluation.engines.local import LocalEngine
from composcope.evaluation.journal import Journal, ask_identity, read_journal
from composcope.evaluation.pipeline import Progress, evaluate
from composcope.evaluation.prompts import ABSTENTION
from composcope.evaluation.protocols.base import Reduction, get
from composcope.evaluation.protocols.presenting import FormattedProtocol, Presentation


class PartsThenWhole:
    """Round 1: the parts. Round 2: the whole, unless a part is wrong."""

    name = "parts-then-whole"

    def asks(self, case: Case, graded: Mapping[str, Grade]) -> list[Ask]:
        parts = [
            Ask(case.id, f"part:{i}", p.question, p.answer, p.answer_type, kind=p.kind, max_tokens=8)
            for i, p in enumerate(case.parts)
        ]
        if any(a.role not in graded for a in parts):
            return parts
        if any(graded[a.role].outcome == "incorrect" for a in parts):
            return []
        return [Ask(case.id, "whole", case.question, case.answer, case.answer_type, max_tokens=8)]

    def reduce(self, rows: Any, cases: Any = None) -> Reduction:
        return Reduction(())


class Table(BaseEngine):
    """An engine that answers from a table, counting what it was asked; None is an infrastructure failure."""

    provenance: Mapping[str, Any] = {"engine": "table"}

    def __init__(self, table: Mapping[str, str | None], name: str = "table") -> None:
        self.table, self.asked = table, []
        self.identity = {"weights": name}

    def answer(self, asks: Sequence[Ask]) -> Iterator[tuple[Ask, Response]]:
        for ask in reversed(asks):
            self.asked.append(ask.prompt)
            text = self.table[ask.prompt]
            if text is None:
                yield ask, error_response(ask, self.identity, "the server is away")
            else:
                yield ask, Response(ask_identity(ask, self.identity), text, "stop", 1, 1)


def exact(text: str, finish: str, gold: str, kind: str, **_: Any) -> Grade:
    return Grade("correct" if text == gold else "incorrect", text, "exact")


def shared_fact(n: int = 3) -> list[Case]:
    return [
        Case(f"c{i}", f"whole {i}", "w", (Part("shared", "s", atom="fact"), Part(f"own {i}", "o", "math")), family="f")
        for i in range(n)
    ]


TABLE = {"shared": "s", **{f"own {i}": "o" for i in range(9)}, **{f"whole {i}": "w" for i in range(9)}}


def test_identical_asks_are_put_once_and_graded_for_every_case(tmp_path: Path) -> None:
    engine = Table(TABLE)
    with Journal(tmp_path) as journal:
        found = evaluate(shared_fact(), PartsThenWhole(), engine, journal, grade=exact, model="m", run="r")
    assert sorted(engine.asked) == sorted({*engine.asked}) and len(engine.asked) == 7
    assert [(g.case, g.role) for g in found.graded if g.role == "part:0"] == [(f"c{i}", "part:0") for i in range(3)]
    assert len({g.ask for g in found.graded if g.role == "part:0"}) == 1
    assert len(found.graded) == 9 and len(found.responses) == len(found.asks) == 7
    row = found.graded[0]
    assert (row.model, row.run, row.family, row.outcome, row.answer, row.gold) == ("m", "r", "f", "correct", "s", "s")
    assert found.stopped is None and (found.n_asked, found.n_resumed, found.n_invalid) == (7, 0, 0)


def test_one_answer_is_graded_against_each_cases_own_gold(tmp_path: Path) -> None:
    cases = [Case("a", "whole 0", "w"), Case("b", "whole 0", "v"), Case("c", "whole 0", "w", unknowable=True)]
    graded: list[tuple[str, bool]] = []

    def grade(text: str, finish: str, gold: str, kind: str, *, unknowable: bool, **_: Any) -> Grade:
        graded.append((gold, unknowable))
        return Grade("correct" if text == gold and not unknowable else "incorrect", text)

    with Journal(tmp_path) as journal:
        found = evaluate(cases, PartsThenWhole(), Table(TABLE), journal, grade=grade)
    assert [g.outcome for g in found.graded] == ["correct", "incorrect", "incorrect"]
    assert graded == [("w", False), ("v", False), ("w", True)] and found.n_asked == 1


def test_only_the_whole_of_a_case_that_nobody_can_know_is_unknowable(tmp_path: Path) -> None:
    told: dict[str, bool] = {}

    def grade(text: str, finish: str, gold: str, kind: str, *, unknowable: bool, **_: Any) -> Grade:
        told[gold] = unknowable
        return exact(text, finish, gold, kind)

    with Journal(tmp_path) as journal:
        evaluate([replace(c, unknowable=True) for c in shared_fact(1)], PartsThenWhole(), Table(TABLE), journal, grade)
    assert told == {"s": False, "o": False, "w": True}


@pytest.mark.parametrize("text", ["Paris", "So the final answer is: Paris"])
def test_the_whole_in_other_words_is_graded_like_the_whole(tmp_path: Path, text: str) -> None:
    class Says(Table):
        def answer(self, asks: Sequence[Ask]) -> Iterator[tuple[Ask, Response]]:
            return ((ask, Response(ask_identity(ask, self.identity), text, "stop", 1, 1)) for ask in asks)

    parts = (Part("Where is it held?", "Paris"), Part("In which year?", "2090", answer_type="number"))
    nobody_knows = Case("a", "Where will it be?", "Paris", parts, unknowable=True)
    stops = Case("b", "In which year is it there?", "2090", parts, answer_type="number")
    how = FormattedProtocol(get("compositionality-gap", format="plain", also=("short",)), Presentation(preamble="both"))
    with Journal(tmp_path) as journal:
        found = evaluate([nobody_knows, stops], how, Says({}), journal).graded
    wholes = [row for row in found if "whole" in row.role]
    reasons = {row.case: row.reason for row in wholes if row.role == "whole"}
    assert len(wholes) == 8 and all(row.outcome == "incorrect" or row.case == "b" for row in wholes)
    assert all(row.reason == reasons[row.case] for row in wholes) and reasons["a"] == "unknowable"


@pytest.mark.parametrize(("text", "outcome"), [("I think it was Paris", "incorrect"), (ABSTENTION, "correct")])
def test_a_judge_compares_an_answer_to_what_nobody_can_know_with_abstaining(
    tmp_path: Path, text: str, outcome: str
) -> None:
    class Says(Table):
        def answer(self, asks: Sequence[Ask]) -> Iterator[tuple[Ask, Response]]:
            for ask in asks:
                gold, _, given = ask.prompt.partition("Right answer: ")[2].partition("\nGiven answer: ")
                said = f'{{"score": {int(gold in given)}}}' if gold else text
                yield ask, Response(ask_identity(ask, self.identity), said, "stop", 1, 1)

    nobody_knows = Case("a", "Where will it be?", "Paris", (Part("Where was it?", "Rome"),), unknowable=True)
    with Journal(tmp_path) as journal:
        found = evaluate([nobody_knows], get("double-gate", format="xml"), Says({}), journal, judge=Says({}, "judge"))
    assert {row.role: row.outcome for row in found.graded}["whole"] == outcome
    assert all(agreed for judged in found.judged for _, agreed in judged.sample)


def test_later_rounds_depend_on_the_grades_of_earlier_ones(tmp_path: Path) -> None:
    engine = Table({**TABLE, "own 1": "wrong"})
    with Journal(tmp_path) as journal:
        found = evaluate(shared_fact(), PartsThenWhole(), engine, journal, grade=exact)
    assert {g.case for g in found.graded if g.role == "whole"} == {"c0", "c2"}
    assert "whole 1" not in engine.asked


def test_the_same_call_again_asks_nothing_and_finds_the_same(tmp_path: Path) -> None:
    with Journal(tmp_path) as journal:
        first = evaluate(shared_fact(), PartsThenWhole(), Table(TABLE), journal, grade=exact)
    engine = Table(TABLE)
    with Journal(tmp_path) as journal:
        again = evaluate(shared_fact(), PartsThenWhole(), engine, journal, grade=exact)
    assert engine.asked == [] and again.graded == first.graded
    assert (again.n_asked, again.n_resumed) == (0, 7)


def test_an_answer_that_a_later_round_wants_again_was_neither_asked_nor_resumed_twice(tmp_path: Path) -> None:
    cases = [Case("a", "shared", "s", (Part("shared", "s"),)), Case("b", "own 1", "o", (Part("own 1", "x"),))]
    seen: list[Progress] = []
    for asked, resumed in ((2, 0), (0, 2)):
        with Journal(tmp_path) as journal:
            found = evaluate(cases, PartsThenWhole(), Table(TABLE), journal, grade=exact, progress=seen.append)
        assert (found.n_asked, found.n_resumed, len(found.graded)) == (asked, resumed, 3)
        assert seen[-1] == Progress(2, 1, 1), "the second round had its answer from the first"
    away = Table({**TABLE, "shared": None})
    with Journal(tmp_path / "other") as journal:
        evaluate(cases, PartsThenWhole(), away, journal, grade=exact)
    assert away.asked.count("shared") == 1, "a failure is asked again in the next run only"


def test_another_model_does_not_get_the_answers_of_the_first(tmp_path: Path) -> None:
    other = Table(TABLE, name="other")
    with Journal(tmp_path) as journal:
        evaluate(shared_fact(), PartsThenWhole(), Table(TABLE), journal, grade=exact)
        evaluate(shared_fact(), PartsThenWhole(), other, journal, grade=exact)
    assert len(other.asked) == 7


def test_a_limit_stops_and_the_same_call_goes_on(tmp_path: Path) -> None:
    asked: list[str] = []
    for round in range(4):
        engine = Table(TABLE)
        with Journal(tmp_path) as journal:
            found = evaluate(shared_fact(), PartsThenWhole(), engine, journal, grade=exact, max_asks=2)
        assert len(engine.asked) == found.n_asked == (2 if round < 3 else 1)
        asked += engine.asked
        assert (found.stopped is None) == (round == 3)
        if round == 0:
            assert found.stopped == "max_asks=2" and len(found.responses) == 2
    assert len(asked) == len(set(asked)) == 7
    assert len(found.graded) == 9
    with Journal(tmp_path / "later") as journal:  # four asks in the first round, three in the second
        found = evaluate(shared_fact(), PartsThenWhole(), Table(TABLE), journal, grade=exact, max_asks=5)
    assert (found.n_asked, found.stopped) == (5, "max_asks=5")


def test_an_infrastructure_failure_is_invalid_and_mended_by_the_next_run(tmp_path: Path) -> None:
    with Journal(tmp_path) as journal:
        broken = evaluate(shared_fact(), PartsThenWhole(), Table({**TABLE, "own 1": None}), journal, grade=exact)
    bad = [g for g in broken.graded if g.outcome == "invalid"]
    assert [(g.case, g.role, g.reason) for g in bad] == [("c1", "part:1", "error: the server is away")]
    assert broken.n_invalid == 1
    engine = Table(TABLE)
    with Journal(tmp_path) as journal:
        mended = evaluate(shared_fact(), PartsThenWhole(), engine, journal, grade=exact)
    assert engine.asked == ["own 1"] and mended.n_invalid == 0


def test_progress_counts_every_ask_of_a_round_once_with_those_of_earlier_runs(tmp_path: Path) -> None:
    seen: list[Progress] = []
    for limit in (2, None):
        with Journal(tmp_path) as journal:
            evaluate(shared_fact(), PartsThenWhole(), Table(TABLE), journal, exact, seen.append, limit)
    rounds = [(1, d, 4) for d in (0, 1, 2, 2, 3, 4)] + [(2, d, 3) for d in range(4)]
    assert [(p.round, p.done, p.total) for p in seen] == rounds


@pytest.mark.parametrize(
    ("thinking", "provenance", "text", "outcome"),
    [
        (True, None, "<answer>w</answer> Wait, is it", "invalid"),
        (None, {"thinking_opened": True}, "<answer>w</answer> Wait, is it", "invalid"),
        (True, None, "<answer>v</answer> Wait.</think><answer>w</answer> So", "correct"),
        (True, {"reasoning": "Let me see."}, "<answer>w</answer> So", "correct"),
        (None, None, "<answer>w</answer> So", "correct"),
    ],
)
def test_an_answer_in_thoughts_that_were_cut_off_is_none(
    tmp_path: Path, thinking: bool | None, provenance: dict[str, Any] | None, text: str, outcome: str
) -> None:
    class Thinks(PartsThenWhole):
        def asks(self, case: Case, graded: Mapping[str, Grade]) -> list[Ask]:
            return [Ask(case.id, "whole", "q", "w", "text", format="xml", max_tokens=8, thinking=thinking)]

    class Cut(Table):
        def answer(self, asks: Sequence[Ask]) -> Iterator[tuple[Ask, Response]]:
            for ask in asks:
                yield ask, Response(ask_identity(ask, self.identity), text, "length", 1, 8, provenance=provenance)

    with Journal(tmp_path) as journal:
        [row] = evaluate([Case("c", "q", "w")], Thinks(), Cut(TABLE), journal).graded
    assert row.outcome == outcome


def test_a_gold_answer_that_cannot_be_compared_is_named_with_its_case(tmp_path: Path) -> None:
    other = {"question": "shared", "answer": "blue"}
    case = Case("c1", "own 1", "yes", answer_type="boolean", meta={"reversed": other})
    table = {**TABLE, "own 1": "Yes.", "shared": "No."}
    protocol = get("compositionality-gap", format="plain", reversed=True)
    with Journal(tmp_path) as journal, pytest.raises(InputError, match=r"case 'c1', role 'whole:reversed': .*'blue'"):
        evaluate([case], protocol, Table(table), journal)


class Contradicting(PartsThenWhole):
    def asks(self, case: Case, graded: Mapping[str, Grade]) -> list[Ask]:
        return [Ask(case.id, "whole", prompt, "1", "text") for prompt in ("one", "two")]


class Endless(PartsThenWhole):
    def asks(self, case: Case, graded: Mapping[str, Grade]) -> list[Ask]:
        return [Ask(case.id, "whole", "shared", "1", "text")]


def test_what_a_response_was_begun_with_is_graded_with_it_and_of_repeats_the_first_counts(tmp_path: Path) -> None:
    class Repeating(PartsThenWhole):
        def asks(self, case: Case, graded: Mapping[str, Grade]) -> list[Ask]:
            whole = Ask(case.id, "whole", "first", "so 1", "text", begun="so ")
            last = Ask(case.id, f"after {graded['whole'].answer}", "second", "2", "text") if graded else None
            return [last] if last else [whole, replace(whole, prompt="second", repeat=1)]

    with Journal(tmp_path) as journal:
        found = evaluate(shared_fact(1), Repeating(), Table({"first": "1", "second": "2"}), journal, grade=exact)
    assert [(g.role, g.repeat, g.answer, g.outcome) for g in found.graded] == [
        ("whole", 0, "so 1", "correct"), ("whole", 1, "so 2", "incorrect"), ("after so 1", 0, "2", "correct"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("told", "opened", "reasoned", "finish", "text", "inside"),
    [
        (True, False, False, "length", "12", True),
        (None, True, False, "length", "12", True),
        (None, False, False, "length", "12", False),
        (True, False, True, "length", "12", False),
        (True, False, False, "stop", "12", False),
        (True, False, False, "length", "so</think>12", False),
    ],
)
def test_text_is_a_thought_where_it_ran_out_inside_the_thinking(
    told: bool | None, opened: bool, reasoned: bool, finish: Literal["stop", "length"], text: str, inside: bool
) -> None:
    ask = Ask("c", "whole", "p", "12", "number", thinking=told)
    said = {"thinking_opened": opened, "reasoning": "so" if reasoned else None}
    response = Response("k", text, finish, 1, 1, provenance=said)
    assert with_thinking_open(ask, response) == ("<think>" * inside) + text


def test_two_different_asks_in_one_role_are_refused(tmp_path: Path) -> None:
    with Journal(tmp_path) as journal, pytest.raises(InputError, match="two asks in role 'whole'"):
        evaluate(shared_fact(), Contradicting(), Table(TABLE), journal, grade=exact)


def test_a_protocol_that_repeats_itself_still_ends(tmp_path: Path) -> None:
    with Journal(tmp_path) as journal:
        assert len(evaluate(shared_fact(), Endless(), Table(TABLE), journal, grade=exact).graded) == 3


def test_grading_again_needs_no_model_but_says_what_is_missing(tmp_path: Path) -> None:
    cases = shared_fact()
    with Journal(tmp_path) as journal:
        first = evaluate(cases[:2], PartsThenWhole(), Table(TABLE), journal, grade=exact)
    [known] = read_journal(tmp_path).engines.values()
    recorded = ReplayEngine(known["identity"], known["provenance"][0])
    with Journal(tmp_path) as journal:
        assert evaluate(cases[:2], PartsThenWhole(), recorded, journal, grade=exact).graded == first.graded
        with pytest.raises(JournalError, match=r"1 asks are not in the journal \(first: case 'c2'"):
            evaluate(cases, PartsThenWhole(), recorded, journal, grade=exact)
    failed, unknown = (Ask(case, "whole", case, "1", "number") for case in ("failed", "unknown"))
    failure = error_response(failed, recorded.identity, "refused")
    again = ReplayEngine(recorded.identity, failures={failure.ask: failure})
    assert list(again.answer([failed])) == [(failed, failure)]
    assert error_response(failed, {}, "a\n  b\x1b[2J").error == "a b\\x1b[2J", "one line that steers no terminal"
    with pytest.raises(JournalError, match=r"1 asks are not in the journal \(first: case 'unknown'"):
        again.answer([failed, unknown])


@pytest.mark.parametrize("error", [KeyboardInterrupt, ModelError])
def test_whatever_stops_the_engine_the_answers_before_are_kept(tmp_path: Path, error: type[BaseException]) -> None:
    class Stopping(Table):
        def answer(self, asks: Sequence[Ask]) -> Iterator[tuple[Ask, Response]]:
            for n, pair in enumerate(super().answer(asks)):
                if n == 2:
                    raise error
                yield pair

    with pytest.raises(error), Journal(tmp_path) as journal:
        evaluate(shared_fact(), PartsThenWhole(), Stopping(TABLE), journal, grade=exact)
    contents = read_journal(tmp_path)
    assert len(contents.responses) == 2 and contents.warnings == []


def test_a_model_answers_cases_end_to_end(tmp_path: Path, make_llama: Callable[..., Any], tokenizer: Any) -> None:
    with Journal(tmp_path) as journal:
        found = evaluate(shared_fact(), PartsThenWhole(), LocalEngine(make_llama(), tokenizer), journal)
    assert {g.outcome for g in found.graded} <= {"correct", "incorrect", "abstained", "invalid"}
    assert all(found.responses[g.ask].response_ids for g in found.graded if g.ask)


BATCH = 16
RUN = """
import sys, time
from composcope.evaluation.asks import Ask, Grade
from composcope.evaluation.cases import Case
from composcope.evaluation.engines.local import LocalEngine
from composcope.evaluation.journal import Journal
from composcope.evaluation.pipeline import evaluate

class Whole:
    name = "whole"
    def asks(self, case, graded):
        return [] if graded else [Ask(case.id, "whole", case.question, case.answer, "text", max_tokens=40)]

class Watched(LocalEngine):
    def _response(self, prepared, row):
        with open(sys.argv[3], "a") as answered:
            answered.write(prepared.ask.case + chr(10))
        return super()._response(prepared, row)

def grade(text, *a, **k):
    return Grade("incorrect", text)

def progress(p):
    if p.done == 120 and sys.argv[3].endswith("first"):
        print("120 answers", flush=True)
        sys.stdin.read()  # until it is killed

cases = [Case(f"c{i}", f"question {i} " + "?" * (i % 40), "a") for i in range(500)]
engine = Watched(sys.argv[1], batch_size=int(sys.argv[4]))
with Journal(sys.argv[2]) as journal:
    found = evaluate(cases, Whole(), engine, journal, grade=grade, progress=progress)
print(found.n_asked, found.n_resumed, len(found.graded))
"""


def _count_answers(folder: Path) -> int:
    return sum(p.read_bytes().count(b'"key"') for p in folder.glob("*.jsonl"))


@pytest.mark.long
@pytest.mark.parametrize("stop", [signal.SIGKILL, pytest.param(signal.SIGINT, marks=pytest.mark.slow)])
def test_a_run_killed_among_500_asks_goes_on_without_repeating_an_answer(
    tmp_path: Path, make_llama: Callable[..., Any], make_tokenizer: Callable[..., Any], stop: signal.Signals
) -> None:
    make_llama().save_pretrained(tmp_path / "model")
    make_tokenizer().save_pretrained(tmp_path / "model")
    journal = tmp_path / "journal"

    def command(started: str) -> list[str]:
        return [sys.executable, "-c", RUN, *map(str, (tmp_path / "model", journal, tmp_path / started, BATCH))]

    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
    first = subprocess.Popen(command("first"), **pipes, text=True)
    assert first.stdout is not None and first.stdout.readline() == "120 answers\n"
    first.send_signal(stop)
    assert first.wait(60) != 0, "the process must be stopped before it is done"
    before = read_journal(journal)
    assert 120 <= len(before.responses) < 500

    second = subprocess.run(command("second"), capture_output=True, text=True, timeout=600, check=True)
    n_asked, n_resumed, n_graded = map(int, second.stdout.split())
    assert (n_asked, n_resumed, n_graded) == (500 - len(before.responses), len(before.responses), 500)
    keys = [
        json.loads(line)["key"]
        for segment in journal.glob("*.jsonl")
        for line in segment.read_bytes().split(b"\n")
        if b'"key"' in line and line.endswith(b"}")
    ]
    assert len(keys) == len(set(keys)) == 500
    repeated = set((tmp_path / "first").read_text().split()) & set((tmp_path / "second").read_text().split())
    assert len(repeated) <= BATCH

    engine = LocalEngine(tmp_path / "model")
    asks = [Ask(f"c{i}", "whole", f"question {i} " + "?" * (i % 40), "a", "text", max_tokens=40) for i in range(500)]
    plain = {ask_identity(a, engine.identity): r.text for a, r in engine.answer(asks)}
    assert plain == {k: r.text for k, r in read_journal(journal).responses.items()}


class WordJudge(Table):
    """A judge that accepts "the French capital", speaks in prose about one answer and fails on another."""

    def __init__(self) -> None:
        super().__init__({}, "judge")

    def answer(self, asks: Sequence[Ask]) -> Iterator[tuple[Ask, Response]]:
        for ask in asks:
            given = ask.prompt.partition("Given answer: ")[2].split("\n")[0]
            self.asked.append(given)
            if given == "nobody knows":
                yield ask, error_response(ask, self.identity, "away")
                continue
            scores = {"the French capital": 1, "Lyon": 0, "5": 0}
            text = f'{{"score": {scores[given]}}}' if given in scores else "Hard to say."
            yield ask, Response(ask_identity(ask, self.identity), text, "stop", 1, 1)


class WholeOnly(PartsThenWhole):
    def asks(self, case: Case, graded: Mapping[str, Grade]) -> list[Ask]:
        return [Ask(case.id, "whole", case.question, case.answer, case.answer_type)]


def test_a_judge_sees_the_answers_in_words_that_the_rules_refuse_and_a_sample_of_those_they_decided(
    tmp_path: Path,
) -> None:
    said = {
        "exact": "Paris",
        "longer": "the French capital",
        "wrong": "Lyon",
        "vague": "Somewhere",
        "failed": "nobody knows",
        "abstains": "INSUFFICIENT_EVIDENCE",
    }
    cases = [Case(name, f"q {name}", "Paris") for name in said] + [Case("sum", "q sum", "4", answer_type="number")]
    engine, judge = Table({**{f"q {name}": text for name, text in said.items()}, "q sum": "5"}), WordJudge()
    for again in (False, True):
        with Journal(tmp_path) as journal:
            found = evaluate(cases, WholeOnly(), engine, journal, judge=judge)
        outcomes = {row.case: (row.outcome, row.reason) for row in found.graded}
        assert outcomes == {
            "exact": ("correct", None),
            "longer": ("correct", None),
            "wrong": ("incorrect", None),
            "vague": ("invalid", "judge-parse"),
            "failed": ("invalid", "judge-error"),
            "abstains": ("abstained", None),
            "sum": ("incorrect", outcomes["sum"][1]),
        }
        # From the journal the second time, but for the reply that never came.
        assert sorted(judge.asked) == sorted(
            ["the French capital", "Lyon", "Somewhere", "Paris", "5", *["nobody knows"] * (1 + again)]
        )
        assert [j.sample for j in found.judged] == [(("sum", True),)], "on the sum; about Paris it says nothing"
    recorded = ReplayEngine(judge.identity, judge.provenance)
    known = [case for case in cases if case.id != "failed"]
    with Journal(tmp_path) as journal:
        rescored = evaluate(
            known, WholeOnly(), ReplayEngine(engine.identity, engine.provenance), journal, judge=recorded
        )
    assert {r.case: r.outcome for r in rescored.graded} == {c: o for c, (o, _) in outcomes.items() if c != "failed"}


def test_an_engine_that_leaves_asks_out_is_a_defect_and_a_part_alone_is_no_whole(tmp_path: Path) -> None:
    class Lazy(Table):
        def answer(self, asks: Sequence[Ask]) -> Iterator[tuple[Ask, Response]]:
            return super().answer(asks[:1])

    with Journal(tmp_path / "a") as journal, pytest.raises(RuntimeError, match="Lazy left 1 of 2 asks"):
        evaluate(shared_fact(1), PartsThenWhole(), Lazy(TABLE), journal, exact)
    parts = (Part("Where?", "Rome"), Part("In which year?", "2090", answer_type="number"))
    case = Case("a", "In which year is it there?", "2090", parts, answer_type="number")
    with Journal(tmp_path / "b") as journal:
        engine = Table({"Where?": "Rome", "In which year?": "Rome", case.question: "Rome"})
        found = evaluate([case], PartsThenWhole(), engine, journal).graded
    assert [(r.role, r.outcome) for r in found] == [
        ("part:0", "correct"),
        ("part:1", "invalid"),
        ("whole", "incorrect"),
    ]
    assert [r.reason for r in found] == [None, "no-answer", "stops at part:0"]
