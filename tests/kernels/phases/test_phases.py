"""The phases of the write-up keep their rules and defects; what the first steps of ours add."""

from __future__ import annotations

import numpy as np
import pytest

from tests.kernels.phases.modules import GIB, MIB, Host, built


def test_phase_0_calls_the_driver_every_time() -> None:
    host = Host(built("p0_driver"))
    for _ in range(3):
        host.free(host.allocate(1000))
    assert host.calls == (3, 3)
    assert host.source.counts()["peak_reserved"] == 1000


def test_phase_1_keeps_exact_sizes_only() -> None:
    host = Host(built("p1_exact_cache"))
    first = host.allocate(1000)
    host.free(first)
    assert host.allocate(513) == first  # both are 1024 B, rounded to 512
    host.free(first)
    assert host.allocate(1025) != first
    assert host.calls == (2, 0)


def test_phase_1_gives_back_what_exceeds_a_gibibyte() -> None:
    host = Host(built("p1_exact_cache"))
    half, other, small = host.allocate(GIB // 2), host.allocate(GIB // 2), host.allocate(512)
    for pointer in (half, other, small):
        host.free(pointer)
    assert host.calls == (3, 1)  # the last did not fit: nothing older made room for it
    assert host.source.counts()["reserved"] == GIB


def test_phase_1_fails_with_a_cache_full_of_other_sizes() -> None:
    host = Host(built("p1_exact_cache"), capacity=MIB)
    host.free(host.allocate(MIB))
    with pytest.raises(host.module.OutOfMemory):
        host.allocate(512)


def test_phase_2_rounds_to_powers_of_two_up_to_16_mib() -> None:
    host = Host(built("p2_size_buckets"))
    sizes = {1: 512, 513: 1024, 9 * MIB: 16 * MIB, 16 * MIB: 16 * MIB, 16 * MIB + 1: 16 * MIB + 512}
    for asked, expected in sizes.items():
        before = host.source.counts()["reserved"]
        host.allocate(asked)
        assert host.source.counts()["reserved"] - before == expected


def test_phase_2_keeps_the_limit_of_phase_1() -> None:
    host = Host(built("p2_size_buckets"))
    held = [host.allocate(GIB // 2) for _ in range(3)]
    for pointer in held:
        host.free(pointer)
    assert host.calls == (3, 1)


def test_phase_3_cuts_segments_from_1_mib_on() -> None:
    host = Host(built("p3_block_pool"))
    host.allocate(MIB - 1)
    assert host.source.counts()["reserved"] == MIB  # a bucket
    pointers = [host.allocate(MIB + 1) for _ in range(3)]
    assert host.source.counts()["reserved"] == GIB + MIB
    assert np.diff(pointers).tolist() == [MIB + 512] * 2
    host.allocate(2 * GIB)
    assert host.source.counts()["reserved"] == 3 * GIB + MIB


def test_phase_3_fits_best_and_merges() -> None:
    host = Host(built("p3_block_pool"))
    gaps = [host.allocate(size * MIB) for size in (5, 1, 3, 1, 4, 1)]
    for pointer in gaps[::2]:
        host.free(pointer)
    assert host.allocate(3 * MIB) == gaps[2]
    host.free(gaps[2])
    host.free(gaps[1])  # joins the 5 before and the 3 behind it
    assert host.allocate(9 * MIB) == gaps[0]


def test_phase_3_never_gives_a_segment_back() -> None:
    host = Host(built("p3_block_pool"), capacity=GIB)
    host.free(host.allocate(2 * MIB))
    host.trim()
    assert host.source.counts()["reserved"] == GIB
    with pytest.raises(host.module.OutOfMemory):
        host.allocate(512)


@pytest.mark.parametrize(
    "name", ["p0_driver", "p1_exact_cache", "p2_size_buckets", "p3_block_pool"]
)
def test_early_phases_refuse_a_limit(name: str) -> None:
    expected = rf"^limit: expected an allocator that can be bounded, got {name}$"
    with pytest.raises(ValueError, match=expected):
        Host(built(name)).set_limit(0, MIB)


@pytest.mark.parametrize("name", ["p1_exact_cache", "p2_size_buckets", "p3_block_pool"])
def test_early_phases_do_not_know_streams(name: str) -> None:
    host = Host(built(name))
    pointer = host.allocate(4096, stream=1)
    host.source.enqueue(0, 2)
    host.record_stream(pointer, 2)
    host.free(pointer, stream=1)
    assert host.allocate(4096, stream=3) == pointer  # though stream 2 may still write there


@pytest.mark.parametrize("name", ["p4_tlsf", "p4_exact_front", "p4_final", "p5_dropin"])
def test_ours_grows_in_pytorchs_segments(name: str) -> None:
    for asked, segment in {
        1: 2 * MIB,
        MIB: 2 * MIB,
        MIB + 1: 20 * MIB,
        10 * MIB - 512: 20 * MIB,
        10 * MIB: 10 * MIB,
        10 * MIB + 1: 12 * MIB,
    }.items():
        host = Host(built(name))
        host.allocate(asked)
        assert host.source.counts()["reserved"] == segment


def test_the_front_keeps_the_last_run_of_one_size() -> None:
    host = Host(built("p4_exact_front"))
    sizes = (4096, 4096, 8192, 8192)
    for pointer in [host.allocate(size) for size in sizes]:
        host.free(pointer)
    assert [b["size"] for b in host.snapshot() if b["state"] == "cached"] == [8192, 8192]
    for pointer in [host.allocate(4096) for _ in range(40)]:
        host.free(pointer)
    assert [b["size"] for b in host.snapshot() if b["state"] == "cached"] == [4096] * 32


def test_the_last_fit_of_a_bin_is_found() -> None:
    """Ten blocks of the request's bin are too small, and one behind them in the list is not."""
    host = Host(built("p4_tlsf"))
    granule, small, fit = 512, 200, 203  # of granules; one bin holds 200 to 203
    pointers = {}
    for i, size in enumerate([*[small] * 10, fit]):
        pointers[i] = host.allocate(size * granule)
        host.allocate(granule)  # keeps them apart
    host.allocate((4096 - 10 * (small + 1) - (fit + 1)) * granule)  # the rest of the segment
    for i in reversed(pointers):
        host.free(pointers[i])
    assert host.allocate(fit * granule) == pointers[10]
    assert host.calls == (1, 0)


def test_a_fit_in_another_branch_of_a_bin_is_found() -> None:
    """Of three sizes of one bin, the request's branch has the smallest, which does not fit."""
    host = Host(built("p5_dropin"))
    granule, small, asked, fit = 512, 200, 202, 204  # of granules; one bin holds 200 to 207
    pointers = []
    for size in (small, fit):
        pointers.append(host.allocate(size * granule))
        host.allocate(granule)  # keeps them apart
    for size in (2000, 4096 - 2000 - small - fit - 2):  # the rest of the segment
        host.allocate(size * granule)
    for pointer in pointers:
        host.free(pointer)
    assert host.allocate(asked * granule) == pointers[1]
    assert host.calls == (1, 0)


@pytest.mark.parametrize("name", ["p4_final", "p5_dropin"])
def test_a_remainder_for_small_requests_stays_with_its_large_block(name: str) -> None:
    host = Host(built(name))
    host.allocate(20 * MIB - MIB, stream=1)
    host.allocate(20 * MIB - MIB - 512, stream=2)
    sizes = sorted(block["size"] for block in host.snapshot())
    assert sizes == [MIB + 512, 19 * MIB - 512, 20 * MIB]
