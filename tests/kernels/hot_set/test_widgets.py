"""The form of the hot set: its data from made-up cells, and its answer in a browser."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from analysis.site.charts.widgets import study_widgets
from analysis.site.facts.study_facts import StudyFacts
from kernels.hot_set.choosing import link, times_by_machine
from tests.kernels.hot_set.measured import (
    BLOCK,
    GIVEN,
    STUDY,
    TWO_KERNELS,
    facts_of,
    simulated,
    timed,
    usual_case,
)
from tests.kernels.widget_page import opened, write_page

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


def data_of(facts: StudyFacts) -> dict[str, Any]:
    widget = study_widgets(facts)["choice"]
    assert widget is not None
    data: dict[str, Any] = json.loads(json.dumps(widget.data))
    return data


def test_without_results_there_is_no_form(tmp_path: Path) -> None:
    without_times = simulated("kept_0.9", {"lru": 1.0})
    assert study_widgets(facts_of(tmp_path, without_times))["choice"] is None


def test_each_measured_cell_has_its_answer(tmp_path: Path) -> None:
    (table,) = data_of(facts_of(tmp_path, timed(TIMES)))["tables"]
    pool = LARGE_MIB * 2**20
    assert [cell for cell, _ in table["cells"]] == [
        *([1, pool, 410], [10, pool, 4100], [10, pool, 20480])
    ]
    first = table["answers"][0]
    assert first["lines"][0] == f"{title(TWO_KERNELS)}: 20.00 µs a layer."
    assert "It is 1.50× as fast as a block per request." in first["lines"]
    assert [row[-1] for row in first["rows"]] == [
        f"studies/hot_set/#{name}" for name in (TWO_KERNELS, BLOCK)
    ]


def test_a_changed_time_changes_the_answer(tmp_path: Path) -> None:
    slower = {**TIMES, (TWO_KERNELS, 1, 410): 90e-6}
    (table,) = data_of(facts_of(tmp_path, timed(slower)))["tables"]
    assert table["answers"][0]["lines"][0].startswith(title(BLOCK))


def test_without_scripts_the_table_is_text(tmp_path: Path) -> None:
    widget = study_widgets(facts_of(tmp_path, timed(TIMES)))["choice"]
    assert widget is not None
    assert widget.rows[0][4] == f"Look-up on the GPU, gather in a second kernel ({TWO_KERNELS})"


def test_without_a_copy_engine_the_misses_alone_show_the_rate_of_the_link(tmp_path: Path) -> None:
    times = {**TIMES, (GIVEN, 1, 2048): 40e-6, (GIVEN, 10, 20480): 280e-6}
    facts = facts_of(tmp_path, timed({**times, (BLOCK, 10, 20480): 100e-6}))
    assert link(facts) == {"box": pytest.approx(20480 * 656 / 280e-6)}
    point = 10, LARGE_MIB * 2**20, 20480
    assert times_by_machine(facts)["box"][point] == {BLOCK: pytest.approx(280e-6)}


def title(name: str) -> str:
    return STUDY.variant(name).title


@pytest.fixture
def page(browser: Browser, tmp_path: Path) -> Iterator[Page]:
    small = (BLOCK, usual_case(1, 410, pool_mib=SMALL_MIB), "host_time", 7e-6)
    write_page(facts_of(tmp_path, [*timed(TIMES), small]), "choice", tmp_path)
    query = "choice.requests=10&choice.misses=4100&choice.pool=40+GiB"
    with opened(browser, tmp_path, query) as page:
        yield page


@pytest.mark.heavy
def test_the_form_answers_in_and_between_measured_cells(page: Page) -> None:
    said = page.inner_text(".hp-answer")
    assert f"{title(BLOCK)}: 100.0 µs a layer." in said
    assert page.locator(".hp-table tbody tr").count() == 2
    ask(page, "1", "500", "40 GiB")
    assert f"{title(TWO_KERNELS)}: 20.00 µs a layer." in page.inner_text(".hp-answer")
    ask(page, "10", "9000", "40 GiB")
    said = page.inner_text(".hp-answer")
    assert f"{title(BLOCK)}: 100.0 µs to 400.0 µs a layer." in said
    assert "choice.misses=9000" in page.evaluate("location.search")
    ask(page, "1", "410", "2 GiB")
    assert f"{title(BLOCK)}: 7.000 µs to 30.00 µs a layer." in page.inner_text(".hp-answer")


@pytest.mark.heavy
@pytest.mark.parametrize(
    ("requests", "misses", "pool"),
    [
        *(("10", "25601", "40 GiB"), ("10", "3279", "40 GiB"), ("7", "3200", "40 GiB")),
        *(("10", "4100", "51 GiB"), ("10", "4100", "8 GiB")),
    ],
)
def test_a_question_far_from_all_cells_is_refused(
    requests: str, misses: str, pool: str, page: Page
) -> None:
    ask(page, requests, misses, pool)
    first, second = page.locator(".hp-answer p").all_inner_texts()
    assert first == "Not measured."
    assert second.startswith("The nearest measured cell: requests: ")
    ask(page, "10", "5125", "50 GiB")
    assert page.inner_text(".hp-answer").startswith(title(BLOCK))


def ask(page: Page, requests: str, misses: str, pool: str) -> None:
    for field, text in (("requests", requests), ("misses", misses), ("pool", pool)):
        page.fill(f"input[name={field}]", text)
