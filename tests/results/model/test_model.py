"""The link model: computed a second time, case by case and sector by sector; other links; and the
cases that are held back from its fit."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import groupby
from statistics import fmean
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from analysis.results.model.hardware import (
    MEANING,
    OF_THE_MACHINE,
    Link,
    Parameter,
    behind,
    predict,
    read_links,
)
from analysis.results.model.terms import Parameters, predicted_seconds, work_of
from analysis.study import Case
from analysis.study.access import Access
from analysis.study.calibration import FITTED, INSIDE, OUTSIDE, held_back
from tests.linked import CALIBRATION, GATHER, KNOWN, MIB, SMS, TRUE, rows

ENTRY, REGION = 65536, 2 * MIB
"""Bytes that a cached translation covers, and an entry of the level above."""


def requests(start: int, length: int, load: int, alone: bool) -> list[list[int]]:
    """The sectors of each request of a warp, or a thread `alone`, that reads these bytes."""
    found: list[list[int]] = []
    known: set[int] = set()
    for begin in reversed(range(start, start + length, load)):
        touched = {byte // 32 for byte in range(begin, min(begin + load, start + length))}
        lines = groupby(sorted(touched - known), key=lambda sector: sector // 4)
        found += [[*sectors] for _, sectors in lines]
        known = set() if alone else touched
    return found


def traffic(access: Access) -> tuple[float, float, float]:
    """Completions, bytes of data and half lines of an access."""
    if access.reads == "copy_engine":
        return math.ceil(access.payload_bytes / 256), access.payload_bytes, 0.0
    is_range, alone = access.reads == "contiguous", access.reads == "thread_rows"
    length = 512 if is_range else access.row_bytes
    load = 512 if is_range else access.access_bytes or 512
    if access.in_flight_bytes >= length and not (alone or is_range):
        load = length
    stride = access.stride_bytes or 512
    starts = {(row * stride + access.offset_bytes * (not is_range)) % 128 for row in range(128)}
    found = [requests(start, length, load, alone) for start in sorted(starts)]
    completions = fmean(map(len, found))
    if is_range:
        data = 32 * math.ceil(access.payload_bytes / 32)
        return math.ceil(access.payload_bytes / 512 * completions), data, 0.0
    bytes_of_row = 32 * fmean(sum(map(len, one)) for one in found)
    halves = fmean(
        sum(len([*pair]) == 1 for r in one for _, pair in groupby(r, key=lambda s: s // 2))
        for one in found
    )
    ends = 1 / access.run_rows if access.stride_bytes == access.row_bytes else 1
    of_row = ends * bytes_of_row + (1 - ends) * access.row_bytes
    return completions * access.rows, of_row * access.rows, ends * halves * access.rows


def visited(places: float, visits: float) -> float:
    return places * (1 - math.exp(-visits / places))


def walk_s(access: Access, by: Parameters) -> float:
    """Seconds of the page walks."""
    if not access.pool_bytes:
        return 0.0
    if access.layout == "contiguous":
        of_stretch = access.stretch_rows * access.stride_bytes / ENTRY
        each = visited(of_stretch, access.request_rows) / access.request_rows
    else:
        length = (access.run_rows - 1) * access.stride_bytes + access.row_bytes
        each = (1 + (length - 16) / ENTRY) / access.run_rows
    pool, touches = access.pool_bytes / ENTRY, access.rows * each
    drawn = visited(pool, touches) if access.layout == "repeated" else pool
    walks = touches * (1 - min(by.held_entries, visited(drawn, 2 * touches)) / drawn)
    some, regions = max(walks, 1e-9), pool * ENTRY / REGION
    moved = 1 if access.streaming else access.payload_bytes
    kept = 1 - math.exp(-by.row_cache * some / (pool * moved))
    misses = 1 - (1 - visited(pool, some) / some) * kept + visited(regions / 8, some) / some
    above = by.region_walk * max(1 - by.held_regions / regions, 0)
    random = walks * (by.walk + above + by.table_miss * misses)
    if not access.is_ascending:
        return random
    once = visited(pool, touches) if pool > by.held_entries else 0
    return min(random, once * by.walk + (visited(regions, once) if once else 0) * by.region_wait)


def seconds(access: Access, by: Parameters) -> float:
    """The time of an access: its start, and the largest limit."""
    completions, data, halves = traffic(access)
    limits = [(data + 20 * completions + halves * by.half_line) / by.link_rate]
    if access.reads == "copy_engine":
        return by.copy_engine_start_up + limits[0]
    fills, resident = access.payload_bytes / access.in_flight_bytes, SMS * 64
    warps = min(fills, access.warps or resident, resident)
    limits += [completions / by.request_rate, fills / warps * by.latency, walk_s(access, by)]
    limits.append(completions / min(SMS, math.ceil(warps / 8)) / by.sm_request_rate)
    return by.start_up + by.index_latency * (access.reads != "contiguous") + max(limits)


LAYOUTS = st.sampled_from(["scattered", "repeated", "contiguous", "pages_2", "pages_64"])
GATHERS = st.builds(
    lambda row, count, gap, **more: Access(
        payload_bytes=row * count, row_bytes=row, stride_bytes=row + gap, **more
    ),
    reads=st.sampled_from(["warp_rows", "thread_rows"]),
    row=st.integers(1, 700),
    count=st.integers(1, 2**18),
    gap=st.sampled_from([0, 0, 16, 112]),
    offset_bytes=st.sampled_from([0, 96]),
    access_bytes=st.sampled_from([16, 64, 512]),
    in_flight_bytes=st.sampled_from([16, 512, 2048]),
    warps=st.sampled_from([0, 57, 64, 10**6]),
    pool_bytes=st.sampled_from([0, 2**28, 2**30, 2**34, 40 * 2**30]),
    layout=LAYOUTS,
    order=st.sampled_from(["random", "ascending"]),
    order_from_rows=st.sampled_from([0, 4096]),
    streaming=st.integers(0, 1),
    request_rows=st.just(2048),
    stretch_rows=st.just(32768),
)
RANGES = st.builds(
    Access,
    reads=st.sampled_from(["contiguous", "copy_engine"]),
    payload_bytes=st.integers(1, 2**30),
    stride_bytes=st.sampled_from([0, 16]),
    in_flight_bytes=st.sampled_from([512, 2048]),
)


def gather(pool_bytes: int, **more: Any) -> Access:
    """Rows of 656 bytes, of which translation limits the time."""
    return replace(rows(656, pool_bytes=pool_bytes, **more), payload_bytes=2**18 * 656)


@settings(max_examples=50)
@given(st.lists(GATHERS | RANGES, min_size=1, max_size=3))
@example([gather(2**31, order="ascending"), gather(2**32), gather(2**32, streaming=1)])
@example([gather(2**30, warps=64), rows(512, warps=57), rows(656, layout="pages_64")])
def test_times_are_those_of_a_second_computation(accesses: list[Access]) -> None:
    """For each of several sets of parameters."""
    work = np.array([work_of(access, SMS) for access in accesses])
    sets = [KNOWN, replace(KNOWN, link_rate=4e11, request_rate=4e9, start_up=1e-3)]
    found = predicted_seconds(work, np.array([by.values() for by in sets]))
    for by, times in zip(sets, found, strict=True):
        assert [*times] == pytest.approx([seconds(one, by) for one in accesses], rel=1e-9)


LINKS = {link.name: link for link in read_links()}
OWN = LINKS["pcie5_x16"]
COPY = Access("copy_engine", 64 * MIB)


def rate(access: Access, link: Link) -> float:
    return access.payload_bytes / predict(access, SMS, link, behind(link, TRUE, OWN))


def test_behind_another_link_only_what_belongs_to_it_changes() -> None:
    for access in (rows(656), rows(512), COPY):
        assert rate(access, OWN) == pytest.approx(access.payload_bytes / seconds(access, TRUE))
    for access in (rows(656), COPY):
        half = rate(access, OWN) / 2
        assert rate(access, LINKS["pcie4_x16"]) == pytest.approx(half, rel=0.05)
    assert rate(COPY, LINKS["nvlink_c2c"]) == pytest.approx(375e9, rel=0.02)
    latency = Parameter(unit="s", value=TRUE.latency / 2, source="a source")
    near = OWN.model_copy(update={"parameters": {**OWN.parameters, "latency": latency}})
    assert behind(near, TRUE, OWN).request_rate == 2 * TRUE.request_rate
    for link in LINKS.values():
        known = behind(link, TRUE, OWN)
        assert known.half_line / known.link_rate == pytest.approx(TRUE.half_line / TRUE.link_rate)
        assert [*link.parameters] == [*MEANING]
        for name, parameter in link.parameters.items():
            assert bool(parameter.source) != bool(parameter.assumption), name
            assert name in OF_THE_MACHINE or not math.isnan(parameter.value), name


def test_the_ends_and_a_third_of_a_calibration_are_held_back() -> None:
    held = [
        (case, use)
        for variant in CALIBRATION.variants
        for case, use in zip(variant.cases, held_back(CALIBRATION, variant), strict=True)
    ]

    def values_of(key: str, *uses: str) -> set[int]:
        return {case.number(key) for case, use in held if use in uses and key in case.values}

    for key in ("row_bytes", "bytes"):
        fitted, outside = values_of(key, FITTED, INSIDE), values_of(key, OUTSIDE)
        assert min(outside) < min(fitted) and max(fitted) < max(outside), key
    variant = replace(
        CALIBRATION.variant("sm_rows"), cases=tuple(Case({"n": n}, 1, "default") for n in range(9))
    )
    uses = held_back(replace(CALIBRATION, fitted_range={}), variant)
    assert [index for index, use in enumerate(uses) if use == INSIDE] == [2, 4, 6]
    beyond = held_back(replace(CALIBRATION, fitted_range={"n": (1, 7)}), variant)
    assert beyond == [OUTSIDE, *uses[:7], OUTSIDE]
    assert {use for v in GATHER.variants for use in held_back(GATHER, v)} == {FITTED}
