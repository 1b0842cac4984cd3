"""Answers in the words of the question: the sentence that answers it, and the clause with its answer.

Chat models answer in a sentence that repeats the question ("Vienna is the capital of Austria."). This module is used
if the text alone does not decide, and only if the question is known.
"""

import re
from collections.abc import Sequence

from . import view
from .text import has_any, normalize
from .view import tokens

ASKING = frozenset(
    "is are was were be been do does did can could would will should has have had might may a an the of to in on "
    "at by for  from with and or it its he she they them their this that these those there what which who whom "
    "whose when where why  how many much you your i me my we us our as than if so any some name called year date "
    "one ever degree degrees celsius fahrenheit".split()
)
ENDING = re.compile(r"(?<=\w{3})(?:ing|ed|es|s|d|e)$")
_PASTS = """
became become, began begin, bought buy, broke break, brought bring, built build, came come, caught catch, chose
choose, drew draw, drove drive, ate eat, fell fall, felt feel, fought fight, found find, flew fly, forgot forget,
gave give, went go, goes go, grew grow, held hold, kept keep, knew know, left leave, led lead, lost lose, made make, met
meet, paid pay, ran run, said say, saw see, sold sell, sent send, sang sing, sank sink, slept sleep, spoke speak,
spent spend, stood stand, stole steal, swam swim, took take, taught teach, told tell, thought think, wore wear, won
win, wrote write, written write, sung sing, drawn draw, built build, chosen choose, stolen steal
"""
_BASES = {pair.split()[0]: pair.split()[1] for pair in _PASTS.split(",")}
"""Verbs as "did" takes them, by their past or participle: "Did Rome fall?", "Rome fell"."""
_AND = re.compile(r",?\s(?:and|but|while|then)\s|,\s(?=(?!located|situated|based)[a-z]+ed\sin\s)")
_NOT = re.compile(r"\bnot\b|n['\u2019]t\b")
_RATHER = re.compile(r"\s*(?:rather|instead)\b(?!\s(?:of|than)\b)")
_CLAUSE = re.compile(
    r"[,;:](?!\s?\d{1,4}\b)|\s[\u2014\u2013-]\s|\s(?:and|after|before|while|when|since|because|whereas)\s|[()]"
)
_TURN = re.compile(
    r"\b(?:but|however|actually|so|therefore|thus|hence|instead|not|than|between|which\s+(?:makes?|gives?|leaves?|means|totals?))\b"
    r"|n't\b",
    re.IGNORECASE,
)
"""Words after which a sentence may answer otherwise."""
_HOW = re.compile(r"\bhow\s+(?:much|many)\b", re.IGNORECASE)
_ITS = re.compile(r"\W*(?:(?P<the>the)|its|his|her|their)\s(?P<word>\w+)\b(?=.*\b(?:is|was)\b)", re.IGNORECASE)
_HEAD = re.compile(r"\W*(?:which|what)\s(?!(?:is|was|are|were)\b)(\w+)", re.IGNORECASE)
_TOLD = re.compile(r"\b(?:by|is|was|are|were)\s(?:the\s)?(\S+)")
_IT_IS = re.compile(r"\W*(?:it|that)(?:'s|\s(?:is|was))\s", re.IGNORECASE)
_IS_WHAT = re.compile(
    r"\b(?:is|are|was|were)\s(?:(?:\w+\s)?(?:by|in|called)\s)?(?:the\s|an?\s)?(\w+)\b(?!\s(?:who|that|which)\b)"
)
_THIS_IS = r"(?:it|this|that|he|she)(?:'s|\s(?:is|was))\s"
_IT_WORDS = 5
"""Most words of a clause that is nothing but an answer: "It is the Nile"."""
_TELLS_QUESTION = re.compile(
    r"(?:(?:okay|ok|alright|so|now),?\s)*(?:the|this)\s(?:question|user|problem)\s(?:here\s)?"
    r"(?:is\sasking|asks|wants|is\sabout|is\slooking\sfor)\b"
    r"(?P<what>(?:[^.?!\n]|[.?!](?![\"'\u201d)]*(?:\s|\Z)))*)(?:[.?!][\"'\u201d)]*|(?=\n)|\Z)",
    re.IGNORECASE,
)
"""A first sentence that says what is asked: "The question asks which river is longer."."""
_TELLS_MORE = re.compile(
    r",\s(?:which|who|so|and|that\sis|namely|i\.e\.|\w+ing\b)|\s(?:answer|because|whose)\b|=|\s[\u2014\u2013-]\s(?!.*\bor\b)"
    r"|(?<=\w):\s(?!.*\bor\b)",
    re.IGNORECASE,
)
_SUBJECT = re.compile(r"\W*(?:who|(?:which|what)\s\w+)\s(\w+)", re.IGNORECASE)
_IN_PLACE = re.compile(
    r"(?!\W*(?:(?:in|on|at|by|of|to|for|from|with)\s)?(?:what|which|who\w*|where|when|how|is|are|was|were|do|does|did)\b)"
    r"(?P<before>.+?),?\s(?:what|which|whom?|where)\b(?P<what>[^,;]*)",
    re.IGNORECASE,
)
"""A question that asks for something at the place where a statement has it: "Ann plays for which club?"."""
_ENDS_HERE = (
    r"(?!\w|'s|,?\s(?:or|and)\s)(?=\W*\Z|[,;:]|\s[(\u2013-]"
    r"|\s(?:in|at|on|since|from|with|as|who|which|when|where|while|during)\b)"
)
"""What stands behind a whole name: not "Leeds Beckett", not "the Leeds rival York"."""
_NEAR = 4
"""Content words before that place that an answer has to repeat."""
_WORDS = 3
"""A shorter question can be the beginning of an answer."""
_LEAST = 0.6
"""Share of the question's words that a text has to repeat."""
_MANY, _NEARLY = 8, 0.8
"""Words of a long question, and the share of them after which one more that a text repeats is no new beginning."""


