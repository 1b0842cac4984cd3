"""Architecture x backend x probe: run everything on tiny random models and write what holds to docs/architectures.md.

``PYTHONPATH=tests python -m architecture_matrix`` prints the tables, ``--write`` puts them into the document. A probe
counts only where its numbers are those of the literal oracles; what is refused stands there with the words of the
refusal.
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from oracles import lookback as lookback_oracle
from oracles import min_k as min_k_oracle
from oracles import neurons as neuron_oracle
from oracles import patching as patching_oracle
from oracles import trajectory as trajectory_oracle
from tiny_models import CONFIGS, MORE, tiny

from composcope.errors import ComposcopeError
from composcope.hooks import Model, Site, load_model
from composcope.hooks.sites import KINDS
from composcope.probes import lookback, min_k, neurons, patching, trajectory

DOCUMENT = Path(__file__).parents[1] / "docs" / "architectures.md"
BEGIN, END = "<!-- architecture matrix -->", "<!-- end of architecture matrix -->"
NAMES = {"transformers": [*CONFIGS, *MORE], "transformer_lens": list(CONFIGS), "nnsight": list(CONFIGS)}
BACKENDS = ("transformers", "transformer_lens", "nnsight")
PROMPT = [5, 31, 77, 12, 40, 8, 66, 23, 51]
DONOR, RESPONSE, TARGET, NODES = [9, 60, 3, 14, 28, 71, 7], [33, 90, 11, 47], 30, 5
Compare = Callable[[Model, Model], float]


@dataclass(frozen=True)
class Cell:
    """What came of one combination."""

    held: bool
    words: str = ""
    """Why not, or what is left out."""

    def mark(self, notes: list[str]) -> str:
        if self.held:
            return self.words or "✓"
        if self.words not in notes:
            notes.append(self.words)
        return f"– [{notes.index(self.words) + 1}]"


def _worst(a: Any, b: Any) -> float:
    """Largest difference in units of the larger of 1 and the expected values' size; NaN only where NaN is expected."""
    x, y = (torch.as_tensor(np.asarray(v)).double() for v in (a, b))
    if x.shape != y.shape or not torch.equal(x.isnan(), y.isnan()):
        return float("inf")
    size = max(1.0, float(y.abs().nan_to_num(0).max()))
    return float((x - y).abs().nan_to_num(0).max()) / size


def _neurons(lm: Model, plain: Model) -> float:
    got = neurons.attribute(lm, PROMPT, [TARGET], NODES, "reference", site="down")
    ids, layers = torch.tensor([PROMPT]), plain.anatomy.layers
    nodes = neuron_oracle.reference_nodes(NODES)
    down, norms = [x.down for x in layers], [x.post_norm for x in layers]
    if plain.anatomy.n_experts:
        if any(getattr(x.experts, "has_bias", False) for x in layers):
            return _complete(lm)
        want = torch.stack([_of_mixture(plain, i, nodes) for i in range(len(layers))])
    elif all(n is not None for n in norms):
        want = neuron_oracle.attribute_behind_norm(plain.model, ids, TARGET, down, norms, nodes)  # type: ignore[arg-type]
    else:
        want = neuron_oracle.attribute(plain.model, ids, TARGET, down, nodes)  # type: ignore[arg-type]
    return _worst(got, want) / max(1e-3, min(1.0, float(want.abs().max())))


def _of_mixture(plain: Model, i: int, nodes: list[tuple[float, float]]) -> torch.Tensor:
    """One layer of a model of which some or all are mixtures, padded to the widest layer."""
    layer, ids = plain.anatomy.layers[i], torch.tensor([PROMPT])
    if layer.down is None:
        want = neuron_oracle.attribute_experts(plain.model, ids, TARGET, [layer.mlp], nodes).flatten(1)[0]
    else:
        want = neuron_oracle.attribute(plain.model, ids, TARGET, [layer.down], nodes)[0]
    return torch.nn.functional.pad(want, (0, plain.anatomy.n_neurons - len(want)))


def _complete(lm: Model) -> float:
    """Where no oracle knows the experts: in the last layer the scores must sum to what silencing it costs."""
    found = neurons.attribute_many(lm, [PROMPT], [[TARGET]], 64)
    return abs(float(found.gap[0][0, -1])) / max(1e-3, float(found.probability[0][0]))


def _lookback(lm: Model, plain: Model) -> float:
    got = lookback.ratios(lm, [PROMPT], [RESPONSE], 2)[0]
    return _worst(got, lookback_oracle.ratios(_eager(plain), PROMPT, RESPONSE, 2))


def _patching(lm: Model, plain: Model) -> float:
    got = patching.prompt_end_sweep(lm, [DONOR], [PROMPT], max_new_tokens=3, keep="all", controls=(), stop_ids=())
    worst = 0.0
    for i, layer in enumerate(plain.anatomy.layers):
        state = patching_oracle.block_output(plain.model, torch.tensor([DONOR]), layer.block)[-1]
        tokens, first = patching_oracle.patched_greedy(plain.model, PROMPT, layer.block, len(PROMPT) - 1, state, 3)
        if got.tensors["tokens"][0, 0, i].tolist() != tokens:
            return float("inf")
        worst = max(worst, _worst(got.tensors["first_logits"][0, 0, i], first))
    return worst


