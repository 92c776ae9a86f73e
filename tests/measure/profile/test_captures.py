"""Captures: variants and their cases, reports of Nsight Compute, and timelines of CUPTI."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from analysis.base.errors import HotpathError
from analysis.measure.profile import ncu
from analysis.measure.profile.session import normalised
from tests.captured import REAL
from tests.repository import STUDIES

CASES = dict.fromkeys(STUDIES["h2d_gather"].variant_names, "bs=1")


def values(text: str) -> dict[str, dict[str, float]]:
    """Counters by variant and metric."""
    found: dict[str, dict[str, float]] = {}
    for counter in ncu.parse(text, CASES):
        assert counter.case == "bs=1"
        found.setdefault(counter.variant, {})[counter.metric] = counter.value
    return found


def test_a_report_of_the_profiler_is_read_as_far_as_it_has_values() -> None:
    found = values(REAL)
    assert found and set(found) <= set(CASES)
    for counted in found.values():
        assert counted["gpu__time_duration.sum"] > 0
        assert counted["launch__registers_per_thread"].is_integer()
        assert set(counted) <= set(ncu.METRICS)
    lines = REAL.splitlines()
    start = next(i for i, line in enumerate(lines) if line.startswith('"ID"'))
    header, units, row, *_ = lines[start:]
    fields = row.split('","')
    fields[header.split('","').index("dram__bytes_read.sum")] = "n/a"
    (variant, counted), *_ = found.items()
    left = values("\n".join([header, units, '","'.join(fields)]))[variant]
    assert set(counted) - set(left) == {"dram__bytes_read.sum"}
    with pytest.raises(HotpathError, match=r"ncu: expected \d+ fields, got \d+"):
        values("\n".join([header, units, row[: len(row) // 2].rpartition(",")[0]]))
    with pytest.raises(HotpathError, match="no table of counters"):
        values("==PROF== Connected to process 1\n")
    assert values("==PROF== Connected\n==WARNING== No kernels were profiled.\n") == {}


LISTING = "[ \"$1\" = --query-metrics ] && echo 'dram__bytes_read x' && exit"


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ("echo '==ERROR== ERR_NVGPUCTRPERM'; exit 1", "ncu: ERR_NVGPUCTRPERM"),
        ("echo cannot open; exit 9", "ncu: cannot open"),
        ("exit 3", "ncu: exit code 3"),
        (f"{LISTING}\necho '==ERROR== No permission'", "ncu: No permission"),
        (LISTING, ""),
    ],
)
def test_the_metrics_of_this_gpu_are_asked_for_and_an_error_has_the_words_of_the_tool(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str, said: str
) -> None:
    (tmp_path / "ncu").write_text(f"#!/bin/sh\n{script}\n")
    (tmp_path / "ncu").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    if said:
        with pytest.raises(HotpathError, match=f"^{said}$"):
            ncu.capture(["true"])
        return
    known = ncu.known_metrics()
    counted = [metric for metric in known if not metric.startswith("launch__")]
    assert counted == ["dram__bytes_read.sum"] and "launch__grid_size" in known


def test_a_timeline_begins_at_zero_and_runs_in_order() -> None:
    first, second = normalised(
        "one",
        [
            (5_000, 9_000, 7, "kernel", "_Z4copyv", None, 3),
            (2_000, 3_500, None, "host call", "cudaLaunchKernel", None, 3),
            (0, 0, 7, "memcpy", "memcpy", 64, 4),
        ],
    )
    assert (first.name, first.start, first.end) == ("cudaLaunchKernel", 0.0, 1.5e-6)
    assert [second.start, second.end] == pytest.approx([3e-6, 7e-6])
    assert normalised("one", []) == []
