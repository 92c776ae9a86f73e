"""Reports of Nsight Compute: counters by variant, and invalid reports."""

from __future__ import annotations

import pytest

from analysis.base.errors import HotpathError
from analysis.measure.profile import ncu
from tests.captured import REAL
from tests.repository import STUDIES

GATHER = STUDIES["h2d_gather"]


def values(text: str) -> dict[str, dict[str, float]]:
    """Counters by variant and metric."""
    found: dict[str, dict[str, float]] = {}
    for counter in ncu.parse(text, GATHER.headline):
        found.setdefault(counter.variant, {})[counter.metric] = counter.value
    return found


def table_of(text: str) -> list[str]:
    """The lines from the header on."""
    lines = text.splitlines()
    return lines[next(i for i, line in enumerate(lines) if line.startswith('"ID"')) :]


def test_a_real_answer_of_the_profiler_is_read() -> None:
    found = values(REAL)
    assert found
    assert set(found) <= set(GATHER.variant_names)
    for counted in found.values():
        assert counted["gpu__time_duration.sum"] > 0
        assert counted["launch__registers_per_thread"] == int(
            counted["launch__registers_per_thread"]
        )
        assert set(counted) <= set(ncu.METRICS)


def test_an_answer_without_a_table_is_an_error() -> None:
    for text in ("", "==PROF== Connected to process 1\n"):
        with pytest.raises(HotpathError, match="no table of counters"):
            list(ncu.parse(text, GATHER.headline))


def test_report_without_kernels_is_no_error() -> None:
    assert values("==PROF== Connected\n==WARNING== No kernels were profiled.\n") == {}


def test_a_table_without_kernels_is_no_counters() -> None:
    header, units, *_ = table_of(REAL)
    assert values(f"{header}\n{units}\n") == {}


def test_an_answer_cut_off_in_a_row_is_an_error() -> None:
    header, units, first, *_ = table_of(REAL)
    cut = first[: len(first) // 2].rpartition(",")[0]
    with pytest.raises(HotpathError, match=r"ncu: expected \d+ fields, got \d+"):
        list(ncu.parse("\n".join([header, units, cut]), GATHER.headline))


def test_a_counter_the_kernel_does_not_have_is_left_out() -> None:
    (variant, counted), *_ = values(REAL).items()
    lines = table_of(REAL)
    at = lines[0].split('","').index("dram__bytes_read.sum")
    fields = lines[2].strip('"').split('","')
    fields[at] = "n/a"
    lines[2] = '"' + '","'.join(fields) + '"'
    left = values("\n".join(lines[:3]))[variant]
    assert set(counted) - set(left) == {"dram__bytes_read.sum"}
