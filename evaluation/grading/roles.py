"""Whose number an answer of several numbers gives, as the question names the person or thing.

"Sam has 14 and Tina has 42" answers "How many does Tina have?" with 42. Where the question names nobody and nothing,
nothing here is used.
"""

import re
from collections.abc import Sequence

from . import echo, events, numbers, statements, units, view, words
from .text import has_any, normalize

_WHOSE = re.compile(
    r"\b[Hh]ow\s+(?:many|much)\b(?P<what>[^?]{0,80}?)\b(?:does|did|do|will|would|has|had|is|was)\s+(?P<name>[A-Z]\w+|(?:his|her|their)\s[a-z]+)\s"
    r"(?P<rest>[^?]{0,60})\?\W*\Z"
)
_WHERE = re.compile(
    r"\b[Hh]ow\s+(?:many|much)\b(?P<what>[^?]{0,80}?)\s(?:on|in)\s(?P<name>[A-Z][a-z]+)(?P<rest>)\?\W*\Z"
)
_AGE = re.compile(
    r"\b[Hh]ow\s+(?:old|tall|heavy)(?P<what>)\s(?:is|was|will)\s(?P<name>[A-Z]\w+|(?:his|her|their)\s[a-z]+)(?P<rest>[^?]{0,60})\?\W*\Z"
)
_TWO = re.compile(r"\b(?:more|fewer|less|than|together|altogether|total|combined|both|and)\b", re.IGNORECASE)
_NO_NOUNS = frozenset(
    "language languages speaking dialect there which that because since today while with from alongside also where "
    "when rather instead although though too being serves only just".split()
)
_PHRASE = re.compile(
    r"\W*(?:his|her|its|their)\s(?P<phrase>(?:[\w-]+\s){0,3}[\w-]+)\s(?:is|was|are|were)\b", re.IGNORECASE
)
_COMPARES = re.compile(
    r"\b(?:more|fewer|less|than|together|altogether|total|each|combined|both|left|give|gave|sell|spend|and)\b", re.I
)
"""Words of a question that asks for more than what one person has."""
_HAS = re.compile(
    r"(?<![\w'])(?P<name>[A-Z][a-z]+|(?:his|her|their)\s[a-z]+(?=\s(?:is|was|has|had)\s))(?:['\u2019]s\s[a-z]+)?\s?(?:(?:now|then|also|will|would|must)\s)?"
    r"(?:(?:has|had|have|gets|got|owns|earns|scores|saves|sold|paid|spent|ran|read|is|was|[a-z]{3,}ed)\s|[:=,]\s?|\s)(?:only\s)?[$€£]?"
    r"(?:\d[\d$€£., */x\u00d7\u00f7+\u2212-]{0,40}=\s?[$€£]?)?"
    r"(?P<number>\d[\d,.]*\d|\d)(?!\d|\s?(?:times|percent|(?:[a-z]+\s)?(?:more|fewer|less|older|younger|taller|shorter|heavier|lighter)"
    r"|[%/*x\u00d7+-])(?!\w))"
)
_NO_PERSONS = frozenset("And So Then But Or Thus Therefore Hence Now After Since If".split())
_KIN = (
    "successor predecessor son daughter father mother brother sister wife husband nephew niece cousin uncle aunt "
    "friend rival teacher student assistant deputy"
)
_KINDS = (
    "wife husband spouse married marry partner",
    "son daughter child children",
    "father mother parent parents",
    "brother sister sibling siblings",
    "successor succeeded",
    "predecessor preceded",
)
_BY = r"\W*\s(?:was|is|were|are)\s(?:then\s|directly\s|immediately\s)?"
_IN_TURN = (
    (
        re.compile(r"\b(?:succee|successor|after|next)", re.I),
        re.compile(rf"{_BY}(?:succeeded|followed|replaced)\sby\b"),
    ),
    (re.compile(r"\b(?:preced|predecessor|before|previous)", re.I), re.compile(rf"{_BY}preceded\sby\b")),
)
"""Questions about what comes next or before, and what says it of another one than the name in front of it."""
_RELATED = re.compile(
    r"(?:\A|\s)(?:his|her|its|their)\s(?:(?P<once>first|second|third|former|previous|late|ex)[\s-])?(?:\w+\s)??"
    rf"(?P<kin>{_KIN.replace(' ', '|')})\b",
    re.IGNORECASE,
)
_KIN_OF = re.compile(
    rf"(?:\A\W*|\bby\s)(?:an?|the)\s(?:\w+\s){{0,2}}?(?:{_KIN.replace(' ', '|')})\sof\s", re.IGNORECASE
)
"""Somebody who is named by another: "a student of William Shakespeare"."""
_OWN_KIND = re.compile(r"\A[^,;:]{1,60}\s(?:is|was|are|were)\s(?:its|his|her|their)\s(?P<kind>[a-z]+)\W*\Z")
_FROM_TO = re.compile(r"\bfrom\s[$€£]?\d[\d,.]*\s(?:[a-z]+\s)?to\s[$€£]?(\d[\d,.]*\d|\d)(?!\d|[^.]*\d)")
_LEFT_ASKED = re.compile(r"\bhow\s(?:many|much)\b[^?]*\b(?:left|remain\w*)\W*\Z", re.IGNORECASE)
_LEFT = re.compile(
    r"(?<![\d.,])(\d[\d.,]*)\s(?:[a-z]+\s){0,2}(?:left|remain\w*)\b|\b(?:left|remaining)\s?[:=]\s?(?:[^=\n]{1,60}=\s?)?(\d+)",
    re.IGNORECASE,
)
_FIELD = re.compile(
    r"(?:(?P<key>[A-Za-z][\w ]{2,30}):|[Tt]he (?P<noun>[\w ]{2,30}?) (?:is|was)(?: by| in| at)?)\s"
    r"(?P<value>[^:\n]{1,80}?)\W*"
)
_HELD_BY = re.compile(
    r"\b(?:when|while)\s(?P<value>[A-Z][^,;:]{1,60}?)\s(?:was|were|is)\s(?:serving\sas\s)?(?:the\s)?(?P<noun>[^,;:]{3,60}?)\W*\Z"
)
"""Who held the office that a question asks for: "It fell in 1989, when George Bush was president."."""
_WHO_DID = re.compile(r"\W*[Ww]ho\s(?P<verb>\w+)\s")
_DONE_BY = re.compile(r",\swhich\s(?:is|was)\s(?P<verb>\w+)\sby\s(?P<value>[A-Z][^,;:.]{1,60}?)\W*\Z")
"""Who did what the question asks, at the end: "It is in Emma, which was written by Jane Austen."."""
_HEAD_OF = re.compile(r"What\s(?:is|was)\sthe\s(?P<head>[a-z]+)\sof\s(?P<name>[A-Z]\w+)\?")
_JOINT = re.compile(r"(,\s(?:and|while)|;)\s")
_NTH = re.compile(r"\b(?:second|third|fourth|next)\b", re.IGNORECASE)
_IS_NTH = re.compile(
    r"\W*\s(?:(?:is|was)\s(?:the\s)?(?:second|third|fourth|next)[\s-](?:\w+est|most)\b"
    r"|(?:comes|came|is|was)\s(?:in\s)?(?:second|third|fourth)\b(?!\s\w))",
    re.IGNORECASE,
)
_LATER = re.compile(r"\s(?:later|second|next|afterwards|last)\W*(?:\Z|[,.;]\s)")
_THEN = re.compile(r"\w[,;]\s(?:and\s)?(?:then|later)\s(?:[a-z]+\s)?\Z")
_TAKEN_BACK = re.compile(r"\b(?:no|not|sorry|wait|actually|but|or)\b|n't\b", re.IGNORECASE)
_HOW_MANY = re.compile(
    r"\bhow\s+many\s+(?:(?:are|were)\s+)?"
    r"((?:(?!(?:do|does|did|are|is|was|were|has|have|had|can|will|would)\b)[a-z]+\b\s?){1,4})",
    re.I,
)
_WHERE_THINGS = r"(?:in|on|at|from)"
_THING = rf"[a-z]+(?:\s(?!(?:and|{_WHERE_THINGS})\b)[a-z]+){{0,2}}"
_OF_WHICH = r"(?:of\s(?:which|them|these)\s(?:are|were)\s)?"
_COUNT = re.compile(rf"\b(?P<number>\d+)\s{_OF_WHICH}(?P<what>{_THING})")
_COUNTED = re.compile(
    rf"[^\d\n]{{0,60}}?(?:\b\d+\s{_OF_WHICH}{_THING}(?:,\s|,?\sand\s|(?:\s{_WHERE_THINGS}\s[^\d\n]{{1,40}}?)?[.!]?\Z)){{2,9}}"
)
_ROW = re.compile(r"(?P<what>[A-Z][\w ]{1,30}):\s(?P<number>[^:\n]*\d[^:\n]{0,20})")
_LIST = re.compile(r"\d,\s\d")
_NO_THINGS = re.compile(r"\b(?:left|remain\w*|more|fewer|less|old|each|total|times|per\s?cent)\b")
"""What stands behind a number and is no thing that is counted."""
_UNKNOWN = re.compile(
    r"\b(?i:solve\b[^?]{0,60}?\bfor|find|determine|what\sis|value\sof)\s(?P<x>[b-hj-z])\b"
    r"(?!\s?[-+*/^=(,\d]|\s(?:and|plus|minus|times|divided)\b)"
)
"""An unknown that is asked for: "Solve for x"."""
_VALUES = re.compile(
    r"(?<![\w.^*/+-])(?<!\d\s)([a-z])\s?=\s?(?:[-\d\s.+*/\u00d7()]{1,40}=\s?)?(-?\d+(?:[.,/]\d+)*)(?!\w|\s?[-+*/^\u00d7=(])"
)


