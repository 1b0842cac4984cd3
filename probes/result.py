"""ProbeResult: the result of every probe, a table with n and intervals and named tensors.

result.save("probes/neurons")  # table.csv, values.csv, tensors.safetensors, result.json
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch
from safetensors.torch import save_file

from ..errors import InputError
from ..files import Row, put_in_place, to_csv


@dataclass(frozen=True)
class ProbeResult:
    """One probe on one or more groups of cases."""

    probe: str
    table: Sequence[Row]
    """Rows with at least ``quantity``, ``group``, ``n``, ``value``, ``low``, ``high``, ``interval`` (method)."""
    tensors: Mapping[str, torch.Tensor] = field(default_factory=dict)
    axes: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Axis names of each tensor, outermost first."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    """Every choice that the numbers depend on (rule, steps, thresholds, dtype, alignment, ...)."""
    warnings: Sequence[str] = ()
    values: Sequence[Row] = ()
    """One number per example: ``case``, ``role``, ``kind``, ``group``, ``cluster``, ``quantity``, ``value``; used to
    compare two runs."""

    def __post_init__(self) -> None:
        """Raise ``InputError`` for rows, tensors and axes that cannot be written."""
        for what, rows in (("table", self.table), ("values", self.values)):
            if not (isinstance(rows, Sequence) and all(isinstance(row, Mapping) for row in rows)):
                raise InputError(f"probe {self.probe}: {what} is no list of rows; give one dictionary per row")
        for name, tensor in self.tensors.items():
            if not isinstance(tensor, torch.Tensor):
                found = type(tensor).__name__
                raise InputError(f"probe {self.probe}: tensor {name!r} is of type {found}; give a torch.Tensor")
            axes = self.axes.get(name)
            if axes is not None and len(axes) != tensor.dim():
                raise InputError(
                    f"probe {self.probe}: tensor {name!r} of shape {tuple(tensor.shape)} has the axes {tuple(axes)}; "
                    "name each axis once"
                )

    def save(self, folder: str | Path) -> Path:
        """Write ``table.csv``, ``tensors.safetensors``, ``values.csv`` and ``result.json`` (axes, settings, warnings).

        The files are written to a temporary folder and moved when all are complete, so that a failure or a full disk
        leaves the earlier files unchanged. What a killed process leaves ends with ``.tmp``; see ``files.sweep``.
        """
        folder = Path(folder)
        folder.parent.mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory(prefix=f".{folder.name}.", suffix=".tmp", dir=folder.parent) as temporary:
            self._write(Path(temporary))
            folder.mkdir(exist_ok=True)
            for name in ("table.csv", "tensors.safetensors", "values.csv", "result.json"):
                made = Path(temporary) / name
                if made.is_file():
                    put_in_place(made, folder / name)
                else:
                    (folder / name).unlink(missing_ok=True)
        return folder

    def _write(self, folder: Path) -> None:
        (folder / "table.csv").write_text(to_csv(self.table), encoding="utf-8")
        if self.values:
            (folder / "values.csv").write_text(to_csv(self.values), encoding="utf-8")
        if self.tensors:
            tensors = {k: v.detach().cpu().contiguous().clone() for k, v in self.tensors.items()}
            save_file(tensors, folder / "tensors.safetensors")
        about = {
            "schema": 1,
            "probe": self.probe,
            "axes": {k: list(v) for k, v in self.axes.items()},
            "settings": dict(self.settings),
            "warnings": list(self.warnings),
        }
        (folder / "result.json").write_text(json.dumps(about, indent=1, default=str), encoding="utf-8")
