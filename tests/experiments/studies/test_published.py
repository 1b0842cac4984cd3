"""The printed numbers: well formed, found where they belong and nowhere else."""

from __future__ import annotations

import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from scipy import stats as scipy_stats

from composcope.evaluation.graded import Graded
from composcope.evaluation.metrics import Metric
from composcope.experiments import composition_collapse, stad
from composcope.experiments.console import exits
from composcope.experiments.run.reader import ProbeData
from composcope.experiments.studies import mechanism, pairs, results
from composcope.experiments.studies.mechanism import _difference
from composcope.experiments.studies.published import beside, group_key, name_key, pair_name, table
from composcope.experiments.studies.spec import Spec
from composcope.experiments.studies.study import STUDIES, Study, scaled_layers
from composcope.probes import patching
from composcope.probes.result import ProbeResult

stats: Any = scipy_stats

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


def _measured(folder: Path, times: int) -> Any:
    """A study of one run: twelve clusters of ``times`` equal cases, with a question of two kinds each."""
    rng = np.random.default_rng(3)
    rows = ["case,role,kind,group,cluster,crossed,quantity,value"]
    for c, base in enumerate(rng.normal(0.5, 0.1, 12)):
        kinds = {"composition": base + rng.normal(0.05, 0.02), "math": base}
        rows += [f"c{c}-{i},whole,{kind},failure,fact {c},,lookback_ratio,{value}"
                 for kind, value in kinds.items() for i in range(times)]  # fmt: skip
    (folder / "probes" / "lookback").mkdir(parents=True)
    (folder / "probes" / "lookback" / "values.csv").write_text("\n".join(rows) + "\n")
    run = SimpleNamespace(path=folder, note=None, label="m", data="d", model=SimpleNamespace(model="m"))
    return SimpleNamespace(runs=[run], preset=SimpleNamespace(name="agentcoma"))


def test_cases_that_repeat_a_fact_make_no_mean_or_test_of_a_study_more_certain(tmp_path: Path) -> None:
    once, often = _measured(tmp_path / "once", 1), _measured(tmp_path / "often", 4)
    shown = [mechanism.means(s, "lookback", "lookback_ratio", 100) for s in (once, often)]
    for a, b in zip(*shown, strict=True):
        assert (a["group"], b["n"]) == (b["group"], 4 * a["n"]) and a["n"] == 12
        assert a["value"] == pytest.approx(b["value"])
        width = a["high"] - a["low"]  # skewed clusters get fewer degrees of freedom than cases that share nothing
        assert width <= b["high"] - b["low"] < 1.2 * width
    (a,), (b,) = mechanism.tests(once), mechanism.tests(often)
    assert a["group"] == "composition - math" and a["difference"] == pytest.approx(b["difference"])
    assert a["p"] == pytest.approx(b["p"])
    # Both questions of a case rise and fall together, which Welch's test of independent groups would not know.
    kinds = {
        k: [v.value for v in found]
        for k, found in mechanism._by_kind(once.runs[0], "lookback", "lookback_ratio").items()
    }
    assert a["p"] < 0.001 < stats.ttest_ind(kinds["composition"], kinds["math"], equal_var=False).pvalue


def test_a_difference_of_means_has_welchs_interval() -> None:
    a, b = np.array([1.0, 2.0, 4.0, 4.5]), np.array([3.0, 9.0, 9.5])
    sides = []
    for x in (a, b):
        half = stats.t.ppf(0.975, len(x) - 1) * x.std(ddof=1) / np.sqrt(len(x))
        sides.append({"value": x.mean(), "n": len(x), "low": x.mean() - half, "high": x.mean() + half, "interval": "t"})
    found = _difference(*sides)
    expected: Any = stats.ttest_ind(a, b, equal_var=False).confidence_interval()
    assert (found["value"], found["n"], found["interval"]) == (pytest.approx(a.mean() - b.mean()), 7, "Welch t")
    assert (found["low"], found["high"]) == pytest.approx((expected.low, expected.high))
    assert "low" not in _difference({**sides[0], "n": 1}, sides[1])


def test_gains_of_a_pair_are_a_minus_b() -> None:
    def run(*outcomes: str) -> Any:
        rows = [Graded(f"c{i}", "whole", o) for i, o in enumerate(outcomes)]  # type: ignore[arg-type]
        return SimpleNamespace(run=SimpleNamespace(graded=rows, protocol="reasoning-gap", cases={}))

    (gain,) = pairs.differences(run("correct", "correct", "incorrect"), run("correct", "incorrect", "incorrect"))
    assert (gain.metric, gain.value) == ("pair_gain", pytest.approx(1 / 3))


