"""Answers in the words of the question: the sentence that answers it, and whether it affirms or denies it.

Chat models answer in a sentence that repeats the question ("17 is not a prime number."). This module is used if the
text alone does not decide, and only if the question is known.
"""

import re
from collections.abc import Callable, Sequence

from . import cues, mentions, view
from .text import normalize
from .view import tokens

_ASKING = frozenset(
    "is are was were be been do does did can could would will should has have had might may a an the of to in on "
    "at by for  from with and or it its he she they them their this that these those there what which who whom "
    "whose when where why  how many much you your i me my we us our as than if so any some name called year date "
    "one ever".split()
)
_DENYING = frozenset(
    "not never no neither nor cannot cant dont doesnt didnt isnt arent wasnt werent wont wouldnt couldnt shouldnt "
    "hasnt  havent unable impossible unlikely false incorrect untrue wrong myth misconception fallacy lie hoax deny "
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
    "before after, more fewer, more less, larger smaller, bigger smaller, greater smaller, longer shorter, "
    "taller shorter, higher lower, older younger, older newer, earlier later, faster slower, heavier lighter, "
    "hotter colder, warmer colder, above below, inside outside, same different, odd even, prime composite, "
    "north south, east west, alive dead"
)
_ENDING = re.compile(r"(?<=\w{3})(?:ing|ed|es|s|d|e)$")
_OPPOSITES = {frozenset(_ENDING.sub("", word) for word in pair.split()) for pair in _PAIRS.split(", ")}
_PASTS = """
became become, began begin, bought buy, broke break, brought bring, built build, came come, caught catch, chose
choose, drew draw, drove drive, ate eat, fell fall, felt feel, fought fight, found find, flew fly, forgot forget,
gave give, went go, goes go, grew grow, held hold, kept keep, knew know, left leave, led lead, lost lose, made make, met
meet, paid pay, ran run, said say, saw see, sold sell, sent send, sang sing, sank sink, slept sleep, spoke speak,
spent spend, stood stand, stole steal, swam swim, took take, taught teach, told tell, thought think, wore wear, won
win, wrote write
"""
_BASES = {pair.split()[0]: pair.split()[1] for pair in _PASTS.split(",")}
"""Verbs as "did" takes them, by their past: "Did Rome fall?", "Rome fell"."""
_AND = re.compile(r",?\s(?:and|but|while|then)\s")
_CLAUSE = re.compile(
    r"[,;:](?!\s?\d{1,4}\b)|\s[\u2014\u2013-]\s|\s(?:and|after|before|while|when|since|because|whereas)\s|[()]"
)
_TURN = re.compile(
    r"\b(?:but|however|actually|so|therefore|thus|hence|instead|not|than|between|which\s+(?:makes?|gives?|leaves?|means|totals?))\b"
    r"|n't\b",
    re.IGNORECASE,
)
"""Words after which a sentence may answer otherwise."""
_REASON = re.compile(r"[,;:]|\s(?:because|since|due\s+to|so|as(?=\s(?:it|they|he|she|there)\b))\b", re.IGNORECASE)
_PRONOUN = re.compile(r"\W*(?:(?:so|yes|no|actually)\W+)?(?:it|he|she|they|both|this|these|those)\b", re.IGNORECASE)
_VERBS = frozenset(
    "is are was were do does did can could will would has have had cannot cant isnt arent wasnt werent dont doesnt "
    "didnt couldnt wont wouldnt hasnt havent not".split()
)
_HOW = re.compile(r"\bhow\s+(?:much|many)\b", re.IGNORECASE)
_ITS = re.compile(r"\W*(?:(?P<the>the)|its|his|her|their)\s(?P<word>\w+)\b(?=.*\b(?:is|was)\b)", re.IGNORECASE)
_IS_IT = re.compile(r"\W*(?:is|was|would)\sit\s(?:be\s)?(?P<word>[a-z]{4,})\b", re.IGNORECASE)
_CALLED = re.compile(
    r"\W*(?:(?:it|that|this)(?:'s|\s(?:is|was))?)?\s?(?P<no>not\s|n't\s)?(?P<word>[a-z]{4,})\W*(?:[.,;!\n]|\Z|\b(?:to|for)\b)",
    re.IGNORECASE,
)
"""\"Is it legal to ...?" and "It isn't legal."."""
_IMPOSSIBLE = re.compile(r"\b(?:could|may|might)\s?(?:n't|not)\b", re.IGNORECASE)
"""\"Could" leaves open what "could not" denies."""
_BUT_IT = re.compile(
    r"\s(?:but|yet)\s(?:it|he|she|they)\s(?:is|are|was|were|do|does|did|can|could)(?P<no>n't|\s?not)?\W*\Z", re.I
)
_NOT_SO = re.compile(r"(?:,\snot|,?\s(?:rather\sthan|instead\sof))\s([^,;]{1,40})(?:,|\Z)")  # "Canberra, not Sydney"
_IT_AT_END = re.compile(r"\s(?:it|them|one|so)\b\W*\Z")
_IS_IT_TRUE = re.compile(r"\A\W*is\sit\s(?:true|correct|right|the\scase)\sthat\s", re.IGNORECASE)
_CITY_OF = re.compile(r"\b(?:city|town|state|island|country|planet|river)\s(?:of\s)?(?=[A-Z])")
"""The kind of what is named after it: "the city of Nice"."""
_OBJECT = 3
"""Most words of an object."""
_SUBJECT = re.compile(r"\W*(?:who|(?:which|what)\s\w+)\s(\w+)", re.IGNORECASE)
_FIRST = 2
"""Sentences that may be about the subject of the question without naming it, as may a conclusion."""
_WORDS = 3
"""A shorter question can be the beginning of an answer."""
_LEAST = 0.6
"""Share of the question's words that a text has to repeat."""


