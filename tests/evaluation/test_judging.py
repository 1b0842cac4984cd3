"""Verdicts of judges: clear ones are read in any dress, unclear ones are never taken for "wrong".

Also what is put to the judge, and what its word changes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from composcope.evaluation import judging, prompts, protocols
from composcope.evaluation.asks import Ask, Grade, Response
from composcope.evaluation.case import Case, Part
from composcope.evaluation.engines.base import BaseEngine, ReplayEngine, error_response
from composcope.evaluation.grading import formulas, grade
from composcope.evaluation.journal import Journal, ask_identity
from composcope.evaluation.judging import SAMPLE, agree, second_opinions


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        ('{"score": 1}', True),
        ('{"score": 0, "justification": "another year"}', False),
        ('```json\n{"score": "1"}\n```', True),
        ("{'score': 0}", False),
        ('{"score": true}', True),
        ('{"score": 1.0}', True),
        ('{"verdict": "incorrect"}', False),
        ('{"score": 1, "justification": "he said "yes" } really"}', True),
        ('{"score": 1, "justification": "not \'score\': 0"}', True),
        ("Verdict: correct", True),
        ("**Verdict:** incorrect", False),
        ("The years differ by one.\nScore: 0", False),
        ("yes", True),
        ("No.", False),
        ('<think>it could be wrong</think>{"score": 1}', True),
        ('<think>wrong</think>{"score": 0}</think>{"score": 1}', True),
        ("<think>score: 0", None),
        ("", None),
        ("The answer is not correct in my opinion, although yes, the year is right.", None),
        ("I cannot tell.", None),
        ('{"score": 0.5}', None),
        ('{"score": 2}', None),
        ('{"score": 1} no wait {"score": 0}', None),
        ("[ERROR: rate limit]", None),
        ('{"justification": "wrong"}', None),
        ("CORRECT\n\nIt is not incorrect.", True),
        ("The capital is Lyon.\n\nWrong", False),
        ("Right\nWrong", None),
        ("1.\nThe years differ.", None),
        *(
            (reply, None)
            for reply in ('{"score": 1/5}', "Score: 1.0 out of 10", "Verdict: yes/no", "Verdict: no answer")
        ),
        ("Score: 1/1", True),
        ("Score: 0 / 1", False),
        ("Verdict: No\nAnswer: 5", False),
    ],
)
def test_a_verdict_is_read_only_where_it_is_clear(reply: str, expected: bool | None) -> None:
    assert judging.verdict(reply) is expected


def test_a_judge_that_fails_makes_the_grade_invalid_and_not_wrong(tmp_path: Path) -> None:
    first = Grade("incorrect", "1877", None, None)
    assert judging.apply(first, None).reason == "judge-error"
    assert judging.apply(first, "hm").outcome == "invalid" and judging.apply(first, "hm").reason == "judge-parse"
    assert judging.apply(first, '{"score": 1}') == Grade("correct", "1877", "judge")
    abstained = Grade("abstained", None)
    assert judging.apply(abstained, '{"score": 1}') is abstained
    with Journal(tmp_path) as journal:
        found = second_opinions([item("Lyon", "Paris", "text")], Unreachable([]), journal)
    assert [(g.outcome, g.reason) for g in found.grades] == [("invalid", "judge-error")]


def test_agreement_counts_the_confusion_matrix_and_leaves_unjudged_cases_out() -> None:
    pairs = [(True, True)] * 4 + [(True, False)] + [(False, True)] * 3 + [(False, False)] * 2 + [(None, True)]
    found = judging.agreement(pairs)
    assert (found.n, found.n_unjudged) == (10, 1)
    assert (found.both_right, found.judge_only, found.human_only, found.both_wrong) == (4, 1, 3, 2)
    # observed agreement .6, expected .5 * .7 + .5 * .3 = .5
    assert found.kappa == pytest.approx(0.2)
    assert judging.agreement([]).kappa is None


def test_math_verify_is_refused_outside_the_main_thread() -> None:
    import threading

    raised: list[str] = []

    def work() -> None:
        try:
            formulas.verify("1", "1")
        except RuntimeError as e:
            raised.append(str(e))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert raised and "main thread" in raised[0]


Item = tuple[Ask, Response, Grade]


class Judge(BaseEngine):
    """A judge that calls right what holds one of the words, and says nothing of what holds none."""

    identity: Mapping[str, str] = {"weights": "judge"}
    provenance: Mapping[str, Any] = {}

    def __init__(self, right: Sequence[str], wrong: Sequence[str] = ()) -> None:
        self.right, self.wrong, self.prompts = right, wrong, []

    def answer(self, asks: Sequence[Ask]) -> Iterator[tuple[Ask, Response]]:
        for ask in asks:
            self.prompts.append(ask.prompt)
            given = ask.prompt.partition("Given answer: ")[2]
            score = 1 if any(w in given for w in self.right) else 0 if any(w in given for w in self.wrong) else None
            text = f'{{"score": {"null" if score is None else score}}}'
            yield ask, Response(ask_identity(ask, self.identity), text, "stop", 1, 1)


class Unreachable(Judge):
    def answer(self, asks: Sequence[Ask]) -> Iterator[tuple[Ask, Response]]:
        return iter([(ask, error_response(ask, self.identity, "no route to host")) for ask in asks])


def item(text: str, gold: str, answer_type: str, aliases: tuple[str, ...] = (), finish: str = "stop") -> Item:
    ask = Ask(text, "whole", f"question of {text}", gold, answer_type, aliases=aliases)
    response = Response(ask_identity(ask, {"weights": "m"}), text, finish, 1, 1)  # type: ignore[arg-type]
    return ask, response, grade(text, finish, gold, answer_type, aliases)


def test_a_judge_sees_what_is_open_of_every_type_with_the_aliases(tmp_path: Path) -> None:
    items = [
        item("x = 9, y = 4", "9", "number"),
        item("It depends on the weather.", "yes", "boolean"),
        item("A or B", "B", "choice"),
        item("He was born in 1850 and died in 1914.", "1850", "date"),
        item("Jefferson, who preceded James Madison", "Madison", "text", ("James Madison",)),
        item("Lyon", "Paris", "text"),
        item("", "9", "number"),
        item("9", "9", "number"),
        item("8", "9", "number"),
    ]
    judge = Judge(right=["x = 9", "1850"], wrong=["depends", "A or B", "8"])
    with Journal(tmp_path) as journal:
        found = second_opinions(items, judge, journal)
    assert [g.outcome for g in found.grades] == [
        "correct", "incorrect", "incorrect", "correct", "invalid", "invalid", "invalid", "correct", "incorrect",
    ]  # fmt: skip
    assert found.grades[4] == items[4][2], "the judge says nothing: the grade stays as it is"
    assert found.grades[5].reason == "judge-parse"
    assert ["null" in p for p in judge.prompts] == [True] * 5 + [False] + [True] * 2, "an answer in words is one"
    assert not any("question of \n" in p for p in judge.prompts), "an empty answer is nothing to judge"
    assert any("Madison (also accepted: James Madison)" in p for p in judge.prompts)


def test_a_judge_sees_the_answer_without_the_thinking_before_it(tmp_path: Path) -> None:
    judge = Judge(right=["x = 9"], wrong=["surely"])
    with Journal(tmp_path) as journal:
        [found] = second_opinions(
            [item("<think>It is 8, surely.</think>x = 9, y = 4", "9", "number")], judge, journal
        ).grades
    assert found.outcome == "correct" and "surely" not in judge.prompts[0].partition("Given answer: ")[2]


OPENED = {"thinking_opened": True}
"""In the provenance of a response whose prompt opened the thinking block."""


@pytest.mark.parametrize(
    ("text", "provenance", "outcome", "asked"),
    [
        ("It may be 9, or 4.", OPENED, "invalid", 0),
        ("<think>It may be 9, or 4.", None, "invalid", 0),
        ("It may be 9.</think>x = 9, y = 4, and", OPENED, "correct", 1),
        ("x = 9, y = 4, and", None, "correct", 1),
    ],
)
def test_a_judge_sees_no_thoughts_that_were_cut_off(
    tmp_path: Path, text: str, provenance: dict[str, Any] | None, outcome: str, asked: int
) -> None:
    ask = Ask("c", "whole", "q", "9", "number")
    response = Response("id", text, "length", 1, 1, provenance=provenance)
    judge = Judge(right=["9"])
    with Journal(tmp_path) as journal:
        [found] = second_opinions([(ask, response, Grade("invalid", None, None, "truncated"))], judge, journal).grades
    assert (found.outcome, len(judge.prompts)) == (outcome, asked)


class Musing(Judge):
    """A judge whose tokens run out while it thinks."""

    def answer(self, asks: Sequence[Ask]) -> Iterator[tuple[Ask, Response]]:
        for ask, response in super().answer(asks):
            yield ask, replace(response, finish_reason="length", provenance=OPENED)


def test_thoughts_of_a_judge_that_were_cut_off_are_no_verdict(tmp_path: Path) -> None:
    with Journal(tmp_path) as journal:
        [found] = second_opinions([item("Lutetia", "Paris", "text")], Musing(right=["Lutetia"]), journal).grades
        assert (found.outcome, found.reason) == ("invalid", "judge-parse")
        [said] = agree([item("Lutetia", "Paris", "text")[:2]], Musing(right=["Lutetia"]), journal)
    assert said.right is None


def test_a_judge_that_was_cut_off_before_its_verdict_is_asked_again_with_room_to_think(tmp_path: Path) -> None:
    class Thinks(Judge):
        def answer(self, asks: Sequence[Ask]) -> Iterator[tuple[Ask, Response]]:
            for ask, response in super().answer(asks):
                enough = ask.max_tokens >= judging.ROOM or "Lyon" in ask.prompt
                yield ask, replace(response, text=response.text if enough else "<think>Well", finish_reason="length")

    items = [item("Lutetia", "Paris", "text"), item("Lyon", "Paris", "text")]
    judge = Thinks(right=["Lutetia"], wrong=["Lyon"])
    with Journal(tmp_path) as journal:
        found = second_opinions(items, judge, journal)
        assert [g.outcome for g in found.grades] == ["correct", "incorrect"] and len(judge.prompts) == 3
        again = second_opinions(items, ReplayEngine(judge.identity), journal)
        assert again == found, "from the journal"
        verdicts = agree([item("Lutetia", "Paris", "text")[:2]], judge)
    assert [v.right for v in verdicts] == [True]


def test_a_judge_may_say_that_there_is_no_answer_only_where_that_is_asked() -> None:
    bare, undecided = (judging.ask_judge("c", "whole", "q", "Paris", "Lutetia", open_ended=o) for o in (False, True))
    assert bare.prompt == judging.PROMPT.format(question="q", gold="Paris", answer="Lutetia")
    assert undecided.prompt.startswith(bare.prompt) and "null" in undecided.prompt.removeprefix(bare.prompt)


def test_a_judge_whose_context_has_no_room_to_think_has_given_no_verdict_and_has_not_failed() -> None:
    class Small(Judge):
        def answer(self, asks: Sequence[Ask]) -> Iterator[tuple[Ask, Response]]:
            for ask, response in super().answer(asks):
                full = ask.max_tokens >= judging.ROOM
                yield ask, replace(response, text="" if full else "Well", finish_reason="error" if full else "length")

    asked = judging.ask_judge("c", "whole", "q", "Paris", "Lutetia")
    reply = judging.put(Small(right=["Lutetia"]), {0: asked})[0]
    assert (reply.text, reply.finish_reason) == ("Well", "length")


def test_agreement_is_counted_on_a_sample_of_what_the_rules_decided_and_changes_nothing(tmp_path: Path) -> None:
    items = [item(f"{i} of them", "7", "number") for i in range(100)] + [
        item(f"7 {'!' * i}", "7", "number") for i in range(100)
    ]
    judge = Judge(right=["7"], wrong=["of them"])
    with Journal(tmp_path) as journal:
        found = second_opinions(items, judge, journal)
        again = second_opinions(items, Judge([]), journal)
    assert found.grades == [g for _, _, g in items]
    # "17 of them" and the like hold a 7, and are wrong
    wrong = sum("7" in p.partition("Given answer: ")[2] and "of them" in p for p in judge.prompts)
    for sample in (found.sample, again.sample):
        assert (sum(agreed for _, agreed in sample), len(sample)) == (SAMPLE - wrong, SAMPLE)


def test_a_judge_is_told_which_of_two_questions_counts_and_sees_no_program(tmp_path: Path) -> None:
    case = Case(
        "c", prompts.pair("How many eggs?", "X eggs at 2 each?"), "48", answer_type="number",
        parts=(Part("How many eggs?", "24"), Part("24?", "48")), meta={"independent": "What is 1 + 1?"},
    )  # fmt: skip
    texts = {"pair:q1": "So it is: 48", "co-presented": "about fifty", "code": "```python\nimport requests\n```"}
    asks = [a for a in protocols.get("reasoning-gap", code=True).asks(case, {}) if a.role in texts]
    items = [(a, Response("x", texts[a.role], "stop", 1, 1), Grade("invalid", None, None, "no-cue")) for a in asks]
    judge = Judge(right=["48"], wrong=["fifty"])
    with Journal(tmp_path) as journal:
        found = second_opinions(items, judge, journal)
    assert [g.outcome for g in found.grades] == ["correct", "incorrect", "invalid"] and len(judge.prompts) == 2
    assert ["that of Q1" in p for p in judge.prompts] == [True, False] == ["that of Q2" not in p for p in judge.prompts]
    done = [(a, r, Grade("correct", "48", "numeric")) for a, r, _ in items if a.role == "code"]
    with Journal(tmp_path) as journal:
        assert second_opinions(done, judge, journal).sample == () and len(judge.prompts) == 2


def test_a_recorded_judge_leaves_open_what_it_never_saw_and_says_how_many(tmp_path: Path) -> None:
    seen, unseen = item("x = 9, y = 4", "9", "number"), item("x = 7, y = 4", "7", "number")
    with Journal(tmp_path) as journal:
        second_opinions([seen], Judge(right=["x"]), journal)
        found = second_opinions([seen, unseen], ReplayEngine(Judge.identity), journal)
    assert [g.outcome for g in found.grades] == ["correct", "invalid"] and found.unseen == 1


def test_a_judge_is_shown_both_ends_of_a_long_answer_and_how_much_is_left_out() -> None:
    shown = judging.shortened("a" * 4000 + "b" * 4000)
    assert shown.startswith("a" * 1500) and shown.endswith("b" * 1500) and "5000 characters" in shown
    assert judging.shortened("short") == "short"


def test_agreement_with_a_judge_is_of_the_rules_where_they_find_a_match_and_leaves_failures_open(
    tmp_path: Path,
) -> None:
    def row(said: str, finish: Any = "stop", aliases: tuple[str, ...] = ()) -> tuple[Ask, Response]:
        asked = Ask("c", "whole", "", "Rome", "text", aliases=aliases, question="q?")
        return asked, Response("", said, finish, 0, 0)

    rows = [
        row("Rome"),
        row("Lyon, surely"),
        row("roma", aliases=("Roma",)),
        row("Lyon", "length"),
        row("Lyon", "error"),
        row("Oslo"),
        row(prompts.ABSTENTION),
        row(" "),
    ]
    film = Ask("c", "whole", "", "90", "number", question="How many minutes does the film last?")
    assert agree([(film, Response("", "1.5 hours", "stop", 0, 0))], None)[0].right, (
        "as in a run, the question tells the unit of a bare gold number"
    )
    rules = [v.right for v in agree(rows, None)]
    assert rules == [True, False, True, None, None, False, False, None]
    judge = Judge(right=["Lyon"], wrong=[])
    found = agree(rows, judge)
    assert [v.right for v in found] == [True, True, True, None, None, None, False, None]
    assert [v.why.partition(":")[0] for v in found] == ["rules", "judge", *["rules"] * 3, "judge", *["rules"] * 2]
    assert len(judge.prompts) == 2 and all("q?" in p and "Rome" in p for p in judge.prompts)
    spelled = Judge(right=["Lyon"], wrong=[])
    assert agree([row("Lyon, surely", aliases=("Roma", "Urbs"))], spelled)[0].right is True
    assert "Rome (also accepted: Roma; Urbs)" in spelled.prompts[0]
    with Journal(tmp_path) as journal:
        failed = agree(rows, Unreachable([]), journal)
    assert [v.right for v in failed] == [True, None, True, None, None, None, False, None]
    assert failed[1].why == "judge error: no route to host"
