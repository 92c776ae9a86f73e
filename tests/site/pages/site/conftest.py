"""The site of this repository, over made-up results of its studies, and a browser."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING
from unittest.mock import patch

import pytest
from markupsafe import escape

from analysis.study import discover
from tests.browser import Strict, launched, served
from tests.roots import build, copy_of_repository
from tests.synthetic import write_machine
from tests.waiting import DEADLINE_S

if TYPE_CHECKING:
    from playwright.sync_api import Browser

    from tests.site.pages.site.visit import Visit

MEASURED = ("h2d_gather", "method", "pool_gather")
"""Studies that have results without --long, which measures all."""


@pytest.fixture(scope="module")
def address(site: Path) -> Iterator[str]:
    """Under a content policy that forbids inline scripts and eval."""
    with served(site, Strict) as address:
        yield address


@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    from playwright.sync_api import expect  # slow, and quick tests read this file, too

    expect.set_options(timeout=DEADLINE_S * 1000)
    with launched() as browser:
        yield browser


@pytest.fixture
def width() -> int:
    """Pixels of the screen of a visit."""
    return 1280


@pytest.fixture
def visit(browser: Browser, address: str, width: int) -> Iterator[Visit]:
    """A page of the site, which must have no errors."""
    from tests.site.pages.site.visit import Visit

    visit = Visit(browser, address, width)
    yield visit
    visit.page.close()
    assert visit.faults == []


@pytest.fixture(scope="session")
def site(pytestconfig: pytest.Config, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One machine has measured all of its studies, or MEASURED, another one of them."""
    root = copy_of_repository(tmp_path_factory.mktemp("site"))
    is_whole = pytestconfig.getoption("--long")
    for study in discover(root).values():
        if not is_whole and study.name not in MEASURED:
            continue
        write_machine(root / "results", "box", study, rounds=4, grid="default")
        if study.name == "h2d_gather":
            write_machine(root / "results", "other-box", study, rounds=4, grid="default")
    with patch("analysis.site.pages.source.highlight", without_colours):
        return build(root)


def without_colours(text: str, *_: object) -> str:
    """A block of code; the colours of all sources would take a third of the time."""
    return f'<div class="highlight"><pre>{escape(text)}</pre></div>'
