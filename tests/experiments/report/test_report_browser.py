"""The report in a real browser, opened from a file: every section, every filter, hostile text, no request outside."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from browsing import Visit, wait_until

from composcope.experiments import figures, report
from composcope.experiments.figures import grouping
from composcope.experiments.plugins import load_plugin

pytestmark = pytest.mark.long

HOSTILE = '</script><script>window.hit=1</script><img src=x onerror="window.hit=2">\'"`\u2028\u202eRTL ${window.hit=3}'


@pytest.fixture(scope="module")
def study(synthetic: ModuleType, write_page: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("study")
    gap = "compositionality-gap"
    synthetic.make_run(folder / "a", n=48, failure=0.9, seed=1, probes=("lookback",))
    synthetic.make_run(folder / "b", model="organism:twin", n=48, failure=0.1, seed=2, probes=())
    synthetic.make_run(folder / "c", n=30, seed=3, protocol=gap)
    page = write_page([folder], folder)
    figures.save("gate-funnel", [folder], folder / "figures")  # the one whose picture is looked at
    return page


@pytest.fixture(scope="module")
def drawn(browser: Any, study: Path) -> Iterator[Visit]:
    visit = Visit(browser, study)
    visit.scroll()
    yield visit
    visit.check()


@pytest.fixture
def seen(drawn: Visit) -> Visit:
    """The study's page, unfolded, drawn to its end and without filters: one for all tests that leave it so."""
    drawn.page.click("[data-filter-reset]")
    return drawn


def test_every_section_renders_without_a_complaint_or_a_request(seen: Visit) -> None:
    page = seen.page
    sections = page.eval_on_selector_all("main > section", "s => s.map(x => x.id)")
    assert sections == ["summary", "case", "behavior", "neurons", "lookback", "patching", "trajectory", "min-k",
                        "validity", "cases", "provenance"]  # fmt: skip
    for name in ("collapse-curve", "gap-slopes", "cosine-prompt-end", "patching", "neuron-layers"):
        assert page.locator(f"#figure-{name} [data-chart] svg [data-point]").count() > 0, name
    for name in ("lookback", "neuron-overlap", "cosine-trajectory"):
        assert page.locator(f"#figure-{name} [data-chart] canvas").count() > 0, name
    assert page.locator("img.light[src*=gate-funnel]").evaluate("i => i.complete && i.naturalWidth > 0")
    seen.check(close=False)


def test_parts_that_few_readers_need_are_folded_with_their_main_number_and_addresses_open_them(
    browser: Any, study: Path
) -> None:
    visit = Visit(browser, study)
    page = visit.page
    page.wait_for_selector("#dossier .twin")
    shut = page.evaluate("document.documentElement.scrollHeight")
    for name in ("neurons", "lookback", "patching", "trajectory", "min-k"):
        assert page.locator(f"#{name} > details:not([open])").count() == 1, name
        assert page.locator(f"#{name} summary .main:visible").count() == 1, name  # of the run that is shown
    curve = page.locator("details:has(> .figures > #figure-family-curves)")
    assert not page.locator("#figure-family-curves").is_visible()
    assert re.search(r"\d+ of \d+", curve.locator("> summary .main").first.inner_text())
    for name in ("patching", "test-min-k", "figure-family-curves"):
        page.goto("about:blank")
        page.goto(f"{study.as_uri()}#{name}")
        wait_until(page, f"!document.getElementById('{name}').closest('details')?.matches(':not([open])')")
        page.locator(f"#{name}").wait_for(state="visible")
        inner = page.locator(f"#{name} h4, #{name} h3, h4:is(#{name} *)").first
        inner.wait_for(state="visible")
        assert page.locator("details.fold[open]").count() == 1, "only what was asked for"
    page.evaluate("document.querySelectorAll('details').forEach(d => { d.open = true; })")
    assert page.evaluate("document.documentElement.scrollHeight") > 1.5 * shut
    visit.check()


