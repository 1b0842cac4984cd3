"""``composcope study why``: measure how often the diagnosis names the planted cause of models with a known cause.

A plant is a model with one cause, with two (each for half of the kinds), or with no cause from the list, such as a
jammed model. For a plant without such a cause the diagnosis must refuse, and every cause that it names is false. The
results also have what mends the failures of each plant, and the score of guesses that do not open the model.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.model_selection import LeaveOneOut, cross_val_predict
from sklearn.neighbors import KNeighborsClassifier
from sklearn.preprocessing import StandardScaler

from ...errors import InputError
from ...evaluation import dependence
from ...evaluation.case import Case
from ...evaluation.protocols.base import CaseSet
from ...evaluation.statistics import Interval, rate_interval
from ...files import to_csv
from ...terminal import Bar, no_bar
from .. import investigate as work
from ..config import Config
from ..console.printing import table
from ..diagnosis.job import diagnose, labelled_failures
from ..distributed.engine import load_target
from ..models.target import Loading
from ..run import read_json, write_json, write_text
from ..run.diagnosis import Diagnosis
from ..run.reader import read_run
from ..validity.scores import BASELINES, baselines

REFUSED = "undetermined"
MERGED = {"near-miss": "format", "too-late": "lost", "fragile": REFUSED}
"""Causes that count as the same: an answer's form; a bridge that comes too late to be used. ``fragile`` names none."""


@dataclass(frozen=True)
class Planted:
    """A model whose cause is known."""

    name: str
    model: str
    """Folder of the model, or the name of a shipped one."""
    truth: Callable[[Case], str]
    """The cause of a failing case, or ``undetermined`` if no cause of the list was planted."""
    benchmark: str = "organism:mixed"
    """The questions in which its cause shows."""
    family: str | None = None
    """The family in which it shows; None for all."""


@dataclass(frozen=True)
class DiagnosedCase:
    """One failing case of a plant."""

    plant: str
    case: str
    truth: str
    named: str
    mended: bool
    """Whether the diagnosis names an intervention that repairs the answer."""


CALLED = {"not-computed": "bridge-not-computed", "not-routed": "bridge-not-routed", "jammed": REFUSED, "none": REFUSED}
"""Names used here for some planted causes; the other causes keep their names."""
ABOUT = "organism.json"
ASKED = 5
"""Cases asked of a plant for each failure to diagnose, because in some plants few cases with right parts fail."""


def planted_in(folder: str | Path) -> list[Planted]:
    """The plants in a folder, or the folder itself if it is one: models whose ``organism.json`` says what was planted.

    Raises ``InputError`` for a folder without plants.
    """
    root = Path(folder)
    places = [p.parent for p in sorted((*root.glob(ABOUT), *root.glob(f"*/{ABOUT}")))]
    found = [(p, plant) for p in places if isinstance(plant := read_json(p / ABOUT).get("plant"), dict)]
    if not found:
        raise InputError(
            f"{root}: holds no plant ({ABOUT} with a field 'plant'); make one with `composcope organism plant`"
        )
    default = Planted.benchmark
    return [
        Planted(p.name, str(p), truth_of(plant["grafts"]), plant.get("benchmark", default), plant.get("family"))
        for p, plant in found
    ]


def truth_of(grafts: Sequence[Mapping[str, Any]]) -> Callable[[Case], str]:
    """The planted cause of each case: a graft covers all cases, or the cases of one half of the kinds."""

    def truth(case: Case) -> str:
        from ..organism.world import KINDS

        first = list(KINDS).index(case.meta["kinds"][0]) < len(KINDS) // 2 if "kinds" in case.meta else False
        half = "first-kinds" if first else "other-kinds"
        cause = next((g["cause"] for g in grafts if g.get("when", "all") in ("all", half)), REFUSED)
        return CALLED.get(cause, cause)

    return truth


class Judged(NamedTuple):
    """A plant's failing cases with the diagnosis of each, and what is known about them without opening the model."""

    cases: Sequence[DiagnosedCase] = ()
    diagnosis: Diagnosis | None = None
    cheap: Sequence[Cheap] = ()


