"""Compare two runs on one page: differences with intervals and tests, then each case, disagreements first.

``compare.html`` has its own folder with its data; its texts and index are those of the case browser.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from ...evaluation.metrics import Metric
from ...evaluation.protocols.counting import truth
from ..figures.drawing import encodable
from ..figures.grouping import labels
from ..figures.style import signed
from ..run import write_text
from ..run.compare import compare_runs
from ..run.reader import RunData, load
from ..run.shared_cases import shared_cases
from ..run.summary import counted_rows, metric_line
from . import cases
from .pictures import remove_scripts, write_script
from .write import check_own, environment, page_parts

SCRIPTS = ("core.js", "case.js", "filters.js", "compare.js")


def write_comparison(a: str | Path, b: str | Path, out: str | Path, found: Mapping[str, Any] | None = None) -> Path:
    """Write the comparison of two runs into ``out`` and return the path of ``compare.html``.

    ``found`` is the result of ``compare_runs``, if the caller already has it.

    Raises ``InputError`` for a folder that is not a single run, for runs without a case in common, and where
    ``compare.html`` is another program's page.
    """
    found = compare_runs(a, b) if found is None else found
    runs = load([a, b])
    folder = Path(out)
    check_own(folder / "compare.html")
    remove_scripts(folder / "data" / "compared", "**/*.js")
    texts = cases.collect(runs)
    # One id with two questions counts as two cases: the list keeps them apart, and so the parts that differ.
    both = shared_cases(*runs)
    apart = {c: [r for r in texts.index["roles"] if not both.comparable(c, r)] for c in both.changed_parts}
    about = {**texts.index, "changed": found["cases"]["changed"], "apart": apart, "counted": list(map(_counted, runs))}
    write_script(folder / "data" / "compared", "index", about)
    for name, chunk in texts.files.items():
        write_script(folder / "data" / "compared", name, chunk)
    names = list(labels(runs).values())
    page = environment().get_template("compare.html.j2").render(
        page_parts(SCRIPTS, {}),
        names=names, runs=runs, lead=lead(found, names),
        roles=[_role(r) for r in found["roles"]], channels=[_channel(c) for c in found["channels"]],
        differing=found["settings"], left_out=_left_out(found), warnings=found["warnings"], cap=texts.index["cap"],
        metrics=_metrics(found), shared=found["cases_said"] if found["cases"]["same"] else "",
        dropped=len(texts.index["dropped"]),
    )  # fmt: skip
    return write_text(folder / "compare.html", encodable(page))


def _counted(run: RunData) -> dict[str, dict[str, bool]]:
    """For each case and role whether the answer counts as right, where its grade does not say so itself.

    Some papers count what could not be judged as wrong, and to decline is right where no model can know the answer.
    """
    found: dict[str, dict[str, bool]] = {}
    counted = reversed([*zip(run.graded, counted_rows(run), strict=True)])
    listed = {(row.case, row.role): (row.outcome, truth(as_counted)) for row, as_counted in counted}
    for (case, role), (outcome, right) in listed.items():  # of several answers the first one, which the list shows
        if right is not None and (outcome == "invalid" or right != (outcome == "correct")):
            found.setdefault(case, {})[role] = right
    return found


def lead(found: Mapping[str, Any], names: Sequence[str]) -> str:
    """The result on wholes in one sentence: which run is right more often, by how much, and how often they disagree."""
    whole = next((r for r in found["roles"] if r["role"] == "whole"), None)
    if whole is None:
        below = "the parts are compared below" if found["roles"] else "nothing else was, so no difference can be shown"
        return f"No whole was judged in both runs; {below}."
    only = f"{whole['a_only']} only A has right, {whole['b_only']} only B"
    a, b = (f"{side} (“{name}”)" for side, name in zip("AB", names, strict=True))
    p = "" if whole["p"] is None else f": p = {_p(whole['p'])}".replace("= <", "<")
    return (
        f"Of {whole['n']} wholes judged in both, {a} has {_percent(whole['a'])} right and {b} "
        f"{_percent(whole['b'])}: a difference of {signed(100 * whole['difference'])} {_span(whole)} points. They "
        f"disagree on {whole['a_only'] + whole['b_only']}: {only} ({whole['test']}{p})."
    )


def _role(row: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "role": row["role"], "n": row["n"], "a": _percent(row["a"]), "b": _percent(row["b"]),
        "difference": f"{signed(100 * row['difference'])} {_span(row)}", "method": row["interval"],
        "a_only": row["a_only"], "b_only": row["b_only"], "p": _p(row["p"]), "p_adjusted": _p(row["p_adjusted"]),
        "test": row["test"], "note": row["note"] or "",
    }  # fmt: skip


def _channel(row: Mapping[str, Any]) -> dict[str, Any]:
    scale, form = (1, ".2f") if row["metric"] == "delta_depth" else (100, ".1f")
    value, low, high = (None if row[k] is None else signed(scale * row[k], form) for k in ("value", "low", "high"))
    where = ", ".join(f"{k} {v}" for k, v in row["group"].items() if k != "per")
    return {
        "metric": row["metric"], "where": where, "value": value or "undefined",
        "span": f"[{low}, {high}]" if low and high else "",
        "unit": "steps" if row["metric"] == "delta_depth" else "points", "n": row["n"],
        "method": row["interval"] or "", "note": row["note"] or "",
    }  # fmt: skip


def _metrics(found: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Headline metrics of both runs side by side, each with its own interval and n."""
    sides = [{(m["metric"], tuple(m["group"].items())): m for m in found[s]["metrics"]} for s in ("a", "b")]
    keys = dict.fromkeys([*sides[0], *sides[1]])
    return [
        {"name": " ".join([name, *(f"{k} {v}" for k, v in group)]), "a": _metric(sides[0].get((name, group))),
         "b": _metric(sides[1].get((name, group)))}
        for name, group in keys
    ]  # fmt: skip


def _metric(row: Mapping[str, Any] | None) -> str:
    return "not measured" if row is None else metric_line(replace(Metric(**row), group={})).partition(": ")[2]


def _left_out(found: Mapping[str, Any]) -> str:
    said = {"left_out_invalid": "could not be judged in A or B",
            "changed": "have another question or answer under the same id", "only_a": "were asked only in A",
            "only_b": "were asked only in B"}  # fmt: skip
    parts = [f"{found[k]} {text}" for k, text in said.items() if found[k]]
    return f"Not compared, of all asks: {', '.join(parts)}." if parts else "Every ask was judged in both runs."


def _percent(value: float) -> str:
    return f"{100 * value:.1f}\u00a0%"


def _span(row: Mapping[str, Any]) -> str:
    if row.get("low") is None or row.get("high") is None:
        return ""
    return f"[{signed(100 * row['low'])}, {signed(100 * row['high'])}]"


def _p(value: float | None) -> str:
    return "undefined" if value is None else "< 0.001" if value < 0.001 else f"{value:.2g}"
