"""Commands with everything that they write, compared with what they wrote when somebody last looked at it.

    PYTHONPATH=.site:tests python -m references.commands --write [GROUP ...]

writes ``tests/references/commands`` again, and ``git diff`` then shows what has changed. Each group of commands runs
in a folder of its own, in this process. What is compared, and how, is in ``reduced``; the commands are in ``table``.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import re
import shlex
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from itertools import count
from pathlib import Path
from typing import Any
from unittest import mock

import torch
import typer.main
from matplotlib.figure import Figure
from references import reduced, served, told_models
from references.marks import marks

from composcope.experiments.cli import main

FOLDER = Path(__file__).parent / "commands"
CODE = Path(__file__).resolve().parents[2]
AGAIN = "PYTHONPATH=.site:tests python -m references.commands --write"
LONG = 200
"""Characters of a file that is stored once only, where another file of the group is the same."""


@dataclass(frozen=True)
class Group:
    """Commands that run one after another in one folder."""

    commands: tuple[str, ...]
    """Command lines; ``call NAME`` calls one of ``calls`` and compares what it returns."""
    material: Callable[[Path], None] = lambda _: None
    told: bool = True
    """Whether models are those of rules."""
    calls: dict[str, Callable[[], Any]] | None = None
    long: bool = False
    """Whether the commands take longer than tests do that run with every change."""
    facts_only: bool = False
    """Whether messages are compared by what they name, not by their words."""
    served: bool = False
    """Whether ``<server>`` in the commands is a server's address."""
    without: str = "$^"
    """Files that are not compared, since others of the group say the same."""


def saved_as_marks(sheet: Figure, to: Any, **options: Any) -> None:
    """In place of ``Figure.savefig``: what is drawn, instead of a picture of it."""
    if isinstance(to, io.StringIO):
        to.write('<svg xmlns="http://www.w3.org/2000/svg"/>')
    elif isinstance(to, io.BytesIO):
        to.write(b"")
    elif Path(to).suffix == ".png":
        Path(to).write_text(json.dumps(marks(sheet)), encoding="utf-8")
    else:
        Path(to).write_text("")


def clock(second: int) -> str:
    """A time stamp, so many seconds after the first."""
    return f"2026-01-01T{second // 3600:02}:{second // 60 % 60:02}:{second % 60:02}+0000"


@contextmanager
def prepared(group: Group, folder: Path) -> Iterator[None]:
    """The folder as the working folder, the terminal's width, and models of rules where the group wants them."""
    before, moment = Path.cwd(), count()  # runs are listed in the order in which they were made
    environment = {"COLUMNS": "100", "HF_HUB_OFFLINE": "1", "NO_COLOR": "1", "CUDA_VISIBLE_DEVICES": ""}
    patches = [
        mock.patch.dict(os.environ, environment),
        mock.patch.object(typer.main, "get_command", cache(typer.main.get_command)),
        mock.patch.object(Figure, "savefig", saved_as_marks),
        mock.patch("matplotlib.layout_engine.ConstrainedLayoutEngine.execute", lambda *_: None),
        mock.patch("composcope.experiments.models.target.open_role", told_models.open_role),
        mock.patch("torch.cuda.is_available", lambda: False),
        mock.patch("composcope.experiments.run.writer._now", lambda: clock(next(moment))),
    ]
    if group.told:
        patches.append(mock.patch("composcope.experiments.investigate.load_target", told_models.load))
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    for patch in patches:
        patch.start()
    os.chdir(folder)
    try:
        group.material(folder)
        yield
    finally:
        os.chdir(before)
        torch.set_num_threads(threads)
        for patch in reversed(patches):
            patch.stop()


