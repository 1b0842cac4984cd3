"""How ``--help`` shows commands with their whole first sentence, and options under headings."""

from __future__ import annotations

from typing import Any

from typer.core import TyperCommand, TyperGroup

WHOLE = 10_000
"""Characters: more than any sentence has."""


class Commands(TyperGroup):
    """A group that wraps what its commands do over several lines, where click would cut it off."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        found = [(name, self.get_command(ctx, name)) for name in self.list_commands(ctx)]
        with formatter.section("Commands"):
            formatter.write_dl([(n, c.get_short_help_str(WHOLE)) for n, c in found if c is not None and not c.hidden])


class Command(TyperCommand):
    """A command whose ``--help`` lists its options under headings: those of ``flags.PANELS``, the output last."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        panels: dict[str, list[tuple[str, str]]] = {name: [] for name in ("Arguments", "Options")}
        for param in self.get_params(ctx):
            if (record := param.get_help_record(ctx)) is not None:
                panels.setdefault(_panel(param), []).append(record)
        for name in sorted(panels, key=lambda name: name == OUTPUT):
            if panels[name]:
                with formatter.section(name):
                    formatter.write_dl(panels[name])


OUTPUT = "Output"


def _panel(param: Any) -> str:
    if param.param_type_name == "argument":
        return "Arguments"
    if param.name in ("out", "dry_run", "json", "quiet", "help"):
        return OUTPUT
    return getattr(param, "rich_help_panel", None) or "Options"


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
