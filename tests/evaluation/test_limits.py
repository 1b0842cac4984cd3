"""Values just below, exactly at and just above a limit, for rules that count."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from composcope.errors import ModelError
from composcope.evaluation import dependence, metrics, statistics
from composcope.evaluation.analyses.stad import _most_different, total_variation
from composcope.evaluation.builders.code_items import LARGEST, read_code_items
from composcope.evaluation.engines import managed
from composcope.evaluation.grading import booleans, choices
from composcope.evaluation.protocols import Graded
from composcope.evaluation.protocols.compare import compare

OPTIONS = (("A", "house"), ("B", "tree"), ("C", "boat"))


def _sentences(conclusion: str, after: int) -> str:
    return f"I looked at it. {conclusion} " + " ".join(f"It is day {i}." for i in range(after))


@pytest.mark.parametrize(("after", "found"), [(0, "B"), (58, "B"), (59, "several choices"), (70, "several choices")])
def test_a_choice_is_concluded_among_the_last_sixty_sentences(after: int, found: str) -> None:
    said = choices.uncued(f"It may be (A) or (C). {_sentences('Therefore, B.', after)}", OPTIONS)
    assert (said.letter or said.reason) == found


@pytest.mark.parametrize(("after", "found"), [(0, False), (29, False), (30, True), (40, True)])
def test_of_many_sentences_the_first_and_the_last_thirty_say_yes_or_no(after: int, found: bool) -> None:
    before = " ".join(f"It was day {i}." for i in range(60))
    assert booleans.uncued(f"Yes. {before} {_sentences('Therefore, it is false.', after)}") is found


@pytest.mark.parametrize(("n", "note"), [(0, "n < 5"), (4, "n < 5"), (5, "n < 15"), (14, "n < 15"), (15, None)])
def test_few_cases_are_marked_and_very_few_hollow(n: int, note: str | None) -> None:
    assert metrics.mark(n) == note
    assert metrics.mark(n, "said") == ("; ".join(filter(None, [note, "said"])))


@pytest.mark.parametrize("clusters", [4, 5, 6])
def test_an_interval_over_clusters_needs_five_of_them(clusters: int) -> None:
    labels = [i % clusters for i in range(24)]
    values = [i % 3 == 0 for i in range(24)]
    known = clusters >= dependence.FEWEST == 5
    assert (statistics.rate_interval(values, labels).low is not None) == known
    other = [i % 5 == 1 for i in range(24)]
    assert (statistics.paired_difference(values, other, seed=0, clusters=labels).low is not None) == known
    assert (statistics.mcnemar(values, other, labels).p is not None) == known


def _atoms(right: int, n: int = 100) -> list[Graded]:
    rows = []
    for i in range(n):
        rows += [Graded(f"c{i}", r, "correct", depth=2) for r in ("part:0", "whole")]
        outcome: Any = "correct" if i < right else "incorrect"
        rows.append(Graded(f"c{i}", "part:0:paraphrase:0", outcome, depth=2, atom=f"a{i}"))
    return rows


@pytest.mark.parametrize(("apart", "comparable"), [(0, True), (1, True), (2, True), (3, False)])
@pytest.mark.parametrize("sign", [1, -1])
def test_models_are_compared_where_their_knowledge_differs_by_at_most_two_points(
    apart: int, comparable: bool, sign: int
) -> None:
    sides = [_atoms(90), _atoms(90 - apart)][::sign]
    found = {m.metric: m for m in compare(sides[0], sides[1]).metrics if set(m.group) <= {"per"}}
    assert found["delta_atom"].value == pytest.approx(sign * apart / 100)
    assert (found["delta_comp"].value is not None) == comparable


def test_three_of_the_skills_that_differ_most_are_named_and_no_skill_that_does_not() -> None:
    a = dict(enumerate("vvvvvwwwxxyz"))
    b = dict(enumerate("vwwwwwxxxyyyzz"[:12]))
    told = _most_different({str(k): v for k, v in a.items()}, {str(k): v for k, v in b.items()})
    shares = [{k: list(x.values()).count(k) / 12 for k in "vwxyz"} for x in (a, b)]
    delta = {k: shares[0][k] - shares[1][k] for k in "vwxyz"}
    largest = sorted((k for k in delta if delta[k]), key=lambda k: (-abs(delta[k]), k))[:3]
    assert told == [f"{k}: {100 * delta[k]:+.1f} points" for k in largest] and len(told) == 3
    assert total_variation(a.values(), b.values()) == pytest.approx(sum(map(abs, delta.values())) / 2)
    assert total_variation([], b.values()) is None and _most_different({"i": "v"}, {"i": "v"}) == []


CODE: list[tuple[str, Any, str | None]] = [
    ("return 3", 3, None), ("return 0", 0, "answer-no-positive-integer"), ("return 1", 1, None),
    ("return 10**15", 10**15, None), ("return 10**15 + 1", 10**15 + 1, "answer-too-large"),
    ("return 3.0", "3", None), ("return 3", "3.0", None), ("return 1200", "1,200", None),
    ("return 2", 3, "code-answer-differs"), ("return 3\0", 3, "code-syntax"), ("return (", 3, "code-syntax"),
    ("return " + "(" * 300 + ")" * 300, 3, "code-syntax"), ("return " + "-" * 99999 + "1", 3, "code-syntax"),
]  # fmt: skip


def test_items_with_code_are_taken_or_left_out_with_their_reason(tmp_path: Path) -> None:
    assert LARGEST == 10**15
    path = tmp_path / "items.jsonl"
    rows = [{"id": str(i), "question": f"q{i}?", "code": f"def solution():\n    {line}\n", "answer": answer}
            for i, (line, answer, _) in enumerate(CODE)]  # fmt: skip
    path.write_text("".join(json.dumps(r) + "\n" for r in rows))
    items, rejected = read_code_items(path)
    assert [i.id for i in items] == [str(i) for i, (_, _, why) in enumerate(CODE) if why is None]
    assert {r["item"]: str(r["reason"]).partition(":")[0] for r in rejected} == {
        str(i): why for i, (_, _, why) in enumerate(CODE) if why is not None
    }


@pytest.mark.parametrize(("alive", "healthy", "well"), [(True, [False, True], True), (False, [True], False)])
def test_a_server_is_given_a_moment_to_show_that_it_is_well(alive: bool, healthy: list[bool], well: bool) -> None:
    answers = iter(healthy)
    server: Any = SimpleNamespace(alive=alive, healthy=lambda: next(answers), _closed=threading.Event())
    server._check_open = lambda: managed.ManagedServer._check_open(server)
    server.launch = SimpleNamespace(name="the server")
    assert managed.ManagedServer._settle(server) is well
    if alive:
        server._closed.set()
        with pytest.raises(ModelError, match="was stopped"):
            managed.ManagedServer._settle(server)
