"""The one loop of every evaluation: cases -> asks in rounds -> engine -> journal -> grades -> rows.

    evaluate(cases, get("double-gate"), engine, journal).graded

Identical asks (the probe of an atom that many cases share) are put once and graded for every case. Answers in the
journal are not requested again, so a stopped run continues where it stopped. The loop knows neither models nor metrics.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ..errors import InputError
from . import grading
from .asks import Ask, Grade, Response
from .case import Case
from .engines.base import Engine, with_thinking_open
from .graded import Graded
from .grading.lists import stopped_at_a_part
from .journal import Journal, ask_identity
from .judging import JudgedGrades, second_opinions
from .prompts import ABSTENTION
from .protocols.base import BARE, Protocol


@dataclass(frozen=True)
class Progress:
    """How far an evaluation is; later rounds are only known when earlier ones are graded."""

    round: int
    """From 1."""
    done: int
    """Different asks of this round that are answered, earlier runs included."""
    total: int
    """Different asks of this round."""


@dataclass(frozen=True)
class Evaluation:
    """What an evaluation found."""

    asks: dict[str, Ask]
    """By ask id; of asks that several cases share, the first."""
    responses: dict[str, Response]
    """By ask id."""
    graded: list[Graded]
    """One row for each case, role and repeat that was asked."""
    n_asked: int
    """Asks put to the engine in this run."""
    n_resumed: int
    """Asks answered from the journal."""
    stopped: str | None = None
    """The limit that stopped the evaluation early; None when it is complete."""
    judged: tuple[JudgedGrades, ...] = ()
    """What a judge said, round by round; () without one."""
    warnings: tuple[str, ...] = ()

    @property
    def n_invalid(self) -> int:
        """Rows without a judgement: they need another run or a look, and make the exit code non-zero."""
        return sum(row.outcome == "invalid" for row in self.graded)


@dataclass
class _State:
    journal: Journal
    engine: Engine
    progress: Callable[[Progress], None]
    max_asks: int | None
    asks: dict[str, Ask] = field(default_factory=dict)
    responses: dict[str, Response] = field(default_factory=dict)
    n_asked: int = 0
    n_resumed: int = 0
    round: int = 0
    stopped: str | None = None


def evaluate(
    cases: Sequence[Case],
    protocol: Protocol,
    engine: Engine,
    journal: Journal,
    grade: Callable[..., Grade] | None = None,
    progress: Callable[[Progress], None] | None = None,
    max_asks: int | None = None,
    model: str | None = None,
    run: str | None = None,
    judge: Engine | None = None,
) -> Evaluation:
    """Ask and grade everything that ``protocol`` needs about ``cases``.

    ``grade`` is ``grading.grade`` unless given. ``max_asks`` stops after that many new asks; the same call later
    continues. ``model`` and ``run`` are written into every row. A ``judge`` is asked about what the rules leave open,
    and about answers in words that they do not accept (see ``judging``).

    Raises ``InputError`` for a protocol that asks one thing twice in different words, and whatever the engine or the
    journal raise; all that was answered before is then in the journal.
    """
    grader = _Grader(grade or grading.grade)
    journal.begin(engine.identity, engine.provenance)
    state = _State(journal, engine, progress or (lambda _: None), max_asks)
    grades: dict[str, dict[str, Grade]] = {case.id: {} for case in cases}
    rows: list[Graded] = []
    asked: set[tuple[str, str, int]] = set()
    judged: list[JudgedGrades] = []
    active = list(cases)
    while active and state.stopped is None:
        wanted = [(case, new) for case in active if (new := _new_asks(case, protocol, grades[case.id], asked))]
        keyed = [(case, ask, ask_identity(ask, engine.identity)) for case, new in wanted for ask in new]
        if keyed:
            unique: dict[str, Ask] = {}
            for _, ask, key in keyed:
                unique.setdefault(key, ask)
            _answer_round(state, unique)
        answered = [(case, ask, key) for case, ask, key in keyed if key in state.responses]
        found = [grader(case, ask, state.responses[key]) for case, ask, key in answered]
        if judge is not None and answered:
            given = [
                (as_judged(case.unknowable, ask), state.responses[key], g)
                for (case, ask, key), g in zip(answered, found, strict=True)
            ]
            judged.append(second_opinions(given, judge, journal))
            found = judged[-1].grades
        for (case, ask, key), settled in zip(answered, found, strict=True):
            grades[case.id].setdefault(ask.role, settled)
            rows.append(Graded.of(case, ask, settled, ask_id=key, model=model, run=run))
        active = [case for case, _ in wanted]
    return Evaluation(
        asks=state.asks,
        responses=state.responses,
        graded=rows,
        n_asked=state.n_asked,
        n_resumed=state.n_resumed,
        stopped=state.stopped,
        judged=tuple(judged),
        warnings=tuple(journal.warnings),
    )


def _new_asks(case: Case, protocol: Protocol, grades: dict[str, Grade], asked: set[tuple[str, str, int]]) -> list[Ask]:
    new: dict[tuple[str, str, int], Ask] = {}
    for ask in protocol.asks(case, dict(grades)):
        key = (case.id, ask.role, ask.repeat)
        if key in asked:
            continue
        if new.get(key, ask) != ask:
            raise InputError(f"protocol {protocol.name}: case {case.id!r} has two asks in role {ask.role!r}; keep one")
        new[key] = ask
    asked.update(new)
    return list(new.values())


def _answer_round(state: _State, wanted: dict[str, Ask]) -> None:
    """Fill ``state.responses`` for the asks of one round, from the journal or the engine."""
    state.round += 1
    known = {key: kept for key in wanted if (kept := state.responses.get(key) or state.journal.get(key)) is not None}
    state.n_resumed += sum(key not in state.responses for key in known)
    state.asks.update((key, ask) for key, ask in wanted.items() if key not in state.asks)
    state.responses.update(known)
    # Earlier failures come last: requests that the server refuses must not delay those that it answers.
    failed = state.journal.contents.failures
    todo = [key for key in wanted if key not in known]
    pending = {key: wanted[key] for key in sorted(todo, key=failed.__contains__)}
    allowed = _within_limit(state, pending)
    state.progress(Progress(state.round, len(known), len(wanted)))
    for n, _ in enumerate(_ask(state, allowed), 1):
        state.progress(Progress(state.round, len(known) + n, len(wanted)))


def _within_limit(state: _State, pending: dict[str, Ask]) -> dict[str, Ask]:
    if state.max_asks is None or state.n_asked + len(pending) <= state.max_asks:
        return pending
    state.stopped = f"max_asks={state.max_asks}"
    return dict(list(pending.items())[: state.max_asks - state.n_asked])


def _ask(state: _State, pending: dict[str, Ask]) -> Iterable[Response]:
    if not pending:
        return
    identity = state.engine.identity
    missing = set(pending)
    for ask, response in state.engine.answer(list(pending.values())):
        key = ask_identity(ask, identity)
        response = response if response.ask == key else replace(response, ask=key)
        state.journal.record(key, ask, response, identity)
        state.responses[key] = response
        state.n_asked += 1
        missing.discard(key)
        yield response
    if missing:
        raise RuntimeError(
            f"{type(state.engine).__name__} left {len(missing)} of {len(pending)} asks without a response"
        )


_WHOLE = re.compile(rf"(?:{BARE})?(?:whole(?::.+)?|self-ask)", re.DOTALL)
"""Roles that ask the whole, in whatever words."""
_GRADED_BY = ("aliases", "format", "options", "question")
"""What a grade depends on besides answer, gold and type; arguments of ``grading.grade`` by these names."""


def nobody_knows(unknowable: bool, role: str) -> bool:
    """Whether abstaining is right in a role of an ``unknowable`` case: where it asks the whole and reveals no steps."""
    return unknowable and _WHOLE.fullmatch(role) is not None


def as_judged(unknowable: bool, ask: Ask) -> Ask:
    """The ask with the right answer that a judge, or a person, compares with."""
    return replace(ask, gold=ABSTENTION, aliases=()) if nobody_knows(unknowable, ask.role) else ask


class _Grader:
    """Grades every distinct answer and question once: many cases share an atom."""

    def __init__(self, grade: Callable[..., Grade]) -> None:
        self.grade = grade
        self.known: dict[tuple[Any, ...], Grade] = {}

    def __call__(self, case: Case, ask: Ask, response: Response) -> Grade:
        if response.finish_reason == "error":
            # An infrastructure failure is not a wrong answer.
            return Grade("invalid", None, None, f"error: {response.error}")
        asked = {name: getattr(ask, name) for name in _GRADED_BY}
        asked["unknowable"] = nobody_knows(case.unknowable, ask.role)
        key = (response.ask, ask.begun, ask.gold, ask.answer_type, *asked.values())
        if key not in self.known:
            text = ask.begun + with_thinking_open(ask, response)
            try:
                self.known[key] = self.grade(text, response.finish_reason, ask.gold, ask.answer_type, **asked)
            except InputError as e:  # of a gold answer in the case's meta, which no file check knows
                raise InputError(f"case {case.id!r}, role {ask.role!r}: {e}") from e
        found = self.known[key]
        if found.reason == "no-answer" and response.finish_reason == "stop" and _WHOLE.fullmatch(ask.role):
            return stopped_at_a_part(response.text, [(p.answer, *p.aliases) for p in case.parts]) or found
        return found
