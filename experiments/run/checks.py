"""Checks on a run besides its metrics: unusable answers, math-verify's second opinion, and human labels."""

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from ...errors import InputError
from ...evaluation import judging, statistics, text_files
from ...evaluation.asks import Ask, Response
from ...evaluation.engines import replies
from ...evaluation.engines.base import THINKING_OPENED
from ...evaluation.graded import Graded
from ...evaluation.grading import formulas
from ...evaluation.judging import JudgedGrades
from ...evaluation.metrics import Metric, mark
from ...evaluation.protocols import counting
from ...evaluation.protocols.presenting import REASONING
from ...terminal import words

MOST = 1000
"""The largest number of different answers that are judged again. Each one takes about a millisecond."""
SHOWN = 3


def second_opinion(rows: Sequence[Graded], asks: Mapping[str, Ask], most: int = MOST) -> tuple[list[Metric], list[str]]:
    """``math_verify_disagreement``: the share of different numeric answers that math-verify grades differently.

    It is computed over the first ``most`` different (answer, gold) pairs of asks for a number. The result is empty for
    a run without numbers, and outside the main thread, where math-verify cannot limit its time.
    """
    numeric = [row for row in rows if row.ask in asks and asks[str(row.ask)].answer_type == "number"]
    numeric = [row for row in numeric if not (row.reason or "").startswith("compat")]
    different = list({(row.answer, row.gold, row.outcome): row for row in numeric}.values())
    if not different or not formulas.available_here():
        return [], []
    found = formulas.second_opinion(different[:most])
    k, n = len(found.disagreements), found.n
    notes = ["of different answers"]
    if found.n_unread:
        notes.append(f"{found.n_unread} that math-verify cannot read")
    if len(different) > most:
        notes.append(f"the first {most} of {len(different)}")
    metric = Metric("math_verify_disagreement", **statistics.share(k, n), note=mark(n, "; ".join(notes)))
    if not k:
        return [metric], []
    some = found.disagreements[:SHOWN]
    shown = ", ".join(f"{said!r} for {gold!r} (ours: {'right' if ours else 'wrong'})" for said, gold, ours in some)
    return [metric], [f"math-verify disagrees on {k} of {n} different numeric answers: {shown}"]


TROUBLE = 0.05
"""The share of a role's answers above which a run warns that they are invalid, cut off or verbose."""
TERSE = ("plain", "short", "knowledge", "xml-answer")
"""Formats that ask for nothing but the answer."""
VERBOSE_WORDS = 25
"""In these formats an answer counts as verbose if it has this many words more than the gold answer."""


def role_group(role: str) -> str:
    """The role without the number of a wording: all paraphrases of a part are asked and answered in the same way."""
    return re.sub(r":paraphrase:\d+", ":paraphrase", role)


def asking_warnings(
    rows: Sequence[Graded], asks: Mapping[str, Ask], responses: Mapping[str, Response], few_shot: bool = False
) -> list[str]:
    """One warning per role with more than 5 % of answers invalid, cut off or verbose. Each warning names a fix.

    Asks that got no answer at all (a prompt that does not fit) are one warning, however few they are. An ask that
    several cases share counts once in its role. With ``few_shot``, worked examples were shown already.
    """
    roles: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    formats: dict[str, str] = {}
    different = {(role_group(row.role), row.ask): row for row in rows if row.ask in asks and row.ask in responses}
    for (role, key), row in different.items():
        for what in _troubles(row, asks[str(key)], responses[str(key)]):
            roles[role][what].append(row.case)
        roles[role]["asked"].append(row.case)
        formats.setdefault(role, asks[str(key)].format)
    thinking = any("</think>" in r.text or (r.provenance or {}).get(THINKING_OPENED) for r in responses.values())
    out = _unanswered(asks, responses)
    for role, found in roles.items():
        n = len(found.pop("asked"))
        for what, cases in found.items():
            if len(cases) > TROUBLE * n:
                out.append(
                    f"{role}: {len(cases)} of {n} answers ({len(cases) / n:.0%}) are {what} (first: case {cases[0]!r})"
                    f"; {_mend(what, formats[role], thinking, few_shot)}"
                )
    return out


def _unanswered(asks: Mapping[str, Ask], responses: Mapping[str, Response]) -> list[str]:
    lost = [(ask, r.error) for key, ask in asks.items() if (r := responses.get(key)) and r.finish_reason == "error"]
    if not lost:
        return []
    ask, error = lost[0]
    return [f"{len(lost)} of {len(asks)} asks have no answer (first: case {ask.case!r}, role {ask.role!r}: {error})"]


def _troubles(row: Graded, ask: Ask, response: Response) -> list[str]:
    found = []
    if response.finish_reason == "length":
        found.append("cut off")
    elif row.outcome == "invalid" and response.finish_reason != "error":
        found.append("invalid")
    long = len(response.text.split()) > len(ask.gold.split()) + VERBOSE_WORDS
    if ask.format in TERSE and not ask.thinking and "</think>" not in response.text and long:
        found.append("verbose")
    return found


def _mend(what: str, format: str, thinking: bool, few_shot: bool) -> str:
    if what == "cut off":
        tokens = "--cot-tokens" if format in REASONING else "--answer-tokens"
        return "try --no-thinking, or a larger --thinking-tokens" if thinking else f"try a larger {tokens}"
    if format != "short":
        return "try --format short" + (", or --judge MODEL" if what == "invalid" else "")
    return (
        f"try {'' if few_shot else '--few-shot 2, or '}{'--judge MODEL' if what == 'invalid' else 'another --format'}"
    )


