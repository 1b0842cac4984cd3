"""The place of the answer in a response: the characters that the grader took for the answer.

Nothing is guessed. A number, date, list or name is searched for as the grader read it (another spelling of the same
value counts); in a sentence without an answer cue ("The capital of Chile is Lima.") the answer is what the sentence
adds to the question. If none of these rules finds a place, there is no span.
"""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cache

from ..evaluation.grading import booleans, dates, lists, numbers, text, view, words
from ..evaluation.prompts import ABSTENTION

Span = tuple[int, int]
_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)*")
_ARTICLES = frozenset(("a", "an", "the"))
_LETTER_A = re.compile(
    r"\b(?i:option|choice|letter|answer)\s+(A)\b"
    r"|(?<![^\W_])(A)(?![^\W_]|['’]\w|\s+(?!(?:is|was|and|or|because)\b)[^\W\d_])"
)
"""The letter, as of an option or a blood group, where it cannot be an article."""
_UNSPACED = re.compile(r"[\u0e00-\u0eff\u3040-\u30ff\u3400-\u9fff]")
"""Scripts that put no spaces between words; two characters count as one."""
_NUMERAL = re.compile(
    r"(?:\d{1,3}(?:[,.'’ \u00a0\u202f\u2009]\d{3})+(?:[.,]\d+)?|\d+(?:[.,]\d+)?|\.\d+)(?!\d)(?:\s?[/⁄]\s?\d+)?"
    r"|(?<!\d)[\u00bc-\u00be\u2150-\u215e]"
)
_SCALE = re.compile(rf"\s?{words.SCALE}", re.IGNORECASE)
_SIGN = re.compile(r"(?:[-−–]\s?(?:[$€£]\s?)?|\b(?:minus|negative)\s+)$", re.IGNORECASE)
"""The sign at the end of what stands before a negative number."""
_SIGNED = re.compile(r"[-−–]|minus|negative", re.IGNORECASE)
_TRUTH = re.compile(r"(?P<no>\b(?:not|never)\s+|n['’]t\s+)?\b(?P<word>yes|no|true|false|correct|incorrect)\b", re.I)
_SENTENCE_END = re.compile(r"(?<=[^\W\d_]{2}[.!?])\s+(?=\S)|(?<=[\d)\"”*][.!?])\s+(?=\S)|\n+|[。！？]")
_BEING = re.compile(
    r"\b(?:(?:it|that|this|he|she|there)['’]s|is|are|was|were|be|equals|means)\b|[:=≈](?!\d)", re.IGNORECASE
)
_LEAD = frozenset(
    "a an the its their about approximately around roughly exactly only probably likely also indeed called named known "
    "located situated found spoken used in on at of from by to as".split()
)
"""Words between a verb of being and the answer."""
_NOTHING = frozenset("it that this these those they there he she which what answer".split())
"""Words that refer to what was asked about, or only say that the answer follows."""
_CLAUSE = re.compile(r"\b(?:where|which|that|whose|who|whom)\b", re.IGNORECASE)
_ASIDE = re.compile(r"\W*(?:sure|certainly|of course|okay|ok|well|yes|no|hello|hi|thank you|great question)\W*$", re.I)
_SHORT, _BARE = 6, 3
"""Most words of a sentence without a verb of being that still counts as only an answer: if it begins with none of the
question's words, and if it does."""


def answer_span(
    response: str, grade_answer: str | None, answer_type: str, *, golds: Sequence[str] = (), question: str = "",
    segments: Sequence[str] = (), cued: bool = False,
) -> Span | None:  # fmt: skip
    """Half-open range of characters of ``response`` that hold the answer it was graded by; None if none is found.

    Args:
        grade_answer: the answer as the grader has it (``Grade.answer``), which may be written otherwise.
        golds: of a correct response the gold answer and its aliases.
        question: what was asked; words that a sentence repeats from it are not the answer.
        segments: where the grader looked (``grading.extract``), best first; by default the whole response.
        cued: whether the segments follow an answer cue, so that their first value counts.
    """
    if grade_answer is None:
        return None
    for (start, end), after_cue in _places(response, segments, cued):
        found = _within(response[start:end], grade_answer, answer_type, golds, question, after_cue)
        if found is not None:
            return start + found[0], start + found[1]
    return None


