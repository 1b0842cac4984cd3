"""``composcope doctor``: check this machine, and say how to fix what is missing."""

import os
import shutil
import sys
import tempfile
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from ...model_files import offline
from ...terminal import Bar, no_bar
from ..models.resolve import resolve_model
from ..organism.weights import DOSES
from ..run import provenance

REQUIRED = ("torch", "transformers", "numpy", "scipy", "einops", "safetensors", "matplotlib")
EXTRAS = {"transformer_lens": "lens", "nnsight": "lens", "starlette": "view", "datasets": "data"}
_ENOUGH = 1 << 30


def examine(progress: Bar = no_bar) -> list[dict[str, Any]]:
    """One row per check: ``check``, ``ok``, ``required``, ``value`` and, if the check fails, ``fix``."""
    checks = (_python, _libraries, _extras, _device, _offline, _disk, _organisms)
    rows: list[dict[str, Any]] = []
    with progress("checking this machine", len(checks)) as advance:
        for check in checks:
            rows += check()
            advance(1)
    return rows


def _row(check: str, ok: bool, value: Any, fix: str | None = None, *, required: bool = True) -> dict[str, Any]:
    return {"check": check, "ok": ok, "required": required, "value": value, "fix": None if ok else fix}


def _python() -> list[dict[str, Any]]:
    version = sys.version.split()[0]
    return [
        _row("python", (3, 11) <= sys.version_info[:2] < (3, 14), version, "use Python 3.11, 3.12 or 3.13"),
        _row("composcope", True, provenance.code()),
        _row("machine", True, provenance.machine()),
    ]


def _libraries() -> list[dict[str, Any]]:
    found = provenance.libraries(REQUIRED)
    return [_row(name, found[name] is not None, found[name], f"pip install {name}") for name in REQUIRED]


def _extras() -> list[dict[str, Any]]:
    there = {name: find_spec(name) is not None for name in EXTRAS}
    return [
        _row(name, ok, ok, f"pip install 'composcope[{EXTRAS[name]}]'", required=False) for name, ok in there.items()
    ]


def _device() -> list[dict[str, Any]]:
    import torch

    if torch.cuda.is_available():
        free, total = torch.cuda.mem_get_info()
        text = f"{torch.cuda.get_device_name()}, {free / 2**30:.1f} of {total / 2**30:.1f} GiB free"
    else:
        text = f"cpu, {torch.get_num_threads()} threads"
    return [_row("device", True, text)]


def _offline() -> list[dict[str, Any]]:
    text = "HF_HUB_OFFLINE is set: hub ids come from the cache" if offline() else "hub ids may be downloaded"
    return [_row("offline", True, text)]


def _disk() -> list[dict[str, Any]]:
    rows = []
    for name, folder in (("disk here", Path.cwd()), ("disk for temporary files", Path(tempfile.gettempdir()))):
        free = shutil.disk_usage(folder).free
        fix = f"free at least 1 GiB at {folder}"
        rows.append(_row(name, free >= _ENOUGH, f"{free / 2**30:.1f} GiB free", fix, required=False))
    writable = os.access(Path.cwd(), os.W_OK)
    rows.append(
        _row("folder is writable", writable, str(Path.cwd()), "change to a folder you can write to", required=False)
    )
    return rows


def _organisms() -> list[dict[str, Any]]:
    rows = []
    for dose in DOSES:
        try:
            rows.append(_row(f"organism:{dose}", True, resolve_model(f"organism:{dose}").location))
        except Exception as e:
            rows.append(_row(f"organism:{dose}", False, str(e), "composcope organism train --all", required=False))
    return rows


def check_lines(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """The rows as text; a failed check comes with its fix."""
    lines = []
    for row in rows:
        state = "ok " if row["ok"] else "FIX" if row["required"] else "-  "
        lines.append(f"{state} {row['check']}: {row['value']}" + (f"  -> {row['fix']}" if row["fix"] else ""))
    return lines
