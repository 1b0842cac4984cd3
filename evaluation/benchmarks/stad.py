"""STaD's records (An et al. 2026): questions with sub-tasks, their answers and scaffolded rewrites, as released.

There is one object per line; every stage of the generation adds fields: ``question, answer``; ``sub-task`` (K
segments); ``sub-task-answer`` (K explanations and answers); ``scaffolding`` (K-1 rewrites, the j-th reveals steps
1..j); ``scaffolding_verification``; ``decompositions`` (K stand-alone questions); after an evaluation
``evaluation_score``, ``decomposition_score`` and ``scaffolding_score``. All are read and written here, scores in both
shapes that occur.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from ...errors import InputError
from .. import prompts
from ..case import Case, Part
from ..gold import typed_answer
from ..text_files import objects
from .catalog import benchmark

WHAT = "JSON lines with question and answer, and what STaD's stages add"

_STAGES = ("sub-task", "sub-task-answer", "scaffolding", "scaffolding_verification", "decompositions")
_KNOWN = ("id", "question", "answer", "skill", "teacher", *_STAGES)


@dataclass(frozen=True)
class StadStep:
    """One sub-task of an item."""

    segment: str
    """What is to be done, in the words of the decomposition."""
    answer: str | None = None
    explanation: str | None = None
    task: str | None = None
    """The sub-task as a question of its own, with earlier results given."""
    skill: str | None = None


@dataclass(frozen=True)
class Check:
    """The teacher's answer to one scaffold, and whether it is the gold answer."""

    text: str
    verdict: bool | None
    """None where it could not be judged."""
    justification: str = ""


@dataclass(frozen=True)
class StadItem:
    """A question in some stage of the generation; later stages fill the empty fields."""

    id: str
    question: str
    gold: Any
    """The gold answer as the file has it."""
    steps: tuple[StadStep, ...] = ()
    scaffolds: tuple[str | None, ...] = ()
    """K-1 rewrites; the j-th (from 1) reveals steps 1..j."""
    checks: tuple[Check | None, ...] = ()
    teacher: str | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)
    """Other fields of the record: results of evaluations, anything unknown."""

    @property
    def answer(self) -> str:
        return typed_answer(self.gold)[0]

    @property
    def answer_type(self) -> str:
        return typed_answer(self.gold)[1]

    def solved(self, level: int) -> list[tuple[str, str]]:
        """Steps 1..level with their answers."""
        return [(s.segment, s.answer or "") for s in self.steps[:level]]

    @property
    def problem(self) -> str | None:
        """Why the stages do not fit together; None if they do."""
        k = len(self.steps)
        if k and any(s.answer is None for s in self.steps) and any(s.answer is not None for s in self.steps):
            return f"{sum(s.answer is not None for s in self.steps)} answers for {k} sub-tasks"
        for name, values in (("scaffolding", self.scaffolds), ("scaffolding_verification", self.checks)):
            if values and len(values) != k - 1:
                return f"{len(values)} {name} for {k} sub-tasks; there are K-1"
        if self.scaffolds and not all(isinstance(s, str) and s.strip() for s in self.scaffolds):
            return "an empty scaffold"
        return None


def asked_in(case: Case) -> dict[str, str]:
    """The prompt format that a case recommends, to be kept with the item made of it."""
    return {"format": str(case.meta["format"])} if case.meta.get("format") else {}


def read_items(path: str | Path) -> list[StadItem]:
    """Read records of any stage. Raises ``InputError`` naming file, line and field for what has another shape."""
    stem = Path(path).stem.removesuffix("_final")
    return [item_from_record(row, f"{stem}-{n:04d}", where) for n, (where, row) in enumerate(objects(path, WHAT))]


def item_from_record(row: Mapping[str, Any], name: str, where: str) -> StadItem:
    """One record as an item; ``name`` is its id unless it carries one."""
    question = row.get("question")
    if not isinstance(question, str) or not question.strip() or row.get("answer") is None:
        raise InputError(f"{where}: fields question and answer are needed; give {WHAT}")
    segments, answers = _list(row, "sub-task", where), _list(row, "sub-task-answer", where)
    tasks, skills = _list(row, "decompositions", where), _list(row, "skill", where)
    steps = []
    # The longer of the two lists: a length that differs is a problem to be seen, not to be cut off.
    for i in range(max(len(segments), len(answers))):
        segment = _entry(segments, i, "segment")
        result = answers[i] if i < len(answers) and isinstance(answers[i], dict) else {}
        answer = result.get("answer") if result else (answers[i] if i < len(answers) else None)
        text = None if answer is None else typed_answer(answer)[0]
        task, skill = _entry(tasks, i, "question"), _entry(skills, i, "skill")
        steps.append(StadStep(str(segment or ""), text, result.get("explanation"), task, skill))
    checks = [_check(c) for c in _list(row, "scaffolding_verification", where)]
    return StadItem(
        id=str(row.get("id") or name),
        question=question,
        gold=row["answer"],
        steps=tuple(steps),
        scaffolds=tuple(_list(row, "scaffolding", where)),
        checks=tuple(checks),
        teacher=row.get("teacher"),
        extra={k: v for k, v in row.items() if k not in _KNOWN},
    )


