"""The command that diagnoses: which weights it takes, and the verdict on one case."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from composcope.errors import InputError
from composcope.experiments.diagnosis import job
from composcope.experiments.diagnosis.evidence import Followed, Inside, Tally

from .told import DRAWN, found


@pytest.mark.parametrize("name", ["usual-of-kind", "usual-operand", "item-3"])
def test_a_usual_value_is_said_for_want_of_a_bridge_that_stands_elsewhere_in_the_question(name: str) -> None:
    seen = replace(DRAWN, shortcut=Followed(name, 5, 5, True))
    moved = replace(found(4, cell="end-1:1"), pool=Tally(36, 40))
    causes = []
    for tests in ({"move": moved}, {"move": replace(moved, pool=Tally(35, 40))}):
        causes.append(job._verdict("a", seen, Inside(4, tests), ()).cause)
    usual = name.startswith("usual")
    assert causes == ["bridge-not-routed" if usual else f"shortcut:{name}", f"shortcut:{name}"]
    assert job._verdict("a", seen, None, ()).cause == f"shortcut:{name}"


@pytest.mark.parametrize(
    ("known", "who", "refused"),
    [("a" * 64, "b" * 64, True), ("a" * 64, "a" * 64, False), ("served (1)", "b" * 64, False)],
)
def test_only_known_weights_are_compared_with_the_models(known: str, who: str, refused: bool, tmp_path: Path) -> None:
    data: Any = SimpleNamespace(manifest=SimpleNamespace(identity={"weights": known}), config=None, path=tmp_path)
    if refused:
        with pytest.raises(InputError, match="--model x: these are not the weights"):
            job._same_model(data, SimpleNamespace(who=who), "x")  # type: ignore[arg-type]
    else:
        job._same_model(data, SimpleNamespace(who=who), "x")  # type: ignore[arg-type]
