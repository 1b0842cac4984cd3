"""What a study costs on a model of any size: floating-point operations and bytes, by arithmetic alone (docs/scale.md).

    python -m composcope.benchmarks.scale --prompt 2000 --asks 100000

Conventions: a multiply-add is 2 FLOP; P is the number of weights in the blocks' matrices, H = vocabulary x d the output
head; one token costs 2P through the blocks, 2H where logits are made, and 4 * heads * d_head FLOP per layer and key
that it attends to. Rows of the attribution also go backward once: only activations get gradients, so that costs as much
as forward. A row born after block l runs through the blocks above l only, on average through (L - 1) / 2L of them;
those of the attribution also through the down projection at which they are born.
"""

import argparse
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from ..errors import InputError
from ..experiments.console.exits import guarded
from ..experiments.interventions.recipes import PRESETS, AdapterRecipe
from ..experiments.run.folder import command_line

HALF = 2
"""Bytes of a number in half precision, in which studies run."""


@dataclass(frozen=True)
class Shape:
    """A Llama-like model with gated MLPs and grouped key-value heads."""

    layers: int
    d_model: int
    d_mlp: int
    heads: int
    kv_heads: int
    vocab: int
    dtype: str = "float32"
    device: str = "cpu"
    context: int = 4096

    def __str__(self) -> str:
        size = f"{self.layers} layers, d={self.d_model}, d_ff={self.d_mlp}, V={self.vocab}"
        return f"{size}, {self.dtype}, {self.device}"

    @property
    def d_head(self) -> int:
        return self.d_model // self.heads

    @property
    def blocks(self) -> int:
        """P: weights of the blocks' matrices."""
        attention = 2 * self.d_model * self.d_model + 2 * self.d_model * self.kv_heads * self.d_head
        return self.layers * (attention + 3 * self.d_model * self.d_mlp)

    @property
    def head(self) -> int:
        """H: weights of the output head."""
        return self.vocab * self.d_model

    @property
    def weights(self) -> int:
        return self.blocks + 2 * self.head

    @property
    def kv_bytes(self) -> int:
        """Keys and values of one token."""
        return 2 * self.layers * self.kv_heads * self.d_head * HALF

    def token(self, keys: float, logits: bool = False, share: float = 1.0) -> float:
        """FLOP of one token that attends to ``keys`` keys, through a ``share`` of the blocks."""
        attention = 4 * self.layers * self.heads * self.d_head * keys
        return share * (2 * self.blocks + attention) + 2 * self.head * logits

    def prompt(self, tokens: int, logits: int = 1) -> float:
        """FLOP of a prompt whose tokens attend to all before them, with logits at the last ``logits``."""
        return tokens * self.token(tokens / 2) + 2 * self.head * logits


SIZES: Mapping[str, Shape] = {
    "llama12": Shape(12, 768, 3072, 12, 4, 32_000),
    "8B": Shape(32, 4096, 14_336, 32, 8, 128_256, "bfloat16", "cuda", 8192),
    "70B": Shape(80, 8192, 28_672, 64, 8, 128_256),
}
"""A small random Llama, and the shapes of Llama-3.1 8B and 70B."""


@dataclass(frozen=True)
class Load:
    """The texts of a study."""

    prompt: int = 300
    response: int = 200
    asks: int = 10_000
    examples: int = 192
    """Prompts that the probes run on: 32 failures and as many successes in 3 roles."""
    pairs: int = 16
    """Failures patched from successes."""
    nodes: int = 9
    """Rows per layer of an attribution whose path is not split: 8 nodes, and the neurons silenced."""
    sources: int = 4
    """States put in per layer: the donor's, and three controls."""
    continuation: int = 24
    positive: int = 4
    """Pairs on which the whole prompt is put in, as positive control; on one of them in 3 layers by literal passes."""


@dataclass(frozen=True)
class Hardware:
    """One accelerator."""

    name: str
    flops: float
    """Dense FLOP/s in the dtype used."""
    bandwidth: float
    """Bytes/s of its memory."""
    memory: float
    utilization: float = 0.4
    """Share of ``flops`` that a run is taken to reach."""


POSITIVE = "patching, positive control"
H100 = Hardware("80 GB GPU, 990 TFLOP/s bf16, 3.35 TB/s", 990e12, 3.35e12, 80e9)


