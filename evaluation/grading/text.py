"""Names and phrases: normalized equality, aliases, short sentences around the gold answer, and abstention."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from functools import lru_cache

from ..prompts import ABSTENTION

_ARTICLES = re.compile(r"\b(?:a|an|the)\b")
_KNOWN = r"(?:be )?(?:determined?|known?|found|find|tell|say|answer(?:ed)?|(?:provided?|given?) (?:an?|the) answer)"
_ABSTAIN = re.compile(
    r"^\W*(?:(?:i am|i'm|i|we|it|this|that|the (?:answer|year|date)|there|sorry|unfortunately|based on \w+ \w+"
    r"|as an ai(?: \w+){0,3}?)\b[\s,]*){0,4}"
    r"(?:do(?:es)? not know|don't know|not sure|unsure|not certain|uncertain"
    rf"|(?:cannot|can't|can not|could not|couldn't|unable to) {_KNOWN}|no idea|have no idea"
    r"|(?:is |are )?(?:insufficient|not enough|no) (?:information|evidence|data|context)"
    r"|unknown|n/?a\b|is (?:unknown|unclear)|is not (?:given|known|provided|specified))",
    re.IGNORECASE,
)
_REFUSE = re.compile(
    r"^\W*(?:i am (?:very )?sorry|sorry|i apologi[sz]e|my apologies|unfortunately)?[\s,.:;]*(?:but )?"
    r"i (?:(?:can't|cannot|won't|will not|am (?:not able|unable) to) "
    r"(?:help|assist|do that|comply|fulfill|discuss)|(?:must|have to) (?:respectfully )?(?:decline|refuse))",
    re.I,
)
_ABSTAIN_ELSEWHERE = re.compile(
    r"^\W*(?:(?:das )?wei(?:ß|ss) ich nicht|ich (?:wei(?:ß|ss) (?:es |das )?nicht|habe keine ahnung)"
    r"|je (?:ne )?sais pas|no lo s[eé]|(?:yo )?no s[eé]|non lo so|(?:eu )?não sei|ik weet het niet|nie wiem"
    r"|(?:я )?не знаю|(?:我)?不知道|(?:私は)?(?:わかりません|分かりません|知りません)|모르겠습니다)\W*$",
    re.I,
)
"""Nothing but "I do not know" in the languages that models drift into."""
_COMMITS = re.compile(
    r"\b(?:but|however|my (?:best )?guess|i (?:think|believe|would guess|guess)|probably|most likely)\b", re.I
)
_NEGATION = re.compile(r"\b(?:not|never|neither|nor|no|isnt|wasnt|arent|rather than|instead of|except)\b")
_OPENINGS = re.compile(
    r"^(?:so\b[\s,]*)?(?:(?:the|my)\s+(?:final\s+|correct\s+|right\s+)?answer\s+(?:is|was|are|would be)"
    r"|it(?:\s+is|\s+was|'s)|this\s+(?:is|was)|that\s+(?:is|was)|that's|they\s+(?:are|were)|these\s+are|answer)\b\s*:?\s*",
    re.I,
)
_BOOLEAN = re.compile(
    r"(?P<negated>(?:\bnot|n't|\bnever)\s+(?:really\s+|quite\s+|at\s+all\s+)?(?=true|false|correct|incorrect))?"
    r"\b(?P<word>yes|no|true|false|correct|incorrect)\b"
)
_ASKED_BACK = re.compile(r"^\W*[^?.!\n]{1,60}\?\s*(?:(?:no|yes)\b\W*)(?=\w)", re.I)
_LONGEST = 12
"""Words that a short sentence around a gold answer may have beyond the gold answer itself."""


@lru_cache(maxsize=65536)
def normalize(text: str) -> str:
    """Lower case, no punctuation, no articles, single spaces, compatible Unicode forms, LaTeX text unwrapped."""
    text = re.sub(r"\\(?:text|mathrm|mathbf|textbf|boxed)\s*\{([^{}]*)\}", r"\1", text)
    text = unicodedata.normalize("NFKC", text).casefold().replace("’", "'")
    text = "".join(c for c in unicodedata.normalize("NFD", text) if not unicodedata.combining(c))
    text = re.sub(r"'s\b", "s", text).replace("'", "")
    text = re.sub(r"[^\w\s]|_", " ", text)
    shorter = _ARTICLES.sub(" ", text)
    return " ".join((shorter if shorter.strip() else text).split())


def strip_opening(text: str) -> str:
    """The answer without the words that introduce it ("It is ...", "The answer is ...")."""
    return _OPENINGS.sub("", text.strip(), count=1)


def abstains(text: str) -> bool:
    """True where an answer declines to answer; a guess after the doubt ("..., but I think 1876") is an answer."""
    if ABSTENTION.replace("_", " ") in re.sub(r"[-_]", " ", text.upper()) or _ABSTAIN_ELSEWHERE.match(text):
        return True
    match = _ABSTAIN.match(text.replace("’", "'"))
    return bool(match) and not _COMMITS.search(text[match.end() :] if match else "")


def refuses(text: str) -> bool:
    """True where a model declines the request itself."""
    return bool(_REFUSE.match(re.sub(r"(?i)\bi'm\b", "I am", text.replace("’", "'"))))


def match(answer: str, golds: Sequence[str], consistency: bool = False) -> str | None:
    """How an answer matches one of ``golds`` (the gold answer first, then aliases), or None.

    ``exact`` and ``alias`` compare normalized texts; ``contained`` finds the gold answer in a short sentence without
    negation or another choice; with ``consistency`` the last name of a person or a longer form of the name counts.
    """
    # "London? No, Paris.": what is asked back is no answer
    answer = _ASKED_BACK.sub("", answer) or answer
    given = normalize(strip_opening(answer)) or normalize(answer)
    wanted = [normalize(g) for g in golds]
    if given and given == wanted[0]:
        return "exact"
    if given and given in wanted[1:]:
        return "alias"
    for gold in wanted:
        if gold and _contains(given, gold) and _commits_to(answer, given, gold):
            return "contained"
    if consistency and any(_partial_name(given, gold) for gold in wanted):
        return "consistency"
    return None


def _contains(text: str, phrase: str) -> bool:
    return f" {phrase} " in f" {text} "


def _commits_to(answer: str, given: str, gold: str) -> bool:
    short = len(given.split()) <= len(gold.split()) + _LONGEST
    before, _, after = f" {given} ".partition(f" {gold} ")
    before = re.sub(r"^.*\bbut(?: rather)?(?: it is)? $", " ", before + " ")  # "not London but Paris"
    hedged = re.search(r"\bor\s*$", before) or re.match(r"\s*or\b", after) or re.search(r"\beither\b", before)
    # a list of candidates is no choice
    listed = re.search(r"[,;/]", answer) is not None and len(given.split()) > 2 * len(gold.split()) + 4
    return (
        short
        and not hedged
        and not listed
        and not _NEGATION.search(before)
        and not re.match(r"\s*(?:is|was) not\b", after)
    )


def _partial_name(given: str, gold: str) -> bool:
    words = gold.split()
    return len(words) >= 2 and bool(given) and given == words[-1] and len(given) > 2 and not given.isdigit()


def boolean(text: str) -> bool | None:
    """Yes or no, as the first or the last such word of an answer; None where there is none or both ends differ."""
    plain = text.casefold().replace("’", "'")
    found = [(m["word"] in ("yes", "true", "correct")) != bool(m["negated"]) for m in _BOOLEAN.finditer(plain)]
    if not found:
        return None
    if re.match(r"\W*(?:yes|no|true|false)\b", plain):
        return found[0]
    return found[-1] if len(set(found)) == 1 else None
