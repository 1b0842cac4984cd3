"""``composcope compare A B``: two runs on the same cases. Differences are A - B; discordant cases come first.

Two double-gate runs are also compared channel by channel: what they know (delta_atom, more is better for A), how they
compose it (delta_comp, negative if A composes better) and how deep (delta_depth, positive if A holds out deeper). The
numbers of probes are compared case by case, over the cases that both runs probed.
"""

import math
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from ...errors import InputError
from ...evaluation import statistics, text_files
from ...evaluation.graded import Graded, read_graded, role_order
from ...evaluation.metrics import mark, percent, points, span
from ...evaluation.protocols.base import BARE
from ...evaluation.protocols.compare import compare
from ...evaluation.protocols.counting import published, truth
from ...files import finite
from ...terminal import Bar, how_many, no_bar
from .folder import missing
from .reader import RunData, read_about
from .shared_cases import SharedCases, shared_cases
from .single_cases import read_values
from .summary import headline

Key = tuple[str, str, int]
Prompts = dict[tuple[str, str], list[float]]
"""(case, role) -> values"""
Numbers = dict[tuple[str, str], Prompts]
"""(quantity, kind) -> prompts"""
SETTINGS = ("dtype", "rows_dtype", "form", "steps", "rule", "answer_tokens", "t", "u", "v", "k", "question_only",
            "alignment", "role")  # fmt: skip
"""Two runs are compared only if their numbers were made with the same values of these settings."""


def compare_runs(a: str | Path, b: str | Path, *, seed: int = 0, progress: Bar = no_bar) -> dict[str, Any]:
    """Paired comparison of two runs: per role the accuracies, A - B with interval, McNemar's test, Holm over roles.

    Where cases share facts, items or templates, interval and test respect it (``statistics.mcnemar``). Only asks that
    both runs judged are paired, and only if the id means the same question in both; the rest is counted. What a run's
    ``compat`` counts as wrong is wrong here, too.
    ``shares`` has the intervals of both accuracies of each role, ``discordant`` the wholes on which the runs differ.
    ``channels`` holds the metrics of ``protocols.compare`` (empty unless both runs are double-gate runs), and
    ``probes`` the probes' numbers on the cases that both runs probed (see ``compare_probes``). Raises ``InputError``
    when the runs share no case, and for one run given twice.
    """
    if Path(a).resolve() == Path(b).resolve():
        raise InputError(f"{a} and {b}: are the same run; give two")
    runs = (RunData(Path(a)), RunData(Path(b)))
    graded_a, graded_b = map(_rows, runs)
    rows_a, rows_b = (_as_counted(run, rows) for run, rows in zip(runs, (graded_a, graded_b), strict=True))
    cases = shared_cases(*runs)
    common = sorted(rows_a.keys() & rows_b.keys())
    shared = [k for k in common if cases.comparable(k[0], k[1])]
    if not shared:
        n = len(cases.changed)
        said = "1 shared id, but its questions differ" if n == 1 else f"{n} shared ids, but their questions differ"
        ids = f" ({said})" if n else ""
        raise InputError(f"{a} and {b}: no case in common{ids}; compare runs of one benchmark")
    channels, warnings = _channels(*runs, cases.of(rows_a.values()), cases.of(rows_b.values()), seed)
    judged = [k for k in shared if "invalid" not in (rows_a[k].outcome, rows_b[k].outcome)]
    groups: dict[str, list[Key]] = {}
    for key in judged:
        groups.setdefault(_role(key[1]), []).append(key)
    table, shares = [], {}
    with progress("comparing what was asked", len(groups)) as advance:
        for name, keys in sorted(groups.items(), key=lambda item: (item[0] != "whole", role_order(item[0]))):
            table.append(_paired(name, keys, rows_a, rows_b, seed))
            shares[name] = [_share(keys, rows) for rows in (rows_a, rows_b)]
            advance(1)
    for row, p in zip(table, statistics.holm([r["p"] for r in table]), strict=True):
        row["p_adjusted"] = p
    probes, probes_said = compare_probes(*runs, cases, seed=seed, progress=progress)
    wholes = [k for k in judged if k[1] == "whole"]
    differing = [k for k in wholes if truth(rows_a[k]) != truth(rows_b[k])]
    return {
        "schema": 1,
        "a": _about(runs[0]),
        "b": _about(runs[1]),
        "cases": {"a": cases.n_a, "b": cases.n_b, "same": len(cases.same), "changed": list(cases.changed)},
        "cases_said": cases.sentence(),
        "settings": differing_settings(*runs),
        "shared": len(shared),
        "changed": len(common) - len(shared),
        "left_out_invalid": len(shared) - len(judged),
        "only_a": len(rows_a.keys() - rows_b.keys()),
        "only_b": len(rows_b.keys() - rows_a.keys()),
        "channels": channels,
        "warnings": warnings,
        "roles": table,
        "shares": shares,
        "probes": probes,
        "probes_said": probes_said,
        "discordant": [_discordant(k, graded_a, graded_b) for k in differing],
    }


