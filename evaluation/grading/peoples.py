"""A country and the adjective of its people or language: "Greece" and "Greek", "Germany" and "German".

One rule for all pairs. Where a country or another place is asked for, its adjective ("a Brazilian city") names it in
passing: no rule can tell whether it is meant. Where the adjective is the gold answer, a language for example, the
country is another answer, unless the question asks for a nationality.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise

from .tokens import Token

_STEM = 6
"""Letters that a name shares with any word made from it."""
_ENDINGS = ("n", "an", "ian", "ean", "ese", "nese", "i", "ish", "ic", "er")
"""Of an adjective that is made from a place by rule, after the whole name or after all but its last vowels."""
_OTHERS = """
poland polish, denmark danish, ireland irish, scotland scottish, england english, wales welsh, france french, spain
spanish, switzerland swiss, finland finnish, thailand thai, czechia czech, greece greek, netherlands dutch, holland
dutch, portugal portuguese, norway norwegian, turkey turkish, philippines filipino, cyprus cypriot, lebanon lebanese,
belgium belgian, congo congolese, peru peruvian, britain british, slovakia slovak, croatia croat, serbia serb, iraq
iraqi, kazakhstan kazakh, uzbekistan uzbek, afghanistan afghan, germany german, laos lao
"""
_IRREGULAR = {tuple(pair.split()) for pair in _OTHERS.split(",")}
"""(place, adjective) of those that no rule makes."""
_ENDINGS_OF_COUNTRIES = ("y", "ia", "land", "e", "stan")
_PLACING = frozenset({"in", "of", "from", "at"})
_NATIONALITY = re.compile(
    r"\b(?:nationalit\w+|citizens?\w*|origins?|ethnicit\w+|come\s+from|came\s+from)\b", re.IGNORECASE
)


def adjective_in(sentence: Sequence[Token], name: tuple[str, ...]) -> bool:
    """Whether a sentence has the adjective of a place ("Brazilian" of "Brazil"), or a longer word made from a name."""
    if len(name) != 1:
        return False
    at = next((i for i, t in enumerate(sentence) if t.is_word and _made_from(t.word, name[0], t.capital)), None)
    if at is None:
        return False
    # "founded by a French car maker in Italy" names another place; "the Brazilian team won in London" does not
    return at < 2 or not any(t.word in _PLACING and later.capital for t, later in pairwise(sentence[at:]))


def _made_from(word: str, name: str, capital: bool) -> bool:
    if word == name:
        return False
    if len(name) >= _STEM and word.startswith(name):
        return word[len(name) :] not in _ENDINGS_OF_COUNTRIES
    return capital and word in _adjectives(name)


def _adjectives(place: str) -> set[str]:
    stems = {stem for stem in (place, place.rstrip("aeiouy")) if len(stem) > 2}
    return {stem + ending for stem in stems for ending in _ENDINGS} | {a for p, a in _IRREGULAR if p == place}


def asks_for_nationality(question: str | None) -> bool:
    """Whether a question asks for what either the country or its adjective answers."""
    return _NATIONALITY.search(question or "") is not None


def country_of(said: str, gold: str) -> bool:
    """Whether a word is the country whose adjective is the gold answer ("Italy" for "Italian")."""
    return gold in _adjectives(said) or said in {gold + ending for ending in _ENDINGS_OF_COUNTRIES}
