"""Options of how a protocol asks and counts: one frozen object, its command-line flags, and the protocol they make."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from itertools import islice
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..errors import InputError
from ..evaluation.asks import Ask
from ..evaluation.cases import Case
from .flags import with_flags

if TYPE_CHECKING:
    from .sources import Benchmark

_PROTOCOLS = {
    "also": ("compositionality-gap", "double-gate"),
    "reversed": ("compositionality-gap",),
    "extra_context": ("compositionality-gap",),
    "code": ("reasoning-gap",),
    "co_presented": ("reasoning-gap",),
    "ask_all": ("scaffolding",),
    "placeholders": ("scaffolding",),
}
"""Which protocols an option is for; the others are for all."""


@dataclass(frozen=True)
class Asking:
    """How a protocol asks and counts, beyond its prompt format; the defaults are the protocol's own."""

    few_shot: Annotated[
        str | None, typer.Option(help="Worked examples: how many of our own, or a file (kind, question, answer).")
    ] = None
    preamble: Annotated[
        str, typer.Option(help="yes, no or both: with or without the instruction; both are reported.")
    ] = "yes"
    also: Annotated[
        str | None, typer.Option(help="Ask the whole again: comma-separated cot, self-ask, thinking, knowledge, ...")
    ] = None
    thinking: Annotated[
        bool | None, typer.Option("--thinking/--no-thinking", help="Switch the chat template's thinking on or off.")
    ] = None
    thinking_tokens: Annotated[int, typer.Option(min=1, help="Token budget of answers with thinking.")] = 4096
    cot_tokens: Annotated[int | None, typer.Option(min=1, help="Token budget of the formats cot and self-ask.")] = None
    answer_tokens: Annotated[int | None, typer.Option(min=1, help="One token budget for all other answers.")] = None
    reversed: Annotated[
        bool, typer.Option("--reversed", help="Also ask wholes with their steps in the other order (meta.reversed).")
    ] = False
    extra_context: Annotated[
        bool, typer.Option("--extra-context/--no-extra-context", help="Also ask parts with the whole's numbers added.")
    ] = True
    code: Annotated[bool, typer.Option("--code", help="Also ask pairs for a program, run in the sandbox.")] = False
    co_presented: Annotated[
        bool, typer.Option("--co-presented/--no-co-presented", help="Also ask Q2 beside an independent Q1.")
    ] = True
    ask_all: Annotated[bool, typer.Option("--ask-all", help="Scaffolds of solved wholes too.")] = False
    placeholders: Annotated[
        bool, typer.Option("--placeholders/--no-placeholders", help="Scaffolds with blanked values as leak control.")
    ] = True
    compat: Annotated[
        str | None, typer.Option(help="Grade and count as a paper does: agentcoma, stad or collapse.")
    ] = None
    judge: Annotated[
        str | None,
        typer.Option(help="Second word on answers in words: MODEL@http://HOST:PORT/v1, a model folder or a hub id."),
    ] = None
    exemplars: tuple[Mapping[str, Any], ...] = ()
    """The examples of a file or of the benchmark itself, kept with the run so that it can be scored again alone."""
    may_think: bool = False
    """See ``with_room_to_think``; kept with the run, because it decides token budgets."""

    def __post_init__(self) -> None:
        from ..evaluation.grading.compat import MODES

        if self.compat is not None and self.compat not in MODES:
            raise InputError(f"--compat {self.compat!r} is not known; use one of {', '.join(MODES)}")
        if self.answer_tokens is not None and self.answer_tokens < 1:
            raise InputError(f"--answer-tokens {self.answer_tokens}: give a whole number of at least 1")
        if self.few_shot is not None and not self.few_shot.isdigit() and not self.exemplars:
            from ..evaluation.protocols import few_shot

            read = tuple(asdict(e) for e in few_shot.read(self.few_shot))
            object.__setattr__(self, "exemplars", read)

    def changed(self) -> dict[str, Any]:
        """What differs from the defaults and decides what is asked: part of a run's identity."""
        plain = Asking()
        names = [
            f.name for f in fields(Asking) if f.name not in ("compat", "judge", "few_shot" if self.exemplars else "")
        ]
        return {n: getattr(self, n) for n in names if getattr(self, n) != getattr(plain, n)}

    def as_config(self) -> dict[str, Any]:
        """Plain values for config.yaml."""
        return {**asdict(self), "exemplars": [dict(e) for e in self.exemplars]}


