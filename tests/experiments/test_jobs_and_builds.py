"""Diagnoses: which weights they are compared with, and which names an answer gives."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from composcope.errors import InputError
from composcope.experiments.diagnosis import behaviour
from composcope.experiments.diagnosis import job as diagnosis


@pytest.mark.parametrize(
    ("known", "who", "refused"),
    [("a" * 64, "b" * 64, True), ("a" * 64, "a" * 64, False), ("served (1)", "b" * 64, False)],
)
def test_only_known_weights_are_compared_with_the_models(known: str, who: str, refused: bool, tmp_path: Path) -> None:
    data: Any = SimpleNamespace(manifest=SimpleNamespace(identity={"weights": known}), config=None, path=tmp_path)
    if refused:
        with pytest.raises(InputError, match="--model x: these are not the weights"):
            diagnosis._same_model(data, SimpleNamespace(who=who), "x")  # type: ignore[arg-type]
    else:
        diagnosis._same_model(data, SimpleNamespace(who=who), "x")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("answer", "named"),
    [("Portugal", True), ("It is the country Portugal.", True), ("the capital of the country Portugal", False),
     ("Porto in the Portugal", False), ("from Portugal", False), ("Is it? Old Portugal", False), ("Lisbon", False)],
)  # fmt: skip
def test_a_name_that_an_answer_only_mentions_is_not_given(answer: str, named: bool) -> None:
    assert behaviour._names(answer, "Portugal") == named
