"""Whether a sentence names something in passing: in a clause about another name, or in one that is taken back.

    in_passing(Mention(sentence, before, after, i))  # Madison, in "Thomas Jefferson, who preceded James Madison"

``RULES`` are asked in their order, and the first that does not say None decides. Each shows sentences that it is about,
in which the name in question is X.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

from . import text
from .view import ARTICLES, FINITE, SENTENCE_WORDS, Token

SKIPPED = text.TITLES | {*"a an the by to of his her its their even also just old new former".split()}
"""Words between a relation and the name that it leads to."""
PREPOSITIONS = frozenset("of in at on as by to with after before for from against than under over".split())
_CONCEDING = frozenset("while whereas although though unlike".split())
_RELATIVE = frozenset("who whom whose which where when including".split()) | _CONCEDING
_INITIAL = frozenset("while although though whereas unlike if besides before after despite".split())
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
_BELIEVED = frozenset(
    "believe believes believed think thinks thought assume assumes assumed seem seems might may".split()
)
_ONCE_BELIEVED = frozenset(("thought", "believed", "assumed"))
_ONCE_ATTRIBUTED = frozenset(("attributed", "credited", "ascribed"))
_DESCRIBING = frozenset("is was are were has had speak speaks use uses belongs lies stands means".split())
_NO_VERBS = _RELATIVE | PREPOSITIONS | {"and", "or", *ARTICLES}
_BETWEEN = frozenset("by with after before against than to".split())
"""Prepositions that relate one to another ("who was married to X"); "as" and "of" name and describe."""
_COUNTED_FROM = frozenset("day days week weeks month months year years one".split())
_DISTANCE = frozenset("across far away km kilometers kilometres mile miles hour hours minutes".split())
_IN_USE = re.compile(r"(?:\w+ )?(?:is|are) (?:used|spoken)|is (?:the|an) (?:\w+ ){0,2}(?:language|currency|capital)")
_FEW = 3
"""Words of a subject that stands alone: "Pollen, which"."""
_REACH = 8
"""Words before a name among which a relative pronoun is looked for."""


@dataclass(frozen=True)
class Mention:
    """A name in a sentence."""

    sentence: Sequence[Token]
    before: Sequence[Token]
    after: Sequence[Token]
    i: int
    """Place of the name's first word in the sentence."""

    @cached_property
    def left(self) -> list[str]:
        return [t.word for t in self.before]

    @cached_property
    def right(self) -> list[str]:
        return [t.word for t in self.after]

    @property
    def follows(self) -> str:
        """The word or mark behind the name; empty at the end."""
        return self.right[0] if self.right else ""

    @cached_property
    def near(self) -> list[str]:
        """The last words before the name, without what only leads to it: "succeeded by his son" gives "succeeded"."""
        near = [w for w in [w for w in self.left if w not in "\"'"][-4:] if w.isalnum() or w in ","]
        while near and near[-1] in SKIPPED and near[-1] not in ("to", "of"):
            near.pop()
        joined = near[-1:] == ["and"] and near[-3:-2] and near[-3] in _RELATIONS  # "longer than cats and dogs"
        return near[:-2] if joined else near

    @cached_property
    def commas(self) -> list[int]:
        """Places of commas, opening brackets and dashes before the name."""
        return [n for n, w in enumerate(self.left) if w in (",", "(", "\u2014", "\u2013")]

    @property
    def head(self) -> Token | None:
        """What stands before the last comma."""
        return self.before[self.commas[-1] - 1] if self.commas[-1] else None

    @cached_property
    def clause(self) -> list[str]:
        """The words between the last comma and the name."""
        clause = self.left[self.commas[-1] + 1 :]
        while clause[-1:] and clause[-1] in ARTICLES and len(clause) > 1:
            clause.pop()  # "a tributary of the Danube"
        to_whom = len(clause) > 1 and clause[0] in PREPOSITIONS and clause[1] in ("whom", "which", "whose")
        return clause[1:] if to_whom else clause

    @property
    def named(self) -> bool:
        """Whether the name is one with a capital, and so is what stands before the last comma."""
        return self.head is not None and self.head.capital and self.sentence[self.i].capital

    def has_rival(self, end: int | None = None) -> bool:
        """Whether another name stands before: a capital inside the sentence, or an uncommon first word."""
        if not self.sentence[self.i].capital:
            return True
        words = (t for t in enumerate(self.before[:end]) if t[1].capital and t[1].is_word)
        return any(n or t.word not in SENTENCE_WORDS for n, t in words)


