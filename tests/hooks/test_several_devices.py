"""Models whose blocks lie on two devices are read, edited and probed as on one."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest


def test_blocks_on_a_second_device_give_the_same_numbers() -> None:
    script = Path(__file__).parents[1] / "second_device.py"
    done = subprocess.run([sys.executable, script, "llama", "gpt2", "mixtral"], capture_output=True, text=True)
    if done.stderr.strip() == "cannot":
        pytest.skip("this version of torch cannot pretend another device")
    assert (done.returncode, done.stdout) == (0, ""), done.stderr[-2000:]