def focus(text: str, question: str) -> str | None:
    """The sentence that answers: the first one after which the text has repeated all that it repeats of the question.

    None if the text repeats too little of the question, or has only one sentence.
    """
    asked = {*_content(_last_question(question))}
    parts = view.sentences(view.plain(text))
    said: set[str] = set()
    found = None
    for part in parts:
        new = asked & {*_content(part)} - said
        if new and not part.endswith("?"):
            said |= new
            found = part
    return found if asked and len(said) >= _LEAST * len(asked) and len(parts) > 1 else None


def clause(text: str, question: str) -> str | None:
    """The clause of a sentence that repeats more of the question than any other one; None where another one corrects.

    >>> clause("Mozart was born in 1756, and he died in 1791.", "When was Mozart born?")
    'Mozart was born in 1756'
    """
    last = _last_question(question)
    main = last[max(0, *(m.start() for m in _HOW.finditer(last)), 0) :]
    last = main if len(_content(main)) > 1 else last
    names, asked = _names(last), {word for word in _content(last) if not word.isdigit() or word in last}
    sentence = next((s for s in view.sentences(view.plain(text)) if not s.endswith("?")), "")
    parts = [part.strip() for part in _CLAUSE.split(sentence)]
    if len(parts) < 2 or _TURN.search(sentence):
        return None
    held = [asked & {*_content(part)} for part in parts]
    shares = [len(words) for words in held]
    best = shares.index(max(shares))
    elsewhere = any(words & names - held[best] for n, words in enumerate(held) if n != best)
    decisive = shares.count(shares[best]) == 1 and held[best] - names and (held[best] & names or not elsewhere)
    return parts[best] if decisive else None


def repeats(text: str, question: str) -> bool:
    """Whether a text asks the same question: most of its words, and little else."""
    asked, given = {*_content(_last_question(question))}, {*_content(text)}
    return len(asked & given) >= _LEAST * max(len(asked), len(given), 1)


def states(text: str, question: str) -> bool:
    """Whether a text is one statement that repeats most of the question."""
    asked, parts = {*_content(_last_question(question))}, view.sentences(view.plain(text))
    if len(parts) != 1 or parts[0].endswith("?") or not asked:
        return False
    return len(asked & {*_content(parts[0])}) >= _LEAST * len(asked)


