"""``composcope score RUN --audit``: draws graded answers for a person or a judge to check, and counts their verdicts.

The sample is drawn with a seed, evenly from each answer type and outcome, and hides the grades. The filled-in sample
gives the grader's error on this run, with intervals: how many right answers it grades incorrect (false minus), and how
many wrong answers it grades correct (false plus).
"""

from __future__ import annotations

import random
import shlex
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from ...errors import InputError
from ...evaluation import judging, statistics
from ...evaluation.analyses.adjudicator import allocate
from ...evaluation.asks import Ask
from ...evaluation.engines.base import Engine
from ...evaluation.graded import Graded
from ...evaluation.metrics import percent, span
from ...evaluation.pipeline import as_judged
from ...files import read_csv, to_csv
from ...terminal import how_many
from ..run import write_text
from .evaluate import Evaluated

FILE = "audit.csv"
_FIELDS: tuple[str, ...] = (
    "case", "role", "repeat", "answer_type", "question", "gold", "aliases", "response", "verdict",
)  # fmt: skip
_UNCLEAR = ("unclear", "?", "none")
_Key = tuple[str, str, int]


@dataclass(frozen=True)
class AuditSummary:
    """The audit's part of a run's summary."""

    lines: list[str]
    document: dict[str, Any]


def audited(
    found: Evaluated, folder: Path, audit: str | None, judge: str | None, *, seed: int = 0, key_env: str | None = None
) -> AuditSummary:
    """Carry out ``--audit``: a number draws a sample, a file of verdicts is counted; ``judge`` fills in what is open.

    Raises ``InputError`` for any other value, and for a key without a judge.
    """
    if key_env is not None and judge is None:
        raise InputError(f"--api-key-env {key_env}: no judge's server is asked; give --judge, or leave it out")
    if audit is None:
        if judge is not None:
            raise InputError("--judge is for --audit here; give --audit N, or use --judge with `composcope evaluate`")
        return AuditSummary([], {})
    if audit.isdecimal() and int(audit) < 1:
        raise InputError(f"--audit {audit}: give at least 1 answer to draw, or a filled {FILE}")
    path = draw(found, int(audit), folder, seed) if audit.isdecimal() else Path(audit)
    if judge is None and audit.isdecimal():
        count = f"`composcope score {shlex.quote(str(folder))} --audit {shlex.quote(str(path))}`"
        return AuditSummary(
            [f"{path}: fill the column 'verdict' (right, wrong, unclear), then {count}"], {"audit": str(path)}
        )
    said = []
    if judge is not None:
        from ..models.target import open_role

        if failed := judge_all(path, open_role(judge, "--judge", key_env=key_env)):
            again = f"`--audit {shlex.quote(str(path))} --judge` asks again"
            said = [f"{path}: {how_many(failed, 'request')} to the judge failed; {again}"]
    errors = estimate(found, path)
    return AuditSummary([*lines(errors), *said], {"grader": [asdict(e) for e in errors]})


def draw(found: Evaluated, n: int, folder: Path, seed: int = 0) -> Path:
    """Write ``audit.csv`` with ``n`` answers and an empty verdict column: right, wrong or unclear.

    Raises ``InputError`` if the run has no answer to look at, or if the file already contains verdicts.
    """
    path = folder / FILE
    if path.exists() and any(row["verdict"].strip() for row in _read(path)):
        raise InputError(f"{path}: already contains verdicts; count them with `--audit {path}`, or move the file away")
    strata: dict[tuple[str, str], list[Graded]] = defaultdict(list)
    for row in _judgeable(found):
        strata[_type(found, row), row.outcome].append(row)
    if not strata:
        raise InputError(f"{folder}: no graded answer has a response to look at; evaluate the run with a model first")
    draws, shares = random.Random(seed), allocate({kind: len(rows) for kind, rows in strata.items()}, n)
    chosen = [row for kind, n in shares.items() for row in draws.sample(sorted(strata[kind], key=_key), n)]
    random.Random(seed).shuffle(chosen)
    _write(path, [_line(found, row) for row in chosen])
    return path


