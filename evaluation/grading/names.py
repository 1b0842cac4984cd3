"""Whether a text answers with a name or phrase: exactly, in a sentence that asserts it, or undecided by rule.

After an answer cue the first sentence decides. Without a cue the first sentence (as chat models write it), a
conclusion, or a sentence that continues the end of an earlier one decides. A name anywhere else leaves the answer
undecided, never wrong. A text without the name is wrong.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from . import cues, echo, mentions, spellings, text, view
from .mentions import Role
from .view import Token, tokens, words

_FILLER = re.compile(
    r"^\W*(?:sure|certainly|of\s+course|great\s+question|absolutely|okay|ok|alright|let's\s+think|let\s+me\s+think"
    r"|let's\s+break|let's\s+solve|to\s+answer\s+this|here\s+(?:is|are)|here's|hello|hi|thank\s+you|good\s+question"
    r"|as\s+an\s+ai|that's\s+a\s+great|i(?:'m|\s+am|'d\s+be)\s+(?:glad|happy)|(?:how|what)\s+(?:can|may)\s+i\s+(?:help|assist|do))\b[^.!?\n]*[.!?:\n]?\s*$",
    re.IGNORECASE,
)
_QUESTION = re.compile(r"\s*[#*]*\s*(?:(?:main\s)?question|q|user|human)\b[\s\d:*]*", re.IGNORECASE)
_BELOW = re.compile(
    r"\b(is|are|was|were|be|prints?|outputs?|returns?):\s*\n\s*(?:(?:python|plaintext|text|txt|output|bash|console)\n\s*)?"
)
"""Between a sentence and the answer below it, perhaps in a block of code: "The output is:" and a line."""
_MARK = re.compile(r"\A\s*(?:\d{1,2}[.)]|[-*\u2022])\s+(?=[^\W\d])")
"""The mark of a list before its first item."""
_INNER_STOP = re.compile(r"(?:[!?]|(?<=\w\w)\.)(?=\s\w)")
"""A stop inside a name that ends no sentence: "Oklahoma! in Concert", "Bell Bros. Coffee"."""
_NOTE = re.compile(r"(?<=[a-z]{3})1(?=[.,;]|\Z)")
"""The number of the first footnote behind a word: "It is Vienna1."; other films have a "Terminator2"."""
_SPELLED = re.compile(r"(?<![\w-])[^\W\d_](?:-[^\W\d_]){2,}(?![\w-])")
_SECOND_STEP = re.compile(r"(?:^|\s)2[.)]\s")
_DENIAL = re.compile(
    r"^\W*(?:(?:it|that|this)(?:\s+(?:isn't|wasn't|is\s+not|was\s+not)|'s\s+not)|not)\s+(?:\w+\W+){0,3}\w+\W*$"
    r"|^\W*(?:that|this)'s\s(?:incorrect|wrong|false)\W*$",
    re.IGNORECASE,
)
"""A sentence that only says what the answer is not: "Not Lyon.", "It isn't Lyon.", "That's wrong."."""
_ASIDE = re.compile(r"\((?:[^()]|\([^()]*\)){0,300}\)")
_TAG_QUESTION = re.compile(r",\s*(?:isn't|is|wasn't|was|aren't|are|right|correct)\b[^,?]{0,12}\?\s*$", re.IGNORECASE)
_NEXT_STEP = re.compile(
    r"\W*(?:[Tt]he\s(?:\w+e(?:r|st)|first|second|last|former|latter)(?:\sone|\sof\s(?:the\stwo|these|them|those))?\s(?:is|was)\b"
    r"|[Tt]he\s[^.,]{0,60}?\b(?:of|for|in|at|during|on|by|to)\s+(?:that|this)\s+[a-z]\w+\b"
    r"|(?:[Hh]is|[Hh]er|[Ii]ts|[Tt]heir)\s(?:\w+['\u2019]?s?\s?){1,3}?(?:name\s)?(?:\s?(?:is|was|are|were)\b|:))"
)
"""A sentence about the end of the one before: "The president at that time was ...", "His father was ...", "The larger
one is ..."."""
_THE_IS = re.compile(r"\W*the\s(?:\w+\s){1,2}(?:is|was)\b", re.IGNORECASE)
_THEY = re.compile(r"\W*(?:They|People)\s(?:there\s)?(?:speak|use|pay)\b")
_INTERJECTION = re.compile(r"\W*(?:right|well|yes|no|hmm+|ah|oh|indeed|correct|exactly)\W*", re.IGNORECASE)
_SO = (
    r"so,?\s+(?:(?:in|on|at|after)\s[^,;.]{1,30}?\s)?(?:the|his|her|its|their|(?:it|he|she|they)(?:['\u2019]s)?"
    r"|(?-i:[A-Z])[\w-]+(?=\s(?:is|was)\s))\s"
)
_DRAWS = re.compile(rf"\W*(?:(?:therefore|thus|hence|in\s+conclusion)\b|{_SO})", re.IGNORECASE)
_JOINTS = re.compile(rf"; (?!or\b)|, (?={_SO})")
_OWN = re.compile(r"\A[^,;:]{1,60}\s(?:is|was|are|were)\s(?:its|his|her|their)\s\w+\W*\Z")
"""The same the other way round: "New Delhi is its capital."."""
_ANSWERED = re.compile(r"[^?:]{3,80}: (?:[Tt]hat|[Ii]t)(?:'s|\s(?:is|was|would\sbe))\s")
"""A question of the answer's own, with its answer: "India's capital? That's New Delhi!", joined by a colon."""
_OWN_QUESTION = re.compile(r"\?\s+(?=(?:that|it)(?:'s|\s(?:is|was|would\sbe))\s)", re.IGNORECASE)
_IT_IS = re.compile(r"\W*(?:it|that|this|he|she)(?:'s|\s(?:is|was))\s(?!not\b)", re.IGNORECASE)
_IT_IS_NOT = re.compile(
    r"\W*(?:it|that|this|he|she|[A-Z]\w+)(?:(?:'s|\s(?:is|was))\snot|\s(?:is|was)n't)\s", re.IGNORECASE
)
_BETWEEN = frozenset("public state national international grammar high central royal grand".split())
"""Words between a place and what is named after it: "Hyderabad Public School"."""
_ORDINARY = frozenset(
    "may march august will mark bill frank grace hope faith rose jack drew grant rich art rob pat sue carol dawn joy "
    "summer bush page bell job jobs gates chase banks rice bacon swift pope hardy wolf nice reading bath cork mobile "
    "deal hull sale split tours lens angers male turkey mars chad guinea jersey buffalo phoenix cologne "
    "lima".split()
)
"""Names that are other words in small letters."""
_NO_ADJECTIVES = frozenset(("may", "will", "march", "august"))
_NO_VERB_AFTER = r"(?<!\bis )(?<!\bwas )(?<!\bin )(?<!\bof )(?<!\bnamed )(?<!\bcalled )"
"""Before these words such a name is a name even in small letters: "It is in may."."""
_VERB_AFTER = r"(?=\s(?:be|have|not|also|only|go|get|become|help|lead)\b)"
_VERB = re.compile(
    r"(?<!\bthe\s)(?<!\ba\s)(?<!korean\s)\b(?:won|lead|saw|rose)"
    r"(?=\s(?:the|an?|its|his|her|their|our|my|this|that|these|it|him|them|us|to)\b)"
    r"|(?:(?<=\bcan\s)|(?<=\bmay\s)|(?<=\bwill\s)|(?<=\bcould\s))lead\b"
)
"""Names of things that are verbs where an object follows: "The team won the cup."."""
_VERBS = frozenset(("won", "lead", "saw", "rose"))
CORRECTED = "corrected"
"""Why a name does not count that is said and taken back."""
_LEAST = 3
"""Most words of a sentence in which a name may have a small letter although others have a capital."""
_DID = re.compile(r"[A-Z]\S+\s(?!upon\b|over\b|under\b)[a-z]{4,}\s[A-Z]")
"""The beginning of a short sentence: "Voltaire wrote Candide."."""
_AGREES = re.compile(r"\?\W*(?:yes|yep|yeah|correct|exactly|right|i think so)\b", re.IGNORECASE)
_SHORT = 8
"""Most words of an answer or a correction that is too short to contain another answer."""
_BARE = 3
"""Most words of a sentence that consists of an answer only."""
_REPEATED = 3
"""Words with which two sentences begin alike and contradict each other."""
_SURNAME = 3
"""Letters of the longest word that may be a small word and no surname."""
_CORRECTIONS = 3
_NEAR = 600
"""Corrections that are looked at, from the end, and characters around each."""
_MOST = 80
"""Sentences that are looked at."""


