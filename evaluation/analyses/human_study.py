"""A human study on a benchmark: who answers what, and the answers as reference rows (AgentCoMa, section 4 and App. I).

No person may see two questions of one item: the steps give away half of the whole.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from ...errors import InputError, NoCasesError
from ..asks import Ask, Grade
from ..cases import Case
from ..graded import Graded
from ..grading.grade import grade
from .base import Analysis


def assign(
    cases: Sequence[Case], per_person: int = 12, answers: int = 1, seed: int = 0, *, roles: Sequence[str] | None = None
) -> Analysis:
    """Sheets of ``per_person`` questions: every question ``answers`` times, no two questions of one item on a sheet.

    Questions are the whole and all parts of each case (or the ``roles`` given). Items are put in a random circle; round
    t asks item i the question (t + i) mod (number of its questions), and the rounds one after the other are cut into
    sheets: a sheet no longer than the circle never has an item twice. Item and role are in ``key.jsonl`` only.

    Raises ``InputError`` for sheets longer than there are items, ``NoCasesError`` for no cases.
    """
    if not cases:
        raise NoCasesError("human-study: no cases to assign")
    if not 1 <= per_person <= len(cases) or answers < 1:
        raise InputError(
            f"--per-person {per_person}, --answers {answers}: {len(cases)} items allow sheets of 1 to {len(cases)} "
            "questions, each question answered at least once"
        )
    rng = random.Random(seed)
    circle = list(cases)
    rng.shuffle(circle)
    asked = {c.id: questions(c, roles) for c in circle}
    most = max(len(q) for q in asked.values())
    sequence = []
    for t in range(most * answers):
        for i, case in enumerate(circle):
            own = asked[case.id]
            if t < len(own) * answers:
                sequence.append((case, *own[(t + i) % len(own)]))
    sheet, key = [], []
    for person, chunk in enumerate(_sheets(sequence, per_person), 1):
        rng.shuffle(chunk)
        for n, (case, role, text) in enumerate(chunk, 1):
            name = f"p{person:03d}-{n:02d}"
            sheet.append({"person": f"p{person:03d}", "item": name, "question": text, "answer": ""})
            key.append({"item": name, "person": f"p{person:03d}", "case": case.id, "role": role})
    people = len({k["person"] for k in key})
    table = [{"items": len(cases), "questions": len(sequence), "people": people, "per_person": per_person}]
    return Analysis("human-study", (), {"assignment": table}, {"sheet.jsonl": sheet, "key.jsonl": key})


def questions(case: Case, roles: Sequence[str] | None = None) -> list[tuple[str, str]]:
    """(role, question) of a case's whole and parts."""
    found = [("whole", case.question), *((f"part:{i}", p.question) for i, p in enumerate(case.parts))]
    return [(role, text) for role, text in found if roles is None or role in roles]


def _sheets(sequence: Sequence[Any], size: int) -> list[list[Any]]:
    """Consecutive cuts; an item that returns too early (items with fewer questions drop out) opens a new sheet."""
    sheets: list[list[Any]] = [[]]
    for entry in sequence:
        if len(sheets[-1]) == size or any(e[0].id == entry[0].id for e in sheets[-1]):
            sheets.append([])
        sheets[-1].append(entry)
    return sheets


def reference_rows(
    cases: Mapping[str, Case],
    key: Sequence[Mapping[str, Any]],
    sheet: Sequence[Mapping[str, Any]],
    model: str = "human",
) -> Analysis:
    """The filled-in sheets as graded rows of a model named ``human``; a question answered twice becomes two repeats.

    An empty answer is not given and is left out, with a count. Raises ``InputError`` where sheet, key and cases do not
    fit, or where a person saw two questions of one item.
    """
    by_item = {str(k["item"]): k for k in key}
    seen = Counter((k["person"], k["case"]) for k in key)
    if twice := next((k for k, n in seen.items() if n > 1), None):
        raise InputError(f"key: {twice[0]} has {seen[twice]} questions of item {twice[1]!r}; a person may see one")
    rows: list[Graded] = []
    repeats: Counter[tuple[str, str]] = Counter()
    empty = 0
    for n, line in enumerate(sheet, 1):
        place = by_item.get(str(line.get("item")))
        if place is None or place["case"] not in cases:
            raise InputError(
                f"sheet:{n}: item {line.get('item')!r} is not in the key, or its case not in the benchmark"
            )
        text = str(line.get("answer") or "").strip()
        if not text:
            empty += 1
            continue
        case, role = cases[place["case"]], place["role"]
        ask, found = _graded(case, role, text)
        repeat = repeats[case.id, role]
        repeats[case.id, role] += 1
        row = Graded.of(case, ask, found, ask_id=None, model=model, run=None)
        rows.append(Graded(**{**_fields(row), "repeat": repeat, "extra": {"person": place["person"]}}))
    if not rows:
        raise NoCasesError("sheet: no answer is filled in")
    warnings = (f"{empty} of {len(sheet)} questions have no answer and are left out",) if empty else ()
    outcomes = Counter((r.role, r.outcome) for r in rows)
    table = [{"role": role, "outcome": outcome, "count": n} for (role, outcome), n in sorted(outcomes.items())]
    files = {"graded.jsonl": [r.to_dict() for r in rows]}
    return Analysis("human-reference", (), {"answers": table}, files, warnings)


def _fields(row: Graded) -> dict[str, Any]:
    return {name: getattr(row, name) for name in row.__dataclass_fields__}


def _graded(case: Case, role: str, text: str) -> tuple[Ask, Grade]:
    i = None if role == "whole" else int(role.partition(":")[2])
    about = case if i is None else case.parts[i]
    ask = Ask(
        case.id, role, about.question, about.answer, about.answer_type, aliases=about.aliases,
        kind=None if i is None else case.parts[i].kind,
    )  # fmt: skip
    unknowable = case.unknowable and i is None
    return ask, grade(text, "stop", about.answer, about.answer_type, aliases=about.aliases, unknowable=unknowable)
