"""The package's front door: explicit names, nothing heavy before it is needed."""

from __future__ import annotations

import subprocess
import sys

import pytest

import composcope.probes as probes


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
