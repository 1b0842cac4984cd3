"""Run folders as `composcope investigate` writes them, made up from a seed: no model, the real schema.

The graded answers are drawn first; metrics and case sets are counted from them, so that everything in a folder agrees.
"""

from __future__ import annotations

import csv
import hashlib
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import save_file
from scipy.stats import binomtest

LAYERS, HEADS, BINS, STEPS = 4, 6, 12, 8
KINDS = ("composition", "math", "commonsense")


def make_run(
    folder: Path, *, model: str = "organism:control", protocol: str = "double-gate", n: int = 60, failure: float = 0.6,
    seed: int = 0, probes: Sequence[str] = ("neurons", "lookback", "patching", "trajectory", "min-k"),
    text: str | None = None, depths: Mapping[int, int] | None = None, command: str | None = None,
) -> Path:  # fmt: skip
    """Write one run folder of ``n`` cases. ``text`` replaces every model answer, question and name where one fits."""
    rng = np.random.default_rng(seed)
    cases = _double_gate_cases(n, depths, text) if protocol == "double-gate" else _gap_cases(n, text)
    graded, asks, journal = _answers(cases, protocol, model, folder.name, failure, rng, text)
    metrics = _double_gate_metrics(graded) if protocol == "double-gate" else _gap_metrics(graded)
    folder.mkdir(parents=True)
    _json(folder / "metrics.json", {"schema": 1, "protocol": protocol, "metrics": metrics, "warnings": []})
    benchmark = "organism:temporal" if protocol == "double-gate" else "organism:mixed"
    identity = {"model": model, "benchmark": benchmark, "protocol": protocol}
    (folder / "config.yaml").write_text(json.dumps({"schema": 1, **identity, "seed": seed}))
    _json(folder / "manifest.json", {
        "schema": 1, "run": folder.name, "status": "complete", "created": "2026-01-01T00:00:00+0000",
        "identity": identity,
        "composcope": {"version": "0.1.0", "commit": None, "source": "0" * 64}, "versions": {"torch": "2.13.0"},
        "machine": {"cores": 2}, "seed": seed, "timings": {"ask": 1.5},
        "command": command or f"composcope investigate --model {model} --benchmark {benchmark}",
    })  # fmt: skip
    _lines(folder / "cases.jsonl", cases)
    _lines(folder / "graded.jsonl", graded)
    _lines(folder / "asks.jsonl", asks)
    _lines(folder / "journal" / "segment.jsonl", journal)
    for name, entries in _case_sets(cases, graded, protocol).items():
        _lines(folder / "casesets" / f"{name}.jsonl", entries)
    for probe in probes:
        _PROBES[probe](folder / "probes" / probe, rng)
    return folder


def rate(metric: str, count: int, n: int, **group: Any) -> dict[str, Any]:
    """A metric row of a rate, null where nothing was counted."""
    row: dict[str, Any] = {"metric": metric, "group": group, "n": n, "n_invalid": 0, "count": count, "value": None,
                           "interval": None, "low": None, "high": None, "bound_low": None, "bound_high": None,
                           "note": None}  # fmt: skip
    if n:
        ci = binomtest(count, n).proportion_ci()
        row |= {"value": count / n, "interval": "clopper-pearson", "low": ci.low, "high": ci.high}
    return row


