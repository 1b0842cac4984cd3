"""Result files of other tools, and published data in the shape of their files: few rows, some of them faulty."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from references.material import lines

ANSWERS = ("Rome", "rome.", "It is Paris, I think.", "", "42", "The answer is 1,024", "I don't know", "Rome or Paris")
GOLDS = ("Rome", "Rome", "Paris", "Oslo", "42", "1024", "Bern", "Rome")


def _harness(folder: Path) -> None:
    rows = []
    for i, (said, gold) in enumerate(zip(ANSWERS, GOLDS, strict=True)):
        role = ("part:0", "part:1", "whole")[i % 3]
        rows.append({
            "doc_id": i, "doc": {"id": f"h{i // 3}", "role": role, "question": f"Question {i}?", "depth": 2,
                                 "family": "trips"},
            "target": gold if i != 4 else "6 * 7 = 42\n#### 42", "resps": [[said]], "filtered_resps": [said.strip()],
            "filter": "none", "metrics": ["exact_match"], "exact_match": float(i in (0, 4, 5)),
        })  # fmt: skip
    lines(folder / "harness.jsonl", rows)


def _inspect(folder: Path) -> None:
    samples = [
        {"id": i, "epoch": 1 + i // 5, "input": f"Question {i}?", "target": [gold, "Roma"] if i == 7 else gold,
         "output": {"completion": said}, "scores": {"match": {"value": "CIPNC1C0"[i] if i != 5 else 1}},
         "metadata": {"case": f"n{i % 5}", "role": ("whole", "part:0")[i % 2], "depth": 3}}
        for i, (said, gold) in enumerate(zip(ANSWERS, GOLDS, strict=True))
    ]  # fmt: skip
    samples[7]["scores"] = {"match": {"value": 0}}
    document = {"version": 2, "status": "cancelled", "eval": {"task": "trips", "model": "told/m"},
                "results": {"scores": [{"name": "match", "metrics": {"accuracy": {"value": 0.5}}}]},
                "samples": samples}  # fmt: skip
    (folder / "inspect.json").write_text(json.dumps(document))


def _bamboogle(folder: Path) -> None:
    items = []
    for i in range(5):
        said, gold = ANSWERS[i], GOLDS[i]
        verdicts: dict[str, Any] = {
            f"is_right_{s}": v
            for s, v in (("CEM", i in (0, 2, 4)), ("EM", i in (0, 3)), ("GPT_opinion", None if i == 1 else True))
        }
        sub: dict[str, Any] = {}
        for hop in (1, 2):
            right = (i + hop) % 3 > 0
            sub |= {f"Q{hop}_returned": gold if right else "Oslo", f"Q{hop}_gt": [gold, gold.lower()],
                    f"Q{hop}_is_right_CEM": right, f"Q{hop}_is_right_EM": i != 2,
                    f"Q{hop}_is_right_GPT_opinion": right}  # fmt: skip
        sub |= {"Q1_and_Q2_right_CEM": i != 1, "Q1_and_Q2_right_EM": i != 2, "Q1_and_Q2_right_GPT_opinion": i > 1}
        about = {"returned": said, "answer": gold, **verdicts}
        items.append({"direct_answer_result": about, "cot_result": {**about, "returned": f"So {gold}"},
                      "subquestions_result": sub})  # fmt: skip
    summary = {"size_of_dataset": 6, "direct_answer_correct_CEM": 3, "cot_correct_EM": 4,
               "both_subquestions_correct_EM": 4}  # fmt: skip
    (folder / "bamboogle.json").write_text(json.dumps({"summary": summary, "per_question_results": items}))


def _stad(folder: Path) -> None:
    rows = []
    for i in range(6):
        steps = 2 + i % 2
        row: dict[str, Any] = {
            "id": f"q{i}",
            "question": f"What is {i} plus {steps}?",
            "answer": i + steps,
            "sub-task": [f"add {j}" for j in range(steps)],
            "skill": ["adding", "counting", "adding"][:steps],
            "sub-task-answer": [{"explanation": f"it is {i + j}", "answer": str(i + j)} for j in range(steps)],
            "scaffolding": [f"Known: {i + j}. What is {i} plus {steps}?" for j in range(steps - 1)],
            "decompositions": [f"What is {i} plus {j}?" for j in range(steps)],
            "evaluation_score": (1, 0, "0", -1, 0, "1")[i],
            "decomposition_score": [int((i + j) % 3 > 0) for j in range(steps)],
        }
        if i in (1, 2, 4):
            row["scaffolding_score"] = [int(i != 2 or j > 0) for j in range(steps - 1)]
        rows.append(row)
    lines(folder / "stad.jsonl", rows)


def _plain(folder: Path) -> None:
    text = ["id,question,response,answer"]
    text += [f'r{i},"Question {i}?","{said}",{gold}' for i, (said, gold) in enumerate(zip(ANSWERS, GOLDS, strict=True))]
    (folder / "rows.csv").write_text("\n".join(text) + "\n")
    lines(folder / "rows.jsonl", [
        {"item": f"m{i // 2}", "role": ("whole", "part:0")[i % 2], "said": said, "gold": gold,
         **({"right": i != 1} if i < 6 else {})}
        for i, (said, gold) in enumerate(zip(ANSWERS[:6], GOLDS[:6], strict=True))
    ])  # fmt: skip


def _published(folder: Path) -> None:
    header = "id,domain,operation,question_commonsense,answers_commonsense,question_math,answer_math,"
    header += "question_composition,answer_composition,question_math_extra,source"
    rows = [f"a{i},{('home', 'trip')[i % 3 == 0]},{('plus', 'minus', 'times')[i % 3]},Which is a tool in {i}?,"
            f"\"['hammer', 'saw {i}']\",What is {i} plus 30?,{i + 30},What do {i} tools cost?,{i + 30},"
            f"{'' if i == 2 else f'With {i} more: what is {i} plus 30?'},web" for i in range(7)]  # fmt: skip
    (folder / "agentcoma.csv").write_text("\n".join([header, *rows]) + "\n")
    (folder / "bamboo.json").write_text(json.dumps([
        {"Question": f"Who ruled town {i}?", "Answer": f"King {i}", "Q1": f"What is town {i}?", "A1": f"Town {i}",
         "Q2": f"Who ruled it in {i}?", "A2": f"King {i}"} for i in range(4)
    ]))  # fmt: skip
    steps = [{"id": 10, "question": "Rome >> country", "answer": "Italy"},
             {"id": 11, "question": "What is the capital of #1, after #3?", "answer": "Rome"}]  # fmt: skip
    lines(folder / "musique.jsonl", [
        {"id": "2hop__10_11", "question": "What is the capital of Rome's country?", "answer": "Rome",
         "answer_aliases": ["Roma"], "question_decomposition": steps, "answerable": True,
         "paragraphs": [{"title": "Rome", "paragraph_text": "Rome is in Italy."}]},
        {"id": "2hop__10_11", "question": "What is the capital of Rome's country?", "answer": "Rome",
         "question_decomposition": steps, "answerable": False, "paragraphs": [{"paragraph_text": "Nothing."}]},
        {"id": "3hop__7", "question": "When did it end?", "answer": "1901", "question_decomposition": []},
    ])  # fmt: skip
    wiki = [{"_id": f"w{i}", "question": f"Where was the {kind} of Ann {i} born?", "answer": f"Town {i}",
             "type": ("compositional", "inference")[i % 2], "context": [], "supporting_facts": [],
             "evidences": [[f"Ann {i}", kind, f"Bo {i}"], [f"Bo {i}", "place of birth", f"Town {i}"]]}
            for i, kind in enumerate(("father", "mother", "spouse", "director"))]  # fmt: skip
    (folder / "wiki.json").write_text(json.dumps(wiki))


def results(folder: Path) -> None:
    for make in (_harness, _inspect, _bamboogle, _stad, _plain, _published):
        make(folder)