def test_a_printed_page_has_every_folded_part_and_they_fold_again(browser: Any, study: Path) -> None:
    visit = Visit(browser, study)
    page = visit.page
    page.wait_for_selector("#dossier .twin")
    shut = "document.querySelectorAll('details:not([open])').length"
    before = page.evaluate(shut)
    page.evaluate(f"addEventListener('beforeprint', () => {{ window.left = {shut}; }})")
    empty = "[...document.querySelectorAll('details > .view')].filter(v => !v.childNodes.length).length"
    page.evaluate(f"addEventListener('beforeprint', () => {{ window.empty = {empty}; }})")
    page.pdf()
    assert page.evaluate("[window.left, window.empty]") == [0, 0] and before > 5
    assert page.evaluate(shut) == before
    visit.check()


def test_filters_narrow_the_list_and_agree_with_the_data(seen: Visit) -> None:
    page = seen.page
    count = page.locator("#browser [data-count]")

    def shown() -> int:
        return int(count.get_attribute("data-count") or -1)

    assert shown() == 126
    page.select_option("[data-filter=run]", "2")
    assert shown() == 30
    page.select_option("[data-filter=outcome]", "incorrect")
    wrong = shown()
    page.click("#browser .more button")
    assert 0 < wrong < 30 and page.locator(".item .badge.incorrect").count() == wrong
    page.select_option("[data-filter=set]", "both-right-whole-wrong")
    assert 0 < shown() <= wrong
    page.fill("[data-filter=find]", "no such case")
    assert shown() == 0 and page.get_by_text("No case matches").is_visible()
    page.fill("[data-filter=find]", "CASE-0001")
    assert shown() == 1  # in the address, too, which is read again
    page.evaluate("composcope.cases.filter({ find: 'CASE-0001', set: 'no such set' })")
    wait_until(page, "document.querySelector('#browser [data-count]').dataset.count === '3'")
    page.fill("[data-filter=find]", "")
    page.select_option("[data-filter=run]", "0")
    page.select_option("[data-filter=set]", "")
    page.select_option("[data-filter=outcome]", "")
    page.select_option("[data-filter=depth]", "6")
    assert shown() == 12
    seen.check(close=False)


def test_a_case_opens_with_prompts_answers_and_grades_and_shuts_again(seen: Visit) -> None:
    seen.page.select_option("[data-filter=run]", "0")
    item = seen.page.locator("#browser .item").first
    item.click()
    opened = seen.page.locator("#browser .case")
    opened.locator(".ask").first.wait_for()
    assert opened.locator(".ask").count() == 7
    text = opened.inner_text()
    assert all(word in text for word in ("whole", "part:0:paraphrase:1", "prompt", "response", "read as", "right"))
    assert "When was event 0?" in text
    item.click()
    assert opened.count() == 0
    seen.check(close=False)


def test_a_point_of_the_curve_leads_to_its_failing_cases(seen: Visit) -> None:
    seen.page.locator("#figure-collapse-curve [data-point]").last.click(force=True)
    wait_until(seen.page, "document.querySelector('[data-filter=set]').value === 'residual-failure'")
    assert seen.page.locator("[data-filter=depth]").input_value() == "8"
    assert seen.page.locator("[data-filter=run]").input_value() in ("0", "1")
    seen.check(close=False)


def test_a_point_of_binned_depths_leads_to_all_failing_cases_of_its_bin(
    browser: Any, synthetic: ModuleType, write_page: Any, tmp_path: Path
) -> None:
    run = synthetic.make_run(tmp_path / "run", n=40, probes=(), depths={4: 20, 7: 20}, failure=0.9)
    cases = [{**json.loads(line), "depth_bin": 4} for line in (run / "cases.jsonl").read_text().splitlines()]
    cases[0]["depth_bin"] = 8
    (run / "cases.jsonl").write_text("".join(json.dumps(case) + "\n" for case in cases))
    failed = [json.loads(x)["case"] for x in (run / "casesets" / "residual-failure.jsonl").read_text().splitlines()]
    counted = json.loads((run / "metrics.json").read_text())
    binned = {**synthetic.rate("residual_failure", 9, 20), "group": {"depth_bin": 4}}
    (run / "metrics.json").write_text(json.dumps({**counted, "metrics": [binned]}))
    visit = Visit(browser, write_page([run], tmp_path / "out"))
    visit.scroll()
    visit.page.locator("#figure-collapse-curve [data-point]").first.click(force=True)
    wait_until(visit.page, "document.querySelector('[data-filter=bin]')?.value === '4'")
    shown = int(visit.page.locator("#browser [data-count]").get_attribute("data-count"))
    assert shown == len(set(failed) - {cases[0]["id"]})
    visit.check()


