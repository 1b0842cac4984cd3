"""What the donor's state does beyond a control's: paired by recipient, Holm over layers."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from scipy import stats
from tiny_models import tiny

from composcope.evaluation.dependence import Sides
from composcope.hooks import Model
from composcope.probes import patching
from composcope.probes.patching.outcomes import QUANTITIES, PatchOutcome, against_controls, summarize
from composcope.probes.patching.prompt_end import _plan, _sources


def _outcome(source: str, donor: int | None, recipient: int, values: Any) -> PatchOutcome:
    column = torch.tensor(values, dtype=torch.float64)
    return PatchOutcome(source, donor, recipient, dict.fromkeys(QUANTITIES, column))


def test_donors_of_a_recipient_are_averaged_and_compared_with_its_control() -> None:
    rng = np.random.default_rng(0)
    donor, control = rng.normal(1, 1, (2, 6, 3)), rng.normal(size=(6, 3))
    outcomes = [_outcome("donor", d, r, donor[d, r]) for d in range(2) for r in range(6)]
    outcomes += [_outcome("random", None, r, control[r]) for r in range(6)]
    rows = [r for r in against_controls(outcomes, [0, 1, 2]) if r["quantity"] == "logit_difference"]
    assert [(r["layer"], r["group"], r["n"]) for r in rows] == [(i, "donor - random", 6) for i in range(3)]
    expected: Any = stats.ttest_rel(donor.mean(0), control)
    assert [r["p"] for r in rows] == pytest.approx(expected.pvalue)
    assert [r["value"] for r in rows] == pytest.approx((donor.mean(0) - control).mean(0))
    by_p = sorted(rows, key=lambda r: r["p"])
    steps = np.minimum(1, np.maximum.accumulate([r["p"] * n for r, n in zip(by_p, (3, 2, 1), strict=True)]))
    assert [r["p_adjusted"] for r in by_p] == pytest.approx(steps.tolist())
    assert all(r["family"] == "logit_difference: donor - random, all layers" for r in rows)


def test_what_is_undefined_is_left_out_and_rates_are_permuted() -> None:
    outcomes = [_outcome("donor", 0, r, [1.0 if r else math.nan]) for r in range(5)]
    outcomes += [_outcome("noise", None, r, [0.0]) for r in range(5)]
    rows = against_controls(outcomes, [7])
    (row,) = [r for r in rows if r["quantity"] == "flip_rate"]
    assert (row["n"], row["n_dropped"], row["layer"]) == (4, 1, 7) and row["test"] == "sign-flip permutation"
    assert row["p"] == pytest.approx(2 / 16, abs=0.03) and row["group"] == "donor - noise"
    undefined = [_outcome("donor", 0, 0, [math.nan]), _outcome("noise", None, 0, [0.0])]
    assert against_controls(undefined, [0]) == []


def test_the_value_of_a_recipient_is_the_mean_over_its_donors_and_layers_where_it_is_defined() -> None:
    outcomes, nan = patching.outcomes, math.nan
    given = [("donor", 3, [1, nan]), ("donor", 3, [3, 5]), ("donor", 4, [nan, nan]), ("noise", 3, [9, 9])]
    made = [PatchOutcome(s, 0, r, dict.fromkeys(outcomes.COMPARED, torch.tensor(x).float())) for s, r, x in given]
    found = {(row["quantity"], row["recipient"]): row["value"] for row in outcomes.by_recipient(made)}
    assert found == pytest.approx({(q, r): {3: 3, 4: nan}[r] for q in outcomes.COMPARED for r in (3, 4)}, nan_ok=True)


def test_the_interval_of_a_difference_of_rates_ends_at_one() -> None:
    outcomes = [_outcome("donor", r, r, [float(r > 0)]) for r in range(2)]
    outcomes += [_outcome("random", None, r, [0.0]) for r in range(2)]
    ends = {r["quantity"]: (r["low"], r["high"]) for r in against_controls(outcomes, [0])}
    assert ends["flip_rate"] == ends["corrected_rate"] == (-1, 1)
    assert ends["logit_difference"][0] < -1 and ends["logit_difference"][1] > 1


def test_several_donors_against_one_control_are_tested_within_recipients_too() -> None:
    flips = {r: ([1, 0, 0, 0], [0]) for r in range(10)}  # means of 1/4 against 0: every sign agrees
    made = [_flip(s, d, r, x) for r, sides in flips.items() for s, side in zip(("donor", "random"), sides, strict=True)
            for d, x in enumerate(side)]  # fmt: skip
    (row,) = [r for r in against_controls(made, [0]) if r["quantity"] == "flip_rate"]
    # With one hit among five values the control has it with probability 1/5: none or four recipients are as far away.
    exact = stats.binom.pmf(0, 10, 0.2) + stats.binom.sf(3, 10, 0.2)
    assert row["p"] == pytest.approx(exact, abs=0.03) and "within recipients" in row["test"]
    assert math.isnan(row["low"]), "no spread"
    made[1] = _flip("donor", 1, 0, 1)  # a second hit of the first recipient
    (wider,) = [r for r in against_controls(made, [0]) if r["quantity"] == "flip_rate"]
    half = stats.t.ppf(0.975, 9) * math.sqrt(0.22 * 0.78 * 10 * (1 / 4 + 1)) / 10
    assert (wider["low"], wider["high"]) == pytest.approx((0.275 - half, 0.275 + half))
    varied = {r: ([r % 2] * 4, [r % 3 == 0]) for r in range(10)}  # over recipients it varies more than one rate does
    made_so = [_flip(s, d, r, x) for r, sides in varied.items()
               for s, side in zip(("donor", "random"), sides, strict=True) for d, x in enumerate(side)]  # fmt: skip
    (own,) = [r for r in against_controls(made_so, [0]) if r["quantity"] == "flip_rate"]
    d = np.array([a[0] - b[0] for a, b in varied.values()])
    half = stats.t.ppf(0.975, 9) * d.std(ddof=1) / math.sqrt(10)
    assert (own["low"], own["high"]) == pytest.approx((d.mean() - half, d.mean() + half)), "its own is wide enough"
    (alone,) = [r for r in against_controls([o for o in made if not o.donor], [0]) if r["quantity"] == "flip_rate"]
    assert alone["p"] < 0.01 and "within" not in alone["test"]


def _flip(source: str, donor: int, recipient: int, value: float) -> PatchOutcome:
    undefined = {q: torch.tensor([math.nan]) for q in QUANTITIES}
    return PatchOutcome(source, donor, recipient, {**undefined, "flip_rate": torch.tensor([float(value)])})


def _rate(outcomes: list[PatchOutcome]) -> dict[str, Any]:
    return next(r for r in summarize(outcomes, [0])[0] if r["quantity"] == "flip_rate")


def test_a_rate_over_few_donors_is_no_surer_than_the_donors_are_many() -> None:
    flips = [float(i % 8 < 3) for i in range(40)]
    shared = _rate([_outcome("donor", i % 8, i, [x]) for i, x in enumerate(flips)])
    alone = _rate([_outcome("donor", i, i, [x]) for i, x in enumerate(flips)])
    assert shared["value"] == alone["value"] and alone["interval"] == "clopper-pearson"
    assert _rate([_outcome("random", None, i, [x]) for i, x in enumerate(flips)]) == {**alone, "group": "random"}
    assert shared["high"] - shared["low"] > 2 * (alone["high"] - alone["low"])
    few = _rate([_outcome("donor", i % 4, i, [x]) for i, x in enumerate(flips)])
    assert math.isnan(few["low"]) and "fewer" in few["interval"]


def test_what_recipients_share_widens_rates_and_is_flipped_together() -> None:
    facts = [Sides(None, f"fact {i % 8}") for i in range(40)]
    made = [replace(_outcome("donor", i, i, [float(i % 8 < 3)]), shares=facts[i]) for i in range(40)]
    found = _rate(made)
    assert found["low"] < 0.1 and found["high"] > 0.7 and found["interval"] == "korn-graubard"
    none = _rate([replace(o, values=dict.fromkeys(QUANTITIES, torch.zeros(1))) for o in made])
    assert none["high"] == pytest.approx(1 - 0.025 ** (1 / 8))
    control = [replace(_outcome("random", None, i, [0.0]), shares=facts[i]) for i in range(40)]
    (row,) = [r for r in against_controls(made + control, [0]) if r["quantity"] == "flip_rate"]
    assert row["test"] == "sign-flip permutation of clusters" and row["p"] > 0.05
    two = [Sides(None, frozenset({f"fact {i % 8}", f"relation {i // 8}"})) for i in range(40)]  # one joins all
    (row,) = [r for r in against_controls([replace(o, shares=two[o.recipient]) for o in made + control], [0])
              if r["quantity"] == "flip_rate"]  # fmt: skip
    assert row["test"] == "t of crossed random effects" and 0 < row["p"] <= 1


def test_controls_are_other_states_as_far_away_as_the_donor_and_follow_the_seed() -> None:
    generator = torch.Generator().manual_seed(0)
    own, donors = torch.randn(4, 3, 8, generator=generator), 5 * torch.randn(2, 3, 8, generator=generator)

    def made(seed: int) -> dict[str, torch.Tensor]:
        states, names = _sources(own, donors, _plan(2, 4, None), ("identity", "random", "noise"), seed)
        assert names == ["donor", "donor", "identity", "random", "noise"]
        return dict(zip(names, states.unbind(1), strict=True))

    for seed in range(6):
        found = made(seed)
        assert torch.equal(found["identity"], own)
        for i, state in enumerate(found["random"]):
            assert any(torch.equal(state, own[j]) for j in range(4) if j != i)
        away = (found["noise"] - own).norm(dim=-1)
        assert torch.allclose(away, (donors[0] - own).norm(dim=-1), rtol=1e-4)
        each = _sources(own, donors, _plan(2, 4, [(1, 0), (0, 1), (1, 2), (0, 3)]), ("noise",), seed)[0][:, -1]
        assert torch.allclose((each - own).norm(dim=-1), (donors[[1, 0, 1, 0]] - own).norm(dim=-1), rtol=1e-4)
        assert torch.equal(found["noise"], made(seed)["noise"]) != torch.equal(found["noise"], made(seed + 1)["noise"])


def test_a_sweep_says_what_its_donors_do_beyond_other_states() -> None:
    lm = Model(tiny("llama"))
    donors, recipients = [[1, 5, 6, 9]], [[1, 7, 8, 9], [1, 10, 11, 9], [1, 12, 9, 9]]
    found = patching.prompt_end_sweep(lm, donors, recipients, max_new_tokens=2)
    rows = [r for r in found.table if r["group"] in ("donor - random", "donor - noise")]
    assert {r["layer"] for r in rows} == set(range(lm.anatomy.n_layers)) and all(r["n"] <= 3 for r in rows)
    assert {"effect", "low", "high", "test", "p", "p_adjusted", "family"} <= set(rows[0])
    alone = patching.prompt_end_sweep(lm, donors, recipients[:1], max_new_tokens=2, controls=("random",))
    assert "one recipient only: no random control" in alone.warnings
    assert not [r for r in alone.table if " - " in r["group"]]


@pytest.mark.parametrize("side", [0, 1])
def test_pairs_of_a_sweep_are_as_many_as_their_donors_and_recipients_share_nothing(side: int) -> None:
    lm = Model(tiny("llama"))
    prompts = [[1, 5, 6, 9], [1, 7, 8, 9], [1, 10, 11, 9], [1, 12, 9, 9]]
    alike: list[Any] = [None, None]
    alike[side] = ["x", "x"]
    for clusters, shared in (((None, None), False), (tuple(alike), True)):
        got = patching.prompt_end_sweep(lm, prompts[:2], prompts[2:], [(0, 0), (1, 1)], [2, 0, 2], 1, clusters=clusters,
                                        controls=())  # fmt: skip
        assert got.settings["layers"] == [0, 2] and got.tensors["tokens"].shape[2] == 2
        notes = {r["note"] for r in got.table if r["quantity"] == "unchanged_rate"}
        assert any("share" in note for note in notes) == shared


def test_a_donor_that_goes_into_no_recipient_changes_no_row() -> None:
    lm, recipients = Model(tiny("llama")), [[1, 5, 6, 9], [1, 2, 4, 9]]
    alone = patching.prompt_end_sweep(lm, [[1, 7, 8, 9]], recipients, max_new_tokens=1)
    beside = patching.prompt_end_sweep(
        lm, [[1, 30, 31, 9], [1, 7, 8, 9]], recipients, [(1, 0), (1, 1)], max_new_tokens=1
    )
    numbers = [[r["value"] for r in got.table if " - " not in r["group"]] for got in (alone, beside)]
    assert numbers[0] == pytest.approx(numbers[1], abs=1e-4, nan_ok=True)
