"""Readouts over labelled examples: is the bridge, an operand, the answer held, in failures and in matched successes?

    over_examples(lm, examples).tensors["lens.absent.bridge.failure"]  # layer place

The comparison was fixed beforehand: at each place, the share of foils that the right one is above, as the mean over the
upper half of the layers. The maps hold every layer from -1 (before block 0) on; each row also shows layer 0, because
what a reader finds there is already in the text.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median_low
from typing import Any, Literal, get_args

import numpy as np
import torch
from torch import Tensor

from ...errors import InputError, NoCasesError
from ...hooks.model import Model
from ...terminal import Bar, no_bar, stage
from ..examples import Example
from ..matching import Matched
from ..result import ProbeResult, Row
from ..tables import cell_maps, group_rows, matched_pairs, matched_rows, value_rows
from ..verdicts import corrected
from .readings import FOILS, PartPrompt, Reading, Scores, What, lens, name_tokens, ridge

Reader = Literal["lens", "ridge"]
READERS: tuple[Reader, ...] = get_args(Reader)


def over_examples(
    lm: Model, examples: Sequence[Example], *, readers: Sequence[Reader] = READERS, strength: float = 1.0,
    permutations: int = 1000, seed: int = 0, progress: Bar = no_bar,
) -> ProbeResult:  # fmt: skip
    """What wholes hold of their parts' answers and of their own, by layer and place, failures against successes.

    ``readers``: ``lens`` (the model's own head, centred over texts), ``ridge`` (trained on the part prompts, each right
    one left out; ``strength`` is its penalty). Quantity ``held_{reader}``: the share of foils that the right one is
    above, chance 0.5, by ``kind`` (bridge, operand, answer), ``place`` and ``foils`` (``absent``: similar ones that the
    question does not name; ``in-prompt``: all others that it does). Tensors ``{reader}.{foils}.{kind}.{group}``
    ``[layer place]`` with ``difference`` and ``p`` (over the map) beside; ``wholes.{reader}`` ``[reading place]`` is
    what is compared, of each of ``collect_readings`` that the reader can score (absent foils).

    Cost: one forward pass of every whole and part. Raises ``NoCasesError`` if no part has a gold answer to look for.
    """
    if unknown := [r for r in readers if r not in READERS]:
        raise InputError(f"reader {unknown[0]!r}: use {' or '.join(READERS)}")
    if lm.tokenizer is None:
        raise InputError("readouts look for names: open the model with its tokenizer")
    got = collect_readings(lm.tokenizer, examples)
    if not got.readings:
        raise NoCasesError(
            f"{len(examples)} examples: no whole has a gold answer with similar answers to compare it with (of its "
            "family, with another first token); probe more cases of a family (--probe-cases)"
        )
    places = tuple(got.readings[0][1].places)
    matched, _ = matched_pairs(list({e.case: e for e, _ in got.readings}.values()))
    rows: list[Row] = []
    tensors: dict[str, Tensor] = {}
    axes: dict[str, Sequence[str]] = {}
    warnings, values = list(got.notes), []
    for reader in readers:
        with stage(progress, f"readout: {reader}", len(got.readings)):
            scores = _scores(lm, reader, got, strength, warnings)
        for foils in FOILS if scores else ():
            held = [
                (replace(e, kind=r.what), scores[i].above(r.right, r.foils(foils)))
                for i, (e, r) in enumerate(got.readings)
                if i in scores and r.foils(foils)
            ]
            if not held:
                warnings.append(f"{reader}: no question names a similar one; no foils in the prompt")
                continue
            name = f"{reader}.{foils}"
            maps, map_axes, map_rows = cell_maps(
                name, f"held_{reader}_map", held, ("layer", "place"), permutations=permutations, seed=seed
            )
            for key, x in maps.items():
                full = key if key.startswith(name) else f"{name}.{key}"
                tensors[full], axes[full] = x, map_axes[key]
            rows += [_named(r, places) | {"foils": foils} for r in map_rows]
            if foils == "absent":
                tensors[f"wholes.{reader}"] = torch.stack([x[upper(len(x))].mean(0) for _, x in held])
                axes[f"wholes.{reader}"] = ("reading", "place")
            found, kept = _rows(f"held_{reader}", held, places, matched, seed)
            found = [{**r, "foils": foils} for r in found]
            rows += found
            values += kept if foils == "absent" else []
    settings = {
        "readers": list(readers), "places": list(places), "layers": "-1 (before block 0) to the last; index l + 1",
        "compared": "mean over the layers of the upper half", "strength": strength, "chance": 0.5,
        "candidates": len(got.entities), "readings": len(got.readings), "part_prompts": len(got.parts),
        "permutations": permutations, "seed": seed, "dtype": str(lm.dtype),
    }  # fmt: skip
    return ProbeResult("readout", corrected(rows), tensors, axes, settings, warnings, values)


def _scores(lm: Model, reader: Reader, got: Collected, strength: float, warnings: list[str]) -> dict[int, Scores]:
    """Scores by reading. A warning names the kinds that have too few readings for the reader; they have no scores."""
    readings = [r for _, r in got.readings]
    whats = dict.fromkeys(r.what for r in readings)
    found: dict[int, Scores] = {}
    for kind in ("all",) if reader == "ridge" else whats:  # the lens must not centre a text by what else it holds
        mine = [i for i, r in enumerate(readings) if kind in ("all", r.what)]
        some = [readings[i] for i in mine]
        try:
            if reader == "ridge":
                read = ridge(lm, some, got.parts, got.entities, strength=strength)
            else:
                read = lens(lm, some, got.entities)
        except NoCasesError as e:
            warnings.append(f"{reader}: {kind}: {e}")
        else:
            found |= zip(mine, read, strict=True)
    return found


def _rows(
    quantity: str, held: list[tuple[Example, Tensor]], places: Sequence[str], matched: Matched | None, seed: int
) -> tuple[list[Row], list[Row]]:
    """Rows of each place, and values per example of the last one."""
    rows: list[Row] = []
    values: list[Row] = []
    compared = upper(held[0][1].shape[0])
    examples = [e for e, _ in held]
    for p, place in enumerate(places):
        summary = [(e, float(x[compared, p].mean())) for e, x in held]
        mine = group_rows(quantity, summary, seed=seed)
        mine += matched_rows(quantity, examples, matched, lambda i, _, s=summary: s[i][1], seed=seed)
        at_0 = _layer_0(held, p)
        rows += [{**r, "place": place, "layer_0": at_0.get((r["kind"], r["group"]))} for r in mine]
        if place == places[-1]:
            values = value_rows(quantity, summary)
    return rows, values


def upper(layers: int) -> slice:
    """The upper half of the layers of a map, which begins with layer -1."""
    return slice((layers + 1) // 2, None)


def _layer_0(held: list[tuple[Example, Tensor]], place: int) -> dict[tuple[str, str], float]:
    """The mean at layer 0 (index 1) by kind and group."""
    found: dict[tuple[str, str], list[float]] = {}
    for e, x in held:
        found.setdefault((e.kind, e.group), []).append(float(x[1, place]))
    return {key: float(np.mean(v)) for key, v in found.items()}


def _named(row: Row, places: Sequence[str]) -> Row:
    """A row of a map with its layer as sites count them, and the name of its place."""
    found = dict(row)
    if "layer" in found:
        found["layer"] -= 1
    if "place" in found:
        found["place"] = places[found["place"]]
    return found


Places = dict[str, tuple[int, ...]]
PLACES = ("entity", "question-end", "prompt-end", "decision", "answer-slot")
FEWEST_NAMES = 3
"""How many similar ones a reading needs, the right one included."""
COMMON = 0.8
"""A place is read if this share of the examples has it; examples without it are then left out."""
_WORD = re.compile(r"[^\W_]+(?:[-'’][^\W_]+)*")
_NUMBER = re.compile(r"[-+]?\d[\d.,]*")


@dataclass(frozen=True)
class Collected:
    """Readings of wholes with their examples, the parts that a reader may be trained on, and every candidate."""

    readings: list[tuple[Example, Reading]]
    parts: list[PartPrompt]
    entities: dict[str, tuple[int, ...]]
    notes: tuple[str, ...]


def collect_readings(tokenizer: Any, examples: Sequence[Example]) -> Collected:
    """The targets that the wholes among the examples may hold; parts without a gold answer give none.

    The bridge is the answer of a part (an operand where that is a number) that is not the whole's answer. Like ones are
    the gold answers of the same part in other cases of the family. Gold answers of any kind that the question names are
    foils of their own.
    """
    known = [e for e in examples if e.gold is not None]
    wholes = [e for e in known if e.role == "whole"]
    parts = {(e.case, e.role): e for e in known if e.role.startswith("part:")}
    places, notes = _places(tokenizer, wholes, parts)
    like: dict[tuple[str | None, str], dict[str, None]] = {}
    for e in known:
        like.setdefault((e.family, e.role), {})[_name(e)] = None
    names = dict.fromkeys(n for pool in like.values() for n in pool)
    entities = {n: name_tokens(tokenizer, n) for n in names}
    found: list[tuple[Example, Reading]] = []
    few = 0
    for whole in wholes:
        if whole.case not in places:
            continue
        words = _words(_question(tokenizer, whole))
        for role, what, right in _held(whole, parts):
            apart = [n for n in names if n != right and not set(entities[n]) & set(entities[right])]
            named = tuple(n for n in apart if _within(_words(n), words))
            absent = tuple(n for n in like[whole.family, role] if n in apart and n not in named)
            few += len(absent) + 1 < FEWEST_NAMES
            if len(absent) + 1 >= FEWEST_NAMES:
                ids = (*whole.prompt_ids, *whole.response_ids[: whole.slot.offset if whole.slot else 0])
                found.append((whole, Reading(ids, places[whole.case], what, right, absent, named, whole.case)))
    if few:
        notes.append(f"{few} readings without {FEWEST_NAMES - 1} similar ones that begin with other tokens: left out")
    asked: dict[tuple[str | None, str], Counter[str]] = {}
    for e in parts.values():
        asked.setdefault((e.family, e.role), Counter()).update(set(_words(_question(tokenizer, e))))
    trained = [_part(tokenizer, e, asked[e.family, e.role]) for e in parts.values()]
    return Collected(found, [p for p in trained if p is not None], entities, tuple(notes))


def _name(e: Example) -> str:
    assert e.gold is not None
    return e.gold.answer.strip()


def _held(whole: Example, parts: Mapping[tuple[str, str], Example]) -> list[tuple[str, What, str]]:
    """Role, kind and name of what a whole may hold; each name once."""
    answer = _name(whole)
    found: dict[str, tuple[str, What, str]] = {answer: ("whole", "answer", answer)}
    for (case, role), e in parts.items():
        if case == whole.case and role.count(":") == 1 and _name(e):
            what: What = "operand" if _NUMBER.fullmatch(_name(e)) else "bridge"
            found.setdefault(_name(e), (role, what, _name(e)))
    return list(found.values()) if answer else []


def _question(tokenizer: Any, e: Example) -> str:
    return tokenizer.decode(list(e.prompt_ids[slice(*e.question_span)]))


def _words(text: str) -> list[str]:
    return [w.casefold() for w in _WORD.findall(text)]


def _within(some: Sequence[str], words: Sequence[str]) -> bool:
    return any(list(some) == list(words[i : i + len(some)]) for i in range(len(words) - len(some) + 1)) and bool(some)


def _places(
    tokenizer: Any, wholes: Sequence[Example], parts: Mapping[tuple[str, str], Example]
) -> tuple[dict[str, Places], list[str]]:
    """The places of each case's whole, the same ones for all, and what was left out."""
    common = Counter(w for e in wholes for w in set(_words(_question(tokenizer, e))))
    departures = {e.case: d for e in wholes if (d := _departure(e)) is not None}
    usual = median_low(d for e in wholes if (d := departures.get(e.case)) is not None) if departures else None
    found: dict[str, Places] = {}
    for e in wholes:
        n = len(e.prompt_ids)
        mine: Places = {"question-end": (e.question_span[1] - 1,), "prompt-end": (n - 1,)}
        first = parts.get((e.case, "part:0"))
        entity = None if first is None else _entity(tokenizer, e, _question(tokenizer, first), common)
        if entity is not None:
            mine["entity"] = (entity,)
        if e.slot is not None:
            mine["answer-slot"] = (n - 1 + e.slot.offset,)
            at = departures.get(e.case, usual)
            if at is not None and 0 < at < e.slot.offset:
                mine["decision"] = (n - 1 + at,)
        found[e.case] = mine
    kept = [p for p in PLACES if wholes and sum(p in f for f in found.values()) >= COMMON * len(wholes)]
    notes = [f"place {p}: fewer than {COMMON:.0%} of the cases have it; not read" for p in PLACES if p not in kept]
    whole = {case: {p: f[p] for p in kept} for case, f in found.items() if all(p in f for p in kept)}
    if len(whole) < len(found):
        notes.append(f"{len(found) - len(whole)} of {len(found)} cases lack a place that the others have: left out")
    return whole, notes


