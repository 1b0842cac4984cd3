"""The builders behind ``composcope build``: one function per benchmark, each writing a folder.

A folder contains ``cases.jsonl`` (what ``--benchmark`` takes), ``rejected.jsonl`` (what was left out and why),
``review.jsonl`` (what a person should look at) and ``build.json`` (options, hashes of the inputs, counts). The same
options and inputs give the same files. Builders that ask models keep a journal: the same command continues the build.
"""

import json
import shutil
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from ...errors import InputError, NoCasesError
from ...evaluation.asks import Ask, Response
from ...evaluation.case import Case, case_to_dict
from ...evaluation.engines.base import Engine
from ...evaluation.journal import Journal
from ...evaluation.text_files import existing
from ...files import file_sha256
from ...terminal import Bar, how_many, no_bar, stage
from ..run import (
    SCHEMA,
    check_no_run,
    differing,
    locked,
    provenance,
    read_json,
    read_lines,
    write_json,
    write_lines,
    write_text,
)
from ..run.schema import BuildAbout, checked

_REASONS = 8
"""Reasons of rejection that are shown."""


@dataclass(frozen=True)
class Made:
    """The result of a builder before it is written."""

    cases: Sequence[Case]
    rejected: Sequence[Mapping[str, Any]] = ()
    review: Sequence[Mapping[str, Any]] = ()
    report: Mapping[str, Any] = field(default_factory=dict)
    files: Mapping[str, Sequence[Mapping[str, Any]]] = field(default_factory=dict)
    """Additional JSON-lines files by name."""
    decided: Sequence[Mapping[str, Any]] = ()
    """A person's decisions: they stay in ``review.jsonl``, which may be the file that they were made in."""


@dataclass(frozen=True)
class Watched:
    """An engine whose answers move a progress bar: a teacher takes hours for a thousand questions."""

    engine: Any
    title: str
    progress: Bar

    def __getattr__(self, name: str) -> Any:
        return getattr(self.engine, name)

    def answer(self, asks: Sequence[Ask]) -> Iterator[tuple[Ask, Response]]:
        """The engine's answers, each counted as it arrives."""
        with self.progress(self.title, len(asks)) as advance:
            for answered in self.engine.answer(asks):
                advance(1)
                yield answered


def file_hash(path: str | Path) -> str:
    """sha256 of a file. Raises ``InputError`` if it does not exist, or is a folder."""
    return file_sha256(existing(path, "give the file that the builder reads"))


def build(
    out: str | Path, kind: str, options: Mapping[str, Any], inputs: Sequence[str | Path], make: Callable[[Path], Made]
) -> dict[str, Any]:
    """Run ``make(journal folder)`` under the folder's lock and write its files; returns the content of ``build.json``.

    Raises ``InputError`` if the folder contains a build with other options or inputs. If an input cannot be used, no
    build is left behind, so that the same command works once the input is fixed.
    """
    asked = {"kind": kind, "options": dict(options), "inputs": _hashes(inputs)}
    check_no_run(out)
    with locked(out) as folder:
        _same(folder, asked)
        new = not (folder / "build.json").exists()
        # Also written at the start: a build that was stopped can only be continued with the same options.
        write_json(folder / "build.json", {**asked, "complete": False})
        try:
            made = make(folder / "journal")
        except InputError:
            if new and not any((folder / "journal").glob("*.jsonl")):
                _forget(folder)
            raise
        write_lines(folder / "rejected.jsonl", made.rejected)
        write_lines(folder / "review.jsonl", [*made.review, *made.decided])
        if not made.cases:
            left = [*made.rejected, *made.review]
            reasons = Counter(str(r.get("reason", "to review")).split(":")[0] for r in left).most_common(3)
            said = ", ".join(f"{n} {reason}" for reason, n in reasons)
            raise NoCasesError(f"{out}: no cases were made ({said}); see rejected.jsonl and review.jsonl there")
        return _write(folder, asked, made)


def _hashes(inputs: Sequence[str | Path]) -> dict[str, str]:
    """The hash of each input by its name without folders; a second file of one name has a number behind it."""
    found: dict[str, str] = {}
    names = Counter[str]()
    for path in inputs:
        name = Path(path).name
        names[name] += 1
        found[name if names[name] == 1 else f"{name} ({names[name]})"] = file_hash(path)
    return found