def item_flops(size: Shape, load: Load) -> dict[str, float]:
    """FLOP of one item of each step: an ask, an example, a pair."""
    n, r, layers = load.prompt, load.response, size.layers
    half = (layers - 1) / (2 * layers)
    down = 2 * size.d_model * size.d_mlp
    rows = layers * load.nodes
    answer = size.prompt(n) + r * size.token(n + r / 2, logits=True)
    patched = load.sources * layers
    # the recipient's own state goes on in 3 layers, both prompts go on unpatched
    going_on = (load.sources - 1) * layers + 3 + 2
    later = (load.continuation - 1) * size.token(n + load.continuation / 2, logits=True)
    anew = size.prompt(n, 0) + 3 * size.prompt(n, n)
    return {
        "ask": answer,
        "neurons": size.prompt(n, 0) + rows * 2 * (down + size.token(n, logits=True, share=half)),
        # the last layer's keys end the pass
        "lookback": 2 * half * size.prompt(n + r, 0) + r * 2 * size.heads * size.d_head * layers * (n + r / 2),
        "patching": 2 * size.prompt(n) + patched * size.token(n, logits=True, share=half) + going_on * later,
        POSITIVE: 2 * size.prompt(n) + (layers + 2) * later + anew / load.positive,
        "trajectory": size.prompt(n, 0) + size.prompt(n + 40, 0),
        "min-k": size.prompt(n, n),
    }


def study_flops(size: Shape, load: Load) -> dict[str, float]:
    """FLOP of each step of a study."""
    per, n = item_flops(size, load), load.examples
    counts = {"ask": load.asks, "patching": load.pairs, POSITIVE: load.positive, "trajectory": n / 3}
    return {name: flops * counts.get(name, n) for name, flops in per.items()}


def gpus_for(size: Shape, hardware: Hardware) -> int:
    """GPUs that one copy of the model needs: its weights in 80 % of their memory, a power of two."""
    count = 1
    while size.weights * HALF > 0.8 * hardware.memory * count:
        count *= 2
    return count


