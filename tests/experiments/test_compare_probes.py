"""What probes measured in two runs: paired over the cases that both probed; what cannot be compared is said."""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest
from scipy import stats

from composcope.errors import InputError
from composcope.evaluation.case import shares
from composcope.experiments.run import compare, write_json, write_lines
from composcope.experiments.run.compare import SharedCases, _values, compare_probes, probe_lines
from composcope.experiments.run.reader import RunData
from composcope.probes.result import ProbeResult

RNG = np.random.default_rng(0)
CASES = SharedCases(10, 10, tuple(f"c{i}" for i in range(10)), ())


def _write(run: Path, values: Mapping[str, float], name: str = "min-k", **settings: Any) -> RunData:
    rows = [
        {"case": c, "role": "whole", "kind": "composition", "group": "failure", "cluster": None, "quantity": "z",
         "value": v}
        for c, v in values.items()
    ]  # fmt: skip
    about = {"dtype": "torch.float32", **settings}
    ProbeResult("min_k", [{"quantity": "z", "value": 0.0}], settings=about, values=rows).save(run / "probes" / name)
    return RunData(run)


def _numbers(n: int, first: int = 0, shift: float = 0.0) -> dict[str, float]:
    return {f"c{first + i}": float(x) for i, x in enumerate(RNG.normal(shift, 1, n))}


def test_runs_are_paired_over_the_cases_that_both_probed(tmp_path: Path) -> None:
    left, right = _numbers(8), _numbers(8, first=2, shift=2)
    rows, said = compare_probes(_write(tmp_path / "a", left), _write(tmp_path / "b", right), CASES)
    (row,) = rows
    shared = [f"c{i}" for i in range(2, 8)]
    expected: Any = stats.ttest_rel([left[c] for c in shared], [right[c] for c in shared])
    assert (row["n"], row["n_dropped"], row["group"], row["probe"]) == (6, 4, "A - B", "min-k")
    assert row["p"] == pytest.approx(expected.pvalue) and row["family"] == "min-k: A - B" and not said
    assert row["value"] == pytest.approx(row["a"] - row["b"]) and row["effect"] < 0
    line = probe_lines(rows, said)[1]
    assert "n=6 (4 more cases in one run only), difference -" in line and "Holm" in line


def test_cases_that_differ_between_the_runs_are_left_out(tmp_path: Path) -> None:
    a, b = _write(tmp_path / "a", _numbers(5)), _write(tmp_path / "b", _numbers(5))
    rows, _ = compare_probes(a, b, SharedCases(5, 5, ("c0", "c1", "c2"), ("c3", "c4")))
    assert rows[0]["n"] == 3


def test_what_does_not_compare_is_said_and_undefined_is_null(tmp_path: Path) -> None:
    a = _write(tmp_path / "a", {"c0": 1.0, "c1": float("nan")}, k=0.2)
    b = _write(_write(tmp_path / "b", {"c0": 2.0, "c1": 3.0}, k=0.3).path, {"c9": 1.0}, "lookback")
    rows, said = compare_probes(a, b, CASES)
    (row,) = rows
    assert row["value"] is None and "no contrast possible: 1 cases" in row["note"]
    assert said == ["probe lookback: only B has its numbers by case",
                    "probe min-k: measured with k 0.2 and 0.3; the numbers are not comparable"]  # fmt: skip
    one = compare_probes(_write(tmp_path / "e", {"c0": 1.0}, question_only=True), a, CASES)[1]
    assert "question_only True and None" in one[0]  # what only one run says differs, too
    json.dumps(rows, allow_nan=False)
    assert "no contrast possible" in probe_lines(rows, said)[1]
    nothing, said = compare_probes(_write(tmp_path / "c", {"c0": 1.0}), _write(tmp_path / "d", {"c1": 1.0}), CASES)
    assert nothing == [] and said == ["probe min-k: no case was probed in both runs"]
    assert compare_probes(RunData(tmp_path), RunData(tmp_path), CASES) == ([], [])


