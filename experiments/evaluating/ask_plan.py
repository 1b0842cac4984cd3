"""The plan of what will be asked: from a configuration to its cases (of a shard) and protocol, checked."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any

from ...errors import InputError, did_you_mean
from ...evaluation.asks import Ask
from ...evaluation.benchmarks.catalog import READERS, load
from ...evaluation.case import Case
from ...evaluation.cases import ONE_A_LINE, check_cases, hash_cases
from ...evaluation.engines.base import Engine
from ...evaluation.protocols.asking import default_format, default_protocol, recommended_format
from ...evaluation.protocols.presenting import FormattedProtocol, Presentation
from ...evaluation.shards import Shard
from ...files import at_home, beside
from ...terminal import words
from ..config import Asking, Config, flag
from ..models.target import Target

ORGANISM_BENCHMARKS = {
    "temporal": ("double-gate", 60),
    "mixed": ("compositionality-gap", 400),
    "pairs": ("reasoning-gap", 200),
    "ladders": ("scaffolding", 200),
    "choices": ("compositionality-gap", 200),
}
"""For each benchmark, its protocol and its number of cases per family x depth."""


@dataclass(frozen=True)
class LoadedBenchmark:
    """Cases with their default protocol."""

    name: str
    cases: tuple[Case, ...]
    protocol: str
    format: str | None
    """Default prompt format; None: the protocol's own."""
    sha256: str
    """Hash of the cases before any limit."""
    own: bool = False
    """True for a file of the user's own cases, and for questions for which no implemented paper fixes a prompt."""

    def format_for(self, protocol: str) -> str | None:
        """The default prompt format for these cases under a protocol; None: the protocol's own."""
        return self.format or (default_format(self.cases, protocol) if self.own else None)


def load_benchmark(
    name: str, *, seed: int = 0, limit: int | None = None, option: str = "--benchmark"
) -> LoadedBenchmark:
    """Load a benchmark: ``world``, ``organism:mixed``, ..., a case file, or ``reader:file`` (see ``load``).

    ``limit`` keeps that many cases per family x depth, the first ones in the benchmark's order. An organism's benchmark
    is drawn from ``seed``, with as many cases as the limit says. ``option`` is what the name was given as.
    Raises ``InputError`` naming file, line and field for a benchmark that cannot be used.
    """
    if name.startswith("organism:"):
        return _organism_benchmark(name, seed, limit, option)
    reader = READERS.get(name.partition(":")[0])
    if reader is None and ":" not in name and not at_home(name).exists():
        known = [*(n for n, r in READERS.items() if r.ships), *(f"organism:{w}" for w in ORGANISM_BENCHMARKS)]
        meant = did_you_mean(name, known) or beside(name)
        raise InputError(f"{option} {name}: no such benchmark file; {ONE_A_LINE}{meant}")
    own = at_home(name).is_file() or (reader is not None and reader.answer_alone)
    return of_cases(name, load(name), limit, own)


def of_cases(name: str, found: Sequence[Case], limit: int | None, own: bool) -> LoadedBenchmark:
    """Cases as a benchmark, with the protocol and the format that they suggest."""
    kept, format = tuple(limit_cases(found, limit)), recommended_format(found)
    return LoadedBenchmark(name, kept, default_protocol(found), format, hash_cases(found), own)


def _organism_benchmark(name: str, seed: int, limit: int | None, option: str) -> LoadedBenchmark:
    world = name.removeprefix("organism:")
    if world not in ORGANISM_BENCHMARKS:
        known = ["organism:" + w for w in ORGANISM_BENCHMARKS]
        raise InputError(
            f"{option} {name}: no such benchmark; use {', '.join(known)} or the path of a case file"
            f"{did_you_mean(name, known)}"
        )
    from ..organism import benchmarks

    protocol, default = ORGANISM_BENCHMARKS[world]
    draw = benchmarks.BENCHMARKS[world]
    # Drawing more cases only appends to each family x depth, so a few cases identify the benchmark at any size.
    found, sha256 = check_cases(draw(limit or default, seed), name), hash_cases(draw(8, seed))
    return LoadedBenchmark(name, tuple(found), protocol, "plain", sha256)


