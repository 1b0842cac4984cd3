"""Measuring items one by one, in this process or on several workers; also in float32 on half-precision weights.

    results = collect(lm, partial(measure, k=0.2), texts)  # in the order of the texts

A probe has two halves. *Measuring* runs the model on one item after another (a prompt, a pair, a text), and no item's
result depends on another's. *Summarizing* needs all results and no model. ``spread`` separates them: with a ``Model``
it measures in this process, with a ``Fleet`` on its workers. Functions passed to ``spread`` are defined at the top of a
module, so that a worker finds them by name; options are bound with ``functools.partial``.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from importlib import import_module
from typing import Any, Protocol, TypeVar, runtime_checkable

from ..hooks.model import Model
from ..hooks.precision import widened
from ..terminal import reached

T = TypeVar("T")
R = TypeVar("R")
Notes = list[str] | None
"""A list for remarks (smaller batches, ...); None: they become Python warnings."""
Measure = Callable[[Model, Sequence[T], Notes], Iterable[tuple[int, R]]]
"""``measure(lm, items, notes)`` yields ``(index, result)`` for every item, in any order. Results are numbers, texts,
tensors and arrays, in dicts, lists and tuples."""


@runtime_checkable
class Fleet(Protocol):
    """The interface of a model on several workers: it knows the model's sizes and measures on its workers."""

    def spread(
        self, measure: Measure[Any, Any], items: Sequence[Any], notes: Notes, *, light: bool
    ) -> Iterator[tuple[int, Any]]: ...

    def call(self, function: Callable[..., Any], *args: Any) -> Any: ...


def spread(
    lm: Model | Fleet, measure: Measure[T, R], items: Sequence[T], notes: Notes = None, *, light: bool = False
) -> Iterator[tuple[int, R]]:
    """Results of all items as they arrive, with their indices; a progress stage around it counts them.

    ``light``: one cheap pass, which may be repeated wherever its results are needed.
    """
    found = lm.spread(measure, items, notes, light=light) if isinstance(lm, Fleet) else measure(lm, items, notes)
    for arrived, result in enumerate(found, 1):
        reached(arrived)
        yield result


def collect(
    lm: Model | Fleet, measure: Measure[T, R], items: Sequence[T], notes: Notes = None, *, light: bool = False
) -> list[R]:
    """``spread`` in the order of the items."""
    found = dict(spread(lm, measure, items, notes, light=light))
    return [found[i] for i in range(len(items))]


def call(lm: Model | Fleet, function: Callable[..., R], *args: Any) -> R:
    """``function(lm, *args)`` where the model is: here, or on one worker of a fleet."""
    return lm.call(function, *args) if isinstance(lm, Fleet) else function(lm, *args)


class InDtype:
    """A ``Model`` (or ``Fleet``) whose measurements run inside ``hooks.precision.widened``.

    For ``over_examples(InDtype(lm, "float32"), examples)`` of probes that measure by ``spread``. ``readout`` and
    ``faithfulness`` run the model themselves: ``InDtype(lm, "float32").call(readout.over_examples, examples)``. All
    other attributes are the model's.
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
        # By name, because a store identifies a measurement by plain values.
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
    """The results of one measurement, all computed before the first is yielded: the model is then no longer widened."""
    with widened(lm, dtype):
        found = list(getattr(import_module(module), function)(lm, items, notes, **options))
    yield from found


def called(lm: Model, dtype: str, function: Callable[..., Any], *args: Any) -> Any:
    """``function(lm, *args)`` inside ``widened``."""
    with widened(lm, dtype):
        return function(lm, *args)
