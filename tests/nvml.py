"""A fake driver: answers of NVML and CUDA for GPUs that do not exist."""

import inspect
import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import pynvml
import pytest

from analysis.base import gpu
from analysis.measure import machine

_CODE = inspect.getsource(gpu) + inspect.getsource(machine)
QUERIES = sorted({*re.findall(r"pynvml\.(nvml(?:Init|Device|System)\w*)", _CODE)})
"""Every query of NVML in the code."""


@dataclass(frozen=True)
class Device:
    """A GPU; `links` are the far ends of its NVLinks: `switch`, a bus id, or None where one is
    off. `users` are the processes on it, and MIG divides it if `is_divided`."""

    index: int
    name: str = "NVIDIA H200"
    links: Sequence[str | None] = ("switch", "switch", None)
    users: Collection[int] = ()
    is_divided: bool = False

    @property
    def uuid(self) -> str:
        return f"GPU-{self.index}"

    @property
    def bus_id(self) -> str:
        return f"00000000:0{self.index}:00.0"

    def far_end(self, link: int) -> str | None:
        if link >= len(self.links):
            raise pynvml.NVMLError(pynvml.NVML_ERROR_INVALID_ARGUMENT)
        return self.links[link]


def devices(count: int, **different: Any) -> list[Device]:
    return [Device(index, **different) for index in range(count)]


OF_EVERY_GPU = {
    "CudaComputeCapability": (9, 0),
    "PowerUsage": 300_000,
    "TotalEnergyConsumption": 5000,
    "Temperature": 40,
    "MaxClockInfo": 1980,
    "CurrentClocksEventReasons": pynvml.nvmlClocksEventReasonSwPowerCap,
    "PcieThroughput": 7,
    "EnforcedPowerLimit": 700_000,
    "CurrPcieLinkGeneration": 5,
    "CurrPcieLinkWidth": 16,
    "MemoryInfo": SimpleNamespace(total=2**37),
    "EccMode": [1, 1],
}
"""Answers that do not depend on the GPU."""
OF_GPU: dict[str, Callable[..., Any]] = {
    "Name": lambda device: device.name,
    "UUID": lambda device: device.uuid,
    "Index": lambda device: device.index,
    "PciInfo": lambda device: SimpleNamespace(busId=device.bus_id),
    "NvLinkState": lambda device, link: device.far_end(link) is not None,
    "NvLinkRemoteDeviceType": lambda device, link: (
        pynvml.NVML_NVLINK_DEVICE_TYPE_SWITCH
        if device.far_end(link) == "switch"
        else pynvml.NVML_NVLINK_DEVICE_TYPE_GPU
    ),
    "NvLinkRemotePciInfo": lambda device, link: SimpleNamespace(busId=device.far_end(link)),
    "ComputeRunningProcesses": lambda device: [SimpleNamespace(pid=user) for user in device.users],
    "MigMode": lambda device: [int(device.is_divided)] * 2,
    "ClockInfo": lambda device, kind: 1980 if kind == pynvml.NVML_CLOCK_SM else 2600,
}


def install(
    monkeypatch: pytest.MonkeyPatch,
    found: Sequence[Device],
    can_access: Callable[[int, int], bool] = lambda i, j: True,
) -> None:
    """Let the driver have `found`, of which GPU i can access the memory of j as `can_access`
    says."""

    def by(key: str, value: object) -> Device:
        for device in found:
            if getattr(device, key) == value:
                return device
        raise pynvml.NVMLError(pynvml.NVML_ERROR_NOT_FOUND)

    answers: dict[str, Callable[..., Any]] = {
        "Init": lambda: None,
        "Shutdown": lambda: None,
        "DeviceGetCount": lambda: len(found),
        "DeviceGetHandleByIndex": lambda index: by("index", index),
        "DeviceGetHandleByUUID": lambda uuid: by("uuid", uuid),
        "SystemGetCudaDriverVersion_v2": lambda: 13000,
        "SystemGetDriverVersion": lambda: "580.1",
        **{f"DeviceGet{name}": answer for name, answer in OF_GPU.items()},
    }
    for name, value in OF_EVERY_GPU.items():
        answers[f"DeviceGet{name}"] = lambda *_, value=value: value
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
        "DeviceGetAttribute": lambda key, device: (done, 132),
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
