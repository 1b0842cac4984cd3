"""A folder of runs that hold something for every figure."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import save_file

from composcope.evaluation.asks import Grade
from composcope.evaluation.cases import Case, write_cases
from composcope.evaluation.graded import Graded
from composcope.evaluation.protocols.base import get, reduce
from composcope.evaluation.protocols.reasoning_gap import co_present
from composcope.experiments import figures
from composcope.experiments.evaluating.ask_plan import load_benchmark
from composcope.experiments.run import diagnosis as results
from composcope.experiments.run.diagnosis import CAUSES, Verdict
from composcope.experiments.run.reader import RunData
from composcope.files import to_csv


@pytest.fixture(scope="session")
def everything(synthetic: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A study with something for every figure: runs of each protocol, probes, causes, skill maps, checkpoints.

    Its runs lie in ``runs``; what other commands write lies where those put it.
    """
    root = make_everything(synthetic, tmp_path_factory.mktemp("everything"))
    other = root / "runs" / "temporal-twin"  # of two runs, it shows which one a panel is named after
    synthetic._PROBES["patching"](other / "probes" / "patching", np.random.default_rng(1))
    _probed(synthetic, other, 1)
    return root


def make_everything(synthetic: ModuleType, root: Path) -> Path:
    runs = root / "runs"
    for i, model in enumerate(("control", "twin")):
        about: dict[str, Any] = {"model": f"organism:{model}", "seed": i, "failure": 0.8 - 0.4 * i}
        probes = ("lookback", "trajectory", "patching") if i == 0 else ()
        synthetic.make_run(runs / f"temporal-{model}", n=40, depths={2: 26, 4: 11, 6: 3}, probes=probes, **about)
        synthetic.make_run(runs / f"gap-{model}", n=40, protocol="compositionality-gap", **about)
        mixed, pairs = (list(load_benchmark(f"organism:{b}", limit=9).cases) for b in ("mixed", "pairs"))
        play(runs / f"asked-{model}", "compositionality-gap", mixed, model, i, also=("cot", "self-ask"))
        olds = [replace(c, meta={**c.meta, "original": {"question": "?", "answer": str(j)}})
                for j, c in enumerate(co_present(pairs))]  # fmt: skip
        play(runs / f"pairs-{model}", "reasoning-gap", olds, model, i, code=True)
        play(runs / f"scaffolds-{model}", "scaffolding", mixed, model, i)
    _probed(synthetic, runs / "temporal-control", 0)
    _validity(runs / "validity" / "table.csv")
    sizes = {p.name: {"size": 1.5 if p.name.endswith("twin") else 0.5, "family": "organism"} for p in runs.iterdir()}
    (runs / "study.json").write_text(json.dumps({"schema": 1, "runs": list(sizes), "about": sizes}))
    maps = [{"n_clusters": m, "n_skills": n, "usage": {**{f"skill {i}": 40 // (i + 1) for i in range(n)}, "other": m}}
            for m in (5, 10) for n in (2, 3)]  # fmt: skip
    (root / "granularity.jsonl").write_text("".join(json.dumps(m) + "\n" for m in maps))
    steps = [{"run": "a", "recipe": recipe, "step": 50 * i, "metric": metric, "k": 9 * i + j, "n": 40}
             for recipe in ("sft", "grpo") for i in range(3) for j, metric in enumerate(("both", "whole"))]  # fmt: skip
    (root / "training_curve.json").write_text(json.dumps({"schema": 1, "rows": steps}))
    return root


@pytest.fixture(scope="session")
def runs(synthetic: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> list[RunData]:
    """A run of the double gate, and one of the compositionality gap on each of two doses."""
    folder, gap = tmp_path_factory.mktemp("study"), "compositionality-gap"
    synthetic.make_run(folder / "gate", n=160, probes=(), failure=0.7)
    for i, name in enumerate(("none", "twin")):
        made = {"model": f"organism:{name}", "failure": 0.3 + 0.4 * i, "seed": i}
        synthetic.make_run(folder / name, n=80, probes=(), protocol=gap, **made)
    return figures.load([folder])


def play(folder: Path, protocol: str, cases: Sequence[Case], model: str, seed: int, **options: Any) -> Path:
    """A run whose answers are thrown by a die, asked and counted by the real protocol."""
    asked, rng, rows = get(protocol, **options), random.Random(seed), []
    for case in cases:
        grades: dict[str, Grade] = {}
        while asks := asked.asks(case, grades):
            for ask in asks:
                right = rng.random() < (0.5 + 0.2 * seed if ask.role == "whole" else 0.8)
                grades[ask.role] = Grade("correct" if right else "incorrect", ask.gold)
                rows.append(Graded.of(case, ask, grades[ask.role], ask_id=None, model=model, run=folder.name))
    found = reduce(asked, rows, {c.id: c for c in cases})
    folder.mkdir(parents=True)
    write_cases(cases, folder / "cases.jsonl")
    (folder / "graded.jsonl").write_text("".join(json.dumps(r.to_dict()) + "\n" for r in rows))
    metrics = [m.to_dict() for m in found.metrics]
    (folder / "metrics.json").write_text(
        json.dumps({"schema": 1, "protocol": protocol, "metrics": metrics, "warnings": []})
    )
    identity = {"model": f"organism:{model}", "benchmark": f"organism:{protocol}", "protocol": protocol}
    (folder / "config.yaml").write_text(json.dumps({"schema": 1, **identity, "seed": seed}))
    about = {"run": folder.name, "status": "complete", "identity": identity, "command": "composcope evaluate"}
    (folder / "manifest.json").write_text(json.dumps({"schema": 1, **about}))
    return folder


def _probed(synthetic: ModuleType, run: Path, seed: int) -> None:
    """What single cases and further probes of a run hold, and the causes of its failures."""
    _readout(synthetic, run / "probes" / "readout", seed)
    _faithfulness(synthetic, run / "probes" / "faithfulness", seed)
    _sweeps(run / "probes" / "patching" / "cases", seed)
    _causes(run, seed)


def _readout(synthetic: ModuleType, folder: Path, seed: int) -> None:
    rng, places, tensors, rows = np.random.default_rng(seed), ("subject", "end"), {}, []
    for foils in ("absent", "in-prompt"):
        maps = {g: rng.uniform(0, 1, (4, 2)).astype(np.float32) for g in ("failure", "success")}
        tensors |= {f"lens.{foils}.bridge.{g}": m for g, m in maps.items()}
        tensors[f"lens.{foils}.difference.bridge"] = maps["failure"] - maps["success"]
        rows += [{"quantity": "held_lens", "kind": "bridge", "foils": foils, "group": g, "n": 16} for g in maps]
    tensors["wholes.lens"] = rng.uniform(0, 1, (32, 2)).astype(np.float32)
    synthetic.write_probe(folder, "readout", rows, tensors, {"places": places})


def _faithfulness(synthetic: ModuleType, folder: Path, seed: int) -> None:
    rng, rows = random.Random(seed), []
    for i, group in enumerate(("failure", "success")):
        about = {"kind": "composition", "group": group, "n": 16 + i, "interval": "clopper-pearson"}
        keys: list[dict[str, Any]] = [{"quantity": "kept_early", "shown": s} for s in (0.0, 0.25, 0.5, 0.75, 1.0)]
        keys += [{"quantity": "kept_filler"}]
        keys += [{"quantity": f"answer_{q}", "step": s}
                 for q in ("follows", "stays", "elsewhere") for s in ("all", "bridge", "operand")]  # fmt: skip
        for key in keys:
            value = round(rng.uniform(0.1, 0.9), 3)
            rows.append({**key, **about, "value": value, "low": value - 0.1, "high": value + 0.1})
    synthetic.write_probe(folder, "faithfulness", rows, {}, {})


def _sweeps(folder: Path, seed: int) -> None:
    """Five pairs over three of six positions, which share the last of them, and one of another length."""
    rng, folder_tensors, entries = np.random.default_rng(1 + seed), {}, []
    for i in range(6):
        tokens = [f"w{i}", "is", f"v{i}", ":", " a", " ="][: 6 - i // 5]
        entries.append(
            {"case": f"case-{i}", "tokens": tokens, "sweep_layers": [0, 2], "sweep_positions": [0, 2, 3 + i // 5]}
        )
        folder_tensors |= {f"{i}.{site}.recovered": rng.uniform(-0.4, 1, (2, 3)).astype(np.float32)
                           for site in ("resid_post", "attn_out", "mlp_out")}  # fmt: skip
    folder.mkdir(parents=True, exist_ok=True)
    save_file(folder_tensors, folder / "tensors.safetensors")
    (folder / "index.json").write_text(json.dumps({"schema": 1, "entries": entries}))


def _causes(run: Path, seed: int) -> None:
    cases = [json.loads(line)["id"] for line in (run / "cases.jsonl").read_text().splitlines()]
    found = [
        Verdict(c, CAUSES[i % (3 + seed)], ("asked alone: right",), 0.9, None, None) for i, c in enumerate(cases[:20])
    ]
    results.write(results.Diagnosis(run, found, results.count(found, RunData(run).cases)))


def _validity(table: Path) -> None:
    rng = random.Random(0)
    about = {"question": "follows the dose", "kind": "probe", "interval": "t", "n": 24}
    rows: list[dict[str, Any]] = []
    for quantity in ("mean lookback ratio", "Min-K%++"):
        for dose in ("none", "low", "twin"):
            own = [round(rng.random(), 3) for _ in range(3)]
            ends: dict[str, float | None] = {"low": None, "high": None}
            rows += [{**about, "quantity": quantity, "group": dose, "seed": s, "value": v, **ends}
                     for s, v in enumerate(own)]  # fmt: skip
            mean = sum(own) / 3
            rows.append({**about, "quantity": quantity, "group": dose, "seed": "all", "value": mean, "n": 3,
                         "low": mean - 0.1, "high": mean + 0.1})  # fmt: skip
    table.parent.mkdir()
    table.write_text(to_csv(rows))
