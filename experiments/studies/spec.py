"""The specification of a study (models and their groups, data, matched pairs), from flags or from a YAML file.

::

    data: [organism:temporal]
    limit: 20
    models:
      - model: organism:control
        label: control
        family: organism
        size: 0.0006          # billions of parameters
        recipe: 0.5 % compositions
      - {model: organism:twin, recipe: 50 % compositions, trained_depths: [2, 4]}
    pairs:
      recipe: [[twin, control]]     # A, B: differences are A - B

The validity study also takes ``series``, folders of further trainings of the organisms, and then needs no models.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from ...errors import InputError
from ...evaluation import text_files
from ...files import safe_name, short_name
from ..organism.weights import DOSES

GROUPS = ("family", "size", "cost", "tuning", "recipe", "specialization", "trained_depths", "baseline")
"""Fields that describe a model; figures and tables group and order by them."""
OVERRIDES = ("device", "dtype", "prompting", "format", "batch_size", "engine", "base_url", "probe_model")
"""Options that each model may set for itself."""
_TEXTS = tuple(k for k in (*GROUPS, *OVERRIDES) if k not in ("size", "trained_depths", "baseline", "batch_size"))
PAIR_KINDS = ("cost", "tuning", "recipe", "specialization", "size", "reference")
_KEYS = ("study", "data", "limit", "models", "pairs", "probe_cases", "series", "only_series")


@dataclass(frozen=True)
class StudyModel:
    """One model with its groups."""

    model: str
    label: str
    groups: Mapping[str, Any] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class ModelPair:
    """Two matched models; every difference is A - B."""

    kind: str
    """How they are matched: ``cost`` (cheap, costly), ``tuning`` (instruct, pretrained), ``recipe``, ..."""
    a: str
    b: str


@dataclass(frozen=True)
class Spec:
    """A study before it runs."""

    models: tuple[StudyModel, ...]
    data: tuple[str, ...] = ()
    """Empty: the study's own organism data."""
    limit: int | None = None
    pairs: tuple[ModelPair, ...] = ()
    probe_cases: int | None = None
    seed: int = 0
    series: tuple[str, ...] = ()
    """Folders of further trainings of the dose series (the validity study)."""
    only_series: bool = False
    """Leave out the shipped training."""


def from_flags(models: Sequence[str], **options: Any) -> Spec:
    """A spec of models given by name; each later model is compared with the first one."""
    names = tuple(dict.fromkeys(models))
    if not names:
        raise InputError("--model: give at least one model, or a --models file")
    labels = _labels(names)
    made = tuple(StudyModel(m, labels[m]) for m in names)
    pairs = tuple(ModelPair("reference", m.label, made[0].label) for m in made[1:])
    return Spec(made, pairs=pairs, **options)


def read_spec(path: str | Path, study: str | None = None, **options: Any) -> Spec:
    """A spec from YAML; ``options`` that are not None or empty replace values of the file.

    Raises ``InputError`` with file and field, also if the file belongs to another ``study``.
    """
    raw = text_files.yaml_document(path, str(path), "give --models a YAML file with a list of models")
    if isinstance(raw, dict) and raw.get("series") and "models" not in raw:
        raw["models"] = [f"organism:{dose}" for dose in DOSES]
    if not isinstance(raw, dict) or not isinstance(raw.get("models"), list) or not raw["models"]:
        raise InputError(f"{path}: field 'models' is missing or empty; give a list of {{model, label, family, ...}}")
    _check(raw, _KEYS, str(path))
    if study is not None and raw.get("study") not in (None, study):
        raise InputError(f"{path}: field 'study' is {raw['study']!r}, and the study is {study}; leave the field out")
    entries = [e if isinstance(e, dict) else {"model": e} for e in raw["models"]]
    labels = _labels([str(e.get("model")) for e in entries])
    models = tuple(_model(e, labels, f"{path}: models[{i}]") for i, e in enumerate(entries))
    names = [m.label for m in models]
    if len(set(names)) < len(names):
        raise InputError(f"{path}: label {max(names, key=names.count)!r} is given twice; labels are unique")
    data, series = raw.get("data") or [], raw.get("series") or []
    given: dict[str, Any] = {
        "data": tuple(map(str, data if isinstance(data, list) else [data])),
        "limit": raw.get("limit"),
        "probe_cases": raw.get("probe_cases"),
        "series": tuple(series if isinstance(series, list) else [series]),
        "only_series": bool(raw.get("only_series")),
    }
    given |= {k: v for k, v in options.items() if v is not False and v not in (None, ())}
    return Spec(models, pairs=_pairs(raw.get("pairs"), names, str(path)), **given)


