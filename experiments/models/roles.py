"""Opens engines for teachers, judges and solvers named on the command line: a server, a folder, an organism."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from ...errors import InputError
from ...evaluation.asks import Ask, Response
from ...evaluation.engines.addresses import address, key_for
from ...evaluation.engines.base import BaseEngine, Engine
from ...terminal import to_stderr

SPEC = "MODEL@http://HOST:PORT/v1, a model folder, a hub id or organism:DOSE"
"""The values that options naming a role accept."""


def open_role(
    spec: str,
    option: str,
    *,
    batch_size: int | None = None,
    key_env: str | None = None,
    signed_as: Sequence[str] | None = None,
) -> Engine:
    """The engine for a role; ``SPEC`` lists the accepted values. ``option`` names the role's option in errors.

    ``key_env`` is ``--api-key-env``; its entries ``HOST=VARIABLE`` apply here. ``signed_as`` are other names of the
    model; None accepts any name that its server signs with. Local models without a chat template are asked in raw
    prompts. Raises ``InputError`` or ``ModelError`` if the engine cannot be opened.
    """
    served = address(spec, option)
    if served is not None:
        from ...evaluation.engines.http import connect

        model, url = served
        return connect(url, model, api_key=key_for(url, key_env), signed_as=signed_as)
    return _local(spec, option, batch_size)


def _local(spec: str, option: str, batch_size: int | None) -> Engine:
    from .target import Loading, load_local

    try:
        opened = load_local(Loading(spec, batch_size=batch_size), to_stderr)
    except InputError as e:
        raise InputError(f"{option} {spec}: cannot be opened ({e}); give {SPEC}") from e
    return opened.engine if opened.prompting == "chat" else Raw(opened.engine)


class Raw(BaseEngine):
    """An engine without a chat template: asks written for a chat are put to it as plain text."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine

    @property
    def identity(self) -> dict[str, str]:
        return {**self.engine.identity, "prompting": "raw"}

    @property
    def provenance(self) -> dict[str, Any]:
        return dict(self.engine.provenance)

    def answer(self, asks: Sequence[Ask]) -> Iterator[tuple[Ask, Response]]:
        """Answers like the wrapped engine; every ask is returned as it was given."""
        given = [(ask, replace(ask, prompting="raw")) for ask in asks]
        back = {raw: ask for ask, raw in given}
        for raw, response in self.engine.answer([raw for _, raw in given]):
            yield back[raw], response
