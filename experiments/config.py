"""The configuration of a run: ``config.yaml`` stores this model, and command-line flags are made from its fields.

    config = Config(model="organism:control", benchmark="organism:mixed", asking={"few_shot": "2"})
    config.replace(limit=20)

An invalid value from any source raises one ``InputError`` that names the option, the value and the fix: as a flag,
or as the argument that it is in Python.
"""

from __future__ import annotations

import shlex
from collections.abc import Collection, Iterable, Mapping
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, ValidationInfo, field_validator, model_validator

from ..errors import InputError, did_you_mean, from_python
from ..evaluation.engines.addresses import address, check_url
from ..evaluation.shards import Shard
from ..files import safe_name
from ..registry import PLUGIN_FIRST
from ..terminal import words

__all__ = ["Asking", "Config", "Probing", "Serving"]

SPEC = "MODEL@http://HOST:PORT/v1, a model folder, a hub id or organism:DOSE"
"""The values of options that name a model in another role: teacher, judge, solver."""
_DEFAULT_CONCURRENCY = {"openai": 8, "vllm": 64}


class Section(BaseModel):
    """Options that belong together. Every field is a flag of the same name; its description is the flag's help."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    @model_validator(mode="wrap")
    @classmethod
    def _explained(cls, values: Any, handler: Any, info: ValidationInfo) -> Self:
        if info.context == RECORDED:
            known = isinstance(values, Mapping)
            return handler({k: v for k, v in values.items() if k in cls.model_fields} if known else values)
        values = cls.in_sections(values) if isinstance(values, Mapping) else values
        check_options(values if isinstance(values, Mapping) else (), cls.known())
        with _named(info):
            if not isinstance(values, Mapping | cls):
                raise InputError(f"{flag(cls.__name__.lower())} {values}: give its options by name")
            try:
                return handler(values)
            except ValidationError as e:
                raise InputError(_explain(cls, e)) from None

    @classmethod
    def known(cls) -> Collection[str]:
        return cls.model_fields

    @classmethod
    def in_sections(cls, values: Mapping[str, Any]) -> Mapping[str, Any]:
        return values

    def replace(self, **changes: Any) -> Self:
        """A copy with other values, checked like any other; a value that stays may be known to a plugin only."""
        stays = {name: value for name, value in dict(self).items() if name not in changes}
        return type(self).model_validate({**stays, **changes}, context={"stays": frozenset(stays)})

    def given(self) -> dict[str, Any]:
        """The values that were given, without the defaults."""
        return {name: getattr(self, name) for name in self.model_fields_set}

    @classmethod
    def read(cls, raw: Any, **changes: Any) -> Self:
        """Read a run's config.yaml and replace some values; keys of other versions are left out."""
        try:
            found = cls.model_validate(raw or {}, context=RECORDED)
        except ValidationError as e:
            raise InputError(_explain(cls, e)) from None
        return found.replace(**changes) if changes else found


RECORDED = {"recorded": True}
"""Validation context for values from a run: the caller names the file in errors, and plugins need not be loaded."""


FROM_FLAGS = {"flags": True}
"""Validation context for values that a command was given: errors name them as flags."""


def _named(info: ValidationInfo) -> AbstractContextManager[None]:
    """Inside, errors name options as arguments, unless the values came from a command or a file."""
    return from_python() if info.context is None else nullcontext()


def flag(name: str, value: object = None) -> str:
    """``probe_cases`` -> ``--probe-cases``; a switch that is off (``value`` is False) -> ``--no-...``."""
    return f"--{'no-' if value is False else ''}{name.replace('_', '-')}"


def check_options(given: Iterable[str], known: Collection[str]) -> None:
    """Raises ``InputError`` that names each option that is not known."""
    wrong = [name for name in given if name not in known]
    if "plugin" in wrong:
        raise InputError("plugin: no such option; call composcope.load_plugin(FILE) first")
    if wrong:
        raise InputError("; ".join(f"{name}: no such option" + did_you_mean(str(name), known) for name in wrong))


def _explain(section: type[Section], found: ValidationError) -> str:
    """One line for the first error of pydantic: the flag, the value and the fix."""
    error: Any = found.errors(include_url=False)[0]
    name, kind, value = str(error["loc"][-1]), error["type"], error["input"]
    if name not in section.model_fields:
        return f"{flag(name)} {value}: {error['msg']}"
    field = section.model_fields[name]
    if kind == "missing":
        return f"Missing option '{flag(name)}': give {field.description}"
    least = next((rule.ge for rule in field.metadata if hasattr(rule, "ge")), None)
    if kind == "literal_error":
        fix = f"use {error['ctx']['expected'].replace(chr(39), '')}"
    elif kind == "finite_number":
        fix = "give a finite number"
    elif least is not None:
        fix = f"give a {'whole ' if kind.startswith('int') else ''}number of at least {least}"
    else:
        fix = error["msg"]
    return f"{flag(name)} {value}: {fix}"


