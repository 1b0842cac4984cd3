"""Grading of one response: correct, incorrect, abstained, or invalid with the reason.

    grade("So the final answer is: 12", "stop", gold="12", answer_type="number", format="cot").outcome  # "correct"

A response without an answer (cut off, no tag, no cue, no number) is invalid, never wrong. A response that contains the
right answer is also invalid if no rule can tell whether it is meant ("12 apples in 3 boxes", "Jefferson, who preceded
Madison"). Invalid answers go to the judge. A ``compat`` mode applies a paper's own rule instead.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import replace

from ...errors import InputError
from ..asks import Grade
from ..case import ANSWER_TYPES
from ..options import in_question
from ..prompts import ABSTENTION, ANSWER_CUE
from ..text_files import literal
from . import booleans, cues, echo, labels, names, statements, text, view
from .comparing import COMPARISONS, is_value
from .extract import CODE, PAIR_Q1, Extracted, extract, in_lines
from .spellings import has_another_remark, in_figures, in_reply, short_forms
from .verdicts import Asked, Said, Verdict, undecided
from .view import plain, visible

_DECLINED_WORDS = 40
"""Words of a response that is nothing but a refusal."""
_TOTAL = re.compile(r"\b(?:in\s+total|total\s+of|in\s+all|altogether)\b", re.IGNORECASE)
_REASONS = re.compile(r"\b(?:because|since|as|unlike|but|not|or)\b|n't\b", re.IGNORECASE)
_BESIDE = {"date": re.compile(";"), "numeric": re.compile(r"\b(?:unlike|while|whereas)\b", re.IGNORECASE)}
"""What stands between what is said of the thing that is asked for and of another one, by the kind of match."""
_AND = re.compile(r",?\s(?:and|while)\s")
_FINAL = (statements.ELSEWHERE, statements.OTHER, names.CORRECTED, "another conclusion")
"""Reasons of an undecided verdict that a sentence before it does not change."""
_LETTERS = re.compile(r"[A-Z](?:\W+[A-Z])+")
"""A gold answer of letters that name options or events: then a line that begins with "A:" is about A."""
_NAMED = ("number", "text", "date")
"""Types of answers that are looked for among named ones, in the fields of an object or the cells of a row."""
_ABSTAINED = 600
"""Characters at the beginning of an answer that are searched for a refusal."""


def grade(
    response_text: str,
    finish_reason: str,
    gold: str,
    answer_type: str,
    aliases: Sequence[str] = (),
    format: str = "plain",
    compat: str | None = None,
    unknowable: bool = False,
    *,
    options: Sequence[tuple[str, str]] = (),
    question: str | None = None,
) -> Grade:
    """Grade one response against its gold answer.

    ``answer_type`` is one of ``cases.ANSWER_TYPES``, ``format`` a name of ``prompts.FORMATS`` (or ``pair-q1``). On
    ``unknowable`` questions abstaining is correct and any answer incorrect. ``compat`` reproduces a paper's own rule:
    ``agentcoma`` (last number, no number is 0; in words, no cue is wrong), ``stad`` (last JSON answer; no answer is
    wrong) or ``collapse`` (no answer is wrong; years within one year and last names count). ``options`` are the
    (letter, text) pairs of a choice; without them they are learned from the ``question`` where it lists them. The
    question also helps to find the sentence that answers it.

    Raises ``InputError`` for an unknown answer type, format or mode, and for a gold answer of another type.
    """
    if answer_type not in ANSWER_TYPES:
        raise InputError(f"answer_type is {answer_type!r}; use one of {', '.join(ANSWER_TYPES)}")
    if compat is not None and compat not in MODES:
        raise InputError(f"compat is {compat!r}; use one of {', '.join(MODES)}")
    if finish_reason == "error":
        return Grade("invalid", None, None, "error")
    if compat == "agentcoma" and answer_type == "number":
        return agentcoma_number(response_text, gold)
    if compat == "agentcoma" and ANSWER_CUE.lower() not in response_text.lower():
        return Grade("incorrect", None, None, "compat:no-cue")
    given = tuple(options) or (in_question(question or "") if answer_type == "choice" else ())
    if format == CODE:
        found = _run(response_text, finish_reason)
    elif compat == "stad":
        found = Extracted((stad_answer(response_text),))
    else:
        letters = answer_type == "choice" or _LETTERS.fullmatch(gold) is not None
        found = extract(response_text, format, finish_reason, letters=letters, question=question, given=given)
        if compat is None and found.reason in ("no-cue", "no-answer-tag"):
            found = _declined(response_text) or found
        if answer_type not in ("list", "ordered-list") and format != PAIR_Q1:
            read = labels.of_the_last(found.segments, found.following, question)
            last = read[0][0] if read and read[0][0] != found.segments[0] else ""
            found = replace(found, segments=tuple(s for s, _ in read), following=tuple(f for _, f in read))
            if last and finish_reason == "length" and response_text.rstrip().endswith(last):
                found = Extracted((), reason="truncated")
    words = answer_type == "text" and not is_value(gold)  # "twenty degrees Celsius" would lose its unit
    others = (*short_forms(gold), in_reply(gold, question), in_figures(gold) if words else gold)
    golds = dict.fromkeys((gold, *aliases, *others))
    asked = Asked(tuple(golds), given, question, compat == "collapse")
    result = _judge(found, asked, answer_type, unknowable)
    if result.outcome == "invalid" and compat in ("stad", "collapse"):
        return Grade("incorrect", result.answer, None, f"compat:{result.reason}")
    return result


def _declined(response_text: str) -> Extracted | None:
    """The answer of a response that declines to answer, which needs no cue or tag for this; None for any other."""
    shown = re.sub(r"</?\w+>", " ", (visible(response_text) or "")[-4 * _ABSTAINED :]).strip()
    if text.normalize(shown.rsplit("\n", 1)[-1]) == text.normalize(ABSTENTION):
        return Extracted((ABSTENTION,))
    short = len(shown.split()) <= _DECLINED_WORDS
    return Extracted((shown,)) if short and (text.abstains(shown) or text.refuses(shown)) else None


def _run(response_text: str, finish_reason: str) -> Extracted:
    """What a program in the response returns, run in the sandbox; no answer, with the reason, where it does not."""
    from ..sandbox import run_answer

    # Only the thinking is left out: squeezing spaces would undo the program's indentation.
    shown = response_text.rpartition("</think>")[2] if visible(response_text) is not None else ""
    result = run_answer(shown)
    if result.ok and result.text is not None:
        return Extracted((result.text,), cued=True)
    if finish_reason == "length":
        return Extracted((), reason="truncated")
    return Extracted((), reason=f"code: {result.reason or 'no value'}")


def _judge(found: Extracted, asked: Asked, answer_type: str, unknowable: bool) -> Grade:
    """The grade of an extracted answer: whether it declines, says nothing, or gives the gold answer."""
    if not found.segments:
        return Grade("invalid", None, None, found.reason)
    opening = found.segments[0][:_ABSTAINED]
    abstention_right = unknowable or text.normalize(asked.golds[0]) == text.normalize(ABSTENTION)
    if abstained := _declining(found.segments[0], asked, answer_type, abstention_right):
        return abstained
    if unknowable:
        return Grade("incorrect", opening, None, "unknowable")
    if found.shortened:
        return Grade("invalid", None, None, "too-long")
    if all(answers_nothing(s, asked.golds, answer_type, asked.question) for s in found.segments):
        below = found.following[0][len(found.segments[0]) :].strip() if found.following else ""
        nothing = not below or answers_nothing(below, asked.golds, answer_type, asked.question)
        if nothing or not found.segments[0].endswith("?"):
            return undecided(opening, "nothing answered")
        found = replace(found, segments=(below,), following=(), cued=False)  # "Answer: Who is it?", and it below
    # "I do not know" where "unknown" is right
    declined = text.abstains(opening)
    unsure = declined and text.abstains(dict(asked.options).get(asked.golds[0].strip(), asked.golds[0]))
    for n, segment in enumerate(found.segments):
        if n and answer_type == "boolean" and " " in found.segments[0].strip() and not booleans.opens(segment):
            continue  # "Answer: The lamp is lit." of a step, before a sentence as the final answer
        lines = in_lines(segment) if answer_type in _NAMED else None
        said = Said(segment, found.following[n] if n < len(found.following) else "", found.cued)
        said = Said(lines) if lines else said
        compare = COMPARISONS[answer_type]
        if (verdict := compare(said, asked)) is None:
            continue
        if doubt := _doubt(verdict, segment, asked, answer_type, unsure, abstention_right):
            return undecided(segment, doubt)
        if answer_type == "text" and names.answered_later(found.later, asked.golds, asked.question):
            # the completion asked again and gave the right answer: no rule can decide this
            return verdict if verdict.outcome == "correct" else undecided(segment, "answered later")
        return _in_its_clause(_settled(verdict, said, asked, compare), said, asked, compare)
    if unsure:
        return undecided(opening, "unknown or not known")
    return Grade("abstained", ABSTENTION, None) if declined else Grade("invalid", None, None, "no-answer")


def _declining(segment: str, asked: Asked, answer_type: str, right: bool) -> Grade | None:
    """The grade of an answer that declines to answer, which is ``right`` for some cases; None for any other."""
    opening = segment[:_ABSTAINED]
    if text.abstains(opening) and (right or not any(map(text.abstains, [o for _, o in asked.options] or asked.golds))):
        new = [g for g in asked.golds if answer_type in _NAMED and not text.holds(asked.question or "", g)]
        if not right and text.has_any(segment, new):
            return undecided(opening, "named in passing")
        return Grade("correct" if right else "abstained", ABSTENTION, "abstention" if right else None)
    return Grade("abstained", opening, None, "refusal") if text.refuses(opening) else None


def _doubt(
    verdict: Grade, segment: str, asked: Asked, answer_type: str, unsure: bool, abstention_right: bool
) -> str | None:
    """Why a verdict on a text does not count; None where it does."""
    if verdict.outcome == "incorrect" and unsure:
        return "unknown or not known"
    if verdict.outcome == "incorrect" and answer_type == "text" and text.is_sentence(asked.golds[0]):
        return "other words than a sentence"
    if verdict.outcome == "correct" and answer_type in _NAMED and not abstention_right:
        if text.only_mentions(segment, asked.golds):
            return "named in passing"
        if has_another_remark(segment, asked.golds[0]):
            return "another remark"
    return "hedged" if _two_guesses(segment, asked, COMPARISONS[answer_type]) else None


def _two_guesses(text: str, asked: Asked, compare: Callable[[Said, Asked], Verdict]) -> bool:
    """Whether a text gives a second answer as possible, and one of the two is right: "B, but it could be A"."""
    guesses = cues.guesses(text)
    if guesses is None or not re.match(r"(?:the\s|option\s)?[\W\d]?(?:[A-Z\d]|(?:yes|no|true|false)\b)", guesses[1]):
        return False
    first, second = (compare(Said(guess, cued=cued), asked) for guess, cued in zip(guesses, (False, True), strict=True))
    return first is not None and second is not None and "correct" in {first.outcome, second.outcome} != {"correct"}


def _settled(verdict: Grade, said: Said, asked: Asked, compare: Callable[[Said, Asked], Verdict]) -> Grade:
    """An undecided verdict after a look at the sentence that repeats the question, where there is one."""
    passing = verdict.reason == "named in passing" and asked.question is not None
    if passing and echo.fills(said.rest or said.text, asked.golds, asked.question or ""):
        return Grade("correct", said.text, "contained")
    sentence = echo.focus(said.rest or said.text, asked.question) if asked.question else None
    if verdict.outcome != "invalid" or verdict.reason in _FINAL or sentence is None:
        return verdict
    if statements.only_operands(sentence, asked.question or ""):
        return verdict
    again = compare(Said(sentence, cued=True), asked)
    return again if again is not None and again.outcome == "correct" else verdict


def _in_its_clause(verdict: Grade, said: Said, asked: Asked, compare: Callable[[Said, Asked], Verdict]) -> Grade:
    """A verdict on several numbers or dates after a look at the one of the clause that repeats the question."""
    beside = _BESIDE.get(verdict.match or "")
    right = beside is not None and beside.search(said.text) is not None and not said.cued
    open_ = verdict.reason in ("several numbers", "several dates", "several choices")
    if not (right or open_) or asked.question is None:
        return verdict
    clause = echo.clause(said.rest or said.text, asked.question)
    if right:
        if verdict.match == "numeric" and not echo.states_all(clause or "", asked.question):
            return verdict
        again = compare(Said(clause), replace(asked, question=None)) if clause else None
        return undecided(said.text, "of another clause") if again and again.outcome == "incorrect" else verdict
    elsewhere = plain(said.rest or said.text).replace(clause or "", " ")
    if _TOTAL.search(asked.question) and _TOTAL.search(elsewhere):
        return verdict  # "She sold 72 in April and 36 in May, 108 in total."
    if statements.only_operands(clause or "", asked.question):
        return verdict
    if verdict.reason == "several choices" and not _begins(
        said.text, clause, asked.options, echo.states_all(clause or "", asked.question)
    ):
        return verdict
    again = compare(Said(clause), replace(asked, question=None)) if clause else None
    return again if again is not None and again.outcome == "correct" else verdict


def _begins(whole: str, clause: str | None, options: Sequence[tuple[str, str]], full: bool) -> bool:
    """Whether a text begins with a clause and goes on with another one, neither with reasons nor with more options."""
    if not clause or not whole.strip().startswith(clause) or _REASONS.search(whole):
        return False
    rest = whole.strip()[len(clause) :]
    listed = [f" {text.normalize(option)}" for _, option in options]
    if full and not any(text.normalize(clause).endswith(o) for o in listed):
        return True  # "People wear shoes on their feet and gloves on their hands."
    added = text.normalize(_AND.sub("", rest))
    return rest.startswith(";") or (
        _AND.match(rest) is not None
        and not any(f"{added} ".startswith(f"{text.normalize(option)} ") for _, option in options)
    )


MODES = ("agentcoma", "stad", "collapse")


def agentcoma_number(text: str, gold: str) -> Grade:
    """AgentCoMa's rule for numbers: the last number of the response up to the next question, compared as floats.

    Only decimals keep their sign, thousands commas are removed, and a response without a number counts as 0.
    """
    found = re.findall(r"[-+]?\d*\.\d+|\d+", text.split("Question:")[0].replace(",", ""))
    answer = found[-1] if found else "0"
    try:
        equal = float(answer) == float(gold.replace(",", ""))
    except ValueError:
        equal = False
    return Grade("correct" if equal else "incorrect", answer, "numeric" if equal else None, "compat:agentcoma")


def stad_answer(text: str) -> str:
    """What STaD hands to its judge: the ``answer`` of the last ``{...}`` that parses, else the whole response.

    As published a false value (0, an empty string) falls through to the whole response.
    """
    depth_end = text.rfind("}")
    if depth_end < 0:
        return text
    depth = 0
    for start in range(depth_end, -1, -1):
        depth += {"}": 1, "{": -1}.get(text[start], 0)
        if depth == 0:
            parsed = literal(text[start : depth_end + 1], dict)
            return str(parsed["answer"]) if parsed and parsed.get("answer") else text
    return text


_ASKS = re.compile(
    r"\W*(?:(?:in|at|on|by|for|from|to|of|with)\s)?(?:what|which|who|whom|whose|when|where|why|how|is|are|was|were|do"
    r"|does|did|can|could|would|will|should|has|have|had)\b[^\n]*\?[\s\"')*]*",
    re.IGNORECASE,
)
_TASK = re.compile(
    r"\W*(?:simplify|factor|find|calculate|compute|solve|evaluate|expand|determine|differentiate|integrate)\s"
    r"(?![^\n]*(?:[=:]|\b(?:is|are|gives?|equals?|to)\b))[^\n]*",
    re.IGNORECASE,
)
"""A task like "Simplify 4x + 5x." in place of its solution."""
_GREETS = re.compile(
    r"\W*(?:(?:sure(?:\s+thing)?|certainly|of\s+course|absolutely|ok(?:ay)?|hello|hi|hey)(?:\s+there)?\W*)?"
    r"(?:(?:i(?:'d|'ll|'m|\s+would|\s+will|\s+can|\s+am)\s+(?:(?:be|more\s+than)\s+)?(?:happy|glad|here|help|assist|love)"
    r"|let\s+me\s+help|(?:happy|glad)\s+to\s+help)\b[^.!?:\n]*[.!?]?\s*)?",
    re.IGNORECASE,
)
_BROKEN_OFF = re.compile(
    r"(?!.*\banswer\b)[^.!?:\n]{8,}(?<!\bit)(?<!\bthey)(?<!\bhe)(?<!\bshe)\s(?:is|are|was|were|equals|(?-i:the|an?)|of|by|and|or)",
    re.IGNORECASE,
)
"""A sentence without its end: "The author of Emma is"."""
_EQUAL = re.compile(r"(.+)\s(?:is|are|was|were)\s(?:equal|equivalent)(?:\sto)?\W*", re.IGNORECASE)
_COMPUTES = re.compile(r"\bof\b|[+*/^\u00d7]|\d\s-\s")
_PART = 3
"""Least words of a text that is a part of its question."""
_LONGEST = 1000
"""Characters of a text that may answer nothing."""


def answers_nothing(said: str, golds: Sequence[str], answer_type: str, question: str | None) -> bool:
    """Whether a text has nothing but questions, greetings, or the end of the question ("12 % of 250")."""
    plain = view.plain(said).strip()
    given = f" {text.normalize(plain)} "
    if answer_type == "choice" or len(plain) > _LONGEST or any(g.strip().endswith("?") for g in golds):
        return False
    if any(given == f" {text.normalize(g)} " for g in golds):  # "Factor X" may be a name
        return False
    parts = view.sentences(plain)
    if parts and all(_ASKS.fullmatch(p) or _TASK.fullmatch(p) for p in parts):
        return True
    if text.has_any(plain, golds):
        return False
    if answer_type != "boolean" and _BROKEN_OFF.fullmatch(plain):
        return True
    if parts and answer_type != "boolean" and all(_GREETS.fullmatch(p) for p in parts):
        return True
    return _is_part(plain, given, answer_type, question)


def _is_part(plain: str, given: str, answer_type: str, question: str | None) -> bool:
    """Whether a text is the end of a question without alternatives, and no name."""
    asked = f" {text.normalize(question or '')} "
    if answer_type == "number" and (left := _EQUAL.fullmatch(plain)):
        return {*text.normalize(left[1]).split()} <= {*asked.split()}  # "Three hours and ten minutes are equal to"
    if len(given.split()) < _PART or not asked.endswith(given) or " or " in asked:
        return False
    verbs = {*given.split()} & (view.FINITE | {"where", "who", "which", "that"})
    computes = answer_type == "number" and _COMPUTES.search(plain) is not None  # "2 hours" is another answer
    return computes or (answer_type in ("number", "date", "text", "boolean") and bool(verbs))
