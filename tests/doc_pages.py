"""The commands of the documentation: which blocks a page has, and one shell session that runs them.

A page is a Markdown file. Its blocks:

* ```` ```bash ```` runs, all blocks of a page in one session, in a copy of the checkout;
* ```` ```bash slow ```` runs too, with the slow tests only;
* ```` ```bash gpu ````, ``net``, ``vllm`` does not run here; the section says on which date and machine it did;
* ```` ```bash exit=1 ```` runs and has to end with that exit code (that of composcope may be 2 without saying so:
  done, and some answers could not be judged);
* ```` ```python ```` runs in the same place, after the Python blocks above it;
* ```` ```python fragment ```` has to be Python, no more.

``composcope``, ``.venv/bin/composcope`` and ``python`` in a page are those of the tests' interpreter: with the slow
tests processes of their own, else forks of one that has loaded the libraries (see ``forked``).
``path/to/model-folder`` is one of the shipped models. The session's
script has the page's own line numbers, so a failure is reported where it stands on the page.
"""

from __future__ import annotations

import atexit
import os
import re
import shutil
import signal
import subprocess
import sys
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import forked

ROOT = Path(__file__).resolve().parents[1]
ELSEWHERE = ("gpu", "net", "vllm")
"""Tags of what cannot run in the tests."""
TAGS = {"bash": {*ELSEWHERE, "slow"}, "python": {"fragment", "slow"}}
_FENCE = re.compile(r"^(?P<indent> {0,3})(?P<marks>`{3,}|~{3,})\s*(?P<info>[^`]*)$")
_DATE = re.compile(r"\b20\d\d-[01]\d-[0-3]\d\b")
_MACHINE = re.compile(r"\b(cores?|CPUs?|GPUs?|Gi?B|H\d00|A100|L40S?|T4|M[1-4])\b")


ENVIRONMENT = {
    "PYTHONPATH": str(ROOT / ".site"),
    "HF_HUB_OFFLINE": "1",
    "OMP_NUM_THREADS": "1",
    "MPLBACKEND": "agg",
    "COLUMNS": "120",
}


@dataclass(frozen=True)
class Block:
    """One fenced block of a page."""

    language: str
    tags: tuple[str, ...]
    line: int
    """Line of the opening fence, from 1."""
    text: str
    section: str
    """Everything between the headings around the block."""

    @property
    def end(self) -> int:
        """Line of the closing fence."""
        return self.line + len(self.text.splitlines()) + 1

    @property
    def expected_exit(self) -> int:
        return next((int(t.removeprefix("exit=")) for t in self.tags if t.startswith("exit=")), 0)

    def runs(self, slow: bool) -> bool:
        """Whether the block is run, among the slow tests or the others."""
        if self.language not in TAGS or {*ELSEWHERE, "fragment"} & set(self.tags):
            return False
        return slow or "slow" not in self.tags


def pages() -> list[Path]:
    """README, docs and examples."""
    found = [ROOT / "README.md", *ROOT.glob("docs/**/*.md"), *ROOT.glob("examples/**/*.md")]
    return sorted(p for p in found if not any(part.startswith(".") for part in p.relative_to(ROOT).parts))


def blocks(text: str) -> list[Block]:
    """The fenced blocks of a page, with the section that each stands in."""
    lines = text.split("\n")
    found: list[tuple[str, tuple[str, ...], int, str]] = []
    headings, start, opened = [0], 0, None
    for n, line in enumerate(lines, 1):
        fence = _FENCE.match(line)
        if opened is None and fence:
            opened, start = fence, n
        elif opened is not None and fence and not fence["info"] and fence["marks"].startswith(opened["marks"]):
            words = opened["info"].split()
            inside = "\n".join(lines[start : n - 1])
            found.append((words[0] if words else "", tuple(words[1:]), start, inside))
            opened = None
        elif opened is None and line.startswith("#"):
            headings.append(n)
    if opened is not None:
        raise ValueError(f"line {start}: this block is never closed")
    ends = [*headings[1:], len(lines)]
    sections = {(a, b): "\n".join(lines[a:b]) for a, b in zip(headings, ends, strict=True)}
    return [
        Block(language, tags, line, inside, next(s for (a, b), s in sections.items() if a < line <= b))
        for language, tags, line, inside in found
    ]


def problems(text: str) -> list[str]:
    """What is wrong with a page's blocks without running anything."""
    out = []
    for b in blocks(text):
        where = f"line {b.line}"
        if b.language in ("sh", "shell", "console", "zsh"):
            out.append(f"{where}: write ```bash, so that the commands are tested")
        known = TAGS.get(b.language, set(b.tags))
        out += [f"{where}: unknown tag {t!r}" for t in b.tags if t not in known and not re.fullmatch(r"exit=\d+", t)]
        if set(ELSEWHERE) & set(b.tags) and not (_DATE.search(b.section) and _MACHINE.search(b.section)):
            out.append(
                f"{where}: not run by the tests; say in the same section on which date (2026-01-31) and machine "
                "(GPU, cores, GB) it ran"
            )
        if b.language == "python":
            try:
                compile(b.text, f"line {b.line}", "exec")
            except SyntaxError as e:
                out.append(f"line {b.line + (e.lineno or 0)}: not Python ({e.msg})")
    return out


