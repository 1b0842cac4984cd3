"""The public names are a decision: what goes in or out of them shows in ``tests/public_names.txt``.

Public is what ``__all__`` of the packages below names, with the parameters of functions and their defaults, and the
fields of classes.
To change them on purpose: ``python tests/test_api.py`` writes the file anew, and CHANGELOG.md says why.
"""

from __future__ import annotations

import ast
import difflib
import inspect
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

from pydantic import BaseModel

STORED = Path(__file__).with_name("public_names.txt")
PACKAGES = (
    "composcope",
    "composcope.errors",
    "composcope.evaluation",
    "composcope.evaluation.benchmarks",
    "composcope.evaluation.protocols",
    "composcope.hooks",
    "composcope.probes",
    "composcope.experiments.figures",
    "composcope.experiments.report",
    "composcope.experiments.config",
)
PROBES = {
    "min_k": ("score", "over_examples"),
    "lookback": ("ratios", "over_examples"),
    "neurons": ("attribute", "select", "overlap", "location_map", "over_examples"),
    "patching": ("prompt_end_sweep", "position_sweep", "over_examples"),
    "faithfulness": ("over_examples",),
    "readout": ("lens", "ridge", "patchscope", "over_examples"),
    "trajectory": ("prompt_end_cosines", "step_cosines", "over_examples"),
    "contrast": ("between", "paired", "map_test"),
}
"""Functions of the probes that others rely on."""


def public_names() -> list[str]:
    """One line a name: where it is, and how it is called or what it holds."""
    lines = [line for name in PACKAGES for line in _of_module(import_module(name))]
    for module, functions in PROBES.items():
        found = import_module(f"composcope.probes.{module}")
        lines += [_line(f"composcope.probes.{module}.{name}", getattr(found, name)) for name in functions]
    return sorted(set(lines))


def _of_module(module: ModuleType) -> Iterator[str]:
    for name in getattr(module, "__all__", None) or _defined(module):
        value = getattr(module, name)
        if not inspect.ismodule(value):
            yield _line(f"{module.__name__}.{name}", value)


def _defined(module: ModuleType) -> list[str]:
    """Public names of a module without ``__all__``: what it defines itself."""
    own = vars(module).items()
    return [n for n, v in own if not n.startswith("_") and getattr(v, "__module__", None) == module.__name__]


def _line(name: str, value: Any) -> str:
    if inspect.isclass(value):
        if is_dataclass(value):
            inside = ", ".join(f.name for f in fields(value) if not f.name.startswith("_"))
        elif issubclass(value, BaseModel):
            inside = ", ".join(value.model_fields)
        else:
            inside = ", ".join(n for n in vars(value) if not n.startswith("_"))
        return f"{name}: class({inside})"
    if inspect.isroutine(value):
        return f"{name}({', '.join(map(_parameter, inspect.signature(value).parameters.values()))})"
    return f"{name}: {getattr(value, '__name__', type(value).__name__)}"


def _parameter(p: inspect.Parameter) -> str:
    star = {p.VAR_POSITIONAL: "*", p.VAR_KEYWORD: "**"}.get(p.kind, "")
    only = "keyword " if p.kind is p.KEYWORD_ONLY else ""
    plain = isinstance(p.default, bool | int | float | str | tuple | None)
    default = "" if p.default is p.empty else f"={p.default!r}" if plain else "=..."
    return f"{only}{star}{p.name}{default}"


def test_public_names_are_those_that_were_decided_on() -> None:
    stored, found = STORED.read_text(encoding="utf-8").splitlines(), public_names()
    changed = list(difflib.unified_diff(stored, found, "decided", "found", n=0, lineterm=""))
    assert not changed, (
        "public names have changed:\n"
        + "\n".join(changed)
        + "\nIf this is meant, run `python tests/test_api.py` and say it in CHANGELOG.md."
    )


def test_a_seed_that_is_not_given_is_0_except_where_organisms_are_made_and_checked() -> None:
    root, found = Path(__file__).parents[1], dict[str, set[object]]()
    files = [p for package in ("evaluation", "hooks", "probes", "experiments") for p in (root / package).rglob("*.py")]
    for path in files:
        for made in (n.args for n in ast.walk(ast.parse(path.read_text("utf-8"))) if isinstance(n, ast.FunctionDef)):
            last = [*made.posonlyargs, *made.args][-len(made.defaults) :] if made.defaults else []
            pairs = [*zip(last, made.defaults, strict=True), *zip(made.kwonlyargs, made.kw_defaults, strict=True)]
            values = {d.value for a, d in pairs if a.arg == "seed" and isinstance(d, ast.Constant)}
            found.setdefault(str(path.relative_to(root)), set()).update(values)
    other = {path for path, values in found.items() if values - {0}}
    assert sum(map(bool, found.values())) > 40
    assert all(path.startswith("experiments/organism/") for path in other), other


def test_every_public_name_says_what_it_is() -> None:
    found = {
        f"{p}.{n}": getattr(import_module(p), n) for p in PACKAGES for n in getattr(import_module(p), "__all__", ())
    }
    documented = {n: v for n, v in found.items() if inspect.isroutine(v) or inspect.isclass(v)}
    silent = [name for name, value in documented.items() if not (value.__doc__ or "").strip()]
    assert not silent, f"without a docstring: {', '.join(silent)}"


if __name__ == "__main__":
    STORED.write_text("\n".join(public_names()) + "\n", encoding="utf-8")
    print(f"{STORED}: {len(public_names())} names")
