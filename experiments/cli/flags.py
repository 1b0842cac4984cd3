"""The flags of commands: those that several commands share, and those made from the configuration's sections.

    @with_config(Config, Asking, leave_out=("shard",))
    def command(given: dict[str, Any], out: Out = None) -> int: ...

``given`` holds only what the user gave, ready for ``Config``; the defaults come from the model.
Flags arrive as text, and only the model checks them.
"""

import inspect
import os
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, ClassVar, Literal, Union, get_args, get_origin, get_type_hints

from pydantic.fields import FieldInfo
from typer import Argument, Option
from typer.core import TyperCommand, TyperGroup

from ...errors import InputError
from ...evaluation.grading.grade import MODES
from ...files import at_home
from ...terminal import to_stderr
from .. import plugins
from ..config import RAY, Asking, Config, Probing, Section, Serving, check_options, flag

# Shared by several commands, with the help text of each.
Out = Annotated[Path | None, Option("--out", "-o", help="Run folder (default: runs/MODEL--BENCHMARK).")]
Seed = Annotated[int, Option(min=0, help="Seed of every random choice.")]
DryRun = Annotated[bool, Option("--dry-run", help="Only print the number of asks, tokens and forward passes.")]
AsJson = Annotated[bool, Option("--json", help="Machine-readable output on stdout.")]
Device = Annotated[str | None, Option(help="cpu, cuda, ... (default: a GPU if there is one).")]
Quiet = Annotated[bool, Option("--quiet", "-q", help="No progress on stderr; the log file still has it.")]
Silent = Annotated[bool, Option("--quiet", "-q", help="No progress on stderr.")]
"""``Quiet`` of a command that writes no log."""
RunArg = Annotated[Path, Argument(help="A run folder.")]
RunArgs = Annotated[list[Path], Argument(help="Run folders, or folders that hold several.")]
Compat = Annotated[str | None, Option(metavar="|".join(MODES), help="Grade and count as in a paper.")]
ConfigFile = Annotated[
    Path | None,
    Option("--config", "-c", help="YAML file of options (`composcope init` writes one); flags override it."),
]

SECTIONS = {Asking: "asking", Serving: "serving"}
"""The field of ``Config`` that holds a section's values; the values of other sections are at the top level."""
PANELS = {Asking: "Asking", Serving: "Serving", Probing: "Probing", Config: "Options"}
"""The heading under which ``--help`` lists a section's flags."""
_ELSEWHERE = {
    **dict.fromkeys(("format", "prompting"), "Asking"),
    **dict.fromkeys(("reversed", "extra_context", "code", "co_presented", "ask_all", "placeholders"), "Protocols"),
    **dict.fromkeys(("compat", "judge"), "Grading"),
    **dict.fromkeys(RAY, "Workers"),
    **dict.fromkeys(("batch_size", "dtype", "device", "shard", "max_asks", "reuse"), "Computing"),
}
"""Flags that ``--help`` lists under another heading than their section's."""
_SHORT = {"model": "-m", "benchmark": "-b", "protocol": "-p"}


def go_offline(*models: str | None, data: Iterable[str | None] = ()) -> None:
    """Switch the hub off for local models and local data; this must happen before the hub's library is imported.

    ``models`` are those in every role, the judge among them; None stands for one that was not given.
    """
    here = all(model.startswith("organism:") or at_home(model).exists() for model in models if model)
    if here and not any(name.startswith("hub:") for name in data if name):
        os.environ.setdefault("HF_HUB_OFFLINE", "1")


def with_config(
    *sections: type[Section], leave_out: Collection[str] = (), only: Collection[str] = (), defaults: bool = True
) -> Any:
    """Give a command the flags of some sections; it receives their values as one dictionary, ``given``.

    ``leave_out`` and ``only`` choose among the flags by name. ``defaults=False`` leaves defaults out of the help, for
    commands that change an existing configuration.
    """
    fields = [
        (name, section, field)
        for section in sections
        for name, field in section.model_fields.items()
        if field.description and name not in leave_out and (name in only or not only)
        if section is not Config or name not in Probing.model_fields
    ]
    added = [
        _parameter(name, _ELSEWHERE.get(name, PANELS[section]), field, defaults) for name, section, field in fields
    ]

    def collect(values: dict[str, Any]) -> dict[str, Any]:
        given: dict[str, Any] = {}
        for name, section, _ in fields:
            if (value := values.pop(name)) is not None:
                inner = given.setdefault(SECTIONS[section], {}) if section in SECTIONS else given
                inner[name] = value
        return {"given": given}

    return lambda command: _with_parameters(command, added, collect)


