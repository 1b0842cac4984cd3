"""How a sentence mentions a name: asserted, denied, hedged, or in passing next to another name.

"The capital is Paris, which lies on the Seine" asserts Paris; "Thomas Jefferson, who preceded James Madison" mentions
Madison in passing. A mention in passing is neither right nor wrong by rule.
"""

import re
from collections.abc import Sequence
from enum import IntEnum
from itertools import islice

from . import denials, peoples, text
from .passing import PREPOSITIONS, SKIPPED, Mention, in_passing
from .view import ARTICLES, FINITE, SENTENCE_WORDS, Token, same_word

_LINKS = frozenset("#!?*.,-/&()'\"\u2013\u2014:")
"""Marks that may separate the words of one name: "Berkeley, California", "SR-71"."""
_NEGATED_VERB = frozenset("not never isnt wasnt arent werent".split())
_ALSO_CALLED = frozenset("also aka known called formerly simply formally more less about so".split())
_PREFIXES = frozenset("great step half ex co non anti vice".split())
_ENDING = re.compile(r"(?<=\w{3})(?:ing|ed|es|s|e)\Z")
_ALIKE_LETTERS = 6
_SHORTEST = 3
_PLACES = 8
"""Mentions of a name in a sentence that are looked at."""
_PLACING = frozenset(
    "new north northern south southern east eastern west western upper lower equatorial papua american british".split()
)
"""Words before a name that make it another name: "New York", "Northern Ireland"."""
_OR = ("oder", "ou", "oppure")
"""In small letters; the Oder is a river."""
_MAYBE = frozenset({"maybe", "perhaps", "possibly"})
_CONTINENTS = frozenset({("africa",), ("asia",), ("europe",)})


class Role(IntEnum):
    """The role of a mention; of several mentions of one name the greatest counts."""

    DENIED = 0
    HEDGED = 1
    PASSING = 2
    ASSERTED = 3


def best(sentence: Sequence[Token], names: Sequence[tuple[str, ...]]) -> Role | None:
    """The strongest role in which a sentence mentions one of ``names``; None where it names none of them."""
    sentence = [t._replace(word="or") if t.word in _OR and not t.capital else t for t in sentence]
    places = {place for name in names for place in _places(sentence, name)}
    # "franc" inside "the Swiss franc" is no mention of its own
    places -= {(i, j) for i, j in places for a, b in places if a <= i and j <= b and (a, b) != (i, j)}
    joined = _joined(sentence, sorted(places))
    roles = [_role(sentence, i, j, names) for i, j in joined if not _other_kin(sentence, i, j)]
    # "It is Spanish" may be about a gold answer "it", but not about Italian, whose code is "it"
    maybe = [name for name in names if len(name) > 1 or name == names[0]]
    if not roles and (
        any(peoples.adjective_in(sentence, name) for name in names) or any(_fuller(sentence, name) for name in maybe)
    ):
        return Role.PASSING
    return max(roles, default=None)


def inflected(said: Sequence[str], gold: Sequence[str], written: str) -> bool:
    """Whether a text has all words of a gold answer, one in another form: "planted trees" for "planting trees",
    "lactose intolerant" for "lactose intolerance". Another form of a name ("Austrian") is another word.
    """
    stems = {_ENDING.sub("", word): word for word in said}
    odd = [word for word in gold if word not in {*said, *PREPOSITIONS, *ARTICLES}]
    forms = [(word, stems.get(_ENDING.sub("", word), "")) for word in odd]
    found = all(
        (form and any(w.endswith(("ing", "ed")) for w in (word, form)))
        or (len(gold) > 1 and f" {word}" in f" {written}" and any(_akin(word, other) for other in said))
        for word, form in forms
    )
    return bool(forms) and found and not {"not", "never"} & {*said}