def _text(value: Any) -> bool:
    return isinstance(value, str) and bool(value.strip())


Rule = tuple[Callable[[Any], bool], str]
_COUNT: Rule = (lambda v: type(v) is int and v >= 1, "a whole number of at least 1")
_YES: Rule = (lambda v: isinstance(v, bool), "true or false")
RULES: Mapping[str, Rule] = {
    **dict.fromkeys(("limit", "probe_cases", "batch_size"), _COUNT),
    **dict.fromkeys(("only_series", "baseline"), _YES),
    **dict.fromkeys(("label", *_TEXTS), (_text, "text (in quotes if YAML reads it as a number, a date, yes or no)")),
    "size": (lambda v: type(v) in (int, float) and 0 < v < math.inf, "billions of parameters, such as 7 or 0.5"),
    "trained_depths": (
        lambda v: isinstance(v, list) and all(isinstance(d, int) for d in v), "a list of depths, such as [2, 4]"
    ),
    "series": (
        lambda v: not v or all(map(_text, v if isinstance(v, list) else [v])),
        "folders of `composcope organism train --all`",
    ),
}  # fmt: skip
"""What a field of the file may hold, as a test and in words."""


def _check(raw: Mapping[str, Any], known: Sequence[str], where: str) -> None:
    """Raise ``InputError`` for a field that is not known, or whose value breaks its rule."""
    for name, value in raw.items():
        if name not in known:
            raise InputError(f"{where}: field {name!r} is not known; use {', '.join(known)}")
        if value is not None and name in RULES and not RULES[name][0](value):
            raise InputError(f"{where}: field {name!r} is {value!r}; give {RULES[name][1]}")


def _model(entry: Mapping[str, Any], labels: Mapping[str, str], where: str) -> StudyModel:
    name = entry.get("model")
    if not isinstance(name, str) or not name.strip():
        raise InputError(f"{where}: field 'model' is {name!r}; give a folder, a hub id, organism:DOSE or MODEL@URL")
    _check(entry, ("model", "label", *GROUPS, *OVERRIDES), where)
    groups = {k: entry[k] for k in GROUPS if entry.get(k) is not None}
    options = {k: entry[k] for k in OVERRIDES if entry.get(k) is not None}
    return StudyModel(name, str(entry.get("label") or labels[name]), groups, options)


def _pairs(raw: Any, names: Sequence[str], path: str) -> tuple[ModelPair, ...]:
    if raw is None:
        return tuple(ModelPair("reference", name, names[0]) for name in names[1:])
    if not isinstance(raw, dict):
        raise InputError(f"{path}: field 'pairs' is {raw!r}; give lists of [A, B] by kind ({', '.join(PAIR_KINDS)})")
    found = []
    for kind, pairs in raw.items():
        for pair in pairs if isinstance(pairs, list) else [pairs]:
            if not isinstance(pair, list) or len(pair) != 2:
                raise InputError(f"{path}: pairs.{kind} holds {pair!r}; give [A, B] with labels of two models")
            if pair[0] == pair[1]:
                raise InputError(f"{path}: pairs.{kind} compares {pair[0]!r} with itself; give two models")
            missing = [p for p in pair if p not in names]
            if missing:
                raise InputError(f"{path}: pairs.{kind} names {missing[0]!r}, and the models are {', '.join(names)}")
            found.append(ModelPair(str(kind), str(pair[0]), str(pair[1])))
    return tuple(found)


def _labels(models: Sequence[str]) -> dict[str, str]:
    """Short names that tell the models apart: the last part of each name, else the whole."""
    short = {m: m.removeprefix("organism:").split("@")[0].rstrip("/").rsplit("/", 1)[-1] for m in models}
    return short if len(set(short.values())) == len(set(models)) else {m: m for m in models}


def groups_document(spec: Spec) -> dict[str, Any]:
    """The entries of ``study.json`` for models and pairs."""
    return {
        "models": {m.label: {"model": m.model, **m.groups} for m in spec.models},
        "pairs": [{f.name: getattr(p, f.name) for f in fields(ModelPair)} for p in spec.pairs],
        **({"series": list(spec.series), "only_series": spec.only_series} if spec.series else {}),
    }


def slug(name: str) -> str:
    """The last part of a name, made safe for a folder's name."""
    return safe_name(short_name(name), "data")