def test_a_point_of_a_run_and_its_chart_stay_with_this_run_though_another_folder_has_the_same_name(
    browser: Any, synthetic: ModuleType, write_page: Any, tmp_path: Path
) -> None:
    runs = [
        synthetic.make_run(tmp_path / side / "run", model=f"organism:{side}", n=24, seed=i, probes=("lookback",))
        for i, side in enumerate(("control", "twin"))
    ]
    visit = Visit(browser, write_page(runs, tmp_path / "out"))
    visit.scroll()
    page = visit.page
    for i, label in enumerate(page.locator("#run option").all_inner_texts()):
        page.select_option("#run", str(i))
        assert page.locator("#figure-lookback [data-chart]").get_attribute("data-painted") == label
    page.locator("#figure-collapse-curve .legend button").first.click()  # the points of the second run are left
    page.locator("#figure-collapse-curve [data-point]").last.click(force=True)
    wait_until(page, "document.querySelector('[data-filter=set]').value === 'residual-failure'")
    assert page.locator("[data-filter=run]").input_value() == "1"
    visit.check()


def test_pointing_at_a_value_tells_count_and_interval(seen: Visit) -> None:
    seen.page.locator("#figure-collapse-curve [data-point]").first.hover(force=True)
    tip = seen.page.locator("#tip").inner_text()
    assert " of " in tip and "95 % clopper-pearson" in tip and "depth 2" in tip
    seen.check(close=False)


def test_curves_and_their_names_differ_without_color(browser: Any, study: Path) -> None:
    visit = Visit(browser, study)
    visit.scroll()
    figure = visit.page.locator("#figure-collapse-curve")
    dashes = "nodes => nodes.map(n => n.dataset.dash ?? n.getAttribute('stroke-dasharray') ?? '')"
    curves = figure.locator("[data-chart] .panel polyline").evaluate_all(dashes)
    assert len(curves) == len(set(curves)) > 1
    assert figure.locator(".legend button canvas").evaluate_all(dashes) == curves
    figure.locator(".legend button").first.click()  # hidden, it takes no line style from the others
    assert figure.locator("[data-chart] .panel polyline").evaluate_all(dashes) == curves[1:]
    visit.check()


def test_a_lookback_cell_tells_the_head_for_every_kind(seen: Visit) -> None:
    canvas = seen.page.locator("#figure-lookback canvas").first
    box = canvas.bounding_box()
    assert box is not None
    canvas.click(position={"x": box["width"] * 0.5, "y": box["height"] * 0.3})
    detail = seen.page.locator("#figure-lookback .detail").inner_text()
    assert "Layer" in detail and "head" in detail and "commonsense" in detail
    seen.check(close=False)


def test_one_choice_of_run_serves_the_whole_page(browser: Any, study: Path) -> None:
    visit = Visit(browser, study)
    visit.scroll()
    page = visit.page
    best = json.loads(page.evaluate("JSON.stringify(composcope.run.at)"))
    power = [min(fails(run, True), fails(run, False)) for run in sorted(study.parent.glob("[a-c]"))]
    probed = [i for i in range(3) if any((study.parent / "abc"[i] / "probes").glob("*"))]
    assert best == max(probed, key=lambda i: power[i])
    assert page.locator("[data-filter=run]").input_value() == page.locator("#run").input_value()
    for other in probed:
        page.select_option("#run", str(other))
        label = page.locator(f"#run option[value='{other}']").inner_text()
        assert page.locator("#figure-lookback [data-chart]").get_attribute("data-painted") == label
        shown = page.locator("article[data-landing]:visible").evaluate_all("all => all.map(a => a.dataset.landing)")
        assert shown == [str(other)] * 2  # the sentence above the case, and what was found below it
        assert page.locator("[data-filter=run]").input_value() == str(other)
    page.locator("#figure-mink [data-numbers]").click()
    page.locator("#figure-mink .numbers tbody tr").first.wait_for()
    visit.check()


