"""Questions that the adviser refuses: far from all cells, or a list in a large pool."""

from __future__ import annotations

from dataclasses import replace

import pytest

from analysis import ROOT
from kernels.transfers.adviser import METRIC, Adviser, Job
from kernels.transfers.answers import answers, left_out, nearest_cell, pool_refusal, refusal
from kernels.transfers.measured import advisers_in
from kernels.transfers.pools import Gather, Pools, read_pools
from tests.kernels.transfers.machines import COUNTS, SIZES, WAYS, adviser, gather, grid, jobs, loop
from tests.repository import STUDIES

GIB = 2**30
MAX_SIZE, MAX_COUNT = max(SIZES), max(COUNTS)
GATHER = Gather("box", "both_on_request", "Both", 656, 2048, 40 * GIB, 56.8e-6)
POOLS = Pools({"box": 0.5 * GIB}, [GATHER])
ROWS = Job(656, 2048)


@pytest.mark.parametrize(
    ("size", "count", "is_near"),
    [
        (512, 16, True),
        (410, 16, True),
        (409, 16, False),
        (512, 13, True),
        (512, 12, False),
        (MAX_SIZE * 5 // 4, 4096, True),
        (MAX_SIZE * 5 // 4 + 1, 4096, False),
        (512, MAX_COUNT * 5 // 4, True),
        (512, MAX_COUNT * 5 // 4 + 1, False),
        (MAX_SIZE, MAX_COUNT * 5 // 4, True),
        (MAX_SIZE + 512, MAX_COUNT * 5 // 4, False),
    ],
)
def test_an_answer_is_at_most_a_quarter_beyond_the_cells(
    size: int, count: int, is_near: bool
) -> None:
    known, job = adviser(grid()), Job(size, count, device="packed")
    assert len(answers(known, job)) == (len(WAYS) if is_near else 0)
    assert left_out(known, job) == ([] if is_near else list(WAYS))


def beside(loop_factor: float) -> Adviser:
    """A way that was measured with pieces of 4 KiB, and one with smaller ones, too."""
    cells = [(size, count) for size in (4096, 16_384) for count in (16, 256)]
    kernel = adviser(cells, noise=0.0, ways={"pinned_kernel": gather})
    small = [*cells, (512, 16), (512, 256)]
    copies = adviser(small, 0.0, {"pinned_loop": lambda s, n: loop_factor * gather(s, n)})
    return replace(kernel, ways=(*kernel.ways, *copies.ways))


def test_a_way_without_an_answer_is_left_out() -> None:
    known, job = beside(loop_factor=0.9), Job(512, 256)
    assert [one.variant for one in answers(known, job)] == ["pinned_loop"]
    assert left_out(known, job) == ["pinned_kernel"]


def test_a_faster_way_without_an_answer_leaves_the_others_without_one() -> None:
    known = beside(loop_factor=3.0)
    assert answers(known, Job(512, 256)) == []
    assert left_out(known, Job(512, 256)) == ["pinned_kernel", "pinned_loop"]
    assert len(answers(known, Job(4096, 256))) == 2


def test_the_nearest_cell_is_of_the_fastest_way() -> None:
    known = adviser(grid(), noise=0.0)
    cell = nearest_cell(known, Job(64, 4000))
    assert cell is not None and (cell.size, cell.count) == (512, 4096)
    assert cell.seconds == pytest.approx(min(way(512, 4096) for way in WAYS.values()), rel=1e-3)
    assert nearest_cell(known, Job(64, 4000, direction="d2h")) is None


def test_a_refusal_names_what_was_asked_and_the_nearest_cell() -> None:
    known = adviser([(512, 16), (512, 256)], noise=0.0, ways={"pinned_loop": loop})
    assert refusal(known, Job(24_576, 16)) == (
        "not measured on box: 16 × 24 KiB. The nearest measured cell: 16 × 512 B in 38.40 µs,"
        " by one cudaMemcpyAsync per piece"
    )


def test_a_list_in_a_pool_beyond_the_reach_is_refused() -> None:
    assert pool_refusal("box", POOLS, ROWS, 40 * GIB) == (
        "not measured on box: lists in a pool of 40 GiB, beyond the 512 MiB that a GPU's"
        " translations cover. The nearest cell of the study pool_gather: 2048 × 656 B from 40 GiB"
        " in 56.80 µs, by both_on_request"
    )
    to_host = pool_refusal("box", POOLS, replace(ROWS, direction="d2h"), 40 * GIB)
    assert to_host.endswith("that a GPU's translations cover"), "gathers say nothing of writes"


@pytest.mark.parametrize(
    ("job", "pool"),
    [
        (ROWS, GIB // 2),
        (replace(ROWS, host="pitched"), 40 * GIB),
        (Job(2**20), 40 * GIB),
        (Job(28_672, 100_000), 28_672 * 100_000 * 5 // 4),
    ],
    ids=["covered", "matrix", "one piece", "filled by its pieces"],
)
def test_other_pools_are_no_reason_to_refuse(job: Job, pool: int) -> None:
    assert pool_refusal("box", POOLS, job, pool) == ""


def test_without_a_known_reach_only_a_pool_that_the_pieces_fill_was_measured() -> None:
    nothing = Pools({}, [])
    assert pool_refusal("box", nothing, ROWS, ROWS.payload_bytes) == ""
    refused = pool_refusal("box", nothing, ROWS, 16 * ROWS.payload_bytes)
    assert refused == "not measured on box: lists in a pool of 20992 KiB"


@pytest.fixture(scope="module")
def committed() -> list[Adviser]:
    return advisers_in(ROOT / "results", STUDIES["transfers"])


@pytest.mark.long
def test_no_committed_answer_exceeds_the_link(committed: list[Adviser]) -> None:
    """The limit is the fastest measured cell of any way."""
    answered = 0
    for known in committed:
        least = min(way.costs[METRIC].byte_s for way in known.ways if METRIC in way.costs)
        assert 1 / 57e9 < least < 1 / 50e9
        for job in (
            *jobs(5, 100),
            Job(2**20, 256),
            Job(2**30),
            Job(2**24, 100),
            Job(131_072, 20_000),
        ):
            for one in answers(known, job, "any"):
                assert one.seconds >= job.payload_bytes * least * (1 - 1e-9)
                answered += 1
    assert answered


@pytest.mark.long
def test_rows_from_the_largest_pool_are_left_to_the_study_that_measured_them(
    committed: list[Adviser],
) -> None:
    pools = read_pools(ROOT / "results", STUDIES["transfers"])
    for known in committed:
        refused = pool_refusal(known.machine, pools, ROWS, 40 * GIB)
        assert "2048 × 656 B from 40 GiB in 5" in refused and refused.endswith("_on_request")
        assert answers(known, ROWS)[0].seconds < 50e-6, "from a small pool"


@pytest.mark.long
def test_committed_ways_of_larger_pieces_are_not_replaced_by_slow_ones(
    committed: list[Adviser],
) -> None:
    for known in committed:
        assert not answers(known, Job(64, 2048))
        cell = nearest_cell(known, Job(64, 2048))
        assert cell is not None and cell.size == 512 and cell.variant.startswith("pinned_list_")
