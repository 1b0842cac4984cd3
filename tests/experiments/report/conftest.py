"""What single cases leave behind in a run folder."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import save_file

from composcope.experiments import report

LAYERS, HEADS, PROMPT, STEPS, CUE = 4, 6, 9, 4, 2


AddCases = Callable[..., dict[str, Any]]


WritePage = Callable[..., Path]


@pytest.fixture(scope="session")
def write_page(empty_pictures: Any) -> WritePage:
    """``report.write``, with empty picture files."""

    def write(runs: Sequence[Path], out: Path, **options: Any) -> Path:
        with empty_pictures():
            return report.write(runs, out, **options)

    return write


@pytest.fixture(scope="session")
def add_cases() -> AddCases:
    """``add_cases(run, cases, token=None, heads=None)``: single cases as the probes keep them.

    Returns the arrays by probe and entry. ``token`` replaces the tokens' text, ``heads`` limits the kept ones.
    """
    return _add_cases


def _add_cases(
    run: Path, cases: Sequence[str], token: str | None = None, heads: Sequence[tuple[int, int]] | None = None
) -> dict[str, Any]:
    rng = np.random.default_rng(5)
    words = [token or f" t{i}" for i in range(PROMPT + STEPS)]
    kept = list(heads or [(i, j) for i in range(LAYERS) for j in range(HEADS)])
    made: dict[str, Any] = {}
    for probe, make in (("lookback", _lookback), ("patching", _patching), ("trajectory", _trajectory),
                        ("min-k", _min_k), ("neurons", _neurons), ("readout", _readout)):  # fmt: skip
        entries, arrays = [], {}
        for case in cases:
            for role in ("whole", "part:0") if probe in ("lookback", "min-k") else ("whole",):
                about, mine = make(rng, words, kept)
                arrays |= {f"{len(entries)}.{k}": v for k, v in mine.items()}
                entries.append({"case": case, "role": role, "kind": "composition", "group": "failure", **about})
        folder = run / "probes" / probe / "cases"
        folder.mkdir(parents=True)
        save_file(arrays, folder / "tensors.safetensors")
        index = {"schema": 1, "probe": probe, "cases_per_group": 2, "note": f"kept for {len(cases)} of 9 cases",
                 "left_out": [], "entries": entries}  # fmt: skip
        (folder / "index.json").write_text(json.dumps(index))
        made[probe] = arrays
    return made


def _lookback(rng: Any, words: list[str], kept: list[Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    attention = rng.dirichlet(np.ones(PROMPT + STEPS - 1), (len(kept), STEPS))
    for s in range(STEPS):
        attention[:, s, PROMPT + s :] = 0
    ratio = rng.uniform(0.1, 0.9, (LAYERS, HEADS, STEPS))
    about = {"prompt_tokens": PROMPT, "response_tokens": STEPS, "steps": STEPS, "context_tokens": PROMPT - CUE,
             "question": [2, 6], "tokens": words, "spans": None, "heads": kept,
             "of_heads": LAYERS * HEADS}  # fmt: skip
    return about, {"attention": attention.astype(np.float16), "ratio": ratio.astype(np.float16)}


def _patching(rng: Any, words: list[str], kept: list[Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    about = {"donor": "case-9999", "layers": list(range(LAYERS)), "tokens": words[:PROMPT], "question": [2, 6],
             "unpatched": words[0], "donors_own": "yes", "patched": [words[0], "yes", "other", "yes"],
             "sweep_layers": list(range(LAYERS)), "sweep_positions": list(range(PROMPT)),
             "sites": ["resid_post", "attn_out", "mlp_out"], "donor_tokens": words[:PROMPT],
             "answers": [words[0], "b"]}  # fmt: skip
    arrays = {f"{s}.{q}": rng.normal(0, 1, (LAYERS, PROMPT)).astype(np.float16)
              for s in ("resid_post", "attn_out", "mlp_out") for q in ("recovered", "kl")}  # fmt: skip
    return about, arrays


def _trajectory(rng: Any, words: list[str], kept: list[Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    about = {"tokens": words[PROMPT:], "response_tokens": STEPS}
    return about, {"cosines": rng.uniform(-0.2, 1, (LAYERS, STEPS - 1)).astype(np.float16)}


def _min_k(rng: Any, words: list[str], kept: list[Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    z = rng.normal(-0.5, 1, 5).astype(np.float32)
    z[3] = -np.inf
    return {"tokens": words[:PROMPT], "first": 2, "question": [2, 7]}, {"z": z, "log_prob": z - 2}


def _neurons(rng: Any, words: list[str], kept: list[Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    about = {"tokens": words[: PROMPT + 1], "question": [2, 6], "answer": words[0], "neurons": 64, "total": 2.5}
    return about, {"share": rng.dirichlet(np.ones(PROMPT + 1)).astype(np.float32)}


def _readout(rng: Any, words: list[str], kept: list[Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    about = {"tokens": words[: PROMPT + 1], "question": [2, 6], "first": 2, "layers": [2, 3],
             "places": {"question-end": [5], "answer-slot": [PROMPT]},
             "readings": [{"what": "bridge", "right": words[0], "foils": 8},
                          {"what": "answer", "right": words[1], "foils": 9}]}  # fmt: skip
    ridge = np.full((2, PROMPT - 1), np.nan, np.float32)
    ridge[:, [3, PROMPT - 2]] = rng.uniform(0, 1, (2, 2))
    return about, {"lens": rng.uniform(0, 1, (2, PROMPT - 1)).astype(np.float32), "ridge": ridge}
