"""Figures that studies compute for their charts and tables, from a few made-up times."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from analysis.site.facts.inputs import load_inputs
from analysis.site.facts.study_facts import StudyFacts
from analysis.study import case_id
from analysis.toolchain.modules import load_python
from kernels.hot_set import cells, page_tables
from kernels.hot_set.charts import policy_table
from kernels.pool_gather.charts import packing_cores
from tests.repository import STUDIES
from tests.synthetic import measured_row

HOT_SET, POOL = STUDIES["hot_set"], STUDIES["pool_gather"]
PEERS = load_python(STUDIES["peers"], "charts")
GIVEN, BLOCK = "ceiling_misses_alone", "v3_block_per_request"
Rows = Mapping[tuple[str, str, str], float]


def usual_case(misses: int, **more: int | str) -> str:
    values: dict[str, int | str] = {"requests": 1, "topk": 2048, "slots": 4096, "misses": misses}
    return case_id({**values, "pool_mib": 40960, "layout": "scattered", **more})


def times(seconds: Mapping[tuple[str, int], float]) -> Rows:
    """Host times in the usual cases, by variant and misses."""
    return {(name, usual_case(n), "host_time"): time for (name, n), time in seconds.items()}


def facts_of(folder: Path, rows: Rows) -> StudyFacts:
    """A machine called box that has measured these values of (variant, case, metric) of hot_set."""
    measured = pd.DataFrame([measured_row(HOT_SET, *at, value) for at, value in rows.items()])
    nothing = load_inputs(folder, folder, {HOT_SET.name: HOT_SET})
    return StudyFacts(nothing.with_tables(summary=measured), HOT_SET)


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
    rows = times({(BLOCK, 410): 20e-6, (GIVEN, 2048): all_rows, (GIVEN, 410): 1e-6})
    found = last(page_tables.hit_rates(facts_of(tmp_path, rows)))
    seconds = f"{all_rows * 1e6:.2f} µs"
    assert found == ["40 GiB", "1", "80.0 %", seconds, f"20.00 µs, {expected}"]


def test_blocks_are_compared_with_scattered_rows_of_the_same_variant(tmp_path: Path) -> None:
    rows = times({(BLOCK, 2048): 100e-6, (GIVEN, 2048): 90e-6})
    together = (BLOCK, usual_case(2048, layout="pages_64"), "host_time")
    found = last(page_tables.blocks(facts_of(tmp_path, {**rows, together: 50e-6})))
    assert found[-2:] == ["50.00 µs", "2.00×"]


def test_the_time_of_a_policy_follows_from_its_bytes(tmp_path: Path) -> None:
    fetched = {"lru": 164e3, "clock": 180.4e3, "random": 196.8e3, "belady": 82e3}
    case = "topk=2048,slots=4096,trace=kept_0.9"
    rows = {(f"policy_{policy}", case, "fetched"): size for policy, size in fetched.items()}
    steps = times({(BLOCK, 410): 20e-6, (BLOCK, 2048): 20e-6 + 1638 * 10e-9})
    table = policy_table(facts_of(tmp_path, {**rows, **steps})).set_index("policy")
    assert table["beyond"].to_dict() == pytest.approx({"LRU": 1, "CLOCK": 1.2, "random": 1.4})
    assert table["label"]["LRU"] == "100 %, 1.250 µs" and table["short"]["LRU"] == "164 kB"


def test_steps_of_a_graph_are_held_against_their_misses_alone(tmp_path: Path) -> None:
    graph, names = usual_case(2, layers=60), (GIVEN, *page_tables.GRAPH_STEPS)
    seconds = dict(zip(names, (240e-6, 1200e-6, 780e-6, 312e-6), strict=True))
    rows = {(name, graph, "gpu_time"): time for name, time in seconds.items()}
    found = last(page_tables.added_times(facts_of(tmp_path, rows)))
    assert found == ["2", "40 GiB", "4.000 µs", "16.00 µs", "9.000 µs", "1.200 µs", "1.30×"]


def test_no_answer_is_faster_than_the_misses_alone(tmp_path: Path) -> None:
    facts = facts_of(tmp_path, times({(GIVEN, 2048): 40e-6, (BLOCK, 2048): 10e-6}))
    assert cells.link(facts) == {"box": pytest.approx(2048 * 656 / 40e-6)}
    point = 1, 40960 * 2**20, 2048
    assert cells.times_by_machine(facts)["box"][point] == {BLOCK: pytest.approx(40e-6)}


@pytest.mark.parametrize(
    ("variant", "cores", "packing"),
    [("packed_by_cpu", 16, 14), ("packed_by_cpu", 2, 1), ("packed_by_8", 16, 8)],
)
def test_seven_of_eight_cores_pack_or_as_many_as_the_variant_allows(
    variant: str, cores: int, packing: int
) -> None:
    assert packing_cores(POOL.variant(variant), cores) == packing


def test_a_tier_lies_between_the_host_and_the_peer() -> None:
    points = [
        {"machine": "box", "case": "a", "variant": name, "rate": rate}
        for name, rate in {"pulled": 400.0, "from_host": 50.0}.items()
    ]
    rates = PEERS.tier_rates(pd.DataFrame(points)).set_index(["way", "share"])["rate"]
    ways = PEERS.IN_TURN, PEERS.AT_ONCE
    for share, expected in {0: [50, 50], 0.5: [800 / 9, 100], 1: [400, 400]}.items():
        assert [rates[way, share] for way in ways] == pytest.approx(expected)
