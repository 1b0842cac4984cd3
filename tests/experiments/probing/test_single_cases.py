"""What is kept of single cases is what the probes measure, and says what was left out; prompts are kept as sent."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from composcope.errors import NoCasesError
from composcope.evaluation.asks import Ask, Response
from composcope.evaluation.engines.text import verbatim
from composcope.evaluation.graded import Graded
from composcope.evaluation.protocols.base import Reduction
from composcope.experiments import probing
from composcope.experiments.config import Config
from composcope.experiments.distributed.store import CachedModel, Store
from composcope.experiments.probing import _unmatched, choose, correct_together, inputs_hash, write_cases
from composcope.experiments.run import write_text
from composcope.experiments.run.folder import MEASURED
from composcope.experiments.run.schema import Evaluated
from composcope.experiments.run.single_cases import Rendered, rendered, save_rendered
from composcope.files import read_csv, to_csv
from composcope.probes import lookback as lookback_probe
from composcope.probes import min_k as min_k_probe
from composcope.probes import patching as patching_probe
from composcope.probes import single_cases
from composcope.probes import trajectory as trajectory_probe
from composcope.probes.catalog import PROBES
from composcope.probes.examples import Example
from composcope.probes.result import ProbeResult
from composcope.probes.single_cases import pieces
from composcope.probes.slots import Slot
from composcope.probes.verdicts import MATCHED

Lm = Callable[[str], Any]
ASK = Ask("a", "whole", "1?", "1", "number")


@pytest.mark.parametrize("text", ["plain words", "naïve 日本語 🙂 end", "🙂", " leading", "a\n\nb\t", "\u202eabc"])
def test_pieces_add_up_to_the_text_also_where_characters_are_spread_over_tokens(
    bytes_tokenizer: Any, text: str
) -> None:
    ids = bytes_tokenizer(text).input_ids
    found = pieces(bytes_tokenizer, ids)
    assert len(found) == len(ids) and "".join(found) == text == verbatim(bytes_tokenizer, ids)


def test_pieces_add_up_where_tokens_end_one_character_and_begin_the_next() -> None:
    text = "🙂🙃🙂🙃🙂🙃a"
    parts = [text.encode()[max(0, i - 2) : i + 2] for i in range(0, len(text.encode()) + 2, 4)]
    tokenizer = SimpleNamespace(decode=lambda ids, **_: b"".join(parts[i] for i in ids).decode(errors="replace"))
    assert "".join(pieces(tokenizer, range(len(parts)))) == text


def test_pieces_of_broken_bytes_do_not_stall(bytes_tokenizer: Any) -> None:
    smile = bytes_tokenizer("🙂").input_ids
    ids = [*smile[:2], *bytes_tokenizer("then text").input_ids, *smile[:1]]
    found = pieces(bytes_tokenizer, ids)
    assert len(found) == len(ids) and "".join(found).endswith("hen text\ufffd")


@pytest.mark.parametrize("name", ["llama", "gemma2", "gpt_oss"])
def test_kept_attention_is_a_distribution_and_its_ratio_is_the_probes_own(
    tiny_lm: Lm, labelled: list[Example], name: str
) -> None:
    lm = tiny_lm(name)
    found = single_cases.lookback_cases(lm, labelled[:4], {})
    for e, entry in zip(labelled, found.entries, strict=False):
        attention, ratio = entry.tensors["attention"].float(), entry.tensors["ratio"].float()
        (want,) = lookback_probe.ratios(lm, [e.prompt_ids], [e.response_ids], e.cue_tokens)
        torch.testing.assert_close(ratio, want.float(), atol=1e-3, rtol=1e-2, equal_nan=True)
        total = attention.sum(-1)
        if name == "gpt_oss":  # sinks take the rest
            assert bool((total < 1.002).all() and (total > 0).all()) and float(total.min()) < 0.99
        else:
            torch.testing.assert_close(total, torch.ones_like(total), atol=5e-3, rtol=0)
        n = len(e.prompt_ids)
        future = [attention[:, s, n + s :] for s in range(attention.shape[1])]
        assert all(float(x.abs().sum()) == 0 for x in future)
        sizes = {"prompt_tokens": n, "context_tokens": n - e.cue_tokens, "response_tokens": len(e.response_ids)}
        named = {"case": e.case, "role": e.role, "kind": e.kind, "group": e.group, "question": [*e.question_span]}
        assert {**sizes, **named, "steps": attention.shape[1]}.items() <= entry.about.items()
        assert entry.about["tokens"] == [f"w{i}" if k == 0 else f" w{i}" for k, i in
                                         enumerate([*e.prompt_ids, *e.response_ids])]  # fmt: skip


def test_where_not_all_heads_fit_those_that_differ_most_are_kept() -> None:
    difference = torch.tensor([[0.1, -0.9], [float("nan"), 0.5]])
    assert single_cases.chosen_heads((2, 2), difference, 2) == [(0, 1), (1, 1)]
    assert single_cases.chosen_heads((2, 2), None, 9) == [(0, 0), (0, 1), (1, 0), (1, 1)]


def test_heads_of_a_case_are_chosen_by_the_map_of_its_own_kind(
    labelled: list[Example], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(single_cases, "_entry", lambda lm, example, difference, budget: (example.kind, difference))
    maps = {kind: torch.full((1, 1), float(i)) for i, kind in enumerate({e.kind for e in labelled})}
    found: Any = single_cases.lookback_cases(None, labelled, maps).entries
    assert len(maps) > 1 and all(difference is maps[kind] for kind, difference in found)


@pytest.mark.parametrize(("n", "budget"), [(1, 1_000_000), (8, 1_000_000), (16, 500_000)])
def test_the_attention_of_many_cases_shares_what_may_be_kept(
    labelled: list[Example], monkeypatch: pytest.MonkeyPatch, n: int, budget: int
) -> None:
    monkeypatch.setattr(single_cases, "_entry", lambda *given: given[-1])
    assert single_cases.lookback_cases(None, labelled[:1] * n, {}).entries == [budget] * n


@pytest.mark.parametrize(("question", "end", "most"), [((30, 45), 60, 40), ((400, 480), 520, 150), ((0, 45), 60, 40)])
def test_long_prompts_are_told_apart_only_at_the_question_and_after(
    question: tuple[int, int], end: int, most: int
) -> None:
    spans = single_cases.key_spans(question, end, most)
    assert spans[0][0] == 0 and spans[-1][1] == end and len(spans) <= max(most, end - question[0])
    assert all(a[1] == b[0] for a, b in pairwise(spans))
    assert all(b - a == 1 for a, b in spans if a >= question[0])


def test_merged_keys_hold_the_sum_of_their_attention(
    tiny_lm: Lm, labelled: list[Example], monkeypatch: pytest.MonkeyPatch
) -> None:
    lm, e = tiny_lm("llama"), labelled[0]
    long = Example(e.case, e.role, e.kind, e.group, e.prompt_ids, e.response_ids, e.answer_ids, 2, (6, 9))
    (full,) = single_cases.lookback_cases(lm, [long], {}).entries
    whole = single_cases.key_spans
    monkeypatch.setattr(single_cases, "key_spans", lambda q, end: whole(q, end, 14))
    (merged,) = single_cases.lookback_cases(lm, [long], {}).entries
    spans = merged.about["spans"]
    assert spans is not None and spans[0] == [0, 2]
    want = full.tensors["attention"].float()
    got = merged.tensors["attention"].float()
    for k, (a, b) in enumerate(s for s in spans if s[0] < want.shape[-1]):
        torch.testing.assert_close(got[..., k], want[..., a:b].sum(-1), atol=2e-3, rtol=0)
    torch.testing.assert_close(merged.tensors["ratio"], full.tensors["ratio"], atol=2e-3, rtol=0, equal_nan=True)
    monkeypatch.setattr(single_cases, "LOOKBACK_STEPS", 1)
    (first,) = single_cases.lookback_cases(lm, [long], {}).entries
    assert (first.about["steps"], first.about["response_tokens"]) == (1, len(e.response_ids)) != (1, 1)


def test_token_scores_and_steps_are_the_probes_own(tiny_lm: Lm, labelled: list[Example]) -> None:
    lm = tiny_lm("llama")
    for e, entry in zip(labelled, single_cases.min_k_cases(lm, labelled).entries, strict=True):
        (want,) = min_k_probe.token_scores(lm, [e.prompt_ids], [e.question_span])
        np.testing.assert_allclose(entry.tensors["z"].numpy(), want.z, atol=1e-4)
        assert entry.about["first"] == want.positions[0]
    for e, entry in zip(labelled, single_cases.trajectory_cases(lm, labelled).entries, strict=True):
        (steps,) = trajectory_probe.step_cosines(lm, [e.prompt_ids], [e.response_ids])
        torch.testing.assert_close(entry.tensors["cosines"].double(), steps.cosines, atol=1e-3, rtol=0)


def test_a_response_of_one_token_is_left_out_and_said(tiny_lm: Lm, labelled: list[Example]) -> None:
    e = labelled[0]
    short = Example(e.case, e.role, e.kind, e.group, e.prompt_ids, (5,), e.answer_ids, 2, e.question_span)
    found = single_cases.trajectory_cases(tiny_lm("llama"), [short])
    assert found.entries == [] and "one token" in found.left_out[0]


@pytest.fixture
def patched(tiny_lm: Lm, labelled: list[Example], tmp_path: Path) -> Path:
    patching_probe.over_examples(tiny_lm("llama"), labelled, max_new_tokens=4).save(tmp_path / "patching")
    return tmp_path / "patching"


def test_continuations_are_read_back_from_the_probe_and_equal_pairs_are_swept(
    tiny_lm: Lm, labelled: list[Example], patched: Path
) -> None:
    lm = tiny_lm("llama")
    found = single_cases.patching_cases(lm, labelled, patched, 3)
    tensors = load_file(patched / "tensors.safetensors")
    cases = json.loads((patched / "result.json").read_text())["settings"]["cases"]
    wholes = {e.case: e for e in labelled if e.role == "whole"}
    assert 0 < len(found.entries) <= single_cases.MOST_SWEEPS
    swept = 0
    for entry in found.entries:
        place = cases.index([entry.about["donor"], entry.about["case"]])
        for layer, text in enumerate(entry.about["patched"]):
            assert text == verbatim(lm.tokenizer, [int(t) for t in tensors["tokens"][place, layer] if t >= 0])
        donor, recipient = wholes[entry.about["donor"]], wholes[entry.about["case"]]
        if len(donor.prompt_ids) != len(recipient.prompt_ids):
            assert not entry.tensors and any("no sweep" in line for line in found.left_out)
            continue
        swept += 1
        assert entry.about["answers"] == [verbatim(lm.tokenizer, e.answer_ids[:1]) for e in (donor, recipient)]
        recovered = entry.tensors["resid_post.recovered"].float()
        assert recovered.shape == (3, len(recipient.prompt_ids))
        # After the last block only the last position matters, and there it is the donor's.
        torch.testing.assert_close(recovered[-1, -1], torch.tensor(1.0), atol=1e-2, rtol=0)
        assert float(recovered[-1, :-1].abs().max()) < 1e-3
    assert 1 <= swept <= single_cases.MOST_SWEEPS


def test_pairs_of_the_commonest_length_come_first_and_then_the_cases_that_are_preferred(
    tiny_lm: Lm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lengths = [(5, 5), (6, 6), (6, 6), (6, 7), (6, 7)]
    examples = [
        Example(f"{group[0]}{i}", "whole", "composition", group, (9,) * n[side], (4,), (5 + side,), 1, (0, 2))
        for i, n in enumerate(lengths)
        for side, group in enumerate(("success", "failure"))
    ]
    cases = [(f"s{i}", f"f{i}") for i in range(len(lengths))]
    write_text(tmp_path / "result.json", json.dumps({"settings": {"cases": cases, "layers": [0]}}))
    shown = torch.zeros(len(lengths), 1, 1, dtype=torch.long)
    save_file({"tokens": shown, "base_tokens": shown[:, 0].clone(), "donor_tokens": shown[:, 0].clone()},
              tmp_path / "tensors.safetensors")  # fmt: skip
    monkeypatch.setattr(single_cases, "planned", lambda *_: ([0], []))
    found = single_cases.patching_cases(tiny_lm("llama"), examples, tmp_path, 3, {"f4"})
    assert [e.about["case"] for e in found.entries] == ["f1", "f2", "f4"]
    one = single_cases.patching_cases(tiny_lm("llama"), examples, tmp_path, 1, {"f4"})
    assert [e.about["case"] for e in one.entries] == ["f1", "f2"], "pairs that can be swept are all kept"


def test_continuations_of_a_grid_are_those_of_the_pairs_own_donor_and_recipient(tiny_lm: Lm, tmp_path: Path) -> None:
    lm = tiny_lm("llama")
    examples = [
        Example(f"{group[0]}{i}", "whole", "composition", group, (9,) * (5 + i), (4,), (5,), 1, (0, 2))
        for i in range(2)
        for group in ("success", "failure")
    ]
    settings = {"cases": [("s1", "f0"), ("s0", "f1")], "pairs": [(1, 0), (0, 1)], "layers": [0]}
    write_text(tmp_path / "result.json", json.dumps({"settings": settings}))
    grid = torch.tensor([[10, 11], [12, 13]])[..., None, None]  # donor recipient layer step
    base, donor = torch.tensor([[20], [21]]), torch.tensor([[30], [31]])
    save_file({"tokens": grid, "base_tokens": base, "donor_tokens": donor}, tmp_path / "tensors.safetensors")
    found = single_cases.patching_cases(lm, examples, tmp_path, 2)
    said = {e.about["case"]: [e.about[k] for k in ("patched", "unpatched", "donors_own")] for e in found.entries}
    text = {i: verbatim(lm.tokenizer, [i]) for i in range(40)}
    assert said == {"f0": [[text[12]], text[20], text[31]], "f1": [[text[11]], text[21], text[30]]}


@pytest.mark.parametrize(("position", "more"), [(None, 0), ("prompt-end", 0), ("answer-slot", 2)])
def test_pairs_are_shown_at_the_position_at_which_the_probe_read(
    tiny_lm: Lm, tmp_path: Path, position: str | None, more: int
) -> None:
    examples = [
        Example(f"{group[0]}0", "whole", "composition", group, (9,) * n, (4, 7, 5, 2), (5,), 1, (0, 2), slot=Slot(2))
        for n, group in ((5, "success"), (6, "failure"))
    ]
    settings = {"cases": [("s0", "f0")], "layers": [0]} | ({} if position is None else {"position": position})
    write_text(tmp_path / "result.json", json.dumps({"settings": settings}))
    shown = torch.zeros(1, 1, 1, dtype=torch.long)
    save_file({"tokens": shown, "base_tokens": shown[:, 0].clone(), "donor_tokens": shown[:, 0].clone()},
              tmp_path / "tensors.safetensors")  # fmt: skip
    (entry,) = single_cases.patching_cases(tiny_lm("llama"), examples, tmp_path, 1).entries
    assert len(entry.about["tokens"]) == 6 + more


def test_a_sweep_that_costs_too_much_is_thinned_and_then_left_out(
    tiny_lm: Lm, labelled: list[Example], patched: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lm, e = tiny_lm("llama"), labelled[0]
    layers, positions = single_cases.planned(lm, e)
    assert layers == [0, 1, 2] and positions == list(range(len(e.prompt_ids)))
    monkeypatch.setattr(single_cases, "FEWEST_POSITIONS", 3)
    size = sum(p.numel() for p in lm.model.parameters())
    one = single_cases.SWEEPS * 2 * size * len(e.prompt_ids) * 3 * len(single_cases.SITES)
    monkeypatch.setattr(single_cases, "FLOPS", {"cpu": 4.5 * one})
    _, some = single_cases.planned(lm, e)
    assert len(some) == 4 and some[-1] == len(e.prompt_ids) - 1 and some[0] == e.question_span[0]
    monkeypatch.setattr(single_cases, "FLOPS", {"cpu": 1.5 * one})
    assert single_cases.planned(lm, e)[1] == []
    found = single_cases.patching_cases(lm, labelled, patched, 3)
    assert all(not entry.tensors for entry in found.entries)
    assert any("costs too much" in line for line in found.left_out)


def test_the_index_says_how_many_cases_are_kept_of_how_many(
    tiny_lm: Lm, labelled: list[Example], tmp_path: Path
) -> None:
    folder = tmp_path / "lookback"
    lm = tiny_lm("llama")
    lookback_probe.over_examples(lm, labelled, permutations=10).save(folder)
    few = [e for e in labelled if e.case in ("c0", "c1")]
    write_cases("lookback", lm, few, labelled, 1, folder, "hash")
    about = json.loads((folder / "cases" / "index.json").read_text())
    assert about["note"] == "kept for 1 of 3 failure cases, 1 of 3 success cases" and about["cases_per_group"] == 1
    assert [(e["case"], e["role"]) for e in about["entries"]] == [(e.case, e.role) for e in few]
    tensors = load_file(folder / "cases" / "tensors.safetensors")
    assert set(tensors) == {f"{i}.{k}" for i in range(4) for k in ("ratio", "attention")}
    assert {t.dtype for t in tensors.values()} == {torch.float16}
    write_cases("lookback", lm, (), labelled, 0, folder, "other")
    assert not (folder / "cases" / "tensors.safetensors").exists()


def test_a_probe_without_pictures_of_cases_writes_nothing(tiny_lm: Lm, labelled: list[Example], tmp_path: Path) -> None:
    assert write_cases("faithfulness", tiny_lm("llama"), labelled, labelled, 3, tmp_path, "hash") == []
    assert list(tmp_path.iterdir()) == []


def test_at_most_so_many_pairs_are_probed_and_without_pairs_so_many_of_each_group(labelled: list[Example]) -> None:
    def chosen(some: list[Example], n: int) -> tuple[dict[str, int], bool]:
        found = choose(some, n)
        cases = Counter(group for _, group in {(e.case, e.group) for e in found.examples})
        return dict(cases), found.contrast

    assert chosen(labelled, 2) == ({"failure": 2, "success": 2}, True)
    assert chosen(labelled, 9) == ({"failure": 3, "success": 3}, True)
    apart = [replace(e, family=e.group) for e in labelled]
    assert [chosen(apart, n) for n in (1, 2)] == [({"failure": n, "success": n}, False) for n in (1, 2)]


def test_a_probe_is_measured_again_where_anything_that_its_numbers_depend_on_has_changed(
    labelled: list[Example],
) -> None:
    settings = Config(model="m", benchmark="b")
    others = {"seed": 1, "dtype": "bfloat16", "rows_dtype": "float32", "position": "prompt-end"}
    made = [inputs_hash("neurons", labelled, settings.replace(**{k: v}), "m") for k, v in others.items()]
    made += [inputs_hash("neurons", labelled, settings, other) for other in ("m", "another")]
    made += [inputs_hash("neurons", labelled[1:], settings, "m"), inputs_hash("min-k", labelled, settings, "m")]
    assert len(set(made)) == len(made)
    assert inputs_hash("neurons", labelled, settings.replace(batch_size=2), "m") == made[4]


def test_p_values_of_all_probes_of_a_run_are_adjusted_together(tmp_path: Path) -> None:
    for probe, quantity, p in (("lookback", "lookback_ratio", 0.01), ("min-k", "min_k_pp", 0.04), ("x", "other", "")):
        row = {"quantity": quantity, "kind": "composition", "group": MATCHED, "p": p, "p_adjusted": p}
        write_text(tmp_path / "probes" / probe / "table.csv", to_csv([row]))
    correct_together(tmp_path)
    found = {p.parent.name: read_csv(p)[1][0]["p_adjusted"] for p in tmp_path.glob("probes/*/table.csv")}
    assert {name: float(p) for name, p in found.items() if p} == {"lookback": 0.02, "min-k": 0.04}


def test_an_ask_that_cases_share_stands_for_each_of_them_with_its_own_role() -> None:
    rows = [Graded("a", "whole", "correct", ask="k"), Graded("b", "part:1", "correct", ask="k")]
    found = Evaluated({}, {"k": ASK}, {"k": Response("k", "1", "stop", 1, 1)}, rows, Reduction(()))
    asks, responses = found.per_case()
    assert [(a.case, a.role) for a in asks.values()] == [("a", "whole"), ("b", "part:1")]
    assert asks.keys() == responses.keys()


def _asked(tokenizer: Any, **prompts: tuple[str, str]) -> tuple[dict[str, Ask], dict[str, Response]]:
    asks = {k: Ask("c", "whole", prompt, "1", "number") for k, (prompt, _) in prompts.items()}
    answers = {
        k: Response(k, "1", "stop", 1, 1, prompt_ids=tuple(tokenizer(sent).input_ids))
        for k, (_, sent) in prompts.items()
    }
    return asks, answers


def test_what_stands_around_a_prompt_is_stored_once(bytes_tokenizer: Any) -> None:
    asks, answers = _asked(bytes_tokenizer, a=("One?", "<u>One?</u>"), b=("Two?", "<u>Two?</u>"), c=("x", "x"))
    found = rendered(bytes_tokenizer, asks, answers)
    assert found["templates"] == [["<u>", "</u>"], ["", ""]] and found["asks"] == {"a": 0, "b": 0, "c": 1}
    examples = _asked(bytes_tokenizer, a=("One?", "One? One.\n<u>One?</u>"))  # a worked example asks the same
    assert rendered(bytes_tokenizer, *examples)["templates"] == [["One? One.\n<u>", "</u>"]]


def test_a_template_that_rewrites_the_prompt_is_kept_whole(bytes_tokenizer: Any) -> None:
    asks, answers = _asked(bytes_tokenizer, a=("  One? ", "<u>One?</u>"))
    assert rendered(bytes_tokenizer, asks, answers)["asks"] == {"a": "<u>One?</u>"}


def test_an_ask_whose_server_hides_its_prompt_is_missing(bytes_tokenizer: Any, tmp_path: Path) -> None:
    asks = {"a": Ask("c", "whole", "One?", "1", "number")}
    answers = {"a": Response("a", "1", "stop", 1, 1)}
    path = save_rendered(tmp_path, bytes_tokenizer, asks, answers)
    assert path is not None and json.loads(path.read_text())["asks"] == {}
    assert save_rendered(tmp_path / "none", None, asks, answers) is None


def test_groups_of_which_no_two_cases_match_are_contrasted_under_a_warning() -> None:
    contrasted = ProbeResult("p", [{"quantity": "q", "group": "failure - success"}], warnings=["first"])
    assert len(_unmatched(contrasted).warnings) == 2 and _unmatched(contrasted).warnings[0] == "first"
    alone = ProbeResult("p", [{"quantity": "q", "group": "failure"}, {"quantity": "q"}])
    assert _unmatched(alone) is alone


def test_a_probe_of_which_no_value_is_known_says_so() -> None:
    rows = [{"quantity": "q", "group": "failure", "n": 2, "value": value} for value in (float("nan"), None, 0.0)]
    assert (
        probing._checked(ProbeResult("own", rows)).warnings == () == probing._checked(ProbeResult("own", [])).warnings
    )
    for nothing in (rows[:1], rows[1:2], rows[:2]):
        (said,) = probing._checked(ProbeResult("own", nothing)).warnings
        assert "NaN" in said


@pytest.mark.parametrize("held", [True, False])
def test_a_probe_that_cannot_run_says_that_its_folder_has_an_earlier_result(
    tmp_path: Path, held: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    def compute() -> ProbeResult:
        raise NoCasesError("no failures")

    monkeypatch.setattr(PROBES, "added", {})
    PROBES.add("own", lambda lm, examples: None)
    folder, said = tmp_path / "probes" / "own", []
    run: Any = SimpleNamespace(path=tmp_path, name="r", manifest=SimpleNamespace(model={}), timed=nullcontext)
    if held:
        ProbeResult("own", [{"quantity": "q", "value": 1.0}]).save(folder)
    chosen, reporter = probing.Chosen((), "", True), SimpleNamespace(say=said.append)
    settings = Config(model="m", benchmark="b")
    assert not probing.run_one(run, None, "own", chosen, settings, compute, reporter)  # type: ignore[arg-type]
    assert ("no failures" in said[0], str(folder) in said[0], len(said)) == (True, held, 1)
    assert run.status_after_error == "failed"  # what follows is not the plugin's


@pytest.mark.parametrize("matched", [True, False])
def test_a_contrast_of_cases_that_could_not_be_matched_is_saved_with_a_warning(
    tmp_path: Path, matched: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    saved: list[ProbeResult] = []
    after_error: list[str] = []
    monkeypatch.setattr(PROBES, "added", {})
    PROBES.add("own", lambda lm, examples: None)
    monkeypatch.setattr(probing, "save_probe", lambda result, *_, **__: saved.append(result))
    monkeypatch.setattr(probing, "keep_cases", lambda run, *_: after_error.append(run.status_after_error))
    monkeypatch.setattr(probing, "correct_together", lambda _: None)
    run: Any = SimpleNamespace(
        path=tmp_path, name="r", manifest=SimpleNamespace(model={}), timed=nullcontext, record=lambda: None
    )
    found = ProbeResult("own", [{"quantity": "q", "group": "failure - success", "n": 2, "value": 1.0}])
    chosen, reporter = probing.Chosen((), "", matched), SimpleNamespace(say=print, note=print)
    assert probing.run_one(run, None, "own", chosen, Config(model="m", benchmark="b"), lambda: found, reporter)  # type: ignore[arg-type]
    assert [len(result.warnings) for result in saved] == [0 if matched else 1]
    assert (after_error, run.status_after_error) == (["complete"], "failed")  # a plugin's error leaves the run whole


def test_examples_kept_for_the_report_are_counted_by_group() -> None:
    every = [SimpleNamespace(case=f"{g}{i // 2}", group=g) for g in ("failure", "success") for i in range(10)]
    few = SimpleNamespace(entries=[SimpleNamespace(about=vars(e)) for e in (every[0], every[1], every[4], every[12])])
    said = probing.statement(few, every)  # type: ignore[arg-type]
    assert said == "kept for 2 of 5 failure cases, 1 of 5 success cases"


def test_what_stands_around_a_prompt_is_kept_once_and_put_together_again() -> None:
    known = Rendered([("<u>", "</u>"), ("<", ">")], {"a": 0, "b": "all", "c": 3, "e": 1})
    assert [known.text(k, "P") for k in "abcde"] == ["<u>P</u>", "all", "P", "P", "<P>"]
    assert (known.around("c"), known.around("b"), known.whole("a")) == (None, None, None)


def test_what_probes_measured_is_kept_for_the_merged_run_and_goes_otherwise(tmp_path: Path) -> None:
    folder, model = tmp_path / "probes" / MEASURED, SimpleNamespace()
    target: Any = SimpleNamespace(open_model=lambda: model, numerics=dict, engine=SimpleNamespace(identity={}))
    for keep, stored in ((False, False), (True, True), (False, True), (False, False)):
        with probing.measuring(tmp_path, target, keep) as lm:
            assert isinstance(lm, CachedModel) is stored and (stored or lm is model)
        if keep:
            Store(folder).write([("key", 1)])
        assert folder.is_dir() is keep
