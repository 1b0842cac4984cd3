"""Several runs: compared case by case, merged from shards; and what the machine can do."""

from __future__ import annotations

import json
import platform
import shutil
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import asdict
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from composcope.errors import InputError
from composcope.evaluation.asks import Ask
from composcope.evaluation.cases import Case, write_cases
from composcope.evaluation.graded import Graded
from composcope.evaluation.statistics import OTHER_PAIRS, SHARED_PAIRS, Interval
from composcope.experiments.cli import doctor, main
from composcope.experiments.cli.doctor import check_lines, examine
from composcope.experiments.config import Config
from composcope.experiments.evaluating import merge
from composcope.experiments.evaluating.merge import _common, _same_settings, made_otherwise
from composcope.experiments.run import compare, read_json, read_lines, write_json, write_lines, write_text
from composcope.experiments.run.compare import _role, compare_runs, comparison_lines
from composcope.experiments.run.folder import MEASURED
from composcope.experiments.run.reader import RunData, read_config
from composcope.experiments.run.schema import Manifest, ShardCases
from composcope.experiments.run.shared_cases import shared_cases

Capture = pytest.CaptureFixture[str]


@pytest.fixture(scope="module")
def evaluated(taught: Path, case_file: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    run = tmp_path_factory.mktemp("runs") / "all"
    assert main(["evaluate", "-m", str(taught), "-b", str(case_file), "-o", str(run), "-q", "--format", "plain"]) == 0
    return run


@pytest.fixture
def better(evaluated: Path, tmp_path: Path) -> Path:
    """The same run as if four more wholes had been right, one part wrong, one invalid and one case never asked."""
    run = Path(shutil.copytree(evaluated, tmp_path / "better"))
    rows = read_lines(run / "graded.jsonl")
    for row in rows:
        if row["role"] == "whole" and row["case"] in ("sum-01", "sum-03", "sum-05", "sum-07"):
            row |= {"outcome": "correct", "answer": row["gold"]}
        if row["role"] == "part:1" and row["case"] == "sum-04":
            row |= {"outcome": "incorrect", "answer": "0"}
        if row["role"] == "part:0" and row["case"] == "sum-02":
            row |= {"outcome": "invalid", "answer": None}
    write_lines(run / "graded.jsonl", [row for row in rows if row["case"] != "sum-00"])
    return run


def test_differences_are_a_minus_b_with_exact_test_and_everything_left_out_is_counted(
    evaluated: Path, better: Path
) -> None:
    found = compare_runs(evaluated, better)
    whole = found["roles"][0]
    assert (whole["role"], whole["n"]) == ("whole", 11)
    assert whole["difference"] == pytest.approx(-4 / 11)
    assert whole["low"] < whole["difference"] < whole["high"] < 0
    assert (whole["a_only"], whole["b_only"]) == (0, 4)
    assert whole["p"] == pytest.approx(2 * 0.5**4)
    others = [r["p"] for r in found["roles"][1:]]
    assert len(others) == 1 and whole["p"] < min(others), "the smallest of two is doubled"
    assert whole["p_adjusted"] == pytest.approx(2 * whole["p"])
    assert [d["case"] for d in found["discordant"]] == ["sum-01", "sum-03", "sum-05", "sum-07"]
    assert found["left_out_invalid"] == 1
    assert (found["only_a"], found["only_b"]) == (3, 0)
    lines = comparison_lines(found)
    assert lines[1] == "4 wholes on which they differ:"
    assert "sum-01" in lines[2]
    assert lines[-1] == "not compared: 1 invalid in A or B, 3 asked only in A"


def test_settings_that_differ_are_listed_with_both_values_and_the_model_is_not_one_of_them(
    evaluated: Path, better: Path
) -> None:
    assert not compare_runs(evaluated, better)["settings"]
    manifest = json.loads((better / "manifest.json").read_text())
    manifest["identity"] |= {"format": "xml", "model": "other", "shard": "1/2"}
    (better / "manifest.json").write_text(json.dumps(manifest))
    judged = Config.read(read_config(evaluated), judge="a-judge").as_config()
    write_json(better / "config.yaml", judged)
    found = compare_runs(evaluated, better)
    before = json.loads((evaluated / "manifest.json").read_text())["identity"]["format"]
    graded = ("judge", "none", "a-judge")
    assert found["settings"] == [("format", before, "xml"), ("shard", "not stated", "1/2"), graded]
    lines = [line for line in comparison_lines(found) if "not only the model" in line]
    assert [("xml" in line, "1/2" in line) for line in lines] == [(True, False), (False, True), (False, False)]
    again = Path(shutil.copytree(evaluated, better.parent / "again"))
    main(["score", str(again), "--compat", "agentcoma", "-q"])
    assert compare_runs(evaluated, again)["settings"] == [("compat", "none", "agentcoma")]
    (again / "config.yaml").unlink()
    settings = {name: sides for name, *sides in compare_runs(again, better)["settings"]}
    assert (settings["compat"], settings["judge"]) == (["agentcoma", "none"], ["not stated", "a-judge"])


def test_what_a_paper_counts_as_wrong_is_wrong_in_a_comparison_too(evaluated: Path, better: Path) -> None:
    rows = read_lines(better / "graded.jsonl")
    chosen = [{**r, "outcome": "invalid", "answer": None} if (r["case"], r["role"]) == ("sum-02", "whole") else r
              for r in rows]  # fmt: skip
    write_lines(better / "graded.jsonl", chosen)
    plain = compare_runs(evaluated, better)
    assert (plain["left_out_invalid"], plain["roles"][0]["n"], plain["roles"][0]["a_only"]) == (2, 10, 0)
    main(["score", str(better), "--compat", "agentcoma", "-q"])
    write_lines(better / "graded.jsonl", chosen)
    found = compare_runs(evaluated, better)
    assert (found["left_out_invalid"], found["roles"][0]["n"], found["roles"][0]["a_only"]) == (0, 11, 1)
    (shown,) = (d for d in found["discordant"] if d["case"] == "sum-02")
    assert (shown["a"]["outcome"], shown["b"]["outcome"]) == ("correct", "invalid")


def test_cases_that_share_facts_are_compared_by_what_they_share(evaluated: Path, better: Path) -> None:
    for folder in (better, alike := Path(shutil.copytree(evaluated, better.parent / "alike"))):
        rows = [{**row, "cluster": f"k{int(row['case'][-2:]) // 4}"} for row in read_lines(folder / "graded.jsonl")]
        write_lines(folder / "graded.jsonl", rows)
    apart, together = (compare_runs(a, better)["roles"][0] for a in (evaluated, alike))
    assert apart["difference"] == together["difference"] and apart["interval"] != together["interval"]


def test_abstaining_where_nobody_knows_is_right_in_a_comparison_too(evaluated: Path, better: Path) -> None:
    found = []
    for outcome in ("correct", "abstained"):
        rows = [{**r, "unknowable": True, "outcome": outcome} if (r["case"], r["role"]) == ("sum-02", "whole") else r
                for r in read_lines(better / "graded.jsonl")]  # fmt: skip
        write_lines(better / "graded.jsonl", rows)
        found.append(compare_runs(evaluated, better))
    right, abstained = found
    assert right["roles"] == abstained["roles"] and right["shares"] == abstained["shares"]
    assert [d["case"] for d in right["discordant"]] == [d["case"] for d in abstained["discordant"]]


def test_other_wordings_of_parts_are_compared_apart_from_the_parts() -> None:
    roles = ("whole", "part:0", "part:1", "part:0:paraphrase:2", "part:1:extra-context", "whole:cot")
    assert [_role(r) for r in roles] == ["whole", "part", "part", "paraphrase", "extra-context", "whole:cot"]
    assert [_role(f"no-preamble/{r}") for r in roles] == [f"no-preamble/{_role(r)}" for r in roles]


@pytest.mark.parametrize("shared", ["cluster", "case", "atom"])
def test_parts_are_paired_with_what_their_case_and_their_fact_share(shared: str) -> None:
    # ten groups of eight parts that change together: ten independent differences, not eighty
    def row(i: int, right: bool) -> Graded:
        group = i // 8
        about = {"cluster": None, "case": f"c{i // 2}", "atom": f"a{i}"} | {shared: f"g{group}"}
        return Graded(**about, role="part:0", outcome="correct" if right else "incorrect")  # pyright: ignore[reportArgumentType]

    changed = {0, 1, 2, 3, 4, 5}
    sides = [
        {(f"k{i}", "part:0", 0): row(i, better and i // 8 in changed) for i in range(80)} for better in (False, True)
    ]
    found = compare._paired("part", list(sides[0]), *sides, seed=0)
    assert found["b_only"] == 48 and found["difference"] == pytest.approx(-0.6)
    assert 0.001 < found["p"] < 0.05 and found["high"] - found["low"] > 0.4


def test_runs_without_a_common_case_cannot_be_compared(evaluated: Path, better: Path, capsys: Capture) -> None:
    rows = read_lines(better / "graded.jsonl")
    write_lines(better / "graded.jsonl", [{**row, "case": f"x{row['case']}"} for row in rows])
    assert main(["compare", str(evaluated), str(better)]) == 1
    assert "no case in common" in capsys.readouterr().err


def test_the_answers_of_a_merged_run_are_those_of_its_file_and_a_run_without_one_has_none(tmp_path: Path) -> None:
    assert RunData(tmp_path).asks == {}
    ask = asdict(Ask("c", "whole", "1 + 1?", "2", "number"))
    write_lines(tmp_path / "asks.jsonl", [{"ask": key, **ask} for key in ("a", "b", "a")])
    assert RunData(tmp_path).asks.keys() == {"a", "b"}


def test_shards_merge_to_the_run_of_all_cases(
    evaluated: Path, taught: Path, tmp_path: Path, planted: Callable[..., list[Case]], capsys: Capture
) -> None:
    for i in (0, 1):
        write_cases(planted()[i * 6 : i * 6 + 6], tmp_path / f"shard-{i}.jsonl")
        args = ["-b", str(tmp_path / f"shard-{i}.jsonl"), "-o", str(tmp_path / f"s{i}"), "-q", "--format", "plain"]
        assert main(["evaluate", "-m", str(taught), *args]) == 0
    write_text(tmp_path / "s1" / "probes" / MEASURED / "host.safetensors", "what a probe measured")
    judge = {"identity": {"model": "j"}, "provenance": {}}  # and the first run was interrupted in its probes
    for run, changed in (("s0", {"judge": judge, "status": "interrupted"}), ("s1", {"versions": {"torch": "0"}})):
        made = tmp_path / run / "manifest.json"
        made.write_text(json.dumps({**read_json(made), **changed}))
    assert main(["merge", str(tmp_path / "s0"), str(tmp_path / "s1"), "--out", str(tmp_path / "m")]) == 0
    differing = [
        line.split("different settings: ")[1] for line in capsys.readouterr().err.splitlines() if "diff" in line
    ]
    counts = {said.split()[0]: said.endswith(f"; those of {tmp_path / 's0'} count") for said in differing}
    assert counts == {"torch": False, "judge": True}
    assert (tmp_path / "m" / "probes" / MEASURED / "host.safetensors").read_text() == "what a probe measured"
    merged, whole = (read_json(run / "metrics.json")["metrics"] for run in (tmp_path / "m", evaluated))
    assert merged == whole
    manifest = read_json(tmp_path / "m" / "manifest.json")
    assert RunData(tmp_path / "m").benchmark == "shard-0+shard-1"
    told = [manifest["benchmark"]["name"], manifest["benchmark"]["sha256"]]
    assert told == ["shard-0+shard-1", manifest["identity"]["data"]]
    assert (
        manifest["merged"] == ["s0", "s1"] and manifest["judge"] == judge and manifest["mixed"].keys() == counts.keys()
    )
    assert manifest["benchmark"]["n_cases"] == manifest["n_cases"] == 12 and manifest["n_invalid"] == 0
    (tmp_path / "m" / "manifest.json").write_text(json.dumps({**manifest, "n_invalid": 5}))
    assert main(["score", str(tmp_path / "m"), "-q"]) == 0
    assert read_json(tmp_path / "m" / "manifest.json") == manifest, "as the answers are graded now"


def test_runs_that_were_asked_otherwise_do_not_merge(
    evaluated: Path, better: Path, tmp_path: Path, capsys: Capture
) -> None:
    manifest = (better / "manifest.json").read_text()
    other = {"protocol": "double-gate", "format": "xml", "prompting": "raw", "weights": "w", "model": "other",
             "asking": {"temperature": 1.0}}  # fmt: skip
    for name, value in other.items():
        changed = json.loads(manifest)
        changed["identity"][name] = value
        (better / "manifest.json").write_text(json.dumps(changed))
        assert main(["merge", str(evaluated), str(better), "--out", str(tmp_path / "m")]) == 1
        assert f"{name} is {value} and " in capsys.readouterr().err
    assert main(["merge", str(evaluated), "--out", str(better)]) == 1
    assert "is not empty" in capsys.readouterr().err
    assert main(["merge", str(evaluated), "--out", str(better / "manifest.json")]) == 1
    assert "is a file" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("changed", "field"),
    [
        ({"seed": 1}, "seed"),
        ({"data": "other"}, "data"),
        ({"benchmark": "other"}, "benchmark"),
        ({"asking": {"few_shot": "2"}}, "asking"),
        ({"dtype": "bfloat16"}, "dtype"),
        ({"limit": 3}, "--limit"),
        ({}, None),
    ],
)
def test_shards_that_were_asked_otherwise_do_not_merge(changed: dict[str, Any], field: str | None) -> None:
    def shard(path: str, **facts: Any) -> Any:
        numerics = {"dtype": facts.pop("dtype", "float32")}
        return SimpleNamespace(path=Path(path), manifest=Manifest(identity={"seed": 0, **facts}, numerics=numerics))

    limits = None, changed.pop("limit", None)
    parts = [ShardCases(index=i, of=2, n_cases=4, positions=[], limit=n) for i, n in enumerate(limits, 1)]
    with pytest.raises(InputError, match=f"shard 2/2: {field} is") if field else nullcontext():
        _same_settings([shard("a"), shard("b", **changed)], parts)


def test_runs_of_several_benchmarks_merge_to_one_data_set_in_any_order() -> None:
    runs: Any = [SimpleNamespace(path=Path(d), manifest=Manifest(identity={"data": d, "benchmark": d})) for d in "abb"]
    assert _common(runs)["data"] == _common(runs[::-1])["data"] not in ("a", "b")
    assert [_common(some)["benchmark"] for some in (runs, runs[1:])] == ["a+b", "b"]
    assert _common(runs[1:])["data"] == "b"


def test_what_the_answers_of_merged_runs_were_made_with_is_compared_by_name() -> None:
    def run(**engine: str) -> Any:
        facts = {"identity": {}, "provenance": engine}
        return SimpleNamespace(manifest=Manifest.model_validate({"identity": {}, "engine": facts}), config=None)

    assert made_otherwise([run(engine="transformers"), run(engine="transformers", host="b")]) == {}
    assert made_otherwise([run(engine="transformers"), run(engine="vllm")]) == {"engine": ["transformers", "vllm"]}


def test_merged_runs_with_another_judge_or_way_of_counting_are_said() -> None:
    def run(judge: str | None, compat: str | None) -> Any:
        facts = {"judge": {"identity": {"model": judge}, "provenance": {}}} if judge else {}
        config = SimpleNamespace(asking=SimpleNamespace(compat=compat))
        return SimpleNamespace(manifest=Manifest.model_validate({"identity": {}, **facts}), config=config)

    assert made_otherwise([run("j", "stad"), run("j", "stad")]) == {}
    found = made_otherwise([run(None, None), run("j", "stad")])
    assert found == {"judge": ["unset", "j"], "compat": ["unset", "stad"]}


def test_score_without_the_journal_names_what_is_missing(evaluated: Path, tmp_path: Path, capsys: Capture) -> None:
    run = Path(shutil.copytree(evaluated, tmp_path / "r"))
    shutil.rmtree(run / "journal")
    assert main(["score", str(run)]) == 1
    assert "not in the journal" in capsys.readouterr().err


def test_doctor_says_what_is_there_and_what_to_do(capsys: Capture) -> None:
    rows = {row["check"]: row for row in examine()}
    assert rows["python"]["ok"] and rows["torch"]["ok"] and rows["python"]["value"] == platform.python_version()
    assert all(row["fix"] for row in rows.values() if not row["ok"])
    assert len(check_lines(list(rows.values()))) == len(rows)
    assert not any(rows[name]["required"] for name in doctor.EXTRAS) and rows["torch"]["required"]
    (lacking,), (spare,) = (check_lines([doctor._row("x", False, "?", "pip", required=r)]) for r in (True, False))
    assert lacking.startswith("FIX") and not spare.startswith("FIX") and lacking[3:] == spare[3:]
    assert main(["doctor", "--json"]) == 0
    assert {row["check"] for row in json.loads(capsys.readouterr().out)["checks"]} == set(rows)


@pytest.mark.parametrize(("required", "code"), [(True, 1), (False, 0)])
def test_doctor_fails_where_something_that_is_needed_is_missing(
    required: bool, code: int, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    rows = [doctor._row("python", True, "3.11"), doctor._row("numpy", False, None, "pip", required=required)]
    monkeypatch.setattr(doctor, "examine", lambda _: rows)
    assert main(["doctor", "--json"]) == code
    assert json.loads(capsys.readouterr().out) == {"schema": 1, "ok": code == 0, "checks": rows}


def test_doctor_lists_organisms_that_are_not_there_with_the_way_to_get_them(monkeypatch: pytest.MonkeyPatch) -> None:
    def resolved(name: str) -> SimpleNamespace:
        if name.endswith("damaged"):
            raise InputError(f"{name} is not there")
        return SimpleNamespace(location=f"weights of {name}")

    monkeypatch.setattr(doctor, "DOSES", ("healthy", "damaged"))
    monkeypatch.setattr(doctor, "resolve_model", resolved)
    healthy, damaged = doctor._organisms()
    assert (healthy["check"], healthy["ok"], healthy["fix"]) == ("organism:healthy", True, None)
    assert (damaged["check"], damaged["ok"], damaged["required"]) == ("organism:damaged", False, False)
    assert healthy["value"] == "weights of organism:healthy" and damaged["fix"]


def test_a_channel_is_a_line_with_its_interval_and_without_what_every_channel_is_counted_per() -> None:
    row = {"metric": "delta_comp", "group": {"per": "fact", "depth_bin": 4}, "n": 9, "note": "9 facts"}
    value = {"value": -0.25, "low": -0.5, "high": 0.1, "interval": "t"}
    assert compare._channel_line({**row, **value}) == (
        "delta_comp (depth_bin 4): -25.0 points [-50.0 points, 10.0 points] (t), n=9 (9 facts)"
    )
    steps = {"metric": "delta_depth", "group": {"per": "fact"}, "value": 1.5, "low": None, "high": None}
    assert compare._channel_line({**row, **steps}) == "delta_depth: 1.50 steps, n=9 (9 facts)"
    known = {**row, **steps, "low": -0.5, "high": 2, "interval": "t"}
    assert compare._channel_line(known) == "delta_depth: 1.50 steps [-0.50 steps, 2.00 steps] (t), n=9 (9 facts)"


CASES = [
    {"schema": 1, "id": f"c{i}", "question": f"Whole {i}?", "answer": str(i),
     "parts": [{"question": f"Part {i}?", "answer": "x"}, {"question": f"Other {i}?", "answer": "y"}]}
    for i in range(4)
]  # fmt: skip


def run(folder: Path, cases: Sequence[Mapping[str, Any]], right: bool = True) -> Path:
    folder.mkdir()
    (folder / "cases.jsonl").write_text("".join(json.dumps(c) + "\n" for c in cases))
    graded = [
        {"schema": 1, "case": c["id"], "role": role, "repeat": 0, "model": "m", "run": folder.name,
         "ask": c["id"] + role, "outcome": "correct" if right or role != "whole" else "incorrect", "answer": "x",
         "gold": "x"}
        for c in cases for role in ("whole", "part:0", "part:1")
    ]  # fmt: skip
    (folder / "graded.jsonl").write_text("".join(json.dumps(g) + "\n" for g in graded))
    (folder / "manifest.json").write_text(json.dumps({"schema": 1, "identity": {"model": "m"}}))
    (folder / "metrics.json").write_text(json.dumps({"schema": 1, "protocol": "compositionality-gap", "metrics": []}))
    return folder


def test_an_id_with_another_question_is_another_case(tmp_path: Path) -> None:
    other = [CASES[0], {**CASES[1], "question": "Else?"}, {**CASES[2], "answer": "7"}, {**CASES[3], "id": "new"}]
    a, b = run(tmp_path / "a", CASES), run(tmp_path / "b", other, right=False)
    found = shared_cases(RunData(a), RunData(b))
    assert (found.n_a, found.n_b, found.same, found.changed) == (4, 4, ("c0",), ("c1", "c2"))
    assert found.comparable("c0", "whole") and not found.comparable("c1", "whole")
    document = compare_runs(a, b)
    whole = next(r for r in document["roles"] if r["role"] == "whole")
    assert whole["n"] == 1 and [d["case"] for d in document["discordant"]] == ["c0"]
    assert document["changed"] == 6 and document["only_a"] == document["only_b"] == 3
    assert document["left_out_invalid"] == 0, "every answer was judged"
    lines = "\n".join(comparison_lines(document))
    assert "1 cases are the same" not in lines and "1 case is the same in both runs (A has 4, B 4)" in lines
    assert "2 ids in common but with another question or answer, not compared" in lines
    assert "6 asked in both with another question or answer" in lines


def test_an_id_with_other_options_or_evidence_is_another_case(tmp_path: Path) -> None:
    chosen = {**CASES[0], "answer": "B", "answer_type": "choice", "options": ["red", "plum"]}
    told = {**CASES[1], "evidence": ["Ann is 7."]}
    other = [{**chosen, "options": ["pear", "blue"]}, {**told, "evidence": ["Ann is 8."]}, CASES[2]]
    a, b = run(tmp_path / "a", [chosen, told, CASES[2]]), run(tmp_path / "b", other)
    assert shared_cases(RunData(a), RunData(b)).changed == ("c0", "c1")


def test_another_decomposition_leaves_the_whole_comparable(tmp_path: Path) -> None:
    parts = [CASES[0]["parts"][0], {"question": "Another way?", "answer": "y"}, {"question": "Third?", "answer": "z"}]
    a, b = run(tmp_path / "a", CASES[:1]), run(tmp_path / "b", [{**CASES[0], "parts": parts}])
    found = shared_cases(RunData(a), RunData(b))
    for bare in ("", "no-preamble/"):
        asked = (f"{bare}{role}" for role in ("whole", "part:0", "part:1", "part:1:paraphrase:0"))
        assert [found.comparable("c0", role) for role in asked] == [True, True, False, False]
    assert found.comparable("c0", "part:0:paraphrase:1") and not found.comparable("c0", "part:2")
    # a scaffold of two steps reveals the second part; the second question of a pair is the second part
    others = ("scaffold:1", "placeholder:1", "pair:q1", "code", "scaffold:2", "placeholder:2", "co-presented")
    assert [found.comparable("c0", role) for role in others] == [True] * 4 + [False] * 3
    assert "parts that differ in 1 case" in found.sentence()


def test_runs_with_the_same_ids_and_other_questions_only_are_refused(tmp_path: Path) -> None:
    a, b = run(tmp_path / "a", CASES[:1]), run(tmp_path / "b", [{**CASES[0], "question": "Else?"}])
    with pytest.raises(InputError, match=r"no case in common \(1 shared id"):
        compare_runs(a, b)


def test_rows_without_a_case_file_are_taken_at_their_ids(tmp_path: Path) -> None:
    a, b = run(tmp_path / "a", CASES), run(tmp_path / "b", CASES)
    (b / "cases.jsonl").unlink()
    assert compare_runs(a, b)["roles"][0]["n"] == 4


def test_roles_are_listed_by_their_numbers_after_the_whole(tmp_path: Path) -> None:
    folders = [run(tmp_path / name, CASES) for name in "ab"]
    for folder in folders:
        with (folder / "graded.jsonl").open("a") as file:
            for n in (10, 2, 1):
                row = {"case": "c0", "role": f"scaffold:{n}", "ask": f"s{n}", "outcome": "correct"}
                file.write(json.dumps({"schema": 1, "repeat": 0, "model": "m", "run": folder.name, **row}) + "\n")
    assert [r["role"] for r in compare_runs(*folders)["roles"]] == [
        "whole", "part", "scaffold:1", "scaffold:2", "scaffold:10"
    ]  # fmt: skip


def test_settings_that_differ_between_merged_runs_are_named_with_their_values() -> None:
    def run(torch: str, dtype: str) -> Any:
        return SimpleNamespace(manifest=SimpleNamespace(
            composcope={"version": "1", "source": "abc"}, versions={"torch": torch, "numpy": torch}, engine=None,
            judge=None, numerics={"dtype": dtype, "device": "cpu"}), config=None)  # fmt: skip

    assert merge.made_otherwise([run("2", "float32"), run("3", "float32"), run("2", "float16")]) == {
        "torch": ["2", "3"], "dtype": ["float32", "float16"]}  # fmt: skip
    assert merge.made_otherwise([run("2", "float32")] * 2) == {}
    parts = [SimpleNamespace(positions=(1, 3)), SimpleNamespace(positions=(0, 2))]
    runs = [SimpleNamespace(cases=dict(zip(ids, ids, strict=True))) for ids in ("bd", "ac")]
    assert merge._in_order(runs, parts) == list("abcd")  # type: ignore[arg-type, comparison-overlap]


def test_two_runs_are_compared_in_lines_that_name_the_side_of_each_number() -> None:
    role = {"role": "whole", "n": 40, "a": 0.5, "b": 0.25, "difference": 0.25, "low": -0.05, "high": 0.5,

            "interval": "t", "a_only": 12, "b_only": 2, "p": 0.01, "p_adjusted": 0.03, "test": "mcnemar",
            "note": None}  # fmt: skip
    shares = [Interval(0.3, 0.7, "exact"), Interval(None, None, "too few")]
    sides, difference = compare._role_lines(role, shares)
    assert sides == "whole: A 50.0 % [30.0 %, 70.0 %] (exact), B 25.0 %, n=40"
    assert difference == "  A - B: 25.0 points [-5.0 points, 50.0 points] (t), p=0.01 (Holm 0.03), mcnemar"
    probe = {"quantity": "q", "kind": "k", "a": 0.5, "b": 0.25, "n": 8, "value": 0.25, "low": 0.1, "high": 0.4,

            "n_dropped": 3, "interval": "t", "effect": 0.5, "test": "welch", "p": 0.02, "p_adjusted": 0.04,
            "probe": "x", "note": ""}  # fmt: skip
    first, *rest = compare.probe_lines([{**probe, "p": p} for p in (0.5, None, 0.1)], ["said"], most=2)
    assert (
        first == "probe x, 3 numbers on the cases probed in both, the first 2; --json has all:" and rest[-1] == "said"
    )
    assert [" p=0.1 " in line or " p=0.5 " in line for line in rest] == [True, True, False] and " p=0.1 " in rest[0]
    assert compare._probe_line(probe) == (
        "q (k): A 0.5, B 0.25, n=8 (3 more cases in one run only), difference +0.25 [+0.1, +0.4] (t), g=0.50, "
        "welch p=0.02 (Holm 0.04)"
    )


@pytest.mark.parametrize(
    ("low", "p", "explained"), [(0.01, 0.0625, True), (0.01, 0.04, False), (-0.01, 0.0625, False), (None, 0.5, False)]
)
def test_an_interval_that_leaves_out_0_beside_a_p_that_is_not_small_is_explained(
    low: float | None, p: float, explained: bool
) -> None:
    role = {"low": low, "high": None if low is None else 0.8, "p": p, "test": SHARED_PAIRS}
    assert ("leaves out 0" in compare._test(role)) == explained and "two tests" in compare._test(role)
    assert compare._test({**role, "test": "exact McNemar"}) == "exact McNemar"


def test_shares_have_their_intervals_in_the_text_and_the_document_stays_as_it_was(
    evaluated: Path, better: Path, capsys: Capture
) -> None:
    found = compare_runs(evaluated, better)
    whole, (a, b) = found["roles"][0], found["shares"]["whole"]
    assert a.low < whole["a"] < a.high and b.low < whole["b"] < b.high
    assert main(["compare", str(evaluated), str(better), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert set(found) - set(told) == {"shares"}
    assert main(["compare", str(evaluated), str(better)]) == 0
    said = capsys.readouterr().out
    assert said.count(" %]") == 2 * len(found["roles"]) and OTHER_PAIRS not in said


@pytest.mark.parametrize(
    ("ok", "required", "line"),
    [(True, True, "ok  x: 1"), (False, True, "FIX x: 1  -> do it"), (False, False, "-   x: 1  -> do it")],
)
def test_a_check_of_the_machine_has_its_fix_only_where_it_fails(ok: bool, required: bool, line: str) -> None:
    row = doctor._row("x", ok, 1, "do it", required=required)
    assert doctor.check_lines([row]) == [line]


def test_a_gpu_is_named_with_its_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    import torch

    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda: (3 << 30, 9 << 30))
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda: "GPU")
    assert [row["value"] for row in doctor._device()] == ["GPU, 3.0 of 9.0 GiB free"]


def test_little_space_is_told_with_the_folder_and_old_pythons_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    for free, ok in ((1 << 30, True), ((1 << 30) - 1, False)):
        monkeypatch.setattr(doctor.shutil, "disk_usage", lambda _, free=free: SimpleNamespace(free=free))
        rows = doctor._disk()
        assert [r["ok"] for r in rows[:2]] == [ok, ok] and {r["required"] for r in rows} == {False}
        assert all((str(Path.cwd()) in str(r["fix"])) == (not ok) for r in rows[:1])
    for version, ok in (((3, 10), False), ((3, 11), True), ((3, 13), True), ((3, 14), False)):
        monkeypatch.setattr(doctor.sys, "version_info", version)
        assert doctor._python()[0]["ok"] == ok


def _shard(folder: Path, number: int, positions: list[int], **about: Any) -> Any:
    path = folder / f"part-{len(list(folder.iterdir()))}"
    path.mkdir()
    given = {"index": number, "of": 2, "n_cases": 4, "positions": positions, "limit": None}
    write_json(path / "shard.json", {**given, **{k: v for k, v in about.items() if k in given}})
    (path / "graded.jsonl").touch()
    manifest = {"stopped": None, "status": "complete", "identity": {}, "numerics": {"dtype": "float32"}}
    manifest |= {k: v for k, v in about.items() if k in manifest}
    cases = {str(i): Case(str(i), f"{i}?", "1") for i in positions[: about.get("held")]}
    return SimpleNamespace(path=path, manifest=SimpleNamespace(**manifest), cases=cases)


def test_cases_of_shards_come_back_in_the_order_of_the_benchmark(tmp_path: Path) -> None:
    runs = [_shard(tmp_path, 2, [1, 2]), _shard(tmp_path, 1, [0, 3])]
    parts = merge._shards(runs)
    assert parts is not None and [c.id for c in merge._in_order(runs, parts)] == ["0", "1", "2", "3"]


@pytest.mark.parametrize(
    ("about", "said"),
    [({"stopped": "--max-cost"}, r"shard 2/2 is not finished \(--max-cost\)"),
     ({"status": "interrupted"}, r"is not finished \(interrupted\)"), ({"held": 1}, "should hold 2 cases"),
     ({"numerics": {"dtype": "float16"}}, "dtype is float16, and float32"), ({"n_cases": 5}, "number of cases is 5"),
     ({"limit": 3}, "--limit is 3, and unset"), ({"index": 1}, "shard 1/2 is given twice"),
     ({"of": 3}, "number of shards is 3, and 2")],
)  # fmt: skip
def test_shards_that_are_not_all_of_one_run_are_refused(about: dict[str, Any], said: str, tmp_path: Path) -> None:
    runs = [_shard(tmp_path, 1, [0, 3]), _shard(tmp_path, 2, [1, 2], **about)]
    with pytest.raises(InputError, match=said):
        merge._shards(runs)
    (runs[1].path / "shard.json").unlink()
    with pytest.raises(InputError, match="is not a shard, but"):
        merge._shards(runs)
    (runs[0].path / "shard.json").unlink()
    assert merge._shards(runs) is None


def test_a_case_is_the_same_in_all_runs_that_are_merged(tmp_path: Path) -> None:
    def run(name: str, **answers: str) -> Any:
        cases = {id: Case(id, f"{id}?", answer) for id, answer in answers.items()}
        return SimpleNamespace(path=tmp_path / name, cases=cases)

    joined = merge._join_cases([run("x", a="1", b="2"), run("y", b="2", c="3")])
    assert [c.id for c in joined] == ["a", "b", "c"]
    with pytest.raises(InputError, match=f"{tmp_path / 'y'}: case 'b' differs"):
        merge._join_cases([run("x", a="1", b="2"), run("y", b="3")])
    (tmp_path / "x").mkdir()
    with pytest.raises(InputError, match=r"x/cases\.jsonl"):
        merge._join_cases([run("x")])


def test_a_run_is_not_compared_with_itself(synthetic: ModuleType, tmp_path: Path) -> None:
    run = synthetic.make_run(tmp_path / "run", n=3, probes=())
    with pytest.raises(InputError, match="the same run; give two"):
        compare_runs(run, tmp_path / "." / "run")
