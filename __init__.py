"""composcope: where, and why, a language model fails to compose what it knows."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .evaluation.case import Case, Part
    from .evaluation.cases import read_cases, write_cases
    from .experiments.config import Config
    from .experiments.diagnosis.job import diagnose
    from .experiments.investigate import investigate
    from .experiments.notebook import evaluate, open_run, plot
    from .experiments.plugins import load_plugin
    from .hooks import Site, load_model

__version__ = "0.1.0"

# Name -> module. Nothing is imported before it is used, so `import composcope` does not import torch.
_LAZY = {
    "Case": ".evaluation.case",
    "Config": ".experiments.config",
    "Part": ".evaluation.case",
    "Site": ".hooks",
    "diagnose": ".experiments.diagnosis.job",
    "evaluate": ".experiments.notebook",
    "investigate": ".experiments.investigate",
    "load_model": ".hooks",
    "load_plugin": ".experiments.plugins",
    "open_run": ".experiments.notebook",
    "plot": ".experiments.notebook",
    "read_cases": ".evaluation.cases",
    "write_cases": ".evaluation.cases",
}
__all__ = [
    "Case", "Config", "Part", "Site", "__version__", "diagnose", "evaluate", "investigate", "load_model",
    "load_plugin", "open_run", "plot", "read_cases", "write_cases",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        found = getattr(import_module(_LAZY[name], __name__), name)
        if name in ("diagnose", "investigate"):  # commands call them, too, and name options as flags
            from .errors import from_python

            found = from_python()(found)
            found.__module__ = __name__  # it is pickled by name, and this one is found here
        globals()[name] = found  # later accesses find it directly
        return found
    from .errors import did_you_mean

    raise AttributeError(f"module {__name__!r} has no attribute {name!r}{did_you_mean(name, _LAZY)}")


def __dir__() -> list[str]:
    return sorted(__all__)
