"""The kinds of failures (Composition collapse, section 6 and App. O, tables 16 and 17).

Structural classes are failures of composition; artefacts are failures of writing or scoring. Rules propose a label
from the answer and the response; a person's annotation file overrules them. Where nothing fits, the label is
``other``: rules never guess. ``tiers`` counts one run under several definitions of a right answer (App. M, table 14).
"""

import re
from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from ...errors import InputError, NoCasesError
from .. import statistics
from ..case import Case
from ..graded import Graded
from ..grading import dates
from ..grading.grade import MODES
from ..grading.verdicts import by_the_answer
from ..metrics import Metric, mark
from ..protocols import counting
from ..protocols.double_gate import Gated, gate_cases
from ..text_files import in_words
from .base import Analysis, Source

STRUCTURAL = ("order-or-boundary", "lost-intermediate", "over-abstention", "binding-shift", "other")
ARTEFACTS = ("malformed-output", "answer-type-mismatch")
CLASSES = (*STRUCTURAL, *ARTEFACTS)


Annotations = Mapping[str | tuple[str, int], str]
"""Labels by case, or by case and repeat, which wins."""


def taxonomy(source: Source, annotations: Annotations | None = None) -> Analysis:
    """Labels of all gate-passing failures, shares of the classes, and the artefact-corrected failure rates.

    ``annotations`` maps case ids (or case and repeat) to labels and wins over the rules. Failures are wrong or
    abstained wholes, and those invalid through the model's own doing (no answer, no tag, truncated). With G
    gate-passers, E failures and A artefacts: ``residual_failure`` = E/G, ``corrected_counted_right`` = (E - A)/G,
    ``corrected_left_out`` = (E - A)/(G - A).

    The sheet ``annotate.jsonl`` lists every failure with its evidence and the proposed label, to be corrected by hand.
    Raises ``InputError`` for unknown labels or cases, ``NoCasesError`` where nothing passes the gates.
    """
    judged = [(g, failed) for g in gate_cases(source.rows, source.cases or None) if (failed := _failed(g)) is not None]
    if not judged:
        raise NoCasesError(f"{source.name}: no case passes the gates; there is nothing to classify")
    failures = [g for g, failed in judged if failed]
    given = dict(annotations or {})
    known = {key for g in failures for key in (g.item.case, (g.item.case, g.item.repeat))}
    if strange := [c for c in given if c not in known]:
        raise InputError(f"annotations: case {strange[0]!r} is not a gate-passing failure of {source.name}")
    proposed = [_proposed(g, source) for g in failures]
    by_hand = [_annotated(given, g) for g in failures]
    labels = [hand or rule for hand, rule in zip(by_hand, proposed, strict=True)]
    following = iter(labels)
    own = [next(following) if failed else None for _, failed in judged]
    metrics = _shares(labels, [g.item.cluster for g in failures])
    metrics += _corrected(own, [g.item.cluster for g, _ in judged])
    sheet = [_line(g, label, hand, source) for g, label, hand in zip(failures, labels, by_hand, strict=True)]
    table = [
        {"class": c, "group": "artefact" if c in ARTEFACTS else "structural", "count": n}
        for c, n in Counter(labels).most_common()
    ]
    overruled = sum(hand not in (None, rule) for hand, rule in zip(by_hand, proposed, strict=True))
    annotated = len(by_hand) - by_hand.count(None)
    warnings = (f"{overruled} of {annotated} annotations differ from the rules' label",) if given else ()
    return Analysis("taxonomy", tuple(metrics), {"classes": table}, {"annotate.jsonl": sheet}, warnings)


def _annotated(annotations: Annotations, g: Gated) -> str | None:
    return annotations.get((g.item.case, g.item.repeat), annotations.get(g.item.case))


def _failed(g: Gated) -> bool | None:
    """Whether a gate-passing case failed; None where it does not pass, or where its answer is undecided."""
    row = g.item.rows.get("whole")
    if g.double is not True or row is None:
        return None
    if row.outcome == "invalid":
        return True if by_the_answer(row.reason) else None
    return not counting.truth(row)


def rule_label(g: Gated, case: Case | None, text: str | None) -> str:
    """The class that the rules propose, the first of these that holds.

    ``over-abstention``: it abstained. ``malformed-output``: there is no answer in the wanted form.
    ``answer-type-mismatch``: the answer is of another type than the gold answer. ``binding-shift``: the response gives
    a part the answer of another part. ``lost-intermediate``: a part's answer is missing from a response that has
    another's, or a list is a part of the right one. ``order-or-boundary``: the right items in another order, or
    another item of a temporal question.
    """
    row = g.item.rows["whole"]
    if row.outcome == "abstained":
        return "over-abstention"
    lacks_tag = row.prompt in _TAGGED and text is not None and "</answer>" not in text
    paper, published, reason = (row.reason or "").partition("compat:")
    as_published = published and not paper and reason not in MODES and by_the_answer(reason)
    if row.outcome == "invalid" or lacks_tag or as_published:
        return "malformed-output"
    kind = case.answer_type if case is not None else _kind_of(row.gold)
    if _mismatch(row.answer or "", row.gold or "", kind):
        return "answer-type-mismatch"
    if case is not None and text is not None:
        if _binding_shift(text, case):
            return "binding-shift"
        if _lost(text, case):
            return "lost-intermediate"
    given, gold = _items(row.answer or ""), _items(row.gold or "")
    if kind in ("list", "ordered-list") and given and set(given) < set(gold):
        return "lost-intermediate"
    temporal = case is not None and any(p.answer_type == "date" for p in case.parts)
    if (kind == "ordered-list" and sorted(given) == sorted(gold)) or temporal:
        return "order-or-boundary"
    return "other"


