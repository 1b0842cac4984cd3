"""Interventions on one failing decision. Each intervention is a cell; its outcome is the answer that it forced.

Cells are named ``test:place:layer``. A donor state is put in after a layer, either at the words that ask for the entity
(``entity``) or where the answer is decided (``decision``). The donor is the state of the case's own part (``own``), of
a like part with another answer (``foreign``), of a like part about another entity with the same answer (``same``), or
noise of the same size in place of the own state (``noise``). ``skip`` leaves out a block, at the decision or from the
entity on; its control is leaving out other blocks. ``back`` puts the decision's own later state into an earlier layer
(controls ``back-foreign``, ``back-same``, ``back-noise``). ``exit`` reads the answer after a layer. ``cut`` keeps the
decision from attending to the words that a shortcut copies (``source``); as many others are the control (``other``).
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from ...hooks.edits import Edits, Patch, Skip, knockouts, residual
from ...hooks.interchange import early_exits, interchange, states
from .places import Decision

FIXED = 8
"""The number of layers at which donors are put in; smaller models use all of theirs."""
DONORS = 2
"""Number of foreign donors per decision."""


Outcomes = Mapping[str, str]
"""The outcome of each cell: ``gold``, ``donor`` (the foreign donor's answer), ``wrong`` (unchanged) or ``other``."""
Donor = tuple[Decision, Tensor]
"""A decision and its states, ``layer position width``."""


@dataclass(frozen=True)
class Setting:
    """A failing decision with its donors."""

    variant: str
    """Id of the failing variant."""
    whole: Decision
    own: Decision
    foreign: Sequence[Decision]
    same: Sequence[Decision] = ()
    """Like parts about another entity with the same answer."""
    answers: Sequence[int] = ()
    """First tokens of the competing answers; ``competing`` adds the token that the whole itself puts on top."""
    source: Sequence[int] = ()
    """Positions of the words that a shortcut copies, if the case follows one."""


def fixed_layers(n_layers: int) -> list[int]:
    """The layers at which donors are put in. They are fixed beforehand: evenly spread, without the last one."""
    n = min(n_layers - 1, FIXED)
    return sorted({round(i * (n_layers - 2) / max(1, n - 1)) for i in range(n)})


def measure(lm: Any, setting: Setting, seed: int = 0) -> dict[str, str] | None:
    """Run the interventions on one decision; None if the decision is already right, or the own part's is wrong.

    Costs about (13 layers + 36) rows of the prompt from the entity on.
    """
    whole, prompts = setting.whole, [setting.own, *setting.foreign, *setting.same]
    held = states(lm, [d.ids for d in (whole, *prompts)], [[*d.at, d.last] for d in (whole, *prompts)])
    setting = replace(setting, answers=competing(setting.answers, *(lm.unembed(x[-1, -1]) for x in held[:2])))
    answers = setting.answers
    said = [_top(lm.unembed(x[-1, -1]), answers) for x in held]
    if said[0] == whole.gold or said[1] != setting.own.gold or whole.gold != setting.own.gold:
        return None
    donors = [(d, x) for d, x, top in zip(prompts[1:], held[2:], said[2:], strict=True) if top == d.gold]
    foreign = [(d, x) for d, x in donors if d.gold != whole.gold][:DONORS]
    same = [(d, x) for d, x in donors if d.gold == whole.gold][:1]
    rows = list(_rows(lm, whole, (setting.own, held[1]), foreign, same, held[0], seed))
    rows += _cuts(lm.anatomy.n_layers, setting, seed)
    found = interchange(lm, whole.ids, [edits for _, edits, _ in rows], [whole.last], tokens=answers, top=1)
    assert found.log_probs is not None
    outcomes: dict[str, str] = {}
    for (cell, _, donor), scores in zip(rows, found.log_probs[:, 0], strict=True):
        outcome = _outcome(answers[int(scores.argmax())], whole.gold, donor, said[0])
        outcomes[cell] = outcome if outcomes.get(cell, outcome) == outcome else "other"
    outcomes |= _read(lm, setting, [d for d, _ in foreign], said[0])
    exits = early_exits(lm, whole.ids, [whole.last], answers)
    for layer in range(len(exits)):
        outcomes[f"exit:decision:{layer - 1}"] = _outcome(
            answers[int(exits[layer, 0].argmax())], whole.gold, None, said[0]
        )
    return outcomes


def _cuts(n_layers: int, setting: Setting, seed: int) -> Iterator[tuple[str, Edits, None]]:
    """The decision attends, in no layer, to the source; or to as many other words of the prompt, drawn by the seed."""
    whole, source = setting.whole, [p for p in setting.source if p < setting.whole.last]
    rest = [p for p in range(1, whole.last) if p not in source]
    if not source or len(rest) < len(source):
        return
    other = random.Random(f"{seed}/cut/{setting.variant}").sample(rest, len(source))
    for place, keys in (("source", source), ("other", other)):
        yield f"cut:{place}:0", knockouts([whole.last], keys, [range(n_layers)])[0], None


def _read(lm: Any, setting: Setting, foreign: Sequence[Decision], wrong: int) -> dict[str, str]:
    """Put states of the whole elsewhere and read the answers: ``move`` at its own decision, ``scope`` at a like part's.

    A state that holds the bridge gives its answer there: the model itself reads the state, in its own words.
    """
    whole, answers = setting.whole, setting.answers
    places = whole.readings()
    [held] = states(lm, [whole.ids], [list(places.values())])
    cells = [(p, i, layer) for i, p in enumerate(places) for layer in fixed_layers(lm.anatomy.n_layers)]
    out: dict[str, str] = {}
    targets = [("move", whole, [c for c in cells if c[0] != "decision"])]
    targets += [("scope", d, cells) for d in foreign[:1]]
    for test, target, some in targets:
        rows = [[Patch(residual(layer), target.last, held[layer + 1, i])] for _, i, layer in some]
        scores = interchange(lm, target.ids, rows, [target.last], tokens=answers, top=1).log_probs
        assert scores is not None
        for (place, _, layer), row in zip(some, scores[:, 0], strict=True):
            donor = target.gold if test == "scope" else None
            out[f"{test}:{place}:{layer}"] = _outcome(answers[int(row.argmax())], whole.gold, donor, wrong)
    return out


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


def _rows(
    lm: Any, whole: Decision, own: Donor, foreign: Sequence[Donor], same: Sequence[Donor], here: Tensor, seed: int
) -> Iterator[tuple[str, Edits, int | None]]:
    """(cell, edits, token that a foreign donor would give) for every row."""
    generator = torch.Generator().manual_seed(seed)

    def jolted(center: Tensor, size: Tensor) -> Tensor:
        noise = torch.randn(center.shape, generator=generator).to(center)
        return center + noise / noise.norm() * size.norm()

    n_layers = lm.anatomy.n_layers
    places: dict[str, tuple[Sequence[int], int]] = {"decision": ([whole.last], -1)}
    if whole.at and own[0].at:
        places["entity"] = (whole.at, -2)
    for place, (positions, index) in places.items():
        if place == "entity" and any(not d.at for d, _ in (*foreign, *same)):
            continue
        for layer in fixed_layers(n_layers):
            mine, there = own[1][layer + 1, index], here[layer + 1, index]

            def put(value: Tensor, at: Sequence[int] = positions, after: int = layer) -> Edits:
                return [Patch(residual(after), p, value) for p in at]

            yield f"own:{place}:{layer}", put(mine), None
            yield f"noise:{place}:{layer}", put(jolted(there, mine - there)), None
            for donor, state in foreign:
                yield f"foreign:{place}:{layer}", put(state[layer + 1, index]), donor.gold
            for _, state in same:
                yield f"same:{place}:{layer}", put(state[layer + 1, index]), None
    for layer in range(n_layers):
        yield f"skip:decision:{layer}", [Skip(layer, whole.last)], None
        yield (
            f"skip:everywhere:{layer}",
            [Skip(layer, p) for p in range(min(whole.at, default=0), whole.last + 1)],
            None,
        )
    late = sorted({n_layers // 2, 3 * n_layers // 4, n_layers - 1})
    for source in late:
        for target in sorted({0, n_layers // 4, n_layers // 2}):
            if target >= source:
                continue
            for place, (positions, index) in places.items():
                value = here[source + 1, index]
                pair = f"{place}:{source}>{target}"
                yield f"back:{pair}", [Patch(residual(target), p, value) for p in positions], None
                noise = jolted(here[target + 1, index], value - here[target + 1, index])
                yield f"back-noise:{pair}", [Patch(residual(target), p, noise) for p in positions], None
                for name, donors in (("back-foreign", foreign[:1]), ("back-same", same)):
                    for donor, state in donors:
                        edits = [Patch(residual(target), p, state[source + 1, index]) for p in positions]
                        yield f"{name}:{pair}", edits, donor.gold if name == "back-foreign" else None
