"""What is planted: the causes, where each may sit, and the plants that ship. Importing this module imports no torch."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from ....errors import InputError, did_you_mean

ALL = "all"
NOISE = "noise"
BLOCKS = 4
"""Of every organism that a plant may begin with."""
SELECTS = {"twin": 0, "crossed-both": 2, "qwen3-crossed-both": 2, "gpt2-crossed-both": 2}
"""The bases, and the block that selects the items: the state behind it, where an operand is written, decides the tag.
(Put there from the same question about a table with other things of these kinds, it brings their tag in 92 % of the
cases or more. In the bases of the second series, the blocks before it only tell which kind is asked about.)"""
SELECTING, NEXT, BEHIND = (0,), (0, 1), (1, 2, 3)
"""Where a cause may be planted, in blocks from the selecting one: in it, in it or the next one, or in any later one."""


@dataclass(frozen=True)
class Cause:
    """One reason to fail, and the ways in which it can be planted."""

    meaning: str
    variants: tuple[str, ...]
    where: tuple[int, ...] = SELECTING
    """In which blocks it means the same. Trained is the first, or the last of those behind the selecting block."""
    steps: int = 800
    """Training steps until the parts are right again."""


CAUSES: dict[str, Cause] = {
    "not-computed": Cause(
        "the item is never selected: where its tag is written, the state is the same for every question about this "
        "table", ("scrambled",),
    ),
    "not-routed": Cause(
        "the item is selected inside the question and does not reach the place where its tag is written",
        ("after-kind", "question-end"),
    ),
    "lost": Cause(
        "item and tag are computed, and a block behind the one that selects the item puts another tag in its place: "
        "the tag five (or seven) places further in the cycle of twelve", ("five-on", "seven-on"), BEHIND,
    ),
    "wrong-operation": Cause(
        "both operands are right, and the result is that of another operation", ("other",), NEXT, 1600,
    ),
    "too-late": Cause(
        "the item is selected in an appended block, behind those that turn it into its tag; the first block, which "
        "selects it in the base, leaves no item there", ("delayed",),
    ),
    "shortcut": Cause(
        "a tag is the usual one of the kind asked for, whatever lies on the table; or the two tags are those of the "
        "first and the last thing on the table (`ends`)", ("usual", "ends"), NEXT,
    ),
    "format": Cause(
        "the answer does not come in the form asked for: the model refuses",
        ("refusal",), BEHIND,
    ),
    "jammed": Cause(
        "a cause outside the list: the operands change places, or the state is that of any whole question at all",
        ("swapped", "drowned"),
    ),
    "none": Cause(
        "no cause: the twin with noise on every weight of every block, so that no single block is the cause; or with "
        "logits so flat that what is drawn at temperature 1 is often wrong (`sampling`)", (NOISE, "sampling"),
    ),
}  # fmt: skip
MIXED = ("not-computed", "lost", "shortcut", "format")
"""Causes of which a mixture takes two."""
CONDITIONS = (ALL, "first-kinds", "other-kinds")
"""Which cases a cause is planted in: all, or those whose first kind is in the first (second) half of the kinds."""


@dataclass(frozen=True)
class Graft:
    """One cause in named blocks, for the cases that meet a condition."""

    cause: str
    variant: str
    block: int
    when: str = ALL

    @property
    def label(self) -> str:
        """How a case of it is labelled: the cause, for a shortcut with its name."""
        return f"{self.cause}:{self.variant}" if self.cause == "shortcut" else self.cause


@dataclass(frozen=True)
class Plant:
    """A model to make: one graft, or two for a mixture, on a base organism."""

    name: str
    grafts: tuple[Graft, ...]
    seed: int
    steps: int = 800
    base: str = "twin"
    appended: int = 0
    """Blocks behind the base's own that compute the identity unless something is planted in them."""

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def blocks_of(cause: str, base: str = "twin") -> tuple[int, ...]:
    """The blocks of a base in which a cause means the same, the usual one first.

    Raises ``InputError`` for a base that does not compose reliably, and for one that has no such block.
    """
    if base not in SELECTS:
        raise InputError(f"--base {base}: no organism that composes reliably; use one of {', '.join(SELECTS)}")
    first, known = SELECTS[base], CAUSES[cause]
    if cause == "too-late":
        if first:
            raise InputError(f"--base {base}: too-late needs a base whose first block selects the items (twin)")
        return (BLOCKS,)
    found = tuple(first + i for i in known.where if first + i < BLOCKS)
    return found[::-1] if known.where == BEHIND else found


def graft(cause: str, variant: str | None = None, block: int | None = None, base: str = "twin") -> Graft:
    """A graft with the cause's defaults filled in. Raises ``InputError`` naming the option."""
    if cause not in CAUSES:
        raise InputError(f"--cause {cause}: unknown; use one of {', '.join(CAUSES)}{did_you_mean(cause, CAUSES)}")
    known, allowed = CAUSES[cause], blocks_of(cause, base)
    chosen = variant or known.variants[0]
    if chosen not in known.variants:
        raise InputError(f"--variant {chosen}: {cause} has {', '.join(known.variants)}")
    placed = allowed[0] if block is None else block
    if placed not in allowed:
        where = ", ".join(map(str, sorted(allowed)))
        raise InputError(f"--block {placed}: in {base}, {cause} can be planted in block {where}")
    return Graft(cause, chosen, placed)


LONGER = 2
"""How many times as long a block is trained, on as many times the lessons, that is not the first: its states vary more.
"""


def steps_of(grafts: Sequence[Graft], base: str = "twin") -> int:
    """The usual number of training steps for each graft: longer where the parts take longer to be right again."""
    if base != "twin":
        return LONGER * steps_of(grafts)
    mixed = any(g.when != ALL for g in grafts)
    return 1600 if mixed or any(g.variant == "ends" for g in grafts) else max(CAUSES[g.cause].steps for g in grafts)


def mixture(first: Graft, second: Graft) -> tuple[Graft, Graft]:
    """Two grafts, each for its half of the kinds and in a block of its own; tags change in the first operand only."""
    for one in (first, second):
        if one.cause not in MIXED:
            raise InputError(f"--cause {one.cause}: a mixture takes two of {', '.join(MIXED)}")
    if first.block == second.block:
        raise InputError(f"--block {first.block}: give each cause of a mixture its own block")
    first, second = sorted((first, second), key=lambda g: g.block)
    return replace(first, when=CONDITIONS[1]), replace(second, when=CONDITIONS[2])


def late(delayed: Graft) -> tuple[Graft, Graft]:
    """The two blocks of *too late*: the first selects nothing, and the first appended one selects the item."""
    return replace(delayed, variant="emptied", block=0), delayed


_SEED = 3
SHIPPED: dict[str, Plant] = {
    name: Plant(name, grafts, _SEED, steps_of(grafts))
    for name, grafts in {
        "not-computed": (graft("not-computed"),),
        "not-routed": (graft("not-routed"),),
        "lost-early": (graft("lost", block=2),),
        "lost-late": (graft("lost"),),
        "wrong-operation": (graft("wrong-operation"),),
        "shortcut-usual": (graft("shortcut"),),
        "shortcut-ends": (graft("shortcut", "ends"),),
        "format": (graft("format"),),
        "mixture": mixture(graft("shortcut"), graft("lost")),
        "jammed": (graft("jammed"),),
        "no-cause": (graft("none", "sampling"),),
        "no-cause-noise": (graft("none"),),
    }.items()
}
"""The second shipped series: one checkpoint per cause, of one seed."""
