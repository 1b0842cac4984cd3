"""Scaffolded test cases from questions with gold answers (STaD, An et al. 2026, section 2.1).

    generate(items_from_cases(cases), Roles([teacher]), journal=journal).items

Stages: decompose -> answer the steps -> compare the last answer with the gold answer -> rewrite the question with the
first 1..K-1 steps solved -> verify that the teacher solves every rewrite -> write the steps as stand-alone questions.
Every item that is dropped is returned with its stage and reason. A reply that cannot be read is requested again with
another seed; it never counts as a wrong answer. Items that arrive with some stages filled (human decompositions, files
of an earlier run) only pass through the others. With a journal, generation can stop and continue at any point.

``from_cases`` makes items without a model, from step questions that people wrote (GSM8K socratic). Its rewrites put the
solved steps before the question, and its stand-alone tasks put the question before the step, because human step
questions rely on it. It checks that every step has a value and that the last value is the gold answer.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeVar

from ...errors import InputError
from .. import prompts
from ..asks import Ask, Response
from ..benchmarks.stad import Check, StadItem, StadStep, asked_in
from ..case import Case
from ..engines.base import Engine, ask_all
from ..gold import same_last_answer
from ..grading.grade import grade
from ..journal import Journal
from ..judging import JudgeVerdict, agree
from . import scaffold_teacher as parsing
from . import scaffold_teacher as requests

T = TypeVar("T")
STAGES = ("decompose", "answer", "consistency", "scaffold", "verify", "stand-alone")


@dataclass(frozen=True)
class Roles:
    """The engines by task; one engine may serve several tasks."""

    teachers: Sequence[Engine]
    """Decompose, answer, rewrite and verify. With several, see ``sharing``."""
    judge: Engine | None = None
    """Compares answers that the rules do not find equal (verification judge); without one the rules decide."""
    sharing: Literal["fallback", "rotate"] = "fallback"
    """``fallback``: an item that one teacher loses goes to the next. ``rotate``: items are dealt out in turn."""

    def __post_init__(self) -> None:
        if not self.teachers or self.sharing not in ("fallback", "rotate"):
            raise InputError(f"{len(self.teachers)} teachers, sharing {self.sharing!r}; give one, fallback or rotate")


@dataclass(frozen=True)
class Settings:
    """How the teacher is asked."""

    temperature: float = 0.2
    """For everything the teacher writes; its verification answers and the judge are greedy."""
    max_tokens: int = 2000
    """One budget for all requests."""
    max_steps: int = 6
    """Asked for, and enforced."""
    attempts: int = 3
    """How often a reply that cannot be read is asked for, each time with another seed."""
    seed: int = 0

    def __post_init__(self) -> None:
        if self.max_steps < 2 or self.attempts < 1:
            raise InputError(f"max_steps is {self.max_steps}, attempts {self.attempts}; give at least 2 and 1")


@dataclass(frozen=True)
class GeneratedScaffolds:
    """The results of generation."""

    items: list[StadItem]
    """Verified items, in the order they came in."""
    dropped: list[dict[str, Any]]
    """One record per item and teacher that lost it: ``id``, ``teacher``, ``stage``, ``reason``."""
    report: dict[str, Any] = field(default_factory=dict)
    """Counts: items in and kept, K, drops by stage and reason, replies that could not be read by stage."""


@dataclass
class _Run:
    """The state of one teacher's generation."""

    teacher: Engine
    judge: Engine | None
    settings: Settings
    journal: Journal | None
    dropped: list[dict[str, Any]] = field(default_factory=list)
    unread: Counter[str] = field(default_factory=Counter)
    """Replies that could not be read, by stage; most were asked for again."""

    @property
    def name(self) -> str:
        """The teacher's name in files: its model, or what else identifies it."""
        return self.teacher.identity.get("model") or "+".join(self.teacher.identity.values())

    def drop(self, item: StadItem, stage: str, reason: str) -> None:
        self.dropped.append({"id": item.id, "teacher": self.name, "stage": stage, "reason": reason})