def limit_cases(cases: Sequence[Case], limit: int | None) -> list[Case]:
    """The first ``limit`` cases of each family x depth, in the benchmark's order: the same for every model."""
    if limit is None:
        return list(cases)
    seen: dict[tuple[str | None, int | None], int] = defaultdict(int)
    kept = []
    for case in cases:
        key = (case.family, case.depth)
        seen[key] += 1
        if seen[key] <= limit:
            kept.append(case)
    return kept


@dataclass(frozen=True)
class AskOptions:
    """How a protocol asks and counts: the part of a configuration that makes it (see ``make_protocol``)."""

    protocol: str | None
    """None: the benchmark's own."""
    format: str | None = None
    """Prompt format; None: the protocol's own."""
    prompting: str | None = None
    """``chat`` or ``raw``; None: as the tokenizer suggests."""
    seed: int = 0
    asking: Asking = field(default_factory=Asking)


def ask_options(config: Config) -> AskOptions:
    """The options of a run."""
    return AskOptions(**{f.name: getattr(config, f.name) for f in fields(AskOptions)})


@dataclass(frozen=True)
class AskPlan:
    """What will be asked and how: cases, options and the protocol that they make."""

    benchmark: LoadedBenchmark
    """With the cases that are asked: those of the shard, with what the options need."""
    options: AskOptions
    shard: Mapping[str, Any] | None = None
    """Which part of which cases these are (``shard_record``); None for all of them."""

    @cached_property
    def protocol(self) -> FormattedProtocol:
        """The protocol that asks and counts according to the options."""
        return make_protocol(self.options)

    @property
    def cases(self) -> Sequence[Case]:
        return self.benchmark.cases

    def for_model(self, prompting: str, tokenizer: Any, engine: Engine | None = None) -> AskPlan:
        """The plan with what only the model's tokenizer decides: how prompts are written, and room to think.

        With ``engine``, all that it will be asked is checked (``check_asks``).
        """
        options = replace(self.options, prompting=prompting)
        options = replace(
            options, asking=options.asking.model_copy(update={"may_think": may_think(options, tokenizer)})
        )
        plan = replace(self, options=options)
        if engine is not None:
            check_asks(plan, engine, tokenizer)
        return plan

    def identity(self, target: Target) -> dict[str, Any]:
        """Everything that identifies a run; the same on any machine."""
        how, name = self.options, self.benchmark.name
        return {
            "model": target.label,
            "weights": target.who,
            "benchmark": name if name.startswith("organism:") else Path(name).name,
            "data": self.benchmark.sha256,
            "protocol": how.protocol,
            "format": how.format,
            "prompting": how.prompting,
            "seed": how.seed,
            "shard": self.shard and str(Shard(self.shard["index"], self.shard["of"])),
            **({"asking": changed} if (changed := how.asking.changed()) else {}),
        }

    def settled(self, config: Config) -> Config:
        """The configuration with everything that the plan has settled, as the run keeps it."""
        return config.replace(**{f.name: getattr(self.options, f.name) for f in fields(self.options)})


def plan_asks(
    options: AskOptions, benchmark: LoadedBenchmark, shard: Shard | None = None, limit: int | None = None
) -> AskPlan:
    """The plan for a benchmark, with protocol, prompt format and worked examples settled by the user or the benchmark.

    A shard's cases are prepared among all cases, so that they match the full run. Raises ``InputError`` for options
    that the protocol does not have, or that the cases do not support.
    """
    protocol = options.protocol or benchmark.protocol
    format = options.format or benchmark.format_for(protocol)
    options = replace(options, protocol=protocol, format=format, asking=with_examples(options.asking, benchmark.cases))
    cases, part = prepare(benchmark.cases, options, benchmark.name), None
    if shard is not None:
        part = shard_record(benchmark, shard, limit)
        cases = [cases[i] for i in part["positions"]]
    plan = AskPlan(replace(benchmark, cases=tuple(cases)), options, part)
    _ = plan.protocol  # options that it does not have are refused now
    return plan


