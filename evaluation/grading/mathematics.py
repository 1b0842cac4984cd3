"""Which gold answers are formulas; math-verify as their judge, and as a second opinion on plain numbers."""

import re
import threading
from collections.abc import Iterable
from dataclasses import dataclass

from ..graded import Graded
from . import numbers, words

SECONDS = 5


def is_plain_number(gold: str) -> bool:
    """True where a gold answer is one number with at most a unit or a noun, and no formula."""
    plain = numbers.normalized(gold)
    if numbers.parse(gold) is None:
        return False
    rest = plain
    for n in numbers.find_all(plain):
        rest = rest.replace(plain[n.start : n.end], " ", 1)
    rest = re.sub(r"(?<=[a-z])\s?\^\s?[23]", "", rest)
    if re.search(r"[\d\\=^()\[\],*+]", rest):
        return False
    return all(len(w) > 1 or w.lower() in words.UNITS for w in re.findall(r"°?[A-Za-z]+", rest))


def available_here() -> bool:
    """math-verify limits its time by a signal, which only the main thread can receive."""
    return threading.current_thread() is threading.main_thread()


def verify(answer: str, gold: str) -> bool | None:
    """Whether math-verify finds the two expressions equal; None where it cannot read one of them.

    Raises ``RuntimeError`` outside the main thread: without its time limit a formula can hang the process.
    """
    if not available_here():
        raise RuntimeError("math-verify needs the main thread: its time limit is a signal")
    import logging

    from math_verify import parse
    from math_verify import verify as equal

    logging.getLogger("math_verify").setLevel(logging.CRITICAL)
    wanted, given = (parse(_as_math(t), parsing_timeout=SECONDS) for t in (gold, answer))
    if not wanted or not given:
        return None
    return bool(equal(wanted, given, timeout_seconds=SECONDS))


def _as_math(text: str) -> str:
    text = text.strip()
    return text if "$" in text or "\\boxed" in text else f"${text}$"


@dataclass(frozen=True)
class SecondOpinion:
    """How often math-verify and the number rules differ, and on which answers."""

    n: int
    """Answers that both could judge."""
    n_unread: int
    """Answers that math-verify could not read."""
    disagreements: tuple[tuple[str, str, bool], ...]
    """(answer, gold, verdict of the rules) of the answers on which they differ."""

    @property
    def rate(self) -> float | None:
        return len(self.disagreements) / self.n if self.n else None


def second_opinion_on(rows: Iterable[Graded]) -> SecondOpinion:
    """Let math-verify judge again what was matched, or not, as a number; main thread only."""
    judged = (
        (row.answer, row.gold, row.outcome == "correct")
        for row in rows
        if row.answer and row.gold and row.outcome in ("correct", "incorrect") and any(c.isdigit() for c in row.gold)
        if row.match in (None, "numeric", "math-verify")
    )
    return second_opinion(judged)


def second_opinion(judged: Iterable[tuple[str, str, bool]]) -> SecondOpinion:
    """Let math-verify judge (answer, gold, our verdict) triples again; main thread only."""
    n = unread = 0
    differ = []
    for answer, gold, ours in judged:
        theirs = verify(answer, gold)
        if theirs is None:
            unread += 1
            continue
        n += 1
        if theirs != ours:
            differ.append((answer, gold, ours))
    return SecondOpinion(n, unread, tuple(differ))
