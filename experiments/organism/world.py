"""The organisms' world: invented events with years, and things with a kind and a tag number.

This module holds everything that an organism can know: 48 dated events (temporal world), 48 things of 12 kinds, each
with a tag from 1 to 12 (mixed world), and the wordings of questions about single facts. Two of the six wordings of
every fact and a fifth of all combinations of facts are kept out of training.
"""

import hashlib
import random
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache

WORLD_SEED = 7
"""All organisms share one world: the seed of a training changes data and weights, never the facts."""

FIRST_YEAR, LAST_YEAR = 1402, 1988
TAGS = range(1, 13)
FAR_YEARS = 50
"""Two events that are more than this far apart are a far pair (Composition collapse, App. B: the depth-2 control)."""
HELD_OUT_SHARE = 5
"""One in this many combinations is never trained on."""

_PLACES = (
    "Amber Birch Cedar Dusk Elder Flint Grove Heron Ivory Juniper Kestrel Linden Marsh Nettle Otter Pebble "
    "Quarry Raven Saffron Thorn Umber Velvet Willow Yarrow"
).split()
_HAPPENINGS = ("moot", "siege", "pact", "flood", "fair", "march", "vote", "feast")

KINDS: dict[str, tuple[str, ...]] = {
    "edible": ("cake", "plum", "bread", "cheese"),
    "wearable": ("coat", "scarf", "glove", "boot"),
    "electric": ("drill", "fan", "radio", "toaster"),
    "musical": ("flute", "drum", "harp", "fiddle"),
    "readable": ("novel", "atlas", "diary", "leaflet"),
    "sharp": ("knife", "axe", "needle", "razor"),
    "floating": ("raft", "canoe", "buoy", "ferry"),
    "living": ("goat", "oak", "trout", "ant"),
    "drinkable": ("tea", "milk", "cider", "juice"),
    "breakable": ("vase", "goblet", "mirror", "plate"),
    "wheeled": ("cart", "bicycle", "tram", "scooter"),
    "flying": ("kite", "drone", "rocket", "glider"),
}

OPERATIONS = ("plus", "minus", "times", "divided by")

YEAR_WORDINGS = (
    "In what year was the {}?",
    "When did the {} happen?",
    "What is the year of the {}?",
    "Give the year of the {}.",
    "Which year saw the {}?",
    "The {} took place in which year?",
)
TAG_WORDINGS = (
    "What is the tag of the {}?",
    "Which tag is on the {}?",
    "What tag does the {} carry?",
    "Give the tag of the {}.",
    "Name the tag on the {}.",
    "The {} has which tag?",
)
KIND_WORDINGS = (
    "What kind of thing is the {}?",
    "Which kind fits the {}?",
    "What kind does the {} belong to?",
    "Give the kind of the {}.",
    "Name the kind of the {}.",
    "The {} is of which kind?",
)
_WORDINGS = {"year": YEAR_WORDINGS, "tag": TAG_WORDINGS, "kind": KIND_WORDINGS}


@dataclass(frozen=True)
class World:
    """All facts: the year of each event, the kind and tag of each thing."""

    years: dict[str, int]
    kinds: dict[str, str]
    tags: dict[str, int]

    @property
    def events(self) -> list[str]:
        return list(self.years)

    @property
    def things(self) -> list[str]:
        return list(self.kinds)

    def fact(self, relation: str, subject: str) -> str:
        """The answer to a single-fact question: ``relation`` is ``year``, ``tag`` or ``kind``."""
        table = {"year": self.years, "tag": self.tags, "kind": self.kinds}[relation]
        return str(table[subject])


@cache
def world() -> World:
    """The world, the same in every process."""
    rng = random.Random(WORLD_SEED)
    names = [f"{p}{h}" for i, p in enumerate(_PLACES) for h in (_HAPPENINGS[i % 8], _HAPPENINGS[(i + 3) % 8])]
    slots = list(range(FIRST_YEAR, LAST_YEAR, (LAST_YEAR - FIRST_YEAR) // len(names)))[: len(names)]
    rng.shuffle(slots)
    years = {name: slot + rng.randrange(7) for name, slot in zip(names, slots, strict=True)}
    kinds = {thing: kind for kind, things in KINDS.items() for thing in things}
    tags = [t for t in TAGS for _ in range(len(kinds) // len(TAGS))]
    rng.shuffle(tags)
    return World(years, kinds, dict(zip(kinds, tags, strict=True)))


def wordings(relation: str, subject: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The four trained and two held-out questions about one fact; the relation's main wording is always trained."""
    templates = _WORDINGS[relation]
    others = list(templates[1:])
    random.Random(f"{WORLD_SEED}/wordings/{relation}/{subject}").shuffle(others)
    return (tuple(t.format(subject) for t in (templates[0], *others[:3])), tuple(t.format(subject) for t in others[3:]))


def main_wording(relation: str, subject: str) -> str:
    """The wording that asks a fact as a sub-question."""
    return _WORDINGS[relation][0].format(subject)


@cache
def _held_out(key: frozenset[str]) -> bool:
    digest = hashlib.blake2b("|".join(sorted(key)).encode(), digest_size=4).digest()
    return int.from_bytes(digest, "big") % HELD_OUT_SHARE == 0


def held_out(members: Iterable[str]) -> bool:
    """Whether this combination of events or things belongs to evaluation and is never trained on."""
    return _held_out(frozenset(members))


def apply(operation: str, a: int, b: int) -> int | None:
    """``a operation b``, or None if that is not a positive whole number."""
    match operation:
        case "plus":
            return a + b
        case "minus":
            return a - b if a > b else None
        case "times":
            return a * b
        case "divided by":
            return a // b if b and a % b == 0 else None
    raise ValueError(f"operation {operation!r}: use one of {OPERATIONS}")
