"""Objects by their command-line name, from this package, from plugin files and from installed packages.

    FIGURES = Registry("figures", lambda value: isinstance(value, Figure), __package__)
    FIGURES["collapse-curve"].title

Each object describes itself in the file that defines it, and is found there. So adding one takes a single file, inside
or outside this package.
"""

import pkgutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from importlib import import_module
from importlib.metadata import entry_points
from typing import Any, Generic, TypeVar

T = TypeVar("T")
PLUGIN_PREFIX = "composcope_plugin_"
"""Prefix of the module names of plugin files."""
PLUGIN_HASH = "composcope_sha256"
"""Name under which a plugin's module holds the hash of the file that it was made from."""
PLUGIN_FIRST = "name the file that defines your own with --plugin FILE, in Python with composcope.load_plugin(FILE)"


class Registry(Mapping[str, T], Generic[T]):
    """Objects of one kind by name: first the package's own by their ``order``, then those of plugins.

    When first used, ``package`` is searched once for values at the top level of its modules that ``is_one`` accepts;
    each has a ``name``. With ``modules``, only those modules are searched. If a plugin gives only a function,
    ``wrap(name, value)`` makes the object.
    """

    def __init__(
        self, kind: str, is_one: Callable[[Any], bool], package: str | None,
        wrap: Callable[[str, Any], T] | None = None, *, modules: Sequence[str] = (),
    ) -> None:  # fmt: skip
        self.kind, self.is_one, self.package, self.wrap, self.modules = kind, is_one, str(package), wrap, modules
        self._given: dict[str, Any] = {}
        self.added: dict[str, T] = {}
        """The objects of plugins."""

    @cached_property
    def own(self) -> dict[str, T]:
        """The objects of the package itself."""
        found: dict[str, Any] = {}
        for module in self.modules or [m.name for m in pkgutil.iter_modules(import_module(self.package).__path__)]:
            for value in vars(import_module(f"{self.package}.{module}")).values():
                if self.is_one(value) and found.setdefault(value.name, value) is not value:
                    raise TypeError(f"{self.package}.{module}: two {self.kind} are called {value.name!r}")
        return dict(sorted(found.items(), key=lambda item: getattr(item[1], "order", 0)))

    def add(self, name: str, value: Any) -> bool:
        """Register a plugin's object under a name; False if another object already has the name."""
        if name in self.own or self._given.setdefault(name, value) is not value:
            return False
        self.added[name] = value if self.wrap is None or self.is_one(value) else self.wrap(name, value)
        return True

    def forget(self, name: str) -> None:
        """Remove a plugin's object, before its file is loaded again."""
        self._given.pop(name, None)
        self.added.pop(name, None)

    def find(self, name: str) -> T | None:
        """The object with a name, also from an installed package (entry-point group ``composcope.KIND``)."""
        if name not in self:
            for point in entry_points(group=f"composcope.{self.kind}", name=name):
                self.add(name, point.load())
        return self.get(name)

    def __getitem__(self, name: str) -> T:
        return self.own[name] if name in self.own else self.added[name]

    def __iter__(self) -> Iterator[str]:
        yield from (*self.own, *self.added)

    def __len__(self) -> int:
        return len(self.own) + len(self.added)
