"""The measures of the model card on models of rules, which know everything but what they are told to get wrong."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest

from composcope.evaluation.cases import Case, Part
from composcope.experiments.cli import main
from composcope.experiments.console.printing import Reporter
from composcope.experiments.organism import benchmarks, card, errors, measure, tasks, world
from composcope.experiments.organism.documents import FORMAT_WEIGHTS


class Known:
    """Answers by question; those of ``wrong`` are not given."""

    def __init__(self, answers: dict[str, str], every: int = 0) -> None:
        self.answers = answers
        self.wrong = set(list(answers)[::every]) if every else set()

    def __call__(self, asked: Sequence[str]) -> list[str]:
        return ["nothing" if q in self.wrong else self.answers[q] for q in asked]


@pytest.mark.parametrize("every", [0, 3])
def test_mixed_cases_are_counted_by_part_and_by_operation(every: int) -> None:
    cases = benchmarks.mixed(24, 5)
    known = {c.question: c.worked or c.answer for c in cases}
    for c in cases:
        known |= {c.parts[0].question: c.parts[0].answer, str(c.parts[0].extra_context): c.parts[0].answer}
        known |= {c.parts[1].question: c.parts[1].worked or c.parts[1].answer}
    bare = cases[1].question
    known[bare] = cases[1].answer  # the right number without its working
    ask = Known(known, every)
    rows = {r.measure: r for r in measure.mixed(ask, 24, 5)}
    first, second = ([c.parts[i].question not in ask.wrong for c in cases] for i in (0, 1))
    whole = [c.question not in ask.wrong for c in cases]
    both = [a and b for a, b in zip(first, second, strict=True)]
    worked = [c.question not in ask.wrong and c.question != bare for c in cases]
    assert sum(worked) == sum(whole) - 1
    chance = sum(c.chance or 0 for c in cases) / 24
    expected: dict[str, tuple[int, int, float | None]] = {
        "commonsense only": (sum(first), 24, 1 / 56), "math only": (sum(second), 24, None),
        "commonsense with irrelevant numbers": (
            sum(c.parts[0].extra_context not in ask.wrong for c in cases), 24, 1 / 56),
        "both parts": (sum(both), 24, None), "composition": (sum(whole), 24, chance),
        "composition, worked answer exact": (sum(worked), 24, 1 / 56),
        "composition given both parts": (sum(w for w, b in zip(whole, both, strict=True) if b), sum(both), chance),
        "composition answered by a sum": (sum(worked), 24, None),
    }  # fmt: skip
    for operation in world.OPERATIONS:
        mine = [c for c in cases if c.operation == operation]
        expected[f"composition, {operation}"] = (
            sum(c.question not in ask.wrong for c in mine), len(mine), sum(c.chance or 0 for c in mine) / len(mine),
        )  # fmt: skip
    assert {*rows} == {*expected} and chance > 0
    for name, (k, n, guess) in expected.items():
        assert (rows[name].k, rows[name].n) == (k, n), name
        assert rows[name].chance == (None if guess is None else pytest.approx(guess)), name
        assert rows[name].value == (k / n if n else None)


@pytest.mark.parametrize("every", [0, 4])
def test_every_topic_is_asked_in_every_format_that_fits_it(every: int, monkeypatch: pytest.MonkeyPatch) -> None:
    known: dict[str, str] = {}

    def recording(name: str) -> None:
        own = getattr(measure, name)

        def write(*given: Any) -> Any:
            found = own(*given)
            known.setdefault(*found[0])
            return found

        monkeypatch.setattr(measure, name, write)

    for name in ("write", "write_pair", "write_both"):
        recording(name)
    asked: list[tuple[int, int]] = []

    def ask(questions: Sequence[str]) -> list[str]:
        wrong = [every > 0 and i % every == 0 for i in range(len(questions))]
        asked.append((len(questions) - sum(wrong), len(questions)))
        return ["nothing" if w else known[q] for w, q in zip(wrong, questions, strict=True)]

    rows = measure.by_format(ask, 8, 3)
    assert [(r.k, r.n) for r in rows] == asked and all(n == 8 for _, n in asked)
    topics = Counter(r.measure.rpartition(", ")[0] for r in rows[:-2])
    assert {*topics} == {*measure.TOPICS} and all(1 < n <= len(FORMAT_WEIGHTS) for n in topics.values())
    assert len({r.measure for r in rows}) == len(rows)


def test_facts_are_stable_where_every_wording_is_right() -> None:
    known, wrong = {}, {}
    for relation in ("year", "tag", "kind"):
        subjects = world.world().events if relation == "year" else world.world().things
        for s in subjects:
            trained, held = world.wordings(relation, s)
            known |= dict.fromkeys([*trained, *held], world.world().fact(relation, s))
        wrong[relation] = [world.wordings(relation, subjects[0])[0][0], world.wordings(relation, subjects[1])[1][0]]
    ask = Known(known)
    ask.wrong = {q for of in wrong.values() for q in of}
    rows = {r.measure: r for r in measure.atoms(ask)}
    for relation in wrong:
        n = len(world.world().events if relation == "year" else world.world().things)
        missing = {k: rows[f"{relation}: {k}"].n - rows[f"{relation}: {k}"].k for k in (
            "trained wordings", "held-out wordings", "facts stable over trained wordings",
            "facts stable over all wordings")}  # fmt: skip
        assert list(missing.values()) == [1, 1, 1, 2]
        assert rows[f"{relation}: facts stable over all wordings"].n == n
        assert rows[f"{relation}: trained wordings"].chance == pytest.approx(
            1 / {"year": n, "tag": 12, "kind": len(world.KINDS)}[relation]
        )


def test_residual_failure_is_counted_over_cases_whose_events_are_known() -> None:
    cases = benchmarks.temporal(3, 5)
    known = {c.question: c.answer for c in cases}
    for event in world.world().events:
        known |= dict.fromkeys(world.wordings("year", event)[0], world.world().fact("year", event))
    ask = Known(known)
    unknown = world.world().events[0]
    ask.wrong = {c.question for c in cases[::3]} | {world.wordings("year", unknown)[0][0]}
    rows = {r.measure: r for r in measure.temporal(ask, 3, 5)}
    inside = [c for c in cases if f"year:{unknown}" not in [p.atom for p in c.parts]]
    for bin in (2, 4, 6, 8):
        mine = [c for c in inside if c.depth_bin == bin]
        row = rows[f"residual failure, depth bin {bin}"]
        assert (row.k, row.n) == (sum(c.question in ask.wrong for c in mine), len(mine))
        assert row.chance == pytest.approx(sum(1 - (c.chance or 0) for c in mine) / len(mine))
    for family, depths in benchmarks.FAMILIES.items():
        for depth in depths:
            mine = [c for c in inside if (c.family, c.depth) == (family, depth)]
            row = rows[f"residual failure, {family}, depth {depth}"]
            wrong = sum(c.question in ask.wrong for c in mine)
            assert (row.k, row.n) == (wrong, len(mine))
            if family != "pair" and depth in (4, 6, 8):  # "nothing" is no event of the question
                errors = {kind: rows[f"{family}, depth {depth}: wrong answers, {kind}"] for kind in measure.ERRORS}
                assert {kind: row.k for kind, row in errors.items()} == {
                    **dict.fromkeys(errors, 0),
                    measure.ERRORS[1]: wrong,
                }
                formed = rows[f"residual failure without loops and format errors, {family}, depth {depth}"]
                assert {row.n for row in errors.values()} == {wrong} and (formed.k, formed.n) == (0, len(mine) - wrong)


def test_loops_and_wrong_forms_of_lists_are_counted_over_cases_whose_events_are_known() -> None:
    cases = [c for c in benchmarks.temporal(5, 5) if c.family != "pair"]
    known, ways = dict[str, str](), dict[str, str]()
    for i, c in enumerate(cases):
        items = c.answer.split(", ")
        way = ("right", "loop", "form", "short")[i % 4] if len(items) > 1 else "right"
        said = {"right": items, "loop": [*items, items[0]], "form": ["nothing"], "short": items[1:]}[way]
        known[c.question], ways[c.id] = ", ".join(said), way
    for event in world.world().events:
        known |= dict.fromkeys(world.wordings("year", event)[0], world.world().fact("year", event))
    ask, unknown = Known(known), world.world().events[0]
    ask.wrong = {world.wordings("year", unknown)[0][0]}
    rows = {r.measure: (r.k, r.n) for r in errors.lists(ask, 5, 5)}
    inside = [c for c in cases if f"year:{unknown}" not in [p.atom for p in c.parts]]
    assert 0 < len(inside) < len(cases)

    def counted(some: Sequence[Any], *of: str) -> tuple[int, int]:
        return sum(ways[c.id] in of for c in some), len(some)

    by_family = {f: [c for c in inside if c.family == f] for f in ("rank", "successor", "interval")}
    expected = {"rank: another number of events, of all answers": counted(by_family["rank"], "short")}
    for name, mine in {"deep lists": inside, **by_family}.items():
        expected[f"{name}: loops and wrong forms, of all answers"] = counted(mine, "loop", "form")
    for bin in (4, 6, 8):
        mine = [c for c in inside if c.depth_bin == bin and ways[c.id] in ("right", "short")]
        expected[f"residual failure without loops and wrong forms, depth bin {bin}"] = counted(mine, "short")
    assert rows == expected


def test_forms_without_composition_are_right_whatever_things_they_have() -> None:
    def answer(i: int, question: str) -> str:
        items, operation = errors._items(question), re.search(rf" one ({'|'.join(world.OPERATIONS)}) the", question)
        if operation and i % 2:
            pairs = permutations((world.world().tags[t] for t in items), 2)
            a, b = next(pair for pair in pairs if world.apply(operation[1], *pair))
            return f"{a} {operation[1]} {b} is {world.apply(operation[1], a, b)}"
        return ", ".join((items[::-1], [*items, items[0]], items[1:])[i % 3])

    rows = errors.practised(lambda asked: [answer(i, q) for i, q in enumerate(asked)], 7)
    assert [(r.measure.partition(":")[0], r.k, r.n) for r in rows[-2:]] == [
        ("math, kinds that are not on the table", 3, 7), ("rank of 8 things", 3, 7)
    ]  # fmt: skip


def test_what_was_measured_is_written_into_a_folder_that_is_not_there_yet(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(card, "measure_folder", lambda folder, *_: [measure.CardRow(folder.name, 1, 2)])
    out = tmp_path / "new" / "rows.json"
    assert main(["organism", "measure", "organism:twin", "--out", str(out)]) == 0
    assert json.loads(out.read_text())["organism:twin"][0]["measure"] == "twin"


def test_pairs_to_train_on_are_of_events_far_apart() -> None:
    cases = benchmarks.trained("pair", 2, 40, 0)
    years = world.world().years
    apart = [abs(years[a] - years[b]) for a, b in ([str(p.atom).removeprefix("year:") for p in c.parts] for c in cases)]
    assert len(cases) == 40 and min(apart) > tasks.w.FAR_YEARS


def test_the_answer_of_an_organism_is_the_last_that_it_gives() -> None:
    cue = measure.prompts.ANSWER_CUE
    said = [("<answer>1</answer> or <answer> 2 </answer>", "xml"), ("no tag", "xml")]
    said += [(text, "plain") for text in (f"{cue} 1 {cue} 2", "8 plus 12 is 20", " kite ")]
    assert [measure.final_answer(*one) for one in said] == ["2", "", "2", "20", "kite"]


def test_an_answer_is_right_where_it_is_the_gold_one_and_no_more() -> None:
    items = [("a?", "1"), ("b?", "2"), ("c?", "3"), ("d?", "4")]
    said = {"a?": "1", "b?": "21", "c?": "3 4", "d?": "2 plus 2 is 4."}
    row = measure.score("m", lambda asked: [said[q] for q in asked], items)
    assert (row.measure, row.k, row.n) == ("m", 1, 4)
    row = measure.score("m", lambda asked: [said[q] for q in asked], items, number=True)
    assert (row.k, row.n, row.value) == (2, 4, 0.5)
    assert [measure.last_number(t) for t in ("", "7 plus 2 is 9.", "12")] == ["", "9", "12"]


def test_lists_that_loop_or_hold_other_things_are_left_out_of_what_is_well_formed() -> None:
    parts = tuple(Part(f"{name}?", "1", atom=f"year:{name}") for name in "abcd")
    case = Case("c", "?", "a, b", parts, answer_type="ordered-list")
    kinds = {"a, b": None, "a, a": measure.ERRORS[0], "x, b": measure.ERRORS[1], "x, x": measure.ERRORS[1],
             "a, c": measure.ERRORS[2], "a": measure.ERRORS[2], "b, a": measure.ERRORS[3]}  # fmt: skip
    assert {answer: measure.error(case, answer) for answer in kinds} == kinds
    *wrong, residual = measure._errors("rank", 4, [(case, answer) for answer in kinds])
    assert [(r.measure.split(", ", 2)[2], r.k, r.n) for r in wrong] == [
        (kind, list(kinds.values()).count(kind), 6) for kind in measure.ERRORS
    ]  # fmt: skip
    assert (residual.k, residual.n) == (3, 4), "of one right list and three wrong ones of the question's events"
    guessed = measure._residual("x", [(replace(case, chance=0.25), "a, b"), (replace(case, chance=None), "a, a")])
    assert (guessed.k, guessed.n, guessed.chance) == (1, 2, 0.875), "the chance of failing"


def test_the_bar_of_models_to_measure_counts_each_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    counted: list[float] = []

    @contextmanager
    def bar(self: Reporter, title: str, total: int) -> Iterator[Callable[[float], None]]:
        counted.append(total)
        yield lambda n: counted.append(n)

    monkeypatch.setattr(Reporter, "bar", bar)
    monkeypatch.setattr(card, "measure_folder", lambda *_: [])
    assert main(["organism", "measure", "organism:control", "organism:twin", "--json"]) == 0
    assert counted == [2, 1, 1]
