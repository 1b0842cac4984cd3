"""Whether an answer is in another script or language than the gold answer, so that its names cannot be compared.

    another("Die Hauptstadt ist Wien.", ["Vienna"])  # True

Only sentences tell their language: a single word ("Wien") is taken for a word of the gold answer's.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence

_VERBS = frozenset(
    "ist sind war waren wird heißt heisst liegt est sont était fut c'est es son fue era está se è sono era é são foi "
    "fica är var jest był była это является merupakan adalah là".split()
)
_SMALL = frozenset(
    "der die das den dem des ein eine einer von und im le la les du de un une et dans où el los las del en una y il lo "
    "gli di della che nella o os as da do na um uma het een van det en och w jest i na to yang của".split()
)
_ENGLISH = frozenset("the of is was are were and that which it this has have been by at from with".split())


def another(answer: str, golds: Sequence[str]) -> bool:
    """Whether the answer has no letter of the gold answers' scripts, or is a sentence in another language than English.

    A gold answer that is such a sentence itself is compared as any other.
    """
    theirs, ours = _scripts(answer), set[str]().union(*map(_scripts, golds))
    if theirs and ours:
        return not theirs & ours or (_foreign(answer) and not any(map(_foreign, golds)))
    return False


def _scripts(text: str) -> set[str]:
    return {unicodedata.name(c, "?").split()[0] for c in set(text[:400]) if c.isalpha()}


def _foreign(text: str) -> bool:
    said = set(re.findall(r"[^\W\d_]+(?:'[^\W\d_]+)?", text[:400].casefold().replace("\u2019", "'")))
    return bool(said & _VERBS) and bool((said & _SMALL) - _VERBS) and not said & _ENGLISH
