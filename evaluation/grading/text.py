"""Names and phrases: normalized equality, aliases, short sentences around the gold answer, and abstention."""

import re
import unicodedata
from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import pairwise

from ..prompts import ABSTENTION
from .spellings import alike, doubled
from .view import sentences, without_greeting

_ARTICLES = re.compile(r"\b(?:a|an|the)\b")
_KNOWN = r"(?:be )?(?:determined?|known?|found|find|tell|say|answer(?:ed)?|(?:provided?|given?) (?:an?|the) answer)"
_SOURCE = (
    r"(?:(?:provided|given|available|search|data) ){0,3}(?:texts?|passages?|context|article|information|data|sources"
    r"|documents?|results|tools)(?: and \w+)?(?: (?:provided|given|available))?"
)
_SPECIFIC = r"(?:(?:any|an?|the|specific|exact|enough|sufficient|direct|explicit) ){0,2}"
_ABSTAIN = re.compile(
    r"(?:(?:i am|i'm|i was|afraid|i apologi[sz]e|i|we|it|this|that|there|sorry|unfortunately|currently|based on \w+ \w+"
    rf"|(?:(?:based )?on|in|from|given) (?:the )?{_SOURCE}|the {_SOURCE}"
    r"|(?:without|due to) (?:(?!without|due)[^.!?]){3,200}?, (?=\w)|as an ai(?: \w+){0,3}?|but"
    r"|the (?:(?:exact |specific )?(?:answer|year|date|number)|question|query))\b[\s,]*){0,6}"
    r"(?:do(?:es)? not know|don't know|(?:do not|don't) have (?:(?:access|enough|any|sufficient|the) \w+"
    r"|(?:\w+ )?(?:information|data|knowledge|details|records?)\b)|have no (?:\w+ )?(?:information|data|knowledge)\b"
    r"|need (?:more|additional) (?:\w+ )?(?:information|data|context|details?|evidence|knowledge|clarification)\b"
    r"|(?:cannot|can't|unable to|not able to|wasn't able to|(?:is|'s) (?:impossible|not possible) to"
    r"(?! \w+ (?:an?|any|each|half|more|\d+) (?!(?:\w+ )?(?:answer|year|date|name|number)\b))) (?:[a-z]+ly )?"
    r"(?:provide|give|determine|answer|identify|find|verify|confirm|compare|retrieve)(?! (?:more|less) than\b)"
    r"|not sure|unsure|not certain|uncertain"
    rf"|(?:cannot|can't|can not|could not|couldn't|unable to) (?:[a-z]+ly )?{_KNOWN}|no idea|have no idea|idk\b"
    r"|(?:do(?:es)? not|don't|doesn't) (?:say|mention|state|specify|tell|indicate)(?: [\w']+){0,15}\W*$"
    r"|(?:cannot|can't|can not) (?:say|tell|be (?:answered|determined))\b"
    rf"|(?:do(?:es)? not|don't|doesn't) (?:contain|include|provide|give) {_SPECIFIC}"
    r"(?:information|details?|data|(?:year|date|number|name)s?)\b"
    rf"|(?:could not|couldn't|cannot|can't) find {_SPECIFIC}(?:information|details?)\b"
    r"|(?:is |are )?no (?:specific|direct|explicit) (?:mention|information)\b"
    r"|(?:do(?:es)? not|don't|doesn't) (?:[a-z]+ly )?answer (?:the|this|that|your) question\b(?! directly)"
    r"|(?:is |are )?(?:insufficient|not enough|no) (?:information|evidence(?!\s(?:that|to\ssuggest)\b)|data|context)"
    r"|(?:is )?(?:unknown|undetermined|indetermin(?:ate|able)|inconclusive)|n/a\b|(?-i:NA|na)\b|is unclear"
    r"|is not (?:given|known|provided|specified|mentioned|stated)"
    r"|(?:is|are) (?:insufficient|not (?:enough|sufficient)) to (?:[a-z]+ly )?(?:answer|determine|identify)\b"
    r"|the information (?:required|needed|necessary) [^.!?;=]{0,200}\bis not available"
    rf"|not (?:mentioned|specified|stated|(?:[a-z]+ed |given |found )?(?:in|from) (?:the )?{_SOURCE})\W*$)",
    re.IGNORECASE,
)
_EXACT = re.compile(r"(?:[a-z]+\W+){0,3}(?:exact|specific)\s", re.IGNORECASE)
_REFUSE = re.compile(
    r"(?:i am (?:very )?sorry|sorry|i apologi[sz]e|my apologies|unfortunately)?[\s,.:;]*(?:but )?"
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
    r"\b(?:but|however|my (?:best )?guess|i (?:think|believe|would guess|guess)|probably|most likely)\b"
    r"|\b(?:so|therefore|thus|hence),?\s(?:(?:yes|no|true|false)\b|\d|(?-i:(?!I\b)[A-Z]))"
    r"|[.!]\s(?:yes|no)(?=\s*(?:[.,!;]|\Z))",
    re.IGNORECASE,
)
_GUESSES = re.compile(
    r"\b(?:guess|think|believe|assume|probabl[ey]|likely|possibly|perhaps|suggest\w*|infer\w*|impl(?:y|ies)|estimated?|around|about"
    r"|approximately|roughly|must|should|so|therefore|thus|hence|answer)\b",
    re.IGNORECASE,
)
_SO = re.compile(r"\W*(?:so|therefore|thus|hence|consequently|overall|in conclusion)\b[\s,]*", re.IGNORECASE)
_VERBS = re.compile(
    r"is|are|was|were|has|had|does|did|may|might|can|cannot|could|will|would|should|must|[a-z]+n['\u2019]t", re.ASCII
)
_SMALL = frozenset("a an the of in on at to for from by with and or as into over through under after before".split())
_CLAUSE, _TOLD = 4, 3
"""Least words of a sentence, and words in small letters that tell one without a verb of these from a title."""
_KNOWS_NOT = re.compile(
    r"(?!,?\s(?:it|he|she|this|that)(?:\s(?:is|was)n't|(?:'s|\sis|\swas)\snot)\s(?!clear|possible|known|mentioned|stated)"
    r"|,?\sit(?:'s|\sis|\sseems)\s(?:\w+ly\s)?(?:un)?likely\b|,?\s(?:yes|no)\s*(?:[.,;!]|\Z))"
    r"(?:[^.!?;]|[.](?=\S)){0,200}?(?:(?<!,\s)\b(?:not|no|without|lacks?|unclear)\b(?!\s(?:(?:any|a)\s)?doubt)|n't\b)",
    re.IGNORECASE,
)
"""What goes on after "but" and is no guess: "but it does not say which one"."""
_OPENINGS = re.compile(
    r"^(?:so\b[\s,]*)?(?:(?:the|my)\s+(?:final\s+|correct\s+|right\s+)?answer\s+(?:is|was|are|would be)"
    r"|it(?:\s+is|\s+was|'s)|this\s+(?:is|was)|that\s+(?:is|was)|that's|they\s+(?:are|were)|these\s+are|answer)\b\s*:?\s*",
    re.I,
)

