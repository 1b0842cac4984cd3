"""composcope: where, and why, a language model fails to compose what it knows."""

from __future__ import annotations

from importlib import import_module
from typing import Any

__version__ = "0.1.0"

# Name -> module. Nothing is imported before it is used, so that `import composcope` stays free of torch.
_LAZY = {
    "load_model": ".hooks",
    "Site": ".hooks",
    "Case": ".evaluation.cases",
    "read_cases": ".evaluation.cases",
    "investigate": ".experiments.investigate",
    "diagnose": ".experiments.diagnosis.job",
}
__all__ = ["__version__", *sorted(_LAZY)]


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        return getattr(import_module(_LAZY[name], __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
