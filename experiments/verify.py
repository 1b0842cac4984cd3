"""``composcope verify RUN``: check that every number of a run follows from the answers in its journal.

The journal is read with its checksums, and a copy of the run is graded and counted again. Every stored row, cell and
case set must come out the same. Nothing is written into the run, which may be read-only.
"""

import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from ..errors import ComposcopeError, InputError, JournalError, did_you_mean
from ..evaluation import protocols, text_files
from ..evaluation.graded import Graded
from ..evaluation.journal import Contents, read_journal
from ..evaluation.metrics import Metric
from ..files import read_csv, to_csv
from ..terminal import Bar, how_many, no_bar
from .console.printing import Reporter
from .evaluating.evaluate import rescore
from .run.provenance import n_runs, source_hash
from .run.reader import RunData, missing

_COPIED = ("manifest.json", "config.yaml", "cases.jsonl")
_OUTSIDE = "human_"
"""Metrics that are counted with a file from outside the run (``--human-labels``)."""
_COUNTED = ("n", "n_invalid", "count", "value")


@dataclass(frozen=True)
class Verified:
    """The number of items compared, and the items that do not follow from the answers."""

    run: str
    answers: int
    rows: int
    cells: int
    figures: int
    problems: tuple[str, ...]
    notes: tuple[str, ...]

    def lines(self) -> list[str]:
        """The result as lines for people, with the verdict last."""
        read = [how_many(self.answers, "answer"), how_many(self.rows, "graded row")]
        read += [f"{how_many(self.cells, 'row')} of metrics.json"]
        read += [how_many(self.figures, "table of a figure", "tables of figures")] if self.figures else []
        said = f"{self.run}: {', '.join(read)}"
        found = how_many(len(self.problems), "problem") if self.problems else "all of them follow from the answers"
        return [*(f"note: {n}" for n in self.notes), *(f"DIFFERS: {p}" for p in self.problems), f"{said}: {found}"]


def verify(folder: str | Path, progress: Bar = no_bar) -> Verified:
    """Compare everything that a run states with the results recomputed from its answers.

    If answers are missing, this is a problem, and only figures are compared. Raises ``InputError`` for a folder that is
    not a counted run.
    """
    run = RunData(Path(folder).resolve())
    for name in _COPIED:
        text_files.existing(run.path / name, missing(run.path / name))
    stored, journal = run.counted_now(), read_journal(run.path / "journal")
    notes = [w for w in journal.warnings if "no checksums" in w or "torn last line" in w]
    problems = [w for w in journal.warnings if w not in notes]
    with TemporaryDirectory() as scratch:
        copy = Path(scratch) / run.name
        (copy / "journal").mkdir(parents=True)
        segments = [f"journal/{path.name}" for path in (run.path / "journal").glob("*.jsonl")]
        for name in (*_COPIED, *segments):  # without their modes: the copy of a read-only run is written
            shutil.copyfile(run.path / name, copy / name)
        try:
            rescore(copy, Reporter(None, quiet=True), stored.compat, progress=progress)
        except JournalError as e:  # without all answers nothing can be counted
            problems.append(str(e).replace(str(copy), str(run.path)))
        except ComposcopeError as e:
            raise type(e)(str(e).replace(str(copy), str(run.path))) from e
        else:
            again = RunData(copy)
            problems += [*_rows(run, again, journal), *_asks(run, again)]
            problems += [*_cells(stored.metrics, again.counted_now().metrics, notes)]
            problems += [*_case_sets(run, again), *_probed(run)]
    figures = [*_figures(run, notes, progress)]
    problems += [problem for _, problem in figures if problem is not None]
    made = run.manifest.composcope
    if problems and made.get("source") not in (None, source_hash()):
        notes.append(
            f"the run was made with other code of composcope (commit {str(made.get('commit'))[:8]}): rules and "
            f"intervals may have changed since; `composcope score {run.name}` grades and counts it again"
        )
    counts = (len(journal.responses), len(run.graded), len(stored.metrics), len(figures))
    return Verified(run.name, *counts, tuple(problems), tuple(notes))


def _rows(run: RunData, again: RunData, journal: Contents) -> Iterator[str]:
    was, now = ({(r.case, r.role, r.repeat): r for r in data.graded} for data in (run, again))
    for key in {**was, **now}:
        named = f"graded.jsonl: case {key[0]!r}, role {key[1]!r}"
        if key not in now or key not in was:
            yield f"{named}: {'no answer gives this row' if key not in now else 'the row is missing'}"
            continue
        for name in (field.name for field in fields(Graded) if field.name != "run"):  # the folder's name may change
            stored, given = getattr(was[key], name), getattr(now[key], name)
            if stored != given:
                where = journal.lines.get(str(now[key].ask), "the journal")
                yield f"{named}: {name} is {stored!r}, the answer in {where} gives {given!r}"


def _asks(run: RunData, again: RunData) -> Iterator[str]:
    """Check the prompts that probes and reports read."""
    for key in {**run.asks, **again.asks}:
        was, now = run.asks.get(key), again.asks.get(key)
        if was != now:
            of = next(f"case {ask.case!r}, role {ask.role!r}" for ask in (was, now) if ask is not None)
            yield f"asks.jsonl: {of}: {'the ask is missing' if was is None else 'is not what the case gives'}"


