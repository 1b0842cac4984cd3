"""Look up the numbers that the papers print, to show them with ours; ``published.csv`` has one per line, with source.

A number is found by study, metric, group and model. Models are recognized by hub id or by name. For a model that the
paper does not have, its summary rows (``reference``) are shown instead, labelled as such. Models and groups must match
exactly, because a wrong comparison is worse than none.
"""

import csv
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from pathlib import PurePath
from typing import Any


@dataclass(frozen=True)
class Published:
    """One printed number."""

    study: str
    metric: str
    group: str
    """``key=value;...`` with keys in alphabetical order; empty for all cases."""
    model: str
    ids: str
    """Hub id of the model, if the paper gives it."""
    benchmark: str
    """Name of the benchmark; empty if the study has only one."""
    value: str
    """As printed; a range as ``2.5 to 9.8``."""
    unit: str
    n: str
    reference: str
    """``1`` if the number is shown for models that the paper does not have."""
    source: str

    @property
    def text(self) -> str:
        """The number with its unit and n."""
        n = f" (n={self.n})" if self.n else ""
        return f"{self.value}{' ' + self.unit if self.unit else ''}{n}"


@lru_cache(maxsize=1)
def table() -> tuple[Published, ...]:
    """All printed numbers."""
    text = files("composcope.experiments.studies").joinpath("published.csv").read_text(encoding="utf-8")
    return tuple(Published(**row) for row in csv.DictReader(text.splitlines()))


_FAMILIES = {
    "temporal_rank": "rank",
    "temporal_successor": "successor",
    "temporal_interval_decoy": "interval",
    "pair_far_control": "pair",
}


def group_key(group: Mapping[str, Any]) -> str:
    """A metric's group as one string, with families under their short names from the organisms' benchmark."""
    return ";".join(f"{k}={_FAMILIES.get(str(group[k]), group[k])}" for k in sorted(group)).casefold()


def name_key(name: str) -> str:
    """A model's name without owner, server, case or signs: ``Qwen/Qwen2.5-7B-Instruct`` is ``qwen257binstruct``."""
    return "".join(c for c in _last(name).casefold() if c.isalnum())


def pair_name(a: str, b: str) -> str:
    """Two matched models in the form of ``ids`` in ``published.csv``: names without owners, ``A - B``."""
    return f"{_last(a)} - {_last(b)}"


def _last(name: str) -> str:
    return name.partition("@http")[0].rstrip("/").rsplit("/", 1)[-1]


_STAGES = ("-final", "-scaffolded", "-arithmetic")


def benchmark_key(spec: str) -> str:
    """The benchmark's name in ``published.csv``: ``bamboogle:FILE`` and ``hub:tot`` are ``bamboogle`` and ``tot``.

    STaD scaffolds several benchmarks, so its files and splits tell which: ``stad:DIR/gsm8k_final.jsonl`` is ``gsm8k``.
    """
    words = spec.split(":")
    if words[0] == "hub" and len(words) > 1:
        words = [words[1].partition("@")[0], *words[2:]]
    if words[0].casefold() == "stad" and len(words) > 1:
        name = PurePath(words[-1]).stem.replace("_", "-").casefold()
        for stage in _STAGES:
            name = name.removesuffix(stage)
        return name
    return words[0].casefold()


def beside(
    study: str, metric: str, group: Mapping[str, Any], model: str, data: str = "", *, references: bool = True
) -> tuple[str, str]:
    """(text, source) of the paper's number; for a model that it does not have, the paper's reference values.

    Both are empty if the paper does not print this number, or only as ``references`` that are not wanted.
    """
    rows = [r for r in table() if (r.study, r.metric, r.group.casefold()) == (study, metric, group_key(group))]
    where = benchmark_key(data)
    if where in {r.benchmark for r in table() if r.study == study} - {""}:
        rows = own_data = [r for r in rows if r.benchmark == where]
    else:
        own_data = [r for r in rows if not r.benchmark]
        rows = own_data or rows
    own = [r for r in own_data if name_key(model) in {name_key(r.ids), name_key(r.model)} - {""}]
    if own:
        return own[0].text, own[0].source
    shown = [r for r in rows if r.reference and references]
    text = "; ".join(f"{', '.join(filter(None, (r.model, r.benchmark)))}: {r.text}" for r in shown)
    return text, "; ".join(dict.fromkeys(r.source for r in shown))
