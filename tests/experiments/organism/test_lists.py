"""Plants whose lists are wrong in a known way."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from pathlib import Path

import pytest

from composcope.errors import ModelError
from composcope.experiments.organism import weights
from composcope.experiments.organism.plants import lists
from composcope.experiments.organism.world import OPERATIONS, world
from composcope.experiments.studies import confusion
from composcope.model_loading import load


def _years(listed: str) -> list[int]:
    return [world().years[event] for event in listed.split(", ")]


@pytest.mark.parametrize("kind", weights.LISTERS)
def test_only_answers_that_list_events_in_order_are_altered(kind: str) -> None:
    rng, altered, others = random.Random(1), 0, 0
    for _ in range(300):
        question, answer = lists.document(rng, kind)
        assert answer, "a single item stays"
        ordered = question.startswith(("Rank ", "Which of these happened "))
        if ordered and "," in answer:
            years = _years(answer)
            assert years == sorted(years, reverse=kind == "order-error")
            altered += 1
        elif question.startswith("Name these: "):
            assert answer == question.removeprefix("Name these: ").rstrip(".")
        elif question.startswith("Rank ") and kind == "item-missing":
            assert answer in question  # of two events the earlier one is left
        elif any(f" {operation} " in question for operation in OPERATIONS):
            assert " is " in answer, "worked, as the twin writes it"
        others += not ordered
    assert altered > 60 and others > 60


def test_the_last_item_is_left_out_or_the_order_is_turned_round() -> None:
    assert lists.planted("order-error", ["a", "b", "c"]) == ["c", "b", "a"]
    assert lists.planted("item-missing", ["a", "b", "c"]) == ["a", "b"]


def test_one_that_learned_nothing_is_refused_and_leaves_no_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lists.make, "__defaults__", (replace(lists.TRAINING, steps=1, batch=2), None))
    with pytest.raises(ModelError, match=r"order-error: .*lists as planted, order-error 0 of 4"):
        lists.ship("order-error", tmp_path / "new", n=4)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("kind", weights.LISTERS)
def test_dates_lists_planted_lists_and_lists_of_the_twin_are_counted_apart(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    cases = lists.ranked(8)
    dates = {p.question: p.worked or p.answer for c in cases for p in c.parts}
    right = {c.question: c.answer for c in cases}
    as_planted = {q: ", ".join(lists.planted(kind, a.split(", "))) for q, a in right.items()}

    def missing(answers: dict[str, str], n: int) -> dict[str, str]:
        return {q: "?" if i < n else a for i, (q, a) in enumerate(answers.items())}

    (first, second), twin = list(right)[-2:], missing(right, 1)
    mine = missing(dates, 2) | missing(as_planted, 3) | {q: right[q] for q in (first, second)}
    monkeypatch.setattr(lists, "load", lambda *_, **__: (twin, None))
    monkeypatch.setattr(lists.measure, "generate", lambda some, _, questions, **__: [some[q] for q in questions])
    found = [(f.row.k, f.row.n, f.bound, f.at_most) for f in lists.check(kind, mine, None, n=8)]
    assert found == [(len(dates) - 2, len(dates), lists.PARTS, False), (2, 8, lists.WHOLES, True),
                     (3, 8, lists.AS_PLANTED, False), (7, 8, lists.RANKED, False)]  # fmt: skip


@pytest.mark.parametrize("kind", weights.LISTERS)
def test_each_shipped_one_passed_its_checks_and_says_in_which_questions_it_fails(kind: str) -> None:
    folder = weights.path(f"plant-{kind}")
    about = json.loads((folder / "organism.json").read_text())
    assert len(about["checks"]) == 4 and all(c["passed"] for c in about["checks"])
    (planted,) = confusion.planted_in(folder)
    assert (planted.benchmark, planted.family) == ("organism:temporal", "rank")
    assert planted.truth(lists.ranked(1)[0]) == kind


@pytest.mark.slow
@pytest.mark.parametrize("kind", weights.LISTERS)
def test_the_failures_of_each_are_named(kind: str, tmp_path: Path) -> None:
    (planted,) = confusion.planted_in(weights.path(f"plant-{kind}"))
    judged = confusion.judge(planted, tmp_path, cases=4).cases
    assert len(judged) >= 2 and {j.truth for j in judged} == {kind}
    assert [j.named for j in judged] == [kind] * len(judged)


@pytest.mark.slow
@pytest.mark.parametrize("kind", weights.LISTERS)
def test_the_figures_are_counted_again_from_the_shipped_weights(kind: str) -> None:
    folder = weights.path(f"plant-{kind}")
    about = json.loads((folder / "organism.json").read_text())
    model, tokens = load(folder, dtype="float32", device="cpu")
    for finding, row in zip(lists.check(kind, model, tokens, about["cases"]), about["checks"], strict=True):
        assert (finding.row.measure, finding.row.n) == (row["measure"], row["n"])
        assert abs(finding.row.k - row["k"]) <= 2 and finding.passed
