"""The printed numbers: well formed, found where they belong and nowhere else."""

from __future__ import annotations

import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from composcope.evaluation.metrics import Metric
from composcope.experiments import composition_collapse, compositional_gsm, stad
from composcope.experiments.console import exits
from composcope.experiments.studies.results import benchmark_key, beside, group_key, name_key, pair_name, table
from composcope.experiments.studies.spec import Spec
from composcope.experiments.studies.study import STUDIES, Study, scaled_layers

from .bare_studies import run_of, study_of

_VALUE = re.compile(r"[-+]?\d+(\.\d+)?( to \d+(\.\d+)?)?")


def test_every_printed_number_is_a_number_with_a_source() -> None:
    rows = table()
    assert len(rows) > 400
    for row in rows:
        assert row.study in STUDIES, row
        assert _VALUE.fullmatch(row.value), row
        assert row.source and row.model and row.metric, row
        assert not row.n or int(row.n) > 0
    keys = [(r.study, r.metric, r.group, r.model, r.benchmark) for r in rows]
    assert len(set(keys)) == len(keys)


def test_agentcomas_accuracies_are_counts_of_180_and_within_frechet_bounds() -> None:
    rows = [r for r in table() if r.study == "agentcoma" and r.source == "AgentCoMa, Table 4" and not r.group]
    models = {r.model for r in rows}
    assert len(models) == 61
    for model in models:
        found = {r.metric: round(float(r.value) * 1.8) for r in rows if r.model == model}
        assert max(0, found["step:0"] + found["step:1"] - 180) <= found["both"] <= min(found["step:0"], found["step:1"])
        printed = {r.metric: float(r.value) for r in rows if r.model == model}
        assert all(abs(found[k] / 1.8 - v) < 0.06 for k, v in printed.items()), model


def test_a_model_of_the_paper_is_found_by_hub_id_and_folder() -> None:
    for name in ("Qwen/Qwen2.5-7B-Instruct", "/models/Qwen2.5-7B-Instruct/"):
        assert beside("agentcoma", "composition", {}, name) == ("51.7 % (n=180)", "AgentCoMa, Table 4")
    assert beside("agentcoma", "gap", {}, "Qwen/Qwen2.5-7B-Instruct")[0] == "-22.2 points (n=180)"
    assert name_key("Qwen/Qwen2.5-7B-Instruct") != name_key("Qwen/Qwen2.5-7B")
    # STaD's "Qwen2.5-3B" and AgentCoMa's "Qwen3 1.7B" are tuned models, and not the ones of that name on the hub.
    assert beside("stad", "composition", {}, "Qwen/Qwen2.5-3B-Instruct", "hub:tot")[0] == "31.84 % (n=1448)"
    assert "31.84" not in beside("stad", "composition", {}, "Qwen/Qwen2.5-3B", "hub:tot")[0]
    assert beside("agentcoma", "gap", {}, "Qwen/Qwen3-1.7B")[0].startswith("people")


def test_another_model_stands_beside_the_papers_summaries() -> None:
    text, source = beside("agentcoma", "composition", {}, "organism:control")
    assert text == "people: 82.8 % (n=180); median of 61 models: 42.2 % (n=61)"
    assert "Table 2" in source
    assert beside("agentcoma", "press_gap", {}, "organism:control") == ("", "")


def test_another_benchmark_has_its_own_numbers_or_none() -> None:
    text, _ = beside("agentcoma", "gap", {}, "organism:control", "bamboogle:bamboogle.json")
    assert text == "mean of 16 models, bamboogle: -1.0 points (n=16)"
    assert beside("agentcoma", "gap", {}, "Qwen/Qwen2.5-7B-Instruct", "multiarith:m.json")[0].startswith("mean of 16")
    assert beside("agentcoma", "quadrant", {"quadrant": "11"}, "x", "bamboogle:b.json") == ("", "")
    # A model's ToT accuracy says nothing about it on other data.
    assert beside("stad", "composition", {}, "Qwen/Qwen2.5-3B-Instruct", "hub:tot")[0] == "31.84 % (n=1448)"
    assert "31.84" not in beside("stad", "composition", {}, "Qwen/Qwen2.5-3B-Instruct", "organism:mixed")[0]


