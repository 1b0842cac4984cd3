"""The data behind the views: packed arrays, pictures of single cases, gates, ladders, prompts as sent."""

from __future__ import annotations

import base64
import itertools
import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

from composcope.errors import InputError
from composcope.evaluation.metrics import Metric
from composcope.experiments.report import cases, checks, comparison, headline, landing, pictures, view
from composcope.experiments.report.cases import ATOMS, OPEN, PARTS, PASSED, gates
from composcope.experiments.report.scripts import packed
from composcope.experiments.report.sections import number_text
from composcope.experiments.run.compare import differing_settings
from composcope.experiments.run.reader import load
from composcope.probes.catalog import PROBES
from composcope.progress import no_bar

AddCases = Callable[..., dict[str, Any]]


def unpacked(value: dict[str, Any]) -> np.ndarray:
    """What the page reads, computed as it does."""
    kind, missing = ("<u2", 65535) if value["bits"] == 16 else ("u1", 255)
    numbers = np.frombuffer(base64.b64decode(value["data"]), kind).astype(float)
    numbers[numbers == missing] = np.nan
    return (value["low"] + (value["high"] - value["low"]) * numbers / (missing - 1)).reshape(value["shape"])


@pytest.mark.parametrize(("bits", "error"), [(16, 2**-17), (8, 2**-8.9)])
def test_packed_arrays_come_back_within_half_a_step(bits: int, error: float) -> None:
    values = np.random.default_rng(0).normal(0, 3, (4, 5, 6))
    values[0, 0, :2] = np.nan, np.inf
    found = unpacked(packed(values, bits))
    span = np.nanmax(values[np.isfinite(values)]) - values[np.isfinite(values)].min()
    assert np.isnan(found[0, 0, :2]).all()
    np.testing.assert_allclose(found[np.isfinite(values)], values[np.isfinite(values)], atol=error * span)


def test_packed_constants_empties_and_nothing_but_nan_are_kept() -> None:
    assert unpacked(packed(np.full((2, 2), 0.25))).tolist() == [[0.25, 0.25], [0.25, 0.25]]
    assert packed(np.zeros((3, 0)))["shape"] == [3, 0]
    assert np.isnan(unpacked(packed(np.array([np.nan, -np.inf])))).all()


def test_pictures_hold_the_arrays_of_each_case(synthetic: ModuleType, add_cases: AddCases, tmp_path: Path) -> None:
    run = synthetic.make_run(tmp_path / "run", n=8)
    arrays = add_cases(run, ["case-0001", "case-0003"])
    rows = ["case,role,kind,quantity,value", "a,whole,composition,min_k,0.5", "a,whole,composition & cue,min_k,0.25",
            "a,part:0,math,min_k,1", "b,whole,composition,min_k,nan", "b,whole,composition,min_k,"]  # fmt: skip
    (run / "probes" / "min-k" / "values.csv").write_text("\n".join(rows) + "\n")
    found = pictures.collect(load([run]))
    (about,) = found.index["runs"]
    assert about["values"]["a"] == {"min k": 0.5, "min k (cue)": 0.25} and "b" not in about["values"]
    assert [c["case"] for c in about["cases"]] == ["case-0001", "case-0003"]
    assert about["cases"][1]["attention"] == ["whole", "part:0"] and about["cases"][1]["sweep"]
    assert about["notes"]["lookback"] == "Kept for 2 of 9 cases (--case-details 2)."
    second = found.files["pictures/0-1"]["probes"]["lookback"][1]
    np.testing.assert_allclose(unpacked(second["arrays"]["attention"]), arrays["lookback"]["3.attention"], atol=1e-4)


