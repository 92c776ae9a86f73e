"""Figures that studies compute for their charts and tables, from a few made-up times."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from analysis.site.facts.inputs import load_inputs
from analysis.site.facts.study_facts import StudyFacts
from analysis.study import case_id
from analysis.toolchain.modules import load_python
from kernels.hot_set.cells import link, times_by_machine
from kernels.hot_set.charts import policy_table
from kernels.hot_set.page_tables import (
    GRAPH_STEPS,
    added_times,
    blocks,
    hit_rates,
)
from kernels.pinning import page_tables as PINNING
from kernels.pool_gather.charts import packing_cores, run_rows
from kernels.transfers.charts import copies_text
from tests.repository import STUDIES
from tests.synthetic import measured_row

HOT_SET = STUDIES["hot_set"]
PEERS = load_python(STUDIES["peers"], "charts")
GIVEN, BLOCK = "ceiling_misses_alone", "v3_block_per_request"
TWO_KERNELS = "v2_two_kernels"
Rows = list[tuple[str, str, str, float]]


def usual_case(requests: int, misses: int, **more: int | str) -> str:
    values: dict[str, int | str] = {"requests": requests, "topk": 2048, "slots": 4096}
    return case_id({**values, "misses": misses, "pool_mib": 40960, "layout": "scattered", **more})


def facts_of(folder: Path, rows: Rows) -> StudyFacts:
    """A machine called box that has measured (variant, case, metric, value) of hot_set."""
    measured = pd.DataFrame([measured_row(HOT_SET, *row) for row in rows])
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
    table = policy_table(facts).set_index("policy")
    assert table["beyond"].to_dict() == pytest.approx({"LRU": 1, "CLOCK": 1.2, "random": 1.4})
    assert table["label"]["LRU"] == "100 %, 1.250 µs" and table["short"]["LRU"] == "164 kB"


def test_steps_of_a_graph_are_held_against_their_misses_alone(tmp_path: Path) -> None:
    graph = usual_case(1, 2, layers=60)
    times = {GIVEN: 240e-6, **dict(zip(GRAPH_STEPS, (1200e-6, 780e-6, 312e-6), strict=True))}
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

LONG = {
    "seconds": 0.01,
    "alone_s": 0.0002,
    "in_chunks": 1.0,
    "in_one": 0.9,
    "end_gap": 0.00005,
    "touching": 0.0,
    "queued": 0.0,
}


@pytest.mark.parametrize(
    ("change", "cause"),
    [
        ({}, PINNING.ONE_CHUNK),
        ({"seconds": 0.006}, PINNING.SHORT),
        ({"in_one": 0.4}, PINNING.MORE_CHUNKS),
        ({"in_one": 0.4, "end_gap": 0.001}, PINNING.UNKNOWN),
        ({"in_one": 0.1, "in_chunks": 0.5}, PINNING.UNKNOWN),
        ({"queued": 0.6}, PINNING.NO_CORE),
        ({"queued": math.nan}, PINNING.ONE_CHUNK),
        ({"alone_s": 0.009}, PINNING.SLOW_ALONE),
        ({"in_one": 0.0, "in_chunks": 0.1, "touching": 0.9}, PINNING.TOUCHING),
    ],
)
def test_the_cause_is_the_first_that_explains_the_call(
    change: dict[str, float], cause: str
) -> None:
    assert PINNING.cause(dict(LONG | change)) == cause


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
    assert [run_rows(layout) for layout in ("scattered", "pages_16")] == [1, 16]
    assert math.isnan(run_rows("contiguous"))


@pytest.mark.parametrize(
    ("copies", "label"),
    [(0.0, "at once"), (0.2, "1"), (2.0, "2"), (2.1, "3"), (1200.5, "1,201"), (math.nan, "never")],
)
def test_copies_to_break_even_are_whole(copies: float, label: str) -> None:
    assert copies_text(copies) == label


def test_a_tier_lies_between_the_host_and_the_peer() -> None:
    rates = {"pulled": 400.0, "from_host": 50.0}
    points = [
        {"machine": "box", "case": "a", "variant": name, "rate": rate}
        for name, rate in rates.items()
    ]
    found = PEERS.tier_rates(pd.DataFrame(points)).pivot(index="share", columns="way")["rate"]
    assert found.loc[0].tolist() == [50, 50] and found.loc[1].tolist() == [400, 400]
    expected = {PEERS.IN_TURN: 800 / 9, PEERS.AT_ONCE: 100}
    assert found.loc[0.5].to_dict() == pytest.approx(expected)