def _option(default: Any, description: str, **rules: Any) -> Any:
    """A field that is a flag: its default, its help, and what values it takes."""
    return Field(default=default, description=description, **rules)


class Asking(Section):
    """How a protocol asks and counts, except its prompt format; by default, each protocol decides."""

    few_shot: Annotated[str | None, Field(coerce_numbers_to_str=True)] = _option(
        None, "Worked examples: a number of built-in ones, or a file of kind, question, answer (default: none)."
    )
    preamble: Literal["yes", "no", "both"] = _option(
        "yes", "Ask with the instruction (yes), without it (no), or everything in both ways (both)."
    )
    also: str | None = _option(None, "Ask the whole again: comma-separated cot, self-ask, thinking, knowledge, ...")
    thinking: bool | None = _option(None, "Switch the chat template's thinking on or off.")
    thinking_tokens: int = _option(4096, "Token budget of answers with thinking.", ge=1)
    cot_tokens: int | None = _option(None, "Token budget of the formats cot and self-ask.", ge=1)
    answer_tokens: int | None = _option(None, "One token budget for all answers that have no other one.", ge=1)
    temperature: float = _option(0.0, "Sampling temperature (uses --seed); 0 is greedy.", ge=0, allow_inf_nan=False)
    reversed: bool = _option(False, "Also ask wholes with their steps in reverse order (meta.reversed).")
    extra_context: bool = _option(True, "Also ask parts with the whole's numbers added.")
    code: bool = _option(False, "Also ask for a program that solves the pair, and run it in the sandbox.")
    co_presented: bool = _option(True, "Also ask Q2 beside an independent Q1.")
    ask_all: bool = _option(False, "Also ask the scaffolds of solved wholes.")
    placeholders: bool = _option(True, "Ask scaffolds with blanked values as a control for leaks.")
    compat: Literal["agentcoma", "stad", "collapse"] | None = _option(
        None, "Grade and count as in a paper, including its defects."
    )
    judge: str | None = _option(
        None, "A model that checks answers in words: MODEL@http://HOST:PORT/v1, a model folder or a hub id."
    )
    exemplars: tuple[dict[str, Any], ...] = ()
    """The worked examples from a file or the benchmark; kept with the run so that it can be scored again on its own."""
    may_think: bool = False
    """Whether the model may think unasked before a short answer (``evaluating.ask_plan``); kept, as it sets budgets."""

    def changed(self) -> dict[str, Any]:
        """Values that differ from the defaults and change what is asked; they are part of a run's identity."""
        values = self.model_dump(exclude_defaults=True, exclude={"compat", "judge"})
        return {k: v for k, v in values.items() if k != "few_shot" or not self.exemplars}


