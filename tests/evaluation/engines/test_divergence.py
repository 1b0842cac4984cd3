from __future__ import annotations

import random
import re
import resource
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from jinja2.sandbox import SandboxedEnvironment
from scipy import stats

from composcope.errors import InputError, ModelError
from composcope.evaluation.asks import Ask, Response
from composcope.evaluation.engines import divergence
from composcope.evaluation.engines.divergence import Divergence, batch_divergence, first_difference, measure
from composcope.evaluation.engines.local import LocalEngine
from composcope.evaluation.engines.text import chat_ids, has_thinking_switch


def asks_of_many_lengths(make_ask: Callable[..., Ask], n: int = 24) -> list[Ask]:
    rng = random.Random(1)
    return [make_ask("q" * rng.randint(1, 50) + str(i), case=f"c{i}", max_tokens=16) for i in range(n)]


@pytest.mark.parametrize(
    ("a", "b", "step"), [((1, 2), (1, 2), None), ((1, 2), (1, 3), 1), ((1,), (1, 2), 1), ((), (), None)]
)
def test_the_first_difference_is_where_two_answers_part(a: tuple[int, ...], b: tuple[int, ...], step: Any) -> None:
    assert first_difference(a, b) == step


def test_fp32_answers_do_not_diverge(make_llama: Any, tokenizer: Any, make_ask: Any) -> None:
    found = batch_divergence(LocalEngine(make_llama(), tokenizer, batch_size=16), asks_of_many_lengths(make_ask))
    assert (found.n, found.n_different, found.rate, found.dtype) == (24, 0, 0.0, "float32")


def test_answers_that_depend_on_the_batch_are_counted_and_start_at_near_ties(
    make_llama: Any, tokenizer: Any, make_ask: Any
) -> None:
    model = make_llama()
    with torch.inference_mode():
        spread = float(model(torch.tensor([[1, 2, 3]])).logits.std())
    noise = 0.02 * spread * torch.randn(model.config.vocab_size, generator=torch.Generator().manual_seed(0))

    # What kernels in half precision do by chance: sums in another order for another batch size.
    def rounded(_module: Any, _args: Any, logits: torch.Tensor) -> torch.Tensor:
        return logits + noise * (logits.shape[0] > 1)

    model.lm_head.register_forward_hook(rounded)
    asks = asks_of_many_lengths(make_ask)
    found = batch_divergence(LocalEngine(model, tokenizer, batch_size=16), asks)
    one, many = ({a.case: r for a, r in LocalEngine(model, tokenizer, batch_size=n).answer(asks)} for n in (1, 16))
    margins = []
    for case, alone in ((ask.case, one[ask.case]) for ask in asks):
        a, b = alone.response_ids or (), many[case].response_ids or ()
        if (step := first_difference(a, b)) is not None:
            with torch.inference_mode():
                logits = model(torch.tensor([[*(alone.prompt_ids or ()), *a[:step]]])).logits[0, -1]
            margins.append(abs(float(logits[a[step]] - logits[b[step]])))
    assert found.n == 24 and found.n_different == len(margins) > 0
    assert list(found.margins) == pytest.approx(margins, rel=1e-4), "in the order of the asks"
    assert max(margins) < 0.1 * spread


def test_bf16_divergence_is_what_two_runs_differ_by(make_llama: Any, tokenizer: Any, make_ask: Any) -> None:
    model = make_llama().to(torch.bfloat16)
    asks = asks_of_many_lengths(make_ask)
    found = batch_divergence(LocalEngine(model, tokenizer, batch_size=16), asks)
    one, many = (
        {a.case: r.response_ids for a, r in LocalEngine(model, tokenizer, batch_size=size).answer(asks)}
        for size in (1, 16)
    )
    assert found.dtype == "bfloat16" and len(found.margins) == found.n_different
    assert found.n_different == sum(one[c] != many[c] for c in one)  # none on some processors


