"""Case and Part: one compositional question, its gold answer and its sub-questions.

    Case("a", "What is 2 times 3, plus 1?", "7", (Part("What is 2 times 3?", "6"), Part("What is 6 plus 1?", "7")))

On disk a case is a JSON object with the field names of the dataclasses below; ``cases`` reads and writes files of
cases.
"""

from __future__ import annotations

import json
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from typing import Any

from ..errors import InputError, did_you_mean
from . import options
from .text_files import in_words

SCHEMA = 1
COLLAPSE_BINS = {7: 4, 9: 6, 11: 8}
"""Depth bins of Composition collapse (App. B): interval cases with a longer chain count in the bin below."""
DEPTH_BINS: Mapping[str, Mapping[int, int]] = {"d4v2": COLLAPSE_BINS, "organism-temporal": COLLAPSE_BINS}
"""Benchmarks that declare their bins by name; others give them case by case (``Case.depth_bin``)."""
ANSWER_TYPES = ("text", "number", "date", "list", "ordered-list", "boolean", "choice")


@dataclass(frozen=True)
class Part:
    """A sub-question with its own gold answer."""

    question: str
    answer: str
    kind: str | None = None
    """``commonsense``, ``math``, ``date``, ...: groups parts over cases."""
    answer_type: str = "text"
    aliases: tuple[str, ...] = ()
    worked: str | None = None
    """The answer with its working, as a model is expected to write it; probes attribute towards it."""
    paraphrases: tuple[str, ...] = ()
    """Other wordings of the same question: the atom's probes (Composition collapse, gate 1)."""
    atom: str | None = None
    """Id of the fact, shared by all cases that use it; its probes count once."""
    extra_context: str | None = None
    """The question with the whole's irrelevant numbers added (AgentCoMa, App. K)."""
    skill: str | None = None
    options: options.Choices = ()
    """(letter, text) of each option of a ``choice``; on disk also a list of texts, or an object by letter."""


@dataclass(frozen=True)
class Case:
    """A compositional question and its parts, in the order in which they are solved."""

    id: str
    question: str
    answer: str
    parts: tuple[Part, ...] = ()
    benchmark: str = "custom"
    answer_type: str = "text"
    aliases: tuple[str, ...] = ()
    worked: str | None = None
    """As for parts."""
    family: str | None = None
    depth: int | None = None
    cluster: str | None = None
    """Label of cases that share facts, items or templates and so are not independent; see also ``crossed``."""
    domain: str | None = None
    operation: str | None = None
    unknowable: bool = False
    """True where no model can know the answer: abstaining is then right."""
    evidence: tuple[str, ...] = ()
    """Facts given in the prompt (in-context families)."""
    chance: float | None = None
    """Probability that a guess in the right format is right."""
    meta: Mapping[str, Any] = field(default_factory=dict)
    """Other properties of the case in the benchmark."""
    depth_bin: int | None = None
    """The bin that the depth counts in, where the benchmark declares bins; otherwise None, and the depth counts."""
    options: options.Choices = ()
    """As for parts."""

    def __post_init__(self) -> None:
        if self.depth_bin is None:
            object.__setattr__(self, "depth_bin", declared_bin(self.benchmark, self.depth))

    @property
    def crossed(self) -> tuple[str, ...]:
        """What the case shares with others besides its cluster: ``meta.crossed``, one name or a list of names."""
        found = self.meta.get("crossed", ())
        return (found,) if isinstance(found, str) else tuple(found)


def shares(cluster: str | None, crossed: Sequence[str]) -> Hashable:
    """A case's label for ``dependence``: its cluster, or the set of the cluster and the crossed names; None without."""
    return frozenset({cluster, *crossed} - {None}) if crossed else cluster


def declared_bin(benchmark: str | None, depth: int | None) -> int | None:
    """The bin of a depth in a benchmark that declares its bins by name; None in any other."""
    bins = DEPTH_BINS.get(benchmark or "")
    return None if bins is None or depth is None else bins.get(depth, depth)


_CASE_FIELDS = {f.name: f for f in fields(Case)}
_PART_FIELDS = {f.name: f for f in fields(Part)}
_TUPLES = {"aliases", "paraphrases", "evidence"}
TEXTS = frozenset("benchmark worked family cluster domain operation kind atom extra_context skill".split())
"""Fields of cases and parts that hold a text, or nothing."""
_OBJECTS = {
    "case": 'write {"id": "...", "question": "...", "answer": "..."}',
    "part": 'write {"question": "...", "answer": "..."}',
}
_SHOWN = 60
_ELSEWHERE = {
    "parts": "subquestions sub_questions steps sub_steps substeps decomposition",
    "answer": "gold target label output expected gold_answer ground_truth",
    "question": "input prompt query problem",
    "options": "choices",
}
_ALSO = {other: name for name, others in _ELSEWHERE.items() for other in others.split()}
"""What other tools call a field, and its name here; similar spelling would suggest another field."""


def _short(value: Any) -> str:
    """A value as JSON, cut where it is long."""
    text = json.dumps(value, ensure_ascii=False, default=repr)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."