_CASE = re.compile(
    r"\.(?:upper|lower|title|swapcase)\(|\b(?:upper|lower|title)[- ]?case\b|\bcapital\sletters\b|\bcapitali[sz]e",
    re.IGNORECASE,
)
"""Words of a question about capital and small letters."""


def normalize(text: str) -> str:
    """Lower case, no punctuation, no articles, single spaces, compatible Unicode forms, LaTeX text unwrapped."""
    return _short(text) if len(text) < 200 else _normalized(text)


def _normalized(text: str) -> str:
    text = re.sub(r"\\(?:text|mathrm|mathbf|textbf|boxed)\s*\{([^{}]*)\}", r"\1", text)
    text = re.sub(r"(?<=[A-Za-z)])_\{?(\d{1,2})\}?", r"\1", text)  # H_2O
    text = alike(unicodedata.normalize("NFKC", text)).casefold().replace("’", "'").replace("‘", "'")
    if not text.isascii():
        text = "".join(c for c in unicodedata.normalize("NFD", text) if not unicodedata.combining(c))
    text = re.sub(r"'s\b", "s", text).replace("'", "")
    text = re.sub(r"[^\w\s]|_", " ", text)
    shorter = _ARTICLES.sub(" ", text)
    return " ".join((shorter if shorter.strip() else text).split())


_short = lru_cache(maxsize=65536)(_normalized)


@lru_cache(maxsize=65536)
def plain(text: str) -> str:
    """The words of a text without case, accents and punctuation: what a lenient comparison sees."""
    letters = unicodedata.normalize("NFD", text.replace("ł", "l").replace("đ", "d").casefold())
    return " ".join(re.findall(r"\w+", "".join(c for c in letters if not unicodedata.combining(c))))


SMALL_WORDS = frozenset("us it in is as at an he be am no on so i who me to do my by or".split())
"""Names that are also small words ("US", the code "IS"): the capital tells, except where a sentence starts."""
_CODES = frozenset(
    "can are and per nor pan man ben bar fin sin lie jam gin cub ton cod mac sen id ad al ma pa la el de er ha hi va"
    .split()
)  # fmt: skip
"""Codes of countries and languages ("CAN", "ARE", "LA") that are other words in small letters."""


