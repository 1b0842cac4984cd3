"""Open the model on the cases that their answers do not settle: donors, measurements kept between calls, evidence."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ...evaluation.cases import Case
from ...files import text_hash
from ..console.progress import Reporter
from ..models.target import Target
from ..run import read_lines
from . import places
from .asks import Heard
from .behaviour import wrong_operands
from .evidence import Inside
from .inside import DONORS, Setting, lens, measure
from .places import Decision
from .weighing import Opened, weigh

KEPT = "inside.jsonl"
VERSION = 4
"""Of what is measured: another one measures again."""
TRIED = 3
"""Times as many foreign donors are taken as are wanted: some do not give their own answer."""


def open_cases(
    target: Target,
    heard: Mapping[str, Sequence[Heard]],
    donors: Sequence[Heard],
    folder: Path,
    reporter: Reporter,
    seed: int,
) -> dict[str, Inside]:
    """The evidence from inside of every case; ``donors`` are all that answered, whose last parts are put in."""
    failing = {id: [one for one in group if one.fails] for id, group in heard.items()}
    settings = {one.case.id: _setting(target, one, donors, seed) for group in failing.values() for one in group}
    found = {id: s for id, s in settings.items() if s is not None}
    answers = sorted({d.gold for s in found.values() for d in (s.whole, *s.foreign)})
    names = _names(target.tokenizer, [d.entity for s in found.values() for d in (s.whole, *s.foreign)])
    lm = target.hooks()
    known = {row["inputs"]: row for row in read_lines(folder / KEPT)} if (folder / KEPT).is_file() else {}
    groups: dict[str, list[Opened]] = {id: [] for id in heard}
    with reporter.bar("opening", len(found)) as advance, (folder / KEPT).open("a", encoding="utf-8") as kept:
        for id, group in failing.items():
            for one in group:
                if (setting := found.get(one.case.id)) is None:
                    continue
                whole = Setting(setting.whole, setting.own, setting.foreign, answers, names)
                inputs = _inputs(target, whole, seed)
                if inputs not in known:
                    known[inputs] = {"inputs": inputs, "variant": one.case.id, "outcomes": measure(lm, whole, seed)}
                    kept.write(json.dumps({"schema": 1, **known[inputs]}) + "\n")
                    kept.flush()
                if known[inputs]["outcomes"] is not None:
                    read = lens(lm, whole.whole, names)
                    groups[id].append(Opened(one.case, whole.whole, known[inputs]["outcomes"], read))
                advance(1)
    return weigh(groups, list(names), _foils)


def _setting(target: Target, one: Heard, donors: Sequence[Heard], seed: int) -> Setting | None:
    """The decision of a failing variant with its donors; None where it, or the own part's, cannot be told."""
    operand = next(iter(wrong_operands(one)), 0)
    last = f"part:{len(one.case.parts) - 1}"
    whole = places.of_whole(target.engine, one.asks["whole"], one.case, operand)
    own = places.of_part(target.engine, one.asks[last], one.case, operand)
    if whole is None or own is None:
        return None
    like = [d for d in donors if d.case.family == one.case.family and d.case.operation == one.case.operation]
    like = [d for d in like if d.right(f"part:{len(d.case.parts) - 1}")]
    random.Random(f"{seed}/donors/{one.case.id}").shuffle(like)
    foreign: list[Decision] = []
    for other in like:
        if len(foreign) == DONORS * TRIED:
            break
        ask = other.asks[f"part:{len(other.case.parts) - 1}"]
        made = places.of_part(target.engine, ask, other.case, operand)
        if (
            made is not None
            and made.gold != whole.gold
            and made.entity not in (whole.entity, *(f.entity for f in foreign))
        ):
            foreign.append(made)
    return Setting(whole, own, foreign, (), {})


def _names(tokenizer: Any, entities: Sequence[str]) -> dict[str, int]:
    """First token of each name behind a space; of names that begin alike only the first is read."""
    out: dict[str, int] = {}
    for name in dict.fromkeys(entities):
        token = tokenizer(f" {name}", add_special_tokens=False).input_ids[0]
        if token not in out.values():
            out[name] = token
    return out


def _foils(case: Case, whole: Decision) -> set[str]:
    """Entities that the right one has to beat: those of the prompt and like ones absent from it; () for all."""
    things = case.meta.get("things")
    if not isinstance(things, list):
        return set()
    from ..organism import world

    return {*things, *world.KINDS[world.world().kinds[whole.entity]]} - set(case.meta["chosen"]) | {whole.entity}


def _inputs(target: Target, setting: Setting, seed: int) -> str:
    decisions = [setting.whole, setting.own, *setting.foreign]
    facts = [[d.ids, d.gold, d.at] for d in decisions]
    return text_hash([target.who, repr((VERSION, seed, facts, list(setting.answers), sorted(setting.names)))])
