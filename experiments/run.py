"""The run folder: everything one study did, enough to repeat, resume, re-score, re-probe and re-plot it.

One run is one model x one benchmark x one protocol. Nothing in the folder holds an absolute path that a reader needs,
so a run can be moved to another machine and scored, plotted and reported there. Derived files are written to a
temporary name and renamed, so a file is either the old one or the new one. This module knows nothing about models.
"""

from __future__ import annotations

import fcntl
import json
import re
import shlex
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..errors import InputError, JournalError
from ..evaluation import reading
from . import memory, provenance, shapes
from .files import write_text

SCHEMA = 1


def write_json(path: str | Path, value: Mapping[str, Any]) -> Path:
    """Write a JSON object with its schema version, atomically."""
    return write_text(path, json.dumps({"schema": SCHEMA, **value}, indent=1, ensure_ascii=False, default=str) + "\n")


def write_lines(path: str | Path, rows: Iterable[Mapping[str, Any]]) -> Path:
    """Write JSON lines, each with the schema version, atomically."""
    lines = (json.dumps({"schema": SCHEMA, **row}, ensure_ascii=False, default=str) for row in rows)
    return write_text(path, "".join(line + "\n" for line in lines))


def read_json(path: str | Path) -> dict[str, Any]:
    """Read a JSON object.

    Raises ``InputError`` for a missing or broken file, for a schema version that this program does not know, and for a
    file of a run (``manifest.json``, ``metrics.json``) without the fields that such a file has.
    """
    found = _checked_schema(reading.parse(_text(path), str(path), "restore the file or delete it"), str(path))
    shapes.check_document(path, found)
    return found


def read_lines(path: str | Path) -> list[dict[str, Any]]:
    """Read JSON lines; errors as for ``read_json``, with the line number."""
    found = []
    for where, row in reading.lines(path, _missing(path)):
        found.append(_checked_schema(row, where))
        shapes.check_line(path, where, row)
    return found


def read_filled(path: str | Path) -> list[dict[str, Any]]:
    """``read_lines`` of a file that never is empty. Raises ``InputError`` where it is."""
    found = read_lines(path)
    if not found:
        raise InputError(f"{path}: no lines; {shapes.AGAIN}")
    return found


def read_cases_lines(folder: Path) -> list[dict[str, Any]]:
    """The cases that a run asked about, as JSON objects without the schema version.

    Raises ``InputError`` for a file without a case, and for one whose cases are not as many as the run asked about:
    a file that lost lines would be counted as a smaller benchmark.
    """
    path, manifest = folder / "cases.jsonl", folder / "manifest.json"
    found = [{k: v for k, v in raw.items() if k != "schema"} for raw in read_filled(path)]
    twice = next((case for case, n in Counter(raw["id"] for raw in found).items() if n > 1), None)
    if twice is not None:
        raise InputError(f"{path}: field 'id' is {twice!r} in several lines; {shapes.AGAIN}")
    asked = read_json(manifest).get("n_cases") if manifest.is_file() else None
    if asked not in (None, len(found)):
        raise InputError(
            f"{path}: {len(found)} cases, and field 'n_cases' of {manifest.name} is {asked}; {shapes.AGAIN}"
        )
    return found


def read_graded_lines(folder: Path) -> list[dict[str, Any]]:
    """The graded rows of a run. Raises ``InputError`` where a complete run has none of one of its cases."""
    path, manifest = folder / "graded.jsonl", folder / "manifest.json"
    found = read_filled(path)
    said = read_json(manifest) if manifest.is_file() else {}
    if said.get("status") == "complete" and not said.get("stopped") and (folder / "cases.jsonl").is_file():
        graded = {row["case"] for row in found}
        missing = [case["id"] for case in read_cases_lines(folder) if case["id"] not in graded]
        if missing:
            raise InputError(
                f"{path}: no row of {len(missing)} cases (first: {missing[0]!r}), and the run is complete; "
                f"{shapes.COUNT_AGAIN}"
            )
    return found