@dataclass(frozen=True)
class NameVerdict:
    """What a text says about the gold answer: ``right``, ``wrong`` or undecided (None), and how or why."""

    right: bool | None
    how: str
    """``exact``, ``alias``, ``contained``, ``consistency``; for other verdicts the reason."""


def match(answer: str, golds: Sequence[str]) -> str | None:
    """How a short answer gives one of ``golds`` (the gold answer first, then aliases), or None."""
    found = announced(answer, "", golds)
    return found.how if found is not None and found.right else None


def announced(line: str, rest: str, golds: Sequence[str], consistency: bool = False) -> NameVerdict | None:
    """What a text after an answer cue says; None where it says nothing at all."""
    found = uncued(line, golds, consistency, lead=True)
    return uncued(rest, golds, consistency) if found is None and len(rest) > len(line) else found


def uncued(whole: str, golds: Sequence[str], consistency: bool = False, lead: bool = False) -> NameVerdict | None:
    """What a text without a cue says; None where it says nothing at all. ``lead``: its first sentence may be enough."""
    plain = _without_codes(_read_as(whole, golds), golds)
    found = _exactly(plain, golds, consistency)
    if found is not None or not (said := _statements(plain)):
        return found
    first = _exactly(said[0], golds, consistency) if lead else None
    if first is not None and first.right and _correction(plain, _names(golds)) is None:
        return first
    return _read(plain, said, golds)