def test_a_study_with_a_failed_run_or_unjudged_answers_does_not_end_well() -> None:
    ends = [({}, 0, exits.OK), ({}, 3, exits.INVALID_REMAINS), ({"a": "why"}, 0, exits.USER_ERROR),
            ({"a": "why"}, 3, exits.USER_ERROR)]  # fmt: skip
    for failed, n_invalid, code in ends:
        study = Study(Spec(()), STUDIES["stad"], Path("s"), (), failed=failed, n_invalid=n_invalid)
        assert study.exit_code() == code


def test_a_failed_run_stands_in_the_tables_without_any_case() -> None:
    study = Study(Spec(()), STUDIES["stad"], Path("s"), (), failed={"a": "why"})
    assert results.failed_rows(study) == [{"model": "a", "what": "failed", "shown": "why", "n": 0}]


def test_a_run_is_in_the_tables_with_what_was_opened_up_in_it() -> None:
    patched = ProbeData("patching", [{"quantity": q, "group": g, "layer": i, "count": k, "n": 5}
                                     for q, k in (("flip_rate", 2), ("corrected_rate", 1))
                                     for g, i in (("donor", 0), ("donor", 1), ("recipient", 0))])  # fmt: skip
    moved = ProbeData("trajectory", [{"quantity": "prompt_end_cosine", "group": "failure", "layer": i, "value": 0.5,
                                      "n": 9} for i in range(3)]
                      + [{"quantity": "step_cosine", "group": g, "layer": 1, "value": v, "n": 9}
                         for g, v in (("failure", 0.5), ("success", 0.75))])  # fmt: skip

    def run(note: str = "", **probes: ProbeData) -> Any:
        about = {"label": "m", "data": "d", "note": note, "model": SimpleNamespace(model="x")}
        return SimpleNamespace(run=SimpleNamespace(probe=probes.get), **about)

    opened: Any = SimpleNamespace(runs=[run(patching=patched), run(trajectory=moved), run(), run("no weights")])
    rows = mechanism.rows(opened)
    assert [r["what"] for r in rows[:2]] == [
        "patches that give the donor's answer",
        "patches that give the right answer",
    ]
    assert [(r["count"], r["n"]) for r in rows[:2]] == [(4, 10), (2, 10)]
    assert [r["group"] for r in rows[2:4]] == ["pairs failure, layer 0 of 2", "pairs failure, layer 2 of 2"]
    assert (rows[4]["what"], rows[4]["value"], rows[4]["n"]) == ("step_cosine_difference", -0.25, 18)
    assert [r["shown"] for r in rows[5:]] == ["no boundary set", "no weights"]


def test_answers_are_patched_from_successes_into_failures(monkeypatch: pytest.MonkeyPatch) -> None:
    def example(i: int, group: str) -> Any:
        return SimpleNamespace(case=f"c{i}", group=group, prompt_ids=[i], answer_ids=[10 + i], shares=i)

    given: dict[str, Any] = {}

    def sweep(lm: Any, donors: Any, recipients: Any, chosen: Any, *_: Any, **options: Any) -> ProbeResult:
        given.update(options, donors=donors, recipients=recipients, chosen=chosen)
        return ProbeResult("patching", [])

    monkeypatch.setattr(patching, "prompt_end_sweep", sweep)
    monkeypatch.setattr(patching, "new_tokens", lambda *_: 5)
    monkeypatch.setattr(patching, "graders", lambda _, recipients, donors: (recipients, donors))
    found = composition_collapse.patch(
        None, [example(i, g) for i, g in enumerate(("failure", "success", "failure"))], [0]
    )
    assert (given["donors"], given["recipients"], given["clusters"]) == ([[1]], [[0], [2]], ([1], [0, 2]))
    assert (given["donor_answers"], given["recipient_answers"]) == ([[11]], [[10], [12]])
    assert found.settings["cases"] == [("c1", "c0"), ("c1", "c2")]


@pytest.mark.parametrize(("group", "key"), [({"depth": 4}, "depth"), ({"depth_bin": 4, "depth": 5}, "depth_bin")])
def test_depths_are_those_that_the_benchmark_counts_in(group: dict[str, Any], key: str) -> None:
    study: Any = SimpleNamespace(runs=[SimpleNamespace(run=SimpleNamespace(metrics=[Metric("m", group, n=1)]))])
    assert composition_collapse._depth_key(study) == key


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
