"""Which number a text answers with, and which others it may mean.

After an answer cue the first number counts, without a cue the last. A computed number ("= 12") takes precedence over
one that is only named, and a number that is taken back ("no, sorry, it's 14") does not count. The other numbers of the
deciding sentence are rivals: where one of them is right, no rule can decide.
"""

import re
from dataclasses import dataclass, replace
from fractions import Fraction

from . import cues, numbers, units, words
from .numbers import Number

_SENTENCE = re.compile(
    r"(?<=[.!?])(?<!\bi\.e\.)(?<!\be\.g\.)(?<!\bapprox\.)(?<!\bca\.)(?<!\bno\.)[\"')\]]*\s+(?!\d{3}\b)|\n+|(?<=[。！？])"
)
_EQUALS = re.compile(r"[=\u2248\u2243\u2192\u21d2]|\b(?:equals|(?:is|are)\s+equal\s+to)\b", re.IGNORECASE)
_CLAUSE = re.compile(r"(?:[;,]|(?<=\bis\s\d):|(?<=\bis\s\d\d):)(?!\d)|\s(?:and|or|but|so|while|then)\s", re.IGNORECASE)
_HEDGE = re.compile(r"^\s*(?:[^\W\d]+\s+){0,2}or\s+(?:maybe\s+|possibly\s+|perhaps\s+)?[$€£]?$", re.I)
_LED = re.compile(
    r"\b(?!(?:is|are|about|approximately|around|roughly|exactly|only|a|an|the|total|of|equal|equals|to|answer|it|they|"
    r"there|be|would|will|just|nearly|almost|over|under|so|therefore|thus|probably|likely|most|simply|that|which|rs|usd"
    r"|approx|ca|circa)\b)[a-z]{2,}|\bthe\s*$",
    re.I,
)
"""A word before a number that is more than its introduction."""
_ADJUNCT = re.compile(
    r"\b(?:(?:for|per|(?<!\bare\s)(?<!\bhas\s)(?<!\bhave\s)over|across|among|including|within|during|in|each|with|at|(?<!total\s)(?<!sum\s)(?<!consist\s)(?<!consists\s)of|every)\s+(?:(?:the|his|her|its|their|all)\s+)?"
    rf"|to\s+(?:the|his|her|its|their|all)\s+)$|{cues.ELSEWHERE}$",
    re.I,
)
_BECAUSE = re.compile(r"\b(?:because|since|as|if|when|while|given)\b", re.IGNORECASE)
_REASON = re.compile(r"\s(?:because|since)\s", re.IGNORECASE)
_BEGUN = re.compile(r"\W*(?:in|it\s?is|it's)?\W*", re.IGNORECASE)
_WHICH = re.compile(
    r"\s?(?:[a-z]+\s?){0,2}\W*(?:;|,\s(?:which|since|as|given|making|though|although|while|whereas)\s|\bbecause\s"
    r"|\b(?:is|are|was)\s(?:[a-z]+\s)?(?:[a-z]+er|more|less)\s(?:[a-z]+\s)?than\s)",
    re.IGNORECASE,
)
_MAYBE = re.compile(r"\b(?:maybe|perhaps|possibly|(?:could|might|may)\s+be)\b", re.IGNORECASE)
_EXPLAINS = re.compile(
    r"[,;:.(\u2014\u2013]|\b(?:because|since|as|in|for|of|from|with|at|per|which|that|when|if|not|each|after|on|by|than|to|over"
    r"|rather|instead|within|during|every|using|left|out)\b",
    re.IGNORECASE,
)
"""Between an answer and the next number: the rest explains ("12 apples in 3 boxes"), unlike "3 hens give 18 eggs"."""
_AT_END = 15
"""Characters after the last number of what a colon explains."""
_EACH = re.compile(r"\b(?:each|per|apiece|both)\b", re.IGNORECASE)
_ASIDE = re.compile(
    r"\((?!(?:more\s)?(?:exactly|precisely)\b)(?:[^()]|\([^()]*\))*\)"
    r"|, which is (?:[^.,!?\n]|[.,](?=\d)){0,40}?\b(?:less|more|(?!rather|other)[a-z]+er) than\b"
    r"[^.!?\n]{0,80}|,? (?:up|down) from [^.,!?\n]{0,20}"
    r"|, an? [^.,!?\n]{0,15}\b(?:increase|decrease|rise|drop|discount|difference|savings?)\b"
    r"|, which (?:is|lies|falls) (?:\w+ )?between (?:[^.,!?\n]|[.,](?=\d)){0,40}"
    r"|, (?:which|who|whose|where) [^.!?\n]{0,200}?,(?!\s?\d)"
)
"""Text in parentheses, or in a relative clause between commas."""
_STRICT = re.compile(r"\b(?:more|less|fewer|greater|higher|lower|bigger|smaller)\s+than\s*(?:about\s+)?[$€£]?$", re.I)
_LOOSE = re.compile(
    r"\b(?:at\s+(?:least|most)|(?<!add\s)(?<!adds\s)up\s+to|over|under|above|below|no\s+(?:more|less|fewer)\s+than|almost\s+but\s+not"
    r"|(?:minimum|maximum)\s+of|from)\s*(?:about\s+)?[$€£]?$",
    re.I,
)
_REACHES = re.compile(
    r"\b(?:(?:reach\w*|speeds?|maximum)\b[^.!?]{0,20}|(?:round\w*|go|goes|went|ris\w+|rose|increas\w+)\s+)\bup\s+to\s*[$€£]?$",
    re.IGNORECASE,
)
"""\"It can reach 320 km/h" and "up to 320 km/h" say the same."""
_OR_MORE = re.compile(r"^\s*(?:\w+\s+)?or\s+(?:more|less|fewer|so\s+more|higher|lower)\b", re.I)
_ITEM = re.compile(r"^\s*\d{1,2}[.)]\s+(?=[^\W\d])", re.MULTILINE)
"""The number of an item in a list."""
_BARE_WORDS = 3
"""Most words beside the number in a sentence that consists of an answer only ("42 apples.")."""
_CORRECTIONS = 3
"""Corrections that are looked at, from the end."""
_CORRECTED_WORDS = 8
"""Words of a correction that is nothing but another answer ("no, sorry, it's 14")."""


