"""Every protocol by its name, and the rules for all of them: uncounted roles, answers without preamble.

reduce(get("double-gate"), rows)
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from ...errors import InputError, did_you_mean
from ...registry import Registry
from ..case import Case
from ..graded import Graded
from ..metrics import Metric
from .base import About, Protocol, Reduction

PROTOCOLS: Registry[Callable[..., Protocol]] = Registry(
    "protocols", lambda value: isinstance(value, type) and isinstance(getattr(value, "about", None), About), __package__
)
"""Classes by command-line name; ``get(name, **options)`` makes a protocol of one."""
BARE = "no-preamble/"
"""Prefix of the roles of asks that are repeated without the instruction."""
_SHOWN = 3


def get(name: str, **options: Any) -> Protocol:
    """The protocol of a command-line name, with its options. Raises ``InputError`` for an unknown name or option."""
    found = PROTOCOLS.find(name)
    if found is None:
        raise InputError(
            f"--protocol {name!r} is not known; use one of {', '.join(sorted(PROTOCOLS))}"
            + did_you_mean(name, PROTOCOLS)
        )
    try:
        return found(**options)
    except TypeError as e:
        raise InputError(f"--protocol {name}: option not known or wrong ({e})") from e


def about(name: str | None) -> About:
    """The description of the protocol of a name; the defaults for an unknown one and for one without a description."""
    return getattr(PROTOCOLS.find(name) if name else None, "about", About())


def uncounted(rows: Iterable[Graded], protocol: str | None) -> list[str]:
    """One warning about rows in roles that a protocol (None: every protocol here) does not count.

    Nothing for a protocol that knows its own roles. Raises ``InputError`` where no row at all is in a role that counts.
    """
    names = PROTOCOLS.own if protocol is None else (protocol,)
    known = tuple(dict.fromkeys(role for name in names for role in about(name).roles))
    if not known:
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


def reduce(protocol: Protocol, rows: Sequence[Graded], cases: Mapping[str, Case] | None = None) -> Reduction:
    """The protocol's reduction; rows of roles ``no-preamble/...`` are counted by themselves.

    Their metrics carry the group ``prompt: no-preamble``; case sets come from the other rows. Which of the two ways
    is better is not chosen: both are reported. Rows in roles that the protocol does not count are a warning.

    Raises ``InputError`` where no row is in a role that it counts.
    """
    unknown = uncounted(rows, protocol.name)
    usual = [row for row in rows if not row.role.startswith(BARE)]
    bare = [replace(row, role=row.role.removeprefix(BARE)) for row in rows if row.role.startswith(BARE)]
    found = protocol.reduce(usual, cases)
    metrics, warnings = list(found.metrics), [*unknown, *found.warnings]
    if bare:
        other = protocol.reduce(bare, cases)
        metrics += [_without_preamble(m) for m in other.metrics]
        warnings += [f"without preamble: {w}" for w in other.warnings]
    return Reduction(tuple(metrics), found.case_sets, tuple(warnings))


def _without_preamble(metric: Metric) -> Metric:
    prompt = " ".join(str(p) for p in ("no-preamble", metric.group.get("prompt")) if p)
    return replace(metric, group={**metric.group, "prompt": prompt})
