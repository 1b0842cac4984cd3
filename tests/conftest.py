"""Shared fixtures, and the guard that every module is imported under one name only."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import shapes
import torch
from browsing import chromium
from hypothesis import HealthCheck, settings

shapes.watch(("composcope.hooks", "composcope.probes"))
# No test is timed: a busy machine may take long over an example.
settings.register_profile("patient", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("patient")
SHARED = Path(__file__).resolve().parents[2] / "shared"


# A shell that starts the tests in the background hands down an ignored SIGINT; child processes that tests
# interrupt must not inherit it.
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session", autouse=True)
def _one_thread() -> None:
    torch.set_num_threads(1)


@pytest.fixture(scope="session", autouse=True)
def _no_waiting_for_the_disk() -> Iterator[None]:
    """Files need not outlast the tests. Those about syncing count the calls, and processes of their own sync."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", os.fstat)
        yield


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """One headless Chromium for all tests of pages: a process can run only one at a time."""
    with chromium() as running:
        yield running


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of third-party data beside the checkout; skips where it is not there."""
    if not SHARED.is_dir():
        pytest.skip(f"{SHARED} is not there: third-party data are not part of the project")
    return SHARED


NEEDS = (
    "../shared",
    "shared is not there",
    "CUDA",
    "only root can",
    "mount",
    "namespace",
    "Linux",
    "registry",
    "/proc",
    "Zstandard",
    "harness",
)
"""What a machine may lack: skips for any other reason fail the session where ``COMPOSCOPE_STRICT_SKIPS`` is set."""


def pytest_sessionfinish(session: pytest.Session) -> None:
    bare = [m for m in ("evaluation", "hooks", "probes", "experiments") if m in sys.modules]
    assert not bare, f"imported under a bare name: {bare}; import composcope.{bare[0]}"
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if reporter is None or not os.environ.get("COMPOSCOPE_STRICT_SKIPS"):
        return
    reasons = {(str(r.nodeid), str(r.longrepr[-1])) for r in reporter.stats.get("skipped", ())}
    unexpected = sorted(f"{where}: {why}" for where, why in reasons if not any(n in why for n in NEEDS))
    if unexpected:
        print("\nSKIPPED FOR A REASON THAT IS NOT EXPECTED HERE:", *unexpected, sep="\n  ", file=sys.__stderr__)
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
