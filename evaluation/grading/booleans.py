"""Whether a text says yes or no, in the words and languages that models use."""

import re

from . import cues, view

_YES = (
    "yes yeah yep yup true correct affirmative indeed oui ja sí si sim да tak ya evet jawohl "
    "vero wahr vrai verdadero نعم हाँ हां"
)
_NO = "no nope false incorrect untrue negative non nein não нет nie tidak hayır falsch faux falso nee لا नहीं"
_ASIAN = {"是": True, "是的": True, "对": True, "はい": True, "네": True, "예": True}
_ASIAN |= {"不是": False, "否": False, "不": False, "いいえ": False, "아니요": False}
_VALUES = dict.fromkeys(_YES.split(), True) | dict.fromkeys(_NO.split(), False) | _ASIAN
_ENGLISH = "yes|yeah|yep|yup|nope|no|true|false|correct|incorrect|untrue|affirmative"
_SURELY = (
    r"(?:[\W_]|(?:most|very|highly|likely|probably|possibly|definitely|certainly|absolutely|almost|clearly|simply|just|well"
    r"|actually|technically|generally|usually|therefore|so|thus|it|is|that|that's|would|be|i|think|believe|say|sure|of"
    r"|course|maybe|perhaps|a|an|definite|resounding|the|answer|again|oh|ok|okay|hmm|sorry|to|not|really|quite)\b)*?"
)
_LEADING = re.compile(
    rf"^{_SURELY}(?P<word>{'|'.join(sorted(_VALUES, key=len, reverse=True))})"
    r"(?!\w|\s+(?:doubt|one|matter|wonder|question)\b)",
    re.IGNORECASE,
)
_SUBJECT = (
    r"(?:(?:so|therefore|thus|hence|of\s+course|absolutely|certainly|definitely|sure)[\s,]+)?"
    r"(?:it|he|she|they|there|you|we|one)(?:\s+(?:certainly|definitely|indeed|clearly))?"
)
_AUXILIARY = r"(?:is|are|was|were|do|does|did|ca|can|could|wo|will|would|has|have|had)"
_PHRASES = [
    (re.compile(pattern, re.IGNORECASE), said)
    for pattern, said in (
        (
            r"\W*(?:(?:absolutely|certainly|definitely|of\s+course)\s+not|not\s+(?:really|at\s+all)|no\s+way|wrong"
            r"|(?:unfortunately|sadly|regrettably|alas|probably|surely|clearly),?\s+(?:not|no)|i(?:'m|\s+am)\s+afraid\s+(?:not|no)"
            r"|by\s+no\s+means|(?:it|that|this)(?:(?:'s|\s+is)\s+(?:not\s+possible|impossible)|\s+isn't\s+possible)|impossible|never"
            r"|that(?:'s|\s+is)\s+(?:wrong|not\s+right)|i\s+(?:don't|do\s+not)\s+(?:think|believe)\s+so|i\s+doubt\s+it|n|f(?=\W*\Z))\s*(?:[,.!;:]|$)",
            False,
        ),
        (
            rf"\W*{_SUBJECT}(?:\s+{_AUXILIARY}(?:\s*n't|\s*not)(?:\s+have)?|\s+never\s+{_AUXILIARY}|'s\s+not|'re\s+not)\s*(?:[,.!;:]|$)",
            False,
        ),
        (rf"\W*{_SUBJECT}\s+{_AUXILIARY}\s*(?:[.!;]|:(?!\s*(?:yes|no|not)\b)|,\s(?:because|since|as)\b|$)", True),
        (
            r"\W*sure(?:ly)?,?\s+(?:you|it|he|she|they|we|one|there)\s+(?:can|could|may|do|does|did|will|would|has|have)\b(?!'|\s*not\b)",
            True,
        ),
        (
            r"\W*(?:absolutely|certainly|definitely|of\s+course|exactly|right|that(?:'s|\s+is)\s+right|without\s+(?:a\s+)?doubt"
            r"|no\s+doubt|i\s+(?:think|believe|would\s+say)\s+so|y|t(?=\W*\Z)|(?:it|they|he|she)\s+(?:sure|certainly|definitely|absolutely|indeed)\s+(?:is|are|was|were|does|do"
            r"|did|can|has|have))\s*(?:[,.!;:]|$)",
            True,
        ),
    )
]
"""Openings that answer without the words yes and no: "Absolutely, ...", "Not really.", "They can't."."""
_BOTH = re.compile(
    r"\b(?:yes\s*(?:and|or|/|&|\s)\s*no|no\s*(?:and|or|/|&|\s)\s*yes|true\s*(?:and|or|/|&)\s*false|both\s+yes|neither\s+yes|sometimes\s+yes"
    r"|it\s+depends|partly|partially\s+(?:true|correct)|not\s+necessarily|can(?:not|'t)\s+be\s+(?:determined|answered))\b",
    re.IGNORECASE,
)
_POLAR = re.compile(
    r"(?P<negated>(?:\bnot|n't|\bnever)\s+(?:really\s+|quite\s+|at\s+all\s+|entirely\s+|an?\s+)?"
    r"(?=yes|true|false|correct|incorrect|untrue))?"
    rf"(?<![\w'-])(?P<word>{_ENGLISH})\b(?!-)(?P<after>\s*[.,;:!)\"'\]]|\s*$|\s+(?:because|since|as|if|but)\b)?",
    re.IGNORECASE,
)
_TWICE = re.compile(
    r"\b(?:not|isn't|n't)\s+(?:true|correct)\s+that\b[^.;]*(?:\bnot\b|n't\b|\bno\b|\bnever\b)|\b(?:false|untrue|incorrect)"
    r"\s+that\b[^.;]*(?:\bnot\b|n't\b|\bno\b|\bnever\b)",
    re.IGNORECASE,
)
"""A denial that is denied."""
_REPORTED = re.compile(
    r"\b(?:people|many|some|most|others|they|you|one|everyone|everybody)\s(?:(?:might|may|would|will|could|often)\s)?"
    r"(?:say|think|answer|assume|guess|believe|argue)s?\W{1,3}\Z",
    re.IGNORECASE,
)
_DRAWN = re.compile(
    r"\b(?:so|therefore|thus|hence),?\s+(?:(?:the\s+answer|it|that)(?:'s|\s+is)\s+)?(?P<word>yes|no|true|false)\s*(?:[.!;,]|\Z)",
    re.IGNORECASE,
)
_HELD = re.compile(
    r"(?!\W*(?:if|unless|whether)\b)(?:[^,]*,)*\s*(?:then\s)?(?:the|this)\s(?:(?:whole|entire|overall|original|given)\s)?(?:statement|claim|assertion)"
    r"(?:,?\s(?:as|taken|overall)\b[\w\s]{0,20}?,?)?\s(?:is|was)\s(?:\w+ly\s|therefore\s|thus\s){0,2}(?:not\s)?(?:true|false)\W*\Z",
    re.IGNORECASE,
)
"""A sentence that ends with what it holds of the whole statement: "As such, the statement as it stands is false."."""
_SUBQUESTION = re.compile(r"\W*are\sfollow[-\s]?up\squestions\sneeded\shere\s?:\s*(?:yes|no)\b\W*", re.IGNORECASE)
"""The first line of a self-ask answer, which answers another question."""
_TAKEN_BACK = re.compile(
    r"wait|second|think|redo|scratch|strike|mistake|error|wrong|incorrect|not\s+right", re.IGNORECASE
)
"""Corrections after which the answer before them no longer counts, even where no other one follows."""
_NEGATIVE = re.compile(r"\b(?:impossible|never|not|no)\b|n't\b", re.IGNORECASE)
_DENIES = re.compile(r"\W*(?:(?:it|that|this)(?:'s|\s+is)\s+)?(?:impossible|never)\b", re.IGNORECASE)
_OPPOSITE = re.compile(r"\b(?:opposite|contrary|reverse|converse)\s(?:is|was)\s", re.IGNORECASE)
_NEAR = 400
"""Characters after a correction in which a conclusion may follow."""
_NEXT = 3
"""Sentences after a correction, one of which may open with the answer."""
_MOST = 60
"""Sentences that are looked at, half of them at the end."""
_ADJECTIVES = frozenset({"true", "false", "correct", "incorrect", "untrue"})