def fails(run: Path, failing: bool) -> int:
    names = ("residual-failure", "both-right-whole-wrong") if failing else ("gated-success", "both-right-whole-right")
    found = [run / "casesets" / f"{name}.jsonl" for name in names]
    return sum(len(p.read_text().splitlines()) for p in found if p.is_file())


@pytest.mark.parametrize("width", [390, 1280])
def test_links_to_a_section_end_at_it_though_figures_above_are_drawn_meanwhile(
    browser: Any, study: Path, width: int
) -> None:
    visit = Visit(browser, study, viewport={"width": width, "height": 844})
    page = visit.page

    def top(name: str) -> float:
        return page.evaluate(f"document.getElementById('{name}').getBoundingClientRect().top")

    def stays(name: str, there: Callable[[float], bool]) -> bool:
        """Whether a section comes to its place and stays there, however long figures take on a busy machine."""
        held = 0
        for _ in range(200):
            page.wait_for_timeout(150)
            held = held + 1 if there(top(name)) else 0
            if held == 5:
                return True
        return False

    # What is gone to stops below the bar at the top, which has as many lines as it needs.
    below = page.evaluate("document.querySelector('.top').offsetHeight") + 15
    for name in ("patching", "lookback", "cases"):
        # A click by the driver first scrolls the page to where the link stands in the text, which no reader does.
        page.eval_on_selector(f".top nav a[href='#{name}']", "link => link.click()")
        assert stays(name, lambda y: abs(y - below) < 4), (name, top(name), page.url)
        assert page.evaluate("document.querySelector('.top').getBoundingClientRect().bottom") <= top(name)
    page.goto("about:blank")
    page.goto(study.as_uri() + "#cases")
    assert stays("cases", lambda y: abs(y - below) < 4)
    assert page.locator("#browser .item").count() > 0 and not page.get_by_text("needs JavaScript").is_visible()
    page.mouse.move(200, 400)
    page.mouse.wheel(0, -600)
    assert stays("cases", lambda y: y > 300)  # the reader's own scrolling is not undone
    visit.check()


def test_what_is_read_first_is_small_and_texts_come_when_a_case_is_opened(
    browser: Any, synthetic: ModuleType, write_page: Any, tmp_path: Path
) -> None:
    run = synthetic.make_run(tmp_path / "run", n=2000)
    visit = Visit(browser, write_page([run], tmp_path / "out"))
    visit.page.wait_for_timeout(500)

    def read() -> int:
        return sum(Path(url.removeprefix("file://")).stat().st_size for url in visit.requests if url[:5] == "file:")

    # The first failing case and its success, and no other texts.
    assert 50_000 < read() < 2_000_000 and 1 <= sum("/cases/" in url for url in visit.requests) <= 2
    visit.page.click(".top nav a[href='#cases']")
    visit.page.locator("#browser .item").first.click()
    visit.page.locator("#browser .ask").first.wait_for()
    assert sum("/cases/" in url for url in visit.requests) <= 3 and read() < 3_000_000
    visit.check()