def items_from_cases(cases: Iterable[Case]) -> list[StadItem]:
    """Questions to decompose, from any benchmark."""
    return [StadItem(c.id, c.question, c.answer, extra=asked_in(replace(c, parts=()))) for c in cases]


def generate(
    items: Sequence[StadItem], roles: Roles, settings: Settings | None = None, journal: Journal | None = None
) -> GeneratedScaffolds:
    """Take ``items`` through all stages that they have not been through.

    Keeps the items whose every rewrite the teacher answers with the gold answer. Raises ``InputError`` for items
    with equal ids or with stages that do not fit together.
    """
    settings = settings or Settings()
    for item in items:
        if item.problem:
            raise InputError(f"item {item.id!r}: {item.problem}; leave these stages out to have them generated")
    if twice := [i for i, n in Counter(i.id for i in items).items() if n > 1]:
        raise InputError(f"item id {twice[0]!r} is used more than once; give each item its own id")
    runs = [_Run(t, roles.judge, settings, journal) for t in roles.teachers]
    kept: dict[str, StadItem] = {}
    for n, run in enumerate(runs):
        rotated = [item for i, item in enumerate(items) if i % len(runs) == n]
        mine = rotated if roles.sharing == "rotate" else [i for i in items if i.id not in kept]
        for stage in (_decompose, _answer, _consistent, _scaffold, _verify, _stand_alone):
            mine = stage(run, mine)
        kept |= {i.id: i for i in mine}
    in_order = [kept[i.id] for i in items if i.id in kept]
    dropped = [d for run in runs for d in run.dropped]
    return GeneratedScaffolds(in_order, dropped, _report(items, in_order, dropped, runs))


def _report(
    items: Sequence[StadItem], kept: Sequence[StadItem], dropped: Sequence[dict[str, Any]], runs: Sequence[_Run]
) -> dict[str, Any]:
    k = [len(i.steps) for i in kept]
    return {
        "items": len(items),
        "kept": len(kept),
        "mean_k": sum(k) / len(k) if k else None,
        "k": {str(n): c for n, c in sorted(Counter(k).items())},
        "kept_by_teacher": dict(Counter(i.teacher for i in kept)),
        "dropped": {s: n for s in STAGES if (n := sum(d["stage"] == s for d in dropped))},
        "reasons": dict(Counter(f"{d['stage']}: {d['reason'].split(':')[0]}" for d in dropped)),
        "unread": dict(sum((r.unread for r in runs), Counter())),
    }


def _request(
    run: _Run, stage: str, wanted: dict[tuple[str, str], str], read: Callable[[tuple[str, str], str], parsing.Parsed[T]]
) -> dict[tuple[str, str], parsing.Parsed[T]]:
    """Replies to requests by (item id, role), read; what cannot be read is asked for again up to the limit."""
    done: dict[tuple[str, str], parsing.Parsed[T]] = {}
    for attempt in range(run.settings.attempts):
        open_ = [key for key in wanted if key not in done or done[key].value is None]
        asks = [_ask(run, key, wanted[key], attempt) for key in open_]
        for key, response in zip(open_, ask_all(run.teacher, asks, run.journal), strict=True):
            done[key] = _read(key, response, read)
            run.unread[stage] += done[key].value is None
    return done


def _ask(run: _Run, key: tuple[str, str], prompt: str, attempt: int) -> Ask:
    s = run.settings
    seed = s.seed + attempt
    return Ask(*key, prompt, "", "text", max_tokens=s.max_tokens, temperature=s.temperature, seed=seed)


def _read(
    key: tuple[str, str], response: Response, read: Callable[[tuple[str, str], str], parsing.Parsed[T]]
) -> parsing.Parsed[T]:
    if response.finish_reason == "error":
        return parsing.Parsed(None, f"error: {response.error}")
    result = read(key, response.text)
    if response.finish_reason == "length" and not isinstance(result.value, list):  # only a list shows where it ends
        return parsing.Parsed(None, f"truncated: {result.problem or 'the text has no end'}")
    return result


