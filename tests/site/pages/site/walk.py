"""One walk over all pages of a site in a browser: each loaded once, in both palettes and widths."""

from __future__ import annotations

import asyncio
import gzip
import re
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from axe_playwright_python.base import AXE_FILE_PATH
from playwright.async_api import Browser, Page, Response, async_playwright

WIDE_PX, NARROW_PX, HEIGHT_PX = 1280, 390, 900
TABS: Final = 3
"""Number of pages loaded at a time."""
TIMEOUT_MS: Final = 60_000
SCHEMES: Final = {"default": "Dark", "slate": "Light"}
"""Material's palettes, and the label of the switch to the other one."""

_DRAWN: Final = """figure => {
  const drawn = figure.querySelector(".hp-live svg")?.getBoundingClientRect();
  return drawn && drawn.width > 100 && drawn.height > 50;
}"""
OPEN_SECTIONS: Final = """() => document.querySelectorAll("details.hp-section")
  .forEach(section => { section.open = true; })"""
_UNPICTURED: Final = """() => [...document.querySelectorAll(".hp-chart")]
  .filter(figure => !figure.querySelector(".hp-still img[width][height]"))
  .map(figure => figure.id)"""
_WIDE_TABLES: Final = """() => [...document.querySelectorAll(".md-content table")]
  .map(table => table.closest(".hp-table, .md-typeset__scrollwrap") ?? table)
  .filter(box => box.scrollWidth > box.clientWidth + 1 && !box.closest(".hp-data"))
  .map(box => box.querySelector("thead").textContent)"""
_OPEN_FOLDS: Final = """() => document.querySelectorAll("details.hp-more")
  .forEach(fold => { fold.open = true; })"""
_TWO_FRAMES: Final = """() => new Promise(done => {
  requestAnimationFrame(() => requestAnimationFrame(done));
})"""
_CHART: Final = """figure => {
  const view = figure.querySelector(".hp-view");
  return {
    name: figure.id,
    label: view.getAttribute("aria-label"),
    text: figure.querySelector("figcaption").textContent,
    data: figure.querySelector(".hp-data a[href$='.json']")?.href ?? "",
  };
}"""
_MARK_REPEATED: Final = """() => {
  const seen = new Set();
  const look = one => `${one.tagName}.${one.className} ${one.getAttribute("style") ?? ""}`;
  const place = one => one ? `${place(one.parentElement)} ${look(one)}` : "";
  const others = / (?!class|style)[\\w-]+="[^"]*"/g;
  for (const one of document.querySelectorAll("tr, li")) {
    const inner = one.innerHTML.replace(/>[^<]+/g, ">").replace(others, "");
    const looks = place(one) + inner;
    one.toggleAttribute("data-repeated", seen.has(looks));
    seen.add(looks);
  }
}"""
"""Marks rows and items whose tags, classes and styles, and those around them, an earlier one has,
too."""
# Marks of a chart are hidden from assistive technology, which reads the table of words.
_AXE: Final = """async rules => {
  const options = {resultTypes: ["violations"], ...(rules ? {runOnly: rules} : {})};
  const found = await axe.run({exclude: [[".hp-view svg"], ["[data-repeated]"]]}, options);
  return found.violations
    .filter(({impact}) => ["serious", "critical"].includes(impact))
    .map(({id, nodes}) => `${id}: ${nodes.slice(0, 3).map(node => node.html).join(" ")}`);
}"""


HARMLESS = 'Dropping "fit-y" because spec has discrete height'
"""What Vega-Lite says of a chart that is as wide as its column and as high as its rows."""


@dataclass
class Seen:
    """Findings on a page."""

    path: str
    faults: list[str] = field(default_factory=list)  # errors, warnings, foreign requests
    axe: list[str] = field(default_factory=list)
    overflow_px: int = 0
    wide_tables: list[str] = field(default_factory=list)
    """Heads of tables that scroll on the narrow screen."""
    first_load_bytes: int = 0
    screens: float = 0.0
    printed_pages: int = 0
    """Of a study's page."""
    unpictured: list[str] = field(default_factory=list)
    """Charts without a picture before they are touched."""
    charts: list[dict[str, Any]] = field(default_factory=list)