def _forget(folder: Path) -> None:
    """Remove what a build wrote before it began, and the folder too if nothing else is in it."""
    (folder / "build.json").unlink()
    shutil.rmtree(folder / "journal", ignore_errors=True)
    if [p.name for p in folder.iterdir()] == [".lock"]:
        shutil.rmtree(folder)


def _same(folder: Path, asked: Mapping[str, Any]) -> None:
    path = folder / "build.json"
    if not path.is_file():
        return
    before = checked(BuildAbout, read_json(path), str(path), "give another folder").facts()
    flat_before, flat = (
        {"kind": d.get("kind"), **d.get("options", {}), **{f"input {k}": v for k, v in d.get("inputs", {}).items()}}
        for d in (before, asked)
    )
    names = dict.fromkeys([*flat_before, *flat])
    differ = [said for k in names for said in differing(k, flat_before.get(k), flat.get(k))]
    if differ:
        raise InputError(
            f"--out {folder}: holds another build ({'; '.join(differ)}); give another folder or the same options"
        )


def _write(folder: Path, asked: Mapping[str, Any], made: Made) -> dict[str, Any]:
    text = "".join(json.dumps(case_to_dict(c), ensure_ascii=False) + "\n" for c in made.cases)
    write_text(folder / "cases.jsonl", text)
    for name, rows in made.files.items():
        write_lines(folder / name, rows)
    reasons = Counter(f"{r.get('stage', '?')}: {str(r.get('reason')).split(':')[0]}" for r in made.rejected)
    document = {
        **asked,
        "complete": True,
        "composcope": provenance.code(),
        "counts": {"cases": len(made.cases), "rejected": len(made.rejected), "review": len(made.review)},
        "rejected_by_reason": dict(reasons.most_common()),
        "report": dict(made.report),
    }
    write_json(folder / "build.json", document)
    return {"schema": SCHEMA, "out": str(folder), **document}


def lines(document: Mapping[str, Any]) -> list[str]:
    """A text summary of what was built."""
    counts = document["counts"]
    out = [f"{document['out']}: {counts['cases']} cases, {counts['rejected']} rejected, {counts['review']} to review"]
    rejected = [f"  rejected {n}: {reason}" for reason, n in document["rejected_by_reason"].items()]
    out += rejected[:_REASONS]
    if more := rejected[_REASONS:]:
        out.append(f"  rejected for {how_many(len(more), 'other reason')}, see build.json")
    return out + [f"  {k}: {v}" for k, v in document["report"].items()]


def _decisions(path: str | Path) -> dict[str, Mapping[str, Any]]:
    """A person's decisions by case. Raises ``InputError`` for a line without a case, or two decisions on one case."""
    found: dict[str, Mapping[str, Any]] = {}
    file_hash(path)
    for n, row in enumerate(read_lines(path), 1):
        case = row.get("case")
        if not isinstance(case, str) or not case:
            raise InputError(f"{path}: decision {n}: field 'case' is {case!r}; give the id of a case")
        if case in found:
            raise InputError(f"{path}: decision {n}: case {case!r} has two decisions; keep one of them")
        found[case] = row
    return found


def _check_kept(path: Path, decided: Mapping[str, Any]) -> None:
    """Raises ``InputError`` for a person's decisions in the folder that the build would undo and overwrite."""
    rows = read_lines(path) if path.is_file() else []
    if lost := [
        r.get("case") for r in rows if r.get("decision") not in (None, "open") and r.get("case") not in decided
    ]:
        raise InputError(f"{path}: has a decision on {lost[0]!r}; give --reviewed {path}, or move the file elsewhere")