def run(group: Group, folder: Path) -> dict[str, Any]:
    """What each command of a group says and writes, reduced."""
    found: dict[str, Any] = {}
    places = {str(folder): "<here>", str(folder.resolve()): "<here>", str(CODE): "<code>"}
    with prepared(group, folder), served.server() if group.served else nullcontext("") as address:
        if address:
            places[address] = places[address.removeprefix("http://")] = served.PLACE
        known, seen, heard = _files(folder), dict[str, str](), set[str]()
        for command in group.commands:
            out, err = io.StringIO(), io.StringIO()
            began = time.monotonic()
            with redirect_stdout(out), redirect_stderr(err):
                returned = _called(group, command.replace(served.PLACE, address))
            if os.environ.get("TIMED"):
                print(f"{time.monotonic() - began:6.2f} {command[:110]}", file=sys.stderr)
            said = out.getvalue()
            errors = reduced.lines_of(err.getvalue(), places)
            errors = [reduced.facts_of(line) for line in errors] if group.facts_only else errors
            row = {"returned": reduced.value_of(returned, places), "errors": errors}
            if said.startswith(("{", "[")):
                row |= reduced.parted("said", reduced.value_of(json.loads(said), places, short=True))
            else:
                said_lines = reduced.lines_of(said, places)
                row["said"] = [reduced.sentence(line) if line in heard else line for line in said_lines]
                heard |= set(said_lines)
            now = _files(folder)
            new = [n for n, digest in now.items() if known.get(n) != digest and not reduced.NOT_RESULTS.search(n)]
            wanted = [n for n in new if not re.search(group.without, n)]
            for n in wanted:
                for part, value in reduced.parted(n, reduced.read(folder / n, n, places)).items():
                    text = json.dumps(value)
                    row[part] = f"as {seen[text]}" if len(text) > LONG and text in seen else value
                    seen.setdefault(text, f"{part} after {command}")
            row["gone"] = [n for n in known if n not in now and not reduced.NOT_RESULTS.search(n)]
            known = now
            found[command] = {k: v for k, v in row.items() if v not in ([], {})}
    return found


def _called(group: Group, command: str) -> Any:
    first, _, rest = command.partition(" ")
    if first == "call":
        return (group.calls or {})[rest]()
    words = shlex.split(command)
    with mock.patch.object(sys, "argv", ["composcope", *words]):  # a run records how it was made
        return main(words)


def _files(folder: Path) -> dict[str, str]:
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not path.is_symlink()
    }


def stored(name: str) -> dict[str, Any]:
    found = json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))
    return {command: {k: reduced.unpacked(v) for k, v in row.items()} for command, row in found.items()}


def compared(name: str, found: dict[str, Any]) -> list[str]:
    """Each difference of a group from what is stored: command, file, line or field, stored and new value."""
    near = reduced.EXACT if groups()[name].told else reduced.REAL
    return list(reduced.differences(stored(name), json.loads(json.dumps(found)), near))


def groups() -> dict[str, Group]:
    return import_module("references.table").GROUPS


def _text(found: dict[str, Any]) -> str:
    """JSON with one line for each line, row or field of what was written."""
    commands = []
    for command, row in found.items():
        parts = ",\n".join(f"{_flat(name)}: {_lines(reduced.packed(value))}" for name, value in row.items())
        commands.append(f"{_flat(command)}: {{\n{parts}\n}}")
    return "{\n" + ",\n".join(commands) + "\n}\n"


def _flat(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _lines(value: Any) -> str:
    if isinstance(value, dict) and list(value) == ["shared", "fields", "rows"]:
        shared, fields, rows = (value[k] for k in value)
        return f'{{"shared":{_flat(shared)},\n"fields":{_flat(fields)},\n"rows":{_lines(rows)}}}'
    if isinstance(value, list) and len(_flat(value)) > 100:
        return "[\n" + ",\n".join(map(_flat, value)) + "\n]"
    return _flat(value)


def write(names: list[str]) -> None:
    FOLDER.mkdir(exist_ok=True)
    for name in names or list(groups()):
        folder = Path(tempfile.mkdtemp(prefix="reference-")).resolve()
        began = time.monotonic()
        try:
            found = run(groups()[name], folder)
        finally:
            shutil.rmtree(folder, ignore_errors=True)
        (FOLDER / f"{name}.json").write_text(_text(found), encoding="utf-8")
        size = (FOLDER / f"{name}.json").stat().st_size
        print(f"{name}: {len(found)} commands, {time.monotonic() - began:.1f} s, {size / 1000:.0f} kB", flush=True)


if __name__ == "__main__":
    if sys.argv[1:2] != ["--write"]:
        raise SystemExit(f"to write the references again: {AGAIN}")
    import_module("references.commands").write(sys.argv[2:])
