"""Make ``--help`` show the whole first sentence of each command, and options under headings."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from typer.core import TyperCommand, TyperGroup

from ...terminal import to_stderr

WHOLE = 10_000
"""A limit in characters that no sentence reaches."""


class Commands(TyperGroup):
    """A group of commands whose ``--help`` wraps descriptions over several lines, where click would cut them off.

    It lists the commands under the headings of ``groups``, in order, and accepts their old names (``renamed``).
    """

    groups: ClassVar[Mapping[str, Sequence[str]]] = {}
    """The names of commands under each heading; commands without a heading come last."""
    renamed: ClassVar[Mapping[str, str]] = {}
    """The words of today's command for each old name; using an old name prints a note."""

    def list_commands(self, ctx: Any) -> list[str]:
        order = [name for names in self.groups.values() for name in names]
        known = super().list_commands(ctx)
        return sorted(known, key=lambda name: order.index(name) if name in order else len(order))

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        of = {name: heading for heading, names in self.groups.items() for name in names}
        sections: dict[str, list[tuple[str, str]]] = {heading: [] for heading in self.groups}
        for name in self.list_commands(ctx):
            command = self.get_command(ctx, name)
            if command is not None and not command.hidden:
                sections.setdefault(of.get(name, "Commands"), []).append((name, command.get_short_help_str(WHOLE)))
        for heading, rows in sections.items():
            if rows:
                with formatter.section(heading):
                    formatter.write_dl(rows)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        if args and args[0] in self.renamed:
            now = self.renamed[args[0]]
            to_stderr(f"note: '{args[0]}' is now called '{now}'; the next version will not accept the old name")
            args = [*now.split(), *args[1:]]
        return super().resolve_command(ctx, args)


OUTPUT = "Output"
_OF_OUTPUT = ("out", "to", "report", "dry_run", "list_", "json", "quiet", "help")


class Command(TyperCommand):
    """A command whose ``--help`` lists options under headings, with the output options last."""

    headings: ClassVar[Mapping[str, Sequence[str]]] = {}
    """The names of options under each heading; options that come from the configuration carry their own heading."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        listed: dict[str, list[tuple[str, str]]] = {name: [] for name in ("Arguments", "Options", *self.headings)}
        for param in self.get_params(ctx):
            if (record := param.get_help_record(ctx)) is not None:
                listed.setdefault(self.heading(param), []).append(record)
        for name in sorted(listed, key=lambda name: name == OUTPUT):
            if listed[name]:
                with formatter.section(name):
                    formatter.write_dl(listed[name])

    def heading(self, param: Any) -> str:
        """The heading under which ``--help`` lists a parameter."""
        if param.param_type_name == "argument":
            return "Arguments"
        if param.name in _OF_OUTPUT:
            return OUTPUT
        own = next((heading for heading, names in self.headings.items() if param.name in names), None)
        return own or getattr(param, "rich_help_panel", None) or "Options"


def under(headings: Mapping[str, Sequence[str]]) -> type[Command]:
    """A command class that lists options under these headings."""
    return type("Command", (Command,), {"headings": headings})


def example(command: str, width: int = 72) -> str:
    """An epilog with a command to copy, on its own lines, which a narrow terminal does not break inside a word.

    Long commands continue after a backslash; an option stays on one line with its value.
    """
    lines: list[str] = []
    for unit in _units(f"composcope {command}"):
        if lines and len(lines[-1]) + len(unit) + 3 <= width:
            lines[-1] += f" {unit}"
        else:
            lines.append(unit)
    return _AS_IT_IS + "Example:\n  " + " \\\n    ".join(lines)


_AS_IT_IS = "\b\n"
"""Tells click not to wrap the lines of the paragraph again."""


def _units(command: str) -> list[str]:
    """The words of a command, each option together with its value."""
    found: list[str] = []
    for word in command.split():
        if found and found[-1].startswith("-") and " " not in found[-1] and not word.startswith("-"):
            found[-1] += f" {word}"
        else:
            found.append(word)
    return found
