"""The grader's own error on answers labelled by hand, by answer type and style.

``labelled.jsonl`` holds what two small models and we wrote ourselves; ``right`` is what a reader says, and ``first``
how the rules graded an answer before they were corrected, where its set was graded once before that. Run as a script
this file prints the counts of which docs/grading.md has the sums and those of ``evaluation/grading_error.py``, both
with the first gradings.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from composcope.evaluation.grading import grade
from composcope.evaluation.grading_error import MEASURED, Counts

LABELLED = Path(__file__).parent / "labelled.jsonl"
# shares of all answers of a type: graded incorrect though right, correct though wrong, invalid though right
LIMITS = {
    "number": (0.006, 0.003, 0.02),
    "boolean": (0.005, 0.005, 0.06),  # a small model's answers beside the point ("Paris is the capital of France.")
    "choice": (0.005, 0.005, 0.02),
    "date": (0.006, 0.003, 0.02),
    "text": (0.02, 0.01, 0.05),
    "list": (0.02, 0.01, 0.05),
    "ordered-list": (0.02, 0.01, 0.05),
}


@cache
def graded() -> tuple[tuple[dict[str, Any], str], ...]:
    rows = [json.loads(line) for line in LABELLED.read_text(encoding="utf-8").splitlines()]
    return tuple((row, outcome(row)) for row in rows)


def outcome(row: dict[str, Any]) -> str:
    return grade(
        row["response"],
        row.get("finish", "stop"),
        row["gold"],
        row["type"],
        row.get("aliases", ()),
        format=row.get("format", "plain"),
        options=tuple(row.get("options", {}).items()),
        question=row.get("question"),
    ).outcome


def counts(rows: list[tuple[dict[str, Any], str]]) -> Counts:
    n = Counter((row["right"], outcome) for row, outcome in rows)
    return Counts(
        right=sum(k for (right, _), k in n.items() if right),
        false_minus=n[True, "incorrect"] + n[True, "abstained"],
        wrong=sum(k for (right, _), k in n.items() if not right),
        false_plus=n[False, "correct"],
        invalid=n[True, "invalid"] + n[False, "invalid"],
    )


def by(*keys: str, first: bool = True) -> dict[tuple[str, ...], list[tuple[dict[str, Any], str]]]:
    groups: dict[tuple[str, ...], list[tuple[dict[str, Any], str]]] = defaultdict(list)
    for row, now in graded():
        said = row.get("first", now) if first else now
        groups[tuple(row[key] for key in keys)].append((row, said))
    return dict(sorted(groups.items()))


@pytest.mark.parametrize("answer_type", LIMITS)
def test_the_grader_errs_no_more_than_it_claims_on_answers_labelled_by_hand(answer_type: str) -> None:
    rows = by("type", first=False)[answer_type,]
    found = counts(rows)
    right_but_open = sum(row["right"] and said == "invalid" for row, said in rows)
    minus, plus, undecided = LIMITS[answer_type]
    assert found.false_minus <= max(1, minus * len(rows)), [r for r, o in rows if r["right"] and o == "incorrect"]
    assert found.false_plus <= max(1, plus * len(rows)), [r for r, o in rows if not r["right"] and o == "correct"]
    assert right_but_open <= max(1, undecided * len(rows)), [r for r, o in rows if r["right"] and o == "invalid"]


def test_the_counts_that_metrics_are_bounded_with_are_those_of_the_labelled_set() -> None:
    assert {kind: counts(rows) for (kind,), rows in by("type").items()} == MEASURED


def test_the_labelled_set_has_600_answers_of_every_type_and_style_without_duplicates() -> None:
    rows = [row for row, _ in graded()]
    assert len({json.dumps(row, sort_keys=True) for row in rows}) == len(rows) >= 600
    assert {row["type"] for row in rows} == set(LIMITS)
    styles = {"terse", "chat", "cot", "base", "latex", "multilingual", "looping", "truncated", "hedged", "corrected"}
    assert {row["style"] for row in rows} == styles


def table() -> list[str]:
    """The counts by type and style, all styles of a type first; docs/grading.md has their sums."""
    lines = ["| answer type | style | n | false minus | false plus | invalid |", "|---|---|---|---|---|---|"]
    for (kind,), rows in by("type").items():
        styles = {style: group for (k, style), group in by("type", "style").items() if k == kind}
        for name, group in {"**all**": rows, **styles}.items():
            c = counts(group)
            lines.append(
                f"| {kind} | {name} | {len(group)} | {c.false_minus} of {c.right} | {c.false_plus} of {c.wrong} "
                f"| {c.invalid} |"
            )
    return lines


if __name__ == "__main__":
    print("\n".join(table()))
    for (kind,), rows in by("type").items():
        print(f'    "{kind}": {counts(rows)},')
    for row, said in graded():
        if (row["right"], said) in {(True, "incorrect"), (True, "abstained"), (False, "correct"), (True, "invalid")}:
            print(said, row["right"], row["type"], row["gold"], repr(row["response"][:150]))
