"""GPUs that do not answer every query of NVML, as under WSL, on consumer cards, vGPUs and MIG."""

from __future__ import annotations

import csv
import multiprocessing
import signal
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pynvml
import pytest

from analysis.base.errors import HotpathError
from analysis.base.gpu import UNKNOWN_NAME, Gpu, GpuError, NoGpu, open_gpus, show_only
from analysis.measure import nvbench, run, telemetry
from analysis.measure.__main__ import other_users
from analysis.measure.cell import Cell
from analysis.measure.machine import describe
from analysis.measure.needs import Provision
from analysis.measure.plan import Plan, Target
from analysis.measure.publish import publish
from analysis.measure.run import run_rounds
from analysis.measure.telemetry import COLUMNS, whole_rows
from analysis.results.store.keys import HostKeys
from analysis.results.store.runs import read_study
from tests.measure.studies import GRID, host, runs_at, write_study
from tests.nvml import QUERIES, Device, Instance, devices, fail, install

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
OPENING = ("nvmlDeviceGetHandleByIndex", "nvmlDeviceGetHandleByUUID", "nvmlInit")
"""Queries without which there is no GPU to measure."""
KNOWN = ("nvmlDeviceGetCount", "nvmlDeviceGetCudaComputeCapability", "nvmlDeviceGetUUID")
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
    and not any(word in query for word in ("HandleFrom", "MigDevice", "NvLink", "Topology"))
    and query not in OPENING
]
"""Queries about one open GPU."""


