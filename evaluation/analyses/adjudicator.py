"""How reliable an automatic adjudicator is: human labels on a stratified sample (Composition collapse, App. N).

Three steps: ``draw`` writes a blind sheet and a key; a person fills in the sheet; ``validate`` puts both together, and
lists the disagreements to be looked at again (``reexamined`` wins over the first label). Disagreement-prone answers
are over-sampled, so plain rates describe the sample; the weighted ones describe the rows it was drawn from.
"""

import random
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ...errors import InputError, NoCasesError
from .. import statistics
from ..case import shares
from ..graded import Graded
from ..grading.text import normalize
from ..judging import word
from ..metrics import Metric, mark
from ..protocols import counting
from ..protocols.base import BARE
from .base import Analysis, Source, matched

PRONE_SHARE = 0.5
"""Share of the sample that is drawn among disagreement-prone answers, where there are as many."""


def draw(sources: Sequence[Source], n: int = 300, seed: int = 0) -> Analysis:
    """A stratified sample of ``n`` judged answers: blind sheet ``sheet.jsonl`` and ``key.jsonl``.

    Strata: model x domain (or family) x whole or part x judged label x prone or not. Up to half of the sample is drawn
    among the prone ones (see ``prone``); within both halves the strata get equal shares as far as they reach. The key
    holds each answer's verdict and its weight, stratum size over number drawn. The sheet has neither.
    """
    pool = [(s, r) for s in sources for r in s.rows if r.outcome != "invalid" and r.role.count(":") <= 1 and s.text(r)]
    if not pool:
        raise NoCasesError("adjudicator: no judged answers with their responses; give run folders")
    strata: dict[tuple[Any, ...], list[tuple[Source, Graded]]] = {}
    for source, row in pool:
        strata.setdefault(_stratum(source, row), []).append((source, row))
    rng = random.Random(seed)
    for rows in strata.values():
        rng.shuffle(rows)
    half = min(round(n * PRONE_SHARE), sum(len(v) for k, v in strata.items() if k[-1]))
    counts = allocate({k: len(v) for k, v in strata.items() if k[-1]}, half)
    counts |= allocate({k: len(v) for k, v in strata.items() if not k[-1]}, n - half)
    drawn = [(k, s, r) for k, rows in strata.items() for s, r in rows[: counts.get(k, 0)]]
    rng.shuffle(drawn)
    sheet, key = [], []
    for i, (stratum, source, row) in enumerate(drawn, 1):
        name = f"item-{i:04d}"
        question, response = source.prompts.get(row.ask or ""), source.text(row)
        sheet.append({
            "item": name, "question": question, "gold": row.gold, "response": response, "human": None, "remark": "",
        })  # fmt: skip
        key.append({
            "item": name, "run": source.name, "case": row.case, "cluster": row.cluster, "crossed": list(row.crossed),
            "role": row.role, "domain": stratum[1], "kind": stratum[2],
            "judged": counting.truth(row), "outcome": row.outcome, "match": row.match, "prone": stratum[4],
            "weight": len(strata[stratum]) / counts[stratum],
        })  # fmt: skip
    tables = {"sample": [{"answers": len(pool), "strata": len(strata), "drawn": len(drawn), "prone": half}]}
    left = [len(rows) for stratum, rows in strata.items() if not counts.get(stratum)]
    said = f"{len(left)} of {len(strata)} strata ({sum(left)} of {len(pool)} answers) have no line in the sample"
    warnings = (f"{said}: weighted rates leave them out; draw a larger sample",) if left else ()
    return Analysis("adjudicator-sample", (), tables, {"sheet.jsonl": sheet, "key.jsonl": key}, warnings)


def prone(row: Graded, text: str) -> bool:
    """Answers on which judges and people tend to differ: matched by meaning or by a judge and not literally, judged
    wrong although the response contains the gold answer, or dates with an era (BC, BCE)."""
    loose = row.match in ("judge", "consistency", "contained")
    gold = normalize(row.gold or "")
    near = row.outcome != "correct" and bool(gold) and f" {gold} " in f" {normalize(text)} "
    return loose or near or re.search(r"\bB\.?C\.?E?\b", f"{row.gold} {row.answer}") is not None


def _stratum(source: Source, row: Graded) -> tuple[Any, ...]:
    of_part = row.role.removeprefix(BARE).startswith(("part:", "pair:", "co-presented", "original"))
    domain, kind = row.domain or row.family or "-", "part" if of_part else "whole"
    return source.name, domain, kind, counting.truth(row), prone(row, source.text(row) or "")


