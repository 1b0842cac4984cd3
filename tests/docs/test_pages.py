"""Every command in README and docs does what the page says: it is run. See ``doc_pages`` for the tags of blocks."""

from __future__ import annotations

import re
import shlex
from functools import cache
from pathlib import Path
from typing import Any

import doc_pages
import pytest
from typer.main import get_command

from composcope.experiments.cli import app
from composcope.files import read_csv

PAGES = doc_pages.pages()
SECONDS = 900
"""What the ordinary blocks of one page may take, on a busy machine."""
OFTEN = ("README", "own-model", "hooks")
"""Pages whose commands are run with every long test, beside those on how to add a thing; `make test-pages` runs all."""
SLOW_SECONDS = 5400
"""The benchmark of the probes at its full size takes half an hour on an idle machine."""


def _name(page: Path) -> str:
    return str(page.relative_to(doc_pages.ROOT))


def _with(slow: bool) -> list[Path]:
    """Pages that have something to run, or something slow to run."""
    return [p for p in PAGES if any(b.runs(slow) and (not slow or "slow" in b.tags) for b in _blocks(p))]


@cache
def _blocks(page: Path) -> list[doc_pages.Block]:
    return doc_pages.blocks(page.read_text(encoding="utf-8"))


def _run(page: Path, folder: Path, slow: bool) -> None:
    failed = doc_pages.run_page(
        page.read_text(encoding="utf-8"),
        doc_pages.workplace(folder),
        slow=slow,
        timeout=SLOW_SECONDS if slow else SECONDS,
    )
    if failed is not None:
        pytest.fail(f"{_name(page)}: {failed}", pytrace=False)


def _marked(page: Path) -> Any:
    often = page.stem in OFTEN or page.stem.startswith("adding-a-")
    return pytest.param(page, marks=pytest.mark.long if often else pytest.mark.slow)


@pytest.mark.parametrize("page", map(_marked, _with(slow=False)), ids=map(_name, _with(slow=False)))
def test_commands_of_a_page_run_as_written(page: Path, tmp_path: Path) -> None:
    _run(page, tmp_path, slow=False)


@pytest.mark.slow
@pytest.mark.parametrize("page", _with(slow=True) or [pytest.param(None, marks=pytest.mark.skip)], ids=str)
def test_slow_commands_of_a_page_run_as_written(page: Path, tmp_path: Path) -> None:
    _run(page, tmp_path, slow=True)


@pytest.mark.parametrize("page", PAGES, ids=_name)
def test_blocks_of_a_page_are_tagged_as_they_should_be(page: Path) -> None:
    found = doc_pages.problems(page.read_text(encoding="utf-8"))
    assert not found, f"{_name(page)}: " + "; ".join(found)


@pytest.mark.parametrize("page", PAGES, ids=_name)
def test_links_and_pictures_of_a_page_are_there(page: Path) -> None:
    for target in re.findall(r"\]\(([^)\s]+)\)", _prose(page)):
        if "://" not in target and not target.startswith(("#", "mailto:")):
            assert (page.parent / target.split("#")[0]).exists(), f"{_name(page)}: {target} is not there"


@pytest.mark.parametrize("page", PAGES, ids=_name)
def test_commands_that_a_page_names_or_cannot_run_exist_with_their_options(page: Path) -> None:
    named = re.findall(r"`(composcope [^`]+)`", _prose(page))
    blocks = [b for b in _blocks(page) if b.language == "bash" and not b.runs(slow=True)]
    for text in [*named, *(line for b in blocks for line in _commands(b.text))]:
        problem = _unknown(text)
        assert problem is None, f"{_name(page)}: `{text}`: {problem}"


def _prose(page: Path) -> str:
    """A page without its fenced blocks."""
    lines = page.read_text(encoding="utf-8").split("\n")
    for b in _blocks(page):
        lines[b.line - 1 : b.end] = [""] * (b.end - b.line + 1)
    return "\n".join(lines)


def _commands(block: str) -> list[str]:
    joined = block.replace("\\\n", " ")
    return [m.group(0) for m in re.finditer(r"(?<![\w/-])composcope [^|;&<>#\n]*", joined)]


def _unknown(text: str) -> str | None:
    """The first command or option in a text that composcope does not have."""
    try:
        words = shlex.split(text, comments=True)[1:]
    except ValueError:  # the block goes on: an argument in quotes holds what ends a command elsewhere
        words = text.split()[1:]
    command: Any = _built(app)
    while words and hasattr(command, "commands") and not words[0].startswith("-"):
        if words[0] not in command.commands:
            return None if words[0].isupper() or words[0] in ("...", "…") else f"no command {words[0]}"
        command = _nested(words[0]) or command.commands[words[0]]
        words = words[1:]
    known = {"--help", "-h"} | {o for p in command.params for o in (*p.opts, *p.secondary_opts)}
    return next((f"no option {w}" for w in words if w.startswith("-") and w.split("=")[0] not in known), None)


def _nested(name: str) -> Any:
    """Commands that are command lines of their own."""
    if name == "organism":
        from composcope.experiments.cli.organism import app as nested
    else:
        return None
    return _built(nested)


@cache
def _built(commands: Any) -> Any:
    """The commands of an app, built once: it takes a tenth of a second."""
    return get_command(commands)


def test_the_table_over_eight_trainings_says_what_was_measured() -> None:
    page = (doc_pages.ROOT / "docs" / "reproducing.md").read_text(encoding="utf-8").replace("\n", " ")
    rows = read_csv(doc_pages.ROOT / "docs" / "measurements" / "validity-8" / "validity-seeds.csv")[1]
    follow = {r["short"]: r for r in rows if r["question"] == "follows the dose"}
    assert set(follow) >= {
        "min-k",
        "lookback",
        "neurons/math",
        "cosine",
        "confidence",
        "length",
        "likelihood",
        "offset",
    }
    for name, row in follow.items():
        value, low, high = (f"{float(row[k]):.2f}" for k in ("value", "low", "high"))
        assert (value if name.startswith("direction") else f"| {value} [{low}, {high}] |") in page, name
    assert not [r for r in rows if r["verdict"].startswith("yes")] and "No probe gets a yes" in page


def test_files_that_are_printed_on_a_page_are_the_ones_that_run() -> None:
    printed = [b for page in PAGES for b in _blocks(page) if b.text.startswith("# examples/")]
    assert {p.name for p in (doc_pages.ROOT / "examples").glob("add_*.py")} == {_file(b).name for b in printed}
    for b in printed:
        assert b.text.split("\n", 1)[1].strip() == _file(b).read_text(encoding="utf-8").strip(), b.text.split("\n")[0]


def _file(block: doc_pages.Block) -> Path:
    """The file that the first line of a block names."""
    return doc_pages.ROOT / block.text.split("\n", 1)[0].removeprefix("# ").strip()