def is_code(name: str) -> bool:
    """Whether a name is a code in capitals that is another word in small letters."""
    return name.isupper() and name.strip().lower() in _CODES


def holds(text: str, answer: str) -> bool:
    """Whether an answer stands in a text, as whole words; "IS", "CAN" and the like only as they are written."""
    if f" {plain(answer)} " not in f" {plain(text)} ":
        return False
    small = (plain(answer) in SMALL_WORDS and not answer.islower()) or is_code(answer)
    return not small or _as_written(text, answer)


def has_any(said: str, names: Iterable[str]) -> bool:
    """Whether a text has one of the names, as whole words in whatever spelling; a small word only as it is written."""
    given = f" {normalize(said)} "
    return any(
        _as_written(said, name) and not name.islower()
        if normalize(name) in SMALL_WORDS or is_code(name)
        else f" {normalize(name)} " in given
        for name in names
    )


def _as_written(said: str, name: str) -> bool:
    return re.search(rf"(?<!\w){re.escape(name.strip())}(?!\w)", said) is not None


def strip_opening(text: str) -> str:
    """The answer without the words that introduce it ("It is ...", "The answer is ...")."""
    return _OPENINGS.sub("", text.strip(), count=1)


def abstains(text: str) -> bool:
    """True where an answer declines to answer; a guess after the doubt ("..., but I think 1876") is an answer."""
    if ABSTENTION.replace("_", " ") in re.sub(r"[-_]", " ", text.upper()) or _ABSTAIN_ELSEWHERE.match(text):
        return True
    begun = _begun(without_greeting(text))
    match = _ABSTAIN.match(begun)
    rest = begun[match.end() :] if match else ""
    if _EXACT.match(begun) and re.search(r"\d", rest):
        return False  # "The exact date is not known, but she died in 1903."
    bare = begun[:3].lower() == "no "  # "No evidence against it. Yes." begins with another no
    said = [m for m in _COMMITS.finditer(rest) if not (bare and m[0][0] in ".!")]
    return bool(match) and not any(_commits(m[0], rest[m.end() :]) for m in said)


def is_sentence(gold: str) -> bool:
    """Whether a gold answer is a sentence, which other words may say as well: "The sun is white from space"."""
    said = re.findall(r"[\w'\u2019]+", gold)
    told = [w for w in said if w[0].islower() and w not in _SMALL]
    verb = any(_VERBS.fullmatch(w) and before.lower() not in _SMALL for before, w in pairwise(said[:-1]))
    return len(said) >= _CLAUSE and (verb or (len(said) > _CLAUSE + 2 and len(told) >= _TOLD and gold[:1].isupper()))


def only_mentions(said: str, golds: Sequence[str]) -> bool:
    """Whether a text says first that it does not know, and names a gold answer later on in no guess: "The sources do
    not give the year. However, she led the institute in 1950."; or says so in its conclusion.
    """
    first, *later = sentences(said)
    if later and (drawn := _SO.match(later[-1])) and abstains(rest := later[-1][drawn.end() :]):
        return not has_any(rest, golds)
    named = [s for s in later if has_any(s, golds)] or later
    return abstains(first) and not has_any(first, golds) and not any(_GUESSES.search(s) for s in named)


def _commits(word: str, rest: str) -> bool:
    return word.lower() not in ("but", "however") or not _KNOWS_NOT.match(rest)


def refuses(text: str) -> bool:
    """True where a model refuses the request."""
    return bool(_REFUSE.match(re.sub(r"(?i)\bi'm\b", "I am", _begun(text)[:300])))


def _begun(text: str) -> str:
    """The text from its first word on."""
    first = re.search(r"\w", text)
    return text[first.start() :].replace("\u2019", "'") if first else ""


def other_marks(said: str, golds: Sequence[str], question: str | None) -> str | None:
    """What keeps a text with the words of a gold answer from being it: ``case``, ``another sign``, or nothing."""
    other = any(gold.casefold() in said.casefold() for gold in golds) and not any(gold in said for gold in golds)
    if other and _CASE.search(question or ""):
        return "case"
    return "another sign" if _in_other_signs(said, golds) else None


