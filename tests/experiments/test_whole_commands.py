"""Whole commands on models of rules: what they print and write, against the rows and against each other."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import told_engine
from exit_codes import done
from scipy import stats

from composcope.evaluation.graded import Graded, read_graded
from composcope.experiments import investigate as job
from composcope.experiments.cli import main
from composcope.experiments.run import read_json, read_lines
from composcope.experiments.run.compare import compare_runs
from composcope.experiments.run.reader import read_config
from composcope.probes.result import ProbeResult

BENCHMARKS = {"mixed": "7", "temporal": "1"}
QUICK = ("mixed",)
Capture = pytest.CaptureFixture[str]
Runs = dict[tuple[str, str], Path]


@pytest.fixture(scope="module")
def told() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(job, "load_target", told_engine.load)
        yield


def _evaluate(model: str, benchmark: str, out: Path, *more: str) -> int:
    data = ["-m", f"organism:{model}", "-b", f"organism:{benchmark}", "--limit", BENCHMARKS[benchmark]]
    return main(["evaluate", *data, "-o", str(out), "-q", *more])


@pytest.fixture(scope="module")
def runs(told: None, tmp_path_factory: pytest.TempPathFactory) -> Runs:
    """Two models on three benchmarks, with a probe's numbers on every second and every third case."""
    made: Runs = {}
    for name in BENCHMARKS:
        for model, every in (("control", 2), ("twin", 3)):
            out = tmp_path_factory.mktemp("runs") / f"{model}-{name}"
            assert _evaluate(model, name, out) == 2, "answers without a judgement remain"
            cases = [c["id"] for c in read_lines(out / "cases.jsonl")][::every]
            values = [{"case": c, "role": role, "kind": kind, "group": "failure", "cluster": None, "quantity": "z",
                       "value": told_engine.drawn(model, c, role)}
                      for c in cases for role, kind in (("whole", "composition"), ("part:0", "part"))]  # fmt: skip
            ProbeResult("min_k", [{"quantity": "z", "value": 0.0}], values=values).save(out / "probes" / "min-k")
            made[model, name] = out
    return made


def _printed(capsys: Capture, *words: str, code: int = 0) -> dict[str, Any]:
    capsys.readouterr()
    assert main([*words, "--json"]) == code
    return json.loads(capsys.readouterr().out)


def _role(role: str) -> str:
    return role if not role.startswith("part:") else role.split(":")[2] if role.count(":") > 1 else "part"


def _by_ask(run: Path) -> dict[tuple[str, str], Graded]:
    return {(r.case, r.role): r for r in read_graded(run / "graded.jsonl")}


@pytest.mark.parametrize("name", BENCHMARKS)
def test_a_comparison_counts_every_ask_of_both_runs_once(runs: Runs, name: str, capsys: Capture) -> None:
    a, b = runs["control", name], runs["twin", name]
    found = _printed(capsys, "compare", str(a), str(b))
    left, right = _by_ask(a), _by_ask(b)
    shared = left.keys() & right.keys()
    judged = {k for k in shared if "invalid" not in (left[k].outcome, right[k].outcome)}
    assert (found["shared"], found["left_out_invalid"], found["changed"]) == (
        len(shared), len(shared) - len(judged), 0,
    )  # fmt: skip
    assert (found["only_a"], found["only_b"]) == (len(left) - len(shared), len(right) - len(shared))
    cases = {r.case for r in left.values()}
    assert found["cases"] == {"a": len(cases), "b": len(cases), "same": len(cases), "changed": []}
    assert sum(r["n"] for r in found["roles"]) == len(judged)
    for row in found["roles"]:
        mine = [
            (left[k].outcome == "correct", right[k].outcome == "correct") for k in judged if _role(k[1]) == row["role"]
        ]
        pairs = Counter(mine)
        assert row["n"] == len(mine) and row["a"] == pytest.approx(sum(x for x, _ in mine) / len(mine))
        assert row["b"] == pytest.approx(sum(y for _, y in mine) / len(mine))
        assert (row["a_only"], row["b_only"]) == (pairs[True, False], pairs[False, True])
        assert row["difference"] == pytest.approx((row["a_only"] - row["b_only"]) / row["n"])
        assert row["low"] is None or row["low"] <= row["difference"] <= row["high"]
        if row["test"] == "exact McNemar" and (n := row["a_only"] + row["b_only"]):
            assert row["p"] == pytest.approx(stats.binomtest(row["a_only"], n, 0.5).pvalue)
    assert found["roles"][0]["role"] == "whole"
    differ = {
        k[0] for k in judged if k[1] == "whole" and (left[k].outcome == "correct") != (right[k].outcome == "correct")
    }
    assert [d["case"] for d in found["discordant"]] == sorted(differ)
    for d in found["discordant"]:
        sides = [
            {"outcome": s[d["case"], "whole"].outcome, "answer": s[d["case"], "whole"].answer} for s in (left, right)
        ]
        assert [d["a"], d["b"]] == sides and d["gold"] == left[d["case"], "whole"].gold
    ps = sorted((r["p"], r["p_adjusted"]) for r in found["roles"] if r["p"] is not None)
    steps = [min(1.0, p * (len(ps) - i)) for i, (p, _) in enumerate(ps)]
    assert [q for _, q in ps] == pytest.approx([max(steps[: i + 1]) for i in range(len(steps))])