def from_config(raw: Mapping[str, Any] | None) -> Asking:
    """The options in a run's config.yaml; the defaults for a run from before there were any."""
    known = {f.name for f in fields(Asking)}
    values = {k: v for k, v in (raw or {}).items() if k in known}
    return Asking(**{**values, "exemplars": tuple(values.get("exemplars") or ())})


def with_room_to_think(asking: Asking, format: str | None, prompting: str, tokenizer: Any) -> Asking:
    """The options, noting whether a model may think before a short answer unasked: its chat template knows how."""
    knows = "<think>" in str(getattr(tokenizer, "chat_template", None))
    return replace(asking, may_think=knows and prompting == "chat" and format == "short" and asking.thinking is None)


def with_own_examples(asking: Asking, cases: Sequence[Case]) -> Asking:
    """The options with the worked examples that the cases' benchmark ships, where it ships some and a number is wanted.

    They are kept with the run like those of a file. Raises ``InputError`` for more than there are.
    """
    names = {case.benchmark for case in cases}
    if asking.exemplars or not (asking.few_shot or "").isdigit() or len(names) != 1:
        return asking
    from ..evaluation.protocols import few_shot

    found = few_shot.of_benchmark(names.pop(), int(str(asking.few_shot)))
    return replace(asking, exemplars=tuple(asdict(e) for e in found))


def protocol(name: str, format: str | None, prompting: str, asking: Asking, seed: int = 0) -> Any:
    """A protocol by its command-line name that asks and counts as told.

    Raises ``InputError`` for an option that the protocol does not have.
    """
    from ..evaluation import protocols
    from ..evaluation.protocols import few_shot
    from ..evaluation.protocols.presenting import Presentation, Presented

    found = protocols.get(name, **_options(name, format, asking, seed))
    if asking.exemplars:
        examples = [few_shot.Exemplar(**e) for e in asking.exemplars]
    else:
        count = int(asking.few_shot or 0)
        examples = few_shot.own(name, count) if count else []
    preamble: Any = asking.preamble
    how = Presentation(
        prompting=prompting,  # type: ignore[arg-type]
        exemplars=tuple(examples),
        preamble=preamble,
        thinking=asking.thinking,
        thinking_tokens=asking.thinking_tokens,
        cot_tokens=asking.cot_tokens,
        may_think=asking.may_think,
    )
    return Presented(found, how)


def _options(name: str, format: str | None, asking: Asking, seed: int) -> dict[str, Any]:
    """Options of the protocol class; those that are left at their defaults are not passed to other packages' ones."""
    given = asking.changed()
    options: dict[str, Any] = {"seed": seed} if seed else {}
    if format is not None:
        options["format"] = format
    if asking.answer_tokens is not None:
        options["max_tokens"] = asking.answer_tokens
    if asking.compat is not None:
        options["compat"] = asking.compat
    for option, wanted in _PROTOCOLS.items():
        if option not in given:
            continue
        if name not in wanted:
            flag = f"--{option.replace('_', '-')}"
            raise InputError(f"{flag} is for {' and '.join(wanted)}, and the protocol is {name}; leave it out")
        options[option] = given[option]
    if "also" in options:
        ways = tuple(dict.fromkeys(w.strip() for w in options.pop("also").split(",") if w.strip()))
        options["recovery" if name == "double-gate" else "also"] = ways
    options.pop("co_presented", None)  # made from the cases, see prepare
    return options


NEEDS_PARTS = ("compositionality-gap", "double-gate", "scaffolding")
"""Protocols that ask the parts, whatever their number."""
_SHOWN = 3


