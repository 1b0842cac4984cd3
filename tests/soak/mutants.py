"""Mutants: one meaningful fault at a time is put into a copy of the product, and the tests that ought to notice run.

``python tests/soak/mutants.py`` goes through the table in ``mutant_table.py``. Each mutant is a snippet that stands in
exactly one file of the product, what stands there instead, and the tests to run; files are found by the snippet, also
when they were moved. A mutant is *killed* where a test fails, and *survived* where all pass. The tests that failed run
once more without any mutant, and have to pass. Prints a table and the share of killed mutants per package, and exits
with 1 where a package has less than 95 %, or a mutant could not be put to the test.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import platform
import re
import shlex
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from mutant_table import MUTANTS, Mutant  # beside this file
from rich.console import Console
from rich.progress import track

ROOT = Path(__file__).resolve().parents[2]
PRODUCT = ("evaluation", "hooks", "probes", "experiments")
WANTED = 0.95
WRONG_TREE = 70
"""Exit status where the product would be imported from elsewhere than the copy."""
PATIENCE = 900
"""Seconds after which tests that hang count as having noticed."""
TOGETHER = 10
"""Mutants whose tests run together once more, without any mutant, before their results are kept."""
LEFT_OUT = ("build", "dist", "runs", "models")
"""Folders of the root that are not copied, beside those whose name begins with a dot."""
ORDINARY = "not slow and not gpu and not vllm and not real"
"""Which of the tests run: the long ones too."""
LIBRARIES = (
    "torch", "transformers.modeling_utils", "transformers.tokenization_utils_tokenizers", "transformers.generation",
    "transformers.models.auto.modeling_auto", "transformers.models.auto.tokenization_auto", "scipy.stats",
    "scipy.optimize", "scipy.sparse.csgraph", "pandas", "hypothesis", "matplotlib.figure", "einops", "jaxtyping",
    "beartype", "safetensors.torch", "openai", "typer", "jinja2", "rich.progress",
)  # fmt: skip
MODELS = ("llama", "qwen3", "mistral", "gemma2", "gpt2", "mixtral")
"""Architectures of which most tests make a small model."""
EXAMPLES = """
examples:
  python tests/soak/mutants.py                         the whole table (a quarter of an hour on two cores)
  python tests/soak/mutants.py --package probes        one package
  python tests/soak/mutants.py --only holm             mutants with these words in their name
  python tests/soak/mutants.py --list                  the table, without running anything
  make mutants                                         the whole table, results kept in runs/mutants.jsonl

Results are kept: a mutant whose file and tests have not changed since is not run again (--again does).
"""


@dataclass(frozen=True)
class Found:
    """What became of one mutant."""

    mutant: Mutant
    result: str
    """``killed``, ``survived`` or what went wrong."""
    where: str = ""
    seconds: float = 0.0
    noticed: str = ""
    """The test that failed."""

    @property
    def judged(self) -> bool:
        return self.result in ("killed", "survived")


def files_of(root: Path) -> Iterator[Path]:
    """The product's modules."""
    yield from sorted(root.glob("*.py"))
    for package in PRODUCT:
        yield from sorted((root / package).rglob("*.py"))


def place_of(mutant: Mutant, texts: dict[Path, str]) -> Path | str:
    """The one file that holds the snippet once, or what is wrong."""
    counts = {path: n for path, text in texts.items() if (n := text.count(mutant.was))}
    if sum(counts.values()) == 1:
        return next(iter(counts))
    return "snippet not found" if not counts else f"snippet found {sum(counts.values())} times"


def digest(mutant: Mutant, root: Path, text: str) -> str:
    """What a result depends on: the mutant, its file, and the tests that run."""
    parts = [mutant.was, mutant.now, mutant.tests, text]
    for word in shlex.split(mutant.tests):
        path = root / word.split("::")[0]
        if path.is_file():
            parts.append(path.read_text(encoding="utf-8"))
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def copied(root: Path, to: Path) -> Path:
    """A copy of the tree that imports as ``composcope``."""

    def ignored(folder: str, names: list[str]) -> set[str]:
        top = Path(folder) == root
        return {n for n in names if n == "__pycache__" or (top and (n in LEFT_OUT or n.startswith(".")))}

    shutil.copytree(root, to, ignore=ignored)
    (to / ".site").mkdir()
    (to / ".site" / "composcope").symlink_to("..")
    return to