def states_all(text: str, question: str) -> bool:
    """Whether a text repeats every content word of the question."""
    asked = {*_content(_last_question(question))}
    return bool(asked) and asked <= {*_content(text)}


def after_question(text: str, question: str) -> str:
    """A response without the question that it begins with, word for word; "" where it only asks it again, or repeats
    the alternatives that it gives ("Venus or Earth").
    """
    if text.endswith("?") and {*_content(text)} <= {*_content(question)}:
        return ""
    if " or " in text[: len(question)] and f" {normalize(text)} " in f" {normalize(question)} ":
        return ""
    asked, given = question.split(), list(re.finditer(r"\S+", text[: 2 * len(question) + 100]))
    same = len(asked) > _WORDS and [m[0] for m in given[: len(asked)]] == asked
    return text[given[len(asked) - 1].end() :].strip() if same else text


def in_another_clause(text: str, golds: Sequence[str], question: str) -> bool:
    """Whether the only sentence with a gold answer says what was asked before it, and then adds what was not.

    "Plants take in oxygen and release carbon dioxide" does not answer "What do plants take in?" with carbon dioxide.
    """
    asked = {*_content(_last_question(question))}
    names = [f" {normalize(gold)} " for gold in golds]
    holding = [s for s in view.sentences(view.plain(text)) if any(n in f" {normalize(s)} " for n in names)]
    if holding and all(_another_does(s, golds, question) for s in holding):
        return True
    if len(holding) != 1:
        return False
    if _said_later(
        view.sentences(view.plain(text)), holding[0], question, lambda s: any(n in f" {normalize(s)} " for n in names)
    ):
        return True
    joints = [m for m in _AND.finditer(holding[0]) if not _joins_names(m)]
    first, added = (holding[0][: joints[0].start()], holding[0][joints[0].end() :]) if joints else (holding[0], "")
    opening = next((t for t in tokens(added) if t.is_word), None)
    verb = opening is not None and not opening.capital and opening.word not in mentions.SENTENCE_WORDS | _ASKING
    held = [any(n in f" {normalize(part)} " for n in names) for part in (first, added)]
    begins = any(f" {normalize(added)} ".startswith(n) for n in names)
    if len(joints) == 1 and _about_another(first, added, held, question):
        return True
    answered = len(asked & {*_content(first)}) >= _WORDS - 1 and not asked & {*_content(added)}
    return verb and not begins and held == [False, True] and answered


def _another_does(sentence: str, golds: Sequence[str], question: str) -> bool:
    """Whether a sentence says what was asked of another name: "The Inn flows into the Danube."."""
    asked = _SUBJECT.match(_last_question(question))
    verb = _content(asked[1]) if asked else []
    every = sentence.split()
    at = next((n for n, word in enumerate(every) if verb and _content(word) == verb), 0)
    begin = at
    while begin and every[begin - 1][:1].isupper() and every[begin - 1][-1:] not in ",;:":
        begin -= 1
    subject = [w for w in every[begin:at] if normalize(w) not in mentions.SENTENCE_WORDS]
    known = {*_content(question)}
    after = f" {normalize(' '.join(every[at + 1 :]))} "
    return any(not {*_content(w)} <= known for w in subject) and any(f" {normalize(g)} " in after for g in golds)


def _joins_names(joint: re.Match[str]) -> bool:
    """Whether an "and" stands between the words of a name: "Pride and Prejudice"."""
    before = joint.string[: joint.start()].split()[-1:]
    return joint[0] == " and " and before != [] and before[0][0].isupper() and joint.string[joint.end() :][:1].isupper()


