"""Who answers in place of this process: the options for a server by URL, or for a vLLM server of our own."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

import typer

from ..errors import InputError
from .addresses import address as address  # known here to those who hold the options
from .addresses import check_url

ENGINES = ("transformers", "openai", "vllm", "ray")
_DEFAULT_CONCURRENCY = {"openai": 8, "vllm": 64}


@dataclass(frozen=True)
class Serving:
    """The options of engines; each field is one. Holds no secret: keys stay in the environment."""

    engine: Annotated[
        str,
        typer.Option(help="Who answers: transformers (here), openai (a server), vllm (started here) or ray (workers)."),
    ] = "transformers"
    base_url: Annotated[
        str | None, typer.Option(help="openai: http://HOST:PORT/v1; or give --model MODEL@http://HOST:PORT/v1.")
    ] = None
    api_key_env: Annotated[
        str | None,
        typer.Option(
            help="Environment variable with the server's key; HOST=VARIABLE for others (--judge), with commas."
        ),
    ] = None
    signed_as: Annotated[
        str | None, typer.Option(help="openai: other names of the same model that the server signs with, with commas.")
    ] = None
    concurrency: Annotated[int | None, typer.Option(min=1, help="Requests in flight: 8 for openai, 64 for vllm.")] = (
        None
    )
    vllm_python: Annotated[
        str | None, typer.Option(help="Interpreter of the environment that holds vLLM; this one by default.")
    ] = None
    vllm_args: Annotated[str, typer.Option(help='Further vLLM arguments: "--tensor-parallel-size 2".')] = ""
    vllm_timeout: Annotated[float, typer.Option(min=1, help="Seconds that vLLM may take to start.")] = 1800.0
    probe_model: Annotated[
        str | None, typer.Option(help="The served model's weights on this machine, for the probes: a folder or hub id.")
    ] = None
    workers: Annotated[
        int | None, typer.Option(min=1, help="ray: how many workers, each with the model; one per GPU by default.")
    ] = None
    gpus_per_worker: Annotated[
        float | None,
        typer.Option(min=0, help="ray: GPUs of each worker, 0.5 for two on one; 1 by default if there are any."),
    ] = None
    ray_address: Annotated[
        str | None, typer.Option(help="ray: a cluster that is running (HOST:PORT or auto); started here by default.")
    ] = None

    def __post_init__(self) -> None:
        if self.engine not in ENGINES:
            raise InputError(f"--engine {self.engine}: use {', '.join(ENGINES)}")
        if self.concurrency is not None and self.concurrency < 1:
            raise InputError(f"--concurrency {self.concurrency}: give a whole number of at least 1")
        if self.workers is not None and self.workers < 1:
            raise InputError(f"--workers {self.workers}: give a whole number of at least 1")
        if self.gpus_per_worker is not None and self.gpus_per_worker < 0:
            raise InputError(f"--gpus-per-worker {self.gpus_per_worker:g}: give 0 or more")
        if self.base_url is not None:
            check_url(self.base_url, "--base-url")
        for flag, value, engine in (
            ("--base-url", self.base_url, "openai"),
            ("--vllm-python", self.vllm_python, "vllm"),
            ("--vllm-args", self.vllm_args, "vllm"),
            ("--workers", self.workers, "ray"),
            ("--gpus-per-worker", self.gpus_per_worker, "ray"),
            ("--ray-address", self.ray_address, "ray"),
        ):
            if value and self.engine != engine:
                raise InputError(
                    f"{flag} is for --engine {engine}, and the engine is {self.engine}; leave one of them out"
                )

    @property
    def requests(self) -> int:
        """Requests in flight."""
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
        """Other names of the model that its server may sign with."""
        return tuple(name.strip() for name in (self.signed_as or "").split(",") if name.strip())


def probing_engine(
    before: Mapping[str, Any], ray: Mapping[str, Any], engine: str | None, probe_model: str | None
) -> dict[str, Any]:
    """Engine options for probing a run that was evaluated with the options ``before``; ``ray``: those of workers."""
    asked = {k: v for k, v in ray.items() if v is not None}
    out = dict(before)
    if engine == "transformers" or (engine is None and asked and before.get("engine") != "ray"):
        out |= {"engine": "transformers", **dict.fromkeys(ray)}
    if engine not in (None, "transformers", "ray"):
        raise InputError(f"--engine {engine}: probes run with transformers (here) or ray (workers)")
    if engine == "ray":
        out |= {"engine": "ray", "base_url": None, "vllm_python": None, "vllm_args": ""}
    return {**out, **asked, **({} if probe_model is None else {"probe_model": probe_model})}