def _places(response: str, segments: Sequence[str], cued: bool) -> Iterator[tuple[Span, bool]]:
    """The places of the segments in the response (the last ones), then all of it after its thinking."""
    closed = response.rfind("</think>")
    start = closed + len("</think>") if closed >= 0 else 0
    if closed < 0 and re.match(r"\s*<think>", response):
        return
    for segment in segments:
        pattern = r"\s+".join(map(re.escape, segment.split()))
        if pattern and (spans := [m.span() for m in re.finditer(pattern, response[start:])]):
            yield (start + spans[-1][0], start + spans[-1][1]), cued
    yield (start, len(response)), False


def _within(here: str, answer: str, answer_type: str, golds: Sequence[str], question: str, cued: bool) -> Span | None:
    if answer == ABSTENTION:
        return _literal(here, answer) or _content(here)
    if answer_type in _VALUES:
        found = _VALUES[answer_type](here, answer, cued) or _literal(here, answer)
        return _items_alone(here, found, answer, golds, question) if found and "list" in answer_type else found
    for gold in (answer, *golds) if answer_type == "choice" else golds:
        if (found := _name(here, gold, question, cued)) is not None:
            return found
    if text.normalize(answer) != text.normalize(here) and (found := _name(here, answer, question, cued)) is not None:
        if text.normalize(here[slice(*found)]).split() != text.normalize(here).split():
            return found
    return _content(here) if cued else _added(here, question)


def _literal(here: str, answer: str) -> Span | None:
    at = here.rfind(answer)
    return (at, at + len(answer)) if at >= 0 and answer else None


# Values: the same one, however it is written.


def _number(here: str, answer: str, cued: bool) -> Span | None:
    wanted = numbers.parse(answer)
    if wanted is None:
        return None
    size = replace(wanted, value=abs(wanted.value))

    @cache
    def fits(piece: str) -> bool:
        first = numbers.find_all(numbers.normalized(piece))[:1]
        return any(numbers.equal(replace(n, value=abs(n.value)), size) for n in first)

    spans = [m.span() for m in _NUMERAL.finditer(here) if fits(m[0])]
    whole = set(spans)
    for m in _NUMERAL.finditer(here):
        if m.span() not in whole and fits(here[m.start() : m.end() + 20]):
            scale = _SCALE.match(here, m.end())  # "1 million" is one number
            more = range(m.end() + 1, min(m.end() + 20, len(here)) + 1)  # "1e6", "2 1/2", "10³"
            ends = [scale.end()] if scale else (n for n in more if fits(here[m.start() : n]))
            spans.append((m.start(), next(iter(ends), m.end())))
    spelled = [(m, words.value(m[0])) for m in words.PATTERN.finditer(here)]
    spelled += [(m, words.han(m[0])) for m in words.HAN.finditer(here)]
    covered = {i for start, end in spans for i in range(start, end)}
    spans += [m.span() for m, v in spelled if v is not None and abs(v) == size.value and m.start() not in covered]
    if wanted.value < 0:  # its sign is the beginning of the answer
        signs = [_SIGN.search(here, max(0, start - 12), start) for start, _ in spans]
        spans = [s if m is None else (m.start(), s[1]) for s, m in zip(spans, signs, strict=True)]
        spans = [s for s in spans if _SIGNED.match(here, s[0])] or spans
    equals = max(here.rfind("="), here.rfind("≈"))
    results = [s for s in sorted(spans) if s[0] > equals >= 0]
    if results:
        return results[0]
    return None if not spans else min(spans) if cued else max(spans)


def _date(here: str, answer: str, cued: bool) -> Span | None:
    wanted = dates.parse(answer)
    found = dates.find_all(here) if wanted is not None else []
    spans = [(d.start, d.end) for d in found if wanted is not None and dates.compare(d, wanted)]
    return None if not spans else spans[0] if cued else spans[-1]


