"""The patterns of fragmentation: what they hold, and what they do to allocators."""

from __future__ import annotations

import numpy as np
import pytest

from allocator.fragmentation.patterns import ALONE, PATTERNS, HostAhead
from allocator.lib.patterns import ALLOCATE, FREE, MIB
from tests.kernels.phases.modules import Host, built

GPU_BYTES = 139 * 2**30


def replayed(name: str, pattern: str) -> tuple[Host, int]:
    """A variant that has replayed a pattern ten times, and the most bytes that were live."""
    host, tapes = Host(built(name), GPU_BYTES), PATTERNS[pattern]()
    runner = host.module.Runner(host.allocator, tapes.tapes, list(range(tapes.streams)))
    most = runner.check(False)
    runner.run(9)
    return host, most


@pytest.mark.parametrize("name", PATTERNS)
def test_a_replay_is_short_the_same_every_time_and_fits_a_gpu_well(name: str) -> None:
    first, again = PATTERNS[name](), PATTERNS[name]()
    (tape,), (repeated,) = first.tapes, again.tapes
    assert np.array_equal(tape, repeated)
    assert len(tape) <= 25_000
    assert tape[:, 3].max() < first.streams
    for allocator in ("p4_final", "p5_dropin"):
        host, most = replayed(allocator, name)
        assert 100 * MIB < most < 16 * 2**30
        assert host.statistics()["reserved"] < GPU_BYTES // 4


@pytest.mark.parametrize("name", ["growing_batch", "concatenated_cache", "recomputed_lengths"])
def test_sizes_hardly_ever_come_back(name: str) -> None:
    (tape,) = PATTERNS[name]().tapes
    sizes = tape[tape[:, 0] == ALLOCATE, 2]
    live: set[int] = set()
    steps, before = 0, -1
    for size in sizes.tolist():
        steps += size != before
        live.add(size)
        before = size
    assert len(live) > 40
    assert steps >= len(live)


def test_what_grows_fits_into_nothing_that_was_freed() -> None:
    host, most = replayed("p5_dropin", "growing_batch")
    assert host.statistics()["reserved"] > 4 * most


def test_all_that_is_free_in_one_bin_is_nearly_large_enough() -> None:
    """Each request of the larger size takes a block of that size: no larger one is free."""
    host, most = replayed("p4_final", "one_bin")
    assert host.statistics()["reserved"] == most


def test_gathered_parameters_are_of_one_stream_and_used_by_another() -> None:
    (tape,) = PATTERNS["gathered_shards"]().tapes
    owners = {int(stream) for kind, _, _, stream in tape.tolist() if kind == ALLOCATE}
    assert owners == {0, 1}
    freed = tape[tape[:, 0] == FREE]
    assert len(freed) * 2 + np.count_nonzero(tape[:, 0] > FREE) == len(tape)


def test_no_part_of_a_long_run_is_like_another() -> None:
    pattern = ALONE["long_run"]()
    (tape,) = pattern.tapes
    sizes = tape[tape[:, 0] == ALLOCATE, 2][2_000:].reshape(-1, 6_000)
    medians = np.median(sizes, axis=1)
    assert len(tape) == 1_000_000
    assert len(np.unique(sizes)) > sizes.size // 2
    assert medians.max() > 20 * medians.min()


def test_a_replay_begins_with_an_idle_gpu_where_the_host_runs_ahead() -> None:
    ahead = {name for name, build in PATTERNS.items() if isinstance(build(), HostAhead)}
    assert ahead == {"checkpoint_copy", "host_ahead"}
