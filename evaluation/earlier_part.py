"""Whether an answer to a whole is that of an earlier part: the model stopped at the bridge.

``earlier_part(case, "Porto is in Portugal.")`` is 1 if the first part asks in which country Porto is.
"""

from __future__ import annotations

import re
import unicodedata

from .case import Case, Part
from .grading import grade
from .grading.echo import content
from .grading.text import holds, plain


def earlier_part(case: Case, answer: str) -> int | None:
    """The number (from 1) of the earlier part that a text answers in place of the whole; None if there is none.

    An answer that holds the right one as well, or a name that the question has already, is not such an answer.
    """
    if case.answer_type != "text" or any(holds(answer, name) for name in (case.answer, *case.aliases)):
        return None
    earlier = [(number, part) for number, part in enumerate(case.parts[:-1], 1)]
    new = {n: [name for name in (p.answer, *p.aliases) if _is_new(name, answer, case)] for n, p in earlier}
    named = [n for n, names in new.items() if any(_names(answer, name) for name in names)]
    if not named and any(new.values()) and _leaves_out_what_is_asked(case, answer):
        named = [n for n, part in earlier if _answers(part, answer)]
    return next(iter(named), None)


def _is_new(name: str, answer: str, case: Case) -> bool:
    return holds(answer, name) and not holds(case.question, name)


def _leaves_out_what_is_asked(case: Case, answer: str) -> bool:
    """Whether a sentence has no word of what the last part asks for.

    "Porto is in Portugal." is no answer to "What is the capital of the country where Porto is?", while "Porto is the
    capital of Portugal." is one.
    """
    *earlier, last = case.parts
    asked = {*content(last.question)} & {*content(case.question)} - {w for p in earlier for w in content(p.question)}
    return bool(asked) and not asked & {*content(answer)}


def _answers(part: Part, answer: str) -> bool:
    found = grade(answer, "stop", part.answer, part.answer_type, part.aliases, question=part.question)
    return found.outcome == "correct"


def _names(answer: str, name: str) -> bool:
    """Whether an answer gives a name and does not just mention it.

    "Porto is the capital of Portugal" mentions Portugal. In "Bahasa Indonesia" and "in Manchester, UK" the word before
    it makes it part of another name.
    """
    raw, wanted = list(re.finditer(r"\w+", answer := unicodedata.normalize("NFC", answer))), plain(name).split()
    words = [plain(w.group()) for w in raw]
    for at in (i for i in range(len(words)) if wanted and words[i : i + len(wanted)] == wanted):
        before = [w for w in words[:at] if w not in ("the", "country")]
        other = at > 1 and raw[at - 1].group()[0].isupper() and answer[raw[at - 1].end()] not in ".:\n"
        if before[-1:] not in (["of"], ["in"], ["from"]) and not other:
            return True
    return False