def own_number(text: str, question: str) -> str | None:
    """What the person has whom the question names, where the last sentence or lines say it of several.

    >>> own_number("Sam has 14 and Tina has 42.", "How many marbles does Tina have?")
    '42'
    """
    if (listed := _enumerated(text, question)) is not None:
        return listed
    if (solved := _solved(view.plain(text), question)) is not None:
        return solved
    if (year := events.own_year(text, question)) is not None:
        return year
    asked = (whose := _WHOSE.search(question) or _AGE.search(question)) or _WHERE.search(question)
    if asked is None or (_COMPARES if whose else _TWO).search(f"{asked['what']} {asked['rest']}"):
        return None
    plain = re.sub(r"\b(?:His|Her|Their)\s", lambda m: m[0].lower(), view.plain(text))
    parts = [s for s in view.sentences(plain) if any(c.isdigit() for c in s)]
    said: dict[str, set[str]] = {}
    both = False
    for part in reversed(parts):
        found = [m for m in _HAS.finditer(part) if m["name"] not in _NO_PERSONS]
        held = [(m["name"], m["number"]) for m in found]
        both |= len(found) > 1 and all(re.search(r"\s(?:has|had)\s", m[0]) for m in found)
        if not held:
            break
        for name, number in held:
            said.setdefault(name, set()).add(number)
        if len(held) > 1:
            break
    own = said.get(asked["name"], set())
    # "Total: 56" is no person: one of the others has to be named in the question too, or to have something
    named = said if whose else {m[0] for m in re.finditer(r"\b[A-Z][a-z]+", " ".join(parts[-3:]))}
    others = [name for name in named if name != asked["name"] and re.search(rf"\b{name}\b", question)]
    return next(iter(own)) if len(own) == 1 and (others or (whose and both)) else None


