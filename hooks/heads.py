"""Sites of single heads: ``Site(3, "pattern", head=2)`` is read and edited as a part of the layer's whole site.

read, edit, found = split(read, edit, anatomy)
acts = found(run(read, edit).acts)  # with the sites of single heads among them
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from jaxtyping import Shaped
from torch import Tensor

from ..errors import ModelError
from .anatomy import Anatomy
from .sites import Edit, Reducer, Site

Read = dict[Site, Reducer | None]
Acts = dict[Site, Shaped[Tensor, "..."]]
_OF_QUERIES, _OF_KEYS = ("head", "q", "pattern"), ("k", "v")


def split(
    read: Mapping[Site, Reducer | None], edit: Mapping[Site, Edit], anatomy: Anatomy
) -> tuple[Read, dict[Site, Edit], Callable[[Acts], Acts]]:
    """Read and edit without sites of single heads, and the function that puts what was read of those back."""
    reads, edits = _by_whole(read, anatomy), _by_whole(edit, anatomy)
    kept: dict[Site, Tensor] = {}
    plain_read: Read = {s: r for s, r in read.items() if not _is_of_a_head(s)}
    plain_edit: dict[Site, Edit] = {s: e for s, e in edit.items() if not _is_of_a_head(s)}
    for whole, sites in reads.items():
        plain_read[whole] = _reading({s: read[s] for s in sites}, kept, anatomy, whole in read, read.get(whole))
    for whole, sites in edits.items():
        plain_edit[whole] = _editing({s: edit[s] for s in sites}, anatomy, edit.get(whole))

    def found(acts: dict[Site, Tensor]) -> dict[Site, Tensor]:
        return {s: kept[s] if _is_of_a_head(s) else acts[s] for s in read}

    return plain_read, plain_edit, found


def _is_of_a_head(site: object) -> bool:
    return isinstance(site, Site) and site.head is not None


def _by_whole(sites: Mapping[Site, object], anatomy: Anatomy) -> dict[Site, list[Site]]:
    """Sites of single heads by the whole site that they are a part of."""
    found: dict[Site, list[Site]] = {}
    for site in sites:
        if _is_of_a_head(site):
            assert isinstance(site, Site)
            _check(site, anatomy)
            found.setdefault(site._replace(head=None), []).append(site)
    return found


def _check(site: Site, anatomy: Anatomy) -> None:
    if site.kind not in _OF_QUERIES + _OF_KEYS:
        raise ModelError(f"{site}: {site.kind} has no heads; these kinds have: {', '.join(_OF_QUERIES + _OF_KEYS)}")
    if not 0 <= site.layer < anatomy.n_layers:
        return  # the whole site is refused with the number of layers
    n = anatomy.heads(site.layer)[site.kind in _OF_KEYS]
    if not isinstance(site.head, int) or not 0 <= site.head < n:
        raise ModelError(f"{site}: layer {site.layer} has {n} heads of this kind (0-{n - 1})")


def _part(site: Site, anatomy: Anatomy, x: Tensor) -> Tensor:
    """A head's part of a whole activation, a view of it."""
    assert site.head is not None
    if site.kind != "head":
        return x[:, site.head]
    width = x.shape[-1] // anatomy.heads(site.layer)[0]
    return x[..., site.head * width : (site.head + 1) * width]


def _reading(
    sites: Mapping[Site, Reducer | None], kept: dict[Site, Tensor], anatomy: Anatomy, whole: bool, own: Reducer | None
) -> Reducer:
    def reduce(x: Tensor) -> Tensor:
        for site, reducer in sites.items():
            part = _part(site, anatomy, x).clone()
            kept[site] = part if reducer is None else reducer(part)
        if not whole:
            return x.new_empty(0)
        return x if own is None else own(x)

    return reduce


def _editing(edits: Mapping[Site, Edit], anatomy: Anatomy, own: Edit | None) -> Edit:
    def change(x: Tensor) -> Tensor:
        x = x if own is None else own(x).clone()
        for site, edit in edits.items():
            part = _part(site, anatomy, x)
            new = edit(part.clone())
            if not isinstance(new, Tensor) or new.shape != part.shape:
                seen = tuple(new.shape) if isinstance(new, Tensor) else type(new).__name__
                raise ModelError(f"edit of {site}: gave {seen}, need a tensor of shape {tuple(part.shape)}")
            part.copy_(new)
        return x

    return change
