"""The part of a response that is read: without thinking, later questions and layout marks, and of limited length.

A response of up to 2 x ``HALF`` characters is read completely. Of a longer one only the first and last ``HALF`` are
read, so that a loop of a million characters costs as little as a page. If nothing in the last half says which answer is
final, such a response is invalid (``too-long``), never right or wrong.

What is read is divided into ``sentences``, and a sentence into ``tokens``: its words and marks, folded for comparison.
"""

import html
import re
import unicodedata
from functools import lru_cache
from itertools import islice
from typing import NamedTuple

from .spellings import alike, doubled

HALF = 5000
"""Characters that are read at either end of a long response."""
GAP = "\n\n\u2026\n\n"
"""Stands where the middle of a long response was left out."""

_NEXT_QUESTION = re.compile(
    r"\n[ \t]*[#*]{0,4}[ \t]*(?:Main[ \t]+)?(?:Question|Q|User|Human|Problem|Exercise)[ \t]*(?P<n>\d{0,2})"
    r"[ \t]*[*]{0,3}(?::|(?<=\d)[*]{0,3}(?=\n))",
    re.IGNORECASE,
)
_OWN_LABEL = re.compile(r"\b(?:Q|Question )(\d)\b", re.IGNORECASE)
_CHAT_MARKS = re.compile(
    r"(?:<\|im_start\|>|<\|start_header_id\|>|<start_of_turn>)\s*(?:assistant|model)\b(?:<\|end_header_id\|>)?"
    r"|<\|?/?(?:im_end|im_start|eot_id|end_of_turn|endoftext|assistant|eos|s)\|?>"
)
_ENDS = frozenset(("<|im_end|>", "<|eot_id|>", "<|endoftext|>", "<end_of_turn>", "<eos>", "</s>"))
"""Marks that end a turn."""
_ENTITY = re.compile(r"&(?:#\d{1,6}|#x[0-9a-f]{1,5}|[a-z]{2,8}\d?);", re.IGNORECASE)
_TOOL_CALL = re.compile(
    r"<\|?(?P<tag>tool_calls?|function_calls?|tool_use)\|?>.*?(?:</(?P=tag)>|\Z)|```(?:tool_call|tool_code)\b.*?(?:```|\Z)",
    re.DOTALL | re.IGNORECASE,
)
_FENCED = re.compile(r"```(?P<tag>[\w+#-]*)[ \t]*\n(?P<body>.*?)(?:```|\Z)", re.DOTALL)
_LANGUAGES = frozenset("python py python3 javascript js typescript ts java c cpp c++ c# csharp go rust ruby r".split())
_STATEMENT = re.compile(
    r"^\s*(?:def|return|import|from|for|while|function|const|let|var)\s|\bprint\(|console\.log\(", re.M
)
_LITERAL = re.compile(r"(?:print|console\.log)\(\s*(\"[^\"]*\"|'[^']*'|-?\d[\d.]*)\s*\);?")
"""A program that prints what it has in words."""
_RESULT = re.compile(r"(?:#|//)[^\n]*\b(?:output|outputs|result|answer|prints)\b[^\n]*", re.IGNORECASE)
_FAREWELL = re.compile(
    r"(?<=[\s*.!?:)\]}])(?:i\s+hope\s+(?:this|that|it)\b|(?:please\s+)?(?:let\s+me\s+know|feel\s+free)\b"
    r"|if\s+you(?:'d|'ve|\s+(?:have|need|want|would))\b[^.!?\n]{0,80}\b(?:question|help|ask|know|assist|clarif|explain)"
    r"|(?:is\s+there|do\s+you\s+have|would\s+you\s+like)\b[^.!?\n]{0,80}\b(?:else|more|further|question|me\s+to|another)\b"
    r"|(?:good\s+luck|have\s+a\s+(?:great|nice|good))\b)[^.!?\n]*(?:[.!?]+|\Z)[^\w\n]*\Z",
    re.IGNORECASE,
)
"""The last sentence of a response where it only takes leave: "Let me know if you have more questions!"."""
_FAREWELLS = 3
_GREETING = re.compile(
    r"\A[\W_]*(?:(?:sure(?:\s+thing)?|certainly|of\s+course|absolutely|ok(?:ay)?|alright|all\s+right|no\s+problem"
    r"|(?:hello|hi|hey)(?:\s+there)?|(?:that(?:'s|\s+is)\s+)?an?\s+(?:great|good|interesting)\s+question"
    r"|(?:great|good|interesting)\s+question|(?:thank\s+you|thanks)(?:\s+for\s+(?:asking|(?:your|the)\s+question))?"
    r"|to\s+answer\s+(?:this|that|your|the)(?:\s+question)?"
    r"|as\s+an\s+ai(?![^.!?\n]{0,120}\s(?:but|however)\s)(?:\s+[\w-]+){0,3}?)\s*(?:[,:;!]|\s?[\u2014\u2013]|\s-)"
    r"|as\s+of\s+(?:my\s|20\d\d\b)[^.!?,\n]{0,60},|(?:based\s+on|according\s+to)\s+(?:my|the\s+information)\s[^.!?,\n]{0,60},"
    r"|as\s+far\s+as\s+i\s+(?:know|remember|can\s+tell),|to\s+the\s+best\s+of\s+my\s+knowledge,"
    r"|(?:(?:i(?:'m|\s+am)\s+)?sorry|i\s+apologi[sz]e|(?:my\s+)?apologies)\s+for\s[^.!?,\n]{0,60}[.!,]"
    r"|here(?:'s|\s+is|\s+are)\s[^.!?:\n]{0,60}:|let(?:'s|\s+me|\s+us)\s+think\b[^.!?:\n]{0,30}:"
    r"|as\s+an\s+ai\b[^.!?\n]{0,120}?(?=,?\s(?:but|however)\s))\s*(?:,?\s?(?:but|however|so|then|yes)\b[\s,]*)?",
    re.IGNORECASE,
)
"""Words before an answer that answer nothing: "Sure, ...", "Great question! ...", "As an AI I cannot ..., but ..."."""
_NO_ANSWER_YET = re.compile(
    r"(?:i\b(?!(?:'d|\s+would)\s+(?:say|guess|answer)"
    r"|\s+can\s+(?:tell\s+you|confirm|say)\s|\s+(?:know|think|believe|guess|do\s+not\s+know|don't\s+know))|let\b|here\b"
    r"|we\b|how\b|what\s+can\b|happy\b|glad\b|please\b|you\b|your\b|it\s+(?:depends|is\s+important)\b|$)",
    re.IGNORECASE,
)
"""What follows such words where only more of them do: "Sure, I can help with that."."""
_LAYOUT = [
    (re.compile(r"~~[^~\n]{0,200}~~"), " "),
    (re.compile(r"</?su[bp]>", re.IGNORECASE), ""),
    (re.compile(r"\\(?:text|mathrm|mathbf|textbf|textit|emph|boxed|mathit)[ \t]*\{([^{}]*)\}"), r"\1"),
    (re.compile(r"\\(?:text|mathrm|mathbf|textbf|textit|emph|boxed|mathit)[ \t]*\{([^{}]*)\}"), r"\1"),
    (re.compile(r"\\[()\[\]]"), " "),
    (re.compile(r"(?<=[A-Za-z)])_\{?(\d{1,2})\}?"), r"\1"),
    (re.compile(r"^[ \t]*#{1,6}[ \t]+|^[ \t]*>[ \t]+", re.MULTILINE), ""),
    (re.compile(r"\*{1,3}|`{1,3}|(?<!\w)_{1,2}(?=\S)|(?<=\S)_{1,2}(?!\w)"), ""),
]
_PARTICLES = frozenset("van von de der den di da du le la del".split())
_ABBREVIATIONS = frozenset(
    "dr mr mrs ms prof st mt ft jr sr no vs etc eg ie approx dept est gen gov col capt lt rev hon pres sen rep inc ltd "
    "co corp ca cf al fig vol ed eds op pp jan feb mar apr jun jul aug sep sept oct nov dec".split()
)
_INITIALS = re.compile(r"\b\w\.\w$")
"""The end of "U.S." and the like."""
_BEGINNINGS = frozenset(
    "the a an it he she they this that these in on at so therefore however there i we as to".split()
)
_STOP = re.compile(r"[.!?][\"'\u201d\u2019)\]]*(?=\s)|[。！？]|\n+")
_SENTENCES = 600
"""Most sentences that a text is split into; the rest counts as one."""
_SOFT_MARKS = str.maketrans({"\u2019": "'", "\u2018": "'", "\u201c": '"', "\u201d": '"', "\u00a0": " "})


