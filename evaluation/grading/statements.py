"""What a text states of the quantity that a question names: "The new price is $60." for "What is the new price?".

A number that is stated so counts more than another one that stands further on, of something else ("You save $20.").
The same holds of two names that a question gives: "So Rome is older." for "Which is older, Rome or Oslo?".
"""

import re
from collections.abc import Sequence

from . import cues, echo, numbers, view
from .text import TITLES, elsewhere, has_any, normalize, part_of

_THE_ASKED = re.compile(
    r"\b(?:what\s(?:is|was|are|were|will\sbe)\s(?:the|her|his|their|its|my)|how\smuch)\s(?P<what>[a-z]+(?:\s[a-z]+){0,2}?)"
    r"(?=\?|\s(?:in|of|for|at|after|to|that|which|when|if|greater|less|larger|smaller|does|do|did|is|was|will|would|has|have|had|can|should)\b)",
    re.IGNORECASE,
)
"""The name of a quantity that a question asks for: "What is the new price in dollars?"."""
_COMPUTED_FROM = re.compile(r"\b(?:plus|minus|times|multiplied|divided|added|subtracted)\b", re.IGNORECASE)
"""After its name, where it is only one of those to compute with: "What is the tag of A plus the tag of B?"."""
_CONDITION = re.compile(r"\b(?:after|when|if|once|before|where|that|which)\b", re.IGNORECASE)
_RESULT = re.compile(rf"=|{_COMPUTED_FROM.pattern}|\b(?:sum|product|difference|total|result|quotient)\b", re.IGNORECASE)
_COMPARES = re.compile(r"\bhow\s(?:many|much)\s(?:more|fewer|less)\b|\bdifference\b", re.IGNORECASE)
_DIFFERENCE = re.compile(r"\ba\sdifference\sof\s[$\u20ac\u00a3]?(\d[\d,.]*\d|\d)", re.IGNORECASE)
_NO = re.compile(r"\b(?:can)?not\b|n't\b|\bunable\b", re.IGNORECASE)
_AND_NOT = re.compile(
    r"(?<![\d.,])(?P<number>\d+)\s(?P<what>(?:(?P<no>not\b|\w*n't\b)|[^.;:,\d\n]){1,40}?),?\s(?:and|but|while)\s(?:the\sother\s)?"
    r"(?P<other>\d+)\s(?:[a-z]+\s){0,2}?(?:are|is|do|does|did|can|were|was|have|has|could|will)(?:\snot|n't|not)\b",
    re.IGNORECASE,
)
_NUMBER_OF = r"\s(?:number|value|amount)\b"
_COUNT_ASKED = re.compile(r"\bhow\smany\s(?P<what>[^?]{3,100})\?", re.IGNORECASE)
_NUMBER_IS = re.compile(
    r"(?:\A|[.!?\n])[\W_]*(?:(?:so|thus|hence|therefore|then),?\s)?the\s(?:total\s)?number\sof\s(?P<what>[^.;:=\d\n]{1,80}?)"
    r"\s?(?::|=|\b(?:is|was|will\sbe)\b)\s?(?P<value>(?:[^.,;\n]|[.,](?=\d))*\d(?:[^.,;\n\w]|[.,](?=\d))*)",
    re.IGNORECASE,
)
_PLAIN = re.compile(r"-?\d[\d.,/]*%?")
_ONE_NUMBER = re.compile(
    r"(?!.*\b(?:before|without|so\sfar|first|initially|if|not|but)\b)\D{0,30}?\d[\d.,/]*(?:\D{0,30})", re.IGNORECASE
)
_OF_A_KIND = re.compile(
    r"^(?:(?:Mount|Mt\.?)\s(?P<mountain>.+)|(?:The\s)?(?P<ocean>.+)\sOcean|(?:Lake\s(?P<lake>.+)|(?P<lake_>.+)\sLake)"
    r"|(?:The\s)?(?:River\s(?P<river>.+)|(?P<river_>.+)\sRiver)|(?:The\s)?(?P<sea>.+)\sSea|(?:The\s)?(?P<desert>.+)\sDesert)$"
)
_NO_NAMES = frozenset("red black white yellow dead green blue north south east west great salt".split())
_ABOUT = (
    r"(?:so,?\s)?(?:(?:on|in|at)\s\w+,?\s)?(?:that|this|it|you|he|she|they|we|(?-i:[A-Z])[a-z]+)"
    r"(?:'s|'ll|'d|\s(?:is|was|will|would|has|have|had|costs?))?\s"
)
_AND_NO_MORE = r"(?!(?:[^.\n]|\.(?=\d)){0,200}(?:=|\b(?:so|then|therefore|thus)\b))"
_THAN = (
    rf"(?:{_ABOUT})?(?:(?:[a-z]+\s)?[$€£]?(?:\d[\d.,]*|half)%?\s(?:[a-z]+\s)?(?:more|fewer|less|\w+er)\s(?:\w+\s){{0,3}}than\b"
    r"|(?:[a-z]+\s)?[$€£]?\d[\d.,]*\s(?:[a-z]+\s)?extra\b"
    r"|(?:[a-z]+\s)?(?:more|less|fewer)\sthan\s(?:a\s)?(?:half|third|quarter)\b)(?![^.\n]{0,200}[,;:])"
)
_REMARKS = tuple(
    (
        re.compile(
            rf"(?:(?<=[.!?;,]\s)|(?<=\n)|(?<=\sand\s))[*_]*{said}{_AND_NO_MORE}(?:[^.!?\n]|\.(?=\d))*(?:[.!?]+[*_]*(?=\s|\Z)|(?=\n)|\Z)",
            re.IGNORECASE,
        ),
        re.compile(asked, re.IGNORECASE),
    )
    for said, asked in (
        (
            _THAN,
            r"\b(?:more|fewer|less|extra|than|differ\w*|half|share|fraction|part|exceeds?|(?:old|long|tall|high|cheap|fast)er)\b",
        ),
        (
            rf"{_ABOUT}(?:be\s)?sav(?:e|es|ed|ing)\b",
            r"\bsav|\b(?:discount|less|cheaper|off|difference)\b|\A(?!.*\b(?:price|cost|pay))",
        ),
        (
            r"if\b[^.!?\n]{0,80}\b(?:had(?:n't|\snot)?\s\w+|instead)\b[^.!?\n]{0,80}(?:\bwould\b|'d\b)",
            r"\b(?:if|would)\b",
        ),
        (
            r"together,?\s(?:they|both|the\stwo|we)\s(?:have|had|own|saved?|earn(?:ed)?|sold|read|scored?|got)\b",
            r"\b(?:they|together|total|both|all|altogether|combined|each|we)\b",
        ),
        (r"(?:pro\s)?(?:tip|note|hint|fun\sfact|reminder|p\.?s\.?)[*_]*:", r"\Z\A"),
    )
)
"""Sentences further on that compare, or say what is saved or what would be otherwise; and questions that ask for it."""
_WHY = re.compile(r"\s(?:because|since|as|whereas|and\s(?:the|its|his|her|their))\s")
ELSEWHERE = "said of something else"
"""Reason of an answer that says the right number, but not of what was asked."""


