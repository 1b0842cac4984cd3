"""TwoHopFact and SOCRATES (Yang et al. 2024): two-hop statements to be completed, with both one-hop statements.

CSV with ``uid``, the statements ``r1(e1).prompt``, ``r2(e2).prompt`` and ``r2(r1(e1)).prompt``, the entities
``e1.value``, ``e2.value`` (the bridge) and ``e3.value`` (the answer), their ``.aliases`` (nested lists, written as
Python), and ``category`` or ``fact_comp_type``. A statement is asked as published for instruction-tuned models, as a
blank to fill; SOCRATES has wordings with the blank in its columns ``.blank.prompt``.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from ...errors import InputError
from .. import reading
from ..case import Case
from ..gold import clustered, others, part, type_of_words
from ..reading import text_field
from .catalog import benchmark

WHAT = "TwoHopFact.csv or SOCRATES_v1.csv"
_STATEMENTS = ("r1(e1)", "r2(e2)", "r2(r1(e1))")
_NEEDED = (*(f"{s}.prompt" for s in _STATEMENTS), "e2.value", "e3.value")
_ABOUT = ("category", "fact_comp_type", "e1.value", "e2.value", "e3.value")
_KEPT = frozenset(
    [*_NEEDED, *(f"{s}.blank.prompt" for s in _STATEMENTS), *_ABOUT, "uid"]
    + [f"{e}.{a}" for e in ("e2", "e3") for a in ("aliases", "minimal_aliases")]
)


@benchmark("twohopfact", answer_alone=True)
def read_twohopfact(path: str | Path, benchmark: str = "twohopfact") -> list[Case]:
    """Read the cases. Raises ``InputError`` naming file, line and column."""
    columns, rows = reading.table(path, f"give {WHAT}", _KEPT.__contains__, longest=reading.LONG_CELL)
    missing = next((c for c in _NEEDED if c not in columns), None)
    if missing is not None:
        raise InputError(f"{path}: column {missing!r} is missing; give {WHAT}")
    return clustered([_case(row, i, benchmark, f"{path}:{line}") for i, (line, row) in enumerate(rows)])


@benchmark("socrates", answer_alone=True)
def read_socrates(path: str | Path) -> list[Case]:
    """Read the cases of SOCRATES, which has TwoHopFact's columns."""
    return read_twohopfact(path, "socrates")


def _case(row: Mapping[str, str], index: int, benchmark: str, where: str) -> Case:
    (bridge, bridge_names), (answer, names) = (_entity(row, e, where) for e in ("e2", "e3"))
    first, second, whole = (_asked(row, s, where) for s in _STATEMENTS)
    facts = [text_field(row, f"{s}.prompt", where).casefold() for s in _STATEMENTS[:2]]
    return Case(
        id=f"{benchmark}-{row.get('uid') or f'{index:05d}'}",
        question=whole,
        answer=answer,
        aliases=names,
        answer_type=type_of_words(answer),
        parts=(
            part(first, bridge, 1, bridge_names, atom=facts[0]),
            part(second, answer, 2, names, atom=facts[1]),
        ),
        benchmark=benchmark,
        family=row.get("category") or row.get("fact_comp_type") or None,
        depth=2,
        operation=row.get("fact_comp_type") or None,
        meta={k: row[k] for k in _ABOUT[2:] if row.get(k)},
    )


def _asked(row: Mapping[str, str], statement: str, where: str) -> str:
    with_blank = (row.get(f"{statement}.blank.prompt") or "").strip()
    return f"Fill in the blank: {with_blank or text_field(row, f'{statement}.prompt', where) + ' ____'}"


def _entity(row: Mapping[str, str], name: str, where: str) -> tuple[str, tuple[str, ...]]:
    value = text_field(row, f"{name}.value", where)
    for column in (f"{name}.aliases", f"{name}.minimal_aliases"):
        if (row.get(column) or "").strip():
            try:
                return value, others(value, _names(row[column]))
            except (ValueError, SyntaxError, RecursionError, MemoryError) as e:
                raise InputError(f"{where}: column {column!r} is {row[column][:80]!r}; give a list of names") from e
    return value, ()


@lru_cache(maxsize=65536)
def _names(text: str) -> tuple[str, ...]:
    """The texts of a nested list that is written as Python; the same entity comes back in many rows."""
    return tuple(_texts(ast.literal_eval(text.strip())))


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, list | tuple):
        for inner in value:
            yield from _texts(inner)
    elif value is not None:
        yield str(value)
