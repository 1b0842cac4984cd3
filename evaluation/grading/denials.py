"""Whether a sentence denies a name: "not Lyon", "nicht Lyon, sondern Paris", "\u4e0d\u662f\u91cc\u6602".

denied(tokens("not"), tokens(", but Paris"))  # True, for the name in between
"""

from collections.abc import Sequence

from .view import Token, fold

_NEGATORS = frozenset(
    "not never neither nor isnt wasnt arent werent dont doesnt didnt cant cannot wont wouldnt couldnt shouldnt "
    "hasnt havent without except excluding unlike incorrectly wrongly mistakenly falsely "
    "nicht kein keine keinen keiner keinem pas niet nao ikke inte".split()
)
_BEFORE_A_VERB = frozenset(("no", "non", "nie", "ne", "\u043d\u0435"))
"""Words of denial in Spanish, Italian, Polish, Russian and others, which deny the next word, or what follows the verb
"to be" after them."""
_NOBODY = frozenset("no none nothing nobody".split())
_TO_BE = frozenset("es era fue son eran fueron e era fu sono furono jest byl byla bylo sa est etait".split())
_SCOPE_ENDS = frozenset(
    (
        ",",
        ";",
        ":",
        ".",
        "(",
        "but",
        "\u2014",
        "sondern",
        "mais",
        "sino",
        "bensi",
        "ma",
        "mas",
        "maar",
        "lecz",
        "\u0430",
        "\u043d\u043e",
    )
)
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
_AFTER = tuple(
    map(
        fold,
        (
            "\u3067\u306f\u306a",
            "\u3067\u306f\u3042\u308a\u307e\u305b\u3093",
            "\u3058\u3083\u306a",
            "\uac00\uc544\ub2c8",
            "\uc774\uc544\ub2c8",
        ),
    )
)
"""What follows a name that Japanese and Korean deny."""
_WINDOW = 7
"""Words before a name among which its denial is looked for."""


def denied(before: Sequence[Token], after: Sequence[Token]) -> bool:
    """Whether the words around a name deny it."""
    left = "".join(t.word for t in before[-2:])
    if left in _HAN_BEFORE or "".join(t.word for t in after[:8]).startswith(_AFTER):
        return True
    return [t.word for t in after[:2]] in _WRONG or _before([t.word for t in before])


def _before(last: Sequence[str]) -> bool:
    for n, word in enumerate(reversed(last[-_WINDOW:])):
        following = last[len(last) - n] if n else ""
        earlier = list(last[-2 - n : -1 - n])
        if (word, following) in _INSTEAD:
            return n <= 3 and not {*last[-5 - n : -1 - n]} & _NOBODY  # "no one other than Ann" is Ann
        if word in _SCOPE_ENDS and not {*earlier} & {*_ANY_BUT}:
            return False
        if word in _NEGATORS:
            return following not in _NOT_ONLY
        if word in _BEFORE_A_VERB and (n == 0 or following in _TO_BE):
            return True
    return False
