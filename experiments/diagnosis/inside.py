"""Interventions on one failing decision. Each intervention is a cell; its outcome is the answer that it forced.

Cells are named ``test:place:layer``. A donor state is put in after a layer, either at the words that ask for the entity
(``entity``) or where the answer is decided (``decision``). The donor is the state of the case's own part (``own``), of
a similar part with another answer (``foreign``), of a similar part about another entity with the same answer
(``same``), or noise of the same size in place of the own state (``noise``). ``skip`` leaves out a block, at the
decision or from the entity on; its control is leaving out other blocks. ``back`` puts the decision's own later state
into an earlier layer (controls ``back-foreign``, ``back-same``, ``back-noise``), ``across`` the later state of another
place. ``exit`` reads the answer after a layer. ``cut`` keeps the decision from attending to the words that a shortcut
copies (``source``), or to as many others, the control (``other``).
"""

from __future__ import annotations

import random
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from ...hooks.edits import Edits, Patch, Skip, knockouts, residual
from ...hooks.interchange import interchange, states
from .places import Decision

FIXED = 8
"""The number of layers at which donors are put in; smaller models use all of theirs."""
DONORS = 2
"""Number of foreign donors per decision."""
MOVED = ("move:", "across:")
"""Interventions that put a state of another place where the answer is decided."""


Outcomes = Mapping[str, str]
"""The outcome of each cell: ``gold``, ``donor`` (the foreign donor's answer), ``wrong`` (unchanged) or ``other``."""
Donor = tuple[Decision, Tensor]
"""A decision and its states, ``layer position width``."""
Row = tuple[str, Edits, int | None]
"""A cell, its edits, and the token that a foreign donor would give."""
States = dict[Decision, Tensor]
HELD = 256
"""The number of donors whose states are held at a time."""


@dataclass(frozen=True)
class Setting:
    """A failing decision with its donors."""

    variant: str
    """Id of the failing variant."""
    whole: Decision
    own: Decision
    foreign: Sequence[Decision]
    same: Sequence[Decision] = ()
    """Similar parts about another entity with the same answer."""
    answers: Sequence[int] = ()
    """First tokens of the competing answers; ``competing`` adds the token that the whole itself puts on top."""
    source: Sequence[int] = ()
    """Positions of the words that a shortcut copies, if the case follows one."""
    operand: int = 0
    """The operand that is decided; 0 in an answer without working."""


def fixed_layers(n_layers: int) -> list[int]:
    """The layers at which donors are put in. They are fixed beforehand: evenly spread, without the last one."""
    n = min(n_layers - 1, FIXED)
    return sorted({round(i * (n_layers - 2) / max(1, n - 1)) for i in range(n)})


def measure(lm: Any, setting: Setting, seed: int = 0, held: States | None = None) -> dict[str, str] | None:
    """Run the interventions on one decision; None if the decision is already right, or the own part's is wrong.

    ``held`` keeps the states of donors, which other settings share. Costs about (13 layers + 36) rows of the prompt
    from the entity on, and two rows for each fixed layer and place that is searched, and up to four more for each
    place.
    """
    whole, prompts = setting.whole, [setting.own, *setting.foreign, *setting.same]
    places = whole.readings()
    names = {position: name for name, position in reversed(places.items())}  # the first of several names
    [here] = states(lm, [whole.ids], [[*names, *whole.at, whole.last]])
    there = _donors(lm, prompts, {} if held is None else held)
    tops = [lm.unembed(x[-1, -1]) for x in (here, *there)]
    setting = replace(setting, answers=competing(setting.answers, *tops[:2]))
    answers = setting.answers
    said = [_top(x, answers) for x in tops]
    if said[0] == whole.gold or said[1] != setting.own.gold or whole.gold != setting.own.gold:
        return None
    donors = [(d, x) for d, x, top in zip(prompts[1:], there[1:], said[2:], strict=True) if top == d.gold]
    foreign = [(d, x) for d, x in donors if d.gold != whole.gold][:DONORS]
    same = [(d, x) for d, x in donors if d.gold == whole.gold][:1]
    n_layers, by_place = lm.anatomy.n_layers, dict(zip(names.values(), here.unbind(1), strict=False))
    # Each variant has noise of its own: the same noise would count one draw as often as a case has variants.
    noise = random.Random(f"{seed}/noise/{setting.variant}").getrandbits(32)
    rows = list(_rows(n_layers, whole, (setting.own, there[0]), foreign, same, here, noise))
    rows += [*_cuts(n_layers, setting, seed), *_read("move", n_layers, by_place, whole)]
    rows += _across(n_layers, by_place, whole)
    begun = {int(x.argmax()) for x in tops[:2]}
    outcomes = _outcomes(lm, whole, rows, answers, whole.gold, said[0], begun)
    if foreign:
        donor, _ = foreign[0]
        rows = list(_read("scope", n_layers, by_place, donor))
        outcomes |= _outcomes(lm, donor, rows, answers, whole.gold, said[0], begun)
    for name, position in places.items():
        for cell in [c for c in outcomes if c.startswith(("move:", "scope:", "across:"))]:
            test, place, layer = cell.split(":")
            if place == names[position]:
                outcomes[f"{test}:{name}:{layer}"] = outcomes[cell]
    for layer, x in enumerate(here[:, -1], start=-1):
        outcomes[f"exit:decision:{layer}"] = _outcome(_top(lm.unembed(x), answers), whole.gold, None, said[0])
    return outcomes


