"""Names on the command line -> models and benchmarks: shipped organisms, local folders, hub ids, case files."""

from __future__ import annotations

import json
import os
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from .. import model_files
from ..errors import InputError, ModelError
from ..evaluation.benchmarks.catalog import READERS
from ..evaluation.benchmarks.load import load
from ..evaluation.cases import Case, case_to_dict, check_cases
from ..evaluation.protocols.asking import default_format, recommended, recommended_format
from .run.provenance import text_hash

DOSES = ("none", "control", "low", "twin")
ORGANISM_BENCHMARKS = {
    "temporal": ("double-gate", 60),
    "mixed": ("compositionality-gap", 400),
    "pairs": ("reasoning-gap", 200),
    "ladders": ("scaffolding", 200),
}
"""Protocol and cases per family x depth."""


@dataclass(frozen=True)
class ModelSource:
    """Where a model comes from."""

    name: str
    """As the user wrote it."""
    location: str
    """A folder, or a hub id."""
    is_folder: bool


@dataclass(frozen=True)
class Benchmark:
    """Cases with the protocol that asks them unless the user says otherwise."""

    name: str
    cases: tuple[Case, ...]
    protocol: str
    format: str | None
    """Prompt format unless the user says otherwise; None: the protocol's own."""
    sha256: str
    """Hash of the cases before any limit."""
    own: bool = False
    """True for a file of the user's own cases, and for questions that no paper of ours asks in a way of its own."""

    def format_for(self, protocol: str) -> str | None:
        """The prompt format in which a protocol asks these cases unless told; None: the protocol's own."""
        return self.format or (default_format(self.cases, protocol) if self.own else None)


def resolve_model(name: str, say: Callable[[str], None] | None = None) -> ModelSource:
    """Find a model by ``organism:DOSE``, folder, GGUF file or hub id, without loading it.

    A GGUF file is dequantized on first use; ``say`` hears so. Raises ``InputError`` for an unknown name and
    ``ModelError`` for a folder or file that holds no model.
    """
    if name.startswith("organism:"):
        return _organism(name)
    path = Path(name).expanduser()
    if path.exists() or path.suffix.lower() == ".gguf":
        folder = Path(model_files.location(name, say))
        _check_tokenizer(folder)
        return ModelSource(name, str(folder), True)
    if name.startswith((".", "/", "~")) or name.count("/") != 1:
        raise InputError(f"--model {name}: no such folder; give a model folder, a hub id (owner/name) or organism:DOSE")
    if offline():
        found = _cached(name)
        if found is None:
            raise ModelError(
                f"--model {name}: no such folder, and HF_HUB_OFFLINE is set while the hub's cache does not hold it"
            )
        return ModelSource(name, str(found), True)
    return ModelSource(name, name, False)


def offline() -> bool:
    return os.environ.get("HF_HUB_OFFLINE", "").lower() in ("1", "true", "yes", "on")


def weights_folder(source: ModelSource) -> Path | None:
    """The folder with the files that a model was loaded from; None where the hub's cache holds no weights there.

    Known by its files, a model is the same online and offline, in any dtype, quantized and offloaded.
    """
    folder = Path(source.location) if source.is_folder else _cached(source.location)
    return folder if folder is not None and any(folder.glob("*.safetensors")) else None


def _cached(hub_id: str) -> Path | None:
    from huggingface_hub import try_to_load_from_cache

    found = try_to_load_from_cache(hub_id, "config.json")
    return Path(found).parent if isinstance(found, str) else None


def _organism(name: str) -> ModelSource:
    dose = name.removeprefix("organism:")
    if dose not in DOSES:
        raise InputError(f"--model {name}: no such organism; use one of {', '.join('organism:' + d for d in DOSES)}")
    from .organism import weights

    folder = Path(weights.path(dose))
    if not folder.is_dir():
        raise ModelError(
            f"--model {name}: its weights are not at {folder}; train them with `composcope organism train`"
        )
    model_files.check_folder(folder)
    _check_tokenizer(folder)
    return ModelSource(name, str(folder), True)


def _check_tokenizer(folder: Path) -> None:
    if not any(
        (folder / f).is_file() for f in ("tokenizer.json", "tokenizer_config.json", "tokenizer.model", "vocab.json")
    ):
        raise ModelError(f"{folder}: no tokenizer (tokenizer.json); save it there with tokenizer.save_pretrained")


def load_benchmark(name: str, *, seed: int = 0, limit: int | None = None) -> Benchmark:
    """Load a benchmark: ``world``, ``organism:mixed``, ..., a case file, or ``reader:file`` (see ``load``).

    ``limit`` keeps that many cases per family x depth, the first ones in the benchmark's order; an organism's
    benchmark is drawn from ``seed``, as many cases as the limit says.
    Raises ``InputError`` naming file, line and field for what cannot be used.
    """
    if name.startswith("organism:"):
        return _organism_benchmark(name, seed, limit)
    found = load(name)
    kept, format = tuple(limit_cases(found, limit)), recommended_format(found)
    reader = READERS.get(name.partition(":")[0])
    own = Path(name).expanduser().is_file() or (reader is not None and reader.answer_alone)
    return Benchmark(name, kept, default_protocol(found), format, hash_cases(found), own)


def _organism_benchmark(name: str, seed: int, limit: int | None) -> Benchmark:
    world = name.removeprefix("organism:")
    if world not in ORGANISM_BENCHMARKS:
        known = ", ".join("organism:" + w for w in ORGANISM_BENCHMARKS)
        raise InputError(f"--benchmark {name}: no such benchmark; use {known} or the path of a case file")
    from .organism import benchmarks

    protocol, default = ORGANISM_BENCHMARKS[world]
    draw = benchmarks.BENCHMARKS[world]
    found = check_cases(draw(limit or default, seed), name)
    # Drawing more cases only appends to each family x depth, so a few of them identify the benchmark at any size.
    return Benchmark(name, tuple(found), protocol, "plain", hash_cases(draw(8, seed)))


def default_protocol(cases: Sequence[Case]) -> str:
    """What the cases say (``meta["protocol"]``), else ``double-gate`` where the parts carry paraphrases (its first gate
    needs them), else ``compositionality-gap``.
    """
    if (own := recommended(cases, "protocol")) is not None:
        return own
    return "double-gate" if any(p.paraphrases for c in cases for p in c.parts) else "compositionality-gap"


def hash_cases(cases: Sequence[Case]) -> str:
    """sha256 of the cases' content, the same for a file with other white space."""
    return text_hash(json.dumps(case_to_dict(c), sort_keys=True, ensure_ascii=False) for c in cases)


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
