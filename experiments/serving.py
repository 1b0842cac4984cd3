"""Who answers in place of this process: the options for a server by URL, or for a vLLM server of our own."""

from __future__ import annotations

import os
import shlex
from dataclasses import dataclass
from typing import Annotated
from urllib.parse import urlsplit

import typer

from ..errors import InputError

ENGINES = ("transformers", "openai", "vllm")
_DEFAULT_CONCURRENCY = {"openai": 8, "vllm": 64}


@dataclass(frozen=True)
class Serving:
    """The options of engines; each field is one. Holds no secret: keys stay in the environment."""

    engine: Annotated[
        str,
        typer.Option(help="Who answers: transformers (here), openai (any compatible server) or vllm (started here)."),
    ] = "transformers"
    base_url: Annotated[
        str | None, typer.Option(help="openai: http://HOST:PORT/v1; or give --model MODEL@http://HOST:PORT/v1.")
    ] = None
    api_key_env: Annotated[
        str | None, typer.Option(help="openai: environment variable that holds the key; OPENAI_API_KEY by default.")
    ] = None
    concurrency: Annotated[int | None, typer.Option(help="Requests in flight: 8 for openai, 64 for vllm.")] = None
    vllm_python: Annotated[
        str | None, typer.Option(help="Interpreter of the environment that holds vLLM; this one by default.")
    ] = None
    vllm_args: Annotated[str, typer.Option(help='Further vLLM arguments: "--tensor-parallel-size 2".')] = ""
    vllm_timeout: Annotated[float, typer.Option(help="Seconds that vLLM may take to start.")] = 1800.0
    probe_model: Annotated[
        str | None, typer.Option(help="The served model's weights on this machine, for the probes: a folder or hub id.")
    ] = None

    def __post_init__(self) -> None:
        if self.engine not in ENGINES:
            raise InputError(f"--engine {self.engine}: use {', '.join(ENGINES)}")
        if self.concurrency is not None and self.concurrency < 1:
            raise InputError(f"--concurrency {self.concurrency}: give a whole number of at least 1")
        if self.base_url is not None:
            check_url(self.base_url, "--base-url")
        for flag, value, engine in (
            ("--base-url", self.base_url, "openai"),
            ("--vllm-python", self.vllm_python, "vllm"),
            ("--vllm-args", self.vllm_args, "vllm"),
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

    def api_key(self, url: str) -> str | None:
        """The key for a server, from the environment; None where none is needed.

        A variable that is named is used; ``OPENAI_API_KEY`` only reaches a server that it can be meant for.
        """
        if self.api_key_env is not None:
            if not os.environ.get(self.api_key_env):
                raise InputError(f"--api-key-env {self.api_key_env}: not set in the environment; export it first")
            return os.environ[self.api_key_env]
        return None if is_local(url) else os.environ.get("OPENAI_API_KEY")


def address(model: str) -> tuple[str, str] | None:
    """``MODEL@http://HOST:PORT/v1`` -> (model, URL); None for anything else."""
    name, at, url = model.rpartition("@")
    if not at or urlsplit(url).scheme not in ("http", "https"):
        return None
    check_url(url, "--model")
    if not name:
        raise InputError(f"--model {model}: which model of that server? give MODEL@{url}")
    return name, url


def check_url(url: str, option: str) -> None:
    """Refuse what is no URL of a server, and secrets in it: the URL is kept in the run folder."""
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise InputError(f"{option}: is no URL of a server; give http://HOST:PORT/v1")
    if parts.username or parts.password or parts.query:
        raise InputError(
            f"{option}: holds a user name, a password or a query, which would be kept in the run folder; "
            "put the key into an environment variable and name it with --api-key-env"
        )


def is_local(url: str) -> bool:
    """Whether a URL is this machine: no key of another service belongs there."""
    return urlsplit(url).hostname in ("localhost", "127.0.0.1", "::1", "0.0.0.0")
