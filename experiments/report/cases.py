"""The texts of the case browser: prompts as sent, answers and grades, in chunks that load when a case is opened.

Each text is stored once per chunk (shared atoms repeat often) and capped so that the folder stays within a budget. The
page states the cap; the full text stays in the run folder.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ...evaluation.asks import OUTCOMES, Ask, Response
from ...evaluation.graded import Graded
from ..run.reader import RunData
from ..run.rendered import Rendered, read_rendered
from .index import Told, by_case, index
from .origins import origins

CHUNK = 40
BUDGET = 14_000_000
"""Bytes for all chunks together; figures, pictures and the index share the rest of the folder's 30 MB."""
CAPS = (20_000, 4_000, 1_000, 300)
Put = Callable[[Any], Any]
FIELDS = ("prompt", "response", "read", "gold", "before", "after", "format", "prompting", "match", "finish", "given",
          "said", "kind", "reason", "error", "sent")  # fmt: skip
"""The columns of an ask's row, in order; a row ends at its last value."""


@dataclass(frozen=True)
class CaseData:
    """The data files of the case browser."""

    index: dict[str, Any]
    chunks: dict[str, Any]
    """The chunks, by name (``cases/RUN-CHUNK``)."""


def collect(runs: Sequence[RunData], told: Sequence[Told] | None = None, budget: int = BUDGET) -> CaseData:
    """Index and chunks of all runs, with the largest cap on text length that fits the budget."""
    sent = [read_rendered(run.path) for run in runs]
    cap = CAPS[0]
    while True:
        data = {f"cases/{i}-{k}": c for i, run in enumerate(runs) for k, c in enumerate(_chunks(run, cap, sent[i]))}
        sizes = {name: _size(c) for name, c in data.items()}
        longest = max((len(text) for c in data.values() for text in c["texts"]), default=0)
        # a cap that cuts no text makes nothing smaller, and every round takes seconds for 20,000 cases
        lower = next((c for c in CAPS if c < min(cap, longest)), None)
        if lower is None or sum(sizes.values()) <= budget:
            break
        cap = lower
    dropped = _shrink(data, sizes, budget)
    return CaseData(
        {**index(runs, told or [Told(origins(run)) for run in runs]), "chunk": CHUNK, "cap": cap, "dropped": dropped},
        data,
    )


def _size(chunk: Any) -> int:
    return len(json.dumps(chunk, ensure_ascii=False, default=str).encode("utf-8", "replace"))


def _shrink(data: dict[str, Any], sizes: dict[str, int], budget: int) -> list[str]:
    """As a last resort, remove whole chunks from the end; returns their names."""
    dropped = []
    while sizes and sum(sizes.values()) > budget:
        name = list(sizes)[-1]
        del sizes[name], data[name]
        dropped.append(name)
    return dropped


def _chunks(run: RunData, cap: int, sent: Rendered) -> Iterator[dict[str, Any]]:
    answers, grouped = run.responses, by_case(run)
    order = list(grouped)
    for start in range(0, len(order), CHUNK):
        texts: dict[str, int] = {}

        def put(text: Any, texts: dict[str, int] = texts) -> Any:
            """The number of a text in the chunk, with the full length if it was cut."""
            if text is None:
                return None
            short, length = cut(str(text), cap)
            place = texts.setdefault(short, len(texts))
            return place if length is None else [place, length]

        asked: dict[str, int] = {}
        cases = {c: _case(run, c, grouped[c], answers, sent, put, asked) for c in order[start : start + CHUNK]}
        yield {"cases": cases, "fields": FIELDS, "asked": [json.loads(a) for a in asked], "texts": list(texts)}


def _case(
    run: RunData, case: str, graded: Sequence[Graded], answers: Mapping[str, Response], sent: Rendered, put: Put,
    asked: dict[str, int],
) -> dict[str, Any]:  # fmt: skip
    """A case with its asks as role, outcome, repeat, and the number of the ask and its response in ``asked``."""
    asks = []
    for g in graded:
        key = str(g.ask)
        said = json.dumps(_ask(g, run.asks.get(key), answers.get(key), sent, put), default=str)
        asks.append([g.role, OUTCOMES.index(g.outcome), g.repeat, asked.setdefault(said, len(asked))])
    about = run.cases.get(case)
    return {
        "question": put(about and about.question), "gold": put(about and about.answer),
        "chance": about and about.chance, "cluster": put(about and about.cluster),
        "parts": [put(p.question) for p in about.parts] if about else [], "asks": asks,
    }  # fmt: skip


def _ask(graded: Graded, ask: Ask | None, answer: Response | None, sent: Rendered, put: Put) -> list[Any]:
    """One ask as a row of ``FIELDS``; ``given`` and ``said`` are token counts."""
    prompt = ask and ask.prompt
    found = {
        "match": graded.match, "kind": graded.kind, "prompt": put(prompt), "response": put(answer and answer.text),
        "read": put(graded.answer), "gold": put(graded.gold or (ask and ask.gold)), "reason": put(graded.reason),
        "finish": answer and answer.finish_reason, "format": (ask and ask.format) or graded.prompt,
        "prompting": ask and ask.prompting, "error": put(answer and answer.error),
        "given": answer and answer.prompt_tokens, "said": answer and answer.response_tokens,
        **_as_sent(str(graded.ask), prompt, sent, put),
    }  # fmt: skip
    row = [found.get(name) for name in FIELDS]
    while row and row[-1] is None:
        row.pop()
    return row


def _as_sent(key: str, prompt: Any, sent: Rendered, put: Put) -> dict[str, Any]:
    """``before`` and ``after``: the text around the prompt; ``sent``: the whole text, if the prompt is not in it."""
    if (whole := sent.whole(key)) is not None:
        return {"sent": put(whole)}
    if prompt is not None and (around := sent.around(key)) is not None:
        before, after = around
        return {"before": put(before), "after": put(after)}
    return {}


def cut(text: str, cap: int) -> tuple[str, int | None]:
    """A text cut at a cap, and its full length if it is longer."""
    return (text, None) if len(text) <= cap else (text[:cap], len(text))