def _proposed(g: Gated, source: Source) -> str:
    return rule_label(g, source.cases.get(g.item.case), source.text(g.item.rows["whole"]))


def _kind_of(gold: str | None) -> str:
    """The type of a gold answer where no case says it."""
    text = (gold or "").strip()
    if re.fullmatch(r"[A-Z](?:\s*[,;>]\s*[A-Z])+", text):
        return "ordered-list"
    if re.fullmatch(r"-?\d[\d,.]*", text):
        return "number"
    return "boolean" if text.casefold() in ("yes", "no", "true", "false") else "text"


def _items(text: str) -> list[str]:
    return [w.strip(" ().").casefold() for w in re.split(r"[,;>]|->|\band\b|\bthen\b", text) if w.strip(" ().")]


def _mismatch(answer: str, gold: str, kind: str) -> bool:
    if kind == "number":
        return re.search(r"\d", answer) is None
    if kind == "date":
        return dates.parse(answer) is None
    if kind == "boolean":
        return re.search(r"\b(yes|no|true|false)\b", answer, re.IGNORECASE) is None
    # Options carry letters: an answer in years or numbers names none of them.
    letters = bool(re.fullmatch(r"[A-Z](?:\s*[,;>]\s*[A-Z])*", gold.strip()))
    return letters and re.search(r"[A-Za-z]", answer) is None


def _spoken(answer: str) -> re.Pattern[str]:
    return re.compile(rf"(?<![\w.]){re.escape(answer)}(?!\w|\.\d)", re.IGNORECASE)


def _names(case: Case) -> list[tuple[str, str]]:
    """(what the part is about, its answer), where the working says it: "event: date"."""
    found = []
    for part in case.parts:
        name, colon, rest = (part.worked or "").partition(":")
        if colon and name.strip() and rest.strip():
            found.append((name.strip(), part.answer))
    return found


def _binding_shift(text: str, case: Case) -> bool:
    """Some part is named and the first part's answer after it, in the same sentence, is another part's."""
    named = _names(case)
    answers = {answer for _, answer in named}
    if len(answers) < 2:
        return False
    for sentence in re.split(r"(?<=[.!?\n;])\s+", text):
        for name, own in named:
            spoken = _spoken(name).search(sentence)
            if spoken is None:
                continue
            after = sentence[spoken.end() : spoken.end() + 60]
            hits = sorted((m.start(), a) for a in answers if (m := _spoken(a).search(after)))
            others = [m.start() for n, _ in named if n != name and (m := _spoken(n).search(after))]
            if hits and hits[0][1] != own and not (others and min(others) < hits[0][0]):
                return True
    return False


def _lost(text: str, case: Case) -> bool:
    """At least one part's answer is in the response, and at least one is not."""
    answers = {p.answer for p in case.parts}
    spoken = sum(_spoken(a).search(text) is not None for a in answers)
    return 0 < spoken < len(answers)


def _shares(labels: Sequence[str], near: Sequence[Hashable]) -> list[Metric]:
    """Shares of the labels of failures; ``near`` says what each shares with others."""

    def share(name: str, rows: Sequence[int], of: Sequence[str], group: Mapping[str, Any], note: str | None) -> Metric:
        values: list[counting.Truth] = [labels[i] in of for i in rows]
        return counting.rate(name, values, group, of=None, clusters=[near[i] for i in rows], note=note)

    every = range(len(labels))
    metrics = [share("artefact_share", every, ARTEFACTS, {}, "of the gate-passing failures")]
    structural = [i for i in every if labels[i] in STRUCTURAL]
    for c in CLASSES:
        if c in labels:
            metrics.append(share("class_share", every, [c], {"class": c}, None))
            if c in STRUCTURAL:
                metrics.append(share("class_share", structural, [c], {"class": c, "of": "structural"}, None))
    return metrics


