"""The GPUs through NVML: selection, properties, clocks and energy, and other users."""

import os
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pynvml

from analysis.base.errors import FieldError, HotpathError
from analysis.base.limits import parse_cpu_list

_REASON: Final = re.compile("nvmlClocks(?:Event|Throttle)Reason((?:Sw|Hw|Sync|Display)[A-Z].*)")
_REASONS: Final = {
    getattr(pynvml, found[0]): re.sub("(?<=.)([A-Z])", r"_\1", found[1]).lower()
    for found in filter(None, map(_REASON.fullmatch, dir(pynvml)))
}
"""Clock-event reasons that lower clocks. Idle and application clocks are not among them."""
FIELD: Final = "config: gpu"
"""Where the configuration names GPUs."""
UNKNOWN_NAME: Final = "unknown GPU"
"""Name of a GPU that reports none."""
_LOST: Final = (pynvml.NVML_ERROR_GPU_IS_LOST, pynvml.NVML_ERROR_RESET_REQUIRED)
_UNAVAILABLE: Final = (2**32 - 1, 2**64 - 1)
"""NVML_VALUE_NOT_AVAILABLE of either width: what some drivers report for an unknown value."""


class GpuError(HotpathError):
    """A GPU cannot be used, in the words of NVML: it is lost, or this user may not open it."""


class NoGpu(GpuError):
    """This machine has no GPU."""


@dataclass(frozen=True)
class Gpu:
    """An NVML handle and the constant properties of its device; "" if one is unknown."""

    handle: Any
    name: str = ""
    uuid: str = ""
    index: int | str = 0
    arch: str = ""
    pci_bus_id: str = ""

    @property
    def key(self) -> int | str:
        """The UUID, or the index if it is unknown."""
        return self.uuid or self.index

    def ask(self, query: Callable[..., Any], *arguments: Any, scale: float | None = None) -> Any:
        """The answer to a query of NVML, times `scale`; None if this GPU, driver or user gets none.

        GpuError if the GPU is lost.
        """
        try:
            answer = query(self.handle, *arguments)
        except pynvml.NVMLError as error:
            if error.value in _LOST:
                raise GpuError(f"GPU {self.index} no longer answers: {error}") from error
            return None
        if isinstance(answer, int) and answer in _UNAVAILABLE:
            return None
        return answer if scale is None else answer * scale

    def readings(self, with_pcie: bool = True) -> dict[str, Any]:
        """Telemetry of this moment by its column; None for what this GPU does not report."""
        rates = (pynvml.NVML_PCIE_UTIL_RX_BYTES, pynvml.NVML_PCIE_UTIL_TX_BYTES)
        query = pynvml.nvmlDeviceGetPcieThroughput
        received, sent = (self.ask(query, k, scale=1e3) if with_pcie else None for k in rates)
        return {
            "power_w": self.ask(pynvml.nvmlDeviceGetPowerUsage, scale=1e-3),
            "energy_j": self.energy_j(),
            "temperature_c": self.ask(pynvml.nvmlDeviceGetTemperature, pynvml.NVML_TEMPERATURE_GPU),
            "sm_mhz": self.sm_clock_mhz(),
            "memory_mhz": self.ask(pynvml.nvmlDeviceGetClockInfo, pynvml.NVML_CLOCK_MEM),
            "throttle": self.throttle_reasons(),
            "pcie_rx_bytes_per_s": received,
            "pcie_tx_bytes_per_s": sent,
        }

    def throttle_reasons(self) -> str | None:
        """The throttle reasons that NVML reports now, joined by `|`; empty if there are none, None
        if they are unknown."""
        bits = self.ask(pynvml.nvmlDeviceGetCurrentClocksEventReasons)
        reasons = (label for bit, label in _REASONS.items() if bit & (bits or 0))
        return None if bits is None else "|".join(sorted(reasons))

    def sm_clock_mhz(self) -> float | None:
        mhz: int | None = self.ask(pynvml.nvmlDeviceGetClockInfo, pynvml.NVML_CLOCK_SM)
        return None if mhz is None else float(mhz)

    def is_at_highest_clock(self) -> bool:
        """Whether the SMs run at the highest clock of this device; False if that is unknown."""
        highest = self.ask(pynvml.nvmlDeviceGetMaxClockInfo, pynvml.NVML_CLOCK_SM)
        return highest is not None and (self.sm_clock_mhz() or 0) >= highest

    def energy_j(self) -> float | None:
        """Joules since the driver was loaded; None if the device does not report them."""
        energy: float | None = self.ask(pynvml.nvmlDeviceGetTotalEnergyConsumption, scale=1e-3)
        return energy

    def other_processes(self) -> list[int] | None:
        """Ids of other processes that hold a compute context on this GPU; None if unknown."""
        running = self.ask(pynvml.nvmlDeviceGetComputeRunningProcesses)
        return None if running is None else sorted({one.pid for one in running} - {os.getpid()})

    @property
    def sysfs(self) -> Path:
        """The folder of the device, which need not exist."""
        return Path("/sys/bus/pci/devices") / self.pci_bus_id.lower()[-12:]

    def local_cpus(self) -> set[int]:
        """The CPUs nearest to this GPU that this process may use; all allowed CPUs if unknown."""
        allowed = os.sched_getaffinity(0)
        with suppress(OSError):
            near = parse_cpu_list((self.sysfs / "local_cpulist").read_text())
            return ({*near} & allowed) or allowed
        return allowed


