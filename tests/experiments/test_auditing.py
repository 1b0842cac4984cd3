"""Auditing a run: what is drawn, and what filled verdicts say about the grader."""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
from scipy.stats import beta

from composcope.errors import InputError
from composcope.evaluation.asks import Ask, Response
from composcope.evaluation.graded import Graded
from composcope.evaluation.prompts import ABSTENTION
from composcope.evaluation.protocols.base import Reduction
from composcope.experiments.evaluating import auditing
from composcope.experiments.evaluating.auditing import FILE, audited, draw, estimate, judge_all
from composcope.experiments.run.schema import Evaluated

# (answer type, outcome, how many, how many of them a person calls right)
STRATA = [
    ("number", "correct", 60, 57),
    ("number", "incorrect", 30, 3),
    ("number", "invalid", 10, 4),
    ("text", "correct", 20, 20),
]


def run(strata: Sequence[tuple[str, str, int, int]] = STRATA) -> tuple[Evaluated, dict[str, bool]]:
    graded, asks, responses, truth = [], {}, {}, {}
    for kind, outcome, n, right in strata:
        for i in range(n):
            key = f"{kind}-{outcome}-{i}"
            asks[key] = Ask(key, "whole", f"q {key}", "-5", kind, aliases=("minus five",))
            responses[key] = Response(key, f"=answer {key}\nof two lines", "stop", 1, 1)
            graded.append(Graded(key, "whole", outcome, ask=key, gold="-5"))  # type: ignore[arg-type]
            truth[key] = i < right
    return Evaluated({}, asks, responses, graded, Reduction(())), truth


def read(path: Path) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def fill(path: Path, truth: dict[str, bool], unclear: str = "none") -> None:
    rows = read(path)
    for row in rows:
        row["verdict"] = "unclear" if row["case"].startswith(unclear) else "right" if truth[row["case"]] else "Wrong"
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, rows[0])
        writer.writeheader()
        writer.writerows(rows)


def test_an_answer_that_two_roles_share_is_drawn_once_for_each_with_the_gold_answer_of_the_role(tmp_path: Path) -> None:
    asked = Ask("c", "whole", "Q1 and Q2", "48", "number", format="cot", aliases=("4 dozen",))
    rows = [Graded("c", "whole", "correct", ask="a", gold="48", prompt="cot"),
            Graded("c", "pair:q1", "incorrect", ask="a", gold="24", prompt="pair-q1")]  # fmt: skip
    found = Evaluated({}, {"a": asked}, {"a": Response("a", "48", "stop", 1, 1)}, rows, Reduction(()))
    drawn = {row["role"]: row for row in read(draw(found, 10, tmp_path))}
    assert [(drawn[r]["gold"], drawn[r]["aliases"]) for r in ("whole", "pair:q1")] == [("48", "4 dozen"), ("24", "")]
    assert drawn["whole"]["question"] == "Q1 and Q2" and "that of Q1" in drawn["pair:q1"]["question"]


def test_an_answer_to_what_nobody_can_know_is_compared_with_abstaining(tmp_path: Path) -> None:
    asks = {role: Ask("c", role, role, "Paris", "text", aliases=("City of Light",)) for role in ("whole", "part:0")}
    rows = [Graded("c", role, "incorrect", ask=role, gold="Paris", unknowable=True) for role in asks]
    found = Evaluated({}, asks, {role: Response(role, "Paris", "stop", 1, 1) for role in asks}, rows, Reduction(()))
    drawn = {row["role"]: (row["gold"], row["aliases"]) for row in read(draw(found, 10, tmp_path))}
    assert drawn == {"whole": (ABSTENTION, ""), "part:0": ("Paris", "City of Light")}


def test_a_sample_takes_each_type_and_outcome_alike_and_hides_the_grades(tmp_path: Path) -> None:
    found, _ = run()
    path = draw(found, 40, tmp_path)
    rows, outcomes = read(path), {g.case: g.outcome for g in found.graded}
    drawn = [(outcomes[r["case"]], r["answer_type"]) for r in rows]
    assert Counter(drawn) == {(outcome, kind): 10 for kind, outcome, *_ in STRATA}
    assert sum(a != b for a, b in pairwise(drawn)) > 2 * len(STRATA), "answers of a kind do not stand together"
    assert not {"outcome", "answer"} & set(rows[0]) and all(r["verdict"] == "" for r in rows)
    assert rows[0]["response"].startswith("'=answer") and "\n" in rows[0]["response"]
    assert rows[0]["aliases"] == "minus five"
    again = draw(found, 40, tmp_path / "..").read_text(encoding="utf-8")
    assert again == path.read_text(encoding="utf-8"), "the same sample for the same seed"
    other = draw(found, 40, tmp_path, seed=1).read_text(encoding="utf-8")
    assert sorted(other.splitlines()) != sorted(again.splitlines()), "another seed draws others"


