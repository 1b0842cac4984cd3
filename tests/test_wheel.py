"""The built wheel holds the package and nothing else, and works outside the tree."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


def _run(*command: str, cwd: Path, env: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(command, cwd=cwd, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{' '.join(command)}\n{done.stdout[-2000:]}\n{done.stderr[-4000:]}"
    return done


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built from a copy of what is under version control or about to be."""
    out = tmp_path_factory.mktemp("wheel")
    return _built(_source(out / "source"), out)


def _source(source: Path) -> Path:
    listed = _run("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", cwd=ROOT).stdout
    for name in filter(None, listed.split("\0")):
        if (ROOT / name).is_file():
            (source / name).parent.mkdir(parents=True, exist_ok=True)
            (source / name).write_bytes((ROOT / name).read_bytes())
    return source


def _built(source: Path, out: Path) -> Path:
    _run(sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(out), str(source), cwd=out)
    return next(out.glob("*.whl"))


@pytest.mark.long
def test_the_wheel_holds_composcope_and_nothing_else_at_top_level(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    assert not [n for n in names if n.startswith("composcope/site/")], "the site ships although nobody has built it"
    assert {n.split("/")[0].removesuffix("-0.1.0.dist-info") for n in names} == {"composcope"}
    assert not [n for n in names if n.startswith("composcope/tests")]
    assert [n for n in names if n.endswith("weights/control/model.safetensors")], "the organisms do not ship"
    assert [n for n in names if "report/templates/" in n], "the report template does not ship"
    world = {n.rsplit("/", 1)[1] for n in names if "/benchmarks/world/" in n}
    kept = {p.name for p in (ROOT / "evaluation" / "benchmarks" / "world").iterdir() if p.is_file()}
    assert world == kept, "tables of the benchmark world do not ship"


@pytest.mark.long
def test_a_wheel_that_was_built_after_the_site_carries_it_and_the_command_names_its_home_page(tmp_path: Path) -> None:
    source, site = _source(tmp_path / "source"), tmp_path / "installed"
    (source / "site" / "search").mkdir(parents=True)
    (source / "site" / "index.html").write_text("<title>composcope</title>", encoding="utf-8")
    (source / "site" / "search" / "search_index.js").write_text("var __index = {}", encoding="utf-8")
    wheel = _built(source, tmp_path)
    assert "composcope/site/search/search_index.js" in zipfile.ZipFile(wheel).namelist()
    _run(sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--target", str(site), str(wheel), cwd=tmp_path)
    env = {**os.environ, "PYTHONPATH": str(site)}
    said = _run(sys.executable, "-m", "composcope", "docs", cwd=tmp_path, env=env).stdout.strip()
    assert Path(said) == site / "composcope" / "site" / "index.html" and Path(said).is_file()


@pytest.mark.slow
def test_the_installed_wheel_runs_a_tiny_study_outside_the_tree(wheel: Path, tmp_path: Path) -> None:
    site = tmp_path / "site"
    _run(sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--target", str(site), str(wheel), cwd=tmp_path)
    env = {**os.environ, "PYTHONPATH": str(site), "OMP_NUM_THREADS": "1"}
    where = _run(sys.executable, "-c", "import composcope; print(composcope.__file__)", cwd=tmp_path, env=env).stdout
    assert Path(where.strip()).is_relative_to(site)
    _run(
        *(sys.executable, "-m", "composcope", "investigate"),
        *("--model", "organism:control", "--benchmark", "organism:mixed", "--limit", "40", "--out", "study"),
        cwd=tmp_path,
        env=env,
    )
    metrics = json.loads((tmp_path / "study" / "metrics.json").read_text())
    assert {m["metric"] for m in metrics["metrics"]} >= {"composition", "both", "gap"}
    assert (tmp_path / "study" / "report.html").is_file()
