"""What the opened models of a study show: means by kind, their tests, patches and cosines."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from scipy import stats as scipy_stats

from composcope.evaluation.graded import Graded
from composcope.experiments import agentcoma
from composcope.experiments.run.reader import ProbeData
from composcope.experiments.studies import tables
from composcope.experiments.studies.spec import ModelPair
from composcope.experiments.studies.tables import _difference
from composcope.files import to_csv

from ..bare_runs import answers
from .bare_studies import run_of, study_of

stats: Any = scipy_stats


def _measured(folder: Path, **kinds: np.ndarray) -> Any:
    """A run with a probe's values of cases that share nothing: each question of a kind is a case of its own."""
    rows = [{"case": f"{kind}{i}", "role": "whole", "kind": kind, "quantity": "lookback_ratio", "value": value}
            for kind, values in kinds.items() for i, value in enumerate(values)]  # fmt: skip
    file = folder / "probes" / "lookback" / "values.csv"
    file.parent.mkdir(parents=True)
    file.write_text(to_csv([*rows, {**rows[0], "quantity": "another", "value": 9}]))
    run = run_of()
    run.path = folder
    return run


def test_means_over_questions_of_a_kind_are_those_of_all_its_values_with_students_interval(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    every, other = rng.normal(0.5, 0.1, 15), rng.normal(0.3, 0.1, 7)
    run = _measured(tmp_path / "a", math=every, composition=other)
    found = tables.means(study_of(run), "lookback", "lookback_ratio", 100)
    half = stats.t.ppf(0.975, 14) * every.std(ddof=1) / math.sqrt(15)
    first = found[0]
    assert [(r["group"], r["n"], r["interval"]) for r in found] == [("math", 15, "t"), ("composition", 7, "t")]
    assert [first[k] for k in ("value", "low", "high", "std", "variance")] == pytest.approx(
        [every.mean(), every.mean() - half, every.mean() + half, every.std(ddof=1), every.var(ddof=1)])  # fmt: skip
    assert first["shown"] == f"{100 * first['value']:.4g} [{100 * first['low']:.4g}, {100 * first['high']:.4g}]"
    wide = _measured(tmp_path / "b", k=np.array([0.0, 1.0, 0.9]))
    (row,) = tables.means(study_of(wide), "lookback", "lookback_ratio", 100)
    assert (row["low"], row["high"]) == (0, 1), "shares lie between 0 and 1"
    (row,) = tables.means(study_of(wide), "lookback", "lookback_ratio", 1)
    assert row["low"] < 0 and row["high"] > 1, "other numbers do not"
    lines = (tmp_path / "b" / "probes" / "lookback" / "values.csv").read_text().splitlines()
    again = [",".join([*lines[1].split(",")[:4], value]) for value in ("0.5", "0.4", "nan")]
    (tmp_path / "b" / "probes" / "lookback" / "values.csv").write_text("\n".join([*lines[:4], *again]))
    (row,) = tables.means(study_of(wide), "lookback", "lookback_ratio", 1)
    assert (row["n"], row["value"]) == (3, pytest.approx((0.3 + 1 + 0.9) / 3)), "questions of a case are one value"
    closed = run_of("a", note="why")
    told = tables.means(study_of(closed, wide), "lookback", "lookback_ratio", 1)
    assert [(r["model"], r["what"], r["shown"]) for r in told[:1]] == [("a", "not opened up", "why")]


def test_the_tables_of_a_study_are_in_percent_where_their_titles_say_so(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("metric_rows", "tests", "pairs"):
        monkeypatch.setattr(agentcoma, name, lambda *_: [])
    monkeypatch.setattr(agentcoma, "means", lambda _, probe, quantity, scale: [{"of": (probe, quantity, scale)}])
    found = {t.name: (t.title.endswith(", %"), *t.rows[0]["of"]) for t in agentcoma.tables(study_of()) if t.rows}
    assert found == {
        "lookback": (True, "lookback", "lookback_ratio", 100), "min-k": (False, "min-k", "min_k_pp", 1),
        "neurons": (True, "neurons", "neuron_overlap", 100),
    }  # fmt: skip


def test_kinds_are_compared_by_welchs_test_and_corrected_together(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    sides = {
        k: rng.normal(m, s, n)
        for k, m, s, n in (("composition", 0.5, 0.1, 9), ("math", 0.6, 0.3, 12), ("choice", 0.4, 0.2, 7))
    }
    found = tables.tests(study_of(_measured(tmp_path, **sides)))
    assert [r["group"] for r in found] == ["composition - choice", "composition - math", "choice - math"]
    p = [stats.ttest_ind(*(sides[k] for k in r["group"].split(" - ")), equal_var=False).pvalue for r in found]
    assert [r["p"] for r in found] == pytest.approx(p)
    order = np.argsort(p)
    adjusted = np.maximum.accumulate([min(1, (3 - i) * p[j]) for i, j in enumerate(order)])
    assert [found[j]["p_adjusted"] for j in order] == pytest.approx(list(adjusted))
    first = found[0]
    assert first["difference"] == pytest.approx(sides["composition"].mean() - sides["choice"].mean())
    assert first["n"] == 16


def test_patches_are_counted_over_layers_of_donors_that_can_be_judged() -> None:
    rows = [{"quantity": "flip_rate", "group": g, "layer": i, "count": c, "n": n}
            for g, i, c, n in (("donor", 0, 1, 8), ("donor", 1, 5, 7), ("donor", 2, None, 0), ("random", 1, 7, 8))
            ]  # fmt: skip
    found = tables._patches(ProbeData("patching", rows), "what", "flip_rate", "m")
    assert (found["count"], found["n"], found["value"]) == (6, 15, 6 / 15)
    assert found["shown"] == "6 of 15 (7, 8 pairs × 2 layers; no interval)"
    none = tables._patches(ProbeData("patching", []), "what", "flip_rate", "m")
    assert none["value"] is None and none["shown"].startswith("undefined")
    row = tables._cosine_row("x", {"n": 9, "value": 0.5, "low": 0.25, "high": None}, 3, 4, "m", "pairs, ")
    assert (row["group"], row["shown"]) == ("pairs, layer 3 of 4", "0.5000 (no interval)")


@pytest.mark.parametrize(("layer", "last", "published"), [
    (35, 35, "0.031"), (20, 35, "0.002"), (24, 35, "0.013"), (4, 7, "0.002"), (7, 35, ""), (36, 36, "0.031"),
])  # fmt: skip
def test_a_papers_cosine_stands_beside_the_layer_at_the_same_share_of_the_depth(
    layer: int, last: int, published: str
) -> None:
    row = tables._cosine_row("step_cosine_difference", {"n": 9, "value": 0.5}, layer, last, "Qwen3-8B")
    assert row["published"] == (published and f"{published} cosine") and bool(row["source"]) == bool(published)
    assert (row["value"], row["low"], row["group"]) == (0.5, None, f"layer {layer} of {last}")


def _clustered(folder: Path, times: int) -> Any:
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
    once, often = _clustered(tmp_path / "once", 1), _clustered(tmp_path / "often", 4)
    shown = [tables.means(s, "lookback", "lookback_ratio", 100) for s in (once, often)]
    for a, b in zip(*shown, strict=True):
        assert (a["group"], b["n"]) == (b["group"], 4 * a["n"]) and a["n"] == 12
        assert a["value"] == pytest.approx(b["value"])
        width = a["high"] - a["low"]  # skewed clusters get fewer degrees of freedom than cases that share nothing
        assert width <= b["high"] - b["low"] < 1.2 * width
    (a,), (b,) = tables.tests(once), tables.tests(often)
    assert a["group"] == "composition - math" and a["difference"] == pytest.approx(b["difference"])
    assert a["p"] == pytest.approx(b["p"])
    # Both questions of a case rise and fall together, which Welch's test of independent groups would not know.
    kinds = {
        k: [v.value for v in found] for k, found in tables._by_kind(once.runs[0], "lookback", "lookback_ratio").items()
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


def test_a_difference_without_one_of_its_means_or_without_any_spread_has_no_interval() -> None:
    one = {"value": 0.5, "n": 3, "low": 0.5, "high": 0.5, "interval": "t"}
    assert _difference(one, {"value": None, "n": 4}) == {"value": None, "n": 7}
    assert _difference({"value": None}, one) == {"value": None, "n": 3}
    assert _difference(one, {**one, "value": 0.25}) == {"value": 0.25, "n": 6}, "values that do not vary"
    for lacking in ({"interval": "bootstrap"}, {"low": None}, {"n": 1}):
        assert "low" not in _difference({**one, "low": 0.4, "high": 0.6}, {**one, "low": 0.4, "high": 0.6, **lacking})


@pytest.mark.parametrize(
    ("values", "known"), [((0.5, 0.5, 0.5, 0.5), False), ((0.5, 0.4, 0.5, 0.5), True), ((0.5,), False)]
)
def test_a_mean_of_a_kind_has_an_interval_only_where_its_values_vary(
    values: tuple[float, ...], known: bool, tmp_path: Path
) -> None:
    (row,) = tables.means(study_of(_measured(tmp_path, math=np.array(values))), "lookback", "lookback_ratio", 100)
    assert (row["low"] is not None, row["high"] is not None, row["n"]) == (known, known, len(values))
    assert row["value"] == pytest.approx(np.mean(values)) and (row["variance"] is None) == (len(values) == 1)


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
    rows = tables.mechanism(opened)
    assert [r["what"] for r in rows[:2]] == [
        "patches that give the donor's answer",
        "patches that give the right answer",
    ]
    assert [(r["count"], r["n"]) for r in rows[:2]] == [(4, 10), (2, 10)]
    assert [r["group"] for r in rows[2:4]] == ["pairs failure, layer 0 of 2", "pairs failure, layer 2 of 2"]
    assert (rows[4]["what"], rows[4]["value"], rows[4]["n"]) == ("step_cosine_difference", -0.25, 18)
    assert [r["shown"] for r in rows[5:]] == ["no boundary set", "no weights"]


# --- pairs of models: differences over the cases of both, and pairs that cannot be compared -------------------------


def _answers(**roles: str) -> list[Graded]:
    return answers(*map("".join, zip(*roles.values(), strict=True)), roles=" ".join(roles).replace("_", ":"))


def test_differences_of_a_pair_are_over_the_cases_of_both_and_the_gap_is_that_of_products() -> None:
    a = _answers(part_0="11011", part_1="10111", whole="1001?")
    b = _answers(part_0="1011", part_1="1101", whole="0001")
    found = {(m.metric, m.group.get("quantity")): m for m in tables.gains(a, b, seed=3)}
    assert {k: round(m.value or 0, 9) for k, m in found.items()} == {
        ("pair_gain", "step:0"): 0, ("pair_gain", "step:1"): 0, ("pair_gain", "composition"): 0.25,
        ("pair_gap", None): round((2 / 4 - 9 / 16) - (1 / 4 - 9 / 16), 9)}  # fmt: skip
    assert {m.n for m in found.values()} == {4}
    assert [m.metric for m in tables.gains(a, [r for r in b if r.role == "whole"])] == ["pair_gain"]
    short = [Graded("z", role, "correct") for role in ("part:0", "whole")]
    gains = tables.gains([*a, *short], [*b, *short])
    assert {m.metric: m.n for m in gains if m.group.get("quantity") != "step:1"} == {"pair_gain": 5}, "z has one part"
    (second,) = (m for m in gains if m.group.get("quantity") == "step:1")
    assert (second.n, second.n_invalid) == (4, 0), "a step that a case does not have is no open answer"
    often_a, often_b = ([replace(row, repeat=n) for n in range(3) for row in side] for side in (a, b))
    assert [(m.n, m.value) for m in tables.gains(often_a, often_b)] == [(3 * m.n, m.value) for m in tables.gains(a, b)]
    three, other = (
        _answers(part_0=p, part_1="1111", part_2=q, whole="1011") for p, q in (("1011", "1101"), ("1111", "0111"))
    )
    (gap,) = (m for m in tables.gains(three, other) if m.metric == "pair_gap")
    assert gap.value == pytest.approx((3 / 4 - 9 / 16) - (3 / 4 - 3 / 4)), "all three steps"
    told = {m.group["quantity"] for m in tables.gains(three, other) if m.group}
    assert told == {"step:0", "step:1", "step:2", "composition"}
    runs = (run_of("x", graded=some, protocol="scaffolding") for some in (three, other))
    assert [m.group for m in tables.differences(*runs)] == [{"quantity": "composition"}], "no common steps"
    near = answers(*["110", "011", "?11"] * 12, roles="whole part:0 part:1", cluster="k")
    (gap,) = (m for m in tables.gains(near, near) if m.metric == "pair_gap")
    assert (gap.n, gap.n_invalid) == (24, 12), "clusters are those of the cases that were judged"
    right = _answers(part_0="111111", part_1="111111", whole="111111")
    (gap,) = (m for m in tables.gains(right, right) if m.metric == "pair_gap")
    other = 1 - 0.025 ** (1 / 6)  # exact upper limit of 0 of 6
    most = 1 - (1 - other) ** 2 + other  # the steps of A and the whole of B wrong in all other cases
    assert gap.value == 0 and (gap.low, gap.high) == (pytest.approx(-most), pytest.approx(most))


def test_a_pair_whose_run_failed_has_a_line_and_papers_of_other_pairs_say_nothing() -> None:
    one = run_of("x", graded=_answers(whole="1100"))
    other = run_of("y", graded=_answers(whole="1000"))
    kinds = [ModelPair("cost", "x", "y"), ModelPair("tuning", "x", "gone")]
    study = study_of(one, other, name="compositional-gsm")
    study.spec = replace(study.spec, pairs=tuple(kinds))
    (table,) = tables.pairs(study)
    made, failed = table.rows
    assert (made["pair"], made["value"], made["n"]) == ("cost: x − y", 0.25, 4)
    assert (failed["pair"], failed["what"], failed["shown"]) == ("tuning: x − gone", "failed", "no run of gone")
    assert tables.pairs(study_of(one)) == []
    apart = run_of(
        "y", graded=[replace(r, case=f"other-{r.case}") for r in _answers(whole="10")], protocol="double-gate"
    )
    one.run.protocol = "double-gate"
    (row,) = tables._pair_rows(study_of(one, apart), kinds[0], "d")
    assert row["what"] == "failed"


@pytest.mark.parametrize(
    ("kind", "preset", "applies"),
    [
        ("tuning", "compositional-gsm", True),
        ("cost", "compositional-gsm", False),
        ("cost", "composition-collapse", True),
    ],
)
def test_published_differences_stand_beside_pairs_that_are_matched_as_in_the_paper(
    kind: str, preset: str, applies: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Any] = []

    def beside(*about: Any, references: bool) -> tuple[str, str]:
        asked.append((*about, references))
        return "published", "source"

    monkeypatch.setattr(tables, "beside", beside)
    a, b = (run_of(name, graded=_answers(whole=whole)) for name, whole in (("x", "1100"), ("y", "1000")))
    (row,) = tables._pair_rows(study_of(a, b, name=preset), ModelPair(kind, "x", "y"), "d")
    group = {"quantity": "composition"}
    assert asked == [(preset, "pair_gain", group, tables.pair_name("org/x", "org/y"), "d", applies)]
    assert (row["published"], row["source"], row["data"]) == ("published", "source", "d")


def test_intervals_of_a_pair_are_drawn_with_the_seed_of_the_study(monkeypatch: pytest.MonkeyPatch) -> None:
    seeds: list[int] = []
    monkeypatch.setattr(tables, "differences", lambda a, b, seed=0: seeds.append(seed) or [])
    study = study_of(run_of("x"), run_of("y"))
    study.spec = replace(study.spec, seed=7)
    assert tables._pair_rows(study, ModelPair("cost", "x", "y"), "d") == []
    assert seeds == [7]


@pytest.mark.parametrize(("compat", "failed"), [(None, "0/1 - 0/2"), ("collapse", "1/2 - 0/2")])
def test_the_channels_of_a_pair_count_answers_as_each_run_does(compat: str | None, failed: str) -> None:
    def run(*wholes: tuple[str, str | None]) -> Any:
        rows = [Graded(f"c{i}", role, "correct", atom=f"a{i}" if "phrase" in role else None)
                for i in range(2) for role in ("part:0", "part:0:paraphrase:0")]  # fmt: skip
        rows += [Graded(f"c{i}", "whole", o, reason=why) for i, (o, why) in enumerate(wholes)]  # type: ignore[arg-type]
        counted = SimpleNamespace(compat=compat)
        return SimpleNamespace(run=SimpleNamespace(graded=rows, protocol="double-gate", cases={}, counted=counted))

    found = tables.differences(run(("invalid", "no-answer"), ("correct", None)), run(*[("correct", None)] * 2))
    note = next(m.note for m in found if m.metric == "delta_comp" and not m.group)
    assert f"R(A) - R(B) = {failed}" in str(note)
