"""A description of this host, for every run."""

from __future__ import annotations

import hashlib
import os
import platform
import re
import resource
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from importlib import metadata
from pathlib import Path
from typing import Any

import psutil
import pynvml

from analysis.base.gpu import UNKNOWN_NAME, Gpu, cuda_attribute
from analysis.base.keys import MAX_NUMBER
from analysis.base.limits import allocatable_bytes, allowed_cores, cpu_quota
from analysis.measure.topology import topology
from analysis.results.store.keys import UNKNOWN_HOST, HostKeys
from analysis.toolchain.packages import PACKAGES

LIBRARIES = (
    "numpy",
    *(name for package in PACKAGES.values() for name in package.distributions),
    *("cuda-bench", "cuda-bindings", "nvidia-ml-py", "pybind11"),
)

MACHINE_IDS = (Path("/etc/machine-id"), Path("/var/lib/dbus/machine-id"))
"""Made by the system when it is installed."""

IOMMUS = (Path("/sys/class/iommu"), Path("/sys/kernel/iommu_groups"))
"""Empty if this system sees no IOMMU; a hypervisor may use one all the same."""

MAX_SLUG = 90
"""Maximum length of a folder's name; that of a machine may end with the number of GPUs."""

_PCIE_CAPABILITY = 0x10


def slug(name: str) -> str:
    """A readable folder name of [a-z0-9-]: `NVIDIA H200` becomes `nvidia-h200`."""
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:MAX_SLUG].strip("-")


def describe(gpus: Sequence[Gpu]) -> HostKeys:
    """CPU, memory, system and library versions, the GPUs, and how several are connected."""
    cpu = _cpu_fields()
    host: dict[str, Any] = {
        "cpu": cpu.get("model name") or platform.processor() or platform.machine(),
        "cpu_id": _cpu_id(cpu),
        "cpu_caches": _cpu_caches(),
        "cores": os.cpu_count(),
        "numa_nodes": len(list(Path("/sys/devices/system/node").glob("node[0-9]*"))) or None,
        "memory_bytes": psutil.virtual_memory().total,
        "kernel": platform.release(),
        "hypervisor": "hypervisor" in cpu.get("flags", "").split(),
        "iommu": any(path.exists() and any(path.iterdir()) for path in IOMMUS),
        "python": platform.python_version(),
    }
    if gpus:
        cuda = _of_system(pynvml.nvmlSystemGetCudaDriverVersion_v2)
        host["driver"] = _of_system(pynvml.nvmlSystemGetDriverVersion) or None
        host["cuda"] = f"{cuda // 1000}.{cuda % 1000 // 10}" if cuda else None
    described = [describe_gpu(gpu) for gpu in gpus]
    answers = [host, *described]
    for gpu in gpus:  # what runs record of it besides
        name = None if gpu.name == UNKNOWN_NAME else gpu.name
        answers.append({"gpu": name, "other_processes": gpu.other_processes(), **gpu.readings()})
    unknown = {key for one in answers for key, value in one.items() if value is None}
    unknown.discard("gpu_numa_node")  # there may be one node
    _, locked = resource.getrlimit(resource.RLIMIT_MEMLOCK)
    content = {
        "id": host_id(gpus),
        "gpus": described,
        **host,
        **topology(gpus),
        "libraries": {name: version for name in LIBRARIES if (version := _version(name))},
        "limits": {
            "cores": allowed_cores(),
            "cpu_quota": cpu_quota(),
            "memory_bytes": room if (room := allocatable_bytes()) < MAX_NUMBER else None,
            "locked_bytes": locked if locked != resource.RLIM_INFINITY else None,
        },
        "unsupported": sorted(unknown),
    }
    return HostKeys.model_validate(content)


def host_id(gpus: Sequence[Gpu]) -> str:
    """An anonymous identity of the host: 8 hex digits of a hash.

    It is the first GPU's where there is one: a virtual machine has no other lasting mark of where
    it runs. Two GPUs of one host therefore count as two hosts. UNKNOWN_HOST if there is neither.
    """
    mark = gpus[0].uuid if gpus else ""
    for path in MACHINE_IDS:
        with suppress(OSError):
            mark = mark or path.read_text().strip()
    return hashlib.sha256(f"hotpath {mark}".encode()).hexdigest()[:8] if mark else UNKNOWN_HOST