def _outcomes(
    lm: Any, prompt: Decision, rows: Sequence[Row], answers: Sequence[int], gold: int, wrong: int, begun: set[int]
) -> dict[str, str]:
    """The outcome of every cell; ``other`` where rows of one cell give different ones.

    A state of another place may make the text begin anew. Among the competing answers the right one may then be the
    likeliest, though it is not what the model would write. So a moved state brings an answer only if the likeliest
    token of all is an answer, or is in ``begun``: what the whole and its own part begin with.
    """
    found = interchange(lm, prompt.ids, [edits for _, edits, _ in rows], [prompt.last], tokens=answers, top=1)
    assert found.log_probs is not None
    out: dict[str, str] = {}
    says = {*answers, *begun}
    for (cell, _, donor), scores, top in zip(rows, found.log_probs[:, 0], found.top_tokens[:, 0, 0], strict=True):
        outcome = _outcome(answers[int(scores.argmax())], gold, donor, wrong)
        if cell.startswith(MOVED) and int(top) not in says:
            outcome = "other"
        out[cell] = outcome if out.get(cell, outcome) == outcome else "other"
    return out


def _donors(lm: Any, donors: Sequence[Decision], held: States) -> list[Tensor]:
    """The states of every donor at its entity's positions and its last one; ``held`` gives and takes them."""
    missing = [d for d in dict.fromkeys(donors) if d not in held]
    if len(held) + len(missing) > HELD:
        held.clear()
        missing = list(dict.fromkeys(donors))
    found = states(lm, [d.ids for d in missing], [[*d.at, d.last] for d in missing])
    held.update(zip(missing, found, strict=True))
    return [held[d] for d in donors]


def _cuts(n_layers: int, setting: Setting, seed: int) -> Iterator[Row]:
    """Keep the decision from attending, in every layer, to the source; or to as many other words, drawn by the seed."""
    whole, source = setting.whole, [p for p in setting.source if p < setting.whole.last]
    rest = [p for p in range(1, whole.last) if p not in source]
    if not source or len(rest) < len(source):
        return
    other = random.Random(f"{seed}/cut/{setting.variant}").sample(rest, len(source))
    for place, keys in (("source", source), ("other", other)):
        yield f"cut:{place}:0", knockouts([whole.last], keys, [range(n_layers)])[0], None


def _read(test: str, n_layers: int, states_of: Mapping[str, Tensor], prompt: Decision) -> Iterator[Row]:
    """Put states of the whole elsewhere and read the answers: ``move`` at its own decision, ``scope`` at a similar
    part's.

    A state that holds the bridge gives its answer there: the model itself reads the state, in its own words.
    """
    for place, x in states_of.items():
        for layer in fixed_layers(n_layers):
            if test == "scope":
                yield f"scope:{place}:{layer}", _put(x[layer + 1], [prompt.last], layer), prompt.gold
            elif place != "decision":
                yield f"move:{place}:{layer}", _put(x[layer + 1], [prompt.last], layer), None