@dataclass(frozen=True)
class QuantityReading:
    """The number that answers, or the reason why no number does, and the rivals."""

    number: Number | None
    reason: str | None = None
    """``no-answer``, ``hedged`` (a range, or one of several), ``bound`` ("more than 12"), ``expression``."""
    same: tuple[Number, ...] = ()
    """The same number in another form."""
    rivals: tuple[Number, ...] = ()
    decisive: bool = True
    """False where another sentence may contain the answer too: its numbers are then rivals."""


def announced(line: str, rest: str = "") -> QuantityReading:
    """The number of a text after an answer cue: the line, and all that follows where the line only begins to explain.

    >>> announced("12 apples in 3 boxes").number.value
    Fraction(12, 1)
    """
    plain = numbers.normalized(line[: cues.REACH])
    found = _computed_on(_first(plain), plain)
    more = numbers.normalized(rest[: cues.REACH])
    if found.number is not None and _LED.search(plain[: found.number.start]) and numbers.candidates(more[len(plain) :]):
        return _with_rest(found, more)
    if found.reason == "no-answer" and len(more) > len(plain):
        return uncued(more)
    return found


def _computed_on(found: QuantityReading, plain: str) -> QuantityReading:
    """The last result of a line of sentences that compute, where it is computed from the first one."""
    parts = [s for s in _sentences(plain) if numbers.find_all(s)]
    if found.number is None or len(parts) < 2 or not all(map(_computed, parts)):
        return found
    last, (first, *_, end) = _read(parts[-1], first=False), [{n.value for n in numbers.find_all(s)} for s in parts]
    on = _LED.search(plain[: found.number.start]) is not None and found.number.value in end
    return last if on and last.number is not None and last.number.value not in first else found