def document(found: Mapping[str, Any]) -> dict[str, Any]:
    """The comparison as ``--json`` prints it: without the intervals of the shares, which only the text has."""
    return {name: value for name, value in found.items() if name != "shares"}


def differing_settings(a: RunData, b: RunData) -> list[tuple[str, str, str]]:
    """Settings, except the model, that differ between the two runs; a comparison of models should have none."""
    was, now = ({**run.manifest.identity, **_grading(run)} for run in (a, b))
    keys = [k for k in dict.fromkeys([*was, *now]) if k not in ("model", "weights")]
    return [(k, _stated(was, k), _stated(now, k)) for k in keys if was.get(k) != now.get(k)]


def _grading(run: RunData) -> dict[str, str | None]:
    """Who graded a run, and as which paper: neither is part of its identity, since its answers can be graded again."""
    judge = {} if run.config is None else {"judge": run.config.asking.judge}
    return judge if run.counted is None else {**judge, "compat": run.counted.compat}


def _stated(settings: Mapping[str, Any], name: str) -> str:
    absent = "none" if name in settings and name in ("judge", "compat") else "not stated"
    text = absent if settings.get(name) is None else str(settings[name])
    return text if len(text) <= 40 else f"{text[:39]}…"


def _channels(
    a: RunData, b: RunData, rows_a: Sequence[Graded], rows_b: Sequence[Graded], seed: int
) -> tuple[list[dict[str, Any]], list[str]]:
    if [run.counted_now().protocol for run in (a, b)] != ["double-gate", "double-gate"]:
        return [], []
    found = compare(rows_a, rows_b, {**b.cases, **a.cases}, seed)
    return [m.to_dict() for m in found.metrics], list(found.warnings)


def _rows(run: RunData) -> dict[Key, Graded]:
    path = run.path / "graded.jsonl"
    text_files.existing(path, missing(path))
    # Not ``run.graded``: here, rows that only one run has are counted and not refused.
    return {(r.case, r.role, r.repeat): r for r in read_graded(path)}


def _as_counted(run: RunData, rows: Mapping[Key, Graded]) -> dict[Key, Graded]:
    """The rows as the run's metrics count them (see ``published``)."""
    return dict(zip(rows, published(list(rows.values()), run.counted and run.counted.compat), strict=True))


def _about(run: RunData) -> dict[str, Any]:
    about = {k: run.manifest.identity.get(k) for k in ("model", "benchmark", "protocol")}
    return {"run": str(run.path), **about, "metrics": [m.to_dict() for m in headline(run.counted_now())]}


def _role(role: str) -> str:
    """The group that a role is counted in: all parts together, all paraphrases together."""
    words = role.removeprefix(BARE).split(":")
    if words[0] != "part":
        return role
    return (BARE if role.startswith(BARE) else "") + ("part" if len(words) == 2 else words[2])


def _paired(
    name: str, keys: Sequence[Key], a: Mapping[Key, Graded], b: Mapping[Key, Graded], seed: int
) -> dict[str, Any]:
    right_a, right_b = ([truth(side[k]) is True for k in keys] for side in (a, b))
    clusters = [_shared(a[k]) for k in keys]
    interval = statistics.paired_difference(right_a, right_b, seed=seed, clusters=clusters)
    test = statistics.mcnemar(right_a, right_b, clusters)
    n = len(keys)
    return {
        "role": name,
        "n": n,
        "a": sum(right_a) / n,
        "b": sum(right_b) / n,
        "difference": (sum(right_a) - sum(right_b)) / n,
        **interval.columns(),
        "a_only": test.a_only,
        "b_only": test.b_only,
        "test": test.test,
        "p": test.p,
        "note": mark(n),
    }


def _share(keys: Sequence[Key], rows: Mapping[Key, Graded]) -> statistics.Interval:
    """The interval of one run's share of right answers."""
    return statistics.rate_interval([truth(rows[k]) is True for k in keys], [_shared(rows[k]) for k in keys])


def _shared(row: Graded) -> Hashable:
    """What an answer shares with others: a part its atom with parts of other cases, and its cluster with its own."""
    own = row.shares or row.case
    return own if row.atom is None else frozenset({row.atom, row.cluster or row.case})


def _discordant(key: Key, a: Mapping[Key, Graded], b: Mapping[Key, Graded]) -> dict[str, Any]:
    x, y = a[key], b[key]
    about = {"case": key[0], "family": x.family, "depth": x.depth, "gold": x.gold}
    return about | {"a": {"outcome": x.outcome, "answer": x.answer}, "b": {"outcome": y.outcome, "answer": y.answer}}