def with_examples(asking: Asking, cases: Sequence[Case]) -> Asking:
    """The options with worked examples read from a file, or taken from the cases' own benchmark if it ships some.

    The examples are kept with the run, so that it can be scored again without the file. Raises ``InputError`` for a
    file that cannot be read, and if more examples are asked for than the benchmark has.
    """
    from ...evaluation.protocols import presenting

    if asking.few_shot is None or asking.exemplars:
        return asking
    found = presenting.chosen(asking.few_shot, {case.benchmark for case in cases})
    return asking if found is None else asking.replace(exemplars=tuple(asdict(e) for e in found))


def may_think(options: AskOptions, tokenizer: Any) -> bool:
    """Whether a model may think unasked before a short answer, which its chat template shows."""
    knows = "<think>" in str(getattr(tokenizer, "chat_template", None))
    return knows and options.prompting == "chat" and options.format == "short" and options.asking.thinking is None


def make_protocol(options: AskOptions) -> FormattedProtocol:
    """The protocol that asks and counts according to options.

    Raises ``InputError`` for an option that the protocol does not have.
    """
    from ...evaluation import protocols
    from ...evaluation.protocols import presenting

    name, asking = str(options.protocol), with_examples(options.asking, ())
    found = protocols.get(name, **_own_options(options))
    count = 0 if asking.exemplars else int(asking.few_shot or 0)
    examples = presenting.own(name, count) if count else [presenting.Exemplar(**e) for e in asking.exemplars]
    how = Presentation(
        prompting=options.prompting or "chat",  # type: ignore[arg-type]
        exemplars=tuple(examples),
        preamble=asking.preamble,
        thinking=asking.thinking,
        thinking_tokens=asking.thinking_tokens,
        cot_tokens=asking.cot_tokens,
        temperature=asking.temperature,
        seed=options.seed,
        may_think=asking.may_think,
    )
    return FormattedProtocol(found, how)


def _own_options(given: AskOptions) -> dict[str, Any]:
    """Options of the protocol class. Options left at their defaults are not passed to protocols of other packages."""
    from ...evaluation.protocols.base import PROTOCOLS, about

    asking, name = given.asking, str(given.protocol)
    settled: dict[str, Any] = {"format": given.format, "max_tokens": asking.answer_tokens, "compat": asking.compat}
    settled |= {"seed": given.seed or None}
    options: dict[str, Any] = {k: v for k, v in settled.items() if v is not None}
    own = about(name).options
    for option, value in asking.changed().items():
        wanted = [other for other in PROTOCOLS.own if option in about(other).options]
        if wanted and option not in own:
            raise InputError(
                f"{flag(option, value)} is for {' and '.join(wanted)}, and the protocol is {name}; leave it out, or "
                f"give --protocol {wanted[0]}"
            )
        if own.get(option):  # an option that sets no field is applied to the cases, see prepare
            ways = tuple(dict.fromkeys(words(value))) if option == "also" else value
            options[own[option]] = ways
    return options


def prepare(cases: Sequence[Case], options: AskOptions, where: str) -> list[Case]:
    """The cases of ``where`` with what the options need: an independent Q1 for every pair.

    Raises ``InputError`` if the protocol asks parts and no case has any, or if no case has the wording that an option
    asks for.
    """
    from ...evaluation.protocols.base import about

    says = about(str(options.protocol))
    if says.asks_parts and cases and not any(c.parts for c in cases):
        why = next((f" ({c.meta['problem']})" for c in cases if c.meta.get("problem")), "")
        raise InputError(
            f"{where}: none of its {len(cases)} cases has parts{why}, so there is nothing to compose; have "
            "a teacher make them (`composcope build scaffolds BENCHMARK --teacher MODEL --out DIR`), or write the "
            "decomposition into a case file (field 'parts', see docs/formats.md)"
        )
    if options.asking.reversed and not any("reversed" in c.meta for c in cases):
        raise InputError("--reversed: no case has a wording with reversed steps; add the field meta.reversed")
    for option, change in says.prepares.items():
        cases = change(cases, options.seed) if getattr(options.asking, option) else cases
    return list(cases)


