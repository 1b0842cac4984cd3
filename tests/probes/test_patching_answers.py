"""Patched continuations judged as answers: flips, abstentions, corrections, and what cannot be judged."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from composcope.errors import InputError
from composcope.evaluation.asks import Grade
from composcope.evaluation.dependence import Sides
from composcope.evaluation.grading import grade
from composcope.experiments.distributed.engine import load_target
from composcope.experiments.models.target import Loading
from composcope.experiments.validity.positive_controls import as_examples, compositions
from composcope.hooks import Model, load_model
from composcope.probes import patching
from composcope.probes.examples import Example, Gold
from composcope.probes.faithfulness.working import judged
from composcope.probes.patching.examples import _graded
from composcope.probes.patching.outcomes import (
    NOTHING_SHARED,
    Graders,
    PatchOutcome,
    compare,
    divergence,
    independent_pairs,
)

from ..tiny_models import tiny

RIGHT, DONORS, UNSURE = 5, 6, 7
NOTHING = 8


def _by(right: int) -> patching.Grader:
    """The first token is the answer; 8 is none."""

    def judge(i: int, ids: Sequence[int]) -> Grade:
        if ids[0] == NOTHING:
            return Grade("invalid", None, None, "no-answer")
        outcome = "correct" if ids[0] == right else "abstained" if ids[0] == UNSURE else "incorrect"
        return Grade(outcome, str(ids[0]))

    return judge


def test_answers_flip_abstain_or_are_corrected_and_what_is_no_answer_is_undefined() -> None:
    graders = Graders(_by(RIGHT), _by(DONORS))
    tokens = torch.tensor([[RIGHT, 1], [DONORS, 2], [UNSURE, -1], [9, 9], [NOTHING, 3]])
    said = graders.judged(0, 0, tokens, torch.tensor([9, 9]))
    assert said.corrected[:4].tolist() == [1, 0, 0, 0] and said.flip[:4].tolist() == [0, 1, 0, 0]
    assert said.abstain[:4].tolist() == [0, 0, 1, 0]
    assert all(x is not None and math.isnan(float(x[4])) for x in said)
    # Nothing turns to what was there before.
    assert graders.judged(0, 0, tokens, torch.tensor([UNSURE, -1])).abstain.isnan().all()
    assert graders.judged(0, 0, tokens, torch.tensor([DONORS, -1])).flip.isnan().all()
    sure = Graders(graders.recipient, lambda _i, _ids: Grade("incorrect", None))
    assert sure.judged(0, 0, tokens, torch.tensor([UNSURE, -1])).abstain.isnan().all(), "by the recipient's grader"


def test_the_donors_answer_or_an_abstention_in_other_words_is_no_other_answer() -> None:
    tokens, logits = torch.tensor([[RIGHT, 1], [DONORS, 2], [UNSURE, 2], [NOTHING, 3], [9, 9]]), torch.zeros(5, 10)
    for before in (DONORS, UNSURE):
        base = torch.tensor([before, 1])
        said = Graders(_by(RIGHT), _by(DONORS)).judged(0, 0, tokens, base)
        found = compare("donor", (0, 0), (tokens, logits), (base, logits[0]), (base, logits[0]), (5, 6), None, said)
        assert found.values["other_rate"].tolist() == pytest.approx([1, 0, 0, math.nan, 1], nan_ok=True), before


def test_tokens_without_any_probability_add_nothing_to_a_divergence() -> None:
    log_q, log_p = (torch.tensor([*x, -torch.inf]).log_softmax(-1) for x in ((0.0, 1.0), (1.0, 0.0)))
    assert float(divergence(log_q, log_p)) == pytest.approx(float(divergence(log_q[:2], log_p[:2])))


def test_a_continuation_that_stops_at_its_limit_inside_the_right_answer_is_not_called_wrong() -> None:
    logits, base = torch.zeros(3, 10), torch.tensor([9, 9])
    tokens = torch.tensor([[1, 2], [1, 3], [1, -1]])
    for answer, corrected in (((1, 2, 3), [math.nan, 0, 0]), ((1, 2), [1, 0, 0]), ((1,), [1, 1, 1])):
        found = compare("donor", (0, 0), (tokens, logits), (base, logits[0]), (base, logits[0]), (5, 6), answer)
        assert found.values["corrected_rate"].tolist() == pytest.approx(corrected, nan_ok=True), answer


def test_graded_sweeps_count_answers_and_say_what_they_could_not_judge() -> None:
    lm = load_model(tiny("llama"))
    donors, recipients = [[5, 31, 77, 12], [9, 9, 51, 80]], [[60, 3, 3, 14], [18, 22, 41, 7]]

    def judge(i: int, ids: Sequence[int]) -> Grade:
        if ids[0] % 5 == 0:
            return Grade("invalid", None, None, "no-answer")
        return Grade("abstained" if ids[0] % 2 else "correct", str(ids[0]))

    got = patching.prompt_end_sweep(
        lm, donors, recipients, max_new_tokens=2, stop_ids=(), controls=(), graders=(judge, judge)
    )
    rows = {(r["quantity"], r["layer"]): r for r in got.table}
    first = got.tensors["tokens"][..., 0].flatten(0, 1)  # pair layer
    for layer in range(3):
        known = first[:, layer] % 5 != 0
        row = rows["corrected_rate", layer]
        assert (row["n"], row["count"]) == (int(known.sum()), int((known & (first[:, layer] % 2 == 0)).sum()))
    lost = int((first % 5 == 0).sum())
    assert got.settings["outcomes"] == "answers, graded"
    assert (f"{lost} of 12 continuations" in " ".join(got.warnings)) == (lost > 0)
    gap = got.tensors["donor_log_prob"] - got.tensors["answer_log_prob"]
    assert torch.allclose(got.tensors["logit_difference"], gap, atol=1e-5)
    assert ((got.tensors["answer_probability"] >= 0) & (got.tensors["answer_probability"] <= 1)).all()


def test_pairs_are_independent_only_as_far_as_they_can_be_formed_without_sharing() -> None:
    star = [PatchOutcome("donor", d, r, {}) for d, r in ((0, 0), (0, 1), (0, 2), (1, 0), (2, 0))]
    assert independent_pairs(star) == 2
    assert independent_pairs([PatchOutcome("donor", d, r, {}) for d in range(3) for r in range(4)]) == 3
    assert independent_pairs([PatchOutcome("identity", None, r // 2, {}) for r in range(8)]) == 4
    facts = [frozenset({"a fact", f"fact {i}"}) for i in range(2)]
    for sides in ([Sides(None, f) for f in facts], [Sides(f, None) for f in facts]):
        three = [PatchOutcome("donor", i, i, {}, shares=s) for i, s in enumerate([*sides, NOTHING_SHARED])]
        assert independent_pairs(three) == 2 == independent_pairs(three[:2]) + 1, "two recipients or donors share it"


@pytest.fixture(scope="module")
def organism() -> tuple[Model, list[Example]]:
    target = load_target(Loading("organism:control"))
    held = as_examples(target, compositions(6, 0)[1])
    cases = list(dict.fromkeys(e.case for e in held))
    return target.open_model(), [replace(e, group="failure" if e.case in cases[:3] else "success") for e in held]


def test_continuations_of_examples_are_judged_like_their_responses(organism: tuple[Model, list[Example]]) -> None:
    lm, examples = organism
    got = patching.over_examples(lm, examples, max_pairs=3, layers=[0, lm.anatomy.n_layers - 1], controls=("identity",))
    gold = {e.case: e.gold for e in examples if e.role == "whole"}
    assert got.settings["outcomes"] == "answers, graded" and got.settings["max_new_tokens"] >= 24
    rows = {(r["quantity"], r["group"], r.get("layer")): r for r in got.table}
    for i, layer in enumerate((0, lm.anatomy.n_layers - 1)):
        right = []
        for (_, recipient), tokens in zip(got.settings["cases"], got.tensors["tokens"][:, i].tolist(), strict=True):
            of, ids = gold[recipient], [t for t in tokens if t >= 0]
            assert of is not None
            text = lm.tokenizer.decode(ids, skip_special_tokens=True)
            ended = "stop" if ids[-1] in lm.eos_ids else "length"
            found = grade(text, ended, of.answer, of.answer_type, of.aliases, of.format)
            right.append(found.outcome)
        row = rows["corrected_rate", "donor", layer]
        assert (row["count"], row["n"]) == (right.count("correct"), len(right) - right.count("invalid"))
    assert rows["abstain_rate", "identity", 0]["count"] == 0 == rows["flip_rate", "identity", 0]["count"]
    bare = [replace(e, gold=None) for e in examples]
    plain = patching.over_examples(lm, bare, max_pairs=3, layers=[0], controls=(), max_new_tokens=2)
    assert plain.settings["outcomes"] == "token by token"
    assert all(r["n"] == 0 for r in plain.table if r["quantity"] == "abstain_rate")


def test_a_stop_text_ends_what_is_judged() -> None:
    gold = Gold("12", "number", "xml", stop=("</answer>",))
    assert _graded("<answer>12</answer> and then <answer>13", False, gold).outcome == "correct"
    assert _graded("<answer>12", False, gold).outcome == "invalid"
    assert _graded("<answer>UNKNOWN</answer>", True, gold).outcome == "abstained"
    assert _graded("<answer>UNKNOWN</answer>", True, replace(gold, unknowable=True)).outcome == "correct"
    assert _graded("12 Q: And 3?", False, Gold("12", "number", "plain", stop=("Q:",))).outcome == "correct"


def test_continuations_are_as_long_as_the_longest_response_within_limits_and_graded_if_all_have_a_gold_answer(
    organism: tuple[Model, list[Example]],
) -> None:
    lm, (one, *_) = organism
    for said, most, context, n in ((9, 64, None, 24), (30, 64, None, 30), (99, 64, None, 64), (99, 80, 50, 11)):
        some = [replace(one, prompt_ids=(1,) * 40, response_ids=(1,) * k) for k in (said, 2)]
        model: Any = SimpleNamespace(anatomy=SimpleNamespace(context=context))
        assert patching.new_tokens(model, some, most) == n
    bare = replace(one, gold=None)
    assert patching.graders(lm, [one], [bare]) is None is patching.graders(lm, [bare], [one])
    assert patching.graders(lm, [one], [one])


def test_a_stop_text_in_thoughts_that_the_prompt_opened_ends_nothing() -> None:
    gold = Gold("9", "number", "xml", stop=("</answer>",), thinking=True)
    for thought in ("Is it <answer>8</answer>", "Is it <answer>8</answer>? Or"):
        assert _graded(thought, False, gold).outcome == "invalid"
    assert _graded("Is it <answer>8</answer>?</think><answer>9</answer>", False, gold).outcome == "correct"


def test_an_option_of_a_choice_may_be_named_by_its_letter() -> None:
    gold = Gold("blue", "choice", "plain", options=(("A", "red"), ("B", "blue")))
    assert [_graded(said, True, gold).outcome for said in ("B", "A", "blue")] == ["correct", "incorrect", "correct"]
    assert [judged(said, "stop", gold).outcome for said in ("B", "A")] == ["correct", "incorrect"]


def test_what_was_begun_for_the_model_is_judged_with_what_it_wrote(organism: tuple[Model, list[Example]]) -> None:
    lm, examples = organism
    whole = next(e for e in examples if e.role == "whole")
    said = lm.tokenizer("So the final answer is: 12 34", add_special_tokens=False).input_ids
    gold = Gold("1234", "number", "cot")
    for begun in (0, 1, len(said) - 1):
        e = replace(whole, prompt_ids=(*whole.prompt_ids, *said[:begun]), begun=begun, gold=gold)
        (judge, _) = patching.graders(lm, [e], [e]) or (None, None)
        assert judge is not None
        found = judge(0, [*said[begun:], *sorted(lm.eos_ids)[:1]])
        assert found == judge(0, [*said[begun:], *sorted(lm.eos_ids)[:1]])
        assert (found.answer, found.outcome) == (_graded(lm.tokenizer.decode(said), True, gold).answer, "incorrect")


def test_a_case_that_comes_twice_is_refused(organism: tuple[Model, list[Example]]) -> None:
    lm, examples = organism
    whole = next(e for e in examples if e.role == "whole")
    for again in (whole, replace(whole, group="success")):
        with pytest.raises(InputError, match="several examples of role 'whole'"):
            patching.over_examples(lm, [*examples, again])
