"""Write data as classic scripts, which a page opened from ``file://`` can load and hostile text cannot break out of.

``fetch`` and modules do not work from a file, so each data file is a script that passes one JSON text to the page. The
JSON is in a string literal and is parsed (a key called ``__proto__`` stays a key). ``<`` and the two line separators of
Unicode are escaped, so no text in it can end a script or a line. Arrays are packed as integers in base64: a page opened
from a file cannot fetch binary files, and decimal text would make them five times as large.
"""

import base64
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from markupsafe import Markup
from numpy.typing import NDArray

from ...files import finite

MISSING = {16: 65535, 8: 255}
"""The code for NaN and infinities; finite values use the codes below it."""
_ESCAPES = str.maketrans(
    {"\\": "\\\\", "'": "\\'", "<": "\\u003c", ">": "\\u003e", "\u2028": "\\u2028", "\u2029": "\\u2029"}
)
_SURROGATE = re.compile("[\ud800-\udfff]")


def script(name: str, value: Any) -> str:
    """``composcope.load('NAME', 'JSON')`` for any JSON value; NaN and infinities become null."""
    return f"composcope.load({_literal(name)},{_literal(_json(value))});\n"


def block(value: Any) -> Markup:
    """The same JSON for a data block inside a page; no text in it can end the block."""
    text = _json(value).translate({ord("<"): "\\u003c", ord("&"): "\\u0026"})
    return Markup(_SURROGATE.sub(lambda m: f"\\u{ord(m.group()):04x}", text))


def _json(value: Any) -> str:
    try:  # most values are plain JSON, and walking through 20,000 cases takes longer than the rest
        return _dumped(value)
    except (ValueError, TypeError):
        return _dumped(finite(value))


def _dumped(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False, default=_plain)


def _plain(value: Any) -> Any:
    """A value that is not of JSON's own types."""
    known = hasattr(value, "tolist") or isinstance(value, Mapping | set | frozenset)
    return finite(value) if known else str(value)


def write_script(folder: Path, name: str, value: Any) -> int:
    """Write ``folder/NAME.js``; returns its size in bytes."""
    path = folder / f"{name}.js"
    path.parent.mkdir(parents=True, exist_ok=True)
    data = script(name, value).encode("utf-8")
    path.write_bytes(data)
    return len(data)


def _literal(text: str) -> str:
    return "'" + _SURROGATE.sub(_escaped_half, text.translate(_ESCAPES)) + "'"


def _escaped_half(match: re.Match[str]) -> str:
    # Half of a surrogate pair cannot be encoded, but its JSON escape can.
    return f"\\\\u{ord(match.group()):04x}"


def packed(array: NDArray[Any], bits: int = 16) -> dict[str, Any]:
    """``{shape, low, high, bits, data}``; value = low + (high - low) * number / (2 ** bits - 2).

    The error is at most half a step, (high - low) / 2 ** 17 with 16 bits.
    """
    values = np.asarray(array, dtype=np.float64)
    known = np.isfinite(values)
    low, high = (float(values[known].min()), float(values[known].max())) if known.any() else (0.0, 0.0)
    top = MISSING[bits] - 1
    scaled = np.zeros(values.shape) if high == low else (np.where(known, values, low) - low) / (high - low) * top
    numbers = np.where(known, np.rint(scaled), MISSING[bits]).astype("<u2" if bits == 16 else "u1")
    text = base64.b64encode(np.ascontiguousarray(numbers).tobytes()).decode("ascii")
    return {"shape": list(values.shape), "low": low, "high": high, "bits": bits, "data": text}
