"""What a figure shows, without drawing it: titles, labels, legends, texts, and the data of lines, bars and points."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from references.reduced import number, summed

FEW = 6


def marks(sheet: Figure) -> dict[str, Any]:
    found: dict[str, Any] = {"size": [number(v) for v in sheet.get_size_inches()]}
    found["texts"] = [t.get_text() for t in sheet.texts if t.get_text()]
    found["legends"] = [t.get_text() for legend in sheet.legends for t in legend.get_texts()]
    for i, ax in enumerate(sheet.axes):
        legend = ax.get_legend()
        words = {
            "title": ax.get_title() or ax.get_title(loc="left"), "x": ax.get_xlabel(), "y": ax.get_ylabel(),
            "texts": [t.get_text() for t in ax.texts if t.get_text()],
            "legend": [t.get_text() for t in legend.get_texts()] if legend else [],
            "ticks": [[t.get_text() for t in axis.get_ticklabels()] for axis in (ax.xaxis, ax.yaxis)],
            "limits": _data([*ax.get_xlim(), *ax.get_ylim()]) if ax.axison else [],
            "lines": [_data(np.asarray(line.get_xydata(), dtype=float)) for line in ax.lines],
            "bars": _data([v for p in ax.patches if isinstance(p, Rectangle) for v in p.get_bbox().bounds]),
            "points": [_data(np.ma.filled(c.get_offsets(), np.nan)) for c in ax.collections],
            "images": [summed(np.ma.filled(np.ma.asarray(one.get_array(), dtype=float), np.nan)) for one in ax.images],
        }  # fmt: skip
        found[f"panel {i}"] = {k: v for k, v in words.items() if v not in ([], "", [[], []])}
    return found


def _data(values: Any) -> Any:
    array = np.asarray(values, dtype=float).ravel()
    return summed(array) if array.size > FEW else [number(float(v)) for v in array]
