"""Trainings of all doses: the shipped one, and those that ``composcope organism train --all`` writes.

A series is one training: a shared base and the four doses trained from it, with one seed. Statements over trainings
need several of them that share one world and are different trainings; both are checked here, without torch.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...errors import InputError
from ...files import at_home, file_sha256
from . import documents
from .weights import DOSES
from .weights import path as shipped_path


@dataclass(frozen=True, eq=False)
class Series:
    """One training: its doses and their records."""

    seed: int
    """Seed of weights and training documents. It decides which compositions a dose has seen."""
    folders: Mapping[str, Path]
    """Model folder of each dose, lowest dose first."""
    recipe: Mapping[str, Any]
    shipped: bool = False
    notes: tuple[str, ...] = ()
    """What could not be checked."""

    def model(self, dose: str) -> str:
        """The ``--model`` value for one of its doses."""
        return f"organism:{dose}" if self.shipped else str(self.folders[dose])

    def documents_seen(self) -> int:
        """How many documents of the last stage, counted from the first, the training has certainly seen."""
        from .train import CHUNK

        # Batches of a chunk are drawn together and shuffled, so what was seen of an unfinished chunk is unknown.
        stage = self.recipe["dose"]
        return int(stage["steps"]) // CHUNK * CHUNK * int(stage["batch"])


def shipped(doses: Sequence[str] = tuple(DOSES)) -> Series:
    """The training whose weights are part of the package."""
    folders = {dose: shipped_path(dose) for dose in doses}
    about = _record(next(iter(folders.values())), str(next(iter(folders))), "composcope")
    return Series(about["seed"], folders, about["recipe"], shipped=True)


def read(folder: str | Path, doses: Sequence[str] = tuple(DOSES)) -> list[Series]:
    """The trainings in a folder that ``composcope organism train --all --out`` wrote: one for each ``seed-N`` in it.

    A ``seed-N`` folder itself is one training. Raises ``InputError`` naming folder, field and fix if the folder has no
    trainings, lacks a dose, or belongs to another world.
    """
    path = at_home(folder)
    where = f"--series {folder}"
    if not path.is_dir():
        raise InputError(f"{where}: no such folder; give what `composcope organism train --all --out DIR` wrote")
    homes = sorted((p for p in path.glob("seed-*") if p.is_dir()), key=lambda p: (len(p.name), p.name))
    if not homes and any(_model(path, dose) for dose in DOSES):
        homes = [path]
    if not homes:
        raise InputError(
            f"{where}: no trained organisms (seed-N/DOSE/model); "
            f"run: composcope organism train --all --seed N --out {folder}"
        )
    return [_series(home, doses, where) for home in homes]


def check(series: Sequence[Series]) -> None:
    """Raises ``InputError`` if two series share a seed or a dose's weights, since they are then the same training."""
    seeds: dict[int, Series] = {}
    weights: dict[str, Path] = {}
    for one in series:
        if one.seed in seeds:
            other = seeds[one.seed]
            fix = "leave the shipped one out with --only-series" if other.shipped else "give each training once"
            raise InputError(f"--series: {_place(one)} and {_place(other)} both have seed {one.seed}; {fix}, "
                             f"or train with another --seed")  # fmt: skip
        seeds[one.seed] = one
        for folder in one.folders.values():
            digest = file_sha256(folder / "model.safetensors")
            if digest in weights:
                raise InputError(
                    f"--series: {folder} and {weights[digest]} hold the same weights; give each training once"
                )
            weights[digest] = folder


def different_recipes(series: Sequence[Series]) -> list[str]:
    """One line for each training whose recipe differs from the first one's, since it does not replicate it."""
    first = _flat(series[0].recipe) if series else {}
    found = []
    for one in series[1:]:
        mine = _flat(one.recipe)
        differ = [f"{k} {mine.get(k)} instead of {first.get(k)}" for k in {**first, **mine}
                  if mine.get(k) != first.get(k)]  # fmt: skip
        if differ:
            found.append(f"Seed {one.seed} was trained with another recipe than seed {series[0].seed}: "
                         f"{', '.join(differ)}.")  # fmt: skip
    return found


