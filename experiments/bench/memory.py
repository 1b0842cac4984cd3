"""Peak memory of one way of one task: ``python -m composcope.experiments.bench.memory PRESET TASK WAY``.

A process of its own, since memory that an allocator has once had is not given back: the model is loaded and run once on
two tokens, the high-water mark is reset where the system can do that, then the way runs once.
"""

from __future__ import annotations

import json
import resource
import sys
from pathlib import Path

import torch

from .presets import Models, preset
from .tasks import build

_STATUS, _RESET = Path("/proc/self/status"), Path("/proc/self/clear_refs")


def _status(field: str) -> float:
    """Kilobytes from the process status, in MB."""
    line = next(x for x in _STATUS.read_text().splitlines() if x.startswith(field + ":"))
    return int(line.split()[1]) / 1024


def _mark() -> float:
    """Resident memory now, in MB; the high-water mark starts from here on Linux."""
    if _STATUS.is_file():
        _RESET.write_text("5")
        return _status("VmRSS")
    return _peak()


def _peak() -> float:
    if _STATUS.is_file():
        return _status("VmHWM")
    unit = 2**20 if sys.platform == "darwin" else 2**10  # bytes on macOS, kilobytes elsewhere
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit


def main(name: str, task: str, way: str) -> float:
    """Megabytes above the loaded model."""
    torch.set_num_threads(1)
    chosen = preset(name)
    lm = Models().get(chosen.shape_of(task))
    run = build(chosen, task, lm).way(way)
    with torch.no_grad():
        lm.model(torch.tensor([[3, 4]], device=lm.device))
    if lm.device.type == "cuda":
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        run()
        return (torch.cuda.max_memory_allocated() - before) / 2**20
    before = _mark()
    run()
    return _peak() - before


if __name__ == "__main__":
    print(json.dumps({"peak_mb": main(*sys.argv[1:4])}))
