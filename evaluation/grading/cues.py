"""Where a response says "this is my answer": cues, boxes, corrections and conclusions."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

MOST = 50
"""Greatest number of cues of a kind that are read, counted from the end."""
REACH = 2000
"""Characters after a cue that are read."""

_WORD = re.compile(
    r"(?:\banswers?|\b(?:solution|ans)(?=[*_ \t.]{0,4}[:=])"
    r"|\bverdict(?=[*_ \t]{0,4}:[*_ \t]{0,4}(?:yes|no|true|false)\b))\b",
    re.IGNORECASE,
)
_REFUSED = re.compile(
    r"\b(?:intermediate|partial|wrong|incorrect|previous|other|possible|alternative|candidate|if|whether|suppose|unless"
    r"|assuming|verify|check|what|which|how|no|any|another|each|every|this(?!\s(?:the|my|our)\b)|your|question|follow-?up|multiple|complete)"
    r"[ \t*_]+(?:that[ \t]+)?(?:(?:the|my|our|an?)[ \t]+)?(?:(?:final|correct|right|best)[ \t]+)?$",
    re.IGNORECASE,
)
"""Words before "answer" after which it is not a cue: "if the answer is", "Intermediate answer:"."""
_ASIDE = (
    r"(?:[\s*_]*\([^()\n]{0,120}\)|[ \t]*#?\d{1,2}\b|(?:,[^,.\n]{0,60},)"
    r"|[\s*_]+(?:to|for|of|in|here|from|that)\b[^.!?\n:=]{0,100}?)?"
)
_LINK = (
    r"(?:\s+(?:then\s+|therefore\s+|thus\s+|simply\s+)?(?:is|are|was|were|would\s+be|should\s+be|must\s+be|will\s+be"
    r"|has\s+to\s+be|could\s+be|might\s+be|may\s+be|comes?\s+(?:out\s+)?to|equals|becomes)\b"
    r"(?:\s+(?:given\s+by|as\s+follows|that|therefore|thus|then|simply|just))?"
    r"|\s*[*_`\"]*\s*(?:=|:|：|→|⇒|[-=]>|\u2014|\u2013|--|(?<=\s)-(?=\s)))"
)
_NO_ANSWER = (
    r"(?![ \t]+(?:obtained|found|given|based|derived|calculated|different|subjective|difficult|hard|complex|depend\w*"
    r"|unclear|outdated|inaccurate|incomplete|limited|not\s+(?:clear|obvious|simple|so))\b)"
)
_TAIL = re.compile(rf"[*_`]*{_ASIDE}[*_`]*{_LINK}{_NO_ANSWER}", re.I)
_HEADING = re.compile(r"(?:^|\n)[#*_>\s\d.]{0,12}(?:the\s+|my\s+|short\s+|final\s+|correct\s+){0,2}$", re.IGNORECASE)
_LINE_END = re.compile(r"[*_ \t]*(?=\n)")
_BEST = r"(?:most\s+)?(?:correct|right|best|likely|appropriate)"
_OTHER = {
    stem: re.compile(pattern, re.IGNORECASE)
    for stem, pattern in {
        "####": r"####",
        "option": rf"\b(?:the|my)\s+{_BEST}\s+option\s+(?:is|would\s+be)\b",
        "choice": rf"\b(?:the|my)\s+{_BEST}\s+choice\s+(?:is|would\s+be)\b",
        "letter": r"\b(?:the|my)\s+(?:correct|right)\s+letter\s+is\b",
        "réponse": r"\bréponse(?:\s+(?:finale|correcte))?\s*(?:est\b|:)",
        "antwort": r"\bantwort\s*(?:ist\b|lautet\b|:)",
        "respuesta": r"\brespuesta(?:\s+(?:final|correcta))?\s*(?:es\b|:)",
        "risposta": r"\brisposta(?:\s+(?:finale|corretta))?\s*(?:è(?!\w)|:)",
        "resposta": r"\bresposta(?:\s+(?:final|correta))?\s*(?:é(?!\w)|:)",
        "antwoord": r"\bantwoord\s*(?:is\b|:)",
        "odpowiedź": r"\bodpowiedź\s*(?:to\b|brzmi\b|:)",
        "svar": r"\bsvar(?:et)?\s*(?:är\b|er\b|:)",
        "ответ": r"\bответ\s*(?:[:\u2014\u2013-]|это\b)",
        "відповідь": r"\bвідповідь\s*[:\u2014\u2013-]",
        "cevap": r"\bcevap\s*:",
        "jawaban": r"\bjawaban(?:nya)?\s*(?:adalah\b|:)",
        "đáp án": r"\bđáp án\s*(?:là\b|:)",
        "答": r"答(?:案|え)?\s*(?:是|为|為|は|:|：)+",
        "正解": r"正解は",
        "답": r"정?답\s*(?:은|:)",
        "الجواب": r"الجواب\s*(?:هو|:)",
        "الإجابة": r"الإجابة\s*(?:هي|:)",
        "उत\u094dतर": r"उत\u094dतर\s*(?:ह\u0948|:)",
    }.items()
}
"""Other cues, each with a word that must occur for the search to be worth it: a mark, a choice, other languages."""
_SHORT = re.compile(r"^[ \t]*(?:\*\*)?A(?:\*\*)?[ \t]*:", re.MULTILINE)
"""A line that begins with "A:"; among choices this is an option."""
_FINISH = re.compile(r"\bFinish\[([^\n]+)\][.*_ \t]*(?=\n|\Z)")
"""The last step of an agent that writes its steps ("Action: Finish[Paris]")."""
_BOLD_LINE = re.compile(r"(?:^|\n)[ \t]*\*\*([^*\n]{1,80})\*\*[^\w\n*]*\s*\Z")
_DISPLAY = re.compile(r"^[\s*:]*(?:\$\$|\\\[|```\w*)[ \t]*\n")
"""A formula or a block of code that begins on the line after a cue."""
_WRAPPED = 72
"""Length of a line that may continue in the next one, in characters."""
_BLOCK = re.compile(
    r"^[\s*:]*\n\s*((?:(?:[-*•]|\d{1,2}[.)])[ \t]+[^\n]*(?:\n[ \t]*|$)){2,}|(?:\|[^\n]*(?:\n[ \t]*|$)){3,})"
)
"""A list of at least two lines, or a table, below a cue."""
_CORRECTION = re.compile(
    r"(?:(?:^|[.\u2026!?;,\u2014\u2013-])\s*|\n)(?:\(\s*)?"
    r"(?:(?:oh|hmm|uh|but|well|ah|oops|sorry|wait|no|actually|ok|okay)[\s,.\u2026!-]+)*"
    r"(?P<word>no(?=\s*[,.;!\u2014-])|nope|(?:no,?\s+)?wait|sorry(?!\s+(?:for|about|if|that|but|to)\b)|oops|actually|correction|scratch\s+that|strike\s+that"
    r"|i\s+mean|i\s+meant|or\s+rather|make\s+that|on\s+second\s+thou?ght?|let\s+me\s+(?:correct|re-?think|redo)"
    r"|i\s+(?:made|have\s+made)\s+an?\s+(?:mistake|error)|my\s+mistake|that(?:'s|\s+is|\s+was)\s+(?:wrong|incorrect|not\s+right))"
    r"\b",
    re.IGNORECASE,
)
_WAIT = re.compile(r"\b(?:wait|no|sorry|oops)\b", re.IGNORECASE)
_CONCLUSION = re.compile(
    r"^\W*(?:and\s+)?(?:so|therefore|thus|hence|consequently|accordingly|in\s+total|altogether|in\s+all|overall|finally|in\s+the\s+end"
    r"|in\s+conclusion|to\s+conclude|in\s+summary|in\s+short|as\s+a\s+result|as\s+such|this\s+(?:means|gives|leaves)|that\s+(?:means"
    r"|gives|leaves)|which\s+means|then|total|result|also|somit|daher|donc|por\s+lo\s+tanto|quindi|portanto)\b",
    re.IGNORECASE,
)

NOT_TRUE = re.compile(
    r"\W*(?:it|this|that)(?:'?s|\s(?:is|was))?\s?(?:(?:n't|not|isnt|wasnt|isn't|wasn't)\s(?:simply\s|actually\s)?(?:true|the\scase|case|correct|right)"
    r"|false|untrue|incorrect|wrong|(?:an?\s)?(?:common\s|popular\s)?(?:myth|misconception))\sthat\b",
    re.IGNORECASE,
)
"""The beginning of a sentence that denies all that follows: "It is not true that ..."."""
ELSEWHERE = r",\s(?:while|whereas|although)\s[^.;]{0,60}\bwould\s(?:be|have\sbeen)\s(?:on\s)?"
"""Before what would be so in another case: "It is the 5th, while in a leap year it would be the 7th"."""

_WORK = r"(?:this|that|it|(?:the|our|my|your)\s+(?:answer|result|work|sum|solution|calculation))"
_CHECK = re.compile(
    r"(?:\n[^\w\n]{0,8}(?:(?:sanity|double|quick)[ -]?)?"
    r"(?:check|verification|verify|to\s+(?:check|verify)|let(?:'s|\s+us)\s+(?:check|verify))\b[^\n]*"
    r"|(?:\n|(?<=[.!])[ \t])[^\w\n]{0,8}(?:(?:(?:sanity|double|quick)[ -]?)?(?:check|verification|proof)\s*:"
    rf"|(?:to\s+|let(?:'s|\s+(?:us|me))\s+)?(?:double-?\s?)?(?:check|verify)(?:\s+{_WORK})?\s*[,:]"
    rf"|(?:you|we|i)\s+can\s+(?:also\s+)?(?:double-?\s?)?(?:check|verify|confirm)\s+{_WORK}\b)"
    r"(?:(?!\s(?:so|therefore|thus|hence|the\s+(?:final\s+)?answer|final)\b)[^\n])*)"
    r"(?:\n(?!\W{0,8}(?:so|therefore|thus|hence|answer|final)\b)[^\n]*)*\Z",
    re.IGNORECASE,
)
"""What checks a result at the end, in lines or a sentence: "Check: 19 + 5 = 24."."""
_FAILS = re.compile(
    r"\b(?:wrong|incorrect|mistake|error|instead|should\s+be|not\s+(?:equal|right|correct|match\w*))\b|n't\b|\u2260"
)


_IF = re.compile(r"(?:\A|[.!?]\s|\n)[^\w\n]{0,8}if\b[^.!?\n]*\Z", re.IGNORECASE)
_IF_REACH = 200


@dataclass(frozen=True)
class Segment:
    """The text that an answer cue announces."""

    at: int
    """Where it begins in the text that was searched."""
    text: str
    ended: bool
    """Whether text follows, so that a response cut by its token limit was not cut here."""


def segments(text: str, letters: bool = False) -> list[Segment]:
    """The text after each cue and in each box, in order, empty texts included.

    With ``letters`` a line that begins with "A:" is an option, not a cue.
    """
    found = [Segment(at, content, closed) for at, content, closed in boxes(text)]
    found += [Segment(m.start(1), m[1].strip(), True) for m in list(_FINISH.finditer(text))[-MOST:]]
    found += [_after(text, at) for at in {*_cues(text, letters)}]
    if not found and (bold := _BOLD_LINE.search(text)):
        found.append(Segment(bold.start(1), bold[1].strip(), False))
    return sorted(found, key=lambda s: s.at)


def conditional(text: str, at: int) -> bool:
    """Whether a cue that ends here stands in a sentence that begins with "if": "If it is 2016, the answer is"."""
    return _IF.search(text[max(0, at - _IF_REACH) : at]) is not None


def first_cue(text: str) -> int | None:
    """Where the text after the first cue begins."""
    return min(_cues(text, False), default=None)


def _cues(text: str, letters: bool) -> Iterator[int]:
    """Where the text after each cue begins."""
    lower = text.lower()
    words = _WORD.finditer(text) if any(w in lower for w in ("ans", "solution", "verdict")) else ()
    for m in list(words)[-MOST:]:
        before = text[max(0, m.start() - 40) : m.start()]
        if _REFUSED.search(before):
            continue
        if tail := _TAIL.match(text, m.end(), m.end() + 200):
            yield tail.end()
        elif _HEADING.search(("\n" if m.start() <= 40 else "") + before) and (line := _LINE_END.match(text, m.end())):
            yield line.end()
    others = [pattern for stem, pattern in _OTHER.items() if stem in lower]
    for pattern in others if letters else [*others, _SHORT]:
        for m in list(pattern.finditer(text))[-MOST:]:
            yield m.end()


def _after(text: str, at: int) -> Segment:
    rest = text[at : at + REACH]
    whole = at + REACH >= len(text)
    if block := _BLOCK.match(rest):
        return Segment(at, block[1].strip(), not (whole and rest.endswith(block[1])))
    rest = _DISPLAY.sub("", rest).lstrip(" \t*_:\n：")
    line, newline, following = rest.partition("\n")
    if (
        line
        and line[-1] not in ".!?:;"
        and following[:1].isalnum()
        and len(line) + at - text.rfind("\n", 0, at) > _WRAPPED
    ):
        line = f"{line} {following.partition(chr(10))[0]}"  # a paragraph whose lines were broken
    if line.strip()[-1:] == ":" and newline:  # "The answer is as follows:" and the list below
        line, newline = rest, ""
    return Segment(at, line.strip(), bool(newline) or not whole)


def boxes(text: str) -> list[tuple[int, str, bool]]:
    """(position, content, closed) of every ``\\boxed{...}``, with nested braces."""
    found = []
    for m in list(re.finditer(r"\\boxed\s{0,3}\{", text))[-MOST:]:
        depth, i, last = 1, m.end(), min(len(text), m.end() + 400)
        while i < last and depth:
            depth += {"{": 1, "}": -1}.get(text[i], 0)
            i += 1
        found.append((m.start(), text[m.end() : i - 1 if depth == 0 else i].strip(), depth == 0))
    return found


@dataclass(frozen=True)
class Correction:
    """A place where a text corrects what it said before ("no, sorry, it's ...")."""

    at: int
    """Position after the words."""
    word: str
    sure: bool
    """False for words that may also just continue ("Actually, it is the largest city.")."""


def corrections(text: str) -> list[Correction]:
    """The corrections of a text in order; words at its very beginning are not a correction."""
    found = list(_CORRECTION.finditer(text))[-MOST:]
    begun = re.search(r"\w", text)
    own = (m for m in found if begun and begun.start() < m.start("word"))
    return [
        Correction(m.end(), w := m["word"].casefold(), w != "actually" or _WAIT.search(m[0]) is not None) for m in own
    ]


def corrected(text: str) -> str:
    """The text after its last certain correction; the whole text where it has none."""
    sure = [c for c in corrections(text) if c.sure and any(ch.isalnum() for ch in text[c.at :])]
    return text[sure[-1].at :] if sure else text


_SECOND = re.compile(
    r"\b(?:(?:but|though|although|or|however),?\s(?:it|this|that|he|she)\s(?:could|might|may)(?:\s(?:also|well|even))*\sbe"
    r"|(?:but|or)\s(?:maybe|possibly|perhaps))\s(?!\w+ed\b)",
    re.IGNORECASE,
)
"""Before a second guess: "I think it is B, but it could be A"."""


def guesses(text: str) -> tuple[str, str] | None:
    """The two answers of a sentence that gives a second one as possible; None for any other text."""
    found = _SECOND.search(text) if len(text) <= REACH else None
    if found is None or "\n" in text.strip():
        return None
    return text[: found.start()], re.split(r"[.;!)]\s|,\s(?=but\b)", text[found.end() :])[0]


def concludes(sentence: str) -> bool:
    """Whether a sentence draws a conclusion ("Therefore, ...")."""
    return _CONCLUSION.match(sentence) is not None


def without_check(text: str) -> str:
    """The text without a check of its result at its end, unless the check finds an error.

    >>> without_check("75 + 20 = 95. Check: 95 - 20 = 75.")
    '75 + 20 = 95.'
    """
    found = _CHECK.search(text)
    return text if found is None or _FAILS.search(found[0]) else text[: found.start()]
