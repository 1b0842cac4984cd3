"""A study with something for every figure, made up by the tests of figures, and what a live page says of it."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType
from typing import Any

from composcope.experiments.figures.catalog import FIGURES
from composcope.experiments.report.view import Pages
from composcope.terminal import no_bar

_TESTS = Path(__file__).resolve().parents[1] / "experiments"
_OPTIONS = {
    "collapse-curve": "--bands trained", "gap-slopes": "--style gray", "step-bars": "--style gray --width column",
    "gap-scatter": "--no-title --width page", "gaps": "--group-by size",
}  # fmt: skip
_SKILLS = ("skill-distribution", "skill-coverage", "skill-granularity")
_FOLDERS: dict[str, str] = dict.fromkeys((*_SKILLS, "training-curve"), ".")
PLOTTED = tuple(
    f"plot {name} {_FOLDERS.get(name, 'runs')} -o drawn -q {_OPTIONS.get(name, '')}".strip() for name in FIGURES
)


def _loaded(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"references_{Path(name).stem}", _TESTS / name)
    assert spec is not None and spec.loader is not None
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    return made


def everything(folder: Path) -> None:
    _loaded("figures/conftest.py").make_everything(_loaded("synthetic_runs.py"), folder)


def view() -> Any:
    said: list[str] = []
    pages = Pages([Path("runs")], "live", said.append, no_bar)
    first, again = pages.refresh(), pages.refresh()
    return [first, again, said, [str(run) for run in pages.runs]]


CALLS: dict[str, Any] = {"view": view}