def _text(path: str | Path) -> str:
    return reading.text(path, _missing(path))


def _missing(path: str | Path) -> str:
    return f"is {Path(path).parent} a run folder?"


def _checked_schema(value: Any, where: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise InputError(f"{where}: expected a JSON object, got {type(value).__name__}")
    schema = value.get("schema", SCHEMA)
    if schema != SCHEMA:
        raise InputError(f"{where}: schema is {schema!r}, this program reads {SCHEMA}; use the version that wrote it")
    return value


@dataclass
class Run:
    """An open run folder. ``manifest`` is kept in memory and written at each step."""

    path: Path
    config: dict[str, Any]
    manifest: dict[str, Any] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return self.path.name

    @property
    def journal(self) -> Path:
        return self.path / "journal"

    def record(self, **facts: Any) -> None:
        """Add facts to the manifest and write it."""
        self.manifest.update(facts)
        write_json(self.path / "manifest.json", self.manifest)

    @contextmanager
    def timed(self, step: str) -> Iterator[None]:
        """Add a step's wall-clock seconds and its peak memory (MB) to the manifest, also when it fails."""
        memory.reset()
        start = time.monotonic()
        try:
            yield
        finally:
            peak = self.manifest.setdefault("peak_memory", {})
            peak[step] = memory.larger(peak.get(step), memory.peaks())
            timings = self.manifest.setdefault("timings", {})
            timings[step] = round(timings.get(step, 0.0) + time.monotonic() - start, 3)


@contextmanager
def locked(folder: str | Path) -> Iterator[Path]:
    """Hold a folder for this process. The lock dies with the process, so a killed run never blocks the next one.

    Raises ``JournalError`` when another process holds it.
    """
    folder = Path(folder)
    if folder.exists() and not folder.is_dir():
        raise InputError(f"--out {folder}: is a file; give a folder")
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / ".lock").open("w") as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as e:
            raise JournalError(
                f"{folder}: another composcope process is writing this run; wait for it or give another --out"
            ) from e
        yield folder


@contextmanager
def open_run(folder: str | Path, config: Mapping[str, Any], *, identity: Mapping[str, Any]) -> Iterator[Run]:
    """Create a run folder or continue the one that is there, under its lock.

    ``identity`` is what makes it this run and no other (model, benchmark, protocol, ...): a folder that holds another
    run is refused with the fields that differ. ``config`` holds every option and is saved as ``config.yaml``.
    """
    import yaml

    with locked(folder) as path:
        manifest = read_json(path / "manifest.json") if (path / "manifest.json").is_file() else {}
        _same_run(path, manifest.get("identity", {}), identity)
        write_text(path / "config.yaml", yaml.safe_dump({"schema": SCHEMA, **config}, sort_keys=False))
        run = Run(path, dict(config), manifest)
        _begin(run, identity)
        start = time.monotonic()
        try:
            yield run
        except BaseException as e:
            _end(run, "interrupted" if isinstance(e, KeyboardInterrupt) else "failed", start, e)
            raise
        _end(run, "complete", start)


def _same_run(path: Path, before: Mapping[str, Any], now: Mapping[str, Any]) -> None:
    # How it asks is only there where it differs from the defaults.
    before, now = ({**about, "asking": about.get("asking", {})} if before else {} for about in (before, now))
    differ = [said for k in now if k in before for said in differing(k, before[k], now[k])]
    if differ:
        raise JournalError(f"{path}: holds another run ({'; '.join(differ)}); give another --out or the same options")


