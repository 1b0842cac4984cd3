"""Countries, their peoples and languages: "Greece" and "Greek"; whether an answer is in another language.

One rule for all pairs of a country and its adjective. Where a country or another place is asked for, its adjective ("a
Brazilian city") names it in passing: no rule can tell whether it is meant. Where the adjective is the gold answer, a
language for example, the country is another answer, unless the question asks for a nationality.

    in_another_language("Die Hauptstadt ist Wien.", ["Vienna"])  # True: the names cannot be compared

Only sentences tell their language: a single word ("Wien") is taken for a word of the gold answer's.
"""

import re
import unicodedata
from collections.abc import Sequence
from itertools import pairwise

from .spellings import alike
from .view import Token

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
_MAN = re.compile(r"s?(?:wo)?m[ae]n$")
"""The end of "Frenchwoman" and "Scotsman"."""
_ENDINGS_OF_COUNTRIES = ("y", "ia", "land", "e", "stan")
_PLACING = frozenset({"in", "from", "at"})
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
    return at < 2 or not any(
        t.word in _PLACING and later.capital and later.word.isalpha() for t, later in pairwise(sentence[at:])
    )


def _made_from(word: str, name: str, capital: bool) -> bool:
    if len(name) >= _STEM and word.startswith(name):
        return word[len(name) :] not in _ENDINGS_OF_COUNTRIES
    return capital and _adjective(word, name)


def _adjective(word: str, place: str) -> bool:
    """Whether a word is a place's adjective, or made from it: "French", "Frenchman"."""
    return bool({word, _MAN.sub("", word)} & _adjectives(place))


def _adjectives(place: str) -> set[str]:
    stems = {stem for stem in (place, place.rstrip("aeiouy")) if len(stem) > 2}
    return {stem + ending for stem in stems for ending in _ENDINGS} | {a for p, a in _IRREGULAR if p == place}


def asks_for_nationality(question: str | None) -> bool:
    """Whether a question asks for what either the country or its adjective answers."""
    return _NATIONALITY.search(question or "") is not None


_IS_A = re.compile(
    r"\b(?:is|was|are|were)\s(?:\w+ly\s)?(?:an?\s|the\s)?([A-Z][^\W\d_]+)(?=\s*(?:[.,;]|$)|\s(?!(?:and|or|but)\b)[a-z])"
)
_BORN_IN = re.compile(r"\bborn\sin\s[^\W\d]", re.IGNORECASE)


def is_of(text: str, place: str) -> bool:
    """Whether a text says that somebody is or was of a place, with its adjective and no other: "a Japanese painter"."""
    said = [m[1].casefold() for m in _IS_A.finditer(text)]
    return bool(said) and all(_adjective(word, place.casefold()) for word in said)


def born_in_another(text: str, places: Sequence[str]) -> bool:
    """Whether a text says where somebody was born and names none of the places."""
    return _BORN_IN.search(text) is not None and not any(place in text for place in places)


def country_of(said: str, gold: str) -> bool:
    """Whether a word is the country whose adjective is the gold answer ("Italy" for "Italian")."""
    return gold in _adjectives(said) or said in {gold + ending for ending in _ENDINGS_OF_COUNTRIES}


_VERBS = frozenset(
    "ist sind war waren wird heißt heisst liegt est sont était fut c'est es son fue era está se è sono era é são foi "
    "fica är var jest był była это является merupakan adalah là".split()
)
_SMALL = frozenset(
    "der die das den dem des ein eine einer von und im le la les du de un une et dans où el los las del en una y il lo "
    "gli di della che nella o os as da do na um uma het een van det en och w jest i na to yang của".split()
)
_ENGLISH = frozenset("the of is was are were and that which it this has have been by at from with".split())


def in_another_language(answer: str, golds: Sequence[str]) -> bool:
    """Whether the answer has no letter of the gold answers' scripts, or is a sentence in another language.

    A gold answer that is such a sentence itself is compared as any other.
    """
    answer = alike(answer)
    theirs, ours = _scripts(answer), set[str]().union(*map(_scripts, golds))
    if theirs and ours:
        return not theirs & ours or (_foreign(answer) and not any(map(_foreign, golds)))
    return False


def _scripts(text: str) -> set[str]:
    return {unicodedata.name(c, "?").split()[0] for c in set(text[:400]) if c.isalpha()}


def _foreign(text: str) -> bool:
    said = set(re.findall(r"[^\W\d_]+(?:'[^\W\d_]+)?", text[:400].casefold().replace("\u2019", "'")))
    return bool(said & _VERBS) and bool((said & _SMALL) - _VERBS) and not said & _ENGLISH
