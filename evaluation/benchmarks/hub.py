"""Benchmarks from the Hugging Face hub through ``datasets``: ``hub:agentcoma:test``, ``hub:gsm8k``, ``hub:stad``, ...

``hub:NAME[:SPLIT]`` takes one of the data sets below, ``hub:READER@REPOSITORY[#CONFIG][:SPLIT]`` any repository (or a
local folder of one) whose rows have the shape that a reader of this package knows. Nothing but rows is taken: no code
of a repository runs. Where a data set is gated, missing, or the machine is offline, the error says which file to
download and where to put it.
"""

import csv
import json
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ...errors import InputError
from ...model_files import offline
from ..case import Case
from .catalog import READERS, benchmark


@dataclass(frozen=True)
class DataSet:
    """Where a benchmark is on the hub, and how it is read."""

    reader: str
    repository: str
    config: str | None = None
    split: str | None = "test"
    """None: all splits, one after the other."""
    gated: bool = False
    file: str = ""
    """The file to download by hand."""


DATA_SETS: Mapping[str, DataSet] = {
    "agentcoma": DataSet("agentcoma", "LisaAlaz/AgentCoMa", gated=True, file="agentcoma_test.csv"),
    "gsm8k": DataSet("gsm8k", "openai/gsm8k", "socratic", file="the test split of its config socratic"),
    "stad": DataSet("stad", "ibm-research/STaD", "acl_2026", split=None, file="its scaffolded JSON lines"),
    "tot": DataSet("tot", "baharef/ToT", "tot_arithmetic", file="the test split of its config tot_arithmetic"),
    "math-hard": DataSet("math-hard", "lighteval/MATH-Hard", file="its test split"),
    "musique": DataSet("musique", "dgslibisey/MuSiQue", split="validation", file="musique_ans_v1.0_dev.jsonl"),
    "hotpotqa": DataSet(
        "hotpotqa", "hotpotqa/hotpot_qa", "distractor", "validation", file="hotpot_dev_distractor_v1.json"
    ),
    "mquake": DataSet("mquake", "henryzhongsc/MQuAKE-Remastered", split="CF3k", file="its split CF3k"),
    "twohopfact": DataSet("twohopfact", "soheeyang/TwoHopFact", split="train", file="TwoHopFact.csv"),
    "socrates": DataSet("socrates", "soheeyang/SOCRATES", split="train", file="SOCRATES_v1.csv"),
}
_CSV = ("agentcoma", "twohopfact", "socrates")
"""Readers of CSV files; the others read JSON lines."""
_READ = (*DATA_SETS, "2wiki")
_ABSENT = {
    "compositional-gsm": "is not released; `composcope build compositional-gsm` makes it from GSM8K items with code",
    "composition-collapse": "is not released; make one of its shape with `composcope build temporal` from dated facts",
    "bamboogle": "with sub-questions is not on the hub; give --benchmark bamboogle:FILE",
    "multiarith": "with its equations is not on the hub; give --benchmark multiarith:FILE",
}


@benchmark("hub")
def read_hub(rest: str) -> list[Case]:
    """The cases of a data set (what follows ``hub:``).

    Raises ``InputError`` for an unknown name, and with the file to download where the hub cannot give the rows.
    """
    found = parse(rest)
    form = "csv" if found.reader in _CSV else "jsonl"
    with tempfile.TemporaryDirectory() as folder:
        # Readers take files; the name makes the same case ids as the released file would.
        path = Path(folder) / f"{found.reader}_{found.split or 'all'}.{form}"
        rows = _rows(found, rest)
        if not rows:
            raise InputError(f"hub:{rest}: the data set has no rows; give another split")
        (_write_csv if form == "csv" else _write_lines)(path, rows)
        try:
            return READERS[found.reader](path)
        except InputError as e:
            raise InputError(str(e).replace(str(path), f"hub:{rest}")) from e


def parse(rest: str) -> DataSet:
    """What a spec asks for. Raises ``InputError`` for an unknown name or reader."""
    name, at, where = rest.partition("@")
    if at:
        if name not in _READ:
            raise InputError(f"hub:{rest}: no reader {name!r}; use one of {', '.join(_READ)}")
        repository, _, split = where.rpartition(":") if ":" in where else (where, "", "")
        repository, _, config = repository.partition("#")
        if not repository:
            raise InputError(f"hub:{rest}: the repository is missing; give hub:{name}@OWNER/NAME[#CONFIG][:SPLIT]")
        return DataSet(name, repository, config or None, split or None)
    name, _, split = rest.partition(":")
    if name in _ABSENT:
        raise InputError(f"hub:{rest}: this benchmark {_ABSENT[name]}")
    if name not in DATA_SETS:
        known = ", ".join(DATA_SETS)
        raise InputError(f"hub:{rest}: no such data set; use one of {known}, or hub:READER@OWNER/NAME[#CONFIG][:SPLIT]")
    known_set = DATA_SETS[name]
    file = known_set.file.replace("_test", f"_{split}") if split else known_set.file
    return replace(known_set, split=split or known_set.split, file=file)


def _rows(found: DataSet, rest: str) -> list[dict[str, Any]]:
    try:
        import datasets
    except ImportError as e:
        raise InputError(
            f"hub:{rest}: needs the package datasets: pip install 'composcope[data]'; {_by_hand(found)}"
        ) from e
    datasets.disable_progress_bars()
    try:
        loaded: Any = datasets.load_dataset(found.repository, found.config, split=found.split)
    except Exception as e:  # whatever hub, network, cache and parsers raise: nothing of ours has run yet
        raise InputError(f"hub:{rest}: {_why(e, found)}; {_by_hand(found)}") from e
    parts: Sequence[Any] = [loaded] if found.split else list(loaded.values())
    return [dict(row) for part in parts for row in part]


def _why(error: Exception, found: DataSet) -> str:
    said = f"{type(error).__name__}: {' '.join(str(error).split())[:160]}"
    text = said.casefold()
    if any(word in text for word in ("gated", "401", "403", "authenticat", "must be logged in", "log in")):
        return f"{found.repository} is gated: accept its conditions on its page, then `hf auth login` ({said})"
    if offline() or any(word in text for word in ("offline", "connect", "resolve", "timed out", "reach")):
        set_by = "HF_HUB_OFFLINE is set and the cache does not hold it" if offline() else "the hub cannot be reached"
        return f"{set_by} ({said})"
    return f"{found.repository} cannot be read ({said})"


def _by_hand(found: DataSet) -> str:
    """What to download, and where to put it."""
    page = f"https://huggingface.co/datasets/{found.repository}"
    file = found.file or "the split as JSON lines or CSV"
    gate = " (gated: log in there first)" if found.gated else ""
    return f"or download {file} from {page}{gate} on any machine and give --benchmark {found.reader}:PATH/TO/FILE"


def _write_lines(path: Path, rows: Iterable[Mapping[str, Any]]) -> None:
    text = "".join(json.dumps(row, ensure_ascii=False, default=str) + "\n" for row in rows)
    path.write_text(text, encoding="utf-8")


def _write_csv(path: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    columns = list(dict.fromkeys(k for row in rows for k in row))
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, columns)
        writer.writeheader()
        writer.writerows(rows)  # a list of accepted answers is Python's text of it, as in the released file
