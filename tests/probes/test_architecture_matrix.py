"""docs/architectures.md says what the code does; the package has explicit names and loads nothing heavy early."""

from __future__ import annotations

import re
import subprocess
import sys

import architecture_matrix as matrix
import pytest
from tiny_models import REFUSED, tiny

import composcope.probes as probes
from composcope.errors import ModelError
from composcope.hooks import load_model


def _documented() -> str:
    return matrix.DOCUMENT.read_text(encoding="utf-8").split(matrix.BEGIN)[1].split(matrix.END)[0].strip()


def _tables(text: str) -> dict[str, dict[str, list[str]]]:
    """Cells by backend and architecture."""
    out: dict[str, dict[str, list[str]]] = {}
    for block in text.split("\n\n"):
        lines = [[c.strip() for c in line.strip("|").split("|")] for line in block.splitlines() if line[0] == "|"]
        if lines:
            assert lines[0][1:] == ["sites", *matrix.PROBES]
            out[lines[0][0]] = {line[0]: line[1:] for line in lines[2:]}
    return out


def test_the_document_has_every_architecture_on_every_backend() -> None:
    tables = _tables(_documented())
    assert set(tables) == set(matrix.BACKENDS)
    assert all(set(t) == set(matrix.NAMES[b]) for b, t in tables.items())
    marks = {c for t in tables.values() for cells in t.values() for c in cells}
    assert all(re.fullmatch(r"✓|not [a-z_, ]+|– \[\d+\]", m) for m in marks), marks


@pytest.mark.parametrize("name", ["llama", "gemma2", "qwen3_moe", "gpt_neox", "deepseek_v3", "falcon"])
def test_an_architecture_does_what_its_line_says(name: str) -> None:
    cells, notes = matrix.row(name, "transformers"), []
    found = [cells[c].mark(notes) for c in ("sites", *matrix.PROBES)]
    said = _tables(_documented())["transformers"][name]
    assert [re.sub(r"\d+", "", m) for m in found] == [re.sub(r"\d+", "", m) for m in said]
    assert all(note in _documented() for note in notes)


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_resolved_is_refused_when_it_is_opened_with_the_reason(name: str) -> None:
    with pytest.raises(ModelError, match=REFUSED[name][1]) as error:
        load_model(tiny(name))
    assert "\n" not in str(error.value)


@pytest.mark.slow
def test_the_whole_matrix_is_as_documented(capsys: pytest.CaptureFixture[str]) -> None:
    if matrix.installed() != list(matrix.BACKENDS):
        pytest.skip("transformer_lens and nnsight are not both installed")
    found = matrix.table(matrix.NAMES, list(matrix.BACKENDS))
    with capsys.disabled():
        print(f"\n{found}")
    assert found.strip() == _documented()


def test_importing_the_package_does_not_load_torch_and_names_resolve_when_used() -> None:
    code = "import sys, composcope.probes as p; assert 'torch' not in sys.modules; print(p.between.__module__)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "composcope.probes.contrast"


@pytest.mark.parametrize("name", probes.__all__)
def test_every_exported_name_exists(name: str) -> None:
    assert getattr(probes, name) is not None


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = probes.nothing
