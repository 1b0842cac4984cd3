"""A target whose answers come from a server. Its weights are loaded in this process only for the probes.

With our own vLLM server the order is: ask everything, stop the server (which frees its memory), load the weights,
probe. The probes run on the token ids that the server fed and generated, never on text that was tokenized again.
"""

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...errors import InputError
from ...evaluation.engines.addresses import key_for
from .resolve import ModelSource
from .target import Loading, Target, choose_prompting


@dataclass(frozen=True)
class ServedTarget(Target):
    """A served model. ``model`` is None; ``tokenizer`` is None if only the server has it."""

    weights: ModelSource | None = None
    """The place of the weights on this machine, for the probes."""
    dtype: str | None = None
    device: str | None = None

    def open_model(self) -> Any:
        """Stop the server if it is ours, then load the weights for the probes."""
        if self.weights is None:
            raise InputError(f"--model {self.source.name}: probes need its weights here; give --probe-model FOLDER")
        self.close()
        from ...hooks.model import load_model
        from ...model_loading import load

        model, tokenizer = load(self.weights.location, dtype=self.dtype, device=self.device)
        for parameter in model.parameters():
            parameter.requires_grad_(False)
        return load_model(model, tokenizer)

    def facts(self) -> Mapping[str, Any]:
        """The manifest's facts about the model; architecture and size are known only with its weights."""
        known = {"probe_model": self.weights.name} if self.weights is not None else {}
        return {"name": self.source.name, "prompting": self.prompting, **known, **self.engine.identity}

    def numerics(self) -> Mapping[str, Any]:
        """The server's own numerics, as far as it reports them."""
        return {k: v for k, v in self.engine.provenance.items() if k in ("dtype", "engine", "vllm", "torch", "server")}

    def close(self) -> None:
        """Stop the server if it is ours. Closing twice is harmless."""
        self.engine.close()


def load_served(
    loading: Loading, source: ModelSource, weights: ModelSource | None, run: Path, say: Callable[[str], None]
) -> ServedTarget:
    """Connect to a server, or prepare our own server, which starts at the first ask and logs into ``run``.

    A run that has already been evaluated is opened without its server, which is then asked only for missing answers.

    Raises ``InputError`` if the server does not support the requested probes, ``ModelError`` if the server cannot be
    used.
    """
    if loading.serving.engine == "vllm":
        return _vllm(loading, source, weights, run / "vllm.log", say)
    lazy = (run / "graded.jsonl").is_file() and loading.prompting is not None
    return _openai(loading, source, weights, lazy, say)


def _openai(
    loading: Loading, source: ModelSource, weights: ModelSource | None, lazy: bool, say: Callable[[str], None]
) -> ServedTarget:
    serving, model, url = loading.serving, loading.model, loading.url
    if url is None:
        raise InputError("--engine openai: the server is missing; give --base-url http://HOST:PORT/v1")
    if loading.probed and weights is None:
        raise InputError(
            f"--model {model}: is served, and probes need its weights on this machine; give "
            "--probe-model FOLDER, or evaluate only (composcope evaluate, or --probes none)"
        )
    from ...evaluation.engines.http import HttpEngine
    from ...model_loading import load_tokenizer

    key = key_for(url, serving.api_key_env, own=True)
    engine = HttpEngine(
        url, model, api_key=key, concurrency=serving.requests, check_first=True, signed_as=serving.names
    )
    if not lazy:
        engine.check()
    if engine.answered_as is not None:
        say(f"{engine.name}: the server reports the model {engine.answered_as!r}, taken for another name of this one")
    if loading.probed and engine.capabilities.token_ids is False:
        raise InputError(
            f"{engine.name}: the server sends no token ids, which probes need; use vLLM (--engine vllm, or a "
            "server that honors return_token_ids), --engine transformers, or --probes none"
        )
    tokenizer = None if weights is None else load_tokenizer(weights.location)
    raw_only = engine.capabilities.chat is False
    prompting = loading.prompting or ("raw" if raw_only else "chat")
    return ServedTarget(source, None, tokenizer, engine, prompting, weights, loading.dtype, loading.device)


def _vllm(
    loading: Loading, source: ModelSource, weights: ModelSource | None, log: Path, say: Callable[[str], None]
) -> ServedTarget:
    serving = loading.serving
    from ...evaluation.engines import vllm
    from ...model_loading import load_tokenizer

    engine = vllm.serve(
        source.location,
        python=serving.vllm_python or sys.executable,
        log=log,
        dtype=loading.dtype,
        options=serving.vllm_options,
        concurrency=serving.requests,
        startup_timeout=serving.vllm_timeout,
        say=say,
    )
    tokenizer = load_tokenizer((weights or source).location)
    prompting = choose_prompting(loading.prompting, tokenizer)
    return ServedTarget(source, None, tokenizer, engine, prompting, weights, loading.dtype, loading.device)
