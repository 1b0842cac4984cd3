"""The pages of ``composcope view`` without a server of its own: what is answered, exported and refused."""

from __future__ import annotations

import json
import signal
import threading
from contextlib import nullcontext
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from composcope.errors import InputError
from composcope.experiments.cli import main
from composcope.experiments.report import view

client = pytest.importorskip("starlette.testclient")


class Pages:
    """Two runs on page 3 in a folder; what is drawn and exported is kept."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.number, self.exported = folder, 3, 0.25
        self.runs = [SimpleNamespace(name=name) for name in ("one", "two")]
        self.drawn: list[Any] = []
        self.chosen: list[list[int]] = []
        for number in ("2", "3"):
            (folder / number / "data").mkdir(parents=True)
            (folder / number / "report.html").write_text(f"page {number}")
            (folder / number / "data" / "figure-gaps.js").write_text("drawn")
        (folder / "secret.txt").write_text("secret")

    def draw(self, number: int, name: str) -> None:
        self.drawn.append((number, name))

    def export(self, chosen: list[int]) -> Path:
        self.chosen.append(chosen)
        if chosen == [1]:
            raise InputError("run two cannot be read")
        (self.folder / "export.html").write_text("exported")
        return self.folder / "export.html"


@pytest.fixture
def pages(tmp_path: Path) -> Pages:
    return Pages(tmp_path / "pages")


def _ask(pages: Any, path: str, **more: Any) -> Any:
    host = more.pop("host", "127.0.0.1")
    with client.TestClient(view.application(pages), base_url=f"http://{host}", follow_redirects=False) as asking:
        return asking.get(path, **more)


@pytest.mark.parametrize(
    ("path", "status", "said"),
    [
        ("/", 307, "/3/report.html"), ("/3/report.html", 200, "page 3"), ("/2/report.html", 200, "page 2"),
        ("/1/report.html", 307, "/"), ("/4/report.html", 307, "/"), ("/3/../secret.txt", 404, ""),
        ("/3/none.html", 404, ""), ("/version", 200, {"version": 3, "exported": 0.25}),
        ("/export", 200, "exported"), ("/export?run=0", 200, "exported"), ("/export?run=0&run=1", 200, "exported"),
        ("/export?run=1", 409, "run two cannot be read"), ("/export?run=2", 404, "no run '2'"),
        ("/export?run=-1", 404, "no run '-1'"), ("/export?run=0&run=x", 404, "no run 'x'"),
    ],
)  # fmt: skip
def test_each_path_has_its_answer(path: str, status: int, said: Any, pages: Pages) -> None:
    found = _ask(pages, path)
    assert found.status_code == status
    if status == 307:
        assert found.headers["location"] == said
    else:
        assert found.json() == said if isinstance(said, dict) else said in found.text
    assert "secret" not in found.text and all(found.headers[k] == v for k, v in view.HEADERS.items()
                                              if path[:3] != "/3/" or status == 200)  # fmt: skip


def test_an_export_is_of_the_chosen_runs_and_named_after_the_only_one(pages: Pages) -> None:
    names = [_ask(pages, f"/export{q}").headers["content-disposition"] for q in ("", "?run=0", "?run=1&run=0")]
    assert [name.partition("filename=")[2].strip('"') for name in names] == ["report.html", "report-one.html",
                                                                             "report.html"]  # fmt: skip
    assert pages.chosen == [[], [0], [1, 0]]


def test_a_figure_is_drawn_where_it_is_asked_for_and_a_host_of_another_name_is_refused(pages: Pages) -> None:
    for path in ("/3/data/figure-gaps.js", "/3/report.html", "/2/data/figure-gaps.js"):
        assert _ask(pages, path).status_code == 200
    assert pages.drawn == [(3, "gaps"), (2, "gaps")]
    assert _ask(pages, "/", host="evil.example").status_code == 400


def test_the_page_of_the_chosen_runs_is_exported_and_its_share_is_forgotten_behind_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: list[Any] = []

    def write(runs: Any, out: Path, single_file: bool, progress: Any) -> Path:
        given.append((runs, out, single_file))
        with progress("figures", 4) as advance:
            advance(1)
            given.append(pages.exported)
            advance(9)
            given.append(pages.exported)
        if runs == ["b"]:
            raise InputError("no")
        return out / "report.html"

    monkeypatch.setattr(view, "write", write)
    pages = view.Pages([tmp_path], tmp_path / "pages", print)
    pages.runs = ["a", "b"]  # type: ignore[list-item]
    assert pages.export([]) == tmp_path / "pages" / "export" / "report.html" and pages.exported is None
    with pytest.raises(InputError):
        pages.export([1])
    assert pages.exported is None
    out = tmp_path / "pages" / "export"
    assert given == [(["a", "b"], out, True), 0.25, 1.0, (["b"], out, True), 0.25, 1.0]


def test_a_port_is_of_this_machine_alone_and_one_that_cannot_be_had_is_named() -> None:
    with view.listen(0) as taken:
        host, port = taken.getsockname()
        assert host == "127.0.0.1" == view.HOST
        with pytest.raises(InputError, match=f"--port {port}: "):
            view.listen(port)


@pytest.mark.parametrize("end", [signal.SIGTERM, signal.SIGINT])
def test_a_server_watches_its_runs_until_it_ends(end: int, pages: Pages, monkeypatch: pytest.MonkeyPatch) -> None:
    uvicorn = pytest.importorskip("uvicorn")
    watched, served = list[threading.Event](), list[Any]()
    begun = threading.Event()

    def watch(stopped: threading.Event) -> None:
        watched.append(stopped)
        begun.set()

    def run(server: Any, sockets: Any) -> None:
        begun.wait(60)
        served.append((sockets, watched[0].is_set(), server.config.lifespan))
        server.handle_exit(end, None)
        raise KeyboardInterrupt

    pages.keep_fresh = watch  # type: ignore[attr-defined]
    monkeypatch.setattr(uvicorn.Server, "run", run)
    closed: list[str] = []
    listening: Any = SimpleNamespace(close=lambda: closed.append("closed"))
    # Ctrl-C is how one stops it; being told to end is an interruption as everywhere else.
    with nullcontext() if end == signal.SIGINT else pytest.raises(KeyboardInterrupt):
        view.serve(pages, listening)  # type: ignore[arg-type]
    assert served == [([listening], False, "off")] and watched[0].is_set() and closed == ["closed"]


@pytest.mark.parametrize("json_", [False, True])
def test_the_command_tells_the_address_and_serves_the_runs(
    json_: bool, synthetic: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    served: list[Any] = []
    made: list[Any] = []

    class Made:
        def __init__(self, runs: Any, folder: str, say: Any, bar: Any) -> None:
            made.append((runs, Path(folder).is_dir()))
            self.runs = [Path("r")]

        def refresh(self) -> None:
            made.append("refreshed")

    listening = SimpleNamespace(getsockname=lambda: ("127.0.0.1", 5))
    monkeypatch.setattr(view, "Pages", Made)
    monkeypatch.setattr(view, "listen", lambda port: served.append(port) or listening)
    monkeypatch.setattr(view, "serve", lambda pages, at: served.append(at))
    assert main(["view", str(tmp_path), "--port", "7", *(["--json"] if json_ else [])]) == 0
    said = capsys.readouterr().out
    assert made == [([tmp_path], True), "refreshed"] and served == [7, listening]
    assert (json.loads(said)["url"] if json_ else said.split()[0]) == "http://127.0.0.1:5/"
