"""The form of the hot set: its data from made-up cells, and its answer in a browser."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from analysis.site.charts.widgets import study_widgets
from analysis.site.facts.study_facts import StudyFacts
from tests.committed import committed_facts
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


def data_of(facts: StudyFacts) -> dict[str, Any]:
    widget = study_widgets(facts)["choice"]
    assert widget is not None
    data: dict[str, Any] = json.loads(json.dumps(widget.data))
    return data


def entries_of(folder: Path, rows: list[tuple[str, str, str, float]]) -> list[Any]:
    entries: list[Any] = data_of(facts_of(folder, rows))["cells"]
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


def test_without_a_copy_engine_the_misses_alone_show_the_rate_of_the_link(tmp_path: Path) -> None:
    times = {**TIMES, (GIVEN, 1, 2048): 40e-6, (GIVEN, 10, 20480): 280e-6}
    data = data_of(facts_of(tmp_path, timed(times)))
    assert data["link"] == {"box": pytest.approx(20480 * 656 / 280e-6)}
    assert (data["near"], data["row_bytes"]) == (1.25, 656)


@pytest.fixture
def page(browser: Browser, tmp_path: Path) -> Iterator[Page]:
    small = (BLOCK, usual_case(1, 410, pool_mib=SMALL_MIB), "host_time", 7e-6)
    write_page(facts_of(tmp_path, [*timed(TIMES), small]), "choice", tmp_path)
    query = "choice.requests=10&choice.misses=4100&choice.pool=40+GiB"
    with opened(browser, tmp_path, query) as page:
        yield page


@pytest.mark.heavy
def test_the_answer_is_that_of_a_near_cell(page: Page) -> None:
    said = page.inner_text(".hp-answer")
    assert f"One kernel, a block per request: 100.0 µs a layer.\n\nCode: {BLOCK}." in said
    assert "Exactly this case was measured." in page.inner_text(".hp-answer")
    assert page.locator(".hp-table tbody tr").count() == 2  # numbers of misses of ten requests
    page.fill("input[name=requests]", "1")
    page.fill("input[name=misses]", "500")
    said = page.inner_text(".hp-answer")
    assert "gather in a second kernel: 20.00 µs a layer." in said
    assert "The nearest measured case: requests: 1, misses: 410, pool: 40 GiB." in said
    assert "choice.misses=500" in page.evaluate("location.search")
    page.fill("input[name=pool]", "200 MiB")
    assert "One kernel, a block per request: 7.000 µs" in page.inner_text(".hp-answer")


@pytest.mark.heavy
@pytest.mark.parametrize(
    ("requests", "misses", "pool"),
    [
        ("10", "5126", "40 GiB"),
        ("10", "3279", "40 GiB"),
        ("8", "3200", "40 GiB"),
        ("10", "4100", "51 GiB"),
        ("10", "4100", "8 GiB"),
        ("1", "500", "2 GiB"),
    ],
)
def test_a_question_far_from_all_cells_is_refused(
    requests: str, misses: str, pool: str, page: Page
) -> None:
    ask(page, requests, misses, pool)
    first, second, *_ = page.locator(".hp-answer p").all_inner_texts()
    assert first == f"Not measured: requests: {requests}, misses: {misses}, pool: {pool}."
    assert second.startswith("The nearest measured case: requests: ")
    assert page.locator(".hp-target").count() == 0
    ask(page, "10", "5125", "50 GiB")
    assert page.inner_text(".hp-answer").startswith("One kernel, a block per request: 100.0 µs")


def ask(page: Page, requests: str, misses: str, pool: str) -> None:
    for field, text in (("requests", requests), ("misses", misses), ("pool", pool)):
        page.fill(f"input[name={field}]", text)


@pytest.mark.heavy
def test_bad_input_names_the_field_and_what_is_expected(page: Page) -> None:
    expected = "pool on the host: expected bytes with a unit such as 188 MiB or 40 GiB, got “{}”."
    for text in ("40 GB", "200", ""):
        require_refused(page, "pool", text, expected.format(text))
    expected = "pool on the host: expected at least 2.57 MiB, for 4100 rows of 656 B, got “2 MiB”."
    require_refused(page, "pool", "2 MiB", expected)


@pytest.fixture(scope="module")
def committed() -> StudyFacts:
    return committed_facts(STUDY)


@pytest.fixture
def committed_page(browser: Browser, committed: StudyFacts, tmp_path: Path) -> Iterator[Page]:
    write_page(committed, "choice", tmp_path)
    with opened(browser, tmp_path, "") as page:
        yield page


@pytest.mark.heavy
def test_impossible_answers_of_the_committed_results_are_refused(committed_page: Page) -> None:
    """Each once had the time of a far cell as its answer."""
    page = committed_page
    ask(page, "1", "1000000000", "1 TiB")
    assert page.inner_text(".hp-answer").startswith("Not measured: requests: 1, misses: 1000000000")
    ask(page, "1", "1000000000", "40 GiB")
    assert "pool on the host: expected at least 611 GiB" in page.inner_text(".hp-answer")
    ask(page, "16", "32768", "40 GiB")
    assert "Not measured: requests: 16, misses: 32768, pool: 40 GiB." in page.inner_text(
        ".hp-answer"
    )
    ask(page, "50", "100", "40 GiB")
    assert page.inner_text(".hp-answer").startswith("Not measured: requests: 50, misses: 100")
    # The time of 41,000 misses is near, but the link cannot move as many rows in it.
    ask(page, "100", "51000", "188 MiB")
    said = page.inner_text(".hp-answer")
    assert re.match(
        r"Not measured: requests: 100, misses: 51000, pool: 188 MiB\. In the time of the nearest"
        r" case, these rows need 5[67]\.\d GB/s, and the link carries at most 5[45]\.\d GB/s\.",
        said,
    )
    assert "The nearest measured case: requests: 100, misses: 41000, pool: 188 MiB." in said


@pytest.mark.heavy
def test_no_committed_cell_exceeds_the_link(committed: StudyFacts) -> None:
    data = data_of(committed)
    assert set(data["link"]) == {one["machine"] for one in data["cells"]}
    for one in data["cells"]:
        assert one["misses"] * data["row_bytes"] / one["seconds"] <= data["link"][one["machine"]]