def _solved(plain: str, question: str) -> str | None:
    """The value of the unknown that is asked for, where the text gives values of several: "x = 7 and y = 3"."""
    asked = _UNKNOWN.search(question)
    values = set(_VALUES.findall(plain)) if asked else set()
    own = {value for name, value in values if asked and name == asked["x"]}
    return own.pop() if len(own) == 1 and len({name for name, _ in values}) > 1 else None


def of_another_person(text: str, question: str) -> bool:
    """Whether a text says nothing but what another person has than the one whom the question names: "Mia is 12."."""
    asked, plain = _WHOSE.search(question) or _AGE.search(question), view.plain(text)
    held = _HAS.match(plain.strip())
    if asked is None or held is None or asked["name"].split()[-1] in plain or len(re.findall(r"\d+", plain)) > 1:
        return False
    name, relative = re.escape(held["name"]), re.escape(asked["name"].split()[-1])
    if re.search(
        rf"\b{relative},?\s(?:(?:is|was|named|called)\s)*{name}\b(?!['\u2019]s)"
        rf"|\b{name},?\s(?:is\s)?(?:his|her|their)\s(?:\w+\s)?{relative}\b",
        question,
    ):
        return False  # "His brother is Ben. How old is his brother?"
    return re.search(rf"\b{name}\b", question) is not None


