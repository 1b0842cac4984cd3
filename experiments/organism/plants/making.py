"""Make a plant, check it, and write it as an ordinary model folder; and the page about the shipped ones."""

import json
import os
import shutil
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from ....errors import InputError, ModelError
from ....files import file_sha256, write_between, write_text
from ....model_loading import load
from ..train import Progress, export
from . import checks, training
from .checks import PlantCheck
from .recipes import CAUSES, Plant

ABOUT = "organism.json"
SEED = 4000
"""Seed of the cases that a plant is checked on."""


def make(
    plant: Plant, folder: Path, n: int = 200, progress: Progress | None = None, say: Callable[[str], None] | None = None
) -> list[PlantCheck]:
    """Train a plant, check it on ``n`` cases and write its folder; the same plant there already is left as it is.

    An interrupted one begins again: it takes minutes. Raises ``InputError`` for a folder that holds something else and
    ``ModelError`` naming the figure where the cause was not learned; then nothing is written.
    """
    if (folder / ABOUT).is_file() and _plant_in(folder) == json.loads(json.dumps(plant.to_dict())):
        if say:
            say(f"{folder}: made before with the same settings; nothing to do")
        return []
    check = partial(checks.check, plant, n=n, seed=SEED)
    return stored(partial(training.make, plant, progress), folder, plant.to_dict(), n, check)


def stored(
    train: Callable[[], tuple[Any, Any]], folder: Path, plant: Mapping[str, Any], n: int,
    check: Callable[[Any, Any], list[PlantCheck]], section: str = "plant",
) -> list[PlantCheck]:  # fmt: skip
    """Train a model and write it and its tokenizer with their checks.

    The checks are counted on the weights as they are stored. What was planted is the ``section`` of ``organism.json``.
    Raises ``InputError`` for a folder that holds something, ``ModelError`` where a check is missed; then nothing is
    left there.
    """
    if folder.exists() and any(folder.iterdir()):
        raise InputError(f"--out {folder}: holds something else; give an empty or new folder")
    if folder.resolve() == Path.cwd():  # it is put in place whole
        raise InputError(f"--out {folder}: is the folder that this runs in; give one inside it")
    made = train()
    begun = folder.with_name(f".{folder.name}.{os.getpid()}.tmp")
    shutil.rmtree(begun, ignore_errors=True)
    try:
        export(*made, begun, {})
        findings = check(*load(begun, dtype="float32", device="cpu"))
        failed = [f for f in findings if not f.passed]
        if failed:
            name = plant.get("name", plant.get("kind"))
            raise ModelError(f"{name}: the cause was not planted: {'; '.join(map(line, failed))}; "
                             "give more --steps, another --seed or another --block")  # fmt: skip
        about = {section: plant, "cases": n, "checks": [f.to_dict() for f in findings]}
        write_text(begun / ABOUT, json.dumps(about, indent=1) + "\n")
        folder.parent.mkdir(parents=True, exist_ok=True)
        begun.replace(folder)
    finally:
        shutil.rmtree(begun, ignore_errors=True)
    return findings


def line(finding: PlantCheck) -> str:
    """One count in words: ``wholes right 3 of 200 (at most 20 %)``."""
    bound = "" if finding.bound is None else f" ({'at most' if finding.at_most else 'at least'} {finding.bound:.0%})"
    return f"{finding.row.measure} {finding.row.k} of {finding.row.n}{bound}"


def _plant_in(folder: Path) -> Any:
    try:
        return json.loads((folder / ABOUT).read_text(encoding="utf-8")).get("plant")
    except (ValueError, AttributeError):
        return None


def about(folder: Path) -> dict[str, Any]:
    """What is recorded of a plant. Raises ``InputError`` for a folder that holds none."""
    if not (folder / ABOUT).is_file() or not isinstance(_plant_in(folder), dict):
        raise InputError(f"{folder}: holds no planted organism ({ABOUT} with a field 'plant')")
    return json.loads((folder / ABOUT).read_text(encoding="utf-8"))


def card(folders: Mapping[str, Path]) -> str:
    """The tables of docs/planted-causes.md."""
    rows = ["| model | planted | in block | trained for | sha256 |", "|---|---|---|---|---|"]
    counts = ["| model | counted on held-out cases | right | bound |", "|---|---|---|---|"]
    for name, folder in folders.items():
        found = about(folder)
        grafts = found["plant"]["grafts"]
        when = ["" if g["when"] == "all" else f", {g['when']}" for g in grafts]
        planted = "; ".join(f"{g['cause']} ({g['variant']}{w})" for g, w in zip(grafts, when, strict=True))
        blocks = "; ".join(str(g["block"]) for g in grafts)
        digest = file_sha256(folder / "model.safetensors")[:12]
        rows.append(
            f"| `organism:plant-{name}` | {planted} | {blocks} | {found['plant']['steps']} steps | `{digest}` |"
        )
        for check in found["checks"]:
            value = "–" if check["value"] is None else f"{100 * check['value']:.1f} %"
            bound = "" if check["bound"] is None else f"{'≤' if check['at_most'] else '≥'} {100 * check['bound']:.0f} %"
            counts.append(f"| `{name}` | {check['measure']} | {value} ({check['k']}/{check['n']}) | {bound} |")
    meanings = [f"- **{cause}**: {known.meaning}." for cause, known in CAUSES.items()]
    parts = ["### The causes", *meanings], ["### The models", *rows], ["### The figures", *counts]
    return "\n\n".join("\n".join([p[0], "", *p[1:]]) for p in parts)


def write_card(page: Path, folders: Mapping[str, Path]) -> None:
    """Put the tables into a page, between its two marks."""
    write_between(page, *MARKS, f"\n{card(folders)}\n")


MARKS = ("<!-- figures -->", "<!-- end of figures -->")
