"""The house rules that no linter knows: what ships, what imports what, what is loaded when."""

from __future__ import annotations

import ast
import os
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from shapes import SHAPED

ROOT = Path(__file__).resolve().parents[1]
LOCKED = ROOT / "evaluation" / "sandbox" / "program.py"
"""Runs programs of a model, in a process that can reach nothing."""
PACKAGES = ("evaluation", "hooks", "probes", "experiments")
ALLOWED = {
    "evaluation": {"evaluation"},
    "hooks": {"hooks"},
    "probes": {"probes", "hooks", "evaluation"},
    "experiments": {"experiments", "probes", "hooks", "evaluation"},
}


def _modules() -> list[Path]:
    return sorted(p for top in PACKAGES for p in (ROOT / top).rglob("*.py"))


@cache
def _nodes(path: Path) -> list[ast.AST]:
    return list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))


def _imported_package(path: Path, node: ast.ImportFrom) -> str | None:
    """Top-level folder that a relative import reaches, None for anything else."""
    if not node.level:
        return None
    folder = path.relative_to(ROOT).parts[:-1]
    target = [*folder[: len(folder) - node.level + 1], *(node.module or "").split(".")]
    return next((p for p in target if p), None)


def test_pyproject_lists_exactly_the_folders_that_are_packages() -> None:
    listed = set(tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["packages"])
    found = {
        ".".join(("composcope", *p.parent.relative_to(ROOT).parts))
        for p in ROOT.glob("*/**/__init__.py")
        if p.relative_to(ROOT).parts[0] in PACKAGES
    }
    assert listed == found | {"composcope"}


@pytest.mark.parametrize("path", _modules(), ids=lambda p: str(p.relative_to(ROOT)))
def test_imports_only_go_down(path: Path) -> None:
    top = path.relative_to(ROOT).parts[0]
    for node in _nodes(path):
        if isinstance(node, ast.ImportFrom):
            target = _imported_package(path, node)
            if target in PACKAGES:
                assert target in ALLOWED[top], f"{path}:{node.lineno}: {top} must not import {target}"


@cache
def _imported_modules(path: Path) -> set[Path]:
    """The modules of the house that a module takes names from: at its top, in functions, for types."""
    found = set()
    for node in _nodes(path):
        if isinstance(node, ast.ImportFrom) and node.level:
            folder = path.parents[node.level - 1].joinpath(*(node.module or "").split("."))
            for name in node.names:
                near = (folder / f"{name.name}.py", folder / name.name / "__init__.py", folder.with_suffix(".py"))
                found.add(next((p for p in near if p.is_file()), folder / "__init__.py"))
    return found - {path}


def test_no_imports_go_in_circles() -> None:
    graph = {path: _imported_modules(path) for path in _modules()}
    assert graph[ROOT / "experiments" / "cli" / "root.py"] > {ROOT / "experiments" / "cli" / "runs.py"}
    TopologicalSorter(graph).prepare()  # CycleError names the modules of a circle


def _floors(package: str) -> dict[str, int]:
    """The floor of each room of a package: it stands above all rooms that it imports.

    A room is a folder of the package, or a module that stands flat in it. Raises ``CycleError``, which names the rooms
    of a circle.
    """
    top = ROOT / package
    rooms: dict[str, set[str]] = {}
    for path in top.rglob("*.py"):
        room = path.relative_to(top).parts[0]
        used = {p.relative_to(top).parts[0] for p in _imported_modules(path) if p.is_relative_to(top)}
        rooms.setdefault(room, set()).update(used - {room, "__init__.py"})
    floor: dict[str, int] = {}
    for room in TopologicalSorter(rooms).static_order():
        floor[room] = 1 + max((floor[used] for used in rooms.get(room, ())), default=0)
    return floor


def test_no_import_between_the_rooms_of_a_package_runs_up() -> None:
    floor = {package: _floors(package) for package in PACKAGES}
    evaluation, hooks, probes = floor["evaluation"], floor["hooks"], floor["probes"]
    assert evaluation["graded.py"] < evaluation["protocols"] < evaluation["analyses"]
    assert hooks["anatomy.py"] < hooks["model.py"] < hooks["interchange.py"]
    assert probes["examples.py"] < probes["patching"]