def judge_all(path: Path, judge: Engine) -> int:
    """Let a judge model fill the empty verdicts of an audit file; what it cannot decide becomes ``unclear``.

    Returns the number of requests that failed: their verdicts stay empty.
    """
    rows = _read(path)
    open_ = [row for row in rows if not row["verdict"].strip()]
    asks: dict[Ask, list[dict[str, str]]] = {}  # repeats of an ask with the same response are one question
    for row in open_:
        ask = judging.ask_judge(
            row["case"], row["role"], row["question"], row["gold"], judging.shortened(row["response"]),
            aliases=[a for a in row["aliases"].split(" | ") if a], open_ended=True,
        )  # fmt: skip
        asks.setdefault(ask, []).append(row)
    failed, given = 0, list(asks.values())
    for number, response in judging.put(judge, dict(enumerate(asks))).items():
        if response.finish_reason == "error":
            failed += 1
            continue
        said = judging.verdict(response.text)
        for row in given[number]:
            row["verdict"] = "unclear" if said is None else "right" if said else "wrong"
    _write(path, rows)
    return failed


@dataclass(frozen=True)
class Rate:
    """A share with its interval."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return percent(self.value) + span(self.low, self.high, percent)


@dataclass(frozen=True)
class Error:
    """The grader's error on answers of one type; a rate is None if no such answer was labelled, or if none of a decided
    outcome (``unlabelled``) was: then its share of the right or wrong answers is not known."""

    answer_type: str
    labelled: int
    false_minus: Rate | None
    """Right answers graded incorrect or abstained, as a share of the right ones."""
    false_plus: Rate | None
    """Wrong answers graded correct, as a share of the wrong ones."""
    invalid: float
    """Share of all answers that are invalid."""
    unlabelled: tuple[str, ...] = ()
    """Decided outcomes, each with its type, of which no answer has a verdict of right or wrong."""
    graded_wrongly: Mapping[str, Rate] = field(default_factory=dict)
    """Of each decided outcome with verdicts: the share of its answers that are graded wrongly."""


def estimate(found: Evaluated, path: Path) -> list[Error]:
    """The grader's error by answer type and overall, from a filled audit file.

    Each answer type and outcome is weighted by its share of the run. The intervals are Clopper-Pearson intervals of the
    one outcome that contains the errors; the other outcomes enter with their observed values.

    Raises ``InputError`` for a file that is not filled in, that belongs to another run, or that has two verdicts on one
    answer.
    """
    by_key = {tuple(map(str, _key(row))): row for row in _judgeable(found)}
    labels: dict[tuple[str, str], list[bool]] = defaultdict(list)
    labelled: set[tuple[str, ...]] = set()
    for n, line in enumerate(_read(path), 2):
        said = line["verdict"].strip().casefold()
        if not said or said in _UNCLEAR:
            continue
        if (right := judging.word(said)) is None:
            raise InputError(f"{path}:{n}: field 'verdict' is {line['verdict']!r}; use right, wrong or unclear")
        key = line["case"], line["role"], line["repeat"].strip() or "0"
        named = "case {!r}, role {!r}, repeat {}".format(*key)
        if (row := by_key.get(key)) is None:
            raise InputError(f"{path}:{n}: no answer of {named} in this run; use the file that `--audit N` wrote")
        if key in labelled:
            raise InputError(f"{path}:{n}: {named} has two verdicts; keep one line")
        labelled.add(key)
        labels[_type(found, row), row.outcome].append(right)
    if not labels:
        raise InputError(f"{path}: no verdicts; fill the column 'verdict' with right, wrong or unclear")
    sizes = Counter((_type(found, row), row.outcome) for row in by_key.values())
    kinds = sorted({kind for kind, _ in labels})
    return [_error(kind, [kind], sizes, labels) for kind in kinds] + (
        [_error("all", {kind for kind, _ in sizes}, sizes, labels)] if len(kinds) > 1 else []
    )


def lines(errors: Sequence[Error]) -> list[str]:
    """The errors as text."""
    return [
        f"grader on {e.answer_type}: false minus {e.false_minus or 'unknown'} of right answers, "
        f"false plus {e.false_plus or 'unknown'} of wrong ones, invalid {100 * e.invalid:.1f} % ({e.labelled} labelled)"
        + (f"{_of_outcomes(e)}; no verdict on any answer graded {' or '.join(e.unlabelled)}" if e.unlabelled else "")
        for e in errors
    ]


def _of_outcomes(error: Error) -> str:
    is_ = {outcome: "wrong" if outcome == "correct" else "right" for outcome in error.graded_wrongly}
    return "".join(f"; of those graded {o}, {rate} are {is_[o]}" for o, rate in error.graded_wrongly.items())


def _judgeable(found: Evaluated) -> list[Graded]:
    """One row for each different answer that has a response to look at."""
    rows: dict[tuple[str, str | None], Graded] = {}
    for row in found.graded:
        if row.ask is not None and row.ask in found.responses and found.responses[row.ask].text.strip():
            rows.setdefault((row.ask, row.gold), row)
    return list(rows.values())


def _asked(found: Evaluated, row: Graded) -> Ask:
    """The ask of a row. One prompt in several roles (a pair, and Q1 in it) is kept once, with the first gold answer."""
    ask = replace(found.asks[str(row.ask)], role=row.role)
    if row.gold not in (None, ask.gold):
        ask = replace(ask, gold=row.gold, aliases=(), format=row.prompt or ask.format)
    return as_judged(row.unknowable, ask)


def _type(found: Evaluated, row: Graded) -> str:
    return _asked(found, row).answer_type


def _key(row: Graded) -> _Key:
    return row.case, row.role, row.repeat


def _line(found: Evaluated, row: Graded) -> dict[str, str]:
    ask = _asked(found, row)
    text = found.responses[str(row.ask)].text
    return {
        "case": row.case,
        "role": row.role,
        "repeat": str(row.repeat),
        "answer_type": ask.answer_type,
        "question": judging.asked_of(ask),
        "gold": ask.gold,
        "aliases": " | ".join(ask.aliases),
        "response": text,
        "verdict": "",
    }


def _read(path: Path) -> list[dict[str, str]]:
    if not path.is_file():
        raise InputError(f"--audit {path}: no such file; give a number of answers to draw, or a filled {FILE}")
    header, rows = read_csv(path)
    missing = [name for name in _FIELDS if name not in header]
    if missing:
        raise InputError(f"{path}: column {missing[0]!r} is missing; use a file that `--audit N` wrote")
    return [{name: row.get(name) or "" for name in _FIELDS} for row in rows]


def _write(path: Path, rows: Iterable[Mapping[str, str]]) -> None:
    write_text(path, to_csv(rows, _FIELDS))


def _error(
    kind: str, kinds: Collection[str], sizes: Mapping[tuple[str, str], int],
    labels: Mapping[tuple[str, str], list[bool]],
) -> Error:  # fmt: skip
    of_kind = {key: size for key, size in sizes.items() if key[0] in kinds}
    total = sum(of_kind.values())
    right: dict[str, float] = defaultdict(float)
    wrong: dict[str, float] = defaultdict(float)
    for key, size in of_kind.items():
        if said := labels.get(key):
            right[key[1]] += size * sum(said) / len(said)
            wrong[key[1]] += size * (len(said) - sum(said)) / len(said)
    lacking = tuple(f"{key[1]} ({key[0]})" for key in sorted(of_kind) if key[1] != "invalid" and not labels.get(key))
    if lacking:
        right, wrong = {}, {}
    shares: dict[str, Rate] = {}
    for outcome in dict.fromkeys(key[1] for key in sorted(of_kind) if key[1] != "invalid" and labels.get(key)):
        said = {key: size for key, size in of_kind.items() if key[1] == outcome and labels.get(key)}
        shares[outcome] = Rate(*(n / sum(said.values()) for n in _errors(said, labels, outcome != "correct")))
    return Error(
        kind,
        sum(len(said) for key, said in labels.items() if key in of_kind),
        _rate(right, {k: v for k, v in of_kind.items() if k[1] in ("incorrect", "abstained")}, labels, True),
        _rate(wrong, {k: v for k, v in of_kind.items() if k[1] == "correct"}, labels, False),
        sum(size for key, size in of_kind.items() if key[1] == "invalid") / total,
        lacking,
        shares,
    )


def _rate(
    answers: Mapping[str, float],
    erring: Mapping[tuple[str, str], int],
    labels: Mapping[tuple[str, str], list[bool]],
    sought: bool,
) -> Rate | None:
    """The share of right (or wrong) answers in the strata where the grader gets them wrong."""
    if not erring or not sum(answers.values()):  # also where a stratum lacks verdicts: then there are no answers
        return None
    elsewhere = sum(answers.values()) - sum(answers[o] for o in {key[1] for key in erring})
    return Rate(*(n / (n + elsewhere) for n in _errors(erring, labels, sought)))


def _errors(
    sizes: Mapping[tuple[str, str], int], labels: Mapping[tuple[str, str], list[bool]], sought: bool
) -> list[float]:
    """How many answers of these strata are graded wrongly, by their verdicts, and the ends of the interval."""
    picks = (lambda k, n: k / n, lambda k, n: _end(k, n, "low"), lambda k, n: _end(k, n, "high"))
    counts = [(size, sum(v == sought for v in labels[key]), len(labels[key])) for key, size in sizes.items()]
    return [sum(size * pick(k, n) for size, k, n in counts) for pick in picks]


def _end(k: int, n: int, end: str) -> float:
    return float(getattr(statistics.clopper_pearson(k, n), end))
