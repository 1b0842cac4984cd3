"""``composcope merge``: runs of one model and protocol (shards, machines) become one run, scored without a model.

Shards of one run (``--shard i/n``) are merged only when all n are there, each once and made with the same settings;
the cases then stand in the benchmark's order, and metrics, case sets and graded rows are those of the run unsharded.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ...errors import InputError
from ..distributed import FOLDER, shards
from ..evaluating.evaluate import Evaluated, own_config, rescore
from ..progress import Reporter
from .folder import find_runs, read_json, short, write_lines
from .provenance import text_hash
from .reader import read_cases_lines
from .writer import open_run

SAME = ("model", "weights", "protocol", "format", "prompting")
SAME_SHARDS = (*SAME, "benchmark", "data", "seed", "asking")


def merge_runs(runs: Sequence[str | Path], out: str | Path, reporter: Reporter) -> Evaluated:
    """Copy the journals of several runs into a new run folder, join their cases, and grade and count anew.

    What shards had measured for their probes goes along. Raises ``InputError`` when the runs differ in model, weights,
    protocol, format or prompting, when one case id stands for different cases, for a run that lacks a file, and for
    shards that are missing, there twice, unfinished, or made with other settings. ``out`` is then as it was.
    """
    folders = find_runs(runs)
    out = Path(out)
    if out.exists() and any(out.iterdir()):
        raise InputError(f"--out {out}: is not empty; give a new folder for the merged run")
    places = _places(folders)
    identity, first = _common(folders), read_json(folders[0] / "manifest.json")
    cases = _join_cases(folders) if places is None else _in_order(folders, places)
    configs = [_config(folder) for folder in folders]
    config = {**configs[0], "shard": None}
    existed = out.exists()
    try:
        mixed = made_otherwise(folders)
        _write(out, folders, config, identity, {**first, **({"mixed": mixed} if mixed else {})}, cases)
        for name, values in mixed.items():
            reporter.say(f"{out}: its answers were not all made alike: {name} {', '.join(values)}")
        reporter.say(f"{out}: {len(folders)} runs merged, {len(cases)} cases")
        return rescore(out, reporter)
    except BaseException:
        # The folder was new or empty: half a run there could neither be read nor merged into.
        shutil.rmtree(out, ignore_errors=True)
        if existed:
            out.mkdir(parents=True, exist_ok=True)
        raise


def _config(folder: Path) -> dict[str, Any]:
    """A run's options, where it has answers."""
    config = own_config(folder)
    if not any((folder / "journal").glob("*.jsonl")):
        raise InputError(f"{folder / 'journal'}: holds no answers; restore the folder, or make the run again")
    return config


def _write(
    out: Path,
    folders: Sequence[Path],
    config: Mapping[str, Any],
    identity: Mapping[str, Any],
    first: Mapping[str, Any],
    cases: Sequence[Mapping[str, Any]],
) -> None:
    with open_run(out, config, identity={**identity, "shard": None}) as run:
        write_lines(run.path / "cases.jsonl", cases)
        (run.path / "journal").mkdir(exist_ok=True)
        for n, folder in enumerate(folders, 1):
            for segment in sorted((folder / "journal").glob("*.jsonl")):
                shutil.copy2(segment, run.path / "journal" / f"{n:02d}-{segment.name}")
            for measured in (folder / "probes" / FOLDER).glob("*.safetensors"):
                (run.path / "probes" / FOLDER).mkdir(parents=True, exist_ok=True)
                shutil.copy2(measured, run.path / "probes" / FOLDER / measured.name)
        kept = {k: first[k] for k in ("model", "engine", "numerics", "judge", "benchmark", "mixed") if k in first}
        if "benchmark" in kept:
            kept["benchmark"] = {**kept["benchmark"], "n_cases": len(cases)}
        run.record(merged=[f.name for f in folders], n_cases=len(cases), **kept)


def made_otherwise(folders: Sequence[Path]) -> dict[str, list[str]]:
    """By name what the runs were made with, where that is not the same: code, libraries, numerics, engine.

    No reason to refuse, since answers are found by their full prompts and all are graded anew; but it has to be known.
    """
    found: dict[str, dict[str, None]] = {}
    for folder in folders:
        manifest = read_json(folder / "manifest.json")
        code, numerics = manifest.get("composcope") or {}, manifest.get("numerics") or {}
        made = {
            "composcope": " ".join(short(code[k]) for k in ("version", "source") if code.get(k)),
            **{k: v for k, v in (manifest.get("versions") or {}).items() if k in ("torch", "transformers")},
            **{k: numerics.get(k) for k in ("dtype", "device", "attention")},
            "engine": (manifest.get("engine") or {}).get("provenance", {}).get("engine"),
        }
        for name, value in made.items():
            found.setdefault(name, {})[short(value)] = None
    return {name: list(values) for name, values in found.items() if len(values) > 1}


