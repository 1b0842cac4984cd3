"""The page of dependencies, ``pyproject.toml`` and the imports in the code name the same packages."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
ROW = re.compile(
    r"^\| (?:(?P<extra>[a-z]+) \| )?(?P<package>[\w.-]+) \| (?P<used>`[^`]+`|through [\w-]+) \| (?P<why>.+) \|$"
)
SEPARATE = ("lm_eval",)
"""Imported by a script that runs in an environment of its own, where this package is not."""
LOADERS = ("import_module", "importorskip", "find_spec")


def _listed() -> dict[tuple[str, str], str]:
    """(extra, package) -> how it is used; the core has no extra."""
    page = (ROOT / "docs" / "dependencies.md").read_text(encoding="utf-8")
    rows = [found for line in page.splitlines() if (found := ROW.match(line))]
    return {(row["extra"] or "", row["package"]): row["used"] for row in rows}


def _declared() -> list[tuple[str, str]]:
    groups = {"": PROJECT["dependencies"], **PROJECT["optional-dependencies"]}
    return [(extra, re.split(r"[^\w.-]", line)[0]) for extra, lines in groups.items() for line in lines]


@cache
def _names(path: Path) -> set[str]:
    """The modules that a Python file imports, also by name."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and not node.level:
            found.add(str(node.module))
        elif isinstance(node, ast.Call) and node.args and isinstance(node.args[0], ast.Constant):
            called = getattr(node.func, "attr", getattr(node.func, "id", None))
            if called in LOADERS and isinstance(node.args[0].value, str):
                found.add(node.args[0].value)
    return found


@cache
def _imported(*folders: str) -> set[str]:
    """The modules of others that the Python files import."""
    files = [p for f in folders for p in (ROOT / f).rglob("*.py")] + list(ROOT.glob("*.py"))
    beside = [p for p in files if p.is_relative_to(ROOT / "tests") or p.parent == ROOT / "docs"]
    own = {"composcope", *SEPARATE, *(name for p in beside for name in (p.stem, p.parent.name))}
    found = {name.partition(".")[0] for path in files for name in _names(path)}
    return found - own - set(sys.stdlib_module_names) - {""}


PRODUCT = ("evaluation", "hooks", "probes", "experiments")


def test_the_page_lists_exactly_the_packages_that_are_declared() -> None:
    assert sorted(_listed()) == sorted(_declared())


@pytest.mark.parametrize(("extra", "package"), _declared(), ids=lambda value: value or "core")
def test_a_declared_package_is_used(extra: str, package: str) -> None:
    kind, _, name = _listed()[extra, package].strip("`").rpartition(" ")
    if kind == "import":
        assert name in _imported(*PRODUCT, *(("tests", "docs") if extra in ("dev", "docs", "notebook") else ()))
    elif kind == "python -m":
        texts = [(ROOT / f).read_text(encoding="utf-8") for f in ("Makefile", "tests/test_wheel.py")]
        assert any(re.search(rf"-m {name}\b", text) or f'"-m", "{name}"' in text for text in texts)
    else:
        assert kind == "through" and any(other.startswith(name) for _, other in _declared() if other != package)


def test_every_package_that_is_imported_is_declared() -> None:
    known = {used.strip("`").removeprefix("import ") for used in _listed().values() if used.startswith("`import ")}
    assert _imported(*PRODUCT) <= known
    through = {package for (_, package), used in _listed().items() if used.startswith("through ")}
    assert _imported(*PRODUCT, "tests", "docs", "benchmarks") <= known | through, "a test may import what they bring"