def _checked(raw: Any, allowed: Mapping[str, Any], required: tuple[str, ...], where: str) -> dict[str, Any]:
    if not isinstance(raw, dict):
        what = "case" if allowed is _CASE_FIELDS else "part"
        raise InputError(f"{where}: expected a JSON object, got {type(raw).__name__}: {_short(raw)}; {_OBJECTS[what]}")
    if unknown := [name for name in raw if name not in allowed]:
        others = "".join(f"; {_misspelt(name, raw, allowed)}" for name in unknown[1:])
        raise InputError(f"{where}: {_unknown(unknown[0], raw, allowed)}{others}")
    for name in required:
        if name not in raw:
            raise InputError(f"{where}: field {name!r} is missing; add it (fields: {', '.join(allowed)})")
        if not (isinstance(raw[name], str | int | float) and str(raw[name]).strip()) or raw[name] != raw[name]:  # NaN
            several = "; further right answers go under 'aliases', and items of a list into one text ('red, blue')"
            more = several if name == "answer" and isinstance(raw[name], list) else ""
            raise InputError(f"{where}: field {name!r} is {raw[name]!r}; give a non-empty string or number{more}")
    known = {k: v for k, v in raw.items() if v is not None}
    for name in required:
        known[name] = str(in_words(known[name]))
    for name in TEXTS & known.keys():
        known[name] = in_words(known[name])  # as in the answer itself
        if not isinstance(known[name], str):
            raise InputError(f"{where}: field {name!r} is {known[name]!r}; give a text")
    for name in _TUPLES & known.keys():
        value = known[name]
        if name == "aliases" and isinstance(value, list | tuple):  # numbers become text, as in the answer itself
            value = [*map(in_words, value)]
        if not isinstance(value, list | tuple) or not all(isinstance(v, str) for v in value):
            raise InputError(f"{where}: field {name!r} is {value!r}; give a list of strings")
        known[name] = tuple(value)
    kind = known.get("answer_type", "text")
    if kind not in ANSWER_TYPES:
        raise InputError(f"{where}: answer_type is {kind!r}; use one of {', '.join(ANSWER_TYPES)}")
    if "options" in known:
        known["options"] = options.parse(known["options"], where)
    options.check(kind, known["answer"], known.get("options", ()), known["question"], where)
    return known


def _misspelt(name: str, raw: Mapping[str, Any], allowed: Mapping[str, Any]) -> str:
    """A further unknown field, with the closest name."""
    also = _ALSO.get(name.lower().replace("-", "_"))
    known = [field for field in allowed if field not in raw]
    meant = f"; did you mean {also!r}?" if also in known else did_you_mean(name.lower(), known)
    return f"nor is {name!r}{meant}"


def _unknown(name: str, raw: Mapping[str, Any], allowed: Mapping[str, Any]) -> str:
    """The message for an unknown field: the closest name, and where other data belongs."""
    if allowed is _CASE_FIELDS and name in _PART_FIELDS:
        return f"field {name!r} is one of a part; put it into the objects of 'parts'"
    also = _ALSO.get(name.lower().replace("-", "_"))
    if also in allowed and also not in raw:
        here = f"field {name!r} is not known; did you mean {also!r}"
        return f"{here}, which is missing? rename the field (fields: {', '.join(allowed)})"
    meant = f"; did you mean {also!r}?" if also in allowed else did_you_mean(name.lower(), allowed)
    fix = "extra data goes under 'meta'" if allowed is _CASE_FIELDS else "extra data goes under 'meta' of the case"
    return f"field {name!r} is not known{meant or ';'} {fix} (fields: {', '.join(allowed)})"


def case_from_dict(raw: Any, where: str = "case") -> Case:
    """Build one case from its JSON object; ``where`` (file:line) leads every error message.

    Raises ``InputError`` for a missing or unknown field, a wrong type, an unknown answer type, and for another schema.
    """
    if isinstance(raw, dict) and "schema" in raw:  # the case files of runs carry it
        if raw["schema"] != SCHEMA:
            raise InputError(f"{where}: schema is {raw['schema']!r}; this version reads schema {SCHEMA}")
        raw = {k: v for k, v in raw.items() if k != "schema"}
    known = _checked(raw, _CASE_FIELDS, ("id", "question", "answer"), where)
    parts = known.get("parts", [])
    if not isinstance(parts, list | tuple):
        raise InputError(f"{where}: field 'parts' is {parts!r}; give a list of objects with question and answer")
    known["parts"] = tuple(
        Part(**_checked(p, _PART_FIELDS, ("question", "answer"), f"{where}, parts[{i}]")) for i, p in enumerate(parts)
    )
    for name in ("depth", "depth_bin"):
        depth = known.get(name)
        if depth is not None and (isinstance(depth, bool) or not isinstance(depth, int) or depth < 1):
            raise InputError(f"{where}: {name} is {depth!r}; give a whole number of at least 1")
    if not isinstance(known.get("meta", {}), dict):
        raise InputError(f"{where}: field 'meta' is {known['meta']!r}; give an object")
    crossed = known.get("meta", {}).get("crossed", "")
    if not isinstance(crossed, str) and not (
        isinstance(crossed, list | tuple) and all(isinstance(c, str) for c in crossed)
    ):
        raise InputError(f"{where}: meta.crossed is {crossed!r}; give a name or a list of names that cases share")
    if not isinstance(known.get("unknowable", False), bool):
        raise InputError(f"{where}: unknowable is {known['unknowable']!r}; give true or false")
    chance = known.get("chance", 0.0)
    if isinstance(chance, bool) or not isinstance(chance, int | float) or not 0 <= chance <= 1:
        raise InputError(f"{where}: chance is {chance!r}; give a probability between 0 and 1")
    return Case(**known)


def case_to_dict(case: Case) -> dict[str, Any]:
    """The JSON object of a case, without empty fields."""
    raw = asdict(case)
    for row in (raw, *raw["parts"]):
        row["options"] = dict(row["options"])
    raw["parts"] = [{k: v for k, v in p.items() if v not in (None, (), [], {})} for p in raw["parts"]]
    if case.depth_bin == declared_bin(case.benchmark, case.depth):
        del raw["depth_bin"]  # the benchmark's name says it
    return {k: v for k, v in raw.items() if not (v is None or v is False or v in ((), {}))}  # 0 is a value
