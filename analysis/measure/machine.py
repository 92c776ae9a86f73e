"""This machine: its description with its GPUs, the measured commit, and the lock that lets one
measurement run at a time, whoever starts it and from whichever checkout."""

import hashlib
import os
import platform
import re
import resource
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from importlib import metadata
from itertools import combinations
from pathlib import Path
from typing import Any, Final, NamedTuple

import psutil
import pynvml

from analysis import ROOT
from analysis.base.errors import FieldError, HotpathError
from analysis.base.files import take
from analysis.base.gpu import UNKNOWN_NAME, Gpu, cuda_attribute, cuda_device
from analysis.base.keys import MAX_NUMBER
from analysis.base.limits import allocatable_bytes, allowed_cores, cpu_quota
from analysis.results.store.keys import UNKNOWN_HOST, HostKeys
from analysis.toolchain.packages import PACKAGES

LIBRARIES: Final = (
    *("numpy", "cuda-bench", "cuda-bindings", "nvidia-ml-py", "pybind11"),
    *(name for package in PACKAGES.values() for name in package.distributions),
)
MACHINE_ID = Path("/etc/machine-id")
"""Made by the system when it is installed."""
IOMMUS = (Path("/sys/class/iommu"), Path("/sys/kernel/iommu_groups"))
"""Empty if this system sees no IOMMU; a hypervisor may use one all the same."""
COMMIT_VARIABLE: Final = "HOTPATH_COMMIT"
"""Environment variable with the commit of a clean tree that was copied without its .git."""
LOCK_FOLDERS: Final = ("/run/lock", "/tmp")
"""Folders in which every user may create a file; the first writable one is used."""
FOLDER_VARIABLE: Final = "HOTPATH_LOCK"
"""Environment variable with another folder, as one that the containers of a machine share."""


def slug(name: str) -> str:
    """A readable folder name of [a-z0-9-]: `NVIDIA H200` becomes `nvidia-h200`."""
    return re.sub(r"[^a-z0-9]+", "-", name.lower())[:90].strip("-")


def utc_now(timespec: str = "milliseconds") -> str:
    """This moment in the format of the results, `2026-01-31T12:00:00.000Z`."""
    return datetime.now(UTC).isoformat(timespec=timespec).replace("+00:00", "Z")