def _truth(here: str, answer: str, cued: bool) -> Span | None:
    wanted = booleans.announced(answer)

    def said(m: re.Match[str]) -> bool:
        return (m["word"].lower() in ("yes", "true", "correct")) != bool(m["no"])

    spans = [m.span() for m in _TRUTH.finditer(here) if wanted is not None and said(m) == wanted]
    opening = _WORD.search(here)
    if not spans and opening and wanted is not None and booleans.value(opening[0]) == wanted:
        return opening.span()  # yes or no in another language
    starts = cued or re.match(r"\W*(?:yes|no|true|false)\b", here, re.I)
    return None if not spans else spans[0] if starts else spans[-1]


def _list(here: str, answer: str, cued: bool) -> Span | None:
    """From the first item to the last, of the last place where all follow each other."""
    items = lists.split(answer)
    best = None
    for first in _every(here, items[0]) if items else ():
        end: int | None = first[1]
        for item in items[1:]:
            end = next((s[1] for s in _every(here, item) if end is not None and s[0] >= end), None)
        if end is not None and (best is None or not cued):
            best = first[0], end
    return best


def _items_alone(here: str, span: Span, answer: str, golds: Sequence[str], question: str) -> Span:
    """A list without the question's words that a sentence puts before or after it ("The cities are Lima and Oslo")."""

    def items(written: str) -> set[str]:
        return set(map(text.normalize, lists.split(written)))

    said, known = here[slice(*span)], {w for w, _, _ in _words(question)}
    spoken = _words(said)
    link = None if any(items(gold) == items(answer) for gold in golds) else _link(said, spoken, question)
    if link is None:
        return span
    before, after = _content(said, 0, link.start()), _content(said, link.end())
    if before is None or after is None or (_first(said, before) in known) == (_first(said, after) in known):
        return span
    start, end = after if _first(said, before) in known else before
    return span[0] + start, span[0] + end


_VALUES: dict[str, Callable[[str, str, bool], Span | None]] = {
    "number": _number,
    "date": _date,
    "boolean": _truth,
    "list": _list,
    "ordered-list": _list,
}


# Names: word by word.


def _words(here: str) -> list[tuple[str, int, int]]:
    """Words without articles, as the grader compares them, with their places."""
    found = ((text.normalize(m[0]), m.start(), m.end()) for m in _WORD.finditer(here))
    return [w for w in found if w[0] and w[0] not in _ARTICLES]


def _every(here: str, name: str) -> list[Span]:
    """All places of a name, written as here or, where it has a short form ("St."), as the grader reads it."""
    read = tuple(w for w in text.normalize(name).split() if w not in _ARTICLES)
    if not read:
        return [m.span(m.lastindex or 0) for m in _LETTER_A.finditer(here)] if name.strip() == "A" else []
    if _UNSPACED.search(name):
        return [m.span() for m in re.finditer(re.escape(name.strip()), here, re.IGNORECASE)]
    there = _words(here)
    said = tuple(w for w, _, _ in there)
    return sorted(
        (there[i][1], there[i + len(wanted) - 1][2])
        for wanted in {read, tuple(w for w, _, _ in _words(name))} - {()}
        for i in range(len(there) - len(wanted) + 1)
        if said[i : i + len(wanted)] == wanted
    )


def _name(here: str, name: str, question: str, cued: bool = False) -> Span | None:
    """Where a name first occurs. A name from the question may only be repeated, so for it the place is the last one in
    the first sentence that has it, unless it comes right after a cue."""
    places = _every(here, name)
    if not places or not _every(question, name) or (cued and places[0][0] == (_content(here) or places[0])[0]):
        return places[0] if places else None
    for start, end in _sentences(here):
        inside = [p for p in places if start <= p[0] and p[1] <= end]
        if inside:
            return inside[-1]
    return places[-1]


def _sentences(here: str) -> Iterator[Span]:
    start = 0
    for m in _SENTENCE_END.finditer(here):
        yield start, m.start()
        start = m.end()
    yield start, len(here)


