"""Opens the target that answers: the model in this process, a server that has it, or Ray workers (``--engine ray``)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ...errors import ModelError
from ...evaluation.engines.base import ReplayEngine
from ...evaluation.journal import read_journal
from ...terminal import to_stderr
from ..models.resolve import ModelSource
from ..models.served import load_served
from ..models.target import Loading, Target, load_from, sources
from ..run.reader import read_run
from .engine import FleetModel, RayEngine
from .pool import Pool
from .store import scope


@dataclass(frozen=True)
class RayTarget(Target):
    """A target on Ray workers. ``model`` is None: the weights are on the workers, and the tokenizer is also here."""

    pool: Any = None
    """``Pool``"""
    run: Path = Path()

    def hooks(self) -> FleetModel:
        """The model for the probes; its measurements run on the workers, item by item."""
        return FleetModel(self.pool, self.tokenizer, self.run, scope(self))

    def facts(self) -> Mapping[str, Any]:
        """The manifest's facts about the model, as a worker reported them."""
        return self.pool.about["facts"]

    def numerics(self) -> Mapping[str, Any]:
        """The settings on a worker that affect the last digits."""
        return self.pool.about["numerics"]

    def record(self) -> Mapping[str, Any]:
        """The manifest's entry about the workers."""
        pool = self.pool
        started = [{k: a[k] for k in ("host", "pid", "versions")} for a in pool.abouts]
        about = {"workers": pool.workers, "gpus_per_worker": pool.gpus, "cpus_per_worker": pool.cpus, "lost": pool.lost}
        return {"fleet": {**about, "started": started, "peak_memory": pool.peaks()}}

    def close(self) -> None:
        """Stop the workers. Closing twice is harmless."""
        self.pool.close()


def load_fleet(loading: Loading, source: ModelSource, run: Path, say: Callable[[str], None]) -> RayTarget:
    """Start the workers, each with the model, and open the tokenizer here.

    Raises ``InputError`` without Ray or a cluster, and ``ModelError`` if workers cannot load the model or differ.
    """
    pool = Pool(replace(loading, model=source.name), say)
    try:
        from transformers import AutoTokenizer

        tokenizer = AutoTokenizer.from_pretrained(source.location, trust_remote_code=False)
        if loading.pad_token is not None:
            tokenizer.pad_token = loading.pad_token
        engine = _answered_elsewhere(run, pool) or RayEngine(pool)
        prompting = loading.prompting or pool.about["prompting"]
        return RayTarget(source, None, tokenizer, engine, prompting, pool=pool, run=run)
    except BaseException:
        pool.close()
        raise


def _answered_elsewhere(run: Path, pool: Pool) -> ReplayEngine | None:
    """The engine of a run that a server answered: its answers are only read, and the workers probe its weights.

    Raises ``ModelError`` if the workers have other weights.
    """
    if not (run / "graded.jsonl").is_file():
        return None
    before = read_run(run).manifest.engine
    identity, made = (before.identity, before.provenance) if before else ({}, {})
    if made.get("engine") in (None, "transformers"):
        return None
    here = pool.about["identity"]["weights"]
    if identity.get("weights", here) != here:
        raise ModelError(
            f"{run}: was answered by weights {identity['weights'][:12]}, the workers have {here[:12]}; give the run's "
            "model with --model or --probe-model"
        )
    return ReplayEngine(identity, made, read_journal(run / "journal").failures)


def load_target(loading: Loading, run: Path | None = None, say: Callable[[str], None] | None = None) -> Target:
    """Load a model and its tokenizer from a folder, the cache or the hub, or connect to the server that has it.

    ``run`` is the folder for the log of our own server; ``say`` receives progress messages. Close the target when done.
    Raises ``InputError`` or ``ModelError`` for names, folders, weights and servers that cannot be used.
    """
    run, say = run or Path(), say or to_stderr
    source, weights = sources(loading, say)
    if loading.is_served:
        return load_served(loading, source, weights, run, say)
    if loading.serving.engine == "ray":
        return load_fleet(loading, source, run, say)
    return load_from(source, loading, say)