_NOT = re.compile(
    r"(?:(?<=[.!?;]\s)|(?<=\n)|(?<=\sand\s))(?:(?:this|that|so|which)\b[^.!?\n]{0,60}?)?\d[\d.,]*\s(?:[a-z]+\s){0,3}"
    r"(?:are|is|were|was|did|do|have|has)(?:n't|\snot)\s(?P<what>[^.!?,;:=\n]{1,40})(?:[.!]+(?=\s|\Z)|(?=\n)|\Z)",
    re.IGNORECASE,
)
"""How many are not what is asked for: "That means that 1,054 books are not novels."."""


def without_remarks(text: str, question: str | None) -> str:
    """A text without sentences that remark on an answer and do not give it, where a number is left.

    >>> without_remarks("He has 8 now. That is 3 more than before.", "How many has he now?")
    'He has 8 now. '
    """
    rest, last = text, echo.last_question(question or "")
    for remark, asked in _REMARKS if question else ():
        rest = rest if asked.search(last) else remark.sub("", rest)
    known = {*echo.content(last)}
    rest = _NOT.sub(lambda m: "" if known & {*echo.content(m["what"])} else m[0], rest) if "not" not in last else rest
    return rest if rest == text or numbers.candidates(numbers.normalized(rest)) else text


def only_operands(sentence: str, question: str) -> bool:
    """Whether a sentence computes nothing, for a question that does: "A is 4 and B is 7." for "What is A plus B?"."""
    asked = _COMPUTED_FROM.search(echo.last_question(question)) is not None
    return asked and not numbers.computes(numbers.normalized(sentence)) and not _RESULT.search(sentence)