class Serving(Section):
    """Which server or workers answer instead of this process. Holds no secrets: keys stay in the environment."""

    engine: Literal["transformers", "openai", "vllm", "ray"] = _option(
        "transformers", "Who answers: transformers (here), openai (a server), vllm (started here) or ray (workers)."
    )
    base_url: str | None = _option(None, "openai: http://HOST:PORT/v1 (or give --model MODEL@http://HOST:PORT/v1).")
    api_key_env: str | None = _option(
        None, "Environment variable with the server's key; for others (--judge) HOST=VARIABLE, comma-separated."
    )
    signed_as: str | None = _option(
        None, "openai: other names that the server reports for this model, comma-separated."
    )
    concurrency: int | None = _option(None, "Requests at the same time (default: 8 for openai, 64 for vllm).", ge=1)
    vllm_python: str | None = _option(
        None, "vllm: Python interpreter of the environment with vLLM (default: this one)."
    )
    vllm_args: str = _option("", 'vllm: further arguments, such as "--tensor-parallel-size 2".')
    vllm_timeout: float = _option(1800.0, "vllm: maximum seconds until it has started.", ge=1)
    probe_model: str | None = _option(
        None, "The served model's weights on this machine, for the probes: a folder or hub id."
    )
    workers: int | None = _option(None, "ray: number of workers, each with the model (default: one per GPU).", ge=1)
    gpus_per_worker: float | None = _option(
        None, "ray: GPUs per worker; 0.5 puts two on one GPU (default: 1 if there are GPUs).", ge=0
    )
    ray_address: str | None = _option(None, "ray: a running cluster, HOST:PORT or auto (default: start one here).")

    @model_validator(mode="after")
    def _belong_to_the_engine(self, info: ValidationInfo) -> Self:
        with _named(info):
            if self.base_url is not None:
                check_url(self.base_url, "--base-url")
            of_one = {**_OF_SERVERS, **dict.fromkeys(RAY, "ray")}
            for name, engine in () if info.context == RECORDED else of_one.items():  # runs made before stay readable
                if getattr(self, name) != _usual(name) and self.engine != engine:
                    raise InputError(
                        f"{flag(name)} is for --engine {engine}, and the engine is {self.engine}; leave one of them out"
                    )
        return self

    @property
    def requests(self) -> int:
        """The number of requests at the same time."""
        return self.concurrency or _DEFAULT_CONCURRENCY.get(self.engine, 8)

    @property
    def vllm_options(self) -> list[str]:
        """``vllm_args`` as a list of arguments."""
        try:
            return shlex.split(self.vllm_args)
        except ValueError as e:
            raise InputError(f"--vllm-args {self.vllm_args!r}: cannot be read ({e}); quote as in a shell") from e

    @property
    def names(self) -> tuple[str, ...]:
        """Other names that the server may report for the model."""
        return tuple(words(self.signed_as))

    def for_probing(self, given: Mapping[str, Any]) -> Serving:
        """The serving options for probing a run that was answered with these; ``given`` are the flags of ``probe``."""
        engine = given.get("engine")
        if engine not in (None, "transformers", "ray"):
            raise InputError(f"--engine {engine}: probes run with transformers (here) or ray (workers)")
        otherwise = engine is not None or any(n in given for n in RAY)  # no server is asked then
        before = dict(self) | ({name: _usual(name) for name in _OF_SERVERS} if otherwise else {})
        before |= dict.fromkeys(RAY) if engine == "transformers" else {}
        return Serving.model_validate({**before, **given}, context=FROM_FLAGS)


RAY = ("workers", "gpus_per_worker", "ray_address")
"""Options of Ray workers."""
_OF_SERVERS = {"base_url": "openai", "vllm_python": "vllm", "vllm_args": "vllm", "vllm_timeout": "vllm"}
"""Options that only one kind of server has, and its engine."""


def _usual(name: str) -> Any:
    """The default of an option of ``Serving``."""
    return Serving.model_fields[name].default


class Probing(Section):
    """Which probes run, on how many cases, and where they read."""

    probes: tuple[str, ...] = Field(
        default_factory=lambda: _known_probes(),
        description="Comma-separated neurons, lookback, patching, trajectory, min-k, readout, faithfulness; or all "
        "(except the last two), or none.",
    )
    probe_cases: int = _option(
        32, "Matched pairs of a failure and a success to probe, spread over families, depths and operations.", ge=1
    )
    case_details: int = _option(
        4, "Cases per group whose tokens, maps and sweeps are kept for the report; 0 for none.", ge=0
    )
    position: Literal["answer-slot", "prompt-end"] = _option(
        "answer-slot", "Position that neurons, patching and trajectory read."
    )
    rows_dtype: Literal["float32"] | None = _option(
        None, "Compute neurons and patching in float32 if the weights are in half precision."
    )

    @field_validator("probes", mode="before")
    @classmethod
    def _are_known(cls, value: Any, info: ValidationInfo) -> Any:
        if info.context == RECORDED or "probes" in (info.context or {}).get("stays", ()):
            return value
        from ..probes.catalog import PROBES, standard

        known = tuple(PROBES)
        if isinstance(value, str):
            value = {"none": (), "all": standard()}.get(value, words(value))
        if not isinstance(value, Collection):
            raise InputError(f"--probes {value}: give names of probes, all or none")
        names = map(str, value)
        value = tuple(dict.fromkeys(n if PROBES.find(n) is not None else n.replace("_", "-") for n in names))
        unknown = [p for p in value if p not in known and PROBES.find(p) is None]
        if unknown:
            raise InputError(
                f"--probes {unknown[0]}: no such probe; use {', '.join(known)} (or none for none of them)"
                + (did_you_mean(unknown[0], known) or f"; {PLUGIN_FIRST}")
            )
        return value


def _known_probes() -> tuple[str, ...]:
    from ..probes.catalog import standard

    return standard()


