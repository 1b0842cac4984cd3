"""The models of a run: the one under study, and the engines of teachers, judges and solvers.

The model under study is loaded once: the engine that answers and the hooks that read it share its weights. If its
answers come from a server, its weights are loaded in this process only for the probes. With our own vLLM server the
order is: ask everything, stop the server (which frees its memory), load the weights, probe. The probes run on the token
ids that the server fed and generated, never on text that was tokenized again.
"""

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from ...errors import InputError
from ...evaluation.asks import Ask, Response
from ...evaluation.engines.addresses import address, key_for
from ...evaluation.engines.base import BaseEngine, Engine
from ...files import at_home
from ...terminal import to_stderr
from ..config import SPEC, Config, Serving
from .resolve import ModelSource, resolve_model


@dataclass(frozen=True)
class Loading:
    """Which model answers, where it is, and how it is loaded.

    load_target(Loading("organism:control", dtype="bfloat16"))
    """

    model: str
    """The model's name, without its server."""
    url: str | None = None
    """The server that has it; None: the model is loaded here or by our own server or workers."""
    serving: Serving = field(default_factory=Serving)
    prompting: str | None = None
    batch_size: int | None = None
    dtype: str | None = None
    device: str | None = None
    probed: bool = True
    """Whether probes will read the model, for which a served one needs its weights here."""

    @property
    def engine(self) -> str:
        """Who answers; a model that is named with its server is answered by it."""
        named = self.serving.engine
        return "openai" if named == "transformers" and self.url is not None else named

    @property
    def is_served(self) -> bool:
        """Whether the answers come from a server."""
        return self.engine in ("openai", "vllm")


def loading_of(config: Config) -> Loading:
    """A run's model, with its name and its server told apart."""
    model, url = config.served or (config.model, config.serving.base_url)
    return Loading(
        model, url, config.serving, config.prompting, config.batch_size, config.dtype, config.device,
        probed=bool(config.probes),
    )  # fmt: skip


def opened_here(config: Config, model: str | None, run: str | Path, device: str | None = None) -> Loading:
    """Where the weights of a run's model are, whoever answered: they are loaded in this process.

    Raises ``InputError`` for a run that another's server answered, without the place of its weights.
    """
    before = loading_of(config)
    given = model or before.serving.probe_model
    if given is None and before.engine == "openai":
        raise InputError(f"{run}: {SERVED}; give them with --model FOLDER")
    return replace(before, model=given or before.model, url=None, serving=Serving(), device=device or before.device)


SERVED = "a server answered, and its weights are needed here"


def sources(loading: Loading, say: Callable[[str], None]) -> tuple[ModelSource, ModelSource | None]:
    """The model that answers, and its weights on this machine (None: only its server has them).

    Workers answer with ``--probe-model`` if it is given, because they load one model for both.
    """
    own, served = loading.serving.probe_model, loading.engine == "openai"
    if loading.engine == "ray" and own is not None:
        answering = resolve_model(own, say)
        return answering, answering
    # A server's name for a model is not a place.
    answering = ModelSource(loading.model, loading.model, False) if served else resolve_model(loading.model, say)
    if loading.is_served and own is not None:
        return answering, resolve_model(own, say)
    return answering, None if served else answering


