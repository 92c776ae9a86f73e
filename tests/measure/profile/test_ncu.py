"""Reports of Nsight Compute: counters by variant, and invalid reports."""

from __future__ import annotations

import os
from pathlib import Path

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


def fake_ncu(folder: Path, monkeypatch: pytest.MonkeyPatch, script: str) -> None:
    (folder / "ncu").write_text(f"#!/bin/sh\n{script}\n")
    (folder / "ncu").chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ("echo '==ERROR== ERR_NVGPUCTRPERM'; exit 1", "ERR_NVGPUCTRPERM"),
        ("echo cannot open; echo the driver >&2; exit 9", "cannot open the driver"),
        ("echo Device H200; echo Nothing is known", "Device H200 Nothing is known"),
        ("exit 3", "exit code 3"),
        ("true", "exit code 0"),
    ],
)
def test_a_tool_that_lists_no_metrics_is_an_error_in_its_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str, said: str
) -> None:
    fake_ncu(tmp_path, monkeypatch, script)
    with pytest.raises(HotpathError, match=f"^ncu --query-metrics: {said}$"):
        ncu.capture(["true"])


def test_the_metrics_of_this_gpu_are_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_ncu(tmp_path, monkeypatch, "echo 'dram__bytes_read  Counter  bytes'")
    known = ncu.known_metrics(ncu.find_ncu())
    assert [metric for metric in known if not metric.startswith("launch__")] == [
        "dram__bytes_read.sum"
    ]
    assert "launch__grid_size" in known


def test_a_failed_capture_has_the_words_of_the_tool(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    listing = "[ \"$1\" = --query-metrics ] && echo 'dram__bytes_read x' && exit"
    fake_ncu(tmp_path, monkeypatch, f"{listing}\necho '==ERROR== No permission'; exit 1")
    with pytest.raises(HotpathError, match=r"^No permission$"):
        ncu.capture(["true"])
