"""Views of single cases and of two runs in a real browser: tokens, maps, sweeps, ladders, discordant cases first."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from browsing import Visit, wait_until

from composcope.experiments import report

pytestmark = pytest.mark.long

AddCases = Callable[..., dict[str, Any]]
HOSTILE = (
    '</script><script>window.hit=1</script><img src=x onerror="window.hit=2">\'"`\u2028\u202eRTL \ud800${window.hit=3}'
)


@pytest.fixture(scope="module")
def shown(
    synthetic: ModuleType, add_cases: AddCases, write_page: Any, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, Any]:
    """A report over one run with two cases in detail, a ladder and prompts as sent; and the arrays behind it."""
    run = synthetic.make_run(tmp_path_factory.mktemp("shown") / "run", n=8, failure=0.9, seed=1)
    arrays = add_cases(run, ["case-0001", "case-0003"], heads=[(0, 0), (1, 2), (3, 5)])
    graded = run / "graded.jsonl"
    about = json.loads(graded.read_text().splitlines()[0])
    rungs = [{**about, "case": "case-0001", "role": role, "outcome": outcome, "ask": None} for role, outcome in
             (("scaffold:1", "incorrect"), ("scaffold:2", "correct"), ("placeholder:2", "abstained"))]  # fmt: skip
    graded.write_text(graded.read_text() + "".join(json.dumps(r) + "\n" for r in rungs))
    (run / "casesets" / "scaffold-k.jsonl").write_text(
        json.dumps({"case": "case-0001", "label": "failure", "value": 2, "evidence": []})
    )
    asks = [json.loads(line)["ask"] for line in (run / "asks.jsonl").read_text().splitlines()]
    (run / "rendered.json").write_text(
        json.dumps({"schema": 1, "templates": [["<|user|>", "<|end|>"]], "asks": dict.fromkeys(asks, 0)})
    )
    return write_page([run], run), arrays


def opened(visit: Visit, name: str) -> Any:
    """The opened case of that name in the browser of cases."""
    visit.scroll()
    visit.page.fill("[data-filter=find]", name)
    visit.page.locator("#browser .item").first.click()
    case = visit.page.locator("#browser .case")
    case.locator(".ask").first.wait_for()
    return case


def dossier(visit: Visit, name: str) -> Any:
    """The dossier of a case, opened by its address."""
    visit.page.goto("about:blank")
    visit.page.goto(visit.path.as_uri() + f"#case={name}")
    found = visit.page.locator(f"#dossier[data-case='{name}']")
    found.locator(".twin").first.wait_for()
    found.locator("details[data-view]").evaluate_all("all => all.forEach(d => { d.open = true; })")
    visit.page.keyboard.press("Shift")  # the reader moves on: the page no longer stays at the case while it settles
    return found


def test_a_head_of_the_map_leads_to_its_tokens_colored_by_its_attention(browser: Any, shown: tuple[Path, Any]) -> None:
    page_path, arrays = shown
    visit = Visit(browser, page_path)
    page = visit.page
    box = dossier(visit, "case-0001")
    visit.scroll()
    page.locator("#figure-lookback canvas").first.focus()
    for key in ["ArrowRight", "ArrowDown", "ArrowRight", "ArrowRight", "Enter"]:  # to layer 1, head 2
        page.keyboard.press(key)
    page.locator("#figure-lookback [data-look]").click()
    view = box.locator("[data-view=lookback] .view").first
    view.locator("[data-attention=head]").and_(page.locator("select")).wait_for()
    wait_until(page, "document.querySelector('[data-attention=head]').value === '1.2'")
    view.locator("[data-attention=step]").fill("2")
    weights = arrays["lookback"]["0.attention"][1, 2].astype(float)
    shades = view.locator(".tokens .token").evaluate_all("t => t.map(x => x.style.backgroundColor)")
    assert len(shades) == 13 and all(not s for s in shades[11:]) and all(s for s in shades[:11])
    strength = [float(s.rsplit(",", 1)[1].rstrip(")")) if s.startswith("rgba") else 1.0 for s in shades[:11]]
    order = sorted(range(11), key=lambda k: weights[k])
    assert all(strength[a] <= strength[b] + 1e-3 for a, b in pairwise(order))
    assert {s.rsplit(",", 1)[0] for s in shades[:7]} == {"rgba(0, 114, 178"}
    assert {s.rsplit(",", 1)[0] for s in shades[7:11]} == {"rgba(213, 94, 0"}
    ratio = float(view.locator("[data-ratio]").get_attribute("data-ratio"))
    assert ratio == pytest.approx(float(arrays["lookback"]["0.ratio"][1, 2, 2]), abs=1e-3)
    view.locator(".token.response").nth(3).click()
    assert view.locator("[data-attention=step]").input_value() == "3"
    view.locator("[data-attention=all]").check()
    assert "over 4 steps" in view.inner_text()
    visit.check()


def test_role_and_step_can_be_chosen_and_heads_that_were_not_kept_are_said(
    browser: Any, shown: tuple[Path, Any]
) -> None:
    visit = Visit(browser, shown[0])
    box = dossier(visit, "case-0003")
    view = box.locator("[data-view=lookback] .view").first
    view.locator("[data-attention=role]").select_option("1")
    assert view.locator("[data-attention=head] option").count() == 3
    visit.page.evaluate("composcope.head = { layer: 2, head: 0 }; composcope.dossier.again()")
    view.get_by_text("3 of 24 heads were kept").wait_for()
    tokens = box.locator("[data-view=min-k] .tokens").first
    tokens.focus()
    visit.page.keyboard.press("ArrowRight")
    assert visit.page.locator(".token.here").count() == 1 and visit.page.locator("#tip").is_visible()
    visit.check()


def test_a_case_without_pictures_names_failing_cases_that_have_them(browser: Any, shown: tuple[Path, Any]) -> None:
    visit = Visit(browser, shown[0])
    found = dossier(visit, "case-0005")
    said = found.locator("[data-unkept]")
    assert said.locator("a").all_inner_texts() == ["case-0001", "case-0003"]
    assert found.locator("[data-view]").count() == 0, "pictures of the success alone"
    said.locator("a").first.click()
    visit.page.locator("#dossier[data-case='case-0001'] [data-view=patching]").wait_for()
    visit.check()


def test_the_list_of_cases_shows_the_right_answer_of_a_wrong_one_in_full(browser: Any, shown: tuple[Path, Any]) -> None:
    visit = Visit(browser, shown[0])
    opened(visit, "case-0005")
    gold = visit.page.locator("#browser .item .gold").first
    assert gold.is_visible()
    assert gold.evaluate("e => e.scrollWidth <= e.clientWidth && e.parentNode.scrollWidth <= e.parentNode.clientWidth")


def test_the_patching_view_has_continuations_and_a_sweep_with_token_labels(
    browser: Any, shown: tuple[Path, Any]
) -> None:
    visit = Visit(browser, shown[0])
    page, view = visit.page, dossier(visit, "case-0001").locator("[data-view=patching]")
    assert view.locator("tbody tr").count() == 6
    assert "the donor's text" in view.inner_text() and "another text" in view.inner_text()
    canvas = view.locator("canvas.natural")
    canvas.focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    tip = page.locator("#tip").inner_text()
    assert 'layer 0, " t1" gets' in tip and "of the way to the donor's answer" in tip
    view.locator("[data-sweep=show]").select_option("kl")
    view.locator("[data-sweep=site]").select_option("mlp_out")
    view.locator("canvas.natural").focus()
    page.keyboard.press("ArrowRight")
    assert "next token moves by" in page.locator("#tip").inner_text()
    visit.check()


def test_four_probes_stand_over_the_same_tokens_with_the_values_that_were_kept(
    browser: Any, shown: tuple[Path, Any]
) -> None:
    visit = Visit(browser, shown[0])
    kept, box = shown[1], dossier(visit, "case-0001").locator(".signals[data-case='case-0001']")
    assert box.locator("thead th").all_inner_texts()[1:] == [f"\u00a0t{i}" for i in range(2, 10)]
    want = {"neurons": kept["neurons"]["0.share"][2:]}
    recovered = kept["patching"]["0.resid_post.recovered"].astype(float)
    want["patching"] = [recovered[np.abs(recovered[:, p]).argmax(), p] for p in range(2, 9)] + [None]
    for k, what in enumerate(("bridge", "answer")):
        for reader in ("lens", "ridge"):
            want[f"{reader}:{what}:{k}"] = kept["readout"][f"0.{reader}"][k]
    assert box.locator("[data-signal]").count() == len(want) + 1  # and attention
    for key, values in want.items():
        drawn = box.locator(f"[data-signal='{key}'] td").evaluate_all("t => t.map(x => x.dataset.value ?? null)")
        numbers = [None if v is None or v != v else float(v) for v in values]
        assert [None if d is None else float(d) for d in drawn] == [
            None if v is None else pytest.approx(v, abs=1e-3) for v in numbers
        ], key
    label = box.locator("[data-signal=attention] th").inner_text()
    layer, head = map(int, re.findall(r"layer (\d+), head (\d+)", label)[0])
    at = [(0, 0), (1, 2), (3, 5)].index((layer, head))
    drawn = box.locator("[data-signal=attention] td").evaluate_all("t => t.map(x => Number(x.dataset.value))")
    assert drawn == pytest.approx(kept["lookback"]["0.attention"][at, 1, 2:10].astype(float), abs=1e-3)
    visit.check()


def test_signals_follow_the_head_and_the_arrow_keys_and_tell_value_unit_and_token(
    browser: Any, shown: tuple[Path, Any]
) -> None:
    visit = Visit(browser, shown[0])
    view = dossier(visit, "case-0001")
    box, value = view.locator(".signals[data-case='case-0001']"), shown[1]["neurons"]["0.share"][4]
    view.locator("[data-view=lookback] .view").first.locator("[data-attention=head]").select_option("3.5")
    assert "layer 3, head 5" in box.locator("[data-signal=attention] th").inner_text()
    box.focus()
    for key in ("ArrowRight", "ArrowDown", "ArrowDown", "ArrowRight", "ArrowRight"):
        visit.page.keyboard.press(key)
    tip = visit.page.locator("#tip").inner_text()
    assert '" t4", position 4' in tip and f"{float(f'{value:.3g}')}" in tip and "share" in tip
    assert box.locator("td.here").count() == 1
    visit.check()


def test_rows_that_a_run_does_not_keep_are_left_out_with_the_command_that_makes_them(
    browser: Any, synthetic: ModuleType, add_cases: AddCases, write_page: Any, tmp_path: Path
) -> None:
    run = synthetic.make_run(tmp_path / "run", n=8, failure=0.9, seed=1)
    add_cases(run, ["case-0001"])
    for probe in ("neurons", "readout"):
        shutil.rmtree(run / "probes" / probe / "cases")
    visit = Visit(browser, write_page([run], tmp_path / "out"))
    box = dossier(visit, "case-0001").locator("[data-view=signals]")
    keys = box.locator("[data-signal]").evaluate_all("r => r.map(x => x.dataset.signal)")
    assert keys == ["attention", "patching"]
    assert box.locator("[data-missing]").get_attribute("data-missing") == "neurons,readout"
    assert "--probes neurons,readout" in box.locator("[data-missing] code").inner_text()
    visit.check()


def test_the_exposure_view_underlines_the_lowest_fifth(browser: Any, shown: tuple[Path, Any]) -> None:
    visit = Visit(browser, shown[0])
    view = dossier(visit, "case-0001").locator("[data-view=min-k] .view").first
    assert view.locator(".token.lowest").count() == 1
    assert view.locator(".token.lowest").inner_text().strip() == "t5"  # z of minus infinity at the fourth scored token
    assert view.locator(".token.later").count() == 4
    visit.check()


def test_an_opened_case_shows_prompts_as_sent_its_ladder_and_the_way_to_its_pictures(
    browser: Any, shown: tuple[Path, Any]
) -> None:
    visit = Visit(browser, shown[0])
    case = opened(visit, "case-0001")
    text = case.locator("[data-role=whole]").inner_text()
    assert "<|user|>Which came first" in text and "<|end|>" in text
    assert "prompt (9 tokens)" in text and "response (3 tokens)" in text
    rungs = case.locator(".ladder li").all_inner_texts()
    assert [r.split()[0] for r in rungs[1:]] == ["incorrect", "correct", "abstained"]
    assert "k = 2: solved once 2 steps are revealed." in case.locator(".ladder").inner_text()
    case.locator("a[href*='case=case-0001']").click()
    visit.page.locator("#dossier[data-case=case-0001] [data-view=min-k]").wait_for()
    assert visit.page.locator("#dossier [data-view]").evaluate_all("p => p.map(x => x.dataset.view)") == [
        "signals", "lookback", "min-k", "patching", "trajectory"]  # fmt: skip
    visit.check()


def test_a_case_without_pictures_or_ladder_has_neither(browser: Any, shown: tuple[Path, Any]) -> None:
    visit = Visit(browser, shown[0])
    case = opened(visit, "case-0002")
    assert case.locator(".ladder").count() == 0
    assert dossier(visit, "case-0002").locator("[data-view]").count() == 0
    visit.check()


def test_filters_by_gate_role_outcome_and_k_agree_with_the_graded_rows(browser: Any, shown: tuple[Path, Any]) -> None:
    visit = Visit(browser, shown[0])
    visit.scroll()
    rows = [json.loads(line) for line in (shown[0].parent / "graded.jsonl").read_text().splitlines()]
    count = visit.page.locator("#browser [data-count]")

    def filtered(role: str, outcome: str) -> int:
        visit.page.select_option("[data-filter=role]", role)
        visit.page.select_option("[data-filter=outcome]", outcome)
        return int(count.get_attribute("data-count") or -1)

    def having(test: Callable[[str], bool], outcome: str) -> int:
        return len({r["case"] for r in rows if test(r["role"]) and r["outcome"] == outcome})

    assert filtered("whole", "incorrect") == having(lambda r: r == "whole", "incorrect") > 0
    assert filtered("part:1", "correct") == having(lambda r: r == "part:1", "correct") > 0
    assert filtered("any wording of an atom", "correct") == having(lambda r: "paraphrase" in r, "correct")
    assert filtered("any scaffold", "correct") == 1
    visit.page.click("[data-filter-reset]")
    assert count.get_attribute("data-count") == "8"
    visit.check()


@pytest.mark.parametrize(("width", "scheme"), [(1280, "dark"), (390, "light"), (390, "dark")])
def test_single_cases_fit_the_screen_in_both_themes(
    browser: Any, shown: tuple[Path, Any], width: int, scheme: str
) -> None:
    visit = Visit(browser, shown[0], viewport={"width": width, "height": 844}, color_scheme=scheme)
    box = dossier(visit, "case-0001")
    box.locator("[data-view=min-k]").wait_for()
    assert visit.page.evaluate("document.documentElement.scrollWidth") <= width
    cell = box.locator("[data-signal=neurons] td").first
    shade = cell.evaluate("t => t.style.backgroundColor")
    before = box.locator("[data-view=lookback] .token").first.evaluate("t => t.style.backgroundColor")
    visit.page.click("#theme")
    after = box.locator("[data-view=lookback] .token").first.evaluate("t => t.style.backgroundColor")
    assert before != after and shade != cell.evaluate("t => t.style.backgroundColor")
    visit.check()


def test_hostile_tokens_and_names_do_nothing_in_any_view(
    browser: Any, synthetic: ModuleType, add_cases: AddCases, write_page: Any, tmp_path: Path
) -> None:
    run = synthetic.make_run(tmp_path / "run", n=8, seed=1, text=HOSTILE)
    add_cases(run, ["case-0001"], token=HOSTILE)
    (run / "rendered.json").write_text(
        json.dumps({"schema": 1, "templates": [[HOSTILE, HOSTILE]],
                    "asks": {json.loads(line)["ask"]: 0 for line in (run / "asks.jsonl").read_text().splitlines()}})
    )  # fmt: skip
    visit = Visit(browser, write_page([run], tmp_path / "out"))
    box = dossier(visit, "case-0001")
    opened(visit, "case-0001")
    visit.page.wait_for_timeout(100)
    assert visit.page.evaluate("window.hit") is None
    assert visit.page.locator("#browser img, #browser script, #dossier img, #dossier script").count() == 0
    assert "<script>window.hit=1" in box.locator("[data-view=min-k] .tokens").first.inner_text()
    assert visit.page.evaluate("document.documentElement.scrollWidth") <= 1280
    visit.check()


def test_a_run_can_be_moved_and_reported_where_it_is_now(
    browser: Any, shown: tuple[Path, Any], write_page: Any, tmp_path: Path
) -> None:
    moved = tmp_path / "elsewhere" / "run"
    shutil.copytree(shown[0].parent, moved, ignore=shutil.ignore_patterns("report.html", "data", "figures"))
    page = write_page([moved], moved)
    assert page == moved / "report.html"
    visit = Visit(browser, page)
    visit.scroll()
    assert dossier(visit, "case-0001").locator("[data-view=lookback] .tokens").first.locator(".token").count() == 13
    visit.check()


@pytest.fixture(scope="module")
def compared(synthetic: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("compared")
    a = synthetic.make_run(folder / "a", n=24, failure=0.9, seed=1, probes=())
    b = synthetic.make_run(folder / "b", model="organism:twin", n=24, failure=0.3, seed=2, probes=())
    return report.write_comparison(a, b, folder / "out")


def outcomes(run: Path, role: str) -> dict[str, str]:
    rows = [json.loads(line) for line in (run / "graded.jsonl").read_text().splitlines()]
    return {r["case"]: r["outcome"] for r in rows if r["role"] == role}


def test_discordant_cases_come_first_and_the_counts_agree_with_both_runs(browser: Any, compared: Path) -> None:
    a, b = (outcomes(compared.parents[1] / run, "whole") for run in "ab")
    judged = [c for c in a if "invalid" not in (a[c], b[c])]
    only = [sum((x[c] == "correct") and (y[c] != "correct") for c in judged) for x, y in ((a, b), (b, a))]
    visit = Visit(browser, compared)
    visit.page.wait_for_selector("#browser .item")
    kinds = visit.page.locator(".list > div").evaluate_all("d => d.map(x => x.dataset.kind)")
    assert kinds[: sum(only)] == ["only A right"] * only[0] + ["only B right"] * only[1]
    assert not any(k.startswith("only") for k in kinds[sum(only) :]) and len(kinds) == 24
    assert f"{only[0]} only A has right, {only[1]} only B" in visit.page.locator(".lead").inner_text()
    visit.page.select_option("[data-filter=kind]", "only B right")
    assert visit.page.locator(".list > div").count() == only[1] > 0
    visit.page.locator("#browser .item").first.click()
    whole = visit.page.locator(".case [data-role=whole]")
    whole.wait_for()
    assert whole.locator(".half .badge.correct").count() == 1
    assert whole.locator(".sides .side").all_inner_texts() == ["A", "B"]
    assert whole.get_by_text("prompt").count() == 1
    visit.check()


def test_texts_that_were_left_out_of_one_run_are_not_called_not_asked(
    browser: Any, compared: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "out"
    shutil.copytree(compared.parent, folder)
    index = folder / "data" / "compared" / "index.js"
    index.write_text(index.read_text().replace('"dropped":[]', '"dropped":["cases/1-0"]'))
    visit = Visit(browser, folder / "compare.html")
    visit.page.locator("#browser .item").first.click()
    whole = visit.page.locator(".case [data-role=whole]")
    whole.wait_for()
    said = whole.locator(".half").last.inner_text()
    assert "its texts were left out" in said and "not asked" not in said
    visit.check()


def test_runs_over_different_case_files_say_what_they_share_and_keep_other_questions_apart(
    browser: Any, synthetic: ModuleType, tmp_path: Path
) -> None:
    a = synthetic.make_run(tmp_path / "a", n=12, failure=0.9, seed=1, probes=())
    b = synthetic.make_run(tmp_path / "b", model="organism:twin", n=8, failure=0.2, seed=2, probes=())
    cases = [json.loads(line) for line in (b / "cases.jsonl").read_text().splitlines()]
    cases[3]["question"] = "Quite another question?"
    cases[1]["parts"][1]["question"] = "Quite another part?"
    del cases[5]["parts"][1]
    (b / "cases.jsonl").write_text("".join(json.dumps(c) + "\n" for c in cases))
    graded = [json.loads(line) for line in (b / "graded.jsonl").read_text().splitlines()]
    kept = [row for row in graded if row["case"] != cases[5]["id"] or not row["role"].startswith("part:1")]
    unjudged = next(row for row in kept if (row["case"], row["role"]) == (cases[0]["id"], "whole"))
    unjudged["outcome"] = "invalid"
    counted = b / "metrics.json"
    counted.write_text(json.dumps({**json.loads(counted.read_text()), "warnings": ["(--compat agentcoma)"]}))
    (b / "graded.jsonl").write_text("".join(json.dumps(row) + "\n" for row in kept))
    visit = Visit(browser, report.write_comparison(a, b, tmp_path / "out"))
    visit.page.wait_for_selector("#browser .item")
    n = len(cases)
    assert visit.page.locator("#shared").inner_text() == (
        f"{n - 1} cases are the same in both runs (A has 12, B {n}); 1 id in common but with another question or "
        "answer, not compared; parts that differ in 2 cases are not compared."
    )
    assert "asks" in visit.page.locator("#summary li").last.inner_text()
    visit.page.fill("[data-filter=find]", cases[3]["id"])
    rows = visit.page.locator("#browser .item").all_inner_texts()
    assert len(rows) == 2 and all("not asked" in r and "another question under this id" in r for r in rows)
    kinds = visit.page.locator(".list > div").evaluate_all("d => d.map(x => x.dataset.kind)")
    assert kinds == ["not judged in both"] * 2
    visit.page.fill("[data-filter=find]", cases[0]["id"])
    (row,) = visit.page.locator(".list > div").evaluate_all("d => d.map(x => [x.dataset.kind, x.innerText])")
    assert row[0] in ("both wrong", "only A right") and "B INVALID" in row[1].upper(), "as its paper counts it"
    visit.page.fill("[data-filter=find]", cases[1]["id"])
    visit.page.select_option("[data-filter=role]", "part:1")
    (row,) = visit.page.locator(".list > div").evaluate_all("d => d.map(x => [x.dataset.kind, x.innerText])")
    assert row[0] == "not judged in both" and "another question in this role" in row[1]
    visit.page.fill("[data-filter=find]", cases[5]["id"])
    (row,) = visit.page.locator(".list > div").evaluate_all("d => d.map(x => [x.dataset.kind, x.innerText])")
    assert row[0] == "not judged in both" and "not asked" in row[1] and "another question" not in row[1]
    visit.check()


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (390, "dark")])
def test_two_runs_fit_the_screen(browser: Any, compared: Path, width: int, scheme: str) -> None:
    visit = Visit(browser, compared, viewport={"width": width, "height": 844}, color_scheme=scheme)
    visit.page.locator("#browser .item").first.click()
    visit.page.locator(".case .half").first.wait_for()
    assert visit.page.evaluate("document.documentElement.scrollWidth") <= width
    visit.check()


def test_runs_that_differ_in_more_than_the_model_are_warned_of_and_hostile_names_do_nothing(
    browser: Any, synthetic: ModuleType, tmp_path: Path
) -> None:
    a = synthetic.make_run(tmp_path / "a", model=HOSTILE, n=8, seed=1, text=HOSTILE, probes=())
    b = synthetic.make_run(tmp_path / "b", n=8, seed=2, text=HOSTILE, probes=())
    manifest = json.loads((b / "manifest.json").read_text())
    manifest["identity"]["format"] = "cot"
    (b / "manifest.json").write_text(json.dumps(manifest))
    visit = Visit(browser, report.write_comparison(a, b, tmp_path / "out"))
    visit.page.locator("#browser .item").first.click()
    visit.page.locator(".case .half").first.wait_for()
    assert visit.page.evaluate("window.hit") is None and visit.page.locator("main img, main script").count() == 0
    assert "The runs differ in more than the model" in visit.page.locator("#summary").inner_text()
    visit.check()