def _with_rest(found: QuantityReading, more: str) -> QuantityReading:
    """A line that leads up to its number, and goes on: a conclusion below it counts more."""
    concluded = _last(more)
    if concluded.number is not None and concluded.decisive:
        return concluded
    others = concluded.rivals if concluded.number is None else (concluded.number, *concluded.rivals)
    return replace(found, rivals=(*found.rivals, *others), decisive=False)


def uncued(text: str) -> QuantityReading:
    """The number of a text without a cue, read from its end: its last one, or the one that it begins with alone."""
    end = numbers.normalized(text[-cues.REACH :])
    if numbers.candidates(unchecked := cues.without_check(end)):
        end = unchecked
    if len(_ITEM.findall(end)) > 1 and numbers.candidates(unmarked := _ITEM.sub("", end)):
        end = unmarked
    for correction in reversed(cues.corrections(end)[-_CORRECTIONS:]):
        if correction.sure and numbers.candidates(end[correction.at :]):
            return _last(end[correction.at :])
    found = _last(end)
    lead = _leading(end if len(text) <= cues.REACH else numbers.normalized(text[:200]))
    if lead is None or found.number is None or lead.value == found.number.value:
        return found
    return QuantityReading(lead, rivals=(found.number, *found.rivals), decisive=False)


def _first(plain: str) -> QuantityReading:
    plain, before = _corrected(plain)
    parts = _sentences(plain)
    sentence = next((s for s in parts if numbers.find_all(s)), "")
    if not sentence:
        return _nothing(parts[0]) if parts else QuantityReading(None, "no-answer")
    found = _read(sentence, first=True)
    return replace(found, rivals=(*found.rivals, *before)) if before else found


def _last(plain: str) -> QuantityReading:
    """Without a cue: the last sentence with a number, outside parentheses where there is one."""
    outside = _ASIDE.sub(" ", plain)
    plain = outside if numbers.candidates(outside) else plain
    parts = _sentences(plain)
    holding = [s for s in parts if numbers.find_all(s)]
    if not holding:
        return next((r for s in reversed(parts) if (r := _nothing(s)).number), QuantityReading(None, "no-answer"))
    if (none := _nothing(parts[-1])).number is not None and not numbers.find_all(parts[-1]):
        return none
    useful = [s for s in holding if numbers.candidates(s)]
    useful = [s for s in useful if not _WOULD.search(s) and not cues.NOT_TRUE.match(s)] or useful
    last = useful[-1] if useful else holding[-1]
    if count := units.count_of_list(useful):
        return QuantityReading(count, rivals=tuple(numbers.candidates(last)), decisive=False)
    found = _read(_before_colon(last), first=False)
    results = [r.number for s in useful[:-1] if (r := _result(s)) and r.number]
    said = (found.number, *found.rivals) if found.number and results and not _result(last) else ()
    if again := next((n for n in said if n.value == results[-1].value), None):
        # the conclusion repeats what was computed: "3 * 80 = 240. So he walks 240 km in 80 days."
        return replace(found, number=again, rivals=tuple(n for n in said if n is not again))
    if len(useful) < 2 or cues.concludes(last) or _computed(last):
        return found
    shown, used = _result(useful[-2]), {n.value for n in numbers.find_all(useful[-2])}  # "5 - 1 = 4. It lost 1."
    if shown and shown.number and found.number and found.number.value in used - {shown.number.value}:
        return replace(shown, rivals=(found.number, *found.rivals, *shown.rivals), decisive=False)
    elsewhere = tuple(n for s in useful[:-1] for n in numbers.candidates(s))
    return replace(found, rivals=(*found.rivals, *elsewhere), decisive=False)