@pytest.mark.parametrize("name", BENCHMARKS)
def test_a_comparison_the_other_way_round_has_every_number_with_the_other_sign(runs: Runs, name: str) -> None:
    a, b = runs["control", name], runs["twin", name]
    there, back = compare_runs(a, b, seed=1), compare_runs(b, a, seed=1)
    assert len(there["channels"]) == len(back["channels"]) and bool(there["channels"]) == (name == "temporal")
    for part, value in (("roles", "difference"), ("channels", "value"), ("probes", "value")):
        assert there[part] or part == "channels"
        for x, y in zip(there[part], back[part], strict=True):
            assert (x["n"], x.get("role"), x.get("group") if part == "channels" else None) == (
                y["n"], y.get("role"), y.get("group") if part == "channels" else None,
            )  # fmt: skip
            if x[value] is None:
                assert y[value] is None
                continue
            assert y[value] == pytest.approx(-x[value])
            if x["low"] is not None and x["interval"] and "bootstrap" not in x["interval"]:
                assert (y["low"], y["high"]) == pytest.approx((-x["high"], -x["low"])), x
            assert x.get("p") == pytest.approx(y.get("p")) and x.get("p_adjusted") == pytest.approx(y.get("p_adjusted"))
            for one, other in (("a", "b"), ("a_only", "b_only")):
                assert one not in x or (x[one], x[other]) == (y[other], y[one])
    assert (there["only_a"], there["only_b"], there["left_out_invalid"]) == (
        back["only_b"], back["only_a"], back["left_out_invalid"],
    )  # fmt: skip
    assert [(d["case"], d["a"], d["b"]) for d in there["discordant"]] == [
        (d["case"], d["b"], d["a"]) for d in back["discordant"]
    ]


def test_numbers_of_a_probe_are_compared_over_the_cases_that_both_probed(runs: Runs) -> None:
    a, b = runs["control", "mixed"], runs["twin", "mixed"]
    rows = compare_runs(a, b)["probes"]
    both = [c["id"] for c in read_lines(a / "cases.jsonl")][::6]
    assert {(r["probe"], r["quantity"], r["kind"]) for r in rows} == {
        ("min-k", "z", "composition"), ("min-k", "z", "part"),
    }  # fmt: skip
    for row in rows:
        role = "whole" if row["kind"] == "composition" else "part:0"
        left, right = ([told_engine.drawn(m, c, role) for c in both] for m in ("control", "twin"))
        assert row["n"] == len(both) and (row["a"], row["b"]) == pytest.approx(
            (sum(left) / len(both), sum(right) / len(both))
        )
        assert row["value"] == pytest.approx(row["a"] - row["b"])