def test_too_large_pictures_lose_precision_then_attention_then_cases_and_say_so(
    synthetic: ModuleType, add_cases: AddCases, tmp_path: Path
) -> None:
    run = synthetic.make_run(tmp_path / "run", n=8)
    add_cases(run, ["case-0001", "case-0003", "case-0005"])
    data = load([run])
    full = pictures._total(pictures.collect(data).files)
    coarse = pictures.collect(data, full - 1)
    entry = coarse.files["pictures/0-0"]["probes"]["lookback"][0]
    assert entry["arrays"]["attention"]["bits"] == 8 and entry["arrays"]["ratio"]["bits"] == 16
    assert coarse.index["notes"] == []
    some = pictures.collect(data, int(0.55 * full))
    assert "Attention per token of" in some.index["notes"][0] and len(some.files) == 3
    assert [bool(c["attention"]) for c in some.index["runs"][0]["cases"]][-1] is False
    few = pictures.collect(data, int(0.1 * full))
    assert "were left out" in few.index["notes"][-1] and len(few.files) < 3
    assert len(few.index["runs"][0]["cases"]) == len(few.files)


def test_a_broken_file_of_single_cases_is_a_note(synthetic: ModuleType, add_cases: AddCases, tmp_path: Path) -> None:
    run = synthetic.make_run(tmp_path / "run", n=8)
    add_cases(run, ["case-0001"])
    (run / "probes" / "lookback" / "cases" / "tensors.safetensors").write_bytes(b"no")
    found = pictures.collect(load([run]))
    assert "cannot be read" in found.index["runs"][0]["notes"]["lookback"]
    kept = ["neurons", "patching", "trajectory", "min-k", "readout"]
    assert found.index["runs"][0]["cases"][0]["probes"] == kept


def row(case: str, role: str, outcome: str, **more: Any) -> dict[str, Any]:
    return {"schema": 1, "case": case, "role": role, "outcome": outcome, **more}


def test_gates_name_what_stopped_a_case(synthetic: ModuleType, tmp_path: Path) -> None:
    run = synthetic.make_run(tmp_path / "run", n=4, probes=())
    (run / "cases.jsonl").unlink()
    verdicts = {"all": ("correct", "correct"), "sub": ("incorrect", "correct"), "atom": ("correct", "incorrect"),
                "both": ("incorrect", "abstained"), "open": ("invalid", "correct"),
                "shut": ("incorrect", "invalid")}  # fmt: skip
    asked = [(case, part, wording) for case, (part, wording) in verdicts.items()]
    rows = [row(case, role, outcome) for case, part, wording in asked
            for role, outcome in (("whole", "correct"), ("part:0", part), ("part:0:paraphrase:0", wording))
            ]  # fmt: skip
    rows.append(row("nothing", "whole", "correct"))
    (run / "graded.jsonl").write_text("".join(json.dumps(r) + "\n" for r in rows))
    assert gates(load([run])[0]) == {"all": PASSED, "sub": PARTS, "atom": ATOMS, "both": ATOMS, "open": OPEN,
                                     "shut": PARTS}  # fmt: skip


def test_gates_agree_with_the_runs_own_case_sets(synthetic: ModuleType, tmp_path: Path) -> None:
    run = load([synthetic.make_run(tmp_path / "run", n=120, probes=(), seed=8)])[0]
    found = gates(run)
    in_sets = {case for found in run.case_sets.values() for case in found.ids}
    passed = {c for c, g in found.items() if g == PASSED}
    assert len(passed) > 20 and in_sets >= passed


def test_the_index_has_outcomes_by_role_skills_and_k(synthetic: ModuleType, tmp_path: Path) -> None:
    run = synthetic.make_run(tmp_path / "run", n=3, probes=(), protocol="compositionality-gap")
    path = run / "cases.jsonl"
    about = [json.loads(line) for line in path.read_text().splitlines()]
    about[0]["parts"][0]["skill"], about[0]["parts"][1]["skill"] = "sort", "add"
    path.write_text("".join(json.dumps(a) + "\n" for a in about))
    (run / "casesets" / "scaffold-k.jsonl").write_text(
        json.dumps(
            {"schema": 1, "set": "scaffold-k", "label": "failure", "case": "case-0001", "value": 2, "evidence": []}
        )
        + "\n"
    )
    solved = {"schema": 1, "set": "unaided", "label": "success", "case": "case-0000", "value": 0, "evidence": []}
    (run / "casesets" / "unaided.jsonl").write_text(json.dumps(solved) + "\n")
    index = cases.collect(load([run])).index
    first, second = (dict(zip(index["columns"], r, strict=True)) for r in index["rows"][:2])
    assert [index["skills"][s] for s in first["skills"]] == ["sort", "add"] and (first["k"], second["k"]) == (0, 2)
    graded = {(g.case, g.role): g.outcome for g in load([run])[0].graded}
    for r in (first, second):
        for i, role in enumerate(index["roles"]):
            assert index["outcomes"][int(r["roles"][i])] == graded[r["case"], role]


