"""Which questions the measures of the model card ask: drawn anew for every seed, and of what training held out."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import pytest

from composcope.experiments.organism import errors, measure, tasks, world

MEASURES = {
    "shallow": measure.shallow, "by format": measure.by_format, "mixed": measure.mixed, "temporal": measure.temporal,
    "practised": errors.practised, "workings": errors.mixed, "lists": errors.lists,
}  # fmt: skip


def asked(name: str, seed: int, n: int = 8) -> list[tuple[str, ...]]:
    """All that a measure asks, batch by batch, without the wordings of single facts, which are always the same."""
    batches: list[tuple[str, ...]] = []

    def ask(questions: Sequence[str]) -> list[str]:
        batches.append(tuple(questions))
        return ["nothing"] * len(questions)

    MEASURES[name](ask, n, seed)
    facts = {q for e in world.world().events for q in world.wordings("year", e)[0]}
    return [batch for batch in batches if not facts.issuperset(batch) or len(batch) == n]


@pytest.mark.parametrize("name", MEASURES)
def test_every_seed_draws_its_own_questions_and_the_same_ones_again(name: str) -> None:
    first, again, other = (asked(name, seed) for seed in (3, 3, 4))
    assert first == again and len(first) == len(other) > 0
    for one, two in zip(first, other, strict=True):
        assert len({*one} & {*two}) < len(one) * 0.75, one[0]
        assert len({*one}) > len(one) * 0.4, f"different questions: {one[0]}"


@pytest.mark.parametrize("name", MEASURES)
def test_what_is_composed_was_held_out_from_training(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: set[tuple[str, bool]] = set()

    def spied(function: Callable[..., Any], words: inspect.Signature, *given: Any, **more: Any) -> Any:
        bound = words.bind(*given, **more)
        bound.apply_defaults()
        drawn.add((function.__name__, bound.arguments["held"]))
        return function(*given, **more)

    for task, function in [*vars(tasks).items()]:
        if inspect.isfunction(function) and "held" in (words := inspect.signature(function)).parameters:
            monkeypatch.setattr(tasks, task, partial(spied, function, words))
    asked(name, 5)
    # What no table has can be no combination of it; the pair beside it only says which numbers there are.
    shown = {"draw_pair", "_sample"} if name == "practised" else set()
    assert {task for task, held in drawn if not held} <= shown
    assert drawn or name in ("mixed", "temporal", "workings", "lists"), "these ask the benchmarks, which hold out too"


def test_two_things_with_one_tag_may_both_be_in_a_sum() -> None:
    tags = world.world().tags
    by_tag: dict[int, list[str]] = {}
    for thing, tag in tags.items():
        by_tag.setdefault(tag, []).append(thing)
    tag, (one, two, *_) = next((tag, some) for tag, some in by_tag.items() if len(some) > 1)
    another = next(thing for thing in tags if tags[thing] != tag)
    for table, right in (((one, another, two), True), ((one, another), False)):
        question = f"On the table: {', '.join(table)}. What is the tag of the red one plus the tag of the blue one?"
        assert errors.of_two_things(question, f"{tag} plus {tag} is {2 * tag}") is right
