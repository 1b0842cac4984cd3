"""Which cases a jackknife over trainings leaves out together, and the variance that it finds.

Cases are the same in every training and at every level, so each group is left out everywhere at once.
"""

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from ..evaluation import dependence

Array = NDArray[np.float64]
GROUPS = 10
"""Groups of cases that the jackknife leaves out one by one."""
Key = tuple[Hashable, Hashable, int, int]
"""Training, label, number among the cases of this label, and rank of the level of an observation."""


def keys_of(training: Sequence[Hashable], case: Sequence[Hashable], level: Array) -> list[Key]:
    """Cases that share a label are distinguished by their order, which is the same at every level."""
    met: Counter[Hashable] = Counter()
    keys = []
    for key in zip(training, case, np.unique(level, return_inverse=True)[1].tolist(), strict=True):
        keys.append((*key[:2], met[key], key[2]))
        met[key] += 1
    return keys


def groups_of(keys: Sequence[Key]) -> tuple[NDArray[np.intp], int, list[Hashable] | None]:
    """The jackknife's group of each observation, their number, and what each shares where this crosses.

    Of labels that do not cross, those that meet are joined, and ten groups are made of them. Otherwise each case is a
    group.
    """
    cases = {case: i for i, case in enumerate(dict.fromkeys(key[1:3] for key in keys))}
    labels = [label for label, _ in cases]
    if not labels:
        return np.zeros(0, dtype=np.intp), 0, None
    if dependence.crossing(labels):
        return np.array([cases[key[1:3]] for key in keys], dtype=np.intp), len(cases), labels
    joined = dependence.joined(labels)
    groups = min(GROUPS, int(joined.max()) + 1)
    return np.array([joined[cases[key[1:3]]] % groups for key in keys], dtype=np.intp), groups, None


def beside(keys: Sequence[Key], known: Mapping[str, Array]) -> dict[str, Array]:
    """The baselines of the same case one level lower and one higher; its own where there is no such level."""
    place = {key: i for i, key in enumerate(keys)}
    most = max((k[3] for k in keys), default=0)
    found = {}
    for step, said in ((-1, "below"), (1, "above")):
        at = np.array([place.get((*k[:3], min(max(k[3] + step, 0), most)), -1) for k in keys])
        found |= {f"{name} at the dose {said}": np.where(at < 0, np.nan, x[at]) for name, x in known.items()}
    return found


def variance(mean: float, without: Array, near: Sequence[Hashable] | None) -> tuple[float, float]:
    """The jackknife's variance of a mean, from its values without each group, and its degrees of freedom.

    Groups without which there is no value (NaN) are left out.
    """
    known = np.flatnonzero(np.isfinite(without)).tolist()
    left, g = without[known], len(known)
    if g < 2:
        return 0.0, 1.0
    if near is None:
        return (g - 1) / g * float(((left - left.mean()) ** 2).sum()), float(g - 1)
    fit = dependence.mean(g * mean - (g - 1) * left, [near[i] for i in known])
    return fit.error**2, fit.used
