"""How the commands of a group are listed in its ``--help``: each with its whole first sentence."""

from __future__ import annotations

from typing import Any

from typer.core import TyperGroup

WHOLE = 10_000
"""Characters: more than any sentence has."""


class Commands(TyperGroup):
    """A group that wraps what its commands do over several lines, where click would cut it off."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        found = [(name, self.get_command(ctx, name)) for name in self.list_commands(ctx)]
        with formatter.section("Commands"):
            formatter.write_dl([(n, c.get_short_help_str(WHOLE)) for n, c in found if c is not None and not c.hidden])
