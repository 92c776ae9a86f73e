"""GPUs that do not answer every query of NVML, as under WSL, on consumer cards, vGPUs and MIG."""

from __future__ import annotations

import csv
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from unittest.mock import Mock

import pynvml
import pytest

from analysis.base.gpu import UNKNOWN_NAME, Gpu, GpuError, NoGpu, open_gpus, show_only
from analysis.measure import nvbench, telemetry
from analysis.measure.__main__ import other_users
from analysis.measure.cell import Cell
from analysis.measure.journal import Begun, RoundRecord
from analysis.measure.machine import apart, describe, topology
from analysis.measure.places import Place
from analysis.measure.round import Visit
from analysis.measure.telemetry import COLUMNS, read_telemetry, with_clocks
from analysis.results.store.keys import HostKeys, Stages
from analysis.results.store.records import Reading
from analysis.results.store.samples import Row
from analysis.site.pages.machines import described_facts
from tests.measure.studies import QUIET, only_run, plan_of, run, write_study
from tests.nvml import QUERIES, Device, devices, fail, install
from tests.synthetic import host_of

LOST = (pynvml.NVML_ERROR_GPU_IS_LOST, pynvml.NVML_ERROR_RESET_REQUIRED)
REFUSED = (
    *(pynvml.NVML_ERROR_NOT_SUPPORTED, pynvml.NVML_ERROR_UNKNOWN),
    *(pynvml.NVML_ERROR_NO_PERMISSION, pynvml.NVML_ERROR_FUNCTION_NOT_FOUND),
)
UNKNOWN = {
    "nvmlDeviceGetPowerUsage": ["power_w"],
    "nvmlDeviceGetTotalEnergyConsumption": ["energy_j"],
    "nvmlDeviceGetTemperature": ["temperature_c"],
    "nvmlDeviceGetClockInfo": ["memory_mhz", "sm_mhz"],
    "nvmlDeviceGetCurrentClocksEventReasons": ["throttle"],
    "nvmlDeviceGetPcieThroughput": ["pcie_rx_bytes_per_s", "pcie_tx_bytes_per_s"],
    "nvmlDeviceGetComputeRunningProcesses": ["other_processes"],
    "nvmlDeviceGetName": ["gpu"],
    "nvmlDeviceGetMaxClockInfo": ["max_memory_mhz", "max_sm_mhz"],
    "nvmlDeviceGetEnforcedPowerLimit": ["power_limit_w"],
    "nvmlDeviceGetMemoryInfo": ["gpu_memory_bytes"],
    "nvmlDeviceGetEccMode": ["ecc"],
    "nvmlDeviceGetCurrPcieLinkGeneration": ["pcie_generation"],
    "nvmlDeviceGetCurrPcieLinkWidth": ["pcie_width"],
    "nvmlSystemGetDriverVersion": ["driver"],
    "nvmlSystemGetCudaDriverVersion_v2": ["cuda"],
    "nvmlDeviceGetPciInfo": ["sms"],
}
"""Keys that are unknown without the answer to a query; none without that to another one."""
OPENING = (
    *("nvmlDeviceGetHandleByIndex", "nvmlDeviceGetHandleByUUID", "nvmlInit"),
    "nvmlDeviceGetCudaComputeCapability",
)
"""Queries without which there is no GPU to measure."""
KNOWN = ("nvmlDeviceGetCount", "nvmlDeviceGetUUID")
"""Queries that every driver answers."""
SLOW_FILL = """
import time


def fill(out):
    out[:] = b"\\x01" * len(out)
    time.sleep(0.01)
"""
OF_GPU = [
    query
    for query in QUERIES
    if query.startswith("nvmlDeviceGet")
    and not any(word in query for word in ("NvLink", "Topology"))
    and query not in OPENING
]
"""Queries about one open GPU."""


def recorded(gpus: Sequence[Gpu], folder: Path, turns: int = 99) -> list[list[str]]:
    """The rows of telemetry after these turns, or until a GPU is lost."""
    (folder / "rows").unlink(missing_ok=True)
    stop = Mock(wait=Mock(side_effect=[False] * turns + [True]))
    telemetry.record(gpus, folder / "rows", stop)
    return [*csv.reader((folder / "rows").open())]


BEGUN = Begun(plan="0" * 64, run="20260102T030405Z-00000000", commit=None, dirty=None, bounds={})


def at(second: float) -> str:
    return f"2026-01-02T03:04:{second:06.3f}Z"


def a_round(number: int, *visits: tuple[str, str, str], end: str = at(59)) -> RoundRecord:
    """A finished round with visits: variant, case and time of each."""
    return RoundRecord(
        visits=[Visit(variant=v, case=case, started_at=time) for v, case, time in visits],
        stages_s=Stages(**dict.fromkeys(Stages.model_fields, 0.0)),
        **dict.fromkeys(("before", "after"), QUIET),
        round=number,
        why=[],
        repeated=[],
        start=at(0),
        end=end,
        begun=BEGUN,
        energy_j=None,
        samples_sha256="0" * 64,
    )


