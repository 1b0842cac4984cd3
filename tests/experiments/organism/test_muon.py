"""Muon in float32 takes the same steps as PyTorch's own, and continues from its state."""

from __future__ import annotations

from copy import deepcopy

import pytest
import torch

from composcope.experiments.organism.train import Muon, orthogonalised

SHAPES = ((16, 16), (16, 48), (48, 16), (16, 16))


def _matrices(seed: int) -> list[torch.nn.Parameter]:
    drawn = torch.Generator().manual_seed(seed)
    return [torch.nn.Parameter(torch.randn(shape, generator=drawn)) for shape in SHAPES]


def _gradients(matrices: list[torch.nn.Parameter], seed: int) -> None:
    for matrix, gradient in zip(matrices, _matrices(seed), strict=True):
        matrix.grad = gradient.detach()


def _torchs(matrices: list[torch.nn.Parameter], rate: float) -> torch.optim.Optimizer:
    return torch.optim.Muon(matrices, lr=rate, weight_decay=0.0, adjust_lr_fn="match_rms_adamw")


def test_steps_are_those_of_pytorchs_muon_up_to_the_rounding_of_bfloat16() -> None:
    mine, theirs = _matrices(0), _matrices(0)
    before = deepcopy(mine)
    optimizers = Muon(mine, lr=0.01), _torchs(theirs, 0.01)
    for step in range(3):
        for matrices, optimizer in zip((mine, theirs), optimizers, strict=True):
            _gradients(matrices, 10 + step)
            optimizer.step()
    for a, b, start in zip(mine, theirs, before, strict=True):
        assert float((a - b).detach().norm()) < 0.03 * float((b - start).detach().norm())


def test_a_state_that_pytorchs_muon_saved_is_continued() -> None:
    matrices = _matrices(0)
    theirs = _torchs(matrices, 0.01)
    _gradients(matrices, 5)
    theirs.step()
    mine = Muon(matrices, lr=0.01)
    mine.load_state_dict({"state": theirs.state_dict()["state"], "param_groups": mine.state_dict()["param_groups"]})
    found = [mine.state[m]["momentum_buffer"] for m in matrices]
    expected = [theirs.state[m]["momentum_buffer"] for m in matrices]
    assert all(torch.equal(a, b) for a, b in zip(found, expected, strict=True))


@pytest.mark.parametrize("shape", [(2, 16, 16), (2, 16, 48), (2, 48, 16)])
def test_all_singular_values_become_nearly_one(shape: tuple[int, int, int]) -> None:
    found = torch.linalg.svdvals(orthogonalised(torch.randn(shape, generator=torch.Generator().manual_seed(1))))
    assert 0.3 < float(found.min()) and float(found.max()) < 1.3


def test_matrices_without_a_gradient_stay_as_they_are() -> None:
    matrices = _matrices(0)
    before = [m.detach().clone() for m in matrices]
    _gradients(matrices, 3)
    matrices[1].grad = None
    Muon(matrices, lr=0.1).step()
    assert [torch.equal(m, b) for m, b in zip(matrices, before, strict=True)] == [False, True, False, False]