def _said_later(parts: Sequence[str], holding: str, question: str, gold_in: Callable[[str], bool]) -> bool:
    """Whether a sentence after the one with the gold answer names something else with the last word of the question.

    "Bell emigrated from Scotland to Canada. He was born in Canada."
    """
    later = [*parts][parts.index(holding) + 1 :] + holding.split("; ")[1:]
    known = {*_content(question)}
    head = view.asked_for(question)
    for s in later:
        named = any(w[:1].isupper() and not {*_content(w)} <= known for w in s.split()[1:])
        m = _ITS.match(s)
        own = m is not None and m["word"].lower() == head
        about = m and (own if m["the"] else {*_content(m["word"])} & known)
        if m and about and named and not gold_in(s) and m["word"].lower() not in holding.split("; ")[0].lower().split():
            return True  # "Guernica lies in Spain; its painter was born in Cuba."
    if not later or not {t.word for t in tokens(holding)} & mentions.FINITE | {t.word for t in tokens(holding)} & {
        "from"
    }:
        return False
    return any(_about_another(s, holding, [False, True], question) for s in later)


def _about_another(first: str, added: str, held: Sequence[bool], question: str) -> bool:
    """Whether the clause with the last word of the question names something else, and the gold answer is in the other.

    "She was born in Chennai, and studied in Hyderabad.", "She studied in Hyderabad, but was born in Mumbai."
    """
    last = [word for word in _content(_last_question(question))[-1:] if word not in _names(question)]
    if held not in ([True, False], [False, True]) or not last:
        return False
    with_gold, other = (first, added) if held[0] else (added, first)
    if re.match(r"\W*(?:his|her|its|their)\s", with_gold, re.IGNORECASE):
        return False  # the next step: "The king is Charles, and his wife is Camilla."
    if last[0] in _content(with_gold) or last[0] not in _content(other):
        return False
    head = _content(_last_question(question))[0]
    if head in _content(re.split(r"\b(?:is|was)\b", with_gold)[0]) and head not in _content(other):
        return False  # "Sushi comes from Japan, and the currency of Japan is the yen."
    known = {*_content(question)}
    after = other.split()
    at = next((n for n, word in enumerate(after) if last[0] in _content(word)), len(after))
    return any(w[:1].isupper() and not {*_content(w)} <= known for w in after[at + 1 :])


def affirms(text: str, question: str) -> bool | None:
    """Whether a text states what a yes-or-no question asks, or denies it; None where it does neither, or both.

    >>> affirms("17 is not a prime number.", "Is 17 a prime number?")
    False
    """
    if (judged := _IS_IT.match(_last_question(question))) and (said := _CALLED.match(view.plain(text)[:200])):
        if said["word"].lower() == judged["word"].lower() and not {*said["word"].lower().split()} & _ASKING:
            return not said["no"]
    question = _CITY_OF.sub("", _IS_IT_TRUE.sub("", _last_question(question)))
    asked, names, than = _content(question), _names(question), question.partition(" than ")
    parts = [s for s in view.sentences(view.plain(text)) if not s.endswith("?")]
    said_so = {t.word for t in tokens(question)[:1]}  # "Could it ...?" "It could."
    said = [(s, v) for s in parts if (v := _stance(s, asked, said_so)) is not None]
    if not said and than[1]:
        said = [(s, v) for s in parts if (v := _compares(s, _content(than[0]), _content(than[2]), names)) is not None]
    if not said:
        near = [s for n, s in enumerate(parts) if n < _FIRST or cues.concludes(s)]
        said = [(s, v) for s in near if (v := _of_its_subject(s, asked, names)) is not None]
    concluded = [v for s, v in said if cues.concludes(s)]
    return concluded[-1] if concluded else said[0][1] if len({v for _, v in said}) == 1 else None


