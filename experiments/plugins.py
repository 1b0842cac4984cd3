"""Load your own benchmarks, protocols, probes, figures and studies from a Python file.

It is given with ``--plugin FILE``, or loaded with ``composcope.load_plugin(FILE)``.

The file is imported only if the user names it, never because a run folder does, so that a run from elsewhere cannot
start code. The file defines any of these, either as a dictionary by command-line name or as a list of objects:

* ``BENCHMARKS``: ``{name: reader}``; ``--benchmark name:FILE`` calls ``reader("FILE")``, which returns cases;
* ``PROTOCOLS``: ``{name: class}``; see ``evaluation.protocols.base.Protocol``;
* ``PROBES``: ``{name: function}``; ``function(lm, examples)`` returns a ``probes.result.ProbeResult``;
* ``FIGURES``: ``{id: function}``; ``function(runs)`` returns a ``figures.drawing.Drawing``; its docstring is the title;
* ``STUDIES``: ``[study]``; see ``studies.study.Preset``;
* ``HYPOTHESES``: ``{name: function}``; shortcuts that ``diagnose`` looks for, see ``diagnosis.hypotheses``.

The objects in a list describe themselves (name, options, roles): ``benchmarks.catalog.Benchmark``, protocol classes
with an ``about``, ``probes.catalog.Probe``, ``figures.drawing.Figure``. Installed packages offer the same through the
entry-point groups ``composcope.benchmarks``, ``composcope.protocols``, ``composcope.probes``, ``composcope.figures``
and ``composcope.studies``.
"""

import hashlib
import sys
from collections.abc import Iterable, Mapping
from importlib import import_module
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from traceback import walk_tb
from types import CodeType, ModuleType
from typing import Any

from ..errors import ComposcopeError, InputError
from ..files import as_path
from ..registry import PLUGIN_HASH, PLUGIN_PREFIX

KINDS = {
    "BENCHMARKS": ("..evaluation.benchmarks.catalog", "READERS"),
    "PROTOCOLS": ("..evaluation.protocols.base", "PROTOCOLS"),
    "PROBES": ("..probes.catalog", "PROBES"),
    "FIGURES": (".figures.catalog", "FIGURES"),
    "STUDIES": (".studies.study", "STUDIES"),
    "HYPOTHESES": (".diagnosis.hypotheses", "HYPOTHESES"),
}
"""The names that a file may define, and the registry for each."""


def load_plugin(path: str | Path) -> dict[str, tuple[str, ...]]:
    """Import a plugin file and register what it defines; returns the names by kind.

    From then on its benchmarks, protocols, probes, figures and hypotheses are known by their names in this process. A
    file that was changed since is imported again, and replaces what it defined before.

    Raises ``InputError`` for a file that cannot be imported, defines nothing, or uses a name that is taken.
    """
    path = as_path(path, "plugin")
    if not path.is_file():
        raise InputError(f"plugin {path}: no such file; give a Python file that defines {' or '.join(KINDS)}")
    module = _imported(path)
    found = {kind: _checked(path, kind, getattr(module, kind, {})) for kind in KINDS}
    if not any(found.values()):
        raise InputError(f"plugin {path}: defines nothing; add a dictionary or a list {' or '.join(KINDS)}")
    for kind, items in found.items():
        for name, item in items.items():
            if not _registry(kind).add(name, item):
                raise InputError(f"plugin {path}: {kind}[{name!r}] is taken; choose another name")
    return {kind: tuple(items) for kind, items in found.items() if items}


def loaded() -> bool:
    """Whether a plugin file was loaded in this process."""
    return any(name.startswith(PLUGIN_PREFIX) for name in sys.modules)


class _Source(SourceFileLoader):
    """Imports what the file holds now: a cache of compiled code would be asked by second and size only."""

    def get_code(self, fullname: str) -> CodeType:
        return self.source_to_code(self.get_data(self.path), self.path)


def _imported(path: Path) -> ModuleType:
    """The module of a file; a file is imported once in a process, and again when its content has changed."""
    key = hashlib.sha256(str(path.resolve()).encode()).hexdigest()[:12]
    name, content = f"{PLUGIN_PREFIX}{key}", hashlib.sha256(path.read_bytes()).hexdigest()
    before = sys.modules.get(name)
    if getattr(before, PLUGIN_HASH, None) == content and before is not None:
        return before
    if path.suffix != ".py":
        raise InputError(f"plugin {path}: not a Python file; its name must end in .py")
    for kind in KINDS if before is not None else ():
        for known in _names(getattr(before, kind, {})):
            _registry(kind).forget(known)
    where = str(path.resolve())
    spec = spec_from_file_location(name, where, loader=_Source(name, where))
    assert spec is not None and spec.loader is not None
    module = module_from_spec(spec)
    setattr(module, PLUGIN_HASH, content)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except ComposcopeError:
        del sys.modules[name]
        raise
    except (Exception, SystemExit) as e:
        del sys.modules[name]
        line = _line(e, path.resolve())
        raise InputError(f"plugin {path}{line}: {type(e).__name__}: {e}; the file must import without errors") from e
    return module


def _line(e: BaseException, path: Path) -> str:
    """``:LINE`` of the plugin file in which an error arose."""
    if isinstance(e, SyntaxError):
        return f":{e.lineno}"
    lines = [line for frame, line in walk_tb(e.__traceback__) if Path(frame.f_code.co_filename) == path]
    return f":{lines[-1]}" if lines else ""


def _checked(path: Path, kind: str, items: Any) -> Mapping[str, Any]:
    """The definitions of a file by name, from a dictionary of functions or a list of objects with names."""
    if isinstance(items, list | tuple) and all(isinstance(getattr(item, "name", None), str) for item in items):
        return {item.name: item for item in items}
    if not isinstance(items, Mapping) or not all(isinstance(n, str) and callable(f) for n, f in items.items()):
        raise InputError(
            f"plugin {path}: {kind} is {items!r:.80}; give a dictionary of names and functions, or a list of objects"
        )
    return items


def _names(items: Any) -> Iterable[str]:
    """The names of what a file defined, whether or not it could be used."""
    if isinstance(items, Mapping):
        return items
    return [item.name for item in items if hasattr(item, "name")] if isinstance(items, list | tuple) else ()


def _registry(kind: str) -> Any:
    """The registry of a kind; loaded only if a file defines entries of this kind."""
    module, name = KINDS[kind]
    return getattr(import_module(module, __package__), name)