def test_the_page_can_be_used_with_the_keyboard_alone(browser: Any, study: Path, seen: Visit) -> None:
    visit = Visit(browser, study)
    visit.page.keyboard.press("Tab")
    visit.page.keyboard.press("Tab")
    assert visit.page.evaluate("document.activeElement.getAttribute('href')") == "#summary"
    visit.check()
    page = seen.page
    canvas = page.locator("#figure-lookback canvas").first
    canvas.focus()
    page.keyboard.press("ArrowRight")
    assert page.locator("#tip").is_visible()
    page.keyboard.press("Escape")
    assert not page.locator("#tip").is_visible()
    item = page.locator("#browser .item").first
    item.focus()
    page.keyboard.press("Enter")
    page.locator("#browser .ask").first.wait_for()
    assert item.get_attribute("aria-expanded") == "true"
    page.keyboard.press("Enter")
    assert page.locator("#browser .case").count() == 0
    page.keyboard.press("Enter")
    page.locator("#browser .ask").first.wait_for()
    page.keyboard.press("Escape")
    assert page.locator("#browser .case").count() == 0
    assert page.evaluate("document.activeElement.classList.contains('item')")
    seen.check(close=False)


def test_a_chart_is_one_tab_stop_and_its_arrow_keys_reach_every_part(seen: Visit) -> None:
    page = seen.page
    stops = "f => f.querySelectorAll('[data-chart] :is(button, svg, canvas)[tabindex=\"0\"]').length"
    charts = page.locator("[data-figure]:has([data-chart] [tabindex])")
    assert charts.count() > 6 and set(charts.evaluate_all(f"all => all.map({stops})")) == {1}

    parts = "#figure-{} [data-chart] :is(button, svg, canvas)[tabindex]"
    where = "all => [all.indexOf(document.activeElement), (document.getElementById('tip') || {}).innerText]"

    def reached(figure: str, key: str) -> list[int]:
        """The parts that have the focus one after the other, until a press changes nothing."""
        seen: list[list[Any]] = []
        while not seen[1:] or seen[-1] != seen[-2]:
            page.keyboard.press(key)
            seen.append(page.locator(parts.format(figure)).evaluate_all(where))
        return list(dict.fromkeys(at for at, _ in seen))

    page.locator("#figure-lookback [data-chart] [tabindex='0']").focus()
    maps = page.locator("#figure-lookback [data-chart] canvas[tabindex]").count()
    assert reached("lookback", "ArrowRight") == list(range(maps)) and maps > 1
    page.locator("#figure-collapse-curve [data-chart] [tabindex='0']").focus()
    buttons = page.locator("#figure-collapse-curve .legend button").count()
    assert reached("collapse-curve", "ArrowRight") == [buttons]  # the panel after the legend
    assert reached("collapse-curve", "ArrowLeft") == list(range(buttons, -1, -1))
    page.keyboard.press("Enter")  # the curve goes, and the focus stays where it was
    assert page.evaluate("document.activeElement.getAttribute('aria-pressed')") == "false"
    assert set(charts.evaluate_all(f"all => all.map({stops})")) == {1}
    page.keyboard.press("Enter")
    reached("collapse-curve", "ArrowRight")
    seen.check(close=False)


def test_the_tooltip_goes_when_its_chart_is_scrolled_away(seen: Visit) -> None:
    page = seen.page
    for figure, part in (("lookback", "canvas"), ("collapse-curve", "svg")):
        page.locator(f"#figure-{figure} [data-chart] {part}[tabindex='0']").focus()
        page.keyboard.press("ArrowRight")
        page.wait_for_timeout(100)
        assert page.locator("#tip").is_visible(), figure
        page.evaluate("scrollBy({top: 150, behavior: 'instant'})")
        page.locator("#tip").wait_for(state="hidden")
    seen.check(close=False)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_light_and_dark_follow_the_system_and_the_button(browser: Any, study: Path, scheme: str) -> None:
    visit = Visit(browser, study, color_scheme=scheme)
    theme = "document.documentElement.dataset.theme"
    assert visit.page.evaluate(theme) == scheme
    display = f"getComputedStyle(document.querySelector('img.{scheme}[src*=gate-funnel]')).display"
    assert visit.page.evaluate(display) == "block"
    visit.page.click("#theme")
    assert visit.page.evaluate(theme) != scheme
    assert visit.page.evaluate(display) == "none"
    visit.check()


