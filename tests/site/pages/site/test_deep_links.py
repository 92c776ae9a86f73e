"""Links from a mark of a chart to the samples of its case, and on to the explorer."""

from __future__ import annotations

import json
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

from playwright.sync_api import expect

from tests.site.pages.site.visit import Visit

STUDY = "pool_gather"
CASE = "rows=2048,pool_mib=188,layout=scattered"


def test_every_mark_with_a_link_names_its_case(site: Path) -> None:
    seen = 0
    for file in sorted((site / "charts").glob("*/[a-z]*.json")):
        document = json.loads(file.read_text())
        for row in document.get("data", {}).get("values", []) if "$schema" in document else []:
            if row.get("href"):
                (asked,) = parse_qs(urlsplit(row["href"]).query)["samples.case"]
                assert asked == row.get("case", asked), file
                seen += 1
    assert seen > 100


def test_a_click_on_a_mark_shows_the_samples_of_its_case(visit: Visit, address: str) -> None:
    page = visit.page
    page.goto(f"{address}studies/method/?agreement.machine=box#chart-agreement")
    marks = page.locator("#chart-agreement .hp-live [aria-roledescription=point]")
    expect(marks.first).to_be_visible()
    mark = marks.last
    label = mark.get_attribute("aria-label")
    mark.click()
    page.wait_for_url(f"{address}data/?samples.case=*")
    asked = parse_qs(urlsplit(page.url).query)
    (case,) = asked["samples.case"]
    assert label is not None and f"case: {case};" in f"{label};"
    for key in ("case", "metric"):
        chosen = page.locator(f".hp-samples select[name={key}]")
        expect(chosen).to_have_value(asked[f"samples.{key}"][0])


def test_samples_lead_to_the_explorer_with_their_case(visit: Visit, address: str) -> None:
    page = visit.page
    page.goto(
        f"{address}data/?samples.case={CASE}&samples.metric=host_time#box-{STUDY}-loads_first"
    )
    page.get_by_role("link", name="Other cases in the explorer").click()
    expect(page.locator(".hp-explorer .hp-live svg")).to_be_visible()
    expect(page.locator(".hp-explorer .hp-note")).to_be_empty()
    expect(page.locator("select[name=study]")).to_have_value("Gather from a large pool")
    axis = page.locator("select[name=over]").input_value()
    asked = dict(pair.split("=") for pair in CASE.split(","))
    expect(page.locator(f"select[name={axis}]")).to_have_count(0)
    for key in asked.keys() - {axis}:
        expect(page.locator(f"select[name={key}]")).to_have_value(asked[key])
    page.select_option("select[name=colour]", "variant")
    expect(page.locator(".hp-explorer .hp-text").first).to_contain_text("Shown:")
