"""``composcope compare A B``: two runs on the same cases, difference A - B everywhere, discordant cases first.

Two double-gate runs are also compared channel by channel: what they know (delta_atom, more is better for A), how they
compose it (delta_comp, negative: A composes better) and how deep (delta_depth, positive: A holds out deeper).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from ..errors import InputError
from ..evaluation import statistics
from ..evaluation.cases import case_from_dict
from ..evaluation.metrics import mark
from ..evaluation.protocols.base import Graded
from ..evaluation.protocols.compare import compare
from ..evaluation.validators import read_graded
from .compare_probes import compare_probes, probe_lines
from .run import read_cases_lines, read_json
from .shared_cases import shared_cases
from .summary import headline

Key = tuple[str, str, int]


def compare_runs(a: str | Path, b: str | Path, *, seed: int = 0) -> dict[str, Any]:
    """Paired comparison of two runs: per role the accuracies, A - B with interval, exact McNemar, Holm over roles.

    Only asks judged in both runs are paired, and only where the id stands for the same question in both; what is left
    out is counted. ``discordant`` lists the wholes on which the runs differ, ``channels`` the metrics of
    ``protocols.compare`` (empty unless both runs are double-gate runs), ``probes`` what was measured inside on the
    cases that both runs probed (see ``compare_probes``). Raises ``InputError`` when the runs share no case.
    """
    rows_a, rows_b = _rows(a), _rows(b)
    cases = shared_cases(a, b)
    common = sorted(rows_a.keys() & rows_b.keys())
    shared = [k for k in common if cases.comparable(k[0], k[1])]
    if not shared:
        n = len(cases.changed)
        said = "1 id is, with another question" if n == 1 else f"{n} ids are, with other questions"
        ids = f" ({said})" if n else ""
        raise InputError(f"{a} and {b}: no case in common{ids}; compare runs of one benchmark")
    same_a, same_b = (
        [row for key, row in rows.items() if cases.comparable(key[0], key[1])] for rows in (rows_a, rows_b)
    )
    channels, warnings = _channels(a, b, same_a, same_b, seed)
    judged = [k for k in shared if "invalid" not in (rows_a[k].outcome, rows_b[k].outcome)]
    groups: dict[str, list[Key]] = {}
    for key in judged:
        groups.setdefault(_role(key[1]), []).append(key)
    table = [_paired(name, keys, rows_a, rows_b, seed) for name, keys in sorted(groups.items(), key=_order)]
    for row, p in zip(table, statistics.holm([r["p"] for r in table]), strict=True):
        row["p_adjusted"] = p
    probes, probes_said = compare_probes(a, b, cases, seed=seed)
    return {
        "schema": 1,
        "a": _about(a),
        "b": _about(b),
        "cases": {"a": cases.n_a, "b": cases.n_b, "same": len(cases.same), "changed": list(cases.changed)},
        "cases_said": cases.sentence(),
        "shared": len(shared),
        "changed": len(common) - len(shared),
        "left_out_invalid": len(shared) - len(judged),
        "only_a": len(rows_a.keys() - rows_b.keys()),
        "only_b": len(rows_b.keys() - rows_a.keys()),
        "channels": channels,
        "warnings": warnings,
        "roles": table,
        "probes": probes,
        "probes_said": probes_said,
        "discordant": [
            _discordant(k, rows_a, rows_b) for k in judged if k[1] == "whole" and _differ(k, rows_a, rows_b)
        ],
    }


def _channels(
    a: str | Path, b: str | Path, rows_a: Iterable[Graded], rows_b: Iterable[Graded], seed: int
) -> tuple[list[dict[str, Any]], list[str]]:
    protocols = [read_json(Path(run) / "metrics.json").get("protocol") for run in (a, b)]
    if protocols != ["double-gate", "double-gate"]:
        return [], []
    cases = {}
    for run in (b, a):
        cases |= {c.id: c for c in (case_from_dict(raw, f"{run}/cases.jsonl") for raw in read_cases_lines(Path(run)))}
    found = compare(list(rows_a), list(rows_b), cases, seed)
    return [m.to_dict() for m in found.metrics], list(found.warnings)


def _rows(run: str | Path) -> dict[Key, Graded]:
    path = Path(run) / "graded.jsonl"
    if not path.is_file():
        raise InputError(f"{path}: no such file; is {run} a run folder?")
    rows = read_graded(path)
    return {(r.case, r.role, r.repeat): r for r in rows}


def _about(run: str | Path) -> dict[str, Any]:
    identity = read_json(Path(run) / "manifest.json").get("identity", {})
    metrics = headline(read_json(Path(run) / "metrics.json"))
    return {
        "run": str(run),
        **{k: identity.get(k) for k in ("model", "benchmark", "protocol")},
        "metrics": list(metrics),
    }


def _role(role: str) -> str:
    """Roles that are counted together: every part, every paraphrase."""
    words = role.split(":")
    if words[0] != "part":
        return role
    return "part" if len(words) == 2 else words[2]


def _order(item: tuple[str, Any]) -> tuple[bool, str]:
    return item[0] != "whole", item[0]


def _paired(
    name: str, keys: Sequence[Key], a: Mapping[Key, Graded], b: Mapping[Key, Graded], seed: int
) -> dict[str, Any]:
    right_a, right_b = ([side[k].outcome == "correct" for k in keys] for side in (a, b))
    clusters = [a[k].atom or a[k].cluster or k[0] for k in keys]
    interval = statistics.paired_difference(right_a, right_b, seed=seed, clusters=clusters)
    test = statistics.mcnemar(right_a, right_b)
    n = len(keys)
    return {
        "role": name,
        "n": n,
        "a": sum(right_a) / n,
        "b": sum(right_b) / n,
        "difference": (sum(right_a) - sum(right_b)) / n,
        **{k: v for k, v in asdict(interval).items() if k != "method"},
        "interval": interval.method,
        "a_only": test.a_only,
        "b_only": test.b_only,
        "test": "exact McNemar",
        "p": test.p,
        "note": mark(n),
    }


def _differ(key: Key, a: Mapping[Key, Graded], b: Mapping[Key, Graded]) -> bool:
    return (a[key].outcome == "correct") != (b[key].outcome == "correct")


def _discordant(key: Key, a: Mapping[Key, Graded], b: Mapping[Key, Graded]) -> dict[str, Any]:
    x, y = a[key], b[key]
    about = {"case": key[0], "family": x.family, "depth": x.depth, "gold": x.gold}
    return about | {"a": {"outcome": x.outcome, "answer": x.answer}, "b": {"outcome": y.outcome, "answer": y.answer}}


def comparison_lines(found: Mapping[str, Any], most: int = 20) -> list[str]:
    """The comparison as text: discordant wholes first, then one line per role."""
    a, b = found["a"], found["b"]
    lines = [f"A = {a['run']} ({a['model']}), B = {b['run']} ({b['model']}); differences are A - B"]
    cases = found["cases"]
    if cases["same"] and (cases["a"], cases["b"]) != (cases["same"], cases["same"]):
        lines.append(found["cases_said"])
    discordant = found["discordant"]
    lines.append(
        f"{len(discordant)} wholes on which they differ" + (f", the first {most}:" if len(discordant) > most else ":")
    )
    lines += [f"  {_discordant_line(d)}" for d in discordant[:most]]
    lines += [_channel_line(m) for m in found["channels"]]
    lines += [f"  {w}" for w in found["warnings"]]
    lines += [_role_line(r) for r in found["roles"]]
    lines += probe_lines(found["probes"], found["probes_said"])
    left = [f"{found[k]} {text}" for k, text in _LEFT_OUT.items() if found[k]]
    return lines + ([f"not compared: {', '.join(left)}"] if left else [])


_LEFT_OUT = {
    "left_out_invalid": "invalid in A or B",
    "changed": "asked in both with another question or answer",
    "only_a": "asked only in A",
    "only_b": "asked only in B",
}


def _discordant_line(d: Mapping[str, Any]) -> str:
    a, b = (f"{d[side]['outcome']} {d[side]['answer']!r}" for side in ("a", "b"))
    return f"{d['case']}: gold {d['gold']!r}, A {a}, B {b}"


def _channel_line(m: Mapping[str, Any]) -> str:
    where = ", ".join(f"{k} {v}" for k, v in m["group"].items() if k != "per")
    name = f"{m['metric']} ({where})" if where else m["metric"]
    if m["value"] is None:
        return f"{name}: none, n={m['n']} ({m['note']})"
    scale, unit = (1, "steps") if m["metric"] == "delta_depth" else (100, "points")
    text = f"{name}: {scale * m['value']:+.1f} {unit}"
    if m["low"] is not None:
        text += f" [{scale * m['low']:+.1f}, {scale * m['high']:+.1f}] ({m['interval']})"
    return f"{text}, n={m['n']} ({m['note']})"


def _role_line(r: Mapping[str, Any]) -> str:
    text = f"{r['role']}: A {100 * r['a']:.1f} %, B {100 * r['b']:.1f} %, difference {100 * r['difference']:.1f} points"
    if r["low"] is not None:
        text += f" [{100 * r['low']:.1f}, {100 * r['high']:.1f}] ({r['interval']})"
    text += f", n={r['n']}, McNemar p={r['p']:.3g} (Holm {r['p_adjusted']:.3g})"
    return text + (f" ({r['note']})" if r["note"] else "")
