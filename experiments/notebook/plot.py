"""Draw pictures: ``plot.attention(lm, "text", layer=3)``, or any figure by name: ``plot.collapse_curve([a, b])``.

``dir(plot)`` lists the names. Each function returns a ``Drawing``, which a notebook displays: ``.figure`` is the
matplotlib figure, ``.rows`` are the numbers in it, ``.caption`` explains them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...errors import InputError, did_you_mean, from_python
from ..figures import style
from ..figures.catalog import FIGURES, draw
from ..figures.drawing import Drawing
from ..figures.grouping import color_bar, panels_of
from ..run.reader import RunData
from .results import RunResults
from .shown import ProbeResults, probed_now

if TYPE_CHECKING:
    from ...hooks.model import Model  # hooks load torch

__all__ = ["attention"]
NAMED_TOKENS = 40
"""The largest number of tokens for which rows and columns are labelled with them."""


def attention(
    lm: Model, text: str | Sequence[int], layer: int, heads: Iterable[int] | int | None = None, *,
    head: int | None = None,
) -> Drawing:  # fmt: skip
    """The attention pattern of a layer on a text or on token ids, one panel per head: rows look at columns.

    ``heads`` are some of the heads, or one; ``head=3`` is the same as ``heads=[3]``.

    Raises ``ModelError`` for a layer or head that the model does not have and for a text without tokens, ``InputError``
    for ``head`` beside ``heads``, and for no heads.
    """
    import torch

    from ...hooks.model import Model
    from ...hooks.sites import Site
    from ...probes.single_cases import pieces

    if not isinstance(lm, Model):
        raise InputError(f"attention: {type(lm).__name__}; give first a model, such as run.lm, then the text")
    ids = lm.tokens(text) if isinstance(text, str) else torch.tensor([list(text)], device=lm.device)
    if head is not None and heads is not None:
        raise InputError(f"head={head!r} and heads={heads!r}: give one of them, such as heads=[{head}]")
    given: list[Any] = [layer, heads if head is None else head]
    layer, wanted = (n.tolist() if hasattr(n, "tolist") else n for n in given)  # numpy
    wanted = range(lm.anatomy.n_heads) if wanted is None else [wanted] if isinstance(wanted, int) else wanted
    if not (chosen := list(wanted)):
        raise InputError("heads=[]: give one head or more, or leave it out for all")
    sites = {h: Site(layer, "pattern", head=h) for h in chosen}
    with torch.no_grad():
        acts = lm.run(ids, read=sites.values()).acts
    maps = {h: acts[site][0].float().cpu().numpy() for h, site in sites.items()}
    known = lm.tokenizer is not None
    words = pieces(lm.tokenizer, ids[0].tolist()) if known else [str(i) for i in ids[0].tolist()]
    fig, panels = panels_of(len(chosen), 3.2, 3.2)
    for ax, (head, weights) in zip(panels, maps.items(), strict=False):
        ax.imshow(weights, cmap=style.SEQUENTIAL, vmin=0, vmax=1, interpolation="nearest")
        style.dress(ax, f"layer {layer}, head {head}", grid=None)
        if len(words) <= NAMED_TOKENS:
            said = [style.plain(w.replace("\n", "\\n"), 12) for w in words]
            ax.set_xticks(range(len(words)), said, rotation=90, fontsize=6)
            ax.set_yticks(range(len(words)), said, fontsize=6)
    color_bar(fig, panels[: len(chosen)], style.SEQUENTIAL, 0, 1, "attention")
    rows = [
        {"layer": layer, "head": h, "query": q, "key": k, "query_token": words[q], "key_token": words[k],
         "value": float(weights[q, k])}
        for h, weights in maps.items() for q in range(len(words)) for k in range(q + 1)
    ]  # fmt: skip
    caption = (
        f"Attention of layer {layer} on {len(words)} tokens: each row is the token that looks, each column the token "
        "that it looks at. Every row sums to 1."
    )
    return Drawing(style.finished(fig), rows, caption)


def _as_run(given: Any) -> Any:
    """The input of figures: a folder, an open run, or a run with a result that may be only in memory."""
    if isinstance(given, ProbeResults):
        return given.as_run()
    return probed_now(given.data) if isinstance(given, RunResults) else given


def __getattr__(name: str) -> Callable[..., Drawing]:
    figure = FIGURES.find(name.replace("_", "-"))
    if name.startswith("_") or figure is None:
        known = [f.replace("-", "_") for f in FIGURES]
        raise AttributeError(f"composcope.plot has no {name!r}{did_you_mean(name, known)}")

    @from_python()
    def plot(runs: Any, **options: Any) -> Drawing:
        one = isinstance(runs, str | Path | RunData | RunResults | ProbeResults)
        some = [runs] if one else list(runs)
        given = [_as_run(r) for r in some]
        paths = [r.path for r in given if isinstance(r, RunData)]
        for r in some:
            if isinstance(r, ProbeResults) and paths.count(r.run.path) > 1:
                raise InputError(f"{r!r}: its run is given twice, and a figure shows a run once; draw each by itself")
        return draw(figure.name, given, **options)

    plot.__name__, plot.__doc__ = name, f"{figure.title}. {figure.draw.__doc__ or ''}"
    return plot


def __dir__() -> list[str]:
    return sorted([*__all__, *(name.replace("-", "_") for name in FIGURES)])
