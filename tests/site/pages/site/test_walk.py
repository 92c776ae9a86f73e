"""Every page of the site in a browser: complete, light and accessible; and its links."""

import gzip
import re
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urljoin, urlsplit

import pytest
from axe_playwright_python.base import AXE_FILE_PATH
from playwright.sync_api import Response

from analysis import ROOT
from tests.site.pages.site.conftest import MEASURED
from tests.site.pages.site.visit import Visit

MAX_HTML_BYTES: Final = 400_000
MAX_FIRST_LOAD_BYTES: Final = 400_000
"""Bytes that a page loads before a reader touches it, packed by gzip."""
MAX_PRINTED_PAGES: Final = 10
"""Pages of A4 of a study, printed as it opens."""
MAX_SCREENS: Final = 6
"""Height of a page before a reader opens a section, in windows of 1280 × 900."""
NARROW: Final = {"width": 390, "height": 900}
VISITED: Final = (
    *("", "data/", "engines/", "explorer/", "hardware/", "ledger/", "machines/", "one_page/"),
    "reference/",
    *(f"studies/{name}/" for name in MEASURED),
)
"""Pages that are visited without --long: the ones that show results, and one of long tables."""
PAGES: Final = [
    pytest.param(path, marks=[] if path in VISITED else pytest.mark.long)
    for file in sorted((ROOT / "docs").rglob("*.md"))
    for path in [f"{file.relative_to(ROOT / 'docs').with_suffix('')}/".replace("index/", "")]
]
UNPICTURED: Final = """() => [...document.querySelectorAll(".hp-chart")]
  .filter(figure => !figure.querySelector(".hp-still img[width][height]"))
  .map(figure => figure.id)"""
UNEXPLAINED: Final = """() => [...document.querySelectorAll(".hp-chart")]
  .filter(figure => !figure.querySelector(".hp-view").getAttribute("aria-label")
    || !figure.querySelector("figcaption").textContent
    || !figure.querySelector(".hp-data a[href$='.json']"))
  .map(figure => figure.id)"""
OPEN_FOLDS: Final = """() => {
  for (const fold of document.querySelectorAll("details.hp-more")) fold.open = true;
  return new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)));
}"""
WIDE_TABLES: Final = """() => [...document.querySelectorAll(".md-content table")]
  .map(table => table.closest(".hp-table, .md-typeset__scrollwrap") ?? table)
  .filter(box => box.scrollWidth > box.clientWidth + 1 && !box.closest(".hp-data"))
  .map(box => box.querySelector("thead").textContent)"""
# Marks of a chart are hidden from assistive technology, which reads the table of words.
AXE: Final = """async rules => {
  const options = {resultTypes: ["violations"], ...rules};
  const found = await axe.run({exclude: [[".hp-view svg"]]}, options);
  return found.violations
    .filter(({impact}) => ["serious", "critical"].includes(impact))
    .map(({id, nodes}) => `${id}: ${nodes.slice(0, 3).map(node => node.html).join(" ")}`);
}"""
# The rule takes most of the time: one of all visible words that look alike is enough.
LIMIT_CONTRAST: Final = """() => {
  const seen = new Set();
  for (const words of document.querySelectorAll("body *")) {
    if (!words.checkVisibility()) continue;
    let looks = "";
    for (let one = words; one; one = one.parentElement) {
      looks += ` ${one.tagName} ${one.className} ${one.style.cssText}`;
    }
    words.toggleAttribute("data-alike", seen.has(looks));
    seen.add(looks);
  }
  axe.configure({rules: [{id: "color-contrast", selector: ":not([data-alike])"}]});
}"""


@pytest.mark.parametrize("path", PAGES)
def test_a_page_is_whole_light_and_accessible(visit: Visit, site: Path, path: str) -> None:
    """In both palettes and widths, with every section open."""
    page, loaded = visit.page, list[Response]()
    page.on("response", lambda response: loaded.append(response))
    visit.go(path)
    page.wait_for_load_state("networkidle")
    assert sum(len(gzip.compress(one.body())) for one in [*loaded]) < MAX_FIRST_LOAD_BYTES
    assert (site / path / "index.html").stat().st_size < MAX_HTML_BYTES
    assert page.evaluate(UNPICTURED) == []  # before printing, which may draw them
    if path.startswith(("studies/", "one_page/")):
        paper = page.pdf(format="A4", prefer_css_page_size=True)
        most = MAX_PRINTED_PAGES if path.startswith("studies/") else 1
        assert 0 < len(re.findall(rb"/Type /Page\b", paper)) <= most
    assert page.evaluate("document.documentElement.scrollHeight / innerHeight") <= MAX_SCREENS
    visit.settle()
    assert page.evaluate(UNEXPLAINED) == []
    # axe would report an overlap with a block without a layout.
    page.add_style_tag(content="* { content-visibility: visible !important; }")
    page.evaluate(Path(AXE_FILE_PATH).read_text())
    page.evaluate(LIMIT_CONTRAST)
    assert page.evaluate(AXE, {}) == []
    page.locator("label[title=Dark]").click()
    page.wait_for_selector("body[data-md-color-scheme=slate]")
    assert page.evaluate(AXE, {"runOnly": ["color-contrast"]}) == []
    page.set_viewport_size(NARROW)  # type: ignore[arg-type]
    page.evaluate(OPEN_FOLDS)
    assert page.evaluate(WIDE_TABLES) == []
    assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0


@dataclass
class Document(HTMLParser):
    """Ids and links of an HTML file, and the addresses of folded documents by the fold's id."""

    text: str
    ids: set[str] = field(default_factory=set)
    links: set[str] = field(default_factory=set)
    folds: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        super().__init__()
        self.feed(self.text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        self.ids.add(given.get("id", ""))
        named = ("href", "src", "data-spec", "data-fragment")
        self.links |= {given[name] for name in named if name in given}
        if "data-fragment" in given and "id" in given:
            self.folds[given["id"]] = given["data-fragment"]


def broken_links(site: Path) -> list[str]:
    """`page: link` for what leads to no file, or to no id of a document. What is folded into a
    document is opened by a link to it. Links to other hosts are not checked."""
    files = {file.relative_to(site).as_posix(): file for file in site.rglob("*.html")}
    whole = {name: Document(file.read_text()) for name, file in files.items()}

    def target(base: str, link: str) -> tuple[str, str]:
        parts = urlsplit(urljoin(f"http://site/{base}", link))
        if parts.netloc != "site":
            return "", ""
        path = unquote(parts.path)[1:]
        return path + "index.html" * path.endswith("/") or "index.html", unquote(parts.fragment)

    def is_alive(path: str, anchor: str) -> bool:
        if not path or path not in whole:
            return not path or (site / path).is_file()
        inner = [
            target(path, address)[0]
            for fold, address in whole[path].folds.items()
            if anchor.startswith(f"{fold}-")
        ]
        return not anchor or any(anchor in whole[one].ids for one in (path, *inner))

    # The page for missing addresses has links from the root of any site.
    return [
        f"{path}: {link}"
        for path, document in whole.items()
        for link in sorted(document.links)
        if path != "404.html" and not is_alive(*target(path, link))
    ]


def test_no_link_is_broken(site: Path, tmp_path: Path) -> None:
    assert broken_links(site) == []
    page = '<a id="it" href="#it"></a><a href="gone/"></a><a href="#gone"></a>'
    (tmp_path / "index.html").write_text(page)
    assert broken_links(tmp_path) == ["index.html: #gone", "index.html: gone/"]