def visible(text: str) -> str | None:
    """The response after its thinking block and before the end of its turn; None while the block is still open.

    A closing tag without an opening one counts: some chat templates open the block in the prompt.
    """
    text = _ENTITY.sub(lambda m: html.unescape(m[0]), text)
    text = re.sub(r"\s{4,}", lambda m: "\n\n" if "\n" in m[0] else " ", text)
    closed = text.rfind("</think>")
    if closed >= 0:
        return _one_turn(text[closed + len("</think>") :])
    return None if re.match(r"\s*<think>", text) else _one_turn(text)


def _one_turn(text: str) -> str:
    """The text up to the mark that ends its first turn, without marks: base models go on with turns of their own."""
    return _CHAT_MARKS.sub("", text[: _turn_end(text)]).strip()


def _turn_end(text: str) -> int | None:
    marks = [m for m in _CHAT_MARKS.finditer(text) if m[0] in _ENDS and _CHAT_MARKS.sub("", text[: m.start()]).strip()]
    struck = "<s>" in text  # then </s> ends what is struck out
    return next((m.start() for m in marks if not (struck and m[0] == "</s>")), None)


def ends_its_turn(text: str) -> bool:
    """Whether a response has the mark that ends a turn after its answer, so that no token limit cut the answer."""
    return _turn_end(text.rpartition("</think>")[2]) is not None


