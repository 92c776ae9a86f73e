"""The drawing of layouts counts walks as a GPU that holds the last translations makes them."""

from __future__ import annotations

from analysis.toolchain.modules import load_python
from tests.repository import STUDIES

STUDY = STUDIES["pool_gather"]
drawings = load_python(STUDY, "drawings")


def test_a_walk_is_a_translation_that_is_not_among_the_last() -> None:
    held = drawings.HELD
    assert drawings.walks([0.1, 0.9, 1.0, 0.5]) == 2
    assert drawings.walks([*range(held), 0]) == held
    assert drawings.walks([*range(held + 1), 0]) == held + 2


def test_layouts_differ_in_their_walks_as_the_page_says() -> None:
    slot = STUDY.constants["slot_bytes"]
    launches = drawings.draw_launches(drawings.ENTRIES * drawings.ENTRY_BYTES // slot, slot)
    assert {len(places) for places in launches.values()} == {drawings.ROWS}
    scattered, in_order, pages, contiguous = map(drawings.walks, launches.values())
    assert scattered > in_order == len({int(place) for place in launches["scattered"]})
    assert in_order > pages and contiguous <= drawings.STRETCH + 1
