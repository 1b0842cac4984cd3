"""Cases behind a page: the rows of its browser, their gates, and what an opened case holds."""

from __future__ import annotations

import json
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

from composcope.evaluation.cases import Case, Part
from composcope.evaluation.graded import Graded
from composcope.evaluation.protocols.base import Entry
from composcope.experiments.report import cases
from composcope.experiments.report.cases import ATOMS, OPEN, PARTS, PASSED, gates
from composcope.experiments.report.origins import Origin
from composcope.experiments.report.pictures import size_of
from composcope.experiments.run.reader import load

from ..bare_runs import bare_run


def test_outcomes_of_roles_are_one_letter_each_and_chunks_hold_forty_cases(
    synthetic: ModuleType, tmp_path: Path
) -> None:
    assert cases._dense({2: "1", 0: "3"}) == "3.1" and cases._dense({}) == ""
    (run,) = load([synthetic.make_run(tmp_path / "r", n=90, probes=())])
    found = cases.collect([run])
    assert [len(c["cases"]) for c in found.files.values()] == [40, 40, 10] and found.index["chunk"] == 40
    assert [c for chunk in found.files.values() for c in chunk["cases"]] == list(run.by_case) == list(run.cases)
    assert (found.index["cap"], found.index["dropped"]) == (cases.CAPS[0], [])
    small = cases.collect([run], budget=size_of(found.files["cases/0-0"]) + 10)
    assert list(small.files) == ["cases/0-0"] and small.index["dropped"] == ["cases/0-2", "cases/0-1"]
    assert cases.cut("abcd", 4) == ("abcd", None) and cases.cut("abcde", 4) == ("abcd", 5)


def test_a_row_of_the_browser_has_the_first_answer_of_each_role_and_what_filters_use() -> None:
    known = Case("a", "What is it?", "Oslo", (Part("?", "x", skill="recall"), Part("?", "y", skill="add")), family="f",
                 depth=2, operation="plus")  # fmt: skip
    graded = [
        Graded("a", "whole:cot", "correct", answer="Oslo", gold="Oslo"),
        Graded("a", "whole", "incorrect", answer="Bergen"), Graded("a", "whole", "correct", answer="Oslo", repeat=1),
        Graded("a", "part:0", "correct"), Graded("a", "part:1", "correct"),
        Graded("a", "part:1", "incorrect", repeat=1),
        Graded("b", "part:1", "abstained", family="g", depth=3, depth_bin=2, operation="minus", gold="7",
               skills=("add", "count", "add")),
        Graded("b", "whole", "invalid", gold="Rome"),
        Graded("c", "whole:cot", "incorrect", answer="Rome", gold="Bern", family="g", depth=2),
    ]  # fmt: skip
    sets = {"failures": SimpleNamespace(ids=["a"], entries=[]), "both": SimpleNamespace(ids=["a"], entries=[]),
            "scaffold-k": SimpleNamespace(ids=["b"], entries=[SimpleNamespace(case="b", value=2)])}  # fmt: skip
    run = bare_run(cases={"a": known}, graded=graded, case_sets=sets)
    made = cases.index([run], [cases.Told({"a": Origin("named", "it")}, {"a": "b"})])
    a, b, c = (dict(zip(made["columns"], row, strict=True)) for row in made["rows"])

    def outcomes(row: dict[str, Any]) -> dict[str, str]:
        return {r: made["outcomes"][int(o)] for r, o in zip(made["roles"], row["roles"], strict=False) if o != "."}

    assert outcomes(a) == {"whole:cot": "correct", "whole": "incorrect", "part:0": "correct", "part:1": "correct"}
    assert outcomes(b) == {"whole": "invalid", "part:1": "abstained"}
    named = [{k: [made[k][i] for i in row[k]] for k in ("skills", "sets")} for row in (a, b)]
    # skills stand in the order of the steps
    assert named == [{"skills": ["recall", "add"], "sets": ["failures", "both"]},
                     {"skills": ["add", "count", "add"], "sets": ["scaffold-k"]}]  # fmt: skip
    fields = ("depth", "bin", "operation", "k", "twin")
    about = [(made["families"][r["family"]], *(r[k] for k in fields)) for r in (a, b)]
    assert about == [("f", 2, None, "plus", None, "b"), ("g", 3, 2, "minus", 2, None)]
    told = [(r["question"], r["gold"], r["answer"], r["detail"]) for r in (a, b, c)]
    assert told == [("What is it?", "Oslo", "Bergen", "it"), ("", "Rome", None, ""), ("", "", None, "")], (
        "another way of asking is not the whole"
    )
    assert made["origins"][a["origin"]] == "named something else in the question" and b["origin"] is None


def test_the_smallest_scaffold_that_is_enough_is_0_unaided_and_below_0_where_none_is() -> None:
    levels = {"unaided": ("a", 0), "scaffold-k": ("b", 2), "intractable": ("c", -1), "other": ("d", 5)}
    sets = {name: SimpleNamespace(entries=[Entry(case, (), value=k)]) for name, (case, k) in levels.items()}
    assert cases.ladder_k(bare_run(case_sets=sets)) == {"a": 0, "b": 2, "c": -1}