def in_passing(mention: Mention) -> bool:
    """Whether a name is mentioned in passing; otherwise it is asserted as far as these rules see."""
    return next((found for rule in RULES if (found := rule(mention)) is not None), False)


def _taken_back(m: Mention) -> bool | None:
    """ "X was the capital, but now it is Osaka", "many think X, but it is Osaka"."""
    if "but" not in m.right:
        return None
    then = m.right[m.right.index("but") :]
    over = m.follows in ("was", "were") and {"now", "today"} & {*then}
    close = m.left[-6:]
    doubted = {*close} & (_BELIEVED if "i" not in close else _ONCE_BELIEVED)
    attributed = {"long", "once", "formerly", "originally"} & {*m.left} and {*close} & _ONCE_ATTRIBUTED
    return True if over or {"actually", "really"} & {*then[:5]} or doubted or attributed else None


def _because(m: Mention) -> bool | None:
    """ "I'd use the spoon, because X is heavy"; not "leaves are green because of X"."""
    if "because" not in m.left[1:] or (m.left[-2:] == ["because", "of"] and {*m.left} & FINITE):
        return None
    since = m.left[-1 - m.left[::-1].index("because") :]
    return None if {",", "so", "therefore"} & {*since} else True


def _since(m: Mention) -> bool | None:
    """ "A spoon, since X is heavy"; not "a spoon, since the hammer is heavy, and X"."""
    left = m.left
    if left[-1:] == [","] or not any(n > 1 and w in ("since", "as") and left[n - 1] == "," for n, w in enumerate(left)):
        return None
    return "," not in left[left.index("since" if "since" in left else "as") :]


def _next_in_a_list(m: Mention) -> bool | None:
    """ "Aldrin was the first, X the second"."""
    if m.left[-1:] == [","] and m.follows == "the" and {*m.left} & FINITE and not {*m.right} & FINITE:
        return m.has_rival()
    return None


def _formerly(m: Mention) -> bool | None:
    """ "It used to be X", "it was once X"."""
    over = m.left[-2:-1] == ["was"] and m.left[-1] in ("once", "formerly", "previously")
    return True if over or m.left[-3:] == ["used", "to", "be"] else None


def _related(m: Mention) -> bool | None:
    """ "The day after X", "Jefferson was succeeded by X", "the son of X", "80 km from X"; not "in the south of X"."""
    near = m.near
    if len(near) > 1 and near[-1] in ("after", "before") and near[-2] in _COUNTED_FROM:
        return True
    away = near[-1:] == ["from"] and _DISTANCE & {*m.left[-6:]}
    within = m.left[-4:-2] == ["in", "the"]
    kin = len(near) > 1 and near[-1] in ("of", "to", "with", "from") and near[-2] in _KIN and not within
    if away or kin or (near and near[-1] in _RELATIONS and m.left[-3:] != ["none", "other", "than"]):
        return m.has_rival() or bool({"which", "who"} & {*m.left[-4:]})
    if len(near) > 1 and near[-1] == "after" and near[-2] not in ("named", "called"):
        return m.has_rival()
    return None


def _at_the_beginning(m: Mention) -> bool | None:
    """ "While X is larger, ...": the sentence is about what follows."""
    return True if m.left and m.left[0] in _INITIAL and "," not in m.left else None


def _in_brackets(m: Mention) -> bool | None:
    """ "Osaka (once larger than X)"; not "Osaka (X)", nor "Osaka (now X)"."""
    open_ = sum((w in "([") - (w in ")]") for w in m.left)
    if open_ <= 0 or (m.left[-1], m.follows) in (("(", ")"), ("[", "]")):
        return None
    return "(" not in m.left[-3:] or not {"or", "also", "aka", "now", "today"} & {*m.left[-3:]}


