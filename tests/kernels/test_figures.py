"""Figures that studies compute for their charts and tables, from a few made-up times."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import pandas as pd
import pytest

from analysis.base.quantities import whole
from analysis.results.tables.rows import runs_text
from analysis.site.facts.inputs import load_inputs
from analysis.site.facts.study_facts import StudyFacts
from analysis.study import case_id
from analysis.toolchain.modules import load_python
from kernels.hot_set.choosing import link, times_by_machine
from kernels.hot_set.graph_table import STEPS, added_times
from kernels.hot_set.page_tables import blocks, hit_rates, policies
from kernels.hot_set.policy_chart import policy_table
from kernels.hot_set.share_table import SHARING, WITHIN, repeated_shares, shares
from kernels.pinning import longest_calls as LONGEST
from kernels.pinning import page_tables as WAITS
from kernels.pool_gather.charts import packing_cores, run_rows
from kernels.transfers.chart_prices import _after
from tests.repository import STUDIES
from tests.synthetic import measured_row

PEERS, HOT_SET = STUDIES["peers"], STUDIES["hot_set"]
NVLINK, TIER = (load_python(PEERS, name) for name in ("nvlink", "tier"))
GIVEN, BLOCK = "ceiling_misses_alone", "v3_block_per_request"
TWO_KERNELS = "v2_two_kernels"
Rows = list[tuple[str, str, str, float]]


def usual_case(requests: int, misses: int, **more: int | str) -> str:
    values: dict[str, int | str] = {"requests": requests, "topk": 2048, "slots": 4096}
    return case_id({**values, "misses": misses, "pool_mib": 40960, "layout": "scattered", **more})


def facts_of(folder: Path, rows: Rows, by_run: Sequence[str] = ()) -> StudyFacts:
    """A machine called box that has measured (variant, case, metric, value) of hot_set, the figures
    of the runs as in `by_run`."""
    measured = pd.DataFrame([measured_row(HOT_SET, *row) for row in rows])
    if by_run:
        measured["by_run"] = by_run
    nothing = load_inputs(folder, folder, {HOT_SET.name: HOT_SET})
    return StudyFacts(nothing.with_tables(summary=measured), HOT_SET)


def timed(times: Mapping[tuple[str, int, int], float]) -> Rows:
    """Host times in the usual cases, by variant, requests and misses."""
    return [
        (variant, usual_case(requests, misses), "host_time", seconds)
        for (variant, requests, misses), seconds in times.items()
    ]


def last(table: Any) -> list[object]:
    """The only row of a table, without its machine."""
    (row,) = table.rows
    return list(row[1:])


@pytest.mark.parametrize(
    ("all_rows", "expected"), [(15e-6, "slower"), (60e-6, "faster"), (20e-6, "undecided")]
)
def test_a_hot_set_is_faster_only_if_the_intervals_are_apart(
    all_rows: float, expected: str, tmp_path: Path
) -> None:
    times = {(BLOCK, 1, 410): 20e-6, (GIVEN, 1, 2048): all_rows, (GIVEN, 1, 410): 1e-6}
    seconds = f"{all_rows * 1e6:.2f} µs"
    found = last(hit_rates(facts_of(tmp_path, timed(times))))
    assert found == ["40 GiB", "1", "80.0 %", seconds, f"20.00 µs, {expected}"]


def test_blocks_are_compared_with_scattered_rows_of_the_same_variant(tmp_path: Path) -> None:
    rows = [
        (BLOCK, usual_case(1, 2048), "host_time", 100e-6),
        (BLOCK, usual_case(1, 2048, layout="pages_64"), "host_time", 50e-6),
        (BLOCK, usual_case(1, 2048, pool_mib=188, layout="pages_64"), "host_time", 40e-6),
        (GIVEN, usual_case(1, 2048, layout="pages_64"), "host_time", 40e-6),
    ]
    assert last(blocks(facts_of(tmp_path, rows)))[-2:] == ["50.00 µs", "2.00×"]


def test_the_time_of_a_policy_follows_from_its_bytes(tmp_path: Path) -> None:
    fetched = {"lru": 164e3, "clock": 180.4e3, "random": 196.8e3, "belady": 82e3}
    times = {(BLOCK, 1, 410): 20e-6, (BLOCK, 1, 2048): 20e-6 + 1638 * 10e-9}
    case = "topk=2048,slots=4096,trace=kept_0.9"
    simulated = [(f"policy_{policy}", case, "fetched", size) for policy, size in fetched.items()]
    facts = facts_of(tmp_path, [*simulated, *timed(times)])
    assert last(policies(facts))[2:] == ["82.0 kB", "2.00×", "2.20×", "2.40×", "1.250 µs"]
    beyond = policy_table(facts).set_index("policy")["beyond"].to_dict()
    assert beyond == pytest.approx({"LRU": 1, "CLOCK": 1.2, "random": 1.4})


def test_a_chosen_share_is_compared_with_the_best_given_one(tmp_path: Path) -> None:
    chosen, other = usual_case(1, 2048), usual_case(1, 410)
    times = {chosen: 42e-6, f"{chosen},share_32nds=0": 50e-6, f"{chosen},share_32nds=8": 40e-6}
    rows = [(SHARING, case, "host_time", each) for case, each in (times | {other: 9e-6}).items()]
    found = last(shares(facts_of(tmp_path, rows)))
    assert found == ["1", whole(2048), "40 GiB", "8/32", "40.00 µs", "42.00 µs", "1.050×"]
    (claim,) = (one for one in STUDIES["hot_set"].claims if one.id == "model_chooses_the_share")
    assert getattr(claim.tests[0], "slower", None) == pytest.approx(1 + WITHIN)


def runs_of_shares(folder: Path, by_share: Mapping[int | None, Sequence[float]]) -> StudyFacts:
    """A machine that has measured one case in several runs, by given share."""
    case = usual_case(1, 2048)
    names = {s: case if s is None else f"{case},share_32nds={s}" for s in by_share}
    rows = [(SHARING, names[s], "host_time", median(runs)) for s, runs in by_share.items()]
    return facts_of(folder, rows, by_run=[runs_text(runs) for runs in by_share.values()])


def test_a_control_repeats_the_best_share_of_the_other_runs(tmp_path: Path) -> None:
    # The best share of run 1 is 0, that of the others 8, so the control fails in one run of three.
    by_share = {None: (40e-6, 42e-6, 60e-6), 0: (38e-6, 50e-6, 50e-6), 8: (41e-6, 40e-6, 40e-6)}
    found = last(repeated_shares(runs_of_shares(tmp_path, by_share)))
    assert found == ["3", "33 %", "1.053×", "67 %", "1.000×"]
    assert not repeated_shares(runs_of_shares(tmp_path, {None: (4e-5,), 8: (4e-5,)})).rows


def test_steps_of_a_graph_are_held_against_their_misses_alone(tmp_path: Path) -> None:
    graph = usual_case(1, 2, layers=60)
    times = {GIVEN: 240e-6, **dict(zip(STEPS, (1200e-6, 780e-6, 312e-6), strict=True))}
    rows = [(name, graph, "gpu_time", seconds) for name, seconds in times.items()]
    rows += [(GIVEN, usual_case(1, 410, layers=60), "gpu_time", 1e-3)]  # no step to compare
    found = last(added_times(facts_of(tmp_path, rows)))
    assert found == ["2", "40 GiB", "4.000 µs", "16.00 µs", "9.000 µs", "1.200 µs", "1.30×"]


def test_without_a_copy_engine_the_misses_alone_show_the_rate_of_the_link(tmp_path: Path) -> None:
    times = {(GIVEN, 1, 2048): 40e-6, (GIVEN, 10, 20480): 280e-6, (BLOCK, 10, 20480): 100e-6}
    facts = facts_of(tmp_path, timed(times))
    assert link(facts) == {"box": pytest.approx(20480 * 656 / 280e-6)}
    point = 10, 40960 * 2**20, 20480
    assert times_by_machine(facts)["box"][point] == {BLOCK: pytest.approx(280e-6)}


# pinning

LONG = LONGEST.LongestCall(
    seconds=0.01,
    alone_s=0.0002,
    chunk_s=0.009,
    in_chunks=1.0,
    in_one=0.9,
    end_gap_s=0.00005,
    touching=0.0,
    queued=0.0,
)


@pytest.mark.parametrize(
    ("change", "cause"),
    [
        ({}, LONGEST.ONE_CHUNK),
        ({"seconds": 0.006}, LONGEST.SHORT),
        ({"in_one": 0.4}, LONGEST.MORE_CHUNKS),
        ({"in_one": 0.4, "end_gap_s": 0.001}, LONGEST.UNKNOWN),
        ({"in_one": 0.1, "in_chunks": 0.5}, LONGEST.UNKNOWN),
        ({"queued": 0.6}, LONGEST.NO_CORE),
        ({"queued": None}, LONGEST.ONE_CHUNK),
        ({"alone_s": 0.009}, LONGEST.SLOW_ALONE),
        ({"in_one": 0.0, "in_chunks": 0.1, "touching": 0.9}, LONGEST.TOUCHING),
    ],
)
def test_the_cause_is_the_first_that_explains_the_call(
    change: dict[str, float], cause: str
) -> None:
    assert replace(LONG, **change).cause == cause


@pytest.mark.parametrize(
    ("longest_s", "chunk_s", "cause"),
    [
        (0.006, 0.008, ""),
        (0.007, 0.0065, WAITS.ONE_CHUNK),
        (0.02, 0.0065, WAITS.ONE_CHUNK),
        (0.007, 0.004, WAITS.TWO_CHUNKS),
        (0.01, 0.004, WAITS.LONGER),
    ],
)
def test_the_cause_is_the_fewest_chunks_that_explain_the_wait(
    longest_s: float, chunk_s: float, cause: str
) -> None:
    assert WAITS.Wait(longest_s, chunk_s).cause == cause


# pool_gather, transfers, peers


@pytest.mark.parametrize(
    ("variant", "cores", "packing"),
    [
        ("packed_by_cpu", 16, 14),
        ("packed_by_cpu", 2, 1),
        ("packed_by_8", 16, 8),
        ("packed_by_8", 4, 3),
    ],
)
def test_seven_of_eight_cores_pack_or_as_many_as_the_variant_allows(
    variant: str, cores: int, packing: int
) -> None:
    pool = STUDIES["pool_gather"]
    assert packing_cores(pool.variant(variant), cores) == packing
    assert math.isnan(packing_cores(pool.variant(variant), None))
    assert [run_rows(layout) for layout in ("scattered", "pages_16", "contiguous")] == [1, 16, None]


@pytest.mark.parametrize(
    ("copies", "label"),
    [(0.0, "at once"), (0.2, "1"), (2.0, "2"), (2.1, "3"), (1200.5, "1,201"), (math.nan, "never")],
)
def test_copies_to_break_even_are_whole(copies: float, label: str) -> None:
    assert _after(copies) == label


def test_the_model_of_nvlink_is_found_again() -> None:
    true = NVLINK.NvLink(400e9, 16.0, 4e-6)
    sizes = [(size, rows) for size in (16, 128, 656, 4096) for rows in (512, 8192, 131072)]
    work = np.array([NVLINK.work_of(*one) for one in sizes])
    found = NVLINK.fit(work, true.seconds(work))
    assert found.rate == pytest.approx(true.rate, rel=0.03)
    assert found.header_bytes == pytest.approx(true.header_bytes, abs=3)
    assert found.start_up == pytest.approx(true.start_up, rel=0.03)
    assert NVLINK.fit(work[:3], true.seconds(work[:3])) is None


def test_a_tier_lies_between_the_host_and_the_peer() -> None:
    rates = {"pulled": 400.0, "from_host": 50.0}
    points = [
        {"machine": "box", "case": "a", "variant": name, "rate": rate}
        for name, rate in rates.items()
    ]
    rows = TIER.tier(pd.DataFrame(points)).set_index(["way", "share"])["rate"]
    assert [rows[way, 0] for way in (TIER.AFTER, TIER.AT_ONCE)] == [50, 50]
    assert [rows[way, 1] for way in (TIER.AFTER, TIER.AT_ONCE)] == [400, 400]
    assert rows[TIER.AFTER, 0.5] == pytest.approx(800 / 9)
    assert rows[TIER.AT_ONCE, 0.5] == 100
