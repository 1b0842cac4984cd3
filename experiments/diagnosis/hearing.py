"""What the model is asked for a diagnosis: failing cases with their variants, and matched cases that succeed.

    heard, successes, asked = hear(data, target, with_variants(data, failing, others, 8, seed, reporter), reporter)

Answers that are in the journal of an earlier diagnosis are taken from there.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from ...evaluation import pipeline
from ...evaluation.asks import Grade
from ...evaluation.case import Case
from ...evaluation.grading import grade
from ...evaluation.journal import Journal
from ...evaluation.protocols.reasoning_gap import ReasoningGap, pair_question
from ..console.printing import Reporter
from ..evaluating.ask_plan import ask_options, make_protocol
from ..evaluating.evaluate import bars
from ..models.target import Target
from ..run import write_lines
from ..run.diagnosis import FOLDER
from ..run.reader import RunData
from . import asks, behaviour, variants
from .asks import Heard

OF_A_FAMILY = 8
"""Cases that succeed, of each failing one's family."""


def with_variants(
    data: RunData, failing: Sequence[Case], others: Sequence[Case], at_least: int, seed: int, reporter: Reporter
) -> dict[str, list[variants.Variant]]:
    """The failing cases, each followed by its variants; if they are too few, ``others`` that fail, for comparison."""
    known = list(data.cases.values())
    company = others[: max(0, at_least - len(failing))]
    if company:
        more = f"{len(company)} other failing case{'s' * (len(company) > 1)}"
        reporter.say(f"{data.name}: also asking {more} for comparison")
    return {case.id: variants.of(case, known, seed, put=partial(_put, data)) for case in (*failing, *company)}


def _put(data: RunData, case: Case) -> Case:
    """A case with the question that the run puts: the reasoning gap puts Q2 with X behind its Q1."""
    return replace(case, question=pair_question(case)) if data.protocol == ReasoningGap.name else case


def hear(
    data: RunData, target: Target, groups: Mapping[str, Sequence[variants.Variant]], reporter: Reporter
) -> tuple[dict[str, list[Heard]], list[Heard], list[Heard]]:
    """The answers of each group; those of matched cases that succeed again; and all that were asked, but these."""
    everyone = [v for group in groups.values() for v in group]
    write_lines(data.path / FOLDER / "variants.jsonl", map(variants.as_row, everyone))
    right = [variants.Variant(case, "original") for case in matched(data, groups)]
    answered = _ask(data, target, [*everyone, *right], reporter)
    successes = [one for one in answered.values() if behaviour.succeeds(one)]
    for variant in right:
        del answered[variant.case.id]
    return {id: [answered[v.case.id] for v in group] for id, group in groups.items()}, successes, [*answered.values()]


def _ask(data: RunData, target: Target, everyone: Sequence[variants.Variant], reporter: Reporter) -> dict[str, Heard]:
    """Put all questions, and grade the answers as the run does; those in the journal of an earlier diagnosis are not
    asked for again."""
    assert data.config is not None, "a run that was imported has been refused"
    how = replace(ask_options(data.config), prompting=target.prompting)
    protocol = asks.questions(make_protocol(how), asks.others(everyone))
    with Journal(data.path / FOLDER / "journal") as journal, bars(reporter) as progress:
        for warning in journal.warnings:
            reporter.say(f"{data.name}: {warning}")
        found = pipeline.evaluate(
            [v.case for v in everyone], protocol, target.engine, journal, progress=progress,
            grade=_as_in_run(data),
        )  # fmt: skip
    return asks.heard(everyone, found)


def _as_in_run(data: RunData) -> Callable[..., Grade]:
    """Grades as the run did. What its judge said of an answer holds where the same answer comes again."""
    rules = partial(grade, compat=data.counted_now().compat)
    judged = {}
    for row in data.graded:
        if row.match == "judge" and row.ask in data.asks and row.ask in data.responses:
            ask = data.asks[row.ask]
            said = Grade(row.outcome, row.answer, row.match, row.reason)
            judged.setdefault((ask.begun + data.responses[row.ask].text, row.gold, ask.question), said)

    def graded(text: str, finish: str, gold: str, answer_type: str, **asked: Any) -> Grade:
        return judged.get((text, gold, asked.get("question"))) or rules(text, finish, gold, answer_type, **asked)

    return graded


def matched(data: RunData, failing: Iterable[str]) -> list[Case]:
    """Cases of the failing ones' families that succeed in the run: the control for a part behind the whole's context.

    Only cases with a part that can be asked in this way are useful.
    """
    left = Counter({data.cases[id].family: OF_A_FAMILY for id in failing})
    found = []
    for id, case in data.cases.items():
        roles = ["whole", *(f"part:{i}" for i in range(len(case.parts)))]
        right = all(data.outcomes.get(id, {}).get(role) == "correct" for role in roles)
        put = _put(data, case) if right else case
        if right and left[case.family] and any(asks.behind_context(put, i) for i in range(len(case.parts))):
            left[case.family] -= 1
            found.append(put)
    return found


def heard_in_run(data: RunData, failing: Sequence[Case], asked: Iterable[str]) -> dict[str, list[Heard]]:
    """The run's failing cases that are not ``asked`` again, with the run's own answers: more of them to tell a shortcut
    from luck.

    Answers that were drawn at a temperature are left out, as the questions of a diagnosis get the likeliest ones.
    """
    if data.config is None or data.config.asking.temperature:
        return {}
    left = [variants.Variant(_put(data, case), "original") for case in failing if case.id not in {*asked}]
    return {id: [one] for id, one in asks.heard(left, data).items() if one.fails}