@pytest.mark.parametrize("width", [390, 1280])
def test_nothing_is_wider_than_the_screen(browser: Any, study: Path, width: int) -> None:
    visit = Visit(browser, study, viewport={"width": width, "height": 844})
    visit.scroll()
    visit.page.locator("#browser .item").first.click()
    visit.page.locator("#browser .ask").first.wait_for()
    assert visit.page.evaluate("document.documentElement.scrollWidth") <= width
    visit.check()


def test_the_bar_at_the_top_shows_every_section_and_the_whole_name_of_the_run(browser: Any, study: Path) -> None:
    visit = Visit(browser, study)
    page = visit.page
    cut = """() => {
        const list = document.getElementById("run"), pen = document.createElement("canvas").getContext("2d");
        pen.font = getComputedStyle(list).font;
        return pen.measureText(list.selectedOptions[0].text).width - (list.clientWidth - 24); }"""
    boxes = "all => all.map(a => a.getBoundingClientRect()).map(b => [b.left, b.right, b.top, b.bottom])"
    for width in (390, 800, 1024, 1200, 1280, 1440):
        page.set_viewport_size({"width": width, "height": 844})
        page.wait_for_timeout(50)
        assert page.evaluate(cut) <= 0, width
        ((left, _, _, low),) = page.locator("#theme").evaluate_all(boxes)
        links = page.locator(".top nav a").evaluate_all(boxes)
        assert len(links) == 11 and all(right <= left or top >= low - 8 for _, right, top, _ in links)
        if width > 390:  # on a phone the sections are one line that scrolls
            assert all(0 <= start and right <= width for start, right, _, _ in links), width
    page.set_viewport_size({"width": 390, "height": 844})
    page.click(".top nav a[href='#cases']")
    inside = "a => { const b = a.getBoundingClientRect(); return b.left >= 0 && b.right <= innerWidth; }"
    page.locator(".top nav a.here[href='#cases']").wait_for()
    assert page.locator(".top nav a.here[href='#cases']").evaluate(inside)
    visit.check()


def test_no_place_of_the_page_shows_a_value_that_is_none(
    browser: Any, synthetic: ModuleType, add_cases: Any, write_page: Any, tmp_path: Path
) -> None:
    """Of every protocol, with everything unfolded: no undefined, NaN, null or None where a number or a text belongs."""
    run = synthetic.make_run(tmp_path / "runs" / "a", n=24, seed=1)
    add_cases(run, ["case-0001"])
    gap = synthetic.make_run(tmp_path / "runs" / "b", n=8, seed=2, protocol="compositionality-gap", probes=())
    for folder in (run, gap):
        manifest = json.loads((folder / "manifest.json").read_text())
        engine = {"identity": {"weights": None}, "provenance": {}, "of": [{"batch": None, "n": 1}]}
        manifest |= {"stopped": None, "engine": engine}
        (folder / "manifest.json").write_text(json.dumps(manifest))
    visit = Visit(browser, write_page([tmp_path / "runs"], tmp_path / "out"))
    visit.page.evaluate("document.querySelectorAll('details').forEach(d => { d.open = true; })")
    visit.scroll()
    visit.page.locator("#browser .item").first.click()
    visit.page.locator("#browser .ask").first.wait_for()
    text = visit.page.evaluate("document.body.innerText")
    found = re.findall(r".{0,30}(?:undefined|NaN|\bnull\b|\bNone\b|\[object|Infinity).{0,30}", text)
    assert [f for f in found if "undefined" not in f or "undefinedundefined" in f] == []
    visit.check()