def test_only_asks_answered_both_ways_are_compared_and_an_answer_that_ends_first_is_a_tie(
    make_llama: Any, make_ask: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def engine(ids: dict[str, tuple[int, ...] | None]) -> Any:
        made = {case: Response("", "", "stop", 1, 1, (1,), found) for case, found in ids.items()}
        return SimpleNamespace(
            model=make_llama(), tokenizer=None, folder=None,
            answer=lambda asks: [(a, made[a.case]) for a in asks if a.case in made],
        )  # fmt: skip

    alone = engine({"a": (1, 2), "b": (5,), "c": (7,), "d": None})
    monkeypatch.setattr(divergence, "LocalEngine", lambda *_, **__: alone)
    many = engine({"a": (1, 2, 3), "b": (5,), "c": None, "d": (1,)})
    found = batch_divergence(many, [make_ask(case=case) for case in "abcd"])
    assert found == Divergence(2, 1, (2,), (0.0,), "float32")


def test_sampled_asks_cannot_be_compared(make_llama: Any, tokenizer: Any, make_ask: Any) -> None:
    with pytest.raises(InputError, match="no greedy asks"):
        batch_divergence(LocalEngine(make_llama(), tokenizer), [replace(make_ask(), temperature=1.0)])
    sampled = [replace(make_ask(), temperature=1.0)]
    assert measure(LocalEngine(make_llama(), tokenizer), sampled) is None


def test_the_rate_stands_over_the_asks_that_were_compared_with_its_exact_interval(
    make_ask: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = Divergence(20, 3, (0, 4, 2), (0.5, 0.1234567, 0.25), "bfloat16")
    monkeypatch.setattr(divergence, "batch_divergence", lambda engine, asks: found)
    asks = [make_ask(str(i), temperature=float(i % 2)) for i in range(60)]  # ten could not be compared
    engine: Any = None
    measured = measure(engine, asks) or {}
    low, high = stats.beta.ppf(0.025, 3, 18), stats.beta.ppf(0.975, 4, 17)  # Clopper and Pearson, 1934
    assert (measured.pop("low"), measured.pop("high")) == pytest.approx((low, high))
    assert measured == {
        "dtype": "bfloat16", "n": 20, "n_different": 3, "rate": 0.15, "interval": "clopper-pearson",
        "first_steps": [0, 4, 2], "margins": [0.5, 0.123457, 0.25],
    }  # fmt: skip
    monkeypatch.setattr(divergence, "batch_divergence", lambda engine, asks: replace(found, n=0, n_different=0))
    assert measure(engine, asks) is None, "where no pair could be compared"
    assert replace(found, n=4, n_different=1).rate == 0.25


@pytest.mark.parametrize(("margins", "apart"), [([0.9, 0.1, 0.25], ["0.25", "32"]), ([], [])])
def test_the_line_about_divergence_has_every_figure(margins: list[float], apart: list[str]) -> None:
    measured = {"dtype": "bfloat16", "n": 20, "n_different": 3, "rate": 0.15, "low": 0.03, "high": 0.38}
    said = divergence.in_words({**measured, "margins": margins})
    assert re.findall(r"\d[\d.]*", said) == ["16", "3", "20", "15", "3", "38", *apart]


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_fp32_answers_on_a_gpu_do_not_diverge_and_equal_those_on_the_cpu(
    make_llama: Any, tokenizer: Any, make_ask: Any
) -> None:
    asks = asks_of_many_lengths(make_ask)
    here = {a.case: r.response_ids for a, r in LocalEngine(make_llama(), tokenizer).answer(asks)}
    engine = LocalEngine(make_llama().to("cuda"), tokenizer)
    assert {a.case: r.response_ids for a, r in engine.answer(asks)} == here
    assert batch_divergence(engine, asks).n_different == 0


LOOPS = [
    "{% for i in range(99999) %}{% for j in range(99999) %}{% set x = i %}{% endfor %}{% endfor %}",
    "{% for i in range(99999) %}{{ messages | length }}{% for j in range(99) %}.{% endfor %}{% endfor %}",
    "{% macro again(n) %}{{ again(n + 1) }}{% endmacro %}{{ again(0) }}",
    "{% set n = namespace(x=3) %}{% for i in range(60) %}{% set n.x = n.x * n.x %}{% endfor %}",
    "{{ 9 ** (9 ** 9) }}",
    "{{ 'a' | center(6000000000) }}",
    "{% set n = namespace(x='a') %}{% for i in range(40) %}{% set n.x = n.x ~ n.x %}{% endfor %}",
]
USES: list[Callable[[Any], Any]] = [lambda t: chat_ids(t, ["Why?"], "the-model"), has_thinking_switch]


@pytest.mark.parametrize("template", LOOPS)
@pytest.mark.parametrize("use", USES, ids=["asking", "thinking"])
def test_a_template_that_does_not_end_is_refused_with_the_models_name(
    make_tokenizer: Any, template: str, use: Callable[[Any], Any]
) -> None:
    tokenizer = make_tokenizer(template="{{ messages[0]['content'] }}" + template)
    tokenizer.name_or_path = "the-model"
    before = sys.gettrace(), resource.getrlimit(resource.RLIMIT_AS), SandboxedEnvironment.call_binop
    with pytest.raises(ModelError, match=r"the-model: the chat template does not come to an end.*--prompting raw"):
        use(tokenizer)
    assert (sys.gettrace(), resource.getrlimit(resource.RLIMIT_AS), SandboxedEnvironment.call_binop) == before


def test_a_template_that_ends_for_some_messages_only_is_refused_at_the_first_of_the_others(make_tokenizer: Any) -> None:
    shown = "{{ messages[0]['content'] }}"
    long = "{% if messages[0]['content'] | length > 9 %}" + LOOPS[0] + "{% endif %}"
    tokenizer = make_tokenizer(template=shown + long)
    assert chat_ids(tokenizer, ["Why?", "How?"], "m") == chat_ids(make_tokenizer(template=shown), ["Why?", "How?"], "m")
    with pytest.raises(ModelError, match="m: the chat template does not come to an end"):
        chat_ids(tokenizer, ["Why?", "How?", "How much is it?"], "m")


def test_templates_that_run_at_the_same_time_leave_no_limit_behind() -> None:
    class Slow:
        def apply_chat_template(self, talks: Any, tokenize: bool = True, **_: Any) -> Any:
            time.sleep(0.005)
            return [[1]] * len(talks) if tokenize else talks[0]["content"]

    def before() -> Any:
        patched = SandboxedEnvironment.intercepted_binops, SandboxedEnvironment.call_binop
        return resource.getrlimit(resource.RLIMIT_AS), patched

    kept = before()
    threads = [threading.Thread(target=chat_ids, args=(Slow(), ["Why?"] * (5 + n), "m")) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert before() == kept


@pytest.mark.parametrize(("told", "has"), [("{% if enable_thinking %}Think.{% endif %}", True), ("Think.", False)])
def test_a_template_has_a_switch_where_it_writes_another_prompt(told: str, has: bool, make_tokenizer: Any) -> None:
    assert has_thinking_switch(make_tokenizer(template=told + "{{ messages[0]['content'] }}")) is has


def test_a_template_may_compute(make_tokenizer: Any) -> None:
    tokenizer = make_tokenizer(template="{{ messages[0]['content'] }} {{ 3 * 4 + 2 ** 5 }}{{ 'a' * 3 }}")
    plain = make_tokenizer(template="{{ messages[0]['content'] }} 44aaa")
    assert chat_ids(tokenizer, ["Why?"], "m") == chat_ids(plain, ["Why?"], "m")


def test_a_long_message_is_no_endless_template(make_tokenizer: Any) -> None:
    tokenizer = make_tokenizer(template="{% for m in messages %}{{ m['content'] | trim }}{% endfor %}")
    assert len(chat_ids(tokenizer, ["word " * 50_000], "the-model")[0]) > 50_000