def prepare(cases: Sequence[Any], name: str, asking: Asking, seed: int = 0) -> list[Any]:
    """The cases with what the options need: an independent Q1 for every pair.

    Raises ``InputError`` where no case has parts for a protocol that asks them, and where no case has the wording that
    an option asks for.
    """
    if name in NEEDS_PARTS and cases and not any(c.parts for c in cases):
        why = next((f" ({c.meta['problem']})" for c in cases if c.meta.get("problem")), "")
        raise InputError(
            f"none of the {len(cases)} cases of {cases[0].benchmark} has parts{why}: there is nothing to compose; have "
            "a teacher make them (`composcope build scaffolds BENCHMARK --teacher MODEL --out DIR`), or write the "
            "decomposition into a case file (field 'parts', see docs/formats.md)"
        )
    if asking.reversed and not any("reversed" in c.meta for c in cases):
        raise InputError("--reversed: no case has a wording with reversed steps; add the field meta.reversed")
    if name == "reasoning-gap" and asking.co_presented and not any("independent" in c.meta for c in cases):
        from ..evaluation.protocols.reasoning_gap import co_present

        return co_present(cases, seed)
    return list(cases)


def parts_notice(cases: Sequence[Any], name: str) -> list[str]:
    """One line that says how many cases have no parts, which and why; none where all have, or nobody asks for them."""
    bare = [c for c in cases if not c.parts]
    if name not in NEEDS_PARTS or not bare:
        return []
    first = ", ".join(f"{c.id} ({c.meta.get('problem') or 'no reason given'})" for c in bare[:_SHOWN])
    more = ", ..." if len(bare) > _SHOWN else ""
    return [f"{len(bare)} of {len(cases)} cases have no parts and count in no gate: {first}{more}"]


def format_notice(format: str | None, benchmark: Benchmark, own: str | None = None) -> str:
    """Which prompt format is used and why; ``own`` is the protocol's, where it has one."""
    if format is None:
        return "" if own is None else f", prompt format {own} (the protocol's own; --format changes it)"
    recommended = benchmark.format
    if format == recommended:
        why = "the benchmark's own; --format changes it"
    elif benchmark.own and format == "short":
        why = "the gold answers are short; --format changes it"
    else:
        why = "--format"
    other = f"; the benchmark recommends {recommended}" if recommended not in (None, format) else ""
    return f", prompt format {format} ({why}{other})"


ROOM = 32
"""Tokens that a prompt with worked examples has to leave for its answer."""


def check_room(protocol: Any, cases: Sequence[Any], asking: Asking, tokenizer: Any, context: int | None) -> None:
    """Refuse worked examples that fill the model's context, before anything is asked.

    Raises ``InputError`` with the longest prompt's length. Nothing is checked where only a server knows the tokenizer.
    """
    if asking.few_shot is None or tokenizer is None or context is None:
        return
    asks = [ask for case in cases for ask in protocol.asks(case, {})]
    longest, ask = max(zip(prompt_lengths(tokenizer, asks), asks, strict=True), key=lambda pair: pair[0])
    if longest + min(ROOM, ask.max_tokens) > context:
        fewer = f"--few-shot {int(asking.few_shot) - 1}" if asking.few_shot.isdigit() else "a file with fewer of them"
        fix = "leave it out" if fewer == "--few-shot 0" else f"give fewer examples ({fewer}), or leave them out"
        raise InputError(
            f"--few-shot {asking.few_shot}: with its examples the prompt of role {ask.role!r}, case {ask.case!r}, has "
            f"{longest} tokens, and the model a context of {context} (max_position_embeddings): {fix}"
        )


def prompt_lengths(tokenizer: Any, asks: Sequence[Ask]) -> list[int]:
    """Tokens of each prompt as the model is fed it, in the order of the asks."""
    from ..evaluation.engines.text import chat_ids

    name = str(getattr(tokenizer, "name_or_path", "") or "the model")
    lengths: list[int] = []
    rest = iter(asks)
    while block := list(islice(rest, 512)):
        chats = [a for a in block if a.prompting == "chat"]
        raws = [a for a in block if a.prompting == "raw"]
        fed = chat_ids(tokenizer, [a.prompt for a in chats], name) if chats else []
        completed = tokenizer([a.prompt for a in raws]).input_ids if raws else []
        by_ask = dict(zip(map(id, [*chats, *raws]), map(len, [*fed, *completed]), strict=True))
        lengths += [by_ask[id(a)] for a in block]
    return lengths


def with_asking(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the flags of ``Asking``; it receives them as one argument ``asking``."""
    return with_flags(command, "asking", Asking, leave_out=("exemplars", "may_think"))
