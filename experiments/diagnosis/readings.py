"""Readings of a failing whole's states: can its entity be read where it is asked about, and where it is needed?

The reader is the centred lens of ``probes.readout``. The result is the mean over the upper half of the layers, fixed
beforehand, at three places. Layer 0 is reported next to it, because a reading at layer 0 may only reflect the text.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from ...errors import NoCasesError
from ...evaluation.case import Case
from ...evaluation.grading.text import holds
from ...probes.readout.readings import FOILS, Foils, Reading, lens, name_tokens
from ..organism import world
from .hypotheses import shown
from .places import Decision
from .thresholds import READ, READABLE

PLACES = ("entity", "question-end", "decision")


class Held(NamedTuple):
    """How far the lens puts the entity of a case above its foils at a place, over the failing variants."""

    foils: Foils
    place: str
    """One of ``PLACES``."""
    above: float
    """Mean share of the foils below the entity, over the upper half of the layers; chance is 0.5."""
    others: float
    """The same share in the other cases of the run; 0 if there are none."""
    layer_0: float
    """The same share after block 0."""
    like: float
    """Mean number of foils."""
    n: int
    """Failing variants."""


def readable(held: Sequence[Held], place: str) -> bool:
    """Whether the lens puts the entity above nearly all foils of each kind at a place, in other cases above most."""
    here = [h for h in held if h.place == place]
    return bool(here) and all(h.above >= READABLE and h.others >= READ for h in here)


Asked = tuple[tuple[int, ...], str]
"""A prompt, and the entity that is read in it."""
Wholes = Mapping[str, Sequence[tuple[Case, Decision]]]
"""Failing variants by their original case."""


def read(lm: Any, tokenizer: Any, wholes: Wholes) -> dict[str, list[Held]]:
    """How well the entity of each case can be read; costs a forward pass per variant."""
    like = {c.id: _like(c, d, wholes) for some in wholes.values() for c, d in some}
    tokens = {name: name_tokens(tokenizer, name) for some in like.values() for name in some}
    readings: list[Reading] = []
    for id, some in wholes.items():
        for case, decision in some:
            apart = [n for n in like[case.id] if not set(tokens[n]) & set(tokens[decision.entity])]
            text = tokenizer.decode(list(decision.ids[: decision.prompt]))
            named = tuple(n for n in apart if holds(text, n))
            absent = tuple(n for n in apart if n not in named)
            readings.append(Reading(decision.ids, _places(decision), "bridge", decision.entity, absent, named, id))
    values: dict[tuple[str, Foils, str], dict[Asked, tuple[float, float, int]]] = {}
    for places in dict.fromkeys(tuple(r.places) for r in readings):
        mine = [r for r in readings if tuple(r.places) == places]
        try:
            scores = lens(lm, mine, tokens)
        except NoCasesError:  # no other entity to centre with
            continue
        for r, of_one in zip(mine, scores, strict=True):
            for foils in FOILS:
                if not (like_it := r.foils(foils)):
                    continue
                above = of_one.above(r.right, like_it)  # layer place
                upper = above[(len(above) + 1) // 2 :].mean(0)
                for i, place in enumerate(places):
                    value = float(upper[i]), float(above[1, i]), len(like_it)
                    values.setdefault((r.case, foils, place), {})[tuple(r.ids), r.right] = value
    keys: list[tuple[Foils, str]] = [(foils, place) for foils in FOILS for place in PLACES]

    def others(id: str, key: tuple[Foils, str]) -> float:
        some = (values.get((other, *key), {}) for other in wholes)
        # a case may be a variant of several others: its prompt counts once, and not among the others of its own case
        every = {asked: above for of in some for asked, (above, *_) in of.items() if asked not in values[id, *key]}
        return sum(every.values()) / len(every) if every else 0.0

    return {
        id: [_mean([*values[id, *k].values()], *k, others(id, k)) for k in keys if (id, *k) in values] for id in wholes
    }


def _mean(some: Sequence[tuple[float, float, int]], foils: Foils, place: str, others: float) -> Held:
    above, at_0, like = (sum(column) / len(some) for column in zip(*some, strict=True))
    return Held(foils, place, above, others, at_0, like, len(some))


def _like(case: Case, decision: Decision, wholes: Wholes) -> list[str]:
    """The entity and similar ones: for a thing, those on the table and of its kind; otherwise the family's entities."""
    table, kinds = shown(case) if isinstance(case.meta.get("things"), list) else None, world.world().kinds
    if table is not None and decision.entity in kinds:
        things, chosen = table
        others = set(chosen) - {decision.entity}
        every = dict.fromkeys((decision.entity, *things, *world.KINDS[kinds[decision.entity]]))
        return [n for n in every if n not in others]
    family = (d.entity for some in wholes.values() for c, d in some if c.family == case.family)
    return list(dict.fromkeys((decision.entity, *family)))


def _places(decision: Decision) -> dict[str, Sequence[int]]:
    found = {"entity": decision.at, "question-end": decision.asked, "decision": (decision.last,)}
    return {name: at for name, at in found.items() if at}


def reading_lines(found: Sequence[Held]) -> list[str]:
    """The evidence of the lens, one statement per kind of foils."""
    stand = {"absent": "similar ones absent from the prompt", "in-prompt": "similar ones in the prompt"}
    words = {
        "entity": "where it is asked about",
        "question-end": "at the question's end",
        "decision": "at the decision",
    }
    out = []
    for foils in dict.fromkeys(h.foils for h in found):
        some = [h for h in found if h.foils == foils]
        fewer = {h.place: f"{h.n} of these variants, " if h.n != some[-1].n else "" for h in some}
        at = ", ".join(
            f"{100 * h.above:.0f} % {words[h.place]} ({fewer[h.place]}layer 0: {100 * h.layer_0:.0f} %)" for h in some
        )
        of = f"{some[-1].like:.0f} {stand[foils]} (upper layers, {some[-1].n} failing variants, chance 50 %)"
        out.append(f"lens: the part's answer ranks above this share of {of}: {at}")
    return out