def test_the_rooms_of_experiments_stand_on_at_most_eight_floors() -> None:
    floor = _floors("experiments")
    assert floor["config.py"] < floor["run"] < floor["investigate.py"] < floor["cli"]
    assert max(floor.values()) <= 8, sorted(floor.items(), key=lambda item: item[1])


def test_no_module_of_the_product_is_longer_than_400_lines() -> None:
    lengths = {str(p.relative_to(ROOT)): len(p.read_text(encoding="utf-8").splitlines()) for p in _modules()}
    assert {path: n for path, n in lengths.items() if n > 400} == {}


def test_importing_the_package_and_the_command_line_does_not_load_torch() -> None:
    code = "import sys, composcope, composcope.experiments.cli; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_no_module_evaluates_or_unpickles_data() -> None:
    for path in _modules():
        for node in _nodes(path):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                assert node.func.id not in ("eval", "exec") or path == LOCKED, f"{path}:{node.lineno}"
            if isinstance(node, ast.Import):
                assert not {a.name for a in node.names} & {"pickle", "dill", "cloudpickle"}, f"{path}:{node.lineno}"


def test_every_document_says_that_its_schema_is_1() -> None:
    made = [(path, node) for path in _modules() for node in _nodes(path)
            if isinstance(node, ast.Dict)]  # fmt: skip
    said = [(str(path), value.value) for path, node in made for key, value in zip(node.keys, node.values, strict=True)
            if isinstance(key, ast.Constant) and key.value == "schema" and isinstance(value, ast.Constant)]  # fmt: skip
    assert len(said) > 20 and [one for one in said if one[1] != 1] == []