class Config(Probing):
    """All options of `composcope investigate`: the content of ``config.yaml``."""

    model: str = Field(description="organism:none|control|low|twin, a model folder, a hub id, or MODEL@URL.")
    benchmark: str = Field(
        description="world, organism:temporal, organism:mixed, organism:pairs, READER:FILE or a case file."
    )
    protocol: str | None = _option(None, "How to ask and count (default: the benchmark's own protocol).")
    format: str | None = _option(None, "Prompt format: plain, xml, xml-answer, cot, ...")
    prompting: Literal["chat", "raw"] | None = _option(
        None, "Form of the prompts (default: chat if the tokenizer has a template, else raw)."
    )
    limit: int | None = _option(None, "Only the first N cases of each family x depth, in file order.", ge=1)
    max_asks: int | None = _option(None, "Stop after this many new asks; the same command continues.", ge=1)
    batch_size: int | None = _option(None, "Asks per batch (default: chosen from the free memory).", ge=1)
    seed: int = _option(0, "Seed of every random choice.", ge=0)
    dtype: Literal["float32", "bfloat16", "float16"] | None = _option(
        None, "Precision of the weights (default: float32 on a CPU, the checkpoint's own on a GPU)."
    )
    device: str | None = _option(None, "cpu, cuda, cuda:1, ..., auto for all GPUs (default: a GPU if there is one).")
    shard: str | None = _option(None, "i/n: run only shard i of n, for job arrays; see merge.")
    reuse: bool = _option(False, "Also reuse stored answers made with another version, dtype or device.")
    asking: Asking = Field(default_factory=Asking)
    serving: Serving = Field(default_factory=Serving)

    @classmethod
    def known(cls) -> Collection[str]:
        """The names of all options, those of asking and serving among them."""
        return {**cls.model_fields, **Asking.model_fields, **Serving.model_fields}

    @classmethod
    def in_sections(cls, values: Mapping[str, Any]) -> Mapping[str, Any]:
        """``answer_tokens=64`` is written as ``asking={"answer_tokens": 64}``; either form may be given."""
        found = {k: v for k, v in values.items() if k not in (*Asking.model_fields, *Serving.model_fields)}
        for section, fields in (("asking", Asking.model_fields), ("serving", Serving.model_fields)):
            own, mine = found.pop(section, None), {k: v for k, v in values.items() if k in fields}
            if own is not None or mine:
                own = {} if own is None else own  # a file may name a section and give nothing in it
                found[section] = {**dict(own), **mine} if isinstance(own, Mapping | Section) and mine else own
        return found

    @field_validator("shard")
    @classmethod
    def _is_a_shard(cls, value: str | None) -> str | None:
        if value is not None:
            Shard.parse(value)
        return value

    @model_validator(mode="after")
    def _names_one_server(self, info: ValidationInfo) -> Self:
        with _named(info):
            self._check_server(info)
        return self

    def _check_server(self, info: ValidationInfo) -> None:
        if self.served is not None and (self.serving.engine == "vllm" or self.serving.base_url):
            raise InputError(f"--model {self.model}: names a server already; leave out --base-url and --engine vllm")
        no_server = self.served is None and self.serving.engine in ("transformers", "ray")
        if no_server and info.context in (None, FROM_FLAGS):
            keys = ["signed_as", "api_key_env"] * (not self.asking.judge)
            for name in (n for n in ("concurrency", "probe_model", *keys) if getattr(self.serving, n) != _usual(n)):
                raise InputError(f"{flag(name)} is for a server, and --model {self.model} names none; leave it out")
        if self.served is not None and self.serving.engine == "ray" and self.serving.probe_model is None:
            raise InputError(
                f"--model {self.model}: names a server, and the workers of --engine ray load weights; leave out "
                "--engine ray, or say with --probe-model where the weights are"
            )

    @property
    def served(self) -> tuple[str, str] | None:
        """The model and its server, where ``model`` names both."""
        return address(self.model)

    @property
    def parsed_shard(self) -> Shard | None:
        """The shard to run; None: everything."""
        return None if self.shard is None else Shard.parse(self.shard)

    def as_config(self) -> dict[str, Any]:
        """Plain values for config.yaml; a local model or benchmark path is kept as given."""
        values = self.model_dump(mode="json")
        return {name: values[name] for name in sorted(values, key=lambda n: n in Probing.model_fields)}

    def default_folder(self) -> Path:
        """``runs/MODEL--BENCHMARK--PROTOCOL`` from the last parts of the names, with ``--shard-i-of-n`` for a shard."""
        words = (self.served[0] if self.served else self.model, self.benchmark, self.protocol)
        shard = [] if self.shard is None else ["shard-" + self.shard.replace("/", "-of-")]
        return Path("runs") / "--".join([*(_slug(word) for word in words if word), *shard])


def _slug(name: str) -> str:
    last = Path(name).stem if name.endswith((".jsonl", ".json")) else name.rstrip("/").rsplit("/", 1)[-1]
    return safe_name(last, "run")