_OF_LETTERS = r"(?:\++|[#\u266d]|-(?=[\s.,;:!)]*\Z))(?!\w)"
_SIGNED = re.compile(rf"\w{_OF_LETTERS}")
_SIGNS = re.compile(
    r"(?:(?<![\w.,)])-|\A\W*?-\s)(?=[.\d])|(?<=\d)(?:[.^]|\s?[:/]\s?|,(?=\d{1,2}(?!\d)))(?=\d)"
    rf"|(?<=\d[eE])-(?=\d)|(?<=\w){_OF_LETTERS}|[<>\u2264\u2265\u2260\u00b1\u221a]"
)
"""Marks that make another value or name: -5, 1.5, 2:3, 1/2, C++, C#, O-, x > 3."""
_IN_BRACKETS = re.compile(r"\[[^\[\]]*\]")
"""A list of a program, whose commas are no decimal ones."""
_LAST_AND = re.compile(r",?\s(?:and|&)\s(?=[^,]*\Z)")
"""Before the last item of a list: "red, white and blue"."""
_SPELLED = re.compile(r"\W*(?:[^\W\d_]\W{1,3}){2,}[^\W\d_]\W*")
_MONEY = frozenset("$\u20ac\u00a3\u00a5")


def _with_signs(text: str) -> str:
    raised = re.sub("(?<=[\\d\u2080-\u2089])[\u2070\u00b9\u00b2\u00b3\u2074-\u2079]", r"^\g<0>", text)
    return unicodedata.normalize("NFKC", raised).translate({0x2212: "-", 0x2013: "-", 0x266F: "#"})


@lru_cache(maxsize=65536)
def _signs(text: str) -> tuple[str, ...]:
    text = _IN_BRACKETS.sub(lambda m: m[0].replace(",", ", "), text)
    return tuple(m[0].strip().replace(",", ".") for m in _SIGNS.finditer(_with_signs(text)))


def _in_other_signs(said: str, golds: Sequence[str]) -> bool:
    """Whether a text has a gold answer only with another sign behind it: "C" for C++, "O+" for O-, or inside
    a number in words: "Twenty-first Amendment" for First Amendment.
    """
    given = _with_signs(said).casefold()
    for spelled, sign in (("plus|positive", "+"), ("minus|negative", "-"), ("sharp", "#"), ("flat", "\u266d")):
        given = re.sub(rf"\s(?:{spelled})\b", sign, given)
    given = re.sub(r"\b(twen|thir|for|fif|six|seven|eigh|nine)ty-(?=[a-z])", r"\1ty_", given)
    names = [re.sub(r"\A(?:the|an?)\s(?=\w)", "", _with_signs(g).strip().casefold()) for g in golds]
    held = [name for name in names if name in given]  # of hundreds of aliases only these cost a pattern each
    own = rf"(?<!\w)(?<!\bnot )(?<!\bnot in )(?:{'|'.join(map(re.escape, held))})(?![\w+#\u266d])(?!-\W*\Z)"
    signed = any(re.search(rf"(?<!\w){re.escape(name)}{_OF_LETTERS}|ty_{re.escape(name)}", given) for name in held)
    return (signed or any(_SIGNED.search(n) for n in names)) and not (held and re.search(own, given))


def _ends_with_inequality(said: str, gold: str) -> bool:
    """Whether the last inequality of a text is a gold answer: "2x > 6, so x > 3" for x > 3."""
    if not _COMPARED.search(gold):
        return False
    marks = {
        r"\\leq?(?![a-z])|<=": "\u2264",
        r"\\geq?(?![a-z])|>=": "\u2265",
        r"\s*([<>\u2264\u2265])\s*": r"\1",
        r"[$*{}]|\\boxed": "",
    }
    for mark, plain in marks.items():
        said, gold = re.sub(mark, plain, said), re.sub(mark, plain, gold)
    return re.findall(r"[^\s,;]+[<>\u2264\u2265][^\s,;]*[^\s,;.]", said)[-1:] == [gold.strip()]


_COMPARED = re.compile(r"[<>\u2264\u2265]")


def same(a: str, b: str) -> bool:
    """Whether two texts are the same name, also where one is spelled letter by letter ("y s n r")."""
    money = {*a} & _MONEY, {*b} & _MONEY
    alike = _same_words(a, b) and _signs(a) == _signs(b) and (money[0] == money[1] or not all(money))
    return alike or _ends_with_inequality(a, b)


def _spelled(text: str) -> str:
    """A word that is spelled letter by letter, in one piece ("E-L-P-P-A", "c, a, b"); any other text as it is."""
    return re.sub(r"[\W_]", "", text) if _SPELLED.fullmatch(text) else text