def _across(n_layers: int, states_of: Mapping[str, Tensor], whole: Decision) -> Iterator[Row]:
    """Put a later state of another place of the whole into an earlier layer at the decision."""
    for source, target in later_pairs(n_layers, {0, n_layers // 4}):
        if 2 * source <= n_layers:
            continue
        for place, x in states_of.items():
            if place != "decision":
                yield f"across:{place}:{source}>{target}", _put(x[source + 1], [whole.last], target), None


def later_pairs(n_layers: int, targets: Collection[int]) -> list[tuple[int, int]]:
    """The layers from which a state is put into an earlier one, and those that it is put into; fixed beforehand."""
    late = sorted({n_layers // 2, 3 * n_layers // 4, n_layers - 1})
    return [(source, target) for source in late for target in sorted(targets) if target < source]


def competing(answers: Sequence[int], whole: Tensor, own: Tensor) -> list[int]:
    """The answers and the token that the whole itself puts on top (logits), so that its wrong answer competes.

    If the own part puts the same token on top, the token also begins right answers ("is the krone") and says nothing.
    """
    top = int(whole.argmax())
    return [*answers, *({top} - {int(own.argmax())} - set(answers))]


def _top(logits: Tensor, answers: Sequence[int]) -> int:
    return answers[int(logits[torch.tensor(list(answers))].argmax())]


def _outcome(token: int, gold: int, donor: int | None, wrong: int) -> str:
    return "gold" if token == gold else "donor" if token == donor else "wrong" if token == wrong else "other"


def _put(value: Tensor, positions: Sequence[int], layer: int) -> Edits:
    """A state put in at some positions, after a layer."""
    return [Patch(residual(layer), p, value) for p in positions]


def _rows(
    n_layers: int, whole: Decision, own: Donor, foreign: Sequence[Donor], same: Sequence[Donor], here: Tensor, seed: int
) -> Iterator[Row]:
    """The rows that put donors' states in, leave blocks out, and put later states back."""
    generator = torch.Generator().manual_seed(seed)

    def jolted(center: Tensor, size: Tensor) -> Tensor:
        noise = torch.randn(center.shape, generator=generator).to(center)
        return center + noise / noise.norm() * size.norm()

    places: dict[str, tuple[Sequence[int], int]] = {"decision": ([whole.last], -1)}
    if whole.at and all(d.at for d, _ in (own, *foreign, *same)):
        places["entity"] = (whole.at, -2)
    for place, (positions, index) in places.items():
        for layer in fixed_layers(n_layers):
            mine, there = own[1][layer + 1, index], here[layer + 1, index]
            yield f"own:{place}:{layer}", _put(mine, positions, layer), None
            yield f"noise:{place}:{layer}", _put(jolted(there, mine - there), positions, layer), None
            for donor, state in foreign:
                yield f"foreign:{place}:{layer}", _put(state[layer + 1, index], positions, layer), donor.gold
            for _, state in same:
                yield f"same:{place}:{layer}", _put(state[layer + 1, index], positions, layer), None
    from_entity = range(min(whole.at, default=0), whole.last + 1)
    for layer in range(n_layers):
        yield f"skip:decision:{layer}", [Skip(layer, whole.last)], None
        yield f"skip:everywhere:{layer}", [Skip(layer, p) for p in from_entity], None
    for source, target in later_pairs(n_layers, {0, n_layers // 4, n_layers // 2}):
        for place, (positions, index) in places.items():
            value = here[source + 1, index]
            pair = f"{place}:{source}>{target}"
            yield f"back:{pair}", _put(value, positions, target), None
            noise = jolted(here[target + 1, index], value - here[target + 1, index])
            yield f"back-noise:{pair}", _put(noise, positions, target), None
            for name, donors in (("back-foreign", foreign[:1]), ("back-same", same)):
                for donor, state in donors:
                    edits = _put(state[source + 1, index], positions, target)
                    yield f"{name}:{pair}", edits, donor.gold if name == "back-foreign" else None