def tested(tree: Path, words: Sequence[str]) -> tuple[int, str]:
    """Exit status of pytest over a tree (negative: the signal that ended it) and what it said.

    A fork of this process, which has loaded the large libraries already and nothing of the product.
    """
    with tempfile.TemporaryFile("w+", encoding="utf-8") as said:
        sys.stdout.flush()
        if (pid := os.fork()) == 0:
            os.dup2(said.fileno(), 1)
            os.dup2(said.fileno(), 2)
            os._exit(_pytest(tree, words))
        code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        said.seek(0)
        return code, said.read()


def _pytest(tree: Path, words: Sequence[str]) -> int:
    signal.alarm(PATIENCE)  # ends the process
    os.chdir(tree)
    sys.dont_write_bytecode = False  # the tree is a copy, and what is compiled once saves a second each time
    os.environ["PYTHONPATH"] = str(tree / ".site")
    sys.path[:] = [str(tree / ".site"), *(p for p in sys.path if not Path(p, "composcope").exists())]
    found = find_spec("composcope")
    if found is None or Path(str(found.origin)).resolve().parent != tree:
        return WRONG_TREE
    return int(pytest.main(["-q", "-p", "no:cacheprovider", "-m", ORDINARY, *words]))


def loaded() -> None:
    """Load what most tests need and takes seconds to load."""
    for name in (*LIBRARIES, *(f"transformers.models.{m}.modeling_{m}" for m in MODELS)):
        if find_spec(name.partition(".")[0]) is not None:
            import_module(name)


def tried(mutant: Mutant, path: Path, tree: Path, number: int) -> Found:
    """Put the mutant in, run its tests, take it out again; no two mutants of a run have the same number."""
    text, times = path.read_text(encoding="utf-8"), path.stat()
    began = time.monotonic()
    try:
        path.write_text(text.replace(mutant.was, mutant.now), encoding="utf-8")
        # Compiled files stay in the tree, and are told by these seconds.
        os.utime(path, (times.st_atime, times.st_mtime + 60 * (1 + number)))
        code, said = tested(tree, ["-x", *shlex.split(mutant.tests)])
    finally:
        path.write_text(text, encoding="utf-8")
        os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
    results = {0: "survived", 1: "killed", -signal.SIGALRM: "killed"}
    result = results.get(code, f"pytest ended with {code}: {said.strip().splitlines()[-1:]}")
    failed = next(iter(_failed(said)), "")
    return Found(mutant, result, str(path.relative_to(tree)), round(time.monotonic() - began, 1), failed)


def _failed(said: str) -> list[str]:
    """The tests that failed, as pytest names them; what is in brackets may have " - " in it, as before a message."""
    return re.findall(r"^(?:FAILED|ERROR) ([^\[\s]+(?:\[.*?\])?)(?= - |$)", said, re.MULTILINE)


def sound(found: Sequence[Found], tree: Path) -> list[Found]:
    """What was found, less where the test that noticed a mutant fails without any, too."""
    killed = [f for f in found if f.result == "killed"]
    names, failing = sorted({f.noticed for f in killed if f.noticed}), set[str]()
    if names:
        code, said = tested(tree, names)
        if code not in (0, 1):
            raise SystemExit(f"{said}\npytest ended with {code} on {', '.join(names)}, without any mutant")
        failing |= set(_failed(said))
    for f in killed:
        if not f.noticed and tested(tree, shlex.split(f.mutant.tests))[0] != 0:
            failing.add(f.noticed)
    bad = "its test fails without any mutant, too"
    return [replace(f, result=bad) if f in killed and f.noticed in failing else f for f in found]


def chosen(only: str | None, package: str | None) -> list[Mutant]:
    return [m for m in MUTANTS if (package or m.package) == m.package and (only or "").lower() in m.name.lower()]


