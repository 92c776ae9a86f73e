"""The link model: times that a second program computed, sector by sector; other links; and the
cases that are held back from its fit."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

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


def gather(pool_bytes: int, count: int = 2**18, **more: Any) -> Access:
    """Rows of 128 bytes, of which translation limits the time."""
    return replace(rows(128, pool_bytes=pool_bytes, **more), payload_bytes=count * 128)


def seconds(access: Access, by: Parameters) -> float:
    return float(predicted_seconds(np.array([work_of(access, SMS)]), by.values())[0])


@pytest.mark.parametrize(
    ("access", "expected"),
    [
        (Access("contiguous", 172 * 10**6, in_flight_bytes=2048), 0.00337476271),
        (Access("contiguous", 10**9 + 1, stride_bytes=16, in_flight_bytes=8192), 0.0201807751),
        (Access("copy_engine", 172 * 10**6), 0.00314500847),
        (rows(656), 0.000350512712),
        (rows(672, 784, offset_bytes=96), 0.000350104051),
        (rows(512, warps=57), 0.00109686667),
        (rows(512, warps=40, in_flight_bytes=2**14), 0.000713097297),
        (rows(100, 116, offset_bytes=96, access_bytes=64, in_flight_bytes=64), 0.000544882712),
        (rows(96, layout="pages_2"), 0.000386706746),
        (replace(rows(656, access_bytes=16), reads="thread_rows"), 0.00128335),
        (gather(2**30, warps=64), 0.007787),
        (gather(2**31), 0.00420623393),
        (gather(2**35), 0.00937684863),
        (gather(2**35, streaming=1), 0.00901316313),
        (gather(2**35, layout="pages_2"), 0.00484972367),
        (gather(2**36, layout="repeated"), 0.00952860342),
        (gather(2**35, layout="contiguous", request_rows=64, stretch_rows=2**20), 0.0092268741),
        (gather(2**35, order="ascending"), 0.0045348746),
        (gather(2**35, 4096, order="ascending"), 0.00018139953),
        (gather(2**35, order="ascending", order_from_rows=2**20), 0.00937684863),
    ],
)
def test_times_are_those_of_a_second_computation(access: Access, expected: float) -> None:
    assert seconds(access, KNOWN) == pytest.approx(expected, rel=1e-8)


def test_cases_and_sets_of_parameters_are_predicted_at_once() -> None:
    accesses = [gather(2**35), rows(656)]
    sets = [KNOWN, replace(KNOWN, link_rate=4e10, start_up=1e-3)]
    work = np.array([work_of(access, SMS) for access in accesses])
    found = predicted_seconds(work, np.array([by.values() for by in sets]))
    assert found.tolist() == [[seconds(access, by) for access in accesses] for by in sets]


LINKS = {link.name: link for link in read_links()}
OWN = LINKS["pcie5_x16"]
COPY = Access("copy_engine", 64 * MIB)


def rate(access: Access, link: Link) -> float:
    return access.payload_bytes / predict(access, SMS, link, behind(link, TRUE, OWN))


def test_behind_another_link_only_what_belongs_to_it_changes() -> None:
    for access in (rows(656), rows(512), COPY):
        assert rate(access, OWN) == pytest.approx(
            access.payload_bytes / seconds(access, TRUE), rel=1e-9
        )
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
