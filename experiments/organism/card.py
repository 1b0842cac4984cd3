"""The model card: measures model folders, stores the numbers as JSON and writes them as markdown."""

import json
import shutil
import statistics
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ...errors import InputError
from ...files import file_sha256
from ...model_loading import load
from ...terminal import Bar, no_bar
from . import crossed, documents, errors, measure, world
from .measure import CardRow, by_format
from .weights import ALL, CROSSED, called, percent

CARDS = Path(__file__).parent / "cards"
"""The words of the model cards, around their tables."""


def ask_folder(folder: Path, device: str = "cpu") -> measure.AskModel:
    """A function that asks the model in a folder questions, greedily and in float32."""
    model, tokenizer = load(folder, dtype="float32", device=device)
    said: dict[str, str] = {}

    def ask(questions: Sequence[str]) -> list[str]:
        new = [q for q in dict.fromkeys(questions) if q not in said]
        said.update(zip(new, measure.generate(model, tokenizer, new), strict=True))
        return [said[q] for q in questions]

    return ask


def sections(
    ask: measure.AskModel, n: int = 100, formats: bool = True, workings: bool = False
) -> dict[str, list[CardRow]]:
    """All tables of one model; ``n`` cases per cell of the temporal families and four times as many mixed ones.

    ``workings`` adds the table of exact workings and kinds of errors, which the second series' card has.
    """
    out = {
        "Single facts": measure.atoms(ask),
        "Shallow skills, held-out combinations": measure.shallow(ask, 2 * n),
        "Mixed world": measure.mixed(ask, 4 * n),
        "Temporal world": measure.temporal(ask, n),
    }
    if workings:
        out["Lists and sums without composition, held-out combinations"] = errors.practised(ask, n)
        out["Exact workings, and forms"] = [*errors.mixed(ask, 4 * n), *errors.lists(ask, n)]
    if formats:
        out["Prompt formats"] = by_format(ask, n)
    return out


def measure_folder(folder: Path, n: int = 100, device: str = "cpu") -> list[CardRow]:
    """Every row of every table of one model folder."""
    return [row for rows in sections(ask_folder(folder, device), n, workings=True).values() for row in rows]


def print_rows(title: str, rows: Iterable[CardRow]) -> None:
    """Rows as a plain table on stdout."""
    print(title)
    for row in rows:
        print(f"  {row.measure:55s} {_cell(row.to_dict())}")


def composition_counts(name: str, seed: int, total: int) -> dict[str, int]:
    """How many documents of the last stage are mixed and deep compositions, counted in the document stream itself."""
    stage, dose = crossed.seeded("dose") if name in CROSSED else "dose", ALL[name]
    kinds = Counter(documents.composition_kind(seed, stage, i, dose) for i in range(total))
    return {"documents": total, "mixed": kinds["mixed"], "deep": kinds["deep"]}


def model_entry(folder: Path, n: int, formats: bool = True) -> dict[str, Any]:
    """The card's entry for one model: how it was trained, its weights' hash and every row measured."""
    info = json.loads((folder / "organism.json").read_text(encoding="utf-8"))
    stage = info["recipe"]["dose"]
    weights = folder / "model.safetensors"
    tables = sections(ask_folder(folder), n, formats, workings=info["dose"] in CROSSED)
    return {
        **info,
        "bytes": weights.stat().st_size,
        "sha256": file_sha256(weights),
        "compositions": composition_counts(info["dose"], info["seed"], stage["steps"] * stage["batch"]),
        "tables": {name: [row.to_dict() for row in rows] for name, rows in tables.items()},
    }


def _spread_rows(entry: Mapping[str, Any]) -> dict[str, Any]:
    rows = [row for table in entry["tables"].values() for row in table if row["measure"] in SPREAD]
    return {"sha256": entry["sha256"], "tables": {"Spread": rows}}


def build_card(
    trained: Mapping[int, Path], doses: Sequence[str], shipped: int, n: int = 100, progress: Bar = no_bar
) -> dict[str, Any]:
    """Measure every dose of every seed; ``trained`` maps a seed to its folder of ``DOSE/model`` folders.

    The ``shipped`` seed is measured in full, the others only for the spread. A seed may lack doses.
    """
    models: dict[str, Any] = {}
    seeds: dict[str, Any] = {str(seed): {} for seed in trained}
    there = [(seed, dose) for seed, home in trained.items() for dose in doses
             if (home / dose / "model" / "organism.json").is_file()]  # fmt: skip
    with progress("measuring models", len(there)) as advance:
        for seed, dose in there:
            entry = model_entry(trained[seed] / dose / "model", n, formats=seed == shipped)
            seeds[str(seed)][dose] = _spread_rows(entry)
            if seed == shipped:
                models[dose] = entry
            advance(1)
    folder = trained[shipped] / doses[0] / "model"
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    return {
        "cases_per_cell": n,
        "parameters": _parameters(folder),
        "vocabulary": config["vocab_size"],
        "kind": next(iter(config.get("architectures", ())), ""),
        "models": models,
        "seeds": seeds,
    }


def _parameters(folder: Path) -> int:
    from transformers import AutoModelForCausalLM

    return AutoModelForCausalLM.from_pretrained(folder).num_parameters()


