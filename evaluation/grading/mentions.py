"""How a sentence mentions a name: asserted, denied, hedged, or in passing next to another name.

"The capital is Paris, which lies on the Seine" asserts Paris; "Thomas Jefferson, who preceded James Madison" mentions
Madison in passing. A mention in passing is neither right nor wrong by rule.
"""

import re
from collections.abc import Sequence
from enum import IntEnum
from itertools import islice

from . import denials, peoples, text
from .view import ARTICLES, Token, same_word

_LINKS = frozenset("#!?*.,-/&()'\"\u2013\u2014:")
"""Marks that may separate the words of one name: "Berkeley, California", "SR-71"."""
_RELATIVE = frozenset("who whom whose which where when while whereas although though unlike including".split())
_INITIAL = frozenset("while although though whereas unlike if besides before after despite".split())
FINITE = frozenset(
    "is was are were has had have did does do can could will would became won lies lay remains "
    "served plays played".split()
)
_KIN = frozenset(
    "son daughter father mother brother sister wife husband widow widower nephew niece cousin uncle aunt grandson "
    "parents family ancestors ancestry "
    "parent predecessor successor student pupil teacher colleague friend opponent rival heir deputy alternative "
    "contrast opposite reference similar close next prior ahead north south east west northeast northwest southeast "
    "southwest "
    "border borders frontier vice adviser advisor mentor boss".split()
)
_RELATIONS = frozenset(
    "than succeeded succeeds succeeding preceded precedes preceding replaced replaces replacing followed follows "
    "following defeated defeats defeating beat beats beating overtook surpassed surpasses surpassing versus vs "
    "against besides beside alongside unlike like near nearby before borders bordering neighbouring neighboring "
    "adjoins facing overlooking leaving".split()
)
_SKIPPED = text.TITLES | {*"a an the by to of his her its their even also just old new former".split()}
SENTENCE_WORDS = frozenset(
    "the a an in on at it this that these those he she they we i there his her its their as for when while if so "
    "since from by during after before according however therefore thus hence yes no "
    "final answer both one another".split()
)
_BELIEVED = frozenset(
    "believe believes believed think thinks thought assume assumes assumed seem seems might may".split()
)
_ONCE_BELIEVED = frozenset(("thought", "believed", "assumed"))
_ONCE_ATTRIBUTED = frozenset(("attributed", "credited", "ascribed"))
_NEGATED_VERB = frozenset("not never isnt wasnt arent werent".split())
_ALSO_CALLED = frozenset("also aka known called formerly simply formally more less about so".split())
_DESCRIBING = frozenset("is was are were has had speak speaks use uses belongs lies stands means".split())
_PREPOSITIONS = frozenset("of in at on as by to with after before for from against than under over".split())
_NO_VERBS = _RELATIVE | _PREPOSITIONS | {"and", "or", *ARTICLES}
_BETWEEN = frozenset("by with after before against than to".split())
"""Prepositions that relate one to another ("who was married to X"); "as" and "of" name and describe."""
_SMALL_WORDS = frozenset("us it in as at he be am no on so i who".split())
"""Names that are also small words ("US", the symbol "He"): the capital tells, except at the start of a sentence."""
_PREFIXES = frozenset("great step half ex co non anti vice".split())
_SHORTEST = 3
_PLACES = 8
"""Mentions of a name in a sentence that are looked at."""
_PLACING = frozenset(
    "new north northern south southern east eastern west western upper lower equatorial papua american british".split()
)
"""Words before a name that make it another name: "New York", "Northern Ireland"."""
_CONCEDING = frozenset("while whereas although though unlike".split())
_COUNTED_FROM = frozenset("day days week weeks month months year years one".split())
_DISTANCE = frozenset("across far away km kilometers kilometres mile miles hour hours minutes".split())
_IN_USE = re.compile(r"(?:\w+ )?(?:is|are) (?:used|spoken)|is (?:the|an) (?:\w+ ){0,2}(?:language|currency|capital)")
_OR = ("oder", "ou", "oppure")  # in small letters; the Oder is a river
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
    roles = [_role(sentence, i, j, names) for i, j in places if not _other_kin(sentence, i, j)]
    if not roles and any(peoples.adjective_in(sentence, name) or _fuller(sentence, name) for name in names):
        return Role.PASSING
    return max(roles, default=None)


