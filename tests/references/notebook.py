"""What a notebook shows of a run: tables, representations and figures, as values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from references.marks import marks
from references.reduced import page_of

import composcope


def _run() -> Any:
    return composcope.open_run("runs/middle")


def _frame(shown: Any) -> list[dict[str, Any]]:
    return [{k: v for k, v in row.items() if v == v} for row in shown.to_df().to_dict("records")]


def run() -> Any:
    found = _run()
    return [repr(found), page_of(found._repr_html_()), found.name, found._sets()]


def metrics() -> Any:
    table = _run().metrics
    return {"rows": _frame(table)[:12], "n": len(table), "page": page_of(table._repr_html_())[:60], "text": repr(table)}


def groups() -> Any:
    found = _run()
    shown = {"cases": found.cases, "failures": found.failures, "successes": found.successes, "some": found.cases[2:5]}
    return {k: [repr(v), _frame(v), page_of(v._repr_html_())] for k, v in shown.items()}


def case() -> Any:
    found = _run()
    chosen = [*found.failures[:1], found.case("chain-5"), found.cases[0]]
    return [[repr(c), c.id, c.question, c.answer, c.cause, c.why, _frame(c), page_of(c._repr_html_())] for c in chosen]


def figures() -> Any:
    found = _run()
    drawings = {name: found.plot(name) for name in ("collapse-curve", "gate-funnel", "outcomes")}
    return {name: [d.caption, list(d.rows)[:9], marks(d.figure)] for name, d in drawings.items()}


CALLS: dict[str, Callable[[], Any]] = {f.__name__: f for f in (run, metrics, groups, case, figures)}