def test_an_answer_without_words_or_response_is_not_drawn(tmp_path: Path) -> None:
    found, _ = run([("number", "correct", 4, 4)])
    blank, lost, *_ = found.graded
    responses = {k: r for k, r in found.responses.items() if k != lost.ask}
    responses[str(blank.ask)] = Response(str(blank.ask), " \n", "stop", 1, 1)
    never = Graded("never asked", "whole", "correct", gold="-5")
    changed = replace(found, responses=responses, graded=[*found.graded, never])
    assert {r["case"] for r in read(draw(changed, 40, tmp_path))} == {"number-correct-2", "number-correct-3"}


def test_verdicts_on_everything_give_the_errors_as_they_are(tmp_path: Path) -> None:
    found, truth = run()
    path = draw(found, 120, tmp_path)
    fill(path, truth)
    numbers, texts, everything = estimate(found, path)
    assert (numbers.answer_type, numbers.labelled) == ("number", 100)
    # 57 + 3 + 4 right numbers, of which 3 are graded incorrect; 3 + 27 + 6 wrong ones, of which 3 are graded correct
    assert numbers.false_minus and numbers.false_minus.value == pytest.approx(3 / 64)
    assert numbers.false_plus and numbers.false_plus.value == pytest.approx(3 / 36)
    ends = beta.ppf(0.025, 3, 28), beta.ppf(0.975, 4, 27)  # of 3 in 30, after Clopper and Pearson
    assert (numbers.false_minus.low, numbers.false_minus.high) == pytest.approx([30 * p / (30 * p + 61) for p in ends])
    assert numbers.invalid == pytest.approx(0.1) and texts.false_minus is None
    assert (
        everything.labelled == 120 and everything.false_minus and everything.false_minus.value == pytest.approx(3 / 84)
    )


def test_an_answer_type_without_verdicts_leaves_the_error_over_all_types_open(tmp_path: Path) -> None:
    found, truth = run([*STRATA, ("date", "correct", 5, 5)])
    path = draw(found, 125, tmp_path)
    fill(path, truth, unclear="date")
    *some, everything = estimate(found, path)
    assert [e.answer_type for e in some] == ["number", "text"] and all(not e.unlabelled for e in some)
    assert everything.unlabelled == ("correct (date)",) and everything.false_minus is None


def test_a_right_answer_that_was_taken_for_an_abstention_is_a_false_minus(tmp_path: Path) -> None:
    found, truth = run([("number", "correct", 4, 4), ("number", "incorrect", 3, 1), ("number", "abstained", 5, 2)])
    path = draw(found, 12, tmp_path)
    fill(path, truth)
    [numbers] = estimate(found, path)
    assert numbers.false_minus and numbers.false_minus.value == pytest.approx(3 / 7)


class Judge:
    """Says yes to everything, but no to what holds a word."""

    identity: Mapping[str, str] = {"weights": "judge"}
    asked: Sequence[Ask] = ()

    def __init__(self, refused: str | None = None) -> None:
        self.refused = refused

    def answer(self, asks: Sequence[Ask]) -> list[tuple[Ask, Response]]:
        self.asked = asks
        said = ["no" if self.refused and self.refused in ask.prompt else "yes" for ask in asks]
        return [(ask, Response("", f"Verdict: {v}", "stop", 1, 1)) for ask, v in zip(asks, said, strict=True)]


def test_a_judge_fills_what_a_person_left_open_and_keeps_what_they_said(tmp_path: Path) -> None:
    found, _ = run([("number", "incorrect", 4, 1)])
    path = draw(found, 4, tmp_path)
    *cases, last = (row["case"] for row in read(path))
    asks = {key: replace(ask, aliases=("a dozen", "12.0") * (key == cases[0])) for key, ask in found.asks.items()}
    path, judge = draw(replace(found, asks=asks), 4, tmp_path), Judge(f"q {cases[1]}")
    text = path.read_text(encoding="utf-8").splitlines()
    some = [line.removesuffix(",") for line in text[:-1]]  # a spreadsheet may leave out empty cells at the end
    path.write_text("\n".join([*some, text[-1] + "wrong"]) + "\n", encoding="utf-8")
    with pytest.raises(InputError, match="already contains verdicts"):
        draw(found, 4, tmp_path)
    judge_all(path, judge)  # type: ignore[arg-type]
    accepted = [re.findall(r"\(also accepted: (.*?)\)", ask.prompt) for ask in judge.asked]
    assert accepted == [["a dozen; 12.0"], [], []]
    verdicts = [(row["case"], row["verdict"]) for row in read(path)]
    assert verdicts == [*zip(cases, ("right", "wrong", "right"), strict=True), (last, "wrong")]


