"""Nodes and weights along the path of a neuron, and panels that are split until they are exact enough."""

from __future__ import annotations

import pytest
import torch

from composcope.errors import InputError
from composcope.probes.neurons import quadrature


@pytest.mark.parametrize("steps", [2, 3, 5])
def test_rules_integrate_the_polynomials_that_they_should(steps: int) -> None:
    gauss, ends = quadrature.quadrature("gauss-legendre", steps), quadrature.lobatto(steps)
    for degree in range(2 * steps):
        assert sum(w * x**degree for x, w in zip(gauss.at, gauss.weight, strict=True)) == pytest.approx(
            1 / (degree + 1)
        )
        if degree < 2 * steps - 2:
            inner = sum(w * x**degree for x, w in zip(ends.at, ends.weight, strict=True))
            assert inner + ends.end == pytest.approx(1 / (degree + 1)), degree
    assert ends.at[0] == 0 and ends.end > 0 and len(ends.at) == steps - 1
    reference = quadrature.quadrature("reference", steps)
    assert (
        reference.at == pytest.approx([i / (steps - 1) for i in range(steps)])
        and reference.weight == [1 / steps] * steps
    )
    assert quadrature.quadrature("gradient", 0) == quadrature.Nodes([1.0], [1.0])
    assert reference.with_start() == (reference, 0)
    added, at = gauss.with_start()
    assert (added.at[at], added.weight[at], at, added.end) == (0, 0, steps, gauss.end)
    for rule, n in (("reference", 1), ("gauss", 3), ("gauss-legendre", 2.5)):
        with pytest.raises(InputError):
            quadrature.quadrature(rule, n)  # type: ignore[arg-type]


def _panel(
    gap: float, start: float = 0.0, end: float = 1.0, nodes: int = quadrature.NODES, stale: int = 0
) -> quadrature.Panel:
    return quadrature.Panel(start, end, torch.zeros(1), gap, nodes, stale)


def test_panels_are_split_worst_first_until_the_rest_is_within_half() -> None:
    panels = [_panel(g) for g in (0.1, -3.0, 0.2, 1.0)]
    assert [p.gap for p in quadrature.worst(panels, 1.0)] == [-3.0, 1.0] and quadrature.worst(panels, 4.31) == []
    assert [p.gap for p in quadrature.worst(panels, 4.2)] == [-3.0] and [
        p.gap for p in quadrature.worst(panels, 0.01)
    ] == [-3.0, 1.0, 0.2, 0.1]
    assert len(quadrature.worst([_panel(1.0) for _ in range(9)], 0.1)) == quadrature.SPLITS
    assert quadrature.worst([_panel(1.0) for _ in range(quadrature.MAX_PANELS)], 0.1) == []
    assert (
        quadrature.worst([_panel(1.0, stale=quadrature.STALE)], 0.1) == []
        and quadrature.worst([_panel(1.0, 0.5, 0.5 + 0.9e-6)], 0.1) == []
    )
    assert len(quadrature.worst([_panel(1.0, stale=quadrature.STALE - 1)], 0.1)) == 1


def test_first_tries_are_accepted_repeated_or_split() -> None:
    quick = quadrature.QUICK
    assert quadrature.again(_panel(0.3, nodes=quick), 1.0) == [] and quadrature.again(_panel(-1.0), 1.0) == []
    assert (
        quadrature.again(_panel(0.31, nodes=quick), 1.0)
        == [(0.0, 1.0)]
        == quadrature.again(_panel(10.0, nodes=quick), 1.0)
    )
    pieces = [(0.0, 1 / 16), (1 / 16, 1 / 4), (1 / 4, 1 / 2), (1 / 2, 1.0)]
    assert quadrature.again(_panel(10.1, nodes=quick), 1.0) == pieces == quadrature.again(_panel(1.1), 1.0)
    assert quadrature.split(_panel(1, 0.0, 0.8)) == [(0.0, 0.1), (0.1, 0.8)] and quadrature.split(
        _panel(1, 0.2, 0.6)
    ) == [(0.2, 0.4), (0.4, 0.6)]
    for gaps, stale in (((0.5, -0.5), 0), ((0.6, -0.5), 3)):
        children = [_panel(g) for g in gaps]
        quadrature.aged(_panel(-2.0, stale=2), children)
        assert [c.stale for c in children] == [stale, stale]
    accepted = quadrature.limit(torch.tensor([[0.5]]), torch.tensor([[0.2, 0.5, 0.9]]))
    assert accepted[0].tolist() == pytest.approx([0.003 + 1e-6, 1e-6, 0.004 + 1e-6])
    assert quadrature.limit(torch.tensor([[1e-6]]), torch.tensor([[0.0]]), 0.1)[0, 0] == pytest.approx(1e-7 + 1e-7)