def _common(folders: Sequence[Path]) -> dict[str, Any]:
    identities = [read_json(f / "manifest.json").get("identity", {}) for f in folders]
    for folder, identity in zip(folders[1:], identities[1:], strict=True):
        for key in SAME:
            if identity.get(key) != identities[0].get(key):
                mine, first = short(identity.get(key)), short(identities[0].get(key))
                raise InputError(
                    f"{folder}: {key} is {mine} and {first} in {folders[0]}; "
                    "only runs of one model and protocol can be merged"
                )
    benchmarks = list(dict.fromkeys(str(i.get("benchmark")) for i in identities))
    data = list(dict.fromkeys(str(i.get("data")) for i in identities))
    joined = {"benchmark": "+".join(benchmarks), "data": data[0] if len(data) == 1 else text_hash(sorted(data))}
    return {**identities[0], **joined}


def _join_cases(folders: Sequence[Path]) -> list[Mapping[str, Any]]:
    cases: dict[str, Mapping[str, Any]] = {}
    for folder in folders:
        for case in read_cases_lines(folder):
            if cases.setdefault(case["id"], case) != case:
                raise InputError(f"{folder}: case {case['id']!r} differs from the one of the same id in another run")
    return list(cases.values())


def _places(folders: Sequence[Path]) -> list[list[int]] | None:
    """Of every shard's cases the positions in the benchmark; None where the runs are no shards."""
    files = [f / shards.FILE for f in folders]
    there = [f.is_file() for f in files]
    if not any(there):
        return None
    if not all(there):
        whole = folders[there.index(False)]
        raise InputError(
            f"{whole}: is no shard, and {folders[there.index(True)]} is; merge either shards or whole runs"
        )
    said = [read_json(f) for f in files]
    _same_settings(folders, said)
    _all_once(folders, said)
    for folder, about in zip(folders, said, strict=True):
        manifest = read_json(folder / "manifest.json")
        if manifest.get("stopped") or manifest.get("status") != "complete" or not (folder / "graded.jsonl").is_file():
            why = manifest.get("stopped") or manifest.get("status")
            raise InputError(f"{folder}: shard {_name(about)} is not finished ({why}); run its command again first")
        if len(read_cases_lines(folder)) != len(about["positions"]):
            raise InputError(
                f"{folder}: shard {_name(about)} should hold {len(about['positions'])} cases; run it again"
            )
    return [about["positions"] for about in said]


def _name(about: Mapping[str, Any]) -> str:
    return f"{about['index']}/{about['of']}"


def _same_settings(folders: Sequence[Path], said: Sequence[Mapping[str, Any]]) -> None:
    def settings(folder: Path, about: Mapping[str, Any]) -> dict[str, Any]:
        manifest = read_json(folder / "manifest.json")
        identity = manifest.get("identity", {})
        split = {"number of shards": about["of"], "--limit": about["limit"], "number of cases": about["n_cases"]}
        return {
            **{k: identity.get(k) for k in SAME_SHARDS},
            **split,
            "dtype": manifest.get("numerics", {}).get("dtype"),
        }

    first = settings(folders[0], said[0])
    for folder, about in zip(folders[1:], said[1:], strict=True):
        for key, value in settings(folder, about).items():
            if value != first[key]:
                raise InputError(
                    f"{folder}: shard {_name(about)}: {key} is {short(value)}, and {short(first[key])} in "
                    f"{folders[0]}; shards of one run are made with the same settings"
                )


def _all_once(folders: Sequence[Path], said: Sequence[Mapping[str, Any]]) -> None:
    seen: dict[int, Path] = {}
    for folder, about in zip(folders, said, strict=True):
        if about["index"] in seen:
            raise InputError(
                f"{folder}: shard {_name(about)} is there twice, also in {seen[about['index']]}; give each once"
            )
        seen[about["index"]] = folder
    missing = [f"{i}/{said[0]['of']}" for i in range(1, said[0]["of"] + 1) if i not in seen]
    if missing:
        raise InputError(f"{folders[0].parent}: shards are missing: {', '.join(missing)}; run them first")


def _in_order(folders: Sequence[Path], places: Sequence[Sequence[int]]) -> list[Mapping[str, Any]]:
    """The cases of all shards in the benchmark's order."""
    cases: dict[int, Mapping[str, Any]] = {}
    for folder, positions in zip(folders, places, strict=True):
        cases.update(zip(positions, read_cases_lines(folder), strict=True))
    return [cases[i] for i in sorted(cases)]