def describe(gpus: Sequence[Gpu]) -> HostKeys:
    """CPU, memory, system and library versions, and the GPUs."""
    cpu = _cpu()
    # A hypervisor that hides the model's name shows these.
    ids = [cpu.get(key, "") for key in ("cpu family", "model", "stepping")]
    host: dict[str, Any] = {
        "cpu": cpu.get("model name") or platform.processor() or platform.machine(),
        "cpu_id": f"{cpu.get('vendor_id')} {'-'.join(ids)}" if all(ids) else None,
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
        cuda = gpus[0].ask(lambda _: pynvml.nvmlSystemGetCudaDriverVersion_v2())
        host["cuda"] = f"{cuda // 1000}.{cuda % 1000 // 10}" if cuda else None
        host["driver"] = gpus[0].ask(lambda _: pynvml.nvmlSystemGetDriverVersion()) or None
    described = [_describe_gpu(gpu) for gpu in gpus]
    answers = [host, *described]
    for gpu in gpus:  # what telemetry and rounds record of it
        name = None if gpu.name == UNKNOWN_NAME else gpu.name
        answers.append({"gpu": name, "other_processes": gpu.other_processes(), **gpu.readings()})
    unknown = {key for answer in answers for key, value in answer.items() if value is None}
    libraries = {}
    for name in LIBRARIES:
        with suppress(metadata.PackageNotFoundError):
            libraries[name] = metadata.version(name)
    _, locked = resource.getrlimit(resource.RLIMIT_MEMLOCK)
    content = {
        "id": host_id(gpus),
        "gpus": described,
        **host,
        "peer_access": {f"{i}-{j}": known for (i, j), known in peer_access(gpus).items()} or None,
        "nvlinks": nvlinks(gpus) or None,
        "libraries": libraries,
        "limits": {
            "cores": allowed_cores(),
            "cpu_quota": cpu_quota(),
            "memory_bytes": room if (room := allocatable_bytes()) < MAX_NUMBER else None,
            "locked_bytes": locked if locked != resource.RLIM_INFINITY else None,
        },
        "unsupported": sorted(unknown - {"gpu_numa_node"}),  # there may be one node
    }
    return HostKeys.model_validate(content)


def host_id(gpus: Sequence[Gpu]) -> str:
    """An anonymous identity of the host: 8 hex digits of a hash.

    It is the first GPU's where there is one: a virtual machine has no other lasting mark of where
    it runs. Two GPUs of one host therefore count as two hosts. UNKNOWN_HOST if there is neither.
    """
    mark = gpus[0].uuid if gpus else ""
    if not mark and MACHINE_ID.is_file():
        mark = MACHINE_ID.read_text().strip()
    return hashlib.sha256(f"hotpath {mark}".encode()).hexdigest()[:8] if mark else UNKNOWN_HOST


def _describe_gpu(gpu: Gpu) -> dict[str, Any]:
    """The keys of GpuKeys; None for a value that cannot be read here."""
    ask = gpu.ask
    power_limit = ask(pynvml.nvmlDeviceGetEnforcedPowerLimit)
    memory = ask(pynvml.nvmlDeviceGetMemoryInfo)
    ecc = ask(pynvml.nvmlDeviceGetEccMode)
    numa_node = -1
    with suppress(OSError, ValueError):
        numa_node = int((gpu.sysfs / "numa_node").read_text())
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
        "gpu_numa_node": numa_node if numa_node >= 0 else None,
    }


def _pcie_sizes(config: Path) -> dict[str, int | None]:
    """Maximum payload and read request size in bytes, from the device's PCI Express capability.
    Without privileges, most kernels show only the first 64 bytes, which lack it."""
    data, at, control, pci_express = b"", 0, None, 0x10
    with suppress(OSError):
        data = config.read_bytes()
        at = data[0x34]
    while 0x40 <= at < len(data) - 10 and control is None:
        if data[at] == pci_express:
            control = int.from_bytes(data[at + 8 : at + 10], "little")
        at = data[at + 1]
    return {
        "pcie_max_payload_bytes": None if control is None else 128 << (control >> 5 & 7),
        "pcie_read_request_bytes": None if control is None else 128 << (control >> 12 & 7),
    }


def _cpu() -> dict[str, str]:
    """The fields of the first core in /proc/cpuinfo."""
    first, *_ = Path("/proc/cpuinfo").read_text().split("\n\n")
    lines = (line.partition(":") for line in first.splitlines())
    return {key.strip(): value.strip() for key, _, value in lines}


def _cpu_caches(folder: Path = Path("/sys/devices/system/cpu/cpu0/cache")) -> dict[str, int] | None:
    """Sizes of the first core's caches, as `L2_unified_bytes`; a shared cache counts in whole."""
    found = {}
    for index in sorted(folder.glob("index[0-9]*")):
        with suppress(OSError, ValueError):  # a virtual machine may not tell all of these
            level, kind, size = ((index / n).read_text().strip() for n in ("level", "type", "size"))
            found[f"L{level}_{kind.lower()}_bytes"] = int(size.removesuffix("K")) * 1024
    return found or None


def peer_access(gpus: Sequence[Gpu]) -> dict[tuple[int, int], bool | None]:
    """Whether each of two GPUs can access the other's memory, by CUDA, for every pair by their
    places in `gpus`; None if CUDA does not know one of them."""
    pairs = combinations(range(len(gpus)), 2)
    return {(i, j): _has_access(gpus[i], gpus[j]) for i, j in pairs}


