"""Encode arrays for data scripts: integers of 16 (or 8) bits between two limits, in base64.

A page opened from a file cannot fetch binary files, and decimal text would make the arrays five times as large.
"""

from __future__ import annotations

import base64
from typing import Any

import numpy as np
from numpy.typing import NDArray

MISSING = {16: 65535, 8: 255}
"""The code for NaN and infinities; finite values use the codes below it."""


def packed(array: NDArray[Any], bits: int = 16) -> dict[str, Any]:
    """``{shape, low, high, bits, data}``; value = low + (high - low) * number / (2 ** bits - 2).

    The error is at most half a step, (high - low) / 2 ** 17 with 16 bits.
    """
    values = np.asarray(array, dtype=np.float64)
    finite = np.isfinite(values)
    low, high = (float(values[finite].min()), float(values[finite].max())) if finite.any() else (0.0, 0.0)
    top = MISSING[bits] - 1
    scaled = np.zeros(values.shape) if high == low else (np.where(finite, values, low) - low) / (high - low) * top
    numbers = np.where(finite, np.rint(scaled), MISSING[bits]).astype("<u2" if bits == 16 else "u1")
    text = base64.b64encode(np.ascontiguousarray(numbers).tobytes()).decode("ascii")
    return {"shape": list(values.shape), "low": low, "high": high, "bits": bits, "data": text}