def row_of(gpus: tuple[Gpu, ...], folder: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """The first row of telemetry; the program that takes it ends after it."""
    monkeypatch.setattr(telemetry, "end_with_parent", lambda: None)
    monkeypatch.setattr(telemetry, "PERIOD_S", 0.0)
    stop, stopping = multiprocessing.Pipe(duplex=False)
    ends = iter([False, True])
    monkeypatch.setattr(stop, "poll", lambda wait: next(ends))
    handler = signal.getsignal(signal.SIGINT)
    telemetry.record([gpu.key for gpu in gpus], folder / "rows", stop)
    signal.signal(signal.SIGINT, handler)
    stopping.close()
    [row] = csv.reader((folder / "rows").open())
    assert whole_rows(folder / "rows") == ([row], 0)
    return dict(zip(COLUMNS, row, strict=True))


def hosted(count: int = 1) -> HostKeys:
    with open_gpus(list(range(count))) as gpus:
        return describe(gpus)


def new_unknowns(without: HostKeys, host: HostKeys) -> list[str]:
    return sorted({*host.unsupported} - {*without.unsupported})


@pytest.mark.parametrize("code", REFUSED)
@pytest.mark.parametrize("query", [query for query in QUERIES if query not in OPENING])
def test_a_query_without_an_answer_costs_its_own_column_only(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, query: str, code: int
) -> None:
    install(monkeypatch, devices(2))
    for name in ("CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER"):
        monkeypatch.setenv(name, "")
    whole = hosted(2)
    fail(monkeypatch, query, code)
    with open_gpus([0, 1]) as gpus:
        assert [gpu.arch for gpu in gpus] == ["sm_90", "sm_90"]
        host = describe(gpus)
        assert new_unknowns(whole, host) == UNKNOWN.get(query, [])
        assert HostKeys.model_validate_json(host.model_dump_json()) == host
        assert other_users(gpus, "refuse") == []
        row = row_of(gpus[:1], tmp_path, monkeypatch)
        show_only(gpus)
    empty = {name for name, value in row.items() if not value}
    assert empty == {*UNKNOWN.get(query, [])} & {*COLUMNS} - {"gpu"}


def test_a_gpu_that_answers_everything_has_a_whole_row(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    install(monkeypatch, devices(1))
    with open_gpus([0]) as gpus:
        row = row_of(gpus, tmp_path, monkeypatch)
    del row["time"]
    assert row == {
        "power_w": "300.0",
        "energy_j": "5.0",
        "temperature_c": "40",
        "sm_mhz": "1980.0",
        "memory_mhz": "2600",
        "throttle": "sw_power_cap",
        "pcie_rx_bytes_per_s": "7000",
        "pcie_tx_bytes_per_s": "7000",
        "gpu": "0",
    }


def test_nothing_is_answered_but_who_the_gpu_is(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    install(monkeypatch, devices(1))
    for query in QUERIES:
        if query not in OPENING:
            fail(monkeypatch, query, pynvml.NVML_ERROR_NOT_SUPPORTED)
    monkeypatch.setattr(pynvml, "nvmlDeviceGetCudaComputeCapability", lambda device: (8, 9))
    with open_gpus([0]) as gpus:
        assert (gpus[0].name, gpus[0].arch, gpus[0].key) == (UNKNOWN_NAME, "sm_89", 0)
        host = describe(gpus)
        row = row_of(gpus, tmp_path, monkeypatch)
    assert host.gpus[0].gpu == UNKNOWN_NAME
    assert {*host.unsupported} >= {one for keys in UNKNOWN.values() for one in keys}
    assert [name for name, value in row.items() if value] == ["time", "gpu"]


def test_unknown_users_of_a_gpu_are_recorded_and_it_is_measured(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    install(monkeypatch, [Device(0, users=[4711])])
    with open_gpus([0]) as gpus:
        with pytest.raises(HotpathError, match=r"GPU 0 is used by processes \[4711\]"):
            other_users(gpus, "refuse")
        assert other_users(gpus, "record") == [4711]
        fail(monkeypatch, "nvmlDeviceGetComputeRunningProcesses", pynvml.NVML_ERROR_NOT_SUPPORTED)
        assert other_users(gpus, "refuse") == []
        assert "other_processes" in describe(gpus).unsupported
    assert capsys.readouterr().out == "GPU 0 does not say who uses it; it is measured anyway\n"


@pytest.mark.parametrize("code", LOST)
@pytest.mark.parametrize("query", OF_GPU)
def test_a_lost_gpu_is_named_in_the_words_of_nvml(
    monkeypatch: pytest.MonkeyPatch, query: str, code: int
) -> None:
    install(monkeypatch, devices(1))
    fail(monkeypatch, query, code)
    said = str(pynvml.NVMLError(code))
    with pytest.raises(GpuError, match=f"^(GPU 0|the driver) no longer answers: {said}$"):
        hosted()


@pytest.mark.parametrize("code", [*LOST, pynvml.NVML_ERROR_NO_PERMISSION])
@pytest.mark.parametrize("query", ["nvmlDeviceGetHandleByIndex", "nvmlInit"])
def test_a_gpu_that_cannot_be_opened_is_not_a_missing_one(
    monkeypatch: pytest.MonkeyPatch, query: str, code: int
) -> None:
    install(monkeypatch, devices(1))
    fail(monkeypatch, query, code)
    with pytest.raises(GpuError, match=f"^GPU( 0)?: {pynvml.NVMLError(code)}$") as caught:
        hosted()
    assert not isinstance(caught.value, NoGpu)


@pytest.mark.parametrize("code", [pynvml.NVML_ERROR_UNKNOWN, pynvml.NVML_ERROR_NOT_SUPPORTED])
def test_any_other_failure_to_open_a_gpu_has_the_words_of_nvml(
    monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    install(monkeypatch, devices(1))
    fail(monkeypatch, "nvmlDeviceGetHandleByIndex", code)
    with pytest.raises(GpuError, match=f"^GPU 0: {pynvml.NVMLError(code)}$"):
        hosted()


@pytest.mark.parametrize("value", [2**32 - 1, 2**64 - 1])
@pytest.mark.parametrize("query", ["ClockInfo", "PowerUsage", "TotalEnergyConsumption"])
def test_a_value_that_is_not_available_is_an_empty_column(
    query: str, value: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(monkeypatch, devices(1))
    monkeypatch.setattr(pynvml, f"nvmlDeviceGet{query}", lambda *arguments: value)
    with open_gpus([0]) as (gpu,):
        readings = gpu.readings()
    unknown = {name for name, reading in readings.items() if reading is None}
    of = {
        "ClockInfo": {"sm_mhz", "memory_mhz"},
        "PowerUsage": {"power_w"},
        "TotalEnergyConsumption": {"energy_j"},
    }
    assert unknown == of[query]


@pytest.mark.parametrize("which", [0, "GPU-0", "MIG-8"])
def test_a_divided_gpu_is_its_first_instance(
    monkeypatch: pytest.MonkeyPatch, which: int | str
) -> None:
    parts = [Instance(8, "NVIDIA H200 MIG 1g.18gb"), Instance(9)]
    install(monkeypatch, [Device(0, instances=parts)])
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    with open_gpus([which]) as (gpu,):
        assert (gpu.uuid, gpu.name) == ("MIG-8", "NVIDIA H200 MIG 1g.18gb")
        assert gpu.readings()["power_w"] == 300  # the board's
        assert gpu.is_at_highest_clock()
        assert "power_w" not in describe([gpu]).unsupported


def test_a_divided_gpu_without_an_instance_is_one_error(monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, [Device(0, instances=())])
    with pytest.raises(GpuError, match=r"^GPU 0: MIG is on, and the GPU has no instance$"):
        hosted()


def test_a_missing_power_reading_does_not_end_a_round(monkeypatch: pytest.MonkeyPatch) -> None:
    """Clocks of a cell are those that are known."""
    from analysis.measure.round import Bench

    install(monkeypatch, devices(1))
    cell: Any = type("Cell", (), {"clocks_mhz": [], "reasons": set(), "sm_mhz": None})()
    with open_gpus([0]) as gpus:
        bench: Any = type("Gpus", (), {"gpus": gpus})()
        Bench._read_clocks(bench, cell)
        assert (cell.sm_mhz, cell.reasons) == (1980.0, {"sw_power_cap"})
        for query in ("ClockInfo", "CurrentClocksEventReasons"):
            fail(monkeypatch, f"nvmlDeviceGet{query}", pynvml.NVML_ERROR_NOT_SUPPORTED)
        Bench._read_clocks(bench, cell)
    assert (cell.clocks_mhz, cell.reasons) == ([1980.0], {"sw_power_cap"})


SILENT = {
    "power": ["nvmlDeviceGetPowerUsage"],
    "energy": ["nvmlDeviceGetTotalEnergyConsumption"],
    "clocks": ["nvmlDeviceGetClockInfo", "nvmlDeviceGetMaxClockInfo"],
    "throttle reasons": ["nvmlDeviceGetCurrentClocksEventReasons"],
    "users": ["nvmlDeviceGetComputeRunningProcesses"],
    "everything": [query for query in QUERIES if query not in (*OPENING, *KNOWN)],
}
"""Queries that fail on a machine, by what it does not report."""


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("what", SILENT)
def test_a_study_is_measured_and_published_whatever_a_gpu_does_not_report(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, where: Target, what: str
) -> None:
    install(monkeypatch, devices(1))
    for query in SILENT[what]:
        fail(monkeypatch, query, pynvml.NVML_ERROR_NOT_SUPPORTED)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")

    def without_nvbench(cells: list[Cell], measure: Callable[[Cell], None], *_: object) -> None:
        for cell in cells:
            measure(cell)

    monkeypatch.setattr(nvbench, "run_under_nvbench", without_nvbench)
    monkeypatch.setattr(telemetry, "PERIOD_S", 0.001)
    monkeypatch.setattr(run, "TELEMETRY_S", 0.01)  # a fork keeps the pipe open that would end it
    study = write_study(tmp_path / "silent", {"name": "one"})
    (study.folder / "one.py").write_text(SLOW_FILL)
    plan = Plan(study, study.variants, GRID, where)
    with open_gpus([0]) as gpus:
        here = Provision(gpus, "13.0")
        on_gpu = replace(host(tmp_path), gpus=gpus, others=other_users(gpus, "refuse"))
        run_rounds(plan, here, on_gpu)
        list(publish(plan, here, on_gpu))
    (measured,) = runs_at(where, study)
    unknown = {key for query in SILENT[what] for key in UNKNOWN.get(query, [])}
    assert {*measured.about.host.unsupported} >= unknown
    assert measured.about.telemetry == {"one": "captured"}
    assert {row.status for row in measured.rows} == {"ok"}
    assert all((row.sm_mhz is None) == ("sm_mhz" in unknown) for row in measured.rows)
    assert (measured.about.energy_j is None) == ("energy_j" in unknown)
    [file] = where.folder.glob("silent/*.telemetry.csv")
    with file.open(newline="") as lines:
        rows = list(csv.DictReader(lines))
    assert rows
    for name in ("power_w", "energy_j", "temperature_c", "sm_mhz", "throttle"):
        assert {bool(row[name]) for row in rows} == {name not in unknown}
    refused: list[Path] = []
    folder = where.folder / "silent"
    assert [*read_study(folder, study, lambda path, error: refused.append(path))] and not refused
