"""Whether a sentence says what a yes-or-no question asks, or denies it, without yes or no.

affirms("17 is not a prime number.", "Is 17 a prime number?")  # False
"""

import re
from collections.abc import Sequence, Set

from . import cues, view
from .echo import ASKING, ENDING, content, last_question, names_of
from .view import tokens

_DENYING = frozenset(
    "not never no neither nor cannot cant dont doesnt didnt isnt arent wasnt werent wont wouldnt couldnt shouldnt "
    "hasnt havent non unable impossible unlikely false incorrect untrue wrong myth misconception fallacy lie hoax deny "
    "denies".split()
)
_NO_DOUBT = re.compile(
    r"\b(?:(?:there\s+is\s+)?(?:no|without(?:\s+an?y?)?)\s+(?:doubt|question)(?:\s+that)?|not\s+only)\b", re.IGNORECASE
)
"""Words of denial that deny nothing."""
_DOUBTING = frozenset("hard difficult tough rarely seldom hardly barely sometimes thought believed supposedly".split())
"""Words that leave open what a sentence says, unless the question is about them."""
_OPEN = frozenset(
    "if whether may might could assume suppose consider determine question maybe perhaps unless except".split()
)
_PAIRS = (
    "before after, more fewer, more less, greater less, larger less, larger smaller, bigger smaller, "
    "greater smaller, longer shorter, taller shorter, higher lower, older younger, older newer, earlier later, "
    "faster slower, heavier lighter, hotter colder, warmer colder, above below, inside outside, same different, "
    "odd even, prime composite, north south, east west, alive dead, heads tails, open closed, open shut, full empty, "
    "locked unlocked, up down, left right, win lose, legal illegal, present absent, asleep awake, clean dirty, "
    "lit off, lit unlit"
)
_OPPOSITES = {frozenset(ENDING.sub("", word) for word in pair.split()) for pair in _PAIRS.split(", ")}
_REASON = re.compile(r"[,;:]|\s(?:because|since|due\s+to|so|as(?=\s(?:it|they|he|she|there)\b))\b", re.IGNORECASE)
_NON = re.compile(r"\bnon-?([a-z]{3,})")
_DOES = re.compile(r"\W*d(?:oes|id)\b", re.IGNORECASE)
_ITS_OWN = re.compile(r"\W*(?:(?:so|yes|no)\W+)?(?:it|he|she|they|this|that|its|his|her|their|let)\b", re.IGNORECASE)
_NOT_ONE = re.compile(
    r"(?:nobody|none|no|every\w*|some\w*|all|most|many|few|both|another"
    r"|the\s(?:\w+est|most|least|first|second|third|last|next|previous|other|former|latter))\b",
    re.IGNORECASE,
)
"""No name, and no kind of thing, that may stand for the one a question describes."""
_PRONOUN = re.compile(r"\W*(?:(?:so|yes|no|actually)\W+)?(?:it|he|she|they|both|this|these|those)\b", re.IGNORECASE)
_VERBS = frozenset(
    "is are was were do does did can could will would has have had cannot cant isnt arent wasnt werent dont doesnt "
    "didnt couldnt wont wouldnt hasnt havent not".split()
)
_IS_IT = re.compile(r"\W*(?:is|was|would)\sit\s(?:be\s)?(?P<word>[a-z]{4,})\b", re.IGNORECASE)
_CALLED = re.compile(
    r"\W*(?:(?:it|that|this)(?:'s|\s(?:is|was))?)?\s?(?P<no>not\s|n't\s)?(?P<word>[a-z]{4,})\W*(?:[.,;!\n]|\Z|\b(?:to|for)\b)",
    re.IGNORECASE,
)
"""\"Is it legal to ...?" and "It isn't legal."."""
_RATHER = re.compile(
    r"(?P<verb>\b(?:is|are|was|were|does|do|did|has|have|can|could|will|would))(?:\s?n't|\s?not)\s(?P<denied>[^,;.]{1,60}?)"
    r"(?:[;,]?\s(?:but\s)?(?:it|he|she|they)(?:'s|'re|\s(?:is|are|was|were|do|does|did|can|could|will|would))"
    r"|,?\sbut(?:\srather)?)\s(?!not\b)",
    re.IGNORECASE,
)
"""What something is not, before what it is: "is not a planet; it is a satellite"."""
_WHICH_IS_NOT = re.compile(r",\s(?:which|who|that)\s\w+(?:n't|\snot)\s(?P<denied>[^,;.]{1,60}),\s", re.IGNORECASE)
_IMPOSSIBLE = re.compile(r"\b(?:could|may|might)\s?(?:n't|not)\b", re.IGNORECASE)
"""\"Could" leaves open what "could not" denies."""
_BUT_IT = re.compile(
    r"\s(?:but|yet)\s(?:it|he|she|they)\s(?:is|are|was|were|do|does|did|can|could)(?P<no>n't|\s?not)?\W*\Z", re.I
)
_NOT_SO = re.compile(r"(?:,\snot|,?\s(?:rather\sthan|instead\sof))\s([^,;]{1,40})(?:,|\Z)")  # "Canberra, not Sydney"
_IT_AT_END = re.compile(r"\s(?:it|them|one|so)\b\W*\Z")
_IS_IT_TRUE = re.compile(
    r"\A\W*(?:(?:yes|true)\sor\s(?:no|false)\W+)?(?:is\sit\s(?:true|correct|right|the\scase)\sthat\s)?", re.IGNORECASE
)
_FRONTED = re.compile(
    r"\A\W*((?:In|At|On|By|During|From|For|Under|According\sto)\s[^,;:.]{1,60}),\s([^,;:.?!]+)", re.IGNORECASE
)
_IS_THE = re.compile(r"\W*(?:is|was)\s(?P<name>[A-Z][\w'. -]*?)\s(?P<the>the\s[^?,]+)\?", re.IGNORECASE)
_THE_IS = re.compile(r"\W*(?P<the>[Tt]he\s[^,;.]+?)\s(?:is|was)\s(?P<name>[A-Z]\w*(?:\s[A-Z]\w*)*)")
_ITS = re.compile(r"\A\W*([A-Z]\w+)'s\s([^,;.]+?)(?=\s(?:is|was)\s)")
"""\"Italy's capital is" for "The capital of Italy is"."""
_CITY_OF = re.compile(r"\b(?:city|town|state|island|country|planet|river)\s(?:of\s)?(?=[A-Z])")
"""The kind of what is named after it: "the city of Nice"."""
_SUBJECT_OF_A_KIND = re.compile(
    r"\A\W*(?P<verb>(?:is|are|was|were|does|did|do|can|could|has|have|had)\s)the\s"
    r"(?:(?!(?:of|in|by|from|at|on|to|for|with|and|or|than|that|which|who|whose)\b)(?-i:[a-z]+)\s){1,3}?"
    r"(?:(?P<with>with\s(?:the\s)?(?:chemical\s)?(?:symbol|name|number|code)\s)|(?:named|called)\s)?(?=(?-i:[A-Z])|\d)",
    re.IGNORECASE,
)
"""The same before the subject: "Is the element with the symbol Cu a metal?", "Is the number 7 prime?", not "Is the
author of Emma alive?", nor "Is the Great Wall visible?"."""
_OF_ONE = re.compile(
    r"\W*(?i:is|was|does|did|can|has)\s(?:(?:the|this|that|his|her|its|their)\s[a-z]|[A-Z]\w*'s\s)"
    r"(?!.*(?:[,:]|\b(?:and|or|both|than|as)\b))"
)
"""A question about one thing that it describes and does not name: "Is the capital of Peru a port?"."""
_IT_IS_SO = re.compile(
    r"\W*(?:[Ss]o\W+)?(?P<name>(?:(?:[Tt]he|[Aa]n?)\s)?\w+(?:\s[A-Z]\w*)*)\s(?P<rest>[a-z][^,;:()]*?)\W*", re.DOTALL
)
_IF = re.compile(r",\s(?:if|given|assuming)\s[^?]*")
"""The condition behind a question: "Is Ann taller than Bob, if Ann is 160 cm tall?"."""
_STILL = re.compile(r"\W*(?:is|are)\s[^?]*?\b(?P<still>still|now)\s", re.IGNORECASE)
_STEP = re.compile(r"[;:]\s|,?\s(?:so|but|(?:and\s)?then)\s", re.IGNORECASE)
_NOW_IT = re.compile(r"\A\W*(?:now\s)?(?:it|they)\b", re.IGNORECASE)
_IT = re.compile(r"\b(?:it|them|they)\b", re.IGNORECASE)
_ON = re.compile(r"\bon\b(?=(?:\s(?:again|now))?\W*\Z)")
_WHERE = re.compile(r"\b(?:in|on|at|under|below|above|over|behind|beside|near|inside|outside)\b")
_WAS = re.compile(
    r"\b(?:was|were|had|used\sto|would|or|if|unless|without|until|before|initially|originally|in\sbetween"
    r"|at\s(?:the\s)?(?:first|start|beginning))\b",
    re.IGNORECASE,
)
"""\"Is the lamp still on?", and the steps of "She turns it off, so it is off; then it's on again.", without what holds
at another time, or may."""
_OBJECT = 3
"""Most words of an object."""
_KEPT = 3
"""Least words of what was asked without its object."""
_FIRST = 2
"""Sentences that may be about the subject of the question without naming it, as may a conclusion."""


