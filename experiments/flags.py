"""Groups of command-line flags: a frozen dataclass whose fields are options, shared by several commands."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection
from dataclasses import fields
from typing import Any, get_type_hints


def with_flags(command: Callable[..., Any], name: str, group: type, leave_out: Collection[str] = ()) -> Any:
    """Give a command the flags of the dataclass ``group``; it receives them as one argument ``name``.

    Fields in ``leave_out`` are no flags; a command without that argument is called without it. The wrapped command has
    the signature that typer reads.
    """
    own = inspect.signature(command)
    given = {n: h for n, h in get_type_hints(command, include_extras=True).items() if n != name}
    hints = get_type_hints(group, include_extras=True)
    options: list[Any] = [f for f in fields(group) if f.name not in leave_out]

    def run(**values: Any) -> Any:
        made = group(**{f.name: values.pop(f.name) for f in options})
        return command(**values, **({name: made} if name in own.parameters else {}))

    kept = [p.replace(kind=p.KEYWORD_ONLY, annotation=given[n]) for n, p in own.parameters.items() if n != name]
    flags = [
        inspect.Parameter(f.name, inspect.Parameter.KEYWORD_ONLY, default=f.default, annotation=hints[f.name])
        for f in options
    ]
    run.__name__, run.__doc__, run.__module__ = command.__name__, command.__doc__, command.__module__
    run.__annotations__ = {**given, **{f.name: hints[f.name] for f in options}}
    run.__signature__ = own.replace(parameters=[*kept, *flags])  # type: ignore[attr-defined]
    return run