def _other_kin(sentence: Sequence[Token], i: int, j: int) -> bool:
    """Whether a name is a part of another word: "mother-in-law", "great-grandson", "non-fiction"."""
    after = [t.word for t in sentence[j : j + 4] if t.word != "-"]
    before = [t.word for t in sentence[max(0, i - 2) : i]]
    return after[:2] == ["in", "law"] or (before[1:] == ["-"] and before[0] in _PREFIXES and not sentence[i].capital)


def _fuller(sentence: Sequence[Token], name: tuple[str, ...]) -> bool:
    """Whether a sentence has a name with more names inside it ("Marie S. Curie"), or begins with a small one."""
    if len(name) == 1:
        return name[0] in _SMALL_WORDS and sentence[:1] != [] and sentence[0].word == name[0]
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
    if len(name) == 1 and name[0] in _SMALL_WORDS and len(sentence) > _SHORTEST:
        begins = (i for i in begins if i and sentence[i].capital)
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
        or _in_passing(sentence, before, after, i)
    ):
        return Role.PASSING
    return Role.PASSING if _one_of_several(sentence, before, after, i) else Role.ASSERTED


def _qualified(before: Sequence[Token], name: tuple[str, ...], names: Sequence[tuple[str, ...]]) -> bool:
    """Whether the name is the end of another name: "Northern Ireland", "Canadian dollar" for "(Australian) dollar"."""
    if not before or not before[0].capital or not before[0].is_word or before[0].owner is not None:
        return False  # Japan's yen is the yen
    word = before[0].word
    if (word in _SKIPPED | SENTENCE_WORDS and word != "new") or any(
        (word, *name) == n[-len(name) - 1 :] for n in names
    ):
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
    known = said[0].capital or said[1].capital or said[0].word in _SKIPPED | SENTENCE_WORDS | FINITE | _PREPOSITIONS
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