def _flat(recipe: Mapping[str, Any], before: str = "") -> dict[str, Any]:
    out: dict[str, Any] = {}
    for name, value in recipe.items():
        out |= _flat(value, f"{before}{name}.") if isinstance(value, Mapping) else {f"{before}{name}": value}
    return out


def _place(series: Series) -> str:
    model = next(iter(series.folders.values()))
    return "the shipped series" if series.shipped else str(model.parents[1] if model.name == "model" else model.parent)


def _model(home: Path, dose: str) -> Path | None:
    """A dose's model folder: ``DOSE/model`` as training writes it, or ``DOSE`` as shipped."""
    return next((p for p in (home / dose / "model", home / dose) if (p / "organism.json").is_file()), None)


def _series(home: Path, doses: Sequence[str], where: str) -> Series:
    found = {dose: _model(home, dose) for dose in doses}
    folders = {dose: p for dose, p in found.items() if p is not None and (p / "model.safetensors").is_file()}
    missing = [dose for dose in doses if dose not in folders]
    if missing:
        number = home.name.removeprefix("seed-")
        run = f"composcope organism train --all --seed {number if number.isdigit() else 'N'} --out {home.parent}"
        raise InputError(f"{where}: {home} lacks {', '.join(missing)} (no {missing[0]}/model); run: {run}")
    records = {dose: _record(p, dose, where) for dose, p in folders.items()}
    for field in ("seed", "recipe", "documents"):
        values = [r.get(field) for r in records.values()]
        odd = next((dose for dose, r in records.items() if r.get(field) != values[0]), None)
        if odd is not None:
            raise InputError(
                f"{where}: {folders[odd]}/organism.json: field '{field}' differs from {doses[0]}'s; a series is one "
                "training of all doses"
            )
    first = records[doses[0]]
    return Series(first["seed"], folders, first["recipe"], notes=_same_world(home, folders, first, where))


def _record(folder: Path, dose: str, where: str) -> dict[str, Any]:
    """The record that training wrote next to a model."""
    file = folder / "organism.json"
    try:
        about = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as e:
        raise InputError(f"{where}: {file} cannot be read ({' '.join(str(e).split())}); train this dose again") from e
    about = about if isinstance(about, dict) else {}
    seed, recipe = about.get("seed"), about.get("recipe")
    if about.get("dose") != dose:
        raise InputError(f"{where}: {file}: field 'dose' is {about.get('dose')!r} in the folder of {dose!r}; "
                         "put every model into its own dose's folder")  # fmt: skip
    if isinstance(seed, bool) or not isinstance(seed, int):
        raise InputError(f"{where}: {file}: field 'seed' is {seed!r}; it decides which compositions were trained on")
    stage = recipe.get("dose") if isinstance(recipe, dict) else None
    if not isinstance(stage, dict) or not all(isinstance(stage.get(k), int) for k in ("steps", "batch")):
        raise InputError(f"{where}: {file}: field 'recipe.dose' lacks steps or batch; train this dose again")
    return about


def _same_world(home: Path, folders: Mapping[str, Path], record: Mapping[str, Any], where: str) -> tuple[str, ...]:
    """Raises ``InputError`` for a training on other facts, words or documents than this version asks about."""
    fix = "train it again with this version of composcope"
    for folder in folders.values():
        if _vocabulary(folder) != _vocabulary(shipped_path(next(iter(DOSES)))):
            raise InputError(f"{where}: {folder}: its tokenizer was made for another version of the world; {fix}")
    recorded = record.get("documents")
    if recorded is None:
        return (f"Seed {record['seed']} ({home}) does not record which documents it was trained on; only its "
                "vocabulary was compared with this version's world.",)  # fmt: skip
    if recorded != documents.FIRST.fingerprint(record["seed"]):
        raise InputError(f"{where}: {home}: trained on another version of the world or of its documents; {fix}")
    return ()


def _vocabulary(folder: Path) -> frozenset[tuple[str, int]]:
    try:
        vocabulary = json.loads((folder / "tokenizer.json").read_text(encoding="utf-8"))["model"]["vocab"]
        return frozenset(vocabulary.items())
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as e:
        raise InputError(f"{folder}/tokenizer.json: cannot be read as a tokenizer ({type(e).__name__})") from e
