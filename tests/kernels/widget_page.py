"""A page with one widget, in a browser."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from analysis import ROOT
from analysis.site.charts.widgets import write_widgets
from analysis.site.facts.study_facts import StudyFacts
from tests.browser import served

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

PAGE = """<!doctype html><title>{name}</title>
<figure class="hp-widget" data-widget="{name}" data-script="{name}.js"
  data-source="{name}.widget.json"><p class="hp-note"></p>
  <div class="hp-view">table</div></figure>
<script type="module">import {{ watchWidgets }} from "./widgets.js"; watchWidgets();</script>"""


def write_page(facts: StudyFacts, name: str, site: Path) -> None:
    """Write a page with the study's widget `name`, and its files, to the folder `site`."""
    write_widgets(facts, site)
    (site / "index.html").write_text(PAGE.format(name=name))
    (site / "widgets.js").write_text((ROOT / "docs" / "assets" / "widgets.js").read_text())


@contextmanager
def opened(browser: Browser, site: Path, query: str) -> Iterator[Page]:
    """The page in `site` with its form, at an address with `query`. It loads no foreign file."""
    with served(site) as address:
        page = browser.new_page()
        requested: list[str] = []
        page.on("request", lambda request: requested.append(request.url))
        page.goto(f"{address}?{query}")
        page.wait_for_selector(".hp-widget form")
        yield page
        page.close()
        assert all(url.startswith(address) for url in requested)


def require_refused(page: Page, field: str, text: str, expected: str) -> None:
    """After input of `text`, the page shows the message `expected` instead of a table."""
    page.fill(f"input[name={field}]", text)
    assert page.inner_text(".hp-answer") == expected
    assert page.locator(".hp-table").count() == 0