def without_tool_calls(text: str) -> str:
    """The text without calls of tools, which ask for an answer and give none."""
    return _TOOL_CALL.sub("", text).strip() if "tool" in text or "function_call" in text else text


def without_programs(text: str) -> str:
    """The text without programs, whose numbers are not yet results; comments that say what one prints are kept."""
    return _FENCED.sub(_results, text) if "```" in text else text


def _results(m: re.Match[str]) -> str:
    program = m["tag"].lower() in _LANGUAGES or (not m["tag"] and _STATEMENT.search(m["body"]))
    line = m["body"].strip()
    if "\n" not in line and not _STATEMENT.search(line):
        return line
    if not program:
        return m[0]
    if "\n" not in line:
        literal = _LITERAL.fullmatch(line)
        return literal[1] if literal else line.partition("#")[2]
    return "\n".join(comment.lstrip("#/ ") for comment in _RESULT.findall(m["body"]))


def without_farewell(text: str) -> str:
    """The text without closing sentences that offer more help; one that consists of them only is kept."""
    for _ in range(_FAREWELLS):
        found = _FAREWELL.search(text, max(0, len(text) - 400))
        if found is None or not text[: found.start()].strip():
            break
        text = text[: found.start()].rstrip()
    return text


def without_greeting(text: str) -> str:
    """The text without polite words before its answer; one that goes on to announce or to ask something is kept.

    >>> without_greeting("Sure, the capital of France is Paris.")
    'the capital of France is Paris.'
    """
    found = _GREETING.match(text[:300])
    rest = text[found.end() :] if found else ""
    return text if _NO_ANSWER_YET.match(rest) else rest


_BELIEF = re.compile(
    r"(?:\A|(?<=[.!?]\s))(?:(?:although|though|while|even\sthough)\s)?(?!(?:you|one)\s(?:\w+\s){0,2}says?\b)(?:"
    r"(?:(?:(?:many|most|some|a\slot\sof)\s)?(?:people|students)|many|everyone|everybody|you|one)\s"
    r"(?:(?:might|may|could|would|will|often|commonly|usually|sometimes|mistakenly|wrongly)\s){0,2}"
    r"(?:thinks?|believes?|guess(?:es)?|assumes?|expects?|supposes?|says?)\b"
    r"|(?:viele|manche)\s(?:leute\s|menschen\s)?(?:denken|glauben|meinen)\b"
    r"|beaucoup\s(?:de\s(?:gens|personnes)\s)?(?:pensent|croient)\b|(?:muchos|mucha\sgente)\s(?:creen?|piensan?)\b"
    r"|(?P<past>I\s(?:used\sto\s(?:think|believe|assume)|(?:(?:at\s)?first|once|initially)\s(?:thought|believed|assumed))\b)"
    r")[^.;!?\n]*?(?:[.;]\s|,?\s(?=(?:but|however|yet|aber|doch|mais|pero)\b)|,\s(?=(?:it|that|the|in\sfact|actually)\b))",
    re.IGNORECASE,
)
_CONTRAST = re.compile(
    r"[^.;!?\n]{0,60}?\b(?:actually|really|in\s(?:fact|truth|reality)|but|however|aber|doch|mais|pero|the\s(?:right|correct|true))\b",
    re.I,
)