def with_file(path: Path | None, given: Mapping[str, Any]) -> dict[str, Any]:
    """The options of a file, overridden by those given. Raises ``InputError`` for a file without options."""
    from ...evaluation import text_files

    if path is None:
        return dict(given)
    found = text_files.yaml_document(path, f"--config {path}", "`composcope init` writes one")
    if not isinstance(found, dict):
        raise InputError(f"--config {path}: holds no options; give lines such as 'model: organism:control'")
    for inner in (found, found.get("asking")):
        if isinstance(inner, dict) and isinstance(said := inner.get("preamble"), bool):  # so YAML reads yes and no
            inner["preamble"] = "yes" if said else "no"
    for name in ("schema", "pad_token"):  # of run folders; the second is an option that earlier versions had
        found.pop(name, None)
    try:
        check_options(found, Config.known())
        for section, name in SECTIONS.items():
            inner = {} if found.get(name) is None else found[name]  # a section may be left empty
            if not isinstance(inner, dict):
                raise InputError(f"{name} is {inner!r}; give its options by name")
            check_options(inner, section.known())
    except InputError as e:
        raise InputError(f"--config {path}: {e}") from None
    found = Config.in_sections(found)
    merged = {**found, **given}
    for section in ("asking", "serving"):
        if isinstance(found.get(section), dict) and section in given:
            merged[section] = {**found[section], **given[section]}
    return merged


def with_plugins(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the flag ``--plugin``; its files are loaded before the other options are read."""
    option = Option(help="Python file with benchmarks, protocols, probes or figures; repeatable.")
    added = inspect.Parameter(
        "plugin", inspect.Parameter.KEYWORD_ONLY, default=None, annotation=Annotated[list[Path] | None, option]
    )

    def load(values: dict[str, Any]) -> dict[str, Any]:
        for path in values.pop("plugin") or ():
            plugins.load_plugin(path)
        return {}

    return _with_parameters(command, [added], load)


def bound(command: Callable[..., Any], about: str, **values: Any) -> Callable[..., Any]:
    """The command with fixed values for some parameters, which are then no options. ``about`` is its help text."""
    made = _with_parameters(command, [], lambda _: values, without=tuple(values))
    made.__doc__ = about
    return made


def _with_parameters(
    command: Callable[..., Any], added: list[inspect.Parameter], collect: Callable[[dict[str, Any]], dict[str, Any]],
    without: Collection[str] = ("given",),
) -> Callable[..., Any]:  # fmt: skip
    """The command with extra parameters: typer reads them in its signature, and ``collect`` removes their values."""
    own, hints = inspect.signature(command), get_type_hints(command, include_extras=True)
    kept = [p.replace(kind=p.KEYWORD_ONLY, annotation=hints[n]) for n, p in own.parameters.items() if n not in without]

    def run(**values: Any) -> Any:
        made = collect(values)
        return command(**values, **made)

    run.__name__, run.__doc__, run.__module__ = command.__name__, command.__doc__, command.__module__
    signature = own.replace(parameters=[*kept, *added])
    run.__annotations__ = {p.name: p.annotation for p in signature.parameters.values()}
    run.__signature__ = signature  # type: ignore[attr-defined]
    return run


def _parameter(name: str, panel: str, field: FieldInfo, defaults: bool) -> inspect.Parameter:
    """One field as an option, which is None unless the user gives it."""
    union = get_origin(field.annotation) in (Union, UnionType)
    kinds = [t for t in (get_args(field.annotation) if union else (field.annotation,)) if t]
    switch, default = bool in kinds, field.get_default(call_default_factory=True, validated_data={})
    names = [flag(name), *([_SHORT[name]] if name in _SHORT else [])]
    if switch and default is not False:
        names = [f"{flag(name)}/--no-{flag(name)[2:]}"]
    said = "" if not defaults else "required" if field.is_required() else _shown(default)
    option = Option(
        *names,
        help=f"{field.description} [{said}]" if said else field.description,
        metavar=None if switch else _metavar(kinds),
        rich_help_panel=panel,
    )
    kind = bool if switch else str
    return inspect.Parameter(
        name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=Annotated[kind | None, option]
    )


def _shown(default: Any) -> str:
    """The default as the help shows it; empty if the description is enough."""
    if isinstance(default, tuple):
        return "default: all"
    return "" if default in (None, "", True, False) else f"default: {default}"


def _metavar(kinds: list[Any]) -> str:
    if get_origin(kinds[0]) is Literal:
        return "|".join(get_args(kinds[0]))
    return f"<{kinds[0].__name__}>" if kinds[0] in (int, float) else "<str>"


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

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the arguments; a value that is given twice is refused, where click would drop the first one."""
        given: list[Any] = self.make_parser(ctx).parse_args(args=list(args))[2]
        for one in given:
            if one.param_type_name == "option" and not (one.multiple or one.is_flag) and given.count(one) > 1:
                ctx.fail(f"{max(one.opts, key=len)} is given {given.count(one)} times; give it once")
        return super().parse_args(ctx, args)

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
