"""Prompts are kept as the model was given them, the template's text once."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from composcope.evaluation.asks import Ask, Response
from composcope.experiments.run.rendered import rendered, save_rendered


def _asked(tokenizer: Any, **prompts: tuple[str, str]) -> tuple[dict[str, Ask], dict[str, Response]]:
    asks = {k: Ask("c", "whole", prompt, "1", "number") for k, (prompt, _) in prompts.items()}
    answers = {
        k: Response(k, "1", "stop", 1, 1, prompt_ids=tuple(tokenizer(sent).input_ids))
        for k, (_, sent) in prompts.items()
    }
    return asks, answers


def test_what_stands_around_a_prompt_is_stored_once(bytes_tokenizer: Any) -> None:
    asks, answers = _asked(bytes_tokenizer, a=("One?", "<u>One?</u>"), b=("Two?", "<u>Two?</u>"), c=("x", "x"))
    found = rendered(bytes_tokenizer, asks, answers)
    assert found["templates"] == [["<u>", "</u>"], ["", ""]] and found["asks"] == {"a": 0, "b": 0, "c": 1}


def test_a_template_that_rewrites_the_prompt_is_kept_whole(bytes_tokenizer: Any) -> None:
    asks, answers = _asked(bytes_tokenizer, a=("  One? ", "<u>One?</u>"))
    assert rendered(bytes_tokenizer, asks, answers)["asks"] == {"a": "<u>One?</u>"}


def test_an_ask_whose_server_hides_its_prompt_is_missing(bytes_tokenizer: Any, tmp_path: Path) -> None:
    asks = {"a": Ask("c", "whole", "One?", "1", "number")}
    answers = {"a": Response("a", "1", "stop", 1, 1)}
    path = save_rendered(tmp_path, bytes_tokenizer, asks, answers)
    assert path is not None and json.loads(path.read_text())["asks"] == {}
    assert save_rendered(tmp_path / "none", None, asks, answers) is None