def compositional_gsm(
    out: str | Path,
    items: str | Path,
    gold: str | Path | None = None,
    *,
    size: int | None = None,
    seed: int = 0,
    rules: Mapping[str, Any] | None = None,
    solvers: Sequence[Engine] = (),
    samples: int = 16,
    minimum: int = 4,
    reviewed: str | Path | None = None,
    progress: Bar = no_bar,
) -> dict[str, Any]:
    """Pairs from items with code-form solutions; with ``solvers``, pairs they rarely solve go to ``review.jsonl``.

    ``gold`` is GSM8K's test file, needed for GSM-Hard rows. ``reviewed`` is a review file with a person's decisions.
    """
    from ...evaluation.benchmarks.arithmetic import read_gsm8k
    from ...evaluation.builders import code_items, review
    from ...evaluation.builders import compositional_gsm as builder

    chosen = builder.Rules(**(rules or {}))
    decided = _decisions(reviewed) if reviewed else {}
    _check_kept(Path(out) / "review.jsonl", decided)

    def make(journal: Path) -> Made:
        answers = None if gold is None else {c.question: c.answer for c in read_gsm8k(gold)}
        read, rejected = code_items.read_code_items(items, answers)
        if not read and gold is None and {r["reason"] for r in rejected} == {"no-gold-answer"}:
            raise InputError(f"{items}: its rows have no answer; give --gold, GSM8K's test.jsonl, for GSM-Hard rows")
        if not read:
            return Made((), rejected)
        with stage(progress, "trying other numbers in the questions", len(read)):
            built = builder.build(read, size, seed, chosen)
        queued: list[dict[str, Any]] = []
        if solvers:
            with Journal(journal) as book:
                watched: list[Any] = [Watched(s, "asking the solvers", progress) for s in solvers]
                queued = review.queue(built.cases, watched, book, samples=samples, minimum=minimum, seed=seed)
        kept, still = review.settle(built.cases, ({r["case"]: r for r in queued} | decided).values())
        settled = [row for row in decided.values() if row.get("decision") != "open"]
        report = {"items": len(read), "magnitude": built.magnitude}
        return Made(kept, [*rejected, *built.rejected], still, report, decided=settled)

    options = {"size": size, "seed": seed, "rules": asdict(chosen), "samples": samples, "minimum": minimum}
    options["solvers"] = [dict(s.identity) for s in solvers]
    # A reviewed file continues the build that queued it, so it is not part of the build's identity.
    return build(out, "compositional-gsm", options, [items, *([gold] if gold else [])], make)


def temporal(
    out: str | Path,
    facts: str | Path,
    *,
    plan: str = "d4v2",
    seed: int = 0,
    per_cell: int | None = None,
    paraphrases: int | None = None,
    gate_boundaries: bool = False,
    min_gap: float = 2.0,
) -> dict[str, Any]:
    """A benchmark of dated facts: ``d4v2``, ``cross-domain`` or ``harder`` (short chains), from a file of facts."""
    from ...evaluation.builders import facts as reading
    from ...evaluation.builders import temporal as builder

    plans: dict[str, builder.Plan] = {
        "d4v2": builder.D4V2, "cross-domain": builder.CROSS_DOMAIN, "harder": builder.HARDER
    }  # fmt: skip
    if plan not in plans:
        raise InputError(f"--plan {plan}: use one of {', '.join(plans)}")
    cells = tuple((f, d, per_cell or n) for f, d, n in plans[plan])

    def make(journal: Path) -> Made:
        read = reading.read_facts(facts, paraphrases)
        gated = gate_boundaries or plan == "harder"
        cases = builder.build(read, cells, seed, gate_boundaries=gated, min_gap=min_gap, benchmark=plan)
        return Made(cases, report={"facts": len(read), "shape": builder.shape(cases)})

    options = {"plan": plan, "seed": seed, "per_cell": per_cell, "paraphrases": paraphrases}
    options |= {"gate_boundaries": gate_boundaries, "min_gap": min_gap}
    return build(out, "temporal", options, [facts], make)


def classification(
    out: str | Path,
    memberships: str | Path,
    *,
    depths: Sequence[int] = (2, 3, 4),
    per_cell: int = 30,
    seed: int = 0,
    paraphrases: int | None = None,
) -> dict[str, Any]:
    """Chains of "X is a Y" from a file of memberships (the classification chains of the cross-domain set)."""
    from ...evaluation.builders import classification as builder

    def make(journal: Path) -> Made:
        read = builder.read_memberships(memberships, paraphrases)
        return Made(builder.build(read, depths, per_cell, seed), report={"memberships": len(read)})

    options = {"depths": list(depths), "per_cell": per_cell, "seed": seed, "paraphrases": paraphrases}
    return build(out, "classification", options, [memberships], make)


def synthetic(
    out: str | Path,
    *,
    families: Sequence[str] = ("kinship", "numerical", "spatial"),
    depths: Sequence[int] = (2, 3, 4, 5, 6),
    per_cell: int = 11,
    distractors: int = 4,
    seed: int = 0,
) -> dict[str, Any]:
    """In-context families about made-up entities."""
    from ...evaluation.builders import synthetic as builder

    def make(journal: Path) -> Made:
        return Made(builder.build(families, depths, per_cell, seed, distractors=distractors))

    options = {"families": list(families), "depths": list(depths), "per_cell": per_cell}
    return build(out, "synthetic", {**options, "distractors": distractors, "seed": seed}, [], make)