def test_a_long_question_is_cut_in_the_middle_in_the_list_and_a_long_answer_at_its_end(
    synthetic: ModuleType, tmp_path: Path
) -> None:
    text = "x" * 250 + "y" * 250
    index = cases.collect(load([synthetic.make_run(tmp_path / "run", n=2, probes=(), text=text)])).index
    shown = dict(zip(index["columns"], index["rows"][0], strict=True))
    assert len(shown["question"]) == len(shown["answer"]) == 120 and shown["answer"] == "x" * 119 + "…"
    assert index["cap"] == cases.CAPS[0], "what fits is not cut in the chunks"
    short = cases.collect(load([tmp_path / "run"]), budget=1).index
    assert short["cap"] == cases.CAPS[-1] and short["dropped"]
    assert shown["question"].strip("x").strip("y") == " … " and shown["question"][0] + shown["question"][-1] == "xy"


def test_prompts_as_sent_stand_in_the_chunk(synthetic: ModuleType, tmp_path: Path) -> None:
    run = synthetic.make_run(tmp_path / "run", n=2, probes=())
    asks = [json.loads(line) for line in (run / "asks.jsonl").read_text().splitlines()]
    (run / "rendered.json").write_text(json.dumps({
        "schema": 1, "templates": [["<user>", "</user>"]], "asks": {asks[0]["ask"]: 0, asks[1]["ask"]: "all of it"}
    }))  # fmt: skip
    chunk = cases.collect(load([run])).chunks["cases/0-0"]
    told = [dict(zip(chunk["fields"], r, strict=False)) for r in chunk["asked"]]
    read = [[chunk["texts"][t[k]] for k in ("before", "prompt", "after") if t.get(k) is not None] for t in told]
    assert ["<user>", asks[0]["prompt"], "</user>"] in read
    assert "all of it" in [chunk["texts"][t["sent"]] for t in told if t.get("sent") is not None]
    assert told[0]["given"] == 9 and told[0]["said"] == 3


def test_a_check_is_of_its_probe_whatever_the_quantity_and_says_what_speaks_against_it() -> None:
    verdicts = ("yes", "explained by the length", "yes, reversed", "no", "cannot say")
    assert [checks.check({"verdict": v})["kind"] for v in verdicts] == ["yes", "reversed", "reversed", "no", "open"]
    assert [checks.check({"low": 0.1, "high": high})["interval"] for high in (0.2, None)] == ["[0.1, 0.2]", ""]
    assert [checks.about(name, "min_k") for name in ("min-k", "min_k:0.2", "min-k.x", "min")] == [True] * 3 + [False]


