"""Figures of heads, neurons and likelihoods: how many cases a cell rests on, which rows are drawn, what is named."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from composcope.experiments import figures
from composcope.experiments.figures import layers, mechanism, style
from composcope.experiments.run.reader import ProbeData

from ..bare_runs import bare_run


def test_one_colored_cell_has_the_number_of_cases_of_its_two_groups_together() -> None:
    rows = [{"quantity": "neuron_overlap", "kind": "a & b", "group": g, "n": n}
            for g, n in (("failure", 7), ("success", 4), ("failure - success", 11))]  # fmt: skip
    probe = ProbeData("neurons", rows)
    assert [mechanism._cell_count(probe, *pair)["n"] for pair in (("a", "b"), ("b", "a"), ("a", "a"))] == [11, 11, None]
    ratios = [{"quantity": "lookback_ratio", "kind": "k", "group": g, "n": n}
              for g, n in (("failure", 7), ("success", 4))]  # fmt: skip
    counts = [mechanism.behind(ProbeData("lookback", ratios).rows("lookback_ratio", kind="k"), s)
              for s in ("failure", "success", "difference")]  # fmt: skip
    assert counts == [7, 4, 4], "a difference rests on the smaller group"


def test_the_caption_of_heads_names_the_largest_difference_with_its_adjusted_p() -> None:
    row = {"quantity": "lookback_ratio_map", "kind": "composition", "layer": 2, "head": 5, "value": -0.1254, "p": 0.01,
           "p_adjusted": 0.25}  # fmt: skip
    untested = [{**row, "head": 7, "p_adjusted": None}, {**row, "head": 8, "value": None}]
    found: Any = [(None, "model", ProbeData("lookback", [row, {**row, "kind": "math", "head": 3}, *untested]))]
    assert mechanism._best_cell(found) == (
        " Largest difference relative to its spread, model: layer 2, head 5, -0.125 (adjusted p=0.25)."
    )
    settings = {"rule": "reference", "t": 0.2, "v": 20}
    runs: Any = [(None, f"m{i}", ProbeData("neurons", (), settings={**settings, "u": u})) for i, u in enumerate("xxy")]
    assert mechanism._settings(runs, "rule", "t", "v", "w") == " Settings: rule=reference, t=0.2, v=20."
    assert mechanism._settings(runs, "u") == " m0, m1: settings: u=x. m2: settings: u=y."


def test_rows_by_kind_leave_out_comparisons_and_other_groups(synthetic: ModuleType, tmp_path: Path) -> None:
    run = synthetic.make_run(tmp_path / "r", n=8, probes=())
    rows = [{"quantity": "min_k_pp", "kind": kind, "group": group, "n": 20, "value": 0.5, "low": 0.4, "high": 0.6,
             "interval": "t"}
            for kind in ("composition", "composition - math", None) for group in ("failure", "success", "matched")
            ]  # fmt: skip
    synthetic.write_probe(run / "probes" / "min-k", "min-k", rows, {}, {})
    found = figures.draw("mink", [run]).rows
    assert [(r["kind"], r["group"]) for r in found] == [("composition", "failure"), ("composition", "success")]


@pytest.mark.parametrize(
    ("known", "left"), [("all bridge operand", "all bridge operand"), ("all operand", "operand"), ("all", "all")]
)
def test_altered_steps_are_drawn_together_only_where_they_are_of_several_kinds(known: str, left: str) -> None:
    rows = [{"what": what, "step": step, "group": group, "n": 9, "value": 1 / 3, "low": None, "high": None}
            for what in mechanism.ENDS.values() for step in known.split() for group in style.GROUP_COLORS]  # fmt: skip
    rows += [{**row, "step": "result", "n": 0, "value": None} for row in rows if row["step"] == "all"]
    mechanism._draw_altered(style.figure(3, 3).subplots(), rows)
    assert list(dict.fromkeys(r["step"] for r in rows if r["drawn"] != "no")) == left.split()


def test_captions_of_probes_say_how_many_cases_they_rest_on_and_where_they_read(
    synthetic: ModuleType, tmp_path: Path
) -> None:
    cells = (("composition", "failure", 7), ("composition", "success", 9), ("math", "failure", 5))
    rows = [{"quantity": "q", "kind": kind, "group": group, "n": n} for kind, group, n in cells]
    found: Any = [(None, "one", ProbeData("neurons", rows)), (None, "other", ProbeData("neurons", ()))]
    said = mechanism._counts(found, "q")
    assert "one: 7 failure, 9 success" in said and "other" not in said and mechanism._counts(found[1:], "q") == ""
    places: list[dict[str, Any]] = [{"position": "answer-slot", "coincide": "3 of 4"}, {}, {"position": "prompt-end"}]
    where: Any = [(None, n, ProbeData("q", (), settings=s)) for n, s in zip("abc", places, strict=True)]
    slot, end, mixed = (mechanism.read_where(w) for w in (where[:1], where[1:], where))
    assert (
        "at the answer slot" in slot and "3 of 4" in slot and "answer slot" not in end and "at the prompt's end" in end
    )
    assert "a: read at the answer slot" in mixed and "b, c: read at the prompt's end" in mixed
    runs = figures.load([synthetic.make_run(tmp_path / "run", n=24, probes=("neurons",))])
    assert mechanism.read_where(mechanism.with_probe(runs, "neurons")) in figures.draw("neuron-check", runs).caption


def _number(*key: object) -> float:
    """A number of its own for every key."""
    return round(random.Random(repr(key)).random(), 4)


def _row(quantity: str, **keys: Any) -> dict[str, Any]:
    """A row of a probe's table whose numbers say which row it is."""
    x = _number(quantity, *sorted(keys.items()))
    return {"quantity": quantity, **keys, "n": 10 + int(1e6 * x), "count": int(1e5 * x), "value": x, "low": x - 0.1,
            "high": x + 0.1, "interval": "t"}  # fmt: skip