def judge_agreement(judged: Sequence[JudgedGrades], rows: Sequence[Graded]) -> Metric | None:
    """``judge_agreement``: how often the judge agrees with the rules, on a sample of answers that the rules decided.

    ``rows`` say what the cases share: the answers to one case, or to cases about one fact, are judged alike.
    """
    sample = [each for j in judged for each in j.sample]
    if not sample:
        return None
    near = {row.case: counting.near(row) for row in rows}
    found = counting.rate(
        "judge_agreement", [agreed for _, agreed in sample], {}, of=None, clusters=[near[case] for case, _ in sample],
        note="judge and rules, on a sample of what the rules decided",
    )  # fmt: skip
    return replace(found, bound_low=None, bound_high=None)


def signed_otherwise(
    responses: Iterable[Response], identity: Mapping[str, str], signed_as: str | None
) -> tuple[list[Metric], list[str], dict[str, int]]:
    """``signed_otherwise``: answers that their server signed with another model's name; empty if there are none.

    Returns the metric, the warning for the run, and how many answers each name signed. Names in ``signed_as``
    (``--signed-as``) count as the model's own.
    """
    answers = [r for r in responses if r.finish_reason != "error"]
    found = replies.count(answers, identity, words(signed_as))
    if not found:
        return [], [], {}
    k, n = sum(found.values()), len(answers)
    names = ", ".join(f"{name!r} {times}" for name, times in found.items())
    note = mark(n, f"different answers, reported as {names}")
    metric = Metric("signed_otherwise", **statistics.share(k, n), note=note)
    asked = identity.get("model")
    warning = f"the server reports another model than {asked!r} for {k} of {n} different answers: {names}"
    return [metric], [warning], found


def unseen(judged: Sequence[JudgedGrades]) -> list[str]:
    """A warning if a recorded judge never saw answers that the current rules leave open."""
    n = sum(j.unseen for j in judged)
    return (
        [f"{n} answers that these rules leave open were never put to the judge; run the evaluation again"] if n else []
    )


Labels = Mapping[tuple[str, str, int], bool]
_LABELS = {"correct": True, "incorrect": False, True: True, False: False}


def read_labels(path: str | Path) -> dict[tuple[str, str, int], bool]:
    """Human labels by (case, role, repeat), from JSON lines with ``case``, ``role``, ``label`` and optional ``repeat``.

    ``label`` is ``correct`` or ``incorrect`` (or true, false). Raises ``InputError`` naming file, line and field.
    """
    if not Path(path).is_file():
        raise InputError(f"--human-labels {path}: no such file; give JSON lines with case, role and label")
    found: dict[tuple[str, str, int], bool] = {}
    for where, raw in text_files.lines(path, "give JSON lines with case, role and label"):
        key, label = _label(raw, where)
        if key in found:
            raise InputError(f"{where}: case {key[0]!r}, role {key[1]!r} has two labels; keep one line")
        found[key] = label
    return found


def _label(raw: Any, where: str) -> tuple[tuple[str, str, int], bool]:
    if not isinstance(raw, dict) or "case" not in raw:
        raise InputError(f"{where}: field 'case' is missing; give an object with case, role and label")
    label = raw.get("label")
    if not isinstance(label, str | bool) or label not in _LABELS:
        raise InputError(f"{where}: label is {label!r}; use correct or incorrect")
    repeat = raw.get("repeat", 0)
    if isinstance(repeat, bool) or not isinstance(repeat, int):
        raise InputError(f"{where}: repeat is {repeat!r}; give a whole number")
    return (str(text_files.in_words(raw["case"])), str(raw.get("role", "whole")), repeat), _LABELS[label]


def agreement(rows: Sequence[Graded], labels: Labels) -> list[Metric]:
    """Agreement of the grades with people: ``human_agreement``, ``human_precision``, ``human_recall`` (of "right").

    Each is computed over all labelled answers, then over those that a judge decided (group ``match: judge``). The note
    gives kappa. Answers without a grade count as invalid.

    Raises ``InputError`` if a label names an answer that the run does not have.
    """
    by_key = {(row.case, row.role, row.repeat): row for row in rows}
    for case, role, repeat in labels:
        if (case, role, repeat) not in by_key:
            raise InputError(f"--human-labels: no answer of case {case!r}, role {role!r}, repeat {repeat} in this run")
    pairs = [(by_key[key], human) for key, human in labels.items()]
    judged = [(row, human) for row, human in pairs if row.match == "judge"]
    return _agreement(pairs, {}) + (_agreement(judged, {"match": "judge"}) if judged else [])


def _agreement(pairs: Sequence[tuple[Graded, bool]], group: Mapping[str, Any]) -> list[Metric]:
    judged = [(counting.truth(row), human, counting.near(row)) for row, human in pairs]
    found = judging.agreement((ours, human) for ours, human, _ in judged)
    kappa = "kappa undefined: one side always says the same" if found.kappa is None else f"kappa {found.kappa:.2f}"
    known = [(ours, human, near) for ours, human, near in judged if ours is not None]
    values = {
        "human_agreement": [(ours == human, near) for ours, human, near in known],
        "human_precision": [(human, near) for ours, human, near in known if ours],
        "human_recall": [(ours, near) for ours, human, near in known if human],
    }
    rows = []
    for name, some in values.items():
        labels = [near for _, near in some]  # the answers to one case are graded alike
        row = counting.rate(name, [value for value, _ in some], group, of=None, clusters=labels, note=kappa)
        rows.append(replace(row, n_invalid=found.n_unjudged, bound_low=None, bound_high=None))
    return rows