@dataclass(frozen=True)
class Target:
    """A loaded model, with its engine for answers and its hooks for probes."""

    source: ModelSource
    model: Any
    tokenizer: Any
    engine: Any
    """``evaluation.engines.local.LocalEngine``"""
    prompting: str
    """``chat`` or ``raw``"""

    @property
    def label(self) -> str:
        """A short name for tables and figures that means the same on another machine."""
        return label(self.source.name, self.source.is_folder)

    def open_model(self) -> Any:
        """The same weights, opened for reading and editing. Raises ``ModelError`` for an unknown architecture."""
        from ...hooks.model import load_model

        return load_model(self.model, self.tokenizer)

    @property
    def who(self) -> str:
        """Hash of the weights; for a model that only a server has, its name and revision."""
        identity = self.engine.identity
        return identity.get("weights") or f"{identity['model']} ({identity.get('revision', 'unstated')})"

    def numerics(self) -> Mapping[str, Any]:
        """The settings that affect the last digits."""
        from ...hooks.numerics import numerics

        return numerics(self.model)

    def record(self) -> Mapping[str, Any]:
        """Additional manifest entries when all is done: none for a model in this process."""
        return {}

    def close(self) -> None:
        """Release what outlives an evaluation: nothing for a model in this process."""

    def facts(self) -> Mapping[str, Any]:
        """The manifest's facts about the model."""
        config = self.model.config
        return {
            "name": self.source.name,
            "architecture": type(self.model).__name__,
            "parameters": sum(p.numel() for p in self.model.parameters()),
            "layers": getattr(config.get_text_config(), "num_hidden_layers", None),
            "revision": getattr(config, "_commit_hash", None),
            "prompting": self.prompting,
            **self.engine.identity,
        }


def label(name: str, here: bool = False) -> str:
    """``organism:control`` as it is, a folder by its last part, a hub id as it is; ``here``: a folder answers."""
    like_an_id = name.count("/") == 1 and not name.startswith((".", "/", "~"))
    if name.startswith("organism:") or (like_an_id and not (here and at_home(name).exists())):
        return name
    return name.rstrip("/").rsplit("/", 1)[-1]


def load_local(loading: Loading, say: Callable[[str], None]) -> Target:
    """Load a model and its tokenizer from a folder, the cache or the hub into this process.

    Raises ``InputError`` or ``ModelError`` for names, folders and weights that cannot be used.
    """
    from ...evaluation.engines.local import LocalEngine
    from ...model_loading import load

    source = resolve_model(loading.model, say)
    model, tokenizer = load(source.location, dtype=loading.dtype, device=loading.device, say=say)
    set_padding(tokenizer, source.location, say)
    model.requires_grad_(False)
    engine = LocalEngine(model, tokenizer, batch_size=loading.batch_size, folder=source.weights_folder)
    return Target(source, model, tokenizer, engine, choose_prompting(loading.prompting, tokenizer))


def as_answered(target: Target, weights: str | None) -> Target:
    """The target by the identity that a run has of it: ``weights`` is the hash in the run's manifest.

    A model that was given in memory is known by its values, because they need not be those of the files that it came
    from. If they are those of ``target``, opened from its files later, it is the model that answered.
    """
    if weights is None or isinstance(target, ServedTarget) or weights == target.who:
        return target
    engine = type(target.engine)(target.model, target.tokenizer, batch_size=target.engine.batch_size)
    return replace(target, engine=engine) if engine.identity.get("weights") == weights else target


def set_padding(tokenizer: Any, location: str, say: Callable[[str], None]) -> None:
    """Give a tokenizer without a pad token one of its own tokens, and report it.

    Padding is masked, so any token of the vocabulary gives the same answers.
    """
    if tokenizer.pad_token_id is None:
        named = (tokenizer.eos_token, tokenizer.unk_token, tokenizer.bos_token)
        tokenizer.pad_token = next((t for t in named if t), None) or tokenizer.convert_ids_to_tokens(0)
        say(
            f"{location}: the tokenizer names no pad token; batches are padded with {tokenizer.pad_token!r}, which is "
            "masked"
        )


def choose_prompting(wanted: str | None, tokenizer: Any) -> str:
    """The requested prompting; by default ``chat`` if the tokenizer has a chat template, else ``raw``."""
    return wanted or ("chat" if getattr(tokenizer, "chat_template", None) else "raw")


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
        model.requires_grad_(False)
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


