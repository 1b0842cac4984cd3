"""What a name on the command line stands for: an object of a package, of a plugin file or of an installed package.

    FIGURES = Registry("figures", Figure, __package__)
    FIGURES["collapse-curve"].title

An object says everything about itself in the file that defines it, and is found there: whoever adds one to this package
writes one file, and so does whoever adds one from outside.
"""

from __future__ import annotations

import pkgutil
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from importlib import import_module
from importlib.metadata import entry_points
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class Registry(Mapping[str, T], Generic[T]):
    """Objects of one kind by name: first those of the package by their ``order``, then those of plugins.

    ``package`` is searched, once and when first needed, for objects (or subclasses) of the type ``of`` at the top of
    its modules. ``wrap(name, value)`` makes such an object where a plugin gives only a function.
    """

    def __init__(self, kind: str, of: type, package: str | None, wrap: Callable[[str, Any], T] | None = None) -> None:
        self.kind, self.of, self.package, self.wrap = kind, of, str(package), wrap
        self._given: dict[str, Any] = {}
        self.added: dict[str, T] = {}
        """Those of plugins."""

    @cached_property
    def own(self) -> dict[str, T]:
        """The objects of the package itself."""
        found: dict[str, Any] = {}
        for module in pkgutil.iter_modules(import_module(self.package).__path__):
            for value in vars(import_module(f"{self.package}.{module.name}")).values():
                if self._is_one(value) and found.setdefault(value.name, value) is not value:
                    raise TypeError(
                        f"{self.package}.{module.name}: a second one of {self.kind} is called {value.name!r}"
                    )
        return dict(sorted(found.items(), key=lambda item: getattr(item[1], "order", 0)))

    def add(self, name: str, value: Any) -> bool:
        """Make an object of a plugin known by its name; False where that stands for something else."""
        if name in self.own or self._given.setdefault(name, value) is not value:
            return False
        self.added[name] = value if self.wrap is None or self._is_one(value) else self.wrap(name, value)
        return True

    def find(self, name: str) -> T | None:
        """The object of a name, also of an installed package (entry-point group ``composcope.KIND``)."""
        if name not in self:
            for point in entry_points(group=f"composcope.{self.kind}", name=name):
                self.add(name, point.load())
        return self.get(name)

    def _is_one(self, value: Any) -> bool:
        if isinstance(value, type):
            return issubclass(value, self.of) and value is not self.of and isinstance(getattr(value, "name", None), str)
        return isinstance(value, self.of)

    def __getitem__(self, name: str) -> T:
        return self.own[name] if name in self.own else self.added[name]

    def __iter__(self) -> Iterator[str]:
        yield from (*self.own, *self.added)

    def __len__(self) -> int:
        return len(self.own) + len(self.added)
