"""A description of this host, for every run."""

from __future__ import annotations

import hashlib
import os
import platform
import re
import resource
from collections.abc import Callable, Sequence
from contextlib import suppress
from importlib import metadata
from pathlib import Path
from typing import Any

import psutil
import pynvml

from analysis.base.gpu import UNKNOWN_NAME, Gpu, cuda_attribute
from analysis.base.limits import allocatable_bytes, allowed_cores, cpu_quota
from analysis.base.values import MAX_NUMBER
from analysis.measure.topology import numa_node, topology
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
    host: dict[str, Any] = {
        "cpu": _cpu_model(),
        "cpu_id": _cpu_id(),
        "cpu_caches": _cpu_caches(),
        "cores": os.cpu_count(),
        "numa_nodes": len(list(Path("/sys/devices/system/node").glob("node[0-9]*"))) or None,
        "memory_bytes": psutil.virtual_memory().total,
        "kernel": platform.release(),
        "hypervisor": "hypervisor" in _cpu_flags(),
        "iommu": any(path.exists() and any(path.iterdir()) for path in IOMMUS),
        "python": platform.python_version(),
    }
    described = [describe_gpu(gpu) for gpu in gpus]
    if gpus:
        cuda = _of_system(pynvml.nvmlSystemGetCudaDriverVersion_v2)
        host["driver"] = _of_system(pynvml.nvmlSystemGetDriverVersion) or None
        host["cuda"] = f"{cuda // 1000}.{cuda % 1000 // 10}" if cuda else None
    answers = [host, *described, *(_answers(gpu) for gpu in gpus)]
    unknown = {key for one in answers for key, value in one.items() if value is None}
    unknown.discard("gpu_numa_node")  # there may be one node
    installed = {name: version for name in LIBRARIES if (version := _version(name))}
    _, locked = resource.getrlimit(resource.RLIMIT_MEMLOCK)
    content = {
        "id": host_id(gpus),
        "gpus": described,
        **host,
        **topology(gpus),
        "libraries": installed,
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
        "gpu_numa_node": numa_node(gpu),
    }


def _answers(gpu: Gpu) -> dict[str, object]:
    """What runs record of a GPU besides its description, by the name in results; None for what it
    does not report."""
    name = None if gpu.name == UNKNOWN_NAME else gpu.name
    return {"gpu": name, "other_processes": gpu.other_processes(), **gpu.readings()}


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


def _cpu_field(name: str) -> str:
    with suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            key, _, value = line.partition(":")
            if key.strip() == name:
                return value.strip()
    return ""


def _cpu_model() -> str:
    return _cpu_field("model name") or platform.processor() or platform.machine()


def _cpu_id() -> str | None:
    """Vendor, family, model and stepping, as `GenuineIntel 6-143-8`: a hypervisor that hides the
    model's name shows them. None if the system does not give them."""
    found = [_cpu_field(name) for name in ("vendor_id", "cpu family", "model", "stepping")]
    if not all(found):
        found = [_cpu_field(f"CPU {name}") for name in ("implementer", "architecture", "part")]
    return f"{found[0]} {'-'.join(found[1:])}" if all(found) else None


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


def _cpu_flags() -> list[str]:
    return _cpu_field("flags").split()


def _version(name: str) -> str | None:
    with suppress(metadata.PackageNotFoundError):
        return metadata.version(name)
    return None