def check_asks(plan: AskPlan, engine: Engine, tokenizer: Any) -> None:
    """Check that everything can be asked, before the run's folder is made.

    Raises ``InputError`` for cases that the protocol cannot ask and for examples that fill the model's context,
    ``ModelError`` for a chat template that cannot put the asks.
    """
    asks = [ask for case in plan.cases for ask in plan.protocol.asks(case, {})]
    check_room(asks, plan.options.asking.few_shot, tokenizer, engine.context)
    # Try one ask of each kind, so that a template that fails on it fails now.
    engine.prompt_ids(list({(ask.prompting, ask.thinking): ask for ask in asks}.values()))


ROOM = 32
"""Tokens that a prompt with worked examples has to leave for the answer."""


def check_room(asks: Sequence[Ask], few_shot: str | None, tokenizer: Any, context: int | None) -> None:
    """Refuse worked examples that do not fit the model's context, before anything is asked.

    Raises ``InputError`` with the longest prompt's length. Skipped if only a server has the tokenizer.
    """
    if few_shot is None or tokenizer is None or context is None:
        return
    longest, ask = max(zip(prompt_lengths(tokenizer, asks), asks, strict=True), key=lambda pair: pair[0])
    if longest + min(ROOM, ask.max_tokens) > context:
        fewer = f"--few-shot {int(few_shot) - 1}" if few_shot.isdecimal() else "a file with fewer of them"
        fix = "leave it out" if fewer == "--few-shot 0" else f"give fewer examples ({fewer}), or leave them out"
        raise InputError(
            f"--few-shot {few_shot}: with its examples the prompt of role {ask.role!r}, case {ask.case!r}, has "
            f"{longest} tokens, but the model has a context of {context} (max_position_embeddings): {fix}"
        )


def prompt_lengths(tokenizer: Any, asks: Sequence[Ask]) -> list[int]:
    """Token count of each prompt as the model receives it, in the order of the asks."""
    from ...evaluation.engines.base import think
    from ...evaluation.engines.text import chat_ids

    name = str(getattr(tokenizer, "name_or_path", "") or "the model")
    lengths: list[int] = []
    rest = iter(asks)
    while block := list(islice(rest, 512)):
        by_ask: dict[int, int] = {}
        for prompting, thinking in dict.fromkeys((a.prompting, a.thinking) for a in block):
            some = [a for a in block if (a.prompting, a.thinking) == (prompting, thinking)]
            prompts = [a.prompt for a in some]
            if prompting == "raw":
                fed = tokenizer(prompts).input_ids
            else:
                fed = chat_ids(tokenizer, prompts, name, **({} if thinking is None else think(thinking)))
            by_ask |= zip(map(id, some), map(len, fed), strict=True)
        lengths += [by_ask[id(a)] for a in block]
    return lengths


SHARD_FILE = "shard.json"
"""File in a shard's run folder that says which part of which benchmark it holds."""


def shard_positions(cases: Sequence[Case], shard: Shard) -> list[int]:
    """Positions of a shard's cases: every n-th case in the order of ids, listed in the order of the benchmark.

    Shards differ by at most one case. No two shards share a case, and together they hold every case.
    """
    by_id = sorted(range(len(cases)), key=lambda i: cases[i].id)
    return sorted(by_id[shard.index - 1 :: shard.of])


def shard_record(benchmark: LoadedBenchmark, shard: Shard, limit: int | None) -> dict[str, Any]:
    """What merging needs to know: which part this is, of which cases, and the positions of its cases.

    Raises ``InputError`` for more shards than cases.
    """
    n = len(benchmark.cases)
    if shard.of > n:
        raise InputError(f"--shard {shard}: {benchmark.name} has {n} cases; use fewer shards")
    where = shard_positions(benchmark.cases, shard)
    return {"index": shard.index, "of": shard.of, "n_cases": n, "limit": limit, "positions": where}