def _akin(a: str, b: str) -> bool:
    """Whether two words have most of their letters alike: "raspberry" and "raspberries"."""
    n = max(_ALIKE_LETTERS, -(-7 * max(len(a), len(b)) // 10))
    return a[:n] == b[:n] and len(b) >= n


def _joined(sentence: Sequence[Token], places: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """The places, those of names that are joined to one another in one: "Ann Lee and Bo Diaz", where both are right."""
    found: list[tuple[int, int]] = []
    for i, j in places:
        between = {t.word for t in sentence[found[-1][1] : i]} if found else set[str]()
        another = found and [t.word for t in sentence[: found[-1][0]]][-1:] == [","]  # "Cy Fox, Ann Lee and Bo Diaz"
        if between and between <= {",", "and", *ARTICLES} and not another and _begins(sentence, found[-1][0]):
            found[-1] = found[-1][0], j
        else:
            found.append((i, j))
    return found


def _begins(sentence: Sequence[Token], place: int) -> bool:
    """Whether the names at a place can be an answer: "by Ann Lee and Bo Diaz", not "the children of" both."""
    before = next((t.word for t in reversed(sentence[:place]) if t.word not in ARTICLES), "is")
    return before in {"is", "are", "was", "were", "by", "in", ":"}


def _other_kin(sentence: Sequence[Token], i: int, j: int) -> bool:
    """Whether a name is a part of another word: "mother-in-law", "great-grandson", "non-fiction"."""
    after = [t.word for t in sentence[j : j + 4] if t.word != "-"]
    before = [t.word for t in sentence[max(0, i - 2) : i]]
    return after[:2] == ["in", "law"] or (before[1:] == ["-"] and before[0] in _PREFIXES and not sentence[i].capital)


def _fuller(sentence: Sequence[Token], name: tuple[str, ...]) -> bool:
    """Whether a sentence has a name with more names inside it ("Marie S. Curie"), or begins with a small one."""
    if len(name) == 1:
        return name[0] in text.SMALL_WORDS and sentence[:1] != [] and sentence[0].word == name[0]
    return any(
        t.word == name[0]
        and later.word == name[-1]
        and all(x.capital or x.word in ("and", ".") for x in sentence[i + 1 : i + n])
        for i, t in enumerate(sentence)
        for n, later in enumerate(sentence[i + 1 : i + 4], 1)
        if n > len(name) - 1
    )


def _places(sentence: Sequence[Token], name: tuple[str, ...]) -> list[tuple[int, int]]:
    """The places of a name in a sentence, as (first, after the last) token; the last word may be a plural."""
    begins = (i for i, t in enumerate(sentence) if name and _same_word(t, name[0], len(name) == 1))
    if len(name) == 1 and name[0] in text.SMALL_WORDS:  # "the us", unlike "it is French" and "in Germany"
        last = [i for i, t in enumerate(sentence) if t.is_word][-1:] if len(sentence) <= _SHORTEST else []
        begins = (i for i in begins if i in last or (i and sentence[i].capital))
    return list(islice(((i, j) for i in begins if (j := _end(sentence, i, name))), _PLACES))


def _same_word(token: Token, word: str, last: bool) -> bool:
    """Whether a token is a word of a name; a country is no plural of its language ("Laos" for Lao)."""
    if word in (token.word, token.owner) or not same_word(token, word, last):
        return word in (token.word, token.owner)
    return not peoples.country_of(token.word, word) and not peoples.country_of(word, token.word)


def _end(sentence: Sequence[Token], i: int, name: tuple[str, ...]) -> int | None:
    at = i
    for n, word in enumerate(name):
        at = _after_nickname(sentence, at) if n else at
        while n and at < len(sentence) and (sentence[at].word in _LINKS or sentence[at].word in ARTICLES):
            at += 1
        if at >= len(sentence) or not _same_word(sentence[at], word, n == len(name) - 1):
            return None
        at += 1
    return at


def _after_nickname(sentence: Sequence[Token], at: int) -> int:
    """The place after a nickname in quotation marks or parentheses that begins here, or this place."""
    close = {'"': '"', "(": ")"}.get(sentence[at].word) if at < len(sentence) else None
    end = next((n for n in range(at + 2, min(at + 5, len(sentence))) if sentence[n].word == close), None)
    return at if end is None or not sentence[at + 1].capital else end + 1


def _role(sentence: Sequence[Token], i: int, j: int, names: Sequence[tuple[str, ...]]) -> Role:
    before, after = sentence[:i], sentence[j:]
    while len(before) > 2 and before[-1].word == "." and len(before[-2].word) == 1 and before[-2].capital:
        before = before[:-2]  # "Robert F. Kennedy" is no Kennedy of another name
    if before[-1:] and before[-1].word in _PLACING and sentence[i].word in {name for (name,) in _CONTINENTS}:
        if not _qualified(before[-1:], (sentence[i].word,), names):
            before = before[:-1]  # "which is in East Africa"
    if denials.denied(before, after):
        return Role.DENIED
    if _alternative(before, after, names):
        return Role.HEDGED
    name = tuple(t.word for t in sentence[i:j])
    if _qualified(before[-1:], name, names) or _begins_another(name, after, names) or _compound(sentence, i, j, names):
        return Role.PASSING
    slashed = [t.word for t in (*before[-1:], *after[:1])].count("/") > 0  # a name with a slash, or two names
    if (
        slashed
        or sentence[j - 1].owner is not None
        or _negated_subject(after)
        or in_passing(Mention(sentence, before, after, i))
    ):
        return Role.PASSING
    return Role.PASSING if _one_of_several(sentence, before, after, i) else Role.ASSERTED


def _qualified(before: Sequence[Token], name: tuple[str, ...], names: Sequence[tuple[str, ...]]) -> bool:
    """Whether the name is the end of another name: "Northern Ireland", "Canadian dollar" for "(Australian) dollar"."""
    if not before or not before[0].capital or not before[0].is_word or before[0].owner is not None:
        return False  # Japan's yen is the yen
    word = before[0].word
    if (word in SKIPPED | SENTENCE_WORDS and word != "new") or any((word, *name) == n[-len(name) - 1 :] for n in names):
        return False
    if name in _CONTINENTS:
        return word == "south" and name == ("africa",)  # East Africa lies in Africa; South Africa is a country
    return word in _PLACING or any(len(n) > len(name) and n[-len(name) :] == name for n in names)


def _begins_another(name: tuple[str, ...], after: Sequence[Token], names: Sequence[tuple[str, ...]]) -> bool:
    """Whether the name, which is the beginning of a longer gold one, begins another: "Leonardo DiCaprio"."""
    rests = ["".join(n[len(name) :]) for n in names if len(n) > len(name) and n[: len(name)] == name]  # or "DaVinci"
    named = after[:1] and after[0].is_word and after[0].capital and after[0].word not in FINITE
    return bool(rests and named) and not any(rest.startswith(after[0].word) for rest in rests)


def _compound(sentence: Sequence[Token], i: int, j: int, names: Sequence[tuple[str, ...]]) -> bool:
    """Whether a text of two words is another word that ends in the name: "sea lion"."""
    said = [t for t in sentence if t.is_word and t.word not in ARTICLES]
    if len(said) != 2 or j - i != 1 or said != [*sentence[max(0, i - 1) : j]] or said[0].owner:
        return False
    known = said[0].capital or said[1].capital or said[0].word in SKIPPED | SENTENCE_WORDS | FINITE | PREPOSITIONS
    return not known and not any((said[0].word, said[1].word) == n[-2:] for n in names)


def _alternative(before: Sequence[Token], after: Sequence[Token], names: Sequence[tuple[str, ...]]) -> bool:
    """Whether the name is one side of an "or" whose other side names something else."""
    left = [t.word for t in before if t.word not in ARTICLES and t.word not in "\"'"]
    right = [t for t in after if t.word not in "\"'"]
    if sum(t.word in _MAYBE for t in (*before, *after)) > 1:
        return True  # "maybe Lyon, maybe Paris"
    if left[-1:] and left[-1] in _MAYBE and left[-2:-1] == ["or"]:
        return True  # "Lyon, or perhaps Paris"; with a comma alone "or" may give a second name
    if [t.word for t in right[:2]] == [",", "or"] and len(right) > 2 and right[2].word in _MAYBE:
        return True
    if {"called", "known", "nicknamed", "named", "name", "referred"} & {*left[-6:]}:
        return False  # two names of one thing
    if left[-1:] == ["or"] and len(left) > 1 and left[-2] not in ("(", ","):
        return not any(tuple(left[-1 - len(name) : -1]) == name for name in names)
    if "either" in left[-8:]:
        return True
    if re.match(r"(?:,C+)+,?\|C", _coarse(after)):
        return True
    if len(right) > 1 and right[0].word == "or":
        following = tuple(t.word for t in right[1:])
        known = any(following[: len(name)] == name for name in names)
        return not known and following[0] not in _ALSO_CALLED
    return False


def _negated_subject(after: Sequence[Token]) -> bool:
    """ "X is not ...": the question may have asked which one is not."""
    nearest = [t.word for t in after[:2]]
    return bool(nearest) and (nearest[0] in _NEGATED_VERB or (nearest[0] in FINITE and nearest[1:] == ["not"]))


def _one_of_several(sentence: Sequence[Token], before: Sequence[Token], after: Sequence[Token], i: int) -> bool:
    """Whether the name is joined to others: "Romulus and Remus", "the Pacific, Atlantic and Indian Oceans"."""
    if not sentence[i].capital:
        return len(after) > 1 and after[0].word == "and" and (len(after) == 2 or not after[2].is_word)
    left, right = _coarse(before), _coarse(after)
    if re.match(r"(?:,w{1,2})+,&w", right):
        return True
    follows = next((t.word for t in after if t.is_word and not t.capital and t.word not in ("and", *ARTICLES)), "")
    if re.match(r"(?:,C+)*,?&C", right) and follows not in ("is", "was", "has"):
        return True
    if re.fullmatch(r"(?:[C.]+,){2,}&", left):
        return True  # "Rome, Oslo, and Lima"
    if follows in FINITE and left.endswith(",&"):
        return False  # "..., and Austin is its capital"
    return re.search(r"C&$|C,(?:C+,)*&$", left) is not None and not (follows and _new_clause(before))


def _coarse(tokens: Sequence[Token]) -> str:
    """Tokens as letters: C a capital, w another word, & "and", | "or", commas; without articles and quotation marks."""
    marks = {"and": "&", "or": "|", ",": ","}
    kept = (t for t in tokens if t.word not in ARTICLES and t.word != '"')
    return "".join(marks.get(t.word) or ("C" if t.capital else "w" if t.is_word else ".") for t in kept)


def _new_clause(before: Sequence[Token]) -> bool:
    """ ", and the capital of Texas is Austin": the "and" joins clauses."""
    left = [t.word for t in before if t.word not in ARTICLES]
    return len(left) > 1 and left[-1] == "and" and left[-2] == ","
