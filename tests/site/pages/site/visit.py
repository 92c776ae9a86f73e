"""A page of the site in a browser, and its errors."""

from typing import Any, Final

from playwright.sync_api import Browser, Locator

STUDY: Final = "h2d_gather"
TIMEOUT_MS: Final = 60_000
HARMLESS: Final = 'Dropping "fit-y" because spec has discrete height'
"""What Vega-Lite says of a chart that is as wide as its column and as high as its rows."""
OPEN_SECTIONS: Final = """() => document.querySelectorAll("details.hp-section")
  .forEach(section => { section.open = true; })"""
DRAWN: Final = """([figure, before]) => {
  const drawn = figure.querySelector(".hp-live svg");
  const { width, height } = drawn?.getBoundingClientRect() ?? {};
  return width > 100 && height > 50 && drawn.innerHTML !== before;
}"""


class Visit:
    """A page and its `faults`: errors, warnings, and requests to other hosts."""

    def __init__(self, browser: Browser, address: str, width: int = 1280):
        self.address, self.faults = address, list[str]()
        size: Any = {"width": width, "height": 900}
        # Without a colour between two palettes.
        self.page = browser.new_page(viewport=size, color_scheme="light", reduced_motion="reduce")
        self.page.set_default_timeout(TIMEOUT_MS)
        self.page.on("pageerror", lambda error: self.faults.append(str(error)))
        self.page.on("console", self._said)
        self.page.on("requestfailed", self._failed)
        self.page.on("request", self._asked)

    def _said(self, message: Any) -> None:
        if message.type in ("error", "warning") and HARMLESS not in message.text:
            self.faults.append(message.text)

    def _failed(self, request: Any) -> None:
        if request.failure != "net::ERR_ABORTED":  # last requests of a page that is left
            self.faults.append(f"{request.url}: {request.failure}")

    def _asked(self, request: Any) -> None:
        if not request.url.startswith((self.address, "data:", "blob:")):
            self.faults.append(f"a request to {request.url}")

    def go(self, path: str) -> None:
        self.page.goto(self.address + path)

    def open(self, path: str, charts: str = ".hp-chart") -> None:
        self.go(path)
        self.settle(charts)

    def settle(self, charts: str = ".hp-chart") -> None:
        """Open all sections, and touch the charts until each is drawn."""
        self.page.evaluate(OPEN_SECTIONS)
        for figure in self.page.locator(charts).all():
            figure.scroll_into_view_if_needed()
            figure.dispatch_event("pointerenter")
            self.wait_for_another(figure, "")

    def wait_for_another(self, figure: Locator, drawn: str) -> None:
        """Wait until the figure is drawn, and differs from `drawn`."""
        self.page.wait_for_function(DRAWN, arg=[figure.element_handle(), drawn])
