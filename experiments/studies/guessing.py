"""What a diagnosis has to beat: the planted cause guessed from cheap numbers, or from the answer's text.

Each failing case gets the most frequent cause of its five nearest neighbours among all other failing cases. The
neighbours may come from the same model, so a guess may recognize the model instead of the cause. That makes a guess
better than it could be on a new model, and is to the diagnosis's disadvantage.

    guessed = by_neighbours(np.array([[0.1], [0.2], [0.9]]), ["lost", "lost", "format"])
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.model_selection import LeaveOneOut, cross_val_predict
from sklearn.neighbors import KNeighborsClassifier
from sklearn.preprocessing import StandardScaler

from ...evaluation.protocols.base import CaseSet, Entry
from ...probes.examples import from_case_sets
from ..config import Config
from ..distributed.target import load_target
from ..run.reader import read_run
from ..validity.scores import BASELINES, baselines

NEIGHBOURS = 5
ALL = "all three numbers"
TEXT = "answer text"


@dataclass(frozen=True)
class Cheap:
    """What is known of a failing case without opening the model."""

    text: str
    """The answer to the whole."""
    numbers: Mapping[str, float]
    """Confidence in the answer's first token, length, and likelihood of the question."""


def cheap(folder: Path, model: str, cases: Sequence[str]) -> dict[str, Cheap]:
    """The numbers and the answer of each failing case of a run, with the model that answered."""
    run = read_run(folder).evaluated()
    target = load_target(Config.read({"model": model, "benchmark": "organism:mixed"}))
    asks, responses = run.per_case()
    chosen = CaseSet("failing", "failure", tuple(Entry(c, ()) for c in cases))
    wholes = from_case_sets(target.tokenizer, run.cases, asks, responses, [chosen], roles=("whole",))
    found = baselines(target.hooks(), wholes)
    return {
        e.case: Cheap(target.tokenizer.decode(e.response_ids), {q: v[e.case] for q, v in found.items() if e.case in v})
        for e in wholes
    }


def guesses(known: Sequence[Cheap], causes: Sequence[str]) -> dict[str, list[str]]:
    """The guessed cause of each case, by what it is guessed from. ``causes`` are the true ones, in the same order.

    A number that a case does not have (the confidence of an empty answer) counts as the mean of the others.
    """
    columns = np.array([[one.numbers.get(q, np.nan) for q in BASELINES.values()] for one in known], dtype=float)
    columns = StandardScaler().fit_transform(np.where(np.isfinite(columns), columns, np.nanmean(columns, axis=0)))
    out = {name: by_neighbours(columns[:, [i]], causes) for i, name in enumerate(BASELINES)}
    out[ALL] = by_neighbours(columns, causes)
    letters: Any = TfidfVectorizer(analyzer="char", ngram_range=(1, 3)).fit_transform(
        [one.text or " " for one in known]
    )
    return {**out, TEXT: by_neighbours(letters.toarray(), causes)}


def by_neighbours(features: np.ndarray, causes: Sequence[str]) -> list[str]:
    """For each of two or more cases the most frequent cause of its neighbours, itself left out (``case feature``)."""
    nearest = KNeighborsClassifier(min(NEIGHBOURS, len(causes) - 1))
    found = cross_val_predict(nearest, features, np.array(causes), cv=LeaveOneOut())
    return [str(c) for c in found]
