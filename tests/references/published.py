"""Published data sets in the shape of their files: a few questions of each, with what their readers have to decide."""

from __future__ import annotations

import json
from pathlib import Path

from references.material import lines


def readers(folder: Path) -> None:
    lines(folder / "gsm8k.jsonl", [
        {"question": "Tom has 3 pens and buys 4 bags of 5. How many has he?",
         "answer": "How many in the bags? ** 4*5=<<4*5=20>>20\nHow many in all? ** 3+20=<<3+20=23>>23\n#### 23"},
        {"question": "How much is half of 2,046?", "answer": "Half is <<2046/2=1023>>1,023.\nSo it is so.\n#### 1,023"},
    ])  # fmt: skip
    lines(folder / "math.jsonl", [
        {"problem": "What is one half?", "solution": "It is \\boxed{\\frac{1}{2}}.", "level": "Level 5",
         "type": "Algebra"},
        {"problem": "Even or odd?", "solution": "2 is \\boxed{\\text{even}}, not \\boxed{\\text{odd {sic}}}",
         "level": "Level 1", "type": "Number Theory"},
        {"question": "What is 7^2?", "answer": "49", "unique_id": "sq"},
    ])  # fmt: skip
    (folder / "multiarith.json").write_text(json.dumps([
        {"iIndex": 3, "sQuestion": "Ann had 7 cups, broke 2, and each of the others costs 3. What do they cost?",
         "lEquations": ["X=((7.0-2.0)*3.0)"], "lSolutions": [15.0]},
        {"iIndex": 4, "sQuestion": "18 pens go into 4 boxes. How many are in each?", "lEquations": ["X=(18.0/4.0)"],
         "lSolutions": [4.5]},
    ]))  # fmt: skip
    lines(folder / "tot.jsonl", [
        {"question": "When did it begin?", "label": "1999-05-01", "question_type": "add_subtract"},
        {"question": "Which came first? Return a JSON.", "answer": {"answer": "Ann"}, "question_type": "order",
         "id": 8},
        {"question": "In what order?", "label": ["Ann", "Bo"], "question_type": "order"},
    ])  # fmt: skip
    (folder / "hotpot.json").write_text(json.dumps([
        {"_id": "h1", "question": "Are Ann and Bo both painters?", "answer": "yes", "type": "comparison",
         "level": "hard", "supporting_facts": [["Ann", 0]], "context": [["Ann", ["Ann paints."]]]},
        {"_id": "h2", "question": "Where was the painter of Sea born?", "answer": "Oslo", "type": "bridge",
         "level": "easy", "supporting_facts": [], "context": []},
    ]))  # fmt: skip
    (folder / "mquake.json").write_text(json.dumps([
        {"case_id": 5, "questions": ["Who leads the country of Ann?", "Which leader has Ann's country?"],
         "answer": "Bo", "answer_alias": ["Robert", "bo"], "answer_extended": ["Cy", 4],
         "single_hops": [{"question": "Which country is Ann from?", "answer": "Norway", "answer_alias": []},
                         {"question": "Who leads Norway?", "answer": "Bo", "answer_alias": ["Robert"]}],
         "orig": {"triples": [["Q1", "P27", "Q20"], ["Q20", "P6", "Q3"]]}},
        {"case_id": 6, "questions": ["Who is the head of Bo's land?"], "answer": "Dee", "answer_alias": [],
         "single_hops": [{"question": "Which land is Bo's?", "answer": "Norway", "answer_alias": ["Norge"]},
                         {"question": "Who heads Norway?", "answer": "Dee", "answer_alias": []}], "orig": {}},
    ]))  # fmt: skip
    names = ("r1(e1)", "r2(e2)", "r2(r1(e1))")
    columns = ["uid", "category", "fact_comp_type", *(f"{n}.prompt" for n in names), f"{names[2]}.blank.prompt",
               "e1.value", "e2.value", "e3.value", "e2.aliases", "e3.minimal_aliases"]  # fmt: skip
    rows = [[str(i), "song", "singer-place", f"The singer of S{i} is", f"The town of A{i % 2} is",
             f"The town of the singer of S{i} is", f"The town of the singer of S{i} is ____." if i else "",
             f"S{i}", f"A{i % 2}", f"T{i % 2}", f"\"['Al {i}', ('A{i % 2}',)]\"", "\"[['Tee', None], 'tee']\""]
            for i in range(3)]  # fmt: skip
    (folder / "facts.csv").write_text("\n".join(",".join(row) for row in [columns, *rows]) + "\n")
