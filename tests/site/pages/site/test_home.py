"""The home page in a browser: the thesis, its picture and three doors on one screen."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

SCREEN = {"width": 1280, "height": 900}
DOORS = 3
MAX_FINDINGS = 5


def test_thesis_picture_and_doors_fit_on_one_screen(browser: Browser, address: str) -> None:
    page = browser.new_page(viewport=SCREEN)  # type: ignore[arg-type]
    page.goto(address)
    expect(page.locator("h1")).to_be_visible()
    picture = page.locator(".hp-hero .hp-still img")
    expect(picture).to_be_visible()
    doors = page.locator(".hp-doors a")
    assert doors.count() == DOORS
    for part in (page.locator("h1"), page.locator(".hp-lede"), picture, doors.last):
        box = part.bounding_box()
        assert box is not None and box["y"] + box["height"] < SCREEN["height"]
    findings = page.locator(".hp-findings > li")
    assert findings.count() <= MAX_FINDINGS
    page.close()


@pytest.mark.long  # no link of the site is broken, as the walk over all pages finds
def test_every_door_opens(browser: Browser, address: str) -> None:
    page = browser.new_page()
    for index in range(DOORS):
        page.goto(address)
        page.locator(".hp-doors a").nth(index).click()
        expect(page.locator("h1")).not_to_have_text("404 - Not found")
        assert page.url != address
    page.close()


def test_the_picture_needs_no_script(browser: Browser, address: str) -> None:
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(address)
    expect(page.locator(".hp-hero .hp-still img")).to_be_visible()
    expect(page.locator(".hp-lede")).to_contain_text("GB/s")
    context.close()


def test_home_loads_no_chart_library(browser: Browser, address: str) -> None:
    page = browser.new_page()
    requested: list[str] = []
    page.on("request", lambda request: requested.append(Path(request.url).name))
    page.goto(address)
    page.wait_for_load_state("networkidle")
    assert "vega.js" not in requested and len(requested) > 3
    page.close()
