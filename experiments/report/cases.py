"""The case browser: a short row per case, and texts (prompts as sent, answers, grades) that load when a case is opened.

A row has every field that the filters use, among them the gates that the case passed and the k of its scaffold ladder.

Each text is stored once per chunk (shared atoms repeat often) and capped so that the folder stays within a budget. The
page states the cap; the full text stays in the run folder.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ...evaluation.asks import OUTCOMES, Ask, Response
from ...evaluation.graded import Graded
from ...evaluation.protocols.double_gate import Gated, gate_cases
from ..figures.grouping import labels
from ..run.reader import RunData
from ..run.single_cases import Rendered, read_rendered
from ..run.summary import counted_rows
from .origins import KINDS, MEANS, Origin, origins
from .pictures import PageData, leave_out, size_of

COLUMNS = ("run", "case", "family", "depth", "bin", "operation", "roles", "sets", "gate", "skills", "k", "question",
           "gold", "answer", "origin", "detail", "twin")  # fmt: skip
LONGEST = 120
ENDING = 75
"""Characters that are shown from the end of a long question, which often says what is asked."""
_PART_AT_END, _PART_AT_START = re.compile(r"\s\S{0,15}$"), re.compile(r"^\S{0,15}\s")


@dataclass(frozen=True)
class Told:
    """Facts about a run's failing cases that its list shows."""

    origins: Mapping[str, Origin]
    """The origin of each wrong whole."""
    twins: Mapping[str, str] = field(default_factory=dict)
    """For each failure, the success that is shown with it."""


def index(runs: Sequence[RunData], told: Sequence[Told]) -> dict[str, Any]:
    """Rows of all runs. Repeated names (roles, skills, sets, families) are stored as positions in lists."""
    names = labels(runs)
    lists: dict[str, dict[str, int]] = {"roles": {}, "skills": {}, "sets": {}, "families": {}}
    rows = [row for i, run in enumerate(runs) for row in _rows(run, i, lists, told[i])]
    return {
        "runs": [{"label": names[r.path], "name": r.name, "benchmark": r.benchmark, "protocol": r.protocol}
                 for r in runs],
        "columns": list(COLUMNS), "rows": rows, "gates": list(GATES), "outcomes": list(OUTCOMES),
        "origins": list(KINDS.values()), "origins_mean": [MEANS[kind] for kind in KINDS],
        **{name: list(values) for name, values in lists.items()},
    }  # fmt: skip


def _rows(run: RunData, number: int, lists: Mapping[str, dict[str, int]], told: Told) -> Iterator[list[Any]]:
    gated, levels = gates(run), ladder_k(run)
    sets: dict[str, list[str]] = {}
    for name, found in run.case_sets.items():
        for case in found.ids:
            sets.setdefault(case, []).append(name)

    def place(name: str, value: Any) -> int:
        return lists[name].setdefault(str(value), len(lists[name]))

    for case, graded in run.by_case.items():
        known = run.cases.get(case)
        about = known or graded[0]
        outcomes: dict[int, str] = {}
        for g in graded:
            outcomes.setdefault(place("roles", g.role), str(OUTCOMES.index(g.outcome)))
        own = [p.skill for p in known.parts if p.skill] if known else []
        skills = [place("skills", s) for s in own or (graded[0].skills if graded else ())]
        mine = [place("sets", s) for s in sets.get(case, [])]
        whole = next((g for g in graded if g.role == "whole"), None)
        origin = told.origins.get(case)
        yield [
            number, case, None if about.family is None else place("families", about.family), about.depth,
            about.depth_bin, about.operation, _dense(outcomes), mine,
            GATES.index(gated[case]) if case in gated else None, skills, levels.get(case),
            _both_ends(known.question if known else ""),
            _short(known.answer if known else str((whole and whole.gold) or "")),
            _short(str(whole.answer)) if whole and whole.answer is not None else None,
            list(KINDS).index(origin.kind) if origin else None, _short(origin.detail) if origin else "",
            told.twins.get(case),
        ]  # fmt: skip