@pytest.mark.parametrize("name", QUICK)
def test_shards_make_the_run_without_shards(runs: Runs, name: str, tmp_path: Path, capsys: Capture) -> None:
    whole = runs["control", name]
    parts = [tmp_path / f"s{i}" for i in (1, 2)]
    for i, part in enumerate(parts, 1):
        assert _evaluate("control", name, part, "--shard", f"{i}/2") == done(part)
    order = parts[::-1]
    found = _printed(capsys, "merge", *map(str, order), "--out", str(tmp_path / "all"), "-q", code=done(whole))
    merged = tmp_path / "all"
    for file in ("cases.jsonl", "graded.jsonl"):
        a, b = (
            [json.dumps(r | {"run": None}, sort_keys=True) for r in read_lines(run / file)] for run in (merged, whole)
        )
        assert a == b if file == "cases.jsonl" else sorted(a) == sorted(b)
    before, after = read_json(whole / "metrics.json"), read_json(merged / "metrics.json")
    assert after["metrics"] == before["metrics"] and found["metrics"]
    sets = [{p.name: p.read_text() for p in (run / "casesets").glob("*")} for run in (whole, merged)]
    assert sets[0] == sets[1] and sets[0]
    one, many = read_json(whole / "manifest.json"), read_json(merged / "manifest.json")
    assert sorted(many["merged"]) == ["s1", "s2"] and many["n_cases"] == one["n_cases"]
    assert many["benchmark"]["n_cases"] == one["n_cases"] and many["identity"] == one["identity"]
    assert sum(read_json(p / "manifest.json")["n_cases"] for p in parts) == one["n_cases"]
    assert main(["merge", str(parts[0]), "--out", str(tmp_path / "some")]) == 1
    assert "2/2" in capsys.readouterr().err and not (tmp_path / "some").exists()


def test_a_merged_run_has_the_options_of_the_first_and_says_which_answers_it_does_not_ask_for(
    told: None, tmp_path: Path, capsys: Capture
) -> None:
    parts = [tmp_path / name for name in ("a", "b")]
    for seed, part in enumerate(parts, 1):
        data = ["-m", "organism:control", "-b", "organism:mixed", "--limit", "2", "--temperature", "0.5"]
        if part.name == "b":  # the same cases
            shutil.copyfile(parts[0] / "cases.jsonl", tmp_path / "mixed.jsonl")
            data[3], data[5] = str(tmp_path / "mixed.jsonl"), "9"
        main(["evaluate", *data, "--format", "plain", "-p", "compositionality-gap", "-o", str(part), "-q", "--seed",
              str(seed)])  # fmt: skip
    capsys.readouterr()
    for order in (parts, parts[::-1]):
        out = tmp_path / f"from {order[0].name}"
        main(["merge", *map(str, order), "--out", str(out)])
        said = [line for line in capsys.readouterr().err.splitlines() if "left out" in line]
        n = len(read_lines(order[1] / "asks.jsonl"))
        assert len(said) == 1 and f"{n} answers of {order[1]} are left out" in said[0]
        assert read_config(out)["seed"] == read_config(order[0])["seed"]
        assert [r["outcome"] for r in read_lines(out / "graded.jsonl")] == [
            r["outcome"] for r in read_lines(order[0] / "graded.jsonl")]  # fmt: skip


@pytest.mark.parametrize("name", QUICK)
def test_scoring_again_and_scoring_the_rows_alone_give_the_same_numbers(
    runs: Runs, name: str, tmp_path: Path, capsys: Capture
) -> None:
    run = Path(shutil.copytree(runs["control", name], tmp_path / runs["control", name].name))
    before = {p.name: p.read_bytes() for p in run.iterdir() if p.is_file() and p.suffix in (".json", ".jsonl")}
    scored = _printed(capsys, "score", str(run), "-q", code=done(run))
    after = {p.name: p.read_bytes() for p in run.iterdir() if p.name in before}
    assert {k for k in before if before[k] != after[k]} <= {"manifest.json"}
    metrics = read_json(run / "metrics.json")["metrics"]
    assert all(m in metrics for m in scored["metrics"]) and scored["metrics"]
    protocol = read_json(run / "metrics.json")["protocol"]
    rows = _printed(capsys, "score", str(run / "graded.jsonl"), "-p", protocol, "--cases", str(run / "cases.jsonl"),
                    code=done(run))  # fmt: skip
    assert rows["protocol"] == protocol
    own = {(m["metric"], json.dumps(m["group"])): (m["count"], m["n"], m["n_invalid"]) for m in metrics}
    for m in rows["metrics"]:
        assert own[m["metric"], json.dumps(m["group"])] == (m["count"], m["n"], m["n_invalid"])


