"""The files that the reference commands read: few and uneven cases, with something missing here and there."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

Rows = Sequence[Mapping[str, Any]]


def lines(path: Path, rows: Rows) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(r, ensure_ascii=False) + "\n" for r in rows), encoding="utf-8")


def _shelf(i: int) -> dict[str, Any]:
    things = ("violin", "hammer", "kettle", "novel", "scarf", "lamp", "canoe", "pear")
    a, b, x, y = things[i], things[i + 1], 12 + 31 * i, 1000 - 7 * i
    return {
        "id": f"shelf-{i}", "question": f"A {a} costs {x} euros and a {b} {y} euros. What do both cost?",
        "answer": str(x + y), "answer_type": "number", "depth": 2, "family": "shelf", "operation": "plus",
        "chance": 0.01, "cluster": f"s{i // 3}", "aliases": [f"{x + y} euros"], "domain": "shop",
        "worked": f"{x} + {y} = {x + y}",
        "meta": {"reversed": f"What do a {b} for {y} euros and a {a} for {x} euros cost?"},
        "parts": [
            {"question": f"Which is the first thing, the {a} or the {b}?", "answer": a, "kind": "commonsense",
             "aliases": [f"the {a}"]},
            {"question": f"What is {x} + {y}?", "answer": str(x + y), "kind": "math", "answer_type": "number",
             "extra_context": f"There are {i + 4} boxes. What is {x} + {y}?"},
        ],
    }  # fmt: skip


def _people(i: int) -> dict[str, Any]:
    names = ("Ann Lee", "Bo", "Cy", "Dee", "Eva", "Finn")
    a, b, c = names[i], names[(i + 2) % 6], names[(i + 3) % 6]
    return {
        "id": f"people-{i}", "question": f"{a} visits {b}, and {b} visits {c}. Whom do they visit?",
        "answer": f"{b}, {c}", "answer_type": "list", "depth": 2, "family": "people", "cluster": f"p{i % 2}",
        "meta": {"crossed": ["visits"] if i else ["visits", "first"]}, "unknowable": i == 4,
        "parts": [
            {"question": f"Whom does {a} visit?", "answer": b, "kind": "commonsense", "skill": "reading"},
            {"question": f"Does {b} visit {c}?", "answer": "yes", "answer_type": "boolean", "kind": "logic"},
        ],
    }  # fmt: skip


def _times(i: int) -> dict[str, Any]:
    year = 1871 + 11 * i
    return {
        "id": f"times-{i}", "question": f"The bridge was begun on 3 March {year} and took two years. When was it done?",
        "answer": f"3 March {year + 2}", "answer_type": "date", "depth": 3, "family": "times",
        "parts": [
            {"question": f"Which year was it begun, if on 3 March {year}?", "answer": str(year), "answer_type": "date",
             "kind": "date"},
            {"question": "Which of these is two years?", "answer": "B", "answer_type": "choice",
             "options": ["a day", "24 months", "a week"], "kind": "commonsense"},
            {"question": f"What is {year} plus 2?", "answer": str(year + 2), "answer_type": "number", "kind": "math"},
        ],
    }  # fmt: skip


CASES = [*map(_shelf, range(7)), *map(_people, range(5)), *map(_times, range(4))]


def cases(folder: Path) -> None:
    lines(folder / "cases.jsonl", CASES)
    lines(folder / "two.jsonl", CASES[:12])
    changed = [dict(c) for c in CASES[2:]]
    changed[1]["question"] += " Please."
    lines(folder / "later.jsonl", changed)
    shots = [{"kind": k, "question": f"{k}?", "answer": a} for k, a in (("math", "4"), ("commonsense", "a cup"))]
    lines(folder / "shots.jsonl", [*shots, {"kind": "*", "question": "What do both cost?", "answer": "9"}])
    lines(folder / "people.jsonl", [
        {"case": "shelf-0", "role": "whole", "label": "correct"}, {"case": "shelf-1", "role": "whole",
         "label": "incorrect"}, {"case": "people-0", "role": "part:0", "label": "correct"},
    ])  # fmt: skip


def pairs(folder: Path) -> None:
    rows = []
    for i in range(9):
        x, y = 3 + i, 20 + 4 * i
        first = f"A box holds {x} pens. How many pens does it hold?"
        second = "Tom has X pens and buys 20 more. How many does he have?"
        rows.append({
            "id": f"pair-{i}", "question": second, "answer": str(x + 20), "answer_type": "number", "depth": 2,
            "family": ("pens", "cups")[i % 3 == 1], "cluster": f"item-{i // 2}",
            "meta": {"question_2": second, "independent": f"What is {i} plus 1?"}
            | ({"original": {"question": f"Tom has {y} pens and buys 20 more.", "answer": str(y + 20)}}
               if i != 5 else {}),
            "parts": [
                {"question": first, "answer": str(x), "answer_type": "number", "kind": "math"},
                {"question": second.replace("X", str(x)), "answer": str(x + 20), "answer_type": "number",
                 "kind": "math"},
            ],
        })  # fmt: skip
    lines(folder / "pairs.jsonl", rows)


def ladders(folder: Path) -> None:
    skills = ("reading", "adding", "doubling", "halving")
    rows = []
    for i in range(11):
        n = 2 + i % 3
        steps = [{"question": f"Step {j} of {i}: what is {i} plus {j}?", "answer": str(i + j), "kind": "math",
                  "answer_type": "number", "skill": skills[(i + j) % 4] if (i, j) != (4, 0) else None}
                 for j in range(n)]  # fmt: skip
        rows.append({
            "id": f"ladder-{i}", "question": f"Climb {n} steps from {i}. Where are you?", "answer": str(i + n),
            "answer_type": "number", "depth": n, "family": ("up", "down", "up")[i % 3], "parts": steps,
        })  # fmt: skip
    lines(folder / "ladders.jsonl", rows)


def chains(folder: Path) -> None:
    """Dated facts, shared by cases, with depths on both sides of the bins and wordings that some cases lack."""
    rows = []
    for i, depth in enumerate((2, 2, 4, 4, 4, 6, 6, 7, 9, 9, 2)):
        parts = []
        for j in range(2):
            k = (i + j) % 9
            wordings = [f"In which year was event {k}?", f"Event {k} took place in which year?"][: 2 - (k == 3)]
            parts.append({"question": f"When was event {k}?", "answer": str(1800 + 7 * k), "answer_type": "date",
                          "kind": "date", "atom": f"e{k}", "paraphrases": wordings})  # fmt: skip
        rows.append({
            "id": f"chain-{i}", "question": f"Which of events {i} and {i + 1} came first in a chain of {depth}?",
            "answer": f"event {i}", "depth": depth, "family": ("successor", "interval")[i % 3 == 2], "parts": parts,
            "benchmark": "d4v2", "cluster": f"c{i // 2}", "chance": 1 / depth,
        })  # fmt: skip
    lines(folder / "chains.jsonl", rows)


def sources(folder: Path) -> None:
    """What builders read."""
    asked = ("Year of the {} fair?", "When was the {} fair?")
    facts = [{"event": f"the {w} fair", "date": str(1500 + 13 * i), "paraphrases": [a.format(w) for a in asked]}
             for i, w in enumerate("red blue green grey gold pink brown black white teal cyan plum lime rose jade "
                                   "rust sand moss mint ruby opal onyx pearl coral amber ivory".split())]  # fmt: skip
    facts[3]["date"] = facts[2]["date"]
    facts[7]["date"] = "1591-03-02"
    facts[9] |= {"unknowable": True}
    lines(folder / "facts.jsonl", facts)
    kinds = "terrier dog mammal animal being".split(), "oak tree plant organism thing".split(), "rose flower".split()
    chain = [(a, b, n) for n, kind in enumerate(kinds) for a, b in pairwise(kind)]
    chain += [("poodle", "dog", 0), ("elm", "tree", 1), ("beech", "tree", 1), ("cat", "mammal", 0)]
    header = "member,class,domain,paraphrase_1\n"
    (folder / "members.csv").write_text(
        header + "".join(f"{a},{b},{('zoo', 'wood', 'wood')[n]},Is a {a} a {b}?\n" for a, b, n in chain)
    )
    items = [
        {
            "question": f"Sam has {a} apples and buys {b} bags of {c} apples. How many apples has he?",
            "code": f"def solution():\n    own = {a}\n    bags = {b}\n    each = {c}\n    return own + bags * each\n",
            "answer": a + b * c,
        }
        for a, b, c in ((7, 3, 5), (11, 4, 6), (9, 2, 13), (15, 8, 12), (21, 5, 17))
    ]
    items += [{**items[0], "answer": 23}, {"question": "How many?", "code": "def solution():\n    return 1 / 0\n",
                                          "answer": 5}]  # fmt: skip
    lines(folder / "items.jsonl", items)
    from composcope.experiments.organism import tasks, world

    things = world.world().things
    sums = [tasks.math_of("plus", things[2 * i], things[2 * i + 1]) for i in range(7)]
    rows = [{"question": qa.question, "answer": int(qa.answer)} for qa in sums]
    rows[5]["answer"] += 5
    lines(folder / "questions.jsonl", rows)


def all_of_it(folder: Path) -> None:
    for make in (cases, pairs, ladders, chains):
        make(folder)
    models = [{"model": "organism:control", "family": "organism", "size": 0.0004, "tuning": "pretrained"},
              {"model": "organism:twin", "family": "organism", "size": 0.0008, "tuning": "instruct"}]  # fmt: skip
    (folder / "models.yaml").write_text(json.dumps({"models": models, "pairs": {"tuning": [["twin", "control"]]}}))


def models(folder: Path) -> None:
    """Shipped models in folders of the user's own: one dose, and two plants."""
    from composcope.experiments.organism import weights

    (folder / "control").symlink_to(weights.path("control"))
    (folder / "plants").mkdir()
    for name in ("wrong-operation", "format"):
        (folder / "plants" / name).symlink_to(weights.path(f"plant-{name}"))
