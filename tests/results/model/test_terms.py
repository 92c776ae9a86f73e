"""The terms of the model: the binding limit and its size."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from analysis.results.model.terms import TERMS, WORK, predicted_seconds, term_seconds, work_of
from analysis.study.access import Access
from tests.linked import MIB, SMS, TRUE, rows


def terms(*accesses: Access) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    return term_seconds(np.array([work_of(access, SMS) for access in accesses]), TRUE.values())


@pytest.mark.parametrize(
    ("access", "gigabytes_per_second"),
    [
        (Access("contiguous", 172 * 10**6, in_flight_bytes=2048), 51.0),
        (Access("copy_engine", 172 * 10**6), 54.8),
        (rows(656), 48.5),
    ],
)
def test_link_term_gives_the_ceilings_that_were_measured(
    access: Access, gigabytes_per_second: float
) -> None:
    rate = access.payload_bytes / terms(access)[0, 0]
    assert rate / 1e9 == pytest.approx(gigabytes_per_second, rel=0.003)


def test_a_time_is_the_start_and_the_largest_limit_for_each_set_of_parameters() -> None:
    work = np.array([work_of(rows(512), SMS), work_of(Access("copy_engine", MIB), SMS)])
    sets = np.array([TRUE.values(), replace(TRUE, link_rate=1e9, start_up=1e-3).values()])
    for parameters, terms, times in zip(
        sets, term_seconds(work, sets), predicted_seconds(work, sets), strict=True
    ):
        np.testing.assert_array_equal(term_seconds(work, parameters), terms)
        assert [*times] == pytest.approx([max(limits) + start for *limits, start in terms])


def test_few_warps_are_bound_by_bytes_in_flight() -> None:
    """Little's law: 64 warps of 512 bytes in a turn of 1.9 µs."""
    few = (rows(512, warps=64, in_flight_bytes=size) for size in (512, 1024))
    one, two = terms(*few)[:, TERMS.index("in flight")]
    assert 16 * MIB / one == pytest.approx(64 * 512 / TRUE.latency)
    assert one == pytest.approx(2 * two)
    # At most the resident warps of the chip, none without a row, at least one turn.
    turns = WORK.index("turns")
    assert work_of(rows(512), SMS)[turns] == pytest.approx(32768 / (SMS * 64))
    assert work_of(rows(512, warps=10**6), SMS)[turns] == pytest.approx(32768 / (SMS * 64))
    assert work_of(replace(rows(512, warps=64), payload_bytes=512), SMS)[turns] == 1


@pytest.mark.parametrize("warps", [57, 64])
def test_few_blocks_are_bound_by_requests_of_an_sm(warps: int) -> None:
    """These warps are 8 blocks on 8 SMs, each with an eighth of the lines."""
    found = terms(rows(512, warps=warps, in_flight_bytes=2048))[0, TERMS.index("SM request rate")]
    assert found == pytest.approx(16 * MIB / 128 / 8 / TRUE.sm_request_rate)


def test_rows_start_later_than_contiguous_bytes_by_the_look_up_of_the_first() -> None:
    """4 KiB, whole lines either way, so that all but the start is the same."""
    by_rows = replace(rows(512), payload_bytes=4096)
    indexed, contiguous = terms(by_rows, Access("contiguous", 4096, in_flight_bytes=512))
    assert indexed[:-1] == pytest.approx(contiguous[:-1])
    assert (indexed[-1], contiguous[-1]) == (pytest.approx(4.6e-6), pytest.approx(4e-6))