def without_beliefs(text: str) -> str:
    """The text without what others believe, or the writer once did, where it goes on to what is so instead.

    >>> without_beliefs("Many people think Sydney; it is actually Canberra.")
    'it is actually Canberra.'
    """
    found = _BELIEF.search(text[:HALF])
    rest = text[found.end() :] if found else ""
    if found is None or not rest.strip() or not (found["past"] or _CONTRAST.match(rest)):
        return text
    return text[: found.start()] + rest


_ASKED = re.compile(
    r"\b(?:(?:which|what)\s(?:(?:is|was|are|were)\s(?:the\s)?)?|who\s(?:is|was|are|were)\sthe\s)(\w+)", re.IGNORECASE
)


def asked_for(question: str) -> str | None:
    """The word for the thing that a question asks for, in small letters; None if it names none.

    >>> asked_for("What is the capital of Chile?")
    'capital'
    """
    found = _ASKED.search(question)
    return found[1].lower() if found else None


def _heads_a_part(label: re.Match[str], question: str) -> bool:
    """Whether a label in an answer is one of the question's own and heads a part of the answer.

    A question behind the label is the next one, unless it is the one that was asked, or it is the label's turn ("Q2: A
    cake needs 24 eggs. How ...?" with the number for X, below Q1).
    """
    own = tuple(dict.fromkeys(_OWN_LABEL.findall(question)))
    if len(own) < 2 or label["n"] not in own:
        return False
    line = label.string[label.end() :].partition("\n")[0].strip(" *")
    if "?" not in line or line in question:
        return True
    above = "\n" + label.string[: label.start()]
    return tuple(m["n"] for m in _NEXT_QUESTION.finditer(above) if m["n"]) == own[: own.index(label["n"])] != ()


def before_next_question(text: str, question: str | None = None) -> tuple[str, str]:
    """(the text before the next question that a completion continued with, that question and all after it).

    A response that begins with the question, or with several, has not been answered before it. Labels that the
    ``question`` has itself ("Q1:") head the parts of its answer.
    """
    for following in _NEXT_QUESTION.finditer(text):
        if _heads_a_part(following, question or ""):
            continue
        if text[: following.start()].strip():
            return text[: following.start()].strip(), text[following.start() :]
        return text, ""
    return text, ""


def within_reach(text: str) -> tuple[str, bool]:
    """(the part of a response that is read, whether its middle was left out)."""
    if len(text) <= 2 * HALF:
        return text, False
    return text[:HALF] + GAP + text[-HALF:], True


@lru_cache(maxsize=512)
def plain(text: str) -> str:
    """The text without Markdown and LaTeX marks, with straight quotation marks; lines are kept."""
    for pattern, kept in _LAYOUT:
        text = pattern.sub(kept, text)
    return unicodedata.normalize("NFC", text.translate(_SOFT_MARKS))


def sentences(text: str) -> list[str]:
    """The sentences and lines of a ``plain`` text with their stops; "Dr.", "U.S." and initials end no sentence."""
    found, start = [], 0
    for m in islice(_STOP.finditer(text), _SENTENCES):
        if text[m.start()] == "." and _abbreviated(
            text[max(0, m.start() - 12) : m.start()], text[m.end() : m.end() + 12]
        ):
            continue
        found.append(text[start : m.end()])
        start = m.end()
    found.append(text[start:])
    return [s.strip() for s in found if any(c.isalnum() for c in s)]


