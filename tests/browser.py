"""A browser, and the address of a site that it opens."""

from __future__ import annotations

import functools
import http.server
import os
import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser

FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
SYSTEM_BROWSERS = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
"""The first opens no windows, so a page takes two thirds of the time."""


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


class Strict(Quiet):
    def end_headers(self) -> None:
        self.send_header("Content-Security-Policy", "script-src 'self'")
        super().end_headers()


@contextmanager
def served(site: Path, kind: type[Quiet] = Quiet) -> Iterator[str]:
    """The address of the site while it is served; `Strict` forbids inline scripts and eval."""
    handler = functools.partial(kind, directory=str(site))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


def executable() -> str | None:
    """The installed browser; None for Playwright's."""
    found = filter(None, map(shutil.which, SYSTEM_BROWSERS))
    return os.environ.get("HOTPATH_CHROMIUM") or next(found, None)


@contextmanager
def launched() -> Iterator[Browser]:
    """A browser while it runs; without one, the test fails."""
    from playwright.sync_api import Error, sync_playwright  # slow, and quick tests need none

    with sync_playwright() as playwright:
        try:
            browser = playwright.chromium.launch(executable_path=executable(), args=FLAGS)
        except Error as error:
            why = error.message.splitlines()[0]
            pytest.fail(f"no browser to open the site with: {why}; set HOTPATH_CHROMIUM to one")
        yield browser
        browser.close()
