"""The form of the hot set: its data from made-up cells, and its answer in a browser."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from analysis.site.charts.widgets import study_widgets
from tests.kernels.hot_set.measured import (
    BLOCK,
    TWO_KERNELS,
    facts_of,
    simulated,
    timed,
    usual_case,
)
from tests.kernels.widget_page import opened, require_refused, write_page

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

LARGE_MIB, SMALL_MIB = 40960, 188
TIMES = {
    (TWO_KERNELS, 1, 410): 20e-6,
    (BLOCK, 1, 410): 30e-6,
    (TWO_KERNELS, 10, 4100): 200e-6,
    (BLOCK, 10, 4100): 100e-6,
    (BLOCK, 10, 20480): 400e-6,
}


def entries_of(folder: Path, rows: list[tuple[str, str, str, float]]) -> list[Any]:
    widget = study_widgets(facts_of(folder, rows))["choice"]
    assert widget is not None
    entries: list[Any] = json.loads(json.dumps(widget.data))
    return entries


def test_without_results_there_is_no_form(tmp_path: Path) -> None:
    without_times = simulated("kept_0.9", {"lru": 1.0})
    assert study_widgets(facts_of(tmp_path, without_times))["choice"] is None


def test_each_measured_cell_has_its_choice_and_evidence(tmp_path: Path) -> None:
    graph = usual_case(10, 4100, layers=60)
    entries = entries_of(tmp_path, [*timed(TIMES), (BLOCK, graph, "host_time", 5e-3)])
    found = {(one["requests"], one["misses"]): one for one in entries}
    assert set(found) == {(1, 410), (10, 4100), (10, 20480)}
    few, many = found[1, 410], found[10, 4100]
    assert (few["variant"], few["time"], few["over"]) == (TWO_KERNELS, "20.00 µs", "1.50×")
    assert (many["variant"], many["model"]) == (BLOCK, "6.000 ms")
    assert many["graph"] == f"5.000 ms ({many['title']})" and not few["graph"]
    assert many["pool"] == LARGE_MIB * 2**20
    assert many["samples"].startswith("data/?samples.case=requests%3D10%2C")
    assert many["samples"].endswith(f"-hot_set-{BLOCK}")
    assert "run" in many["basis"]


def test_a_changed_time_changes_the_choice(tmp_path: Path) -> None:
    slower = {**TIMES, (TWO_KERNELS, 1, 410): 90e-6}
    before, after = (entries_of(tmp_path, timed(times)) for times in (TIMES, slower))
    assert before[0]["variant"] == TWO_KERNELS
    assert after[0]["variant"] == BLOCK


def test_without_scripts_the_table_is_text(tmp_path: Path) -> None:
    widget = study_widgets(facts_of(tmp_path, timed(TIMES)))["choice"]
    assert widget is not None
    assert widget.rows[0][4] == f"Look-up on the GPU, gather in a second kernel ({TWO_KERNELS})"


@pytest.fixture
def page(browser: Browser, tmp_path: Path) -> Iterator[Page]:
    small = (BLOCK, usual_case(1, 410, pool_mib=SMALL_MIB), "host_time", 7e-6)
    write_page(facts_of(tmp_path, [*timed(TIMES), small]), "choice", tmp_path)
    query = "choice.requests=10&choice.misses=4100&choice.pool=40+GiB"
    with opened(browser, tmp_path, query) as page:
        yield page


@pytest.mark.heavy
def test_the_answer_is_that_of_the_nearest_cell(page: Page) -> None:
    said = page.inner_text(".hp-answer")
    assert f"One kernel, a block per request: 100.0 µs a layer.\n\nCode: {BLOCK}." in said
    assert "Exactly this case was measured." in page.inner_text(".hp-answer")
    assert page.locator(".hp-table tbody tr").count() == 2  # numbers of misses of ten requests
    page.fill("input[name=requests]", "2")
    page.fill("input[name=misses]", "500")
    said = page.inner_text(".hp-answer")
    assert "gather in a second kernel: 20.00 µs a layer." in said
    assert "The nearest measured case: requests: 1, misses: 410, pool: 40 GiB." in said
    assert "choice.requests=2" in page.evaluate("location.search")
    page.fill("input[name=pool]", "200 MiB")
    assert "One kernel, a block per request: 7.000 µs" in page.inner_text(".hp-answer")


@pytest.mark.heavy
def test_bad_input_names_the_field_and_what_is_expected(page: Page) -> None:
    expected = "pool on the host: expected bytes such as 188 MiB or 40 GiB, got “40 GB”."
    require_refused(page, "pool", "40 GB", expected)