def judged(mutants: Sequence[Mutant], tree: Path, results: Path, again: bool, out: Console) -> list[Found]:
    """Every mutant's result, from the file of results where nothing has changed since."""
    texts = {path: path.read_text(encoding="utf-8") for path in files_of(tree)}
    known = {} if again or not results.is_file() else _read(results)
    done, todo = [], []
    for mutant in mutants:
        place = place_of(mutant, texts)
        if isinstance(place, str):
            done.append(Found(mutant, place))
        elif (key := digest(mutant, tree, texts[place])) in known:
            done.append(Found(mutant, **known[key]))
        else:
            todo.append((mutant, place, key))
    results.parent.mkdir(parents=True, exist_ok=True)
    waiting: list[tuple[str, Found]] = []
    for i, (mutant, place, key) in enumerate(track(todo, "mutants", console=out)):
        found = tried(mutant, place, tree, i)
        out.print(f"{found.result:9} {found.seconds:6.1f} s  {mutant.package}: {mutant.name}", highlight=False)
        waiting.append((key, found))
        if len(waiting) < TOGETHER and i + 1 < len(todo):
            continue
        for (known_as, _), f in zip(waiting, sound([f for _, f in waiting], tree), strict=True):
            done.append(f)
            if f.judged:
                row = {"key": known_as, **{k: getattr(f, k) for k in ("result", "where", "seconds", "noticed")}}
                with results.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(row) + "\n")
        waiting.clear()
    return done


def _read(results: Path) -> dict[str, dict[str, Any]]:
    rows = [json.loads(line) for line in results.read_text(encoding="utf-8").splitlines()]
    return {row.pop("key"): row for row in rows}


def report(found: Sequence[Found]) -> bool:
    """Print what became of each mutant and each package; whether that is enough."""
    order = {m: i for i, m in enumerate(MUTANTS)}
    for f in sorted(found, key=lambda f: order.get(f.mutant, 0)):
        print(f"{f.mutant.package:12} {f.result:9} {f.mutant.name}  [{f.where}] {f.noticed}".rstrip())
    machine = f"{os.cpu_count()}-core {platform.machine()}, Python {platform.python_version()}"
    print(f"{time.strftime('%Y-%m-%d')}, {machine}: {sum(f.seconds for f in found):.0f} s of tests")
    good = all(f.judged for f in found)
    counts = Counter((f.mutant.package, f.result) for f in found)
    for package in dict.fromkeys(f.mutant.package for f in found):
        killed, n = counts[package, "killed"], sum(v for (p, _), v in counts.items() if p == package)
        good &= killed >= WANTED * n
        print(f"{package}: {killed} of {n} killed ({100 * killed / n:.0f} %)")
    unclear = [f for f in found if not f.judged]
    for f in unclear:
        print(f"not put to the test: {f.mutant.package}: {f.mutant.name}: {f.result}", file=sys.stderr)
    return good


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=(__doc__ or "").partition("\n")[0], epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    parser.add_argument("--only", metavar="WORDS", help="mutants whose name holds these words")
    parser.add_argument("--package", choices=sorted({m.package for m in MUTANTS}), help="mutants of one package")
    parser.add_argument("--results", type=Path, default=ROOT / "runs" / "mutants.jsonl", help="file of results")
    parser.add_argument("--again", action="store_true", help="run also what is in the file of results")
    parser.add_argument("--list", action="store_true", help="print the table and what each mutant changes")
    given = parser.parse_args(argv)
    mutants = chosen(given.only, given.package)
    if not mutants:
        parser.error(f"no mutant has {given.only!r} in its name; see --list")
    if given.list:
        for m in mutants:
            print(f"{m.package}: {m.name}\n  {m.was!r}\n  {m.now!r}\n  {m.tests}")
        return 0
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        tree = copied(ROOT, Path(folder) / "composcope")
        loaded()
        found = judged(mutants, tree.resolve(), given.results, given.again, Console(stderr=True))
    return 0 if report(found) else 1


if __name__ == "__main__":
    raise SystemExit(main())