def judge(planted: Planted, folder: Path, cases: int, seed: int = 0) -> Judged:
    """Evaluate a plant, diagnose up to ``cases`` failures and add the truth; empty if no case fails."""
    out = folder / planted.name
    asked = {"benchmark": planted.benchmark, "limit": ASKED * cases, "seed": seed, "probes": []}
    options = {"model": planted.model, **asked}
    work.investigate(Config.read(options), out, quiet=True, contrast=False)
    run = read_run(out)
    ids = [c.id for c in labelled_failures(run) if planted.family in (None, c.family)]
    if not ids:
        return Judged()
    found = diagnose(out, cases=cases, ids=ids if planted.family else (), seed=seed, quiet=True)
    named = [(v, run.cases[v.case], MERGED.get(v.kind, v.kind)) for v in found.verdicts]
    judged = [DiagnosedCase(planted.name, v.case, planted.truth(c), n, v.mended_by is not None) for v, c, n in named]
    cheap = cheap_numbers(out, planted.model, [j.case for j in judged])
    return Judged(judged, found, [cheap[j.case] for j in judged])


def scores(judged: Sequence[DiagnosedCase]) -> dict[str, Any]:
    """Macro-F1 and the undetermined share over the planted causes, and false causes in plants without a cause."""
    judged = [replace(j, truth=MERGED.get(j.truth, j.truth), named=MERGED.get(j.named, j.named)) for j in judged]
    known = [j for j in judged if j.truth != REFUSED]
    none = [j for j in judged if j.truth == REFUSED]
    f1 = {}
    for cause in sorted({j.truth for j in known}):
        hits = sum(j.truth == j.named == cause for j in judged)
        wrong = sum((j.truth == cause) != (j.named == cause) for j in judged)
        f1[cause] = 2 * hits / (2 * hits + wrong) if hits + wrong else 0.0
    return {
        "macro_f1": sum(f1.values()) / len(f1) if f1 else None,
        "f1": f1,
        "named_right": _share([(j.plant, j.truth == j.named) for j in known]),
        "undetermined": _share([(j.plant, j.named == REFUSED) for j in known]),
        "false_causes": _share([(j.plant, j.named != REFUSED) for j in none]),
    }


def _share(hits: Sequence[tuple[str, bool]]) -> dict[str, Any]:
    """A share of cases or variants, each with its plant: those of one fail alike, so intervals are over plants.

    Fewer plants than ``dependence.FEWEST`` give no interval, also where each has one case.
    """
    count, n, plants = sum(hit for _, hit in hits), len(hits), [plant for plant, _ in hits]
    interval = rate_interval([hit for _, hit in hits], plants)
    if 0 < len(set(plants)) < dependence.FEWEST:
        interval = Interval(None, None, dependence.FEW)
    return {"count": count, "n": n, "share": count / n if n else None, **interval.columns()}


def matrix(judged: Sequence[DiagnosedCase]) -> list[dict[str, Any]]:
    """One row per plant and true cause, with one column per named cause."""
    named = sorted({j.named for j in judged})
    rows = []
    for plant, truth in dict.fromkeys((j.plant, j.truth) for j in judged):
        found = Counter(j.named for j in judged if (j.plant, j.truth) == (plant, truth))
        rows.append({"plant": plant, "truth": truth, "n": found.total(), **{name: found[name] for name in named}})
    return rows


def guessed(judged: Sequence[DiagnosedCase], known: Sequence[Cheap]) -> dict[str, float | None]:
    """Macro-F1 over the planted causes of guesses that do not open the model, by what they are made from."""
    found = guesses(known, [j.truth for j in judged]) if len(judged) > 1 else {}
    return {
        name: scores([replace(j, named=g) for j, g in zip(judged, causes, strict=True)])["macro_f1"]
        for name, causes in found.items()
    }


READ = ("exit", "scope:decision", "scope:elsewhere")
"""Tests that read a state and change nothing."""