@pytest.mark.parametrize(
    ("why", "strict", "fails"),
    [
        ("Skipped: the browser does not start today", True, True),
        ("Skipped: the browser does not start today", False, False),
        ("Skipped: ../shared is not there: third-party data are not part of the project", True, False),
        ("Skipped: needs a CUDA device", True, False),
    ],
)
def test_a_skip_for_a_reason_that_is_not_expected_fails_the_session(
    why: str, strict: bool, fails: bool, pytestconfig: pytest.Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    conftest: Any = pytestconfig.pluginmanager.get_plugin(str(ROOT / "tests" / "conftest.py"))
    monkeypatch.setenv("COMPOSCOPE_STRICT_SKIPS", "1" if strict else "")
    said = SimpleNamespace(stats={"skipped": [SimpleNamespace(nodeid="test_it", longrepr=("test.py", 1, why))]})
    session = SimpleNamespace(
        config=SimpleNamespace(pluginmanager=SimpleNamespace(get_plugin=lambda name: said)), exitstatus=0
    )
    conftest.pytest_sessionfinish(session)
    assert bool(session.exitstatus) == fails


def test_a_python_that_makes_no_environments_is_one_clear_line(tmp_path: Path) -> None:
    for name in ("pyproject.toml", "constraints.txt"):
        (tmp_path / name).touch()
    base = tmp_path / "python3"
    base.write_text(f'#!/bin/sh\ncase "$2" in *ensurepip*) exit 1 ;; esac\nexec {sys.executable} "$@"\n')
    base.chmod(0o755)
    plain = {k: v for k, v in os.environ.items() if k not in ("NO_INSTALL", "MAKEFLAGS", "MAKEOVERRIDES", "MFLAGS")}
    command = ["make", "-f", str(ROOT / "Makefile"), f"BASE={base}", "install"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, env=plain)
    said = [line for line in done.stderr.splitlines() if not line.startswith("make")]
    assert done.returncode != 0 and len(said) == 1 and "apt-get install python3-venv" in said[0]
    assert not (tmp_path / ".venv").exists()


@pytest.mark.parametrize(
    ("gpu", "options", "small"),
    [("", [], True), ("nvidia-smi", [], False), ("rocminfo", [], False), ("", ["TORCH_CPU="], False)],
)
@pytest.mark.skipif(sys.platform != "linux", reason="torch has a CPU build of its own on Linux only")
def test_the_small_build_of_torch_is_installed_and_said_only_where_no_gpu_is_seen(
    tmp_path: Path, gpu: str, options: list[str], small: bool
) -> None:
    for name in ("pyproject.toml", "constraints.txt"):
        (tmp_path / name).touch()
    tools = tmp_path / "bin"
    tools.mkdir()
    for name in ("sh", "make", "uname", "mkdir", "ln", "touch", "chmod", *([gpu] if gpu else [])):
        (tools / name).symlink_to(str(shutil.which("true" if name == gpu else name)))
    base = tmp_path / "python3"
    # what it installs with only writes down what it was called with
    stub = """#!/bin/sh
[ "$2" = venv ] || exit 0
mkdir -p "$3/bin"
printf '#!/bin/sh\\necho "$@" >> called\\n' > "$3/bin/python"
chmod +x "$3/bin/python"
"""
    base.write_text(stub)
    base.chmod(0o755)
    done = subprocess.run(
        ["make", "-f", str(ROOT / "Makefile"), f"BASE={base}", *options, "install"],
        cwd=tmp_path, capture_output=True, text=True, env={"PATH": str(tools)},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    called = (tmp_path / "called").read_text().splitlines()
    assert any("--index-url https://download.pytorch.org/whl/cpu torch" in line for line in called) == small
    assert ("no GPU is seen" in done.stdout) == small and "-e ." in called[-1]


@pytest.mark.parametrize("fails", ["", "test", "demo", "lint", "test-real", "test-long"])
def test_a_change_lands_only_where_tests_demo_lint_real_model_and_long_tests_pass(tmp_path: Path, fails: str) -> None:
    run = tmp_path / ".ci" / "run"
    run.parent.mkdir()
    shutil.copy(ROOT / ".ci" / "run", run)
    tools = tmp_path / "bin"
    tools.mkdir()
    stub = f"""#!/bin/sh
echo "$1" >> "{tmp_path}/called"
[ "$1" = "{fails}" ] && exit 3
[ "$1" != demo ] || {{ mkdir -p runs/demo && echo page > runs/demo/report.html; }}
"""
    for name in ("make", "chromium"):
        (tools / name).write_text(stub)
        (tools / name).chmod(0o755)
    environment = {**os.environ, "PATH": f"{tools}:{os.environ['PATH']}"}
    done = subprocess.run([str(run)], env=environment, capture_output=True, text=True)
    called = (tmp_path / "called").read_text().split()
    assert (done.returncode == 0) == (not fails), done.stdout
    assert called[0] == "test" and (called[1:] == [] if fails == "test" else {"demo", "test-real"} < {*called})
    if not fails:
        assert sorted(called) == ["demo", "lint", "test", "test-long", "test-long", "test-real"]


def _without_shape(hint: ast.expr | None) -> bool:
    """Whether a type hint names a tensor outside jaxtyping's brackets."""
    if isinstance(hint, ast.Constant) and isinstance(hint.value, str):
        hint = ast.parse(hint.value, mode="eval").body
    if isinstance(hint, ast.Subscript) and isinstance(hint.value, ast.Name) and f"{hint.value.id}[" in SHAPED:
        return False
    if isinstance(hint, ast.Name):
        return hint.id == "Tensor"
    return hint is not None and any(_without_shape(h) for h in ast.iter_child_nodes(hint) if isinstance(h, ast.expr))


def _public_hints(node: ast.ClassDef | ast.Module, inside: str = "") -> Iterator[tuple[str, ast.expr | None]]:
    """Name and type hint of every parameter, result and field that others may use."""
    for child in node.body:
        if isinstance(child, ast.AnnAssign) and isinstance(node, ast.ClassDef) and isinstance(child.target, ast.Name):
            if not child.target.id.startswith("_"):
                yield inside + child.target.id, child.annotation
        elif isinstance(child, ast.FunctionDef) and (child.name in ("__init__", "__call__") or child.name[0] != "_"):
            arguments = child.args
            for a in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs):
                yield f"{inside}{child.name}({a.arg})", a.annotation
            yield f"{inside}{child.name} ->", child.returns
        elif isinstance(child, ast.ClassDef) and not child.name.startswith("_"):
            yield from _public_hints(child, f"{child.name}.")


def test_every_tensor_in_a_public_signature_of_hooks_and_probes_says_its_shape() -> None:
    bare, shaped = [], 0
    for path in (p for p in _modules() if p.relative_to(ROOT).parts[0] in ("hooks", "probes")):
        for name, hint in _public_hints(ast.parse(path.read_text(encoding="utf-8"))):
            bare += [f"{path.relative_to(ROOT)}: {name}"] if _without_shape(hint) else []
            shaped += hint is not None and "Tensor" in ast.unparse(hint)
    assert not bare and shaped > 200, (bare, shaped)
