"""Analyses of AgentCoMa: small against large models, and people as the reference."""

import random
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from ...errors import InputError, NoCasesError
from ..asks import Ask, Grade
from ..case import Case
from ..graded import Graded
from ..grading.grade import grade
from ..metrics import Metric
from ..protocols.asking import question
from ..protocols.compositionality_gap import CompositionalityGap
from ..text_files import in_words
from .base import Analysis, Source, first_repeats, matched

_SIZE = re.compile(r"(?<![\w.])(\d+(?:\.\d+)?)(?:x(\d+(?:\.\d+)?))?\s?([bm])(?![a-z0-9])", re.IGNORECASE)
SMALL, LARGE = 8.0, 14.0
"""Billions of parameters."""
NAMES = ("composition", "both", "gap", "press_gap", "quadrant")


def size_of(name: str) -> float | None:
    """Billions of parameters that a model's name states (``8x7B`` counts as 56), None where it states none."""
    found = [(a, b, unit) for a, b, unit in _SIZE.findall(name.replace("_", "-"))]
    if not found:
        return None
    first, second, unit = found[0]
    value = float(first) * (float(second) if second else 1.0)
    return value / 1000 if unit.lower() == "m" else value


def size_groups(sources: Sequence[Source], sizes: Mapping[str, float] | None = None, *, seed: int = 0) -> Analysis:
    """Metrics over all answers of the models up to ``SMALL`` and from ``LARGE`` billion parameters.

    Every answer counts once; intervals resample cases, because all models are asked the same. Models in between are
    left out and named. ``sizes`` overrides what names state. Raises ``InputError`` for a model of unknown size.
    """
    groups: dict[str, list[Source]] = {"small": [], "large": []}
    left = []
    rows = []
    for source in sources:
        size = (sizes or {}).get(source.name, (sizes or {}).get(source.model))
        size = size if size is not None else size_of(source.model)
        if size is None:
            raise InputError(f"{source.name}: the size of {source.model!r} is not known; give --size {source.name}=7")
        which = "small" if size <= SMALL else "large" if size >= LARGE else None
        rows.append({"model": source.model, "billions": size, "group": which or "left out"})
        (groups[which] if which else left).append(source)
    metrics: list[Metric] = []
    for which, chosen in groups.items():
        metrics += _pooled(which, chosen, seed)
    warnings = tuple(f"{s.model} is between {SMALL:g}B and {LARGE:g}B and left out" for s in left)
    warnings += first_repeats(sources)
    return Analysis("size-groups", tuple(metrics), {"models": rows}, warnings=warnings)


def _pooled(which: str, sources: Sequence[Source], seed: int) -> list[Metric]:
    if not sources:
        return []
    rows: list[Graded] = []
    for n, source in enumerate(sources):
        # One repeat per model: the counting then sees one set of cases, and resamples cases with all their models.
        rows += [replace(r, model=None, run=None, repeat=n) for r in source.rows if not r.repeat]
    found = CompositionalityGap(seed=seed).reduce(rows).metrics
    kept = [m for m in found if m.metric in NAMES or m.metric.startswith("step:")]
    wanted = [m for m in kept if not m.group.keys() - {"quadrant", "whole"}]
    return [replace(m, group={"size": which, "models": len(sources), **m.group}) for m in wanted]


def assign(cases: Sequence[Case], per_person: int = 12, answers: int = 1, seed: int = 0) -> Analysis:
    """Sheets of ``per_person`` questions: every question ``answers`` times, no two questions of one item on a sheet.

    Questions are the whole and all parts of each case. Items are put in a random circle; round
    t asks item i the question (t + i) mod (number of its questions), and the rounds one after the other are cut into
    sheets: a sheet no longer than the circle never has an item twice. Item and role are in ``key.jsonl`` only.

    Raises ``InputError`` for sheets longer than there are items, ``NoCasesError`` for no cases.
    """
    if not cases:
        raise NoCasesError("study human: no cases to assign")
    if not 1 <= per_person <= len(cases) or answers < 1:
        raise InputError(
            f"--per-person {per_person}, --answers {answers}: {len(cases)} items allow sheets of 1 to {len(cases)} "
            "questions, each question answered at least once"
        )
    rng = random.Random(seed)
    circle = list(cases)
    rng.shuffle(circle)
    asked = {c.id: questions(c) for c in circle}
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