def _trajectory(lm: Model, plain: Model) -> float:
    states = trajectory.prompt_end_states(lm, [PROMPT])[0]
    want = torch.stack([patching_oracle.block_output(plain.model, torch.tensor([PROMPT]), x.block)[-1]
                        for x in plain.anatomy.layers])  # fmt: skip
    steps = trajectory.step_cosines(lm, [PROMPT], [RESPONSE[:2]], eos=())[0].cosines[:, 0]
    longer = torch.stack([patching_oracle.block_output(plain.model, torch.tensor([[*PROMPT, RESPONSE[0]]]), x.block)[-1]
                          for x in plain.anatomy.layers])  # fmt: skip
    return max(_worst(states, want), _worst(steps, trajectory_oracle.cosine(want.double(), longer.double())))


def _min_k(lm: Model, plain: Model) -> float:
    got = min_k.token_scores(lm, [PROMPT])[0]
    want = np.array(min_k_oracle.token_scores(plain.model, PROMPT))
    return _worst(np.stack([got.log_prob, got.mean, got.variance], -1), want)


PROBES: dict[str, Compare] = {
    "neurons": _neurons,
    "lookback": _lookback,
    "patching": _patching,
    "trajectory": _trajectory,
    "min-k": _min_k,
}
TOLERANCE = 1e-4


@cache
def _plain(name: str) -> Model:
    return load_model(tiny(name))


def _eager(plain: Model) -> Any:
    """The same weights with the attention that shows its maps."""
    found = plain.model.config.model_type
    name = next(n for n, c in {**CONFIGS, **MORE}.items() if c["model_type"] == found)
    model = tiny(name, attn="eager")
    model.load_state_dict(plain.model.state_dict())
    return model


def _opened(name: str, backend: str) -> Model | Cell:
    plain = _plain(name)
    if backend == "transformers":
        return plain
    try:
        return load_model(plain.model, backend=backend)
    except ComposcopeError as e:
        return Cell(False, f"{name}, {backend}: {e}")


def _probe_cell(probe: str, lm: Model, plain: Model) -> Cell:
    try:
        error = PROBES[probe](lm, plain)
    except ComposcopeError as e:
        return Cell(False, f"{probe}: {e}")
    return Cell(True) if error < TOLERANCE else Cell(False, f"{probe}: differs from the oracle by {error:.1e}")


def _site_cell(lm: Model, plain: Model) -> Cell:
    """Every kind of site, read and edited in the middle layer, against the transformers backend."""
    ids, refused = torch.tensor([PROMPT]), []
    for kind in KINDS:
        mixture = kind == "neuron" and plain.anatomy.layers[1].down is None
        site = Site(1, kind, 0 if mixture else None)  # type: ignore[arg-type]
        try:
            with torch.no_grad():
                runs = [m.run(ids, read=[site], edit={site: lambda x: 1.1 * x}) for m in (lm, plain)]
            if max(_worst(runs[0].acts[site], runs[1].acts[site]), _worst(runs[0].logits, runs[1].logits)) > TOLERANCE:
                refused.append(f"{kind} (differs)")
        except ComposcopeError:
            refused.append(kind)
    return Cell(True, f"not {', '.join(refused)}" if refused else "")


def row(name: str, backend: str) -> dict[str, Cell]:
    """The cells of one architecture on one backend."""
    plain = _plain(name)
    lm = _opened(name, backend)
    if isinstance(lm, Cell):
        return dict.fromkeys(("sites", *PROBES), lm)
    return {"sites": _site_cell(lm, plain), **{p: _probe_cell(p, lm, plain) for p in PROBES}}


def installed() -> list[str]:
    return [b for b in BACKENDS if importlib.util.find_spec(b) is not None]


def table(names: dict[str, list[str]], backends: list[str]) -> str:
    """Markdown: a table per backend, one line per architecture, one mark per probe; refusals below."""
    notes: list[str] = []
    columns = ("sites", *PROBES)
    lines = []
    for backend in backends:
        lines += [f"| {backend} | " + " | ".join(columns) + " |", "| --- " * (1 + len(columns)) + "|"]
        for name in names[backend]:
            cells = row(name, backend)
            lines.append(f"| {name} | " + " | ".join(cells[c].mark(notes) for c in columns) + " |")
        lines.append("")
    return "\n".join([*lines, *(f"{i}. {n}" for i, n in enumerate(notes, 1))])


def in_document(text: str) -> str:
    """The document with the tables put between its marks."""
    before, rest = text.split(BEGIN, 1)
    return f"{before}{BEGIN}\n\n{table(NAMES, installed())}\n\n{END}{rest.split(END, 1)[1]}"


if __name__ == "__main__":
    torch.set_num_threads(1)
    if "--write" in sys.argv:
        DOCUMENT.write_text(in_document(DOCUMENT.read_text(encoding="utf-8")), encoding="utf-8")
    else:
        chosen = {b: [n for n in NAMES[b] if n in sys.argv[1:] or not sys.argv[1:]] for b in BACKENDS}
        print(table(chosen, [b for b in installed() if chosen[b]]), flush=True)