def affirms(text: str, question: str) -> bool | None:
    """Whether a text states what a yes-or-no question asks, or denies it; None where it does neither, or both.

    >>> affirms("17 is not a prime number.", "Is 17 a prime number?")
    False
    """
    if (judged := _IS_IT.match(last_question(question))) and (said := _CALLED.match(view.plain(text)[:200])):
        if said["word"].lower() == judged["word"].lower() and not {*said["word"].lower().split()} & ASKING:
            return not said["no"]
    question = _IF.sub("", _IS_IT_TRUE.sub("", last_question(question)))
    if still := _STILL.match(question):
        state = content(_ON.sub("lit", question[: still.start("still")] + question[still.end() :]))
        ends = _ends_so(text, state, {*_WHERE.findall(question)})
        if ends is not None or (len(state) > 1 and not re.search(rf"\b{still['still']}\b", text)):
            return ends  # else "They are still married" may say it in the words of the question
    of_one = question
    question = _not_fronted(_CITY_OF.sub("", _SUBJECT_OF_A_KIND.sub(r"\g<verb>", question)))
    asked, names, than = content(question), names_of(question), question.partition(" than ")
    parts = [
        _not_fronted(_without_others(_not_non(s, asked), asked))
        for s in view.sentences(view.plain(text))
        if not s.endswith("?")
    ]
    said_so = {t.word for t in tokens(question)[:1]}  # "Could it ...?" "It could."
    said = [(s, v) for s in parts if (v := _stance(s, asked, said_so)) is not None]
    if not said and than[1]:
        said = [(s, v) for s in parts if (v := _compares(s, content(than[0]), content(than[2]), names)) is not None]
    if not said:
        said = [(s, v) for s in parts if (v := _names_it(s, question)) is not None]
    if not said:
        near = [s for n, s in enumerate(parts) if n < _FIRST or cues.concludes(s)]
        said = [(s, v) for s in near if (v := _of_its_subject(s, asked, names)) is not None]
    if not said and _OF_ONE.match(of_one):
        said = _of_the_one_meant(parts, of_one, names)
    concluded = [v for s, v in said if cues.concludes(s)]
    return concluded[-1] if concluded else said[0][1] if len({v for _, v in said}) == 1 else None