def _read_as(whole: str, golds: Sequence[str]) -> str:
    """A text without marks and greeting, and a gold answer that is spelled in it ("e-l-p-p-a") in one piece."""
    plain = _MARK.sub("", view.without_greeting(view.plain(whole)))
    plain = plain if any(map(_NOTE.search, golds)) else _NOTE.sub("", plain)
    for gold in (view.plain(g) for g in golds if _INNER_STOP.search(g)):
        plain = re.sub(re.escape(gold), lambda m: _INNER_STOP.sub("", m[0]), plain, flags=re.IGNORECASE)
    known = {gold.strip().lower() for gold in golds}  # not "C-E-G" where the gold answer is written so
    return _SPELLED.sub(lambda m: word if (word := m[0].replace("-", "")).lower() in known else m[0], plain)


def _without_codes(plain: str, golds: Sequence[str]) -> str:
    """A text with a mark before the words that are a code among the aliases but for the capitals: "It can be Peru" does
    not say CAN."""
    codes = [gold for gold in golds[1:] if text.is_code(gold)]
    if not codes or len(plain.split()) <= _LEAST:
        return plain
    words = rf"(?<![\w'-])(?:{'|'.join(codes)})(?![\w'-])"
    return re.sub(words, lambda m: m[0] if m[0].isupper() else f"x{m[0]}", plain, flags=re.IGNORECASE)


def _read(plain: str, said: Sequence[str], golds: Sequence[str]) -> NameVerdict:
    """What a text of these sentences says; words that only look like the name leave it undecided."""
    said_ = [_without_ordinary(s, golds) for s in said]
    found = _named(_without_ordinary(plain, golds), said_, golds)
    return NameVerdict(None, "another word") if found.right is False and said_ != [*said] else found


def _without_ordinary(sentence: str, golds: Sequence[str]) -> str:
    """A sentence with a mark before words that are a gold name but for the capital, or its verb: "It may be June."."""
    hidden = {g.lower() for g in golds if g.lower() in _ORDINARY and g[:1].isupper()} - {*golds}
    if hidden and len(sentence.split()) > _LEAST:
        cased = any(c.isupper() for c in sentence)
        for word in hidden:
            after = "" if cased else _VERB_AFTER
            before = _NO_VERB_AFTER if word in _NO_ADJECTIVES else ""
            asked = rf"{word.capitalize()}(?=\s(?:I|we|you|it|he|she|they)\b)"
            sentence = re.sub(rf"(?<![\w'-]){before}(?:{word}(?![\w'-]){after}|{asked})", f"x{word}", sentence)
    verbs = {g for g in golds if g in _VERBS}
    return _VERB.sub(lambda m: f"x{m[0]}" if m[0] in verbs else m[0], sentence) if verbs else sentence


