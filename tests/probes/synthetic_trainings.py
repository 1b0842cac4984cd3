"""Per-case tables of synthetic trainings: four doses from one base per seed, the same cases everywhere.

States, lengths, likelihoods and confidences are about what a small organism shows: the lowest dose answers with a bare
thing, the question's likelihood rises with the dose, harder cases are less likely. Probes read them as named.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from composcope.probes.verdicts import Observations

Array = np.ndarray


@dataclass(frozen=True)
class World:
    """Trainings x doses x cases, flat."""

    training: Array
    dose: Array
    case: Array
    difficulty: Array
    baselines: dict[str, Array]

    def seen(self, value: Array) -> Observations:
        return Observations(self.training.tolist(), self.dose.tolist(), self.case.tolist(), value, self.baselines)


def world(rng: np.random.Generator, trainings: int = 8, cases: int = 40, doses: int = 4) -> World:
    axes = (np.arange(trainings), np.arange(doses), np.arange(cases))
    t, d, c = (a.ravel() for a in np.meshgrid(*axes, indexing="ij"))
    hard, apart = rng.normal(size=cases)[c], 0.4 * rng.normal(size=(2, trainings, doses))
    likelihood = 1.2 * d - hard + 0.5 * rng.normal(size=t.size) + apart[0][t, d]
    length = np.round(np.where(d == 0, 1, 5) + 0.3 * hard + 0.4 * d + 0.8 * rng.normal(size=t.size))
    confidence = 0.6 * d - 0.5 * hard + apart[1][t, d] + rng.normal(size=t.size)
    return World(t, d, c, hard, {"confidence": confidence, "length": length, "likelihood": likelihood})


def nulls(rng: np.random.Generator, w: World) -> Iterator[tuple[str, Array]]:
    """Numbers that say nothing of the dose, whatever they do in one training."""
    n, (t, d, c) = w.training.size, (w.training, w.dose, w.case)
    known = np.stack([*(x / x.std() for x in w.baselines.values()), w.difficulty], 1)
    size = t.max() + 1, d.max() + 1
    # A direction of the state: what the state encodes loads on it by chance, anew in each training, and doses move it.
    loads, moved = rng.normal(size=(size[0], 4)), rng.normal(size=size).cumsum(1)
    yield "random direction", (known * loads[t]).sum(1) + moved[t, d] + rng.normal(size=n)
    yield "offset noise", 2 * rng.normal(size=size)[t, d] + rng.normal(size=n)
    yield "a number of the case alone", rng.normal(size=c.max() + 1)[c] + 0.1 * rng.normal(size=n)


def confounds(rng: np.random.Generator, w: World) -> Iterator[tuple[str, Array]]:
    """Numbers that follow the dose only as a baseline does, by the baseline's name."""
    noise = rng.normal(size=(3, w.training.size))
    yield "length", np.log1p(np.maximum(w.baselines["length"], 0)) + 0.1 * noise[0]
    yield "likelihood", np.exp(0.4 * w.baselines["likelihood"]) + 0.5 * noise[1]
    yield "confidence", w.baselines["confidence"] ** 3 + noise[2]
