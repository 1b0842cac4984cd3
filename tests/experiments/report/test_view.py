"""``composcope view``: a real server, a real browser; live, one run at a time, exported, and shut to everyone else."""

from __future__ import annotations

import http.client
import importlib.util
import json
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from browsing import wait_until
from safetensors.numpy import load_file, save_file

from composcope.errors import InputError
from composcope.experiments import report
from composcope.experiments.cli import main
from composcope.experiments.report import pictures, view
from composcope.experiments.report.landing import twins
from composcope.experiments.run.reader import read_run

pytestmark = pytest.mark.long

LAYER, HEAD = 2, 3


def add_wholes(run: Path) -> dict[str, Any]:
    """Let the lookback probe of a run have kept the heads of all its failures and successes; returns them by case."""
    folder = run / "probes" / "lookback"
    sets = [s for s in read_run(run).case_sets.values() if s.label in ("failure", "success")]
    cases = [case for s in sets for case in s.ids]
    tensors = load_file(folder / "tensors.safetensors")
    wholes = np.random.default_rng(3).uniform(0.1, 0.9, (len(cases), LAYER + 1, HEAD + 1)).astype(np.float16)
    save_file({**tensors, "wholes": wholes}, folder / "tensors.safetensors")
    about = json.loads((folder / "result.json").read_text())
    about["settings"]["cases"] = cases
    (folder / "result.json").write_text(json.dumps(about))
    return dict(zip(cases, wholes.astype(np.float64), strict=True))