def _departure(e: Example) -> int | None:
    """How many tokens a failing response shares with the gold answer before the two differ."""
    if e.group != "failure":
        return None
    pairs = zip(e.response_ids, e.answer_ids, strict=False)
    return next((i for i, (a, b) in enumerate(pairs) if a != b), None)


def _entity(tokenizer: Any, e: Example, part: str, common: Counter[str]) -> int | None:
    """The last token of the whole's rarest words that the first part's question has, too."""
    shared = set(_words(part)) & set(_words(_question(tokenizer, e)))
    if not shared:
        return None
    rarest = min(common[w] for w in shared)
    start, stop = e.question_span
    wanted = {w for w in shared if common[w] == rarest}
    before = [tokenizer.decode(list(e.prompt_ids[start:i])) for i in range(start, stop + 1)]
    # Found in the whole question, because a word that is cut short may look like another one.
    ends = [m.end() for m in _WORD.finditer(before[-1]) if m[0].casefold() in wanted]
    complete = (i for i, text in enumerate(before) if len(text) >= ends[-1] and before[-1].startswith(text))
    return start + next(complete) - 1 if ends else None


def _part(tokenizer: Any, e: Example, common: Counter[str]) -> PartPrompt | None:
    """A part's prompt with the places of wholes; None if it has no answer slot.

    ``common``: in how many questions of such parts each word is. The rarest ones are the entity's.
    """
    if e.slot is None or e.role.count(":") != 1:
        return None
    n, slot = len(e.prompt_ids), e.slot.offset
    entity = _entity(tokenizer, e, _question(tokenizer, e), common)
    end = n - 1 + slot
    places = {
        "entity": (end if entity is None else entity,), "question-end": (e.question_span[1] - 1,),
        "prompt-end": (n - 1,), "decision": (end,), "answer-slot": (end,),
    }  # fmt: skip
    return PartPrompt((*e.prompt_ids, *e.response_ids[:slot]), places, _name(e))
