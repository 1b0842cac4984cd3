"""``composcope intervene`` and ``composcope study interventions``."""

from dataclasses import fields
from pathlib import Path
from typing import Annotated

import typer
from typer import Argument, Option

from ...errors import InputError, require_extra
from ...terminal import whole_numbers
from ..console import exits
from ..console.printing import Reporter, show
from ..interventions.recipes import INFERENCE, OBJECTIVES, PRESETS, SOLUTIONS, AdapterRecipe, check_options, resolve
from .flags import AsJson, Command, Device, Silent, example, go_offline, under

HEADINGS = {
    "Training data": ("train", "evaluation", "depths", "solutions", "format", "thinking", "prompts"),
    "Adapter": ("rank", "alpha", "dtype"),
    "Optimization": ("epochs", "learning_rate", "examples_per_step", "micro_batch", "max_tokens", "max_steps",
                     "save_every"),
    "GRPO": ("beta", "generations", "prompts_per_step"),
    "Learning curve": ("curve", "limit"),
    "Steering and patching": ("layers", "cases"),
}  # fmt: skip


def register(app: typer.Typer) -> None:
    """Add ``intervene`` to the command line."""
    teaching = "intervene --recipe grpo --preset organism-v1 -m organism:control -o runs/grpo"
    app.command(cls=under(HEADINGS), epilog=example(teaching))(intervene)


def register_study(app: typer.Typer) -> None:
    """Add ``interventions`` to the group ``study``."""
    app.command("interventions", cls=Command, epilog=example("study interventions --out runs/interventions"))(study)


def intervene(
    recipe: Annotated[str, Option("--recipe", help=f"One of {', '.join((*OBJECTIVES, *INFERENCE))}.")],
    run: Annotated[Path | None, Argument(help="steering, patching: an evaluated run.")] = None,
    model: Annotated[str | None, Option("--model", "-m", help="organism:DOSE, a model folder or a hub id.")] = None,
    out: Annotated[Path | None, Option("--out", "-o", help="Training folder; the same command continues it.")] = None,
    depths: Annotated[str | None, Option(help="Depths to train on, such as 2,4.")] = None,
    preset: Annotated[str | None, Option(help=f"One of {', '.join(PRESETS)}.")] = None,
    train: Annotated[
        str | None, Option(help="Training cases: organism:temporal (default) or a case file (see --benchmark).")
    ] = None,
    evaluation: Annotated[str | None, Option(help="Evaluation cases (default: those not trained on).")] = None,
    solutions: Annotated[str | None, Option(help=f"sft-trace: {' or '.join(SOLUTIONS)}.")] = None,
    format: Annotated[str | None, Option(help="Prompt format of training and evaluation.")] = None,
    thinking: Annotated[
        bool | None, Option("--thinking/--no-thinking", help="Switch the chat template's thinking on or off.")
    ] = None,
    prompts: Annotated[int | None, Option(min=1, help="Number of whole questions to train on.")] = None,
    epochs: Annotated[int | None, Option(min=1, help="Passes over the training questions.")] = None,
    learning_rate: Annotated[float | None, Option(min=0, help="Peak learning rate.")] = None,
    rank: Annotated[int | None, Option(min=1, help="Rank of the adapter.")] = None,
    alpha: Annotated[int | None, Option(min=1, help="Scale of the adapter.")] = None,
    beta: Annotated[float | None, Option(min=0, help="GRPO: KL coefficient.")] = None,
    generations: Annotated[int | None, Option(min=2, help="GRPO: completions per prompt.")] = None,
    prompts_per_step: Annotated[int | None, Option(min=1, help="GRPO: prompts per optimizer step.")] = None,
    examples_per_step: Annotated[int | None, Option(min=1, help="SFT: examples per optimizer step.")] = None,
    micro_batch: Annotated[int | None, Option(min=1, help="Sequences in one forward pass.")] = None,
    max_tokens: Annotated[
        int | None, Option(min=1, help="Maximum tokens per sampled answer (steering, patching: per continuation).")
    ] = None,
    max_steps: Annotated[int | None, Option(min=1, help="Stop training after this many steps.")] = None,
    save_every: Annotated[int | None, Option(min=1, help="Steps between checkpoints.")] = None,
    curve: Annotated[bool, Option("--curve", help="Evaluate the checkpoints afterwards.")] = False,
    limit: Annotated[int | None, Option(min=1, help="--curve: cases per family x depth.")] = None,
    layers: Annotated[str | None, Option(help="steering, patching: layers, such as 0,2 (default: all).")] = None,
    cases: Annotated[
        int | None,
        Option(min=1, help="steering, patching: cases in each half (fitted, counted) of each group; default: 32."),
    ] = None,
    seed: Annotated[int, Option(min=0, help="Seed of data, adapter and sampling.")] = 0,
    dtype: Annotated[str | None, Option(help="float32 or bfloat16 (default on a CPU: float32).")] = None,
    device: Device = None,
    json: AsJson = False,
    quiet: Silent = False,
) -> int:
    """Teach a model to compose (LoRA; SFT or GRPO), or steer and patch the failures of a run without training."""
    given = dict(locals())
    check_options(recipe, given)
    if recipe in INFERENCE:
        return _infer(recipe, run, model, cases or 32, layers, max_tokens, seed, device, json, quiet)
    changes = {f.name: given[f.name] for f in fields(AdapterRecipe) if f.name in given and f.name != "depths"}
    made = resolve(recipe, preset, None if depths is None else whole_numbers(depths, "--depths"), **changes)
    if run is not None:
        raise InputError(f"{run}: only steering and patching take a run; for {recipe} give --model and --out")
    if model is None or out is None:
        raise InputError(f"--recipe {recipe}: give --model (the model to train) and --out (the output folder)")
    go_offline(model, data=[train, evaluation])
    from ..interventions import training
    from ..interventions.data import ORGANISM, training_set

    require_extra("intervene", "train", *training.EXTRA)
    from ..interventions.trainers import TrainerOptions

    _one_thread(model, device)
    data = training_set(train or ORGANISM, made, evaluation, seed)
    out.mkdir(parents=True, exist_ok=True)
    reporter = Reporter(out / "log.txt", quiet=quiet)
    with reporter.logging_warnings():
        done = training.train(
            made, model, data, out, TrainerOptions(seed, device, dtype, save_every, max_steps), reporter
        )
        if curve:
            from ..interventions.training_curve import measure

            measure(out, model, limit=limit, device=device, reporter=reporter)
    facts = {"model": str(done.model), "adapter": str(done.adapter), "steps": done.steps, "seconds": done.seconds}
    text = [f"{recipe}: {done.steps} steps in {done.seconds:.0f} s", f"model: {done.model}", f"adapter: {done.adapter}"]
    show({"schema": 1, **facts} if json else text, json)
    return exits.OK