def _ends_so(text: str, asked: Sequence[str], where: Set[str]) -> bool | None:
    """What a text says last of a state that may change; None where that is another state than was asked about."""
    ends, is_it = None, True
    parts = [s for s in view.sentences(view.plain(text)) if not s.endswith("?")]
    for step in (c for s in parts for c in _STEP.split(s) if asked):
        it, named = _NOW_IT.match(step), _NOW_IT.sub(asked[0], _ON.sub("lit", step))
        if not _WAS.search(step):
            said = _stance(named, asked, set())
            other = len({*asked} - {*content(named)}) == 1 and _in_order(asked[:1], content(named))
            sure = (is_it or not it) and (not where or not (there := {*_WHERE.findall(step)}) or where & there)
            ends = (said if sure else None) if said is not None or other else ends
        # "Ann shuts the window, so it is closed" says nothing of the door
        is_it = is_it if it else asked[0] in content(step) or bool(_IT.search(step))
    return ends


def _stance(sentence: str, asked: Sequence[str], said_so: set[str]) -> bool | None:
    if (m := _NOT_SO.search(sentence)) and (no := {*content(m[1])}) and no <= {*asked} <= {*content(sentence)}:
        return False
    but = _BUT_IT.search(sentence)
    if but and _in_order([w for w in asked if w != "number"], content(sentence[: but.start()])):
        return None if {t.word for t in tokens(sentence[: but.start()])} & _DENYING else not but["no"]
    asked = _without_adverbs(sentence, _short_of_object(sentence, asked))
    sentence = _IMPOSSIBLE.sub(" not ", _claim(sentence, asked))
    words = [t.word for t in tokens(_NO_DOUBT.sub(" ", sentence))]
    if len(asked) < 2 or {*words} & (_OPEN - said_so | _DOUBTING - {*asked}) or {*asked} & _DENYING:
        return None
    # in the question's order: "12 is larger than 9" does not say that 9 is larger than 12
    denials = sum(word in _DENYING for word in words)
    if denials < 2 and _in_order(asked, content(sentence)):
        return denials == 0
    said = content(sentence)
    for i, word in enumerate(asked):
        for other in said if word not in said else ():
            if frozenset((word, other)) in _OPPOSITES and not denials:
                if _in_order((*asked[:i], other, *asked[i + 1 :]), said):
                    return False  # "Einstein died after the war began"
    return None