def watch(page: Any, address: str, faults: list[str]) -> None:
    """Add to `faults` what goes wrong on `page`, and what it asks of others than `address`."""

    def said(message: Any) -> None:
        if message.type in ("error", "warning") and HARMLESS not in message.text:
            faults.append(message.text)

    def failed(request: Any) -> None:
        if request.failure != "net::ERR_ABORTED":  # last requests of a page that is left
            faults.append(f"{request.url}: {request.failure}")

    def asked(request: Any) -> None:
        if not request.url.startswith((address, "data:", "blob:")):
            faults.append(f"a request to {request.url}")

    page.on("pageerror", lambda error: faults.append(str(error)))
    page.on("console", said)
    page.on("requestfailed", failed)
    page.on("request", asked)


def walk(address: str, paths: list[str], executable: str | None, flags: list[str]) -> list[Seen]:
    """Visit every one of `paths` of the site at `address`."""
    # The thread of a synchronous Playwright, which other tests use, has an event loop.
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, _walk(address, paths, executable, flags)).result()


async def _walk(
    address: str, paths: list[str], executable: str | None, flags: list[str]
) -> list[Seen]:
    tabs = asyncio.Semaphore(TABS)
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=executable, args=flags)

        async def one(path: str) -> Seen:
            async with tabs:
                return await _visit(browser, address, path)

        return await asyncio.gather(*map(one, paths))


async def _visit(browser: Browser, address: str, path: str) -> Seen:
    seen = Seen(path)
    context = await browser.new_context(
        viewport={"width": WIDE_PX, "height": HEIGHT_PX},
        color_scheme="light",
        reduced_motion="reduce",  # no colour between two palettes
    )
    page = await context.new_page()
    page.set_default_timeout(TIMEOUT_MS)
    watch(page, address, seen.faults)
    loaded: list[Response] = []
    page.on("response", lambda response: loaded.append(response))
    await page.goto(address + path)
    await page.wait_for_load_state("networkidle")
    seen.first_load_bytes = await _packed_bytes(loaded)
    seen.unpictured = await page.evaluate(_UNPICTURED)  # to print may draw the charts
    if path.startswith("studies/"):
        pdf = await page.pdf(format="A4")
        seen.printed_pages = len(re.findall(rb"/Type /Page\b", pdf))
    seen.screens = await page.evaluate("document.documentElement.scrollHeight / innerHeight")
    await page.evaluate(OPEN_SECTIONS)
    for figure in await page.locator(".hp-chart").all():
        await figure.scroll_into_view_if_needed()
        await figure.dispatch_event("pointerenter")
        await page.wait_for_function(_DRAWN, arg=await figure.element_handle())
        seen.charts.append(await figure.evaluate(_CHART))
    # axe would report an overlap with a block without a layout.
    await page.add_style_tag(content="* { content-visibility: visible !important; }")
    await page.evaluate(Path(AXE_FILE_PATH).read_text())
    seen.axe += await page.evaluate(_AXE)
    # A repeated row has the colours of the first one in the dark palette, too.
    await page.evaluate(_MARK_REPEATED)
    await _switch(page, "default")
    seen.axe += [f"dark: {one}" for one in await page.evaluate(_AXE, ["color-contrast"])]
    await page.set_viewport_size({"width": NARROW_PX, "height": HEIGHT_PX})
    overflow = "document.documentElement.scrollWidth - innerWidth"
    seen.overflow_px = await page.evaluate(overflow)
    await page.evaluate(_OPEN_FOLDS)
    await page.evaluate(_TWO_FRAMES)  # tables are arranged
    seen.wide_tables = await page.evaluate(_WIDE_TABLES)
    await _switch(page, "slate")
    seen.overflow_px = max(seen.overflow_px, await page.evaluate(overflow))
    await context.close()
    return seen


async def _packed_bytes(loaded: list[Response]) -> int:
    """Bytes of all bodies, packed by gzip as hosts of pages send them."""
    bodies = [await response.body() for response in [*loaded]]
    return sum(len(gzip.compress(body)) for body in bodies)


async def _switch(page: Page, scheme: str) -> None:
    """Switch from palette `scheme` to the other one."""
    await page.locator(f"label[title={SCHEMES[scheme]}]").click()
    other = next(name for name in SCHEMES if name != scheme)
    await page.wait_for_function(
        "name => document.body.getAttribute('data-md-color-scheme') === name", arg=other
    )