def _before_colon(sentence: str) -> str:
    """A sentence without what its colon explains, or its dash if it adds up: "They are 15: Ben is 9 and Lia is 6"."""
    mark = next((m for m in (": ", " \u2014 ", " \u2013 ") if m in sentence), ": ")
    said, colon, explained = sentence.partition(mark)
    found = numbers.candidates(said) if colon else []
    parts, every = (numbers.candidates(explained), numbers.find_all(explained)) if found else ([], [])
    at_end = len(parts) > 1 and len(said) - found[-1].end <= _AT_END and "times" not in said[found[-1].end :]
    computed = len(_EQUALS.findall(explained)) == 1  # "half of 2,500: 2,500 / 2 = 1,250"
    summed = len(every) > 1 and sum(n.value for n in every) == found[-1].value  # "11: 10 players and one goalkeeper"
    explains = summed or (mark == ": " and (at_end or (parts and len(found) == 1 and _EACH.search(explained))))
    return said if explains and not computed else sentence


def _sentences(plain: str) -> list[str]:
    return [s for s in _SENTENCE.split(plain) if s.strip()]


def _nothing(sentence: str) -> QuantityReading:
    """Zero in words: "none", "There are no apples left"."""
    none = Number(Fraction(0), 0, len(sentence), word=True) if words.NONE_LEFT.search(sentence) else None
    return QuantityReading(none, None if none else "no-answer")


def _computed(sentence: str) -> bool:
    """Whether a sentence computes its number: "3 x 4 = 12", "12 times 2 is 24"."""
    return _EQUALS.search(sentence) is not None or numbers.computes(sentence)


def _corrected(plain: str) -> tuple[str, tuple[Number, ...]]:
    """The text after its last correction that names a number, and what was said before where that may still count."""
    for correction in reversed(cues.corrections(plain)[-_CORRECTIONS:]):
        after = plain[correction.at :]
        if not numbers.candidates(after):
            continue
        short = len(_sentences(after)[0].split()) <= _CORRECTED_WORDS
        earlier = _read(_sentences(plain[: correction.at])[0], first=True).number
        return after, () if short or earlier is None else (earlier,)
    return plain, ()


def _read(sentence: str, first: bool) -> QuantityReading:
    """The number of one sentence: the first or last one that is not an operand; a computed number takes precedence."""
    said = _REASON.split(sentence)[0]
    shown = _LED.search(said) and _EQUALS.search(sentence[len(said) :])  # "It is 8, since 8 * 8 * 8 = 512"
    sentence = said if shown and numbers.candidates(said) else sentence
    result = _result(sentence)
    if result is not None:
        return result
    if first:
        outside = _ASIDE.sub(lambda m: " " * len(m[0]), sentence)
        sentence = outside if numbers.candidates(outside) else sentence
    chosen, shares = units.without_totals(sentence, numbers.candidates(sentence))
    chosen = [n for n in chosen if not re.search(r"\byears?\s(?:before|after)\s\Z", sentence[: n.start])] or chosen
    if not chosen:
        negated = all(numbers.negated(sentence, n) for n in numbers.find_all(sentence))
        return QuantityReading(None, "no-answer" if negated else "expression")
    found = _chosen(sentence, chosen, 0 if first else _main(sentence, chosen), first)
    share = tuple(shares[n.start] for n in (found.number,) if n and n.start in shares)
    return replace(found, same=(*found.same, *share)) if share else found


def _main(sentence: str, chosen: list[Number]) -> int:
    """The number that a sentence without a cue is about: the last one that neither counts things nor explains."""
    main = [i for i, n in enumerate(chosen) if not _ADJUNCT.search(sentence, max(0, n.start - 200), n.start)]
    if _BEGUN.fullmatch(sentence[: chosen[0].start]) and _WHICH.match(sentence, chosen[0].end):
        return 0  # "1967, which made her 22 in 1990"
    said = len(re.findall(r"[^\W\d]+", sentence[: chosen[0].start])) > 1
    explained = _BECAUSE.search(sentence, chosen[0].end)
    if explained and said:
        main = [i for i in main if chosen[i].start < explained.start()]
    again = len(main) == 2 and units.restated(sentence, chosen[main[0]], chosen)  # "5/3 cups, or about 1.67 cups"
    if (len(main) == 1 or again) and (said or chosen[main[0]].dimension):
        return main[0]
    # "$350 for 2 nights": what has a unit goes before what merely counts
    paid = [i for i in main if chosen[i].dimension]
    return paid[-1] if paid and main[-1] == paid[-1] else len(chosen) - 1