def _in_a_relative_clause(m: Mention) -> bool | None:
    """ "The country that X borders is Chad"; not "a physicist who was born in X"."""
    left = m.left
    for n in range(len(left) - 1, max(-1, len(left) - 1 - _REACH), -1):
        apart = n and "," in left[n - 1 if left[n - 1] not in PREPOSITIONS else max(0, n - 2) : n]  # ", to whom"
        if left[n] in ("who", "whom", "whose", "which", "that", "where") and not apart:
            if left[n] in ("who", "which") and _describes(left[n:]) and not (m.after and m.after[0].is_word):
                return False
            return _restricts(left[n:], m.follows) and (m.follows in FINITE or m.has_rival(n))
        if left[n] in ",;":
            return None
    return None


def _without_comma(m: Mention) -> bool | None:
    """The rules behind this one are about what follows a comma."""
    return None if m.commas else False


def _conceded(m: Mention) -> bool | None:
    """ "Osaka, unlike X", "Lima, although it is in Chile, whose capital is X"."""
    begins = (m.left[c + 2 if m.left[c + 1 : c + 2] == ["even"] else c + 1 :] for c in reversed(m.commas))
    first = next((c[0] for c in begins if c[:1] and c[0] not in _RELATIVE - _CONCEDING), "")
    return True if first in _CONCEDING or "unlike" in m.left[1:] else None


def _described(m: Mention) -> bool | None:
    """ "It is in Japan, where X is used", "Norway, whose capital is X": not in passing, except between commas."""
    said = " ".join(t.word for t in m.after if t.is_word)
    if m.clause[:1] == ["where"] and _IN_USE.fullmatch(said):
        return False
    if not m.clause or not _describes(m.clause):
        return None
    # between commas the clause is an aside: "Norway, whose capital is Oslo, uses the krone"
    goes_on = any(t.is_word and not t.capital for t in m.after)  # "born in Hyderabad, India." does not
    return m.follows == "," and goes_on and m.right[1] not in _NO_VERBS


def _behind_a_comma(m: Mention) -> bool | None:
    """ "Osaka, similar to X", "Pluto, after passing X", "Jefferson, who preceded X", "Tyler, a colleague of X"."""
    clause = m.clause
    if clause and clause[0] in ("just", "much", "similar", "compared"):
        return True
    if clause and clause[0] in ("before", "after") and clause[1:2] not in (["that"], ["this"]):
        return m.named
    if not clause and m.head is not None and m.head.word in _KIN and {"who", "which", "whose"} & {*m.left}:
        return True
    if clause and clause[0] in _RELATIVE:
        comma = m.commas[-1]
        alone = comma <= _FEW and not {*m.left[:comma]} & FINITE  # "Pollen, which they turn into honey"
        return clause[0] in _CONCEDING or m.named or alone
    if 1 < len(clause) <= 3 and clause[0] == "and" and "," not in clause and m.follows in FINITE:
        return m.has_rival(m.commas[-1])
    apposition = bool(clause) and clause[0] in ("a", "an", "the", "his", "her") and not {*clause} & FINITE
    return m.named and apposition and clause[-1] in ("of", "to", "with", "for")


Rule = Callable[[Mention], bool | None]
RULES: tuple[Rule, ...] = (
    _taken_back, _because, _since, _next_in_a_list, _formerly, _related, _at_the_beginning, _in_brackets,
    _in_a_relative_clause, _without_comma, _conceded, _described, _behind_a_comma,
)  # fmt: skip


def _restricts(clause: Sequence[str], follows: str) -> bool:
    """Whether a clause without a comma is still open: "the country whose capital is" is, "who wrote Emma is" not."""
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
    linked = [w for w in clause[2:] if w in PREPOSITIONS]
    return not {*clause} & (_KIN | _RELATIONS) and (not linked or linked[-1] not in _BETWEEN)