def _corrected(labels: Sequence[str | None], near: Sequence[Hashable]) -> list[Metric]:
    """Failure rates of cases whose failures have labels: as counted, and with artefacts counted right or left out."""

    def row(name: str, cases: Sequence[int], failed: Callable[[str | None], bool]) -> Metric:
        values = [failed(labels[i]) for i in cases]
        own, count, n = [near[i] for i in cases], sum(values), len(values)
        beside = counting.clustered(statistics.rate_interval(values, own), own)
        return Metric(name, **statistics.share(count, n), note=mark(n), **beside)

    every = range(len(labels))

    def real(label: str | None) -> bool:
        return label is not None and label not in ARTEFACTS

    return [
        row("residual_failure", every, lambda label: label is not None),
        row("corrected_counted_right", every, real),
        row("corrected_left_out", [i for i in every if labels[i] not in ARTEFACTS], real),
    ]


def _line(g: Gated, label: str, by_hand: str | None, source: Source) -> dict[str, Any]:
    row: Graded = g.item.rows["whole"]
    return {
        "case": row.case, **({"repeat": row.repeat} if row.repeat else {}), "family": row.family, "depth": row.depth,
        "label": label, "by_hand": by_hand is not None,
        "question": source.prompts.get(row.ask or ""), "gold": row.gold, "answer": row.answer,
        "outcome": row.outcome, "reason": row.reason, "response": source.text(row),
        "parts": [[p.question, p.answer] for p in source.cases[row.case].parts] if row.case in source.cases else [],
    }  # fmt: skip


def read_annotations(rows: Sequence[Mapping[str, Any]], where: str = "annotations") -> Annotations:
    """Labels from lines with ``case`` and ``label``, of one repeat where a line has ``repeat``.

    Raises ``InputError`` for anything else.
    """
    found: dict[str | tuple[str, int], str] = {}
    for n, row in enumerate(rows, 1):
        case, repeat, label = in_words(row.get("case")), row.get("repeat"), row.get("label")
        if not case or label not in CLASSES:
            raise InputError(f"{where}:{n}: label is {label!r} of case {case!r}; use one of {', '.join(CLASSES)}")
        if repeat is not None and (isinstance(repeat, bool) or not isinstance(repeat, int)):
            raise InputError(f"{where}:{n}: repeat is {repeat!r}; use a whole number, or leave the field out")
        key = str(case) if repeat is None else (str(case), repeat)
        if found.setdefault(key, str(label)) != label:
            raise InputError(f"{where}:{n}: case {case!r} has two labels, {found[key]!r} and {label!r}")
    return found


LITERAL = ("exact", "alias", "numeric", "date", "set", "ordered", "list", "boolean", "letter", "abstention")
_TAGGED = ("xml", "xml-answer")


def tiers(source: Source, annotations: Annotations | None = None) -> Analysis:
    """Gate-passers and residual failure under each tier; ``annotations`` as for the taxonomy.

    ``semantic``: right in substance (the grades as they are). ``exact``: only literal matches count. ``strict``: right
    and well-formed. ``adjudicated``: semantic, without failures that a person or the rules call artefacts. Exact and
    strict change the gates as well as the wholes; the adjudicated tier keeps the semantic gate.

    The strict tier needs the responses' texts (a run folder); without them it is left out and said.
    """
    metrics = _tier("semantic", source.rows, source)
    metrics += _tier("exact", [_demoted(r, lambda row: row.match in LITERAL) for r in source.rows], source)
    warnings = []
    if source.texts:
        formed = [_demoted(r, lambda row: _well_formed(row, source.text(row))) for r in source.rows]
        metrics += _tier("strict", formed, source)
    else:
        warnings.append(f"{source.name}: no responses at hand; the strict tier needs a run folder")
    metrics += _adjudicated(source, dict(annotations or {}))
    return Analysis("tiers", tuple(metrics), warnings=tuple(warnings))


def _well_formed(row: Graded, text: str | None) -> bool:
    """Whether the response is complete and has exactly one answer."""
    if text is None:
        return False
    return row.prompt not in _TAGGED or (text.count("<answer>") == 1 and text.rstrip().endswith("</answer>"))


def _demoted(row: Graded, keeps: Callable[[Graded], bool]) -> Graded:
    return row if row.outcome != "correct" or keeps(row) else replace(row, outcome="incorrect")


def _tier(name: str, rows: Sequence[Graded], source: Source) -> list[Metric]:
    gated = gate_cases(rows, source.cases or None)
    group = {"tier": name}
    items = [g.item for g in gated]
    return [
        counting.rate("double_gate", [g.double for g in gated], group, of=items),
        counting.failure("residual_failure", [(g.double, g.whole) for g in gated], items, group),
    ]


def _adjudicated(source: Source, annotations: Annotations) -> list[Metric]:
    gated = gate_cases(source.rows, source.cases or None)
    outcomes = []
    artefacts = 0
    for g in gated:
        whole = g.whole
        if g.double is True and whole is False:
            whole = (_annotated(annotations, g) or _proposed(g, source)) in ARTEFACTS
            artefacts += whole
        outcomes.append((g.double, whole))
    items = [g.item for g in gated]
    note = f"{artefacts} artefacts counted as right"
    return [counting.failure("residual_failure", outcomes, items, {"tier": "adjudicated"}, note)]
