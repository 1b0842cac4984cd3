"""Values just below, exactly at and just above a limit, for what probes keep, show and put in."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from tiny_models import tiny

from composcope.experiments.organism.tokenizer import build
from composcope.hooks import load_model
from composcope.probes import single_cases, verdicts
from composcope.probes.examples import Example
from composcope.probes.faithfulness.altering import _asked_with
from composcope.probes.patching import engine, prompt_end
from composcope.probes.spread import Fleet, InDtype, call

TOKENS: Any = build()


@pytest.mark.parametrize(("end", "single"), [(1, True), (1023, True), (1024, True), (1025, False), (3000, False)])
def test_up_to_1024_keys_are_told_apart_and_beyond_only_what_stands_before_the_question(end: int, single: bool) -> None:
    spans = single_cases.key_spans((min(900, end - 1), end), end)
    assert [s for s, _ in spans] == [0, *(e for _, e in spans[:-1])] and spans[-1][1] == end, "they tile it"
    widths = [b - a for a, b in spans]
    assert (max(widths) == 1) == single
    if not single:
        before = [w for (a, _), w in zip(spans, widths, strict=True) if a < 900]
        assert all(w == 1 for (a, _), w in zip(spans, widths, strict=True) if a >= 900)
        assert len(spans) <= 1024 or len(before) == 900 // max(before)
        assert max(before) == -(-900 // max(1, 1024 - (end - 900)))


@pytest.mark.parametrize(("most", "n"), [(5, 5), (6, 6), (7, 6)])
def test_heads_with_the_largest_difference_are_kept_as_many_as_fit(most: int, n: int) -> None:
    difference = torch.tensor([[0.1, -0.9, float("nan")], [0.5, 0.2, -0.3]])
    kept = single_cases.chosen_heads((2, 3), difference, most)
    assert len(kept) == n and kept == sorted(kept) and ((0, 2) in kept) == (n == 6)
    assert single_cases.chosen_heads((2, 3), difference, 2) == [(0, 1), (1, 0)]
    assert single_cases.chosen_heads((2, 3), None, 2) == [(1, 1), (1, 2)]


def _part(question: str, more: str = "\nAnswer:") -> Example:
    def ids(text: str) -> tuple[int, ...]:
        return tuple(TOKENS(text, add_special_tokens=False).input_ids)

    prompt = (TOKENS.bos_token_id, *ids(f"Question: {question}{more}"))
    span = (1 + len(ids("Question:")), 1 + len(ids(f"Question: {question}")))
    return Example("c", "part:1", "math", "success", prompt, (3,), (4,), 0, span)


def test_continuations_are_shown_to_their_end_and_answers_are_told_apart_by_their_first_tokens() -> None:
    tokenizer = SimpleNamespace(decode=lambda ids, **_: str(ids))
    assert single_cases.said(tokenizer, torch.tensor([0, 5, -1])) == "[0, 5]"
    first, second = (replace(_part("5"), answer_ids=(7, last)) for last in (8, 9))
    assert not single_cases._apart(first, second) and single_cases._apart(first, replace(first, answer_ids=(6, 8)))


@pytest.mark.parametrize("question", ["5 times 8 is what", "What is 5 times 8", "What is 8 times 5"])
def test_a_value_is_put_in_wherever_it_stands_in_the_question_the_last_word_included(question: str) -> None:
    part = _part(question)
    ids = _asked_with(TOKENS, part, "5", "7")
    assert ids == _part(question.replace("5", "7")).prompt_ids
    assert _asked_with(TOKENS, part, "9", "7") == part.prompt_ids, "what does not stand there changes nothing"


def test_a_function_runs_where_the_model_is() -> None:
    class Workers(Fleet):
        def __init__(self) -> None:
            self.called: list[Any] = []

        def spread(self, measure: Any, items: Any, notes: Any, *, light: bool) -> Any:
            raise NotImplementedError

        def call(self, function: Any, *args: Any) -> Any:
            self.called.append(args)
            return "there"

    workers: Any = Workers()
    assert call("a model", lambda lm, x: (lm, x), 3) == ("a model", 3)  # type: ignore[arg-type]
    assert call(workers, lambda lm, x: (lm, x), 3) == "there" and workers.called == [(3,)]


@pytest.mark.parametrize(("pairs", "last"), [(4, True), (5, False), (6, False)])
def test_contrasts_of_fewer_than_five_pairs_are_sorted_behind_all_others(pairs: int, last: bool) -> None:
    about = {"quantity": "min_k_pp", "kind": "composition", "group": verdicts.MATCHED, "p": 0.01, "value": 1.0}
    small, large = ({**about, "n": n, "effect": e} for n, e in ((pairs, 9.0), (50, 0.5)))
    assert (verdicts.rank(small) > verdicts.rank(large)) == last


def test_pairs_that_were_left_out_have_no_tokens_and_no_numbers() -> None:
    got: Any = SimpleNamespace(
        tokens=torch.arange(12).view(1, 2, 3, 2), logits=torch.randn(1, 2, 3, 7), base=torch.tensor([[8, 9]]),
        plain=torch.zeros(3, 2, dtype=torch.long),
    )  # fmt: skip
    plan: Any = SimpleNamespace(recipients=[1], donors_of=[[0, 2]])
    found, _ = prompt_end._kept(got, plan, (3, 2), "all")
    for d in range(3):
        for r in range(2):
            asked = r == 1 and d in (0, 2)
            for name, none in (("tokens", -1), ("top_tokens", -1)):
                assert bool((found[name][d, r] == none).all()) != asked
            assert bool(found["top_log_probs"][d, r].isnan().all()) != asked
    assert found["base_tokens"].tolist() == [[-1, -1], [8, 9]]
    assert torch.equal(found["tokens"][2, 1], got.tokens[0, 1]) and found["top_tokens"].shape == (3, 2, 3, engine.TOP)
    best = got.logits[0, 1].log_softmax(-1).topk(engine.TOP)
    torch.testing.assert_close(found["top_log_probs"][2, 1], best.values)


def test_a_function_that_runs_in_another_precision_gives_its_result() -> None:
    lm = load_model(tiny("llama"))
    assert call(InDtype(lm, "float32"), lambda lm, x: (lm.anatomy.n_layers, x), 3) == (lm.anatomy.n_layers, 3)
