"""``composcope view``: serve the report on this machine, and write it again whenever a file of a run changes.

The page is the one that ``write`` makes, with a script that asks every second whether there is a newer one. The server
listens on 127.0.0.1 only, answers only requests that name this machine as their host, and serves only the page's files.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import socket
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ...errors import ComposcopeError, InputError
from ...terminal import Advance, Bar, no_bar
from ..figures.catalog import FIGURES
from ..run import find_runs
from ..run.reader import RunData, load
from .write import write, write_figure_data

HOST = "127.0.0.1"
HOSTS = (HOST, "localhost")
EVERY = 1.0
"""Seconds between two checks of the run folders."""
FIGURE = re.compile(r"data/figure-([^/]+)\.js")
"""The path at which a page asks for a figure."""
LEFT_OUT = {"journal", "figures", "data", ".measured", "log.txt", ".lock", "report.html"}
"""Files and folders of a run that its page does not depend on, including those of reports."""
State = list[tuple[str, int, int]]
HEADERS = {
    "Cache-Control": "no-store",
    "Cross-Origin-Resource-Policy": "same-origin",  # data files are scripts: pages from elsewhere must not load them
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}


class Pages:
    """The page of some runs, written again when they change.

    An open page loads its data only when it needs them, so the previous page is kept as well.
    """

    def __init__(
        self, runs: Sequence[str | Path], folder: str | Path, say: Callable[[str], None], progress: Bar = no_bar
    ) -> None:
        """``say`` prints a line for people; ``progress`` opens a bar for a page that takes more than a few seconds."""
        self.given, self.folder, self.say, self.progress = [Path(run) for run in runs], Path(folder), say, progress
        self.number = 0
        self.runs: list[Path] = []
        self.exported: float | None = None
        """The share of an export that is done; None between exports."""
        self._loaded: dict[int, Sequence[RunData]] = {}
        self._known: dict[Path, tuple[Any, RunData]] = {}
        self._seen: Any = None
        self._writing = threading.Lock()  # one figure is drawn at a time

    def refresh(self) -> bool:
        """Write the page if a run has changed since the last page; returns whether it was written.

        Raises ``InputError`` for a folder that is not a run or a file that cannot be read; the earlier page stays.
        """
        seen = self._state()
        if seen == self._seen:
            return False
        self._seen = seen  # also if the page cannot be written: the next change triggers the next try
        runs = self._read()
        with self._writing:
            write(runs, self.folder / str(self.number + 1), live=True, progress=self.progress)
        self._loaded = {self.number: self._loaded.get(self.number, ()), self.number + 1: runs}
        self.runs, self.number = [run.path for run in runs], self.number + 1
        shutil.rmtree(self.folder / str(self.number - 2), ignore_errors=True)
        return True

    def draw(self, number: int, name: str) -> None:
        """Draw a figure of a page when it is asked for, once for each state of the runs."""
        file = self.folder / str(number) / "data" / f"figure-{name}.js"
        if name not in FIGURES or file.is_file():
            return
        with self._writing:
            if not file.is_file() and number in self._loaded and file.parent.is_dir():
                write_figure_data(name, self._loaded[number], file.parent.parent)

    def _read(self) -> list[RunData]:
        """Read the runs whose files have changed; keep the others as they were read before."""
        runs = []
        for run in load(self.given):
            state = _state([*_near(run.path.parent), *_files(run.path)])
            if self._known.get(run.path, (None,))[0] != state:
                self._known[run.path] = (state, run)
            runs.append(self._known[run.path][1])
        return load(runs)  # a new run may have the name of one that was read before

    def keep_fresh(self, stopped: threading.Event) -> None:
        """Refresh until ``stopped``; the same error is reported only once."""
        last = ""
        while not stopped.wait(EVERY):
            try:
                if self.refresh():
                    self.say(f"page {self.number}: {len(self.runs)} runs")
                last = ""
            except (ComposcopeError, OSError) as e:
                if str(e) != last:
                    last = str(e)
                    self.say(f"the page stays as it is: {e}")

    def export(self, chosen: Sequence[int]) -> Path:
        """The page of the chosen runs (by default all) as one file, as with ``composcope report --single-file``."""
        with self._writing:
            given = [self.runs[i] for i in chosen] or self.runs
            try:
                return write(given, self.folder / "export", single_file=True, progress=self._counted)
            finally:
                self.exported = None

    @contextmanager
    def _counted(self, title: str, total: int) -> Iterator[Advance]:
        """The bar, which also keeps the share that is done for the page."""
        done, self.exported = 0.0, 0.0
        with self.progress(title, total) as advance:

            def both(n: float) -> None:
                nonlocal done
                done += n
                self.exported = min(done / max(total, 1), 1.0)
                advance(n)

            yield both

    def _state(self) -> State:
        """Describe every file that the page depends on."""
        runs = find_runs(self.given)
        near = [path for folder in dict.fromkeys([*self.given, *(r.parent for r in runs)]) for path in _near(folder)]
        return _state([*near, *(p for run in runs for p in _files(run))])


def _near(folder: Path) -> list[Path]:
    """Name the files beside the runs that their page depends on."""
    return [folder / name for name in ("study.json", "validity.json")]


def _state(paths: Iterable[Path]) -> State:
    """List path, time and size of every file that exists."""
    found = []
    for path in paths:
        try:
            about = path.stat()
        except OSError:  # gone again, or never there
            continue
        found.append((str(path), about.st_mtime_ns, about.st_size))
    return found


def _files(run: Path) -> Iterator[Path]:
    for folder, inside, names in os.walk(run):
        inside[:] = sorted(set(inside) - LEFT_OUT)
        yield from (Path(folder) / name for name in sorted(names) if name not in LEFT_OUT)


def application(pages: Pages) -> Any:
    """The web application over the pages: ``/``, ``/version``, ``/export`` and the files of a page."""
    from starlette.applications import Starlette
    from starlette.concurrency import run_in_threadpool
    from starlette.exceptions import HTTPException
    from starlette.middleware import Middleware
    from starlette.middleware.trustedhost import TrustedHostMiddleware
    from starlette.requests import Request
    from starlette.responses import FileResponse, JSONResponse, RedirectResponse, Response
    from starlette.routing import Route
    from starlette.staticfiles import StaticFiles

    def first(request: Request) -> Response:
        return RedirectResponse(f"/{pages.number}/report.html", headers=HEADERS)

    def version(request: Request) -> Response:
        return JSONResponse({"version": pages.number, "exported": pages.exported}, headers=HEADERS)

    def export(request: Request) -> Response:
        said = request.query_params.getlist("run")
        known = [str(i) for i in range(len(pages.runs))]
        if unknown := [run for run in said if run not in known]:
            raise HTTPException(404, f"no run {unknown[0]!r:.20} on this page", HEADERS)
        name = f"report-{pages.runs[int(said[0])].name}.html" if len(said) == 1 else "report.html"
        try:
            return FileResponse(pages.export([int(run) for run in said]), filename=name, headers=HEADERS)
        except ComposcopeError as e:
            raise HTTPException(409, str(e), HEADERS) from e

    async def file(request: Request) -> Response:
        number = request.path_params["number"]
        if not pages.number - 1 <= number <= pages.number:
            return RedirectResponse("/", headers=HEADERS)
        # get_path and get_response refuse what leads out of the folder, also by a link
        if asked := FIGURE.fullmatch(request.path_params["path"]):
            await run_in_threadpool(pages.draw, number, asked[1])
        folder = StaticFiles(directory=pages.folder / str(number), check_dir=False)
        answer = await folder.get_response(os.path.normpath(request.path_params["path"]), request.scope)
        answer.headers.update(HEADERS)
        return answer

    routes = [Route("/", first), Route("/version", version), Route("/export", export),
              Route("/{number:int}/{path:path}", file)]  # fmt: skip
    return Starlette(routes=routes, middleware=[Middleware(TrustedHostMiddleware, allowed_hosts=list(HOSTS))])


def listen(port: int) -> socket.socket:
    """A socket on this machine; port 0 takes a free one.

    Raises ``InputError`` for a port that is taken, and for a number that is no port.
    """
    try:
        return socket.create_server((HOST, port))
    except OverflowError as e:
        raise InputError(f"--port {port}: give a number from 1 to 65535, or 0 for a free port") from e
    except OSError as e:
        raise InputError(f"--port {port}: {e.strerror or e}; give another one, or 0") from e


def serve(pages: Pages, listening: socket.socket) -> None:
    """Serve until Ctrl-C; another end (SIGTERM) is raised as everywhere else."""
    import uvicorn

    config = uvicorn.Config(application(pages), log_level="warning", lifespan="off", timeout_graceful_shutdown=1)
    stopped = threading.Event()
    watching = threading.Thread(target=pages.keep_fresh, args=(stopped,), daemon=True)
    watching.start()
    server, ends = uvicorn.Server(config), list[int]()
    own = server.handle_exit

    def note(sig: int, frame: Any) -> None:
        ends.append(sig)
        own(sig, frame)

    server.handle_exit = note
    try:
        server.run(sockets=[listening])
    except KeyboardInterrupt:  # uvicorn raises the signal once more
        if ends[:1] != [signal.SIGINT]:
            raise
    finally:
        stopped.set()
        listening.close()