def _abbreviated(before: str, after: str) -> bool:
    last = before.split()[-1] if before.split() else ""
    word = last.strip("(\"'[").casefold()
    if word in _ABBREVIATIONS or _INITIALS.search(last):
        return True
    initial = len(word) == 1 and word.isalpha() and last[-1:].isupper()
    # "J. Robert" goes on, "vitamin C. It is" does not
    following = after.split()[0] if after.split() else ""
    if initial and following in _PARTICLES:
        return True  # "L. van Beethoven"
    return initial and following[:1].isupper() and following.casefold() not in _BEGINNINGS


_TOKEN = re.compile(
    r"[\u3040-ヿ㐀-鿿가-\ud7af]|[^\W_\u3040-ヿ㐀-鿿가-\ud7af]+(?:'[^\W_]+)*(?:(?<=s)'(?=\s))?|[^\w\s]|_"
)
_INITIALS_OF_A_NAME = re.compile(r"\b(?:[A-Z]\.\s?){2,}")
"""Initials are one word: "U.S.A.", "J. K." in "J. K. Rowling"."""
ARTICLES = frozenset({"a", "an", "the"})
FINITE = frozenset(
    "is was are were has had have did does do can could will would became won lies lay remains "
    "served plays played".split()
)
"""Verb forms that make a clause of their own."""
SENTENCE_WORDS = frozenset(
    "the a an in on at it this that these those he she they we i there his her its their as for when while if so "
    "since from by during after before according however therefore thus hence yes no "
    "final answer both one another".split()
)
"""Words that have a capital only where they begin a sentence."""
_LONGEST = 400
"""Words and marks of a sentence."""
_IRREGULAR = {"mouse": "mice", "goose": "geese", "foot": "feet", "tooth": "teeth", "child": "children", "ox": "oxen"}
_IRREGULAR |= {"person": "people", "man": "men", "woman": "women"}


class Token(NamedTuple):
    """A word or mark of a sentence."""

    word: str
    """Folded: no case, no accents, no apostrophes; punctuation marks unchanged."""
    capital: bool
    owner: str | None = None
    """The word without its possessive ("paris" of "Paris's")."""

    @property
    def is_word(self) -> bool:
        return self.word[:1].isalnum()


def fold(word: str) -> str:
    """Lower case, without accents and apostrophes."""
    if word.isascii():
        return word.lower().replace("'", "")
    decomposed = unicodedata.normalize("NFD", unicodedata.normalize("NFKC", word).casefold())
    return "".join(c for c in decomposed if not unicodedata.combining(c)).replace("'", "")


def tokens(sentence: str) -> list[Token]:
    """Words and marks of a ``plain`` sentence, up to a length that no real sentence has."""
    return list(_tokens(sentence))


@lru_cache(maxsize=1024)
def _tokens(sentence: str) -> tuple[Token, ...]:
    # Cached: one sentence is read by several rules while an answer is graded.
    found = []
    sentence = alike(sentence)
    sentence = _INITIALS_OF_A_NAME.sub(lambda m: re.sub(r"[.\s]", "", m[0]) + " ", sentence)
    for m in islice(_TOKEN.finditer(sentence), _LONGEST):
        raw = m[0]
        base = raw[:-2] if raw[-2:].casefold() == "'s" else raw[:-1] if raw.endswith("'") else None
        found.append(Token(fold(raw) or raw, raw[:1].isupper() or raw[:1].isdigit(), fold(base) if base else None))
    return tuple(found)


@lru_cache(maxsize=4096)
def words(text: str) -> tuple[str, ...]:
    """The words of a name, without articles unless it has no others ("The Who")."""
    every = tuple(t.word for t in tokens(text) if t.is_word)
    return tuple(w for w in every if w not in ARTICLES) or every


def same_word(token: Token, word: str, last: bool) -> bool:
    if token.word == word or token.owner == word or doubled(token.word, word):
        return True
    plural = len(word) > 2 and len(token.word) > 2 and not word[-1].isdigit()
    return last and plural and (token.word in _plurals(word) or word in _plurals(token.word))


def _plurals(word: str) -> tuple[str, ...]:
    return word + "s", word + "es", re.sub("fe?$", "ves", word), re.sub("y$", "ies", word), _IRREGULAR.get(word, "")