def _enumerated(text: str, question: str) -> str | None:
    """The number of what is asked for where a text counts several things, in a sentence or in a line for each."""
    what, plain = _HOW_MANY.search(question), words.in_digits(view.plain(text)).strip()
    if what is None or _NO_THINGS.search(plain):
        return None
    lines = [line.strip(" -*\u2022") for line in plain.split("\n") if any(c.isdigit() for c in line)]
    rows = [row for line in lines if (row := _ROW.fullmatch(line))]
    listed = len(rows) == len(lines) > 1
    counts = [(m["number"], m["what"].lower().split()) for m in (rows if listed else _COUNT.finditer(plain))]
    asked = {word.rstrip("s") for word in what[1].lower().split()}
    own = [number for number, things in counts if {t.rstrip("s") for t in things} <= asked and not _LIST.search(number)]
    measured = any(words.lookup(t) for _, things in counts for t in things)
    return own[0] if len(own) == 1 and (listed or _COUNTED.fullmatch(plain)) and not measured else None


def of_another(text: str, golds: Sequence[str], question: str) -> bool:
    """Whether every sentence with a gold answer is about a relation that was not asked for: "His successor was ..."."""
    if _in_another_row(text, golds, question) or _says_another(text, golds, question):
        return True
    parts = [part for s in view.sentences(view.plain(text)) for part in s.split("; ")]
    said = [s for s in parts if has_any(s, golds)]
    return bool(said) and any(rule(said, golds, question) for rule in _OF_ANOTHER)


def _is_another_in_a_row(said: Sequence[str], golds: Sequence[str], question: str) -> bool:
    """Another place in an order: "The Atlantic is the largest, and the Pacific is the second largest."."""
    return not _NTH.search(question) and _all_before(said, golds, _IS_NTH)


def _comes_later(said: Sequence[str], golds: Sequence[str], question: str) -> bool:
    """What is not the first, which is asked for: "She met Ann first and Bo later.", "Ann, then Bo."."""
    places = [(s, m) for s in said for g in golds for m in re.finditer(rf"(?<!\w){re.escape(g)}(?!\w)", s, re.I)]
    later = (_LATER.match(s, m.end()) or _THEN.search(s[: m.start()]) for s, m in places)
    return bool(places) and re.search(r"\bfirst\b", question) is not None and all(later)


def _is_beside_the_head(said: Sequence[str], golds: Sequence[str], question: str) -> bool:
    held = [f" {normalize(gold)} " for gold in golds]
    return all(_beside_the_head(s, held, view.asked_for(question)) for s in said)


