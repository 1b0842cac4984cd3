"""Measuring in parts: what a probe measures item by item may be measured by several workers and put together here.

A probe has two halves. *Measuring* runs the model on one item after another (a prompt, a pair, a text), and no item's
result depends on another's. *Summarizing* needs all results and no model: sets of neurons that are common to all
queries, matched pairs, permutations. ``spread`` is the seam between them: with a ``Model`` it measures here, with a
``Fleet`` wherever the fleet does. Functions that are spread stand at the top of a module, so that a worker finds them
by name; options go in with ``functools.partial``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Protocol, TypeVar, runtime_checkable

from ..hooks.model import Model
from ..hooks.progress import reached

T = TypeVar("T")
R = TypeVar("R")
Notes = list[str] | None
"""Where remarks about how it went (smaller batches, ...) are appended; None: they become Python warnings."""
Measure = Callable[[Model, Sequence[T], Notes], Iterable[tuple[int, R]]]
"""``measure(lm, items, notes)`` yields ``(index, result)`` for every item, in any order. Results are numbers, texts,
tensors and arrays, in dicts, lists and tuples."""


@runtime_checkable
class Fleet(Protocol):
    """Stands in for a ``Model`` where measuring is done elsewhere: it knows the model's sizes, and how to spread."""

    def spread(
        self, measure: Measure[Any, Any], items: Sequence[Any], notes: Notes, *, light: bool
    ) -> Iterator[tuple[int, Any]]: ...

    def call(self, function: Callable[..., Any], *args: Any) -> Any: ...


def spread(
    lm: Model | Fleet, measure: Measure[T, R], items: Sequence[T], notes: Notes = None, *, light: bool = False
) -> Iterator[tuple[int, R]]:
    """Results of all items as they arrive, with their indices; a progress stage around it counts them.

    ``light``: one cheap pass, which everybody who needs its results may as well repeat.
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