def ship(
    trained: Mapping[int, Path], doses: Sequence[str], shipped: int, out: Path, n: int = 100, progress: Bar = no_bar
) -> None:
    """Copy the models of one seed to ``out`` and write the card of all seeds next to them.

    Raises ``InputError`` for the folder of a training, since the models replace what ``out`` has under their names.
    """
    if out.resolve() in {home.resolve() for home in trained.values()}:
        raise InputError(f"--out {out}: is the folder of a training, which would be lost; give another folder")
    built = build_card(trained, doses, shipped, n, progress)
    for dose in doses:
        shutil.rmtree(out / dose, ignore_errors=True)
        shutil.copytree(trained[shipped] / dose / "model", out / dose)
    write_card(built, out)


def _cell(row: Mapping[str, Any]) -> str:
    if not row["n"]:
        return "none to count"
    return f"{100 * row['value']:.1f} [{100 * row['low']:.1f}, {100 * row['high']:.1f}] ({row['k']}/{row['n']})"


def table(name: str, models: Mapping[str, Mapping[str, Any]]) -> str:
    """One table of the card: a row per measure, a column per dose, and a column for chance."""
    first = next(iter(models.values()))["tables"][name]
    lines = [f"| {name} | chance | " + " | ".join(map(called, models)) + " |", "|---|---|" + "---|" * len(models)]
    for i, row in enumerate(first):
        cells = " | ".join(_cell(m["tables"][name][i]) for m in models.values())
        chance = "" if row["chance"] is None else f"{100 * row['chance']:.1f}"
        lines.append(f"| {row['measure']} | {chance} | {cells} |")
    return "\n".join(lines)


SPREAD = (
    "commonsense only",
    "math only",
    "both parts",
    "composition",
    *(f"residual failure, depth bin {d}" for d in (2, 4, 6, 8)),
    *(f"residual failure, {f}, depth 8" for f in ("rank", "successor", "interval")),
    "residual failure, interval, depth bin 8",
)
"""The measures whose spread over seeds the card shows."""


def _value(model: Mapping[str, Any], name: str) -> float | None:
    rows = (row for rows in model["tables"].values() for row in rows)
    return next((row["value"] for row in rows if row["measure"] == name), None)


def spread(seeds: Mapping[str, Mapping[str, Mapping[str, Any]]], doses: Sequence[str]) -> str:
    """Percent per seed and dose, with mean and range over seeds."""
    lines = ["| percent | dose | " + " | ".join(f"seed {s}" for s in seeds) + " | mean | range |"]
    lines.append("|---|---|" + "---|" * (len(seeds) + 2))
    for name in SPREAD:
        for dose in doses:
            values = [_value(models[dose], name) if dose in models else None for models in seeds.values()]
            known = [v for v in values if v is not None]
            if known:
                cells = " | ".join("" if v is None else f"{100 * v:.1f}" for v in values)
                low, high = 100 * min(known), 100 * max(known)
                mean = 100 * statistics.mean(known)
                lines.append(f"| {name} | {called(dose)} | {cells} | {mean:.1f} | {low:.1f} to {high:.1f} |")
    return "\n".join(lines)


def weak_formats(models: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Formats in which a topic has less than nine tenths of its plain accuracy, if that is at least 50 %."""
    out = []
    for dose, model in models.items():
        values = {row["measure"]: row["value"] for row in model["tables"]["Prompt formats"]}
        for name, value in values.items():
            topic = name.split(", ")[0]
            plain = values.get(f"{topic}, plain")
            if plain is not None and plain >= 0.5 and value < 0.9 * plain:
                out.append(f"{called(dose)}: {name} ({100 * value:.0f} against {100 * plain:.0f} plain)")
    return out


def _dose_line(dose: str, model: Mapping[str, Any]) -> str:
    seen = model["compositions"]
    size = f"{model['bytes'] / 1e6:.2f} MB"
    return f"| `{dose}` | {percent(dose)} % | {seen['mixed']} | {seen['deep']} | {seen['documents']} | {size} |"


def markdown(card: Mapping[str, Any]) -> str:
    """The text of the model card."""
    models, seeds = card["models"], card["seeds"]
    first = next(iter(models.values()))
    recipe = first["recipe"]
    doses = "\n".join(_dose_line(d, m) for d, m in models.items())
    weak = "\n".join(f"* {line}" for line in weak_formats(models)) or "* none"
    tables = "\n\n".join(table(name, models) for name in first["tables"])
    mix = ", ".join(f"{name} {base:g} / {last:g} %" for name, (base, last) in documents.FORMAT_WEIGHTS.items())
    text, series = ("second", crossed.SECOND) if first["dose"] in CROSSED else ("first", documents.FIRST)
    architecture = recipe.get("architecture", "llama")
    words = CARDS / f"{text if architecture == 'llama' else 'shaped'}.md"
    return words.read_text(encoding="utf-8").format(
        card=card, first=first, recipe=recipe, architecture=architecture, kind=card.get("kind", ""),
        events=len(world.world().events), things=len(world.world().things), doses=doses, formats=mix,
        skills=", ".join(f"{name} {base:g} / {last:g}" for name, (_, base, last) in series.skills.items()),
        tables=tables, weak=weak, spread=spread(seeds, list(models)), seeds=", ".join(seeds),
    )  # fmt: skip


def write_card(card: Mapping[str, Any], folder: Path) -> None:
    """Write ``card.json`` and ``CARD.md`` into a folder."""
    (folder / "card.json").write_text(json.dumps(card, indent=1) + "\n", encoding="utf-8")
    (folder / "CARD.md").write_text(markdown(card), encoding="utf-8")