def test_hostile_text_does_nothing(browser: Any, synthetic: ModuleType, write_page: Any, tmp_path: Path) -> None:
    synthetic.make_run(tmp_path / "r" / "x", model=HOSTILE, n=8, seed=1, text=HOSTILE + "a" * 100_000, command=HOSTILE,
                       probes=("lookback",))  # fmt: skip
    visit = Visit(browser, write_page([tmp_path / "r"], tmp_path / "out"))
    visit.scroll()
    for i in range(3):
        visit.page.locator("#browser .item").nth(i).click()
    visit.page.locator("#browser .ask").first.wait_for()
    visit.page.wait_for_timeout(100)
    assert visit.page.evaluate("window.hit") is None
    assert visit.page.locator("#browser img, #browser script, #dossier img, #dossier script").count() == 0
    assert "<script>window.hit=1" in visit.page.locator("#browser .ask").first.inner_text()
    assert "first 20,000 of" in visit.page.locator("#browser .ask").first.inner_text()
    assert visit.page.evaluate("document.documentElement.scrollWidth") <= 1280
    visit.check()


@pytest.mark.parametrize("name", ["constructor", "__proto__", "case=1&run=2", "a #1? %"])
def test_a_case_of_any_name_is_found_and_opened_by_its_address(
    name: str, browser: Any, synthetic: ModuleType, write_page: Any, tmp_path: Path
) -> None:
    run = synthetic.make_run(tmp_path / "run", n=8, failure=0.9, seed=1, probes=())
    for file in (*run.rglob("*.json"), *run.rglob("*.jsonl")):
        file.write_text(file.read_text().replace('"case-0001"', json.dumps(name)))
    visit = Visit(browser, write_page([run], tmp_path / "out"))
    visit.scroll()
    assert visit.page.locator("[data-filter=cause]").count() == 0  # nothing was diagnosed
    visit.page.fill("[data-filter=find]", name)
    visit.page.locator("#browser .item").click()
    visit.page.locator("#browser .case a").click()
    wait_until(visit.page, "name => document.getElementById('dossier').dataset.case === name", name)
    visit.check()


def test_a_figure_of_any_name_has_its_picture_its_numbers_and_its_files(
    browser: Any, synthetic: ModuleType, write_page: Any, tmp_path: Path
) -> None:
    plugin = tmp_path / "plugin.py"
    plugin.write_text(
        "from matplotlib.figure import Figure\nfrom composcope.experiments.figures.drawing import Drawing\n"
        "def draw(runs):\n    return Drawing(Figure(), [{'value': 12.5}], 'a caption')\n"
        "FIGURES = {'gap #1, 50 %?': draw}\n"
    )
    load_plugin(plugin)
    run = synthetic.make_run(tmp_path / "run", n=8, probes=())
    visit = Visit(browser, report.write([run], tmp_path / "out"))
    visit.scroll()
    figure = visit.page.locator("[data-figure='gap #1, 50 %?']")
    wait_until(visit.page, "document.querySelector(\"[data-figure^='gap #'] img\").naturalWidth > 0")
    figure.locator("[data-numbers]").click()
    figure.locator(".numbers td").get_by_text("12.5").wait_for()
    files = figure.locator(".files a").evaluate_all("all => all.map(a => decodeURIComponent(new URL(a.href).pathname))")
    assert len(files) == 3 and all(Path(file).is_file() for file in files)
    visit.check()


def test_a_missing_data_file_is_said_in_its_place(
    browser: Any, synthetic: ModuleType, write_page: Any, tmp_path: Path
) -> None:
    run = synthetic.make_run(tmp_path / "run", n=8, probes=())
    page = write_page([run], tmp_path / "out")
    (tmp_path / "out" / "data" / "cases" / "0-0.js").unlink()
    visit = Visit(browser, page)
    visit.page.locator("#dossier").get_by_text("data/cases/0-0.js is missing").wait_for()
    assert not visit.page.locator("#missing").is_visible()
    visit.scroll()
    visit.page.locator("#browser .item").first.click()
    visit.page.locator("#browser").get_by_text("data/cases/0-0.js is missing").wait_for()
    visit.context.close()


