"""Cases as a model would have answered them and what opening it would have shown, told by tests of the diagnosis."""

from __future__ import annotations

from dataclasses import replace

from composcope.evaluation.asks import Ask, Response
from composcope.evaluation.benchmarks.catalog import load
from composcope.evaluation.cases import Case
from composcope.evaluation.engines.local import LocalEngine
from composcope.evaluation.graded import Graded
from composcope.evaluation.grading import grade, lists
from composcope.experiments.diagnosis import asks, places, rule_inside, variants
from composcope.experiments.diagnosis.evidence import Behaviour, Found, Inside, Tally
from composcope.experiments.organism import benchmarks, world

MIXED = benchmarks.mixed(12)
CASES = benchmarks.mixed(40)
CHOICES = benchmarks.choices(24)
OTHERS = asks.others([variants.Variant(c, "original") for c in CHOICES])
WORLD = load("world:capital-currency,capital-continent")
OSLO = next(c for c in WORLD if c.id == "capital-currency-oslo")


def heard(case: Case, texts: dict[str, str], finish: str = "stop") -> asks.Heard:
    """A case whose parts are right and whose other roles were answered with these texts."""
    told = {f"part:{i}": p.answer for i, p in enumerate(case.parts)} | texts
    questions = asks.Questions("x", "plain", None, OTHERS)
    made = {a.role: a for a in (*questions.asks(case, {}), *questions._forced(case))}
    rows, responses = {}, {}
    for role, text in told.items():
        ask: Ask = made[role]
        found = grade(ask.begun + text, finish, ask.gold, ask.answer_type, ask.aliases, question=ask.question)
        if found.outcome == "invalid" and role == "whole":  # as in evaluation
            found = lists.stopped_at_a_part(text, [(p.answer, *p.aliases) for p in case.parts]) or found
        rows[role] = Graded.of(case, ask, found, ask_id=role, model=None, run=None)
        responses[role] = Response(role, text, finish, 1, 1)  # type: ignore[arg-type]
    return asks.Heard(variants.Variant(case, "original"), rows, made, responses)


def wrote(case: Case, *operands: str) -> dict[str, str]:
    """Answers of a model that writes these operands, whatever is forced, and calculates with what it sees."""
    gold = asks.working(case.worked)
    texts = {"whole": f" {operands[0]} {case.operation} {operands[1]} is 999"}
    texts["whole:given:1"] = f" {case.operation} {operands[1]} is 999"
    texts["whole:given:2"] = f" is {gold.values[2]}"
    return texts


def answered(followed: str) -> list[asks.Heard]:
    """A case and its variants, answered by a shortcut, a wrong operation, or one wrong operand."""
    group = []
    for v in variants.of(MIXED[2], []):
        case = v.case
        tags, things = world.world().tags, case.meta["things"]
        gold = asks.working(case.worked).values
        last = str(tags[things[-1]])
        ends = [str(pick(tags[thing] for thing in things)) for pick in (min, max)]
        wrong = next(str(t) for t in world.TAGS if str(t) not in (*gold, last, *ends))
        texts = {
            "last-item": lambda c=case, x=last: wrote(c, x, x),
            "operation": lambda c=case, g=gold: (
                wrote(c, g[0], g[1]) | {"whole:given:1": f" plus {g[1]} is 999", "whole:given:2": " is 999"}
            ),
            "nothing": lambda c=case, g=gold, w=wrong: wrote(c, w, g[1]),
        }[followed]()
        group.append(replace(heard(case, texts), variant=v))
    return group


def decisions(engine: LocalEngine, case: Case, operand: int) -> tuple[places.Decision, places.Decision]:
    made = {a.role: a for a in asks.Questions("x", "plain").asks(case, {})}
    whole = places.of_whole(engine, made["whole"], case, operand)
    part = places.of_part(engine, made["part:1"], case, operand)
    assert whole is not None and part is not None
    return whole, part


def found(own: int, noise: int = 0, foreign: int = 4, cell: str = "decision:1", pool: int = 30) -> Found:
    tallies = Tally(own, 4), Tally(noise, 4), Tally(foreign, 4), Tally(pool, 40)
    return Found(cell, *tallies, noise_pool=Tally(noise, 4), values=Tally(9, 12))


SHOWN = found(4)
DRAWN = Behaviour(True, 4, 4, from_case=Tally(8, 8))


def cause_of(opened: Inside, seen: Behaviour = DRAWN) -> str | None:
    verdict = rule_inside.from_inside(opened, seen)
    return verdict and verdict[0]
