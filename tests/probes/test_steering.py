"""Steering and patching at the prompt's end: what is put in, which controls stand beside it, and that it is exact."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import torch

from composcope.errors import InputError, NoCasesError
from composcope.hooks import Model, Site, load_model
from composcope.probes import steering

from ..tiny_models import tiny

PROMPTS = [[3, 5, 7, 9], [4, 6, 8, 2, 11], [12, 5, 1, 9]]


@pytest.fixture(scope="module")
def lm() -> Model:
    return load_model(tiny("llama"))


def _states(lm: Model, prompt: list[int], layer: int) -> torch.Tensor:
    got = lm.run(torch.tensor([prompt]), read=[Site(layer, "resid_post")])
    return got.acts[Site(layer, "resid_post")][0, -1]


def _by_hand(lm: Model, prompt: list[int], layer: int, add: torch.Tensor, steps: int) -> list[int]:
    """The same with a plain forward pass per token over the whole sequence."""
    ids, end = list(prompt), len(prompt) - 1

    def edit(x: torch.Tensor) -> torch.Tensor:
        y = x.clone()
        y[:, end] += add
        return y

    for _ in range(steps):
        logits = lm.run(torch.tensor([ids]), edit={Site(layer, "resid_post"): edit}).logits
        ids.append(int(logits[0, -1].argmax()))
    return ids[len(prompt) :]


def test_the_direction_is_the_difference_of_the_group_means(lm: Model) -> None:
    found = steering.direction(lm, PROMPTS[:2], PROMPTS[2:], [0, 1])
    for k, layer in enumerate((0, 1)):
        want = (_states(lm, PROMPTS[0], layer) + _states(lm, PROMPTS[1], layer)) / 2 - _states(lm, PROMPTS[2], layer)
        torch.testing.assert_close(found[k], want, atol=1e-5, rtol=1e-5)


def test_every_source_and_layer_continues_as_a_plain_forward_pass_with_the_same_edit(lm: Model) -> None:
    along = 40 * torch.randn(2, lm.anatomy.d_model, generator=torch.Generator().manual_seed(1))
    got = steering.steer(lm, PROMPTS, along, [0, 1], strengths=(0.5, 1), max_new_tokens=3, stop_ids=())
    assert got.sources == ("+0.5", "+1", "-1", "random:0", "random:1", "none")
    changed = 0
    for i, prompt in enumerate(PROMPTS):
        for k, layer in enumerate(got.layers):
            for name, scale in (("+0.5", 0.5), ("+1", 1.0), ("-1", -1.0)):
                tokens = got.tokens[i, got.sources.index(name), k].tolist()
                assert tokens == _by_hand(lm, prompt, layer, scale * along[k], 3)
                changed += tokens != got.base[i].tolist()
    assert changed, "the step is large enough to matter"
    same: Any = torch.tensor([p[:4] for p in PROMPTS])
    rows = [steering.steer(lm, p, along, [0, 1], max_new_tokens=2, stop_ids=()) for p in (same, same.tolist())]
    assert torch.equal(rows[0].tokens, rows[1].tokens), "recipients may be the rows of a tensor"


def test_the_opposite_and_the_random_directions_are_as_long_as_the_largest_step(
    lm: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: list[torch.Tensor] = []
    monkeypatch.setattr(steering, "_continue", lambda lm, recipients, states, *_: given.append(states))
    along = 3 * torch.randn(2, lm.anatomy.d_model, generator=torch.Generator().manual_seed(1))
    steering.steer(lm, PROMPTS[:1], along, [0, 1], strengths=(0.5, 2))
    steps = given[0][0] - steering.prompt_end_states(lm, PROMPTS[:1], [0, 1])
    lengths = steps.norm(dim=-1) / along.norm(dim=-1)
    torch.testing.assert_close(lengths, torch.tensor([0.5, 2, 2, 2, 2, 0])[:, None].expand(-1, 2), atol=1e-4, rtol=1e-4)
    torch.testing.assert_close(steps[2], -2 * along, atol=1e-4, rtol=1e-4)


def test_adding_nothing_changes_nothing(lm: Model) -> None:
    along = torch.ones(2, lm.anatomy.d_model)
    got = steering.steer(lm, PROMPTS, along, [0, 1], max_new_tokens=4, stop_ids=())
    none = got.tokens[:, got.sources.index("none")]
    assert (none == got.base[:, None]).all()


def test_random_directions_are_as_long_as_the_largest_step_and_follow_the_seed() -> None:
    along = torch.randn(3, 16, generator=torch.Generator().manual_seed(0))
    one, other = (steering._noise(along, 2.0, 2, seed=s) for s in (0, 1))
    for noise in one:
        torch.testing.assert_close(noise.norm(dim=-1), 2 * along.norm(dim=-1))
    assert torch.equal(one[0], steering._noise(along, 2.0, 2, seed=0)[0])
    assert not torch.allclose(one[0], other[0]) and not torch.allclose(one[0], one[1])


def test_controls_are_as_long_as_the_largest_step_in_whatever_order_steps_are_given(
    lm: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    put_in = list[tuple[torch.Tensor, tuple[str, ...]]]()
    monkeypatch.setattr(steering, "_continue", lambda lm, recipients, states, names, *_: put_in.append((states, names)))
    along = steering.direction(lm, PROMPTS[:2], PROMPTS[2:], [0, 1])
    steering.steer(lm, PROMPTS, along, [0, 1], strengths=(2.0, 1.0), n_random=1)
    [(states, names)] = put_in
    assert names == ("+2", "+1", "-2", "random:0", "none")
    steps = (states - states[:, -1:]).norm(dim=-1)[0] / along.norm(dim=-1)
    torch.testing.assert_close(steps, torch.tensor([[2.0], [1.0], [2.0], [2.0], [0.0]]).expand(-1, 2))


def test_the_models_own_end_tokens_end_a_continuation_unless_others_or_none_are_given(
    lm: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    ends = list[tuple[int, ...]]()
    nothing = SimpleNamespace(base=torch.zeros(3, 1).long(), tokens=torch.zeros(3, 3, 1, 1).long())
    monkeypatch.setattr(steering, "continue_patched", lambda *of: ends.append(of[-1]) or nothing)
    for given in (None, (), (7,)):
        steering.patch(lm, PROMPTS, {"donor": PROMPTS}, [0], stop_ids=given)
    assert ends == [tuple(lm.eos_ids), (), (7,)] and lm.eos_ids


def test_a_donor_at_the_last_layer_gives_its_own_first_token(lm: Model) -> None:
    last = lm.anatomy.n_layers - 1
    donors = {"donor": [PROMPTS[2], PROMPTS[0], PROMPTS[1]]}
    got = steering.patch(lm, PROMPTS, donors, [last], max_new_tokens=2, stop_ids=())
    assert got.sources == ("donor", "noise", "none")
    firsts = [int(lm.run(torch.tensor([p])).logits[0, -1].argmax()) for p in donors["donor"]]
    assert got.tokens[:, 0, 0, 0].tolist() == firsts
    assert torch.equal(got.tokens[:, 2, 0], got.base)


def test_noise_is_as_far_from_the_recipient_as_the_first_donor_is(lm: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    put_in = list[torch.Tensor]()
    monkeypatch.setattr(steering, "_continue", lambda lm, recipients, states, *_: put_in.append(states))
    a, b, c = PROMPTS
    steering.patch(lm, PROMPTS, {"donor": [c, a, b], "other": [b, c, a]}, [0, 1])
    donor, other, noise, none = put_in[0].unbind(1)
    distances = [(state - none).norm(dim=-1) for state in (noise, donor, other)]
    torch.testing.assert_close(distances[0], distances[1])
    assert not torch.allclose(distances[1], distances[2])
    assert not torch.allclose(noise, donor) and float(distances[1].min()) > 0.1


def test_refusals_name_what_is_wrong(lm: Model) -> None:
    along = torch.zeros(1, lm.anatomy.d_model)
    with pytest.raises(NoCasesError, match="0 failures"):
        steering.direction(lm, PROMPTS, [], [0])
    with pytest.raises(InputError, match="layers"):
        steering.direction(lm, PROMPTS, PROMPTS, [])
    with pytest.raises(InputError, match="shape"):
        steering.steer(lm, PROMPTS, along, [0, 1])
    with pytest.raises(InputError, match="strengths"):
        steering.steer(lm, PROMPTS, along, [0], strengths=())
    with pytest.raises(InputError, match="different numbers"):  # both would be "+1"
        steering.steer(lm, PROMPTS, along, [0], strengths=(1, 1.0000001))
    with pytest.raises(NoCasesError, match="0 recipients"):
        steering.steer(lm, [], along, [0])
    with pytest.raises(NoCasesError, match="0 recipients"):
        steering.patch(lm, [], {"donor": []}, [0])
    with pytest.raises(InputError, match="layers"):
        steering.steer(lm, PROMPTS, along, [99])
    with pytest.raises(InputError, match="lowest first"):  # a direction would go in at another layer
        steering.steer(lm, PROMPTS, along.expand(2, -1), [1, 0])
    for control in ("noise", "none"):
        with pytest.raises(InputError, match="names of controls"):
            steering.patch(lm, PROMPTS, {control: PROMPTS}, [0])
    with pytest.raises(InputError, match="one donor per recipient"):
        steering.patch(lm, PROMPTS, {"donor": PROMPTS[:1]}, [0])
