"""Hands the maker of synthetic run folders to the tests."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

_FILE = Path(__file__).resolve().parents[1] / "synthetic_runs.py"


@pytest.fixture(scope="session")
def synthetic() -> ModuleType:
    """The module ``synthetic_runs``: ``make_run``, ``rate``, ``write_probe``."""
    if "synthetic_runs" not in sys.modules:
        spec = importlib.util.spec_from_file_location("synthetic_runs", _FILE)
        assert spec is not None and spec.loader is not None
        sys.modules["synthetic_runs"] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(sys.modules["synthetic_runs"])
    return sys.modules["synthetic_runs"]