def focus(text: str, question: str) -> str | None:
    """The sentence that answers: the first one after which the text has repeated all that it repeats of the question.

    None if the text repeats too little of the question, or has only one sentence.
    """
    asked = {*content(last_question(question))}
    parts = view.sentences(view.plain(text))
    said: set[str] = set()
    found = None
    for part in parts:
        new = asked & {*content(part)} - said
        nearly = len(asked) >= _MANY and len(new) == 1 and len(said) >= _NEARLY * len(asked)
        if new and not nearly and not part.endswith("?"):
            said |= new
            found = part
    return found if asked and len(said) >= _LEAST * len(asked) and len(parts) > 1 else None


def clause(text: str, question: str) -> str | None:
    """The clause of a sentence that repeats more of the question than any other one; None where another one corrects.

    >>> clause("Mozart was born in 1756, and he died in 1791.", "When was Mozart born?")
    'Mozart was born in 1756'
    """
    last = last_question(question)
    main = last[max(0, *(m.start() for m in _HOW.finditer(last)), 0) :]
    last = main if len(content(main)) > 1 else last
    names, asked = names_of(last), {word for word in content(last) if not word.isdigit() or word in last}
    sentence = next((s for s in view.sentences(view.plain(text)) if not s.endswith("?")), "")
    parts = [part.strip() for part in _CLAUSE.split(sentence)]
    if len(parts) < 2 or _TURN.search(sentence):
        return None
    held = [asked & {*content(part)} for part in parts]
    shares = [len(words) for words in held]
    best = shares.index(max(shares))
    elsewhere = any(words & names - held[best] for n, words in enumerate(held) if n != best)
    decisive = shares.count(shares[best]) == 1 and held[best] - names and (held[best] & names or not elsewhere)
    return parts[best] if decisive else None


def repeats(text: str, question: str) -> bool:
    """Whether a text asks the same question: most of its words, and little else."""
    asked, given = {*content(last_question(question))}, {*content(text)}
    return len(asked & given) >= _LEAST * max(len(asked), len(given), 1)