def test_numbers_that_only_one_run_has_are_named(tmp_path: Path) -> None:
    runs = []
    for name, quantities in (("a", "zxyuv"), ("b", "zw")):
        rows = [{"case": case, "role": "whole", "kind": "composition", "cluster": None, "quantity": q, "value": 1.0}
                for q in quantities for case in ("c0", "c1") if (name, q, case) != ("b", "w", "c0")]  # fmt: skip
        rows += [{**rows[0], "quantity": "apart", "case": "c0" if name == "a" else "c1"}]
        ProbeResult("p", [{"quantity": "z", "value": 0.0}], values=rows).save(tmp_path / name / "probes" / "p")
        runs.append(RunData(tmp_path / name))
    rows, said = compare_probes(runs[0], runs[1], CASES)
    assert [(r["quantity"], r["n"]) for r in rows] == [("z", 2)]
    first = ", ".join(f"{q} (composition)" for q in "xyu")
    assert said == [f"probe p: only A has {first}, ...", "probe p: no case in both runs has apart (composition)",
                    "probe p: only B has w (composition)"]  # fmt: skip


def _prompts(folder: Path, clusters: str, more: float) -> RunData:
    """Two parts and a whole of four cases; the wholes differ by ``more`` from case to case."""
    said = {"c0": (1.0, 3.0), "c1": (4.0, 8.0), "c2": (0.0, 1.0), "c3": (5.0, 5.5)}
    parts = [{"case": c, "role": f"part:{i}", "kind": "math", "cluster": of, "quantity": "z", "value": v + more}
             for c, of in zip(said, clusters, strict=True) for i, v in enumerate(said[c])]  # fmt: skip
    wholes = [{**row, "role": "whole", "kind": "composition", "value": i * more} for i, row in enumerate(parts[::2])]
    ProbeResult("p", [{"quantity": "z", "value": 0.0}], values=[*parts, *wholes]).save(folder / "probes" / "p")
    return RunData(folder)


def test_a_case_has_the_mean_of_its_prompts_of_one_kind_and_counts_with_the_cases_it_shares_with(
    tmp_path: Path,
) -> None:
    same = SharedCases(4, 4, ("c0", "c1", "c2", "c3"), (), {"c1": frozenset({1})})  # another question in B
    found = {}
    for clusters in ("xxyy", "xyzw"):
        a, b = (_prompts(tmp_path / f"{clusters}{more}", clusters, more) for more in (0.0, 0.5))
        found[clusters] = rows = {r["kind"]: r for r in compare_probes(a, b, same, seed=3)[0]}
        mean = (2.0 + 4.0 + 0.5 + 5.25) / 4
        assert (rows["math"]["n"], rows["math"]["a"], rows["math"]["b"]) == (4, mean, pytest.approx(mean + 0.5))
        assert [rows["composition"][k] for k in ("a", "b", "value")] == [0, 0.75, -0.75]
    shared, own = (rows["composition"] for rows in found.values())
    assert (shared["interval"], shared["low"], shared["p"]) != (own["interval"], own["low"], own["p"])


def test_a_part_that_only_one_run_has_a_number_of_is_in_neither_mean(tmp_path: Path) -> None:
    said = {"a": {"c0": (1.0, 3.0), "c1": (2.0, 4.0), "c2": (5.0, 7.0)}, "b": {"c0": (1.0, 3.0), "c1": (2.5, None)}}
    runs: list[RunData] = []
    for name, of in said.items():
        parts = [{"case": c, "role": f"part:{i}", "kind": "math", "cluster": None, "quantity": "z", "value": v}
                 for c, values in of.items() for i, v in enumerate(values)]  # fmt: skip
        folder = tmp_path / name / "probes" / "p"
        ProbeResult("p", [{"quantity": "z", "value": 0.0}], values=parts).save(folder)
        runs.append(RunData(tmp_path / name))
    (row,) = compare_probes(runs[0], runs[1], CASES)[0]
    assert (row["n"], row["n_dropped"], row["a"], row["b"], row["value"]) == (2, 1, 2.0, 2.25, -0.25)