def describe_gpu(gpu: Gpu) -> dict[str, Any]:
    """The keys of GpuKeys; None for a value that cannot be read here."""
    ask = gpu.ask
    power_limit = ask(pynvml.nvmlDeviceGetEnforcedPowerLimit)
    memory = ask(pynvml.nvmlDeviceGetMemoryInfo)
    ecc = ask(pynvml.nvmlDeviceGetEccMode)
    return {
        "gpu": gpu.name,
        "arch": gpu.arch,
        "sms": cuda_attribute(gpu.pci_bus_id, "MULTIPROCESSOR_COUNT"),
        "gpu_memory_bytes": memory.total if memory else None,
        "power_limit_w": power_limit / 1e3 if power_limit else None,
        "max_sm_mhz": ask(pynvml.nvmlDeviceGetMaxClockInfo, pynvml.NVML_CLOCK_SM) or None,
        "max_memory_mhz": ask(pynvml.nvmlDeviceGetMaxClockInfo, pynvml.NVML_CLOCK_MEM) or None,
        "ecc": bool(ecc[0]) if ecc else None,
        "pcie_generation": ask(pynvml.nvmlDeviceGetCurrPcieLinkGeneration) or None,
        "pcie_width": ask(pynvml.nvmlDeviceGetCurrPcieLinkWidth) or None,
        **_pcie_sizes(gpu.sysfs / "config"),
        "gpu_numa_node": _numa_node(gpu),
    }


def _of_system(query: Callable[[], Any]) -> Any:
    """The answer to a query of NVML about the driver; None if there is none."""
    with suppress(pynvml.NVMLError):
        return query()
    return None


def _pcie_sizes(config: Path) -> dict[str, int | None]:
    """Maximum payload and read request size in bytes, from the device's PCI Express capability.

    Most machines do not allow this without privileges: the kernel then shows only the first 64
    bytes.
    """
    sizes: dict[str, int | None] = {"pcie_max_payload_bytes": None, "pcie_read_request_bytes": None}
    with suppress(OSError):
        data = config.read_bytes()
        at = data[0x34]
        while 0x40 <= at < len(data) - 10:
            if data[at] == _PCIE_CAPABILITY:
                control = int.from_bytes(data[at + 8 : at + 10], "little")
                sizes["pcie_max_payload_bytes"] = 128 << (control >> 5 & 7)
                sizes["pcie_read_request_bytes"] = 128 << (control >> 12 & 7)
                break
            at = data[at + 1]
    return sizes


def _numa_node(gpu: Gpu) -> int | None:
    """The NUMA node of the host that the GPU hangs at; None where there is but one, or unknown."""
    with suppress(OSError, ValueError):
        node = int((gpu.sysfs / "numa_node").read_text())
        return node if node >= 0 else None
    return None


def _cpu_fields() -> dict[str, str]:
    """The fields of the first core in /proc/cpuinfo."""
    try:
        first, *_ = Path("/proc/cpuinfo").read_text().split("\n\n")
    except OSError:
        return {}
    lines = (line.partition(":") for line in first.splitlines())
    return {key.strip(): value.strip() for key, _, value in lines}


def _cpu_id(cpu: Mapping[str, str]) -> str | None:
    """Vendor, family, model and stepping, as `GenuineIntel 6-143-8`: a hypervisor that hides the
    model's name shows them. None if the system does not give them."""
    for names in (
        ("vendor_id", "cpu family", "model", "stepping"),
        ("CPU implementer", "CPU architecture", "CPU part"),
    ):
        vendor, *numbers = (cpu.get(name, "") for name in names)
        if vendor and all(numbers):
            return f"{vendor} {'-'.join(numbers)}"
    return None


def _cpu_caches(folder: Path = Path("/sys/devices/system/cpu/cpu0/cache")) -> dict[str, int] | None:
    """Sizes of the first core's caches, as `L2_unified_bytes`; a shared cache counts in whole."""
    found = {}
    for index in sorted(folder.glob("index[0-9]*")):
        with suppress(OSError, ValueError):
            level, kind, size = (
                (index / name).read_text().strip() for name in ("level", "type", "size")
            )
            found[f"L{level}_{kind.lower()}_bytes"] = int(size.removesuffix("K")) * 1024
    return found or None


def _version(name: str) -> str | None:
    with suppress(metadata.PackageNotFoundError):
        return metadata.version(name)
    return None