def test_groups_are_compared_whatever_their_order() -> None:
    assert group_key({"family": "Rank", "depth_bin": 4}) == "depth_bin=4;family=rank"
    text, _ = beside("composition-collapse", "residual_failure", {"family": "rank", "depth_bin": 4}, "Qwen/Qwen3-8B")
    assert text == "92.9 %"
    built = {"family": "temporal_rank", "depth_bin": 4}
    assert beside("composition-collapse", "residual_failure", built, "Qwen/Qwen3-8B")[0] == "92.9 %"


def test_a_served_model_of_the_paper_is_found_by_its_name() -> None:
    served = "Qwen/Qwen2.5-7B-Instruct@http://127.0.0.1:8000/v1"
    assert beside("agentcoma", "composition", {}, served) == beside(
        "agentcoma", "composition", {}, "Qwen/Qwen2.5-7B-Instruct"
    )


def test_files_and_splits_of_stad_say_which_benchmark_was_scaffolded() -> None:
    model, skill = "Qwen/Qwen2.5-3B-Instruct", {"skill": "Proportional reasoning"}
    for data in ("stad:made/gsm8k_final.jsonl", "hub:stad:gsm8k", "stad:gsm8k_scaffolded.jsonl"):
        assert beside("stad", "composition", {}, model, data)[0] == "80.36 % (n=1176)", data
        assert beside("stad", "skill_accuracy", skill, model, data) == ("77 %", "STaD, Table 10")
    assert beside("stad", "composition", {}, model, "stad:tot_arithmetic_final.jsonl")[0] == "31.84 % (n=1448)"
    # All of the released data, or a file of another name: no model's own numbers.
    assert "80.36" not in beside("stad", "composition", {}, model, "hub:stad")[0]
    assert "80.36" not in beside("stad", "composition", {}, model, "stad:mine.jsonl")[0]


def test_a_pair_of_the_paper_is_found_by_its_two_models() -> None:
    pair = pair_name("meta-llama/Meta-Llama-3-8B-Instruct", "models/Meta-Llama-3-8B/")
    assert beside("compositional-gsm", "pair_gain", {"quantity": "composition"}, pair)[0] == "12.6 points (n=1200)"
    other_way = pair_name("meta-llama/Meta-Llama-3-8B", "meta-llama/Meta-Llama-3-8B-Instruct")
    assert "Llama-3 70B" in beside("compositional-gsm", "pair_gain", {"quantity": "composition"}, other_way)[0]
    own, other = (
        beside("compositional-gsm", "pair_gain", {"quantity": "composition"}, p, references=False)
        for p in (pair, other_way)
    )
    assert own[0] == "12.6 points (n=1200)" and other == ("", ""), "reference values only where they are wanted"


def test_recovery_by_chain_of_thought_stands_beside_the_papers() -> None:
    text, source = beside("composition-collapse", "recovery", {"depth_bin": 6, "prompt": "cot"}, "organism:twin")
    assert text == "Qwen3-8B thinking: 70.0 % (n=10)"
    assert source == "Composition collapse, section 6"


def test_stads_printed_shares_add_up() -> None:
    """Solved alone, solved with help and unsolved are all the tasks of a combination; percentages are cut off there."""
    shares: dict[tuple[str, str, str], dict[str, float]] = {}
    for r in table():
        if r.study == "stad" and r.group.startswith("combination=") and r.unit == "%":
            shares.setdefault((r.group, r.model, r.benchmark), {})[r.metric] = float(r.value)
    assert len(shares) == 9 * 6
    for key, found in shares.items():
        assert 99.9 < sum(found.values()) < 100.06, key


