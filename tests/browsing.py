"""A page in a headless Chromium, opened from a file, with everything that it complained about and asked for."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest


@contextmanager
def chromium() -> Iterator[Any]:
    """A running browser; skips the test where there is none."""
    sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    found = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if found is None:
        pytest.skip("no chromium on this machine: apt-get install chromium")
    with sync_api.sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=found, args=["--no-sandbox"])
        yield running
        running.close()


def wait_until(page: Any, script: str, arg: Any = None, *, seconds: float = 60) -> None:
    """Ask the page until ``script`` is true.

    ``page.wait_for_function`` evaluates a string within the page, which the report's content security policy refuses
    from the second look on. ``page.evaluate`` asks from outside. A page that loads anew meanwhile is asked again.
    """
    end = time.monotonic() + seconds
    while not _holds(page, script, arg):
        assert time.monotonic() < end, f"still not true after {seconds} s: {script} with {arg!r}"
        page.wait_for_timeout(50)


def _holds(page: Any, script: str, arg: Any) -> bool:
    from playwright.sync_api import Error

    try:
        return bool(page.evaluate(script, arg))
    except Error as e:
        if "context was destroyed" in str(e):
            return False
        raise


_SCROLL = """async () => {
    document.querySelectorAll("details").forEach((d) => { d.open = true; });
    for (let top = 0; top < document.documentElement.scrollHeight; top += 500) {
        scrollTo({ top, behavior: "instant" });
        await new Promise((done) => setTimeout(done, 30));
    }
}"""


class Visit:
    """A page with everything it complained about and everything it asked for."""

    def __init__(self, browser: Any, path: Path, **options: Any) -> None:
        self.path = path
        self.context = browser.new_context(**{"viewport": {"width": 1280, "height": 900}, **options})
        self.page = self.context.new_page()
        self.complaints: list[str] = []
        self.requests: list[str] = []
        self.page.on("console", lambda m: self.complaints.append(m.text) if m.type in ("error", "warning") else None)
        self.page.on("pageerror", lambda e: self.complaints.append(str(e)))
        self.page.on("request", lambda r: self.requests.append(r.url))
        self.page.goto(path.as_uri())

    def scroll(self) -> None:
        """Down to the end with everything unfolded, so that everything that loads when seen has loaded."""
        self.page.evaluate(_SCROLL)
        self.page.wait_for_selector("#browser .item")

    def check(self, *, close: bool = True) -> None:
        assert self.complaints == []
        assert [u for u in self.requests if not u.startswith(("file:", "data:", "blob:"))] == []
        if close:
            self.context.close()