def questions(case: Case) -> list[tuple[str, str]]:
    """(role, question) of a case's whole and parts, with the evidence and the options that a model is given, too."""
    parts = [(f"part:{i}", question(case, p.question, p.options)) for i, p in enumerate(case.parts)]
    return [("whole", question(case, case.question, case.options)), *parts]


def _sheets(sequence: Sequence[Any], size: int) -> list[list[Any]]:
    """Consecutive cuts; an item that returns too early (items with fewer questions drop out) opens a new sheet."""
    sheets: list[list[Any]] = [[]]
    for entry in sequence:
        if len(sheets[-1]) == size or any(e[0].id == entry[0].id for e in sheets[-1]):
            sheets.append([])
        sheets[-1].append(entry)
    return sheets


def reference_rows(
    cases: Mapping[str, Case], key: Sequence[Mapping[str, Any]], sheet: Sequence[Mapping[str, Any]]
) -> Analysis:
    """The filled-in sheets as graded rows of a model named ``human``; a question answered twice becomes two repeats.

    An empty answer is not given and is left out, with a count. Raises ``InputError`` where sheet, key and cases do not
    fit, where a line is there twice, or where a person saw two questions of one item.
    """
    lines = list(matched(key, sheet, ("person", "case", "role")))
    seen = Counter((k["person"], k["case"]) for k in key)
    if twice := next((k for k, n in seen.items() if n > 1), None):
        raise InputError(f"key: {twice[0]} has {seen[twice]} questions of item {twice[1]!r}; a person may see one")
    rows: list[Graded] = []
    repeats: Counter[tuple[str, str]] = Counter()
    empty = 0
    for n, line, place in lines:
        if place is None or place["case"] not in cases:
            raise InputError(
                f"sheet:{n}: item {line.get('item')!r} is missing from the key, or its case from the benchmark"
            )
        case, role = cases[place["case"]], place["role"]
        if role not in dict(questions(case)):
            raise InputError(f"sheet:{n}: case {case.id!r} has no {role!r}; give the benchmark that was assigned")
        text = "" if line.get("answer") is None else str(in_words(line["answer"])).strip()
        if not text:
            empty += 1
            continue
        ask, found = _graded(case, role, text)
        repeat = repeats[case.id, role]
        repeats[case.id, role] += 1
        row = Graded.of(case, ask, found, ask_id=None, model="human", run=None)
        rows.append(replace(row, repeat=repeat, extra={"person": place["person"]}))
    if not rows:
        raise NoCasesError("sheet: no answer is filled in")
    warnings = (f"{empty} of {len(sheet)} questions have no answer and are left out",) if empty else ()
    outcomes = Counter((r.role, r.outcome) for r in rows)
    table = [{"role": role, "outcome": outcome, "count": n} for (role, outcome), n in sorted(outcomes.items())]
    files = {"graded.jsonl": [r.to_dict() for r in rows]}
    return Analysis("human-reference", (), {"answers": table}, files, warnings)


def _graded(case: Case, role: str, text: str) -> tuple[Ask, Grade]:
    about = case if role == "whole" else case.parts[int(role.removeprefix("part:"))]
    asked = question(case, about.question, about.options)
    ask = Ask(
        case.id, role, asked, about.answer, about.answer_type, aliases=about.aliases, kind=getattr(about, "kind", None)
    )
    return ask, grade(
        text, "stop", about.answer, about.answer_type, aliases=about.aliases, options=about.options, question=asked,
        unknowable=case.unknowable and about is case,
    )  # fmt: skip