def _named(plain: str, said: Sequence[str], golds: Sequence[str]) -> NameVerdict:
    names = _names(golds)
    if (corrected := _correction(plain, names)) is not None:
        return corrected
    spoken = [tokens(s) for s in said]
    roles = [mentions.best(s, names) for s in spoken]
    if all(role is None for role in roles):
        # a very long text is not read sentence by sentence, and "Prague? Yes, he was born there." asks first
        unread = (len(plain) > _NEAR or _AGREES.search(plain)) and text.has_any(plain, golds)
        return NameVerdict(None, "named in passing") if unread else _absent(said[0], golds)
    bare = _bare(said[0]) and not _SECOND_STEP.search(plain)
    if bare and len(said) > 1 and roles[0] is None:
        goes_on = roles[1] is Role.ASSERTED and (
            _NEXT_STEP.match(said[1]) or _THEY.match(said[1])
        )  # "Portugal. Its capital is Lisbon."
        if not goes_on and roles[1] is Role.ASSERTED and _THE_IS.match(said[1]):
            return NameVerdict(None, "named in passing")  # "Brazil; the ocean is the Atlantic."
        return NameVerdict(True, "contained") if goes_on else NameVerdict(False, "another answer")
    concluded = len(said) > 1 and _DRAWS.match(said[-1]) and roles[-1] is None
    first = spoken[0] if roles[0] is Role.ASSERTED else []
    again = any(role is None and _repeats(s, first, names) for s, role in zip(spoken, roles, strict=True))
    if any(role is Role.ASSERTED and (not n or _leads_on(n, said, spoken, names)) for n, role in enumerate(roles)):
        return NameVerdict(None, "another conclusion") if concluded or again else NameVerdict(True, "contained")
    rest = any(role is Role.ASSERTED for role in roles[1:])
    return NameVerdict(None, "named in passing") if roles[0] is None else _refused(roles[0], said[0], rest)


def _names(golds: Sequence[str]) -> list[tuple[str, ...]]:
    """The words of each name, without those that only add a place or a remark to another one: "Ely (city)" to Ely."""
    plain = [view.plain(gold) for gold in golds]
    begun = tuple(gold + mark for gold in plain for mark in (", ", " ("))
    return [name for gold in plain if not gold.startswith(begun) and (name := words(gold))]