def _result(sentence: str) -> QuantityReading | None:
    """The number after the last equals sign; the results of other clauses are rivals. None without an equation."""
    if not _EQUALS.search(sentence):
        return None
    free = numbers.candidates(sentence)
    found: list[Number] = []
    results: list[Number] = []
    at = 0
    concluded: Number | None = None
    for clause in _clauses(sentence):
        equals = list(_EQUALS.finditer(clause))
        joint = _SO.search(sentence[:at]) is not None
        begin, at = at + (equals[-1].end() if equals else 0), at + len(clause)
        held = next((n for n in free if begin <= n.end - 1 < at), None)
        if equals and held:
            results.append(held)
            concluded = None
        elif (
            results
            and (on := _GOES_ON.match(clause))
            and (more := [n for n in free if at > n.start >= begin + on.end()])
        ):
            concluded = more[-1]  # "2 * 5 = 10, plus 1 is 11"
        elif results and joint and (so := _only(clause, begin, results[-1])):
            concluded = so  # "76, but his birthday had not come yet, so he was 75"
        elif held and not results:
            found.append(held)
        elif held and results and (then := _THEN.match(clause)):
            # "24 + 4 = 28, but hens have four legs, so the total is 32"
            concluded = next((n for n in free if begin + then.end() <= n.start < at), held)
        elif held and results and not _LED_AFTER.match(clause):
            found.append(held)
    if not results:
        return None
    last = concluded or results[-1]
    others = [n for n in [*results, *found] if n.value != last.value]
    if others and re.search(r"=[^=;,]{0,40}\bor\b[^=;,]{0,20}=", sentence):
        return QuantityReading(None, "hedged")
    exact = tuple(n for n in free if units.restated(sentence, n, free) == (last,))  # "= 1/6 \u2248 0.167"
    same = (*exact, *units.restated(sentence, last, numbers.find_all(sentence)))
    return QuantityReading(last, same=same, rivals=tuple(others))


_WOULD = re.compile(r"\b(?:would|could)\s(?:be|have|cost|give|make|get)\b.*\b(?:but|however)\b\D*\Z", re.I)
"""What is so only on a condition that is not met: "2.5 times would be 77.5, but this is not allowed"."""
_THEN = re.compile(
    r"\s*(?:which\s+(?:means|leaves|gives|makes|totals|equals|comes\s+to|adds\s+up|amounts|rounds?)|[^=]{0,40}\bgives?\b"
    r"|therefore|thus|hence|the\s+total)\b",
    re.I,
)
"""A clause after an equation that draws another conclusion."""
_GOES_ON = re.compile(
    r"\s*(?:(?:and|so|then|now|which)\s+){0,2}(?:\d[\d.,]*\s+)?"
    r"(?:plus|minus|times|less|add|subtract|adding|subtracting|multipl\w+|divid\w+|tak(?:e|ing)\s+away)\b"
    r"[^=;,]{0,60}?\b(?:is|are|gives?|makes?|leaves?|yields?|to\s+get|comes\s+to|we\s+get)\b",
    re.IGNORECASE,
)
"""A clause after an equation that computes on with its result."""
_LED_AFTER = re.compile(r"\s*(?:which|because|since|as|for|in|of|per|with|from|at|on|where|using)\b", re.I)
"""A clause after an equation that explains and does not answer."""
_SO = re.compile(r"\bso\s\Z", re.IGNORECASE)
_BETWEEN = re.compile(r"\bbetween\s*[$€£]?$", re.I)


def _only(clause: str, at: int, result: Number) -> Number | None:
    """The only number of a clause about no other person, which begins at a place of its sentence."""
    every = [n for n in numbers.candidates(clause) if not (n.word and n.value == 1)]
    if all(n.value != result.value for n in every):  # "17 / 5 = 3.4, so they need 4 cars of 5 seats"
        every = [n for n in every if not _ADJUNCT.search(clause, max(0, n.start - 200), n.start)]
    if clause[:1].isupper() or len(every) != 1:
        return None
    return replace(every[0], start=every[0].start + at, end=every[0].end + at)


