"""The home page in a browser: the thesis, its picture and three doors on one screen."""

from __future__ import annotations

from pathlib import Path

from playwright.sync_api import Browser, expect

from tests.repository import STUDIES

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


def test_home_needs_no_script_and_loads_no_chart_library(browser: Browser, address: str) -> None:
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(address)
    expect(page.locator(".hp-hero .hp-still img")).to_be_visible()
    expect(page.locator(".hp-lede")).to_contain_text("GB/s")
    footer = page.locator("footer")
    expect(footer).to_contain_text("MIT licence")
    for write_up in (study.write_up for study in STUDIES.values() if study.write_up):
        expect(footer).to_contain_text(write_up.title)
    context.close()
    page = browser.new_page()
    requested: list[str] = []
    page.on("request", lambda request: requested.append(Path(request.url).name))
    page.goto(address)
    page.wait_for_load_state("networkidle")
    assert "vega.js" not in requested and len(requested) > 3
    page.close()