def nvlinks(gpus: Sequence[Gpu]) -> dict[str, int | None]:
    """How many active NVLinks join each two GPUs, directly or over switches, by their places, such
    as `0-1`; None if one of them reports none."""
    found = {}
    for (i, gpu), (j, peer) in combinations(enumerate(gpus), 2):
        near, far = _nvlinks_towards(gpu, peer), _nvlinks_towards(peer, gpu)
        found[f"{i}-{j}"] = None if near is None or far is None else min(near, far)
    return found


def _nvlinks_towards(gpu: Gpu, peer: Gpu) -> int | None:
    leads = list[bool]()
    for link in range(pynvml.NVML_NVLINK_MAX_LINKS):
        is_on = gpu.ask(pynvml.nvmlDeviceGetNvLinkState, link)
        kind = is_on and gpu.ask(pynvml.nvmlDeviceGetNvLinkRemoteDeviceType, link)
        end = is_on and gpu.ask(pynvml.nvmlDeviceGetNvLinkRemotePciInfo, link)
        is_near = bool(end) and end.busId == peer.pci_bus_id
        if is_on is not None:
            leads.append(is_near or kind == pynvml.NVML_NVLINK_DEVICE_TYPE_SWITCH)
    return sum(leads) if leads else None


def _has_access(gpu: Gpu, peer: Gpu) -> bool | None:
    from cuda.bindings import driver

    devices = [cuda_device(each.pci_bus_id) for each in (gpu, peer)]
    if None in devices:
        return None
    answers = [driver.cuDeviceCanAccessPeer(*pair) for pair in (devices, devices[::-1])]
    return answers == [(driver.CUresult.CUDA_SUCCESS, 1)] * 2


class Commit(NamedTuple):
    """The commit of a tree and whether anything but results differs from it; None if unknown."""

    name: str | None = None
    dirty: bool | None = None


def commit_of(root: Path) -> Commit:
    """The commit of a tree by git or, for a copied tree, by the environment. If git knows none, it
    says why on the standard error. FieldError if results may not name the commit."""
    if named := os.environ.get(COMMIT_VARIABLE):
        if not re.fullmatch(r"[A-Za-z0-9._-]{1,64}", named):  # as in a run's description
            raise FieldError(COMMIT_VARIABLE, "a commit by its hash or a name without /", named)
        return Commit(named, dirty=False)
    # That of `root` itself, not of a repository around it. A kill leaves no lock.
    alone = {"GIT_CEILING_DIRECTORIES": str(root.resolve().parent), "GIT_OPTIONAL_LOCKS": "0"}

    def git(*command: str) -> str:
        return subprocess.check_output(
            ["git", *command], cwd=root, env=os.environ | alone, text=True
        ).strip()

    with suppress(OSError, subprocess.CalledProcessError):
        head = git("rev-parse", "HEAD")
        return Commit(head, bool(git("status", "--porcelain", "--", ".", ":!results")))
    return Commit()


@contextmanager
def whole_machine(busy: str, what: str) -> Iterator[None]:
    """Hold this machine's lock; `what` describes the work to other processes. If another one holds
    it, `busy` decides: `wait` names the holder and waits, `refuse` raises HotpathError."""

    def held(holder: str) -> None:
        in_use = f"this machine is in use by {holder}"
        if busy == "refuse":
            raise HotpathError(f"config: busy: {in_use}; with busy=wait, this run waits")
        print(f"waiting: {in_use}", flush=True)

    writable = (folder for folder in LOCK_FOLDERS if os.access(folder, os.W_OK))
    folder = os.environ.get(FOLDER_VARIABLE) or next(writable, LOCK_FOLDERS[-1])
    me = f"process {os.getpid()} of {psutil.Process().username()} in {ROOT}: {what}"
    lock = take(Path(folder, "hotpath.lock"), f"{me}, since {utc_now('seconds')}", held)
    try:
        yield
    finally:
        lock.release()