def test_a_runs_own_controls_are_its_evidence(synthetic: ModuleType, tmp_path: Path) -> None:
    folder = synthetic.make_run(tmp_path / "run", n=4, probes=("neurons", "lookback"))
    rows = [{"quantity": "unchanged_rate", "group": "identity", "layer": i, "n": 16, "value": v, "low": 0.8,
             "high": 1.0, "interval": "clopper-pearson"} for i, v in enumerate((1.0, 0.75))]  # fmt: skip
    rows.append({"quantity": "kl_from_donor", "group": "positive", "layer": 0, "n": 4, "value": 1e-7, "low": 0.0,
                 "high": 1e-6, "interval": "t"})  # fmt: skip
    synthetic.write_probe(folder / "probes" / "patching", "patching", rows, {}, {})
    runs = load([folder])
    identity, positive = checks.own_checks(runs, PROBES["patching"])
    assert (identity["answer"], identity["value"], positive["answer"]) == ("no", "0.75", "yes")
    rows.append({**rows[-1], "layer": 1, "value": 0.5})
    shutil.rmtree(folder / "probes" / "patching")
    synthetic.write_probe(folder / "probes" / "patching", "patching", rows, {}, {})
    assert [c["answer"] for c in checks.own_checks(load([folder]), PROBES["patching"])] == ["no", "no"]
    flips = [{"quantity": "flip_rate", "group": "positive", "layer": i, "n": 4, "value": v, "low": 0.0, "high": 0.7,
              "interval": "clopper-pearson"} for i, v in enumerate((0.0, 0.25))]  # fmt: skip
    for share, trusted in ((0.25, "partly"), (0.75, "yes")):
        shutil.rmtree(folder / "probes" / "patching")
        flips[1]["value"] = share
        kept = [{**r, "value": 1.0} if r["group"] == "identity" else r for r in rows[:3]]
        synthetic.write_probe(folder / "probes" / "patching", "patching", [*kept, *flips], {}, {})
        found = checks.own_checks(load([folder]), PROBES["patching"])
        assert [c["kind"] for c in found] == ["yes", "yes", "yes" if trusted == "yes" else "open"]
        badge = landing._trust(found)  # what was checked, and that the whole answer was not
        assert badge.startswith(f"{trusted}: ") and "next token" in badge
        assert badge.endswith("cannot say (whole answer)") == (trusted == "partly")
    neurons = checks.own_checks(runs, PROBES["neurons"])
    assert len(neurons) == 6 and {n["answer"] for n in neurons} == {"yes"}
    assert checks.own_checks(runs, PROBES["lookback"]) == [] and PROBES["lookback"].unchecked


def test_a_small_p_is_not_rounded_to_nothing() -> None:
    shown = [number_text("p_adjusted", p) for p in (0.0004, 0.001, 0.0049, 0.2, 1)]
    assert shown == ["< 0.001", "0.001", "0.0049", "0.2", "1"]


def test_a_run_with_few_cases_is_no_end_of_the_range_and_is_named(synthetic: ModuleType, tmp_path: Path) -> None:
    for name, count, n in (("a", 3, 3), ("b", 10, 40), ("c", 20, 40)):
        run = synthetic.make_run(tmp_path / name, n=4, probes=(), model=f"org/{name}")
        document = {"schema": 1, "protocol": "double-gate", "metrics": [synthetic.rate("residual_failure", count, n)]}
        (run / "metrics.json").write_text(json.dumps(document))
    said = headline.lead(load([tmp_path])).replace("\u00a0", " ")
    assert "25.0 %" in said and "50.0 %" in said and "100.0 %" not in said and "“a” has 3 gradable" in said


def test_the_range_of_a_rate_is_that_of_its_bounds() -> None:
    row = Metric("both", n=8, n_invalid=2, count=4, value=0.5, bound_low=0.4, bound_high=0.6)
    assert [text.replace("\u00a0", " ") for text in (headline._bounds(row, "rate"),)] == ["40.0 % to 60.0 %"]
    assert headline._bounds(replace(row, n_invalid=0), "rate") == ""


