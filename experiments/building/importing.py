"""``composcope import``: turns other people's result files into ``graded.jsonl`` and reports their contradictions.

With ``regrade`` the stored responses are graded again by our rules, and every item whose verdict differs is reported.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ...errors import InputError
from ...evaluation import importers
from ...evaluation.graded import Graded, check_rows
from ...evaluation.importers.base import disagreement_lines, refuse_twice, regrade
from ...evaluation.protocols.base import uncounted
from ...terminal import Bar, how_many, no_bar, stage, tick
from ..run import write_json, write_lines


@dataclass(frozen=True)
class Summary:
    """What was imported, and from where."""

    files: tuple[str, ...]
    kinds: tuple[str, ...]
    rows: tuple[Graded, ...]
    contradictions: tuple[dict[str, Any], ...]
    warnings: tuple[str, ...]
    regraded: dict[str, int] | None = None
    """Number of rows by "stored -> ours" outcome; None if nothing was graded again."""
    disagreements: tuple[dict[str, Any], ...] = ()

    @property
    def n_invalid(self) -> int:
        return sum(row.outcome == "invalid" for row in self.rows)

    def to_dict(self) -> dict[str, Any]:
        """Counts, contradictions, disagreements and warnings; not the rows."""
        roles: dict[str, dict[str, int]] = {}
        for row in self.rows:
            counts = roles.setdefault(row.role, {})
            counts[row.outcome] = counts.get(row.outcome, 0) + 1
        return {
            "files": [{"file": f, "kind": k} for f, k in zip(self.files, self.kinds, strict=True)],
            "rows": len(self.rows),
            "cases": len({(r.model, r.case) for r in self.rows}),
            "roles": roles,
            "invalid": self.n_invalid,
            "contradictions": list(self.contradictions),
            **({} if self.regraded is None else {"regraded": self.regraded, "disagreements": list(self.disagreements)}),
            "warnings": list(self.warnings),
        }

    def lines(self, most: int = 20) -> list[str]:
        """The summary as text: counts per role, then contradictions row by row."""
        found = self.to_dict()
        out = [f"{f['file']} ({f['kind']})" for f in found["files"]]
        out.append(f"{how_many(found['rows'], 'row')} about {how_many(found['cases'], 'case')}")
        for role, counts in found["roles"].items():
            out.append(f"  {role}: " + ", ".join(f"{n} {outcome}" for outcome, n in counts.items()))
        if self.contradictions:
            shown = "" if len(self.contradictions) <= most else f", the first {most} (all: contradictions.jsonl)"
            out.append(f"{len(self.contradictions)} stored values contradict the rest of their file{shown}:")
            for c in self.contradictions[:most]:
                out.append(
                    f"  {c['where']}: {c['field']} is {c['stored']}, should be {c['recomputed']} ({c['problem']})"
                )
        if self.regraded is not None:
            out += disagreement_lines(self.regraded, self.disagreements, most)
        return out + [f"warning: {w}" for w in self.warnings]


def import_files(
    files: Sequence[str | Path],
    out: str | Path,
    kind: str | None = None,
    options: importers.Options | None = None,
    progress: Bar = no_bar,
) -> Summary:
    """Read result files and write ``out`` (graded.jsonl), with ``contradictions.jsonl`` and ``import.json`` next to it.

    The rows keep the stored verdicts; contradictions are reported and not repaired. With ``options.regrade`` the rows
    have our verdicts, and ``disagreements.jsonl`` has the rows whose stored verdict differs. Raises ``InputError`` for
    files that cannot be read and for rows that occur in two files.
    """
    options, out = replace(options or importers.Options(), each=lambda: tick(1)), Path(out)
    beside = (out, *(out.with_name(name) for name in ("contradictions.jsonl", "disagreements.jsonl", "import.json")))
    if (out.parent / "manifest.json").is_file():
        raise InputError(f"--out {out}: {out.parent} is a run, whose files an import may replace; give another folder")
    for path in files:
        if Path(path).resolve() in {written.resolve() for written in beside}:
            raise InputError(f"--out {out}: would overwrite {path}, which is to be read; give another file or folder")
    read: list[Graded] = []
    graded_here = False
    kinds, contradictions, warnings, disagreements = [], [], [], []
    table: Counter[str] = Counter()
    for path in files:
        kinds.append(kind or importers.detect(path, options))
        with stage(progress, f"reading {Path(path).name}", _lines(path)):
            found = importers.read(path, kinds[-1], options)
        graded_here |= options.regrade or any(s is not None and not s.has_verdict for s in found.stored)
        contradictions += found.contradictions
        warnings += found.warnings
        if options.regrade:
            with stage(progress, f"grading {Path(path).name} again", len(found.rows)):
                ours = regrade(found, options)
            found = replace(found, rows=ours.rows)
            disagreements += ours.disagreements
            table.update(ours.table)
            if ours.not_graded:
                warnings.append(f"{path}: {ours.not_graded} rows have no response or gold and keep the stored verdict")
        read += found.rows
    _refuse_unused(options, read, graded_here)
    refuse_twice(read, " and ".join(map(str, files)), "name the models, or import the files one by one")
    warnings += uncounted(read, None) + check_rows(read)
    write_lines(out, (row.to_dict() for row in read))
    write_lines(out.with_name("contradictions.jsonl"), contradictions)
    if options.regrade:
        write_lines(out.with_name("disagreements.jsonl"), disagreements)
    summary = Summary(
        tuple(map(str, files)), tuple(kinds), tuple(read), tuple(contradictions), tuple(warnings),
        dict(table) if options.regrade else None, tuple(disagreements),
    )  # fmt: skip
    write_json(out.with_name("import.json"), summary.to_dict())
    return summary


def _refuse_unused(options: importers.Options, rows: Sequence[Graded], graded_here: bool) -> None:
    """Raises ``InputError`` for an option that changed nothing, because the rows say it themselves."""
    if options.role is not None and not any(row.role == options.role for row in rows):
        raise InputError(f"--role {options.role}: every row states its own role; leave it out")
    for name, value in (("--answer-type", options.answer_type), ("--format", options.format)):
        if value is not None and not graded_here:
            raise InputError(f"{name} {value}: every row has a stored verdict, which is kept; add --regrade, or leave "
                             f"out {name}")  # fmt: skip


def _lines(path: str | Path) -> int:
    """About as many rows as a file can have; a reader says what is wrong with a file that cannot be read."""
    try:
        with Path(path).open("rb") as file:
            return max(sum(block.count(b"\n") for block in iter(lambda: file.read(1 << 20), b"")), 1)
    except OSError:
        return 1