def asks_again(text: str, question: str) -> bool:
    """Whether the first paragraph of a text asks such a question again, of other things."""
    whole, mark, _ = text.strip().split("\n\n")[0].rpartition("?")
    asked = view.sentences(view.plain(whole + mark))[-1:] if mark else []
    return bool(asked) and normalize(whole) not in normalize(question) and repeats(asked[0], question)


def states(text: str, question: str) -> bool:
    """Whether a text is one statement that repeats most of the question."""
    asked, parts = {*content(last_question(question))}, view.sentences(view.plain(text))
    if len(parts) != 1 or parts[0].endswith("?") or not asked:
        return False
    return len(asked & {*content(parts[0])}) >= _LEAST * len(asked)


def states_all(text: str, question: str) -> bool:
    """Whether a text repeats every content word of the question."""
    asked = {*content(last_question(question))}
    return bool(asked) and asked <= {*content(text)}


def after_question(text: str, question: str) -> str:
    """A response without the question that it begins with, word for word or in a sentence that says what is asked; ""
    where it only asks it again, or repeats the alternatives that it gives ("Venus or Earth").
    """
    told = _TELLS_QUESTION.match(text)
    asks = told is not None and (told[0].rstrip("\"')\u201d").endswith("?") or not _TELLS_MORE.search(told["what"]))
    if told is not None and asks and {*content(told["what"])} & {*content(question)}:
        text = text[told.end() :].strip()
    if text.endswith("?") and {*content(text)} <= {*content(question)}:
        return ""
    if " or " in text[: len(question)] and f" {normalize(text)} " in f" {normalize(question)} ":
        return ""
    asked, given = question.split(), list(re.finditer(r"\S+", text[: 2 * len(question) + 100]))
    same = len(asked) > _WORDS and [m[0] for m in given[: len(asked)]] == asked
    return text[given[len(asked) - 1].end() :].strip() if same else text


def without_premises(text: str, question: str) -> str:
    """A response without the statements of the question that it repeats; all of it where nothing else is stated."""
    rest = text
    for given in view.sentences(view.plain(question)):
        if not given.endswith("?") and len(given.split()) >= _WORDS:
            rest = re.sub(rf"(?:\A|(?<=[.!?]\s)|(?<=\n)){re.escape(given)}(?=\s|\Z)", "", rest)
    return rest if {t.word for t in tokens(view.plain(rest))} & view.FINITE else text


def in_another_clause(text: str, golds: Sequence[str], question: str) -> bool:
    """Whether the only sentence with a gold answer says what was asked before it, and then adds what was not.

    "Plants take in oxygen and release carbon dioxide" does not answer "What do plants take in?" with carbon dioxide.
    """
    asked = {*content(last_question(question))}
    own, parts = without_premises(text, question), view.sentences(view.plain(text))
    if own != text and not has_any(own, golds):
        return True
    holding = [s for s in parts if has_any(s, golds)]
    if holding and all(_another_does(s, golds, question) for s in holding):
        return True
    if len(holding) != 1:
        return False
    if _said_later(parts, holding[0], question, golds):
        return True
    joints = [m for m in _AND.finditer(holding[0]) if not _joins_names(m)]
    first, added = (holding[0][: joints[0].start()], holding[0][joints[0].end() :]) if joints else (holding[0], "")
    corrects = _RATHER.match(added) if _NOT.search(first) else None
    added = added[corrects.end() :] if corrects else added
    opening = next((t for t in tokens(added) if t.is_word), None)
    verb = opening is not None and not opening.capital and opening.word not in view.SENTENCE_WORDS | ASKING
    held = [has_any(part, golds) for part in (first, added)]
    begins = any(f" {normalize(added)} ".startswith(f" {normalize(gold)} ") for gold in golds)
    if corrects and (begins or not verb):
        return False  # "It is not a language, but rather a variant of Portuguese."
    if len(joints) == 1 and sum(held) == 1:
        clauses = (first, added) if held[0] else (added, first)
        if _about_another(*clauses, question) or _all_of_another(*clauses, f"{first} {added}", question):
            return True
    answered = len(asked & {*content(first)}) >= _WORDS - 1 and not asked & {*content(added)}
    return verb and not begins and held == [False, True] and answered