def test_thoughts_of_a_judge_that_were_cut_off_are_unclear(tmp_path: Path) -> None:
    class Musing(Judge):
        def answer(self, asks: Sequence[Ask]) -> list[tuple[Ask, Response]]:
            opened = {"thinking_opened": True}
            return [(a, replace(r, finish_reason="length", provenance=opened)) for a, r in super().answer(asks)]

    path = draw(run([("number", "incorrect", 2, 1)])[0], 2, tmp_path)
    judge_all(path, Musing())  # type: ignore[arg-type]
    assert [r["verdict"] for r in read(path)] == ["unclear"] * 2


def test_answers_on_which_the_judge_was_not_reached_stay_open_for_its_next_try(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from composcope.experiments.models import target

    class Failing(Judge):
        def answer(self, asks: Sequence[Ask]) -> list[tuple[Ask, Response]]:
            first, *rest = super().answer(asks)
            return [(first[0], Response("", "", "error", 1, 0, error="no reply")), *rest]

    found, _ = run([("number", "incorrect", 4, 1)])
    monkeypatch.setattr(target, "open_role", lambda *_, **__: Failing())
    counted = audited(found, tmp_path, "4", "J")
    assert counted.document["grader"][0]["labelled"] == 3
    assert any("1 request" in line and f"--audit {tmp_path / FILE}" in line for line in counted.lines)
    monkeypatch.setattr(target, "open_role", lambda *_, **__: Judge())
    again = audited(found, tmp_path, str(tmp_path / FILE), "J")
    assert again.document["grader"][0]["labelled"] == 4 and len(again.lines) == 1


def test_repeats_with_the_same_response_all_get_the_verdict_of_the_judge(tmp_path: Path) -> None:
    found, _ = run([("number", "correct", 2, 2)])
    graded = [replace(row, case="c", repeat=i) for i, row in enumerate(found.graded)]
    asks = {key: replace(ask, prompt="q") for key, ask in found.asks.items()}
    responses = {key: replace(response, text="-5") for key, response in found.responses.items()}
    path, judge = draw(replace(found, graded=graded, asks=asks, responses=responses), 9, tmp_path), Judge()
    judge_all(path, judge)  # type: ignore[arg-type]
    assert {r["repeat"]: r["verdict"] for r in read(path)} == {"0": "right", "1": "right"}
    assert len(judge.asked) == 1


def test_an_audit_waits_for_a_person_or_is_counted_as_the_judge_filled_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from composcope.experiments.models import target

    found, _ = run()
    asked, by_judge = audited(found, tmp_path, "12", None, seed=3), tmp_path / "judged"
    drawn = (tmp_path / FILE).read_text(encoding="utf-8")
    assert asked.document == {"audit": str(tmp_path / FILE)} and str(tmp_path / FILE) in asked.lines[0]
    by_judge.mkdir()
    assert draw(found, 12, by_judge, seed=3).read_text(encoding="utf-8") == drawn, "what was drawn waits as it is"
    opened: list[tuple[str, str, str | None]] = []
    monkeypatch.setattr(target, "open_role", lambda name, of, *, key_env: opened.append((name, of, key_env)) or Judge())
    counted = audited(found, by_judge, "12", "J", seed=3, key_env="KEY")
    assert opened == [("J", "--judge", "KEY")]
    assert sum(e["labelled"] for e in counted.document["grader"] if e["answer_type"] == "all") == 12
    assert len(counted.lines) == len(counted.document["grader"]) == 3
    assert audited(found, tmp_path, None, None) == auditing.AuditSummary([], {})
    assert audited(found, tmp_path, "1", None).document and len(read(tmp_path / FILE)) == 1


def test_one_answer_is_judged_once_for_each_gold(tmp_path: Path) -> None:
    found, _ = run([("number", "incorrect", 2, 1)])
    first, second = found.graded
    graded = [first, replace(first, case="other", gold="7"), replace(first, case="same"), second]
    path = draw(replace(found, graded=graded), 9, tmp_path)
    assert sorted(r["case"] for r in read(path)) == sorted([first.case, "other", second.case])


@pytest.mark.parametrize(
    ("change", "named"),
    [
        (("", ""), "no verdicts"),
        (("right", "rihgt"), "'rihgt'"),
        (("number-correct-0", "number-correct-999"), "'number-correct-999'"),
        ((",whole,0,", ",whole,first,"), "repeat first"),
        (("number-correct-0,whole", "number-correct-1,whole"), "'number-correct-1', role 'whole', repeat 0 has two"),
        (("case,", "kase,"), "'case'"),
    ],
)
def test_a_file_that_cannot_be_counted_is_refused_by_name(tmp_path: Path, change: tuple[str, str], named: str) -> None:
    found, truth = run()
    path = draw(found, 120, tmp_path)
    if change[0]:
        fill(path, truth)
        path.write_text(path.read_text(encoding="utf-8").replace(change[0], change[1], 1), encoding="utf-8")
    with pytest.raises(InputError) as caught:
        estimate(found, path)
    assert FILE in str(caught.value) and named in str(caught.value)


def test_verdicts_are_not_drawn_over_and_a_judge_needs_an_audit(tmp_path: Path) -> None:
    found, truth = run()
    fill(draw(found, 10, tmp_path), truth)
    for audit, judge, named in (("10", None, FILE), (None, "m@http://h/v1", "--audit"), ("0", None, "--audit 0")):
        with pytest.raises(InputError, match=named):
            audited(found, tmp_path, audit, judge)
    with pytest.raises(InputError, match="--api-key-env KEY"):
        audited(found, tmp_path, "10", None, key_env="KEY")
    about = audited(found, tmp_path, str(tmp_path / FILE), None)
    assert any("false minus" in line for line in about.lines) and about.document["grader"]


def test_an_audit_draws_evenly_and_gives_what_small_strata_lack_to_the_others(tmp_path: Path) -> None:
    found, _ = run([("text", "correct", 20, 0), ("text", "incorrect", 2, 0), ("text", "invalid", 9, 0)])

    def drawn(n: int, graded: Sequence[Graded]) -> list[str]:
        return [row["case"] for row in read(draw(replace(found, graded=graded), n, tmp_path))]

    some = drawn(16, found.graded)
    assert sorted(Counter(case.split("-")[1] for case in some).values()) == [2, 7, 7] and len({*some}) == 16
    assert drawn(16, found.graded[::-1]) == some, "whatever the order of the rows"
    assert len(drawn(99, found.graded)) == 31


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
    assert f"false minus {100 * 7.5 / right:.1f} %" in line and line.endswith("invalid 10.0 % (7 labelled)")
    # a person who has only looked at answers that were graded correct cannot say how many wrong ones there are
    some = auditing._error("text", ["text"], sizes, {("text", "correct"): [True, False]})
    assert (some.false_minus, some.false_plus, some.labelled) == (None, None, 2)
    (line,) = auditing.lines([some])
    assert "false plus unknown" in line and line.endswith("no verdict on any answer graded incorrect (text)")
    assert "of those graded correct, 50.0 %" in line and "graded incorrect, " not in line
    # one small class without verdicts takes nothing from the classes that have them
    judged = {**labels, ("text", "invalid"): [True]}
    more = auditing._error("text", ["text"], {**sizes, ("text", "abstained"): 2}, judged)
    (line,) = auditing.lines([more])
    assert more.unlabelled == ("abstained (text)",) and more.false_plus is None
    assert {o: rate.value for o, rate in more.graded_wrongly.items()} == pytest.approx(
        {"correct": 1 / 3, "incorrect": 1 / 4}
    )
    assert re.search(
        r"graded correct, 33\.3 % \[.*\] are wrong; of those graded incorrect, 25\.0 % \[.*\] are right;", line
    )


def test_a_verdict_on_a_repeat_is_one_on_that_answer(tmp_path: Path) -> None:
    graded, asks, responses = [], {}, {}
    for i in range(4):
        for repeat, outcome in enumerate(("correct", "incorrect")):
            key = f"{i}-{repeat}"
            asks[key] = Ask(f"c{i}", "whole", f"q {i}", "-5", "number", repeat=repeat)
            responses[key] = Response(key, f"answer {key}", "stop", 1, 1)
            graded.append(Graded(f"c{i}", "whole", outcome, ask=key, gold="-5", repeat=repeat))  # type: ignore[arg-type]
    found = Evaluated({}, asks, responses, graded, Reduction(()))
    path = draw(found, 8, tmp_path)
    fill(path, {f"c{i}": True for i in range(4)})
    path.write_text(path.read_text(encoding="utf-8").replace(",whole,0,", ",whole,,"), encoding="utf-8")
    (error,) = estimate(found, path)
    assert error.labelled == 8 and error.false_minus is not None and error.false_minus.value == 0.5
