"""The documentation as a site: it builds without a warning, and the reference has every public name of the package."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import composcope as cs

pytestmark = pytest.mark.long

ROOT = Path(__file__).resolve().parents[2]


def test_the_site_builds_strictly_and_has_every_public_name(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "-q", "-d", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    reference = "".join(p.read_text(encoding="utf-8") for p in (tmp_path / "reference").glob("*.html"))
    assert "&gt;&gt;&gt;" in reference and "<blockquote>" not in reference, "examples of docstrings are blocks of code"
    missing = [n for n in dir(cs) if n not in ("__version__", "plot", "diagnose") and f'.{n}"' not in reference]
    assert not missing
    gallery = (tmp_path / "gallery.html").read_text(encoding="utf-8")
    assert "composcope plot collapse-curve RUNS" in gallery
    pages = [p.read_text(encoding="utf-8") for p in tmp_path.rglob("*.html")]
    assert not [page for page in pages if "```" in page], "a block of code whose fence the site does not understand"
    home = (tmp_path / "index.html").read_text(encoding="utf-8")
    assert "Find out where, and why" in home and 'src="demo.png"' in home and "make demo" in home
    assert not [page for page in pages if "fonts.googleapis" in page], "nothing is asked of another server"
