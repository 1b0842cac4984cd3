"""``composcope merge``: runs of one model and protocol (shards, machines) become one run, scored without a model."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ..errors import InputError
from .evaluate import Evaluated, read_cases_lines, rescore
from .progress import Reporter
from .provenance import text_hash
from .run import find_runs, open_run, read_config, read_json, write_lines

SAME = ("model", "weights", "protocol", "format", "prompting")


def merge_runs(runs: Sequence[str | Path], out: str | Path, reporter: Reporter) -> Evaluated:
    """Copy the journals of several runs into a new run folder, join their cases, and grade and count anew.

    Raises ``InputError`` when the runs differ in model, weights, protocol, format or prompting, or when one case id
    stands for different cases.
    """
    folders = find_runs(runs)
    out = Path(out)
    if out.exists() and any(out.iterdir()):
        raise InputError(f"--out {out}: is not empty; give a new folder for the merged run")
    identity, first = _common(folders), read_json(folders[0] / "manifest.json")
    cases = _join_cases(folders)
    with open_run(out, read_config(folders[0]), identity=identity) as run:
        write_lines(run.path / "cases.jsonl", cases)
        (run.path / "journal").mkdir(exist_ok=True)
        for n, folder in enumerate(folders, 1):
            for segment in sorted((folder / "journal").glob("*.jsonl")):
                shutil.copy2(segment, run.path / "journal" / f"{n:02d}-{segment.name}")
        kept = {k: first[k] for k in ("model", "engine", "numerics") if k in first}
        run.record(merged=[f.name for f in folders], n_cases=len(cases), **kept)
    reporter.say(f"{out}: {len(folders)} runs merged, {len(cases)} cases")
    return rescore(out, reporter)


def _common(folders: Sequence[Path]) -> dict[str, Any]:
    identities = [read_json(f / "manifest.json").get("identity", {}) for f in folders]
    for folder, identity in zip(folders[1:], identities[1:], strict=True):
        for key in SAME:
            if identity.get(key) != identities[0].get(key):
                raise InputError(
                    f"{folder}: {key} is {identity.get(key)!r} and {identities[0].get(key)!r} in {folders[0]}; "
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
