"""Sites of single heads are parts of the layer's whole site, to read and to edit."""

from __future__ import annotations

import pytest
import tiny_models
import torch

from composcope.errors import ModelError
from composcope.hooks import Model, Site, load_model

IDS = torch.tensor([[3, 17, 42, 9, 61]])
LAYER, D_HEAD = 1, 8


@pytest.fixture(scope="module", params=["llama", "gpt2"])
def lm(request: pytest.FixtureRequest) -> Model:
    return load_model(tiny_models.tiny(request.param))


@pytest.mark.parametrize("kind", ["head", "q", "k", "v", "pattern"])
def test_a_head_is_read_as_its_part_of_the_whole(lm: Model, kind: str) -> None:
    whole = Site(LAYER, kind)  # type: ignore[arg-type]
    last = lm.anatomy.heads(LAYER)[kind in ("k", "v")] - 1
    one = whole._replace(head=last)
    acts = lm.run(IDS, read=[one, whole]).acts
    assert list(acts) == [one, whole]
    expected = acts[whole][..., last * D_HEAD :] if kind == "head" else acts[whole][:, last]
    assert torch.equal(acts[one], expected)
    alone = lm.run(IDS, read={one: lambda x: x.sum(-1)}).acts
    assert list(alone) == [one] and torch.allclose(alone[one], expected.sum(-1))


def test_editing_a_head_is_editing_its_part_of_the_whole(lm: Model) -> None:
    def part(x: torch.Tensor) -> torch.Tensor:
        x[..., 2 * D_HEAD : 3 * D_HEAD] = 0
        return x

    whole = lm.run(IDS, edit={Site(LAYER, "head"): part}).logits
    one = lm.run(IDS, edit={Site(LAYER, "head", head=2): torch.zeros_like}, read=[Site(LAYER, "head", head=2)])
    assert torch.equal(one.logits, whole)
    assert not torch.allclose(one.logits, lm.run(IDS).logits)
    assert not one.acts[Site(LAYER, "head", head=2)].any(), "read after the edit"


def test_several_heads_are_edited_together_and_gradients_arrive(lm: Model) -> None:
    scale = torch.ones(2, requires_grad=True)
    edit = {Site(LAYER, "pattern", head=h): (lambda x, h=h: scale[h] * x) for h in (0, 1)}
    run = lm.run(IDS, edit=edit, read=[Site(LAYER, "pattern", head=0)])
    run.logits[0, -1, 7].backward()
    assert scale.grad is not None and scale.grad.abs().min() > 0


@pytest.mark.parametrize(
    ("site", "named"),
    [
        (Site(0, "resid_post", head=0), "has no heads"),
        (Site(0, "head", head=4), "4 heads"),
        (Site(0, "pattern", head=-1), "4 heads"),
        (Site(7, "head", head=0), "3 layers"),
    ],
)
def test_a_head_that_is_not_there_is_refused(lm: Model, site: Site, named: str) -> None:
    with pytest.raises(ModelError, match=named):
        lm.run(IDS, read=[site])


def test_an_edit_of_a_head_must_keep_its_shape(lm: Model) -> None:
    with pytest.raises(ModelError, match=r"head=1.*\(1, 5, 8\)"):
        lm.run(IDS, edit={Site(0, "head", head=1): lambda x: x[..., :3]})


def test_whole_sites_alone_are_taken_where_heads_are_not_meant(lm: Model) -> None:
    with pytest.raises(ModelError, match="whole site"):
        lm.read_trunk(IDS, [Site(0, "head", head=1)])
