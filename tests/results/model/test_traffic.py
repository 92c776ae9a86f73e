"""Bytes of rows: requests, sectors, completions, bytes on the link."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import groupby

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.base.errors import FieldError
from analysis.results.model.traffic import (
    LOAD_BYTES,
    Traffic,
    half_lines,
    row_requests,
    row_traffic,
    traffic_of,
)
from analysis.study.access import Access, access_of
from tests.linked import GATHER, MIB, rows
from tests.repository import STUDIES


@given(
    start=st.integers(0, 200),
    length=st.integers(1, 900),
    load_bytes=st.sampled_from([16, 64, 512]),
    alone=st.booleans(),
)
def test_requests_are_the_lines_touched_with_their_whole_sectors(
    start: int, length: int, load_bytes: int, alone: bool
) -> None:
    expected: list[list[int]] = []
    known: set[int] = set()
    for begin in reversed(range(start, start + length, load_bytes)):
        touched = {byte // 32 for byte in range(begin, min(begin + load_bytes, start + length))}
        lines = groupby(sorted(touched - known), key=lambda sector: sector // 4)
        expected += [[*sectors] for _, sectors in lines]
        known = set() if alone else touched
    requests = row_requests(start, length, load_bytes, alone=alone)
    assert [[*request] for request in requests] == expected
    for request in requests:
        of_host_lines = Counter(sector // 2 for sector in request)
        assert half_lines(request) == [*of_host_lines.values()].count(1)


def test_line_shared_by_two_loads_is_requested_twice_unless_both_are_in_flight() -> None:
    one_by_one = rows(656, in_flight_bytes=512)
    assert traffic_of(one_by_one).completions / one_by_one.rows == 6.75
    assert traffic_of(rows(656)).completions / rows(656).rows == 6


def test_rows_average_over_the_starts_they_have() -> None:
    # Packed rows of 48 bytes start at 0, 48, 96, 16, 64, 112, 32, 80 within a line.
    row = row_traffic(48, 48, 0, LOAD_BYTES, 48)
    assert (row.sectors, row.completions) == (2, (1 + 1 + 2 + 1 + 1 + 2 + 1 + 1) / 8)
    assert row_traffic(48, 128, 0, LOAD_BYTES, 48) == Traffic(1, 64)
    assert row_traffic(48, 128, 96, LOAD_BYTES, 48).completions == 2


def test_adjacent_rows_share_sectors_and_host_lines() -> None:
    """656 bytes are 20.5 sectors: of 64 rows without a gap, all but the ends are whole."""
    alone, together = rows(656), rows(656, layout="pages_64")
    assert traffic_of(alone).data_bytes / alone.rows == 672
    assert traffic_of(together).data_bytes / together.rows == 656 + 16 / 64
    assert traffic_of(together).half_lines == traffic_of(alone).half_lines / 64
    assert traffic_of(together).completions == traffic_of(alone).completions
    apart = replace(together, stride_bytes=768)
    assert traffic_of(apart) == traffic_of(replace(alone, stride_bytes=768))


@pytest.mark.parametrize(
    ("access", "payload_share", "counted_share"),
    [
        (rows(656), 656 / (672 + 6 * 20), (672 + 6 * 12) / 656),
        (Access("contiguous", MIB, in_flight_bytes=2048), 128 / 148, 140 / 128),
        (Access("copy_engine", MIB), 256 / 276, 268 / 256),
    ],
)
def test_shares_of_the_wire(access: Access, payload_share: float, counted_share: float) -> None:
    traffic = traffic_of(access)
    assert access.payload_bytes / traffic.wire_bytes == pytest.approx(payload_share)
    assert traffic.counted_bytes / access.payload_bytes == pytest.approx(counted_share)


def test_one_thread_per_row_merges_no_requests() -> None:
    access = Access("thread_rows", 656 * 1000, 656, 656, 0, 16, 512)
    assert traffic_of(access).completions == 41 * 1000
    assert traffic_of(replace(access, access_bytes=1)).data_bytes == 656 * 1000 * 32


def test_every_link_of_every_study_can_be_worked_out() -> None:
    cells = [(v, case) for s in STUDIES.values() for v in s.variants if v.link for case in v.cases]
    for variant, case in cells:
        access = access_of(variant, case)
        assert access is not None and traffic_of(access).data_bytes >= access.payload_bytes


@pytest.mark.parametrize(
    ("keys", "named"),
    [
        ({}, "row_bytes"),
        ({"row_bytes": "no_such_key"}, "no_such_key"),
        ({"row_bytes": 16, "warps": -1}, "warps"),
        ({"row_bytes": 16, "layout": "pages_0"}, "layout: expected scattered"),
        ({"row_bytes": 16, "layout": "contiguous"}, "stretch_rows above 0"),
        ({"row_bytes": 16, "order": "falling"}, "order: expected random"),
    ],
)
def test_faults_of_a_link_are_named(keys: dict[str, str | int], named: str) -> None:
    variant = replace(GATHER.variants[0], link={"reads": "warp_rows", **keys})
    with pytest.raises(FieldError, match=named):
        access_of(variant, variant.cases[0])