def test_a_page_depends_on_what_it_shows_of_a_run_and_not_on_journal_log_or_pictures(tmp_path: Path) -> None:
    shown = ["graded.jsonl", "casesets/a.jsonl", "probes/neurons/table.csv"]
    for name in (*shown, "log.txt", ".lock", "journal/a.jsonl", "figures/a.png", "probes/.measured/a", "report.html"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    assert sorted(str(p.relative_to(tmp_path)) for p in view._files(tmp_path)) == sorted(shown)
    known = [path for path, _, _ in view._state([tmp_path / "gone", tmp_path / "log.txt", tmp_path / "study.json"])]
    assert known == [str(tmp_path / "log.txt")]


def test_an_error_is_said_once_until_a_page_was_written_and_the_page_before_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[str] = []
    results = iter([InputError("a"), InputError("a"), False, InputError("a"), InputError("b"), True])
    pages = view.Pages([], tmp_path, said.append)

    def refresh() -> bool:
        if isinstance(found := next(results), InputError):
            raise found
        return bool(found)

    monkeypatch.setattr(pages, "refresh", refresh)
    waits = iter([False] * 6 + [True])
    pages.keep_fresh(SimpleNamespace(wait=lambda _: next(waits)))  # type: ignore[arg-type]
    assert [line.rpartition(": ")[2] for line in said] == ["a", "a", "b", "0 runs"]

    monkeypatch.undo()
    monkeypatch.setattr(view, "write", lambda _, folder, **__: folder.mkdir())
    states = itertools.count()
    for name in ("_state", "_read"):
        monkeypatch.setattr(pages, name, lambda: [SimpleNamespace(path=str(next(states)))])
    assert all(pages.refresh() for _ in range(3)) and sorted(p.name for p in tmp_path.iterdir()) == ["2", "3"]


def test_the_share_of_an_export_is_what_was_counted_of_all_of_it() -> None:
    page: Any = SimpleNamespace(progress=no_bar, exported=None)
    with view.Pages._counted(page, "drawing", 4) as advance:
        seen = [page.exported]
        for n in (1, 2, 5):
            advance(n)
            seen.append(page.exported)
    assert seen == [0, 0.25, 0.75, 1]


def test_two_runs_are_compared_in_their_own_numbers(synthetic: ModuleType) -> None:
    both, one = synthetic.rate("composition", 30, 40), synthetic.rate("gap", 5, 40, depth=2)
    found = comparison._metrics(
        {"a": {"metrics": [both, one]}, "b": {"metrics": [{**both, "count": 10, "value": 0.25}]}}
    )
    assert [r["name"] for r in found] == ["composition", "gap depth 2"]
    assert "75.0 %" in found[0]["a"] and "n=40" in found[0]["a"] and "25.0 %" in found[0]["b"]
    assert "75.0 %" not in found[0]["b"] and found[1]["b"] == "not measured" != found[1]["a"]
    role = {"role": "whole", "n": 20, "a": 0.75, "b": 0.5, "difference": 0.25, "low": 0.1, "high": 0.4, "a_only": 7,
            "b_only": 2, "p": 0.0004, "p_adjusted": 0.18, "interval": "newcombe", "test": "mcnemar",
            "note": None}  # fmt: skip
    said = comparison.lead({"roles": [{**role, "role": "part:0"}, role]}, ["one", "other"])
    for text in ("20 wholes", "A (“one”) has 75.0\u00a0%", "B (“other”) 50.0\u00a0%", "+25.0 [+10.0, +40.0] points",
                 "disagree on 9: 7 only A has right, 2 only B", "mcnemar: p < 0.001"):  # fmt: skip
        assert text in said
    assert comparison.lead({"roles": [{**role, "role": "part:0"}]}, ["a", "b"]).startswith("No whole was judged")
    shown = comparison._role({**role, "low": None, "difference": -0.25})
    assert (shown["difference"].strip(), shown["p"], shown["p_adjusted"]) == ("−25.0", "< 0.001", "0.18")
    channel = {"metric": "delta_comp", "group": {"per": "fact", "depth_bin": 4}, "n": 9, "interval": "t", "note": None}
    found_channel = comparison._channel({**channel, "value": -0.25, "low": -0.5, "high": None})
    assert (found_channel["where"], found_channel["value"], found_channel["span"]) == ("depth_bin 4", "−25.0", "")
    steps = comparison._channel({**channel, "metric": "delta_depth", "value": 1.5, "low": 1.0, "high": 2.0})
    assert (steps["value"], steps["span"], steps["unit"]) == ("+1.5", "[+1.0, +2.0]", "steps")
    none: dict[str, Any] = dict.fromkeys(("left_out_invalid", "changed", "only_a", "only_b"), 0)
    assert [comparison._p(p) for p in (None, 0.0004, 0.004, 0.5)] == ["undefined", "< 0.001", "0.004", "0.5"]
    assert comparison._left_out(none).startswith("Every ask was judged")
    assert "2 were asked only in B" in comparison._left_out({**none, "only_b": 2})


def test_settings_that_differ_are_named_and_the_model_is_none_of_them() -> None:
    def run(**identity: Any) -> Any:
        return SimpleNamespace(manifest=SimpleNamespace(identity=identity))

    a, b = (
        run(model="a", weights="1", seed=0, format="cot"),
        run(model="b", weights="2", seed=1, format="cot", k="x" * 41, name="y" * 40),
    )
    assert differing_settings(a, b) == [
        ("seed", "0", "1"), ("k", "not stated", "x" * 39 + "…"), ("name", "not stated", "y" * 40),
    ]  # fmt: skip