def only_repeated(text: str, golds: Sequence[str], question: str) -> bool:
    """Whether a text has a gold answer only in words that it repeats of the question, and says something new.

    >>> only_repeated("The note B in the C major scale is E.", ["C"], "Which note follows B in the C major scale?")
    True
    """
    asked, known = f" {normalize(question)} ", {*content(question)}
    holding = [s for s in view.sentences(view.plain(text)) if has_any(s, golds)] if has_any(question, golds) else []
    own = [normalize(gold).split() for gold in golds]
    for sentence in holding:
        new = [
            w
            for w in _IS_WHAT.findall(sentence)
            if not {*content(w), *w * w.isupper()} <= known and not has_any(w, golds)
        ]
        said = normalize(sentence).split()
        places = [(i, i + len(g)) for g in own for i in range(len(said)) if g and said[i : i + len(g)] == g]
        if not new or not all(_repeated(said, *place, asked) for place in places):
            return False
    return bool(holding)


def _repeated(said: Sequence[str], begin: int, end: int, asked: str) -> bool:
    """Whether the words from ``begin`` to ``end`` stand in the question with the same words around them."""
    first, last = begin, end
    while first and f" {' '.join(said[first - 1 : last])} " in asked:
        first -= 1
    while last < len(said) and f" {' '.join(said[first : last + 1])} " in asked:
        last += 1
    return bool(content(" ".join((*said[first:begin], *said[end:last])))) and last - first > end - begin + 1


def fills(text: str, golds: Sequence[str], question: str) -> bool:
    """Whether a sentence has a gold answer at the place of what the question asks for, behind the same words.

    >>> fills("Ann Lee is a guard who plays for Leeds.", ["Leeds"], "Ann Lee is a guard who plays for which club?")
    True
    """
    asked = _IN_PLACE.fullmatch(last_question(question))
    if asked is None:
        return False
    before, what = content(asked["before"]), {*content(asked["what"])}
    for sentence in view.sentences(view.plain(text)):
        for gold in _held(golds, sentence) if not _NOT.search(sentence) else ():
            named = re.search(rf"(?<!\w){re.escape(gold)}{_ENDS_HERE}", sentence, re.IGNORECASE)
            said = [w for w in content(sentence[: named.start()]) if w not in what][-_NEAR:] if named else []
            words = iter(before[-len(said) - 1 :])  # an answer may leave one word out
            if len(said) >= _WORDS and all(word in words for word in said):
                return True
    return False


def _held(golds: Sequence[str], text: str) -> list[str]:
    """The gold answers that a text may hold; with hundreds of aliases, a pattern for each of the others takes long."""
    return [g for g in golds if not g.isascii() or g.lower() in text.lower()]


def _another_does(sentence: str, golds: Sequence[str], question: str) -> bool:
    """Whether a sentence says what was asked of another name: "The Inn flows into the Danube."."""
    asked = _SUBJECT.match(last_question(question))
    verb = content(asked[1]) if asked else []
    every = sentence.split()
    at = next((n for n, word in enumerate(every) if verb and content(word) == verb), 0)
    if every[at + 1 : at + 2] == ["by"]:
        return False  # "Originally sung by Ann Lee"
    begin = at
    while begin and every[begin - 1][:1].isupper() and every[begin - 1][-1:] not in ",;:":
        begin -= 1
    subject = [w for w in every[begin:at] if normalize(w) not in view.SENTENCE_WORDS]
    known = {*content(question)}
    return any(not {*content(w)} <= known for w in subject) and has_any(" ".join(every[at + 1 :]), golds)


def _joins_names(joint: re.Match[str]) -> bool:
    """Whether an "and" stands between the words of a name: "Pride and Prejudice"."""
    before = joint.string[: joint.start()].split()[-1:]
    return joint[0] == " and " and before != [] and before[0][0].isupper() and joint.string[joint.end() :][:1].isupper()


