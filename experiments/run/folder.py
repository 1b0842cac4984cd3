"""Reads and writes the files of run folders.

A file is written completely or not at all, one process at a time may write into a folder, and every reading error
names file and line. No reader needs an absolute path from a run folder. So a run can be moved to another machine and
scored, plotted and reported there.
"""

import fcntl
import os
import re
import shlex
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ...errors import InputError, JournalError
from ...evaluation import text_files
from ...files import as_path, short_name, strict_json
from ...files import write_text as write_text  # re-exported: this module offers all ways to write
from ...terminal import how_many
from .schema import ProbedCases, checked

SCHEMA = 1
MEASURED = ".measured"
"""Name of the folder with a run's measurements, inside its ``probes/``."""
INTERVENTIONS = {"steering": "steering", "patching": "patching-intervention"}
"""Where ``probes/`` holds what ``composcope intervene`` measured, by recipe: ``patching`` itself is the probe's."""
_NAMED = 8
"""Runs that an error message names."""


def write_json(path: str | Path, value: Mapping[str, Any]) -> Path:
    """Write a JSON object with its schema version, atomically. NaN and infinities, which JSON lacks, are null."""
    return write_text(path, strict_json({"schema": SCHEMA, **value}, indent=1) + "\n")


def write_lines(path: str | Path, rows: Iterable[Mapping[str, Any]]) -> Path:
    """Write JSON lines, each with the schema version, atomically; numbers as ``write_json``."""
    return write_text(path, "".join(strict_json({"schema": SCHEMA, **row}) + "\n" for row in rows))


def read_json(path: str | Path) -> dict[str, Any]:
    """Read a JSON object. Raises ``InputError`` for a missing or broken file, or another schema version."""
    text = text_files.text(path, missing(path))
    return _of_schema(text_files.parse(text, str(path), "restore the file or delete it"), str(path))