def _cells(stored: Sequence[Metric], given: Sequence[Metric], notes: list[str]) -> Iterator[str]:
    was, now = ({_cell(m): m.to_dict() for m in metrics} for metrics in (stored, given))
    for cell in {**was, **now}:
        if cell not in now and cell.startswith(_OUTSIDE):
            notes.append(f"metrics.json: {cell}: counted with a file from outside the run, not compared")
        elif cell not in now or cell not in was:
            yield f"metrics.json: {cell}: {'no answers give this cell' if cell not in now else 'the cell is missing'}"
        else:
            for name, value in now[cell].items():
                if was[cell].get(name) != value:
                    yield f"metrics.json: {cell}: {name} is {was[cell].get(name)!r}, the answers give {value!r}"


def _cell(metric: Metric) -> str:
    group = ", ".join(f"{k}={v}" for k, v in sorted(metric.group.items()))
    return f"{metric.metric}[{group}]" if group else metric.metric


def _case_sets(run: RunData, again: RunData) -> Iterator[str]:
    for name in {**run.case_sets, **again.case_sets}:
        was, now = run.case_sets.get(name), again.case_sets.get(name)
        if was is None or now is None or was != now:
            ids = [set() if s is None else set(s.ids) for s in (was, now)]
            differ = ", ".join(map(repr, sorted(ids[0] ^ ids[1])[:5])) or "its evidence"
            yield f"casesets/{name}.jsonl: differs from what the answers give in {differ}"


def _probed(run: RunData) -> Iterator[str]:
    """Check that the probes' values belong to cases of the run."""
    for file in sorted((run.path / "probes").glob("*/values.csv")):
        lost = {
            row.get("case"): n
            for n, row in reversed([*enumerate(read_csv(file)[1], 2)])
            if row.get("role") and row.get("case") not in run.cases
        }
        if lost:
            first, line = min(lost.items(), key=lambda found: found[1])
            yield (
                f"{file.relative_to(run.path)}:{line}: case {first!r} is none of the run's"
                + (f", nor are {len(lost) - 1} others" if len(lost) > 1 else "")
                + "; run the probe again"
            )


def _figures(run: RunData, notes: list[str], progress: Bar) -> Iterator[tuple[str, str | None]]:
    """The tables of figures by name, and the error of each; they are made again from the compared data.

    A report over several runs may stand in the run's folder. Its tables are not compared; a note says so.
    """
    every = sorted((run.path / "figures").glob("*.csv"))
    files = [file for file in every if n_runs(file) < 2]
    if shared := len(every) - len(files):
        notes.append(f"figures: {how_many(shared, 'table')} over several runs, not compared")
    if not files:
        return
    from .figures import FIGURES, draw
    from .figures.drawing import encodable

    known = [file for file in files if file.stem in FIGURES]
    with progress("drawing figures again", len(known)) as advance:
        for file in known:
            rows, was = draw(file.stem, [run.path]).rows, file.read_text(encoding="utf-8")
            names = {run.name, run.manifest.run or run.name}  # the folder's name may have changed since it was drawn
            same = any(encodable(to_csv([{**r, "run": n} if "run" in r else r for r in rows])) == was for n in names)
            yield file.stem, None if same else f"figures/{file.name}: does not match the run; draw the figure again"
            advance(1)


def trace(folder: str | Path, cell: str, progress: Bar = no_bar) -> list[dict[str, Any]]:
    """The answers behind one cell of ``metrics.json``: those whose removal changes the cell.

    ``cell`` is a metric's name, with its group if it has one: ``composition``, ``composition[depth=2]``.
    Raises ``InputError`` for a cell that the run does not have, and for a cell that is not counted over cases.
    """
    run = RunData(Path(folder).resolve())
    stored, journal = run.counted_now(), read_journal(run.path / "journal")
    names = [_cell(m) for m in stored.metrics]
    if cell not in names:
        raise InputError(f"--cell {cell}: metrics.json has no such cell{did_you_mean(cell, names)}")

    def counted(rows: Sequence[Graded]) -> tuple[Any, ...] | None:
        try:
            found = protocols.metrics_from_rows(rows, run.protocol, stored.compat, cases=run.cases).metrics
        except ComposcopeError:  # nothing can be counted from the remaining rows
            return None
        return next((tuple(getattr(m, n) for n in _COUNTED) for m in found if _cell(m) == cell), None)

    whole = counted(run.graded)
    if whole is None:
        raise InputError(
            f"--cell {cell}: this metric counts distinct answers, so it has no cases to list; see graded.jsonl"
        )
    by_case: dict[str, list[Graded]] = {}
    for row in run.graded:
        by_case.setdefault(row.case, []).append(row)
    roles, counts, kept = dict.fromkeys(row.role for row in run.graded), [], set[str]()
    with progress("counting without each case", len(by_case) + len(roles)) as advance:
        for case in by_case:
            counts += [case] if counted([r for r in run.graded if r.case != case]) != whole else []
            advance(1)
        for role in roles:
            kept |= {role} if counted([r for r in run.graded if r.role != role]) != whole else set()
            advance(1)
    return [_traced(row, journal.lines) for case in counts for row in by_case[case] if row.role in kept]


def _traced(row: Graded, lines: Mapping[str, str]) -> dict[str, Any]:
    where = lines.get(str(row.ask), "")
    return {
        "case": row.case, "role": row.role, "outcome": row.outcome, "answer": row.answer,
        "journal": "/".join(Path(where).parts[-2:]) if where else None,
    }  # fmt: skip