def _clauses(sentence: str) -> list[str]:
    """The clauses of a sentence, whose lengths add up to its own."""
    ends = [m.end() for m in _CLAUSE.finditer(sentence)]
    return [sentence[a:b] for a, b in zip([0, *ends], [*ends, len(sentence)], strict=True)]


def _chosen(sentence: str, chosen: list[Number], position: int, first: bool) -> QuantityReading:
    number = chosen[position]
    same = units.restated(sentence, number, chosen)
    if not first and position and (again := units.restated(sentence, chosen[position - 1], chosen)) == (number,):
        number, same = chosen[position - 1], again
    others = tuple(n for n in chosen if n is not number and n not in same and n.value != number.value)
    before, after = sentence[: number.start], sentence[number.end :]
    if _OR_MORE.match(after) or (_LOOSE.search(before) and not _REACHES.search(before)):
        return QuantityReading(None, "loose bound", rivals=(number, *others))
    if _STRICT.search(before):
        return QuantityReading(None, "bound", rivals=others)
    pair = chosen[position : position + 2] if first else chosen[max(0, position - 1) : position + 1]
    if len({n.value for n in pair}) == 2 and _HEDGE.match(sentence[pair[0].end : pair[1].start]):
        if numbers.same_quantity(*pair) or pair[1] in same:
            return QuantityReading(number, same=(*same, *pair))  # 45 minutes or 0.75 hours
        apart = tuple(n for n in chosen if n.value not in {p.value for p in pair})
        return QuantityReading(None, "hedged", rivals=() if first else apart)
    maybe = len({n.value for n in chosen}) > 1 and len(_MAYBE.findall(sentence)) > 1
    ended = pair if _BETWEEN.search(sentence[: pair[0].start]) else []  # "between 10 and 12" does not say 12
    if maybe or _several(sentence, [n for n in chosen if n not in same] if first else ended):
        return QuantityReading(None, "hedged")
    explains = len(chosen) < 2 or _EXPLAINS.search(sentence[number.end : chosen[1].start])
    return QuantityReading(number, same=same, rivals=() if first and explains and not _LED.search(before) else others)


def _several(text: str, chosen: list[Number]) -> bool:
    """Whether an answer after a cue is a range, or nothing but different numbers: "between 4 and 5", "4, 5"."""
    if len({n.value for n in chosen}) < 2:
        return False
    gap = text[chosen[0].end : chosen[1].start]
    if _BETWEEN.search(text[: chosen[0].start]):
        return re.match(r"[^\d.]{0,30}\band\b", gap, re.I) is not None
    if re.fullmatch(r"[^\W\d]{0,12}\s*(?:-|\u2013|\bto\b)\s*[$€£]?", gap.strip(), re.I):
        return True
    ends = [0, *(n.end for n in chosen)], [*(n.start for n in chosen), len(text)]
    between = " ".join(text[a:b] for a, b in zip(*ends, strict=True))
    return re.search(r"(?!and\b)\b[^\W\d_]+|[^\w\s,;&.!$€£]", between, re.I) is None


def _leading(plain: str) -> Number | None:
    """The number that a longer text begins with in a separate sentence ("42 apples. There were ...")."""
    parts = _sentences(plain)
    if len(parts) > 1 and re.fullmatch(r"\W*(?:none|nothing)\W*", parts[0], re.IGNORECASE):
        return _nothing(parts[0]).number  # "None! All five are gone."
    if len(parts) < 2 or re.search(r"(?:^|\n)\s*(?:1[.)].*\n\s*2[.)]|2[.)])", plain, re.DOTALL):
        return None
    found = numbers.candidates(parts[0])
    beside = len(re.findall(r"[^\W\d_]+", parts[0]))
    bare = len(found) == 1 and beside <= _BARE_WORDS and not _computed(parts[0])
    return found[0] if bare and not _LED.search(parts[0][: found[0].start]) else None