def _decompose(run: _Run, items: list[StadItem]) -> list[StadItem]:
    wanted = {
        (i.id, "decompose"): requests.steps_request(i.asked(i.question), run.settings.max_steps)
        for i in items
        if not i.steps
    }
    replies = _request(run, "decompose", wanted, lambda _, text: parsing.steps(text))
    kept = []
    for item in items:
        reply = replies.get((item.id, "decompose"))
        if reply is not None and reply.value is None:
            run.drop(item, "decompose", f"unread: {reply.problem}")
            continue
        if reply is not None and reply.value is not None:
            item = replace(item, steps=tuple(StadStep(s) for s in reply.value), teacher=run.name)
        if len(item.steps) < 2:
            run.drop(item, "decompose", "single-step")
        elif reply is not None and len(item.steps) > run.settings.max_steps:
            run.drop(item, "decompose", f"too-many-steps: {len(item.steps)}")
        else:
            kept.append(item)
    return kept


def _answer(run: _Run, items: list[StadItem]) -> list[StadItem]:
    open_ = {i.id: i for i in items if any(s.answer is None for s in i.steps)}
    wanted = {
        (i.id, "answer"): requests.answers_request(i.asked(i.question), [s.segment for s in i.steps])
        for i in open_.values()
    }
    replies = _request(run, "answer", wanted, lambda key, text: parsing.answers(text, len(open_[key[0]].steps)))
    kept = []
    for item in items:
        reply = replies.get((item.id, "answer"))
        if reply is None:
            kept.append(item)
        elif reply.value is None:
            run.drop(item, "answer", f"unread: {reply.problem}")
        else:
            steps = [replace(s, explanation=e, answer=a) for s, (e, a) in zip(item.steps, reply.value, strict=True)]
            kept.append(replace(item, steps=tuple(steps)))
    return kept


def _consistent(run: _Run, items: list[StadItem]) -> list[StadItem]:
    """Items whose last intermediate answer is the gold answer (the consistency function of section 2.1)."""
    last = [(_about(i, "consistency"), Response("", i.steps[-1].answer or "", "stop", 0, 0)) for i in items]
    kept = []
    for item, verdict in zip(items, agree(last, run.judge, run.journal), strict=True):
        if verdict.right:
            kept.append(item)
        else:
            reason = "unjudged" if verdict.right is None else "last-answer-differs"
            run.drop(item, "consistency", f"{reason}: {item.steps[-1].answer!r} for {item.answer!r}")
    return kept


def _scaffold(run: _Run, items: list[StadItem]) -> list[StadItem]:
    wanted = {
        (i.id, f"scaffold:{j}"): requests.rewrite_request(i.question, i.solved(j))
        for i in items
        if not i.scaffolds
        for j in range(1, len(i.steps))
    }
    replies = _request(run, "scaffold", wanted, lambda _, text: parsing.marked(text, requests.REWRITTEN))
    kept = []
    for item in items:
        mine = [replies[item.id, f"scaffold:{j}"] for j in range(1, len(item.steps)) if not item.scaffolds]
        if problem := next((r.problem for r in mine if r.value is None), None):
            run.drop(item, "scaffold", f"unread: {problem}")
        else:
            kept.append(replace(item, scaffolds=item.scaffolds or tuple(r.value for r in mine)))
    return kept


def _verify(run: _Run, items: list[StadItem]) -> list[StadItem]:
    """Items whose every rewrite the teacher answers right; greedy, and in the words that targets are asked with."""
    levels = [(i, j) for i in items if not i.checks for j in range(1, len(i.steps))]
    wanted = [(i, f"verify:{j}", i.asked(i.scaffolds[j - 1] or "")) for i, j in levels]
    checks: dict[str, list[Check]] = {}
    for (item, _), (response, verdict) in zip(
        levels, solved(run.teacher, wanted, run.judge, run.journal, run.settings.max_tokens), strict=True
    ):
        checks.setdefault(item.id, []).append(Check(response.text, verdict.right, verdict.why))
    kept = []
    for item in (replace(i, checks=tuple(checks.get(i.id, i.checks))) for i in items):
        wrong = [j for j, c in enumerate(item.checks, 1) if c is None or not c.verdict]
        if not wrong:
            kept.append(item)
        else:
            unjudged = all((c := item.checks[j - 1]) is None or c.verdict is None for j in wrong)
            run.drop(item, "verify", f"{'unjudged' if unjudged else 'not-solved'}: at levels {wrong}")
    return kept


