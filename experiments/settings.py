"""Every option of a run in one frozen object: what config.yaml holds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any, Literal

from ..errors import InputError, did_you_mean
from . import asking, plugins
from .asking import Asking
from .serving import Serving, address

PROBES = plugins.BUILT_IN_PROBES
DTYPES = ("float32", "bfloat16", "float16")


@dataclass(frozen=True)
class Settings:
    """What `composcope investigate` was told."""

    model: str
    """``organism:DOSE``, a model folder, a hub id, or ``MODEL@URL`` of a server."""
    benchmark: str
    """``world``, ``organism:temporal``, ``organism:mixed`` or a case file."""
    protocol: str | None = None
    """None: the benchmark's own."""
    format: str | None = None
    """Prompt format (``prompts.FORMATS``); None: the protocol's own."""
    prompting: str | None = None
    """``chat`` or ``raw``; None: chat where the tokenizer has a template, else raw."""
    limit: int | None = None
    """Cases per family x depth, the first ones in the benchmark's order; None: all."""
    max_asks: int | None = None
    """Stop after this many new asks; the same command continues."""
    batch_size: int | None = None
    """None: chosen by the engine."""
    seed: int = 0
    dtype: str | None = None
    """None: float32 on the CPU, the checkpoint's own on a GPU."""
    device: str | None = None
    """None: cuda when there is one, else cpu; ``auto``: spread over all GPUs there are."""
    probes: tuple[str, ...] = PROBES
    probe_cases: int = 32
    """Cases per group (failure, success) that the probes run on, the first matched ones."""
    shard: str | None = None
    """``i/n``: only the i-th of n parts of the cases; None: all."""
    reuse: bool = False
    """Continue a run whose journal was written with other versions, dtype or device."""
    pad_token: str | None = None
    """Fills batches where the tokenizer names no pad token; None: the tokenizer's own."""
    asking: Asking = field(default_factory=Asking)
    """How the protocol asks and counts."""
    serving: Serving = field(default_factory=Serving)
    """Who answers, where it is not this process."""
    case_details: int = 4
    """Cases per group whose own tokens, maps and sweeps are kept for the report; 0: none."""
    rows_dtype: str | None = None
    """``float32``: neurons and patching compute in float32 on weights in half precision; None: in the weights' own."""
    position: Literal["answer-slot", "prompt-end"] = "answer-slot"
    """Where neurons, patching and trajectory read."""

    def __post_init__(self) -> None:
        for name in ("limit", "max_asks", "batch_size", "probe_cases"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise InputError(f"--{name.replace('_', '-')} {value}: give a whole number of at least 1")
        if self.shard is not None:
            from .distributed import shards

            shards.parse(self.shard)
        if self.case_details < 0:
            raise InputError(f"--case-details {self.case_details}: give 0 (none) or more")
        unknown = [p for p in self.probes if p not in PROBES and plugins.probe(p) is None]
        if unknown:
            known = (*PROBES, *plugins.probe_names())
            raise InputError(
                f"--probes {unknown[0]}: no such probe; use {', '.join(known)} (or none for none of them)"
                + did_you_mean(unknown[0], known)
            )
        if self.prompting not in (None, "chat", "raw"):
            raise InputError(f"--prompting {self.prompting}: use chat or raw")
        if self.rows_dtype not in (None, "float32"):
            raise InputError(f"--rows-dtype {self.rows_dtype}: use float32, or leave it out")
        if self.position not in ("answer-slot", "prompt-end"):
            raise InputError(f"--position {self.position}: use answer-slot or prompt-end")
        if self.dtype is not None and self.dtype not in DTYPES:
            raise InputError(f"--dtype {self.dtype}: use one of {', '.join(DTYPES)}")
        if address(self.model) is not None and (self.serving.engine == "vllm" or self.serving.base_url):
            raise InputError(f"--model {self.model}: names a server already; leave out --base-url and --engine vllm")

    def as_config(self) -> dict[str, Any]:
        """Plain values for config.yaml; a local model or benchmark path is kept as given."""
        return {**asdict(self), "probes": list(self.probes), "asking": self.asking.as_config()}


def parse_probes(text: str) -> tuple[str, ...]:
    """``neurons,lookback`` -> names; ``all``, those of ``--plugin`` files too, and ``none`` as said.

    ``min_k`` is accepted for ``min-k``.
    """
    if text == "none":
        return ()
    if text == "all":
        return (*PROBES, *plugins.probe_names())
    return tuple(dict.fromkeys(p.strip().replace("_", "-") for p in text.split(",") if p.strip()))


def from_config(config: Mapping[str, Any], **changes: Any) -> Settings:
    """Settings from a run's config.yaml, with some fields replaced."""
    known = {f.name for f in fields(Settings)}
    values = {**{k: v for k, v in config.items() if k in known}, **changes}
    values["probes"] = tuple(values.get("probes", PROBES))
    if not isinstance(values.get("asking"), Asking):
        values["asking"] = asking.from_config(values.get("asking"))
    if not isinstance(values.get("serving"), Serving):
        given = {f.name for f in fields(Serving)}
        values["serving"] = Serving(**{k: v for k, v in (values.get("serving") or {}).items() if k in given})
    return Settings(**values)


def default_out(settings: Settings) -> Path:
    """``runs/MODEL--BENCHMARK--PROTOCOL`` made of the last parts of the names, ``--shard-i-of-n`` after them."""
    served = address(settings.model)
    words = (served[0] if served else settings.model, settings.benchmark, settings.protocol)
    part = [] if settings.shard is None else ["shard-" + settings.shard.replace("/", "-of-")]
    return Path("runs") / "--".join([*(_slug(word) for word in words if word), *part])


def _slug(name: str) -> str:
    last = Path(name).stem if name.endswith((".jsonl", ".json")) else name.rstrip("/").rsplit("/", 1)[-1]
    return "".join(c if c.isalnum() or c in "._-" else "-" for c in last) or "run"