class Served:
    """``composcope view`` over two runs as a process of its own."""

    def __init__(self, folder: Path, synthetic: ModuleType, add_cases: Any) -> None:
        self.folder = folder
        self.one = synthetic.make_run(folder / "runs" / "a", n=40, failure=0.6, seed=1, probes=("lookback",))
        self.two = synthetic.make_run(
            folder / "runs" / "b", model="organism:twin", n=20, failure=0.4, seed=2, probes=()
        )
        sets = read_run(self.one).case_sets.values()
        self.failures, self.successes = (
            next(s.ids for s in sets if s.label == label)[:n] for label, n in (("failure", 3), ("success", 2))
        )
        add_cases(self.one, [*self.failures, *self.successes])
        self.wholes = add_wholes(self.one)
        (self.one / "secret.txt").write_text("secret")
        command = [sys.executable, "-m", "composcope", "view", str(folder / "runs"), "--port", "0", "--json"]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        said = ""
        while self.process.poll() is None and not said.rstrip().endswith("}"):
            said += self.process.stdout.readline()  # type: ignore[union-attr]
        assert said, self.process.stderr and self.process.stderr.read()
        self.url: str = json.loads(said)["url"]
        self.port = int(self.url.rsplit(":", 1)[1].strip("/"))

    def ask(self, path: str, method: str = "GET", host: str | None = None) -> tuple[int, bytes]:
        """Status and body for a path as it is written, which libraries would tidy up."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        connection.request(method, path, headers={"Host": host or f"127.0.0.1:{self.port}"})
        answer = connection.getresponse()
        return answer.status, answer.read()

    def version(self) -> int:
        return int(json.loads(self.ask("/version")[1])["version"])


@pytest.fixture(scope="module")
def served(synthetic: ModuleType, add_cases: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    found = Served(tmp_path_factory.mktemp("served"), synthetic, add_cases)
    yield found
    found.process.send_signal(signal.SIGTERM)
    assert found.process.wait(120) == 130  # as every command that is told to end


def _page(browser: Any, url: str) -> tuple[Any, list[str]]:
    page = browser.new_context(viewport={"width": 1280, "height": 900}).new_page()
    complaints: list[str] = []
    page.on("console", lambda m: complaints.append(m.text) if m.type in ("error", "warning") else None)
    page.on("pageerror", lambda e: complaints.append(str(e)))
    page.goto(url)
    page.wait_for_selector("#dossier[data-case]")
    return page, complaints


def test_a_page_follows_its_run_and_stays_with_what_the_reader_looks_at(browser: Any, served: Served) -> None:
    page, complaints = _page(browser, served.url)
    page.select_option("#run", label=page.locator("#run option").nth(1).inner_text())
    shown, before = page.locator("#run").input_value(), served.version()
    page.locator("#lookback > details > summary").click()
    path = (served.one, served.two)[int(shown)] / "metrics.json"
    document = json.loads(path.read_text())
    row = next(m for m in document["metrics"] if m["metric"] == "residual_failure" and not m["group"])
    wanted = 1 if row["count"] != 1 else 2
    row |= {"count": wanted, "value": wanted / row["n"]}
    path.write_text(json.dumps(document))
    said = f"[data-landing='{shown}'] h1"
    wait_until(
        page,
        "([said, text]) => document.querySelector(said)?.textContent.includes(text)",
        arg=[said, f"{wanted} of {row['n']} wholes"],
    )
    page.wait_for_selector("#dossier[data-case]")
    assert served.version() > before and f"/{served.version()}/" in page.url
    assert page.locator("#run").input_value() == shown and page.locator(said).is_visible()
    page.locator("#figure-lookback").wait_for(state="visible")  # unfolded as it was
    assert complaints == []


def test_a_figure_is_drawn_when_it_comes_into_view_and_once_for_each_state_of_the_runs(
    browser: Any, served: Served
) -> None:
    asked: list[str] = []
    page, complaints = _page(browser, served.url)
    page.on("request", lambda r: asked.append(r.url.rpartition("/")[2]))
    assert "figure-mink.js" not in asked
    page.evaluate("document.querySelectorAll('details').forEach((d) => { d.open = true; })")
    page.locator("#figure-lookback").scroll_into_view_if_needed()
    page.locator("#figure-lookback canvas").first.wait_for()
    assert "Lookback ratio of each head" in page.locator("#figure-lookback figcaption").inner_text()
    page.locator("#figure-dose-response").scroll_into_view_if_needed()
    said = page.locator("#figure-dose-response p.absent")
    said.wait_for()
    assert "composcope study validity" in said.inner_text()
    still = page.locator("#figure-outcomes img.light")
    page.locator("#figure-outcomes").scroll_into_view_if_needed()
    still.wait_for()
    assert still.evaluate("x => x.naturalWidth") > 100
    assert served.ask(f"/{served.version()}/data/figure-no-such.js")[0] == 404
    assert complaints == []


def test_one_choice_of_run_is_that_of_the_page_and_of_what_is_exported(browser: Any, served: Served) -> None:
    page, complaints = _page(browser, served.url)
    for at in ("1", "0"):
        page.select_option("#run", at)
        assert page.locator("h1:visible").locator("xpath=..").get_attribute("data-landing") == at
        assert page.locator("#export").get_attribute("href") == f"/export?run={at}"
        name = page.locator(f"#run option[value='{at}']").inner_text()
        wait_until(  # its case comes from a file of its own, which is fetched now
            page,
            "([link, run]) => new URLSearchParams(document.querySelector(link)?.hash.slice(1)).get('run') === run",
            arg=["#dossier header a.fine", name],
        )
    assert complaints == []


def test_a_head_leads_to_the_cases_in_which_it_differs_most(browser: Any, served: Served) -> None:
    page, complaints = _page(browser, f"{served.url}#lookback")
    page.select_option("#run", "0")
    canvas = page.locator("#figure-lookback canvas").first
    canvas.scroll_into_view_if_needed()
    canvas.focus()
    for _ in range(1 + LAYER):
        page.keyboard.press("ArrowDown")
    for _ in range(HEAD):
        page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    items = page.locator("#figure-lookback [data-differs]")
    items.first.wait_for()
    detail = page.locator("#figure-lookback .detail strong").first.inner_text()
    layer, head = map(int, re.findall(r"\d+", detail))
    run = read_run(served.one)
    failures, successes = run.groups
    at = {case: float(heads[layer, head]) for case, heads in served.wholes.items()}
    shown = pictures.collect([run]).index["runs"][0]["cases"]
    usual, beside = float(np.mean([at[c] for c in successes])), twins(run, shown)
    differences = {c: at[c] - at.get(beside.get(c, ""), usual) for c in failures}
    wanted = sorted(((d, c) for c, d in differences.items()), key=lambda d: -abs(d[0]))
    assert len(wanted) > 8 and "more" in page.locator("#figure-lookback .detail summary").inner_text()
    assert items.evaluate_all("all => all.map(x => x.dataset.differs)") == [c for _, c in wanted]
    found = items.evaluate_all("all => all.map(x => Number(x.dataset.difference))")
    np.testing.assert_allclose(found, [d for d, _ in wanted], atol=2e-4)
    page.evaluate("document.querySelector('#figure-lookback .detail details').open = true")
    kept = next(c for _, c in wanted if c in served.failures)
    page.locator(f"#figure-lookback [data-differs='{kept}'] a").click()
    page.wait_for_selector(f"#dossier[data-case='{kept}']")
    assert page.locator("[data-attention=head]").first.input_value() == f"{layer}.{head}"
    assert complaints == []


@pytest.mark.parametrize(
    "path",
    ["/{n}/../../runs/a/secret.txt", "/{n}/%2e%2e/%2e%2e/runs/a/secret.txt", "/{n}/..%2f..%2fruns%2fa%2fsecret.txt",
     "/{n}//etc/passwd", "/{n}/{folder}/runs/a/secret.txt", "/{n}/data/../../../etc/passwd", "/runs/a/secret.txt",
     "/export?run=7", "/export?run=../a"],
)  # fmt: skip
def test_nothing_but_the_page_is_served(path: str, served: Served) -> None:
    status, body = served.ask(path.format(n=served.version(), folder=served.folder))
    assert status == 404 and b"secret" not in body and b"root:" not in body


def test_only_this_machine_by_its_own_name_is_answered(served: Served) -> None:
    inside = f"/{served.version()}/data/cases.js"
    assert served.ask(inside)[0] == 200
    for host in ("evil.example", f"evil.example:{served.port}", "127.0.0.1.evil.example"):
        assert served.ask(inside, host=host)[0] == 400, host
    assert served.ask(inside, method="POST")[0] == 405
    with pytest.raises(OSError):  # bound to 127.0.0.1 alone, not to every address of this machine
        socket.create_connection(("127.0.0.2", served.port), 2)


@pytest.mark.parametrize("chosen", [(), (1,)])
def test_an_export_is_what_report_writes_into_one_file(chosen: tuple[int, ...], served: Served, tmp_path: Path) -> None:
    runs = [served.one, served.two]
    status, body = served.ask(f"/export{''.join(f'?run={i}' for i in chosen)}")
    written = report.write([runs[i] for i in chosen] or [served.folder / "runs"], tmp_path, single_file=True)
    assert status == 200 and body == written.read_bytes()


def test_the_server_and_the_page_tell_how_far_an_export_is(synthetic: ModuleType, tmp_path: Path) -> None:
    run, told = synthetic.make_run(tmp_path / "a", n=8, probes=()), []

    @contextmanager
    def bar(title: str, total: int) -> Iterator[Any]:
        yield lambda n: told.append((n / total, pages.exported))

    pages = view.Pages([run], tmp_path / "pages", print, bar)
    pages.refresh()
    assert told == [] and pages.exported is None  # figures of a live page are drawn later
    pages.export([0])
    assert len(told) > 20 and pages.exported is None
    assert [said for _, said in told] == pytest.approx(np.cumsum([share for share, _ in told]))


def test_a_run_that_cannot_be_read_leaves_the_page_as_it_was(synthetic: ModuleType, tmp_path: Path) -> None:
    run, said = synthetic.make_run(tmp_path / "a", n=8, probes=()), []
    pages = view.Pages([run], tmp_path / "pages", said.append)
    assert pages.refresh() and not pages.refresh()
    (run / "log.txt").write_text("a line of progress")
    assert not pages.refresh()
    (tmp_path / "validity.json").write_text('{"schema": 1, "rows": []}')  # of the study whose run it is
    assert pages.refresh() and not pages.refresh()
    (run / "metrics.json").write_text("{")
    with pytest.raises(InputError, match="metrics"):
        pages.refresh()
    assert pages.number == 2 and (tmp_path / "pages" / "2" / "report.html").is_file()


def test_a_taken_port_and_a_missing_extra_are_one_line(
    synthetic: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    run = synthetic.make_run(tmp_path / "a", n=8, probes=())
    with view.listen(0) as taken:
        port = str(taken.getsockname()[1])
        assert main(["view", str(run), "--port", port, "--quiet"]) == 1
    assert f"--port {port}: " in capsys.readouterr().err
    usual = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "uvicorn" else usual(name))
    assert main(["view", str(run)]) == 1
    assert "pip install 'composcope[view]'" in capsys.readouterr().err


def test_a_port_beyond_the_last_is_an_input_error() -> None:
    with pytest.raises(InputError, match="--port 99999: give a number from 1 to 65535, or 0 "):
        view.listen(99999)