def _of_two(plain: str, last: str, question: str) -> str | None:
    """The number that is asked for where a text says how many are and how many are not: "15 can swim and 5 can't"."""
    asked, said = _COUNT_ASKED.search(last), _AND_NOT.search(plain)
    if asked is None or said is None or cues.corrections(plain) or said["no"]:
        return None
    if any(c.isdigit() for c in plain[said.end() :]):
        return None  # "A leap year has 366 days, but 2024 wasn't one. So 365."
    what = {*echo.content(said["what"])}
    if not what <= {*echo.content(question)} or not what & {*echo.content(asked["what"])}:
        return None
    return said["other"] if _NO.search(asked["what"]) else said["number"]


def _counted(plain: str, question: str) -> str | None:
    """The number that is asked for, where a text names it in the words of the question: "The number of desks is 4."."""
    asked = _COUNT_ASKED.search(question)
    own = {
        m["value"].rpartition("=")[2].strip(" $\\")
        for m in _NUMBER_IS.finditer(plain)
        if asked and {*echo.content(m["what"])} == {*echo.content(asked["what"])}
    }
    return own.pop() if len(own) == 1 and all(map(_PLAIN.fullmatch, own)) and not cues.corrections(plain) else None


def number(text: str, question: str) -> str | None:
    """What a text says of the quantity that a question names, where it says it once: "The new price is $60."."""
    asked, plain = _THE_ASKED.search(last := echo.last_question(question)), view.plain(text)
    if (own := _of_two(plain, last, question)) is not None:
        return own
    if asked is None or cues.corrections(plain) or _COMPUTED_FROM.search(_CONDITION.split(last[asked.end() :])[0]):
        apart = _DIFFERENCE.findall(plain) if _COMPARES.search(last) else []
        return apart[0] if len(apart) == 1 else _counted(plain, last)
    name = r"[\s_]".join(map(re.escape, re.sub(_NUMBER_OF, "", asked["what"]).split()))
    found = re.finditer(
        rf"(?:\A|[.!?\n]|\b(?:so|thus|hence|therefore|and|then|while)\b,?)[\W_]*(?:the|her|his|their|its|my)?\s?\b{name}(?:{_NUMBER_OF})?\b[\"']?"
        r"(?P<of>\s(?:of|in|for|at|after|per|to|that|greater|less|larger|smaller)\s(?:(?!\b(?:is|was)\b)[^.;:=\n]){0,60}?)?"
        r"\s?(?::|=|\b(?:is|was|will\sbe|equals|comes\sto)\b)\s?(?P<value>(?:[^.,;\n]|[.,](?=\d))*\d(?:[^.,;\n]|[.,](?=\d))*)",
        plain,
        re.IGNORECASE,
    )
    known = {*echo.content(question)}
    found = [m for m in found if not re.match(r",\s?\d[^.;\n]{0,40}=", plain[m.end() :])]  # "4 + 7 = 11, 11 + 2 = 13"
    said = [m["value"] for m in found if {*echo.content(m["of"] or "")} <= known]
    values = {re.sub(r"-\s(?=\d)", "-", _WHY.split(value)[0].rpartition("=")[2]).strip() for value in said}
    return values.pop() if len(values) == 1 and all(map(_ONE_NUMBER.fullmatch, values)) else None


