"""``composcope merge``: joins runs of one model and protocol (shards, machines) into one run, scored without a model.

Shards of one run (``--shard i/n``) are merged only if all n are present, each once and with the same settings. The
cases then follow the benchmark's order, and metrics, case sets and graded rows equal those of the run without shards.
"""

import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ...errors import InputError
from ...evaluation.case import Case, case_to_dict
from ...evaluation.journal import segments
from ...files import text_hash
from ...terminal import how_many
from ..console.printing import Reporter
from ..run.folder import MEASURED, check_place, differs, find_runs, read_json, short, unfinished, write_lines
from ..run.reader import RunData, read_config
from ..run.schema import Evaluated, ShardCases, checked
from ..run.writer import begin_run
from .ask_plan import SHARD_FILE
from .evaluate import own_config, rescore

SAME = ("model", "weights", "protocol", "format", "prompting", "asking")
SAME_SHARDS = (*SAME, "benchmark", "data", "seed")
GRADING = ("judge", "compat")
"""Settings of grading, of which a merged run has one."""
KEPT = ("model", "engine", "numerics", "judge", "benchmark")
"""Facts of the first run's manifest that also hold for the merged run."""


def merge_runs(folders: Sequence[str | Path], out: str | Path, reporter: Reporter) -> Evaluated:
    """Copy the journals of several runs into a new run folder, join their cases, and grade and count again.

    Measurements that shards made for their probes are copied too. Raises ``InputError`` if the runs differ in model,
    weights, protocol, format, prompting or another option of asking (one run has one, and answers to other asks would
    not count), if one case id means different cases, if a run lacks a file, or if shards are missing, repeated,
    unfinished, or made with other settings. ``out`` is then left as it was.
    """
    runs = [RunData(folder) for folder in find_runs(folders)]
    out = Path(out)
    check_place(out)
    if out.exists() and any(out.iterdir()):
        raise InputError(f"--out {out}: is not empty; give a new folder for the merged run")
    parts = _shards(runs)
    identity = _common(runs)
    cases = _join_cases(runs) if parts is None else _in_order(runs, parts)
    for run in runs:
        own_config(run)
        if run.counted is None and (why := unfinished(run.path)) is not None:
            raise InputError(f"{run.path}: {why}")
        if not segments(run.path / "journal"):
            raise InputError(f"{run.path / 'journal'}: has no answers; restore the folder, or make the run again")
    existed = out.exists()
    try:
        mixed = made_otherwise(runs)
        _write(out, runs, identity, cases, mixed)
        for name, values in mixed.items():
            counts = f"; those of {runs[0].path} count" if name in GRADING else ""
            reporter.say(f"{out}: its answers were made with different settings: {name} {', '.join(values)}{counts}")
        reporter.say(f"{out}: {how_many(len(runs), 'run')} merged, {how_many(len(cases), 'case')}")
        found = rescore(out, reporter)
        for run in runs:
            if left := len(run.asks.keys() - found.asks.keys()):  # such as answers drawn with another seed
                reporter.say(
                    f"{out}: {how_many(left, 'answer')} of {run.path} are left out: the merged run asks otherwise"
                )
        return found
    except BaseException:
        # The folder was new or empty. Half a run in it could neither be read nor merged into.
        shutil.rmtree(out, ignore_errors=True)
        if existed:
            out.mkdir(parents=True, exist_ok=True)
        raise


def _write(
    out: Path, runs: Sequence[RunData], identity: Mapping[str, Any], cases: Sequence[Case], mixed: Mapping[str, Any]
) -> None:
    config = {**read_config(runs[0].path), "shard": None}
    names = list(dict.fromkeys(run.benchmark for run in runs))
    if len(names) > 1:
        config["benchmark"] = "+".join(names)
    with begin_run(out, config, identity={**identity, "shard": None}) as run:
        write_lines(run.path / "cases.jsonl", map(case_to_dict, cases))
        run.journal.mkdir(exist_ok=True)
        for n, part in enumerate(runs, 1):
            for segment in segments(part.path / "journal"):
                shutil.copy2(segment, run.journal / f"{n:02d}-{segment.name}")
            for measured in (part.path / "probes" / MEASURED).glob("*.safetensors"):
                (run.path / "probes" / MEASURED).mkdir(parents=True, exist_ok=True)
                shutil.copy2(measured, run.path / "probes" / MEASURED / measured.name)
        facts = {k: v for k, v in runs[0].manifest.facts().items() if k in KEPT}
        if "benchmark" in facts:
            about = {"name": config["benchmark"], "sha256": identity["data"], "n_cases": len(cases)}
            facts["benchmark"] = {**facts["benchmark"], **about}
        facts |= {"mixed": dict(mixed)} if mixed else {}
        run.record(merged=[part.name for part in runs], n_cases=len(cases), **facts)


