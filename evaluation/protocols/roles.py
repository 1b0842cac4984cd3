"""Which roles each protocol counts: a row in another role would be left out of every number, and is said instead."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence

from ...errors import InputError, did_you_mean
from .base import Graded

BARE = "no-preamble/"
"""Before the roles of asks that were put a second time, without the instruction."""
_STEPS = ("whole", "part:N")
_WAYS = ("part:N:extra-context", "whole:WAY", "self-ask")
ROLES: dict[str, tuple[str, ...]] = {
    "compositionality-gap": (*_STEPS, *_WAYS),
    "double-gate": (*_STEPS, "part:N:paraphrase:N", "whole:WAY"),
    "reasoning-gap": (*_STEPS, "pair:q1", "co-presented", "original", "code", *_WAYS),
    "scaffolding": (*_STEPS, "scaffold:N", "placeholder:N"),
}
"""Roles by protocol; N is a number from 0 (levels: from 1), WAY any name. Other packages' protocols know their own."""
_SHOWN = 3


def uncounted(rows: Iterable[Graded], protocol: str | None) -> list[str]:
    """One warning about the rows in roles that a protocol does not count; None: about roles that none of ours counts.

    Nothing for a protocol of another package. Raises ``InputError`` where no row at all is in a role that counts.
    """
    known = tuple(dict.fromkeys(r for rs in ROLES.values() for r in rs)) if protocol is None else ROLES.get(protocol)
    if known is None:
        return []
    fits = _pattern(known)
    read = list(rows)
    left = [row for row in read if not fits.fullmatch(row.role.removeprefix(BARE))]
    if not left:
        return []
    who = "no protocol counts" if protocol is None else f"{protocol} does not count"
    first = f"the first is case {left[0].case!r}, role {left[0].role!r}"
    fix = f"roles are {', '.join(known)}{did_you_mean(left[0].role.strip().lower(), _examples(known))}"
    if len(left) == len(read) and protocol is not None:
        raise InputError(f"graded rows: none of the {len(read)} is in a role that {protocol} counts; {first}; {fix}")
    counts = Counter(row.role for row in left)
    names = ", ".join(f"{role!r} {n}" for role, n in counts.most_common(_SHOWN))
    more = f" and {len(counts) - _SHOWN} others" if len(counts) > _SHOWN else ""
    return [f"{len(left)} of {len(read)} rows are in roles that {who} ({names}{more}); {first}; {fix}"]


def _pattern(known: Sequence[str]) -> re.Pattern[str]:
    """N is a number, WAY is the rest."""
    return re.compile("|".join(re.escape(r).replace("N", r"\d+").replace("WAY", ".+") for r in known), re.DOTALL)


def _examples(known: Sequence[str]) -> list[str]:
    return [r.replace("N", "0") for r in known if "WAY" not in r]
