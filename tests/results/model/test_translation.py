"""Translation: entries per layout, page walks, and evictions of page tables."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from analysis.results.model.terms import (
    TERMS,
    TRANSLATION,
    predicted_seconds,
    term_seconds,
    work_of,
)
from analysis.results.model.translation import (
    ENTRY_BYTES,
    LAUNCHES_BEFORE,
    REGION_BYTES,
    walks_of,
)
from analysis.study.access import Access
from tests.linked import SMS, TRUE, rows

GIB = 2**30
KNOWN = replace(
    TRUE,
    held_entries=8192,
    walk=14e-9,
    held_regions=512,
    region_walk=10e-9,
    region_wait=100e-9,
    table_miss=14e-9,
    row_cache=48 * 2**20,
)


def gather(pool_bytes: int, row_bytes: int = 656, count: int = 2**18, **more: Any) -> Access:
    """`count` rows from a pool."""
    return replace(rows(row_bytes, pool_bytes=pool_bytes, **more), payload_bytes=count * row_bytes)


def seconds(access: Access) -> float:
    work = np.array([work_of(access, SMS)])
    return float(term_seconds(work, KNOWN.values())[0, TERMS.index(TRANSLATION)])


def test_pool_within_the_tlb_reach_needs_no_walk() -> None:
    assert seconds(gather(8192 * ENTRY_BYTES)) == 0
    assert seconds(gather(16 * GIB)) > 0


def test_without_a_pool_translation_is_unknown() -> None:
    work = np.array([work_of(rows(656), SMS)])
    assert term_seconds(work, TRUE.values())[0, TERMS.index(TRANSLATION)] == 0
    with_pool = np.array([work_of(gather(GIB), SMS)])
    assert np.isnan(predicted_seconds(with_pool, TRUE.values())).all()


def test_runs_of_rows_share_a_walk() -> None:
    touches = [walks_of(gather(GIB, layout=f"pages_{run}")).touches for run in (1, 2, 64)]
    assert touches[0] == pytest.approx(2**18 * (1 + 640 / ENTRY_BYTES))
    assert touches[1] == pytest.approx(touches[0] / 2, rel=0.02)
    # 64 rows of 656 bytes lie in 1.64 stretches of 64 KiB on average.
    assert touches[2] == pytest.approx(2**18 / 64 * (1 + (64 * 656 - 16) / ENTRY_BYTES))


def test_rows_of_one_stretch_touch_the_entries_of_that_stretch() -> None:
    close = gather(16 * GIB, layout="contiguous", request_rows=2048, stretch_rows=32768)
    of_a_stretch = 32768 * 656 / ENTRY_BYTES
    assert walks_of(close).touches / 128 == pytest.approx(of_a_stretch, rel=0.01)
    assert seconds(close) < seconds(gather(16 * GIB)) / 4


def test_rows_that_are_repeated_hide_translation_while_all_of_them_are_held() -> None:
    again = gather(40 * GIB, count=2048, layout="repeated")
    fresh = seconds(replace(again, layout="scattered"))
    assert fresh > 50e-6
    assert seconds(again) < fresh / 5
    many = gather(40 * GIB, layout="repeated")
    assert seconds(many) == pytest.approx(seconds(gather(40 * GIB)), rel=0.05)


def test_few_rows_hit_only_translations_of_previous_launches() -> None:
    """Many rows of 1 GiB find half of their entries held, 2,048 only those of two launches."""
    entries = GIB / ENTRY_BYTES
    many, few = gather(GIB), gather(GIB, count=2048)
    per_row = [seconds(access) / access.rows for access in (many, few)]
    assert per_row[1] > 1.5 * per_row[0]
    half_held = np.exp(-LAUNCHES_BEFORE * walks_of(few).touches / entries)
    walk = KNOWN.walk + 2 * KNOWN.table_miss
    assert seconds(few) < walks_of(few).touches * half_held * walk
    warm = gather(GIB // 4, count=2048)
    assert seconds(warm) < seconds(few) / 2


def test_ascending_order_walks_once_an_entry() -> None:
    drawn, ascending = gather(16 * GIB), gather(16 * GIB, order="ascending")
    assert seconds(ascending) < seconds(drawn) / 1.5
    entries, regions = 2 * GIB / ENTRY_BYTES, 2 * GIB / REGION_BYTES
    dense = gather(2 * GIB, order="ascending")
    assert seconds(dense) == pytest.approx(
        entries * KNOWN.walk + regions * KNOWN.region_wait, rel=0.01
    )


def test_order_gains_nothing_where_rows_are_far_apart_or_few() -> None:
    far = [gather(40 * GIB, count=2048, order=order) for order in ("ascending", "random")]
    assert seconds(far[0]) == seconds(far[1])
    ordered, random = (gather(16 * GIB, order=order) for order in ("ascending", "random"))
    assert seconds(ordered) < seconds(random)
    assert seconds(replace(ordered, order_from_rows=ordered.rows + 1)) == seconds(random)
    assert seconds(replace(ordered, order_from_rows=ordered.rows)) == seconds(ordered)


def test_streaming_rows_leave_the_page_tables_in_the_cache() -> None:
    assert seconds(gather(4 * GIB, streaming=1)) < seconds(gather(4 * GIB)) * 0.9
