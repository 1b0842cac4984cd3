"""Chains of classes: each step goes up one class, and memberships without one answer are refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from composcope.errors import InputError
from composcope.evaluation.builders import classification


def _memberships(tmp_path: Path, *pairs: tuple[str, str], **more: Any) -> list[classification.Membership]:
    file = tmp_path / "m.jsonl"
    file.write_text(
        "".join(json.dumps({"member": m, "class": c, "paraphrases": ["Which?"], **more}) + "\n" for m, c in pairs)
    )
    return classification.read_memberships(file)


def test_chains_go_up_one_class_at_a_time_and_end_in_the_class_of_their_last_step(tmp_path: Path) -> None:
    pairs = [
        ("rex", "dog"),
        ("dog", "mammal"),
        ("Mammal", "animal"),
        ("animal", "being"),
        ("tom", "cat"),
        ("cat", "mammal"),
    ]
    known = _memberships(tmp_path, *pairs, aliases="thing")
    cases = classification.build(known, (2, 3), 3, 0)
    up = {m.casefold(): c for m, c in pairs}
    for case in cases:
        start = case.parts[0].worked.split(":")[0]  # type: ignore[union-attr]
        steps = [up[start.casefold()]]
        while len(steps) < (case.depth or 0):
            steps.append(up[steps[-1].casefold()])
        assert [p.answer for p in case.parts] == steps and case.answer == steps[-1]
        assert case.question.count("the class") == case.depth and case.aliases == ("thing",)
        assert case.cluster == case.parts[-1].atom and case.chance == 1 / 5
        assert {case.cluster, *case.crossed} == {p.atom for p in case.parts}, "cases that share a fact say so"
    assert [c.depth for c in cases] == [2] * 3 + [3] * 3 and len({c.id for c in cases}) == 6
    assert classification.build(known, (2, 3), 3, 0) == cases
    with pytest.raises(InputError, match="make 5 chains of 2 steps, 6 are asked for"):
        classification.build(known, (2,), 6)
    with pytest.raises(InputError, match="at least 2"):
        classification.build(known, (1,), 1)


@pytest.mark.parametrize(
    ("pairs", "said"),
    [
        ((("a", "b"), ("A", "c")), "two classes"),
        ((("a", "b"), ("b", "C"), ("c", "a")), "circle"),
        ((("a", "b"), ("b", "c"), ("x", "b")), r":2: has the id 'one' of .*:1; ids"),
    ],
)
def test_memberships_without_one_answer_are_refused(pairs: Any, said: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=said):
        _memberships(tmp_path, *pairs, **({"id": "one"} if "id" in said else {}))
