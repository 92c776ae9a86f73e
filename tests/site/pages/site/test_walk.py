"""Every page of the site in a browser: complete, light and accessible."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.browser import FLAGS, executable
from tests.site.pages.site.conftest import MEASURED
from tests.site.pages.site.links import Document, broken_links, documents
from tests.site.pages.site.walk import Seen, walk

MAX_HTML_BYTES = 400_000
MAX_ELEMENTS = 8_000
MAX_FIRST_LOAD_BYTES = 400_000
"""Bytes that a page loads before a reader touches it, packed by gzip."""
MAX_PRINTED_PAGES = 10
"""Pages of A4 of a study, printed as it opens."""
MAX_SCREENS = 6
"""Height of a page before a reader opens a section, in windows of 1280 × 900."""
VISITED = {"", "data/", "engines/", "explorer/", "hardware/", "ledger/", "machines/", "reference/"}
"""Pages that are visited without --long: the ones that show results, and one of long tables."""


@pytest.fixture(scope="module")
def whole(site: Path) -> dict[str, Document]:
    """Every document of the site by its address within it."""
    return documents(site)


@pytest.fixture(scope="module")
def pages(whole: dict[str, Document]) -> dict[str, Document]:
    """The pages made from Markdown, by their addresses."""
    return {
        path.removesuffix("index.html"): document
        for path, document in whole.items()
        if document.is_page and path.endswith("index.html")
    }


@pytest.fixture(scope="module")
def seen(pytestconfig: pytest.Config, address: str, pages: dict[str, Document]) -> list[Seen]:
    """All pages; without --long, VISITED and the studies' pages that have results."""
    few = {*VISITED, *(f"studies/{name}/" for name in MEASURED)}
    assert few <= {*pages}
    is_long = pytestconfig.getoption("--long")
    return walk(address, [page for page in pages if is_long or page in few], executable(), FLAGS)


def of(seen: list[Seen], name: str) -> dict[str, object]:
    return {one.path: found for one in seen if (found := getattr(one, name))}


def test_no_failure_and_no_request_to_other_hosts(seen: list[Seen]) -> None:
    assert len(seen) > len(MEASURED) + 7
    assert of(seen, "faults") == {}


def test_axe_finds_nothing_serious_in_either_palette(seen: list[Seen]) -> None:
    assert of(seen, "axe") == {}


def test_tables_fit_in_a_narrow_window(seen: list[Seen]) -> None:
    assert of(seen, "wide_tables") == {}
    assert {path: px for path, px in of(seen, "overflow_px").items() if int(str(px)) > 0} == {}


def test_pages_are_short_until_a_section_is_opened(seen: list[Seen]) -> None:
    studies = [one for one in seen if one.path.startswith("studies/")]
    assert len(studies) >= len(MEASURED)
    assert [one.path for one in seen if one.screens > MAX_SCREENS] == []
    assert [one.path for one in studies if not 0 < one.printed_pages <= MAX_PRINTED_PAGES] == []


def test_every_chart_is_a_picture_until_it_is_touched_with_data_and_a_caption(
    seen: list[Seen],
) -> None:
    assert of(seen, "unpictured") == {}
    charts = [(f"{one.path}#{chart['name']}", chart) for one in seen for chart in one.charts]
    assert len(charts) > 3 * len(MEASURED)
    for name, chart in charts:
        assert chart["label"] and chart["data"] and chart["text"], name


def test_pages_are_light(seen: list[Seen], pages: dict[str, Document]) -> None:
    assert [one.path for one in seen if one.first_load_bytes >= MAX_FIRST_LOAD_BYTES] == []
    for path, document in pages.items():
        assert document.bytes < MAX_HTML_BYTES and document.elements < MAX_ELEMENTS, path


def test_no_link_is_broken(site: Path, whole: dict[str, Document]) -> None:
    assert broken_links(site, whole) == []
    page = Document()
    page.feed('<a id="it" href="#it"></a><a href="gone/"></a><a href="#gone"></a>')
    assert broken_links(site, {"index.html": page}) == ["index.html: gone/", "index.html: #gone"]
