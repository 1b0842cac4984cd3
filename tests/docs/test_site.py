"""The documentation as a site: it builds without a warning, the reference has every public name of the package, and a
reader who opens it from disk can search it.
"""

from __future__ import annotations

import subprocess
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from browsing import Visit, wait_until

import composcope as cs

pytestmark = pytest.mark.long

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("hooks", "probes", "evaluation", "probes.neurons", "probes.lookback", "probes.patching", "probes.readout",
            "probes.faithfulness", "probes.contrast")  # fmt: skip
"""Packages whose public names all stand in the reference."""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "-d", str(folder)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return folder


def test_the_site_builds_strictly_and_has_every_public_name(site: Path) -> None:
    reference = "".join(p.read_text(encoding="utf-8") for p in (site / "reference").glob("*.html"))
    assert "&gt;&gt;&gt;" in reference and "<blockquote>" not in reference, "examples of docstrings are blocks of code"
    missing = [n for n in dir(cs) if n != "__version__" and f'.{n}"' not in reference]
    assert not missing
    for package in PACKAGES:
        public = import_module(f"composcope.{package}").__all__
        assert not [n for n in public if f'.{n}"' not in reference], package
    gallery = (site / "gallery.html").read_text(encoding="utf-8")
    assert "composcope plot collapse-curve RUNS" in gallery
    pages = [p.read_text(encoding="utf-8") for p in site.rglob("*.html")]
    assert not [page for page in pages if "```" in page], "a block of code whose fence the site does not understand"
    home = (site / "index.html").read_text(encoding="utf-8")
    assert "Find out where, and why" in home and 'src="demo.png"' in home and "make demo" in home
    assert not [page for page in pages if "fonts.googleapis" in page], "nothing is asked of another server"


def test_the_reference_is_made_from_the_package_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """In the root, a link to the root itself and every environment would be read as parts of the package."""
    monkeypatch.syspath_prepend(str(ROOT / "docs"))
    folder = Path(import_module("site_links")._package()) / "composcope"
    assert {p.name for p in folder.iterdir() if p.is_dir()} == {"evaluation", "experiments", "hooks", "probes"}
    assert all(p.suffix == ".py" for p in folder.iterdir() if p.is_file()) and (folder / "__init__.py").is_file()
    config: Any = import_module("mkdocs.config").load_config(str(ROOT / "mkdocs.yml"))
    config.plugins.on_startup(command="build", dirty=False)
    made: Any = config.plugins.on_config(config).plugins["mkdocstrings"]
    assert Path(made.get_handler("python")._paths[0]).name.startswith("composcope-docs-"), "found before the root is"


def test_the_site_is_small_enough_for_the_wheel(site: Path) -> None:
    without_gallery = [p for p in site.rglob("*") if p.is_file() and p.parent.parent.name != "gallery"]
    assert sum(p.stat().st_size for p in without_gallery) < 8e6


def test_the_search_works_from_disk(browser: Any, site: Path) -> None:
    visit = Visit(browser, site / "reference" / "hooks.html")
    visit.page.click("[data-md-component=search-query]")
    visit.page.keyboard.type("lookback", delay=20)
    wait_until(visit.page, "document.querySelectorAll('.md-search-result__link').length > 0")
    found = [a.get_attribute("href") for a in visit.page.query_selector_all(".md-search-result__link")]
    assert any(href.split("#")[0].endswith("/probes/lookback.html") for href in found)
    visit.check()
