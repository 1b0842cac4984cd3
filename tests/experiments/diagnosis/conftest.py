"""The shipped organism that the tests of the diagnosis open."""

from __future__ import annotations

import pytest

from composcope.evaluation.engines.local import LocalEngine
from composcope.experiments.organism import weights


@pytest.fixture(scope="session")
def engine() -> LocalEngine:
    return LocalEngine(weights.path("control"))
