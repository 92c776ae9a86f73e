"""The site of this repository, over made-up results of its studies, and a browser."""

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

from analysis.study import discover
from tests.roots import build, copy_of_repository
from tests.synthetic import write_machine
from tests.waiting import DEADLINE_S

if TYPE_CHECKING:
    from playwright.sync_api import Browser

FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
MEASURED = ("h2d_gather", "method", "pool_gather")
"""Studies that have results without --long, which measures all."""
SYSTEM_BROWSERS = ("chromium", "chromium-browser", "google-chrome")


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


@contextmanager
def served(site: Path) -> Iterator[str]:
    """The address of the site while it is served."""
    handler = functools.partial(Quiet, directory=str(site))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


@pytest.fixture(scope="module")
def address(site: Path) -> Iterator[str]:
    with served(site) as address:
        yield address


def executable() -> str | None:
    """The installed browser; None for Playwright's."""
    found = filter(None, map(shutil.which, SYSTEM_BROWSERS))
    return os.environ.get("HOTPATH_CHROMIUM") or next(found, None)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    # Here, because the quick tests read this file, too.
    from playwright.sync_api import Error, expect, sync_playwright

    expect.set_options(timeout=DEADLINE_S * 1000)
    with sync_playwright() as playwright:
        try:
            launched = playwright.chromium.launch(executable_path=executable(), args=FLAGS)
        except Error as error:
            pytest.fail(
                f"no browser to open the site with: {error.message.splitlines()[0]}\n"
                "Set HOTPATH_CHROMIUM to a Chromium, install one, or run `playwright install`."
            )
        yield launched
        launched.close()


@pytest.fixture(scope="session")
def site(pytestconfig: pytest.Config, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One machine has measured all of its studies, or MEASURED, another a few."""
    root = copy_of_repository(tmp_path_factory.mktemp("site"))
    is_whole = pytestconfig.getoption("--long")
    for study in discover(root).values():
        if not is_whole and study.name not in MEASURED:
            continue
        write_machine(root / "results", "box", study, rounds=4, grid="default")
        if study.name in ("h2d_gather", "method"):
            write_machine(root / "results", "other-box", study, rounds=4, grid="default")
    return build(root)
