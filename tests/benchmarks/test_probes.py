"""The benchmark measures what it says: all ways agree, times are paired, memory is a child's own, files read back."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from oracles import lookback as lookback_oracle
from oracles import neurons as neuron_oracle
from oracles import patching as patching_oracle

from composcope.benchmarks import probes, published
from composcope.benchmarks.probes import BEGIN, END, bench_probes, compare, measure, peak_memory, with_float32
from composcope.benchmarks.tasks import BenchPreset, Models, Shape, build, make, preset, texts
from composcope.errors import InputError
from composcope.hooks import Model

SHAPE = Shape(3, 32, 64, 4, 2, 61)
TINY = BenchPreset(
    "tiny",
    SHAPE,
    {
        "attribution": {"prompt": 9, "nodes": 6},
        "attribution-default": {"prompt": 9},
        "lookback": {"prompt": 12, "response": 5},
        "patching": {"prompt": 9, "donors": 2, "new": 3},
        "min-k": {"tokens": 20},
    },
)


@pytest.fixture(scope="module")
def lm() -> Model:
    return make(SHAPE)


@pytest.mark.parametrize("task", ["attribution", "lookback", "patching", "min-k"])
def test_all_ways_of_a_task_compute_the_same(lm: Model, task: str) -> None:
    ready = build(TINY, task, lm)
    ours = ready.ours()
    for name in ("naive", "published"):
        way = ready.against[name]
        error, scale, tokens = compare(way.cut(ours), way.run())
        # the published variance cancels: E[l^2] - E[l]^2
        assert error < (2e-3 if (task, name) == ("min-k", "published") else 2e-5) * max(scale, 1e-9), (task, name)
        assert tokens in (None, 0)
    assert ready.against["forward"].run() == {}


def test_rows_of_edits_compute_what_one_forward_pass_a_row_does(lm: Model) -> None:
    sizes = {"prompt": 9, "after": 3, "layers": 2, "rows": 12}
    ready = build(replace(TINY, tasks={"rows": sizes}), "rows", lm)
    way = ready.against["naive"]
    error, scale, _ = compare(way.cut(ready.ours()), way.run())
    assert error < 2e-5 * scale and way.share == 10 / 12


def test_published_ways_equal_the_literal_oracles(lm: Model) -> None:
    model = lm.model
    (prompt, donor), (response,) = texts(lm, 2, 9), texts(lm, 1, 4, seed=5)
    down = [layer.down for layer in lm.anatomy.layers if layer.down is not None]
    nodes = neuron_oracle.reference_nodes(6)
    want = neuron_oracle.attribute(model, torch.tensor([prompt]), 5, down, nodes)
    for got in (published.naive_attribution(model, prompt, 5, range(3), 6),
                published.published_attribution(model, prompt, 5, 6, batch=4)):  # fmt: skip
        torch.testing.assert_close(got, want, atol=1e-8, rtol=1e-4)
    with published.eager(model):
        ratios = lookback_oracle.ratios(model, prompt, response, 2)
    torch.testing.assert_close(published.published_lookback(model, prompt, response, 2), ratios, atol=1e-6, rtol=0)
    torch.testing.assert_close(published.naive_lookback(model, prompt, response, 2), ratios, atol=1e-6, rtol=0)
    tokens, logits = published.published_patching(model, [donor], prompt, 3)
    for layer, block in enumerate(lm.anatomy.layers):
        state = patching_oracle.block_output(model, torch.tensor([donor]), block.block)[-1]
        want_tokens, first = patching_oracle.patched_greedy(model, prompt, block.block, len(prompt) - 1, state, 3)
        assert tokens[0, layer].tolist() == want_tokens
        torch.testing.assert_close(logits[0, layer], first, atol=1e-5, rtol=0)
    assert model.config._attn_implementation == "sdpa"


def test_a_row_says_how_often_and_how_far_apart(lm: Model) -> None:
    rows = measure(build(TINY, "lookback", lm), TINY, lm.device, 3, memory=False)
    assert [r.against for r in rows] == ["naive", "published", "forward"]
    for r in rows:
        assert r.pairs == 3 and 0 < r.ratio_low <= r.ratio <= r.ratio_high
        assert r.seconds > 0 and r.seconds_other > 0
    assert rows[1].error < 1e-5 and rows[1].scale > 0.1


def test_work_done_in_part_is_scaled_to_the_whole(lm: Model) -> None:
    task = build(TINY, "attribution", lm)
    assert task.against["naive"].share == pytest.approx(2 / 3)
    assert build(TINY, "patching", lm).against["naive"].share == pytest.approx(2 / 6)
    assert task.against["naive"].cut({"score": torch.zeros(3, 4)})["score"].shape == (2, 4)


def test_an_error_that_is_not_a_number_is_never_small() -> None:
    bad = {"x": torch.tensor([1.0, torch.nan])}
    assert compare(bad, {"x": torch.tensor([1.0, 2.0])})[0] == float("inf")
    assert compare(bad, bad)[:2] == (0.0, 1.0)
    several = {"x": torch.tensor([9.0]), "y": torch.tensor([2.0])}
    assert compare({**several, "x": torch.tensor([1.0])}, several)[:2] == (8.0, 9.0), "the largest of all tensors"
    assert compare({"t": torch.tensor([1, 2])}, {"t": torch.tensor([1, 3])})[2] == 1
    with pytest.raises(ValueError, match="shapes"):
        compare({"x": torch.zeros(2)}, {"x": torch.zeros(3)})


def test_lower_precision_is_held_against_float32() -> None:
    low = replace(TINY, shape=replace(SHAPE, dtype="bfloat16"), against=("forward",))
    lm, wide = Models().get(low.shape)
    task = with_float32(build(low, "lookback", lm), low, lm, wide)
    row = next(r for r in measure(task, low, lm.device, 1, memory=False) if r.against == "float32")
    assert 0 < row.error < 0.1
    assert next(lm.model.parameters()).dtype is torch.bfloat16


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory):
    folder = tmp_path_factory.mktemp("bench")
    return bench_probes(TINY, repeats=1, memory=False, out=folder), folder


def test_everything_measured_is_written_and_reads_back(found) -> None:
    bench, folder = found
    document = json.loads((folder / "bench.json").read_text())
    assert document["machine"]["threads"] == 1 and document["machine"]["date"]
    assert {r["task"] for r in document["rows"]} == set(TINY.tasks)
    assert all(r["memory_mb"] is None for r in document["rows"])
    text = bench.markdown()
    assert "published" in text and document["machine"]["date"] in text


def test_only_the_marked_part_of_a_document_is_replaced(found, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = tmp_path / "page.md"
    page.write_text("before")
    monkeypatch.setattr(probes, "bench_probes", lambda *_, **__: found[0])
    monkeypatch.setattr(sys, "argv", ["probes", "--preset", "quick", "--docs", str(page)])
    with pytest.raises(InputError, match="add them where the table should go"):
        probes.main()
    page.write_text(f"before\n{BEGIN.format(name='quick')}\nold\n{END.format(name='quick')}\nafter\n")
    probes.main()
    text = page.read_text()
    assert text.startswith("before\n") and text.endswith("\nafter\n") and "old" not in text and "| lookback |" in text


def test_unknown_presets_and_tasks_are_named() -> None:
    with pytest.raises(InputError, match="use one of quick, llama12, gpu"):
        preset("big")
    with pytest.raises(InputError, match="preset tiny has attribution"):
        bench_probes(TINY, ["nothing"])
    if not torch.cuda.is_available():
        with pytest.raises(InputError, match="no CUDA device"):
            bench_probes(preset("gpu"))


@pytest.mark.slow
def test_peak_memory_is_that_of_one_way_in_a_process_of_its_own() -> None:
    ours, theirs = (peak_memory("quick", "attribution", way) for way in ("ours", "published"))
    assert 0 < ours < theirs
