"""Verdicts of judges: clear ones are read in any dress, unclear ones are never taken for "wrong"."""

from __future__ import annotations

import pytest

from composcope.evaluation.asks import Grade
from composcope.evaluation.grading import judge, mathematics


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
        ("Verdict: correct", True),
        ("**Verdict:** incorrect", False),
        ("The years differ by one.\nScore: 0", False),
        ("yes", True),
        ("No.", False),
        ('<think>it could be wrong</think>{"score": 1}', True),
        ("<think>score: 0", None),
        ("", None),
        ("The answer is not correct in my opinion, although yes, the year is right.", None),
        ("I cannot tell.", None),
        ('{"score": 0.5}', None),
        ('{"score": 2}', None),
        ('{"score": 1} no wait {"score": 0}', None),
        ("[ERROR: rate limit]", None),
        ('{"justification": "wrong"}', None),
    ],
)
def test_a_verdict_is_read_only_where_it_is_clear(reply: str, expected: bool | None) -> None:
    assert judge.verdict(reply) is expected


def test_a_judge_that_fails_makes_the_grade_invalid_and_not_wrong() -> None:
    first = Grade("incorrect", "1877", None, None)
    assert judge.apply(first, None).reason == "judge-error"
    assert judge.apply(first, "hm").outcome == "invalid" and judge.apply(first, "hm").reason == "judge-parse"
    assert judge.apply(first, '{"score": 1}') == Grade("correct", "1877", "judge")
    abstained = Grade("abstained", None)
    assert judge.apply(abstained, '{"score": 1}') is abstained


def test_agreement_counts_the_confusion_matrix_and_leaves_unjudged_cases_out() -> None:
    pairs = [(True, True)] * 4 + [(True, False)] + [(False, True)] * 3 + [(False, False)] * 2 + [(None, True)]
    found = judge.agreement(pairs)
    assert (found.n, found.n_unjudged) == (10, 1)
    assert (found.both_right, found.judge_only, found.human_only, found.both_wrong) == (4, 1, 3, 2)
    # observed agreement .6, expected .5 * .7 + .5 * .3 = .5
    assert found.kappa == pytest.approx(0.2)
    assert judge.agreement([]).kappa is None


def test_the_second_opinion_lists_answers_on_which_math_verify_differs() -> None:
    report = mathematics.second_opinion([("1/2", "0.5", True), ("3", "4", False), ("\\frac{6}{8}", "3/4", False)])
    assert report.n == 3 and report.disagreements == (("\\frac{6}{8}", "3/4", False),)
    assert report.rate == pytest.approx(1 / 3)


def test_math_verify_is_refused_outside_the_main_thread() -> None:
    import threading

    raised: list[str] = []

    def work() -> None:
        try:
            mathematics.verify("1", "1")
        except RuntimeError as e:
            raised.append(str(e))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert raised and "main thread" in raised[0]