def allocate(sizes: Mapping[tuple[Any, ...], int], n: int) -> dict[tuple[Any, ...], int]:
    """Equal shares of ``n`` over the strata; large strata get what small ones cannot fill, and what is left over."""
    counts: dict[tuple[Any, ...], int] = {}
    for i, stratum in enumerate(sorted(sizes, key=lambda k: sizes[k])):
        counts[stratum] = min(sizes[stratum], n // (len(sizes) - i))
        n -= counts[stratum]
    return counts


def label(value: Any, where: str) -> bool | None:
    """A person's label: right or wrong (yes/no, 1/0, true/false); None where the sheet is still empty."""
    if value is None or not str(value).strip():
        return None
    if (found := word(value)) is None:
        raise InputError(f"{where}: label is {value!r}; write right or wrong")
    return found


def validate(key: Sequence[Mapping[str, Any]], sheet: Sequence[Mapping[str, Any]]) -> Analysis:
    """Confusion, precision and recall of the adjudicator against the people, by domain, kind and judged label.

    A line's ``reexamined`` label replaces ``human`` where it is filled in. ``precision``: of "right" by the
    adjudicator, the share that people call right; ``recall``: of what people call right, the share it calls right;
    ``specificity`` likewise for wrong. Weighted values undo the over-sampling. ``reexamine.jsonl`` lists disagreements
    with both labels; ``changed`` counts labels that a second look changed.

    Raises ``InputError`` for sheets that do not fit the key, for a line that is there twice, and ``NoCasesError`` for a
    sheet without labels.
    """
    rows, unlabeled, changed = [], 0, 0
    for n, line, item in matched(key, sheet, ("case", "domain", "kind", "run", "judged", "prone")):
        if item is None:
            raise InputError(
                f"sheet:{n}: item {line.get('item')!r} is not in the key; give sheet and key of one sample"
            )
        first = label(line.get("human"), f"sheet:{n}")
        second = label(line.get("reexamined"), f"sheet:{n}")
        if first is None:
            unlabeled += 1
            continue
        changed += second is not None and second != first
        rows.append({**item, "human": first if second is None else second, "first": first, "line": line})
    if not rows:
        raise NoCasesError("sheet: no label is filled in; write right or wrong into the field human")
    metrics: list[Metric] = []
    for group, chosen in _groups(rows):
        metrics += _rates(chosen, group)
    matrix = [_confusion(chosen, group) for group, chosen in _groups(rows)]
    again = [_disagreement(r) for r in rows if r["human"] != r["judged"]]
    warnings = [f"{unlabeled} of {len(sheet)} lines have no label yet"] if unlabeled else []
    warnings += [f"{changed} labels were changed on re-examination"] if changed else []
    return Analysis("adjudicator", tuple(metrics), {"confusion": matrix}, {"reexamine.jsonl": again}, tuple(warnings))


def _groups(rows: Sequence[Mapping[str, Any]]) -> Iterable[tuple[dict[str, Any], list[Mapping[str, Any]]]]:
    yield {}, list(rows)
    for name in ("domain", "kind", "run", "judged", "prone"):
        values = sorted({r[name] for r in rows}, key=str)
        if len(values) > 1:
            for value in values:
                yield {name: value}, [r for r in rows if r[name] == value]


def _confusion(rows: Sequence[Mapping[str, Any]], group: Mapping[str, Any]) -> dict[str, Any]:
    cells = Counter((r["judged"], r["human"]) for r in rows)
    return {
        "group": dict(group), "n": len(rows), "both right": cells[True, True], "judge only": cells[True, False],
        "human only": cells[False, True], "both wrong": cells[False, False],
    }  # fmt: skip


def _rates(rows: Sequence[Mapping[str, Any]], group: Mapping[str, Any]) -> list[Metric]:
    return [
        _share("precision", [r for r in rows if r["judged"]], "human", True, group),
        _share("recall", [r for r in rows if r["human"]], "judged", True, group),
        _share("specificity", [r for r in rows if not r["human"]], "judged", False, group),
        _share("accuracy", [{**r, "same": r["human"] == r["judged"]} for r in rows], "same", True, group),
    ]


def _share(name: str, rows: Sequence[Mapping[str, Any]], field: str, value: bool, group: Mapping[str, Any]) -> Metric:
    count, n = sum(r[field] == value for r in rows), len(rows)
    total = sum(r.get("weight", 1.0) for r in rows)
    weighted = sum(r.get("weight", 1.0) for r in rows if r[field] == value) / total if total else None
    note = None if weighted is None else f"weighted to all answers: {weighted:.4f}"
    # answers to one case, by several models or in several roles, share it
    near = [shares(r.get("cluster"), r.get("crossed") or ()) or r["case"] for r in rows]
    beside = counting.clustered(statistics.rate_interval([r[field] == value for r in rows], near), near)
    return Metric(name, dict(group), **statistics.share(count, n), **beside, note=mark(n, note))


def _disagreement(row: Mapping[str, Any]) -> dict[str, Any]:
    line = row["line"]
    about = {k: line.get(k) for k in ("item", "question", "gold", "response", "remark")}
    said = {"human": "right" if row["first"] else "wrong", "judged": "right" if row["judged"] else "wrong"}
    return {**about, **said, "match": row.get("match"), "reexamined": line.get("reexamined")}
