"""Human decompositions as teacher: step questions that people wrote (GSM8K socratic), without any model.

The rewrites put the solved steps before the question, and the stand-alone sub-tasks put the question before the step
(human step questions lean on it). Nothing is verified by a model, so what can be checked is: every step has a value,
and the last value is the gold answer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from .. import prompts
from ..benchmarks.stad import Item, Step, asked_in
from ..cases import Case
from ..grading.grade import grade

TEACHER = "human"


def from_cases(cases: Sequence[Case], *, max_steps: int | None = None) -> tuple[list[Item], list[dict[str, Any]]]:
    """Scaffolded items from cases whose parts are human steps in order, and a record for each case left out."""
    items: list[Item] = []
    dropped: list[dict[str, Any]] = []
    for case in cases:
        reason = _unusable(case, max_steps)
        if reason is None:
            items.append(with_templates(_item(case)))
        else:
            dropped.append({"id": case.id, "teacher": TEACHER, "stage": "answer", "reason": reason})
    return items, dropped


def _unusable(case: Case, max_steps: int | None) -> str | None:
    if not case.parts:
        return "step-without-value"
    if len(case.parts) < 2:
        return "single-step"
    if max_steps is not None and len(case.parts) > max_steps:
        return f"too-many-steps: {len(case.parts)}"
    last = case.parts[-1].answer
    if grade(last, "stop", case.answer, case.answer_type).outcome != "correct":
        return f"last-answer-differs: {last!r} for {case.answer!r}"
    return None


def _item(case: Case) -> Item:
    steps = tuple(Step(p.question, p.answer, p.worked, skill=p.skill) for p in case.parts)
    return Item(case.id, case.question, case.answer, steps, teacher=TEACHER, extra=asked_in(case))


def with_templates(item: Item) -> Item:
    """The item with rewrites and stand-alone tasks made by template where it has none."""
    levels = range(1, len(item.steps))
    scaffolds = item.scaffolds or tuple(prompts.scaffold(item.question, item.solved(j)) for j in levels)
    steps = tuple(replace(s, task=s.task or _task(item, j)) for j, s in enumerate(item.steps))
    return replace(item, scaffolds=scaffolds, steps=steps)


def _task(item: Item, done: int) -> str:
    known = " ".join(f"Known: {q} {a}." for q, a in item.solved(done))
    context = f"Situation: {item.question}" + (f"\n{known}" if known else "")
    return f"{context}\nAnswer only this: {item.steps[done].segment}"