def load_from_server(loading: Loading, run: Path, say: Callable[[str], None]) -> ServedTarget:
    """Connect to the server that has the model.

    A run that has already been evaluated is opened without its server, which is then asked only for missing answers.

    Raises ``InputError`` if the server does not support the requested probes, ``ModelError`` if the server cannot be
    used.
    """
    serving, model, url = loading.serving, loading.model, loading.url
    source, weights = sources(loading, say)
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
    engine.say = say
    evaluated = (run / "graded.jsonl").is_file() and loading.prompting is not None
    if not evaluated:
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


def load_own_server(loading: Loading, run: Path, say: Callable[[str], None]) -> ServedTarget:
    """Prepare our own vLLM server, which starts at the first ask and logs into ``run``."""
    from ...evaluation.engines import vllm
    from ...model_loading import load_tokenizer

    serving, (source, weights) = loading.serving, sources(loading, say)
    engine = vllm.serve(
        source.location,
        python=serving.vllm_python or sys.executable,
        log=run / "vllm.log",
        dtype=loading.dtype,
        options=serving.vllm_options,
        concurrency=serving.requests,
        startup_timeout=serving.vllm_timeout,
        say=say,
    )
    tokenizer = load_tokenizer((weights or source).location)
    prompting = choose_prompting(loading.prompting, tokenizer)
    return ServedTarget(source, None, tokenizer, engine, prompting, weights, loading.dtype, loading.device)


def open_role(
    spec: str,
    option: str,
    *,
    batch_size: int | None = None,
    dtype: str | None = None,
    device: str | None = None,
    key_env: str | None = None,
    signed_as: Sequence[str] | None = None,
) -> Engine:
    """The engine for a role; ``config.SPEC`` lists the accepted values. ``option`` names the role's option in errors.

    ``batch_size``, ``dtype`` and ``device`` are those of a model on this machine.
    ``key_env`` is ``--api-key-env``; its entries ``HOST=VARIABLE`` apply here. ``signed_as`` are other names of the
    model; None accepts any name that its server signs with. Local models without a chat template are asked in raw
    prompts. Raises ``InputError`` or ``ModelError`` if the engine cannot be opened.
    """
    loading = Loading(spec, batch_size=batch_size, dtype=dtype, device=device)
    opened = _role_here if address(spec, option) is None else _role_behind_server
    return opened(loading, option, key_env, signed_as)


def open_judge(config: Config) -> Engine | None:
    """The engine that checks a run's answers in words again; None without a judge."""
    named, serving = config.asking.judge, config.serving
    if named is None:
        return None
    return open_role(
        named, "--judge", batch_size=config.batch_size, dtype=config.dtype, device=config.device,
        key_env=serving.api_key_env, signed_as=serving.names,
    )  # fmt: skip


def _role_behind_server(loading: Loading, option: str, key_env: str | None, signed_as: Sequence[str] | None) -> Engine:
    from ...evaluation.engines.http import connect

    model, url = address(loading.model, option) or ("", "")
    return connect(url, model, api_key=key_for(url, key_env), signed_as=signed_as)


def _role_here(loading: Loading, option: str, *_: Any) -> Engine:
    try:
        opened = load_local(loading, to_stderr)
    except InputError as e:
        raise InputError(f"{option} {loading.model}: cannot be opened ({e}); give {SPEC}") from e
    return opened.engine if opened.prompting == "chat" else Raw(opened.engine)


class Raw(BaseEngine):
    """An engine without a chat template: asks written for a chat are put to it as plain text."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine

    @property
    def identity(self) -> dict[str, str]:
        return {**self.engine.identity, "prompting": "raw"}

    @property
    def provenance(self) -> dict[str, Any]:
        return dict(self.engine.provenance)

    def answer(self, asks: Sequence[Ask]) -> Iterator[tuple[Ask, Response]]:
        """Answers like the wrapped engine; every ask is returned as it was given."""
        given = [(ask, replace(ask, prompting="raw")) for ask in asks]
        back = {raw: ask for ask, raw in given}
        for raw, response in self.engine.answer([raw for _, raw in given]):
            yield back[raw], response