def test_failing_cases_are_those_with_every_part_right_and_a_wrong_whole(runs: Runs, capsys: Capture) -> None:
    for name in ("mixed", "temporal"):
        run = runs["control", name]
        outcomes: dict[str, dict[str, str]] = {}
        for r in read_lines(run / "graded.jsonl"):
            outcomes.setdefault(r["case"], {})[r["role"]] = r["outcome"]
        gates = {c: [o for r, o in of.items() if r.startswith("part:") and "context" not in r]
                 for c, of in outcomes.items()}  # fmt: skip
        known = {c for c, of in gates.items() if set(of) == {"correct"}}
        wrong = {c for c in known if outcomes[c]["whole"] in ("incorrect", "abstained")}
        found = _printed(capsys, "ls", str(run), "--failures")["failures"]
        assert {f["case"] for f in found} == wrong
        rows = {r["case"]: r for r in read_lines(run / "graded.jsonl") if r["role"] == "whole"}
        assert all((f["gold"], f["answer"], f["cause"]) == (rows[f["case"]]["gold"], rows[f["case"]]["answer"], None)
                   for f in found)  # fmt: skip


def test_runs_are_listed_with_their_model_status_and_headline(runs: Runs, tmp_path: Path, capsys: Capture) -> None:
    folder = tmp_path / "runs"
    for (model, name), run in runs.items():
        shutil.copytree(run, folder / f"{model}-{name}")
    rows = {Path(r["run"]).name: r for r in _printed(capsys, "ls", str(folder))["runs"]}
    assert {*rows} == {f"{m}-{n}" for m, n in runs}
    for (model, name), run in runs.items():
        row, counted = rows[f"{model}-{name}"], read_json(run / "metrics.json")
        assert (row["model"], row["benchmark"], row["protocol"]) == (
            f"organism:{model}", f"organism:{name}", counted["protocol"],
        )  # fmt: skip
        headline = "residual_failure" if name == "temporal" else "composition"
        m = next(m for m in counted["metrics"] if m["metric"] == headline and not m["group"])
        assert row["headline"].startswith(headline) and f"n={m['n']}" in row["headline"]
        assert row["cases"] == read_json(run / "manifest.json")["n_cases"] and row["status"] == "complete"


def test_cases_that_were_changed_in_one_run_are_in_no_number_of_the_comparison(runs: Runs, tmp_path: Path) -> None:
    a, b = runs["control", "temporal"], Path(shutil.copytree(runs["twin", "temporal"], tmp_path / "b"))
    cases = read_lines(b / "cases.jsonl")
    cases[1]["question"] += " Please."
    cases[2]["parts"][0]["question"] += " Please."
    (b / "cases.jsonl").write_text("".join(json.dumps(c) + "\n" for c in cases))
    before, after = compare_runs(a, runs["twin", "temporal"]), compare_runs(a, b)
    left, right = _by_ask(a), _by_ask(b)
    changed = {k for k in left.keys() & right.keys() if k[0] == cases[1]["id"] or (
        k[0] == cases[2]["id"] and k[1].startswith("part:0"))}  # fmt: skip
    assert (before["changed"], after["changed"]) == (0, len(changed)) and after["shared"] == before["shared"] - len(
        changed
    )
    judged = [k for k in (left.keys() & right.keys()) - changed if "invalid" not in (left[k].outcome, right[k].outcome)]
    assert sum(r["n"] for r in after["roles"]) == len(judged)
    assert after["cases"]["changed"] == [cases[1]["id"]] and cases[1]["id"] not in str(after["discordant"])
    wholes = {m["metric"]: m["n"] + m["n_invalid"] for m in before["channels"] if not set(m["group"]) - {"per"}}
    assert {m["metric"]: m["n"] + m["n_invalid"] for m in after["channels"] if not set(m["group"]) - {"per"}} != wholes


# --- protocols on organisms -----------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(
    ("benchmark", "metrics", "sets"),
    [
        ("mixed", {"both", "composition", "gap", "press_gap"}, {"both-right-whole-wrong", "both-right-whole-right"}),
        ("temporal", {"atom_stability", "double_gate", "residual_failure"}, {"residual-failure", "gated-success"}),
        ("pairs", {"step:0", "composition", "independence_gap", "second_hop"}, {"second-hop-failure"}),
    ],
)
def test_a_protocol_runs_end_to_end_on_an_organism(
    benchmark: str, metrics: set[str], sets: set[str], tmp_path: Path
) -> None:
    run = tmp_path / benchmark
    words = ["--model", "organism:control", "--benchmark", f"organism:{benchmark}", "--limit", "4"]
    assert main(["evaluate", *words, "--out", str(run), "--quiet"]) == done(run)
    document = json.loads((run / "metrics.json").read_text())
    assert metrics <= {m["metric"] for m in document["metrics"]}
    assert sets <= {p.stem for p in (run / "casesets").glob("*.jsonl")}
    assert main(["study", "lengths", str(run)]) == 0