def test_a_comparison_hands_its_seed_and_the_same_questions_as_each_run_counts_them_to_every_number(
    synthetic: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    a, b = (synthetic.make_run(tmp_path / name, n=8, seed=i, probes=()) for i, name in enumerate("ab"))
    (b / "metrics.json").write_text((b / "metrics.json").read_text().replace("[]", '["x (--compat collapse)"]'))
    cases = [json.loads(line) for line in (b / "cases.jsonl").read_text().splitlines()]
    cases[3]["question"] = "Else?"
    (b / "cases.jsonl").write_text("".join(json.dumps(c) + "\n" for c in cases))
    seeds, published, counted = [], [], []
    interval, seen = compare.statistics.paired_difference, compare.published

    def channels(left: Any, right: Any, of: Any, seed: int) -> Any:
        seeds.append(seed)
        counted.append([{r.case for r in rows} for rows in (left, right)])
        return SimpleNamespace(metrics=(), warnings=("odd",))

    monkeypatch.setattr(compare, "compare", channels)
    monkeypatch.setattr(compare, "published", lambda rows, as_in: published.append(as_in) or seen(rows, as_in))
    monkeypatch.setattr(compare, "compare_probes", lambda *_, seed, **__: seeds.append(seed) or ([], []))
    monkeypatch.setattr(compare.statistics, "paired_difference",
                        lambda *of, seed, **more: seeds.append(seed) or interval(*of, seed=seed, **more))  # fmt: skip
    found = compare.compare_runs(a, b, seed=5)
    assert found["warnings"] == ["odd"] and set(seeds) == {5} and len(seeds) == 2 + len(found["roles"]) > 3
    assert published == [None, "collapse"]
    assert counted == [[{c["id"] for c in cases} - {cases[3]["id"]}] * 2]


def test_repeats_of_an_ask_are_compared_one_by_one(tmp_path: Path) -> None:
    for name, letters in (("a", "10?1"), ("b", "0011")):
        run = tmp_path / name
        rows = [{"case": "c", "role": "whole", "repeat": i, "ask": str(i), "gold": "g", "answer": f"{name}{i}",
                 "outcome": {"1": "correct", "0": "incorrect", "?": "invalid"}[x]}
                for i, x in enumerate(letters)]  # fmt: skip
        write_lines(run / "graded.jsonl", rows)
        write_json(run / "manifest.json", {"identity": {"model": name}})
        write_json(run / "metrics.json", {"protocol": "compositionality-gap", "metrics": []})
    found = compare.compare_runs(tmp_path / "a", tmp_path / "b")
    (whole,) = found["roles"]
    assert (found["shared"], found["left_out_invalid"], whole["n"], whole["a_only"], whole["b_only"]) == (4, 1, 3, 1, 0)
    assert found["discordant"] == [{
        "case": "c", "family": None, "depth": None, "gold": "g", "a": {"outcome": "correct", "answer": "a0"},
        "b": {"outcome": "incorrect", "answer": "b0"},
    }]  # fmt: skip


def test_settings_that_differ_are_all_named(tmp_path: Path) -> None:
    names = "dtype rows_dtype form steps rule answer_tokens t u v k question_only alignment role".split()
    settings: list[dict[str, Any]] = [dict.fromkeys(names, i) for i in (0, 1)]
    a, b = (_write(tmp_path / str(i), {"c0": 1.0}, **some) for i, some in enumerate(settings))
    (said,) = compare_probes(a, b, CASES)[1]
    assert all(f"{name} 0 and 1" in said for name in names)


def test_cases_of_two_runs_share_what_their_cluster_and_what_crosses_it_say(tmp_path: Path) -> None:
    file = tmp_path / "probes" / "p" / "values.csv"
    file.parent.mkdir(parents=True)
    file.write_text("case,role,kind,quantity,value,cluster,crossed\nc0,whole,k,q,1,a,b; d\nc1,whole,k,q,2,,\n")
    assert _values(tmp_path, "p", CASES)[1] == {"c0": shares("a", ("b", "d")), "c1": shares(None, ())}


def test_a_damaged_file_of_values_is_named_with_its_line(tmp_path: Path) -> None:
    a, b = _write(tmp_path / "a", _numbers(3)), _write(tmp_path / "b", _numbers(3))
    file = b.path / "probes" / "min-k" / "values.csv"
    rows: Sequence[dict[str, str]] = list(csv.DictReader(file.open(encoding="utf-8", newline="")))
    file.write_text(file.read_text().replace(rows[1]["value"], "much"))
    with pytest.raises(InputError, match=r"values\.csv:3: no case, role"):
        compare_probes(a, b, CASES)


def test_values_of_a_result_go_with_the_result_that_had_them(tmp_path: Path) -> None:
    run = _write(tmp_path, _numbers(3)).path
    ProbeResult("min_k", [{"quantity": "z", "value": 0.0}]).save(run / "probes" / "min-k")
    assert not (run / "probes" / "min-k" / "values.csv").exists()
