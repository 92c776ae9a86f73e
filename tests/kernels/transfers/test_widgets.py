"""The form of What should I call?, in a browser and without scripts."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from analysis.site.charts.widgets import study_widgets
from analysis.site.facts.study_facts import StudyFacts
from analysis.study import Case, Variant
from tests.kernels.widget_page import opened, require_refused, write_page
from tests.repository import STUDIES
from tests.roots import make_inputs
from tests.synthetic import RUN, add_run, files_of, provenance_of, samples_in, write_machine

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

TRANSFERS = STUDIES["transfers"]
SOME = [
    TRANSFERS.variant(f"pinned_{name}") for name in ("loop", "packed", "list_loop", "list_gather")
]
"""Few variants, whose results are soon made."""


def plausible(variant: Variant, case: Case, metric: str) -> float:
    """A time per piece, or once for a kernel, and the rate of the link."""
    size, count = int(case.values.get("size", 1)), int(case.values.get("count", 1))
    calls = 1 if "gather" in variant.name or "2d" in variant.name else count
    return 5e-6 + 1e-6 * calls + size * count / 50e9


def measured_on(
    root: Path, machine: str, variants: Sequence[Variant] = TRANSFERS.variants, run: str = RUN
) -> None:
    """Write results of a made-up machine in the default grid; the full one has twelve times as
    many cells."""
    write_machine(
        root / "results",
        machine,
        TRANSFERS,
        variants=variants,
        run=run,
        rounds=4,
        seconds=plausible,
        grid="default",
    )


@pytest.fixture(scope="module")
def folder(facts: StudyFacts, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files of the widget, from results of a machine that is made up."""
    site = tmp_path_factory.mktemp("widgets")
    write_page(facts, "adviser", site)
    return site


def test_one_sample_changes_the_advice_and_the_table_of_the_explorer(tmp_path: Path) -> None:
    measured_on(tmp_path, "box", SOME)

    def published() -> tuple[object, str]:
        facts = StudyFacts(make_inputs(tmp_path, {"transfers": TRANSFERS}), TRANSFERS)
        widget = study_widgets(facts)["adviser"]
        assert widget is not None
        return widget.data, (tmp_path / "build" / "summary.csv").read_text()

    before = published()
    variant = TRANSFERS.variant("pinned_loop")
    (path,) = files_of(tmp_path / "results", "box", TRANSFERS.name)
    samples = samples_in(path, variant.name)
    case = TRANSFERS.headline
    values = {
        i: one.value or 0
        for i, one in enumerate(samples)
        if (one.metric, one.case) == ("host_time", case)
    }
    place = min(values, key=values.__getitem__)  # so that the median changes, too
    samples[place] = replace(samples[place], value=100 * values[place])
    provenance = provenance_of(TRANSFERS, variant)
    add_run(tmp_path / "results", "box", TRANSFERS.name, variant.name, samples, provenance)
    after = published()
    assert all(one != other for one, other in zip(before, after, strict=True))


def test_tables_have_every_answer(folder: Path) -> None:
    data = json.loads((folder / "adviser.widget.json").read_text())
    assert [field["name"] for field in data["fields"] if "kind" in field] == data["axes"]
    choices = {field["name"]: field["options"] for field in data["fields"] if "options" in field}
    for table in data["tables"]:
        assert table["cells"] and table["answers"]
        assert all(value in choices[name] for name, value in table["where"].items())
        for answer in table["answers"]:
            assert all(len(row) == len(data["columns"]) + 1 for row in answer["rows"])


def test_the_table_has_the_call_of_each_cell(folder: Path) -> None:
    rows = json.loads((folder / "adviser.table.json").read_text())
    assert rows and len({(*row,) for row in rows}) == 1, "all have the same columns"
    assert not any("pinned_" in cell for row in rows for cell in row.values())


@pytest.fixture
def page(browser: Browser, folder: Path) -> Iterator[Page]:
    with opened(browser, folder, "adviser.size=4+KiB&adviser.count=256") as page:
        yield page


@pytest.mark.heavy
def test_the_choice_is_in_the_address(page: Page) -> None:
    assert page.input_value("input[name=size]") == "4 KiB"
    assert page.input_value("input[name=count]") == "256"
    assert page.inner_text(".hp-answer p").startswith("Use our copy kernel")
    assert page.locator(".hp-table tbody tr").count() > 2
    assert "pinned_" not in page.inner_text(".hp-answer"), "names of this project"
    page.select_option("select[name=stream]", "busy")
    page.fill("input[name=count]", "16")
    address = page.evaluate("location.search")
    assert "adviser.count=16" in address and "adviser.stream=busy" in address
    page.select_option("select[name=stream]", "idle")
    page.fill("input[name=count]", "1,024")  # as this site writes it
    assert page.inner_text(".hp-answer p").startswith("Use ")


@pytest.mark.heavy
def test_other_questions_are_refused(page: Page) -> None:
    page.fill("input[name=count]", "5120")
    assert page.inner_text(".hp-answer p").startswith("Use ")
    page.fill("input[name=count]", "5121")
    first, second = page.locator(".hp-answer p").all_inner_texts()
    assert first == "Not measured."
    assert re.match("The nearest measured cell: 4.096 × 4 KiB in .* by our copy kernel", second)
    assert page.locator(".hp-table").count() == 0
    page.fill("input[name=size]", "1001")
    assert "all measured sizes are multiples of 16 B" in page.inner_text(".hp-answer")
    page.select_option("select[name=memory]", "registered")
    assert page.inner_text(".hp-answer") == "Not measured with these choices."


@pytest.mark.heavy
def test_bad_input_names_the_field_and_what_is_expected(page: Page) -> None:
    expected = "size of a piece: expected bytes such as 4096, 24 KiB or 40 GiB, got “4 KB”."
    require_refused(page, "size", "4 KB", expected)
    page.fill("input[name=size]", "4 KiB")
    expected = "pieces of a request: expected a whole number of at least 1, got “{}”."
    for text in ("0", "1 KiB", ""):
        require_refused(page, "count", text, expected.format(text))