@contextmanager
def open_gpus(which: Sequence[int | str]) -> Iterator[tuple[Gpu, ...]]:
    """The GPUs with these indices or UUIDs, in this order, all of one kind.

    NoGpu if there is no driver or no GPU and none but the first is asked for; GpuError if one
    cannot be used; FieldError if one is not here, is asked for twice, or is of another kind than
    the first.
    """
    try:
        pynvml.nvmlInit()
        reason = "" if pynvml.nvmlDeviceGetCount() else "the driver reports none"
    except pynvml.NVMLError as error:
        if error.value in (*_LOST, pynvml.NVML_ERROR_NO_PERMISSION):
            raise GpuError(f"GPU: {error}") from error
        reason = str(error)
    if reason and list(which) == [0]:
        raise NoGpu(f"no GPU: {reason}")
    if reason:
        raise FieldError(FIELD, f"0, as there is no GPU here ({reason})", list(which))
    try:
        gpus = tuple(map(_describe, which))
        if len({gpu.key for gpu in gpus}) < len(gpus):
            raise FieldError(FIELD, "GPUs that differ from each other", list(which))
        if len({(gpu.name, gpu.arch) for gpu in gpus}) > 1:
            raise FieldError(FIELD, "GPUs of one kind", [gpu.name for gpu in gpus])
        yield gpus
    finally:
        with suppress(pynvml.NVMLError):
            pynvml.nvmlShutdown()


def free_twins(first: Gpu) -> Iterator[Gpu]:
    """Further GPUs of the kind of `first` that nobody is known to use, in the order of their
    indices, unless CUDA_VISIBLE_DEVICES hides them. Call it while `first` is open."""
    named = os.environ.get("CUDA_VISIBLE_DEVICES")
    for index in range(pynvml.nvmlDeviceGetCount()):
        with suppress(HotpathError):  # it cannot be used
            gpu = _describe(index)
            is_visible = named is None or any(
                name == str(gpu.index) or (name.startswith("GPU-") and gpu.uuid.startswith(name))
                for name in map(str.strip, named.split(","))
            )
            is_twin = gpu.key != first.key and (gpu.name, gpu.arch) == (first.name, first.arch)
            if is_twin and is_visible and not gpu.other_processes():
                yield gpu


def show_only(gpus: Sequence[Gpu]) -> None:
    """Let CUDA see these GPUs, in this order and no others, in this process and its children."""
    os.environ["CUDA_VISIBLE_DEVICES"] = ",".join(str(gpu.key) for gpu in gpus)
    if not all(gpu.uuid for gpu in gpus):
        os.environ["CUDA_DEVICE_ORDER"] = "PCI_BUS_ID"  # the order of NVML's indices


def cuda_device(pci_bus_id: str) -> Any:
    """The device of CUDA's driver at this address; None if it does not know one."""
    from cuda.bindings import driver

    with suppress(RuntimeError):  # there is no driver
        if pci_bus_id and not driver.cuInit(0)[0]:
            status, device = driver.cuDeviceGetByPCIBusId(pci_bus_id.encode())
            return None if status else device
    return None


def cuda_attribute(pci_bus_id: str, name: str) -> int | None:
    """A device attribute that NVML does not report, from the driver; None if unknown. `name` is
    the one in CUdevice_attribute without its prefix."""
    from cuda.bindings import driver

    if (device := cuda_device(pci_bus_id)) is None:
        return None
    key = getattr(driver.CUdevice_attribute, f"CU_DEVICE_ATTRIBUTE_{name}")
    status, value = driver.cuDeviceGetAttribute(key, device)
    return None if status else int(value)


def _describe(which: int | str) -> Gpu:
    """The GPU with this index or UUID; FieldError if there is none, GpuError if it cannot be used,
    as one that MIG divides."""
    is_index = isinstance(which, int)
    find = pynvml.nvmlDeviceGetHandleByIndex if is_index else pynvml.nvmlDeviceGetHandleByUUID
    try:
        handle = find(which)
        version = pynvml.nvmlDeviceGetCudaComputeCapability(handle)
    except pynvml.NVMLError as error:
        if error.value in (pynvml.NVML_ERROR_INVALID_ARGUMENT, pynvml.NVML_ERROR_NOT_FOUND):
            raise FieldError(FIELD, "the index or UUID of a GPU", which) from error
        raise GpuError(f"GPU {which}: {error}") from error
    ask = Gpu(handle, index=which).ask
    if (ask(pynvml.nvmlDeviceGetMigMode) or [0])[0]:
        raise GpuError(f"GPU {which}: MIG is on, and only whole GPUs are measured")
    index = ask(pynvml.nvmlDeviceGetIndex)
    return Gpu(
        handle,
        ask(pynvml.nvmlDeviceGetName) or UNKNOWN_NAME,
        ask(pynvml.nvmlDeviceGetUUID) or "",
        which if index is None else index,
        "sm_{}{}".format(*version),
        getattr(ask(pynvml.nvmlDeviceGetPciInfo), "busId", ""),
    )
