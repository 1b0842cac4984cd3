"""``composcope study NAME RUN...``: run the papers' further analyses on runs or on files of graded rows."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ...errors import InputError
from ...evaluation.analyses import adjudicator, agentcoma, gated, stad, taxonomy
from ...evaluation.analyses.base import Analysis, Source, distinct, lengths
from ...evaluation.graded import read_graded
from ...evaluation.metrics import quoted
from ...evaluation.protocols.base import uncounted
from ...evaluation.protocols.counting import by_model
from ...files import at_home
from ..console.printing import table
from ..evaluating.ask_plan import load_benchmark
from ..run import check_no_run, find_runs, read_lines, write_json, write_lines


@dataclass(frozen=True)
class AnalysisOptions:
    """Options of the analyses; each analysis uses only some of them."""

    reference: str | None = None
    annotations: Path | None = None
    sheet: Path | None = None
    key: Path | None = None
    kept: Path | None = None
    sample: int = 300
    sizes: tuple[str, ...] = ()
    within: float = 2.0
    per_person: int = 12
    answers: int = 1
    seed: int = 0


def _enough(name: str, sources: Sequence[Source], least: int, most: int | None) -> None:
    if len(sources) < least or (most is not None and len(sources) > most):
        wanted = f"{least}" if most == least else f"at least {least}"
        raise InputError(f"study {name}: {len(sources)} runs; give {wanted}")


def _annotations(o: AnalysisOptions) -> taxonomy.Annotations | None:
    return None if o.annotations is None else taxonomy.read_annotations(read_lines(o.annotations), str(o.annotations))


def _adjudicator(sources: Sequence[Source], o: AnalysisOptions) -> Analysis:
    if (o.sheet is None) != (o.key is None):
        raise InputError("study adjudicator: give --sheet and --key together, or neither to draw a sample")
    if o.sheet is not None and o.key is not None:
        return adjudicator.validate(read_lines(o.key), read_lines(o.sheet))
    _enough("adjudicator", sources, 1, None)
    return adjudicator.draw(sources, o.sample, o.seed)


def _filtering(source: Source, o: AnalysisOptions) -> Analysis:
    from ...evaluation.benchmarks.stad import read_items

    if o.kept is None:
        raise InputError("study filtering: give --kept, the records.jsonl of `composcope build scaffolds`")
    return stad.filtered(source, read_items(o.kept))


def _sizes(sources: Sequence[Source], o: AnalysisOptions) -> dict[str, float]:
    found: dict[str, float] = {}
    known = {name: None for s in sources for name in (s.name, s.model)}
    for text in o.sizes:
        name, sign, number = text.rpartition("=")
        if name in found:
            raise InputError(f"--size {text}: {name} has a size already, {found[name]:g}; give it once")
        try:
            found[name] = float(number)
        except ValueError:
            sign = ""
        if not sign or not name or not 0 < found[name] < math.inf:
            raise InputError(f"--size {text}: give RUN=BILLIONS, such as --size runs/a=7")
        if name not in known:
            raise InputError(f"--size {text}: no run or model of this name; use one of {', '.join(known)}")
    return found


Sources = Sequence[Source]
ANALYSES: Mapping[str, tuple[int, int | None, Callable[[Sources, AnalysisOptions], Analysis]]] = {
    "formats": (1, None, lambda s, o: gated.compare_formats(s, o.reference)),
    "recovery": (2, 2, lambda s, _: gated.recovery(*s)),
    "joint-stability": (1, None, lambda s, _: gated.joint_stability(s)),
    "stability-expectation": (1, 1, lambda s, _: gated.expectation(s[0])),
    "taxonomy": (1, 1, lambda s, o: taxonomy.taxonomy(s[0], _annotations(o))),
    "tiers": (1, 1, lambda s, o: taxonomy.tiers(s[0], _annotations(o))),
    "adjudicator": (0, None, _adjudicator),
    "sizes": (1, None, lambda s, o: agentcoma.size_groups(s, _sizes(s, o), seed=o.seed)),
    "lengths": (1, None, lambda s, o: lengths(s, o.seed)),
    "bottlenecks": (1, None, lambda s, _: stad.bottlenecks_by_size(s)),
    "skills": (1, None, lambda s, _: stad.skills_in_context(s)),
    "profiles": (2, None, lambda s, o: stad.equal_accuracy(s, o.within / 100, seed=o.seed)),
    "teachers": (2, None, lambda s, _: stad.teachers(s)),
    "filtering": (1, 1, lambda s, o: _filtering(s[0], o)),
}
"""The analyses by name, with the fewest and the most runs; described with the commands (``cli.studies.ABOUT``)."""


def analyze(name: str, runs: Sequence[str | Path], options: AnalysisOptions = AnalysisOptions()) -> Analysis:
    """Run one analysis over run folders or files of graded rows.

    Raises ``InputError`` for an unknown name, and for a run that is given twice.
    """
    if name not in ANALYSES:
        raise InputError(f"study {name}: no such analysis; use one of {', '.join(ANALYSES)}")
    read = [s for path in runs for s in sources(path)]
    least, most, run_on = ANALYSES[name]
    _enough(name, read, least, most)
    distinct(read, least, f"study {name}")
    found = run_on(read, options)
    unknown = [f"{s.name}: {w}" for s in read for w in uncounted(s.rows, None)]
    return replace(found, warnings=(*found.warnings, *unknown))


def sources(path: str | Path) -> list[Source]:
    """Read a run folder, a folder of runs, or a graded.jsonl (one source per model and run in the file)."""
    if not at_home(path).exists():
        raise InputError(f"{path}: no such run; give a run folder, a folder of runs, or a graded.jsonl")
    if Path(path).is_dir():
        return [_from_run(folder) for folder in find_runs([path])]
    split = by_model(read_graded(path))
    return [Source(":".join([str(path), *map(str, group.values())]), rows) for group, rows in split]


def _from_run(folder: Path) -> Source:
    from ..run.reader import read_run

    found = read_run(folder).evaluated()
    texts = {key: r.text for key, r in found.responses.items()}
    prompts = {key: a.prompt for key, a in found.asks.items()}
    stated = {key: r for key, r in found.responses.items() if r.finish_reason != "error"}
    tokens = {key: r.response_tokens for key, r in stated.items() if r.response_tokens or not r.text}
    return Source(str(folder), found.graded, dict(found.cases), texts, prompts, tokens)


def human_assignment(benchmark: str, options: AnalysisOptions) -> Analysis:
    """Make sheets for a human study of a benchmark; with ``sheet`` and ``key``, convert the answers to graded rows."""
    cases = load_benchmark(benchmark, option="benchmark").cases
    if (options.sheet is None) != (options.key is None):
        raise InputError("study human: give --sheet and --key together, or neither to assign questions")
    if options.sheet is not None and options.key is not None:
        by_id = {c.id: c for c in cases}
        return agentcoma.reference_rows(by_id, read_lines(options.key), read_lines(options.sheet))
    return agentcoma.assign(cases, options.per_person, options.answers, options.seed)


def write(found: Analysis, out: str | Path) -> list[Path]:
    """Write ``analysis.json`` and the analysis's files into a folder.

    Raises ``InputError`` if this would replace what a person has filled in, or the graded rows of a run.
    """
    out = Path(out)
    if "graded.jsonl" in found.files:
        check_no_run(out)
    for name, rows in found.files.items():
        _check_filled_in(out / name, rows)
    paths = [write_json(out / f"{found.name}.json", found.to_dict())]
    return paths + [write_lines(out / name, rows) for name, rows in found.files.items()]


_FILLED_IN = {
    "sheet.jsonl": ("answer", "human", "reexamined", "remark"), "reexamine.jsonl": ("reexamined",),
    "annotate.jsonl": ("label",),
}  # fmt: skip
"""The files that people fill in or correct, and the fields in which they do."""


def _check_filled_in(path: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    fields = _FILLED_IN.get(path.name, ()) if path.is_file() else ()
    if not fields:
        return
    now = {_item(row): row for row in rows}
    for old in read_lines(path):
        new = now.get(_item(old), {})
        if (lost := next((f for f in fields if old.get(f) not in (None, "", new.get(f))), None)) is not None:
            raise InputError(
                f"{path}: field {lost!r} of {_item(old)[0]!r} is {old[lost]!r}, which would be lost; give another "
                "--out, or move the file away"
            )


def _item(row: Mapping[str, Any]) -> tuple[Any, ...]:
    return (row["item"],) if "item" in row else (row.get("case"), row.get("repeat", 0))


def lines(found: Analysis) -> list[str]:
    """The analysis as text tables."""
    out: list[str] = []
    if found.metrics:
        out += table([{k: getattr(quoted(m), k) for k in _SHOWN} for m in found.metrics])
    for name, rows in found.tables.items():
        out += ["", f"{name}:", *table(rows)] if rows else []
    written = [f"{name}: {len(rows)} lines (with --out)" for name, rows in found.files.items()]
    out += ["", *written] if written else []
    return out + [f"warning: {w}" for w in found.warnings]


_SHOWN = ("metric", "group", "count", "n", "value", "low", "high", "interval", "n_invalid", "note")