_DEGREES = frozenset(
    "more most less least fewer fewest first last earlier earliest later latest older oldest younger youngest longer "
    "longest shorter shortest larger largest bigger biggest smaller smallest greater greatest higher highest lower "
    "lowest taller tallest closer closest farther further nearer newer newest sooner recently faster fastest slower "
    "heavier lighter better best worse".split()
)
"""Words of a question that say by what two things are compared."""
OTHER = "the other of two names"
"""Reason of an answer that has a gold name, and does not say that it is this one."""
_SMALL = frozenset("of the and a an in on at to for de la".split())
_PARTS = re.compile(
    r";\s|,?\s(?=(?:so|thus|hence|therefore|because|since|although|though|but|yet|while|whereas)\s)"
    r"|,\s(?=(?:which\s)?(?:mak(?:es|ing)|means)\s)|:\s(?=(?:it|he|she|they)\s)"
    r"|,?\sand\s(?=the\s(?:[a-z]+\s){1,3}(?:is|was)\s)"
    r"|,\s(?=[^,]{1,60}\s(?:did|does|do|was|is|has|had)(?:\snot|n't)?\W*\Z)"
)
_REASON = re.compile(r"(?:because|since|although|though)\s")
_LEADS_IN = re.compile(
    r"\A\W*(?:although|though|while|because|since|as|unlike|compared\s(?:to|with))\s[^,]*,\s(?=\w)", re.I
)
_TURNS_DOWN = " (?:unlike|and not|not|rather than|instead of|as opposed to)(?: (?:in|to|at|by|on|for))?"
_ASIDE, _WHO = re.compile(r"\s?\([^()]*\)"), re.compile(r",\s(?:who|which)\s.*")
_JOINTS = frozenset(("but", "yet", "no", "while", "only"))
_ALIKE = tuple(
    frozenset(words.split())
    for words in (
        "first earlier earliest older oldest sooner", "last later latest younger youngest newer newest recently",
        "larger largest bigger biggest greater greatest", "higher highest taller tallest", "longer longest",
        "smaller smallest", "closer closest nearer", "shorter shortest", "faster fastest", "more most",
    )
)  # fmt: skip
"""Words for the same degree."""
_ORDERS = (frozenset("before precedes preceded preceding predates predated".split()), frozenset(("after",)))
"""Words between two names that say of the first one that it is first, or last."""
_LIVES = frozenset("older oldest younger youngest".split())
"""Words that say nothing of who died first."""
_ENDS = re.compile(r"\b(?:die|dies|died|dead|death|end|ended|lived)\b", re.IGNORECASE)
_OF_TWO = re.compile(r"\b(?:of|between)\s[^,?]{1,80}\sand\s")
_NAME = r"([A-Z][\w.'\u2019-]*(?:\s[A-Z][\w'\u2019-]*)*)"
_TWO = re.compile(rf"{_NAME},?\sor\s{_NAME}|(?:[Bb]etween|[Ww]hich\sof)\s{_NAME}\sand\s{_NAME}")
"""Two names, as a question gives them."""
_LONGEST = 8
"""Most words of a name that stands behind "or"."""
_MOST = 0.6
"""Share of the question's other words that a sentence has to repeat if the question has no word of comparison."""
_DENIES = re.compile(r"\b(?:not|neither|nor|never|if|whether)\b|n't\b", re.IGNORECASE)