def _without_others(sentence: str, asked: Sequence[str]) -> str:
    """A sentence without what it denies of other things than was asked, where it goes on: "X is not A; it is B"."""

    def kept(m: re.Match[str]) -> str:
        return m[0] if {*content(m["denied"])} & {*asked} else f"{m.groupdict().get('verb') or ''} "

    return _WHICH_IS_NOT.sub(kept, _RATHER.sub(kept, sentence))


def _not_non(sentence: str, asked: Sequence[str]) -> str:
    """A sentence with "not" before what it denies in one word: "nitrogen is a nonmetal", for metal.

    It has the word as the question does if that asks about the nonmetal, and where it has "metal" as well.
    """

    def denied(m: re.Match[str]) -> str:
        if {*content(f"non{m[1]}")} & {*asked}:
            return f"non{m[1]}"
        apart = {*content(m[1])} & {*asked} and not re.search(rf"(?<!non)(?<!non-)\b{m[1]}", sentence, re.IGNORECASE)
        return f"not {m[1]}" if apart else m[0]

    return _NON.sub(denied, sentence)


def _not_fronted(sentence: str) -> str:
    """A sentence with its first phrase behind its first clause: "it is a fruit In botany" for "In botany, ..."."""
    return sentence if cues.concludes(sentence) else _FRONTED.sub(r"\2 \1", sentence, count=1)


def _names_it(sentence: str, question: str) -> bool | None:
    """Whether a sentence names the same for the only one that a question asks about, or another name.

    "The capital of Italy is Rome." for "Is Rome the capital of Italy?"
    """
    asked, said = _IS_THE.match(question), _THE_IS.match(_ITS.sub(r"The \2 of \1", sentence))
    if asked is None or said is None or content(asked["the"]) != content(said["the"]):
        return None
    own, given = content(asked["name"]), content(said["name"])
    return True if given[: len(own)] == own else None if {*own} & {*given} else False


def _without_adverbs(sentence: str, asked: Sequence[str]) -> Sequence[str]:
    """What was asked, without adverbs that the sentence puts elsewhere: "Botanically, a tomato is a fruit"."""
    said = {*content(sentence)}
    fewer = [word for word in asked if not (word.endswith("ly") and word in said)]
    return fewer if len(fewer) > 1 else asked


def _short_of_object(sentence: str, asked: Sequence[str]) -> Sequence[str]:
    """What was asked, without an object that the sentence has named before and refers to as "it" at its end."""
    m = _IT_AT_END.search(sentence)
    if m is None:
        return asked
    said = content(sentence[: m.start()])
    for n in range(min(_OBJECT, len(asked) - _KEPT), 0, -1):
        kept = asked[:-n]
        if {*asked[-n:]} <= {*said} and {*kept} <= {*said} and said.index(asked[-n]) < said.index(kept[0]):
            return kept
    return asked


def _in_order(words: Sequence[str], said: Sequence[str]) -> bool:
    given = iter(said)
    return all(word in given for word in words)


def _claim(sentence: str, asked: Sequence[str]) -> str:
    """The clause of a sentence that says all that was asked, without its reasons: they may deny other things.

    "17 is a prime number because it has no other divisors."
    """
    clauses = [c for c in _REASON.split(sentence) if _in_order(asked, content(c))]
    whole = len(clauses) != 1 or clauses[0].lstrip().casefold().startswith("that ") or _BUT_IT.search(sentence)
    return sentence if whole else clauses[0]


