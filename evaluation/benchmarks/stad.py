"""STaD's records (An et al. 2026): questions with sub-tasks, their answers and scaffolded rewrites, as released.

There is one object per line; every stage of the generation adds fields: ``question, answer``; ``sub-task`` (K
segments); ``sub-task-answer`` (K explanations and answers); ``scaffolding`` (K-1 rewrites, the j-th reveals steps
1..j); ``scaffolding_verification``; ``decompositions`` (K stand-alone questions); after an evaluation
``evaluation_score``, ``decomposition_score`` and ``scaffolding_score``. All are read and written here, scores in both
shapes that occur.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from ...errors import InputError
from .. import prompts
from ..case import Case, Part, case_from_dict, case_to_dict
from ..gold import others, typed_answer
from ..options import letter_of, listed, parse
from ..text_files import id_field, objects
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
    def said(self) -> Mapping[str, Any]:
        """What the case that the item was made of says beside its question (``asked_in``); empty without one."""
        found = self.extra.get(OF_CASE)
        return found if isinstance(found, Mapping) else {}

    @property
    def case(self) -> Case:
        """The question as a case without parts. Raises ``InputError`` naming a field of ``OF_CASE`` that is wrong."""
        answer, kind = typed_answer(self.gold)
        if not self.said:
            return Case(self.id, self.question, answer, benchmark="stad", answer_type=kind)
        given = {k: v for k, v in self.said.items() if k != "parts"}
        own = {"id": self.id, "question": self.question, "answer": answer, "benchmark": "stad"}
        return case_from_dict({"answer_type": kind, **given, **own}, f"item {self.id!r}, {OF_CASE}")

    @property
    def answer(self) -> str:
        return typed_answer(self.gold)[0]

    @property
    def answer_type(self) -> str:
        return self.case.answer_type

    def asked(self, text: str) -> str:
        """A wording of the question as a model is asked it: with options and evidence, where there are any."""
        case = self.case
        text = listed(text, case.options)
        return prompts.with_evidence(text, case.evidence) if case.evidence else text

    def solved(self, level: int) -> list[tuple[str, str]]:
        """Steps 1..level with their answers."""
        return [(s.segment, s.answer or "") for s in self.steps[:level]]

    @property
    def problem(self) -> str | None:
        """Why the stages do not fit together; None if they do."""
        k = len(self.steps)
        answered = sum(s.answer is not None for s in self.steps)
        if (worded := sum(bool(s.segment.strip()) for s in self.steps)) < k:
            return f"{k} {'answers' if answered == k else 'decompositions'} for {worded} sub-tasks"
        if 0 < answered < k:
            return f"{answered} answers for {k} sub-tasks"
        for name, values in (("scaffolding", self.scaffolds), ("scaffolding_verification", self.checks)):
            if values and len(values) != k - 1:
                return f"{len(values)} {name} for {k} sub-tasks; there are K-1"
        if self.scaffolds and not all(isinstance(s, str) and s.strip() for s in self.scaffolds):
            return "an empty scaffold"
        return None


OF_CASE = "of_case"
"""Field of a record with what a case says beside its question: aliases, options, evidence, cluster, ..."""
_REPLACED = ("id", "question", "answer", "worked", "benchmark", "depth", "depth_bin", "parts", "meta")
_OF_PART = ("answer_type", "aliases", "options")


def asked_in(case: Case) -> dict[str, Any]:
    """What a case says beside its question, to be kept with the item made of it; ``format`` is the one it recommends.

    Its parts are there with how their answers are compared.
    """
    raw = json.loads(json.dumps(case_to_dict(case)))  # as the file of records gives it back
    said = {k: v for k, v in raw.items() if k not in _REPLACED}
    said |= {"meta": {"crossed": list(case.crossed)}} if case.crossed else {}
    said |= {"parts": [{k: part[k] for k in _OF_PART if k in part} for part in raw["parts"]]} if case.parts else {}
    return {OF_CASE: said, **({"format": str(case.meta["format"])} if case.meta.get("format") else {})}


def read_items(path: str | Path) -> list[StadItem]:
    """Read records of any stage. Raises ``InputError`` naming file, line and field for what has another shape."""
    stem = Path(path).stem.removesuffix("_final")
    return [item_from_record(row, f"{stem}-{n:04d}", where) for n, (where, row) in enumerate(objects(path, WHAT))]


def item_from_record(row: Mapping[str, Any], name: str, where: str) -> StadItem:
    """One record as an item; ``name`` is its id unless it carries one."""
    question = row.get("question")
    gold = row.get("answer")
    if not isinstance(question, str) or not question.strip() or gold is None or gold != gold:  # NaN
        raise InputError(f"{where}: fields question and answer are needed; give {WHAT}")
    segments, answers = _list(row, "sub-task", where), _list(row, "sub-task-answer", where)
    tasks, skills = _list(row, "decompositions", where), _list(row, "skill", where)
    steps = []
    # The longest of the lists: a length that differs is a problem to be seen, not to be cut off.
    for i in range(max(len(segments), len(answers), len(tasks))):
        segment = _entry(segments, i, "segment")
        answer = answers[i] if i < len(answers) else None
        result = answer if isinstance(answer, dict) else {"answer": answer}
        answer = result.get("answer")
        text = None if answer is None else typed_answer(answer)[0]
        task, skill = _entry(tasks, i, "question"), _entry(skills, i, "skill")
        steps.append(StadStep(str(segment or ""), text, result.get("explanation"), task, skill))
    checks = [_check(c) for c in _list(row, "scaffolding_verification", where)]
    return StadItem(
        id=id_field(row, name),
        question=question,
        gold=gold,
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
    case = item.case
    extra = {**case.meta, **{k: v for k, v in item.extra.items() if v is not item.said}}
    if item.problem or not item.steps or item.steps[0].answer is None:
        problem = item.problem or "no answered sub-tasks"
        return replace(case, meta={**extra, "problem": problem})
    of_parts: Sequence[Mapping[str, Any]] = item.said.get("parts", ())
    if not isinstance(of_parts, list | tuple) or not all(isinstance(own, Mapping) for own in of_parts):
        raise InputError(f"item {item.id!r}, {OF_CASE}: field 'parts' is {of_parts!r:.60}; give a list of objects")
    known = of_parts if len(of_parts) == len(item.steps) else [*[{}] * (len(item.steps) - 1), _last(item)]
    parts = tuple(_part(step, own, item.id) for step, own in zip(item.steps, known, strict=True))
    meta = {**extra, "steps": [s.segment for s in item.steps]}
    if item.scaffolds:
        levels = range(1, len(item.steps))
        meta["scaffolds"] = list(item.scaffolds)
        meta["placeholders"] = [placeholder_text(item, level) for level in levels]
    if item.teacher:
        meta["teacher"] = item.teacher
    return replace(case, depth=len(item.steps), parts=parts, meta=meta)


def _last(item: StadItem) -> Mapping[str, Any]:
    """How the answer of the last step is compared, which is that of the whole: as the case says, where it says so."""
    case, answer = item.case, item.steps[-1].answer or ""
    if item.said and case.answer_type == "text":
        return {"answer_type": "text", "aliases": others(answer, (case.answer, *case.aliases))}
    if case.answer_type == "choice" and letter_of(answer, case.options) is not None:
        return {"answer_type": "choice", "options": dict(case.options)}
    return {}


def _part(step: StadStep, own: Mapping[str, Any], item: str) -> Part:
    """A step as a part; ``own`` is how its answer is compared, where the case that the item was made of says so."""
    answer, kind = typed_answer(step.answer)
    kind, aliases = own.get("answer_type", kind), tuple(own.get("aliases", ()))
    options = parse(own["options"], f"item {item!r}, {OF_CASE}") if "options" in own else ()
    return Part(step.task or step.segment, answer, "step", kind, aliases, step.explanation or None, skill=step.skill,
                options=options)  # fmt: skip


def placeholder_text(item: StadItem, level: int) -> str:
    """The scaffold at ``level`` with the injected values blanked: what its wording alone gives away (App. E).

    The rewrite keeps its words if every value can be found in it, apart from those of the original question; otherwise
    the steps, with their values blanked, are put before the question.
    """
    text = rewrite = item.scaffolds[level - 1] or ""
    for _, answer in sorted(item.solved(level), key=lambda s: -len(s[1])):
        pattern = re.compile(rf"(?<![\w.])(?<!\d,){re.escape(answer)}(?!\w|[.,]\d)", re.IGNORECASE)
        if not answer or not pattern.search(rewrite) or pattern.search(item.question):
            return prompts.placeholder(item.question, item.solved(level))
        text = pattern.sub(prompts.PLACEHOLDER, text)
    return text


@benchmark("stad")
def read_stad(path: str | Path) -> list[Case]:
    """Read released records as cases (see ``case_from_item``)."""
    return [case_from_item(item) for item in read_items(path)]