def placed_lines(path: str | Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """(file:line, object) for every JSON line; errors as for ``read_json``."""
    for where, row in text_files.lines(path, missing(path)):
        yield where, _of_schema(row, where)


def read_lines(path: str | Path) -> list[dict[str, Any]]:
    """The objects of a file of JSON lines."""
    return [row for _, row in placed_lines(path)]


def missing(path: str | Path) -> str:
    """The end of the error message for a file that does not exist: an unfinished run is to be continued.

    Raises ``InputError`` if its folder does not exist either.
    """
    folder = Path(path).parent
    if not folder.exists():
        raise InputError(f"{folder}: no such folder; give a run folder (`composcope ls` lists those in runs)")
    held = [] if Path(path).exists() or is_run(folder) else runs_in(folder)
    if held:
        return f"it holds {how_many(len(held), 'run')}; give one of them, such as {held[0]}"
    return (None if Path(path).exists() else unfinished(folder)) or f"is {folder} a run folder?"


def probed_cases(run: Path, name: str = "") -> dict[str, Any]:
    """The cases that a probe ran on: ``note``, ``contrast`` and ``groups``; without a name, those chosen last.

    Probes of one run may have run on different cases (``--probe-cases``). Where a probe's folder does not say which, it
    ran on those chosen last. Empty for a run that was not probed.
    """
    for file in (run / "probes" / name / "inputs.json", run / "probes" / "examples.json"):
        if file.is_file() and "groups" in (about := read_json(file)):
            return checked(ProbedCases, about, str(file), "run the probe again").facts()
    return {}


def unfinished(folder: str | Path) -> str | None:
    """A sentence that says that a run is not finished, and how to continue it; None for a finished run and for no run.

    A run that was stopped by a limit is not finished, although what it holds is whole.

    Every command that needs a finished run says it in these words.
    """
    made = read_json(Path(folder) / "manifest.json") if is_run(folder) else {"status": "complete"}
    stopped = made.get("stopped")
    if made.get("status") == "complete" and not stopped:
        return None
    why = f"stopped by {stopped}" if made.get("status") == "complete" else made.get("status")
    return f"the run is not finished ({why}); continue it with: {made.get('command')}"


def _of_schema(value: Any, where: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise InputError(f"{where}: expected a JSON object, got {type(value).__name__}")
    schema = value.get("schema", SCHEMA)
    if schema != SCHEMA:
        raise InputError(f"{where}: schema is {schema!r}, not {SCHEMA}; use the version that wrote it")
    return value


def check_place(folder: Path) -> None:
    """Raise ``InputError`` where a run folder cannot be made or written; nothing is made."""
    nearest = next((p for p in (folder, *folder.absolute().parents) if p.exists()), folder)
    if not nearest.is_dir():
        raise InputError(f"--out {folder}: {'is' if nearest == folder else f'{nearest} is'} a file; give a folder")
    if not os.access(nearest, os.W_OK | os.X_OK):
        raise InputError(f"--out {folder}: {nearest} cannot be written; give a folder that can")


RESULTS = ("cases.jsonl", "asks.jsonl", "graded.jsonl", "metrics.json")
"""Files of a run, written after its manifest."""


def check_own(folder: Path) -> None:
    """Raise ``InputError`` for a folder that is no run and has files with the names of a run's, which would be lost."""
    if (folder / "manifest.json").exists():
        return
    if (own := next((name for name in RESULTS if (folder / name).exists()), None)) is not None:
        raise InputError(
            f"--out {folder}: has {own} and no manifest.json, so it is no run, and {own} would be overwritten; give "
            "another folder"
        )


@contextmanager
def locked(folder: str | Path) -> Iterator[Path]:
    """Lock a folder for this process. The lock ends with the process, so a killed run never blocks the next one.

    Raises ``JournalError`` if another process holds the lock.
    """
    folder = Path(folder)
    check_place(folder)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except FileNotFoundError as e:  # below /proc, no folder can be made
        raise InputError(f"--out {folder}: cannot be made ({e.strerror}); give another folder") from e
    with (folder / ".lock").open("w") as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as e:
            raise JournalError(
                f"{folder}: another composcope process is writing this run; wait for it or give another --out"
            ) from e
        yield folder


def differing(name: str, before: Any, now: Any) -> list[str]:
    """``NAME was BEFORE, is NOW`` for a setting that differs, shortened; for an object, only the fields that differ.

    Long values are cut after their beginning and hashes after twelve digits, which is enough to tell two apart.
    """
    if _plain(before) == _plain(now):
        return []
    if isinstance(before, Mapping) and isinstance(now, Mapping):
        names = dict.fromkeys([*before, *now])
        return [said for k in names for said in differing(f"{name}.{k}", before.get(k), now.get(k))]
    shown = [short(before), short(now)]
    if shown[0] == shown[1]:  # they differ after the part that is shown
        return [f"{name} differs"]
    return [f"{name} was {shown[0]}, is {shown[1]}"]


def differs(name: str, one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Whether two runs' identities differ in a field; a folder's label was once its path, if that had one slash."""
    a, b = one.get(name), other.get(name)
    path, last = sorted((str(a), str(b)), key=len, reverse=True)
    same = one.get("weights") is not None and one["weights"] == other.get("weights")
    return a != b and not (name == "model" and same and path.endswith(f"/{last}"))


def _plain(value: Any) -> Any:
    """A value as JSON stores it: tuples become lists."""
    if isinstance(value, Mapping):
        return {k: _plain(v) for k, v in value.items()}
    return [_plain(v) for v in value] if isinstance(value, list | tuple) else value


def short(value: Any) -> str:
    """A setting's value, shortened for a message."""
    if isinstance(value, str) and re.fullmatch(r"(?:[a-z0-9]+:)?[0-9a-f]{32,}", value):
        kind, _, digits = value.rpartition(":")
        return f"{kind}{':' if kind else ''}{digits[:12]}"
    said = "unset" if value is None else str(value)
    return said if len(said) <= 60 else f"{said[:60]}..."


def command_line() -> str:
    """The command as the user typed it, ready to be pasted again."""
    name = Path(sys.argv[0]).name
    if name == "ipykernel_launcher.py":
        return "a notebook"
    return shlex.join(["composcope" if name in ("__main__.py", "cli.py") else name, *sys.argv[1:]])


def is_run(folder: str | Path) -> bool:
    return (Path(folder) / "manifest.json").is_file()


def check_no_run(out: str | Path) -> None:
    """Raise ``InputError`` if the folder for something else is a run, whose own files it would replace."""
    if is_run(out):
        raise InputError(f"--out {out}: is a run, whose files would be replaced; give another folder")


def find_runs(folders: Iterable[str | Path]) -> list[Path]:
    """The run folders among or directly under ``folders`` (a study holds several), sorted by name."""
    found: list[Path] = []
    for folder in (as_path(f, "run") for f in folders):
        if not folder.is_dir():
            raise InputError(f"{folder}: no such run folder; see `composcope ls`")
        inside = runs_in(folder)
        if not inside:
            raise InputError(f"{folder}: holds no run (no manifest.json); see `composcope ls`")
        found += [p for p in inside if p not in found]
    return found


def runs_in(folder: Path) -> list[Path]:
    """The run that a folder is, or the runs directly under it; none for anything else (a folder of skill maps)."""
    if is_run(folder):
        return [folder]
    return sorted(p for p in folder.iterdir() if is_run(p)) if folder.is_dir() else []


def told_apart(paths: Sequence[Path]) -> list[str]:
    """A name for each run folder that no other has: its own, else with its study's, else the whole path."""
    makes = (lambda p: p.name, lambda p: "/".join(p.parts[-2:]), str)
    ways = [Counter(map(make, paths)) for make in makes]
    return [next((make(p) for make, way in zip(makes, ways, strict=True) if way[make(p)] == 1), str(p)) for p in paths]


def files_told_apart(files: Sequence[tuple[str, Any]]) -> list[str]:
    """For benchmark files of one name with other cases, the name with that of the folder; empty for all others.

    Each file comes with the sha256 of its cases, None if unknown.

    >>> files_told_apart([("a/set.jsonl", "1"), ("b/set.jsonl", "2"), ("c/set.jsonl", "1"), ("c/more.jsonl", "3")])
    ['a/set', 'b/set', 'a/set', '']
    """
    first: dict[tuple[str, str], Path] = {}
    for file, data in files:
        first.setdefault((short_name(file), str(data)), Path(file).parent / short_name(file))
    names: dict[Path, str] = {}
    for short in dict.fromkeys(short for short, _ in first):
        paths = list(dict.fromkeys(p for (s, data), p in first.items() if s == short and data != "None"))
        names |= dict(zip(paths, told_apart(paths), strict=True)) if len(paths) > 1 else {}
    return [names.get(first[short_name(file), str(data)], "") for file, data in files]


def one_run(folder: str | Path) -> Path:
    """The run folder that ``folder`` is, or the only one in it. Raises ``InputError`` that names them if it holds more.

    For jobs on a single run, which would otherwise pass over the other runs silently.
    """
    first, *others = find_runs([folder])
    if others:
        names = ", ".join(p.name for p in (first, *others)[:_NAMED]) + (", ..." if len(others) >= _NAMED else "")
        raise InputError(f"{folder}: holds {len(others) + 1} runs ({names}); give one of them, such as {first}")
    return first