def decode_seconds(size: Shape, load: Load, hardware: Hardware) -> tuple[float, int]:
    """Seconds that one copy of the model takes for one answer's tokens, and the batch: memory-bound, full memory.

    Each step reads the weights once for the whole batch and every row's keys and values; or is bound by arithmetic.
    """
    gpus = gpus_for(size, hardware)
    kv = size.kv_bytes * (load.prompt + load.response)
    batch = min(256, int((0.9 * hardware.memory * gpus - size.weights * HALF) // kv))
    if batch < 1:
        raise InputError(f"no room for one sequence beside {size.weights * HALF / 1e9:.0f} GB of weights")
    moved = (size.weights * HALF + batch * kv) / (hardware.bandwidth * gpus)
    flops = batch * size.token(load.prompt + load.response / 2, True)
    computed = flops / (hardware.flops * hardware.utilization * gpus)
    return load.response * max(moved, computed) / batch, batch


def seconds(size: Shape, load: Load, hardware: Hardware, gpus: int) -> dict[str, float] | None:
    """Seconds of each step on ``gpus`` GPUs, as many copies as fit at work all the time; None where none fits.

    Asks: prompts at the utilization given, answers as ``decode_seconds``. Probes: at the utilization given; for models
    split over several GPUs by layers only one of them works at a time, so a copy is as fast as one GPU.
    """
    each = gpus_for(size, hardware)
    copies = gpus // each
    if not copies:
        return None
    speed = hardware.flops * hardware.utilization
    steps = study_flops(size, load)
    asking = size.prompt(load.prompt) / speed / each + decode_seconds(size, load, hardware)[0]
    return {name: flops / speed / copies for name, flops in steps.items()} | {"ask": load.asks * asking / copies}


def graph_bytes(size: Shape, load: Load) -> float:
    """Activations that one question's rows keep for going backward: (6d + 4m) a layer, and logits with a gradient."""
    rows = size.layers * load.nodes
    per_layer = (6 * size.d_model + 4 * size.d_mlp) * HALF
    return rows * (per_layer * size.layers / 2 + 2 * size.vocab * 4)


def lines(load: Load | None = None, hardware: Hardware = H100) -> list[str]:
    """The tables of ``docs/scale.md`` as markdown."""
    load = load or Load()
    chosen = {k: SIZES[k] for k in ("8B", "70B")}
    out = [
        "| | " + " | ".join(chosen) + " |", "|---|" + "--:|" * len(chosen),
        _row("P, weights of the blocks", chosen, lambda s: f"{s.blocks / 1e9:.2f}e9"),
        _row("H, weights of the head", chosen, lambda s: f"{s.head / 1e9:.2f}e9"),
        _row("all weights in bfloat16", chosen, lambda s: f"{s.weights * 2 / 1e9:.0f} GB"),
        _row("keys and values of a token", chosen, lambda s: f"{s.kv_bytes / 1024:.0f} KiB"),
        _row(f"of {load.prompt + load.response} tokens", chosen,
             lambda s: f"{s.kv_bytes * (load.prompt + load.response) / 1e6:.0f} MB"),
        _row("rows' activations, one question", chosen, lambda s: f"{graph_bytes(s, load) / 1e9:.1f} GB"),
        _row("GPUs of 80 GB for one copy", chosen, lambda s: f"{gpus_for(s, hardware)}"),
        "", "| FLOP of one | " + " | ".join(chosen) + " |", "|---|" + "--:|" * len(chosen),
    ]  # fmt: skip
    items = {k: item_flops(s, load) for k, s in chosen.items()}
    out += [f"| {name} | " + " | ".join(f"{items[k][name]:.2g}" for k in chosen) + " |" for name in items["8B"]]
    counts = [(k, n) for k in chosen for n in (1, 8, 64)]
    out += ["", "| minutes | " + " | ".join(f"{k}, {n} GPU" for k, n in counts) + " |", "|---|" + "--:|" * len(counts)]
    found = {(k, n): seconds(chosen[k], load, hardware, n) for k, n in counts}
    for name in items["8B"]:
        shown = ("–" if (s := found[c]) is None else minutes(s[name] / 60) for c in counts)
        out.append(f"| {name} | " + " | ".join(shown) + " |")
    total = ("–" if s is None else f"**{minutes(sum(s.values()) / 60)}**" for s in found.values())
    out.append("| **all** | " + " | ".join(total) + " |")
    return out


def _row(name: str, sizes: Mapping[str, Shape], value: Callable[[Shape], str]) -> str:
    return f"| {name} | " + " | ".join(value(s) for s in sizes.values()) + " |"


def minutes(value: float) -> str:
    """Minutes as tables show them."""
    return "< 0.01" if value < 0.01 else f"{value:.2f}" if value < 10 else f"{value:,.0f}"


def load_of(**changes: int | None) -> Load:
    """The default study with some sizes changed."""
    given = {k: v for k, v in changes.items() if v is not None}
    wrong = next((k for k, v in given.items() if v < 1), None)
    if wrong is not None:
        raise InputError(f"--{wrong} {given[wrong]}: give a whole number of at least 1")
    return replace(Load(), **given)


# What each paper's study costs at its published size. Numbers of cases are the papers'; asks per case follow from the
# presets (``composcope study``); lengths of texts are assumptions, printed beside the result.

D4V2 = 390 + 2490 + 79 * 4
"""Wholes, sub-questions and wordings of the atoms of composition collapse's benchmark."""


@dataclass(frozen=True)
class Training:
    """Trainings of one kind."""

    recipe: AdapterRecipe
    times: int


@dataclass(frozen=True)
class Planned:
    """One study of one model."""

    name: str
    load: Load
    steps: tuple[str, ...]
    """Steps of ``study_flops`` that it has."""
    trainings: tuple[Training, ...] = ()


_PATCHED = ("ask", "patching", POSITIVE, "trajectory")
STUDIES = (
    # 260 cases; the whole, both steps, the commonsense step with more context, self-ask; 30 wholes reversed.
    Planned("agentcoma", Load(500, 200, 5 * 260 + 30, 3 * 260, nodes=21), ("ask", "neurons", "lookback", "min-k")),
    # 1,200 pairs; Q1, Q2, the pair, Q2 beside an independent Q1, Q2's original, code; with and without the instruction.
    Planned("compositional-gsm", Load(1800, 250, 12 * 1200), ("ask",)),
    # 1,448 + 1,176 + 773 cases of 4.56 steps; the whole, every step, and for the half that fails 3.56 scaffolds and a
    # placeholder.
    Planned("stad", Load(250, 300, round(3397 * (1 + 4.56 + 0.5 * 4.56))), ("ask",)),
    # The benchmark and its wholes again with chain of thought; 16 pairs patched, here at all layers.
    Planned("composition-collapse", Load(120, 100, D4V2 + 390, 3 * 32, 16, continuation=40), _PATCHED),
    # 3 seeds of 7 variants, 3 of them on a second base too; every model and the two bases evaluated.
    Planned(
        "interventions, 30 trainings", Load(120, 100, 32 * D4V2), ("ask",),
        (Training(PRESETS["v1"], 6), Training(PRESETS["v2"], 3), Training(PRESETS["v3"], 3), Training(PRESETS["v4"], 3),
         Training(AdapterRecipe("sft-answer"), 6), Training(AdapterRecipe("sft-trace"), 9)),
    ),
)  # fmt: skip


def training_seconds(size: Shape, recipe: AdapterRecipe, load: Load, hardware: Hardware) -> float:
    """Seconds of one training on one copy of the model, one GPU of it at work at a time.

    GRPO generates a prompt's completions in one batch, which reads all weights for each token. Then each sequence goes
    forward, forward again for the activations that were not kept, backward (frozen weights have no gradients, so it
    costs what forward does) and, for GRPO, forward through the base model; logits are made for the answer's tokens.
    """
    answers = recipe.prompts * recipe.epochs * (recipe.generations if recipe.objective == "grpo" else 1)
    passes, heads = (4, 3) if recipe.objective == "grpo" else (3, 2)
    tokens = load.prompt + load.response
    flops = answers * (passes * size.prompt(tokens, 0) + heads * load.response * 2 * size.head)
    found = flops / (hardware.flops * hardware.utilization)
    if recipe.objective == "grpo":
        steps = recipe.prompts * recipe.epochs
        moved = 2 * size.weights + recipe.generations * size.kv_bytes * tokens
        found += steps * load.response * moved / hardware.bandwidth
    return found


def study_minutes(size: Shape, study: Planned, gpus: int, hardware: Hardware = H100) -> float | None:
    """Minutes of a study on ``gpus`` GPUs; None where no copy of the model fits.

    Trainings run side by side, one to a copy: never faster than the longest of them.
    """
    found = seconds(size, study.load, hardware, gpus)
    if found is None:
        return None
    copies = gpus // gpus_for(size, hardware)
    each = [(training_seconds(size, t.recipe, study.load, hardware), t.times) for t in study.trainings]
    training = max([sum(s * n for s, n in each) / copies, *(s for s, _ in each)], default=0.0)
    return (sum(found[name] for name in study.steps) + training) / 60


def study_lines(hardware: Hardware = H100, gpus: Sequence[int] = (1, 8, 64)) -> list[str]:
    """The table of studies of ``docs/scale.md`` as markdown."""
    columns = [(name, n) for name in ("8B", "70B") for n in gpus]
    heads = ["minutes", "asks", "prompt + answer", "opened up", *(f"{name}, {n} GPU" for name, n in columns)]
    out = [f"| {' | '.join(heads)} |", "|---|" + "--:|" * (len(heads) - 1)]
    for study in STUDIES:
        load, opened = study.load, _opened(study)
        times = [study_minutes(SIZES[name], study, n, hardware) for name, n in columns]
        cells = [study.name, f"{load.asks:,}", f"{load.prompt} + {load.response}", opened]
        out.append(f"| {' | '.join([*cells, *('–' if t is None else minutes(t) for t in times)])} |")
    return out


def _opened(study: Planned) -> str:
    """Prompts that a study's probes run on; trajectories alone are those of the wholes, one prompt in three."""
    if len(study.steps) == 1:
        return "–"
    return str(study.load.examples // (3 if study.steps == _PATCHED else 1))


def main() -> None:
    """Print the tables, of the default study or of sizes given."""
    parser = argparse.ArgumentParser(description="What studies of 8B and 70B models cost on 1, 8 and 64 GPUs.")
    for name in ("prompt", "response", "asks", "examples"):
        parser.add_argument(f"--{name}", type=int)
    print("\n".join([*lines(load_of(**vars(parser.parse_args()))), "", *study_lines()]))


if __name__ == "__main__":
    sys.exit(guarded(main, command_line))
