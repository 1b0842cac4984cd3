"""The notebook runs from top to bottom, shows its figures, and is kept without outputs."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

NOTEBOOK = Path(__file__).resolve().parents[2] / "docs" / "from-failure-to-mechanism.ipynb"


def test_the_notebook_runs_and_shows_its_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    nbformat = pytest.importorskip("nbformat", reason="needs the extra notebook: pip install 'composcope[notebook]'")
    nbclient = pytest.importorskip("nbclient", reason="needs the extra notebook: pip install 'composcope[notebook]'")
    pytest.importorskip("ipykernel", reason="needs the extra notebook: pip install 'composcope[notebook]'")
    site = str(NOTEBOOK.parents[1] / ".site")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, (site, os.environ.get("PYTHONPATH")))))
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert not any(cell.outputs or cell.execution_count for cell in code), "clear the outputs before committing"
    nbclient.NotebookClient(notebook, timeout=300, kernel_name="python3").execute()
    pictures = [o for cell in code for o in cell.outputs if "image/png" in o.get("data", {})]
    assert len(pictures) >= 3
    printed = "".join(o.text for cell in code for o in cell.outputs if o.output_type == "stream" and o.name == "stdout")
    assert "case set both-right-whole-wrong" in printed
    assert "silenced: next token" in printed
