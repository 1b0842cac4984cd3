"""Whether a sentence denies a name: "not Lyon", "nicht Lyon, sondern Paris", "\u4e0d\u662f\u91cc\u6602".

denied(tokens("not"), tokens(", but Paris"))  # True, for the name in between
"""

from collections.abc import Sequence

from .cues import NOT_TRUE
from .view import Token, fold

_NEGATORS = frozenset(
    "not never neither nor isnt wasnt arent werent dont doesnt didnt cant cannot wont wouldnt couldnt shouldnt "
    "hasnt havent without except excluding unlike incorrectly wrongly mistakenly falsely "
    "nicht kein keine keinen keiner keinem nao ikke pas niet inte".split()
)
_BEFORE_A_VERB = frozenset("no non nie ne \u043d\u0435".split())
"""Words of denial in Spanish, Italian, Polish, Russian and others, which deny the next word, or what follows the verb
"to be" after them."""
_IN_NAMES = frozenset("pas niet inte non nie ne".split())
"""Words of these that stand in names, too: "Pas-de-Calais", "Ne Win", "NE Germany". With a capital they deny only
what follows them at the beginning of a sentence, and "NE" nothing."""
_NOBODY = frozenset("no none nothing nobody".split())
_TO_BE = frozenset("es era fue eran fueron e fu sono furono jest byl byla bylo sa est etait".split())
_SCOPE_ENDS = frozenset(", ; : . ( \u2014 but sondern mais sino bensi ma mas maar lecz \u0430 \u043d\u043e".split())
_NOT_ONLY = frozenset(
    "only just until long nur seulement solo solamente soltanto somente apenas alleen geringerer anderer".split()
)
_ANY_BUT = ("anything", "anywhere", "anyone")
_INSTEAD = (
    *(("rather", "than"), ("instead", "of"), ("other", "than"), ("opposed", "to"), ("plutot", "que")),
    *((word, "but") for word in _ANY_BUT),
)
_WRONG = (["is", "wrong"], ["is", "incorrect"], ["was", "wrong"])
_HAN_BEFORE = ("\u4e0d\u662f", "\u5e76\u975e", "\u800c\u975e", "\u4e0d\u5728")
_JAPANESE = "\u3067\u306f\u306a \u3067\u306f\u3042\u308a\u307e\u305b\u3093 \u3058\u3083\u306a"
_KOREAN = "\uac00\uc544\ub2c8 \uc774\uc544\ub2c8"
_AFTER = tuple(map(fold, f"{_JAPANESE} {_KOREAN}".split()))
"""What follows a name that Japanese and Korean deny."""
_IS = frozenset("is was are were".split())
_RELATIVE = frozenset("that which who".split())
_TURNS = frozenset((",", "but", "rather", "instead"))
"""After which a sentence says what is true: "It is not true that it is Paris, it is Lyon."."""
_PRONOUNS = frozenset("it this he she they there".split())
_WITHOUT = frozenset("without except excluding".split())
_WINDOW = 7
"""Words before a name among which its denial is looked for."""


def denied(before: Sequence[Token], after: Sequence[Token]) -> bool:
    """Whether the words around a name deny it."""
    left = "".join(t.word for t in before[-2:])
    if left in _HAN_BEFORE or "".join(t.word for t in after[:8]).startswith(_AFTER):
        return True
    said = [t.word for t in before]
    if NOT_TRUE.match(" ".join(said[:9])) and not {*said} & _TURNS:
        return True
    return [t.word for t in after[:2]] in _WRONG or _before(before)


def _before(before: Sequence[Token]) -> bool:
    last = [t.word for t in before]
    for n, word in enumerate(reversed(last[-_WINDOW:])):
        at = len(last) - 1 - n
        following, earlier = last[at + 1] if n else "", last[max(0, at - 1) : at]
        if (word, following) in _INSTEAD:
            return n <= 3 and not {*last[max(0, at - 4) : at]} & _NOBODY  # "no one other than Ann" is Ann
        if word in _SCOPE_ENDS and not {*earlier} & {*_ANY_BUT}:
            return False
        if word in _IN_NAMES and before[at].capital and (word == "ne" or at or (n and following not in _TO_BE)):
            continue
        if (
            word in _NEGATORS
            and {*last[at + 2 :]} & _IS
            and (word in _WITHOUT or {*last[max(0, at - 2) : at]} & _RELATIVE)
            and not {*earlier} & _PRONOUNS
        ):
            return False  # "The country that has not won is Chad.", "the continent without a population is"
        if word in _NEGATORS:
            return following not in _NOT_ONLY
        if word in _BEFORE_A_VERB and (n == 0 or following in _TO_BE):
            return True
    return False