def _statements(plain: str) -> list[str]:
    """The sentences with content: without questions, greetings and announcements."""
    plain = _BELOW.sub(r"\1: ", _OWN_QUESTION.sub(": ", plain))
    parts = [part for s in view.sentences(plain) for part in _JOINTS.split(s)]
    parts = parts if len(parts) <= _MOST else parts[: _MOST // 2] + parts[-_MOST // 2 :]
    every = [s for s in parts if not _FILLER.match(s)]
    every = [s for s in every if not _INTERJECTION.fullmatch(s)] or every
    every = [s for s in every if not _DENIAL.match(s) and not cues.NOT_TRUE.match(s)] or every
    kept = [_TAG_QUESTION.sub("", s) for s in every if not s.endswith("?") or _TAG_QUESTION.search(s)]
    return kept or every


def _exactly(plain: str, golds: Sequence[str], consistency: bool) -> NameVerdict | None:
    if len(plain) > 400:
        return None
    given = text.strip_opening(plain)
    for answer in (plain, given, _ASIDE.sub(" ", given), re.sub(r"\A([^,\n]+), ([^,\n]+)\Z", r"\2 \1", given)):
        for n, gold in enumerate(golds):
            if text.same(answer, gold):
                return NameVerdict(True, "alias" if n else "exact")
    if consistency and any(text.last_name(given, gold) for gold in golds):
        return NameVerdict(True, "consistency")
    return None


def _correction(plain: str, names: Sequence[tuple[str, ...]]) -> NameVerdict | None:
    """The verdict after a correction; None where no correction concerns the name."""
    for correction in reversed(cues.corrections(plain)[-_CORRECTIONS:]):
        after = _statements(plain[correction.at : correction.at + _NEAR])
        if not after:
            continue
        before = [tokens(s) for s in view.sentences(plain[max(0, correction.at - _NEAR) : correction.at])]
        said = [s for s in before if mentions.best(s, names) is Role.ASSERTED]
        role = mentions.best(tokens(after[0]), names)
        if role is Role.ASSERTED:
            return NameVerdict(True, "contained")
        if said:
            again = any(_repeats(tokens(after[0]), s, names) for s in said)
            short = again or len(after[0].split()) <= _SHORT
            return NameVerdict(False if short and correction.sure else None, CORRECTED)
    return None


def _refused(role: Role, sentence: str, elsewhere: bool) -> NameVerdict:
    if role is Role.PASSING or elsewhere:
        return NameVerdict(None, "named in passing")
    if role is Role.HEDGED:
        chosen = len(sentence.split()) > _SHORT and "either" not in sentence.casefold()
        return NameVerdict(None if chosen else False, "hedged")
    return NameVerdict(False, "denied")


def answered_later(later: str, golds: Sequence[str], question: str | None = None) -> bool:
    """Whether a completion that repeats the question gives the name in its next answer."""
    lines = [line for line in later.split("\n") if line.strip()]
    asked = [part for line in lines[:2] if (part := _QUESTION.sub("", line, count=1))]
    if question and asked and not echo.states_all(asked[0], question):
        return False
    end = next((n for n, line in enumerate(lines) if n and _QUESTION.match(line)), len(lines))
    answers = [line for line in lines[:end] if not _QUESTION.match(line)]
    return bool(answers) and text.has_any(" | ".join(answers), golds)


def of_another_kind(plain: str, golds: Sequence[str], question: str) -> bool:
    """Whether a name stands only at the beginning of a longer one that is of a kind that nobody asked for, or that the
    question names.

    "The Danube Canal" is not the river; "the Danube River" is, and "Berlin" is no answer in "the Berlin Wall".
    "New York City is in the north" does not say in which state New York City is.
    """
    asked, given = f" {text.normalize(question)} ", f" {text.normalize(plain[:_NEAR])} "
    held = [name for gold in golds if (name := f" {text.normalize(gold)} ") in given]
    places = [(name, given[m.end() - 1 :].split()) for name in held for m in re.finditer(re.escape(name), given)]
    joined = [
        (len(re.findall(rf"\b{re.escape(g)}\b", plain)), len(re.findall(rf"\b[A-Z]\w+-{re.escape(g)}\b", plain)))
        for g in golds
        if g[:1].isupper() and g in plain
    ]
    if any(n for _, n in joined) and all(every == n for every, n in joined):
        return True  # "Austria-Hungary" is not Hungary
    ends = [(name, rest[1:] if rest[0] in _BETWEEN and rest[1:] else rest) for name, rest in places if rest]
    kinds = [
        rest[0]
        for name, rest in ends
        if f"{name}{rest[0]} " in asked or (rest[0] in text.OTHER_KINDS and f" {rest[0]} " not in asked)
    ]
    return bool(kinds) and len(kinds) == len(places) and any(f" {k.capitalize()}" in plain for k in kinds)


def _absent(first: str, golds: Sequence[str]) -> NameVerdict:
    """A text without the name is wrong, unless it is a part of the name or a longer form of it."""
    given = text.strip_opening(first)
    letter = next((g for g in map(text.normalize, golds) if len(g) == 1 and max(map(len, golds)) < 3), None)
    said = text.normalize(given)
    inside = said.split()[-1][:1] if " " in said else said  # "Na" is another symbol than "N"; "Nitrogen" is open
    if letter and len(said) > 2 and letter in inside:  # a letter of an option has the option's name beside it
        return NameVerdict(None, "a letter inside a word")
    spoken = bool({t.word for t in tokens(given)} & view.FINITE)
    bare = len(given.split()) <= (_SHORT // 2 if spoken else _SHORT)
    spoken_of = [g for g in golds if text.normalize(g).split()[-1:] and text.normalize(g).split()[-1] not in text.KINDS]
    part = bare and any(text.part_of(given, gold) for gold in golds)
    part = part or any(by_surname(tokens(first), gold) for gold in spoken_of if "," not in gold)
    part = part or any(_without_place(first, *gold.split(", ", 1)) for gold in golds if ", " in gold)
    counts = [re.findall(r"\d+", g) for g in golds if re.search(r"\d\W+[^\W\d_]{2,}\W.*\d", g)]
    several = any(len(n) > 1 and n == [d for d in re.findall(r"\d+", first) if d in n] for n in counts)
    if part or several or spellings.only_a_number(given, golds):
        return NameVerdict(None, "part of the name")  # "50-49" for "50 yeas and 49 nays"
    if any(spellings.initials(given, words(g)) or spellings.initials(g, words(given)) for g in golds):
        return NameVerdict(None, "initials of the name")
    bare_words = tuple("-" if w in view.FINITE | view.SENTENCE_WORDS else w for w in words(first))  # not "was held on"
    if spellings.spells_out(bare_words, golds):
        return NameVerdict(None, "initials of the name")
    if any(mentions.inflected(words(first), words(gold), gold) for gold in golds):
        return NameVerdict(None, "another form of the words")
    return NameVerdict(False, "another answer")


def _without_place(sentence: str, name: str, place: str) -> bool:
    """Whether a sentence says the name of "Name, Place" without another place behind it."""
    said = mentions.best(tokens(sentence), [words(name)]) is Role.ASSERTED
    return said and place[:1].isupper() and not text.elsewhere(sentence, name, place)


def by_surname(sentence: Sequence[Token], gold: str) -> bool:
    """Whether a sentence has the last of a name's words without another name before it."""
    name = text.without_generation(words(gold))
    if len(name) < 2 or len(name[-1]) <= _SURNAME:
        return False
    for i, t in enumerate(sentence):
        before = next((b for b in reversed(sentence[:i]) if b.is_word), None)
        alone = before is None or not before.capital or before.word in {*text.TITLES, *view.SENTENCE_WORDS, *name[:-1]}
        if t.capital and t.word == name[-1] and alone:
            after = next((a.word for a in sentence[i + 1 :] if a.is_word), "")
            return len(name) == len(words(gold)) or not re.fullmatch(r"jr|sr|[ivx]+|\d+", after)
    return False


def _bare(sentence: str) -> bool:
    return (
        len(sentence.split()) <= _BARE
        and not _DID.match(sentence)
        and ": " not in sentence
        and not {t.word for t in tokens(sentence)} & view.FINITE
    )


def _repeats(sentence: Sequence[Token], first: Sequence[Token], names: Sequence[tuple[str, ...]]) -> bool:
    """Whether a sentence begins like the first one but continues with another name.

    "The highest mountain is Mount Everest. However, the highest mountain is K2."
    """
    opening = [t.word for t in first if t.is_word]
    at = min((i for name in names for i in range(len(opening)) if opening[i] == name[0]), default=0)
    words = [t.word for t in sentence if t.is_word]
    begin = 1 if words[:1] in (["however"], ["but"], ["actually"]) else 0
    return at >= _REPEATED and words[begin : begin + at] == opening[:at]


def _leads_on(n: int, said: Sequence[str], spoken: Sequence[Sequence[Token]], names: Sequence[tuple[str, ...]]) -> bool:
    """Whether a sentence is the next step to the answer: a conclusion, or about the end of an earlier sentence.

    "The author is Paul Ehrlich. Ehrlich was born in Vienna." is; "Ada Lovelace was first. She knew Babbage." is not.
    """
    if cues.concludes(said[n]) or _NEXT_STEP.match(said[n]) or _ANSWERED.match(said[n]):
        return True
    if _OWN.search(said[n]) or (n and _IT_IS.match(said[n]) and _IT_IS_NOT.match(said[n - 1])):
        return True
    about = _capitals(spoken[n][: _verb(spoken[n])]) - {w for name in names for w in name}
    return any(about & (_capitals(s[_verb(s) :]) - _capitals(s[: _verb(s)])) for s in spoken[:n])


def _verb(sentence: Sequence[Token]) -> int:
    return next((i for i, t in enumerate(sentence) if t.word in view.FINITE), len(sentence) // 2)


def _capitals(part: Sequence[Token]) -> set[str]:
    return {t.owner or t.word for t in part if t.capital and t.word not in view.SENTENCE_WORDS}