def _in_passing(sentence: Sequence[Token], before: Sequence[Token], after: Sequence[Token], i: int) -> bool:
    left = [t.word for t in before]
    right = [t.word for t in after]
    if right[:1] in (["was"], ["were"]) and "but" in right and {"now", "today"} & {*right[right.index("but") :]}:
        return True  # "Tokyo was the capital, but now it's Osaka."
    if "but" in right and {"actually", "really"} & {*right[right.index("but") : right.index("but") + 5]}:
        return True
    doubted = {*left[-6:]} & (_BELIEVED if "i" not in left[-6:] else _ONCE_BELIEVED)
    if {"long", "once", "formerly", "originally"} & {*left}:
        doubted |= {*left[-6:]} & _ONCE_ATTRIBUTED
    if doubted and "but" in right:
        return True
    caused = left[-2:] == ["because", "of"] and {*left} & FINITE  # "Leaves are green because of chlorophyll."
    if (
        "because" in left[1:]
        and not caused
        and not {",", "so", "therefore"} & {*left[-1 - left[::-1].index("because") :]}
    ):
        return True  # "I'd use the spoon, because the hammer is heavy."
    if any(w in ("since", "as") and left[n - 1] == "," for n, w in enumerate(left) if n > 1 and left[-1] != ","):
        return (
            "," not in left[left.index("since" if "since" in left else "as") :]
        )  # "A spoon, since the hammer is heavy."
    near = [w for w in [w for w in left if w not in "\"'"][-4:] if w.isalnum() or w in ","]
    while near and near[-1] in _SKIPPED and near[-1] not in ("to", "of"):
        near.pop()
    if left[-1:] == [","] and right[:1] == ["the"] and {*left} & FINITE and not {*right} & FINITE:
        return _has_rival(sentence, before, i)  # "Aldrin was the first, Armstrong the second"
    if left[-3:] == ["used", "to", "be"] or left[-2:] in (["was", "once"], ["was", "formerly"], ["was", "previously"]):
        return True
    if near[-1:] == ["and"] and near[-3:-2] and near[-3] in _RELATIONS:
        near = near[:-2]  # "longer than cats and dogs"
    if len(near) > 1 and near[-1] in ("after", "before") and near[-2] in _COUNTED_FROM:
        return True  # "the day after Saturday"
    away = near[-1:] == ["from"] and bool(_DISTANCE & {*left[-6:]})
    within = left[-4:-2] == ["in", "the"]  # "in the south of France"
    kin = len(near) > 1 and near[-1] in ("of", "to", "with", "from") and near[-2] in _KIN and not within
    if away or kin or (near and near[-1] in _RELATIONS and left[-3:] != ["none", "other", "than"]):
        return _has_rival(sentence, before, i) or bool({"which", "who"} & {*left[-4:]})
    if len(near) > 1 and near[-1] == "after" and near[-2] not in ("named", "called"):
        return _has_rival(sentence, before, i)
    if left and left[0] in _INITIAL and "," not in left:
        return True
    if sum((w in "([") - (w in ")]") for w in left) > 0 and not (
        after and (before[-1].word, after[0].word) in (("(", ")"), ("[", "]"))
    ):
        return "(" not in left[-3:] or not {"or", "also", "aka", "now", "today"} & {*left[-3:]}
    return _subordinate(sentence, before, after, i)


def _subordinate(sentence: Sequence[Token], before: Sequence[Token], after: Sequence[Token], i: int) -> bool:
    """Whether the name is part of a clause or an apposition that belongs to another name before it."""
    left = [t.word for t in before]
    follows = after[0].word if after else ""
    for n in range(len(left) - 1, max(-1, len(left) - 9), -1):
        apart = n and "," in left[n - 1 if left[n - 1] not in _PREPOSITIONS else max(0, n - 2) : n]  # ", to whom"
        if left[n] in ("who", "whom", "whose", "which", "that", "where") and not apart:
            if left[n] in ("who", "which") and _describes(left[n:]) and not (after and after[0].is_word):
                return False  # "a physicist who was born in Ulm."
            return _restricts(left[n:], follows) and (follows in FINITE or _has_rival(sentence, before[:n], i))
        if left[n] in ",;":
            break
    commas = [n for n, w in enumerate(left) if w in (",", "(", "\u2014", "\u2013")]
    if not commas:
        return False
    comma, head = commas[-1], before[commas[-1] - 1] if commas[-1] else None
    clause = left[comma + 1 :]
    while clause[-1:] and clause[-1] in ARTICLES and len(clause) > 1:
        clause.pop()  # "a tributary of the Danube"
    if len(clause) > 1 and clause[0] in _PREPOSITIONS and clause[1] in ("whom", "which", "whose"):
        clause = clause[1:]
    named = head is not None and head.capital and sentence[i].capital
    if "unlike" in left[1:] or _conceded(left, commas):
        return True
    said = " ".join(t.word for t in after if t.is_word)
    if clause[:1] == ["where"] and _IN_USE.fullmatch(said):
        return False  # "It is in Japan, where the yen is used."
    if clause and _describes(clause):
        # between commas the clause is an aside: "Norway, whose capital is Oslo, uses the krone"
        goes_on = any(t.is_word and not t.capital for t in after)  # "born in Hyderabad, India." does not
        return follows == "," and goes_on and after[1].word not in _NO_VERBS
    if clause and clause[0] in ("just", "much", "similar", "compared"):
        return True
    if clause and clause[0] in ("before", "after") and clause[1:2] not in (["that"], ["this"]):
        return named  # "Pluto, after passing Neptune"
    if head is not None and not clause and head.word in _KIN and {"who", "which", "whose"} & {*left}:
        return True
    if clause and clause[0] in _RELATIVE:
        bare = comma <= _SHORTEST and not {*left[:comma]} & FINITE  # "Pollen, which they turn into honey"
        return clause[0] in _CONCEDING or named or bare
    if len(clause) > 1 and clause[0] == "and" and "," not in clause and follows in FINITE and len(clause) <= 3:
        return _has_rival(sentence, before[:comma], i)
    verbs = any(w in FINITE for w in clause)
    # "Tyler Shultz, a colleague of Erika Cheung"
    return (
        named
        and not verbs
        and bool(clause)
        and clause[0] in ("a", "an", "the", "his", "her")
        and clause[-1] in ("of", "to", "with", "for")
    )