def test_layers_are_the_published_ones_or_at_the_same_relative_depth() -> None:
    published = composition_collapse.LAYERS
    assert tuple(scaled_layers(published, 36, 36)) == published
    assert scaled_layers(published, 36, 4) == [0, 1, 2, 3]
    deep = scaled_layers(published, 36, 80)
    assert deep[0] == 0 and deep[-1] == 79 and len(deep) == len(published)


def test_a_study_with_a_failed_run_or_unjudged_answers_does_not_end_well() -> None:
    ends = [({}, 0, exits.OK), ({}, 3, exits.INVALID_REMAINS), ({"a": "why"}, 0, exits.USER_ERROR),
            ({"a": "why"}, 3, exits.USER_ERROR)]  # fmt: skip
    for failed, n_invalid, code in ends:
        study = Study(Spec(()), STUDIES["stad"], Path("s"), (), failed=failed, n_invalid=n_invalid)
        assert study.exit_code() == code


def test_depths_are_those_that_each_benchmark_counts_in() -> None:
    def run(data: str, *depths: dict[str, int]) -> Any:
        cells = [more | depth for depth in ({}, *depths) for more in ({}, {"family": "rank, depth"})]
        found = [Metric("residual_failure", g, n=9, value=0.5) for g in cells]
        found += [Metric("recovery", {**depth, "prompt": "cot"}, n=9, value=0.5) for depth in ({}, *depths)]
        counted = SimpleNamespace(metrics=found, manifest=SimpleNamespace(stopped="asks"), protocol="double-gate",
                                  graded=[], cases={}, probe=lambda *_: None)  # fmt: skip
        model = SimpleNamespace(model="organism:none", groups={})
        return SimpleNamespace(label="none", data=data, model=model, path=Path(data), note="", run=counted)

    runs = [run("binned", {"depth": 7}, {"depth_bin": 4}), run("own", {"depth": 3})]
    preset = STUDIES["composition-collapse"]
    study = Study(Spec(()), preset, Path("s"), ("binned", "own"), runs=runs, failed={"other--own": "why"})
    told = {t.name: [(r.get("data"), r.get("group")) for r in t.rows] for t in composition_collapse.tables(study)}
    last = (None, None)
    assert told["depth"] == [("binned", ""), ("binned", "depth_bin 4"), ("own", ""), ("own", "depth 3"), last]
    assert told["families"] == [
        ("binned", "family rank, depth, depth_bin 4"), ("own", "family rank, depth, depth 3"), last
    ]  # fmt: skip
    assert told["recovery"] == [
        ("binned", "prompt cot"), ("binned", "depth_bin 4, prompt cot"), ("own", "prompt cot"),
        ("own", "depth 3, prompt cot"), last,
    ]  # fmt: skip


def test_the_most_frequent_skills_and_bottlenecks_are_in_the_tables_and_levels_have_their_blanked_values() -> None:
    found = [Metric("skill_accuracy", {"skill": f"s{i}"}, n=20 + i, n_invalid=9 * (i == 0), value=0.5)
             for i in range(12)]  # fmt: skip
    found += [Metric("bottleneck", {"skill": f"s{i}"}, n=9, count=i, value=i / 9) for i in range(7)]
    found += [Metric("mean_k", {"combination": c}, n=n, value=1.0) for c, n in zip("abcd", (9, 5, 8, 7), strict=True)]
    found += [Metric("scaffold_success", {"level": 1}, n=9, value=0.5), Metric("placeholder", n=9, value=0.25),
              Metric("placeholder", {"level": 1}, n=4, value=0.25), Metric("composition", n=9, value=0.5)]  # fmt: skip
    model = SimpleNamespace(model="organism:none", groups={})
    counted = SimpleNamespace(metrics=found, manifest=SimpleNamespace(stopped="asks"))
    run: Any = SimpleNamespace(label="none", data="d", model=model, path=Path("r"), note="", run=counted)
    study = Study(Spec(()), STUDIES["stad"], Path("s"), ("d",), runs=[run], failed={"other--d": "why"})
    rows = {t.name: [r["what"] if r["what"] == "failed" else r["group"].rpartition(" ")[2] for r in t.rows]
            for t in stad.tables(study)}  # fmt: skip
    assert rows["skills"] == ["s0", *(f"s{i}" for i in range(3, 12)), "failed"]
    assert rows["bottlenecks"] == ["failed", "s6", "s5", "s4", "s3", "s2"]
    assert rows["combinations"] == ["a", "c", "d", "failed"] and rows["levels"] == ["1", "", "failed"]


