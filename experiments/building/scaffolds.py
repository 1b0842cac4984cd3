"""``composcope build scaffolds`` and ``build skills``: STaD's generation, with models, people or both in its roles."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from ...errors import InputError
from ...evaluation.benchmarks.stad import StadItem, case_from_item, read_items, record_from_item
from ...evaluation.case import Case
from ...evaluation.engines.base import Engine
from ...evaluation.journal import Journal
from ...files import at_home
from ...terminal import Bar, no_bar
from ..evaluating.ask_plan import load_benchmark
from .benchmarks import Made, Watched, build


def scaffolds(
    out: str | Path,
    benchmark: str,
    *,
    teachers: Sequence[Engine] = (),
    judge: Engine | None = None,
    solver: Engine | None = None,
    human: bool = False,
    sharing: str = "fallback",
    limit: int | None = None,
    settings: Mapping[str, Any] | None = None,
    progress: Bar = no_bar,
) -> dict[str, Any]:
    """Scaffolded cases from a benchmark (``reader:file``, a case file, or ``stad:FILE`` with some stages done).

    With ``human`` the cases' own parts are the decomposition. Then no teacher is asked, or, if one is given, it only
    verifies what people wrote. ``solver`` measures coverage. Records in STaD's format go to ``records.jsonl``. Raises
    ``InputError`` if neither a teacher nor human decompositions are given.
    """
    from ...evaluation.builders import review as quality
    from ...evaluation.builders import scaffolds as builder

    if not teachers and not human:
        raise InputError("build scaffolds: give --teacher, or --human for a benchmark whose cases have human steps")
    chosen = builder.Settings(**(settings or {}))
    items = _items(benchmark, limit) if not human else None

    def make(journal: Path) -> Made:
        dropped: list[dict[str, Any]] = []
        report: dict[str, Any] = {}
        with Journal(journal) as book:
            found = items
            if found is None:
                found, dropped = builder.from_cases(_cases(benchmark, limit))
            if teachers:
                watched: list[Any] = [Watched(t, "asking the teacher", progress) for t in teachers]
                roles = builder.Roles(watched, judge, sharing)  # pyright: ignore[reportArgumentType] (checked there)
                made = builder.generate(found, roles, chosen, book)
                found, dropped, report = made.items, [*dropped, *made.dropped], made.report
            repeated = quality.redundancy(found)
            report = {**report, "redundancy": asdict(repeated) | {"value": repeated.value}}
            if solver is not None and found:
                share, _ = quality.coverage(found, solver, judge, book, max_tokens=chosen.max_tokens)
                report["coverage"] = asdict(share) | {"value": share.value}
        rejected, review = _split(dropped)
        records = [record_from_item(i) for i in found]
        return Made([case_from_item(i) for i in found], rejected, review, report, {"records.jsonl": records})

    options = {"benchmark": _name(benchmark), "human": human, "sharing": sharing, "limit": limit, **asdict(chosen)}
    options |= {"teachers": [dict(t.identity) for t in teachers]}
    options |= {name: None if e is None else dict(e.identity) for name, e in (("judge", judge), ("solver", solver))}
    return build(out, "scaffolds", options, _files(benchmark), make)


def _items(benchmark: str, limit: int | None) -> list[StadItem]:
    from ...evaluation.builders.scaffolds import items_from_cases

    if benchmark.startswith("stad:"):
        return read_items(benchmark.removeprefix("stad:"))[:limit]
    return items_from_cases(_cases(benchmark, limit))


def _cases(benchmark: str, limit: int | None) -> list[Case]:
    return list(load_benchmark(benchmark, limit=limit, option="benchmark").cases[:limit])


def _files(benchmark: str) -> list[Path]:
    found = (at_home(name) for name in (benchmark, benchmark.partition(":")[2]))
    return [path for path in found if path.is_file()][:1]


def _name(benchmark: str) -> str:
    """The benchmark's name without its folder, so that moving the file does not make it another build."""
    reader, colon, rest = benchmark.partition(":")
    return f"{reader}:{Path(rest).name}" if colon and not Path(benchmark).is_file() else Path(benchmark).name


def _split(dropped: Sequence[dict[str, Any]]) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """What was rejected, and what nobody could judge or read; the latter is for a person to look at."""
    unclear = [d for d in dropped if str(d["reason"]).startswith(("unjudged", "unread"))]
    return [d for d in dropped if d not in unclear], [{**d, "decision": "open"} for d in unclear]


def skills(
    out: str | Path,
    records: str | Path,
    teacher: Engine,
    *,
    clusters: int | None = None,
    n_skills: int | None = None,
    embedding: str | Path | None = None,
    seed: int = 0,
    progress: Bar = no_bar,
) -> dict[str, Any]:
    """Map the steps of STaD records to skills induced by the teacher; returns records and cases with their skills.

    Without ``clusters`` and ``n_skills`` a grid of M x N is searched and written to ``granularity.jsonl``. The map with
    the most even use of skills, then the fewest ``other``, is applied.
    """
    from ...evaluation import skills as mapping

    if (clusters is None) != (n_skills is None):
        raise InputError("build skills: give both --clusters and --skills, or neither to search the grid")

    def make(journal: Path) -> Made:
        items = read_items(records)
        watched: Any = Watched(teacher, "asking the teacher", progress)
        with Journal(journal) as book:
            if clusters is not None and n_skills is not None:
                chosen = mapping.map_skills(
                    items, watched, clusters, n_skills, model=embedding, journal=book, seed=seed
                )
                maps = [(mapping.granularity(chosen, embedding), chosen)]
            else:
                maps = mapping.search(items, watched, model=embedding, journal=book, seed=seed)
                chosen = max(maps, key=lambda pair: (pair[0].entropy, -(pair[0].other_rate or 0)))[1]
        done = mapping.with_skills(items, chosen)
        unread = [
            {"id": i.id, "step": n, "decision": "open"} for i in done for n, s in enumerate(i.steps) if not s.skill
        ]
        files = {
            "records.jsonl": [record_from_item(i) for i in done],
            "skills.jsonl": mapping.as_rows(chosen),
            "granularity.jsonl": [
                {**asdict(g), "usage": {str(row["name"]): int(row["steps"]) for row in mapping.as_rows(one)}}
                for g, one in maps
            ],
        }
        report = {"method": chosen.method, "clusters": len(chosen.clusters.representatives), "asked": chosen.n_asked}
        return Made([case_from_item(i) for i in done], [], unread, report, files)

    options: dict[str, Any] = {"clusters": clusters, "skills": n_skills, "seed": seed}
    options |= {"teacher": dict(teacher.identity), "embedding": None if embedding is None else Path(embedding).name}
    return build(out, "skills", options, [records], make)