def hosted(count: int = 1) -> HostKeys:
    with open_gpus(list(range(count))) as gpus:
        return describe(gpus)


@pytest.mark.parametrize("query", [query for query in QUERIES if query not in OPENING])
def test_a_query_without_an_answer_costs_its_own_column_only(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, query: str
) -> None:
    install(monkeypatch, devices(2))
    for name in ("CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER"):
        monkeypatch.setenv(name, "")
    whole = hosted(2)
    for code in REFUSED:
        fail(monkeypatch, query, code)
        with open_gpus([0, 1]) as gpus:
            assert [gpu.arch for gpu in gpus] == ["sm_90", "sm_90"]
            host = describe(gpus)
            new = sorted({*host.unsupported} - {*whole.unsupported})
            assert new == UNKNOWN.get(query, [])
            assert HostKeys.model_validate_json(host.model_dump_json()) == host
            assert other_users(gpus, "refuse") == []
            (row,) = recorded(gpus[:1], tmp_path, turns=1)
            show_only(gpus)
        empty = {name for name, value in zip(COLUMNS, row, strict=True) if not value}
        assert empty == {*UNKNOWN.get(query, [])} & {*COLUMNS} - {"gpu"}
    if "Clock" in query or "Power" in query:  # a value that means that none is available
        monkeypatch.setattr(pynvml, query, lambda *_: 2**32 - 1)
        assert {*UNKNOWN.get(query, [])} <= {*hosted().unsupported}


@pytest.mark.parametrize("query", [*OF_GPU, "nvmlDeviceGetHandleByIndex", "nvmlInit"])
def test_a_lost_gpu_is_named_in_the_words_of_nvml(
    monkeypatch: pytest.MonkeyPatch, query: str
) -> None:
    """One that cannot be opened is not a missing one."""
    refused = [] if query in OF_GPU else [pynvml.NVML_ERROR_NO_PERMISSION]
    for code in (*LOST, *refused):
        with monkeypatch.context() as patch:
            install(patch, devices(1))
            fail(patch, query, code)
            said = r"(GPU 0|the driver) no longer answers" if query in OF_GPU else "GPU( 0)?"
            with pytest.raises(GpuError, match=f"^{said}: {pynvml.NVMLError(code)}$") as caught:
                hosted()
            assert not isinstance(caught.value, NoGpu)


@pytest.mark.parametrize("is_silent", [False, True])
def test_a_study_is_measured_and_published_whatever_a_gpu_does_not_report(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, place: Place, is_silent: bool
) -> None:
    install(monkeypatch, devices(1))
    silent = [query for query in QUERIES if is_silent and query not in (*OPENING, *KNOWN)]
    for query in silent:
        fail(monkeypatch, query, pynvml.NVML_ERROR_NOT_SUPPORTED)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")

    def without_nvbench(cells: list[Cell], measure: Callable[[Cell], None], *_: object) -> None:
        for cell in cells:
            measure(cell)

    monkeypatch.setattr(nvbench, "run_under_nvbench", without_nvbench)
    monkeypatch.setattr(telemetry, "PERIOD_S", 0.001)
    study = write_study(tmp_path / "silent", {"name": "one"})
    (study.folder / "one.py").write_text(SLOW_FILL)
    with open_gpus([0]) as gpus:
        assert gpus[0].name == (UNKNOWN_NAME if is_silent else "NVIDIA H200")
        run(plan_of(study, replace(place, gpus=gpus)))
    measured = only_run(place, study)
    unknown = {key for query in silent for key in UNKNOWN.get(query, [])}
    assert {*measured.about.host.unsupported} >= unknown
    assert measured.about.telemetry == {"one": "captured"}
    assert {row.status for row in measured.rows} == {"ok"}
    assert all((row.sm_mhz is None) == is_silent for row in measured.rows)
    assert (measured.about.energy_j is None) == is_silent
    [file] = place.folder.glob("silent/*.telemetry.csv")
    with file.open(newline="") as lines:
        assert {bool(row["power_w"]) for row in csv.DictReader(lines)} == {not is_silent}


def test_one_row_per_gpu_until_one_is_lost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, devices(2))
    readings = iter([100_000, 200_000, 110_000])

    def power(device: Device) -> int:
        if (found := next(readings, None)) is None:
            raise pynvml.NVMLError(pynvml.NVML_ERROR_GPU_IS_LOST)
        return found

    monkeypatch.setattr(pynvml, "nvmlDeviceGetPowerUsage", power)
    with open_gpus(["GPU-0", "GPU-1"]) as gpus:
        rows = recorded(gpus, tmp_path)
    first = "100.0,5.0,40,1980.0,2600,sw_power_cap,7000,7000,0"
    assert rows[0][1:] == first.split(",")
    powers = [(row[COLUMNS.index("power_w")], row[COLUMNS.index("gpu")]) for row in rows]
    assert powers == [("100.0", "0"), ("200.0", "1"), ("110.0", "0")]


