"""A probe and its figure in one file: who writes at the end of the prompt, and how undecided is the model there?

composcope probe runs/control--mixed --plugin examples/add_probe.py --probes prompt-end
composcope plot prompt-end runs/control--mixed --plugin examples/add_probe.py
"""

from collections.abc import Sequence

import torch

from composcope.experiments.figures import style
from composcope.experiments.figures.drawing import Drawing, caption, words
from composcope.experiments.run.reader import RunData
from composcope.hooks import Model, Site
from composcope.probes import Example, ProbeResult
from composcope.probes.tables import group_rows


def prompt_end(lm: Model, examples: Sequence[Example]) -> ProbeResult:
    """Entropy of the next token, and the MLP's share of what each layer writes, at the last prompt position.

    Entropy H = -sum_v p(v) log p(v) in nats. Share of layer l = |mlp_out| / (|mlp_out| + |attn_out|), Euclidean norms:
    0.5 where both write equally much. Neither says that what is written is right. One forward pass a prompt.
    """
    measured = [_measure(lm, e.prompt_ids) for e in examples]
    entropy = torch.stack([h for h, _ in measured])  # example
    share = torch.stack([s for _, s in measured])  # example layer
    rows = group_rows("entropy", [(e, float(h)) for e, h in zip(examples, entropy, strict=True)])
    for layer in range(lm.anatomy.n_layers):
        values = [(e, float(s)) for e, s in zip(examples, share[:, layer], strict=True)]
        rows += [{**row, "layer": layer} for row in group_rows("mlp_share", values)]
    tensors = {"entropy": entropy, "mlp_share": share}
    axes = {"entropy": ("example",), "mlp_share": ("example", "layer")}
    return ProbeResult("prompt-end", rows, tensors, axes, settings={"expected": {"entropy": "decreasing"}})


@torch.no_grad()
def _measure(lm: Model, prompt: Sequence[int]) -> tuple[torch.Tensor, torch.Tensor]:
    layers = range(lm.anatomy.n_layers)
    # A reducer keeps only what is needed: the norm at the last position instead of [batch pos d_model].
    sites = [Site(layer, kind) for layer in layers for kind in ("mlp_out", "attn_out")]
    run = lm.run(torch.tensor([list(prompt)]), read={site: lambda x: x[0, -1].float().norm() for site in sites})
    log_p = run.logits[0, -1].float().log_softmax(-1)
    mlp, attention = (torch.stack([run.acts[Site(i, kind)] for i in layers]) for kind in ("mlp_out", "attn_out"))
    return -(log_p.exp() * log_p).sum().cpu(), (mlp / (mlp + attention)).cpu()


def draw_prompt_end(runs: Sequence[RunData]) -> Drawing:
    """Who writes at the end of the prompt."""
    rows = [
        {"run": run.name, **row}
        for run in runs
        if (found := run.probe("prompt-end")) is not None
        for row in found.table
        if row["quantity"] == "mlp_share" and row["kind"] == "composition" and row["group"] in style.GROUP_COLORS
    ]
    if not rows:
        return words("No run has results of the probe prompt-end.", runs)
    names = list(dict.fromkeys(row["run"] for row in rows))
    fig, panels = style.grid_of(1, len(names), 4.2, 3.0)
    for ax, name in zip(panels[0], names, strict=True):
        for group, shade in style.GROUP_COLORS.items():
            mine = [row for row in rows if row["run"] == name and row["group"] == group]
            style.points(ax, mine, [row["layer"] for row in mine], shade, group)
        style.dress(ax, name, "layer", "MLP's share of what is written")
    style.shared_legend(fig)
    text = "Mean share of the MLP in what a layer writes at the last prompt position, wholes only."
    return Drawing(style.finished(fig), rows, caption(text, rows, runs, "{run}, {group}, layer {layer}"))


PROBES = {"prompt-end": prompt_end}
FIGURES = {"prompt-end": draw_prompt_end}