def _conceded(left: Sequence[str], commas: Sequence[int]) -> bool:
    """Whether a text ends in a clause that concedes, with relative clauses: "Lima, although it is in Chile, whose"."""
    begins = (left[c + 2 if left[c + 1 : c + 2] == ["even"] else c + 1 :] for c in reversed(commas))
    return next((c[:1] for c in begins if c[:1] and c[0] not in _RELATIVE - _CONCEDING), [""])[0] in _CONCEDING


def _restricts(clause: Sequence[str], follows: str) -> bool:
    """Whether a clause without a comma is still open: "the country whose capital is" is, "who wrote Emma is" is not."""
    verbs = [n for n, w in enumerate(clause) if n and w in FINITE]
    if clause[0] == "that":
        return follows in FINITE and bool(verbs)
    return len(verbs) < 2 if clause[0] == "whose" else not any(n > 1 for n in verbs)


def _describes(clause: Sequence[str]) -> bool:
    """Whether a relative clause says what its head is, has or is called, not how it relates to another.

    "Cologne, which was called Colonia", "Obama, who was a member of the Democrats", "Norway, whose capital is Oslo".
    """
    if len(clause) > 2 and clause[0] == "where":
        return clause[-1] in _DESCRIBING  # "Brazil, where the official language is Portuguese"
    if len(clause) > 2 and clause[0] == "whose":
        return clause[1] not in _KIN and bool({*clause[2:4]} & FINITE)
    if len(clause) < 2 or clause[0] not in ("who", "which") or clause[1] not in _DESCRIBING:
        return False
    linked = [w for w in clause[2:] if w in _PREPOSITIONS]
    return not {*clause} & (_KIN | _RELATIONS) and (not linked or linked[-1] not in _BETWEEN)


def _has_rival(sentence: Sequence[Token], before: Sequence[Token], i: int) -> bool:
    """Whether another name comes before: a capital inside the sentence, or an uncommon first word."""
    if not sentence[i].capital:
        return True
    return any(t.capital and t.is_word and (n or t.word not in SENTENCE_WORDS) for n, t in enumerate(before))


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
    if follows in FINITE and left.endswith(",&"):
        return False  # "..., and Austin is its capital"
    return re.search(r"C&$|C,(?:C+,)*&$", left) is not None and not _new_clause(before)


def _coarse(tokens: Sequence[Token]) -> str:
    """Tokens as letters: C a capital, w another word, & "and", | "or", commas; without articles and quotation marks."""
    marks = {"and": "&", "or": "|", ",": ","}
    kept = (t for t in tokens if t.word not in ARTICLES and t.word != '"')
    return "".join(marks.get(t.word) or ("C" if t.capital else "w" if t.is_word else ".") for t in kept)


def _new_clause(before: Sequence[Token]) -> bool:
    """ ", and the capital of Texas is Austin": the "and" joins clauses."""
    left = [t.word for t in before if t.word not in ARTICLES]
    return len(left) > 1 and left[-1] == "and" and left[-2] == ","