def _same_words(a: str, b: str) -> bool:
    a, b = _spelled(a), _spelled(b)
    a, b = (_LAST_AND.sub(", ", text) if a.count(",") and b.count(",") else text for text in (a, b))
    x, y = normalize(a), normalize(b)
    if x == y or plain(a) == plain(b):  # "us" is a word, and normalized otherwise than "US"
        return bool(x)
    if _same_person(x.split(), y.split()):
        return True
    if len(x.split()) == len(y.split()) and all(
        a == b or doubled(a, b) for a, b in zip(x.split(), y.split(), strict=True)
    ):
        return True
    return _joined(x) == _joined(y) and len(_joined(x)) > 1 and 1 in (*map(len, x.split()), *map(len, y.split()))


def _same_person(x: list[str], y: list[str]) -> bool:
    """Whether two full names differ in nothing but initials beside two full words: "Philip K. Dick", "F. Scott Lee"."""
    if not 2 < len(x) == len(y) or x[-1] != y[-1]:
        return False
    pairs = list(zip(x, y, strict=True))
    alike = all(a == b or (1 in (len(a), len(b)) and a[0] == b[0] and not (a + b).isdigit()) for a, b in pairs)
    return alike and len(x[-1]) > 1 and sum(a == b and len(a) > 1 for a, b in pairs) > 1


def _joined(normalized: str) -> str:
    return normalized.replace(" ", "")


KINDS = frozenset(
    "city town county state island islands river lake sea ocean mountain mountains street university college school "
    "museum bridge tower castle church cathedral park war battle treaty republic kingdom union dollar pound franc peso "
    "crown".split()
)
"""Words that end the names of many different things of a kind."""
OTHER_KINDS = frozenset(
    "canal wall street university college school museum bridge tower castle church cathedral park war battle treaty "
    "airport station stadium airlines bank hotel".split()
)
"""Those that are other things than what they are named after."""
_PLACES = frozenset(
    "city town county state island islands republic kingdom union dollar pound franc peso crown".split()
)
"""Those without which a name is another one: "Mexico" is not Mexico City."""
TITLES = frozenset(
    "sir dame lord lady king queen prince princess emperor empress tsar majesty highness president pope "
    "saint professor prof captain general dr mr mrs ms madame".split()
)
"""Words before a name that belong to no name."""
GENERATIONS = frozenset("jr sr 2 3 4".split())


def elsewhere(said: str, name: str, place: str) -> bool:
    """Whether a text has a name with another place behind it: "Reims, Germany" or "Reims in Germany"."""
    return re.search(rf"{re.escape(name)}(?:,|\sin)\s(?!{re.escape(place[:4])})(?:the\s)?[A-Z]", said) is not None


def without_generation(name: Sequence[str]) -> Sequence[str]:
    """The words of a full name without "Jr.", or a number behind three words: "Ann May Lee III", not "Toy Story 3"."""
    full = sum(word not in TITLES for word in name) > (2 if name[-1:] and name[-1] in ("jr", "sr") else 3)
    return name[:-1] if full and name[-1] in GENERATIONS else name


def part_of(given: str, gold: str) -> bool:
    """Whether an answer is the end of a longer name ("Einstein" for "Albert Einstein"), or a fuller form of it."""
    short, full = normalize(given).split(), normalize(gold).split()
    long = [*without_generation(full)]
    short = short[:-1] if len(long) < len(full) and short[-1:] == full[-1:] else short  # "Martin King Jr."
    if 1 < len(long) < len(short):
        # "Lawrence Augustine Washington" for "Lawrence Washington"
        return short[0] == long[0] and short[-1] == long[-1]
    if len(short) > 1 and short[-1] in KINDS and short != long[-len(short) :]:
        return False  # "Carson City" is not a part of "Salt Lake City"
    if len(short) == len(long) > 1:  # "J. Austen"
        initials = all(a == b or (len(a) == 1 and a == b[0]) for a, b in zip(short, long, strict=True))
        return initials and short[-1] == long[-1] and len(short[-1]) > 2
    if not 0 < len(short) < len(long) or len("".join(short)) <= 2:
        return False
    # "Jane" of "Jane Austen", unlike "Danish" of "Danish krone" and "Mexico" of "Mexico City"
    capital = gold[:1].isupper() and gold.split()[-1][:1].isupper() and given[:1].isupper()
    name = len(short) > 1 or (capital and long[-1] not in _PLACES)
    if not all(any(a == b or (len(a) == 1 and a == b[0]) for b in long) for a in short if a not in TITLES):
        return False  # "Pierre Curie" is not Marie Sklodowska Curie
    return long[-1] == short[-1] or (name and long[: len(short)] == short)


def last_name(given: str, gold: str) -> bool:
    """Whether an answer is the last word of a name of several words."""
    plain, words = normalize(given), normalize(gold).split()
    return len(words) >= 2 and plain == words[-1] and len(plain) > 2 and not plain.isdigit()
