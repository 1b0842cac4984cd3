"""Studies without a folder: runs of models as the tables of a study see them."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

from composcope.experiments.studies.spec import Spec
from composcope.experiments.studies.study import STUDIES, Study

from ..bare_runs import bare_run


def study_of(*runs: Any, name: str = "agentcoma", **about: Any) -> Study:
    data = tuple(dict.fromkeys(r.data for r in runs)) or ("d",)
    return Study(Spec(()), STUDIES[name], Path("s"), data, list(runs), **about)


def run_of(label: str = "m", data: str = "d", note: str = "", **run: Any) -> Any:
    about = {"protocol": "compositionality-gap", "manifest": SimpleNamespace(stopped=None)}
    model = SimpleNamespace(model=f"org/{label}", groups={"family": "f"})
    return SimpleNamespace(
        label=label, data=data, note=note, path=Path(f"{label}-{data}"), model=model, run=bare_run(**about | run)
    )
