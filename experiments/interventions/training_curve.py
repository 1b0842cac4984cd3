"""Checkpoints during a training: accuracy on the parts and the whole, step by step (Compositional GSM, figure 7).

Every checkpoint's adapter is applied to the base, which answers the sub-questions and wholes of the evaluation cases.
Rows are counts, ``{run, recipe, seed, step, metric, k, n}``; step 0 is the base model. Metrics: ``parts`` (each
different sub-question once), ``composition`` (wholes), and the wholes again at depths that were trained on
(``composition, trained depths``) and at depths that were not (``composition, held-out depths``).
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from ...errors import InputError
from ...evaluation.case import Case, case_from_dict
from ...evaluation.cases import hash_cases
from ...files import Row
from ..console.printing import Reporter
from ..evaluating.ask_plan import AskOptions, limit_cases, make_protocol
from ..models.resolve import resolve_model
from ..run import read_json, read_lines, write_json
from .trainers import check_base, kept_steps, read_manifest, with_adapter

FILE = "training_curve.json"


def measure(
    training: str | Path, model: str, *, limit: int | None = None, device: str | None = None,
    reporter: Reporter | None = None,
) -> list[Row]:  # fmt: skip
    """Ask the base and every checkpoint of a training its evaluation cases; the rows are kept in the training's folder.

    ``limit`` takes the first cases of each family x depth. Raises ``InputError`` for a folder without checkpoints, or
    if the adapters belong to another base.
    """
    from ...model_loading import load

    folder = Path(training)
    manifest = read_manifest(folder)
    location = resolve_model(model).location
    check_base(location, manifest, str(folder))
    steps = kept_steps(folder / "checkpoints")
    if not steps:
        raise InputError(f"{folder}/checkpoints: no adapter; train again and keep checkpoints")
    cases = _cases(folder, limit)
    known = read_json(folder / FILE) if (folder / FILE).is_file() else {}
    done = known["rows"] if known.get("sha256") == hash_cases(cases) else []
    if {s for s, _ in steps} | {0} <= {r["step"] for r in done}:
        return done
    base, tokenizer = load(location, dtype=manifest["identity"].get("dtype"), device=device)
    rows = _ask(base, tokenizer, cases, manifest, folder, 0)
    for step, path in steps:
        tuned = with_adapter(base, path)
        rows += _ask(tuned.base_model.model.eval(), tokenizer, cases, manifest, folder, step)
        base = tuned.unload()
        if reporter is not None:
            found = [f"{r['metric']} {r['k']}/{r['n']}" for r in rows if r["step"] == step]
            reporter.say(f"{folder.name}: step {step}: {', '.join(found)}")
    write_json(folder / FILE, {"cases": [c.id for c in cases], "sha256": hash_cases(cases), "rows": rows})
    return rows


def _cases(folder: Path, limit: int | None) -> list[Case]:
    raws = [{k: v for k, v in raw.items() if k != "schema"} for raw in read_lines(folder / "evaluation.jsonl")]
    cases = [case_from_dict(raw, str(folder / "evaluation.jsonl")) for raw in raws]
    # One wording of every part is enough here; the final evaluation applies the gates.
    bare = [replace(c, parts=tuple(replace(p, paraphrases=()) for p in c.parts)) for c in cases]
    return limit_cases(bare, limit)


def _ask(
    model: Any, tokenizer: Any, cases: Sequence[Case], manifest: dict[str, Any], folder: Path, step: int
) -> list[Row]:
    from functools import partial

    from ...evaluation import pipeline
    from ...evaluation.engines.local import LocalEngine
    from ...evaluation.grading import grade
    from ...evaluation.journal import Journal
    from ..config import Asking

    recipe = manifest["recipe"]
    prompting = "chat" if getattr(tokenizer, "chat_template", None) else "raw"
    how = Asking(compat="collapse", thinking=recipe.get("thinking"))
    protocol = make_protocol(AskOptions("double-gate", recipe["format"], prompting, asking=how))
    with Journal(folder / "curve" / f"step-{step}") as journal:
        engine = LocalEngine(model, tokenizer)
        found = pipeline.evaluate(cases, protocol, engine, journal, grade=partial(grade, compat="collapse"))
    about = {
        "run": folder.name,
        "recipe": f"sft-trace ({recipe['solutions']})" if recipe["objective"] == "sft-trace" else recipe["objective"],
        "seed": manifest["identity"]["seed"],
        "step": step,
    }
    return [{**about, **row} for row in counts(found.graded, cases, recipe["depths"])]


def counts(graded: Iterable[Any], cases: Sequence[Case], depths: Sequence[int]) -> list[Row]:
    """``{metric, k, n}`` of one checkpoint's graded asks; those that could not be judged are not among the ``n``."""
    depth = {c.id: c.depth for c in cases}
    parts: dict[Any, bool] = {}
    wholes: list[tuple[int | None, bool]] = []
    for row in (row for row in graded if row.outcome != "invalid"):
        right = row.outcome == "correct"
        if row.role == "whole":
            wholes.append((depth[row.case], right))
        elif row.role.startswith("part:") and row.role.count(":") == 1:
            parts[row.atom or row.ask] = right
    sides = {
        "composition": [ok for _, ok in wholes],
        "composition, trained depths": [ok for d, ok in wholes if d in depths],
        "composition, held-out depths": [ok for d, ok in wholes if d is not None and d not in depths],
    }
    found = {"parts": list(parts.values()), **sides}
    return [{"metric": name, "k": sum(values), "n": len(values)} for name, values in found.items() if values]


def write(rows: Iterable[Row], out: str | Path) -> Path:
    """Write the file that ``composcope plot training-curve`` draws, from one or more trainings."""
    return write_json(Path(out) / FILE, {"rows": list(rows)})