def _has_another_relation(said: Sequence[str], golds: Sequence[str], question: str) -> bool:
    relations = [_RELATED.search(s) or _OWN_KIND.match(s) or _PHRASE.match(s) for s in said]
    asked = f" {normalize(question)} "
    return all(m is not None and not _is_asked(m, asked) for m in relations)


def _is_in_the_other_order(said: Sequence[str], golds: Sequence[str], question: str) -> bool:
    """The same order from the other end: "Tyler was succeeded by Polk" does not say who succeeded Polk."""
    return any(order.search(question) and _all_before(said, golds, by) for order, by in _IN_TURN)


def _is_kin(said: Sequence[str], golds: Sequence[str], question: str) -> bool:
    """A relative of what is asked for, where the question asks for none."""
    held = tuple(f" {normalize(gold)} " for gold in golds)
    kin = [m for s in said if (m := _KIN_OF.search(s)) and f" {normalize(s[m.end() :])} ".startswith(held)]
    return len(kin) == len(said) and not {*normalize(question).split()} & {*_KIN.split()}


def _is_an_adjective(said: Sequence[str], golds: Sequence[str], question: str) -> bool:
    asked_for_language = "language" in normalize(question)
    return asked_for_language and all(any(_as_adjective(s, gold) for gold in golds) for s in said)


_OF_ANOTHER = (
    _is_another_in_a_row,
    _comes_later,
    _is_beside_the_head,
    _has_another_relation,
    _is_in_the_other_order,
    _is_kin,
    _is_an_adjective,
)


def _all_before(said: Sequence[str], golds: Sequence[str], words: re.Pattern[str]) -> bool:
    """Whether these words follow a gold answer in each of these sentences."""
    return all(any(_after(s, g, words) for g in golds) for s in said)


def goes_on(text: str, golds: Sequence[str], question: str) -> bool:
    """Whether a text gives a step and then the gold answer, as what is asked for of it.

    "Portugal. The capital of Portugal is Lisbon." says Lisbon, but "Smith. Smith's wife is Jones." does not name who
    wrote the book.
    """
    first, *others = view.sentences(view.plain(text))
    name = re.escape(first.strip(" .!"))
    form = rf"\W*(?:the\s(?P<of>[^.,]{{1,40}}?)\s(?:of|in)\s(?:the\s)?{name}|{name}['\u2019]s\s(?P<own>[^.,]{{1,40}}?))"
    said = re.match(form + r"\s(?:is|are)\s(?!not\b)(.*)", others[0], re.IGNORECASE) if others else None
    if said is None or not f"{normalize(said[3])} ".startswith(tuple(f"{normalize(gold)} " for gold in golds)):
        return False
    return {*normalize(said["of"] or said["own"]).split()} <= {*normalize(question).split(), "official"}


def _after(sentence: str, gold: str, words: re.Pattern[str]) -> bool:
    """Whether these words follow a gold answer wherever a sentence has it."""
    places = list(re.finditer(rf"(?<!\w){re.escape(gold)}(?!\w)", sentence, re.IGNORECASE))
    return bool(places) and all(words.match(sentence, m.end()) for m in places)


def _beside_the_head(sentence: str, held: Sequence[str], head: str | None) -> bool:
    """Whether a clause says what the thing that is asked for is, and the next one something of the gold answer.

    "The currency is the dollar, and the yen is used in China."
    """
    first, joint, rest = _JOINT.split(sentence, maxsplit=1) if _JOINT.search(sentence) else (sentence, "", "")
    said, added = (f" {normalize(part)} " for part in (first, rest))
    given = f" {head} " in said and re.search(r" (?:is|was) ", said) and not any(name in said for name in held)
    return bool(joint and given) and f" {head} " not in added and added.startswith(tuple(held))


