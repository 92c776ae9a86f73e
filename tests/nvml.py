"""A fake driver: answers of NVML and CUDA for GPUs that do not exist."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, ClassVar

import pynvml
import pytest

from analysis.base import gpu
from analysis.measure import machine

QUERIES = sorted(
    {
        name
        for module in (gpu, machine)
        for name in re.findall(
            r"pynvml\.(nvml(?:Init|Device|System)\w*)", inspect.getsource(module)
        )
    }
)
"""Every query of NVML in the code."""


OF_BOARD = {
    "DeviceGetPowerUsage": 300_000,
    "DeviceGetTotalEnergyConsumption": 5000,
    "DeviceGetTemperature": 40,
    "DeviceGetMaxClockInfo": 1980,
    "DeviceGetCurrentClocksEventReasons": pynvml.nvmlClocksEventReasonSwPowerCap,
    "DeviceGetPcieThroughput": 7,
    "DeviceGetEnforcedPowerLimit": 700_000,
    "DeviceGetCurrPcieLinkGeneration": 5,
    "DeviceGetCurrPcieLinkWidth": 16,
}
"""Answers that a MIG instance does not give."""


@dataclass(frozen=True)
class Device:
    """A GPU; `links` are the far ends of its NVLinks: `switch`, a bus id, or None where one is
    off. `users` are the processes on it, `instances` the devices into which MIG divides it."""

    index: int
    name: str = "NVIDIA H200"
    links: Sequence[str | None] = ("switch", "switch", None)
    users: Collection[int] = ()
    instances: Sequence[Device] | None = None
    kind: ClassVar = "GPU"

    @property
    def uuid(self) -> str:
        return f"{self.kind}-{self.index}"

    @property
    def bus_id(self) -> str:
        return f"00000000:0{self.index}:00.0"


class Instance(Device):
    """A part of a GPU."""

    kind = "MIG"


def devices(count: int, **different: Any) -> list[Device]:
    return [Device(index, **different) for index in range(count)]


def _of_board(device: Device, answer: int) -> int:
    """An answer that a MIG instance does not give."""
    if isinstance(device, Instance):
        raise pynvml.NVMLError(pynvml.NVML_ERROR_NOT_SUPPORTED)
    return answer


def install(
    monkeypatch: pytest.MonkeyPatch,
    found: Sequence[Device],
    can_access: Callable[[int, int], bool] = lambda i, j: True,
) -> None:
    """Let the driver have `found`, of which GPU i can access the memory of j as `can_access`
    says."""

    def by(key: str, value: object) -> Device:
        parts = [part for device in found for part in device.instances or ()]
        for device in (*found, *parts):
            if getattr(device, key) == value:
                return device
        raise pynvml.NVMLError(pynvml.NVML_ERROR_NOT_FOUND)

    def instance(device: Device, number: int) -> Device:
        if number >= len(device.instances or ()):
            raise pynvml.NVMLError(pynvml.NVML_ERROR_NOT_FOUND)
        return (device.instances or ())[number]

    def far_end(device: Device, link: int) -> str | None:
        if link >= len(device.links):
            raise pynvml.NVMLError(pynvml.NVML_ERROR_INVALID_ARGUMENT)
        return device.links[link]

    def kind(device: Device, link: int) -> int:
        is_switch = far_end(device, link) == "switch"
        types = (pynvml.NVML_NVLINK_DEVICE_TYPE_GPU, pynvml.NVML_NVLINK_DEVICE_TYPE_SWITCH)
        return int(types[is_switch])

    answers: dict[str, Callable[..., Any]] = {
        "Init": lambda: None,
        "Shutdown": lambda: None,
        "DeviceGetCount": lambda: len(found),
        "DeviceGetHandleByIndex": lambda index: by("index", index),
        "DeviceGetHandleByUUID": lambda uuid: by("uuid", uuid),
        "DeviceGetCudaComputeCapability": lambda device: (9, 0),
        "DeviceGetName": lambda device: device.name,
        "DeviceGetUUID": lambda device: device.uuid,
        "DeviceGetIndex": lambda device: device.index,
        "DeviceGetPciInfo": lambda device: SimpleNamespace(busId=device.bus_id),
        "DeviceGetNvLinkState": lambda device, link: far_end(device, link) is not None,
        "DeviceGetNvLinkRemoteDeviceType": kind,
        "DeviceGetNvLinkRemotePciInfo": lambda device, link: SimpleNamespace(
            busId=far_end(device, link)
        ),
        "DeviceGetTopologyCommonAncestor": lambda one, other: pynvml.NVML_TOPOLOGY_SYSTEM,
        "DeviceGetComputeRunningProcesses": lambda device: [
            SimpleNamespace(pid=process) for process in device.users
        ],
        "DeviceGetMigMode": lambda device: [int(device.instances is not None)] * 2,
        "DeviceGetMaxMigDeviceCount": lambda device: 7,
        "DeviceGetMigDeviceHandleByIndex": instance,
        "DeviceGetDeviceHandleFromMigDeviceHandle": lambda device: next(
            one for one in found if device in (one.instances or ())
        ),
        "DeviceGetClockInfo": lambda device, kind: _of_board(
            device, 1980 if kind == pynvml.NVML_CLOCK_SM else 2600
        ),
        "DeviceGetMemoryInfo": lambda device: SimpleNamespace(total=2**37),
        "DeviceGetEccMode": lambda device: [1, 1],
        "SystemGetCudaDriverVersion_v2": lambda: 13000,
        "SystemGetDriverVersion": lambda: "580.1",
    }
    for name, value in OF_BOARD.items():
        answers[name] = lambda device, *kind, value=value: _of_board(device, value)
    for name, answer in answers.items():
        monkeypatch.setattr(pynvml, f"nvml{name}", answer)
    assert {f"nvml{name}" for name in answers} >= {*QUERIES}
    driver = pytest.importorskip("cuda.bindings.driver")
    done, wrong = driver.CUresult.CUDA_SUCCESS, driver.CUresult.CUDA_ERROR_INVALID_VALUE
    indices = {device.bus_id.encode(): device.index for device in found}
    of_driver: dict[str, Callable[..., Any]] = {
        "Init": lambda flags: (done,),
        "DeviceGetByPCIBusId": lambda bus_id: (
            (done, indices[bus_id]) if bus_id in indices else (wrong, None)
        ),
        "DeviceCanAccessPeer": lambda i, j: (done, int(can_access(i, j))),
        "DeviceGetAttribute": lambda key, device: (
            (done, {"MAJOR": 9, "MINOR": 0}.get(key.name.rpartition("_")[2], 132))
        ),
    }
    for name, answer in of_driver.items():
        monkeypatch.setattr(driver, f"cu{name}", answer)


def fail(monkeypatch: pytest.MonkeyPatch, query: str, code: int, of: Device | None = None) -> None:
    """Let this query fail, of one GPU or of all."""
    answer = getattr(pynvml, query)

    def failing(*arguments: Any) -> Any:
        if of is None or arguments[:1] in ((of,), (of.index,), (of.uuid,)):
            raise pynvml.NVMLError(code)
        return answer(*arguments)

    monkeypatch.setattr(pynvml, query, failing)
