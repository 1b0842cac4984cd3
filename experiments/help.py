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


def example(command: str, width: int = 72) -> str:
    """An epilog with a command to copy: on lines of its own, which a narrow terminal does not break inside a word.

    Long commands go on behind a backslash, an option always beside its value.
    """
    lines: list[str] = []
    for unit in _units(f"composcope {command}"):
        if lines and len(lines[-1]) + len(unit) + 3 <= width:
            lines[-1] += f" {unit}"
        else:
            lines.append(unit)
    return _AS_IT_IS + "Example:\n  " + " \\\n    ".join(lines)


_AS_IT_IS = "\b\n"
"""Tells click to leave the paragraph's lines alone."""


def _units(command: str) -> list[str]:
    """The words of a command, options together with their values."""
    found: list[str] = []
    for word in command.split():
        if found and found[-1].startswith("-") and " " not in found[-1] and not word.startswith("-"):
            found[-1] += f" {word}"
        else:
            found.append(word)
    return found