def comparison_lines(found: Mapping[str, Any], most: int = 20) -> list[str]:
    """The comparison as text: discordant wholes first, then one line per role."""
    a, b = found["a"], found["b"]
    lines = [f"A = {a['run']} ({a['model']}), B = {b['run']} ({b['model']}); differences are A - B"]
    lines += [f"not only the model differs: {name} is {x} in A, {y} in B" for name, x, y in found["settings"]]
    cases = found["cases"]
    if cases["same"] and (cases["a"], cases["b"]) != (cases["same"], cases["same"]):
        lines.append(found["cases_said"])
    discordant = found["discordant"]
    lines.append(
        f"{how_many(len(discordant), 'whole')} on which they differ"
        + (f", the first {most}:" if len(discordant) > most else ":")
    )
    for d in discordant[:most]:
        said = (f"{side.upper()} {d[side]['outcome']} {d[side]['answer']!r}" for side in ("a", "b"))
        lines.append(f"  {d['case']}: gold {d['gold']!r}, {', '.join(said)}")
    lines += [_channel_line(m) for m in found["channels"]]
    lines += [f"  {w}" for w in found["warnings"]]
    lines += [line for r in found["roles"] for line in _role_lines(r, found["shares"][r["role"]])]
    lines += probe_lines(found["probes"], found["probes_said"])
    left = [f"{found[k]} {text}" for k, text in _LEFT_OUT.items() if found[k]]
    return lines + ([f"not compared: {', '.join(left)}"] if left else [])


_LEFT_OUT = {
    "left_out_invalid": "invalid in A or B",
    "changed": "asked in both with another question or answer",
    "only_a": "asked only in A",
    "only_b": "asked only in B",
}


def _channel_line(m: Mapping[str, Any]) -> str:
    where = ", ".join(f"{k} {v}" for k, v in m["group"].items() if k != "per")
    name = f"{m['metric']} ({where})" if where else m["metric"]
    if m["value"] is None:
        return f"{name}: none, n={m['n']} ({m['note']})"
    shown = "{:.2f} steps".format if m["metric"] == "delta_depth" else points
    text = f"{name}: {shown(m['value'])}" + _ends(m, shown)
    return f"{text}, n={m['n']} ({m['note']})"


def _ends(row: Mapping[str, Any], shown: Callable[[float], str]) -> str:
    ends = span(row["low"], row["high"], shown)
    return f"{ends} ({statistics.method_shown(row['interval'])})" if ends else ""


def _role_lines(r: Mapping[str, Any], shares: Sequence[statistics.Interval]) -> list[str]:
    """The shares of both runs on one line; on the next the difference with its test."""
    sides = zip("AB", (r["a"], r["b"]), shares, strict=True)
    said = (f"{side} {percent(v)}{_ends(i.columns(), percent)}" for side, v, i in sides)
    note = f" ({r['note']})" if r["note"] else ""
    p = r["test"] if r["p"] is None else f"p={r['p']:.3g} (Holm {r['p_adjusted']:.3g}), {_test(r)}"
    return [
        f"{r['role']}: {', '.join(said)}, n={r['n']}{note}",
        f"  A - B: {points(r['difference'])}{_ends(r, points)}, {p}",
    ]


def _test(r: Mapping[str, Any]) -> str:
    """The test in words; where it is two, and the interval is that of the one with the smaller p, this is said."""
    if r["test"] != statistics.SHARED_PAIRS:
        return str(r["test"])
    apart = r["p"] >= 1 - statistics.CONFIDENCE and r["low"] is not None and (r["low"] > 0 or r["high"] < 0)
    why = ": the interval is that of t alone, so it leaves out 0 although p is not small" if apart else ""
    return f"the larger p of two tests, McNemar's and t over clusters{why}"


def compare_probes(
    a: RunData, b: RunData, cases: SharedCases, *, seed: int = 0, progress: Bar = no_bar
) -> tuple[list[dict[str, Any]], list[str]]:
    """One row per probe, quantity and kind, and the remarks that a reader needs.

    The rows are paired over the cases that both runs probed: difference of means with interval, standardized effect,
    test, and Holm over all rows of a probe; ``n_dropped`` counts cases that only one run probed. The remarks name
    probes that only one run has, and settings that differ.
    """
    names = [sorted(p.parent.name for p in run.path.glob("probes/*/values.csv")) for run in (a, b)]
    if not any(names):
        return [], []
    from ...probes.contrast import adjust  # brings torch, which runs without probes do not need

    rows: list[dict[str, Any]] = []
    said: list[str] = []
    for name in sorted({*names[0]} ^ {*names[1]}):
        said.append(f"probe {name}: only {'A' if name in names[0] else 'B'} has its numbers by case")
    both = sorted({*names[0]} & {*names[1]})
    with progress("comparing probes", len(both)) as advance:
        for name in both:
            of_a, of_b = (read_about(run.path / "probes" / name).settings for run in (a, b))
            if differ := [f"{k} {of_a.get(k)} and {of_b.get(k)}" for k in SETTINGS if of_a.get(k) != of_b.get(k)]:
                said.append(f"probe {name}: measured with {', '.join(differ)}; the numbers are not comparable")
            found, alone = _probe_rows(name, [a.path, b.path], cases, seed)
            said += [f"probe {name}: {line}" for line in (alone if found else ["no case was probed in both runs"])]
            rows += [finite(r) for r in adjust(found, f"{name}: A - B")]
            advance(1)
    return rows, said


