"""The notebooks are kept with the outputs of a whole run, small enough for a repository, and they still run."""

from __future__ import annotations

import importlib.util
import json
import shutil
from pathlib import Path
from typing import Any

import pytest

DOCS = Path(__file__).resolve().parents[2] / "docs"
NOTEBOOKS = sorted(DOCS.glob("*.ipynb"))


def _code(path: Path) -> list[dict[str, Any]]:
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    return [cell for cell in cells if cell["cell_type"] == "code"]


def _words(cells: list[dict[str, Any]]) -> list[str]:
    return ["".join(o.get("text", "")) for cell in cells for o in cell["outputs"] if o["output_type"] == "stream"]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=[path.stem for path in NOTEBOOKS])
def test_every_cell_of_a_notebook_has_its_output_from_one_run_without_errors(path: Path) -> None:
    cells = _code(path)
    assert [cell["execution_count"] for cell in cells] == list(range(1, len(cells) + 1))
    assert all(cell["outputs"] for cell in cells)
    assert not any(o["output_type"] == "error" or o.get("name") == "stderr" for c in cells for o in c["outputs"])
    assert sum("image/png" in o.get("data", {}) for cell in cells for o in cell["outputs"]) >= 2
    assert not any("/tmp/" in text or str(Path.home()) in text for text in _words(cells)), "folders of one machine"
    assert path.stat().st_size < 400_000


@pytest.mark.slow
@pytest.mark.parametrize("path", NOTEBOOKS, ids=[path.stem for path in NOTEBOOKS])
def test_a_notebook_runs_and_prints_what_it_printed(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for needed in ("nbformat", "nbclient", "ipykernel"):
        pytest.importorskip(needed, reason="needs the extra notebook: pip install 'composcope[notebook]'")
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    spec = importlib.util.spec_from_file_location("pictures", DOCS / "pictures.py")
    assert spec is not None and spec.loader is not None
    pictures = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(pictures)
    copy = Path(shutil.copy(path, tmp_path))
    pictures.run_notebook(copy)
    assert _words(_code(copy)) == _words(_code(path)), "its outputs are of older code: make pictures"
