"""A fake driver: answers of NVML and CUDA for GPUs that do not exist."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any

import pynvml
import pytest


@dataclass(frozen=True)
class Device:
    """A GPU; `links` are the far ends of its NVLinks: `switch`, a bus id, or None where one is
    off."""

    index: int
    name: str = "NVIDIA H200"
    links: Sequence[str | None] = ("switch", "switch", None)

    @property
    def uuid(self) -> str:
        return f"GPU-{self.index}"

    @property
    def bus_id(self) -> str:
        return f"00000000:0{self.index}:00.0"


def devices(count: int, **different: Any) -> list[Device]:
    return [replace(Device(index), **different) for index in range(count)]


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

    def far_end(device: Device, link: int) -> str | None:
        if link >= len(device.links):
            raise pynvml.NVMLError(pynvml.NVML_ERROR_INVALID_ARGUMENT)
        return device.links[link]

    def kind(device: Device, link: int) -> int:
        is_switch = far_end(device, link) == "switch"
        types = (pynvml.NVML_NVLINK_DEVICE_TYPE_GPU, pynvml.NVML_NVLINK_DEVICE_TYPE_SWITCH)
        return int(types[is_switch])

    answers = {
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
    }
    for name, answer in answers.items():
        monkeypatch.setattr(pynvml, f"nvml{name}", answer)
    driver = pytest.importorskip("cuda.bindings.driver")
    done = driver.CUresult.CUDA_SUCCESS
    monkeypatch.setattr(driver, "cuInit", lambda flags: (done,))
    monkeypatch.setattr(
        driver,
        "cuDeviceGetByPCIBusId",
        lambda bus_id: (done, by("bus_id", bus_id.decode()).index),
    )
    monkeypatch.setattr(driver, "cuDeviceCanAccessPeer", lambda i, j: (done, int(can_access(i, j))))
