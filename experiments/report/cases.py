"""The item browser's data: a light index of all cases, and their prompts and answers in chunks loaded when opened.

Texts are stored once per chunk (shared atoms repeat a lot) and capped so that the folder stays below a budget; the cap
is said on the page, the full text stays in the run folder.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from ..figures.io import Row, RunData, labels, responses

CHUNK = 40
BUDGET = 20_000_000
"""Bytes for all chunks together; figures and index have the rest of a folder's 30 MB."""
CAPS = (20_000, 4_000, 1_000, 300)
OUTCOMES = ("correct", "incorrect", "abstained", "invalid")


@dataclass(frozen=True)
class CaseData:
    """What is written for the item browser."""

    index: dict[str, Any]
    chunks: dict[str, Any]
    """By name ``cases/RUN-CHUNK``."""


def collect(runs: Sequence[RunData], budget: int = BUDGET) -> CaseData:
    """Index and chunks over all runs, under the largest cap on text length that fits the budget."""
    names = labels(runs)
    data: dict[str, Any] = {}
    cap = CAPS[-1]
    for cap in CAPS:
        data = {f"cases/{i}-{k}": c for i, run in enumerate(runs) for k, c in enumerate(_chunks(run, cap))}
        if sum(_size(c) for c in data.values()) <= budget:
            break
    dropped = _shrink(data, budget)
    rows = [row for i, run in enumerate(runs) for row in _index_rows(run, i)]
    index = {
        "runs": [{"label": names[r.path], "name": r.name, "benchmark": r.benchmark, "protocol": r.protocol}
                 for r in runs],
        "columns": ["run", "case", "family", "depth", "operation", "whole", "sets", "parts_wrong", "question"],
        "rows": rows, "chunk": CHUNK, "cap": cap, "dropped": dropped,
    }  # fmt: skip
    return CaseData(index, data)


def _size(chunk: Any) -> int:
    return len(json.dumps(chunk, ensure_ascii=False, default=str).encode("utf-8", "replace"))


def _shrink(data: dict[str, Any], budget: int) -> list[str]:
    """Last resort: leave out whole chunks from the end, and name them."""
    sizes = {name: _size(c) for name, c in data.items()}
    dropped = []
    while sizes and sum(sizes.values()) > budget:
        name = list(sizes)[-1]
        del sizes[name], data[name]
        dropped.append(name)
    return dropped


def _order(run: RunData) -> list[str]:
    """Case ids in the benchmark's order, then those known from graded rows only."""
    return list(dict.fromkeys([*run.cases, *(g["case"] for g in run.graded)]))


def _by_case(run: RunData) -> dict[str, list[Row]]:
    out: dict[str, list[Row]] = {c: [] for c in _order(run)}
    for g in run.graded:
        out[g["case"]].append(g)
    return out


def _sets_of(run: RunData) -> dict[str, list[str]]:
    out: dict[str, list[str]] = {}
    for name, entries in run.case_sets.items():
        for entry in entries:
            out.setdefault(entry["case"], []).append(name)
    return out


def _index_rows(run: RunData, number: int) -> Iterator[list[Any]]:
    sets = _sets_of(run)
    for case, graded in _by_case(run).items():
        about = run.cases.get(case) or (graded[0] if graded else {})
        whole = next((g["outcome"] for g in graded if g["role"] == "whole"), None)
        wrong = sum(g["outcome"] != "correct" for g in graded if str(g["role"]).startswith("part:"))
        question = str(about.get("question") or "")
        yield [number, case, about.get("family"), about.get("depth"), about.get("operation"), whole, sets.get(case, []),
               wrong, _cut(question, 120)[0]]  # fmt: skip


def _chunks(run: RunData, cap: int) -> Iterator[dict[str, Any]]:
    answers, grouped = responses(run), _by_case(run)
    order = list(grouped)
    for start in range(0, len(order), CHUNK):
        texts: dict[str, int] = {}
        cases = {c: _case(run, c, grouped[c], answers, texts, cap) for c in order[start : start + CHUNK]}
        yield {"cases": cases, "texts": list(texts)}


def _case(
    run: RunData, case: str, graded: Sequence[Row], answers: dict[str, Row], texts: dict[str, int], cap: int
) -> Any:
    about = run.cases.get(case, {})

    def put(text: Any) -> Any:
        """Number of a text in the chunk; with the full length where it was cut."""
        if text is None:
            return None
        short, length = _cut(str(text), cap)
        place = texts.setdefault(short, len(texts))
        return place if length is None else [place, length]

    asked = []
    for g in graded:
        ask, answer = run.asks.get(str(g.get("ask")), {}), answers.get(str(g.get("ask")), {})
        outcome = OUTCOMES.index(g["outcome"]) if g["outcome"] in OUTCOMES else 3
        asked.append([g["role"], put(ask.get("prompt")), put(answer.get("text")), put(g.get("answer")),
                      put(g.get("gold", ask.get("gold"))), outcome, g.get("match"), put(g.get("reason")),
                      answer.get("finish_reason"), ask.get("format") or g.get("prompt"), ask.get("prompting"),
                      put(answer.get("error"))])  # fmt: skip
    return {"question": put(about.get("question")), "gold": put(about.get("answer")), "chance": about.get("chance"),
            "cluster": put(about.get("cluster")), "asks": asked}  # fmt: skip


def _cut(text: str, cap: int) -> tuple[str, int | None]:
    return (text, None) if len(text) <= cap else (text[:cap], len(text))
