"""Chat templates come with a model, from whoever made it: none keeps a run from going on."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import pytest

from composcope.errors import ModelError
from composcope.evaluation.engines.text import chat_ids, has_thinking_switch

LOOPS = [
    "{% for i in range(99999) %}{% for j in range(99999) %}{% set x = i %}{% endfor %}{% endfor %}",
    "{% for i in range(99999) %}{{ messages | length }}{% for j in range(99) %}.{% endfor %}{% endfor %}",
    "{% macro again(n) %}{{ again(n + 1) }}{% endmacro %}{{ again(0) }}",
]
USES: list[Callable[[Any], Any]] = [lambda t: chat_ids(t, ["Why?"], "the-model"), has_thinking_switch]


@pytest.mark.parametrize("template", LOOPS)
@pytest.mark.parametrize("use", USES, ids=["asking", "thinking"])
def test_a_template_that_does_not_end_is_refused_with_the_models_name(
    make_tokenizer: Any, template: str, use: Callable[[Any], Any]
) -> None:
    tokenizer = make_tokenizer(template="{{ messages[0]['content'] }}" + template)
    tokenizer.name_or_path = "the-model"
    before = sys.gettrace()
    with pytest.raises(ModelError, match=r"the-model: the chat template does not come to an end.*--prompting raw"):
        use(tokenizer)
    assert sys.gettrace() is before


def test_a_long_message_is_no_endless_template(make_tokenizer: Any) -> None:
    tokenizer = make_tokenizer(template="{% for m in messages %}{{ m['content'] | trim }}{% endfor %}")
    assert len(chat_ids(tokenizer, ["word " * 50_000], "the-model")[0]) > 50_000
