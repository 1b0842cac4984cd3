"""The position at which a probe reads: the *answer slot*, or the prompt's end.

The answer slot is the position that predicts the first token of the answer that the model gave, in its own response. A
model that begins with "The capital of ..." decides nothing about the capital at the prompt's end. To read an example at
its slot, the response up to the slot is moved to the end of its prompt. So probes need no special case.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

from ..errors import InputError, NoCasesError
from ..evaluation.dependence import names_of
from ..evaluation.statistics import rate_interval, share
from .examples import Example
from .result import Row
from .slots import AT_ONCE, Slot

Position = Literal["answer-slot", "prompt-end"]
POSITIONS: tuple[Position, ...] = get_args(Position)
Ids = tuple[int, ...]


@dataclass(frozen=True)
class ExamplesAtPosition:
    """Examples as a probe reads them."""

    examples: tuple[Example, ...]
    note: str
    """One sentence for tables, captions and reports: the position, and in how many responses both coincide."""
    settings: Mapping[str, Any]
    warnings: tuple[str, ...]


def read_at(examples: Sequence[Example], position: Position = "answer-slot") -> ExamplesAtPosition:
    """Examples moved to the position at which they are read; examples without an answer slot are left out and counted.

    If the first answer token is only white space, it is never scored: it becomes the end of the prompt. Raises
    ``InputError`` for an unknown position, ``NoCasesError`` if no response has a slot.
    """
    if position not in POSITIONS:
        raise InputError(f"position {position!r}: use {' or '.join(POSITIONS)}")
    at_slots = [None if e.slot is None else _at_slot(e, e.slot) for e in examples]
    ends = [_past_separators(e) for e in examples]
    slots = [e and _past_separators(e) for e in at_slots]
    moved = ends if position == "prompt-end" else [m for m in slots if m is not None]
    if examples and not moved:
        raise NoCasesError(
            f"the answer could be located in none of {len(examples)} responses; read at the prompt's end instead "
            "(--position prompt-end)"
        )
    located = [(a, b) for a, b in zip(slots, ends, strict=True) if a is not None]
    same = sum(a.begun == b.begun for a, b in located)
    lost = [e for e in examples if e.slot is None]
    skipped = sum(e.separators > 0 for e in (examples if position == "prompt-end" else at_slots) if e is not None)
    place = "the answer slot" if position == "answer-slot" else "the prompt's end"
    note = f"read at {place}; answer slot and prompt's end coincide in {same} of {len(located)} responses"
    warnings = []
    if lost:
        left = "left out" if position == "answer-slot" else "read at the prompt's end like the others"
        warnings.append(
            f"{len(lost)} of {len(examples)} responses: the answer could not be located (first: case {lost[0].case!r}, "
            f"{lost[0].role}); {left}"
        )
    if skipped:
        warnings.append(f"{skipped} answers begin with white space alone: their first token with content is scored")
    settings = {
        "position": position, "coincide": f"{same} of {len(located)} responses", "without_slot": len(lost),
        "separators_skipped": skipped,
    }  # fmt: skip
    return ExamplesAtPosition(tuple(moved), note, settings, tuple(warnings))


def _at_slot(e: Example, slot: Slot) -> Example:
    n, answer = slot.offset, slot.answer_ids
    moved = replace(
        e, prompt_ids=(*e.prompt_ids, *e.response_ids[:n]), response_ids=e.response_ids[n:],
        cue_tokens=e.cue_tokens + n, begun=e.begun + n, slot=AT_ONCE,
    )  # fmt: skip
    return moved if answer is None else replace(moved, answer_ids=answer, separators=slot.separators)


def _past_separators(e: Example) -> Example:
    n = e.separators
    lead = e.answer_ids[:n]
    fed = n if e.response_ids[:n] == lead else 0
    slot = e.slot and replace(e.slot, offset=max(0, e.slot.offset - fed))
    return replace(
        e, prompt_ids=(*e.prompt_ids, *lead), response_ids=e.response_ids[fed:], answer_ids=e.answer_ids[n:],
        cue_tokens=e.cue_tokens + n, begun=e.begun + n, separators=0, slot=slot,
    )  # fmt: skip


def preceding_row(examples: Sequence[Example], pairs: Sequence[tuple[str, str]], role: str = "whole") -> list[Row]:
    """How many matched pairs (cases) are read after different tokens, as a row; none without pairs."""
    of = {e.case: e for e in examples if e.role == role}
    known = [(of[a], of[b]) for a, b in pairs if a in of and b in of]
    if not known:
        return []
    differs = [a.prompt_ids[-1] != b.prompt_ids[-1] for a, b in known]
    # The row says of each pair what it is, not how its members differ: nothing that both share cancels.
    interval = rate_interval(differs, [names_of(a.shares) | names_of(b.shares) for a, b in known])
    ends = {k: math.nan if v is None else v for k, v in interval.columns().items()}
    return [{
        "quantity": "preceding_token_differs", "group": "matched pairs", "kind": known[0][0].kind,
        **share(sum(differs), len(differs)), **ends,
        "note": "pairs that are read after different tokens: their states are not of the same token",
    }]  # fmt: skip


def collisions(answers: Sequence[tuple[Ids, Ids]]) -> int:
    """How many pairs of different answers begin with the same token, so that their first tokens do not tell them
    apart."""
    return sum(a != b and a[:1] == b[:1] for a, b in answers)