def mends(found: Mapping[str, Diagnosis]) -> list[dict[str, Any]]:
    """One row per plant: how many of its failing variants each change mends; inside, of those that were opened."""
    rows = []
    for plant, diagnosis in found.items():
        every = {**diagnosis.about["mended"], **diagnosis.about["interventions"]}
        rows.append({"plant": plant} | {n: f"{t['count']}/{t['n']}" for n, t in every.items() if n not in READ})
    names = list(dict.fromkeys(name for row in rows for name in row))
    return [{name: row.get(name, "") for name in names} for row in rows]


NAMES = {"skip": "lost", "move": "bridge-not-routed", "back": "too-late"}
"""The cause that each change inside the model is there to show. A later state of another place is left out: it mends
what is not routed as well as what comes too late, and the rule asks first whether a state of the same layer does."""


def specific(judged: Sequence[DiagnosedCase], found: Mapping[str, Diagnosis]) -> dict[str, dict[str, Any]]:
    """For each change inside the model, how many variants it mends of plants with its cause, and of plants without.

    ``others`` pools all changes in plants without their causes. A plant with several causes is left out.
    """
    truths = {plant: {j.truth for j in judged if j.plant == plant} for plant in found}
    out: dict[str, list[tuple[str, bool]]] = {}
    for plant, diagnosis in found.items():
        for change, cause in NAMES.items():
            tally = diagnosis.about["interventions"].get(change)
            if tally is None or len(truths[plant]) != 1:
                continue
            own = truths[plant] == {cause}
            for key in (f"{change}: {'own cause' if own else 'other causes'}", *(() if own else ("others",))):
                hits = out.setdefault(key, [])
                hits += [(plant, i < tally["count"]) for i in range(tally["n"])]
    return {key: _share(out[key]) for key in sorted(out)}


def lines(judged: Sequence[DiagnosedCase]) -> list[str]:
    """The matrix and its scores as text."""
    s = scores(judged)
    right = [j for j in judged if j.named == MERGED.get(j.truth, j.truth) != REFUSED]

    return [
        *table(matrix(judged)),
        f"macro-F1 over the planted causes: {_two(s['macro_f1'])}; named right {_of(s['named_right'])}",
        f"undetermined although a cause was planted: {_of(s['undetermined'])}",
        f"a cause named although none of the list was planted: {_of(s['false_causes'])}",
        f"named right with an intervention that mends it: {_of(_share([(j.plant, j.mended) for j in right]))}",
    ]


def _of(share: Mapping[str, Any]) -> str:
    return f"{share['count']} of {share['n']}" + ("" if not share["n"] else f" ({100 * share['share']:.0f} %)")


def _two(value: float | None) -> str:
    return "undefined" if value is None else f"{value:.2f}"


REAL = "world:city-capital,city-currency,city-language,company-capital,company-currency"
"""Questions for real models: families whose parts a small model often knows."""


