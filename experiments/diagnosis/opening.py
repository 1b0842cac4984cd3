"""Opens the model on cases that their answers do not settle: picks donors, measures, and returns the evidence."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from ...files import text_hash
from ..console.printing import Reporter
from ..models.target import Target
from ..run import read_lines
from . import places
from .asks import Heard, operands
from .behaviour import wrong_operands
from .evidence import Inside
from .inside import DONORS, Setting, States, measure
from .places import Decision
from .readings import Held, read
from .thresholds import MANY_OF_A_GROUP
from .weighing import Opened, weigh

KEPT = "inside.jsonl"
VERSION = 11
"""Version of the measurements: after a change they are made again."""
TRIED = 3
"""This many times the wanted number of donors are tried, because some do not give their own answer."""
Settings = Mapping[str, Setting]
"""For each id of a failing variant, its decision with its donors."""


Source = Callable[[Heard, int], str | None]
"""The words from which a shortcut takes the value of an operand, in a variant."""


def settings(
    target: Target,
    heard: Mapping[str, Sequence[Heard]],
    donors: Sequence[Heard],
    seed: int,
    *,
    result: bool = False,
    source: Source | None = None,
) -> Settings:
    """The decision of every failing variant. ``donors`` are all variants that answered; their last parts are put in.

    With ``result``, the decision is the result of a working whose operands are right.
    """
    made: dict[tuple[str, int, bool], Decision | None] = {}

    def part(one: Heard, operand: int, bare: bool) -> Decision | None:
        at = one.case.id, operand, bare
        if at not in made:
            ask = one.asks[f"part:{len(one.case.parts) - 1}"]
            made[at] = places.of_part(target.engine, ask, one.case, operand, bare=bare)
        return made[at]

    failing = [one for group in heard.values() for one in group if one.fails]
    decided = {one.case.id: operands(one.case) if result else next(iter(wrong_operands(one)), 0) for one in failing}
    found = {one.case.id: _setting(target, one, decided[one.case.id], donors, part, seed) for one in failing}
    if source is not None:
        for one in failing:
            setting, text = found[one.case.id], source(one, decided[one.case.id])
            if setting is not None and text is not None:
                copied = places.words(target.tokenizer, setting.whole, text)
                found[one.case.id] = replace(setting, source=copied)
    return {id: s for id, s in found.items() if s is not None}


def open_settled(
    target: Target,
    heard: Mapping[str, Sequence[Heard]],
    causes: Mapping[str, tuple[str, Source | None]],
    donors: Sequence[Heard],
    folder: Path,
    reporter: Reporter,
    seed: int,
) -> dict[str, Inside]:
    """What mends, inside the model, cases whose cause their answers settle.

    ``causes``: cause and source of each such case. Cases of one cause choose each other's layers.
    """
    out: dict[str, Inside] = {}
    for cause, source in dict.fromkeys(causes.values()):
        some = {id: heard[id] for id, settled in causes.items() if settled == (cause, source)}
        found = settings(target, some, donors, seed, result=cause == "wrong-operation", source=source)
        out |= open_cases(target, some, found, folder, reporter, seed, f"causes: inside the model, {cause}")
    return out


def open_cases(
    target: Target,
    heard: Mapping[str, Sequence[Heard]],
    found: Settings,
    folder: Path,
    reporter: Reporter,
    seed: int,
    what: str = "causes: inside the model",
    fewest: int = MANY_OF_A_GROUP,
) -> dict[str, Inside]:
    """The evidence from inside the model for every case; ``fewest`` as in ``weighing.halves``."""
    some = {id: [found[one.case.id] for one in group if one.case.id in found] for id, group in heard.items()}
    answers = sorted({d.gold for group in some.values() for s in group for d in (s.whole, *s.foreign)})
    lm = target.open_model()
    known = {row["inputs"]: row for row in _kept(folder / KEPT, reporter)}
    groups: dict[str, list[Opened]] = {id: [] for id in heard}
    worked = {one.case.id: one.case.worked or one.case.answer for group in heard.values() for one in group}
    held: States = {}
    with reporter.bar(what, sum(map(len, some.values()))) as advance, (folder / KEPT).open("a") as kept:
        for id, group in some.items():
            for one in group:
                setting = replace(one, answers=answers)
                inputs = _inputs(target, setting, seed)
                if inputs not in known:
                    outcomes = measure(lm, setting, seed, held)
                    known[inputs] = {"inputs": inputs, "variant": one.variant, "outcomes": outcomes}
                    kept.write(json.dumps({"schema": 1, **known[inputs]}) + "\n")
                    kept.flush()
                if known[inputs]["outcomes"] is not None:
                    outcomes = known[inputs]["outcomes"]
                    whole = one.whole
                    groups[id].append(Opened(outcomes, one.operand, worked[one.variant], whole.value, whole.ids))
                advance(1)
    return weigh(groups, fewest)


def _kept(file: Path, reporter: Reporter) -> Sequence[Mapping[str, Any]]:
    """The measurements of earlier diagnoses. A last line that was not finished is cut off: its writer was stopped."""
    if not file.is_file():
        return ()
    content = file.read_bytes()
    if content[-1:] not in (b"", b"\n"):
        reporter.say(f"{file}: the last line was not finished; it is measured again")
        with file.open("r+b") as half:
            half.truncate(content.rfind(b"\n") + 1)
    return read_lines(file)


def readable(target: Target, heard: Mapping[str, Sequence[Heard]], found: Settings) -> dict[str, list[Held]]:
    """How well the entity can be read from the states of failing wholes, by case."""
    failing = {id: [one for one in group if one.case.id in found] for id, group in heard.items()}
    wholes = {id: [(one.case, found[one.case.id].whole) for one in group] for id, group in failing.items() if group}
    return read(target.open_model(), target.tokenizer, wholes)


def _setting(
    target: Target,
    one: Heard,
    operand: int,
    donors: Sequence[Heard],
    part: Callable[[Heard, int, bool], Decision | None],
    seed: int,
) -> Setting | None:
    """The decision of a failing variant with its donors; None if its decision or its own part's cannot be located."""
    if one.preamble:  # the working is not decided where the response begins
        return None
    bare = places.is_bare(one)
    whole = places.of_whole(target.engine, one.asks["whole"], one.case, operand, bare=bare)
    own = part(one, operand, bare)
    if whole is None or own is None:
        return None
    like = [d for d in donors if d.case.family == one.case.family and d.case.operation == one.case.operation]
    like = [d for d in like if d.right(f"part:{len(d.case.parts) - 1}")]
    random.Random(f"{seed}/donors/{one.case.id}").shuffle(like)
    foreign: list[Decision] = []
    same: list[Decision] = []
    for other in like:
        made, wanted = part(other, operand, bare), DONORS * TRIED
        if made is None or made.entity in (whole.entity, *(d.entity for d in (*foreign, *same))):
            continue
        if made.gold == whole.gold and made.value == whole.value and len(same) < TRIED:
            same.append(made)
        elif made.gold != whole.gold and len(foreign) < wanted:
            foreign.append(made)
        if len(foreign) == wanted and len(same) == TRIED:
            break
    return Setting(one.case.id, whole, own, foreign, same, operand=operand)


def _inputs(target: Target, setting: Setting, seed: int) -> str:
    decisions = [setting.whole, setting.own, *setting.foreign, *setting.same]
    facts = [[d.ids, d.gold, d.at] for d in decisions]
    made = VERSION, seed, facts, list(setting.answers), *([list(setting.source)] if setting.source else [])
    return text_hash([target.who, repr(made)])