GROUPS, KINDS, LAYERS = ("failure", "success", "failure - success"), ("composition", "math"), (0, 1)


def _maps(*names: str, shape: tuple[int, ...] = (2, 3)) -> dict[str, np.ndarray]:
    return {n: np.array([_number(n, *i) for i in np.ndindex(shape)]).reshape(shape) for n in names}


def _of_kinds(*quantities: str) -> list[dict[str, Any]]:
    return [_row(q, kind=k, group=g) for q in quantities for k in (*KINDS, "composition - math") for g in GROUPS]


FIGURES: dict[str, tuple[str, ProbeData, Callable[[dict[str, Any]], dict[str, Any]]]] = {
    "patching": (
        "patching",
        ProbeData("patching", [_row(q, group=g, layer=n) for q in layers.MEASURES for n in LAYERS
                               for g in ("donor", "identity", "random", "noise", "donor - random")]),
        lambda r: _row("flip_rate", group=r["patch"], layer=r["layer"]),
    ),
    "cosine-prompt-end": (
        "trajectory",
        ProbeData("trajectory", [_row(f"{f}_cosine", group=g, layer=n) for f in ("prompt_end", "centered")
                                 for g in layers.COSINES.values() for n in LAYERS],
                  _maps(*(f"{f}.{k}" for f in ("prompt_end", "centered") for k in layers.COSINES), shape=(2,))),
        lambda r: _row(f"{'prompt_end' if r['form'] == 'plain' else 'centered'}_cosine", group=r["pairs"],
                       layer=r["layer"])
        | {"value": _number(f"{'prompt_end' if r['form'] == 'plain' else 'centered'}."
                            + next(k for k, v in layers.COSINES.items() if v == r["pairs"]), r["layer"])},
    ),
    "cosine-trajectory": (
        "trajectory",
        ProbeData("trajectory", [_row("step_cosine", group=g, layer=n) for g in GROUPS[:2] for n in LAYERS],
                  _maps("step.failure", "step.success", "step_norm.failure", "step_norm.success")
                  | {f"step_n.{g}": np.array([9 + len(g) % 2, 7, 5 + i]) for i, g in enumerate(GROUPS[:2])}),
        lambda r: _row("step_cosine", group=r["group"], layer=r["layer"]) if "step" not in r else
        {"value": _number(f"step.{r['group']}", r["layer"], r["step"]),
         "n": (9 + len(r["group"]) % 2, 7, 5 + GROUPS.index(r["group"]))[r["step"]]},
    ),
    "readout": (
        "readout",
        ProbeData("readout", [_row("held_lens", kind="bridge", group=g, foils=f) for g in GROUPS for f in layers.FOILS],
                  _maps(*(f"lens.{f}.{k}" for f in layers.FOILS for k in ("bridge.failure", "bridge.success",
                                                                          "difference.bridge", "p.bridge"))),
                  settings={"places": ["entity", "prompt-end", "answer-slot"]}),
        lambda r: {"value": _number(
            f"lens.{r['foils']}.{'difference.bridge' if r['show'] == 'difference' else 'bridge.' + r['show']}",
            r["layer"] + 1, ("entity", "prompt-end", "answer-slot").index(r["place"])),
            "n": min(_row("held_lens", kind="bridge", group=g, foils=r["foils"])["n"]
                     for g in (GROUPS[:2] if r["show"] == "difference" else (r["show"],)))},
    ),
    "lookback": (
        "lookback",
        ProbeData("lookback", _of_kinds("lookback_ratio", "lookback_ratio_sum"),
                  _maps(*(f"ratio.{k}.{g}" for k in KINDS for g in GROUPS[:2]),
                        *(f"{what}.{k}" for what in ("difference", "p") for k in KINDS))),
        lambda r: {"value": _number(f"difference.{r['kind']}" if r["show"] == "difference" else
                                    f"ratio.{r['kind']}.{r['show']}", r["layer"], r["head"])},
    ),
    "neuron-layers": (
        "neurons",
        ProbeData("neurons", [_row("neurons_in_layer", group=g, kind=k, layer=n) for g in GROUPS[:2]
                              for k in ("shared", "own") for n in LAYERS]),
        lambda r: _row("neurons_in_layer", group=r["set"].split(", ")[0], kind=r["set"].split(", ")[1],
                       layer=r["layer"]),
    ),
    "neuron-overlap": (
        "neurons",
        ProbeData("neurons", [_row("neuron_overlap", kind="composition & math", group=g) for g in GROUPS],
                  _maps("overlap", "overlap.failure", shape=(2, 2)), settings={"tasks": [*KINDS]}),
        lambda r: {"value": _number("overlap", KINDS.index(r["task"]), KINDS.index(r["other"]))},
    ),
    **{name: (probe, ProbeData(probe, _of_kinds(quantity, *others)),
              lambda r, q=quantity: _row(q, kind=r["kind"], group=r["group"]))
       for name, probe, quantity, *others in (
           ("neuron-overlap-means", "neurons", "neuron_overlap", "neuron_overlap_excess", "neuron_jaccard"),
           ("neuron-check", "neurons", "suppress_log_ratio_excess", "suppress_log_ratio", "amplify_log_ratio_excess"),
           ("lookback-means", "lookback", "lookback_ratio", "lookback_ratio_sum"),
           ("mink", "min_k", "min_k_pp", "min_k", "log_prob"))},
    "faithfulness": (
        "faithfulness",
        ProbeData("faithfulness", [
            *(_row("kept_early", shown=s, group=g) for s in (0.0, 0.5, 1.0) for g in GROUPS),
            *(_row(q, group=g) for q in ("kept_filler", "kept_same", "kept_before_end") for g in GROUPS),
            *(_row(q, step=s, group=g) for q in mechanism.ENDS for s in mechanism.STEPS for g in GROUPS)]),
        lambda r: _row("kept_early", shown=r["shown"], group=r["group"]) if r["what"] == "early" else
        _row("kept_filler", group=r["group"]) if r["what"] == "filler" else
        _row(next(q for q, said in mechanism.ENDS.items() if said == r["what"]), step=r["step"], group=r["group"]),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", FIGURES)
def test_every_row_of_a_probes_figure_has_the_numbers_of_what_it_names(name: str) -> None:
    probe, data, wanted = FIGURES[name]
    rows = figures.FIGURES[name].draw([bare_run(probe=lambda asked: data if asked == probe else None)]).rows
    for row in rows:
        told = wanted(row)
        assert {k: row[k] for k in ("value", "low", "high", "n") if k in told} == {
            k: pytest.approx(told[k]) for k in ("value", "low", "high", "n") if k in told
        }, row  # fmt: skip
    assert name != "faithfulness" or {r["what"] for r in rows} == {"early", "filler", *mechanism.ENDS.values()}
    named = [tuple((k, v) for k, v in row.items() if isinstance(v, str | int | None)) for row in rows]
    assert len(rows) >= 4 and len(set(named)) == len(named)


@pytest.mark.parametrize("kinds", [("composition", "math"), ("math", "commonsense")])
def test_a_map_of_heads_names_every_kind_that_it_shows_and_the_few_cases_of_each(kinds: tuple[str, str]) -> None:
    maps = _maps(*(f"ratio.{k}.{g}" for k in kinds for g in GROUPS[:2]), *(f"difference.{k}" for k in kinds))
    rows = [{"quantity": "lookback_ratio", "kind": k, "group": g, "n": n, "value": 0.5}
            for k, n in zip(kinds, (3, 4), strict=True) for g in GROUPS[:2]]  # fmt: skip
    found = ProbeData("lookback", rows, maps)
    drawing = figures.FIGURES["lookback"].draw([bare_run(probe=lambda _: found)])
    lines = [a.get_ylabel().replace("\n", " ") for a in drawing.figure.axes if a.get_ylabel().endswith("layer")]
    if "composition" in kinds:
        assert "answering the whole" in drawing.caption and "m, failure (n=3)" in drawing.caption
        assert lines == ["m layer"] and "(n=4)" not in drawing.caption, "other kinds stand in the csv alone"
    else:
        assert lines == [f"m, {k} layer" for k in kinds] and "answering the math or commonsense" in drawing.caption
        assert all(f"m, {k}, failure (n={n})" in drawing.caption for k, n in zip(kinds, (3, 4), strict=True))