def value(word: str) -> bool | None:
    """The truth value of a gold answer ("yes", "False"), or None."""
    return _VALUES.get(word.strip(" .!\"'").casefold())


def announced(line: str, rest: str = "") -> bool | None:
    """Yes or no after an answer cue: the word that opens the line, else the only one that it says."""
    plain = view.plain(line[: cues.REACH])
    said = _corrected(plain)
    return said if said is not None or _BOTH.search(plain) else uncued(rest) if len(rest) > len(line) else None


def uncued(text: str) -> bool | None:
    """Yes or no in a text without a cue: what a conclusion says, else the word that opens it, else the only one."""
    plain = _SUBQUESTION.sub("", view.plain(text), count=1)
    parts = view.sentences(plain)
    if len(parts) > 1 and parts[0].endswith("?"):
        plain, parts = plain[plain.index("?") + 1 :], parts[1:]  # the question, repeated
    parts = parts if len(parts) <= _MOST else parts[: _MOST // 2] + parts[-_MOST // 2 :]
    if not parts:
        return None
    opened = _opens(plain) is not None  # "Yes, he lied. The statement was false."
    for sentence in reversed(parts[1:]):
        drawn = cues.concludes(sentence) or _DRAWN.search(sentence) or (not opened and _HELD.match(sentence))
        if drawn and (said := _sentence(sentence)) is not None:
            return said
    if _BOTH.search(parts[0]):
        return None
    first = _corrected(plain)
    if first is not None or _taken_back(plain) is not None:
        return first
    found = {said for s in parts if (said := _sentence(s)) is not None}
    return found.pop() if len(found) == 1 else None


def _corrected(plain: str) -> bool | None:
    """What the text says first, or after its last correction with an answer ("Yes. No wait, no.")."""
    for correction in reversed(cues.corrections(plain)):
        after = plain[correction.at :]
        if correction.word in ("no", "nope") and _opens(after) is None:
            after = f"{correction.word} {after}"
        following = view.sentences(after)[:_NEXT] if correction.sure else []
        if correction.sure and (drawn := _DRAWN.search(after[:_NEAR])):
            return _VALUES[drawn["word"].casefold()]
        if (said := next((v for s in (after, *following) if (v := _opens(s)) is not None), None)) is not None:
            return said
    if (later := _taken_back(plain)) is None:
        return _sentence(parts[0]) if (parts := view.sentences(plain)) else None
    found = {said for s in later if (said := _sentence(s)) is not None}
    return found.pop() if len(found) == 1 else None


def _taken_back(plain: str) -> list[str] | None:
    """What a text says after it takes an answer back ("No... wait, he died in 1791."); None if it takes none back."""
    found = next((c for c in cues.corrections(plain) if c.sure and _TAKEN_BACK.search(c.word)), None)
    if found is None or (_sentence(plain[: found.at]) is None and _opens(plain) is None):
        return None
    return view.sentences(plain[found.at :])[:_MOST]


def agrees_with_a_denial(text: str, question: str | None) -> bool:
    """Whether "Impossible" and "Never" may affirm, because the question has such a word itself."""
    return _DENIES.match(view.plain(text[:200])) is not None and _NEGATIVE.search(question or "") is not None


def opens(text: str) -> bool:
    """Whether a text begins with yes or no, in whatever words."""
    return _opens(view.plain(text[:400])) is not None


def _opens(text: str) -> bool | None:
    m = _LEADING.match(text[:200])
    if _TWICE.search(text[:200]):
        return None
    if m is None:
        return next((said for phrase, said in _PHRASES if phrase.match(text[:200])), None)
    before = text[: m.start("word")].casefold()
    negated = m["word"].casefold() in _ADJECTIVES and re.search(r"\bnot\b|n't\b", before) is not None
    return _VALUES[m["word"].casefold()] != negated


def _sentence(sentence: str) -> bool | None:
    """What one sentence says: its opening word, or all its polar words where they agree."""
    if _BOTH.search(sentence) or _TWICE.search(sentence) or _OPPOSITE.search(sentence):
        return None
    concluded = [word for m in _DRAWN.finditer(sentence) if (word := m["word"].casefold()) in ("yes", "no")]
    if concluded:  # "not so true" concludes nothing
        return _VALUES[concluded[-1]]
    if (said := _opens(sentence)) is not None:
        return said
    found = set()
    for m in _POLAR.finditer(sentence):
        word = m["word"].casefold()
        if _REPORTED.search(sentence, 0, m.start()):
            continue  # what others say
        if word in ("no", "yes", "nope") and m["after"] is None:
            continue  # "no evidence": a determiner, not an answer
        found.add(_VALUES[word] != bool(m["negated"]))
    return found.pop() if len(found) == 1 else None