def _list(row: Mapping[str, Any], name: str, where: str) -> list[Any]:
    value = row.get(name)
    if value is None:
        return []
    if not isinstance(value, list):
        raise InputError(f"{where}: field {name!r} is {type(value).__name__}; give a list")
    return value


def _entry(values: Sequence[Any], i: int, key: str) -> str | None:
    value = values[i] if i < len(values) else None
    value = value.get(key) if isinstance(value, dict) else value
    return None if value is None or not str(value).strip() else str(value)


def _check(raw: Any) -> Check | None:
    if not isinstance(raw, dict):
        return None
    return Check(str(raw.get("answer", "")), score(raw.get("score")), str(raw.get("justification") or ""))


def score(value: Any) -> bool | None:
    """A stored score as a verdict: 1 and "1" are right, 0 and "0" wrong, -1 and everything else not judged."""
    text = str(value).strip().lower()
    return {"1": True, "1.0": True, "true": True, "0": False, "0.0": False, "false": False}.get(text)


def record_from_item(item: StadItem) -> dict[str, Any]:
    """The item as a record of the released shape, with the stages it has been through and no others."""
    row: dict[str, Any] = {"question": item.question, "answer": item.gold}
    if item.steps:
        row["sub-task"] = [{"segment": s.segment} for s in item.steps]
    if item.steps and all(s.answer is not None for s in item.steps):
        row["sub-task-answer"] = [{"explanation": s.explanation or "", "answer": s.answer} for s in item.steps]
    if item.scaffolds:
        row["scaffolding"] = list(item.scaffolds)
    if item.checks:
        row["scaffolding_verification"] = [None if c is None else _check_record(c) for c in item.checks]
    if any(s.task for s in item.steps):
        row["decompositions"] = [s.task for s in item.steps]
    if any(s.skill for s in item.steps):
        row["skill"] = [s.skill for s in item.steps]
    own = {"id": item.id, **({"teacher": item.teacher} if item.teacher else {})}
    return {**row, **item.extra, **own}


def _check_record(check: Check) -> dict[str, Any]:
    value = -1 if check.verdict is None else int(check.verdict)
    return {"answer": check.text, "score": value, "justification": check.justification}


def case_from_item(item: StadItem) -> Case:
    """The item as a case: parts are the stand-alone sub-tasks, ``meta`` holds the rewrites by level.

    Where stages do not fit together the case has the question only, and ``meta["problem"]`` says why.
    """
    answer, kind = typed_answer(item.gold)
    case = Case(item.id, item.question, answer, benchmark="stad", answer_type=kind, depth=len(item.steps) or None)
    if item.problem or not item.steps or item.steps[0].answer is None:
        problem = item.problem or "no answered sub-tasks"
        return replace(case, depth=None, meta={**item.extra, "problem": problem})
    parts = []
    for step in item.steps:
        text, step_type = typed_answer(step.answer)
        question = step.task or step.segment
        parts.append(Part(question, text, "step", step_type, worked=step.explanation or None, skill=step.skill))
    meta = {**item.extra, "steps": [s.segment for s in item.steps]}
    if item.scaffolds:
        levels = range(1, len(item.steps))
        meta["scaffolds"] = list(item.scaffolds)
        meta["placeholders"] = [placeholder_text(item, level) for level in levels]
    if item.teacher:
        meta["teacher"] = item.teacher
    return replace(case, parts=tuple(parts), meta=meta)


def placeholder_text(item: StadItem, level: int) -> str:
    """The scaffold at ``level`` with the injected values blanked: what its wording alone gives away (App. E).

    The rewrite keeps its words if every value can be found in it, apart from those of the original question; otherwise
    the steps, with their values blanked, are put before the question.
    """
    text = rewrite = item.scaffolds[level - 1] or ""
    for _, answer in sorted(item.solved(level), key=lambda s: -len(s[1])):
        pattern = re.compile(rf"(?<![\w.]){re.escape(answer)}(?![\w]|\.\d)", re.IGNORECASE)
        if not answer or not pattern.search(rewrite) or pattern.search(item.question):
            return prompts.placeholder(item.question, item.solved(level))
        text = pattern.sub(prompts.PLACEHOLDER, text)
    return text


@benchmark("stad")
def read_stad(path: str | Path) -> list[Case]:
    """Read released records as cases (see ``case_from_item``)."""
    return [case_from_item(item) for item in read_items(path)]