def _short(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"


def _both_ends(text: str) -> str:
    """A question cut in the middle: many questions of one kind begin in the same way and differ at their end."""
    if len(text) <= LONGEST:
        return text
    begins, ends = text[: LONGEST - ENDING - 3], text[-ENDING:]
    return f"{_PART_AT_END.sub('', begins)} … {_PART_AT_START.sub('', ends)}"


def _dense(outcomes: Mapping[int, str]) -> str:
    """One character per role, in the order of the roles: the outcome's number, or a dot if the role was not asked."""
    return "".join(outcomes.get(i, ".") for i in range(max(outcomes, default=-1) + 1))


PASSED, ATOMS, PARTS, OPEN = "passed every gate", "stopped at the atoms", "stopped at the parts", "not decided"
GATES = (PASSED, ATOMS, PARTS, OPEN)


def gates(run: RunData) -> dict[str, str]:
    """For each case, the gate that stopped it, or that it passed every gate.

    The atoms gate needs every wording of every atom right; the parts gate needs every sub-question right. A case that
    fails both is stopped at the atoms, which come first. An answer that could not be judged leaves a gate undecided
    unless another answer fails it. Cases without parts are left out.
    """
    cases = run.cases if any(":paraphrase:" in r.role for r in run.graded) else None
    found: dict[str, str] = {}
    for gated in gate_cases(counted_rows(run), cases):
        if gated.item.n_parts:
            found.setdefault(gated.item.case, _stopped(gated))
    return found


def _stopped(gated: Gated) -> str:
    if gated.atom is False:
        return ATOMS
    if gated.sub is False:
        return PARTS
    return PASSED if gated.double is True else OPEN


def ladder_k(run: RunData) -> dict[str, Any]:
    """k of each case, from the run's own case sets: 0 if solved unaided, the level that was enough, -1 if none was."""
    names = ("unaided", "scaffold-k", "intractable")
    sets = [run.case_sets[n] for n in names if n in run.case_sets]
    return {e.case: e.value for found in sets for e in found.entries if e.value is not None}


CHUNK = 40
BUDGET = 14_000_000
"""Bytes for all chunks together; figures, pictures and the index share the rest of the folder's 30 MB."""
CAPS = (20_000, 4_000, 1_000, 300)
Put = Callable[[Any], Any]
FIELDS = ("prompt", "response", "read", "gold", "before", "after", "format", "prompting", "match", "finish", "given",
          "said", "kind", "reason", "error", "sent")  # fmt: skip
"""The columns of an ask's row, in order; a row ends at its last value."""


def collect(runs: Sequence[RunData], told: Sequence[Told] | None = None, budget: int = BUDGET) -> PageData:
    """Index and chunks (``cases/RUN-CHUNK``) of all runs, with the largest cap on text length that fits the budget."""
    sent = [read_rendered(run.path) for run in runs]
    cap = CAPS[0]
    while True:
        data = {f"cases/{i}-{k}": c for i, run in enumerate(runs) for k, c in enumerate(_chunks(run, cap, sent[i]))}
        sizes = {name: size_of(c) for name, c in data.items()}
        longest = max((len(text) for c in data.values() for text in c["texts"]), default=0)
        # a cap that cuts no text makes nothing smaller, and every round takes seconds for 20,000 cases
        lower = next((c for c in CAPS if c < min(cap, longest)), None)
        if lower is None or sum(sizes.values()) <= budget:
            break
        cap = lower
    dropped = leave_out(data, sizes, budget)
    rows = index(runs, told or [Told(origins(run)) for run in runs])
    return PageData({**rows, "chunk": CHUNK, "cap": cap, "dropped": dropped}, data)


def _chunks(run: RunData, cap: int, sent: Rendered) -> Iterator[dict[str, Any]]:
    answers, grouped = run.responses, run.by_case
    order = list(grouped)
    for start in range(0, len(order), CHUNK):
        texts: dict[str, int] = {}

        def put(text: Any, texts: dict[str, int] = texts) -> Any:
            """The number of a text in the chunk, with the full length if it was cut."""
            if text is None:
                return None
            short, length = cut(str(text), cap)
            place = texts.setdefault(short, len(texts))
            return place if length is None else (place, length)

        asked: dict[tuple[Any, ...], int] = {}
        cases = {c: _case(run, c, grouped[c], answers, sent, put, asked) for c in order[start : start + CHUNK]}
        yield {"cases": cases, "fields": FIELDS, "asked": list(asked), "texts": list(texts)}


def _case(
    run: RunData, case: str, graded: Sequence[Graded], answers: Mapping[str, Response], sent: Rendered, put: Put,
    asked: dict[tuple[Any, ...], int],
) -> dict[str, Any]:  # fmt: skip
    """A case with its asks as role, outcome, repeat, and the number of the ask and its response in ``asked``."""
    asks = []
    for g in graded:
        key = str(g.ask)
        said = _ask(g, run.asks.get(key), answers.get(key), sent, put)
        asks.append([g.role, OUTCOMES.index(g.outcome), g.repeat, asked.setdefault(said, len(asked))])
    about = run.cases.get(case)
    return {
        "question": put(about and about.question), "gold": put(about and about.answer),
        "chance": about and about.chance, "cluster": put(about and about.cluster),
        "parts": [put(p.question) for p in about.parts] if about else [], "asks": asks,
    }  # fmt: skip


def _ask(graded: Graded, ask: Ask | None, answer: Response | None, sent: Rendered, put: Put) -> tuple[Any, ...]:
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
    return tuple(row)


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
