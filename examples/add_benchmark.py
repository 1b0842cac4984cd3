"""A benchmark in one file: a CSV of things on a table and their tags becomes compositional cases.

composcope evaluate --plugin examples/add_benchmark.py --benchmark table:examples/table.csv --model organism:control
"""

import csv
from pathlib import Path

from composcope.errors import InputError
from composcope.evaluation import Case, Part

COLUMNS = ("things", "kind_a", "thing_a", "tag_a", "kind_b", "thing_b", "tag_b")


def read_table(file: str) -> list[Case]:
    """One case a row: pick two things by what they are, then add their tags."""
    path = Path(file)
    if not path.is_file():
        raise InputError(f"table:{file}: no such file; give a CSV with the columns {', '.join(COLUMNS)}")
    with path.open(encoding="utf-8", newline="") as f:
        rows = list(csv.DictReader(f))
    return [_case(row, f"{path}:{line}") for line, row in enumerate(rows, 2)]


def _case(row: dict[str, str], where: str) -> Case:
    missing = [name for name in COLUMNS if not row.get(name)]
    if missing:
        raise InputError(f"{where}: column {missing[0]!r} is missing or empty; every row needs {', '.join(COLUMNS)}")
    a, b, total = row["thing_a"], row["thing_b"], int(row["tag_a"]) + int(row["tag_b"])
    table = f"On the table: {row['things']}."
    return Case(
        id=where.rpartition("/")[2],
        question=f"{table} What is the tag of the {row['kind_a']} one plus the tag of the {row['kind_b']} one?",
        answer=str(total),
        answer_type="number",
        parts=(
            Part(
                f"{table} Which is the {row['kind_a']} one and which is the {row['kind_b']} one?",
                f"{a} and {b}",
                kind="commonsense",
                answer_type="ordered-list",
            ),
            Part(f"What is the tag of the {a} plus the tag of the {b}?", str(total), kind="math", answer_type="number"),
        ),
        benchmark="table",
        family="sum of tags",
        depth=2,
        cluster=f"{a}+{b}",  # cases about the same things are not independent: intervals respect it
    )


BENCHMARKS = {"table": read_table}
