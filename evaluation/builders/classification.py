"""Classification chains: "X is a Y" facts chained upward (Composition collapse, App. L: the cross-domain set).

A file of memberships is JSON lines or CSV: ``member``, ``class``, ``paraphrases`` (questions for the class in other
words; in CSV ``paraphrase_1``, ...), and if wanted ``id``, ``question``, ``aliases`` and ``domain``. Each member has
one class here, so that every chain has one answer. A case of depth d follows d memberships.
"""

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...errors import InputError
from ..case import Case, Part
from ..text_files import id_field, text_field
from .facts import aliases_of, paraphrases_of, rows_with_paraphrases

WHAT = "JSON lines or CSV with member, class and paraphrases"


@dataclass(frozen=True)
class Membership:
    """One step of a chain."""

    id: str
    member: str
    group: str
    """The class."""
    question: str
    paraphrases: tuple[str, ...]
    aliases: tuple[str, ...] = ()
    domain: str | None = None

    def as_part(self) -> Part:
        """The membership as an atom of a case."""
        return Part(
            self.question, self.group, "class", aliases=self.aliases, worked=f"{self.member}: {self.group}",
            paraphrases=self.paraphrases, atom=self.id,
        )  # fmt: skip


def read_memberships(path: str | Path, paraphrases: int | None = None) -> list[Membership]:
    """Read memberships; ``paraphrases`` is the number each must have (None: at least one).

    Raises ``InputError`` naming file, line and field, also for a member with two classes and for classes in a circle.
    """
    found = {
        where: _membership(row, n, paraphrases, where)
        for n, (where, row) in enumerate(rows_with_paraphrases(path, WHAT).items(), 1)
    }
    up: dict[str, str] = {}
    ids: dict[str, str] = {}
    for where, m in found.items():
        if (first := ids.setdefault(m.id, where)) != where:
            raise InputError(f"{where}: has the id {m.id!r} of {first}; ids are unique")
        key = m.member.casefold()
        if key in up:
            raise InputError(f"{where}: {m.member!r} has two classes; a chain has one answer, keep one")
        up[key] = m.group.casefold()
    for start in up:
        seen, at = {start}, up[start]
        while at in up:
            if at in seen:
                raise InputError(f"{path}: the classes of {start!r} form a circle; remove one of them")
            seen.add(at)
            at = up[at]
    return list(found.values())


def _membership(row: Mapping[str, Any], n: int, wanted: int | None, where: str) -> Membership:
    member, group = text_field(row, "member", where), text_field(row, "class", where)
    return Membership(
        id=id_field(row, f"class-{n:03d}"),
        member=member,
        group=group,
        question=str(row.get("question") or f"To which class does this belong: {member}?"),
        paraphrases=paraphrases_of(row, wanted, where),
        aliases=aliases_of(row, where),
        domain=str(row["domain"]) if row.get("domain") else None,
    )


def build(
    memberships: Sequence[Membership],
    depths: Sequence[int] = (2, 3, 4),
    per_cell: int = 30,
    seed: int = 0,
    *,
    benchmark: str = "cross-domain",
) -> list[Case]:
    """``per_cell`` chains of each depth, drawn among all that the memberships make. Equal arguments, equal cases.

    Raises ``InputError`` for depths under 2 or more chains than there are.
    """
    if not depths or min(depths) < 2:
        raise InputError(f"depths {tuple(depths)}: give depths of at least 2")
    above = {m.member.casefold(): m for m in memberships}
    classes = len({m.group.casefold() for m in memberships})
    rng = random.Random(seed)
    cases = []
    for depth in depths:
        chains = [c for m in memberships if (c := _chain(m, above, depth)) is not None]
        if len(chains) < per_cell:
            raise InputError(
                f"{len(memberships)} memberships make {len(chains)} chains of {depth} steps, {per_cell} are asked for; "
                "give more memberships or fewer cases"
            )
        drawn = rng.sample(chains, per_cell)
        cases += [_case(c, depth, n, classes, benchmark) for n, c in enumerate(drawn)]
    return cases


def _chain(start: Membership, above: Mapping[str, Membership], depth: int) -> tuple[Membership, ...] | None:
    chain = [start]
    while len(chain) < depth:
        following = above.get(chain[-1].group.casefold())
        if following is None:
            return None
        chain.append(following)
    return tuple(chain)


def _case(chain: Sequence[Membership], depth: int, n: int, classes: int, benchmark: str) -> Case:
    last = chain[-1]
    path = "the class" + " of the class" * (depth - 1)
    return Case(
        id=f"classification_chain-d{depth}-{n:03d}",
        question=f"What is {path} of {chain[0].member}? Go up one class at a time.",
        answer=last.group,
        parts=tuple(m.as_part() for m in chain),
        benchmark=benchmark,
        aliases=last.aliases,
        worked="; ".join(f"{m.member}: {m.group}" for m in chain) + f". So: {last.group}",
        family="classification_chain",
        depth=depth,
        # Chains share memberships: often the last ones, which they lead to.
        cluster=last.id,
        domain=chain[0].domain,
        operation="classify",
        chance=1 / classes,
        meta={"crossed": [m.id for m in chain[:-1]]},
    )