def of_two(text: str, golds: Sequence[str], question: str | None, right: bool | None = None) -> bool | None:
    """Whether a text says a gold answer of the two names that a question gives ("..., Rome or Oslo?", "Which of Rome
    and Oslo ...?"); None where the question gives no two, or the text has only one of them, or says the other one and
    looks wrong without this too (``right`` is False).

    "Oslo was founded in 1048. Rome is older." says Rome, although its first sentence is about Oslo.
    """
    last, plain = echo.last_question(question or ""), view.plain(text)
    named = next((pair for gold in golds if (pair := _pair(last, gold, plain))), None)
    if named is None:
        return None
    own = {*echo.content(" ".join(named))}
    asked = {word for word in echo.content(last) if word not in own}
    degrees = _DEGREES & {*normalize(last).split()} - {*" ".join(named).split()}
    between = {word for words, order in zip(_ALIKE, _ORDERS, strict=False) if degrees & words for word in order}
    ends = _ENDS.search(last) is not None
    alike = {word for words in _ALIKE if degrees & words for word in words - (_LIVES if ends else set())} | between
    said, drawn = set[str](), set[str]()
    known = re.compile("|".join(named))
    plain = _ASIDE.sub(lambda m: m[0] if known.search(normalize(m[0])) else "", plain)
    for part in (p for s in view.sentences(plain) for p in _PARTS.split(s) if not p.endswith("?")):
        given, turned = _without_the_other(f" {normalize(_LEADS_IN.sub('', part))} ", named)
        places = sorted((given.find(f" {name} "), name) for name in named if f" {name} " in given)
        if not places or _DENIES.search(given if turned else part) or any(f" {name} or " in given for name in named):
            continue
        if _REASON.match(part) or f" than {places[0][1]} " in given:
            continue
        alone, until = len(places) == 1, {*given[: places[-1][0] if places[1:] else None].split()}
        same = alike - (between if alone else set()) if ends == (_ENDS.search(part) is not None) else set[str]()
        states = (degrees | same) & until or (turned and given.endswith(turned) and not _DEGREES & until)
        if not states and not degrees:
            states = len(asked & {*echo.content(part if alone else " ".join(until))}) >= _MOST * len(asked)
        if not states and alone:
            states = (
                cues.concludes(part) or {*echo.content(_WHO.sub("", part) if not turned else given)} <= own | _JOINTS
            )
        if states:
            said.add(places[0][1])
            drawn |= {places[0][1]} if cues.concludes(part) else set()
    if right is False and (said or drawn) and named[0] not in (drawn or said):
        return None
    return (drawn or said) == {named[0]}


def shorter_names(gold: str, question: str | None, said: str) -> list[str]:
    """The name without its title, without its kind where the question names the kind, without its place where the
    question has it and the answer has no other one, and as one of two names that the question gives, where it is a
    part of the gold answer and the text has it.

    >>> shorter_names("Pacific Ocean", "Which ocean is the largest?", "The Pacific.")
    ['Pacific']
    >>> shorter_names("Reims, France", "Which city in France has the cathedral?", "Reims.")
    ['Reims']
    >>> shorter_names("Ann Maria Lee", "Who was born first, Ann Lee or Bo Diaz?", "Ann Lee was.")
    ['Ann Lee']
    """
    first, _, rest = gold.partition(" ")
    found = [rest] if first.lower().rstrip(".") in TITLES and rest[:1].isupper() and " " in rest else []
    asked, kind = f" {normalize(question or '')} ", _OF_A_KIND.match(gold)
    for group, name in kind.groupdict().items() if kind else ():
        found += [name] if name and f" {group.strip('_')}" in asked and name.casefold() not in _NO_NAMES else []
    for name, place, sign in ((*gold.partition(", ")[::2], ""), (*gold.rpartition(" ")[::2], "in ")):
        known = place[:1].isupper() and f" {sign}{normalize(place)} " in asked and not elsewhere(said, name, place)
        if known and (not sign or (" " in name and name[-1].isalpha() and name.rpartition(" ")[2][:1].isupper())):
            found.append(name)
    last = echo.last_question(question or "")
    given = {name for pair in _TWO.findall(last) for name in pair if name and name in said and part_of(name, gold)}
    return found + ([*given] if len(given) == 1 and f" {normalize(gold)} " not in f" {normalize(last)} " else [])


