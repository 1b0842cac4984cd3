"""The fact tables that ship as CSV files, and wrong answers of the same kind (decoys) near a number.

A cell holds one accepted answer, or several separated by ``|``.
"""

import csv
import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path


@dataclass(frozen=True)
class Entity:
    """Something that facts are about, or that answers them."""

    id: str
    """``country:france``: the same in every family."""
    phrase: str
    """As it stands in a question: "the Netherlands"."""
    names: tuple[str, ...]
    """Accepted as an answer, the gold one first."""


@cache
def rows(name: str) -> tuple[dict[str, str], ...]:
    """The rows of one table."""
    with Path(__file__).with_name(f"{name}.csv").open(encoding="utf-8", newline="") as file:
        return tuple(csv.DictReader(file))


def cells(cell: str) -> tuple[str, ...]:
    """What stands in a cell, between its ``|``."""
    return tuple(filter(None, cell.split("|")))


def entity(kind: str, cell: str) -> Entity:
    """The entity that a cell names; an article belongs to its phrase and not to the answer."""
    phrase, *others = cells(cell)
    gold = re.sub(r"^(?:the|an?) ", "", phrase)
    return Entity(f"{kind}:{slug(gold)}", phrase, (gold, *others))


def slug(text: str) -> str:
    """Lower-case ASCII words joined by hyphens."""
    return plain(text).replace(" ", "-")


@lru_cache(maxsize=65536)
def plain(text: str) -> str:
    """The words of a text without case, accents and punctuation: what a lenient comparison sees."""
    letters = unicodedata.normalize("NFD", text.replace("ł", "l").replace("đ", "d").casefold())
    return " ".join(re.findall(r"\w+", "".join(c for c in letters if not unicodedata.combining(c))))


def holds(text: str, answer: str) -> bool:
    """Whether an answer stands in a text, as whole words."""
    return f" {plain(answer)} " in f" {plain(text)} "


def sentence(text: str) -> str:
    """The text with a capital letter in front."""
    return text[:1].upper() + text[1:]


N = 4
"""Decoys of an answer, where there are as many."""


def nearest(numbers: Iterable[int], gold: int) -> list[str]:
    """The positive numbers nearest to the gold one, without it."""
    others = {n for n in numbers if n > 0 and n != gold}
    return [str(n) for n in sorted(others, key=lambda n: (abs(n - gold), n))[:N]]
