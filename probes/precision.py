"""Probes in float32 on weights in half precision, wherever the model is."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from importlib import import_module
from typing import Any

from ..hooks.model import Model
from ..hooks.precision import widened
from .spread import Fleet, Measure, Notes, call, spread


class InDtype:
    """A ``Model`` (or ``Fleet``) every measurement of which is made inside ``hooks.precision.widened``.

    For ``probes.*.over_examples(InDtype(lm, "float32"), examples)``; everything else is the model's own.
    """

    def __init__(self, lm: Model | Fleet, dtype: str) -> None:
        self.lm, self.rows_dtype = lm, dtype

    def __getattr__(self, name: str) -> Any:
        return getattr(self.lm, name)

    def spread(
        self, measure: Measure[Any, Any], items: Sequence[Any], notes: Notes, *, light: bool
    ) -> Iterator[tuple[int, Any]]:
        """See ``probes.spread``."""
        of, options = (measure.func, measure.keywords) if isinstance(measure, partial) else (measure, {})
        named: Any = of
        # By name: what identifies a measurement in a store is made of plain values.
        what = partial(
            measured, module=named.__module__, function=named.__qualname__, options=options, dtype=self.rows_dtype
        )
        yield from spread(self.lm, what, items, notes, light=light)

    def call(self, function: Callable[..., Any], *args: Any) -> Any:
        """See ``probes.spread.call``."""
        return call(self.lm, called, self.rows_dtype, function, *args)


def measured(
    lm: Model, items: Sequence[Any], notes: Notes, *, module: str, function: str, options: Mapping[str, Any], dtype: str
) -> Iterator[tuple[int, Any]]:
    """The results of one measurement; complete before the first is handed on, so that nobody meets a widened model."""
    with widened(lm, dtype):
        found = list(getattr(import_module(module), function)(lm, items, notes, **options))
    yield from found


def called(lm: Model, dtype: str, function: Callable[..., Any], *args: Any) -> Any:
    """``function(lm, *args)`` inside ``widened``."""
    with widened(lm, dtype):
        return function(lm, *args)
