"""Whole cases of readers and builders: every field that a row gives is in its case, and no other."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

from composcope.evaluation.benchmarks import load
from composcope.evaluation.benchmarks.stad import StadItem, StadStep, case_from_item
from composcope.evaluation.builders import classification
from composcope.evaluation.cases import Case, Part


def _lines(path: Path, *rows: dict[str, Any]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_a_socratic_problem_keeps_its_working_and_says_what_its_steps_lack(tmp_path: Path) -> None:
    marked = "How many? ** 2*3=<<2*3=6>>6\nAnd more? ** 6+1=<<6+1=7>>7\n#### 7"
    rows = [{"question": "Q?", "answer": a} for a in (marked, marked.replace("<<6+1=7>>", ""), "6+1=7\n#### 7")]
    found = load(f"gsm8k:{_lines(tmp_path / 's.jsonl', *rows)}")
    steps = tuple(Part(q, a, "math", "number", worked=w) for q, a, w in (("How many?", "6", "2*3=6"),
                                                                          ("And more?", "7", "6+1=7")))  # fmt: skip
    worked = "How many? 2*3=6\nAnd more? 6+1=7"
    of: dict[str, Any] = {"answer_type": "number", "benchmark": "gsm8k"}
    assert found == [
        Case("gsm8k-0000", "Q?", "7", steps, depth=2, worked=worked, **of),
        Case("gsm8k-0001", "Q?", "7", depth=2, worked=worked, meta={"problem": "a step has no marked value"}, **of),
        Case("gsm8k-0002", "Q?", "7", worked="6+1=7", **of,
             meta={"problem": "no step questions; they are in test_socratic.jsonl"}),
    ]  # fmt: skip


def test_an_equation_is_taken_apart_into_parts_that_name_their_operation(tmp_path: Path) -> None:
    row = {"iIndex": 7, "sQuestion": "Q?", "lEquations": ["X=((3.0*4.0)+2.0)"], "lSolutions": [14.0]}
    (tmp_path / "m.json").write_text(json.dumps([row]))
    parts = (Part("What is 3 * 4?", "12", "math", "number", skill="multiplication"),
             Part("What is 12 + 2?", "14", "math", "number", skill="addition"))  # fmt: skip
    assert load(f"multiarith:{tmp_path / 'm.json'}") == [
        Case("multiarith-7", "Q?", "14", parts, "multiarith", "number", depth=2, operation="multiplication, addition")
    ]


def test_a_two_hop_statement_keeps_its_category_kind_and_entities(tmp_path: Path) -> None:
    row = {"uid": "u", "r1(e1).prompt": "The author of X is", "r2(e2).prompt": "A was born in",
           "r2(r1(e1)).prompt": "The author of X was born in", "e1.value": "X", "e2.value": "A", "e3.value": "Oslo",
           "e3.aliases": "['Kristiania']"}  # fmt: skip
    for more, family, operation in (
        ({"category": "book", "fact_comp_type": "author-city"}, "book", "author-city"),
        ({"category": "", "fact_comp_type": "author-city"}, "author-city", "author-city"),
        ({"category": "book"}, "book", None),
    ):
        with (tmp_path / "t.csv").open("w", newline="") as file:
            writer = csv.DictWriter(file, [*row, *more])
            writer.writeheader()
            writer.writerow(row | more)
        [case] = load(f"twohopfact:{tmp_path / 't.csv'}")
        assert (case.id, case.family, case.operation, case.depth) == ("twohopfact-u", family, operation, 2)
        assert case.meta == {"e1.value": "X", "e2.value": "A", "e3.value": "Oslo"} and case.aliases == ("Kristiania",)
        assert [p.answer for p in case.parts] == ["A", "Oslo"] and case.parts[1].aliases == ("Kristiania",)


def test_questions_of_mquake_are_told_apart_by_their_number_of_hops(tmp_path: Path) -> None:
    hops = [{"question": f"Q{i}?", "answer": f"A{i}", "answer_alias": []} for i in range(3)]
    rows = [{"case_id": n, "questions": ["Q?"], "answer": f"A{n - 1}", "answer_alias": [], "single_hops": hops[:n]}
            for n in (2, 3)]  # fmt: skip
    (tmp_path / "q.json").write_text(json.dumps(rows))
    found = load(f"mquake:{tmp_path / 'q.json'}")
    assert [(c.id, c.family, c.depth) for c in found] == [("mquake-2", "2-hop", 2), ("mquake-3", "3-hop", 3)]


def test_an_item_of_steps_becomes_a_case_with_their_skills_and_segments() -> None:
    steps = (
        StadStep("Add", "6", "2 + 4", "What is 2 + 4?", "addition"),
        StadStep("Double", "12", None, None, "doubling"),
    )
    assert case_from_item(StadItem("i", "Q?", "12", steps, ("R?",), teacher="t", extra={"note": 1})) == Case(
        "i", "Q?", "12",
        (Part("What is 2 + 4?", "6", "step", "number", worked="2 + 4", skill="addition"),
         Part("Double", "12", "step", "number", skill="doubling")),
        "stad", "number", depth=2,
        meta={"note": 1, "steps": ["Add", "Double"], "scaffolds": ["R?"], "placeholders": ["Known: Add [VALUE]. Q?"],
              "teacher": "t"},
    )  # fmt: skip


def test_a_chain_of_classes_keeps_domain_and_own_question_and_chains_are_drawn(tmp_path: Path) -> None:
    rows = [{"id": f"m{i}", "member": f"a{i}", "class": f"a{i + 1}", "paraphrases": ["P?"], "domain": f"d{i}"}
            for i in range(12)]  # fmt: skip
    rows[0]["question"] = "Own?"
    rows.append({"id": "b", "member": "b0", "class": "A12", "paraphrases": ["P?"]})  # no class more: a12
    known = classification.read_memberships(_lines(tmp_path / "m.jsonl", *rows))
    cases = {c.parts[0].atom: c for c in classification.build(known, (2,), 11, benchmark="b")}
    parts = tuple(Part(q, f"a{i + 1}", "class", worked=f"a{i}: a{i + 1}", paraphrases=("P?",), atom=f"m{i}")
                  for i, q in enumerate(("Own?", "To which class does this belong: a1?")))  # fmt: skip
    assert cases["m0"] == Case(
        cases["m0"].id, "What is the class of the class of a0? Go up one class at a time.", "a2", parts, "b",
        worked="a0: a1; a1: a2. So: a2", family="classification_chain", depth=2, cluster="m1", domain="d0",
        operation="classify", chance=1 / 12, meta={"crossed": ["m0"]},
    )  # fmt: skip
    drawn = [[c.parts[0].atom for c in classification.build(known, (2,), 4, seed)] for seed in range(3)]
    assert len({tuple(d) for d in drawn}) == 3, "drawn, and not the first of the file"
