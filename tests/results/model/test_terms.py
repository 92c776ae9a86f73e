"""The terms of the model: the binding limit and its size."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from analysis.results.model.terms import TERMS, WORK, term_seconds, work_of
from analysis.study.access import Access
from tests.linked import MIB, SMS, TRUE, rows

TURNS = WORK.index("turns")


@pytest.mark.parametrize(
    ("access", "gigabytes_per_second"),
    [
        (Access("contiguous", 172 * 10**6, in_flight_bytes=2048), 51.0),
        (Access("copy_engine", 172 * 10**6), 54.8),
        (rows(640), 51.0),
        (rows(656), 48.5),
    ],
)
def test_link_term_gives_the_ceilings_that_were_measured(
    access: Access, gigabytes_per_second: float
) -> None:
    seconds = term_seconds(np.array([work_of(access, SMS)]), TRUE.values())[0, 0]
    assert access.payload_bytes / seconds / 1e9 == pytest.approx(gigabytes_per_second, rel=0.003)


def test_several_sets_of_parameters_equal_single_evaluations() -> None:
    work = np.array([work_of(rows(512), SMS), work_of(Access("copy_engine", MIB), SMS)])
    sets = np.array([TRUE.values(), replace(TRUE, link_rate=1e9, start_up=1e-3).values()])
    expected = [term_seconds(work, parameters) for parameters in sets]
    np.testing.assert_array_equal(term_seconds(work, sets), expected)


def test_few_warps_are_bound_by_bytes_in_flight() -> None:
    """Little's law: 64 warps of 512 bytes in a turn of 1.9 µs."""
    work = np.array(
        [work_of(rows(512, warps=64, in_flight_bytes=size), SMS) for size in (512, 1024)]
    )
    one, two = term_seconds(work, TRUE.values())[:, TERMS.index("in flight")]
    assert 16 * MIB / one == pytest.approx(64 * 512 / TRUE.latency)
    assert one == pytest.approx(2 * two)
    # At most the resident warps of the chip, none without a row, at least one turn.
    assert work_of(rows(512), SMS)[TURNS] == pytest.approx(32768 / (SMS * 64))
    assert work_of(rows(512, warps=10**6), SMS)[TURNS] == pytest.approx(32768 / (SMS * 64))
    assert work_of(replace(rows(512, warps=64), payload_bytes=512), SMS)[TURNS] == 1


@pytest.mark.parametrize("warps", [57, 64])
def test_few_blocks_are_bound_by_requests_of_an_sm(warps: int) -> None:
    """These warps are 8 blocks on 8 SMs, each with an eighth of the lines."""
    work = np.array([work_of(rows(512, warps=warps, in_flight_bytes=2048), SMS)])
    seconds = term_seconds(work, TRUE.values())[0, TERMS.index("SM request rate")]
    assert seconds == pytest.approx(16 * MIB / 128 / 8 / TRUE.sm_request_rate)


def test_rows_start_later_than_contiguous_bytes_by_the_look_up_of_the_first() -> None:
    """4 KiB, whole lines either way, so that all but the start is the same."""
    start_up = TERMS.index("start-up")
    by_rows = replace(rows(512), payload_bytes=4096)
    in_order = Access("contiguous", 4096, in_flight_bytes=512)
    work = np.array([work_of(by_rows, SMS), work_of(in_order, SMS)])
    indexed, contiguous = term_seconds(work, TRUE.values())
    assert indexed[:start_up] == pytest.approx(contiguous[:start_up])
    assert indexed[start_up] == pytest.approx(4.6e-6)
    assert contiguous[start_up] == pytest.approx(4e-6)
