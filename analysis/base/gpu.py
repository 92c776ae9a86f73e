"""The GPUs through NVML: selection, properties, clocks and energy, and other users."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pynvml

from analysis.base.cpus import parse_cpu_list
from analysis.base.errors import FieldError, HotpathError

_REASONS = {
    getattr(pynvml, f"nvmlClocksEventReason{name}"): label
    for name, label in {
        "SwPowerCap": "sw_power_cap",
        "SyncBoost": "sync_boost",
        "SwThermalSlowdown": "sw_thermal_slowdown",
        "DisplayClockSetting": "display_clock_setting",
    }.items()
} | {
    pynvml.nvmlClocksThrottleReasonHwSlowdown: "hw_slowdown",
    pynvml.nvmlClocksThrottleReasonHwThermalSlowdown: "hw_thermal_slowdown",
    pynvml.nvmlClocksThrottleReasonHwPowerBrakeSlowdown: "hw_power_brake_slowdown",
}
"""Clock-event reasons that lower clocks. Idle and application clocks are not among them."""


FIELD = "config: gpu"
"""Where the configuration names GPUs."""


class GpuError(HotpathError):
    """There is no GPU, or it no longer answers."""


@dataclass(frozen=True)
class Gpu:
    """An NVML handle and the constant properties of its device."""

    handle: Any
    name: str
    uuid: str
    index: int
    arch: str
    pci_bus_id: str

    def throttle_reasons(self) -> str:
        """The throttle reasons that NVML reports now, joined by `|`; empty if there are none."""
        bits = pynvml.nvmlDeviceGetCurrentClocksEventReasons(self.handle)
        return "|".join(sorted(label for bit, label in _REASONS.items() if bits & bit))

    def sm_clock_mhz(self) -> int:
        return int(pynvml.nvmlDeviceGetClockInfo(self.handle, pynvml.NVML_CLOCK_SM))

    def is_at_highest_clock(self) -> bool:
        """Whether the SMs run at the highest clock of this device; False if that is unknown."""
        with suppress(pynvml.NVMLError):
            highest = int(pynvml.nvmlDeviceGetMaxClockInfo(self.handle, pynvml.NVML_CLOCK_SM))
            return self.sm_clock_mhz() >= highest
        return False

    def energy_j(self) -> float | None:
        """Joules since the driver was loaded; None if the device does not report them."""
        with suppress(pynvml.NVMLError):
            return float(pynvml.nvmlDeviceGetTotalEnergyConsumption(self.handle)) / 1e3
        return None

    def other_processes(self) -> list[int]:
        """Ids of other processes that hold a compute context on this GPU; GpuError if it is
        lost."""
        try:
            running = pynvml.nvmlDeviceGetComputeRunningProcesses(self.handle)
        except pynvml.NVMLError as error:
            raise GpuError(f"GPU {self.index} no longer answers: {error}") from error
        return sorted(process.pid for process in running if process.pid != os.getpid())

    @property
    def sysfs(self) -> Path:
        domain, rest = self.pci_bus_id.lower().split(":", 1)
        return Path("/sys/bus/pci/devices") / f"{domain[-4:]}:{rest}"

    def local_cpus(self) -> set[int]:
        """The CPUs nearest to this GPU that this process may use; all allowed CPUs if unknown."""
        allowed = os.sched_getaffinity(0)
        try:
            text = (self.sysfs / "local_cpulist").read_text()
        except OSError:
            return allowed
        return (set(parse_cpu_list(text)) & allowed) or allowed


@contextmanager
def open_gpus(which: Sequence[int | str]) -> Iterator[tuple[Gpu, ...]]:
    """The GPUs with these indices or UUIDs, in this order, all of one kind.

    GpuError if there is no driver or no GPU and none but the first is asked for; FieldError if one
    is not here, is asked for twice, or is of another kind than the first.
    """
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError as error:
        raise _none(which, str(error)) from error
    try:
        if pynvml.nvmlDeviceGetCount() == 0:
            raise _none(which, "the driver reports none")
        gpus = tuple(_describe(one) for one in which)
        if len({gpu.uuid for gpu in gpus}) < len(gpus):
            raise FieldError(FIELD, "GPUs that differ from each other", list(which))
        if len({(gpu.name, gpu.arch) for gpu in gpus}) > 1:
            raise FieldError(FIELD, "GPUs of one kind", [gpu.name for gpu in gpus])
        yield gpus
    finally:
        pynvml.nvmlShutdown()


def show_only(gpus: Sequence[Gpu]) -> None:
    """Let CUDA see these GPUs, in this order and no others, in this process and its children."""
    os.environ["CUDA_VISIBLE_DEVICES"] = ",".join(gpu.uuid for gpu in gpus)


def _none(which: Sequence[int | str], why: str) -> HotpathError:
    """The error where there is no GPU at all."""
    if list(which) == [0]:
        return GpuError(f"no GPU: {why}")
    asked = which[0] if len(which) == 1 else list(which)
    return FieldError(FIELD, f"0, as there is no GPU here ({why})", asked)


def _describe(which: int | str) -> Gpu:
    count = pynvml.nvmlDeviceGetCount()
    try:
        handle = (
            pynvml.nvmlDeviceGetHandleByUUID(which)
            if isinstance(which, str)
            else pynvml.nvmlDeviceGetHandleByIndex(which)
        )
    except pynvml.NVMLError as error:
        raise FieldError(FIELD, f"an index below {count} or a UUID", which) from error
    major, minor = pynvml.nvmlDeviceGetCudaComputeCapability(handle)
    return Gpu(
        handle=handle,
        name=pynvml.nvmlDeviceGetName(handle),
        uuid=pynvml.nvmlDeviceGetUUID(handle),
        index=pynvml.nvmlDeviceGetIndex(handle),
        arch=f"sm_{major}{minor}",
        pci_bus_id=pynvml.nvmlDeviceGetPciInfo(handle).busId,
    )