def _stance(sentence: str, asked: Sequence[str], said_so: set[str]) -> bool | None:
    if (m := _NOT_SO.search(sentence)) and (no := {*_content(m[1])}) and no <= {*asked} <= {*_content(sentence)}:
        return False
    but = _BUT_IT.search(sentence)
    if but and _in_order([w for w in asked if w != "number"], _content(sentence[: but.start()])):
        return None if {t.word for t in tokens(sentence[: but.start()])} & _DENYING else not but["no"]
    asked = _without_adverbs(sentence, _short_of_object(sentence, asked))
    sentence = _IMPOSSIBLE.sub(" not ", _claim(sentence, asked))
    words = [t.word for t in tokens(_NO_DOUBT.sub(" ", sentence))]
    if len(asked) < 2 or {*words} & (_OPEN - said_so | _DOUBTING - {*asked}) or {*asked} & _DENYING:
        return None
    # in the question's order: "12 is larger than 9" does not say that 9 is larger than 12
    denials = sum(word in _DENYING for word in words)
    if denials < 2 and _in_order(asked, _content(sentence)):
        return denials == 0
    said = _content(sentence)
    for i, word in enumerate(asked):
        for other in said if word not in said else ():
            if frozenset((word, other)) in _OPPOSITES and not denials:
                if _in_order((*asked[:i], other, *asked[i + 1 :]), said):
                    return False  # "Einstein died after the war began"
    return None


def _without_adverbs(sentence: str, asked: Sequence[str]) -> Sequence[str]:
    """What was asked, without adverbs that the sentence puts elsewhere: "Botanically, a tomato is a fruit"."""
    said = {*_content(sentence)}
    fewer = [word for word in asked if not (word.endswith("ly") and word in said)]
    return fewer if len(fewer) > 1 else asked


def _short_of_object(sentence: str, asked: Sequence[str]) -> Sequence[str]:
    """What was asked, without an object that the sentence has named before and refers to as "it" at its end."""
    m = _IT_AT_END.search(sentence)
    if m is None:
        return asked
    said = _content(sentence[: m.start()])
    for n in range(min(_OBJECT, len(asked) - _WORDS), 0, -1):
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
    clauses = [c for c in _REASON.split(sentence) if _in_order(asked, _content(c))]
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
    said = [word for word in _content(sentence) if word not in _DENYING]
    denials = sum(t.word in _DENYING for t in words)
    others = any(t.capital and not {*_content(t.word)} <= {*asked} for t in words[1:] if not t.word.isdigit())
    if not words or others or denials > 1 or {t.word for t in words} & (_OPEN | _DOUBTING) or {*asked} & _DENYING:
        return None
    about = _PRONOUN.match(sentence) is not None and _in_order(wanted, said)
    ended = bool(asked) and said == [asked[0]] and words[-1].word in _VERBS
    same = len(asked) > 1 and {*said} < {*asked} and asked[0] in said and _in_order(wanted, said)
    return denials == 0 if about or ended or same else None


def _compares(sentence: str, greater: Sequence[str], lesser: Sequence[str], names: set[str]) -> bool | None:
    """What a sentence says where a question compares ("Is the Nile longer than the Rhine?"): one side may be left out.

    True for "The Nile is longer.", False for "The Rhine is longer (than the Nile)."; None with a word of denial.
    """
    words = {t.word for t in tokens(sentence)}
    left, _, right = sentence.partition(" than ")
    said, other = _content(left), _content(right)
    if words & (_DENYING | _OPEN) or not lesser or len(greater) < 2:
        return None
    given = iter(said)
    if not other and not {*said} & {*lesser} and all(word in given for word in greater):
        return True
    # the other one in its place, with all else that the question says of the first one
    left_out = {*greater} - {*said}
    swapped = {*lesser} <= {*said} and {*other} < {*greater} and not {*said} & {*other}
    return False if swapped and left_out and all(w in names or w.isdigit() for w in left_out) else None


def _names(question: str) -> set[str]:
    """The content words of the names in a question, without endings."""
    return {stem for word in re.findall(r"(?<=[^.?!] )[A-Z][\w'-]*", question) for stem in _content(word)}


def _last_question(question: str) -> str:
    asked = [s for s in view.sentences(view.plain(question)) if s.endswith("?")]
    return asked[-1] if asked else question


def _content(text: str) -> list[str]:
    """The content words of a text, without endings."""
    every = [t.word for t in tokens(text) if t.is_word and t.word not in _ASKING]
    return [_ENDING.sub("", _BASES.get(word, word)) for word in every]