def differing(name: str, before: Any, now: Any) -> list[str]:
    """``NAME was BEFORE, is NOW``, short, for a setting that differs; of an object only its fields that do.

    Of long values the beginning is shown, of hashes twelve digits: enough to tell two apart.
    """
    if _plain(before) == _plain(now):
        return []
    if isinstance(before, Mapping) and isinstance(now, Mapping):
        names = dict.fromkeys([*before, *now])
        return [said for k in names for said in differing(f"{name}.{k}", before.get(k), now.get(k))]
    shown = [short(before), short(now)]
    if shown[0] == shown[1]:  # they differ further on
        return [f"{name} is another"]
    return [f"{name} was {shown[0]}, is {shown[1]}"]


def _plain(value: Any) -> Any:
    """As JSON has it: tuples are lists there."""
    if isinstance(value, Mapping):
        return {k: _plain(v) for k, v in value.items()}
    return [_plain(v) for v in value] if isinstance(value, list | tuple) else value


def short(value: Any, most: int = 60) -> str:
    """A setting's value for a message."""
    if isinstance(value, str) and re.fullmatch(r"(?:[a-z0-9]+:)?[0-9a-f]{32,}", value):
        kind, _, digits = value.rpartition(":")
        return f"{kind}{':' if kind else ''}{digits[:12]}"
    said = "unset" if value is None else str(value)
    return said if len(said) <= most else f"{said[:most]}..."


def _begin(run: Run, identity: Mapping[str, Any]) -> None:
    calls = [*run.manifest.get("invocations", []), {"started": _now(), "command": command_line()}]
    run.manifest.setdefault("created", _now())
    loaded = provenance.plugin_files()
    run.record(
        run=run.name,
        status="running",
        identity={**run.manifest.get("identity", {}), **identity},
        composcope=provenance.code(),
        plugins=[p for p in run.manifest.get("plugins", []) if p not in loaded] + loaded,
        versions=provenance.libraries(),
        machine=provenance.machine(),
        command=command_line(),
        invocations=calls,
        seed=run.config.get("seed"),
    )


def _end(run: Run, status: str, start: float, error: BaseException | None = None) -> None:
    run.manifest["invocations"][-1].update(ended=_now(), seconds=round(time.monotonic() - start, 3), status=status)
    if error is not None:
        run.manifest["invocations"][-1]["error"] = f"{type(error).__name__}: {error}"
    try:
        run.record(status=status)
    except OSError:
        # On a full disk the error that brought us here is the one to report; the old manifest still stands.
        if error is None:
            raise


def command_line() -> str:
    """The command as the user typed it, ready to be pasted again."""
    name = Path(sys.argv[0]).name
    return shlex.join(["composcope" if name in ("__main__.py", "cli.py") else name, *sys.argv[1:]])


def _now() -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S%z")


def is_run(folder: str | Path) -> bool:
    return (Path(folder) / "manifest.json").is_file()


def find_runs(folders: Iterable[str | Path]) -> list[Path]:
    """The run folders among or directly under ``folders`` (a study holds several), sorted by name."""
    found: list[Path] = []
    for folder in map(Path, folders):
        if not folder.is_dir():
            raise InputError(f"{folder}: no such run folder; see `composcope ls`")
        inside = [folder] if is_run(folder) else sorted(p for p in folder.iterdir() if is_run(p))
        if not inside:
            raise InputError(f"{folder}: holds no run (no manifest.json); see `composcope ls`")
        found += [p for p in inside if p not in found]
    return found


def read_config(folder: str | Path) -> dict[str, Any]:
    """The options that a run was made with.

    Raises ``InputError`` for a file that is missing, broken, or without model, benchmark and protocol.
    """
    import yaml

    path = Path(folder) / "config.yaml"
    try:
        found = yaml.safe_load(_text(path))
    except (yaml.YAMLError, ValueError, RecursionError) as e:
        why = " ".join(str(e).split())[:200]
        raise InputError(f"{path}: not valid YAML ({why}); restore the file, or make the run again") from e
    if not isinstance(found, dict):
        raise InputError(f"{path}: holds no options; restore the file, or make the run again")
    shapes.check_document(path, found)
    return found
