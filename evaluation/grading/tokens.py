"""The words and marks of a sentence, folded for comparison."""

from __future__ import annotations

import re
import unicodedata
from itertools import islice
from typing import NamedTuple

_TOKEN = re.compile(
    r"[\u3040-ヿ㐀-鿿가-\ud7af]|[^\W_\u3040-ヿ㐀-鿿가-\ud7af]+(?:'[^\W_]+)*(?:(?<=s)'(?=\s))?|[^\w\s]|_"
)
_INITIALS = re.compile(r"\b(?:[A-Z]\.\s?){2,}")
"""Initials are one word: "U.S.A.", "J. K." in "J. K. Rowling"."""
ARTICLES = frozenset({"a", "an", "the"})
_LONGEST = 400
"""Words and marks of a sentence."""
_IRREGULAR = {"mouse": "mice", "goose": "geese", "foot": "feet", "tooth": "teeth", "child": "children", "ox": "oxen"}
_IRREGULAR |= {"person": "people", "man": "men", "woman": "women"}


class Token(NamedTuple):
    """A word or mark of a sentence."""

    word: str
    """Folded: no case, no accents, no apostrophes; punctuation marks unchanged."""
    capital: bool
    owner: str | None = None
    """The word without its possessive ("paris" of "Paris's")."""

    @property
    def is_word(self) -> bool:
        return self.word[:1].isalnum()


def fold(word: str) -> str:
    """Lower case, without accents and apostrophes."""
    if word.isascii():
        return word.lower().replace("'", "")
    decomposed = unicodedata.normalize("NFD", unicodedata.normalize("NFKC", word).casefold())
    return "".join(c for c in decomposed if not unicodedata.combining(c)).replace("'", "")


def tokens(sentence: str) -> list[Token]:
    """Words and marks of a ``plain`` sentence, up to a length that no real sentence has."""
    found = []
    sentence = _INITIALS.sub(lambda m: re.sub(r"[.\s]", "", m[0]) + " ", sentence)
    for m in islice(_TOKEN.finditer(sentence), _LONGEST):
        raw = m[0]
        base = raw[:-2] if raw[-2:].casefold() == "'s" else raw[:-1] if raw.endswith("'") else None
        found.append(Token(fold(raw) or raw, raw[:1].isupper() or raw[:1].isdigit(), fold(base) if base else None))
    return found


def words(text: str) -> tuple[str, ...]:
    """The words of a name, without articles unless it has no others ("The Who")."""
    every = tuple(t.word for t in tokens(text) if t.is_word)
    return tuple(w for w in every if w not in ARTICLES) or every


def same(token: Token, word: str, last: bool) -> bool:
    if token.word == word or token.owner == word:
        return True
    plural = len(word) > 2 and len(token.word) > 2 and not word[-1].isdigit()
    return last and plural and (token.word in _plurals(word) or word in _plurals(token.word))


def _plurals(word: str) -> tuple[str, ...]:
    return word + "s", word + "es", re.sub("fe?$", "ves", word), re.sub("y$", "ies", word), _IRREGULAR.get(word, "")