def test_each_way_of_asking_pairs_has_its_table_and_a_failed_run_stands_where_all_are_compared() -> None:
    ways: list[dict[str, str]] = [{}, {"prompt": "no-preamble"}, {"prompt": "code"}]
    ways += [{"against": "step:1"}, {"against": "step:1", "prompt": "no-preamble"}]
    found = [Metric(name, way, n=9, value=0.5) for name in ("composition", "second_hop", "code_gain") for way in ways]
    model = SimpleNamespace(model="organism:none", groups={})
    counted = SimpleNamespace(metrics=found, manifest=SimpleNamespace(stopped="asks"))
    run: Any = SimpleNamespace(label="none", data="d", model=model, path=Path("r"), note="", run=counted)
    study = Study(Spec(()), STUDIES["compositional-gsm"], Path("s"), ("d",), runs=[run], failed={"other--d": "why"})
    told = {t.name: [r.get("group", "failed") for r in t.rows] for t in compositional_gsm.tables(study) if t.rows}
    assert told == {
        "gap": ["", "failed"], "gap-bare": ["prompt no-preamble"], "controls": ["", "against step:1", "failed"],
        "code": ["", "prompt code"],
    }  # fmt: skip


def test_bottlenecks_of_a_model_are_those_of_each_data_set() -> None:
    def run(data: str, counts: dict[str, int]) -> Any:
        found = [Metric("bottleneck", {"skill": k}, n=9, count=n, value=n / 9) for k, n in counts.items()]
        counted = SimpleNamespace(metrics=found, manifest=SimpleNamespace(stopped="asks"))
        model = SimpleNamespace(model="organism:none", groups={})
        return SimpleNamespace(label="none", data=data, model=model, path=Path(data), note="", run=counted)

    runs = [run("d", {"add": 1, "sort": 4}), run("e", {"add": 3, "sort": 2})]
    study = Study(Spec(()), STUDIES["stad"], Path("s"), ("d", "e"), runs=runs, failed={})
    (rows,) = (t.rows for t in stad.tables(study) if t.name == "bottlenecks")
    assert [(r["data"], r["group"].rpartition(" ")[2], r["shown"]) for r in rows] == [
        ("d", "sort", "4 of 9 scaffolded items"), ("d", "add", "1 of 9 scaffolded items"),
        ("e", "add", "3 of 9 scaffolded items"), ("e", "sort", "2 of 9 scaffolded items"),
    ]  # fmt: skip


def test_bottlenecks_are_the_most_counted_of_each_run_and_rows_are_the_most_frequent_on_each_data_set() -> None:
    rows = [{"what": "x", "data": d, "group": g, "n": n, "invalid": i}
            for d, g, n, i in (("d", "a", 9, None), ("d", "b", 2, 8), ("d", "c", 5, None), ("e", "c", 1, None))
            ]  # fmt: skip
    kept = stad._most(study_of(run_of(data="d"), run_of(data="e")), [*rows, {"what": "failed", "n": 0}], 2)
    assert [(r.get("data"), r.get("group")) for r in kept] == [("d", "a"), ("d", "b"), ("e", "c"), (None, None)]


def test_a_data_set_has_one_key_whatever_its_source() -> None:
    specs = ("hub:tot@1", "Bamboogle:f.json", "stad:a/gsm8k_final.jsonl", "hub:stad:x", "organism:mixed")
    assert [benchmark_key(spec) for spec in specs] == ["tot", "bamboogle", "gsm8k", "x", "organism"]