def made_otherwise(runs: Sequence[RunData]) -> dict[str, list[str]]:
    """Settings that differ between the runs, by name: code, libraries, numerics, engine, judge, way of counting.

    These do not prevent merging, since answers are found by their full prompts and all are graded again; but users have
    to know.
    """
    found: dict[str, dict[str, None]] = {}
    for run in runs:
        manifest, config = run.manifest, run.config
        code, engine, judge = manifest.composcope, manifest.engine, manifest.judge
        made = {
            "composcope": " ".join(short(code[k]) for k in ("version", "source") if code.get(k)),
            **{k: v for k, v in manifest.versions.items() if k in ("torch", "transformers")},
            **{k: manifest.numerics.get(k) for k in ("dtype", "device", "attention")},
            "engine": engine.provenance.get("engine") if engine else None,
            "judge": " ".join(map(short, judge.identity.values())) if judge else None,
            "compat": config.asking.compat if config else None,
        }
        for name, value in made.items():
            found.setdefault(name, {})[short(value)] = None
    return {name: list(values) for name, values in found.items() if len(values) > 1}


def _common(runs: Sequence[RunData]) -> dict[str, Any]:
    first, *others = ((run.path, run.manifest.identity) for run in runs)
    for folder, identity in others:
        for key in SAME:
            if differs(key, identity, first[1]):
                raise InputError(
                    f"{folder}: {key} is {short(identity.get(key))} and {short(first[1].get(key))} in {first[0]}; "
                    "only runs of one model that were asked in the same way can be merged"
                )
    benchmarks = list(dict.fromkeys(str(run.manifest.identity.get("benchmark")) for run in runs))
    data = list(dict.fromkeys(str(run.manifest.identity.get("data")) for run in runs))
    joined = {"benchmark": "+".join(benchmarks), "data": data[0] if len(data) == 1 else text_hash(sorted(data))}
    return {**first[1], **joined}


def _own_cases(run: RunData) -> list[Case]:
    if not run.cases:
        read_json(run.path / "cases.jsonl")  # raises the error for a missing file
    return list(run.cases.values())


def _join_cases(runs: Sequence[RunData]) -> list[Case]:
    cases: dict[str, Case] = {}
    for run in runs:
        for case in _own_cases(run):
            if cases.setdefault(case.id, case) != case:
                raise InputError(f"{run.path}: case {case.id!r} differs from the case with the same id in another run")
    return list(cases.values())


def _in_order(runs: Sequence[RunData], parts: Sequence[ShardCases]) -> list[Case]:
    """The cases of all shards in the benchmark's order."""
    cases: dict[int, Case] = {}
    for run, part in zip(runs, parts, strict=True):
        cases.update(zip(part.positions, run.cases.values(), strict=True))
    return [cases[i] for i in sorted(cases)]


def _shards(runs: Sequence[RunData]) -> list[ShardCases] | None:
    """Which cases each shard has; None if the runs are not shards."""
    files = [run.path / SHARD_FILE for run in runs]
    there = [f.is_file() for f in files]
    if not any(there):
        return None
    if not all(there):
        whole, other = runs[there.index(False)].path, runs[there.index(True)].path
        raise InputError(f"{whole}: is not a shard, but {other} is; merge either shards or whole runs")
    parts = [checked(ShardCases, read_json(f), str(f)) for f in files]
    _same_settings(runs, parts)
    _all_once(runs, parts)
    for run, part in zip(runs, parts, strict=True):
        manifest = run.manifest
        if manifest.stopped or manifest.status != "complete" or not (run.path / "graded.jsonl").is_file():
            why = manifest.stopped or manifest.status
            raise InputError(f"{run.path}: shard {part} is not finished ({why}); run its command again first")
        if len(_own_cases(run)) != len(part.positions):
            raise InputError(f"{run.path}: shard {part} should hold {len(part.positions)} cases; run it again")
    return parts


def _same_settings(runs: Sequence[RunData], parts: Sequence[ShardCases]) -> None:
    def settings(run: RunData, part: ShardCases) -> dict[str, Any]:
        split = {"number of shards": part.of, "--limit": part.limit, "number of cases": part.n_cases}
        own = {k: run.manifest.identity.get(k) for k in SAME_SHARDS}
        return {**own, **split, "dtype": run.manifest.numerics.get("dtype")}

    first = settings(runs[0], parts[0])
    for run, part in zip(runs[1:], parts[1:], strict=True):
        found = settings(run, part)
        for key, value in found.items():
            if differs(key, found, first):
                raise InputError(
                    f"{run.path}: shard {part}: {key} is {short(value)}, and {short(first[key])} in "
                    f"{runs[0].path}; shards of one run are made with the same settings"
                )


def _all_once(runs: Sequence[RunData], parts: Sequence[ShardCases]) -> None:
    seen: dict[int, Path] = {}
    for run, part in zip(runs, parts, strict=True):
        if part.index in seen:
            raise InputError(f"{run.path}: shard {part} is given twice, also as {seen[part.index]}; give each once")
        seen[part.index] = run.path
    missing = [f"{i}/{parts[0].of}" for i in range(1, parts[0].of + 1) if i not in seen]
    if missing:
        raise InputError(f"{runs[0].path.parent}: shards are missing: {', '.join(missing)}; run them first")