def _of_its_subject(sentence: str, asked: Sequence[str], names: set[str]) -> bool | None:
    """What a sentence about "it" says, or one that ends with its verb ("They cannot fly.", "Penguins can't.").

    Only the subject may be left out: the names that the question begins with or its first word, and "number". A
    sentence that brings in another name may be about that.
    """
    subject = next((i for i, word in enumerate(asked) if word not in names), len(asked) - 1) or 1
    wanted = [word for word in asked[subject:] if word != "number"] or list(asked[-1:])
    if re.match(r"\W*(?:they|both)\b", sentence, re.IGNORECASE):
        wanted = [word for word in wanted if word not in names] or wanted  # both that the question names
    sentence = _claim(sentence, wanted)
    words = [t for t in tokens(_NO_DOUBT.sub(" ", sentence)) if t.is_word]
    said = [word for word in content(sentence) if word not in _DENYING]
    denials = sum(t.word in _DENYING for t in words)
    others = any(t.capital and not {*content(t.word)} <= {*asked} for t in words[1:] if not t.word.isdigit())
    if not words or others or denials > 1 or {t.word for t in words} & (_OPEN | _DOUBTING) or {*asked} & _DENYING:
        return None
    about = _PRONOUN.match(sentence) is not None and _in_order(wanted, said)
    ended = bool(asked) and said == [asked[0]] and words[-1].word in _VERBS
    same = len(asked) > 1 and {*said} < {*asked} and asked[0] in said and _in_order(wanted, said)
    return denials == 0 if about or ended or same else None


def _of_the_one_meant(parts: Sequence[str], question: str, names: set[str]) -> list[tuple[str, bool]]:
    """What sentences say of a name, or of the kind of thing, that stands in place of what a question describes.

    "Lima is not a port." for "Is the capital of Peru a port?"; "Peru is a port." says nothing of its capital. Nor does
    "Lima is a port." where another sentence may be about another city.
    """
    asked, found, about = content(question), [], set[str]()
    denying, kind = _DENYING - {*asked}, _SUBJECT_OF_A_KIND.match(question)
    for sentence in parts:
        m = _IT_IS_SO.fullmatch(sentence)
        if m is None or {t.word for t in tokens(sentence)} & (_OPEN | _DOUBTING) or _NOT_ONE.match(m["name"]):
            continue
        name, rest = content(m["name"]), [w for w in content(m["rest"]) if w not in denying]
        denials = sum(t.word in denying for t in tokens(sentence))
        verb = tokens(m["rest"])[0].word in {*_VERBS, "never"} or _DOES.match(question)
        fits = verb and name and 0 < len(rest) < len(asked) and rest == [*asked[-len(rest) :]] and denials < 2
        described = len(asked) - len(rest) - ({"her", "his", "its", "their"} & {*asked[:1]} != set()) > 1
        described = described and (kind is None or kind["with"])  # "Jupiter is red." for "Is the planet Mars red?"
        new = described and not {*name} & {*asked, *denying} and re.match(r"(?:[Tt]he|[Aa]n?)\s|[A-Z]", m["name"])
        # "The letter is under the mat." does not say where the key is
        if fits and (new or name == [*asked[:1]]) and not {*name} & names:
            found.append((sentence, denials == 0))
            about |= {*name}
    others = [s for s in parts if not _ITS_OWN.match(s) and not about & {*content(s)}]
    return [] if others else found


def _compares(sentence: str, greater: Sequence[str], lesser: Sequence[str], names: set[str]) -> bool | None:
    """What a sentence says where a question compares ("Is the Nile longer than the Rhine?"): one side may be left out.

    True for "The Nile is longer.", False for "The Rhine is longer (than the Nile)."; None with a word of denial.
    """
    words = {t.word for t in tokens(sentence)}
    left, _, right = sentence.partition(" than ")
    said, other = content(left), content(right)
    if words & (_DENYING | _OPEN) or not lesser or len(greater) < 2:
        return None
    if not other and not {*said} & {*lesser} and _in_order(greater, said):
        return True
    # the other one in its place, with all else that the question says of the first one
    left_out = {*greater} - {*said}
    swapped = {*lesser} <= {*said} and {*other} < {*greater} and not {*said} & {*other}
    return False if swapped and left_out and all(w in names or w.isdigit() for w in left_out) else None