def test_telemetry_belongs_to_the_visit_it_fell_in(tmp_path: Path) -> None:
    case = "bs=1,draw=permutation"
    rounds = [
        a_round(0, ("one", case, at(10)), ("two", case, at(12)), ("one", case, at(14)), end=at(15)),
        a_round(1, ("two", case, at(20)), ("one", case, at(22)), end=at(25)),
    ]
    file = tmp_path / "rows"
    seconds = (9.9, 10.0, 11.9, 12.0, 14.5, 15.0, 17.0, 20.5, 29.0)
    lines = [f"{at(second)},100.5,,,,,,,,0" for second in seconds]
    file.write_bytes("\n".join([*lines, at(12.5)[:-3], "", "\xff,,"]).encode("latin1"))
    found, damaged = read_telemetry(file, rounds)
    assert damaged == 3
    assert [(one.variant, one.round, one.time) for one in found] == [
        *(("one", 0, at(10)), ("one", 0, at(11.9)), ("two", 0, at(12)), ("one", 0, at(14.5))),
        ("two", 1, at(20.5)),
    ]
    assert {(one.case, one.power_w, one.throttle) for one in found} == {(case, 100.5, "")}
    assert read_telemetry(file, []) == ([], 3)


def test_clocks_of_the_first_gpu_and_reasons_of_all_are_those_seen_within_the_cell() -> None:
    def seen(number: int, reason: str, mhz: int, gpu: int = 0) -> Reading:
        unknown = dict.fromkeys(Reading.__dataclass_fields__)
        known = {"variant": "one", "case": "n=2", "round": number, "throttle": reason, "gpu": gpu}
        return Reading(**{**unknown, **known, "sm_mhz": mhz})  # type: ignore[arg-type]

    def row(number: int, metric: str, throttle: str = "") -> Row:
        values = {(metric, "s"): [1.0]}
        return Row("one", "n=2", number, values, 1, "ok", "", throttle, 600.0, at(0))

    readings = [
        *(seen(0, "", mhz) for mhz in (1980, 1500, 1700)),
        *(seen(1, reason, 1980) for reason in ("", "hw_slowdown|sync_boost", "")),
        seen(1, "sw_thermal_slowdown", 1200, gpu=1),
        seen(2, "", 1980),
    ]
    rows = [row(0, "host_time"), row(1, "host_time"), row(2, "gpu_time"), row(3, "host_time", "x")]
    assert [(one.throttle, one.sm_mhz) for one in with_clocks(rows, readings)] == [
        ("", 1700.0),
        ("hw_slowdown|sw_thermal_slowdown|sync_boost", 1980.0),
        ("", 600.0),  # with device times, which have a measured clock
        ("x", 600.0),
    ]


def test_every_pair_has_its_links_its_path_and_its_access(monkeypatch: pytest.MonkeyPatch) -> None:
    """Links without a switch count for the GPU that they lead to."""
    a, b, c = (Device(index).bus_id for index in range(3))
    ends = [[b, b, c, None], [a, a, None, None], [a, None, None, None]]
    for found, nvlinks in (
        (devices(3), {"0-1": 2, "0-2": 2, "1-2": 2}),
        ([Device(n, links=links) for n, links in enumerate(ends)], {"0-1": 2, "0-2": 1, "1-2": 0}),
        (devices(3, links=()), dict.fromkeys(("0-1", "0-2", "1-2"))),
    ):
        install(monkeypatch, found, can_access=lambda i, j: (i, j) != (2, 1))
        with open_gpus([0, 1, 2]) as gpus:
            assert (topology(gpus[:1]), apart(gpus[:1]), apart(gpus)) == ({}, (), ((1, 2),))
            assert topology(gpus) == {
                "peer_access": {"0-1": True, "0-2": True, "1-2": False},  # both ways, or not at all
                "nvlinks": nvlinks,
                "pcie_path": dict.fromkeys(("0-1", "0-2", "1-2"), "several NUMA nodes"),
            }
    fail(monkeypatch, "nvmlDeviceGetTopologyCommonAncestor", pynvml.NVML_ERROR_NOT_SUPPORTED)
    with open_gpus([0, 1]) as gpus:
        known = topology(gpus)
    assert known["pcie_path"] == {"0-1": None}
    host = host_of({"gpu": "NVIDIA H200", "gpus": 2, **known, "nvlinks": {"0-1": 2}})
    facts = described_facts({"nvidia-h200-x2": host.described()})
    assert (facts["peer access, 0-1"], facts["NVLinks, 0-1"]) == (["yes"], ["2"])
