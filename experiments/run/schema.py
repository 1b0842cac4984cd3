"""What the files of a run folder must hold before anything is read out of them, told by their names.

A run that was cut off, edited or copied in part is refused with file, field, value and fix where it is read, before
something is written: what comes after may rely on these fields. Other files are not looked at.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...errors import InputError
from ...evaluation.asks import OUTCOMES

AGAIN = "restore the file, or make the run again"
COUNT_AGAIN = "restore the file, or compute it again with `composcope score`"


@dataclass(frozen=True)
class _Kind:
    """A kind of value: what it is called, and whether a value is one."""

    name: str
    fits: Callable[[Any], bool]


def _or_null(kind: _Kind) -> _Kind:
    return _Kind(f"{kind.name} or null", lambda v: v is None or kind.fits(v))


_TEXT = _Kind("text", lambda v: isinstance(v, str))
_NAME = _Kind("text that is not empty", lambda v: isinstance(v, str) and bool(v))
_OBJECT = _Kind("an object", lambda v: isinstance(v, Mapping))
_WHOLE = _Kind("a whole number", lambda v: isinstance(v, int) and not isinstance(v, bool))
_NUMBER = _Kind("a number", lambda v: isinstance(v, int | float) and not isinstance(v, bool))
_SWITCH = _Kind("true or false", lambda v: isinstance(v, bool))
_TEXTS = _Kind("a list of texts", lambda v: isinstance(v, list) and all(map(_TEXT.fits, v)))
_OBJECTS = _Kind("a list of objects", lambda v: isinstance(v, list) and all(map(_OBJECT.fits, v)))
_OUTCOME = _Kind(f"one of {', '.join(OUTCOMES)}", lambda v: v in OUTCOMES)


@dataclass(frozen=True)
class _Shape:
    """Fields that an object must have, and kinds of others where they are there."""

    needed: Mapping[str, _Kind]
    other: Mapping[str, _Kind]
    fix: str


_OPTIONS = _Shape(
    {"model": _NAME, "benchmark": _NAME, "protocol": _NAME},
    {
        **{k: _or_null(_TEXT) for k in ("format", "prompting", "dtype", "device", "shard", "pad_token", "rows_dtype")},
        **{k: _or_null(_WHOLE) for k in ("limit", "max_asks", "batch_size")},
        **dict.fromkeys(("seed", "probe_cases", "case_details"), _WHOLE),
        **{k: _or_null(_OBJECT) for k in ("asking", "serving")},
        "probes": _TEXTS,
        "reuse": _SWITCH,
    },
    AGAIN,
)
_ASKING = _Shape(
    {},
    {
        **{k: _or_null(_TEXT) for k in ("few_shot", "also", "compat", "judge")},
        **{k: _or_null(_WHOLE) for k in ("cot_tokens", "answer_tokens")},
        **dict.fromkeys(("reversed", "extra_context", "code", "co_presented", "ask_all", "placeholders"), _SWITCH),
        "thinking": _or_null(_SWITCH),
        "thinking_tokens": _WHOLE,
        "preamble": _TEXT,
        "exemplars": _or_null(_OBJECTS),
    },
    AGAIN,
)
_EXEMPLAR = _Shape({"kind": _TEXT, "question": _TEXT, "answer": _TEXT}, {}, AGAIN)
_SERVING = _Shape(
    {},
    {
        **{
            k: _or_null(_TEXT)
            for k in ("base_url", "api_key_env", "signed_as", "vllm_python", "probe_model", "ray_address")
        },
        **{k: _or_null(_WHOLE) for k in ("concurrency", "workers")},
        **dict.fromkeys(("engine", "vllm_args"), _TEXT),
        "vllm_timeout": _NUMBER,
        "gpus_per_worker": _or_null(_NUMBER),
    },
    AGAIN,
)
_MANIFEST = _Shape(
    {"identity": _OBJECT},
    {
        **dict.fromkeys(("model", "benchmark", "numerics", "timings", "peak_memory"), _OBJECT),
        **{k: _or_null(_OBJECT) for k in ("engine", "judge")},
        "invocations": _OBJECTS,
        "plugins": _Kind("a list", lambda v: isinstance(v, list)),
        "n_cases": _or_null(_WHOLE),
    },
    AGAIN,
)
_ENGINE = _Shape({"identity": _OBJECT, "provenance": _OBJECT}, {}, AGAIN)
_METRICS = _Shape({"protocol": _TEXT, "metrics": _OBJECTS}, {"warnings": _TEXTS}, COUNT_AGAIN)
_METRIC = _Shape(
    {"metric": _NAME, "group": _OBJECT, "n": _WHOLE, "value": _or_null(_NUMBER)},
    {k: _or_null(_NUMBER) for k in ("count", "low", "high", "bound_low", "bound_high", "n_invalid")},
    COUNT_AGAIN,
)
_INTERVAL = _Shape({"interval": _NAME, "high": _or_null(_NUMBER)}, {}, COUNT_AGAIN)
_CASE = _Shape(
    {"id": _NAME, "question": _TEXT, "answer": _TEXT}, {"parts": _OBJECTS, "chance": _or_null(_NUMBER)}, AGAIN
)
_ASK = _Shape(
    {"ask": _NAME, "case": _NAME, "role": _NAME, "prompt": _TEXT, "gold": _TEXT, "answer_type": _TEXT},
    {"aliases": _TEXTS, "stop": _TEXTS, "max_tokens": _WHOLE, "repeat": _WHOLE},
    AGAIN,
)
_GRADED = _Shape({"case": _NAME, "role": _NAME, "outcome": _OUTCOME}, {}, COUNT_AGAIN)
_ENTRY = _Shape({"case": _NAME, "label": _NAME, "evidence": _OBJECTS}, {}, COUNT_AGAIN)
_EVIDENCE = _Shape({"role": _NAME, "outcome": _OUTCOME}, {}, COUNT_AGAIN)
_LINES = {"cases.jsonl": _CASE, "asks.jsonl": _ASK, "graded.jsonl": _GRADED}


def check_document(path: str | Path, value: Mapping[str, Any]) -> None:
    """Check ``manifest.json``, ``metrics.json`` or ``config.yaml``. Raises ``InputError``."""
    name, where = Path(path).name, str(path)
    if name == "manifest.json":
        _check(value, _MANIFEST, where)
        for field in ("engine", "judge"):
            if value.get(field):
                _check(value[field], _ENGINE, f"{where}: {field}")
    elif name == "config.yaml":
        _check(value, _OPTIONS, where)
        for field, shape in (("asking", _ASKING), ("serving", _SERVING)):
            _check(value.get(field) or {}, shape, f"{where}: {field}")
        for i, example in enumerate((value.get("asking") or {}).get("exemplars") or ()):
            _check(example, _EXEMPLAR, f"{where}: asking.exemplars[{i}]")
    elif name == "metrics.json":
        _check(value, _METRICS, where)
        for i, row in enumerate(value["metrics"]):
            _check(row, _METRIC, f"{where}: metrics[{i}]")
            if row.get("low") is not None:
                _check(row, _INTERVAL, f"{where}: metrics[{i}]")


def check_line(path: str | Path, where: str, value: Mapping[str, Any]) -> None:
    """Check one line of ``cases.jsonl``, ``asks.jsonl``, ``graded.jsonl`` or a case set. Raises ``InputError``."""
    path = Path(path)
    if path.parent.name == "casesets":
        _check(value, _ENTRY, where)
        for i, row in enumerate(value["evidence"]):
            _check(row, _EVIDENCE, f"{where}, evidence[{i}]")
    elif path.name in _LINES:
        _check(value, _LINES[path.name], where)


def _check(value: Mapping[str, Any], shape: _Shape, where: str) -> None:
    for name, kind in shape.needed.items():
        if name not in value:
            raise InputError(f"{where}: field {name!r} is missing; {shape.fix}")
        if not kind.fits(value[name]):
            raise InputError(f"{where}: field {name!r} is {_said(value[name])}, not {kind.name}; {shape.fix}")
    for name, kind in shape.other.items():
        if name in value and not kind.fits(value[name]):
            raise InputError(f"{where}: field {name!r} is {_said(value[name])}, not {kind.name}; {shape.fix}")


def _said(value: Any, most: int = 60) -> str:
    text = repr(value)
    return text if len(text) <= most else f"{text[:most]}..."
