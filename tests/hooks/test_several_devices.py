"""Models whose blocks lie on two devices are read, edited and probed as on one."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.parametrize("names", ["llama gpt2", pytest.param("mixtral", marks=pytest.mark.long)])
def test_blocks_on_a_second_device_give_the_same_numbers(names: str) -> None:
    script = Path(__file__).parents[1] / "second_device.py"
    done = subprocess.run([sys.executable, script, *names.split()], capture_output=True, text=True)
    if done.stderr.strip() == "cannot":
        pytest.skip("this version of torch cannot pretend another device")
    assert (done.returncode, done.stdout) == (0, ""), done.stderr[-2000:]
