"""Cases similar to a case: the same question in another setting (same gold), or about a similar entity (another gold).

A single case may fail by chance, and a single reading may be right by luck. So a cause is claimed only if several
variants of the case fail in the same way. Variants come from:

* ``meta.variants`` of the case: a list of objects with the fields that differ (``question``, ``answer``, ...);
* shipped benchmarks of the organisms: other distractors on the table, and a thing swapped for one of its kind;
* two-hop cases: the whole in the words of the second part's paraphrases, and cases of the same family.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice, zip_longest
from typing import Any

from ...errors import InputError
from ...evaluation import cases
from ...evaluation.case import Case, case_to_dict
from ...evaluation.grading.text import holds, plain
from ..organism import benchmarks, tasks, world

MOST = 4
MARK, OF = "~", "variant_of"
"""Separates a case's id from the number of its variant; and the field of ``meta`` that holds the id."""


@dataclass(frozen=True)
class Variant:
    """A similar case; the case itself is its own first variant."""

    case: Case
    edit: str
    """The change; ``original`` for the case itself."""
    keeps_gold: bool = True
    wording: str | None = None
    """The role in which the original case is asked a part in the words of this whole; None if they are not a part's."""

    @property
    def source(self) -> str:
        """Id of the original case."""
        return source_of(self.case)


def source_of(case: Case) -> str:
    """Id of the case that a case is a variant of; its own if it is none. The id of any case may hold the mark."""
    return str(case.meta.get(OF, case.id))


def of(
    case: Case, mates: Sequence[Case], seed: int = 0, most: int = MOST, put: Callable[[Case], Case] = lambda case: case
) -> list[Variant]:
    """The case and up to ``most`` variants, in turn with the same and another gold; ``mates``: similar cases of its
    run; ``put`` gives each the question that the run puts, and those that differ in nothing else are no variants.

    Raises ``InputError`` if ``meta.variants`` or ``meta.relation`` cannot be used.
    """
    _check_relation(case)
    rng = random.Random(f"{seed}/variants/{case.id}")
    if "variants" in case.meta:
        found = _stated(case)
    elif case.benchmark in ("organism-mixed", "organism-ladders"):
        found = _of_organism(case, rng)
    else:
        found = _of_chain(case, mates, rng)
    known, mark = {mate.id for mate in mates}, MARK
    while any(f"{case.id}{mark}{i}" in known for i in range(1, most + 1)):
        mark += MARK

    def made(i: int, v: Variant) -> Variant:
        return replace(v, case=replace(v.case, id=f"{case.id}{mark}{i}", meta={**v.case.meta, OF: case.id}))

    original, asked = put(case), (replace(v, case=put(v.case)) for v in found)
    chosen = islice((v for v in asked if v.case.question != original.question), most)
    return [Variant(original, "original"), *(made(i, v) for i, v in enumerate(chosen, 1))]


def _check_relation(case: Case) -> None:
    """Refuse a relation that gives an answer away: forced as text it would mend any failure."""
    relation = case.meta.get("relation")
    golds = {"the answer": (case.answer, *case.aliases)}
    golds |= {f"the answer of part {i}": (p.answer, *p.aliases) for i, p in enumerate(case.parts)}
    for what, names in golds.items():
        for name in names:
            if isinstance(relation, str) and holds(relation, name) and not holds(case.question, name):
                said = f"case {case.id!r}: meta.relation is {relation!r} and contains {name!r}, {what}"
                fix = "give the beginning of an answer that gives nothing away ('The currency of that country is')"
                raise InputError(f"{said}; {fix}")


def _stated(case: Case) -> Iterator[Variant]:
    for edit, made in cases.stated(case, f"case {case.id!r}"):
        yield Variant(made, edit, made.answer == case.answer)