def test_an_opened_case_has_each_answer_with_its_outcome_prompt_gold_and_tokens(
    synthetic: ModuleType, tmp_path: Path
) -> None:
    (run,) = load([synthetic.make_run(tmp_path / "r", n=6, probes=(), failure=0.5)])
    chunk = cases.collect([run]).files["cases/0-0"]
    texts = chunk["texts"]
    for case, shown in chunk["cases"].items():
        own = run.cases[case]
        assert [texts[shown[k]] for k in ("question", "gold", "cluster")] == [own.question, own.answer, own.cluster]
        assert [texts[p] for p in shown["parts"]] == [p.question for p in own.parts] and shown["chance"] == own.chance
        rows = [g for g in run.graded if g.case == case]
        assert len(rows) == len(shown["asks"])
        for g, (role, outcome, repeat, place) in zip(rows, shown["asks"], strict=True):
            asked = dict(zip(chunk["fields"], chunk["asked"][place], strict=False))
            assert (role, cases.OUTCOMES[outcome], repeat) == (g.role, g.outcome, g.repeat)
            ask, said = run.asks[str(g.ask)], run.responses[str(g.ask)]
            wanted = (ask.prompt, said.text, g.answer, g.gold)
            assert (asked.get("reason") is not None) == (g.reason is not None)
            assert tuple(texts[asked[k]] for k in ("prompt", "response", "read", "gold")) == wanted
            assert [asked.get(k) for k in ("format", "prompting", "finish", "given", "said", "kind")][:5] == [
                ask.format, ask.prompting, said.finish_reason, said.prompt_tokens, said.response_tokens]  # fmt: skip


def row(case: str, role: str, outcome: str, **more: Any) -> dict[str, Any]:
    return {"schema": 1, "case": case, "role": role, "outcome": outcome, **more}


def test_gates_name_what_stopped_a_case(synthetic: ModuleType, tmp_path: Path) -> None:
    run = synthetic.make_run(tmp_path / "run", n=4, probes=())
    (run / "cases.jsonl").unlink()
    verdicts = {"all": ("correct", "correct"), "sub": ("incorrect", "correct"), "atom": ("correct", "incorrect"),
                "both": ("incorrect", "abstained"), "open": ("invalid", "correct"),
                "shut": ("incorrect", "invalid")}  # fmt: skip
    asked = [(case, part, wording) for case, (part, wording) in verdicts.items()]
    rows = [row(case, role, outcome) for case, part, wording in asked
            for role, outcome in (("whole", "correct"), ("part:0", part), ("part:0:paraphrase:0", wording))
            ]  # fmt: skip
    rows.append(row("nothing", "whole", "correct"))
    (run / "graded.jsonl").write_text("".join(json.dumps(r) + "\n" for r in rows))
    assert gates(load([run])[0]) == {"all": PASSED, "sub": PARTS, "atom": ATOMS, "both": ATOMS, "open": OPEN,
                                     "shut": PARTS}  # fmt: skip


def test_gates_agree_with_the_runs_own_case_sets(synthetic: ModuleType, tmp_path: Path) -> None:
    run = load([synthetic.make_run(tmp_path / "run", n=120, probes=(), seed=8)])[0]
    found = gates(run)
    in_sets = {case for found in run.case_sets.values() for case in found.ids}
    passed = {c for c, g in found.items() if g == PASSED}
    assert len(passed) > 20 and in_sets >= passed
    first = min(passed)
    lost = next(g for g in run.graded if g.case == first and ":paraphrase:" in g.role)
    run.graded.remove(lost)
    assert gates(run)[first] == OPEN, "a wording of an atom that was not asked"


def test_a_long_question_is_cut_in_the_middle_in_the_list_and_a_long_answer_at_its_end(
    synthetic: ModuleType, tmp_path: Path
) -> None:
    text = "x" * 250 + "y" * 250
    index = cases.collect(load([synthetic.make_run(tmp_path / "run", n=2, probes=(), text=text)])).index
    shown = dict(zip(index["columns"], index["rows"][0], strict=True))
    assert len(shown["question"]) == len(shown["answer"]) == 120 and shown["answer"] == "x" * 119 + "…"
    assert index["cap"] == cases.CAPS[0], "what fits is not cut in the chunks"
    short = cases.collect(load([tmp_path / "run"]), budget=1).index
    assert short["cap"] == cases.CAPS[-1] and short["dropped"]
    (whole,) = (chunk := cases.collect(load([tmp_path / "run"]))).files.values()
    cut = cases.collect(load([tmp_path / "run"]), budget=size_of(whole) - 1).files["cases/0-0"]
    place, length = cut["cases"][shown["case"]]["question"]
    assert (cut["texts"][place], length, chunk.index["cap"]) == (text[:300], 500, cases.CAPS[0])
    assert shown["question"].strip("x").strip("y") == " … " and shown["question"][0] + shown["question"][-1] == "xy"


def test_prompts_as_sent_stand_in_the_chunk(synthetic: ModuleType, tmp_path: Path) -> None:
    run = synthetic.make_run(tmp_path / "run", n=2, probes=())
    asks = [json.loads(line) for line in (run / "asks.jsonl").read_text().splitlines()]
    (run / "rendered.json").write_text(json.dumps({
        "schema": 1, "templates": [["<user>", "</user>"]], "asks": {asks[0]["ask"]: 0, asks[1]["ask"]: "all of it"}
    }))  # fmt: skip
    chunk = cases.collect(load([run])).files["cases/0-0"]
    told = [dict(zip(chunk["fields"], r, strict=False)) for r in chunk["asked"]]
    read = [[chunk["texts"][t[k]] for k in ("before", "prompt", "after") if t.get(k) is not None] for t in told]
    assert ["<user>", asks[0]["prompt"], "</user>"] in read
    assert "all of it" in [chunk["texts"][t["sent"]] for t in told if t.get("sent") is not None]
    assert told[0]["given"] == 9 and told[0]["said"] == 3