def _added(here: str, question: str) -> Span | None:
    """What the first sentence says that the question does not; if it only tells something about what the question
    names, and a later one begins with what is asked for, what that one says ("Porto is in Portugal. The capital of
    Portugal is Lisbon.").
    """
    head, first = text.normalize(view.asked_for(question) or ""), None
    for n, (start, end) in enumerate(_answering(here)):
        spoken = [w for w, _, _ in _words(here[start:end])]
        if n and head not in spoken[:1]:
            continue
        found = _of_sentence(here[start:end], question)
        found = None if found is None else (start + found[0], start + found[1])
        if n or not head or head in spoken or not _every(question, spoken[0]):
            return found
        first = found
    return first


def _answering(here: str) -> Iterator[Span]:
    """Sentences that say something; a line that ends with its verb of being goes on in the next one."""
    begun: int | None = None
    for start, end in _sentences(here):
        start = start if begun is None else begun
        sentence = here[start:end]
        if not _words(sentence) or _ASIDE.match(sentence):
            continue
        last = max((m.end() for m in _BEING.finditer(sentence)), default=0)
        begun = start if last and not sentence[last:].strip() and here[end:].strip() else None
        if begun is None:
            yield start, end


def _of_sentence(sentence: str, question: str) -> Span | None:
    """In "X is Y" this is Y; or X, if Y only repeats the question ("Polish is the official language there")."""
    known, spoken = {w for w, _, _ in _words(question)}, _words(sentence)
    link = _link(sentence, spoken, question)
    if link is None:
        found = _content(sentence)
        bare = found is not None and _first(sentence, found) in known
        size = sum(map(len, _UNSPACED.findall(sentence))) // 2 or len(spoken)
        return found if size <= (_BARE if bare else _SHORT) else None
    subject = _content(sentence, 0, link.start())
    there = [s for s in (_content(sentence, link.end()), subject) if s is not None]
    said = [s for s in there if _first(sentence, s) not in _NOTHING]
    new = [s for s in said if _first(sentence, s) not in known] or (said if len(said) == 1 else [])
    before = [w for w, _, end in spoken if end <= link.start()][-1:]
    if re.search("['’]", link[0]) or not _NOTHING.isdisjoint(before):  # "I believe that it is Lima"
        new = [s for s in new if s != subject]
    if not new and len(there) > 1 and _names_what_is_asked(sentence, there[0], there[1], question):
        there.reverse()
    return next(iter([*new, *there]), None)


def _link(sentence: str, spoken: Sequence[tuple[str, int, int]], question: str) -> re.Match[str] | None:
    """The verb of being between subject and predicate: not one that is between the same two words in the question, nor
    one of a clause about the subject ("the land where it is found is Chile").
    """
    starts, ends = [start for _, start, _ in spoken], [end for _, _, end in spoken]
    asked = cache(lambda phrase: bool(_every(question, phrase)))

    def repeats(m: re.Match[str]) -> bool:
        before, after = bisect_right(ends, m.start()) - 1, bisect_left(starts, m.end())
        return before >= 0 and after < len(spoken) and asked(f"{spoken[before][0]} {m[0]} {spoken[after][0]}")

    links = [m for m in _BEING.finditer(sentence) if not repeats(m)]
    clauses = [m.end() for m in _CLAUSE.finditer(sentence)]
    later = (m for n, m in enumerate(links) if n + 1 == len(links) or bisect_right(clauses, m.start()) <= n)
    return next(later, None)


def _names_what_is_asked(sentence: str, predicate: Span, subject: Span, question: str) -> bool:
    """Whether the predicate only says what is asked for, so that the subject is the answer: "Oslo is the capital"."""
    head = text.normalize(view.asked_for(question) or "")
    return head == _first(sentence, predicate) != _first(sentence, subject)


def _first(sentence: str, span: Span) -> str:
    return next((word for word, _, _ in _words(sentence[slice(*span)])), "")


def _content(here: str, start: int = 0, end: int | None = None) -> Span | None:
    """From the first word after an introduction to the end, without closing marks."""
    stop = len(here) if end is None else end
    spoken = list(_WORD.finditer(here, start, stop))
    if not spoken:
        return None
    first = next((m for m in spoken if text.normalize(m[0]) not in _LEAD), spoken[0])
    return first.start(), spoken[-1].end()