def _infer(
    recipe: str, run: Path | None, model: str | None, cases: int, layers: str | None, max_tokens: int | None,
    seed: int, device: str | None, json: bool, quiet: bool,
) -> int:  # fmt: skip
    if run is None:
        raise InputError(f"--recipe {recipe}: give an evaluated run, as in composcope intervene --recipe {recipe} RUN")
    go_offline(model)
    from ..interventions import inference

    chosen = None if layers is None else whole_numbers(layers, "--layers")
    result = inference.intervene(
        recipe, run, model=model, n=cases, layers=chosen, max_new_tokens=max_tokens, seed=seed,
        device=device, reporter=Reporter(quiet=quiet),
    )  # fmt: skip
    show([dict(r) for r in result.table] if json else inference.lines(result), json)
    return exits.OK


def _one_thread(model: str, device: str | None) -> None:
    """Use one thread for organisms: they are slower on several, and one makes training reproducible."""
    import torch

    if model.startswith("organism:") and (device or "cpu") == "cpu" and not torch.cuda.is_available():
        torch.set_num_threads(1)


def study(
    out: Annotated[Path, Option("--out", "-o", help="Study folder; the same command continues it.")] = Path(
        "runs/interventions"
    ),
    model: Annotated[str, Option("--model", "-m", help="Base organism.")] = "organism:control",
    seeds: Annotated[int, Option(min=1, help="Trainings per variant.")] = 3,
    size: Annotated[str, Option(help="small (about half an hour on one core) or full.")] = "small",
    second: Annotated[str, Option(help="Second base: train (a Qwen3 organism), none, or a model folder.")] = "train",
    device: Device = None,
    json: AsJson = False,
    quiet: Silent = False,
) -> None:
    """Compare a baseline with three recipes and four depth mixes, on two base models, with probes before and after."""
    go_offline(model)
    from ..interventions import study as job
    from ..interventions.study_tables import markdown

    _one_thread(model, device)
    found = job.run(job.InterventionStudy(model, seeds, size, second), out, device=device, quiet=quiet)
    show(found.to_dict() if json else markdown(found), json)