def _without_the_other(given: str, named: tuple[str, str]) -> tuple[str, str]:
    """A clause without both names as they are asked for ("of Rome and Oslo"), and without the one that it turns down
    ("Rome, not Oslo", "Rome, unlike Oslo, is"), and what stands before that one; empty where it turns none down.
    """
    both = "|".join(f"{a} (?:and|or) {b}" for a, b in (named, named[::-1]))
    later = rf" (?:comparing )?(?:{both})(?= (?:.* )?(?:{'|'.join(named)}) )"
    given = re.sub(rf" (?:of|between) (?:{both})(?= )|{later}", "", given).replace(" preceded by ", " ")
    for name, other in (named, named[::-1]):
        turned = re.search(rf"(?:(?<= {name}){_TURNS_DOWN}|{_TURNS_DOWN}(?= {other} \Z)) {other}(?= )", given)
        before = f"{given[: turned.start()]} " if turned else ""
        if turned and f" {name} " in before and f" {other} " not in before:
            return before + given[turned.end() + 1 :], before if "unlike" not in turned[0] else " "
    return given, ""


def _pair(question: str, gold: str, plain: str) -> tuple[str, str] | None:
    """A gold answer and the other one of two names that a question gives, where a text has both."""
    held, own = f" {normalize(plain)} ", normalize(gold)
    joint = "or" if re.search(r"\sor\s", question) or not _OF_TWO.search(question) else "and"
    for m in re.finditer(rf"\s{joint}\s", question) if own and f" {own} " in held else ():
        left, right = question[: m.start()].split(), question[m.end() :].split()
        if f" {normalize(' '.join(left))}".endswith(f" {own}"):
            names = [" ".join(right[:n]) for n in range(_run(right), 0, -1)]
        elif f"{normalize(' '.join(right))} ".startswith(f"{own} "):
            names = [" ".join(left[-n:]) for n in range(_run(left[::-1]), 0, -1)]
        else:
            continue
        other = next((name for n in names if (name := normalize(n)) and f" {name} " in held), None)
        if other is not None and other != own and not {*other.split()} <= _SMALL:
            return own, other
    return None


_AMOUNT = re.compile(
    r"(?<!\b[Ii]t)(?<!\b[Tt]hey)(?<!\b[Tt]here)(?<!\b[Tt]his)\s(?:was|were|is|are|had|has)\s"
    r"(?:(?:about|only|approximately)\s)?[$\u20ac\u00a3]?\(?\d"
)
_OF_ALL = frozenset("most least fewest largest biggest greatest smallest highest lowest longest shortest".split())
_COMPARING = _OF_ALL | _DEGREES | {"than"}


def only_amounts(said: str, golds: Sequence[str], question: str) -> bool:
    """Whether a text has amounts of several things and does not say which is the largest, which the question asks:
    "Loans were $5, and cash was $9.", but not with "Cash." before it, nor with "so cash" behind it.
    """
    asked, told = ({*re.findall(r"[a-z]+", t.lower())} for t in (question, said))
    first = re.split(r"[.!:]\s|\n", said.strip())[0]
    named = not re.search(r"\d", first) and said.strip()[len(first) :][:1] in (".", "!", "\n") and has_any(first, golds)
    *before, so = re.split(r"\b(?:[Ss]o|[Tt]hus|[Hh]ence|[Tt]herefore)\b", said)
    named = named or (bool(before) and not re.search(r"\d|\bnot\b", so) and has_any(so, golds))
    return bool(asked & _OF_ALL) and not (told & _COMPARING or named) and len(_AMOUNT.findall(said)) > 1


def _run(nearest: Sequence[str]) -> int:
    """How many words may be a name, of those on one side of an "or", the nearest first."""
    named = [w.strip("\"'\u201c\u2018(")[:1].isupper() for w in nearest]
    proper = any(named[:2])
    for n, word in enumerate(nearest[:_LONGEST]):
        plain, apart = normalize(word), n > 0 and (nearest[n - 1][-1] == "?" or word[-1] in ",:;")
        if apart or (plain in echo.ASKING and plain not in _SMALL) or (proper and not named[n] and plain not in _SMALL):
            return n
    return min(len(nearest), _LONGEST)