def solved(
    engine: Engine, wanted: Sequence[tuple[StadItem, str, str]], judge: Engine | None, journal: Journal | None,
    max_tokens: int,
) -> list[tuple[Response, JudgeVerdict]]:  # fmt: skip
    """What an engine answers to questions about items, after thinking step by step, and whether it is their answer.

    ``wanted``: item, role and question of each.
    """
    asks = [
        replace(_about(item, role), prompt=prompts.render(question, "cot"), format="cot", max_tokens=max_tokens)
        for item, role, question in wanted
    ]
    responses = ask_all(engine, asks, journal)
    return list(zip(responses, agree(list(zip(asks, responses, strict=True)), judge, journal), strict=True))


def _about(item: StadItem, role: str) -> Ask:
    """An ask, yet without a prompt, whose answer is compared with what the item's case accepts."""
    case, asked = item.case, item.asked(item.question)
    return Ask(
        item.id, role, "", case.answer, case.answer_type, aliases=case.aliases, options=case.options, question=asked
    )


def _stand_alone(run: _Run, items: list[StadItem]) -> list[StadItem]:
    wanted = {
        (i.id, f"stand-alone:{j}"): requests.task_request(i.question, i.solved(j - 1), step.segment)
        for i in items
        for j, step in enumerate(i.steps, 1)
        if step.task is None
    }
    replies = _request(run, "stand-alone", wanted, lambda _, text: parsing.marked(text, requests.TASK))
    kept = []
    for item in items:
        tasks = [s.task or replies[item.id, f"stand-alone:{j}"].value for j, s in enumerate(item.steps, 1)]
        if None in tasks:
            problem = replies[item.id, f"stand-alone:{tasks.index(None) + 1}"].problem
            run.drop(item, "stand-alone", f"unread: {problem}")
        else:
            steps = tuple(replace(s, task=t) for s, t in zip(item.steps, tasks, strict=True))
            kept.append(replace(item, steps=steps))
    return kept


TEACHER = "human"


def from_cases(cases: Sequence[Case]) -> tuple[list[StadItem], list[dict[str, Any]]]:
    """Scaffolded items from cases whose parts are human steps in order, and a record for each case left out."""
    items: list[StadItem] = []
    dropped: list[dict[str, Any]] = []
    for case in map(same_last_answer, cases):
        reason = _unusable(case)
        if reason is None:
            items.append(_item(case))
        else:
            dropped.append({"id": case.id, "teacher": TEACHER, "stage": "answer", "reason": reason})
    return items, dropped


def _unusable(case: Case) -> str | None:
    if not case.parts:
        return "step-without-value"
    if len(case.parts) < 2:
        return "single-step"
    last = case.parts[-1].answer
    if grade(last, "stop", case.answer, case.answer_type, case.aliases, options=case.options).outcome != "correct":
        return f"last-answer-differs: {last!r} for {case.answer!r}"
    return None


def _item(case: Case) -> StadItem:
    """The case with its own steps, and with rewrites and stand-alone tasks made by template."""
    steps = tuple(StadStep(p.question, p.answer, p.worked, skill=p.skill) for p in case.parts)
    item = StadItem(case.id, case.question, case.answer, steps, teacher=TEACHER, extra=asked_in(case))
    scaffolds = tuple(prompts.scaffold(item.question, item.solved(j)) for j in range(1, len(steps)))
    return replace(item, scaffolds=scaffolds, steps=tuple(replace(s, task=_task(item, j)) for j, s in enumerate(steps)))


def _task(item: StadItem, done: int) -> str:
    known = " ".join(f"Known: {q} {a}." for q, a in item.solved(done))
    context = f"Situation: {item.question}" + (f"\n{known}" if known else "")
    return f"{context}\nAnswer only this: {item.steps[done].segment}"
