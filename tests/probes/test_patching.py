"""Patching against literal hooks with full recomputation, golden arrays, and its own controls."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from scipy.stats import entropy

from composcope.errors import InputError, NoCasesError
from composcope.hooks import Model, Site, load_model
from composcope.probes import patching
from composcope.probes.examples import Example
from composcope.probes.patching import engine
from composcope.probes.patching.engine import continue_patched, generate, prompt_end_states, transplant_all
from composcope.probes.patching.outcomes import COMPARED, GradedContinuations, PatchOutcome, compare, summarize

from ..oracles import patching as oracle
from ..tiny_models import tiny

PUBLISHED = Path(__file__).parents[1] / "references" / "published"
NAMES = ["llama", "qwen3", "mistral", "gemma2", "gpt2", "gpt_neox", "mixtral"]
DONORS = [[5, 31, 77, 12, 40, 8, 66, 23], [9, 9, 51, 80, 17]]
RECIPIENTS = [[60, 3, 3, 14, 28, 71, 5, 33, 90, 11, 47], [18, 22, 41, 7, 7, 63, 50, 36]]


@pytest.mark.parametrize("name", NAMES)
def test_every_donor_recipient_and_layer_is_the_literal_patch(name: str) -> None:
    lm = load_model(tiny(name))
    got = patching.prompt_end_sweep(lm, DONORS, RECIPIENTS, max_new_tokens=5, keep="all", stop_ids=(), controls=())
    for d, donor in enumerate(DONORS):
        for r, recipient in enumerate(RECIPIENTS):
            assert got.tensors["base_tokens"][r].tolist() == oracle.greedy(lm.model, recipient, 5)
            for layer, part in enumerate(lm.anatomy.layers):
                state = oracle.block_output(lm.model, torch.tensor([donor]), part.block)[-1]
                tokens, first = oracle.patched_greedy(lm.model, recipient, part.block, len(recipient) - 1, state, 5)
                assert torch.allclose(got.tensors["first_logits"][d, r, layer], first, atol=1e-4)
                assert got.tensors["tokens"][d, r, layer].tolist() == tokens


def test_controls_behave() -> None:
    lm = load_model(tiny("llama"))
    got = patching.prompt_end_sweep(lm, DONORS, RECIPIENTS, max_new_tokens=4, stop_ids=())
    assert got.tensors["unchanged_rate.identity"].tolist() == [1, 1, 1] and "first_logits" not in got.tensors
    assert float(got.tensors["kl.identity"].max()) < 1e-8
    assert float(got.tensors["kl_from_donor.positive"].max()) < 1e-8
    assert float(got.tensors["kl_from_donor"][-1]) < 1e-8 < float(got.tensors["kl_from_donor"][0])
    assert float(got.tensors["kl.noise"].min()) > 1e-4 < float(got.tensors["kl.random"].min())
    with torch.no_grad():
        first, *own = (lm.run(torch.tensor([p])).logits[0, -1].double().softmax(-1) for p in (DONORS[0], *RECIPIENTS))
    apart = sum(float(entropy(first, p)) for p in own) / 2
    assert got.tensors["kl_from_donor.identity"].tolist() == pytest.approx([apart] * 3), "from the first donor"


def test_the_last_block_changes_the_first_token_only() -> None:
    lm = load_model(tiny("qwen3"))
    got = patching.prompt_end_sweep(
        lm, DONORS, RECIPIENTS, layers=[2], max_new_tokens=4, stop_ids=(), controls=(), keep="all"
    )
    for d, donor in enumerate(DONORS):
        with torch.no_grad():
            own = lm.run(torch.tensor([donor])).logits[0, -1]
        for r, recipient in enumerate(RECIPIENTS):
            assert torch.allclose(got.tensors["first_logits"][d, r, 0], own, atol=1e-4)
            first = int(own.argmax())
            rest = oracle.greedy(lm.model, [*recipient, first], 3)
            assert got.tensors["tokens"][d, r, 0].tolist() == [first, *rest]


def test_pairs_layers_and_chunks_do_not_change_the_numbers() -> None:
    lm = load_model(tiny("mistral"))
    whole = patching.prompt_end_sweep(lm, DONORS, RECIPIENTS, max_new_tokens=4, stop_ids=())
    for rows in (1, 6, 9):
        part = patching.prompt_end_sweep(
            lm, DONORS, RECIPIENTS, [(1, 0), (0, 1)], [0, 2], 4, stop_ids=(), max_rows=rows
        )
        assert torch.equal(part.tensors["tokens"][1, 0], whole.tensors["tokens"][1, 0][[0, 2]])
        assert torch.equal(part.tensors["tokens"][0, 1], whole.tensors["tokens"][0, 1][[0, 2]])
        assert bool((part.tensors["tokens"][0, 0] == -1).all())


def test_max_rows_holds_however_many_sources_there_are_and_changes_no_token() -> None:
    lm = load_model(tiny("llama"))
    layers = list(range(lm.anatomy.n_layers))
    prompts = [r[-3:] for r in RECIPIENTS]
    states = prompt_end_states(lm, prompts, layers)[:, None] * torch.linspace(-2, 2, 7)[:, None, None]
    whole = continue_patched(lm, prompts, states, layers, 4, [])
    sizes: list[int] = []
    for layer in lm.anatomy.layers:
        layer.block.register_forward_hook(lambda _m, _a, y: sizes.append((y if torch.is_tensor(y) else y[0]).shape[1]))
    for rows in (3, 8, 21):
        sizes.clear()
        part = continue_patched(lm, prompts, states, layers, 4, [], max_rows=rows)
        assert torch.equal(part.tokens, whole.tokens) and torch.equal(part.base, whole.base)
        assert torch.allclose(part.logits, whole.logits, atol=1e-5) and max(sizes) <= rows


def test_a_prompts_own_state_is_decoded_at_the_first_the_middle_and_the_last_layer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lm = load_model(tiny("llama", num_hidden_layers=5))
    layers, seen = list(range(5)), list[tuple[int, bool]]()

    usual = engine.decode

    def decode(lm: Any, prefix: Any, variants: Any, *rest: Any) -> Any:
        seen.extend(zip(variants.layers, variants.same, strict=True))
        return usual(lm, prefix, variants, *rest)

    monkeypatch.setattr(engine, "decode", decode)
    states = prompt_end_states(lm, RECIPIENTS, layers)
    continue_patched(lm, RECIPIENTS, torch.stack([states, states + 1], 1), layers, 3, [], own=0)
    assert {layer for layer, same in seen if same} == {1, 3}
    assert len(seen) == 2 * 5 * len(RECIPIENTS) and sum(same for _, same in seen) == 2 * len(RECIPIENTS)


def test_no_prompts_at_all_give_no_continuations() -> None:
    tokens, logits = generate(load_model(tiny("llama")), [], 3, [])
    assert tokens.shape == (0, 3) and logits.shape == (0, 97)


def test_continuations_end_where_a_stop_token_was_generated() -> None:
    lm = load_model(tiny("llama"))
    free = patching.prompt_end_sweep(lm, DONORS, RECIPIENTS, max_new_tokens=6, stop_ids=(), controls=())
    stop = int(free.tensors["tokens"][0, 0, 1, 2])
    ended = patching.prompt_end_sweep(lm, DONORS, RECIPIENTS, max_new_tokens=6, stop_ids=(stop,), controls=())
    a, b = free.tensors["tokens"], ended.tensors["tokens"]
    for one, other in zip(a.flatten(0, 2).tolist(), b.flatten(0, 2).tolist(), strict=True):
        length = one.index(stop) + 1 if stop in one else 6
        assert other == one[:length] + [-1] * (6 - length)


def test_flips_corrections_and_log_probabilities_are_counted() -> None:
    lm = load_model(tiny("llama"))
    own = [oracle.greedy(lm.model, p, 3) for p in (*DONORS, *RECIPIENTS)]
    golds = [[50, 51], own[3][:2]]
    got = patching.prompt_end_sweep(
        lm, DONORS, RECIPIENTS, pairs=[(0, 0), (1, 1)], max_new_tokens=3, donor_answers=[own[0], own[1]],
        recipient_answers=golds, stop_ids=(), controls=("identity",), keep="all",
    )  # fmt: skip
    rows = {(r["quantity"], r["group"], r["layer"]): r for r in got.table}
    # The second recipient is right without help, the first is not.
    assert rows["corrected_rate", "identity", 0]["count"] == 1
    assert rows["flip_rate", "donor", 0]["n"] == 2
    log_p = got.tensors["first_logits"].log_softmax(-1)
    expected = (log_p[0, 0, :, 50] + log_p[1, 1, :, own[3][0]]) / 2
    assert torch.allclose(got.tensors["answer_log_prob"], expected, atol=1e-5)
    alone = patching.prompt_end_sweep(
        lm, DONORS, RECIPIENTS, pairs=[(1, 1)], max_new_tokens=3, donor_answers=[own[0], own[1]],
        recipient_answers=golds, stop_ids=(), controls=("identity",),
    )  # fmt: skip
    (row,) = (r for r in alone.table if (r["quantity"], r["group"], r["layer"]) == ("corrected_rate", "identity", 0))
    assert (row["count"], row["n"]) == (1, 1), "by its own answer, although the first recipient is left out"
    assert torch.allclose(alone.tensors["answer_log_prob"], log_p[1, 1, :, own[3][0]], atol=1e-5)


def test_a_flip_is_seen_when_the_state_carries_the_answer() -> None:
    lm = load_model(tiny("llama"))
    prompt = DONORS[0]
    twin = [prompt[1], prompt[0], *prompt[2:]]
    got = patching.prompt_end_sweep(lm, [prompt], [twin], layers=[2], max_new_tokens=1, stop_ids=())
    assert got.tensors["flip_rate"].tolist() == [1.0] or bool(got.tensors["flip_rate"].isnan().all())
    other = patching.prompt_end_sweep(lm, [DONORS[1]], [RECIPIENTS[0]], layers=[2], max_new_tokens=1, stop_ids=())
    assert other.tensors["flip_rate"].tolist() == [1.0]


def test_no_flip_and_nothing_but_flips_are_bounded_by_the_pairs_that_share_nothing() -> None:
    def outcome(donor: int, recipient: int, value: float = 0) -> PatchOutcome:
        zero = torch.full((1,), value, dtype=torch.float64)
        names = ("kl", "kl_from_donor", "tokens_before_divergence", "answer_log_prob", "donor_log_prob", "flip_rate",
                 "unchanged_rate", "other_rate", "corrected_rate", "argmax_changed")  # fmt: skip
        return PatchOutcome("donor", donor, recipient, dict.fromkeys(names, zero))

    grid, _, _ = summarize([outcome(d, r) for d in range(4) for r in range(4)], [0])
    single, _, _ = summarize([outcome(i, i) for i in range(16)], [0])
    bound = {len({r["n"]}): r for r in grid if r["quantity"] == "flip_rate"}[1]
    alone = next(r for r in single if r["quantity"] == "flip_rate")
    assert (bound["n"], alone["n"]) == (16, 16)
    assert bound["high"] == pytest.approx(1 - 0.025 ** (1 / 4))
    assert alone["high"] == pytest.approx(1 - 0.025 ** (1 / 16))
    every, _, _ = summarize([outcome(d, r, 1) for d in range(4) for r in range(4)], [0])
    (row,) = (r for r in every if r["quantity"] == "flip_rate")
    assert (row["count"], row["low"], row["high"]) == (16, pytest.approx(0.025 ** (1 / 4)), 1)
    assert "bounded as 4" in row["note"] and not alone["note"]


@pytest.mark.parametrize(
    ("patched", "base", "equal"),
    [
        ([7, 8, 9, 4], [7, 8, 9, 4], 4),
        ([7, 1, 9, 4], [7, 8, 9, 4], 1),  # what agrees again after the first difference does not count
        ([1, 8, 9, 4], [7, 8, 9, 4], 0),
        ([7, 8, -1, -1], [7, 8, -1, -1], 2),  # both ended
        ([7, 8, 5, 6], [7, 8, -1, -1], 2),
    ],
)
def test_divergence_from_the_unpatched_is_counted_to_the_first_difference_and_weighed_by_it(
    patched: list[int], base: list[int], equal: int
) -> None:
    own, other, donor = ([0.7, 0.2, 0.1], [0.1, 0.3, 0.6], [0.25, 0.25, 0.5])
    logits = [
        torch.tensor(x, dtype=torch.float64).log() + shift for x, shift in ((own, 3.0), (other, -1.0), (donor, 2.0))
    ]

    def of(answer: list[int] | None) -> dict[str, torch.Tensor]:
        return compare("donor", (0, 0), (torch.tensor([patched]), logits[1][None]), (torch.tensor(base), logits[0]),
                       (torch.tensor([3, 3, 3, 3]), logits[2]), (0, 2), answer).values  # fmt: skip

    answers = [patched[:1], patched[:2], [patched[0], 0], [0, patched[1]], [*patched, 0]]
    found = [float(of(answer)["corrected_rate"]) for answer in answers]
    assert found == pytest.approx([1, 1, 0, 0, math.nan], nan_ok=True), "the last answer is longer than the limit"
    found = of(None)
    assert float(found["tokens_before_divergence"]) == equal
    assert float(found["kl"]) == pytest.approx(entropy(own, other))
    assert float(found["kl_from_donor"]) == pytest.approx(entropy(donor, other))
    assert float(entropy(own, other)) > 1.05 * float(entropy(other, own))
    assert float(found["logit_difference"]) == pytest.approx(math.log(0.6 / 0.1))


@pytest.mark.parametrize(
    ("patched", "said", "other"),
    [
        ([7, 1], (0.0, 0.0, 0.0), 1.0),
        ([7, 1], (1.0, 0.0, 0.0), 0.0),  # the donor's answer
        ([7, 1], (0.0, 1.0, 0.0), 0.0),  # no answer
        ([7, 1], (math.nan, math.nan, 1.0), 1.0),  # neither can happen, and yet the answer is another one
        ([7, 1], (math.nan, math.nan, math.nan), math.nan),  # nobody can judge it
        ([7, 8], (math.nan, math.nan, math.nan), 0.0),  # nor this one, but it is the unpatched one
        ([7, 8], (0.0, 0.0, 1.0), 0.0),
        ([7, 1], None, 1.0),
        ([3, 3], None, 0.0),
        ([7, 8], None, 0.0),
    ],
)
def test_what_neither_flips_nor_abstains_nor_stays_is_another_answer_if_it_can_be_judged(
    patched: list[int], said: tuple[float, float, float] | None, other: float
) -> None:
    logits, base = torch.zeros(3), torch.tensor([7, 8])
    graded = said and GradedContinuations(*(torch.tensor([x], dtype=torch.float64) for x in said))
    found = compare("donor", (0, 1), (torch.tensor([patched]), logits[None]), (base, logits),
                    (torch.tensor([3, 3]), logits), (0, 1), [7, 1], graded or None)  # fmt: skip
    assert (found.source, found.donor, found.recipient) == ("donor", 0, 1)
    rates = [float(found.values[f"{name}_rate"]) for name in ("flip", "abstain", "corrected", "other", "unchanged")]
    own = said or (float(patched == [3, 3]), math.nan, float(patched == [7, 1]))
    assert rates == pytest.approx([*own, other, float(patched == [7, 8])], nan_ok=True)
    same = compare("donor", (0, 1), (torch.tensor([patched]), logits[None]), (base, logits), (base, logits), (0, 1),
                   None).values  # fmt: skip
    assert math.isnan(float(same["flip_rate"])) and math.isnan(float(same["corrected_rate"]))
    assert float(same["other_rate"]) == float(patched != [7, 8]), "the donor says what the recipient says"


def test_transplanting_the_whole_prompt_gives_the_donors_first_logits() -> None:
    lm = load_model(tiny("gpt2"))
    donor, recipient = DONORS[0], RECIPIENTS[1]
    first = transplant_all(lm, donor, recipient, [0, 1, 2])
    with torch.no_grad():
        own = lm.run(torch.tensor([donor])).logits[0, -1]
    for layer in range(3):
        assert torch.allclose(first[layer], own, atol=1e-5)


def test_the_first_positive_control_is_computed_anew_at_the_first_middle_and_last_layer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lm = load_model(tiny("llama"))
    pairs = [(DONORS[0], DONORS[0][::-1]), (DONORS[1], DONORS[1][::-1])]
    monkeypatch.setattr(
        engine, "transplant_all", lambda _, *given: 1.0 * torch.tensor(given[-1])[:, None].expand(-1, 97)
    )
    for layers in ([0, 1, 2], [2], [1, 2]):
        (_, first), (_, second) = engine.transplant_pairs(lm, pairs, layers, 2, ())
        assert first[:, 0].tolist() == layers and second[:, 0].tolist() != layers


@pytest.mark.parametrize("kind", ["resid_pre", "resid_post", "attn_out", "mlp_out", "head", "neuron"])
def test_a_position_sweep_is_one_edit_at_a_time(kind: str) -> None:
    lm = load_model(tiny("llama"))
    donor, recipient = DONORS[0], RECIPIENTS[1]
    got = patching.position_sweep(lm, [donor], [recipient], [(4, 9)], kind=kind, max_batch=3)  # type: ignore[arg-type]
    site = Site(1, kind)  # type: ignore[arg-type]
    with torch.no_grad():
        value = lm.run(torch.tensor([donor]), read=[site]).acts[site]
        ends = [lm.run(torch.tensor([p])).logits[0, -1] for p in (donor, recipient)]
        for position in (2, 7):

            def put(x: torch.Tensor, position: int = position) -> torch.Tensor:
                y = x.clone()
                y[:, position] = value[:, position]
                return y

            logits = lm.run(torch.tensor([recipient]), edit={site: put}).logits[0, -1]
            difference = float(logits[4] - logits[9])
            assert float(got.tensors["logit_difference"][0, 1, position]) == pytest.approx(difference, abs=1e-4)
            spread = [float(e[4] - e[9]) for e in ends]
            recovered = (difference - spread[1]) / (spread[0] - spread[1])
            assert float(got.tensors["recovered"][0, 1, position]) == pytest.approx(recovered, abs=1e-3)
            p, q = (x.double().softmax(-1).numpy() for x in (logits, ends[1]))
            assert float(got.tensors["kl"][0, 1, position]) == pytest.approx(entropy(q, p), abs=1e-5)
            assert abs(float(entropy(p, q)) - float(entropy(q, p))) > 1e-4, "which way round it is can be seen"
            assert float(got.tensors["probability"][0, 1, position]) == pytest.approx(p[4], abs=1e-5)


def test_the_last_position_of_the_last_block_recovers_everything() -> None:
    lm = load_model(tiny("qwen3"))
    got = patching.position_sweep(lm, [DONORS[0]], [RECIPIENTS[1]], [(4, 9)], positions=[-1], layers=[2])
    assert got.tensors["recovered"].item() == pytest.approx(1, abs=1e-4)
    one = patching.position_sweep(lm, [DONORS[0]], [RECIPIENTS[1]], [(4, 9)], kind="head", head=1)
    assert not torch.equal(
        one.tensors["kl"],
        patching.position_sweep(lm, [DONORS[0]], [RECIPIENTS[1]], [(4, 9)], kind="head").tensors["kl"],
    )


def examples(model: Model, groups: tuple[str, ...] = ("failure", "success")) -> list[Example]:
    g = torch.Generator().manual_seed(1)
    return [
        Example(
            f"c{c}", "whole", "composition", groups[c % len(groups)],
            tuple(torch.randint(5, 90, (9 + c % 3,), generator=g).tolist()), (), (7, 8), 0, (0, 5), "far", 2,
        )
        for c in range(12)
    ]  # fmt: skip


def test_failures_are_patched_from_matched_successes(tmp_path: Path) -> None:
    lm = load_model(tiny("llama"))
    given = [replace(e, family="near" if i < 8 else "far") for i, e in enumerate(examples(lm))]
    got = patching.over_examples(lm, given, max_pairs=4, max_new_tokens=3)
    (said,) = (w for w in got.warnings if "4 of 6 pairs kept" in w)
    assert len(got.settings["cases"]) == 4 and "far 2 of 2, near 2 of 4" in said
    [before] = [r for r in got.table if r["quantity"] == "preceding_token_differs"]
    last = {e.case: e.prompt_ids[-1] for e in examples(lm)}
    assert (before["n"], before["count"]) == (4, sum(last[s] != last[f] for s, f in got.settings["cases"]))
    every = patching.over_examples(lm, examples(lm), max_pairs=6, layers=[0], max_new_tokens=1, controls=())
    assert len(every.settings["cases"]) == 6 and not any("pairs kept" in w for w in every.warnings)
    assert got.tensors["tokens"].shape == (4, 3, 3) and got.axes["tokens"] == ("pair", "layer", "step")
    assert {"donor", "identity", "random", "noise"} <= {r["group"] for r in got.table}
    of_case = {(v["quantity"], v["case"]): v["value"] for v in got.values}
    assert len(of_case) == len(COMPARED) * 4 and {c for _, c in of_case} == {f for _, f in got.settings["cases"]}
    kl = [value for (quantity, _), value in of_case.items() if quantity == "kl"]
    assert sum(kl) / 4 == pytest.approx(float(got.tensors["kl"].mean()), rel=1e-5)
    assert (got.save(tmp_path) / "values.csv").is_file(), "two runs are compared by it"
    with pytest.raises(NoCasesError, match="successes to patch from"):
        patching.over_examples(lm, examples(lm, ("failure",)))


def test_patching_of_examples_scores_the_gold_answers_of_both_sides() -> None:
    lm = load_model(tiny("llama"))
    given = [replace(e, answer_ids=(7 + i, 8)) for i, e in enumerate(examples(lm))]
    got = patching.over_examples(lm, given, max_pairs=4, max_new_tokens=3, controls=())
    of = {e.case: e for e in given}
    donors, recipients = ([of[pair[side]] for pair in got.settings["cases"]] for side in (0, 1))
    want = patching.prompt_end_sweep(
        lm, [e.prompt_ids for e in donors], [e.prompt_ids for e in recipients], [(i, i) for i in range(4)],
        max_new_tokens=3, controls=(), donor_answers=[e.answer_ids for e in donors],
        recipient_answers=[e.answer_ids for e in recipients],
    )  # fmt: skip
    assert got.settings["answer_log_prob"] == want.settings["answer_log_prob"] == "first token of the gold answer"
    for name in ("answer_log_prob", "logit_difference", "flip_rate", "corrected_rate"):
        assert torch.equal(got.tensors[name].nan_to_num(-1), want.tensors[name].nan_to_num(-1)), name


def test_bad_input_is_refused_by_name() -> None:
    lm = load_model(tiny("llama"))
    sweep = patching.prompt_end_sweep
    for act, text in (
        (lambda: sweep(lm, DONORS, RECIPIENTS, layers=[3]), "has 3 layers"),
        (lambda: sweep(lm, DONORS, RECIPIENTS, [(2, 0)]), r"pair \(2, 0\)"),
        (lambda: sweep(lm, DONORS, RECIPIENTS, [(0, 0), (0, 0)]), "repetitions"),
        (lambda: sweep(lm, DONORS, RECIPIENTS, controls=("nothing",)), "nothing"),
        (lambda: sweep(lm, DONORS, RECIPIENTS, recipient_answers=[[], [3]]), "answer 0: no token"),
        (lambda: patching.position_sweep(lm, DONORS, RECIPIENTS, [(1, 2)] * 2), "equally long"),
        (lambda: patching.position_sweep(lm, [DONORS[0]], [RECIPIENTS[1]], [(1, 2)], kind="pattern"), "pattern"),
    ):
        with pytest.raises(InputError, match=text):
            act()
    with pytest.raises(NoCasesError):
        sweep(lm, [], RECIPIENTS)


@pytest.mark.parametrize("model", ["tiny_llama", "tiny_gpt2"])
def test_golden_patches_are_reproduced(model: str) -> None:
    lm = load_model(PUBLISHED / "models" / model)
    z = np.load(PUBLISHED / "patching" / f"{model}.npz")
    prompts = [p.tolist() for p in np.split(z["prompts"], np.cumsum(z["prompt_lens"])[:-1])]
    got = patching.prompt_end_sweep(lm, prompts[:3], prompts[3:], max_new_tokens=10, keep="all")
    assert np.abs(got.tensors["first_logits"].numpy() - z["patched_first_logits"]).max() < 5e-5
    assert (got.tensors["tokens"].numpy() == z["patched_tokens"]).all()
    assert (got.tensors["base_tokens"].numpy() == z["generated"][3:]).all()
    assert (got.tensors["donor_tokens"].numpy() == z["generated"][:3]).all()
