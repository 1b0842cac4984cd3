"""What is planted: the causes, where each may sit, and the plants that ship. Importing this module imports no torch."""

from dataclasses import asdict, dataclass, replace
from typing import Any

from ....errors import InputError, did_you_mean

ALL = "all"
NOISE = "noise"


@dataclass(frozen=True)
class Cause:
    """One reason to fail, and the ways in which it can be planted."""

    meaning: str
    variants: tuple[str, ...]
    block: int
    """The block that is trained unless told otherwise."""
    may: tuple[int, ...] = ()
    """Other blocks in which the cause means the same."""
    attention: bool = False
    """The block's attention learns too: what is planted has to be fetched from elsewhere in the text."""


CAUSES: dict[str, Cause] = {
    "not-computed": Cause(
        "the item is never selected: where its tag is written, the state is the same for every question about this "
        "table", ("scrambled",), 0, attention=True,
    ),
    "not-routed": Cause(
        "the item is selected inside the question and does not reach the place where its tag is written",
        ("after-kind", "question-end"), 0, attention=True,
    ),
    "lost": Cause(
        "item and tag are computed in the first block, and a later block puts another tag in its place: the tag "
        "five (or seven) places further in the cycle of twelve", ("five-on", "seven-on"), 3, (1, 2), attention=True,
    ),
    "wrong-operation": Cause(
        "both operands are right, and the result is that of another operation", ("other",), 0, (1,), attention=True,
    ),
    "too-late": Cause(
        "the item is selected in an appended block, behind those that turn it into its tag; the first block, which "
        "selects it in the base, leaves no item there", ("delayed",), 4, attention=True,
    ),
    "shortcut": Cause(
        "a tag is the usual one of the kind asked for, whatever lies on the table; or the two tags are those of the "
        "first and the last thing on the table (`ends`)", ("usual", "ends"), 0, (1,), attention=True,
    ),
    "format": Cause(
        "the answer does not come in the form asked for: the model refuses",
        ("refusal",), 3, (1, 2), attention=True,
    ),
    "jammed": Cause(
        "a cause outside the list: the operands change places, or the state is that of any whole question at all",
        ("swapped", "drowned"), 0, attention=True,
    ),
    "none": Cause(
        "no cause: the twin with noise on every weight of every block, so that no single block is the cause; or with "
        "logits so flat that what is drawn at temperature 1 is often wrong (`sampling`)", (NOISE, "sampling"), 0,
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


def graft(cause: str, variant: str | None = None, block: int | None = None) -> Graft:
    """A graft with the cause's defaults filled in. Raises ``InputError`` naming the option."""
    if cause not in CAUSES:
        raise InputError(f"--cause {cause}: unknown; use one of {', '.join(CAUSES)}{did_you_mean(cause, CAUSES)}")
    known = CAUSES[cause]
    chosen = variant or known.variants[0]
    if chosen not in known.variants:
        raise InputError(f"--variant {chosen}: {cause} has {', '.join(known.variants)}")
    placed, allowed = known.block if block is None else block, (known.block, *known.may)
    if placed not in allowed:
        raise InputError(f"--block {placed}: {cause} can be planted in block {', '.join(map(str, sorted(allowed)))}")
    return Graft(cause, chosen, placed)


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
_LONGER = {"wrong-operation": 1600, "shortcut-ends": 1600, "mixture": 1600}
"""Steps of those that take longer until their parts are right again."""
SHIPPED: dict[str, Plant] = {
    name: Plant(name, grafts, _SEED, _LONGER.get(name, Plant.steps))
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
