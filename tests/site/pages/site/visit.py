"""A page of the site in a browser, and its errors."""

from __future__ import annotations

from playwright.sync_api import Browser, Locator

from tests.site.pages.site.walk import OPEN_SECTIONS, TIMEOUT_MS, watch

STUDY = "h2d_gather"


class Visit:
    """A page and its errors."""

    def __init__(self, browser: Browser, address: str, width: int = 1280):
        self.address = address
        self.page = browser.new_page(viewport={"width": width, "height": 800})
        self.faults: list[str] = []
        watch(self.page, address, self.faults)

    def go(self, path: str) -> None:
        self.page.goto(self.address + path)

    def open(self, path: str, charts: str = ".hp-chart") -> None:
        self.go(path)
        self.settle(charts)

    def settle(self, charts: str = ".hp-chart") -> None:
        """Open all sections, touch the charts, and wait until each has an svg of some size."""
        self.page.evaluate(OPEN_SECTIONS)
        for figure in self.page.locator(charts).all():
            figure.scroll_into_view_if_needed()
            figure.dispatch_event("pointerenter")
            self.page.wait_for_function(
                "figure => {"
                " const drawn = figure.querySelector('.hp-live svg')?.getBoundingClientRect();"
                " return drawn && drawn.width > 100 && drawn.height > 50; }",
                arg=figure.element_handle(),
                timeout=TIMEOUT_MS,
            )

    def wait_for_another(self, figure: Locator, drawn: str) -> None:
        """Wait until the figure is drawn again."""
        self.page.wait_for_function(
            "([figure, drawn]) => {"
            " const svg = figure.querySelector('.hp-live svg');"
            " return svg && svg.innerHTML !== drawn; }",
            arg=[figure.element_handle(), drawn],
            timeout=TIMEOUT_MS,
        )