def _probe_rows(
    name: str, runs: Sequence[Path], cases: SharedCases, seed: int
) -> tuple[list[dict[str, Any]], list[str]]:
    """The rows, and which numbers have none, as only one run has them for any of the shared cases."""
    from ...probes.contrast import paired
    from ...probes.tables import settled_cells

    (left, near), (right, of_b) = (_values(run, name, cases) for run in runs)
    rows: list[dict[str, Any]] = []
    alone: dict[str, list[str]] = {}
    for key in dict.fromkeys([*left, *right]):
        sides = settled_cells(dict(zip("AB", _means(left.get(key, {}), right.get(key, {})), strict=True)))
        if sides["A"].keys() & sides["B"].keys():
            row = paired(sides, quantity=key[0], clusters={**of_b, **near}, seed=seed).table[0]
            shared = [c for c in sides["A"] if c in sides["B"]]
            means = {side.lower(): sum(sides[side][c] for c in shared) / len(shared) for side in sides}
            rows.append({"probe": name, **row, "kind": key[1], **means})
        else:
            who = "no case in both runs has" if key in left and key in right else f"only {'AB'[key in right]} has"
            alone.setdefault(who, []).append(f"{key[0]} ({key[1]})")
    return rows, [f"{who} {', '.join(keys[:3])}{', ...' * (len(keys) > 3)}" for who, keys in alone.items()]


def _means(a: Prompts, b: Prompts) -> Iterator[dict[str, float]]:
    """The mean of each case in both runs: of the prompts that both have numbers of, or of all if only one has any."""
    both = a.keys() & b.keys()
    paired, known = {case for case, _ in both}, {case for case, _ in a}
    for side, others in ((a, paired), (b, known)):
        kept: dict[str, list[float]] = {}
        for (case, role), values in side.items():
            if (case, role) in both or case not in others:
                kept.setdefault(case, []).extend(values)
        yield {case: sum(values) / len(values) for case, values in kept.items()}


def _values(run: Path, probe: str, cases: SharedCases) -> tuple[Numbers, dict[str, Hashable]]:
    """Values by quantity and kind, and by case and role, and the clusters of the cases."""
    raw: Numbers = {}
    near: dict[str, Hashable] = {}
    for v in read_values(run, probe):
        if cases.comparable(v.case, v.role) and math.isfinite(v.value):
            raw.setdefault((v.quantity, v.kind), {}).setdefault((v.case, v.role), []).append(v.value)
            near[v.case] = v.shares
    return raw, near


def probe_lines(rows: Sequence[Mapping[str, Any]], said: Sequence[str], most: int = 5) -> list[str]:
    """The rows as text; for each probe, the rows with the smallest p come first."""
    lines: list[str] = []
    for name in dict.fromkeys(r["probe"] for r in rows):
        mine = sorted((r for r in rows if r["probe"] == name), key=lambda r: (r["p"] is None, r["p"]))
        some = f", the first {most}; --json has all" if len(mine) > most else ""
        lines.append(f"probe {name}, {how_many(len(mine), 'number')} on the cases probed in both{some}:")
        lines += [f"  {_probe_line(r)}" for r in mine[:most]]
    return [*lines, *said]


def _probe_line(r: Mapping[str, Any]) -> str:
    text = f"{r['quantity']} ({r['kind']}): A {r['a']:.3g}, B {r['b']:.3g}, n={r['n']}"
    text += f" ({how_many(r['n_dropped'], 'more case')} in one run only)" if r["n_dropped"] else ""
    if r["value"] is None:
        return f"{text}: {r['note']}"
    text += f", difference {r['value']:+.3g}"
    if r["low"] is not None:
        text += f" [{r['low']:+.3g}, {r['high']:+.3g}] ({r['interval']})"
    if r["effect"] is not None:
        text += f", g={r['effect']:.2f}"
    return text + ("" if r["p"] is None else f", {r['test']} p={r['p']:.3g} (Holm {r['p_adjusted']:.3g})")
