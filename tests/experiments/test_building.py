"""``composcope build``: folders with cases, what was left out, and how to make them again."""

from __future__ import annotations

import json
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from composcope.errors import InputError, NoCasesError
from composcope.evaluation import skills as mapping
from composcope.evaluation.benchmarks.stad import StadItem, StadStep, record_from_item
from composcope.evaluation.builders import compositional_gsm, review
from composcope.evaluation.builders import scaffolds as builder
from composcope.evaluation.cases import read_cases
from composcope.experiments.building import benchmarks, scaffolds
from composcope.experiments.cli import main


def _facts(path: Path, n: int = 30) -> Path:
    rows = [
        {"event": f"event {i}", "date": str(1500 + 11 * i), "paraphrases": [f"When was event {i}?", f"Year of {i}?"]}
        for i in range(n)
    ]
    path.write_text("".join(json.dumps(r) + "\n" for r in rows))
    return path


def _build(*words: object) -> int:
    return main(["build", *map(str, words)])


def _read(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_the_same_command_makes_the_same_files_and_other_options_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["synthetic", "--depths", "2,3", "--per-cell", "2", "--out"]
    assert _build(*command, tmp_path / "a") == _build(*command, tmp_path / "b") == 0
    assert (tmp_path / "a/cases.jsonl").read_bytes() == (tmp_path / "b/cases.jsonl").read_bytes()
    assert (tmp_path / "a/build.json").read_bytes() == (tmp_path / "b/build.json").read_bytes()
    assert len(read_cases(tmp_path / "a/cases.jsonl")) == 12
    assert _build(*command, tmp_path / "a") == 0
    capsys.readouterr()
    assert _build(*command, tmp_path / "a", "--seed", "1") == 1
    assert "holds another build (seed was 0, is 1)" in capsys.readouterr().err
    assert _build(*command, tmp_path / "c", "--seed", "1") == 0
    asked, others = ({c.question for c in read_cases(tmp_path / f"{x}/cases.jsonl")} for x in "ac")
    assert asked != others


def test_skills_by_another_teacher_or_embedding_are_another_build(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: list[dict[str, Any]] = []
    monkeypatch.setattr(scaffolds, "build", lambda out, kind, options, *_: given.append(options) or {})
    for name, embedding in (("a", "models/e5"), ("b", "other/e5"), ("b", None)):
        teacher: Any = SimpleNamespace(identity={"weights": name})
        scaffolds.skills(tmp_path, "records.jsonl", teacher, clusters=2, n_skills=3, embedding=embedding, seed=4)
    first = {"clusters": 2, "skills": 3, "seed": 4, "teacher": {"weights": "a"}, "embedding": "e5"}
    other = {**first, "teacher": {"weights": "b"}}
    assert given == [first, other, {**other, "embedding": None}]
    with pytest.raises(InputError, match="give both --clusters and --skills"):
        scaffolds.skills(tmp_path, "records.jsonl", teacher, clusters=2)


def test_the_most_even_map_of_skills_is_applied_and_unread_steps_are_left_for_a_person(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps = (StadStep("Add 1", "2", task="t"), StadStep("Add 2", "4", task="u"))
    items = [StadItem(name, f"{name}?", 4, steps, ("s",)) for name in ("a", "b")]
    records = tmp_path / "records.jsonl"
    records.write_text("".join(json.dumps(record_from_item(i)) + "\n" for i in items))
    known = (mapping.Skill("s01", "Adding"), mapping.Skill("s02", "Charts"))
    chart = mapping.Clusters(np.zeros(2), (0,), "")
    assigned = {"even": {"a": ("s01", None), "b": ("s02", None)}, "odd": {"a": ("s01", "s01"), "b": ("s01", "s01")},
                "other": {"a": ("s01", "s02"), "b": ("other", None)}}  # fmt: skip
    maps = {name: mapping.SkillMap(known, rows, chart, name, 2) for name, rows in assigned.items()}
    found = [(mapping.granularity(maps[name]), maps[name]) for name in ("odd", "other", "even")]
    monkeypatch.setattr(mapping, "search", lambda items, *_, **__: found)
    teacher: Any = SimpleNamespace(identity={"model": "t"})
    scaffolds.skills(tmp_path / "out", records, teacher)
    made = {r["id"]: r["skill"] for r in _read(tmp_path / "out/records.jsonl")}
    assert made == {item.id: [{"s01": "Adding", "s02": "Charts", None: None}[s] for s in assigned["even"][item.id]]
                    for item in items}  # fmt: skip
    assert [(r["id"], r["step"]) for r in _read(tmp_path / "out/review.jsonl")] == [("a", 1), ("b", 1)]
    assert [r["usage"]["Adding"] for r in _read(tmp_path / "out/granularity.jsonl")] == [4, 1, 1]
    given: list[Any] = []
    monkeypatch.setattr(
        mapping, "map_skills", lambda items, _, *n, **how: given.append((n, how["seed"])) or maps["odd"]
    )
    scaffolds.skills(tmp_path / "one", records, teacher, clusters=5, n_skills=3, seed=4)
    assert given == [((5, 3), 4)] and len(_read(tmp_path / "one/granularity.jsonl")) == 1


def test_a_plan_that_does_not_exist_is_refused_with_those_that_do(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="--plan d4: use one of d4v2, cross-domain, harder"):
        benchmarks.temporal(tmp_path / "out", _facts(tmp_path / "facts.jsonl"), plan="d4")
    assert not (tmp_path / "out").exists()


def test_a_changed_facts_file_is_another_build(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    facts = _facts(tmp_path / "facts.jsonl")
    command = ["temporal", facts, "--plan", "cross-domain", "--per-cell", 2, "--out", tmp_path / "out"]
    assert _build(*command) == 0
    assert len(read_cases(tmp_path / "out/cases.jsonl")) == 6
    _facts(facts, 31)
    capsys.readouterr()
    assert _build(*command) == 1
    assert "input facts.jsonl" in capsys.readouterr().err


def test_a_teacher_with_an_empty_name_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "records.jsonl").write_text("{}\n")
    assert _build("skills", str(tmp_path / "records.jsonl"), "--teacher", "", "--out", str(tmp_path / "out")) == 1
    assert "--teacher" in (said := capsys.readouterr().err) and "empty" in said


def test_two_inputs_of_one_name_are_both_part_of_a_build(tmp_path: Path) -> None:
    paths = [tmp_path / side / "test.jsonl" for side in "ab"]
    for path in paths:
        path.parent.mkdir()
        path.write_text(f"{path.parent.name}\n")
    case = read_cases(Path("examples/cases.jsonl"))[0]

    def make(_: Path) -> benchmarks.Made:
        return benchmarks.Made([case])

    found = benchmarks.build(tmp_path / "out", "kind", {}, paths, make)
    assert sorted(found["inputs"].values()) == sorted(map(benchmarks.file_hash, paths))
    with pytest.raises(InputError, match="is a folder"):
        benchmarks.build(tmp_path / "other", "kind", {}, [tmp_path / "a"], make)
    paths[0].write_text("changed\n")
    with pytest.raises(InputError, match="holds another build"):
        benchmarks.build(tmp_path / "out", "kind", {}, paths, make)


def test_the_harder_plan_has_160_cases_whose_every_event_is_an_atom(tmp_path: Path) -> None:
    facts = _facts(tmp_path / "facts.jsonl", 60)
    assert _build("temporal", facts, "--plan", "harder", "--out", tmp_path / "out") == 0
    cases = read_cases(tmp_path / "out/cases.jsonl")
    years = {f"event {i}": 1500 + 11 * i for i in range(60)}
    assert len(cases) == 160 and sum(len(c.parts) for c in cases) == 590
    for case in cases:
        assert len(case.parts) == case.depth
        named = [p.question.removeprefix("In which year did this happen: ").rstrip("?") for p in case.parts]
        assert all(name in case.question for name in named)
        if case.family == "overlapping_intervals":
            a, c, b, d = (years[n] for n in named)
            assert case.answer == ("yes" if max(a, b) < min(c, d) else "no")
        elif case.family == "nearest_binding":
            *options, reference = (years[n] for n in named)
            best = min(range(len(options)), key=lambda i: abs(options[i] - reference))
            assert case.answer == "AB"[best]
            assert abs(options[0] - reference) != abs(options[1] - reference) and case.chance == 1 / 2
        else:
            *options, reference = (years[n] for n in named)
            later = sorted((y, "ABC"[i]) for i, y in enumerate(options) if y > reference)
            assert len(later) >= 2 and case.answer == ", ".join(letter for _, letter in later)
            assert case.chance == pytest.approx(1 / (6 + 6)), "two of three in order, or all three"


def test_classification_chains_go_up_class_by_class(tmp_path: Path) -> None:
    chain = [("otter", "mammal"), ("mammal", "vertebrate"), ("trout", "fish"), ("fish", "vertebrate"),
             ("vertebrate", "animal")]  # fmt: skip
    rows = [{"member": m, "class": c, "paraphrases": [f"Class of {m}?"], "domain": "biology"} for m, c in chain]
    path = tmp_path / "classes.jsonl"
    path.write_text("".join(json.dumps(r) + "\n" for r in rows))
    assert _build("classification", path, "--depths", "3", "--per-cell", 2, "--out", tmp_path / "out") == 0
    cases = {c.worked: c for c in read_cases(tmp_path / "out/cases.jsonl")}
    assert set(cases) == {
        "otter: mammal; mammal: vertebrate; vertebrate: animal. So: animal",
        "trout: fish; fish: vertebrate; vertebrate: animal. So: animal",
    }
    drawn = []
    for seed in range(4):
        out = tmp_path / f"seed {seed}"
        assert _build("classification", path, "--depths", "2", "--per-cell", 1, "--seed", seed, "--out", out) == 0
        drawn.append(read_cases(out / "cases.jsonl")[0].question)
    assert len(set(drawn)) > 1, "a seed draws its own chains"
    case = cases["otter: mammal; mammal: vertebrate; vertebrate: animal. So: animal"]
    assert case.question == "What is the class of the class of the class of otter? Go up one class at a time."
    # mammal, vertebrate, fish and animal are the classes that a guess could name
    assert (case.answer, case.depth, case.domain, case.chance) == ("animal", 3, "biology", 0.25)
    assert [p.atom for p in case.parts] == ["class-001", "class-002", "class-005"]
    assert {c.cluster for c in cases.values()} == {"class-005"}


@pytest.mark.parametrize(
    ("rows", "message"),
    [([("a", "b"), ("A", "c")], "'A' has two classes"), ([("a", "b"), ("b", "a")], "form a circle")],
)
def test_memberships_without_one_answer_are_refused(
    rows: list[tuple[str, str]], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "classes.jsonl"
    path.write_text("".join(json.dumps({"member": m, "class": c, "paraphrases": ["?"]}) + "\n" for m, c in rows))
    assert _build("classification", path, "--out", tmp_path / "out") == 1
    assert message in capsys.readouterr().err


def test_human_steps_become_scaffolds_without_any_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    socratic = {
        "question": "Ann has 3 boxes of 4 pens and loses 2. How many pens are left?",
        "answer": "How many pens were there? ** 3*4=<<3*4=12>>12\nHow many are left? ** 12-2=<<12-2=10>>10\n#### 10",
    }
    single = {"question": "2 + 2?", "answer": "What is it? ** 2+2=<<2+2=4>>4\n#### 4"}
    path = tmp_path / "socratic.jsonl"
    path.write_text("".join(json.dumps(r) + "\n" for r in (socratic, single)))
    settings = {"max_steps": 3, "max_tokens": 77, "temperature": 0.5, "attempts": 2, "seed": 4}
    words = [word for name, value in settings.items() for word in (f"--{name.replace('_', '-')}", value)]
    assert _build("scaffolds", f"gsm8k:{path}", "--human", *words, "--out", tmp_path / "out") == 0
    (record,) = _read(tmp_path / "out/records.jsonl")
    assert record["sub-task-answer"][0]["answer"] == "12" and record["teacher"] == "human"
    (level,) = record["scaffolding"]
    assert level.startswith("Known: How many pens were there? 12.") and level.endswith("How many pens are left?")
    (rejected,) = _read(tmp_path / "out/rejected.jsonl")
    assert rejected["reason"] == "single-step"
    document = json.loads((tmp_path / "out/build.json").read_text())
    assert document["counts"] == {"cases": 1, "rejected": 1, "review": 0}
    shared: list[Any] = []
    monkeypatch.setattr(
        "composcope.evaluation.builders.scaffolds.generate",
        lambda items, roles, *_: (
            shared.append(([t.engine for t in roles.teachers], roles.judge, roles.sharing))
            or SimpleNamespace(items=items, dropped=[{"id": "t", "reason": "unread reply"}], report={})
        ),
    )
    teacher, judge = (SimpleNamespace(identity={"model": n}) for n in "tj")
    asking: Any = {"teachers": [teacher], "judge": judge, "sharing": "rotate"}
    scaffolds.scaffolds(tmp_path / "asked", f"gsm8k:{path}", human=True, **asking)
    assert shared == [([teacher], judge, "rotate")]
    assert [row["reason"] for row in _read(tmp_path / "asked/rejected.jsonl")] == ["single-step"]
    (row,) = _read(tmp_path / "asked/review.jsonl")
    assert (row["id"], row["reason"], row["decision"]) == ("t", "unread reply", "open")
    monkeypatch.setattr(scaffolds, "read_items", lambda path: [path, "b", "c"])
    assert scaffolds._items("stad:file", 2) == ["file", "b"]
    assert document["report"]["redundancy"]["count"] == 0 and settings.items() <= document["options"].items()


def test_pairs_from_code_items_are_built_and_every_refusal_has_a_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def item(name: str, a: int, b: int) -> dict[str, Any]:
        code = f"def solution():\n    boxes = {a}\n    each = {b}\n    return boxes * each\n"
        return {"id": name, "question": f"{name} has {a} boxes of {b} pens. How many?", "code": code, "answer": a * b}

    path = tmp_path / "items.jsonl"
    items = [item("Ann", 2, 3), item("Bob", 4, 5), item("Cy", 7, 3)]
    path.write_text("".join(json.dumps(r) + "\n" for r in items))
    assert _build("compositional-gsm", path, "--size", 1, "--out", tmp_path / "out") == 0
    (case,) = read_cases(tmp_path / "out/cases.jsonl")
    first, second = case.parts
    answers = {i["question"]: i["answer"] for i in items}
    assert answers[first.question] == int(first.answer)
    assert first.answer in second.question and case.answer == second.answer
    assert all(r["reason"] and r["stage"] for r in _read(tmp_path / "out/rejected.jsonl"))

    def queue(cases: Any, *_: Any, **options: Any) -> list[dict[str, Any]]:
        given.append(options)
        return [{"case": case.id, "decision": "open"} for case in cases]

    given: list[dict[str, Any]] = []
    monkeypatch.setattr(review, "queue", queue)
    monkeypatch.setattr(review, "settle", lambda cases, rows: (cases, [*rows]))
    (tmp_path / "decided.jsonl").write_text(json.dumps({"case": case.id, "decision": "keep"}) + "\n")
    (tmp_path / "gold.jsonl").write_text('{"question": "?", "answer": "#### 1"}\n')
    solver: Any = SimpleNamespace(identity={"model": "s"})
    make, drawn, counted = compositional_gsm.build, list[Any](), list[Any]()
    bar = lambda title, total: counted.append((title, total)) or nullcontext(counted.append)  # noqa: E731
    monkeypatch.setattr(compositional_gsm, "build", lambda *of: drawn.append(of[1:3]) or make(*of))
    made = benchmarks.compositional_gsm(
        tmp_path / "again", path, tmp_path / "gold.jsonl", size=1, seed=3, solvers=[solver], samples=8, minimum=2,
        reviewed=tmp_path / "decided.jsonl", progress=bar,
    )  # fmt: skip
    assert counted == [("trying other numbers in the questions", 3), *[1] * 3], "long work is told"
    answering: Any = SimpleNamespace(answer=lambda asks: ((ask, None) for ask in asks), context=7)
    watched = benchmarks.Watched(answering, "asking", bar)
    assert [*watched.answer(["a"])] == [("a", None)] and watched.context == 7 and counted[4:] == [("asking", 1), 1]  # type: ignore[list-item]
    assert given == [{"samples": 8, "minimum": 2, "seed": 3}] and drawn == [(1, 3)]
    assert made["options"]["solvers"] == [{"model": "s"}] and [*made["inputs"]] == ["items.jsonl", "gold.jsonl"]
    assert {row["decision"] for row in _read(tmp_path / "again/review.jsonl")} == {"keep"}


def _write_items(folder: Path) -> None:
    items = [
        {"id": f"i{a}", "question": f"A has {a} and {b}", "code": f"def solution(): return {a}+{b}", "answer": a + b}
        for a, b in ((3, 20), (4, 21), (5, 22))
    ]
    (folder / "items.jsonl").write_text("".join(json.dumps(i) + "\n" for i in items))


def test_decisions_in_a_build_s_own_review_file_stay_there_while_others_are_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _write_items(tmp_path)
    queued = lambda cases, *_, **__: [{"case": c.id, "decision": "open"} for c in cases]  # noqa: E731
    monkeypatch.setattr(review, "queue", queued)
    out, solver = tmp_path / "out", SimpleNamespace(identity={})
    own, left = out / "review.jsonl", []
    for _ in range(2):  # what is open is no decision
        with pytest.raises(NoCasesError, match="to review"):
            benchmarks.compositional_gsm(out, tmp_path / "items.jsonl", solvers=[solver])  # type: ignore[list-item]
    ids = [row["case"] for row in _read(own)]
    for n, id in enumerate(ids):
        rows = [{**row, "decision": "keep"} if row["case"] == id else row for row in _read(own)]
        own.write_text("".join(json.dumps(row) + "\n" for row in rows))
        made = benchmarks.compositional_gsm(out, tmp_path / "items.jsonl", solvers=[solver], reviewed=own)  # type: ignore[list-item]
        left.append((made["counts"]["cases"], made["counts"]["review"]))
        assert made["counts"]["review"] == len(ids) - n - 1
    assert left == [(n, len(ids) - n) for n in range(1, len(ids) + 1)] and len(ids) > 1
    before = [_read(own), _read(out / "cases.jsonl"), (out / "build.json").read_text()]
    with pytest.raises(InputError, match=r"review\.jsonl: has a decision on .*; give --reviewed"):
        benchmarks.compositional_gsm(out, tmp_path / "items.jsonl", solvers=[solver])  # type: ignore[list-item]
    assert before == [_read(own), _read(out / "cases.jsonl"), (out / "build.json").read_text()]


ITEM = {"question": "A has 3 and 4", "code": "def solution():\n    return 3 + 4\n", "answer": 7}


@pytest.mark.parametrize(
    ("kind", "name", "content", "needle"),
    [
        ("temporal", "f.csv", b"", "f.csv: no rows"),
        ("temporal", "f.csv", b"a,b\n1,2\n", "f.csv:2: field 'event' is None"),
        ("temporal", "f.jsonl", bytes(range(256)), "f.jsonl:2: not UTF-8"),
        ("classification", "f.jsonl", b'{"member": "a", "class": [1]}\n', "f.jsonl:1: field 'class' is [1]"),
        ("compositional-gsm", "f.jsonl", b"[1]\n", "f.jsonl: item 0: expected a JSON object, got int"),
        ("compositional-gsm", "f.jsonl", json.dumps({**ITEM, "code": 3}).encode(), "f.jsonl:1: field 'code' is 3"),
        ("compositional-gsm", "f.jsonl", json.dumps({**ITEM, "question": [1]}).encode(), "field 'question' is [1]"),
        ("compositional-gsm", "f.jsonl", json.dumps({**ITEM, "answer": [7]}).encode(), "field 'answer' is [7]"),
        ("compositional-gsm", "f.jsonl", b'{"input": 3, "code": "", "target": 3}', "f.jsonl:1: field 'input' is 3"),
        (
            "compositional-gsm",
            "f.jsonl",
            json.dumps({"input": "q?", "code": "def solution():\n    return 3", "target": 3}).encode(),
            "give --gold",
        ),
    ],
)
def test_a_file_that_cannot_be_used_is_named_and_once_mended_the_same_command_works(
    kind: str, name: str, content: bytes, needle: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / name).write_bytes(content)
    command = [kind, tmp_path / name, "--out", tmp_path / "out"]
    assert _build(*command) == 1
    assert needle in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
    _facts(tmp_path / name)
    _build(*command)
    assert "holds another build" not in capsys.readouterr().err


def test_a_folder_that_held_something_keeps_it_when_a_build_is_refused(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "mine.txt").write_text("mine")
    (tmp_path / "facts.jsonl").write_text("")
    assert _build("temporal", tmp_path / "facts.jsonl", "--out", tmp_path / "out") == 1
    assert sorted(p.name for p in (tmp_path / "out").iterdir() if p.name != ".lock") == ["mine.txt"]
    (tmp_path / "out" / "build.json").write_text('{"options": 3}')
    with pytest.raises(InputError, match=r"build\.json: field 'options' is 3, not an object"):
        benchmarks.synthetic(tmp_path / "out")


def test_a_refusal_loses_neither_an_earlier_build_nor_answers_that_were_paid_for(tmp_path: Path) -> None:
    def refused(journal: Path) -> benchmarks.Made:
        if journal.parent.name == "answered":
            journal.mkdir()
            (journal / "answers.jsonl").write_text("{}\n")
        raise InputError("no")

    built = benchmarks.synthetic(tmp_path / "built", depths=[2], per_cell=1)
    for folder, kept in (("built", "cases.jsonl"), ("answered", "journal/answers.jsonl")):
        with pytest.raises(InputError, match="no"):
            benchmarks.build(tmp_path / folder, built["kind"], built["options"], [], refused)
        assert (tmp_path / folder / "build.json").is_file() and (tmp_path / folder / kept).is_file()


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        ("def solution():\n    while True:\n        pass\n", "code-"),
        ("def solution():\n    return '\0'\n", "code-syntax"),
        ("def solution():\n    return " + "-" * 3000 + "3\n", "code-syntax"),
        ("def solution():\n    return 10 ** 400\n", "answer-too-large"),
        ("def solution():\n    return float('nan')\n", "code-"),
        ("import os\nos._exit(3)\n", "code-"),
    ],
    ids=["loop", "null", "nested", "huge", "nan", "exit"],
)
def test_code_that_comes_to_no_answer_is_left_out_with_its_reason(
    code: str, reason: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "items.jsonl").write_text(json.dumps({**ITEM, "code": code}))
    assert _build("compositional-gsm", tmp_path / "items.jsonl", "--out", tmp_path / "out") == 1
    assert "no cases were made (1 " in capsys.readouterr().err
    (row,) = _read(tmp_path / "out" / "rejected.jsonl")
    assert row["reason"].startswith(reason)


@pytest.mark.parametrize(
    ("lines", "needle"),
    [
        ([{"decision": "keep"}], "decision 1: field 'case' is None"),
        ([{"case": [1], "decision": "keep"}], "decision 1: field 'case' is [1]"),
        ([{"case": "nobody", "decision": "keep"}], "review of 'nobody': no case has that id"),
        ([{"case": "x", "decision": "keep"}, {"case": "x", "decision": "drop"}], "review.jsonl: decision 2: case 'x'"),
    ],
)
def test_decisions_that_belong_to_no_case_are_refused(
    lines: list[dict[str, Any]], needle: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _write_items(tmp_path)
    (tmp_path / "review.jsonl").write_text("".join(json.dumps(r) + "\n" for r in lines))
    command = ["compositional-gsm", tmp_path / "items.jsonl", "--out", tmp_path / "out"]
    assert _build(*command, "--reviewed", tmp_path / "review.jsonl") == 1
    assert needle in capsys.readouterr().err
    assert _build(*command) == 0


@pytest.mark.parametrize(
    ("option", "value"), [("--depths", "2,2"), ("--families", "kinship,kinship"), ("--depths", ""), ("--families", ",")]
)
def test_what_would_give_cases_of_one_id_or_none_is_refused(
    option: str, value: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert _build("synthetic", option, value, "--out", tmp_path / "out") == 1
    assert f"{option} {value}: " in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_coverage_of_a_build_is_measured_with_its_own_budget_and_stands_in_its_report(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    item = StadItem("i", "How much?", "7", (StadStep("One?", "3"), StadStep("Two?", "7")))
    seen: dict[str, Any] = {}

    def coverage(items: Any, solver: Any, judge: Any, book: Any, *, max_tokens: int) -> Any:
        seen.update(items=items, solver=solver, judge=judge, max_tokens=max_tokens)
        return review.JudgedShare(1, 2, 1), {}

    monkeypatch.setattr(review, "coverage", coverage)
    monkeypatch.setattr(builder, "from_cases", lambda cases: ([item], [{"id": 1, "reason": "few"}]))
    monkeypatch.setattr(scaffolds, "_cases", lambda benchmark, limit: [limit])
    solver, judge = (SimpleNamespace(identity={"model": n}) for n in ("s", "j"))
    report = scaffolds.scaffolds(tmp_path / "out", "organism:mixed", human=True, solver=solver, judge=judge,  # type: ignore[arg-type]
                                 settings={"max_tokens": 77})  # fmt: skip
    assert (seen["solver"], seen["judge"], seen["max_tokens"], seen["items"]) == (solver, judge, 77, [item])
    assert [report["options"][name] for name in ("solver", "judge")] == [{"model": "s"}, {"model": "j"}]
    text = str(report) + "".join(p.read_text() for p in (tmp_path / "out").glob("*.json"))
    assert "coverage" in text and "redundancy" in text
    with pytest.raises(InputError, match="give --teacher, or --human"):
        scaffolds.scaffolds(tmp_path / "other", "organism:mixed")
    made = SimpleNamespace(items=[item], dropped=[], report={})
    monkeypatch.setattr(builder, "generate", lambda found, roles, *_: made)
    both = scaffolds.scaffolds(tmp_path / "two", "organism:mixed", human=True, teachers=[solver, judge])  # type: ignore[list-item]
    assert both["options"]["teachers"] == [{"model": "s"}, {"model": "j"}]


def test_what_a_build_leaves_out_is_rejected_or_left_to_a_person(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dropped = [{"id": i, "reason": r} for i, r in enumerate(("unjudged: x", "wrong", "unread steps", "few"))]
    rejected, open_ = scaffolds._split(dropped)
    assert [d["id"] for d in rejected] == [1, 3]
    assert [(d["id"], d["decision"]) for d in open_] == [(0, "open"), (2, "open")]
    made = {"out": "o", "counts": dict.fromkeys(("cases", "rejected", "review"), 9), "report": {"items": 3}}
    said = benchmarks.lines({**made, "rejected_by_reason": {f"r{i}": i for i in range(10)}})
    assert said[8:] == ["  rejected 7: r7", "  rejected for 2 other reasons, see build.json", "  items: 3"]
    file = tmp_path / "a.jsonl"
    file.write_text("")
    given = {f"stad:{file}": "stad:a.jsonl", str(file): "a.jsonl", "organism:mixed": "organism:mixed"}
    assert [scaffolds._name(n) for n in given] == [*given.values()]
    assert [scaffolds._files(n) for n in given] == [[file], [file], []]
    monkeypatch.setenv("HOME", str(tmp_path))
    assert scaffolds._files("~/a.jsonl") == scaffolds._files("stad:~/a.jsonl") == [file]