def _says_another(text: str, golds: Sequence[str], question: str) -> bool:
    """Whether one sentence gives another name for what is asked: "The capital of Germany is Munich, which ..."."""
    asked, plain = _HEAD_OF.fullmatch(question.strip()), view.plain(text)
    if asked is None or len(view.sentences(plain)) != 1 or _TAKEN_BACK.search(plain):
        return False
    head, name = asked["head"], asked["name"]
    said = re.match(rf"(?:The {head}(?: city)?(?: of {name})?|{name}'s {head}(?: city)?) is ([A-Z]\w+),\s", plain)
    said = said or re.match(rf"(?!(?:It|This|That|He|She|There)\b)([A-Z]\w+) is the {head} of ", plain)
    return said is not None and said[1] != name and not any(has_any(gold, [said[1]]) for gold in golds)


def _in_another_row(text: str, golds: Sequence[str], question: str) -> bool:
    """Whether the row of a text that has the name of what is asked for holds something else: "Actor: ..."."""
    head = view.asked_for(question)
    rows = [m for s in view.sentences(view.plain(text)) if (m := _FIELD.fullmatch(s)) and m["key"]]
    own = [m["value"] for m in rows if normalize(m["key"]) == head]
    return bool(own) and not any(has_any(value, golds) for value in own)


def _as_adjective(sentence: str, gold: str) -> bool:
    """Whether a language is named as an adjective of something else: "Spanish sailors", "the German team"."""
    following = re.findall(rf"\b{re.escape(gold)}\b\s?([\w'\u2019(),.;:!-]*)", sentence)
    return bool(following) and all(
        re.fullmatch(r"[a-z]{4,}\W?", w) and w.strip(",.;") not in _NO_NOUNS for w in following
    )


def _is_asked(relation: re.Match[str], asked: str) -> bool:
    given = relation.groupdict()
    if given.get("once") and f" {given['once'].lower()} " not in asked:
        return False  # "His first wife was Diana."
    if given.get("phrase"):
        return any(f" {w} " in asked or f" {w}s " in asked for w in given["phrase"].lower().split())
    word = (given.get("kin") or given.get("kind") or "").lower()
    alike = next((row.split() for row in _KINDS if word in row.split()), [word])
    return any(f" {w} " in asked for w in alike)


def field(text: str, question: str) -> str | None:
    """What a text says after a colon of the thing that the question asks for: "The company is X. Headquarters: Y."."""
    asked = normalize(question).split()
    parts = [part for s in view.sentences(view.plain(text)) for part in s.split("; ")]
    rows = [(m["key"] or m["noun"], m["value"]) for s in parts if (m := _FIELD.fullmatch(s))]
    rows += [(m["noun"], m["value"]) for s in parts if (m := _HELD_BY.search(s))]
    held = [value for noun, value in rows if all(w in asked for w in normalize(noun).split())]
    done, by = _WHO_DID.match(question), _DONE_BY.search(view.plain(text))
    held += [by["value"]] if done and by and echo.content(done["verb"]) == echo.content(by["verb"]) else []
    return statements.number(text, question) or (held[-1] if held else None)


def hinted_number(text: str, question: str) -> str | None:
    """The number that a text itself calls the rest or the quantity that is asked for, or to which something changed."""
    last = next((s for s in reversed(view.sentences(view.plain(text))) if any(c.isdigit() for c in s)), "")
    if (changes := _FROM_TO.findall(last))[-1:] and "percentage" not in question.lower():
        return changes[-1]
    left = [a or b for a, b in _LEFT.findall(last)] if _LEFT_ASKED.search(question) else []
    return left[0] if len(left) == 1 else statements.number(text, question)


def elsewhere(text: str, golds: Sequence[str], question: str) -> bool:
    """Whether a text says another number than a gold one of what is asked, or a number of another person."""
    hint = numbers.parse(hinted_number(text, question) or "")
    wanted = units.in_unit([w for gold in golds if (w := numbers.parse(gold))], question)
    return of_another_person(text, question) if hint is None else not any(numbers.equal(hint, w) for w in wanted)
