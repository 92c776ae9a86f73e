"""Figures that studies compute for their charts and tables, from a few made-up times."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import pandas as pd
import pytest

from analysis.results.tables.rows import runs_text
from analysis.site.facts.inputs import load_inputs
from analysis.site.facts.study_facts import StudyFacts
from analysis.study import case_id
from analysis.toolchain.modules import load_python
from kernels.hot_set import graph_table, page_tables, policy_chart, share_table
from kernels.pinning import longest_calls as LONGEST
from kernels.pinning import page_tables as WAITS
from tests.repository import STUDIES
from tests.synthetic import measured_row

HOT_SET = STUDIES["hot_set"]
NVLINK, TIER = (load_python(STUDIES["peers"], name) for name in ("nvlink", "tier"))
GIVEN, BLOCK, SHARED = "ceiling_misses_alone", "v3_block_per_request", share_table.SHARING
Rows = Mapping[tuple[str, str, str], float]


def usual_case(misses: int, **more: int | str) -> str:
    values: dict[str, int | str] = {"requests": 1, "topk": 2048, "slots": 4096, "misses": misses}
    return case_id({**values, "pool_mib": 40960, "layout": "scattered", **more})


def times(seconds: Mapping[tuple[str, int], float]) -> Rows:
    """Host times in the usual cases, by variant and misses."""
    return {(name, usual_case(n), "host_time"): time for (name, n), time in seconds.items()}


def facts_of(folder: Path, rows: Rows, by_run: Sequence[str] = ()) -> StudyFacts:
    """A machine called box that has measured these values of (variant, case, metric) of hot_set,
    the figures of the runs as in `by_run`."""
    measured = pd.DataFrame([measured_row(HOT_SET, *at, value) for at, value in rows.items()])
    if by_run:
        measured["by_run"] = by_run
    nothing = load_inputs(folder, folder, {HOT_SET.name: HOT_SET})
    return StudyFacts(nothing.with_tables(summary=measured), HOT_SET)


def last(table: Any) -> list[object]:
    """The only row of a table, without its machine."""
    (row,) = table.rows
    return list(row[1:])


@pytest.mark.parametrize(
    ("all_rows", "expected"),
    [
        (15e-6, "at no measured hit rate, up to 99.9 %"),
        (60e-6, "above 50.0 %"),
        (120e-6, "at every measured hit rate, down to 0.0 % (One kernel, a block per request)"),
    ],
)
def test_a_hot_set_pays_from_the_hit_rate_at_which_it_takes_less(
    all_rows: float, expected: str, tmp_path: Path
) -> None:
    # 20 µs without misses, and 40 µs for each 1,024 of them.
    steps = {(BLOCK, misses): 20e-6 + misses / 1024 * 40e-6 for misses in (2, 410, 2048)}
    rows = times({**steps, (GIVEN, 2048): all_rows, (GIVEN, 410): 1e-6})
    assert last(page_tables.hit_rates(facts_of(tmp_path, rows)))[-1] == expected


def test_the_time_of_a_policy_follows_from_its_bytes(tmp_path: Path) -> None:
    fetched = {"lru": 164e3, "clock": 180.4e3, "random": 196.8e3, "belady": 82e3}
    case = "topk=2048,slots=4096,trace=kept_0.9"
    rows = {(f"policy_{policy}", case, "fetched"): size for policy, size in fetched.items()}
    rows |= times({(BLOCK, 410): 20e-6, (BLOCK, 2048): 20e-6 + 1638 * 10e-9})
    facts = facts_of(tmp_path, rows)
    shown = ["82.0 kB", "2.00×", "2.20×", "2.40×", "1.250 µs"]
    assert last(page_tables.policies(facts))[2:] == shown
    beyond = policy_chart.policy_table(facts).set_index("policy")["beyond"].to_dict()
    assert beyond == pytest.approx({"LRU": 1, "CLOCK": 1.2, "random": 1.4})


def test_a_chosen_share_is_compared_with_the_best_given_one(tmp_path: Path) -> None:
    case = usual_case(2048)
    seconds = {case: 42e-6, f"{case},share_32nds=0": 50e-6, f"{case},share_32nds=8": 40e-6}
    rows = {(SHARED, case, "host_time"): time for case, time in seconds.items()}
    found = last(share_table.shares(facts_of(tmp_path, rows)))
    assert found[2:] == ["40 GiB", "8/32", "40.00 µs", "42.00 µs", "1.050×"]


def test_a_control_repeats_the_best_share_of_the_other_runs(tmp_path: Path) -> None:
    # The best share of run 1 is 0, that of the others 8, so the control fails in one run of three.
    case = usual_case(2048)
    by_share = {
        case: (40e-6, 42e-6, 60e-6),
        f"{case},share_32nds=0": (38e-6, 50e-6, 50e-6),
        f"{case},share_32nds=8": (41e-6, 40e-6, 40e-6),
    }
    rows = {(SHARED, case, "host_time"): median(runs) for case, runs in by_share.items()}
    facts = facts_of(tmp_path, rows, [runs_text(runs) for runs in by_share.values()])
    found = last(share_table.repeated_shares(facts))
    assert found == ["3", "33 %", "1.053×", "67 %", "1.000×"]


def test_steps_of_a_graph_are_held_against_their_misses_alone(tmp_path: Path) -> None:
    graph = usual_case(2, layers=60)
    seconds = dict(zip((GIVEN, *graph_table.STEPS), (240e-6, 1200e-6, 780e-6, 312e-6), strict=True))
    rows = {(name, graph, "gpu_time"): time for name, time in seconds.items()}
    found = last(graph_table.added_times(facts_of(tmp_path, rows)))
    assert found == ["2", "40 GiB", "4.000 µs", "16.00 µs", "9.000 µs", "1.200 µs", "1.30×"]


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
        (0.007, 0.004, WAITS.TWO_CHUNKS),
        (0.01, 0.004, WAITS.LONGER),
    ],
)
def test_the_cause_is_the_fewest_chunks_that_explain_the_wait(
    longest_s: float, chunk_s: float, cause: str
) -> None:
    assert WAITS.Wait(longest_s, chunk_s).cause == cause


def test_the_model_of_nvlink_is_found_again() -> None:
    true = NVLINK.NvLink(400e9, 16.0, 4e-6)
    sizes = [(size, rows) for size in (16, 128, 656, 4096) for rows in (512, 8192, 131072)]
    work = np.array([NVLINK.work_of(*one) for one in sizes])
    found = NVLINK.fit(work, true.seconds(work))
    assert found.rate == pytest.approx(true.rate, rel=0.03)
    assert found.header_bytes == pytest.approx(true.header_bytes, abs=3)
    assert found.start_up == pytest.approx(true.start_up, rel=0.03)


def test_a_tier_lies_between_the_host_and_the_peer() -> None:
    points = [
        {"machine": "box", "case": "a", "variant": name, "rate": rate}
        for name, rate in {"pulled": 400.0, "from_host": 50.0}.items()
    ]
    rates = TIER.tier(pd.DataFrame(points)).set_index(["way", "share"])["rate"]
    ways = TIER.AFTER, TIER.AT_ONCE
    for share, expected in {0: [50, 50], 0.5: [800 / 9, 100], 1: [400, 400]}.items():
        assert [rates[way, share] for way in ways] == pytest.approx(expected)
