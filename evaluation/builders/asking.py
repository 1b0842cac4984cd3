"""Putting a builder's questions to a model: each different ask once, from the journal where it is known."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from ..asks import Ask, Response
from ..engines.base import Engine
from ..journal import Journal, ask_identity


def ask_all(engine: Engine, asks: Sequence[Ask], journal: Journal | None = None) -> list[Response]:
    """The responses to ``asks``, in their order.

    With a journal nothing is asked twice, over runs too: a builder that was stopped goes on where it was. Failures of
    the infrastructure come back as responses with ``finish_reason="error"``; whoever reads them counts them as such.
    """
    keys = [ask_identity(ask, engine.identity) for ask in asks]
    known: dict[str, Response] = {}
    if journal is not None:
        journal.begin(engine.identity, engine.provenance)
        known = {key: kept for key in keys if (kept := journal.get(key)) is not None}
    missing = {key: ask for key, ask in zip(keys, asks, strict=True) if key not in known}
    for key, ask, response in _answers(engine, missing.values()):
        if journal is not None:
            journal.append(key, ask, response, engine.identity)
        known[key] = response
    return [known[key] for key in keys]


def _answers(engine: Engine, asks: Iterable[Ask]) -> Iterable[tuple[str, Ask, Response]]:
    pending = list(asks)
    for ask, response in engine.answer(pending) if pending else ():
        key = ask_identity(ask, engine.identity)
        yield key, ask, replace(response, ask=key)