def _of_organism(case: Case, rng: random.Random) -> Iterator[Variant]:
    first, second = case.meta["chosen"]
    tags, kinds, operation = world.world().tags, world.world().kinds, str(case.operation)

    def made(edit: str, chosen: tuple[str, str]) -> Variant:
        found = benchmarks.composed(case.id, tasks.table(rng, chosen), operation, chosen)
        found = benchmarks.ladder(found) if case.benchmark == "organism-ladders" else found
        return Variant(found, edit, found.answer == case.answer)

    swaps = []
    for place, old in enumerate((first, second)):
        for new in world.KINDS[kinds[old]]:
            pair = (new, second) if place == 0 else (first, new)
            a, b = (tags[t] for t in pair)
            if tags[new] != tags[old] and a != b and world.apply(operation, a, b) is not None:
                swaps.append((pair, f"{old} swapped for {new}"))
    rng.shuffle(swaps)
    for swap in (*swaps, None, None):
        yield made("other things on the table", (first, second))
        if swap is not None:
            yield made(swap[1], swap[0])


def _of_chain(case: Case, mates: Sequence[Case], rng: random.Random) -> Iterator[Variant]:
    like = [m for m in mates if m.family == case.family and m.benchmark == case.benchmark and m.id != case.id]
    like = [m for m in like if m.answer != case.answer]
    rng.shuffle(like)
    swapped = [Variant(m, f"the case {m.id} instead", False) for m in like]
    meta = {**case.meta, "phrase": phrase_of(case)}  # the other wordings contain it too
    meta.pop("relation", None)
    reworded = [
        Variant(replace(case, question=text, meta=meta), "other words", wording=role)
        for text, role in reworded_wholes(case).items()
    ]
    for pair in zip_longest(reworded[:2], swapped):
        yield from (v for v in pair if v is not None)


def phrase_of(case: Case) -> str | None:
    """The whole's words for the first part's answer ("the country whose capital is Oslo"); None if unclear.

    They are known if the whole is the last part's question with that answer replaced by words, or from ``meta.phrase``.
    """
    if isinstance(given := case.meta.get("phrase"), str):
        return given
    if len(case.parts) != 2:
        return None
    bridge, last = case.parts[0], case.parts[1].question
    for name in sorted((bridge.answer, *bridge.aliases), key=len, reverse=True):
        for found in re.finditer(rf"(?:\b(?:the|an?) )?(?<!\w){re.escape(name)}(?!\w)", last, re.IGNORECASE):
            before, after = last[: found.start()], last[found.end() :]
            whole = case.question
            long = len(whole) > len(before) + len(after)
            if long and whole[: len(before)].lower() == before.lower() and whole.endswith(after):
                return whole[len(before) : len(whole) - len(after)]
    return None


def reworded_wholes(case: Case) -> dict[str, str]:
    """The whole in the words of the last part's paraphrases, each with the role of that paraphrase."""
    phrase = phrase_of(case)
    if phrase is None:
        return {}
    bridge = case.parts[0]
    names = "|".join(re.escape(n) for n in sorted((bridge.answer, *bridge.aliases), key=len, reverse=True))
    pattern = re.compile(rf"(?:\b(?:the|an?) )?(?<!\w)(?:{names})(?!\w)", re.IGNORECASE)
    made = [pattern.sub(lambda _: str(phrase), p, count=1) for p in case.parts[1].paraphrases]
    found: dict[str, str] = {}
    for i, text in enumerate(made):
        if plain(phrase) in plain(text):
            found.setdefault(text[:1].upper() + text[1:], f"part:1:paraphrase:{i}")
    found.pop(case.question, None)
    return found


def as_row(variant: Variant) -> dict[str, Any]:
    """The variant's line in ``variants.jsonl``."""
    meta = {name: value for name, value in variant.case.meta.items() if name != OF}
    about = {"case": variant.source, "edit": variant.edit, "keeps_gold": variant.keeps_gold}
    return {**about, **case_to_dict(replace(variant.case, meta=meta))}