# No `set -e`: the trap leaves the shell, unless composcope says that it is done and that some answers are invalid.
_TRAP = (
    r"c=$?; [[ $c == 2 && $BASH_COMMAND =~ ^(.venv/bin/)?composcope\  ]] || "
    r'{ printf "\nPAGE LINE %s (exit code %s): %s\n" "$LINENO" "$c" "$BASH_COMMAND" >&2; exit 97; }'
)
_HEAD = f"set -E -o pipefail; trap '{_TRAP}' ERR; "


def session(text: str, python_files: Path, *, slow: bool) -> str:
    """The shell script of a page: its blocks at their own line numbers, empty lines for everything else.

    The Python blocks are written to ``python_files``, one file each, which holds those above it too.
    """
    lines = [""] * (len(text.split("\n")) + 2)
    python = list(lines)
    for b in blocks(text):
        if not b.runs(slow):
            continue
        inside = b.text.split("\n")
        if b.language == "python":
            python[b.line : b.line + len(inside)] = inside
            file = python_files / f"line{b.line}.py"
            file.write_text("\n".join(python), encoding="utf-8")
            lines[b.line - 1] = f"python {file}"
            continue
        lines[b.line : b.line + len(inside)] = inside
        if b.expected_exit:
            lines[b.line - 1] = "trap - ERR"
            check = f'[ $? = {b.expected_exit} ] || {{ printf "\\nPAGE LINE {b.line}: not exit code {b.expected_exit}'
            lines[b.end - 1] = f'{check}\\n" >&2; exit 97; }}; {_HEAD.rstrip("; ")}'
    lines[0] = _HEAD + lines[0]
    return "\n".join([*lines, "exit 0", ""])


def workplace(folder: Path) -> Path:
    """A copy of the checkout to run a page in, whose interpreter is the one of the tests."""
    listed = subprocess.run(["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT, capture_output=True, text=True)
    skip = ("tests/references/", ".hypothesis/")
    for name in listed.stdout.splitlines():
        if (ROOT / name).is_file() and not name.startswith(skip):
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            _copied(ROOT / name, folder / name)
    tools = folder / ".venv" / "bin"
    tools.mkdir(parents=True)
    fork = f'exec {sys.executable} -I -S {forked.__file__} run "$FORKED"'
    script = f'case "$FORKED:$1" in :*) ;; *.py) {fork} python "$@" ;; esac\nexec {sys.executable} "$@"'
    command = f'[ -z "$FORKED" ] || {fork} composcope "$@"\nexec {sys.executable} -m composcope "$@"'
    for name, text in (("composcope", command), ("python", script), ("python3", script)):
        (tools / name).write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
        (tools / name).chmod(0o755)
    (folder / ".venv" / ".ready").touch()
    # Where a page says path/to/model-folder, a reader has a model of their own.
    shutil.copytree(
        folder / "experiments" / "organism" / "weights" / "control", folder / "path" / "to" / "model-folder"
    )
    return folder


def _copied(file: Path, to: Path) -> None:
    """A copy; of weights, which nothing changes, a link where that is possible."""
    if file.suffix == ".safetensors":
        with suppress(OSError):
            os.link(file, to)
            return
    shutil.copyfile(file, to)


@cache
def _forks() -> str:
    """A server of forks for the commands of all pages."""
    alive = ExitStack()
    atexit.register(alive.close)
    return str(alive.enter_context(forked.server({**os.environ, **ENVIRONMENT})))


def run_page(text: str, folder: Path, *, slow: bool, timeout: float) -> str | None:
    """Run a page's session in ``folder`` (see ``workplace``): None, or what failed and where."""
    (folder / ".page").mkdir(exist_ok=True)
    script = folder / ".page" / "page.sh"
    script.write_text(session(text, folder / ".page", slow=slow), encoding="utf-8")
    environment = {
        **os.environ,
        "PATH": f"{folder / '.venv/bin'}:{os.environ.get('PATH', '')}",
        **ENVIRONMENT,
        "FORKED": "" if slow else _forks(),
    }
    process = subprocess.Popen(
        ["bash", str(script)], cwd=folder, env=environment, text=True, start_new_session=True,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip
    try:
        output, _ = process.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        output, _ = process.communicate()
        return f"not done after {timeout:.0f} s; use smaller limits or tag the block slow\n{_tail(output)}"
    if process.returncode == 0:
        return None
    return f"{_where(output, process.returncode)}\n{_tail(output)}"


def _where(output: str, code: int) -> str:
    marked = [line for line in output.splitlines() if line.startswith("PAGE LINE ")]
    return marked[-1].removeprefix("PAGE ") if marked else f"the shell ended with exit code {code}"


def _tail(output: str, lines: int = 30) -> str:
    kept = [line for line in output.splitlines() if not line.startswith("PAGE LINE ")][-lines:]
    return "--- last lines of the output ---\n" + "\n".join(kept)
