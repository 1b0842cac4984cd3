"""The printed numbers: well formed, found where they belong and nowhere else."""

from __future__ import annotations

import re

from composcope.experiments.studies import cli
from composcope.experiments.studies.published import beside, group_key, name_key, table

_VALUE = re.compile(r"[-+]?\d+(\.\d+)?( to \d+(\.\d+)?)?")


def test_every_printed_number_is_a_number_with_a_source() -> None:
    rows = table()
    assert len(rows) > 400
    for row in rows:
        assert row.study in cli.STUDIES, row
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