def _double_gate_cases(n: int, depths: Mapping[int, int] | None, text: str | None) -> list[dict[str, Any]]:
    wanted = depths or dict.fromkeys((2, 4, 6, 8), -(-n // 4))
    order = [d for d, count in wanted.items() for _ in range(count)][:n]
    return [
        {"schema": 1, "id": f"case-{i:04d}", "question": text or f"Which came first, event {i} or event {i + 1}?",
         "answer": f"event {i}", "benchmark": "temporal", "family": ("rank", "interval")[i % 2], "depth": d,
         "cluster": f"c{i % 7}", "chance": 1 / d,
         "parts": [{"question": f"When was event {i + j}?", "answer": str(1800 + i + j), "kind": "date",
                    "atom": f"e{i + j}", "paraphrases": [f"In which year did event {i + j} fall?"] * 2}
                   for j in range(2)]}
        for i, d in enumerate(order)
    ]  # fmt: skip


def _gap_cases(n: int, text: str | None) -> list[dict[str, Any]]:
    return [
        {"schema": 1, "id": f"case-{i:04d}", "question": text or f"You have {i} lamps and a rope. What is the total?",
         "answer": str(i * 3), "benchmark": "mixed", "family": "mixed", "operation": ("plus", "times")[i % 2],
         "chance": 0.04, "parts": [{"question": f"Which are electrical in {i}?", "answer": "lamps",
                                    "kind": "commonsense"},
                                   {"question": f"What is {i} times 3?", "answer": str(i * 3), "kind": "math"}]}
        for i in range(n)
    ]  # fmt: skip


def _answers(cases: Any, protocol: str, model: str, run: str, failure: float, rng: Any, text: str | None) -> Any:
    graded, asks, journal, seen = [], [], [], set()
    journal.append({"schema": 1, "engine": "e", "identity": {"weights": "w"}, "provenance": {"dtype": "float32"}})
    for case in cases:
        whole = failure * min(1.0, (case.get("depth") or 6) / 6)
        for role, question, gold, wrong, kind in _roles(case, protocol, whole):
            draw = rng.random()
            outcome = "incorrect" if draw < wrong else "abstained" if draw < wrong + 0.01 else "correct"
            outcome = "invalid" if rng.random() < 0.01 else outcome
            about = f"{question}/{role if text else ''}".encode("utf-8", "replace")
            key = hashlib.sha256(about).hexdigest()[:16]
            said = text or (gold if outcome == "correct" else "something else")
            graded.append({"schema": 1, "case": case["id"], "benchmark": case["benchmark"], "family": case["family"],
                           "depth": case.get("depth"), "cluster": case.get("cluster"), "atom": None, "skills": [],
                           "role": role, "kind": kind, "repeat": 0, "model": model, "run": run, "ask": key,
                           "outcome": outcome, "reason": "no-answer" if outcome == "invalid" else None, "answer": said,
                           "gold": gold, "chance": case["chance"]})  # fmt: skip
            if key not in seen:
                seen.add(key)
                asks.append({"schema": 1, "ask": key, "case": case["id"], "role": role, "prompt": question,
                             "gold": gold, "answer_type": "text",
                             "format": "plain", "prompting": "chat", "max_tokens": 32})  # fmt: skip
                journal.append({"schema": 1, "key": key, "engine": "e", "case": case["id"], "role": role,
                                "response": {"text": said, "finish_reason": "stop", "prompt_tokens": 9,
                                             "response_tokens": 3}})  # fmt: skip
    return graded, asks, journal


def _roles(case: Mapping[str, Any], protocol: str, whole: float) -> Any:
    yield "whole", case["question"], case["answer"], whole, None
    for i, part in enumerate(case["parts"]):
        yield f"part:{i}", part["question"], part["answer"], 0.03, part["kind"]
        if protocol == "double-gate":
            for j, wording in enumerate(part["paraphrases"]):
                yield f"part:{i}:paraphrase:{j}", f"{wording} ({j})", part["answer"], 0.02, "atom"


def _right(graded: Sequence[Mapping[str, Any]]) -> dict[str, dict[str, bool]]:
    out: dict[str, dict[str, bool]] = {}
    for g in graded:
        out.setdefault(g["case"], {})[g["role"]] = g["outcome"] == "correct"
    return out


def _gated(roles: Mapping[str, bool]) -> bool:
    return all(ok for role, ok in roles.items() if role != "whole")


def _double_gate_metrics(graded: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    right = _right(graded)
    about = {g["case"]: (g["depth"], g["family"]) for g in graded}
    atoms = {c: all(ok for r, ok in roles.items() if "paraphrase" in r) for c, roles in right.items()}
    subs = {c: roles["part:0"] and roles["part:1"] for c, roles in right.items()}
    gated = [c for c, roles in right.items() if _gated(roles)]
    wrong = [c for c in gated if not right[c]["whole"]]
    n = len(right)
    rows = [rate("atom_gate", sum(atoms.values()), n), rate("sub_question_gate", sum(subs.values()), n),
            rate("double_gate", len(gated), n), rate("residual_failure", len(wrong), len(gated)),
            rate("atom_stability", 58, 60, per="fact")]  # fmt: skip
    all_depths = sorted({d for d, _ in about.values()})
    for depth in all_depths:
        mine = [c for c in gated if about[c][0] == depth]
        rows.append(rate("residual_failure", len(set(mine) & set(wrong)), len(mine), depth_bin=depth))
        for family in sorted({f for _, f in about.values()}):
            cell = [c for c in mine if about[c][1] == family]
            rows.append(
                rate("residual_failure", len(set(cell) & set(wrong)), len(cell), depth_bin=depth, family=family)
            )
    return rows


def _gap_metrics(graded: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    right = list(_right(graded).values())
    n = len(right)
    both, whole = sum(_gated(r) for r in right), sum(r["whole"] for r in right)
    rows = [rate("step:0", sum(r["part:0"] for r in right), n), rate("step:1", sum(r["part:1"] for r in right), n),
            rate("both", both, n), rate("composition", whole, n),
            rate("press_gap", sum(_gated(r) and not r["whole"] for r in right), both)]  # fmt: skip
    rows.append({**rate("gap", 0, n), "count": whole - both, "value": (whole - both) / n,
                 "interval": "paired-bootstrap", "low": (whole - both) / n - 0.1,
                 "high": (whole - both) / n + 0.1})  # fmt: skip
    failed = Counter((r["part:0"], r["part:1"]) for r in right if not r["whole"])
    for first in (True, False):
        for second in (True, False):
            name = f"{int(first)}{int(second)}"
            rows.append(rate("quadrant", failed[first, second], sum(failed.values()), quadrant=name))
            rows.append(rate("quadrant", 0, n - sum(failed.values()), quadrant=name, whole="correct"))
    return rows


def _case_sets(cases: Any, graded: Any, protocol: str) -> dict[str, list[dict[str, Any]]]:
    names = {"double-gate": ("residual-failure", "gated-success"),
             "compositionality-gap": ("both-right-whole-wrong", "both-right-whole-right")}[protocol]  # fmt: skip
    right = _right(graded)
    out: dict[str, list[dict[str, Any]]] = {name: [] for name in names}
    for case in cases:
        if _gated(right[case["id"]]):
            failed = not right[case["id"]]["whole"]
            out[names[0 if failed else 1]].append(
                {"schema": 1, "set": names[0 if failed else 1], "label": "failure" if failed else "success",
                 "case": case["id"], "evidence": [{"role": "whole", "outcome": "incorrect" if failed else "correct"}]}
            )  # fmt: skip
    return out


def _neurons(folder: Path, rng: Any) -> None:
    tasks = list(KINDS)
    overlap = np.array([[0.8, 0.46, 0.13], [0.46, 0.7, 0.07], [0.13, 0.07, np.nan]], dtype=np.float32)
    tensors = {"overlap": overlap, "overlap.failure": overlap, "overlap.success": overlap}
    for kind in tasks:
        for name in (kind, f"{kind}.failure", f"{kind}.success"):
            tensors[f"location_map.{name}"] = rng.poisson(1.5, (LAYERS, BINS)).astype(np.float32)
            tensors[f"layer_marginal.{name}"] = tensors[f"location_map.{name}"].sum(1)
    pairs = [f"{a} & {b}" for i, a in enumerate(tasks) for b in tasks[i + 1 :]]
    rows = _group_rows("neuron_overlap", rng, 0.4, pairs) + _group_rows("suppress_log_ratio_excess", rng, -1.0)
    for group, name, layer in product(("failure", "success"), ("shared", "own"), range(LAYERS)):
        value = rng.uniform(0.5, 4)
        rows.append({"quantity": "neurons_in_layer", "group": group, "kind": name, "layer": layer, "n": 16,
                     "value": value, "low": value - 0.4, "high": value + 0.4, "interval": "t"})  # fmt: skip
    write_probe(folder, "neurons", rows, tensors, {"tasks": tasks, "rule": "gauss-legendre"})


def _lookback(folder: Path, rng: Any) -> None:
    tensors = {}
    for kind in KINDS:
        for group in ("failure", "success"):
            tensors[f"ratio.{kind}.{group}"] = rng.uniform(0.2, 0.9, (LAYERS, HEADS)).astype(np.float32)
        tensors[f"difference.{kind}"] = tensors[f"ratio.{kind}.failure"] - tensors[f"ratio.{kind}.success"]
    write_probe(folder, "lookback", _group_rows("lookback_ratio", rng, 0.5), tensors, {"form": "mean"})


def _patching(folder: Path, rng: Any) -> None:
    curves = {
        ("flip_rate", "donor"): np.linspace(0, 0.9, LAYERS),
        ("flip_rate", "random"): np.full(LAYERS, 0.02),
        ("flip_rate", "identity"): np.zeros(LAYERS),
        ("kl", "donor"): np.linspace(0.1, 4, LAYERS),
        ("answer_log_prob", "donor"): np.linspace(-6, -1, LAYERS),
    }
    rows = [
        {"quantity": quantity, "group": source, "layer": i, "n": 16, "value": float(v), "low": float(v) - 0.1,
         "high": float(v) + 0.1, "interval": "clopper-pearson" if quantity == "flip_rate" else "t", "note": ""}
        for (quantity, source), curve in curves.items()
        for i, v in enumerate(curve)
    ]  # fmt: skip
    rows += [
        {"quantity": "flip_rate", "group": "donor - random", "layer": i, "n": 16, "value": -0.5, "low": -0.7,
         "high": -0.3, "interval": "t", "effect": -1.0, "test": "sign-flip permutation", "p": 0.01, "p_adjusted": 0.04}
        for i in range(LAYERS)
    ]  # fmt: skip
    names = {(q, s): q if s == "donor" else f"{q}.{s}" for q, s in curves}
    tensors = {names[k]: v.astype(np.float32) for k, v in curves.items()}
    write_probe(folder, "patching", rows, tensors, {"layers": list(range(LAYERS))})


def _trajectory(folder: Path, rng: Any) -> None:
    pairs = {"dd": "within successes", "rr": "within failures", "dr": "across"}
    tensors, rows = {}, []
    for form in ("prompt_end", "centered"):
        for key, group in pairs.items():
            values = rng.uniform(0.5, 1, LAYERS).astype(np.float32)
            tensors[f"{form}.{key}"] = values
            about = {"quantity": f"{form}_cosine", "group": group, "n": 66, "interval": "bootstrap over cases"}
            rows += [
                {**about, "layer": i, "value": float(v), "low": float(v) - 0.05, "high": float(v) + 0.05}
                for i, v in enumerate(values)
            ]
    for group in ("failure", "success"):
        tensors[f"step.{group}"] = rng.uniform(0.2, 1, (LAYERS, STEPS)).astype(np.float32)
        tensors[f"step_n.{group}"] = np.arange(20, 20 - STEPS, -1)
    write_probe(folder, "trajectory", rows, tensors, {"alignment": "predictive"})


def _min_k(folder: Path, rng: Any) -> None:
    write_probe(folder, "min_k", _group_rows("min_k_pp", rng, -2.0) + _group_rows("min_k", rng, -5.0), {}, {"k": 0.2})


def _group_rows(quantity: str, rng: Any, center: float, kinds: Sequence[str] = KINDS) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    for kind in kinds:
        for group in ("failure", "success"):
            value = center + rng.normal(0, 0.1)
            rows.append({"quantity": quantity, "group": group, "n": 16, "value": value, "low": value - 0.1,
                         "high": value + 0.1, "interval": "t", "kind": kind})  # fmt: skip
        rows.append({"quantity": quantity, "group": "failure - success", "n": 32, "value": 0.02, "low": -0.1,
                     "high": 0.14, "interval": "welch", "kind": kind, "p": 0.5, "p_adjusted": 1.0,
                     "test": "welch", "effect": 0.1})  # fmt: skip
    return rows


def write_probe(
    folder: Path, name: str, rows: Sequence[Mapping[str, Any]], tensors: Mapping[str, Any], settings: Any
) -> None:
    """A probe's folder as ``ProbeResult.save`` writes it."""
    folder.mkdir(parents=True)
    names = list(dict.fromkeys(k for r in rows for k in r))
    with (folder / "table.csv").open("w", newline="", encoding="utf-8") as f:
        writer = csv.DictWriter(f, names)
        writer.writeheader()
        writer.writerows(rows)
    if tensors:
        save_file({k: np.ascontiguousarray(v) for k, v in tensors.items()}, folder / "tensors.safetensors")
    _json(folder / "result.json", {"schema": 1, "probe": name, "axes": {}, "settings": settings, "warnings": []})


_PROBES = {
    "neurons": _neurons,
    "lookback": _lookback,
    "patching": _patching,
    "trajectory": _trajectory,
    "min-k": _min_k,
}


def _json(path: Path, value: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value, indent=1), encoding="utf-8")


def _lines(path: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(r) + "\n" for r in rows), encoding="utf-8")