def run_study(
    series: Sequence[Path], models: Sequence[str], out: Path, cases: int = 20, seed: int = 0, progress: Bar = no_bar
) -> list[str]:
    """Judge the plants of these folders, diagnose the models, and return the results as text.

    Writes ``confusion.csv``, ``mended.csv`` and ``confusion.json``. Raises ``InputError`` without any plant or model.
    """
    shipped = Path(__file__).parents[1] / "organism" / "plants" / "weights"
    folders = series or ([shipped] if shipped.is_dir() and not models else [])
    plants = [planted for folder in folders for planted in planted_in(folder)]
    if not plants and not models:
        raise InputError("study why: give --series FOLDER with plants (`composcope organism plant`), or --model FOLDER")
    names = told_apart([*(p.model for p in plants), *models])
    plants = [replace(p, name=name) for p, name in zip(plants, names, strict=False)]
    judged: list[DiagnosedCase] = []
    known: list[Cheap] = []
    diagnoses: dict[str, Diagnosis] = {}
    with progress("diagnosing models", len(plants) + len(models)) as advance:
        for planted in plants:
            found = judge(planted, out, cases, seed)
            judged += found.cases
            known += found.cheap
            if found.diagnosis is not None:
                diagnoses[planted.name] = found.diagnosis
            advance(1)
        said, beaten = lines(judged) if judged else [], guessed(judged, known)
        said += [f"macro-F1 of a guess from the {n}: {_two(f)}" for n, f in beaten.items()]
        for model, name in zip(models, names[len(plants) :], strict=True):
            folder = out / name
            # the limit is for each family, and the questions for real models have several
            benchmark, limit = ("organism:mixed", ASKED * cases) if model.startswith("organism:") else (REAL, cases)
            options = {"model": model, "benchmark": benchmark, "limit": limit, "seed": seed, "probes": []}
            work.investigate(Config.read(options), folder, quiet=True, contrast=False)
            if labelled_failures(read_run(folder)):
                diagnoses[folder.name] = diagnosis = diagnose(folder, cases=cases, seed=seed, quiet=True)
                said += diagnosis.lines()
            advance(1)
    said += [f"{name}: no failure to diagnose" for name in names if name not in diagnoses]
    said += ["failing variants that each change mends:", *table(mends(diagnoses))] if diagnoses else []
    mended = specific(judged, {j.plant: diagnoses[j.plant] for j in judged})
    said += [
        f"variants mended, {key}: {t['count']} of {t['n']} ({100 * t['share']:.0f} %)" for key, t in mended.items()
    ]
    seconds = {name: d.about["seconds"] / max(1, len(d.verdicts)) for name, d in diagnoses.items()}
    said += [f"{name}: {s:.1f} s per case" for name, s in seconds.items()]
    write_text(out / "confusion.csv", to_csv(matrix(judged)))
    write_text(out / "mended.csv", to_csv(mends(diagnoses)))
    document = {"seed": seed, "scores": scores(judged), "guesses": beaten, "matrix": matrix(judged),
                "mended": mends(diagnoses), "mended_by_cause": mended, "seconds_per_case": seconds}  # fmt: skip
    write_json(out / "confusion.json", {**document, "cases": [vars(j) for j in judged], "lines": said})
    return said


def told_apart(models: Sequence[str]) -> list[str]:
    """A folder's name for each model: the last part of its own, and as many before it as tell all of them apart.

    Raises ``InputError`` for a model that is given twice.
    """
    parts = [(Path(m).resolve() if Path(m).is_dir() else Path(m)).parts for m in models]
    for n in range(1, 1 + max(map(len, parts), default=0)):
        names = ["-".join(some[-n:]).replace(":", "-").replace("/", "") for some in parts]
        if len(set(names)) == len(names):
            return names
    raise InputError(f"study why: {', '.join(models)}: a model is given twice; give each of them once")


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


def cheap_numbers(folder: Path, model: str, cases: Sequence[str]) -> dict[str, Cheap]:
    """The numbers and the answer of each failing case of a run, with the model that answered."""
    run = read_run(folder).evaluated()
    target = load_target(Loading(model))
    wholes = run.examples(target.tokenizer, [CaseSet.of("failure", cases)], ("whole",))
    found = baselines(target.open_model(), wholes)
    return {
        e.case: Cheap(target.tokenizer.decode(e.response_ids), {q: v[e.case] for q, v in found.items() if e.case in v})
        for e in wholes
    }


def guesses(known: Sequence[Cheap], causes: Sequence[str]) -> dict[str, list[str]]:
    """The guessed cause of each case, by what it is guessed from. ``causes`` are the true ones, in the same order.

    Each failing case gets the most frequent cause of its five nearest neighbours among all other failing cases. The
    neighbours may come from the same model, so a guess may recognize the model instead of the cause. This makes a guess
    better than it could be on a new model, to the disadvantage of the diagnosis.

    A number that a case does not have (the confidence of an empty answer) counts as the mean of the others; one that no
    case has tells nothing.
    """
    columns = np.array([[one.numbers.get(q, np.nan) for q in BASELINES.values()] for one in known], dtype=float)
    there = np.ma.masked_invalid(columns)
    columns = StandardScaler().fit_transform(np.where(there.mask, there.mean(axis=0).filled(0), columns))
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
