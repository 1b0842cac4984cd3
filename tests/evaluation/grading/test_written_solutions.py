"""Solutions that people wrote for GSM8K, read as answers without a cue: the last step has the result."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path

from composcope.evaluation.grading import grade


def test_the_result_of_a_written_solution_is_found_and_another_number_is_not_right(shared: Path) -> None:
    found, other = Counter[str](), Counter[str]()
    lines = (shared / "data" / "gsm8k_test.jsonl").read_text(encoding="utf-8").splitlines()
    for n, line in enumerate(lines[::2]):
        item = json.loads(line)
        written, gold = item["answer"].rsplit("####", 1)
        steps, gold = re.sub(r"<<.*?>>", "", written).strip(), gold.strip().replace(",", "")
        found[grade(steps, "stop", gold, "number", question=item["question"]).outcome] += 1
        if n % 5 == 0:
            other[grade(steps, "stop", str(int(gold) + 3), "number", question=item["question"]).outcome] += 1
    assert (found.total(), other.total()) == (660, 132)
    assert found["incorrect"] <= 2 and found["invalid"] <= 3
    assert other["correct"] == 0