def test_a_page_without_its_data_folder_says_so_and_keeps_its_style(
    browser: Any, synthetic: ModuleType, write_page: Any, tmp_path: Path
) -> None:
    run = synthetic.make_run(tmp_path / "run", n=8, probes=())
    page = write_page([run], tmp_path / "out")
    alone = tmp_path / "alone" / "report.html"
    alone.parent.mkdir()
    alone.write_bytes(page.read_bytes())
    visit = Visit(browser, alone)
    visit.page.locator("#missing").wait_for()
    assert "--single-file" in visit.page.locator("#missing").inner_text()
    assert visit.page.locator("p.absent", has_text="JavaScript").count() == 0, "that is not what is missing"
    assert visit.page.evaluate("getComputedStyle(document.querySelector('main')).maxWidth") != "none"
    visit.context.close()


def test_panels_of_families_share_their_depths(
    browser: Any, synthetic: ModuleType, write_page: Any, tmp_path: Path
) -> None:
    run = synthetic.make_run(tmp_path / "run", n=40, probes=())
    document = json.loads((run / "metrics.json").read_text())
    document["metrics"].append(synthetic.rate("residual_failure", 3, 20, depth_bin=2, family="pair"))
    (run / "metrics.json").write_text(json.dumps(document))
    visit = Visit(browser, write_page([run], run))
    visit.scroll()
    panels = visit.page.locator("#figure-family-curves [data-chart] svg")
    panels.first.scroll_into_view_if_needed()
    inside = "s => s.map(x => [...x.querySelectorAll('text[text-anchor=middle]')].map(t => t.textContent))"
    ticks = panels.evaluate_all(inside)
    assert len(ticks) == 3 and ticks[0] == ticks[1] == ticks[2] and len(ticks[0]) > 2
    visit.check()


def test_an_interactive_figure_shows_what_its_picture_shows(
    browser: Any, synthetic: ModuleType, write_page: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(grouping, "FAMILIES", 1)
    run = synthetic.make_run(tmp_path / "runs" / "a", n=48, probes=())
    shares = {"lens.absent": 0.9, "lens.in-prompt": 0.2, "ridge.absent": 0.7, "ridge.in-prompt": 0.1}
    maps = {f"{of}.bridge.{group}": np.full((4, 2), share)
            for of, share in shares.items() for group in ("failure", "success")}  # fmt: skip
    rows = [{"quantity": f"held_{reader}", "kind": "bridge", "foils": "absent", "group": "failure", "n": n}
            for reader, n in (("lens", 5), ("ridge", 4))]  # fmt: skip
    synthetic.write_probe(run / "probes" / "readout", "readout", rows, maps, {"places": ("subject", "end")})
    steps = [{"run": name, "recipe": "sft", "step": step, "metric": "both", "k": 20, "n": 40}
             for name in "ab" for step in (0, 50, 100)]  # fmt: skip
    (tmp_path / "training_curve.json").write_text(json.dumps({"rows": steps}))
    visit = Visit(browser, write_page([run], tmp_path / "page"))
    visit.scroll()
    for reader, share in (("lens", "0.9"), ("ridge", "0.7")):  # the foils of the maps are absent from the question
        visit.page.select_option("#figure-readout [data-control=switch]", f"bridge, {reader}")
        visit.page.locator("#figure-readout canvas").first.hover(position={"x": 200, "y": 20})
        tip = visit.page.locator("#tip").inner_text()
        assert share in tip.split() and ("fewer than 5 cases" in tip) == (reader == "ridge")
        struck = visit.page.locator("#figure-readout canvas").first.evaluate(
            "c => { const row = c.getContext('2d').getImageData(0, 20, c.width, 1).data, seen = new Set();"
            " for (let i = 200; i < row.length; i += 4) seen.add(row.slice(i, i + 3).join()); return seen.size > 3; }"
        )
        assert struck == (reader == "ridge")
    lines = visit.page.locator("#figure-training-curve polyline[points*=' ']").evaluate_all(
        "found => found.map(line => line.getAttribute('points').split(' ').length)"
    )
    assert lines == [3, 3], "a line for each training"
    assert visit.page.locator("#figure-family-curves .panel").count() == 1
    visit.check()