def _said_later(parts: Sequence[str], holding: str, question: str, golds: Sequence[str]) -> bool:
    """Whether a sentence after the one with the gold answer names something else with the last word of the question.

    "Bell emigrated from Scotland to Canada. He was born in Canada."
    """
    closing = (rf"(?:\A\W*|,\s){_THIS_IS}(?:the\s)?{re.escape(g)}\W*\Z" for g in _held(golds, holding))
    if any(re.search(pattern, holding, re.I) for pattern in closing):
        return False  # "This is Ann Lee. Her novels are set in Rome."
    later = [*parts][parts.index(holding) + 1 :] + holding.split("; ")[1:]
    known = {*content(question)}
    head = view.asked_for(question)
    another = (kind := _ITS.match(holding)) and kind["the"]  # "The director is Ann. The producer is Ben."
    for s in [*parts][: parts.index(holding) if another else 0] + later:
        named = any(w[:1].isupper() and not {*content(w)} <= known for w in s.split()[1:]) and not has_any(s, golds)
        m = _ITS.match(s)
        own = m is not None and m["word"].lower() == head
        about = m and (own if m["the"] else s in later and {*content(m["word"])} & known)
        if m and about and named and m["word"].lower() not in holding.split("; ")[0].lower().split():
            return True  # "Guernica lies in Spain; its painter was born in Cuba."
    verbs = {t.word for t in tokens(holding)} & {*view.FINITE, "from"}
    return bool(verbs) and any(_about_another(holding, s, question) for s in later)


def _about_another(with_gold: str, other: str, question: str) -> bool:
    """Whether the clause with the last word of the question names something else, and the gold answer is in the other.

    "She was born in Chennai, and studied in Hyderabad.", "She studied in Hyderabad, but was born in Mumbai."
    """
    last = [word for word in content(last_question(question))[-1:] if word not in names_of(question)]
    if not last or re.match(r"\W*(?:his|her|its|their)\s", with_gold, re.IGNORECASE):
        return False  # the next step: "The king is Charles, and his wife is Camilla."
    if last[0] in content(with_gold) or last[0] not in content(other):
        return False
    head = content(last_question(question))[0]
    if head in content(re.split(r"\b(?:is|was)\b", with_gold)[0]) and head not in content(other):
        return False  # "Sushi comes from Japan, and the currency of Japan is the yen."
    known = {*content(question)}
    after = other.split()
    at = next((n for n, word in enumerate(after) if last[0] in content(word)), len(after))
    return any(w[:1].isupper() and not {*content(w)} <= known for w in after[at + 1 :])


def _all_of_another(with_gold: str, other: str, sentence: str, question: str) -> bool:
    """Whether all that a sentence repeats of the question is said of a new name, in the clause without the gold answer.

    "The Amazon is the longest, but the Nile carries the most water." for "Which river carries the most water?"
    """
    clause = {*with_gold.split()} & view.FINITE or len(content(with_gold)) >= _WORDS
    if re.match(r"\W*(?:his|her|its|their)\s", with_gold, re.IGNORECASE) or not clause:
        return False
    head = _HEAD.match(last_question(question))
    known, asked = {*content(question)}, {*content(last_question(question))} - {*content(head[1] if head else "")}
    said = asked & {*content(sentence)}
    if _IT_IS.match(with_gold) and len(with_gold.split()) <= _IT_WORDS:
        return False
    if len(said) < _WORDS - 1 or not said <= {*content(other)} or said <= {*content(with_gold)}:
        return False
    new = [w for w in other.split() if content(w) and not {*content(w)} <= known]
    told = [*[w for w in other.split() if content(w)][:1], *_TOLD.findall(other)]  # not where the play is set
    return any(w in new and (w[:1].isupper() or len(new) == 1) for w in told)


def names_of(question: str) -> set[str]:
    """The content words of the names in a question, without endings."""
    return {stem for word in re.findall(r"(?<=[^.?!] )[A-Z][\w'-]*", question) for stem in content(word)}


def last_question(question: str) -> str:
    asked = [s for s in view.sentences(view.plain(question)) if s.endswith("?")]
    return asked[-1] if asked else question


def content(text: str) -> list[str]:
    """The content words of a text, without endings."""
    every = [t.word for t in tokens(text) if t.is_word and t.word not in ASKING]
    return [ENDING.sub("", _BASES.get(word, word)) for word in every]
